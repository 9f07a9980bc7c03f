"""Tool calls as agents report them, in one shape.

Agents name the same things differently, and each says in another place whether a command failed (`HookDialect.has_failed`). A missing or
wrongly typed value is an empty one. What was refused or interrupted has no outcome.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import islice

from bethink.agents.agent import HookDialect, ToolCall
from bethink.agents.base import Fields, as_fields, texts_of
from bethink.agents.work import describe_arguments, find_command, find_paths
from bethink.model import Values

_MOST = 32  # calls of one batch
_LONGEST = 12_000  # characters of an output, at either end half of it
_INPUTS = ("tool_input", "toolArgs", "tool_args", "args")
_OUTPUTS = ("error", "tool_response", "tool_result", "toolResult", "tool_output", "output")
_TEXTS = ("text_result_for_llm", "textResultForLlm", "llmContent", "output", "content", "message")
EDITS = tuple(
    "edit multiedit write notebookedit replace create str_replace apply_patch delete".split()
)


def read_calls(event: str, dialect: HookDialect, fields: Values) -> tuple[ToolCall, ...]:
    """The calls of a tool event, those without a command and a file left out."""
    found: Iterable[ToolCall | None]
    if dialect.find_calls:
        found = dialect.find_calls(event, fields)
    else:
        batch = fields.get("tool_calls")
        rows = batch if isinstance(batch, list) else [fields]
        found = (_read_call(event, dialect, as_fields(row), fields) for row in rows)
    calls = [call for call in islice(found, _MOST) if call]
    return tuple(_shorten(call) for call in calls if call.command or call.file or call.failed)


def _shorten(call: ToolCall) -> ToolCall:
    output = call.output
    if len(output) > _LONGEST:
        output = f"{output[: _LONGEST // 2]}\n{output[-_LONGEST // 2 :]}"
    return call._replace(output=output)


def _read_call(event: str, dialect: HookDialect, row: Fields, fields: Values) -> ToolCall | None:
    if row.get("is_interrupt") is True:
        return None
    tool = row.name("tool_name", "toolName", "tool") or ""
    arguments = next((value for name in _INPUTS if (value := _as_object(row.get(name)))), Fields())
    command = find_command(arguments).strip()
    files = [] if command else find_paths(tool, arguments)
    output = next((text for name in _OUTPUTS if (text := _as_text(row.get(name)))), "")
    id = row.name("tool_use_id", "toolUseId", "tool_call_id", "callID") or ""
    failed = None if event == "tool-before" else dialect.has_failed(fields, id, output)
    failed = True if event == "tool-failure" else failed
    changes = tool.lower().startswith(EDITS)
    named = ""
    if failed and not command:
        named = describe_arguments({"path": files[0]} if changes and files else arguments)
    return ToolCall(tool, command, files[0] if files else "", output, failed, changes, id, named)


def _as_object(value: object) -> Fields:
    if isinstance(value, str) and value.startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = {}
    return as_fields(value)


def _as_text(value: object) -> str:
    if isinstance(value, Mapping):
        if "stdout" in value or "stderr" in value:
            return "\n".join(str(value[name]) for name in ("stdout", "stderr") if value.get(name))
        return next((text for name in _TEXTS if (text := _as_text(value.get(name)))), "")
    return value if isinstance(value, str) else "\n".join(texts_of(value))
