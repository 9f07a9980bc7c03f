"""Markdown → chunks. Joined, their texts are the document again, to the character.

`outline` reads the block structure once with a CommonMark parser and grades every line by how well the text can be cut
before it. `by_headers` cuts at H1–H3 and splits what is longer than a size; `by_lines` slides a window over the lines. What
a chunk repeats of the one before stands apart in `overlap`.

This module knows neither files nor memories, and nothing inside a line but where sentences and words end. Only the blocks are
parsed: inline Markdown is of no use here, and the one part whose parsing can be made slow.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from bethink.store.words import is_unspaced

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

DEEPEST = 3  # headers that begin a section: H1 to H3
TINY = 80  # characters below a heading that do not make a passage
LARGEST_BLOCK = 20_000  # characters up to which a code fence or a table stays whole
LONGEST_TITLE = 160  # of one header; a paragraph underlined by mistake is one, too
# Parsed at most: a short line makes five tokens, each cell of a table three, and a token takes a quarter of a kilobyte.
LONGEST_PARSED = 2_000_000  # characters
MOST_LINES = 40_000
MOST_BARS = 100_000  # a text with more of them is read without tables

# What a header is made of that is words.
SPOKEN = ("text", "code_inline", "image", "text_special", "softbreak", "hardbreak")

# How well a text can be cut before a line, from not at all to best.
WHOLE, CODE, LINE, DEEP, ITEM, TOP, HEAD = range(7)

BREAK = re.compile(r"\r\n?|\n")
_CLOSERS = "['\"’”»)\\]}*_`）」』】》]{0,4}"
_REST = r"[^\S\r\n]*(?:\r\n?|\n)?"
# The end of a sentence with the white space after it, within its line. Scripts without spaces need none.
_SENTENCE = re.compile(rf"(?:[.!?…؟۔।]{_CLOSERS}(?=\s)|[。！？｡．]{_CLOSERS}){_REST}")
_WORD = re.compile(r"\s\S")
_MARKUP = re.compile(r"[`*_\[\]<>&!\\]")
_ANCHOR = re.compile(r" ?\{#[^{}]{0,80}\}$")


class Chunk(NamedTuple):
    text: str  # an exact slice of the source
    overlap: str  # what is carried over from the chunk before
    title: str  # the headers above it: "Guide > Install > Linux"
    lines: tuple[int, int]  # of `text`, from 1
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody asks of a chunk


class Heading(NamedTuple):
    line: int  # from 0, as all lines of an outline
    end: int
    level: int
    title: str  # with the headers above it


class PageOutline(NamedTuple):
    starts: Sequence[int]  # where each line begins, and the end of the text
    grades: bytearray  # per line, and one for the end
    headings: tuple[Heading, ...]
    comments: tuple[tuple[int, int], ...]  # lines of HTML comments that are blocks of their own


class HeaderSection(NamedTuple):
    first: int
    below: int  # the line after its heading
    last: int  # the line after it
    level: int
    title: str
    length: int  # characters below its heading


def by_headers(body: str, size: int = 2000, overlap: int = 15, first_line: int = 1) -> list[Chunk]:
    """Sections of at most `size` characters, each with up to `overlap` percent of the chunk before."""
    known, size, overlap = outline(body), max(1, size), min(max(overlap, 0), 50)
    chunks: list[Chunk] = []
    before = (0, 0)
    for section in _merge_short(split_sections(body), known, size):
        begin = start = known.starts[section.first]
        for end in _find_ends(body, known, start, known.starts[section.last], size):
            carried = _find_overlap(
                body, known, *before, (before[1] - before[0]) * overlap // 100, start > begin
            )
            chunks.append(
                Chunk(
                    body[start:end],
                    carried,
                    section.title,
                    _lines(known, start, end, first_line),
                    len(chunks),
                )
            )
            before, start = (start, end), end
    return chunks


def by_lines(body: str, tokens: int = 400, overlap: int = 80, first_line: int = 1) -> list[Chunk]:
    """Whole lines up to `tokens` tokens of four characters, of which `overlap` are the last lines of the chunk before."""
    known, most = outline(body), max(4, tokens * 4)
    least = min(max(overlap, 0) * 4, most // 2)
    chunks: list[Chunk] = []
    start = end = 0
    while end < len(body):
        carried = _last_lines(body, known, start, end, least)
        start, room = end, max(1, most - len(carried) - (2 if carried else 0))
        end = (
            len(body) if len(body) - start <= room else _line_cut(body, known, start, start + room)
        )
        chunks.append(
            Chunk(
                body[start:end],
                carried,
                _title(body, known, start, end),
                _lines(known, start, end, first_line),
                len(chunks),
            )
        )
    return chunks


@lru_cache(maxsize=1)  # directives and chunks are about the same text
def outline(body: str) -> PageOutline:
    starts = array("Q", [0])
    starts.extend(match.end() for match in BREAK.finditer(body))
    if starts[-1] < len(body):
        starts.append(len(body))
    lines = len(starts) - 1
    # What follows is no text that a person wrote; it is cut between sentences and lines.
    last = min(lines, MOST_LINES, max(1, bisect_right(starts, LONGEST_PARSED) - 1))
    tokens = _parser(0 < body.count("|") < MOST_BARS).parse(body[: starts[last]]) if last else []
    grades, whole = bytearray([LINE]) * (lines + 1), 0  # the line up to which a block stays whole
    headings: list[Heading] = []
    comments: list[tuple[int, int]] = []
    above = [(0, "")]
    for number, token in enumerate(tokens):
        if token.map is None or token.type == "inline" or token.map[0] < whole:
            continue
        first, end = token.map
        grades[first] = max(grades[first], (TOP, ITEM, DEEP)[min(token.level, 2)])
        if token.level == 0 and token.type == "heading_open":
            grades[first] = HEAD
            if (level := int(token.tag[1:])) <= DEEPEST:
                title = _plain(tokens[number + 1].content)
                while above[-1][0] >= level:
                    above.pop()
                above.append((level, " > ".join(filter(None, (above[-1][1], title)))))
                headings.append(Heading(first, end, *above[-1]))
        if token.type in ("fence", "table_open", "code_block"):
            small = token.type != "code_block" and starts[end] - starts[first] <= LARGEST_BLOCK
            grades[first + 1 : end] = bytes([WHOLE if small else CODE]) * (end - first - 1)
            whole = end
        elif token.type == "html_block" and token.content.lstrip().startswith("<!--"):
            comments.append((first, end))
    return PageOutline(starts, grades, tuple(headings), tuple(comments))


@cache
def _parser(tables: bool) -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    if tables:
        parser.enable("table")  # asked of every block, so only where there is a bar
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _plain(content: str) -> str:
    """The words of a header, without its markup."""
    text = _ANCHOR.sub("", " ".join(content[: 4 * LONGEST_TITLE].split()))
    if len(text) > LONGEST_TITLE:
        text = text[:LONGEST_TITLE].rpartition(" ")[0] or text[:LONGEST_TITLE]
    if not _MARKUP.search(text):
        return text
    children = (child for inline in _inline().parseInline(text) for child in inline.children or ())
    words = "".join(
        child.content or " " * child.type.endswith("break")
        for child in children
        if child.type in SPOKEN
    )
    return " ".join(words.split()) or text


@cache
def _inline() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark")


def split_sections(body: str) -> Iterator[HeaderSection]:
    """What stands before the first heading of the first three levels, then each of them with what follows it."""
    known = outline(body)
    begins = [Heading(0, 0, 0, ""), *known.headings]
    ends = [*(heading.line for heading in known.headings), len(known.starts) - 1]
    for (line, below, level, title), last in zip(begins, ends, strict=True):
        if line < last:
            length = len(body[known.starts[below] : known.starts[last]].strip())
            yield HeaderSection(line, below, last, level, title, length)


def _merge_short(
    sections: Iterator[HeaderSection], known: PageOutline, size: int
) -> Iterator[HeaderSection]:
    """Joins a section that says next to nothing to the one it leads to. What they share is called by the latter's title."""
    waiting: HeaderSection | None = None
    for section in sections:
        if waiting and _leads_to_next(waiting, section) and _fits(waiting, section, known, size):
            section = section._replace(first=waiting.first)
        elif waiting:
            yield waiting
        waiting = section
    if waiting:
        yield waiting


