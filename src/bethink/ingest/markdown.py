"""Markdown files → passages: frontmatter, directives, and pieces of text with the headers above them.

A directive controls how a file is read. It is part of the frontmatter, or on a separate line before the first header:
`<!-- vector-index: false -->` (or `index: false`) keeps the file out altogether, at any place; `<!-- bethink: kind=gotcha,
importance=8 -->` says what it is. An invalid value gives a warning and has no effect; broken frontmatter gives a warning, too, and the
text below it is read all the same.

Files are redacted as a whole before they are cut, because half of a private block does not look private any more. `outline` reads the
block structure with a CommonMark parser and grades every line by how well the text can be cut before it. `by_headers` cuts at H1–H3
and splits sections that are longer than a size; `by_lines` slides a window over the lines. Joined, the texts of their chunks are the
document again, to the character; the overlap with the chunk before is kept apart. Lines end with a line feed, as `files` reads them.

This module knows no store. `files` decides which files are read.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from bethink import plugins
from bethink.errors import InvalidInput
from bethink.ingest.files import Found, read_text, unify_line_ends
from bethink.ingest.formats import Reader
from bethink.ingest.redact import redact
from bethink.ingest.sync import Document, Skipped
from bethink.model import Passage
from bethink.text import check_kind

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

Fields = dict[str, Any]
VERSION = 5  # raised when the same file gives other passages, so that everything is read again
LONGEST_FRONTMATTER = 64 * 1024
MOST_BRACKETS = 200  # of frontmatter
LONGEST_COMMENT = 2000
LONGEST_TITLE = 160
_LONGEST_TAG = 100
_MOST_TAGS = 50
# The kind that the passages of a file are of, by the name of the file or of a folder that it is in. The nearest name counts.
_NAMES_BY_KIND = """
architecture architectures
component components
domain domains
pattern patterns
gotcha gotchas pitfalls
decision decisions adr adrs
discovery discoveries
"""
_KIND_LINES = map(str.split, _NAMES_BY_KIND.strip().splitlines())
KIND_NAMES = {name: line[0] for line in _KIND_LINES for name in line}
# Where projects keep documentation. It is read like the knowledge folders, unless the setting `knowledge` says what is.
DOCUMENTATION = """
README.md README.rst README.adoc docs doc documentation handbook wiki site notebooks
""".split()
FIELD_ALIASES = {"vector-index": "index", "category": "kind", "keywords": "tags"}
SWITCH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
# Directives, each with the description of a valid value.
DIRECTIVES = {
    "index": "true or false",
    "kind": "a kind of memory",
    "tags": "a list of words",
    "importance": "a number from 0 to 10",
    "title": "a title",
}
_MARKER = re.compile(r"(\[REDACTED(?::[a-z0-9-]+)?\])")
# No word, and hardly any address; other scripts do without spaces.
_UNBROKEN = re.compile(r"[!-~]{400,}")
# Between two lines `---`; where the first of them is followed by an empty line, it is a rule.
_FRONTMATTER = re.compile(
    r"---[ \t]*\n(?=[^\n]*\S)((?:.*?\n)??)(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL
)
_ALIAS = re.compile(r"(?m)(?:^|[\s\[{,:-])([&*!][\w!])")


class Page(NamedTuple):
    """A Markdown file taken apart."""

    frontmatter: Mapping[str, Any]
    directives: Mapping[str, Any]  # by one name each: index, kind, tags, importance, title
    title: str
    body: str  # with empty lines in the place of directives
    first_line: int  # of the body
    warnings: tuple[str, ...] = ()


def documents(
    found: Iterable[Found | Skipped], style: str, size: int, overlap: int, warnings: list[str]
) -> Iterator[Document | Skipped]:
    """Yield a document for each file. Its passages, cut by `headers` or by `lines`, are made on request.

    Problems are then added to the warnings.
    """
    manner = f":{style[0]}{VERSION}:{size}:{overlap}"
    for one in found:
        read = one if isinstance(one, Skipped) else read_text(one)
        if isinstance(read, Skipped):
            yield read
        else:
            text, hash = read
            take_apart = partial(read_passages, text, one.uri, style, size, overlap, warnings)
            yield Document(one.uri, hash + manner, take_apart)


def read_passages(
    text: str, uri: str, style: str, size: int, overlap: int, warnings: list[str]
) -> list[Passage]:
    """Return the passages of a file's text, without its secrets."""
    whole = to_markdown(text, uri)
    text = redact_in_place(whole)
    page = parse(text)
    cut = by_headers if style == "headers" else by_lines
    found = passages(page, uri, cut(page.body, size, overlap, page.first_line))
    reader = find_reader(uri)
    if reader and not reader.keeps_lines:
        found = [passage._replace(lines=None) for passage in found]
    # No question would find a passage of nearly nothing but data, such as an embedded image.
    kept = [
        one
        for one in found
        if len("".join(_UNBROKEN.findall(one.content))) <= 0.95 * len(one.content)
    ]
    problems = {
        "secrets or private parts were taken out": text != whole,
        "left out what holds no words, but characters without a space": len(kept) < len(found),
    }
    found_problems = (warning for warning, holds in problems.items() if holds)
    warnings += (f"{uri}: {warning}" for warning in (*found_problems, *page.warnings))
    return kept


