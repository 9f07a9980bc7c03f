"""Resume: digests and open items, for a question about the last session or about what is left."""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from bethink.language.reports import DELIVERS
from bethink.language.resuming import ASKS_CHECKS, ASKS_LAST_SESSION, ASKS_WHAT_IS_LEFT
from bethink.model import PUT_OFF, TRUST, Filter, Hit, Memory, Query, Session, Strings, turn_of
from bethink.recall.candidates import MOST_LISTED
from bethink.recall.period import OUTCOMES, list_period
from bethink.recall.shape import digest_lines
from bethink.store.base import Store

LEDGER_KINDS = ("todo", "question", "problem")
MOST_SESSIONS_SEARCHED = 20  # sessions among which those of a time are looked for; a bound on time
MOST_DIGESTS = 5  # of a time
MOST_WEIGHED = 60  # open items of each kind that are weighed; a bound on time
MOST_CLOSED = 30  # closed to-dos that a digest may still name; a bound on time
LAST_TURNS = 12  # of a conversation, among which its last exchange is looked for; a bound on time
# Until when an agent's to-do counts as open: older ones were stale in ten briefings that were read (bench/LOG.md, 2026-11-17).
OPEN_FOR = timedelta(days=30)
NOTHING_NOTED = "Left: nothing that was noted"
EARLIER_SESSION = "Nothing is known from that time; this is the last session before."


class Resumed(NamedTuple):
    """The answer to a question about the last session or about what is left."""

    hits: list[Hit]
    hints: Strings = ()


def asks_to_resume(question: str) -> bool:
    """Return True for a question about the last session, its checks, or what is left."""
    return any(one.holds(question) for one in (ASKS_WHAT_IS_LEFT, ASKS_CHECKS, ASKS_LAST_SESSION))


def resume(
    question: str, query: Query, filter: Filter, store: Store, besides: str = ""
) -> Resumed | None:
    """Answer from digests and open items; None for a question about anything else.

    For a named time, statements of that time follow the digests. `besides` is the session that asks: it is not the last one.
    """
    if not asks_to_resume(question):
        return None
    left, checks = ASKS_WHAT_IS_LEFT.holds(question), ASKS_CHECKS.holds(question)
    sessions, hints = _find_sessions(query, filter, store, checks, besides)
    first = "left" if left else "checks" if checks else ""
    digests = [one for session in sessions if (one := show_digest(session, filter, store, first))]
    items = list_open(filter, store) if left else []
    if left:  # the last digest first, then what the ledger has beyond it
        digests = digests[:1]
    elif not checks and (query.since or query.until):
        items = _list_statements(query, filter, store)
        if items and hints:  # the digest is of an earlier session
            return None
    known = "\n".join(one.content for one in digests)
    items = [one for one in items if one.content.rstrip(".") not in known]
    found = [*digests, *items]
    if not found:
        return None
    return Resumed([Hit(one, 1.0, {"in_time": 1.0}) for one in found], hints if digests else ())


def _list_statements(query: Query, filter: Filter, store: Store) -> list[Memory]:
    """List the statements of a time, the newest first, without the turns in which they were said."""
    kinds = filter.kinds or query.kinds or OUTCOMES
    listed, _ = list_period(query, filter._replace(kinds=kinds), MOST_LISTED, 0, store)
    return [hit.memory for hit in listed]


def _find_sessions(
    query: Query, filter: Filter, store: Store, checks: bool = False, besides: str = ""
) -> tuple[list[Session], Strings]:
    """Return the sessions of the time that is asked for, newest first, or else the last one.

    With `checks` only those in which some ran.
    """
    sessions = [one for one in store.sessions(filter.scopes, MOST_SESSIONS_SEARCHED) if one.digest]
    sessions = [one for one in sessions if not besides or one.id != besides]
    sessions = [one for one in sessions if not checks or (one.digest or {}).get("checks")]
    sessions = [one for one in sessions if not filter.session or one.id == filter.session]
    if not (query.since or query.until):
        return sessions[:1], ()
    then = [one for one in sessions if _is_of_time(one, query)]
    if then:
        return then[:MOST_DIGESTS], ()
    earlier = [one for one in sessions if _is_of_time(one, query._replace(since=None))]
    return earlier[:1], (EARLIER_SESSION,)


