"""What an embedder is: text in, unit vectors out.

A text longer than the model's window becomes several windows and so several vectors; nothing is cut off.
Nothing here knows where vectors are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

Progress = Callable[[int], None]

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
