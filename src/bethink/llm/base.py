"""The interface of language models: a task in, a checked value out, or a ModelError.

`Model` (`llm/__init__.py`) is what callers have: it redacts, counts and checks. A `Provider` only sends, once; it takes `Clean`
text, which nothing but `Model` makes. No transaction may be open while a model is asked: answers take seconds.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from typing import TYPE_CHECKING, Any, NamedTuple, NewType, Protocol

from bethink import system
from bethink.errors import BethinkError
from bethink.model import Values
from bethink.text import refuse_constant, replace_broken

if TYPE_CHECKING:
    from collections.abc import Callable

    from bethink.config import Config

    OpenModel = Callable[[Config], "Provider"]

Clean = NewType("Clean", str)
"""Text that has been redacted and fenced. Only `Model` may make it."""

# The beginning of every request. A program that keeps its conversations keeps these, too: they are no words of the user.
READER_REQUEST = "The message holds recorded text between lines that begin with "

# Why a question brought nothing, in the words that `stats` shows.
REASONS = dict(
    line.split(": ")
    for line in """
ceiling: the day's token ceiling was reached
budget: the tokens could not be counted
empty: nothing was left to send after redaction
key: the key was refused or is missing
missing: no such model or address
unreachable: the model could not be reached, or not in time
busy: the model was busy
refused: the request was refused
declined: the model declined to answer
cut off: the answer was cut off
garbage: the answer could not be used
given up: the model had failed shortly before
""".strip().splitlines()
)


class Usage(NamedTuple):
    input_tokens: int = 0
    output_tokens: int = 0


class ModelError(BethinkError):
    """The model gave nothing usable; callers go on by offline rules. `reason` is a key of REASONS."""

    def __init__(self, message: str, hint: str | None = None, reason: str = "refused") -> None:
        super().__init__(message, hint)
        self.reason = reason


Part = tuple[str, str]  # a label and recorded text


class Task(NamedTuple):
    """A question before it is sent. Only `parts`, pairs of a label and recorded text, quote others."""

    purpose: str
    instruction: str
    parts: tuple[Part, ...]
    form: Values
    tokens: int = 1500  # the most that the answer may take


class ModelRequest(NamedTuple):
    """A question as it is sent."""

    instruction: Clean
    text: Clean
    schema: Values
    tokens: int


class RawAnswer(NamedTuple):
    """The answer of a provider: text that should be JSON, and its cost if known."""

    text: str
    usage: Usage | None


class Provider(Protocol):
    remote: bool
    """True if it sends text to another process or machine. Without it a provider counts as remote."""

    name: str
    """Provider and model, for people to read."""

    def send(self, ask: ModelRequest) -> RawAnswer:
        """Send one question. Raises ModelError."""
        ...


class LanguageModelProvider(NamedTuple):
    """A language model that the setting `llm` can name. The opened model declares if it is remote."""

    name: str
    open: OpenModel  # sends nothing yet
    variables: tuple[
        str, ...
    ] = ()  # environment variables with its keys: a background worker gets them


# The form of an answer: a dict is an object of these members, a list of one form an array of such, a tuple of words
# one of them, a text a string which the text describes; `int` and `bool` are themselves.

_MOST_ITEMS, _LONGEST_TEXT = 100, 8_000  # what is more was not asked for


class Mismatch(ValueError):
    """The answer is not a JSON object, or not of the requested form."""


def make_schema(form: object) -> dict[str, Any]:
    """A form in the part of JSON Schema that every provider's strict mode takes."""
    if isinstance(form, dict):
        return {
            "type": "object",
            "properties": {name: make_schema(inner) for name, inner in form.items()},
            "required": list(form),
            "additionalProperties": False,
        }
    if isinstance(form, list):
        return {"type": "array", "items": make_schema(form[0])}
    if isinstance(form, tuple):
        return {"type": "string", "enum": list(form)}
    if isinstance(form, str):
        return {"type": "string", "description": form}
    return {"type": "integer" if form is int else "boolean"}


def parse_answer(answer: str) -> Any:
    """Parse the JSON object in an answer. Skips thinking before it, a code fence and text around it."""
    body = answer.rpartition("</think>")[2]
    try:
        whole = body[body.index("{") : body.rindex("}") + 1]
        return json.loads(whole, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Mismatch("it was not one JSON object") from error


def conform(value: object, form: object, path: str = "the answer") -> Any:
    """Fit a value to a form: drop unknown members, make text storable, and check the rest."""
    if isinstance(form, dict) and isinstance(value, dict):
        for name in form:
            if name not in value:
                raise Mismatch(f"{path} lacks '{name}'")
        return {name: conform(value[name], inner, f"{path}.{name}") for name, inner in form.items()}
    if isinstance(form, list) and isinstance(value, list):
        if len(value) > _MOST_ITEMS:
            raise Mismatch(f"{path} has more than {_MOST_ITEMS} items")
        return [conform(item, form[0], f"{path}[{at}]") for at, item in enumerate(value)]
    if isinstance(form, str | tuple) and isinstance(value, str):
        return _conform_text(value, form, path)
    if form is bool and isinstance(value, bool):
        return value
    if form is int and type(value) is int:
        return value
    raise Mismatch(f"{path} is not of type {make_schema(form)['type']}")


def _conform_text(value: str, form: str | tuple[str, ...], path: str) -> str:
    text = replace_broken(value).replace("\x00", "")
    if len(text) > _LONGEST_TEXT:
        raise Mismatch(f"{path} has more than {_LONGEST_TEXT} characters")
    if isinstance(form, tuple) and text not in form:
        raise Mismatch(f"{path} is none of: {', '.join(form)}")
    return text


_GRACE = 1.0  # seconds to tidy up in


def end_process(process: subprocess.Popen[bytes]) -> None:
    """End a program and every process of its group, first with a request and then by force.

    The group's number is not reused while any of its processes lives; if none does, there is nothing to end.
    """
    for force in (False, True):
        # macOS says PermissionError of a group that has ended.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            system.signal_group(process.pid, force)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
    process.wait()
