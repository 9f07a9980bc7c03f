"""Where else a conversation says what is to be purged. Reads only.

A turn and the idea that was taken from it often are the same words: a purge of one is meant for both. Where the turn says more, or the
idea puts it in other words, that is for a person to judge.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from bethink.store.base import Store
from bethink.types import IDEAS, PERSONAL, SAID_IN, Filter, Memory, turn_of


class Traces(NamedTuple):
    """Memories of the same conversation."""

    same: tuple[Memory, ...] = ()  # that are the very same words
    rest: tuple[Memory, ...] = ()  # the turns that it was taken from, and what was taken from it


def traces(store: Store, purged: Sequence[Memory], visible: Collection[str]) -> Traces:
    """Those in the `visible` scopes, which are the ones that whoever purges may look into."""
    known = {memory.id for memory in purged}
    same, rest = list[Memory](), list[Memory]()
    for scope, session in dict.fromkeys(
        (_find_scope(memory), memory.session) for memory in purged if memory.session
    ):
        everything = Filter(
            tuple(one for one in (scope, PERSONAL) if one in visible),
            session=session,
            include_deleted=True,
            include_expired=True,
            include_superseded=True,
            include_quarantined=True,
        )
        said = list(store.scan(everything))
        hashes = {memory.content_hash for memory in said if memory.id in known}
        going = [memory for memory in said if memory.content_hash in hashes]
        turns = {_turn(memory) for memory in going if memory.position < IDEAS}
        taken = {_turn(memory) for memory in going if memory.position >= IDEAS}
        same += [memory for memory in going if memory.id not in known]
        rest += [
            memory
            for memory in said
            if memory.content_hash not in hashes
            and _turn(memory) in (taken if memory.position < IDEAS else turns)
        ]
    return Traces(tuple(same), tuple(rest))


def _find_scope(memory: Memory) -> str:
    """The scope of the conversation. Metadata may say anything, and counts only where it is what `conversation` put there."""
    own = memory.scope == PERSONAL
    return str(memory.metadata.get(SAID_IN, PERSONAL)) if own else memory.scope


def _turn(memory: Memory) -> tuple[str, int]:
    """The turn of a transcript that a memory is, or was taken from."""
    return memory.source, turn_of(memory.position)
