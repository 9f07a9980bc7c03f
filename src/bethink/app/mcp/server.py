"""Protocol handlers for the official SDK (the package `mcp`).

The SDK speaks both versions of the protocol: the stateless one of 2026-07-28, and those that begin with `initialize`.

An answer is text. A search also returns its matches as structured content, except to agents that would show the model both or
nothing else. The list of tools and the handshake need neither the store nor a model; everything else runs in
the keeper's threads.
"""

import asyncio
import json
import logging
import os
import re
import signal
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, Self, TypeVar
from urllib.parse import unquote, urlsplit

import anyio
import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ValidationError

from bethink.agents import copilot
from bethink.app.mcp import CACHED, ENDS, HOOK, LISTS, SERVER, WELCOME, Wire, resources, tools
from bethink.app.mcp.keeper import Keeper, answer_prompt_hook
from bethink.app.mcp.tools import PROMPTS, TOOLS, Tool
from bethink.errors import BethinkError, NotFound
from bethink.model import Values
from bethink.outgoing import Block, clear_line, clear_value, join
from bethink.text import suggest

WARM_AFTER = 0.3  # seconds after the list of tools was asked for: by then it is answered
ROOTS_WITHIN = 2.0  # seconds a client has to name its roots
# Clients that show their model structured content in place of the text (Claude Code, Codex) or beside it (Copilot): it would read
# the answer as one line of JSON, or twice. They get the text, which says the numbers, too.
TEXT_ONLY = re.compile(r"claude|codex|copilot", re.IGNORECASE)

Context = ServerRequestContext[Any, Any]
log = logging.getLogger("bethink")


Listed = TypeVar("Listed", bound=BaseModel)


def build(keeper: Keeper, ask_roots: bool = False) -> Server[Any]:
    """Build a server over a keeper's memories. With `ask_roots`, the client's roots name its project."""
    handlers = Handlers(keeper, ask_roots)
    hints: dict[Any, CacheHint] = {method: CacheHint(ms) for method, ms in CACHED.items()}
    server: Server[Any] = Server(
        **SERVER,
        instructions=WELCOME["instructions"],
        cache_hints=hints,
        on_list_tools=handlers.offer(types.ListToolsResult, "tools/list"),
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.offer(
            types.ListResourceTemplatesResult, "resources/templates/list"
        ),
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.offer(types.ListPromptsResult, "prompts/list"),
        on_get_prompt=handlers.get_prompt,
    )
    server.add_notification_handler(
        "notifications/roots/list_changed", types.NotificationParams, handlers.forget_roots
    )
    return server


