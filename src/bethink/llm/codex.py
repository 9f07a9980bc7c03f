"""The user's own `codex` program."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bethink.config import Config
from bethink.llm.base import LanguageModelProvider, ModelRequest, RawAnswer
from bethink.llm.http import read_usage
from bethink.llm.program import HARMLESS, MENTION, Printed, ProgramModel

# A server's name that can be part of an option's key.
_NAME = re.compile(r"[\w-]{1,100}")


class CodexCli(ProgramModel):
    """`codex exec`: without a shell, MCP servers, and a session file that `backfill` would find.

    Recorded text may hold orders to an agent: one with tools might follow them.
    """

    PROGRAM, TITLE, LOGIN = "codex", "Codex", "codex login"

    def _make_arguments(self, ask: ModelRequest, folder: Path) -> Sequence[str]:
        schema = folder / "schema.json"
        schema.write_text(json.dumps(ask.schema), "utf-8")
        model = ["--model", self._model] if self._model else []
        flags = ["--json", "--ephemeral", "--skip-git-repo-check", "--sandbox", "read-only"]
        off = ["features.shell_tool", "features.unified_exec"]
        off += [f"mcp_servers.{name}.enabled" for name in list_servers()]
        settings = [word for key in off for word in ("-c", f"{key}=false")]
        return ["exec", *flags, *settings, "--output-schema", str(schema), *model, "-"]

    def _read(self, printed: Printed) -> RawAnswer:
        text, usage, complaint = "", None, ""
        for line in printed.output.splitlines():
            entry: Any = None
            with suppress(ValueError):
                entry = json.loads(line)
            if not isinstance(entry, dict):
                continue
            item = as_object(entry.get("item"))
            if entry.get("type") == "item.completed" and item.get("type") == "agent_message":
                text = str(item.get("text") or "")
            elif entry.get("type") == "turn.completed":
                usage = read_usage(entry.get("usage"), ("input_tokens",), "output_tokens")
            elif entry.get("type") in ("turn.failed", "error"):
                error = as_object(entry.get("error")) or entry
                complaint = str(error.get("message") or error)
        if not text:
            raise self._fail(printed, complaint)
        return RawAnswer(text.replace(HARMLESS, MENTION), usage)


def as_object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def list_servers() -> list[str]:
    """Return the names of the MCP servers in the user's settings; an empty table does not switch them off."""
    folder = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")
    try:
        known = tomllib.loads((folder / "config.toml").read_text("utf-8")).get("mcp_servers")
    except (OSError, ValueError):
        return []
    return [name for name in as_object(known) if _NAME.fullmatch(name)]


def open_model(config: Config) -> CodexCli:
    return CodexCli(config.llm_model, config.model_timeout)


PROVIDER = LanguageModelProvider("codex", open_model, variables=("CODEX_HOME", "OPENAI_API_KEY"))
