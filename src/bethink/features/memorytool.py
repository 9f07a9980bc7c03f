"""The Anthropic API's memory tool (`memory_20250818`) over a scope: the files that a model keeps under /memories are memories here.

Six commands: view, create, str_replace, insert, delete, rename. What they answer is, to the letter, what models know from the file
backend of the vendor's SDK. A file is one memory, found by searches like any other: its path is the section, edits are versions in
its history, `delete` forgets and does not purge. Directories are only the common beginnings of paths.

There is no file system behind it: a path is a name, resolved here and nowhere else. Secrets and `<private>` parts are taken out as
everywhere, so a file may read back without them. This module knows nothing of the network; the SDK is asked for by `runnable` only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from bethink.errors import BethinkError, InvalidInput, Overtaken
from bethink.ingest.redact import redact
from bethink.text.checks import replace_broken
from bethink.types import PERSONAL, TRUST, Change, Passage, Source

if TYPE_CHECKING:
    from bethink.api import Bethink
    from bethink.types import Memory

ROOT = "/memories"
SOURCE = "memory-tool"  # the source of every file: a rename changes the path of a memory, not where it came from
LONGEST_PATH = 1000
MOST_LINES = 999_999
NUMBER_WIDTH = len(str(MOST_LINES))
AROUND = 2  # lines shown before and after a replacement
DEPTH = 2
TRIES = 5  # of a command whose file another process changes meanwhile
COMMANDS = ("view", "create", "str_replace", "insert", "delete", "rename")


class MemoryTool:
    """Answers the commands of the memory tool from one scope: the project or container of a `Bethink`, or what is personal.

    >>> tool = MemoryTool(memory)
    >>> tool.call({"command": "create", "path": "/memories/deploy.md", "file_text": "We deploy from main.\\n"})
    'File created successfully at: /memories/deploy.md'
    """

    def __init__(self, memory: Bethink, *, personal: bool = False) -> None:
        self.memory = memory
        self.scope = PERSONAL if personal else memory.scope

    def to_dict(self) -> dict[str, str]:
        """The entry for `tools` of a request."""
        return {"type": "memory_20250818", "name": "memory"}

    def call(self, command: Mapping[str, Any]) -> str:
        """The answer to the input of a `tool_use` block. A failure is an error whose message is meant for the model."""
        name = _text(command, "command")
        if name not in COMMANDS:
            raise InvalidInput(
                f"Unknown command: {name[:100]}", "One of " + ", ".join(COMMANDS) + "."
            )
        run: Callable[[Mapping[str, Any]], str] = getattr(self, f"_{name}")
        for _ in range(TRIES - 1):
            with suppress(Overtaken):  # the command is meant for what the file says now
                return run(command)
        return run(command)

    def result(self, block: Any) -> dict[str, Any]:
        """The `tool_result` block for a `tool_use` block, given as the SDK's object or as a dictionary."""
        block = block if isinstance(block, Mapping) else vars(block)
        found = {"type": "tool_result", "tool_use_id": block.get("id")}
        given = block.get("input")
        try:
            return {**found, "content": self.call(given if isinstance(given, Mapping) else {})}
        except BethinkError as error:
            return {**found, "content": error.message, "is_error": True}

    def clear(self) -> str:
        """Forgets every file of the scope."""
        self.memory.forget(*(one.id for _, one in self._list_files()))
        return "All memory cleared"

    def runnable(self) -> Any:
        """The tool as an object for `client.beta.messages.tool_runner(tools=[…])` of the package `anthropic`."""
        return _runnable(self)

    # The commands

    def _view(self, command: Mapping[str, Any]) -> str:
        path, resolved = _path(command, "path")
        files = self._files()
        if resolved in files:
            return _show_file(path, text_of(files[resolved]), command.get("view_range"))
        if not _is_directory(resolved, files):
            raise InvalidInput(f"The path {path} does not exist. Please provide a valid path.")
        head = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
        sizes = _measure(resolved, files)
        shown = path.rstrip("/")
        rows = [f"{format_size(sizes.pop((), 0))}\t{shown}"]
        rows += [
            f"{format_size(sizes[parts])}\t{shown}/{'/'.join(parts)}"
            for parts in sorted(sizes)
            if len(parts) - (parts[-1] == "") <= DEPTH
            and not any(part.startswith(".") for part in parts)
        ]
        return "\n".join([head, *rows])

    def _create(self, command: Mapping[str, Any]) -> str:
        path, resolved = _new_path(command, "path")
        text = _text(command, "file_text")
        files = self._files()
        if resolved in files or _is_directory(resolved, files):
            raise InvalidInput(f"File {path} already exists")
        _check_parents(path, resolved, files)
        content, metadata = _split_text(resolved, text)
        passage = Passage(content, kind="general", section=resolved, metadata=metadata)
        outcome = self.memory.ingest(
            [(Source(SOURCE, "note"), [passage])],
            scope=self.scope,
            trust=min(self.memory.trust, TRUST["agent"]),
            replace_sources=False,
        ).outcomes[0]
        if outcome.status != "added":
            raise InvalidInput(
                f"File {path} was not created: a person purged this text from memory."
            )
        return f"File created successfully at: {path}"

    def _str_replace(self, command: Mapping[str, Any]) -> str:
        path, file = self._find_file(command)
        old, new = _text(command, "old_str"), _text(command, "new_str", "")
        text = text_of(file)
        places = _find_places(text, old)
        if not places:
            raise InvalidInput(
                f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
            )
        if len(places) > 1:
            lines = ", ".join(str(text.count("\n", 0, at) + 1) for at in places)
            raise InvalidInput(
                f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}. Please ensure it is unique"
            )
        (at,) = places
        changed = text[:at] + new + text[at + len(old) :]
        self._rewrite(file, changed)
        line = text.count("\n", 0, at)
        first = max(0, line - AROUND)
        snippet = _number(changed.split("\n")[first : line + AROUND + 1], first + 1)
        return f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{snippet}"

    def _insert(self, command: Mapping[str, Any]) -> str:
        path, file = self._find_file(command)
        at, text = command.get("insert_line"), _text(command, "insert_text")
        lines = text_of(file).split("\n")
        if lines[-1] == "":
            lines.pop()
        if not isinstance(at, int) or isinstance(at, bool) or not 0 <= at <= len(lines):
            raise InvalidInput(
                f"Invalid `insert_line` parameter: {at}. It should be within the range [0, {len(lines)}]."
            )
        lines.insert(at, text.rstrip("\n"))
        changed = "\n".join(lines)
        self._rewrite(file, changed if changed.endswith("\n") else changed + "\n")
        return f"The file {path} has been edited."

    def _delete(self, command: Mapping[str, Any]) -> str:
        path, resolved = _path(command, "path")
        if resolved == ROOT:
            raise InvalidInput("Cannot delete the /memories directory itself")
        found = [one.id for name, one in self._list_files() if _is_below(name, resolved)]
        if not found:
            raise InvalidInput(f"The path {path} does not exist")
        self.memory.forget(*found)
        return f"Successfully deleted {path}"

    def _rename(self, command: Mapping[str, Any]) -> str:
        old_path, old = _path(command, "old_path")
        new_path, new = _new_path(command, "new_path")
        if old == ROOT:
            raise InvalidInput("Cannot rename the /memories directory itself")
        stored = self._list_files()
        files = dict(stored)
        if new in files or _is_directory(new, files):
            raise InvalidInput(f"The destination {new_path} already exists")
        moved = [(one, new + name[len(old) :]) for name, one in stored if _is_below(name, old)]
        if not moved:
            raise InvalidInput(f"The path {old_path} does not exist")
        if _is_below(new, old):
            raise InvalidInput(f"Cannot rename {old_path} to {new_path}, which is inside it")
        _check_parents(new_path, new, files)
        self._move(moved)
        return f"Successfully renamed {old_path} to {new_path}"

    # What they share

    def _files(self) -> dict[str, Memory]:
        """The files of the scope by their paths; of two that were made at once under one path, the newer."""
        return dict(self._list_files())

    def _list_files(self) -> list[tuple[str, Memory]]:
        """Every file of the scope with its path, the one changed last behind the others."""
        # What says the same elsewhere may have replaced a file for searches; for whoever keeps it, it is still there.
        filter = self.memory.filter(
            scopes=(self.scope,), sources=(SOURCE,), include_superseded=True, include_expired=True
        )
        found = sorted(self.memory.export(filter), key=lambda one: one.updated_at)
        return [(str(path), one) for one in found if (path := one.metadata.get("path"))]

    def _find_file(self, command: Mapping[str, Any]) -> tuple[str, Memory]:
        path, resolved = _path(command, "path")
        files = self._files()
        if resolved in files:
            return path, files[resolved]
        if _is_directory(resolved, files):
            raise InvalidInput(f"The path {path} is not a file.")
        raise InvalidInput(f"The path {path} does not exist. Please provide a valid path.")

    def _rewrite(self, file: Memory, text: str) -> None:
        content, metadata = _split_text(str(file.metadata["path"]), text)
        self.memory.update(file.id, content=content, metadata=metadata, was=file)

    def _move(self, paths: Sequence[tuple[Memory, str]]) -> None:
        """Gives files other paths, all or none of them."""
        memory = self.memory
        changes = [
            Change(one.id, "rename", {"section": path, "metadata": {**one.metadata, "path": path}})
            for one, path in paths
        ]
        vectors = memory.vectors_of([one._replace(section=path) for one, path in paths])
        unchanged = tuple((one.id, one.updated_at) for one, _ in paths)
        memory.write(change=tuple(changes), unchanged=unchanged, **vectors)


