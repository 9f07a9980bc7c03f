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
        if dual:
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
        show_dual(args, memory, ask(args, memory, question, dual=True))


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
    for hint in answer.hints:
        output.hint(args, hint)
    if not answer.hits:
        output.note(args, "No memories match.")
        output.hint(
            args,
            "Try other words, --all-projects, or --include-superseded; `bethink list` shows what there is.",
        )
    return answer


def show_hits(args: Namespace, memory: Bethink, answer: Answer) -> None:
    from bethink.recall.shape import plain_hit
    from bethink.surface.cli import shown

    def text() -> None:
        for line in shown.hits(
            answer,
            abbreviated(memory, answer),
            args.offset + 1,
            args.explain,
            projects(args, memory),
        ):
            output.out(line)

    records: Iterable[dict[str, Any]] = (plain_hit(hit, args.explain) for hit in answer.hits)
    if args.format != "json":
        records = map(shown.flat, records)
    fields = (*shown.FIELDS, "why") if args.explain else shown.FIELDS
    output.show_list(args, records, fields, text, "searchResults", "result", query=answer.query.raw)


def show_dual(args: Namespace, memory: Bethink, answer: Answer) -> None:
    from bethink.recall.shape import by_topic, dual
    from bethink.surface.cli import shown

    both = dual(
        answer,
        args.max_tokens or memory.config.max_tokens,
        lambda one: memory.store.around(one.id, 1, 1),
    )
    spoken = [hit.memory for hit in answer.hits if hit.memory.span]
    spans = (
        memory.store.spans_by_id(
            [str(one.span) for one in spoken], tuple({one.scope for one in spoken})
        )
        if spoken
        else {}
    )

    def text() -> None:
        if answer.hits:
            for line in shown.dual(
                answer, both, abbreviated(memory, answer), spans, projects(args, memory)
            ):
                output.out(line)
        if both.index and not both.details:
            output.hint(
                args, "No match fits the budget in full; raise --max-tokens, or `bethink get ID`."
            )

    full = {shaped["id"] for shaped in both.details}
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
            for span, together in by_topic(
                [hit for hit in answer.hits if hit.memory.id in full], spans
            )
            if span
        ],
    }
    output.show(args, value, text)


def abbreviated(memory: Bethink, answer: Answer) -> dict[str, str]:
    ids = [hit.memory.id for hit in answer.hits]
    ids += [hit.memory.superseded_by for hit in answer.hits if hit.memory.superseded_by]
    return memory.store.abbreviate(
        [*ids, *(other.id for hit in answer.hits for _, other in hit.related)]
    )


COMMANDS = {
    "search": Command(search, search_options, FORMATS),
    "recall": Command(recall, recall_options),
}
