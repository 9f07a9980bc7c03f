"""Entries into a host's settings and out again, as text: every other byte stays.

JSON may have comments and trailing commas, since some hosts read them. `parse` gives nodes that know where they stand, `insert`,
`replace` and `remove` change the text around them. TOML is changed by tomlkit, which keeps what it does not touch; a table of ours is
put at the end. `put_entries` and `take_entries` do it for a whole file, and each checks its own result: without our entries the text
must say what it said before, or nothing is changed.

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
from bethink.text.checks import refuse_constant
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
_HOOK = re.compile(
    r"bethink[\"']?(?:\.exe)?[\"']?\s+hook\s+([a-z-]{1,40})\s+--host\s+([a-z]{1,40})"
)
_PROGRAM = re.compile(r"(?:^|[\\/])bethink(?:\.exe)?$|^bethink[@\[=]")

Path = tuple[str, ...]
Key = tuple[str, Path]  # kind and path of an entry


class HostEntry(NamedTuple):
    kind: str  # member, hook, item, table
    path: Path  # of the member or table itself; of the list that a hook stands in; of an item's list, and the item
    value: Any

    @property
    def key(self) -> Key:
        return self.kind, self.path


class EditResult(NamedTuple):
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
    found = (_HOOK.search(line[-4096:]) for line in command_lines(handler))
    return next(((one[1], one[2]) for one in found if one), None)


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


class Member(NamedTuple):
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
    members: tuple[Member, ...] = ()

    def find_index(self, key: str) -> int | None:
        """The place of a member. Of several with the same name the last counts, as everywhere."""
        places = [at for at, member in enumerate(self.members) if member.key == key]
        return places[-1] if places and isinstance(self.value, dict) else None


_decoder = json.JSONDecoder(parse_constant=refuse_constant)


@lru_cache(maxsize=4)  # an edit parses the same text again and again, and some files have megabytes
def parse(text: str) -> Node:
    """The value of the whole text. Raises InvalidInput that names the line where it is none."""
    node = _parse_value(text, _skip_blank(text, 0), 0)
    if (at := _skip_blank(text, node.end)) != len(text):
        raise _wrong(text, at)
    return node


def is_empty(text: str) -> bool:
    """Whether there is no value at all: nothing, or only blanks and comments."""
    return _skip_blank(text, 0) == len(text)


def read_value(text: str) -> Any:
    """What a JSON text says; an empty one says {}."""
    return {} if is_empty(text) else parse(text).value


def find(text: str, path: Path) -> Node | None:
    node = parse(text)
    for key in path:
        at = node.find_index(key)
        if at is None:
            return None
        node = node.members[at].node
    return node


def _skip_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _wrong(text: str, at: int) -> InvalidInput:
    line, rest = text.count("\n", 0, at) + 1, text[at : at + 20].partition("\n")[0].rstrip()
    what = f"`{rest}` cannot stand there" if rest else "it ends too early"
    return InvalidInput(f"Line {line} is no JSON: {what}.", "Mend that line, then try again.")


def _parse_value(text: str, at: int, depth: int) -> Node:
    if text[at : at + 1] in ("{", "["):
        return _parse_container(text, at, depth + 1)
    try:
        value, end = _decoder.raw_decode(text, at)
    except ValueError:
        raise _wrong(text, at) from None
    return Node(at, end, value)


def _parse_container(text: str, start: int, depth: int) -> Node:
    is_object, close = (text[start] == "{"), ("}" if text[start] == "{" else "]")
    members: list[Member] = []
    at = _skip_blank(text, start + 1)
    while text[at : at + 1] != close:
        if depth > DEEPEST or (members and members[-1].comma is None):
            raise _wrong(text, at)
        begin, key = at, ""
        if is_object:
            name = _parse_value(text, at, depth)
            key, at = name.value, _skip_blank(text, name.end)
            if not isinstance(key, str) or text[at : at + 1] != ":":
                raise _wrong(text, at)
            at = _skip_blank(text, at + 1)
        node = _parse_value(text, at, depth)
        behind = _skip_blank(text, node.end)
        comma = behind if text[behind : behind + 1] == "," else None
        members.append(Member(key, begin, node, comma))
        at = behind if comma is None else _skip_blank(text, comma + 1)
    value = {member.key: member.node.value for member in members}
    plain = value if is_object else [member.node.value for member in members]
    return Node(start, at + 1, plain, tuple(members))


# JSON: writing


class Layout(NamedTuple):
    """How a document is written, so that what is put in looks like the rest."""

    end: str  # of a line
    unit: str  # of indentation
    gap: str  # behind commas and colons
    one_line: bool


def _find_layout(text: str) -> Layout:
    indent = _INDENT.search(text)
    body = text.strip(_SPACE + "\ufeff")
    one_line = "\n" not in body and len(body) > 2
    tight = one_line and re.search(r'":\S', body)
    return Layout(line_end(text), indent[1] if indent else "  ", "" if tight else " ", one_line)


def _write(value: Any, look: Layout, indent: str, inline: bool, key: str | None = None) -> str:
    """A value as text, as a member where it has a key. A list of nothing but words and numbers stays on one line."""
    name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}:{look.gap}"
    pairs = list(value.items()) if isinstance(value, dict) else []
    if isinstance(value, list) and any(isinstance(one, dict | list) for one in value):
        pairs = [(None, one) for one in value]
    if inline or not pairs:
        separators = (f",{look.gap}", f":{look.gap}")
        return name + json.dumps(value, ensure_ascii=False, separators=separators)
    lead = look.end + indent + look.unit
    rows = [_write(one, look, indent + look.unit, False, label) for label, one in pairs]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{name}{opening}{lead}{f',{lead}'.join(rows)}{look.end}{indent}{closing}"


def _line_indent(text: str, at: int) -> str:
    """The blanks at the beginning of the line in which a place is."""
    line = text[text.rfind("\n", 0, at) + 1 : at].lstrip("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


def _is_inline(text: str, node: Node) -> bool:
    return "\n" not in text[node.start : node.members[0].start]


def insert(text: str, node: Node, value: Any, key: str | None = None) -> str:
    """The text with one more member or item at the end of a container."""
    look = _find_layout(text)
    if not node.members:
        return _fill(text, node, value, key, look)
    last, inline = node.members[-1], _is_inline(text, node)
    if inline:
        lead, indent, place = look.gap, "", last.end
    else:
        # Comments that follow on the same line belong to what stands before them.
        indent = _line_indent(text, node.members[0].start)
        lead, place = look.end + indent, _COMMENTS_BEHIND.match(text, last.end).end()  # type: ignore[union-attr]
    piece = lead + _write(value, look, indent, inline, key)
    if last.comma is not None:
        return f"{text[:place]}{piece},{text[place:]}"
    return f"{text[: last.end]},{text[last.end : place]}{piece}{text[place:]}"


def _fill(text: str, node: Node, value: Any, key: str | None, look: Layout) -> str:
    """The text with a first member or item in an empty container."""
    inner = text[node.start + 1 : node.end - 1]
    before = text[text.rfind("\n", 0, node.start) + 1 : node.start].strip(" \t\ufeff")
    alone = not before or _MEMBER_LABEL.fullmatch(before)
    if (look.one_line or not alone) and "\n" not in inner and "//" not in inner:
        piece = inner + _write(value, look, "", True, key)
    else:
        outer = _line_indent(text, node.start)
        written = _write(value, look, outer + look.unit, False, key)
        piece = f"{inner.rstrip(_SPACE)}{look.end}{outer}{look.unit}{written}{look.end}{outer}"
    return text[: node.start + 1] + piece + text[node.end - 1 :]


def replace(text: str, node: Node, index: int, value: Any) -> str:
    """The text with another value in a member or item, written as its neighbours are."""
    member = node.members[index]
    indent = _line_indent(text, member.start)
    piece = _write(value, _find_layout(text), indent, _is_inline(text, node))
    return text[: member.node.start] + piece + text[member.node.end :]


def remove(text: str, node: Node, index: int, inner: str = "") -> str:
    """The text without one member or item. `inner` is what an emptied container held before anything was put into it."""
    member = node.members[index]
    if len(node.members) == 1:
        before, after = text[node.start + 1 : member.start], text[member.end : node.end - 1]
        rest = before.rstrip(_SPACE) + after.rstrip(_SPACE)
        rest = inner if rest.strip() == inner.strip() else before.rstrip(_SPACE) + after
        return text[: node.start + 1] + rest + text[node.end - 1 :]
    start, end = member.start, member.end
    while text[start - 1] in " \t":
        start -= 1
    if text[start - 1] == "\n":
        start -= 2 if text[start - 2] == "\r" else 1
    elif index == 0:
        start = member.start
        end += len(text[end:]) - len(text[end:].lstrip(" \t"))
    # The comma before it goes if nothing follows; comments between stay.
    comma = node.members[index - 1].comma if index else None
    token = node.start + 1 if comma is None else comma + 1
    between = text[token:start]
    if _LAST_IS_LINE_COMMENT.search(between) and text[end : end + 1] not in ("\n", "\r"):
        between += line_end(text)  # or the comment would swallow what follows
    if comma is not None and index == len(node.members) - 1 and member.comma is None:
        token -= 1
    return text[:token] + between + text[end:]


# Entries of a whole file


def put_entries(
    text: str,
    wanted: Sequence[HostEntry],
    host: str,
    mine: Collection[Key] = (),
    force: bool = False,
) -> EditResult:
    """The text with these entries; those that are there are brought up to date, `mine` also where somebody changed them."""
    before, kept = text, []
    keys = [entry.key for entry in wanted if entry.key in mine]
    for entry in wanted:
        put = _put_table if entry.kind == "table" else _put
        longer, reason = put(text, entry, host, force or entry.key in mine)
        if reason:
            kept.append(reason)
            continue
        if longer != text and entry.key not in keys:
            keys.append(entry.key)
        text = longer
    _prove(before, text, [entry.key for entry in wanted], host)
    return EditResult(text, tuple(keys), tuple(kept))


def take_entries(text: str, keys: Collection[Key], host: str, original: str | None) -> str:
    """The text without these entries, and without what was made for them and is empty now. `original` is what the file held
    before, None where that is not known."""
    if not keys or is_empty(text):
        return text
    before = text
    for key in keys:
        take = _take_table if key[0] == "table" else _take
        text = take(text, key, host, original)
    _prove(before, text, keys, host)
    return text


def _container_path(key: Key) -> Path:
    """The path of the list of a hook or an item, or of the object that a member stands in."""
    return key[1] if key[0] == "hook" else key[1][:-1]


def _find_ours(text: str, key: Key, host: str) -> list[tuple[Node, int]]:
    """Where the member of an entry, or our hooks in the list of an event, stand: each as what holds it and its number there."""
    node = find(text, _container_path(key))
    if node is None:
        return []
    if key[0] == "item":
        items = (member.node.value for member in node.members)
        return [(node, at) for at, item in enumerate(items) if item == key[1][-1]]
    if key[0] == "member":
        index = node.find_index(key[1][-1])
        return [] if index is None else [(node, index)]
    found = []
    for at, member in enumerate(node.members):
        inside = member.node.find_index("hooks")
        group = member.node.members[inside].node if inside is not None else None
        if group is not None and isinstance(group.value, list):
            found += [(group, number) for number in range(len(group.members))]
        else:
            found.append((node, at))
    return [(one, at) for one, at in found if _is_hook_of(one.members[at].node.value, host)]


def _put(text: str, entry: HostEntry, host: str, mine: bool) -> tuple[str, str]:
    """The text with an entry, or the reason why it was left alone."""
    above, is_hook = _container_path(entry.key), entry.kind == "hook"
    name = entry.path[-1] if entry.kind == "member" else None
    text = _make_container(text, above, {} if name else [])
    for holder, at in _find_ours(text, entry.key, host)[:1]:
        there, fresh = holder.members[at].node.value, entry.value
        if is_hook:  # the user's own fields stay, in the order of ours
            theirs = {key: value for key, value in there.items() if key not in RUN}
            ours = handlers_of(fresh)[0]
            fresh = {key: theirs.pop(key, value) for key, value in ours.items()} | theirs
        if there == fresh:
            return text, ""
        if not is_hook and not mine:
            return text, _explain_kept(".".join(entry.path), there)
        return replace(text, holder, at, fresh), ""
    node = find(text, above)
    assert node is not None
    return insert(text, node, entry.value, name), ""


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


def _explain_kept(name: str, there: Any) -> str:
    whose = "it starts Bethink too" if is_our_server(there) else "it belongs to something else"
    return f"{name} is there already and was kept: {whose}."


def _take(text: str, key: Key, host: str, original: str | None) -> str:
    above = _container_path(key)
    while found := _find_ours(text, key, host):
        holder, at = found[0]
        if key[0] == "member" and not is_our_server(holder.members[at].node.value):
            return text  # somebody put another there
        if len(holder.members) > 1 or holder.start == _start_of(text, above):
            text = remove(text, holder, at, _inner_of(original, above))
        else:  # a group goes with its only hook: it was made for it, or is of no use without one
            text = _remove_around(text, above, holder.start, original)
    return _remove_empty(text, above, original)


def _start_of(text: str, path: Path) -> int:
    node = find(text, path)
    return -1 if node is None else node.start


def _inner_of(original: str | None, path: Path) -> str:
    """What stood between the brackets of a container before anything was put into it."""
    node = find(original, path) if original and not is_empty(original) else None
    return (original or "")[node.start + 1 : node.end - 1] if node else ""


def _remove_around(text: str, path: Path, place: int, original: str | None) -> str:
    """The text without the member or item of a container in which a place is."""
    node = find(text, path)
    assert node is not None
    around = [member.start <= place < member.node.end for member in node.members]
    return remove(text, node, around.index(True), _inner_of(original, path))


def _remove_empty(text: str, path: Path, original: str | None) -> str:
    """Removes what is empty now and was made for our entries, from the inside out."""
    before = None if original is None else read_value(original)
    while path and (node := find(text, path)) and not node.members:
        was_there = before is not None and value_at(before, path) is not None
        if was_there or text[node.start + 1 : node.end - 1].strip():
            break  # or somebody's comment is in it
        path = path[:-1]
        text = _remove_around(text, path, node.start, original)
    return text


# TOML


def parse_toml(text: str) -> dict[str, Any]:
    """What a document says. Raises InvalidInput where it is no TOML."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"It is no TOML: {error}.", "Mend it, then try again.") from None


