"""Text made safe and cut to size, the same way for every embedder.

Nothing here knows a model or its tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_UNSAFE = re.compile(r"[\ud800-\udfff\x00]")
# A sentence ends after its mark and the quotes or brackets that close on it; a line ends at its break; Chinese and Japanese need no space.
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|\n\s*|(?<=[。！？])")


def clean(text: str) -> str:
    """The text without what tokenizers and JSON choke on: NUL becomes a space, half of a surrogate pair U+FFFD."""
    if not _UNSAFE.search(text):
        return text
    return (
        text.encode("utf-16-le", "surrogatepass")
        .decode("utf-16-le", "replace")
        .replace("\x00", " ")
    )


def sentence_ends(text: str) -> list[int]:
    """The places where a new sentence or line begins, ascending; possibly the end of the text among them."""
    return [match.end() for match in _SENTENCE_END.finditer(text)]


def pieces(text: str, limit: int) -> Iterator[str]:
    """Pieces of at most `limit` characters that join up to the whole, cut between sentences, else between words, else anywhere."""
    start = 0
    while len(text) - start > limit:
        end = _last_cut(text, start + limit // 2, start + limit)
        yield text[start:end]
        start = end
    yield text[start:]


def _last_cut(text: str, low: int, high: int) -> int:
    ends = sentence_ends(text[low:high])
    if ends:
        return low + ends[-1]
    space = max(text.rfind(blank, low, high) for blank in " \t\n")
    return space + 1 if space >= 0 else high
