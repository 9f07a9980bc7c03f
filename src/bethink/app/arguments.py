"""The language in which commands, MCP tools and the HTTP API say what they take: one line per argument, from which come the
command line's parser, the JSON schema of a tool or request, the check of what was given, and the reference.

    ID+                              an id or any unique beginning of one
    action save|show = show          default: show
    --limit, -n N whole 1.. = 20     how many at most (20)
    --kind KIND*                     only of this kind; may be repeated
    --yes, -y                        do not ask
    which memories:
    | --all-projects                 of every project
    | --personal                     only personal ones

Two blanks or more end what an argument is and begin what it is for. A name without dashes is required, unless it stands in
brackets, ends with `*` or has a default. `+` and `*` are lists. The type is `whole` or `number`, with or without a range,
`text` with or without a longest length (of a list: with the most items), choices, `object`, `objects`, `any`, or left out for
text. A switch is off; with the default `yes` it is on, with `null` it is neither. A line that ends with a colon begins a
group; one that is called as a choice above goes with that choice alone. Of the lines of a group that begin with a bar, one may be given.
"""

# No `from __future__ import annotations`: NamedTuple compiles each annotation that is a text, and every command loads this.
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import SimpleNamespace
from typing import Any, NamedTuple

from bethink.errors import InvalidInput, UsageError
from bethink.language.times import expiry, moment
from bethink.model import KIND_ALIASES, KINDS, Json, Strings, Values
from bethink.text import suggest, suggest_one_of

SWITCH = "switch"  # the type of an option that takes no value
NUMBERS = ("whole", "number")
MOST = 1_000_000_000
MOST_ITEMS = 100  # of a list that names no other number
LONGEST_OBJECT = 100_000  # characters as JSON
LONGEST_TEXT = 5_000_000  # the setting `max_characters` says how long a memory may be
JSON_TYPES = {"text": "string", "choice": "string", "whole": "integer", SWITCH: "boolean"}
SWITCH_TEXTS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "null": None}

# Bar, names, value, type with its bounds or choices, default.
_ARGUMENT = r"""(?x) (\|\ )? ((?:-[\w-]+,?\ ?)*) ((?!=\ )\S*)\ ?
(?: (whole|number|text|objects?|any)\b\ ?(?:(-?\d+)?\.\.(-?\d+)?)? | ([\w|-]*) )\ ? (?:=\ (.*))?"""


class Argument(NamedTuple):
    names: Strings  # of an option with its dashes; else the one name
    value: str  # what the value is called
    type: str  # text, whole, number, object, objects, any, choice or switch
    many: str  # how many values: one (""), perhaps one ("?"), any number ("*"), one or more ("+")
    default: str | None
    low: int | None
    high: int | None
    choices: Strings
    help: str
    group: str
    alone: bool  # one of a set of which only one may be given
    inner: "tuple[Argument, ...]" = ()  # of objects: what each of them holds

    @property
    def name(self) -> str:
        """What the value is stored as."""
        return self.names[0].lstrip("-").replace("-", "_").lower()

    @property
    def is_option(self) -> bool:
        return self.names[0].startswith("-")

    @property
    def is_list(self) -> bool:
        return self.many in ("+", "*")

    @property
    def is_required(self) -> bool:
        return not self.is_option and self.many not in ("?", "*")

    @property
    def empty(self) -> Any:
        """The value where none was given."""
        if self.type == SWITCH:
            return SWITCH_TEXTS.get(self.default or "false")
        if self.is_list:
            return []
        if self.type == "object":
            return {}
        return None if self.default is None else parse_value(self.default, self)


def parse_arguments(text: str, **inner: str) -> tuple[Argument, ...]:
    """The arguments that a text describes; `<name>` stands for what several take. `inner` describes what the objects of an argument
    hold."""
    found: dict[str, Argument] = {}
    group = ""
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.endswith(":") and "  " not in line:
            group = line[:-1]
            continue
        argument = _parse_argument(line, group)
        held = parse_arguments(inner.get(argument.name, ""))
        found.setdefault(argument.name, argument._replace(inner=held))
    return tuple(found.values())