def to_markdown(text: str, uri: str) -> str:
    """Return a document as Markdown, by the reader for its suffix."""
    reader = find_reader(uri)
    return plugins.READERS.ask(reader, lambda one: one.to_markdown(text), "") if reader else text


def find_reader(uri: str) -> Reader | None:
    """Return the reader for the suffix of a file, None for Markdown."""
    found = (one for one in plugins.READERS.all() if uri.endswith(one.suffixes))
    return next(found, None)


def parse(text: str) -> Page:
    """Take the text of a file apart. Accepts every string."""
    warnings: list[str] = []
    fields, first, body = _read_frontmatter(unify_line_ends(text), warnings)
    directives = _read_directives(fields, "frontmatter", warnings)
    known = outline(body)
    header = next((one.first for one in known.sections if one.level), len(known.starts))
    lines = body.split("\n")
    for line, end, pairs in _find_comments(body):
        where = f"line {line + first}"
        values = _read_directives(pairs, where, warnings)
        lines[line:end] = [" " * len(one) for one in lines[line:end]]
        if line < header or not values.get("index", True):
            directives |= values
        else:
            warnings.append(
                f"{where}: a directive applies to the whole file and belongs before its first header"
            )
    titles = (one.title for one in known.sections if one.level == 1)
    title = directives.get("title") or next(titles, "")
    return Page(fields, directives, title, "\n".join(lines), first, tuple(warnings))


def passages(page: Page, uri: str, chunks: Sequence[Chunk]) -> list[Passage]:
    """Return the passages of a file."""
    directives = page.directives
    if not directives.get("index", True):
        return []
    own = directives.get("title", "")
    found: list[Passage] = []
    for chunk in chunks:
        text, overlap = chunk.text.strip(), chunk.overlap.strip()
        if not any(map(str.isalnum, text)):
            continue  # a rule, an ornament, nothing at all
        # The headers above it, below the title that the file gives itself where that is not the first of them.
        section = chunk.title or page.title
        section = section if section.startswith(own) else f"{own} > {section}"
        # Empty lines at its ends do not count.
        first = chunk.lines[0] + chunk.text.partition(text)[0].count("\n")
        found.append(
            Passage(
                content=f"{overlap}\n\n{text}" if overlap else text,
                kind=directives.get("kind", find_kind(uri)),
                importance=directives.get("importance"),
                tags=directives.get("tags", ()),
                section=section or PurePosixPath(uri).stem,
                lines=(first, first + text.count("\n")),
            )
        )
    return found


