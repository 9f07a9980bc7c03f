"""Entries that are put into a host's file and taken out again, and the proof that nothing else changed.

An entry is a member of an object, a hook in a list of hooks, or a table of a TOML file. What is there and is ours is brought up to
date in place; what is there and is somebody else's is never touched. Each edit is checked by its meaning: without our entries, the
text must say after it what it said before. This module knows no host by name and touches no file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from bethink.errors import BethinkError, InvalidInput
from bethink.install import jsonc, toml

SERVER = "bethink"  # the name under which the MCP server is registered
PROMPT_TOOL = "bethink_prompt"  # the MCP tool that answers a prompt hook

# The fields of a hook that say what is run. The others, such as its time limit, are the user's to change.
RUN = (
    "type",
    "command",
    "args",
    "bash",
    "powershell",
    "commandWindows",
    "exec",
    "server",
    "tool",
    "input",
)
_HOOK = re.compile(
    r"bethink[\"']?(?:\.exe)?[\"']?\s+hook\s+([a-z-]{1,40})\s+--host\s+([a-z]{1,40})"
)


Key = tuple[str, tuple[str, ...]]  # kind and path of an entry


class Entry(NamedTuple):
    kind: str  # member, frame (a member that a file cannot do without), hook, table
    path: tuple[str, ...]  # of the member or table itself; of the list that a hook stands in
    value: Any


class State(NamedTuple):
    """What is known about the entries of one file."""

    entries: tuple[Key, ...] = ()  # those that are ours
    made: tuple[tuple[str, ...], ...] = ()  # objects and lists that were made for them
    inner: tuple[
        tuple[tuple[str, ...], str], ...
    ] = ()  # what stood in objects and lists that were empty
    lead: str = ""  # what was put before a TOML table


class Put(NamedTuple):
    text: str
    state: State
    kept: tuple[str, ...] = ()  # sentences about what was in the way


# What is ours


def hook_of(handler: Any) -> tuple[str, str] | None:
    """The event and the host of a hook that runs Bethink, or nothing."""
    if not isinstance(handler, dict):
        return None
    if handler.get("type") == "mcp_tool" and handler.get("tool") == PROMPT_TOOL:
        return "prompt", "claude"
    for line in lines_of(handler):
        if found := _HOOK.search(line[-4096:]):
            return found.group(1), found.group(2)
    return None


def lines_of(handler: dict[str, Any]) -> list[str]:
    """The command lines in a hook, whatever the host calls them."""
    args = handler.get("args")
    rest = " " + " ".join(str(word) for word in args) if isinstance(args, list) else ""
    named = [
        handler.get(key) for key in ("command", "bash", "powershell", "commandWindows", "exec")
    ]
    return [
        (" ".join(map(str, one)) if isinstance(one, list) else str(one)) + rest
        for one in named
        if one
    ]


def server_is_ours(value: Any) -> bool:
    """Whether a registered MCP server is Bethink, by whatever command it is started."""
    if not isinstance(value, dict):
        return False
    command, args = value.get("command"), value.get("args")
    words = [
        *(command if isinstance(command, list) else [command]),
        *(args if isinstance(args, list) else []),
    ]
    return (
        any(
            re.search(r"(?:^|[\\/])bethink(?:\.exe)?$|^bethink[@\[=]", str(word))
            for word in words[:6]
        )
        and "mcp" in words
    )


def _ours(handler: Any, host: str) -> bool:
    found = hook_of(handler)
    return found is not None and found[1] == host


# Putting in


def put(text: str, wanted: Sequence[Entry], host: str, state: State, force: bool = False) -> Put:
    """The text with these entries, those that are there brought up to date, and what is known about them then."""
    if any(entry.kind == "table" for entry in wanted):
        return _put_tables(text, wanted, state, force)
    before = text
    kept: list[str] = []
    known = set(state.entries)
    if jsonc.empty(text):
        text, state = _root(text, state)
    for entry in wanted:
        if entry.kind == "hook":
            text, state, added = _put_hook(text, entry, host, state)
        else:
            text, state, added = _put_member(
                text, entry, state, (entry.kind, entry.path) in known or force, kept
            )
        if added:
            state = state._replace(
                entries=tuple(dict.fromkeys((*state.entries, (entry.kind, entry.path))))
            )
    kinds = {entry.kind for entry in wanted}
    named = {(entry.kind, entry.path) for entry in wanted}
    for gone in [one for one in known if one[0] in kinds and one not in named]:
        text = take(text, [gone], host, state)
        state = state._replace(entries=tuple(one for one in state.entries if one != gone))
    _prove_put(before, text, wanted, known, host, state, bool(kept))
    return Put(text, state, tuple(kept))


def _root(text: str, state: State) -> tuple[str, State]:
    end = jsonc.layout(text).end
    lead = "" if not text.strip("\ufeff \t\r\n") or text.endswith("\n") else end
    return text + lead + "{}" + end, state._replace(made=((), *state.made), lead=lead)


def _container(text: str, path: tuple[str, ...], kind: str, state: State) -> tuple[str, State]:
    """The text in which there is such an object or list, made with all that leads to it."""
    for length in range(len(path) + 1):
        here = path[:length]
        wanted = kind if length == len(path) else "object"
        node = jsonc.find(jsonc.parse(text), here)
        if node is None:
            above = jsonc.find(jsonc.parse(text), here[:-1])
            assert above is not None
            state = _remember_inner(text, above, here[:-1], state)
            text = jsonc.insert(text, above, {} if wanted == "object" else [], here[-1])
            state = state._replace(made=tuple(dict.fromkeys((*state.made, here))))
        elif node.kind != wanted:
            name = ".".join(here) or "The file"
            raise InvalidInput(
                f"{name} is of kind {node.kind}, where {wanted} is needed.",
                "Mend it by hand, then try again.",
            )
    return text, state


def _remember_inner(text: str, node: jsonc.Node, path: tuple[str, ...], state: State) -> State:
    if node.parts or path in state.made or any(path == one for one, _ in state.inner):
        return state
    return state._replace(inner=(*state.inner, (path, text[node.start + 1 : node.end - 1])))


def _put_member(
    text: str, entry: Entry, state: State, mine: bool, kept: list[str]
) -> tuple[str, State, bool]:
    above, key = entry.path[:-1], entry.path[-1]
    node = jsonc.find(jsonc.parse(text), above)
    part = node.member(key) if node else None
    if node is not None and part is not None:
        there = jsonc.plain(part.node)
        if there == entry.value or entry.kind == "frame":
            return text, state, False
        if mine:
            return jsonc.replace(text, node, part, entry.value), state, True
        kept.append(
            f"{'.'.join(entry.path)} is there already and was kept: it starts Bethink too."
            if server_is_ours(there)
            else f"{'.'.join(entry.path)} is there already and belongs to something else; it was kept."
        )
        return text, state, False
    text, state = _container(text, above, "object", state)
    node = jsonc.find(jsonc.parse(text), above)
    assert node is not None
    state = _remember_inner(text, node, above, state)
    return jsonc.insert(text, node, entry.value, key), state, True


def _put_hook(text: str, entry: Entry, host: str, state: State) -> tuple[str, State, bool]:
    text, state = _container(text, entry.path, "array", state)
    node = jsonc.find(jsonc.parse(text), entry.path)
    assert node is not None
    for holder, at in _handlers(node):
        there = jsonc.plain(holder.parts[at].node)
        if _ours(there, host):
            wanted = updated(there, _handler_of(entry.value))
            if there == wanted:
                return text, state, False
            return jsonc.replace(text, holder, holder.parts[at], wanted), state, True
    state = _remember_inner(text, node, entry.path, state)
    return jsonc.insert(text, node, entry.value), state, True


def _handler_of(element: dict[str, Any]) -> dict[str, Any]:
    """The hook in an element of an event's list: in some hosts it stands there itself, in others inside a group."""
    handler: dict[str, Any] = element["hooks"][0] if "hooks" in element else element
    return handler


