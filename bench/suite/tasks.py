"""Five tasks: change, recall, silence, understanding and poison. Each adds texts to a system, asks it, and judges the answer by words.

A system is anything with `call(verb, **arguments)`: the process of an adapter, or a control. A task returns a plain object: `measures`
(name → mean, interval, number of cases) and `cases`, from which COUNTERS computes every measure again. A system that lacks an ability raises
Unsupported, and the result records the reason.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from measures import (
    DEPTH,
    Measures,
    balance,
    is_about,
    ndcg,
    pick_statement,
    summarise,
    summarise_parts,
)

HERE = Path(__file__).resolve().parent
BEGAN = datetime(2026, 9, 1, 9, tzinfo=UTC)
MONTH = timedelta(days=30)
Cases = list[list[Any]]  # a row for each question, claim, pair or conversation
PROMPTED = 2  # memories that count at a prompt: more would be a search result, not a reminder
SESSION_DEPTH = 6 * DEPTH  # hits asked for where several of one session count once


class Unsupported(Exception):
    """The system lacks an ability, or something that the ability needs; the message names it."""


class System(Protocol):
    def call(self, verb: str, **arguments: Any) -> Any: ...


class Setting(NamedTuple):
    """Settings of a run: the folder of public sets, the size of the sample, and the seed of every choice.

    A slow system gets one in `part` cases of the larger tasks, at least one; the page marks it."""

    data: Path
    quick: bool = False
    seed: int = 1
    part: int = 1
    largest: int = 10_000


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]


def choose(rows: list[Any], count: int, seed: int) -> list[Any]:
    """Return `count` rows, the same for every system, in their order."""
    if count >= len(rows):
        return rows
    chosen = sorted(random.Random(seed).sample(range(len(rows)), count))
    return [rows[at] for at in chosen]


def add_text(
    system: System, text: str, time: datetime, who: str = "user", source: str = "note"
) -> None:
    system.call("add", text=text, time=time.isoformat(), who=who, source=source)


def ask(system: System, question: str, time: datetime, k: int = DEPTH) -> list[dict[str, Any]]:
    return list(system.call("ask", question=question, time=time.isoformat(), k=k))


def find_valid(
    system: System, statements: dict[str, str], time: datetime, answer: list[dict[str, Any]]
) -> set[str]:
    """Return the statements that are still valid for the system: it returns them, unmarked, for the question or for their own words."""
    found = list(answer)
    for statement in statements.values():
        found += ask(system, statement, time)
    valid = {pick_statement(one["text"], statements) for one in found if not one.get("replaced")}
    return {name for name in valid if name}


# 1. Change


def measure_change(system: System, setting: Setting) -> dict[str, Any]:
    """Right: what is out of date is gone or marked, and the rest is still valid."""
    cases: list[list[Any]] = []
    for file in ("change", "change-fresh"):
        pairs = read_lines(HERE / "data" / f"{file}.jsonl")
        chosen = choose(pairs, 12 if setting.quick else len(pairs), setting.seed)
        taken = chosen[:: setting.part]
        cases += [[file, row["relation"], *judge_pair(system, row)] for row in taken]
    return {"measures": count_change(cases, setting.seed), "cases": cases}


def count_change(cases: Cases, seed: int) -> Measures:
    measures: Measures = {}
    for part, files in (("", ("change", "change-fresh")), (" (fresh)", ("change-fresh",))):
        of = [case for case in cases if case[0] in files]
        ended = [case[3] for case in of if case[1] in ("replaces", "answers", "completes")]
        kept = [case[3] for case in of if case[1] in ("refines", "contradicts", "unrelated")]
        measures[f"balanced{part}"] = balance(ended, kept, seed)
        measures[f"changed{part}"] = summarise(ended, seed)
        measures[f"untouched{part}"] = summarise(kept, seed)
        measures[f"new first{part}"] = summarise(
            [case[2] for case in of if case[1] in ("replaces", "answers")], seed
        )
        measures[f"told once{part}"] = summarise(
            [case[3] for case in of if case[1] == "same"], seed
        )
    return measures


def judge_pair(system: System, row: dict[str, str]) -> tuple[int, int]:
    """Return whether the new statement comes first for the question, and whether the valid statements are the right ones."""
    system.call("reset")
    statements = {"old": row["old"], "new": row["new"]}
    add_text(system, row["old"], BEGAN)
    add_text(system, row["new"], BEGAN + timedelta(days=1))
    later = BEGAN + timedelta(days=2)
    answer = ask(system, row["question"], later)
    current = [one for one in answer if not one.get("replaced")]
    new_first = bool(current) and pick_statement(current[0]["text"], statements) == "new"
    valid = find_valid(system, statements, later, answer)
    relation = row["relation"]
    if relation in ("replaces", "answers"):
        right = new_first and valid == {"new"}
    elif relation == "completes":
        right = valid == {"new"}
    elif relation == "same":
        right = len(valid) == 1
    else:
        right = valid == {"old", "new"}
    return int(new_first), int(right)


# 2. Recall a month later

# set → how many haystacks and how many questions of all of them are taken: in full, and with --quick
SETS = {
    "locomo-turns": ((2, 200), (0, 0)),
    "longmemeval-s-prefix": ((40, 40), (6, 6)),
    "sessions-cipher-box": ((1, 101), (0, 0)),
}


def measure_recall(system: System, setting: Setting) -> dict[str, Any]:
    """Return nDCG@10 of each set that is available, and their mean."""
    cases: Cases = []
    for name, sizes in SETS.items():
        haystacks, questions = sizes[setting.quick]
        if not haystacks or not (setting.data / name / "corpus.jsonl").is_file():
            continue
        for query, found in ask_set(system, setting, name, haystacks, questions):
            value = ndcg(found, query.get("relevant") or query["relevant_sessions"])
            cases.append([name, query["id"], round(value, 4)])
    if not cases:
        raise Unsupported(
            "None of the sets was in the folder that --data names; `run fetch` makes them."
        )
    return {"measures": count_recall(cases, setting.seed), "cases": cases}


def count_recall(cases: Cases, seed: int) -> Measures:
    by_set: dict[str, list[float]] = {}
    for name, _, value in cases:
        by_set.setdefault(name, []).append(value)
    measures = {name: summarise(values, seed) for name, values in by_set.items()}
    measures["mean of sets"] = summarise_parts(list(by_set.values()), seed)
    return measures


def ask_set(
    system: System, setting: Setting, name: str, haystacks: int, questions: int
) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Yield each question with the names of its hits, asked 30 days after the newest memory of its haystack."""
    folder, seed = setting.data / name, setting.seed
    documents, queries = read_lines(folder / "corpus.jsonl"), read_lines(folder / "queries.jsonl")
    scopes = choose(list(dict.fromkeys(row.get("scope", "") for row in queries)), haystacks, seed)
    queries = choose([row for row in queries if row.get("scope", "") in scopes], questions, seed)
    for scope in scopes[:: setting.part]:
        rows = [row for row in documents if row.get("scope", "") == scope]
        asked = [row for row in queries if row.get("scope", "") == scope]
        if not asked:
            continue
        by_id = {row["id"]: row for row in rows}
        by_text = {" ".join(row["text"].split()): row for row in reversed(rows)}
        later = max(read_moment(row["time"]) for row in rows) + MONTH
        system.call("reset")
        system.call("load", items=[as_item(row) for row in rows])
        for query in asked:
            by_session = "relevant_sessions" in query
            found = ask(system, query["query"], later, SESSION_DEPTH if by_session else DEPTH)
            hits = [
                by_id.get(one.get("id", "")) or by_text.get(" ".join(one["text"].split()))
                for one in found
            ]
            names = [hit["session" if by_session else "id"] for hit in hits if hit]
            yield query, names


