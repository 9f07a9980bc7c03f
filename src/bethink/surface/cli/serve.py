"""`mcp`: the surfaces that other programs talk to."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from bethink.errors import BethinkError, UsageError
from bethink.surface.cli import output
from bethink.surface.cli.parsing import Command
from bethink.surface.cli.session import directory

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def mcp_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--remote",
        nargs="?",
        const="",
        metavar="URL",
        help="the tools of a team's server; by default of the setting `team`",
    )
    parser.add_argument(
        "--as",
        dest="name",
        metavar="NAME",
        help="what the team calls this project (default: the name of its folder)",
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="a file that holds the token for the server (default: $BETHINK_TOKEN)",
    )


def mcp(args: Namespace) -> None:
    """Speak the Model Context Protocol on stdin and stdout, for agents that start it themselves. The project is --project, else
    what the client says, else the current directory. Ends with its client. BETHINK_LOG=debug tells more on stderr.
    With --remote the same tools work on a team's memory; while its server cannot be reached, what is to be stored waits on this
    machine and is delivered later, and searches are answered from this machine's own memory.

    Examples:
      claude mcp add -s user bethink -- bethink mcp
      codex mcp add bethink -- bethink mcp
      bethink mcp --project ~/code/shop
      claude mcp add -s user team -e BETHINK_TOKEN=rcl_… -- bethink mcp --remote https://memory.example
    """
    project = directory(args)
    try:
        from bethink.surface.mcp.stdio import serve
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        if missing.startswith("bethink"):
            raise
        raise BethinkError(
            f"The MCP server needs the library {missing or 'mcp'}, which cannot be used: {error}.",
            "pip install 'bethink[mcp]'",
        ) from error
    if sys.stdin is not None and sys.stdin.isatty():
        output.note(
            args,
            "Waiting for an MCP client on stdin; agents start this command themselves. Ctrl-C ends it.",
        )
    serve(
        project, args.database, args.container, _remote(args) if args.remote is not None else None
    )


def _remote(args: Namespace) -> Any:
    """How calls are answered by a team's server."""
    from bethink.surface.cli.session import settings
    from bethink.surface.remote.client import Client, read_token
    from bethink.surface.remote.outbox import Team
    from bethink.surface.remote.tools import RemoteTools

    url = args.remote or settings(args).team
    if not url.startswith(("http://", "https://")):
        raise UsageError("Which server is not said.", "bethink mcp --remote https://memory.example")
    team = Team(Client(url, read_token(args.token_file)), args.name, args.container)
    return lambda keeper, places: RemoteTools(keeper, places, team)


COMMANDS = {"mcp": Command(mcp, mcp_options)}
