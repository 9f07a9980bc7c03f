"""What the tools do: checked arguments in, readable text out. Each calls `Bethink` or a capability above it and tells the result.

Bethink text comes back between the marks of `fence`. Nothing here speaks the protocol; `server` does.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from bethink.errors import BethinkError, InvalidInput, NotFound
from bethink.features import conversations, handoffs, knowledge
from bethink.hooks import state
from bethink.ingest.pipeline import clean_passage
from bethink.ingest.redact import redact
from bethink.recall.shape import digest_lines, tokens
from bethink.store.places import EMBEDDING_TEXT
from bethink.surface import operations
from bethink.surface.mcp import schemas
from bethink.surface.render import (
    AGENT_STEPS,
    cut_to,
    note_lines,
    outcome_ids,
    outcome_lines,
    quote_answer,
    quote_handoff,
    quote_items,
    quote_line,
    quote_list,
    quote_memories,
    short_ids,
)
from bethink.text.checks import as_entity, check_kind
from bethink.text.fence import CAP, Quote, spread
from bethink.text.when import expiry, moment
from bethink.types import KINDS, TRUST, Passage

if TYPE_CHECKING:
    from bethink.api import Bethink
    from bethink.types import Answer, Hit, Memory, Outcome

SEED = secrets.randbits(
    32
)  # the same chance in all searches of a process, so that pages fit together
WIDER = (4, 16)  # times the limit that is looked at while one source fills an answer
LISTED, SESSIONS, TOPICS = 5, 4, 4  # lines of an overview
TOPIC = 15  # tokens of a topic's name there
OVERVIEW = 1500  # tokens of all of it
REMEMBERED = 2000  # tokens that the prompt `remember` quotes

Arguments = dict[str, Any]
log = logging.getLogger("bethink")


class ToolReply(NamedTuple):
    """What a model reads, and the same in numbers for programs, where a tool has some."""

    text: str
    numbers: Mapping[str, Any] | None = None


def search_memories(memory: Bethink, given: Arguments) -> ToolReply:
    session = memory.find_session(given["session"]).id if "session" in given else None
    filter = memory.filter(
        kinds=tuple(given.get("kinds", ())),
        entities=tuple(as_entity(name).name for name in given.get("entities", ())),
        tags=tuple(given.get("tags", ())),
        min_importance=given.get("min_importance"),
        since=moment(given["since"], memory.clock()) if "since" in given else None,
        session=session,
        include_deleted=given.get("include_deleted", False),
        include_expired=given.get("include_expired", False),
    )
    if log.isEnabledFor(logging.DEBUG) and "reason_for_search" in given:
        log.debug("search_memories: %s", redact(given["reason_for_search"][:500]).text)
    limit, offset = given.get("limit", 10), given.get("offset", 0)
    budget = given.get("max_tokens", memory.config.max_tokens)
    if not given.get("query", "").strip():
        total = memory.store.count(filter)
        found = memory.list(filter=filter, limit=limit, offset=offset)
        quoted = quote_list(memory, found, total, budget, offset)
    else:
        how = {"filter": filter, "mode": given.get("mode"), "profile": given.get("intent")}
        how["context"] = given.get("reason_for_search", "")  # what a mere "why?" is about
        answer = find_spread(memory, given["query"], limit, offset, **how)
        total, quoted = answer.total, quote_answer(memory, answer, budget, offset=offset)
    following = {} if quoted.following is None else {"next_offset": quoted.following}
    numbers = {"total_count": total, "has_more": bool(following), **following}
    return ToolReply(quoted.text, {**numbers, "tokens_used": tokens(quoted.text)})


def find_spread(memory: Bethink, query: str, limit: int, offset: int = 0, **how: Any) -> Answer:
    """The answer to a question in which no imported document crowds out the rest, as far as there is a rest. A later page is as it
    comes: what was crowded out of the first is on it."""
    how |= {"seed": SEED, "rerank": True}
    cap = max(CAP, limit // 3)
    answer = memory.search(query, limit=limit, offset=offset, **how)
    for wider in WIDER if not offset else ():
        if not _is_crowded(answer.hits, cap) or answer.total <= len(answer.hits):
            break
        looked = memory.search(query, limit=limit * wider, **how)
        answer = looked._replace(hits=tuple(spread(looked.hits, cap)[:limit]))
    return answer


def _is_crowded(hits: Sequence[Hit], cap: int) -> bool:
    sources = Counter(hit.memory.source for hit in hits if hit.memory.trust <= TRUST["import"])
    return any(number > cap for number in sources.values())


def analyze_project(memory: Bethink, what: str) -> str:
    """Lets the project's files or its commits tell what they know, as `bethink analyze` does."""
    if not memory.reads_files:
        raise InvalidInput(
            "Files are read only on the project's own machine.",
            "Run `bethink analyze` there.",
        )
    synced = (knowledge.analyze if what == "files" else knowledge.analyze_history)(memory)
    numbers = operations.sync_record(synced)["memories"]
    counts = ", ".join(f"{number:,} {name}" for name, number in numbers.items())
    said = (
        f"Read {synced.sources:,} {'files' if what == 'files' else 'commits'}: memories {counts}."
    )
    return "\n".join([said, *note_lines(synced.hints)])