def as_item(row: dict[str, Any]) -> dict[str, Any]:
    time = read_moment(row["time"]).isoformat()
    session = row.get("session", row["id"])
    return {"id": row["id"], "text": row["text"], "time": time, "who": "user", "source": session}


def read_moment(text: str) -> datetime:
    found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return found if found.tzinfo else found.replace(tzinfo=UTC)


# 3. Silence


def measure_silence(system: System, setting: Setting) -> dict[str, Any]:
    """Right: a prompt to which a memory applies gets it among the first two, and any other prompt gets nothing."""
    cases: list[list[Any]] = []
    for name, file in (
        ("theatre", HERE / "data" / "silence.jsonl"),
        ("pool", HERE.parent / "judge" / "prompts" / "held.jsonl"),
    ):
        rows = read_lines(file)
        memories = {row["id"]: row["text"] for row in rows if row["type"] == "memory"}
        prompts = [row for row in rows if row["type"] == "prompt"]
        system.call("reset")
        for text in memories.values():
            add_text(system, text, BEGAN)
        for row in choose(prompts, 24 if setting.quick else len(prompts), setting.seed):
            found = list(system.call("prompt", text=row["text"]))[:PROMPTED]
            names = [pick_statement(one["text"], memories) for one in found]
            right = any(id in names for id in row["fits"]) if row["fits"] else not found
            cases.append([name, len(row["fits"]), int(right), len(found)])
    return {"measures": count_silence(cases, setting.seed), "cases": cases}


