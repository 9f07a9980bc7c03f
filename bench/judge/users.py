"""Statements of users in real conversations with the verdict of a careful reader: the ROWS of `lasting.py`.

    python bench/judge/users.py TRANSCRIPTS ROWS.jsonl

TRANSCRIPTS holds the conversations, in folders named after their repositories. They are not ours to publish, so `talk/users.tsv` names a
statement by the hash of its words: session, hash, worth. 3 and 2 are worth keeping, 1 may be; a line without a hash says that the session
was read, and what it does not name is worth nothing. A statement whose words are cut otherwise than then counts as worth nothing.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
from pathlib import Path

from bethink import agents
from bethink.agents.speech import shorten
from bethink.ingest.ideas import place_statements
from bethink.ingest.redact import redact
from bethink.judge import Judge

HERE = Path(__file__).parent
WEIGHTS = {1: 0.5}  # of a statement that may be worth keeping


def read_verdicts(path: Path = HERE / "talk" / "users.tsv") -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for session, name, worth in csv.reader(file, delimiter="\t"):
            own = found.setdefault(session, {})
            if name:
                own[name] = int(worth)
    return found


def list_rows(path: Path, verdicts: dict[str, int], judge: Judge) -> list[dict]:
    """Return the user's statements of one conversation that no answer of the agent completes."""
    turns, asked = [], {}
    for page in agents.read(path).pages():
        for turn in page.turns:
            said = redact(turn.text)
            if turn.agent is None and not turn.summary and not said.empty:
                asked |= {len(turns): turn.asked} if turn.asked else {}
                role = "assistant" if turn.plan else turn.role
                turns.append((role, shorten(said.text.strip())))
    placed = [one for one in place_statements(turns, 0, asked) if one.speaker == "user"]
    placed = [one for one in placed if not one.statement.completed]
    readings = judge.read([(one.unheard, one.statement.text) for one in placed])
    rows = []
    for one, reading in zip(placed, readings, strict=True):
        own = one.statement
        worth = verdicts.get(hashlib.sha256(own.text.encode()).hexdigest()[:12], 0)
        form = {"position": own.position, "width": one.width, "label": own.label}
        form |= {"heading": bool(own.heading), "working": False, "doubtful": own.doubtful}
        verdict = {"keep": worth > 0, "weight": WEIGHTS.get(worth, 1.0)}
        place = {"repository": path.parent.name, "speaker": "user", "text": own.text}
        rows.append({**place, **form, **verdict, **reading._asdict()})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("transcripts", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    verdicts, judge = read_verdicts(), Judge()
    files = {path.stem: path for path in args.transcripts.rglob("*") if path.is_file()}
    rows = [
        row
        for session, own in verdicts.items()
        if session in files
        for row in list_rows(files[session], own, judge)
    ]
    args.out.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    print(f"{len(rows)} statements, {sum(row['keep'] for row in rows)} to keep")


if __name__ == "__main__":
    main()