def store_memories(memory: Bethink, given: Arguments) -> str:
    items: list[Arguments] = given.get("memories", [])
    if ("analyze" in given) == bool(items):
        raise InvalidInput(
            "Give memories or analyze, one of the two.", 'memories: [{"content": "…"}]'
        )
    if "analyze" in given:
        return analyze_project(memory, given["analyze"])
    passages = [make_passage(memory, item, f"memories[{at}]") for at, item in enumerate(items)]
    outcomes, hints = _add_groups(memory, passages, [item["personal"] for item in items])
    stored = [one for one in outcomes.values() if one.status != "purged"]
    known = memory.store.get([id for one in stored for id in (one.id, *outcome_ids(one))])
    short = short_ids(memory, known)
    found = {one.id: one for one in known}
    lines = []
    for at in sorted(outcomes):
        lines.append(_outcome_line(at, outcomes[at], short, found))
        lines += outcome_lines(outcomes[at], short, "   ", AGENT_STEPS)
    lines += note_lines(hints)
    named = {id for passage in passages for id in passage.supersedes}
    touched = {id: None for one in stored for id in outcome_ids(one) if id not in named}
    if not touched:
        return "\n".join(lines)
    return quote_items([quote_line(found[id], short) for id in touched], lines)


def _add_groups(
    memory: Bethink, passages: Sequence[Passage], personal: Sequence[bool]
) -> tuple[dict[int, Outcome], list[str]]:
    """What became of each passage, and what is to be said of all. Personal ones first: whoever may not tell them is refused before
    anything is stored."""
    outcomes: dict[int, Outcome] = {}
    hints: dict[str, None] = {}
    for kind in (True, False):
        group = [at for at, one in enumerate(personal) if one == kind]
        if group:
            receipt = memory.add_many([passages[at] for at in group], personal=kind)
            outcomes.update(zip(group, receipt.outcomes, strict=True))
            hints.update(dict.fromkeys(receipt.hints))
    return outcomes, list(hints)


def make_passage(memory: Bethink, given: Mapping[str, Any], place: str) -> Passage:
    """What is to be remembered, if it can be: of several with a wrong one nothing is stored, and it is named by its place."""
    now, expires, since = memory.clock(), given["expires"], given.get("valid_from")
    fields = {name: value for name, value in given.items() if name in Passage._fields}
    try:
        fields |= {
            "expires_at": expiry(expires, now) if expires else None,
            "valid_from": moment(since, now) if since else None,
            "kind": check_kind(given["kind"]),
            "tags": tuple(given["tags"]),
            "entities": tuple(as_entity(name) for name in given["entities"] if name.strip()),
            "supersedes": tuple(memory.resolve(id) for id in given["supersedes"]),
        }
        if text := given.get("embedding_text"):
            fields["metadata"] = {**given["metadata"], EMBEDDING_TEXT: text}
        passage = Passage(**fields)
        clean_passage(passage, memory.config.max_characters)
    except BethinkError as error:
        message = f"{place}: {error.message} Nothing was stored."
        raise type(error)(message, error.hint) from error
    return passage


def _outcome_line(
    at: int, outcome: Outcome, short: Mapping[str, str], found: Mapping[str, Memory]
) -> str:
    id = short.get(outcome.id, outcome.id)
    if outcome.status == "added":
        text = f"stored [{id}] {found[outcome.id].kind}"
    elif outcome.status == "purged":
        text = "not stored: this text was purged by a person"
    else:
        near = (
            f" (similarity {outcome.similarity:.2f}; update_memory changes it)"
            if outcome.status == "near_duplicate"
            else ""
        )
        text = f"known already as [{id}]{near}"
    hidden = (
        f"; {outcome.redactions} private or secret part(s) taken out" if outcome.redactions else ""
    )
    return f"{at + 1}. {text}{hidden}"


def get_memories(memory: Bethink, given: Arguments) -> str:
    ids, missing = _resolve(memory, given["ids"])
    memory.touch(ids)
    items = quote_memories(memory, memory.store.get(ids), given.get("max_tokens", 8000))
    return quote_items(items, missing, given.get("max_tokens", 8000))


