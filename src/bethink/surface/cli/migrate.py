"""`migrate`: the whole memory into another database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bethink.errors import UsageError
from bethink.surface.cli import output
from bethink.surface.cli.parsing import Command
from bethink.surface.cli.progress import Bar
from bethink.surface.cli.session import check_database, project, settings

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def migrate_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--to",
        metavar="DATABASE",
        required=True,
        help="a path, or postgresql://USER@HOST/NAME; empty, or begun before",
    )


def migrate(args: Namespace) -> None:
    """Bring everything into another database: ids, history, relations, vectors, sources, conversations, and what was purged. From
    the database of the settings or of --database, into the one of --to. May be stopped at any moment; the same command goes on
    from there. At the end both are compared by number and digest. The source is not changed; which database is used afterwards
    is for `bethink config database` to say.

    Examples:
      bethink migrate --to postgresql://memory@db.example/memory
      bethink migrate --database postgresql://memory@db.example/memory --to ~/memory.db
      bethink migrate --to /mnt/larger/memory.db --json
    """
    from bethink.features import migration
    from bethink.store import located, open_store

    check_database(args)
    config, place = settings(args), project(args)
    origin = migration.without_password(located(config, place))
    wanted = config._replace(database=args.to)
    goal = migration.without_password(located(wanted, place))
    if goal == origin:
        raise UsageError(
            f"{goal} is where the memories are already.", "Name another database with --to."
        )
    source = open_store(config, place)
    try:
        target = open_store(wanted, place)
        try:
            with Bar(args, "memories") as bar:
                moved = migration.migrate(source, target, origin, progress=bar)
        finally:
            target.close()
    finally:
        source.close()
    parts = {
        part: {"number": tally.number, "digest": tally.text} for part, tally in moved.parts.items()
    }
    value = {
        "from": origin,
        "to": goal,
        "taken": moved.taken,
        "resumed": moved.resumed,
        "verified": True,
        "parts": parts,
    }

    def text() -> None:
        told = "went on with an earlier run; " if moved.resumed else ""
        output.out(f"{told}{goal} now holds what {origin} holds: the same numbers and digests.")
        table = [
            (part, f"{tally.number:,}", tally.text[:16]) for part, tally in moved.parts.items()
        ]
        output.out("\n".join(output.columns([("part", "number", "digest"), *table])))

    output.show(args, value, text)
    output.hint(args, f"bethink config database {goal}")


COMMANDS = {"migrate": Command(migrate, migrate_options)}
