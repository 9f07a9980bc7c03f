"""Labelled histories of imaginary projects, `histories/*.jsonl`: notes in the order in which they were told, and what each does to earlier ones.

A row is a note: the `history` it belongs to, its `id`, `kind` and `text`, and `effects`, each the `relation` to an earlier note (`to`). What
no effect names goes on to hold. Every fourth history is only measured, never learned from.
"""

from __future__ import annotations

import json
from pathlib import Path

FOLDER = Path(__file__).parent / "histories"
HELD = 4


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
