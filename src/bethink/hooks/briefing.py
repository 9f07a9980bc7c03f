"""Briefing: the last digest and handoff, open items, relevant decisions, and how to ask for more.

It stays in the context of a whole session unasked, so it has only statements of people and their agents, never of imports or tools, and
nothing that the host adds by itself. If there is nothing to say, it is empty. Memories are ranked by the ranker of every search, with the
profile below. Items that a conversation left open count as open only if the conversation ended with them, or if the user put them off:
later turns may have settled them. An agent's to-dos are shown for a month, steps of delivery only in the digest, and statements of
conversations for three weeks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence, Set
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bethink.features import handoffs
from bethink.hooks import state
from bethink.hooks.matching import find_telling_words
from bethink.hooks.prompt import (
    Context,
    drop_disputed,
    find_disputes,
    is_in_every_context,
    is_own,
    quote,
)
from bethink.hooks.rules import note_gone
from bethink.hooks.standing import outlasts_its_task
from bethink.hooks.state import Hook
from bethink.language.detect import is_english
from bethink.language.lasting import (
    FOUND_ON_THE_WAY,
    GUESSES,
    STANDING,
    TRAP,
)
from bethink.language.openers import LOOSE_CONNECTIVE
from bethink.language.pointing import (
    NEEDS_CONTEXT,
    POINTS_BACK_EARLY,
    SPEAKS_FOR_ONESELF,
    THAT_JOINS,
)
from bethink.language.reports import DIAGNOSES, SPEAKS_TO_USER
from bethink.language.rules import lasts
from bethink.language.waiting import BARE_FOLLOW_UP
from bethink.model import PERSONAL, TRUST
from bethink.outgoing import Quote, fence_items, join, new_marker
from bethink.recall.rank import Features, Profile, rank
from bethink.recall.resume import keep_open
from bethink.recall.settled import find_refused
from bethink.recall.shape import cut, digest_lines, tokens
from bethink.skills import WHEN_TO_STORE

if TYPE_CHECKING:
    from bethink.api import Bethink
    from bethink.model import Memory, Session

ASK_FOR_MORE = (
    'More is in memory: ask with the tool search_memories, or with `bethink recall "QUESTION"`.'
)
BRIEFED_OPEN = ("question", "todo")
BRIEFED_KEPT = (
    *("decision", "gotcha", "preference", "architecture", "pattern"),
    *("solution", "conclusion", "discovery"),
)
PASSING_KINDS = ("solution", "conclusion", "discovery")  # found on the way: the digest has them
STANDING_KINDS = ("preference", "pattern", "architecture")
FEW_TELLING = 4  # words of a sentence that points back and says nothing by itself; on the decisions of 132 sessions, by hand
LEAST_BEGINNING = 20  # characters by which a cut item is known again; by hand
# Share of a line's words that another line holds, from which it repeats that one. By hand.
REPEATED_SHARE = 0.8
# Until when a statement of a conversation is shown: orders of weeks ago were stale in ten briefings that were read line by line
# (bench/LOG.md, 2026-11-17).
STATED_FOR = timedelta(days=21)
MAIN_BRANCHES = frozenset(("main", "master", "trunk", "develop", "feat", "featur", "fix"))
NEWEST_OF_KIND = 30  # memories of each kind that are ranked; a bound on time
MOST_OPEN, MOST_KEPT = (
    3,
    8,
)  # lines; with 5 in place of 8 they match the next session a little better (bench/LOG.md, 2026-11-17)
MOST_OF_AGENTS = 2  # of the kept ones, from agents in conversations: 10 of 24 were worth a line (bench/LOG.md, 2026-11-19)
HANDOFF_SHARE = 0.4  # of the budget; by hand, so that a long handoff leaves room for the rest
LINE_TOKENS = 80  # of one memory: nearly every statement whole; cut lines were useless in 7 of 47 (bench/LOG.md, 2026-11-17)
MOST_NEXT_STEPS, STEP_TOKENS = 5, 30  # next steps of a handoff, and tokens of each; by hand
# What makes a memory worth a line. How fast it fades, and words of the last digest, are where most lines are about what the next session speaks of:
# .237 → .283 and .260 of their words (bench/LOG.md, 2026-11-17). That the user's word comes first is from the ten briefings; the rest is by hand.
BRIEFING = Profile(
    weights={
        "importance": 1.0,  # from 0 to 1
        "recent": 0.8,  # how near the end of the last session, fading in `FADE_DAYS`
        "at_hand": 0.6,  # share of its telling words that the last digest holds
        "here": 0.6,  # about files below the directory
        "branch": 0.6,  # share of the words of the branch's name that it holds
        "confidence": 0.4,
        "users": 0.3,  # the user's word
        "useful": 0.3,  # votes and uses
        "kind": 1.0,  # see `KIND_WORTH`
        "standing": 1.0,  # a rule of the user for every time
    },
    middle=2.0,
    steepness=1.0,
    doubt=0.0,
)
FADE_DAYS = 3 * 86400.0  # seconds after which a third of `recent` is left
# A decision or a gotcha changes what an agent does next; a solution rarely comes up again. By hand.
KIND_WORTH = {
    "decision": 0.4,
    "gotcha": 0.5,
    "preference": 0.4,
    "architecture": 0.2,
    "pattern": 0.2,
}


def render_briefing(hook: Hook, memory: Bethink, room: int | None = None) -> Context:
    """Return the briefing, within the configured budget or `room`, and the ids of memories shown in full."""
    budget = memory.config.briefing_tokens if room is None else room
    if not budget:
        return Context()
    marker = new_marker()
    frame = tokens(fence_items([], marker))
    # A sub-agent reports to its caller, who knows what was settled.
    closing = ASK_FOR_MORE if hook.event == "subagent-start" else f"{ASK_FOR_MORE} {WHEN_TO_STORE}"
    left = budget - frame - tokens(closing) - 2
    now = _find_present(hook, memory)
    handoff = _show_handoff(memory, int(left * HANDOFF_SHARE))
    sections = [_show_session(now), handoff, *_list_sections(hook, memory, now)]
    taken: list[list[BriefingLine]] = [[] for _ in sections]
    # In turns, so that no section takes the room of all others.
    for at in range(max(MOST_OPEN, MOST_KEPT)):
        for section, chosen in zip(sections, taken, strict=True):
            for line in section.lines[at * section.pace : (at + 1) * section.pace]:
                added = [line.quote] if chosen else [section.title, line.quote]
                cost = tokens(fence_items(added, marker)) - frame + 1
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
    return Context(join([fence_items(items, marker), closing]), whole, digest)


class BriefingLine(NamedTuple):
    quote: Quote | str
    whole: str = ""  # the id of the memory, if all of it is shown


class Section(NamedTuple):
    title: str
    lines: list[BriefingLine]
    pace: int = 1  # lines it takes in a round


class Present(NamedTuple):
    """The place of a session, and what was done last."""

    time: datetime  # of the last session's end, or now
    place: str  # the directory as files below it begin, "" at the top of the project
    last: Session | None = None
    digest: Sequence[str] = ()  # of the last session: asked, done, left
    words: Set[str] = frozenset()  # telling ones of the digest
    branch: Set[str] = frozenset()  # telling words of the branch's name


def _find_present(hook: Hook, memory: Bethink) -> Present:
    """Return the last session before this one with its digest, without to-dos that were closed since.

    After months a project is as it was left, so recency counts from that session on.
    """
    place = _find_place(hook, memory)
    branch = handoffs.find_branch(memory.project.worktree)
    branched = find_telling_words(re.sub(r"[^a-zA-Z]+", " ", branch)) - MAIN_BRANCHES
    for session in memory.store.sessions(memory.scopes, 2):
        if session.id == hook.session:
            continue
        todos = memory.filter(session=session.id, kinds=("todo",), include_deleted=True)
        done = [
            one.content
            for one in memory.list(
                filter=todos._replace(include_superseded=True), limit=NEWEST_OF_KIND
            )
            if one.answered or one.deleted_at or one.superseded_by
        ]
        digest = digest_lines(session, done)
        if digest:
            time = session.ended_at or session.started_at or memory.clock()
            words = find_telling_words(" ".join(digest))
            return Present(time, place, session, digest, words, branched)
    return Present(memory.clock(), place, branch=branched)


def _show_session(now: Present) -> Section:
    if now.last is None:
        return Section("", [])
    day = f", {now.last.started_at:%Y-%m-%d}" if now.last.started_at else ""
    branch = now.last.metadata.get("branch")
    day += f", on the branch {branch}" if branch not in (None, "main", "master") else ""
    lines = [BriefingLine(f"- {line}") for line in now.digest]
    return Section(f"Last session{day}:", lines, pace=len(lines))


def _show_handoff(memory: Bethink, room: int) -> Section:
    last = handoffs.find_latest(memory)
    if last is None or last.memory.trust < TRUST["agent"]:
        return Section("", [])
    handoff = last.handoff
    parts = [handoff.summary.strip()]
    lists = {"In progress or blocked": handoff.in_progress_blocked, "Next": handoff.next_steps}
    for title, items in lists.items():
        short = [
            cut(item, STEP_TOKENS) if tokens(item) > STEP_TOKENS else item
            for item in items[:MOST_NEXT_STEPS]
        ]
        parts += [f"{title}: {'; '.join(short)}"] if short else []
    text = "\n".join(parts)
    text = text if tokens(text) <= room else cut(text, room)
    quoted = quote(last.memory, memory.store.abbreviate([last.memory.id]), text)
    branch = f" of branch {handoff.branch}" if handoff.branch else ""
    age = last.age
    title = f"Last handoff{branch}{age and f', {age}'}:"
    return Section(title, [BriefingLine(quoted._replace(brief=False))])


def _list_sections(hook: Hook, memory: Bethink, now: Present) -> list[Section]:
    """Return the sections of open items and of decisions, without the to-dos that the digest has."""
    digest = "\n".join(now.digest)
    present = memory.filter()._replace(now=now.time)
    open_ = keep_open(_rank_kinds(hook, memory, BRIEFED_OPEN, now), memory.store, present)
    questions = [one for one in open_ if one.kind == "question"][:MOST_OPEN]
    # The digest may cut an item.
    left = [
        part.rstrip("… .") for line in now.digest for part in line.partition(": ")[2].split("; ")
    ]
    todos = [
        one
        for one in open_
        if one.kind == "todo"
        and not _says_little(one)
        and one.content.rstrip(".") not in digest
        and not any(len(part) > LEAST_BEGINNING and one.content.startswith(part) for part in left)
    ]
    found = _rank_kinds(hook, memory, BRIEFED_KEPT, now)
    refused = find_refused(found[: 2 * MOST_KEPT], memory.store)
    news = _drop_repeated(
        [one for one in found if one.id not in refused],
        # A question names the options, and the decision says which.
        [*(line for line in now.digest if not line.endswith("?")), *(one.content for one in todos)],
    )
    kept = _choose_kept(news)
    count = f" ({MOST_OPEN} of {len(todos)})" if len(todos) > MOST_OPEN else ""
    todos = todos[:MOST_OPEN]
    chosen = (*questions, *todos, *kept)
    disputes = find_disputes(memory, chosen)
    short = memory.store.abbreviate([one.id for one in (*chosen, *(new for new, _ in disputes))])
    short = {**short, **note_gone(memory, chosen)}
    disputed = {old.id: f"disputed by {short[new.id]}" for new, old in disputes}
    sections = (
        ("Open questions:", questions, 1),
        (f"To do{count}:", todos, 1),
        ("Decided and learned:", kept, 2),
    )
    return [
        Section(title, [_make_line(one, short, disputed) for one in some], pace)
        for title, some, pace in sections
    ]


def _drop_repeated(found: Sequence[Memory], shown: Sequence[str]) -> list[Memory]:
    """Leave out what a line above it, or a better one, says already."""
    known = [find_telling_words(text) for text in shown]
    lines = [_fold(text) for text in shown]
    kept = []
    for one in found:
        words, text = find_telling_words(one.content), _fold(one.content)
        repeats = any(len(words & others) >= REPEATED_SHARE * len(words) for others in known)
        # A rule keeps its own line, even if the digest quotes the request that states it.
        within = any(text in line for line in lines) and not lasts(one.content)
        repeats = (repeats and len(words) > FEW_TELLING) or within
        if one.source_type != "transcript" or not repeats:
            known.append(words)
            lines.append(text)
            kept.append(one)
    return kept


def _fold(text: str) -> str:
    """Return a statement without the signs at its ends and the words that join it to another."""
    return LOOSE_CONNECTIVE.sub("", " ".join(text.split())).strip(" .,;:!?…").lower()


def _choose_kept(found: Sequence[Memory]) -> list[Memory]:
    """Choose the first memories, few of them from agents, grouped by conversation in its order.

    "A for …" comes before "B for the others".
    """
    of_agents = [
        one for one in found if one.source_type == "transcript" and one.trust < TRUST["user"]
    ]
    kept = [one for one in found if one not in of_agents[MOST_OF_AGENTS:]][:MOST_KEPT]
    first = {one.session or one.id: at for at, one in reversed([*enumerate(kept)])}
    return sorted(kept, key=lambda one: (first[one.session or one.id], one.position or 0))


def _make_line(one: Memory, short: dict[str, str], disputed: dict[str, str]) -> BriefingLine:
    text = " ".join(one.content.split())
    if one.source_type == "transcript":
        text = LOOSE_CONNECTIVE.sub("", text)
        text = text[:1].upper() + text[1:]
    whole = tokens(text) <= LINE_TOKENS
    if not whole:
        text = one.summary if 0 < tokens(one.summary) <= LINE_TOKENS else cut(text, LINE_TOKENS)
    note = disputed.get(one.id) or short.get(f"gone {one.id}", "")
    return BriefingLine(quote(one, short, text)._replace(note=note), one.id if whole else "")


def _rank_kinds(hook: Hook, memory: Bethink, kinds: Sequence[str], now: Present) -> list[Memory]:
    """Return the memories of these kinds that may be shown here, best first; each text once."""
    # One kind of one scope at a time: the index then gives the newest without reading all the others.
    found = [
        one
        for kind in kinds
        for scope in memory.scopes
        for one in memory.list(
            filter=memory.filter(kinds=(kind,), scopes=(scope,)), limit=NEWEST_OF_KIND
        )
        if one.trust >= TRUST["agent"]
        and not one.answered
        and not is_in_every_context(one)
        and _is_settled(one, now)
        and not (hook.source == "resume" and is_own(hook, one))
    ]
    described = [(one, _describe(one, now)) for one in drop_disputed(memory, found)]
    ranked = [one.item for one in rank(described, BRIEFING)]
    return list({one.content_hash or one.content: one for one in reversed(ranked)}.values())[::-1]


def _is_settled(one: Memory, now: Present) -> bool:
    """Return True if a memory can be understood without the conversation that it is from.

    What an agent found or repaired on its way is in the digest, its decisions are proposals, and a sentence that points back, or is too long
    to be shown whole, says nothing by itself. Statements of weeks ago are left to prompts that ask for them."""
    if one.source_type != "transcript" or one.kind in BRIEFED_OPEN or one.scope == PERSONAL:
        return True
    of_user = one.metadata.get("role") == "user"
    if of_user and STANDING.holds(one.content):
        return not (GUESSES.holds(one.content) or _points_back(one.content, of_user))
    if of_user and not outlasts_its_task(
        one, of_last=now.last is None or one.session == now.last.id
    ):
        return False
    proposed = one.kind == "decision" and not of_user
    old = one.kind not in STANDING_KINDS and now.time - one.created_at > STATED_FOR
    passing = one.kind in PASSING_KINDS or proposed or old
    # A failure that an agent explains is one that it then works on.
    mended = not of_user and (DIAGNOSES.holds(one.content) or not _is_trap(one.content))
    unclear = _points_back(one.content, of_user) or tokens(one.content) > LINE_TOKENS
    return not (passing or mended or unclear)


def _says_little(one: Memory) -> bool:
    """Return True for an agent's to-do that only makes sense beside the words around it."""
    of_agent = one.source_type == "transcript" and one.trust < TRUST["user"]
    return of_agent and (SPEAKS_TO_USER.holds(one.content) or BARE_FOLLOW_UP.holds(one.content))


