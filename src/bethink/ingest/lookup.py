"""How the words of `lexicon` are looked up: single words by their looks, cue phrases by the words that they begin with.

There are some 350 phrases, and a text has about a hundred words. Trying every phrase at every place was two thirds of the
time that extracting took, so a phrase is tried only at words that can begin it; the outcome is that of searching the text
for each pattern of the lexicon. What is decided about a word is kept, because a few thousand words make up most texts.

This module sees words, names and phrases. It does not know what a sentence, a summary or an entity is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import NamedTuple

from bethink.ingest import lexicon

LONGEST_IDENTIFIER = 80
LONGEST_KEY = 24  # of the index of phrases
LATE = 300  # a cue that comes after so many characters counts half
# A word, or the box of an open task.
_WORD = r"\w+|\[ \]"
_ATOM = r"(?s)\\.|\[(?:\\.|[^\]\\])*+(?:\]|\Z)|."


@cache
def compiled(source: str, flags: int = re.MULTILINE) -> re.Pattern[str]:
    """Compiled when it is first needed: no import pays for it, and of the 350 phrases a text needs a few dozen."""
    return re.compile(source, flags)


def folded(text: str) -> str:
    return text.lower().replace("’", "'")


def technology(text: str) -> str | None:
    """The technology of that name, unless the name is an ordinary word."""
    return lexicon.TECHNOLOGIES.get(text.lower()) or lexicon.TECHNOLOGIES.get(text)


def is_known(word: str) -> bool:
    return word.lower() in lexicon.KNOWN


def is_identifier(text: str) -> bool:
    """Shapes that only code has: snake_case, camelCase, PascalCase of two humps, CONSTANT_CASE, dotted.names."""
    plain = text.isalpha() and text[1:].islower()
    return (
        4 <= len(text) <= LONGEST_IDENTIFIER
        and text.isascii()
        and not plain
        and _has_code_shape(text)
    )


@lru_cache(maxsize=1 << 13)
def _has_code_shape(text: str) -> bool:
    if text.lower() in lexicon.BRANDS or technology(text):
        return False
    if compiled(r"[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+").fullmatch(text):
        parts = compiled(r"\.|::|->").split(text)
        prose = parts[-1].lower() in lexicon.PLAIN and parts[-1][0].isupper()
        return (
            all(len(part) > 1 for part in parts)
            and parts[-1].lower() not in lexicon.DOMAINS
            and not prose
        )
    if compiled(r"_*[A-Za-z0-9]+(?:_+[A-Za-z0-9]+)+_*|__\w+__").fullmatch(text):
        return any(map(str.isalpha, text))
    if compiled(r"[a-z][a-z0-9]+[A-Z][A-Za-z0-9]*").fullmatch(text):
        return True
    humps = r"(?:[A-Z]+[a-z0-9]+){2,}[A-Z]*|[A-Z]{2,}[a-z0-9]{3,}(?:[A-Z][a-z0-9]+)*"
    return text != text.upper() and bool(compiled(humps).fullmatch(text))


def is_file(text: str) -> bool:
    if text.lower() in lexicon.FILE_NAMES and (
        text[0] == "." or text != text.lower() or "." in text
    ):
        return True
    stem, dot, extension = text.rpartition(".")
    if (
        not dot
        or not stem
        or extension.lower() not in lexicon.EXTENSIONS
        or not compiled(r"[\w@~.-]+").fullmatch(stem)
    ):
        return False
    return (
        stem.lower() not in lexicon.OBJECTS
        and stem[-1] != "."
        and len(text) > 3
        and not technology(text)
        and not stem.isdigit()
    )


@lru_cache(maxsize=1 << 10)
def is_path(text: str) -> bool:
    if "/" not in text and "\\" not in text:
        return False
    if not compiled(r"(?:~|\.{1,2}|[A-Za-z]:)?[\\/]?(?:[\w@.+-]+[\\/])*[\w@.+-]*").fullmatch(text):
        return False
    first, *rest = [part for part in re.split(r"[\\/]", text) if part] or [""]
    last = rest[-1] if rest else first
    if (
        "." in last
        and last.rpartition(".")[2].lower() in lexicon.EXTENSIONS
        and last.rpartition(".")[0]
    ):
        return True
    if first in (".", "..", "~") or compiled(r"[\\/]|[A-Za-z]:").match(text):
        return bool(rest) and any(map(str.isalpha, text))
    return first.lower() in lexicon.DIRECTORIES and (bool(rest) or text.endswith("/"))


class Phrase(NamedTuple):
    """One alternative of the cue of that number. It is matched at the word that calls for it, or else searched for."""

    cue: int
    place: int
    pattern: str
    at_word: bool


class Calls(NamedTuple):
    """What one word calls for. `any_here` matches where any of the phrases `here` does, and mostly spares trying them."""

    any_here: re.Pattern[str]
    here: tuple[Phrase, ...]
    anywhere: tuple[Phrase, ...]


# The phrases by what calls for them: the beginning of a word, all of it ("is "), or its end ("*error").
Index = dict[str, list[Phrase]]


def cue_scores(text: str) -> dict[str, float]:
    """For each kind its strongest cue, and a little for every further one. A cue late in the text counts half."""
    found: dict[str, list[float]] = {}
    for cue, start in sorted(_first_places(folded(text)).items()):
        kind, weight = _weights()[cue]
        found.setdefault(kind, []).append(weight if start < LATE else weight / 2)
    return {
        kind: max(weights) + 0.15 * min(sum(weights) - max(weights), 4)
        for kind, weights in found.items()
    }


@cache
def _weights() -> tuple[tuple[str, float], ...]:
    return tuple((kind, weight) for kind, cues in lexicon.CUES.items() for weight, _ in cues)


@cache
def top_score() -> float:
    """No kind can score more than this."""
    return max(weight for _, weight in _weights()) + 0.15 * 4


def firmness(text: str, value: float) -> float:
    """The value, less what the hedges in the text cost and more for what was said firmly."""
    counts = _counts(folded(text))
    for number, (cost, _) in enumerate(lexicon.HEDGES):
        value -= cost * min(counts[number], 2)
    return value + 0.05 * min(counts[-1], 3)


def _first_places(text: str) -> dict[int, int]:
    """Where the first match of each cue begins."""
    places: dict[int, int] = {}
    searched: set[str] = set()
    words, starts = _words(text)
    for start, calls in zip(starts, map(_cues_at, words), strict=True):
        if calls is None:
            continue
        any_here, here, anywhere = calls
        if any_here.match(text, start):
            for cue, _, pattern, _ in here:
                if places.get(cue, len(text)) > start and compiled(pattern).match(text, start):
                    places[cue] = start
        for cue, _, pattern, _ in anywhere:
            if pattern not in searched:
                searched.add(pattern)
                if (found := _search(pattern, text)) is not None:
                    places[cue] = min(found, places.get(cue, len(text)))
    return places


@lru_cache(maxsize=4)
def _words(text: str) -> tuple[list[str], list[int]]:
    """The words of a text and where they begin. Cues and hedges are looked for one after the other."""
    words, starts = [], []
    for word in compiled(_WORD).finditer(text):
        words.append(word[0])
        starts.append(word.start())
    return words, starts


def _search(pattern: str, text: str) -> int | None:
    if not pattern.partition(")")[2].startswith("^"):
        found = compiled(pattern).search(text)
        return found.start() if found else None
    # A search would try such a pattern at every place, though it can only match where a line begins.
    start = 0
    while not compiled(pattern).match(text, start):
        start = text.find("\n", start) + 1
        if not start:
            return None
    return start


def _counts(text: str) -> list[int]:
    """How often each hedge, and last a firm word, occurs. What one match has taken no other can take."""
    counts = [0] * (len(lexicon.HEDGES) + 1)
    ends = [0] * len(counts)
    words, starts = _words(text)
    for start, calls in zip(starts, map(_tones_at, words), strict=True):
        if calls is None or not calls.any_here.match(text, start):
            continue
        for cue, _, pattern, _ in calls.here:
            if start >= ends[cue] and (found := compiled(pattern).match(text, start)):
                counts[cue] += 1
                ends[cue] = found.end()
    return counts


@lru_cache(maxsize=1 << 13)
def _cues_at(word: str) -> Calls | None:
    return _calls(word, _cue_index())


@lru_cache(maxsize=1 << 13)
def _tones_at(word: str) -> Calls | None:
    return _calls(word, _tone_index())


def _calls(word: str, index: Index) -> Calls | None:
    whole, sizes = word + " ", range(1, min(len(word) + 1, LONGEST_KEY) + 1)
    keys = [whole[:size] for size in sizes] + ["*" + word[-size:] for size in sizes]
    phrases = sorted({phrase for key in keys for phrase in index.get(key, ())})
    here = tuple(phrase for phrase in phrases if phrase.at_word)
    anywhere = tuple(phrase for phrase in phrases if not phrase.at_word)
    # "(?!)" matches nothing.
    return (
        Calls(compiled("|".join(phrase.pattern for phrase in here) or "(?!)"), here, anywhere)
        if phrases
        else None
    )


@cache
def _cue_index() -> Index:
    return _index(pattern for cues in lexicon.CUES.values() for _, pattern in cues)


@cache
def _tone_index() -> Index:
    return _index([*(pattern for _, pattern in lexicon.HEDGES), lexicon.FIRM])


def _index(patterns: Iterable[str]) -> Index:
    index: Index = {}
    for cue, pattern in enumerate(patterns):
        for place, branch in enumerate(branches(pattern)):
            comment = compiled(r"\(\?#(from|with) (.*?)\)").match(branch)
            for key in (
                {_key(word) for word in comment[2].split("|")} if comment else _openings(branch)
            ):
                index.setdefault(key, []).append(
                    Phrase(cue, place, branch, not comment or comment[1] == "from")
                )
    return index


def _key(listed: str) -> str:
    return listed if listed.startswith("*") else compiled(_WORD).findall(listed)[0] + " "


def branches(pattern: str) -> list[str]:
    """The alternatives of a pattern: cut at each bar outside of groups."""
    branches, depth = [""], 0
    for atom in compiled(_ATOM).findall(pattern):
        depth += (atom == "(") - (atom == ")")
        if atom == "|" and not depth:
            branches.append("")
        else:
            branches[-1] += atom
    return branches


def _openings(pattern: str) -> set[str]:
    """The letters that a match can begin with, with a space behind them where they are a whole word."""
    lead = compiled(r"(?:\\b|\^|\(\?<=[^)]*\))*", 0).match(pattern)
    pattern = pattern[lead.end() :] if lead else pattern
    if pattern.startswith("(?:"):
        size = depth = 0
        for atom in compiled(_ATOM).findall(pattern):
            size += len(atom)
            depth += (atom == "(") - (atom == ")")
            if not depth:
                break
        choices, rest = branches(pattern[3 : size - 1]), pattern[size:]
        if optional := compiled(r"[?*]|\{0,\d+\}").match(rest):
            choices, rest = [*choices, ""], rest[optional.end() :]
        return {opening for choice in choices for opening in _openings(choice + rest)}
    letters = compiled(r"([a-z]+)(?![?*{])( (?![?*{])|\\b|'(?!\?)|\(\?:[' ])?").match(pattern)
    if not letters:
        raise ValueError(
            f"The cue phrase {pattern!r} begins with no word: tell its words in a (?#…)."
        )
    return {letters[1] + (" " if letters[2] else "")}
