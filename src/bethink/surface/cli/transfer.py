"""`export`, `import`, `migrate` and `sync`: memories out, in, into another database, and exchanged with a team."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from bethink.config import data_directory
from bethink.errors import BethinkError, InvalidInput, StoreCorrupt, UsageError
from bethink.features import exchange, knowledge, migration
from bethink.features.exchange import export_records
from bethink.features.migration import without_password
from bethink.features.sync import (
    TOLD,
    Shared,
    StorePeer,
    Sync,
    load_shared,
    save_shared,
    team_scope,
)
from bethink.project import container_name
from bethink.recall.shape import plain
from bethink.store import locate_database, open_store
from bethink.surface import render
from bethink.surface.cli import console
from bethink.surface.cli.console import Bar, Result, check_database, open_memory, project, settings
from bethink.surface.cli.knowledge import existing_path, sync_with_bar, synced_result
from bethink.surface.cli.parsing import command
from bethink.surface.layout import FORMATS, columns, flatten_record, format_records, many
from bethink.surface.operations import FILTERS, STATES, make_filter, split_lists
from bethink.surface.remote import Client, ServerPeer, read_token
from bethink.types import PERSONAL

if TYPE_CHECKING:
    from types import SimpleNamespace as Namespace

    from bethink.api import Bethink
    from bethink.features.sync import Peer, SyncReport
    from bethink.types import Memory

MARKDOWN = (".md", ".markdown", ".mdx")
INCLUDED = ("conversations", "documents")
SYNC_WORDS = {
    "pushed": "pushed",
    "pulled": "pulled",
    "merged": "merged",
    "removed_here": "removed here",
    "removed_there": "removed there",
}


@command(
    "export",
    f"""
    --jsonl              one JSON object per line
    --output, -o FILE    write to a file, readable by you alone; an old one is replaced when all is written
    {FILTERS}
    """,
    opens="read",
    formats=FORMATS,
)
def export(args: Namespace, memory: Bethink) -> None:
    """Write memories out, the oldest first: everything of this project and personal ones, forgotten, expired and replaced
    ones included, unless the options choose. JSON unless --format says otherwise. Streams, so any number will do.

    Examples:
      bethink export --output memories.json
      bethink export --all-projects --jsonl | gzip > memories.jsonl.gz
      bethink export --kind decision --format md
    """
    if args.jsonl and args.explicit_format:
        raise UsageError("Give --format or --jsonl, not both.", "bethink export --jsonl")
    form = "jsonl" if args.jsonl else args.format if args.explicit_format else "json"
    hidden = {} if args.as_of else {f"include_{state}": True for state in STATES}
    wanted = make_filter(memory, args, **hidden)
    lost: list[str] = []
    with destination(args.output) as stream:
        found = export_text(form, memory, memory.export(wanted, lost))
        stream.writelines(found) if form == "text" else console.data(found, stream)
    if lost:
        raise StoreCorrupt(
            f"The database is damaged: {many(len(lost), 'memory', 'memories')} could not be read; all others were written.",
            "Run `bethink doctor --deep`, and restore a backup for what is missing.",
        )
    if args.output:
        number = many(memory.store.count(wanted), "memory", "memories")
        console.note(args, f"{number} written to {args.output}")


def export_text(form: str, memory: Bethink, memories: Iterator[Memory]) -> Iterator[str]:
    if form == "text":
        for number, one in enumerate(memories):
            yield "\n" * (2 if number else 0) + "\n".join(render.memory_lines(one, (), {})) + "\n"
        return
    records: Iterator[Any] = export_records(memory, memories)
    if form not in ("json", "jsonl"):
        records = (flatten_record(plain(one)) for one in memories)
    fields = [field for field in render.FIELDS if field != "score"]
    yield from format_records(form, records, fields)


@contextmanager
def destination(path: str | None) -> Iterator[TextIO]:
    """Where an export goes. A file appears under its name only when it is whole."""
    if path is None or path == "-":
        yield sys.stdout
        return
    target = Path(path).expanduser()
    if target.exists() and not target.is_file():
        direct = target  # a pipe or a device
    else:
        direct = target.with_name(f".{target.name}.partial")
    try:
        handle = os.open(direct, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            yield stream
        if direct != target:
            direct.replace(target)
    except OSError as error:
        raise BethinkError(
            f"{path} cannot be written: {error.strerror}.", "Check the folder and its free space."
        ) from error
    finally:
        if direct != target:
            direct.unlink(missing_ok=True)


@command(
    "import",
    """
    [FILE]               what `bethink export` wrote as JSON or JSON lines, also gzipped; or a SQLite database
    --trusted            of FILE: believe each memory as far as it says, since the file is yours
    --personal           of FILE: what is personal too
    --all-scopes         of FILE: other projects and what is personal too, each under its own
    --dry-run            of FILE: say what would be taken in, and change nothing
    --markdown PATH      a Markdown file, or a folder of them (.md .markdown .mdx)
    --repo-map FILE      a repo map as JSON
    """,
)
def import_(args: Namespace) -> Result:
    """Take in an export, another database, Markdown files from anywhere, or a repo map. Of an export or a database the memories of
    this project are taken, or those of the only project in it. They keep their ids where those are free, what is known by id
    or text stays as it is, and what they say of it is only proposed. Of Markdown and a repo map it is a sync: files that
    changed replace their own memories, files that vanished retire theirs, and nothing else is touched. Imported text is
    trusted less than what you say, unless you say that the file is yours with --trusted.

    Examples:
      bethink import memories.json
      bethink import old-memory.db --trusted --all-scopes
      bethink import --markdown ~/notes/postmortems
      bethink import --markdown vendor/react-router/docs --container react-router
      bethink map --json > repo-map.json && bethink import --repo-map repo-map.json
    """
    if sum(map(bool, (args.file, args.markdown, args.repo_map))) != 1:
        raise UsageError(
            "Give one of an export, --markdown and --repo-map.", "bethink import --markdown docs"
        )
    if args.file:
        return import_file(args)
    if args.trusted or args.dry_run or args.all_scopes or args.personal:
        raise UsageError(
            "--trusted, --dry-run, --personal and --all-scopes go with an export.",
            "bethink import memories.json --dry-run",
        )
    with open_memory(args, make=True) as memory:
        path = existing_path(args.markdown or args.repo_map)
        take = knowledge.import_markdown if args.markdown else knowledge.import_repo_map
        return synced_result(sync_with_bar(args, "importing", partial(take, memory, path)))


def import_file(args: Namespace) -> Result:
    if args.trusted and args.for_agent:
        raise UsageError(
            "Only the user can say that a file is theirs: --trusted is not for agents.",
            f"bethink import {args.file}",
        )
    path = existing_path(args.file)
    if path.suffix.lower() in MARKDOWN or path.is_dir():
        raise UsageError(f"{args.file} is no export.", f"bethink import --markdown {args.file}")
    with open_memory(args, make=not args.dry_run) as memory, Bar(args, "importing") as bar:
        done = exchange.import_file(
            memory,
            path,
            trusted=args.trusted,
            all_scopes=args.all_scopes,
            personal=args.personal,
            dry_run=args.dry_run,
            progress=bar,
        )
        hints = list(memory.hints)
    counts = (
        (done.known, "known already"),
        (done.merged, "merged"),
        (done.purged, "purged here before"),
        (done.redactions, "redacted"),
    )
    parts = [f"{'would add' if args.dry_run else 'added'} {many(done.added, 'memory', 'memories')}"]
    parts += [f"{number:,} {word}" for number, word in counts if number]
    parts += [many(done.relations, "relation")] if done.relations else []
    if done.left_out:
        number = many(done.left_out, "memory", "memories")
        hints.append(
            f"{number} of other projects or personal left out; --all-scopes and --personal take them in."
        )
    value = {**done._asdict(), "dry_run": args.dry_run}
    return Result(value, [", ".join(parts)], hints=hints)


@command(
    "migrate",
    """
    --to DATABASE        a path, or postgresql://USER@HOST/NAME; empty, or begun before
    """,
)
def migrate(args: Namespace) -> Result:
    """Bring everything into another database: ids, history, relations, vectors, sources, conversations, and what was purged. From
    the database of the settings or of --database, into the one of --to. May be stopped at any moment; the same command goes on
    from there. At the end both are compared by number and digest. The source is not changed; which database is used afterwards
    is for `bethink config database` to say.

    Examples:
      bethink migrate --to postgresql://memory@db.example/memory
      bethink migrate --database postgresql://memory@db.example/memory --to ~/memory.db
      bethink migrate --to /mnt/larger/memory.db --json
    """
    if not args.to:
        raise UsageError("Where to is not said.", "bethink migrate --to DATABASE")
    check_database(args)
    config, place = settings(args), project(args)
    wanted = config._replace(database=args.to)
    origin, goal = (
        migration.without_password(locate_database(one, place)) for one in (config, wanted)
    )
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
    earlier = "went on with an earlier run; " if moved.resumed else ""
    lines = [f"{earlier}{goal} now holds what {origin} holds: the same numbers and digests."]
    table = [(part, f"{tally.number:,}", tally.text[:16]) for part, tally in moved.parts.items()]
    lines += columns([("part", "number", "digest"), *table])
    value = {
        "from": origin,
        "to": goal,
        "taken": moved.taken,
        "resumed": moved.resumed,
        "verified": True,
        "parts": {
            part: {"number": tally.number, "digest": tally.text}
            for part, tally in moved.parts.items()
        },
    }
    return Result(value, lines, hints=[f"bethink config database {goal}"])


@command(
    "sync",
    """
    --with TEAM          the team's server or database; by default the setting `team`
    --as NAME            what the team calls this project (default: the name of its folder)
    --include WHAT*      conversations or documents too; may be repeated
    --personal           your personal memories too, for a team of your own machines
    --accept-removals    even if most of what both sides had is gone on one of them
    --forget-base        as if for the first time: nothing is removed, only added and merged
    --token-file FILE    a file that holds the token for the server (default: $BETHINK_TOKEN)
    """,
    opens="make",
)
def sync(args: Namespace, memory: Bethink) -> Result:
    """Exchange this project's memories with a team: what was told here goes there, and the other way round. Changes of both sides are
    merged field by field, the later word stands, and what was overruled stays in the history. What was forgotten, purged or
    removed on one side goes on the other. A sync may be stopped at any moment; the next one goes on.

    Examples:
      bethink sync --with https://memory.example --as shop
      bethink sync --with postgresql://memory@db.example/memory
      bethink config team https://memory.example && bethink sync
      bethink sync --include conversations,documents
    """
    included = split_lists(args.include)
    if wrong := [one for one in included if one not in INCLUDED]:
        raise InvalidInput(
            f"'{wrong[0]}' cannot be included.", "One of " + ", ".join(INCLUDED) + "."
        )
    team = getattr(args, "with") or memory.config.team
    if not team:
        raise UsageError(
            "Which team is not said.",
            "bethink sync --with https://memory.example, or bethink config team …",
        )
    reports: list[SyncReport] = []
    with open_peer(args, memory, team) as peer_of:
        for here, there, name in synced_scopes(args, memory):
            file = state_file(memory, team, here, there)
            shared = Shared({}, frozenset()) if args.forget_base else load_shared(file)
            mine = StorePeer(memory.store, here, memory.actor, memory.clock)
            what = (TOLD, *included)
            run = Sync(mine, peer_of(there), name, what, args.accept_removals)
            report, now = run.run(shared)
            save_shared(file, now)
            reports.append(report)
    return sync_result(memory, reports)


@contextmanager
def open_peer(args: Namespace, memory: Bethink, team: str) -> Iterator[Callable[[str], Peer]]:
    """The team's side of each scope: of a server, or of a database."""
    if team.startswith(("http://", "https://")):
        client = Client(team, read_token(args.token_file))
        name = team_name(args, memory)
        yield lambda scope: ServerPeer(client, name, args.container, scope == PERSONAL)
        return
    config = memory.config._replace(database=team)
    used, wanted = (locate_database(one, memory.project) for one in (memory.config, config))
    if without_password(wanted) == without_password(used):
        raise UsageError(
            f"{without_password(team)} is the database that is used here anyway.",
            "Name the team's with --with.",
        )
    store = open_store(config, memory.project)
    try:
        yield lambda scope: StorePeer(store, scope, memory.actor, memory.clock)
    finally:
        store.close()


