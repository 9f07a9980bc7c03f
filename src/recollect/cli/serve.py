"""`mcp`: the surfaces that other programs talk to."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from recollect.cli import output
from recollect.cli.parsing import Command
from recollect.cli.session import directory
from recollect.errors import RecollectError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def mcp_options(parser: ArgumentParser) -> None:
    pass  # those of every command will do


def mcp(args: Namespace) -> None:
    """Speak the Model Context Protocol on stdin and stdout, for agents that start it themselves. The project is --project, else
    what the client says, else the current directory. Ends with its client. RECOLLECT_LOG=debug tells more on stderr.

    Examples:
      claude mcp add -s user recollect -- recollect mcp
      codex mcp add recollect -- recollect mcp
      recollect mcp --project ~/code/shop
    """
    project = directory(args)
    try:
        from recollect.mcp.stdio import serve
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        if missing.startswith("recollect"):
            raise
        raise RecollectError(
            f"The MCP server needs the library {missing or 'mcp'}, which cannot be used: {error}.", "pip install 'recollect[mcp]'"
        ) from error
    if sys.stdin is not None and sys.stdin.isatty():
        output.note(args, "Waiting for an MCP client on stdin; agents start this command themselves. Ctrl-C ends it.")
    serve(project, args.database, args.container)


COMMANDS = {"mcp": Command(mcp, mcp_options)}
