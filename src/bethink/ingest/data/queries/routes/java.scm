; Spring: @RequestMapping on a class is the prefix of its methods. A setting named like a capture is a pattern for its text.

((class_declaration (modifiers (annotation name: (identifier) @verb arguments: (annotation_argument_list) @args))) @scope
  (#set! role "scope") (#set! verb "RequestMapping"))
((class_declaration name: (identifier) @owner body: (class_body (method_declaration
  (modifiers [(annotation name: (identifier) @verb arguments: (annotation_argument_list) @args) (marker_annotation name: (identifier) @verb)] @place)
  name: (identifier) @handler)))
  (#set! role "route") (#set! verb "(?:Request|Get|Post|Put|Patch|Delete)Mapping"))
