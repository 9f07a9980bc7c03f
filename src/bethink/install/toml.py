"""TOML, edited in place: a table is put at the end of a document and taken out again, and every other byte stays.

The standard library can read TOML and not write it, so the text is cut into its statements here, just far enough to know where
each begins and ends. That what comes out means what it should is for the caller to check, with `tomllib`. This module knows no
host and no file.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from bethink.errors import InvalidInput

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_KEY = re.compile(r"""[ \t]*(?:([A-Za-z0-9_-]+)|"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)')[ \t]*""")
_LITERAL = re.compile(r"'''.*?'''|'[^'\n]*'", re.DOTALL)
_BASIC = re.compile(r'"""(?:[^\\"]|\\.|"(?!""))*"{3,5}|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
_BOM = "\ufeff"


class Statement(NamedTuple):
    table: tuple[str, ...]  # the table in force; for a header its own name
    key: tuple[str, ...]  # empty for a header
    start: int  # of its line
    end: int  # behind its line end


def parse(text: str) -> dict[str, Any]:
    """What a document says. Raises InvalidInput where it is no TOML."""
    try:
        return tomllib.loads(text.removeprefix(_BOM).replace("\r\n", "\n"))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"It is no TOML: {error}.", "Mend it, then try again.") from None


def statements(text: str) -> Iterator[Statement]:
    """The headers and key-value pairs of a document that `parse` accepts; comments and empty lines belong to none."""
    at = 1 if text.startswith(_BOM) else 0
    table: tuple[str, ...] = ()
    while at < len(text):
        start = at
        while text[at : at + 1] in (" ", "\t"):
            at += 1
        mark = text[at : at + 1]
        if mark in ("\n", "\r", "#", ""):
            at = _line_end(text, at)
        elif mark == "[":
            table, _ = _name(text, at + (2 if text.startswith("[[", at) else 1))
            at = _line_end(text, at)
            yield Statement(table, (), start, at)
        else:
            key, at = _name(text, at)
            at = _line_end(text, _value_end(text, at + 1))
            yield Statement(table, key, start, at)


def _line_end(text: str, at: int) -> int:
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


def _name(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """A dotted name, and the place behind it."""
    parts: list[str] = []
    while found := _KEY.match(text, at):
        bare, basic, literal = found.groups()
        parts.append(
            bare
            if bare is not None
            else literal
            if literal is not None
            else tomllib.loads(f'k = "{basic}"')["k"]
        )
        at = found.end()
        if text[at : at + 1] != ".":
            break
        at += 1
    return tuple(parts), at


def _value_end(text: str, at: int) -> int:
    """Behind the value that begins here: where its line ends, outside of strings and brackets."""
    depth = 0
    while at < len(text):
        mark = text[at]
        if mark in "\"'":
            found = (_LITERAL if mark == "'" else _BASIC).match(text, at)
            at = found.end() if found else at + 1
            continue
        if mark == "#":
            at = text.find("\n", at)
            if at < 0:
                return len(text)
            continue
        if mark == "\n" and depth == 0:
            return at
        depth += (mark in "[{") - (mark in "]}")
        at += 1
    return at


# Writing


def table(path: tuple[str, ...], values: Mapping[str, Any], end: str) -> str:
    """A table with its header, as text."""
    header = ".".join(part if _BARE.fullmatch(part) else _quoted(part) for part in path)
    return (
        end.join([f"[{header}]", *(f"{key} = {_value(value)}" for key, value in values.items())])
        + end
    )


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, Mapping):
        return (
            "{ " + ", ".join(f"{_quoted(key)} = {_value(one)}" for key, one in value.items()) + " }"
        )
    return "[" + ", ".join(_value(one) for one in value) + "]"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def append(text: str, path: tuple[str, ...], values: Mapping[str, Any]) -> str:
    """The document with one more table at its end."""
    return text + gap(text) + table(path, values, _end(text))


def gap(text: str) -> str:
    """What stands between a document and a table behind it: an empty line."""
    body = text.removeprefix(_BOM)
    return "" if not body else _end(text) if body.endswith("\n") else _end(text) * 2


def _end(text: str) -> str:
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"


def remove(text: str, path: tuple[str, ...], lead: str = "") -> str:
    """The document without a table and the tables inside it. `lead` is the gap that `append` had put before it."""
    spans = [(one.start, one.end) for one in statements(text) if one.table[: len(path)] == path]
    for start, end in reversed(spans):
        text = text[:start] + text[end:]
    if not spans or not lead:
        return text
    before, after = text[: spans[0][0]], text[spans[0][0] :]
    line_end = "\r\n" if lead.startswith("\r") else "\n"
    if lead != line_end and not after.strip():  # the last line had no end
        return before.removesuffix(lead) + after
    blank = before.endswith(line_end * 2) or before.removeprefix(_BOM) == line_end
    return (before.removesuffix(line_end) if blank else before) + after


def change(text: str, path: tuple[str, ...], values: Mapping[str, Any]) -> str:
    """The document with other values in a table that `append` made, in the same place. What else the table holds stays."""
    end = _end(text)
    there = {one.key: one for one in statements(text) if one.table == path}
    missing = [key for key in values if (key,) not in there]
    header = there.get(())
    if header is None:
        return append(text, path, values)
    last = max(one.end for one in there.values())
    if missing:
        lead = "" if text[:last].endswith("\n") else end
        text = (
            text[:last]
            + lead
            + "".join(f"{key} = {_value(values[key])}{end}" for key in missing)
            + text[last:]
        )
    for one in sorted(there.values(), key=lambda one: -one.start):
        if len(one.key) == 1 and one.key[0] in values:
            text = (
                text[: one.start]
                + f"{one.key[0]} = {_value(values[one.key[0]])}{end}"
                + text[one.end :]
            )
    return text
