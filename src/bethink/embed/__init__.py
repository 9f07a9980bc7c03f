"""Text → vectors: opens the embedder that the settings ask for. Each kind of model is one file; `base.py` says what they share. The one
that needs no model is here: words, their beginnings and their trigrams, hashed into a fixed number of places. It knows spelling, not
meaning, which is enough for tests and for machines that cannot have a model."""

from __future__ import annotations

import re
import threading
import time
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from math import log
from typing import TYPE_CHECKING, TypeVar

from bethink.config import Config, data_directory
from bethink.embed.base import Bytes, Embedder, Matrix
from bethink.errors import EmbeddingError
from bethink.model import is_remote

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

Result = TypeVar("Result")
PULL_AGAIN = 3600  # seconds until a fetch of the model that failed is tried again by itself
# Seconds until a model that failed at its work is asked again. Set by hand: an endpoint that restarts is back within a minute,
# and a process that only knows words for a minute waits for the endpoint once and not with every call.
ASK_AGAIN = 60.0


def open_embedder(
    config: Config, allow_pull: bool = False, progress: Bytes | None = None
) -> Embedder | None:
    """The configured embedder, or None if it is `none`. Models are loaded at their first use, not here.

    A local model that is not installed is fetched if `allow_pull` says so, with `progress` told the bytes; else it is
    an EmbeddingError.
    """
    kind = config.embedding.strip()
    if kind in ("none", ""):
        return None
    if kind == "hashing":
        return HashingEmbedder()
    if kind == "http":
        from bethink.embed.http import HttpEmbedder

        return HttpEmbedder(config.embedding_url, config.embedding_model, config.model_timeout)
    from bethink.embed import models

    directory = models.location(kind)
    if directory is None:
        if not allow_pull:
            raise models.missing_model(kind)
        directory = models.pull(kind, progress)
    from bethink.embed.local import LocalEmbedder

    return LocalEmbedder(models.find(kind), directory, config.threads)


def submit_ahead(pool: Executor, work: Callable[[], Result]) -> Future[Result]:
    """Submits work to another thread and lets that go first: a model soon computes outside of Python, while the caller would keep
    Python to itself until it waits, and nothing were done side by side."""
    begins = threading.Lock()
    begins.acquire()

    def run() -> Result:
        begins.release()
        return work()

    future = pool.submit(run)
    begins.acquire()
    return future


class LazyModel:
    """Owns the embedder of one `Bethink`. After a failure it does without for ASK_AGAIN seconds, then it tries once more."""

    def __init__(
        self,
        config: Config,
        embedder: Embedder | None,
        on_pull: Bytes | None = None,
    ) -> None:
        self._config, self._on_pull = config, on_pull
        self._given = self._embedder = embedder
        self._failure: EmbeddingError | None = None
        self._failed_at = 0.0

    @property
    def embedder(self) -> Embedder | None:
        if self.is_due:
            self._failure = None
        if self._embedder is None and self._failure is None:
            try:
                self._embedder = self._given or open_embedder(
                    self._config, _may_pull(), self._on_pull
                )
            except EmbeddingError as error:
                self.rest(error)
                _note_failed_pull()
        return self._embedder

    @property
    def local(self) -> Embedder | None:
        """The embedder if it runs in this process and needs no download; else None. Nothing is fetched, nothing is sent."""
        if self._failure and not self.is_due:
            return None
        try:
            found = self._embedder or self._given or open_embedder(self._config)
        except EmbeddingError:
            return None
        if found is None or is_remote(found):
            return None
        self._embedder = found
        return found

    @property
    def is_due(self) -> bool:
        """Whether it failed, and so long ago that it is tried again."""
        return bool(self._failure) and time.monotonic() - self._failed_at >= ASK_AGAIN

    def rest(self, error: EmbeddingError) -> None:
        """The model failed at its work (an endpoint that is down, say): for a while words have to do."""
        self._embedder, self._failure, self._failed_at = None, error, time.monotonic()

    def explain_missing(self) -> EmbeddingError:
        """Why there is no model, for what cannot do without one."""
        return self._failure or EmbeddingError(
            "No embedding model is set.", "bethink config embedding snowflake-arctic-embed-s"
        )

    @property
    def hints(self) -> tuple[str, ...]:
        return (without_vectors(self._failure),) if self._failure else ()


