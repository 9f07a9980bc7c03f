"""Tool calls as hosts report them, in one shape.

Hosts name the same things differently and say in different places whether a command failed: Claude Code in the first line of the output, Copilot in
the last, Gemini in a line of its own, opencode in a number, and Codex only in its transcript, where the call is written before the hook
runs. A missing or wrongly typed value is an empty one. What was refused or interrupted has no outcome.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from bethink.agents.base import Fields, as_fields, find_command, find_paths, texts_of
from bethink.hooks.state import ToolCall
from bethink.model import Values

MOST = 32  # calls of one batch
LONGEST = 12_000  # characters of an output, at either end half of it
TAIL = 400_000  # bytes at the end of a transcript in which a call is looked for
INPUTS = ("tool_input", "toolArgs", "tool_args", "args")
OUTPUTS = ("error", "tool_response", "tool_result", "toolResult", "tool_output", "output")
TEXTS = ("text_result_for_llm", "textResultForLlm", "llmContent", "output", "content", "message")
EDITS = tuple(
    "edit multiedit write notebookedit replace create str_replace apply_patch delete".split()
)
# The exit status, where a host writes it into the output: first line, trailer, or a line of its own.
STATUS = re.compile(
    r"\A(?:Error: )?Exit code:? (-?\d{1,5})\b|exit code (-?\d{1,5})>\s*\Z|^Exit Code: (-?\d{1,5})$|^Process exited with code (-?\d{1,5})$",
    re.MULTILINE,
)


def read_calls(event: str, fields: Values) -> tuple[ToolCall, ...]:
    """The calls of a tool event, those without a command and a file left out."""
    batch = fields.get("tool_calls")
    rows = batch[:MOST] if isinstance(batch, list) else [fields]
    calls = [_read_call(event, as_fields(row), fields) for row in rows]
    return tuple(call for call in calls if call and (call.command or call.file))


def _read_call(event: str, row: Fields, fields: Values) -> ToolCall | None:
    if row.get("is_interrupt") is True:
        return None
    tool = row.name("tool_name", "toolName", "tool") or ""
    given = next((value for name in INPUTS if (value := _as_object(row.get(name)))), Fields())
    command = find_command(given).strip()
    files = [] if command else find_paths(tool, given)
    output = next((text for name in OUTPUTS if (text := _as_text(row.get(name)))), "")
    id = row.name("tool_use_id", "toolUseId", "tool_call_id", "callID") or ""
    status = _find_status(row, output)
    if event == "tool-failure":
        failed: bool | None = True
    elif status is not None:
        failed = status != 0
    elif command and id and _is_codex(fields):
        failed = find_in_rollout(str(fields.get("transcript_path") or ""), id)
    else:
        failed = True if output.startswith("<tool_use_error>") else False
    if event == "tool-start":
        failed = None
    if len(output) > LONGEST:
        output = f"{output[: LONGEST // 2]}\n{output[-LONGEST // 2 :]}"
    changes = tool.lower().startswith(EDITS)
    return ToolCall(tool, command, files[0] if files else "", output, failed, changes, id)


def _as_object(value: Any) -> Fields:
    if isinstance(value, str) and value.startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = {}
    return as_fields(value)


def _as_text(value: Any) -> str:
    if isinstance(value, Mapping):
        if "stdout" in value or "stderr" in value:
            return "\n".join(str(value[name]) for name in ("stdout", "stderr") if value.get(name))
        return next((text for name in TEXTS if (text := _as_text(value.get(name)))), "")
    return value if isinstance(value, str) else "\n".join(texts_of(value))


def _find_status(row: Fields, output: str) -> int | None:
    for value in (row.get("exit"), row.get("exit_code"), row.object("metadata").get("exit")):
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    found = STATUS.search(output[:300]) or STATUS.search(output[-300:]) or STATUS.search(output)
    return int(next(filter(None, found.groups()))) if found else None


def _is_codex(fields: Values) -> bool:
    return "rollout-" in str(fields.get("transcript_path") or "")


def find_in_rollout(path: str, id: str) -> bool | None:
    """Whether a command failed, by the transcript of Codex: it writes the exit code down before it runs the hook."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - a hook counts milliseconds
            file.seek(max(0, os.path.getsize(path) - TAIL))  # noqa: PTH202
            lines = file.read().splitlines()
    except OSError:
        return None
    mark = f'"{id}"'.encode()
    for line in reversed(lines):
        if mark in line:
            found = re.search(rb'"exit_code": ?(-?\d+)|Process exited with code (-?\d+)', line)
            if found:
                return int(found[1] or found[2]) != 0
    return None
