; What Ruby defines; see python.scm for the captures.

((module name: (_) @name @until) @module)
((class name: (_) @name superclass: (_) @until) @class)
((class name: (_) @name @until !superclass) @class)
([(method name: (_) @name parameters: (_) @until) (singleton_method name: (_) @name parameters: (_) @until)] @function)
([(method name: (_) @name @until !parameters) (singleton_method name: (_) @name @until !parameters)] @function)
([(method body: (_) @opaque) (singleton_method body: (_) @opaque) (lambda) @opaque])
((assignment left: (constant) @name right: (call method: (_) @maker block: (_) @body)) @class (#set! maker "new|define"))
((assignment left: (constant) @name) @constant)
((call method: (_) @maker arguments: (argument_list (simple_symbol) @name)) @property (#set! maker "attr_reader|attr_accessor|attr_writer|attr"))
((call method: (_) @maker arguments: (argument_list . [(simple_symbol) @name (pair key: (_) @name) (string) @name]) block: (_) @body @opaque) @task
  (#set! maker "task"))
((call method: (_) @maker arguments: (argument_list . (simple_symbol) @name) block: (_) @body) @namespace (#set! maker "namespace"))
(comment) @comment