class Handlers:
    """Answers requests: each method is one of the protocol's."""

    def __init__(self, keeper: Keeper, ask_roots: bool) -> None:
        self._keeper, self._asks_roots = keeper, ask_roots
        self._roots: list[Path] | None = None  # None: the client was not asked yet

    def offer(
        self, kind: type[Listed], method: str
    ) -> Callable[[Context, object], Awaitable[Listed]]:
        """Answer a request for a list from the table alone."""

        async def answer(context: Context, params: object) -> Listed:
            asyncio.get_running_loop().call_later(WARM_AFTER, self._keeper.warm_up)
            return kind.model_validate(LISTS[method])

        return answer

    async def _work(
        self,
        context: Context,
        function: Callable[..., Any],
        *arguments: object,
        meaning: bool = False,
    ) -> Any:
        """Run a function of a memory in a thread."""
        directory, actor = await self._find_directory(context), client_name(context)
        return await self._keeper.run(
            lambda: function(self._keeper.memory(directory, actor, meaning), *arguments)
        )

    async def _call(
        self, context: Context, tool: Tool, arguments: Values | None
    ) -> tools.ToolReply:
        """Run a tool or a prompt."""
        checked = tool.read_arguments(arguments)
        reply: tools.ToolReply = await self._work(
            context, tools.call, tool.name, checked, meaning=tool.meaning
        )
        return reply

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if params.name == HOOK and self._keeper.hooked:
            work = self._keeper.run(answer_prompt_hook, self._keeper, params.arguments or {})
            return tool_result(join([await work]))
        _check_known("tool", params.name, TOOLS)
        try:
            reply = await self._call(context, TOOLS[params.name], params.arguments)
        except Exception as error:  # noqa: BLE001 - the outermost boundary of a tool
            return tool_result(explain(error, params.name), failed=True)
        text_only = TEXT_ONLY.search(client_name(context))
        return tool_result(reply.text, numbers=None if text_only else reply.numbers)

    async def list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        if params and params.cursor:
            raise refuse(types.INVALID_PARAMS, "This list has one page, and no cursor.")
        found = await translate(self._work(context, resources.list_resources))
        listed = [types.Resource(**one) for one in clear_value(found)]
        return types.ListResourcesResult(resources=listed)

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        kind, text = await translate(self._work(context, resources.read_resource, params.uri))
        contents = types.TextResourceContents(
            uri=clear_line(params.uri), mime_type=kind, text=join([text])
        )
        return types.ReadResourceResult(contents=[contents])

    async def get_prompt(
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        _check_known("prompt", params.name, PROMPTS)
        known = PROMPTS[params.name]
        reply = await translate(self._call(context, known, params.arguments))
        message = types.PromptMessage(role="user", content=_as_content(reply.text))
        return types.GetPromptResult(description=known.description, messages=[message])

    # Where a client works: in the first directory that it names, unless the server was started inside one of them

    async def _find_directory(self, context: Context) -> Path | None:
        """The client's project, or None for the server's own."""
        if not self._asks_roots:
            return None
        if workspaces := _codex_workspaces(context.meta):
            return choose_root(workspaces, Path.cwd())
        abilities, session = context.session.client_capabilities, context.session
        if not abilities or abilities.roots is None or not session.can_send_request:
            return None
        if self._roots is None:
            self._roots = await _ask_roots(context)
        return choose_root(self._roots, Path.cwd())

    async def forget_roots(self, context: Context, params: object) -> None:
        """Forget the client's roots, which have changed."""
        self._roots = None


def _codex_workspaces(meta: Mapping[str, object] | None) -> list[Path]:
    """The directories that Codex names with every call."""
    turn = (meta or {}).get("x-codex-turn-metadata")
    return list(map(Path, turn.get("workspaces") or ())) if isinstance(turn, dict) else []


async def _ask_roots(context: Context) -> list[Path]:
    try:
        answer = await context.session.send_request(
            types.ListRootsRequest(), types.ListRootsResult, ROOTS_WITHIN
        )
    except (MCPError, ValidationError) as error:
        log.debug("The client did not name its roots: %s", error)
        return []
    return [Path(unquote(urlsplit(str(root.uri)).path)) for root in answer.roots]


def choose_root(roots: Sequence[Path], here: Path) -> Path | None:
    """The root to work in; None where the current directory will do."""
    if any(here.resolve().is_relative_to(root.resolve()) for root in roots):
        return None
    return next((root for root in roots if root.is_dir()), None)


def client_name(context: Context) -> str:
    """Name of the client as history has it: `agent:claude-code`."""
    params = context.session.client_params
    name = re.sub(r"[^\w.-]+", "-", params.client_info.name if params else "").strip("-.")[:40]
    return f"agent:{name or 'unknown'}"


def _check_known(what: str, name: str, known: Iterable[str]) -> None:
    if name not in known:
        close = suggest(name, known)
        raise refuse(types.INVALID_PARAMS, f"There is no {what} '{name[:100]}'. {close}".strip())


# The exits: all text towards a client is made in these three, and has passed the gate.


def refuse(code: int, message: str) -> MCPError:
    """Return an error of the protocol, which may quote what the client sent or what is stored."""
    return MCPError(code, clear_line(message))


def _as_content(text: Block) -> types.TextContent:
    return types.TextContent(type="text", text=join([text]))


def tool_result(
    text: Block, failed: bool = False, numbers: Values | None = None
) -> types.CallToolResult:
    content = _as_content(text)
    structured = clear_value(numbers) if numbers else None
    return types.CallToolResult(content=[content], is_error=failed, structured_content=structured)


def explain(error: Exception, what: str) -> Block:
    """Return what went wrong, in a sentence and with what to do next."""
    if isinstance(error, BethinkError):
        if isinstance(error, NotFound) and "There is no memory" in error.message:
            error.hint = "search_memories shows ids."  # a command is for people
        return join([error.full_message])
    log.error("%s failed", what, exc_info=error)
    why = "The server's log says why; `bethink doctor` checks the rest."
    return join([f"{what} failed: {type(error).__name__}. {why}"])


async def translate(work: Awaitable[Any]) -> Any:
    """Await the work; convert an error into one of the protocol."""
    try:
        return await work
    except Exception as error:
        code = types.INVALID_PARAMS if isinstance(error, BethinkError) else types.INTERNAL_ERROR
        raise refuse(code, explain(error, "The request")) from error


# On stdin and stdout, as agents start it: from the end of the greeting to the end of its host. It ends when stdin does, when its parent
# is gone, or on a signal. A thread waits in a read of stdin and cannot be called back, so the last act is to leave the process,
# after the calls that still run and with the databases closed.

_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
# A client that closes stdin waits about two seconds before it kills.
_GRACE = 1.5
LOOK_AROUND = 1.0  # seconds between two looks at whether the parent is still there


def serve(wire: Wire, directory: Path | None, *place: str | None) -> NoReturn:
    """Speak the protocol until the client is gone, and end the process. `place`: database, container."""
    _prepare_log()
    home = os.environ.get("CLAUDE_PROJECT_DIR", "") or copilot.find_directory(
        os.environ, Path.home()
    )
    found = Path(home) if home and Path(home).is_dir() else None
    keeper = Keeper(directory or found, *place)
    keeper.hooked = True
    asyncio.run(_serve(wire, keeper))
    leave(keeper, 0)


async def _serve(wire: Wire, keeper: Keeper) -> None:
    server = build(keeper, ask_roots=keeper.directory is None)
    _end_on_signals(lambda code: leave(keeper, code))
    watching = asyncio.create_task(_follow_parent(keeper, wire.parent))
    lines: Any = WireFile(wire)
    try:
        async with stdio_server(lines, lines) as (messages, say):
            await server.run(messages, say, server.create_initialization_options())
    except* (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as gone:
        log.debug("The client went away: %s", gone.exceptions)
    watching.cancel()


class WireFile:
    """The wire as the SDK uses it. Answers invalid lines with an error, where the SDK drops them."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        while (line := await anyio.to_thread.run_sync(self._wire.read)) is not None:
            try:
                types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                return line
            except ValidationError as error:
                await self.write(_refuse_line(line, error))
        raise StopAsyncIteration

    async def write(self, text: str) -> None:
        await anyio.to_thread.run_sync(self._wire.write, text)

    async def flush(self) -> None:
        """Each line is written through."""


def leave(keeper: Keeper, code: int) -> NoReturn:
    if not keeper.close(_GRACE):
        log.debug("A call was still running and is given up.")
    os._exit(code)


def _end_on_signals(end: Callable[[int], None]) -> None:
    loop = asyncio.get_running_loop()
    for name, code in ENDS.items():
        if number := getattr(signal, name, None):
            with suppress(NotImplementedError):  # Windows: the host ends the process there
                loop.add_signal_handler(number, end, code)


async def _follow_parent(keeper: Keeper, parent: int) -> None:
    """A host that was killed may leave stdin open in another of its children."""
    while os.getppid() == parent:
        await asyncio.sleep(LOOK_AROUND)
    leave(keeper, 0)


def _refuse_line(line: str, wrong: ValidationError) -> str:
    """Return the error for an invalid line, under the id in it, so that its sender does not wait."""
    id, error = "null", {"code": types.INVALID_REQUEST, "message": "No JSON-RPC message."}
    if wrong.errors()[-1]["type"] == "json_invalid":
        # Half a character, brackets nested deeper or a number longer than a parser takes: JSON all the same, for its sender.
        message = "This line cannot be read as JSON: it is broken, nested too deeply, or has too long a number."
        error = {"code": types.PARSE_ERROR, "message": message}
        id = find_id(line)
    return f'{{"jsonrpc": "2.0", "id": {id}, "error": {json.dumps(error)}}}\n'


def _is_json(text: str) -> bool:
    with suppress(ValueError):
        json.loads(text)
        return True
    return False


_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]|[^"\[\]{}]++')


def find_id(line: str) -> str:
    """Return the id of a message as it is written, or `null`, without parsing any other value."""
    depth, name, is_next = 0, "", False
    for found in _TOKEN.finditer(line):
        token = found[0]
        if token in "[{":
            depth, is_next = depth + 1, False
        elif token in "]}":
            depth -= 1
        elif depth == 1 and token.startswith('"'):
            if is_next:
                return token if _is_json(token) else "null"
            name = token
        elif depth == 1:
            value = re.match(r"\s*:\s*(-?\d{1,1000}(?!\d))?", token)
            is_next = bool(value) and name == '"id"'
            if value and value[1] and is_next:
                return value[1]
            name = ""
    return "null"


def _prepare_log() -> None:
    """Log to stderr at the level of BETHINK_LOG. The SDK's log may repeat messages: warnings only."""
    wanted = os.environ.get("BETHINK_LOG", "").strip().upper()
    logging.basicConfig(stream=sys.stderr, format="bethink %(levelname)s: %(message)s")
    log.setLevel(wanted if wanted in _LEVELS else "WARNING")
