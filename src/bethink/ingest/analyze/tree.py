"""A project as analyzers see it: its files, their texts and parsed values, and the sentences that findings are made of.

`Tree` reads a text and parses a format once, however many analyzers ask. It redacts a text as a whole, because what an analyzer
takes out of a private part does not look private any more. Trouble with a file is noted under its path and the file counts as
empty, so that no analyzer has to think about it. Nothing is executed, no XML entity is expanded, no YAML tag makes an object.

Patterns in this package are linear in the text: blanks are matched possessively (`\\s*+`), everything else has a bound.
"""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache, cached_property
from pathlib import Path
from posixpath import basename, dirname, join, normpath
from typing import Any, NamedTuple, TypeVar

from bethink.ingest.files import Found, one_line, read_text
from bethink.ingest.markdown import redact_in_place
from bethink.ingest.sync import Skipped
from bethink.types import NOTHING, Entity, Passage

Value = TypeVar("Value")

LARGEST = 1_000_000  # bytes of a file that is read; what people write by hand is shorter
LONGEST_YAML = 120_000  # the parser in Python takes up to 3 s for it
DEEPEST_YAML = 100  # brackets in brackets; beyond that the parser takes seconds to give up
MOST_FILES = 20_000  # paths that are looked at; a tree beyond that is data, not a project
READ_LIMIT = 60_000_000  # characters that one analysis reads
DATA = Path(__file__).parents[1] / "data"
SCRIPTS = (".ts", ".tsx", ".js", ".mjs", ".cjs", ".mts", ".jsx")


class Unreadable(ValueError):
    """A text that is not what its name promises. The message is a reason without a trailing period."""


class Finding(NamedTuple):
    """What an analyzer has to say, and the file that says it."""

    path: str
    passage: Passage


