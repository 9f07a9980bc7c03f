"""The command line of an operation: an argparse parser built from its arguments, and its help."""

import re
import sys
from collections.abc import Sequence
from typing import Annotated, NamedTuple

from bethink.app.operation import (
    Arg,
    Operation,
    Parameter,
    bind,
    check_together,
    check_value,
    parse_text,
    read_fields,
)
from bethink.app.render import fold, one_line, size
from bethink.errors import InvalidInput, UsageError
from bethink.model import Json, Strings, Values
from bethink.text import refuse_constant, replace_broken, split_lists, suggest

FORMATS = ("text", "json")
LIST_FORMATS = (*FORMATS, "csv", "md", "xml")
COLUMN = 24  # where the help of an argument begins
_LONGEST = 4 * 5_000_000  # bytes: no setting allows a longer memory
# A path may have bytes that are not UTF-8, and a search takes any input.
ANY_BYTES = ("database", "project", "file", "output", "directory", "path", "query")
GENERAL = "options of every command"


class Common(NamedTuple):
    """The options of every command."""

    help: Annotated[bool, Arg("show this help and exit", short="-h", group="options")] = False
    database: Annotated[str | None, Arg("database to use", metavar="PATH", group=GENERAL)] = None
    project: Annotated[
        str | None, Arg("run as if started in this directory", metavar="DIR", group=GENERAL)
    ] = None
    container: Annotated[
        str | None, Arg("named container inside the project", metavar="NAME", group=GENERAL)
    ] = None
    format: Annotated[str | None, Arg("output format", group=GENERAL)] = None
    json: Annotated[bool, Arg("same as --format json", group=GENERAL)] = False
    for_agent: Annotated[
        bool, Arg("quote stored text with its origin; set automatically for agents", group=GENERAL)
    ] = False
    quiet: Annotated[bool, Arg("no hints, warnings or progress", group=GENERAL)] = False
    version: Annotated[bool, Arg("print the version", short="-V", group=GENERAL)] = False


class Parsed(NamedTuple):
    common: Common
    values: Json  # by name, as they were given
    own: tuple[Parameter, ...]  # the command's own arguments


def list_parameters(operation: Operation) -> tuple[Parameter, ...]:
    """The arguments of a command: its own, and the options of every command."""
    return _add_common(operation, operation.parameters("cli"))


