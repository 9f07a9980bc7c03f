"""The prompt hook without a process: a host that can calls it as a tool of the server that runs anyway (`"type": "mcp_tool"` in Claude
Code). It answers what `bethink hook prompt` prints, and uses the embedding model if that is on this machine and open already; it never
waits for it, and sends no prompt anywhere.

Like every hook it never fails: what goes wrong is counted, and the answer is empty.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bethink.hooks import event, run

if TYPE_CHECKING:
    from bethink.surface.mcp.keeper import Keeper

EVENT, HOST = "prompt", "claude"


def prompted(keeper: Keeper, arguments: Mapping[str, Any]) -> str:
    """What to add to a prompt. Arguments: prompt, session_id, cwd, and if the host gives them source and host."""
    if run.switched_off():
        return ""
    # A host that has no value for a placeholder may leave it as it is.
    told = {
        name: value
        for name, value in arguments.items()
        if not (isinstance(value, str) and value.startswith("${"))
    }
    host = told.get("host")
    host = host if isinstance(host, str) and host in event.HOSTS else HOST
    try:
        return _prompted(keeper, event.from_fields(EVENT, host, told))
    except Exception as error:  # noqa: BLE001 - the outermost boundary of a hook
        run.count(EVENT, host, f"{type(error).__name__}: {error}")
        return ""


def _prompted(keeper: Keeper, hook: event.Hook) -> str:
    from bethink import project as projects
    from bethink.hooks.pause import paused

    actor = f"hook:{hook.host}"
    memory = keeper.memory(None, actor)
    place = None
    found = own = projects.find(
        memory.project.worktree
    )  # by its folder, also where a team knows it by its name
    if hook.directory and os.path.isdir(hook.directory):  # noqa: PTH112  (false, not an error, for what no file can be named)
        found = run.project_of(hook, str(own.worktree))
        if found.scope != own.scope:  # another project than the server was started in
            place = found.worktree
            memory = keeper.memory(place, actor)
    if paused(hook.directory or str(own.worktree), found.scope):
        return ""
    here = memory.config.embedding.strip() != "http"
    return run.answered(hook, memory, "hybrid" if here and keeper.has_model(place) else "keyword")
