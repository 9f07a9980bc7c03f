"""Add entries to a host's settings and remove them, as text; foreign entries stay untouched.

The new content is computed on the parsed value; then `rewrite_json` changes the text in as few places as possible, and `rewrite_toml` lets
tomlkit do it, which keeps what it does not touch. JSON may have comments and trailing commas, since some hosts read them. Each result is
parsed again: if it is not as intended, the change is refused, and the file stays as it was.

Our existing entries are updated in place. This module knows no host and touches no file.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, MutableMapping, Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Any, NamedTuple

from bethink.errors import InvalidInput
from bethink.model import Values
from bethink.text import refuse_constant
from bethink.text.textfile import line_end

PROMPT_TOOL = "bethink_prompt"  # the MCP tool that answers a prompt hook
MOST_STEPS = 1000  # changes of one text; an installation makes about thirty
UNLIKE = "The edited file would not have the intended content, so it was left alone."
_REFUSED = "Change the entries by hand."

# The fields of a hook that name its command. The others, such as its time limit, are the user's to change.
_COMMANDS = ("command", "bash", "powershell")
RUN = ("type", "args", "server", "tool", "input", *_COMMANDS)

# Comments, with strings first, since what looks like a comment in one is none. Each pattern goes on to the end of the text where its own
# end is missing, so that the time is linear.
_COMMENTS = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|//[^\n\r]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_LAST_COMMAS = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|[\[{]\s*,|,(?=\s*[}\]])')
_INK = re.compile(r"\S")
_BLANK = re.compile(r"\s*")
_COMMENTS_BEHIND = re.compile(r"(?:[ \t]*(?:/\*(?:[^*\r\n]|\*(?!/))*\*/|//[^\r\n]*))*")
_INDENT = re.compile(r'^([ \t]+)["\[{]', re.MULTILINE)
_HOOK = re.compile(
    r"bethink(?:\.exe)?[\"']?\s+hook\s+([a-z-]{1,40})\s+--host\s+([a-z][a-z0-9-]{0,39})"
)
# Our table in TOML with those inside it, and the empty line that was put before it. Comments behind its last value belong to what follows.
_VALUES = r"(?:(?:[ \t]*(?:#.*)?\r?\n)*[ \t]*[^\s#\[].*(?:\n|\Z))*"
_ONE_TABLE = rf"^\[\w+\.bethink(?:\.[^\]\n]*)?\].*(?:\n|\Z){_VALUES}"
_TABLE = re.compile(rf"(?:^\r?\n)?{_ONE_TABLE}(?:\s*{_ONE_TABLE})*", re.MULTILINE)
_PROGRAM = re.compile(r"(?:^|[/\\])bethink(?:\.exe)?$|^bethink[@\[=]")

Path = tuple[str | int, ...]


class HostEntry(NamedTuple):
    kind: str  # server or rule, members of an object; hook or item of a list
    path: tuple[str, ...]  # of the member, or of the list
    value: Any


class EditResult(NamedTuple):
    text: str
    kept: tuple[str, ...] = ()  # sentences about what was in the way


# What is ours


def is_hook_of(handler: object, host: str) -> bool:
    """Return True if a hook runs Bethink for an agent, by whatever command."""
    fields = handler if isinstance(handler, dict) else {}
    if fields.get("type") == "mcp_tool" and fields.get("tool") == PROMPT_TOOL:
        return True  # only the agent whose file this is can have put it there
    commands = (_words(fields.get(key)) for key in _COMMANDS)
    lines = (" ".join([*words, *_words(fields.get("args"))]) for words in commands if words)
    return any(found[2] == host for line in lines for found in _HOOK.finditer(line[-4096:]))


def is_our_server(server: object) -> bool:
    """Return True if a registered MCP server is Bethink, however it is started."""
    fields = server if isinstance(server, dict) else {}
    words = [*_words(fields.get("command")), *_words(fields.get("args"))]
    return "mcp" in words and any(map(_PROGRAM.search, words[:6]))


def _words(value: object) -> list[str]:
    return list(map(str, value)) if isinstance(value, list) else [str(value)] if value else []


def handlers_of(element: object) -> list[Any]:
    """The hooks in an element of an event's list: in some hosts it is the hook, in others a group of them."""
    inside = element.get("hooks") if isinstance(element, dict) else None
    return inside if isinstance(inside, list) else [element]


