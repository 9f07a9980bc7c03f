"""Anthropic's Messages API. The form of the answer is asked for by `output_config.format`; a model or gateway that does not
know it is made to call a tool instead, whose input has that form."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

from bethink.llm.base import Answer, Ask, ModelError, counted
from bethink.llm.endpoint import Endpoint, Refused

URL = "https://api.anthropic.com"
KEY_VARIABLE = "ANTHROPIC_API_KEY"
MODEL = "claude-haiku-5-5"
VERSION = "2023-06-01"
TOOL = "answer"
_NO_FORMAT = re.compile(r"output_config|output_format|structured|json_schema", re.IGNORECASE)


class AnthropicModel:
    def __init__(
        self,
        url: str = "",
        model: str = "",
        timeout: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._model = model or MODEL
        self.name = f"anthropic {self._model}"
        self._endpoint = Endpoint(
            url or URL, "/v1/messages", KEY_VARIABLE, "api.anthropic.com", timeout, sleep
        )
        self._by_tool = False

    def send(self, ask: Ask) -> Answer:
        deadline = self._endpoint.deadline()
        headers = {"anthropic-version": VERSION} | (
            {"x-api-key": self._endpoint.key.value} if self._endpoint.key else {}
        )
        try:
            answer = self._endpoint.post(self._body(ask), headers, deadline)
        except Refused as error:
            if self._by_tool or not _NO_FORMAT.search(error.said):
                raise
            self._by_tool = True
            answer = self._endpoint.post(self._body(ask), headers, deadline)
        return self._read(answer)

    def _body(self, ask: Ask) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._model,
            "max_tokens": ask.tokens,
            "system": ask.instruction,
            "messages": [{"role": "user", "content": [{"type": "text", "text": ask.text}]}],
        }
        if self._by_tool:
            body["tools"] = [
                {"name": TOOL, "description": "Takes the answer.", "input_schema": ask.schema}
            ]
            body["tool_choice"] = {"type": "tool", "name": TOOL}
        else:
            body["output_config"] = {"format": {"type": "json_schema", "schema": ask.schema}}
        return body

    def _read(self, answer: dict[str, Any]) -> Answer:
        usage = counted(
            answer.get("usage"),
            ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
            ("output_tokens",),
        )
        stopped = answer.get("stop_reason")
        if stopped == "refusal":
            raise ModelError(
                f"The model {self.name} declined to answer.",
                "Offline rules do the work.",
                "declined",
                usage,
            )
        if stopped in ("max_tokens", "model_context_window_exceeded"):
            raise ModelError(
                f"The answer of {self.name} was cut off.",
                "Another model may be briefer.",
                "cut off",
                usage,
            )
        return Answer(_text(answer.get("content")), usage)


def _text(content: Any) -> str:
    """The words of an answer. Thinking, and calls of tools that we did not offer, are passed over."""
    found = []
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, dict):
            continue
        if block.get("type") == "tool_use" and block.get("name") == TOOL:
            return json.dumps(block.get("input"))
        if block.get("type") == "text":
            found.append(str(block.get("text", "")))
    return "".join(found)
