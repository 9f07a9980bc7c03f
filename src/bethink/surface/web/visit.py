"""What a page gets and gives: a visit of somebody who is signed in, and the template to show or the address to go on to.

A page asks for what it shows through `Visit.ask`, by the operation of the API that gives it: the same checks, the same
limits, the same objects as over REST. Pages run in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from bethink.errors import UsageError
from bethink.surface.http import api
from bethink.surface.http.api import Operation, Run, Tools
from bethink.surface.http.security import Caller
from bethink.types import NOTHING

EVERY, PERSONAL = "all", "personal"  # in the place of a project: more than one, and none


class Shown(NamedTuple):
    """A template with what it shows. Every template also gets `visit`, `room`, `mark` and what `render` puts there."""

    template: str
    values: Mapping[str, Any] = NOTHING
    status: int = 200


class Go(NamedTuple):
    """To another page, after a change: a reload then repeats nothing."""

    address: str


class Sent(NamedTuple):
    """Something that is no page: data for a script, or a file to keep, which may be of any length."""

    content: bytes | Iterator[Any]
    media_type: str
    name: str = ""  # under which a browser keeps it


PageAnswer = Shown | Go | Sent


class Visit(NamedTuple):
    caller: Caller
    tools: Tools
    room: str  # what every address of this visitor begins with
    mark: str  # what every form of this visitor carries
    method: str
    address: str  # the path, without the room and without what was asked
    path: Mapping[str, str]
    query: QueryParams
    last_visit: datetime | None = None  # when this browser looked at the first page before
    form: Mapping[str, str] = NOTHING  # of a POST; a field that is repeated as a comma list

    def parameter(self, name: str) -> str:
        """A parameter of the address; nothing where it was not given."""
        return self.query.get(name, "").strip()

    def number(self, name: str) -> int:
        """A number of the address; 0 where it was not given or is none."""
        text = self.query.get(name, "")
        return int(text) if text.isdecimal() and len(text) < 10 else 0

    @property
    def where(self) -> dict[str, str]:
        """The project that the visit is about, for addresses: nothing for the visitor's own."""
        return {name: value for name in ("project", "container") if (value := self.query.get(name))}

    @property
    def own(self) -> str:
        """The project that is meant where none is named: the server's, or the first that a member may see."""
        home = self.tools.projects.home.scope
        granted = [grant.scope for grant in self.caller.projects or ()]
        return home if self.caller.sees(home) or not granted else granted[0]

    @property
    def every(self) -> dict[str, bool]:
        """The project that the visit is about, for operations that know one project, or all."""
        return {"all_projects": self.query.get("project") == EVERY}

    @property
    def wide(self) -> dict[str, bool]:
        """The same for operations that can look at what is personal alone, too."""
        personal = {"personal": True} if self.query.get("project") == PERSONAL else {}
        return personal or self.every

    def ask(self, run: Run, /, **given: Any) -> Any:
        """What an operation of the API answers: `visit.ask(operations.search, query="deploy")`."""
        operation = _operations()[run]
        where = {name: one for name, one in self.where.items() if one not in (EVERY, PERSONAL)}
        if self.own != self.tools.projects.home.scope:
            where.setdefault("project", self.own)
        path = {"id": given.pop("id")} if "{id}" in operation.path else {}
        names = {argument.name for argument in operation.body or ()}
        body = {name: given.pop(name) for name in names & given.keys()}
        return api.perform(operation, self.caller, self.tools, path, {**where, **given}, body)

    def at(self, address: str, **more: str | int | None) -> str:
        """An address of these pages, for the same project."""
        asked = urlencode({name: value for name, value in {**self.where, **more}.items() if value})
        return f"{self.room}{address}?{asked}" if asked else f"{self.room}{address}"


Page = Callable[[Visit], PageAnswer]
AnyPage = TypeVar("AnyPage", bound=Page)


class SitePage(NamedTuple):
    """One page, or one thing that a form does."""

    method: str
    path: str
    run: Page


PAGES: list[SitePage] = []


def page(method: str, path: str) -> Callable[[AnyPage], AnyPage]:
    """Makes a function a page."""

    def register(run: AnyPage) -> AnyPage:
        PAGES.append(SitePage(method, path, run))
        return run

    return register


@cache
def _operations() -> dict[Run, Operation]:
    """Operations by their function."""
    return {operation.run: operation for operation in api.OPERATIONS}


def place(scope: str) -> dict[str, str]:
    """How an address names a scope; what is personal is seen from everywhere."""
    kind, _, rest = scope.partition(":")
    if kind == "container":
        project, _, name = rest.partition("/")
        return {"project": f"project:{project}", "container": name}
    return {"project": scope} if kind == "project" else {}


def explain(error: UsageError | ValueError) -> str:
    """What is wrong with what somebody typed, in a sentence."""
    if isinstance(error, UsageError):
        return f"{error.message} {error.hint or ''}".strip()
    return "Importance is a number from 0 to 10."
