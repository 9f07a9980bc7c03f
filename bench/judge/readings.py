"""What careful readers say of the statements of real conversations, joined with the conversations: the TALK of `train.py`.

    python bench/judge/readings.py FOLDER TALK.jsonl [--leave-out LABELS]

FOLDER holds the session sets in `bench` and the conversations in `transcripts`; sessions that LABELS names are only measured.

The conversations are not ours to publish, so `talk/readings.tsv` names a statement by the hash of its words: session, hash, reader, kind,
worth, and state at the end of the session. Two readers read each of 104 sessions whole (2026-11-17; they agree in .73, F1, on what is worth
keeping). 3 and 2 are worth keeping, 1 may be, .3 is a near miss or restates another; what a reader of a session does not name is
worth nothing. A statement whose words are cut otherwise than then has no label and is left out with its session's count.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from model import KINDS

import bethink.agents as hosts
from bethink.agents.speech import shorten
from bethink.ingest.ideas import place_statements
from bethink.ingest.redact import redact

HERE = Path(__file__).parent
SETS = ("sessions-cipher-box", "sessions-git-sync")
KEPT, CLEAR = 1.0, 2.0  # from which on a statement is worth keeping at all, and clearly
Readings = dict[str, dict[str, dict[str, tuple[str, float, str]]]]  # session → reader → hash


def name_statement(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def read_readings(path: Path = HERE / "talk" / "readings.tsv") -> Readings:
    found: Readings = {}
    with path.open(encoding="utf-8", newline="") as file:
        for session, name, reader, kind, worth, state in csv.reader(file, delimiter="\t"):
            own = found.setdefault(session, {}).setdefault(reader, {})
            if name:  # a line without one says that the session was read
                own[name] = (kind, float(worth or 0), state)
    return found


def find_files(shared: Path, folder: Path) -> dict[str, tuple[str, Path]]:
    """Host and transcript of each session; those of the session sets are written into the folder."""
    found = {}
    for name in SETS:
        rows = (shared / "bench" / name / "corpus.jsonl").read_text("utf-8").splitlines()
        for row in map(json.loads, rows):
            role, _, text = row["text"].partition(":")
            said = {"role": role.lower(), "content": text.strip(), "id": row["id"]}
            path = folder / f"{row['session']}.jsonl"
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({**said, "timestamp": row["time"]}) + "\n")
            found[row["session"]] = ("plain", path)
    for path in (shared / "transcripts/claude-fixtures").rglob("*.jsonl"):
        found.setdefault(path.stem, ("claude", path))
    for path in (shared / "transcripts/real").rglob("*.jsonl"):
        found[path.stem] = (path.parent.name, path)
    return found


def read_turns(host: str, path: Path) -> Iterator[tuple[str, str]]:
    """Who said what, as it would be kept."""
    for page in hosts.read(path, host=host).pages():
        for turn in page.turns:
            said = redact(turn.text)
            if turn.agent is None and not turn.summary and not said.empty:
                yield "assistant" if turn.plan else turn.role, shorten(said.text.strip())


def label(said: list[tuple[str, float, str]]) -> dict:
    """What the readers say of one statement, in the mean; its kind is that of the reader who thinks most of it."""
    kind = max(said, key=lambda one: (one[0] != "none", one[1]))[0]
    worths = [sum(worth >= bar for _, worth, _ in said) / len(said) for bar in (KEPT, CLEAR)]
    states = {state for _, _, state in said if state}
    state = "open" if "open" in states else "closed" if states else ""
    return {"kind": kind if kind in KINDS else "none", "worths": worths, "state": state}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shared", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--leave-out", type=Path, help="a folder of labels: only measured")
    args = parser.parse_args()
    held = {path.stem for path in args.leave_out.glob("*.json")} if args.leave_out else set()
    rows, missing = [], 0
    with tempfile.TemporaryDirectory() as folder:
        files = find_files(args.shared, Path(folder))
        for session, readers in read_readings().items():
            if session in held:
                continue
            names = set()
            for placed in place_statements(list(read_turns(*files[session]))):
                text = placed.statement.text
                name = name_statement(text)
                names.add(name)
                said = [own.get(name, ("none", 0.0, "")) for own in readers.values()]
                rows.append({"context": placed.context, "text": text, **label(said)})
            missing += sum(name not in names for own in readers.values() for name in own)
    args.out.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    worthy = sum(row["worths"][0] > 0 for row in rows)
    print(f"{len(rows)} statements, {worthy} worth keeping to somebody, {missing} labels not found")


if __name__ == "__main__":
    main()
