"""Count the things that make a source tree hard to change, and print them as one table.

    python bench/house.py [DIR] [--list MEASURE]

DIR is any checkout (this one by default), so that two versions can be compared. `--list` prints the places behind one measure, by its
short name: any, namespace, patterns, openers, constants, names, docstrings, loops, and, cases.

The source is read and never run. Each count is a plain rule over the syntax tree:

- A regular expression counts as natural language if it spells out at least two function words of English ("the", "we", "not") or
  words of conversation ("okay", "yes", "thanks"). A file of patterns that is read at run time counts line by line. Modules that
  read logs, messages of agents, shells or queries do not count: their words are those of a format.
- A constant is a name in capitals on module level whose value is a number, or a tuple or mapping of numbers. It is a limit if it
  bounds a size or a time or belongs to a format, which changes no order, verdict or choice: if it is a whole number that
  (a) is in a module that only stores, shows or transports (STORING); (b) has a name of a limit, such as MOST_ or _SECONDS;
  (c) has a comment that begins with a unit of size or time, or calls it a bound, a limit or a definition; or (d) is 1,000 or more. A
  number that is not whole is a limit only if it is a time in seconds, or as good as 0 or 1. Every other constant is tuned. It has an origin if a comment beside it, or
  above its group of lines, says what was measured, or that it was set by hand.
- A constant name has two meanings if two modules export it with different values. A name that its value's class ends in is the
  declaration that each plugin makes (`AGENT = Agent(…)`), and has one.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

FUNCTION_WORDS = frozenset(
    """the an of to in on at for with and or but as by from into that this these those is are was were be been not no we you they he she it
    its my our your their me us them what which who when where why how if because since so then than can could would will should shall must
    do does did have has had don't never always longer anymore instead now again also just only still yet about before after until""".split()
)
TALK_WORDS = frozenset(
    """ok okay yes yeah yep sure thanks thank please great perfect cool nice hello hi hey sorry alright right well actually maybe perhaps
    probably think guess question let lets todo remaining pending done decided prefer remember forget yesterday tomorrow today week month
    monday january weil denn nicht wir ich und oder parce que nous pas avec porque para que""".split()
)
# Modules whose patterns read formats: logs of programs, messages of agents, shells, queries.
FORMATS = ("/agents/", "ingest/causes.py", "ingest/commands.py")
FORMATS += ("ingest/failures.py", "ingest/tools.py", "store/words.py")
CALLS = frozenset(
    "compile compile_pattern Pattern pattern search match fullmatch sub subn findall finditer split".split()
)
MEASURED = re.compile(
    r"measur|bench|LOG\.md|label|nDCG|MRR|recall@|precision|train(?:ed|ing)|published|authors|fitted|calibrat|percentile|quantile"
    r"|\b(?:on|of|in|for|over) [\d.,]+ |\d ?(?:%|ms\b|of \d|right\b)|sessions|conversations that",
    re.IGNORECASE,
)
BY_HAND = re.compile(r"\bby hand\b|\ba design\b", re.IGNORECASE)
# Packages and modules whose whole numbers bound what is stored, shown or sent; they rank and judge nothing.
STORING = ("agents/", "app/", "embed/", "llm/", "store/", "features/readers", "features/exchange")
STORING += ("features/sync", "hooks/run", "hooks/state", "hooks/spool", "hooks/helper")
STORING += (
    "bench.py",
    "hooks/worker",
    "model.py",
    "post.py",
    "registry.py",
    "consent.py",
    "outgoing.py",
)
LIMIT_NAME = re.compile(
    r"(?:^|_)(?:MOST|LONGEST|LARGEST|DEEPEST|LIMIT|VERSION|SECONDS|BYTES|CHARACTERS|LENGTH|WIDTH|TOKENS|ROOM|UNITS|MONTHS|LINES)(?:_|$)"
)
LIMIT_COMMENT = re.compile(
    r"\bbounds?\b|\blimits?\b|\bby definition\b"
    r"|^\s*#?\s*(?:at most |of |up to )?(?:milliseconds|seconds|days|weeks|bytes|characters|tokens|columns|pixels|lines)\b",
    re.IGNORECASE,
)
TIME_NAME = re.compile(r"(?:^|_)(?:SECONDS|PAUSE|REST|GRACE)$")
TIME_COMMENT = re.compile(r"^\W*(?:seconds|time)\b", re.IGNORECASE)


