; What JavaScript and TypeScript define; see python.scm for the captures.

((class_declaration name: (_) @name body: (_) @body) @class)
([(function_declaration name: (_) @name body: (_) @body @opaque) (generator_function_declaration name: (_) @name body: (_) @body @opaque)] @function)
((method_definition name: (_) @name body: (_) @body @opaque) @method)
([(arrow_function body: (_) @opaque) (function_expression body: (_) @opaque) (generator_function body: (_) @opaque)])
(arguments (object) @opaque)
; const add = (a, b) => …, const Row = memo(() => …), const Router = class { … }
((variable_declarator name: (identifier) @name value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @function)
((variable_declarator name: (identifier) @name
  value: (call_expression function: (_) @maker arguments: (arguments . [(arrow_function body: (_) @body) (function_expression body: (_) @body)]))) @function
  (#set! maker "(?!(?:.*\\.)?(?:map|filter|reduce|forEach|find|findIndex|some|every|flatMap|sort|from|then|catch|finally|setTimeout|setInterval|on|once)$).*"))
((variable_declarator name: (identifier) @name value: (class body: (_) @body)) @class)
; What is exported, and what is written in capitals
(export_statement (_ (variable_declarator name: (identifier) @name
  value: (object [(method_definition) (pair value: [(arrow_function) (function_expression)])]) @body) @constant) (#set! within "top"))
(export_statement (_ (variable_declarator name: (identifier) @name) @constant) (#set! within "top"))
((variable_declarator name: (identifier) @name value: (object [(method_definition) (pair value: [(arrow_function) (function_expression)])]) @body) @constant
  (#set! within "top") (#set! name "_{0,2}[A-Z][A-Z0-9_]*"))
((variable_declarator name: (identifier) @name) @constant (#set! within "top") (#set! name "_{0,2}[A-Z][A-Z0-9_]*"))
; Members of objects
((pair key: (_) @name value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @method)
; exports.health = function () { … }, Router.prototype.reset = function () { … }, module.exports = class Cart { … }
((assignment_expression left: (member_expression object: (_) @owner property: (_) @name)
  right: [(function_expression body: (_) @body) (arrow_function body: (_) @body)]) @function
  (#set! owner "exports|module\\.exports|this|window|self|globalThis|root") (#set! within "top") (#set! owned "no"))
((assignment_expression left: (member_expression object: (_) @owner property: (_) @name)
  right: [(function_expression body: (_) @body) (arrow_function body: (_) @body)]) @method
  (#set! owner "(?!module$)[\\w$.]+") (#set! within "top"))
((assignment_expression left: (member_expression) @left right: (class name: (_) @name body: (_) @body)) @class (#set! left "module\\.exports"))
((assignment_expression left: (member_expression) @left right: (function_expression name: (_) @name body: (_) @body)) @function (#set! left "module\\.exports"))
((assignment_expression left: (member_expression object: (_) @owner property: (_) @name) right: (object)) @constant
  (#set! owner "exports|window|self|globalThis") (#set! within "top") (#set! owned "no"))
; Modules that are wrapped in a function
(call_expression function: (parenthesized_expression (function_expression body: (_) @open)))
((call_expression function: (_) @maker arguments: (arguments (function_expression body: (_) @open))) (#set! maker "define|\\$|jQuery"))
(comment) @comment
(decorator) @mark
