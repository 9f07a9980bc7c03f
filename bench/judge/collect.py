"""Questions and the passages that answer them, for the judge's `fits` head: labelled sets → one file that `train.py` reads.

    python bench/judge/collect.py ../shared/bench questions.jsonl

A line is a passage {pool, id, text} or a question {pool, question, right: [ids], held?, weak?}. A pool is what one
question searches. Where only the session is known that holds the answer, all its passages are right (`weak`). Whole sets,
or the last scopes of a set, are held: they are only measured.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

LEARNED = {  # set → every how many-th question, or scope where there are several, is held
    "locomo-turns": 5,
    "longmemeval-pool": 5,
    "cosqa": 5,
    "sessions-git-sync": 10,
}
HELD = ("scifact", "sessions-cipher-box")
LONGEST = 600  # characters of a passage


def read_rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def collect(folder: Path, share: int) -> list[dict]:
    found: list[dict] = []
    sessions: dict[tuple[str, str], list[str]] = defaultdict(list)
    scopes: dict[str, int] = {}
    for row in read_rows(folder / "corpus.jsonl"):
        pool = f"{folder.name}/{row.get('scope', '')}"
        scopes.setdefault(pool, len(scopes))
        found.append({"pool": pool, "id": row["id"], "text": row["text"][:LONGEST]})
        if session := row.get("session"):
            sessions[pool, session].append(row["id"])
    for number, row in enumerate(read_rows(folder / "queries.jsonl")):
        pool = f"{folder.name}/{row.get('scope', '')}"
        right = row.get("relevant")
        weak = right is None
        if weak:
            right = [id for name in row["relevant_sessions"] for id in sessions[pool, name]]
        turn = scopes[pool] if len(scopes) > 1 else number
        held = not share or turn % share == share - 1
        found.append({"pool": pool, "question": row["query"], "right": right})
        found[-1] |= {"held": held, "weak": weak}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    rows: list[dict] = []
    for name, share in (LEARNED | dict.fromkeys(HELD, 0)).items():
        rows += collect(args.sets / name, share)
    args.out.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    asked = [row for row in rows if "question" in row]
    print(
        len(rows) - len(asked),
        "passages,",
        len(asked),
        "questions,",
        sum(r["held"] for r in asked),
        "held",
    )


if __name__ == "__main__":
    main()
