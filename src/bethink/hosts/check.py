"""Whether hosts are really connected, proven end to end: what their files say, that it runs, and what came of it so far.

Every step looks at what the host would look at: the entries in its files, not the record of what was written there. Nothing is
changed; `mend` writes broken entries anew. A project's files are whoever's who wrote the repository: of them only what `install` would
write is run. Whatever is started here is ended here, with everything it started that is still its own.
"""

from __future__ import annotations

import json
import os
import re
import shlex
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
from bethink.hooks import pause, spool, state
from bethink.hosts import AGENTS, agent, edit, install
from bethink.hosts.place import Place, Target, parse_settings, shell_line, why_ignored
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
_PLUGIN_COMMAND = re.compile(r"^const COMMAND = (\[[^\n]{0,4000}\])$", re.MULTILINE)

Command = str | tuple[str, ...]  # a line for the shell, or words; () for a hook of the MCP server


class Connection(NamedTuple):
    """What the files of one host say about us, for the user or for a project."""

    host: str
    place: Place
    paths: tuple[Path, ...] = ()  # that mention us
    hooks: tuple[tuple[str, Command], ...] = ()  # by event
    server: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
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


class Check(NamedTuple):
    host: str
    name: str
    ok: bool
    message: str
    fix: str = ""


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
            gone = [
                path
                for path, keys in ours.items()
                if install.WHOLE not in keys and path not in one.paths
            ]
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
    programs = os.pathsep.join([path, str(one.place.home / ".local" / "bin")])
    place = one.place._replace(environment={**one.place.environment, "PATH": programs})
    return one._replace(
        place=place,
        hooks=_probe_hooks(("bethink",), one.host),
        server=("bethink", "mcp"),
        plugin=plugin,
    )


def _probe_hooks(words: tuple[str, ...], host: str) -> tuple[tuple[str, Command], ...]:
    return tuple((event, (*words, "hook", event, "--host", host)) for event in PROBES)


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
    if target.text is not None:  # opencode's plugin
        written = _PLUGIN_COMMAND.search(text)
        words = tuple(map(str, json.loads(written[1]))) if written else ()
        found = found._replace(hooks=_probe_hooks(words, found.host)) if words else found
    document = parse_settings(target.path, text) if target.text is None else {}
    for entry in target.entries:
        value = edit.value_at(document, entry.path)
        if entry.kind == "hook":
            found = found._replace(hooks=(*found.hooks, *_find_hooks(value, found.host)))
        elif edit.is_our_server(value):
            told = value.get("env") or value.get("environment")
            environment = (
                {str(name): str(one) for name, one in told.items()}
                if isinstance(told, dict)
                else {}
            )
            found = found._replace(server=edit.server_words(value), environment=environment)
    if found == before:
        return found
    found = found._replace(paths=(*found.paths, target.path))
    if why := why_ignored(target, text, AGENTS[found.host]):
        return found._replace(problems=(*found.problems, why), unreadable=True)
    return found


def _find_hooks(listed: Any, host: str) -> Iterator[tuple[str, Command]]:
    for element in listed if isinstance(listed, list) else []:
        for handler in edit.handlers_of(element):
            event, whose = edit.hook_of(handler) or ("", "")
            if whose != host:
                continue
            if handler.get("type") == "mcp_tool":
                yield event, ()
            elif isinstance(handler.get("args"), list):
                yield event, edit.server_words(handler)
            else:
                yield event, edit.command_lines(handler)[0]


# Proving


def examine(found: Sequence[Connection], running: tuple[str, ...], version: str) -> Iterator[Check]:
    """The chain of every host, link by link. The same server is started once, however many hosts have it."""
    answers: dict[Any, Check] = {}
    for one in found:
        yield _check_files(one)
        own, strange = keep_runnable(one, running)
        yield from _check_strange(one, strange)
        yield from _check_programs(own, running, version)
        if own.hooks:
            yield _check_hooks(own)
        if own.server:
            tool = edit.PROMPT_TOOL if any(not command for _, command in own.hooks) else ""
            key = (own.server, tool, *own.environment.items())
            if key not in answers:
                answers[key] = _check_server(own, tool)
            yield answers[key]._replace(host=own.host)
    for host in dict.fromkeys(one.host for one in found):
        yield _check_capture(host)
        yield from _check_failures(host)


