"""Vectors from an OpenAI-compatible endpoint: OpenAI itself, Ollama, LM Studio, vLLM and their like.

The key is read from the environment, sent to the configured address only (redirects are not followed) and never shown.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult

from bethink import post
from bethink.embed.base import clean, pieces
from bethink.errors import EmbeddingError

if TYPE_CHECKING:
    from bethink.embed.base import Matrix, Progress

KEY_VARIABLES = ("OPENAI_API_KEY", "OPENAI_TOKEN_MEMORY_EMBEDDINGS")
LONGEST_WAIT = 60.0  # seconds for the pauses that a busy endpoint asks for, all together
BATCH_TEXTS = 64
BATCH_CHARACTERS = 100_000
# OpenAI's models take 8,191 tokens. Latin script has about four characters to a token; Chinese may have more tokens than characters.
WINDOW_CHARACTERS = 24_000
DENSE_WINDOW_CHARACTERS = 6_000
SMALLEST_WINDOW_CHARACTERS = 500
QUERIES_REMEMBERED = 256
LARGEST_ANSWER = 256 << 20
_TOO_LONG = re.compile(
    r"context|too (long|large|many)|max\w{0,20} (input|sequence|token|allowed|batch)|exceed",
    re.IGNORECASE,
)


class _TooLong(EmbeddingError):
    """The endpoint takes less text at once than it was given."""


def identity(url: str, model: str) -> str:
    """Model and host, since two servers may mean different things by one name."""
    parts = _endpoint(url)
    host = f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname
    return f"{model}@{host}"


BASELINE = (
    0.15  # what hosted models give unrelated texts; it matters only in scopes of a few memories
)


class HttpEmbedder:
    def __init__(
        self,
        url: str,
        model: str,
        timeout: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.model = identity(url, model)
        self.baseline = self.unrelated = BASELINE
        self._name = model
        self._where = _endpoint(url)
        self._width = 0  # until the first answer
        self._timeout = timeout
        self._sleep = sleep
        try:
            self._key = post.key(KEY_VARIABLES)
        except ValueError as error:
            raise EmbeddingError(f"{error}.", f"Set {' or '.join(KEY_VARIABLES)} anew.") from None
        self._remembered = lru_cache(maxsize=QUERIES_REMEMBERED)(self._query)

    @cached_property
    def dimensions(self) -> int:
        """What the endpoint's first answer has."""
        return self._width or int(self._rows(["dimensions"])[0][0].shape[0])

    def documents(self, texts: Sequence[str], progress: Progress | None = None) -> list[Matrix]:
        import numpy as np

        found: list[list[Matrix]] = [[] for _ in texts]
        finished = 0
        for batch in _batches(
            (owner, window) for owner, text in enumerate(texts) for window in _windows(text)
        ):
            for (owner, _), rows in zip(
                batch, self._rows([window for _, window in batch]), strict=True
            ):
                found[owner] += rows
            # The last text of a batch may go on in the next one.
            done = batch[-1][0]
            if progress and done > finished:
                progress(done)
                finished = done
        if progress and texts:
            progress(len(texts))
        return [np.stack(rows) for rows in found]

    def query(self, text: str) -> Matrix:
        return self._remembered(text)

    def _query(self, text: str) -> Matrix:
        vector = self._rows([next(_windows(text))])[0][0]
        vector.flags.writeable = False  # It is handed out again to whoever asks the same.
        return vector

    def _rows(self, windows: list[str]) -> list[list[Matrix]]:
        """One vector per window, or several where the endpoint turns out to take less text at once."""
        try:
            return [[vector] for vector in self._vectors(windows)]
        except _TooLong:
            if len(windows) > 1:
                middle = len(windows) // 2
                return self._rows(windows[:middle]) + self._rows(windows[middle:])
            half = len(windows[0]) // 2
            if half < SMALLEST_WINDOW_CHARACTERS:
                raise
            return [[row for piece in pieces(windows[0], half) for row in self._rows([piece])[0]]]

    def _vectors(self, windows: list[str]) -> Matrix:
        import numpy as np

        answer = self._ask({"model": self._name, "input": windows})
        try:
            rows = sorted(enumerate(answer["data"]), key=lambda item: item[1].get("index", item[0]))
            indices = [row.get("index", place) for place, row in rows]
            vectors = np.array([row["embedding"] for _, row in rows], dtype=np.float64)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise self._nonsense("no vectors in the form {data: [{index, embedding}]}") from error
        if len(indices) != len(windows):
            raise self._nonsense(f"{len(indices)} vectors for {len(windows)} texts")
        if indices != list(range(len(windows))):
            raise self._nonsense(f"vectors that are not numbered from 0 to {len(windows) - 1}")
        if vectors.ndim != 2 or vectors.shape[1] == 0 or self._width not in (0, vectors.shape[1]):
            raise self._nonsense(
                f"vectors of {vectors.shape[-1]} dimensions instead of {self._width or 'one number for all'}"
            )
        with np.errstate(over="ignore"):
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise self._nonsense("a vector that has no direction")
        self._width = vectors.shape[1]
        return np.asarray(vectors / lengths, dtype=np.float32)

    def _nonsense(self, what: str) -> EmbeddingError:
        return EmbeddingError(
            f"The endpoint {self._shown} answered with {what}.",
            f"Is '{self._name}' an embedding model?",
        )

    @property
    def _shown(self) -> str:
        return f"{self._where.scheme}://{self._where.netloc}{self._where.path}"

    def _ask(self, body: dict[str, Any]) -> Any:
        if self._key is None and self._where.hostname == "api.openai.com":
            raise EmbeddingError(
                f"The endpoint {self._shown} needs a key, and none is set.",
                f"Set {' or '.join(KEY_VARIABLES)}.",
            )
        headers = {"Authorization": f"Bearer {self._key.value}"} if self._key else {}

        def attempt() -> Any:
            return post.send(
                self._where, body, headers, self._key, post.Deadline(self._timeout), LARGEST_ANSWER
            )

        patience = post.Deadline(post.TRIES * self._timeout + LONGEST_WAIT)
        try:
            return post.persist(attempt, patience, self._sleep, again=("busy", "broken"))
        except post.PostError as error:
            raise self._translate(error) from None

    def _translate(self, error: post.PostError) -> EmbeddingError:
        """The error with what to do about it here."""
        if error.status == 413 or (error.status in (400, 422) and _TOO_LONG.search(error.said)):
            return _TooLong(error.message)
        if error.kind == "garbage":
            return self._nonsense("something that is not JSON")
        if error.kind == "missing":
            detail = f": {error.said}" if error.said else ""
            hint = "Check the settings `embedding_model` and `embedding_url`; with Ollama, run `ollama pull` for the model."
            return EmbeddingError(
                f"The endpoint {self._shown} was not found or knows no model '{self._name}'{detail}.",
                hint,
            )
        if error.kind in ("busy", "broken"):
            asks = error.wait is not None and error.wait > LONGEST_WAIT
            told = (
                f"and asks to wait {error.wait:.0f} seconds"
                if asks
                else f"after {post.TRIES} tries"
            )
            return EmbeddingError(f"{error.message.rstrip('.')}, {told}.", "Try again later.")
        keys = (
            f"Check the environment variable {self._key.variable}."
            if self._key
            else f"Set {' or '.join(KEY_VARIABLES)}."
        )
        hints = {
            "key": keys,
            "redirect": "Set `embedding_url` to its final address.",
            "timeout": "Raise the setting `model_timeout`.",
            "unreachable": "Is the server running? The setting `embedding_url` holds its address.",
        }
        return EmbeddingError(
            error.message, hints.get(error.kind, "Check the settings that begin with `embedding`.")
        )


def _endpoint(url: str) -> SplitResult:
    try:
        return post.address(url, "/embeddings")
    except ValueError as error:
        hint = (
            f"Put the key into {KEY_VARIABLES[0]}."
            if "password" in str(error)
            else "Use one such as https://host/v1."
        )
        raise EmbeddingError(
            f"The setting `embedding_url` cannot be used: {error}.", hint
        ) from None


def _windows(text: str) -> Iterator[str]:
    """Pieces that the endpoint takes at once. Endpoints refuse an empty text, so a stroke stands in for it."""
    text = clean(text)
    dense = len(text.encode()) > 1.1 * len(text)
    found = False
    for piece in pieces(text, DENSE_WINDOW_CHARACTERS if dense else WINDOW_CHARACTERS):
        if piece.strip():
            yield piece
            found = True
    if not found:
        yield "-"


def _batches(windows: Iterable[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    batch: list[tuple[int, str]] = []
    characters = 0
    for owner, window in windows:
        if batch and (len(batch) == BATCH_TEXTS or characters + len(window) > BATCH_CHARACTERS):
            yield batch
            batch, characters = [], 0
        batch.append((owner, window))
        characters += len(window)
    if batch:
        yield batch