def _leads_to_next(section: HeaderSection, next: HeaderSection) -> bool:
    """Whether a section is better read with the next. An empty one always is. A short one is when it introduces a sub-section;
    two short sections side by side are each found best by their own title."""
    return section.length == 0 or (section.length < TINY and next.level > section.level)


def _fits(section: HeaderSection, next: HeaderSection, known: PageOutline, size: int) -> bool:
    """Whether joining does no harm: both fit into one chunk, or the next does not fit by itself and is split anyway."""
    end = known.starts[next.last]
    return end - known.starts[section.first] <= size or end - known.starts[next.first] > size


def _lines(known: PageOutline, start: int, end: int, first_line: int) -> tuple[int, int]:
    return bisect_right(known.starts, start) - 1 + first_line, bisect_right(
        known.starts, end - 1
    ) - 1 + first_line


def _title(body: str, known: PageOutline, start: int, end: int) -> str:
    """The headers above the first line that says something."""
    line = bisect_right(known.starts, end - len(body[start:end].lstrip())) - 1
    above = bisect_right(known.headings, line, key=lambda heading: heading.line)
    return known.headings[above - 1].title if above else ""


def _find_ends(body: str, known: PageOutline, start: int, end: int, size: int) -> Iterator[int]:
    while end - start > size:
        start = _find_cut(body, known, start, end, size)
        yield start
    if start < end:
        yield end


