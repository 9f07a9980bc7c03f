"""`install` and `uninstall`: connects agents and shows every line that changes in their files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bethink import config, project
from bethink.errors import BethinkError, NotFound, UsageError
from bethink.hosts import AGENTS, agent, place
from bethink.hosts import install as installer
from bethink.hosts.install import FileOutcome
from bethink.hosts.place import NAME, InstallPlace, is_passing
from bethink.ingest.redact import redact
from bethink.surface.cli import console
from bethink.surface.cli.console import Result
from bethink.surface.cli.parsing import command
from bethink.surface.layout import many, plain, style

if TYPE_CHECKING:
    from argparse import Namespace


LONGEST = 240  # characters of a line in a difference; some settings are one line
PLANNED = {
    "made": "would make",
    "changed": "would change",
    "restored": "would restore",
    "cleaned": "would clean",
    "removed": "would remove",
}
COLOURS = {"+": "green", "-": "red"}
NO_LIBRARY = (
    "The MCP server would not start: it needs the library mcp, which is not installed.",
    "pip install 'bethink[mcp]' and repeat it; --no-mcp connects hooks and skills alone.",
)
HOST_OPTIONS = (
    "\n".join(f"--{host}  {name}" for host, name in AGENTS.items())
    + """
    --all              all of these
    --project [DIR]    for one project, in files that can be shared with it
    --dry-run          show what would change; change nothing
    """
)


@command(
    "install",
    f"""
    {HOST_OPTIONS}
    --user         for you, in every project (default)
    --no-mcp       do not register the MCP server
    --no-hooks     do not add hooks
    --no-skills    do not add skills
    --warm         let the running MCP server answer Claude Code's prompt hook
    --force        also replace an MCP server named bethink that something else put there
    """,
)
def install(args: Namespace) -> Result:
    """Connect agents to this memory: register the MCP server, add hooks that brief them and note what was said, add skills.
    Without a name, those that are found here. Their files keep comments, order and everybody else's entries; each is backed up
    first, and every changed line is shown. Safe to repeat: what is there is brought up to date.

    Examples:
      bethink install
      bethink install --claude --codex --dry-run
      bethink install --all --no-hooks
      bethink install --cursor --project
    """
    from importlib.util import find_spec

    where, asked = find_place(args), asked_hosts(args)
    chosen = asked or [host for host in AGENTS if installer.is_here(host, where)]
    if not chosen:
        raise NotFound(
            "None of the agents that can be connected was found here.",
            "Name one: `bethink install --claude`.",
        )
    if not asked:
        console.note(args, f"found: {', '.join(AGENTS[host] for host in chosen)}")
    parts = [part for part in installer.PARTS if not getattr(args, f"no_{part}")]
    if args.warm and "mcp" not in parts:
        raise UsageError(
            "--warm needs the MCP server that --no-mcp leaves out.", "Leave one of them out."
        )
    if "mcp" in parts and find_spec("mcp") is None:
        raise BethinkError(*NO_LIBRARY)
    notes = command_notes(where)
    with installer.Files(args.dry_run) as files:
        for host in list(chosen):
            if plugin := installer.plugin_of(host, where):
                chosen.remove(host)
                notes.append(
                    f"{AGENTS[host]} has the plugin {plugin}, which does all of this; nothing was added. "
                    "Remove one before you add the other."
                )
        if "hooks" in parts:
            notes += installer.doubled_hooks(files.records, chosen, str(where.root or ""))
        outcomes = list(installer.install(files, chosen, where, parts, args.force))
    done = {outcome.host for outcome in outcomes if outcome.status in ("made", "changed")}
    notes += [note for host in chosen if host in done for note in agent(host).notes(where)]
    return outcome_result(
        args, outcomes, notes, "`bethink doctor` proves that it works." if done else ""
    )


@command(
    "uninstall",
    f"""
    {HOST_OPTIONS}
    --user         only what is for you, in every project
    --force        also remove entries of Bethink that `install` did not make
    """,
)
def uninstall(args: Namespace) -> Result:
    """Disconnect agents. A file that nobody changed since gets its old bytes back; from others only what `install` added is
    taken out. What it made and is empty then is removed. Without a name, all agents; without --user or --project, everywhere.

    Examples:
      bethink uninstall
      bethink uninstall --codex --dry-run
      bethink uninstall --all --project
    """

    where = find_place(args)
    chosen = asked_hosts(args) or list(AGENTS)
    roots = None if not args.user and args.project is None else [str(where.root or "")]
    with installer.Files(args.dry_run) as files:
        outcomes = list(installer.uninstall(files, chosen, roots))
        outcomes += installer.find_strays(files, chosen, where, args.force)
    if not outcomes:
        console.note(args, "Nothing was installed.")
    return outcome_result(args, outcomes, [])


def connect_found(args: Namespace, hosts: Sequence[str]) -> None:
    """What `init` does after a yes: `install` for the user, with all its parts."""
    from argparse import Namespace

    chosen = {host: host in hosts for host in AGENTS}
    off = "all dry_run warm force no_mcp no_hooks no_skills".split()
    options = dict.fromkeys(off, False) | chosen | {"user": True, "project": None}
    console.present(args, install(Namespace(**{**vars(args), **options})))


def asked_hosts(args: Namespace) -> list[str]:
    return [host for host in AGENTS if args.all or getattr(args, host)]


def user_place() -> InstallPlace:

    return place.InstallPlace(Path.home(), os.environ, None, place.running_command())


def find_place(args: Namespace) -> InstallPlace:
    """For whom and with what command hosts are connected."""

    if args.user and args.project is not None:
        raise UsageError("Give --user or --project, not both.", "bethink install --project")
    where = user_place()._replace(warm=getattr(args, "warm", False))
    if args.project is not None:
        start = Path(args.project or ".").expanduser()
        if not start.is_dir():
            raise NotFound(f"There is no directory {start}.", "Give a directory of the project.")
        root = project.find(start).worktree
        if root == Path.home():
            raise UsageError(
                f"{root} holds everything of yours; it is not a project.", "bethink install --user"
            )
        where = where._replace(root=root, words=place.portable_command())
    settings = config.load(where.root, {"database": args.database})
    return where._replace(tool_hooks=settings.tool_hooks)


def command_notes(where: InstallPlace) -> list[str]:
    """What is to be said about the command that the entries name."""

    notes, program = [], where.words[0]
    if is_passing(program):
        notes.append(
            f"{program} is in a place that is cleared now and then; `uv tool install bethink` gives a lasting one."
        )
    if where.root is not None and program != NAME:
        notes.append(
            f"The project's files now name {program}, which others may not have. Put `bethink` on your PATH and repeat it."
        )
    return notes


# The report


def outcome_result(
    args: Namespace, outcomes: Sequence[FileOutcome], notes: list[str], following: str = ""
) -> Result:
    if args.dry_run and outcomes:
        following = "Nothing was changed. Without --dry-run it is done."
    records = [
        {
            "host": one.host,
            "part": one.part,
            "path": str(one.path),
            "status": one.status,
            "reasons": list(one.reasons),
            "backup": one.backup,
            "diff": printable_diff(one.diff) if one.part != "skills" else "",
        }
        for one in outcomes
    ]
    return Result(
        {"files": records, "notes": notes, "dry_run": args.dry_run},
        lambda: render_outcomes(outcomes, PLANNED if args.dry_run else {}),
        hints=[*notes, following] if following else notes,
        code=1 if any(outcome.status == "failed" for outcome in outcomes) else 0,
    )


def render_outcomes(outcomes: Sequence[FileOutcome], words: dict[str, str]) -> Iterator[str]:
    """Every file with its changed lines, by host; skills only as how many."""
    host = ""
    for outcome in outcomes:
        if outcome.host != host:
            host = outcome.host
            yield style(AGENTS[host], "bold")
            skills = [one for one in outcomes if one.host == host and one.part == "skills"]
            for status in dict.fromkeys(one.status for one in skills):
                paths = [one.path.parent.parent for one in skills if one.status == status]
                folder = plain(os.path.commonpath(paths))
                yield f"  {words.get(status, status):<14}{many(len(paths), 'skill')} in {folder}"
        if outcome.part != "skills":
            status = words.get(outcome.status, outcome.status)
            yield f"  {status:<14}{plain(str(outcome.path))}"
            for line in printable_diff(outcome.diff).splitlines():
                yield style(f"    {line}", COLOURS.get(line[:1], "dim"))
        if outcome.status in ("kept", "failed") or outcome.part != "skills":
            yield from (f"    {plain(reason)}" for reason in outcome.reasons)


def printable_diff(diff: str) -> str:
    """A difference as it may be printed: the lines around a change may hold a key, or go on without end."""
    if not diff:
        return ""

    lines = (line if len(line) <= LONGEST else f"{line[:LONGEST]}…" for line in diff.splitlines())
    return plain(redact("\n".join(lines)).text)
