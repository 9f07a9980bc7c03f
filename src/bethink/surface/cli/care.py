"""Keeping memory in order and measuring it: `reindex`, `backup`, `reset`, `duplicates`, `contradictions`, `consolidate`, `model`,
`audit`, `bench`; and `promote` and `demote`, by which memories that proved themselves become rules that agents always read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from bethink.embed import models
from bethink.errors import InvalidInput, UsageError
from bethink.features import promotion, tending
from bethink.recall.shape import plain
from bethink.surface.cli import console
from bethink.surface.cli.console import (
    Bar,
    Listing,
    Result,
    confirm,
    find_folder,
    settings,
)
from bethink.surface.render import (
    item_lines,
    many,
    memory_label,
    pick,
    quote_line,
    short_ids,
    size,
    unstyle,
)
from bethink.text import check_choice, split_lists
from bethink.text.fence import Quote
from bethink.types import MODES, PERSONAL

if TYPE_CHECKING:
    from types import SimpleNamespace as Namespace

    from bethink.api import Bethink
    from bethink.features.tending import Pair, Step


NAMED = 20  # steps of one kind before "and more"
STEP_WORDS = {
    "merge": "say the same: the second becomes part of the first",
    "replace": "were replaced later: the second makes way for the first",
    "contradict": "disagree: marked as contradicting",
    "answer": "answered: the question is closed",
    "expire": "expired: forgotten",
    "retire": "old turns that nothing was taken from: forgotten",
}


def reindex(args: Namespace, memory: Bethink) -> Result:
    """Give every memory a vector of the current embedding model, as after a change of model. May be stopped at any moment;
    the next run goes on where it was.

    Takes:
      --full            make every vector and the full-text index anew

    Examples:
      bethink reindex
      bethink config embedding all-MiniLM-L6-v2 && bethink reindex
      bethink reindex --full
    """
    with Bar(args, "embedding") as bar:
        done = memory.reindex(full=args.full, progress=bar)
    model = memory.embedder.model if memory.embedder else None
    return Result({"embedded": done, "model": model})


def backup(args: Namespace, memory: Bethink) -> Result:
    """Copy the whole database into one file while others go on using it. To restore, put the copy in the database's place.

    Takes:
      FILE              a new file

    Examples:
      bethink backup ~/backups/memory-2026-11-15.db
      bethink search deploy --database ~/backups/memory-2026-11-15.db
    """
    written = memory.backup(args.file)
    return Result({"path": args.file, "bytes": written})


def reset(args: Namespace, memory: Bethink) -> Result:
    """Forget everything in a scope beyond recovery. Asks first.

    Takes:
      --scope SCOPE this|personal|all = this     this (the project, the default), personal, or all
      --yes, -y         do not ask

    Examples:
      bethink backup before-reset.db && bethink reset
      bethink reset --scope personal
      bethink reset --scope all --yes
    """
    name = memory.project.name
    here = f"the container {args.container} of {name}" if args.container else f"the project {name}"
    scopes, where = {
        "this": ([memory.scope], here),
        "personal": ([PERSONAL], "your personal scope"),
        "all": (None, "every project"),
    }[args.scope]
    overview = memory.stats(scopes)
    number = many(overview.memories + overview.deleted, "memory")
    if not args.yes:
        console.hint(args, "`bethink backup FILE` keeps a copy.")
    confirm(args, f"This removes {number} of {where} for good.")
    removed = memory.reset(scopes)
    return Result({"removed": removed, "scope": args.scope})


def duplicates(args: Namespace, memory: Bethink) -> Result:
    """List memories that say the same, or nearly so, for you or your agent to decide: the one to keep first.

    Takes:
      <pairs>

    Examples:
      bethink duplicates
      bethink duplicates --json | jq -r '.[].other.id'
      bethink forget ID
    """
    return compare(args, memory, tending.find_duplicates, "No memories say the same.")


def contradictions(args: Namespace, memory: Bethink) -> Result:
    """List memories that disagree, the newer one first. `bethink forget` or `bethink add --supersedes` settles one.

    Takes:
      <pairs>

    Examples:
      bethink contradictions
      bethink contradictions --limit 50 --json
      bethink link NEWER supersedes OLDER
    """
    return compare(args, memory, tending.find_contradictions, "No memories disagree.")


def compare(
    args: Namespace, memory: Bethink, find: Callable[..., Sequence[Pair]], none: str
) -> Result:
    """The pairs that are found, the one to keep first."""
    with Bar(args, "comparing") as bar:
        found = find(memory, limit=args.limit, progress=bar)
    short = short_ids(memory, [one for pair in found for one in (pair.keep, pair.other)])
    items: list[Any] = []
    for pair in found:
        items.append(f"{pair.reason} ({pair.similarity:.2f})")
        items += [quote_line(one, short) for one in (pair.keep, pair.other)]
    value = [pair._replace(similarity=round(pair.similarity, 4)) for pair in found]
    return Result(value, notes=() if found else [none], items=items)


def consolidate(args: Namespace, memory: Bethink) -> Result:
    """Tidy up: merge what says the same, mark contradictions and answered questions, retire what expired and old turns that
    nothing was taken from for a year. Shows what it would do and asks. Every step is in the history of its
    memory, and `bethink restore ID` undoes it.

    Takes:
      --dry-run         only show what would be done
      --yes, -y         do not ask

    Examples:
      bethink consolidate --dry-run
      bethink consolidate
      bethink consolidate --yes --json
    """
    with Bar(args, "comparing") as bar:
        steps = tending.plan_consolidation(memory, progress=bar)
    done, number = 0, many(len(steps), "step")
    items = list_steps(memory, steps)
    if steps and not args.dry_run:
        if not args.yes:
            console.talk(unstyle("\n".join(item_lines(items))))
            items = []
        confirm(args, f"{number}.")
        done = tending.apply_steps(memory, steps)
    ended = f"{number} would be done" if args.dry_run else f"{many(done, 'step')} done"
    records = [{**step._asdict(), "memories": [one.id for one in step.memories]} for step in steps]
    value = {"steps": records, "done": done, "dry_run": args.dry_run}
    return Result(value, notes=[ended if steps else "Nothing to tidy up."], items=items)


def list_steps(memory: Bethink, steps: Sequence[Step]) -> list[Quote | str]:
    items: list[Quote | str] = []
    for action, words in STEP_WORDS.items():
        mine = [step for step in steps if step.action == action]
        items += [f"{words} ({len(mine):,})"] if mine else []
        for step in mine[:NAMED]:
            short = short_ids(memory, step.memories)
            items += [quote_line(one, short) for one in step.memories[:2]]
    return items


def model(args: Namespace) -> Result:
    """List the embedding models known by name, or fetch one (once, for all projects). `bethink doctor --deep` verifies its files.

    Takes:
      action list|pull = list     default: list
      [NAME]            a model; by default the one that is set
      <listed>

    Examples:
      bethink model list
      bethink model pull
      bethink model pull all-MiniLM-L6-v2
    """
    name = str(args.name or settings(args).embedding)
    if args.action == "list":
        return list_models(name.rpartition("/")[2].lower())
    if name.strip() in ("none", "hashing", "http", ""):
        raise InvalidInput(
            f"The embedding '{name}' has no model files.",
            "Name a model: bethink model pull snowflake-arctic-embed-s",
        )
    with Bar(args, f"fetching {name}", count=size) as bar:
        folder = models.pull(name, bar)
    value = {"name": models.find(name).name, "status": "installed", "path": str(folder)}
    return Result(value)


def list_models(current: str) -> Result:
    rows: list[dict[str, Any]] = []
    for known in models.KNOWN.values():
        folder = models.location(known.name)
        is_current = known.name.lower() == current
        row = {"name": known.name, "installed": folder is not None, "current": is_current}
        row |= pick(known, "dimensions window licence")
        rows.append({**row, "path": str(folder) if folder else None})
    return Result(rows, listing=Listing((), "models", "model"))


def audit(args: Namespace, memory: Bethink) -> Result:
    """Show who changed what in a team's PostgreSQL database, newest first. The database numbers and dates the
    lines itself, and the role that serves can neither change nor remove one.

    Takes:
      --limit, -n N whole 1.. = 20       how many lines at most (20)

    Examples:
      bethink audit
      bethink audit --limit 100 --json
    """
    store: Any = memory.store
    if not hasattr(store, "audit"):
        raise UsageError(
            "Only a PostgreSQL database keeps an audit trail.",
            "`bethink history ID` shows what became of a memory in your own database.",
        )
    return Result([line._asdict() for line in store.audit(args.limit)])


def bench(args: Namespace) -> Result:
    """Measure recall on labelled sets: load each through the ordinary write path into a throw-away database, ask its
    questions, and print the measures and times, with the range in which nDCG@10 lies for 95 of 100 samples of the questions.

    The controls understand less than we do: `newest` reads no word; `bm25` and `convex` (.6 meaning) are the plain recipes
    over the same memories, with the same addition for what is recent.

    Takes:
      DIRECTORY+        a set: a folder with corpus.jsonl and queries.jsonl
      --mode MODE*      hybrid, vector, keyword, or a control: newest, bm25, convex; or reranked: hybrid with the first hits read again; may be repeated or a comma list (default: all but that)
      --asked WHEN*     when the questions are asked: each at its `own` time, or a `day`, a `week`, a `month` of 30 days after the newest memory; may be repeated or a comma list (default: own)
      --sample N whole 1..  only so many questions of each set
      --as READING turns|conversations = turns  documents of a session as they stand, or read as a conversation, with topics and ideas
      <listed>

    Examples:
      bethink bench ../shared/bench/scifact
      bethink bench ../shared/bench/* --mode hybrid,vector,keyword
      bethink bench ../shared/bench/sessions-git-sync --asked own,month --as conversations
      bethink bench ../shared/bench/cosqa --json
    """
    from bethink.bench import ASKED, FIELDS, RECIPES, SEARCHES, run

    modes = _chosen("mode", args.mode, (*SEARCHES, *RECIPES)) or [*MODES, *RECIPES]
    asked = _chosen("time to ask at", args.asked, tuple(ASKED)) or ["own"]
    folders = [find_folder(name) for name in args.directory]
    with Bar(args, "bench") as bar:
        results = run(
            folders,
            modes,
            progress=lambda label, done, total: bar(done, total, label),
            asked=asked,
            as_conversations=vars(args)["as"] == "conversations",
            sample=args.sample,
        )
    rows = [{name: row[name] for name in FIELDS} for row in results]
    return Result(rows, listing=Listing((), "results", "result"))


def _chosen(what: str, given: Sequence[str], known: Sequence[str]) -> list[str]:
    """The names in a comma list, all of them known."""
    return [check_choice(what, name, known) for name in split_lists(given)]


# Rules


def promote(args: Namespace, memory: Bethink) -> Result:
    """Write a memory into the rules that agents read at every start, as one line of a marked block: in
    .claude/rules/bethink.md if the project has a .claude folder or no AGENTS.md, else in AGENTS.md. A CLAUDE.md is never
    made. Nothing outside the block changes. Imported text is refused. Promoting a memory again writes what it says now.

    Takes:
      [ID]              an id or any unique beginning of one
      --to TARGET claude|agents     .claude/rules/bethink.md, or AGENTS.md
      --force           even if the text was imported
      | --suggest       list memories that proved useful, and why; writes nothing
      --limit N whole 1.. = 10     with --suggest: how many (10)

    Examples:
      bethink promote --suggest
      bethink promote 01a1dd89
      bethink promote 01a1dd89 --to agents
    """
    if bool(args.id) == bool(args.suggest):
        raise UsageError(
            "Give an id, or --suggest.", "bethink promote --suggest, then bethink promote 01a1dd89"
        )
    return suggest_rules(memory, args.limit) if args.suggest else write_rule(args, memory)


def write_rule(args: Namespace, memory: Bethink) -> Result:
    done = promotion.promote(memory, args.id, args.to, force=args.force)
    return Result({"id": done.memory.id, **pick(done, "path status created")})


def suggest_rules(memory: Bethink, limit: int) -> Result:
    found = promotion.candidates(memory, limit)
    short = short_ids(memory, [one for one, _ in found])
    lines = []
    for one, reason in found:
        lines += [memory_label(one, short), f"  {reason}"]
    hint = (
        "`bethink promote ID` makes one a rule that agents always read."
        if found
        else "No memory has proved itself yet, by votes (`bethink vote ID`) or uses."
    )
    value = [{**plain(one), "reason": reason} for one, reason in found]
    return Result(value, lines, hints=[hint], stored=True)


def demote(args: Namespace, memory: Bethink) -> Result:
    """Take a memory out of the rules again. The memory itself stays. With the last rule the block goes, and a file that
    holds nothing else goes too. Works for rules of others, whose memory is not in your database.

    Takes:
      ID                an id or any unique beginning of one

    Examples:
      bethink demote 01a1dd89
      bethink demote 01a1dd89 --json
    """
    done = promotion.demote(memory, args.id)
    missing = [] if done.found else [f"Its rule was not in {done.path} of this checkout."]
    return Result(pick(done, "id path found removed"), hints=missing)