def keep_runnable(one: Connection, running: tuple[str, ...]) -> tuple[Connection, list[str]]:
    """What of a host's files is run, and the commands that are not. A cloned repository may hold anything in a project's files, so a
    command there has to be, word for word, what `install` would write; and no shell comes near it."""
    if one.place.root is None:
        return one, []
    starts = list(dict.fromkeys(filter(None, (one.place.words, running))))
    hooks: list[tuple[str, Command]] = []
    strange = []
    for event, command in one.hooks:
        wanted = [one.place._replace(words=words).hook_words(event, one.host) for words in starts]
        words = next((words for words in wanted if command in (words, shell_line(words))), None)
        if words or not command:
            hooks.append((event, words or ()))
        else:
            strange.append(command if isinstance(command, str) else shell_line(command))
    if one.server and (one.environment or one.server not in [(*words, "mcp") for words in starts]):
        variables = [f"{name}={value}" for name, value in one.environment.items()]
        strange.append(" ".join([*variables, shell_line(one.server)]))
        one = one._replace(server=(), environment={})
    return one._replace(hooks=tuple(hooks)), strange


def _check_strange(one: Connection, strange: Sequence[str]) -> Iterator[Check]:
    if strange:
        more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
        command = " ".join(strange[0].split())[:LONGEST_SHOWN]
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
    if one.missing and not one.plugin:
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


def program_of(command: Command) -> tuple[str, ...]:
    """The words before `hook` or `mcp`: what is started."""
    try:
        words = shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError:
        words = str(command).split()
    ends = [at for at, word in enumerate(words) if at and word in ("hook", "mcp")]
    return tuple(words[: ends[0]] if ends else words[:1])


def _check_programs(one: Connection, running: tuple[str, ...], version: str) -> Iterator[Check]:
    """Whether what is configured is there, and is this version."""
    commands = [command for command in (*dict(one.hooks).values(), one.server) if command]
    for words in dict.fromkeys(map(program_of, commands)):
        name = " ".join(words)
        path = shutil.which(words[0], path=one.place.environment.get("PATH"))
        if path is None:
            yield one.check("program", False, f"{words[0]}, which the entries name, is not there")
            continue
        same_file = len(running) == len(words) == 1 and _same_file(path, running[0])
        if words == running or same_file:
            yield one.check("program", True, f"{words[0]}, this version")
            continue
        ran = run_command((path, *words[1:], "--version"), b"", HOOK_SECONDS, one.place.environment)
        theirs = ran.out.decode("utf-8", "replace").strip().removeprefix("bethink ")[:40]
        if ran.code != 0 or not theirs:
            message = f"{name} does not start: {ran.trouble or 'no version'}"
            yield one.check("program", False, message)
        elif theirs == version:
            yield one.check("program", True, f"{name} is version {theirs}")
        else:
            message = f"{name} is version {theirs}; this one is {version}: two are installed"
            yield one.check("program", False, message)


def _same_file(one: str, other: str) -> bool:
    return Path(one).resolve() == Path(other).resolve()


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
    at, behind = spool.captures().get(host), spool.lag(host)
    waiting = [
        entry.noted_at
        for entry in spool.waiting()
        if entry.host == host and entry.event != "prompt"  # whose turn may still go on
    ]
    stuck = bool(waiting) and time.time() - min(waiting) > PATIENCE
    lag = f"the index is behind by {behind:,} line{'' if behind == 1 else 's'}"
    last = "nothing was captured yet"
    if at is not None:
        last = f"last capture {render_span(max(0.0, time.time() - at))} ago"
    elif host == "codex":
        last += "; Codex runs hooks only after you trust them: type /hooks there"
    return Check(host, "capture", not stuck, f"{last}; {lag}", "bethink backfill --all")


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
        held = [one for one in pause.read() if one.holds(now)]
    except BethinkError as error:
        yield Check("", "pause", False, error.message, error.hint or "")
        return
    for one in held:
        where = "everywhere" if one.scope == pause.EVERYWHERE else f"in {one.name or one.scope}"
        until = "until `bethink resume`" if one.until is None else ""
        until = until or f"for another {render_span((one.until or now) - now)}"
        yield Check("", "pause", True, f"memory is paused {where} {until}")


# Mending


def mend(
    found: Sequence[Connection], running: tuple[str, ...], version: str
) -> Iterator[install.Outcome]:
    """Writes the entries of every host anew whose files or programs are not as they should be. Counted failures are forgotten."""
    for one in found:
        own, strange = keep_runnable(one, running)
        if strange and not one.parts:
            continue  # somebody else's, for people to look at first
        checks = [
            _check_files(one),
            *_check_strange(one, strange),
            *_check_programs(own, running, version),
            *([_check_hooks(own)] if own.hooks else []),
        ]
        if all(check.ok for check in checks) or install.plugin_of(one.host, one.place):
            continue
        there = {"hooks": one.hooks, "mcp": one.server}
        parts = [part for part in install.PARTS if there.get(part) or part in one.parts]
        warm = any(not command for _, command in one.hooks)
        place = one.place._replace(words=one.place.words or running, warm=warm)
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
