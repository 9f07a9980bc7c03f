"""How well the sentences of a conversation are told apart, and the weights for it.

    python bench/ideas.py            measures the packaged weights on the held-out sentences
    python bench/ideas.py --train    makes the weights anew from src/bethink/ingest/data/ideas-train.tsv, then measures

Thresholds are chosen by cross-validation on the training sentences; the held-out ones are only ever measured.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import table, told

from bethink.ingest import intents
from bethink.ingest.intents import LABELS

HELD_OUT = Path(__file__).parent.parent / "tests" / "fixtures" / "ideas-held-out.tsv"
PENALTY = 2e-3  # of L2
STEPS = 80
SEEN = 8  # sentences that a run of words must stand in to get a weight
WORD_SEEN = 5  # and a word, to stand for itself
FOLDS = 10
# Precision that the thresholds aim at in cross-validation, a little above the 0.85 that held-out sentences must show.
AIM = {
    "decision": 0.88,
    "problem": 0.9,
    "solution": 0.91,
    "todo": 0.88,
    "question": 0.92,
    "conclusion": 0.82,
    "context": 0.82,
}


class Row(NamedTuple):
    label: str
    role: str
    firm: bool
    text: str


def rows(path: Path) -> list[Row]:
    found = []
    for line in path.read_text("utf-8").splitlines():
        label, role, firm, text = line.split("\t")
        found.append(Row(label, role, firm == "firm", text))
    return found


def vocabulary(texts: Sequence[str]) -> list[str]:
    """The runs of words that get a weight. A word that stands in it on its own is one that is known."""
    words = [intents.tokens(text) for text in texts]
    known = {
        word
        for word, count in Counter(word for each in words for word in set(each)).items()
        if count >= WORD_SEEN
    }
    seen = Counter(gram for each in words for gram in intents.grams(each, known))
    return sorted(gram for gram, count in seen.items() if count >= SEEN)


def readings(texts: Sequence[str], known: Sequence[str]) -> np.ndarray:
    at = {gram: place for place, gram in enumerate(known)}
    found = np.zeros((len(texts), len(intents.features("", ())) + len(known)), np.float32)
    for row, text in zip(found, texts, strict=True):
        words = intents.tokens(text)
        dense = intents.features(text, words)
        row[: len(dense)] = dense
        for gram in intents.grams(words, {word for word in words if word in at}):
            if gram in at:
                row[len(dense) + at[gram]] = 1
    return found


def fit(features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Multinomial logistic regression by L-BFGS; the last row of the result is the bias, which is not penalised."""
    x = np.hstack([features, np.ones((len(features), 1), np.float32)]).astype(np.float32)
    y = np.eye(len(LABELS), dtype=np.float32)[labels]
    penalty = np.full((x.shape[1], 1), PENALTY, np.float32)
    penalty[-1] = 0

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat.reshape(x.shape[1], -1).astype(np.float32)
        scores = x @ weights
        scores -= scores.max(axis=1, keepdims=True)
        total = np.log(np.exp(scores).sum(axis=1, keepdims=True))
        value = float(
            (total[:, 0] - (scores * y).sum(axis=1)).mean() + 0.5 * (penalty * weights**2).sum()
        )
        return value, (x.T @ ((np.exp(scores - total) - y) / len(x)) + penalty * weights).astype(
            np.float64
        ).ravel()

    return descend(loss, x.shape[1] * y.shape[1]).reshape(x.shape[1], -1)


def descend(loss, size: int) -> np.ndarray:
    at = np.zeros(size)
    value, slope = loss(at)
    moves: list[np.ndarray] = []
    turns: list[np.ndarray] = []
    for _ in range(STEPS):
        way = slope.copy()
        parts = []
        for move, turn in zip(reversed(moves), reversed(turns), strict=True):
            parts.append(move @ way / (move @ turn))
            way -= parts[-1] * turn
        way *= (
            moves[-1] @ turns[-1] / (turns[-1] @ turns[-1])
            if moves
            else 1 / max(1.0, float(np.linalg.norm(slope)))
        )
        for move, turn, part in zip(moves, turns, reversed(parts), strict=True):
            way += move * (part - turn @ way / (move @ turn))
        length = 1.0
        while True:
            new, new_slope = loss(at - length * way)
            if new <= value - 1e-4 * length * (slope @ way) or length < 1e-4:
                break
            length /= 2
        moves, turns = [*moves[-7:], -length * way], [*turns[-7:], new_slope - slope]
        if moves[-1] @ turns[-1] < 1e-12 or value - new < 1e-6:
            return at - length * way
        at, value, slope = at - length * way, new, new_slope
    return at


