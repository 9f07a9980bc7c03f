"""Entries into a host's settings and out again, as text: every other byte stays.

JSON may have comments and trailing commas, since some hosts read them. `parse` gives nodes that know where they stand, `insert`
and `remove` change the text around them. An entry of a TOML file is a table at its end. `put_entries` and `take_entries` do it for
a whole file, and each checks its own result: without our entries the text must say what it said before, or nothing is changed.

What is there and is ours is brought up to date in place; what is somebody else's is never touched. This module knows no host and
touches no file.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from bethink.errors import InvalidInput
from bethink.text.textfile import line_end

SERVER = "bethink"  # the name under which the MCP server is registered
PROMPT_TOOL = "bethink_prompt"  # the MCP tool that answers a prompt hook
DEEPEST = 150  # levels of JSON; a settings file has about ten

# The fields of a hook that say what is run. The others, such as its time limit, are the user's to change.
COMMANDS = ("command", "bash", "powershell", "commandWindows", "exec")
RUN = ("type", "args", "server", "tool", "input", *COMMANDS)

_BLANK = re.compile(r"(?:[ \t\r\n\f\ufeff]+|//[^\n\r]*|/\*(?:[^*]|\*(?!/))*(?:\*/|\Z))*")
_COMMENTS_BEHIND = re.compile(r"(?:[ \t]*(?:/\*(?:[^*\r\n]|\*(?!/))*\*/|//[^\r\n]*))*")
_LAST_IS_LINE_COMMENT = re.compile(r"//[^\n\r]*$")
_INDENT = re.compile(r'^([ \t]+)["\[{]', re.MULTILINE)
_MEMBER_LABEL = re.compile(r'"(?:[^"\\]|\\.)*"[ \t]*:')
_SPACE = " \t\r\n"
_decoder = json.JSONDecoder()
_HOOK = re.compile(
    r"bethink[\"']?(?:\.exe)?[\"']?\s+hook\s+([a-z-]{1,40})\s+--host\s+([a-z]{1,40})"
)
_PROGRAM = re.compile(r"(?:^|[\\/])bethink(?:\.exe)?$|^bethink[@\[=]")

Path = tuple[str, ...]
Key = tuple[str, Path]  # kind and path of an entry


class Entry(NamedTuple):
    kind: str  # member, hook, table
    path: Path  # of the member or table itself; of the list that a hook stands in
    value: Any

    @property
    def key(self) -> Key:
        return self.kind, self.path


class Edited(NamedTuple):
    text: str
    keys: tuple[Key, ...]  # of the entries that are ours now
    kept: tuple[str, ...] = ()  # sentences about what was in the way


# What is ours


def hook_of(handler: Any) -> tuple[str, str] | None:
    """The event and the host of a hook that runs Bethink, or nothing."""
    if not isinstance(handler, dict):
        return None
    if handler.get("type") == "mcp_tool" and handler.get("tool") == PROMPT_TOOL:
        return "prompt", "claude"
    for line in command_lines(handler):
        if found := _HOOK.search(line[-4096:]):
            return found[1], found[2]
    return None


def command_lines(handler: dict[str, Any]) -> list[str]:
    """The command lines of a hook, whatever the host calls them."""
    commands = [handler[key] for key in COMMANDS if handler.get(key)]
    return [" ".join([*_words(one), *_words(handler.get("args"))]) for one in commands]


def server_words(server: Any) -> tuple[str, ...]:
    """What starts a registered MCP server."""
    fields = server if isinstance(server, dict) else {}
    return (*_words(fields.get("command")), *_words(fields.get("args")))


def is_our_server(server: Any) -> bool:
    """Whether a registered MCP server is Bethink, by whatever command it is started."""
    words = server_words(server)
    return "mcp" in words and any(map(_PROGRAM.search, words[:6]))


def handlers_of(element: Any) -> list[Any]:
    """The hooks in an element of an event's list: in some hosts it is the hook, in others a group of them."""
    inside = element.get("hooks") if isinstance(element, dict) else None
    return inside if isinstance(inside, list) else [element]


