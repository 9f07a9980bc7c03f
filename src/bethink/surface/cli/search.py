"""`search` and `recall`: a question → the memories that answer it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from bethink.errors import UsageError
from bethink.surface.cli import output
from bethink.surface.cli.filters import chosen, filter_options, projects
from bethink.surface.cli.parsing import FORMATS, Command, count, number, offset
from bethink.surface.cli.session import given_text, opened

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from bethink.api import Bethink
    from bethink.types import Answer

# In the index-and-details form half of the budget is left for details: an index line costs at most about 40 tokens.
TOKENS_PER_LINE = 80
LINES = 50


def ranking_options(parser: ArgumentParser) -> None:
    from bethink.config import PROFILES
    from bethink.types import MODES

    group = parser.add_argument_group("how to look")
    group.add_argument(
        "--mode",
        choices=MODES,
        metavar="MODE",
        help="hybrid: by meaning and words; vector: by meaning; keyword: by words",
    )
    group.add_argument(
        "--profile",
        "--intent",
        choices=PROFILES,
        metavar="NAME",
        help=f"weigh recency and use too: {', '.join(PROFILES)}",
    )
    group.add_argument("--limit", "-n", type=count, metavar="N", help="how many at most")
    group.add_argument(
        "--offset", type=offset, default=0, metavar="N", help="leave out the first N"
    )
    group.add_argument(
        "--threshold", type=number, metavar="SCORE", help="only scores (0 to 1) from here on"
    )
    group.add_argument(
        "--seed", type=int, metavar="N", help="make the chance in an intent repeatable"
    )
    group.add_argument(
        "--hyde",
        action="store_true",
        help="look near what the language model supposes the answer to be, too",
    )
    group.add_argument(
        "--max-tokens", type=count, metavar="N", help="token budget of the index-and-details form"
    )


def search_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "query",
        nargs="+",
        metavar="QUERY",
        help='a question, words, "a phrase", prefix*, AND OR NOT, tags:word; - reads stdin',
    )
    parser.add_argument("--explain", action="store_true", help="show each signal's part in a score")
    parser.add_argument(
        "--dual",
        action="store_true",
        help="an index of all matches, then details within --max-tokens",
    )
    ranking_options(parser)
    filter_options(parser)


def search(args: Namespace) -> None:
    """Find memories of this project and personal ones, best first. Never changes anything.

    Examples:
      bethink search "how do we deploy?"
      bethink search auth token --mode keyword --kind decision,gotcha --since 30d
      bethink search "what were we doing" --intent continuity --limit 5
      bethink search '"rate limit" AND redis' --explain --json
    """
    query = given_text(args.query, None, 'bethink search "how do we deploy?"')
    with opened(args) as memory:
        dual = args.dual or args.max_tokens is not None
        if dual and args.format not in ("text", "json"):
            raise UsageError(
                f"The index-and-details form cannot be shown as {args.format}.",
                "Use --format text or json with --dual.",
            )
        answer = ask(args, memory, query, dual)
        if args.for_agent and args.format == "text":
            quote_answer(args, memory, answer)
        elif dual:
            show_dual(args, memory, answer)
        else:
            show_hits(args, memory, answer)


def recall_options(parser: ArgumentParser) -> None:
    parser.add_argument("question", nargs="+", metavar="QUESTION", help="in words; - reads stdin")
    ranking_options(parser)
    filter_options(parser)


def recall(args: Namespace) -> None:
    """Answer a question from memory, for reading: the best matches in full with where they come from, how sure they are
    and what they replaced; then an index of the others; then totals. All within a token budget.

    Examples:
      bethink recall "why did we leave MySQL?"
      bethink recall "open questions about billing" --max-tokens 2000
      bethink recall "what do I prefer in reviews?" --personal --json
    """
    question = given_text(args.question, None, 'bethink recall "why did we leave MySQL?"')
    with opened(args) as memory:
        answer = ask(args, memory, question, dual=True)
        show = quote_answer if args.for_agent and args.format == "text" else show_dual
        show(args, memory, answer)


def ask(args: Namespace, memory: Bethink, question: str, dual: bool) -> Answer:
    limit = args.limit
    if dual and limit is None:
        limit = max(5, min(LINES, (args.max_tokens or memory.config.max_tokens) // TOKENS_PER_LINE))
    find: Callable[..., Answer] = memory.search
    if args.hyde:
        from bethink.features import language

        find = partial(language.search, memory)
    answer = find(
        question,
        filter=chosen(args, memory),
        mode=args.mode,
        profile=args.profile,
        limit=limit,
        offset=args.offset,
        threshold=args.threshold,
        seed=args.seed,
    )
    for hint in answer.hints if not args.for_agent else ():
        output.hint(args, hint)
    if not answer.hits and not args.for_agent:
        output.note(args, "No memories match.")
        output.hint(
            args,
            "Try other words, --all-projects, or --include-superseded; `bethink list` shows what there is.",
        )
    return answer


def show_hits(args: Namespace, memory: Bethink, answer: Answer) -> None:
    from bethink.recall.shape import plain_hit
    from bethink.surface import render

    def text() -> None:
        short = render.short_ids_of_hits(memory, answer.hits)
        places = projects(args, memory)
        for line in render.hit_lines(answer, short, args.offset + 1, args.explain, places):
            output.out(line)

    records: Iterable[dict[str, Any]] = (plain_hit(hit, args.explain) for hit in answer.hits)
    if args.format != "json":
        records = map(render.flatten_record, records)
    fields = (*render.FIELDS, "why") if args.explain else render.FIELDS
    output.show_list(args, records, fields, text, "searchResults", "result", query=answer.query.raw)


def quote_answer(args: Namespace, memory: Bethink, answer: Answer) -> None:
    """What an agent reads: the same marks, origins and cleaning as by MCP."""
    from bethink.surface import render

    budget = args.max_tokens or memory.config.max_tokens
    more = "`bethink get ID` gives whole texts."
    explain = getattr(args, "explain", False)
    output.out(render.quote_answer(memory, answer, budget, more, explain))


def show_dual(args: Namespace, memory: Bethink, answer: Answer) -> None:
    from bethink.surface import render

    arranged = render.arrange_answer(memory, answer, args.max_tokens or memory.config.max_tokens)
    both = arranged.both

    def text() -> None:
        if answer.hits:
            short = render.short_ids_of_hits(memory, answer.hits)
            for line in render.answer_lines(arranged, short, projects(args, memory)):
                output.out(line)
        if both.index and not both.details:
            output.hint(
                args, "No match fits the budget in full; raise --max-tokens, or `bethink get ID`."
            )

    value = {
        "query": both.query,
        "index": both.index,
        "details": both.details,
        "total_count": both.total_count,
        "has_more": both.has_more,
        "tokens_used": both.tokens_used,
        "hints": both.hints,
        "topics": [
            {
                "id": span.id,
                "name": span.name,
                "summary": span.summary,
                "session": span.session,
                "memories": [hit.memory.id for hit in together],
            }
            for span, together in arranged.topics
            if span
        ],
    }
    output.show(args, value, text)


COMMANDS = {
    "search": Command(search, search_options, FORMATS),
    "recall": Command(recall, recall_options),
}
