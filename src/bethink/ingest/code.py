"""The outline of a source file → passages: how code is cut so that it is found by name, by path and by what it does.

A file is one short passage (path, what it says of itself, names) and one per definition: small neighbours share one, a
large class takes several. A passage shows signatures, documentation and line numbers, never bodies; where a function
says nothing of itself, the comments and messages in its body speak for it.

Measured on 85 questions about three code bases (bench/LOG.md): one passage per file finds as much among five but ranks
worse; one per symbol costs four times the vectors and finds less. This module opens no file and knows no tree-sitter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from bethink.ingest.symbols import LANGUAGES, Symbol
from bethink.store.words import parts
from bethink.types import Entity, Passage

SMALL = 600  # characters up to which neighbours share a passage
LARGE = 1200  # characters from which a definition is cut between its members
FIELDS = 400  # characters of the fields of a type
NAMES = 500  # characters of the names in a file's own passage
SPOKEN = 200  # characters that a body lends to a function without documentation
READ = 20_000  # characters of a body that are looked at
ENTITIES = 8
SUMMARY = 20  # words
_VALUES = frozenset(("constant", "field", "variable", "property"))
_OPEN = frozenset(("namespace", "module"))  # what stands in them counts as standing at the top
_CALLED = frozenset(("function", "method", "task"))
_COMMENT = re.compile(
    r"(?:^|[ \t;{}])(?:#|//+)[ \t!]*([^\s#/][^\n]{3,200})|/\*+([^*]{4,300})\*+/", re.MULTILINE
)
_MESSAGE = re.compile(r"\"([^\"\\\n]{12,160})\"|'([^'\\\n]{12,160})'|`([^`\\\n]{12,160})`")
_TEST = re.compile(
    r"(?:^|/)(?:tests?|__tests__|spec|specs)/|(?:^|/)(?:test_[^/]*|conftest)\.py$|[._-](?:test|tests|spec)\.\w+$|Tests?\.(?:java|cs|php)$"
)


class Entry(NamedTuple):
    """One source file in the code map."""

    path: str
    language: str
    symbols: tuple[Symbol, ...] = ()
    lines: int = 0
    doc: str = ""
    hash: str = ""


class Slice(NamedTuple):
    """A part of a file that stays together: its text and the symbols it shows."""

    text: str
    symbols: tuple[Symbol, ...]
    lines: tuple[int, int]


def passages(entry: Entry, text: str = "") -> list[Passage]:
    """The passages of a file; with its text, functions without documentation are told by their bodies."""
    source = text.split("\n") if text else []
    slices = [slice for unit in _units(entry.symbols) for slice in _slices(unit, source)]
    groups = _grouped(slices)
    if not groups:
        told = _spoken(source) or " ".join(text[:SPOKEN].split()) if entry.lines >= 5 else ""
        return [_file_passage(entry, told)] if entry.doc or told else []
    if len(groups) == 1 and len(entry.doc) + len(_text(groups[0])) <= SMALL:
        return [_file_passage(entry, _text(groups[0]), groups[0])]
    names = dict.fromkeys(
        qualified(entry, symbol)
        for symbol in entry.symbols
        if symbol.kind not in ("field", "property")
    )
    listed = _cut(", ".join(names), NAMES)
    return [
        _file_passage(entry, f"Defines {listed}" if listed else ""),
        *(_passage(entry, group) for group in groups),
    ]


def named_symbols(entry: Entry) -> list[str]:
    """The names that a file is known by: no fields."""
    names = (one.name for one in entry.symbols if one.kind not in ("field", "property"))
    return list(dict.fromkeys(names))


def skeleton(entry: Entry) -> str:
    """A file on one page: what it says of itself, then every signature with its line and the first sentence about it."""
    lines = [entry.doc] if entry.doc else []
    for symbol in entry.symbols:
        indent = "  " * symbol.depth
        lines.append(f"{symbol.lines[0]}: {indent}{symbol.signature}")
        if symbol.doc:
            lines.append(f"    {indent}{sentence(symbol.doc)}")
    return "\n".join(lines)


def qualified(entry: Entry, symbol: Symbol) -> str:
    separator = LANGUAGES.get(entry.language, {}).get("separator", ".")
    return f"{symbol.parent}{separator}{symbol.name}" if symbol.parent else symbol.name


def sentence(text: str) -> str:
    """The first sentence of a text."""
    end = re.search(r"[.!?](?=\s|$)", text)
    return text[: end.end()] if end else text.split("\n")[0]


def is_test(path: str) -> bool:
    """Whether a path is that of a test. Of one outside the project only the end counts: who knows where it hangs."""
    return (
        _TEST.search("/".join(path.split("/")[-3:]) if path.startswith("/") else path) is not None
    )


def _units(symbols: Sequence[Symbol]) -> list[list[Symbol]]:
    """What belongs together: a definition and its members, or methods that stand apart from their type."""
    units: list[list[Symbol]] = []
    for symbol in symbols:
        head = units[-1][0] if units else None
        within = (
            head is not None
            and head.kind not in _OPEN
            and head.lines[0] <= symbol.lines[0]
            and symbol.lines[1] <= head.lines[1]
        )
        beside = (
            head is not None
            and symbol.kind == "method" == head.kind
            and symbol.parent == head.parent
        )
        if units and ((within and symbol.depth > units[-1][0].depth) or beside):
            units[-1].append(symbol)
        elif symbol.kind not in _OPEN or symbol.doc:
            units.append([symbol])
    return units


def _slices(unit: Sequence[Symbol], source: Sequence[str]) -> list[Slice]:
    """A definition as text, cut between its members where it is long. Later slices repeat what they are a part of."""
    head = unit[0]
    depth = head.depth
    slices: list[Slice] = []
    lines: list[str] = []
    shown: list[Symbol] = []
    size = 0
    for run in _runs(unit):
        text = _run_text(run, depth, source)
        if shown and size + len(text) > LARGE:
            slices.append(
                Slice("\n".join(lines), tuple(shown), (shown[0].lines[0], _last(shown, head)))
            )
            lines, shown, size = [f"{head.signature} …"] if head.kind != "method" else [], [], 0
        lines.append(text)
        shown += run
        size += len(text)
    end = max(head.lines[1], _last(shown, head))
    return [*slices, Slice("\n".join(lines), tuple(shown), (shown[0].lines[0], end))]


def _last(shown: Sequence[Symbol], head: Symbol) -> int:
    return max((symbol.lines[1] for symbol in shown if symbol is not head), default=head.lines[1])


def _runs(unit: Sequence[Symbol]) -> list[list[Symbol]]:
    """Each symbol for itself, but fields that follow each other together."""
    runs: list[list[Symbol]] = []
    for symbol in unit:
        before = runs[-1][-1] if runs else None
        if (
            before
            and before.kind in _VALUES
            and symbol.kind in _VALUES
            and before.parent == symbol.parent
        ):
            runs[-1].append(symbol)
        else:
            runs.append([symbol])
    return runs


def _run_text(run: Sequence[Symbol], depth: int, source: Sequence[str]) -> str:
    first = run[0]
    indent = "  " * (first.depth - depth)
    if len(run) > 1:
        told = dict.fromkeys(
            f"{each.signature} ({_cut(each.doc, 80)})" if each.doc else each.signature
            for each in run
        )
        return f"{indent}{first.lines[0]}: {_cut('; '.join(told), FIELDS)}"
    text = f"{indent}{first.lines[0]}: {first.signature}"
    told_by = first.doc or (
        _spoken(source[first.lines[0] - 1 : first.lines[1]]) if first.kind in _CALLED else ""
    )
    return f"{text}\n{indent}  {told_by}" if told_by else text


def _spoken(lines: Sequence[str]) -> str:
    """What code says of itself without meaning to: its comments and its messages."""
    body = "\n".join(lines)[:READ]
    comments = (found[1] or found[2] for found in _COMMENT.finditer(body))
    messages = (found[1] or found[2] or found[3] for found in _MESSAGE.finditer(body))
    said = [
        " ".join(each.replace("*", " ").split())
        for each in (*comments, *(each for each in messages if each.count(" ") > 1))
    ]
    return _cut(" ".join(dict.fromkeys(said)), SPOKEN)


def _in_words(names: Iterable[str]) -> str:
    """`RetryPolicy` → retry policy: a model that reads words cannot see them in a name with humps."""
    words = dict.fromkeys(" ".join(parts(name)).lower() for name in names if parts(name))
    return f"In words: {_cut(', '.join(words), SPOKEN)}" if words else ""


def _grouped(slices: Iterable[Slice]) -> list[list[Slice]]:
    """Small neighbours share a passage."""
    groups: list[list[Slice]] = []
    size = 0
    for slice in slices:
        size += len(slice.text)
        if not groups or size > SMALL:
            groups.append([])
            size = len(slice.text)
        groups[-1].append(slice)
    return groups


def _text(group: Sequence[Slice]) -> str:
    return "\n".join(slice.text for slice in group)


def _passage(entry: Entry, group: Sequence[Slice]) -> Passage:
    symbols = [symbol for slice in group for symbol in slice.symbols]
    first, last = group[0].lines[0], max(slice.lines[1] for slice in group)
    heads = sorted(
        (slice.symbols[0] for slice in group), key=lambda symbol: symbol.kind in _VALUES
    )  # constants stand behind
    names = [qualified(entry, symbol) for symbol in heads]
    return Passage(
        content="\n".join(
            filter(
                None,
                (f"{entry.path}:{first}", _text(group), _in_words(symbol.name for symbol in heads)),
            )
        ),
        kind="code",
        summary=_summary(entry, heads),
        section=", ".join(names[:4]),
        lines=(first, last),
        entities=_entities(entry, symbols),
        metadata={
            "path": entry.path,
            "language": entry.language,
            "symbols": [symbol.name for symbol in symbols][:100],
        },
        embed=not is_test(entry.path),
    )


def _file_passage(entry: Entry, rest: str, group: Sequence[Slice] = ()) -> Passage:
    stem = PurePosixPath(entry.path).name.partition(".")[0]
    main = [slice.symbols[0].name for slice in group]
    lines = [
        f"{entry.path} [{entry.language}] {entry.lines:,} lines",
        entry.doc,
        rest,
        _in_words([stem, *main]),
    ]
    names = named_symbols(entry)
    return Passage(
        content="\n".join(filter(None, lines)),
        kind="code",
        summary=_cut_words(
            f"{entry.path}: {sentence(entry.doc)}"
            if entry.doc
            else f"{entry.path}: {', '.join(names[:8])}"
        ),
        section=entry.path,
        lines=(1, max(1, entry.lines)),
        entities=_entities(entry, [symbol for slice in group for symbol in slice.symbols]),
        metadata={
            "path": entry.path,
            "language": entry.language,
            "symbols": names[:100],
        },
    )


def _entities(entry: Entry, symbols: Sequence[Symbol]) -> tuple[Entity, ...]:
    """The file and its main symbols: types and functions before constants, and no fields."""
    main = [symbol for symbol in symbols if symbol.kind not in _VALUES] + [
        symbol for symbol in symbols if symbol.kind == "constant"
    ]
    names = dict.fromkeys(qualified(entry, symbol) for symbol in main)
    return (
        Entity(entry.path, "file"),
        *(Entity(name, "symbol") for name in list(names)[:ENTITIES]),
    )


def _summary(entry: Entry, heads: Sequence[Symbol]) -> str:
    first = heads[0]
    name = qualified(entry, first) + ("(…)" if first.kind in _CALLED else "")
    more = f" and {len(heads) - 1} more" if len(heads) > 1 else ""
    told = f": {sentence(first.doc)}" if first.doc else ""
    return _cut_words(f"{first.kind} {name}{more} in {entry.path}{told}")


def _cut_words(text: str) -> str:
    words = text.split()
    return " ".join(words) if len(words) <= SUMMARY else " ".join(words[: SUMMARY - 1]) + " …"


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"
