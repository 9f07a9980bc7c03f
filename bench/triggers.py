"""The words that a cue phrase cannot match without, found out from the pattern itself.

`bench/ideas.py --train` keeps them beside the weights: a phrase is then tried only on sentences that hold one of them.
The parser of `re` is private to Python, which is why this runs here and not in the library.
"""

import re
from collections import Counter
from re import _constants as codes
from re import _parser as parser

MOST = 64  # spellings of one part that are still written out
EDGE = "\1"  # a word begins or ends here
BREAK = "\0"


class Finder:
    """Chooses, where a pattern offers several, the words that occur in the fewest of some sentences."""

    def __init__(self, sentences: list[str]) -> None:
        self.seen = Counter(
            word for sentence in sentences for word in set(re.findall(r"[a-z]+|\d", sentence))
        )

    def triggers(self, pattern: str) -> tuple[str, ...]:
        """Of these every match holds at least one: whole words, written `=word`, letters within a word, or a digit, written `0`.
        Nothing where a pattern needs none of them."""
        found = self._sequence(parser.parse(pattern))
        return tuple(sorted(found)) if found else ()

    def _sequence(self, items) -> set[str] | None:
        """What a sequence needs: the best of what its parts need, and of what neighbouring parts spell together."""
        offers: list[set[str] | None] = []
        run = {""}
        for code, value in items:
            spelled = _spelled(code, value)
            if spelled is not None and len(run) * len(spelled) <= MOST:
                run = {start + end for start in run for end in spelled}
                continue
            # What stands at the seam may go on beyond it, so the pieces there count as letters within a word.
            offers += [self._pieces(run), self._needed(code, value)]
            run = {""}
        return self._best([*offers, self._pieces(run)])

    def _needed(self, code, value) -> set[str] | None:
        if code is codes.SUBPATTERN:
            return self._sequence(value[3])
        if code is codes.BRANCH:
            found = [self._sequence(branch) for branch in value[1]]
            return None if None in found else set().union(*found)
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT) and value[0]:
            return self._sequence(value[2])
        if code is codes.IN and value == [(codes.CATEGORY, codes.CATEGORY_DIGIT)]:
            return {"0"}
        spelled = _spelled(code, value)
        return None if spelled is None else self._pieces(spelled)

    def _pieces(self, spellings: set[str]) -> set[str] | None:
        """Of each spelling the piece that is seen least."""
        found = set()
        for spelling in spellings:
            pieces = []
            for piece in re.finditer(r"[a-z]+", spelling):
                bounded = (
                    piece.start() > 0
                    and piece.end() < len(spelling)
                    and BREAK not in spelling[piece.start() - 1 : piece.end() + 1]
                )
                pieces.append("=" + piece[0] if bounded else piece[0])
            if not pieces:
                return None
            found.add(min(pieces, key=lambda piece: (self._rate({piece}), -len(piece))))
        return found

    def _best(self, offers) -> set[str] | None:
        return min(
            (each for each in offers if each),
            key=lambda each: (self._rate(each), len(each)),
            default=None,
        )

    def _rate(self, triggers: set[str]) -> int:
        def called(word: str) -> bool:
            if word.isdecimal():
                return "0" in triggers
            return any(
                word == each[1:] if each.startswith("=") else each in word for each in triggers
            )

        return sum(count for word, count in self.seen.items() if called(word))


def _spelled(code, value) -> set[str] | None:
    """Every spelling of a part, where there are few."""
    if code is codes.LITERAL:
        return {chr(value)}
    if code is codes.IN and all(kind is codes.LITERAL for kind, _ in value):
        return {chr(each) for _, each in value}
    if code is codes.AT:
        return {EDGE if value in (codes.AT_BOUNDARY, codes.AT_BEGINNING, codes.AT_END) else BREAK}
    if code in (codes.ASSERT, codes.ASSERT_NOT):
        return {BREAK}  # what stands behind it overlaps with what it looks at
    if code is codes.SUBPATTERN:
        return _all(value[3])
    if code is codes.BRANCH:
        found = [_all(branch) for branch in value[1]]
        return None if None in found else _few(set().union(*found))
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT) and tuple(value[:2]) == (0, 1):
        found = _all(value[2])
        return None if found is None else {"", *found}
    return None


def _all(items) -> set[str] | None:
    run: set[str] | None = {""}
    for code, value in items:
        spelled = _spelled(code, value)
        run = (
            None
            if spelled is None or run is None
            else _few({start + end for start in run for end in spelled})
        )
        if run is None:
            return None
    return run


def _few(found: set[str]) -> set[str] | None:
    return found if len(found) <= MOST else None
