"""Where a page ends, as an opaque text that leads to the next one. A cursor holds for the question it came from and no other.

It gives nobody anything they could not ask for anyway, so it is checked and not signed. Pure.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar

from bethink.surface.http.problems import Refusal

FURTHEST = 1_000_000_000
OVERLAP = 100  # places by which what was last seen may have moved while somebody pages

Item = TypeVar("Item")


class Cursor(NamedTuple):
    at: int = 0  # how many came before
    last: str = ""  # id of the last of them
    seed: int | None = None


def fingerprint(question: Mapping[str, Any]) -> str:
    """What a question is known by: everything in it but the page that is asked for."""
    asked = {name: value for name, value in question.items() if name not in ("cursor", "limit")}
    return sha256(
        json.dumps(asked, sort_keys=True, default=str).encode("utf-8", "surrogatepass")
    ).hexdigest()[:12]


def written(cursor: Cursor, question: Mapping[str, Any]) -> str:
    value = [cursor.at, cursor.last, cursor.seed, fingerprint(question)]
    return (
        base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode())
        .decode()
        .rstrip("=")
    )


def read(text: str | None, question: Mapping[str, Any]) -> Cursor:
    """The cursor that a text is; the beginning where there is none."""
    if text is None:
        return Cursor()
    try:
        at, last, seed, asked = json.loads(
            base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
        )
        sound = (
            type(at) is int
            and 0 <= at <= FURTHEST
            and type(last) is str
            and (seed is None or type(seed) is int)
        )
    except (ValueError, TypeError, binascii.Error, RecursionError):
        sound = False
    if not sound:
        raise Refusal(
            400, "This is no cursor.", "Take `next` of the page before, or leave it out to begin."
        )
    if asked != fingerprint(question):
        raise Refusal(
            400,
            "This cursor belongs to another question.",
            "Keep all parameters but the limit, or leave the cursor out.",
        )
    return Cursor(at, last, seed)


def window(cursor: Cursor, limit: int) -> tuple[int, int]:
    """Offset and number of what to read for a page: a little before it too, because things move."""
    start = max(0, cursor.at - OVERLAP)
    return start, cursor.at - start + limit + 1


def page(
    found: Sequence[Item], ids: Sequence[str], cursor: Cursor, limit: int
) -> tuple[Sequence[Item], Cursor | None]:
    """The page behind a cursor, of what `window` asked for, and the next cursor. Where the last one seen stands elsewhere by
    now, the page begins behind it: nothing is passed over because something before it was forgotten or added."""
    start = max(0, cursor.at - OVERLAP)
    begin = ids.index(cursor.last) + 1 if cursor.last in ids else cursor.at - start
    shown = found[begin : begin + limit]
    more = begin + limit < len(found) or (
        len(shown) < limit and len(found) == cursor.at - start + limit + 1
    )
    if not shown or not more:
        return shown, None
    return shown, Cursor(start + begin + len(shown), ids[begin + len(shown) - 1], cursor.seed)
