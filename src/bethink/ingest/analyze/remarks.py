"""Warnings that programmers left beside the code: comments that open with WARNING, GOTCHA, HACK, CAVEAT and the like.

Only those with a sentence to tell. Plans (TODO, FIXME) are left out, because they age without anybody noticing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bethink.ingest.analyze.prose import clip, words
from bethink.ingest.analyze.tree import Finding, Tree, finding

MOST = 8
MOST_PER_FILE = 3
SHORTEST = 8  # words
SUFFIXES = (
    ".py",
    ".js",
    ".ts",
    ".tsx",
    ".jsx",
    ".mjs",
    ".go",
    ".rs",
    ".java",
    ".kt",
    ".rb",
    ".php",
    ".cs",
    ".c",
    ".h",
    ".cc",
    ".cpp",
    ".hpp",
    ".swift",
    ".scala",
    ".ex",
    ".exs",
    ".sh",
    ".sql",
    ".tf",
    ".lua",
)
_OPENING = re.compile(
    r"[ \t]{0,80}(?P<sign>#|//+!?|--|;+|/\*+|\*)[ \t]{0,8}[^\w\s]{0,4}[ \t]?"
    r"(?P<word>WARNING|GOTCHA|CAVEAT|HACK|DANGER|BEWARE|CAUTION|WORKAROUND|IMPORTANT)\b"
    r"(?:\([^)\n]{0,60}\))?[ \t]{0,4}[:!.,—–-]{1,3}[ \t]+(?P<told>\S.*)"
)
_IDLE = re.compile(
    r"(?i)generated|do not edit|eslint|noqa|licen[sc]e|pylint|copyright|deprecat\w{1,10} since|@"
)
_WEIGHT = {
    "GOTCHA": 6.5,
    "DANGER": 6.5,
    "WARNING": 6.0,
    "BEWARE": 6.0,
    "CAUTION": 6.0,
    "CAVEAT": 6.0,
    "WORKAROUND": 6.0,
    "HACK": 5.5,
    "IMPORTANT": 5.5,
}


def analyze(tree: Tree) -> Iterator[Finding]:
    found: list[Finding] = []
    for path in tree.suffixed(*SUFFIXES):
        text = tree.text(path)
        if any(word in text for word in _WEIGHT):
            found += list(_remarks(path, text.split("\n")))[:MOST_PER_FILE]
    order = sorted(range(len(found)), key=lambda at: (-(found[at].passage.importance or 0), at))[
        :MOST
    ]
    yield from (found[at] for at in sorted(order))


def _remarks(path: str, lines: list[str]) -> Iterator[Finding]:
    for number, line in enumerate(lines, 1):
        match = _OPENING.match(line) if len(line) < 400 else None
        if not match:
            continue
        told = [match["told"]]
        sign = "*" if match["sign"].startswith("/*") else match["sign"]
        for following in lines[number : number + 8]:
            inside = following.strip()
            if (
                not inside.startswith(sign)
                or inside.startswith("*/")
                or not (rest := inside[len(sign) :].strip("*/ \t"))
                or _OPENING.match(following)
            ):
                break
            told.append(rest)
        text = " ".join(told).removesuffix("*/").strip()
        if words(text) >= SHORTEST and not _IDLE.search(text):
            word = match["word"]
            content = f"{word.capitalize()} in {path}:{number}: {clip(text, 500)}"
            lines_of = (number, number + len(told) - 1)
            yield finding(
                path,
                lines_of,
                "gotcha",
                "caveat",
                content,
                importance=_WEIGHT[word],
                confidence=0.8,
                section=f"{path} › comment",
            )
