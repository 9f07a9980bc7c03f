"""Four tasks about coding sessions: does memory help an agent at the next failure, the next bug report, the next day?

`failures`: scripted sessions of `bench/remedies`, each with a failed command and its fix. The same failure then happens again, or an error
that only looks like it. `decisions`: conversations of sde-bench in which a rule was settled, and later the bug report that needs it.
`next-day`: written projects with one recorded day each and six requests of the next day, of which two need nothing. `investigations`: the same
for days on which the agent found something out, so that most of what matters later was said by the agent and accepted in few words.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from measures import Measures, balance, content_words, count_tokens, summarise
from tasks import (
    BEGAN,
    HERE,
    MONTH,
    PROMPTED,
    Cases,
    Setting,
    System,
    Unsupported,
    choose,
    read_lines,
)

BENCH = HERE.parent
HITS = 3  # of a search, as many as an agent reads before it goes on
DECOYS = 24  # conversations about other things, of those that are there
WHOLE = 0.6  # share of the words of a rule that have to be shown
REFUSES = re.compile(r"\W*(no\b|not\b|nope|never|don't|do not|wrong|absolutely not)", re.I)
NUMBERS = {
    word: str(number)
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()
    )
} | {"twenty-four": "24", "thirty": "30", "sixty": "60", "twice": "2", "half": "0"}


def find_shared(setting: Setting, name: str) -> Path | None:
    """Return a folder or file of the sets that are not published with the suite."""
    places = (setting.data.parent / name, setting.data / Path(name).name)
    return next((place for place in places if place.exists()), None)


def read_talk(
    system: System, turns: Sequence[dict[str, Any]], name: str, began: Any, **rest: Any
) -> None:
    """Let a system read a conversation in its own way."""
    timed = [
        {
            "role": turn["role"],
            "text": turn["text"],
            "time": (began + timedelta(minutes=at)).isoformat(),
        }
        for at, turn in enumerate(turns)
    ]
    system.call("read", turns=timed, name=name, **rest)


def prompt(system: System, text: str) -> list[dict[str, Any]]:
    """Return what an agent reads at a prompt: where a hook shortens a memory, the line that it shows."""
    found = list(system.call("prompt", text=text))[:PROMPTED]
    return [{**one, "text": one.get("shown") or one["text"]} for one in found]


# Repeated failures


def read_cases(quick: bool) -> list[tuple[str, Any]]:
    """Return the scripted cases; those that were recorded from real tools were kept for final runs."""
    sys.path[:0] = [path for path in (str(BENCH / "remedies"),) if path not in sys.path]
    from case import Case, Step
    from seen import CASES

    rows = read_lines(BENCH / "remedies" / "recorded.jsonl")
    fresh = [
        Case(
            row["name"],
            tuple(Step(**one) for one in row["first"]),
            tuple(Step(**one) for one in row["again"]),
            row["fix"],
            tuple(Step(**one) for one in row["silent"]),
        )
        for row in rows
    ]
    cases = [*(("seen", case) for case in CASES), *(("fresh", case) for case in fresh)]
    return cases[:: 6 if quick else 1]


def measure_failures(system: System, setting: Setting) -> dict[str, Any]:
    """Right: the fix is shown when a failure happens again, and nothing for an error that was never fixed."""
    cases = read_cases(setting.quick)
    system.call("reset")
    for at, (_, case) in enumerate(cases):
        steps = [step._asdict() for step in case.first]
        time = (BEGAN + timedelta(hours=at)).isoformat()
        system.call("learn", steps=steps, text=write_session(case.first), time=time)
    found: list[list[Any]] = []
    for part, case in cases:
        again = [step for step in case.again if step.failed or step.output]
        for step, wanted in [(step, case.fix) for step in again] + [(s, "") for s in case.silent]:
            shown = str(system.call("fail", step=step._asdict(), text=write_session([step])))
            right = wanted in shown if wanted else not shown
            found.append([part, bool(wanted), int(right), count_tokens(shown)])
    return {"measures": count_failures(found, setting.seed), "cases": found}


def count_failures(cases: Cases, seed: int) -> Measures:
    measures: Measures = {}
    for suffix, parts in (("", ("seen", "fresh")), (" (fresh)", ("fresh",))):
        known = [one[2] for one in cases if one[0] in parts and one[1]]
        other = [one[2] for one in cases if one[0] in parts and not one[1]]
        measures[f"balanced{suffix}"] = balance(known, other, seed)
        measures[f"fix shown{suffix}"] = summarise(known, seed)
        measures[f"silent rightly{suffix}"] = summarise(other, seed)
    measures["tokens"] = summarise([one[3] for one in cases], seed)
    return measures


def write_session(steps: Sequence[Any]) -> str:
    """Return the steps as text, for systems that store texts."""
    lines = []
    for step in steps:
        done = step.command or step.file or f"{step.tool} {dict(step.arguments)}"
        lines.append(f"$ {done} {step.change}".rstrip())
        lines += [step.output] if step.output else []
    return "\n".join(lines)


# Decisions


def measure_decisions(system: System, setting: Setting) -> dict[str, Any]:
    """Share of bug reports whose whole deciding rule is in the first hits, or shown at the prompt unasked."""
    folder = find_shared(setting, "understanding/sde")
    if not folder:
        raise Unsupported("The tasks of sde-bench are not here; `run fetch` gets them.")
    tasks = read_lines(folder / "tasks.jsonl")
    decoys = read_lines(folder / "decoys.jsonl") if (folder / "decoys.jsonl").exists() else []
    tasks, decoys = (tasks[::4], decoys[:4]) if setting.quick else (tasks, decoys[:DECOYS])
    chats = [
        (f"{one['id']}.{at}", talk) for one in tasks for at, talk in enumerate(one["conversations"])
    ]
    chats += [(f"decoy.{at}", one["conversation"]) for at, one in enumerate(decoys)]
    system.call("reset")
    order = spread([name for name, _ in chats])
    refused: set[str] = set()
    for name, turns in sorted(chats, key=lambda chat: order[chat[0]]):
        read_talk(system, turns, name, BEGAN + timedelta(days=1) * order[name])
        pairs = pairwise(turns)
        refused |= {
            squeeze(one["text"])
            for one, next_ in pairs
            if one["role"] != "user" and next_["role"] == "user" and REFUSES.match(next_["text"])
        }
    later = (BEGAN + timedelta(days=len(chats)) + MONTH).isoformat()
    cases = []
    for task in tasks:
        report = task["bug_report"]
        asked = list(system.call("ask", question=report, time=later, k=HITS))
        shown = prompt(system, report)
        texts = [squeeze(one["text"]) for one in [*asked, *shown]]
        wrong = any(text in one for text in texts if len(text) > 20 for one in refused)
        tokens = sum(count_tokens(one["text"]) for one in shown)
        found = [int(holds_rule(task, one)) for one in (asked, shown)]
        cases.append([task["id"], *found, int(wrong), tokens])
    return {"measures": count_decisions(cases, setting.seed), "cases": cases}


def count_decisions(cases: Cases, seed: int) -> Measures:
    columns = list(zip(*cases, strict=True))
    either = [max(pair) for pair in zip(columns[1], columns[2], strict=True)]
    return {
        "in three hits": summarise(columns[1], seed),
        "at the prompt": summarise(columns[2], seed),
        "either": summarise(either, seed),
        "refused proposal": summarise(columns[3], seed),
        "prompt tokens": summarise(columns[4], seed),
    }


def spread(names: Sequence[str]) -> dict[str, int]:
    """Mix the conversations without chance; the parts of a task keep their order."""
    order = {name: (at * 37) % len(names) for at, name in enumerate(names)}
    by_task: dict[str, list[str]] = {}
    for name in names:
        by_task.setdefault(name.rpartition(".")[0], []).append(name)
    for task, own in by_task.items():
        if task != "decoy":
            order |= dict(zip(own, sorted(order[name] for name in own), strict=True))
    return order


def squeeze(text: str) -> str:
    return " ".join(text.split()).lower()


def holds_rule(task: dict[str, Any], texts: Sequence[dict[str, Any]]) -> bool:
    """Return True if texts of the right conversation hold the words and the numbers of the rule."""
    own = task["id"].removesuffix("-amended")
    right = []
    for one in texts:
        chat = str(one.get("id") or "").rpartition("#")[0]
        if not chat or chat.rpartition(".")[0].removesuffix("-amended") == own:
            right.append((chat, one["text"]))
    if not right or all(chat == f"{own}-amended.0" for chat, _ in right):
        return False
    words, shown = telling(task["policy"]), telling("\n".join(text for _, text in right))
    numbers = {one for one in words if one.isdigit()}
    return len(words & shown) >= WHOLE * len(words) and len(numbers & shown) >= len(numbers) / 2


def telling(text: str) -> set[str]:
    """Return the words that carry the meaning of a text; numbers as digits, apart from their units."""
    plain = re.sub(r"[a-z-]+", lambda found: NUMBERS.get(found[0], found[0]), text.lower())
    plain = re.sub(r"(\d)([a-z])", r"\1 \2", plain)
    return content_words(plain) | set(re.findall(r"\d+", plain))


# The next day


def measure_next_day(system: System, setting: Setting) -> dict[str, Any]:
    """Right: what decides a request is shown at its prompt, and nothing is shown for a request that needs nothing."""
    return measure_days(system, setting, "next-day")


def measure_investigations(system: System, setting: Setting) -> dict[str, Any]:
    return measure_days(system, setting, "investigations")


def measure_days(system: System, setting: Setting, file: str) -> dict[str, Any]:
    projects = read_lines(HERE / "data" / f"{file}.jsonl")
    cases: list[list[Any]] = []
    for project in choose(projects, 2 if setting.quick else len(projects), setting.seed):
        system.call("reset")
        read_talk(
            system, project["talk"], project["name"], BEGAN, instructions=project["instructions"]
        )
        later = (BEGAN + timedelta(days=1)).isoformat()
        for row in project["requests"]:
            shown = prompt(system, row["text"])
            asked = (
                list(system.call("ask", question=row["text"], time=later, k=HITS))
                if row["must"]
                else []
            )
            at_prompt = holds(row["must"], shown) if row["must"] else not shown
            tokens = sum(count_tokens(one["text"]) for one in shown)
            cases.append(
                [
                    project["name"],
                    len(row["must"]),
                    int(at_prompt),
                    int(holds(row["must"], asked)),
                    tokens,
                ]
            )
    return {"measures": count_next_day(cases, setting.seed), "cases": cases}


def count_next_day(cases: Cases, seed: int) -> Measures:
    needed = [case for case in cases if case[1]]
    silent = [case[2] for case in cases if not case[1]]
    return {
        "balanced": balance([case[2] for case in needed], silent, seed),
        "at the prompt": summarise([case[2] for case in needed], seed),
        "silent rightly": summarise(silent, seed),
        "in three hits": summarise([case[3] for case in needed], seed),
        "prompt tokens": summarise([case[4] for case in cases], seed),
    }


def holds(must: Sequence[str], texts: Sequence[dict[str, Any]]) -> bool:
    """Return True if one text holds all words of the deciding statement; `|` separates alternatives."""
    return any(
        all(any(part in squeeze(one["text"]) for part in word.split("|")) for word in must)
        for one in texts
        if must
    )


TASKS = {
    "failures": measure_failures,
    "decisions": measure_decisions,
    "next-day": measure_next_day,
    "investigations": measure_investigations,
}
COUNTERS = {
    "failures": count_failures,
    "decisions": count_decisions,
    "next-day": count_next_day,
    "investigations": count_next_day,
}
