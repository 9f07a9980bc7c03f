; What JavaScript has beside script.scm, which is read before this one.

((field_definition property: (_) @name value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @method)
((field_definition property: (_) @name) @field)
