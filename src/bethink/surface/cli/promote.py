"""`promote` and `demote`: memories that proved themselves become rules that agents always read, and cease to be."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bethink.errors import UsageError
from bethink.features import promotion
from bethink.recall.shape import plain
from bethink.surface.cli.console import Result, directory
from bethink.surface.cli.parsing import command
from bethink.surface.layout import one_line, pick
from bethink.surface.render import memory_label, short_ids

if TYPE_CHECKING:
    from argparse import Namespace

    from bethink.api import Bethink
    from bethink.features.promotion import Rule

STATES = {
    "ok": "as its memory says",
    "changed": "its memory says something else by now",
    "forgotten": "its memory was forgotten",
    "replaced": "its memory was replaced",
    "expired": "its memory expired",
    "edited": "edited by hand",
    "missing": "taken out of the file by hand",
    "unknown": "its memory is not in this database",
}
STALE = ("changed", "forgotten", "replaced", "expired")


@command(
    "promote",
    """
    [ID]              an id or any unique beginning of one
    --to TARGET       claude (.claude/rules/bethink.md), agents (AGENTS.md), or a file of the project
    --force           even if the text was imported
    | --suggest       list memories that proved useful, and why; writes nothing
    | --check         list the rules and how they stand to their memories; writes nothing
    | --refresh       rewrite rules whose memory changed, take out those whose memory is gone
    --limit N whole 1.. = 10     with --suggest: how many (10)
    """,
    opens="read",
)
def promote(args: Namespace, memory: Bethink) -> Result:
    """Write a memory into the rules that agents read at every start, as one line of a marked block: in
    .claude/rules/bethink.md if the project has a .claude folder or no AGENTS.md, else in AGENTS.md. A CLAUDE.md is never
    made. Nothing outside the block changes. Imported text is refused. --refresh leaves a rule that you edited as it is, and
    does not bring back one that you took out; promoting it again does.

    Examples:
      bethink promote --suggest
      bethink promote 01a1dd89
      bethink promote 01a1dd89 --to agents
      bethink promote --refresh
    """
    looks = args.suggest or args.check or args.refresh
    if bool(args.id) == bool(looks):
        raise UsageError(
            "Give an id, or one of --suggest, --check and --refresh.",
            "bethink promote --suggest, then bethink promote 01a1dd89",
        )
    if looks and (args.to or args.force):
        raise UsageError("--to and --force go with an id.", "bethink promote 01a1dd89 --to agents")
    if args.suggest:
        return suggest_rules(memory, args.limit)
    if looks:
        check = promotion.refresh if args.refresh else promotion.check
        return rules_result(memory, check(memory))
    return write_rule(args, memory)


def write_rule(args: Namespace, memory: Bethink) -> Result:
    target = args.to
    if target and target not in promotion.TARGETS:
        target = (directory(args) or Path.cwd()) / Path(target).expanduser()
    done = promotion.promote(memory, args.id, target, force=args.force)
    word = {"kept": "already in", "moved": "moved to"}.get(done.status, "promoted to")
    value = {"id": done.memory.id, **pick(done, "path status created")}
    label = memory_label(done.memory, memory.store.abbreviate([done.memory.id]))
    return Result(value, [f"{word} {done.path}: {label}"], hints=done.hints)


def suggest_rules(memory: Bethink, limit: int) -> Result:
    found = promotion.candidates(memory, limit)
    short = short_ids(memory, [one for one, _ in found])
    lines = []
    for one, reason in found:
        lines += [memory_label(one, short), f"  {reason}"]
    hint = (
        "`bethink promote ID` makes one a rule that agents always read."
        if found
        else "No memory has proved itself yet. `bethink vote ID` says that one was useful; `bethink get ID` counts as a use."
    )
    value = [{**plain(one), "reason": reason} for one, reason in found]
    return Result(value, lines, hints=[hint], stored=True)


def rules_result(memory: Bethink, found: Sequence[Rule]) -> Result:
    known = {rule.memory.id: rule.memory for rule in found if rule.memory}
    short = memory.store.abbreviate(list(known))
    lines, value, hints = [], [], []
    for rule in found:
        done = f", {rule.done}" if rule.done else ""
        words = rule.memory.summary or rule.memory.content if rule.memory else rule.text
        id = short.get(rule.id, rule.id)
        lines.append(f"{rule.state:<9}  {rule.path}  {id}  {one_line(words, 80)}")
        if rule.state != "ok":
            lines.append(f"           {STATES[rule.state]}{done}")
        value.append(pick(rule, "id path state text done" if rule.done else "id path state text"))
    if not found:
        hints.append("Nothing is promoted. `bethink promote --suggest` lists candidates.")
    elif any(rule.state in STALE and not rule.done for rule in found):
        hints.append("`bethink promote --refresh` brings them in step.")
    for rule in found:
        new = rule.memory.superseded_by if rule.memory and rule.done == "removed" else None
        if new:
            hints.append(f"`bethink promote {new}` puts in what replaced {rule.id}.")
    return Result(value, lines, hints=hints, stored=True)


@command(
    "demote",
    """
    ID                an id or any unique beginning of one
    """,
    opens="read",
)
def demote(args: Namespace, memory: Bethink) -> Result:
    """Take a memory out of the rules again. The memory itself stays. With the last rule the block goes, and a file that
    holds nothing else goes too. Works for rules of others, whose memory is not in your database.

    Examples:
      bethink demote 01a1dd89
      bethink promote --check
    """
    done = promotion.demote(memory, args.id)
    value = pick(done, "id path found removed")
    also = ", which is removed: nothing else was in it" if done.removed else ""
    short = memory.store.abbreviate([done.id])[done.id]
    missing = [] if done.found else [f"Its rule was not in {done.path} of this checkout."]
    return Result(value, [f"demoted {short} from {done.path}{also}"], hints=missing)
