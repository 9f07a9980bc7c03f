"""Render docs/benchmarks.md, its pictures and the table in README.md from the result files. No number is written by hand."""

from __future__ import annotations

import html
import json
import math
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from controls import CONTROLS, EXPLAINED
from runner import HERE, PEERS, ROOT
from sections import IN_README, NEXT, OURS, SECTIONS, SUMMARY, Column

PAGE, README = ROOT / "docs" / "benchmarks.md", ROOT / "README.md"
PICTURES = ROOT / "docs" / "images"
BEGIN, END = "<!-- benchmarks -->\n", "<!-- /benchmarks -->"

README_SYSTEMS = ("bethink", "mem0", "basic-memory", "mempalace", "fts5", "rrf")
WORST = 10  # measures in the list of what Bethink is worst at
NOT_RUN = tomllib.loads((HERE / "peers.toml").read_text("utf-8")).get("not-run", [])

Results = dict[tuple[str, str], dict[str, Any]]


def read_results(folder: Path) -> Results:
    """Read the results of all known systems and tasks."""
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
    """Return the best number of a column as it is written: all systems that share it are bold."""
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


def is_ours(system: str) -> bool:
    return system == OURS or system.startswith(f"{OURS}-")


def list_systems(results: Results, task: str) -> list[str]:
    known = [*PEERS, *CONTROLS]
    return [name for name in known if results.get((name, task), {}).get("measures")]


def list_peers(results: Results) -> list[str]:
    peers = [name for name in PEERS if len(PEERS[name].get("tasks", SECTIONS)) > 1]
    return [name for name in peers if any((name, task) in results for task in SECTIONS)]


def render_summary(results: Results) -> str:
    return render_table(results, list_peers(results), SUMMARY, intervals=False)


def render_readme(results: Results) -> str:
    """Render the small table of README.md: six systems, and the measures that most readers look for."""
    columns = [column for column in SUMMARY if column.title in IN_README]
    systems = [name for name in list_peers(results) if name in README_SYSTEMS]
    return render_table(results, systems, columns, intervals=False)


def list_columns() -> Iterator[Column]:
    for section in SECTIONS.values():
        yield from (column for column in section.columns if column.ranked)


def find_ahead(results: Results, column: Column) -> list[tuple[float, str]]:
    """Return the other systems that are ahead of Bethink in a column, the best first; controls do not count."""
    ours = find_value(results, OURS, column)
    if not ours:
        return []
    sign = -1 if column.least else 1
    others = [
        (one["mean"], name)
        for name in list_systems(results, column.task)
        if name in PEERS and not is_ours(name) and (one := find_value(results, name, column))
    ]
    others = [one for one in others if one[0] or column.digits < 0]  # a cost of 0 is none at all
    ahead = [one for one in others if sign * one[0] > sign * ours["mean"]]
    ahead.sort(key=lambda one: -sign * one[0])
    same = ahead and write_number(ahead[0][0], column) == write_number(ours["mean"], column)
    return [] if same else ahead


def list_ahead(results: Results) -> Iterator[str]:
    """Yield a line for each measure in which another system is ahead of Bethink."""
    for column in list_columns():
        if better := find_ahead(results, column):
            ours = find_value(results, OURS, column)
            assert ours
            ahead = ", ".join(
                f"{name_system(name)} {write_number(value, column)}" for value, name in better[:3]
            )
            more = f" and {len(better) - 3} more" if len(better) > 3 else ""
            title = SECTIONS[column.task].title
            yield f"- {title}, {column.title}: {ahead}{more}; Bethink {write_number(ours['mean'], column)}."


def measure_gap(results: Results, column: Column) -> float:
    """Return how far Bethink is behind: of shares the difference, of costs the number of doublings, a tenth each."""
    better, ours = find_ahead(results, column), find_value(results, OURS, column)
    if not better or not ours:
        return 0.0
    best = better[0][0]
    if column.digits < 0:
        return abs(best - ours["mean"])
    return math.log2(ours["mean"] / max(best, 0.01)) / 10 if column.least else 0.0


def list_worst(results: Results) -> Iterator[str]:
    """Yield the measures in which Bethink is furthest behind, each with the next step; of those with the same step, the first."""
    gaps = {column: measure_gap(results, column) for column in list_columns()}
    worst = sorted((column for column in gaps if gaps[column] > 0), key=lambda one: -gaps[one])
    by_step: dict[str, Column] = {}
    for column in worst:
        step = NEXT.get((column.task, column.measure)) or NEXT[column.task, ""]
        by_step.setdefault(step, column)
    for step, column in list(by_step.items())[:WORST]:
        value, name = find_ahead(results, column)[0]
        ours = find_value(results, OURS, column)
        assert ours
        yield (
            f"1. {SECTIONS[column.task].title}, {column.title}: {write_number(ours['mean'], column)}, "
            f"{name_system(name)} {write_number(value, column)}. Next: {step}"
        )