def _parse_argument(line: str, group: str) -> Argument:
    head, _, about = line.partition("  ")
    found = re.fullmatch(_ARGUMENT, head)
    if not found:
        raise ValueError(f"No argument is described by {head!r}.")
    alone, names, form, type, low, high, choices, default = found.groups()
    value = form.strip("[]+*")
    many = form[-1] if form.endswith(("+", "*")) else ""
    if form.startswith("[") or (default and not names):
        many = "?"
    return Argument(
        tuple(names.replace(",", "").split()) or (value,),
        value,
        (type or ("choice" if choices else "text")) if value else SWITCH,
        many,
        default,
        int(low) if low else None,
        int(high) if high else None,
        tuple(choices.split("|")) if choices else (),
        about.strip(),
        group,
        bool(alone),
    )


def parse_value(text: str, argument: Argument) -> Any:
    """A value as it is typed or stands in an address. What does not fit stays text, which the check refuses."""
    if argument.type == SWITCH:
        return SWITCH_TEXTS.get(text.lower(), text)
    if argument.type in NUMBERS:
        try:
            return int(text) if argument.type == "whole" else float(text)
        except ValueError:
            return text
    return text


# As it is typed


def read_typed(words: Sequence[str], arguments: Sequence[Argument]) -> Json:
    """The arguments of a command line. Options and words mix freely, what looks like a negative number is no option, and behind
    `--` there are only words."""
    flags = {flag: one for one in arguments if one.is_option for flag in one.names}
    given: Json = {}
    plain: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--":
            plain += left
            break
        flag, equals, value = word.partition("=")
        if word[:2] in flags and len(flag) > 2:  # -n3
            flag, equals, value = word[:2], "=", word[2:]
        # A negative number, or a text that begins with a dash, is no option.
        if " " in flag or not re.match(r"-[^\d.]", flag):
            plain.append(word)
        else:
            _read_option(flag, value if equals else None, left, flags, given)
    if not given.keys() & {"help", "version"}:
        _read_words(plain, arguments, given)
        _check_together(given, arguments)
    return given


def _read_option(
    flag: str,
    value: str | None,
    left: list[str],
    flags: Mapping[str, Argument],
    given: Json,
) -> None:
    """Puts an option into what was given; its value stands behind it unless it is known."""
    one = flags.get(flag)
    if one is None:
        close = suggest(flag.lstrip("-"), [name[2:] for name in flags if name[:2] == "--"])
        close = close.replace("'", "'--", 1)  # its dashes are like those of any other
        raise UsageError(f"There is no option {flag} here.", close if len(flag) > 2 else None)
    if one.type == SWITCH:
        given[one.name] = True
        return
    if value is None:
        if not left or left[0] in flags or left[0] == "--":
            raise UsageError(f"{flag}: expected one argument.")
        value = left.pop(0)
    if one.many == "*":
        parts = value.split(",") if one.choices else [value]
        given.setdefault(one.name, []).extend(check_value(part, one, flag) for part in parts)
    else:
        given[one.name] = check_value(parse_value(value, one), one, one.names[0])


def _check_together(given: Values, arguments: Sequence[Argument]) -> None:
    """Refuses two of a set of which one may be given, and what goes with another action than the one that is asked for."""
    actions = {choice: one for one in arguments if not one.is_option for choice in one.choices}
    first: dict[str, str] = {}
    for one in arguments:
        action = actions.get(one.group)
        if not given.get(one.name):
            continue
        if action and one.group != given.get(action.name, action.default):
            raise UsageError(f"{one.names[0]} goes with `{one.group}` alone.")
        if one.alone and one.group in first:
            raise UsageError(f"{one.names[0]}: not allowed with {first[one.group]}.")
        if one.alone:
            first[one.group] = one.names[0]


