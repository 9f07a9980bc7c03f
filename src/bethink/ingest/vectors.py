"""Text → vectors through two levels of cache, so that the same text is never embedded twice for a model; and vectors of the current model
for whatever has none of it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from bethink.embed.base import Embedder, submit_ahead
from bethink.store.base import Store
from bethink.store.places import cache_key, embedded_text, topic_text

if TYPE_CHECKING:
    from concurrent.futures import Executor

PAGE = 64  # memories that are embedded anew in one write
HELD = 2048  # texts whose vectors a process keeps at hand

Lookup = Callable[[Sequence[bytes], str], dict[bytes, Any]]


class Recent:
    """The first level: the vectors this process made or met last."""

    def __init__(self, size: int = HELD) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._held: OrderedDict[tuple[bytes, str], Any] = OrderedDict()

    def get(self, key: bytes, model: str) -> Any:
        with self._lock:
            found = self._held.get((key, model))
            if found is not None:
                self._held.move_to_end((key, model))
            return found

    def put(self, key: bytes, model: str, vectors: Any) -> None:
        with self._lock:
            self._held[key, model] = vectors
            while len(self._held) > self._size:
                self._held.popitem(last=False)


def embed(
    texts: Sequence[str], embedder: Embedder, recent: Recent, lookup: Lookup
) -> tuple[list[Any], dict[str, Any]]:
    """Vectors of every text, and, by hex hash, those made just now, which the batch puts into the second level."""
    return start_embedding(texts, embedder, recent, lookup)()


def make_batch_parts(
    part: str, texts: Mapping[str, str], embedder: Embedder, recent: Recent, lookup: Lookup
) -> dict[str, Any]:
    """The parts of a batch that give memories (`vectors`) or topics (`span_vectors`) new vectors: id → text that they are made of."""
    vectors, fresh = embed(list(texts.values()), embedder, recent, lookup)
    return {
        part: dict(zip(texts, vectors, strict=True)),
        "made_of": texts,
        "cache": fresh,
        "model": embedder.model,
    }


def start_embedding(
    texts: Sequence[str],
    embedder: Embedder,
    recent: Recent,
    lookup: Lookup,
    progress: Callable[[int], None] | None = None,
) -> Callable[[], tuple[list[Any], dict[str, Any]]]:
    """Looks into the caches and lets the model start on the rest in another thread; what comes back waits for it."""
    keys = [cache_key(text) for text in texts]
    known = {
        key: found for key in set(keys) if (found := recent.get(key, embedder.model)) is not None
    }
    missing = [key for key in dict.fromkeys(keys) if key not in known]
    for start in range(0, len(missing), 500):
        known.update(lookup(missing[start : start + 500], embedder.model))
    text_of = dict(zip(keys, texts, strict=True))
    missing = [key for key in missing if key not in known]
    ready = len(keys) - len(missing)
    count = (lambda made: progress(ready + made)) if progress else None
    if count and ready:
        count(0)
    texts = [text_of[key] for key in missing]
    made = submit_ahead(_worker(), lambda: embedder.documents(texts, count)) if missing else None

    def finish() -> tuple[list[Any], dict[str, Any]]:
        fresh = {}
        for key, matrix in zip(missing, made.result() if made else (), strict=True):
            known[key] = fresh[key] = pool_windows(matrix)
        for key in set(keys):
            recent.put(key, embedder.model, known[key])
        return [known[key] for key in keys], {key.hex(): vectors for key, vectors in fresh.items()}

    return finish


@cache
def _worker() -> Executor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(2, thread_name_prefix="bethink-texts")


def pool_windows(matrix: Any) -> Any:
    """Windows of one text, each blended half and half with the text's mean.

    The best window then scores as half the best window and half the whole: a long text is found by a detail in it without
    winning merely for having many windows."""
    if len(matrix) == 1:
        return matrix
    import numpy as np

    mean = matrix.mean(axis=0)
    mean /= np.linalg.norm(mean) or 1.0
    return (matrix + mean) / 2


def reindex(
    store: Store,
    embedder: Embedder,
    recent: Recent,
    write: Callable[..., Any],
    full: bool,
    progress: Callable[[int, int], None] | None,
) -> int:
    """Embeds the memories and topics that have no vector of this model, and drops the vectors of others; with `full` everything derived is
    made anew. Returns how many memories it embedded.

    Page by page, each a write of its own, so it may be stopped at any moment and goes on where it was. What somebody changes
    while its old text is being embedded is left alone, and comes again if the change brought no vector."""
    if full:
        store.rebuild()
        store.drop_vectors()
    done, total = 0, store.count_unembedded(embedder.model)
    while page := store.list_unembedded(embedder.model, PAGE):
        texts = {memory.id: embedded_text(memory) for memory in page}
        write(**make_batch_parts("vectors", texts, embedder, recent, store.read_cache))
        done += len(page)
        if progress:
            progress(done, total)
    while topics := store.list_unembedded_spans(embedder.model, PAGE):
        texts = {topic.id: topic_text(topic.name, topic.summary) for topic in topics}
        parts = make_batch_parts("span_vectors", texts, embedder, recent, store.read_cache)
        parts["span_vectors"] = {
            id: vectors[:1] for id, vectors in parts["span_vectors"].items()
        }  # a topic has one, as when it was made
        write(**parts)
    for model in store.models():
        if model != embedder.model:
            store.drop_vectors(model)
    return done
