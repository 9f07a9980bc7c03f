"""Memories of failed commands: new ones, and what a page adds to known ones.

One memory holds one error of a project, whatever session, worktree or agent met it: the same error again raises its count, a fix closes
it, the same fix again makes it more certain. Only the few of a session that are worth it are kept. Nothing here writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from bethink.ingest.extract import extract, keywords, summarize
from bethink.ingest.failures import (
    CODE,
    FLAKY,
    Failure,
    Pending,
    as_count,
    describes_same,
    follow_turns,
    is_central,
    read_fix,
    show_command,
)
from bethink.ingest.pipeline import clean_passage, make_memory
from bethink.ingest.redact import redact, redact_value
from bethink.ingest.tools import TOOL_KINDS
from bethink.model import FAILURES, TRUST, Change, Entry, Filter, Memory, Passage, ToolEvent
from bethink.store.places import content_hash

if TYPE_CHECKING:
    from bethink.ingest.conversation import NewTurn, Recipe

PER_PAGE, PER_SESSION = 4, 10  # new memories; by hand
WAITING = 6  # failures of a thread that wait for their fix across pages; by hand
# Confidence of a failure without a fix, with one, and what the same fix adds when it helps again; by hand.
UNSOLVED, SOLVED, STEP_PER_REPEAT, SUREST = 0.5, 0.6, 0.15, 0.95
FAILED_AGAIN = 0.2  # what a fix loses when the same error came again after it; by hand


class Remedies(NamedTuple):
    """The failures of a page: new memories, changes of known ones, and the state for the next page."""

    add: tuple[Entry, ...] = ()
    change: tuple[Change, ...] = ()
    vectors: Mapping[str, Sequence[Any]] = {}
    made_of: Mapping[str, str] = {}
    cache: Mapping[str, Sequence[Any]] = {}
    state: Mapping[str, Any] = {}  # the keys "waiting" and "failures" of the session's state


def remember_failures(recipe: Recipe, new_turns: Sequence[NewTurn]) -> Remedies:
    """Compare the failures of a page with the known ones of its project."""
    found, state = _follow_threads(recipe, new_turns)
    kept = int(recipe.state.get("failures", 0))
    if not found:
        return Remedies(state={**state, "failures": kept})
    known = _find_known(recipe, found)
    fresh: dict[str, Memory] = {}
    changed: dict[str, Memory] = {}
    room = min(PER_PAGE, PER_SESSION - kept)
    for failure in _rank(found):
        old = known.get(failure.signature)
        if old is None and failure.signature in fresh:
            once = fresh[failure.signature]
            fresh[failure.signature] = _add_to(once, failure, recipe.session)
        elif old is None:
            memory = _make_memory(recipe, failure) if len(fresh) < room else None
            if memory:
                fresh[failure.signature] = memory
        elif old.deleted_at is None and old.trust <= min(recipe.trust, TRUST["agent"]):
            changed[old.id] = _add_to(changed.get(old.id, old), failure, recipe.session)
    reworded = [one for one in changed.values() if one.content != _by_id(known, one.id).content]
    vectors, cache = recipe.make_vectors([*fresh.values(), *reworded])
    own, anew = vectors[: len(fresh)], vectors[len(fresh) :]
    return Remedies(
        tuple(Entry(one, some) for one, some in zip(fresh.values(), own, strict=True)),
        tuple(_describe_change(_by_id(known, id), one) for id, one in changed.items()),
        {one.id: some for one, some in zip(reworded, anew, strict=True) if len(some)},
        {one.id: one.content for one in reworded},
        cache,
        {**state, "failures": kept + len(fresh)},
    )


def _by_id(known: Mapping[str, Memory], id: str) -> Memory:
    return next(one for one in known.values() if one.id == id)


def _find_known(recipe: Recipe, failures: Sequence[Failure]) -> dict[str, Memory]:
    """Return stored failures with these signatures, forgotten ones too: they do not come back."""
    filter = Filter(
        (recipe.options.scope,), ("failure",), include_deleted=True, include_expired=True
    )
    signatures = sorted({one.signature for one in failures})
    found = recipe.store.find_failures(signatures, filter._replace(now=recipe.options.now))
    return {str(one.metadata.get("signature")): one for one in reversed(found)}


# From tool events to failures


def _follow_threads(
    recipe: Recipe, new_turns: Sequence[NewTurn]
) -> tuple[list[Failure], Mapping[str, Any]]:
    """Return the failures worth keeping, fixed or open, and those that wait for the next page.

    The session and each sub-agent are followed separately.
    """
    waiting: dict[str, list[Any]] = dict(recipe.state.get("waiting") or {})
    found: list[Failure] = []
    by_thread = sorted(new_turns, key=lambda one: one.turn.agent or "")
    for thread, turns in groupby(by_thread, key=lambda one: one.turn.agent or ""):
        by_turn = [(one.turn.role, [*map(redact_event, one.turn.events)]) for one in turns]
        if thread not in waiting and not any(events for _, events in by_turn):
            continue
        before = [_load_pending(one) for one in waiting.pop(thread, [])]
        fixed, left = follow_turns(by_turn, before)
        seen = {(one.failure.signature, one.failure.times) for one in before}
        unsolved = [one.failure for one in left if is_open_item(one.failure)]
        found += fixed
        found += [one for one in unsolved if (one.signature, one.times) not in seen]
        if left:
            waiting[thread] = redact_value([_dump_pending(one) for one in left[-WAITING:]])[0]
    return found, {"waiting": waiting}


def redact_event(event: ToolEvent) -> ToolEvent:
    """Redact an event before anything is read from it: a part of a command may tear a `<private>` apart."""
    return event._replace(
        command=redact(event.command).text,
        output=redact(event.output).text,
        change=redact(event.change).text,
        arguments=redact(event.arguments).text,
    )


def is_open_item(failure: Failure) -> bool:
    """Return True if a failure without a fix is worth keeping: of the environment, or a repeated one."""
    if failure.kind in TOOL_KINDS or not is_central(failure.command):
        return False
    return failure.kind not in (*CODE, "other", FLAKY) or failure.times > 1


def _dump_pending(one: Pending) -> list[Any]:
    return [list(one.failure), one.changes, one.cleared, one.commands, one.interrupted]


def _load_pending(values: Sequence[Any]) -> Pending:
    failure, changes, cleared, commands, *interrupted = values  # none from earlier versions
    return Pending(Failure(*failure), list(changes), cleared, int(commands), interrupted != [False])


def _rank(found: Iterable[Failure]) -> list[Failure]:
    """Fixed before open, what the environment needs before what the code did wrong."""
    minor = (*CODE, "other", FLAKY)
    return sorted(found, key=lambda one: (not one.fix, one.kind in minor, -one.times, one.line))


# From failures to memories


def _make_memory(recipe: Recipe, failure: Failure) -> Memory | None:
    at = _read_time(failure.at)
    passage = Passage(
        failure.text,
        kind="failure",
        importance=4.0,
        confidence=SOLVED if failure.fix else UNSOLVED,
        lines=(failure.line, max(failure.line, failure.fixed_line)),
        created_at=at or recipe.options.now,
        metadata=_describe(failure, recipe.session) | {"host": recipe.host},
        session=recipe.session,
        position=FAILURES,
    )
    if redact(failure.text).empty:
        return None
    cleaned, _ = clean_passage(passage, recipe.options.longest)
    options = recipe.options._replace(trust=min(recipe.trust, TRUST["agent"]))
    memory = make_memory(extract(cleaned), recipe.source, options, 0)
    return memory._replace(answered=bool(failure.fix))


def _describe(failure: Failure, session: str) -> dict[str, Any]:
    return {
        "command": show_command(failure.command),
        "error": failure.error,
        "signature": failure.signature,
        "causes": list(failure.causes),
        "cause": failure.kind,
        "fix": failure.fix,
        "times": failure.times,
        "last": failure.at,
        "held": 1 if failure.fix else 0,
        "last_session": session,
    }


def _add_to(old: Memory, failure: Failure, session: str) -> Memory:
    """A known failure with what a page adds: how often, when last, and the fix that helped."""
    was = old.metadata
    again = _describe(failure, session)
    same = session == was.get("last_session")
    # An open failure that this session stored before is counted there already.
    times = (
        max(as_count(was.get("times"), 1), failure.times)
        if same
        else as_count(was.get("times"), 1) + failure.times
    )
    metadata = {
        **was,
        "times": times,
        "last": failure.at or was.get("last"),
        "last_session": session,
    }
    old, metadata = _lower(old, failure, metadata)
    if not failure.fix:
        # A failure that was closed without a known fix is open again when it comes back.
        return old._replace(metadata=metadata, answered=bool(was.get("fix")) and old.answered)
    flaky = failure.kind == FLAKY and was.get("cause") != FLAKY and was.get("fix")
    known = read_fix(old)
    corrected = bool(known) and known != was.get("fix")  # by a person
    repeated = describes_same(failure.fix, known)
    if not repeated and (corrected or flaky or as_count(was.get("held")) > 1):
        # A fix that held several times is not replaced by one that helped once, none by luck, and no correction.
        _, other = _redact_fix(failure, {"fix": again["fix"]})
        return old._replace(metadata={**metadata, "also_fixed_by": other["fix"]}, answered=True)
    helped = as_count(was.get("held")) + 1 if repeated else 1
    confidence = min(SUREST, SOLVED + STEP_PER_REPEAT * (helped - 1))
    text, metadata = _redact_fix(
        failure,
        metadata | {name: again[name] for name in ("command", "error", "fix", "cause", "causes")},
    )
    metadata["held"] = helped
    if repeated:
        return old._replace(metadata=metadata, confidence=confidence, answered=True)
    return old._replace(content=text, metadata=metadata, confidence=confidence, answered=True)


def _lower(
    old: Memory, failure: Failure, metadata: dict[str, Any]
) -> tuple[Memory, dict[str, Any]]:
    """A known failure with less confidence in its fix where that was tried and the same error came again."""
    fix = read_fix(old)
    tried = any(f"`{command}`" in fix for command in failure.tried)
    if not fix or not tried or describes_same(failure.fix, fix):
        return old, metadata
    failed = as_count(old.metadata.get("did_not_help")) + 1
    confidence = max(0.1, old.confidence - FAILED_AGAIN)
    return old._replace(confidence=confidence), {**metadata, "did_not_help": failed}


def _redact_fix(failure: Failure, metadata: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return redact(failure.text).text.strip(), redact_value(metadata)[0]


def _describe_change(old: Memory, new: Memory) -> Change:
    names = ("content", "metadata", "confidence", "answered")
    fields: dict[str, Any] = {
        name: getattr(new, name) for name in names if getattr(new, name) != getattr(old, name)
    }
    if "content" in fields:
        fields["content_hash"] = content_hash(new.content)
        fields["keywords"] = keywords(new.content)
        fields["summary"] = summarize(new.content)
    return Change(old.id, "reread", fields)


def _read_time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
