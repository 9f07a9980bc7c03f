"""What changed between two texts, as pieces that were kept, taken out or put in. Pure, and quick for texts of any length."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import NamedTuple

MOST = 2_000  # pieces of a text that are compared with each other
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")


class Piece(NamedTuple):
    change: str  # kept, gone or new
    text: str


def diff(before: str, after: str) -> list[Piece]:
    """Word by word where that is affordable, else line by line, else the one text and then the other."""
    for cut in (_WORDS.findall, lambda text: text.splitlines(keepends=True)):
        old, new = cut(before[: MOST * 50]), cut(after[: MOST * 50])
        if len(old) <= MOST and len(new) <= MOST and len(before) + len(after) < MOST * 100:
            return _compared(old, new)
    return [Piece("gone", before), Piece("new", after)]


def _compared(old: list[str], new: list[str]) -> list[Piece]:
    """What both begin and end with is set aside first: what is left is mostly short, and words that stand everywhere in it would
    otherwise be compared with each other, all with all."""
    begins = _same(old, new)
    ends = _same(old[begins:][::-1], new[begins:][::-1])
    before, after = old[begins : len(old) - ends], new[begins : len(new) - ends]
    pieces = [Piece("kept", "".join(old[:begins]))]
    for change, start, end, begin, stop in SequenceMatcher(None, before, after).get_opcodes():
        if change == "equal":
            pieces.append(Piece("kept", "".join(before[start:end])))
        else:
            pieces += [
                Piece("gone", "".join(before[start:end])),
                Piece("new", "".join(after[begin:stop])),
            ]
    pieces.append(Piece("kept", "".join(old[len(old) - ends :])))
    return [piece for piece in pieces if piece.text]


def _same(one: list[str], other: list[str]) -> int:
    """How many pieces two lists begin with together."""
    return next(
        (at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right),
        min(len(one), len(other)),
    )
