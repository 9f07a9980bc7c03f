"""`mcp`: the MCP server on stdin and stdout. Separate from `serve`, so that it loads no HTTP server."""

import sys
from importlib.util import find_spec
from typing import Any

from bethink.app.cli.console import Console
from bethink.app.mcp import Wire, serve_stdio
from bethink.app.operation import operation


@operation(
    "Serve",
    agents="read",
    examples=(
        "claude mcp add -s user bethink -- bethink mcp",
        "codex mcp add bethink -- bethink mcp",
        "bethink mcp --project ~/code/shop",
    ),
)
def mcp(console: Console) -> None:
    """Run the MCP server on stdin and stdout.

    Agents start it themselves, and it ends with its client. The project is --project, else the one the client names, else that of
    the current directory. BETHINK_LOG=debug logs more on stderr.
    """
    place = console.directory

    def serve_rest(wire: Wire) -> None:
        load_server().serve(wire, place, console.database, console.container)

    if find_spec("mcp") is None:
        raise ImportError(name="mcp")
    if sys.stdin is not None and sys.stdin.isatty():
        waiting = "Waiting for an MCP client on stdin; agents start this command themselves."
        console.note(f"{waiting} Press Ctrl-C to stop.")
    serve_stdio(load_server, serve_rest)


def load_server() -> Any:
    from bethink.app.mcp import server

    return server
