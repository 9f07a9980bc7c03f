"""Input of a hook in one shape (`Hook`), answers in each host's dialect, and the small files of hooks.

The files have failures, for `doctor`, and the memories that a session has seen. This module also writes the file of pauses, which
`project` reads.

Hosts name the same things differently; their names end here. Input is read as far as possible: a missing or wrongly typed value is an
empty one. Only input that is no JSON object is an error. This module knows no store, and is separate from the transcript readers in
`agents/`, which a hook has no time to load.

A hook never complains, because its agent would have to. Each file is replaced atomically; of two writes at the same moment one may be
lost, so a failure may go uncounted or a memory may be shown twice.
"""

# No `from __future__ import annotations`: NamedTuple compiles each annotation that is a string, and every hook loads this.
import json
import os
import time
from _thread import get_ident
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from bethink import plugins
from bethink.agents.agent import EVENTS, HookDialect, ToolCall
from bethink.config import data_directory
from bethink.errors import BethinkError, InvalidInput
from bethink.hooks import LONGEST_INPUT
from bethink.model import Values
from bethink.outgoing import Block, encode, join
from bethink.project import EVERYWHERE, Pause, pauses_file, read_pauses
from bethink.text import sha256, textfile

# Sources of a prompt that may come from a person; the others are timers and notices.
PERSON_SOURCES = ("", "user", "sdk")
_AGENT_IDS = ("agent_id", "agentId")  # what a message about a sub-agent names
_LONGEST_TEXT = 200_000  # characters of a prompt
_LONGEST_NAME = 4096  # characters of a path or an identifier
_HARMLESS = 12  # characters of a session's id that is too short for a secret
UUID_PARTS = [8, 4, 4, 4, 12]  # lengths
HEXADECIMAL = frozenset("0123456789abcdef-")

LONGEST_FAILURE = 300  # characters of a failure
_OTHER = "unknown"  # replaces hosts and events that do not exist, so that there are few rows
MOST_IDS = 1000  # of one session; the oldest go first
_ONE_EVENT = 30.0  # seconds in which the hooks of two agents for one event run
MOST_SESSIONS = 500  # of which is kept what they were given


class Hook(NamedTuple):
    event: str  # one of EVENTS
    host: str
    session: str = ""
    transcript: str = ""  # path, if the host gives one; a sub-agent's own where `agent` is set
    directory: str = ""
    prompt: str = ""
    source: str = ""  # of a session or a prompt: startup, resume, user, schedule_wakeup …
    agent: str = ""  # a sub-agent's type
    calls: tuple[ToolCall, ...] = ()  # that a tool event is about
    via: str = ""  # the agent whose hook this is, if another agent runs it


# Reading


def read(event: str, host: str, data: bytes) -> Hook:
    """The hook that these bytes describe. Raises InvalidInput where there is nothing to be made of them."""
    if event not in EVENTS:
        raise InvalidInput(
            f"Unknown hook event '{event[:60]}'.", f"Use one of {', '.join(EVENTS)}."
        )
    find_dialect(host)
    try:
        if len(data) > LONGEST_INPUT:
            raise ValueError(f"it has {len(data):,} bytes, and {LONGEST_INPUT:,} are the most")
        fields = json.loads(data.decode("utf-8-sig", "replace")) if data.strip() else {}
        if not isinstance(fields, dict):
            raise ValueError(f"it is of type {type(fields).__name__}")
    except (ValueError, RecursionError) as error:
        reason = f"The host's message is not a JSON object: {error}."
        raise InvalidInput(reason, "Hosts send an object on stdin.") from None
    return from_fields(event, host, fields)


def find_dialect(host: str) -> HookDialect:
    """Return the hook dialect of an agent."""
    agent = plugins.AGENTS.find(host)
    if agent and agent.hooks:
        return agent.hooks
    known = [agent.name for agent in plugins.AGENTS.all() if agent.hooks]
    raise InvalidInput(f"No agent '{host[:60]}' has hooks.", f"Use one of {', '.join(known)}.")


