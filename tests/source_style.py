"""Plain English in the source: the rules for docstrings, names and comments that a machine can check."""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

LONGEST_FIRST_LINE = 100
QUESTION_WORDS = ("What", "Of", "Whether", "Who", "Where", "How")
DIALECT_NAMES = frozenset("told said heard given held stands".split())
DIALECT = re.compile(
    r"\b(?:stands?|told|is so|of (?:its|their|one's) own|whoever|somebody|the one that)\b",
    re.IGNORECASE,
)


def list_docstrings(tree: ast.Module) -> Iterator[str]:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(tree):
        if isinstance(node, documented) and (text := ast.get_docstring(node)):
            yield text


def list_comments(text: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def list_names(tree: ast.Module) -> Iterator[str]:
    """Names that a module defines: functions, classes, parameters and variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def is_bad_docstring(text: str) -> bool:
    first = text.splitlines()[0]
    return len(first) > LONGEST_FIRST_LINE or first.split(" ")[0] in QUESTION_WORDS


def find_bad_docstrings(tree: ast.Module) -> list[str]:
    return [text.splitlines()[0] for text in list_docstrings(tree) if is_bad_docstring(text)]


def find_dialect(text: str) -> list[str]:
    """Words of the old dialect in names, docstrings and comments of a module."""
    tree = ast.parse(text)
    names = [name for name in list_names(tree) if DIALECT_NAMES & set(name.lower().split("_"))]
    prose = [*list_docstrings(tree), *list_comments(text)]
    return names + [found[0] for part in prose for found in DIALECT.finditer(part)]


def list_packages(source: Path) -> list[str]:
    """List the packages of a source folder; '' holds the modules beside them."""
    return ["", *sorted({path.relative_to(source).parts[0] for path in source.glob("*/**/*.py")})]


@cache
def count_findings(source: Path, package: str) -> Counter[str]:
    """Count both kinds of findings in a package."""
    counts = Counter[str]()
    for path in (source / package).rglob("*.py") if package else source.glob("*.py"):
        text = path.read_text("utf-8")
        counts["docstrings"] += len(find_bad_docstrings(ast.parse(text)))
        counts["dialect"] += len(find_dialect(text))
    return counts
