"""What agents remember by themselves, as sources: Claude Code's auto memory, and the rules of a project (AGENTS.md, CLAUDE.md and
what they import). Only ever read.

A search finds it, with its file and line. It is never told unasked, because the agent's host has put it into the context already:
every such memory has a source that begins with `types.BUILTIN`. Rules that Bethink wrote itself are left out, or they would be
learned from their own copies. Nothing here decides what a passage is: that is for `ingest/markdown`.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bethink.api import Bethink
from bethink.errors import BethinkError
from bethink.text import textfile
from bethink.types import BUILTIN, Passage, path_of

if TYPE_CHECKING:
    from bethink.ingest.files import Found
    from bethink.ingest.sync import Document, Skipped, Synced

COLLECTION = "builtin"
RULES, AUTO = "rules", "auto memory"  # what the mark of a memory says
VERSION = 1  # raised when the same file gives other passages
FILES = (
    "AGENTS.md",
    "CLAUDE.md",
    ".claude/CLAUDE.md",
    "CLAUDE.local.md",
    "GEMINI.md",
    ".github/copilot-instructions.md",
)
FOLDERS = (".claude/rules", ".cursor/rules")
SUFFIXES = (".md", ".markdown", ".mdc")
IMPORTED = (*SUFFIXES, ".mdx", ".txt")
LARGEST = 1_000_000  # bytes of one file
DEEPEST, MOST = 5, 100  # how far imports lead, and to how many files
LONGEST_SLUG = 200
KINDS = {"user": "preference", "feedback": "preference", "project": "fact", "reference": "document"}
_IMPORT = re.compile(r"(?:^|(?<=\s))@([\w~./\\-]{1,300})")
_CODE = re.compile(r"`[^`\n]{0,500}`")


def sync(memory: Bethink) -> Synced:
    """Brings what the agents of this project remember by themselves in step with memory. Unchanged files cost next to nothing."""
    from bethink.ingest.sync import Skipped

    root = memory.project.worktree
    marked = [
        *((found, RULES) for found in rules(root)),
        *((found, AUTO) for found in auto_memory(memory.project.root)),
    ]
    read: list[Document | Skipped] = []
    if memory.config.builtin_memory:
        for found, mark in marked:
            read.append(
                found if isinstance(found, Skipped) else _document(found, mark, memory.config)
            )
    return memory.sync(
        read,
        collection=COLLECTION,
        type="markdown",
        alive=lambda uri: (root / path_of(uri)).exists(),
    )


def present(memory: Bethink) -> bool:
    """Whether there is anything to read."""
    if not memory.config.builtin_memory:
        return False
    return any(
        True
        for found in (rules(memory.project.worktree), auto_memory(memory.project.root))
        for _ in found
    )


def rules(root: Path) -> Iterator[Found | Skipped]:
    """The files with rules for agents in a project, and what they import from inside it."""
    from bethink.ingest.files import Found, walk

    seen: set[Path] = set()
    waiting = [(root / name, 0) for name in FILES]
    for folder in FOLDERS:
        if (path := _inside(root, root / folder)) is not None and path.is_dir():
            waiting += [
                (found.path, 0) for found in walk(path, root, SUFFIXES) if isinstance(found, Found)
            ]
    while waiting and len(seen) < MOST:
        path, depth = waiting.pop(0)
        real = _inside(root, path)
        if real is None or real in seen or not real.is_file():
            continue
        seen.add(real)
        yield from walk(path, root)
        if depth < DEEPEST:
            waiting += [(named, depth + 1) for named in _imports(real, root)]


def _inside(root: Path, path: Path) -> Path | None:
    """Where a file of the project really is. One that a link leads to elsewhere is somebody's, not the project's."""
    try:
        return textfile.inside(root, path)
    except BethinkError:
        return None


def _imports(path: Path, root: Path) -> list[Path]:
    """The files that a file of rules brings in by `@path`, outside of code."""
    try:
        text = path.read_bytes()[:LARGEST].decode("utf-8", "replace")
    except OSError:
        return []
    named, fenced = [], False
    for line in text.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and "@" in line:
            named += _IMPORT.findall(_CODE.sub("", line))
    return [
        path.parent / name
        for name in dict.fromkeys(name.rstrip(".") for name in named)
        if name.endswith(IMPORTED)
    ]


def auto_memory(root: Path) -> Iterator[Found | Skipped]:
    """The files of Claude Code's auto memory about a project; all its worktrees share them."""
    from bethink.ingest.files import walk

    projects = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude") / "projects"
    for name in _folders(projects, slug(root)):
        folder = projects / name / "memory"
        if folder.is_dir():
            yield from walk(folder, root, SUFFIXES)


def slug(root: Path) -> str:
    """The name under which Claude Code keeps a directory: everything but letters and digits is a dash, counted as UTF-16 does."""
    plain = unicodedata.normalize("NFC", str(root.resolve()))
    return "".join(
        each if each.isascii() and each.isalnum() else "-" * (2 if ord(each) > 0xFFFF else 1)
        for each in plain
    )


def _folders(projects: Path, name: str) -> list[str]:
    """A long name is cut, and ends in a hash that not all versions make alike."""
    if len(name) <= LONGEST_SLUG:
        return [name]
    try:
        return sorted(
            one
            for one in os.listdir(projects)  # noqa: PTH208
            if one.startswith(name[:LONGEST_SLUG] + "-")
        )
    except OSError:
        return []


def _document(found: Found, mark: str, config: Any) -> Document | Skipped:
    from bethink.ingest.files import read_text
    from bethink.ingest.sync import Document, Skipped

    read = read_text(found, LARGEST)
    if isinstance(read, Skipped):
        return read._replace(uri=BUILTIN + found.uri)
    text, hash = read
    manner = f":b{VERSION}:{config.chunk_size}:{config.chunk_overlap}"
    passages = partial(_passages, text, found.uri, mark, config.chunk_size, config.chunk_overlap)
    return Document(BUILTIN + found.uri, hash + manner, passages, {"builtin": mark})


def _passages(text: str, uri: str, mark: str, size: int, overlap: int) -> list[Passage]:
    from bethink.ingest import markdown

    kind = _kind(markdown.parse(text).frontmatter) if mark == AUTO else None
    found = markdown.taken_apart(_without_own(text), uri, "headers", size, overlap, None)
    return [
        passage._replace(
            kind=kind if kind and passage.kind == "document" else passage.kind,
            metadata={**passage.metadata, "builtin": mark},
        )
        for passage in found
    ]


def _kind(fields: Mapping[str, Any]) -> str | None:
    told = fields.get("metadata")
    return KINDS.get(str(told.get("type")) if isinstance(told, dict) else str(fields.get("type")))


def _without_own(text: str) -> str:
    """A text without the rules that `bethink promote` put there, every other line still where it was."""
    from bethink.features.promotion import BEGIN, END

    kept: list[str] = []
    own = False
    for line in text.splitlines(keepends=True):
        own = own or line.strip() == BEGIN
        kept.append("\n" if own else line)
        own = own and line.strip() != END
    return "".join(kept)
