"""Arguments for the fields of a memory, on every surface, derived from `model.Memory`.

`AddFields` and `UpdateFields` collect the fields that are present, by the name of their argument. `read_values` turns them into values.
"""

from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from bethink.app.operation import Arg, Members, Parameter
from bethink.errors import BethinkError
from bethink.model import FieldInfo, Json, Memory, Passage, Strings, Values, make_passage
from bethink.schema import LONGEST_TIME, argument_fields

if TYPE_CHECKING:
    from datetime import datetime

    from bethink.api import Bethink

_TYPES = {"number": "number", "whole": "whole", "switch": "switch", "object": "object"}
_LISTS = ("texts", "entities")
# Help in the tools for agents, where every token counts: of what is stored, and none of what is changed. Other fields have their usual help.
_BRIEF = {
    "content": "",
    "kind": "decision, fact, preference, gotcha, question, todo …",
    "summary": "",
    "importance": "",
    "confidence": "",
    "tags": "",
    "entities": "Redis, person:Ada",
    "valid_from": "",
    "valid_to": "",
    "answered": "",
    "metadata": "",
}
# Fields that a tool accepts without listing them: agents rarely need these, and every session pays for the list.
_UNLISTED = (
    "summary",
    "importance",
    "confidence",
    "valid_from",
    "valid_to",
    "tags",
    "entities",
    "metadata",
)
_UNLISTED_CHANGES = (*_UNLISTED, "kind", "expires_at")
LONGEST_METADATA = 10_000  # characters as JSON, from an agent


@cache
def list_arguments(operation: Literal["add", "update"]) -> tuple[Parameter, ...]:
    """The arguments of an operation for fields of a memory."""
    required = ("content",) if operation == "add" else ()
    return tuple(
        _make_parameter(
            info,
            name in required,
            _BRIEF.get(name) if operation == "add" else "",
            _UNLISTED if operation == "add" else _UNLISTED_CHANGES,
        )
        for name, info in argument_fields(operation).items()
    )


def _make_parameter(
    info: FieldInfo, required: bool, brief: str | None, unlisted: Strings
) -> Parameter:
    field, on = info.field, {}
    if info.shape == "object":
        on["mcp"] = Arg(longest=LONGEST_METADATA)
    if info.name == "content" and required:
        on["cli"] = Arg(metavar="TEXT", words=True)
    arg = Arg(
        info.takes,
        metavar={"kind": "KIND", "entities": "NAME", "tags": "TAG"}.get(info.name, ""),
        low=field.low,
        high=field.high,
        longest=LONGEST_TIME if info.shape == "time" else field.longest,
        aliases=field.aliases,
        brief=brief,
        unlisted=info.name in unlisted,
        commas=info.shape in _LISTS,
        stdin=info.name == "content",
        negative="open" if info.name == "answered" else "",
        on=on,
    )
    return Parameter(
        info.argument,
        _TYPES.get(info.shape, "text"),
        info.shape in _LISTS,
        required,
        None,
        arg,
        nullable=info.shape == "switch",
    )


AddFields = Annotated[Values, Members(partial(list_arguments, "add"))]
UpdateFields = Annotated[Values, Members(partial(list_arguments, "update"))]
EmbeddingText = Annotated[
    str | None,
    Arg("embedded in place of the content: how people will ask for it", unlisted=True),
]


class Statement(NamedTuple):
    """One memory to store."""

    fields: AddFields
    embedding_text: EmbeddingText = None
    supersedes: Annotated[
        Strings, Arg("ids of memories that it replaces", metavar="ID", brief="ids it replaces")
    ] = ()
    personal: Annotated[
        bool,
        Arg("about the user, in every project", without=("http",), brief="in every project"),
    ] = False


def read_values(operation: Literal["add", "update"], arguments: Values, now: "datetime") -> Json:
    """Values by the name of their field, with their times read. A field that is None is left out."""
    from bethink.language.times import expiry, moment

    known = argument_fields(operation)
    values = {}
    for argument, value in arguments.items():
        info = known[argument]
        if value is None:
            continue
        if info.shape == "time":
            value = (expiry if info.name == "expires_at" else moment)(value, now)
        values[info.name] = value
    return values


def build_passages(memory: "Bethink", statements: Sequence[Statement]) -> list[Passage]:
    """Passages of the statements, if all of them are valid. An error names the statement by its place."""
    passages = []
    for at, statement in enumerate(statements):
        try:
            passages.append(_build_passage(memory, statement))
        except BethinkError as error:
            message = f"memories[{at}]: {error.message} Nothing was stored."
            raise type(error)(message, error.hint) from error
    return passages


def _build_passage(memory: "Bethink", statement: Statement) -> Passage:
    from bethink import ingest
    from bethink.store.places import EMBEDDING_TEXT
    from bethink.text import as_entity, check_kind

    values = read_values("add", statement.fields, memory.clock())
    if text := statement.embedding_text:
        values["metadata"] = {**values.get("metadata", {}), EMBEDDING_TEXT: text}
    names = (name for name in values.get("entities", ()) if name.strip())
    values["kind"] = check_kind(values.get("kind"))
    values["entities"] = tuple(map(as_entity, names))
    values["supersedes"] = tuple(map(memory.resolve, statement.supersedes))
    passage = make_passage(**values)
    ingest.pipeline.clean_passage(passage, memory.config.max_characters)
    return passage


def update_fields(
    memory: "Bethink",
    id: str,
    arguments: Values,
    embedding_text: str | None = None,
    was: Memory | None = None,
) -> Memory:
    """Change some fields; None empties a field. Refuse if the memory changed since it `was` read."""
    known = argument_fields("update")
    clear = [
        known[name].name
        for name, value in arguments.items()
        if value is None and known[name].clearable
    ]
    values: dict[str, Any] = read_values("update", arguments, memory.clock())
    return memory.update(id, clear=clear, was=was, embedding_text=embedding_text, **values)
