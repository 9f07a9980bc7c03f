"""`handoff`: leave word for the next session, or read it."""

from typing import Annotated

from bethink.api import Bethink
from bethink.app import render
from bethink.app.cli.console import Console, Result
from bethink.app.cli.parser import read_text
from bethink.app.operation import Arg, operation
from bethink.app.render import label_memory, pick
from bethink.errors import NotFound
from bethink.features import handoffs
from bethink.features.handoffs import Handoff
from bethink.model import NOTHING, Strings, Values

_EXAMPLE = 'bethink handoff save --summary "The cache is moved, the tests are not"'
SAVE = "save"


def item(help: str, alias: str, metavar: str = "TEXT") -> Arg:
    """A list of a handoff, under its name and a short one."""
    return Arg(help, metavar=metavar, aliases=(alias,), action=SAVE)


@operation(
    "Everyday",
    tool="store_handoff",
    agents="append",
    examples=(
        "bethink handoff",
        'bethink handoff save --summary "The cache is moved" --done "reads go to Valkey" --next "delete Redis" --memory 01a1dd89',
        "bethink handoff save --file handoff.md",
        "bethink handoff show --branch feature/cache --json",
    ),
)
def handoff(
    console: Console,
    action: Annotated[str, Arg(choices=(SAVE, "show"), positional=True)] = "show",
    branch: Annotated[
        str | None, Arg("for this branch; default: the current branch", metavar="NAME")
    ] = None,
    summary: Annotated[str | None, Arg("the current state", metavar="TEXT", action=SAVE)] = None,
    completed: Annotated[Strings, item("something finished", "done")] = (),
    in_progress_blocked: Annotated[Strings, item("something half done or stuck", "blocked")] = (),
    key_decisions: Annotated[Strings, item("a decision, with its reason", "decision")] = (),
    next_steps: Annotated[Strings, item("what to do next", "next")] = (),
    memory_ids: Annotated[Strings, item("id of a memory that was used", "memory", "ID")] = (),
    metadata: Annotated[
        Values, Arg("or a JSON object; may be repeated", metavar="KEY=VALUE", action=SAVE)
    ] = NOTHING,
    file: Annotated[
        str | None,
        Arg("read it from a file; without this and --summary from stdin", action=SAVE),
    ] = None,
) -> Result:
    """Leave a handoff for the next session, or read the last one.

    Shows the handoff of this branch, or else the newest of any branch. A new handoff replaces the last one of its branch, which
    stays in the history. Give it with options, or as Markdown.
    """
    if action == "show":
        with console.open_memory() as memory:
            return show_handoff(memory, branch)
    wanted = Handoff("")
    if file or not summary:
        wanted = handoffs.parse_handoff(read_text(None, file, _EXAMPLE))
    wanted = wanted._replace(
        summary=summary or wanted.summary,
        completed=(*wanted.completed, *completed),
        in_progress_blocked=(*wanted.in_progress_blocked, *in_progress_blocked),
        key_decisions=(*wanted.key_decisions, *key_decisions),
        next_steps=(*wanted.next_steps, *next_steps),
        memory_ids=(*wanted.memory_ids, *memory_ids),
        branch=branch or "",
        metadata=metadata,
    )
    with console.open_memory(make=True) as memory:
        saved = handoffs.save_handoff(memory, wanted)
        label = label_memory(memory, saved.memory)
    status = "saved" if saved.new else "unchanged"
    record = {"id": saved.memory.id, "status": status, "supersedes": saved.supersedes}
    record |= pick(handoffs.read_handoff(saved.memory), "project branch")
    return Result(record, [f"{status} {label}"], hints=memory.hints)


def show_handoff(memory: Bethink, branch: str | None) -> Result:
    found = handoffs.find_latest(memory, branch)
    if found is None:
        raise NotFound(f"There is no handoff for {memory.project.name} yet.", _EXAMPLE)
    value = {
        **pick(found.memory, "id created_at"),
        **found.handoff._asdict(),
        "exact": found.exact,
        "age_days": found.days,
        "stale": found.stale,
        "content": found.memory.content,
    }
    return Result(value, hints=found.notes, items=render.show_handoff(memory, found))
