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
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bethink.api import Bethink
from bethink.errors import InvalidInput
from bethink.features.promotion import BEGIN, END
from bethink.ingest import markdown
from bethink.ingest.files import Found, read_text, walk
from bethink.ingest.sync import Document, Skipped
from bethink.text import textfile
from bethink.types import BUILTIN, Passage, path_of

if TYPE_CHECKING:
    from bethink.config import Config
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
MOST = 100  # files of rules, with all that they import
LONGEST_SLUG = 200
KINDS = {"user": "preference", "feedback": "preference", "project": "fact", "reference": "document"}
_IMPORT = re.compile(r"(?:^|(?<=\s))@([\w~./\\-]{1,300})")
_CODE = re.compile(r"^[ \t]*(```|~~~)(?s:.)*?(?:^[ \t]*\1|\Z)|`[^`\n]{0,500}`", re.MULTILINE)
_OWN = re.compile(rf"^[ \t]*{BEGIN}[ \t\r]*$(?s:.)*?(?:^[ \t]*{END}[ \t\r]*$|\Z)", re.MULTILINE)


def sync(memory: Bethink) -> Synced:
    """Brings what the agents of this project remember by themselves in step with memory. Unchanged files cost next to nothing."""
    return memory.sync(
        (_read(found, mark, memory.config) for found, mark in _find_files(memory)),
        collection=COLLECTION,
        type="markdown",
        alive=lambda uri: (memory.project.worktree / path_of(uri)).exists(),
    )


def present(memory: Bethink) -> bool:
    """Whether there is anything to read."""
    return any(True for _ in _find_files(memory))


def _find_files(memory: Bethink) -> Iterator[tuple[Found | Skipped, str]]:
    """Each file with its mark; none where the setting switches all of this off."""
    if memory.config.builtin_memory:
        yield from ((found, RULES) for found in find_rules(memory.project.worktree))
        yield from ((found, AUTO) for found in find_auto_memory(memory.project.root))


def find_rules(root: Path) -> Iterator[Found | Skipped]:
    """The files with rules for agents in a project, and what they import from inside it."""
    seen: set[Path] = set()
    waiting = [root / name for name in FILES]
    for folder in FOLDERS:
        path = _follow_inside(root, root / folder)
        if path and path.is_dir():
            waiting += [one.path for one in walk(path, root, SUFFIXES) if isinstance(one, Found)]
    while waiting and len(seen) < MOST:
        path = waiting.pop(0)
        real = _follow_inside(root, path)
        if real and real not in seen and real.is_file():
            seen.add(real)
            yield from walk(path, root)
            waiting += _find_imports(real)


def _follow_inside(root: Path, path: Path) -> Path | None:
    """Where a file of the project really is. One that a link leads to elsewhere is somebody's, not the project's."""
    try:
        return textfile.inside(root, path)
    except InvalidInput:
        return None


def _find_imports(path: Path) -> list[Path]:
    """The files that a file of rules brings in by `@path`, outside of code."""
    read = read_text(Found(path, path.name), LARGEST)
    if isinstance(read, Skipped):
        return []
    named = _IMPORT.findall(_CODE.sub("", read[0]))
    names = dict.fromkeys(name.rstrip(".") for name in named)
    return [path.parent / name for name in names if name.endswith(IMPORTED)]


def find_auto_memory(root: Path) -> Iterator[Found | Skipped]:
    """The files of Claude Code's auto memory about a project; all its worktrees share them."""
    projects = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude") / "projects"
    name = slug(root)
    if len(name) > LONGEST_SLUG:  # it is cut, and ends in a hash that not all versions make alike
        name = f"{name[:LONGEST_SLUG]}-*"
    for folder in sorted(projects.glob(f"{name}/memory")):
        if folder.is_dir():
            yield from walk(folder, root, SUFFIXES)


def slug(root: Path) -> str:
    """The name under which Claude Code keeps a directory: everything but letters and digits is a dash, counted as UTF-16 does."""
    plain = unicodedata.normalize("NFC", str(root.resolve()))
    return re.sub(r"[^a-zA-Z0-9]", lambda found: "-" * (1 + (found[0] > "\uffff")), plain)


def _read(found: Found | Skipped, mark: str, config: Config) -> Document | Skipped:
    read = found if isinstance(found, Skipped) else read_text(found, LARGEST)
    uri = BUILTIN + found.uri
    if isinstance(read, Skipped):
        return read._replace(uri=uri)
    text, hash = read
    size, overlap = config.chunk_size, config.chunk_overlap
    passages = partial(_cut_into_passages, text, found.uri, mark, size, overlap)
    return Document(uri, f"{hash}:b{VERSION}:{size}:{overlap}", passages, {"builtin": mark})


def _cut_into_passages(text: str, uri: str, mark: str, size: int, overlap: int) -> list[Passage]:
    kind = None
    if mark == AUTO:
        fields = markdown.parse(text).frontmatter
        inner = fields.get("metadata")
        kind = KINDS.get(str((inner if isinstance(inner, dict) else fields).get("type")))
    # Rules that `bethink promote` put there are blank lines, so that every other line is where it was.
    text = _OWN.sub(lambda found: "\n" * found[0].count("\n"), text)
    return [
        passage._replace(
            kind=kind if kind and passage.kind == "document" else passage.kind,
            metadata={**passage.metadata, "builtin": mark},
        )
        for passage in markdown.taken_apart(text, uri, "headers", size, overlap, None)
    ]
