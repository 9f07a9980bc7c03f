"""The judge: a small trained model that compares texts. It knows no store, memory or threshold.

It answers four questions: how a new text relates to an old one (`relate`), what a statement of a conversation is in its
context (`read`), whether a memory applies to a prompt (`apply`), and how well a passage answers a question (`fit`).
Where the settings rule it out (`embed.compares_statements`), wording alone decides.

It is a small cross-encoder, int8 ONNX, that runs on the CPU; `bench/judge` trains it. It reads
`[CLS] one text [SEP] other text [SEP]`: first the word embeddings (`words.onnx`), then either six layers for conversations and
passages (`reader.onnx`) or twelve others for `relate` and `apply` (`judge.onnx`). There are three files because a session
always runs its whole graph. Each pair runs alone because an int8 model scales its activations over the whole batch: only
then does an answer depend on its pair and nothing else.

Every write imports this file, so NumPy and the model are loaded with the first pair.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bethink.config import data_directory
from bethink.embed import borrowed
from bethink.embed.base import open_session, open_tokenizer
from bethink.errors import JudgeError

if TYPE_CHECKING:
    from concurrent.futures import Executor

RELATED = ("replaces", "same", "refines", "contradicts", "answers", "completes", "unrelated")
# Kinds of a statement of a conversation.
STATEMENT_KINDS = (
    *("decision", "preference", "gotcha", "fact", "problem", "solution", "pattern"),
    *("question", "todo", "none"),
)
_TOKENS = 128  # of each text, as in training; the rest of a longer one is not read
CHARACTERS = 2000  # that are tokenised to find them
CLS, SEP = 101, 102  # by definition
DATA = Path(__file__).parent / "data"
WORDS_FILE, READER_FILE, JUDGE_FILE = "words.onnx", "reader.onnx", "judge.onnx"
_DEEP = {"relation", "applies"}  # heads behind the twelve layers
TURNED = "snowflake-arctic-embed-s@"  # the model whose vectors of prompts `prompts.npy` turns
# What cannot be, by (whether the old text asks, whether the new one does): a statement answers a question but does not
# repeat or replace it, and a question changes nothing that was stated.
IMPOSSIBLE = {
    (True, False): ("same", "replaces", "contradicts"),
    (False, True): ("same", "replaces", "answers", "completes"),
}


class Judgement(NamedTuple):
    relation: str  # one of RELATED, the most probable
    probability: float
    probabilities: Mapping[str, float]


class StatementReading(NamedTuple):
    """The reading of a statement in its context, as probabilities."""

    kinds: Mapping[str, float]  # of KINDS
    worth: float  # that it matters in a month
    open: float  # that what it asks, wants or complains of is still open when the conversation ends


Pairs = Sequence[tuple[str, str]]


class Judge:
    """Judge that loads its model on first use. One session serves any number of threads."""

    remote = False

    def __init__(self, threads: int = 0) -> None:
        self._threads = threads or os.cpu_count() or 1
        self._lock = threading.Lock()
        self._loaded: dict[str, Any] = {}

    def prepare(self) -> None:
        """Load the model, so that the first pair does not wait for it."""
        if borrowed.is_lent():
            return
        self._load(WORDS_FILE)
        self._load(READER_FILE)

    def relate(self, pairs: Pairs) -> list[Judgement]:
        """Return how each new text, the second of its pair, relates to the old one, seen alone."""
        return [
            read_logits(logits, IMPOSSIBLE.get((asks(old), asks(new)), ()))
            for (old, new), (logits,) in zip(pairs, self._ask(pairs, ("relation",)), strict=True)
        ]

    def read(self, pairs: Pairs) -> list[StatementReading]:
        """Return the reading of each statement, the second of its pair, given its surroundings."""
        return [
            StatementReading(
                dict(zip(STATEMENT_KINDS, _shares(kinds).tolist(), strict=True)),
                _chance(worth[0]),
                _chance(still[0]),
            )
            for kinds, worth, still in self._ask(pairs, ("kind", "worth", "open"))
        ]

    def apply(self, pairs: Pairs) -> list[float]:
        """Return the probability that each memory, the second of its pair, is worth mentioning at that prompt."""
        return [_chance(logit[0]) for (logit,) in self._ask(pairs, ("applies",))]

    def fit(self, pairs: Pairs) -> list[float]:
        """Score how well each passage, the second of its pair, answers the question. Scores only compare."""
        return [float(logit[0]) for (logit,) in self._ask(pairs, ("fits",))]

    def lend(self, pairs: Pairs, heads: Sequence[str]) -> list[list[list[float]]]:
        """Return the logits of some heads for each pair, for another process."""
        return [[part.tolist() for part in parts] for parts in self._ask(pairs, heads)]

    def _ask(self, pairs: Pairs, heads: Sequence[str]) -> list[Any]:
        try:
            return self._run(pairs, heads) if pairs else []
        except Exception as error:  # onnxruntime's errors share no base class
            raise JudgeError(
                f"The judge cannot be asked: {error}", "Install Bethink again."
            ) from error

    def _run(self, pairs: Pairs, heads: Sequence[str]) -> list[Any]:
        """Return the logits of some heads for each pair. All heads belong to the same file."""
        import numpy as np

        if not self._loaded and borrowed.is_lent():
            lent = borrowed.borrow(borrowed.JUDGE, "", " ".join(heads), list(pairs))
            if lent is not None:
                return [[np.array(part, np.float32) for part in parts] for parts in lent]
        words, layers = (
            self._load(WORDS_FILE),
            self._load(JUDGE_FILE if _DEEP.issuperset(heads) else READER_FILE),
        )
        tokens = lru_cache(maxsize=None)(
            lambda text: self._tokenizer.encode(text[:CHARACTERS])[:_TOKENS]
        )

        def ask(pair: tuple[str, str]) -> Any:
            one, other = (tokens(text) for text in pair)
            ids = [CLS, *one, SEP, *other, SEP]
            sides = [0] * (len(one) + 2) + [1] * (len(other) + 1)
            inputs = {"ids": np.array([ids], np.int64), "sides": np.array([sides], np.int64)}
            (read,) = words.run(["words"], inputs)
            present = np.ones_like(inputs["ids"])
            found = layers.run(list(heads), {"words": read, "present": present})
            return [part[0] for part in found]

        return [ask(pairs[0])] if len(pairs) == 1 else list(self._workers.map(ask, pairs))

    @cached_property
    def _workers(self) -> Executor:
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(self._threads, thread_name_prefix="bethink-judge")

    @cached_property
    def _tokenizer(self) -> Any:
        return open_tokenizer(DATA / "tokenizer.json")

    def _load(self, model: str) -> Any:
        with self._lock:
            if model not in self._loaded:
                self._loaded[model] = open_session(DATA / model, data_directory())
            return self._loaded[model]


def describe_place(
    speaker: str,
    heading: str = "",
    above: str = "",
    below: str = "",
    asked: str = "",
    reply: str = "",
) -> str:
    """Return the surroundings of a statement in the form that `read` was trained on."""
    return f"{speaker}. {heading}: {above} | {below} | {asked} | {reply}"


def turn_prompt(vector: object, model: str) -> Any:
    """Rotate the vector of a prompt towards memories that apply to it without resembling it.

    A vector of any model but the packaged one is returned unchanged.
    """
    if not model.startswith(TURNED):
        return vector
    import numpy as np

    turned = vector @ np.load(DATA / "prompts.npy").astype(np.float32)
    return turned / np.linalg.norm(turned)


def asks(text: str) -> bool:
    """Return True if a text has the form of a question."""
    return text.rstrip().endswith(("?", "？"))


def read_logits(logits: object, impossible: Sequence[str]) -> Judgement:
    shares = _shares(logits)  # calibrated as they are: bench/LOG.md
    shares[[RELATED.index(name) for name in impossible]] = 0
    return _judgement(dict(zip(RELATED, (shares / shares.sum()).tolist(), strict=True)))


def _judgement(shares: Mapping[str, float]) -> Judgement:
    best = max(shares, key=shares.__getitem__)
    return Judgement(best, shares[best], shares)


def _shares(logits: Any) -> Any:
    import numpy as np

    raised = np.exp(logits - logits.max())
    return raised / raised.sum()


def _chance(logit: float) -> float:
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, float(logit)))))
