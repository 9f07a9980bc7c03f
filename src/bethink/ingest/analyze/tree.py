"""A project as analysis sees it: its files and their texts, and the words that findings are made of.

`Tree` reads each text once and redacts it as a whole, because what is taken out of a private part does not look private any more.
It notes trouble with a file under the file's path and treats the file as empty, so that no analyzer has to think about it. Nothing
is executed.

Patterns in this package are linear in the text: blanks are matched possessively (`\\s*+`), everything else has a bound.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from bethink.ingest.files import Found, read_text
from bethink.ingest.markdown import redact_in_place
from bethink.ingest.symbols import load_table, shorten
from bethink.ingest.sync import Skipped
from bethink.model import Entity, Passage

_LARGEST = 1_000_000  # bytes of a file that is read; what people write by hand is shorter
_MOST_FILES = 20_000  # paths that are looked at; a tree beyond that is data, not a project
READ_LIMIT = 60_000_000  # characters that one analysis reads
# A key of so many parts makes the parser of TOML begin again with each of them.
LONG_KEY = re.compile(r"(?:[\w-]{1,60}\.){60}")


class Finding(NamedTuple):
    """A finding of an analyzer, and its file."""

    path: str
    passage: Passage


def make_finding(
    path: str,
    lines: tuple[int, int] | int,
    kind: str,
    tag: str,
    content: str,
    entities: Iterable[Entity] = (),
    **fields: object,
) -> Finding:
    """Make a finding with what all share: the tag `analysis`, the file as an entity, and its lines."""
    first, last = (lines, lines) if isinstance(lines, int) else lines
    named = dict.fromkeys((*entities, Entity(path, "file")))
    usual: dict[str, Any] = {"importance": 5.0, "confidence": 0.9, "section": tag}
    return Finding(
        path,
        Passage(
            content,
            kind,
            tags=("analysis", tag),
            entities=tuple(named)[:12],
            lines=(first, max(first, last)),
            **(usual | fields),
        ),
    )


def is_aside(path: str) -> bool:
    """Return True if a file does not represent the project: a test, an example, vendored or generated."""
    return bool(re.fullmatch(load_table("analyze")["aside"], path.lower()))


class Tree:
    """The files and texts of one project. Paths are relative to its root, POSIX, shallow ones first."""

    def __init__(self, root: Path, found: Iterable[Found | Skipped]) -> None:
        self.root = root = root.resolve()
        self.skipped: dict[str, str] = {}
        self._files: dict[str, Found] = {}
        self._texts: dict[str, str] = {}
        self._read = 0
        for one in found:
            if isinstance(one, Skipped):
                self.skipped[one.uri] = one.reason
            elif len(self._files) < _MOST_FILES:
                self._files[one.uri] = one
        for path in _find_hidden(root):
            self._files.setdefault(path, Found(root / path, path))
        self.paths = tuple(sorted(self._files, key=lambda path: (path.count("/"), path)))

    def __contains__(self, path: str) -> bool:
        return path in self._files

    @cached_property
    def own(self) -> tuple[str, ...]:
        """The paths that represent the project."""
        return tuple(path for path in self.paths if not is_aside(path))

    def find(self, pattern: str, own: bool = True) -> Iterator[tuple[str, re.Match[str]]]:
        """Yield the files whose whole path fits a pattern, shallow ones first; `own` leaves out tests etc."""
        compiled = re.compile(pattern)
        for path in self.own if own else self.paths:
            if match := compiled.fullmatch(path):
                yield path, match

    def text(self, path: str) -> str:
        """Return a text with plain line ends and without private parts, or "" if it cannot be read."""
        if path in self._files and path not in self._texts:
            read = read_text(self._files[path], _LARGEST)
            if self._read > READ_LIMIT:
                read = Skipped(path, f"not analysed: {READ_LIMIT:,} characters were read before it")
            if isinstance(read, Skipped):
                self.skipped.setdefault(path, read.reason)
                read = ("", "")
            self._read += len(read[0])
            self._texts[path] = redact_in_place(read[0])
        return self._texts.get(path, "")

    def table(self, path: str) -> dict[str, Any]:
        """Return the mapping in a file of TOML or JSON; without one return {} and note why."""
        text = self.text(path)
        try:
            if path.endswith(".toml") and LONG_KEY.search(text):
                raise ValueError("a key has more than 60 parts")
            value = tomllib.loads(text) if path.endswith(".toml") else json.loads(text or "{}")
        except (ValueError, RecursionError) as error:
            self.skipped.setdefault(path, f"cannot be parsed: {shorten(str(error), 120)}")
            return {}
        return as_table(value)


def _find_hidden(root: Path) -> Iterator[str]:
    """Yield files that walks leave out because their names begin with a dot."""
    for pattern in load_table("analyze")["hidden"]:
        for path in sorted(root.glob(pattern))[:40]:
            # A link may lead anywhere on the machine.
            if path.is_file() and path.resolve().is_relative_to(root):
                yield path.relative_to(root).as_posix()


def as_table(value: object) -> dict[str, Any]:
    """Return the value if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def flatten(value: object) -> str:
    """Return a value on one line: a string, the strings of a list, or a mapping's keys with their strings."""
    if isinstance(value, dict):
        value = [f"{key} {item}" for key, item in value.items() if isinstance(item, str)]
    items = value if isinstance(value, list) else [value]
    return shorten(
        ", ".join(" ".join(item.split()) for item in items if isinstance(item, str)), 120
    )


# Sentences


def join_words(items: Sequence[str], most: int = 12) -> str:
    """Join items as `a, b and c`; count those beyond `most`."""
    shown = list(items[:most])
    if len(items) > most:
        return f"{', '.join(shown)} and {len(items) - most} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1]))) if shown else ""


def count_words(text: str) -> int:
    """Count the words of a text; in scripts without spaces two characters count as one."""
    return max(len(text.split()), sum(ord(character) > 0x2E7F for character in text) // 2)


def unique(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(filter(None, items)))
