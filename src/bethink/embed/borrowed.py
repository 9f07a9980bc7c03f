"""Models of another process, for one that needs them for a text or two.

To load a model takes longer than to run it once. So a command first asks the lender that its surface names: the resident helper, which
keeps the models open for hooks. It answers with the very numbers that the command's own model would give. A lender that does not answer,
or not soon, is asked no more, and the process loads its own models; so does one that turns out to need many runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

Lender = Callable[[bytes], bytes | None]
"""Take a request and return the answer, or None."""

EMBEDDER, OTHER_LANGUAGES, JUDGE = "embedder", "languages", "judge"
QUERY, DOCUMENTS = "query", "documents"
# Requests of a process, after which it loads its own models; texts and characters of one request. Bounds: a note takes 3 to 5 requests.
MOST_REQUESTS, MOST_TEXTS, MOST_CHARACTERS = 24, 8, 4_000

_lender: Lender | None = None
_asked = 0


@contextmanager
def borrowing(lender: Lender | None) -> Iterator[None]:
    """Let this process borrow models for a while."""
    global _lender, _asked
    _lender, _asked = lender, 0
    try:
        yield
    finally:
        _lender = None


def is_lent() -> bool:
    """Return True if there may be no need to load a model."""
    return _lender is not None


def borrow(model: str, identity: str, task: str, texts: Sequence[object]) -> Any:
    """Return what a lender's model answers, or None: then the process needs its own model.

    `identity` names the very model whose numbers are wanted, with its version.
    """
    global _lender, _asked
    if _lender is None or _asked >= MOST_REQUESTS or len(texts) > MOST_TEXTS:
        return None
    request = json.dumps([model, identity, task, texts]).encode("utf-8", "surrogatepass")
    if len(request) > MOST_CHARACTERS * MOST_TEXTS:
        return None
    _asked += 1
    answer = _lender(request)
    if answer is None:
        _lender = None
        return None
    return json.loads(answer)
