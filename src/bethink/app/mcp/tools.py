"""Tools and prompts for agents: typed functions whose signature and docstring are what a client reads.

Every host puts the tools into every conversation, so their texts are short: all tools together take at most 900
tokens as a client lists them, which a test checks. `brief` in an `Arg` is the help of an argument here, and `unlisted` leaves an argument out of the list that agents rarely need: it
is accepted all the same, and the reference has it. The list of tools has to be ready before anything heavy is loaded, so each
function imports what it needs. All text leaves through `bethink.outgoing`: stored text between marks, any other line on one line.
"""

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar

from bethink.app.operation import (
    Arg,
    Parameter,
    bind,
    check_values,
    object_schema,
    offered,
    read_signature,
)
from bethink.app.operations.fields import (
    EmbeddingText,
    Statement,
    UpdateFields,
    build_passages,
    update_fields,
)
from bethink.app.operations.requests import DEFAULT_LOOK, NO_FILTERS, Filters, Look
from bethink.errors import InvalidInput, NeedsPerson
from bethink.model import AUTOMATIC, KINDS, NOTHING, Answer, Filter, Json, Outcome, Strings, Values

if TYPE_CHECKING:
    from bethink.api import Bethink
    from bethink.app.render import ShownMemories
    from bethink.outgoing import Block

# One random seed for all searches of a process, so that pages fit together.
SEED = int.from_bytes(os.urandom(4))
# Hits that are searched at least, and times the limit, so that one source does not fill an answer.
LEAST_SEARCHED, WIDER = 40, 2
IN_FULL = 8000  # tokens of memories in full
_OVERVIEW = 1000  # tokens of the briefing in an overview
SESSIONS, TALKED = 4, 400  # sessions in an overview, and tokens of their topics
_REMEMBERED = 2000  # tokens that the prompt `remember` quotes
LEAST_TELLING = 2  # telling words of a note; of 79 good notes of nine sessions each has two
HANDOFF = 1500  # tokens of a handoff, without the memories that it names

Function = TypeVar("Function", bound=Callable[..., object])


class ToolReply(NamedTuple):
    """Text for a model, and the same in numbers for programs, if a tool has some."""

    text: "Block"
    numbers: Values | None = None


class Tool(NamedTuple):
    """A tool or a prompt as clients see it."""

    function: Callable[..., Any]
    annotations: Values  # hints for hosts that ask their user before a tool changes something
    meta: Values
    meaning: bool  # wait for the embedding model
    appends: bool = False  # adds memories, and changes none of a person's

    @property
    def is_harmless(self) -> bool:
        """True if an agent may use it without asking its user, once the user agreed to that."""
        return self.appends or bool(self.annotations.get("readOnlyHint"))

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def description(self) -> str:
        return " ".join((self.function.__doc__ or "").split())

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return offered(read_signature(self.function), "mcp")

    @property
    def listed(self) -> Json:
        """The tool as `tools/list` has it."""
        meta = {"_meta": dict(self.meta)} if self.meta else {}
        return {
            "name": self.name,
            "description": self.description,
            "annotations": dict(self.annotations),
            **meta,
            "inputSchema": object_schema(self.parameters),
        }

    @property
    def listed_prompt(self) -> Json:
        """The prompt as `prompts/list` has it."""
        arguments = [
            {"name": one.name, "description": one.arg.help, "required": one.required}
            for one in self.parameters
        ]
        return {"name": self.name, "description": self.description, "arguments": arguments}

    def read_arguments(self, values: Values | None) -> Json:
        """Check what a client sent and return the arguments of the function."""
        return bind(self.function, self.parameters, check_values(values or {}, self.parameters))


TOOLS: dict[str, Tool] = {}
PROMPTS: dict[str, Tool] = {}


def tool(
    *, meaning: bool = False, appends: bool = False, meta: Values = NOTHING, **hints: bool
) -> Callable[[Function], Function]:
    """Register a tool. It works on this memory alone, so no tool is open to the world."""

    def register(function: Function) -> Function:
        annotations = {f"{name}Hint": value for name, value in hints.items()}
        known = Tool(function, {**annotations, "openWorldHint": False}, meta, meaning, appends)
        TOOLS[function.__name__] = known
        return function

    return register


def prompt(*, meaning: bool = False) -> Callable[[Function], Function]:
    """Register a prompt, which a person picks in their agent."""

    def register(function: Function) -> Function:
        PROMPTS[function.__name__] = Tool(function, NOTHING, NOTHING, meaning)
        return function

    return register