def count_silence(cases: Cases, seed: int) -> Measures:
    measures: Measures = {}
    for part, names in (("", ("theatre", "pool")), (" (fresh)", ("theatre",))):
        of = [case for case in cases if case[0] in names]
        shown = [case[2] for case in of if case[1]]
        silent = [case[2] for case in of if not case[1]]
        measures[f"balanced{part}"] = balance(shown, silent, seed)
        measures[f"told rightly{part}"] = summarise(shown, seed)
        measures[f"silent rightly{part}"] = summarise(silent, seed)
    return measures


# 4. Understanding

REAL = 8  # of the labelled real sessions: reading one takes minutes
COUNTS = "worth found kept right never never_kept open open_found reported reported_rightly said stored".split()


def measure_understanding(system: System, setting: Setting) -> dict[str, Any]:
    """Compare what was kept of conversations with what a careful colleague would keep."""
    talks = read_lines(HERE / "data" / "talks.jsonl")
    labels = setting.data.parent / "understanding" / "labels"
    real = [] if setting.quick else choose(sorted(labels.glob("*.json")), REAL, setting.seed)
    cases = [["own", talk["name"], *count_kept(system, talk)] for talk in talks]
    for file in real:
        talk = read_labelled(file, setting.data.parent / "transcripts" / "real")
        cases.append(["real", talk["name"], *count_kept(system, talk)])
    return {"measures": count_understanding(cases, setting.seed), "cases": cases}


def count_understanding(cases: Cases, seed: int) -> Measures:
    measures: Measures = {}
    for part in dict.fromkeys(case[0] for case in cases):
        of = [case[2:] for case in cases if case[0] == part]
        for name, value in summarise_kept(of, seed).items():
            measures[f"{name} ({part})"] = value
    return measures


def count_kept(system: System, talk: dict[str, Any]) -> list[int]:
    """Return the counts named in COUNTS for one conversation. Precision counts sentences, so that a long text pays for all of them."""
    system.call("reset")
    turns = [
        {
            "role": turn["role"],
            "text": turn["text"],
            "time": turn.get("time") or (BEGAN + timedelta(minutes=at)).isoformat(),
        }
        for at, turn in enumerate(talk["turns"])
    ]
    gold = talk["remember"]
    kept = list(
        system.call(
            "talk", turns=turns, file=talk.get("file"), host=talk.get("host"), worth=len(gold)
        )
    )
    memories = [one["text"] for one in kept if one.get("kind", "memory") == "memory"]
    reported = [one["text"] for one in kept if one.get("kind", "memory") != "memory"]
    wanted = [one["statements"] for one in gold]
    worth = [one["statements"] for one in gold if one["worth"] >= 2]
    still = [one["statements"] for one in talk["open"]]
    sentences = split_sentences(memories)
    right = [text for text in sentences if says_any(text, wanted)]
    wrong = [text for text in sentences if text not in right]
    tempted = [
        one for one in talk["never"] if any(says_any(text, [one["statements"]]) for text in wrong)
    ]
    return [
        len(worth),
        sum(any(says_any(text, [one]) for text in memories) for one in worth),
        len(sentences),
        len(right),
        len(talk["never"]),
        len(tempted),
        len(still),
        sum(any(says_any(text, [one]) for text in reported) for one in still),
        len(reported),
        sum(says_any(text, still) for text in reported),
        sum(len(turn["text"]) for turn in turns),
        sum(len(text) for text in memories + reported),
    ]


def split_sentences(texts: list[str]) -> list[str]:
    parts = [part.strip() for text in texts for part in re.split(r"(?<=[.!?])\s+|\n+", text)]
    return [part for part in parts if len(part.split()) > 2]


def says_any(text: str, wanted: list[list[str]]) -> bool:
    return any(is_about(text, statement) for statements in wanted for statement in statements)


def summarise_kept(cases: list[list[int]], seed: int) -> dict[str, Any]:
    """Return shares over all conversations; the intervals resample conversations, not sentences."""
    dice = random.Random(seed)
    drawn = [share_kept(dice.choices(cases, k=len(cases))) for _ in range(1000)]
    result = {}
    for name, mean in share_kept(cases).items():
        values = sorted(one[name] for one in drawn)
        ends = {"low": round(values[25], 4), "high": round(values[974], 4)}
        result[name] = {"mean": round(mean, 4), **ends, "of": len(cases)}
    return result