def find_kind(uri: str) -> str:
    """Return the kind of memory that the location of a file implies.

    Documentation is written for readers: among it only decision records have a kind by location.
    """
    path = PurePosixPath(uri.casefold())
    names = (path.stem, *reversed(path.parts[:-1]))
    kind = next((KIND_NAMES[name] for name in names if name in KIND_NAMES), "document")
    return kind if path.parts[0] not in DOCUMENTATION or kind == "decision" else "document"


def redact_in_place(text: str) -> str:
    """Remove secrets and private parts from a text, with every line still where it was."""
    redacted = redact(text).text
    if redacted == text:
        return text
    pieces: list[str] = []
    at = 0
    for part in _MARKER.split(redacted):
        where = -1 if _MARKER.fullmatch(part) else text.find(part, at)
        if part and where >= 0:
            pieces.append("\n" * text.count("\n", at, where))  # the lines of what was taken out
            at = where + len(part)
        pieces.append(part)
    return "".join(pieces)


# Directives


def _read_frontmatter(text: str, warnings: list[str]) -> tuple[Fields, int, str]:
    """Return the frontmatter, the line on which the body begins, and the body.

    Every value is a string, a list or a mapping of strings. A text between two rules is no frontmatter.
    """
    import yaml

    match = _FRONTMATTER.match(text, 0, LONGEST_FRONTMATTER)
    if match is None:
        return {}, 1, text
    block = match[1]
    try:
        # Aliases can grow without end, deep nesting exhausts the stack.
        if _ALIAS.search(block) or block.count("[") + block.count("{") > MOST_BRACKETS:
            raise yaml.YAMLError("anchors, aliases, tags and deep nesting are not read")
        fields = yaml.load(block, yaml.BaseLoader) or {}
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if ":" not in block.partition("\n")[0]:
            return {}, 1, text
        # A file that says `index: false` means it, however broken the rest.
        lines = (line.partition(":") for line in block.splitlines())
        fields = {
            name: value for name, _, value in lines if value and _normalize(name) in DIRECTIVES
        }
        mark, problem = (getattr(error, name, None) for name in ("problem_mark", "problem"))
        where = f" at line {mark.line + 2}" if mark else ""
        warnings.append(f"broken frontmatter{where}: {problem or error}")
    if not isinstance(fields, dict):
        return {}, 1, text
    named = {str(name): value for name, value in fields.items()}
    return named, match[0].count("\n") + 1, text[match.end() :]


def _find_comments(body: str) -> Iterator[tuple[int, int, Fields]]:
    """Yield the HTML comments that are directives: first line, line after it (from 0), and their fields."""
    known = outline(body)
    for line, end in known.comments:
        text = body[known.starts[line] : known.starts[end]][:LONGEST_COMMENT].strip()
        whole = text.startswith("<!--") and text.endswith("-->") and text.count("-->") == 1
        if whole and (pairs := _read_pairs(text[4:-3])):
            yield line, end, pairs


def _read_pairs(comment: str) -> Fields:
    """Read `vector-index: false` or `bethink: kind=gotcha, tags=a, b`; nothing for an ordinary comment."""
    found: Fields = {}
    last = ""
    for piece in re.split(r"[,\n]", comment.strip().removeprefix("bethink:")):
        name, value = (*re.split("[:=]", piece, maxsplit=1), None)[:2]
        if value is not None:
            last = _normalize(name)
            found[last] = value
        elif last:
            found[last] += f",{piece}"
    return found if next(iter(found), "") in DIRECTIVES else {}


def _normalize(name: object) -> str:
    plain = str(name).strip().strip("\"'").lower().replace("_", "-")
    return FIELD_ALIASES.get(plain, plain)


def _read_directives(fields: Mapping[str, Any], where: str, warnings: list[str]) -> Fields:
    """Return the directives among some fields, with a warning for each invalid one.

    Other fields of frontmatter are not ours.
    """
    found: Fields = {}
    for written, value in fields.items():
        name = _normalize(written)
        if name in DIRECTIVES:
            try:
                found[name] = _read_value(name, value)
            except (InvalidInput, LookupError, ValueError):
                shown = _flatten(value)[:80]
                warnings.append(f"{where}: '{written}: {shown}' is not {DIRECTIVES[name]}")
    return found


