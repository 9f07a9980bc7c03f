"""Overviews of the stored data: sessions, topics, failures and stats."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

from bethink.app.operation import Arg, operation
from bethink.app.operations.requests import AllProjects, Limit
from bethink.model import Json, Session, Span

if TYPE_CHECKING:
    from bethink.api import Bethink
    from bethink.features.failures import KnownFailure
    from bethink.store.base import Overview

SessionId = Annotated[
    str | None,
    Arg(
        "the beginning of a session's id; without it the latest sessions",
        metavar="SESSION",
        positional=True,
    ),
]
Sessions = Annotated[Limit, Arg("maximum number of sessions")]


class Conversation(NamedTuple):
    session: Session
    topics: Sequence[Span] | None = None


class Conversations(NamedTuple):
    """Conversations, the newest first; in `full` with sub-topics and summaries."""

    conversations: Sequence[Conversation]
    full: bool = False


class Failures(NamedTuple):
    failures: "Sequence[KnownFailure]"
    unsolved: bool  # only these were asked for


class Stats(NamedTuple):
    """Numbers about memories and their database."""

    numbers: "Overview"
    database: str
    scope_names: Mapping[str, str]
    language_model: Json

    @property
    def every(self) -> int:
        return self.numbers.memories + self.numbers.deleted

    @property
    def bytes_per_memory(self) -> int:
        return round(self.numbers.database_bytes / self.every) if self.every else 0


def find_sessions(memory: "Bethink", session: str | None, limit: int) -> Sequence[Session]:
    from bethink.features import conversations

    return [memory.find_session(session)] if session else conversations.sessions(memory, limit)


@operation(
    "Browse",
    agents="read",
    opens="read",
    examples=("bethink sessions", "bethink sessions 3f2a", "bethink sessions --limit 50 --json"),
)
def sessions(
    memory: "Bethink",
    session: SessionId = None,
    limit: Sessions = 10,
    all_projects: AllProjects = False,
) -> Conversations:
    """Show what conversations asked, did and left open.

    The newest session comes first.
    """
    return Conversations([Conversation(one) for one in find_sessions(memory, session, limit)])


@operation(
    "Browse",
    agents="read",
    opens="read",
    examples=(
        "bethink topics",
        "bethink topics --all-projects",
        "bethink topics 3f2a --tree",
        "bethink topics --limit 50 --json",
    ),
)
def topics(
    memory: "Bethink",
    session: SessionId = None,
    limit: Sessions = 10,
    all_projects: AllProjects = False,
    tree: Annotated[bool, Arg("with sub-topics and summaries")] = False,
) -> Conversations:
    """Show what conversations were about.

    The newest session comes first; one session is shown in full.
    """
    from bethink.features import conversations

    found = [
        Conversation(one, conversations.topics(memory, one))
        for one in find_sessions(memory, session, limit)
    ]
    return Conversations(found, full=bool(tree or session))


@operation(
    "Browse",
    http="GET /failures",
    agents="read",
    opens="read",
    examples=("bethink failures", "bethink failures --open", "bethink failures --json"),
)
def failures(
    memory: "Bethink",
    open: Annotated[bool, Arg("only failures without a fix")] = False,
    limit: Annotated[Limit, Arg(on={"http": Arg(high=100, default=50)})] = 20,
    all_projects: AllProjects = False,
) -> Failures:
    """List failed commands and what fixed them.

    Each comes with how often and when last it failed. Errors are recognised across sessions, worktrees and agents.
    """
    from bethink.features.failures import list_failures

    return Failures(list_failures(memory, open, limit, all_projects), open)


@operation(
    "Browse",
    tool="memory_overview",
    agents="read",
    opens="read",
    examples=("bethink stats", "bethink stats --this-project", "bethink stats --json"),
)
def stats(
    memory: "Bethink",
    all_projects: Annotated[
        AllProjects, Arg("every project in the database (the default)", one_of="reach")
    ] = False,
    this_project: Annotated[
        bool, Arg("only this project and personal memories", one_of="reach")
    ] = False,
) -> Stats:
    """Count what is stored: memories by kind and project, vectors, entities, bytes."""
    from bethink.features import language

    numbers = memory.stats(memory.scopes if this_project else None)
    known = memory.store.scopes()
    names = {scope: known[scope] for scope in numbers.by_scope if known[scope]}
    return Stats(numbers, str(memory.store.path), names, language.report_usage(memory))