def value_at(value: Any, path: Path) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _words(value: Any) -> list[str]:
    return list(map(str, value)) if isinstance(value, list) else [str(value)] if value else []


def _is_hook_of(handler: Any, host: str) -> bool:
    return (hook_of(handler) or ("", ""))[1] == host


# JSON: reading


class Part(NamedTuple):
    """A member of an object, or an item of an array (whose key is '')."""

    key: str
    start: int  # of the key, or of the item
    node: Node
    comma: int | None  # where the comma behind it stands

    @property
    def end(self) -> int:
        return self.node.end if self.comma is None else self.comma + 1


class Node(NamedTuple):
    start: int
    end: int
    value: Any
    parts: tuple[Part, ...] = ()

    def place_of(self, key: str) -> int | None:
        """The place of a member. Of several with the same name the last counts, as everywhere."""
        places = [at for at, part in enumerate(self.parts) if part.key == key]
        return places[-1] if places and isinstance(self.value, dict) else None


@lru_cache(maxsize=4)  # an edit parses the same text again and again, and some files have megabytes
def parse(text: str) -> Node:
    """The value of the whole text. Raises InvalidInput that names the line where it is none."""
    node = _parse_value(text, _blank(text, 0), 0)
    if (at := _blank(text, node.end)) != len(text):
        raise _wrong(text, at, "something follows the end of the value")
    return node


def is_empty(text: str) -> bool:
    """Whether there is no value at all: nothing, or only blanks and comments."""
    return _blank(text, 0) == len(text)


def read_value(text: str) -> Any:
    """What a JSON text says; an empty one says {}."""
    return {} if is_empty(text) else parse(text).value


def find(text: str, path: Path) -> Node | None:
    node = parse(text)
    for key in path:
        at = node.place_of(key)
        if at is None:
            return None
        node = node.parts[at].node
    return node


def _blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _wrong(text: str, at: int, what: str) -> InvalidInput:
    line = text.count("\n", 0, at) + 1
    return InvalidInput(f"Line {line} is no JSON: {what}.", "Mend that line, then try again.")


def _parse_value(text: str, at: int, depth: int) -> Node:
    mark = text[at : at + 1]
    if depth > DEEPEST:
        raise _wrong(text, at, f"more than {DEEPEST} levels")
    if mark in ("{", "["):
        return _parse_container(text, at, depth)
    if not mark or mark not in '"-0123456789tfn' or text.startswith("-I", at):
        raise _wrong(text, at, "a value is missing" if mark else "it ends too early")
    return _parse_scalar(text, at)


def _parse_scalar(text: str, at: int) -> Node:
    try:
        value, end = _decoder.raw_decode(text, at)
    except ValueError:
        raise _wrong(text, at, "a word, a number or a string is not whole") from None
    return Node(at, end, value)


def _parse_container(text: str, start: int, depth: int) -> Node:
    is_object, close = (text[start] == "{"), ("}" if text[start] == "{" else "]")
    parts: list[Part] = []
    at = _blank(text, start + 1)
    while text[at : at + 1] != close:
        if parts and parts[-1].comma is None:
            raise _wrong(text, at, "a comma or the end is missing")
        begin, key = at, ""
        if is_object:
            if text[at : at + 1] != '"':
                raise _wrong(text, at, "a string in double quotes is missing")
            name = _parse_scalar(text, at)
            key, at = name.value, _blank(text, name.end)
            if text[at : at + 1] != ":":
                raise _wrong(text, at, "a colon is missing")
            at = _blank(text, at + 1)
        node = _parse_value(text, at, depth + 1)
        behind = _blank(text, node.end)
        comma = behind if text[behind : behind + 1] == "," else None
        parts.append(Part(key, begin, node, comma))
        at = behind if comma is None else _blank(text, comma + 1)
    value = {part.key: part.node.value for part in parts}
    plain = value if is_object else [part.node.value for part in parts]
    return Node(start, at + 1, plain, tuple(parts))


