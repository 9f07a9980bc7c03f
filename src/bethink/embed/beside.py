"""Work that goes on beside the caller's. Knows nothing of models."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

Result = TypeVar("Result")


def started(pool: Executor, work: Callable[[], Result]) -> Future[Result]:
    """Begins on it in another thread, which goes first: a model soon computes outside of Python, while the caller would keep Python to
    itself until it waits, and nothing were done side by side."""
    begins = threading.Lock()
    begins.acquire()

    def run() -> Result:
        begins.release()
        return work()

    future = pool.submit(run)
    begins.acquire()
    return future
