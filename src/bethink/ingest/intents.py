"""What one sentence of a conversation is: a decision, a problem, a question … or nothing worth keeping.

A linear classifier over three readings of the sentence: its cue phrases together with those of the lexicon, its
words with rare ones replaced by what sort of word they are, and, where the default embedding model is at hand, its
vector. The weights come from labelled sentences (`data/ideas-train.tsv`) and are made by `bench/ideas.py --train`; with
another model, or with none, cues and words alone decide, under stricter thresholds.

This module sees single sentences. It knows no conversation, no store and no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

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

Embed = Callable[[Sequence[str]], Any]

LABELS = ("decision", "conclusion", "question", "problem", "solution", "todo", "context", "none")
TRAINING = DATA / "ideas-train.tsv"
WEIGHTS = DATA / "ideas.npz"
# The default model was trained to read questions behind this line, and sorts sentences better with it (bench/LOG.md).
PROMPT = "Represent this sentence for searching relevant passages: "
# Tells whether an embedder is the one that the weights were made with: its vector is kept beside them.
PROBE = "We keep the weights of this classifier beside the vector of this sentence."
SAME_MODEL = 0.99  # cosine; the same model on another processor gives .999, another model below .9
LONGEST = 60  # words of a sentence that are looked at
FIRM = 0.7  # strength from which a statement counts as firm
BATCH = 512  # sentences judged at once
EMBEDDED = 600  # characters of a sentence that are embedded

# What the training told apart: words by what they speak of.
SORTS = ("bad", "remedy", "choice", "need", "find", "talk", "ask", "hedge")


class Intent(NamedTuple):
    kind: str  # one of LABELS
    probability: float
    chances: tuple[float, ...]  # of every label, in the order of LABELS


def judge(texts: Sequence[str], embed: Embed | None = None) -> list[Intent]:
    """What each sentence is. Below the threshold of its likeliest label a sentence is nothing: `none`."""
    return [
        found
        for start in range(0, len(texts), BATCH)
        for found in _judge_batch(texts[start : start + BATCH], embed)
    ]


def _judge_batch(texts: Sequence[str], embed: Embed | None) -> list[Intent]:
    import numpy as np

    weights = _weights()
    vectors = _vectors(texts, embed, weights)
    own = weights["cues"] if vectors is None else weights["both"]
    read = [read_sentence(text) for text in texts]
    dense = np.array([shape for shape, _ in read], dtype=np.float32)
    width, end = dense.shape[1], dense.shape[1] + len(known_grams())
    # Of thousands of runs of words a sentence holds a few: their weights are added up instead of multiplying by noughts.
    scores = np.einsum("ij,jk->ik", dense, own[:width]) + own[-1]
    scores += np.stack([own[width:end][list(places)].sum(axis=0) for _, places in read])
    if vectors is not None:
        scores += vectors @ own[end:-1]
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    least = weights["least_cues" if vectors is None else "least_both"]
    likeliest = chances.argmax(axis=1).tolist()
    enough = (chances >= least).tolist()
    return [
        Intent(LABELS[best] if sure[best] else "none", row[best], tuple(row))
        for best, sure, row in zip(likeliest, enough, chances.tolist(), strict=True)
    ]


def _vectors(
    texts: Sequence[str], embed: Embed | None, weights: dict[str, Matrix]
) -> Matrix | None:
    """Vectors as the weights expect them, or None without an embedder, or with another one than the weights know."""
    if embed is None:
        return None
    import numpy as np

    found = np.asarray(
        embed([PROMPT + PROBE, *(PROMPT + trim_sentence(text) for text in texts)]), dtype=np.float32
    )
    probe = weights["probe"]
    if found.shape != (len(texts) + 1, len(probe)) or not np.isfinite(found).all():
        return None
    if found[0] @ probe <= SAME_MODEL * np.linalg.norm(found[0]) * np.linalg.norm(probe):
        return None
    return centre_vectors(found[1:], weights["centre"])


def centre_vectors(vectors: Matrix, centre: Matrix) -> Matrix:
    """What sets a vector apart from the mean of all, brought to the size of the other features."""
    import numpy as np

    apart = vectors - centre
    length = np.linalg.norm(apart, axis=1, keepdims=True)
    return np.asarray(4 * apart / np.where(length == 0, 1, length), dtype=np.float32)


def digest() -> bytes:
    """Of what the weights were made from; kept beside them, so that a test can tell when they are out of date."""
    import hashlib

    patterns = [[pattern for _, pattern in cue.phrases] for cue in cues()["phrase"]]
    sorts = [sorted(word_set(f"sort_{name}")) for name in SORTS]
    seen = repr((patterns, sorts, LABELS, PROMPT)).encode()
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
    return " ".join(text[:EMBEDDED].split()).rstrip(" .")


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
