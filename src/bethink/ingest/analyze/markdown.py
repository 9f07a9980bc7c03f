"""Markdown and reStructuredText, as far as prose about a project needs it: sections, paragraphs, warnings.

A line-by-line reading, so that everything keeps its line numbers. It is no renderer: what it does not understand stays
as it was written. It knows nothing of what a section is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from bethink.ingest.analyze.prose import plain, words

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+((?:[^ \t#]++|[ \t#]++(?=[^ \t#]))*)[ \t#]*$")
_FENCE = re.compile(r"[ \t]{0,12}(`{3,}|~{3,})")
_ITEM = re.compile(r"(?<![ \t])[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+")
_RULE = re.compile(r"[ \t]*(?:[-*_=][ \t]*){3,}$|(?=[ \t:-]*\|)[ \t:|-]{2,}$|[ \t]*\+[-=+]{4,}$")
_UNDERLINE = re.compile(r"([=\-~^\"'`#*+.:])\1{2,}[ \t]*$")
_ADMONITION = re.compile(
    r"""(?xi)
    [ \t]{0,8} (?:
      >[ \t]* \[!(?P<alert>warning|caution|important|note)\]                      # > [!WARNING]
    | !!!\+?[ \t]+ (?P<mkdocs>warning|danger|caution|important|attention|note)\b  # !!! warning "Title"
    | :{3,}[ \t]* (?P<fenced>warning|danger|caution|important|note)\b             # :::warning
    | \.\.[ \t]+ (?P<directive>warning|danger|caution|important|attention|note):: # .. warning::
    | (?:>[ \t]*+|[-*+][ \t]++)? (?:⚠️?|🚨|❗️?)?[ \t]* (?:\*\*|__|<(?:b|strong)>)?
      (?P<word>warning|caution|danger|important|gotcha|caveat|beware|note)
      (?:[ \t]*:[ \t]*(?:\*\*|__|</(?:b|strong)>)?|[ \t]*(?:\*\*|__|</(?:b|strong)>)[ \t]*:?)   # **Warning:** WARNING:
    )[ \t]*
    """
)
MOST_HEADINGS = 2_000
MOST_LINES = 40  # of one paragraph
LONGEST_LINE = 4_000  # characters; what is longer is no prose


class Section(NamedTuple):
    """A heading and the lines up to the next heading of the same or a higher level."""

    title: str
    level: int
    line: int  # of the heading
    own: tuple[str, ...]  # lines before the first heading inside
    whole: tuple[str, ...]
    parents: tuple[str, ...]

    @property
    def last(self) -> int:
        return (
            self.line
            + len(self.whole)
            - next((at for at, line in enumerate(reversed(self.whole)) if line.strip()), 0)
        )


class Warned(NamedTuple):
    word: str
    text: str
    lines: tuple[int, int]


def sections(text: str, rst: bool = False) -> list[Section]:
    """Every heading with what belongs to it. What stands before the first one is a section without a title, at line 0."""
    lines = text.split("\n")
    heads = [(0, 0, ""), *islice(_headings(lines, rst), MOST_HEADINGS)]
    ends = [len(lines)] * len(heads)
    opened: list[int] = []  # headings whose section goes on
    for at, (number, level, _) in enumerate(heads):
        while opened and (heads[opened[-1]][1] >= level or not heads[opened[-1]][1]):
            ends[opened.pop()] = number - 1
        opened.append(at)
    found: list[Section] = []
    path: list[tuple[int, str]] = []
    for at, (number, level, title) in enumerate(heads):
        path = [(depth, name) for depth, name in path if depth < level]
        following = heads[at + 1][0] - 1 if at + 1 < len(heads) else len(lines)
        own, whole = tuple(lines[number:following]), tuple(lines[number : ends[at]])
        found.append(Section(title, level, number, own, whole, tuple(name for _, name in path)))
        if level:
            path.append((level, title))
    return found


def _headings(lines: Sequence[str], rst: bool) -> Iterator[tuple[int, int, str]]:
    marks: dict[str, int] = {}
    for number, line in _outside_code(lines):
        heading = None if rst else _HEADING.match(line)
        if heading:
            yield number, len(heading[1]), plain(heading[2])
            continue
        under = (
            _UNDERLINE.match(lines[number])
            if number < len(lines) and line.strip() and not _ITEM.match(line) and "|" not in line
            else None
        )
        # reStructuredText underlines the whole title; Markdown takes any length, but not below a paragraph of several lines.
        alone = number < 2 or not lines[number - 2].strip()
        if under and (
            len(line.strip()) <= len(lines[number].rstrip()) if rst else alone and under[1] in "=-"
        ):
            level = marks.setdefault(under[1], len(marks) + 1) if rst else "=-".index(under[1]) + 1
            yield number, level, plain(line)


def _outside_code(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Line numbers and lines, without front matter, fenced code and comments."""
    fence, comment = "", False
    front = (
        bool(lines)
        and lines[0].rstrip() == "---"
        and any(line.rstrip() == "---" for line in lines[1:200])
    )
    for number, line in enumerate(lines, 1):
        if front:
            front = number == 1 or line.rstrip() != "---"
            continue
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        elif not fence:
            comment = comment or "<!--" in line
            if not comment:
                yield number, line
            comment = comment and "-->" not in line


