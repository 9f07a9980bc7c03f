"""What the tests of the stores share: memories made by hand, filters, searches by one signal, and a look at everything."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw

import bethink
from bethink.embed.hashing import HashingEmbedder
from bethink.recall.query import parse
from bethink.store.base import Store
from bethink.text import new_id
from bethink.types import (
    PERSONAL,
    Batch,
    Change,
    Entry,
    Filter,
    Memory,
    Query,
    Receipt,
    Term,
    Words,
)

NOW = datetime(2026, 3, 20, 12, 0, tzinfo=UTC)
HERE, OTHER = "project:here", "project:other"
LIMIT = 100
EMBEDDER = HashingEmbedder(64)
MODEL = EMBEDDER.model


def day(number: int) -> datetime:
    """A morning of March 2026; NOW is the twentieth, at noon."""
    return datetime(2026, 3, 1, 9, 0, tzinfo=UTC) + timedelta(days=number - 1)


def content_hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def make(content: str, **fields: Any) -> Memory:
    """A memory with sensible values for whatever a test does not care about."""
    given = {"scope": HERE, "kind": "fact", "summary": content[:40], "created_at": day(1), **fields}
    given.setdefault("updated_at", given["created_at"])
    return Memory(
        id=given.pop("id", None) or new_id(),
        content=content,
        content_hash=content_hash(content),
        **given,
    )


def vectors_of(memory: Memory) -> Any:
    return EMBEDDER.documents([memory.content])[0]


def vector(text: str) -> Any:
    return EMBEDDER.query(text)


def write(store: Store, at: datetime = NOW, **parts: Any) -> Receipt:
    return store.write(Batch(at=at, **parts))


def put(
    store: Store, *memories: Memory, embed: bool = True, unique: bool = True, **parts: Any
) -> Receipt:
    """Writes memories as one batch, with vectors. Passages of a document are never `unique`: that is for what was told."""
    entries = tuple(
        Entry(
            memory, vectors_of(memory) if embed else (), unique and memory.source_type != "markdown"
        )
        for memory in memories
    )
    return write(store, add=entries, model=MODEL if embed else None, **parts)


def everything(*scopes: str) -> Filter:
    """A filter that hides nothing in these scopes."""
    return Filter(
        scopes=scopes or (HERE,),
        now=NOW,
        include_deleted=True,
        include_expired=True,
        include_superseded=True,
        include_quarantined=True,
    )


def seen(*scopes: str, **fields: Any) -> Filter:
    return Filter(scopes=scopes or (HERE,), now=NOW, **fields)


def child_environment(**more: str) -> dict[str, str]:
    """For another process that is to import the same sources as this one."""
    source = str(Path(bethink.__file__).parent.parent)
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH")))),
        **more,
    }


def pick(one, names: str) -> tuple:
    """The values of some attributes, to compare them at once."""
    return tuple(getattr(one, name) for name in names.split())


def ids(memories) -> set[str]:
    return {memory.id for memory in memories}


def change(
    store: Store, id: str, action: str = "update", at=NOW, actor: str = "user", **fields
) -> None:
    write(store, at, actor=actor, change=(Change(id, action, fields),))


def by_words(store: Store, query: str | Query, filter=None, limit: int = LIMIT) -> list[str]:
    """Ids that the words of a query find, best first, after the filter had its say."""
    asked = parse(query, NOW) if isinstance(query, str) else query
    filter = filter or seen()
    keys = [key for key, _ in store.keyword(asked, filter, limit).items]
    return _visible(store, keys, filter)


def by_meaning(store: Store, text: str, filter=None, limit: int = LIMIT) -> list[str]:
    filter = filter or seen()
    return _visible(
        store, [key for key, _ in store.nearest(vector(text), MODEL, filter, limit).items], filter
    )


def _visible(store: Store, keys: list[int], filter) -> list[str]:
    shown = {candidate.key for candidate in store.candidates(keys, filter, Words(), ())}
    loaded = store.load(keys)
    return [loaded[key].id for key in keys if key in shown]


def term(text: str, **fields) -> Query:
    return Query(text, text, (Term(text, **fields),))


def snapshot(store: Store) -> tuple:
    """Everything a store can be asked for, so that two moments can be compared."""
    scopes = (HERE, OTHER, PERSONAL)
    memories = list(store.scan(everything(*scopes)))
    known = [memory.id for memory in memories]
    words = Words(("owl", "text", "thing", "redi", "of"))
    return (
        memories,
        [[event._replace(number=0) for event in store.history(id)] for id in known],
        store.relations(known),
        store.statistics(words, scopes),
        round(store.cosines([], vector("owl"), MODEL, scopes)[1], 6),
        sorted(store.models()),
        by_words(store, "owl text thing redis of", everything(*scopes)),
        by_meaning(store, "owl text", everything(*scopes)),
        store.overview()._replace(database_bytes=0),
        store.find_purged([content_hash("gone")]),
        store.source(HERE, "docs/a.md"),
        sorted(store.scopes()),
    )


def files(path: Path) -> list[Path]:
    """Those of a SQLite database."""
    return [
        file
        for suffix in ("", "-wal", "-shm", "-journal")
        if (file := Path(f"{path}{suffix}")).exists()
    ]


def raw(path: Path, sql: str, values=()) -> list:
    """Behind the store's back, through the same library."""
    connection = apsw.Connection(str(path))
    try:
        return list(connection.execute(sql, values))
    finally:
        connection.close()
