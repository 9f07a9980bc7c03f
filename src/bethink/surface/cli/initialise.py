"""`init`: sets a project up in one step and reports what was made, kept and found."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bethink import config
from bethink.errors import UsageError
from bethink.features import initialise
from bethink.features.initialise import FileStep, PartReport
from bethink.hosts import AGENTS
from bethink.hosts.install import is_here, record_file
from bethink.surface.cli import console, install
from bethink.surface.cli.console import Bar, Result, directory, open_memory
from bethink.surface.cli.knowledge import count_words, skipped_lines
from bethink.surface.cli.parsing import command
from bethink.surface.layout import many, one_line
from bethink.surface.operations import sync_record

if TYPE_CHECKING:
    from argparse import Namespace

    from bethink.api import Bethink
    from bethink.config import Config
    from bethink.features.initialise import FileStep, PartReport, Ready
    from bethink.project import Project

LABELS = {"analyze": "analyzing", "index": "indexing", "map": "mapping"}
DONE = {
    "make": "made",
    "replace": "replaced",
    "extend": "extended",
    "keep": "kept",
    "leave": "left alone",
    "fail": "failed",
}
PLANNED = {**DONE, "make": "would make", "replace": "would replace", "extend": "would extend"}


class Report(NamedTuple):
    """Everything there is to tell about one `init`."""

    project: Project
    database: str
    local: bool
    steps: list[FileStep]
    taken: list[PartReport]
    notes: list[str]
    ready: Ready | None = None  # None for a dry run, or where it was stopped before
    dry: bool = False
    stopped: bool = False


@command(
    "init",
    """
    [DIRECTORY]       a directory of the project (default: the current one)
    --local           give the project a database of its own, in .bethink/
    --skip-analyze    do not look for commands, routes, decisions
    --skip-index      do not read the knowledge folders
    --skip-map        do not map the source code
    --dry-run         say what would be made and read; change nothing
    --force           write templates anew that nobody filled; take over a database that is here
    """,
)
def init(args: Namespace) -> int:
    """Set a project up in one step: a folder for its knowledge with templates, a settings file, a line in .gitignore; then
    analyze it, index its knowledge and map its code, so that all of it can be searched. Safe to repeat: what is there is
    kept, what did not change is not read again. Stopped by Ctrl-C it keeps what is done, and the next run goes on. --force
    writes templates anew, keeping the old ones as .bak; files that you filled are never touched.

    Examples:
      bethink init
      bethink init ~/code/shop --dry-run
      bethink init --local
      bethink init --skip-map --skip-analyze
    """
    if args.directory and args.project:
        raise UsageError("Give DIRECTORY or --project, not both.", "bethink init ~/code/shop")
    start = Path(args.directory).expanduser() if args.directory else directory(args) or Path.cwd()
    project = initialise.project_at(start)
    args.project = str(start)
    settings = config.load(project.root, {"database": args.database})
    if args.local:
        initialise.check_local(project, settings, force=args.force)
    set_up = plan_project if args.dry_run else set_up_project
    report = set_up(args, project, settings)
    console.present(args, report_result(report, start.resolve()))
    if report.stopped:
        console.talk("stopped; `bethink init` goes on from here")
        return 130
    if not report.dry:
        offer_install(args)
    failed = [step for step in report.steps if step.action == "fail"]
    return 1 if failed or any(taken.status == "failed" for taken in report.taken) else 0


def offer_install(args: Namespace) -> None:
    """Connecting agents is the next step, where none is connected yet: asked at a terminal, otherwise said."""
    if record_file().exists():
        return
    place = install.user_place()
    found = [host for host in AGENTS if is_here(host, place)]
    terminal = sys.stdin is not None and sys.stdin.isatty()
    if not found or args.format != "text" or args.quiet or not terminal:
        console.hint(
            args, "`bethink install` connects your agents, so that they remember by themselves."
        )
        return
    names = [AGENTS[host] for host in found]
    listed = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    sys.stdout.flush()
    sys.stderr.write(
        f"Connect {listed} to this memory? Every change is shown, and `bethink uninstall` takes it back. [y/N] "
    )
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        install.connect_found(args, found)


def plan_project(args: Namespace, project: Project, settings: Config) -> Report:
    """What `set_up_project` would do, found out without touching anything, the database included."""
    own = project.local_database
    local = not settings.database and (args.local or (own.exists() and config.trusts(project.root)))
    steps = initialise.plan(project, settings, local=args.local, force=args.force)
    if args.local and not own.exists():
        steps.append(FileStep(own, "make"))
    taken = []
    for part in initialise.PARTS:
        if getattr(args, f"skip_{part}"):
            taken.append(PartReport(part, "skipped", reason=f"--skip-{part}"))
            continue
        number = many(initialise.count_files(project, settings, part), "file")
        taken.append(PartReport(part, "planned", reason=f"would look at {number}"))
    usual = own if local else config.data_directory() / "memory.db"
    database = config.masked(settings.database) or str(usual)
    notes = find_notes(args, project, settings, local)
    return Report(project, database, local, steps, taken, notes, dry=True)


def set_up_project(args: Namespace, project: Project, settings: Config) -> Report:
    """Does everything, as far as it gets. The database is opened first: without it, nothing is worth making."""
    own = initialise.make_local(project, settings) if args.local else []
    with open_memory(args, make=True) as memory:
        path = str(getattr(memory.store, "path", memory.config.database))
        report = Report(project, path, path == str(project.local_database), [*own], [], [])
        try:
            for step in initialise.plan(project, settings, local=args.local, force=args.force):
                report.steps.append(initialise.apply(step))
            for part in initialise.PARTS:
                report.taken.append(take_part(args, memory, part))
                if report.taken[-1].status == "stopped":
                    break
            stopped = any(taken.status == "stopped" for taken in report.taken)
            report = report._replace(ready=initialise.examine(memory), stopped=stopped)
        except KeyboardInterrupt:
            report = report._replace(stopped=True)
    report.notes.extend(find_notes(args, project, settings, report.local))
    if any(step.action == "make" for step in own[1:]) and (
        left := initialise.count_left_behind(project)
    ):
        number = many(left, "memory", "memories")
        report.notes.append(
            f"{number} of this project stay in your own database; they are not seen from here."
        )
    return report


def take_part(args: Namespace, memory: Bethink, part: str) -> PartReport:
    if getattr(args, f"skip_{part}"):
        return PartReport(part, "skipped", reason=f"--skip-{part}")
    try:
        with Bar(args, LABELS[part], lambda passages: f"{passages:,.0f} passages") as bar:
            return initialise.take(memory, part, lambda done, sources: bar(done))
    except KeyboardInterrupt:
        return PartReport(part, "stopped", reason="stopped; what was read is kept")


def find_notes(args: Namespace, project: Project, settings: Config, local: bool) -> list[str]:
    notes = []
    unread = {} if args.skip_index else initialise.count_unread(project, settings)
    if unread:
        import shlex

        folders = " and ".join(
            f"{name} ({many(number, 'Markdown file')})" for name, number in unread.items()
        )
        names = shlex.quote(",".join((*settings.knowledge, *unread)))
        notes.append(
            f"Not read: {folders}. `bethink config knowledge {names} --project-file && bethink index` makes that knowledge."
        )
    if not local and initialise.has_foreign_database(project):
        notes.append(
            f"{project.local_database} is not used: it may have come with the project. `bethink init --local` says more."
        )
    if not initialise.is_in_git(project):
        notes.append(
            f"{project.name} is not in git; its .bethink folder is what marks it as a project."
        )
    return notes


# The report


def report_result(report: Report, start: Path) -> Result:
    project, ready = report.project, report.ready
    words = PLANNED if report.dry else DONE
    example = ready.example if ready else ""
    following = f'search "{example}"' if example else 'add "what you know about this project"'
    following_commands = [f"bethink {following}", "bethink doctor"]
    value: dict[str, Any] = {
        "project": {
            "name": project.name,
            "root": str(project.root),
            "worktree": str(project.worktree),
        },
        "database": report.database,
        "local": report.local,
        "files": [
            {"path": str(step.path), "status": words[step.action]}
            | ({"reason": step.reason} if step.reason else {})
            | ({"backup": str(step.backup)} if step.backup and step.action == "replace" else {})
            for step in report.steps
        ],
        "parts": [
            {"part": taken.part, "status": taken.status}
            | ({"reason": taken.reason} if taken.reason else {})
            | ({"hint": taken.hint} if taken.hint else {})
            | (sync_record(taken.synced) if taken.synced else {})
            for taken in report.taken
        ],
        "notes": report.notes,
    }
    if ready:
        value |= {
            "memories": ready.memories,
            "hints": list(ready.hints),
            "next": following_commands,
        }
    value |= {"dry_run": report.dry, "stopped": report.stopped}
    lines = [
        *place_lines(report, start),
        *file_lines(report),
        *(f"{taken.part:<12}{part_line(taken)}" for taken in report.taken),
    ]
    if ready:
        number = many(ready.memories, "memory", "memories")
        found = f"{number} can be searched" if ready.memories else "nothing to search yet"
        lines += [f"ready       {found}", "next"]
        lines += [f"            {one}" for one in following_commands]
    skipped = [one for taken in report.taken if taken.synced for one in taken.synced.skipped]
    nothing = ["Nothing was changed. Without --dry-run it is done."] if report.dry else []
    return Result(
        value,
        lines,
        notes=skipped_lines(skipped),
        warnings=ready.hints if ready else (),
        hints=[*nothing, *report.notes],
    )


def place_lines(report: Report, start: Path) -> list[str]:
    project = report.project
    lines = [f"project     {one_line(project.name)}  {one_line(str(project.root))}"]
    if start not in (project.root, project.worktree):
        whole = "is a part of it; the whole project is set up"
        lines.append(f"            {one_line(str(start))} {whole}")
    if project.worktree != project.root:
        worktree = one_line(str(project.worktree))
        lines.append(f"            knowledge and code are those of the worktree {worktree}")
    own = "  (the project's own)" if report.local else ""
    return [*lines, f"database    {one_line(report.database)}{own}"]


def file_lines(report: Report) -> list[str]:
    lines = []
    for action, word in (PLANNED if report.dry else DONE).items():
        steps = [step for step in report.steps if step.action == action]
        if action == "keep" and len(steps) > 2:
            lines.append(f"{word:<12}{many(len(steps), 'file')} as they are")
            continue
        for step in steps:
            old = step.backup if action == "replace" else None
            backup = f"; the old one is {old.name}" if old else ""
            reason = f": {one_line(step.reason)}" if step.reason else ""
            path = one_line(shortest_path(report.project, step.path))
            lines.append(f"{word:<12}{path}{backup}{reason}")
            word = ""
    return lines


def shortest_path(project: Project, path: Path) -> str:
    for folder in (project.worktree, project.root):
        if path.is_relative_to(folder):
            return str(path.relative_to(folder))
    return str(path)


def part_line(taken: PartReport) -> str:
    synced = taken.synced
    if synced is None:
        status = "" if taken.status in ("planned", "stopped") else f"{taken.status}: "
        return one_line(status + taken.reason + (f" ({taken.hint})" if taken.hint else ""))
    if not synced.sources:
        skipped = f"; {many(len(synced.skipped), 'file')} skipped" if synced.skipped else ""
        return f"nothing to read{skipped}"
    sources = many(synced.sources, "source")
    if synced.unchanged == synced.sources and not synced.vanished:
        return f"{sources}, all unchanged"
    counts = {
        "unchanged": synced.unchanged,
        "vanished": len(synced.vanished),
        "skipped": len(synced.skipped),
    }
    rest = count_words(counts)
    retired = many(synced.memories_retired, "memory", "memories")
    new = many(synced.memories_added, "new memory", "new memories")
    return (
        f"{new} from {sources}"
        + (f", {rest}" if rest else "")
        + (f"; {retired} retired" if synced.memories_retired else "")
    )
