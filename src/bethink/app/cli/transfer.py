"""`export`, `import`, `migrate` and `sync`: move memories between files, databases and a team."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TextIO
from urllib.parse import urlencode

from bethink import post
from bethink import project as projects
from bethink.agents import edit
from bethink.api import Bethink, open_store
from bethink.app import render
from bethink.app.cli.console import Bar, Console, Result, print_data
from bethink.app.cli.knowledge import run_sync, synced_result
from bethink.app.cli.parser import LIST_FORMATS
from bethink.app.cli.settings import edit_file
from bethink.app.operation import Arg, operation
from bethink.app.operations.find import build_filter
from bethink.app.operations.requests import NO_FILTERS, Filters
from bethink.app.render import format_records, many, pick
from bethink.config import check, locate_database, mask_password, project_file, user_file
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

_SHOWN = ("include_expired", "include_superseded")  # in a vault, which shows replaced memories
# Columns of a table, and those of a file, which has every field.
TABLE = "id kind scope source path lines created_at summary content".split()
_COLUMNS = tuple(dict.fromkeys((*TABLE, *json_fields())))
GENERAL = "options of every command"
SETTINGS_FILE = "memory.config.json"
# Its name of a setting, its variable of the environment, and ours.
_SETTINGS = (
    ("minScore", "CLAUDE_MEMORY_MIN_SCORE", "min_similarity"),
    ("chunkOverlapPercent", "CLAUDE_MEMORY_CHUNK_OVERLAP", "chunk_overlap"),
    ("chunkSize", "CLAUDE_MEMORY_CHUNK_SIZE", "chunk_size"),
    ("defaultSearchMode", "CLAUDE_MEMORY_SEARCH_MODE", "mode"),
)
# memo's files of settings, its names and ours. Its cosines are of another model, so they are not taken over.
_MEMO_FILES = ("memo/config.jsonc", "memo/config.json")
_MEMO_SETTINGS = (("maxMemories", "", "limit"), ("deduplicationEnabled", "", "dedup"))
_OTHER_MODEL = "is a similarity of memo's model"
SYNCED = SyncReport._fields[:6]  # numbers
SYNC_HINTS = {
    "conflicts": "Both sides changed the same field; the later change wins. `bethink history ID` shows both, `bethink restore ID --to N` restores one.",
    "left": "Memories that were left changed in the meantime, or were purged on the other side.",
}


@operation(
    "Browse",
    agents="read",
    opens="read",
    examples=(
        "bethink export --output memories.json",
        "bethink export --format vault ~/vault",
        "bethink export --all-projects --jsonl | gzip > memories.jsonl.gz",
        "bethink export --kind decision --format md",
    ),
)
def export(
    console: Console,
    memory: Bethink,
    path: Annotated[
        str | None,
        Arg("the file to write; with --format vault the folder for the notes", positional=True),
    ] = None,
    output: Annotated[
        str | None,
        Arg(
            "the same as PATH of a file",
            short="-o",
            metavar="FILE",
        ),
    ] = None,
    filters: Filters = NO_FILTERS,
    format: Annotated[
        str | None,
        Arg("output format", choices=(*LIST_FORMATS, "vault"), group=GENERAL, one_of="format"),
    ] = None,
    json: Annotated[bool, Arg("same as --format json", group=GENERAL, one_of="format")] = False,
    jsonl: Annotated[bool, Arg("one JSON object per line", group=GENERAL, one_of="format")] = False,
) -> None:
    """Write memories to a file or to stdout, all or a part.

    Writes everything of this project and personal memories, the oldest first, including forgotten, expired and replaced ones, unless
    options choose. JSON by default. Streams any number of memories. A vault is a folder of Markdown for Obsidian: a note for each
    statement, none for forgotten memories, passages of documents and turns unless options ask for them. `bethink import` reads it
    back with its edits. A file is readable by you alone, and replaces an old one when it is complete.
    """
    form = "jsonl" if jsonl else format or "json"
    if form == "vault":
        if not path:
            raise UsageError(
                "A vault needs a folder to write to.", "bethink export --format vault DIRECTORY"
            )
        export_vault(console, memory, path, filters)
        return
    if path and output:
        raise UsageError("Two files are named to write to.", f"bethink export {path}")
    output = output or path
    if output and Path(output).expanduser().is_dir():
        raise UsageError(
            f"{output} is a folder, and the format is {form}.",
            f"bethink export {Path(output) / 'memories.json'}, or bethink export --format vault {output}",
        )
    hidden = {} if filters.as_of else EVERYTHING
    wanted = build_filter(memory, filters, **hidden)
    lost: list[str] = []
    with open_output(output) as stream:
        found: Iterable[str] = export_text(console, form, memory, memory.export(wanted, lost))
        if form in ("text", "md"):
            found = console.fence_parts(found)
        stream.writelines(found) if form == "text" else print_data(found, stream)
    if lost:
        raise StoreCorrupt(
            f"The database is damaged: {many(len(lost), 'memory')} could not be read; all others were written.",
            "Run `bethink doctor --deep`, and restore the missing ones from a backup.",
        )
    if output:
        console.note(f"{many(memory.store.count(wanted), 'memory')} written to {output}")


def export_vault(console: Console, memory: Bethink, directory: str, filters: Filters) -> None:
    chosen: Json = {} if filters.as_of else dict.fromkeys(_SHOWN, True)
    if not filters.kinds:
        chosen["kinds"] = (*STATEMENTS, "handoff")
    exported = export_records(memory, memory.export(build_filter(memory, filters, **chosen)))
    records = (console.release(one) for one in exported)
    title = console.release(f"Memories of {render.one_line(memory.project.name)}")
    number = exchange.write_vault(memory, records, Path(directory).expanduser(), title)
    console.note(f"{many(number, 'note')} written to {directory}")


def export_text(
    console: Console, form: str, memory: Bethink, memories: Iterator[Memory]
) -> Iterator[str]:
    if form == "text":
        for one in memories:
            yield "\n".join(render.item_lines([render.quote_memory(one, {})])) + "\n"
        return
    records: Iterator[Any] = export_records(memory, memories)
    if form not in ("json", "jsonl"):
        records = map(plain, memories)
    fields = TABLE if form == "md" else _COLUMNS
    yield from format_records(form, (console.release(one) for one in records), fields)


@contextmanager
def open_output(path: str | None) -> Iterator[TextIO]:
    """The stream of an export. A file appears under its name only when it is complete."""
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


@operation(
    "Import and index",
    agents="append",
    person_with=("trusted", "undo"),
    examples=(
        "bethink import old-memory.db --trusted --all-scopes",
        "bethink import .memo/memo.db --dry-run",
        "bethink import notes.csv --undo",
        "bethink import --markdown vendor/react-router/docs --container react-router",
        "bethink map --json > repo-map.json && bethink import --repo-map repo-map.json",
    ),
)
def import_(
    console: Console,
    file: Annotated[
        str | None,
        Arg(
            "an export of Bethink, another program's database, a folder of notes, JSON, CSV",
            positional=True,
            one_of="what",
        ),
    ] = None,
    trusted: Annotated[bool, Arg("FILE is yours: keep the confidence of each memory")] = False,
    personal: Annotated[bool, Arg("with FILE: also personal memories")] = False,
    all_scopes: Annotated[
        bool, Arg("with FILE: also other projects and personal memories, each in its own scope")
    ] = False,
    text_column: Annotated[
        str | None,
        Arg(
            "column of JSON or CSV with the text; default: text, content, memory, body or note",
            metavar="NAME",
        ),
    ] = None,
    dry_run: Annotated[bool, Arg("show what would be imported; change nothing")] = False,
    undo: Annotated[bool, Arg("remove what imports of FILE added")] = False,
    markdown: Annotated[
        str | None,
        Arg(
            "a Markdown file or a folder of them (.md .markdown .mdx)",
            metavar="PATH",
            one_of="what",
        ),
    ] = None,
    repo_map: Annotated[
        str | None, Arg("a repo map as JSON", metavar="FILE", one_of="what")
    ] = None,
) -> Result:
    """Import an export, another program's memories, JSON, CSV, Markdown or a repo map.

    FILE may be an export or a database of Bethink; a vault; the database of memo, Memory Graph, Memory MCP, claude-mem or
    mcp-memory-service; tables of LanceDB; the notes of basic-memory; the built-in memories of Claude Code and Codex; JSON, JSON lines
    or CSV with a text in each row; or settings: Claude Memory's .claude/memory.config.json, memo's ~/.config/memo/config.jsonc. Imports the memories of this project, or
    of the only project in the file. They keep free ids; known ids and texts stay unchanged, and claims about them are only proposed.
    Other Markdown and a repo map are synced: changed files replace their own memories, deleted files retire theirs. Imported text is
    trusted less than your own, unless --trusted says that the file is yours.
    """
    place = file or markdown or repo_map
    if not place:
        raise UsageError(
            "Give one thing to import: FILE, --markdown PATH or --repo-map FILE.",
            "bethink import notes.csv --dry-run",
        )
    path = Path(place).expanduser()
    if undo:
        with console.open_memory() as memory:
            done = exchange.undo(memory, path, dry_run)
            if not done:
                return synced_result(knowledge.remove_import(memory, path, dry_run=dry_run))
        return Result({**done, "dry_run": dry_run})
    is_memo = path.as_posix().endswith(_MEMO_FILES)
    if is_memo or path.name == SETTINGS_FILE:
        return import_settings(console, path, dry_run, is_memo)
    if not path.exists():
        raise NotFound(f"There is nothing at {place}.", "Check the path.")
    is_markdown = path.is_dir() or path.suffix.lower() in MARKDOWN
    if file and (not is_markdown or readers.find_importer(path)):
        with console.open_memory(make=not dry_run) as memory, Bar(console, "importing") as bar:
            report = exchange.import_file(
                memory,
                path,
                trusted=trusted,
                all_scopes=all_scopes,
                personal=personal,
                dry_run=dry_run,
                text_column=text_column or "",
                progress=bar,
            )
            hints = list(memory.hints)
        return describe_import(report, hints, file, dry_run)
    if trusted or all_scopes or personal or text_column:
        raise UsageError(
            "--trusted, --personal, --all-scopes and --text-column go with an export or another program's memories.",
            f"bethink import {place}",
        )
    take = knowledge.import_repo_map if repo_map else knowledge.import_markdown
    with console.open_memory(make=not dry_run) as memory:
        return run_sync(console, "importing", take, memory, path, dry_run=dry_run)


def import_settings(console: Console, path: Path, dry_run: bool, is_memo: bool = False) -> Result:
    """Copy the settings of Claude Memory to the project's file, or those of memo to the user's.

    The environment wins, as it did there, and existing settings stay.
    """
    text = textfile.read(path)
    found = dict(readers.to_object(edit.parse(text or "")))
    if text and not found:
        raise InvalidInput(f"{path} holds no settings.", "It should hold a JSON object.")
    root, known = projects.locate(console.directory).root, console.load_settings().origins
    taken: Json = {}
    left: dict[str, str] = {}
    for name, variable, key in _MEMO_SETTINGS if is_memo else _SETTINGS:
        candidates = {name: found.pop(name, None), variable: os.environ.get(variable)}
        for label, value in candidates.items():
            try:
                if value is not None:
                    taken[key] = check(key, value)
            except ValueError as error:
                left[label] = str(error)
        if key in known and taken.pop(key, None) is not None:
            left[key] = "is already set here"
    for key, value in () if dry_run else taken.items():
        goal = (user_file(), None) if is_memo else (project_file(root), root)
        edit_file(goal[0], key, value, goal[1])
    unlike = [name for name in found if is_memo and "imilarity" in name]
    left = dict.fromkeys(found, "has no counterpart") | dict.fromkeys(unlike, _OTHER_MODEL) | left
    report = {"settings": taken, "left": left, "dry_run": dry_run}
    lines = [f"{key} = {one}" for key, one in taken.items()]
    return Result(report, render.describe_value(report | {"settings": lines}))


def describe_import(done: exchange.Imported, hints: list[str], file: str, dry_run: bool) -> Result:
    if done.left_out:
        hints.append("--all-scopes and --personal also import what was left out.")
    if done.added and not dry_run:
        hints.append(f"Undo with `bethink import {shlex.quote(file)} --undo`.")
    note = "" if any(done._replace(format="")) else "Nothing to remember was found here."
    return Result({**done._asdict(), "dry_run": dry_run}, notes=[note], hints=hints)


@operation(
    "Maintenance",
    agents="person",
    examples=(
        "bethink migrate --to postgresql://memory@db.example/memory",
        "bethink migrate --database postgresql://memory@db.example/memory --to ~/memory.db",
        "bethink migrate --to /mnt/larger/memory.db --json",
    ),
)
def migrate(
    console: Console,
    to: Annotated[
        str | None,
        Arg("a path, or postgresql://USER@HOST/NAME; empty or begun before", metavar="DATABASE"),
    ] = None,
) -> Result:
    """Move everything into another database, SQLite or PostgreSQL.

    Copies ids, history, relations, vectors, sources, conversations and purged hashes from the database of the settings or of
    --database, and compares both by number and digest. Can be stopped at any time; the same command continues. The source does not
    change; `bethink config database` switches to the new one.
    """
    if not to:
        raise UsageError("Missing destination.", "bethink migrate --to DATABASE")
    console.check_database()
    config, place = console.load_settings(), console.find_project()
    wanted = config._replace(database=to)
    origin, goal = (mask_password(locate_database(one, place)) for one in (config, wanted))
    if goal == origin:
        raise UsageError(f"The memories are already in {goal}.", "Name another database with --to.")
    with (
        closing(open_store(config, place)) as source,
        closing(open_store(wanted, place)) as target,
        Bar(console, "memories") as bar,
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
    """Join folders whose projects moved into a team's database to the projects there."""
    for key, name, path in source.items("scopes"):
        found = projects.find(Path(path)) if path and Path(path).is_dir() else None
        if found and found.confirmed and found.scope == key and name:
            with suppress(OSError):  # then `bethink join` does it
                projects.join(found, found.identity, name)