def _find_cut(body: str, known: PageOutline, start: int, end: int, size: int) -> int:
    """Where a text that is too long is cut: between blocks, the outer ones first, else between sentences, else between lines.
    A quarter of the size comes together before a worse place further on is not taken any more."""
    limit = start + max(
        1, min(size, end - start - size // 8)
    )  # leaves something for the last chunk
    low, high = bisect_right(known.starts, start), bisect_right(known.starts, limit)
    grades = known.grades[low:high]
    quarter = max(1, size // 4)
    for least in (start + quarter, start + min(TINY, quarter)):
        for grade in (HEAD, TOP, ITEM, DEEP):
            line = grades.rfind(grade)
            if line >= 0 and known.starts[low + line] >= least:
                return known.starts[low + line]
        if (cut := _last_sentence(body, known, start, least, limit)) is not None:
            return cut
        line = max(grades.rfind(LINE), grades.rfind(CODE))
        if line >= 0 and known.starts[low + line] >= least:
            return known.starts[low + line]
    # Next to nothing stands before a block that must stay whole, or before a line that is too long: they stay together.
    if known.grades[low] == WHOLE:
        return _block_end(body, known, low, end)
    line = max(grades.rfind(grade) for grade in range(CODE, HEAD + 1))
    if line >= 0 and known.grades[low + line + 1] == WHOLE:
        return _block_end(body, known, low + line + 1, end)
    near = known.starts[low + line] if line >= 0 else start
    cut = _last_space(body, near, limit)
    return cut if cut is not None else near if near > start else _round_down(body, start, limit)


def _block_end(body: str, known: PageOutline, line: int, end: int) -> int:
    """Where a block that stays whole ends, with the empty lines after it."""
    lines = len(known.starts) - 1
    while line < lines and known.grades[line] == WHOLE:
        line += 1
    while known.starts[line] < end and body[known.starts[line] : known.starts[line + 1]].isspace():
        line += 1
    return min(known.starts[line], end)


def _last_sentence(body: str, known: PageOutline, start: int, least: int, limit: int) -> int | None:
    for match in reversed(list(_SENTENCE.finditer(body, start, limit))):
        if match.end() < least:
            return None
        if _ends_sentence(body, known, match):
            return _round_down(body, start, match.end())
    return None


def _ends_sentence(body: str, known: PageOutline, match: re.Match[str]) -> bool:
    line = bisect_right(known.starts, match.start()) - 1
    if known.grades[line] <= CODE or known.grades[line + 1] <= CODE:
        return False
    # "e.g. this" goes on, and "1. " numbers the item of a list.
    before = body[max(known.starts[line], match.start() - 12) : match.start()]
    return not body[match.end() : match.end() + 1].islower() and not before.strip().isdigit()


def _last_space(body: str, start: int, limit: int) -> int | None:
    """Where the last word before the limit begins, if white space stands before it."""
    piece = body[start:limit]
    if not piece or piece[-1].isspace():
        return _round_down(body, start, limit) if piece else None
    before, _, _ = piece.rpartition(piece.split()[-1])
    return start + len(before) if before else None


def _round_down(body: str, start: int, cut: int) -> int:
    """The nearest place before a cut that parts neither a line end nor a letter from its marks."""
    for at in range(cut, max(start, cut - 16), -1):
        if not _belong_together(body[at - 1 : at + 1]):
            return at
    return cut + 1 if body[cut - 1 : cut + 1] == "\r\n" else cut


def _belong_together(pair: str) -> bool:
    return pair == "\r\n" or (
        len(pair) == 2
        and (
            bool(unicodedata.combining(pair[1])) or pair[1] in "\u200d\ufe0f" or pair[0] == "\u200d"
        )
    )


def _line_cut(body: str, known: PageOutline, start: int, limit: int) -> int:
    """The last line that begins before the limit; a line that is longer than that is cut between sentences or words."""
    line = bisect_right(known.starts, limit) - 1
    if known.starts[line] > start:
        return known.starts[line]
    ends = [match.end() for match in _SENTENCE.finditer(body, start + (limit - start) // 4, limit)]
    if ends:
        return _round_down(body, start, ends[-1])
    cut = _last_space(body, start, limit)
    return _round_down(body, start, limit) if cut is None else cut


def _find_overlap(
    body: str, known: PageOutline, start: int, end: int, length: int, same_section: bool
) -> str:
    """The last sentences or lines of a chunk, at most so many characters. Never begins inside a code block or a table. Where
    not even a sentence fits, half of one helps what goes on in the same section; under another header it would only mislead."""
    end = start + len(body[start:end].rstrip())
    at = max(start, end - length)
    if at >= end:
        return ""
    line = bisect_left(known.starts, at)
    while known.starts[line] < end and known.grades[line] <= CODE:
        line += 1
    begins = [known.starts[line]]
    for match in _SENTENCE.finditer(body, max(start, at - 8), end):
        if at <= match.end() < end and _ends_sentence(body, known, match):
            begins.append(match.end())
            break
    begin = min(begins)
    if begin >= end:
        line = bisect_right(known.starts, at) - 1
        if not same_section or known.grades[line] <= CODE or known.grades[line + 1] <= CODE:
            return ""
        begin = _word_start(body, at, end)
    return body[begin:end].lstrip("\r\n")


def _last_lines(body: str, known: PageOutline, start: int, end: int, length: int) -> str:
    end = start + len(body[start:end].rstrip())
    at = max(start, end - length)
    if at >= end:
        return ""
    begin = known.starts[bisect_left(known.starts, at)]
    return body[begin if begin < end else _word_start(body, at, end) : end].lstrip("\r\n")


def _word_start(body: str, at: int, end: int) -> int:
    if at == 0 or body[at - 1].isspace() or is_unspaced(body[at]):
        return at
    match = _WORD.search(body, at, end)
    return match.end() - 1 if match else end
