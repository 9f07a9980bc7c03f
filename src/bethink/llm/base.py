"""What a language model is to the rest: a task in, a checked value out, or a ModelError.

Two protocols. `Model` is what callers have: it redacts, counts and checks (`guard`). A `Provider` only sends, once; it takes
`Clean` text, which nothing but the guard makes. No transaction may be open while a model is asked: answers take seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, NewType, Protocol

from bethink.errors import BethinkError

Clean = NewType("Clean", str)
"""Text that has been redacted and fenced. Only `guard` may make it."""

# Why a question brought nothing, in the words that `stats` shows.
REASONS = {
    "ceiling": "the day's token ceiling was reached",
    "budget": "the tokens could not be counted",
    "empty": "nothing was left to send after redaction",
    "key": "the key was refused or is missing",
    "missing": "no such model or address",
    "unreachable": "the model could not be reached",
    "timeout": "no answer in time",
    "busy": "the model was busy",
    "broken": "the connection broke off",
    "redirect": "the address redirects elsewhere",
    "refused": "the request was refused",
    "declined": "the model declined to answer",
    "cut off": "the answer was cut off",
    "large": "the answer was too large",
    "garbage": "the answer was no JSON",
    "form": "the answer did not have the asked form",
    "given up": "the model had failed shortly before",
}


class Usage(NamedTuple):
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


NO_USAGE = Usage()


class ModelError(BethinkError):
    """The model gave nothing usable; callers go on by offline rules. `reason` is a key of REASONS.

    `usage` is what the failed call cost where the provider told it; None means that it is not known.
    """

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        reason: str = "refused",
        usage: Usage | None = NO_USAGE,
    ) -> None:
        super().__init__(message, hint)
        self.reason = reason
        self.usage = usage


class Task(NamedTuple):
    """A question before it is sent. `parts` are pairs of a label and recorded text; only they hold words of others."""

    purpose: str
    instruction: str
    parts: tuple[tuple[str, str], ...]
    schema: Mapping[str, Any]
    tokens: int = 1500  # the most that the answer may take


class Ask(NamedTuple):
    """A question as it is sent."""

    instruction: Clean
    text: Clean
    schema: Mapping[str, Any]
    tokens: int


class Answer(NamedTuple):
    """What a provider got: text that should be JSON, and what it cost if that was told."""

    text: str
    usage: Usage | None


class Reply(NamedTuple):
    """A value that has the form of its task's schema, and what all tries for it cost."""

    value: dict[str, Any]
    usage: Usage


class Provider(Protocol):
    name: str
    """Provider and model, for people to read."""

    def send(self, ask: Ask) -> Answer:
        """One question. Raises ModelError; a call that may have been paid for and was not told has `usage=None`."""
        ...


class Model(Protocol):
    name: str

    def ask(self, task: Task) -> Reply:
        """The answer in the form of the task's schema. Raises ModelError."""
        ...