@operation(
    "Maintenance",
    agents="person",
    opens="make",
    examples=(
        "bethink sync --with https://memory.example --as shop",
        "bethink sync --with postgresql://memory@db.example/memory --as shop",
        "bethink config team https://memory.example && bethink sync",
    ),
)
def sync(
    console: Console,
    memory: Bethink,
    team: Annotated[
        str | None,
        Arg("the team's server or database; default: the setting `team`", aliases=("with",)),
    ] = None,
    name: Annotated[
        str | None,
        Arg("the team's name for this project; needed once", aliases=("as",)),
    ] = None,
    personal: Annotated[
        bool, Arg("also your personal memories, for a team of your own machines")
    ] = False,
    accept_removals: Annotated[bool, Arg("even if one side purged most of what both had")] = False,
) -> Result:
    """Exchange a project's memories with a team's database or server.

    Changes of both sides are merged field by field; the later change wins, and the other stays in the history. Forgotten and purged
    memories go on both sides. Conversations and documents stay where they are. Can be stopped at any time; the next sync continues.
    """
    team = team or memory.config.team
    if not team:
        raise UsageError(
            "No team is set.",
            "bethink sync --with https://memory.example --as NAME, or bethink config team …",
        )
    known = name_in_team(console, memory, name)
    # Scope here → scope there, and its name for people.
    scopes = {memory.scope: (team_scope(known), known)}
    if console.container:
        inside = container_name(console.container)
        there = team_scope(known).replace("project:", "container:", 1)
        scopes = {memory.scope: (f"{there}/{inside}", f"{known}/{inside}")}
    if personal:
        scopes[PERSONAL] = (PERSONAL, "personal")
    reports = []
    with open_peer(console, memory, team, known) as peer_of:
        for here, (there, label) in scopes.items():
            last = f"sync:{mask_password(team)} {here} {there}"
            mine = StorePeer(memory.store, here, memory.actor, memory.clock)
            run = Sync(mine, peer_of(there), label, accept_removals)
            report, now = run.run(load_shared(memory.store, last))
            save_shared(memory.store, last, now)
            reports.append(report)
    value: Json = {name: sum(getattr(one, name) for one in reports) for name in SYNCED}
    value["conflicts"] = [
        {"id": id, "fields": names} for one in reports for id, names in one.conflicts
    ]
    value["left"] = [id for one in reports for id in one.left]
    hints = [hint for name, hint in SYNC_HINTS.items() if value[name]]
    return Result(value, notes=["" if any(value.values()) else "already in sync"], hints=hints)


