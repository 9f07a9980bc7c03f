"""Arguments: one parser per command, the options that all share, and the types that several use."""

from __future__ import annotations

import argparse
import importlib
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn

from bethink.errors import InvalidInput, UsageError
from bethink.ingest.redact import redact
from bethink.surface.arguments import SWITCH, Argument, parse_arguments
from bethink.surface.cli import COMMANDS, console, version
from bethink.surface.layout import width

PATHS = ("database", "project", "file", "output", "directory")  # their bytes need not be UTF-8
MOST = 1_000_000_000
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
    "edit": "update",
    "undo": "restore",
    "setup": "init",
    "settings": "config",
}

_NEGATIVE = re.compile(r"-\d+(\.\d*)?|-\.\d+")


SHARED = """
options of every command:
--database PATH      the database to use
--project DIR        act as if started in that directory
--container NAME     a named container inside the project
--format FORMAT      how to show the result: {formats}
--json               the same as --format json
--for-agent          quote stored text with its origin, and count as an agent; agents get it by themselves
--quiet              no hints, warnings or progress
"""


class Command(NamedTuple):
    """A command: what it does (its docstring is its help), what it accepts, how its output can be shown, and whether it needs
    the memory: to "read" one that is there, or to "make" one if need be."""

    run: Callable[..., Any]
    arguments: str
    formats: tuple[str, ...] = ("text", "json")
    opens: str = ""


REGISTERED: dict[str, Command] = {}