def without_vectors(error: EmbeddingError) -> str:
    return f"Working by words only: {error.message}" + (f" {error.hint}" if error.hint else "")


def _may_pull() -> bool:
    note = data_directory() / "models" / ".failed"
    return not note.exists() or time.time() - note.stat().st_mtime > PULL_AGAIN


def _note_failed_pull() -> None:
    note = data_directory() / "models" / ".failed"
    with suppress(OSError):  # a read-only home only means that the next command tries again
        note.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if _may_pull():
            note.touch()


# Without a model

DIMENSIONS = 256
WINDOW_WORDS = 400
_WORD = re.compile(r"\w+")
# A run without spaces, such as a page of Chinese, counts as several words so that windows stay windows.
_LONGEST_WORD = 64


class HashingEmbedder:
    remote = False

    def __init__(self, dimensions: int = DIMENSIONS) -> None:
        self.dimensions = dimensions
        self.model = f"hashing-{dimensions}"
        self.baseline = self.unrelated = 0.0  # no shared words, no similarity

    def documents(self, texts: Sequence[str]) -> list[Matrix]:
        import numpy as np

        return [
            np.stack([_vector(words, self.dimensions) for words in _windows(text)])
            for text in texts
        ]

    def query(self, text: str) -> Matrix:
        return _vector(next(_windows(text)), self.dimensions)


def _words(text: str) -> Iterator[str]:
    for match in _WORD.finditer(unicodedata.normalize("NFKC", text).casefold()):
        word = match.group()
        for start in range(0, len(word), _LONGEST_WORD):
            yield word[start : start + _LONGEST_WORD]


def _windows(text: str) -> Iterator[list[str]]:
    words = _words(text)
    yield list(islice(words, WINDOW_WORDS))
    while window := list(islice(words, WINDOW_WORDS)):
        yield window


def _vector(words: Sequence[str], dimensions: int) -> Matrix:
    import numpy as np

    vector = np.zeros(dimensions, dtype=np.float32)
    for word, count in Counter(words).items():
        # Repetition counts ever less, and short words, which are mostly "the" and "is", count little.
        weight = (1 + log(count)) * min(1.0, (len(word) / 5) ** 2)
        for number, share in _features(word):
            vector[(number >> 1) % dimensions] += weight * share * (1 if number & 1 else -1)
    length = float(np.linalg.norm(vector))
    if length < 1e-6:
        # No words at all, or words that cancel out: still a unit vector, and always the same one.
        vector[:] = 0
        vector[0] = length = 1.0
    return vector / np.float32(length)


@lru_cache(maxsize=50_000)
def _features(word: str) -> tuple[tuple[int, float], ...]:
    """The word itself, its beginning in place of a stem, and its trigrams, each as a hash with its share of the word's weight."""
    framed = f"^{word}$"
    trigrams = [framed[i : i + 3] for i in range(len(framed) - 2)]
    share = 0.6 / len(trigrams) ** 0.5
    features = [
        (f"w:{word}", 0.4),
        (f"p:{word[:5]}", 1.0),
        *((f"t:{trigram}", share) for trigram in trigrams),
    ]
    return tuple((_hash(name), part) for name, part in features)


def _hash(name: str) -> int:
    """Stable across processes and machines, unlike `hash()`. The multiplication mixes what CRC-32 leaves linear."""
    return (zlib.crc32(name.encode()) * 0x9E3779B97F4A7C15 >> 20) & 0xFFFFFFFF
