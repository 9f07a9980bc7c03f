"""JSON with comments, edited in place: members and items are put in, exchanged and taken out as text, and every other byte stays.

`parse` gives nodes that know where they stand. The editing functions return the new text; what was put in and is taken out again
leaves what was there before. Comments and trailing commas are accepted everywhere, as the hosts' own readers do. This module
knows no host and no file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from bethink.errors import InvalidInput

DEEPEST = 150  # levels; a settings file has about ten

_BLANK = re.compile(r"(?:[ \t\r\n\f]+|//[^\n\r]*|/\*(?:[^*]|\*(?!/))*(?:\*/|\Z))*", re.DOTALL)
_BLANKS = re.compile(r"[ \t\r\n\f]+|//[^\n\r]*|/\*(?:[^*]|\*(?!/))*(?:\*/|\Z)", re.DOTALL)
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"true|false|null")
_SAME_LINE = re.compile(r"(?:[ \t]*(?:/\*[^\r\n]*?\*/|//[^\r\n]*))+")
_INDENT = re.compile(r'^([ \t]+)["\[{]', re.MULTILINE)
_LABEL = re.compile(r'"(?:[^"\\]|\\.)*"[ \t]*:')
_BOM = "\ufeff"


class Part(NamedTuple):
    """A member of an object, or an item of an array (whose key is '')."""

    key: str
    start: int  # of the key, or of the item
    node: Node
    comma: int | None  # where the comma behind it stands


class Node(NamedTuple):
    kind: str  # object, array, string, number, word
    start: int
    end: int
    parts: tuple[Part, ...] = ()
    value: Any = None  # of what is neither object nor array; a number keeps its spelling

    def member(self, key: str) -> Part | None:
        """The member of that name. Of several the last counts, as everywhere."""
        return (
            next((part for part in reversed(self.parts) if part.key == key), None)
            if self.kind == "object"
            else None
        )


class Number(str):
    """A number as it is written: 1.0 and 1 are not the same, and 1e400 is no infinity."""

    __slots__ = ()


@lru_cache(
    maxsize=4
)  # an edit asks for the same text again and again, and some files of hosts have megabytes
def parse(text: str) -> Node:
    """The value of the whole text. Raises InvalidInput that names the line where it is none."""
    at = _blank(text, 1 if text.startswith(_BOM) else 0)
    node, at = _value(text, at, 0)
    at = _blank(text, at)
    if at != len(text):
        raise _wrong(text, at, "something follows the end of the value")
    return node


def empty(text: str) -> bool:
    """Whether there is no value at all: nothing, or only blanks and comments."""
    return _blank(text, 1 if text.startswith(_BOM) else 0) == len(text)


def meaning(node: Node) -> Any:
    """What a node says, in a form that can be compared: order, doubled keys and the spelling of numbers count, layout does not."""
    if node.kind == "object":
        return ("object", *((part.key, meaning(part.node)) for part in node.parts))
    if node.kind == "array":
        return ("array", *(meaning(part.node) for part in node.parts))
    return node.value


def plain(node: Node) -> Any:
    """The value as Python has it."""
    if node.kind == "object":
        return {part.key: plain(part.node) for part in node.parts}
    if node.kind == "array":
        return [plain(part.node) for part in node.parts]
    if isinstance(node.value, Number):
        number = str(node.value)
        return (
            float(number)
            if any(mark in number for mark in ".eE") or len(number) > 400
            else int(number)
        )
    return node.value


def find(node: Node, path: tuple[str, ...]) -> Node | None:
    for key in path:
        part = node.member(key)
        if part is None:
            return None
        node = part.node
    return node


# Reading


def _blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _wrong(text: str, at: int, what: str) -> InvalidInput:
    line = text.count("\n", 0, at) + 1
    return InvalidInput(f"Line {line} is no JSON: {what}.", "Mend that line, then try again.")


def _value(text: str, at: int, depth: int) -> tuple[Node, int]:
    mark = text[at : at + 1]
    if depth > DEEPEST:
        raise _wrong(text, at, f"more than {DEEPEST} levels")
    if mark in ("{", "["):
        return _container(text, at, depth)
    if mark == '"':
        value, end = _string(text, at)
        return Node("string", at, end, value=value), end
    if found := _NUMBER.match(text, at):
        return Node("number", at, found.end(), value=Number(found.group())), found.end()
    if found := _WORD.match(text, at):
        value_of = {"true": True, "false": False, "null": None}
        return Node("word", at, found.end(), value=value_of[found.group()]), found.end()
    raise _wrong(text, at, "a value is missing" if at < len(text) else "it ends too early")


def _string(text: str, at: int) -> tuple[str, int]:
    found = _STRING.match(text, at)
    if not found:
        raise _wrong(text, at, "a string in double quotes is missing")
    written = found.group()
    return (str(json.loads(written)) if "\\" in written else written[1:-1]), found.end()


def _container(text: str, start: int, depth: int) -> tuple[Node, int]:
    kind, close = ("object", "}") if text[start] == "{" else ("array", "]")
    parts: list[Part] = []
    at = _blank(text, start + 1)
    while text[at : at + 1] != close:
        if parts and parts[-1].comma is None:
            raise _wrong(text, at, "a comma or the end is missing")
        begin, key = at, ""
        if kind == "object":
            key, at = _string(text, at)
            at = _blank(text, at)
            if text[at : at + 1] != ":":
                raise _wrong(text, at, "a colon is missing")
            at = _blank(text, at + 1)
        node, at = _value(text, at, depth + 1)
        behind = _blank(text, at)
        comma = behind if text[behind : behind + 1] == "," else None
        parts.append(Part(key, begin, node, comma))
        at = behind if comma is None else _blank(text, comma + 1)
    return Node(kind, start, at + 1, tuple(parts)), at + 1


# Layout


class Layout(NamedTuple):
    """How a document is written, so that what is put in looks like the rest."""

    end: str  # of a line
    unit: str  # of indentation
    wide: bool  # whether a blank follows commas and colons
    single: bool  # whether the whole document stands on one line


def layout(text: str) -> Layout:
    at = text.find("\n")
    end = "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"
    found = _INDENT.search(text)
    body = text.strip(" \t\r\n" + _BOM)
    single = "\n" not in body and len(body) > 2
    return Layout(
        end, found.group(1) if found else "  ", not (single and re.search(r'":\S', body)), single
    )


def written(value: Any, look: Layout, indent: str, inline: bool) -> str:
    """A value as text. A list of nothing but words and numbers stays on one line."""
    if (
        inline
        or not isinstance(value, dict | list)
        or not value
        or (isinstance(value, list) and not any(isinstance(one, dict | list) for one in value))
    ):
        return json.dumps(
            value, ensure_ascii=False, separators=(", ", ": ") if look.wide else (",", ":")
        )
    deeper = indent + look.unit
    lead = look.end + deeper
    if isinstance(value, dict):
        rows = [
            f"{json.dumps(key, ensure_ascii=False)}: {written(one, look, deeper, False)}"
            for key, one in value.items()
        ]
        return "{" + lead + ("," + lead).join(rows) + look.end + indent + "}"
    return (
        "["
        + lead
        + ("," + lead).join(written(one, look, deeper, False) for one in value)
        + look.end
        + indent
        + "]"
    )


def _piece(container: Node, key: str, value: Any, look: Layout, indent: str, inline: bool) -> str:
    """A member or an item as text. Halves of characters cannot be written, so they stay escaped."""
    text = written(value, look, indent, inline)
    if container.kind == "object":
        text = f"{json.dumps(key, ensure_ascii=False)}:{' ' if look.wide else ''}{text}"
    return "".join(f"\\u{ord(mark):04x}" if "\ud800" <= mark <= "\udfff" else mark for mark in text)


def _line_indent(text: str, at: int) -> str:
    """The blanks at the beginning of the line in which a place is."""
    start = text.rfind("\n", 0, at) + 1
    found = re.match(r"[ \t]*", text[start:at].lstrip(_BOM))
    return found.group() if found else ""


# Editing


def insert(text: str, container: Node, value: Any, key: str = "") -> str:
    """The text with one more member or item at the end of a container."""
    look = layout(text)
    if not container.parts:
        return _fill(text, container, value, key, look)
    first, last = container.parts[0], container.parts[-1]
    inline = "\n" not in text[container.start + 1 : first.start]
    trailing = last.comma is not None
    if inline:
        piece = _piece(container, key, value, look, "", True)
        gap = " " if look.wide else ""
        if trailing and last.comma is not None:
            return f"{text[: last.comma + 1]}{gap}{piece},{text[last.comma + 1 :]}"
        return f"{text[: last.node.end]},{gap}{piece}{text[last.node.end :]}"
    indent = text[text.rfind("\n", 0, first.start) + 1 : first.start]
    if indent.strip(" \t"):  # a comment stands before the first member
        indent = _line_indent(text, first.start)
    piece = look.end + indent + _piece(container, key, value, look, indent, False)
    if trailing and last.comma is not None:
        place = _after_comments(text, last.comma + 1)
        return f"{text[:place]}{piece},{text[place:]}"
    place = _after_comments(text, last.node.end)
    return f"{text[: last.node.end]},{text[last.node.end : place]}{piece}{text[place:]}"


def _after_comments(text: str, at: int) -> int:
    """Behind the comments that follow on the same line: they belong to what stands before them."""
    found = _SAME_LINE.match(text, at)
    return found.end() if found else at


def _fill(text: str, container: Node, value: Any, key: str, look: Layout) -> str:
    inner = text[container.start + 1 : container.end - 1]
    prefix = text[text.rfind("\n", 0, container.start) + 1 : container.start].strip(" \t" + _BOM)
    alone = not prefix or _LABEL.fullmatch(
        prefix
    )  # otherwise more stands on its line, and it is written like that
    if (look.single or not alone) and "\n" not in inner and "//" not in inner:
        return (
            text[: container.end - 1]
            + _piece(container, key, value, look, "", True)
            + text[container.end - 1 :]
        )
    outer = _line_indent(text, container.start)
    indent = outer + look.unit
    piece = (
        look.end + indent + _piece(container, key, value, look, indent, False) + look.end + outer
    )
    return text[: container.start + 1] + inner.rstrip(" \t\r\n") + piece + text[container.end - 1 :]


def replace(text: str, container: Node, part: Part, value: Any) -> str:
    """The text with another value in a member or item, written as its neighbours are."""
    look = layout(text)
    inline = "\n" not in text[container.start + 1 : container.parts[0].start]
    piece = written(value, look, _line_indent(text, part.start), inline)
    return text[: part.node.start] + piece + text[part.node.end :]


def remove(text: str, container: Node, index: int, inner: str | None = None) -> str:
    """The text without one member or item. `inner` is what stood between the brackets before anything was put in there."""
    part = container.parts[index]
    if len(container.parts) == 1:
        return _emptied(text, container, part, inner)
    last = index == len(container.parts) - 1
    end = part.node.end if part.comma is None else part.comma + 1
    start = part.start
    while text[start - 1] in " \t":
        start -= 1
    if text[start - 1] == "\n":
        start -= 2 if text[start - 2] == "\r" else 1
    elif index == 0:
        start = part.start
        while text[end : end + 1] in (" ", "\t"):
            end += 1
    comma = container.parts[index - 1].comma if index else None
    token = container.start + 1 if comma is None else comma + 1  # behind what stands before it
    lead, tail = text[token:start], text[end:]
    blanks = _BLANKS.findall(lead)
    if blanks and blanks[-1].startswith("//") and tail[:1] not in ("\n", "\r"):
        lead += layout(text).end  # or the comment before it would swallow what follows
    if last and comma is not None and part.comma is None:
        token -= 1
    return text[:token] + lead + tail


def _emptied(text: str, container: Node, part: Part, inner: str | None) -> str:
    end = part.node.end if part.comma is None else part.comma + 1
    before, after = text[container.start + 1 : part.start], text[end : container.end - 1]
    rest = before.rstrip(" \t\r\n") + after.rstrip(" \t\r\n")
    if inner is not None and rest.strip() == inner.strip():
        rest = inner
    elif rest:
        rest = before.rstrip(" \t\r\n") + after
    return text[: container.start + 1] + rest + text[container.end - 1 :]


def walk(node: Node) -> Iterator[Node]:
    """A node and everything inside it."""
    yield node
    for part in node.parts:
        yield from walk(part.node)