def list_digests(query: Query, filter: Filter, store: Store) -> list[Memory]:
    """Return the digests of the sessions of a time, the newest first."""
    sessions = store.sessions(filter.scopes, MOST_SESSIONS_SEARCHED)
    then = [one for one in sessions if one.digest and _is_of_time(one, query)]
    return [one for session in then if (one := show_digest(session, filter, store))]


def _is_of_time(session: Session, query: Query) -> bool:
    start, end = session.started_at, session.ended_at or session.started_at
    if start is None or end is None:
        return False
    return (not query.since or end >= query.since) and (not query.until or start < query.until)


def show_digest(session: Session, filter: Filter, store: Store, first: str = "") -> Memory | None:
    """Return a digest as a hit: the last turn of its session, with the digest as its text.

    The line `first`, "left" or "checks", comes first.
    """
    of_session = Filter((session.scope,), session=session.id, now=filter.now)
    closed = of_session._replace(kinds=("todo",), include_superseded=True, include_deleted=True)
    done = [
        one.content
        for one in store.list(closed, MOST_CLOSED)
        if one.answered or one.deleted_at or one.superseded_by
    ]
    lines = digest_lines(session, done)
    turns = store.list(of_session._replace(kinds=("context",)), 1)
    if not lines or not turns or turns[0].id not in store.select([turns[0].id], filter):
        return None
    day = f", {session.started_at:%Y-%m-%d}" if session.started_at else ""
    branch = session.metadata.get("branch")
    day += f", branch {branch}" if branch else ""
    if first == "left" and not any(line.startswith("Left") for line in lines):
        lines.append(NOTHING_NOTED)
    lines.sort(key=lambda line: not (first and line.lower().startswith(first)))
    text = f"Session{day}. " + ". ".join(line.rstrip(".") for line in lines)
    return turns[0]._replace(content=text, summary=session.title or turns[0].summary)


# The ledger


def list_open(filter: Filter, store: Store) -> list[Memory]:
    """Return the open items of all sessions: the user's own first, then to-dos, then the newest."""
    wanted = filter._replace(answered=False)
    kinds = [kind for kind in LEDGER_KINDS if not filter.kinds or kind in filter.kinds]
    found = [
        one
        for kind in kinds
        for one in store.list(wanted._replace(kinds=(kind,)), MOST_WEIGHED)
        if one.trust >= TRUST["agent"]
    ]
    kept = keep_open(found, store, filter)
    newest = sorted(kept, key=lambda one: one.created_at, reverse=True)
    return sorted(newest, key=lambda one: (one.trust < TRUST["user"], kinds.index(one.kind)))


def keep_open(found: Sequence[Memory], store: Store, filter: Filter) -> list[Memory]:
    """Leave out items that their conversation may have settled later. Notes and deferred items stay."""
    ends: dict[str, list[Memory]] = {}
    kept = []
    for one in found:
        if one.session and one.source_type == "transcript" and PUT_OFF not in one.metadata:
            if one.session not in ends:
                turns = Filter((one.scope,), ("context",), session=one.session, now=filter.now)
                ends[one.session] = list(store.list(turns, LAST_TURNS))
            if _is_stale(one, filter) or not ends_with(ends[one.session], one):
                continue
        kept.append(one)
    return kept


def _is_stale(one: Memory, filter: Filter) -> bool:
    """Return True for an agent's old to-do or step of delivery: it may well be done by now."""
    old = filter.now is not None and filter.now - one.created_at > OPEN_FOR
    return bool(old or DELIVERS.holds(one.content)) and one.metadata.get("role") != "user"


def ends_with(turns: Sequence[Memory], idea: Memory) -> bool:
    """Return True if a conversation ended with this item: no later turn could have settled it."""
    spoken = [one for one in turns if "agent" not in one.metadata]
    asked = [one.position for one in spoken if one.metadata.get("role") == "user"]
    place = turn_of(idea.position)
    if idea.metadata.get("role") == "user":
        return bool(spoken) and place >= max(one.position for one in spoken)
    return place >= max(asked, default=0)