class Place(NamedTuple):
    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {' '.join(self.text.split())[:110]}"


class Source(NamedTuple):
    file: str
    lines: list[str]
    tree: ast.Module


class Measure(NamedTuple):
    name: str
    title: str
    find: Callable[[Path], list[Place]]
    describe: Callable[[list[Place], Path], str] = lambda places, _: f"{len(places):,}"


@cache
def read_sources(root: Path, folder: str) -> list[Source]:
    files = sorted((root / folder).rglob("*.py"))
    texts = ((path.relative_to(root).as_posix(), path.read_text("utf-8")) for path in files)
    return [Source(name, text.splitlines(), ast.parse(text)) for name, text in texts]


# Types


def find_parameters_typed(name: str) -> Callable[[Path], list[Place]]:
    def find(root: Path) -> list[Place]:
        return [
            Place(source.file, argument.lineno, ast.unparse(argument))
            for source in read_sources(root, "src")
            for argument in ast.walk(source.tree)
            if isinstance(argument, ast.arg)
            and argument.annotation
            and re.fullmatch(rf"(?:\w+\.)?{name}(?: \| None)?", ast.unparse(argument.annotation))
        ]

    return find


# Regular expressions


def find_language_patterns(root: Path) -> list[Place]:
    found = [
        place
        for source in read_sources(root, "src")
        if not any(part in source.file for part in FORMATS)
        for place in _list_patterns(source)
        if _is_language(place.text)
    ]
    return found + [
        Place(path.relative_to(root).as_posix(), number, line)
        for path in sorted((root / "src").rglob("cues.txt"))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if " :: " in line and not line.startswith("#")
    ]


def _list_patterns(source: Source) -> Iterator[Place]:
    """List the texts that are regular expressions: arguments of pattern functions, or texts with their syntax."""
    skipped: set[int] = set()  # docstrings, examples, and parts of a longer literal
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Expr):
            skipped.add(id(node.value))
        elif isinstance(node, ast.Call):
            examples = [word.value for word in node.keywords if word.arg in ("matches", "rejects")]
            skipped.update(id(part) for value in examples for part in ast.walk(value))
        elif isinstance(node, ast.BinOp | ast.JoinedStr):
            skipped.update(id(part) for part in ast.walk(node) if part is not node)
    called = {
        id(argument)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and _called_name(node) in CALLS
        for argument in node.args[:2]
    }
    for node in ast.walk(source.tree):
        text = None if id(node) in skipped else _read_text(node)
        if text is None or len(text) > 20_000:
            continue
        looks_like_one = re.search(r"\(\?[:i=!<P]|\\[bswdSW]", text) is not None
        if looks_like_one or (id(node) in called and re.search(r"[|\\(\[]", text)):
            yield Place(source.file, node.lineno, text)


