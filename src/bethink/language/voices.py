"""Phrases by which a reader tells who speaks: the user to the agent, or another person.

`voices.toml` holds lists of phrases in several languages, and is read when the first of them is needed.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

from bethink.language.openers import OPENERS
from bethink.language.pattern import Pattern


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


# Signs of text by another person, beside the phrases

STAMPED_LINE = Pattern(
    "a line that names who wrote it and when",
    r"[ \t]{0,8}(?:\S{1,20}[ \t]{1,4}){1,5}\(?\d{1,2}:\d\d(?: ?[ap]m)?\)?[ \t]{0,4}$"
    r"|.{0,60}\b(?:opened|commented|reported|posted|asked|authored|reviewed|edited|answered)\b.{0,40}\b(?:ago|by|on)\b.{0,30}$"
    r"|.{0,60}\(score \d{1,6}\):?[ \t]{0,4}$",
    start=True,
    flags=0,
    matches=(
        "eve  10:42 AM",
        "Eve — Today at 10:42",
        "eve commented 2 hours ago",
        "Answer by eve (score 42)",
    ),
    rejects=("Start it at 10:42 and wait", "We opened the file"),
)
OPENED_TICKET = Pattern(
    "the line below the title of a ticket",
    r".{0,60}\b(?:opened|created|reported|authored|filed|wants to merge)\b.{0,40}\b(?:ago|by|on|into)\b",
    start=True,
    flags=0,
    matches=("eve opened this issue 3 days ago", "eve wants to merge 2 commits into main"),
    rejects=("I opened a ticket",),
)
GREETS_SOMEBODY = Pattern(
    "greets a person who is no agent",
    r"(?:hi|hello|hey|hallo|hola|bonjour|salut|ciao|olá)\s+(?!claude|codex|copilot|gemini|cursor|agent|there\b)[\w.-]+(?:\s[\w.-]+)?\s*,",
    start=True,
    matches=("Hi Eve,", "Hallo Frau Maier,"),
    rejects=("hey claude, fix it", "hi there, fix it", "Hello"),
)
NAMES_SOURCE = Pattern(
    "names the source of a text",
    r"\(\s*(?:from|source|via|per|see|quelle|siehe|aus|laut|selon|d'après|fuente|según|fonte|来源|出典)\b"
    r"|(?<!\w)(?:source|quelle|fuente|fonte|via|ref)\s*:|(?:来源|出典)[:：]",
    matches=("We use X (from the wiki)", "Source: the handbook"),
    rejects=("We get it from the wiki", "open source"),
)
QUOTED_EXAMPLE = Pattern(
    "an example, behind its introduction",
    r"\b(?:e\.g\.|eg|for example|for instance|z\.b\.|zum beispiel|par exemple|por ejemplo|por exemplo|ad esempio|например)[,:]?\s+(.{1,600})",
    fold=False,
    flags=re.IGNORECASE,
    matches=("add an example, e.g. we moved to another host",),
    rejects=("an example of it",),
)
ANOTHER_PERSON = Pattern(
    "speaks of another person",
    r"\b(?:he|she|his|her|him|hers)\b",
    matches=("she wants Redis",),
    rejects=("the header",),
)
FROM_A_TEXT = Pattern(
    "begins by naming the text that it is from",
    r"\W{0,4}from (?:the|our|a|an|his|my|their|\w+'s)\b(?! (?:now|here|start|beginning|next))",
    start=True,
    matches=("From the wiki: use X", "from Eve's mail"),
    rejects=("From now on use X", "from the start we used X"),
)
# The end of a clause that attributes its content to others: "Eve's opinion is that …", "the consensus was that …".
REPORTED_CONTENT = Pattern(
    "the content of what somebody says",
    r"(?<=\w\s)(?<!so\s)(?<!note\s)(?<!remember\s)(?<!like\s)(?<!of\s)(?<!for\s)(?<!to\s)(?<!do\s)(?<!after\s)(?<!than\s)"
    r"that\s(?!is\b|was\b|are\b|way\b|would\b|should\b|might\b|can\b|will\b|has\b|have\b)(?=\w)",
    matches=("Eve's opinion is that we use X",),
    rejects=("note that we use X", "do that now", "I know that is slow"),
)
OWN_CONTENT = Pattern(
    "the speaker answers for the content",
    rf"\bso (?:many|much|few)\b|^(?:\W|{OPENERS}){{0,6}}(?:we|i|our|my|the (?:problem|issue|reason|point|goal|thing|trick|plan|rule"
    r"|catch|result|downside|risk|difference|fix|solution|bug|cause))\b",
    matches=("ok, we decided", "the problem is", "there are so many"),
    rejects=("Eve's opinion is",),
)
BEGINS_ANEW = Pattern(
    "another text begins in the midst of a sentence",
    r"[\w)\]] +(?:We|The|Our|All|It|This|These|There|They|You|Your|Always|Never|Please|Every|Each|Use|Do|Don't|No)(?= +[a-z])"
    r"|[\d)] +[A-Z][a-z]+(?= +[a-z])",
    fold=False,
    matches=("Summary of the page We use X", "Point 3 Always ask"),
    rejects=("Use the Always Free tier. We like it", "ask the team"),
)
