"""What a host told a hook, in one shape: `Hook`. Hosts name the same things differently; their names end here.

Whatever comes on stdin is read as far as it can be: a missing or wrongly typed value is an empty one. Only what is no JSON object
at all is an error. This module knows no store and prints nothing; `dialects` knows how each host wants to be answered.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from bethink.errors import InvalidInput

EVENTS = (
    "session-start",
    "prompt",
    "stop",
    "subagent-stop",
    "pre-compact",
    "post-compact",
    "session-end",
    "pre-tool",
    "post-tool",
)
HOSTS = ("claude", "codex", "copilot", "gemini", "cursor", "opencode")
AUTO = "auto"  # for one of them, to be told by what it says
LONGEST_INPUT = 8_000_000  # bytes; a tool's answer may come along
LONGEST_TEXT = 200_000  # characters of a prompt or a summary
LONGEST_NAME = 4096  # characters of a path or an identifier
FILES = 20
HARMLESS = 12  # characters of a session's id that is too short for a secret
_USUAL_SESSION = re.compile(
    r"(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|ses_[0-9A-Za-z]{10,40})"
)

# Field → the names under which hosts give it, the first that is there counts.
SESSION = ("session_id", "sessionId", "sessionID", "conversation_id")
TRANSCRIPT = ("transcript_path", "transcriptPath")
DIRECTORY = ("cwd", "directory", "workspace_roots")
PROMPT = ("prompt", "initial_prompt", "initialPrompt")
SUMMARY = ("compact_summary", "last_assistant_message", "prompt_response", "summary")
TOOL = ("tool_name", "toolName")
TOOL_INPUT = ("tool_input", "toolArgs", "tool_args", "arguments")
PATHS = ("file_path", "filePath", "notebook_path", "absolute_path", "path", "file")


class Hook(NamedTuple):
    event: str  # one of EVENTS
    host: str
    session: str = ""
    transcript: str = (
        ""  # path, '' when the host gives none; a sub-agent's own where `agent` is set
    )
    directory: str = ""
    prompt: str = ""
    source: str = (
        ""  # where a session or a prompt came from: startup, resume, user, schedule_wakeup …
    )
    trigger: str = ""  # manual or auto
    agent: str = ""  # a sub-agent's type
    summary: str = ""  # what a compaction kept, or the last thing the agent said
    tool: str = ""
    files: tuple[str, ...] = ()  # that the tool is about to touch, or touched


def read(event: str, host: str, data: bytes) -> Hook:
    """The hook that these bytes describe. Raises InvalidInput where there is nothing to be made of them."""
    if event not in EVENTS:
        raise InvalidInput(
            f"'{event[:60]}' is no event that a hook is known for.",
            "One of " + ", ".join(EVENTS) + ".",
        )
    if host not in (*HOSTS, AUTO):
        raise InvalidInput(
            f"'{host[:60]}' is no host that hooks are known for.",
            "One of " + ", ".join(HOSTS) + ".",
        )
    if len(data) > LONGEST_INPUT:
        raise InvalidInput(
            f"The host's message has {len(data):,} bytes; {LONGEST_INPUT:,} are the most.",
            "Nothing was done with it.",
        )
    try:
        told = json.loads(data.decode("utf-8-sig", "replace")) if data.strip() else {}
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"The host's message is no JSON: {error}.", "Hosts send an object on stdin."
        ) from None
    if not isinstance(told, dict):
        raise InvalidInput(
            f"The host's message is no JSON object but of type {type(told).__name__}.",
            "Hosts send an object on stdin.",
        )
    return from_fields(event, whose(told, os.environ) if host == AUTO else host, told)


def from_fields(event: str, host: str, told: Mapping[str, Any]) -> Hook:
    """The hook that a host's object describes."""
    inside = event == "subagent-stop"
    transcript = _name(told, ("agent_transcript_path", *TRANSCRIPT) if inside else TRANSCRIPT)
    agent = _name(told, ("agent_type", "agentName", "subagent_type")) if inside else ""
    return Hook(
        event,
        host,
        session=_session(told),
        transcript=transcript,
        directory=_name(told, DIRECTORY),
        prompt=_text(told, PROMPT) if event == "prompt" else "",
        source=_name(told, ("source",)),
        trigger=_name(told, ("trigger", "reason")),
        agent=agent,
        summary=_text(told, SUMMARY),
        tool=_name(told, TOOL),
        files=_files(told),
    )


def whose(told: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """The host that sent an object, where the command line does not say: one plugin serves several. Agents that others start inherit
    their environment, so what a host says itself counts before that."""
    transcript = _first(told, TRANSCRIPT)
    if "cursor_version" in told or (
        environment.get("CURSOR_VERSION") and "conversation_id" in told
    ):
        return "cursor"
    if "/.gemini/" in transcript or told.get("hook_event_name") in (
        "BeforeAgent",
        "AfterAgent",
        "PreCompress",
    ):
        return "gemini"
    if "turn_id" in told or "/rollout-" in transcript:
        return "codex"
    if environment.get("COPILOT_CLI") or environment.get("COPILOT_PLUGIN_ROOT"):
        return "copilot"
    return (
        "codex"
        if "model" in told and "permission_mode" in told and not environment.get("CLAUDECODE")
        else "claude"
    )


def _first(told: Mapping[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        value = told.get(name)
        if isinstance(value, list) and value:  # Cursor's workspace_roots
            value = value[0]
        if isinstance(value, str) and value:
            return value
    return ""


def _name(told: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """A path or an identifier. One that no file system could hold is none."""
    value = _first(told, names)
    return value if len(value) <= LONGEST_NAME and "\0" not in value else ""


def _session(told: Mapping[str, Any]) -> str:
    """The id of a session, without what looks like a secret: it goes into files and into the store."""
    name = _name(told, SESSION)
    if len(name) <= HARMLESS or _USUAL_SESSION.fullmatch(name):
        return name
    from bethink.ingest.redact import redact_name

    return redact_name(name)


def _text(told: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return _first(told, names)[:LONGEST_TEXT]


def _files(told: Mapping[str, Any]) -> tuple[str, ...]:
    """The files in a tool's arguments, which Copilot sends as JSON in a string."""
    given: Any = next((told[name] for name in TOOL_INPUT if told.get(name)), None)
    if isinstance(given, str) and given.startswith("{"):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return ()
    if not isinstance(given, dict):
        return ()
    found = [given.get(name) for name in PATHS]
    for listed in (given.get("paths"), given.get("files"), given.get("edits")):
        several = listed if isinstance(listed, list) else []
        found += [
            one if isinstance(one, str) else _first(one, PATHS) if isinstance(one, dict) else None
            for one in several
        ]
    named = (
        one
        for one in found
        if isinstance(one, str) and 0 < len(one) <= LONGEST_NAME and "\0" not in one
    )
    return tuple(dict.fromkeys(named))[:FILES]
