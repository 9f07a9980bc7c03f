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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple

from bethink.errors import BethinkError
from bethink.hooks import spool, state
from bethink.hosts import AGENTS, agent, edit, install
from bethink.hosts.place import NAME, Place, Target, parse_settings, shell_line, why_ignored
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

Command = str | tuple[str, ...]  # a line for the shell, or words; () for a hook of the MCP server


class Check(NamedTuple):
    host: str
    name: str
    ok: bool
    message: str
    fix: str = ""


class Connection(NamedTuple):
    """What the files of one host say about us, for the user or for a project."""

    host: str
    place: Place
    paths: tuple[Path, ...] = ()  # that mention us
    hooks: tuple[tuple[str, Command], ...] = ()  # by event, as `install` writes them
    server: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    strange: tuple[str, ...] = ()  # commands that start Bethink, but not as `install` would
    problems: tuple[str, ...] = ()
    unreadable: bool = False  # one of the files, which only its owner can mend
    missing: tuple[str, ...] = ()  # events without a hook, where others have one
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
        return f"bethink install --{self.host}" + (" --project" if self.place.root else "")

    def check(self, name: str, ok: bool, message: str, fix: str = "") -> Check:
        return Check(self.host, name, ok, message, fix or ("" if ok else self.mending))


# Looking


def find_connections(places: Sequence[Place]) -> Iterator[Connection]:
    """Every host that the record or its own files say is connected, for the user and for this project."""
    try:
        records = install.load_records()
    except BethinkError:
        records = {}
    for place in places:
        root = str(place.root or "")
        for host in AGENTS:
            one = look(host, place)
            ours = {
                Path(path): record.hosts[host]
                for path, record in records.items()
                if host in record.hosts and record.root == root
            }
            entries = [path for path, keys in ours.items() if install.WHOLE not in keys]
            gone = [path for path in entries if path not in one.paths]
            if one.paths or (ours and (one.problems or gone)):
                parts = [
                    part for path, keys in ours.items() for part in install.parts_of(path, keys)
                ]
                lost = [f"{path} no longer has what `install` put there." for path in gone]
                problems = (*one.problems, *lost)
                yield one._replace(problems=problems, parts=tuple(dict.fromkeys(parts)))
            elif place.root is None and (plugin := install.plugin_of(host, place)):
                yield _connected_by_plugin(one, plugin)


def _connected_by_plugin(one: Connection, plugin: str) -> Connection:
    """What our plugin would start: the program that its launcher finds, on PATH or where installers put it."""
    path = one.place.environment.get("PATH", os.defpath)
    program = shutil.which(NAME, path=f"{path}{os.pathsep}{one.place.home / '.local' / 'bin'}")
    one = one._replace(plugin=plugin)
    if program is None:
        return one._replace(problems=(f"{NAME}, which the plugin starts, is not there.",))
    place = one.place._replace(words=(program,))
    return one._replace(hooks=_probe_hooks(place, one.host), server=(program, "mcp"))


def _probe_hooks(place: Place, host: str) -> tuple[tuple[str, Command], ...]:
    return tuple((event, place.hook_words(event, host)) for event in PROBES)


def look(host: str, place: Place) -> Connection:
    found = Connection(host, place)
    for target in install.merge_targets(agent(host).targets(place)):
        if target.part == "skills":
            continue
        try:
            text = textfile.read(target.path.resolve())
            found = _look_into(found, target, text) if text is not None else found
        except (BethinkError, OSError) as error:
            problem = f"{target.path}: {error}"
            found = found._replace(problems=(*found.problems, problem), unreadable=True)
    events = {event for event, _ in found.hooks}
    missing = [event for event in agent(host).EVENTS.values() if event not in events]
    return found._replace(missing=tuple(missing) if events else ())


def _look_into(found: Connection, target: Target, text: str) -> Connection:
    before = found
    if target.text == text:  # opencode's plugin
        found = found._replace(hooks=_probe_hooks(found.place, found.host))
    elif target.text is not None and "const COMMAND" in text:
        command = text.partition("const COMMAND")[2].partition("\n")[0]
        found = found._replace(strange=(*found.strange, command))
    document = parse_settings(target.path, text) if target.text is None else {}
    for entry in target.entries:
        value = edit.value_at(document, entry.path)
        if entry.kind == "hook":
            found = _look_at_hooks(found, value, edit.handlers_of(entry.value)[0])
        elif edit.is_our_server(value):
            found = _look_at_server(found, value, edit.server_words(entry.value))
    if found == before:
        return found
    if why := why_ignored(target, text, AGENTS[found.host]):
        # What the host does not read is not there: it must not pass for hooks that run.
        found = before._replace(problems=(*before.problems, why), unreadable=True)
    return found._replace(paths=(*found.paths, target.path))


