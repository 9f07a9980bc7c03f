"""`export`, `import`, `migrate` and `sync`: memories out, in, into another database, and exchanged with a team."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace as Namespace
from typing import Any, TextIO
from urllib.parse import urlencode

from bethink import post
from bethink import project as projects
from bethink.api import Bethink, open_store
from bethink.app import read_words, render
from bethink.app.asked import make_filter
from bethink.app.cli import console
from bethink.app.cli.console import (
    Bar,
    Result,
    check_database,
    directory,
    open_memory,
    project,
    settings,
)
from bethink.app.cli.knowledge import run_sync, synced_result
from bethink.app.cli.tend import edit_file
from bethink.app.render import format_records, many, pick
from bethink.config import check, locate_database, mask_password, project_file
from bethink.errors import (
    BethinkError,
    ConfigError,
    InvalidInput,
    NotFound,
    StoreCorrupt,
    UsageError,
)
from bethink.features import exchange, knowledge, readers
from bethink.features.exchange import export_records
from bethink.features.knowledge import MARKDOWN
from bethink.features.sync import (
    Link,
    Outline,
    OutlineEntry,
    Peer,
    StorePeer,
    Sync,
    SyncReport,
    load_shared,
    save_shared,
)
from bethink.model import EVERYTHING, PERSONAL, STATEMENTS, Json, Memory, Relation, Strings
from bethink.post import PostError
from bethink.project import container_name
from bethink.recall.shape import plain
from bethink.schema import json_fields
from bethink.store.base import Store
from bethink.store.rows import Ids, Record
from bethink.store.transfer import (
    Bundle,
    Expected,
    bundle_from_json,
    bundle_to_json,
    split_pages,
    team_scope,
)
from bethink.store.transfer import migrate as move_everything
from bethink.text import textfile

SHOWN = ("include_expired", "include_superseded")  # in a vault, which shows what replaced what
# Columns of a table, and those of a file, which has every field.
TABLE = "id kind scope source path lines created_at summary content".split()
COLUMNS = tuple(dict.fromkeys((*TABLE, *json_fields())))
SETTINGS_FILE = "memory.config.json"
# Its name of a setting, its variable of the environment, and ours.
_SETTINGS = (
    ("minScore", "CLAUDE_MEMORY_MIN_SCORE", "min_similarity"),
    ("chunkOverlapPercent", "CLAUDE_MEMORY_CHUNK_OVERLAP", "chunk_overlap"),
    ("chunkSize", "CLAUDE_MEMORY_CHUNK_SIZE", "chunk_size"),
    ("defaultSearchMode", "CLAUDE_MEMORY_SEARCH_MODE", "mode"),
)
SYNCED = SyncReport._fields[:6]  # numbers
SYNC_HINTS = read_words("sync hints")


def export(args: Namespace, memory: Bethink) -> None:
    form = "jsonl" if args.jsonl else args.given.get("format", "json")
    if (form == "vault") != bool(args.directory):
        raise UsageError(
            "A folder goes with --format vault, and the other way round.",
            "bethink export --format vault DIRECTORY",
        )
    if args.directory:
        export_vault(args, memory)
        return
    hidden = {} if args.as_of else EVERYTHING
    wanted = make_filter(memory, args, **hidden)
    lost: list[str] = []
    with destination(args.output) as stream:
        found: Iterable[str] = export_text(args, form, memory, memory.export(wanted, lost))
        if form in ("text", "md"):
            found = console.fence_parts(args, found)
        stream.writelines(found) if form == "text" else console.data(found, stream)
    if lost:
        raise StoreCorrupt(
            f"The database is damaged: {many(len(lost), 'memory')} could not be read; all others were written.",
            "Run `bethink doctor --deep`, and restore a backup for what is missing.",
        )
    if args.output:
        number = many(memory.store.count(wanted), "memory")
        console.note(args, f"{number} written to {args.output}")


def export_vault(args: Namespace, memory: Bethink) -> None:
    chosen: Json = {} if args.as_of else dict.fromkeys(SHOWN, True)
    if not args.kind:
        chosen["kinds"] = (*STATEMENTS, "handoff")
    exported = export_records(memory, memory.export(make_filter(memory, args, **chosen)))
    records = (console.release(args, one) for one in exported)
    title = console.release(args, f"Memories of {render.one_line(memory.project.name)}")
    folder = Path(args.directory).expanduser()
    number = exchange.write_vault(memory, records, folder, title)
    console.note(args, f"{many(number, 'note')} written to {args.directory}")


def export_text(
    args: Namespace, form: str, memory: Bethink, memories: Iterator[Memory]
) -> Iterator[str]:
    if form == "text":
        for one in memories:
            yield "\n".join(render.item_lines([render.quote_memory(one, {})])) + "\n"
        return
    records: Iterator[Any] = export_records(memory, memories)
    if form not in ("json", "jsonl"):
        records = map(plain, memories)
    fields = TABLE if form == "md" else COLUMNS
    yield from format_records(form, (console.release(args, one) for one in records), fields)


@contextmanager
def destination(path: str | None) -> Iterator[TextIO]:
    """Where an export goes. A file appears under its name only when it is whole."""
    if path is None or path == "-":
        yield sys.stdout
        return
    target = Path(path).expanduser()
    is_pipe = target.exists() and not target.is_file()  # or a device
    try:
        with target.open("w", encoding="utf-8") if is_pipe else textfile.replace(target) as stream:
            yield stream
    except OSError as error:
        raise BethinkError(
            f"{path} cannot be written: {error.strerror}.", "Check the folder and its free space."
        ) from error


def import_(args: Namespace) -> Result:
    place = args.file or args.markdown or args.repo_map
    if not place:
        raise UsageError(
            "Give one thing to import: FILE, --markdown PATH or --repo-map FILE.",
            "bethink import notes.csv --dry-run",
        )
    path = Path(place).expanduser()
    if args.undo:
        with open_memory(args) as memory:
            done = exchange.undo(memory, path, args.dry_run)
            if not done:
                return synced_result(knowledge.remove_import(memory, path, dry_run=args.dry_run))
        return Result({**done, "dry_run": args.dry_run})
    if path.name == SETTINGS_FILE:
        return import_settings(args, path)
    if not path.exists():
        raise NotFound(f"There is nothing at {place}.", "Check the path.")
    is_markdown = path.is_dir() or path.suffix.lower() in MARKDOWN
    if args.file and (not is_markdown or readers.find_importer(path)):
        return import_file(args, path)
    if args.trusted or args.all_scopes or args.personal or args.text_column:
        raise UsageError(
            "--trusted, --personal, --all-scopes and --text-column go with an export or another program's memories.",
            f"bethink import {place}",
        )
    take = knowledge.import_repo_map if args.repo_map else knowledge.import_markdown
    with open_memory(args, make=not args.dry_run) as memory:
        return run_sync(args, "importing", take, memory, path, dry_run=args.dry_run)


def import_settings(args: Namespace, path: Path) -> Result:
    """Takes over what Claude Memory's file and its variables of the environment set, into the project's file. The environment counts
    more, as it did there, and what is set here already stays."""
    text = textfile.read(path)
    told = dict(readers.to_object(text or ""))
    if text and not told:
        raise InvalidInput(f"{path} holds no settings.", "It should hold a JSON object.")
    root, known = projects.locate(directory(args)).root, settings(args).origins
    taken: Json = {}
    left: dict[str, str] = {}
    for name, variable, key in _SETTINGS:
        given = {name: told.pop(name, None), variable: os.environ.get(variable)}
        for label, value in given.items():
            try:
                if value is not None:
                    taken[key] = check(key, value)
            except ValueError as error:
                left[label] = str(error)
        if key in known and taken.pop(key, None) is not None:
            left[key] = "is set here already"
    for key, value in () if args.dry_run else taken.items():
        edit_file(project_file(root), key, value, root)
    left = dict.fromkeys(told, "has no counterpart") | left
    report = {"settings": taken, "left": left, "dry_run": args.dry_run}
    lines = [f"{key} = {one}" for key, one in taken.items()]
    return Result(report, render.describe_value(report | {"settings": lines}))


def import_file(args: Namespace, path: Path) -> Result:
    with open_memory(args, make=not args.dry_run) as memory, Bar(args, "importing") as bar:
        done = exchange.import_file(
            memory,
            path,
            **pick(args, "trusted all_scopes personal dry_run"),
            text_column=args.text_column or "",
            progress=bar,
        )
        hints = list(memory.hints)
    if done.left_out:
        hints.append("--all-scopes and --personal take in what was left out.")
    if done.added and not args.dry_run:
        hints.append(f"Undo with `bethink import {shlex.quote(args.file)} --undo`.")
    note = "" if any(done._replace(format="")) else "Nothing to remember was found here."
    return Result({**done._asdict(), "dry_run": args.dry_run}, notes=[note], hints=hints)


def migrate(args: Namespace) -> Result:
    if not args.to:
        raise UsageError("Where to is not said.", "bethink migrate --to DATABASE")
    check_database(args)
    config, place = settings(args), project(args)
    wanted = config._replace(database=args.to)
    origin, goal = (mask_password(locate_database(one, place)) for one in (config, wanted))
    if goal == origin:
        raise UsageError(
            f"{goal} is where the memories are already.", "Name another database with --to."
        )
    with (
        closing(open_store(config, place)) as source,
        closing(open_store(wanted, place)) as target,
        Bar(args, "memories") as bar,
    ):
        moved = move_everything(source, target, origin, progress=bar)
        if wanted.shared and not config.shared:
            join_moved(source)
    numbers = {part: tally.number for part, tally in moved.parts.items()}
    value = {"from": origin, "to": goal, **pick(moved, "taken resumed"), "verified": True}
    lines = render.describe_value({**value, "parts": numbers})
    value["parts"] = {part: tally._asdict() for part, tally in moved.parts.items()}
    return Result(value, lines, hints=[f"bethink config database {goal}"])


def join_moved(source: Store) -> None:
    """Join the folders whose projects were moved into a team's database to what they are called there."""
    for key, name, path in source.items("scopes"):
        found = projects.find(Path(path)) if path and Path(path).is_dir() else None
        if found and found.confirmed and found.scope == key and name:
            with suppress(OSError):  # then `bethink join` does it
                projects.join(found, found.identity, name)


