"""opencode. It has no command hooks: our plugin `opencode.js` calls ours. Transcripts: one database."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bethink.agents.agent import (
    Agent,
    HookDialect,
    HookScript,
    InstallFiles,
    PermissionRules,
    TranscriptFiles,
)
from bethink.model import NOTHING, Values

if TYPE_CHECKING:
    from bethink.agents.base import Position
    from bethink.agents.transcript import Transcript

DATABASE = b"SQLite format 3\0"  # the first bytes of a database
EXPORT = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{\s*\"info\"\s*:\s*\{")  # those of an export


# Events whose answer adds context.
_CONTEXT = ("session-start", "subagent-start", "prompt", "tool", "tool-failure", "pre-compact")


def read(path: Path, position: "Position") -> "Transcript":
    from bethink.agents.opencode_transcript import OpencodeExport, OpencodeTranscript
    from bethink.agents.transcript import read_head

    stored = read_head(path, len(DATABASE)) == DATABASE
    return OpencodeTranscript(path, position) if stored else OpencodeExport(path, position)


def owns_file(path: Path, head: bytes) -> bool:
    if head.startswith(DATABASE):
        return path.name.startswith("opencode")
    return EXPORT.match(head) is not None and b'"ses_' in head


def answer(event: str, context: str) -> Values | None:
    return {"context": context} if event in _CONTEXT else None


def deny(reason: str) -> Values:
    return {"deny": reason}


def has_failed(fields: Values, id: str, output: str) -> bool | None:
    status = fields.get("exit")
    return status != 0 if isinstance(status, int) else None


def render_script(words: Sequence[str], tool_hooks: bool = True) -> str:
    """Return the plugin that starts Bethink with these words, such as `["bethink"]`."""
    import json

    text = Path(__file__).with_suffix(".js").read_text("utf-8")
    if not tool_hooks:
        text = re.sub(r"^const TOOLS = .*$", "const TOOLS = []", text, flags=re.MULTILINE)
    return text.replace('["bethink"]', json.dumps(list(words)), 1)


def disarm_script(text: str) -> str:
    return re.sub(r"^const COMMAND = (?!\[\]).*$", "const COMMAND = []", text, flags=re.MULTILINE)


AGENT = Agent(
    name="opencode",
    title="opencode",
    program="opencode",
    folder="${XDG_CONFIG_HOME:-.config}/opencode",
    marks=("OPENCODE",),
    processes=("opencode", "opencode-ai/bin"),
    transcripts=TranscriptFiles(
        read,
        owns_file=owns_file,
        folder="${XDG_DATA_HOME:-.local/share}/opencode",
        patterns=("opencode*.db",),
        variable="OPENCODE_DB",
    ),
    hooks=HookDialect(
        answer,
        events=NOTHING,
        session=("session_id", "sessionID"),
        directory=("cwd", "directory"),
        deny=deny,
        has_failed=has_failed,
    ),
    install=InstallFiles(
        servers=("opencode.jsonc", "opencode.json"),
        server_path=("mcp", "bethink"),
        # The time in which opencode expects the server to list its tools.
        server={"type": "local", "command": "$words", "enabled": True, "timeout": 20_000},
        hooks="plugins/bethink.js",
        script=HookScript(render_script, disarm_script),
        permission=PermissionRules("bethink_{tool}", ("permission",), "allow"),
        note="opencode reads its configuration and plugins when it starts.",
    ),
)
