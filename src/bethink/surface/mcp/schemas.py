"""What each tool accepts, in the language of `surface/arguments.py`, and checking that. Every host puts these texts into every
conversation, so they are short: all of them together stay under 1,500 tokens, which a test holds.

A wrong argument is a sentence that says what would be right: the reader is a model that tries again. This module imports
nothing heavy, because the list of tools is the first thing a host asks for.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bethink.config import PROFILES
from bethink.errors import InvalidInput
from bethink.surface.arguments import SWITCH, Argument, parse_arguments
from bethink.types import KINDS, MODES

MOST_STORED, MOST_IDS = 100, 50
MOST_ITEMS = 100  # of any other list
LONGEST_METADATA = 10_000
LONGEST_TEXT = 5_000_000  # the setting `max_characters` says how long a memory may be

# For hosts that ask their user before a tool does harm. Tools that only read say so, and nothing else about themselves.
READS = {"readOnlyHint": True, "openWorldHint": False}
ADDS = {"destructiveHint": False, "openWorldHint": False}
ADDS_ONCE = {"destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
HIDES = {"destructiveHint": True, "idempotentHint": True, "openWorldHint": False}

JSON_TYPES = {"text": "string", "choice": "string", "whole": "integer", SWITCH: "boolean"}


class Tool(NamedTuple):
    description: str
    arguments: tuple[Argument, ...]
    hints: Mapping[str, bool]
    meta: Mapping[str, Any] | None = None

    @property
    def schema(self) -> dict[str, Any]:
        return _object_schema(self.arguments)


def _tool(description: str, arguments: str, hints: Mapping[str, bool], **meta: str | bool) -> Tool:
    return Tool(
        description,
        tuple(parse_arguments(arguments)),
        hints,
        {f"anthropic/{name}": value for name, value in meta.items()} or None,
    )


TOOLS: dict[str, Tool] = {
    "search_memories": _tool(
        "Search what this project and user decided, learned, fixed and prefer. Memory is the primary source for such facts: search"
        ' before relying on general knowledge, before design or tool choices and fixes, when the user refers to earlier work ("that'
        ' bug", "as we discussed"), at session start. When in doubt, search.',
        f"""
        query text ..10000           question or words; "phrases", prefix*, AND OR NOT; "open questions", "last week"
        --intent NAME {"|".join(PROFILES)}     continuity: resume, recent first; fact_check: verify; frequent: habits; associative: connections; explore: stuck
        --reason_for_search TEXT
        --mode MODE {"|".join(MODES)}     keyword: exact names; vector: concepts
        --kinds KIND*                decision, gotcha, question …
        --entities NAME*             about any of these
        --since TIME                 30d, or a date
        --limit N whole 1..50 = 10
        --max_tokens N whole 100..20000 = 1000
        --include_deleted
        """,
        READS,
        alwaysLoad=True,
        searchHint="past decisions and fixes",
    ),
    "store_memories": _tool(
        "Remember lasting decisions with reasons, facts, preferences, gotchas, solutions: one self-contained statement each. No secrets,"
        " nothing passing.",
        f"""
        memories+ objects ..{MOST_STORED}
        """,
        ADDS_ONCE,
    ),
    "get_memories": _tool(
        "Memories in full, with relations. Counts as use of each.",
        f"""
        ids+ text ..{MOST_IDS}       ids or their beginnings
        --max_tokens N whole 100..20000 = 8000
        """,
        READS,
    ),
    "update_memory": _tool(
        "Change a memory; the old version is kept.",
        """
        id
        --content TEXT
        --kind KIND
        --importance N number 0..10
        --tags TAG*
        --entities NAME*
        --expires TIME
        --answered
        """,
        ADDS_ONCE,
    ),
    "forget_memories": _tool(
        "Hide wrong or obsolete memories; people can restore them. To replace one, store with supersedes.",
        f"""
        ids+ text ..{MOST_IDS}       ids or their beginnings
        """,
        HIDES,
    ),
    "rate_memories": _tool(
        "Was a memory useful (1 to 5) or misleading (-1 to -5)?",
        f"""
        ratings+ objects ..{MOST_IDS}
        """,
        ADDS,
    ),
    "store_handoff": _tool(
        "Leave word for the next session when work stops, is blocked or changes hands. Replaces the branch's last handoff.",
        """
        summary                      where things stand
        --completed TEXT*
        --in_progress_blocked TEXT*
        --key_decisions TEXT*
        --next_steps TEXT*
        --memory_ids ID*             memories used
        --project NAME
        --branch NAME                default: the current one
        """,
        ADDS_ONCE,
    ),
    "get_handoff": _tool(
        "The last handoff of this branch, or else of any. Read it when resuming work.",
        """
        --project NAME
        --branch NAME
        """,
        READS,
    ),
    "memory_overview": _tool(
        "What memory holds: counts, last handoff, open questions and todos, recent topics.",
        "",
        READS,
    ),
}
# What the objects in a list hold.
OBJECTS = {
    "memories": tuple(
        parse_arguments(f"""
        content
        --kind KIND {"|".join(KINDS)}
        --importance N number 0..10
        --tags TAG*
        --entities NAME*             names: Redis, person:Ada
        --expires TIME               30d, or a date
        --personal                   about the user, for every project
        --supersedes ID*             ids it replaces
        --metadata VALUES object
        """)
    ),
    "ratings": tuple(
        parse_arguments("""
        id
        value number -5..5
        """)
    ),
}

# What a host calls by itself, as a hook, and no model needs to know of: not in the list of tools.
HOOK = "bethink_prompt"

# Tools that compare or store meaning, for which the embedding model is waited for.
MEANING = frozenset(("search_memories", "store_memories", "update_memory", "store_handoff"))


def _object_schema(arguments: Sequence[Argument]) -> dict[str, Any]:
    required = [argument.name for argument in arguments if argument.is_required]
    return {
        "type": "object",
        "properties": {argument.name: _schema(argument) for argument in arguments},
        **({"required": required} if required else {}),
        **({} if arguments else {"additionalProperties": False}),
    }


def _schema(argument: Argument) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": JSON_TYPES.get(argument.type, argument.type)}
    if argument.type == "objects":
        schema = _object_schema(OBJECTS[argument.name])
    if argument.type in ("whole", "number"):
        schema |= {"minimum": argument.low, "maximum": argument.high}
    if argument.choices:
        schema["enum"] = list(argument.choices)
    if argument.many:
        schema = {"type": "array", "items": schema}
    if argument.high and argument.type in ("text", "objects"):
        schema["maxItems" if argument.many else "maxLength"] = int(argument.high)
    if argument.default:
        schema["default"] = int(argument.default)
    return {**schema, "description": argument.help} if argument.help else schema


# Checking


def check(name: str, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments of a call, if they are what the tool accepts. What is null counts as left out."""
    return _check_object(given or {}, TOOLS[name].arguments, "")