def value_at(value: object, path: Path) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


# Entries of a whole file


def put_entries(
    text: str, wanted: Iterable[HostEntry], host: str, toml: bool = False, force: bool = False
) -> EditResult:
    """Add these entries to a text, or update them. `force` replaces a foreign server with our name."""
    document = parse(text, toml)
    reasons = [_put_entry(document, entry, host, force) for entry in wanted]
    rewrite = rewrite_toml if toml else rewrite_json
    return EditResult(rewrite(text, document), tuple(filter(None, reasons)))


def take_entries(
    text: str, entries: Iterable[HostEntry], host: str, original: str, toml: bool = False
) -> str:
    """Remove these entries from a text, and containers that were made for them and are empty now.

    `original` is the content before any of them: what it had stays, and what was replaced comes back.
    """
    document, before = parse(text, toml), parse(original, toml)
    for entry in entries:
        if _take_entry(document, entry, host, value_at(before, entry.path)):
            _remove_empty(document, entry.path, before)
    if toml and document != parse(text, toml):
        return rewrite_toml(_cut_table(text), document)
    return text if toml else rewrite_json(text, document)


def _put_entry(document: object, entry: HostEntry, host: str, force: bool) -> str:
    """Add an entry to a document, or return the reason why it was left alone."""
    if entry.kind == "rule":  # what the user allows or forbids counts
        above = value_at(document, entry.path[:-1])
        if above is None or isinstance(above, dict):
            holder = _make_holder(document, entry.path[:-1], dict)
            holder.setdefault(entry.path[-1], deepcopy(entry.value))
        return ""
    if entry.kind == "server":
        holder, name = _make_holder(document, entry.path[:-1], dict), entry.path[-1]
        there = holder.get(name)
        ours = is_our_server(there)
        if name in holder and not ours and not force:
            return f"{'.'.join(entry.path)} already exists and is not ours, so it was kept."
        holder[name] = (there if ours else {}) | entry.value  # a new one: other entries go into it
        return ""
    listed = _make_holder(document, entry.path, list)
    handlers = (one for element in listed for one in handlers_of(element))
    found = (one for one in handlers if entry.kind == "hook" and is_hook_of(one, host))
    if hook := next(found, None):  # the user's own fields stay
        fields = {key: value for key, value in hook.items() if key not in RUN}
        hook.clear()
        hook.update(handlers_of(entry.value)[0] | fields)
    elif entry.value not in listed:
        listed.append(entry.value)
    return ""


def _make_holder(document: object, path: tuple[str, ...], kind: type) -> Any:
    """The object or list at a path, made with all that leads to it."""
    here: Any = document
    for length, wanted in enumerate([dict] * len(path) + [kind]):
        if length:
            here = here.setdefault(path[length - 1], wanted())
        if not isinstance(here, wanted):
            where = ".".join(path[:length]) or "The file"
            needed = "an object" if wanted is dict else "a list"
            raise InvalidInput(
                f"{where} is of type {type(here).__name__}, where {needed} is needed.",
                "Fix it by hand, then try again.",
            )
    return here


def _take_entry(
    document: object, entry: HostEntry, host: str, before: Sequence[object] | None
) -> bool:
    """Remove one entry, restore the value before it, and return True if it was there."""
    there = value_at(document, entry.path)
    if entry.kind in ("server", "rule"):
        rule = entry.kind == "rule" and there == entry.value != before
        ours = rule or (entry.kind == "server" and is_our_server(there))
        if ours:
            holder, name = value_at(document, entry.path[:-1]), entry.path[-1]
            holder[name] = before
            if before is None:
                del holder[name]
        return ours
    listed = there if isinstance(there, list) else []
    rest = [one for one in listed if one != entry.value or one in (before or ())]
    if entry.kind == "hook":
        rest = [one for one in (_without_hook(one, host) for one in listed) if one is not None]
    taken = rest != listed
    listed[:] = rest
    return taken


