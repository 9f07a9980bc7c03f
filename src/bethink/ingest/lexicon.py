"""What words look like and what phrases speak for: the word lists and cue phrases of `data/`, read when they are first needed.

The data are plain tables: `words.toml` holds lists of words and technologies, `cues.toml` phrases with the kind that they speak
for. Phrases are tried only where one of their literals stands; the outcome is that of searching the text for each pattern.

This module sees words, names and phrases. It does not know what a sentence, a summary or an entity is.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

DATA = Path(__file__).with_name("data")
LONGEST_IDENTIFIER = 80
CERTAINTY = ("hedge", "firm")  # what speaks for no kind in the cue file
LATE = 300  # a cue that comes after so many characters counts half


@cache
def compile_pattern(source: str, flags: int = re.MULTILINE) -> re.Pattern[str]:
    """Compiled when it is first needed: no import pays for it, and of the cue phrases a text needs a few."""
    return re.compile(source, flags)


def fold_case(text: str) -> str:
    return text.lower().replace("’", "'")


# Words


@cache
def _tables(name: str) -> dict[str, Any]:
    return tomllib.loads((DATA / name).read_text("utf-8"))


@cache
def word_set(name: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(_tables("words.toml")[name].split())


@cache
def phrases(name: str) -> tuple[str, ...]:
    """The entries of a list that commas separate."""
    return tuple(" ".join(entry.split()) for entry in _tables("words.toml")[name].split(","))


@cache
def plain_words() -> frozenset[str]:
    return word_set("stop_words") | word_set("common")


@cache
def known_words() -> frozenset[str]:
    """Words that name nothing, whatever their capital."""
    return plain_words() | word_set("generic") | word_set("literals")


class Technologies(NamedTuple):
    # Every spelling, in small letters or exactly so → how the entity is called.
    names: dict[str, str]
    ordinary: dict[str, str]  # names that are ordinary words as well


@cache
def technologies() -> Technologies:
    aliases = dict(alias.split(" = ") for alias in phrases("technologies_aliases"))
    names = {name.lower(): name for name in phrases("technologies")}
    names |= {name: name for name in phrases("technologies_exact")} | aliases
    ordinary = {name: aliases.get(name.lower(), name) for name in phrases("technologies_ordinary")}
    return Technologies(names, ordinary)


def technology(text: str) -> str | None:
    """The technology of that name, unless the name is an ordinary word."""
    names = technologies().names
    return names.get(text.lower()) or names.get(text)


# Names of code and files

_DOTTED = r"[A-Za-z_]\w+(?:(?:\.|::|->)[A-Za-z_]\w+)+"
# snake_case and CONSTANT_CASE, __dunder__, camelCase, PascalCase of two humps.
_SHAPES = (
    r"(?=.*[A-Za-z])_*[A-Za-z0-9]+(?:_+[A-Za-z0-9]+)+_*|__\w+__|[a-z][a-z0-9]+[A-Z][A-Za-z0-9]*"
    r"|(?=.*[a-z])(?:(?:[A-Z]+[a-z0-9]+){2,}[A-Z]*|[A-Z]{2,}[a-z0-9]{3,}(?:[A-Z][a-z0-9]+)*)"
)
# With a slash in it; the first group is there where it begins at a root or with a dot.
_PATH = r"(?=[^\\/]*[\\/])((?:~|\.{1,2}|[A-Za-z]:)?[\\/])?(?:[\w@.+-]+[\\/])*[\w@.+-]*"


@lru_cache(maxsize=1 << 13)
def is_identifier(text: str) -> bool:
    """Shapes that only code has: snake_case, camelCase, PascalCase of two humps, CONSTANT_CASE, dotted.names."""
    if not 4 <= len(text) <= LONGEST_IDENTIFIER or not text.isascii():
        return False
    if text.lower() in word_set("brands") or technology(text):
        return False
    if compile_pattern(_DOTTED).fullmatch(text):
        last = compile_pattern(r"\.|::|->").split(text)[-1]
        sentence = last[0].isupper() and last.lower() in plain_words()  # "done.Then"
        return last.lower() not in word_set("domains") and not sentence
    return compile_pattern(_SHAPES).fullmatch(text) is not None


def _has_extension(name: str) -> bool:
    stem, _, extension = name.rpartition(".")
    return bool(stem) and extension.lower() in word_set("extensions")


def is_file(text: str) -> bool:
    if text.lower() in word_set("file_names") and (text != text.lower() or "." in text):
        return True
    stem = text.rpartition(".")[0]
    return (
        _has_extension(text)
        and compile_pattern(r"[\w@~.-]*[\w@~-]").fullmatch(stem) is not None
        and stem.lower() not in word_set("objects")
        and len(text) > 3
        and not (stem.isdigit() or technology(text))
    )


@lru_cache(maxsize=1 << 10)
def is_path(text: str) -> bool:
    found = compile_pattern(_PATH).fullmatch(text)
    first, *rest = [part for part in re.split(r"[\\/]", text) if part] or [""]
    if not found or _has_extension([first, *rest][-1]):
        return found is not None
    if found[1]:
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
    """Phrases of which each speaks for the same."""

    weight: float
    literals: list[str]
    pattern: str

    def find(self, text: str) -> list[int]:
        """Where its phrases begin in a text of small letters."""
        for literal in self.literals:  # `any` with a generator takes twice as long
            if literal in text:
                break
        else:
            if self.literals:
                return []
        return [found.start() for found in compile_pattern(self.pattern).finditer(text)]


@cache
def cues() -> dict[str, list[Cue]]:
    """The cues by what they speak for, in their order."""
    return {
        kind: [Cue(one["weight"], one["literals"], "|".join(one["phrases"])) for one in blocks]
        for kind, blocks in _tables("cues.toml").items()
    }


def cue_scores(text: str) -> dict[str, float]:
    """For each kind its strongest cue, and a little for every further one. A cue late in the text counts half."""
    text = fold_case(text)
    scores: dict[str, float] = {}
    for kind, own in cues().items():
        places = [(cue.weight, cue.find(text)) for cue in own if kind not in CERTAINTY]
        found = [weight if at[0] < LATE else weight / 2 for weight, at in places if at]
        if found:
            scores[kind] = max(found) + 0.15 * min(sum(found) - max(found), 4)
    return scores


def firmness(text: str, value: float) -> float:
    """The value, less what the hedges in the text cost and more for what was said firmly."""
    text = fold_case(text)
    for hedge in cues()["hedge"]:
        value -= hedge.weight * min(len(hedge.find(text)), 2)
    return value + sum(cue.weight * min(len(cue.find(text)), 3) for cue in cues()["firm"])