# Files as memories


def text_of(file: Memory) -> str:
    """The text of a file, as it was written but for what was taken out of it."""
    kept = file.metadata
    return f"{kept.get('before', '')}{'' if kept.get('empty') else file.content}{kept.get('after', '')}"


def _split_text(path: str, text: str) -> tuple[str, dict[str, Any]]:
    """A file's text as a memory holds it: without the white space around it, which is kept beside."""
    text = text.replace("\x00", "")
    content = text.strip()
    if not content:
        return f"The memory file {path} is empty.", {"path": path, "empty": True, "before": text}
    start = text.index(content)
    return content, {"path": path, "before": text[:start], "after": text[start + len(content) :]}


def _find_places(text: str, part: str) -> list[int]:
    """Where a part begins in a text, overlapping ones included."""
    return [found.start() for found in re.finditer(f"(?={re.escape(part)})", text)] if part else []


def _show_file(path: str, text: str, view_range: Any) -> str:
    lines = text.split("\n")
    if len(lines) > MOST_LINES:
        raise InvalidInput(f"File {path} exceeds maximum line limit of 999,999 lines.")
    first = 1
    match view_range:
        case [int(first), int(last)]:
            first = max(1, first)
            lines = lines[first - 1 : len(lines) if last == -1 else last]
    return f"Here's the content of {path} with line numbers:\n{_number(lines, first)}"


