"""What the tests of migrating, syncing and serving share: a store with something of everything, and what a store says of itself."""

from __future__ import annotations

from stores import (
    EMBEDDER,
    HERE,
    MODEL,
    OTHER,
    change,
    content_hash,
    day,
    make,
    put,
    vectors_of,
    write,
)

from bethink.store.base import Store
from bethink.store.places import turn_identity
from bethink.store.transfer import PARTS, Tally, digest, rename_scope
from bethink.types import PERSONAL, Change, Entity, Entry, Memory, Relation, Session, Source, Span

TURN = turn_identity("claude", "first")


def fill(store: Store) -> dict[str, Memory]:
    """Something of everything that a store keeps, and how it came about."""
    told = make(
        "Sessions are kept in Redis, not in cookies",
        kind="decision",
        importance=7.5,
        confidence=0.25,
        valid_from=day(2),
        expires_at=day(60),
        tags=("auth", "Größe"),
        keywords=("redis",),
        entities=(Entity("Redis", "technology"), Entity("cookies")),
        metadata={"b": 1, "a": [1, 2.5, None, "é"]},
    )
    old, new = make("Deploy on Fridays"), make("Deploy on Mondays")
    hidden, gone = make("A wrong guess"), make("gone", scope=PERSONAL)
    page = [
        make(
            f"Passage {at} of the manual 🦉",
            source="docs/a.md",
            source_type="markdown",
            lines=(at, at + 3),
            position=at,
            section="Manual",
            kind="document",
        )
        for at in range(3)
    ]
    turn = make(
        "Shall we use Redis?",
        kind="context",
        source="talk.jsonl",
        source_type="transcript",
        session="session-1",
        span="span-1",
        metadata={"host": "claude", "turn": "first"},
    )
    other = make("Sessions are kept in Redis, not in cookies", scope=OTHER)
    put(store, told, old, new, hidden, gone, other, scopes={HERE: ("shop", "/code/shop")})
    put(
        store,
        *page,
        unique=False,
        sources=((HERE, Source("docs/a.md", "markdown", "abc", 9, {"collection": "docs"})),),
    )
    session = Session(
        "session-1", HERE, "claude", "Redis", "talk.jsonl", day(3), day(4), {"model": "x"}
    )
    span = Span(
        "span-1",
        HERE,
        "session-1",
        None,
        "Redis or not",
        "We talked of Redis",
        (1, 20),
        0,
        day(3),
        {"open": True},
    )
    write(
        store,
        model=MODEL,
        sessions=(session,),
        spans=((span, EMBEDDER.documents(["Redis or not"])[0]),),
        add=(Entry(turn, vectors_of(turn), False, TURN),),
        sources=((HERE, Source("talk.jsonl", "transcript", None, 1234, {"state": [1]})),),
    )
    change(
        store,
        told.id,
        content="Sessions are kept in Valkey",
        content_hash=content_hash("Sessions are kept in Valkey"),
        actor="agent:x",
    )
    write(
        store,
        at=day(25),
        model=MODEL,
        vectors={told.id: EMBEDDER.documents(["Sessions are kept in Valkey"])[0]},
    )
    write(store, change=(Change(told.id, "vote", {"vote": 2.5}),), access=(told.id,))
    change(store, hidden.id, "forget", deleted_at=day(22))
    write(
        store,
        relate=(Relation(new.id, old.id, "supersedes"), Relation(told.id, turn.id, "relates_to")),
        change=(Change(old.id, "supersede", {"superseded_by": new.id, "valid_to": day(8)}),),
    )
    write(store, purge=(gone.id,))
    return {
        "told": told,
        "old": old,
        "new": new,
        "hidden": hidden,
        "gone": gone,
        "turn": turn,
        "other": other,
        "page": page[0],
    }


def tallies(store: Store, names=None) -> dict[str, Tally]:
    """What a store holds, part by part, as counts and digests, under other names of its scopes."""
    return {
        part: Tally().plus(
            digest(part, rename_scope(item, names or {})) for item in store.items(part)
        )
        for part in PARTS
    }
