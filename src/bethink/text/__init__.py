"""What every layer needs of text: words that carry no topic, values checked where they enter, ids and hashes.

The index and the questions must agree on stop words, so they stand here once. A wrong value that people or agents give is a sentence
and a hint, not a traceback. Ids are UUIDs of version 7, which sort by the time they were made. Hashes come without OpenSSL, whose library
takes longer to load than a search takes to run.
"""

from __future__ import annotations

import os
import time
from _thread import allocate_lock
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NoReturn

from bethink import types
from bethink.errors import InvalidInput
from bethink.types import Entity

if TYPE_CHECKING:
    from hashlib import blake2b as blake2b
    from hashlib import sha256 as sha256
else:
    try:
        from _blake2 import blake2b as blake2b

        from _sha2 import sha256 as sha256
    except ImportError:
        try:
            from _sha256 import sha256 as sha256  # until Python 3.12
        except ImportError:
            from hashlib import blake2b as blake2b
            from hashlib import sha256 as sha256

STOP_WORDS = frozenset(
    """
    a about after again all also am an and any are aren't as at be because been before being between both but by can can't cannot
    could couldn't did didn't do does doesn't doing don't done during each e.g few for from further had hadn't has hasn't have
    haven't having he her here hers herself him himself his how i i'd i'll i'm i've i.e if in into is isn't it it's its itself
    just let let's may me might more most must my myself no nor not of off on once only or other our ours ourselves out over own
    please same shall she should shouldn't since so some such than that that's the their theirs them themselves then there there's
    these they they're this those through to too under until up us very was wasn't we we'd we'll we're we've were weren't
    what what's when where which while who who's whom whose why will with won't would wouldn't you you'd you'll you're
    you've your yours yourself
    """.split()
)

# Small words of German, French and Spanish.
_FOREIGN = frozenset(
    """
    aber auf aus bei das dem den der die ein eine einen er gibt haben ist für ich im kein macht mit nicht nie noch oder sie sind und uns
    unser unsere von wann warum was welche welchen welcher welches wer wie wir wird wo wurde zu zum zur avec avons ce cette comment dans de des du elle est et il je la le les mais ne nous ont où
    par pas pour pourquoi quand que quel quelle qui sont sur une cómo con cuál cuándo del donde dónde el ella en es esta este lo los las
    nosotros para pero por porque qué quién se su un una usamos y
    """.split()
)
UNLIKE = 0.3  # share of letters beyond Latin from which on a text is not English


def is_english(text: str) -> bool:
    """Whether nothing speaks against English: neither letters of another script nor more small words of other languages."""
    letters = [letter for letter in text[:2000] if letter.isalpha()]
    if sum(letter > "\u024f" for letter in letters) > UNLIKE * len(letters):
        return False
    words = text[:2000].lower().replace("?", " ").replace(",", " ").split()
    foreign = sum(word in _FOREIGN for word in words)
    return foreign < 2 or foreign <= sum(word in STOP_WORDS for word in words)


# Values where they enter


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


# Ids

_lock = allocate_lock()
_last = 0


def new_id() -> str:
    """A new id, later in order than every earlier one of this process."""
    global _last
    with _lock:
        # 48 bits of milliseconds and 12 bits of a counter that carries over into the next millisecond when full.
        stamp = max(time.time_ns() // 1_000_000 << 12, _last + 1)
        _last = stamp
    tail = int.from_bytes(os.urandom(8), "big") & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
    digits = f"{stamp >> 12:012x}7{stamp & 0xFFF:03x}{tail:016x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
