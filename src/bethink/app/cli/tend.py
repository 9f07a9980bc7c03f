"""Maintenance commands: reindex, backup, reset, duplicates, contradictions, consolidate, audit, bench."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from bethink.api import Bethink
from bethink.app.cli.console import Bar, Console, Result, find_folder
from bethink.app.operation import Arg, operation
from bethink.app.operations.requests import Limit
from bethink.app.render import Items, item_lines, many, quote_lines, unstyle
from bethink.errors import UsageError
from bethink.features import tending
from bethink.features.tending import Pair
from bethink.model import MODES, PERSONAL, Strings

CONTROLS = ("newest", "bm25", "convex", "rrf", "reranked")  # of `bench`, beside our own modes
_NAMED = 20  # steps of one kind before "and more"
STEPS = {
    "merge": "say the same: the second is merged into the first",
    "replace": "were replaced later: the first replaces the second",
    "contradict": "contradict each other: marked as contradicting",
    "answer": "answered: the question is closed",
    "move": "cite a file that was renamed: the place is brought up to date",
    "expire": "expired: forgotten",
    "retire": "old turns that no memory came from: forgotten",
}
Pairs = Annotated[Limit, Arg("maximum number of pairs")]
Yes = Annotated[bool, Arg("do not ask", short="-y")]


@operation(
    "Maintenance",
    agents="append",
    opens="read",
    examples=(
        "bethink reindex",
        "bethink config embedding all-MiniLM-L6-v2 && bethink reindex",
        "bethink reindex --full",
    ),
)
def reindex(
    console: Console,
    memory: Bethink,
    full: Annotated[bool, Arg("rebuild every vector and the full-text index")] = False,
) -> Result:
    """Embed memories that have no vector of the current model.

    Needed after a change of model. Can be stopped at any time; the next run continues.
    """
    with Bar(console, "embedding", "memories", keeps=True) as bar:
        done = memory.reindex(full=full, progress=bar)
    model = memory.embedder.model if memory.embedder else None
    return Result({"embedded": done, "model": model})


@operation(
    "Maintenance",
    agents="append",
    opens="read",
    examples=(
        "bethink backup ~/backups/memory-2026-11-15.db",
        "bethink search deploy --database ~/backups/memory-2026-11-15.db",
    ),
)
def backup(memory: Bethink, file: Annotated[str, Arg("a new file", positional=True)]) -> Result:
    """Copy the database into one file.

    Other processes can go on using the database. To restore, put the copy in its place.
    """
    return Result({"path": file, "bytes": memory.backup(file)})


@operation(
    "Maintenance",
    agents="person",
    opens="read",
    examples=(
        "bethink backup before-reset.db && bethink reset",
        "bethink reset --scope personal",
        "bethink reset --scope all --yes",
    ),
)
def reset(
    console: Console,
    memory: Bethink,
    scope: Annotated[
        str,
        Arg("this (the project), personal or all", choices=("this", "personal", "all")),
    ] = "this",
    yes: Yes = False,
) -> Result:
    """Delete all memories of a scope for good.

    Asks first.
    """
    name = memory.project.name
    here = f"the project {name}"
    if console.container:
        here = f"the container {console.container} of {name}"
    scopes, where = {
        "this": ([memory.scope], here),
        "personal": ([PERSONAL], "your personal scope"),
        "all": (None, "every project"),
    }[scope]
    overview = memory.stats(scopes)
    number = many(overview.memories + overview.deleted, "memory")
    if not yes:
        console.note("hint: `bethink backup FILE` keeps a copy.")
    console.confirm(f"This removes {number} of {where} for good.", yes)
    return Result({"removed": memory.reset(scopes), "scope": scope})


@operation(
    "Browse",
    agents="read",
    opens="read",
    examples=(
        "bethink duplicates",
        "bethink duplicates --json | jq -r '.[].other.id'",
        "bethink forget ID",
    ),
)
def duplicates(console: Console, memory: Bethink, limit: Pairs = 20) -> Result:
    """List memories that say the same.

    You or your agent decide; the one to keep comes first.
    """
    return compare(console, memory, tending.find_duplicates, limit, "No memories say the same.")


@operation(
    "Browse",
    agents="read",
    opens="read",
    examples=(
        "bethink contradictions",
        "bethink contradictions --limit 50 --json",
        "bethink link NEWER supersedes OLDER",
    ),
)
def contradictions(console: Console, memory: Bethink, limit: Pairs = 20) -> Result:
    """List memories that contradict each other.

    The newer one comes first. `bethink forget` or `bethink add --supersedes` settles a pair.
    """
    none = "No memories contradict each other."
    return compare(console, memory, tending.find_contradictions, limit, none)


def compare(
    console: Console,
    memory: Bethink,
    find: Callable[..., Sequence[Pair]],
    limit: int,
    none: str,
) -> Result:
    """Pairs of memories, the one to keep first."""
    with Bar(console, "comparing") as bar:
        found = find(memory, limit=limit, progress=bar)
    items: Items = []
    for keep, other, similarity, reason in found:
        items += [f"{reason} ({similarity:.2f})", *quote_lines(memory, [keep, other])]
    value = [pair._replace(similarity=round(pair.similarity, 4)) for pair in found]
    return Result(value, notes=() if found else [none], items=items)


@operation(
    "Maintenance",
    agents="person",
    harmless=("dry_run",),
    opens="read",
    examples=(
        "bethink consolidate --dry-run",
        "bethink consolidate",
        "bethink consolidate --yes --json",
    ),
)
def consolidate(
    console: Console,
    memory: Bethink,
    dry_run: Annotated[bool, Arg("only show what would be done")] = False,
    yes: Yes = False,
) -> Result:
    """Merge, mark and retire memories that are no longer needed.

    Merges duplicates, marks contradictions and answered questions, brings the places of renamed files up to date by git, and retires
    expired memories and turns that no memory came from for a year. Shows the steps and asks first. `bethink restore ID` undoes a step.
    """
    with Bar(console, "comparing") as bar:
        steps = tending.plan_consolidation(memory, progress=bar)
    done, number = 0, many(len(steps), "step")
    items: Items = []
    for action, words in STEPS.items():
        mine = [step for step in steps if step.action == action]
        items += [f"{words} ({len(mine):,})"] if mine else []
        for step in mine[:_NAMED]:
            items += quote_lines(memory, step.memories[:2])
    if steps and not dry_run:
        if not yes:
            for line in item_lines(items):
                console.talk(unstyle(line))
            items = []
        console.confirm(f"{number}.", yes)
        done = tending.apply_steps(memory, steps)
    ended = f"{number} would be done" if dry_run else f"{many(done, 'step')} done"
    records = [{**step._asdict(), "memories": [one.id for one in step.memories]} for step in steps]
    value = {"steps": records, "done": done, "dry_run": dry_run}
    return Result(value, notes=[ended if steps else "Nothing to consolidate."], items=items)


@operation(
    "Browse",
    agents="read",
    opens="read",
    examples=("bethink audit", "bethink audit --limit 100 --json"),
)
def audit(memory: Bethink, limit: Annotated[Limit, Arg("maximum number of lines")] = 20) -> Result:
    """Show who changed what in a team's database.

    Needs PostgreSQL. The newest change comes first. The database numbers and dates the lines itself, and the role that serves can
    neither change nor remove one; `bethink doctor --deep` reports missing lines.
    """
    trail = getattr(memory.store, "audit", None)
    if trail is None:
        raise UsageError(
            "Only a PostgreSQL database keeps an audit trail.",
            "`bethink history ID` shows the changes of a memory in your own database.",
        )
    return Result(trail(limit))


@operation(
    "Maintenance",
    agents="read",
    lists=("results", "result"),
    examples=(
        "bethink bench ../shared/bench/scifact",
        "bethink bench ../shared/bench/* --mode hybrid,vector,keyword",
        "bethink bench ../shared/bench/sessions-git-sync --asked own,month --as conversations",
        "bethink bench ../shared/bench/cosqa --json",
    ),
)
def bench(
    console: Console,
    directory: Annotated[
        Strings, Arg("a set: a folder with corpus.jsonl and queries.jsonl", positional=True)
    ],
    modes: Annotated[
        Strings,
        Arg(
            "hybrid, vector, keyword, reranked (hybrid with the best hits read again), or a control: newest, bm25, convex, rrf;"
            " default: all but reranked",
            metavar="MODE",
            aliases=("mode",),
            choices=(*MODES, *CONTROLS),
        ),
    ] = (),
    asked: Annotated[
        Strings,
        Arg(
            "when the questions are asked: at their `own` time, or a day, week or month after the newest memory",
            metavar="WHEN",
            choices=("own", "day", "week", "month"),
        ),
    ] = ("own",),
    sample: Annotated[
        int | None, Arg("use only N questions of each set", metavar="N", low=1)
    ] = None,
    reading: Annotated[
        str,
        Arg(
            "how to read documents of a session: as turns, or as conversations with topics and ideas",
            aliases=("as",),
            choices=("turns", "conversations"),
        ),
    ] = "turns",
) -> Result:
    """Measure quality and speed on labelled sets.

    Loads each set through the ordinary write path into a temporary database, asks its questions, and prints quality and times, with
    the 95 % range of nDCG@10 over samples of the questions. The controls understand less: `newest` reads no word; `bm25`, `convex`
    (0.6 meaning) and `rrf` are plain recipes over the same memories, with the same bonus for recent ones.
    """
    from bethink.bench import FIELDS, RECIPES, run

    folders: list[Path] = list(map(find_folder, directory))
    with Bar(console, "bench") as bar:
        results = run(
            folders,
            modes or [*MODES, *RECIPES],
            progress=lambda label, done, total: bar(done, total, label),
            asked=asked,
            as_conversations=reading == "conversations",
            sample=sample,
        )
    return Result([{name: row[name] for name in FIELDS} for row in results])
