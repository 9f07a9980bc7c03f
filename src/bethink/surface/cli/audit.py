"""`audit`: who changed what in a team's database, and whether that record is unbroken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bethink.errors import BethinkError, UsageError
from bethink.surface.cli import output
from bethink.surface.cli.parsing import Command, count
from bethink.surface.cli.session import opened

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from bethink.api import Bethink

SHOWN = 3  # ids of one kind of change that are named in a line


def audit_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=("show", "verify"),
        default="show",
        help="show the newest lines, or verify all of them",
    )
    parser.add_argument(
        "--limit", "-n", type=count, default=20, metavar="N", help="how many lines at most (20)"
    )


def audit(args: Namespace) -> int:
    """Show who changed what in a team's PostgreSQL database, newest first, or verify that no line was changed or taken out. The
    database writes and seals the lines itself; each seal covers the line before it.

    Examples:
      bethink audit
      bethink audit --limit 100 --json
      bethink audit verify
    """
    with opened(args) as memory:
        store = trail(memory)
        if args.action == "verify":
            problems = [problem.message for problem in store.check_audit()]
            number = next((line.number for line in store.audit(1)), 0)
            output.show(
                args,
                {"lines": number, "problems": problems},
                lambda: (
                    output.out(f"{output.many(number, 'line')}, unbroken") if not problems else None
                ),
            )
            if problems:
                raise BethinkError(
                    f"The audit trail is broken. {problems[0]}",
                    "Somebody changed the database behind Bethink's back.",
                )
            return 0
        lines = store.audit(args.limit)
        value = [{**line._asdict(), "at": line.at.isoformat()} for line in lines]
        output.show(
            args,
            value,
            lambda: output.out(
                "\n".join(told(line) for line in lines) or "Nothing was changed yet."
            ),
        )
    return 0


def trail(memory: Bethink) -> Any:
    if not hasattr(memory.store, "check_audit"):
        raise UsageError(
            "Only a PostgreSQL database keeps an audit trail.",
            "`bethink history ID` shows what became of a memory in your own database.",
        )
    return memory.store


def told(line: Any) -> str:
    done = "; ".join(f"{action} {named(what)}" for action, what in line.changes.items())
    return f"{line.number:>6}  {line.at:%Y-%m-%d %H:%M:%S}  {output.plain(line.actor)}  {output.plain(done)}"


def named(what: list[Any]) -> str:
    shown = ", ".join(
        " ".join(map(str, one)) if isinstance(one, list) else str(one) for one in what[:SHOWN]
    )
    return shown + (f" and {len(what) - SHOWN:,} more" if len(what) > SHOWN else "")


COMMANDS = {"audit": Command(audit, audit_options)}