def updated(there: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """A hook that runs what it should, with what the user changed about it otherwise."""
    theirs = {key: value for key, value in there.items() if key not in RUN}
    return {
        key: value if key in RUN else theirs.get(key, value) for key, value in wanted.items()
    } | {key: value for key, value in theirs.items() if key not in wanted}


def _handlers(node: jsonc.Node) -> list[tuple[jsonc.Node, int]]:
    """Every hook in an event's list, as the list that holds it and its number there."""
    found = []
    for at, part in enumerate(node.parts):
        group = part.node.member("hooks")
        if group is not None and group.node.kind == "array":
            found += [(group.node, inside) for inside in range(len(group.node.parts))]
        else:
            found.append((node, at))
    return found


# Taking out


def take(text: str, entries: Sequence[Key], host: str, state: State) -> str:
    """The text without these entries and without what was made for them and is empty now."""
    if jsonc_only := [one for one in entries if one[0] != "table"]:
        text = _take_json(text, jsonc_only, host, state)
    for kind, path in entries:
        if kind == "table":
            text = toml.remove(text, path, state.lead)
    return text


def _take_json(text: str, entries: Sequence[Key], host: str, state: State) -> str:
    if jsonc.empty(text):
        return text
    for kind, path in entries:
        if kind == "hook":
            text = _take_hooks(text, path, host)
            text = _tidy(text, path, state)
        elif kind == "member":
            text = _take_member(text, path, state)
            text = _tidy(text, path[:-1], state)
    for kind, path in entries:
        if kind == "frame":
            text = _take_frame(text, path, state)
    root = jsonc.parse(text)
    if (
        () in state.made
        and root.kind == "object"
        and not root.parts
        and not text[root.start + 1 : root.end - 1].strip()
    ):
        before, after = text[: root.start], text[root.end :]
        end = jsonc.layout(text).end
        text = (before.removesuffix(state.lead) if state.lead else before) + after.removeprefix(end)
    return text


def _take_hooks(text: str, path: tuple[str, ...], host: str) -> str:
    while (node := jsonc.find(jsonc.parse(text), path)) is not None and node.kind == "array":
        found = next(
            (
                (holder, at)
                for holder, at in _handlers(node)
                if _ours(jsonc.plain(holder.parts[at].node), host)
            ),
            None,
        )
        if found is None:
            break
        holder, at = found
        if (
            holder is not node and len(holder.parts) == 1
        ):  # the group was made for this hook, or is of no use without one
            group = next(
                number
                for number, part in enumerate(node.parts)
                if part.node.start <= holder.start < part.node.end
            )
            text = _removed(text, path, group)
        else:
            text = (
                jsonc.remove(text, holder, at) if holder is not node else _removed(text, path, at)
            )
    return text


def _removed(text: str, path: tuple[str, ...], index: int, inner: str | None = None) -> str:
    node = jsonc.find(jsonc.parse(text), path)
    assert node is not None
    return jsonc.remove(text, node, index, inner)


def _take_member(text: str, path: tuple[str, ...], state: State) -> str:
    node = jsonc.find(jsonc.parse(text), path[:-1])
    part = node.member(path[-1]) if node else None
    if (
        node is None
        or part is None
        or (path[-1] == SERVER and not server_is_ours(jsonc.plain(part.node)))
    ):
        return text  # the user took it out, or put something else in its place
    return jsonc.remove(text, node, node.parts.index(part), dict(state.inner).get(path[:-1]))


def _take_frame(text: str, path: tuple[str, ...], state: State) -> str:
    """A frame goes with the last thing that needs it, or where the file did without it before."""
    node = jsonc.find(jsonc.parse(text), path[:-1])
    part = node.member(path[-1]) if node else None
    if node is None or part is None or (() in state.made and len(node.parts) > 1):
        return text
    return jsonc.remove(text, node, node.parts.index(part), dict(state.inner).get(path[:-1]))


def _tidy(text: str, path: tuple[str, ...], state: State) -> str:
    """Removes what was made for our entries and is empty, from the inside out; gives what was empty before its old look."""
    while path:
        node = jsonc.find(jsonc.parse(text), path)
        if node is None:
            path = path[:-1]
            continue
        if node.parts:
            break
        inner = dict(state.inner)
        if path in inner and text[node.start + 1 : node.end - 1].strip() == inner[path].strip():
            text = text[: node.start + 1] + inner[path] + text[node.end - 1 :]
        above = jsonc.find(jsonc.parse(text), path[:-1])
        part = above.member(path[-1]) if above else None
        if (
            path not in state.made
            or above is None
            or part is None
            or text[node.start + 1 : node.end - 1].strip()
        ):
            break
        text = jsonc.remove(text, above, above.parts.index(part), inner.get(path[:-1]))
        path = path[:-1]
    return text


# TOML


def _put_tables(text: str, wanted: Sequence[Entry], state: State, force: bool) -> Put:
    kept: list[str] = []
    for entry in wanted:
        there = _table(toml.parse(text), entry.path)
        mine = ("table", entry.path) in state.entries or force
        if there is None:
            state = state._replace(lead=toml.gap(text))
            longer = toml.append(text, entry.path, entry.value)
        elif all(there.get(key) == value for key, value in entry.value.items()):
            continue
        elif mine:
            longer = toml.change(text, entry.path, entry.value)
        else:
            kind = "starts Bethink too" if server_is_ours(there) else "belongs to something else"
            kept.append(f"[{'.'.join(entry.path)}] is there already and was kept: it {kind}.")
            continue
        try:
            proven = _table(toml.parse(longer), entry.path)
        except InvalidInput:
            proven = None
        if (
            proven is None
            or any(proven.get(key) != value for key, value in entry.value.items())
            or _rest(longer, entry) != _rest(text, entry)
        ):
            raise InvalidInput(
                f"[{'.'.join(entry.path)}] cannot be put into it as it is written.",
                "Write that table as one of its own.",
            )
        text = longer
        state = state._replace(
            entries=tuple(dict.fromkeys((*state.entries, ("table", entry.path))))
        )
    return Put(text, state, tuple(kept))


def _table(document: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any] | None:
    value: Any = document
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else None


def _rest(text: str, entry: Entry) -> str:
    """What a document says apart from one table, in a form that can be compared."""
    return repr(
        without(toml.parse(text), [("table", entry.path)], "", State(made=(entry.path[:-1],)))
    )


# Proof


def without(value: Any, entries: Sequence[Key], host: str, state: State) -> Any:
    """A value without our entries: the same as `take`, on values instead of text. The value itself stays as it is."""
    for kind, path in entries:
        value = _cut(value, kind, path, 0, host, state)
    return value


def _cut(value: Any, kind: str, path: tuple[str, ...], at: int, host: str, state: State) -> Any:
    key = path[at]
    if not isinstance(value, dict) or key not in value:
        return value
    rest = dict(value)
    if at < len(path) - 1:
        rest[key] = _cut(value[key], kind, path, at + 1, host, state)
    elif kind == "hook":
        rest[key] = _without_hooks(value[key], host)
    elif kind == "table" or key != SERVER or server_is_ours(value[key]):
        del rest[key]
    if path[: at + 1] in state.made and rest.get(key) in ({}, []):
        rest.pop(key, None)
    return rest


def _without_hooks(listed: Any, host: str) -> Any:
    if not isinstance(listed, list):
        return listed
    kept = []
    for element in listed:
        handlers = element.get("hooks") if isinstance(element, dict) else None
        if isinstance(handlers, list):
            rest = [one for one in handlers if not _ours(one, host)]
            if rest or not handlers:
                kept.append({**element, "hooks": rest})
        elif not _ours(element, host):
            kept.append(element)
    return kept


def _said(text: str, entries: Sequence[Key], host: str, state: State) -> str:
    value = {} if jsonc.empty(text) else jsonc.plain(jsonc.parse(text))
    return json.dumps(without(value, entries, host, state))


def _prove_put(
    before: str,
    after: str,
    wanted: Sequence[Entry],
    known: set[Key],
    host: str,
    state: State,
    kept: bool,
) -> None:
    entries = [*known, *((entry.kind, entry.path) for entry in wanted)]
    whole = jsonc.plain(jsonc.parse(after))
    there = all(_present(whole, entry, host) for entry in wanted)
    if (not there and not kept) or _said(after, entries, host, state) != _said(
        before, entries, host, state
    ):
        raise BethinkError(
            "The file would not have said the same afterwards, so it was left alone.",
            "Add the entries by hand.",
        )


def prove_take(before: str, after: str, entries: Sequence[Key], host: str, state: State) -> bool:
    """Whether a text without our entries says what it should."""
    try:
        if any(kind == "table" for kind, _ in entries):
            expected = without(
                toml.parse(before),
                entries,
                host,
                state._replace(made=tuple(path[:-1] for _, path in entries)),
            )
            return repr(without(toml.parse(after), [], host, state)) == repr(expected)
        rest = [one for one in entries if one[0] != "frame"]
        said = _said(before, rest, host, state)
        frames = [one for one in entries if one[0] == "frame"]
        return _said(after, [], host, state) in (said, _said(before, [*rest, *frames], host, state))
    except InvalidInput:
        return False


def _present(whole: Any, entry: Entry, host: str) -> bool:
    value = whole
    for key in entry.path:
        value = value.get(key) if isinstance(value, dict) else None
    if entry.kind != "hook":
        return bool(value is not None)
    handlers = [
        one
        for element in value or []
        for one in (element.get("hooks", [element]) if isinstance(element, dict) else [])
    ]
    return any(_ours(one, host) for one in handlers)