def _read_value(name: str, value: object) -> Any:
    """Return the value of a directive; raise an error if it is invalid."""
    text = _flatten(value)
    match name:
        case "index":
            return SWITCH[text.lower()]
        case "kind":
            return check_kind(text) or "document"
        case "title":
            return text[:LONGEST_TITLE].strip()
        case "importance":
            number = float(text)
            if not 0 <= number <= 10:
                raise ValueError(value)
            return number
    items = value if isinstance(value, list) else str(value).strip("[] ").split(",")
    words = (_flatten(item).removeprefix("#")[:_LONGEST_TAG].strip() for item in items)
    return tuple(dict.fromkeys(filter(None, words)))[:_MOST_TAGS]


def _flatten(value: object) -> str:
    return " ".join(str(value).split()).strip("\"'")


# The blocks of a text

_DEEPEST = 3  # headers that begin a section: H1 to H3
TINY = 80  # characters below a heading that do not make a passage
LARGEST_BLOCK = 20_000  # characters up to which a code fence or a table stays whole
# Parsed at most: a short line makes five tokens, each cell of a table three, and a token takes a quarter of a kilobyte. What
# follows is no text that a person wrote; it is cut between sentences and lines.
_MOST_LINES = 40_000
MOST_BARS = 100_000  # a text with more of them is read without tables
# Parts of a header that are words.
_SPOKEN = "text code_inline image text_special softbreak hardbreak".split()
# How well a text can be cut before a line, or after a sentence: from not at all to best.
WHOLE, _CODE, LINE, SENTENCE, _DEEP, ITEM, TOP, _HEAD = range(8)

_CLOSERS = "['\"’”»)\\]}*_`）」』】》]{0,4}"
# The end of a sentence with the white space after it, within its line. Scripts without spaces need none.
_SENTENCE = re.compile(rf"(?:[.!?…؟۔।]{_CLOSERS}(?=\s)|[。！？｡．]{_CLOSERS})[^\S\n]*\n?")
_MARKUP = re.compile(r"[`*_\[\]<>&!\\]")
_ANCHOR = re.compile(r" ?\{#[^{}]{0,80}\}$")


class Chunk(NamedTuple):
    text: str  # an exact slice of the source
    overlap: str  # what is carried over from the chunk before
    title: str  # the headers above it: "Guide > Install > Linux"
    lines: tuple[int, int]  # of `text`, from 1


class HeaderSection(NamedTuple):
    """A header of the first three levels with the text below it, or the text before the first one.

    Lines count from 0.
    """

    first: int
    below: int  # the line after its heading
    last: int  # the line after it
    level: int
    title: str  # with the headers above it


class PageOutline(NamedTuple):
    starts: Sequence[int]  # where each line begins, and the end of the text
    grades: bytearray  # per line, and one for the end
    sections: tuple[HeaderSection, ...]
    comments: tuple[tuple[int, int], ...]  # lines of HTML comments that are separate blocks


