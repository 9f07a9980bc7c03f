"""Entries into a host's settings and out again, as text: every other byte stays.

What a file is to say is worked out on its plain value; then `rewrite_json` changes the text in as few places as make it say that, and
`rewrite_toml` lets tomlkit do it, which keeps what it does not touch. JSON may have comments and trailing commas, since some hosts read
them. Each result is read back: a text that would not say what it should is refused, and the file stays as it was.

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
MOST_STEPS = 1000  # changes of one text; an installation makes about thirty

# The fields of a hook that say what is run. The others, such as its time limit, are the user's to change.
COMMANDS = ("command", "bash", "powershell", "commandWindows", "exec")
RUN = ("type", "args", "server", "tool", "input", *COMMANDS)

# Comments, with strings first, since what looks like a comment in one is none. Each pattern goes on to the end of the text where its own
# end is missing, so that the time is linear.
_COMMENTS = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|//[^\n\r]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_LAST_COMMAS = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|[\[{]\s*,|,(?=\s*[}\]])')
_INK = re.compile(r"\S")
_BLANK = re.compile(r"\s*")
_COMMENTS_BEHIND = re.compile(r"(?:[ \t]*(?:/\*(?:[^*\r\n]|\*(?!/))*\*/|//[^\r\n]*))*")
_LAST_IS_LINE_COMMENT = re.compile(r"//[^\n\r]*$")
_INDENT = re.compile(r'^([ \t]+)["\[{]', re.MULTILINE)
_LIST_OF_WORDS = re.compile(r"\[\n([^\[\]{}]*+)\]")
_HOOK = re.compile(
    r"bethink[\"']?(?:\.exe)?[\"']?\s+hook\s+([a-z-]{1,40})\s+--host\s+([a-z]{1,40})"
)
_PROGRAM = re.compile(r"(?:^|[\\/])bethink(?:\.exe)?$|^bethink[@\[=]")

Path = tuple[str | int, ...]
Key = tuple[str, tuple[str, ...]]  # kind and path of an entry


class HostEntry(NamedTuple):
    kind: str  # member, hook, item; table for a member in TOML
    path: tuple[
        str, ...
    ]  # of the member; of the list that a hook stands in; of an item's list, and the item
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


# Reading


def is_empty(text: str) -> bool:
    """Whether there is no JSON value at all: nothing, or only blanks and comments."""
    return not _blank_out(text)[0].strip()


def read_value(text: str) -> Any:
    """What a JSON text says; an empty one says {}. Raises InvalidInput that names the line where it says nothing."""
    if is_empty(text):
        return {}
    try:
        return json.loads(_blank_out(text)[1], parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        line, why = getattr(error, "lineno", 1), getattr(error, "msg", error)
        raise InvalidInput(
            f"Line {line} is no JSON: {why}.", "Mend that line, then try again."
        ) from None


def parse_toml(text: str) -> dict[str, Any]:
    """What a document says. Raises InvalidInput where it is no TOML."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"It is no TOML: {error}.", "Mend it, then try again.") from None


@lru_cache(maxsize=4)  # an edit reads the same text again and again, and some files have megabytes
def _blank_out(text: str) -> tuple[str, str]:
    """The text without its comments, then also without trailing commas: blanks stand for them, so that all else stays in its place."""

    def blank(found: re.Match[str]) -> str:
        piece = found[0]
        ended = piece.startswith(("//", ",")) or (piece.endswith("*/") and len(piece) > 3)
        return _INK.sub(" ", piece) if ended and piece[0] in "/," else piece

    plain = _COMMENTS.sub(blank, text.replace("\ufeff", " ", 1) if text[:1] == "\ufeff" else text)
    return plain, _LAST_COMMAS.sub(blank, plain)


class Member(NamedTuple):
    """A member of an object, or an item of an array, whose key is its number."""

    key: str | int
    start: int  # of the key, or of the item
    value: int  # where its value starts
    end: int
    comma: int | None  # where the comma behind it stands

    @property
    def behind(self) -> int:
        return self.end if self.comma is None else self.comma + 1


def _find(text: str, path: Path) -> tuple[int, int, list[Member]]:
    """The object or array at a path: where it opens and closes, and what is in it."""
    commas, plain = _blank_out(text)
    start = _skip(plain, 0)
    for key in path:
        start = [one.value for one in _list_members(commas, plain, start) if one.key == key][-1]
    members = _list_members(commas, plain, start)
    return start, _skip(plain, members[-1].behind if members else start + 1), members