def _put_table(text: str, entry: HostEntry, host: str, mine: bool) -> tuple[str, str]:
    import tomlkit

    there, end, name = value_at(parse_toml(text), entry.path), line_end(text), ".".join(entry.path)
    if isinstance(there, dict) and there | entry.value == there:
        return text, ""
    if there is None:
        gap = "" if not text.strip("\ufeff") else end if text.endswith("\n") else end * 2
        table = tomlkit.dumps(entry.value).replace("\n", end)
        return f"{text}{gap}[{name}]{end}{table}", ""
    if not mine or not isinstance(there, dict):
        return text, _explain_kept(name, there)
    document = tomlkit.parse(text.removeprefix("\ufeff"))
    for key, value in entry.value.items():
        if there.get(key) != value:
            value_at(document, entry.path)[key] = value
    return _mark(text) + tomlkit.dumps(document), ""


def _take_table(text: str, key: Key, host: str, original: str | None) -> str:
    import tomlkit

    (*above, name), end = key[1], line_end(text)
    if not is_our_server(value_at(parse_toml(text), key[1])):
        return text
    document = tomlkit.parse(text.removeprefix("\ufeff"))
    del value_at(document, tuple(above))[name]
    rest = _mark(text) + tomlkit.dumps(document)
    if original and rest.strip() == original.strip():
        return original
    # The empty line that was put before the table.
    ours = rest.endswith(end * 2) and not text.endswith(end * 2)
    return rest.removesuffix(end) if ours else rest


