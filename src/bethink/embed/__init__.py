"""Text → vectors: opens the embedder that the settings ask for. Each kind is one file; `base.py` says what they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bethink.config import Config
from bethink.embed.base import Embedder

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Embedder", "fingerprint", "open_embedder"]


def open_embedder(
    config: Config,
    allow_pull: bool = False,
    progress: Callable[[int, int | None], None] | None = None,
    window: int | None = None,
) -> Embedder | None:
    """The configured embedder, or None if it is `none`. Models are loaded at their first use, not here.

    A local model that is not installed is fetched if `allow_pull` says so, with `progress` told the bytes; else it is
    an EmbeddingError. `window` limits the tokens of one vector of a local model.
    """
    kind = config.embedding.strip()
    if kind in ("none", ""):
        return None
    if kind == "hashing":
        from bethink.embed.hashing import HashingEmbedder

        return HashingEmbedder()
    if kind == "http":
        from bethink.embed.http import HttpEmbedder

        return HttpEmbedder(
            config.embedding_url,
            config.embedding_model,
            config.embedding_dimensions,
            config.embedding_timeout,
        )
    from bethink.embed import models

    directory: Path | None = models.location(kind)
    if directory is None:
        if not allow_pull:
            raise models.missing(kind)
        directory = models.pull(kind, progress)
    from bethink.embed.local import LocalEmbedder

    return LocalEmbedder(models.find(kind), config.threads, window, directory)


def fingerprint(config: Config, window: int | None = None) -> str | None:
    """The identity that `open_embedder` would give its vectors, without loading numpy or a model.

    None for `none`, and for a model without a pinned hash that is not installed yet.
    """
    kind = config.embedding.strip()
    if kind in ("none", ""):
        return None
    if kind == "hashing":
        from bethink.embed import hashing

        return hashing.identity()
    if kind == "http":
        from bethink.embed import http

        return http.identity(
            config.embedding_url, config.embedding_model, config.embedding_dimensions
        )
    from bethink.embed import models

    return models.identity(kind, window)
