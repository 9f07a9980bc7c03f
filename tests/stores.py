"""What the tests of the stores share: memories made by hand, filters, searches by one signal, and a look at everything."""

import os
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw

import bethink
from bethink import model
from bethink.embed.hashing import HashingEmbedder
from bethink.model import PERSONAL, Change, Entity, Entry, Filter, Memory, Query, Receipt, Relation
from bethink.recall.query import parse
from bethink.store.base import Store
from bethink.store.places import turn_identity
from bethink.store.transfer import PARTS, Tally, count_items, digest, rename_scope
from bethink.text import new_id

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
    usual = {"id": new_id(), "updated_at": given["created_at"], **given}
    return Memory(content=content, content_hash=content_hash(content), **usual)


def vectors_of(memory: Memory) -> Any:
    return EMBEDDER.documents([memory.content])[0]


def vector(text: str) -> Any:
    return EMBEDDER.query(text)


def write(store: Store, at: datetime = NOW, **parts: Any) -> Receipt:
    return store.write(model.Batch(at=at, **parts))


def put(store: Store, *memories: Memory, embed=True, unique=True, **parts: Any) -> Receipt:
    """Writes memories as one batch, with vectors. Passages of a document are never `unique`: that is for what was told."""

    def entry(memory: Memory) -> Entry:
        vectors = vectors_of(memory) if embed else ()
        return Entry(memory, vectors, unique and memory.source_type != "markdown")

    return write(store, add=tuple(map(entry, memories)), model=MODEL if embed else None, **parts)


def tell(store: Store, *texts: str, **fields: Any) -> list[Memory]:
    """Writes a memory for each text, all with these fields."""
    memories = [make(text, **fields) for text in texts]
    put(store, *memories)
    return memories


def seen(*scopes: str, **fields: Any) -> Filter:
    return Filter(scopes=scopes or (HERE,), now=NOW, **fields)


def everything(*scopes: str) -> Filter:
    """A filter that hides nothing in these scopes."""
    hidden = ("deleted", "expired", "superseded", "quarantined")
    return seen(*scopes, **{f"include_{what}": True for what in hidden})


def child_environment(**more: str) -> dict[str, str]:
    """For another process that is to import the same sources as this one."""
    paths = str(Path(bethink.__file__).parent.parent), os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **more}


def pick(one, names: str) -> tuple:
    """The values of some attributes, to compare them at once."""
    return tuple(getattr(one, name) for name in names.split())


def ids(memories) -> set[str]:
    return {memory.id for memory in memories}


def change(store: Store, id: str, action="update", at=NOW, actor="user", **fields) -> None:
    write(store, at, actor=actor, change=(Change(id, action, fields),))


def edit(store: Store, memory: Memory, text: str, **how) -> None:
    change(store, memory.id, content=text, content_hash=content_hash(text), **how)


def forget(store: Store, memory: Memory, at=NOW) -> None:
    change(store, memory.id, "forget", at=at, deleted_at=at)


def purge(store: Store, *memories: Memory, **parts) -> Receipt:
    return write(store, purge=tuple(memory.id for memory in memories), **parts)


def replace(store: Store, new: Memory, old: Memory, at=NOW) -> None:
    """The new memory takes the place of the old one."""
    changes = (Change(old.id, "supersede", {"superseded_by": new.id, "valid_to": new.created_at}),)
    write(store, at=at, change=changes, relate=(Relation(new.id, old.id, "supersedes"),))


def by_words(store: Store, query: str | Query, filter=None, limit: int = LIMIT) -> list[str]:
    """Ids that the words of a query find, best first, after the filter had its say."""
    asked = parse(query, NOW) if isinstance(query, str) else query
    filter = filter or seen()
    return _visible(store, store.keyword(asked, filter, limit), filter)


def by_meaning(store: Store, text: str, filter=None, limit: int = LIMIT) -> list[str]:
    filter = filter or seen()
    return _visible(store, store.nearest(vector(text), MODEL, filter, limit), filter)


def _visible(store: Store, ranking, filter) -> list[str]:
    keys = [key for key, _ in ranking]
    shown = {candidate.key for candidate in store.candidates(keys, filter, model.Words(), ())}
    loaded = store.load(keys)
    return [loaded[key].id for key in keys if key in shown]


def term(text: str, **fields) -> Query:
    return Query(text, text, (model.Term(text, **fields),))


