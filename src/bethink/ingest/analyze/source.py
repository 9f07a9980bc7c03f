"""Source text without a parser: comments blanked out, the arguments of a call, the comment a file opens with.

Enough for what stands plainly in a file, the same with or without tree-sitter, and linear in the text. It does not know
types, scopes or macros, and a regular expression literal that holds a comment sign can hide the rest of its line.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from bethink.ingest.analyze.prose import plain

LONGEST_CALL = 3_000  # characters within which the arguments of a call must end
_C_COMMENTS = r"//[^\n]*|/\*.*?(?:\*/|\Z)"
_DOUBLE, _SINGLE, _TICKED = r'"(?:\\.|[^"\\\n])*"?', r"'(?:\\.|[^'\\\n])*'?", r"`(?:\\.|[^`\\])*`?"
# What is skipped as a whole, comments first: the alternative that opens first wins, so a sign inside a string opens nothing.
_TOKENS = {
    "javascript": rf"(?P<comment>{_C_COMMENTS})|{_DOUBLE}|{_SINGLE}|{_TICKED}",
    "go": rf"(?P<comment>{_C_COMMENTS})|{_DOUBLE}|'(?:\\.|[^'\\\n]){{1,8}}'|`[^`]*`?",
    "java": rf'(?P<comment>{_C_COMMENTS})|""".*?(?:"""|\Z)|{_DOUBLE}|{_SINGLE}',
    "rust": rf"(?P<comment>{_C_COMMENTS})|{_DOUBLE}|'(?:\\.|[^'\\\n])'",
    "ruby": rf"(?P<comment>(?m:^=begin\b.*?^=end\b)|(?<![\w\"'}}])#(?!\{{)[^\n]*)|{_DOUBLE}|{_SINGLE}",
    "hash": rf"(?P<comment>(?<!\S)#[^\n]*)|{_DOUBLE}|{_SINGLE}",
}


@cache
def _tokens(language: str) -> re.Pattern[str]:
    return re.compile(_TOKENS[language], re.DOTALL)


def without_comments(text: str, language: str) -> str:
    """The text with comments as blanks, so that every offset and line number stays."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0]) if match["comment"] is not None else match[0]

    return _tokens(language).sub(blank, text)


_SIGNS = re.compile(r"[\"'`/()\[\]{},]")


class Argument(NamedTuple):
    text: str
    offset: int


def arguments(text: str, opening: int, language: str = "javascript") -> list[Argument]:
    """The arguments of the call whose `(` stands at that offset, cut at the commas that are not inside brackets or strings.

    A call that goes on for longer than can be read ends where reading does: its last argument is a long function.
    """
    found: list[Argument] = []
    depth, begin, at = 0, opening + 1, opening
    end = min(len(text), opening + LONGEST_CALL)
    while (sign := _SIGNS.search(text, at, end)) is not None:
        at = sign.start()
        if text[at] in "\"'`/":
            token = _tokens(language).match(text, at)
            at = token.end() if token else at + 1
            continue
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth <= 0 or (text[at] == "," and depth == 1):
            _add(found, text, begin, at)
            begin = at + 1
            if depth <= 0:
                return found
        at += 1
    _add(found, text, begin, end)
    return found


def _add(found: list[Argument], text: str, begin: int, end: int) -> None:
    piece = text[begin:end]
    if piece.strip():
        found.append(Argument(piece.strip(), begin + len(piece) - len(piece.lstrip())))


def literal(text: str) -> str | None:
    """What a string literal says; None for anything else, and for a template with a hole at its start."""
    text = text.strip()
    if (
        len(text) >= 2
        and text[0] == text[-1]
        and text[0] in "\"'`"
        and text[0] not in text[1:-1]
        and "\n" not in text
    ):
        value = re.sub(r"\$\{[^}]{0,80}\}", "{…}", text[1:-1]) if text[0] == "`" else text[1:-1]
        return value if len(value) <= 200 else None
    return None


def opening_comment(text: str, suffix: str) -> tuple[str, int] | None:
    """What a file says about itself before any code, and the line where it begins. A licence is no description."""
    head = text[:8_000]
    if suffix == ".py":
        found = _docstring(head)
    elif suffix == ".go":
        found = re.search(r"(?m)(?P<told>(?:^//[^\n]*\n){1,60})^package\s", head)
    elif suffix == ".rs":
        found = re.match(r"(?m)\s*+(?P<told>(?:^//![^\n]*\n?){1,60})", head)
    else:
        found = _block_comment(head)
    if not found:
        return None
    told = (
        re.sub(r"(?m)^[ \t]*(?://!?|\*(?!\*))[ \t]?", "", found["told"]).strip()
        if suffix != ".py"
        else found["told"].strip()
    )
    told = re.split(
        r"\n[ \t]*\n|\n[ \t]*@\w",
        re.sub(r"^@(?:file|fileoverview|module|packageDocumentation)\b", "", told).strip(),
        maxsplit=1,
    )[0]
    told = plain(" ".join(told.split()))
    if len(told) < 12 or re.search(
        r"(?i)copyright|licen[sc]ed? (?:under|to)|spdx|auto-?generated|@generated|eslint|do not edit",
        told,
    ):
        return None
    return told, text.count("\n", 0, found.start("told")) + 1


def _docstring(head: str) -> re.Match[str] | None:
    """Of Python only the opening string is read: parsing every module of a project would take seconds."""
    lead = re.match(r"(?:[ \t]*(?:#[^\n]*)?\n){0,60}[ \t]*[rRuU]?", head)
    at = lead.end() if lead else 0
    for quote in ('"""', "'''"):
        if head.startswith(quote, at):
            return re.compile(rf"{quote}(?P<told>.*?)(?:{quote}|\Z)", re.DOTALL).match(head, at)
    return re.compile(r"(?P<quote>[\"'])(?P<told>[^\"'\\\n]+)(?P=quote)").match(head, at)


def _block_comment(head: str) -> re.Match[str] | None:
    """A `/** … */` at the top that belongs to the file and not to the declaration after it."""
    lead = re.match(r"(?:#![^\n]*\n)?\s*+", head)
    found = re.compile(r"/\*\*(?P<told>.*?)\*/", re.DOTALL).match(head, lead.end() if lead else 0)
    if not found:
        return None
    rest = head[found.end() :]
    apart = re.match(r"[ \t]*\n[ \t]*\n", rest) or rest.lstrip().startswith(
        ("import ", "'use ", '"use ', "export *", "package ")
    )
    return (
        found
        if apart
        or re.search(r"@(?:file|fileoverview|module|packageDocumentation)\b", found["told"])
        else None
    )
