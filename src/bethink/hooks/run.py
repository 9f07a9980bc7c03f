"""A hook from what its host said to what it prints. It never fails: whatever is broken, it says nothing and counts it for `doctor`.

Reading events tell the model something; the others note the transcript and wake the worker. Nothing is written but the spool, what a
session was given, and the counters. A database that does not exist yet is not made, a locked one is not waited for, and no model is loaded.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bethink.hooks import event as events
from bethink.hooks.event import Hook

if TYPE_CHECKING:
    from collections.abc import Callable

    from bethink.api import Bethink
    from bethink.config import Config
    from bethink.hooks.prompt import Told
    from bethink.project import Project

OFF = "BETHINK_HOOKS"
BUSY = 1.0  # seconds to wait for a lock of another process
NOTED = ("stop", "subagent-stop", "pre-compact", "post-compact", "session-end")
EMPTIED = ("compact", "clear")  # sources of a session that has lost its context
HOMES = (
    "CLAUDE_PROJECT_DIR",
    "CURSOR_PROJECT_DIR",
    "COPILOT_PROJECT_DIR",
    "GEMINI_PROJECT_DIR",
)  # where a host's session began
KEEP = (
    "Keep in the summary: decisions with their reasons, open questions, problems with what solved them, what is half done, and the next"
    " steps; with the names of files, commands and identifiers as they are."
)


class Place(NamedTuple):
    project: Project
    config: Config
    database: str  # path or URL

    @property
    def known(self) -> bool:
        """Whether there is a database to read."""
        return "://" in self.database or Path(self.database).exists()


def run(event: str, host: str, data: bytes, limited: Callable[[float], None] | None = None) -> str:
    """What to print. `limited` is told the seconds that the settings give a hook."""
    if switched_off() or (host == "claude" and borrowed()):
        return ""
    try:
        hook = events.read(event, host, data)
        return noted(hook, limited) if hook.event in NOTED else read(hook, limited)
    except Exception as error:  # noqa: BLE001 - the outermost boundary: an agent must never notice what is wrong with its memory
        count(event, host, f"{type(error).__name__}: {error}")
        return ""


def switched_off() -> bool:
    """Whether the environment says that hooks are to do nothing, as it does where Bethink asks an agent something itself."""
    return os.environ.get(OFF, "").strip().lower() in ("off", "0", "false", "no")


def borrowed() -> bool:
    """Whether another host runs what a project has for Claude Code, as Copilot CLI and Cursor do: they have hooks of their own."""
    return not os.environ.get("CLAUDECODE") and bool(
        os.environ.get("COPILOT_CLI") or os.environ.get("CURSOR_VERSION")
    )


def count(event: str, host: str, message: str) -> None:
    with suppress(Exception):  # nothing is left to tell it to
        from bethink.hooks import failures

        failures.note(host, event, message)


def noted(hook: Hook, limited: Callable[[float], None] | None = None) -> str:
    """Notes that a transcript grew, and wakes the worker that reads it."""
    if hook.event == "subagent-stop" and not hook.agent and hook.host == "claude":
        return ""  # a call of the host's own, whose transcript is never written
    from bethink.hooks import pause, spool

    place = located(hook)
    if limited:
        limited(place.config.hook_seconds)
    spool.note(hook, place.database, place.project)
    spool.wake(place.database)
    if hook.event != "pre-compact" or pause.paused(hook.directory, place.project.scope):
        return ""
    from bethink.hooks.dialects import render

    return render(hook, KEEP)


def read(hook: Hook, limited: Callable[[float], None] | None = None) -> str:
    """What to tell a session."""
    from bethink.hooks.pause import paused

    place = located(hook)
    if limited:
        limited(place.config.hook_seconds)
    if hook.event == "prompt":
        _note_begun(hook, place)
    if paused(hook.directory, place.project.scope):
        return ""
    text = ""
    if place.known and _wanted(hook, place.config):
        from bethink.api import Bethink

        config = place.config._replace(
            database=place.database, busy_timeout=min(BUSY, place.config.busy_timeout)
        )
        memory = Bethink(directory=place.project.worktree, config=config, actor=f"hook:{hook.host}")
        text = answered(hook, memory)
        if not limited:  # a process of its own ends without: closing might first put the writes of others into the database file
            memory.close()
    if hook.event == "session-start":
        _tidy(hook, place.database)
    return text


def _note_begun(hook: Hook, place: Place) -> None:
    """Notes the transcript of a turn that begins now: if its agent is killed, the next hook of any session has it read."""
    from bethink.errors import BethinkError
    from bethink.hooks import spool

    if hook.source in ("", "user", "sdk") and hook.transcript:
        try:
            spool.note(hook, place.database, place.project)
        except BethinkError as error:
            count(hook.event, hook.host, str(error))


def _tidy(hook: Hook, database: str) -> None:
    """Has what a session that was killed left behind read. Its failing is no reason to keep a briefing back."""
    from bethink.errors import BethinkError
    from bethink.hooks import given, spool

    try:
        given.clean()
        spool.wake(database)
    except (OSError, BethinkError) as error:
        count(hook.event, hook.host, str(error))


def _wanted(hook: Hook, config: Config) -> bool:
    if hook.event == "session-start":
        return config.briefing_tokens > 0
    if hook.event == "prompt":
        from bethink.hooks.vocabulary import telling

        return config.prompt_tokens > 0 and config.prompt_bar < 1 and telling(hook.prompt)
    return config.tool_hooks and bool(hook.files)


def answered(hook: Hook, memory: Bethink, mode: str = "keyword") -> str:
    """What a host is told in answer to a hook, in its dialect, noted as given."""
    from bethink.hooks import given
    from bethink.hooks.dialects import render

    result = _told(hook, memory, mode)
    if hook.event == "session-start" and hook.source in EMPTIED:
        given.forget(hook)
    elif hook.source == "resume" and result.digest and result.digest == given.read(hook).briefing:
        return ""  # it stands in the session that is resumed
    output = render(hook, result.text)
    if output:
        given.note(hook, result.ids, result.digest or None)
    return output


def _told(hook: Hook, memory: Bethink, mode: str) -> Told:
    if hook.event == "session-start":
        from bethink.hooks import briefing

        return briefing.told(hook, memory)
    if hook.event == "prompt":
        from bethink.hooks import prompt

        return prompt.told(hook, memory, mode)
    from bethink.hooks import tool

    return tool.told(hook, memory)


def located(hook: Hook) -> Place:
    """The project and the database that a session works with. Opens nothing."""
    from bethink import config as configuration
    from bethink.store import located as database

    found = project_of(hook)
    config = configuration.load(found.root)
    return Place(found, config, database(config, found))


def project_of(hook: Hook, began: str = "") -> Project:
    """The project that a session belongs to. Outside git, a folder inside the one that it began in is of the same project; where that
    was the host says, or `began`."""
    from bethink import project as projects

    found = projects.find(Path(hook.directory) if hook.directory else None)
    if (found.worktree / ".git").exists() or (found.root / ".bethink").is_dir():
        return found
    for home in filter(None, (*map(os.environ.get, HOMES), began)):
        begun = projects.find(Path(home))
        if found.root.is_relative_to(begun.root):
            return begun
    return found