def snapshot(store: Store) -> tuple:
    """Everything a store can be asked for, so that two moments can be compared."""
    scopes = (HERE, OTHER, PERSONAL)
    memories = list(store.scan(everything(*scopes)))
    known = [memory.id for memory in memories]
    words = model.Words(("owl", "text", "thing", "redi", "of"))
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
        source_of(store, HERE, "docs/a.md"),
        sorted(store.scopes()),
    )


def files(path: Path) -> list[Path]:
    """Those of a SQLite database."""
    every = [Path(f"{path}{suffix}") for suffix in ("", "-wal", "-shm", "-journal")]
    return [file for file in every if file.exists()]


def raw(path: Path, sql: str, values=()) -> list:
    """Behind the store's back, through the same library."""
    connection = apsw.Connection(str(path))
    try:
        return list(connection.execute(sql, values))
    finally:
        connection.close()


PAGE = {"source": "docs/a.md", "source_type": "markdown", "section": "Manual", "kind": "document"}


SOMETHING_EVERYTHING = [
    (
        "told",
        "Sessions are kept in Redis, not in cookies",
        {
            "kind": "decision",
            "importance": 7.5,
            "confidence": 0.25,
            "valid_from": day(2),
            "expires_at": day(60),
            "tags": ("auth", "Größe"),
            "keywords": ("redis",),
            "entities": (Entity("Redis", "technology"), Entity("cookies")),
            "metadata": {"b": 1, "a": [1, 2.5, None, "é"]},
        },
    ),
    ("old", "Deploy on Fridays", {}),
    ("new", "Deploy on Mondays", {}),
    ("hidden", "A wrong guess", {}),
    ("gone", "gone", {"scope": PERSONAL}),
    ("other", "Sessions are kept in Redis, not in cookies", {"scope": OTHER}),
    ("page", "Passage 0 of the manual 🦉", {**PAGE, "lines": (0, 3), "position": 0}),
    ("second page", "Passage 1 of the manual 🦉", {**PAGE, "lines": (1, 4), "position": 1}),
    ("third page", "Passage 2 of the manual 🦉", {**PAGE, "lines": (2, 5), "position": 2}),
    (
        "turn",
        "Shall we use Redis?",
        {
            "kind": "context",
            "source": "talk.jsonl",
            "source_type": "transcript",
            "session": "session-1",
            "span": "span-1",
            "metadata": {"host": "claude", "turn": "first"},
        },
    ),
]


def fill(store: Store) -> dict[str, Memory]:
    """Something of everything that a store keeps, and how it came about."""
    table = SOMETHING_EVERYTHING
    known = {name: make(text, **fields) for name, text, fields in table}
    told, old, new, hidden, gone, _, *pages, turn = known.values()
    put(store, *list(known.values())[:6], scopes={HERE: ("shop", "/code/shop")})
    read = model.Source("docs/a.md", "markdown", "abc", 9, {"collection": "docs"})
    put(store, *pages, sources=((HERE, read),))
    talk = ("session-1", HERE, "claude", "Redis", "talk.jsonl", day(3), day(4), {"model": "x"})
    topic = ("Redis or not", "We talked of Redis", (1, 20), 0, day(3), {"open": True})
    write(
        store,
        model=MODEL,
        sessions=(model.Session(*talk),),
        spans=((model.Span("span-1", HERE, "session-1", None, *topic), [vector("Redis or not")]),),
        add=(Entry(turn, vectors_of(turn), False, turn_identity("claude", "first")),),
        sources=((HERE, model.Source("talk.jsonl", "transcript", None, 1234, {"state": [1]})),),
    )
    edit(store, told, "Sessions are kept in Valkey", actor="agent:x")
    made = {told.id: [vector("Sessions are kept in Valkey")]}
    write(store, at=day(25), model=MODEL, vectors=made)
    write(store, change=(Change(told.id, "vote", {"vote": 2.5}),), access=(told.id,))
    forget(store, hidden, day(22))
    replace(store, new, old)
    write(store, relate=(Relation(told.id, turn.id, "relates_to"),))
    purge(store, gone)
    return known


def source_of(store: Store, scope: str, uri: str):
    return next((one for one in store.sources(scope) if one.uri == uri), None)


def tally(store: Store, names=None) -> dict[str, Tally]:
    """What a store holds, part by part, as counts and digests, under other names of its scopes."""
    return {
        part: count_items(
            [digest(part, rename_scope(item, names or {})) for item in store.items(part)]
        )
        for part in PARTS
    }
