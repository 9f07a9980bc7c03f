"""Text → the words it is indexed under, the same for every backend.

Words are lower-cased, stripped of accents and stemmed by FTS5's own tokenizer, so that what is counted here is exactly
what FTS5 finds. Two things FTS5 cannot do are prepared for it: identifiers such as `parseHttpUrl` are also indexed under
their parts, and scripts written without spaces are indexed by pairs of characters.
"""

from __future__ import annotations

import re
import sys
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any
from zlib import crc32

from bethink.text.words import STOP_WORDS

# Han, kana, Hangul, Thai, Lao, Myanmar, Khmer: no spaces between words, or (Hangul) particles glued to them.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_RUN = f"[{_UNSPACED}]+"
# Bounded and from the first letter of a word only: it would otherwise be tried from each of them.
_HUMPS = r"(?<![A-Za-z])(?:[A-Za-z][A-Za-z0-9]{0,60}[a-z0-9][A-Z][A-Za-z0-9]*|[A-Z]{2,60}[a-z][A-Za-z0-9]*)"
# The bytes of a text by what they tell: small letters and digits, capitals, and those that begin a character of such a script (and
# of a few others). Every word with humps then holds "aA" or "AAa", and most texts hold neither: a look that costs next to nothing.
_TOLD = bytes(
    97
    if 97 <= at <= 122 or 48 <= at <= 57
    else 65
    if 65 <= at <= 90
    else 35
    if at in (0xE0, 0xE1, *range(0xE3, 0xEE), 0xEF)
    else 32
    for at in range(256)
)
_PARTS = r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+"


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """When it is first needed: a plain question in English needs none of them."""
    return re.compile(pattern)


def _pairs(match: re.Match[str]) -> str:
    run = match.group()
    if len(run) == 1:
        return f" {run} "
    return " " + " ".join(run[i : i + 2] for i in range(len(run) - 1)) + " "


def spaced(text: str) -> str:
    """A text whose unspaced runs are written as pairs of characters."""
    return text if text.isascii() else _compiled(_RUN).sub(_pairs, text)


def unspaced(text: str) -> bool:
    """Whether a text is one run of a script without spaces."""
    return _compiled(_RUN).fullmatch(text) is not None


def parts(identifier: str) -> list[str]:
    """`parseHttpUrl` → parse, Http, Url; a word without humps has no parts."""
    if identifier.islower():
        return []
    return _compiled(_PARTS).findall(identifier) if _compiled(_HUMPS).fullmatch(identifier) else []


def prepare(text: str) -> str:
    """The form of a text that is handed to FTS5."""
    text = text.replace("\x00", " ")
    told = text.encode("utf-8", "replace").translate(_TOLD)
    if b"#" in told:
        # A search for one character looks for pairs that begin with it; the last character of a run begins none.
        ends = dict.fromkeys(run[-1] for run in _compiled(_RUN).findall(text) if len(run) > 1)
        text = spaced(text) + ("\n" + " ".join(ends) if ends else "")
    if (b"aA" in told or b"AAa" in told) and (humps := _compiled(_HUMPS).findall(text)):
        text += "\n" + " ".join(part for word in humps for part in _compiled(_PARTS).findall(word))
    return text


@lru_cache(maxsize=1)
def _tokenizer() -> Any:
    import apsw

    connection = apsw.Connection(":memory:")
    return connection.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"]), connection


def tokenize(text: str, prepared: bool = False) -> list[str]:
    """Every lexeme of a text, in order, repeats included."""
    import apsw

    tokenizer, _ = _tokenizer()
    source = text if prepared else prepare(text)
    found = tokenizer(
        source.encode("utf-8", "replace"),
        apsw.FTS5_TOKENIZE_DOCUMENT,
        None,
        include_offsets=False,
        include_colocated=False,
    )
    return [token if isinstance(token, str) else token[0] for token in found]


@lru_cache(maxsize=1 << 15)
def hashed(lexeme: str) -> int:
    return crc32(lexeme.encode())


@lru_cache(maxsize=1 << 15)
def _behind(lexeme: str) -> bytes:
    """A word as it stands behind another one."""
    return f" {lexeme}".encode()


@lru_cache(maxsize=1)
def _stops() -> frozenset[str]:
    return frozenset(lexeme for word in STOP_WORDS for lexeme in tokenize(word, prepared=True))


def paired(lexemes: Sequence[str]) -> set[tuple[str, str]]:
    """Words that stand side by side, stop words not counted: the cheap form of a phrase."""
    return set(pairwise(_told(lexemes)))


def _told(lexemes: Sequence[str]) -> list[str]:
    stops = _stops()
    return [lexeme for lexeme in lexemes if lexeme not in stops]


def pair_hash(pair: tuple[str, str]) -> int:
    """The hash of both words with a blank between, going on from that of the first."""
    return crc32(_behind(pair[1]), hashed(pair[0]))


def pack(lexemes: Sequence[str]) -> bytes:
    """A text's words: how many are distinct, their sorted hashes, a count byte each, then the sorted hashes of its pairs."""
    bag = Counter(map(hashed, lexemes))
    order = sorted(bag)
    told = _told(lexemes)
    pairs = sorted(
        set(map(crc32, map(_behind, told[1:]), map(hashed, told)))
    )  # as `pair_hash`, without a call for each
    counts = [bag[key] for key in order]
    return array("I", [len(order), *order, *pairs]).tobytes() + bytes(
        counts if max(counts, default=0) < 256 else (min(count, 255) for count in counts)
    )


def unpack(blob: bytes | None) -> memoryview:
    """The sorted word hashes of a packed text."""
    blob = blob or b""
    size = min(
        int.from_bytes(blob[:4], sys.byteorder), max(0, len(blob) - 4) // 5
    )  # a damaged one says anything
    return memoryview(blob)[4 : 4 + size * 4].cast("I")


def occurrences(
    blob: bytes | None, words: Sequence[int], pairs: Sequence[int]
) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """How often each hashed word, and whether each hashed pair, stands in a packed text."""
    size = int.from_bytes(blob[:4], sys.byteorder) if blob else 0
    counts = len(blob or b"") - size
    if not blob or counts < 4 + 4 * size or counts % 4:  # none, or damaged
        return (0,) * len(words), (False,) * len(pairs)
    keys = memoryview(blob)[4:counts].cast("I")
    last = len(keys)
    found = []
    for key in words:
        at = bisect_left(keys, key, 0, size)
        found.append(blob[counts + at] if at < size and keys[at] == key else 0)
    beside = []
    for key in pairs:
        at = bisect_left(keys, key, size, last)
        beside.append(at < last and keys[at] == key)
    return tuple(found), tuple(beside)
