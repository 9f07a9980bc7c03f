"""Undo the last change: find it in the history, and write the values that it replaced.

A change is everything that one command wrote: a new note, and what it replaced or closed. Undoing twice goes one change further back.
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple

from bethink.errors import InvalidInput
from bethink.model import BACKGROUND, Change, Event, Memory, Relation, is_agent
from bethink.store.base import Store
from bethink.store.places import content_hash, embedded_text
from bethink.store.rows import SETTABLE, from_history
from bethink.store.transfer import sign_actor

UNDO = "undo"  # the action in the history
_SKIPPED = ("repeat", "keep", "cite")  # only record another wording, or where a note was stored
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
    """The caller's newest change that is not undone yet."""

    events: tuple[_Recorded, ...]  # newest first
    actor: str  # the caller, as the history names it

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.id for one in self.events))


class Undo(NamedTuple):
    """Everything that takes a change back."""

    steps: tuple[Step, ...]
    changes: tuple[Change, ...]
    unrelate: tuple[Relation, ...]
    relate: tuple[Relation, ...]
    reworded: tuple[Memory, ...]  # memories with their former text, which need a vector
    unchanged: tuple[tuple[str, datetime], ...]  # when each was last changed: not again meanwhile


def find_last_change(store: Store, scopes: Sequence[str], actor: str) -> LastChange:
    """Find the caller's last change, not one by another person, an agent or the worker."""
    own = sign_actor(actor, getattr(store, "person", ""))
    limit = _FIRST
    while True:
        found = store.list_events(scopes, own, limit)
        groups = _group([_Recorded(*one) for one in found])
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
    return LastChange(tuple(last), own)


def _group(found: Sequence[_Recorded]) -> list[tuple[_Recorded, ...]]:
    """Return the events of each change, newest first."""
    own = [one for one in found if one.event.action not in _SKIPPED and _changed(one.event)]
    return [tuple(members) for _, members in groupby(own, key=lambda one: one.event.at)]


def _changed(event: Event) -> bool:
    """Return True unless an update wrote the values that were there."""
    return event.action != "update" or event.before != event.after


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
    unchanged = tuple((one.id, one.updated_at) for one in known.values())
    related = store.relations(change.ids)
    steps: list[Step] = []
    changes: list[Change] = []
    gone: list[Relation] = []
    back: list[Relation] = []
    reworded: dict[str, Memory] = {}
    for id, event in change.events:
        one = known[id]
        _refuse_changed(store, one, event, change.actor)
        fields = _find_former(one, event, now)
        if event.action == "add":
            gone += (one for one in related if one.source == id and one.type in _RELATIONS)
        gone += _find_brought(id, event, related)
        if was := event.before.get("superseded_by"):
            back.append(Relation(was, id, "supersedes"))
        if not fields:
            continue
        former = one._replace(**{name: fields[name] for name in fields.keys() & set(one._fields)})
        if embedded_text(former) != embedded_text(one):
            reworded[id] = former
        known[id] = former
        changes.append(Change(id, UNDO, fields))
        steps.append(Step(one, event.action, _describe(event)))
    return Undo(
        tuple(reversed(steps)),
        tuple(changes),
        tuple(dict.fromkeys(gone)),
        tuple(back),
        tuple(reworded.values()),
        unchanged,
    )


def _find_brought(id: str, event: Event, related: Sequence[Relation]) -> list[Relation]:
    """Return the relations of a change that replaced or closed a memory: they would do it again."""
    to = [one for one in related if one.target == id]
    by = event.after.get("superseded_by")
    replaced = [one for one in to if by and one.source == by and one.type == "supersedes"]
    closed = [
        one
        for one in to
        if event.after.get("answered") and one.type == "answers" and one.created_at == event.at
    ]
    return replaced + closed


def _refuse_changed(store: Store, one: Memory, event: Event, actor: str) -> None:
    """Refuse to overwrite what was changed since, and to remove what another person changed."""
    later = [other for other in store.history(one.id) if other.number > event.number]
    if event.action == "add":
        others = [other for other in later if _is_another_person(other, actor)]
    elif all(_has_value(one, name, value) for name, value in event.after.items()):
        others = []
    else:
        others = [other for other in later if other.after.keys() & event.after.keys()]
    if others:
        raise InvalidInput(
            f"The memory {one.id} was changed again since, by {others[-1].actor}.",
            f"`bethink history {one.id}` lists its versions; `bethink restore {one.id} --to N` brings one back.",
        )


def _is_another_person(event: Event, actor: str) -> bool:
    is_background = event.actor.partition(":")[0].partition(" ")[0] == BACKGROUND
    known = event.actor == actor or event.action in _SKIPPED
    return not (known or is_background or is_agent(event.actor))


def _has_value(one: Memory, name: str, value: object) -> bool:
    """Return True if a field still has the value that a change gave it."""
    if name not in one._fields:
        return True
    now, then = getattr(one, name), from_history(name, value)
    return set(now) == set(then) if name == "entities" else now == then


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
