"""Tables of cases that are kept as data: `cases/NAME.txt` holds one Python literal a line, or an expression of names that the test gives."""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).with_name("cases")


def cases(name: str, names: dict[str, Any] | None = None) -> list[Any]:
    lines = (FOLDER / f"{name}.txt").read_text("utf-8").splitlines()
    if names is not None:
        return [eval(line, dict(names)) for line in lines]
    return [ast.literal_eval(line) for line in lines]


def rules(
    functions: dict[str, Callable[..., Any]], names: dict[str, Any] | None = None
) -> pytest.MarkDecorator:
    """Gives a test each row of several tables: the table's name says a rule, its function takes what the row begins with and gives its last item."""
    rows = [
        pytest.param(function, row[:-1], row[-1], id=f"{name}-{at}")
        for name, function in functions.items()
        for at, row in enumerate(cases(name, names))
    ]
    return pytest.mark.parametrize(("function", "given", "expected"), rows)


def each(arguments: str, name: str, names: dict[str, Any] | None = None) -> pytest.MarkDecorator:
    """Runs a test once for every case of a table."""
    return pytest.mark.parametrize(arguments, cases(name, names))


def stories(name: str) -> pytest.MarkDecorator:
    """Gives a test the lines of each story of `cases/NAME.txt`. A story is a rule, then lines; a blank line ends it."""
    texts = (FOLDER / f"{name}.txt").read_text("utf-8").strip().split("\n\n")
    told = [text.removeprefix("# ").split("\n") for text in texts]
    return pytest.mark.parametrize("lines", [pytest.param(rest, id=rule) for rule, *rest in told])