def _called_name(node: ast.Call) -> str:
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _read_text(node: ast.AST) -> str | None:
    """Return the text of a literal, with a space for each value put into it."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_read_text(part) or " " for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = [_read_text(node.left), _read_text(node.right)]
        return " ".join(filter(None, sides)) if any(sides) else None
    return None


def _is_language(pattern: str) -> bool:
    """Return True if a regular expression spells out words of a sentence."""
    pattern = re.sub(r"(?m)\s#.*$", " ", pattern) if pattern.startswith("(?x)") else pattern
    bare = re.sub(r"\(\?P?<\w+>|\(\?[a-z]+[:)]|\\[a-zA-Z]|\[[^\]]*\]|\{[^}]*\}", " ", pattern)
    words = set(re.findall(r"[^\W\d_]+(?:'[a-z]+)?", bare.lower()))
    return len(words & (TALK_WORDS | FUNCTION_WORDS)) >= 2


def describe_patterns(places: list[Place], _: Path) -> str:
    outside = [place for place in places if "/language/" not in place.file]
    modules = len({place.file for place in places})
    return f"{len(places)} in {modules} modules; {len(outside)} outside of `language`"


def find_opener_lists(root: Path) -> list[Place]:
    return [
        place
        for source in read_sources(root, "src")
        for place in _list_patterns(source)
        if re.search(r"\bok(?:ay|\(\?:ay\)\?)?\|", place.text)
    ]


# Constants


class Constant(NamedTuple):
    place: Place
    is_tuned: bool
    comment: str  # beside it, or else above its group of lines


@cache
def list_constants(root: Path) -> list[Constant]:
    return [
        Constant(
            Place(source.file, node.lineno, f"{', '.join(names)} = {ast.unparse(node.value)}"),
            any(_is_tuned(source.file, name, node.value, own) for name in names),
            own if MEASURED.search(own) or BY_HAND.search(own) else f"{above} {own}",
        )
        for source in read_sources(root, "src")
        for node, names in _list_assignments(source)
        if _is_number(node.value)
        for own, above in [_read_comments(source, node)]
        for _ in names
    ]


def _is_tuned(file: str, name: str, value: ast.expr, comment: str) -> bool:
    """Return True if a number changes an order, a verdict or a choice, and False if it is a limit."""
    numbers = [
        part.value
        for part in ast.walk(value)
        if isinstance(part, ast.Constant) and isinstance(part.value, int | float)
    ]
    if any(number != int(number) for number in numbers):
        guards = all(min(number, abs(1 - number)) <= 0.001 for number in numbers)
        is_time = TIME_NAME.search(name) or TIME_COMMENT.search(comment)
        return not (guards or is_time or "by definition" in comment)
    return not (
        file.removeprefix("src/bethink/").startswith(STORING)
        or LIMIT_NAME.search(name)
        or LIMIT_COMMENT.search(comment)
        or all(number >= 1000 for number in numbers)
    )


def find_unmeasured_constants(root: Path) -> list[Place]:
    return [
        one.place
        for one in list_constants(root)
        if one.is_tuned and not MEASURED.search(one.comment) and not BY_HAND.search(one.comment)
    ]


def describe_constants(places: list[Place], root: Path) -> str:
    tuned = [one.comment for one in list_constants(root) if one.is_tuned]
    by_hand = sum(1 for one in tuned if BY_HAND.search(one) and not MEASURED.search(one))
    limits = len(list_constants(root)) - len(tuned)
    return f"{len(places)} of {len(tuned)} ({by_hand} set by hand; {limits} limits not counted)"


def _list_assignments(source: Source) -> Iterator[tuple[ast.Assign, list[str]]]:
    for node in source.tree.body:
        if isinstance(node, ast.Assign):
            names = [
                name.id
                for target in node.targets
                for name in ast.walk(target)
                if isinstance(name, ast.Name)
            ]
            if names and all(re.fullmatch(r"_?[A-Z][A-Z0-9_]*", name) for name in names):
                yield node, names


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    if isinstance(node, ast.Tuple):
        return bool(node.elts) and all(map(_is_number, node.elts))
    if isinstance(node, ast.Dict):
        return bool(node.values) and all(map(_is_number, node.values))
    return False


def _read_comments(source: Source, node: ast.Assign) -> tuple[str, str]:
    """Return the comment of an assignment, and the block of comments that heads its group of lines."""
    first, last = node.lineno - 1, node.end_lineno or node.lineno
    own = " ".join(line.partition("#")[2] for line in source.lines[first:last])
    lines = source.lines[:first]
    above: list[str] = []
    is_next = bool(lines) and lines[-1].startswith("#")
    while lines and lines[-1] and not lines[-1].startswith("#"):
        lines.pop()
    while lines and lines[-1].startswith("#"):
        above.insert(0, lines.pop().removeprefix("#"))
    text = " ".join(above)
    return (f"{text} {own}", "") if is_next else (own, text)


def find_ambiguous_names(root: Path) -> list[Place]:
    values: dict[str, dict[str, Place]] = defaultdict(dict)
    for source in read_sources(root, "src"):
        for node, names in _list_assignments(source):
            for name in names:
                if not name.startswith("_") and not _is_declaration(name, node.value):
                    place = Place(source.file, node.lineno, f"{name} = {ast.unparse(node.value)}")
                    values[name].setdefault(ast.unparse(node.value), place)
    return [
        Place(
            places[0].file, places[0].line, f"{name}: {', '.join(place.file for place in places)}"
        )
        for name, found in sorted(values.items())
        for places in [list(found.values())]
        if len(places) > 1
    ]


def _is_declaration(name: str, value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and _called_name(value).lower().endswith(name.lower())


# English


def find_dialect_docstrings(root: Path) -> list[Place]:
    found = []
    for source in read_sources(root, "src"):
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node) or ""
                if re.match(r"(?:What|Of|Whether|Who)\b", text):
                    found.append(Place(source.file, getattr(node, "lineno", 1), text))
    return found


# Tests


def _list_tests(root: Path) -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    return [
        (source.file, node)
        for source in read_sources(root, "tests")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    ]


def find_looping_tests(root: Path) -> list[Place]:
    return [
        Place(file, test.lineno, test.name)
        for file, test in _list_tests(root)
        if any(
            isinstance(inner, ast.Assert)
            for loop in ast.walk(test)
            if isinstance(loop, ast.For | ast.AsyncFor | ast.While)
            for inner in ast.walk(loop)
        )
    ]


def find_tests_with_and(root: Path) -> list[Place]:
    return [
        Place(file, test.lineno, test.name)
        for file, test in _list_tests(root)
        if "_and_" in test.name
    ]


def describe_tests(places: list[Place], root: Path) -> str:
    return f"{len(places)} of {len(_list_tests(root)):,}"


def find_case_files(root: Path) -> list[Place]:
    return [
        Place(path.relative_to(root).as_posix(), 1, path.name)
        for path in sorted((root / "tests" / "cases").glob("*"))
        if path.is_file()
    ]


MEASURES = (
    Measure("any", "parameters typed `Any`", find_parameters_typed("Any")),
    Measure("namespace", "parameters typed `Namespace`", find_parameters_typed("Namespace")),
    Measure(
        "patterns",
        "regular expressions over natural language",
        find_language_patterns,
        describe_patterns,
    ),
    Measure("openers", "patterns that list openers (`ok|okay|…`)", find_opener_lists),
    Measure(
        "constants",
        "tuned constants without an origin",
        find_unmeasured_constants,
        describe_constants,
    ),
    Measure("names", "exported constant names with two meanings", find_ambiguous_names),
    Measure(
        "docstrings",
        "docstrings that begin with What, Of, Whether or Who",
        find_dialect_docstrings,
    ),
    Measure("loops", "tests that assert in a loop", find_looping_tests, describe_tests),
    Measure("and", "tests with `_and_` in their name", find_tests_with_and, describe_tests),
    Measure("cases", "case files that a test evaluates", find_case_files),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parent.parent)
    parser.add_argument("--list", choices=[measure.name for measure in MEASURES])
    given = parser.parse_args()
    root = given.root.resolve()
    if given.list:
        for place in next(one for one in MEASURES if one.name == given.list).find(root):
            print(place)
        return
    print("| measure | count |\n|---|---|")
    for measure in MEASURES:
        print(f"| {measure.title} | {measure.describe(measure.find(root), root)} |")


if __name__ == "__main__":
    main()
