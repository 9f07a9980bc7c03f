"""The background reader: a language model reads a whole session once, after it ended.

During a session the offline reader works page by page. When it is over, a model that `bethink config reader` names reads its turns in
order and writes statements that cite them. A statement that the offline reader found gets the model's words; nothing is removed. The
model's digest replaces the derived one. A failure costs only the model's help.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from bethink.api import Bethink
from bethink.features import language
from bethink.ingest.conversation import FIRM_CONFIDENCE, TENTATIVE_CONFIDENCE
from bethink.ingest.ideas import is_users_own
from bethink.llm import tasks
from bethink.llm.base import ModelError
from bethink.model import (
    IDEAS,
    READ_BY,
    TRUST,
    Batch,
    Filter,
    Memory,
    Passage,
    Session,
    Source,
    idea_position,
)

MOST_TURNS = 400  # of a session, the newest; a bound on cost
IDLE = timedelta(minutes=30)  # after which a session without an end counts as ended
RECENT = timedelta(days=1)  # older sessions are left to `bethink backfill`
SESSIONS_PER_RUN = 3  # read by one worker; a bound on time
READER_KEY = (
    "reader"  # key in the metadata of a session: the model that read it, and up to which turn
)
FIRST_NUMBER = 8  # of a model's ideas in a turn; by definition above those of the offline reader
# Tokens of a request beside the turns, and of an answer to one portion; from the instruction and the form, and by hand.
OVERHEAD_TOKENS, ANSWER_TOKENS = 900, 700
SAMPLED = 10  # recent sessions by which the cost of one is estimated


class Reading(NamedTuple):
    """Result of reading a session with a model."""

    session: str
    statements: int = 0
    failure: str = ""


def read_ended(
    memory: Bethink, ended: Sequence[str] = (), goes_on: Callable[[], bool] = lambda: True
) -> list[Reading]:
    """Let the configured model read sessions that ended, named or recent, while it `goes_on`."""
    if not memory.config.llm or memory.config.llm == "none":
        return []
    now, done = memory.clock(), list[Reading]()
    for session in memory.store.sessions(memory.scopes, SAMPLED):
        last = session.ended_at or session.started_at
        over = session.id in ended or (last and IDLE <= now - last <= RECENT)
        if over and len(done) < SESSIONS_PER_RUN and goes_on() and _is_unread(memory, session):
            done.append(read_session(memory, session, goes_on))
            if done[-1].failure:
                break
    return done


def read_session(
    memory: Bethink, session: Session, goes_on: Callable[[], bool] = lambda: True
) -> Reading:
    """Let the model read a session from where it stopped, and store its statements and its digest.

    If the model fails or the time is up, what was read until then is stored, and the next call reads on.
    """
    model = language.open_language_model(memory)
    known = session.metadata.get(READER_KEY) or {}
    turns = [one for one in list_turns(memory, session) if one.position > known.get("turns", -1)]
    if model is None or not turns:
        return Reading(session.id)
    numbered = [
        tasks.NumberedTurn(at, str(one.metadata.get("role") or "assistant"), one.content)
        for at, one in enumerate(turns)
    ]
    found: list[tuple[int, bool, Passage]] = []
    before: dict[str, str] = dict(known.get("digest") or {})
    failure, complete = "", 0  # how many turns were read to their end
    for portion in tasks.portions(numbered):
        complete = portion[0].number
        if complete and not goes_on():
            break
        try:
            ideas = tasks.find_ideas(model.ask, portion, before)
        except ModelError as error:
            failure = error.message
            break
        before = dict(ideas.digest) or before
        for number, idea in enumerate(ideas.ideas, FIRST_NUMBER):
            at = idea.turns[-1]
            made = _make_passage(turns[at], idea, number, model.name)
            found += [(at, own, passage) for own, passage in made]
        complete = len(turns)
    if not complete:
        return Reading(session.id, failure=failure)
    count = 0
    for own, trust in ((True, TRUST["user"]), (False, TRUST["agent"])):
        group = [one for at, is_own, one in found if is_own == own and at < complete]
        if group:
            source = Source(session.source, "transcript")
            receipt = memory.ingest(
                [(source, group)], scope=session.scope, trust=trust, replace_sources=False
            )
            count += len(receipt.outcomes)
    _note_reading(memory, session, model.name, turns[complete - 1], before, complete == len(turns))
    return Reading(session.id, count, failure)


def _note_reading(
    memory: Bethink,
    session: Session,
    name: str,
    last: Memory,
    digest: Mapping[str, str],
    complete: bool,
) -> None:
    """Note how far a session was read, and replace its digest if it was read to its end."""
    # As it is now: another process may have read on in the transcript meanwhile.
    now = memory.find_session(session.id, (session.scope,))
    read: dict[str, Any] = {
        READER_KEY: {"model": name, "turns": last.position, "digest": dict(digest)}
    }
    if complete:
        read["digest"] = {**(now.digest or {}), **digest}
    fresh = now._replace(metadata={**now.metadata, **read})
    memory.writer.write(Batch(at=memory.clock(), actor=memory.actor, sessions=(fresh,)))


def _make_passage(
    turn: Memory, idea: tasks.CitedIdea, number: int, name: str
) -> list[tuple[bool, Passage]]:
    """Return a statement with whether it is the user's word; nothing for what the user only pasted."""
    user = turn.metadata.get("role") == "user"
    if user and (turn.trust < TRUST["user"] and not is_users_own(idea.text, turn.content)):
        return []
    metadata = {
        name: turn.metadata[name] for name in ("turn", "role", "host") if name in turn.metadata
    }
    passage = Passage(
        idea.text,
        kind=idea.kind,
        confidence=FIRM_CONFIDENCE if idea.firm else TENTATIVE_CONFIDENCE,
        entities=idea.entities,
        lines=turn.lines,
        created_at=turn.created_at,
        session=turn.session,
        span=turn.span,
        position=idea_position(turn.position, number),
        metadata={**metadata, "firm": idea.firm, READ_BY: name},
    )
    return [(user, passage)]


def list_turns(memory: Bethink, session: Session) -> list[Memory]:
    """Return the turns of a session in order, without those of sub-agents."""
    filter = Filter((session.scope,), ("context",), session=session.id, now=memory.clock())
    found = memory.store.list(filter, MOST_TURNS)
    own = [one for one in found if "agent" not in one.metadata and one.position < IDEAS]
    return sorted(own, key=lambda one: one.position)


def _is_unread(memory: Bethink, session: Session) -> bool:
    read = session.metadata.get(READER_KEY)
    if not read:
        return True
    turns = list_turns(memory, session)
    return bool(turns) and turns[-1].position > read["turns"]


def estimate_cost(memory: Bethink) -> tuple[int, int]:
    """Return the tokens a session may take, by the last ones, and the number of those."""
    sessions = memory.store.sessions(tuple(memory.store.scopes()), SAMPLED)
    costs = []
    for session in sessions:
        sizes = [len(one.content) for one in list_turns(memory, session)]
        portions = 1 + sum(sizes) // tasks.PORTION_CHARACTERS
        costs.append(sum(sizes) // 4 + portions * (OVERHEAD_TOKENS + ANSWER_TOKENS))
    return (sum(costs) // len(costs) if costs else 0), len(costs)