def command(
    name: str, arguments: str = "", opens: str = "", formats: tuple[str, ...] = ("text", "json")
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a function the body of a command."""

    def register(run: Callable[..., Any]) -> Callable[..., Any]:
        REGISTERED[name] = Command(run, arguments, formats, opens)
        return run

    return register


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(
            f"{message[:1].upper()}{message[1:]}.", f"`{self.prog} --help` shows what it takes."
        )


def load(name: str) -> Command:
    if name not in COMMANDS:
        meant = f"Did you mean '{MEANT[name]}'?" if name in MEANT else nearest(name, list(COMMANDS))
        raise UsageError(
            f"'{name}' is not a command.", meant or "`bethink --help` lists the commands."
        )
    importlib.import_module(f"bethink.surface.cli.{COMMANDS[name][0]}")
    return REGISTERED[name]


def build(name: str) -> tuple[Command, Parser]:
    found = load(name)
    about, _, examples = (found.run.__doc__ or "").partition("Examples:\n")
    parser = Parser(
        prog=f"bethink {name}",
        description="\n".join(line.strip() for line in about.strip().splitlines()),
        epilog="examples:\n"
        + "\n".join(f"  {line.strip()}" for line in examples.strip().splitlines()),
        # With a width of its own it does not import `shutil`, which costs as much as a search.
        formatter_class=partial(argparse.RawDescriptionHelpFormatter, width=width() - 2),
        allow_abbrev=False,
    )
    add_arguments(parser, found.arguments)
    parser.usage = parser.usage or " ".join(
        [parser.prog, "[options]", *map(_placeholder, parser._get_positional_actions())]
    )
    add_arguments(parser, SHARED.format(formats=", ".join(found.formats)))
    parser._option_string_actions["--format"].choices = found.formats
    shared = parser._action_groups[-1]
    shared.add_argument("--version", action="version", version=version().strip())
    return found, parser


def add_arguments(parser: argparse.ArgumentParser, text: str) -> None:
    """Gives a parser the arguments that a text describes (`surface/arguments.py`). What it has already it keeps."""
    groups: dict[str, Any] = {"": parser}
    sets: dict[str, Any] = {}
    for argument in parse_arguments(text):
        if argument.names[0] in parser._option_string_actions:
            continue  # `install` has a --project that may stand alone
        group = groups.get(argument.group) or groups.setdefault(
            argument.group, parser.add_argument_group(argument.group)
        )
        if argument.alone:
            group = sets.get(argument.group) or sets.setdefault(
                argument.group, group.add_mutually_exclusive_group()
            )
        names = argument.names if argument.is_option else (argument.name,)
        group.add_argument(*names, **_settings(argument))


def _settings(argument: Argument) -> dict[str, Any]:
    """An argument as argparse wants it."""
    settings: dict[str, Any] = {"help": argument.help or None}
    if argument.type == SWITCH:
        return {**settings, "action": "store_true"}
    settings["metavar"] = argument.value if argument.is_option or not argument.choices else None
    if argument.is_option and argument.many == "*":
        settings |= {"action": "append", "default": []}
    elif argument.many:
        settings["nargs"] = argument.many
        settings |= {"const": ""} if argument.is_option else {}
    if argument.choices:
        settings["choices"] = argument.choices
    if argument.type in ("whole", "number"):
        settings["type"] = partial(as_number, argument=argument)
    if argument.default:
        settings["default"] = argument.default
    return settings


def as_number(text: str, argument: Argument) -> float:
    """A value of an argument that is a number. The message follows "argument --limit: "."""
    whole = argument.type == "whole"
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        value = float("nan")
    low, high = argument.low, argument.high
    if (
        value - value != 0  # no number, or an endless one
        or (low is not None and value < low)
        or value > (MOST if high is None else high)
    ):
        kind = "a whole number" if whole else "a number"
        start = "" if low is None else f" from {low:g}"
        raise argparse.ArgumentTypeError(
            f"{text!r} is not {kind}{start}{'' if high is None else f' to {high:g}'}"
        )
    return value


def _placeholder(action: argparse.Action) -> str:
    """A positional argument in the usage line. argparse's own line would list every option too."""
    name = str(action.metavar or "|".join(action.choices or ()))
    return {"+": f"{name} …", "*": f"[{name} …]", "?": f"[{name}]"}.get(str(action.nargs), name)


def parse(parser: Parser, words: Sequence[str]) -> argparse.Namespace:
    args = parser.parse_args(arrange(parser, words))
    args.explicit_format = bool(args.format or args.json)
    args.format = args.format or ("json" if args.json else "text")
    args.for_agent = args.for_agent or console.is_read_by_agent()
    for name, value in vars(args).items():
        if name not in PATHS:
            setattr(args, name, readable(name, value))
    if args.container:
        check_name("container", args.container)
    return args


def arrange(parser: argparse.ArgumentParser, words: Sequence[str]) -> list[str]:
    """Options first, then `--`, then the rest: so words and options mix freely, and `vote ID -1` is no option.

    argparse's own mixing loses `--` in some versions of Python."""
    options: list[str] = []
    plain: list[str] = []
    known = parser._option_string_actions
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            plain += words[at:]
            break
        name = word.partition("=")[0]
        if (
            word == "-"
            or not word.startswith("-")
            or _NEGATIVE.fullmatch(word)
            or (" " in name and name not in known)
        ):
            plain.append(word)
            continue
        if name not in known and not (not word.startswith("--") and word[:2] in known):
            close = (
                nearest(name, [option for option in known if option.startswith("--")])
                if name.startswith("--")
                else None
            )
            raise UsageError(
                f"There is no option {name} here.",
                close
                or f"`{parser.prog} --help` lists them; write -- before words that start with a dash.",
            )
        action = known.get(word)
        takes_value = action is not None and action.nargs in (None, "?")
        if takes_value and at < len(words) and words[at] not in known and words[at] != "--":
            options += [f"{word}={words[at]}"] if word.startswith("--") else [word, words[at]]
            at += 1
        else:
            options.append(word)
    return [*options, "--", *plain] if plain else options


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
            return value.encode("utf-8", "replace").decode("utf-8")  # a search takes any input
        at = len(value[: error.start].encode("utf-8"))
        raise InvalidInput(
            f"The {name} is not valid UTF-8: byte {at} cannot be read.",
            "Check the encoding of your terminal.",
        ) from None
    return value


def check_name(what: str, name: str) -> None:
    """Names are stored as they are, so one that holds a secret is refused: without it two names could become one."""
    if redact(name).text != name:
        raise InvalidInput(
            f"The name of the {what} holds what looks like a secret, and names are stored.",
            "Take another name.",
        )


def nearest(word: str, known: Sequence[str]) -> str | None:
    import difflib

    close = difflib.get_close_matches(word.lower(), known, n=1)
    return f"Did you mean '{close[0]}'?" if close else None
