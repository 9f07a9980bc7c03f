"""Recollect: one long-term memory for coding agents and the people who work with them."""

from __future__ import annotations

TYPE_CHECKING = False  # not the one of `typing`, whose import alone is most of the time in which Ctrl-C would meet nobody

__version__ = "0.4.0"
__all__ = ["Memory", "MemoryTool", "__version__"]

if TYPE_CHECKING:
    from recollect.memory import Memory
    from recollect.memorytool import MemoryTool


def __getattr__(name: str) -> object:
    # `recollect --version` must not pay for the database and the pipelines.
    if name == "Memory":
        from recollect.memory import Memory

        return Memory
    if name == "MemoryTool":
        from recollect.memorytool import MemoryTool

        return MemoryTool
    raise AttributeError(f"module 'recollect' has no attribute {name!r}")
