"""A project as analyzers see it: the paths of its files, their texts, what could not be read, and what one says about it.

A text is read and a format parsed once, however many analyzers ask. It is redacted as a whole, because what an analyzer takes out of a
private part does not look private any more. Trouble with a file is noted under its path and the file counts as empty, so no analyzer
has to think about it. This module knows no format and no kind of project.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from bethink.ingest.files import Found, one_line, read_text
from bethink.ingest.markdown import redacted
from bethink.ingest.sync import Skipped
from bethink.types import NOTHING, Entity, Passage

Value = TypeVar("Value")

LARGEST = 4_000_000  # bytes of a file that is read at all
LONGEST = 1_000_000  # characters; what people write by hand is shorter, and every analyzer is linear in it
MOST_FILES = 20_000  # paths that are looked at; a tree beyond that is data, not a project
READ_LIMIT = 60_000_000  # characters of source text that one analysis reads

# Files that walks leave out because their names begin with a dot.
HIDDEN = (
    ".github/workflows/*.yml",
    ".github/workflows/*.yaml",
    ".gitlab-ci.yml",
    ".circleci/config.yml",
    ".github/CONTRIBUTING.md",
    ".nvmrc",
    ".node-version",
    ".python-version",
    ".ruby-version",
    ".java-version",
    ".tool-versions",
    ".pre-commit-config.yaml",
)
# Patterns in this package are linear in the text: blanks are matched possessively (`\s*+`) and the rest has a bound.
# Folders whose code does not speak for the project.
ASIDE = frozenset(
    """
    test tests testing integration spec specs __tests__ __mocks__ mocks e2e fixtures fixture testdata test-data example examples sample samples
    demo demos vendor vendored third_party third-party thirdparty node_modules bower_components site-packages dist out target
    generated gen .venv venv env migrations benchmarks bench snapshots __snapshots__ stubs typings
    """.split()
)
_ASIDE_NAME = re.compile(
    r"test_.*\.py|.*_tests?\.\w+|conftest\.py|.*[.-](?:test|spec|stories|mock|min|bundle|generated|pb)\.\w+|.*_pb2(?:_grpc)?\.pyi?|.*\.d\.ts"
)


class Unreadable(ValueError):
    """A text that is not what its name promises. The message is a reason without a trailing period."""


class Finding(NamedTuple):
    """What an analyzer has to say, and the file that says it."""

    path: str
    passage: Passage


def finding(
    path: str,
    lines: tuple[int, int] | int,
    kind: str,
    tag: str,
    content: str,
    *,
    importance: float = 5.0,
    confidence: float = 0.9,
    section: str | None = None,
    entities: Iterable[Entity] = (),
    metadata: Mapping[str, Any] = NOTHING,
) -> Finding:
    """A finding with what all of them share: the tag `analysis`, the file as an entity, and a line to look it up at."""
    first, last = (lines, lines) if isinstance(lines, int) else lines
    named = dict.fromkeys((*entities, Entity(path, "file")))
    return Finding(
        path,
        Passage(
            content,
            kind,
            importance=importance,
            confidence=confidence,
            tags=("analysis", tag),
            entities=tuple(named)[:12],
            section=section or tag,
            lines=(max(first, 1), max(first, last, 1)),
            metadata=metadata,
        ),
    )


class Tree:
    """Owns what was read of one project. Paths are relative to its root, POSIX, sorted with the shallow ones first."""

    def __init__(self, root: Path, found: Iterable[Found | Skipped]) -> None:
        self.root = root = root.resolve()  # as `walk` places what it finds
        self.skipped: dict[str, str] = {}
        self._files: dict[str, Found] = {}
        self._texts: dict[str, str] = {}
        self._parsed: dict[tuple[str, Callable[[str], Any]], Any] = {}
        self._worked_out: dict[Any, Any] = {}
        self._read = 0
        prefix = ""
        for one in found:
            if isinstance(one, Skipped):
                self.skipped[one.uri.removeprefix(prefix)] = one.reason
            elif one.path.is_relative_to(root):
                path = one_line(one.path.relative_to(root).as_posix())
                prefix = one.uri.removesuffix(path) if one.uri.endswith(path) else prefix
                if len(self._files) < MOST_FILES:
                    self._files[path] = one
        self._prefix = prefix
        for path in _hidden(root):
            self._files.setdefault(path, Found(root / path, prefix + path))
        self.paths = tuple(sorted(self._files, key=lambda path: (path.count("/"), path)))

    def uri(self, path: str) -> str:
        return f"analysis:{self._files[path].uri if path in self._files else self._prefix + path}"

    def __contains__(self, path: str) -> bool:
        return path in self._files

    @cached_property
    def own(self) -> tuple[str, ...]:
        """The paths that speak for the project: no tests, examples, vendored or generated files."""
        return tuple(path for path in self.paths if not aside(path))

    @cached_property
    def folders(self) -> Mapping[str, tuple[str, ...]]:
        """Each folder of the project's own files with the names directly in it, folders included with a slash."""
        inside: dict[str, dict[str, None]] = {}
        for path in self.own:
            parts = path.split("/")
            for depth in range(len(parts)):
                name = parts[depth] + ("/" if depth < len(parts) - 1 else "")
                inside.setdefault("/".join(parts[:depth]), {})[name] = None
        return {folder: tuple(names) for folder, names in inside.items()}

    def named(self, *patterns: str) -> Iterator[str]:
        """The project's own files with such a name, shallow ones first."""
        return (
            path
            for path in self.own
            if any(fnmatchcase(path.rsplit("/", 1)[-1].lower(), pattern) for pattern in patterns)
        )

    def suffixed(self, *suffixes: str) -> Iterator[str]:
        return (path for path in self.own if path.endswith(suffixes))

    def text(self, path: str) -> str:
        """The text with plain line ends and without what is private, or nothing where it cannot be read."""
        known = self._texts.get(path)
        if known is None:
            known = self._texts[path] = self._load(path)
        return known

    def lines(self, path: str) -> list[str]:
        return self.text(path).split("\n")

    def parse(self, path: str, parser: Callable[[str], Value]) -> Value | None:
        """What a parser makes of a file; None, and a note why, where it is not of that format."""
        key = (path, parser)
        if key not in self._parsed:
            text = self.text(path)
            try:
                self._parsed[key] = parser(text) if text.strip() else None
            except Unreadable as error:
                self.skip(path, str(error))
                self._parsed[key] = None
        value: Value | None = self._parsed[key]
        return value

    def once(self, function: Callable[[Tree], Value]) -> Value:
        """What a function says about this tree, worked out the first time it is asked."""
        if function not in self._worked_out:
            self._worked_out[function] = function(self)
        value: Value = self._worked_out[function]
        return value

    def skip(self, path: str, reason: str) -> None:
        self.skipped.setdefault(path, reason)

    def _load(self, path: str) -> str:
        if path not in self._files:
            return ""
        if self._read > READ_LIMIT:
            self.skip(
                path,
                f"not analysed: more than {READ_LIMIT // 1_000_000} million characters were read before it",
            )
            return ""
        read = read_text(self._files[path], LARGEST)
        if isinstance(read, Skipped):
            self.skip(path, read.reason)
            return ""
        if len(read[0]) > LONGEST:
            self.skip(
                path, f"too long to analyse ({len(read[0]):,} characters, at most {LONGEST:,})"
            )
            return ""
        self._read += len(read[0])
        return redacted(read[0].removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"))[0]


def aside(path: str) -> bool:
    *folders, name = path.lower().split("/")
    return any(folder in ASIDE for folder in folders) or bool(_ASIDE_NAME.fullmatch(name))


def folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def line_of(lines: list[str], needle: str, start: int = 0) -> int:
    """The number of the first line with that text, counted from one; 1 where there is none."""
    return next(
        (number for number, line in enumerate(lines[start:], start + 1) if needle in line), 1
    )


def line_at(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _hidden(root: Path) -> Iterator[str]:
    inside = root.resolve()
    for pattern in HIDDEN:
        folder, _, name = pattern.rpartition("/")
        try:
            found = sorted((root / folder).glob(name))[:40]
            for path in found:
                # A link may lead anywhere on the machine.
                if path.is_file() and path.resolve().is_relative_to(inside):
                    yield path.relative_to(root).as_posix()
        except (OSError, RuntimeError):
            continue
