; What Java defines; see python.scm for the captures.

((class_declaration name: (_) @name body: (_) @body) @class)
((interface_declaration name: (_) @name body: (_) @body) @interface)
((enum_declaration name: (_) @name body: (_) @body) @enum)
((record_declaration name: (_) @name body: (_) @body) @record)
((annotation_type_declaration name: (_) @name body: (_) @body) @annotation)
([(method_declaration name: (_) @name body: (_) @body @opaque) (constructor_declaration name: (_) @name body: (_) @body @opaque)
  (compact_constructor_declaration name: (_) @name body: (_) @body @opaque)] @method)
((method_declaration name: (_) @name !body) @method)
([(annotation_type_element_declaration name: (_) @name) (enum_constant name: (_) @name)] @field)
((field_declaration (modifiers) @modifiers declarator: (variable_declarator name: (_) @name)) @constant
  (#set! modifiers "(?s)(?=.*\\bstatic\\b)(?=.*\\bfinal\\b).*"))
((field_declaration declarator: (variable_declarator name: (_) @name)) @field)
((constant_declaration declarator: (variable_declarator name: (_) @name)) @constant)
(lambda_expression body: (_) @opaque)
[(line_comment) (block_comment)] @comment
[(annotation) (marker_annotation)] @mark
