; What PHP defines; see python.scm for the captures.

((class_declaration name: (_) @name body: (_) @body) @class)
((interface_declaration name: (_) @name body: (_) @body) @interface)
((trait_declaration name: (_) @name body: (_) @body) @trait)
((enum_declaration name: (_) @name body: (_) @body) @enum)
((namespace_definition name: (_) @name body: (_) @body) @namespace)
((namespace_definition name: (_) @name !body) @namespace (#set! rest "yes"))
((function_definition name: (_) @name body: (_) @body @opaque) @function)
((method_declaration name: (_) @name body: (_) @body @opaque) @method)
((method_declaration name: (_) @name !body) @method)
((enum_case name: (_) @name) @field)
((const_declaration (const_element (name) @name)) @constant)
((property_declaration (property_element name: (_) @name)) @field)
((function_call_expression function: (_) @maker arguments: (arguments . (argument (string) @name))) @constant (#set! maker "define"))
([(anonymous_function body: (_) @opaque) (arrow_function body: (_) @opaque)])
(comment) @comment
(attribute_list) @mark