def call(memory: "Bethink", name: str, arguments: Values) -> ToolReply:
    """Run a tool or a prompt and return its answer, cleared for the model that reads it."""
    from bethink.outgoing import clear_value, join

    function = (TOOLS | PROMPTS)[name].function
    reply: ToolReply | str | list[str] = function(memory, **arguments)
    if isinstance(reply, ToolReply):
        return ToolReply(join([reply.text]), clear_value(reply.numbers))
    return ToolReply(join([reply] if isinstance(reply, str) else reply))


# Tools

MaxTokens = Annotated[
    int | None, Arg("token budget of the answer", low=100, high=20_000, unlisted=True)
]
Id = Annotated[str, Arg(longest=1000)]
Ids = Annotated[Strings, Arg(longest=50, aliases=("id",))]
Texts = Annotated[Strings, Arg()]
Metadata = Annotated[Values, Arg(longest=10_000, unlisted=True)]
Place = Annotated[str | None, Arg("by default the current one", unlisted=True)]


@tool(
    meaning=True,
    meta={
        "anthropic/alwaysLoad": True,
        "anthropic/searchHint": "past decisions and fixes",
    },
    readOnly=True,
)
def search_memories(
    memory: "Bethink",
    query: Annotated[
        str,
        Arg(
            'question or words, "phrases", AND OR NOT, "last week"; none: newest',
            longest=10_000,
        ),
    ] = "",
    look: Look = DEFAULT_LOOK,
    reason_for_search: Annotated[
        str, Arg("why: the context of a short question", unlisted=True)
    ] = "",
    filters: Filters = NO_FILTERS,
    limit: Annotated[
        int | None, Arg("maximum number of results", low=1, high=50, unlisted=True)
    ] = None,
    offset: Annotated[int, Arg(low=0)] = 0,
    max_tokens: MaxTokens = None,
) -> ToolReply:
    """Search what this project and its user decided, fixed and prefer: before design or tool choices,
    before fixes, when the user refers to earlier work. When in doubt, search.
    """
    import logging

    from bethink.app.operations.find import build_filter, count_lines
    from bethink.app.render import quote_items, show_list
    from bethink.ingest.redact import redact
    from bethink.recall.shape import tokens

    wanted = build_filter(memory, filters)
    log = logging.getLogger("bethink")
    if reason_for_search and log.isEnabledFor(logging.DEBUG):
        log.debug("search_memories: %s", redact(reason_for_search[:500]).text)
    budget = max_tokens or memory.config.max_tokens
    limit = limit or count_lines(budget)
    matches: Json = {"query": query}
    if query.strip():
        # The reason is the context of a mere "why?".
        answer = find_spread(
            memory,
            query,
            limit,
            offset,
            filter=wanted,
            mode=look.mode,
            profile=look.intent,
            context=reason_for_search,
        )
        total, shown = answer.total, arrange(memory, answer, budget, offset)
        matches = list_matches(answer, shown)
    else:
        total = memory.store.count(wanted)
        found = memory.list(filter=wanted, limit=limit, offset=offset)
        shown = show_list(memory, found, total, budget, offset)
        index = [{"id": one.id, "kind": one.kind, "summary": one.summary} for one in found]
        matches |= {"index": index, "details": []}
    text = quote_items(shown.items, shown.notes, budget)
    following = {} if shown.following is None else {"next_offset": shown.following}
    numbers = {"total_count": total, "has_more": bool(following), **following}
    return ToolReply(text, {**matches, **numbers, "tokens_used": tokens(text)})


def list_matches(answer: Answer, shown: "ShownMemories") -> Json:
    """Describe an answer for programs: every match by id, and the texts that are shown."""
    from bethink.recall.shape import citation, iso

    texts = {one["id"]: one["content"] for one in shown.details}
    index, details = [], []
    for memory, score, *_ in answer.hits:
        line: Json = {"id": memory.id, "kind": memory.kind, "score": round(score, 3)}
        if memory.id in texts:
            place = {"source": citation(memory), "created_at": iso(memory.created_at)}
            about = {"id": memory.id, **place, "trust": memory.trust}
            details.append({**about, "content": texts[memory.id]})
        else:
            line["summary"] = memory.summary
        index.append(line)
    return {"query": answer.query.raw, "index": index, "details": details}


