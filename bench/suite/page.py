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
    """Return the best number of a column as it is written: all systems that share it are bold. A system alone is not the best."""
    found = [one["mean"] for system in systems if (one := find_value(results, system, column))]
    values = [value for value in found if is_cost(value, column)]
    if len(values) < 2 or not column.ranked:
        return None
    return write_number((min if column.least else max)(values), column)


def is_cost(value: float, column: Column) -> bool:
    """Return False for the disk space of a system that stores nothing there."""
    return value > 0 or "disk" not in column.measure


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


def count_peers(results: Results) -> int:
    """Return how many systems other than Bethink and its plain recipes were measured."""
    return sum(
        not is_ours(name) and "use_plain.py" not in PEERS[name]["adapter"]
        for name in list_peers(results)
    )


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
    """Return what is ahead of Bethink in a column, the best first. Of the controls only `grep` counts: people use it."""
    ours = find_value(results, OURS, column)
    if not ours:
        return []
    sign = -1 if column.least else 1
    others = [
        (one["mean"], name)
        for name in list_systems(results, column.task)
        if name in (*PEERS, "grep")
        and not is_ours(name)
        and (one := find_value(results, name, column))
    ]
    ahead = [
        one for one in others if sign * one[0] > sign * ours["mean"] and is_cost(one[0], column)
    ]
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
    """Yield each reason for which something was not measured, with the systems and tasks."""
    by_reason: dict[str, dict[str, list[str]]] = {}
    for name, peer in PEERS.items():
        for task in SECTIONS if "other-tasks" in peer else peer.get("tasks", SECTIONS):
            result = results.get((name, task))
            reason = result.get("unsupported") if result else "Not measured yet; it can be run."
            if task not in peer.get("tasks", SECTIONS):
                reason = peer["other-tasks"]
            if reason:
                by_reason.setdefault(reason, {}).setdefault(name, []).append(task)
    for reason, found in by_reason.items():
        yield f"- {reason}"
        yield from (f"  - {name_system(name)}: {', '.join(tasks)}" for name, tasks in found.items())
    yield from (f"- {one['title']} {one['why']}" for one in NOT_RUN)


