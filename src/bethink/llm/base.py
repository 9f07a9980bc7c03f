"""What a language model is to the rest: a task in, a checked value out, or a ModelError.

Two protocols. `Model` is what callers have: it redacts, counts and checks (`guard`). A `Provider` only sends, once; it takes
`Clean` text, which nothing but the guard makes. No transaction may be open while a model is asked: answers take seconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, NewType, Protocol

from bethink.errors import BethinkError
from bethink.text.checks import refuse_constant, replace_broken

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


class ModelRequest(NamedTuple):
    """A question as it is sent."""

    instruction: Clean
    text: Clean
    schema: Mapping[str, Any]
    tokens: int


class RawAnswer(NamedTuple):
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

    def send(self, ask: ModelRequest) -> RawAnswer:
        """One question. Raises ModelError; a call that may have been paid for and was not told has `usage=None`."""
        ...


class Model(Protocol):
    name: str

    def ask(self, task: Task) -> Reply:
        """The answer in the form of the task's schema. Raises ModelError."""
        ...


# The form of an answer, in the small part of JSON Schema that our questions use: types, properties (all required), items, enum, maxItems,
# maxLength. Providers' own strict modes know only some of these words and refuse the others, so `simplify_schema` tells limits in the
# description and `conform` holds the answer to them.

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int, float),
    "boolean": (bool,),
}
BEGINNINGS = 8  # places at which an object is looked for inside an answer that talks around it


class Mismatch(ValueError):
    """The answer is no JSON object, or not of the asked form. The message is for the model, which is asked once more."""


def form_record(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def form_list(items: Mapping[str, Any], most: int, about: str = "") -> dict[str, Any]:
    return {"type": "array", "items": items, "maxItems": most, "description": about}


def form_text(most: int, about: str) -> dict[str, Any]:
    return {"type": "string", "maxLength": most, "description": about}


def form_choice(options: tuple[str, ...], about: str = "") -> dict[str, Any]:
    return {"type": "string", "enum": list(options), "description": about}


def form_integer(about: str) -> dict[str, Any]:
    return {"type": "integer", "description": about}


def form_switch(about: str) -> dict[str, Any]:
    return {"type": "boolean", "description": about}


LIMITS = {"maxItems": "At most {} items.", "maxLength": "At most {} characters."}


def simplify_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema in the words that every provider's strict mode takes."""
    limits = [text.format(schema[word]) for word, text in LIMITS.items() if word in schema]
    about = " ".join([schema.get("description", ""), *limits]).strip()
    told = (*LIMITS, "description")
    kept = {word: value for word, value in schema.items() if word not in told}
    if about:
        kept["description"] = about
    if "properties" in kept:
        kept["properties"] = {
            name: simplify_schema(inner) for name, inner in kept["properties"].items()
        }
    if "items" in kept:
        kept["items"] = simplify_schema(kept["items"])
    return kept


def parse_answer(answer: str) -> Any:
    """The JSON object in an answer. Thinking aloud before it, a code fence and talk around it are passed over."""
    body = answer.rpartition("</think>")[2]
    at = -1
    for _ in range(BEGINNINGS):
        at = body.find("{", at + 1)
        if at < 0:
            break
        try:
            value, _ = json.JSONDecoder(parse_constant=refuse_constant).raw_decode(body, at)
        except (ValueError, RecursionError):
            continue
        return value
    raise Mismatch("it was not one JSON object")


def conform(value: Any, schema: Mapping[str, Any], path: str = "the answer") -> Any:
    """The value as the schema has it: what the schema does not name is left out, text is made storable, the rest must fit."""
    kind: str = schema["type"]
    fits: Any = TYPES[kind]
    if not isinstance(value, fits) or (kind != "boolean" and isinstance(value, bool)):
        raise Mismatch(f"{path} is not of type {kind}")
    if kind == "object":
        for name in schema["required"]:
            if name not in value:
                raise Mismatch(f"{path} lacks '{name}'")
        return {
            name: conform(value[name], inner, f"{path}.{name}")
            for name, inner in schema["properties"].items()
            if name in value
        }
    if kind == "array":
        if len(value) > schema.get("maxItems", len(value)):
            raise Mismatch(f"{path} has more than {schema['maxItems']} items")
        return [
            conform(item, schema["items"], f"{path}[{number}]") for number, item in enumerate(value)
        ]
    if kind == "integer":
        if isinstance(value, float) and not value.is_integer():
            raise Mismatch(f"{path} is not of type integer")
        return int(value)
    if kind == "string":
        return _string(value, schema, path)
    return value


def _string(value: str, schema: Mapping[str, Any], path: str) -> str:
    cleaned = replace_broken(value).replace("\x00", "")
    if len(cleaned) > schema.get("maxLength", len(cleaned)):
        raise Mismatch(f"{path} has more than {schema['maxLength']} characters")
    if "enum" not in schema:
        return cleaned
    for option in schema["enum"]:
        if cleaned.strip().casefold() == option.casefold():
            return str(option)
    raise Mismatch(f"{path} is none of: {', '.join(schema['enum'])}")
