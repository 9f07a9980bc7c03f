"""`hook`: what agents' hooks call. A host's own call goes through `hooks.process`, past the parser; this is for people and their tests."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bethink.hooks.event import AUTO, EVENTS, HOSTS
from bethink.hooks.process import WORK, given
from bethink.surface.cli import output
from bethink.surface.cli.parsing import Command

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def hook_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "event",
        metavar="EVENT",
        help=f"{', '.join(EVENTS)}; or `{WORK}`, to read what waits in the spool",
    )
    parser.add_argument(
        "--host",
        default=AUTO,
        metavar="HOST",
        help=f"{', '.join(HOSTS)}; by default told by what it says",
    )
    parser.add_argument("--lock", help="of the worker, which inherits it")


def hook(args: Namespace) -> int:
    """Do what an agent's hook asks for: give a briefing when a session starts, add what fits a prompt, note a transcript that grew.
    `bethink install` puts this into the agents' settings. Reads the host's message from stdin, prints what its model is to know,
    or nothing, and ends with 0 whatever happens; `bethink doctor` shows what went wrong. BETHINK_HOOKS=off does nothing.

    Examples:
      echo '{"cwd": "/home/me/shop", "source": "startup"}' | bethink hook session-start --host claude
      echo '{"cwd": "/home/me/shop", "prompt": "how do we deploy?"}' | bethink hook prompt --host codex
      bethink hook work --database ~/.local/share/bethink/memory.db
    """
    if args.event == WORK:
        from bethink.hooks import worker

        lock = ["--lock", args.lock] if args.lock else []
        return worker.main([*(["--database", args.database] if args.database else []), *lock])
    from bethink.hooks.run import run

    if args.database:
        os.environ["BETHINK_DATABASE"] = args.database
    if printed := run(args.event, args.host, given()):
        output.out(printed)
    return 0


COMMANDS = {"hook": Command(hook, hook_options)}
