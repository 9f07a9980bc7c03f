"""Every pattern over natural language matches its examples, and none of those that it has to reject."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

from bethink import language
from bethink.language.pattern import Pattern, fold_case


def list_patterns() -> list[Pattern]:
    """Every pattern of the package, once."""
    modules = [
        importlib.import_module(f"bethink.language.{found.name}")
        for found in pkgutil.iter_modules(language.__path__)
    ]
    values = [value for module in modules for value in vars(module).values()]
    return list({id(pattern): pattern for pattern in find_patterns(values)}.values())


def find_patterns(value: Any) -> Iterator[Pattern]:
    if isinstance(value, Pattern):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from find_patterns(item)


PATTERNS = list_patterns()


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        pytest.param(pattern, text, id=f"{pattern.name}: {text}")
        for pattern in PATTERNS
        for text in pattern.matches
    ],
)
def test_a_pattern_matches_its_examples(pattern: Pattern, text: str) -> None:
    assert pattern.holds(text)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        pytest.param(pattern, text, id=f"{pattern.name}: {text}")
        for pattern in PATTERNS
        for text in pattern.rejects
    ],
)
def test_a_pattern_rejects_its_counterexamples(pattern: Pattern, text: str) -> None:
    assert not pattern.holds(text)


@pytest.mark.parametrize("pattern", PATTERNS, ids=repr)
def test_a_pattern_has_examples(pattern: Pattern) -> None:
    assert pattern.matches


def test_pattern_names_are_unique() -> None:
    names = [pattern.name for pattern in PATTERNS]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Let’s GO", id="apostrophe"),
        pytest.param("İstanbul is BIG", id="a capital with two small letters"),
    ],
)
def test_folding_keeps_every_character_in_its_place(text: str) -> None:
    assert len(fold_case(text)) == len(text)
