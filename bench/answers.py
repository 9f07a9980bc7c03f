"""Evidence shown: histories read in as transcripts, asked through the agents' search tool, and what the answer shows.

    python bench/answers.py [SET …] [--half tune|unseen|both] [--show] [--only bm25] [--later 1 31]

No reader is needed: a question counts if its evidence can be read in the returned text. Three steps:

1. Histories. `locomo`: each of the ten conversations, its first speaker as the user. `longmemeval`: haystacks of 45 full sessions,
   as large as those of LongMemEval-S, each with the evidence of its questions and sessions of other questions. Both are read by
   `backfill` into one database per history, which is kept under --cache, so that another run takes a minute.
2. Questions. A fixed sample, asked by `search_memories` with 2,000 tokens a day after the last session and a month later.
   Every second history is held back (`unseen`); nothing may be tuned on those.
3. Evidence. In locomo the turns that the set cites; in longmemeval the sentences that `data/evidence.jsonl` points at in each
   evidence session. A piece of evidence is shown if two thirds of its runs of four words are in the answer. `any` and `all` are the
   shares of questions of which any piece, and every piece, is shown.

Controls have the same turns and the same budget, whole turns with date and role, the best first and the last one cut: `bm25` and
`rrf` (reciprocal ranks of BM25 and the cosine), without recency.

There is no set like BEAM in the folder of evaluation sets, so it is not measured here.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from bethink import Bethink
from bethink.agents.base import as_time
from bethink.app.mcp.tools import call
from bethink.bench import LabelledHit, order_by_recipe
from bethink.features.conversations import backfill
from bethink.language.times import find_period
from bethink.model import Filter
from bethink.recall.shape import cut, tokens

ROOT = Path(__file__).resolve().parents[1]
SETS = ("longmemeval", "locomo")
SEED, BUDGET, DEPTH = 39, 2000, 300
HAYSTACKS, SESSIONS = 6, 45  # of longmemeval
QUESTIONS, OF_REPLIES = 78, 24  # of longmemeval: about the user's words, and about the assistant's
PER_CONVERSATION = 16  # questions of each locomo conversation
LATER = (1, 31)  # days after the last session
RUN, ENOUGH = 4, 2 / 3  # words of a run, and share of runs that have to be shown
CONTROLS = ("bm25", "rrf")
Row = dict[str, Any]


class Question(NamedTuple):
    id: str
    text: str
    type: str
    evidence: list[str]  # texts


class History(NamedTuple):
    name: str
    sessions: list[list[Row]]  # messages as `plain` transcripts have them, oldest session first
    questions: list[Question]

    @property
    def ends(self) -> datetime:
        return max(at for one in self.sessions if (at := as_time(one[0]["timestamp"])))


def read_rows(file: Path) -> list[Row]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]


# Histories


def read_locomo(folder: Path) -> list[History]:
    turns = read_rows(folder / "locomo-turns" / "corpus.jsonl")
    asked = read_rows(folder / "locomo-turns" / "queries.jsonl")
    texts = {row["id"]: row["text"] for row in turns}
    histories = []
    for name in sorted({row["scope"] for row in turns}):
        own = [row for row in turns if row["scope"] == name]
        first = own[0]["text"].partition(":")[0]
        sessions: dict[str, list[Row]] = {}
        for row in own:
            role = "user" if row["text"].startswith(f"{first}:") else "assistant"
            message = {"role": role, "content": row["text"], "timestamp": row["time"]}
            sessions.setdefault(row["session"], []).append({**message, "id": row["id"]})
        of_it = [row for row in asked if row["scope"] == name]
        chosen = random.Random(f"{SEED} {name}").sample(of_it, PER_CONVERSATION)
        questions = [
            Question(row["id"], row["query"], row["type"], [texts[id] for id in row["relevant"]])
            for row in chosen
        ]
        ordered = sorted(sessions.values(), key=lambda one: one[0]["timestamp"])
        histories.append(History(name, ordered, questions))
    return histories


def read_longmemeval(folder: Path) -> list[History]:
    sessions = {row["id"]: row for row in read_rows(folder / "longmemeval-pool" / "corpus.jsonl")}
    asked = read_rows(folder / "longmemeval-pool" / "queries.jsonl")
    located = {row["id"] for row in read_rows(folder / "longmemeval-s-prefix" / "queries.jsonl")}
    pointed = read_evidence()
    dice = random.Random(SEED)
    said = [row for row in asked if row["type"] != "single-session-assistant"]
    said = dice.sample([row for row in said if row["id"] in located], QUESTIONS)
    replied = [row for row in asked if row["type"] == "single-session-assistant"]
    replied = dice.sample(replied, OF_REPLIES)
    others = [id for id in sessions if not any(id in row["relevant"] for row in said + replied)]
    dice.shuffle(others)
    groups = [
        [*part(said, number, HAYSTACKS), *part(replied, number, HAYSTACKS)]
        for number in range(HAYSTACKS)
    ]
    histories = []
    for number, group in enumerate(groups):
        ids = list(dict.fromkeys(id for row in group for id in row["relevant"]))
        ids += [others.pop() for _ in range(SESSIONS - len(ids))]
        ordered = sorted((sessions[id] for id in ids), key=lambda one: one["time"])
        questions = [
            Question(
                row["id"],
                row["query"],
                row["type"],
                [
                    " ".join(split_sentences(sessions[id]["text"])[at] for at in places)
                    for id, places in pointed.get(row["id"], {}).items()
                ],
            )
            for row in group
        ]
        found = [one for one in questions if one.evidence and not depends_on_day(one.text)]
        histories.append(
            History(f"haystack-{number}", [list(split_turns(row)) for row in ordered], found)
        )
    return histories


def part(rows: list[Row], number: int, parts: int) -> list[Row]:
    """Return one part of rows that are in the order of their times, so that a history covers a short time."""
    ordered = sorted(rows, key=lambda row: row["time"])
    return ordered[number * len(rows) // parts : (number + 1) * len(rows) // parts]


def depends_on_day(question: str) -> bool:
    """Return True for a question such as "… ten days ago?": a history holds sessions of several questions, each with its own day."""
    days = (datetime(2024, 3, 6, tzinfo=UTC), datetime(2024, 8, 15, tzinfo=UTC))
    return len({find_period(question, day)[:2] for day in days}) > 1


def split_turns(session: Row) -> Iterator[Row]:
    pieces = re.split(r"(?m)^(user|assistant): ?", session["text"])[1:]
    for number, (role, text) in enumerate(zip(pieces[::2], pieces[1::2], strict=True)):
        id = f"{session['id']}:{number}"
        yield {"role": role, "content": text.strip(), "timestamp": session["time"], "id": id}


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a session, by which evidence is pointed at."""
    return [one.strip() for one in re.split(r"(?<=[.!?])\s+|\n+", text) if one.strip()]


