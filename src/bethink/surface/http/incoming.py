"""What another database sends, checked: a bundle is put down as it is, so nothing in it may be what our own pipeline would not write.

Wrong values are refused with their place. Texts that hold what looks like a secret here are not an error of the sender's, whose rules
may be older: such memories are left out and named, and from what memories belong to the secret alone is taken out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from bethink.errors import InvalidInput
from bethink.ingest.redact import redact, redact_value
from bethink.store.records import Bundle, Record, Stored, unpacked
from bethink.store.writer import content_hash
from bethink.types import KINDS, RELATIONS, Memory, Span

MOST = 1000  # items of one bundle
LONGEST_SHORT = 10_000  # characters of anything that is not the text itself
LONGEST_METADATA = 100_000
MOST_EVENTS = 10_000

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_WRONG = (
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    OverflowError,
    OSError,
    RecursionError,
)
_TEXTS = ("id", "scope", "kind", "content", "summary", "content_hash", "source", "source_type")
_MAYBE = ("superseded_by", "section", "span", "session")
_NUMBERS = {"importance": (0, 10), "confidence": (0, 1), "usefulness": (-1e9, 1e9)}


def bundle_of(value: Any, scope: str, longest: int) -> Bundle:
    """The bundle in a request, if everything in it is in order and of this scope."""
    try:
        bundle = unpacked(value)
    except _WRONG as error:
        raise InvalidInput(
            f"The bundle cannot be read: {str(error)[:200]}.", "Send what another Bethink exported."
        ) from error
    if bundle.size > MOST or len(bundle.gone) > MOST:
        raise InvalidInput(f"The bundle has more than {MOST:,} items.", "Send it in parts.")
    if bundle.tombstones or bundle.salt or bundle.gone:
        raise InvalidInput(
            "A bundle may not remove anything or say what was purged.",
            "Send memories and what they belong to.",
        )
    try:
        _check(bundle, scope, longest)
    except InvalidInput:
        raise
    except _WRONG as error:
        raise InvalidInput(
            f"A value of the bundle is of another type: {str(error)[:200]}.",
            "Send what another Bethink exported.",
        ) from error
    return bundle


def secret(record: Record) -> bool:
    """Whether any text of a record holds what would be taken out here."""
    memory = record.memory
    texts = [memory.content, memory.summary, memory.section or "", *memory.tags, *memory.keywords]
    texts += [entity.name for entity in memory.entities]
    texts += [
        text
        for event in record.events
        for state in (event.before, event.after)
        for text in state.values()
        if isinstance(text, str)
    ]
    return any(redact(text).text != text for text in texts) or bool(
        redact_value(memory.metadata)[1]
    )


def without_secrets(bundle: Bundle) -> Bundle:
    """The bundle with secrets taken out of sources, sessions and topics. No version is told by them, and memories need them."""

    def topic(span: Span, vectors: Stored) -> tuple[Span, Stored]:
        clean = span._replace(
            name=_redacted(span.name),
            summary=_redacted(span.summary),
            metadata=_redacted(span.metadata),
        )
        return clean, vectors if (clean.name, clean.summary) == (span.name, span.summary) else ()

    return bundle._replace(
        sources=tuple(
            (scope, source._replace(metadata=_redacted(source.metadata)), read)
            for scope, source, read in bundle.sources
        ),
        sessions=tuple(
            one._replace(title=_redacted(one.title), metadata=_redacted(one.metadata))
            for one in bundle.sessions
        ),
        spans=tuple(topic(*one) for one in bundle.spans),
    )


def _redacted(value: Any) -> Any:
    return redact_value(value)[0]


def _check(bundle: Bundle, scope: str, longest: int) -> None:
    for key, name, path in bundle.scopes:
        _need(key == scope and _name(name) and _name(path), "a scope")
    for of, source, _ in bundle.sources:
        good = (
            _name(source.uri)
            and _short(source.type)
            and (source.hash is None or _short(source.hash))
        )
        _need(
            of == scope
            and good
            and _whole(source.position)
            and _object(source.metadata, 50 * LONGEST_METADATA),
            "a source",
        )
    for session in bundle.sessions:
        good = session.scope == scope and all(
            map(_name, (session.id, session.host, session.source))
        )
        good = good and _short(session.title)
        _need(good and _object(session.metadata), "a session")
    for span, vectors in bundle.spans:
        good = (
            span.scope == scope
            and all(map(_short, (span.id, span.session, span.name)))
            and _text(span.summary, longest)
        )
        good = (
            good
            and (span.parent is None or _short(span.parent))
            and all(map(_whole, (*span.lines, span.depth)))
            and len(span.lines) == 2
        )
        _need(good and _object(span.metadata) and _stored(vectors), "a topic")
    for record in bundle.records:
        _check_record(record, scope, longest)
    for relation, actor in bundle.relations:
        ends = all(isinstance(id, str) and _ID.fullmatch(id) for id in relation[:2])
        _need(ends and relation.type in RELATIONS and _short(actor), "a relation")
    for of, identity in bundle.turns:
        _need(of == scope and len(identity) <= 64, "a message")


def _check_record(record: Record, scope: str, longest: int) -> None:
    memory = record.memory
    _need(isinstance(memory.id, str) and bool(_ID.fullmatch(memory.id)), "an id")
    place = f"the memory {memory.id}"
    _need(all(isinstance(getattr(memory, name), str) for name in _TEXTS), place)
    _need(
        all(found is None or _short(found) for found in (getattr(memory, name) for name in _MAYBE)),
        place,
    )
    _need(
        memory.scope == scope
        and memory.kind in KINDS
        and _text(memory.content, longest)
        and bool(memory.content.strip()),
        place,
    )
    _need(
        memory.content_hash == content_hash(memory.content) and _text(memory.summary, longest),
        place,
    )
    _need(all(_number(getattr(memory, name), *bounds) for name, bounds in _NUMBERS.items()), place)
    _need(
        memory.trust in (0, 1, 2, 3) and _whole(memory.access_count) and _whole(memory.position),
        place,
    )
    _need(memory.answered in (None, True, False) and _places(memory), place)
    _need(
        all(_short(word) for word in (*memory.tags, *memory.keywords))
        and len(memory.tags) + len(memory.keywords) <= MOST,
        place,
    )
    _need(
        all(_short(entity.name) and _short(entity.type) for entity in memory.entities)
        and len(memory.entities) <= MOST,
        place,
    )
    _need(
        _object(memory.metadata) and _stored(record.vectors) and len(record.events) <= MOST_EVENTS,
        place,
    )
    for event in record.events:
        _need(
            _short(event.actor)
            and _short(event.action)
            and all(isinstance(state, dict) for state in (event.before, event.after)),
            place,
        )


def _places(memory: Memory) -> bool:
    return memory.lines is None or (len(memory.lines) == 2 and all(map(_whole, memory.lines)))


def _need(good: bool, place: str) -> None:
    if not good:
        raise InvalidInput(
            f"Something about {place} in the bundle is not in order.",
            "Send what another Bethink exported, for this project.",
        )


def _text(value: Any, longest: int) -> bool:
    return isinstance(value, str) and len(value) <= longest


def _short(value: Any) -> bool:
    return _text(value, LONGEST_SHORT)


def _name(value: Any) -> bool:
    """Whether something is short and holds no secret: what it names is known by it, so nothing can be taken out of it."""
    return _short(value) and redact(value).text == value


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53


def _number(value: Any, low: float, high: float) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and low <= value <= high
    )


def _object(value: Any, longest: int = LONGEST_METADATA) -> bool:
    return isinstance(value, Mapping) and len(repr(value)) <= longest


def _stored(vectors: Sequence[Any]) -> bool:
    return all(
        _short(model) and 1 <= dimensions <= 8192 and len(data) == 4 + 2 * dimensions
        for model, dimensions, data in vectors
    )
