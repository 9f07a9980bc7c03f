"""`get`, `list` and `history`: memories by name and by time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bethink.errors import StoreError
from bethink.surface.cli import output
from bethink.surface.cli.filters import chosen, filter_options, projects, reach_option
from bethink.surface.cli.parsing import FORMATS, Command, count, offset
from bethink.surface.cli.session import opened

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from bethink.api import Bethink
    from bethink.types import Event, Memory

ORDERS = ("created", "oldest", "importance", "used", "useful", "updated")
EVERYTHING = 2**62
GET_TOKENS = 4000  # of each memory that an agent gets in full, as by MCP for two
AROUND = 3  # turns or passages on either side of a memory
TIMES = ("valid_from", "valid_to", "last_accessed")


def get_options(parser: ArgumentParser) -> None:
    parser.add_argument("id", nargs="+", metavar="ID", help="an id or any unique beginning of one")
    reach_option(parser)
    parser.add_argument(
        "--source", action="store_true", help="with what stands around it where it came from"
    )


def get(args: Namespace) -> None:
    """Show memories in full, with where they come from and what they are related to. Counts as a use of each.

    Examples:
      bethink get 01a1dd89
      bethink get 01a1dd89 --source
      bethink get 01a1dd89 01a1de02 --json
      bethink search deploy --json | jq -r '.[0].id' | xargs bethink get
    """
    from bethink.recall.shape import plain
    from bethink.surface import render

    with opened(args) as memory:
        ids = [memory.resolve(id) for id in args.id]
        try:
            memory.touch(ids)
        except StoreError as error:
            output.warn(args, f"This use is not counted: {error.message}")
        found = memory.store.get(ids)

        def text() -> None:
            if args.for_agent:
                budget = GET_TOKENS * len(found)
                items: list[Any] = [*render.quote_memories(memory, found, budget)]
                for one in found if args.source else ():
                    near = list(beside(one))
                    short = render.short_ids(memory, near)
                    items += [
                        f"Around {one.id}:",
                        *(render.quote_memory(each, short) for each in near),
                    ]
                output.out(render.quote_items(items))
                return
            places = projects(args, memory)
            related = render.related_memories(memory, found)
            others = [other.id for pairs in related.values() for _, other in pairs]
            short = render.short_ids(memory, found, others)
            for number, one in enumerate(found):
                lines = render.memory_lines(one, related[one.id], short, places)
                output.out("\n".join(([""] if number else []) + lines))
                if args.source:
                    output.out("\n".join(render.around_lines(one, beside(one))))

        def beside(one: Memory) -> Sequence[Memory]:
            return memory.store.around(one.id, AROUND, AROUND) if args.source and one.path else ()

        records = (
            {**plain(one), **({"around": list(map(plain, beside(one)))} if args.source else {})}
            for one in found
        )
        show_memories(args, records, text)


def list_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--order",
        choices=ORDERS,
        default="created",
        metavar="ORDER",
        help=f"what comes first: {', '.join(ORDERS)}",
    )
    parser.add_argument(
        "--limit", "-n", type=count, default=20, metavar="N", help="how many at most (default: 20)"
    )
    parser.add_argument(
        "--offset", type=offset, default=0, metavar="N", help="leave out the first N"
    )
    parser.add_argument("--all", action="store_true", help="no limit")
    filter_options(parser)


def list_memories(args: Namespace) -> None:
    """List memories, the newest first.

    Examples:
      bethink list
      bethink list --kind question,todo --since 2w
      bethink list --order importance --all --format csv
      bethink list --include-deleted --json
    """
    from bethink.recall.shape import plain

    with opened(args) as memory:
        wanted = chosen(args, memory)
        found = memory.list(
            filter=wanted,
            limit=EVERYTHING if args.all else args.limit,
            offset=args.offset,
            order=args.order,
        )
        show_memories(
            args,
            map(plain, found),
            lambda: show_lines(memory, found, projects(args, memory), args.for_agent),
        )
        total = memory.store.count(wanted) if len(found) == args.limit and not args.all else 0
        if not found:
            output.note(args, "No memories.")
        elif total > args.offset + len(found):
            output.hint(args, f"{len(found)} of {total:,} are shown; --all shows every one.")


def show_lines(
    memory: Bethink, found: Sequence[Memory], places: Mapping[str, str], for_agent: bool
) -> None:
    from bethink.surface import render

    short = render.short_ids(memory, found)
    if for_agent and found:
        output.out(render.quote_items([render.quote_line(one, short) for one in found]))
        return
    for one in found:
        output.out(render.memory_line(one, short, places))


def show_memories(args: Namespace, records: Iterable[dict[str, Any]], text: Any) -> None:
    from bethink.surface import render

    output.show_list(
        args,
        records if args.format == "json" else map(render.flatten_record, records),
        render.FIELDS,
        text,
    )


def history_options(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="an id or any unique beginning of one")
    reach_option(parser)


def history(args: Namespace) -> None:
    """Show every version of a memory: when, by whom, what changed. The numbers are those of `restore --to`.

    Examples:
      bethink history 01a1dd89
      bethink history 01a1dd89 --json
      bethink restore 01a1dd89 --to 2
    """
    with opened(args) as memory:
        events = memory.history(args.id)
        records = [version(number, event) for number, event in enumerate(events, start=1)]

        def text() -> None:
            for record, event in zip(records, events, strict=True):
                output.out(
                    f"{record['version']}  {output.date_and_time(event.at)}  {event.actor}  {event.action}"
                )
                for line in changes(record["before"], record["after"]):
                    output.out(f"     {line}")

        output.show_list(
            args,
            records,
            ("version", "at", "actor", "action", "before", "after"),
            text,
            "history",
            "version",
        )


def version(number: int, event: Event) -> dict[str, Any]:
    from bethink.recall.shape import iso

    before, after = (
        {name: value_of(name, value) for name, value in (side or {}).items()}
        for side in (event.before, event.after)
    )
    return {
        "version": number,
        "at": iso(event.at),
        "actor": event.actor,
        "action": event.action,
        "before": before,
        "after": after,
    }


def value_of(name: str, value: Any) -> Any:
    """A value as history keeps it, in the form that every other answer has."""
    if (
        value is not None
        and (name.endswith("_at") or name in TIMES)
        and isinstance(value, int | float)
    ):
        from datetime import UTC, datetime

        from bethink.recall.shape import iso

        return iso(datetime.fromtimestamp(value / 1000, UTC))
    if name in ("tags", "keywords", "metadata") and isinstance(value, str):
        import json

        return json.loads(value)
    return bool(value) if name == "answered" and value is not None else value


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """A small difference: short values on one line, texts as lines that went and came."""
    lines = []
    for name in after:
        if name == "keywords":
            continue  # follows from the text
        old, new = (output.cell(side.get(name)) for side in (before, after))
        if len(old) + len(new) < 80 and "\n" not in old + new:
            lines.append(output.plain(f"{name}: {old or '(none)'} → {new or '(none)'}"))
        else:
            lines += [f"{name}:", *(f"  {line}" for line in difference(old, new))]
    return lines


def difference(old: str, new: str) -> list[str]:
    import difflib

    found = difflib.unified_diff(
        output.plain(old).splitlines(), output.plain(new).splitlines(), n=1, lineterm=""
    )
    return [
        f"{line[0]} {output.one_line(line[1:], output.width() - 12)}"
        for line in list(found)[2:]
        if not line.startswith("@@")
    ]


COMMANDS = {
    "get": Command(get, get_options, FORMATS),
    "list": Command(list_memories, list_options, FORMATS),
    "history": Command(history, history_options, FORMATS),
}