def sync(args: Namespace, memory: Bethink) -> Result:
    team = getattr(args, "with") or memory.config.team
    if not team:
        raise UsageError(
            "No team is named.",
            "bethink sync --with https://memory.example --as NAME, or bethink config team …",
        )
    name = name_in_team(args, memory)
    # Scope here → scope there, and the name that people know it by.
    scopes = {memory.scope: (team_scope(name), name)}
    if args.container:
        inside = container_name(args.container)
        there = team_scope(name).replace("project:", "container:", 1)
        scopes = {memory.scope: (f"{there}/{inside}", f"{name}/{inside}")}
    if args.personal:
        scopes[PERSONAL] = (PERSONAL, "personal")
    reports = []
    with open_peer(args, memory, team, name) as peer_of:
        for here, (there, label) in scopes.items():
            last = f"sync:{mask_password(team)} {here} {there}"
            mine = StorePeer(memory.store, here, memory.actor, memory.clock)
            run = Sync(mine, peer_of(there), label, args.accept_removals)
            report, now = run.run(load_shared(memory.store, last))
            save_shared(memory.store, last, now)
            reports.append(report)
    value: Json = {name: sum(getattr(one, name) for one in reports) for name in SYNCED}
    value["conflicts"] = [
        {"id": id, "fields": names} for one in reports for id, names in one.conflicts
    ]
    value["left"] = [id for one in reports for id in one.left]
    hints = [hint for name, hint in SYNC_HINTS.items() if value[name]]
    return Result(value, notes=["" if any(value.values()) else "in step already"], hints=hints)


