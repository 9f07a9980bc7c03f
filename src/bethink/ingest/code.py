"""The code map: source files → outlines → passages, and the repo map's JSON.

A file is one short passage (path, documentation, names) and one per definition: small neighbours share one, a large class takes several.
A passage shows signatures, documentation and line numbers, never bodies; a function without documentation is described by the comments
and messages in its body. Definitions in tests, examples and the like are found by words alone. Measured on 85 questions about three code
bases (bench/LOG.md): one passage per file finds as much among five but ranks worse; one per symbol costs four times the vectors and finds
less.

`documents` makes one document per source file, whose passages are computed only when it changed. `read_map` makes one document of
a whole JSON file, one passage per entry. Paths in a JSON file are data: they are shown and searched, never opened. Generated and
minified files are skipped with a reason. This module knows no grammar: see `symbols`.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from bethink.errors import InvalidInput
from bethink.ingest.analyze.tree import is_aside
from bethink.ingest.files import Found, read_text
from bethink.ingest.markdown import redact_in_place
from bethink.ingest.redact import redact
from bethink.ingest.symbols import (
    CALLABLE,
    LANGUAGES,
    NAMESPACES,
    Symbol,
    find_sentence,
    language_of,
    load_pattern,
    outline,
    shorten,
)
from bethink.ingest.sync import Document, Skipped
from bethink.model import Entity, Lines, Passage
from bethink.text import refuse_constant, replace_broken

SMALL = 600  # characters up to which neighbours share a passage
LARGE = 1200  # characters from which a definition is cut between its members
_FIELDS = 400  # characters of the fields of a type
_NAMES = 500  # characters of the names in a file's own passage
_SPOKEN = 200  # characters that a body lends to a function without documentation
_READ = 20_000  # characters of a body that are looked at
ENTITIES = 8  # by hand
_SUMMARY_WORDS = 20  # words; a bound
_VALUES = frozenset("constant field variable property".split())
_VERSION = 4  # of how files become passages; a new one reads every file again
_LARGEST = 2_000_000  # bytes of a source file
LARGEST_MAP = 64_000_000  # bytes of a JSON file
_LONGEST = 100_000  # characters of one entry that are remembered
MINIFIED = 250  # characters per line on average that nobody writes by hand
_HINT = 'A repo map is a JSON array of objects such as {"path": "src/main.py", "language": "python", "symbols": ["main"], "content": "def main()"}.'


class MapEntry(NamedTuple):
    """One source file in the code map."""

    path: str
    language: str
    symbols: tuple[Symbol, ...] = ()
    lines: int = 0
    doc: str = ""

    @property
    def main(self) -> list[Symbol]:
        """Return the symbols that identify a file: all but fields."""
        return [one for one in self.symbols if one.kind not in ("field", "property")]

    def qualify(self, symbols: Iterable[Symbol]) -> list[str]:
        """Return the names of symbols, each after the name of its parent."""
        between = LANGUAGES.get(self.language, {}).get("separator", ".")
        return [f"{one.parent}{between}{one.name}" if one.parent else one.name for one in symbols]


class Slice(NamedTuple):
    """A part of a file that stays together: its text, its main definitions, and all symbols that it shows."""

    text: str
    heads: list[Symbol]
    symbols: list[Symbol]
    lines: tuple[int, int]


def passages(entry: MapEntry, text: str = "") -> list[Passage]:
    """Return the passages of a file; with its text, undocumented functions show the prose of their bodies."""
    source = text.split("\n") if text else []
    slices = [slice for unit in _units(entry.symbols) for slice in _slices(unit, source)]
    slices = _join_small(slices)
    if not slices:
        rest = (
            _words_in_body(source) or " ".join(text[:_SPOKEN].split()) if entry.lines >= 5 else ""
        )
        return [_file_passage(entry, rest)] if entry.doc or rest else []
    if len(slices) == 1 and len(entry.doc) + len(slices[0].text) <= SMALL:
        return [_file_passage(entry, slices[0].text, slices[0].symbols)]
    names = dict.fromkeys(entry.qualify(entry.main))
    rest = f"Defines {shorten(', '.join(names), _NAMES)}" if names else ""
    return [_file_passage(entry, rest), *(_passage(entry, slice) for slice in slices)]


def _join_small(slices: Iterable[Slice]) -> list[Slice]:
    """Join small neighbours into one passage."""
    joined: list[Slice] = []
    size = 0
    for text, heads, symbols, lines in slices:
        size += len(text)
        if joined and size <= SMALL:
            before = joined.pop()
            text, heads = f"{before.text}\n{text}", before.heads + heads
            symbols = before.symbols + symbols
            lines = before.lines[0], max(before.lines[1], lines[1])
        else:
            size = len(text)
        joined.append(Slice(text, heads, symbols, lines))
    return joined


def skeleton(entry: MapEntry) -> str:
    """Return a file on one page: its documentation, then every signature with its line and first sentence."""
    lines = [entry.doc] if entry.doc else []
    for symbol in entry.symbols:
        indent = "  " * symbol.depth
        lines.append(f"{symbol.lines[0]}: {indent}{symbol.signature}")
        if symbol.doc:
            lines.append(f"    {indent}{find_sentence(symbol.doc)}")
    return "\n".join(lines)


def _units(symbols: Sequence[Symbol]) -> list[list[Symbol]]:
    """Group code that belongs together: a definition and its members, or methods outside of their type.

    Members of a namespace count as top-level.
    """
    units: list[list[Symbol]] = []
    for symbol in symbols:
        head = units[-1][0] if units else symbol
        beside = symbol.kind == "method" == head.kind and symbol.parent == head.parent
        inside = head.lines[0] <= symbol.lines[0] and symbol.lines[1] <= head.lines[1]
        member = inside and head.kind not in NAMESPACES and symbol.depth > head.depth
        if units and (beside or member):
            units[-1].append(symbol)
        elif symbol.kind not in NAMESPACES or symbol.doc:
            units.append([symbol])
    return units


def _slices(unit: Sequence[Symbol], source: Sequence[str]) -> Iterator[Slice]:
    """Yield a definition as text, cut between its members if it is long. Later slices repeat the head."""
    head = unit[0]
    lines: list[str] = []
    shown: list[Symbol] = []
    size = 0
    for run in _runs(unit):
        text = _run_text(run, head.depth, source)
        if shown and size + len(text) > LARGE:
            end = max((one.lines[1] for one in shown if one is not head), default=head.lines[1])
            yield Slice("\n".join(lines), shown[:1], shown, (shown[0].lines[0], end))
            lines, shown = [f"{head.signature} …"] if head.kind != "method" else [], []
            size = 0
        lines.append(text)
        shown += run
        size += len(text)
    end = max(one.lines[1] for one in (head, *shown))
    yield Slice("\n".join(lines), shown[:1], shown, (shown[0].lines[0], end))


def _runs(unit: Sequence[Symbol]) -> list[list[Symbol]]:
    """Return each symbol alone, but consecutive fields together."""
    runs: list[list[Symbol]] = []
    for symbol in unit:
        before = runs[-1][-1] if runs else symbol
        if runs and {before.kind, symbol.kind} <= _VALUES and before.parent == symbol.parent:
            runs[-1].append(symbol)
        else:
            runs.append([symbol])
    return runs


def _run_text(run: Sequence[Symbol], depth: int, source: Sequence[str]) -> str:
    first, doc = run[0], run[0].doc
    indent = "  " * (first.depth - depth)
    if len(run) > 1:
        docs = (f" ({shorten(one.doc, 80)})" if one.doc else "" for one in run)
        fields = dict.fromkeys(one.signature + about for one, about in zip(run, docs, strict=True))
        return f"{indent}{first.lines[0]}: {shorten('; '.join(fields), _FIELDS)}"
    if not doc and first.kind in CALLABLE:
        doc = _words_in_body(source[first.lines[0] - 1 : first.lines[1]])
    text = f"{indent}{first.lines[0]}: {first.signature}"
    return f"{text}\n{indent}  {doc}" if doc else text


def _words_in_body(lines: Sequence[str]) -> str:
    """Return the prose in code: its comments and its messages."""
    body = "\n".join(lines)[:_READ]
    comments = ["".join(found) for found in load_pattern("body_comment").findall(body)]
    messages = ["".join(found) for found in load_pattern("body_message").findall(body)]
    prose = [*comments, *(each for each in messages if each.count(" ") > 1)]
    plain = (" ".join(each.replace("*", " ").split()) for each in prose)
    return shorten(" ".join(dict.fromkeys(plain)), _SPOKEN)


def _passage(entry: MapEntry, slice: Slice) -> Passage:
    """Return the passage of some definitions, constants last."""
    heads = sorted(slice.heads, key=lambda one: one.kind in _VALUES)
    names, first = entry.qualify(heads), heads[0]
    call = "(…)" if first.kind in CALLABLE else ""
    more = f" and {len(heads) - 1} more" if len(heads) > 1 else ""
    about = f": {find_sentence(first.doc)}" if first.doc else ""
    return _make_passage(
        entry,
        (f"{entry.path}:{slice.lines[0]}", slice.text),
        [symbol.name for symbol in slice.symbols],
        _name_entities(entry, slice.symbols),
        summary=_cut_summary(f"{first.kind} {names[0]}{call}{more} in {entry.path}{about}"),
        section=", ".join(names[:4]),
        lines=slice.lines,
        embed=not is_aside(entry.path),
    )


def _file_passage(entry: MapEntry, rest: str, symbols: Sequence[Symbol] = ()) -> Passage:
    names = list(dict.fromkeys(one.name for one in entry.main))
    return _make_passage(
        entry,
        (f"{entry.path} [{entry.language}] {entry.lines:,} lines", entry.doc, rest),
        names,
        _name_entities(entry, symbols),
        summary=_cut_summary(f"{entry.path}: {find_sentence(entry.doc) or ', '.join(names[:8])}"),
        section=entry.path,
        lines=(1, max(1, entry.lines)),
    )


def _name_entities(entry: MapEntry, symbols: Iterable[Symbol]) -> Iterable[str]:
    """Return the main symbols: types and functions before constants, and no fields."""
    main = [one for one in symbols if one.kind not in _VALUES or one.kind == "constant"]
    main.sort(key=lambda symbol: symbol.kind == "constant")
    return dict.fromkeys(entry.qualify(main))


def _cut_summary(summary: str) -> str:
    words = summary.split()
    return " ".join(words if len(words) <= _SUMMARY_WORDS else [*words[: _SUMMARY_WORDS - 1], "…"])


def _make_passage(
    entry: MapEntry,
    content: Iterable[str],
    names: Sequence[str],
    entities: Iterable[str],
    *,
    section: str,
    lines: Lines | None,
    summary: str | None = None,
    embed: bool = True,
) -> Passage:
    """Make a passage that names its file, its symbols and the first of its entities."""
    named = (Entity(name, "symbol") for name in islice(filter(None, entities), ENTITIES))
    return Passage(
        "\n".join(filter(None, content)),
        kind="code",
        entities=(Entity(entry.path, "file"), *named),
        metadata={"path": entry.path, "language": entry.language, "symbols": list(names[:100])},
        section=section,
        lines=lines,
        summary=summary,
        embed=embed,
    )


# Source files


class Code(NamedTuple):
    """A source file that was read."""

    path: str
    language: str
    text: str
    hash: str


def find_sources(found: Iterable[Found | Skipped]) -> list[Found | Skipped]:
    """Return the files that are source code by their names, and those that could not be read."""
    return [one for one in found if isinstance(one, Skipped) or language_of(one.uri)]


def documents(found: Iterable[Found | Skipped]) -> Iterator[Document | Skipped]:
    """Yield one document per source file. Other files are skipped."""
    for code in map(_read_source, find_sources(found)):
        if isinstance(code, Skipped):
            yield code._replace(uri=f"code:{code.uri}")
        else:
            yield Document(
                f"code:{code.path}",
                f"{code.hash}:c{_VERSION}",
                lambda code=code: passages(*_map_file(code)),  # type: ignore[misc]
                {"language": code.language},
            )


def map_files(found: Iterable[Found | Skipped]) -> list[MapEntry]:
    sources = map(_read_source, find_sources(found))
    return [_map_file(code)[0] for code in sources if isinstance(code, Code)]


def _map_file(code: Code) -> tuple[MapEntry, str]:
    """Return the entry of a file and its text, redacted as a whole.

    A symbol between two private comments does not look private by itself.
    """
    path, text = redact(code.path).text, redact_in_place(code.text)
    found = outline(text, code.language)
    lines = text.count("\n") + (not text.endswith("\n") and bool(text))
    return MapEntry(path, code.language, tuple(found.symbols), lines, found.doc), text


def _read_source(found: Found | Skipped) -> Code | Skipped:
    """Read a source file that a person wrote; skip generated and minified ones."""
    if isinstance(found, Skipped):
        return found
    read = read_text(found, _LARGEST)
    if isinstance(read, Skipped):
        return read
    text, hash = read
    is_named = load_pattern("generated_name").search(found.uri)
    is_minified = len(text) > max(2_000, MINIFIED * (text.count("\n") + 1))
    if is_named or is_minified or load_pattern("generated").search(text[:2_000]):
        return Skipped(found.uri, "generated, minified or data")
    return Code(found.uri, language_of(found.uri, text) or "", text, hash)


# The repo map


def to_json(found: Iterable[MapEntry]) -> list[dict[str, Any]]:
    """Return entries in the repo map's form. `lines` is an addition that other readers ignore."""
    return [
        {
            "path": each.path,
            "language": each.language,
            "symbols": list(dict.fromkeys(one.name for one in each.main)),
            "content": skeleton(each),
            "lines": each.lines,
        }
        for each in found
    ]


