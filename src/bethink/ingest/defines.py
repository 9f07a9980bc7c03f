"""Syntax node → the symbols it defines, where a name in the grammar's table does not say it all.

A C declarator is dug through for its name, a Go method belongs to its receiver's type, a JavaScript constant may hold a
function, a Ruby call may define an attribute. This module sees syntax nodes and the source they stand in; it knows
neither comments nor signatures nor the walk that brings it the nodes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from bethink.ingest.languages import Rule

if TYPE_CHECKING:
    from tree_sitter import Node

READ = 1_000  # bytes in which a name ends
CONSTANT = re.compile(r"_{0,2}[A-Z][A-Z0-9_]*")
_GUARD = re.compile(r"_(?:H|HH|HPP|H_INCLUDED|INCLUDED)_{0,3}$")
_ARGUMENTS = re.compile(r"<[^<>]*>|\[[^\[\]]*\]")
_FUNCTIONS = frozenset(("arrow_function", "function_expression", "generator_function", "function"))
_CALLERS = frozenset(
    "map filter reduce forEach find findIndex some every flatMap sort from then catch finally setTimeout setInterval on once".split()
)
_EXPORTS = frozenset(
    ("exports", "module.exports", "module", "this", "window", "self", "globalThis", "root")
)
_DECLARATORS = frozenset(
    ("parenthesized_declarator", "reference_declarator", "attributed_declarator")
)
_TYPE_MAKERS = frozenset(
    ("NewType", "TypeVar", "ParamSpec", "TypedDict", "NamedTuple", "namedtuple", "Enum")
)
_PLACES = {"", "namespace"}  # what module-level code stands in


class Scope(NamedTuple):
    """What encloses the nodes being looked at."""

    parent: str = ""
    depth: int = 0
    inside: str = ""  # "", namespace, type, function or object
    exported: bool = False


class Defined(NamedTuple):
    """A symbol that a node defines. Without a name it is none, but what it encloses is looked at."""

    name: str
    kind: str
    node: Node
    end: int  # where the signature ends
    parent: str | None = None  # for those that belong elsewhere than where they stand
    inner: Node | None = None  # what holds its members
    inside: str = "type"
    tail: str = ""  # what the signature ends with


def defined(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    """What one node defines, several for `int a, b;`."""
    return DEFINERS[rule.by](node, rule, scope, source)


def plain(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    """A node that says its name in one place and is what the table says it is."""
    kind = "method" if rule.kind == "function" and scope.inside == "type" else rule.kind
    kind = "function" if kind == "method" and not scope.parent else kind
    body = node.child_by_field_name(rule.body) if rule.body else None
    end = body.start_byte if body else node.end_byte
    for name in names(node, rule.name, source):
        inside = "namespace" if kind in ("namespace", "module") else "type"
        yield Defined(name, kind, node, end, inner=node if rule.members else None, inside=inside)


def names(node: Node, steps: str, source: bytes) -> list[str]:
    found = [node]
    for step in steps.split(".") if steps else ():
        if step == "~":
            found = [
                leaf
                for each in found
                for part in each.children_by_field_name("declarator")
                if (leaf := _declared(part))
            ]
        else:
            found = [
                part
                for each in found
                for part in each.children_by_field_name(step)
                or [child for child in each.named_children if child.type == step]
            ]
    return [name for each in found if (name := text(each, source).strip("'\"`:$ "))]


def text(node: Node | None, source: bytes) -> str:
    """The beginning of a node's source, on one line. `Node.text` would ask the callback, whose patience may be over."""
    if node is None:
        return ""
    return " ".join(
        source[node.start_byte : min(node.end_byte, node.start_byte + READ)]
        .decode("utf-8", "replace")
        .split()
    )


def bare(name: str) -> str:
    """A type's name without its arguments: `Cache[K, V]` → Cache, `Foo<T<U>>` → Foo."""
    for _ in range(8):
        shorter = _ARGUMENTS.sub("", name)
        if shorter == name:
            break
        name = shorter
    return name.strip("*& ")


