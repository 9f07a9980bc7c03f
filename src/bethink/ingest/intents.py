"""What one sentence of a conversation is: a decision, a problem, a question … or nothing worth keeping.

For conversations that no judge reads. A linear classifier over two readings of the sentence: its cue phrases together with
those of the lexicon, and its words with rare ones replaced by what sort of word they are. The weights come from labelled
sentences (`data/ideas-train.tsv`) and are made by `bench/ideas.py --train`.

This module sees single sentences. It knows no conversation, no store and no clock.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from bethink.ingest.lexicon import (
    DATA,
    FILLER,
    GREETING,
    compile_pattern,
    cue_kinds,
    cue_scores,
    cues,
    firmness,
    fold_case,
    word_set,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

LABELS = ("decision", "conclusion", "question", "problem", "solution", "todo", "context", "none")
TRAINING = DATA / "ideas-train.tsv"
WEIGHTS = DATA / "ideas.npz"
LONGEST = 60  # words of a sentence that are looked at
FIRM = 0.7  # strength from which a statement counts as firm
BATCH = 512  # sentences judged at once
READ = 600  # characters of a sentence that are looked at

# What the training told apart: words by what they speak of.
SORTS = ("bad", "remedy", "choice", "need", "find", "talk", "ask", "hedge")


class Intent(NamedTuple):
    kind: str  # one of LABELS
    probability: float
    chances: tuple[float, ...]  # of every label, in the order of LABELS


def judge(texts: Sequence[str]) -> list[Intent]:
    """What each sentence is. Below the threshold of its likeliest label a sentence is nothing: `none`."""
    return [
        found
        for start in range(0, len(texts), BATCH)
        for found in _judge_batch(texts[start : start + BATCH])
    ]


def _judge_batch(texts: Sequence[str]) -> list[Intent]:
    import numpy as np

    weights = _weights()
    own = weights["cues"]
    read = [read_sentence(text) for text in texts]
    dense = np.array([shape for shape, _ in read], dtype=np.float32)
    width, end = dense.shape[1], dense.shape[1] + len(known_grams())
    # Of thousands of runs of words a sentence holds a few: their weights are added up instead of multiplying by noughts.
    scores = np.einsum("ij,jk->ik", dense, own[:width]) + own[-1]
    scores += np.stack([own[width:end][list(places)].sum(axis=0) for _, places in read])
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    least = weights["least_cues"]
    likeliest = chances.argmax(axis=1).tolist()
    enough = (chances >= least).tolist()
    return [
        Intent(LABELS[best] if sure[best] else "none", row[best], tuple(row))
        for best, sure, row in zip(likeliest, enough, chances.tolist(), strict=True)
    ]


def digest() -> bytes:
    """Of what the weights were made from; kept beside them, so that a test can tell when they are out of date."""
    import hashlib

    patterns = [[pattern for _, pattern in cue.phrases] for cue in cues()["phrase"]]
    sorts = [sorted(word_set(f"sort_{name}")) for name in SORTS]
    seen = repr((patterns, sorts, LABELS)).encode()
    return hashlib.sha256(TRAINING.read_bytes() + seen).digest()


@cache
def _weights() -> dict[str, Matrix]:
    import numpy as np

    with np.load(WEIGHTS, allow_pickle=False) as stored:
        return {
            name: stored[name].astype(np.float32)
            for name in stored.files
            if name not in ("grams", "digest")
        }


@cache
def known_grams() -> dict[str, int]:
    """The runs of words that have a weight, and where it stands."""
    import numpy as np

    with np.load(WEIGHTS, allow_pickle=False) as stored:
        return {
            gram: at
            for at, gram in enumerate(stored["grams"].tobytes().decode("utf-8").split("\n"))
        }


def trim_sentence(text: str) -> str:
    """The sentence without what only its writer's habits put there: white space, the full stop."""
    return " ".join(text[:READ].split()).rstrip(" .")


