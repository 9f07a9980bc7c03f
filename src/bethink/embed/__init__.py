"""Text → vectors: opens the embedder that the settings ask for. Each kind is one file; `base.py` says what they share."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from bethink.config import Config, data_directory
from bethink.embed.base import Bytes, Embedder
from bethink.embed.hashing import HashingEmbedder
from bethink.errors import EmbeddingError

PULL_AGAIN = 3600  # seconds until a fetch of the model that failed is tried again by itself
# Seconds until a model that failed at its work is asked again. Set by hand: an endpoint that restarts is back within a minute,
# and a process that only knows words for a minute waits for the endpoint once and not with every call.
ASK_AGAIN = 60.0


def open_embedder(
    config: Config, allow_pull: bool = False, progress: Bytes | None = None
) -> Embedder | None:
    """The configured embedder, or None if it is `none`. Models are loaded at their first use, not here.

    A local model that is not installed is fetched if `allow_pull` says so, with `progress` told the bytes; else it is
    an EmbeddingError.
    """
    kind = config.embedding.strip()
    if kind in ("none", ""):
        return None
    if kind == "hashing":
        return HashingEmbedder()
    if kind == "http":
        from bethink.embed.http import HttpEmbedder

        return HttpEmbedder(config.embedding_url, config.embedding_model, config.model_timeout)
    from bethink.embed import models

    directory = models.location(kind)
    if directory is None:
        if not allow_pull:
            raise models.missing_model(kind)
        directory = models.pull(kind, progress)
    from bethink.embed.local import LocalEmbedder

    return LocalEmbedder(models.find(kind), directory, config.threads)


class LazyModel:
    """Owns the embedder of one `Bethink`. After a failure it does without for ASK_AGAIN seconds, then it tries once more."""

    def __init__(
        self,
        config: Config,
        embedder: Embedder | None,
        on_pull: Bytes | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config, self._on_pull, self._clock = config, on_pull, clock
        self._given = self._embedder = embedder
        self.error: str | None = None  # "" when no model is wanted
        self._cause: EmbeddingError | None = None
        self._failed_at = 0.0

    @property
    def embedder(self) -> Embedder | None:
        if self.is_due:
            self.error = self._cause = None
        if self._embedder is None and self.error is None:
            try:
                self._embedder = self._given or open_embedder(
                    self._config, _may_pull(), self._on_pull
                )
                if self._embedder is None:
                    self.error = ""
            except EmbeddingError as error:
                self.rest(error)
                _note_failed_pull()
        return self._embedder

    @property
    def is_due(self) -> bool:
        """Whether it failed, and so long ago that it is tried again."""
        return bool(self._cause) and self._clock() - self._failed_at >= ASK_AGAIN

    def rest(self, error: EmbeddingError) -> None:
        """The model failed at its work (an endpoint that is down, say): for a while words have to do."""
        self._embedder, self.error, self._cause = None, without_vectors(error), error
        self._failed_at = self._clock()

    def explain_missing(self) -> EmbeddingError:
        """Why there is no model, for what cannot do without one."""
        if self._cause:
            return EmbeddingError(self._cause.message, self._cause.hint)
        return EmbeddingError(
            "No embedding model is set.", "bethink config embedding snowflake-arctic-embed-s"
        )

    @property
    def hints(self) -> tuple[str, ...]:
        return (self.error,) if self.error else ()


def without_vectors(error: EmbeddingError) -> str:
    return f"Working by words only: {error.message}" + (f" {error.hint}" if error.hint else "")


def _may_pull() -> bool:
    note = data_directory() / "models" / ".failed"
    return not note.exists() or time.time() - note.stat().st_mtime > PULL_AGAIN


def _note_failed_pull() -> None:
    note = data_directory() / "models" / ".failed"
    with suppress(OSError):  # a read-only home only means that the next command tries again
        note.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if _may_pull():
            note.touch()
