"""Patterns over natural language, each with its examples beside it.

A `Pattern` is declared once, in the module of its purpose, and compiled when it is first used, so that importing a module costs
nothing. Its examples are test data: `tests/test_language_patterns.py` checks every one of them, and `tests/test_bounded_time.py` checks
that every pattern takes time in proportion to the text.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache


@cache
def compile_pattern(source: str, flags: int = re.MULTILINE) -> re.Pattern[str]:
    """Compile a regular expression once, when it is first needed."""
    return re.compile(source, flags)


def fold_case(text: str) -> str:
    """Return a text in small letters with straight apostrophes. Every character keeps its place."""
    folded = text.lower()
    if len(folded) != len(text):  # a capital such as "İ" has two small letters
        folded = "".join(small if len(small := one.lower()) == 1 else one for one in text)
    return folded.replace("’", "'")


class Pattern:
    """A regular expression over natural language, compiled when it is first used.

    By default it is looked for anywhere in a text, and sees the text in small letters with straight apostrophes. With `start` it has
    to match where the text begins; with `fold=False` it sees the text as it is. A large pattern may name `words`, one of which is in
    every text that it matches: for any other text it is not even compiled.
    """

    __slots__ = ("flags", "fold", "matches", "name", "rejects", "source", "start", "words")

    def __init__(
        self,
        name: str,
        source: str,
        *,
        matches: tuple[str, ...],
        rejects: tuple[str, ...] = (),
        start: bool = False,
        fold: bool = True,
        flags: int = re.MULTILINE,
        words: tuple[str, ...] = (),
    ) -> None:
        self.name, self.source, self.flags = name, source, flags
        self.matches, self.rejects = matches, rejects
        self.start, self.fold, self.words = start, fold, words

    def __repr__(self) -> str:
        return f"Pattern({self.name!r})"

    @property
    def compiled(self) -> re.Pattern[str]:
        return compile_pattern(self.source, self.flags)

    def find(self, text: str) -> re.Match[str] | None:
        """Return the first match: its positions are those of the text, its words are folded."""
        text = fold_case(text) if self.fold else text
        if self.words and not any(word in text for word in self.words):
            return None
        return self.compiled.match(text) if self.start else self.compiled.search(text)

    def holds(self, text: str) -> bool:
        """Return True if the pattern matches."""
        return self.find(text) is not None

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Return every match, one after the other."""
        return self.compiled.finditer(fold_case(text) if self.fold else text)

    def sub(self, replacement: str | Callable[[re.Match[str]], str], text: str) -> str:
        """Replace every match in a text that keeps its capitals: for patterns with `fold=False`."""
        return self.compiled.sub(replacement, text)
