"""The language in which commands and MCP tools say what they take: one line per argument, from which come the command line's
parser, the JSON schema of a tool, and the reference.

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
`text` with or without a longest length, choices, or left out for text. A line that ends with a colon begins a group; of the
lines that begin with a bar, one may be given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

SWITCH = "switch"  # the type of an option that takes no value

_TYPE = re.compile(r"(whole|number|text|object|objects)\b ?(?:(-?\d+)?\.\.(-?\d+)?)?")


class Argument(NamedTuple):
    names: tuple[str, ...]  # of an option with its dashes; else the one name
    value: str  # what the value is called
    type: str  # text, whole, number, object, objects, choice or switch
    many: str  # how many values: one (""), perhaps one ("?"), any number ("*"), one or more ("+")
    default: str | None
    low: int | None
    high: int | None
    choices: tuple[str, ...]
    help: str
    group: str
    alone: bool  # one of a set of which only one may be given

    @property
    def name(self) -> str:
        """What the value is stored as."""
        return self.names[0].lstrip("-").replace("-", "_").lower()

    @property
    def is_option(self) -> bool:
        return self.names[0].startswith("-")

    @property
    def is_required(self) -> bool:
        return not self.is_option and self.many not in ("?", "*")


def parse_arguments(text: str) -> Iterator[Argument]:
    group = ""
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.endswith(":") and "  " not in line:
            group = line[:-1]
            continue
        head, _, about = line.partition("  ")
        yield _parse_argument(head.removeprefix("| "), about.strip(), group, head.startswith("| "))


def _parse_argument(head: str, about: str, group: str, alone: bool) -> Argument:
    head, _, default = head.partition(" = ")
    words = head.split()
    names = [words.pop(0).rstrip(",")]
    while words and words[0].startswith("-"):
        names.append(words.pop(0).rstrip(","))
    is_option = names[0].startswith("-")
    value = words.pop(0) if is_option and words else "" if is_option else names[0]
    many = value[-1:] if value.endswith(("+", "*")) else "?" if value.startswith("[") else ""
    value = value.strip("[]+*")
    form = " ".join(words)
    found = _TYPE.fullmatch(form)
    kind = "choice" if form and not found else found[1] if found else "text"
    low, high = (
        (int(bound) if bound else None for bound in found.groups()[1:]) if found else (None, None)
    )
    if not is_option:
        names, many = [value], many or ("?" if default else "")
    return Argument(
        tuple(names),
        value,
        kind if value else SWITCH,
        many,
        default or None,
        low,
        high,
        tuple(form.split("|")) if kind == "choice" else (),
        about,
        group,
        alone,
    )
