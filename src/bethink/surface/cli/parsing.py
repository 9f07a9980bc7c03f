"""Arguments: what a command takes, read from what was typed, and its help. Both come from the lines that a command gives its
decorator (`surface/arguments.py`) and from those of `SHARED`."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace as Namespace
from typing import Any, NamedTuple

from bethink.errors import InvalidInput, UsageError
from bethink.surface.arguments import (
    NUMBERS,
    SWITCH,
    Argument,
    check_value,
    describe_type,
    fill_defaults,
    parse_arguments,
    parse_value,
)
from bethink.surface.cli import COMMANDS, console
from bethink.surface.layout import hang, wrap
from bethink.text.checks import replace_broken, suggest

PATHS = ("database", "project", "file", "output", "directory")  # their bytes need not be UTF-8
COLUMN = 24  # where the help of an argument begins
# What other tools call it; by its letters another command would be nearest.
MEANT = {
    "purge": "forget --purge",
    "delete": "forget",
    "remove": "forget",
    "rm": "forget",
    "remember": "add",
    "store": "add",
    "find": "search",
    "ask": "recall",
    "show": "get",
    "undo": "restore",
    "setup": "init",
    "settings": "config",
}

_NEGATIVE = re.compile(r"-\d+(\.\d*)?|-\.\d+")


HELP = "--help, -h     show this help and exit"
SHARED = """
options of every command:
--database PATH      the database to use
--project DIR        act as if started in that directory
--container NAME     a named container inside the project
--format FORMAT {choices}     how to show the result: {formats}
--json               the same as --format json
--for-agent          quote stored text with its origin, and count as an agent; agents get it by themselves
--quiet              no hints, warnings or progress
--version, -V        print the version
"""


class Command(NamedTuple):
    """A command: what it does (its docstring is its help), what it accepts, how its output can be shown, and whether it needs
    the memory: to "read" one that is there, or to "make" one if need be."""

    name: str
    run: Callable[..., Any]
    takes: str
    formats: tuple[str, ...] = ("text", "json")
    opens: str = ""

    @property
    def arguments(self) -> tuple[Argument, ...]:
        formats = {"choices": "|".join(self.formats), "formats": ", ".join(self.formats)}
        return parse_arguments(f"{HELP}\n{self.takes}\n{SHARED.format(**formats)}")


REGISTERED: dict[str, Command] = {}


def command(
    name: str, takes: str = "", opens: str = "", formats: tuple[str, ...] = ("text", "json")
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a function the body of a command."""

    def register(run: Callable[..., Any]) -> Callable[..., Any]:
        REGISTERED[name] = Command(name, run, takes, formats, opens)
        return run

    return register


def load(name: str) -> Command:
    if name not in COMMANDS:
        meant = f"Did you mean '{MEANT[name]}'?" if name in MEANT else suggest(name, COMMANDS)
        raise UsageError(
            f"'{name}' is not a command.", meant or "`bethink --help` lists the commands."
        )
    importlib.import_module(f"bethink.surface.cli.{COMMANDS[name][0]}")
    return REGISTERED[name]


def missing_command(word: str) -> UsageError:
    return UsageError(f"{word!r} needs a command.", "`bethink --help` lists the commands.")


# What was typed


def parse(command: Command, words: Sequence[str]) -> Namespace:
    """The arguments of a command. Options and words mix freely, and what looks like a negative number is no option."""
    arguments = command.arguments
    given, plain = _read_options(command.name, arguments, words)
    _check_rivals(command.name, [one for one in arguments if one.alone and one.name in given])
    if not given.keys() & {"help", "version"}:
        given |= _read_words(command.name, arguments, plain)
    args = Namespace(**fill_defaults(given, arguments))
    args.explicit_format = bool(args.format or args.json)
    args.format = args.format or ("json" if args.json else "text")
    args.for_agent = args.for_agent or console.is_read_by_agent()
    for name, value in vars(args).items():
        if name not in PATHS:
            setattr(args, name, readable(name, value))
    return args


def _read_options(
    name: str, arguments: Sequence[Argument], words: Sequence[str]
) -> tuple[dict[str, Any], list[str]]:
    """The options, and the words that belong to none."""
    known = {flag: one for one in arguments if one.is_option for flag in one.names}
    given: dict[str, Any] = {}
    plain: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--":
            return given, plain + left
        flag, equals, value = word.partition("=")
        if not word.startswith("--") and word[:2] in known and len(flag) > 2:
            flag, equals, value = word[:2], "=", word[2:]
        if word in ("", "-") or not word.startswith("-") or _is_text(flag, known):
            plain.append(word)
            continue
        if flag not in known:
            raise _unknown_option(name, flag, known)
        argument = known[flag]
        if argument.type != SWITCH and not equals:
            value = _take_value(name, flag, argument, left, known)
        _keep_option(name, given, argument, value)
    return given, plain


