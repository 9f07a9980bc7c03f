"""Conversations, the recipe: turns of a transcript → redact → shorten → embed → topics → ideas → relations → one Batch.

A page of turns, what was derived from it and how far the transcript was read go in together: a stop in between repeats the
page, and a message is known by its identity, so nothing doubles. Turns are kept word for word as evidence; ideas cite the
line they were said at. Nothing here writes: the batch is for the caller to put in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

from bethink.embed.base import Embedder
from bethink.hosts.base import Turn
from bethink.hosts.speech import shortened
from bethink.ingest import advice
from bethink.ingest import topics as topical
from bethink.ingest.compare import WriteOptions, compare
from bethink.ingest.extract import extract
from bethink.ingest.ideas import Idea, ideas
from bethink.ingest.pasted import is_mostly_pasted
from bethink.ingest.pipeline import clean, entries, fold, remembered, vectors_of
from bethink.ingest.redact import redact, redact_value
from bethink.ingest.titles import name, session_title, summarise
from bethink.ingest.vectors import Recent
from bethink.llm.base import Model
from bethink.store.base import Store
from bethink.store.places import topic_text
from bethink.text.ids import new_id
from bethink.types import (
    ASKED_IMPORTANCE,
    NOTHING,
    TRUST,
    Batch,
    Entity,
    Entry,
    Filter,
    Memory,
    Passage,
    Session,
    Source,
    Span,
    idea_position,
)

BEFORE = 6  # earlier turns that ideas and topics are read in the light of
FILES = 8  # files of a turn that it is filed under


class Talk(NamedTuple):
    """One page of one session, and what the pages before it left behind."""

    session: str
    host: str
    source: Source  # the transcript, as far as it is read after this page
    turns: Sequence[Turn]
    title: str = ""
    state: Mapping[str, Any] = NOTHING  # `Prepared.state` of the page before


class Prepared(NamedTuple):
    batch: Batch
    state: dict[str, Any]
    turns: int = 0
    repeated: int = 0
    ideas: int = 0
    known: int = 0  # ideas that were known already
    spans: int = 0


def identity(host: str, id: str) -> bytes:
    return blake2b(f"{host}\0{id}".encode("utf-8", "replace"), digest_size=16).digest()


class Heard(NamedTuple):
    """A turn that is new, redacted, as the memory that keeps it."""

    turn: Turn
    text: str
    memory: Memory
    identity: bytes


def prepare(
    talk: Talk,
    into: WriteOptions,
    store: Store,
    embedder: Embedder | None,
    recent: Recent,
    model: Model | None = None,
) -> Prepared:
    """The batch of one page. A language model, where one is set, helps to find topics and ideas."""
    heard, repeated = _heard(talk, into, store)
    own, fresh = vectors_of([one.memory for one in heard], embedder, recent, store)
    earlier = _earlier(talk, into, store)
    spoken = [one for one in heard if one.turn.agent is None]
    means = [
        vectors[0] if len(vectors) else None
        for one, vectors in zip(heard, own, strict=True)
        if one.turn.agent is None
    ]
    spans, older, span_of, state = _spans(talk, into, spoken, means, store, model)
    found = _ideas(spoken, earlier, embedder, recent, store, model)
    made, idea_batch, known = _remembered_ideas(
        found, spoken, span_of, into, store, embedder, recent
    )

    summaries = _summaries(spans, older, spoken, span_of, made, store, into, model)
    span_vectors = _span_vectors(summaries, embedder, recent, store)
    entries = [
        Entry(
            one.memory._replace(span=span_of.get(one.turn.id, state.get("span"))),
            vectors,
            False,
            one.identity,
        )
        for one, vectors in zip(heard, own, strict=True)
    ]
    batch = idea_batch._replace(
        scopes=into.scopes,
        sessions=(_session(talk, into, spoken),) if heard else (),
        spans=tuple(zip(summaries, span_vectors, strict=True)),
        add=(*entries, *idea_batch.add),
        model=embedder.model if embedder else None,
        cache={**fresh, **idea_batch.cache},
    )
    state["turns"] = int(state.get("turns", 0)) + len(heard)
    return Prepared(batch, state, len(heard), repeated, len(made), known, len(spans) - len(older))


# Turns


def _heard(talk: Talk, into: WriteOptions, store: Store) -> tuple[list[Heard], int]:
    identities = [identity(talk.host, turn.id) for turn in talk.turns]
    known = store.known_turns(into.scope, identities)
    heard: list[Heard] = []
    seen: set[bytes] = set()
    for turn, own in zip(talk.turns, identities, strict=True):
        if own in known or own in seen or turn.summary:
            continue
        seen.add(own)
        redacted = redact(turn.text)
        if redacted.empty:
            continue
        text = shortened(redacted.text.strip())
        place = int(talk.state.get("turns", 0)) + len(heard)
        turn = _without_named_secrets(turn)
        heard.append(Heard(turn, text, _evidence(talk, turn, text, into, place), own))
    return heard, sum(own in known for own in identities)


def _without_named_secrets(turn: Turn) -> Turn:
    """A branch, a folder, a tool or a file can be named like a secret, too. A file with such a name is no file to be found by."""
    if all(
        map(
            _harmless,
            (turn.cwd or "", turn.branch or "", turn.agent or "", *turn.tools, *turn.files),
        )
    ):
        return turn
    cwd, branch, agent, tools = redact_value((turn.cwd, turn.branch, turn.agent, turn.tools))[0]
    return turn._replace(
        cwd=cwd, branch=branch, agent=agent, tools=tools, files=tuple(filter(_harmless, turn.files))
    )


@lru_cache(4096)  # the same few names again and again
def _harmless(name: str) -> bool:
    return redact(name).text == name


def _evidence(talk: Talk, turn: Turn, text: str, into: WriteOptions, place: int) -> Memory:
    """A turn as it was said. Kept cheaply: nothing is guessed about it."""
    metadata: dict[str, Any] = {"role": turn.role, "turn": turn.id, "host": talk.host}
    more: dict[str, Any] = {
        "agent": turn.agent,
        "branch": turn.branch,
        "tools": list(turn.tools[:16]),
    }
    metadata |= {key: value for key, value in more.items() if value}
    passage = Passage(
        text,
        kind="context",
        summary=brief(text),
        importance=ASKED_IMPORTANCE if asks(text) else 3.0,
        entities=tuple(Entity(file, "file") for file in turn.files[:FILES]),
        lines=(turn.line, turn.line),
        created_at=turn.at or into.now,
        metadata=metadata,
        session=talk.session,
        position=place,
    )
    origin = "agent" if turn.role != "user" else "pasted" if is_mostly_pasted(text) else "user"
    own = into._replace(trust=TRUST[origin])
    if origin == "pasted":
        metadata["origin"] = origin
    return remembered(passage, talk.source, own, place)


def asks(text: str) -> bool:
    """Whether a turn only asks."""
    return text.rstrip(" *_\"')").endswith(("?", "？")) and len(text) < 400 and text.count(". ") < 2


def brief(text: str) -> str:
    """The beginning of what was said, in at most twenty words."""
    line = next((line for line in text.splitlines() if any(map(str.isalnum, line))), text)
    words = line.strip(" #*->").split()
    return " ".join(words[:20])[:240] + (" …" if len(words) > 20 else "")


def _earlier(talk: Talk, into: WriteOptions, store: Store) -> list[Memory]:
    """The last turns of the session before this page."""
    count = int(talk.state.get("turns", 0))
    if not count or not talk.state.get("last"):
        return []
    around = store.around(str(talk.state["last"]), BEFORE - 1, 0)
    return [
        memory for memory in around if memory.kind == "context" and "agent" not in memory.metadata
    ][-BEFORE:]


# Topics


def _spans(
    talk: Talk,
    into: WriteOptions,
    spoken: Sequence[Heard],
    means: Sequence[Any],
    store: Store,
    model: Model | None,
) -> tuple[list[Span], set[str], dict[str, str], dict[str, Any]]:
    """New and continued topics, which of them are continued, the topic of each turn, and the state that the next page begins with."""
    state = dict(talk.state)
    if not spoken:
        return [], set(), {}, state
    said = [
        topical.Said(
            one.turn.role,
            one.text,
            one.turn.at,
            one.turn.line,
            one.turn.cwd,
            one.turn.branch,
            one.turn.files,
        )
        for one in spoken
    ]
    found, still_open = topical.segment(said, means, topical.resumed(state.get("open")))
    if model:
        found = advice.confirmed(model, found, [one.text for one in spoken])
    continued = _continued(state, store, into)
    spans: list[Span] = []
    for topic in found:
        first, last = spoken[topic.first], spoken[topic.last]
        parent = spans[topic.parent].id if topic.parent is not None else None
        old = continued.get(topic.depth) if topic.continues else None
        if old is not None:
            spans.append(old._replace(lines=(old.lines[0], last.turn.line)))
            continue
        if topic.depth and parent is None and 0 in continued:
            parent = continued[0].id
        spans.append(
            Span(
                new_id(),
                into.scope,
                talk.session,
                parent,
                "",
                "",
                (first.turn.line, last.turn.line),
                topic.depth,
                first.turn.at or into.now,
            )
        )
    span_of: dict[str, str] = {}
    for topic, span in zip(
        found, spans, strict=True
    ):  # sub-topics come after their topics and so have the last word
        for one in spoken[topic.first : topic.last + 1]:
            span_of[one.turn.id] = span.id
    state |= {
        "open": still_open._asdict(),
        "last": spoken[-1].memory.id,
        "span": span_of[spoken[-1].turn.id],
        "spans": {str(topic.depth): span.id for topic, span in zip(found, spans, strict=True)},
    }
    return (
        spans,
        {span.id for span in continued.values()} & {span.id for span in spans},
        span_of,
        state,
    )


def _continued(state: Mapping[str, Any], store: Store, into: WriteOptions) -> dict[int, Span]:
    """The topics that were open at the end of the page before, by depth."""
    ids = {int(depth): id for depth, id in dict(state.get("spans") or {}).items()}
    known = store.spans_by_id(list(ids.values()), (into.scope,))
    return {depth: known[id] for depth, id in ids.items() if id in known}


def _summaries(
    spans: Sequence[Span],
    older: set[str],
    spoken: Sequence[Heard],
    span_of: Mapping[str, str],
    made: Sequence[tuple[Idea, Memory]],
    store: Store,
    into: WriteOptions,
    model: Model | None,
) -> list[Span]:
    """Topics with the names and summaries that their turns and ideas give them now."""
    done = []
    for span in spans:
        inside = {span.id, *(child.id for child in spans if child.parent == span.id)}
        texts = [(one.turn.role, one.text) for one in spoken if span_of.get(one.turn.id) in inside]
        told = [
            (memory.kind, memory.content, is_open(memory))
            for _, memory in made
            if memory.span in inside
        ]
        if span.id in older and span.name:
            # What it is about was said when it began; what came out of it may have grown.
            focus = (
                span.summary.partition("\n")[0].removeprefix("Focus: ")
                if span.summary.startswith("Focus: ")
                else ""
            )
            known = store.load(
                store.in_spans([span.id], Filter(scopes=(into.scope,), now=into.now), 60)
            ).values()
            told = [(memory.kind, memory.content, is_open(memory)) for memory in known] + told
            done.append(
                span._replace(summary=summarise([("user", focus)] if focus else texts, told))
            )
        else:
            advised = advice.topic(model, texts) if model and texts else None
            title, summary = advised or (name(texts), summarise(texts, told))
            done.append(span._replace(name=title, summary=summary))
    return done


def is_open(memory: Memory) -> bool:
    """Whether something is still to be answered, done or solved."""
    return memory.kind in ("question", "todo", "problem") and not memory.answered


def _span_vectors(
    spans: Sequence[Span], embedder: Embedder | None, recent: Recent, store: Store
) -> list[Sequence[Any]]:
    """One of each topic. They are not cached: what a topic was called before it grew could not be found there by a purge."""
    if embedder is None or not spans:
        return [()] * len(spans)
    from bethink.ingest.vectors import embed

    vectors, _ = embed(
        [topic_text(span.name, span.summary) for span in spans], embedder, recent, store.cached
    )
    return [own[:1] for own in vectors]


def _session(talk: Talk, into: WriteOptions, spoken: Sequence[Heard]) -> Session:
    times = [one.turn.at for one in spoken if one.turn.at]
    title = redact(talk.title).text if talk.title else ""
    if not title and not talk.state:
        title = session_title([(one.turn.role, one.text) for one in spoken])
    cwd = next((one.turn.cwd for one in spoken if one.turn.cwd), None)
    metadata = {"cwd": cwd} if cwd else {}
    return Session(
        talk.session,
        into.scope,
        talk.host,
        title,
        talk.source.uri,
        min(times, default=None),
        max(times, default=None),
        metadata,
    )


# Ideas


def _ideas(
    spoken: Sequence[Heard],
    earlier: Sequence[Memory],
    embedder: Embedder | None,
    recent: Recent,
    store: Store,
    model: Model | None,
) -> list[Idea]:
    """What this page's turns decided, asked, found out. Earlier turns are heard too, but what they said was noted when they came."""
    before = [(str(memory.metadata.get("role", "user")), memory.content) for memory in earlier]
    turns = before + [(one.turn.role, one.text) for one in spoken]
    embed = (
        None if embedder is None else (lambda texts: _first_windows(texts, embedder, recent, store))
    )
    advised = advice.ideas(model, turns, len(before)) if model and spoken else None
    found = ideas(turns, embed) if advised is None else advised
    fresh = {
        at: number
        for number, at in enumerate(at for at, idea in enumerate(found) if idea.turn >= len(before))
    }
    return [
        idea._replace(
            turn=idea.turn - len(before),
            answers=None if idea.answers is None else fresh.get(idea.answers),
        )
        for idea in (found[at] for at in fresh)
    ]


