"""OpenAI's chat completions, and the servers that speak like it: Ollama, LM Studio, llama.cpp, vLLM.

They differ in what they take. The strictest form of a request is tried first; what a server refuses by name is given up, and
remembered: LM Studio knows no `json_object`, older servers no `json_schema`, OpenAI's newer models no `max_tokens` and no
temperature but their own.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

from bethink.errors import ConfigError
from bethink.llm.base import Answer, Ask, ModelError, counted
from bethink.llm.endpoint import Endpoint, Refused

URL = "https://api.openai.com/v1"
KEY_VARIABLE = "OPENAI_API_KEY"
OWNER = "api.openai.com"
FORMATS = ("json_schema", "json_object", "text")
SHOWN = "\n\nThe form of the answer, as a JSON Schema: {schema}"
_FORMAT = re.compile(
    r"response_format|json_schema|json_object|schema|structured|grammar", re.IGNORECASE
)


class OpenAiModel:
    def __init__(
        self,
        url: str,
        model: str,
        timeout: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not model:
            raise ConfigError(
                "The setting `llm_model` is empty.",
                "Name the model to ask: `bethink config llm_model NAME`.",
            )
        self._model = model
        self.name = f"openai {model}"
        self._endpoint = Endpoint(
            url or URL, "/chat/completions", KEY_VARIABLE, OWNER, timeout, sleep
        )
        ours = self._endpoint.host == OWNER
        self._format = 0
        self._limit = "max_completion_tokens" if ours else "max_tokens"
        self._temperature = not ours

    def send(self, ask: Ask) -> Answer:
        deadline = self._endpoint.deadline()
        headers = (
            {"Authorization": f"Bearer {self._endpoint.key.value}"} if self._endpoint.key else {}
        )
        while True:
            try:
                return self._read(self._endpoint.post(self._body(ask), headers, deadline))
            except Refused as error:
                if not self._adapt(error.said):
                    raise

    def _body(self, ask: Ask) -> dict[str, Any]:
        form = FORMATS[self._format]
        # Servers that constrain the words do not show the model what they are constrained to.
        shown = (
            ""
            if form == "json_schema" and self._endpoint.host == OWNER
            else SHOWN.format(schema=json.dumps(ask.schema))
        )
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [
                {"role": "system", "content": ask.instruction + shown},
                {"role": "user", "content": ask.text},
            ],
            self._limit: ask.tokens,
            "stream": False,
        }
        if self._temperature:
            body["temperature"] = 0
        if form == "json_schema":
            body["response_format"] = {
                "type": form,
                "json_schema": {"name": "answer", "strict": True, "schema": ask.schema},
            }
        elif form == "json_object":
            body["response_format"] = {"type": form}
        return body

    def _adapt(self, said: str) -> bool:
        """Gives up what the server refused by name. Each step is taken once, so this ends."""
        if "max_completion_tokens" in said and self._limit == "max_tokens":
            self._limit = "max_completion_tokens"
        elif "temperature" in said and self._temperature:
            self._temperature = False
        elif _FORMAT.search(said) and self._format < len(FORMATS) - 1:
            self._format += 1
        else:
            return False
        return True

    def _read(self, answer: dict[str, Any]) -> Answer:
        usage = counted(answer.get("usage"), ("prompt_tokens",), ("completion_tokens",))
        try:
            first = answer["choices"][0]
            message, finished = first["message"], first.get("finish_reason")
            content = message.get("content")
            refusal = message.get("refusal")
        except (KeyError, IndexError, TypeError, AttributeError):
            return Answer("", usage)
        if refusal or finished == "content_filter":
            raise ModelError(
                f"The model {self.name} declined to answer.",
                "Offline rules do the work.",
                "declined",
                usage,
            )
        if finished == "length":
            raise ModelError(
                f"The answer of {self.name} was cut off.",
                "Another model may be briefer.",
                "cut off",
                usage,
            )
        if isinstance(content, list):
            content = "".join(
                str(part.get("text", "")) for part in content if isinstance(part, dict)
            )
        return Answer(content if isinstance(content, str) else "", usage)
