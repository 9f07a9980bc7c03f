"""OpenAI's chat completions, and whatever speaks like them."""

from __future__ import annotations

import json

from bethink.config import Config
from bethink.llm.base import LanguageModelProvider, ModelRequest
from bethink.llm.http import HttpProvider, Reply, Request, read_usage
from bethink.model import Json, Values

SCHEMA_SHOWN = "\n\nThe form of the answer, as a JSON Schema: {}"


class OpenAiModel(HttpProvider):
    """OpenAI, Ollama, LM Studio, llama.cpp, vLLM.

    OpenAI's own models do not accept `max_tokens` or a temperature. The others enforce the form of an answer without showing it to the
    model.
    """

    KIND, URL, PATH = "openai", "https://api.openai.com/v1", "/chat/completions"
    VARIABLE, OWNER = "OPENAI_API_KEY", "api.openai.com"

    def _make_request(self, ask: ModelRequest) -> Request:
        own = self._endpoint.owned
        shown = "" if own else SCHEMA_SHOWN.format(json.dumps(ask.schema))
        limits: Json = {"max_tokens": ask.tokens, "temperature": 0}
        schema = {"name": "answer", "strict": True, "schema": ask.schema}
        return self._endpoint.bearer, {
            "model": self._model,
            "messages": [
                {"role": "system", "content": ask.instruction + shown},
                {"role": "user", "content": ask.text},
            ],
            "stream": False,
            "response_format": {"type": "json_schema", "json_schema": schema},
            **({"max_completion_tokens": ask.tokens} if own else limits),
        }

    def _read(self, answer: Values) -> Reply:
        usage = read_usage(answer.get("usage"), ("prompt_tokens",), "completion_tokens")
        choice = answer["choices"][0]
        stopped = {"length": "cut off", "content_filter": "declined"}
        reason = stopped.get(choice.get("finish_reason"), "")
        if choice["message"].get("refusal"):
            reason = "declined"
        return str(choice["message"].get("content") or ""), usage, reason


def open_model(config: Config) -> OpenAiModel:
    return OpenAiModel(config.llm_url, config.llm_model, config.model_timeout)


PROVIDER = LanguageModelProvider("openai", open_model, variables=("OPENAI_API_KEY",))
