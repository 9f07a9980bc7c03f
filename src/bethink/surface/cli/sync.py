"""`sync`: a project's memories exchanged with a team."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bethink.errors import InvalidInput, UsageError
from bethink.surface.cli import output
from bethink.surface.cli.parsing import Command, pieces
from bethink.surface.cli.session import opened

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from pathlib import Path

    from bethink.api import Bethink
    from bethink.features.sync import Report, Side

INCLUDED = ("conversations", "documents")


def sync_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--with",
        dest="team",
        metavar="TEAM",
        help="the team's server or database; by default the setting `team`",
    )
    parser.add_argument(
        "--as",
        dest="name",
        metavar="NAME",
        help="what the team calls this project (default: the name of its folder)",
    )
    parser.add_argument(
        "--include",
        action="append",
        metavar="WHAT",
        help="conversations or documents too; may be repeated",
    )
    parser.add_argument(
        "--personal",
        action="store_true",
        help="your personal memories too, for a team of your own machines",
    )
    parser.add_argument(
        "--accept-removals",
        action="store_true",
        help="even if most of what both sides had is gone on one of them",
    )
    parser.add_argument(
        "--forget-base",
        action="store_true",
        help="as if for the first time: nothing is removed, only added and merged",
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="a file that holds the token for the server (default: $BETHINK_TOKEN)",
    )


def sync(args: Namespace) -> None:
    """Exchange this project's memories with a team: what was told here goes there, and the other way round. Changes of both sides are
    merged field by field, the later word stands, and what was overruled stays in the history. What was forgotten, purged or
    removed on one side goes on the other. A sync may be stopped at any moment; the next one goes on.

    Examples:
      bethink sync --with https://memory.example --as shop
      bethink sync --with postgresql://memory@db.example/memory
      bethink config team https://memory.example && bethink sync
      bethink sync --include conversations,documents
    """
    from bethink.features.sync import TOLD, Database, Shared, Sync, load_shared, save_shared

    included = pieces(args.include)
    if wrong := [one for one in included if one not in INCLUDED]:
        raise InvalidInput(
            f"'{wrong[0]}' cannot be included.", "One of " + ", ".join(INCLUDED) + "."
        )
    with opened(args, make=True) as memory:
        team = args.team or memory.config.team
        if not team:
            raise UsageError(
                "Which team is not said.",
                "bethink sync --with https://memory.example, or bethink config team …",
            )
        reports: list[Report] = []
        with far_side(args, memory, team) as side_of:
            for here, there, name in scopes(args, memory):
                file = state_file(memory, team, here, there)
                shared = Shared({}, frozenset()) if args.forget_base else load_shared(file)
                mine = Database(memory.store, here, memory.actor, memory.clock)
                what = (TOLD, *included)
                run = Sync(mine, side_of(there), name, what, args.accept_removals)
                report, now = run.run(shared)
                save_shared(file, now)
                reports.append(report)
        show_reports(args, memory, reports)


@contextmanager
def far_side(args: Namespace, memory: Bethink, team: str) -> Iterator[Callable[[str], Side]]:
    """The team's side of each scope: of a server, or of a database."""
    from bethink.features.migration import without_password
    from bethink.features.sync import Database
    from bethink.store import located, open_store
    from bethink.types import PERSONAL

    if team.startswith(("http://", "https://")):
        from bethink.surface.remote.client import Client, Server, read_token

        server = Client(team, read_token(args.token_file))
        name = team_name(args, memory)
        yield lambda scope: Server(server, name, args.container, scope == PERSONAL)
        return
    config = memory.config._replace(database=team)
    used, wanted = (located(one, memory.project) for one in (memory.config, config))
    if without_password(wanted) == without_password(used):
        raise UsageError(
            f"{without_password(team)} is the database that is used here anyway.",
            "Name the team's with --with.",
        )
    store = open_store(config, memory.project)
    try:
        yield lambda scope: Database(store, scope, memory.actor, memory.clock)
    finally:
        store.close()


def scopes(args: Namespace, memory: Bethink) -> list[tuple[str, str, str]]:
    """(scope here, scope there, the name that people know it by)."""
    from bethink.features.sync import team_scope
    from bethink.project import container_name
    from bethink.types import PERSONAL

    name = team_name(args, memory)
    there = team_scope(name)
    if args.container:
        container = container_name(args.container)
        identity = there.removeprefix("project:")
        there, name = f"container:{identity}/{container}", f"{name}/{container}"
    found = [(memory.scope, there, name)]
    return [*found, (PERSONAL, PERSONAL, "personal")] if args.personal else found


def team_name(args: Namespace, memory: Bethink) -> str:
    name = (args.name or memory.project.name).strip()
    if not name:
        raise InvalidInput("A project needs a name in the team.", "bethink sync --as NAME")
    return str(name)


def state_file(memory: Bethink, team: str, here: str, there: str) -> Path:
    """Where what both sides had is kept: one file for each pair of databases and scopes."""
    from hashlib import sha256

    from bethink.config import data_directory
    from bethink.features.migration import without_password
    from bethink.store import located

    pair = "\n".join(
        (
            without_password(located(memory.config, memory.project)),
            without_password(team) if "://" in team else str(team),
            here,
            there,
        )
    )
    return (
        data_directory()
        / "sync"
        / f"{sha256(pair.encode('utf-8', 'surrogateescape')).hexdigest()[:24]}.json"
    )


def show_reports(args: Namespace, memory: Bethink, reports: list[Report]) -> None:
    names = ("pushed", "pulled", "merged", "removed_here", "removed_there", "links")
    value: dict[str, Any] = {
        name: sum(getattr(report, name) for report in reports) for name in names
    }
    conflicts = [conflict for report in reports for conflict in report.conflicts]
    left = [id for report in reports for id in report.left]
    value |= {
        "conflicts": [{"id": id, "fields": list(fields)} for id, fields in conflicts],
        "left": left,
    }

    def text() -> None:
        words = {
            "pushed": "pushed",
            "pulled": "pulled",
            "merged": "merged",
            "removed_here": "removed here",
            "removed_there": "removed there",
        }
        done = [f"{value[name]:,} {said}" for name, said in words.items() if value[name]]
        output.out(", ".join(done) if done else "in step already")
        short = memory.store.abbreviate([id for id, _ in conflicts])
        for id, fields in conflicts:
            output.out(
                f"  both sides changed {', '.join(fields)} of {short.get(id, id)}; the later word stands"
            )

    output.show(args, value, text)
    if conflicts:
        output.hint(
            args,
            f"bethink history {conflicts[0][0]} shows both; `bethink restore ID --to N` brings one back.",
        )
    if left:
        output.hint(
            args,
            f"{output.many(len(left), 'memory', 'memories')} stayed behind: changed meanwhile, or purged on the other side.",
        )


COMMANDS = {"sync": Command(sync, sync_options)}
