"""Two tasks about what a search shows: `answers` (is the evidence inside 2,000 tokens?) and `languages`."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from coding import BENCH
from measures import Measures, summarise, summarise_parts
from tasks import BEGAN, Cases, Setting, System, Unsupported, ask, read_lines, read_moment

BUDGET = 2000  # tokens of an answer
SEED = 39  # the sample of bench/answers.py
RUN, ENOUGH = 4, 2 / 3  # words of a run, and share of runs that have to be shown
CONVERSATIONS, QUESTIONS = (1, 3), 16  # of locomo, those that nothing was tuned on
HAYSTACKS, SESSIONS = 1, 30  # of longmemeval
DATED = re.compile(r"\b(ago|last|past|yesterday|recent\w*|this (?:week|month|year)|today)\b", re.I)
Row = dict[str, Any]


def measure_answers(system: System, setting: Setting) -> dict[str, Any]:
    """Share of questions of which all evidence is shown, a month after the last session."""
    if setting.quick:
        raise Unsupported("Reading whole histories takes too long for the quick sample.")
    cases: list[list[Any]] = []
    for name, histories in (
        ("locomo", list(read_locomo(setting))),
        ("longmemeval", list(read_longmemeval(setting))),
    ):
        for sessions, questions in histories:
            system.call("reset")
            for session in sessions:
                system.call("read", turns=session, name=session[0]["id"])
            later = read_moment(sessions[-1][-1]["time"]) + timedelta(days=31)
            for question in questions:
                text = str(
                    system.call(
                        "answer", question=question["ask"], time=later.isoformat(), tokens=BUDGET
                    )
                )
                shown = [is_shown(one, text) for one in question["evidence"]]
                cases.append([name, question["id"], int(all(shown)), int(any(shown))])
    if not cases:
        raise Unsupported("The sets of conversations are not here; `run fetch` gets them.")
    return {"measures": count_answers(cases, setting.seed), "cases": cases}


def count_answers(cases: Cases, seed: int) -> Measures:
    measures: Measures = {}
    for name in dict.fromkeys(case[0] for case in cases):
        own = [case for case in cases if case[0] == name]
        measures[f"{name}, all"] = summarise([case[2] for case in own], seed)
        measures[f"{name}, any"] = summarise([case[3] for case in own], seed)
    by_set = [[case[2] for case in cases if case[0] == name] for name in ("locomo", "longmemeval")]
    measures["mean of sets"] = summarise_parts([one for one in by_set if one], seed)
    return measures


def read_locomo(setting: Setting) -> Iterator[tuple[list[list[Row]], list[Row]]]:
    folder = setting.data / "locomo-turns"
    if not (folder / "corpus.jsonl").is_file():
        return
    turns, asked = read_lines(folder / "corpus.jsonl"), read_lines(folder / "queries.jsonl")
    texts = {row["id"]: row["text"] for row in turns}
    names = sorted({row["scope"] for row in turns})
    for name in (names[at] for at in CONVERSATIONS if at < len(names)):
        own = [row for row in turns if row["scope"] == name]
        first = own[0]["text"].partition(":")[0]
        sessions: dict[str, list[Row]] = {}
        for row in own:
            role = "user" if row["text"].startswith(f"{first}:") else "assistant"
            turn = {"role": role, "text": row["text"], "time": as_zoned(row["time"])}
            sessions.setdefault(row["session"], []).append({**turn, "id": row["id"]})
        of_it = [row for row in asked if row["scope"] == name]
        chosen = random.Random(f"{SEED} {name}").sample(of_it, min(QUESTIONS, len(of_it)))
        questions = [
            {
                "id": row["id"],
                "ask": row["query"],
                "evidence": [texts[id] for id in row["relevant"]],
            }
            for row in chosen
        ]
        ordered = sorted(sessions.values(), key=lambda one: one[0]["time"])
        yield ordered, questions


def read_longmemeval(setting: Setting) -> Iterator[tuple[list[list[Row]], list[Row]]]:
    """Haystacks of whole sessions around questions whose evidence `bench/data/evidence.jsonl` points at."""
    folder = setting.data / "longmemeval-pool"
    if not (folder / "corpus.jsonl").is_file():
        return
    sessions = {row["id"]: row for row in read_lines(folder / "corpus.jsonl")}
    pointed = {row["id"]: row["sentences"] for row in read_lines(BENCH / "data" / "evidence.jsonl")}
    asked = [
        row
        for row in read_lines(folder / "queries.jsonl")
        if row["id"] in pointed and not DATED.search(row["query"])
    ]
    dice = random.Random(SEED)
    dice.shuffle(asked)
    others = [id for id in sessions if not any(id in row["relevant"] for row in asked)]
    dice.shuffle(others)
    for _ in range(HAYSTACKS):
        group, asked = asked[:QUESTIONS], asked[QUESTIONS:]
        ids = list(dict.fromkeys(id for row in group for id in row["relevant"]))
        ids += [others.pop() for _ in range(max(0, SESSIONS - len(ids)))]
        ordered = sorted((sessions[id] for id in ids), key=lambda one: one["time"])
        questions = [
            {
                "id": row["id"],
                "ask": row["query"],
                "evidence": [
                    " ".join(split_sentences(sessions[id]["text"])[at] for at in places)
                    for id, places in pointed[row["id"]].items()
                ],
            }
            for row in group
        ]
        yield [list(split_turns(row)) for row in ordered], questions


def as_zoned(time: str) -> str:
    return read_moment(time).isoformat()


def split_turns(session: Row) -> Iterator[Row]:
    pieces = re.split(r"(?m)^(user|assistant): ?", session["text"])[1:]
    for at, (role, text) in enumerate(zip(pieces[::2], pieces[1::2], strict=True)):
        time = (read_moment(session["time"]) + timedelta(seconds=at)).isoformat()
        yield {"role": role, "text": text.strip(), "time": time, "id": f"{session['id']}:{at}"}


def split_sentences(text: str) -> list[str]:
    return [one.strip() for one in re.split(r"(?<=[.!?])\s+|\n+", text) if one.strip()]


def find_runs(text: str, length: int) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[at : at + length]) for at in range(len(words) - length + 1)}


def is_shown(evidence: str, answer: str) -> bool:
    """Return True if two thirds of the runs of four words of the evidence are in the answer."""
    length = min(RUN, len(re.findall(r"\w+", evidence)))
    wanted = find_runs(evidence, length)
    return len(wanted & find_runs(answer, length)) >= ENOUGH * len(wanted)


# Languages

ENGLISH = "en"


def measure_languages(system: System, setting: Setting) -> dict[str, Any]:
    """Share of questions whose own note is the first hit."""
    rows = read_lines(BENCH / "data" / "languages-held.jsonl")
    languages = [name for name in rows[0]["note"] if name != ENGLISH]
    rows = rows[:: 4 if setting.quick else 2]  # half of them, which takes minutes for most systems
    languages = languages[:2] if setting.quick else languages
    languages = languages[:: setting.part]
    cases: list[list[Any]] = []
    groups = [(ENGLISH, [ENGLISH, *languages]), *((name, [name]) for name in languages)]
    for written, asked_in in groups:
        system.call("reset")
        for at, row in enumerate(rows):
            time = datetime.fromisoformat((BEGAN + timedelta(minutes=at)).isoformat())
            system.call(
                "add", text=row["note"][written], time=time.isoformat(), who="user", source="note"
            )
        for language in asked_in:
            for row in rows:
                hits = ask(system, row["ask"][language], BEGAN + timedelta(days=1), 1)
                right = bool(hits) and squeeze(row["note"][written]) in squeeze(hits[0]["text"])
                cases.append([written, language, int(right)])
    return {"measures": count_languages(cases, setting.seed), "cases": cases}


def count_languages(cases: Cases, seed: int) -> Measures:
    across = [case[2] for case in cases if case[0] == ENGLISH != case[1]]
    within = [case[2] for case in cases if case[0] == case[1] != ENGLISH]
    english = [case[2] for case in cases if case[0] == case[1] == ENGLISH]
    measures = {
        "mean": summarise_parts([across, within], seed),
        "across": summarise(across, seed),
        "within": summarise(within, seed),
        "English": summarise(english, seed),
    }
    for language in dict.fromkeys(case[1] for case in cases if case[1] != ENGLISH):
        own = [case[2] for case in cases if case[0] == ENGLISH and case[1] == language]
        measures[f"asked in {language}"] = summarise(own, seed)
    return measures


def squeeze(text: str) -> str:
    return " ".join(text.split()).lower()


TASKS = {"answers": measure_answers, "languages": measure_languages}
COUNTERS = {"answers": count_answers, "languages": count_languages}