def make_finding(
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
    passage = Passage(
        content,
        kind,
        importance=importance,
        confidence=confidence,
        tags=("analysis", tag),
        entities=tuple(named)[:12],
        section=section or tag,
        lines=(max(first, 1), max(first, last, 1)),
        metadata=metadata,
    )
    return Finding(path, passage)


@cache
def load_table(name: str) -> dict[str, Any]:
    """A table of words and patterns that this package is driven by."""
    return tomllib.loads((DATA / f"{name}.toml").read_text("utf-8"))


@cache
def _load_aside() -> tuple[frozenset[str], re.Pattern[str]]:
    table = load_table("analyze")["aside"]
    return frozenset(table["folders"].split()), re.compile("|".join(table["files"]))


def is_aside(path: str) -> bool:
    """Whether a file does not speak for the project: a test, an example, somebody else's, or made by a tool."""
    *folders, name = path.lower().split("/")
    names, pattern = _load_aside()
    return not names.isdisjoint(folders) or bool(pattern.fullmatch(name))


class Tree:
    """Owns what was read of one project. Paths are relative to its root, POSIX, sorted with the shallow ones first."""

    def __init__(self, root: Path, found: Iterable[Found | Skipped]) -> None:
        self.root = root = root.resolve()  # as `walk` places what it finds
        self.skipped: dict[str, str] = {}
        self._files: dict[str, Found] = {}
        self._made: dict[Any, Any] = {}
        self._read = 0
        self._prefix = ""  # what a uri has before the path
        for one in found:
            if isinstance(one, Skipped):
                self.skipped[one.uri.removeprefix(self._prefix)] = one.reason
            elif one.path.is_relative_to(root) and len(self._files) < MOST_FILES:
                path = one_line(one.path.relative_to(root).as_posix())
                self._prefix = one.uri.removesuffix(path) if one.uri.endswith(path) else ""
                self._files[path] = one
        for path in _find_hidden(root):
            self._files.setdefault(path, Found(root / path, self._prefix + path))
        self.paths = tuple(sorted(self._files, key=lambda path: (path.count("/"), path)))

    def uri(self, path: str) -> str:
        return f"analysis:{self._files[path].uri if path in self._files else self._prefix + path}"

    def __contains__(self, path: str) -> bool:
        return path in self._files

    @cached_property
    def own(self) -> tuple[str, ...]:
        """The paths that speak for the project."""
        return tuple(path for path in self.paths if not is_aside(path))

    def find_named(self, *patterns: str) -> Iterator[str]:
        """The project's own files with such a name, shallow ones first."""
        return (
            path
            for path in self.own
            if any(fnmatchcase(basename(path).lower(), pattern) for pattern in patterns)
        )

    def find_suffixed(self, *suffixes: str) -> Iterator[str]:
        return (path for path in self.own if path.endswith(suffixes))

    def text(self, path: str) -> str:
        """The text with plain line ends and without what is private, or nothing where it cannot be read."""
        return self._make(path, "text", self._load) or ""

    def lines(self, path: str) -> list[str]:
        return self.text(path).split("\n")

    def parse(self, path: str, parser: Callable[[str], Value]) -> Value | None:
        """What a parser makes of a file; None, and a note why, where it is not of that format."""
        text = self.text(path)
        return self._make(path, parser, lambda _: parser(text) if text.strip() else None)

    def table(self, path: str, format: str) -> dict[str, Any]:
        """The mapping that a file of a known format holds; an empty one where it holds none."""
        return as_table(self.parse(path, FORMATS[format])) if format in FORMATS else {}

    def find_module(self, file: str, module: str) -> str | None:
        """The project's file behind an import: `./users` in JavaScript, `.users` or `shop.users` in Python. Whether `src/` stands
        before a Python name is not known, so the shortest path that ends so is taken."""
        module = module.strip("'\"")
        if not file.endswith(".py"):
            base = normpath(join(dirname(file), module))
            stem = re.sub(r"\.[cm]?[jt]sx?$", "", base)
            names = [*(stem + end for end in SCRIPTS), *(f"{base}/index{end}" for end in SCRIPTS)]
            return next((path for path in names if module[:1] == "." and path in self), None)
        name = module.lstrip(".")
        above = dirname(file).split("/")
        near = above[: len(above) - (len(module) - len(name)) + 1] if module != name else []
        tail = "/".join((*near, *filter(None, name.split("."))))
        ends = (f"/{tail}.py", f"/{tail}/__init__.py")
        fitting = [path for path in self._python if tail and f"/{path}".endswith(ends)]
        return min(fitting, key=len, default=None)

    @cached_property
    def _python(self) -> tuple[str, ...]:
        return tuple(path for path in self.paths if path.endswith(".py"))

    def _make(self, path: str, what: Any, make: Callable[[str], Value]) -> Value | None:
        if (path, what) not in self._made:
            try:
                self._made[path, what] = make(path)
            except Unreadable as error:
                self.skipped.setdefault(path, str(error))
                self._made[path, what] = None
        value: Value | None = self._made[path, what]
        return value

    def _load(self, path: str) -> str:
        if path not in self._files:
            return ""
        if self._read > READ_LIMIT:
            million = READ_LIMIT // 1_000_000
            raise Unreadable(f"not analysed: {million} million characters were read before it")
        read = read_text(self._files[path], LARGEST)
        if isinstance(read, Skipped):
            raise Unreadable(read.reason)
        self._read += len(read[0])
        plain = read[0].removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        return redact_in_place(plain)[0]


def _find_hidden(root: Path) -> Iterator[str]:
    """Files that walks leave out because their names begin with a dot."""
    for pattern in load_table("analyze")["hidden"]:
        folder, _, name = pattern.rpartition("/")
        try:
            for path in sorted((root / folder).glob(name))[:40]:
                # A link may lead anywhere on the machine.
                if path.is_file() and path.resolve().is_relative_to(root):
                    yield path.relative_to(root).as_posix()
        except (OSError, RuntimeError):
            continue


def find_line(lines: Sequence[str], needle: str, start: int = 0) -> int:
    """The number of the first line with that text, counted from one; 1 where there is none."""
    numbered = enumerate(lines[start:], start + 1)
    return next((number for number, line in numbered if needle in line), 1)


# Formats


def _read_toml(text: str) -> Any:
    if re.search(r"(?:[\w-]{1,60}\.){60}", text):  # each part makes the parser begin again
        raise Unreadable("TOML with a key of more than 60 parts")
    return tomllib.loads(text)


def _read_ini(text: str) -> dict[str, dict[str, str]]:
    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    parser.read_string(text)
    return {name: dict(parser[name]) for name in parser.sections()}


def _read_yaml(text: str) -> Any:
    """The first document of a YAML text, every scalar as a string. Aliases share what they name, so nothing grows by them."""
    import yaml

    if len(text) > LONGEST_YAML:
        raise Unreadable(f"too long for YAML ({len(text):,} characters, at most {LONGEST_YAML:,})")
    depth = 0  # brackets in strings and comments count too: an upper bound is all that is needed
    for bracket in re.finditer(r"[\[\]{}]", text):
        depth = depth + 1 if bracket[0] in "[{" else max(depth - 1, 0)
        if depth > DEEPEST_YAML:
            raise RecursionError
    try:
        # BaseLoader makes strings, lists and dicts and nothing else: no dates that do not exist, no merge keys that multiply.
        return next(yaml.load_all(text, Loader=yaml.BaseLoader), None)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def _read_xml(text: str) -> Any:
    """The root element as a mapping of its attributes and, in lists, its children; an element without either is its text."""
    from xml.etree import ElementTree

    # A document type is where entities are declared.
    if re.search(r"<!\s*+(?:DOCTYPE|ENTITY)", text, re.IGNORECASE):
        raise Unreadable("XML with a document type, which could declare entities")
    return _read_element(ElementTree.fromstring(text), 0)


def _read_element(element: Any, depth: int) -> Any:
    if depth > 20 or (not len(element) and not element.attrib):
        return element.text or ""
    value: dict[str, Any] = dict(element.attrib)
    for child in element:
        if isinstance(child.tag, str):
            inner = _read_element(child, depth + 1)
            value.setdefault(child.tag.rpartition("}")[2], []).append(inner)
    return value


def _decode(format: str, parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """A parser whose errors say what is wrong with the file."""

    def read(text: str) -> Any:
        try:
            return parse(text)
        except Unreadable:
            raise
        except (RecursionError, MemoryError):
            raise Unreadable(f"{format} that nests too deeply") from None
        except (ValueError, SyntaxError, configparser.Error) as error:
            why = " ".join(str(error).split())[:120].rstrip(".") or type(error).__name__
            raise Unreadable(f"no valid {format}: {why}") from None

    return read


# Any other format is read by patterns alone.
FORMATS: Mapping[str, Callable[[str], Any]] = {
    "toml": _decode("TOML", _read_toml),
    "json": _decode("JSON", json.loads),
    "yaml": _decode("YAML", _read_yaml),
    "xml": _decode("XML", _read_xml),
    "ini": _decode("INI file", _read_ini),
}


def find_all(value: Any, path: str, star: str = "") -> Iterator[tuple[str, Any]]:
    """What stands at a path of keys, with the key that a `*` stood for. Lists are gone through, because XML makes them."""
    if not path:
        yield star, value
        return
    key, _, rest = path.partition("/")
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, dict) and key == "*":
            for name, inner in one.items():
                yield from find_all(inner, rest, str(name))
        elif isinstance(one, dict) and key in one:
            yield from find_all(one[key], rest, star)


def as_table(value: Any) -> dict[str, Any]:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_strings(value: Any) -> list[str]:
    """The strings of a list; a single string is a list of one."""
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def as_string(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def flatten(value: Any) -> str:
    """What stands at a key, on one line: a string, the strings of a list, a mapping's keys with the strings that they stand for."""
    if isinstance(value, dict):
        value = [f"{key} {as_string(item)}".rstrip() for key, item in value.items()]
    return ", ".join(map(as_string, as_strings(value)[:5]))[:120]


# Sentences

_LINK = re.compile(r"!?\[([^\]\n]{0,300})\](?:\([^)\n]{0,600}\)|\[[^\]\n]{0,100}\])")
_IMAGE = re.compile(r"!\[[^\]\n]{0,300}\](?:\([^)\n]{0,600}\)|\[[^\]\n]{0,100}\])")
# Only what HTML has: `<name>` in a command is a placeholder.
_TAG = re.compile(
    r"</?(?:a|abbr|b|br|center|code|details|div|em|font|h[1-6]|hr|i|img|kbd|li|ol|p|picture|pre|s|small|source|span|strong|sub"
    r"|summary|sup|table|tbody|td|th|thead|tr|u|ul|video)(?:\s[^<>\n]{0,400})?/?>|<!--(?:[^-]|-(?!->)){0,2000}+(?:-->)?",
    re.DOTALL | re.IGNORECASE,
)
_STRONG = re.compile(r"(\*{1,3}|__)(?=\S)([^*_\n]{1,300}?)(?<=\S)\1")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)`]{0,2}\s+(?=[A-Z0-9`\"“(])|(?<=[。！？])")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|resp|incl)|\b[A-Z])\.$", re.IGNORECASE
)


