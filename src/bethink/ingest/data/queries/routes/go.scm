; net/http, gin, echo, chi, fiber and gorilla. A setting named like a capture is a pattern for its text.

; api := r.Group("/api"); s := r.PathPrefix("/products").Subrouter()
((short_var_declaration left: (expression_list . (identifier) @name)
  right: (expression_list . (call_expression function: (selector_expression operand: (identifier) @on field: (_) @verb) arguments: (argument_list) @args)))
  (#set! role "router") (#set! verb "Group|Route|PathPrefix"))
((short_var_declaration left: (expression_list . (identifier) @name)
  right: (expression_list . (call_expression function: (selector_expression
    operand: (call_expression function: (selector_expression operand: (identifier) @on field: (_) @verb) arguments: (argument_list) @args)))))
  (#set! role "router") (#set! verb "PathPrefix"))

; r.Route("/articles", func(r chi.Router) { … })
((call_expression function: (selector_expression operand: (identifier) @on field: (_) @verb) arguments: (argument_list (func_literal)) @args) @scope
  (#set! role "scope") (#set! verb "Route|Group"))

; r.GET("/ping", ping)
((call_expression function: (selector_expression operand: (identifier) @on field: (_) @verb) arguments: (argument_list) @args) @place
  (#set! role "route")
  (#set! verb "GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS|Get|Post|Put|Patch|Delete|Head|Options|Any|All|HandleFunc|Handle"))
