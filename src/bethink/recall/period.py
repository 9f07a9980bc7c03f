"""Period: a dated list for a question about a time and nothing else ("what did we do last week?")."""

from bethink.model import FILES, KINDS, Filter, Hit, Memory, Query, turn_of
from bethink.recall.candidates import MOST_LISTED
from bethink.store.base import Store

# Outcomes of the work count for the turns in which they were said; turns fill the room that is left.
OUTCOMES = tuple(kind for kind in KINDS if kind not in ("code", "document", "context", "failure"))
NOTHING_THEN = "Nothing is known from that time; `bethink list` shows the newest."


def list_period(
    query: Query, filter: Filter, limit: int, offset: int, store: Store
) -> tuple[list[Hit], int]:
    """Return a page of what was said, decided and done in a time, the newest first, and the number of all.

    Where there is more than fits, the most important is kept. Passages of files are left out: the day a file was read on says nothing
    about the work."""
    then = filter._replace(
        since=max((one for one in (filter.since, query.since) if one), default=None),
        until=min((one for one in (filter.until, query.until) if one), default=None),
        answered=query.answered if filter.answered is None else filter.answered,
    )

    def look(*kinds: str) -> list[Memory]:
        found = store.list(then._replace(kinds=kinds), MOST_LISTED)
        return [one for one in found if one.source_type not in FILES]

    kinds = filter.kinds or query.kinds
    outcomes = look(*(kinds or OUTCOMES))
    if not kinds:
        places = {(one.source, turn_of(one.position)) for one in outcomes if one.session}
        outcomes += [one for one in look("context") if (one.source, one.position) not in places]
    outcomes.sort(key=lambda one: (one.kind != "context", one.importance, one.created_at))
    page = outcomes[::-1][offset : offset + limit]
    page.sort(key=lambda one: one.created_at, reverse=True)
    return [Hit(one, 1.0, {"in_time": 1.0}) for one in page], len(outcomes)
