"""The one embedding model that every system gets, where one can be given to it: snowflake-arctic-embed-s, int8, on the processor.

`SUITE_MODEL` names the folder with model.onnx and tokenizer.json. `SUITE_VECTORS` names a file in which vectors are remembered, so that a
text is embedded once and not once per system; a run that measures cost leaves it out. Each text is a batch of its own, as an int8 model
wants it, and is cut to 512 tokens.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

QUERY = "Represent this sentence for searching relevant passages: "
DIMENSIONS, LONGEST = 384, 512


class Embedder:
    def __init__(self) -> None:
        self._folder = Path(os.environ["SUITE_MODEL"])
        self._dice = np.random.default_rng(1)
        remembered = os.environ.get("SUITE_VECTORS")
        self._known = (
            sqlite3.connect(remembered, check_same_thread=False, timeout=600)
            if remembered
            else None
        )
        if self._known:
            self._known.execute("PRAGMA synchronous = OFF")  # a lost vector is computed again
            self._known.execute(
                "CREATE TABLE IF NOT EXISTS vectors(key BLOB PRIMARY KEY, vector BLOB)"
            )

    @cached_property
    def _runtime(self) -> tuple[Any, Any]:
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"
        import onnxruntime
        import tokenizers

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        model = str(self._folder / "model.onnx")
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        tokenizer = tokenizers.Tokenizer.from_file(str(self._folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(LONGEST)
        return session, tokenizer

    def documents(self, texts: list[str]) -> list[list[float]]:
        return [self._vector(text).tolist() for text in texts]

    def query(self, text: str) -> list[float]:
        return self._vector(QUERY + text).tolist()

    def _vector(self, text: str) -> np.ndarray:
        if os.environ.get("SUITE_RANDOM_VECTORS"):
            vector = self._dice.standard_normal(DIMENSIONS).astype(np.float32)
            return vector / np.linalg.norm(vector)
        key = hashlib.sha256(text.encode("utf-8", "replace")).digest()
        if self._known:
            row = self._known.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
            if row:
                return np.frombuffer(row[0], np.float32)
        vector = self._compute(text)
        if self._known:
            self._known.execute(
                "INSERT OR IGNORE INTO vectors VALUES(?, ?)", (key, vector.tobytes())
            )
            self._known.commit()
        return vector

    def _compute(self, text: str) -> np.ndarray:
        session, tokenizer = self._runtime
        ids = np.array([tokenizer.encode(text).ids], np.int64)
        feed = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        names = {one.name for one in session.get_inputs()}
        output = session.run(None, {name: value for name, value in feed.items() if name in names})[
            0
        ]
        vector = np.asarray(output[0, 0] if output.ndim == 3 else output[0], np.float32)
        return vector / np.linalg.norm(vector)
