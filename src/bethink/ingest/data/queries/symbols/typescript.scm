; What TypeScript has beside script.scm, which is read before this one.

((abstract_class_declaration name: (_) @name body: (_) @body) @class)
((interface_declaration name: (_) @name body: (_) @body) @interface)
((enum_declaration name: (_) @name body: (_) @body) @enum)
((internal_module name: (_) @name body: (_) @body) @namespace)
((module name: (_) @name body: (_) @body) @namespace)
((function_signature name: (_) @name) @function)
([(method_signature name: (_) @name) (abstract_method_signature name: (_) @name)] @method)
((public_field_definition name: (_) @name value: (arrow_function body: (_) @body)) @method)
((public_field_definition name: (_) @name) @constant (#set! name "_{0,2}[A-Z][A-Z0-9_]*"))
((public_field_definition name: (_) @name) @field)
((interface_body (property_signature name: (_) @name) @field))
([(enum_assignment name: (_) @name) @field (enum_body (property_identifier) @name @field)])
((type_alias_declaration name: (_) @name) @type)
(variable_declarator name: (identifier) @name value: (as_expression (object (method_definition)) @body)) @constant
(ambient_declaration (_ (variable_declarator name: (identifier) @name) @constant) (#set! within "top"))
