"""`promote` and `demote`: memories that proved themselves become rules that agents always read, and cease to be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bethink.errors import UsageError
from bethink.surface.cli import output
from bethink.surface.cli.parsing import Command, count
from bethink.surface.cli.session import directory, opened

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

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


def promote_options(parser: ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", metavar="ID", help="an id or any unique beginning of one")
    parser.add_argument(
        "--to",
        metavar="TARGET",
        help="claude (.claude/rules/bethink.md), agents (AGENTS.md), or a file of the project",
    )
    parser.add_argument("--force", action="store_true", help="even if the text was imported")
    looks = parser.add_mutually_exclusive_group()
    looks.add_argument(
        "--suggest",
        action="store_true",
        help="list memories that proved useful, and why; writes nothing",
    )
    looks.add_argument(
        "--check",
        action="store_true",
        help="list the rules and how they stand to their memories; writes nothing",
    )
    looks.add_argument(
        "--refresh",
        action="store_true",
        help="rewrite rules whose memory changed, take out those whose memory is gone",
    )
    parser.add_argument(
        "--limit", type=count, default=10, metavar="N", help="with --suggest: how many (10)"
    )


def promote(args: Namespace) -> int:
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
    from bethink.features import promotion

    with opened(args) as memory:
        if args.suggest:
            suggest(args, memory)
        elif looks:
            rules(
                args, memory, promotion.refresh(memory) if args.refresh else promotion.check(memory)
            )
        else:
            write(args, memory)
    return 0


def write(args: Namespace, memory: Bethink) -> None:
    from bethink.features import promotion
    from bethink.surface import render

    target = args.to
    if target and target not in promotion.TARGETS:
        target = (directory(args) or Path.cwd()) / Path(target).expanduser()
    done = promotion.promote(memory, args.id, target, force=args.force)
    word = {"kept": "already in", "moved": "moved to"}.get(done.status, "promoted to")
    value = {
        "id": done.memory.id,
        "path": done.path,
        "status": done.status,
        "created": done.created,
    }
    short = memory.store.abbreviate([done.memory.id])
    output.show(
        args,
        value,
        lambda: output.out(f"{word} {done.path}: {render.memory_label(done.memory, short)}"),
    )
    for hint in done.hints:
        output.hint(args, hint)


def suggest(args: Namespace, memory: Bethink) -> None:
    from bethink.features import promotion
    from bethink.recall.shape import plain
    from bethink.surface import render

    found = promotion.candidates(memory, args.limit)

    def text() -> None:
        short = memory.store.abbreviate([one.id for one, _ in found])
        for one, reason in found:
            output.out(f"{render.memory_label(one, short)}")
            output.out(f"  {reason}")

    output.show(args, [{**plain(one), "reason": reason} for one, reason in found], text)
    if found:
        output.hint(args, "`bethink promote ID` makes one a rule that agents always read.")
    else:
        output.hint(
            args,
            "No memory has proved itself yet. `bethink vote ID` says that one was useful; `bethink get ID` counts as a use.",
        )


def rules(args: Namespace, memory: Bethink, found: list[Rule]) -> None:
    def text() -> None:
        short = memory.store.abbreviate([rule.memory.id for rule in found if rule.memory])
        for rule in found:
            done = f", {rule.done}" if rule.done else ""
            words = rule.memory.summary or rule.memory.content if rule.memory else rule.text
            output.out(
                f"{rule.state:<9}  {rule.path}  {short.get(rule.id, rule.id)}  {output.one_line(words, 80)}"
            )
            if rule.state != "ok":
                output.out(f"           {STATES[rule.state]}{done}")

    output.show(args, [value(rule) for rule in found], text)
    stale = [
        rule
        for rule in found
        if rule.state in ("changed", "forgotten", "replaced", "expired") and not rule.done
    ]
    if not found:
        output.hint(args, "Nothing is promoted. `bethink promote --suggest` lists candidates.")
    elif stale:
        output.hint(args, "`bethink promote --refresh` brings them in step.")
    for rule in found:
        if rule.done == "removed" and rule.memory and rule.memory.superseded_by:
            output.hint(
                args,
                f"`bethink promote {rule.memory.superseded_by}` puts in what replaced {rule.id}.",
            )


def value(rule: Rule) -> dict[str, Any]:
    found = {"id": rule.id, "path": rule.path, "state": rule.state, "text": rule.text}
    return {**found, "done": rule.done} if rule.done else found


def demote_options(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="an id or any unique beginning of one")


def demote(args: Namespace) -> None:
    """Take a memory out of the rules again. The memory itself stays. With the last rule the block goes, and a file that
    holds nothing else goes too. Works for rules of others, whose memory is not in your database.

    Examples:
      bethink demote 01a1dd89
      bethink promote --check
    """
    from bethink.features import promotion

    with opened(args) as memory:
        done = promotion.demote(memory, args.id)
        value = {"id": done.id, "path": done.path, "found": done.found, "removed": done.removed}
        also = ", which is removed: nothing else was in it" if done.removed else ""
        output.show(
            args,
            value,
            lambda: output.out(
                f"demoted {memory.store.abbreviate([done.id])[done.id]} from {done.path}{also}"
            ),
        )
        if not done.found:
            output.hint(args, f"Its rule was not in {done.path} of this checkout.")


COMMANDS = {
    "promote": Command(promote, promote_options),
    "demote": Command(demote, demote_options),
}
