"""Whether hosts are really connected, proven end to end: what their files say, that it runs, and what came of it so far.

Every step looks at what the host would look at: the entries in its files, not the record of what was written there. Only what
`install` would write is run: what somebody else put there is for people to look at. Nothing is changed; `mend` writes broken entries anew. Whatever is started here is ended here, with everything it started
that is still its own.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple

from bethink.errors import BethinkError
from bethink.hooks import spool, state
from bethink.hosts import AGENTS, agent, edit, install
from bethink.hosts.place import (
    NAME,
    PARTS,
    HostFile,
    InstallPlace,
    find_plugin,
    parse_settings,
    read_settings,
    why_ignored,
)
from bethink.text import textfile

HOOK_SECONDS = 8.0
SERVER_SECONDS = 25.0
RECENT = 24 * 3600.0  # a failure older than that is history
PATIENCE = 600.0  # seconds after which transcripts that wait are a problem
LONGEST_SHOWN = 200  # characters of a command
MOST = 1 << 20  # bytes of an answer that are looked at
# Harmless: no session, so that nothing is noted; a greeting, for which nothing is looked up.
PROBES: dict[str, dict[str, str]] = {
    "session-start": {"source": "startup"},
    "prompt": {"prompt": "hello", "source": "user"},
    "stop": {},
}


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
        return ", ".join(dict.fromkeys(map(str, self.paths)))

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
    try:
        records = install.load_records()
    except BethinkError:
        records = {}
    for host in AGENTS:
        known = {
            Path(path): record.hosts[host]
            for path, record in records.items()
            if host in record.hosts
        }
        if one := find_connection(host, place, known):
            yield one


def find_connection(
    host: str, place: InstallPlace, known: Mapping[Path, tuple[edit.Key, ...]]
) -> Connection | None:
    """How a host is connected: by entries, whose keys the record gives for each file, or by our plugin."""
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
    entered = {path for path, keys in known.items() if install.WHOLE not in keys}
    gone = sorted(entered.difference(one.paths))
    if one.paths or (known and (one.problems or gone)):
        parts = (install.parts_of(path, keys) for path, keys in known.items())
        one.parts = tuple(dict.fromkeys(part for some in parts for part in some))
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


class Entries(NamedTuple):
    """What of ours a file holds: events that call us, such as do not, entries that are not as they should be, our servers."""

    hooks: list[str]
    missing: list[str]
    strange: list[str]
    servers: list[dict[str, Any]]


def _read_entries(host: str, target: HostFile, text: str) -> Entries:
    """An entry is as it should be if putting it there changes nothing."""
    document = parse_settings(target.path, text) if target.entries else {}
    found = Entries([], [], [], [])
    for entry in target.entries:
        fresh, rest = deepcopy(document), deepcopy(document)
        edit.put_entry(fresh, entry, host, mine=True)
        if fresh != document and edit.take_entry(rest, entry.key, host):
            found.strange.append(".".join(entry.path))
        elif entry.kind == "hook":
            event = agent(host).AGENT.events[entry.path[-1]]
            (found.hooks if fresh == document else found.missing).append(event)
        elif fresh == document:
            found.servers.append(edit.value_at(document, entry.path))
    if target.text == text:  # opencode's plugin
        found.hooks[:] = PROBES
    elif target.text is not None and (command := install.PLUGIN_COMMAND.search(text)):
        found.strange[:] = [command[0]]
    return found


def _look_into(one: Connection, target: HostFile, text: str) -> None:
    """Takes note of what of ours is in a file."""
    found = _read_entries(one.host, target, text)
    if not (found.hooks or found.servers or found.strange):
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
    for server in found.servers:
        told = server.get("env") or server.get("environment") or {}
        one.server, one.environment = True, {name: str(told[name]) for name in told}


# Proving


def examine(found: Sequence[Connection]) -> Iterator[DoctorFinding]:
    """The chain of every host, link by link. The same server is started once, however many hosts have it."""
    answers: dict[Any, tuple[bool, str, str]] = {}
    for one in found:
        yield from _check_entries(one)
        if one.hooks:
            yield _check_hooks(one)
        if one.server:
            key = (one.place.words, one.place.warm, *one.environment.items())
            if key not in answers:
                answers[key] = _ask_server(one)
            yield one.find("MCP", *answers[key])
        yield _check_capture(one.host)
        yield from _check_failures(one.host)


def _check_entries(one: Connection) -> Iterator[DoctorFinding]:
    yield _check_files(one)
    if one.strange:
        entries = " and ".join(one.strange)[:LONGEST_SHOWN]
        message = f"{entries} in {one.files} is not what `install` writes; it was not run"
        fix = f"Look at it; {one.mending} --force writes ours in its place."
        yield one.find("entries", False, message, fix)


def _check_files(one: Connection) -> DoctorFinding:
    about = agent(one.host).AGENT
    settings = read_settings(about.find_folder(one.place) / about.hooks)
    other = "" if one.plugin else find_plugin(about, one.place)
    if one.problems:
        by_hand = f"Mend that file by hand, then run `{one.mending}`."
        mend = by_hand if one.unreadable else one.mending
        return one.find("config", False, " ".join(one.problems), mend)
    if one.missing and not one.strange:
        return one.find("config", False, f"{one.files} has no hook for {', '.join(one.missing)}")
    if one.hooks and settings.get("disableAllHooks") is True:
        blocked = "disableAllHooks is set in the settings, so no hook runs."
        fix = "Switch them on again in the settings of the agent."
        return one.find("config", False, blocked, fix)
    if one.plugin:
        brings = f"the plugin {one.plugin} brings hooks, the MCP server and skills"
        return one.find("config", True, brings)
    if other:
        message = f"{one.files} and the plugin {other} both connect {AGENTS[one.host]}"
        return one.find("config", False, message, f"Keep one: bethink uninstall --{one.host}")
    hooks = f"{len(one.hooks)} hooks" if one.hooks else "no hooks"
    server = "the MCP server" if one.server else "no MCP server"
    return one.find("config", True, f"{hooks} and {server} in {one.files}")


def _check_hooks(one: Connection) -> DoctorFinding:
    try:
        here = str(Path.cwd())
    except OSError:  # removed under us
        here = ""
    by_server = ["prompt"] if one.place.warm else []
    times: dict[str, float] = {}
    for event in one.hooks:
        if event not in PROBES or event in by_server:
            continue
        before = _count_failures(one.host, event)
        told = json.dumps({"cwd": here, "hook_event_name": event, **PROBES[event]}).encode()
        talk = partial(subprocess.Popen.communicate, input=told)
        words = one.place.hook_words(event, one.host)
        ran = run_command(words, HOOK_SECONDS, one.place.environment, talk)
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
    out, err = ran.answer or (b"", b"")
    if ran.code:
        said = _last_line(err)
        return f"it ended with {ran.code}" + (f": {said}" if said else "")
    try:
        answer = json.loads(out[:MOST]) if out.strip() else {}
    except ValueError:
        return "its answer is no JSON"
    return "" if isinstance(answer, dict) else "its answer is no JSON object"


def _ask_server(one: Connection) -> tuple[bool, str, str]:
    """Whether the MCP server answers, what is to be said about it, and how to mend it."""
    environment, words = {**one.place.environment, **one.environment}, (*one.place.words, "mcp")
    talk = partial(_list_tools, tool=edit.PROMPT_TOOL if one.place.warm else "")
    ran = run_command(words, SERVER_SECONDS, environment, talk)
    if isinstance(ran.answer, list) and ran.answer:
        return True, f"answers with {len(ran.answer)} tools in {ran.seconds:.1f} s", ""
    # Entries can be written anew as often as one likes: without the library no server starts.
    fix = "" if find_spec("mcp") else "pip install 'bethink[mcp]'"
    trouble = ran.trouble or ran.answer or "it ended without an answer, or has no tools"
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
        until = "until `bethink resume`" if one.until is None else ""
        until = until or f"for another {render_span((one.until or now) - now)}"
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
        there = {"hooks": one.hooks, "mcp": one.server}
        parts = [part for part in PARTS if there.get(part) or part in one.parts]
        with install.Files() as files:
            yield from install.install(files, [one.host], one.place, parts, force=True)
    state.clear_failures()


# Running what a host would run


class CommandResult(NamedTuple):
    """What came of a command."""

    answer: Any = None
    code: int | None = None
    seconds: float = 0.0
    trouble: str = ""  # why it could not be heard to the end


def run_command(
    words: Sequence[str],
    seconds: float,
    environment: Mapping[str, str],
    talk: Callable[[subprocess.Popen[bytes]], Any],
) -> CommandResult:
    """Starts a command, lets `talk` speak with it, and ends it with all that it started."""
    started, pipe = time.monotonic(), subprocess.PIPE
    try:
        process = subprocess.Popen(
            words,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=dict(environment),
            start_new_session=os.name == "posix",
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        return CommandResult(trouble=f"it cannot be started: {reason}")
    watch = Timer(seconds, _kill, [process])
    watch.start()
    answer = None
    try:
        with suppress(OSError, ValueError):
            answer = talk(process)
        late = not watch.is_alive()
    finally:
        watch.cancel()
        _kill(process)
        with suppress(subprocess.TimeoutExpired, OSError, ValueError):
            process.communicate(timeout=5)
    trouble = f"it did not end or answer within {seconds:g} seconds" if late else ""
    return CommandResult(answer, process.returncode, time.monotonic() - started, trouble)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _last_line(said: bytes) -> str:
    rows = said.decode("utf-8", "replace").strip().splitlines()
    return rows[-1][:300] if rows else ""


def _list_tools(process: subprocess.Popen[bytes], tool: str) -> list[str] | str:
    """The names of an MCP server's tools, or why there are none. `tool` is one that has to answer."""
    client = {"name": "bethink-doctor", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    answer = None
    with suppress(OSError, ValueError):
        if _request(process, "initialize", hello) is not None:
            _send(process, {"method": "notifications/initialized"})
            answer = _request(process, "tools/list", {})
    if answer is None:
        with suppress(subprocess.TimeoutExpired):
            return _last_line(process.communicate(timeout=5)[1])
        return ""
    if tool:
        call = {"name": tool, "arguments": {"prompt": "hello"}}
        if (_request(process, "tools/call", call) or {"isError": True}).get("isError") is True:
            return f"its tool {tool} does not answer"
    return [str(one.get("name")) for one in answer.get("tools", []) if isinstance(one, dict)]


def _send(process: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()


def _request(
    process: subprocess.Popen[bytes], method: str, params: dict[str, Any]
) -> dict[str, Any] | None:
    """The result of a request; what the server says otherwise is passed over."""
    _send(process, {"id": method, "method": method, "params": params})
    assert process.stdout is not None
    while line := process.stdout.readline(MOST):
        message = json.loads(line)  # what is no JSON is no protocol
        if isinstance(message, dict) and message.get("id") == method:
            result = message.get("result")
            return result if isinstance(result, dict) else None
    return None
