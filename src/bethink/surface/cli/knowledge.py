"""`init`, `index`, `map`, `analyze` and `backfill`: what a project knows about itself, and what was said about it, become memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bethink import config
from bethink.errors import NotFound, UsageError
from bethink.features import conversations, knowledge
from bethink.features.knowledge import FileStep, PartReport
from bethink.hosts.install import AGENTS, is_here, record_file
from bethink.project import read_pauses
from bethink.surface.cli import connect, console
from bethink.surface.cli.console import Bar, Result, directory, open_memory
from bethink.surface.operations import sync_record
from bethink.surface.render import brief, describe_value, many, one_line, pick
from bethink.text import check_choice, split_lists
from bethink.text.when import moment

if TYPE_CHECKING:
    from types import SimpleNamespace as Namespace

    from bethink.api import Bethink
    from bethink.config import Config
    from bethink.ingest.sync import Synced
    from bethink.project import Project


def existing_path(path: str) -> Path:
    found = Path(path).expanduser()
    if not found.exists():
        raise NotFound(f"There is nothing at {path}.", "Check the path.")
    return found


def run_sync(
    args: Namespace, label: str, sync: Callable[..., Synced], *given: Any, **how: Any
) -> Result:
    """Brings sources in step, tells how far it is, and then what changed."""
    with Bar(args, label, "files") as bar:
        bar(0)
        return synced_result(sync(*given, progress=bar, **how))


def synced_result(synced: Synced) -> Result:
    found = synced.sources or synced.vanished or synced.skipped
    notes = [] if found else ["Nothing to remember was found here."]
    return Result(sync_record(synced), notes=notes, warnings=synced.hints)


def index(args: Namespace, memory: Bethink) -> Result:
    if not knowledge.folders(memory):
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
    if args.path and args.all:
        raise UsageError("Give a path or --all, not both.", "bethink backfill --all")
    since = moment(args.since, memory.clock()) if args.since else None
    path = Path(args.path).expanduser() if args.path else None
    if path or args.all:
        found = conversations.find(path, args.host, since)
    else:
        found = [conversations.find_newest(memory, args.host, since)]
        path = found[0][1]
        more = "this project's newest conversation; `bethink backfill --all` reads all there are"
        console.note(args, f"reading {path}, {more}")
    paused = [one.name or "everywhere" for one in read_pauses() if one.holds(time.time())]
    if paused:
        console.warn(
            args,
            f"Memory is paused ({', '.join(paused)}): what was said meanwhile is passed over, but what a transcript gives"
            " no time for is read. `bethink resume` ends the pause.",
        )
    done, embed = conversations.Indexed(), not args.no_embed
    with Bar(args, "reading transcripts", "files") as bar:
        for number, (reader, file) in enumerate(found):
            bar(number, len(found), f"reading {one_line(file.name, 40)}")
            named = (
                path == file
            )  # of the one file that was asked for, what is wrong with it is an error
            read = conversations.backfill(memory, [(reader, file)], embed=embed, strict=named)
            done = done.plus(read)
    value = {
        "transcripts": len(found),
        "file": str(found[0][1]) if len(found) == 1 else None,
        "new": done.transcripts,
        **pick(done, "unchanged lines turns repeated ideas"),
        "known_ideas": done.known,
        "topics": done.topics,
        "sessions": len(done.sessions),
        "skipped": dict(sorted(done.skipped.items(), key=lambda row: -row[1])),
        "failed": [{"file": file, "reason": reason} for file, reason in done.failed],
    }
    return Result(value, hints=memory.hints)


# Setting a project up in one step

LABELS = {"analyze": "analyzing", "index": "indexing", "map": "mapping"}
ASK = '"how are the tests run?"'
TELL = '"what you know about this project"'
DONE_WORDS = {"make": "made", "extend": "extended", "keep": "kept", "fail": "failed"}


def init(args: Namespace) -> int:
    if args.directory and args.project:
        raise UsageError("Give DIRECTORY or --project, not both.", "bethink init ~/code/shop")
    agents = [check_choice("known agent", name, list(AGENTS)) for name in split_lists(args.agent)]
    start = Path(args.directory).expanduser() if args.directory else directory(args) or Path.cwd()
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
    notes = find_notes(project, database)
    connected = connect.connect_hosts(args, agents) if agents and not stopped else Result()
    value = {
        "project": {
            "name": project.name,
            "root": str(project.root),
            "worktree": str(project.worktree),
        },
        "database": database,
        "local": database == str(project.local_database),
        "files": list(map(file_record, steps)),
        "parts": [part_record(part) for part in taken if part.part],
        "notes": notes,
        "memories": number,
        "hints": list(memory.hints),
        "next": [f"bethink {next_step(number)}", "bethink doctor"],
        "stopped": stopped,
        **({"agents": connected.value} if connected.value else {}),
    }
    lines = [*describe_value(brief_init(value)), *connected.lines]
    hints = [*notes, *connected.hints]
    console.present(args, Result(value, lines, warnings=memory.hints, hints=hints))
    if stopped:
        console.talk("stopped; `bethink init` goes on from here")
        return 130
    if not agents:
        offer_install(args)
    return connected.code or int(any("fail" in one[1] for one in (*steps, *taken)))


def next_step(memories: int) -> str:
    return f"search {ASK}" if memories else f"add {TELL}"


def file_record(step: FileStep) -> dict[str, Any]:
    return leave_out_empty(path=str(step.path), status=DONE_WORDS[step.action], reason=step.reason)


def part_record(part: PartReport) -> dict[str, Any]:
    numbers = sync_record(part.synced) if part.synced else {}
    return leave_out_empty(**pick(part, "part status reason hint")) | numbers


def leave_out_empty(**fields: str | None) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}


def brief_init(value: Mapping[str, Any]) -> dict[str, Any]:
    """What was done, for reading: files by what became of them, a line for each part."""
    project = value["project"]
    told: dict[str, Any] = {"project": f"{project['name']} {project['root']}"}
    told["database"] = value["database"]
    files: dict[str, list[str]] = {}
    for one in value["files"]:
        place = os.path.relpath(one["path"], project["worktree"])
        why = f" ({one['reason']})" if "reason" in one else ""
        files.setdefault(one["status"], []).append(place + why)
    if "kept" in files:
        files["kept"] = [many(len(files["kept"]), "file")]
    told |= {
        status: ", ".join(places) for status, places in files.items()
    }  # every one that was written
    for part in value["parts"]:
        more = {name: found for name, found in part.items() if name not in ("part", "status")}
        told[part["part"]] = f"{part['status']} {brief(more)}"
    ready = f"{many(value['memories'], 'memory')} can be searched"
    return {**told, "ready": ready, "next": value["next"]}


def take_parts(
    args: Namespace, memory: Bethink, project: Project, settings: Config, steps: list[FileStep]
) -> list[PartReport]:
    """Makes the files, noting each in `steps`, and reads the parts of the project, as far as it gets."""
    taken: list[PartReport] = []
    part = ""
    try:
        steps.extend(map(knowledge.apply, knowledge.plan(project, settings, local=args.local)))
        list_documentation(args, project, settings)
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


def offer_install(args: Namespace) -> None:
    """Connecting agents is the next step, where none is connected yet: asked at a terminal, otherwise said."""
    if record_file().exists():
        return
    place = connect.find_place()
    found = {host: one.title for host, one in AGENTS.items() if is_here(host, place)}
    if not found or args.format != "text" or args.quiet or not console.has_terminal():
        console.hint(
            args, "`bethink install` connects your agents, so that they remember by themselves."
        )
        return
    question = f"Connect {' and '.join(found.values())} to this memory? Every change is shown, and `bethink uninstall` takes it back."
    if console.says_yes(question):
        console.present(args, connect.connect_hosts(args, list(found)))


def list_documentation(args: Namespace, project: Project, settings: Config) -> None:
    """Says which folders are read beside those that the setting names, before they are."""
    shown = [
        f"{name} ({many(number, 'document')})"
        for name, number in knowledge.count_documents(project, settings).items()
        if name not in settings.knowledge
    ]
    if shown and not args.skip_index:
        console.note(
            args,
            f"read as knowledge, too: {', '.join(shown)}; the setting `knowledge` names others",
        )


def find_notes(project: Project, database: str) -> list[str]:
    """Why a database that lies in the project is not the one that is used."""
    if database == str(project.local_database) or not knowledge.has_foreign_database(project):
        return []
    foreign = f"{project.local_database} is not used: it may have come with the project."
    return [f"{foreign} `bethink init --local` says more."]