def _declared(node: Node) -> Node | None:
    """The identifier within a C declarator."""
    for _ in range(64):  # deeper ones are nobody's code
        inner = node.child_by_field_name("declarator")
        if inner is None and node.type in _DECLARATORS:
            inner = next(iter(node.named_children), None)
        if inner is None or node.type == "operator_cast":
            return node
        node = inner
    return None


def _is_function(node: Node) -> bool:
    """Whether a C declarator declares a function, and not a pointer to one."""
    for _ in range(64):
        below = node.child_by_field_name("declarator")
        if below is None and node.type in _DECLARATORS:
            below = next(iter(node.named_children), None)
        if node.type == "operator_cast" or (
            node.type == "function_declarator"
            and (below is None or below.type != "parenthesized_declarator")
        ):
            return True
        if below is None:
            return False
        node = below
    return False


def _python_assignment(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    name = text(left, source)
    if left is None or left.type != "identifier" or name.startswith("__"):
        return
    if scope.inside == "type":
        if CONSTANT.fullmatch(name) or node.child_by_field_name("type"):
            yield Defined(
                name, "constant" if CONSTANT.fullmatch(name) else "field", node, node.end_byte
            )
        return
    made = (
        text(right.child_by_field_name("function"), source).rpartition(".")[2]
        if right and right.type == "call"
        else ""
    )
    if made in _TYPE_MAKERS or (
        right
        and right.type in ("subscript", "binary_operator")
        and name.lstrip("_")[:1].isupper()
        and not CONSTANT.fullmatch(name)
    ):
        yield Defined(name, "type", node, node.end_byte)
    elif CONSTANT.fullmatch(name):
        yield Defined(name, "constant", node, node.end_byte)


def _python_type(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    for found in plain(node, rule, scope, source):
        yield found._replace(name=bare(found.name))


def _script_variable(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    """`const x = …`: a function, a class, an object with functions, or a constant."""
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if name is None or name.type != "identifier":
        return
    yield from _script_value(text(name, source), value, node, scope, source)


def _script_value(
    name: str,
    value: Node | None,
    node: Node,
    scope: Scope,
    source: bytes,
    parent: str | None = None,
    exported: bool = False,
) -> Iterator[Defined]:
    function = _function_in(value, source)
    if function is not None:
        body = function.child_by_field_name("body")
        inner = (
            body if body and body.type == "statement_block" and scope.inside in _PLACES else None
        )
        kind = (
            "method"
            if parent or (scope.inside in ("type", "object") and scope.parent)
            else "function"
        )
        yield Defined(
            name, kind, node, body.start_byte if body else node.end_byte, parent, inner, "function"
        )
    elif value is not None and value.type == "class":
        body = value.child_by_field_name("body")
        yield Defined(
            name, "class", node, body.start_byte if body else node.end_byte, parent, value
        )
    elif scope.inside in _PLACES and (exported or CONSTANT.fullmatch(name) or scope.exported):
        inner = _object_in(value, source)
        yield Defined(
            name,
            "constant",
            node,
            inner.start_byte if inner else node.end_byte,
            parent,
            inner,
            "object",
        )


def _function_in(value: Node | None, source: bytes) -> Node | None:
    """The function that a value is, or that a wrapper such as `memo(…)` is given first. What `items.map(…)` is given is no definition."""
    if value is not None and value.type == "call_expression":
        arguments, callee = (
            value.child_by_field_name("arguments"),
            text(value.child_by_field_name("function"), source),
        )
        value = (
            next(iter(arguments.named_children), None)
            if arguments and callee.rpartition(".")[2] not in _CALLERS
            else None
        )
    return value if value is not None and value.type in _FUNCTIONS else None


def _object_in(value: Node | None, source: bytes) -> Node | None:
    """An object with functions in it."""
    while value is not None and value.type in (
        "as_expression",
        "satisfies_expression",
        "parenthesized_expression",
    ):
        value = next(iter(value.named_children), None)
    if value is None or value.type != "object":
        return None
    holds = any(
        child.type == "method_definition"
        or (child.type == "pair" and _function_in(child.child_by_field_name("value"), source))
        for child in value.named_children
    )
    return value if holds else None


def _script_member(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    """A field of a class, or a pair of an object: a method where it holds a function."""
    name = next(iter(names(node, rule.name, source)), "")
    value = node.child_by_field_name("value")
    if _function_in(value, source):
        yield from _script_value(name, value, node, scope, source)
    elif node.type != "pair":
        yield Defined(
            name, "constant" if CONSTANT.fullmatch(name) else "field", node, node.end_byte
        )
    elif _object_in(value, source):
        yield Defined("", "", node, 0, inner=value, inside="object")


def _script_function(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    """Closures of a module's own functions count too, those within them no more."""
    for found in plain(node, rule, scope, source):
        closures = node.child_by_field_name("body") if scope.inside in _PLACES else None
        yield found._replace(inner=closures, inside="function")


def _script_expression(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    """CommonJS exports, methods set on a prototype, and modules that are wrapped in a function."""
    if scope.inside not in _PLACES:
        return
    if node.type == "call_expression":
        yield from _script_module(node, source)
        return
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    for _ in range(8):  # exports = module.exports = …
        if left is None or right is None or right.type != "assignment_expression":
            break
        left = left if left.type == "member_expression" else right.child_by_field_name("left")
        right = right.child_by_field_name("right")
    if left is None or right is None or left.type != "member_expression":
        return
    whole = text(left, source)
    owner, name = (
        text(left.child_by_field_name(field), source) for field in ("object", "property")
    )
    if whole == "module.exports":
        if right.type == "object":
            yield Defined("", "", node, 0, inner=right, inside="object")
            return
        name = text(right.child_by_field_name("name"), source) or whole
    parent = None if owner in _EXPORTS else owner.removesuffix(".prototype")
    if right.type not in (
        "identifier",
        "member_expression",
        "unary_expression",
        "call_expression",
    ) or _function_in(right, source):
        yield from _script_value(
            name,
            right,
            node,
            scope,
            source,
            parent,
            exported=parent is None and owner not in ("this", "module"),
        )


def _script_module(call: Node, source: bytes) -> Iterator[Defined]:
    callee, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
    wrapped = [
        child
        for child in (
            callee.named_children if callee and callee.type == "parenthesized_expression" else ()
        )
        if child.type in _FUNCTIONS
    ]
    if (wrapped or text(callee, source) in ("define", "$", "jQuery")) and arguments:
        wrapped += [child for child in arguments.named_children if child.type in _FUNCTIONS]
    for function in wrapped:
        body = function.child_by_field_name("body")
        if body is not None and body.type == "statement_block":
            yield Defined("", "", call, 0, inner=body, inside="")


def _enum_member(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    if scope.inside == "type":  # elsewhere it is the name of something else
        yield Defined(text(node, source), "field", node, node.end_byte)


def _go_type(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    type = node.child_by_field_name("type")
    kinds = {"struct_type": "struct", "interface_type": "interface"}
    kind = kinds.get(type.type, "type") if type else "type"
    brace = (
        next(
            (
                child.start_byte
                for child in type.children
                if child.type in ("{", "field_declaration_list")
            ),
            None,
        )
        if type and kind != "type"
        else None
    )
    for name in names(node, rule.name, source):
        yield Defined(
            name, kind, node, brace or node.end_byte, inner=node if kind != "type" else None
        )


def _go_method(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    receiver = node.child_by_field_name("receiver")
    types = names(receiver, "parameter_declaration.type", source) if receiver else []
    for found in plain(node, rule, scope, source):
        yield found._replace(kind="method", parent=bare(types[0]) if types else None)


def _go_value(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    for found in plain(node, rule, scope, source):
        if found.name[:1].isupper():
            yield found


def _rust_impl(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    type = bare(text(node.child_by_field_name("type"), source)).rpartition("::")[2]
    yield Defined("", "", node, 0, parent=type, inner=node)


def _rust_type(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    """The fields of a tuple struct belong to its signature."""
    body = node.child_by_field_name("body")
    for found in plain(node, rule, scope, source):
        yield (
            found._replace(end=node.end_byte)
            if body and body.type == "ordered_field_declaration_list"
            else found
        )


def _rust_macro(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    for found in plain(node, rule, scope, source):
        name = node.child_by_field_name("name")
        yield found._replace(end=name.end_byte if name else found.end)


def _java_field(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    modifiers = text(
        next((child for child in node.named_children if child.type == "modifiers"), None), source
    ).split()
    fixed = "const" in modifiers or {"static", "final"} <= set(modifiers)
    for found in plain(node, rule, scope, source):
        yield found._replace(kind="constant") if fixed else found


def _c_sharp_field(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    modifiers = {text(child, source) for child in node.named_children if child.type == "modifier"}
    for found in plain(node, rule, scope, source):
        yield (
            found._replace(kind="constant")
            if "const" in modifiers or {"static", "readonly"} <= modifiers
            else found
        )


def _c_sharp_property(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    value = node.child_by_field_name("value")
    for found in plain(node, rule, scope, source):
        yield found._replace(end=min(found.end, value.start_byte) if value else found.end)


def _c_declaration(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    """Prototypes, members and globals. A global counts when others can see it or it never changes."""
    type = node.child_by_field_name("type")
    if type is not None and type.child_by_field_name("body"):
        yield from _c_type(type, rule, scope, source)
    words = {
        text(child, source)
        for child in node.named_children
        if child.type in ("storage_class_specifier", "type_qualifier")
    }
    for part in node.children_by_field_name("declarator"):
        leaf = _declared(part)
        if leaf is None:
            continue
        owner, name = _qualified(leaf, source)
        if _is_function(part):
            yield Defined(
                name,
                "method" if scope.inside == "type" or owner else "function",
                node,
                node.end_byte,
                owner,
            )
        elif scope.inside == "type":
            yield Defined(name, "field", node, node.end_byte)
        elif words & {"const", "constexpr", "extern"} or CONSTANT.fullmatch(name):
            yield Defined(
                name,
                "constant" if words & {"const", "constexpr"} else "variable",
                node,
                node.end_byte,
                owner,
            )


def _c_function(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    declarator = node.child_by_field_name("declarator")
    leaf = _declared(declarator) if declarator else None
    if leaf is None or declarator is None or not _is_function(declarator):
        return
    owner, name = _qualified(leaf, source)
    initial = next(
        (
            child.start_byte
            for child in node.named_children
            if child.type == "field_initializer_list"
        ),
        None,
    )
    body = node.child_by_field_name("body")
    end = initial or (body.start_byte if body else node.end_byte)
    yield Defined(
        name, "method" if owner or scope.inside == "type" else "function", node, end, owner
    )


def _qualified(leaf: Node, source: bytes) -> tuple[str | None, str]:
    """`Solver::Inner::solve` → its owner and its own name."""
    if leaf.type == "operator_cast":
        return None, "operator " + text(leaf.child_by_field_name("type"), source)
    owner, _, name = (
        bare(text(leaf, source)).rpartition("::")
        if leaf.type == "qualified_identifier"
        else ("", "", text(leaf, source))
    )
    return owner or None, name


def _c_type(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    """A struct, class, union or enum that is defined here and not only named."""
    body, name = (
        node.child_by_field_name("body"),
        bare(text(node.child_by_field_name("name"), source)),
    )
    if body is None:
        return
    kinds = {
        "struct_specifier": "struct",
        "union_specifier": "union",
        "enum_specifier": "enum",
        "class_specifier": "class",
    }
    yield Defined(name, kinds.get(node.type, rule.kind), node, body.start_byte, inner=node)


def _c_typedef(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    type = node.child_by_field_name("type")
    body = type.child_by_field_name("body") if type else None
    for at, name in enumerate(names(node, "~", source)):
        if type is not None and body is not None and at == 0:
            yield from (
                found._replace(name=name, node=node, tail=f" {name}")
                for found in _c_type(type, rule, scope, source)
            )
        elif body is not None:
            yield Defined(name, "type", node, body.start_byte, tail=f" {name}")
        else:
            yield Defined(name, "type", node, node.end_byte)


def _c_namespace(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    named = list(plain(node, rule, scope, source))
    yield from named
    if not named:
        yield Defined("", "", node, 0, inner=node, inside=scope.inside)


def _c_macro(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    value = node.child_by_field_name("value")
    if value is None or _GUARD.search(
        text(node.child_by_field_name("name"), source)
    ):  # a switch, an include guard
        return
    for found in plain(node, rule, scope, source):
        yield found._replace(
            end=value.start_byte if node.type == "preproc_function_def" else value.end_byte
        )


def _ruby_assignment(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is None or left.type != "constant":
        return
    block = right.child_by_field_name("block") if right else None
    made = (
        right is not None
        and right.type == "call"
        and text(right.child_by_field_name("method"), source) in ("new", "define")
    )
    if block is not None and made:
        yield Defined(text(left, source), "class", node, block.start_byte, inner=right)
    else:
        yield Defined(text(left, source), "constant", node, node.end_byte)


def _ruby_call(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    """Attributes, Rake tasks, `private def …`, and blocks in which a class goes on."""
    method, arguments, block = (
        text(node.child_by_field_name("method"), source),
        node.child_by_field_name("arguments"),
        node.child_by_field_name("block"),
    )
    if method in ("attr_reader", "attr_accessor", "attr_writer", "attr"):
        yield from (
            Defined(name, "property", node, node.end_byte)
            for name in names(node, rule.name, source)
        )
    elif method == "task" and arguments:
        named = (
            names(arguments, "simple_symbol", source)[:1]
            or names(arguments, "pair.key", source)[:1]
            or names(arguments, "string", source)[:1]
        )
        yield from (
            Defined(name, "task", node, block.start_byte if block else node.end_byte)
            for name in named
        )
    elif method in ("included", "class_methods", "new", "define") and block:
        yield Defined("", "", node, 0, inner=block)
    elif method == "namespace" and block:
        yield from (
            Defined(name, "namespace", node, block.start_byte, inner=block, inside="namespace")
            for name in names(node, rule.name, source)
        )
    elif (
        method in ("private", "protected", "public", "module_function", "private_class_method")
        and arguments
    ):
        yield Defined("", "", node, 0, inner=arguments)


def _ruby_method(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    last = node.child_by_field_name("parameters") or node.child_by_field_name("name")
    kind = "method" if scope.inside == "type" else "function"
    for name in names(node, rule.name, source):
        yield Defined(name, kind, node, last.end_byte if last else node.end_byte)


def _ruby_type(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    last = node.child_by_field_name("superclass") or node.child_by_field_name("name")
    for found in plain(node, rule, scope, source):
        yield found._replace(end=last.end_byte if last else found.end, inside="type")


def _php_call(node: Node, rule: Rule, scope: Scope, source: bytes) -> Iterator[Defined]:
    if text(node.child_by_field_name("function"), source) == "define":
        for name in names(node, "arguments.argument.string", source)[:1]:
            yield Defined(name, "constant", node, node.end_byte)


DEFINERS: dict[str, Callable[[Node, Rule, Scope, bytes], Iterator[Defined]]] = {
    "": plain,
    "python assignment": _python_assignment,
    "python type": _python_type,
    "script variable": _script_variable,
    "script member": _script_member,
    "script function": _script_function,
    "script expression": _script_expression,
    "enum member": _enum_member,
    "go type": _go_type,
    "go method": _go_method,
    "go value": _go_value,
    "rust impl": _rust_impl,
    "rust type": _rust_type,
    "rust macro": _rust_macro,
    "java field": _java_field,
    "c# field": _c_sharp_field,
    "c# property": _c_sharp_property,
    "c declaration": _c_declaration,
    "c function": _c_function,
    "c type": _c_type,
    "c typedef": _c_typedef,
    "c namespace": _c_namespace,
    "c macro": _c_macro,
    "ruby assignment": _ruby_assignment,
    "ruby call": _ruby_call,
    "ruby method": _ruby_method,
    "ruby type": _ruby_type,
    "php call": _php_call,
}
