"""What changed between two texts: right for small ones, quick for all."""

from __future__ import annotations

import random
import time

import pytest
from case_tables import cases

from bethink.surface.web.render import diff


def test_small_changes_are_told_word_by_word():
    for before, after, pieces in cases("web-diffs-small-changes-are-told-word"):
        assert [tuple(piece) for piece in diff(before, after)] == pieces, before


def test_both_texts_can_always_be_put_together_again():
    chance = random.Random(7)
    words = ["a", "b", " ", "\n", "é", "<b>", ".", "long" * 30]
    for _ in range(200):
        before, after = ("".join(chance.choices(words, k=chance.randrange(60))) for _ in range(2))
        found = diff(before, after)
        assert "".join(piece.text for piece in found if piece.change != "new") == before
        assert "".join(piece.text for piece in found if piece.change != "gone") == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("word " * 1000, "word " * 999 + "other"),
        ("a b " * 500, "b a " * 500),
        ("x " * 990 + "y", "y" + " x" * 990),
        ("line\n" * 100_000, "line\n" * 99_999 + "last\n"),
        ("x" * 1_000_000, "y" * 1_000_000),
    ],
)
def test_no_two_texts_take_long(before, after):
    started = time.process_time()
    found = diff(before, after)
    assert time.process_time() - started < 2
    assert "".join(piece.text for piece in found if piece.change != "gone") == after
