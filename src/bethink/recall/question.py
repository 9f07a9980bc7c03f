"""Question: a follow-up completed by its context, and the question as a vector, made in a thread."""

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from bethink.embed import submit_ahead
from bethink.language.words import STOP_WORDS, WORD_LISTS
from bethink.recall.meaning import Meaning
from bethink.store.base import Store
from bethink.store.words import as_words

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from bethink.embed.base import Embedder

MOST_CONTEXT_WORDS = 40  # of the context that a follow-up takes along; a bound, by hand


def complete_question(question: str, context: str) -> str:
    """Prepend the last words of the context to a follow-up that names nothing ("and the other one?")."""
    words = re.findall(r"[\w'’]+", question.lower())
    if (
        not context.strip()
        or not words
        or not (STOP_WORDS | WORD_LISTS["pointing"]).issuperset(words)
    ):
        return question
    return " ".join([*as_words(context).split()[-MOST_CONTEXT_WORDS:], question])


def no_meaning() -> Meaning | None:
    """Return no vector, for a search by words alone."""
    return None


def start_embedding(
    text: str, embedder: "Embedder | None", store: Store, hypothesis: str
) -> Callable[[], Meaning | None]:
    """Start embedding a question in another thread; calling the result waits for it.

    With a hypothesis of the answer the vector is half way between the two."""
    if embedder is None or not text.strip():
        return no_meaning
    model, baseline = embedder.model, embedder.baseline
    vector = submit_ahead(_workers(), lambda: store.embed_question(text, embedder)).result
    if not hypothesis:
        return lambda: Meaning(vector(), model, baseline)
    import numpy as np

    supposed = embedder.documents([hypothesis])[0].mean(axis=0)

    def blend() -> Meaning:
        middle = np.asarray(vector()) + supposed / (np.linalg.norm(supposed) or 1.0)
        return Meaning(middle / (np.linalg.norm(middle) or 1.0), model, baseline)

    return blend


def prepare_ahead(prepare: Callable[[], None]) -> None:
    """Open a model in another thread."""
    submit_ahead(_workers(), prepare)


@cache
def _workers() -> "Executor":
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(4, thread_name_prefix="bethink-question")