@lru_cache(maxsize=1)  # directives and chunks are about the same text
def outline(body: str) -> PageOutline:
    starts = array("Q", [0])
    starts.extend(match.end() for match in re.finditer("\n", body))
    if starts[-1] < len(body):
        starts.append(len(body))
    lines = len(starts) - 1
    tokens = _parser(body.count("|") < MOST_BARS).parse(body[: starts[min(lines, _MOST_LINES)]])
    grades, whole = bytearray([LINE]) * (lines + 1), 0  # the line up to which a block stays whole
    sections = [HeaderSection(0, 0, lines, 0, "")]
    comments: list[tuple[int, int]] = []
    above = [(0, "")]
    for number, token in enumerate(tokens):
        if token.map is None or token.type == "inline" or token.map[0] < whole:
            continue
        first, end = token.map
        grades[first] = max(grades[first], (TOP, ITEM, _DEEP)[min(token.level, 2)])
        if token.level == 0 and token.type == "heading_open":
            grades[first] = _HEAD
            if (level := int(token.tag[1:])) <= _DEEPEST:
                title = _plain(tokens[number + 1].content)
                while above[-1][0] >= level:
                    above.pop()
                above.append((level, " > ".join(filter(None, (above[-1][1], title)))))
                sections[-1] = sections[-1]._replace(last=first)
                sections.append(HeaderSection(first, end, lines, *above[-1]))
        if token.type in ("fence", "table_open", "code_block"):
            small = token.type != "code_block" and starts[end] - starts[first] <= LARGEST_BLOCK
            grades[first + 1 : end] = bytes([WHOLE if small else _CODE]) * (end - first - 1)
            whole = end
        elif token.type == "html_block" and token.content.lstrip().startswith("<!--"):
            comments.append((first, end))
    found = tuple(one for one in sections if one.first < one.last)
    return PageOutline(starts, grades, found, tuple(comments))


