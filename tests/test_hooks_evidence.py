"""How surely a memory fits a prompt, on numbers alone."""

from __future__ import annotations

import pytest

from bethink.hooks.evidence import confidence, is_telling, read_prompt
from bethink.store.base import Statistics
from bethink.store.words import tokenize
from bethink.types import Words

KNOWN = {
    "valkei": 9,
    "cluster": 20,
    "replica": 15,
    "server": 400,
    "restart": 30,
    "invoic": 12,
    "parsetimetableentri": 2,
}


def sure(
    prompt: str,
    memory: str,
    pairs: float = 0.0,
    memories: int = 5000,
    identifiers: tuple[str, ...] = (),
) -> float:
    words = tuple(dict.fromkeys(tokenize(prompt)))
    statistics = Statistics(memories, 20.0, tuple(KNOWN.get(word, 0) for word in words))
    return confidence(
        read_prompt(prompt, identifiers, Words(words), statistics), set(tokenize(memory)), pairs
    )


@pytest.mark.parametrize(
    ("prompt", "memory", "fits"),
    [
        ("valkey cluster replica", "The Valkey cluster gets a third replica", True),
        (
            "please look at the valkey cluster replica again",
            "The Valkey cluster gets a third replica",
            True,
        ),
        ("what about valkey?", "Valkey keeps the carts", True),  # all that is asked about
        (
            "do something with valkey",
            "Valkey keeps the carts",
            False,
        ),  # one word may be there by chance
        ("valkey first please, then run it", "Valkey runs first", False),
        ("restart the server", "The server restarts at night", False),
        ("yes do it again", "Yes, do it again", False),
        (
            "valkey and tensorflow training loops",
            "Valkey keeps the carts",
            False,
        ),  # about something else
        (
            "valkey replica for quantum chromodynamics lattices",
            "The Valkey cluster gets a third replica",
            False,
        ),
        ("what is valkey?", "Valkey keeps the carts", True),
        ("how do I use valkey with a server?", "Valkey server", False),  # could be asked anywhere
        ("how do we use valkey with a server?", "Valkey server", True),
        ("", "The Valkey cluster", False),
    ],
)
def test_a_memory_fits_a_prompt_if_its_words_are_there_beyond_chance(
    prompt: str, memory: str, fits: bool
) -> None:
    assert (sure(prompt, memory) >= 0.5) == fits


def test_words_side_by_side_and_more_of_them_make_it_surer() -> None:
    memory = "The Valkey cluster gets a third replica"
    assert (
        sure("valkey cluster", memory)
        < sure("valkey cluster", memory, pairs=1.0)
        < sure("valkey cluster replica", memory, pairs=1.0)
    )


def test_an_identifier_is_enough() -> None:
    memory = "parseTimetableEntry drops the last stop"
    assert (
        sure("parseTimetableEntry", memory, identifiers=("parseTimetableEntry",))
        >= 0.5
        > sure("parseTimetableEntry", memory)
    )
    assert sure("README.md", "README.md is short", identifiers=("README.md",)) < 0.5


def test_unknown_words_say_little_where_little_is_known() -> None:
    prompt, memory = (
        "valkey cluster replica, quantum chromodynamics lattices",
        "The Valkey cluster gets a third replica",
    )
    assert sure(prompt, memory, memories=5000) < 0.5 <= sure(prompt, memory, memories=30)


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("hi", False),
        ("Yes, do it again!", False),
        ("", False),
        ("?!", False),
        ("how do we deploy?", True),
        ("続けて", True),
        ("x" * 5000, True),
    ],
)
def test_a_prompt_of_common_words_alone_is_not_even_looked_up(prompt: str, expected: bool) -> None:
    assert is_telling(prompt) == expected
