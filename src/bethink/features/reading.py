"""The background reader: a language model reads a whole session once, after it ended.

During a session the offline reader works page by page. When it is over, a model that `bethink config reader` names reads its turns in
order and writes statements that cite them. A statement that the offline reader found gets the model's words; nothing is removed. The
model's digest replaces the derived one. A failure costs only the model's help.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

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


def read_ended(memory: Bethink, ended: Sequence[str] = ()) -> list[Reading]:
    """Let the configured model read sessions that ended, named or recent."""
    if not memory.config.llm or memory.config.llm == "none":
        return []
    now, done = memory.clock(), list[Reading]()
    for session in memory.store.sessions(memory.scopes, SAMPLED):
        last = session.ended_at or session.started_at
        over = session.id in ended or (last and IDLE <= now - last <= RECENT)
        if over and len(done) < SESSIONS_PER_RUN and _is_unread(memory, session):
            done.append(read_session(memory, session))
            if done[-1].failure:
                break
    return done


def read_session(memory: Bethink, session: Session) -> Reading:
    """Let the model read a session, and store its statements and its digest."""
    model = language.open_language_model(memory)
    turns = list_turns(memory, session)
    if model is None or not turns:
        return Reading(session.id)
    numbered = [
        tasks.NumberedTurn(at, str(one.metadata.get("role") or "assistant"), one.content)
        for at, one in enumerate(turns)
    ]
    passages: list[tuple[bool, Passage]] = []
    digest = dict(session.digest or {})
    try:
        before: dict[str, str] = {}
        for portion in tasks.portions(numbered):
            found = tasks.find_ideas(model.ask, portion, before)
            before = dict(found.digest) or before
            for number, idea in enumerate(found.ideas, FIRST_NUMBER):
                passages += _make_passage(turns[idea.turns[-1]], idea, number, model.name)
        digest = before or digest
    except ModelError as error:
        return Reading(session.id, failure=error.message)
    count = 0
    for own, trust in ((True, TRUST["user"]), (False, TRUST["agent"])):
        group = [passage for is_own, passage in passages if is_own == own]
        if group:
            source = Source(session.source, "transcript")
            receipt = memory.ingest(
                [(source, group)], scope=session.scope, trust=trust, replace_sources=False
            )
            count += len(receipt.outcomes)
    read = {READER_KEY: {"model": model.name, "turns": turns[-1].position}, "digest": digest}
    session = session._replace(metadata={**session.metadata, **read})
    memory.writer.write(Batch(at=memory.clock(), actor=memory.actor, sessions=(session,)))
    return Reading(session.id, count)


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