def chances(features: np.ndarray, weights: np.ndarray) -> np.ndarray:
    scores = features @ weights[:-1] + weights[-1]
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


def crossed(features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Chances of every sentence by weights that have not seen it."""
    fold = np.random.default_rng(7).permutation(len(labels)) % FOLDS
    found = np.zeros((len(labels), len(LABELS)))
    for number in range(FOLDS):
        found[fold == number] = chances(
            features[fold == number], fit(features[fold != number], labels[fold != number])
        )
    return found


def thresholds(found: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """For each label the lowest threshold at which its precision reaches what is aimed at."""
    least = np.zeros(len(LABELS), np.float32)
    best = found.argmax(axis=1)
    for at, label in enumerate(LABELS[:-1]):
        chosen = np.flatnonzero(best == at)
        chosen = chosen[np.argsort(-found[chosen, at], kind="stable")]
        right = np.cumsum(labels[chosen] == at) / np.arange(1, len(chosen) + 1)
        enough = np.flatnonzero(right >= AIM[label])
        least[at] = found[chosen[enough[-1]], at] if len(enough) else 0.95
    return np.maximum(least, 0.3)


def train() -> None:
    given = rows(intents.TRAINING)
    texts, labels = (
        [row.text for row in given],
        np.array([LABELS.index(row.label) for row in given]),
    )
    known = vocabulary(texts)
    cues = readings(texts, known)
    found = crossed(cues, labels)
    stored = {
        "grams": np.frombuffer("\n".join(known).encode(), np.uint8),
        "digest": np.frombuffer(intents.digest(), np.uint8),
        "cues": fit(cues, labels).astype(np.float16),
        "least_cues": thresholds(found, labels),
    }
    right = (found.argmax(axis=1) == labels).mean()
    told(f"{cues.shape[1]} features, accuracy in cross-validation {right:.3f}")
    table(measured(labels, kept(found, stored["least_cues"])))
    np.savez_compressed(intents.WEIGHTS, **stored)
    told(f"{intents.WEIGHTS}: {intents.WEIGHTS.stat().st_size:,} bytes")


def kept(found: np.ndarray, least: np.ndarray) -> np.ndarray:
    best = found.argmax(axis=1)
    return np.where(found[np.arange(len(found)), best] >= least[best], best, len(LABELS) - 1)


def measured(labels: np.ndarray, given: np.ndarray) -> list[list[object]]:
    result: list[list[object]] = [["label", "precision", "recall", "given", "right"]]
    for at, label in enumerate(LABELS):
        right = int(((given == at) & (labels == at)).sum())
        result.append(
            [
                label,
                right / max(1, int((given == at).sum())),
                right / max(1, int((labels == at).sum())),
                int((given == at).sum()),
                right,
            ]
        )
    return result


def confusion(labels: np.ndarray, given: np.ndarray) -> list[list[object]]:
    counts = Counter(zip(labels.tolist(), given.tolist(), strict=True))
    return [
        ["is \\ taken for", *LABELS],
        *(
            [label, *(counts[at, to] for to in range(len(LABELS)))]
            for at, label in enumerate(LABELS)
        ),
    ]


def evaluate(path: Path) -> None:
    given = rows(path)
    labels = np.array([LABELS.index(row.label) for row in given])
    texts = [row.text for row in given]
    found = np.array([LABELS.index(judged.kind) for judged in intents.judge(texts)])
    print(f"{path.name}, {len(given)} sentences")
    table(measured(labels, found))
    table(confusion(labels, found))
    firm = np.array([intents.strength(row.text) >= intents.FIRM for row in given])
    stated = np.array([row.firm for row in given])
    worth = labels != LABELS.index("none")
    print(
        f"firm or tentative: {(firm == stated)[worth].mean():.3f} right; of {int((~stated & worth).sum())} tentative ones {(~firm & ~stated & worth).sum()} found"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--held-out", type=Path, nargs="*", default=[HELD_OUT])
    options = parser.parse_args()
    if options.train:
        train()
    for path in options.held_out:
        evaluate(path)


if __name__ == "__main__":
    sys.exit(main())
