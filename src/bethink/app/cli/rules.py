"""`promote` and `demote`: proven memories as rules that agents always read."""

from typing import Annotated

from bethink.api import Bethink
from bethink.app import render
from bethink.app.cli.console import Result
from bethink.app.operation import Arg, operation
from bethink.app.operations.requests import Id, Limit
from bethink.app.render import pick
from bethink.features import promotion
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
