"""`duplicates`, `contradictions` and `consolidate`: keeping memory in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bethink.surface.cli import output
from bethink.surface.cli.parsing import Command, count
from bethink.surface.cli.progress import Bar
from bethink.surface.cli.session import confirmed, opened

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from bethink.api import Bethink
    from bethink.features.tending import Pair, Step

SHOWN = 20
WORDS = {
    "merge": "say the same: the second becomes part of the first",
    "contradict": "disagree: marked as contradicting",
    "answer": "answered: the question is closed",
    "expire": "expired: forgotten",
    "retire": "old turns that nothing was taken from: forgotten",
}


def pair_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--limit", "-n", type=count, default=20, metavar="N", help="how many pairs at most (20)"
    )


def duplicates(args: Namespace) -> None:
    """List memories that say the same, or nearly so, for you or your agent to decide: the one to keep first.

    Examples:
      bethink duplicates
      bethink duplicates --json | jq -r '.[].other.id'
      bethink forget ID
    """
    from bethink.features import tending

    with opened(args) as memory, Bar(args, "comparing") as bar:
        found = tending.duplicates(memory, limit=args.limit, progress=bar)
        bar.close()
        show_pairs(args, memory, found, "No memories say the same.")


def contradictions(args: Namespace) -> None:
    """List memories that disagree, the newer one first. `bethink forget` or `bethink add --supersedes` settles one.

    Examples:
      bethink contradictions
      bethink contradictions --limit 50 --json
      bethink link NEWER supersedes OLDER
    """
    from bethink.features import tending

    with opened(args) as memory, Bar(args, "comparing") as bar:
        found = tending.contradictions(memory, limit=args.limit, progress=bar)
        bar.close()
        show_pairs(args, memory, found, "No memories disagree.")


def show_pairs(args: Namespace, memory: Bethink, found: Sequence[Pair], none: str) -> None:
    from bethink.recall.shape import plain
    from bethink.surface import render

    short = memory.store.abbreviate([one.id for pair in found for one in (pair.keep, pair.other)])

    def text() -> None:
        for number, pair in enumerate(found, start=1):
            output.out(f"{number}. {pair.reason} ({pair.similarity:.2f})")
            output.out(f"   {render.memory_line(pair.keep, short)}")
            output.out(f"   {render.memory_line(pair.other, short)}")

    if not found:
        output.note(args, none)
    value = [
        {
            "keep": plain(pair.keep),
            "other": plain(pair.other),
            "similarity": round(pair.similarity, 4),
            "reason": pair.reason,
        }
        for pair in found
    ]
    output.show(args, value, text)


def consolidate_options(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")


def consolidate(args: Namespace) -> None:
    """Tidy up: merge what says the same, mark contradictions and answered questions, retire what expired and old turns that
    nothing was taken from (setting `keep_context_days`). Shows what it would do and asks. Every step is in the history of its
    memory, and `bethink restore ID` undoes it.

    Examples:
      bethink consolidate --dry-run
      bethink consolidate
      bethink consolidate --yes --json
    """
    from bethink.features import tending

    with opened(args) as memory, Bar(args, "comparing") as bar:
        steps = tending.plan(memory, progress=bar)
        bar.close()
        if args.format == "text":
            planned(memory, steps)
        if steps and not args.dry_run:
            confirmed(args, f"{output.many(len(steps), 'step')}.")
        done = tending.apply(memory, steps) if not args.dry_run else 0
        value = {"steps": [_step(step) for step in steps], "done": done, "dry_run": args.dry_run}
        output.show(args, value, lambda: output.out(_said(steps, done, args.dry_run)))


def _said(steps: Sequence[Step], done: int, dry: bool) -> str:
    if not steps:
        return "Nothing to tidy up."
    return (
        f"{output.many(len(steps), 'step')} would be done"
        if dry
        else f"{output.many(done, 'step')} done"
    )


def planned(memory: Bethink, steps: Sequence[Step]) -> None:
    from bethink.surface import render

    for action, words in WORDS.items():
        mine = [step for step in steps if step.action == action]
        if not mine:
            continue
        output.out(
            f"{output.many(sum(len(step.memories) for step in mine) if action == 'retire' else len(mine), 'time')}: {words}"
        )
        for step in mine[:SHOWN]:
            short = memory.store.abbreviate([one.id for one in step.memories])
            for one in step.memories[:2]:
                output.out(f"   {render.memory_line(one, short)}")
            output.out(f"   {step.reason}")
        if len(mine) > SHOWN:
            output.out(f"   and {len(mine) - SHOWN:,} more; --json lists all")


def _step(step: Step) -> dict[str, Any]:
    value = {
        "action": step.action,
        "memories": [one.id for one in step.memories],
        "reason": step.reason,
    }
    return {**value, "text": step.text} if step.text else value


COMMANDS = {
    "duplicates": Command(duplicates, pair_options),
    "contradictions": Command(contradictions, pair_options),
    "consolidate": Command(consolidate, consolidate_options),
}
