"""What the tools do: checked arguments in, readable text out. Each calls `Bethink` or a capability above it and tells the result.
Then what a person picks in their agent (prompts), and what a client can read by name (resources): the project's knowledge files, and
memories.

Everything leaves through `bethink.outgoing`: text of memories and files between marks, any other line on one line. Nothing here speaks
the protocol; `server` does.
"""

import logging
import secrets
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from bethink.api import Bethink
from bethink.app.asked import make_filter, make_passages, sync_record, update
from bethink.app.mcp import FILE, MEMORY, OFFERS, TEXTS
from bethink.app.render import (
    WHOLE,
    Form,
    ShownMemories,
    arrange_answer,
    describe_outcomes,
    describe_request,
    describe_value,
    many,
    note_lines,
    quote_items,
    short_id,
    show_handoff,
    show_list,
    show_memories,
    talk_lines,
)
from bethink.errors import InvalidInput, NeedsPerson, NotFound
from bethink.features import conversations, handoffs, knowledge
from bethink.hooks.briefing import render_briefing
from bethink.hooks.state import Hook
from bethink.ingest.files import Found, read_text, walk
from bethink.ingest.markdown import parse
from bethink.ingest.redact import redact
from bethink.ingest.sync import Skipped
from bethink.model import KINDS, Answer, Json, Outcome, Values
from bethink.outgoing import Block, clear_name, clear_value, fence_text, fill, join
from bethink.recall.shape import cut_to, tokens
from bethink.text import CAP, spread

# The same chance in all searches of a process, so that pages fit together.
SEED = secrets.randbits(32)
WIDER = 4  # times the limit that is looked at, so that one source does not fill an answer
OVERVIEW = 1000  # tokens of the briefing in an overview
SESSIONS, TALKED = 4, 400  # that an overview names, and tokens of what they were about
REMEMBERED = 2000  # tokens that the prompt `remember` quotes
HANDOFF = 1500  # tokens of a handoff, without the memories that it names
FORM = Form(quoted=True, more=WHOLE)

log = logging.getLogger("bethink")


class ToolReply(NamedTuple):
    """What a model reads, and the same in numbers for programs, where a tool has some."""

    text: Block
    numbers: Values | None = None


Reply = ToolReply | str | list[str]  # a text may be given as its lines


def search_memories(memory: Bethink, asked: Any) -> ToolReply:
    vars(asked).update(kind=asked.kinds, entity=asked.entities, tag=asked.tags)
    filter = make_filter(memory, asked)
    reason = asked.reason_for_search or ""
    if reason and log.isEnabledFor(logging.DEBUG):
        log.debug("search_memories: %s", redact(reason[:500]).text)
    limit, offset = asked.limit, asked.offset or 0
    budget = asked.given.get("max_tokens", memory.config.max_tokens)
    if not (asked.query or "").strip():
        total = memory.store.count(filter)
        found = memory.list(filter=filter, limit=limit, offset=offset)
        shown = show_list(memory, found, total, budget, offset)
    else:
        # The reason is what a mere "why?" is about.
        how = {"filter": filter, "mode": asked.mode, "profile": asked.intent, "context": reason}
        answer = find_spread(memory, asked.query, limit, offset, **how)
        total, shown = answer.total, arrange(memory, answer, budget, offset)
    text = quote_items(shown.items, shown.notes, budget)
    following = {} if shown.following is None else {"next_offset": shown.following}
    numbers = {"total_count": total, "has_more": bool(following), **following}
    return ToolReply(text, {**numbers, "tokens_used": tokens(text)})


def arrange(memory: Bethink, answer: Answer, budget: int, offset: int = 0) -> ShownMemories:
    arranged = arrange_answer(memory, answer, budget, FORM, offset)
    return ShownMemories(arranged.items, arranged.notes, arranged.both.next)