def nearest(word: str, choices: Iterable[str]) -> str:
    """The choice that was probably meant, as a sentence."""
    word = word[:100].lower().replace("-", "_")
    close = difflib.get_close_matches(word, list(choices), n=1, cutoff=0.5)
    return f"Did you mean '{close[0]}'?" if close else ""


def _check_object(value: Any, arguments: Sequence[Argument], place: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise _wrong(value, place, "an object")
    known = {argument.name: argument for argument in arguments}
    for name in value:
        if name not in known:
            takes = f"It takes {', '.join(known) or 'none'}."
            where = f" in {place}" if place else ""
            raise InvalidInput(
                f"There is no argument '{_short(str(name))}'{where}.",
                nearest(str(name), known) or takes,
            )
    checked = {}
    for name, argument in known.items():
        inner = f"{place}.{name}" if place else name
        if value.get(name) is not None:
            checked[name] = _check(value[name], argument, inner)
        elif argument.is_required:
            raise InvalidInput(
                f"The argument '{inner}' is missing.", f"Give {_expected(argument)}."
            )
    return checked


def _check(value: Any, argument: Argument, place: str) -> Any:
    if not argument.many:
        return _check_one(value, argument, place)
    if not isinstance(value, list):
        raise _wrong(value, place, _expected(argument))
    most = int(argument.high or MOST_ITEMS)
    if not value and argument.high:  # the lists that a call is about
        raise InvalidInput(f"'{place}' is empty.", "Give at least one.")
    if len(value) > most:
        raise InvalidInput(
            f"'{place}' has {len(value):,} items; {most:,} are the most in one call.",
            "Split them over several calls.",
        )
    one = argument._replace(many="", high=None)
    return [_check_one(inner, one, f"{place}[{at}]") for at, inner in enumerate(value)]


def _check_one(value: Any, argument: Argument, place: str) -> Any:
    kind = argument.type
    if kind == "objects":
        return _check_object(value, OBJECTS[argument.name], place)
    expected = _expected(argument)
    types: Any = {"object": Mapping, SWITCH: bool, "whole": (int, float), "number": (int, float)}
    if not isinstance(value, types.get(kind, str)) or (
        kind in ("whole", "number")
        and (
            isinstance(value, bool)
            or value - value != 0  # no number, or an endless one
            or (kind == "whole" and value != int(value))
        )
    ):
        raise _wrong(value, place, expected)
    if kind in ("whole", "number"):
        if not (argument.low or 0) <= value <= (argument.high or 0):
            low, high = f"{argument.low:g}", f"{argument.high:g}"
            raise InvalidInput(
                f"'{place}' is {value:g}, outside {low} to {high}.", f"Give {expected}."
            )
        return int(value) if kind == "whole" else float(value)
    length = len(json.dumps(value)) if kind == "object" else len(value) if kind != SWITCH else 0
    most = int(argument.high or (LONGEST_METADATA if kind == "object" else LONGEST_TEXT))
    if length > most:
        raise InvalidInput(
            f"'{place}' is {length:,} characters long; {most:,} are the most.", "Shorten it."
        )
    if argument.choices and value not in argument.choices:
        one_of = f"One of {', '.join(argument.choices)}."
        raise InvalidInput(
            f"'{_short(value)}' is no {place}.",
            f"{nearest(value, argument.choices)} {one_of}".strip(),
        )
    return dict(value) if kind == "object" else value


def _expected(argument: Argument) -> str:
    if argument.many:
        return f"a list of {'objects' if argument.type == 'objects' else 'strings'}"
    if argument.type in ("whole", "number"):
        kind = "whole number" if argument.type == "whole" else "number"
        return f"a {kind} from {argument.low:g} to {argument.high:g}"
    return {"object": "an object", SWITCH: "true or false"}.get(argument.type, "a string")


def _wrong(value: Any, place: str, expected: str) -> InvalidInput:
    return InvalidInput(
        f"'{place}' is {_short(repr(value))}, which is not {expected}.", f"Give {expected}."
    )


def _short(text: str) -> str:
    plain = "".join(character if character.isprintable() else "�" for character in text[:60])
    return plain + "…" * (len(text) > 60)
