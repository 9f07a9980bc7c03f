"""What to beware of in a file that a tool is about to edit, or has just read: gotchas that name it. Only with the setting `tool_hooks`."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from bethink.hooks import given
from bethink.hooks.event import Hook
from bethink.hooks.prompt import Told, always_told, written
from bethink.recall.excerpt import Sought
from bethink.types import TRUST

if TYPE_CHECKING:
    from bethink.api import Bethink
    from bethink.types import Memory

WARNINGS = ("gotcha", "problem")
MOST, LOOKED = 3, 20


def told(hook: Hook, memory: Bethink) -> Told:
    """Known gotchas about the files of a tool call that this session was not told before."""
    hidden = set(given.read(hook).ids)
    chosen: dict[str, Memory] = {}
    for file in hook.files:
        name = PurePath(file.replace("\\", "/")).name
        if not name:
            continue
        filter = memory.filter(kinds=WARNINGS)
        for hit in memory.search(
            f'"{name}"', filter=filter, mode="keyword", limit=LOOKED, seed=0, related=False
        ).hits:
            one = hit.memory
            known = (
                one.id in hidden or one.trust < TRUST["agent"] or one.answered or always_told(one)
            )
            if not known and _about(one, file, name):
                chosen[one.id] = one
    best = list(chosen.values())[:MOST]
    return (
        written(memory, best, Sought(frozenset()), memory.config.prompt_tokens) if best else Told()
    )


def _about(one: Memory, file: str, name: str) -> bool:
    """Whether a memory means this file: by its path where it names one, else by its name."""
    named = [
        entity.name
        for entity in one.entities
        if entity.type == "file" and PurePath(entity.name).name == name
    ]
    paths = [path for path in named if "/" in path]
    whole = "/" + file.replace("\\", "/").lstrip("/")
    return (
        any(whole.endswith("/" + path.lstrip("./")) for path in paths)
        if paths
        else name in one.content
    )