def _number(lines: Sequence[str], first: int) -> str:
    return "\n".join(
        f"{number:>{NUMBER_WIDTH}}\t{line}" for number, line in enumerate(lines, start=first)
    )


# Paths


def _text(command: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = command.get(name, default)
    if not isinstance(value, str):
        raise InvalidInput(
            f"The parameter `{name}` is missing or is no text.", f"Give `{name}` as a string."
        )
    return replace_broken(value)


def _path(command: Mapping[str, Any], name: str) -> tuple[str, str]:
    """A path as it was given, and what it resolves to."""
    path = _text(command, name)
    if len(path) > LONGEST_PATH or not path.isprintable():
        raise InvalidInput(
            f"The parameter `{name}` is too long for a path, or holds characters that cannot be seen: {path[:100]!r}"
        )
    if path != ROOT and not path.startswith(ROOT + "/"):
        raise InvalidInput(f"Path must start with /memories, got: {path}")
    parts: list[str] = []
    for part in path[len(ROOT) :].split("/"):
        if part == "..":
            if not parts:
                raise InvalidInput(f"Path {path} would escape /memories directory")
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return path, "/".join([ROOT, *parts])


def _new_path(command: Mapping[str, Any], name: str) -> tuple[str, str]:
    """The same, of a file that is going to have it. Without its secret it would be another file's."""
    path, resolved = _path(command, name)
    if redact(resolved).text != resolved:
        raise InvalidInput(
            f"The parameter `{name}` holds something private or what looks like a secret. Please choose another path."
        )
    return path, resolved


def _is_below(path: str, above: str) -> bool:
    """Whether a path is the other one or lies in it."""
    return path == above or path.startswith(above + "/")


def _is_directory(path: str, files: Mapping[str, Any]) -> bool:
    return path == ROOT or any(name.startswith(path + "/") for name in files)


def _check_parents(path: str, resolved: str, files: Mapping[str, Any]) -> None:
    parts = resolved.split("/")
    for at in range(3, len(parts)):
        if (parent := "/".join(parts[:at])) in files:
            raise InvalidInput(f"The path {path} cannot be made: {parent} is a file.")


def _measure(directory: str, files: Mapping[str, Memory]) -> Counter[tuple[str, ...]]:
    """The bytes of everything in a directory by the parts of its path, which end with an empty one if it is a directory itself;
    those of the directory under no parts at all."""
    sizes = Counter[tuple[str, ...]]()
    for name, file in files.items():
        if name.startswith(directory + "/"):
            parts = tuple(name[len(directory) + 1 :].split("/"))
            above = [(*parts[:depth], "") for depth in range(1, len(parts))]
            for key in ((), *above, parts):
                sizes[key] += len(text_of(file).encode())
    return sizes


def format_size(bytes: int) -> str:
    """A size as the tool shows it: 0B, 512B, 1.5K."""
    size, unit = float(bytes), "B"
    for larger in ("K", "M", "G"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f}{unit}" if size == int(size) else f"{size:.1f}{unit}"


def _runnable(tool: MemoryTool) -> Any:
    try:
        from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError
    except ImportError:
        raise BethinkError(
            "The package anthropic is not installed.",
            "pip install 'anthropic>=2.8', or answer with `call`.",
        ) from None

    class Runnable(BetaAbstractMemoryTool):  # type: ignore[misc, unused-ignore]
        """Passes the SDK's typed commands on."""

        def execute(self, command: Any) -> str:
            given = command if isinstance(command, Mapping) else command.to_dict()
            try:
                return tool.call(given)
            except BethinkError as error:
                raise ToolError(error.message) from error

        def clear_all_memory(self) -> str:
            return tool.clear()

        # The six methods of the base class, which `execute` stands for.
        view = create = str_replace = insert = delete = rename = execute

    return Runnable()
