"""Whether hosts are really connected, proven end to end: what their files say, that it runs, and what came of it so far.

Every step looks at what the host would look at: the entries in its files, not the record of what was written there. Only what
`install` would write is run: what somebody else put there is for people to look at. Nothing is changed; `mend` writes broken entries
anew. Whatever is started here is ended here, with everything it started that is still its own.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from bethink.errors import BethinkError
from bethink.hooks import spool, state
from bethink.hosts import AGENTS, agent, edit, install
from bethink.hosts.place import (
    NAME,
    HostFile,
    InstallPlace,
    find_plugin,
    is_toml,
    read_settings,
    why_ignored,
)
from bethink.text import textfile

HOOK_SECONDS = 8.0
SERVER_SECONDS = 25.0
RECENT = 24 * 3600.0  # a failure older than that is history
PATIENCE = 600.0  # seconds after which transcripts that wait are a problem
LONGEST_SHOWN = 200  # characters of a command
# Harmless: no session, so that nothing is noted; a greeting, for which nothing is looked up.
PROBES: dict[str, dict[str, str]] = {
    "session-start": {"source": "startup"},
    "prompt": {"prompt": "hello", "source": "user"},
    "stop": {},
}
# What a client says to an MCP server to learn its tools.
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bethink-doctor", "version": "1"},
}
ASKED = (
    {"id": 1, "method": "initialize", "params": HELLO},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list", "params": {}},
)


class DoctorFinding(NamedTuple):
    check: str
    ok: bool
    message: str
    fix: str = ""


@dataclass
class Connection:
    """What the files of one host say about us."""

    host: str
    place: InstallPlace
    paths: list[Path] = field(default_factory=list)  # that mention us
    hooks: list[str] = field(default_factory=list)  # events with a hook as `install` writes it
    missing: list[str] = field(default_factory=list)  # events without one
    server: bool = False  # whether the MCP server is there as `install` writes it
    environment: dict[str, str] = field(default_factory=dict)  # that it is started with
    strange: list[str] = field(default_factory=list)  # start Bethink, but not as `install` would
    problems: list[str] = field(default_factory=list)
    unreadable: bool = False  # one of the files, which only its owner can mend
    parts: tuple[str, ...] = ()  # that `install` put there
    plugin: str = ""  # that connects it, in place of entries

    @property
    def files(self) -> str:
        return ", ".join(map(str, self.paths))

    @property
    def mending(self) -> str:
        """The command that puts it right."""
        if self.plugin:
            return (
                "uv tool install 'bethink[mcp]', which the plugin finds on PATH or in ~/.local/bin"
            )
        return f"bethink install --{self.host}"

    def find(self, name: str, ok: bool, message: str, fix: str = "") -> DoctorFinding:
        fix = fix or ("" if ok else self.mending)
        return DoctorFinding(f"{self.host} {name}", ok, message, fix)


# Looking


def find_connections(place: InstallPlace) -> Iterator[Connection]:
    """Every host that the record or its own files say is connected."""
    records: Mapping[str, install.InstalledFile] = {}
    with suppress(BethinkError):
        records = install.load_records()
    for host in AGENTS:
        known = {path: one for path, one in records.items() if host in one.hosts}
        if one := find_connection(host, place, known):
            yield one


def find_connection(
    host: str, place: InstallPlace, known: Mapping[str, install.InstalledFile]
) -> Connection | None:
    """How a host is connected: by entries, in files that the record may know, or by our plugin."""
    about, one = agent(host).AGENT, Connection(host, place)
    hooks = about.find_folder(place) / about.hooks
    with suppress(BethinkError):
        # The MCP server answers prompts where the settings say so.
        one.place = place = place._replace(warm=edit.PROMPT_TOOL in (textfile.read(hooks) or ""))
    for target in about.list_files(place, ("mcp", "hooks")):
        try:
            if (text := textfile.read(target.path.resolve())) is not None:
                _look_into(one, target, text)
        except (BethinkError, OSError) as error:
            one.problems.append(f"{target.path}: {error}")
            one.unreadable = True
    entered = {Path(path) for path, record in known.items() if not record.whole}
    gone = sorted(entered.difference(one.paths))
    if one.paths or (known and (one.problems or gone)):
        # A file of several parts says so by what is in it.
        there = {"hooks": one.hooks or one.missing, "mcp": one.server}
        parts = (
            *(record.part for record in known.values()),
            *(name for name in there if there[name]),
        )
        one.parts = tuple(dict.fromkeys(filter(None, parts)))
        one.problems += [f"{path} no longer has what `install` put there." for path in gone]
        return one
    plugin = find_plugin(about, place)
    return connect_by_plugin(host, place, plugin) if plugin else None


def connect_by_plugin(host: str, place: InstallPlace, plugin: str) -> Connection:
    """What our plugin would start: the program that its launcher finds, on PATH or where installers put it."""
    path = place.environment.get("PATH", os.defpath)
    program = shutil.which(NAME, path=f"{path}{os.pathsep}{place.home / '.local' / 'bin'}")
    if program is None:
        gone = f"{NAME}, which the plugin starts, is not there."
        return Connection(host, place, problems=[gone], plugin=plugin)
    place = place._replace(words=(program,))
    return Connection(host, place, hooks=list(PROBES), server=True, plugin=plugin)


def _look_into(one: Connection, target: HostFile, text: str) -> None:
    """Takes note of what of ours is in a file."""
    found = Connection(one.host, one.place)
    document = edit.parse(text, is_toml(target.path)) if target.entries else {}
    for entry in target.entries:
        _compare_entry(found, document, entry)
    if target.text == text:  # opencode's plugin
        found.hooks = list(PROBES)
    elif target.text is not None and (command := install.PLUGIN_COMMAND.search(text)):
        found.strange = [command[0]]
    if not (found.hooks or found.server or found.strange):
        return
    one.paths.append(target.path)
    if why := why_ignored(target, text, AGENTS[one.host]):
        # What the host does not read is not there: it must not pass for hooks that run.
        one.problems.append(why)
        one.unreadable = True
        return
    one.hooks += found.hooks
    one.missing += found.missing if found.hooks else []
    one.strange += found.strange
    if found.server:
        one.server, one.environment = True, found.environment


def _compare_entry(found: Connection, document: Any, entry: edit.HostEntry) -> None:
    """An entry is as it should be if putting it there changes nothing."""
    fresh = deepcopy(document)
    edit.put_entry(fresh, entry, found.host, force=True)
    if fresh != document and edit.is_there(document, entry, found.host):
        found.strange.append(".".join(entry.path))
    elif entry.kind == "hook":
        event = agent(found.host).AGENT.events[entry.path[-1]]
        (found.hooks if fresh == document else found.missing).append(event)
    elif fresh == document:
        server = edit.value_at(document, entry.path)
        told = server.get("env") or server.get("environment") or {}
        found.server, found.environment = True, {name: str(told[name]) for name in told}


# Proving


def examine(found: Sequence[Connection]) -> Iterator[DoctorFinding]:
    """The chain of every host, link by link. The same server is started once, however many hosts have it."""
    answers: dict[Any, tuple[bool, str, str]] = {}
    for one in found:
        yield from _check_entries(one)
        if one.hooks:
            yield _check_hooks(one)
        if one.server:
            key = (one.place.words, *one.environment.items())
            if key not in answers:
                answers[key] = _ask_server(one)
            yield one.find("MCP", *answers[key])
        yield _check_capture(one.host)
        yield from _check_failures(one.host)


def _check_entries(one: Connection) -> Iterator[DoctorFinding]:
    yield one.find("config", *_check_files(one))
    if one.strange:
        entries = " and ".join(one.strange)[:LONGEST_SHOWN]
        message = f"{entries} in {one.files} is not what `install` writes; it was not run"
        fix = f"Look at it; {one.mending} --force writes ours in its place."
        yield one.find("entries", False, message, fix)


def _check_files(one: Connection) -> tuple[bool, str, str]:
    """Whether the files are well, what is to be said of them, and how to mend them where that is special."""
    about = agent(one.host).AGENT
    settings = read_settings(about.find_folder(one.place) / about.hooks)
    if one.problems:
        by_hand = f"Mend that file by hand, then run `{one.mending}`."
        return False, " ".join(one.problems), by_hand if one.unreadable else ""
    if one.missing and not one.strange:
        return False, f"{one.files} has no hook for {', '.join(one.missing)}", ""
    if one.hooks and settings.get("disableAllHooks") is True:
        blocked = "disableAllHooks is set in the settings, so no hook runs."
        return False, blocked, "Switch them on again in the settings of the agent."
    if one.plugin:
        return True, f"the plugin {one.plugin} brings hooks, the MCP server and skills", ""
    if other := find_plugin(about, one.place):
        message = f"{one.files} and the plugin {other} both connect {AGENTS[one.host]}"
        return False, message, f"Keep one: bethink uninstall --{one.host}"
    hooks = f"{len(one.hooks)} hooks" if one.hooks else "no hooks"
    server = "the MCP server" if one.server else "no MCP server"
    return True, f"{hooks} and {server} in {one.files}", ""


def _check_hooks(one: Connection) -> DoctorFinding:
    by_server = ["prompt"] if one.place.warm else []
    times: dict[str, float] = {}
    for event in one.hooks:
        if event not in PROBES or event in by_server:
            continue
        before = _count_failures(one.host, event)
        told = json.dumps({"cwd": "", "hook_event_name": event, **PROBES[event]}).encode()
        words = one.place.hook_words(event, one.host)
        ran = run_command(words, told, HOOK_SECONDS, one.place.environment)
        after = _count_failures(one.host, event)
        fault = _find_fault(ran) or (after[1] if after[0] > before[0] else "")
        if fault:
            return one.find("hooks", False, f"{event}: {fault}")
        times[event] = ran.seconds
    warm = "; prompt by the MCP server" if by_server else ""
    slowest = max(times.values(), default=0.0) * 1000
    return one.find("hooks", True, f"{', '.join(times)} run, the slowest in {slowest:.0f} ms{warm}")


def _count_failures(host: str, event: str) -> tuple[int, str]:
    """How often a hook failed without a word to its host, and how."""
    rows = (row for row in state.read_failures() if (row.host, row.event) == (host, event))
    return next(((row.count, f"it failed inside: {row.message}") for row in rows), (0, ""))


def _find_fault(ran: CommandResult) -> str:
    """What is wrong with how a hook ended."""
    if ran.trouble:
        return ran.trouble
    if ran.code:
        return f"it ended with {ran.code}" + (f": {ran.complaint}" if ran.complaint else "")
    try:
        answer = json.loads(ran.output) if ran.output.strip() else {}
    except ValueError:
        return "its answer is no JSON"
    return "" if isinstance(answer, dict) else "its answer is no JSON object"


def _ask_server(one: Connection) -> tuple[bool, str, str]:
    """Whether the MCP server answers, what is to be said about it, and how to mend it."""
    words = (*one.place.words, "mcp")
    asked = b"".join(json.dumps({"jsonrpc": "2.0", **line}).encode() + b"\n" for line in ASKED)
    environment = {**one.place.environment, **one.environment}
    ran = run_command(words, asked, SERVER_SECONDS, environment)
    tools: Any = []
    with suppress(ValueError, LookupError, TypeError):  # what is no JSON is no protocol
        answers = {line.get("id"): line for line in map(json.loads, ran.output.splitlines())}
        tools = answers[2]["result"]["tools"]
    if tools:
        return True, f"answers with {len(tools)} tools in {ran.seconds:.1f} s", ""
    # Entries can be written anew as often as one likes: without the library no server starts.
    fix = "" if find_spec("mcp") else "pip install 'bethink[mcp]'"
    trouble = ran.trouble or ran.complaint or "it ended without an answer, or has no tools"
    return False, f"{' '.join(words)}: {trouble}", fix


def _check_capture(host: str) -> DoctorFinding:
    at = spool.read_captures().get(host)
    waiting = [entry for entry in spool.list_waiting() if entry.host == host]
    # The turn of a prompt may still go on.
    late = [
        one for one in waiting if one.event != "prompt" and time.time() - one.noted_at > PATIENCE
    ]
    last = "nothing was captured yet"
    if at is not None:
        last = f"last capture {render_span(max(0.0, time.time() - at))} ago"
    elif host == "codex":
        last += "; Codex runs hooks only after you trust them: type /hooks there"
    lag = "nothing waits"
    if waiting:
        lag = "1 transcript waits" if len(waiting) == 1 else f"{len(waiting):,} transcripts wait"
    return DoctorFinding(f"{host} capture", not late, f"{last}; {lag}", "bethink backfill --all")


def _check_failures(host: str) -> Iterator[DoctorFinding]:
    for row in state.read_failures():
        if row.host == host:
            ago = time.time() - row.last
            times = "once" if row.count == 1 else f"{row.count:,} times"
            message = f"{row.event} failed {times}, last {render_span(ago)} ago: {row.message}"
            fix = "bethink doctor --fix, when the rest is well, forgets them"
            yield DoctorFinding(f"{host} failures", ago > RECENT, message, fix)


def render_span(seconds: float) -> str:
    for size, word in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {word}s"
    return f"{seconds:.0f} second{'' if round(seconds) == 1 else 's'}"


def check_pauses() -> Iterator[DoctorFinding]:
    """Pauses that hold now: nothing is wrong with them, and they explain a silence."""
    now = time.time()
    try:
        held = [one for one in state.read_pauses() if one.holds(now)]
    except BethinkError as error:
        yield DoctorFinding("pause", False, error.message, error.hint or "")
        return
    for one in held:
        where = "everywhere" if one.scope == state.EVERYWHERE else f"in {one.name or one.scope}"
        until = "until `bethink resume`"
        if one.until is not None:
            until = f"for another {render_span(one.until - now)}"
        yield DoctorFinding("pause", True, f"memory is paused {where} {until}")


# Mending


def mend(found: Sequence[Connection]) -> Iterator[install.FileOutcome]:
    """Writes the entries of every host anew whose files are not as they should be. Counted failures are forgotten."""
    for one in found:
        if one.strange and not one.parts:
            continue  # somebody else's, for people to look at first
        checks = [*_check_entries(one), *([_check_hooks(one)] if one.hooks else [])]
        if all(check.ok for check in checks) or find_plugin(agent(one.host).AGENT, one.place):
            continue
        yield from install.install([one.host], one.place, one.parts, force=True)
    state.clear_failures()


# Running what a host would run


class CommandResult(NamedTuple):
    """What came of a command."""

    output: bytes = b""
    complaint: str = ""  # its last line on stderr
    code: int | None = None
    seconds: float = 0.0
    trouble: str = ""  # why it could not be heard to the end


def run_command(
    words: Sequence[str], told: bytes, seconds: float, environment: Mapping[str, str]
) -> CommandResult:
    """Runs a command that is told something, and ends it with all that it started."""
    started, pipe, trouble = time.monotonic(), subprocess.PIPE, ""
    try:
        process = subprocess.Popen(
            words,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=dict(environment),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        return CommandResult(trouble=f"it cannot be started: {reason}")
    try:
        output, said = process.communicate(told, seconds)
    except subprocess.TimeoutExpired:
        trouble = f"it did not end or answer within {seconds:g} seconds"
        _kill(process)
        output, said = process.communicate()
    finally:
        _kill(process)
    rows = said.decode("utf-8", "replace").strip().splitlines()
    complaint, took = rows[-1][:300] if rows else "", time.monotonic() - started
    return CommandResult(output, complaint, process.returncode, took, trouble)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
