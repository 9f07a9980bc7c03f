"""Enforce a rule of the user: suggest patterns, show what they would have denied, put and lift them.

Only surfaces that a person uses call `enforce` and `lift` here; there is no tool for agents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from bethink import agents, enforced
from bethink.agents.agent import ToolCall
from bethink.api import Bethink
from bethink.enforced import EnforcedRule
from bethink.errors import BethinkError, InvalidInput, NotFound
from bethink.features import conversations
from bethink.ingest.enforcement import check_command, check_path, find_match
from bethink.ingest.redact import redact
from bethink.ingest.rules import list_quoted
from bethink.model import TRUST, Memory, ToolEvent, path_of

_SESSIONS = 40  # newest conversations in which a preview looks; a bound
LARGEST = 40_000_000  # bytes of a transcript that a preview reads
_LONGEST = 300  # characters of what to do instead
_SHOWN = 5  # calls that a preview lists; a bound
_CALL = 160  # characters of a call


class PastCall(NamedTuple):
    """A recorded call that a rule would have denied."""

    session: str
    line: int
    call: str


class Preview(NamedTuple):
    """The effect that a rule would have had on the recorded conversations of a project."""

    sessions: int
    calls: int
    denied: int
    examples: tuple[PastCall, ...]


class EnforcedMemory(NamedTuple):
    """An enforced rule with its memory."""

    id: str
    scope: str
    content: str  # '' if the memory is not in this database
    commands: tuple[str, ...]
    paths: tuple[str, ...]
    instead: str
    since: str  # ISO time
    valid: bool  # False if it denies nothing any more
    why: str = ""  # the reason for that


def enforce(
    memory: Bethink, id: str, commands: Sequence[str], paths: Sequence[str], instead: str = ""
) -> EnforcedRule:
    """Deny matching calls from now on. Only a valid statement of the user can be enforced."""
    rule = make_rule(memory, find_statement(memory, id), commands, paths, instead)
    return enforced.put_rule(rule)


def make_rule(
    memory: Bethink, one: Memory, commands: Sequence[str], paths: Sequence[str], instead: str = ""
) -> EnforcedRule:
    """Return a rule with checked patterns, not enforced yet."""
    if not commands and not paths:
        raise InvalidInput(
            "A rule needs a command or a path that it forbids.",
            f'bethink enforce {memory.store.abbreviate([one.id])[one.id]} --command "git push --force"',
        )
    if len(instead) > _LONGEST:
        raise InvalidInput(
            f"The advice has {len(instead)} characters, and {_LONGEST} are the most.",
            "Name the command to run instead.",
        )
    return EnforcedRule(
        one.id,
        one.scope,
        tuple(dict.fromkeys(map(check_command, commands))),
        tuple(dict.fromkeys(map(check_path, paths))),
        redact(" ".join(instead.split()).rstrip(".")).text,
    )


def find_statement(memory: Bethink, id: str) -> Memory:
    """Return the memory of a rule, if it is valid and the user's own word."""
    one = memory.get(id, count=False)[0]
    if why := why_invalid(one):
        raise InvalidInput(
            f"Memory {memory.store.abbreviate([one.id])[one.id]} cannot be enforced: {why}.",
            'Say it yourself: bethink add "…" --kind preference, and enforce that.',
        )
    return one


def why_invalid(one: Memory) -> str:
    """Return why a memory denies nothing, '' if it does."""
    if one.deleted_at:
        return "it was forgotten"
    if one.superseded_by:
        return "a newer statement replaced it"
    if one.trust < TRUST["user"]:
        return "it is not your own statement"
    return ""


def lift(memory: Bethink, id: str) -> EnforcedRule:
    """Stop enforcing a rule. Its memory may be gone, so the id may be a beginning of that of a rule."""
    found = [one for one in enforced.read_rules() if one.id.startswith(id.lower())] if id else []
    if len(found) != 1:
        raise NotFound(
            f"No enforced rule has the id '{id}'."
            if not found
            else f"{len(found)} enforced rules begin with '{id}'.",
            "`bethink enforce --list` lists them.",
        )
    lifted = enforced.lift_rule(found[0].id)
    return lifted or found[0]


def list_enforced(memory: Bethink, everywhere: bool = False) -> list[EnforcedMemory]:
    """List the rules that hold in this project, or on this machine."""
    rules = enforced.read_rules() if everywhere else enforced.list_rules(memory.project.scope)
    return [_describe(memory, rule) for rule in rules]


def _describe(memory: Bethink, rule: EnforcedRule) -> EnforcedMemory:
    try:
        one = memory.get(rule.id, count=False)[0]
        content, why = one.content, why_invalid(one)
    except BethinkError:
        content, why = "", "its memory is not in this database"
    since = datetime.fromtimestamp(rule.since, UTC).isoformat(timespec="seconds")
    return EnforcedMemory(
        rule.id,
        rule.scope,
        content,
        rule.commands,
        rule.paths,
        rule.instead,
        since,
        not why,
        why,
    )


def suggest(one: Memory) -> tuple[list[str], list[str]]:
    """Return the commands and files that a statement quotes, as patterns to choose from."""
    commands, files = list_quoted(one.content)
    return [text for text in commands if _is_valid(text)], files


def _is_valid(pattern: str) -> bool:
    with suppress(InvalidInput):
        return bool(check_command(pattern))
    return False


# What it would have denied


def preview(memory: Bethink, rule: EnforcedRule) -> Preview:
    """Return the calls in recorded conversations of this project that a rule would have denied."""
    sessions = calls = 0
    denied: list[PastCall] = []
    root = str(memory.project.worktree)
    for session in conversations.sessions(memory, _SESSIONS):
        path = Path(path_of(session.source))
        events = list(_read_events(path, session.host))
        sessions += bool(events)
        for event in events:
            calls += 1
            call = ToolCall("", event.command, event.file, changes=bool(event.file))
            match = find_match([rule], call, root, event.directory or root)
            if match:
                text = redact(event.command or event.file).text
                denied.append(PastCall(session.id, event.line, " ".join(text.split())[:_CALL]))
    return Preview(sessions, calls, len(denied), tuple(denied[-_SHOWN:]))


def _read_events(path: Path, host: str) -> Iterator[ToolEvent]:
    with suppress(OSError, BethinkError):  # gone, or written by a program that we do not know
        if path.stat().st_size <= LARGEST:
            for turn in agents.read(path, host=host or None).turns():
                yield from turn.events
