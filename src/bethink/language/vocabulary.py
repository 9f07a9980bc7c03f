"""Words and names in texts about software: word lists, technologies, identifiers, files and paths.

`vocabulary.toml` holds the lists, and is read when one of them is first needed.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from bethink.language.pattern import Pattern, compile_pattern
from bethink.language.words import STOP_WORDS

LONGEST_IDENTIFIER = 80  # characters; longer runs are hashes or encoded data

# Word lists


@cache
def _lists() -> dict[str, str]:
    import tomllib  # late: hooks import this module and read no list

    return tomllib.loads(Path(__file__).with_name("vocabulary.toml").read_text("utf-8"))


@cache
def word_set(name: str) -> frozenset[str]:
    """Return the words of a list."""
    return frozenset(_lists()[name].split())


@cache
def phrases(name: str) -> tuple[str, ...]:
    """Return the entries of a list whose entries are separated by commas."""
    return tuple(" ".join(entry.split()) for entry in _lists()[name].split(","))


@cache
def weak_words() -> frozenset[str]:
    """Return stop words, and other words that carry no topic in running text."""
    return STOP_WORDS | word_set("weak_words")


@cache
def plain_words() -> frozenset[str]:
    """Return weak words, and those that begin with a capital without being a name."""
    return weak_words() | word_set("capitalised")


@cache
def known_words() -> frozenset[str]:
    """Return words that name nothing, even with a capital."""
    return plain_words() | word_set("generic") | word_set("literals")


class Technologies(NamedTuple):
    """Names of technologies. Keys are spellings, values the name of the entity."""

    names: dict[str, str]  # spellings in small letters, or exact ones
    ordinary: dict[str, str]  # names that are also ordinary words


@cache
def technologies() -> Technologies:
    """Return every spelling of every known technology."""
    aliases = dict(alias.split(" = ") for alias in phrases("technologies_aliases"))
    names = {name.lower(): name for name in phrases("technologies")}
    names |= {name: name for name in phrases("technologies_exact")} | aliases
    ordinary = {name: aliases.get(name.lower(), name) for name in phrases("technologies_ordinary")}
    return Technologies(names, ordinary)


def technology(text: str) -> str | None:
    """Return the technology of that name, unless the name is an ordinary word."""
    names = technologies().names
    return names.get(text.lower()) or names.get(text)


# Names in running text

BEFORE_A_THING = Pattern(
    "the words before the name of a thing",
    r"\b(?:the|an?|our|my|this|that|in|at) $",
    matches=("we deploy the ", "At "),
    rejects=("we met ", "the"),
)
_SINGULAR = r"(?:[a-z]{2,19}[a-rt-z]|[a-z]{1,18}[su]s)"
# "Tenant 12 …", "the worker number 3 …": the groups are the thing, its number, and the statement about it. A point makes a version of the number, a
# colon a time; beside a verb, a plural or a unit it is an amount.
NUMBERED_THING = Pattern(
    "a thing known by its number",
    r"(?:(?:the|our) )?(?!(?:allow|call|hold|keep|limit|offer|poll|retain|retry|run|sample|send|set|store|support|take|timeout|try|use|wait)\b)"
    rf"({_SINGULAR}(?: {_SINGULAR})?) (?:number |no\. ?|#)?(\d{{1,9}})(?![.:\d])"
    r"(?! ?(?:%|[kmgt]i?b|m?s|(?:second|minute|hour|day|week|month|year|time)s?)\b)([^\n]{1,300})",
    start=True,
    fold=False,
    flags=re.IGNORECASE,
    matches=("Tenant 12 pays 40", "The worker number 3 is slow"),
    rejects=("Keep 30 days", "Sessions last 30 minutes", "Python 3.12 is used"),
)
STATES_VALUE = Pattern(
    "says what a value is",
    r"\b(?:is|was|ist|war|lautet|est|es|era|è|é)[\s:\"'`]*$",
    flags=0,
    matches=("the password is", "Das Passwort lautet: "),
    rejects=("the password", "this"),
)
HEADING_ABOUT = Pattern(
    "a heading that introduces a project",
    r"about|what (?:is|does)|overview|introduction|description|why|$",
    start=True,
    flags=0,
    matches=("About", "What is it?", ""),
    rejects=("License", "Install"),
)

# Names of code and files

_DOTTED = r"[A-Za-z_]\w+(?:(?:\.|::|->)[A-Za-z_]\w+)+"
# snake_case and CONSTANT_CASE, __dunder__, camelCase, PascalCase of two humps.
_SHAPES = (
    r"(?=.*[A-Za-z])_*[A-Za-z0-9]+(?:_+[A-Za-z0-9]+)+_*|__\w+__|[a-z][a-z0-9]+[A-Z][A-Za-z0-9]*"
    r"|(?=.*[a-z])(?:(?:[A-Z]+[a-z0-9]+){2,}[A-Z]*|[A-Z]{2,}[a-z0-9]{3,}(?:[A-Z][a-z0-9]+)*)"
)
# Has a slash; the first group is a root or a dot at its beginning.
_PATH = r"(?=[^\\/]*[\\/])((?:~|\.{1,2}|[A-Za-z]:)?[\\/])?(?:[\w@.+-]+[\\/])*[\w@.+-]*"


@lru_cache(maxsize=1 << 13)
def is_identifier(text: str) -> bool:
    """Return True for shapes that only code has: snake_case, camelCase, CONSTANT_CASE, dotted.names.

    PascalCase needs two humps.
    """
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
    """Return True for the name of a file, without a folder."""
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
    """Return True for a path: under a root, a dot or a usual directory, or to a file with an extension."""
    found = compile_pattern(_PATH).fullmatch(text)
    first, *rest = [part for part in re.split(r"[\\/]", text) if part] or [""]
    if not found or _has_extension([first, *rest][-1]):
        return found is not None
    if found[1]:
        return bool(rest) and any(map(str.isalpha, text))
    return first.lower() in word_set("directories") and (bool(rest) or text.endswith("/"))
