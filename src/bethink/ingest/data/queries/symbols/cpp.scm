; What C++ has beside C, whose query is read before this one.

((class_specifier name: (_) @name body: (_) @body) @class)
((namespace_definition name: (_) @name body: (_) @body) @namespace)
((alias_declaration name: (_) @name) @type)
((concept_definition name: (_) @name) @concept)
((function_definition declarator: (_) @declarator (default_method_clause)) @function (#set! callable "yes"))
((function_definition declarator: (_) @declarator (field_initializer_list) @body) @function (#set! callable "yes"))
((friend_declaration) @opaque)
(lambda_expression body: (_) @opaque)
