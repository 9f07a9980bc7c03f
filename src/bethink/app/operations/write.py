"""Add and change memories: add, update, done, restore, vote, link."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

from bethink.app.operation import Arg, operation
from bethink.app.operations.fields import (
    EmbeddingText,
    Statement,
    UpdateFields,
    read_values,
    update_fields,
)
from bethink.app.operations.requests import AllProjects, Id
from bethink.app.render import short_id
from bethink.errors import Ambiguous, InvalidInput, NotFound
from bethink.model import AUTOMATIC, OPEN_KINDS, Memory, Outcome, Relation, Strings
from bethink.store.base import looks_like_id

if TYPE_CHECKING:
    from bethink.api import Bethink

MOST_ITEMS = 5000  # open items that are searched for words
LISTED_ITEMS = 5  # items that an error lists
OpenItems = Annotated[
    Strings,
    Arg("ids, or words of one open item", metavar="ID", positional=True, aliases=("id",)),
]
File = Annotated[str | None, Arg("read the text from a file", metavar="FILE")]


class Added(NamedTuple):
    outcome: Outcome
    content: str


class Changed(NamedTuple):
    """A memory after a change, and a few words about the change."""

    memory: Memory
    done: str


class Closed(NamedTuple):
    memories: Sequence[Memory]
    reopened: bool
    unchanged: frozenset[str]  # ids of those that were closed, or open, before


class Linked(NamedTuple):
    relation: Relation
    asked: str  # the type that was asked for; an agent may only propose one
    removed: bool


@operation(
    "Everyday",
    tool="store_memories",
    agents="append",
    person_with=("force",),
    opens="make",
    examples=(
        'bethink add "We deploy from main, never from a branch" --kind decision --tag deploy',
        "git log -1 --format=%B | bethink add --source git",
        "bethink add --file notes/auth.txt --importance 8 --entity technology:OAuth",
        'bethink add "The staging password changes on Friday" --expires 7d --personal',
    ),
)
def add(
    memory: "Bethink",
    statement: Statement,
    file: File = None,
    team: Annotated[
        bool, Arg("for everyone who shares the database, in every project (PostgreSQL)")
    ] = False,
    source: Annotated[str | None, Arg("where it comes from", metavar="NAME")] = None,
    dedup: Annotated[
        bool | None, Arg("compare with stored memories; with --no-dedup always store a new one")
    ] = None,
    automatic: Annotated[
        str | None, Arg("what it may do to stored memories by itself", choices=AUTOMATIC)
    ] = None,
    force: Annotated[bool, Arg("even if this text was purged before")] = False,
) -> Added:
    """Remember a statement.

    Kind, summary and entities are detected unless given. Text in <private>…</private> and anything that looks like a secret is
    removed before it is stored. Shows which memories it replaces, closes, repeats or is newer than.
    """
    values = read_values("add", statement.fields, memory.clock())
    content = values.pop("content")
    outcome = memory.add(
        content,
        **values,
        embedding_text=statement.embedding_text,
        supersedes=statement.supersedes,
        personal=statement.personal,
        team=team,
        source=source or file,
        dedup=dedup,
        automatic=automatic,
        allow_purged=force,
    )
    return Added(outcome, content)


@operation(
    "Everyday",
    tool="update_memory",
    agents="append",
    opens="read",
    examples=(
        "bethink update 01a1dd89 --importance 9 --tag release,process",
        'bethink update 01a1dd89 --content "We deploy from main, after two reviews"',
        "bethink update 01a1dd89 --no-expiry",
        "bethink update 01a1dd89 --file notes/auth.txt",
        "bethink update 01a1dd89 --here",
    ),
)
def update(
    memory: "Bethink",
    id: Id,
    fields: UpdateFields,
    file: File = None,
    embedding_text: EmbeddingText = None,
    no_expiry: Annotated[bool, Arg("remove the expiry date")] = False,
    here: Annotated[bool, Arg("limit a personal memory to this project")] = False,
    all_projects: AllProjects = False,
) -> Changed:
    """Change a memory.

    Only the given fields change. The old version stays in its history.
    """
    if here:
        from bethink.features import inbox

        return Changed(inbox.bind(memory, id), "bound to this project")
    changes = {**fields, "expires": None} if no_expiry else fields
    return Changed(update_fields(memory, id, changes, embedding_text), "updated")


@operation(
    "Everyday",
    agents="append",
    opens="read",
    examples=(
        "bethink done 01a1dd89",
        "bethink done 01a1dd89 01a1de02",
        "bethink done retry policy",
        "bethink done 01a1dd89 --open",
    ),
)
def done(
    memory: "Bethink",
    ids: OpenItems,
    all_projects: AllProjects = False,
    open: Annotated[bool, Arg("reopen them")] = False,
) -> Closed:
    """Close to-dos, questions and problems.

    Name them by their ids, or one of them by words that only its text contains.
    """
    if not all(looks_like_id(one) for one in ids):
        ids = (find_item(memory, " ".join(ids), closed=open, all_projects=all_projects).id,)
    found = memory.get(*ids, count=False)
    for one in found:
        if one.kind not in OPEN_KINDS:
            raise InvalidInput(
                f"The memory {one.id} is a {one.kind}, which cannot be open or closed.",
                "`bethink todo` lists open to-dos, questions and problems.",
            )
    unchanged = frozenset(one.id for one in found if bool(one.answered) != open)
    changed = (
        one if one.id in unchanged else memory.update(one.id, answered=not open) for one in found
    )
    return Closed(list(changed), open, unchanged)


def find_item(memory: "Bethink", words: str, closed: bool, all_projects: bool) -> Memory:
    """Return the only open (or closed) item whose text contains all these words."""
    scopes = memory.every_scope() if all_projects else ()
    wanted = memory.filter(kinds=OPEN_KINDS, answered=closed, scopes=scopes)
    parts = words.casefold().split()
    if not any(character.isalnum() for character in words):
        raise InvalidInput(
            "Name the item by its id, or by words of its text.", "`bethink todo` lists open items."
        )
    items = memory.list(filter=wanted, limit=MOST_ITEMS)
    found = [one for one in items if all(part in one.content.casefold() for part in parts)]
    if len(found) == 1:
        return found[0]
    state = "closed" if closed else "open"
    if not found:
        listing = (
            "`bethink list --kind todo` lists all to-dos"
            if closed
            else "`bethink todo` lists the open ones"
        )
        raise NotFound(
            f"No {state} to-do, question or problem has the id or the words '{words[:100]}'.",
            f"{listing} with their ids.",
        )
    shown = [f"{short_id(memory, one.id)} ({one.content[:60]})" for one in found[:LISTED_ITEMS]]
    raise Ambiguous(
        f"{len(found)} {state} items contain the words '{words[:100]}'.",
        f"Name one by its id: {'; '.join(shown)}{' …' if len(found) > LISTED_ITEMS else ''}",
    )


@operation(
    "Everyday",
    http="POST /memories/{id}/restore",
    agents="append",
    opens="read",
    traits=("meaning",),
    examples=(
        "bethink restore 01a1dd89",
        "bethink restore 01a1dd89 --to 2",
        "bethink list --include-deleted",
    ),
)
def restore(
    memory: "Bethink",
    id: Id,
    all_projects: Annotated[AllProjects, Arg(without=("http",))] = False,
    to_version: Annotated[
        int | None,
        Arg(
            "the version to restore, as numbered by `bethink history ID`",
            metavar="N",
            low=1,
            high=1_000_000,
            aliases=("to",),
            on={"http": Arg(aliases=("to", "version"))},
        ),
    ] = None,
) -> Changed:
    """Restore a forgotten or replaced memory, or an earlier version."""
    return Changed(memory.restore(id, to_version), "restored")


@operation(
    "Everyday",
    http="POST /memories/{id}/votes",
    tool="rate_memories",
    agents="append",
    opens="read",
    examples=("bethink vote 01a1dd89", "bethink vote 01a1dd89 3", "bethink vote 01a1dd89 -1"),
)
def vote(
    memory: "Bethink",
    id: Id,
    value: Annotated[
        float, Arg("from -100 to 100", metavar="VALUE", positional=True, low=-100, high=100)
    ] = 1,
    all_projects: Annotated[AllProjects, Arg(without=("http",))] = False,
) -> Changed:
    """Rate a memory as useful or misleading.

    Intents such as `frequent` weigh votes. Counts as a use of the memory.
    """
    changed = memory.vote(id, value)
    return Changed(changed, f"votes {changed.usefulness:+g} for")


@operation(
    "Everyday",
    agents="append",
    opens="read",
    examples=(
        "bethink link 01a1dd89 supersedes 01a0c3f1",
        "bethink link 01a1dd89 answers 01a0c411",
        "bethink link 01a1dd89 01a0c411",
        "bethink link 01a1dd89 supersedes 01a0c3f1 --remove",
    ),
)
def link(
    memory: "Bethink",
    source: Annotated[Id, Arg(metavar="SOURCE")],
    type: Annotated[str, Arg("the relation, before TARGET; or TARGET alone", positional=True)],
    target: Annotated[str | None, Arg("the id of the other memory", positional=True)] = None,
    remove: Annotated[bool, Arg("remove the relation")] = False,
) -> Linked:
    """Relate two memories.

    Relations are supersedes, builds_on, contradicts, answers and relates_to (the default). `supersedes` hides the target from
    searches; `answers` marks a question as answered.
    """
    asked = type.replace("-", "_") if target else "relates_to"
    change = memory.unlink if remove else memory.link
    return Linked(change(source, target or type, asked), asked, remove)
