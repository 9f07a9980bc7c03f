"""Analysis: what a project's files say about it, as a few passages per file, each with the lines that it was read from.

An analyzer is a function of a `Tree` that yields findings. It sees nothing else: no store, no clock, no network, and no process is
started. Words, patterns and tables are in `ingest/data`. What git remembers is read in `ingest/git.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from bethink.ingest.analyze import build, pages, routes
from bethink.ingest.analyze.pages import superseded_pairs as superseded_pairs
from bethink.ingest.analyze.tree import Finding, Tree
from bethink.ingest.files import Found
from bethink.ingest.sync import Document, Skipped
from bethink.types import Passage

VERSION = 4  # raised when the same files would be told differently
ANALYZERS: tuple[Callable[[Tree], Iterator[Finding]], ...] = (pages.analyze, build.analyze)


def documents(root: Path, found: Iterable[Found | Skipped]) -> Iterator[Document | Skipped]:
    """One document per file that has something to say, then what could not be read. `found` are all files of the project."""
    tree = Tree(root, found)
    by_path: dict[str, dict[str, Passage]] = {}
    parses = find_spec("tree_sitter") is not None
    for analyze in (*ANALYZERS, *((routes.analyze,) if parses else ())):
        for path, passage in analyze(tree):
            by_path.setdefault(path, {}).setdefault(passage.content, passage)
    for path in sorted(by_path):
        passages = sorted(by_path[path].values(), key=lambda passage: passage.lines or (0, 0))
        yield Document(tree.uri(path), _hash(passages), lambda passages=passages: passages)  # type: ignore[misc]
    for path, reason in sorted(tree.skipped.items()):
        if path not in by_path:
            yield Skipped(tree.uri(path), reason)
    if not parses:
        yield Skipped("analysis:", "routes need tree-sitter: pip install 'bethink[code]'")


def _hash(passages: Sequence[Passage]) -> str:
    told = [
        [*passage[:9], str(passage.created_at or ""), dict(passage.metadata)]
        for passage in passages
    ]
    text = json.dumps([VERSION, told], sort_keys=True, ensure_ascii=True)
    return sha256(text.encode()).hexdigest()
