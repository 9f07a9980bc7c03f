"""What one operation of the API is: an address, what it takes, what it gives, who may ask, and the function that does it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel

from bethink.surface.http.schemas import Where
from bethink.types import NOTHING

if TYPE_CHECKING:
    from bethink.surface.http.checkup import Checkup
    from bethink.surface.http.jobs import Jobs
    from bethink.surface.http.metrics import Metrics
    from bethink.surface.http.once import Once
    from bethink.surface.http.projects import Projects, View
    from bethink.surface.http.security import Caller
    from bethink.surface.http.tokens import Register


class Tools(NamedTuple):
    """What operations share besides the memory."""

    projects: Projects
    jobs: Jobs
    once: Once
    metrics: Metrics
    checkup: Checkup
    tokens: Register


class Call(NamedTuple):
    """One request, checked."""

    memory: View
    caller: Caller
    tools: Tools
    path: Mapping[str, str]
    query: Any
    body: Any = None
    headers: Mapping[str, str] = NOTHING
    raw: bytes = b""


class Reply(NamedTuple):
    value: Any
    status: int = 200
    headers: Mapping[str, str] = NOTHING


class Lines(NamedTuple):
    """An answer of any length: a JSON object on each line."""

    values: Iterator[Any]


class Operation(NamedTuple):
    method: str
    path: str  # below /api/v1
    run: Callable[[Call], Any]  # its docstring describes the operation; in a thread
    answer: type[BaseModel] | None
    query: type[BaseModel] = Where
    body: type[BaseModel] | None = None
    scope: str = "read"
    group: str = ""
    status: int = 200
    meaning: bool = False  # whether the embedding model is waited for
    also: tuple[int, ...] = ()  # other statuses than the usual ones