def name_in_team(console: Console, memory: Bethink, name: str | None) -> str:
    """The team's name for this project. The user gives it once: a folder may have any name."""
    known, wanted = memory.project.team, (name or "").strip()
    if not wanted and not known:
        raise UsageError(
            f"The team's name for {memory.project.name} is not known.",
            f"Give it once: bethink sync --as {shlex.quote(memory.project.name)}",
        )
    if wanted and wanted != known:
        here = projects.find(console.directory)
        with suppress(OSError):  # then the user has to name it again
            projects.join(here, here.identity, wanted)
    return wanted or known


@contextmanager
def open_peer(
    console: Console, memory: Bethink, team: str, name: str
) -> Iterator[Callable[[str], Peer]]:
    """The team's side of each scope, on a server or in a database."""
    if team.startswith(("http://", "https://")):
        try:
            yield lambda scope: ServerPeer(team, name, console.container, scope == PERSONAL)
        except _WRONG as error:  # when it is read, or when it is compared with what is here
            raise BethinkError(
                f"{mask_password(team)} sent an invalid answer: {error}.",
                "Is its version older?",
            ) from error
        return
    config = memory.config._replace(database=team)
    used, wanted = (locate_database(one, memory.project) for one in (memory.config, config))
    if wanted == used:
        raise UsageError(
            f"{mask_password(team)} is the database in use here.",
            "Name the team's with --with.",
        )
    with closing(open_store(config, memory.project)) as store:
        yield lambda scope: StorePeer(store, scope, memory.actor, memory.clock)


