"""Vectors of the current model for whatever has none of it: after a change of model, or when there was none while something was told.

Page by page, each a write of its own, so it may be stopped at any moment and goes on where it was. What somebody changes while its
old text is being embedded is left alone, and comes again if the change brought no vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bethink.embed.base import Embedder
from bethink.ingest.vectors import Recent, parts_of
from bethink.store.base import Store
from bethink.store.places import topic_text, vector_text

PAGE = 64


def reindex(
    store: Store,
    embedder: Embedder,
    recent: Recent,
    write: Callable[..., Any],
    full: bool,
    progress: Callable[[int, int], None] | None,
) -> int:
    """Embeds memories and topics, and drops the vectors of other models; with `full` everything derived is made anew. Returns how many
    memories it embedded."""
    if full:
        store.rebuild()
        store.drop_vectors()
    done, total = 0, store.count_unembedded(embedder.model)
    while page := store.unembedded(embedder.model, PAGE):
        texts = {memory.id: vector_text(memory.section, memory.content) for memory in page}
        write(**parts_of("vectors", texts, embedder, recent, store.cached))
        done += len(page)
        if progress:
            progress(done, total)
    while topics := store.unembedded_spans(embedder.model, PAGE):
        texts = {topic.id: topic_text(topic.name, topic.summary) for topic in topics}
        parts = parts_of("span_vectors", texts, embedder, recent, store.cached)
        parts["span_vectors"] = {
            id: vectors[:1] for id, vectors in parts["span_vectors"].items()
        }  # a topic has one, as when it was made
        write(**parts)
    for model in store.models():
        if model != embedder.model:
            store.drop_vectors(model)
    return done
