"""Arguments: one parser per command, the options that all share, and the types that several use."""

from __future__ import annotations

import argparse
import importlib
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn

from bethink.errors import InvalidInput, UsageError
from bethink.surface.cli import output
from bethink.surface.cli.main import COMMANDS, version

FORMATS = ("text", "json", "csv", "md", "xml")
PATHS = (
    "database",
    "project",
    "file",
    "output",
    "directory",
)  # arguments whose bytes need not be UTF-8
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


class Command(NamedTuple):
    """A command: what it does (its docstring is its help), what it accepts, how its output can be shown."""

    run: Callable[[argparse.Namespace], int | None]
    options: Callable[[argparse.ArgumentParser], None]
    formats: tuple[str, ...] = ("text", "json")


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
    commands: dict[str, Command] = importlib.import_module(
        f"bethink.surface.cli.{COMMANDS[name][0]}"
    ).COMMANDS
    return commands[name]


def build(name: str) -> tuple[Command, Parser]:
    command = load(name)
    about, _, examples = (command.run.__doc__ or "").partition("Examples:\n")
    parser = Parser(
        prog=f"bethink {name}",
        description="\n".join(line.strip() for line in about.strip().splitlines()),
        epilog="examples:\n"
        + "\n".join(f"  {line.strip()}" for line in examples.strip().splitlines()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.options(parser)
    parser.usage = parser.usage or " ".join(
        [parser.prog, "[options]", *map(_placeholder, parser._get_positional_actions())]
    )
    shared = parser.add_argument_group("options of every command")
    shared.add_argument("--database", metavar="PATH", help="the database to use")
    if "--project" not in parser._option_string_actions:  # `install` has one that may stand alone
        shared.add_argument("--project", metavar="DIR", help="act as if started in that directory")
    shared.add_argument("--container", metavar="NAME", help="a named container inside the project")
    shared.add_argument(
        "--format",
        choices=command.formats,
        metavar="FORMAT",
        help=f"how to show the result: {', '.join(command.formats)}",
    )
    shared.add_argument("--json", action="store_true", help="the same as --format json")
    shared.add_argument(
        "--for-agent",
        action="store_true",
        help="stored text as quoted data with its origin, as agents should read it; agents get it by themselves",
    )
    shared.add_argument("--quiet", action="store_true", help="no hints, warnings or progress")
    shared.add_argument("--version", action="version", version=version().strip())
    return command, parser


def _placeholder(action: argparse.Action) -> str:
    """A positional argument in the usage line. argparse's own line would list every option too."""
    name = str(action.metavar or "|".join(action.choices or ()))
    return {"+": f"{name} …", "*": f"[{name} …]", "?": f"[{name}]"}.get(str(action.nargs), name)


def parse(parser: Parser, words: Sequence[str]) -> argparse.Namespace:
    args = parser.parse_args(arrange(parser, words))
    args.explicit_format = bool(args.format or args.json)
    args.format = args.format or ("json" if args.json else "text")
    args.for_agent = args.for_agent or output.is_read_by_agent()
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
    from bethink.ingest.redact import redact

    if redact(name).text != name:
        raise InvalidInput(
            f"The name of the {what} holds what looks like a secret, and names are stored.",
            "Take another name.",
        )


def nearest(word: str, known: Sequence[str]) -> str | None:
    import difflib

    close = difflib.get_close_matches(word.lower(), known, n=1)
    return f"Did you mean '{close[0]}'?" if close else None


# Types of values, for `type=`. Their messages follow "argument --limit: ".


def count(text: str) -> int:
    return _whole(text, 1)


def offset(text: str) -> int:
    return _whole(text, 0)


def _whole(text: str, low: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = -1
    if not low <= number <= MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low}")
    return number


def number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if value != value or value in (float("inf"), float("-inf")):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return value


def pieces(values: Sequence[str] | None) -> tuple[str, ...]:
    """The values of an option that may be repeated and may hold comma lists."""
    return tuple(
        dict.fromkeys(
            part.strip() for value in values or () for part in value.split(",") if part.strip()
        )
    )
