"""Resources for agents: the project's knowledge files, and memories, read by name.

A name comes from outside and is never made a path: it has to be that of a Markdown file that was found below a knowledge folder, where no link
is followed.
"""

from itertools import islice
from pathlib import Path
from urllib.parse import quote, unquote

from bethink.api import Bethink
from bethink.app.mcp import FILE, MEMORY
from bethink.app.render import quote_items, show_memories
from bethink.errors import NotFound
from bethink.features import knowledge
from bethink.ingest.files import Found, read_text, walk
from bethink.ingest.markdown import parse
from bethink.ingest.sync import Skipped
from bethink.model import Json
from bethink.outgoing import Block, clear_name, fence_text

_FILES = 5000  # per knowledge folder that can be read by name
FILES_LISTED = 1000  # the list has one page
_LARGEST = 2_000_000  # bytes of a file
UNCUT = 1_000_000  # tokens; a resource is not cut


def list_resources(memory: Bethink) -> list[Json]:
    return [
        {
            "uri": FILE + quote(name),
            "name": name,
            "description": "knowledge file",
            "mime_type": "text/markdown",
            "size": file.stat().st_size,
        }
        for name, file in islice(_find_files(memory).items(), FILES_LISTED)
        if _read_offered(file, name)
    ]


def read_resource(memory: Bethink, uri: str) -> tuple[str, Block]:
    """Return the type and text of a resource. Files come from disk, so nothing has redacted them before."""
    if uri.startswith(MEMORY):
        one = memory.one(unquote(uri[len(MEMORY) :]))
        return "text/plain", quote_items(show_memories(memory, [one], UNCUT))
    name = unquote(uri[len(FILE) :]) if uri.startswith(FILE) else ""
    file = _find_files(memory).get(name)
    text = _read_offered(file, name) if file else None
    if text is None:
        raise NotFound(
            f"There is no resource {quote(uri[:200], safe=':/%')}.",
            "resources/list names the knowledge files.",
        )
    return "text/markdown", fence_text(text)


def _find_files(memory: Bethink) -> dict[str, Path]:
    """Return the files by name, in order.

    A name is relative to its knowledge folder, or to the project's root if another folder has the same name. Clients see it, so secrets and
    line breaks are removed.
    """
    files: dict[str, Path] = {}
    for folder in knowledge.find_folders(memory.project.worktree, memory.config):
        base = folder if folder.is_dir() else folder.parent
        for found in islice(walk(folder, memory.project.worktree, knowledge.MARKDOWN), _FILES):
            if isinstance(found, Skipped) or found.path.suffix.lower() not in knowledge.MARKDOWN:
                continue
            name = found.path.relative_to(base).as_posix()
            if not any(part.startswith(".") for part in name.split("/")):
                shown = clear_name(name)
                files.setdefault(clear_name(found.uri) if shown in files else shown, found.path)
    return files


def _read_offered(file: Path, name: str) -> str | None:
    """Return the text of a file, unless it cannot be read or is excluded by `index: false`."""
    found = read_text(Found(file, name), _LARGEST)
    if isinstance(found, Skipped) or not parse(found[0]).directives.get("index", True):
        return None
    return found[0]
