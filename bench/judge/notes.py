"""Labelled histories of imaginary projects, `histories/*.jsonl`: notes in the order in which they were told, and what each does to earlier ones.

A row is a note: the `history` it belongs to, its `id`, `kind` and `text`, and `effects`, each the `relation` to an earlier note (`to`). What
no effect names goes on to hold. Every fourth history is only measured, never learned from.

And groups, `groups/*.jsonl`: one old statement and several that may be told after it, each with its relation to the old one, half of them tempting and
without any. Every tenth group is only measured, and so are all of `opposites-held.jsonl`: statements that say the opposite, or the same, in other words.
"""

from __future__ import annotations

import json
from pathlib import Path

HERE = Path(__file__).parent
FOLDER, GROUPS = HERE / "histories", HERE / "groups"
HELD, HELD_GROUPS = 4, 10


def read_histories(folder: Path = FOLDER) -> dict[str, list[dict]]:
    found: dict[str, list[dict]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            note = json.loads(line)
            found.setdefault(note["history"], []).append(note)
    return found


def split_histories(histories: dict) -> tuple[dict, dict]:
    """Those to learn from, and those that are only measured."""
    names = list(histories)
    held = set(names[HELD - 1 :: HELD])
    return (
        {name: histories[name] for name in names if name not in held},
        {name: histories[name] for name in names if name in held},
    )


def read_groups(folder: Path = GROUPS) -> tuple[list[dict], list[dict]]:
    """Labelled pairs to learn, and those that are only measured: whole groups, because their pairs share the old statement."""
    learned, held = [], []
    for path in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(path.read_text("utf-8").splitlines()):
            group = json.loads(line)
            rows = [
                {"old": group["old"], "new": one["text"], "relation": one["relation"]}
                for one in group["new"]
            ]
            (held if number % HELD_GROUPS == HELD_GROUPS - 1 else learned).extend(rows)
    return learned, held


def read_opposites(path: Path = HERE / "opposites-held.jsonl") -> list[dict]:
    return [
        {"old": group["old"], "new": one["text"], "relation": one["relation"]}
        for group in map(json.loads, path.read_text("utf-8").splitlines())
        for one in group["new"]
    ]
