"""Text helpers for every layer: values checked where they enter, ids and hashes, cleaning.

A wrong value from a person or an agent raises an error with a sentence and a hint, not a traceback. Ids are UUIDs of version 7, which sort by the time they were made.

`clean` removes what a reader cannot see but a model can: invisible, reordering and control characters and escape sequences. It
also disarms our own marks and the tags in which hosts speak to their models.
"""

import os
import re
import time
from _thread import allocate_lock
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from typing import Any, NoReturn, cast

from bethink import model
from bethink.errors import InvalidInput
from bethink.hashes import blake2b as blake2b
from bethink.hashes import sha256 as sha256
from bethink.model import TRUST, Entity, Hit

# Values where they enter


def suggest(word: str, choices: Iterable[str]) -> str:
    """The choice that was probably meant, as a sentence."""
    import difflib

    typed = word[:100].lower()
    close = difflib.get_close_matches(typed, list(choices), cutoff=0.7)
    # Most slips keep the first letter: "doen" is "done" rather than "open".
    best = max(
        close,
        key=lambda one: (
            difflib.SequenceMatcher(None, one, typed).ratio() + (one[:1] == typed[:1]) / 100
        ),
        default="",
    )
    return f"Did you mean '{best}'?" if best else ""


def suggest_one_of(word: str, choices: Sequence[str]) -> str:
    """The choice that was probably meant, if any is near, and all there are."""
    return f"{suggest(word, choices)} One of {', '.join(choices)}.".lstrip()


def check_kind(kind: str | None) -> str | None:
    if kind is None:
        return None
    plain = kind.strip().lower()
    return check_choice("kind of memory", model.KIND_ALIASES.get(plain, plain), model.KINDS)


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
    if rest and head in model.ENTITY_TYPES:
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


def hash_text(text: str, size: int = 16) -> bytes:
    """Return the hash that identifies a text, the same in every process and on every machine."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).digest()


# Patterns


class LatePattern:
    """A regular expression that is compiled when it is first used."""

    def __init__(self, source: str, flags: int = 0) -> None:
        self.source, self.flags = source, flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self.source, self.flags)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.compiled, name)
        setattr(self, name, method)  # and is not asked for again
        return method


def compile_late(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is compiled when it is first used: a hook uses few of those that it loads."""
    return cast("re.Pattern[str]", LatePattern(source, flags))


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


# Text without what a reader cannot see. `bethink.outgoing` puts it between marks.

TAG = "bethink-memory"  # of those marks
CAP = 3  # hits of one low-trust source before the others come; by hand

# Characters that are invisible, that reorder visible text, or that a terminal obeys. Tab and line feed stay.
_UNSEEN_RANGES = """
0-8 b-1f 7f-9f ad 34f 61c 115f 1160 17b4 17b5 180b-180f 200b-200f 202a-202e 2060-206f 3164 d800-dfff fe00-fe0f feff ffa0
fff0-fffb 1bca0-1bca3 1d173-1d17a e0000-e0fff
"""


def _characters(ranges: str) -> Iterator[int]:
    for piece in ranges.split():
        first, _, last = piece.partition("-")
        yield from range(int(first, 16), int(last or first, 16) + 1)


@cache
def _unseen() -> dict[int, str | None]:
    """Return a table of such characters with their replacements."""
    breaks = dict.fromkeys((0x0B, 0x0C, 0x85, 0x2028, 0x2029), "\n")
    return {**dict.fromkeys(_characters(_UNSEEN_RANGES)), **breaks}


# Patterns are compiled when they are first used: most commands quote nothing.
_ESCAPES = (
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,16}[@-~]?"  # colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)?"  # titles, links, the clipboard
    r"|\x1b[ -/]{0,8}[0-~]?"
)
# Our own mark in any shape that could be taken for it, and the tags in which hosts speak to their models. They may contain any number of
# blanks: `one_line` leaves one. Nothing here tries a blank twice (`*+`), so that a long row of them costs no more than its length.
_MARK = r"(?i)[<＜﹤‹〈⟨](?=[\s/／⁄∕\\]*+bethink[\W_]*+memory)"
_HOSTS = (
    r"(?i)[<＜﹤](?=\s*+[/／]?\s*+(?:system(?:[-_]\w{1,30})?|task-notification|user-prompt-submit-hook|session-start-hook"
    r"|environment_context|user_instructions|hook_context|antml:\w{1,40}|function_(?:calls|results)"
    r"|command-(?:name|message|args)|local-command-\w{1,20}|tool_(?:use|result)(?:_error)?)(?![\w-]))"
    r"|<(?=\|\w{1,30}\|>)"
)


def one_line(text: str) -> str:
    return " ".join(clean(text).split())


def clean(text: str) -> str:
    """Remove invisible characters, and defuse anything that resembles a mark of ours or of a host."""
    if not text.isprintable():
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        if "\x1b" in text or not text.isascii():
            text = re.sub(_ESCAPES, "", text)
        text = text.translate(_unseen())
    elif not text.isascii():
        text = text.translate(_unseen())  # variation selectors count as printable
    text = re.sub(_MARK, "[", text)
    return re.sub(_HOSTS, "‹", text)


def trust_word(trust: int) -> str:
    """Return the name of a trust level: the origin that vouches for a memory."""
    return ("quarantined", "imported", "agent", "user")[max(0, min(trust, TRUST["user"]))]


def spread(hits: Sequence[Hit], cap: int = CAP) -> list[Hit]:
    """Move hits of low trust beyond `cap` per source behind all others, and keep the order otherwise.

    An imported document cannot crowd out statements by people.
    """
    seen = Counter[str]()
    first: list[Hit] = []
    behind: list[Hit] = []
    for hit in hits:
        low = hit.memory.trust <= TRUST["import"]
        seen[hit.memory.source] += low
        (behind if low and seen[hit.memory.source] > cap else first).append(hit)
    return first + behind