def name_in_team(args: Namespace, memory: Bethink) -> str:
    """The name that the team has for this project. The user says it once: a folder may be called anything."""
    known, given = memory.project.team, (getattr(args, "as") or "").strip()
    if not given and not known:
        raise UsageError(
            f"It is not known what the team calls {memory.project.name}.",
            f"Say it once: bethink sync --as {shlex.quote(memory.project.name)}",
        )
    if given and given != known:
        here = projects.find(directory(args))
        with suppress(OSError):  # then it has to be said again
            projects.join(here, here.identity, given)
    return given or known


@contextmanager
def open_peer(
    args: Namespace, memory: Bethink, team: str, name: str
) -> Iterator[Callable[[str], Peer]]:
    """The team's side of each scope: of a server, or of a database."""
    if team.startswith(("http://", "https://")):
        try:
            yield lambda scope: ServerPeer(team, name, args.container, scope == PERSONAL)
        except WRONG as error:  # when it is read, or when it is compared with what is here
            raise BethinkError(
                f"{mask_password(team)} answered with something that is no part of a memory: {error}.",
                "Is its version older?",
            ) from error
        return
    config = memory.config._replace(database=team)
    used, wanted = (locate_database(one, memory.project) for one in (memory.config, config))
    if wanted == used:
        raise UsageError(
            f"{mask_password(team)} is the database that is used here anyway.",
            "Name the team's with --with.",
        )
    with closing(open_store(config, memory.project)) as store:
        yield lambda scope: StorePeer(store, scope, memory.actor, memory.clock)


