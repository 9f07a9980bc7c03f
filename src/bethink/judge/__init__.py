"""How a new text relates to an old one, by a small trained model. Nothing here knows a store, a memory or a threshold.

`load` gives the judge that the settings allow, or None where there is none: then the rules of `ingest.reconcile` decide alone.
The model is a small cross-encoder, int8 ONNX, on this machine's processor; `bench/judge` trains it. It reads
`[CLS] old [SEP] new [SEP]` and gives a probability for each relation. Each pair runs alone, because an int8 model measures
its activations over the whole batch: only then does a judgement depend on its pair and nothing else.

Every write imports this file, so NumPy and the model arrive with the first pair.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from bethink.config import Config

RELATED = ("replaces", "same", "refines", "contradicts", "answers", "completes", "unrelated")
TOKENS = 128  # of each text, as in training; the rest of a longer one is not read
CHARACTERS = 2000  # that are tokenised to find them
CLS, SEP = 101, 102
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


class Judge(Protocol):
    def relate(self, pairs: Sequence[tuple[str, str]]) -> list[Judgement]:
        """What each new text, the second of its pair, is to the old one."""
        ...


def load(config: Config) -> Judge | None:
    """The judge, or None where the settings switch it off, or where no model of meaning chooses what it is asked about.
    Its own model is read when it is first asked."""
    if not config.judge or config.embedding in ("none", "hashing"):
        return None
    return TrainedJudge(config.threads)


class TrainedJudge:
    """Loads its model at the first pair. One session serves any number of threads."""

    def __init__(self, threads: int = 0) -> None:
        self._threads = threads or os.cpu_count() or 1
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None

    def relate(self, pairs: Sequence[tuple[str, str]]) -> list[Judgement]:
        if not pairs:
            return []
        from concurrent.futures import ThreadPoolExecutor

        import numpy as np

        tokenizer, session = self._load()
        tokens = lru_cache(maxsize=None)(
            lambda text: tokenizer.encode(text[:CHARACTERS], add_special_tokens=False).ids[:TOKENS]
        )

        def judge(pair: tuple[str, str]) -> Judgement:
            old, new = (tokens(text) for text in pair)
            ids = [CLS, *old, SEP, *new, SEP]
            sides = [0] * (len(old) + 2) + [1] * (len(new) + 1)
            (logits,) = session.run(
                ["relation"],
                {
                    "ids": np.array([ids], np.int64),
                    "sides": np.array([sides], np.int64),
                    "present": np.ones((1, len(ids)), np.int64),
                },
            )
            return read_logits(logits[0], IMPOSSIBLE.get((asks(pair[0]), asks(pair[1])), ()))

        if len(pairs) == 1 or self._threads == 1:
            return [judge(pair) for pair in pairs]
        with ThreadPoolExecutor(min(self._threads, len(pairs))) as workers:
            return list(workers.map(judge, pairs))

    def _load(self) -> tuple[Any, Any]:
        with self._lock:
            if self._loaded is None:
                self._loaded = open_model()
            return self._loaded


def asks(text: str) -> bool:
    """Whether a text is a question by its form."""
    return text.rstrip().endswith(("?", "？"))


def read_logits(logits: Any, impossible: Sequence[str]) -> Judgement:
    import numpy as np

    raised = np.exp(logits - logits.max())  # calibrated as it is: bench/LOG.md
    raised[[RELATED.index(name) for name in impossible]] = 0
    shares = (raised / raised.sum()).tolist()
    best = max(range(len(RELATED)), key=shares.__getitem__)
    return Judgement(RELATED[best], shares[best], dict(zip(RELATED, shares, strict=True)))


def open_model() -> tuple[Any, Any]:
    from importlib.resources import files

    import onnxruntime
    from tokenizers import Tokenizer

    onnxruntime.disable_telemetry_events()
    folder = files("bethink.judge") / "data"
    tokenizer = Tokenizer.from_str((folder / "tokenizer.json").read_text("utf-8"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # pairs run side by side instead
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        (folder / "judge.onnx").read_bytes(), options, providers=["CPUExecutionProvider"]
    )
    return tokenizer, session
