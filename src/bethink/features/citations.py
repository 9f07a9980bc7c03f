"""Stale citations: statements of a project that name a file which no longer exists."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bethink.ingest.rules import find_subjects
from bethink.model import STATEMENTS

if TYPE_CHECKING:
    from bethink.api import Bethink

_READ = 2000  # statements of a project that are looked at, the newest


class StaleCitation(NamedTuple):
    id: str
    file: str  # as the statement names it
    moved: str = ""  # the only file of that name that there is now


def find_missing(text: str, root: Path) -> list[str]:
    """List files that a text names with their folder and that do not exist below the root.

    A bare file name may be anywhere, so it does not count.
    """
    named = (name.removeprefix("./") for name in find_subjects(text).files)
    return [name for name in named if _is_inside(name) and not (root / name).exists()]


def _is_inside(name: str) -> bool:
    return "/" in name and not name.startswith(("/", "~", "../"))


def find_stale(memory: Bethink) -> list[StaleCitation]:
    """List statements of this project that cite a missing file below an existing top folder.

    The existing folder shows that a file of this project was meant.
    """
    from bethink.ingest.files import Found, walk

    root = memory.project.worktree
    wanted = memory.filter(kinds=STATEMENTS, scopes=memory.named_scopes)
    found = [
        (one.id, name)
        for one in memory.list(filter=wanted, limit=_READ)
        for name in find_missing(one.content, root)
        if (root / name.split("/")[0]).is_dir()
    ]
    if not found:
        return []
    places: dict[str, list[str]] = {}
    for file in walk(root, root):
        if isinstance(file, Found):
            places.setdefault(posixpath.basename(file.uri), []).append(file.uri)
    moved = {name: places.get(posixpath.basename(name), []) for _, name in found}
    return [
        StaleCitation(id, name, moved[name][0] if len(moved[name]) == 1 else "")
        for id, name in found
    ]