# JSON: writing


class Layout(NamedTuple):
    """How a document is written, so that what is put in looks like the rest."""

    end: str  # of a line
    unit: str  # of indentation
    gap: str  # behind commas and colons
    one_line: bool


def _layout(text: str) -> Layout:
    indent = _INDENT.search(text)
    body = text.strip(_SPACE + "\ufeff")
    one_line = "\n" not in body and len(body) > 2
    tight = one_line and re.search(r'":\S', body)
    return Layout(line_end(text), indent[1] if indent else "  ", "" if tight else " ", one_line)


def _write(value: Any, look: Layout, indent: str, inline: bool) -> str:
    """A value as text. A list of nothing but words and numbers stays on one line."""
    children = list(value.values() if isinstance(value, dict) else value) if _nests(value) else []
    if inline or not children or (isinstance(value, list) and not any(map(_nests, children))):
        return json.dumps(value, ensure_ascii=False, separators=(f",{look.gap}", f":{look.gap}"))
    deeper = indent + look.unit
    rows = [_write(one, look, deeper, False) for one in children]
    if isinstance(value, dict):
        names = (json.dumps(key, ensure_ascii=False) for key in value)
        rows = [f"{name}: {row}" for name, row in zip(names, rows, strict=True)]
    lead, (opening, closing) = look.end + deeper, "{}" if isinstance(value, dict) else "[]"
    return f"{opening}{lead}{f',{lead}'.join(rows)}{look.end}{indent}{closing}"


def _nests(value: Any) -> bool:
    return isinstance(value, dict | list)


def _write_part(node: Node, key: str, value: Any, look: Layout, indent: str, inline: bool) -> str:
    """A member or an item as text."""
    text = _write(value, look, indent, inline)
    name = f"{json.dumps(key, ensure_ascii=False)}:{look.gap}"
    return name + text if isinstance(node.value, dict) else text


