; What C defines; see python.scm for the captures. Globals count when others can see them or they never change; include guards do not.

((struct_specifier name: (_) @name body: (_) @body) @struct)
((union_specifier name: (_) @name body: (_) @body) @union)
((enum_specifier name: (_) @name body: (_) @body) @enum)
((type_definition type: [(struct_specifier !name body: (_) @body) (union_specifier !name body: (_) @body) (enum_specifier !name body: (_) @body)]
  declarator: (_) @name) @struct (#set! tail "yes"))
((type_definition declarator: (_) @declarator) @type)
((function_definition declarator: (_) @declarator body: (_) @body @opaque) @function (#set! callable "yes"))
((declaration declarator: (_) @declarator) @function (#set! callable "yes"))
((declaration (type_qualifier) @qualifier declarator: (_) @declarator) @constant (#set! qualifier "const(?:expr)?") (#set! callable "no"))
((declaration (storage_class_specifier) @storage declarator: (_) @declarator) @variable (#set! storage "extern") (#set! callable "no"))
((declaration declarator: (_) @declarator) @variable (#set! callable "no") (#set! named "_{0,2}[A-Z][A-Z0-9_]*"))
((field_declaration declarator: (_) @declarator) @method (#set! callable "yes"))
((field_declaration declarator: (_) @declarator) @field (#set! callable "no"))
((enumerator name: (_) @name) @field)
((preproc_def name: (_) @name value: (_) @until) @macro (#set! name "(?!.*_(?:H|HH|HPP|H_INCLUDED|INCLUDED)_{0,3}$).*"))
((preproc_function_def name: (_) @name value: (_) @body) @macro)
(comment) @comment
