"""What a comment or docstring says, without its marks: `/** … */`, `///`, `#`, Javadoc and XML tags, pragmas, licences.

Pure text. This module does not know where a comment stands or what it is about, and no language's syntax beyond the
marks of comments; a mark that means nothing in one language is taken off all the same.
"""

from __future__ import annotations

import re

LONGEST = 600  # characters of documentation that are kept
READ = 8_000  # characters of a comment that are looked at

# Marks at the beginning of a line. A `#` or `*` that begins the text itself needs a blank after the mark to be one.
_MARK = re.compile(
    r"[ \t]{0,200}(?:/\*{1,2}!?|//[/!]?|\*(?![*\w])|#[:!]?(?=\s|$)|#(?=\w))[ \t]?|[ \t]{1,200}"
)
_RULER = re.compile(r"[-=*#/_~+─═]{3,}")
_PRAGMA = re.compile(
    r"\s{0,8}(?:eslint|prettier|tslint|jshint|jslint|istanbul|c8 |global |globals |noinspection|pylint:|flake8:|noqa|type: ?ignore|mypy:"
    r"|ruff:|fmt:|isort:|pragma:|-\*-|vim?:|ex:|frozen_string_literal|(?:en)?coding[:=]|rubocop:|go:|\+build|nolint|clang-format|NOLINT|@ts-"
    r"|#?(?:end)?region|typed:|!/|usr/bin/env|sourceMappingURL|phpcs:|phpstan|@phpstan|@psalm|swiftlint|cSpell)",
    re.IGNORECASE,
)
_LICENCE = re.compile(
    r"copyright\b|©|\(c\) \d{4}|SPDX-|licen[cs]ed (?:under|to)\b|all rights reserved|governed by an? |see (?:the )?licen[cs]e"
    r"|under the (?:terms|[\w.-]{1,20} licen[cs]e)|<copyright",
    re.IGNORECASE,
)
_LICENCE_TEXT = re.compile(
    r"permission is hereby granted|redistribution and use in source|apache license, version|gnu (?:lesser )?(?:affero )?general public"
    r"|mozilla public license|without warranties or conditions",
    re.IGNORECASE,
)
# Tags that introduce the text itself, and tags that begin what is not wanted.
_LEAD = re.compile(
    r"[@\\](?:brief|description|desc|file|fileoverview|overview|summary|module|short|note|details|class|function|name)\b[ \t]*"
)
_TAG = re.compile(
    r"[@\\][a-zA-Z][\w-]{1,30}\b|:(?:param|returns?|raises?|type|rtype|arg|ivar|cvar)\b"
)
_INLINE = re.compile(
    r"\{@(?:link(?:plain)?\s+[^\s{}]{1,200}(?=\s+[^\s}]))?(?:\w{1,20})?\s+([^{}]{0,200})\}"
)
_REFERENCE = re.compile(
    r"<(?:see|seealso|paramref|typeparamref)\s[^<>\"]{0,40}\"(?:[A-Z]:)?([^\"<>]{0,200})\"[^<>]{0,80}>"
)
_MARKUP = re.compile(
    r"</?(?:summary|remarks|para|c|code|example|list|item|term|description|returns|value|inheritdoc|p|br|ul|ol|li|b|i|em|strong|pre|tt|a|h[1-6]|div"
    r"|span|blockquote)(?:\s[^<>]{0,200})?/?>",
    re.IGNORECASE,
)
_WORD = re.compile(r"(?<![\w@\\])[@\\](?:a|b|c|e|p|ref)[ \t]+(?=\w)|(?<!\w)%(?=[A-Za-z_])")
_LABEL = re.compile(
    r"(?:module )?(?:dependencies|exports|variables|imports|includes|prototypes|constants)\.?",
    re.IGNORECASE,
)
_SUMMARY = re.compile(r"<summary>(.{0,4000}?)</summary>", re.DOTALL | re.IGNORECASE)
_QUOTES = re.compile(r"[A-Za-z]{0,3}(\"\"\"|'''|\"|')")


def comment(raw: str) -> str:
    """The text of a comment, or of several that follow each other, line by line."""
    lines = []
    for line in raw[:READ].splitlines():
        line = line.rstrip().removesuffix("*/").rstrip()
        mark = _MARK.match(line)
        line = line[mark.end() :] if mark else line
        if not _PRAGMA.match(line):
            lines.append(_RULER.sub(" ", line) if _RULER.search(line) else line)
    return "\n".join(lines)


def docstring(raw: str) -> str:
    """The text of a Python string literal, without its quotes."""
    quotes = _QUOTES.match(raw)
    if quotes is None:
        return ""
    body = raw[quotes.end() :].removesuffix(quotes[1])[:READ]
    return "\n".join(_RULER.sub(" ", line).strip() for line in body.splitlines())


def summary(text: str, longest: int = LONGEST, paragraphs: int = 1) -> str:
    """The first paragraphs of a cleaned text, each on one line, without tags and licences."""
    if _LICENCE_TEXT.search(text):
        return ""
    if told := _SUMMARY.search(text):
        text = told[1]
    kept: list[str] = []
    for paragraph in re.split(r"\n[ \t]*(?:\n[ \t]*)+|<p>", text):
        said = _plain(paragraph)
        if said and not _LICENCE.search(said) and not _LABEL.fullmatch(said):
            kept.append(said)
        if len(kept) == paragraphs or (kept and _TAG.match(paragraph.strip())):
            break
    return shortened("\n".join(kept), longest)


def _plain(paragraph: str) -> str:
    lines = []
    for line in paragraph.strip().splitlines():
        line = line.strip()
        if lead := _LEAD.match(line):
            line = line[lead.end() :]
        elif _TAG.match(line):
            if not line.startswith("@deprecated"):
                break
            line = "Deprecated: " + line.removeprefix("@deprecated").strip()
        lines.append(line)
    text = " ".join(lines)
    if "{@" in text:
        text = _INLINE.sub(r"\1", text)
    if "@" in text or "\\" in text or "%" in text:
        text = _WORD.sub("", text)
    if "<" in text:
        text = _MARKUP.sub(" ", _REFERENCE.sub(r"\1", text))
    return " ".join(text.split()).strip()


def shortened(text: str, longest: int) -> str:
    """At most so many characters, cut at a word."""
    if len(text) <= longest:
        return text
    cut = text.rfind(" ", longest // 2, longest - 1)
    return text[: cut if cut > 0 else longest - 1].rstrip() + "…"
