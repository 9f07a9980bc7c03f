"""Values as text: what a terminal may be shown, dates and sizes as people read them, columns, and the data formats
JSON, JSON lines, CSV, Markdown and XML.

Text for people never carries control characters of what was stored, so that a memory cannot move the cursor or hide its
words. Nothing here knows a memory, a store or a stream, but for the width and the encoding of stdout.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

FORMATS = ("text", "json", "csv", "md", "xml")

# What a terminal might obey, the marks that reorder text, halves of characters. Tab and line feed stay.
_HOSTILE = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
_NOT_XML = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
_XML_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;", "\r": "&#13;"}
)
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32"}

SHOWN = 5  # of a list in a few words

Record = Mapping[str, Any]


# Text for people


def plain(text: str) -> str:
    """The text with a visible mark in place of everything that a terminal might obey."""
    if text.isprintable():
        return text
    return re.sub(_HOSTILE, "�", text.replace("\r\n", "\n"))


def one_line(text: str, width: int = 0) -> str:
    """The text on one line, cut at a word to `width` characters."""
    line = plain(" ".join(text.split()))
    if width and len(line) > width:
        cut = line[: width - 1]
        return (cut[: cut.rfind(" ")] if " " in cut[width // 2 :] else cut).rstrip(" ,.;:") + "…"
    return line


def width() -> int:
    """Columns to write in; a terminal that does not know says 0. Not `shutil`'s, which takes longer to import than a search takes to run."""
    try:
        found = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
    except (OSError, ValueError):
        found = 0
    return min(max(found or 100, 40), 120)


def indent(text: str, margin: str) -> list[str]:
    """The lines of a text, each behind a margin."""
    return [f"{margin}{line}".rstrip() for line in plain(text).split("\n")]


