"""Adds texts of evaluation sets as notes, one after the other, and tells what the judge did to those before: what was merged,
replaced, answered or done. The pairs go to a file, to be read by hand.

    python bench/changed.py OUT.tsv ../shared/bench/locomo-turns:2000 ../shared/bench/sessions-git-sync:1500 …
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from itertools import islice
from pathlib import Path

from bethink import Bethink


def read_rows(folder: Path, most: int) -> dict[str, list[str]]:
    """The first texts of a set by their scope, each of which is a project of its own."""
    found: dict[str, list[str]] = {}
    with (folder / "corpus.jsonl").open(encoding="utf-8") as lines:
        for line in islice(lines, most):
            row = json.loads(line)
            text = row["text"].removeprefix("user: ").removeprefix("assistant: ")
            found.setdefault(row.get("scope", ""), []).append(text)
    return found


def add_each(texts: list[str], project: Path, out) -> Counter[str]:
    tally: Counter[str] = Counter()
    with Bethink(project / "memory.db", directory=project) as memory:
        contents: dict[str, str] = {}
        for text in texts:
            began = time.process_time()
            outcome = memory.add(text)
            tally["milliseconds"] += round(1000 * (time.process_time() - began))
            tally["texts"] += 1
            done = {
                "merged": [outcome.duplicate_of] if outcome.duplicate_of else [],
                "replaced": outcome.supersedes,
                "settled": outcome.settles,
            }
            for what, ids in done.items():
                for id in ids:
                    tally[what] += 1
                    out.write(f"{what}\t{contents.get(id, '')!r}\t{text!r}\n")
            contents.setdefault(outcome.id, text)
    return tally


def main() -> None:
    out, *sets = sys.argv[1:]
    with Path(out).open("w", encoding="utf-8") as file:
        for one in sets:
            folder, _, most = one.partition(":")
            tally: Counter[str] = Counter()
            for texts in read_rows(Path(folder), int(most or 10**9)).values():
                with tempfile.TemporaryDirectory() as project:
                    (Path(project) / ".git").mkdir()
                    tally += add_each(texts, Path(project), file)
            print(Path(folder).name, dict(tally), flush=True)


main()
