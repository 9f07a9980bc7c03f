"""Values that people and agents give, checked where they enter: a wrong one is a sentence and a hint, not a traceback."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NoReturn

from bethink import types
from bethink.errors import InvalidInput
from bethink.types import Entity


def suggest(word: str, choices: Iterable[str]) -> str:
    """The choice that was probably meant, as a sentence."""
    import difflib

    close = difflib.get_close_matches(word[:100].lower(), list(choices), n=1)
    return f"Did you mean '{close[0]}'?" if close else ""


def suggest_one_of(word: str, choices: Sequence[str]) -> str:
    """The choice that was probably meant, if any is near, and all there are."""
    return f"{suggest(word, choices)} One of {', '.join(choices)}.".lstrip()


def check_kind(kind: str | None) -> str | None:
    if kind is None:
        return None
    plain = types.KIND_ALIASES.get(kind.strip().lower(), kind.strip().lower())
    if plain not in types.KINDS:
        raise InvalidInput(f"'{kind}' is not a kind of memory.", suggest_one_of(plain, types.KINDS))
    return plain


def check_range(name: str, value: float | None, low: float, high: float) -> float | None:
    if value is None:
        return None
    if not low <= value <= high:
        raise InvalidInput(
            f"The {name} {value:g} is outside {low:g} to {high:g}.",
            f"Give a number from {low:g} to {high:g}.",
        )
    return float(value)


def check_choice(name: str, value: str, choices: Sequence[str]) -> str:
    if value not in choices:
        raise InvalidInput(f"'{value}' is not a {name}.", suggest_one_of(value, choices))
    return value


def as_entity(name: str | Entity) -> Entity:
    """`Redis` or `technology:Redis` → an Entity."""
    if isinstance(name, Entity):
        return name
    head, _, rest = name.partition(":")
    if rest and head in types.ENTITY_TYPES:
        return Entity(rest.strip(), head)
    return Entity(name.strip(), "concept")


def split_lists(values: Sequence[str] | None) -> tuple[str, ...]:
    """The values of an argument that may be repeated and may hold comma lists."""
    parts = (part.strip() for value in values or () for part in value.split(","))
    return tuple(dict.fromkeys(filter(None, parts)))


def replace_broken(text: str) -> str:
    """The text with a mark for each half of a character, which no message and no database can carry."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def refuse_constant(word: str) -> NoReturn:
    """For JSON that may not hold NaN and Infinity, which Python's reader would take."""
    raise ValueError(f"{word} is not JSON")
