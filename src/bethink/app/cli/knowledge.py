"""`init`, `index`, `map`, `analyze` and `backfill`: what a project knows about itself, and what was said about it, become memory."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace as Namespace
from typing import Any

from bethink import config
from bethink.agents.install import is_here, list_connectable, record_file
from bethink.api import Bethink
from bethink.app.asked import sync_record
from bethink.app.cli import connect, console
from bethink.app.cli.console import Bar, Result, directory, open_memory
from bethink.app.render import brief, describe_value, many, one_line, pick
from bethink.errors import NotFound
from bethink.features import conversations, knowledge
from bethink.features.knowledge import FileStep, PartReport
from bethink.ingest.sync import Synced
from bethink.language.times import moment
from bethink.model import Json, Values
from bethink.project import Project, read_pauses


def run_sync(
    args: Namespace, label: str, sync: Callable[..., Synced], *given: Any, **how: Any
) -> Result:
    """Brings sources in step, tells how far it is, and then what changed."""
    with Bar(args, label, "files") as bar:
        bar(0)
        return synced_result(sync(*given, progress=bar, **how))


def synced_result(synced: Synced) -> Result:
    found = synced.sources or synced.vanished or synced.skipped
    note = "" if found else "Nothing to remember was found here."
    return Result(sync_record(synced), notes=[note], warnings=synced.hints)


def index(args: Namespace, memory: Bethink) -> Result:
    if not knowledge.find_folders(memory.project.worktree, memory.config):
        folders = ", ".join(memory.config.knowledge)
        raise NotFound(
            f"None of the knowledge folders of {memory.project.name} exists: {folders}.",
            "`bethink init` makes one; `bethink config knowledge docs` names another.",
        )
    return run_sync(args, "indexing", knowledge.index, memory)


def map_(args: Namespace, memory: Bethink) -> Result:
    if args.format == "json":
        return Result(knowledge.repo_map(memory))
    return run_sync(args, "mapping", knowledge.map_code, memory)


def analyze(args: Namespace, memory: Bethink) -> Result:
    if args.git:
        return run_sync(args, "reading commits", knowledge.analyze_history, memory)
    return run_sync(args, "analyzing", knowledge.analyze, memory)


def backfill(args: Namespace, memory: Bethink) -> Result:
    since = moment(args.since, memory.clock()) if args.since else None
    path = Path(args.path).expanduser() if args.path else None
    if path or args.all:
        found = conversations.find(path, args.host, since)
    else:
        found = [conversations.find_newest(memory, args.host, since)]
        path = found[0][1]
        more = "this project's newest conversation; `bethink backfill --all` reads all there are"
        console.note(args, f"reading {path}, {more}")
    if paused := [one.name or "everywhere" for one in read_pauses() if one.holds(time.time())]:
        console.warn(
            args,
            f"Memory is paused ({', '.join(paused)}): what was said meanwhile is passed over, but what a transcript gives"
            " no time for is read. `bethink resume` ends the pause.",
        )
    with Bar(args, "reading transcripts", "files") as bar:

        def watch() -> Iterator[tuple[str, Path]]:
            for number, one in enumerate(found):
                bar(number, len(found), f"reading {one_line(one[1].name, 40)}")
                yield one

        # Of the one file that was asked for, what is wrong with it is an error.
        strict = path in [file for _, file in found]
        done = conversations.backfill(
            memory, watch(), embed=not args.no_embed, strict=strict, trusted=args.trusted
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
    hints = [*memory.hints]
    if done.imported:
        hints.append(
            f"{many(done.imported, 'conversation')} may be a stranger's: no agent keeps the file here, and it speaks of another project."
            f" It was imported into {memory.project.name} as untrusted text; use --trusted for your own conversations."
        )
    return Result(value, hints=hints)


# Setting a project up in one step

LABELS = {"analyze": "analyzing", "index": "indexing", "map": "mapping"}
INSTALL = "`bethink install` connects your agents, so that they remember by themselves."


def init(args: Namespace) -> Result:
    start = Path(args.directory or directory(args) or ".").expanduser()
    project = knowledge.project_at(start)
    args.project = str(start)
    settings = config.load(project.root, {"database": args.database})
    steps: list[FileStep] = []
    if args.local:
        knowledge.check_local(project, settings, force=args.force)
        steps += knowledge.make_local(project, settings)
    # The database is opened first: without it, nothing is worth making.
    with open_memory(args, make=True) as memory:
        taken = take_parts(args, memory, project, settings, steps)
        number = memory.store.count(memory.filter(scopes=(memory.scope,)))
        database = str(memory.store.path)
    stopped = any(one.status == "stopped" for one in taken)
    connected = Result() if stopped else connect_agents(args)
    local = database == str(project.local_database)
    notes = []
    if not local and knowledge.has_foreign_database(project):
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
        "local": local,
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
        **leave_out_empty(agents=connected.value),
    }
    failed = "failed" in [one[1] for one in (*steps, *taken)]
    return Result(
        value,
        [*describe_value(brief_init(value)), *connected.lines],
        notes=["stopped; `bethink init` goes on from here" if stopped else ""],
        warnings=memory.hints,
        hints=[*notes, *connected.hints],
        code=130 if stopped else connected.code or int(failed),
    )


def leave_out_empty(**fields: Any) -> Json:
    return {name: value for name, value in fields.items() if value}


def brief_init(value: Values) -> Json:
    """What was done, for reading: files that are not as they were, by what became of them; a line for each part."""
    project = value["project"]
    told = {"project": f"{project['name']} {project['root']}", "database": value["database"]}
    for one in value["files"]:
        place = os.path.relpath(one["path"], project["worktree"])
        why = f" ({one['reason']})" if "reason" in one else ""
        before = told.get(one["status"])
        told[one["status"]] = ", ".join(filter(None, [before, place + why]))
    told.pop("kept", None)
    for part in value["parts"]:
        more = {name: found for name, found in part.items() if name not in ("part", "status")}
        told[part["part"]] = f"{part['status']} {brief(more)}"
    ready = f"{many(value['memories'], 'memory')} can be searched"
    return {**told, "ready": ready, "next": value["next"]}


def take_parts(
    args: Namespace,
    memory: Bethink,
    project: Project,
    settings: config.Config,
    steps: list[FileStep],
) -> list[PartReport]:
    """Makes the files, noting each in `steps`, says which documentation is read beside what the setting names, and reads the parts of the
    project, as far as it gets."""
    taken: list[PartReport] = []
    part = ""
    try:
        steps.extend(knowledge.make_files(project, settings, local=args.local))
        shown = knowledge.find_documentation(project.worktree, settings)
        if shown and not args.skip_index:
            others = "the setting `knowledge` names others"
            console.note(args, f"read as knowledge, too: {', '.join(shown)}; {others}")
        for part in knowledge.PARTS:
            if getattr(args, f"skip_{part}"):
                taken.append(PartReport(part, "skipped", reason=f"--skip-{part}"))
                continue
            with Bar(args, LABELS[part], "files") as bar:
                bar(0)
                taken.append(knowledge.take(memory, part, bar))
    except KeyboardInterrupt:
        taken.append(PartReport(part, "stopped", reason="stopped; what was read is kept"))
    return taken


def connect_agents(args: Namespace) -> Result:
    """Connecting agents is the next step, where none is connected yet: those that were named, or asked at a terminal, or else said."""
    agents = args.agent
    if not agents and record_file().exists():
        return Result()
    if not agents:
        place = connect.find_place()
        known = list_connectable()
        agents = [host for host in known if is_here(host, place)]
        if not agents or args.format != "text" or args.quiet or not console.has_terminal():
            return Result(hints=[INSTALL])
        found = " and ".join(known[host].title for host in agents)
        shown = "Every change is shown, and `bethink uninstall` takes it back."
        if not console.says_yes(f"Connect {found} to this memory? {shown}"):
            return Result()
    words = ["--format", args.format, *(f"--{host}" for host in agents)]
    return connect.install(console.parse("install", words))
