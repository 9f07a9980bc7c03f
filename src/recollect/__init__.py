"""Recollect: one long-term memory for coding agents and the people who work with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.2.0"
__all__ = ["Memory", "__version__"]

if TYPE_CHECKING:
    from recollect.memory import Memory


def __getattr__(name: str) -> object:
    # `recollect --version` must not pay for the database and the pipelines.
    if name == "Memory":
        from recollect.memory import Memory

        return Memory
    raise AttributeError(f"module 'recollect' has no attribute {name!r}")