@cache
def _parser(tables: bool = False, inline: bool = False) -> MarkdownIt:
    """Make a parser for blocks, or with `inline` for headers. Inline Markdown can be made slow to parse."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    if tables:
        parser.enable("table")
    if not inline:
        parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _plain(content: str) -> str:
    """Return the words of a header, without its markup."""
    text = _ANCHOR.sub("", " ".join(content[: 4 * LONGEST_TITLE].split()))
    if len(text) > LONGEST_TITLE:  # a paragraph underlined by mistake is a header, too
        text = text[:LONGEST_TITLE].rpartition(" ")[0] or text[:LONGEST_TITLE]
    if not _MARKUP.search(text):
        return text
    children = _parser(inline=True).parseInline(text)[0].children or ()
    words = "".join(child.content or " " for child in children if child.type in _SPOKEN)
    return " ".join(words.split()) or text


# Cutting


def by_headers(body: str, size: int = 2000, overlap: int = 15, first_line: int = 1) -> list[Chunk]:
    """Cut into sections of at most `size` characters, each after `overlap` percent of the chunk before."""
    known = outline(body)
    chunks: list[Chunk] = []
    before = (0, 0)
    for section in _merge_short(body, known, size):
        start = known.starts[section.first]
        stop = known.starts[section.last]
        while start < stop:
            end = stop if stop - start <= size else _find_cut(body, known, start, stop, size)
            share = (before[1] - before[0]) * overlap // 100
            carried = _find_overlap(body, known, *before, share, LINE)
            lines = _lines(known, start, end, first_line)
            chunks.append(Chunk(body[start:end], carried, section.title, lines))
            before, start = (start, end), end
    return chunks


def by_lines(body: str, tokens: int = 400, overlap: int = 80, first_line: int = 1) -> list[Chunk]:
    """Cut into whole lines of up to `tokens` tokens, of which `overlap` repeat the chunk before.

    A token is four characters. A longer line is cut between sentences or words.
    """
    known, most = outline(body), tokens * 4
    least = min(overlap * 4, most // 2)
    chunks: list[Chunk] = []
    start = end = 0
    while end < len(body):
        carried = _find_overlap(body, known, start, end, least, WHOLE)
        start, limit = end, end + max(1, most - len(carried) - (2 if carried else 0))
        end = known.starts[bisect_right(known.starts, limit) - 1]
        if end <= start:
            late = _SENTENCE.finditer(body, start + (limit - start) // 4, limit)
            end = max((match.end() for match in late), default=0) or _last_word(body, start, limit)
        lines = _lines(known, start, end, first_line)
        # Called by the headers above the first line that says something.
        first_text = bisect_right(known.starts, end - len(body[start:end].lstrip())) - 1
        above = bisect_right(known.sections, first_text, key=lambda section: section.first)
        title = known.sections[above - 1].title
        chunks.append(Chunk(body[start:end], carried, title, lines))
    return chunks


def _merge_short(body: str, known: PageOutline, size: int) -> Iterator[HeaderSection]:
    """Join a nearly empty section to the next one: an empty one, or a short introduction of a sub-section.

    Two short sections side by side are each found best by their own title. A joined section fits into one chunk, or is split anyway,
    and has the title of the second.
    """
    starts = known.starts
    waiting: HeaderSection | None = None
    for section in known.sections:
        if waiting:
            length = len(body[starts[waiting.below] : starts[waiting.last]].strip())
            end = starts[section.last]
            introduces = length < TINY and section.level > waiting.level
            fits = end - starts[waiting.first] <= size or end - starts[section.first] > size
            if fits and (introduces or not length):
                section = section._replace(first=waiting.first)
            else:
                yield waiting
        waiting = section
    if waiting:
        yield waiting


def _lines(known: PageOutline, start: int, end: int, first_line: int) -> tuple[int, int]:
    first, last = (bisect_right(known.starts, at) - 1 + first_line for at in (start, end - 1))
    return first, last


def _find_cut(body: str, known: PageOutline, start: int, end: int, size: int) -> int:
    """Return where to cut a text that is too long: between blocks, outer ones first, sentences or lines.

    A place in the first quarter of the size does not count.
    """
    # Something is left for the last chunk.
    limit = start + max(1, min(size, end - start - size // 8))
    low, high = bisect_right(known.starts, start), bisect_right(known.starts, limit)
    places = {known.starts[line]: known.grades[line] for line in range(low, high)}
    for match in _SENTENCE.finditer(body, start, limit):
        if _ends_sentence(body, known, match):
            places[match.end()] = max(places.get(match.end(), 0), SENTENCE)
    least = start + max(1, size // 4)
    if fitting := [(grade, at) for at, grade in places.items() if at >= least and grade > WHOLE]:
        return max(fitting)[1]
    # There is next to no text before a block that must stay whole, or before a line that is too long: they stay together.
    near = max((at for at, grade in places.items() if grade > WHOLE), default=start)
    if known.grades[line := bisect_right(known.starts, near)] == WHOLE:
        return _block_end(body, known, line, end)
    return _last_word(body, start, limit)


def _block_end(body: str, known: PageOutline, line: int, end: int) -> int:
    """Return the end of a block that stays whole, with the empty lines after it."""
    starts = known.starts
    while starts[line] < end and known.grades[line] == WHOLE:
        line += 1
    while starts[line] < end and body[starts[line] : starts[line + 1]].isspace():
        line += 1
    return min(starts[line], end)


def _ends_sentence(body: str, known: PageOutline, match: re.Match[str]) -> bool:
    line = bisect_right(known.starts, match.start()) - 1
    if known.grades[line] <= _CODE or known.grades[line + 1] <= _CODE:
        return False
    # "e.g. this" goes on, and "1. " numbers the item of a list.
    before = body[max(known.starts[line], match.start() - 12) : match.start()]
    return not body[match.end() : match.end() + 1].islower() and not before.strip().isdigit()


def _last_word(body: str, start: int, limit: int) -> int:
    """Return the start of the last word before the limit, or the limit if there is no white space."""
    blanks = (at for at in range(limit, start, -1) if body[at - 1].isspace())
    return next(blanks, 0) or max(start + 1, limit)


def _find_overlap(
    body: str, known: PageOutline, start: int, end: int, length: int, worst: int
) -> str:
    """Return the last sentences or lines of a chunk, up to `length` characters, or "" if none fits.

    It begins with no line of a worse grade: sections repeat no part of a code block or a table.
    """
    end = start + len(body[start:end].rstrip())
    at = max(start, end - length)
    if at >= end:
        return ""
    line = bisect_left(known.starts, at)
    while known.starts[line] < end and known.grades[line] < worst:
        line += 1
    begins = [known.starts[line]]
    for match in _SENTENCE.finditer(body, max(start, at - 8), end):
        if at <= match.end() < end and _ends_sentence(body, known, match):
            begins.append(match.end())
            break
    return body[min(begins) : end].lstrip("\n")