def clip(text: str, limit: int) -> str:
    """The text, or as much of it as fits, cut after a sentence if one ends late enough, else after a word."""
    text = text.strip()
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    ends = [match.start() for match in _SENTENCE_END.finditer(head)]
    if ends and ends[-1] > limit * 0.6:
        return head[: ends[-1]].rstrip() + " …"
    cut = max(head.rfind(" "), head.rfind("\n"))
    return (head[:cut] if cut > limit * 0.5 else head).rstrip(" \n,;:-–(") + "…"


def first_sentence(text: str, limit: int = 160) -> str:
    """The first sentence, without its period."""
    text = " ".join(text[:2000].strip().split("\n\n", 1)[0].split())
    ends = (match.start() for match in _SENTENCE_END.finditer(text))
    end = next((at for at in ends if not _ABBREVIATION.search(text[:at])), len(text))
    return clip(text[:end], limit).rstrip(".。 ")


def join_words(items: Sequence[str], most: int = 12) -> str:
    """`a, b and c`; what is too many is counted."""
    shown = list(items[:most])
    if len(items) > most:
        return f"{', '.join(shown)} and {len(items) - most} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1]))) if shown else ""


def quote_code(text: str, limit: int = 90) -> str:
    """A command as it stands in a sentence."""
    text = " ".join(text.split())
    text = text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
    return f"`{text.replace('`', chr(39))}`"


def strip_markup(text: str) -> str:
    """Markdown on one line, without images, links' addresses, tags and emphasis. Code keeps its backticks."""
    text = " ".join(text.split())
    if "[" in text:
        text = _LINK.sub(r"\1", _IMAGE.sub("", text))
    if "<" in text:
        text = _TAG.sub("", re.sub(r"<br ?/?>", " ", text))
    if "*" in text or "__" in text:
        text = _STRONG.sub(r"\2", text)
    return text.strip()


def count_words(text: str) -> int:
    """How many words a text has; a script that does not part its words counts two characters for one."""
    return max(len(text.split()), sum(ord(character) > 0x2E7F for character in text) // 2)


def unique(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(item for item in items if item))


def pick_important(found: Sequence[Finding], most: int) -> list[Finding]:
    """The most telling findings in their order; of equals those that stand first."""
    order = sorted(range(len(found)), key=lambda at: (-(found[at].passage.importance or 0), at))
    return [found[at] for at in sorted(order[:most])]
