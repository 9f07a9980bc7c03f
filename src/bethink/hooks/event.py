"""What a host told a hook, in one shape: `Hook`; and how each host wants to be answered. Hosts name the same things differently;
their names end here.

Whatever comes on stdin is read as far as it can be: a missing or wrongly typed value is an empty one. Only what is no JSON object
at all is an error. This module knows no store and prints nothing. It stands apart from `hosts/`, whose readers a hook has no time to
load.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from bethink.errors import InvalidInput
from bethink.ingest.redact import redact_name
from bethink.text import replace_broken

EVENTS = tuple(
    "session-start prompt stop subagent-stop pre-compact post-compact session-end".split()
)
HOSTS = ("claude", "codex", "copilot", "gemini", "cursor", "opencode")
AUTO = "auto"  # for one of them, to be told by what it says
# Sources of a prompt behind which a person may stand; the others are timers and notices.
PEOPLE = ("", "user", "sdk")
LONGEST_INPUT = 8_000_000  # bytes; a tool's answer may come along
LONGEST_TEXT = 200_000  # characters of a prompt
LONGEST_NAME = 4096  # characters of a path or an identifier
HARMLESS = 12  # characters of a session's id that is too short for a secret
_USUAL_SESSION = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|ses_[0-9A-Za-z]{10,40}")

# Field → the names under which hosts give it, the first that is there counts.
SESSION = ("session_id", "sessionId", "sessionID", "conversation_id")
TRANSCRIPT = ("transcript_path", "transcriptPath")
DIRECTORY = ("cwd", "directory", "workspace_roots")
PROMPT = ("prompt", "initial_prompt", "initialPrompt")
AGENT = ("agent_type", "agentName", "subagent_type")


class Hook(NamedTuple):
    event: str  # one of EVENTS
    host: str
    session: str = ""
    transcript: str = ""  # path, if the host gives one; a sub-agent's own where `agent` is set
    directory: str = ""
    prompt: str = ""
    source: str = ""  # of a session or a prompt: startup, resume, user, schedule_wakeup …
    agent: str = ""  # a sub-agent's type


# Reading


def read(event: str, host: str, data: bytes) -> Hook:
    """The hook that these bytes describe. Raises InvalidInput where there is nothing to be made of them."""
    for name, known in ((event, EVENTS), (host, (*HOSTS, AUTO))):
        if name not in known:
            raise InvalidInput(
                f"No hook is known for '{name[:60]}'.", f"One of {', '.join(known)}."
            )
    try:
        if len(data) > LONGEST_INPUT:
            raise ValueError(f"it has {len(data):,} bytes, and {LONGEST_INPUT:,} are the most")
        fields = json.loads(data.decode("utf-8-sig", "replace")) if data.strip() else {}
        if not isinstance(fields, dict):
            raise ValueError(f"it is of type {type(fields).__name__}")
    except (ValueError, RecursionError) as error:
        reason = f"The host's message is no JSON object: {error}."
        raise InvalidInput(reason, "Hosts send an object on stdin.") from None
    return from_fields(event, find_host(fields, os.environ) if host == AUTO else host, fields)


def from_fields(event: str, host: str, fields: Mapping[str, Any]) -> Hook:
    """The hook that a host's object describes."""
    inside = event == "subagent-stop"
    return Hook(
        event,
        host,
        session=_session(fields),
        transcript=_name(fields, ("agent_transcript_path", *TRANSCRIPT) if inside else TRANSCRIPT),
        directory=_name(fields, DIRECTORY),
        prompt=_first(fields, PROMPT)[:LONGEST_TEXT] if event == "prompt" else "",
        source=_name(fields, ("source",)),
        agent=_name(fields, AGENT) if inside else "",
    )


def find_host(fields: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """The host that sent an object, where the command line does not say: one plugin serves several. Agents that others start inherit
    their environment, so what a host says itself counts before that."""
    transcript, name = _first(fields, TRANSCRIPT), fields.get("hook_event_name")
    by_cursor = environment.get("CURSOR_VERSION") and "conversation_id" in fields
    if "cursor_version" in fields or by_cursor:
        return "cursor"
    if "/.gemini/" in transcript or name in ("BeforeAgent", "AfterAgent", "PreCompress"):
        return "gemini"
    if "turn_id" in fields or "/rollout-" in transcript:
        return "codex"
    if environment.get("COPILOT_CLI") or environment.get("COPILOT_PLUGIN_ROOT"):
        return "copilot"
    by_codex = "model" in fields and "permission_mode" in fields
    return "codex" if by_codex and not environment.get("CLAUDECODE") else "claude"


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        value = fields.get(name)
        if isinstance(value, list) and value:  # Cursor's workspace_roots
            value = value[0]
        if isinstance(value, str) and value:
            return value
    return ""


def _name(fields: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """A path or an identifier. One that no file system could hold is none."""
    value = _first(fields, names)
    return value if len(value) <= LONGEST_NAME and "\0" not in value else ""


def _session(fields: Mapping[str, Any]) -> str:
    """The id of a session, without what looks like a secret: it goes into files and into the store."""
    name = _name(fields, SESSION)
    if len(name) <= HARMLESS or _USUAL_SESSION.fullmatch(name):
        return name
    return redact_name(name)


# Answering

# Event → its name in hosts that repeat it in the answer.
NAMES = {"session-start": "SessionStart", "prompt": "UserPromptSubmit"}


def render_answer(hook: Hook, context: str) -> str:
    """What the hook prints, '' for nothing: no context, or an event in which this host listens to none.

    The forms exclude each other: Codex throws an answer with an unknown key away whole, Copilot reads only the outermost object,
    Claude Code and Gemini CLI only the inner one. In other events than those of `NAMES` an answer would do something else than inform:
    a Stop hook with context makes the agent go on.
    """
    compacting, context = hook.event == "pre-compact", replace_broken(context)
    if compacting and hook.host == "claude":
        return context  # which it adds to what its summarising call is told; opencode's plugin does the same
    if not context or not (hook.event in NAMES or (compacting and hook.host == "opencode")):
        return ""
    answer: dict[str, Any] = {"context": context}
    if hook.host in ("claude", "codex", "gemini"):
        name = (
            "BeforeAgent" if (hook.host, hook.event) == ("gemini", "prompt") else NAMES[hook.event]
        )
        answer = {"hookSpecificOutput": {"hookEventName": name, "additionalContext": context}}
    elif hook.host == "copilot":
        answer = {"additionalContext": context}
    elif hook.host == "cursor":
        answer = {"continue": True} if hook.event == "prompt" else {}
        answer["additional_context"] = context
    return json.dumps(answer, ensure_ascii=True)  # a host may read a pipe in any encoding
