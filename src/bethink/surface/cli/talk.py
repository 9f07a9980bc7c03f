"""`backfill` and `topics`: what was said in earlier conversations."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bethink.errors import Overtaken, UsageError
from bethink.surface.cli import output
from bethink.surface.cli.parsing import Command
from bethink.surface.cli.progress import Bar
from bethink.surface.cli.session import opened

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from bethink.features.conversations import Indexed

SHOWN = 5


def backfill_options(parser: ArgumentParser) -> None:
    parser.add_argument("path", nargs="?", metavar="PATH", help="a transcript, or a folder of them")
    parser.add_argument(
        "--all", action="store_true", help="everything that the agents on this machine keep"
    )
    parser.add_argument(
        "--host", metavar="HOST", help="claude, codex, copilot, gemini, opencode, cursor or plain"
    )
    parser.add_argument(
        "--since", metavar="TIME", help="only transcripts that changed since then: 30d, or a date"
    )
    parser.add_argument(
        "--no-embed",
        action="store_true",
        help="by words only for now; `bethink reindex` embeds later",
    )


def backfill(args: Namespace) -> None:
    """Read transcripts of earlier conversations into memory: turns as evidence, topics, and the decisions, problems,
    solutions and questions in them, each with the line it was said at. Every conversation goes to the project it was held in.
    May be stopped at any moment; the next run goes on where it was, and reading twice changes nothing.

    Examples:
      bethink backfill --all
      bethink backfill --all --host claude --since 30d
      bethink backfill ~/.claude/projects/-home-ada-shop
      bethink backfill exported-chat.md --host plain
    """
    from bethink.features import conversations
    from bethink.text.when import moment

    if bool(args.path) == args.all:
        raise UsageError("Give a path, or --all.", "bethink backfill --all")
    with opened(args, make=True) as memory:
        since = moment(args.since, memory.clock()) if args.since else None
        path = Path(args.path).expanduser() if args.path else None
        found = conversations.find(path, args.host, since)
        warn_of_pause(args)
        with Bar(args, "reading transcripts", lambda files: f"{files:,.0f} files") as bar:
            done = conversations.Indexed()
            for number, pair in enumerate(found, start=1):
                bar(number, len(found), f"reading {output.one_line(pair[1].name, 40)}")
                if (
                    path == pair[1]
                ):  # the one file that was asked for: what is wrong with it is an error
                    with suppress(Overtaken):  # somebody else reads it
                        for part in conversations.read_on(
                            memory, path, pair[0], embed=not args.no_embed
                        ):
                            done = done.plus(part)
                else:
                    done = done.plus(
                        conversations.backfill(memory, [pair], embed=not args.no_embed)
                    )
            bar.close()
        for hint in memory.hints:
            output.hint(args, hint)
        output.show(args, shown(done, len(found)), lambda: written(done, len(found)))


def warn_of_pause(args: Namespace) -> None:
    import time

    from bethink.hooks import pause

    current = [one for one in pause.read() if one.holds(time.time())]
    if current:
        where = (
            "everywhere"
            if any(one.scope == pause.EVERYWHERE for one in current)
            else f"in {', '.join(one.name for one in current)}"
        )
        said = "What was said meanwhile is passed over, but what a transcript gives no time for is read."
        output.warn(args, f"Memory is paused {where}. {said} `bethink resume` ends the pause.")


def shown(done: Indexed, files: int) -> dict[str, Any]:
    return {
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
        "skipped": dict(sorted(done.skipped.items(), key=lambda row: -row[1])),
        "failed": [{"file": file, "reason": reason} for file, reason in done.failed],
    }


def written(done: Indexed, files: int) -> None:
    output.out(
        f"{output.many(files, 'transcript')}, {done.unchanged:,} of them without anything new"
    )
    output.out(
        f"{output.many(done.turns, 'turn')}, {output.many(done.topics, 'topic')}, {output.many(done.ideas, 'idea')}"
        f" from {output.many(len(done.sessions), 'session')}"
    )
    if done.repeated or done.known:
        output.out(
            f"known already: {output.many(done.repeated, 'turn')}, {output.many(done.known, 'idea')}"
        )
    if done.skipped:
        left = sum(done.skipped.values())
        reasons = ", ".join(
            f"{reason} {number:,}"
            for reason, number in sorted(done.skipped.items(), key=lambda row: -row[1])[:SHOWN]
        )
        output.out(f"{left:,} of {done.lines:,} lines hold no speech: {reasons}")
    for file, reason in done.failed[:SHOWN]:
        output.talk(f"could not read {reason if file in reason else f'{file}: {reason}'}")
    if len(done.failed) > SHOWN:
        output.talk(f"and {len(done.failed) - SHOWN:,} more; --json lists all")


COMMANDS = {"backfill": Command(backfill, backfill_options)}
