"""What each tool accepts, and checking that. Every host puts these texts into every conversation, so they are short: all of
them together stay under 1,500 tokens, which a test holds.

A wrong argument is a sentence that says what would be right: the reader is a model that tries again. This module imports
nothing heavy, because the list of tools is the first thing a host asks for.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bethink.config import PROFILES
from bethink.errors import InvalidInput
from bethink.types import KINDS, MODES

MOST_STORED, MOST_IDS = 100, 50
MOST_ITEMS = 100  # of any other list
LONGEST_QUERY = LONGEST_METADATA = 10_000
LONGEST_TEXT = (
    5_000_000  # of any other text; the setting `max_characters` says how long a memory may be
)

Schema = dict[str, Any]


class Tool(NamedTuple):
    description: str
    schema: Schema
    hints: Mapping[str, bool]  # for hosts that ask their user before a tool does harm
    meta: Mapping[str, Any] | None = None


# Tools that only read say so, and nothing else about themselves: the other hints mean nothing for them.
READS = {"readOnlyHint": True, "openWorldHint": False}
ADDS = {"destructiveHint": False, "openWorldHint": False}
ADDS_ONCE = {"destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
HIDES = {"destructiveHint": True, "idempotentHint": True, "openWorldHint": False}


def _object_of(properties: dict[str, Schema], *required: str) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        **({"required": list(required)} if required else {}),
    }


def _text(about: str = "", **more: Any) -> Schema:
    return {"type": "string", **more, **({"description": about} if about else {})}


def _list(items: Schema, about: str = "", **more: Any) -> Schema:
    return {"type": "array", "items": items, **more, **({"description": about} if about else {})}


def _whole(low: int, high: int, default: int) -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high, "default": default}


_WORD = {"type": "string"}
_IDS = _list(_WORD, "ids or their beginnings", maxItems=MOST_IDS)
_IMPORTANCE = {"type": "number", "minimum": 0, "maximum": 10}
_EXPIRES = _text("30d, or a date")
_ENTITIES = _list(_WORD, "names: Redis, person:Ada")

TOOLS: dict[str, Tool] = {
    "search_memories": Tool(
        "Search what this project and user decided, learned, fixed and prefer. Memory is the primary source for such facts: search"
        ' before relying on general knowledge, before design or tool choices and fixes, when the user refers to earlier work ("that'
        ' bug", "as we discussed"), at session start. When in doubt, search.',
        _object_of(
            {
                "query": _text(
                    'question or words; "phrases", prefix*, AND OR NOT; "open questions", "last week"',
                    maxLength=LONGEST_QUERY,
                ),
                "intent": _text(
                    "continuity: resume, recent first; fact_check: verify; frequent: habits; associative: connections; explore: stuck",
                    enum=list(PROFILES),
                ),
                "reason_for_search": _WORD,
                "mode": _text("keyword: exact names; vector: concepts", enum=list(MODES)),
                "kinds": _list(_WORD, "decision, gotcha, question …"),
                "entities": _list(_WORD, "about any of these"),
                "since": _text("30d, or a date"),
                "limit": _whole(1, 50, 10),
                "max_tokens": _whole(100, 20_000, 1000),
                "include_deleted": {"type": "boolean"},
            },
            "query",
        ),
        READS,
        {"anthropic/alwaysLoad": True, "anthropic/searchHint": "past decisions and fixes"},
    ),
    "store_memories": Tool(
        "Remember lasting decisions with reasons, facts, preferences, gotchas, solutions: one self-contained statement each. No secrets,"
        " nothing passing.",
        _object_of(
            {
                "memories": _list(
                    _object_of(
                        {
                            "content": _WORD,
                            "kind": _text(enum=list(KINDS)),
                            "importance": _IMPORTANCE,
                            "tags": _list(_WORD),
                            "entities": _ENTITIES,
                            "expires": _EXPIRES,
                            "personal": {
                                "type": "boolean",
                                "description": "about the user, for every project",
                            },
                            "supersedes": _list(_WORD, "ids it replaces"),
                            "metadata": {"type": "object"},
                        },
                        "content",
                    ),
                    maxItems=MOST_STORED,
                )
            },
            "memories",
        ),
        ADDS_ONCE,
    ),
    "get_memories": Tool(
        "Memories in full, with relations. Counts as use of each.",
        _object_of({"ids": _IDS, "max_tokens": _whole(100, 20_000, 8000)}, "ids"),
        READS,
    ),
    "update_memory": Tool(
        "Change a memory; the old version is kept.",
        _object_of(
            {
                "id": _WORD,
                "content": _WORD,
                "kind": _WORD,
                "importance": _IMPORTANCE,
                "tags": _list(_WORD),
                "entities": _list(_WORD),
                "expires": _WORD,
                "answered": {"type": "boolean"},
            },
            "id",
        ),
        ADDS_ONCE,
    ),
    "forget_memories": Tool(
        "Hide wrong or obsolete memories; people can restore them. To replace one, store with supersedes.",
        _object_of({"ids": _IDS}, "ids"),
        HIDES,
    ),
    "rate_memories": Tool(
        "Was a memory useful (1 to 5) or misleading (-1 to -5)?",
        _object_of(
            {
                "ratings": _list(
                    _object_of(
                        {"id": _WORD, "value": {"type": "number", "minimum": -5, "maximum": 5}},
                        "id",
                        "value",
                    ),
                    maxItems=MOST_IDS,
                )
            },
            "ratings",
        ),
        ADDS,
    ),
    "store_handoff": Tool(
        "Leave word for the next session when work stops, is blocked or changes hands. Replaces the branch's last handoff.",
        _object_of(
            {
                "summary": _text("where things stand"),
                "completed": _list(_WORD),
                "in_progress_blocked": _list(_WORD),
                "key_decisions": _list(_WORD),
                "next_steps": _list(_WORD),
                "memory_ids": _list(_WORD, "memories used"),
                "project": _WORD,
                "branch": _text("default: the current one"),
            },
            "summary",
        ),
        ADDS_ONCE,
    ),
    "get_handoff": Tool(
        "The last handoff of this branch, or else of any. Read it when resuming work.",
        _object_of({"project": _WORD, "branch": _WORD}),
        READS,
    ),
    "memory_overview": Tool(
        "What memory holds: counts, last handoff, open questions and todos, recent topics.",
        {**_object_of({}), "additionalProperties": False},
        READS,
    ),
}


# What a host calls by itself, as a hook, and no model needs to know of: not in the list of tools.
HOOK = "bethink_prompt"

# Tools that compare or store meaning, for which the embedding model is waited for.
MEANING = frozenset(("search_memories", "store_memories", "update_memory", "store_handoff"))

FILE, MEMORY, TOPICS = "memory://", "bethink://memory/", "bethink://topics/"


class Template(NamedTuple):
    """Resources of one kind."""

    uri: str
    name: str
    about: str
    type: str


TEMPLATES = (
    Template(
        FILE + "{path}",
        "knowledge-file",
        "A Markdown file of the project's knowledge folders",
        "text/markdown",
    ),
    Template(MEMORY + "{id}", "memory", "One memory in full, by id or its beginning", "text/plain"),
    Template(TOPICS + "{session}", "topics", "What one conversation was about", "text/plain"),
)


def check(name: str, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments of a call, if they are what the tool accepts. What is null counts as left out."""
    checked = _checked(arguments or {}, TOOLS[name].schema, "")
    assert isinstance(checked, dict)
    return checked


