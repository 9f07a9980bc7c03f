"""What a session is told when it starts: what the last one was asked, did and left, the last handoff, what is surely open, what was
decided and learned that matters here, and how to ask for more. Nothing where there is nothing.

It stands in the context of a whole session unasked, so only the word of people and their agents goes in, never that of imported texts or
tools; and nothing that the host puts there by itself. What was said in the last days counts before what is older, what is about the
last session's work before other things, and what is about files below the directory before what is about others. What was said to be
open in a conversation counts as open only if the conversation ended with it, or if the user put it off: whatever came after it may
have settled it. What an agent left to do is told for a month, what is to be pushed or merged by the digest alone; what
was said in conversations for three weeks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bethink.features import handoffs
from bethink.hooks import state
from bethink.hooks.prompt import (
    Context,
    common_lexemes,
    drop_disputed,
    find_disputes,
    is_always_told,
    is_own,
    quote,
)
from bethink.hooks.state import Hook
from bethink.language.pointing import NEEDS_CONTEXT, POINTS_BACK_EARLY
from bethink.language.reports import DELIVERS
from bethink.model import PERSONAL, PUT_OFF, TRUST, turn_of
from bethink.outgoing import Quote, fence_items, join, new_marker
from bethink.recall.shape import cut, digest_lines, tokens
from bethink.store.words import tokenize

if TYPE_CHECKING:
    from bethink.api import Bethink
    from bethink.model import Memory, Session

MORE = 'More is in memory: ask with the tool search_memories, or with `bethink recall "QUESTION"`.'
OPEN = ("question", "todo")
KEPT = "decision gotcha preference architecture pattern solution conclusion discovery".split()
ON_THE_WAY = ("solution", "conclusion", "discovery")
STANDING = ("preference", "pattern", "architecture")
# "Let's get this in early": a word that points back near the beginning, and few telling ones. By hand, on the decisions of 132 sessions.
FEW = 4
OPEN_FOR, TOLD_FOR = timedelta(days=30), timedelta(days=21)  # by hand
LOOKED = 30  # memories of each kind that are weighed, the newest
ENDING = 12  # turns at the end of a conversation among which its last exchange is looked for
MOST_OPEN, MOST_KEPT = 3, 8
MOST_HEARD = 3  # of what is kept: of what agents said in conversations; by hand, after ten briefings were read
SHARE = 0.4  # of the budget for the handoff
LINE = 80  # tokens of one memory: nearly every statement whole
NEXT, ITEM = 5, 30  # next steps of a handoff that are told, and tokens of each
# What makes a memory worth telling, beside its importance from 0 to 1. How fast it fades and what counts as at hand is where most lines speak
# of what the next session spoke of (bench/LOG.md, 2026-11-17); the others by hand.
RECENT, FADE = 0.8, 3 * 86400.0
USEFUL, HERE, SURE, AT_HAND, USERS = 0.3, 0.6, 0.4, 0.6, 0.3
# A decision or a gotcha changes what an agent does next; a solution rarely comes up again.
KINDS = {"decision": 0.4, "gotcha": 0.5, "preference": 0.4, "architecture": 0.2, "pattern": 0.2}


def render_briefing(hook: Hook, memory: Bethink, room: int | None = None) -> Context:
    """The briefing, and the ids of the memories that stand in it whole. It is as long as the settings say, or as `room` does."""
    budget = memory.config.briefing_tokens if room is None else room
    if not budget:
        return Context()
    marker = new_marker()
    frame = tokens(fence_items([], marker))
    left = budget - frame - tokens(MORE) - 2
    now = _find_present(hook, memory)
    handoff = _handoff(memory, int(left * SHARE))
    sections = [_tell_session(now), handoff, *_sections(hook, memory, now)]
    taken: list[list[BriefingLine]] = [[] for _ in sections]
    # In turns, so that no section takes the room of all others.
    for at in range(max(MOST_OPEN, MOST_KEPT)):
        for section, chosen in zip(sections, taken, strict=True):
            for line in section.lines[at * section.pace : (at + 1) * section.pace]:
                told = [line.quote] if chosen else [section.title, line.quote]
                cost = tokens(fence_items(told, marker)) - frame + 1
                if cost <= left:
                    chosen.append(line)
                    left -= cost
    items: list[str | Quote] = []
    for section, chosen in zip(sections, taken, strict=True):
        items += [section.title, *(line.quote for line in chosen)] if chosen else []
    if not items:
        return Context()
    whole = tuple(line.whole for chosen in taken for line in chosen if line.whole)
    digest = state.digest(fence_items(items, ""))
    return Context(join([fence_items(items, marker), MORE]), whole, digest)


class BriefingLine(NamedTuple):
    quote: Quote | str
    whole: str = ""  # the id of the memory, if all of it is shown


class Section(NamedTuple):
    title: str
    lines: list[BriefingLine]
    pace: int = 1  # lines that it takes when it is its turn


class Present(NamedTuple):
    """Where it is told, and what was done last."""

    time: datetime  # of the last session's end, or now
    place: str  # the directory as files below it begin, "" at the top of the project
    last: Session | None = None
    digest: Sequence[str] = ()  # what the last session was asked, did and left
    words: Set[str] = frozenset()  # telling ones of the digest


def _find_present(hook: Hook, memory: Bethink) -> Present:
    """The last session before this one with its digest, without the to-dos that were done or taken away since. Who comes back to a
    project after months finds it as it was left, so what is new counts from that session on."""
    place = _place(hook, memory)
    for session in memory.store.sessions(memory.scopes, 2):
        if session.id == hook.session:
            continue
        todos = memory.filter(session=session.id, kinds=("todo",), include_deleted=True)
        done = [
            one.content
            for one in memory.list(filter=todos._replace(include_superseded=True), limit=LOOKED)
            if one.answered or one.deleted_at or one.superseded_by
        ]
        told = digest_lines(session, done)
        if told:
            time = session.ended_at or session.started_at or memory.clock()
            return Present(time, place, session, told, _telling_words(" ".join(told)))
    return Present(memory.clock(), place)


def _tell_session(now: Present) -> Section:
    if now.last is None:
        return Section("", [])
    day = f", {now.last.started_at:%Y-%m-%d}" if now.last.started_at else ""
    branch = now.last.metadata.get("branch")
    day += f", on the branch {branch}" if branch not in (None, "main", "master") else ""
    lines = [BriefingLine(f"- {line}") for line in now.digest]
    return Section(f"Last session{day}:", lines, pace=len(lines))


def _handoff(memory: Bethink, room: int) -> Section:
    last = handoffs.find_latest(memory)
    if last is None or last.memory.trust < TRUST["agent"]:
        return Section("", [])
    handoff = last.handoff
    parts = [handoff.summary.strip()]
    lists = {"In progress or blocked": handoff.in_progress_blocked, "Next": handoff.next_steps}
    for title, items in lists.items():
        short = [cut(item, ITEM) if tokens(item) > ITEM else item for item in items[:NEXT]]
        parts += [f"{title}: {'; '.join(short)}"] if short else []
    text = "\n".join(parts)
    text = text if tokens(text) <= room else cut(text, room)
    told = quote(last.memory, memory.store.abbreviate([last.memory.id]), text)
    branch = f" of branch {handoff.branch}" if handoff.branch else ""
    age = last.age
    title = f"Last handoff{branch}{age and f', {age}'}:"
    return Section(title, [BriefingLine(told._replace(brief=False))])


def _sections(hook: Hook, memory: Bethink, now: Present) -> list[Section]:
    """What is open and what holds, without the to-dos that the digest has said."""
    said = "\n".join(now.digest)
    open_ = _still_open(memory, _best(hook, memory, OPEN, now), now)
    questions = [one for one in open_ if one.kind == "question"][:MOST_OPEN]
    todos = [one for one in open_ if one.kind == "todo" and one.content.rstrip(".") not in said]
    kept = _choose_kept(_best(hook, memory, KEPT, now))
    count = f" ({MOST_OPEN} of {len(todos)})" if len(todos) > MOST_OPEN else ""
    todos = todos[:MOST_OPEN]
    chosen = (*questions, *todos, *kept)
    disputes = find_disputes(memory, chosen)
    short = memory.store.abbreviate([one.id for one in (*chosen, *(new for new, _ in disputes))])
    disputed = {old.id: f"disputed by {short[new.id]}" for new, old in disputes}
    told = (
        ("Open questions:", questions, 1),
        (f"To do{count}:", todos, 1),
        ("Decided and learned:", kept, 2),
    )
    return [
        Section(title, [_line(one, short, disputed) for one in some], pace)
        for title, some, pace in told
    ]


def _choose_kept(found: Sequence[Memory]) -> list[Memory]:
    """The first of what holds, few of what agents said in conversations. What one conversation said stands together, in its order:
    "A for …" before "B for the others"."""
    heard = [one for one in found if one.source_type == "transcript" and one.trust < TRUST["user"]]
    kept = [one for one in found if one not in heard[MOST_HEARD:]][:MOST_KEPT]
    first = {one.session or one.id: at for at, one in reversed([*enumerate(kept)])}
    return sorted(kept, key=lambda one: (first[one.session or one.id], one.position or 0))


def _still_open(memory: Bethink, found: Sequence[Memory], now: Present) -> list[Memory]:
    """What nothing was said after that could have settled it: what somebody noted or put off, and with what a conversation ended."""
    ends: dict[str, list[Memory]] = {}
    kept = []
    for one in found:
        if one.session and one.source_type == "transcript" and PUT_OFF not in one.metadata:
            if one.session not in ends:
                turns = memory.filter(scopes=(one.scope,), session=one.session, kinds=("context",))
                ends[one.session] = memory.list(filter=turns, limit=ENDING)
            if _is_stale(one, now) or not _ends_with(ends[one.session], one):
                continue
        kept.append(one)
    return kept


def _is_stale(one: Memory, now: Present) -> bool:
    """Whether it may well have been done by now: an agent left it to do long ago, or as a step of handing over its work."""
    old = now.time - one.created_at > OPEN_FOR or DELIVERS.holds(one.content)
    return bool(old) and one.metadata.get("role") != "user"


def _ends_with(turns: Sequence[Memory], idea: Memory) -> bool:
    """Whether a conversation, given by its last turns, the newest first, ended with this: the user had not spoken since, and nobody
    had answered the user."""
    said = [one for one in turns if "agent" not in one.metadata]
    asked = [one.position for one in said if one.metadata.get("role") == "user"]
    place = turn_of(idea.position)
    if idea.metadata.get("role") == "user":
        return bool(said) and place >= max(one.position for one in said)
    return place >= max(asked, default=0)


def _line(one: Memory, short: dict[str, str], disputed: dict[str, str]) -> BriefingLine:
    text = " ".join(one.content.split())
    whole = tokens(text) <= LINE
    if not whole:
        text = one.summary if 0 < tokens(one.summary) <= LINE else cut(text, LINE)
    note = disputed.get(one.id, "")
    return BriefingLine(quote(one, short, text)._replace(note=note), one.id if whole else "")


def _best(hook: Hook, memory: Bethink, kinds: Sequence[str], now: Present) -> list[Memory]:
    """The memories of these kinds that are worth telling here, best first; each text once."""
    # One kind of one scope at a time: the index then gives the newest without reading all the others.
    found = [
        one
        for kind in kinds
        for scope in memory.scopes
        for one in memory.list(filter=memory.filter(kinds=(kind,), scopes=(scope,)), limit=LOOKED)
        if one.trust >= TRUST["agent"]
        and not one.answered
        and not is_always_told(one)
        and _is_settled(one, now)
        and not (hook.source == "resume" and is_own(hook, one))
    ]
    found = drop_disputed(memory, found)
    worth = {one.id: _worth(one, now) for one in found}
    ranked = sorted(found, key=lambda one: -worth[one.id])
    return list({one.content_hash or one.content: one for one in reversed(ranked)}.values())[::-1]


def _is_settled(one: Memory, now: Present) -> bool:
    """Whether it can be told without the conversation that it was said in. What an agent found or mended on its way is told by the
    digest, what it decided is its proposal, and a sentence that points back, or is too long to be told whole, says nothing by itself.
    What was only said weeks before the last session is told when a prompt asks for it."""
    if one.source_type != "transcript" or one.kind in OPEN or one.scope == PERSONAL:
        return True
    proposed = one.kind == "decision" and one.metadata.get("role") != "user"
    old = one.kind not in STANDING and now.time - one.created_at > TOLD_FOR
    passing = one.kind in ON_THE_WAY or proposed or old
    return not (passing or _points_back(one.content) or tokens(one.content) > LINE)


def _points_back(text: str) -> bool:
    """Whether a sentence says nothing without what was said before it."""
    few = len(_telling_words(text)) <= FEW
    return NEEDS_CONTEXT.holds(text) or (few and POINTS_BACK_EARLY.holds(text))


def _worth(one: Memory, now: Present) -> float:
    age = max(0.0, (now.time - one.created_at).total_seconds())
    value = one.importance / 10 + RECENT * math.exp(-age / FADE) + SURE * one.confidence
    value += KINDS.get(one.kind, 0.0) + USERS * (one.trust >= TRUST["user"])
    value += USEFUL * math.tanh((one.usefulness + math.log1p(one.access_count)) / 3)
    names = [entity.name for entity in one.entities if entity.type == "file"]
    if now.place and any(name.startswith(now.place) for name in (*names, one.path or "")):
        value += HERE
    words = _telling_words(one.content)
    return value + AT_HAND * len(words & now.words) / (len(words) or 1)


def _telling_words(text: str) -> set[str]:
    return set(tokenize(text)) - common_lexemes()


def _place(hook: Hook, memory: Bethink) -> str:
    """The directory as files below it begin, '' at the top of the project."""
    try:
        here = Path(hook.directory).resolve() if hook.directory else memory.project.worktree
        below = here.relative_to(memory.project.worktree).as_posix()
    except (OSError, ValueError, RuntimeError):
        return ""
    return "" if below == "." else f"{below}/"
