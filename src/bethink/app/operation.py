"""Operations: one typed function for each thing Bethink does, on every surface.

The signature of an operation says what it takes, and its docstring what it does: the first line is its help, the rest describes it.
From both come the command line's parser, the JSON Schema of requests and tools, the check of given values, and the reference.

    @operation("Everyday", http="GET /search", agents="read", opens="read", examples=('bethink search "how do we deploy?"',))
    def search(memory: "Bethink", query: Annotated[str, Arg("a question", words=True)], limit: Limit = 20) -> Found:

A parameter that is called `memory` or `console` is passed by the surface and is no argument. A NamedTuple is a request object:
its fields are arguments. `Annotated[Values, Members(...)]` collects those of several arguments that are present, by name.
Annotations must be evaluated, so a module of operations has no `from __future__ import annotations`.

This module imports nothing heavy: every command and the start of the MCP server load it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

from bethink.errors import InvalidInput, UsageError
from bethink.model import KIND_ALIASES, KINDS, NOTHING, Json, Strings, Values

SURFACES = ("cli", "mcp", "http")
CONTEXT = ("memory", "console")  # parameters that a surface passes
CLASSES = ("read", "append", "person")  # who may run an operation: see `Operation.agents`
_LARGEST = 1_000_000_000  # a number without another bound
_MOST_ITEMS = 100  # in a list without another bound
LONGEST_OBJECT = 100_000  # characters as JSON
_LONGEST_TEXT = 5_000_000  # the setting `max_characters` bounds a memory
SWITCH_TEXTS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "null": None}
_TYPES = {str: "text", int: "whole", float: "number", bool: "switch", object: "any", Any: "any"}
JSON_TYPES = {"text": "string", "whole": "integer", "switch": "boolean"}

F = TypeVar("F", bound=Callable[..., object])


class Arg(NamedTuple):
    """Metadata of an argument, for `Annotated`. In nested annotations, a later one overrides fields."""

    help: str = ""
    short: str = ""  # a flag of the command line: -n
    metavar: str = ""  # the value's name in help; by default the argument's in capitals
    low: float | None = None
    high: float | None = None
    longest: int | None = None  # characters of a text, items of a list
    choices: Strings = ()
    positional: bool = False  # on the command line
    # Positional, and all words of the command line that are left, joined by blanks; `-` reads stdin.
    words: bool = False
    stdin: bool = False  # a text that may also be that of --file or, without words, of stdin
    aliases: Strings = ()  # older names, accepted on every surface
    without: Strings = ()  # surfaces that do not offer it
    brief: str | None = None  # help in a tool for agents, where every token counts
    unlisted: bool = False  # accepted by a tool for agents, but left out of its schema
    group: str = ""  # heading in the help of the command line
    one_of: str = ""  # names a set of arguments of which one may be given
    action: str = ""  # goes with this choice of the positional `action` alone
    negative: str = ""  # the option that sets False; by default --no-NAME for `bool | None`
    commas: bool = False  # a list that may be typed with commas
    default: object = None  # on one surface, in place of the signature's
    on: Values = NOTHING  # by surface: an `Arg` that overrides fields there


class Parameter(NamedTuple):
    """One argument of an operation, as a surface offers it."""

    name: str
    type: str  # text, whole, number, switch, object, objects or any
    many: bool  # a list
    required: bool
    default: object
    arg: Arg
    nullable: bool = False  # None is a distinct value: a switch with three states
    members: tuple["Parameter", ...] = ()  # of objects
    request: Callable[..., object] | None = None  # the NamedTuple that objects become
    path: Strings = ()  # the parameters of the function that it is part of

    @property
    def names(self) -> Strings:
        return (self.name, *self.arg.aliases)

    @property
    def metavar(self) -> str:
        return self.arg.metavar or self.name.upper()


class Members(NamedTuple):
    """Metadata of a mapping that collects several arguments, those that were given alone."""

    list: Callable[[], Sequence[Parameter]]


class Operation(NamedTuple):
    name: str
    function: Callable[..., Any]
    group: str
    cli: bool  # whether it is a command
    http: str  # method and path, or nothing
    tool: str  # name of the tool for agents, or nothing
    # Who may run it as a command: `read` changes nothing and `append` adds or changes what agents may, `person` is for people alone.
    agents: str
    person_with: Strings  # arguments with which an operation is for people alone
    harmless: Strings  # arguments with which agents may run an operation for people
    opens: str  # the memory it needs: to `read` one that exists, to `make` one if need be, or none
    lists: Strings  # of one that gives a list: names of the list, of an item, and of its fields, for CSV, Markdown and XML
    traits: frozenset[str]  # what else surfaces need to know
    examples: Strings

    @property
    def help(self) -> str:
        """First line of the docstring."""
        return self.docstring.partition("\n")[0].rstrip(".")

    @property
    def description(self) -> str:
        """The whole docstring."""
        return " ".join(self.docstring.split())

    @property
    def docstring(self) -> str:
        return (self.function.__doc__ or "").strip()

    def parameters(self, surface: str) -> tuple[Parameter, ...]:
        """The arguments that a surface offers, in the order of the signature."""
        return offered(read_signature(self.function), surface)

    def bind(self, values: Values, surface: str) -> Json:
        """Check values by name and return the arguments of the function."""
        parameters = self.parameters(surface)
        return bind(self.function, parameters, check_values(values, parameters))


OPERATIONS: dict[str, Operation] = {}


def operation(
    group: str,
    *,
    http: str = "",
    tool: str = "",
    agents: str = "person",
    person_with: Strings = (),
    harmless: Strings = (),
    opens: str = "",
    lists: Strings = (),
    traits: Iterable[str] = (),
    examples: Strings = (),
    cli: bool = True,
) -> Callable[[F], F]:
    """Register a function as an operation: `list_` becomes `list`, and `sync_take` `sync-take`."""

    def register(function: F) -> F:
        name = function.__name__.strip("_").replace("_", "-")
        OPERATIONS[name] = Operation(
            name,
            function,
            group,
            cli,
            http,
            tool,
            agents,
            person_with,
            harmless,
            opens,
            lists,
            frozenset(traits),
            examples,
        )
        return function

    return register


# From a signature


def read_signature(function: Callable[..., object]) -> tuple[Parameter, ...]:
    """The arguments that a function takes, those of its request objects among them."""
    code, defaults = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    values = dict(
        zip(reversed(code.co_varnames[: code.co_argcount]), reversed(defaults), strict=False)
    )
    values |= function.__kwdefaults__ or {}
    found: list[Parameter] = []
    for name in names:
        if name not in CONTEXT:
            found += _read_parameter(name, function.__annotations__[name], values)
    return tuple(found)


def read_fields(request: Any) -> tuple[Parameter, ...]:
    """The fields of a NamedTuple as arguments."""
    defaults: Values = request._field_defaults
    hints: Values = request.__annotations__
    return tuple(one for name in hints for one in _read_parameter(name, hints[name], defaults))


def _read_parameter(name: str, annotation: Any, defaults: Values) -> Iterable[Parameter]:
    required, default = name not in defaults, defaults.get(name)
    args: list[Arg] = []
    if get_origin(annotation) is Annotated:
        annotation, *notes = get_args(annotation)
        for note in notes:
            if isinstance(note, Members):
                return [one._replace(path=(name, *one.path)) for one in note.list()]
            if isinstance(note, Arg):
                args.append(note)
    arg = reduce(merge_args, args) if args else Arg()
    nullable = False
    if get_origin(annotation) in (Union, UnionType):
        nullable = NoneType in get_args(annotation)
        [annotation] = [one for one in get_args(annotation) if one is not NoneType]
    if hasattr(annotation, "_fields"):
        return [one._replace(path=(name, *one.path)) for one in read_fields(annotation)]
    many = get_origin(annotation) in (tuple, list, Sequence)
    if many:
        annotation, default = get_args(annotation)[0], default or ()
    if get_origin(annotation) is Literal:
        annotation, arg = str, arg._replace(choices=get_args(annotation))
    type = _TYPES.get(annotation, "object")
    found = Parameter(name, type, many, required, default, arg, nullable and type == "switch")
    if hasattr(annotation, "_fields"):
        found = found._replace(type="objects", members=read_fields(annotation), request=annotation)
    return [found]


def offered(parameters: Sequence[Parameter], surface: str) -> tuple[Parameter, ...]:
    """The arguments that a surface offers, with its own names and help for them."""
    found = []
    for one in parameters:
        arg = one.arg
        if surface in arg.without:
            continue
        if surface in arg.on:
            arg = merge_args(arg, arg.on[surface])
        members = offered(one.members, surface)
        default = one.default if arg.default is None else arg.default
        found.append(one._replace(arg=arg, members=members, default=default))
    return tuple(found)


def merge_args(first: Arg, then: Arg) -> Arg:
    changed = {
        name: value for name, value in then._asdict().items() if value != Arg._field_defaults[name]
    }
    return first._replace(**changed)


def bind(function: Callable[..., object], parameters: Sequence[Parameter], checked: Values) -> Json:
    """Turn checked values into the arguments of a function or NamedTuple; build its request objects."""
    arguments: Json = {}
    inside: dict[str, list[Parameter]] = {}
    for one in parameters:
        if one.path:
            inside.setdefault(one.path[0], []).append(one._replace(path=one.path[1:]))
        elif checked.get(one.name) is not None:
            arguments[one.name] = checked[one.name]
        elif one.arg.default is not None:
            arguments[one.name] = one.arg.default
    for name, members in inside.items():
        request = function.__annotations__[name]
        if hasattr(request, "_fields"):
            arguments[name] = request(**bind(request, members, checked))
        else:
            arguments[name] = {
                one.name: checked[one.name] for one in members if one.name in checked
            }
    return arguments


# Checking


def parse_text(text: str, parameter: Parameter) -> object:
    """Parse a value from the command line or an address. Invalid text is returned for the check to refuse."""
    if parameter.type == "switch":
        return SWITCH_TEXTS.get(text.lower(), text)
    if parameter.type in ("whole", "number"):
        for read in (int, float) if parameter.type == "number" else (int,):
            with suppress(ValueError):
                return read(text)
    return text


def check_values(values: object, parameters: Sequence[Parameter], place: str = "") -> Json:
    """Check values by name and translate old names. Keep nulls only for fields that may be emptied.

    A wrong value raises a sentence that says what would be right.
    """
    if not isinstance(values, Mapping):
        raise InvalidInput(
            f"'{place or 'the request'}' is {shorten(repr(values))}, which is not an object.",
            "Give an object.",
        )
    known = {name: one for one in parameters for name in one.names}
    received: Json = {}
    for name, value in values.items():
        if name not in known:
            raise _unknown_name(str(name), parameters, place)
        one = known[name]
        if one.name in received:
            raise InvalidInput(f"'{name}' and '{one.name}' are the same.", "Give one of them.")
        received[one.name] = value
    checked: Json = {}
    for one in parameters:
        inner = f"{place}.{one.name}" if place else one.name
        if received.get(one.name) is not None:
            checked[one.name] = check_value(received[one.name], one, inner)
        elif one.required:
            raise InvalidInput(f"The argument '{inner}' is missing.", f"Give {describe_type(one)}.")
        elif one.name in received:
            checked[one.name] = None
    return checked


def _unknown_name(name: str, parameters: Sequence[Parameter], place: str) -> InvalidInput:
    from bethink.text import suggest

    where = f" in {place}" if place else ""
    names = [one.name for one in parameters]
    return InvalidInput(
        f"There is no argument '{shorten(name)}'{where}.",
        suggest(name, names) or f"It takes {', '.join(names) or 'none'}.",
    )


def check_value(value: object, parameter: Parameter, place: str) -> object:
    """Return a value, or each of a list, if the parameter accepts it."""
    if not parameter.many:
        return _check_one(value, parameter, place)
    if not isinstance(value, list | tuple):
        raise _wrong(value, parameter, place)
    most = parameter.arg.longest or _MOST_ITEMS
    if not value and parameter.required:
        raise InvalidInput(f"'{place}' is empty.", "Give at least one.")
    if len(value) > most:
        raise InvalidInput(
            f"'{place}' has {len(value):,} items; {most:,} are the most in one call.",
            "Split them over several calls.",
        )
    one = parameter._replace(many=False, arg=parameter.arg._replace(longest=None))
    return tuple(_check_one(inner, one, f"{place}[{at}]") for at, inner in enumerate(value))


def _check_one(value: object, parameter: Parameter, place: str) -> object:
    if parameter.type == "any":
        return value
    if parameter.type == "objects":
        checked = check_values(value, parameter.members, place)
        made = parameter.request
        return made(**bind(made, parameter.members, checked)) if made else checked
    if parameter.type in ("whole", "number"):
        return _check_number(value, parameter, place)
    if parameter.type == "switch":
        if not isinstance(value, bool):
            raise _wrong(value, parameter, place)
        return value
    if parameter.type == "object":
        if not isinstance(value, Mapping):
            raise _wrong(value, parameter, place)
        _check_object(value, parameter, place)
        return dict(value)
    if not isinstance(value, str):
        raise _wrong(value, parameter, place)
    if parameter.arg.choices and value not in parameter.arg.choices:
        from bethink.text import suggest_one_of

        raise InvalidInput(
            f"'{shorten(value)}' is not a valid {place}.",
            suggest_one_of(value, parameter.arg.choices),
        )
    _check_length(len(value), parameter.arg.longest or _LONGEST_TEXT, place)
    return value


def _check_number(value: object, parameter: Parameter, place: str) -> float:
    whole, arg = parameter.type == "whole", parameter.arg
    low = -_LARGEST if arg.low is None else arg.low
    high = _LARGEST if arg.high is None else arg.high
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(value, parameter, place)
    # NaN and infinities are in no range.
    if not low <= value <= high or (whole and value != int(value)):
        raise _wrong(value, parameter, place)
    return int(value) if whole else float(value)


def _check_object(value: Values, parameter: Parameter, place: str) -> None:
    import json

    try:
        length = len(json.dumps(value, allow_nan=False))
    except (ValueError, TypeError, RecursionError):
        raise InvalidInput(
            f"'{place}' holds a number that JSON has not, or is nested too deeply.",
            "Give a plain JSON object.",
        ) from None
    _check_length(length, parameter.arg.longest or LONGEST_OBJECT, place)


def _check_length(length: int, most: int, place: str) -> None:
    if length > most:
        raise InvalidInput(
            f"'{place}' is {length:,} characters long; {most:,} are the most.", "Shorten it."
        )


def _plain_name(parameter: Parameter) -> str:
    return f"'{parameter.name}'"


def check_together(
    values: Values,
    parameters: Sequence[Parameter],
    name_of: Callable[[Parameter], str] = _plain_name,
) -> None:
    """Refuse two arguments of an exclusive set, and arguments of another action."""
    action = next((one for one in parameters if one.name == "action"), None)
    asked = values.get("action", action.default if action else None)
    first: dict[str, str] = {}
    for one in parameters:
        if not values.get(one.name):
            continue
        if one.arg.action and one.arg.action != asked:
            raise UsageError(f"{name_of(one)} goes with `{one.arg.action}` alone.")
        if one.arg.one_of in first:
            raise UsageError(f"{name_of(one)}: not allowed with {first[one.arg.one_of]}.")
        if one.arg.one_of:
            first[one.arg.one_of] = name_of(one)


def describe_type(parameter: Parameter) -> str:
    """The values that an argument accepts, in words."""
    if parameter.many:
        return f"a list of {'objects' if parameter.type == 'objects' else 'strings'}"
    if parameter.type in ("whole", "number"):
        kind = "a whole number" if parameter.type == "whole" else "a number"
        low, high = parameter.arg.low, parameter.arg.high
        if low is None or high is None:
            least = "" if low is None else f" of at least {low:g}"
            return f"{kind}{least}" + ("" if high is None else f" of at most {high:.12g}")
        return f"{kind} from {low:g} to {high:.12g}"
    return {"object": "an object", "switch": "true or false"}.get(parameter.type, "a string")


def _wrong(value: object, parameter: Parameter, place: str) -> InvalidInput:
    expected = describe_type(parameter)
    return InvalidInput(
        f"'{place}' is {shorten(repr(value))}, which is not {expected}.", f"Give {expected}."
    )


def shorten(text: str) -> str:
    plain = "".join(character if character.isprintable() else "�" for character in text[:60])
    return plain + "…" * (len(text) > 60)


# As JSON Schema


def object_schema(parameters: Sequence[Parameter], closed: bool = False) -> Json:
    """Return the JSON Schema of an object: in full if `closed`, else in few tokens, for a tool."""
    listed = [one for one in parameters if closed or not one.arg.unlisted]
    properties = {one.name: value_schema(one, closed) for one in listed}
    schema: Json = {"type": "object", "properties": properties}
    if required := [one.name for one in parameters if one.required]:
        schema["required"] = required
    return {**schema, "additionalProperties": False} if closed else schema


def value_schema(parameter: Parameter, closed: bool = False) -> Json:
    """The JSON Schema of one argument."""
    schema, arg = _one_schema(parameter, closed), parameter.arg
    if parameter.many:
        schema = {"type": "array", "items": schema}
    if closed and arg.longest and (parameter.many or parameter.type == "text"):
        schema["maxItems" if parameter.many else "maxLength"] = arg.longest
    if parameter.default:
        schema["default"] = parameter.default
    about = arg.help if closed else (arg.help if arg.brief is None else arg.brief)
    return {**schema, "description": about} if about else schema


def _one_schema(parameter: Parameter, closed: bool) -> Json:
    if parameter.type == "any":
        return {}
    if parameter.type == "objects":
        return object_schema(parameter.members, closed)
    arg = parameter.arg
    schema: Json = {"type": JSON_TYPES.get(parameter.type, parameter.type)}
    if parameter.type in ("whole", "number"):
        bounds = {"minimum": arg.low if closed else None, "maximum": arg.high}
        schema |= {name: bound for name, bound in bounds.items() if bound is not None}
    kinds = (*KINDS, *KIND_ALIASES) if closed and arg.metavar == "KIND" else ()
    if choices := arg.choices or kinds:
        schema["enum"] = list(choices)
    return schema
