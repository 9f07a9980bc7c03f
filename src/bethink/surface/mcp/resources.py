"""What a client can read by name: the project's knowledge files as they are, and memories.

A name comes from outside, and is never made a path: it has to be that of a Markdown file which was found below a knowledge folder,
links followed. Nothing here speaks the protocol.
"""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from bethink.errors import InvalidInput, NotFound
from bethink.features import knowledge
from bethink.ingest.files import Found, read_text, walk
from bethink.ingest.markdown import parse
from bethink.ingest.sync import Skipped
from bethink.surface.mcp.schemas import FILE, MEMORY
from bethink.surface.render import quote_items, show_memories

if TYPE_CHECKING:
    from bethink.api import Bethink

PAGE = 100
FILES = 5000  # of a knowledge folder that are listed
LARGEST = 2_000_000  # bytes of a file
WHOLE = 1_000_000  # tokens: a resource is not cut


def list_page(memory: Bethink, cursor: str | None) -> tuple[list[dict[str, Any]], str | None]:
    """A page of what there is, and the cursor of the next one."""
    start = re.fullmatch(r"from-([1-9][0-9]{0,6})", cursor or "from-1")
    if not start:
        raise InvalidInput("This is not a cursor of this list.", "Start again without one.")
    first = int(start[1]) - 1
    offered = (
        (name, file) for name, file in _find_files(memory).items() if _read_offered(file, name)
    )
    page = list(islice(offered, first, first + PAGE + 1))
    listed = [
        {
            "uri": FILE + quote(name),
            "name": name,
            "description": "knowledge file",
            "mime_type": "text/markdown",
            "size": file.stat().st_size,
        }
        for name, file in page[:PAGE]
    ]
    return listed, f"from-{first + PAGE + 1}" if len(page) > PAGE else None


def read(memory: Bethink, uri: str) -> tuple[str, str]:
    """The type and the text of a resource."""
    if uri.startswith(MEMORY):
        one = memory.one(unquote(uri[len(MEMORY) :]))
        return "text/plain", quote_items(show_memories(memory, [one], WHOLE))
    name = unquote(uri[len(FILE) :]) if uri.startswith(FILE) else ""
    file = _find_files(memory).get(name)
    text = _read_offered(file, name) if file else None
    if text is None:
        raise NotFound(
            f"There is no resource {quote(uri[:200], safe=':/%')}.",
            "resources/list names the knowledge files.",
        )
    return "text/markdown", text


def _find_files(memory: Bethink) -> dict[str, Path]:
    """Name → file, in order. A name counts from its knowledge folder; where another folder has it too, from the project's root."""
    files: dict[str, Path] = {}
    for folder in knowledge.folders(memory):
        top = folder.resolve()
        base = top if top.is_dir() else top.parent
        for found in islice(walk(folder, memory.project.worktree, knowledge.MARKDOWN), FILES):
            real = found.path.resolve() if isinstance(found, Found) else base.parent
            if isinstance(found, Found) and real.is_relative_to(top):
                name = real.relative_to(base).as_posix()
                is_hidden = any(part.startswith(".") for part in name.split("/"))
                if not is_hidden and real.suffix.lower() in knowledge.MARKDOWN:
                    files.setdefault(name if name not in files else found.uri, real)
    return files


def _read_offered(file: Path, name: str) -> str | None:
    """The text of a file, unless it cannot be read or asks to be left out."""
    found = read_text(Found(file, name), LARGEST)
    if isinstance(found, Skipped) or not parse(found[0]).directives.get("index", True):
        return None
    return found[0]
