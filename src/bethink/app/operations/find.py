"""Find and read memories: search, recall, why, today, get, list, todo, history."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from bethink.app.operation import Arg, operation
from bethink.app.operations.requests import (
    DEFAULT_LOOK,
    LIST_ORDERS,
    MEMORY_COLUMNS,
    NO_FILTERS,
    AllProjects,
    Filters,
    Id,
    Ids,
    Limit,
    Look,
    MaxTokens,
    Offset,
    Rerank,
)
from bethink.errors import UsageError
from bethink.model import EVERYTHING, OPEN_KINDS, PERSONAL, Answer, Event, Filter, Memory

if TYPE_CHECKING:
    from bethink.api import Bethink
    from bethink.features.explain import Explanation

# In the index-and-details form a match costs about 20 tokens at least.
TOKENS_PER_LINE, FEWEST_LINES, _MOST_LINES = 20, 5, 50
NO_LIMIT = 2**62
AROUND = 3  # turns or passages on either side of a memory

Query = Annotated[
    str,
    Arg(
        'a question, words, "a phrase", prefix*, AND OR NOT, tags:word',
        words=True,
        longest=10_000,
    ),
]
QueryLimit = Annotated[
    int | None,
    Arg("maximum number of results", short="-n", metavar="N", low=1, on={"http": Arg(high=100)}),
]


class SearchResult(NamedTuple):
    """The answer to a question, and how it is to be shown."""

    answer: Answer
    offset: int = 0
    explain: bool = False  # show each signal
    budget: int | None = None  # tokens of the index-and-details form


class Listed(NamedTuple):
    """A page of memories in order."""

    memories: Sequence[Memory]
    total: int
    offset: int = 0


class OpenItems(NamedTuple):
    """Open items, the number of those that count as open, and of all that nobody closed."""

    memories: Sequence[Memory]
    open: int
    total: int


class Day(NamedTuple):
    """A day or another time: digests of its sessions, and what was said, decided and done."""

    when: str
    sessions: Sequence[Memory]
    memories: Sequence[Memory]


class Shown(NamedTuple):
    """Memories in full, and for each the text around it where it came from, if that was asked for."""

    memories: Sequence[Memory]
    around: Mapping[str, Sequence[Memory]] | None = None


def count_lines(budget: int) -> int:
    """Return how many matches to ask for, so that they fill a token budget."""
    return max(FEWEST_LINES, min(_MOST_LINES, budget // TOKENS_PER_LINE))


def build_filter(memory: "Bethink", filters: Filters, **more: object) -> Filter:
    """Resolve filters into those of the store. `more` overrides them."""
    from bethink.language.times import moment
    from bethink.text import as_entity, split_lists

    now = memory.clock()
    scopes: Sequence[str] = (PERSONAL,) if filters.personal else ()
    if filters.all_projects:
        scopes = memory.every_scope()
    times = {"since": filters.since, "until": filters.until, "as_of": filters.as_of}
    wanted = {
        "kinds": split_lists(filters.kinds),
        "entities": tuple(as_entity(name).name for name in split_lists(filters.entities)),
        "tags": split_lists(filters.tags),
        "sources": filters.sources,
        "session": memory.find_session(filters.session, scopes).id if filters.session else None,
        "hosts": split_lists(filters.hosts),
        "scopes": scopes,
        "min_importance": filters.min_importance,
        "answered": filters.answered,
        **{name: moment(text, now) for name, text in times.items() if text},
        **{name: getattr(filters, name) for name in EVERYTHING},
        **more,
    }
    return memory.filter(**wanted)


def ask(
    memory: "Bethink",
    question: str,
    look: Look,
    filters: Filters,
    *,
    limit: int | None,
    offset: int,
    rerank: bool,
) -> Answer:
    """Answer a question."""
    from bethink.text import replace_broken

    find: Any = memory.search
    if look.hyde:
        from functools import partial

        from bethink.features import language

        find = partial(language.search, memory)
    answer: Answer = find(
        replace_broken(question),  # a terminal may give something that is not UTF-8
        filter=build_filter(memory, filters),
        mode=look.mode,
        profile=look.intent,
        threshold=look.threshold,
        seed=look.seed,
        context=look.context or "",
        limit=limit,
        offset=offset,
        rerank=rerank,
    )
    return answer


@operation(
    "Everyday",
    http="GET /search",
    tool="search_memories",
    agents="read",
    opens="read",
    lists=("searchResults", "result", *MEMORY_COLUMNS[2:]),
    traits=("meaning",),
    examples=(
        'bethink search "how do we deploy?"',
        "bethink search auth token --mode keyword --kind decision,gotcha --since 30d",
        'bethink search "what were we doing" --intent continuity --limit 5',
        "bethink search '\"rate limit\" AND redis' --explain --json",
    ),
)
def search(
    memory: "Bethink",
    query: Query,
    explain: Annotated[
        bool, Arg("show how each signal contributes to a score", without=("mcp",))
    ] = False,
    dual: Annotated[
        bool,
        Arg("an index of all matches, then details within --max-tokens", without=("mcp", "http")),
    ] = False,
    look: Look = DEFAULT_LOOK,
    rerank: Rerank = None,
    limit: QueryLimit = None,
    offset: Offset = 0,
    max_tokens: Annotated[MaxTokens, Arg(without=("http",))] = None,
    filters: Filters = NO_FILTERS,
) -> SearchResult:
    """Find memories, best first.

    Searches this project and personal memories. Changes nothing.
    """
    if dual or max_tokens is not None:
        return recall(memory, query, look, bool(rerank), limit, offset, max_tokens, filters)
    answer = ask(memory, query, look, filters, limit=limit, offset=offset, rerank=bool(rerank))
    return SearchResult(answer, offset, explain)


@operation(
    "Everyday",
    http="GET /recall",
    agents="read",
    opens="read",
    traits=("meaning",),
    examples=(
        'bethink recall "why did we leave MySQL?"',
        'bethink recall "open questions about billing" --max-tokens 2000',
        'bethink recall "what do I prefer in reviews?" --personal --json',
    ),
)
def recall(
    memory: "Bethink",
    query: Annotated[Query, Arg("a question in plain words", metavar="QUESTION")],
    look: Look = DEFAULT_LOOK,
    rerank: Rerank = None,
    limit: QueryLimit = None,
    offset: Offset = 0,
    max_tokens: Annotated[MaxTokens, Arg(on={"http": Arg(low=50, high=1_000_000)})] = None,
    filters: Filters = NO_FILTERS,
) -> SearchResult:
    """Answer a question from memory: the best matches in full, the rest as an index.

    Each match comes with its source, its confidence and the memories that it replaced. The whole answer fits a token budget.
    """
    budget = max_tokens or memory.config.max_tokens
    answer = ask(
        memory,
        query,
        look,
        filters,
        limit=limit or count_lines(budget),
        offset=offset,
        rerank=rerank is not False,
    )
    return SearchResult(answer, offset, budget=budget)


@operation(
    "Everyday",
    agents="read",
    opens="read",
    examples=("bethink why pnpm", "bethink why the billing database --json"),
)
def why(
    memory: "Bethink",
    subject: Annotated[str, Arg("the subject of a decision, or its id", words=True)],
) -> "tuple[str, Explanation | None]":
    """Explain a decision: the statement, its reason, what it replaced and where it was said."""
    from bethink.features.explain import explain
    from bethink.language.questions import NEGATED_WHY

    bare = NEGATED_WHY.sub("", subject) or subject
    return bare, explain(memory, bare)


@operation(
    "Everyday",
    agents="read",
    opens="read",
    lists=MEMORY_COLUMNS,
    examples=(
        "bethink today",
        "bethink today yesterday",
        'bethink today "last week" --format md',
    ),
)
def today(
    memory: "Bethink",
    when: Annotated[
        str, Arg('another time: yesterday, "last week", "since monday"', positional=True)
    ] = "today",
    limit: Limit = 50,
) -> Day:
    """List what was said, decided and done today or at another time.

    The newest comes first.
    """
    from bethink.recall.period import list_period
    from bethink.recall.query import parse
    from bethink.recall.resume import list_digests

    query, wanted = parse(f"what did we do {when}", memory.clock()), memory.filter()
    if not query.recap:
        raise UsageError(
            f"'{when}' is not a time.",
            "Write a day or a span: yesterday, 'last week', 'since monday', 2026-03-01.",
        )
    listed, _ = list_period(query, wanted, limit, 0, memory.store)
    sessions = list_digests(query, wanted, memory.store)
    return Day(when, sessions, [hit.memory for hit in listed])


@operation(
    "Everyday",
    http="GET /memories/{id}",
    tool="get_memories",
    agents="read",
    opens="read",
    lists=MEMORY_COLUMNS,
    examples=(
        "bethink get 01a1dd89",
        "bethink get 01a1dd89 --source",
        "bethink get 01a1dd89 01a1de02 --json",
        "bethink search deploy --json | jq -r '.[0].id' | xargs bethink get",
    ),
)
def get(
    memory: "Bethink",
    ids: Ids,
    all_projects: Annotated[AllProjects, Arg(without=("http",))] = False,
    source: Annotated[
        bool, Arg("with the text around it where it came from", without=("http", "mcp"))
    ] = False,
    count: Annotated[bool, Arg("count this as a use", without=("cli", "mcp"))] = True,
) -> Shown:
    """Show memories by id, in full.

    Each comes with its source and its relations. Counts as a use of each.
    """
    found = memory.get(*dict.fromkeys(ids), count=count)
    around = None
    if source:
        from bethink.features.conversations import find_place

        places = {one.id: find_place(memory, one) for one in found}
        around = {
            id: memory.store.around(place, AROUND, AROUND) if place else []
            for id, place in places.items()
        }
    return Shown(found, around)


@operation(
    "Everyday",
    http="GET /memories",
    agents="read",
    opens="read",
    lists=MEMORY_COLUMNS,
    examples=(
        "bethink list",
        "bethink list --kind question,todo --since 2w",
        "bethink list --order importance --all --format csv",
        "bethink list --include-deleted --json",
    ),
)
def list_(
    memory: "Bethink",
    order: Annotated[str, Arg("sort order", choices=LIST_ORDERS)] = "created",
    limit: Annotated[Limit, Arg(on={"http": Arg(high=100, default=50)})] = 20,
    offset: Offset = 0,
    all: Annotated[bool, Arg("no limit", without=("http", "mcp"))] = False,
    filters: Filters = NO_FILTERS,
) -> Listed:
    """List memories by time, importance or use.

    The newest come first by default.
    """
    wanted = build_filter(memory, filters)
    most = NO_LIMIT if all else limit
    found = memory.list(filter=wanted, limit=most, offset=offset, order=order)
    return Listed(found, memory.store.count(wanted), offset)


@operation(
    "Everyday",
    agents="read",
    opens="read",
    lists=MEMORY_COLUMNS,
    examples=("bethink todo", "bethink todo --json"),
)
def todo(
    memory: "Bethink",
    limit: Limit = 20,
    all: Annotated[bool, Arg("also items that their conversation may have settled")] = False,
    all_projects: AllProjects = False,
) -> OpenItems:
    """List open to-dos, questions and problems.

    The newest comes first. `bethink todo TEXT` adds one, as `bethink add --kind todo TEXT` does; `bethink done` closes one. Items of
    conversations that went on after them may be settled: `--all` lists them, too.
    """
    from bethink.recall.resume import list_open

    scopes = memory.every_scope() if all_projects else ()
    wanted = memory.filter(kinds=OPEN_KINDS, answered=False, scopes=scopes)
    total = memory.store.count(wanted)
    if all:
        return OpenItems(memory.list(filter=wanted, limit=limit), total, total)
    failures = memory.list(filter=wanted._replace(kinds=("failure",)), limit=limit)
    found = [*list_open(wanted, memory.store), *failures]
    found.sort(key=lambda one: one.created_at, reverse=True)
    return OpenItems(found[:limit], len(found), total)


@operation(
    "Everyday",
    http="GET /memories/{id}/history",
    agents="read",
    opens="read",
    lists=("history", "version", "version", "at", "actor", "action", "before", "after"),
    examples=(
        "bethink history 01a1dd89",
        "bethink history 01a1dd89 --json",
        "bethink restore 01a1dd89 --to 2",
    ),
)
def history(
    memory: "Bethink",
    id: Id,
    all_projects: Annotated[AllProjects, Arg(without=("http",))] = False,
) -> Sequence[Event]:
    """Show every version of a memory: when, by whom and what changed.

    The numbers are those that `bethink restore ID --to N` takes.
    """
    return memory.history(id)