def fold(line: str) -> str:
    """A line as a terminal shows it: where it is too long it goes on below, under the last of its columns that begins in its first
    half. Columns stand two blanks apart. A word is never broken, so that a path can be copied. For another program a line
    stays a line."""
    room, bare = width(), unstyle(line)
    if len(bare) <= room or not (os.environ.get("COLUMNS") or sys.stdout.isatty()):
        return line
    begins = [found.end() for found in re.finditer(r"^ +|  +", bare[: room // 2])]
    margin = " " * (begins[-1] if begins else 0)
    text = line.lstrip(" ")
    rows = [line[: len(line) - len(text)]]
    for word in text.split(" "):
        is_begun = bool(rows[-1].strip())
        longer = rows[-1] + " " * is_begun + word
        if is_begun and len(unstyle(longer)) > room:
            rows.append(margin + word)
        else:
            rows[-1] = longer
    return "\n".join(row.rstrip() for row in rows)


def has_colour() -> bool:
    """Whether to colour: NO_COLOR says no, FORCE_COLOR says yes also where no terminal is seen, as in a CI log."""
    environment = os.environ.get
    if environment("NO_COLOR") or environment("FORCE_COLOR") == "0":
        return False
    seen = environment("TERM") != "dumb" and sys.stdout.isatty()
    return bool(environment("FORCE_COLOR")) or seen


def style(text: str, name: str) -> str:
    return f"\x1b[{_STYLES[name]}m{text}\x1b[0m" if has_colour() else text


def unstyle(text: str) -> str:
    """The text without our own styles, for a stream that shows what it does not know as marks."""
    return re.sub(r"\x1b\[\d+m", "", text)


def date(moment: datetime | None) -> str:
    return moment.astimezone().strftime("%Y-%m-%d") if moment else ""


def date_and_time(moment: datetime | None) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M") if moment else ""


def size(count: float) -> str:
    """A number of bytes."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"


def many(count: int, noun: str) -> str:
    """A number with its noun: `1 memory`, `2,000 memories`, `3 matches`."""
    if count != 1:
        noun = re.sub("(ch)$", r"\1e", re.sub("y$", "ie", noun)) + "s"
    return f"{count:,} {noun}"


def columns(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Rows as aligned columns; those named in `right` are numbers."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(size) if at in right else cell.ljust(size)
            for at, (cell, size) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def describe_value(value: Any) -> list[str]:
    """A JSON value for reading: a record as a line for each field that holds something, a list of records as a table."""
    if not isinstance(value, Mapping):
        names = list(value[0]) if value else []
        return columns([names, *([brief(one[name]) for name in names] for one in value)])
    rows = [(name.replace("_", " "), brief(found)) for name, found in value.items()]
    return columns([row for row in rows if row[1]]) or ["nothing"]


def brief(value: Any) -> str:
    """A JSON value in a few words; nothing for what is empty."""
    if isinstance(value, Mapping):
        told = ((name, brief(one), isinstance(one, int)) for name, one in value.items())
        return ", ".join(
            f"{text} {name}" if counted else f"{name} {text}"
            for name, text, counted in told
            if text
        )
    if isinstance(value, list | tuple):
        more = f" and {len(value) - SHOWN:,} more" if value[SHOWN:] else ""
        return ", ".join(map(brief, value[:SHOWN])) + more
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if value else ""
    return one_line(cell(value)) if value else ""


# Data


def json_text(value: Any, indent: int | None = 2) -> str:
    import json

    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    return json.dumps(
        value, ensure_ascii=not encoding.startswith("utf"), indent=indent, default=str
    )


def pick(value: Any, names: str) -> dict[str, Any]:
    """Some fields of a value."""
    return {name: getattr(value, name) for name in names.split()}


def flatten_record(record: Record) -> Record:
    """A record with its line range as text, for formats in which everything is text."""
    lines = record.get("lines")
    return {**record, "lines": f"{lines[0]}-{lines[1]}" if lines else None}


def format_records(
    form: str,
    records: Iterable[Record],
    fields: Sequence[str],
    root: str = "memories",
    item: str = "memory",
    **about: str,
) -> Iterator[str]:
    """The records piece by piece, so that an export of any size needs no memory. `about` becomes attributes of the XML root."""
    if form == "json":
        yield from _json(records)
    elif form == "jsonl":
        yield from (json_text(record, None) + "\n" for record in records)
    elif form == "csv":
        yield from _csv(records, fields)
    elif form == "md":
        yield "| " + " | ".join(fields) + " |\n| " + " | ".join("---" for _ in fields) + " |\n"
        for record in records:
            cells = (" ".join(cell(record.get(field)).split()) for field in fields)
            yield "| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |\n"
    elif form == "xml":
        attributes = "".join(f' {name}="{_escape(value)}"' for name, value in about.items())
        yield f'<?xml version="1.0" encoding="UTF-8"?>\n<{root}{attributes}>\n'
        for record in records:
            inner = (_element(field, cell(record.get(field))) for field in fields)
            yield f"  <{item}>\n{''.join(inner)}  </{item}>\n"
        yield f"</{root}>\n"


def _json(records: Iterable[Record]) -> Iterator[str]:
    lead = "[\n"
    for record in records:
        yield lead + "  " + json_text(record).replace("\n", "\n  ")
        lead = ",\n"
    yield "[]\n" if lead == "[\n" else "\n]\n"


def _csv(records: Iterable[Record], fields: Sequence[str]) -> Iterator[str]:
    import csv
    import io

    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)  # RFC 4180: CRLF, quotes doubled, line breaks kept inside quotes
    writer.writerow(fields)
    for record in records:
        writer.writerow([cell(record.get(field)) for field in fields])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def _element(field: str, text: str) -> str:
    tag = re.sub(r"[^A-Za-z0-9_.-]", "_", field)  # `any@5` cannot name an element
    return f"    <{tag}>{_escape(text)}</{tag}>\n"


def _escape(text: str) -> str:
    return re.sub(_NOT_XML, "", text).translate(_XML_ESCAPES)


def cell(value: Any) -> str:
    """A value where only text fits."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) else json_text(value, None)
