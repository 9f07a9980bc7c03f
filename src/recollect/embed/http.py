"""Vectors from an OpenAI-compatible endpoint: OpenAI itself, Ollama, LM Studio, vLLM and their like.

The key is read from the environment, sent to the configured address only (redirects are not followed) and never shown.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from recollect.embed.text import clean, pieces
from recollect.errors import EmbeddingError

if TYPE_CHECKING:
    import urllib.error
    import urllib.request

    from recollect.embed.base import Matrix, Progress

KEY_VARIABLES = ("OPENAI_API_KEY", "OPENAI_TOKEN_MEMORY_EMBEDDINGS")
TRIES = 3
LONGEST_WAIT = 30.0
BATCH_TEXTS = 64
BATCH_CHARACTERS = 100_000
# OpenAI's models take 8,191 tokens. Latin script has about four characters to a token; Chinese may have more tokens than characters.
WINDOW_CHARACTERS = 24_000
DENSE_WINDOW_CHARACTERS = 6_000
SMALLEST_WINDOW_CHARACTERS = 500
QUERIES_REMEMBERED = 256
_LARGEST_ANSWER = 256 << 20
_TOO_LONG = re.compile(r"context|too (long|large|many)|max\w* (input|sequence|token|allowed|batch)|exceed", re.IGNORECASE)


class _Busy(Exception):
    """The endpoint may answer if asked again; `wait` is what it asked for, in seconds."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class _TooLong(EmbeddingError):
    """The endpoint takes less text at once than it was given."""


def identity(url: str, model: str, dimensions: int = 0) -> str:
    """Model and host, since two servers may mean different things by one name."""
    parts = _parts(url)
    host = f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname
    return f"{model}@{host}" + (f"/{dimensions}" if dimensions else "")


BASELINE = 0.15  # what hosted models give unrelated texts; it matters only in scopes of a few memories


