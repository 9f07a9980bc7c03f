"""`promote`, `demote` and `enforce`: memories as rules that agents read, or that deny tool calls."""

from typing import Annotated

from bethink.api import Bethink
from bethink.app import render
from bethink.app.cli.console import Result
from bethink.app.operation import Arg, operation
from bethink.app.operations.requests import Id, Limit
from bethink.app.render import many, pick, short_id
from bethink.enforced import EnforcedRule
from bethink.errors import UsageError
from bethink.features import enforcing, promotion
from bethink.model import Json, Memory
from bethink.recall.shape import plain


@operation(
    "Import and index",
    agents="read",
    person_with=("id",),
    opens="read",
    examples=(
        "bethink promote --suggest",
        "bethink promote 01a1dd89",
        "bethink promote 01a1dd89 --to agents",
    ),
)
def promote(
    memory: Bethink,
    id: Annotated[
        str | None,
        Arg(
            "an id or any unique beginning of one; without it as with --suggest",
            positional=True,
            one_of="what",
        ),
    ] = None,
    to: Annotated[
        str | None,
        Arg(
            "claude (.claude/rules/bethink.md) or agents (AGENTS.md)",
            metavar="TARGET",
            choices=("claude", "agents"),
        ),
    ] = None,
    suggest: Annotated[
        bool, Arg("list memories that proved useful, and why; write nothing", one_of="what")
    ] = False,
    limit: Annotated[Limit, Arg("with --suggest: maximum number of results")] = 10,
) -> Result:
    """Write a proven memory into the rules that agents always read.

    It becomes a line of a marked block: in .claude/rules/bethink.md if the project has a .claude folder or no AGENTS.md, else in
    AGENTS.md. A CLAUDE.md is never created, and nothing outside the block changes. Imported text is refused. Promoting a memory
    again updates its line.
    """
    if id:
        done = promotion.promote(memory, id, to)
        return Result({"id": done.memory.id, **pick(done, "path status created")})
    found = promotion.candidates(memory, limit)
    names = render.short_ids(memory, [one for one, _ in found])
    hint = "No memory has proved itself yet, by votes (`bethink vote ID`) or uses."
    if found:
        hint = "`bethink promote ID` makes one a rule that agents always read."
    return Result(
        [{**plain(one), "reason": reason} for one, reason in found],
        hints=[hint],
        items=[render.quote_line(one, names)._replace(note=reason) for one, reason in found],
    )


@operation(
    "Import and index",
    agents="person",
    opens="read",
    examples=("bethink demote 01a1dd89", "bethink demote 01a1dd89 --json"),
)
def demote(memory: Bethink, id: Id) -> Result:
    """Remove a memory from the rules.

    The memory itself stays. With the last rule the block goes, and a file that holds nothing else goes too. Also works for rules of
    other people, whose memory is not in your database.
    """
    done = promotion.demote(memory, id)
    missing = "" if done.found else f"Its rule was not in {done.path} of this checkout."
    return Result(pick(done, "id path found removed"), hints=[missing])


