"""Meaning: a question as a vector, and the memories near it.

Where the question or a memory is not in English, the pair is compared by the model for other languages (`second`), whose cosines are
brought to the scale of the first: both are measured from what each model gives to strangers.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bethink.language.detect import is_english
from bethink.model import NOTHING, Filter, Ranking
from bethink.store.base import Scores, Store
from bethink.store.places import embedded_text
from bethink.store.rows import Cosines, Keys

if TYPE_CHECKING:
    from bethink.embed.base import Embedder

# Memories without a vector of the model for other languages that a question embeds by itself: half a second of processor time.
MOST_MADE = 500
DOUBTED_BASELINE = 0.5  # cosine from which a mean says that the model cannot tell texts of a language apart; by hand


class Meaning(NamedTuple):
    """The question as a vector of one model, and of a second one for pairs that the first cannot read."""

    vector: Any
    model: str
    baseline: float = 0.0
    second: "Meaning | None" = None
    foreign: bool = (
        False  # the question is not in English, and this is the model for other languages
    )
    made: Mapping[Any, float] = NOTHING  # cosines of memories that have no vector of this model yet

    def nearest(self, store: Store, filter: Filter, most: int) -> Ranking:
        """Return the nearest memories with their cosines, best first."""
        found = {**dict(store.nearest(self.vector, self.model, filter, most)), **self.made}
        if self.second:
            others = dict(store.nearest(self.second.vector, self.second.model, filter, most))
            found |= self.measure(store, [*found, *others], filter.scopes, found)[0]
        return tuple(sorted(found.items(), key=lambda item: (-item[1], item[0]))[:most])

    def cosines(self, store: Store, keys: Keys, scopes: Sequence[str]) -> Cosines:
        """Return the cosines of memories that were found otherwise, and the mean of the scopes."""
        return self.measure(store, list(keys), scopes, {})

    def measure(
        self, store: Store, keys: Keys, scopes: Sequence[str], known: Mapping[int, float]
    ) -> Cosines:
        """Return the cosine of each memory by the model that reads both it and the question."""
        missing = [key for key in keys if key not in known]
        found, mean = store.cosines(missing, self.vector, self.model, scopes)
        found = {**known, **self.made, **found}
        found = {key: found[key] for key in keys if key in found}
        if self.second is None:
            return found, mean
        wanted = self._choose_second(store, keys, found)
        theirs, their_mean = store.cosines(wanted, self.second.vector, self.second.model, scopes)
        low, high = self.second.find_floor(their_mean), self.find_floor(mean)
        scale = (1 - high) / max(1e-6, 1 - low)
        found |= {key: high + (cosine - low) * scale for key, cosine in theirs.items()}
        return found, mean

    def nearest_spans(self, store: Store, scopes: Sequence[str], most: int) -> Scores:
        """Return the nearest topics."""
        return store.nearest_spans(self.vector, self.model, scopes, most)

    def find_floor(self, mean: float) -> float:
        """Return the cosine of strangers: what the model usually gives, or more where it tells nothing apart."""
        return max(self.baseline, mean) if self.baseline >= DOUBTED_BASELINE else self.baseline

    def _choose_second(self, store: Store, keys: Keys, found: Mapping[int, float]) -> list[int]:
        """Return the memories to compare by the second model."""
        if self.foreign:
            return [key for key in keys if key not in found]
        loaded = store.load(list(keys))
        return [key for key, one in loaded.items() if not is_english(one.content)]


def choose_reader(
    text: str, embedder: "Embedder | None", other: "Embedder | None"
) -> "Embedder | None":
    """Return the model that reads a question: the one for other languages if it is not in English."""
    return other if embedder and other and not is_english(text) else embedder


def read_question(
    text: str,
    first: Callable[[], Meaning | None],
    other: "Embedder | None",
    store: Store,
    scopes: Sequence[str],
) -> Callable[[], Meaning | None]:
    """Return the question's meaning by both models, where it takes both; calling the result waits for it."""
    if other is None:
        return first
    foreign = not is_english(text)
    if not foreign and not store.has_vectors(other.model, scopes):
        return first
    made: list[Meaning | None] = []

    def finish() -> Meaning | None:
        if not made:
            main = first()
            made.append(main and _add_other(main, text, foreign, other, store, scopes))
        return made[0]

    return finish


def _add_other(
    main: Meaning,
    text: str,
    foreign: bool,
    other: "Embedder",
    store: Store,
    scopes: Sequence[str],
) -> Meaning:
    second = Meaning(store.embed_question(text, other), other.model, other.baseline)
    if not foreign:
        return main._replace(second=second)
    vector = second.vector
    made = _embed_missing(vector, other, store, scopes)
    return second._replace(second=main, foreign=True, made=made)


def _embed_missing(
    vector: Any, other: "Embedder", store: Store, scopes: Sequence[str]
) -> dict[int, float]:
    """Return the cosines of memories that have no vector yet. A search stores none."""
    bare = store.list_unembedded(other.model, MOST_MADE, scopes)
    keys = store.keys([one.id for one in bare])
    documents = getattr(other, "document", None) or (lambda text: other.documents([text])[0])
    return {
        keys[one.id]: float((documents(embedded_text(one)) @ vector).max())
        for one in bare
        if one.id in keys
    }