class HttpEmbedder:
    def __init__(
        self, url: str, model: str, dimensions: int = 0, timeout: float = 30.0, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.model = identity(url, model, dimensions)
        self.baseline = self.unrelated = BASELINE
        self._name = model
        self._url = _endpoint(url)
        self._width = dimensions
        self._asked = dimensions
        self._timeout = timeout
        self._sleep = sleep
        self._key, self._variable = _key()
        self._remembered = lru_cache(maxsize=QUERIES_REMEMBERED)(self._query)

    @cached_property
    def dimensions(self) -> int:
        """What was configured, else what the endpoint's first answer has."""
        return self._width or int(self._rows(["dimensions"])[0][0].shape[0])

    def documents(self, texts: Sequence[str], progress: Progress | None = None) -> list[Matrix]:
        import numpy as np

        found: list[list[Matrix]] = [[] for _ in texts]
        finished = 0
        for batch in _batches((owner, window) for owner, text in enumerate(texts) for window in _windows(text)):
            for (owner, _), rows in zip(batch, self._rows([window for _, window in batch]), strict=True):
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

        answer = self._ask({"model": self._name, "input": windows} | ({"dimensions": self._asked} if self._asked else {}))
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
            raise self._nonsense(f"vectors of {vectors.shape[-1]} dimensions instead of {self._width or 'one number for all'}")
        with np.errstate(over="ignore"):
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise self._nonsense("a vector that has no direction")
        self._width = vectors.shape[1]
        return np.asarray(vectors / lengths, dtype=np.float32)

    def _nonsense(self, what: str) -> EmbeddingError:
        return EmbeddingError(f"The endpoint {self._shown} answered with {what}.", f"Is '{self._name}' an embedding model?")

    @property
    def _shown(self) -> str:
        return self._url.partition("?")[0]

    def _ask(self, body: dict[str, Any]) -> Any:
        for attempt in range(TRIES):
            try:
                return self._send(body)
            except _Busy as busy:
                problem = str(busy)
                wait = 2.0**attempt if busy.wait is None else busy.wait
            if attempt < TRIES - 1:
                self._sleep(min(wait, LONGEST_WAIT))
        raise EmbeddingError(f"The endpoint {self._shown} did not answer after {TRIES} tries: {problem}.", "Try again later.")

    def _send(self, body: dict[str, Any]) -> Any:
        import http.client
        import urllib.error
        import urllib.request

        if self._key is None and urlsplit(self._url).hostname == "api.openai.com":
            raise EmbeddingError(f"The endpoint {self._shown} needs a key, and none is set.", f"Set {' or '.join(KEY_VARIABLES)}.")
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "recollect"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        request = urllib.request.Request(self._url, json.dumps(body).encode(), headers, method="POST")
        try:
            with _opener(self._url).open(request, timeout=self._timeout) as response:
                answer = response.read(_LARGEST_ANSWER)
        except urllib.error.HTTPError as error:
            with error:
                raise self._refusal(error) from None
        except urllib.error.URLError as error:
            raise self._unreachable(error.reason if isinstance(error.reason, OSError) else error) from None
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from None
        try:
            return json.loads(answer)
        except ValueError:
            raise self._nonsense("something that is not JSON") from None

    def _refusal(self, error: urllib.error.HTTPError) -> Exception:
        code, said = error.code, self._message(error)
        detail = f": {said}" if said else ""
        if code in (401, 403):
            if self._key is None:
                return EmbeddingError(f"The endpoint {self._shown} asks for a key, and none is set.", f"Set {' or '.join(KEY_VARIABLES)}.")
            return EmbeddingError(
                f"The endpoint {self._shown} refused the key ({code}).", f"Check the environment variable {self._variable}."
            )
        if code == 404:
            hint = "Check the settings `embedding_model` and `embedding_url`; with Ollama, run `ollama pull` for the model."
            return EmbeddingError(f"The endpoint {self._shown} was not found or knows no model '{self._name}'{detail}.", hint)
        if code == 429 or code >= 500:
            return _Busy(f"it answered {code}{detail}", _retry_after(error.headers.get("Retry-After")))
        if 300 <= code < 400:
            return EmbeddingError(
                f"The endpoint {self._shown} redirects elsewhere, which is not followed.", "Set `embedding_url` to its final address."
            )
        message = f"The endpoint {self._shown} refused the request ({code}){detail}."
        if code == 413 or (code in (400, 422) and _TOO_LONG.search(said)):
            return _TooLong(message)
        return EmbeddingError(message, "Check the settings that begin with `embedding`.")

    def _message(self, error: urllib.error.HTTPError) -> str:
        """What the server says of its refusal, in one line. Some servers quote the key."""
        try:
            text = error.read(20_000).decode("utf-8", "replace")
        except OSError:
            return ""
        try:
            said = json.loads(text)
            said = said.get("error", said.get("message", said.get("detail", "")))
            text = str(said.get("message", said) if isinstance(said, dict) else said)
        except (ValueError, AttributeError):
            pass
        if self._key:
            text = text.replace(self._key, "…")
        return " ".join(text.split())[:300].rstrip(".")

    def _unreachable(self, error: BaseException) -> Exception:
        import http.client
        import socket

        if isinstance(error, ConnectionRefusedError):
            return EmbeddingError(
                f"Nothing answers at {self._shown}.", "Is the server running? The setting `embedding_url` holds its address."
            )
        if isinstance(error, socket.gaierror):
            return EmbeddingError(f"The host of {self._shown} cannot be found.", "Check the network and the setting `embedding_url`.")
        if isinstance(error, TimeoutError):
            hint = "Raise the setting `embedding_timeout`."
            return EmbeddingError(f"The endpoint {self._shown} did not answer within {self._timeout:g} seconds.", hint)
        if isinstance(error, ConnectionError | http.client.IncompleteRead | http.client.BadStatusLine):
            return _Busy("it broke off the connection")
        return EmbeddingError(
            f"The endpoint {self._shown} cannot be reached: {error}.", "Check the network and the setting `embedding_url`."
        )


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url.strip())
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
            raise ValueError
    except ValueError:
        raise EmbeddingError(
            f"The setting `embedding_url` = {url!r} is no http or https address.", "Use one such as https://host/v1."
        ) from None
    if parts.username or parts.password:
        raise EmbeddingError("The setting `embedding_url` holds a user name or password.", f"Put the key into {KEY_VARIABLES[0]}.")
    return parts


def _endpoint(url: str) -> str:
    parts = _parts(url)
    path = parts.path.rstrip("/")
    return urlunsplit((parts.scheme, parts.netloc, path if path.endswith("/embeddings") else f"{path}/embeddings", parts.query, ""))


def _key() -> tuple[str | None, str | None]:
    """The key and the variable it came from. A key that no header can carry is refused here, as errors of urllib would show it."""
    for variable in KEY_VARIABLES:
        if key := os.environ.get(variable, "").strip():
            if not re.fullmatch(r"[\x21-\x7e]+", key):
                raise EmbeddingError(f"The key in {variable} has characters that a key cannot have.", f"Set {variable} anew.")
            return key, variable
    return None, None


def _opener(url: str) -> urllib.request.OpenerDirector:
    import urllib.request

    class Stay(urllib.request.HTTPRedirectHandler):
        """A redirect would carry the key to another host."""

        def redirect_request(self, *_: Any) -> None:
            return None

    # A proxy cannot reach this machine's own servers.
    proxies = [urllib.request.ProxyHandler({})] if _is_this_machine(urlsplit(url).hostname or "") else []
    return urllib.request.build_opener(Stay, *proxies)


def _is_this_machine(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _retry_after(header: str | None) -> float | None:
    """Seconds from either form of the header: a number or a date."""
    if not header:
        return None
    if re.fullmatch(r"\d{1,9}(\.\d+)?", header.strip()):
        return float(header)
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


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
