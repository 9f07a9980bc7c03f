"""Vectors without a model: words, their beginnings and their trigrams, hashed into dimensions.

They know spelling, not meaning, which is enough for tests and for machines that cannot have a model.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from math import log

from bethink.embed import EmbeddingProvider
from bethink.embed.base import Matrix

HASHED_DIMENSIONS = 256
WINDOW_WORDS = 400
_WORD = re.compile(r"\w+")
# A run without spaces, such as a page of Chinese, counts as several words so that windows stay windows.
_LONGEST_WORD = 64


class HashingEmbedder:
    remote = False
    quick = True

    def __init__(self, dimensions: int = HASHED_DIMENSIONS) -> None:
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
    """Hashes of the word, its beginning (in place of a stem) and its trigrams, each with its weight."""
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
    """Return a stable hash, unlike `hash()`. The multiplication mixes what CRC-32 leaves linear."""
    return (zlib.crc32(name.encode()) * 0x9E3779B97F4A7C15 >> 20) & 0xFFFFFFFF


PROVIDER = EmbeddingProvider("hashing", lambda config: HashingEmbedder(), semantic=False)
