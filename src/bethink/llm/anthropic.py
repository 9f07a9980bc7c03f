"""Anthropic's Messages API."""

from __future__ import annotations

from bethink.config import Config
from bethink.llm.base import LanguageModelProvider, ModelRequest
from bethink.llm.http import HttpProvider, Reply, Request, read_usage
from bethink.model import Values

INPUTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class AnthropicModel(HttpProvider):
    KIND, URL, PATH = "anthropic", "https://api.anthropic.com", "/v1/messages"
    VARIABLE, OWNER, MODEL = "ANTHROPIC_API_KEY", "api.anthropic.com", "claude-haiku-5-5"

    def _make_request(self, ask: ModelRequest) -> Request:
        key = self._endpoint.key
        headers = {"anthropic-version": "2023-06-01"} | ({"x-api-key": key.value} if key else {})
        return headers, {
            "model": self._model,
            "max_tokens": ask.tokens,
            "system": ask.instruction,
            "messages": [{"role": "user", "content": [{"type": "text", "text": ask.text}]}],
            "output_config": {"format": {"type": "json_schema", "schema": ask.schema}},
        }

    def _read(self, answer: Values) -> Reply:
        """Thinking, and calls of tools that nobody offered, are passed over."""
        usage = read_usage(answer.get("usage"), INPUTS, "output_tokens")
        stopped = {"refusal": "declined", "max_tokens": "cut off"}
        parts = [part["text"] for part in answer["content"] if part["type"] == "text"]
        return "".join(map(str, parts)), usage, stopped.get(answer.get("stop_reason", ""), "")


def open_model(config: Config) -> AnthropicModel:
    return AnthropicModel(config.llm_url, config.llm_model, config.model_timeout)


PROVIDER = LanguageModelProvider("anthropic", open_model, variables=("ANTHROPIC_API_KEY",))
