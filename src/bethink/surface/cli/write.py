"""`add`, `update`, `vote` and `link`: what people tell their memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bethink.errors import BethinkError, InvalidInput, UsageError
from bethink.surface.cli import output
from bethink.surface.cli.filters import reach_option
from bethink.surface.cli.parsing import Command, number, pieces
from bethink.surface.cli.session import given_text, opened

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from bethink.api import Bethink
    from bethink.types import Memory, Outcome


def value_options(parser: ArgumentParser) -> None:
    parser.add_argument("--file", metavar="FILE", help="take the text from a file")
    parser.add_argument(
        "--kind", metavar="KIND", help="decision, fact, preference, question, todo, gotcha …"
    )
    parser.add_argument("--importance", type=number, metavar="N", help="0 to 10")
    parser.add_argument("--confidence", type=number, metavar="N", help="0 to 1")
    parser.add_argument(
        "--tag", action="append", metavar="TAG", help="may be repeated or a comma list"
    )
    parser.add_argument(
        "--entity",
        action="append",
        metavar="NAME",
        help="what it is about: Redis, person:Ada; may be repeated",
    )
    parser.add_argument("--expires", metavar="TIME", help="30d, or a date")
    parser.add_argument("--summary", metavar="TEXT", help="one line; made by rules if not given")
    parser.add_argument(
        "--metadata", action="append", metavar="KEY=VALUE", help="or a JSON object; may be repeated"
    )


def values(args: Namespace, memory: Bethink) -> dict[str, Any]:
    """The fields that the options give, those that were not given left out."""
    from bethink.text.when import expiry

    given: dict[str, Any] = {
        "kind": args.kind,
        "importance": args.importance,
        "confidence": args.confidence,
        "tags": None if args.tag is None else pieces(args.tag),
        "entities": None
        if args.entity is None
        else tuple(name for name in args.entity if name.strip()),
        "expires_at": expiry(args.expires, memory.clock()) if args.expires else None,
        "summary": args.summary,
        "metadata": None if args.metadata is None else parsed_metadata(args.metadata),
    }
    return {name: value for name, value in given.items() if value is not None}


def parsed_metadata(parts: Sequence[str]) -> dict[str, Any]:
    import json

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    found: dict[str, Any] = {}
    for part in parts:
        if part.lstrip().startswith("{"):
            try:
                found |= json.loads(part, parse_constant=refuse)
            except (ValueError, RecursionError) as error:
                raise InvalidInput(
                    f"The metadata {output.one_line(part, 60)} is not a JSON object: {error}.",
                    "--metadata '{\"ticket\": 42}'",
                ) from None
        else:
            key, equals, value = part.partition("=")
            if not equals or not key.strip():
                raise InvalidInput(
                    f"The metadata '{output.one_line(part, 60)}' has no key.",
                    "--metadata ticket=42",
                )
            found[key.strip()] = value
    return found


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "text", nargs="*", metavar="TEXT", help="the statement; - or nothing reads stdin"
    )
    value_options(parser)
    parser.add_argument("--personal", action="store_true", help="follows you into every project")
    parser.add_argument(
        "--team",
        action="store_true",
        help="for everybody who shares the database, in every project (PostgreSQL)",
    )
    parser.add_argument(
        "--supersedes",
        action="append",
        metavar="ID",
        default=[],
        help="the memory that this one replaces; may be repeated",
    )
    parser.add_argument("--source", metavar="NAME", help="where it comes from")
    parser.add_argument(
        "--no-dedup", action="store_true", help="keep it even if something much like it is known"
    )
    parser.add_argument("--force", action="store_true", help="even if this text was purged before")


def add(args: Namespace) -> None:
    """Remember one statement. Kind, summary and entities are found by rules where they are not given. What stands in
    <private>…</private> and what looks like a secret is taken out before anything is stored. Says so when the same, or
    nearly the same, is already known.

    Examples:
      bethink add "We deploy from main, never from a branch" --kind decision --tag deploy
      git log -1 --format=%B | bethink add --source git
      bethink add --file notes/auth.txt --importance 8 --entity technology:OAuth
      bethink add "The staging password changes on Friday" --expires 7d --personal
    """
    text = given_text(args.text, args.file, 'bethink add "We deploy on Fridays"')
    with opened(args, make=True) as memory:
        outcome = memory.add(
            text,
            **values(args, memory),
            personal=args.personal,
            team=args.team,
            supersedes=args.supersedes,
            source=args.source or args.file,
            dedup=False if args.no_dedup else None,
            allow_purged=args.force,
        )
        for hint in getattr(memory, "hints", ()):
            output.hint(args, hint)
        if outcome.status == "purged":
            raise BethinkError(
                "This text was purged, so it is not taken in again.",
                "Add --force to remember it all the same.",
            )
        output.show(args, outcome.plain(), lambda: tell(args, memory, outcome))


def tell(args: Namespace, memory: Bethink, outcome: Outcome) -> None:
    from bethink.surface import render

    ids = [outcome.id, *outcome.supersedes, *(one.id for one in outcome.proposals)]
    short = memory.store.abbreviate(ids)
    found = {one.id: one for one in memory.store.get(ids)}
    if outcome.status == "added":
        output.out(f"added {render.memory_label(found[outcome.id], short)}")
        for id in outcome.supersedes:
            output.out(f"  supersedes {short[id]}: {output.one_line(found[id].summary, 80)}")
        for proposal in outcome.proposals:
            known = found[proposal.id]
            about = output.one_line(known.summary or known.content, 80)
            output.out(f"  may replace {short[known.id]} ({proposal.reason}): {about}")
            output.hint(args, f"bethink link {short[outcome.id]} supersedes {short[known.id]}")
    else:
        similarity = (
            f" (similarity {outcome.similarity:.2f})"
            if outcome.status == "near_duplicate" and outcome.similarity
            else ""
        )
        one = found[outcome.id]
        output.out(
            f"{outcome.status.replace('_', ' ')} of {short[one.id]}{similarity}: {output.one_line(one.summary or one.content, 80)}"
        )
        if outcome.status == "near_duplicate":
            output.hint(
                args,
                f"--no-dedup keeps both; `bethink update {short[one.id]} --content …` changes the known one.",
            )
    if outcome.status == "added" and not args.personal and not args.team:
        tell_place(args, memory)
    if outcome.redactions:
        output.hint(
            args,
            f"{output.many(outcome.redactions, 'private or secret part')} taken out before storing.",
        )


def tell_place(args: Namespace, memory: Bethink) -> None:
    """What is told outside of any project is easily lost sight of: said at the first memory, and in the home directory at each."""
    from pathlib import Path

    from bethink.project import is_marked

    root = memory.project.root
    if memory.shared or is_marked(memory.project):
        return
    everything = root in (Path.home(), Path(root.anchor))
    if everything or memory.store.count(memory.filter(scopes=(memory.scope,))) == 1:
        also = "" if everything else "; `bethink init` makes it one"
        output.hint(
            args,
            f"{root} is no project, and no other directory sees what is told here. --personal makes it follow you{also}.",
        )


def update_options(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="an id or any unique beginning of one")
    reach_option(parser)
    parser.add_argument("--content", metavar="TEXT", help="the new text; - reads stdin")
    value_options(parser)
    answered = parser.add_mutually_exclusive_group()
    answered.add_argument(
        "--answered", action="store_const", const=True, help="a question that has its answer"
    )
    answered.add_argument(
        "--open",
        dest="answered",
        action="store_const",
        const=False,
        help="a question that is open again",
    )
    parser.add_argument("--no-expiry", action="store_true", help="let it stay for good")


def update(args: Namespace) -> None:
    """Change a memory. Only what is given changes; the old version stays in its history.

    Examples:
      bethink update 01a1dd89 --importance 9 --tag release,process
      bethink update 01a1dd89 --content "We deploy from main, after two reviews"
      bethink update 01a1dd89 --no-expiry
      bethink update 01a1dd89 --file notes/auth.txt
    """
    given = [args.content] if args.content is not None else None
    text = (
        given_text(given, args.file, "bethink update ID --content TEXT")
        if given or args.file
        else None
    )
    with opened(args) as memory:
        clear = ("expires_at",) if args.no_expiry else ()
        show_changed(
            args,
            memory,
            "updated",
            memory.update(
                args.id, clear=clear, **values(args, memory), content=text, answered=args.answered
            ),
        )


def vote_options(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="an id or any unique beginning of one")
    reach_option(parser)
    parser.add_argument(
        "value", nargs="?", type=number, metavar="VALUE", help="from -100 to 100 (default: 1)"
    )
    parser.add_argument("--down", action="store_true", help="the same as -1")


def vote(args: Namespace) -> None:
    """Say that a memory was useful, or was not: intents such as `frequent` weigh votes. Counts as a use of it.

    Examples:
      bethink vote 01a1dd89
      bethink vote 01a1dd89 3
      bethink vote 01a1dd89 -1
    """
    if args.down and args.value is not None:
        raise UsageError("Give a value or --down, not both.", "bethink vote ID --down")
    with opened(args) as memory:
        changed = memory.vote(args.id, -1 if args.down else 1 if args.value is None else args.value)
        show_changed(args, memory, f"votes {changed.usefulness:+g} for", changed)


def show_changed(args: Namespace, memory: Bethink, what: str, changed: Memory) -> None:
    from bethink.recall.shape import plain
    from bethink.surface import render

    output.show(
        args,
        plain(changed),
        lambda: output.out(
            f"{what} {render.memory_label(changed, memory.store.abbreviate([changed.id]))}"
        ),
    )


def link_options(parser: ArgumentParser) -> None:
    from bethink.types import RELATIONS

    parser.usage = "bethink link SOURCE [TYPE] TARGET [--remove] [options]"
    parser.add_argument(
        "ends",
        nargs="+",
        metavar="SOURCE [TYPE] TARGET",
        help=f"two ids; TYPE is {', '.join(RELATIONS)} (default: relates_to)",
    )
    parser.add_argument("--remove", action="store_true", help="take the relation away")


def link(args: Namespace) -> None:
    """Relate two memories. `supersedes` takes the target out of searches, `answers` marks a question as answered.

    Examples:
      bethink link 01a1dd89 supersedes 01a0c3f1
      bethink link 01a1dd89 answers 01a0c411
      bethink link 01a1dd89 01a0c411
      bethink link 01a1dd89 supersedes 01a0c3f1 --remove
    """
    if len(args.ends) not in (2, 3):
        raise UsageError(
            "A link needs two ids and, between them, perhaps a type.",
            "bethink link 01a1dd89 supersedes 01a0c3f1",
        )
    source, type, target = (
        args.ends if len(args.ends) == 3 else (args.ends[0], "relates_to", args.ends[1])
    )
    with opened(args) as memory:
        relation = (memory.unlink if args.remove else memory.link)(
            source, target, type.replace("-", "_")
        )
        short = memory.store.abbreviate([relation.source, relation.target])
        value = {
            "source": relation.source,
            "type": relation.type,
            "target": relation.target,
            "status": "removed" if args.remove else "linked",
        }
        output.show(
            args,
            value,
            lambda: output.out(
                f"{value['status']} {short[relation.source]} {relation.type} {short[relation.target]}"
            ),
        )


COMMANDS = {
    "add": Command(add, add_options),
    "update": Command(update, update_options),
    "vote": Command(vote, vote_options),
    "link": Command(link, link_options),
}
