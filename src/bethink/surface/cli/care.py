"""`reindex`, `backup` and `reset`: keeping the database in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bethink.surface.cli import output
from bethink.surface.cli.parsing import Command
from bethink.surface.cli.progress import Bar
from bethink.surface.cli.session import confirmed, opened

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def reindex_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--full", action="store_true", help="make every vector and the full-text index anew"
    )


def reindex(args: Namespace) -> None:
    """Give every memory a vector of the current embedding model, as after a change of model. May be stopped at any moment;
    the next run goes on where it was.

    Examples:
      bethink reindex
      bethink config embedding all-MiniLM-L6-v2 && bethink reindex
      bethink reindex --full
    """
    with opened(args) as memory, Bar(args, "embedding") as bar:
        done = memory.reindex(full=args.full, progress=bar)
        bar.close()
        model = memory.embedder.model if memory.embedder else None
        value = {"embedded": done, "model": model}
        output.show(
            args,
            value,
            lambda: output.out(f"embedded {output.many(done, 'memory', 'memories')} with {model}"),
        )


def backup_options(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a new file")


def backup(args: Namespace) -> None:
    """Copy the whole database into one file while others go on using it. To restore, put the copy in the database's place.

    Examples:
      bethink backup ~/backups/memory-2026-11-15.db
      bethink search deploy --database ~/backups/memory-2026-11-15.db
    """
    with opened(args) as memory:
        written = memory.backup(args.file)
        output.show(
            args,
            {"path": args.file, "bytes": written},
            lambda: output.out(f"wrote {args.file} ({output.size(written)})"),
        )


def reset_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--scope",
        choices=("this", "personal", "all"),
        default="this",
        metavar="SCOPE",
        help="this (the project, the default), personal, or all",
    )
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")


def reset(args: Namespace) -> None:
    """Forget everything in a scope beyond recovery. Asks first.

    Examples:
      bethink backup before-reset.db && bethink reset
      bethink reset --scope personal
      bethink reset --scope all --yes
    """
    from bethink.types import PERSONAL

    with opened(args) as memory:
        scopes = {"this": [memory.scope], "personal": [PERSONAL], "all": None}[args.scope]
        here = (
            f"the container {args.container} of {memory.project.name}"
            if args.container
            else f"the project {memory.project.name}"
        )
        where = {"this": here, "personal": "your personal scope", "all": "every project"}[
            args.scope
        ]
        overview = memory.stats(scopes)
        number = output.many(overview.memories + overview.deleted, "memory", "memories")
        if not args.yes:
            output.hint(args, "`bethink backup FILE` keeps a copy.")
        confirmed(args, f"This removes {number} of {where} for good.")
        removed = memory.reset(scopes)
        output.show(
            args,
            {"removed": removed, "scope": args.scope},
            lambda: output.out(f"removed {output.many(removed, 'memory', 'memories')} of {where}"),
        )


COMMANDS = {
    "reindex": Command(reindex, reindex_options),
    "backup": Command(backup, backup_options),
    "reset": Command(reset, reset_options),
}
