"""`init`, `index`, `map`, `analyze` and `backfill`: import documents, code and conversations."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

from bethink import config
from bethink.agents.install import is_here, list_connectable, record_file
from bethink.api import Bethink
from bethink.app.cli import connect
from bethink.app.cli.console import Bar, Console, Result, ask_yes_no, has_terminal
from bethink.app.operation import Arg, Members, Parameter, operation
from bethink.app.records import sync_record
from bethink.app.render import brief, describe_value, many, one_line, pick
from bethink.errors import NotFound, UsageError
from bethink.features import conversations, knowledge
from bethink.features import share as share_feature
from bethink.features.knowledge import FileStep, PartReport
from bethink.ingest.sync import Synced
from bethink.language.times import moment
from bethink.model import NOTHING, Json, Strings, Values
from bethink.project import SHARED_FOLDER, Project, read_pauses


def run_sync(
    console: Console, label: str, sync: Callable[..., Synced], *values: object, **how: object
) -> Result:
    """Sync sources with memory, show progress, and then what changed."""
    with Bar(console, label, "files", keeps=True) as bar:
        bar(0)
        return synced_result(sync(*values, progress=bar, **how))


def report_shared(console: Console, root: Path, shared: Synced) -> None:
    """Name what changed in the shared folder, and how to vouch for it."""
    number = len(shared.added) + len(shared.changed) + len(shared.moved)
    if number or shared.vanished:
        gone = f", {many(len(shared.vanished), 'file')} gone" if shared.vanished else ""
        console.note(f"read {many(number, 'shared memory')} from {SHARED_FOLDER}{gone}")
    for uri, reason in shared.skipped:
        console.warn(f"{uri} was not read: {reason}.")
    if number and not share_feature.is_accepted(root):
        console.note(
            "They count as documents until `bethink share --accept` takes them as your team's word."
        )
    for hint in shared.hints:
        console.note(hint)


def synced_result(synced: Synced) -> Result:
    found = synced.sources or synced.vanished or synced.skipped
    note = "" if found else "Nothing to remember was found here."
    return Result(sync_record(synced), notes=[note], warnings=synced.hints)


@operation(
    "Import and index",
    agents="append",
    opens="make",
    examples=(
        "bethink index",
        "bethink config knowledge .claude/knowledge,docs && bethink index",
    ),
)
def index(console: Console, memory: Bethink) -> Result:
    """Sync the knowledge folders and the documentation with memory.

    Reads new files, skips unchanged ones, replaces the memories of changed ones and retires those of deleted ones. Reads
    .claude/knowledge, the README and folders such as docs, or what the setting `knowledge` names: Markdown, reStructuredText,
    AsciiDoc and notebooks. Skips files that git ignores or that say `index: false`. Also reads what colleagues shared with `bethink share`.
    """
    root = memory.project.worktree
    shared = share_feature.read_shared(memory) if share_feature.is_used(memory) else None
    if shared:
        report_shared(console, root, shared)
    if not knowledge.find_folders(root, memory.config):
        if shared:
            return synced_result(shared)
        folders = ", ".join(memory.config.knowledge)
        raise NotFound(
            f"None of the knowledge folders of {memory.project.name} exists: {folders}.",
            "`bethink init` creates one; `bethink config knowledge docs` names another.",
        )
    return run_sync(console, "indexing", knowledge.index, memory)


@operation(
    "Import and index",
    agents="append",
    opens="make",
    examples=(
        "bethink map",
        "bethink map --json > repo-map.json",
        'bethink map && bethink search "where are retries handled?"',
    ),
)
def map_(console: Console, memory: Bethink) -> Result:
    """Map the source code, so that a search finds symbols and places.

    Records files, symbols, signatures and comments with their lines. Reads only changed files again. With --json prints the map for
    `bethink import --repo-map` and other tools, and stores nothing.
    """
    if console.format == "json":
        return Result(knowledge.repo_map(memory))
    return run_sync(console, "mapping", knowledge.map_code, memory)


@operation(
    "Import and index",
    agents="append",
    opens="make",
    examples=(
        "bethink analyze",
        "bethink analyze --git",
        "bethink analyze && bethink list --tag command",
    ),
)
def analyze(
    console: Console,
    memory: Bethink,
    git: Annotated[bool, Arg("read the commits instead of the files")] = False,
) -> Result:
    """Find commands, routes and decisions in a project or its history.

    Remembers its purpose, how it is built and tested, its parts, HTTP routes, dependencies and decision records; with --git commits
    that explain a decision, a revert or a pitfall. Each finding cites its line or commit; a later run replaces what changed.
    """
    if git:
        return run_sync(console, "reading commits", knowledge.analyze_history, memory)
    return run_sync(console, "analyzing", knowledge.analyze, memory)


@operation(
    "Import and index",
    agents="append",
    person_with=("trusted",),
    opens="make",
    examples=(
        "bethink backfill",
        "bethink backfill --all",
        "bethink backfill --all --host claude --since 30d",
        "bethink backfill ~/.claude/projects/-home-ada-shop",
        "bethink backfill exported-chat.md --host plain",
    ),
)
def backfill(
    console: Console,
    memory: Bethink,
    path: Annotated[
        str | None,
        Arg(
            "a transcript or a folder of them; default: this project's newest conversation",
            positional=True,
            one_of="what",
        ),
    ] = None,
    all: Annotated[
        bool, Arg("all transcripts that agents keep on this machine", one_of="what")
    ] = False,
    host: Annotated[
        str | None, Arg("only transcripts of this agent: claude, codex …, or plain")
    ] = None,
    since: Annotated[
        str | None, Arg("only transcripts that changed since: 30d, or a date", metavar="TIME")
    ] = None,
    trusted: Annotated[
        bool, Arg("they are your own conversations, wherever the files are")
    ] = False,
    no_embed: Annotated[
        bool, Arg("make no vectors for now; `bethink reindex` makes them later")
    ] = False,
) -> Result:
    """Read earlier conversations from the agents' transcripts.

    Stores turns, topics, and the decisions, problems, solutions and questions in them, each with its line, in the project the
    conversation was held in. A file that no agent on this machine keeps and that is about another project is imported as untrusted
    text. Can be stopped at any time; the next run continues, and reading twice changes nothing.
    """
    start = moment(since, memory.clock()) if since else None
    place = Path(path).expanduser() if path else None
    if place or all:
        found = conversations.find(place, host, start, memory.project.worktree)
    else:
        found = [conversations.find_newest(memory, host, start)]
        place = found[0][1]
        more = "this project's newest conversation; `bethink backfill --all` reads all of them"
        console.note(f"reading {place}, {more}")
    if paused := [one.name or "everywhere" for one in read_pauses() if one.holds(time.time())]:
        console.warn(
            f"Memory is paused ({', '.join(paused)}): turns from the pause are skipped, but turns without a time are read."
            " `bethink resume` ends the pause."
        )
    with Bar(console, "reading transcripts", "files", keeps=True) as bar:

        def watch() -> Iterator[tuple[str, Path]]:
            for number, one in enumerate(found):
                bar(number, len(found), f"reading {one_line(one[1].name, 40)}")
                yield one

        # A fault in the one file that was asked for is an error.
        strict = place in [file for _, file in found]
        done = conversations.backfill(
            memory,
            watch(),
            embed=not no_embed,
            strict=strict,
            trusted=trusted,
            named=place is not None,
        )
    value = {
        "transcripts": len(found),
        "file": str(found[0][1]) if len(found) == 1 else None,
        "new": done.transcripts,
        **pick(done, "unchanged lines turns repeated ideas"),
        "known_ideas": done.known,
        "topics": done.topics,
        "sessions": len(done.sessions),
        "skipped": done.skipped,
        "imported": done.imported,
        "failed": [{"file": file, "reason": reason} for file, reason in done.failed],
    }
    if not found:
        console.warn(_describe_nothing(place, host, start))
    if lost := conversations.count_lost(done.skipped):
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in lost.items())
        console.warn(
            f"Left out, because they could not be read: {reasons}. They may have said something."
        )
    hints = [*memory.hints]
    if done.imported:
        hints.append(
            f"{many(done.imported, 'conversation')} may be someone else's: the file is not in an agent's folder and was not named, or is about"
            f" another project. Imported into {memory.project.name} as untrusted text; use --trusted for your own conversations."
        )
    return Result(value, hints=hints)


def _describe_nothing(place: Path | None, host: str | None, since: object) -> str:
    """Say that there is nothing to read, with the next step."""
    of = f" of {host}" if host else ""
    changed = " that changed since then" if since else ""
    if place is None:
        return (
            f"The agents on this machine keep no transcripts{of}{changed}."
            " Give a file or a folder: `bethink backfill PATH`."
        )
    return (
        f"There are no transcripts{of}{changed} in {place.resolve()}. `bethink backfill --all` reads those that agents keep on this machine;"
        " a file that is not recognised can be named with `--host plain`."
    )


# Setting a project up in one step

_LABELS = {"analyze": "analyzing", "index": "indexing", "map": "mapping"}
_INSTALL = "`bethink install` connects your agents, so that they remember by themselves."


def list_agent_options() -> Sequence[Parameter]:
    """The option that names agents to connect."""
    help = "also connect this agent, as `install` does"
    names = tuple(list_connectable())
    arg = Arg(help, metavar="AGENT", choices=names, aliases=("agent",))
    return [Parameter("agents", "text", True, False, (), arg)]


@operation(
    "Import and index",
    agents="append",
    examples=(
        "bethink init",
        "bethink init ~/code/shop",
        "bethink init --local",
        "bethink init --agent claude,codex",
        "bethink init --skip-map --skip-analyze",
    ),
)
def init(
    console: Console,
    directory: Annotated[
        str | None, Arg("a directory of the project; default: the current one", positional=True)
    ] = None,
    local: Annotated[bool, Arg("give the project its own database, in .bethink/")] = False,
    connected: Annotated[Values, Members(list_agent_options)] = NOTHING,
    skip_analyze: Annotated[bool, Arg("do not look for commands, routes, decisions")] = False,
    skip_index: Annotated[
        bool, Arg("do not read the knowledge folders and the documentation")
    ] = False,
    skip_map: Annotated[bool, Arg("do not map the source code")] = False,
    force: Annotated[bool, Arg("use a database that is already here")] = False,
) -> Result:
    """Set a project up in one step.

    Creates a folder for its knowledge with templates, a settings file and a line in .gitignore; then analyzes the project, indexes
    its knowledge and maps its code. Safe to repeat: existing files are kept, unchanged ones are not read again. Ctrl-C keeps what is
    done, and the next run continues.
    """
    if directory and console.project:
        raise UsageError("DIRECTORY: not allowed with --project.", "bethink init DIRECTORY")
    start = Path(directory or console.directory or ".").expanduser()
    project = knowledge.project_at(start)
    console = console._replace(project=str(start))
    settings = config.load(project.root, {"database": console.database})
    steps: list[FileStep] = []
    if local:
        knowledge.check_local(project, settings, force=force)
        steps += knowledge.make_local(project, settings)
    skipped = {"analyze": skip_analyze, "index": skip_index, "map": skip_map}
    # The database is opened first: without it, nothing is worth making.
    with console.open_memory(make=True) as memory:
        taken = take_parts(console, memory, project, settings, steps, local, skipped)
        number = memory.store.count(memory.filter(scopes=(memory.scope,)))
        database = str(memory.store.path)
    stopped = any(one.status == "stopped" for one in taken)
    names: Strings = connected.get("agents", ())
    agents = Result() if stopped else connect_agents(console, names)
    notes = []
    is_local = database == str(project.local_database)
    if not is_local and knowledge.has_foreign_database(project):
        foreign = f"{project.local_database} is not used: it may have come with the project."
        notes = [f"{foreign} `bethink init --local` says more."]
    begin = (
        'search "how are the tests run?"' if number else 'add "what you know about this project"'
    )
    value = {
        "project": {
            name: str(found) for name, found in pick(project, "name root worktree").items()
        },
        "database": database,
        "local": is_local,
        "files": [
            leave_out_empty(path=str(one.path), status=one.action, reason=one.reason)
            for one in steps
        ],
        "parts": [
            leave_out_empty(**pick(one, "part status reason hint"))
            | (sync_record(one.synced) if one.synced else {})
            for one in taken
            if one.part
        ],
        "notes": notes,
        "memories": number,
        "hints": list(memory.hints),
        "next": [f"bethink {begin}", "bethink doctor"],
        "stopped": stopped,
        **leave_out_empty(agents=agents.value),
    }
    failed = "failed" in [one[1] for one in (*steps, *taken)]
    return Result(
        value,
        [*describe_value(brief_init(value)), *agents.lines],
        notes=["stopped; `bethink init` continues from here" if stopped else ""],
        warnings=memory.hints,
        hints=[*notes, *agents.hints],
        code=130 if stopped else agents.code or int(failed),
    )


def leave_out_empty(**fields: object) -> Json:
    return {name: value for name, value in fields.items() if value}


def brief_init(value: Values) -> Json:
    """The result in a few lines: changed files by their status, and a line for each part."""
    project = value["project"]
    shown = {"project": f"{project['name']} {project['root']}", "database": value["database"]}
    for one in value["files"]:
        place = os.path.relpath(one["path"], project["worktree"])
        why = f" ({one['reason']})" if "reason" in one else ""
        before = shown.get(one["status"])
        shown[one["status"]] = ", ".join(filter(None, [before, place + why]))
    shown.pop("kept", None)
    for part in value["parts"]:
        more = {name: found for name, found in part.items() if name not in ("part", "status")}
        shown[part["part"]] = f"{part['status']} {brief(more)}"
    ready = f"{many(value['memories'], 'memory')} can be searched"
    return {**shown, "ready": ready, "next": value["next"]}


def take_parts(
    console: Console,
    memory: Bethink,
    project: Project,
    settings: config.Config,
    steps: list[FileStep],
    local: bool,
    skipped: dict[str, bool],
) -> list[PartReport]:
    """Create the files, noting each in `steps`, and read the parts of the project until Ctrl-C."""
    taken: list[PartReport] = []
    part = ""
    try:
        steps.extend(knowledge.make_files(project, settings, local=local))
        shown = knowledge.find_documentation(project.worktree, settings)
        if shown and not skipped["index"]:
            others = "the setting `knowledge` names others"
            console.note(f"also read as knowledge: {', '.join(shown)}; {others}")
        for part in knowledge.PARTS:
            if skipped[part]:
                taken.append(PartReport(part, "skipped", reason=f"--skip-{part}"))
                continue
            with Bar(console, _LABELS[part], "files") as bar:
                bar(0)
                taken.append(knowledge.take(memory, part, bar))
    except KeyboardInterrupt:
        taken.append(PartReport(part, "stopped", reason="stopped; what was read is kept"))
    return taken


def connect_agents(console: Console, names: Strings) -> Result:
    """Connect the named agents; without names offer it at a terminal, if none is connected yet."""
    if not names and record_file().exists():
        return Result()
    if not names:
        place = connect.find_place()
        known = list_connectable()
        names = tuple(host for host in known if is_here(host, place))
        if not names or console.format != "text" or console.quiet or not has_terminal():
            return Result(hints=[_INSTALL])
        found = " and ".join(known[host].title for host in names)
        shown = "Every change is shown, and `bethink uninstall` undoes it."
        if not ask_yes_no(f"Connect {found} to this memory? {shown}"):
            return Result()
    return connect.install(Console(format=console.format), dict.fromkeys(names, True))