def from_fields(event: str, host: str, fields: Values) -> Hook:
    """Return the hook that an agent's object describes."""
    runner = find_dialect(host).find_runner(fields)
    via, host = (host, runner) if runner else ("", host)
    dialect, inside = find_dialect(host), event == "subagent-stop"
    prompt = _first(fields, dialect.prompt) if event == "prompt" else ""
    if event == "prompt" and dialect.find_prompt and not prompt:
        prompt = dialect.find_prompt(fields)
    transcript = (*dialect.subagent_transcript, *dialect.transcript)
    source = _name(fields, dialect.source)
    if event == "prompt" and _first(fields, _AGENT_IDS):
        source = "subagent"  # its task, which its agent wrote
    return Hook(
        event,
        host,
        session=_session(fields, dialect.session),
        transcript=_name(fields, transcript if inside else dialect.transcript),
        directory=_name(fields, dialect.directory),
        prompt=prompt[:_LONGEST_TEXT],
        source=source,
        agent=_name(fields, dialect.subagent) if "subagent" in event else "",
        calls=_read_calls(event, dialect, fields) if event.startswith("tool") else (),
        via=via,
    )


def _read_calls(event: str, dialect: HookDialect, fields: Values) -> tuple[ToolCall, ...]:
    from bethink.hooks.calls import read_calls  # only where a tool was called

    return read_calls(event, dialect, fields)


def _first(fields: Values, names: tuple[str, ...]) -> str:
    values = (_look_up(fields, name) for name in names)
    firsts = (one[0] if isinstance(one, list) and one else one for one in values)  # workspace_roots
    return next((one for one in firsts if isinstance(one, str) and one), "")


def _look_up(fields: Values, name: str) -> object:
    """Return a field by its name, or by a path such as `thread.id`."""
    outer, dot, inner = name.partition(".")
    value = fields.get(outer)
    return _look_up(value, inner) if dot and isinstance(value, dict) else value


def _name(fields: Values, names: tuple[str, ...]) -> str:
    """A path or an identifier. One that no file system could hold is none."""
    value = _first(fields, names)
    return value if len(value) <= _LONGEST_NAME and "\0" not in value else ""


def _session(fields: Values, names: tuple[str, ...]) -> str:
    """The id of a session, without what looks like a secret: it goes into files and into the store."""
    name = _name(fields, names)
    if len(name) <= _HARMLESS or _is_usual(name):
        return name
    from bethink.ingest.redact import redact_name  # and with it the vocabulary

    return redact_name(name)


def _is_usual(session: str) -> bool:
    """Return True for a UUID, and for an id of opencode such as `ses_4a1c…`."""
    if session.startswith("ses_"):
        rest = session[4:]
        return 10 <= len(rest) <= 40 and rest.isascii() and rest.isalnum()
    return HEXADECIMAL.issuperset(session) and [*map(len, session.split("-"))] == UUID_PARTS


# Answering


def render_answer(hook: Hook, context: str) -> Block:
    """Return the output of a hook in the agent's dialect; '' without context, or if the event takes none."""
    block = join([context])
    answer = find_dialect(hook.host).answer(hook.event, block) if block else None
    if answer is None:
        return join([])
    return join([answer]) if isinstance(answer, str) else encode(answer)


# The files


def folder() -> Path:
    return data_directory() / "hooks"


def make_private(path: Path) -> None:
    """Make a folder and missing parents, for their owner alone."""
    line = [path, *path.parents]
    for missing in [one for one in reversed(line) if not one.is_dir()]:
        missing.mkdir(mode=0o700, exist_ok=True)
    if folder() in line:
        with suppress(OSError):  # one that an earlier version or another program left open
            folder().chmod(0o700)