def _look_at_hooks(found: Connection, listed: Any, wanted: dict[str, Any]) -> Connection:
    for element in listed if isinstance(listed, list) else []:
        for handler in edit.handlers_of(element):
            event, whose = edit.hook_of(handler) or ("", "")
            if whose != found.host:
                continue
            lines = edit.command_lines(handler)
            by_words = isinstance(handler.get("args"), list)
            command: Command = edit.server_words(handler) if by_words else lines[0] if lines else ()
            same = all(handler.get(key) == wanted.get(key) for key in edit.RUN)
            if same or not command:
                found = found._replace(hooks=(*found.hooks, (event, command)))
            else:
                found = found._replace(strange=(*found.strange, lines[0]))
    return found


def _look_at_server(found: Connection, server: Any, wanted: tuple[str, ...]) -> Connection:
    told, words = server.get("env") or server.get("environment"), edit.server_words(server)
    variables = (
        {str(name): str(value) for name, value in told.items()} if isinstance(told, dict) else {}
    )
    if words == wanted and not (variables and found.place.root):
        return found._replace(server=words, environment=variables)
    shown = [f"{name}={value}" for name, value in variables.items()]
    return found._replace(strange=(*found.strange, " ".join([*shown, shell_line(words)])))


# Proving


def examine(found: Sequence[Connection]) -> Iterator[Check]:
    """The chain of every host, link by link. The same server is started once, however many hosts have it."""
    answers: dict[Any, Check] = {}
    for one in found:
        yield _check_files(one)
        yield from _check_strange(one)
        if one.hooks:
            yield _check_hooks(one)
        if one.server:
            tool = edit.PROMPT_TOOL if any(not command for _, command in one.hooks) else ""
            key = (one.server, tool, *one.environment.items())
            if key not in answers:
                answers[key] = _check_server(one, tool)
            yield answers[key]._replace(host=one.host)
    for host in dict.fromkeys(one.host for one in found):
        yield _check_capture(host)
        yield from _check_failures(host)


def _check_strange(one: Connection) -> Iterator[Check]:
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
        mend = (
            f"Mend that file by hand, then run `{one.mending}`." if one.unreadable else one.mending
        )
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
    times: dict[str, float] = {}
    for event, command in one.hooks:
        if event not in PROBES or not command:
            continue
        before = {row.event: row.count for row in state.read_failures() if row.host == one.host}
        told = json.dumps({"cwd": here, "hook_event_name": event, **PROBES[event]}).encode()
        ran = run_command(command, told, HOOK_SECONDS, one.place.environment)
        wrong = _find_fault(ran)
        for row in state.read_failures():
            if (row.host, row.event) == (one.host, event) and row.count > before.get(event, 0):
                wrong = wrong or f"it failed inside: {row.message}"
        if wrong:
            return one.check("hooks", False, f"{event}: {wrong}")
        times[event] = ran.seconds
    warm = [event for event, command in one.hooks if not command]
    by_server = f"; {', '.join(warm)} by the MCP server" if warm else ""
    slowest = max(times.values(), default=0.0) * 1000
    message = f"{', '.join(times)} run, the slowest in {slowest:.0f} ms{by_server}"
    return one.check("hooks", True, message)


def _find_fault(ran: Ran) -> str:
    """What is wrong with how a hook ended."""
    if ran.code is None:
        return ran.trouble
    if ran.code != 0:
        return f"it ended with {ran.code}" + (f": {ran.trouble}" if ran.trouble else "")
    try:
        answer = json.loads(ran.out) if ran.out.strip() else {}
    except ValueError:
        return "its answer is no JSON"
    return "" if isinstance(answer, dict) else "its answer is no JSON object"


def _check_server(one: Connection, tool: str) -> Check:
    environment = {**one.place.environment, **one.environment}
    answer = list_tools(one.server, SERVER_SECONDS, environment, tool)
    name = " ".join(one.server)
    if isinstance(answer, str):
        # Entries can be written anew as often as one likes: without the library no server starts.
        fix = one.mending if find_spec("mcp") else "pip install 'bethink[mcp]'"
        return one.check("MCP", False, f"{name}: {answer}", fix)
    names, seconds = answer
    if not names:
        return one.check("MCP", False, f"{name} has no tools")
    return one.check("MCP", True, f"answers with {len(names)} tools in {seconds:.1f} s")


