"""What the pages beyond the search need besides the story: something to decide about in every queue, a container, a crowd."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bethink.api import Bethink
from bethink.text import new_id
from bethink.types import Batch, Entity, Entry, Memory, Passage, Relation, Session, Source, Span

IMPORTED = "The vendor says that its sandbox accepts any card number"
USEFUL = "Run the migrations before the deploy, never after it"
CONTAINED = "Routes are declared in one table"


def decide_about(project: Path) -> dict[str, str]:
    """Something that nobody vouches for, and something that proved useful."""
    with Bethink(directory=project) as memory:
        memory.ingest([(Source("vendor/notes.txt", "import"), [Passage(IMPORTED, kind="fact")])])
        useful = memory.add(USEFUL, kind="gotcha").id
        for _ in range(3):
            memory.vote(useful, 1)
    with Bethink(directory=project, container="router") as inside:
        inside.add(CONTAINED, kind="architecture")
    return {"useful": useful}


def crowd(memory: Bethink, count: int) -> list[str]:
    """Many memories about few things, each related to the next, for a graph of any size."""
    at = datetime.now(UTC)
    made = [
        Memory(
            new_id(),
            memory.scope,
            kind=("decision", "fact", "gotcha")[number % 3],
            summary=f"Part {number} of the crowd",
            content=f"Part {number} of the crowd does thing {number * 7 % 101}",
            created_at=at,
            updated_at=at,
            entities=(Entity("Crowd", "project"), Entity(f"Group {number % 40}", "concept")),
        )
        for number in range(count)
    ]
    near = tuple(
        Relation(one.id, other.id, "relates_to") for one, other in itertools.pairwise(made)
    )
    memory.store.write(Batch(at=at, add=tuple(Entry(one, (), False) for one in made), relate=near))
    return [one.id for one in made]


def long_talk(memory: Bethink, id: str, days: float, topics: Sequence[str], turns: int = 2) -> None:
    """A conversation with several topics, and in each of them questions and answers."""
    at, scope = datetime.now(UTC) - timedelta(days=days), memory.scope
    uri = f"/transcripts/{id}.jsonl"
    spans, said = [], []
    for place, name in enumerate(topics):
        first = place * turns * 2 + 1
        lines = (first, first + turns * 2 * (place + 1))
        about = f"What was said about: {name}"
        span = Span(f"{id}-{place}", scope, id, None, name, about, lines, 0, at)
        spans.append((span, ()))
        for step in range(turns * 2):
            role = "assistant" if step % 2 else "user"
            told = {"role": role, "turn": f"{id}-{place}-{step}", "host": "claude"}
            text = f"{role} on {name}, number {step}"
            where = {"session": id, "span": span.id, "source": uri, "source_type": "transcript"}
            where |= {"lines": (first + step, first + step), "position": first + step}
            made = Memory(new_id(), scope, "context", text, text, at, at, metadata=told, **where)
            said.append(Entry(made, (), False))
    title, end = f"Talk about {topics[0].lower()}", at + timedelta(hours=1)
    batch = Batch(
        at=at,
        sources=((scope, Source(uri, "transcript")),),
        sessions=(Session(id, scope, "claude", title, uri, at, end),),
        spans=tuple(spans),
        add=tuple(said),
    )
    memory.store.write(batch)
