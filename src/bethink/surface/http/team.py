"""The operations for other machines of a team: the tools of agents that reach this server through their own `bethink mcp --remote`,
and the exchange of `bethink sync`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from bethink.errors import BethinkError, NotFound, StoreError
from bethink.features import incoming
from bethink.features.sync import StorePeer
from bethink.store.bundle import EPOCH, Bundle, bundle_to_json, stamp
from bethink.surface.http.operation import Call, Reply, operation
from bethink.surface.http.projects import no_personal, refuse_write
from bethink.surface.http.schemas import Strict, Where
from bethink.surface.mcp import schemas as tools
from bethink.surface.mcp.tools import TOOLS
from bethink.types import PERSONAL

MOST_RECORDS = 200

Hash = Annotated[str, Field(max_length=128)]
Name = Annotated[str, Field(max_length=100)]


class Which(Where):
    personal: bool = Field(False, description="what is personal, instead of the project")


class ToolCall(Strict):
    arguments: dict[str, Any] = Field({})


class Wanted(Strict):
    what: Annotated[list[Literal["told", "conversations", "documents"]], Field(max_length=3)] = (
        Field(["told"])
    )


class Ids(Strict):
    ids: Annotated[list[Hash], Field(max_length=MOST_RECORDS)] = Field([])


class Given(Strict):
    bundle: dict[str, Any] = Field({})
    expect: dict[Hash, Hash | None] = Field(
        {}, description="id → the version that is replaced; null where there must be none"
    )


class Removal(Strict):
    gone: Annotated[list[Hash], Field(max_length=1000)] = Field(
        [], description="ids to remove without a trace"
    )
    expect: dict[Hash, Hash] = Field(
        {}, description="id → the version that is removed; one that changed meanwhile stays"
    )
    purge: Annotated[list[Hash], Field(max_length=1000)] = Field([])
    unlink: Annotated[list[tuple[Hash, Hash, Name]], Field(max_length=1000)] = Field([])


class Hashes(Strict):
    hashes: Annotated[list[Hash], Field(max_length=10_000)] = Field([])


@operation("Team", "POST", "/tools/{name}", "Told", body=ToolCall, meaning=True)
def call_tool(call: Call) -> Reply:
    """Calls a tool of the MCP server and gives the text that an agent reads. With an `Idempotency-Key` a call that changes something is
    done once."""
    name = call.path["name"]
    if name not in tools.TOOLS:
        raise NotFound(
            f"There is no tool '{name[:100]}'.",
            f"{tools.nearest(name, list(tools.TOOLS))} /mcp lists them.".strip(),
        )
    if tools.TOOLS[name].hints.get("readOnlyHint"):
        # There is nothing to do twice, and nothing to keep: memories are quoted in its answer.
        return _run_tool(call, name)
    if not call.caller.may_write:
        raise refuse_write()
    request = b"\0".join((call.memory.scope.encode(), name.encode(), call.raw))
    return call.tools.once(call, request, lambda call: _run_tool(call, name))


def _run_tool(call: Call, name: str) -> Reply:
    try:
        text = TOOLS[name](call.memory, tools.check(name, call.body.arguments))
        return Reply({"text": text, "failed": False})
    except BethinkError as error:
        if getattr(error, "status", 0) or isinstance(error, StoreError):
            raise  # a database that is away refuses nothing: whoever asked asks again
        return Reply({"text": f"{error.message} {error.hint or ''}".strip(), "failed": True})


def _peer(call: Call) -> StorePeer:
    """The database to exchange memories with, and in it the scope that is exchanged."""
    memory, personal = call.memory, call.query.personal
    if personal and not call.caller.personal:
        raise no_personal()
    scope = PERSONAL if personal else memory.scope
    return StorePeer(memory.store, scope, memory.actor, memory.clock)


@operation("Team", "POST", "/sync/outline", "Outlined", Which, Wanted)
def outline(call: Call) -> dict[str, Any]:
    """What a project holds, as far as it takes to compare it with another database."""
    found = _peer(call).outline(call.body.what)
    lines = [[id, line.version.hex(), line.hash, line.alone] for id, line in found.lines.items()]
    links = [
        [*link, stamp(relation.created_at or EPOCH), actor]
        for link, (relation, actor) in found.links.items()
    ]
    return {"lines": lines, "links": links}


@operation("Team", "POST", "/sync/records", "Bundled", Which, Ids)
def give_records(call: Call) -> dict[str, Any]:
    """Memories whole, with their history and vectors."""
    return {"bundle": bundle_to_json(Bundle(records=tuple(_peer(call).fetch(call.body.ids))))}


@operation("Team", "POST", "/sync/places", "Bundled", Which, Wanted)
def give_places(call: Call) -> dict[str, Any]:
    """Sources, sessions, topics and known messages of a project."""
    return {"bundle": bundle_to_json(_peer(call).places())}


@operation("Team", "POST", "/sync/take", "Left", Which, Given, scope="write")
def take_records(call: Call) -> dict[str, Any]:
    """Puts memories of another database down as they are, where they are expected."""
    database = _peer(call)
    longest = call.memory.config.max_characters
    bundle, hidden = incoming.check_bundle(call.body.bundle, longest)
    expect = {id: None if one is None else _version(one) for id, one in call.body.expect.items()}
    bundle = bundle._replace(relations=_inside(call, database.scope, bundle.relations))
    return {"left": [*hidden, *database.take(bundle, expect)]}


def _inside(call: Call, scope: str, relations: Any) -> Any:
    """Relations between memories of this scope alone."""
    ids = {id for relation, _ in relations for id in relation[:2]}
    here = {memory.id for memory in call.memory.store.get(sorted(ids)) if memory.scope == scope}
    return tuple(
        (relation, actor)
        for relation, actor in relations
        if relation.source in here and relation.target in here
    )


@operation("Team", "POST", "/sync/remove", "Removed", Which, Removal, scope="write")
def remove_records(call: Call) -> dict[str, Any]:
    """Removes what another database no longer has."""
    database = _peer(call)
    asked = call.body
    wanted = {*asked.gone, *asked.purge, *(id for link in asked.unlink for id in link[:2])}
    here = {
        memory.id
        for memory in call.memory.store.get(sorted(wanted))
        if memory.scope == database.scope
    }
    gone = {
        id: _version(asked.expect[id]) if id in asked.expect else None
        for id in asked.gone
        if id in here
    }
    purge = [id for id in asked.purge if id in here]
    unlink = [
        (source, target, type)
        for source, target, type in asked.unlink
        if source in here and target in here
    ]
    left = database.remove(gone, purge, unlink)
    return {"removed": len(gone) + len(purge) + len(unlink) - len(left), "left": list(left)}


def _version(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""  # no version is written so: nothing is changed


@operation("Team", "POST", "/sync/purged", "Purged", Which, Hashes, scope="write")
def list_purged(call: Call) -> dict[str, Any]:
    """Which of these texts, by their hashes, were purged here."""
    return {"purged": sorted(_peer(call).purged(call.body.hashes))}