def _resolve(memory: Bethink, prefixes: Sequence[str]) -> tuple[list[str], list[str]]:
    """Full ids, and a sentence about each that could not be found. None at all is an error."""
    ids: dict[str, None] = {}
    missing = []
    for prefix in prefixes:
        try:
            ids[memory.resolve(prefix[:100])] = None
        except BethinkError as error:
            missing.append(error.message)
    if not ids:
        raise NotFound(" ".join(missing[:5]), "search_memories shows ids.")
    return list(ids), missing


def update_memory(memory: Bethink, given: Arguments) -> str:
    fields = {name: value for name, value in given.items() if name not in ("id", "expires")}
    if "kind" in fields:
        fields["kind"] = check_kind(fields["kind"])
    if "expires" in given:
        fields["expires_at"] = expiry(given["expires"], memory.clock())
    if not fields:
        raise InvalidInput(
            "Nothing to change was given.",
            "Give content, kind, importance, tags, entities, expires, answered, metadata or embedding_text.",
        )
    changed = memory.update(given["id"], **fields)
    short = memory.store.abbreviate([changed.id])[changed.id]
    return "\n".join(
        [
            f"updated [{short}] {changed.kind}: {', '.join(sorted(fields))}",
            *note_lines(memory.hints),
        ]
    )


def forget_memories(memory: Bethink, given: Arguments) -> str:
    ids, missing = _resolve(memory, given["ids"])
    known = {one.id: one for one in memory.store.get(ids)}
    short = memory.store.abbreviate(ids)
    done = memory.forget(*ids, asked=state.is_forgetting_asked(memory.project.root))
    waits = "is the user's own word; it waits in the inbox until the user runs: bethink forget {}"
    lines = [
        f"[{short[id]}] {'was forgotten before' if known[id].deleted_at else 'forgotten'}"
        for id in done.ids
    ]
    lines += [f"[{short[id]}] {waits.format(short[id])}" for id in done.proposed]
    back = ["`bethink restore ID` brings a memory back."] if done.ids else []
    return "\n".join([*lines, *missing, *back, *note_lines(done.hints)])


def rate_memories(memory: Bethink, given: Arguments) -> str:
    ratings: list[Arguments] = given["ratings"]
    ids, missing = _resolve(memory, [rating["id"] for rating in ratings])
    values: dict[str, float] = {}
    for rating in ratings:
        with suppress(BethinkError):  # told by `missing`
            values[memory.resolve(rating["id"])] = rating["value"]
    rated = [memory.vote(id, values[id]) for id in ids]
    short = memory.store.abbreviate(ids)
    return "\n".join(
        [
            *(f"[{short[one.id]}] {values[one.id]:+g}, now {one.usefulness:+g}" for one in rated),
            *missing,
        ]
    )


def store_handoff(memory: Bethink, given: Arguments) -> str:
    saved = handoffs.save_handoff(memory, handoffs.handoff_from_fields(given))
    place = handoffs.read_handoff(saved.memory)
    short = memory.store.abbreviate([saved.memory.id])[saved.memory.id]
    branch = f", branch {place.branch}" if place.branch else ""
    what = "stored" if saved.new else "unchanged:"
    before = " It replaces the last one." if saved.supersedes else ""
    return "\n".join(
        [
            f"Handoff {what} [{short}] for {place.project}{branch}.{before}",
            *note_lines(memory.hints),
        ]
    )


def get_handoff(memory: Bethink, given: Arguments) -> str:
    last = handoffs.find_latest(memory, given.get("branch"))
    if last is None:
        return "There is no handoff for this project yet. store_handoff leaves one."
    asked, *known = (
        re.sub(r"[\W_]", "", name).casefold()
        for name in (given.get("project", ""), last.handoff.project, memory.project.name)
    )
    label = "\nA project's name is only a label here: this is the newest of this folder."
    return quote_handoff(memory, last) + label * (bool(asked) and asked not in known)


def memory_overview(memory: Bethink, given: Arguments) -> str:
    seen = memory.stats(memory.scopes)
    kinds = ", ".join(
        f"{number} {kind}"
        for kind, number in sorted(seen.by_kind.items(), key=lambda row: -row[1])[:8]
    )
    personal = seen.by_scope.get("personal", 0)
    head = f"Project {memory.project.name}: {seen.memories:,} memories" + (
        f", {personal:,} of them personal" if personal else ""
    )
    items: list[Quote | str] = []
    if last := handoffs.find_latest(memory):
        short = short_ids(memory, [last.memory])
        where = f" of branch {last.handoff.branch}" if last.handoff.branch else ""
        age = last.age(memory.clock())
        title = f"Last handoff{where}, {age}:" if age else f"Last handoff{where}:"
        items += [title, quote_line(last.memory, short)]
    for title, filter in (
        ("Open questions", memory.filter(kinds=("question",), answered=False)),
        ("Open todos", memory.filter(kinds=("todo",), answered=False)),
    ):
        number = memory.store.count(filter)
        # What people and agents said comes before what was found in imported texts.
        newest = sorted(
            memory.list(filter=filter, limit=LISTED * 4),
            key=lambda one: one.trust <= TRUST["import"],
        )[:LISTED]
        if newest:
            short = short_ids(memory, newest)
            items += [f"{title} ({number:,}):", *(quote_line(one, short) for one in newest)]
    items += _sessions(memory)
    said = [f"{head} ({kinds})." if kinds else f"{head}.", *note_lines(memory.hints)]
    return quote_items(items, said, OVERVIEW) if items else "\n".join(said)


