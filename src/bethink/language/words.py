"""Lists of English words that carry no topic, for every layer.

`words.txt` holds the lists. It is read on import: every search, prompt and index needs it.
"""

import re
from pathlib import Path


def read_lists(name: str) -> dict[str, frozenset[str]]:
    """Return the word lists of a file beside this one by their names."""
    text = Path(__file__).with_name(name).read_text("utf-8")
    parts = re.split(r"(?m)^(\w+):$", re.sub(r"(?m)^#.*", "", text))
    return {
        name: frozenset(words.split()) for name, words in zip(parts[1::2], parts[2::2], strict=True)
    }


WORD_LISTS = read_lists("words.txt")
STOP_WORDS, COMMON_WORDS = WORD_LISTS["stop"], WORD_LISTS["common"]
