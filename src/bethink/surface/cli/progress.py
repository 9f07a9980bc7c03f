"""One line on the terminal that says how far a long command is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from argparse import Namespace

EVERY = 0.1  # seconds between two drawings
CELLS = 24


class Bar:
    """Draws to stderr, only on a terminal and not with --quiet; the line is gone when it is closed."""

    def __init__(
        self,
        args: Namespace,
        label: str,
        unit: Callable[[float], str] = lambda count: f"{count:,.0f}",
    ) -> None:
        self.shown = not args.quiet and sys.stderr.isatty()
        self.label = label
        self.unit = unit
        self._drawn = 0.0
        self._dirty = False

    def __call__(self, done: int, total: int | None = None, label: str | None = None) -> None:
        if not self.shown or (time.monotonic() - self._drawn < EVERY and done != total):
            return
        self._drawn = time.monotonic()
        self._dirty = True
        sys.stderr.write("\r\x1b[K" + self.line(done, total, label))
        sys.stderr.flush()

    def line(self, done: int, total: int | None, label: str | None = None) -> str:
        if not total:
            return f"{label or self.label} {self.unit(done)}"
        full = min(CELLS, CELLS * done // total)
        return f"{label or self.label} [{'#' * full}{'.' * (CELLS - full)}] {self.unit(done)} of {self.unit(total)}"

    def close(self) -> None:
        if self._dirty:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._dirty = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