def _add_common(operation: Operation, own: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
    help, *common = read_fields(Common)
    formats = LIST_FORMATS if operation.lists else FORMATS
    taken = {one.name for one in own}
    general = [
        one._replace(arg=one.arg._replace(choices=formats)) if one.name == "format" else one
        for one in common
        if one.name not in taken
    ]
    return (help, *own, *general)


def parse(operation: Operation, words: Sequence[str]) -> Parsed:
    """Read the words behind a command."""
    own = operation.parameters("cli")
    parameters = _add_common(operation, own)
    try:
        values = _read_words(parameters, words)
        common = Common(**{name: values[name] for name in Common._fields if name in values})
        if common.help or common.version:
            return Parsed(common, values, own)
        _check_required(parameters, values)
        check_together(values, parameters, name_option)
    except UsageError as error:
        more = f"`bethink {operation.name} --help` lists its arguments."
        raise UsageError(error.message, error.hint or more) from None
    _check_encoding(values)
    return Parsed(common, values, own)


def read_arguments(operation: Operation, parsed: Parsed) -> Json:
    """Return the arguments of an operation's function: read files and stdin, build request objects."""
    values, complete = parsed.values, dict(parsed.values)
    for one in parsed.own:
        if one.arg.words or (one.arg.stdin and {one.name, "file"} & values.keys()):
            typed, file = values.get(one.name), values.get("file") if one.arg.stdin else None
            words = (typed,) if isinstance(typed, str) else typed
            complete[one.name] = read_text(words, file, operation.examples[0])
    return bind(operation.function, parsed.own, complete)


def name_option(parameter: Parameter) -> str:
    """An argument as it is typed."""
    if is_positional(parameter):
        return parameter.metavar
    return f"--{parameter.name.replace('_', '-')}"


def is_positional(parameter: Parameter) -> bool:
    return parameter.arg.positional or parameter.arg.words


def name_flags(parameter: Parameter) -> list[str]:
    """The options that set an argument, its short form first."""
    short = [parameter.arg.short] if parameter.arg.short else []
    return [*(f"--{name.replace('_', '-')}" for name in parameter.names), *short]


def name_negative(parameter: Parameter) -> str:
    """The option that sets False, if there is one."""
    if parameter.arg.negative or parameter.nullable:
        return f"--{parameter.arg.negative or f'no-{parameter.name}'}".replace("_", "-")
    return ""


def _parse_options(
    parameters: Sequence[Parameter], words: Sequence[str]
) -> tuple[Json, Sequence[str]]:
    """The values of options as they were typed, and the other words."""
    if not any(word.startswith("-") for word in words):
        return {}, words
    import argparse  # 1.3 ms

    # Its messages stay English, like ours; looking for translations takes 0.8 ms of a search.
    argparse._ = str  # type: ignore[attr-defined]
    parser = argparse.ArgumentParser(
        add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS, exit_on_error=False
    )
    # A group does not build a help formatter for each argument, which took 2 ms of a search.
    group = parser.add_argument_group()
    named = {word.partition("=")[0] for word in words}
    for one in parameters:
        flags = [*name_flags(one), name_negative(one)]
        # An option that nobody typed need not be known: most commands have forty.
        if is_positional(one) or (named.isdisjoint(flags) and not one.arg.short):
            continue
        negative = name_negative(one) if one.type == "switch" else ""
        place = parser.add_mutually_exclusive_group() if negative else group
        if one.type == "switch":
            place.add_argument(*name_flags(one), dest=one.name, action="store_const", const=True)
        elif one.many or one.type == "object":
            place.add_argument(*name_flags(one), dest=one.name, action="append")
        else:
            place.add_argument(*name_flags(one), dest=one.name)
        if negative:
            place.add_argument(negative, dest=one.name, action="store_const", const=False)
    try:
        found, plain = parser.parse_known_args(words)
    except argparse.ArgumentError as error:
        name = (error.argument_name or "").partition("/")[0]  # of several names the first
        raise UsageError(f"{name}: {error.message.replace('argument -', '-')}.") from None
    return vars(found), plain


def _read_words(parameters: Sequence[Parameter], words: Sequence[str]) -> Json:
    """The values that words give. Options and words mix freely, and behind `--` there are only words."""
    before, after = list(words), []
    if "--" in before:
        at = before.index("--")
        before, after = before[:at], before[at + 1 :]
    typed, plain = _parse_options(parameters, before)
    for word in plain:
        if _is_option(word):
            raise _unknown_option(word.partition("=")[0], parameters)
    values: Json = {}
    for one in parameters:
        if one.name in typed:
            values[one.name] = _read_value(typed[one.name], one)
    if not typed.keys() & {"help", "version"}:
        _place_words([*plain, *after], parameters, values)
    return values


def _is_option(word: str) -> bool:
    """Return True for an option; a text with a blank, a single dash and a negative number are words."""
    return " " not in word and bool(re.match(r"-[^\d.]", word))


def _unknown_option(flag: str, parameters: Sequence[Parameter]) -> UsageError:
    known = [name[2:] for one in parameters if not is_positional(one) for name in name_flags(one)]
    known += [name_negative(one)[2:] for one in parameters]
    close = suggest(flag.lstrip("-"), filter(None, known)).replace("'", "'--", 1)
    return UsageError(f"Unknown option {flag}.", close if len(flag) > 2 else None)


def _read_value(typed: object, parameter: Parameter) -> object:
    """The value of an option as it was typed: a text, several, or a switch."""
    place = name_option(parameter)
    if isinstance(typed, list):
        if parameter.type == "object":
            return parse_object(typed, place)
        if parameter.arg.commas or parameter.arg.choices:
            typed = split_lists(typed)
        one = parameter._replace(many=False, arg=parameter.arg._replace(longest=None))
        return tuple(check_value(part, one, place) for part in typed)
    return check_value(
        parse_text(typed, parameter) if isinstance(typed, str) else typed, parameter, place
    )


def _place_words(words: list[str], parameters: Sequence[Parameter], values: Json) -> None:
    """Give each positional argument its words."""
    for one in filter(is_positional, parameters):
        if one.many or one.arg.words:
            if words:
                values[one.name], words = tuple(words), []
        elif words:
            place = one.name if one.arg.choices else one.metavar
            values[one.name] = check_value(parse_text(words.pop(0), one), one, place)
    if words:
        raise UsageError(f"Unrecognized arguments: {' '.join(words)}.")


def _check_required(parameters: Sequence[Parameter], values: Values) -> None:
    for one in parameters:
        if one.required and not one.arg.stdin and one.name not in values:
            raise UsageError(f"The following arguments are required: {name_option(one)}.")


def _check_encoding(values: Values) -> None:
    """Refuse bytes that are not UTF-8, which Python passes on as lone surrogates and nothing can store."""
    for name, value in values.items():
        text = " ".join(value) if isinstance(value, tuple) else str(value)
        if name not in ANY_BYTES and replace_broken(text) != text:
            raise InvalidInput(
                f"'{name}' is not valid UTF-8.", "Check the encoding of your terminal."
            )


def parse_object(parts: Sequence[str], place: str) -> Json:
    """A JSON object from `KEY=VALUE` pairs and JSON objects."""
    import json

    found: Json = {}
    for part in parts:
        key, equals, value = part.partition("=")
        try:
            if part.lstrip().startswith("{"):
                found |= json.loads(part, parse_constant=refuse_constant)
            elif equals and key.strip():
                found[key.strip()] = value
            else:
                raise ValueError("it has no key")
        except (ValueError, RecursionError) as error:
            raise InvalidInput(
                f"The {place.lstrip('-')} '{one_line(part, 60)}' cannot be read: {error}.",
                f"{place} ticket=42, or a JSON object",
            ) from None
    return found


def read_text(words: Sequence[str] | None, file: str | None, example: str) -> str:
    """The text of an argument, of a file, or with `-` or nothing of stdin."""
    if words and file:
        raise UsageError("Give the text or --file, not both.", example)
    if file:
        from pathlib import Path

        with Path(file).expanduser().open("rb") as stream:
            return decode_text(stream.read(_LONGEST + 1), file)
    if words and tuple(words) != ("-",):
        return " ".join(words)
    if sys.stdin is None or (not words and sys.stdin.isatty()):
        raise UsageError("Missing text.", f"{example}, or pipe a text in.")
    return decode_text(sys.stdin.buffer.read(_LONGEST + 1), "stdin")


def decode_text(raw: bytes, name: str) -> str:
    """Decode UTF-8, or say why that is not possible."""
    if len(raw) > _LONGEST:
        raise InvalidInput(
            f"{name} is larger than {size(_LONGEST)}.",
            "Split it: a memory is a statement or a passage.",
        )
    try:
        if b"\x00" in raw:
            raise ValueError(f"byte {raw.index(0)} is NUL")
        return raw.decode("utf-8-sig")
    except ValueError as error:
        raise InvalidInput(
            f"{name} is not UTF-8 text: {error}.", "`iconv -t UTF-8` converts other encodings."
        ) from None


# Help


def render_help(operation: Operation) -> str:
    parameters = list_parameters(operation)
    placed = [one for one in parameters if is_positional(one)]
    usage = " ".join([f"usage: bethink {operation.name} [options]", *map(_placeholder, placed)])
    groups = {"arguments": placed} if placed else {}
    for one in parameters:
        if not is_positional(one):
            heading = one.arg.group or one.arg.action or "options"
            groups.setdefault(heading, []).append(one)
    lines = [usage, "", operation.description]
    for title, members in groups.items():
        lines += ["", f"{title}:", *(line for one in members for line in _help_lines(one))]
    lines += ["", "examples:", *(f"  {line}" for line in operation.examples)]
    return "\n".join(map(fold, lines)) + "\n"


def _placeholder(parameter: Parameter) -> str:
    name = "|".join(parameter.arg.choices) or parameter.metavar
    shown = f"{name} …" if parameter.many or parameter.arg.words else name
    return shown if parameter.required and not parameter.arg.stdin else f"[{shown}]"


def _help_lines(parameter: Parameter) -> list[str]:
    if is_positional(parameter):
        head = f"  {_placeholder(parameter)}"
    else:
        flags = [*name_flags(parameter), *filter(None, [name_negative(parameter)])]
        value = "" if parameter.type == "switch" else f" {parameter.metavar}"
        head = f"  {', '.join(flags)}{value}"
    help = describe(parameter)
    if len(head) < COLUMN - 1 or not help:
        return [f"{head:<{COLUMN}}{help}".rstrip()]
    return [head, " " * COLUMN + help]


def describe(parameter: Parameter) -> str:
    """The help of an argument, with its choices, whether it may be repeated and its default."""
    notes, about = [], parameter.arg.help
    choices = [one for one in parameter.arg.choices if one not in about]
    if choices:
        about = f"{about}: {', '.join(choices)}" if about else ", ".join(choices)
    if parameter.many and not is_positional(parameter):
        notes.append(
            "repeat it or use commas"
            if parameter.arg.commas or parameter.arg.choices
            else "may be repeated"
        )
    if parameter.default and parameter.default is not True:
        notes.append(f"default: {parameter.default}")
    return f"{about} ({'; '.join(notes)})" if notes else about


def complete(operation: Operation, last: str) -> dict[str, str]:
    """The options and values that may follow the word `last` of a command's line, each with its help."""
    from bethink.model import KINDS

    found: dict[str, str] = {}
    parameters = list_parameters(operation)
    valued = [one for one in parameters if one.type != "switch" and last in name_flags(one)]
    for one in valued or parameters:
        words: Strings = one.arg.choices or (KINDS if one.metavar == "KIND" else ())
        if not valued and not is_positional(one):
            words = (*name_flags(one), *filter(None, [name_negative(one)]))
        found |= dict.fromkeys(words, one.arg.help)
    return found