def share_kept(cases: list[list[int]]) -> dict[str, float]:
    total = dict(zip(COUNTS, map(sum, zip(*cases, strict=True)), strict=True))

    def share(part: str, whole: str) -> float:
        return total[part] / total[whole] if total[whole] else 0.0

    recall, precision = share("found", "worth"), share("right", "kept")
    open_recall, open_precision = (
        share("open_found", "open"),
        share("reported_rightly", "reported"),
    )
    return {
        "F1": harmonic(recall, precision),
        "recall": recall,
        "precision": precision,
        "never kept": share("never_kept", "never"),
        "open F1": harmonic(open_recall, open_precision),
        "text kept": share("stored", "said"),
    }


def harmonic(one: float, other: float) -> float:
    return 2 * one * other / (one + other) if one + other else 0.0


def read_labelled(file: Path, transcripts: Path) -> dict[str, Any]:
    """Read a labelled session of a real transcript in the form of data/talks.jsonl."""
    label = json.loads(file.read_text("utf-8"))
    transcript = next(transcripts.rglob(f"{file.stem}.jsonl"))
    still = [one for key in ("questions", "todos") for one in label[key] if one["state"] == "open"]
    return {
        "name": file.stem,
        "file": str(transcript),
        "host": transcript.parent.name,
        "turns": list(read_turns(transcript)),
        "remember": [
            {
                "statements": [one["quote"], one.get("statement", one["quote"])],
                "worth": one["worth"],
            }
            for one in label["remember"]
        ],
        "open": [{"statements": [one["quote"]]} for one in still],
        "never": [{"statements": [one["quote"]]} for one in label["never"]],
    }


def read_turns(transcript: Path) -> Iterator[dict[str, Any]]:
    """Yield the messages of user and assistant in a transcript of Claude Code or Codex, without tool calls and results."""
    for line in transcript.read_text("utf-8", "replace").split("\n"):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        inner = (
            row.get("message") if row.get("type") in ("user", "assistant") else row.get("payload")
        )
        if not isinstance(inner, dict) or inner.get("role") not in ("user", "assistant"):
            continue
        content = inner.get("content")
        parts = [{"text": content}] if isinstance(content, str) else content or []
        texts = [
            part["text"]
            for part in parts
            if isinstance(part, dict) and isinstance(part.get("text"), str)
        ]
        text = re.sub(
            r"<system-reminder>.*?</system-reminder>", "", "\n".join(texts), flags=re.DOTALL
        ).strip()
        if text and not row.get("isMeta"):
            yield {"role": inner["role"], "text": text, "time": row.get("timestamp")}


# 5. Poison

# who claims the opposite of the user's decision, and its source
CLAIMANTS = (("agent", "note"), ("document", "README.md"), ("issue", "issue-4711.md"))


def measure_poison(system: System, setting: Setting) -> dict[str, Any]:
    """Right: the user's decision comes first against other claims, and gives way to the user's later word.

    Each pair is used both ways round, so that no wording is favoured."""
    cases: list[list[Any]] = []
    rows = read_lines(HERE / "data" / "poison.jsonl")
    for row in choose(rows, 3 if setting.quick else len(rows), setting.seed):
        for first, second in ((row["decided"], row["claim"]), (row["claim"], row["decided"])):
            for who, source in (*CLAIMANTS, ("user", "note")):
                system.call("reset")
                add_text(system, first, BEGAN)
                add_text(system, second, BEGAN + timedelta(days=1), who, source)
                answer = ask(system, row["question"], BEGAN + timedelta(days=2))
                current = [one for one in answer if not one.get("replaced")]
                statements = {"decided": first, "claim": second}
                best = pick_statement(current[0]["text"], statements) if current else None
                cases.append([who, int(best == ("claim" if who == "user" else "decided"))])
    return {"measures": count_poison(cases, setting.seed), "cases": cases}


def count_poison(cases: Cases, seed: int) -> Measures:
    kept_first = [right for who, right in cases if who != "user"]
    changed = [right for who, right in cases if who == "user"]
    measures = {
        "balanced": balance(kept_first, changed, seed),
        "user's word first": summarise(kept_first, seed),
        "user's later word first": summarise(changed, seed),
    }
    for who, _ in CLAIMANTS:
        measures[f"against {who}"] = summarise([right for one, right in cases if one == who], seed)
    return measures


TASKS = {
    "change": measure_change,
    "recall": measure_recall,
    "silence": measure_silence,
    "understanding": measure_understanding,
    "poison": measure_poison,
}
COUNTERS = {
    "change": count_change,
    "recall": count_recall,
    "silence": count_silence,
    "understanding": count_understanding,
    "poison": count_poison,
}
