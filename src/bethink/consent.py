"""Requests by agents to forget or purge memories that only a person may remove.

A request is bound to its ids. A person grants it on the web page or by its phrase, such as `bethink
forget K7QX`: as a command in their own terminal, or as a message to the agent, which the prompt
hook sees and an agent cannot send. A phrase works once, for a few minutes, and only for its ids.
The request waits in the inbox until a person decides.
"""

import json
import re
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from bethink.model import Strings
from bethink.store.base import Store
from bethink.store.transfer import Bundle
from bethink.text import compile_late

ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"  # without lookalikes: I, L, O, 0, 1
NOT_IN_IDS = "GHJKMNPQRSTUVWXYZ"  # letters that no id has
CODE_LENGTH = 4
MINUTES = 15  # validity of a phrase
_NOTE = "request:"
# Matches the whole message: one that quotes the phrase, or asks about it, confirms nothing.
_PHRASE = compile_late(
    rf"[\s`'\"]*bethink +forget +([a-z0-9]{{{CODE_LENGTH}}})( +--purge)?[\s`'\".]*", re.IGNORECASE
)


class Request(NamedTuple):
    """Memory that an agent asks to forget or purge. Those of one call share a code."""

    id: str
    action: str  # forget or purge
    code: str
    actor: str
    expires: float  # of the code, in seconds since the epoch

    @property
    def phrase(self) -> str:
        return f"bethink forget {self.code}{' --purge' if self.action == 'purge' else ''}"


class Phrase(NamedTuple):
    action: str
    code: str


def read_phrase(message: str) -> Phrase | None:
    """Read a phrase from a message that contains nothing else."""
    found = _PHRASE.fullmatch(message)
    return Phrase("purge" if found[2] else "forget", found[1].upper()) if found else None


def ask(store: Store, action: str, ids: Sequence[str], actor: str, now: datetime) -> str:
    """Record a request, and return the phrase that grants it; the same request gets the same phrase."""
    known = list_requests(store)
    at = now.timestamp()
    groups: dict[str, list[Request]] = {}
    for one in known:
        groups.setdefault(one.code, []).append(one)
    for group in groups.values():
        is_same = {one.id for one in group} == set(ids) and group[0].action == action
        if is_same and group[0].expires > at:
            return group[0].phrase
    used = groups.keys()
    code = _make_code()
    while code in used:
        code = _make_code()
    requests = [Request(id, action, code, actor, at + 60 * MINUTES) for id in ids]
    for one in requests:
        store.take(Bundle(), note=(_NOTE + one.id, json.dumps(one._asdict())))
    return requests[0].phrase


def _make_code() -> str:
    """Generate a code that cannot be the start of an id, so that a used code never names a memory."""
    import secrets  # imported late: it imports hashlib, which no search needs

    rest = "".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH - 1))
    return secrets.choice(NOT_IN_IDS) + rest


def list_requests(store: Store) -> list[Request]:
    """List all undecided requests."""
    return [Request(**json.loads(note)) for note in store.list_notes(_NOTE) if note]


def find_granted(store: Store, phrase: Phrase, now: datetime) -> Strings:
    """Ids that a phrase refers to; none if it is unknown, used or expired."""
    at = now.timestamp()
    return tuple(
        one.id
        for one in list_requests(store)
        if (one.action, one.code) == phrase and one.expires > at
    )


def is_code(text: str) -> bool:
    """Return True if a text has the form of a code, which no id starts with."""
    return len(text) == CODE_LENGTH and text.upper()[0] in NOT_IN_IDS and text.isalnum()


def close(store: Store, ids: Collection[str]) -> None:
    """Close the requests about these memories."""
    for id in ids:
        if store.read_note(_NOTE + id):
            store.take(Bundle(), note=(_NOTE + id, ""))
