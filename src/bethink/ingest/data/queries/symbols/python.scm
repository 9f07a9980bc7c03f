; What Python defines. Captures: the kind of a definition on its node, its name, the body before which its signature ends, `opaque` for
; what is passed over, `doc` for a docstring, `comment` and `mark`. A setting named like a capture is a pattern for its text.

((class_definition name: (identifier) @name body: (block) @body) @class)
((function_definition name: (identifier) @name body: (block) @body @opaque) @function)
(lambda body: (_) @opaque)
; Types that are made by assignment, then constants; annotated names in classes are fields.
((assignment left: (identifier) @name right: (call function: (_) @maker)) @type
  (#set! maker "(?:.*\\.)?(?:NewType|TypeVar|ParamSpec|TypedDict|NamedTuple|namedtuple|Enum)") (#set! name "(?!__).*"))
((assignment left: (identifier) @name right: [(subscript) (binary_operator)]) @type
  (#set! name "_*(?=[A-Z])\\w*[a-z]\\w*") (#set! within "top"))
((assignment left: (identifier) @name) @constant (#set! name "_{0,2}[A-Z][A-Z0-9_]*"))
((assignment left: (identifier) @name type: (_)) @field (#set! name "(?!__).*") (#set! within "type"))
((type_alias_statement left: (type (identifier) @name)) @type)
((type_alias_statement left: (type (generic_type (identifier) @name))) @type)
(block . (comment)* . (expression_statement . (string) @doc))
(module . (comment)* . (expression_statement . (string) @doc))
(comment) @comment
(decorator) @mark