def find_spread(memory: Bethink, query: str, limit: int, offset: int = 0, **how: Any) -> Answer:
    """The answer to a question in which no imported document crowds out the rest. A document's passages beyond its share come behind the
    first hits that are looked at, on later pages; the pages are cut from one order, so that each hit is on one of them."""
    how |= {"seed": SEED, "rerank": True, "limit": limit * WIDER}
    if offset >= limit * WIDER:
        answer = memory.search(query, offset=offset, **how)
        return answer._replace(hits=answer.hits[:limit])
    answer = memory.search(query, **how)
    ordered = spread(answer.hits, max(CAP, limit // 3))
    return answer._replace(hits=tuple(ordered[offset : offset + limit]))


def analyze_project(memory: Bethink, what: str) -> list[str]:
    """Lets the project's files, or its commits, tell what they know, as `bethink analyze` does."""
    if not memory.reads_files:
        raise InvalidInput(
            "Files are read only on the project's own machine.", "Run `bethink analyze` there."
        )
    synced = (knowledge.analyze if what == "files" else knowledge.analyze_history)(memory)
    told = describe_value(sync_record(synced)) or ["Nothing to remember was found."]
    return [*told, *note_lines(synced.hints)]


def store_memories(memory: Bethink, asked: Any) -> Reply:
    items: list[Json] = asked.memories
    if bool(asked.analyze) == bool(items):
        raise InvalidInput(
            "Give memories or analyze, one of the two.", 'memories: [{"content": "…"}]'
        )
    if asked.analyze:
        return analyze_project(memory, asked.analyze)
    passages = make_passages(memory, items)
    outcomes: dict[int, Outcome] = {}
    hints: list[str] = []
    # Personal ones first: whoever may not tell them is refused before anything is stored.
    for personal in (True, False):
        group = [at for at, item in enumerate(items) if item["personal"] == personal]
        if group:
            receipt = memory.add_many(
                [passages[at] for at in group], personal=personal, automatic=asked.automatic
            )
            outcomes.update(zip(group, receipt.outcomes, strict=True))
            hints += receipt.hints
    told = [outcomes[at] for at in range(len(items))]
    if hidden := sum(one.redactions for one in told):
        hints.append(f"{many(hidden, 'private or secret part')} taken out before storing.")
    lines, touched = describe_outcomes(memory, told, quoted=True)
    return quote_items(touched, [*lines, *note_lines(list(dict.fromkeys(hints)))])


def get_memories(memory: Bethink, asked: Any) -> str:
    found, budget = memory.get(*dict.fromkeys(asked.ids)), asked.max_tokens
    left_out = "{} of {} shown; ask for the others with more max_tokens."
    items = show_memories(memory, found, budget)
    if len(items) == len(found):
        return quote_items(items, budget=budget)
    items = show_memories(memory, found, budget - tokens(left_out))
    return quote_items(items, [left_out.format(len(items), len(found))], budget)


def update_memory(memory: Bethink, asked: Any) -> list[str]:
    given = {name: value for name, value in asked.given.items() if name != "id"}
    changed = update(memory, asked.id, given)
    return [f"updated [{short_id(memory, changed.id)}] {changed.kind}", *note_lines(memory.hints)]


def forget_memories(memory: Bethink, asked: Any) -> list[str]:
    done = memory.forget(*dict.fromkeys(asked.ids))
    short = memory.store.abbreviate([*done.ids, *done.proposed])
    lines = [f"forgotten [{short[id]}]" for id in done.ids]
    lines += [f"[{short[id]}] is the user's own word and was not changed" for id in done.proposed]
    back = ["`bethink restore ID` brings a memory back."] if done.ids else []
    return [*lines, *back, *note_lines([*describe_request(done), *done.hints])]


def rate_memories(memory: Bethink, asked: Any) -> list[str]:
    # An unknown id is an error before anything is done.
    votes = [(memory.resolve(rating["id"]), rating["value"]) for rating in asked.ratings]
    lines = []
    for id, value in votes:
        try:
            rated = memory.vote(id, value)
            lines.append(f"votes {rated.usefulness:+g} for [{short_id(memory, id)}]")
        except NeedsPerson as error:
            lines += note_lines([error.told])
    return lines


def store_handoff(memory: Bethink, asked: Any) -> list[str]:
    saved = handoffs.save_handoff(memory, handoffs.handoff_from_fields(asked.given))
    place = handoffs.read_handoff(saved.memory)
    short = short_id(memory, saved.memory.id)
    branch = f", branch {place.branch}" if place.branch else ""
    line = f"Handoff stored [{short}] for {place.project}{branch}."
    return [line, *note_lines(memory.hints)]


def get_handoff(memory: Bethink, asked: Any) -> str:
    last = handoffs.find_latest(memory, asked.branch)
    if last is None:
        return "There is no handoff for this project yet. store_handoff leaves one."
    items = show_handoff(memory, last)
    budget = HANDOFF + 60 * len(items)
    return quote_items(items, last.notes, budget)


def memory_overview(memory: Bethink, asked: Any) -> list[str]:
    """What a session hears when it starts, what was talked about lately, and how much there is."""
    told = [render_briefing(Hook("session-start", "claude"), memory, OVERVIEW).text]
    lines: list[str] = []
    for session in conversations.sessions(memory, SESSIONS):
        lines += talk_lines(session, conversations.topics(memory, session))
    if lines:
        told += ["Recent sessions:", fence_text(cut_to("\n".join(lines), TALKED))]
    seen = memory.stats(memory.scopes)
    kinds = ", ".join(f"{number} {kind}" for kind, number in seen.by_kind.items())
    told.append(f"Project {memory.project.name}: {seen.memories:,} memories ({kinds or 'none'}).")
    return [*filter(None, told), *note_lines(memory.hints)]


# Prompts. `remember` brings what memory holds with it, between marks.


def query(memory: Bethink, asked: Any) -> str:
    return fill(TEXTS["query"], topic=asked.topic, kinds=", ".join(KINDS[:18]))


def remember(memory: Bethink, asked: Any) -> str:
    shown = arrange(memory, find_spread(memory, asked.question, 15), REMEMBERED)
    found = quote_items(shown.items, shown.notes, REMEMBERED)
    return fill(TEXTS["remember"], question=asked.question, found=found)


TOOLS: dict[str, Callable[..., Reply]] = {name: globals()[name] for name in OFFERS}


def call(memory: Bethink, name: str, asked: Any) -> ToolReply:
    """Return the answer of a tool or a prompt, cleared for the model that reads it."""
    reply = TOOLS[name](memory, asked)
    if isinstance(reply, ToolReply):
        return ToolReply(join([reply.text]), clear_value(reply.numbers))
    return ToolReply(join([reply] if isinstance(reply, str) else reply))


# Resources. A name comes from outside, and is never made a path: it has to be that of a Markdown file which was found below a
# knowledge folder, where no link is followed.

FILES = 5000  # of a knowledge folder that can be read by name
FILES_LISTED = 1000  # files in the one page of a list
LARGEST = 2_000_000  # bytes of a file
UNCUT = 1_000_000  # tokens: a resource is not cut


def list_resources(memory: Bethink) -> list[Json]:
    return [
        {
            "uri": FILE + quote(name),
            "name": name,
            "description": "knowledge file",
            "mime_type": "text/markdown",
            "size": file.stat().st_size,
        }
        for name, file in islice(_find_files(memory).items(), FILES_LISTED)
        if _read_offered(file, name)
    ]


def read_resource(memory: Bethink, uri: str) -> tuple[str, Block]:
    """Return the type and the text of a resource. A file is read from disk, so nothing has redacted it before."""
    if uri.startswith(MEMORY):
        one = memory.one(unquote(uri[len(MEMORY) :]))
        return "text/plain", quote_items(show_memories(memory, [one], UNCUT))
    name = unquote(uri[len(FILE) :]) if uri.startswith(FILE) else ""
    file = _find_files(memory).get(name)
    text = _read_offered(file, name) if file else None
    if text is None:
        raise NotFound(
            f"There is no resource {quote(uri[:200], safe=':/%')}.",
            "resources/list names the knowledge files.",
        )
    return "text/markdown", fence_text(text)


def _find_files(memory: Bethink) -> dict[str, Path]:
    """Name → file, in order. A name counts from its knowledge folder; where another folder has it too, from the project's root. It is
    the name that clients see, without secrets and line breaks."""
    files: dict[str, Path] = {}
    for folder in knowledge.find_folders(memory.project.worktree, memory.config):
        base = folder if folder.is_dir() else folder.parent
        for found in islice(walk(folder, memory.project.worktree, knowledge.MARKDOWN), FILES):
            if isinstance(found, Skipped) or found.path.suffix.lower() not in knowledge.MARKDOWN:
                continue
            name = found.path.relative_to(base).as_posix()
            if not any(part.startswith(".") for part in name.split("/")):
                shown = clear_name(name)
                files.setdefault(clear_name(found.uri) if shown in files else shown, found.path)
    return files


def _read_offered(file: Path, name: str) -> str | None:
    """The text of a file, unless it cannot be read or asks to be left out."""
    found = read_text(Found(file, name), LARGEST)
    if isinstance(found, Skipped) or not parse(found[0]).directives.get("index", True):
        return None
    return found[0]
