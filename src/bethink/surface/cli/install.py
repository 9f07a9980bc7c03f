"""`install` and `uninstall`: connects agents and shows every line that changes in their files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bethink.errors import BethinkError, NotFound, UsageError
from bethink.surface.cli import output
from bethink.surface.cli.parsing import Command

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from bethink.install.connect import Outcome
    from bethink.install.host import Place
    from bethink.install.record import Record

NAMES = {
    "claude": "Claude Code",
    "codex": "Codex",
    "opencode": "opencode",
    "copilot": "Copilot CLI",
    "gemini": "Gemini CLI",
    "cursor": "Cursor",
}
PLANNED = {
    "made": "would make",
    "changed": "would change",
    "restored": "would restore",
    "cleaned": "would clean",
    "removed": "would remove",
}
LONGEST = 240  # characters of a line in a difference; some settings are one line


def host_options(parser: ArgumentParser, user: str) -> None:
    for host, name in NAMES.items():
        parser.add_argument(f"--{host}", action="store_true", help=name)
    parser.add_argument("--all", action="store_true", help="all of these")
    parser.add_argument("--user", action="store_true", help=user)
    parser.add_argument(
        "--project",
        nargs="?",
        const=".",
        metavar="DIR",
        help="for one project, in files that can be shared with it",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would change; change nothing"
    )


def install_options(parser: ArgumentParser) -> None:
    host_options(parser, "for you, in every project (default)")
    parser.add_argument("--no-mcp", action="store_true", help="do not register the MCP server")
    parser.add_argument("--no-hooks", action="store_true", help="do not add hooks")
    parser.add_argument("--no-skills", action="store_true", help="do not add skills")
    parser.add_argument(
        "--warm",
        action="store_true",
        help="let the running MCP server answer Claude Code's prompt hook",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="also replace an MCP server named bethink that something else put there",
    )


def uninstall_options(parser: ArgumentParser) -> None:
    host_options(parser, "only what is for you, in every project")
    parser.add_argument(
        "--force",
        action="store_true",
        help="also remove entries of Bethink that `install` did not make",
    )


def install(args: Namespace) -> int:
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

    from bethink.install import connect, host

    place = placed(args)
    chosen = asked(args) or [one for one in host.HOSTS if host.found(one, place)]
    if not chosen:
        raise NotFound(
            "None of the agents that can be connected was found here.",
            "Name one: `bethink install --claude`.",
        )
    if not asked(args):
        output.note(args, f"found: {', '.join(NAMES[one] for one in chosen)}")
    parts = [part for part in connect.PARTS if not getattr(args, f"no_{part}")]
    if args.warm and "mcp" not in parts:
        raise UsageError(
            "--warm needs the MCP server that --no-mcp leaves out.", "Leave one of them out."
        )
    if "mcp" in parts and find_spec("mcp") is None:
        raise BethinkError(
            "The MCP server would not start: it needs the library mcp, which is not installed.",
            "pip install 'bethink[mcp]' and repeat it; --no-mcp connects hooks and skills alone.",
        )
    notes = warnings(place)
    with connect.Files(args.dry_run) as files:
        plugins = {one: plugin for one in chosen if (plugin := host.plugin(one, place))}
        notes += [has_plugin(one, plugin) for one, plugin in plugins.items()]
        chosen = [one for one in chosen if one not in plugins]
        notes += doubled(files.records, chosen, place) if "hooks" in parts else []
        outcomes = list(connect.install(files, chosen, place, parts, args.force))
    done = {outcome.host for outcome in outcomes if outcome.status in ("made", "changed")}
    notes += [note for one in chosen if one in done for note in host.module(one).notes(place)]
    return show(args, outcomes, notes, "bethink doctor" if done else "")


def connect_found(args: Namespace, hosts: Sequence[str]) -> None:
    """What `init` does after a yes: `install` for the user, with all its parts."""
    from argparse import Namespace

    chosen = {host: host in hosts for host in NAMES}
    rest = {
        "all": False,
        "user": True,
        "project": None,
        "dry_run": False,
        "warm": False,
        "force": False,
    }
    parts = {"no_mcp": False, "no_hooks": False, "no_skills": False}
    install(Namespace(**{**vars(args), **chosen, **rest, **parts}))


def uninstall(args: Namespace) -> int:
    """Disconnect agents. A file that nobody changed since gets its old bytes back; from others only what `install` added is
    taken out. What it made and is empty then is removed. Without a name, all agents; without --user or --project, everywhere.

    Examples:
      bethink uninstall
      bethink uninstall --codex --dry-run
      bethink uninstall --all --project
    """
    from bethink.install import connect, host

    place = placed(args)
    chosen = asked(args) or list(host.HOSTS)
    roots = None if not args.user and args.project is None else [str(place.root or "")]
    with connect.Files(args.dry_run) as files:
        outcomes = list(connect.uninstall(files, chosen, roots))
        outcomes += connect.strays(files, chosen, place, args.force)
    if not outcomes:
        output.note(args, "Nothing was installed.")
    return show(args, outcomes, [])


def asked(args: Namespace) -> list[str]:
    return [host for host in NAMES if args.all or getattr(args, host)]


def user_place() -> Place:
    from bethink.install import command
    from bethink.install.host import Place

    return Place(Path.home(), os.environ, None, command.running())


def placed(args: Namespace) -> Place:
    """For whom and with what command hosts are connected."""
    from bethink import config, project
    from bethink.install import command
    from bethink.install.host import Place

    if args.user and args.project is not None:
        raise UsageError("Give --user or --project, not both.", "bethink install --project")
    root = None
    if args.project is not None:
        start = Path(args.project).expanduser()
        if not start.is_dir():
            raise NotFound(f"There is no directory {start}.", "Give a directory of the project.")
        root = project.find(start).worktree
        if root == Path.home():
            raise UsageError(
                f"{root} holds everything of yours; it is not a project.", "bethink install --user"
            )
    settings = config.load(root, {"database": args.database})
    words = command.portable() if root is not None else command.running()
    return Place(
        Path.home(), os.environ, root, words, settings.tool_hooks, getattr(args, "warm", False)
    )


def warnings(place: Place) -> list[str]:
    from bethink.install import command

    found = []
    if command.passing(place.words[0]):
        found.append(
            f"{place.words[0]} is in a place that is cleared now and then; `uv tool install bethink` gives a lasting one."
        )
    if place.root is not None and place.words[0] != command.NAME:
        found.append(
            f"The project's files now name {place.words[0]}, which others may not have. Put `bethink` on your PATH and repeat it."
        )
    return found


def has_plugin(host: str, plugin: str) -> str:
    return f"{NAMES[host]} has the plugin {plugin}, which does all of this; nothing was added. Remove one before you add the other."


def doubled(records: Mapping[str, Record], hosts: Sequence[str], place: Place) -> list[str]:
    """Hosts that are connected for the user and get hooks of a project as well, or the other way round."""
    here, wanted = str(place.root or ""), "" if place.root is not None else None
    found = []
    for host in hosts:
        others = {
            one.root
            for one in records.values()
            if host in one.hosts and any(kind == "hook" for kind, _ in one.hosts[host])
        } - {here}
        for root in sorted(others) if wanted is None else sorted(others & {wanted}):
            where = f"in {root}" if root else "for you everywhere"
            found.append(
                f"{NAMES[host]} is connected {where}, too: where both hold, every hook runs twice."
            )
    return found


# The report


def show(
    args: Namespace, outcomes: Sequence[Outcome], notes: list[str], following: str = ""
) -> int:
    output.show(args, value(args, outcomes, notes), lambda: written(args, outcomes))
    for note in notes:
        output.hint(args, note)
    if args.dry_run and outcomes:
        output.hint(args, "Nothing was changed. Without --dry-run it is done.")
    elif following:
        output.hint(args, f"`{following}` proves that it works.")
    return 1 if any(outcome.status == "failed" for outcome in outcomes) else 0


def value(args: Namespace, outcomes: Sequence[Outcome], notes: list[str]) -> dict[str, Any]:
    return {
        "files": [
            {
                "host": one.host,
                "part": one.part,
                "path": str(one.path),
                "status": one.status,
                "reasons": list(one.reasons),
                "backup": one.backup,
                "diff": shown(one.diff) if one.part != "skills" else "",
            }
            for one in outcomes
        ],
        "notes": notes,
        "dry_run": args.dry_run,
    }


def written(args: Namespace, outcomes: Sequence[Outcome]) -> None:
    host = ""
    for outcome in outcomes:
        if outcome.host != host:
            host = outcome.host
            output.out(output.style(NAMES[host], "bold"))
            for status, paths in skills(outcomes, host).items():
                output.out(
                    f"  {worded(args, status):<14}{output.many(len(paths), 'skill')} in {output.plain(str(common(paths)))}"
                )
        if outcome.part != "skills":
            output.out(f"  {worded(args, outcome.status):<14}{output.plain(str(outcome.path))}")
            for line in shown(outcome.diff).splitlines():
                output.out(
                    output.style(
                        f"    {line}",
                        "green" if line[:1] == "+" else "red" if line[:1] == "-" else "dim",
                    )
                )
        for reason in (
            outcome.reasons
            if outcome.status in ("kept", "failed") or outcome.part != "skills"
            else ()
        ):
            output.out(f"    {output.plain(reason)}")


def worded(args: Namespace, status: str) -> str:
    return PLANNED.get(status, status) if args.dry_run else status


def skills(outcomes: Sequence[Outcome], host: str) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for one in outcomes:
        if one.host == host and one.part == "skills":
            found.setdefault(one.status, []).append(one.path)
    return found


def common(paths: Sequence[Path]) -> Path:
    return Path(os.path.commonpath([path.parent.parent for path in paths]))


def shown(diff: str) -> str:
    """A difference as it may be printed: the lines around a change may hold a key, or go on without end."""
    if not diff:
        return ""
    from bethink.ingest.redact import redact

    lines = (line if len(line) <= LONGEST else f"{line[:LONGEST]}…" for line in diff.splitlines())
    return output.plain(redact("\n".join(lines)).text)


COMMANDS = {
    "install": Command(install, install_options),
    "uninstall": Command(uninstall, uninstall_options),
}
