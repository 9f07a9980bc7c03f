"""Vectors for other languages, by a second model beside one that knows only English.

A scope has them from its first memory that is plainly in another language, or with the setting `languages = "all"`. From then on each of its memories
gets one, so that a question in any language finds it. They are written after the memories themselves; if a process ends in between, the
next write, the background worker or `bethink reindex` goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from bethink.embed.base import Embedder
from bethink.ingest.pipeline import pool_windows
from bethink.language.detect import is_plainly_foreign
from bethink.model import Batch
from bethink.store.base import Store
from bethink.store.places import embedded_text, topic_text

_PAGE = 64  # memories of one write; a bound on memory


def is_needed(
    texts: Iterable[str], scopes: Sequence[str], other: Embedder, store: Store, always: bool
) -> bool:
    """Return True if the memories of these scopes need vectors for other languages."""
    return always or store.has_vectors(other.model, scopes) or any(map(is_plainly_foreign, texts))


def complete(
    scopes: Sequence[str],
    other: Embedder,
    store: Store,
    at: datetime,
    actor: str,
    most: int | None,
    goes_on: Callable[[], bool],
) -> int:
    """Give memories and topics that have none a vector of this model, newest first. Return their number."""
    done = 0
    while (most is None or done < most) and goes_on():
        page = store.list_unembedded(other.model, _PAGE, scopes)
        if not page:
            break
        made_of = {one.id: embedded_text(one) for one in page}
        vectors = map(pool_windows, other.documents(list(made_of.values())))
        made = dict(zip(made_of, vectors, strict=True))
        store.write(Batch(at, actor, model=other.model, vectors=made, made_of=made_of))
        done += len(page)
    while goes_on() and (topics := store.list_unembedded_spans(other.model, _PAGE, scopes)):
        made_of = {one.id: topic_text(one.name, one.summary) for one in topics}
        rows = other.documents(list(made_of.values()))
        made = {id: own[:1] for id, own in zip(made_of, rows, strict=True)}
        store.write(Batch(at, actor, model=other.model, span_vectors=made, made_of=made_of))
    return done


def find_scopes(other: Embedder, store: Store, always: bool) -> list[str]:
    """Return the scopes whose memories need vectors for other languages."""
    scopes = list(store.scopes())
    return [one for one in scopes if always or store.has_vectors(other.model, (one,))]
