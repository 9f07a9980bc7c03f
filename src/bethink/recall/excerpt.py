"""Where a text holds what was looked for, and which part of it to show. The words are those that the index knows, so what is
marked is what was found. Pure.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from bethink.recall.query import parse
from bethink.store.words import tokenize, unspaced
from bethink.text.words import STOP_WORDS

LONGEST = 50_000  # characters of a text that are looked at: marks further down help nobody
MOST = 2_000  # marks in one text
_WORD = re.compile(r"[^\W_]{1,200}")
_BREAK = re.compile(r"[.!?]\s|\n")


class Sought(NamedTuple):
    """What a question looks for, as the index knows it."""

    lexemes: frozenset[str]
    prefixes: tuple[str, ...] = ()


def find_sought(question: str, now: datetime) -> Sought:
    """The words of a question that are worth marking."""
    terms = parse(question, now).terms
    words = [word for term in terms for word in _WORD.findall(term.text) if not term.prefix]
    telling = [word for word in words if word.casefold() not in STOP_WORDS] or words
    prefixes = tuple(term.text.casefold() for term in terms if term.prefix and term.text)
    return Sought(frozenset(lexeme for word in telling for lexeme in _lexemes(word)), prefixes)


def find_places(text: str, wanted: Sought) -> list[tuple[int, int]]:
    """Start and end of every word that was looked for, in order."""
    found: list[tuple[int, int]] = []
    for match in _WORD.finditer(text, 0, min(len(text), LONGEST)):
        word = match.group()
        if unspaced(word):
            found += _pairs(word, match.start(), wanted)
        elif not wanted.lexemes.isdisjoint(_lexemes(word)) or (
            wanted.prefixes and word.casefold().startswith(wanted.prefixes)
        ):
            found.append(match.span())
        if len(found) > MOST:
            break
    return found


def _pairs(run: str, start: int, wanted: Sought) -> list[tuple[int, int]]:
    """In scripts without spaces words are indexed by pairs of characters; neighbouring pairs are marked as one."""
    found: list[tuple[int, int]] = []
    for at in range(len(run)):
        pair = run[at : at + 2]
        if (pair if len(pair) == 2 or len(run) == 1 else "") in wanted.lexemes:
            end = start + at + len(pair)
            if found and found[-1][1] >= start + at:
                found[-1] = (found[-1][0], end)
            else:
                found.append((start + at, end))
    return found


def choose_excerpt(text: str, wanted: Sought | None, room: int) -> tuple[int, int]:
    """Start and end of the part to show: where most different words of the question stand together, from the beginning of a
    sentence if one is near."""
    if len(text) <= room:
        return 0, len(text)
    marks = find_places(text, wanted) if wanted else []
    start = _densest(text, marks, room * 3 // 4)
    if start < room // 2:
        start = 0
    else:
        breaks = [match.end() for match in _BREAK.finditer(text, max(0, start - room // 4), start)]
        gap = text.rfind(" ", max(0, start - 20), start)
        start = breaks[-1] if breaks else gap + 1 if gap >= 0 else start
    end = min(len(text), start + room)
    gap = text.rfind(" ", end - 30, end) if end < len(text) else -1
    return start, gap if gap > start else end


def _densest(text: str, marks: list[tuple[int, int]], room: int) -> int:
    best, where = 0, 0
    for at, (start, _) in enumerate(marks):
        words = set()
        for begin, end in marks[at : at + 40]:
            if end > start + room:
                break
            words.add(text[begin:end].casefold())
        if len(words) > best:
            best, where = len(words), start
    return where


@lru_cache(maxsize=20_000)
def _lexemes(word: str) -> frozenset[str]:
    return frozenset(tokenize(word))