def render_published() -> str:
    rows = tomllib.loads((HERE / "published.toml").read_text("utf-8"))["figure"]
    lines = [
        "Figures that others publish about these sets, collected in November 2026 from their own pages and threads; check them before you cite them. They are "
        "**not comparable** with the table above or with each other: readers, judges and measures differ.",
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
    cases = "; ".join(f"{count:,} ({' · '.join(titles)})" for count, titles in counts.items())
    files = f"Raw results: [results/*.{task}.json](../bench/suite/results)."
    in_view = f"In view while Bethink was tuned: {section.in_view}"
    return " ".join(([f"Cases of Bethink's row: {cases}."] if cases else []) + [files, in_view])


def render_page(results: Results) -> str:
    dates = sorted({one["date"] for one in results.values()})
    machines = sorted({one["machine"] for one in results.values()})
    parts = [
        "# Benchmarks",
        "<!-- Made by `bench/suite/run page` from bench/suite/results; do not edit. -->",
        f"Bethink, {count_peers(results)} other systems, plain recipes such as BM25, and {len(CONTROLS)} controls, on {len(list_compared(results))} tasks. A control follows "
        'a simple rule, such as "show the newest memory", and shows what a measure gives to a system that understands nothing. Measured '
        f"{' to '.join(dict.fromkeys((dates[0], dates[-1])))} on {'; '.join(machines)}.",
        "How to read the tables: **bold** is the best of a column, brackets hold the 95 % bootstrap interval, *italics* mark controls, [1 in 4] marks a slow "
        "system that got a quarter of the cases, and a dash means not measured. `make benchmarks` repeats everything. "
        "[bench/suite](../bench/suite/README.md) describes the data, the adapters and how to add a system.",
        "## Where others are ahead",
        "Every measure below on which another system, or `grep` over the transcripts, has a better number than Bethink.",
        "\n".join(list_ahead(results)) or "Nowhere in these tables.",
        "## What Bethink is worst at",
        f"The {WORST} largest of these gaps with the next step for each. Shares are compared by their difference, costs by how often they double: "
        "one doubling counts as .10.",
        "\n".join(list_worst(results)) or "Nothing in these tables.",
        "## Read with care",
        "- Bethink's authors made this benchmark. Each section names the data that was in view while Bethink was tuned; compare the *fresh* measures.\n"
        "- Several peers are designed for a language model or for models from a hub. Neither was available, so their best set-up is not shown. This "
        "holds most for systems that store what a language model extracts, such as mem0, Hindsight and claude-mem, and for agentmemory and qmd, which are measured with words only.\n"
        "- At a prompt and after a failed command, a system without a hook is asked with the whole text and shows its first hits. An agent that decides itself "
        "when to search may be silent more often and find less: compare *in three hits* and *fix shown*, where silence does not count. The row *plain vectors, bar* "
        "shows what a threshold alone gives such a system at a prompt.\n"
        "- mem0, Chroma and LangGraph store often have the numbers of plain vectors: all of them compare vectors of the same model.\n"
        "- Where a search needs every word of a query, the adapter asks for each word as well and ranks by their number.\n"
        "- A system that stores and searches, and promises no more, is not worse for a .50 in change, attacks or silence.\n"
        "- Whether a text contains a statement is decided by its words, and no model judges. Where intervals overlap, do not conclude that one system is better.\n"
        "- Samples are small. They are chosen by one seed and are the same for every system. Tokens are estimated: one for four characters.",
        "## All in one table",
        "Shares from 0 to 1, more is better; for the costs, less is better. In next day, investigations, failures, change, silence and attacks, a system that "
        "always does the same gets .50.",
        render_summary(results).rstrip(),
    ]
    for task in list_compared(results):
        section, systems = SECTIONS[task], list_systems(results, task)
        parts += [f"## {section.title}", section.text]
        drawn = section.columns[section.drawn].title
        parts.append(f"![{drawn}, all systems](images/benchmark-{task}.svg)")
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

WIDTH, LABEL, ROW, HEAD = 720, 190, 22, 28
STYLE = """<style>
.back { fill: #ffffff } .ink { fill: #111111 } .line { stroke: #111111 } .tick { fill: #555555 } .grid { stroke: #dddddd }
.ours { fill: #1d4ed8 } .peer { fill: #93a3b8 } .control { fill: #dbe1e8 }
@media (prefers-color-scheme: dark) {
.back { fill: #0d1117 } .ink { fill: #e6edf3 } .line { stroke: #e6edf3 } .tick { fill: #9198a1 } .grid { stroke: #30363d }
.ours { fill: #4f83ff } .peer { fill: #5b6b80 } .control { fill: #2b3440 }
}
</style>"""


def place_tick(value: float, column: Column, top: float) -> float:
    """Return the place of a value on the axis, from 0 to 1; costs are on a logarithmic scale."""
    if column.digits < 0:
        return min(value, 1.0)
    return max(0.0, math.log10(max(value, 0.1) / 0.1) / math.log10(max(top, 1) / 0.1))


def draw_bars(results: Results, task: str) -> str:
    """Draw a measure of a task as bars with their intervals; Bethink is blue, controls are pale."""
    column = SECTIONS[task].columns[SECTIONS[task].drawn]
    values = {
        name: value
        for name in list_systems(results, task)
        if (value := find_value(results, name, column))
    }
    systems = sorted(values, key=lambda name: values[name]["mean"] * (1 if column.least else -1))
    top = max((one["mean"] for one in values.values()), default=1.0)
    height = HEAD + ROW * len(systems) + 30
    scale = WIDTH - LABEL - 60
    ticks = (0, 0.25, 0.5, 0.75, 1) if column.digits < 0 else (0.1, 1, 10, 100, 1000)
    better = "less is better, logarithmic" if column.least else "more is better"
    heading = html.escape(f"{SECTIONS[task].title}: {column.title} ({better})")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">',
        STYLE,
        f'<rect class="back" width="{WIDTH}" height="{height}"/>',
        f'<text class="ink" x="{LABEL}" y="18" font-weight="bold">{heading}</text>',
    ]
    for tick in (one for one in ticks if column.digits < 0 or one <= top):
        at = LABEL + place_tick(tick, column, top) * scale
        parts.append(
            f'<line class="grid" x1="{at:.0f}" y1="{HEAD}" x2="{at:.0f}" y2="{height - 22}"/>'
        )
        parts.append(
            f'<text class="tick" x="{at:.0f}" y="{height - 6}" text-anchor="middle">{tick:g}</text>'
        )
    for row, name in enumerate(systems):
        value, start = values[name], HEAD + ROW * row + 2
        kind = "ours" if is_ours(name) else "peer" if name in PEERS else "control"
        title = html.escape(name_system(name).strip("*").replace("`", ""))
        width = place_tick(value["mean"], column, top) * scale
        parts += [
            f'<text class="ink" x="{LABEL - 8}" y="{start + 13}" text-anchor="end">{title}</text>',
            f'<rect class="{kind}" x="{LABEL}" y="{start}" width="{width:.1f}" height="16"/>',
            f'<text class="ink" x="{LABEL + scale + 12}" y="{start + 13}">{write_number(value["mean"], column)}</text>',
        ]
        if "low" in value:
            low, high = (
                LABEL + place_tick(value[end], column, top) * scale for end in ("low", "high")
            )
            parts.append(
                f'<line class="line" x1="{low:.1f}" y1="{start + 8}" x2="{high:.1f}" y2="{start + 8}"/>'
            )
    return "\n".join([*parts, "</svg>"]) + "\n"


def list_compared(results: Results) -> list[str]:
    """Return the tasks on which more than Bethink alone was measured: they have a section and a picture."""
    return [
        task
        for task, section in SECTIONS.items()
        if any(
            not is_ours(name) and find_value(results, name, section.columns[section.drawn])
            for name in list_systems(results, task)
        )
    ]


def write_pages(folder: Path) -> None:
    results = read_results(folder)
    PAGE.write_text(render_page(results), "utf-8")
    drawn = list_compared(results)
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