def _remove_empty(document: object, path: Path, before: object) -> None:
    """Remove the containers at a path and above it that are empty and were not there before."""
    while path and value_at(document, path) in (None, {}, []) and value_at(before, path) is None:
        value_at(document, path[:-1]).pop(path[-1], None)
        path = path[:-1]


def _without_hook(element: object, host: str) -> object:
    """Remove our hook from an element of an event's list. A group without another hook goes too."""
    handlers = handlers_of(element)
    rest = [one for one in handlers if not is_hook_of(one, host)]
    if rest == handlers:
        return element
    return {**element, "hooks": rest} if rest and isinstance(element, dict) else None


# Reading


def parse(text: str, toml: bool = False) -> Any:
    """Return the value in a file, {} for an empty one. Raises InvalidInput if it cannot be parsed."""
    try:
        if text.startswith("\ufeff"):
            raise ValueError("it begins with a byte order mark")
        if toml:
            return tomllib.loads(text.replace("\r\n", "\n"))
        if not text.strip():
            return {}
        return json.loads(_blank_out(text)[1], parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        line, why = getattr(error, "lineno", 1), getattr(error, "msg", error)
        wrong = f"Invalid TOML: {error}." if toml else f"Line {line} is not valid JSON: {why}."
        raise InvalidInput(wrong, "Fix that line, then try again.") from None


@lru_cache(maxsize=4)  # an edit reads the same text again and again, and some files have megabytes
def _blank_out(text: str) -> tuple[str, str]:
    """Blank out comments, then also trailing commas. All else keeps its position."""

    def blank(found: re.Match[str]) -> str:
        piece = found[0]
        ended = piece.startswith(("//", ",")) or (piece.endswith("*/") and len(piece) > 3)
        return _INK.sub(" ", piece) if ended and piece[0] in "/," else piece

    plain = _COMMENTS.sub(blank, text)
    return plain, _LAST_COMMAS.sub(blank, plain)


class Member(NamedTuple):
    """A member of an object, or an item of an array, whose key is its number."""

    key: str | int
    start: int  # of the key, or of the item
    value: int  # where its value starts
    end: int
    comma: int | None  # position of the comma behind it

    @property
    def behind(self) -> int:
        return self.end if self.comma is None else self.comma + 1


def _find(text: str, path: Path) -> tuple[int, int, list[Member]]:
    """The object or array at a path: where it opens and closes, and its members."""
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


# Writing


def rewrite_json(text: str, value: object) -> str:
    """The text, changed in as few places as make it say this."""
    if not text.strip() and value:
        text += "{}" + line_end(text)
    for _ in range(MOST_STEPS):
        was = parse(text)
        if was == value:
            return text
        text = _change_once(text, (), was, value)
    raise InvalidInput(UNLIKE, _REFUSED)


def _change_once(text: str, path: Path, was: object, value: object) -> str:
    """The text with the first difference between what it says and what it should say taken out of it."""
    in_object = isinstance(was, dict) and isinstance(value, dict)
    old, new = _index_items(was), _index_items(value)
    if old is None or new is None or type(was) is not type(value):
        return _replace(text, path, value)
    shifted = not in_object and len(old) > len(new)  # an item went, and those behind it moved up
    for key in old:
        if key not in new or (shifted and old[key] != new[key]):
            return _remove(text, path, key)
    key = next(key for key in new if key not in old or old[key] != new[key])
    if key in old:
        return _change_once(text, (*path, key), old[key], new[key])
    return _insert(text, path, new[key], key if in_object else None)


def _index_items(value: object) -> dict[Any, object] | None:
    """The members of an object by name, or the items of a list by position; None for any other value."""
    if isinstance(value, list):
        return dict(enumerate(value))
    return value if isinstance(value, dict) else None


def _write(value: object, indent: str | None, text: str) -> str:
    """A value on one line, or with an indent over several, as the rest of a text has it."""
    if indent is None:
        return json.dumps(value, ensure_ascii=False)
    written = json.dumps(value, ensure_ascii=False, indent=_find_unit(text))
    return written.replace("\n", line_end(text) + indent)


def _find_unit(text: str) -> str:
    found = _INDENT.search(text)
    return found[1] if found else "  "


def _line_indent(text: str, at: int) -> str:
    """The blanks at the beginning of the line in which a place is."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _insert(text: str, path: Path, value: object, key: str | int | None = None) -> str:
    """The text with one more member or item at the end of an object or array."""
    start, close, members = _find(text, path)
    end, label = line_end(text), "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
    if not members:
        outer = _line_indent(text, start)
        inner, indent = text[start + 1 : close].rstrip(), outer + _find_unit(text)
        piece = f"{end}{indent}{label}{_write(value, indent, text)}{end}{outer}"
        return f"{text[: start + 1]}{inner}{piece}{text[close:]}"
    last, place = members[-1], members[-1].behind
    lead, own = " ", None
    if "\n" in text[start : members[0].start]:
        own = _line_indent(text, members[0].start)
        # Comments that follow on the same line belong to the member before them.
        lead, place = end + own, _COMMENTS_BEHIND.match(text, place).end()  # type: ignore[union-attr]
    piece = lead + label + _write(value, own, text)
    if last.comma is not None:
        return f"{text[:place]}{piece},{text[place:]}"
    return f"{text[: last.end]},{text[last.end : place]}{piece}{text[place:]}"


def _replace(text: str, path: Path, value: object) -> str:
    """The text with another value, on one line or several as the old one was."""
    member = [one for one in _find(text, path[:-1])[2] if one.key == path[-1]][-1]
    spread = "\n" in text[member.value : member.end]
    written = _write(value, _line_indent(text, member.start) if spread else None, text)
    return text[: member.value] + written + text[member.end :]


def _remove(text: str, path: Path, key: str | int) -> str:
    """Remove a member or item. Of several with the same name it is the last, which counts."""
    opening, close, members = _find(text, path)
    index = max(at for at, one in enumerate(members) if one.key == key)
    member = members[index]
    before, behind = text[: member.start], text[member.behind :]
    if len(members) == 1:
        rest = (before[opening + 1 :].rstrip() + text[member.behind : close]).rstrip(" \t")
        return text[: opening + 1] + (rest if rest.strip() else "") + text[close:]
    own_line = before.rstrip(" \t").endswith("\n")
    if own_line or index:
        before = before.rstrip(" \t").removesuffix("\n").removesuffix("\r")
    else:
        behind = behind.lstrip(" \t")
    # The comma before it goes if nothing follows; comments between stay.
    comma = members[index - 1].comma if index else None
    if comma is not None and index == len(members) - 1 and member.comma is None:
        before = before[:comma] + before[comma + 1 :]
    return before + behind


def rewrite_toml(text: str, value: Values) -> str:
    """Change a text by tomlkit to this value. New tables go to the end; line endings stay the same."""
    import tomlkit

    windows = "\r\n" in text and "\n" not in text.replace("\r\n", "")
    unix = text.replace("\r\n", "\n") if windows else text
    was = parse(unix, toml=True)
    if was == value:
        return text
    try:
        tree = tomlkit.parse(unix)
        _change_tables(tree, was, value)
        changed = tomlkit.dumps(tree)
    except tomlkit.exceptions.TOMLKitError as error:
        raise InvalidInput(f"It cannot be changed: {error}.", _REFUSED) from None
    if parse(changed, toml=True) != value:
        raise InvalidInput(UNLIKE, _REFUSED)
    return changed.replace("\n", "\r\n") if windows else changed


def _cut_table(text: str) -> str:
    """The text without our table, for tomlkit would take comments behind it along."""
    for found in list(_TABLE.finditer(text))[-1:]:
        text = text[: found.start()] + text[found.end() :]
    return text


def _change_tables(tree: MutableMapping[str, Any], was: Values, value: Values) -> None:
    """Change only the values of a table that differ."""
    for key in was.keys() - value.keys():
        del tree[key]
    for key, new in value.items():
        old = was.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            _change_tables(tree[key], old, new)
        elif old != new:
            tree[key] = new