def _is_trap(text: str) -> bool:
    """Return True if what an agent found will be met again: most else it repaired at once."""
    return not is_english(text) or (
        TRAP.holds(text) and not (FOUND_ON_THE_WAY.holds(text) or GUESSES.holds(text))
    )


def _points_back(text: str, of_user: bool = False) -> bool:
    """Return True for a sentence that says nothing without the one before it."""
    to_agent = text[:4].lower() == "you " and POINTS_BACK_EARLY.holds(
        text
    )  # "You should add it to …"
    if of_user and SPEAKS_FOR_ONESELF.holds(text) and not to_agent:
        return False
    few = len(find_telling_words(text)) <= FEW_TELLING and not THAT_JOINS.holds(text)
    return to_agent or NEEDS_CONTEXT.holds(text) or (few and POINTS_BACK_EARLY.holds(text))


def _describe(one: Memory, now: Present) -> Features:
    """Return the features of a memory for the briefing, each from 0 to about 1."""
    age = max(0.0, (now.time - one.created_at).total_seconds())
    names = [entity.name for entity in one.entities if entity.type == "file"]
    here = any(name.startswith(now.place) for name in (*names, one.path or ""))
    words = find_telling_words(one.content)
    return {
        "importance": one.importance / 10,
        "recent": math.exp(-age / FADE_DAYS),
        "at_hand": len(words & now.words) / (len(words) or 1),
        "here": float(bool(now.place) and here),
        "branch": len(words & now.branch) / (len(now.branch) or 1),
        "confidence": one.confidence,
        "users": float(one.trust >= TRUST["user"]),
        "useful": math.tanh((one.usefulness + math.log1p(one.access_count)) / 3),
        "kind": KIND_WORTH.get(one.kind, 0.0),
        "standing": float(one.metadata.get("role") == "user" and STANDING.holds(one.content)),
    }


def _find_place(hook: Hook, memory: Bethink) -> str:
    """Return the directory as paths of files below it begin; '' at the top of the project."""
    try:
        here = Path(hook.directory).resolve() if hook.directory else memory.project.worktree
        below = here.relative_to(memory.project.worktree).as_posix()
    except (OSError, ValueError, RuntimeError):
        return ""
    return "" if below == "." else f"{below}/"