def _sessions(memory: Bethink) -> list[Quote | str]:
    """The last sessions: of the newest what it was asked, did and left, of the others what they were about."""
    lines: list[Quote | str] = []
    for session in conversations.sessions(memory, SESSIONS):
        told = [] if lines else digest_lines(session)
        names = [one.name for one in conversations.topics(memory, session) if not one.depth]
        about = [cut_to(name, TOPIC) for name in filter(None, names[-TOPICS:])]
        day = f"{session.started_at:%Y-%m-%d} " if session.started_at else ""
        title = cut_to(session.title or "untitled", TOPIC)
        lines += [f"- {day}{session.host} {session.id[:13]}: {'; '.join(about) or title}", *told]
    return ["Recent sessions:", *lines] if lines else []


TOOLS: dict[str, Callable[[Bethink, Arguments], str | ToolReply]] = {
    name: globals()[name] for name in schemas.TOOLS
}


def call(memory: Bethink, name: str, given: Arguments) -> ToolReply:
    reply = TOOLS[name](memory, given)
    return ToolReply(reply) if isinstance(reply, str) else reply


# Prompts. `remember` and `handoff` bring what memory holds with them, between the marks of `fence`.


def write_query(memory: Bethink, given: Mapping[str, str]) -> str:
    return f"""Search the project's memory with search_memories for: {given["topic"]}

How to find it:
- Ask a whole question first. Then try the words that the memory itself would hold: names, error messages, file names.
- mode keyword for exact names and messages, mode vector for an idea in other words, otherwise leave mode out.
- "A phrase" in quotes, prefix*, AND, OR, NOT; "last week", "since March", "open questions", "decisions about" are understood.
- Narrow by kinds ({", ".join(KINDS[:18])}), entities or since. Widen by leaving them out.
- intent continuity to resume work, fact_check to verify, associative or explore for ideas.
- get_memories gives whole texts of the ids that matter; rate_memories says afterwards which ones helped.

Cite the ids you rely on. Say so if memory holds nothing about it."""


def write_remember(memory: Bethink, given: Mapping[str, str]) -> str:
    answer = find_spread(memory, given["question"], 15)
    return f"""Answer from memory: {given["question"]}

What memory holds about it follows. Group the answer by topic, name dates and where things come from, cite ids, and say what was
replaced by what. If it does not answer the question, search again with search_memories in other words; if that finds nothing either, say so.

{quote_answer(memory, answer, REMEMBERED).text}"""


def write_handoff(memory: Bethink, given: Mapping[str, str]) -> str:
    branch = given.get("branch") or handoffs.find_branch(memory.project.worktree)
    where = f"branch {branch} of {memory.project.name}" if branch else memory.project.name
    named = f"\n- branch: {branch}" if given.get("branch") else ""
    return f"""Write a handoff for {where} with store_handoff, so that somebody without this conversation can go on.

- summary: where things stand, in one or two sentences.
- completed: what is done and verified.
- in_progress_blocked: what is half done or stuck, and on what.
- key_decisions: what was decided, with the reason.
- next_steps: the very next actions, in order, each with file or command.
- memory_ids: ids of the memories that were used.{named}

Facts, not hopes. Then store lasting decisions with store_memories too, if they are not known yet.

The last handoff, for what is still open:

{get_handoff(memory, {"branch": branch} if branch else {})}"""


def complete_prompt(memory: Bethink, name: str, argument: str, value: str) -> Sequence[str]:
    """What an argument of a prompt may be, given its beginning."""
    if name == "handoff" and argument == "branch":
        known = [handoffs.find_branch(memory.project.worktree), *handoffs.list_branches(memory)]
        found = [branch for branch in dict.fromkeys(known) if branch and branch.startswith(value)]
        return found[:100]
    if argument not in ("topic", "question") or not value.strip():
        return ()
    # Names of things that memory knows, as far as the newest memories tell.
    names = dict.fromkeys(entity.name for one in memory.list(limit=200) for entity in one.entities)
    return [name for name in names if name.lower().startswith(value.lower())][:20]
