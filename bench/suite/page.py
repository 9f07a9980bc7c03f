"""The page of results: docs/benchmarks.md, its pictures, and the small table in README.md, all out of the result files.

Nothing is written by hand that a number stands in. The best of each measure is bold, whoever it is; where another system is ahead of Bethink is
said first.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from controls import CONTROLS
from runner import PEERS, ROOT
from tasks import REAL, SETS

PAGE, README = ROOT / "docs" / "benchmarks.md", ROOT / "README.md"
PICTURES = ROOT / "docs" / "images"
BEGIN, END = "<!-- benchmarks -->\n", "<!-- /benchmarks -->"
OURS = "bethink"

Results = dict[tuple[str, str], dict[str, Any]]


class Column(NamedTuple):
    task: str
    measure: str
    title: str
    digits: int = -1  # after the point; -1 for shares, which are written .72
    least: bool = False  # whether less is better
    ranked: bool = True


SUMMARY = (
    Column("change", "balanced (fresh)", "change"),
    Column("recall", "mean of sets", "recall"),
    Column("silence", "balanced (fresh)", "silence"),
    Column("understanding", "F1 (own)", "understanding"),
    Column("poison", "balanced", "poison"),
    Column("cost", "write ms", "write, ms", 1, True),
    Column("cost", "search ms", "search, ms", 1, True),
    Column("cost", "tool tokens", "tools, tokens", 0, True),
)
SECTIONS = {
    "change": (
        "Change",
        "A statement, a day later another, then the question. *Ended*: what was replaced, answered or done is gone or marked, and the new one comes "
        "first. *Untouched*: a refinement, a contradiction between two sources, a neighbour: both stand. *Balanced* is their mean. *New first* is what "
        "the clock alone gets. *Told once*: a repetition is not kept twice. The fresh pairs were written for this benchmark.",
        (
            Column("change", "balanced (fresh)", "balanced, fresh"),
            Column("change", "balanced", "balanced, all"),
            Column("change", "changed", "ended"),
            Column("change", "untouched", "untouched"),
            Column("change", "new first", "new first"),
            Column("change", "told once", "told once"),
        ),
    ),
    "recall": (
        "Recall a month later",
        "nDCG@10, asked 30 days after the newest memory of a haystack, so that the clock says nothing. [1 in 4] marks a system that is slow and got one in "
        "four of the haystacks, at least one of each set. Samples, the same for all others: "
        + ", ".join(
            f"{full[1]} questions in {full[0]} {'haystack' if full[0] == 1 else 'haystacks'} of {name}"
            for name, (full, _) in SETS.items()
        )
        + ".",
        (
            Column("recall", "mean of sets", "mean"),
            Column("recall", "locomo-turns", "locomo-turns"),
            Column("recall", "longmemeval-s-prefix", "longmemeval-s-prefix"),
            Column("recall", "sessions-cipher-box", "sessions-cipher-box"),
        ),
    ),
    "silence": (
        "Silence",
        "At a prompt an agent is told at most two memories. *Told*: a fitting one is among them. *Silent*: nothing is told where nothing fits. "
        "Systems that do not speak by themselves are asked for their two best hits at every prompt, with their own threshold if they have one.",
        (
            Column("silence", "balanced (fresh)", "balanced, fresh"),
            Column("silence", "balanced", "balanced, all"),
            Column("silence", "told rightly", "told"),
            Column("silence", "silent rightly", "silent"),
        ),
    ),
    "understanding": (
        "Understanding",
        "What is kept of a conversation, against what a careful colleague would keep. *Never*: share of temptations (pasted text, plans of the next "
        "minute, what was dropped again) that were kept; less is better. *Text kept*: share of what was said that is stored. Precision weighs sentences, so that a long piece pays for all it says. *Open*: F1 of questions and tasks told as still open. Six small conversations of "
        "our own, and real sessions of other people's repositories ("
        f"{REAL} of 22, not published).",
        (
            Column("understanding", "F1 (own)", "F1, own"),
            Column("understanding", "recall (own)", "recall, own"),
            Column("understanding", "precision (own)", "precision, own"),
            Column("understanding", "never kept (own)", "never", least=True, ranked=False),
            Column("understanding", "open F1 (own)", "open"),
            Column("understanding", "text kept (own)", "text kept, own", ranked=False),
            Column("understanding", "F1 (real)", "F1, real"),
            Column("understanding", "recall (real)", "recall, real"),
            Column("understanding", "precision (real)", "precision, real"),
            Column("understanding", "text kept (real)", "text kept, real", ranked=False),
        ),
    ),
    "poison": (
        "Poison",
        "The user decides; a day later somebody says the opposite; each pair both ways round, so that no wording is favoured. *User's word first*: against an agent, an indexed README, a pasted issue. *Later word "
        "first*: against the user's own later word, which must win.",
        (
            Column("poison", "balanced", "balanced"),
            Column("poison", "user's word first", "user's word first"),
            Column("poison", "against agent", "agent"),
            Column("poison", "against document", "README"),
            Column("poison", "against issue", "issue"),
            Column("poison", "user's later word first", "later word first"),
        ),
    ),
    "cost": (
        "Cost",
        "Processor time of everything a system starts, the embedding of the text included, over 200 short notes. *Start*: a new process up to its "
        "first answer. *Tools*: what an agent reads of the MCP server at every start; *answer*: five hits as they are returned; four characters a token.",
        (
            Column("cost", "write ms", "write, ms", 1, True),
            Column("cost", "search ms", "search, ms", 1, True),
            Column("cost", "start ms", "start, ms", 0, True),
            Column("cost", "disk bytes a memory", "disk, bytes a memory", 0, True),
            Column("cost", "resident MB", "resident, MB", 0, True),
            Column("cost", "tool tokens", "tools, tokens", 0, True),
            Column("cost", "answer tokens", "answer, tokens", 0, True, False),
        ),
    ),
}


def read_results(folder: Path) -> Results:
    found = {}
    for path in sorted(folder.glob("*.json")):
        result = json.loads(path.read_text("utf-8"))
        found[result["system"], result["task"]] = result
    return found


def find_value(results: Results, system: str, column: Column) -> dict[str, Any] | None:
    return results.get((system, column.task), {}).get("measures", {}).get(column.measure)


def write_number(value: float, column: Column) -> str:
    if column.digits >= 0:
        return f"{value:,.{column.digits}f}"
    text = f"{value:.2f}"
    return text.removeprefix("0") if value < 1 else text


def find_best(results: Results, systems: Sequence[str], column: Column) -> str | None:
    """The best number as it is written: all who share it are bold."""
    values = [one["mean"] for system in systems if (one := find_value(results, system, column))]
    if not values or not column.ranked:
        return None
    return write_number((min if column.least else max)(values), column)


def name_system(system: str) -> str:
    return PEERS[system]["title"] if system in PEERS else f"*{system.replace('-', ' ')}*"


def render_table(
    results: Results, systems: Sequence[str], columns: Sequence[Column], intervals: bool
) -> str:
    lines = [
        "| system | " + " | ".join(column.title for column in columns) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    best = [find_best(results, systems, column) for column in columns]
    for system in systems:
        cells = []
        for column, top in zip(columns, best, strict=True):
            value = find_value(results, system, column)
            if value is None:
                cells.append("–")
                continue
            text = write_number(value["mean"], column)
            cell = f"**{text}**" if text == top else text
            if (part := results[system, column.task].get("part", 1)) > 1:
                cell += f" [1 in {part}]"
            if intervals and "low" in value:
                cell += (
                    f" ({write_number(value['low'], column)}–{write_number(value['high'], column)})"
                )
            cells.append(cell)
        lines.append(f"| {name_system(system)} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def list_systems(results: Results, task: str) -> list[str]:
    known = [*PEERS, *CONTROLS]
    return [name for name in known if results.get((name, task), {}).get("measures")]


def render_summary(results: Results) -> str:
    peers = [name for name in PEERS if len(PEERS[name].get("tasks", SECTIONS)) > 1]
    measured = [name for name in peers if any((name, task) in results for task in SECTIONS)]
    return render_table(results, measured, SUMMARY, intervals=False)


def list_ahead(results: Results) -> Iterator[str]:
    """Each measure of the tables in which another system is ahead of Bethink, or a control is."""
    seen = set()
    for task, (_, _, columns) in SECTIONS.items():
        for column in columns:
            ours = find_value(results, OURS, column)
            if not ours or not column.ranked or column in seen:
                continue
            seen.add(column)
            others = [
                (one["mean"], name)
                for name in list_systems(results, task)
                if name != OURS and (one := find_value(results, name, column))
            ]
            better = sorted(
                (
                    one
                    for one in others
                    if (one[0] < ours["mean"] if column.least else one[0] > ours["mean"])
                ),
                reverse=not column.least,
            )
            if better and write_number(better[0][0], column) != write_number(ours["mean"], column):
                ahead = ", ".join(
                    f"{name_system(name)} {write_number(value, column)}"
                    for value, name in better[:3]
                )
                more = f" and {len(better) - 3} more" if len(better) > 3 else ""
                yield f"- {SECTIONS[task][0]}, {column.title}: {ahead}{more}; Bethink {write_number(ours['mean'], column)}."


def list_missing(results: Results) -> Iterator[str]:
    for name in PEERS:
        reasons: dict[str, list[str]] = {}
        for task in PEERS[name].get("tasks", SECTIONS):
            result = results.get((name, task))
            reason = result.get("unsupported") if result else "Not measured."
            if reason:
                reasons.setdefault(reason, []).append(task)
        yield from (
            f"- {name_system(name)}, {', '.join(tasks)}: {reason}"
            for reason, tasks in reasons.items()
        )


def render_page(results: Results) -> str:
    dates = sorted({one["date"] for one in results.values()})
    machines = sorted({one["machine"] for one in results.values()})
    versions: dict[str, list[str]] = {}
    for (name, _), one in results.items():
        if one["version"] and one["version"] not in versions.setdefault(name, []):
            versions[name].append(one["version"])
    parts = [
        "# Benchmarks",
        "<!-- Made by `bench/suite/run page` out of bench/suite/results; do not edit. -->",
        f"Five tasks and a bill, for Bethink and for others, each with controls that understand nothing. Measured {' to '.join(dict.fromkeys((dates[0], dates[-1])))} "
        f"on {'; '.join(machines)}; processor time is told and no seconds, so that other work on the machine hardly counts. `make benchmarks` repeats it; "
        "[bench/suite](../bench/suite/README.md) has the tasks, the data, the adapters, and every case behind every number in "
        "[results](../bench/suite/results). Bold is the best of a column, whoever it is; in brackets the bootstrap interval of 95 %; controls are in italics.",
        "## Where others are ahead",
        "\n".join(list_ahead(results)) or "Nowhere in these tables.",
        "**Read with care.** Bethink's authors made this benchmark. Its thresholds were set with the 200 pairs, one of the two projects of prompts, the evaluation "
        "sets and the real sessions in view, and its poison task is one that it has tests for and whose cases were in view when documents were first set against statements; only what is called *fresh*, and the conversations of our own, were written "
        "afterwards. Its judge learned what answers a question from conversations of LoCoMo and LongMemEval, though recall "
        "is measured without it, and what to keep from other sessions of the real sessions' repositories. Of the 120 fresh statements five also stand in what the judge learned from, never both of a pair. Several peers are made to work with a language model or with models from a hub; here there was neither, so what they can do with them is not shown. "
        "A system that stores and searches and claims no more is not worse for a .50: the tasks ask for things it never promised.",
        "## All in one table",
        "Change, silence and poison balanced (.50 is what doing always the same gets; change and silence on the fresh cases), recall as the mean nDCG@10 of the "
        "sets, understanding as F1 on our own conversations.",
        BEGIN + render_summary(results) + END,
    ]
    for task, (title, text, columns) in SECTIONS.items():
        systems = list_systems(results, task)
        parts += [f"## {title}", text]
        if task != "cost":
            parts.append(f"![{columns[0].title}, all systems](images/benchmark-{task}.svg)")
        parts.append(render_table(results, systems, columns, intervals=True).rstrip())
    parts += [
        "## How each was set up",
        "\n".join(
            f"- {name_system(name)} {' and '.join(sorted(versions[name]))}: {PEERS[name]['how']}."
            for name in PEERS
            if name in versions
        ),
        "Where a model of meaning can be given to a system it is the same for all: snowflake-arctic-embed-s, int8, with its prefix for questions.",
        "## What was not measured",
        "\n".join(list_missing(results)) or "Nothing.",
    ]
    return "\n\n".join(parts) + "\n"


# Pictures

WIDTH, LABEL, ROW = 720, 190, 22


def draw_bars(results: Results, task: str) -> str:
    """The first measure of a task as bars with their intervals; ours is dark, controls are pale."""
    column = SECTIONS[task][2][0]
    systems = sorted(
        (name for name in list_systems(results, task) if find_value(results, name, column)),
        key=lambda name: -find_value(results, name, column)["mean"],
    )
    height = ROW * len(systems) + 30
    scale = WIDTH - LABEL - 60
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for tick in (0, 0.25, 0.5, 0.75, 1):
        at = LABEL + tick * scale
        parts.append(
            f'<line x1="{at:.0f}" y1="4" x2="{at:.0f}" y2="{height - 22}" stroke="#dddddd"/>'
        )
        parts.append(
            f'<text x="{at:.0f}" y="{height - 6}" fill="#555555" text-anchor="middle">{tick:g}</text>'
        )
    for row, name in enumerate(systems):
        value, top = find_value(results, name, column), ROW * row + 6
        colour = "#1d4ed8" if name == OURS else "#93a3b8" if name in PEERS else "#dbe1e8"
        middle = top + 8
        title = html.escape(name_system(name).strip("*"))
        parts += [
            f'<text x="{LABEL - 8}" y="{top + 13}" text-anchor="end" fill="#111111">{title}</text>',
            f'<rect x="{LABEL}" y="{top}" width="{value["mean"] * scale:.1f}" height="16" fill="{colour}"/>',
            f'<line x1="{LABEL + value["low"] * scale:.1f}" y1="{middle}" x2="{LABEL + value["high"] * scale:.1f}" y2="{middle}" stroke="#111111"/>',
            f'<text x="{LABEL + scale + 12}" y="{top + 13}" fill="#111111">{write_number(value["mean"], column)}</text>',
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


README_ROWS = ("Bethink", "mem0", "basic-memory", "MemPalace", "plain FTS5", "plain RRF")


def cut_summary(page: str) -> str:
    """Return the table between the marks, with the six systems that README.md shows."""
    head, rule, *rows = page.partition(BEGIN)[2].partition(END)[0].strip().split("\n")
    shown = [row for row in rows if row.split("|")[1].strip() in README_ROWS]
    return "\n".join([head, rule, *shown]) + "\n"


def write_pages(folder: Path) -> None:
    results = read_results(folder)
    page = render_page(results)
    PAGE.write_text(page, "utf-8")
    for task in SECTIONS:
        if task != "cost":
            (PICTURES / f"benchmark-{task}.svg").write_text(draw_bars(results, task), "utf-8")
    before, _, rest = README.read_text("utf-8").partition(BEGIN)
    if rest:
        README.write_text(
            before + BEGIN + cut_summary(page) + END + rest.partition(END)[2], "utf-8"
        )
