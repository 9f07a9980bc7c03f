"""`index`, `map`, `analyze` and `backfill`: what a project knows about itself, and what was said about it, become memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bethink.errors import NotFound, Overtaken, UsageError
from bethink.features import conversations, knowledge
from bethink.hooks import state
from bethink.surface.cli import console
from bethink.surface.cli.console import Bar, Result, open_memory
from bethink.surface.cli.parsing import command
from bethink.surface.layout import many, one_line
from bethink.surface.operations import sync_record
from bethink.text.when import moment

if TYPE_CHECKING:
    from argparse import Namespace

    from bethink.api import Bethink
    from bethink.features.conversations import Indexed
    from bethink.ingest.sync import Synced

NAMED = 5  # files named one by one before "and more"


def existing_path(path: str) -> Path:
    found = Path(path).expanduser()
    if not found.exists():
        raise NotFound(f"There is nothing at {path}.", "Check the path.")
    return found


def sync_with_bar(args: Namespace, label: str, sync: Callable[..., Synced]) -> Synced:
    """Runs a sync that tells how far it is."""
    with Bar(args, label, lambda passages: f"{passages:,.0f} passages") as bar:
        return sync(progress=lambda done, sources: bar(done))


def synced_result(synced: Synced) -> Result:
    notes, talk = synced_lines(synced)
    return Result(sync_record(synced), notes, notes=talk, warnings=synced.hints)


def synced_lines(synced: Synced) -> tuple[list[str], list[str]]:
    """What a sync did, and what it left out."""
    counts = {
        "new": len(synced.added),
        "changed": len(synced.changed),
        "moved": len(synced.moved),
        "vanished": len(synced.vanished),
        "unchanged": synced.unchanged,
        "skipped": len(synced.skipped),
    }
    memories = {
        "added": synced.memories_added,
        "kept": synced.memories_kept,
        "retired": synced.memories_retired,
    }
    sources, changes = count_words(counts), count_words(memories)
    lines = [many(synced.sources, "source") + (f": {sources}" if sources else "")]
    return lines + ([f"memories: {changes}"] if changes else []), skipped_lines(synced.skipped)


def count_words(counts: dict[str, int]) -> str:
    return ", ".join(f"{number:,} {word}" for word, number in counts.items() if number)


def skipped_lines(skipped: Any) -> list[str]:
    lines = [
        f"skipped {one_line(one.uri, 100)}: {one_line(one.reason, 200)}" for one in skipped[:NAMED]
    ]
    more = len(skipped) - NAMED
    return [*lines, f"and {more:,} more; --json lists all"] if more > 0 else lines


@command(
    "index",
    """
    PATH*             these only; the setting `knowledge` names the usual ones
    --watch           go on, and follow every change until stopped
    """,
)
def index(args: Namespace) -> Result | None:
    """Bring the Markdown files of the knowledge folders in step with memory: new ones are read, unchanged ones skipped,
    changed ones replace their own memories, moved ones keep them, vanished ones retire them. The setting `knowledge` names
    the folders (.claude/knowledge by default). Files that git ignores are left out. What agents load by themselves (AGENTS.md,
    CLAUDE.md, Claude auto memory) is read too, unless `builtin_memory` is off: searches find it, hooks do not repeat it.

    Examples:
      bethink index
      bethink config knowledge .claude/knowledge,docs && bethink index
      bethink index docs/guides
      bethink index --watch
    """
    if args.watch:
        knowledge.check_watching()
    with open_memory(args, make=True) as memory:
        paths = [existing_path(path) for path in args.path] or None
        if (
            paths is None
            and not knowledge.folders(memory)
            and not any(knowledge.find_builtin(memory))
        ):
            folders = ", ".join(memory.config.knowledge)
            raise NotFound(
                f"None of the knowledge folders of {memory.project.name} exists: {folders}.",
                "`bethink init` makes one; `bethink config knowledge docs` names another.",
            )
        synced = sync_with_bar(args, "indexing", partial(knowledge.index, memory, paths))
        result = synced_result(synced if paths else synced.plus(knowledge.sync_builtin(memory)))
        if not args.watch:
            return result
        console.present(args, result)
        watch_folders(args, memory, paths)
        return None


def watch_folders(args: Namespace, memory: Bethink, paths: list[Path] | None) -> None:
    import signal
    import threading

    # An interrupt that came while the watcher starts could be lost; a flag is seen whenever it is looked at.
    stop = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: stop.set())
    try:
        console.talk("watching; Ctrl-C ends it")
        for synced in knowledge.follow(memory, paths, stop=stop):
            console.present(args, synced_result(synced))
    finally:
        signal.signal(signal.SIGINT, before)
    console.talk("stopped watching; what is indexed stays")


@command("map", opens="make")
def map_code(args: Namespace, memory: Bethink) -> Result:
    """Map the project's source code: files, symbols, signatures and what their comments say, each with its lines, so that a
    search for a name, a path or "where is the retry logic" finds the place. Only changed files are read again. With --json
    the map is printed for `bethink import --repo-map` and other tools, and nothing is stored.

    Examples:
      bethink map
      bethink map --json > repo-map.json
      bethink map && bethink search "where are retries handled?"
    """
    if args.format == "json":
        return Result(knowledge.repo_map(memory))
    return synced_result(sync_with_bar(args, "mapping", partial(knowledge.map_code, memory)))


@command(
    "analyze",
    """
    --git             look at the commits instead of the files
    --commits N whole 1.. = 2000     with --git: how many commits to look at (2000)
    --since DATE      with --git: only commits after that date
    """,
    opens="make",
)
def analyze(args: Namespace, memory: Bethink) -> Result:
    """Look at the project and remember what helps to work on it: its purpose, how it is built and tested, its parts, HTTP
    routes, dependencies and decision records. With --git the commits that explain a decision, a revert or a pitfall. Each
    finding cites its line or commit; run again, it replaces what changed.

    Examples:
      bethink analyze
      bethink analyze --git
      bethink analyze --git --since 2025-01-01
      bethink analyze && bethink list --tag command
    """
    if args.since and not args.git:
        raise UsageError("--since goes with --git.", "bethink analyze --git --since 2025-01-01")
    if not args.git:
        return synced_result(sync_with_bar(args, "analyzing", partial(knowledge.analyze, memory)))
    read = partial(knowledge.analyze_history, memory, limit=args.commits, since=args.since)
    return synced_result(sync_with_bar(args, "reading commits", read))


@command(
    "backfill",
    """
    [PATH]            a transcript, or a folder of them
    --all             everything that the agents on this machine keep
    --host HOST       claude, codex, copilot, gemini, opencode, cursor or plain
    --since TIME      only transcripts that changed since then: 30d, or a date
    --no-embed        by words only for now; `bethink reindex` embeds later
    """,
)
def backfill(args: Namespace) -> Result:
    """Read transcripts of earlier conversations into memory: turns as evidence, topics, and the decisions, problems,
    solutions and questions in them, each with the line it was said at. Every conversation goes to the project it was held in.
    May be stopped at any moment; the next run goes on where it was, and reading twice changes nothing.

    Examples:
      bethink backfill --all
      bethink backfill --all --host claude --since 30d
      bethink backfill ~/.claude/projects/-home-ada-shop
      bethink backfill exported-chat.md --host plain
    """
    if bool(args.path) == args.all:
        raise UsageError("Give a path, or --all.", "bethink backfill --all")
    with open_memory(args, make=True) as memory:
        since = moment(args.since, memory.clock()) if args.since else None
        path = Path(args.path).expanduser() if args.path else None
        found = conversations.find(path, args.host, since)
        warn_of_pause(args)
        done, embed = conversations.Indexed(), not args.no_embed
        with Bar(args, "reading transcripts", lambda files: f"{files:,.0f} files") as bar:
            for number, (reader, file) in enumerate(found, start=1):
                bar(number, len(found), f"reading {one_line(file.name, 40)}")
                if path != file:
                    done = done.plus(conversations.backfill(memory, [(reader, file)], embed=embed))
                    continue
                # Of the one file that was asked for, what is wrong with it is an error.
                with suppress(Overtaken):  # somebody else reads it
                    for part in conversations.read_on(memory, file, reader, embed=embed):
                        done = done.plus(part)
        return backfill_result(done, len(found))._replace(hints=memory.hints)


def warn_of_pause(args: Namespace) -> None:
    import time

    current = [one for one in state.read_pauses() if one.holds(time.time())]
    if not current:
        return
    everywhere = any(one.scope == state.EVERYWHERE for one in current)
    where = "everywhere" if everywhere else f"in {', '.join(one.name for one in current)}"
    console.warn(
        args,
        f"Memory is paused {where}. What was said meanwhile is passed over, but what a transcript gives no time for is"
        " read. `bethink resume` ends the pause.",
    )


def backfill_result(done: Indexed, files: int) -> Result:
    skipped = dict(sorted(done.skipped.items(), key=lambda row: -row[1]))
    turns, ideas = many(done.turns, "turn"), many(done.ideas, "idea")
    lines = [
        f"{many(files, 'transcript')}, {done.unchanged:,} of them without anything new",
        f"{turns}, {many(done.topics, 'topic')}, {ideas} from {many(len(done.sessions), 'session')}",
    ]
    if done.repeated or done.known:
        known = f"{many(done.repeated, 'turn')}, {many(done.known, 'idea')}"
        lines.append(f"known already: {known}")
    if skipped:
        reasons = ", ".join(f"{name} {number:,}" for name, number in list(skipped.items())[:NAMED])
        left = sum(skipped.values())
        lines.append(f"{left:,} of {done.lines:,} lines hold no speech: {reasons}")
    notes = [
        f"could not read {reason if file in reason else f'{file}: {reason}'}"
        for file, reason in done.failed[:NAMED]
    ]
    if len(done.failed) > NAMED:
        notes.append(f"and {len(done.failed) - NAMED:,} more; --json lists all")
    value = {
        "transcripts": files,
        "new": done.transcripts,
        "unchanged": done.unchanged,
        "lines": done.lines,
        "turns": done.turns,
        "repeated": done.repeated,
        "ideas": done.ideas,
        "known_ideas": done.known,
        "topics": done.topics,
        "sessions": len(done.sessions),
        "skipped": skipped,
        "failed": [{"file": file, "reason": reason} for file, reason in done.failed],
    }
    return Result(value, lines, notes)
