"""Text → the numbers of its tokens, as a model was trained on them.

BERT's uncased WordPiece, which the default model, the judge and most small models use, is done here. It gives the very ids of the
package `tokenizers` on any text, and takes a fifth of its time, because a word that was cut once is remembered. Every other kind of
tokenizer.json is read by that package, which the extra `models` brings.
"""

from __future__ import annotations

import json
import threading
import unicodedata
from bisect import bisect_right
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from bethink.errors import EmbeddingError

WORDS_REMEMBERED = 20_000
SPECIAL_PURPOSE = 0x30000  # characters from here on are not worth remembering
# How a tokenizer.json says that it is of the kind that is done here. Accents go where letters are made small.
UNCASED = {
    "type": "BertNormalizer",
    "clean_text": True,
    "handle_chinese_chars": True,
    "strip_accents": None,
    "lowercase": True,
}
BY_SPACES_AND_MARKS = {"type": "BertPreTokenizer"}


class Tokenizer(Protocol):
    opening: tuple[int, ...]
    """The special tokens that stand before every text, and after it."""
    closing: tuple[int, ...]

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, without the special ones. "[SEP]" in somebody's text is text."""
        ...


_opening = threading.Lock()


def open_tokenizer(file: Path) -> Tokenizer:
    """The tokenizer of a file, without limits. Models that split texts in the same way share one."""
    text = file.read_text("utf-8")
    with _opening:
        return _read_tokenizer(text)


@lru_cache(maxsize=4)
def _read_tokenizer(text: str) -> Tokenizer:
    settings = json.loads(text)
    return WordPiece(settings) if _is_uncased(settings) else LibraryTokenizer(text)


def _is_uncased(settings: Mapping[str, Any]) -> bool:
    return (
        settings.get("normalizer") == UNCASED
        and settings.get("pre_tokenizer") == BY_SPACES_AND_MARKS
        and settings["model"].get("type") == "WordPiece"
        and settings["post_processor"]["type"] == "TemplateProcessing"
        and all(token["special"] for token in settings["added_tokens"])
    )


class WordPiece:
    """Words of letters, single marks and single Chinese characters, each as the fewest pieces of the vocabulary that make it up from
    the left; a word that no pieces make up, or that is too long, is one unknown token."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        model, frame = settings["model"], settings["post_processor"]
        self._pieces: dict[str, int] = model["vocab"]
        self._inner: str = model["continuing_subword_prefix"]
        self._unknown = (self._pieces[model["unk_token"]],)
        self._longest_word: int = model["max_input_chars_per_word"]
        self._longest_piece = max(map(len, self._pieces))
        self._characters = Characters()
        self._cut = lru_cache(WORDS_REMEMBERED)(self._cut_word)
        around: list[list[int]] = [[], []]
        for part in frame["single"]:
            if "Sequence" in part:
                around.reverse()
            else:
                around[0] += frame["special_tokens"][part["SpecialToken"]["id"]]["ids"]
        self.closing, self.opening = map(tuple, around)

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        for word in text.translate(self._characters).split():
            ids += self._cut(word)
        return ids

    def _cut_word(self, word: str) -> tuple[int, ...]:
        if len(word) > self._longest_word:
            return self._unknown
        found: list[int] = []
        start, prefix = 0, ""
        while start < len(word):
            for end in range(min(len(word), start + self._longest_piece), start, -1):
                piece = self._pieces.get(prefix + word[start:end])
                if piece is not None:
                    break
            else:
                return self._unknown
            found.append(piece)
            start, prefix = end, self._inner
        return tuple(found)


class Characters(dict[int, str]):
    """What becomes of each character, worked out when it is first seen: small and without accents; marks between spaces."""

    def __init__(self) -> None:
        self._starts, self._classes = _read_classes()

    def __missing__(self, code: int) -> str:
        made = ""
        for part in unicodedata.normalize("NFD", chr(code)):
            found = self._classes[bisect_right(self._starts, ord(part)) - 1]
            if found != "removed":
                made += {"space": " ", "alone": f" {part} "}.get(found, part.lower())
        if code < SPECIAL_PURPOSE:
            self[code] = made
        return made


@lru_cache(maxsize=1)
def _read_classes() -> tuple[list[int], list[str]]:
    """Where each run of characters of one class begins, and the class: "" for letters, which are most."""
    begins = {0: ""}
    for line in (Path(__file__).parent / "characters.txt").read_text("ascii").splitlines():
        name, _, runs = line.partition(": ")
        for run in runs.split() if not name.startswith("#") else ():
            first, _, last = run.partition("-")
            begins[int(first, 16)] = name
            begins.setdefault(int(last or first, 16) + 1, "")
    starts = sorted(begins)
    return starts, [begins[start] for start in starts]


class LibraryTokenizer:
    """Any other kind, read by the package `tokenizers`."""

    def __init__(self, text: str) -> None:
        try:
            import tokenizers
        except ImportError:
            raise EmbeddingError(
                "This model splits texts in a way that needs the package tokenizers, which is not installed.",
                "Run `pip install 'bethink[models]'`.",
            ) from None
        self._tokenizer = tokenizers.Tokenizer.from_str(text)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True
        sample = self._tokenizer.encode("a")
        special = sample.special_tokens_mask
        first, behind = special.index(0), special[::-1].index(0)
        self.opening = tuple(sample.ids[:first])
        self.closing = tuple(sample.ids[len(special) - behind :])

    def encode(self, text: str) -> list[int]:
        # A space at the end would be a token of its own where a token begins with the space before it.
        found: list[int] = self._tokenizer.encode(text.strip(), add_special_tokens=False).ids
        return found