def _mark(text: str) -> str:
    """The byte order mark that a text begins with, or nothing."""
    return "\ufeff" if text.startswith("\ufeff") else ""


# Proof


def _cut(value: Any, key: Key, host: str) -> Any:
    """What a document says without our entries and without what is empty then."""
    kind, (name, *rest) = key
    if kind == "item" and isinstance(value, list):
        return [one for one in value if one != name]
    if not isinstance(value, dict) or name not in value:
        return value
    inside = value[name]
    if rest:
        inside = _cut(inside, (kind, tuple(rest)), host)
    elif kind == "hook" and isinstance(inside, list):
        inside = [left for one in inside if (left := _cut_hooks(one, host))]
    else:
        inside = None
    others = {other: one for other, one in value.items() if other != name}
    return others if inside in (None, {}, []) else value | {name: inside}


def _cut_hooks(element: Any, host: str) -> Any:
    handlers = handlers_of(element)
    left = [one for one in handlers if not _is_hook_of(one, host)]
    if len(left) == len(handlers):
        return element
    return element | {"hooks": left} if left else None


def _prove(before: str, after: str, keys: Collection[Key], host: str) -> None:
    if before == after:
        return
    read = parse_toml if any(kind == "table" for kind, _ in keys) else read_value
    was, now = read(before), read(after)
    for key in keys:
        was, now = _cut(was, key, host), _cut(now, key, host)
    if was != now:
        raise InvalidInput(
            "The file would not have said the same afterwards, so it was left alone.",
            "Change the entries by hand.",
        )
