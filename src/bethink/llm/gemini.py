"""The user's own `gemini` program."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bethink.config import Config
from bethink.llm.base import LanguageModelProvider, ModelRequest, RawAnswer, Usage
from bethink.llm.program import HARMLESS, MENTION, Printed, ProgramModel

TASK = "Answer the task on standard input with one JSON object and nothing else."
SCHEMA_SHOWN = "\n\nThe form of the answer, as a JSON Schema: {}"


class GeminiCli(ProgramModel):
    """`gemini`, headless. It keeps conversations, which readers know by the request's first words."""

    PROGRAM, TITLE, LOGIN = "gemini", "Gemini CLI", "gemini"

    def _make_arguments(self, ask: ModelRequest, folder: Path) -> Sequence[str]:
        model = ["--model", self._model] if self._model else []
        return ["--output-format", "json", *model, "--prompt", TASK]

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
    counts = [one.get("tokens") for one in (models or {}).values() if isinstance(one, Mapping)]
    known = [one for one in counts if isinstance(one, Mapping)]
    if not known:
        return None
    asked = sum(int(one.get("prompt") or 0) for one in known)
    return Usage(asked, sum(int(one.get("candidates") or 0) for one in known))


def open_model(config: Config) -> GeminiCli:
    return GeminiCli(config.llm_model, config.model_timeout)


PROVIDER = LanguageModelProvider(
    "gemini", open_model, variables=("GEMINI_API_KEY", "GOOGLE_API_KEY")
)
