"""Run the helper's models for a command that needs one for a text or two (`embed/borrowed.py` asks)."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from bethink.config import Config
from bethink.embed import LOCAL_MODELS, borrowed
from bethink.errors import BethinkError
from bethink.judge import Judge

if TYPE_CHECKING:
    from bethink.embed.base import Embedder


def answer(request: bytes) -> str | None:
    """Return the numbers that a model gives for texts, or None if the command needs another model."""
    try:
        model, identity, task, texts = json.loads(request)
        found = _run(model, identity, task, texts)
    except (BethinkError, ValueError, TypeError):  # the command finds out by itself what is wrong
        return None
    return None if found is None else json.dumps(found)


def _run(model: str, identity: str, task: str, texts: list[Any]) -> Any:
    if model == borrowed.JUDGE:
        return _open_judge().lend([(one, other) for one, other in texts], task.split())
    if model == borrowed.OTHER_LANGUAGES:
        from bethink.embed import multilingual

        vectors = multilingual.encode(identity, texts)
        return None if vectors is None else vectors.tolist()
    if model != borrowed.EMBEDDER:
        return None
    name, _, version = identity.partition(" ")
    embedder = _open_embedder(name)
    if embedder.model != version:
        return None
    if task == borrowed.QUERY:
        return [[embedder.query(text).tolist()] for text in texts]
    return [rows.tolist() for rows in embedder.documents(texts)]


@cache
def _open_embedder(name: str) -> Embedder:
    return LOCAL_MODELS.open(Config(embedding=name))


@cache
def _open_judge() -> Judge:
    return Judge()