def read_evidence() -> dict[str, dict[str, list[int]]]:
    file = ROOT / "bench" / "data" / "evidence.jsonl"
    return {row["id"]: row["sentences"] for row in read_rows(file)} if file.exists() else {}


READERS = {"longmemeval": read_longmemeval, "locomo": read_locomo}


def open_history(history: History, folder: Path) -> Bethink:
    """Open the database of a history; a session that is not in it yet is read."""
    folder.mkdir(parents=True, exist_ok=True)
    memory = Bethink(folder / "memory.db", directory=folder)
    done = folder / "done"
    if not done.exists():
        for number, turns in enumerate(history.sessions):
            file = folder / f"{number:03}.jsonl"
            if not file.exists():
                file.write_text("".join(json.dumps(turn) + "\n" for turn in turns), "utf-8")
            backfill(memory, [("plain", file)], trusted=True, strict=True)
        done.touch()
    return memory


# Answers


def ask(memory: Bethink, question: Question, system: str, now: datetime) -> tuple[str, int]:
    """Return what a system shows, and the tokens that it takes."""
    memory.clock = lambda: now
    if system == "bethink":
        reply = call(memory, "search_memories", {"query": question.text, "max_tokens": BUDGET})
        return str(reply.text), tokens(str(reply.text))
    seen = Filter(scopes=(memory.scope,), kinds=("context",), now=now)
    answer = memory.search(question.text, filter=seen, limit=DEPTH, related=False, threshold=0.0)
    pool = [
        LabelledHit(str(at), "", {**hit.why, "recent": 0.0}) for at, hit in enumerate(answer.hits)
    ]
    shown, left = [], BUDGET
    for one in order_by_recipe(pool, system):
        turn = answer.hits[int(one.document)].memory
        text = f"[{turn.created_at:%Y-%m-%d} {turn.metadata.get('role')}] {turn.content}\n"
        if tokens(text) > left:
            shown.append(cut(text, left))
            break
        shown.append(text)
        left -= tokens(text)
    return "".join(shown), BUDGET - left


