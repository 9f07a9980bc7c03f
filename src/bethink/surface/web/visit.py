"""What a page gets and gives: a visit of somebody who is signed in, and the template to show or the address to go on to.

A page asks for what it shows through `Visit.ask`, by the operation of the API that gives it: the same checks, the same
limits, the same objects as over REST. Pages run in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from bethink.surface.http import api
from bethink.surface.http.operation import Call, Operation, Reply, Tools
from bethink.surface.http.projects import View, refuse_write
from bethink.surface.http.security import ACCESS, Access, Caller
from bethink.types import NOTHING, TRUST

Run = Callable[[Call], Any]
EVERY, PERSONAL = "all", "personal"  # in the place of a project: more than one, and none


class Shown(NamedTuple):
    """A template with what it shows. Every template also gets `visit`, `mark` and what `render` puts there."""

    template: str
    values: Mapping[str, Any] = NOTHING
    status: int = 200


class Go(NamedTuple):
    """To another page, after a change: a reload then repeats nothing."""

    address: str


class Sent(NamedTuple):
    """Something that is no page: a file to keep, or data for a script."""

    content: bytes
    media_type: str
    name: str = ""  # under which a browser keeps it


class Streamed(NamedTuple):
    """A file of any length to keep: a JSON object on each line."""

    values: Iterator[Any]
    media_type: str
    name: str


Answered = Shown | Go | Sent | Streamed


class Visit(NamedTuple):
    caller: Caller
    tools: Tools
    mark: str
    method: str
    address: str  # the path, without what was asked
    path: Mapping[str, str]
    query: QueryParams
    form: Mapping[str, str] = NOTHING  # of a POST; of a field that is repeated the last

    @property
    def where(self) -> dict[str, str]:
        """The project that the visit is about, for addresses: nothing for the server's own."""
        return {name: value for name in ("project", "container") if (value := self.query.get(name))}

    @property
    def wide(self) -> dict[str, bool]:
        """The same for operations that can look beyond one project."""
        chosen = self.query.get("project")
        return (
            {"all_projects": True}
            if chosen == EVERY
            else {"personal": True}
            if chosen == PERSONAL
            else {}
        )

    def ask(self, run: Run, query: Mapping[str, Any] = NOTHING, **more: Any) -> Any:
        """What an operation of the API answers: `visit.ask(memories.search, {"query": "deploy"})`. More: `path`, `body`, `headers`."""
        return self.reply(run, query, **more).value

    def reply(
        self,
        run: Run,
        query: Mapping[str, Any] = NOTHING,
        *,
        path: Mapping[str, str] = NOTHING,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] = NOTHING,
    ) -> Reply:
        """The same with its headers."""
        operation = _operations()[run]
        if operation.scope == "write" and not self.caller.may_write:
            raise refuse_write()
        where = {
            name: value for name, value in self.where.items() if value not in (EVERY, PERSONAL)
        }
        asked: Any = operation.query.model_validate({**where, **query}, strict=False)
        given = (
            operation.body.model_validate(body)
            if operation.body is not None and body is not None
            else None
        )
        view = self.view(asked.project, asked.container, operation.meaning)
        found = operation.run(Call(view, self.caller, self.tools, path, asked, given, headers))
        return found if isinstance(found, Reply) else Reply(found, operation.status)

    def view(
        self, project: str | None = None, container: str | None = None, meaning: bool = False
    ) -> View:
        """The memory of a project, as this visitor sees it."""
        access = Access(self.caller, project, container)
        ACCESS.set(access)
        actor = "user" if self.caller.owner else f"token:{self.caller.name}"
        return self.tools.projects.view(
            access, actor, TRUST["user" if self.caller.owner else "agent"], meaning
        )

    def at(self, address: str, **more: str | None) -> str:
        """An address of these pages, for the same project."""
        asked = urlencode({name: value for name, value in {**self.where, **more}.items() if value})
        return f"{address}?{asked}" if asked else address


class Page(NamedTuple):
    """One page, or one thing that a form does."""

    method: str
    path: str
    run: Callable[[Visit], Answered]


@cache
def _operations() -> dict[Run, Operation]:
    """Operations by their function. Of one that takes its question in two ways, the way by address."""
    return {operation.run: operation for operation in reversed(api.OPERATIONS)}


def place(scope: str) -> dict[str, str]:
    """How an address names a scope; what is personal is seen from everywhere."""
    kind, _, rest = scope.partition(":")
    if kind == "container":
        project, _, name = rest.partition("/")
        return {"project": f"project:{project}", "container": name}
    return {"project": scope} if kind == "project" else {}
