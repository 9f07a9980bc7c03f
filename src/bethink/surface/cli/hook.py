"""`hook`: what agents' hooks call. A host's own call goes to `hooks.run.run_alone`, past the parser; this is for people and their tests."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bethink.hooks.event import AUTO, EVENTS, HOSTS
from bethink.hooks.run import WORK, read_message, run
from bethink.surface.cli import console
from bethink.surface.cli.parsing import command

if TYPE_CHECKING:
    from argparse import Namespace


@command(
    "hook",
    f"""
    EVENT                   {", ".join(EVENTS)}; or `{WORK}`, to read what waits in the spool
    --host HOST = {AUTO}    {", ".join(HOSTS)}; by default told by what it says
    --lock LOCK             of the worker, which inherits it
    """,
)
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

        given = {"--database": args.database, "--lock": args.lock}
        words = [word for name, value in given.items() if value for word in (name, value)]
        return worker.main(words)
    if args.database:
        os.environ["BETHINK_DATABASE"] = args.database
    if printed := run(args.event, args.host, read_message()):
        console.out(printed)  # in the host's own form, whatever --format says
    return 0