def arrange(memory: "Bethink", answer: Answer, budget: int, offset: int = 0) -> "ShownMemories":
    from bethink.app.render import WHOLE_TEXTS, Form, ShownMemories, arrange_answer

    arranged = arrange_answer(memory, answer, budget, Form(quoted=True, more=WHOLE_TEXTS), offset)
    both = arranged.both
    return ShownMemories(arranged.items, arranged.notes, both.next, both.details)


def find_spread(
    memory: "Bethink",
    query: str,
    limit: int,
    offset: int = 0,
    *,
    filter: Filter | None = None,
    mode: str | None = None,
    profile: str | None = None,
    context: str = "",
) -> Answer:
    """Search so that no imported document crowds out the rest.

    Passages of a document beyond its share come after the first hits, on later pages. All pages are cut from one order, so each hit is on
    exactly one of them.
    """
    from bethink.text import CAP, spread

    searched = max(LEAST_SEARCHED, WIDER * limit)
    search = partial(
        memory.search,
        query,
        filter=filter,
        mode=mode,
        profile=profile,
        context=context,
        limit=searched,
        seed=SEED,
        rerank=True,
    )
    if offset >= searched:
        answer = search(offset=offset)
        return answer._replace(hits=answer.hits[:limit])
    answer = search()
    ordered = spread(answer.hits, CAP)
    return answer._replace(hits=tuple(ordered[offset : offset + limit]))


@tool(meaning=True, appends=True, destructive=False, idempotent=True)
def store_memories(
    memory: "Bethink",
    memories: Annotated[tuple[Statement, ...], Arg(longest=100)] = (),
    done: Annotated[Ids, Arg("ids of open items to close", aliases=("closes",))] = (),
    automatic: Annotated[str | None, Arg(choices=AUTOMATIC, unlisted=True)] = None,
    analyze: Annotated[
        Literal["files", "git"] | None, Arg("instead: read files or commits", unlisted=True)
    ] = None,
) -> str | list[str]:
    """Remember what was settled: "USER chose A over B, because C"; rules; traps and their remedy; work
    left. Each understood alone. No secrets.
    """
    from bethink.app.operations.write import find_items
    from bethink.app.render import describe_outcomes, many, note_lines, quote_items, short_id

    if bool(analyze) == bool(memories or done):
        raise InvalidInput(
            "Give memories or analyze, one of the two.", 'memories: [{"content": "…"}]'
        )
    if analyze:
        return analyze_project(memory, analyze)
    passages = build_passages(memory, memories)
    closing = find_items(memory, done)  # an unknown id is an error before anything is stored
    outcomes: dict[int, Outcome] = {}
    hints: list[str] = []
    # Personal ones first: a caller without access to them is refused before anything is stored.
    for personal in (True, False):
        group = [at for at, statement in enumerate(memories) if statement.personal == personal]
        if group:
            chosen = [passages[at] for at in group]
            receipt = memory.add_many(chosen, personal=personal, automatic=automatic)
            outcomes.update(zip(group, receipt.outcomes, strict=True))
            hints += receipt.hints
    stored = [outcomes[at] for at in range(len(memories))]
    if hidden := sum(one.redactions for one in stored):
        hints.append(f"{many(hidden, 'private or secret part')} removed before storing.")
    hints += list_gaps(memory, stored)
    lines, touched = describe_outcomes(memory, stored, quoted=True)
    closed = [memory.update(one.id, answered=True) for one in closing]
    lines = [*lines, *(f"closed [{short_id(memory, one.id)}] {one.kind}" for one in closed)]
    return quote_items(touched, [*lines, *note_lines(list(dict.fromkeys(hints)))])


def list_gaps(memory: "Bethink", stored: list[Outcome]) -> list[str]:
    """Say which new notes will mean nothing later, and which decisions lack their reason."""
    from bethink.app.render import short_id
    from bethink.hooks.matching import find_telling_words
    from bethink.language.pointing import NEEDS_CONTEXT, POINTS_BACK_EARLY
    from bethink.language.reasons import find_reason

    vague, bare = [], []
    for one in memory.store.get([one.id for one in stored if one.status == "added"]):
        text = one.content
        short = len(find_telling_words(text)) < LEAST_TELLING
        if short or NEEDS_CONTEXT.holds(text) or POINTS_BACK_EARLY.holds(text):
            vague.append(short_id(memory, one.id))
        elif one.kind == "decision" and not find_reason(text):
            bare.append(short_id(memory, one.id))
    hints = []
    if vague:
        hints.append(
            f"{', '.join(vague)}: not understood without this conversation. update_memory: who chose what over what, and why, with full names."
        )
    if bare:
        hints.append(f"{', '.join(bare)}: no reason. If there was one, add it: update_memory.")
    return hints