def write_json(path: Path, value: object) -> None:
    """A JSON file in place at once, for its owner alone."""
    # Calls of one MCP server are threads of one process.
    fresh = path.with_name(f"{path.name}.{os.getpid()}-{get_ident()}.new")
    flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    try:
        make_private(path.parent)
        try:
            with os.fdopen(os.open(fresh, flags, 0o600), "wb") as stream:
                stream.write(json.dumps(value, ensure_ascii=True).encode())
            fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as error:
        raise BethinkError(
            f"{path} cannot be written: {error.strerror or error}.",
            "Check permissions and free space, or set BETHINK_HOME.",
        ) from error


def read_json(path: Path) -> Any:
    """Return the value in such a file, None if it is missing or broken."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


# Failures


class Failure(NamedTuple):
    host: str
    event: str
    count: int  # type: ignore[assignment]
    last: float  # seconds since the epoch
    message: str  # of the last one


def failures_file() -> Path:
    return folder() / "failures.json"


def note_failure(host: str, event: str, message: str) -> None:
    """Count a failure. Never raises if it cannot be written."""
    from bethink.ingest.redact import redact

    host = host if plugins.AGENTS.find(host) else _OTHER
    event = event if event in EVENTS else _OTHER
    rows = {row[:2]: row for row in read_failures()}
    count = rows[host, event].count + 1 if (host, event) in rows else 1
    cleaned = " ".join(redact(message).text.split())[:LONGEST_FAILURE]
    rows[host, event] = Failure(host, event, count, time.time(), cleaned)
    with suppress(BethinkError):
        write_json(failures_file(), [row._asdict() for row in rows.values()])


def read_failures() -> list[Failure]:
    """Return the failures, latest first; none if the file is damaged."""
    try:
        found = [Failure(**row) for row in read_json(failures_file()) or ()]
    except TypeError:
        return []
    return sorted(found, key=lambda row: -row.last)


def clear_failures() -> None:
    with suppress(OSError):
        failures_file().unlink()


# What a session was given


class Deliveries(NamedTuple):
    """Memories and briefings that a session already has, so that none is repeated."""

    ids: tuple[str, ...] = ()
    briefing: str = ""  # digest of the last one
    emptied: bool = False  # whether its context was, so that it no longer knows what it said itself
    briefed: str = ""  # the scope of the project that the briefing was about


def is_ephemeral(hook: Hook) -> bool:
    """Return True if context lasts for one call of the model, so that a session has none."""
    return find_dialect(hook.host).ephemeral


def read_deliveries(hook: Hook) -> Deliveries:
    """Return what a session has in its context."""
    return Deliveries() if is_ephemeral(hook) else _read_noted(hook)


def _read_noted(hook: Hook) -> Deliveries:
    path = _deliveries_file(hook)
    kept: Any = read_json(path) if path else None
    try:
        return Deliveries(**{**kept, "ids": tuple(kept["ids"])})
    except (TypeError, KeyError):
        return Deliveries()


def is_briefed(scope: str) -> bool:
    """Return True if any session of a project got a briefing."""
    with suppress(OSError):
        kept = map(read_json, (folder() / "given").iterdir())
        return any(isinstance(one, dict) and one.get("briefed") == scope for one in kept)
    return False


def list_deliveries() -> list[tuple[float, Deliveries]]:
    """Return what each session has, with the time of its last delivery."""
    found = []
    with suppress(OSError):
        for path in (folder() / "given").glob("*.json"):
            kept: Any = read_json(path)
            with suppress(OSError, TypeError, KeyError):
                known = Deliveries(**{**kept, "ids": tuple(kept["ids"])})
                found.append((path.stat().st_mtime, known))
    return found


def note_delivery(hook: Hook, ids: Iterable[str], briefing: str = "", scope: str = "") -> None:
    """Record the memories that a session sees now, beside the earlier ones."""
    before = _read_noted(hook)
    known = tuple(dict.fromkeys((*before.ids, *ids)))[-MOST_IDS:]
    last = (briefing, scope) if briefing else (before.briefing, before.briefed)
    _write_deliveries(hook, before._replace(ids=known, briefing=last[0], briefed=last[1]))


def claim(hook: Hook, id: str) -> bool:
    """Return True for the first process to show a session this memory; two hooks may run for one event."""
    path = _deliveries_file(hook)
    if path is None or is_ephemeral(hook):
        return True
    claimed = path.with_name(f"{path.stem}-{id}.claimed")
    try:
        make_private(path.parent)
        os.close(os.open(claimed, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    except OSError:
        return True
    return True


def claim_event(hook: Hook) -> bool:
    """Return False if another agent's hook answered the same event of this session a moment ago.

    VS Code runs the hooks of Claude Code and of Copilot for one session. The first one owns the event.
    """
    path, ours = _deliveries_file(hook), hook.via or hook.host
    if path is None:
        return True
    owned = path.with_name(f"{path.stem}-{digest(f'{hook.event} {hook.prompt}')}.event")
    with suppress(OSError):
        host, age = owned.read_text("utf-8"), time.time() - owned.stat().st_mtime
        if host != ours and age < _ONE_EVENT:
            return False
    with suppress(OSError):
        make_private(path.parent)
        fresh = owned.with_name(f"{owned.name}.{os.getpid()}-{get_ident()}")
        fresh.write_text(ours, "utf-8")
        fresh.replace(owned)
    return True


def forget_deliveries(hook: Hook) -> None:
    """Forget what a session has, after its context was emptied."""
    if path := _deliveries_file(hook):
        for claimed in path.parent.glob(f"{path.stem}-*.claimed"):
            claimed.unlink(missing_ok=True)
    _write_deliveries(hook, Deliveries(emptied=True))


def _write_deliveries(hook: Hook, value: Deliveries) -> None:
    if path := _deliveries_file(hook):
        with suppress(BethinkError):
            write_json(path, value._asdict())


def remove_old_deliveries() -> None:
    """Remove the files of all but the newest sessions."""
    with suppress(OSError):  # another hook may be at it
        files = (folder() / "given").iterdir()
        newest = sorted(files, key=lambda path: path.stat().st_mtime, reverse=True)
        for path in newest[MOST_SESSIONS:]:
            path.unlink()


def digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _deliveries_file(hook: Hook) -> Path | None:
    """Return the file of a session's deliveries, named by a hash: a host may use anything as an id.

    The host is not part of the name: VS Code runs the hooks of Claude Code and of Copilot for the same session.
    """
    name = hook.session or hook.transcript
    return folder() / "given" / f"{digest(name)}.json" if name else None


# Pausing and resuming


def pause_memory(scope: str, name: str = "", seconds: float | None = None) -> Pause:
    """Pause memory for some time, or until resumed. Replaces a current pause of the same scope."""
    now = time.time()
    fresh = Pause(scope, now, None if seconds is None else now + seconds, name)
    _end_pauses(lambda one: one.scope == scope, [fresh])
    return fresh


def resume_memory(scope: str) -> list[Pause]:
    """End the pause of a project, or with EVERYWHERE all current pauses. Return those that ended."""
    return _end_pauses(lambda one: scope in (EVERYWHERE, one.scope), [])


def _end_pauses(is_meant: Callable[[Pause], bool], fresh: list[Pause]) -> list[Pause]:
    """End the matching current pauses, add fresh ones, and return those that ended."""
    path, now = pauses_file(), time.time()
    with suppress(OSError):  # writing says it better
        make_private(path.parent)
    with textfile.alone(path.parent):
        known = read_pauses()
        ended = [one for one in known if one.holds(now) and is_meant(one)]
        kept = [one._replace(until=now) if one in ended else one for one in known]
        write_json(path, [one._asdict() for one in (*kept, *fresh)])
    return ended
