"""`forget` and `restore`: out of sight, gone for good, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bethink.surface.cli import output
from bethink.surface.cli.filters import reach_option
from bethink.surface.cli.parsing import Command, count
from bethink.surface.cli.session import confirmed, opened
from bethink.surface.cli.write import show_changed
from bethink.types import IDEAS

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def forget_options(parser: ArgumentParser) -> None:
    parser.add_argument("id", nargs="+", metavar="ID", help="an id or any unique beginning of one")
    reach_option(parser)
    parser.add_argument(
        "--purge",
        action="store_true",
        help="remove every trace, for good; the text is not taken in again",
    )
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask before purging")


def forget(args: Namespace) -> None:
    """Hide memories from every search; `restore` brings them back. With --purge they are gone from every table, cache and
    free page, and with them what their conversation holds in the very same words; the same text is refused afterwards.

    Examples:
      bethink forget 01a1dd89
      bethink forget 01a1dd89 01a1de02 --json
      bethink forget 01a1dd89 --purge --yes
    """
    from bethink.features import promotion
    from bethink.ingest.traces import Traces, traces
    from bethink.surface import render

    with opened(args) as memory:
        found = memory.get(*args.id, count=False)
        said = traces(memory.store, found) if args.purge else Traces()
        found += said.same
        ids = [one.id for one in found]
        short = memory.store.abbreviate(ids)
        lines = [render.memory_label(one, short) for one in found]
        if args.purge:
            if not args.yes:
                output.talk("\n".join(lines))
            confirmed(
                args, f"Purging {output.many(len(ids), 'memory', 'memories')} cannot be undone."
            )
        rules = promotion.withdraw_rules(memory, found) if args.purge else []
        done = memory.forget(*ids, purge=args.purge)
        status = "purged" if args.purge else "forgotten"
        output.show(
            args,
            [{"id": id, "status": status} for id in ids],
            lambda: output.out("\n".join(f"{status} {line}" for line in lines)),
        )
        for sentence in rules:
            output.hint(args, sentence)
        for hint in done.hints:
            output.warn(args, hint)
        reach = " --all-projects" if args.all_projects else ""
        names = memory.store.abbreviate([one.id for one in said.rest])
        for one in said.rest:
            which = (
                "The turn it was taken from still says it"
                if one.position < IDEAS
                else "What was taken from it still says so"
            )
            output.hint(args, f"{which}: `bethink forget {names[one.id]} --purge{reach}`.")
        if not args.purge:
            output.hint(
                args,
                f"Undo with `bethink restore {short[ids[0]]}{reach}`"
                + (", and so on." if ids[1:] else "."),
            )
            hidden = [
                relation.target
                for relation in memory.store.relations(ids)
                if relation.type == "supersedes" and relation.source in ids
            ]
            for id in memory.store.abbreviate(hidden).values():
                output.hint(
                    args,
                    f"What it had replaced stays hidden too: `bethink restore {id}{reach}` brings it back.",
                )


def restore_options(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="an id or any unique beginning of one")
    reach_option(parser)
    parser.add_argument(
        "--to",
        type=count,
        metavar="N",
        help="the version to go back to, as numbered by `bethink history ID`",
    )


def restore(args: Namespace) -> None:
    """Bring back a memory that was forgotten or replaced, or an earlier version of one.

    Examples:
      bethink restore 01a1dd89
      bethink restore 01a1dd89 --to 2
      bethink list --include-deleted
    """
    with opened(args) as memory:
        show_changed(args, memory, "restored", memory.restore(args.id, args.to))


COMMANDS = {"forget": Command(forget, forget_options), "restore": Command(restore, restore_options)}