def _line_indent(text: str, at: int) -> str:
    """The blanks at the beginning of the line in which a place is."""
    line = text[text.rfind("\n", 0, at) + 1 : at].lstrip("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


def _is_inline(text: str, node: Node) -> bool:
    return "\n" not in text[node.start : node.parts[0].start]


def insert(text: str, node: Node, value: Any, key: str = "") -> str:
    """The text with one more member or item at the end of a container."""
    look = _layout(text)
    if not node.parts:
        return _fill(text, node, value, key, look)
    last = node.parts[-1]
    if _is_inline(text, node):
        lead, indent, place = look.gap, "", last.end
    else:
        # Comments that follow on the same line belong to what stands before them.
        indent = _line_indent(text, node.parts[0].start)
        lead, place = look.end + indent, _COMMENTS_BEHIND.match(text, last.end).end()  # type: ignore[union-attr]
    piece = lead + _write_part(node, key, value, look, indent, _is_inline(text, node))
    if last.comma is not None:
        return f"{text[:place]}{piece},{text[place:]}"
    return f"{text[: last.end]},{text[last.end : place]}{piece}{text[place:]}"


def _fill(text: str, node: Node, value: Any, key: str, look: Layout) -> str:
    """The text with a first member or item in an empty container."""
    inner = text[node.start + 1 : node.end - 1]
    before = text[text.rfind("\n", 0, node.start) + 1 : node.start].strip(" \t\ufeff")
    alone = not before or _MEMBER_LABEL.fullmatch(before)
    if (look.one_line or not alone) and "\n" not in inner and "//" not in inner:
        piece = inner + _write_part(node, key, value, look, "", True)
    else:
        outer = _line_indent(text, node.start)
        indent = outer + look.unit
        written = _write_part(node, key, value, look, indent, False)
        piece = f"{inner.rstrip(_SPACE)}{look.end}{indent}{written}{look.end}{outer}"
    return text[: node.start + 1] + piece + text[node.end - 1 :]


def replace(text: str, node: Node, index: int, value: Any) -> str:
    """The text with another value in a member or item, written as its neighbours are."""
    part = node.parts[index]
    indent = _line_indent(text, part.start)
    piece = _write(value, _layout(text), indent, _is_inline(text, node))
    return text[: part.node.start] + piece + text[part.node.end :]


def remove(text: str, node: Node, index: int, inner: str = "") -> str:
    """The text without one member or item. `inner` is what an emptied container held before anything was put into it."""
    part = node.parts[index]
    if len(node.parts) == 1:
        before, after = text[node.start + 1 : part.start], text[part.end : node.end - 1]
        rest = before.rstrip(_SPACE) + after.rstrip(_SPACE)
        rest = inner if rest.strip() == inner.strip() else before.rstrip(_SPACE) + after
        return text[: node.start + 1] + rest + text[node.end - 1 :]
    start, end = part.start, part.end
    while text[start - 1] in " \t":
        start -= 1
    if text[start - 1] == "\n":
        start -= 2 if text[start - 2] == "\r" else 1
    elif index == 0:
        start = part.start
        end += len(text[end:]) - len(text[end:].lstrip(" \t"))
    # The comma before it goes if nothing follows; comments between stay.
    comma = node.parts[index - 1].comma if index else None
    token = node.start + 1 if comma is None else comma + 1
    between = text[token:start]
    if _LAST_IS_LINE_COMMENT.search(between) and text[end : end + 1] not in ("\n", "\r"):
        between += line_end(text)  # or the comment would swallow what follows
    if comma is not None and index == len(node.parts) - 1 and part.comma is None:
        token -= 1
    return text[:token] + between + text[end:]


# Putting in


def put_entries(
    text: str, wanted: Sequence[Entry], host: str, mine: Collection[Key] = (), force: bool = False
) -> Edited:
    """The text with these entries; those that are there are brought up to date, `mine` also where somebody changed them."""
    before, kept = text, []
    keys = [entry.key for entry in wanted if entry.key in mine]
    for entry in wanted:
        longer, reason = _PUTTERS[entry.kind](text, entry, host, force or entry.key in mine)
        if reason:
            kept.append(reason)
        elif longer != text and entry.key not in keys:
            keys.append(entry.key)
        text = longer if not reason else text
    _prove(before, text, [entry.key for entry in wanted], host)
    return Edited(text, tuple(keys), tuple(kept))


def _make_container(text: str, path: Path, empty: Any) -> str:
    """The text in which there is such an object or list, made with all that leads to it."""
    if is_empty(text):
        end = line_end(text)
        text += ("" if not text.strip(_SPACE) or text.endswith("\n") else end) + "{}" + end
    for length in range(len(path) + 1):
        here, kind = path[:length], empty if length == len(path) else {}
        node = find(text, here)
        if node is None:
            above = find(text, here[:-1])
            assert above is not None
            text = insert(text, above, kind, here[-1])
        elif type(node.value) is not type(kind):
            found, needed = type(node.value).__name__, "an object" if kind == {} else "a list"
            raise InvalidInput(
                f"{'.'.join(here) or 'The file'} is of type {found}, where {needed} is needed.",
                "Mend it by hand, then try again.",
            )
    return text


def _put_member(text: str, entry: Entry, host: str, mine: bool) -> tuple[str, str]:
    *above, key = entry.path
    text = _make_container(text, tuple(above), {})
    node = find(text, tuple(above))
    assert node is not None
    at = node.place_of(key)
    if at is None:
        return insert(text, node, entry.value, key), ""
    there = node.parts[at].node.value
    if there == entry.value:
        return text, ""
    if mine:
        return replace(text, node, at, entry.value), ""
    return text, _tell_kept(".".join(entry.path), there)


def _tell_kept(name: str, there: Any) -> str:
    whose = "it starts Bethink too" if is_our_server(there) else "it belongs to something else"
    return f"{name} is there already and was kept: {whose}."


def _put_hook(text: str, entry: Entry, host: str, mine: bool) -> tuple[str, str]:
    text = _make_container(text, entry.path, [])
    node = find(text, entry.path)
    assert node is not None
    for holder, at in _find_handlers(node, host):
        there, fresh = holder.parts[at].node.value, handlers_of(entry.value)[0]
        # The user's own fields stay, in the order of ours.
        theirs = {key: value for key, value in there.items() if key not in RUN}
        updated = {key: theirs.pop(key, value) for key, value in fresh.items()} | theirs
        return (text if updated == there else replace(text, holder, at, updated)), ""
    return insert(text, node, entry.value), ""


def _find_handlers(node: Node, host: str) -> list[tuple[Node, int]]:
    """Our hooks in an event's list, each as the list that holds it and its number there."""
    found = []
    for at, part in enumerate(node.parts):
        inside = part.node.place_of("hooks")
        group = part.node.parts[inside].node if inside is not None else None
        if group is not None and isinstance(group.value, list):
            found += [(group, number) for number in range(len(group.parts))]
        else:
            found.append((node, at))
    return [(one, at) for one, at in found if _is_hook_of(one.parts[at].node.value, host)]


# Taking out


def take_entries(text: str, keys: Collection[Key], host: str, original: str | None) -> str:
    """The text without these entries, and without what was made for them and is empty now. `original` is what the file held
    before, None where that is not known."""
    before = text
    if not keys or is_empty(text):
        return text
    for kind, path in keys:
        if kind == "table":
            text = _take_table(text, path, original)
        elif kind == "hook":
            text = _take_hooks(text, path, host, original)
        elif is_our_server(value_at(parse(text).value, path)):  # or somebody put another there
            text = _take_member(text, path, original)
    _prove(before, text, keys, host)
    return text


def _take_member(text: str, path: Path, original: str | None) -> str:
    node = find(text, path[:-1])
    at = node.place_of(path[-1]) if node else None
    if node is None or at is None:
        return text
    return _tidy(_remove_at(text, path[:-1], at, original), path[:-1], original)


def _remove_at(text: str, path: Path, index: int, original: str | None) -> str:
    node = find(text, path)
    was = find(original, path) if original and not is_empty(original) else None
    assert node is not None
    return remove(text, node, index, (original or "")[was.start + 1 : was.end - 1] if was else "")


def _take_hooks(text: str, path: Path, host: str, original: str | None) -> str:
    while (node := find(text, path)) and (found := _find_handlers(node, host)):
        holder, at = found[0]
        if holder is not node and len(holder.parts) > 1:
            text = remove(text, holder, at)
            continue
        # A group goes with its only hook: it was made for it, or is of no use without one.
        whole = [part.node.start <= holder.start < part.node.end for part in node.parts]
        text = _remove_at(text, path, at if holder is node else whole.index(True), original)
    return _tidy(text, path, original)


def _tidy(text: str, path: Path, original: str | None) -> str:
    """Removes what is empty now and was made for our entries, from the inside out."""
    before = None if original is None else read_value(original)
    while path and (node := find(text, path)) and not node.parts:
        if before is not None and value_at(before, path) is not None:
            break
        if text[node.start + 1 : node.end - 1].strip():
            break  # somebody's comment is in it
        above = find(text, path[:-1])
        at = above.place_of(path[-1]) if above else None
        if at is None:
            break
        text, path = _remove_at(text, path[:-1], at, original), path[:-1]
    return text


# TOML


def parse_toml(text: str) -> dict[str, Any]:
    """What a document says. Raises InvalidInput where it is no TOML."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"It is no TOML: {error}.", "Mend it, then try again.") from None


def write_toml(values: dict[str, Any], end: str) -> str:
    """Key and value of strings and lists of strings, a line each. Those are the same in TOML as in JSON."""
    rows = (
        f"{key} = {json.dumps(value, ensure_ascii=False)}{end}" for key, value in values.items()
    )
    return "".join(rows).replace("\x7f", "\\u007f")


def _put_table(text: str, entry: Entry, host: str, mine: bool) -> tuple[str, str]:
    there, end = value_at(parse_toml(text), entry.path), line_end(text)
    name = f"[{'.'.join(entry.path)}]"
    if isinstance(there, dict) and there | entry.value == there:
        return text, ""
    if there is None:
        gap = "" if not text.strip("\ufeff") else end if text.endswith("\n") else end * 2
        return f"{text}{gap}{name}{end}{write_toml(entry.value, end)}", ""
    if not mine:
        return text, _tell_kept(name, there)
    for start, stop in reversed(_find_tables(text, entry.path)):
        head, *rows = text[start:stop].splitlines(keepends=True)
        if head.strip() != name:
            continue
        own = tuple(f"{key} =" for key in entry.value)
        rest = "".join(row for row in rows if not row.startswith(own))
        return f"{text[:start]}{head}{write_toml(entry.value, end)}{rest}{text[stop:]}", ""
    return text, f"{name} is not written as a table of its own; it was kept."


def _find_tables(text: str, path: Path) -> list[tuple[int, int]]:
    """Where a table and the tables inside it stand. What only looks like one inside of a string is found too: the proof tells."""
    headers = list(re.finditer(r"^\[.*$", text, re.MULTILINE))
    ends = [*(one.start() for one in headers[1:]), len(text)]
    name = ".".join(path)
    found = []
    for header, end in zip(headers, ends, strict=True):
        if header[0].startswith((f"[{name}]", f"[{name}.")):
            body = text[header.start() : end].rstrip(_SPACE)
            found.append(
                (header.start(), min(end, header.start() + len(body) + len(line_end(text))))
            )
    return found


def _take_table(text: str, path: Path, original: str | None) -> str:
    known, end = parse_toml(text), line_end(text)
    for start, stop in reversed(_find_tables(text, path)):
        lead, rest = text[:start], text[stop:]
        if original and not rest.strip() and lead.rstrip(_SPACE) == original.rstrip(_SPACE):
            lead, rest = original, ""
        elif not lead.strip() or lead.endswith(end * 2):
            lead = lead.removesuffix(end)  # the empty line that was put before the table
        if _says_the_same(known, lead + rest, path):
            text = lead + rest
    return text


def _says_the_same(known: dict[str, Any], text: str, path: Path) -> bool:
    key = ("table", path)
    try:
        return bool(_without(known, [key], "") == _without(parse_toml(text), [key], ""))
    except InvalidInput:
        return False


# Proof


def _without(value: Any, keys: Collection[Key], host: str) -> Any:
    """What a document says without our entries and without what is empty then."""
    for kind, path in keys:
        value = _cut(value, kind, path, host)
    return value


def _cut(value: Any, kind: str, path: Path, host: str) -> Any:
    key, rest = path[0], path[1:]
    if not isinstance(value, dict) or key not in value:
        return value
    inside = value[key]
    if rest:
        inside = _cut(inside, kind, rest, host)
    elif kind == "hook" and isinstance(inside, list):
        inside = [left for one in inside if (left := _without_hooks(one, host))]
    else:
        inside = None
    others = {name: one for name, one in value.items() if name != key}
    return others if inside in (None, {}, []) else value | {key: inside}


def _without_hooks(element: Any, host: str) -> Any:
    handlers = handlers_of(element)
    left = [one for one in handlers if not _is_hook_of(one, host)]
    if len(left) == len(handlers):
        return element
    return element | {"hooks": left} if left else None


def _prove(before: str, after: str, keys: Collection[Key], host: str) -> None:
    read = parse_toml if any(kind == "table" for kind, _ in keys) else read_value
    if _without(read(before), keys, host) != _without(read(after), keys, host):
        raise InvalidInput(
            "The file would not have said the same afterwards, so it was left alone.",
            "Change the entries by hand.",
        )


_PUTTERS = {"member": _put_member, "hook": _put_hook, "table": _put_table}