def list_missing(results: Results) -> Iterator[str]:
    for name in PEERS:
        reasons: dict[str, list[str]] = {}
        for task in PEERS[name].get("tasks", SECTIONS):
            result = results.get((name, task))
            reason = result.get("unsupported") if result else "Not measured yet; it can be run."
            if reason:
                reasons.setdefault(reason, []).append(task)
        yield from (
            f"- {name_system(name)}, {', '.join(tasks)}: {reason}"
            for reason, tasks in reasons.items()
        )
    for one in NOT_RUN:
        yield f"- {one['title']} {one['version']}: {one['why']}"


def render_published() -> str:
    rows = tomllib.loads((HERE / "published.toml").read_text("utf-8"))["figure"]
    lines = [
        "Figures that others publish about these sets. They are **not comparable** with the table above: readers, judges and measures differ.",
        "",
        "| set | system | published | measure |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {row['set']} | {row['system']} | {row['value']} | {row['what']} |" for row in rows
    ]
    return "\n".join(lines)


def list_versions(results: Results) -> Iterator[str]:
    """Yield how each system was set up, with its versions and the days on which it was measured."""
    for name in PEERS:
        own = [one for (system, _), one in results.items() if system == name and one["version"]]
        if not own:
            continue
        versions = sorted({one["version"] for one in own})
        days = sorted({one["date"] for one in own})
        when = " to ".join(dict.fromkeys((days[0], days[-1])))
        commits = sorted({one["commit"] for one in own if one.get("commit")})
        built = f" (commit {', '.join(commits)})" if name == OURS and commits else ""
        yield f"- {name_system(name)} {' and '.join(versions)}{built}, measured {when}: {PEERS[name]['how']}."


def list_raw(results: Results, task: str) -> str:
    """Return the number of cases behind a table, their files, and what was in view."""
    section = SECTIONS[task]
    counts: dict[int, list[str]] = {}
    for column in section.columns:
        if value := find_value(results, OURS, column):
            counts.setdefault(value["of"], []).append(column.title)
    cases = "; ".join(f"{count:,} ({', '.join(titles)})" for count, titles in counts.items())
    files = f"Raw results: [results/*.{task}.json](../bench/suite/results)."
    in_view = f"In view while Bethink was tuned: {section.in_view}"
    return " ".join(([f"Cases of Bethink's row: {cases}."] if cases else []) + [files, in_view])


def render_page(results: Results) -> str:
    dates = sorted({one["date"] for one in results.values()})
    machines = sorted({one["machine"] for one in results.values()})
    parts = [
        "# Benchmarks",
        "<!-- Made by `bench/suite/run page` from bench/suite/results; do not edit. -->",
        f"Bethink, other systems, and controls that understand nothing, on {len(SECTIONS)} tasks. Measured {' to '.join(dict.fromkeys((dates[0], dates[-1])))} "
        f"on {'; '.join(machines)}. `make benchmarks` repeats everything; [bench/suite](../bench/suite/README.md) describes the data, the adapters and how to "
        "add a system. Bold is the best of a column. Brackets hold the 95 % bootstrap interval, italics mark controls, and [1 in 4] marks a slow system that got a sample.",
        "## Where others are ahead",
        "\n".join(list_ahead(results)) or "Nowhere in these tables.",
        "## What Bethink is worst at",
        "\n".join(list_worst(results)) or "Nothing in these tables.",
        "## Read with care",
        "- Bethink's authors made this benchmark. Each section names the data that was in view while Bethink was tuned; compare the *fresh* measures.\n"
        "- Several peers are designed for a language model or for models from a hub. Neither was available, so their best set-up is not shown. This "
        "holds most for systems that store what a language model extracts, such as mem0, Hindsight and claude-mem, and for agentmemory and qmd, which are measured with words only.\n"
        "- At a prompt and after a failed command, a system without a hook is asked with the whole text and shows its first hits. An agent that decides itself "
        "when to search may be silent more often and find less: compare *in three hits* and *fix shown*, where silence does not count.\n"
        "- Where a search needs every word of a query, the adapter asks for each word as well and ranks by their number.\n"
        "- A system that stores and searches, and promises no more, is not worse for a .50 in change, attacks or silence.\n"
        "- Whether a text contains a statement is decided by its words, and no model judges. Two systems whose intervals overlap are not different.\n"
        "- Samples are small: the same for every system, chosen by one seed.",
        "## All in one table",
        "Shares from 0 to 1, except for the costs. .50 is what always doing the same gets in next day, failures, change, silence and attacks.",
        render_summary(results).rstrip(),
    ]
    drawn = list_drawn(results)
    for task, section in SECTIONS.items():
        systems = list_systems(results, task)
        if not systems:
            continue
        parts += [f"## {section.title}", section.text]
        if task in drawn:
            parts.append(f"![{section.columns[0].title}, all systems](images/benchmark-{task}.svg)")
        parts.append(render_table(results, systems, section.columns, intervals=True).rstrip())
        parts.append(list_raw(results, task))
        if task == "answers":
            parts.append(render_published())
    measured = {name for name, _ in results}
    parts += [
        "## Controls",
        "\n".join(
            f"- *{name.replace('-', ' ')}*: {EXPLAINED[name]}"
            for name in CONTROLS
            if name in measured
        ),
        "## How each was set up",
        "\n".join(list_versions(results)),
        "Systems that take an embedding model got the same one: snowflake-arctic-embed-s, int8, with its prefix for questions.",
        "## What was not measured",
        "\n".join(list_missing(results)),
    ]
    return "\n\n".join(parts) + "\n"


