"""`handoff`: word for whoever works here next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bethink.errors import NotFound, UsageError
from bethink.surface.cli import output
from bethink.surface.cli.parsing import Command
from bethink.surface.cli.session import given_text, opened

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from bethink.api import Bethink
    from bethink.features.handoffs import Found, Handoff

# Option → field and what it is for. Each may be repeated.
LISTS = {
    "done": ("completed", "something that is done"),
    "blocked": ("in_progress_blocked", "something half done or stuck"),
    "decision": ("key_decisions", "something that was decided, with the reason"),
    "next": ("next_steps", "what to do next"),
    "memory": ("memory_ids", "id of a memory that was used"),
}
EXAMPLE = 'bethink handoff save --summary "The cache is moved, the tests are not"'


def handoff_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "action", nargs="?", choices=("save", "show"), default="show", help="default: show"
    )
    parser.add_argument(
        "--branch", metavar="NAME", help="of this branch; by default the one that is checked out"
    )
    parser.add_argument(
        "--part", metavar="NAME", help="of a part of the project that has handoffs of its own"
    )
    saving = parser.add_argument_group("save")
    saving.add_argument("--summary", metavar="TEXT", help="where things stand")
    for option, (_, about) in LISTS.items():
        saving.add_argument(
            f"--{option}",
            action="append",
            metavar="ID" if option == "memory" else "TEXT",
            default=[],
            help=about,
        )
    saving.add_argument(
        "--file", metavar="FILE", help="read it from a file; without this and --summary from stdin"
    )


def handoff(args: Namespace) -> None:
    """Leave word for whoever works here next, or read what was left: of this branch, or else the newest of any. A new handoff
    replaces the last one of its branch, which stays in its history. It may be given by options, or as Markdown or JSON.

    Examples:
      bethink handoff
      bethink handoff save --summary "The cache is moved" --done "reads go to Valkey" --next "delete Redis" --memory 01a1dd89
      bethink handoff save --file handoff.md
      bethink handoff show --branch feature/cache --json
    """
    if args.action == "save":
        save(args)
    elif args.summary or args.file or any(getattr(args, option) for option in LISTS):
        raise UsageError("`handoff show` takes only --branch and --part.", EXAMPLE)
    else:
        show(args)


def given(args: Namespace) -> Handoff:
    from bethink.features import handoffs

    if args.summary and not args.file:
        told = handoffs.Handoff("")
    else:
        told = handoffs.parse(given_text(None, args.file, EXAMPLE))
    fields: dict[str, Any] = {
        field: (*getattr(told, field), *getattr(args, option))
        for option, (field, _) in LISTS.items()
    }
    return told._replace(
        **fields,
        summary=args.summary or told.summary,
        branch=args.branch or told.branch,
        project=args.part or told.project,
    )


def save(args: Namespace) -> None:
    from bethink.features import handoffs

    wanted = given(args)
    with opened(args, make=True) as memory:
        saved = handoffs.save(memory, wanted)
        for hint in memory.hints:
            output.hint(args, hint)
        stored = handoffs.read(saved.memory)
        value = {
            "id": saved.memory.id,
            "status": "saved" if saved.new else "unchanged",
            "supersedes": list(saved.supersedes),
            "project": stored.project,
            "branch": stored.branch,
        }

        def text() -> None:
            short = memory.store.abbreviate([saved.memory.id])[saved.memory.id]
            branch = f", branch {stored.branch}" if stored.branch else ""
            output.out(
                f"{value['status']} {short} for {stored.project}{branch}: {output.one_line(stored.summary, 80)}"
            )

        output.show(args, value, text)


def show(args: Namespace) -> None:
    from bethink.features import handoffs
    from bethink.recall.shape import iso

    with opened(args) as memory:
        found = handoffs.latest(memory, args.part, args.branch)
        if found is None:
            raise NotFound(
                f"There is no handoff for {args.part or memory.project.name} yet.", EXAMPLE
            )
        if not found.exact:
            other = f"branch {found.handoff.branch}" if found.handoff.branch else "no branch"
            output.hint(
                args,
                f"There is none for {f'branch {found.asked}' if found.asked else 'no branch'}; this is the newest, of {other}.",
            )
        value = {
            "id": found.memory.id,
            "created_at": iso(found.memory.created_at),
            **found.handoff._asdict(),
            "exact": found.exact,
            "content": found.memory.content,
        }
        output.show(args, value, lambda: _written(memory, found))


def _written(memory: Bethink, found: Found) -> None:
    from bethink.recall.shape import citation
    from bethink.surface import render

    one = found.memory
    named = [
        other
        for other in memory.store.get(found.handoff.memory_ids)
        if other.scope in memory.scopes
    ]
    short = memory.store.abbreviate([one.id, *(other.id for other in named)])
    output.out(
        output.style(
            f"{short[one.id]}  {output.date_and_time(one.created_at)}  {output.plain(citation(one))}",
            "dim",
        )
    )
    for line in output.wrap(one.content, ""):
        output.out(line)
    if named:
        output.out("\n## Memories\n")
        for other in named:
            output.out(render.memory_line(other, short))


COMMANDS = {"handoff": Command(handoff, handoff_options)}
