"""`pause` and `resume`: memory that listens only when it may."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bethink.hooks.state import EVERYWHERE, Pause, pause_memory, read_pauses, resume_memory
from bethink.recall.shape import iso
from bethink.surface.cli.console import Result, project
from bethink.surface.cli.parsing import command
from bethink.surface.layout import date_and_time
from bethink.text.when import LOCAL, expiry

if TYPE_CHECKING:
    from argparse import Namespace


@command(
    "pause",
    """
    --everywhere    in every project, not only in this one
    --for TIME      resume by itself after that: 30min, 2h, 1d
    """,
)
def pause(args: Namespace) -> Result:
    """Pause memory in this project, or everywhere: agents are told nothing, and what is said until it is resumed is never
    learned, neither from their hooks nor by a later `bethink backfill`. Searching and adding by hand go on working.

    Examples:
      bethink pause
      bethink pause --for 2h
      bethink pause --everywhere
    """
    span, here = getattr(args, "for"), project(args)
    scope, name = (EVERYWHERE, "") if args.everywhere else (here.scope, here.name)
    begun = pause_memory(scope, name, _seconds(span) if span else None)
    until = "" if begun.until is None else f" until {date_and_time(_moment(begun.until))}"
    return Result(
        {"paused": plain_pause(begun)},
        [f"paused {begun.name or 'everywhere'}{until}"],
        hints=[f"`bethink resume{' --everywhere' if args.everywhere else ''}` ends it."],
    )


@command("resume", "--everywhere    end every pause, of all projects")
def resume(args: Namespace) -> Result:
    """Resume memory after `bethink pause`. What was said meanwhile stays out of memory.

    Examples:
      bethink resume
      bethink resume --everywhere
    """
    here = project(args)
    ended = resume_memory(EVERYWHERE if args.everywhere else here.scope)
    left = [one for one in read_pauses() if one.holds(time.time())]
    none = "Nothing was paused." if args.everywhere else f"{here.name} was not paused."
    still = "Memory is still paused everywhere; `bethink resume --everywhere` ends that."
    return Result(
        {"resumed": list(map(plain_pause, ended)), "still_paused": list(map(plain_pause, left))},
        [f"resumed {one.name or 'everywhere'}" for one in ended] or [none],
        hints=[still] if any(one.scope == EVERYWHERE for one in left) else [],
    )


def _seconds(span: str) -> float:

    now = datetime.now(LOCAL)
    return (expiry(span, now) - now).total_seconds()


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def plain_pause(one: Pause) -> dict[str, Any]:
    return {
        "scope": one.scope,
        "project": one.name or None,
        "since": iso(_moment(one.since)),
        "until": None if one.until is None else iso(_moment(one.until)),
    }
