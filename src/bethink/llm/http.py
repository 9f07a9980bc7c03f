"""The base of language models behind HTTP. A provider sends once; `Model` redacts and checks."""

from __future__ import annotations

from collections.abc import Mapping

from bethink import post
from bethink.errors import ConfigError
from bethink.llm.base import ModelError, ModelRequest, RawAnswer, Usage
from bethink.model import Json, Values

Request = tuple[dict[str, str], Json]  # headers and body
Reply = tuple[str, Usage | None, str]  # words, what they cost, and why there are none, if so


def read_usage(usage: object, inputs: tuple[str, ...], output: str) -> Usage | None:
    """Add up the named counts, or return None if the provider sent none or invalid ones."""
    counts = usage if isinstance(usage, Mapping) else {}
    numbers = [counts.get(name) or 0 for name in (*inputs, output)]
    if output not in counts or not all(type(number) is int and number >= 0 for number in numbers):
        return None
    return Usage(sum(numbers[:-1]), numbers[-1])


class HttpProvider:
    """A model behind HTTP."""

    KIND = URL = PATH = VARIABLE = OWNER = MODEL = ""
    remote = True

    def __init__(self, url: str, model: str, timeout: float = 60.0) -> None:
        self._model = model or self.MODEL
        if not self._model:
            raise ConfigError(
                "The setting `llm_model` is empty.",
                "Name the model to ask: `bethink config llm_model NAME`.",
            )
        self.name = f"{self.KIND} {self._model}"
        self._endpoint = post.Endpoint(
            "llm", url or self.URL, self.PATH, [self.VARIABLE], self.OWNER, timeout, ModelError
        )

    def send(self, ask: ModelRequest) -> RawAnswer:
        headers, body = self._make_request(ask)
        answer = self._endpoint.ask(body, headers)
        try:
            text, usage, stopped = self._read(answer)
        except (KeyError, IndexError, TypeError, AttributeError):
            text, usage, stopped = "", None, ""
        if stopped:
            raise ModelError(
                f"The answer of {self.name} was {stopped}.", "Offline rules do the work.", stopped
            )
        return RawAnswer(text, usage)

    def _make_request(self, ask: ModelRequest) -> Request:
        raise NotImplementedError

    def _read(self, answer: Values) -> Reply:
        """Return the words of an answer; one without words was declined or cut off."""
        raise NotImplementedError
