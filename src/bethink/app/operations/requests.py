"""Arguments that several operations share, each declared once."""

from typing import Annotated, NamedTuple

from bethink.app.operation import Arg
from bethink.model import MODES, Strings

MEMORY_COLUMNS = (
    *("memories", "memory"),
    *(
        "id",
        "score",
        "kind",
        "scope",
        "source",
        "path",
        "lines",
        "created_at",
        "summary",
        "content",
    ),
)
LIST_ORDERS = ("created", "oldest", "importance", "used", "useful", "updated")

WHICH = "which memories"
HOW = "how to search"

Id = Annotated[
    str, Arg("an id or any unique beginning of one", metavar="ID", longest=1000, positional=True)
]
Ids = Annotated[
    Strings,
    Arg(
        "ids or any unique beginnings of them",
        metavar="ID",
        positional=True,
        aliases=("id",),
        on={"mcp": Arg(longest=50)},
    ),
]
# The surface reads it too, when it opens memory: it decides where ids are looked up, and whether a project is named beside a memory.
AllProjects = Annotated[
    bool,
    Arg(
        "every project, not only this one and personal memories",
        without=("mcp",),
        on={"http": Arg("every project that the token is for")},
    ),
]
Limit = Annotated[int, Arg("maximum number of results", short="-n", metavar="N", low=1)]
Offset = Annotated[
    int,
    Arg("skip the first N", metavar="N", low=0, on={"http": Arg("`next` of the previous page")}),
]
MaxTokens = Annotated[int | None, Arg("token budget of the answer", metavar="N", low=1)]
Rerank = Annotated[
    bool | None,
    Arg(
        "let the judge read the best hits again: slower, better for questions (default for recall)",
        group=HOW,
        without=("mcp",),
    ),
]


class Look(NamedTuple):
    """Options of a search."""

    mode: Annotated[
        str | None,
        Arg(
            "hybrid (meaning and words), vector (meaning) or keyword (words)",
            choices=MODES,
            group=HOW,
            unlisted=True,
        ),
    ] = None
    intent: Annotated[
        str | None,
        Arg(
            "also weigh recency and use: relevance, balanced, continuity, fact_check, frequent, associative, explore,"
            ' a profile from your settings, or weights such as "relevance=0.6 recency=0.4"',
            metavar="NAME",
            aliases=("profile",),
            group=HOW,
            unlisted=True,
        ),
    ] = None
    threshold: Annotated[
        float | None,
        Arg("minimum score, 0 to 1", metavar="SCORE", low=0, high=1, group=HOW, without=("mcp",)),
    ] = None
    seed: Annotated[
        int | None,
        Arg(
            "make an intent's random choices repeatable",
            metavar="N",
            low=0,
            high=2**32,
            group=HOW,
            without=("mcp",),
        ),
    ] = None
    context: Annotated[
        str | None,
        Arg(
            'the conversation so far, for a question such as "and the other one?"',
            metavar="TEXT",
            group=HOW,
            without=("mcp",),
        ),
    ] = None
    hyde: Annotated[
        bool,
        Arg(
            "also search near an answer that the language model guesses",
            group=HOW,
            without=("mcp",),
        ),
    ] = False


class Filters(NamedTuple):
    """Filters of memories."""

    kinds: Annotated[
        Strings,
        Arg(
            "only these kinds",
            metavar="KIND",
            aliases=("kind",),
            commas=True,
            group=WHICH,
            brief="",
        ),
    ] = ()
    entities: Annotated[
        Strings,
        Arg(
            "only about any of these",
            metavar="NAME",
            aliases=("entity",),
            commas=True,
            group=WHICH,
            unlisted=True,
        ),
    ] = ()
    tags: Annotated[
        Strings,
        Arg(
            "only with any of these tags",
            metavar="TAG",
            aliases=("tag",),
            commas=True,
            group=WHICH,
            unlisted=True,
        ),
    ] = ()
    sources: Annotated[
        Strings,
        Arg(
            "only from these sources",
            metavar="SOURCE",
            aliases=("source",),
            group=WHICH,
            without=("mcp",),
        ),
    ] = ()
    session: Annotated[
        str | None,
        Arg(
            "only from this conversation; the beginning of its id is enough",
            metavar="ID",
            group=WHICH,
            unlisted=True,
        ),
    ] = None
    hosts: Annotated[
        Strings,
        Arg(
            "only from conversations with these agents: claude, codex …",
            metavar="HOST",
            aliases=("host",),
            commas=True,
            group=WHICH,
            without=("mcp",),
        ),
    ] = ()
    since: Annotated[
        str | None,
        Arg(
            "created at or after: 7d, yesterday, 2026-03-01, 1.3.2026 (03/04/2026 is 3 April)",
            metavar="TIME",
            group=WHICH,
            unlisted=True,
        ),
    ] = None
    until: Annotated[
        str | None, Arg("created before", metavar="TIME", group=WHICH, without=("mcp",))
    ] = None
    as_of: Annotated[
        str | None, Arg("as valid at that time", metavar="TIME", group=WHICH, without=("mcp",))
    ] = None
    min_importance: Annotated[
        float | None,
        Arg("minimum importance, 0 to 10", metavar="N", low=0, high=10, group=WHICH, unlisted=True),
    ] = None
    answered: Annotated[
        bool | None,
        Arg(
            "only answered questions and finished to-dos",
            negative="unanswered",
            group=WHICH,
            without=("mcp",),
        ),
    ] = None
    include_expired: Annotated[
        bool, Arg("include expired memories", group=WHICH, unlisted=True)
    ] = False
    include_deleted: Annotated[
        bool, Arg("include forgotten memories", group=WHICH, unlisted=True)
    ] = False
    include_superseded: Annotated[
        bool, Arg("include replaced memories", group=WHICH, without=("mcp",))
    ] = False
    include_quarantined: Annotated[
        bool, Arg("include quarantined memories", group=WHICH, without=("mcp",))
    ] = False
    all_projects: Annotated[AllProjects, Arg(group=WHICH, one_of="scope")] = False
    personal: Annotated[
        bool, Arg("only personal memories", group=WHICH, one_of="scope", without=("mcp",))
    ] = False


DEFAULT_LOOK, NO_FILTERS = Look(), Filters()
