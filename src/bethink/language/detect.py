"""The language of a text, by its script and its small words.

A rough answer, fast enough for every write and every question: it decides which embedding model reads a text, and whether the
English-only judge does. Scripts other than Latin decide by their letters. In Latin script the small words count, and letters that
English does not have. Code, paths and names say nothing, so a text of nothing else counts as English.
"""

import re
from functools import cache, lru_cache
from typing import NamedTuple

from bethink.language.words import COMMON_WORDS, STOP_WORDS, read_lists

ENGLISH = "en"
OTHER = "other"  # a language that this module has no name for
SAMPLE_CHARACTERS = 2_000  # beginning of a text by which its language is judged
# Share of letters beyond Latin from which they decide: a Japanese note may be half English names. By hand.
SCRIPT_SHARE = 0.2
# A text is English unless the evidence for another language is at least this, and exceeds that for English. A word with a letter that
# English lacks counts less than a small word: "naïve", "São Paulo" (bench/LOG.md, 2026-11-18).
LEAST_EVIDENCE, LETTER_EVIDENCE = 1.5, 0.75
SHORT_WORDS, SHORT_EVIDENCE = 8, 0.75  # a short text without any English small word needs no more
# A text is plainly in another language with this many different small words of it, and with this share of small words. 17 of 25
# English repositories have output or code that looks foreign, and none that does plainly; 48 to 60 of 60 notes in four languages do.
PLAIN_WORDS, PLAIN_SHARE = 2, 0.25
# Ranges of letters, and the language that writes them. Han alone is Chinese; a little kana makes it Japanese.
_SCRIPTS = (
    ("\u0370", "\u03ff", OTHER),  # Greek
    ("\u0400", "\u052f", "ru"),
    ("\u0530", "\u058f", OTHER),  # Armenian
    ("\u0590", "\u05ff", OTHER),  # Hebrew
    ("\u0600", "\u06ff", "ar"),
    ("\u0900", "\u0dff", OTHER),  # scripts of India
    ("\u0e00", "\u0e7f", "th"),
    ("\u0e80", "\u10ff", OTHER),
    ("\u1100", "\u11ff", "ko"),
    ("\u1780", "\u17ff", OTHER),
    ("\u3040", "\u30ff", "ja"),
    ("\u3130", "\u318f", "ko"),
    ("\u3400", "\u4dbf", "zh"),
    ("\u4e00", "\u9fff", "zh"),
    ("\uac00", "\ud7af", "ko"),
)
# Spans that say nothing about the language around them.
_CODE = r"```.*?(?:```|$)|`[^`\n]{1,200}`|\S{0,200}(?:://|[/\\_=<>{}()\[\]])\S{0,200}"
_FOREIGN_MARKS = frozenset("¿¡ßẞ")
_ELISIONS = ("l'", "d'", "n'", "j'", "c'", "qu'", "s'")  # of French
_WORD = r"(?<!\w)[^\W\d_]+(?:['’-][^\W\d_]+)*(?!\w)"


@cache
def _compile(pattern: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(pattern, flags)


class SmallWords(NamedTuple):
    """Small words of one language, and those that English has too."""

    own: frozenset[str]
    shared: frozenset[str]


@cache
def _read_small_words() -> dict[str, SmallWords]:
    ours = STOP_WORDS | COMMON_WORDS
    found = read_lists("languages.txt")
    return {name: SmallWords(listed - ours, listed & ours) for name, listed in found.items()}


@cache
def list_small_words() -> frozenset[str]:
    """Return the small words of all languages but English."""
    return frozenset().union(*(words.own for words in _read_small_words().values()))


def find_language(text: str) -> str:
    """Return the code of a text's language (`en`, `de`, `zh` …), or `other`."""
    return _find_language(text[:SAMPLE_CHARACTERS])


@lru_cache(maxsize=1_024)
def _find_language(text: str) -> str:
    if text.isascii():
        foreign = list_small_words()
        words = _find_words(text)
        if not any(word in foreign for word in words):
            return ENGLISH
        return _weigh_words(words)
    marks = not _FOREIGN_MARKS.isdisjoint(text)
    return _find_by_script(text) or _weigh_words(_find_words(text), marks)


def is_english(text: str) -> bool:
    """Return True unless the script or the small words of a text belong to another language."""
    return find_language(text) == ENGLISH


def is_plainly_foreign(text: str) -> bool:
    """Return True for a sentence in another language.

    Code, output and an exclamation such as "See ya!" only look like one.
    """
    language = find_language(text)
    if language == ENGLISH:
        return False
    text = text[:SAMPLE_CHARACTERS]
    if not text.isascii() and _find_by_script(text):
        return True
    own, shared = _read_small_words().get(language, SmallWords(frozenset(), frozenset()))
    words = _find_words(text)
    small = sum(word in own or word in shared for word in words)
    telling = {word for word in words if word in own and len(word) > 1}
    return len(telling) >= PLAIN_WORDS and small >= PLAIN_SHARE * len(words)


def _find_words(text: str) -> list[str]:
    if "`" in text or "/" in text or "_" in text or "(" in text or "=" in text:
        text = _compile(_CODE, re.DOTALL).sub(" ", text)
    words = _compile(_WORD).findall(text.replace("’", "'"))
    # In mixed case, "AI" and "OS" are names, not Italian and Portuguese.
    if not text.isupper():
        words = [word for word in words if len(word) == 1 or not word.isupper()]
    return [word.lower() for word in words]


def _find_by_script(text: str) -> str:
    """Return the language of the letters beyond Latin if they are many, else ""."""
    counts: dict[str, int] = {}
    letters = 0
    for letter in text:
        if not letter.isalpha():
            continue
        letters += 1
        if letter >= "\u0370":
            name = next((name for low, high, name in _SCRIPTS if low <= letter <= high), "")
            if name:
                counts[name] = counts.get(name, 0) + 1
    # A character of these scripts says as much as two or three Latin letters.
    if not counts or sum(counts.values()) < SCRIPT_SHARE * letters:
        return ""
    if "ja" in counts and counts["ja"] * 8 >= counts.get("zh", 0):
        counts["ja"] += counts.pop("zh", 0)
    return max(counts, key=counts.__getitem__)


def _weigh_words(words: list[str], foreign_marks: bool = False) -> str:
    """Return the language of words in Latin letters."""
    small, foreign = _read_small_words(), list_small_words()
    # A single letter is a variable or a label where no longer word of the language is with it.
    scores = {
        name: float(len(found)) if any(len(word) > 1 for word in found) else 0.0
        for name, one in small.items()
        for found in ([word for word in words if word in one.own],)
    }
    scores["fr"] += sum(word.startswith(_ELISIONS) for word in words)
    best = max(
        scores, key=lambda name: (scores[name], sum(word in small[name].shared for word in words))
    )
    marked = sum(not word.isascii() and word not in foreign for word in words)
    evidence = scores[best] + LETTER_EVIDENCE * marked + LEAST_EVIDENCE * foreign_marks
    # A word of both languages speaks for neither: "a", "do" in Portuguese, "in", "was" in German.
    likely = [
        small[name].shared for name, score in scores.items() if score and score == scores[best]
    ]
    english = sum(
        word in STOP_WORDS and not any(word in shared for shared in likely) for word in words
    )
    least = SHORT_EVIDENCE if not english and len(words) <= SHORT_WORDS else LEAST_EVIDENCE
    if evidence < least or evidence <= english:
        return ENGLISH
    return best if scores[best] else OTHER
