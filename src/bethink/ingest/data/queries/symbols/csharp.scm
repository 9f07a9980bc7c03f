; What C# defines; see python.scm for the captures.

((class_declaration name: (_) @name body: (_) @body) @class)
((record_declaration name: (_) @name body: (_) @body) @record)
((record_declaration name: (_) @name !body) @record)
((struct_declaration name: (_) @name body: (_) @body) @struct)
((interface_declaration name: (_) @name body: (_) @body) @interface)
((enum_declaration name: (_) @name body: (_) @body) @enum)
((namespace_declaration name: (_) @name body: (_) @body) @namespace)
((file_scoped_namespace_declaration name: (_) @name) @namespace (#set! rest "yes"))
((delegate_declaration name: (_) @name) @delegate)
([(method_declaration name: (_) @name body: (_) @body @opaque) (constructor_declaration name: (_) @name body: (_) @body @opaque)] @method)
((method_declaration name: (_) @name !body) @method)
((enum_member_declaration name: (_) @name) @field)
([(property_declaration name: (_) @name accessors: (_) @body) (property_declaration name: (_) @name value: (_) @body)
  (event_declaration name: (_) @name accessors: (_) @body)] @property)
((field_declaration (modifier) @modifier (variable_declaration (variable_declarator name: (_) @name))) @constant (#set! modifier "const"))
((field_declaration (modifier) @first . (modifier) @second (variable_declaration (variable_declarator name: (_) @name))) @constant
  (#set! first "static") (#set! second "readonly"))
([(field_declaration (variable_declaration (variable_declarator name: (_) @name)))
  (event_field_declaration (variable_declaration (variable_declarator name: (_) @name)))] @field)
(lambda_expression body: (_) @opaque)
(comment) @comment
(attribute_list) @mark
