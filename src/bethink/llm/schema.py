"""The small part of JSON Schema that our questions use: how an answer is asked for, read and held to it.

Types, properties (all required), items, enum, maxItems, maxLength. Providers' own strict modes know only some of these
words and refuse the others, so `sent` tells limits in the description and `conform` holds the answer to them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

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


def record(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def several(items: Mapping[str, Any], most: int, about: str = "") -> dict[str, Any]:
    return {"type": "array", "items": items, "maxItems": most, "description": about}


def text(most: int, about: str) -> dict[str, Any]:
    return {"type": "string", "maxLength": most, "description": about}


def choice(options: tuple[str, ...], about: str = "") -> dict[str, Any]:
    return {"type": "string", "enum": list(options), "description": about}


def whole(about: str) -> dict[str, Any]:
    return {"type": "integer", "description": about}


def yes_or_no(about: str) -> dict[str, Any]:
    return {"type": "boolean", "description": about}


LIMITS = {"maxItems": "At most {} items.", "maxLength": "At most {} characters."}


def sent(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema in the words that every provider's strict mode takes."""
    limits = [text.format(schema[word]) for word, text in LIMITS.items() if word in schema]
    about = " ".join([schema.get("description", ""), *limits]).strip()
    told = (*LIMITS, "description")
    kept = {word: value for word, value in schema.items() if word not in told}
    if about:
        kept["description"] = about
    if "properties" in kept:
        kept["properties"] = {name: sent(inner) for name, inner in kept["properties"].items()}
    if "items" in kept:
        kept["items"] = sent(kept["items"])
    return kept


def parse(answer: str) -> Any:
    """The JSON object in an answer. Thinking aloud before it, a code fence and talk around it are passed over."""
    body = answer.rpartition("</think>")[2]
    at = -1
    for _ in range(BEGINNINGS):
        at = body.find("{", at + 1)
        if at < 0:
            break
        try:
            value, _ = json.JSONDecoder(parse_constant=_constant).raw_decode(body, at)
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
    cleaned = value.encode("utf-8", "replace").decode().replace("\x00", "")
    if len(cleaned) > schema.get("maxLength", len(cleaned)):
        raise Mismatch(f"{path} has more than {schema['maxLength']} characters")
    if "enum" not in schema:
        return cleaned
    for option in schema["enum"]:
        if cleaned.strip().casefold() == option.casefold():
            return str(option)
    raise Mismatch(f"{path} is none of: {', '.join(schema['enum'])}")


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
