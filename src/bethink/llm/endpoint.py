"""A model behind HTTP: where it is, its key, and what each failure means for the settings. Knows no provider's body."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from bethink import post
from bethink.llm.base import ModelError

HINTS = {
    "missing": "Check the settings `llm_model` and `llm_url`; with Ollama, run `ollama pull` for the model.",
    "busy": "Try again later.",
    "redirect": "Set `llm_url` to its final address.",
    "refused": "Check the settings that begin with `llm`.",
    "unreachable": "Is the server running, and the network there? The setting `llm_url` holds the address.",
    "timeout": "Raise the setting `llm_timeout`, or choose a faster model with `llm_model`.",
    "broken": "Try again later.",
    "large": "Is it a language model? The setting `llm_url` holds the address.",
    "garbage": "Is it a language model? The setting `llm_url` holds the address.",
}
# After these the request may have been worked on, and paid for.
PERHAPS_PAID = ("timeout", "broken", "large", "garbage")


class Refused(ModelError):
    """The server did not take the request. `said` is why, in its words: often a parameter that it does not know."""

    said = ""


class Endpoint:
    def __init__(
        self,
        url: str,
        path: str,
        variable: str,
        owner: str,
        timeout: float,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`owner` is the host that answers nobody without a key; others may want none."""
        try:
            self._where = post.address(url, path)
        except ValueError as error:
            raise ModelError(
                f"The setting `llm_url` cannot be used: {error}.",
                f"Use one such as https://host/v1; a key goes into {variable}.",
                "missing",
            ) from None
        try:
            self.key = post.key([variable])
        except ValueError as error:
            raise ModelError(f"{error}.", f"Set {variable} anew.", "key") from None
        self.host = self._where.hostname or ""
        self._variable = variable
        self._owner = owner
        self._timeout = timeout
        self._sleep = sleep

    def deadline(self) -> post.Deadline:
        return post.Deadline(self._timeout)

    def post(
        self, body: Mapping[str, Any], headers: Mapping[str, str], deadline: post.Deadline
    ) -> dict[str, Any]:
        """The answer's JSON object. `headers` carry the key; the address is the only one that sees them."""
        if self.key is None and self.host == self._owner:
            raise ModelError(
                f"The endpoint at {self.host} needs a key, and none is set.",
                f"Set {self._variable}.",
                "key",
            )
        try:
            answer = post.persist(
                lambda: post.send(self._where, body, headers, self.key, deadline),
                deadline,
                self._sleep,
            )
            if not isinstance(answer, dict):
                raise post.PostError(
                    "garbage",
                    f"The endpoint at {self.host} answered with something that is no JSON object.",
                )
        except post.PostError as error:
            hint = HINTS.get(
                error.kind,
                f"{'Check' if self.key else 'Set'} the environment variable {self._variable}.",
            )
            if error.kind == "refused":
                refused = Refused(error.message, hint, error.kind)
                refused.said = error.said
                raise refused from None
            if error.kind in PERHAPS_PAID:
                raise ModelError(error.message, hint, error.kind, usage=None) from None
            raise ModelError(error.message, hint, error.kind) from None
        return answer
