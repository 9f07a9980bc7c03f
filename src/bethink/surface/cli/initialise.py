"""`init`: sets a project up in one step and reports what was made, kept and found."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bethink.errors import UsageError
from bethink.surface.cli import output
from bethink.surface.cli.parsing import Command
from bethink.surface.cli.progress import Bar
from bethink.surface.cli.session import directory, opened

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from bethink.api import Bethink
    from bethink.config import Config
    from bethink.features.initialise import Options, Ready, Step, Taken
    from bethink.project import Project

STOPPED = "stopped; `bethink init` goes on from here"
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
    directory: Path
    database: str
    local: bool
    steps: list[Step]
    taken: list[Taken]
    notes: list[str]
    ready: Ready | None = None  # None for a dry run, or where it was stopped before
    dry: bool = False
    stopped: bool = False


def init_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "directory",
        nargs="?",
        metavar="PATH",
        help="a directory of the project (default: the current one)",
    )
    parser.add_argument(
        "--local", action="store_true", help="give the project a database of its own, in .bethink/"
    )
    parser.add_argument(
        "--skip-analyze", action="store_true", help="do not look for commands, routes, decisions"
    )
    parser.add_argument(
        "--skip-index", action="store_true", help="do not read the knowledge folders"
    )
    parser.add_argument("--skip-map", action="store_true", help="do not map the source code")
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be made and read; change nothing"
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="write templates anew that nobody filled; take over a database that is here",
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
    from bethink import config
    from bethink.features import initialise

    if args.directory and args.project:
        raise UsageError("Give PATH or --project, not both.", "bethink init ~/code/shop")
    start = Path(args.directory).expanduser() if args.directory else directory(args) or Path.cwd()
    project = initialise.project_at(start)
    args.project = str(start)
    settings = config.load(project.root, {"database": args.database})
    options = initialise.Options(args.local, args.force)
    if args.local:
        initialise.check_local(project, settings, options)
    report = (
        dry(args, project, settings, options)
        if args.dry_run
        else made(args, project, settings, options)
    )
    report = report._replace(directory=start.resolve())
    output.show(args, value(report), lambda: written(args, report))
    for note in report.notes:
        output.hint(args, note)
    if report.stopped:
        output.talk(STOPPED)
        return 130
    if not report.dry:
        offer(args)
    return (
        1
        if any(step.action == "fail" for step in report.steps)
        or any(taken.status == "failed" for taken in report.taken)
        else 0
    )


def offer(args: Namespace) -> None:
    """Connecting agents is the next step, where none is connected yet: asked at a terminal, otherwise said."""
    from bethink.install import host, record
    from bethink.surface.cli import install

    if record.path().exists():
        return
    place = install.user_place()
    found = [one for one in host.HOSTS if host.found(one, place)]
    if (
        not found
        or args.format != "text"
        or args.quiet
        or sys.stdin is None
        or not sys.stdin.isatty()
    ):
        output.hint(
            args, "`bethink install` connects your agents, so that they remember by themselves."
        )
        return
    names = [install.NAMES[one] for one in found]
    listed = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    sys.stdout.flush()
    sys.stderr.write(
        f"Connect {listed} to this memory? Every change is shown, and `bethink uninstall` takes it back. [y/N] "
    )
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        install.connect_found(args, found)


def dry(args: Namespace, project: Project, settings: Config, options: Options) -> Report:
    """What `made` would do, found out without touching anything, the database included."""
    from bethink import config
    from bethink.features import initialise
    from bethink.features.initialise import Step, Taken

    local = not settings.database and (
        args.local or (project.local_database.exists() and config.trusts(project.root))
    )
    steps = initialise.plan(project, settings, options)
    if args.local and not project.local_database.exists():
        steps.append(Step(project.local_database, "make"))
    taken = []
    for part in initialise.PARTS:
        if getattr(args, f"skip_{part}"):
            taken.append(Taken(part, "skipped", reason=f"--skip-{part}"))
        else:
            number = initialise.would_take(project, settings, part)
            taken.append(
                Taken(part, "planned", reason=f"would look at {output.many(number, 'file')}")
            )
    database = config.masked(settings.database) or str(
        project.local_database if local else config.data_directory() / "memory.db"
    )
    return Report(
        project,
        project.root,
        database,
        local,
        steps,
        taken,
        notes(args, project, settings, local),
        dry=True,
    )


def made(args: Namespace, project: Project, settings: Config, options: Options) -> Report:
    """Does everything, as far as it gets. The database is opened first: without it, nothing is worth making."""
    from bethink.features import initialise

    own = initialise.make_local(project, settings) if args.local else []
    with opened(args, make=True) as memory:
        path = str(getattr(memory.store, "path", memory.config.database))
        report = Report(
            project, project.root, path, path == str(project.local_database), [*own], [], []
        )
        try:
            for step in initialise.plan(project, settings, options):
                report.steps.append(initialise.apply(step))
            for part in initialise.PARTS:
                report.taken.append(took(args, memory, part))
                if report.taken[-1].status == "stopped":
                    break
            report = report._replace(
                ready=initialise.ready(memory),
                stopped=any(taken.status == "stopped" for taken in report.taken),
            )
        except KeyboardInterrupt:
            report = report._replace(stopped=True)
    report.notes.extend(notes(args, project, settings, report.local))
    if any(step.action == "make" for step in own[1:]) and (left := initialise.left_behind(project)):
        report.notes.append(
            f"{output.many(left, 'memory', 'memories')} of this project stay in your own database; they are not seen from here."
        )
    return report


def took(args: Namespace, memory: Bethink, part: str) -> Taken:
    from bethink.features import initialise
    from bethink.features.initialise import Taken

    if getattr(args, f"skip_{part}"):
        return Taken(part, "skipped", reason=f"--skip-{part}")
    try:
        with Bar(args, LABELS[part], lambda passages: f"{passages:,.0f} passages") as bar:
            return initialise.take(memory, part, lambda done, sources: bar(done))
    except KeyboardInterrupt:
        return Taken(part, "stopped", reason="stopped; what was read is kept")


def notes(args: Namespace, project: Project, settings: Config, local: bool) -> list[str]:
    from bethink.features import initialise

    found = []
    unread = {} if args.skip_index else initialise.unread(project, settings)
    if unread:
        import shlex

        folders = " and ".join(
            f"{name} ({output.many(number, 'Markdown file')})" for name, number in unread.items()
        )
        names = shlex.quote(",".join((*settings.knowledge, *unread)))
        found.append(
            f"Not read: {folders}. `bethink config knowledge {names} --project-file && bethink index` makes that knowledge."
        )
    if not local and initialise.foreign_database(project):
        found.append(
            f"{project.local_database} is not used: it may have come with the project. `bethink init --local` says more."
        )
    if not initialise.in_git(project):
        found.append(
            f"{project.name} is not in git; its .bethink folder is what marks it as a project."
        )
    return found


# The report


def value(report: Report) -> dict[str, Any]:
    from bethink.surface.cli.take import shown

    words = PLANNED if report.dry else DONE
    found: dict[str, Any] = {
        "project": {
            "name": report.project.name,
            "root": str(report.project.root),
            "worktree": str(report.project.worktree),
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
            | (shown(taken.synced) if taken.synced else {})
            for taken in report.taken
        ],
        "notes": report.notes,
    }
    if report.ready:
        found |= {
            "memories": report.ready.memories,
            "hints": list(report.ready.hints),
            "next": following(report),
        }
    return found | {"dry_run": report.dry, "stopped": report.stopped}


def following(report: Report) -> list[str]:
    """What to type next."""
    example = report.ready.example if report.ready else ""
    found = (
        [f'bethink search "{example}"']
        if example
        else ['bethink add "what you know about this project"']
    )
    return [*found, "bethink doctor"]


def written(args: Namespace, report: Report) -> None:
    project = report.project
    output.out(f"project     {output.one_line(project.name)}  {output.plain(str(project.root))}")
    if report.directory not in (project.root, project.worktree):
        output.out(
            f"            {output.plain(str(report.directory))} is a part of it; the whole project is set up"
        )
    if project.worktree != project.root:
        output.out(
            f"            knowledge and code are those of the worktree {output.plain(str(project.worktree))}"
        )
    output.out(
        f"database    {output.plain(report.database)}"
        + ("  (the project's own)" if report.local else "")
    )
    for line in file_lines(report):
        output.out(line)
    for taken in report.taken:
        output.out(f"{taken.part:<12}{part_line(taken)}")
    skipped(report)
    ending(args, report)


def file_lines(report: Report) -> list[str]:
    words = PLANNED if report.dry else DONE
    lines = []
    for action, word in words.items():
        steps = [step for step in report.steps if step.action == action]
        if action == "keep" and len(steps) > 2:
            lines.append(f"{word:<12}{output.many(len(steps), 'file')} as they are")
            continue
        for step in steps:
            backup = (
                f"; the old one is {step.backup.name}"
                if step.backup and action == "replace"
                else ""
            )
            reason = f": {output.one_line(step.reason)}" if step.reason else ""
            lines.append(
                f"{word:<12}{output.plain(near(report.project, step.path))}{backup}{reason}"
            )
            word = ""
    return lines


def near(project: Project, path: Path) -> str:
    """A path as short as it can be told."""
    for folder in (project.worktree, project.root):
        if path.is_relative_to(folder):
            return str(path.relative_to(folder))
    return str(path)


def part_line(taken: Taken) -> str:
    if taken.synced is None:
        status = "" if taken.status in ("planned", "stopped") else f"{taken.status}: "
        return output.one_line(status + taken.reason + (f" ({taken.hint})" if taken.hint else ""))
    synced = taken.synced
    sources = output.many(synced.sources, "source")
    if not synced.sources:
        return "nothing to read" + (
            f"; {output.many(len(synced.skipped), 'file')} skipped" if synced.skipped else ""
        )
    if synced.unchanged == synced.sources and not synced.vanished:
        return f"{sources}, all unchanged"
    counts = (
        (synced.unchanged, "unchanged"),
        (len(synced.vanished), "vanished"),
        (len(synced.skipped), "skipped"),
    )
    rest = "".join(f", {number:,} {word}" for number, word in counts if number)
    retired = (
        f"; {output.many(synced.memories_retired, 'memory', 'memories')} retired"
        if synced.memories_retired
        else ""
    )
    return f"{output.many(synced.memories_added, 'new memory', 'new memories')} from {sources}{rest}{retired}"


def skipped(report: Report) -> None:
    from bethink.surface.cli.take import SHOWN

    found = [one for taken in report.taken if taken.synced for one in taken.synced.skipped]
    for one in found[:SHOWN]:
        output.talk(f"skipped {output.one_line(one.uri, 100)}: {output.one_line(one.reason, 200)}")
    if len(found) > SHOWN:
        output.talk(f"and {len(found) - SHOWN:,} more; --json lists all")


def ending(args: Namespace, report: Report) -> None:
    if report.ready is None:
        if report.dry:
            output.hint(args, "Nothing was changed. Without --dry-run it is done.")
        return
    for hint in report.ready.hints:
        output.warn(args, hint)
    number = report.ready.memories
    output.out(
        f"ready       {output.many(number, 'memory', 'memories')} can be searched"
        if number
        else "ready       nothing to search yet"
    )
    output.out("next")
    for command in following(report):
        output.out(f"            {command}")


COMMANDS = {"init": Command(init, init_options)}