@operation(
    "Agents",
    agents="person",
    harmless=("list",),
    opens="read",
    lists=("rules", "rule"),
    examples=(
        "bethink enforce 01a1dd89",
        'bethink enforce 01a1dd89 --command "git push --force" --dry-run',
        "bethink enforce 01a1dd89 --path 'deploy/*.yml' --instead 'edit values.py and run make'",
        "bethink enforce --list",
        "bethink enforce 01a1dd89 --off",
    ),
)
def enforce(
    memory: Bethink,
    id: Annotated[
        str | None,
        Arg(
            "an id or any unique beginning of one; alone it shows what could be enforced",
            positional=True,
        ),
    ] = None,
    command: Annotated[
        tuple[str, ...],
        Arg(
            "deny this command: program, first arguments, flags; * matches anything",
            metavar="PATTERN",
        ),
    ] = (),
    path: Annotated[
        tuple[str, ...],
        Arg("deny changes of these files, below the project's folder", metavar="GLOB"),
    ] = (),
    instead: Annotated[str, Arg("what the agent is asked to do instead", metavar="TEXT")] = "",
    off: Annotated[bool, Arg("lift the rule", one_of="what")] = False,
    list: Annotated[bool, Arg("list the rules that are enforced here", one_of="what")] = False,
    dry_run: Annotated[
        bool, Arg("show what would have been denied; enforce nothing", one_of="what")
    ] = False,
) -> Result:
    """Deny tool calls that break a rule of yours.

    Agents that are connected ask before each command and edit; a call that matches is denied with the rule, what to do instead, and how to
    lift it. Matching is literal: a command by its program, first arguments and flags, wherever it is in a shell line; a path by a glob.
    Only your own statements can be enforced, only by you, and only on this machine. If anything fails, calls go through.
    """
    if list or not id:
        return list_enforced(memory)
    if off:
        lifted = enforcing.lift(memory, id)
        return Result(
            {"id": lifted.id, "status": "lifted", **pick(lifted, "commands paths")},
            lines=[f"lifted {short_id(memory, lifted.id)}: {describe_patterns(lifted)}"],
        )
    one = enforcing.find_statement(memory, id)
    if not command and not path:
        return suggest_patterns(memory, one)
    rule = enforcing.make_rule(memory, one, command, path, instead)
    past = enforcing.preview(memory, rule)
    if not dry_run:
        rule = enforcing.enforce(memory, id, command, path, instead)
    status = "would be enforced" if dry_run else "enforced"
    examples = [f"  {one.session[:8]}:{one.line}  {one.call}" for one in past.examples]
    counted = f"in {many(past.sessions, 'recorded conversation')} it would have denied {past.denied} of {many(past.calls, 'call')}"
    lift = f"`bethink enforce {short_id(memory, rule.id)} --off` lifts it. Connected agents need the hooks of `bethink install`."
    return Result(
        {
            "id": rule.id,
            "status": status,
            **pick(rule, "scope commands paths instead"),
            "preview": {
                **pick(past, "sessions calls denied"),
                "examples": [each._asdict() for each in past.examples],
            },
        },
        lines=[f"{status}: {describe_patterns(rule)}", counted, *examples],
        stored=True,
        hints=["" if dry_run else lift],
    )


def list_enforced(memory: Bethink) -> Result:
    lines: list[str] = []
    found = enforcing.list_enforced(memory)
    for one in found:
        state = "" if one.valid else f" (denies nothing: {one.why})"
        lines.append(
            f"{short_id(memory, one.id)}  {describe_patterns(one)}{state}  {one.content[:120]}"
        )
    none = "No rule is enforced here. `bethink enforce ID --command PATTERN` enforces one."
    return Result(
        [one._asdict() for one in found], lines, hints=["" if found else none], stored=True
    )


def suggest_patterns(memory: Bethink, one: Memory) -> Result:
    """Show the commands and files that a statement names, each with what it would have denied."""
    commands, files = enforcing.suggest(one)
    found = [("--command", pattern) for pattern in commands] + [("--path", name) for name in files]
    rows: list[Json] = []
    lines: list[str] = []
    for option, pattern in found:
        chosen = ([pattern], []) if option == "--command" else ([], [pattern])
        past = enforcing.preview(memory, enforcing.make_rule(memory, one, *chosen))
        rows.append({"option": option, "pattern": pattern, **pick(past, "sessions calls denied")})
        counted = f"would have denied {past.denied} of {many(past.calls, 'recorded call')}"
        lines.append(f"{option} '{pattern}'  {counted}")
    if not found:
        raise UsageError(
            f"Memory {short_id(memory, one.id)} names no command or file in backticks to choose from.",
            f'Say what to deny: bethink enforce {short_id(memory, one.id)} --command "git push --force"',
        )
    chosen_one = f"Nothing is enforced yet. Choose: bethink enforce {short_id(memory, one.id)} {found[0][0]} '{found[0][1]}'"
    return Result(rows, lines, hints=[chosen_one], stored=True)


def describe_patterns(rule: EnforcedRule | enforcing.EnforcedMemory) -> str:
    commands = [f"`{one}`" for one in rule.commands]
    paths = [f"changes of {one}" for one in rule.paths]
    return ", ".join([*commands, *paths])