def paragraphs(lines: Sequence[str], first: int) -> Iterator[tuple[str, int, int]]:
    """Each paragraph or list as plain text with its first and last line. Badges, rules, tables and code are left out."""
    held: list[str] = []
    begin = 0
    for number, line in [*_outside_code(lines), (len(lines) + 1, "")]:
        told = plain(line.lstrip("> \t")) if line.strip() else ""
        broken = bool(held) and (not line.strip() or number > begin + len(held) + 1)
        if broken:
            yield plain(" ".join(held)), first + begin, first + begin + len(held) - 1
            held = []
        if (
            told
            and len(held) < MOST_LINES
            and not _RULE.match(line)
            and not _HEADING.match(line)
            and not line.lstrip().startswith(("|", ".. ", "[!", "+--"))
        ):
            begin = begin if held else number - 1
            held.append(told)
        elif held:
            yield plain(" ".join(held)), first + begin, first + begin + len(held) - 1
            held = []


def readable(lines: Sequence[str], most_code: int = 6) -> str:
    """A section as text for people: wrapped lines joined, items one per line, tables as `a: b`, short code as commands."""
    result: list[str] = []
    coded: list[str] | None = None
    joined = False
    header: list[str] = []
    for at, line in enumerate(lines):
        if _FENCE.match(line):
            if coded is None:
                coded = []
            else:
                result += [_commands(coded)] if 0 < len(coded) <= most_code else []
                coded = None
            joined = False
        elif coded is not None:
            coded += [line.strip()] if line.strip() else []
        elif not line.strip() or _RULE.match(line):
            joined = False
            header = header if line.strip() else []
        elif (heads := _heads_table(lines, at)) or (header and "|" in line):
            header = _cells(line) if heads else header
            result += [] if heads else [_row(_cells(line), header)]
            joined = False
        elif heading := _HEADING.match(line):
            result.append(plain(heading[2]).rstrip(":") + ":")
            joined = False
        else:
            told = re.sub(
                r"^\[!(\w{1,20})\]",
                lambda alert: f"{alert[1].capitalize()}:",
                plain(line.lstrip("> \t")),
            )
            told = "- " + _ITEM.sub("", told, count=1) if _ITEM.match(line) else told
            if told and joined and not _ITEM.match(line) and len(result[-1]) < LONGEST_LINE:
                result[-1] += " " + told
            elif told:
                result.append(told)
            joined = bool(told)
    # Once more without markup: a link may have begun on one line and ended on the next.
    return "\n".join(told for line in result if (told := plain(line)).strip(" -"))


def _commands(lines: Sequence[str]) -> str:
    return "; ".join(f"`{line.removeprefix('$ ').removeprefix('> ')[:120]}`" for line in lines)


def _heads_table(lines: Sequence[str], at: int) -> bool:
    """Whether a line names the columns of a table: a line of dashes and bars follows."""
    return (
        "|" in lines[at]
        and at + 1 < len(lines)
        and "|" in lines[at + 1]
        and "-" in lines[at + 1]
        and bool(_RULE.match(lines[at + 1]))
    )


def _cells(line: str) -> list[str]:
    return [
        plain(cell)
        for cell in re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))
    ]


def _row(cells: list[str], header: list[str]) -> str:
    """A row as an item. From the third column on a value needs its column's name to be understood."""
    named = [
        f"{name}: {cell}" if at > 1 and name else cell
        for at, (cell, name) in enumerate(zip(cells, [*header, *[""] * len(cells)], strict=False))
        if cell
    ]
    return (
        f"- {named[0]}: {'; '.join(named[1:])}"
        if len(named) > 1
        else f"- {named[0]}"
        if named
        else ""
    )


def warned(text: str, rst: bool = False) -> Iterator[Warned]:
    """Warnings and notes that a writer set apart, with the text that belongs to them."""
    lines = text.split("\n")
    until = 0
    for number, line in _outside_code(lines):
        match = _ADMONITION.match(line) if number > until else None
        if not match:
            continue
        word = next(name for name in match.groupdict().values() if name).lower()
        told = [line[match.end() :].strip().strip('"')]
        end = number
        indented = bool(match["directive"] or match["mkdocs"])
        for following in lines[number : number + 30]:
            inside = (
                following.startswith((" ", "\t")) or not following.strip()
                if indented
                else following.strip()
            )
            if (
                not inside
                or _HEADING.match(following)
                or following.strip().startswith((":::", "```"))
            ):
                break
            if _ADMONITION.match(following) or (
                match["word"] and not following.lstrip().startswith(">") and _ITEM.match(following)
            ):
                break
            told.append(following)
            end += 1
        until = end
        body = readable(
            [
                piece.lstrip("> \t") if not indented else piece.strip()
                for piece in told
                if piece.strip()
            ]
        )
        if words(body) >= 5:
            yield Warned(word, body, (number, end))
