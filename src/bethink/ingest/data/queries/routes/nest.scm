; Nest: @Controller("users") on a class, @Get(":id") on a method. Only TypeScript has decorators on methods.

((export_statement decorator: (decorator (call_expression function: (identifier) @verb arguments: (arguments) @args))
  declaration: (class_declaration)) @scope
  (#set! role "scope") (#set! verb "Controller"))
((class_declaration decorator: (decorator (call_expression function: (identifier) @verb arguments: (arguments) @args))) @scope
  (#set! role "scope") (#set! verb "Controller"))
((class_body
  decorator: (decorator (call_expression function: (identifier) @verb arguments: (arguments) @args)) @place
  . decorator: (decorator)* . (method_definition name: (_) @handler))
  (#set! role "route") (#set! verb "Get|Post|Put|Patch|Delete|All|Head|Options"))
