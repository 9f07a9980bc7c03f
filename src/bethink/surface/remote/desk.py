"""The tools of a team's memory for a local agent: every call goes to the server, and what it answers comes back word for word.

Where the server cannot be reached, a write waits in the outbox and is delivered later, once; a read is answered from this machine's own
memory of the project, which `bethink sync` keeps alike, and says so first.
"""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import Any

import mcp_types as types

from bethink import project as projects
from bethink.errors import BethinkError
from bethink.surface.mcp import schemas
from bethink.surface.mcp.keeper import Keeper
from bethink.surface.mcp.server import Context, Desk, Places
from bethink.surface.remote.client import Client, Refused, Unreachable
from bethink.surface.remote.outbox import Entry, Outbox, entry, folder

AGAIN = 15.0  # seconds between two attempts to deliver what waits
QUICK = 8.0  # seconds that an agent is kept waiting for the server
EARLIER = 4.0  # seconds in which a call begins to deliver what was asked for before it; the rest waits on, and the call with it
log = logging.getLogger("bethink")


class Team:
    """A server, and the outbox for when it is away. Thread-safe."""

    def __init__(
        self,
        client: Client,
        name: str | None = None,
        container: str | None = None,
        outbox: Outbox | None = None,
    ) -> None:
        self._client, self._name, self._container = client, name, container
        self.outbox = outbox or Outbox(folder(client.shown))
        self._delivering = threading.Lock()
        self._ended = threading.Event()

    def project(self, directory: Path | None) -> str:
        return f"team:{self._name or projects.find(directory).name}"

    def call(
        self, name: str, arguments: dict[str, Any], directory: Path | None
    ) -> tuple[str, bool]:
        """What the server says, and whether that is a failure. Raises `Unreachable` for reads; writes wait then."""
        if schemas.TOOLS[name].hints.get("readOnlyHint"):
            text, failed = self._sent(
                Entry("", name, arguments, self.project(directory), self._container)
            )
            return "\n".join([text, *self._notes()]), failed
        asked, hidden = entry(name, arguments, self.project(directory), self._container)
        try:
            self.deliver(time.monotonic() + EARLIER)  # what was asked for before comes first
            if self.outbox.waiting():
                raise Unreachable("Earlier writes still wait to be delivered.")
            text, failed = self._sent(asked)
            return (
                f"{text}\n{hidden} private or secret part(s) taken out before it was sent."
                if hidden
                else text
            ), failed
        except Unreachable as error:
            self.outbox.put(asked)
            waiting = len(self.outbox.waiting())
            said = f"Kept on this machine: {error.message} It is delivered once the server is reached again, exactly once ({waiting} waiting)."
            return said, False

    def _sent(self, entry: Entry) -> tuple[str, bool]:
        where = {"project": entry.project, "container": entry.container}
        answer = self._client.post(
            f"/tools/{entry.tool}",
            {"arguments": entry.arguments},
            key=entry.key,
            seconds=QUICK,
            **where,
        )
        if not isinstance(answer, dict) or not isinstance(answer.get("text"), str):
            raise Unreachable(f"{self._client.shown} answered with something else.")
        return answer["text"], answer.get("failed") is True

    def _notes(self) -> list[str]:
        notes = []
        if waiting := len(self.outbox.waiting()):
            notes.append(
                f"Note: {waiting} write(s) of this machine still wait for the team's server."
            )
        if aside := len(self.outbox.aside()):
            notes.append(
                f"Note: the team's server refused {aside} write(s) of this machine; they are kept in {self.outbox.place}."
            )
        return notes

    def deliver(self, until: float | None = None) -> int:
        """Delivers what waits, if the server is there; with `until`, no longer than that."""

        def send(entry: Entry) -> str | None:
            try:
                text, failed = self._sent(entry)
            except Refused as error:
                return f"{error.message} {error.hint or ''}"
            return text if failed else None

        if not self._delivering.acquire(
            timeout=-1 if until is None else max(0.0, until - time.monotonic())
        ):
            return 0
        try:
            return self.outbox.deliver(send, until)
        except Unreachable as error:
            log.debug("Not delivered: %s", error.message)
            return 0
        finally:
            self._delivering.release()

    def keep_delivering(self) -> None:
        """Tries now and then until `close`."""
        while True:
            if done := self.deliver():
                log.info("Delivered %d writes.", done)
            if self._ended.wait(AGAIN):
                return

    def close(self) -> None:
        self._ended.set()


class RemoteDesk(Desk):
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
            return await self._from_here(context, params, error)
        except BethinkError as error:
            text, failed = f"{error.message} {error.hint or ''}".strip(), True
        content = types.TextContent(type="text", text=text.encode("utf-8", "replace").decode())
        return types.CallToolResult(content=[content], is_error=failed)

    async def _from_here(
        self, context: Context, params: types.CallToolRequestParams, error: Unreachable
    ) -> types.CallToolResult:
        """What this machine itself knows, with a word on why."""
        found = await super().call_tool(context, params)
        said = f"The team's memory is out of reach: {error.message} This is what this machine's own memory says:"
        note = types.TextContent(type="text", text=said)
        return types.CallToolResult(content=[note, *found.content], is_error=found.is_error)