def find_runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    length = min(RUN, len(words))
    return {tuple(words[at : at + length]) for at in range(len(words) - length + 1)}


def is_shown(evidence: str, answer: str) -> bool:
    words = re.findall(r"\w+", answer.lower())
    wanted = find_runs(evidence)
    length = len(next(iter(wanted)))
    found = {tuple(words[at : at + length]) for at in range(len(words) - length + 1)}
    return len(wanted & found) >= ENOUGH * len(wanted)


def measure(
    histories: Sequence[History],
    folder: Path,
    systems: Sequence[str],
    later: Sequence[int],
    args: argparse.Namespace,
) -> Counter[tuple[object, ...]]:
    counts: Counter[tuple[object, ...]] = Counter()
    for place, history in enumerate(histories):
        half = "unseen" if place % 2 else "tune"
        if args.half not in (half, "both"):
            continue
        if args.ready and not (folder / history.name / "done").exists():
            continue
        started = time.process_time()
        with open_history(history, folder / history.name) as memory:
            print(f"{history.name}: ready, {time.process_time() - started:.0f} s", file=sys.stderr)
            if args.index:
                continue
            for days in later:
                now = history.ends + timedelta(days=days)
                for system in systems:
                    for question in history.questions:
                        text, used = ask(memory, question, system, now)
                        shown = [is_shown(one, text) for one in question.evidence]
                        for key in ((half, days, system), (half, days, system, question.type)):
                            counts[*key, "questions"] += 1
                            counts[*key, "any"] += any(shown)
                            counts[*key, "all"] += all(shown)
                            counts[*key, "tokens"] += used
                            counts[*key, "over"] += used > BUDGET
                        if args.show and not all(shown):
                            show_missed(question, shown, system, days, text, args.text)
    return counts


def show_missed(
    question: Question, shown: list[bool], system: str, days: int, text: str, whole: bool
) -> None:
    print(f"\n[{system}, {days} d] {question.type}: {question.text}")
    for one, seen in zip(question.evidence, shown, strict=True):
        print(f"  {'shown ' if seen else 'MISSED'} {one[:300]!r}")
    if whole:
        print("    | " + text.replace("\n", "\n    | "))


def report(name: str, counts: Counter[tuple[object, ...]], types: bool) -> None:
    keys = sorted({key[:-1] for key in counts if types or len(key) == 4}, key=str)
    for key in keys:
        number = counts[*key, "questions"]
        any_, all_ = (counts[*key, one] / number for one in ("any", "all"))
        label = " ".join(map(str, key))
        print(
            f"{name:12} {label:42} any {any_:.3f}  all {all_:.3f}  n {number:4}"
            f"  tokens {counts[*key, 'tokens'] / number:6.0f}  over {counts[*key, 'over']}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "bench")
    parser.add_argument(
        "--cache", type=Path, default=Path(tempfile.gettempdir()) / "bethink-answers"
    )
    parser.add_argument("--half", choices=("tune", "unseen", "both"), default="both")
    parser.add_argument("--later", type=int, nargs="*", default=LATER)
    parser.add_argument("--systems", nargs="*", default=("bethink", *CONTROLS))
    parser.add_argument("--index", action="store_true", help="only read the histories in")
    parser.add_argument("--ready", action="store_true", help="only histories that are read in")
    parser.add_argument("--types", action="store_true", help="also by type of question")
    parser.add_argument("--show", action="store_true", help="questions whose evidence is missing")
    parser.add_argument("--text", action="store_true", help="with --show, the answers too")
    args = parser.parse_args()
    for name in args.sets:
        histories = READERS[name](args.data)
        counts = measure(histories, args.cache / name, args.systems, args.later, args)
        report(name, counts, args.types)


if __name__ == "__main__":
    main()
