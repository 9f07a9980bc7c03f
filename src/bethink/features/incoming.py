"""What comes from elsewhere, checked before it is put down: a bundle of another machine, the records of a file.

Records go into a store as they are, so nothing in them may be what our own pipeline would not write: a wrong value is refused with its
name. Texts that hold what looks like a secret here are not an error of the sender's, whose rules may be older. From a file the
secret is taken out. Of a sync such records are left out and named, because both sides must hold the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from bethink.errors import InvalidInput
from bethink.features.merging import VOTES, apply_fields
from bethink.ingest.redact import redact_value
from bethink.store.bundle import Bundle, Record, Stored, bundle_from_json
from bethink.store.places import content_hash
from bethink.types import (
    ENTITY_TYPES,
    KINDS,
    RELATIONS,
    TRUST,
    Entity,
    Event,
    Memory,
    Relation,
    Span,
)

MOST = 1000  # items of one bundle; tags, keywords or entities of one memory
LONGEST_SHORT = 10_000  # characters of anything that is not the text itself
LONGEST_METADATA = 100_000
MOST_EVENTS = 10_000
# What a stranger's file may claim about how much a memory was liked and used. Set by hand: a few votes and a month of daily use.
MOST_VOTES, MOST_USES = 10.0, 30

ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# What values of another type or shape raise somewhere.
WRONG = (
    *(ValueError, KeyError, TypeError, IndexError, AttributeError),
    *(OverflowError, OSError, RecursionError),
)
_AS_IT_IS = (
    "id",
    "scope",
    "kind",
    "content_hash",
    "superseded_by",
)  # of which `_RULES` knows the form
_READERS = ("note", "markdown", "repomap", "transcript", "analysis", "git", "import")


class Given(NamedTuple):
    """A memory of a file, and what it is related to."""

    record: Record
    relations: tuple[Relation, ...] = ()
    redactions: int = 0
    saved: str = ""  # what a note said when it was written, if somebody edited it since

    @property
    def memory(self) -> Memory:
        return self.record.memory


# Values


def _is_text(value: Any, longest: int = LONGEST_SHORT) -> bool:
    return isinstance(value, str) and len(value) <= longest


def _is_optional_text(value: Any) -> bool:
    return value is None or _is_text(value)


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and bool(ID.fullmatch(value))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53


def _is_number(low: float, high: float) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and math.isfinite(value) and low <= value <= high

    return check


def _is_object(value: Any, longest: int = LONGEST_METADATA) -> bool:
    return isinstance(value, Mapping) and len(repr(value)) <= longest


def _is_row_of_texts(value: Any) -> bool:
    return len(value) <= MOST and all(map(_is_text, value))


def _is_range(value: Any) -> bool:
    return len(value) == 2 and all(map(_is_count, value))


def _are_vectors(vectors: Stored) -> bool:
    return all(
        _is_text(model) and 1 <= dimensions <= 8192 and len(data) == 4 + 2 * dimensions
        for model, dimensions, data in vectors
    )


_is_vote = _is_number(-1e9, 1e9)
_RULES: dict[str, Callable[[Any], bool]] = {
    "id": _is_id,
    "scope": _is_text,
    "kind": lambda value: value in KINDS,
    "created_at": lambda value: value is not None,
    "updated_at": lambda value: value is not None,
    "importance": _is_number(0, 10),
    "confidence": _is_number(0, 1),
    "usefulness": _is_vote,
    "access_count": _is_count,
    "superseded_by": lambda value: value is None or _is_id(value),
    "answered": lambda value: value in (None, True, False),
    "source": _is_text,
    "source_type": _is_text,
    "lines": lambda value: value is None or _is_range(value),
    "position": _is_count,
    "section": _is_optional_text,
    "span": _is_optional_text,
    "session": _is_optional_text,
    "tags": _is_row_of_texts,
    "keywords": _is_row_of_texts,
    "entities": lambda value: len(value) <= MOST and all(_is_row_of_texts(one) for one in value),
    "metadata": _is_object,
    "trust": lambda value: value in (0, 1, 2, 3),
}


# Sources, sessions and topics have fields of these names, too.
_OF_PLACES: dict[str, Callable[[Any], bool]] = {
    **_RULES,
    "scope": lambda value: value == "",
    "summary": partial(_is_text, longest=LONGEST_METADATA),
    "lines": _is_range,
    "depth": _is_count,
    "metadata": partial(_is_object, longest=50 * LONGEST_METADATA),
    **dict.fromkeys(("id", "uri", "type", "host", "title", "name"), _is_text),
    **dict.fromkeys(("hash", "parent"), _is_optional_text),
}


def _find_wrong(value: Any, rules: Mapping[str, Callable[[Any], bool]]) -> str | None:
    """The first field of a value that is not as its rule wants it."""
    wrong = (
        name for name in value._fields if name in rules and not rules[name](getattr(value, name))
    )
    return next(wrong, None)


def wrong_field(record: Record, longest: int) -> str | None:
    """The name of a value that our own pipeline would not write, or None."""
    memory = record.memory
    if wrong := _find_wrong(memory, _RULES):
        return wrong
    if not _is_text(memory.content, longest) or not memory.content.strip():
        return "content"
    if not _is_text(memory.summary, longest):
        return "summary"
    if memory.content_hash != content_hash(memory.content):
        return "content_hash"
    if len(record.events) > MOST_EVENTS or not all(_is_event(one, memory) for one in record.events):
        return "history"
    return None if _are_vectors(record.vectors) else "vectors"


def _is_event(event: Event, memory: Memory) -> bool:
    """Whether a line of a history can be read, and its values put back into the memory."""
    if not _is_text(event.actor) or not _is_text(event.action):
        return False
    for state in (event.before, event.after):
        if not isinstance(state, dict) or not _is_vote(state.get(VOTES, 0)):
            return False
        try:
            apply_fields(memory, state)
        except WRONG:
            return False
    return True


# Secrets


def redact_record(record: Record) -> tuple[Record, int]:
    """The record without secrets, in whatever field they stand, and how many there were."""
    memory = record.memory
    fields, hidden = redact_value(
        {name: found for name, found in memory._asdict().items() if name not in _AS_IT_IS}
    )
    events, in_events = redact_value(
        [
            (event.actor, event.action, dict(event.before), dict(event.after))
            for event in record.events
        ]
    )
    if not hidden + in_events:
        return record, 0
    fields["entities"] = tuple(Entity(*one) for one in fields["entities"])
    clean = memory._replace(**fields)
    clean = clean._replace(content_hash=content_hash(clean.content))
    history = tuple(
        event._replace(actor=actor, action=action, before=before, after=after)
        for event, (actor, action, before, after) in zip(record.events, events, strict=True)
    )
    same = (clean.content, clean.section) == (memory.content, memory.section)
    vectors = record.vectors if same else ()
    return Record(clean, record.unique, history, vectors), hidden + in_events


def redact_places(bundle: Bundle) -> Bundle:
    """The bundle with secrets taken out of sources, sessions and topics. No version is told by them, and memories need them."""

    def topic(span: Span, vectors: Stored) -> tuple[Span, Stored]:
        clean = span._replace(
            name=_redact_text(span.name),
            summary=_redact_text(span.summary),
            metadata=_redact_text(span.metadata),
        )
        return clean, vectors if (clean.name, clean.summary) == (span.name, span.summary) else ()

    return bundle._replace(
        sources=tuple(
            (scope, source._replace(metadata=_redact_text(source.metadata)), read)
            for scope, source, read in bundle.sources
        ),
        sessions=tuple(
            one._replace(title=_redact_text(one.title), metadata=_redact_text(one.metadata))
            for one in bundle.sessions
        ),
        spans=tuple(topic(*one) for one in bundle.spans),
    )


def _redact_text(value: Any) -> Any:
    return redact_value(value)[0]


# A stranger's file


def limit_stranger(record: Record, now: datetime) -> Record:
    """A record as far as it is believed when nobody vouches for the file: as an import, said by nobody of this machine, of no later
    date than now, with few votes and uses, and without the history and the vectors that it claims."""
    memory = record.memory
    told = memory.source_type == "note"
    memory = memory._replace(
        created_at=min(memory.created_at, now),
        updated_at=min(memory.updated_at, now),
        valid_from=memory.valid_from and min(memory.valid_from, now),
        deleted_at=memory.deleted_at and min(memory.deleted_at, now),
        last_accessed=memory.last_accessed and min(memory.last_accessed, now),
        usefulness=max(-MOST_VOTES, min(memory.usefulness, MOST_VOTES)),
        access_count=min(memory.access_count, MOST_USES),
        trust=min(memory.trust, TRUST["import"]),
        source=_limit_source(memory.source) if told else memory.source,
        source_type=memory.source_type if memory.source_type in _READERS else "import",
        entities=tuple(one for one in memory.entities if one.type in ENTITY_TYPES),
    )
    return record._replace(memory=memory, events=(), vectors=())


def _limit_source(source: str) -> str:
    return source if source.startswith("import:") else "import"


# A bundle over the network


def check_bundle(value: Any, longest: int) -> tuple[Bundle, tuple[str, ...]]:
    """The bundle in a request, if everything in it is in order and names no scope; and the ids of memories that were left out, because
    they hold what would be a secret here."""
    try:
        bundle = bundle_from_json(value)
        _check_parts(bundle, longest)
    except InvalidInput:
        raise
    except WRONG as error:
        raise InvalidInput(
            f"The bundle cannot be read: {str(error)[:200]}.", "Send what another Bethink exported."
        ) from error
    hidden = tuple(one.memory.id for one in bundle.records if redact_record(one)[1])
    records = tuple(one for one in bundle.records if one.memory.id not in hidden)
    return redact_places(bundle._replace(records=records)), hidden


def _check_parts(bundle: Bundle, longest: int) -> None:
    """Nothing in a bundle of a request names a scope: the request says which is meant."""
    if bundle.size > MOST:
        raise InvalidInput(f"The bundle has more than {MOST:,} items.", "Send it in parts.")
    if bundle.tombstones or bundle.salt or bundle.gone:
        raise InvalidInput(
            "A bundle may not remove anything or say what was purged.",
            "Send memories and what they belong to.",
        )
    named = (*bundle.scopes, *bundle.sources, *bundle.turns)
    _need(not any(item[0] for item in named), "a scope")
    _need(all(_is_row_of_texts(item) for item in bundle.scopes), "a scope")
    places: list[Any] = [item[1] for item in bundle.sources]
    for place in (*places, *bundle.sessions, *(item[0] for item in bundle.spans)):
        _need(_find_wrong(place, _OF_PLACES) is None, f"a {type(place).__name__.lower()}")
    _need(all(_are_vectors(item[1]) for item in bundle.spans), "a topic")
    for record in bundle.records:
        wrong = wrong_field(record, longest) or ("scope" if record.memory.scope else None)
        _need(wrong is None, f"the {wrong} of the memory {str(record.memory.id)[:36]}")
    for relation, actor in bundle.relations:
        ends = all(map(_is_id, relation[:2]))
        _need(ends and relation.type in RELATIONS and _is_text(actor), "a relation")
    _need(max((len(identity) for _, identity in bundle.turns), default=0) <= 64, "a message")


def _need(good: bool, place: str) -> None:
    if not good:
        raise InvalidInput(
            f"Something about {place} in the bundle is not in order.",
            "Send what another Bethink exported, without a scope: the request names the project.",
        )
