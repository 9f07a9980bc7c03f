"""What words look like and what phrases speak for: the word lists and cue phrases of `data/`, read when they are first needed.

The data are plain text: `words.txt` holds lists of words and technologies, `cues.tsv` phrases with the kind that they speak
for. A phrase is tried only where one of its literals stands; the outcome is that of searching the text for each pattern.

This module sees words, names and phrases. It does not know what a sentence, a summary or an entity is.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).with_name("data")
LONGEST_IDENTIFIER = 80
CERTAINTY = ("hedge", "firm")  # what speaks for no kind in the cue file
LATE = 300  # a cue that comes after so many characters counts half


@cache
def compile_pattern(source: str, flags: int = re.MULTILINE) -> re.Pattern[str]:
    """Compiled when it is first needed: no import pays for it, and of 350 phrases a text needs a few dozen."""
    return re.compile(source, flags)


def fold_case(text: str) -> str:
    return text.lower().replace("’", "'")


# Words


@cache
def _lists() -> dict[str, str]:
    """The text below each name of the word file."""
    lists: dict[str, list[str]] = {}
    name = ""
    for line in (DATA / "words.txt").read_text("utf-8").splitlines():
        if line.startswith("  "):
            lists[name].append(line)
        elif line and line[0] != "#":
            name = line.rstrip(":")
            lists[name] = []
    return {name: " ".join(lines) for name, lines in lists.items()}


@cache
def word_set(name: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(_lists()[name].split())


@cache
def phrases(name: str) -> tuple[str, ...]:
    """The entries of a list that commas separate."""
    return tuple(" ".join(entry.split()) for entry in _lists()[name].split(","))


@cache
def plain_words() -> frozenset[str]:
    return word_set("stop_words") | word_set("common")


@cache
def known_words() -> frozenset[str]:
    """Words that name nothing, whatever their capital."""
    return plain_words() | word_set("generic") | word_set("literals")


class Technologies(NamedTuple):
    names: dict[
        str, str
    ]  # every spelling, in small letters or exactly so → how the entity is called
    ordinary: dict[str, str]  # names that are ordinary words as well
    openings: frozenset[str]  # the words that they begin with


@cache
def technologies() -> Technologies:
    aliases = dict(alias.split(" = ") for alias in phrases("technologies_aliases"))
    names = {name.lower(): name for name in phrases("technologies")}
    names |= {name: name for name in phrases("technologies_exact")} | aliases
    ordinary = {name: aliases.get(name.lower(), name) for name in phrases("technologies_ordinary")}
    spellings = [name.lower().replace("-", " ") for name in (*names, *ordinary)]
    return Technologies(names, ordinary, frozenset(name.split()[0] for name in spellings))


def technology(text: str) -> str | None:
    """The technology of that name, unless the name is an ordinary word."""
    names = technologies().names
    return names.get(text.lower()) or names.get(text)


# Names of code and files


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
    if text.lower() in word_set("brands") or technology(text):
        return False
    if compile_pattern(r"[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+").fullmatch(text):
        parts = compile_pattern(r"\.|::|->").split(text)
        last = parts[-1].lower()
        prose = last in plain_words() and parts[-1][0].isupper()
        return (
            all(len(part) > 1 for part in parts) and last not in word_set("domains") and not prose
        )
    if compile_pattern(r"_*[A-Za-z0-9]+(?:_+[A-Za-z0-9]+)+_*|__\w+__").fullmatch(text):
        return any(map(str.isalpha, text))
    if compile_pattern(r"[a-z][a-z0-9]+[A-Z][A-Za-z0-9]*").fullmatch(text):
        return True
    humps = r"(?:[A-Z]+[a-z0-9]+){2,}[A-Z]*|[A-Z]{2,}[a-z0-9]{3,}(?:[A-Z][a-z0-9]+)*"
    return text != text.upper() and bool(compile_pattern(humps).fullmatch(text))


def is_file(text: str) -> bool:
    if text.lower() in word_set("file_names") and (text != text.lower() or "." in text):
        return True
    stem, _, extension = text.rpartition(".")
    return (
        bool(stem)
        and extension.lower() in word_set("extensions")
        and compile_pattern(r"[\w@~.-]+").fullmatch(stem) is not None
        and stem.lower() not in word_set("objects")
        and stem[-1] != "."
        and len(text) > 3
        and not technology(text)
        and not stem.isdigit()
    )


@lru_cache(maxsize=1 << 10)
def is_path(text: str) -> bool:
    if "/" not in text and "\\" not in text:
        return False
    if not compile_pattern(r"(?:~|\.{1,2}|[A-Za-z]:)?[\\/]?(?:[\w@.+-]+[\\/])*[\w@.+-]*").fullmatch(
        text
    ):
        return False
    first, *rest = [part for part in re.split(r"[\\/]", text) if part] or [""]
    stem, _, extension = (rest[-1] if rest else first).rpartition(".")
    if stem and extension.lower() in word_set("extensions"):
        return True
    if first in (".", "..", "~") or compile_pattern(r"[\\/]|[A-Za-z]:").match(text):
        return bool(rest) and any(map(str.isalpha, text))
    return first.lower() in word_set("directories") and (bool(rest) or text.endswith("/"))


# Cue phrases

# An agent telling what it does next. It says nothing worth keeping beyond the moment.
FILLER = (
    r"(?:(?:(?:ok|okay|good|great|alright|done|sure|right|yes|now|next|first|then|also|finally)[,.:]? )*(?:let me"
    r"|let(?:'s| us) (?:check|look|see|start|continue|try|run|verify|read|move on|go on|get back|go back)"
    r"|i(?:'ll| will) (?:now |also |just |then |next )?(?:check|look|read|run|inspect|patch|update|add|rerun"
    r"|start|commit|verify|apply|begin|create|take|go ahead|wait|see|fix|review|search|open|list|try|continue|proceed|push|trace)"
    r"|i(?:'m| am) (?:now |also |going to |just )?(?:check|read|look|patch|updat|add|review|runn|stag|committ"
    r"|inspect|trac|verify|widen|rerunn|fix|start|mov|kick|search|writ|pull|wir|incorporat)(?:ing)?"
    r"|now (?:add|update|set|create|run|fix|remove|check|look|write|the|i|for|push|commit)|here's|here is|here are|looking at"
    r"|as you can see|see below|good question))\b"
)


class Cue(NamedTuple):
    """One block of the cue file: phrases of which each speaks for the same."""

    weight: float
    phrases: tuple[tuple[tuple[str, ...], str], ...]  # literals, pattern

    def first_place(self, text: str) -> int | None:
        """Where the first of its phrases begins in a text of small letters."""
        first: int | None = None
        for literals, pattern in self.phrases:
            if _stands(literals, text) and (found := compile_pattern(pattern).search(text)):
                first = found.start() if first is None else min(first, found.start())
        return first

    def count(self, text: str) -> int:
        """How often its phrases occur. What one match has taken no other can take."""
        possible = [pattern for literals, pattern in self.phrases if _stands(literals, text)]
        return len(compile_pattern("|".join(possible)).findall(text)) if possible else 0


def _stands(literals: tuple[str, ...], text: str) -> bool:
    for literal in literals:  # `any` with a generator takes twice as long, 350 times a text
        if literal in text:
            return True
    return not literals


@cache
def cues() -> dict[str, list[Cue]]:
    """The blocks of the cue file, by what they speak for, in their order."""
    found: dict[str, list[Cue]] = {}
    for block in (DATA / "cues.tsv").read_text("utf-8").split("\n= ")[1:]:
        head, *lines = block.strip("\n").split("\n")
        name, _, weight = head.partition(" ")
        rows = [line.partition("\t") for line in lines]
        phrases = [(tuple(row[0].split("|")) if row[0] != "-" else (), row[2]) for row in rows]
        found.setdefault(name, []).append(Cue(float(weight), tuple(phrases)))
    return found


def cue_scores(text: str) -> dict[str, float]:
    """For each kind its strongest cue, and a little for every further one. A cue late in the text counts half."""
    text = fold_case(text)
    scores: dict[str, float] = {}
    for kind, own in cues().items():
        places = [(cue.weight, cue.first_place(text)) for cue in own if kind not in CERTAINTY]
        found = [weight if at < LATE else weight / 2 for weight, at in places if at is not None]
        if found:
            scores[kind] = max(found) + 0.15 * min(sum(found) - max(found), 4)
    return scores


def firmness(text: str, value: float) -> float:
    """The value, less what the hedges in the text cost and more for what was said firmly."""
    text = fold_case(text)
    for hedge in cues()["hedge"]:
        value -= hedge.weight * min(hedge.count(text), 2)
    return value + sum(cue.weight * min(cue.count(text), 3) for cue in cues()["firm"])