def read_map(raw: bytes, file: Path) -> Document:
    """Read a JSON file as one document: one passage per entry, replaced by the next import of the file.

    The last of several entries with the same path counts.
    """
    if len(raw) > LARGEST_MAP:
        raise InvalidInput(
            f"The repo map '{file}' is {len(raw) / 1e6:,.1f} MB; at most {LARGEST_MAP / 1e6:g} MB are read.",
            "Map the parts of the project one by one.",
        )
    try:
        listed = json.loads(raw.decode("utf-8-sig"), parse_constant=refuse_constant)
    except (RecursionError, ValueError) as error:  # also bytes that are no UTF-8
        raise InvalidInput(f"The repo map '{file}' is not valid JSON: {error}.", _HINT) from None
    if not isinstance(listed, list):
        raise InvalidInput(f"The repo map '{file}' is not an array.", _HINT)
    found = [_read_entry(item, number, file) for number, item in enumerate(listed, start=1)]
    entries = list({each.section: each for each in found}.values())
    uri, hash = f"repo-map:{os.path.realpath(file)}", sha256(raw).hexdigest()
    return Document(uri, f"{hash}:m{_VERSION}", lambda: entries, {"entries": len(entries)})


def _read_entry(item: object, number: int, file: Path) -> Passage:
    entry = item if isinstance(item, dict) else {}
    symbols = entry.get("symbols") or []
    values: list[Any] = [entry.get("path"), entry.get("language") or "unknown"]
    values.append(entry.get("content") or "")
    values += symbols if isinstance(symbols, list) else [None]
    if not all(isinstance(one, str) for one in values) or not values[0].strip():
        raise InvalidInput(
            f"Entry {number} of the repo map '{file}' is not an object with a `path`, or its `language`, `symbols` or `content` is wrong.",
            _HINT,
        )
    # No database takes NUL, and halves of surrogate pairs, which JSON can spell.
    path, language, content, *names = (replace_broken(one.replace("\0", "")) for one in values)
    path, lines = path.strip(), entry.get("lines")
    known = list(dict.fromkeys(names))
    head = f"{path} [{language}] {' '.join(names)}".rstrip()
    made = _make_passage(
        MapEntry(path, language),
        [shorten(f"{head}\n{content}".rstrip(), _LONGEST)],
        known,
        known,
        section=path,
        lines=(1, lines) if type(lines) is int and lines > 0 else None,
    )
    return made._replace(metadata={**made.metadata, "import_type": "repo-map"})
