"""The sentences that findings are made of: cutting, listing, and Markdown without its markup. Knows no project."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_LINK = re.compile(r"!?\[([^\]\n]{0,300})\](?:\([^)\n]{0,600}\)|\[[^\]\n]{0,100}\])")
_IMAGE = re.compile(r"!\[[^\]\n]{0,300}\](?:\([^)\n]{0,600}\)|\[[^\]\n]{0,100}\])")
# Only what HTML has: `<name>` in a command is a placeholder.
_TAG = re.compile(
    r"</?(?:a|abbr|b|br|center|code|details|div|em|font|h[1-6]|hr|i|img|kbd|li|ol|p|picture|pre|s|small|source|span|strong|sub|summary|sup"
    r"|table|tbody|td|th|thead|tr|u|ul|video)(?:\s[^<>\n]{0,400})?/?>|<!--(?:[^-]|-(?!->)){0,2000}+(?:-->)?",
    re.DOTALL | re.IGNORECASE,
)
_STRONG = re.compile(r"(\*{1,3}|__)(?=\S)([^*_\n]{1,300}?)(?<=\S)\1")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)`]{0,2}\s+(?=[A-Z0-9`\"“(])|(?<=[。！？])")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|resp|incl)|\b[A-Z])\.$", re.IGNORECASE
)


def clip(text: str, limit: int) -> str:
    """The text, or as much of it as fits, cut after a sentence if one ends late enough, else after a word."""
    text = text.strip()
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    ends = [match.start() for match in _SENTENCE_END.finditer(head)]
    if ends and ends[-1] > limit * 0.6:
        return head[: ends[-1]].rstrip() + " …"
    cut = max(head.rfind(" "), head.rfind("\n"))
    return (head[:cut] if cut > limit * 0.5 else head).rstrip(" \n,;:-–(") + "…"


def sentence(text: str, limit: int = 160) -> str:
    """The first sentence, without its period."""
    text = " ".join(text[:2000].strip().split("\n\n", 1)[0].split())
    start = 0
    for match in _SENTENCE_END.finditer(text):
        if not _ABBREVIATION.search(text[: match.start()]):
            start = match.start()
            break
    return clip(text[:start] if start else text, limit).rstrip(".。 ")


def listed(items: Sequence[str], most: int = 12) -> str:
    """`a, b and c`; what is too many is counted."""
    shown = list(items[:most])
    if len(items) > most:
        return f"{', '.join(shown)} and {len(items) - most} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1]))) if shown else ""


def code(text: str, limit: int = 90) -> str:
    """A command as it stands in a sentence."""
    text = " ".join(text.split())
    text = text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
    return f"`{text.replace('`', chr(39))}`"


def plain(text: str) -> str:
    """A line of Markdown without images, links' addresses, tags and emphasis. Code keeps its backticks."""
    if "![" in text:
        text = _IMAGE.sub("", text)
    if "](" in text or "][" in text:
        text = _LINK.sub(r"\1", text)
    if "<" in text:
        text = _TAG.sub("", text.replace("<br>", " ").replace("<br/>", " ").replace("<br />", " "))
    if "*" in text or "__" in text:
        text = _STRONG.sub(r"\2", text)
    return text.strip()


def words(text: str) -> int:
    """How many words a text has; a script that does not part its words counts two characters for one."""
    return max(len(text.split()), sum(ord(character) > 0x2E7F for character in text) // 2)


def unique(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(item for item in items if item))
