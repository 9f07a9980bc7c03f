"""Whether hosts are really connected, proven end to end: what their files say, that it runs, and what came of it so far.

Every step looks at what the host would look at: the entries in its files, not the record of what was written there. Nothing is
changed; `mend` writes broken entries anew. A project's files are whoever's who wrote the repository: of them only what `install` would
write is run.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from bethink.errors import BethinkError
from bethink.install import command as program
from bethink.install import connect, entries, host, jsonc, probe, record, toml
from bethink.install.host import SERVER, Place, Target
from bethink.text import textfile

HOOK_SECONDS = 8.0
SERVER_SECONDS = 25.0
RECENT = 24 * 3600.0  # a failure older than that is history
PATIENCE = 600.0  # seconds after which transcripts that wait are a problem
LONGEST_SHOWN = 200  # characters of a command
# Harmless: no session, so that nothing is noted; a greeting, for which nothing is looked up.
GIVEN: dict[str, dict[str, str]] = {
    "session-start": {"source": "startup"},
    "prompt": {"prompt": "hello", "source": "user"},
    "stop": {},
}
_COMMAND = re.compile(r"^const COMMAND = (\[[^\n]{0,4000}\])$", re.MULTILINE)


class Found(NamedTuple):
    """What the files of one host say about us, for the user or for a project."""

    host: str
    place: Place
    paths: tuple[Path, ...] = ()  # that mention us
    hooks: tuple[
        tuple[str, str | tuple[str, ...]], ...
    ] = ()  # event → command line, or words; none for a hook of the MCP server
    server: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    problems: tuple[str, ...] = ()
    unreadable: bool = False  # one of the files, which only its owner can mend
    missing: tuple[str, ...] = ()  # events without a hook, where others have one
    parts: tuple[str, ...] = ()  # that `install` put there
    plugin: str = ""  # that connects it, in place of entries


class Check(NamedTuple):
    host: str
    name: str
    ok: bool
    message: str
    fix: str = ""


def name_of(one: Found) -> str:
    name: str = host.module(one.host).NAME
    return name


# Looking


def connected(places: Sequence[Place]) -> list[Found]:
    """Every host that the record or its own files say is connected, for the user and for this project."""
    try:
        known = record.load()
    except BethinkError:
        known = {}
    found = []
    for place in places:
        root = str(place.root or "")
        for name in host.HOSTS:
            one = look(name, place)
            recorded = [
                path for path, about in known.items() if name in about.hosts and about.root == root
            ]
            gone = [
                path
                for path in recorded
                if connect.WHOLE not in known[path].keys and Path(path) not in one.paths
            ]
            if one.paths or one.problems or gone:
                lost = tuple(f"{path} no longer has what `install` put there." for path in gone)
                parts = tuple(
                    dict.fromkeys(
                        part
                        for path in recorded
                        for part in connect.parts_of(Path(path), known[path].hosts[name])
                    )
                )
                if one.paths or recorded:
                    found.append(one._replace(problems=(*one.problems, *lost), parts=parts))
            elif place.root is None and (plugin := host.plugin(name, place)):
                found.append(_by_plugin(one, plugin))
    return found


def _by_plugin(one: Found, plugin: str) -> Found:
    """What our plugin would start: the program that its launcher finds, on PATH or where installers put it."""
    path = os.pathsep.join(
        [one.place.environment.get("PATH", os.defpath), str(one.place.home / ".local" / "bin")]
    )
    place = one.place._replace(environment={**one.place.environment, "PATH": path})
    hooks = tuple((event, (SERVER, "hook", event, "--host", one.host)) for event in GIVEN)
    return one._replace(place=place, hooks=hooks, server=(SERVER, "mcp"), plugin=plugin, missing=())


def look(name: str, place: Place) -> Found:
    found = Found(name, place)
    for target in connect.merged(host.module(name).targets(place)):
        if target.part == "skills":
            continue
        try:
            text = textfile.read(target.path.resolve())
            if text is not None:
                found = _read(found, target, text)
            if target.path in found.paths and (
                why := host.ignored(target, text or "", host.module(name).NAME)
            ):
                found = found._replace(problems=(*found.problems, why), unreadable=True)
        except (BethinkError, OSError) as error:
            found = found._replace(
                problems=(*found.problems, f"{target.path}: {error}"), unreadable=True
            )
    events = {event for event, _ in found.hooks}
    wanted = getattr(host.module(name), "EVENTS", {}).values()
    return found._replace(
        missing=tuple(event for event in wanted if event not in events) if events else ()
    )


def _read(found: Found, target: Target, text: str) -> Found:
    if target.text is not None:  # opencode's plugin
        written = _COMMAND.search(text)
        words = tuple(map(str, json.loads(written.group(1)))) if written else ()
        by_plugin = tuple((event, (*words, "hook", event, "--host", found.host)) for event in GIVEN)
        return (
            found._replace(paths=(*found.paths, target.path), hooks=by_plugin) if words else found
        )
    document: Any = (
        toml.parse(text)
        if target.path.suffix == ".toml"
        else {}
        if jsonc.empty(text)
        else jsonc.plain(jsonc.parse(text))
    )
    mentioned = False
    for entry in target.entries:
        value = document
        for key in entry.path:
            value = value.get(key) if isinstance(value, dict) else None
        if entry.kind == "hook":
            hooks = tuple(_hooks(value, found.host))
            mentioned = mentioned or bool(hooks)
            found = found._replace(hooks=(*found.hooks, *hooks))
        elif entry.kind != "frame" and entries.server_is_ours(value) and isinstance(value, dict):
            mentioned = True
            found = found._replace(server=_words(value), environment=_environment(value))
    return found._replace(paths=(*found.paths, target.path)) if mentioned else found


def _hooks(listed: Any, name: str) -> Iterator[tuple[str, str | tuple[str, ...]]]:
    for element in listed if isinstance(listed, list) else []:
        inside = element.get("hooks") if isinstance(element, dict) else None
        for handler in inside if isinstance(inside, list) else [element]:
            about = entries.hook_of(handler)
            if about is None or about[1] != name:
                continue
            if isinstance(handler.get("args"), list):
                yield about[0], (str(handler.get("command")), *map(str, handler["args"]))
            elif handler.get("type") == "mcp_tool":
                yield about[0], ()
            else:
                yield about[0], entries.lines_of(handler)[0]


def _words(value: dict[str, Any]) -> tuple[str, ...]:
    command, args = value.get("command"), value.get("args")
    return (
        *map(str, command if isinstance(command, list) else [command]),
        *map(str, args if isinstance(args, list) else []),
    )


def _environment(value: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    given = value.get("env") or value.get("environment")
    return (
        tuple((str(key), str(one)) for key, one in given.items()) if isinstance(given, dict) else ()
    )


# Proving


def examine(found: Sequence[Found], running: tuple[str, ...], version: str) -> Iterator[Check]:
    """The chain of every host, link by link. The same server is started once, however many hosts have it."""
    servers: dict[tuple[str, ...], tuple[list[str], float] | str] = {}
    for one in found:
        yield _configured(one)
        own, strange = _runnable(one, running)
        yield from _not_run(one, strange)
        yield from _programs(own, running, version)
        if own.hooks:
            yield _hooks_run(own)
        if own.server:
            call = entries.PROMPT_TOOL if any(not command for _, command in own.hooks) else ""
            key = (*own.server, call, *(f"{name}={value}" for name, value in own.environment))
            if key not in servers:
                servers[key] = probe.tools(
                    own.server,
                    SERVER_SECONDS,
                    {**own.place.environment, **dict(own.environment)},
                    call,
                )
            yield _answers(own, servers[key])
    for name in dict.fromkeys(one.host for one in found):
        yield _captured(name)
        yield from _failed(name)


def _runnable(one: Found, running: tuple[str, ...]) -> tuple[Found, list[str]]:
    """What of a host's files is run, and the commands that are not. A cloned repository may hold anything in a project's files, so a
    command there has to be, word for word, what `install` would write; and no shell comes near it."""
    if one.place.root is None:
        return one, []
    starts = list(dict.fromkeys(filter(None, (one.place.words, running))))
    hooks: list[tuple[str, str | tuple[str, ...]]] = []
    strange = []
    for event, given in one.hooks:
        wanted = [
            host.hook_words(one.place._replace(words=start), event, one.host) for start in starts
        ]
        words = next((words for words in wanted if given in (words, program.shell(words))), None)
        if words or not given:
            hooks.append((event, words or ()))
        else:
            strange.append(given if isinstance(given, str) else program.shell(given))
    if one.server and (one.environment or one.server not in [(*start, "mcp") for start in starts]):
        strange.append(
            " ".join(
                [*(f"{name}={value}" for name, value in one.environment), program.shell(one.server)]
            )
        )
        one = one._replace(server=(), environment=())
    return one._replace(hooks=tuple(hooks)), strange


def _not_run(one: Found, strange: Sequence[str]) -> Iterator[Check]:
    if strange:
        more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
        where = ", ".join(dict.fromkeys(str(path) for path in one.paths))
        said = f"`{' '.join(strange[0].split())[:LONGEST_SHOWN]}`{more} in {where} is not what `install` writes; it was not run"
        yield Check(
            one.host,
            "entries",
            False,
            said,
            f"Look at it; {_mend(one)} --force writes ours in its place.",
        )


def _mend(one: Found) -> str:
    if one.plugin:
        return f"uv tool install '{SERVER}[mcp]', which the plugin finds on PATH or in ~/.local/bin"
    return f"bethink install --{one.host}" + (" --project" if one.place.root is not None else "")


def _configured(one: Found) -> Check:
    if one.plugin:
        reason = host.blocked(one.host, one.place)
        said = reason or f"the plugin {one.plugin} brings hooks, the MCP server and skills"
        return Check(
            one.host,
            "config",
            not reason,
            said,
            "Switch them on again in the settings of the agent." if reason else "",
        )
    parts = [
        f"{len(one.hooks)} hooks" if one.hooks else "no hooks",
        "the MCP server" if one.server else "no MCP server",
    ]
    where = ", ".join(dict.fromkeys(str(path) for path in one.paths))
    if one.problems:
        mend = f"Mend that file by hand, then run `{_mend(one)}`." if one.unreadable else _mend(one)
        return Check(one.host, "config", False, " ".join(one.problems), mend)
    if one.missing:
        return Check(
            one.host,
            "config",
            False,
            f"{where} has no hook for {', '.join(one.missing)}",
            _mend(one),
        )
    if one.hooks and (reason := host.blocked(one.host, one.place)):
        return Check(
            one.host, "config", False, reason, "Switch them on again in the settings of the agent."
        )
    plugin = host.plugin(one.host, one.place)
    if plugin:
        said = f"{where} and the plugin {plugin} both connect {name_of(one)}"
        return Check(one.host, "config", False, said, f"Keep one: bethink uninstall --{one.host}")
    return Check(one.host, "config", True, f"{' and '.join(parts)} in {where}")


def program_of(command: str | Sequence[str]) -> tuple[str, ...]:
    """The words before `hook` or `mcp`: what is started."""
    if isinstance(command, str):
        try:
            words = shlex.split(command)
        except ValueError:
            words = command.split()
    else:
        words = list(command)
    ends = [at for at, word in enumerate(words) if at and word in ("hook", "mcp")]
    return tuple(words[: ends[0]] if ends else words[:1])


def _programs(one: Found, running: tuple[str, ...], version: str) -> Iterator[Check]:
    """Whether what is configured is there, and is this version."""
    programs = dict.fromkeys(
        program_of(command) for command in (*(line for _, line in one.hooks), one.server) if command
    )
    for words in programs:
        path = shutil.which(words[0], path=one.place.environment.get("PATH"))
        if path is None:
            yield Check(
                one.host,
                "program",
                False,
                f"{words[0]}, which the entries name, is not there",
                _mend(one),
            )
            continue
        if words == running or (
            len(running) == 1
            and len(words) == 1
            and Path(path).resolve() == Path(running[0]).resolve()
        ):
            yield Check(one.host, "program", True, f"{words[0]}, this version")
            continue
        ran = probe.run([path, *words[1:], "--version"], b"", HOOK_SECONDS, one.place.environment)
        theirs = ran.out.decode("utf-8", "replace").strip().removeprefix("bethink ")[:40]
        if ran.code != 0 or not theirs:
            yield Check(
                one.host,
                "program",
                False,
                f"{' '.join(words)} does not start: {ran.trouble or 'no version'}",
                _mend(one),
            )
        else:
            same = theirs == version
            said = f"{' '.join(words)} is version {theirs}" + (
                "" if same else f"; this one is {version}: two are installed"
            )
            yield Check(one.host, "program", same, said, _mend(one))


def _hooks_run(one: Found) -> Check:
    from bethink.hooks import failures

    try:
        here = str(Path.cwd())
    except OSError:  # removed under us
        here = ""
    slowest = 0.0
    names = []
    for event, command in one.hooks:
        if event not in GIVEN or not command:
            continue
        before = {row.event: row.count for row in failures.read() if row.host == one.host}
        told = {"cwd": here, "hook_event_name": event, **GIVEN[event]}
        ran = probe.run(command, json.dumps(told).encode(), HOOK_SECONDS, one.place.environment)
        after = next(
            (row for row in failures.read() if row.host == one.host and row.event == event), None
        )
        wrong = _wrong(ran)
        if not wrong and after is not None and after.count > before.get(event, 0):
            wrong = f"it failed inside: {after.message}"
        if wrong:
            return Check(one.host, "hooks", False, f"{event}: {wrong}", _mend(one))
        slowest = max(slowest, ran.seconds)
        names.append(event)
    warm = [event for event, command in one.hooks if not command]
    by_server = f"; {', '.join(warm)} by the MCP server" if warm else ""
    return Check(
        one.host,
        "hooks",
        True,
        f"{', '.join(names)} run, the slowest in {slowest * 1000:.0f} ms{by_server}",
    )


def _wrong(ran: probe.Ran) -> str:
    """What is wrong with how a hook ended."""
    if ran.code is None:
        return ran.trouble
    if ran.code != 0:
        return f"it ended with {ran.code}" + (f": {ran.trouble}" if ran.trouble else "")
    try:
        return (
            ""
            if not ran.out.strip() or isinstance(json.loads(ran.out), dict)
            else "its answer is no JSON object"
        )
    except ValueError:
        return "its answer is no JSON"


def _answers(one: Found, answer: tuple[list[str], float] | str) -> Check:
    if isinstance(answer, str):
        # Entries can be written anew as often as one likes: without the library no server starts.
        mend = _mend(one) if find_spec("mcp") else f"pip install '{SERVER}[mcp]'"
        return Check(one.host, "MCP", False, f"{' '.join(one.server)}: {answer}", mend)
    names, seconds = answer
    if not names:
        return Check(one.host, "MCP", False, f"{' '.join(one.server)} has no tools", _mend(one))
    return Check(one.host, "MCP", True, f"answers with {len(names)} tools in {seconds:.1f} s")


def _captured(name: str) -> Check:
    from bethink.hooks import spool

    at, behind = spool.captures().get(name), spool.lag(name)
    waiting = [
        entry.noted_at
        for entry in spool.waiting()
        if entry.host == name and entry.event != "prompt"  # whose turn may still go on
    ]
    stuck = bool(waiting) and time.time() - min(waiting) > PATIENCE
    lines = f"the index is behind by {behind:,} line{'' if behind == 1 else 's'}"
    if at is None:
        said = "nothing was captured yet"
        if name == "codex":
            said += "; Codex runs hooks only after you trust them: type /hooks there"
        return Check(name, "capture", not stuck, f"{said}; {lines}", "bethink backfill --all")
    ago = max(0.0, time.time() - at)
    return Check(
        name,
        "capture",
        not stuck,
        f"last capture {_span(ago)} ago; {lines}",
        "bethink backfill --all",
    )


def _failed(name: str) -> Iterator[Check]:
    from bethink.hooks import failures

    for row in failures.read():
        if row.host == name:
            ago = time.time() - row.last
            times = "once" if row.count == 1 else f"{row.count:,} times"
            said = f"{row.event} failed {times}, last {_span(ago)} ago: {row.message}"
            yield Check(
                name,
                "failures",
                ago > RECENT,
                said,
                "bethink doctor --fix, when the rest is well, forgets them",
            )


def _span(seconds: float) -> str:
    for size, word in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {word}s"
    return f"{seconds:.0f} second{'' if round(seconds) == 1 else 's'}"


def paused() -> Iterator[Check]:
    """Pauses that hold now: nothing is wrong with them, and they explain a silence."""
    from bethink.hooks import pause

    try:
        held = [one for one in pause.read() if one.holds(time.time())]
    except BethinkError as error:
        yield Check("", "pause", False, error.message, error.hint or "")
        return
    for one in held:
        where = "everywhere" if one.scope == pause.EVERYWHERE else f"in {one.name or one.scope}"
        until = (
            "until `bethink resume`"
            if one.until is None
            else f"for another {_span(one.until - time.time())}"
        )
        yield Check("", "pause", True, f"memory is paused {where} {until}")


# Mending


def mend(
    found: Sequence[Found], running: tuple[str, ...], version: str
) -> Iterator[connect.Outcome]:
    """Writes the entries of every host anew whose files or programs are not as they should be. Counted failures are forgotten."""
    from bethink.hooks import failures

    for one in found:
        own, strange = _runnable(one, running)
        if strange and not one.parts:
            continue  # somebody else's, for people to look at first
        broken = [
            _configured(one),
            *_not_run(one, strange),
            *_programs(own, running, version),
            *([_hooks_run(own)] if own.hooks else []),
        ]
        if all(check.ok for check in broken) or host.plugin(one.host, one.place):
            continue
        there = {"hooks": one.hooks, "mcp": one.server}
        parts = [part for part in connect.PARTS if there.get(part) or part in one.parts]
        warm = any(not command for _, command in one.hooks)
        place = one.place._replace(words=one.place.words or running, warm=warm)
        with connect.Files() as files:
            yield from connect.install(files, [one.host], place, parts, force=True)
    failures.clear()
