; What Rust defines; see python.scm for the captures. An `impl` lends its type's name to what stands in it.

((struct_item name: (_) @name body: (field_declaration_list) @body) @struct)
((struct_item name: (_) @name) @struct)
((enum_item name: (_) @name body: (_) @body) @enum)
((union_item name: (_) @name body: (_) @body) @union)
((trait_item name: (_) @name body: (_) @body) @trait)
((mod_item name: (_) @name body: (_) @body) @module)
((mod_item name: (_) @name !body) @module)
((impl_item type: (_) @name body: (_) @body) @scope)
((function_item name: (_) @name body: (_) @body @opaque) @function)
((function_signature_item name: (_) @name) @function)
(closure_expression body: (_) @opaque)
([(const_item name: (_) @name) (static_item name: (_) @name)] @constant)
([(type_item name: (_) @name) (associated_type name: (_) @name)] @type)
([(field_declaration name: (_) @name) (enum_variant name: (_) @name)] @field)
(enum_variant body: (_) @opaque)
((macro_definition name: (_) @name @until) @macro)
[(line_comment) (block_comment)] @comment
(attribute_item) @mark