def analyze_project(memory: "Bethink", what: str) -> list[str]:
    """Store what the project's files or commits say, as `bethink analyze` does."""
    from bethink.app.records import sync_record
    from bethink.app.render import describe_value, note_lines
    from bethink.features import knowledge

    if not memory.reads_files:
        raise InvalidInput(
            "Files are read only on the project's own machine.", "Run `bethink analyze` there."
        )
    synced = (knowledge.analyze if what == "files" else knowledge.analyze_history)(memory)
    lines = describe_value(sync_record(synced)) or ["Nothing to remember was found."]
    return [*lines, *note_lines(synced.hints)]


@tool(readOnly=True)
def get_memories(
    memory: "Bethink",
    ids: Annotated[Ids, Arg("ids or their beginnings", brief="")],
    max_tokens: MaxTokens = None,
) -> str:
    """Memories in full, with relations."""
    from bethink.app.render import quote_items, show_memories
    from bethink.recall.shape import tokens

    found, budget = memory.get(*dict.fromkeys(ids)), max_tokens or IN_FULL
    left_out = "{} of {} shown; ask for the others with more max_tokens."
    items = show_memories(memory, found, budget)
    if len(items) == len(found):
        return quote_items(items, budget=budget)
    items = show_memories(memory, found, budget - tokens(left_out))
    return quote_items(items, [left_out.format(len(items), len(found))], budget)


@tool(meaning=True, destructive=False, idempotent=True)
def update_memory(
    memory: "Bethink",
    id: Id,
    fields: UpdateFields,
    embedding_text: EmbeddingText = None,
) -> list[str]:
    """Change a memory; the old version is kept."""
    from bethink.app.render import note_lines, short_id

    changed = update_fields(memory, id, fields, embedding_text)
    return [f"updated [{short_id(memory, changed.id)}] {changed.kind}", *note_lines(memory.hints)]


@tool(destructive=True, idempotent=True)
def forget_memories(memory: "Bethink", ids: Ids) -> list[str]:
    """Hide wrong memories. To replace one, store with supersedes."""
    from bethink.app.render import describe_request, note_lines

    done = memory.forget(*dict.fromkeys(ids))
    short = memory.store.abbreviate([*done.ids, *done.proposed])
    lines = [f"forgotten [{short[id]}]" for id in done.ids]
    lines += [f"[{short[id]}] is the user's own word and was not changed" for id in done.proposed]
    back = ["`bethink restore ID` brings a memory back."] if done.ids else []
    return [*lines, *back, *note_lines([*describe_request(done), *done.hints])]


class Rating(NamedTuple):
    id: Annotated[str, Arg(longest=1000)]
    value: Annotated[float, Arg(low=-5, high=5)]


@tool(destructive=False)
def rate_memories(
    memory: "Bethink",
    ids: Ids = (),
    value: Annotated[float | None, Arg(low=-5, high=5)] = None,
    ratings: Annotated[
        tuple[Rating, ...], Arg("several values at once", longest=50, unlisted=True)
    ] = (),
) -> list[str]:
    """Were memories useful (1 to 5) or misleading (-1 to -5)?"""
    from bethink.app.render import note_lines, short_id

    if bool(ids) != (value is not None) or not (ids or ratings):
        raise InvalidInput("Give ids and a value.", 'ids: ["ID"], value: 2')
    # An unknown id is an error before anything is changed.
    votes_asked = [*(Rating(id, value) for id in ids if value is not None), *ratings]
    votes = [(memory.resolve(rating.id), rating.value) for rating in votes_asked]
    lines = []
    for id, value in votes:
        try:
            rated = memory.vote(id, value)
            lines.append(f"votes {rated.usefulness:+g} for [{short_id(memory, id)}]")
        except NeedsPerson as error:
            lines += note_lines([error.full_message])
    return lines