def read_sentence(text: str) -> tuple[list[float], list[int]]:
    """The cues and the shape of a sentence, and which of the known runs of words stand in it."""
    known = known_grams()
    words = tokens(text)
    found = grams(words, {word for word in words if word in known})
    return features(text, words), [known[gram] for gram in found if gram in known]


def features(text: str, words: Sequence[str]) -> list[float]:
    """Cue phrases and shape of a sentence with these words: a few dozen numbers between 0 and about 1.5."""
    said = _mask_sentence(text)
    scores = cue_scores(said)
    sorts, size = list(map(sort_of, words)), len(words)
    return [
        *(float(cue.first_place(said, 0) is not None) for cue in cues()["phrase"]),
        *(scores.get(kind, 0.0) / 4 for kind in cue_kinds()),
        *(min(sorts.count(name), 3) / 2 for name in SORTS),
        *(float(size <= 2), float(size <= 4), float(size <= 7), float(size > 20), float(size > 30)),
        float(bool(compile_pattern(FILLER).match(said))),
        float(bool(compile_pattern(GREETING).match(said))),
        float("code" in words),
        2 * (0.8 - firmness(said, 0.8)),
    ]


@lru_cache(maxsize=1 << 10)
def _mask_sentence(text: str) -> str:
    """The sentence as it is looked at. Judging, its words and its strength all ask for it."""
    return _mask_code(fold_case(trim_sentence(text)))


def _mask_code(text: str) -> str:
    """Without what is quoted or code: `raise Error("decided")` decides nothing."""
    text = compile_pattern(r"`[^`\n]{1,200}`").sub(" code ", text)
    text = compile_pattern(r"[\"“](?=\S)([^\"“”\n]{3,200})[\"”]").sub(" quoted ", text)
    # From the beginning of a word only: it would otherwise be tried from each of its letters.
    return compile_pattern(r"(?<!\S)\S*\w[_/\\.]\w\S*").sub(" code ", text)


def tokens(text: str) -> list[str]:
    pattern = r"[^\W\d_]+(?:n't|'(?:s|t|ll|re|ve|d|m)\b)?|\d+|[?!:;,%()\"]"
    found: list[str] = compile_pattern(pattern).findall(_mask_sentence(text))
    return found[:LONGEST]


def grams(words: Sequence[str], known: Collection[str]) -> set[str]:
    """Runs of one to three words. A word that is not known stands for its sort, or for its ending."""
    run = ["^", *(word if word in known else _shape(word) for word in words), "$"]
    pairs = [f"{one} {other}" for one, other in pairwise(run)]
    return {*run, *pairs, *(f"{pair} {word}" for pair, word in zip(pairs, run[2:], strict=False))}


@lru_cache(maxsize=1 << 13)
def _shape(word: str) -> str:
    if word.isdigit():
        return "0"
    if name := sort_of(word):
        return "#" + name
    return next(
        (
            "_" + ending
            for ending in ("ing", "ed", "ly", "s")
            if word.endswith(ending) and len(word) > len(ending) + 2
        ),
        "_",
    )


@lru_cache(maxsize=1 << 13)
def sort_of(word: str) -> str:
    """What a word speaks of, or nothing. Of several stems that fit the longest counts."""
    whole, stems = _sorts()
    if word in whole:
        return whole[word]
    return next(
        (stems[word[:size]] for size in range(len(word), 1, -1) if word[:size] in stems), ""
    )


@cache
def _sorts() -> tuple[dict[str, str], dict[str, str]]:
    listed = [(word, name) for name in SORTS for word in word_set(f"sort_{name}")]
    whole = {word: name for word, name in reversed(listed) if not word.endswith("*")}
    return whole, {word[:-1]: name for word, name in reversed(listed) if word.endswith("*")}


def _tentative(said: str) -> float:
    """What makes a statement tentative beyond the hedges."""
    return sum(cue.weight for cue in cues()["tentative"] if cue.first_place(said, 0) is not None)


def strength(text: str) -> float:
    """How certain the speaker sounds: 0 is a guess, 1 is settled."""
    said = _mask_sentence(text)
    value = firmness(said, 0.8) - _tentative(said)
    return min(max(value, 0.0), 1.0)
