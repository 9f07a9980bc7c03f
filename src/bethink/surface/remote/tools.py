"""The tools of a team's memory for a local agent: every call goes to the server, and what it answers comes back word for word.

Where the server cannot be reached, a write waits in the outbox and is delivered later, once; a read is answered from this machine's own
memory of the project, which `bethink sync` keeps alike, and says so first.
"""

from __future__ import annotations

import threading

import mcp_types as types

from bethink.errors import BethinkError
from bethink.surface.mcp import schemas
from bethink.surface.mcp.keeper import Keeper
from bethink.surface.mcp.server import Context, Handlers, Places
from bethink.surface.remote.client import Unreachable
from bethink.surface.remote.outbox import Team


class RemoteTools(Handlers):
    """Answers tools from the team's server. Resources and prompts are of this machine's own project."""

    def __init__(self, keeper: Keeper, places: Places, team: Team) -> None:
        super().__init__(keeper, places)
        self._team = team
        threading.Thread(target=team.keep_delivering, name="bethink-outbox", daemon=True).start()

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        name = params.name
        if (
            name not in schemas.TOOLS
        ):  # none, or the prompt hook, which this machine's own memory answers
            return await super().call_tool(context, params)
        directory = await self._places.directory(context)
        try:
            arguments = schemas.check(name, params.arguments)
            text, failed = await self._keeper.run(
                self._team.call, name, arguments, directory or self._keeper.directory
            )
        except Unreachable as error:
            return await self._answer_here(context, params, error)
        except BethinkError as error:
            text, failed = f"{error.message} {error.hint or ''}".strip(), True
        content = types.TextContent(type="text", text=text.encode("utf-8", "replace").decode())
        return types.CallToolResult(content=[content], is_error=failed)

    async def _answer_here(
        self, context: Context, params: types.CallToolRequestParams, error: Unreachable
    ) -> types.CallToolResult:
        """What this machine itself knows, with a word on why."""
        found = await super().call_tool(context, params)
        said = f"The team's memory is out of reach: {error.message} This is what this machine's own memory says:"
        note = types.TextContent(type="text", text=said)
        return types.CallToolResult(content=[note, *found.content], is_error=found.is_error)
