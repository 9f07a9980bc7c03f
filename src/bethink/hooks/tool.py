"""Recall at a tool call: one line with the fix of the same error, or a rule about the file or command.

Most calls get nothing. Nothing is opened for a call that passed and that no rule is about: the index of rules (`hooks/rules.py`) is one
small file. An error is named without opening anything, and looked up by its signature, without a model.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bethink.agents.agent import ToolCall
from bethink.agents.base import clean
from bethink.agents.work import finish_event, shows_failure
from bethink.config import locate_database
from bethink.hooks import rules, spool, state
from bethink.hooks.state import Hook
from bethink.ingest.commands import clean_command, split_line
from bethink.ingest.rules import find_subjects, find_touched, is_about
from bethink.model import ToolEvent
from bethink.text.shell import shorten_command

if TYPE_CHECKING:
    from bethink.api import Bethink
    from bethink.config import Config
    from bethink.hooks.prompt import Context
    from bethink.ingest.failures import Failure
    from bethink.model import Memory
    from bethink.project import Project

_TOKENS = 60  # of the line, without the marks around it


def find_failure(hook: Hook, call: ToolCall) -> Failure | None:
    """Return the failure of a call, if its outcome is certain and its error can be named."""
    if not call.command and call.failed:
        return _read_tool_failure(hook, call)
    if not call.command or (not call.failed and not shows_failure(call.output)):
        return None
    from bethink.ingest.failures import read_failure, read_runs
    from bethink.ingest.redact import redact

    command = clean(shorten_command(call.command))
    event = ToolEvent(command=command, directory=hook.directory)
    event = finish_event(event, call.output, call.failed)
    event = event._replace(command=redact(command).text, output=redact(event.output).text)
    failed = [run for run in read_runs(event) if run.passed is False]
    return read_failure(failed[0], event) if failed else None


def _read_tool_failure(hook: Hook, call: ToolCall) -> Failure | None:
    from bethink.ingest.failures import read_tool_failure

    event = ToolEvent(
        tool=call.tool,
        arguments=clean(call.arguments),
        directory=hook.directory,
        changes=call.changes,
    )
    event = finish_event(event, call.output, failed=True)
    return read_tool_failure(event) if event.failed else None


def is_wanted(hook: Hook, config: Config, project: Project) -> bool:
    """Return True if memory may have a line for a call. Wakes the worker if the index may be outdated."""
    database = config.database
    index = rules.read_index(database, project.scope)
    if hook.event == "tool" and rules.is_stale(database, index):
        spool.note(hook._replace(event="prompt"), database, project)  # the turn goes on
        spool.wake(database, config)
    shown = state.read_deliveries(hook).ids
    for call in hook.calls:
        marked = rules.find_marked(index, find_touched(call.file, call.command))
        if any(id not in shown for id in marked) or find_failure(hook, call):
            return True
    return False


def recall_for_calls(hook: Hook, memory: Bethink) -> Context:
    """Return one line for the calls of an event: a known fix, or else a rule; each once in a session."""
    from bethink.hooks.prompt import Context
    from bethink.outgoing import fence_items, new_marker
    from bethink.recall.shape import cut, tokens

    for find in (_find_fix, _find_rule):
        for call in hook.calls:
            found = find(hook, call, memory)
            if found and state.claim(hook, found[0]):
                line = found[1] if tokens(found[1]) <= _TOKENS else cut(found[1], _TOKENS)
                return Context(fence_items([line], new_marker()), (found[0],))
    return Context()


def _find_fix(hook: Hook, call: ToolCall, memory: Bethink) -> tuple[str, str] | None:
    from bethink.features.failures import find_fix
    from bethink.ingest.failures import FLAKY

    failure = find_failure(hook, call)
    known = find_fix(memory, failure) if failure else None
    if known is None or known.id in state.read_deliveries(hook).ids:
        return None
    if _runs_fix(call.command, known.fix) or _is_gone(memory, known.fix):
        return None
    where = f", session {known.session[:8]}" if known.session else ""
    if known.cause == FLAKY:
        count = f"{known.held} times, last {known.last[:10]}{where}"
        return known.id, f"Flaky: the same command passed unchanged after this error ({count})"
    return known.id, f"This error was fixed before ({known.last[:10]}{where}): {known.fix}"


def _runs_fix(line: str, fix: str) -> bool:
    """Return True if a shell line runs the command of a fix already."""
    steps = {clean_command(one) for _, members in split_line(line) or () for one in members}
    return any(steps.issuperset(one.split(" && ")) for one in re.findall(r"`([^`]+)`", fix))


def _is_gone(memory: Bethink, fix: str) -> bool:
    """Return True if a fix names the place of a file that is not there any more."""
    from bethink.ingest.tools import find_place

    place = find_place(fix)
    return bool(place) and not (memory.project.worktree / place).exists()


def _find_rule(hook: Hook, call: ToolCall, memory: Bethink) -> tuple[str, str] | None:
    """A statement about the file or the command of a call, with its source."""
    from bethink.hooks.prompt import drop_disputed, is_in_every_context, is_own

    touched = find_touched(call.file, call.command)
    database = locate_database(memory.config, memory.project)
    index = rules.read_index(database, memory.project.scope)
    shown = state.read_deliveries(hook)
    ids = [id for id in rules.find_marked(index, touched) if id not in shown.ids]
    found = memory.store.select(ids, memory.filter()) if ids else {}
    live = [found[id] for id in ids if id in found]
    for one in drop_disputed(memory, live):
        own = is_own(hook, one) and not shown.emptied
        about = is_about(find_subjects(one.content[: rules.READ]), touched)
        if about and not own and not one.newer and not is_in_every_context(one):
            return one.id, _describe_rule(one, rules.find_gone(index, one, memory.project.worktree))
    return None


def _describe_rule(one: Memory, missing: str) -> str:
    where = f", session {one.session[:8]}" if one.session else ""
    gone = f"; {missing} no longer exists" if missing else ""
    return f"{one.kind.capitalize()} ({one.created_at:%Y-%m-%d}{where}{gone}): {one.content}"
