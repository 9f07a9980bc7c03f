"""Vectors from an OpenAI-compatible endpoint: OpenAI itself, Ollama, LM Studio, vLLM and their like.

The key is read from the environment, sent to the configured address only (redirects are not followed) and never shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from bethink import post
from bethink.config import Config
from bethink.embed import USUAL_BASELINE, EmbeddingProvider
from bethink.embed.base import Matrix, clean, pieces
from bethink.errors import EmbeddingError

KEY_VARIABLES = ("OPENAI_API_KEY", "OPENAI_TOKEN_MEMORY_EMBEDDINGS")
# Windows at once: the default limit of text-embeddings-inference. Their text stays below the megabyte that
# many proxies take: no character has more than four bytes.
_BATCH = 32
# OpenAI's models take 8,191 tokens. Latin script has about four characters to a token; Chinese may have more tokens than characters.
WINDOW_CHARACTERS = 6_000
QUERIES_REMEMBERED = 256
LARGEST_ANSWER = 256 << 20


def make_error(message: str, hint: str, kind: str) -> EmbeddingError:
    return EmbeddingError(message, hint)


class HttpEmbedder:
    remote = True  # an address of this machine may be a proxy or a tunnel

    def __init__(self, url: str, model: str, timeout: float = 60.0) -> None:
        self._endpoint = post.Endpoint(
            "embedding", url, "/embeddings", KEY_VARIABLES, "api.openai.com", timeout, make_error
        )
        # Model and host, since two servers may mean different things by one name.
        where = self._endpoint.where
        self.destination = f"{where.hostname}" + (f":{where.port}" if where.port else "")
        self.model = f"{model}@{self.destination}"
        self.baseline = self.unrelated = USUAL_BASELINE
        self._name = model
        self._width = 0  # until the first answer
        self.query = lru_cache(maxsize=QUERIES_REMEMBERED)(self._query)

    def documents(self, texts: Sequence[str]) -> list[Matrix]:
        import numpy as np

        found: list[list[Matrix]] = [[] for _ in texts]
        windows = [(at, window) for at, text in enumerate(texts) for window in _windows(text)]
        for start in range(0, len(windows), _BATCH):
            batch = windows[start : start + _BATCH]
            for (at, _), row in zip(batch, self._vectors([one for _, one in batch]), strict=True):
                found[at].append(row)
        return [np.stack(rows) for rows in found]

    def _query(self, text: str) -> Matrix:
        vector: Matrix = self._vectors([next(_windows(text))])[0]
        vector.flags.writeable = False  # The cache returns it to other callers.
        return vector

    def _vectors(self, windows: list[str]) -> Matrix:
        """One unit vector per window."""
        import numpy as np

        asked = {"model": self._name, "input": windows}
        answer = self._endpoint.ask(asked, self._endpoint.bearer, LARGEST_ANSWER)
        try:
            rows = {row["index"]: row["embedding"] for row in answer["data"]}
            vectors = np.array([rows.pop(at) for at in range(len(windows))], dtype=np.float64)
            with np.errstate(all="ignore"):
                unit: Matrix = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
            width = self._width or vectors.shape[1]
            sound = np.isfinite(unit).all() and unit.any(axis=1).all()
            whole = sound and unit.shape == (len(windows), width)
        except (KeyError, TypeError, ValueError, OverflowError, IndexError):
            whole = False
        if not whole or rows:
            raise EmbeddingError(
                f"The endpoint {self._endpoint.shown} did not answer with one vector of the usual size for each text.",
                f"Is '{self._name}' an embedding model?",
            )
        self._width = width
        return unit.astype(np.float32)


def _windows(text: str) -> Iterator[str]:
    """Pieces that the endpoint accepts at once. Endpoints refuse an empty text, so it becomes a dash."""
    found = [piece for piece in pieces(clean(text), WINDOW_CHARACTERS) if piece.strip()]
    yield from found or ["-"]


def open_endpoint(config: Config) -> HttpEmbedder:
    return HttpEmbedder(config.embedding_url, config.embedding_model, config.model_timeout)


PROVIDER = EmbeddingProvider("http", open_endpoint, variables=KEY_VARIABLES)