# Pictures

WIDTH, LABEL, ROW = 720, 190, 22


def place_tick(value: float, column: Column, top: float) -> float:
    """Return the place of a value on the axis, from 0 to 1; costs are on a logarithmic scale."""
    if column.digits < 0:
        return min(value, 1.0)
    return max(0.0, math.log10(max(value, 0.1) / 0.1) / math.log10(max(top, 1) / 0.1))


def draw_bars(results: Results, task: str) -> str:
    """Draw the first measure of a task as bars with their intervals; ours is dark, controls are pale."""
    column = SECTIONS[task].columns[0]
    values = {
        name: value
        for name in list_systems(results, task)
        if (value := find_value(results, name, column))
    }
    systems = sorted(values, key=lambda name: values[name]["mean"] * (1 if column.least else -1))
    top = max((one["mean"] for one in values.values()), default=1.0)
    height = ROW * len(systems) + 30
    scale = WIDTH - LABEL - 60
    ticks = (0, 0.25, 0.5, 0.75, 1) if column.digits < 0 else (0.1, 1, 10, 100, 1000)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for tick in (one for one in ticks if column.digits < 0 or one <= top):
        at = LABEL + place_tick(tick, column, top) * scale
        parts.append(
            f'<line x1="{at:.0f}" y1="4" x2="{at:.0f}" y2="{height - 22}" stroke="#dddddd"/>'
        )
        parts.append(
            f'<text x="{at:.0f}" y="{height - 6}" fill="#555555" text-anchor="middle">{tick:g}</text>'
        )
    for row, name in enumerate(systems):
        value, start = values[name], ROW * row + 6
        colour = "#1d4ed8" if is_ours(name) else "#93a3b8" if name in PEERS else "#dbe1e8"
        title = html.escape(name_system(name).strip("*"))
        width = place_tick(value["mean"], column, top) * scale
        parts += [
            f'<text x="{LABEL - 8}" y="{start + 13}" text-anchor="end" fill="#111111">{title}</text>',
            f'<rect x="{LABEL}" y="{start}" width="{width:.1f}" height="16" fill="{colour}"/>',
            f'<text x="{LABEL + scale + 12}" y="{start + 13}" fill="#111111">{write_number(value["mean"], column)}</text>',
        ]
        if "low" in value:
            low, high = (
                LABEL + place_tick(value[end], column, top) * scale for end in ("low", "high")
            )
            parts.append(
                f'<line x1="{low:.1f}" y1="{start + 8}" x2="{high:.1f}" y2="{start + 8}" stroke="#111111"/>'
            )
    return "\n".join([*parts, "</svg>"]) + "\n"


def list_drawn(results: Results) -> list[str]:
    """Return the tasks that have a picture."""
    return [
        task
        for task, section in SECTIONS.items()
        if any(
            find_value(results, name, section.columns[0]) for name in list_systems(results, task)
        )
    ]


def write_pages(folder: Path) -> None:
    results = read_results(folder)
    PAGE.write_text(render_page(results), "utf-8")
    drawn = list_drawn(results)
    for task in SECTIONS:
        picture = PICTURES / f"benchmark-{task}.svg"
        if task in drawn:
            picture.write_text(draw_bars(results, task), "utf-8")
        else:
            picture.unlink(missing_ok=True)
    before, _, rest = README.read_text("utf-8").partition(BEGIN)
    if rest:
        table = render_readme(results)
        README.write_text(before + BEGIN + table + END + rest.partition(END)[2], "utf-8")
