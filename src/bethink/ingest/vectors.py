"""Text → vectors through two levels of cache, so that the same text is never embedded twice for a model; and vectors of the current model
for whatever has none of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from bethink.embed.base import Embedder, submit_ahead
from bethink.store.base import Store
from bethink.store.places import cache_key, embedded_text, topic_text

if TYPE_CHECKING:
    from concurrent.futures import Executor

PAGE = 64  # memories that are embedded anew in one write
HELD = 2048  # texts whose vectors a process keeps at hand

Vectors = tuple[list[Any], dict[str, Any]]  # of each text, and those made just now by hex hash


class Recent:
    """The first level: the vectors this process made or met last, by the hash of their text and their model."""

    def __init__(self) -> None:
        self.held: dict[tuple[bytes, str], Any] = {}
        self._lock = threading.Lock()

    def find(self, keys: Iterable[bytes], model: str) -> dict[bytes, Any]:
        """Those of the texts that are held. Each is asked for once: another thread may let go of it in between."""
        met = ((key, self.held.get((key, model))) for key in keys)
        return {key: vectors for key, vectors in met if vectors is not None}

    def keep(self, met: Mapping[tuple[bytes, str], Any]) -> None:
        with self._lock:
            self.held |= met
            for oldest in list(self.held)[:-HELD]:
                del self.held[oldest]


def embed(
    texts: Sequence[str | None], embedder: Embedder | None, recent: Recent, store: Store
) -> Vectors:
    """Vectors of every text, and those made just now, which the batch puts into the second level."""
    return start_embedding(texts, embedder, recent, store)()


def make_batch_parts(
    part: str, texts: Mapping[str, str], embedder: Embedder, recent: Recent, store: Store
) -> dict[str, Any]:
    """The parts of a batch that give memories (`vectors`) or topics (`span_vectors`) new vectors: id → text that they are made of."""
    vectors, fresh = embed(list(texts.values()), embedder, recent, store)
    return {
        part: dict(zip(texts, vectors, strict=True)),
        "made_of": texts,
        "cache": fresh,
        "model": embedder.model,
    }


def start_embedding(
    texts: Sequence[str | None],
    embedder: Embedder | None,
    recent: Recent,
    store: Store,
    progress: Callable[[int], None] | None = None,
) -> Callable[[], Vectors]:
    """Looks into the caches and lets the model start on the rest in another thread; what comes back waits for it. Where there is no
    text, or no model, there are no vectors."""
    tell = progress or (lambda made: None)
    if embedder is None:
        tell(len(texts))
        return lambda: ([()] * len(texts), {})
    model = embedder.model
    keys = [None if text is None else cache_key(text) for text in texts]
    text_of = {cache_key(text): text for text in texts if text is not None}
    known = recent.find(text_of, model)
    known |= store.read_cache([key for key in text_of if key not in known], model)
    missing = [key for key in text_of if key not in known]
    ready = len(texts) - len(missing)
    tell(ready)
    wanted = [text_of[key] for key in missing]
    work = lambda: embedder.documents(wanted, lambda made: tell(ready + made))  # noqa: E731
    made = submit_ahead(_worker(), work) if missing else None

    def finish() -> Vectors:
        matrices = made.result() if made else ()
        fresh = dict(zip(missing, map(pool_windows, matrices), strict=True))
        known.update(fresh)
        recent.keep({(key, model): known[key] for key in text_of})
        return [known[key] if key else () for key in keys], {
            key.hex(): vectors for key, vectors in fresh.items()
        }

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
        write(**make_batch_parts("vectors", texts, embedder, recent, store))
        done += len(page)
        if progress:
            progress(done, total)
    while topics := store.list_unembedded_spans(embedder.model, PAGE):
        texts = {topic.id: topic_text(topic.name, topic.summary) for topic in topics}
        parts = make_batch_parts("span_vectors", texts, embedder, recent, store)
        # A topic has one, as when it was made.
        one_each = {id: vectors[:1] for id, vectors in parts["span_vectors"].items()}
        write(**parts | {"span_vectors": one_each})
    for model in store.models():
        if model != embedder.model:
            store.drop_vectors(model)
    return done
