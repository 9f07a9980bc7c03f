"""Anything → memories: the write side. Stages load on first use (`ingest.edit`); a search loads none."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from bethink.ingest import (  # noqa: F401
        analyze,
        code,
        compare,
        edit,
        git,
        ideas,
        languages,
        pipeline,
        reconcile,
        redact,
        sync,
        undo,
    )

STAGES = """
analyze code compare edit git ideas languages pipeline reconcile redact sync undo
""".split()


def __getattr__(name: str) -> ModuleType:
    if name not in STAGES:
        raise AttributeError(f"module 'bethink.ingest' has no attribute {name!r}")
    module = f"bethink.ingest.{name}"
    __import__(module)  # without `importlib`, which a search would load for it
    return sys.modules[module]