def nearest(word: str, choices: Sequence[str]) -> str:
    """The choice that was probably meant, as a sentence."""
    close = difflib.get_close_matches(
        word[:100].lower().replace("-", "_"), choices, n=1, cutoff=0.5
    )
    return f"Did you mean '{close[0]}'?" if close else ""


def _checked(value: Any, schema: Schema, place: str) -> Any:
    kind = schema["type"]
    if kind == "object":
        return _object(value, schema, place)
    if kind == "array":
        return _array(value, schema, place)
    if kind == "string":
        return _string(value, schema, place)
    if kind == "boolean":
        if not isinstance(value, bool):
            raise _wrong(value, place, "true or false")
        return value
    return _number(value, schema, place)


def _object(value: Any, schema: Schema, place: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise _wrong(value, place, "an object")
    if "properties" not in schema:
        return _anything(value, place)
    properties: dict[str, Schema] = schema["properties"]
    given = {name: inner for name, inner in value.items() if inner is not None}
    for name in value:
        if name not in properties:
            known = nearest(str(name), list(properties)) or (
                f"It takes {', '.join(properties)}." if properties else "It takes none."
            )
            raise InvalidInput(
                f"There is no argument '{_shown(str(name))}'{f' in {place}' if place else ''}.",
                known,
            )
    for name in schema.get("required", ()):
        if name not in given:
            raise InvalidInput(
                f"The argument '{_inside(place, name)}' is missing.",
                f"Give {_expected(properties[name])}.",
            )
    return {
        name: _checked(inner, properties[name], _inside(place, name))
        for name, inner in given.items()
    }


def _anything(value: Mapping[str, Any], place: str) -> dict[str, Any]:
    """An object of the caller's own making."""
    size = len(json.dumps(value))
    if size > LONGEST_METADATA:
        raise InvalidInput(
            f"'{place}' is {size:,} characters long; {LONGEST_METADATA:,} are the most.",
            "Shorten it.",
        )
    return dict(value)


def _array(value: Any, schema: Schema, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise _wrong(value, place, _expected(schema))
    most = schema.get("maxItems", MOST_ITEMS)
    if not value and "maxItems" in schema:  # the lists that a call is about
        raise InvalidInput(f"'{place}' is empty.", "Give at least one.")
    if len(value) > most:
        raise InvalidInput(
            f"'{place}' has {len(value):,} items; {most:,} are the most in one call.",
            "Split them over several calls.",
        )
    return [_checked(inner, schema["items"], f"{place}[{at}]") for at, inner in enumerate(value)]


def _string(value: Any, schema: Schema, place: str) -> str:
    if not isinstance(value, str):
        raise _wrong(value, place, _expected(schema))
    if len(value) > (most := schema.get("maxLength", LONGEST_TEXT)):
        raise InvalidInput(
            f"'{place}' is {len(value):,} characters long; {most:,} are the most.", "Shorten it."
        )
    if (choices := schema.get("enum")) and value not in choices:
        raise InvalidInput(
            f"'{_shown(value)}' is no {place}.",
            f"{nearest(value, choices)} One of {', '.join(choices)}.".strip(),
        )
    return value


def _number(value: Any, schema: Schema, place: str) -> float:
    whole = schema["type"] == "integer"
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or value - value != 0  # no number, or an endless one
        or (whole and value != int(value))
    ):
        raise _wrong(value, place, _expected(schema))
    low, high = schema["minimum"], schema["maximum"]
    if not low <= value <= high:
        raise InvalidInput(
            f"'{place}' is {value:g}, outside {low:g} to {high:g}.", f"Give {_expected(schema)}."
        )
    return int(value) if whole else float(value)


def _expected(schema: Schema) -> str:
    kind = schema["type"]
    if kind == "array":
        return f"a list of {'objects' if schema['items']['type'] == 'object' else 'strings'}"
    if kind in ("integer", "number"):
        return f"a {'whole ' * (kind == 'integer')}number from {schema['minimum']:g} to {schema['maximum']:g}"
    return {"string": "a string", "boolean": "true or false", "object": "an object"}[kind]


def _wrong(value: Any, place: str, expected: str) -> InvalidInput:
    return InvalidInput(
        f"'{place}' is {_shown(repr(value))}, which is not {expected}.", f"Give {expected}."
    )


def _inside(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _shown(text: str) -> str:
    plain = "".join(character if character.isprintable() else "�" for character in text[:60])
    return plain + "…" * (len(text) > 60)
