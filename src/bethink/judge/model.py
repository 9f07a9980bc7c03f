"""The trained judge: a small cross-encoder, int8 ONNX, on this machine's processor.

It reads `[CLS] old [SEP] new [SEP]` and gives a probability for each relation. Each pair runs alone, because an int8
model measures its activations over the whole batch: only then does a judgement depend on its pair and nothing else.
`bench/judge` trains it; it knows no store, no memory and no threshold.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np

from bethink.judge import RELATED, Judgement

TOKENS = 128  # of each text, as in training; the rest of a longer one is not read
CHARACTERS = 2000  # that are tokenised to find them
CLS, SEP = 101, 102
# Logits are divided by this: the value at which the 888 pairs held out of training are least surprising (bench/LOG.md).
TEMPERATURE = 1.0
# What cannot be, by (whether the old text asks, whether the new one does): a statement answers a question but does not
# repeat or replace it, and a question changes nothing that was stated.
IMPOSSIBLE = {
    (True, False): ("same", "replaces", "contradicts"),
    (False, True): ("same", "replaces", "answers", "completes"),
}


class TrainedJudge:
    """Loads its model at the first pair. One session serves any number of threads."""

    def __init__(self, threads: int = 0) -> None:
        self._threads = threads or os.cpu_count() or 1
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None

    def relate(self, pairs: Sequence[tuple[str, str]]) -> list[Judgement]:
        if not pairs:
            return []
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
    return text.rstrip().endswith(("?", "？"))


def read_logits(logits: Any, impossible: Sequence[str]) -> Judgement:
    raised = np.exp((logits - logits.max()) / TEMPERATURE)
    raised[[RELATED.index(name) for name in impossible]] = 0
    shares = (raised / raised.sum()).tolist()
    best = max(range(len(RELATED)), key=shares.__getitem__)
    return Judgement(RELATED[best], shares[best], dict(zip(RELATED, shares, strict=True)))


def open_model() -> tuple[Any, Any]:
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
