"""Whether hosts are really connected, proven end to end: what their files say, that it runs, and what came of it so far.

Every step looks at what the host would look at: the entries in its files, not the record of what was written there. Only what
`install` would write is run: a project's files are whoever's who wrote the repository, and what somebody put into their own is for them
to look at. Nothing is changed; `mend` writes broken entries anew. Whatever is started here is ended here, with everything it started
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
    HostFile,
    InstallPlace,
    parse_settings,
    shell_line,
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


class Check(NamedTuple):
    host: str
    name: str
    ok: bool
    message: str
    fix: str = ""


@dataclass
class Connection:
    """What the files of one host say about us, for the user or for a project."""

    host: str
    place: InstallPlace
    paths: list[Path] = field(default_factory=list)  # that mention us
    hooks: list[str] = field(default_factory=list)  # events with a hook as `install` writes it
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
    def missing(self) -> list[str]:
        """Events without a hook, where others have one."""
        wanted = agent(self.host).EVENTS.values() if self.hooks else ()
        return [event for event in wanted if event not in self.hooks]

    @property
    def mending(self) -> str:
        """The command that puts it right."""
        if self.plugin:
            return (
                "uv tool install 'bethink[mcp]', which the plugin finds on PATH or in ~/.local/bin"
            )
        return f"bethink install --{self.host}" + (" --project" if self.place.root else "")

    def check(self, name: str, ok: bool, message: str, fix: str = "") -> Check:
        return Check(self.host, name, ok, message, fix or ("" if ok else self.mending))


# Looking


def find_connections(places: Sequence[InstallPlace]) -> Iterator[Connection]:
    """Every host that the record or its own files say is connected, for the user and for this project."""
    try:
        records = install.load_records()
    except BethinkError:
        records = {}
    for place in places:
        for host in AGENTS:
            known = {
                Path(path): record.hosts[host]
                for path, record in records.items()
                if host in record.hosts and record.root == str(place.root or "")
            }
            if one := find_connection(host, place, known):
                yield one


def find_connection(
    host: str, place: InstallPlace, known: Mapping[Path, tuple[edit.Key, ...]]
) -> Connection | None:
    """How a host is connected: by entries, whose keys the record gives for each file, or by our plugin."""
    one = Connection(host, place)
    for target in install.merge_targets(agent(host).targets(place)):
        try:
            text = textfile.read(target.path.resolve())
            if text is not None and target.part != "skills":
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
    plugin = install.plugin_of(host, place) if place.root is None else ""
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


def _look_into(found: Connection, target: HostFile, text: str) -> None:
    """Takes note of what of ours is in a file: as `install` would write it, or strange."""
    seen = Connection(found.host, found.place)
    if target.text == text:  # opencode's plugin
        seen.hooks = list(PROBES)
    elif target.text is not None and (command := install.PLUGIN_COMMAND.search(text)):
        seen.strange = [command[0]]
    document = parse_settings(target.path, text) if target.text is None else {}
    for entry in target.entries:
        value = edit.value_at(document, entry.path)
        if entry.kind == "hook":
            _look_at_hooks(seen, value, edit.handlers_of(entry.value)[0])
        elif edit.is_our_server(value):
            _look_at_server(seen, value, edit.server_words(entry.value))
    if not (seen.hooks or seen.server or seen.strange):
        return
    found.paths.append(target.path)
    if why := why_ignored(target, text, AGENTS[found.host]):
        # What the host does not read is not there: it must not pass for hooks that run.
        found.problems.append(why)
        found.unreadable = True
        return
    found.hooks += seen.hooks
    found.strange += seen.strange
    if seen.server:
        found.server, found.environment = True, seen.environment
    found.place = found.place._replace(warm=found.place.warm or seen.place.warm)


def _look_at_hooks(seen: Connection, listed: Any, wanted: dict[str, Any]) -> None:
    elements = listed if isinstance(listed, list) else []
    for handler in (one for element in elements for one in edit.handlers_of(element)):
        event, whose = edit.hook_of(handler) or ("", "")
        if whose != seen.host:
            continue
        lines = edit.command_lines(handler)
        if not lines:  # the MCP server answers it
            seen.place = seen.place._replace(warm=True)
        if not lines or all(handler.get(key) == wanted.get(key) for key in edit.RUN):
            seen.hooks.append(event)
        else:
            seen.strange.append(lines[0])


def _look_at_server(seen: Connection, server: Any, wanted: tuple[str, ...]) -> None:
    told, words = server.get("env") or server.get("environment"), edit.server_words(server)
    pairs = told.items() if isinstance(told, dict) else ()
    variables = {str(name): str(value) for name, value in pairs}
    if words == wanted and not (variables and seen.place.root):
        seen.server, seen.environment = True, variables
        return
    shown = [f"{name}={value}" for name, value in variables.items()]
    seen.strange.append(" ".join([*shown, shell_line(words)]))


# Proving


def examine(found: Sequence[Connection]) -> Iterator[Check]:
    """The chain of every host, link by link. The same server is started once, however many hosts have it."""
    answers: dict[Any, Check] = {}
    for one in found:
        yield from _check_entries(one)
        if one.hooks:
            yield _check_hooks(one)
        if one.server:
            key = (one.place.words, one.place.warm, *one.environment.items())
            if key not in answers:
                answers[key] = _check_server(one)
            yield answers[key]._replace(host=one.host)
    for host in dict.fromkeys(one.host for one in found):
        yield _check_capture(host)
        yield from _check_failures(host)


def _check_entries(one: Connection) -> Iterator[Check]:
    yield _check_files(one)
    if one.strange:
        more = f" and {len(one.strange) - 1} more" if len(one.strange) > 1 else ""
        command = " ".join(one.strange[0].split())[:LONGEST_SHOWN]
        message = f"`{command}`{more} in {one.files} is not what `install` writes; it was not run"
        fix = f"Look at it; {one.mending} --force writes ours in its place."
        yield one.check("entries", False, message, fix)


def _check_files(one: Connection) -> Check:
    blocked = getattr(agent(one.host), "why_blocked", lambda _: "")(one.place) if one.hooks else ""
    other = "" if one.plugin else install.plugin_of(one.host, one.place)
    if one.problems:
        by_hand = f"Mend that file by hand, then run `{one.mending}`."
        mend = by_hand if one.unreadable else one.mending
        return one.check("config", False, " ".join(one.problems), mend)
    if one.missing and not one.strange and not one.plugin:
        return one.check("config", False, f"{one.files} has no hook for {', '.join(one.missing)}")
    if blocked:
        fix = "Switch them on again in the settings of the agent."
        return one.check("config", False, blocked, fix)
    if one.plugin:
        brings = f"the plugin {one.plugin} brings hooks, the MCP server and skills"
        return one.check("config", True, brings)
    if other:
        message = f"{one.files} and the plugin {other} both connect {AGENTS[one.host]}"
        return one.check("config", False, message, f"Keep one: bethink uninstall --{one.host}")
    hooks = f"{len(one.hooks)} hooks" if one.hooks else "no hooks"
    server = "the MCP server" if one.server else "no MCP server"
    return one.check("config", True, f"{hooks} and {server} in {one.files}")


def _check_hooks(one: Connection) -> Check:
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
            return one.check("hooks", False, f"{event}: {fault}")
        times[event] = ran.seconds
    warm = "; prompt by the MCP server" if by_server else ""
    slowest = max(times.values(), default=0.0) * 1000
    return one.check(
        "hooks", True, f"{', '.join(times)} run, the slowest in {slowest:.0f} ms{warm}"
    )


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


def _check_server(one: Connection) -> Check:
    environment, words = {**one.place.environment, **one.environment}, (*one.place.words, "mcp")
    talk = partial(_list_tools, tool=edit.PROMPT_TOOL if one.place.warm else "")
    ran = run_command(words, SERVER_SECONDS, environment, talk)
    if not isinstance(ran.answer, list):
        # Entries can be written anew as often as one likes: without the library no server starts.
        fix = one.mending if find_spec("mcp") else "pip install 'bethink[mcp]'"
        trouble = ran.trouble or ran.answer or "it ended without an answer"
        return one.check("MCP", False, f"{' '.join(words)}: {trouble}", fix)
    if not ran.answer:
        return one.check("MCP", False, f"{' '.join(words)} has no tools")
    return one.check("MCP", True, f"answers with {len(ran.answer)} tools in {ran.seconds:.1f} s")


def _check_capture(host: str) -> Check:
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
    return Check(host, "capture", not late, f"{last}; {lag}", "bethink backfill --all")


def _check_failures(host: str) -> Iterator[Check]:
    for row in state.read_failures():
        if row.host == host:
            ago = time.time() - row.last
            times = "once" if row.count == 1 else f"{row.count:,} times"
            message = f"{row.event} failed {times}, last {render_span(ago)} ago: {row.message}"
            fix = "bethink doctor --fix, when the rest is well, forgets them"
            yield Check(host, "failures", ago > RECENT, message, fix)


def render_span(seconds: float) -> str:
    for size, word in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {word}s"
    return f"{seconds:.0f} second{'' if round(seconds) == 1 else 's'}"


def check_pauses() -> Iterator[Check]:
    """Pauses that hold now: nothing is wrong with them, and they explain a silence."""
    now = time.time()
    try:
        held = [one for one in state.read_pauses() if one.holds(now)]
    except BethinkError as error:
        yield Check("", "pause", False, error.message, error.hint or "")
        return
    for one in held:
        where = "everywhere" if one.scope == state.EVERYWHERE else f"in {one.name or one.scope}"
        until = "until `bethink resume`" if one.until is None else ""
        until = until or f"for another {render_span((one.until or now) - now)}"
        yield Check("", "pause", True, f"memory is paused {where} {until}")


# Mending


def mend(found: Sequence[Connection]) -> Iterator[install.FileOutcome]:
    """Writes the entries of every host anew whose files are not as they should be. Counted failures are forgotten."""
    for one in found:
        if one.strange and not one.parts:
            continue  # somebody else's, for people to look at first
        checks = [*_check_entries(one), *([_check_hooks(one)] if one.hooks else [])]
        if all(check.ok for check in checks) or install.plugin_of(one.host, one.place):
            continue
        there = {"hooks": one.hooks, "mcp": one.server}
        parts = [part for part in install.PARTS if there.get(part) or part in one.parts]
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