def _check_capture(host: str) -> Check:
    at = spool.captures().get(host)
    waiting = [entry for entry in spool.waiting() if entry.host == host]
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
        checks = [
            _check_files(one),
            *_check_strange(one),
            *([_check_hooks(one)] if one.hooks else []),
        ]
        if all(check.ok for check in checks) or install.plugin_of(one.host, one.place):
            continue
        there = {"hooks": one.hooks, "mcp": one.server}
        parts = [part for part in install.PARTS if there.get(part) or part in one.parts]
        place = one.place._replace(warm=any(not command for _, command in one.hooks))
        with install.Files() as files:
            yield from install.install(files, [one.host], place, parts, force=True)
    state.clear_failures()


# Running what a host would run


class Ran(NamedTuple):
    code: int | None  # None: it could not be started, or did not end in time
    out: bytes
    seconds: float
    trouble: str = ""  # why there is no code, or what it said last on stderr


@contextmanager
def _start(command: Command, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process, ended with all that it started. A line goes through the shell, as hosts do it; words do not."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command,
        shell=isinstance(command, str),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        env=dict(environment),
        start_new_session=os.name == "posix",
    )
    try:
        yield process
    finally:
        _kill(process)
        with suppress(subprocess.TimeoutExpired, OSError, ValueError):
            process.communicate(timeout=5)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _last_line(said: bytes) -> str:
    rows = said.decode("utf-8", "replace").strip().splitlines()
    return rows[-1][:300] if rows else ""


def _cannot_start(error: Exception) -> str:
    return f"it cannot be started: {getattr(error, 'strerror', None) or error}"


def run_command(
    command: Command, message: bytes, seconds: float, environment: Mapping[str, str]
) -> Ran:
    """What came of a command with that on its stdin."""
    started = time.monotonic()
    try:
        with _start(command, environment) as process:
            out, err = process.communicate(message, timeout=seconds)
            took = time.monotonic() - started
            return Ran(process.returncode, out[:MOST], took, _last_line(err))
    except subprocess.TimeoutExpired:
        return Ran(None, b"", seconds, f"it did not end within {seconds:g} seconds")
    except (OSError, ValueError) as error:
        return Ran(None, b"", 0.0, _cannot_start(error))


def list_tools(
    command: tuple[str, ...], seconds: float, environment: Mapping[str, str], tool: str = ""
) -> tuple[list[str], float] | str:
    """The tools of an MCP server and how long it took to hear of them, or why there are none. `tool` is one that has to answer."""
    started = time.monotonic()
    try:
        with _start(command, environment) as process:
            watch = Timer(seconds, _kill, [process])
            watch.start()
            answer: list[str] | str | None = None
            with suppress(OSError, ValueError):
                answer = _ask_tools(process, tool)
            late = not watch.is_alive()
            watch.cancel()
            if answer is None and late:
                return f"it did not answer within {seconds:g} seconds"
            if answer is None:
                with suppress(subprocess.TimeoutExpired, OSError, ValueError):
                    answer = _last_line(process.communicate(timeout=5)[1])
            if isinstance(answer, list):
                return answer, time.monotonic() - started
            return answer or "it ended without an answer"
    except (OSError, ValueError) as error:
        return _cannot_start(error)


def _ask_tools(process: subprocess.Popen[bytes], tool: str) -> list[str] | str | None:
    client = {"name": "bethink-doctor", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    if _request(process, 1, "initialize", hello) is None:
        return None
    _send(process, {"method": "notifications/initialized"})
    answer = _request(process, 2, "tools/list", {})
    if answer is None:
        return None
    if tool:
        call = {"name": tool, "arguments": {"prompt": "hello"}}
        result = _request(process, 3, "tools/call", call) or {"isError": True}
        if result.get("isError") is True:
            return f"its tool {tool} does not answer"
    return [str(one.get("name")) for one in answer.get("tools", []) if isinstance(one, dict)]


def _send(process: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()


def _request(
    process: subprocess.Popen[bytes], number: int, method: str, params: dict[str, Any]
) -> dict[str, Any] | None:
    """The result of a request; what the server says otherwise is passed over."""
    _send(process, {"id": number, "method": method, "params": params})
    assert process.stdout is not None
    while line := process.stdout.readline(MOST):
        message = json.loads(line)  # what is no JSON is no protocol
        if isinstance(message, dict) and message.get("id") == number:
            result = message.get("result")
            return result if isinstance(result, dict) else None
    return None
