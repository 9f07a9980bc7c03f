"""The user's own `gemini` program."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bethink.config import Config
from bethink.llm.base import LanguageModelProvider, ModelRequest, RawAnswer, Usage
from bethink.llm.http import read_usage
from bethink.llm.program import HARMLESS, MENTION, Printed, ProgramModel

TASK = "Answer the task on standard input with one JSON object and nothing else."
SCHEMA_SHOWN = "\n\nThe form of the answer, as a JSON Schema: {}"


class GeminiCli(ProgramModel):
    """`gemini`, headless and without MCP servers, as recorded text may hold orders to an agent.

    It keeps conversations, which readers know by the request's first words.
    """

    PROGRAM, TITLE, LOGIN = "gemini", "Gemini CLI", "gemini"

    def _make_arguments(self, ask: ModelRequest, folder: Path) -> Sequence[str]:
        model = ["--model", self._model] if self._model else []
        alone = ["--allowed-mcp-server-names", "none"]
        return ["--output-format", "json", *alone, *model, "--prompt", TASK]

    def _write_question(self, ask: ModelRequest) -> str:
        # The program enforces no form, so the model has to see it.
        return super()._write_question(ask) + SCHEMA_SHOWN.format(json.dumps(ask.schema))

    def _read(self, printed: Printed) -> RawAnswer:
        body = printed.output
        try:
            answer: Any = json.loads(body[body.index("{") :])
        except (ValueError, RecursionError):
            raise self._fail(printed) from None
        error = answer.get("error")
        text = answer.get("response")
        if error or not text:
            raise self._fail(
                printed, str(error.get("message") if isinstance(error, dict) else error or "")
            )
        return RawAnswer(str(text).replace(HARMLESS, MENTION), read_stats(answer.get("stats")))


def read_stats(stats: object) -> Usage | None:
    """Add up the tokens of all models that the program used."""
    models = stats.get("models") if isinstance(stats, Mapping) else None
    by_model = models.values() if isinstance(models, Mapping) else ()
    counts = [one.get("tokens") for one in by_model if isinstance(one, Mapping)]
    known = [one for one in counts if isinstance(one, Mapping)]
    found = [read_usage(one, ("prompt",), "candidates") for one in known]
    if not found or None in found:
        return None
    return Usage(*map(sum, zip(*filter(None, found), strict=True)))


def open_model(config: Config) -> GeminiCli:
    return GeminiCli(config.llm_model, config.model_timeout)


PROVIDER = LanguageModelProvider(
    "gemini", open_model, variables=("GEMINI_API_KEY", "GOOGLE_API_KEY")
)
