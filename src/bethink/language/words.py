"""Lists of English words that carry no topic, for every layer.

`words.txt` holds the lists. It is read on import: every search, prompt and index needs it.
"""

import re
from pathlib import Path


def _read_words() -> dict[str, frozenset[str]]:
    """Return the lists of `words.txt` by name."""
    text = Path(__file__).with_name("words.txt").read_text("utf-8")
    parts = re.split(r"(?m)^(\w+):$", re.sub(r"(?m)^#.*", "", text))
    return {
        name: frozenset(words.split()) for name, words in zip(parts[1::2], parts[2::2], strict=True)
    }


WORD_LISTS = _read_words()
STOP_WORDS, COMMON_WORDS = WORD_LISTS["stop"], WORD_LISTS["common"]
NON_LATIN_SHARE = 0.3  # share of letters beyond Latin from which a text is not English; by hand
SAMPLE_CHARACTERS = 2_000  # beginning of a text by which its language is judged


def is_english(text: str) -> bool:
    """Return True unless the script or the small words of a text belong to another language."""
    text = text[:SAMPLE_CHARACTERS]
    letters = [letter for letter in text if letter.isalpha()]
    if sum(letter > "\u024f" for letter in letters) > NON_LATIN_SHARE * len(letters):
        return False
    words = text.lower().replace("?", " ").replace(",", " ").split()
    foreign = sum(word in WORD_LISTS["foreign"] for word in words)
    return foreign < 2 or foreign <= sum(word in STOP_WORDS for word in words)
