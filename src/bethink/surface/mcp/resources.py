"""What a client can read by name: the project's knowledge files as they are, and memories.

A path comes from outside. It is refused by its form (parents, roots, drives, NUL, names that Windows keeps for devices, in any
encoding), and what is left must lead, links followed, to a Markdown file inside a knowledge folder. Nothing here speaks the protocol.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote as encode
from urllib.parse import unquote_to_bytes

from bethink.errors import InvalidInput, NotFound
from bethink.features import knowledge
from bethink.ingest.files import Found, read_text, walk
from bethink.ingest.markdown import parse
from bethink.ingest.sync import Skipped
from bethink.surface.mcp.schemas import FILE, MEMORY
from bethink.surface.render import quote_items, quote_memories

if TYPE_CHECKING:
    from bethink.api import Bethink

PAGE = 100
FILES = 5000  # of the knowledge folders that are listed
LONGEST_PATH = 1000
LARGEST = 2_000_000  # bytes of a file
WHOLE = 1_000_000  # tokens: a resource is not cut

_DEVICE = re.compile(
    r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(?:\..*)?", re.IGNORECASE
)
_STILL_ENCODED = re.compile(r"%(?:25|2e|2f|5c|00|3a)", re.IGNORECASE)
_MAY_ASK = re.compile(r"(?i)(?:index|memory|bethink)[\w-]{0,8}[\"']?\s{0,8}[:=]")  # to be left out
_CURSOR = re.compile(r"from-([1-9][0-9]{0,6})")


def list_page(memory: Bethink, cursor: str | None) -> tuple[list[dict[str, Any]], str | None]:
    """A page of what there is, and the cursor of the next one."""
    start = 0
    if cursor is not None:
        found = _CURSOR.fullmatch(cursor)
        if not found:
            raise InvalidInput(
                f"'{cursor[:60]}' is not a cursor of this list.", "Start again without one."
            )
        start = int(found[1])
    page = list(islice(_list_all(memory), start, start + PAGE + 1))
    return page[:PAGE], f"from-{start + PAGE}" if len(page) > PAGE else None


def _list_all(memory: Bethink) -> Iterator[dict[str, Any]]:
    for name, file in islice(_files(memory).items(), FILES):
        yield {
            "uri": FILE + encode(name),
            "name": name,
            "description": "knowledge file",
            "mime_type": "text/markdown",
            "size": file.stat().st_size if file.exists() else None,
        }


def read(memory: Bethink, uri: str) -> tuple[str, str]:
    """The type and the text of a resource."""
    if uri.startswith(MEMORY):
        name = unquote_to_bytes(uri[len(MEMORY) :][:LONGEST_PATH]).decode("utf-8", "replace")
        one = memory.one(name)
        return "text/plain", quote_items(quote_memories(memory, [one], WHOLE))
    if uri.startswith(FILE):
        return "text/markdown", _text(memory, uri)
    raise NotFound(f"There is no resource {uri[:200]}.", f"They begin with {FILE} or {MEMORY}.")


# Files


def check_path(path: str) -> str:
    """A path that cannot lead out of a folder by its form, decoded once."""
    if len(path) > LONGEST_PATH:
        raise InvalidInput(
            f"The path is {len(path):,} characters long; {LONGEST_PATH:,} are the most.",
            "Name a knowledge file.",
        )
    try:
        plain = unquote_to_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        raise _refuse(path, "it is no UTF-8") from None
    if why := _unfit(plain):
        raise _refuse(path, why)
    return plain


def _unfit(path: str) -> str | None:
    """Why a path is not followed, if it is not."""
    if _STILL_ENCODED.search(path):
        return "it is encoded twice"
    if not path.isprintable():
        return "it holds a control character"
    if "\\" in path or ":" in path or path.startswith(("/", "~")):
        return "it is not relative to a knowledge folder"
    for part in path.split("/"):
        if part in ("", ".", "..") or part != part.rstrip(". ") or _DEVICE.fullmatch(part):
            return f"'{part}' cannot be part of it"
    return None


def _refuse(path: str, why: str) -> InvalidInput:
    shown = "".join(character if character.isprintable() else "�" for character in path[:200])
    return InvalidInput(
        f"The path '{shown}' is refused: {why}.", "resources/list names the knowledge files."
    )


def _text(memory: Bethink, uri: str) -> str:
    name = check_path(uri[len(FILE) :])
    found = read_text(Found(_inside(memory, name), name), LARGEST)
    if isinstance(found, Skipped):
        raise NotFound(
            f"The knowledge file '{name}' {found.reason}.",
            "resources/list names those that can be read.",
        )
    if not parse(found[0]).directives.get("index", True):
        raise NotFound(f"The knowledge file '{name}' asks to be left out.", "It says index: false.")
    return found[0]


def _inside(memory: Bethink, name: str) -> Path:
    """The file of a checked path, below a knowledge folder or below the project, with no link on the way out."""
    folders = [folder.resolve() for folder in knowledge.folders(memory)]
    for base in (
        *folders,
        *(folder.parent for folder in folders if folder.is_file()),
        memory.project.worktree,
    ):
        try:
            real = (base / name).resolve()
            for folder in folders:
                if real.is_relative_to(folder) and real.is_file() and _readable(real, folder):
                    return real
        except (OSError, RuntimeError, ValueError):  # a circle of links, a name that is too long
            continue
    raise NotFound(f"There is no knowledge file '{name}'.", "resources/list names them.")


def _readable(file: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
    return not hidden and file.suffix.lower() in knowledge.MARKDOWN


def _files(memory: Bethink) -> dict[str, Path]:
    """Name → file, in order. A name counts from its knowledge folder; where another folder has it too, from the project's root."""
    root = memory.project.worktree
    files: dict[str, Path] = {}
    for folder in knowledge.folders(memory):
        top = folder.resolve()
        base = top if top.is_dir() else top.parent
        for found in islice(walk(folder, root, knowledge.MARKDOWN), FILES):
            if not isinstance(found, Found):
                continue
            real = found.path.resolve()
            if not real.is_relative_to(top) or not _readable(real, top):
                continue
            name = real.relative_to(base).as_posix()
            name = name if name not in files else found.uri
            if _unfit(name) is None and _is_offered(real, name):
                files.setdefault(name, real)
    return files


def _is_offered(file: Path, name: str) -> bool:
    """Whether a file can be read and does not ask to be left out."""
    found = read_text(Found(file, name), LARGEST)
    if isinstance(found, Skipped) or not _MAY_ASK.search(found[0]):
        return True
    return bool(parse(found[0]).directives.get("index", True))
