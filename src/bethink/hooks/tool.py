"""After a failed tool call: one line that says what fixed the same error before, or nothing.

The error is named without opening anything; only one that is worth keeping is looked up, by its signature and without a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bethink.hooks.state import Hook
from bethink.ingest.failures import Failure, read_failure, read_runs
from bethink.model import ToolEvent
from bethink.text.shell import shorten_command

if TYPE_CHECKING:
    from bethink.api import Bethink
    from bethink.hooks.prompt import Context

TOKENS = 60  # of the line, without the marks around it


def find_failure(hook: Hook) -> Failure | None:
    """The failure that a hook reports, if its error can be named."""
    event = ToolEvent(
        command=shorten_command(hook.command.strip()),
        failed=True,
        output=hook.error,
        directory=hook.directory,
    )
    failed = [run for run in read_runs(event) if run.passed is False]
    return read_failure(failed[0], event) if failed else None


def recall_fix(hook: Hook, memory: Bethink) -> Context:
    """Return what fixed this failure before, once per session, and only where the fix helped."""
    from bethink.features.failures import find_by_signature
    from bethink.hooks import state
    from bethink.hooks.prompt import Context
    from bethink.outgoing import fence_items, new_marker
    from bethink.recall.shape import cut, tokens

    failure = find_failure(hook)
    known = find_by_signature(memory, failure.signature) if failure else None
    if known is None or known.id in state.read_deliveries(hook).ids:
        return Context()
    where = f", session {known.session[:8]}" if known.session else ""
    head = f"This error was fixed before ({known.last[:10]}{where}): "
    line = head + known.fix
    if tokens(line) > TOKENS:
        line = cut(line, TOKENS)
    return Context(fence_items([line], new_marker()), (known.id,))
