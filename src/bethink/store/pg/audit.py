"""The audit trail of a tenant: who changed what, in order, each line sealed together with the one before it by the database itself.

The application can add lines and read them, not change them. Whoever changes a row behind its back breaks the chain, and whoever
cuts its end off is given away by the last seal, which the tenant's row keeps.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple

from bethink.store.base import Problem

Run = Callable[..., list[Any]]
PAGE = 1_000


class Line(NamedTuple):
    """One write: when by the server's clock, on whose behalf, by which agent, and what it did to which ids."""

    number: int
    at: datetime
    person: str
    actor: str
    changes: dict[str, Any]


def lines(run: Run, limit: int) -> list[Line]:
    """The newest lines, newest first."""
    found = run(
        "SELECT number, at, person, actor, changes FROM audit ORDER BY number DESC LIMIT ?",
        (limit,),
    )
    return [
        Line(number, at, person, actor, json.loads(changes))
        for number, at, person, actor, changes in found
    ]


def check(run: Run, tenant: int) -> list[Problem]:
    """Goes along the whole chain. One problem at most: behind the first broken link nothing can be said."""
    sealed, last = run("SELECT sealed, seal FROM tenants")[0]
    seal, reached = b"", 0
    for number, given, text in _chain(run, tenant):
        if number > sealed:
            break  # written since
        if number != reached + 1:
            return [Problem("audit trail", f"Line {reached + 1} is missing.", "")]
        seal, reached = sha256(seal + text.encode()).digest(), number
        if seal != given:
            return [Problem("audit trail", f"Line {number} is not what was written.", "")]
    if reached != sealed or (sealed and seal != bytes(last)):
        return [
            Problem(
                "audit trail",
                f"It ends at line {reached}; line {sealed} was the last that was written.",
                "",
            )
        ]
    return []


def _chain(run: Run, tenant: int) -> Iterator[tuple[int, bytes, str]]:
    last = 0
    while page := run(
        "SELECT number, hash, (extract(epoch FROM at) * 1000000)::bigint, person, actor, mark, changes FROM audit"
        " WHERE number > ? ORDER BY number LIMIT ?",
        (last, PAGE),
    ):
        last = page[-1][0]
        for number, hash, at, person, actor, mark, changes in page:
            yield (
                number,
                bytes(hash),
                "\x1f".join(map(str, (tenant, number, at, person, actor, mark, changes))),
            )