def _unknown_option(name: str, flag: str, known: Iterable[str]) -> UsageError:
    long = [one for one in known if one.startswith("--")]
    close = suggest("--" + flag.lstrip("-"), long) if len(flag) > 2 else ""
    more = f"`bethink {name} --help` lists them; write -- before words that start with a dash."
    return UsageError(f"There is no option {flag} here.", close or more)


def _take_value(
    name: str, flag: str, argument: Argument, left: list[str], known: Mapping[str, Argument]
) -> str:
    """The word behind an option, which is its value."""
    if left and left[0] not in known and left[0] != "--":
        return left.pop(0)
    if argument.many != "?":
        raise _misuse(name, f"{flag}: expected one argument.")
    return ""


def _is_text(flag: str, known: Mapping[str, Argument]) -> bool:
    """Whether a word is meant as text although it begins with a dash."""
    return bool(_NEGATIVE.fullmatch(flag)) or (" " in flag and flag not in known)


def _keep_option(name: str, given: dict[str, Any], argument: Argument, value: str) -> None:
    if argument.type == SWITCH:
        given[argument.name] = True
    elif argument.many == "*":
        given.setdefault(argument.name, []).append(value)
    elif value or argument.many != "?":
        given[argument.name] = _read_value(name, argument, value)
    else:
        given[argument.name] = ""


def _check_rivals(name: str, given: Sequence[Argument]) -> None:
    """Refuses two of a set of which one may be given."""
    first: dict[str, str] = {}
    for one in given:
        if one.group in first:
            raise _misuse(name, f"{one.names[0]}: not allowed with {first[one.group]}.")
        first[one.group] = one.names[0]


def _read_words(name: str, arguments: Sequence[Argument], plain: list[str]) -> dict[str, Any]:
    """The arguments that are given by their place."""
    given: dict[str, Any] = {}
    for argument in arguments:
        if argument.is_option:
            continue
        if argument.many in ("+", "*"):
            given[argument.name], plain = plain, []
        elif plain:
            given[argument.name] = _read_value(name, argument, plain.pop(0))
        if argument.is_required and not given.get(argument.name):
            raise _misuse(name, f"The following arguments are required: {argument.value}.")
    if plain:
        raise _misuse(name, f"Unrecognized arguments: {' '.join(plain)}.")
    return given


def _read_value(name: str, argument: Argument, text: str) -> Any:
    try:
        return check_value(parse_value(text, argument), argument, argument.names[0])
    except InvalidInput as error:
        if argument.type not in NUMBERS:
            raise UsageError(error.message, error.hint) from None
        wrong = f"{argument.names[0]}: {text!r} is not {describe_type(argument)}."
        raise _misuse(name, wrong) from None


def _misuse(name: str, message: str) -> UsageError:
    return UsageError(message, f"`bethink {name} --help` shows what it takes.")


def readable(name: str, value: object) -> object:
    """The value, unless it holds bytes that are no UTF-8. Python smuggles those in as lone surrogates, which nothing can store."""
    if isinstance(value, list):
        return [readable(name, part) for part in value]
    if not isinstance(value, str) or value.isascii():
        return value
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        if name in ("query", "question"):
            return replace_broken(value)  # a search takes any input
        at = len(value[: error.start].encode("utf-8"))
        raise InvalidInput(
            f"The {name} is not valid UTF-8: byte {at} cannot be read.",
            "Check the encoding of your terminal.",
        ) from None
    return value


# Help


def render_help(command: Command) -> str:
    about, _, examples = (command.run.__doc__ or "").partition("Examples:\n")
    arguments = command.arguments
    placed = [one for one in arguments if not one.is_option]
    usage = " ".join([f"usage: bethink {command.name} [options]", *map(_placeholder, placed)])
    lines = [*wrap(usage, ""), "", *wrap(" ".join(about.split()), "")]
    groups = {"arguments": placed}
    for one in arguments:
        if one.is_option:
            groups.setdefault(one.group or "options", []).append(one)
    for title, members in groups.items():
        if members:
            lines += ["", f"{title}:", *(line for one in members for line in _help_lines(one))]
    lines += ["", "examples:", *(f"  {line.strip()}" for line in examples.strip().splitlines())]
    return "\n".join(lines) + "\n"


def _placeholder(argument: Argument) -> str:
    name = "|".join(argument.choices) or argument.value
    return {"+": f"{name} …", "*": f"[{name} …]", "?": f"[{name}]"}.get(argument.many, name)


def _help_lines(argument: Argument) -> list[str]:
    value = f"[{argument.value}]" if argument.many == "?" else argument.value
    head = ", ".join(argument.names) + (f" {value}" if value else "")
    if not argument.is_option:
        head = "{" + ",".join(argument.choices) + "}" if argument.choices else argument.value
    first = f"  {head}  "
    return [line.rstrip() for line in hang(argument.help, first, " " * COLUMN) if line.strip()]
