"""What an embedder is: text in, unit vectors out; and what all of them share: text made safe and cut to size.

A text longer than the model's window becomes several windows and so several vectors; nothing is cut off.
Nothing here knows a model or its tokens, or where vectors are kept.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

Progress = Callable[[int], None]
Result = TypeVar("Result")

WINDOW = 128  # tokens of text behind one vector (bench/LOG.md, 2026-11-15)


class Embedder(Protocol):
    model: str
    """Identity kept beside every vector: the model's name and revision. Vectors of different identities never meet."""

    baseline: float
    """The cosine this model usually gives a question and a text that have nothing to do with each other."""

    unrelated: float
    """The cosine of two statements of one project that have nothing to do with each other."""

    @property
    def dimensions(self) -> int: ...

    def documents(self, texts: Sequence[str], progress: Progress | None = None) -> list[Matrix]:
        """One float32 array of shape (windows, dimensions) per text, rows of length 1. `progress(n)` counts finished texts."""
        ...

    def query(self, text: str) -> Matrix:
        """One float32 unit vector of shape (dimensions,), made the way this model wants questions made."""
        ...


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


_UNSAFE = r"[\ud800-\udfff\x00]"
# A sentence ends after its mark and the quotes or brackets that close on it; a line ends at its break; Chinese and Japanese need no space.
_SENTENCE_END = r"(?<=[.!?…])[\"'”’)\]]*\s+|\n\s*|(?<=[。！？])"


def clean(text: str) -> str:
    """The text without what tokenizers and JSON choke on: NUL becomes a space, half of a surrogate pair U+FFFD."""
    if not re.search(_UNSAFE, text):
        return text
    return (
        text.encode("utf-16-le", "surrogatepass")
        .decode("utf-16-le", "replace")
        .replace("\x00", " ")
    )


def sentence_ends(text: str) -> list[int]:
    """The places where a new sentence or line begins, ascending; possibly the end of the text among them."""
    return [match.end() for match in re.finditer(_SENTENCE_END, text)]


def pieces(text: str, limit: int) -> Iterator[str]:
    """Pieces of at most `limit` characters that join up to the whole, cut between sentences, else between words, else anywhere."""
    start = 0
    while len(text) - start > limit:
        end = _last_cut(text, start + limit // 2, start + limit)
        yield text[start:end]
        start = end
    yield text[start:]


def _last_cut(text: str, low: int, high: int) -> int:
    ends = sentence_ends(text[low:high])
    if ends:
        return low + ends[-1]
    space = max(text.rfind(blank, low, high) for blank in " \t\n")
    return space + 1 if space >= 0 else high