# A team's server as a sync peer

API = "/api/v1"
_LARGEST_ANSWER = 256 << 20
_PATIENCE = 300.0  # seconds for a request: the server reads a whole project for some
LARGEST_REQUEST = 4 << 20  # bytes: the server reads no more than eight
HASHES, IDS, RECORDS = 5000, 500, 100  # of one request
_WRONG = (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError)
# The token for the server. It is in no setting, because settings are shown.
VARIABLE = "BETHINK_TOKEN"
_HINTS = {
    "key": f"Put a token of that server into {VARIABLE}; `bethink token create` on the server makes one.",
    "missing": "Check the address, that of `bethink serve` without a path, and the project's name there (--as).",
}


class ServerPeer:
    """A server as the far peer of a sync, with one token, which is never shown.

    It knows the project by the team's name. Requests are bounded in time and size. Answers are not checked here: callers catch `WRONG`.
    """

    def __init__(
        self, url: str, name: str, container: str | None = None, personal: bool = False
    ) -> None:
        try:
            address, self._secret = post.address(url, API), post.key((VARIABLE,))
        except ValueError as error:
            raise ConfigError(
                f"The team's server cannot be reached: {error}.",
                f"Give it as https://memory.example, and its token in {VARIABLE}.",
            ) from error
        host = address.hostname or ""
        if address.scheme == "http" and self._secret and not post.is_this_machine(host):
            raise ConfigError(
                f"Without TLS the token for {host} can be read on the way.",
                f"Give it as https://{host}",
            )
        where = {"project": f"team:{name}", "container": container, "personal": personal and "true"}
        query = urlencode({name: value for name, value in where.items() if value})
        self._address = address._replace(query=query)

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

    def _ask(self, operation: str, **body: object) -> Any:
        """Send a request and return the answer."""
        where = self._address._replace(path=f"{self._address.path}/sync/{operation}")
        headers = {"Authorization": f"Bearer {self._secret.value}"} if self._secret else {}
        try:
            return post.send(where, body, headers, self._secret, _PATIENCE, _LARGEST_ANSWER)
        except PostError as error:
            hint = _HINTS.get(error.kind, "Check the address and whether the server runs.")
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
