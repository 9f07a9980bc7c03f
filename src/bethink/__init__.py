"""Bethink: one long-term memory for coding agents and the people who work with them."""

from __future__ import annotations

TYPE_CHECKING = False  # not the one of `typing`, whose import alone is most of the time in which Ctrl-C would meet nobody

__version__ = "0.23.0"
__all__ = ["Bethink", "Memory", "__version__"]

if TYPE_CHECKING:
    from bethink.api import Bethink
    from bethink.model import Memory


def __getattr__(name: str) -> object:
    # `bethink --version` must not pay for the database and the pipelines.
    if name in ("Bethink", "Memory"):
        from bethink.api import Bethink
        from bethink.model import Memory

        return Bethink if name == "Bethink" else Memory
    raise AttributeError(f"module 'bethink' has no attribute {name!r}")
