"""The user's own `codex` program."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bethink.config import Config
from bethink.llm.base import LanguageModelProvider, ModelRequest, RawAnswer
from bethink.llm.http import read_usage
from bethink.llm.program import HARMLESS, MENTION, Printed, ProgramModel


class CodexCli(ProgramModel):
    """`codex exec`: read-only, without a session file that `backfill` would find."""

    PROGRAM, TITLE, LOGIN = "codex", "Codex", "codex login"

    def _make_arguments(self, ask: ModelRequest, folder: Path) -> Sequence[str]:
        schema = folder / "schema.json"
        schema.write_text(json.dumps(ask.schema), "utf-8")
        model = ["--model", self._model] if self._model else []
        flags = ["--json", "--ephemeral", "--skip-git-repo-check", "--sandbox", "read-only"]
        return ["exec", *flags, "--output-schema", str(schema), *model, "-"]

    def _read(self, printed: Printed) -> RawAnswer:
        text, usage, complaint = "", None, ""
        for line in printed.output.splitlines():
            entry: Any = None
            with suppress(ValueError):
                entry = json.loads(line)
            if not isinstance(entry, dict):
                continue
            item = entry.get("item") or {}
            if entry.get("type") == "item.completed" and item.get("type") == "agent_message":
                text = str(item.get("text") or "")
            elif entry.get("type") == "turn.completed":
                usage = read_usage(entry.get("usage"), ("input_tokens",), "output_tokens")
            elif entry.get("type") in ("turn.failed", "error"):
                error = entry.get("error") or entry
                complaint = str(error.get("message") or error)
        if not text:
            raise self._fail(printed, complaint)
        return RawAnswer(text.replace(HARMLESS, MENTION), usage)


def open_model(config: Config) -> CodexCli:
    return CodexCli(config.llm_model, config.model_timeout)


PROVIDER = LanguageModelProvider("codex", open_model, variables=("CODEX_HOME", "OPENAI_API_KEY"))