def _list_members(commas: str, plain: str, start: int) -> list[Member]:
    found: list[Member] = []
    at = _skip(plain, start + 1)
    while plain[at] not in "}]":
        begin, key = at, len(found)
        if plain[start] == "{":
            key, at = _decode(plain, at)
            at = _skip(plain, _skip(plain, at) + 1)
        end = _decode(plain, at)[1]
        behind = _skip(commas, end)
        comma = behind if commas[behind] == "," else None
        found.append(Member(key, begin, at, end, comma))
        at = _skip(plain, found[-1].behind)
    return found


_decode = json.JSONDecoder().raw_decode


def _skip(text: str, at: int) -> int:
    return _BLANK.match(text, at).end()  # type: ignore[union-attr]


def _inner(text: str, path: Path) -> str:
    """What stands between the brackets of an object or array, '' where there is none."""
    if is_empty(text) or not isinstance(value_at(read_value(text), path), dict | list):
        return ""
    start, close, _ = _find(text, path)
    return text[start + 1 : close]


# Writing


def rewrite_json(text: str, value: Any, original: str = "") -> str:
    """The text, changed in as few places as make it say this. What is emptied looks again as it did in `original`."""
    if is_empty(text):
        end = line_end(text)
        text += ("" if not text.strip() or text.endswith("\n") else end) + "{}" + end
    for _ in range(MOST_STEPS):
        was = read_value(text)
        if was == value:
            return text
        text = _change_once(text, (), was, value, original)
    raise InvalidInput(
        "The file would not have said the same afterwards, so it was left alone.",
        "Change the entries by hand.",
    )


def _change_once(text: str, path: Path, was: Any, value: Any, original: str) -> str:
    """The text with the first difference between what it says and what it should say taken out of it."""
    if isinstance(was, dict) and isinstance(value, dict):
        for key in was:
            if key not in value:
                return _remove(text, path, key, original)
        for key, one in value.items():
            if key not in was:
                return _insert(text, path, one, key)
            if was[key] != one:
                return _change_once(text, (*path, key), was[key], one, original)
    if not (isinstance(was, list) and isinstance(value, list)):
        return _replace(text, path, value)
    for at, (old, new) in enumerate(zip(was, value, strict=False)):
        if old != new and len(was) > len(value):
            return _remove(text, path, at, original)
        if old != new:
            return _change_once(text, (*path, at), old, new, original)
    if len(was) > len(value):
        return _remove(text, path, len(value), original)
    return _insert(text, path, value[len(was)])


def _write(value: Any, indent: str | None, unit: str, end: str) -> str:
    """A value on one line, or with an indent over several; a list of nothing but words and numbers stays on one line."""
    if indent is None:
        return json.dumps(value, ensure_ascii=False)
    text = json.dumps(value, ensure_ascii=False, indent=unit)
    text = _LIST_OF_WORDS.sub(_put_on_one_line, text)
    return text.replace("\n", end + indent)


def _put_on_one_line(found: re.Match[str]) -> str:
    lines = found[1].split("\n")
    if lines[-1].strip():
        return found[0]  # the bracket stands in a text
    return "[" + " ".join(line.strip() for line in lines[:-1]) + "]"


