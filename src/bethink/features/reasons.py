"""Why something is as it is: the decision about a subject, its reason, what it replaced, and the line where it was said."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from bethink.recall.pipeline import STRANGE
from bethink.types import Memory

if TYPE_CHECKING:
    from bethink.api import Bethink

DECIDED = ("decision", "preference", "conclusion", "solution")
LOOKED = 5  # hits among which a decision counts before what somebody prefers or found; set by hand
NEAR = 2  # turns on either side of a decision that may say why
# What begins a reason, up to the end of its sentence.
_REASON = r"(?is)\b(?:because(?: of)?|so that|in order to|due to|the reason (?:is|was)(?: that)?|owing to|as otherwise|otherwise)\b\s*(.+?)(?=[.!?](?:\s|$)|\n|$)"


class Reason(NamedTuple):
    decision: Memory
    because: str = ""
    replaced: tuple[Memory, ...] = ()  # the newest first
    said: Memory | None = None  # the turn of a conversation in which it was decided


def find_reason(memory: "Bethink", subject: str) -> Reason | None:
    """The decision that fits a subject best and why it was taken; None where nothing that was decided fits."""
    answer = memory.search(subject, filter=memory.filter(kinds=DECIDED), limit=LOOKED)
    if not answer.hits or STRANGE in answer.hints:
        return None
    hit = next((hit for hit in answer.hits if hit.memory.kind == "decision"), answer.hits[0])
    decision = hit.memory
    replaced = [other for relation, other in hit.related if relation.type == "supersedes"]
    replaced = [other for other in replaced if other.created_at <= decision.created_at]
    replaced.sort(key=lambda other: other.created_at, reverse=True)
    around = memory.store.around(decision.id, NEAR, NEAR) if decision.session else []
    turns = [one for one in around if one.kind == "context"]
    said = next((one for one in turns if one.lines == decision.lines), None)
    grounds = [other for relation, other in hit.related if relation.type == "builds_on"]
    texts = (one.content for one in (decision, *([said] if said else ()), *grounds, *turns))
    return Reason(decision, _first_reason(texts), tuple(replaced), said)


def _first_reason(texts: Iterable[str]) -> str:
    return next((found[1].strip() for text in texts if (found := re.search(_REASON, text))), "")
