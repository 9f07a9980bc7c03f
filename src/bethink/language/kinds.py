"""Cue phrases: how strongly wording suggests each kind of memory, and how firm it is.

`cues.toml` holds the phrases with their weights, and is read when a text is first classified.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from bethink.language.pattern import Pattern, compile_pattern, fold_case

CERTAINTY = ("hedge", "firm")  # blocks of the cue file that speak for no kind


# Each further cue adds this share of its weight, up to four in all: set by hand on the examples of tests/test_extract.py.
FURTHER_CUE, FURTHER_WEIGHT = 0.15, 4
HEDGES_COUNTED, FIRM_COUNTED = 2, 3  # occurrences of one cue that count; set by hand


class Cue(NamedTuple):
    """Phrases that all speak for the same kind, or for the same certainty."""

    weight: float
    pattern: re.Pattern[str]

    def count(self, folded: str) -> int:
        """Count the occurrences in a folded text."""
        return len(self.pattern.findall(folded))


@cache
def cues() -> dict[str, list[Cue]]:
    """Return the cues of each kind and of each certainty, in the order of the file."""
    blocks = tomllib.loads(Path(__file__).with_name("cues.toml").read_text("utf-8"))
    return {
        kind: [Cue(one["weight"], compile_pattern("|".join(one["phrases"]))) for one in own]
        for kind, own in blocks.items()
    }


def cue_scores(text: str) -> dict[str, float]:
    """Return for each kind the weight of its strongest cue, and a little for every further one."""
    folded = fold_case(text)
    scores: dict[str, float] = {}
    for kind, own in cues().items():
        if kind in CERTAINTY:
            continue
        found = [cue.weight for cue in own if cue.pattern.search(folded)]
        if found:
            strongest = max(found)
            further = min(sum(found) - strongest, FURTHER_WEIGHT)
            scores[kind] = strongest + FURTHER_CUE * further
    return scores


def firmness(text: str, value: float) -> float:
    """Lower a confidence for each hedge in a text, and raise it for each firm wording."""
    folded = fold_case(text)
    for hedge in cues()["hedge"]:
        value -= hedge.weight * min(hedge.count(folded), HEDGES_COUNTED)
    return value + sum(cue.weight * min(cue.count(folded), FIRM_COUNTED) for cue in cues()["firm"])


# Preferences: how a speaker wants others to work, in any project. They address anybody who works, about the work itself. A speaker who
# says "we" means a project.
ADDRESSES_EVERYONE = Pattern(
    "asked of anybody who works",
    r"\b(?:always|never|don'?t|do not|avoid|prefer|from now on|before (?:you|making|doing|starting|each|every|any)|when(?:ever)? you"
    r"|every time|i (?:want|like|hate|expect|need) you|you (?:should|must|can) (?:always|never)|(?:answer|reply|talk|write|explain) in)\b",
    matches=("Always run the linter", "I want you to ask first", "before you push, ask"),
    rejects=("Run the linter", "The linter is slow"),
)
WAY_OF_WORKING = Pattern(
    "about the way of working",
    r"\b(?:commits?|committing|branch(?:es)?|push(?:ing)?|rebas\w+|squash\w*|pull requests?|prs?|reviews?|linter|lint|formatter|tests? first"
    r"|run the tests|ask(?:ing)? (?:me|first|before)|explain\w*|explanations?|summar\w+|answers?|repl(?:y|ies)|comments?|docstrings?|emojis?"
    r"|plan(?:s|ning)? (?:first|before)|step by step|small steps|german|english|french|spanish|chinese|concise\w*|brief(?:ly)?|verbose|short)\b",
    matches=("small commits", "answer in German", "no emojis"),
    rejects=("The cache is keyed by user",),
)
OF_A_PROJECT = Pattern(
    "about one project",
    r"\b(?:we|we'\w+|our|ours|us|here|(?:this|the|that) (?:repo|repository|project|app|codebase|service|module|package|team|api|server|client"
    r"|customer|branch|pr|file|test|function|page|ticket|issue|release)|today|(?<!from )now|this time)\b",
    matches=("we squash", "in this repo", "for now"),
    rejects=("from now on, ask first", "squash commits"),
)
RECURS = Pattern(
    "work that recurs, or the subject of a commit",
    r"\b(?:each|every|always|never|whenever|any)\b|^(?:build|chore|ci|docs|feat|fix|perf|refactor|revert|style|test)(?:\([^)]*\))?!?:",
    flags=0,
    matches=("Rotate the key every month", "fix(cache): expire entries"),
    rejects=("Rotate the key", "fix the cache"),
)
