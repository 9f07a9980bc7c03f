"""How a new text relates to an old one, by a small trained model. Nothing here knows a store or a memory.

`load` gives the judge that the settings allow, or None where there is none: then the rules of `ingest.reconcile` decide alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from bethink.config import Config

RELATED = ("replaces", "same", "refines", "contradicts", "answers", "completes", "unrelated")


class Judgement(NamedTuple):
    relation: str  # one of RELATED, the most probable
    probability: float
    probabilities: Mapping[str, float]


class Judge(Protocol):
    def relate(self, pairs: Sequence[tuple[str, str]]) -> list[Judgement]:
        """What each new text, the second of its pair, is to the old one."""
        ...


def load(config: Config) -> Judge | None:
    """The judge, or None where the settings switch it off, or where no model of meaning chooses what it is asked about.
    Its own model is read when it is first asked."""
    if not config.judge or config.embedding in ("none", "hashing"):
        return None
    from bethink.judge.model import TrainedJudge

    return TrainedJudge(config.threads)
