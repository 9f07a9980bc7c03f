"""JSON forms of the fields declared in `model`: output of interfaces, accepted input, and bounds.

Everything here is derived from `fields_of`. The only field named here is `path`, which a memory
computes.

    json_fields()            fields of the JSON object of a memory, in order
    argument_fields("add")   fields that `add` or `update` takes, by the name of their argument
    value_schema(info)       JSON Schema of a field in that object
    argument_schema(info)    JSON Schema of a field as an argument
    memory_schema()          JSON Schema of the whole object
    find_fault(info, value)  why a value is out of bounds, or ""
    check_bounds(values)     the same for several fields by name, as an error
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from bethink.errors import InvalidInput
from bethink.model import (
    ENTITY_TYPES,
    EXACT,
    KIND_ALIASES,
    KINDS,
    Entity,
    Field,
    FieldInfo,
    Json,
    Memory,
    Values,
    fields_of,
)

LONGEST_TIME = 60  # characters of a time as people write it
# Fields that JSON shows behind another one than the model does: the documented order. It moves fields and does not choose them.
_SHOWN_AFTER = {
    "scope": "kind",
    "source": "summary",
    "path": "source",
    "lines": "path",
    "section": "lines",
    "session": "section",
    "newer": "superseded_by",
}
_TYPES = {"number": "number", "whole": "integer", "switch": "boolean", "object": "object"}


@cache
def json_fields() -> Mapping[str, FieldInfo]:
    """Fields of the JSON object of a memory, in order."""
    about = Field((Memory.path.__doc__ or "").rstrip("."), "fixed", columns=())
    path = FieldInfo("path", str, True, False, None, "text", about)
    shown = {
        name: info
        for name, info in {**fields_of(Memory), "path": path}.items()
        if info.is_shown("json")
    }
    order = [name for name in shown if name not in _SHOWN_AFTER]
    for name, before in _SHOWN_AFTER.items():
        order.insert(order.index(before) + 1, name)
    return {name: shown[name] for name in order}


@cache
def argument_fields(operation: Literal["add", "update"]) -> Mapping[str, FieldInfo]:
    """Fields that an operation takes, by the name of their argument."""
    infos = fields_of(Memory).values()
    return {
        info.argument: info
        for info in infos
        if (info.addable if operation == "add" else info.editable)
    }


def value_schema(info: FieldInfo) -> Json:
    """JSON Schema of a field in the JSON object of a memory."""
    if info.shape == "time":
        schema: Json = {"type": "string", "format": "date-time"}
    elif info.shape == "entities":
        names: Json = {name: {"type": "string"} for name in Entity._fields}
        names["type"]["enum"] = list(ENTITY_TYPES)
        item = {"type": "object", "properties": names, "required": list(names)}
        schema = {"type": "array", "items": item}
    elif info.shape == "lines":
        schema = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
    else:
        schema = _one_schema(info)
    if info.field.choices:
        schema["enum"] = list(info.field.choices)
    if info.optional:
        schema["type"] = [schema["type"], "null"]
    return {**schema, "description": info.field.help}


def argument_schema(info: FieldInfo) -> Json:
    """JSON Schema of a field as an argument: times as people write them, entities by name."""
    if info.shape == "time":
        schema: Json = {"type": "string", "maxLength": LONGEST_TIME}
    elif info.shape == "entities":
        schema = {"type": "array", "items": {"type": "string"}}
    else:
        schema = _one_schema(info)
    if info.field.choices == KINDS:
        schema["enum"] = [*KINDS, *KIND_ALIASES]
    elif info.field.choices:
        schema["enum"] = list(info.field.choices)
    return {**schema, "description": info.takes}


def memory_schema() -> Json:
    """JSON Schema of the JSON object of a memory."""
    properties = {name: value_schema(info) for name, info in json_fields().items()}
    return {"type": "object", "properties": properties, "required": list(properties)}


def _one_schema(info: FieldInfo) -> Json:
    if info.shape == "texts":
        return {"type": "array", "items": {"type": "string"}}
    schema: Json = {"type": _TYPES.get(info.shape, "string")}
    if info.shape in ("number", "whole"):
        bounds = {"minimum": info.field.low, "maximum": info.field.high}
        schema |= {name: bound for name, bound in bounds.items() if bound is not None}
    if info.shape == "text" and info.field.longest:
        schema["maxLength"] = info.field.longest
    return schema


def find_fault(info: FieldInfo, value: Any) -> str:
    """Say why a value, which has the field's type, is out of bounds; "" if it is not."""
    field, low, high = info.field, info.field.low, info.field.high
    if value is None:
        return "" if info.optional else f"The {info.name} is missing."
    if low is not None and high is not None:
        for number in value if info.shape == "lines" else (value,):
            if not isinstance(number, int | float) or isinstance(number, bool):
                return f"The {info.name} {str(number)[:40]!r} is not a number."
            if not low <= number <= high:  # or not a number at all
                # Python formats no whole number beyond the range of floats.
                shown = f" {number:g}" if isinstance(number, float) or abs(number) < EXACT else ""
                return f"The {info.name}{shown} is outside {low:g} to {high:g}."
    if field.choices and value not in field.choices:
        return f"{str(value)[:40]!r} is not a {info.name}."
    if field.longest and len(value) > field.longest:
        return f"The {info.name} has {len(value):,} characters; {field.longest:,} are the most."
    return ""


def check_bounds(values: Values) -> None:
    """Refuse values, by the name of their field, that are out of bounds; None is no value."""
    known = fields_of(Memory)
    for name, value in values.items():
        info = known[name]
        if value is not None and (fault := find_fault(info, value)):
            low, high = info.field.low, info.field.high
            ranged = low is not None and high is not None
            raise InvalidInput(
                fault, f"Give a number from {low:g} to {high:g}." if ranged else None
            )