def _first_windows(texts: Sequence[str], embedder: Embedder, recent: Recent, store: Store) -> Any:
    import numpy as np

    from bethink.ingest.vectors import embed

    vectors, _ = embed(list(texts), embedder, recent, store.cached)
    return (
        np.stack([np.asarray(own[0]) for own in vectors])
        if vectors
        else np.zeros((0, embedder.dimensions), np.float32)
    )


def _remembered_ideas(
    found: Sequence[Idea],
    spoken: Sequence[Heard],
    span_of: Mapping[str, str],
    into: WriteOptions,
    store: Store,
    embedder: Embedder | None,
    recent: Recent,
) -> tuple[list[tuple[Idea, Memory]], Batch, int]:
    memories: list[Memory] = []
    numbers: dict[int, int] = {}
    for idea in found:
        heard = spoken[idea.turn]
        number = numbers.get(idea.turn, 0)
        numbers[idea.turn] = number + 1
        speaker = "user" if heard.turn.role == "user" else "agent"
        passage, _ = clean(
            Passage(
                idea.text,
                kind=idea.kind,
                confidence=idea.confidence,
                entities=idea.entities,
                lines=heard.memory.lines,
                created_at=heard.memory.created_at,
                session=heard.memory.session,
                span=span_of.get(heard.turn.id),
                position=idea_position(heard.memory.position, number),
                metadata={
                    "turn": heard.turn.id,
                    "role": heard.turn.role,
                    "firm": idea.firm,
                    "host": heard.memory.metadata["host"],
                    **({"origin": "pasted"} if idea.pasted else {}),
                },
            ),
            into.longest,
        )
        source = Source(heard.memory.source, heard.memory.source_type)
        trust = TRUST["pasted" if idea.pasted else speaker]
        memories.append(remembered(extract(passage), source, into._replace(trust=trust), 0))
    vectors, fresh = vectors_of(memories, embedder, recent, store)
    answers = {at: idea.answers for at, idea in enumerate(found) if idea.answers is not None}
    compared = compare(memories, vectors, into, store, embedder, answers=answers)
    made = dict(zip(compared.new, entries(memories, vectors, compared, into, store), strict=True))
    batch = fold(
        Batch(
            at=into.now,
            actor=into.actor,
            add=tuple(made.values()),
            change=compared.change,
            relate=compared.relate,
            cache=fresh,
        )
    )
    kept = [(found[at], entry.memory) for at, entry in zip(made, batch.add, strict=True)]
    return kept, batch, len(memories) - len(kept)