@tool(meaning=True, destructive=False, idempotent=True)
def store_handoff(
    memory: "Bethink",
    summary: str,
    completed: Annotated[Texts, Arg(aliases=("done",))] = (),
    in_progress_blocked: Annotated[Texts, Arg(aliases=("blocked",), unlisted=True)] = (),
    key_decisions: Annotated[Texts, Arg(aliases=("decision",), unlisted=True)] = (),
    next_steps: Annotated[Texts, Arg(aliases=("next",))] = (),
    memory_ids: Annotated[Texts, Arg("memories used", aliases=("memory",), unlisted=True)] = (),
    project: Place = None,
    branch: Place = None,
    metadata: Metadata = NOTHING,
) -> list[str]:
    """Leave notes for the next session. Replaces the branch's last handoff."""
    from bethink.app.render import note_lines, short_id
    from bethink.features import handoffs

    saved = handoffs.save_handoff(
        memory,
        handoffs.Handoff(
            summary=summary,
            completed=completed,
            in_progress_blocked=in_progress_blocked,
            key_decisions=key_decisions,
            next_steps=next_steps,
            memory_ids=memory_ids,
            project=project or "",
            branch=branch or "",
            metadata=metadata,
        ),
    )
    place = handoffs.read_handoff(saved.memory)
    short = short_id(memory, saved.memory.id)
    at = f", branch {place.branch}" if place.branch else ""
    line = f"Handoff stored [{short}] for {place.project}{at}."
    return [line, *note_lines(memory.hints)]


@tool(readOnly=True)
def get_handoff(memory: "Bethink", project: Place = None, branch: Place = None) -> str:
    """The last handoff. Read it when resuming work."""
    from bethink.app.render import quote_items, show_handoff
    from bethink.features import handoffs

    last = handoffs.find_latest(memory, branch)
    if last is None:
        return "There is no handoff for this project yet. store_handoff leaves one."
    items = show_handoff(memory, last)
    return quote_items(items, last.notes, HANDOFF + 60 * len(items))


@tool(readOnly=True)
def memory_overview(memory: "Bethink") -> list[str]:
    """Counts, open questions and todos, recent topics."""
    from bethink.app.render import note_lines, talk_lines
    from bethink.features import conversations
    from bethink.hooks.briefing import render_briefing
    from bethink.hooks.state import Hook
    from bethink.outgoing import fence_text
    from bethink.recall.shape import cut_to

    shown: list[str] = [render_briefing(Hook("session-start", "claude"), memory, _OVERVIEW).text]
    lines: list[str] = []
    for session in conversations.sessions(memory, SESSIONS):
        lines += talk_lines(session, conversations.topics(memory, session))
    if lines:
        shown += ["Recent sessions:", fence_text(cut_to("\n".join(lines), TALKED))]
    seen = memory.stats(memory.scopes)
    kinds = ", ".join(f"{number} {kind}" for kind, number in seen.by_kind.items())
    shown.append(f"Project {memory.project.name}: {seen.memories:,} memories ({kinds or 'none'}).")
    return [*filter(None, shown), *note_lines(memory.hints)]


# Prompts

SEARCH_WELL = """\
Search the project's memory with search_memories for: {topic}

How to find it:
- Ask a whole question first. Then try the words that the memory itself would hold: names, error messages, file names.
- mode keyword for exact names and messages, mode vector for an idea in other words, otherwise leave mode out.
- "A phrase" in quotes, prefix*, AND, OR, NOT; "last week", "since March", "open questions", "decisions about" are understood.
- Narrow by kinds ({kinds}), entities or since. Widen by leaving them out.
- intent continuity to resume work, fact_check to verify, associative or explore for ideas.
- get_memories gives whole texts of the ids that matter; rate_memories says afterwards which ones helped.

Cite the ids you rely on. Say so if memory holds nothing about it."""

ANSWER_FROM_MEMORY = """\
Answer from memory: {question}

What memory holds about it follows. Group the answer by topic, name dates and where things come from, cite ids, and say what was
replaced by what. If it does not answer the question, search again with search_memories in other words; if that finds nothing either, say so.

{found}"""


@prompt()
def query(
    memory: "Bethink", topic: Annotated[str, Arg("what you want to know about", longest=2000)]
) -> str:
    """Search the project's memory well"""
    from bethink.outgoing import fill

    return fill(SEARCH_WELL, topic=topic, kinds=", ".join(KINDS))


@prompt(meaning=True)
def remember(
    memory: "Bethink", question: Annotated[str, Arg("what you want to know", longest=2000)]
) -> str:
    """Answer a question from memory, with sources"""
    from bethink.app.render import quote_items
    from bethink.outgoing import fill

    shown = arrange(memory, find_spread(memory, question, 15), _REMEMBERED)
    found = quote_items(shown.items, shown.notes, _REMEMBERED)
    return fill(ANSWER_FROM_MEMORY, question=question, found=found)
