"""`adopt`: the memories of a project whose folder was moved or renamed; and the hint that there are some."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from bethink.errors import UsageError
from bethink.surface.cli import output
from bethink.surface.cli.parsing import Command
from bethink.surface.cli.session import opened

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from bethink.api import Bethink
    from bethink.features.adoption import Left

LONG = 5000  # memories from which on it takes seconds, at about 4,000 a second


def adopt_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "old",
        nargs="?",
        metavar="OLD",
        help="the old path of the project, or its name if only one such is left",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would come over, and change nothing"
    )
    parser.add_argument(
        "--force", action="store_true", help="even if the old folder is still there"
    )


def adopt(args: Namespace) -> None:
    """Bring the memories of a project whose folder was moved or renamed into the project you stand in: all of them, with their
    history, conversations, topics, sources and containers, at once or not at all. What both hold is joined. Without OLD, list
    the projects whose folder is gone: first those of the same repository or the same name.

    Examples:
      bethink adopt
      bethink adopt ~/code/shop --dry-run
      bethink adopt ~/code/shop
      bethink adopt shop
    """
    from bethink.features import adoption

    if args.container:
        raise UsageError("A project is adopted with all its containers.", "Leave out --container.")
    with opened(args) as memory:
        if args.old is None:
            show_left(args, memory, adoption.left(memory))
            return
        found = adoption.adopt(memory, args.old, force=args.force, dry_run=True)
        if not args.dry_run:
            if found.left.memories > LONG:
                output.note(
                    args, f"bringing {found.left.memories:,} memories over; this may take a while"
                )
            found = adoption.adopt(memory, args.old, force=args.force)
        value = {
            **record(found.left),
            "into": str(memory.project.root),
            "joined": found.joined,
            "dry_run": args.dry_run,
        }
        number = output.many(found.left.memories, "memory", "memories")

        def text() -> None:
            did = "would bring" if args.dry_run else "brought"
            output.out(
                output.plain(
                    f"{did} {number} of {found.left.name} ({found.left.path}) into {memory.project.name}"
                )
            )
            if found.joined:
                output.out(
                    f"{output.many(found.joined, 'memory', 'memories')} that both held joined"
                )

        output.show(args, value, text)


def show_left(args: Namespace, memory: Bethink, found: list[Left]) -> None:
    def text() -> None:
        rows = [
            (one.name, one.path, output.many(one.memories, "memory", "memories"), one.why)
            for one in found
        ]
        for line in (
            output.columns([tuple(map(output.plain, row)) for row in rows], right=(2,))
            if rows
            else ()
        ):
            output.out(line)

    output.show(args, list(map(record, found)), text)
    if memory.shared:
        output.note(args, "A team's database knows projects by name, wherever their folders lie.")
    elif found:
        output.hint(
            args,
            f"`bethink adopt {shlex.quote(found[0].path)}` brings the first into {memory.project.name}.",
        )
    else:
        output.note(args, "No project's folder is gone.")


def record(one: Left) -> dict[str, Any]:
    return {"name": one.name, "path": one.path, "memories": one.memories, "why": one.why}


def suggest(args: Namespace, memory: Bethink, always: bool = False) -> None:
    """A hint where this project holds nothing and another one, whose folder is gone, seems to be the same."""
    if args.quiet or getattr(args, "personal", False) or getattr(args, "all_projects", False):
        return
    from bethink.features import adoption

    if sentence := adoption.hint(memory, always):
        output.hint(args, sentence)


COMMANDS = {"adopt": Command(adopt, adopt_options)}
