"""What a session is told when it starts: what the last one was asked, did and left, the last handoff, what is surely open, what was
decided and learned that matters here, and how to ask for more. Nothing where there is nothing.

It stands in the context of a whole session unasked, so only the word of people and their agents goes in, never that of imported texts or
tools; and nothing that the host puts there by itself. Questions and decisions of the last weeks count before older ones, those about
files below the directory before those about others. What was said to be open in a conversation counts as open only if the conversation
ended with it, or if the user put it off: whatever came after it may have settled it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bethink.features import handoffs
from bethink.hooks import state
from bethink.hooks.prompt import (
    Context,
    drop_disputed,
    find_disputes,
    is_always_told,
    is_own,
    quote,
)
from bethink.hooks.state import Hook
from bethink.recall.shape import cut, digest_lines, tokens
from bethink.text import Quote, fence_items, new_marker
from bethink.types import PERSONAL, PUT_OFF, TRUST, turn_of

if TYPE_CHECKING:
    from bethink.api import Bethink
    from bethink.types import Memory

MORE = 'More is in memory: ask with the tool search_memories, or with `bethink recall "QUESTION"`.'
OPEN = ("question", "todo")
KEPT = "decision gotcha preference architecture pattern solution conclusion discovery".split()
ON_THE_WAY = ("solution", "conclusion", "discovery")
POINTING = re.compile(
    r"\W{0,4}(?:(?:ok|okay|so|yes|yeah|but|and|then|also|well)\b\W{1,3}){0,2}"
    r"(?:that|this|it|its|these|those|they|i|i'm|i'd|my|you|your|note that|he|she|both|neither)\b",
    re.IGNORECASE,
)
LOOKED = 30  # memories of each kind that are weighed, the newest
ENDING = 12  # turns at the end of a conversation among which its last exchange is looked for
MOST_OPEN, MOST_KEPT = 3, 8
SHARE = 0.4  # of the budget for the handoff
LINE = 45  # tokens of one memory
NEXT, ITEM = 5, 30  # next steps of a handoff that are told, and tokens of each
# What makes a memory worth telling, beside its importance from 0 to 1. By hand; the sets in bench/ cannot tell.
RECENT, FADE = 0.8, 21 * 86400.0
USEFUL, HERE, SURE = 0.3, 0.6, 0.4
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
    last = _last_session(hook, memory)
    said = "\n".join(str(line.quote) for line in last.lines)
    sections = [last, _handoff(memory, int(left * SHARE)), *_sections(hook, memory, said)]
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
    return Context(f"{fence_items(items, marker)}\n{MORE}", whole, digest)


class BriefingLine(NamedTuple):
    quote: Quote | str
    whole: str = ""  # the id of the memory, if all of it is shown


class Section(NamedTuple):
    title: str
    lines: list[BriefingLine]
    pace: int = 1  # lines that it takes when it is its turn


def _last_session(hook: Hook, memory: Bethink) -> Section:
    """What the last session before this one was asked, did and left, without the to-dos that were done or taken away since."""
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
            day = f", {session.started_at:%Y-%m-%d}" if session.started_at else ""
            lines = [BriefingLine(f"- {line}") for line in told]
            return Section(f"Last session{day}:", lines, pace=len(lines))
    return Section("", [])


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


def _sections(hook: Hook, memory: Bethink, said: str) -> list[Section]:
    """What is open and what holds, without the to-dos that the digest has said."""
    now = memory.clock()
    place = _place(hook, memory)
    open_ = _still_open(memory, _best(hook, memory, OPEN, now, place))
    questions = [one for one in open_ if one.kind == "question"][:MOST_OPEN]
    todos = [one for one in open_ if one.kind == "todo" and one.content.rstrip(".") not in said]
    todos, kept = todos[:MOST_OPEN], _best(hook, memory, KEPT, now, place)[:MOST_KEPT]
    chosen = (*questions, *todos, *kept)
    ids = {one.id for one in chosen}
    disputes = [(new.id, old.id) for new, old in find_disputes(memory, chosen) if old.id in ids]
    short = memory.store.abbreviate([*ids, *(new for new, _ in disputes)])
    disputed = {old: f"disputed by {short[new]}" for new, old in disputes}
    told = (
        ("Open questions:", questions, 1),
        ("To do:", todos, 1),
        ("Decided and learned:", kept, 2),
    )
    return [
        Section(title, [_line(one, short, disputed) for one in some], pace)
        for title, some, pace in told
    ]


def _still_open(memory: Bethink, found: Sequence[Memory]) -> list[Memory]:
    """What nothing was said after that could have settled it: what somebody noted or put off, and with what a conversation ended."""
    ends: dict[str, list[Memory]] = {}
    kept = []
    for one in found:
        if one.session and one.source_type == "transcript" and PUT_OFF not in one.metadata:
            if one.session not in ends:
                turns = memory.filter(scopes=(one.scope,), session=one.session, kinds=("context",))
                ends[one.session] = memory.list(filter=turns, limit=ENDING)
            if not _ends_with(ends[one.session], one):
                continue
        kept.append(one)
    return kept


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


def _best(
    hook: Hook, memory: Bethink, kinds: Sequence[str], now: datetime, place: str
) -> list[Memory]:
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
        and _is_settled(one)
        and not (hook.source == "resume" and is_own(hook, one))
    ]
    found = drop_disputed(memory, found)
    worth = {one.id: _worth(one, now, place) for one in found}
    ranked = sorted(found, key=lambda one: -worth[one.id])
    return list({one.content_hash or one.content: one for one in reversed(ranked)}.values())[::-1]


def _is_settled(one: Memory) -> bool:
    """Whether it can be told without the conversation that it was said in. What an agent found or mended on its way is told by the
    digest, what it decided is its proposal, and a sentence that points back says nothing by itself."""
    if one.source_type != "transcript" or one.kind in OPEN or one.scope == PERSONAL:
        return True
    proposed = one.kind == "decision" and one.metadata.get("role") != "user"
    return one.kind not in ON_THE_WAY and not proposed and not POINTING.match(one.content)


def _worth(one: Memory, now: datetime, below: str) -> float:
    age = max(0.0, (now - one.created_at).total_seconds())
    value = one.importance / 10 + RECENT * math.exp(-age / FADE) + SURE * one.confidence
    value += KINDS.get(one.kind, 0.0)
    value += USEFUL * math.tanh((one.usefulness + math.log1p(one.access_count)) / 3)
    names = [entity.name for entity in one.entities if entity.type == "file"]
    if below and any(name.startswith(below) for name in (*names, one.path or "")):
        value += HERE
    return value


def _place(hook: Hook, memory: Bethink) -> str:
    """The directory as files below it begin, '' at the top of the project."""
    try:
        here = Path(hook.directory).resolve() if hook.directory else memory.project.worktree
        below = here.relative_to(memory.project.worktree).as_posix()
    except (OSError, ValueError, RuntimeError):
        return ""
    return "" if below == "." else f"{below}/"