def _read_words(plain: list[str], arguments: Sequence[Argument], given: Json) -> None:
    """Puts the arguments that are known by their place into what was given."""
    for one in arguments:
        if one.is_option:
            continue
        if one.is_list:
            given[one.name], plain = plain, []
        elif plain:
            given[one.name] = check_value(parse_value(plain.pop(0), one), one, one.value)
        if one.is_required and not given.get(one.name):
            raise UsageError(f"The following arguments are required: {one.value}.")
    if plain:
        raise UsageError(f"Unrecognized arguments: {' '.join(plain)}.")


# As JSON Schema


def object_schema(arguments: Sequence[Argument], closed: bool = False) -> Json:
    """A `closed` object may hold nothing else. Those of tools say it only where they are empty, and do not tell how little or how
    long a value may be: each word of theirs is in every conversation."""
    properties = {argument.name: value_schema(argument, closed) for argument in arguments}
    schema: Json = {"type": "object", "properties": properties}
    if required := [argument.name for argument in arguments if argument.is_required]:
        schema["required"] = required
    return schema if arguments and not closed else {**schema, "additionalProperties": False}


def value_schema(argument: Argument, closed: bool = False) -> Json:
    schema = _one_schema(argument, closed)
    if argument.is_list:
        schema = {"type": "array", "items": schema}
    if closed and argument.high and (argument.is_list or argument.type == "text"):
        schema["maxItems" if argument.is_list else "maxLength"] = argument.high
    if argument.default and argument.default != "null":
        schema["default"] = argument.empty
    return {**schema, "description": argument.help} if argument.help else schema


def _one_schema(argument: Argument, closed: bool) -> Json:
    """Of one value, however many there may be."""
    if argument.type == "any":
        return {}
    if argument.type == "objects":
        return object_schema(argument.inner, closed)
    schema: Json = {"type": JSON_TYPES.get(argument.type, argument.type)}
    if argument.type in NUMBERS:
        bounds = {"minimum": argument.low if closed else None, "maximum": argument.high}
        schema |= {name: bound for name, bound in bounds.items() if bound is not None}
    kinds = (*KINDS, *KIND_ALIASES) if closed and argument.value == "KIND" else ()
    if choices := argument.choices or kinds:
        schema["enum"] = list(choices)
    return schema


# Checking


def check_arguments(value: Any, arguments: Sequence[Argument], place: str = "") -> Json:
    """What was given, if it is what the arguments accept. What is null counts as left out. A wrong value is a sentence that
    says what would be right."""
    if not isinstance(value, Mapping):
        raise InvalidInput(
            f"'{place or 'the request'}' is {_short(repr(value))}, which is not an object.",
            "Give an object.",
        )
    known = {argument.name: argument for argument in arguments}
    for name in value:
        if name not in known:
            takes = f"It takes {', '.join(known) or 'none'}."
            where = f" in {place}" if place else ""
            raise InvalidInput(
                f"There is no argument '{_short(str(name))}'{where}.",
                suggest(str(name), known) or takes,
            )
    checked = {}
    for name, argument in known.items():
        inner = f"{place}.{name}" if place else name
        if value.get(name) is not None:
            checked[name] = _check(value[name], argument, inner)
        elif argument.is_required:
            raise InvalidInput(
                f"The argument '{inner}' is missing.", f"Give {describe_type(argument)}."
            )
    return checked


def fill_defaults(given: Values, arguments: Iterable[Argument]) -> Json:
    """What was given, and for every other argument its default."""
    return {
        one.name: one.empty if given.get(one.name) is None else given[one.name] for one in arguments
    }


def make_asked(given: Values, arguments: Iterable[Argument], **more: Any) -> SimpleNamespace:
    """What an operation is asked, on every surface: each argument as an attribute, and what was given of them as `given`."""
    return SimpleNamespace(**fill_defaults(given, arguments), **more, given=given)


