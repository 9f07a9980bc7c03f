"""Changes to an existing memory: authority, redaction, extraction, versions, traces of a purge.

Nothing here writes.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from bethink.errors import InvalidInput, NeedsPerson
from bethink.ingest.extract import entities, keywords, summarize
from bethink.ingest.pipeline import clean_passage
from bethink.model import (
    CONVERSATION_SCOPE,
    EDITABLE,
    EVERYTHING,
    IDEAS,
    OPEN_KINDS,
    PERSONAL,
    TRUST,
    Batch,
    Change,
    Event,
    Filter,
    Memory,
    Passage,
    fields_of,
    make_passage,
    turn_of,
)
from bethink.store.base import Store
from bethink.store.places import EMBEDDING_TEXT, content_hash
from bethink.store.rows import from_history
from bethink.text import as_entity, check_kind

Fields = dict[str, Any]
CLEARABLE = frozenset(name for name, info in fields_of(Memory).items() if info.clearable)
# Conversions of values that a passage stores in another form.
READ: Mapping[str, Callable[[Any], Any]] = {
    "kind": check_kind,
    "tags": tuple,
    "entities": lambda names: tuple(map(as_entity, names)),
}


# Authority


def touched_ids(batch: Batch) -> set[str]:
    """Return the existing memories that a batch changes, removes or relates."""
    added = {entry.memory.id for entry in batch.add}
    related = {id for one in (*batch.relate, *batch.unrelate) for id in one[:2]}
    return ({one.id for one in batch.change} | {*batch.purge} | related) - added


def check_authority(batch: Batch, known: Mapping[str, Memory], trust: int) -> None:
    """Refuse a batch in which an agent changes a person's memory, or purges anything.

    `known` holds the memories that the batch touches. Agents add and propose: on a memory that is trusted more than they are, the
    fields whose rule in `model.Memory` allows it may change, and relations may be added that retire nothing.
    """
    if trust >= TRUST["user"]:
        return
    if batch.purge:
        raise NeedsPerson(
            "Purging cannot be undone, so an agent cannot do it.",
            "An agent's request to purge waits for the user.",
        )
    for change in batch.change:
        old = known.get(change.id)
        if old and old.trust > trust:
            _check_change(old, change)
    for one in batch.relate:
        target = known.get(one.target)
        if one.type == "supersedes" and target and target.trust > trust:
            raise own_word(target, "successor")
    for one in batch.unrelate:
        source = known.get(one.source)
        if source and source.trust > trust:
            raise own_word(source, "relation")


def _check_change(old: Memory, change: Change) -> None:
    """Refuse an agent's change of a person's memory, unless the rules of its fields allow it."""
    refused = []
    for name, value in change.fields.items():
        rule = "count" if name == "vote" else fields_of(Memory)[name].field.rule
        if rule == "count":
            allowed = name == "vote" and value >= 0
        elif rule == "settle":
            allowed = old.kind in OPEN_KINDS or value == getattr(old, name)
        else:
            allowed = value == getattr(old, name)
        if not allowed:
            refused.append(name)
    if refused:
        # A new text brings a new hash, new keywords and so on: name what was asked for.
        named = [name for name in refused if name in EDITABLE] or refused
        raise own_word(old, ", ".join(sorted(named)))


def own_word(memory: Memory, part: str) -> NeedsPerson:
    """Make the refusal to let an agent change a part of a person's memory."""
    return NeedsPerson(
        f"The memory {memory.id} is the user's own word; its {part} is for the user to change.",
        f"Store what is true now with supersedes {memory.id}: it waits in the inbox until the user confirms it.",
    )


# New values


def edit_values(
    memory: Memory, fields: Fields, clear: Sequence[str], longest: int, trust: int
) -> Fields:
    """Return the values that change.

    A new text brings its own summary, keywords and entities, unless they are passed too, and is trusted as much as its author.
    """
    if unknown := (set(fields) - EDITABLE) | (set(clear) - CLEARABLE):
        raise InvalidInput(
            f"A memory's {', '.join(sorted(unknown))} cannot be changed or emptied.",
            "See `bethink update --help`.",
        )
    if not fields and not clear:
        raise InvalidInput("Nothing to change.", "bethink update ID --content … --importance 8")
    read = {name: check(fields[name]) for name, check in READ.items() if name in fields}
    passage, _ = clean_passage(
        make_passage(**{"content": memory.content, **fields, **read}), longest
    )
    own = {name: getattr(passage, name) for name in fields if name in Passage._fields}
    changes = {**dict.fromkeys(clear), **own, **passage.more}
    if "summary" in fields and not passage.summary:
        changes["summary"] = summarize(passage.content)  # an emptied summary is made anew
    if "content" in fields:
        changes |= {
            "content_hash": content_hash(passage.content),
            "keywords": keywords(passage.content),
        }
        changes.setdefault("summary", summarize(passage.content))
        # Entities that the old text did not name were added by hand, and stay.
        added = tuple(
            entity
            for entity in memory.entities
            if entity.name.casefold() not in memory.content.casefold()
        )
        changes.setdefault("entities", tuple(dict.fromkeys((*added, *entities(passage.content)))))
    worded = ("content", "summary")
    if any(name in changes and changes[name] != getattr(memory, name) for name in worded):
        changes["trust"] = trust
    return changes