# A team's server from somebody's machine

API = "/api/v1"
LARGEST_ANSWER = 256 << 20
PATIENCE = 300.0  # seconds for a request: the server reads a whole project for some
LARGEST_REQUEST = 4 << 20  # bytes: the server reads no more than eight
HASHES, IDS, RECORDS = 5000, 500, 100  # of one request
WRONG = (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError)
# The token for the server. It is in no setting, because settings are shown.
VARIABLE = "BETHINK_TOKEN"
HINTS = {
    "key": f"Put a token of that server into {VARIABLE}; `bethink token create` on the server makes one.",
    "missing": "Check the address, that of `bethink serve` without a path, and the project's name there (--as).",
}


class ServerPeer:
    """A server as the far peer of a sync, asked as the holder of one token, which is never shown. It knows the project by the name
    that the team gave it. Requests are bounded in time and size. What comes back is read as it is: who asks catches what is `WRONG`."""

    def __init__(
        self, url: str, name: str, container: str | None = None, personal: bool = False
    ) -> None:
        try:
            address, self._secret = post.address(url, API), post.key((VARIABLE,))
        except ValueError as error:
            raise ConfigError(
                f"The team's server cannot be asked: {error}.",
                f"Give it as https://memory.example, and its token in {VARIABLE}.",
            ) from error
        host = address.hostname or ""
        if address.scheme == "http" and self._secret and not post.is_this_machine(host):
            raise ConfigError(
                f"Without TLS the token for {host} can be read on the way.",
                f"Give it as https://{host}",
            )
        where = {"project": f"team:{name}", "container": container, "personal": personal and "true"}
        given = urlencode({name: value for name, value in where.items() if value})
        self._address = address._replace(query=given)

    def outline(self) -> Outline:
        answer = self._ask("outline")
        lines = {
            str(id): OutlineEntry(bytes.fromhex(version), str(hash), bool(unique))
            for id, version, hash, unique in answer["lines"]
        }
        links = {}
        for source, target, type, at, actor in answer["links"]:
            relation = Relation(source, target, type, datetime.fromtimestamp(at / 1000, UTC))
            links[source, target, type] = (relation, actor)
        return Outline(lines, links)

    def fetch(self, ids: Ids) -> list[Record]:
        answers = [self._ask("records", ids=page) for page in split_pages([*ids], RECORDS)]
        return [one for answer in answers for one in bundle_from_json(answer["bundle"]).records]

    def take(self, bundle: Bundle, expect: Expected) -> Strings:
        left: list[str] = []
        for part in _split_bundle(bundle):
            wanted = {record.memory.id for record in part.records}
            known = {id: one and one.hex() for id, one in expect.items() if id in wanted}
            left += self._ask("take", bundle=bundle_to_json(part), expect=known)["left"]
        return tuple(left)

    def remove(self, purge: Ids, unlink: Sequence[Link]) -> None:
        for ids in split_pages([*purge], IDS):
            self._ask("remove", purge=ids)
        for links in split_pages(unlink, IDS):
            self._ask("remove", unlink=links)

    def find_purged(self, hashes: Sequence[str]) -> set[str]:
        pages = [self._ask("purged", hashes=page) for page in split_pages(hashes, HASHES)]
        return {hash for page in pages for hash in page["purged"]} & set(hashes)

    def _ask(self, operation: str, **body: Any) -> Any:
        """What a server answers."""
        where = self._address._replace(path=f"{self._address.path}/sync/{operation}")
        headers = {"Authorization": f"Bearer {self._secret.value}"} if self._secret else {}
        try:
            return post.send(where, body, headers, self._secret, PATIENCE, LARGEST_ANSWER)
        except PostError as error:
            hint = HINTS.get(error.kind, "Check the address and whether the server runs.")
            raise BethinkError(error.message, hint) from error


def _split_bundle(bundle: Bundle) -> Iterator[Bundle]:
    """Parts of a bundle that are small enough to be sent."""
    if (
        len(bundle.records + bundle.relations) <= 1
        or len(json.dumps(bundle_to_json(bundle))) <= LARGEST_REQUEST
    ):
        yield bundle
        return
    empty = Bundle(scopes=bundle.scopes)
    for records in split_pages(bundle.records, (len(bundle.records) + 1) // 2 or 1):
        yield from _split_bundle(empty._replace(records=tuple(records)))
    for relations in split_pages(bundle.relations, (len(bundle.relations) + 1) // 2 or 1):
        yield from _split_bundle(empty._replace(relations=tuple(relations)))
