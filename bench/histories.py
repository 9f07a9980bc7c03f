"""Tells labelled histories of imaginary projects note by note, and counts what each note did to earlier ones: rightly, wrongly, not at all.
Retiring, merging and closing are counted apart from marking, which leaves both notes valid.

    python bench/histories.py [FOLDER] [--all] [--show]

A history (`bench/judge/notes.py`) says of each note which earlier ones it replaces, repeats, answers or completes. All other notes go on to hold: whatever happens to them is wrong. Every fourth history took no part in training; those are
what is measured, unless `--all` asks for all. Controls: "newest first" changes nothing, so it is never wrong and finds nothing.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from pathlib import Path

from judge.notes import FOLDER, read_histories, split_histories

from bethink import Bethink

# What may be done to a note with such a label: a problem that was mended is solved or replaced, what repeats may also replace.
RIGHT = {
    "merged": ("same",),
    "replaced": ("replaces", "same", "completes", "answers"),
    "settled": ("answers", "completes", "replaces"),
    "marked": ("replaces", "contradicts", "refines", "same", "completes"),
}
CHANGING = ("replaces", "same", "answers", "completes")


def tell(notes: list[dict], show: bool) -> Counter[str]:
    count: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        (project / ".git").mkdir()
        with Bethink(project / "memory.db", directory=project) as memory:
            notes_by_id: dict[str, dict] = {}
            for note in notes:
                labels = {effect["to"]: effect["relation"] for effect in note["effects"]}
                outcome = memory.add(note["text"])
                count["notes"] += 1
                done = {
                    "merged": [outcome.duplicate_of] if outcome.duplicate_of else [],
                    "replaced": outcome.supersedes,
                    "settled": outcome.settles,
                    "marked": outcome.marks,
                    "proposed": [one.id for one in outcome.proposals],
                }
                found = {}
                for what, ids in done.items():
                    for old in (notes_by_id[id] for id in ids):
                        label = labels.get(old["id"], "")
                        if what == "proposed":
                            count["proposed rightly" if label in CHANGING else "proposed"] += 1
                            continue
                        right = label in RIGHT[what]
                        count[f"{what} {'rightly' if right else 'WRONGLY'}"] += 1
                        if what == "marked":
                            count[f"{label} marked"] += label in CHANGING
                            continue
                        found[old["id"]] = right
                        if show and not right:
                            print(f"{what} ({label or 'holds'}): {old['text']}\n    {note['text']}")
                for id, label in labels.items():
                    if label in CHANGING:
                        count[f"{label}"] += 1
                        count[f"{label} found"] += found.get(id, False)
                        if show and not found.get(id):
                            old = next(one for one in notes if one["id"] == id)
                            print(f"missed {label}: {old['text']}\n    {note['text']}")
                notes_by_id.setdefault(outcome.id, note)
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--all", action="store_true", help="also those that the judge learned from")
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args()
    total: Counter[str] = Counter()
    histories = read_histories(args.folder)
    for notes in (histories if args.all else split_histories(histories)[1]).values():
        total += tell(notes, args.show)
    print(json.dumps(dict(sorted(total.items())), indent=1))


main()