_NOTED = frozenset("turn role host origin firm commit adr_key".split())


def place_embedding_text(memory: Memory, fields: Fields) -> Fields:
    """Return the fields with `embedding_text` moved into the metadata, where it is stored.

    New content is embedded itself, unless an `embedding_text` comes with it; other metadata leave the text as it was; an empty one
    removes it. New metadata replace all metadata of a note only: what a reader noted of a turn, a passage or a handoff stays, so that
    the author of a turn never changes.
    """
    values = {name: value for name, value in fields.items() if value is not None}
    metadata = dict(values.get("metadata", memory.metadata))
    if memory.source_type != "note" or memory.kind == "handoff":
        own = {name: value for name, value in memory.metadata.items() if name in _NOTED}
        metadata = {**memory.metadata, **metadata, **own}
    kept = {} if "content" in values else memory.metadata
    known = {**kept, **values.get("metadata", {})}.get(EMBEDDING_TEXT)
    metadata[EMBEDDING_TEXT] = values.pop(EMBEDDING_TEXT, known)
    if not metadata[EMBEDDING_TEXT]:
        del metadata[EMBEDDING_TEXT]
    return values if metadata == dict(memory.metadata) else {**values, "metadata": metadata}


def trust_of_version(memory: Memory, events: Sequence[Event], version: int, trust: int) -> int:
    """Return the trust of a version that a caller of this trust restores.

    It is the trust it had then, unless its trust was changed since by more than new words.
    """
    since = [event for event in events[version:] if "trust" in event.before]
    if since and all(event.action == "update" for event in since):
        return int(since[0].before["trust"])
    return min(memory.trust, trust)


def values_of_version(events: Sequence[Event], version: int) -> Fields:
    """Return the values that later changes replaced, as of a version counted from 1. None means unset."""
    values: Fields = {}
    for event in events[version:]:
        for name, value in event.before.items():
            if name in EDITABLE:
                values.setdefault(name, from_history(name, value))
    return values


# Traces


class Traces(NamedTuple):
    """Memories of the same conversation as a purged one.

    A turn and the idea taken from it often have the same words: a purge of one includes the other. If the turn says more, or the idea uses
    other words, a person decides.
    """

    same: tuple[Memory, ...] = ()  # that are the very same words
    rest: tuple[Memory, ...] = ()  # the turns that it was taken from, and what was taken from it


def find_traces(store: Store, purged: Sequence[Memory], visible: Collection[str]) -> Traces:
    """Find traces in the `visible` scopes, those that the caller may look into."""
    known = {memory.id for memory in purged}
    same: list[Memory] = []
    rest: list[Memory] = []
    for scope, session in {(_find_scope(one), one.session): None for one in purged if one.session}:
        everything = Filter(
            tuple(one for one in (scope, PERSONAL) if one in visible),
            session=session,
            **EVERYTHING,
        )
        stored = list(store.scan(everything))
        hashes = {memory.content_hash for memory in stored if memory.id in known}
        going = [memory for memory in stored if memory.content_hash in hashes]
        # The turns that go, and the turns that something was taken from that goes.
        places = {(memory.position < IDEAS, *_find_turn(memory)) for memory in going}
        same += [memory for memory in going if memory.id not in known]
        rest += [
            memory
            for memory in stored
            if memory.content_hash not in hashes
            and (memory.position >= IDEAS, *_find_turn(memory)) in places
        ]
    return Traces(tuple(same), tuple(rest))


def _find_scope(memory: Memory) -> str:
    """Return the scope of the conversation. Metadata count only where `conversation` put them."""
    own = memory.scope == PERSONAL
    return str(memory.metadata.get(CONVERSATION_SCOPE, PERSONAL)) if own else memory.scope


def _find_turn(memory: Memory) -> tuple[str, int]:
    """Return the turn of a transcript that a memory is, or was taken from."""
    return memory.source, turn_of(memory.position)