def synced_scopes(args: Namespace, memory: Bethink) -> list[tuple[str, str, str]]:
    """(scope here, scope there, the name that people know it by)."""
    name = team_name(args, memory)
    there = team_scope(name)
    if args.container:
        container = container_name(args.container)
        identity = there.removeprefix("project:")
        there, name = f"container:{identity}/{container}", f"{name}/{container}"
    found = [(memory.scope, there, name)]
    return [*found, (PERSONAL, PERSONAL, "personal")] if args.personal else found


def team_name(args: Namespace, memory: Bethink) -> str:
    name = (getattr(args, "as") or memory.project.name).strip()
    if not name:
        raise InvalidInput("A project needs a name in the team.", "bethink sync --as NAME")
    return str(name)


def state_file(memory: Bethink, team: str, here: str, there: str) -> Path:
    """Where what both sides had is kept: one file for each pair of databases and scopes."""
    own = without_password(locate_database(memory.config, memory.project))
    pair = "\n".join((own, without_password(team) if "://" in team else team, here, there))
    name = sha256(pair.encode("utf-8", "surrogateescape")).hexdigest()[:24]
    return data_directory() / "sync" / f"{name}.json"


def sync_result(memory: Bethink, reports: list[SyncReport]) -> Result:
    value: dict[str, Any] = {
        name: sum(getattr(report, name) for report in reports) for name in (*SYNC_WORDS, "links")
    }
    conflicts = [conflict for report in reports for conflict in report.conflicts]
    left = [id for report in reports for id in report.left]
    value["conflicts"] = [{"id": id, "fields": list(fields)} for id, fields in conflicts]
    value["left"] = left
    done = [f"{value[name]:,} {said}" for name, said in SYNC_WORDS.items() if value[name]]
    lines = [", ".join(done) if done else "in step already"]
    short = memory.store.abbreviate([id for id, _ in conflicts])
    lines += [
        f"  both sides changed {', '.join(fields)} of {short.get(id, id)}; the later word stands"
        for id, fields in conflicts
    ]
    hints = []
    if conflicts:
        hints.append(
            f"bethink history {conflicts[0][0]} shows both; `bethink restore ID --to N` brings one back."
        )
    if left:
        number = many(len(left), "memory", "memories")
        hints.append(f"{number} stayed behind: changed meanwhile, or purged on the other side.")
    return Result(value, lines, hints=hints)
