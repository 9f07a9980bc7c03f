"""What an embedder is: text in, unit vectors out; and what all of them share: text made safe and cut to size, and how a model's
file is opened, which the judge does, too.

A text longer than the model's window becomes several windows and so several vectors; nothing is cut off.
Nothing here knows one model from another, or where vectors are kept.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bethink.text import sha256

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

Progress = Callable[[int], None]
Bytes = Callable[[int, int | None], None]
"""Called with the bytes fetched so far and, where known, their total."""
Result = TypeVar("Result")

COPY_DAYS = 7  # after which a copy of a model that is no longer there is removed
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


# Models of onnxruntime


def open_session(model: Path, home: Path) -> Any:
    """A session over a model, on one core. onnxruntime first rewrites the graph into faster operations, which is two thirds of the
    opening (bench/LOG.md, 2026-11-16); so the outcome is kept under `home`, and the next process opens that. The numbers are
    the same. A copy can be thrown away at any time, and is where it cannot be read."""
    # It looks only while it is imported. Without this it writes an id of the machine into the user's cache and calls home.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    levels = onnxruntime.GraphOptimizationLevel

    def start(file: Path, level: Any, written: Path | None = None) -> Any:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # texts run side by side instead
        options.inter_op_num_threads = 1
        options.log_severity_level = 4  # what is wrong is raised; stderr belongs to the program
        options.graph_optimization_level = level
        if written:
            options.optimized_model_filepath = str(written)
        return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])

    copies = home / "models" / ".optimised"
    told = model.stat()
    identity = f"{model.resolve()} {told.st_size} {told.st_mtime_ns} {onnxruntime.__version__}"
    copy = copies / f"{sha256(identity.encode()).hexdigest()[:20]}.onnx"
    part = copy.with_suffix(f".{os.getpid()}.part")
    # Its errors have no base of their own.
    with suppress(Exception):
        if copy.exists():
            return start(copy, levels.ORT_DISABLE_ALL)
    try:
        _prepare_copies(copies)
        session = start(model, levels.ORT_ENABLE_EXTENDED, part)
        part.replace(copy)
        return session
    except Exception:  # noqa: BLE001 - a folder that is only read, a full disk: opening goes on as slowly as before
        with suppress(OSError):
            part.unlink()
    return start(model, levels.ORT_ENABLE_EXTENDED)


def _prepare_copies(copies: Path) -> None:
    copies.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in copies.iterdir():
        with suppress(OSError):
            if time.time() - old.stat().st_mtime > COPY_DAYS * 86_400:
                old.unlink()
