"""Undo the last change: find it in the history, and write the values that it replaced.

A change is everything that one command wrote: a new note, and what it replaced or closed. Undoing twice goes one change further back.
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple

from bethink.errors import InvalidInput
from bethink.model import Change, Event, Memory, Relation, is_agent
from bethink.store.base import Store
from bethink.store.places import content_hash, embedded_text
from bethink.store.rows import SETTABLE, from_history

UNDO = "undo"  # the action in the history
_SKIPPED = ("repeat", "keep")  # only record another wording
_FIRST, _LARGEST = 500, 100_000  # events to look through; a bound
_RELATIONS = ("supersedes", "answers", "may_replace", "contradicts")  # that a new note brings


class Step(NamedTuple):
    """One undone change of a memory."""

    memory: Memory
    action: str  # that was undone: add, update, forget …
    effect: str  # on the memory, in a few words


class _Recorded(NamedTuple):
    id: str
    event: Event


class LastChange(NamedTuple):
    """The newest change that is not undone yet."""

    events: tuple[_Recorded, ...]  # newest first

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.id for one in self.events))


class Undo(NamedTuple):
    """Everything that takes a change back."""

    steps: tuple[Step, ...]
    changes: tuple[Change, ...]
    unrelate: tuple[Relation, ...]
    reworded: tuple[Memory, ...]  # memories with their former text, which need a vector


def find_last_change(
    store: Store, scopes: Sequence[str], actor: str, is_person: bool
) -> LastChange:
    """Find the caller's last change: a person's, or that of one agent."""
    limit = _FIRST
    while True:
        found = store.list_events(scopes, limit)
        groups = _group([_Recorded(*one) for one in found], is_person, actor)
        # The last group may go on beyond what was read.
        complete = groups if len(found) < limit else groups[:-1]
        if (last := _skip_undone(complete)) or len(found) < limit or limit >= _LARGEST:
            break
        limit *= 10
    if not last:
        raise InvalidInput(
            "There is no change to undo.",
            "`bethink history ID` lists the versions of a memory; `bethink restore ID --to N` brings one back.",
        )
    return LastChange(tuple(last))


def _group(found: Sequence[_Recorded], is_person: bool, actor: str) -> list[tuple[_Recorded, ...]]:
    """Return the events of each change by this caller, newest first."""
    own = [
        one
        for one in found
        if (not is_agent(one.event.actor) if is_person else one.event.actor == actor)
        and one.event.action not in _SKIPPED
    ]
    parts = groupby(own, key=lambda one: (one.event.at, one.event.actor))
    return [tuple(members) for _, members in parts]


def _skip_undone(groups: Sequence[tuple[_Recorded, ...]]) -> tuple[_Recorded, ...]:
    """Return the newest change that no later undo took back."""
    undone = 0
    for events in groups:
        if any(one.event.action == UNDO for one in events):
            undone += 1
        elif undone:
            undone -= 1
        else:
            return events
    return ()


def plan(store: Store, change: LastChange, now: datetime) -> Undo:
    """Return what writes the values that the change replaced."""
    known = {one.id: one for one in store.get(change.ids)}
    steps: list[Step] = []
    changes: list[Change] = []
    gone: list[Relation] = []
    reworded: dict[str, Memory] = {}
    for id, event in change.events:
        one = known[id]
        _refuse_changed(store, one, event, change)
        fields = _find_former(one, event, now)
        if event.action == "add":
            own = (relation for relation in store.relations([id]) if relation.source == id)
            gone += (relation for relation in own if relation.type in _RELATIONS)
        if not fields:
            continue
        former = one._replace(**{name: fields[name] for name in fields.keys() & set(one._fields)})
        if embedded_text(former) != embedded_text(one):
            reworded[id] = former
        known[id] = former
        changes.append(Change(id, UNDO, fields))
        steps.append(Step(one, event.action, _describe(event)))
    return Undo(tuple(reversed(steps)), tuple(changes), tuple(gone), tuple(reworded.values()))


def _refuse_changed(store: Store, one: Memory, event: Event, change: LastChange) -> None:
    """Refuse to overwrite what another caller changed since."""
    own = {recorded.event.number for recorded in change.events}
    later = [
        other
        for other in store.history(one.id)
        if other.number > event.number
        and other.number not in own
        and other.action not in (UNDO, *_SKIPPED)
        and other.after.keys() & (event.after.keys() or {"deleted_at"})
    ]
    if later and event.action != "add":
        raise InvalidInput(
            f"The memory {one.id} was changed again since, by {later[-1].actor}.",
            f"`bethink history {one.id}` lists its versions; `bethink restore {one.id} --to N` brings one back.",
        )


def _find_former(one: Memory, event: Event, now: datetime) -> dict[str, Any]:
    """Return the fields of a memory as they were before an event."""
    if event.action == "add":
        return {"deleted_at": now} if one.deleted_at is None else {}
    fields = {
        name: from_history(name, value)
        for name, value in event.before.items()
        if name in SETTABLE or name == "entities"
    }
    if fields.get("deleted_at"):
        fields["deleted_at"] = now
    if "superseded_by" in fields:
        fields.pop("valid_to", None)  # follows from the successor
    if "content" in fields:
        fields["content_hash"] = content_hash(fields["content"])
    if "usefulness" in event.before:
        fields.pop("usefulness", None)
        fields["vote"] = event.before["usefulness"] - event.after["usefulness"]
    return fields


def _describe(event: Event) -> str:
    """Name the effect of undoing an event."""
    before = event.before
    if event.action == "add":
        return "removed"
    if "deleted_at" in before:
        return "forgotten again" if before["deleted_at"] else "restored"
    if "superseded_by" in before:
        return "replaced again" if before["superseded_by"] else "valid again"
    if "answered" in before:
        return "closed again" if before["answered"] else "reopened"
    return "changed back"