def _line_indent(text: str, at: int) -> str:
    """The blanks at the beginning of the line in which a place is."""
    line = text[text.rfind("\n", 0, at) + 1 : at].lstrip("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


def _find_unit(text: str) -> str:
    found = _INDENT.search(text)
    return found[1] if found else "  "


def _insert(text: str, path: Path, value: Any, key: str | None = None) -> str:
    """The text with one more member or item at the end of an object or array."""
    start, close, members = _find(text, path)
    unit, end, inner = _find_unit(text), line_end(text), text[start + 1 : close]
    label = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
    if not members:
        outer = _line_indent(text, start)
        lead = f"{end}{outer}{unit}{label}"
        written = _write(value, outer + unit, unit, end)
        return f"{text[: start + 1]}{inner.rstrip()}{lead}{written}{end}{outer}{text[close:]}"
    last, indent, lead, place = members[-1], None, " ", members[-1].behind
    if "\n" in text[start : members[0].start]:
        indent = _line_indent(text, members[0].start)
        # Comments that follow on the same line belong to what stands before them.
        lead, place = end + indent, _COMMENTS_BEHIND.match(text, place).end()  # type: ignore[union-attr]
    piece = lead + label + _write(value, indent, unit, end)
    if last.comma is not None:
        return f"{text[:place]}{piece},{text[place:]}"
    return f"{text[: last.end]},{text[last.end : place]}{piece}{text[place:]}"


def _replace(text: str, path: Path, value: Any) -> str:
    """The text with another value, on one line or several as the old one was."""
    member = [one for one in _find(text, path[:-1])[2] if one.key == path[-1]][-1]
    spread = "\n" in text[member.value : member.end]
    indent = _line_indent(text, member.start) if spread else None
    written = _write(value, indent, _find_unit(text), line_end(text))
    return text[: member.value] + written + text[member.end :]


def _remove(text: str, path: Path, key: str | int, original: str) -> str:
    """The text without a member or item; of several with the same name the last, which is the one that counts."""
    opening, close, members = _find(text, path)
    index = max(at for at, one in enumerate(members) if one.key == key)
    member = members[index]
    start, end = member.start, member.behind
    if len(members) == 1:
        before, after, inner = text[opening + 1 : start], text[end:close], _inner(original, path)
        same = (before.rstrip() + after.rstrip()).strip() == inner.strip()
        return text[: opening + 1] + (inner if same else before.rstrip() + after) + text[close:]
    while text[start - 1] in " \t":
        start -= 1
    if text[start - 1] == "\n":
        start -= 2 if text[start - 2] == "\r" else 1
    elif index == 0:
        start = member.start
        end += len(text[end:]) - len(text[end:].lstrip(" \t"))
    # The comma before it goes if nothing follows; comments between stay.
    comma = members[index - 1].comma if index else None
    token = opening + 1 if comma is None else comma + 1
    between = text[token:start]
    if _LAST_IS_LINE_COMMENT.search(between) and text[end : end + 1] not in ("\n", "\r"):
        between += line_end(text)  # or the comment would swallow what follows
    if comma is not None and index == len(members) - 1 and member.comma is None:
        token -= 1
    return text[:token] + between + text[end:]


def rewrite_toml(text: str, path: tuple[str, ...], document: Any, original: str = "") -> str:
    """The text with the table that the document has at a path, at the end where it is new; or without it."""
    import tomlkit

    there, table = value_at(parse_toml(text), path), value_at(document, path)
    if there == table:
        return text
    end, mark = line_end(text), "\ufeff" if text.startswith("\ufeff") else ""
    if there is None:
        gap = "" if text == mark else end if text.endswith("\n") else end * 2
        lines = tomlkit.dumps(table).replace("\n", end)
        rest = f"{text}{gap}[{'.'.join(path)}]{end}{lines}"
    else:
        tree = tomlkit.parse(text.removeprefix(mark))
        _change_table(value_at(tree, path[:-1]), path[-1], there, table)
        rest = mark + tomlkit.dumps(tree)
    says = [
        {key: value for key, value in one.items() if value != {}}
        for one in (parse_toml(rest), document)
    ]
    if says[0] != says[1]:
        raise InvalidInput("The table cannot be changed alone.", "Change it by hand.")
    if table is None and rest.strip() == original.strip():
        return original
    # With the table goes the empty line that was put before it.
    ours = table is None and rest.endswith(end * 2) and not text.endswith(end * 2)
    return rest.removesuffix(end) if ours else rest


def _change_table(holder: Any, name: str, there: dict[str, Any], table: Any) -> None:
    if table is None:
        del holder[name]
    for key, value in (table or {}).items():
        if there.get(key) != value:
            holder[name][key] = value


# Entries of a whole file


def put_entries(
    text: str,
    wanted: Sequence[HostEntry],
    host: str,
    mine: Collection[Key] = (),
    force: bool = False,
) -> EditResult:
    """The text with these entries; those that are there are brought up to date, `mine` also where somebody changed them."""
    kept, keys = [], [entry.key for entry in wanted if entry.key in mine]
    for entry in wanted:
        document = _read(text, entry.key)
        if reason := put_entry(document, entry, host, force or entry.key in mine):
            kept.append(reason)
            continue
        longer = _rewrite(text, entry.key, document)
        if longer != text and entry.key not in keys:
            keys.append(entry.key)
        text = longer
    return EditResult(text, tuple(keys), tuple(kept))


def take_entries(text: str, keys: Collection[Key], host: str, original: str | None) -> str:
    """The text without these entries, and without what was made for them and is empty now. `original` is what the file held
    before, None where that is not known."""
    if is_empty(text):
        return text
    for key in keys:
        document = _read(text, key)
        while take_entry(document, key, host):
            text = _rewrite(text, key, document, original or "")
        if key[0] != "table":
            text = _remove_empty(text, _holder_path(key), original)
    return text


def _read(text: str, key: Key) -> Any:
    return parse_toml(text) if key[0] == "table" else read_value(text)


def _rewrite(text: str, key: Key, document: Any, original: str = "") -> str:
    if key[0] == "table":
        return rewrite_toml(text, key[1], document, original)
    return rewrite_json(text, document, original)


def _holder_path(key: Key) -> tuple[str, ...]:
    """The path of the list of a hook or an item, or of the object that a member stands in."""
    return key[1] if key[0] == "hook" else key[1][:-1]


def put_entry(document: Any, entry: HostEntry, host: str, mine: bool) -> str:
    """Puts an entry into what a file says, or gives the reason why it was left alone."""
    listed, name = entry.kind in ("hook", "item"), entry.path[-1]
    holder = _make_holder(document, _holder_path(entry.key), list if listed else dict)
    if entry.kind == "hook":
        handlers = (one for element in holder for one in handlers_of(element))
        there = next((one for one in handlers if _is_hook_of(one, host)), None)
        if there is None:
            holder.append(entry.value)
            return ""
        ours = handlers_of(entry.value)[0]
        for key in {*there} & {*RUN} - {*ours}:
            del there[key]
        # The user's own fields stay.
        there |= {key: value for key, value in ours.items() if key in RUN or key not in there}
    elif entry.kind == "item":
        holder += [] if name in holder else [name]
    else:
        there = holder.get(name)
        fresh = there | entry.value if is_our_server(there) else entry.value
        if name in holder and there != fresh and not mine:
            same = is_our_server(there)
            whose = "it starts Bethink too" if same else "it belongs to something else"
            return f"{'.'.join(entry.path)} is there already and was kept: {whose}."
        holder[name] = fresh
    return ""


def _make_holder(document: Any, path: tuple[str, ...], kind: type) -> Any:
    """The object or list at a path, made with all that leads to it."""
    here, kinds = document, [dict] * len(path) + [kind]
    for length, wanted in enumerate(kinds):
        if length:
            here = here.setdefault(path[length - 1], wanted())
        if not isinstance(here, wanted):
            found, needed = type(here).__name__, "an object" if wanted is dict else "a list"
            raise InvalidInput(
                f"{'.'.join(path[:length]) or 'The file'} is of type {found}, where {needed} is needed.",
                "Mend it by hand, then try again.",
            )
    return here


def take_entry(document: Any, key: Key, host: str) -> bool:
    """Takes one entry out of what a file says; whether there was one."""
    holder, name = value_at(document, _holder_path(key)), key[1][-1]
    if key[0] == "hook":
        for element in holder if isinstance(holder, list) else ():
            handlers = handlers_of(element)
            for one in handlers:
                if _is_hook_of(one, host):
                    # A group goes with its only hook: it was made for it, or is of no use without one.
                    (handlers if len(handlers) > 1 else holder).remove(
                        one if len(handlers) > 1 else element
                    )
                    return True
        return False
    if key[0] == "item":
        there = isinstance(holder, list) and name in holder
        if there:
            holder.remove(name)
        return there
    # What somebody else put there stays.
    there = isinstance(holder, dict) and is_our_server(holder.get(name))
    if there:
        del holder[name]
    return there


def _remove_empty(text: str, path: tuple[str, ...], original: str | None) -> str:
    """Removes what is empty now and was made for our entries, from the inside out. What holds a comment stays."""
    before = None if original is None else read_value(original)
    while path and value_at(read_value(text), path) in ({}, []):
        if value_at(before, path) is not None or _inner(text, path).strip():
            break
        text = _remove(text, path[:-1], path[-1], original or "")
        path = path[:-1]
    return text