def _check(value: Any, argument: Argument, place: str) -> Any:
    if not argument.is_list:
        return check_value(value, argument, place)
    if not isinstance(value, list):
        raise _wrong(value, argument, place)
    most = argument.high or MOST_ITEMS
    if not value and argument.many == "+":  # the lists that a call is about
        raise InvalidInput(f"'{place}' is empty.", "Give at least one.")
    if len(value) > most:
        raise InvalidInput(
            f"'{place}' has {len(value):,} items; {most:,} are the most in one call.",
            "Split them over several calls.",
        )
    one = argument._replace(many="", high=None)
    return [check_value(inner, one, f"{place}[{at}]") for at, inner in enumerate(value)]


def check_value(value: Any, argument: Argument, place: str) -> Any:
    """One value, if it is what the argument accepts."""
    if argument.type == "any":
        return value
    if argument.type == "objects":
        held = check_arguments(value, argument.inner, place)
        return fill_defaults(held, argument.inner)
    if argument.type in NUMBERS:
        return _check_number(value, argument, place)
    types: Any = {"object": Mapping, SWITCH: bool}
    if not isinstance(value, types.get(argument.type, str)):
        raise _wrong(value, argument, place)
    if argument.type == SWITCH:
        return value
    if argument.choices and value not in argument.choices:
        raise InvalidInput(
            f"'{_short(value)}' is no {place}.", suggest_one_of(value, argument.choices)
        )
    _check_length(value, argument, place)
    return dict(value) if argument.type == "object" else value


def _check_number(value: Any, argument: Argument, place: str) -> float:
    whole = argument.type == "whole"
    low = -MOST if argument.low is None else argument.low
    high = MOST if argument.high is None else argument.high
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # What is no number at all, or an endless one, is in no range.
    if not is_number or not low <= value <= high or (whole and value != int(value)):
        raise _wrong(value, argument, place)
    return int(value) if whole else float(value)


def _check_length(value: Any, argument: Argument, place: str) -> None:
    length, most = len(value), argument.high or LONGEST_TEXT
    if argument.type == "object":
        import json

        try:
            length, most = len(json.dumps(value, allow_nan=False)), argument.high or LONGEST_OBJECT
        except (ValueError, TypeError, RecursionError):
            raise InvalidInput(
                f"'{place}' holds a number that JSON has not, or is nested too deeply.",
                "Give a plain JSON object.",
            ) from None
    if length > most:
        raise InvalidInput(
            f"'{place}' is {length:,} characters long; {most:,} are the most.", "Shorten it."
        )


def describe_type(argument: Argument) -> str:
    """What an argument accepts, in words."""
    if argument.is_list:
        return f"a list of {'objects' if argument.type == 'objects' else 'strings'}"
    if argument.type in NUMBERS:
        kind = "a whole number" if argument.type == "whole" else "a number"
        start = "" if argument.low is None else f" from {argument.low}"
        return f"{kind}{start}" + ("" if argument.high is None else f" to {argument.high}")
    return {"object": "an object", SWITCH: "true or false"}.get(argument.type, "a string")


def _wrong(value: Any, argument: Argument, place: str) -> InvalidInput:
    expected = describe_type(argument)
    return InvalidInput(
        f"'{place}' is {_short(repr(value))}, which is not {expected}.", f"Give {expected}."
    )


def _short(text: str) -> str:
    plain = "".join(character if character.isprintable() else "�" for character in text[:60])
    return plain + "…" * (len(text) > 60)


# Times of a statement as they are given → as they are kept, and how each is read.
STATEMENT_TIMES: dict[str, tuple[str, Callable[..., datetime]]] = {
    "expires": ("expires_at", expiry),
    "valid_from": ("valid_from", moment),
    "valid_to": ("valid_to", moment),
}


def read_times(given: Values, now: datetime) -> Json:
    """The values of a statement or of a change with their times read. What is None was not given."""
    values = {}
    for name, value in given.items():
        field, read = STATEMENT_TIMES.get(name, (name, None))
        if value is not None:
            values[field] = read(value, now) if read else value
    return values
