"""Ids by their beginnings, as people type them: what a prefix stands for, and how short an id may be shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from bethink.errors import Ambiguous, NotFound

MOST = 50  # ids looked at to tell how many a prefix fits
# The first 13 characters of an id are its millisecond: shorter ones stop being unique with the next memory.
SHORTEST = 13


def spelled(prefix: str) -> str:
    """A prefix as ids are written: lower case, with dashes where they belong."""
    plain = prefix.strip().lower().replace("-", "")
    if not plain or not all(character in "0123456789abcdef" for character in plain):
        raise NotFound(f"'{prefix}' is not the id of a memory.", "`bethink list` shows ids.")
    marks = [at for at in (8, 12, 16, 20) if at < len(plain)]
    return "-".join(plain[a:b] for a, b in zip([0, *marks], [*marks, None], strict=True))


def only(
    prefix: str, found: Sequence[str], abbreviate: Callable[[Sequence[str]], dict[str, str]]
) -> str:
    """The one id among the first MOST that fit, or why there is none."""
    if not found:
        raise NotFound(
            f"There is no memory whose id starts with '{prefix}'.",
            "`bethink list` shows ids; `--include-deleted` shows forgotten ones, `--all-projects` those of other projects.",
        )
    if len(found) > 1 and found[0] != spelled(prefix):
        shown = ", ".join(abbreviate(found[:3]).values())
        raise Ambiguous(
            f"'{prefix}' fits {'at least ' * (len(found) == MOST)}{len(found)} memories: {shown}{' …' * (len(found) > 3)}.",
            "Type a few more characters of the id.",
        )
    return found[0]


def shortened(id: str, neighbours: Iterable[str | None]) -> str:
    """An id cut where no other shares its beginning; its neighbours in order are those that share most."""
    shared = max((_common(id, other) for other in neighbours if other), default=0)
    size = max(SHORTEST, shared + 1)
    return id[: size + 1] if size < len(id) and id[size - 1] == "-" else id[:size]


def _common(one: str, other: str) -> int:
    for at, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return at
    return min(len(one), len(other))
