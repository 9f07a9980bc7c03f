; What Go defines; see python.scm for the captures. Values count when others can see them.

((type_spec name: (_) @name type: (struct_type (field_declaration_list) @body)) @struct)
((type_spec name: (_) @name type: (interface_type "{" @body)) @interface)
((type_spec name: (_) @name) @type)
((type_alias name: (_) @name) @type)
((field_declaration name: (_) @name) @field)
((method_elem name: (_) @name) @method)
((const_spec name: (identifier) @name) @constant (#set! name "[A-Z].*"))
((var_spec name: (identifier) @name) @variable (#set! name "[A-Z].*"))
((function_declaration name: (_) @name body: (_) @body @opaque) @function)
((method_declaration receiver: (parameter_list (parameter_declaration type: (_) @owner)) name: (_) @name body: (_) @body @opaque) @method)
(func_literal body: (_) @opaque)
(comment) @comment
