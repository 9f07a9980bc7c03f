"""`pause` and `resume`: memory that listens only when it may."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bethink.surface.cli import output
from bethink.surface.cli.parsing import Command
from bethink.surface.cli.session import project

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from bethink.hooks.pause import Pause


def pause_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--everywhere", action="store_true", help="in every project, not only in this one"
    )
    parser.add_argument(
        "--for", dest="span", metavar="TIME", help="resume by itself after that: 30min, 2h, 1d"
    )


def pause(args: Namespace) -> None:
    """Pause memory in this project, or everywhere: agents are told nothing, and what is said until it is resumed is never
    learned, neither from their hooks nor by a later `bethink backfill`. Searching and adding by hand go on working.

    Examples:
      bethink pause
      bethink pause --for 2h
      bethink pause --everywhere
    """
    from bethink.hooks import pause as pauses

    seconds = _seconds(args.span) if args.span else None
    here = project(args)
    scope, name = (pauses.EVERYWHERE, "") if args.everywhere else (here.scope, here.name)
    begun = pauses.pause(scope, name, seconds)
    output.show(
        args, {"paused": shown(begun)}, lambda: output.out(f"paused {_where(begun)}{_until(begun)}")
    )
    output.hint(args, f"`bethink resume{' --everywhere' if args.everywhere else ''}` ends it.")


def resume_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--everywhere", action="store_true", help="end every pause, of all projects"
    )


def resume(args: Namespace) -> None:
    """Resume memory after `bethink pause`. What was said meanwhile stays out of memory.

    Examples:
      bethink resume
      bethink resume --everywhere
    """
    import time

    from bethink.hooks import pause as pauses

    here = project(args)
    ended = pauses.resume(pauses.EVERYWHERE if args.everywhere else here.scope)
    left = [one for one in pauses.read() if one.holds(time.time())]

    def text() -> None:
        for one in ended:
            output.out(f"resumed {_where(one)}")
        if not ended:
            output.out("Nothing was paused." if args.everywhere else f"{here.name} was not paused.")

    output.show(
        args,
        {"resumed": [shown(one) for one in ended], "still_paused": [shown(one) for one in left]},
        text,
    )
    if any(one.scope == pauses.EVERYWHERE for one in left):
        output.hint(
            args, "Memory is still paused everywhere; `bethink resume --everywhere` ends that."
        )


def _seconds(span: str) -> float:
    from datetime import datetime

    from bethink.text.when import LOCAL, expiry

    now = datetime.now(LOCAL)
    return (expiry(span, now) - now).total_seconds()


def shown(one: Pause) -> dict[str, Any]:
    from datetime import UTC, datetime

    from bethink.recall.shape import iso

    until = None if one.until is None else iso(datetime.fromtimestamp(one.until, UTC))
    return {
        "scope": one.scope,
        "project": one.name or None,
        "since": iso(datetime.fromtimestamp(one.since, UTC)),
        "until": until,
    }


def _where(one: Pause) -> str:
    return one.name or "everywhere"


def _until(one: Pause) -> str:
    from datetime import UTC, datetime

    return (
        ""
        if one.until is None
        else f" until {output.date_and_time(datetime.fromtimestamp(one.until, UTC))}"
    )


COMMANDS = {"pause": Command(pause, pause_options), "resume": Command(resume, resume_options)}
