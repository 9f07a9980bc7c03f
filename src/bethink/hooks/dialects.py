"""How each host wants to be told something: the same text in the one form that reaches its model.

The forms exclude each other: Codex throws an answer with an unknown key away whole, Copilot reads only the outermost object,
Claude Code and Gemini CLI only the inner one. Values in, text out.
"""

from __future__ import annotations

import json
from typing import Any

from bethink.hooks.event import Hook

# Event → its name in hosts that repeat it in the answer.
CLAUDE = {
    "session-start": "SessionStart",
    "prompt": "UserPromptSubmit",
    "pre-tool": "PreToolUse",
    "post-tool": "PostToolUse",
    "subagent-stop": "SubagentStop",
    "stop": "Stop",
}
GEMINI = {
    "session-start": "SessionStart",
    "prompt": "BeforeAgent",
    "pre-tool": "BeforeTool",
    "post-tool": "AfterTool",
}
# Where an answer would do something else than inform: a Stop hook with context makes the agent go on.
TOLD = ("session-start", "prompt", "pre-tool", "post-tool")


def render(hook: Hook, context: str) -> str:
    """What the hook prints, '' for nothing: no context, or an event in which this host listens to none."""
    if not context:
        return ""
    if hook.event == "pre-compact":
        # Claude Code adds the plain text to what its summarising call is told; opencode's plugin does the same.
        return (
            context
            if hook.host == "claude"
            else _json({"context": context})
            if hook.host == "opencode"
            else ""
        )
    if hook.event not in TOLD:
        return ""
    answer = _answer(hook, context)
    return _json(answer) if answer else ""


def _answer(hook: Hook, context: str) -> dict[str, Any] | None:
    if hook.host in ("claude", "codex"):
        return {
            "hookSpecificOutput": {
                "hookEventName": CLAUDE[hook.event],
                "additionalContext": context,
            }
        }
    if hook.host == "gemini":
        return {
            "hookSpecificOutput": {
                "hookEventName": GEMINI[hook.event],
                "additionalContext": context,
            }
        }
    if hook.host == "copilot":
        return {"additionalContext": context}
    if hook.host == "cursor":
        return (
            {"continue": True, "additional_context": context}
            if hook.event == "prompt"
            else {"additional_context": context}
        )
    return {"context": context}


def _json(value: dict[str, Any]) -> str:
    # ASCII, because a host may read a pipe in any encoding; halves of characters, which no JSON reader likes, become marks.
    return (
        json.dumps(value, ensure_ascii=True)
        if not _broken(value)
        else json.dumps(_whole(value), ensure_ascii=True)
    )


def _broken(value: dict[str, Any]) -> bool:
    return any(
        _broken(one) if isinstance(one, dict) else isinstance(one, str) and not one.isascii()
        for one in value.values()
    )


def _whole(value: dict[str, Any]) -> dict[str, Any]:
    def mended(one: Any) -> Any:
        return (
            _whole(one)
            if isinstance(one, dict)
            else one.encode("utf-8", "replace").decode()
            if isinstance(one, str)
            else one
        )

    return {name: mended(one) for name, one in value.items()}
