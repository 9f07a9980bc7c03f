"""Vectors from an ONNX model on this machine.

Every window of text runs as a separate batch. int8 models quantise activations over the whole batch, so only then
does a vector depend on its text alone; and it is as fast (measured 2026-11 on two cores). Several windows run at the same time over one
session, which is safe, uses all cores and leaves Python's lock free.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bethink.config import data_directory
from bethink.embed import borrowed
from bethink.embed.base import (
    WINDOW,
    Matrix,
    Tokenizer,
    Tokens,
    clean,
    open_session,
    open_tokenizer,
    sentence_ends,
)
from bethink.embed.models import (
    MODEL_FILE,
    TOKENIZER_FILE,
    LocalModel,
    identify,
    is_english,
)
from bethink.errors import EmbeddingError

QUERIES_REMEMBERED = 256
TOKEN_OUTPUTS = ("last_hidden_state", "token_embeddings")  # what a vector per token is called
QUERY_CHARACTERS = 20_000  # of a question that are tokenised; a window holds far fewer


class Runtime(NamedTuple):
    """The parts of a model that are loaded on first use."""

    tokenizer: Tokenizer
    session: Any
    inputs: frozenset[str]
    output: str


class LocalEmbedder:
    remote = False

    def __init__(self, model: LocalModel, directory: Path, threads: int = 0) -> None:
        self.model = identify(model, directory)
        self.baseline, self.unrelated = model.baseline, model.unrelated
        self.english_only = is_english(model.name)
        self._settings, self._directory = model, directory
        self._threads = threads or os.cpu_count() or 1
        self._runtime: Runtime | None = None
        self._lock = threading.Lock()
        self.query = lru_cache(maxsize=QUERIES_REMEMBERED)(self._query)

    def documents(self, texts: Sequence[str]) -> list[Matrix]:
        if (found := self._borrow(borrowed.DOCUMENTS, texts)) is not None:
            return found
        if len(texts) == 1 and len(only := list(self.windows(texts[0]))) == 1:
            return [self._run(self._settings.document_prefix, only[0])[np.newaxis]]
        windows = (
            (owner, window) for owner, text in enumerate(texts) for window in self.windows(text)
        )

        def vector(job: tuple[int, Tokens]) -> tuple[int, Matrix]:
            owner, window = job
            return owner, self._run(self._settings.document_prefix, window)

        pool = ThreadPoolExecutor(self._threads, thread_name_prefix="bethink-embed")
        try:
            made = groupby(pool.map(vector, windows), key=lambda row: row[0])
            return [np.stack([row for _, row in rows]) for _, rows in made]
        finally:
            pool.shutdown(cancel_futures=True)  # on Ctrl-C only what runs is waited for

    def _query(self, text: str) -> Matrix:
        if (found := self._borrow(borrowed.QUERY, [text[:QUERY_CHARACTERS]])) is not None:
            vector: Matrix = found[0][0]
            return vector
        prefix = self._settings.query_prefix
        ids = self.load().tokenizer.encode(clean(text).strip()[:QUERY_CHARACTERS])
        vector = self._run(prefix, ids[: self._count_room(prefix)])
        vector.flags.writeable = False  # The cache returns it to other callers.
        return vector

    def _borrow(self, task: str, texts: Sequence[str]) -> list[Matrix] | None:
        """Return the vectors of each text by another process's model, unless this one has its own open."""
        if self._runtime is not None or not borrowed.is_lent():
            return None
        name = f"{self._settings.name} {self.model}"
        found = borrowed.borrow(borrowed.EMBEDDER, name, task, list(texts))
        return found and [np.array(rows, np.float32) for rows in found]

    def windows(self, text: str) -> Iterator[Tokens]:
        """Split the tokens of a text into windows, each ending at the last sentence that fits.

        A window that would be less than a quarter full is filled regardless of sentences. Together, the windows are all tokens.
        """
        tokenizer, text = self.load().tokenizer, clean(text)
        size = min(WINDOW, self._count_room(self._settings.document_prefix))
        ids: Tokens = []
        ends = [0]  # places in `ids` at which a sentence begins
        start = 0
        for end in (*sentence_ends(text), len(text)):
            ids += tokenizer.encode(text[start:end])
            ends.append(len(ids))
            start = end
        start = 0
        while len(ids) - start > size:
            end = ends[bisect_right(ends, start + size) - 1]
            end = end if end > start + size // 4 else start + size
            yield ids[start:end]
            start = end
        yield ids[start:]

    def _count_room(self, prefix: str) -> int:
        """Return the number of tokens that the model accepts beside the prefix."""
        tokenizer = self.load().tokenizer
        beside = (*tokenizer.opening, *tokenizer.encode(prefix), *tokenizer.closing)
        return self._settings.window - len(beside)

    def load(self) -> Runtime:
        with self._lock:
            if self._runtime is None:
                self._runtime = self._open()
            return self._runtime

    def _open(self) -> Runtime:
        try:
            tokenizer = open_tokenizer(self._directory / TOKENIZER_FILE)
            session = open_session(self._directory / MODEL_FILE, data_directory())
        except EmbeddingError:
            raise
        except Exception as error:  # Neither library's errors have a common base class.
            raise EmbeddingError(
                f"The embedding model in {self._directory} cannot be loaded: {error}.",
                "Run `bethink model pull` to fetch it again.",
            ) from error
        inputs, outputs = (
            [node.name for node in nodes] for nodes in (session.get_inputs(), session.get_outputs())
        )
        output = next((name for name in TOKEN_OUTPUTS if name in outputs), outputs[0])
        return Runtime(tokenizer, session, frozenset(inputs), output)

    def _run(self, prefix: str, ids: Sequence[int]) -> Matrix:
        tokenizer, session, inputs, output = self.load()
        sequence = (*tokenizer.opening, *tokenizer.encode(prefix), *ids, *tokenizer.closing)
        tokens = np.array([sequence], dtype=np.int64)
        feed = {"input_ids": tokens, "attention_mask": np.ones_like(tokens)}
        feed["token_type_ids"] = np.zeros_like(tokens)
        feed = {name: value for name, value in feed.items() if name in inputs}
        try:
            (found,) = session.run([output], feed)
        except Exception as error:  # onnxruntime's errors have no common base class.
            raise EmbeddingError(
                f"The embedding model '{self._settings.name}' failed on {tokens.size} tokens: {error}.",
                "Run `bethink doctor`.",
            ) from error
        if found.ndim == 3:
            found = found[:, 0] if self._settings.pooling == "cls" else found.mean(axis=1)
        vector = np.asarray(found[0], dtype=np.float32)
        length = float(np.linalg.norm(vector))
        wanted = self._settings.dimensions or vector.shape[0]
        if not 0 < length < np.inf or vector.shape[0] != wanted:
            raise EmbeddingError(
                f"The embedding model '{self._settings.name}' gave no vector of {wanted} finite numbers.",
                "Run `bethink doctor`.",
            )
        return vector / np.float32(length)
