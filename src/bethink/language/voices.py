"""Phrases by which a reader tells who speaks: the user to the agent, or somebody else.

`voices.toml` holds lists of phrases in several languages, and is read when the first of them is needed.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path


@cache
def _lists() -> dict[str, str]:
    return tomllib.loads(Path(__file__).with_name("voices.toml").read_text("utf-8"))


@cache
def compile_voice(name: str) -> re.Pattern[str]:
    """Return the phrases of a list as one pattern over folded text."""
    phrases = {" ".join(one.split()) for one in _lists()[name].split(",")} - {""}
    longest_first = sorted(phrases, key=len, reverse=True)
    return re.compile("|".join(map(_to_pattern, longest_first)))


def _to_pattern(phrase: str) -> str:
    """Match whole words; a phrase in a script without spaces matches anywhere, and a final * any ending."""
    text = re.escape(phrase.removesuffix("*"))
    if phrase[0] > "\u2e7f":
        return text
    before = r"(?<!\w)" if phrase[0].isalnum() else ""
    after = r"(?!\w)" if phrase[-1].isalnum() else ""
    return f"{before}{text}{after}"


def contains(name: str, folded: str) -> bool:
    """Return True if a phrase of the list is anywhere in a folded text."""
    return compile_voice(name).search(folded) is not None


def starts(name: str, folded: str) -> bool:
    """Return True if a folded text begins with a phrase of the list."""
    return compile_voice(name).match(folded.lstrip()) is not None


def equals(name: str, folded: str) -> bool:
    """Return True if a folded text is a phrase of the list and nothing else."""
    return compile_voice(name).fullmatch(folded.strip()) is not None
