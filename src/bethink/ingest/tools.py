"""Failures of tools other than shells, and the later calls that got past them.

These are a missing file that is elsewhere, an edit that another tool made, and a call with another argument.
Only a later call of the same session that got past the failure makes a fix. What is generic, such as reading a file again before an edit,
is not kept. Everything here is pure.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping

from bethink.agents.work import is_kept
from bethink.model import ToolEvent
from bethink.text import blake2b, compile_late

MISSING_FILE, EDIT_CONFLICT, TOOL_CALL = "missing file", "edit conflict", "tool call"
TOOL_KINDS = (MISSING_FILE, EDIT_CONFLICT, TOOL_CALL)
NEAR = 6  # calls behind a failure among which another call counts as its correction; by hand
IS_AT = "it is at `{}`"  # the fix of a missing file
_VALUE = 80  # characters of an argument that can be named
_PATHS = ("file_path", "filePath", "path", "absolute_path", "target_file", "notebook_path")
_IS_MISSING = compile_late(
    r"does not exist|no such file|not found|ENOENT|cannot find|could not be found", re.IGNORECASE
)
_IS_CONFLICT = compile_late(
    r"string to replace not found|old_?string|no match|not found in (?:the )?file|matches of the string|failed to apply|could not find the|0 occurrences",
    re.IGNORECASE,
)
# Refusals that the next call fixes by itself, or that are no mistake.
_PASSING = compile_late(
    r"not been read|modified since|unexpectedly modified|exceeds|too large|interrupted|timed out|cancel|denied|permission|rejected|rate limit|no changes",
    re.IGNORECASE,
)
_TAGS = compile_late(r"</?[a-z_]{1,30}>|^Error: |^MCP error [\d-]+: ", re.IGNORECASE)
_NEXT_ARGUMENT = compile_late(r"; (?=\w{1,40}=)")


def describe_call(event: ToolEvent) -> str:
    """A call as lists show it, its path below its folder: `Read(file_path=src/a.ts)`."""
    arguments = event.arguments.replace(f"={event.directory}/", "=") if event.directory else ""
    return f"{event.tool}({arguments or event.arguments})"


def read_tool_error(
    event: ToolEvent, normalise: Callable[[str], str]
) -> tuple[str, str, str] | None:
    """Return the kind of a failed call, its error and its signature; None if it is not worth keeping."""
    lines = [_TAGS.sub("", line).strip() for line in event.output.splitlines()]
    error = next((line for line in lines if any(map(str.isalpha, line))), "")
    if not error or not is_kept(event.tool) or _PASSING.search(event.output[:1000]):
        return None
    call = describe_call(event)
    path = find_path(call)
    if event.changes and _IS_CONFLICT.search(error):
        return EDIT_CONFLICT, error, _sign(EDIT_CONFLICT, path)
    if path and not event.changes and _IS_MISSING.search(error):
        return MISSING_FILE, f"{path} does not exist", _sign(MISSING_FILE, path)
    if event.changes or path:
        return None
    return TOOL_CALL, error, _sign(event.tool, normalise(error))


def _sign(*parts: str) -> str:
    return blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _read_arguments(call: str) -> dict[str, str]:
    """Return the arguments in the description of a call by their names."""
    inside = call.partition("(")[2].removesuffix(")")
    parts = (part.partition("=") for part in _NEXT_ARGUMENT.split(inside))
    return {name: value for name, equals, value in parts if equals}


def find_path(call: str) -> str:
    """The path in the description of a call, '' if it has none."""
    arguments = _read_arguments(call)
    return next((arguments[name] for name in _PATHS if name in arguments), "")


def find_place(fix: str) -> str:
    """Return the path that a fix gives for a missing file, or an empty text."""
    before, after = IS_AT.split("{}")
    return fix.removeprefix(before).removesuffix(after) if fix.startswith(before) else ""


def find_tool_fix(kind: str, failed: str, error: str, event: ToolEvent) -> str | None:
    """Return the fix that a passing call shows; '' if it is over without one, None if it is not over."""
    call = describe_call(event)
    tool, path = failed.partition("(")[0], find_path(failed)
    if kind == MISSING_FILE:
        found = find_path(call) or event.file
        if found.startswith("/") or not found or not _may_be(path, found):
            return None
        return IS_AT.format(found) if found != path else ""
    if kind == EDIT_CONFLICT:
        if not event.changes or find_path(call) != path:
            return None
        return f"changed it with {event.tool} instead of {tool}" if event.tool != tool else ""
    if event.tool != tool:
        return None
    return _compare(_read_arguments(failed), _read_arguments(call), error)


def _may_be(missing: str, found: str) -> bool:
    """Return True for a file of the same name, or the main file of such a folder: `config/index.ts`."""
    stem, *_ = posixpath.basename(missing).partition(".")
    folder, name = posixpath.split(found)
    main = name.partition(".")[0] in ("index", "mod", "lib", "main", "__init__")
    same = posixpath.basename(missing) == name
    return same or (main and bool(stem) and posixpath.basename(folder) == stem)


def _compare(before: Mapping[str, str], after: Mapping[str, str], error: str) -> str | None:
    """Return the arguments in which a call differs from a failed one, if the error names one of them."""
    changed = [name for name in after if after[name] != before.get(name)]
    dropped = [name for name in before if name not in after]
    if not changed and not dropped:
        return ""
    words = set(re.findall(r"\w{2,}", error.lower()))
    named = [*changed, *dropped]
    blamed = any(
        words & set(re.findall(r"\w{2,}", f"{name} {before.get(name, '')}".lower()))
        for name in named
    )
    long = any(len(after.get(name, "")) > _VALUE for name in named)
    if len(named) > 2 or long or not blamed:
        return None
    texts = [f"{name}={after[name]}" for name in changed] + [f"without {name}" for name in dropped]
    return f"called it with `{'`, `'.join(texts)}`".replace("with `without ", "without `")
