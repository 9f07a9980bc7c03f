"""How results look: five formats for what is listed, JSON for everything. stdout is data; stderr is talk.

Nothing here knows a store. Text for people never carries control characters of what was stored, so that a memory cannot
move the cursor or hide its words; the data formats give it back as it is, but for a terminal.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from argparse import Namespace
    from datetime import datetime

# Ends of ranges: what a terminal might obey, the marks that reorder text, halves of characters. Tab and line feed stay.
_HOSTILE = (
    ("\x00", "\x08"),
    ("\x0b", "\x1f"),
    ("\x7f", "\x9f"),
    ("\u202a", "\u202e"),
    ("\u2066", "\u2069"),
    ("\ud800", "\udfff"),
)
_NOT_XML = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
_XML_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;", "\r": "&#13;"}
)
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32"}

Record = Mapping[str, Any]


def prepare() -> None:
    """No character may break a command, whatever the terminal can show."""
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")


def out(text: str = "") -> None:
    sys.stdout.write(text + "\n")


def talk(text: str) -> None:
    sys.stdout.flush()  # so that both streams keep their order where they go to one place
    sys.stderr.write(plain(text) + "\n")


def note(args: Namespace, text: str) -> None:
    """What --quiet leaves out. Errors are never left out."""
    if not args.quiet:
        talk(text)


def hint(args: Namespace, text: str) -> None:
    note(args, f"hint: {text}")


def warn(args: Namespace, text: str) -> None:
    note(args, f"warning: {text}")


def failed(error: Exception) -> int:
    """Says what went wrong, and what to do next. Returns the exit code."""
    from bethink.errors import BethinkError

    settled = _settle_stdout()
    if os.environ.get("BETHINK_DEBUG") and not isinstance(error, BrokenPipeError):
        import traceback

        traceback.print_exception(error)
    if isinstance(error, BethinkError):
        talk(f"error: {error.message}")
        if error.hint:
            talk(f"hint: {error.hint}")
        return error.exit_code
    if isinstance(error, OSError):
        if isinstance(error, BrokenPipeError):
            return 0  # the reader has seen enough
        # Without a buffer nothing is left to try again; but what names no file came from a stream.
        if not settled or (
            error.filename is None and error.errno in (errno.ENOSPC, errno.EFBIG, errno.EIO)
        ):
            talk(
                f"error: The output could not be written: {error.strerror or error}. What the command changed stays changed."
            )
            return 1
        talk(
            f"error: {error.strerror or error}"
            + (f": {error.filename}" if error.filename else "")
            + "."
        )
        return 1
    talk(f"error: unexpected {type(error).__name__}: {error}")
    talk("hint: Set BETHINK_DEBUG=1 to see where, and please report it.")
    return 1


def _settle_stdout() -> bool:
    """Writes what is buffered. Where that is impossible it is given up, or Python would try again while it ends, and complain; and
    the answer is False."""
    from contextlib import suppress

    try:
        sys.stdout.flush()
        return True
    except OSError:
        with suppress(OSError, ValueError):  # not a real file, as in tests
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False


# Text for people


def plain(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(
        "�" if any(low <= mark <= high for low, high in _HOSTILE) else mark
        for mark in text.replace("\r\n", "\n")
    )


def one_line(text: str, width: int = 0) -> str:
    """The text on one line, cut at a word to `width` characters."""
    line = plain(" ".join(text.split()))
    if width and len(line) > width:
        cut = line[: width - 1]
        return (cut[: cut.rfind(" ")] if " " in cut[width // 2 :] else cut).rstrip(" ,.;:") + "…"
    return line


def width() -> int:
    """Columns to write in. Not `shutil`'s, which takes longer to import than a search takes to run."""
    try:
        found = int(
            os.environ.get("COLUMNS")
            or os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else 1).columns
        )
    except (OSError, ValueError):
        found = 100
    return min(max(found, 40), 120)


def wrapped(text: str, indent: str) -> list[str]:
    room = width() - len(indent)
    lines: list[str] = []
    for line in plain(text).split("\n"):
        if len(line) <= room:
            lines.append(line)
            continue
        row = ""
        for word in line.split(" "):
            if row.strip() and len(row) + 1 + len(word) > room:
                lines.append(row)
                row = word
            else:
                row += f" {word}" if row else word
        lines.append(row)
    return [f"{indent}{line}".rstrip() for line in lines]


def colour() -> bool:
    return (
        not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and sys.stdout.isatty()
    )


def styled(text: str, style: str) -> str:
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if colour() else text


def date(moment: datetime | None) -> str:
    return moment.astimezone().strftime("%Y-%m-%d") if moment else ""


def date_and_time(moment: datetime | None) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M") if moment else ""


def size(count: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"


def many(count: int, one: str, several: str = "") -> str:
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def columns(rows: Sequence[Sequence[str]], right: Sequence[int] = (), gap: str = "  ") -> list[str]:
    """Rows as aligned columns; those named in `right` are numbers."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        gap.join(
            cell.rjust(size) if at in right else cell.ljust(size)
            for at, (cell, size) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


# Data


def json_text(value: Any, indent: int | None = 2) -> str:
    import json

    unicode = (
        (getattr(sys.stdout, "encoding", None) or "utf-8")
        .lower()
        .replace("-", "")
        .startswith("utf")
    )
    return json.dumps(value, ensure_ascii=not unicode, indent=indent, default=str)


def show(args: Namespace, value: Any, text: Callable[[], None]) -> None:
    """One object: as JSON, or as `text` writes it."""
    if args.format == "json":
        data([json_text(value) + "\n"])
    else:
        text()


def show_list(
    args: Namespace,
    records: Iterable[Record],
    fields: Sequence[str],
    text: Callable[[], None],
    root: str = "memories",
    item: str = "memory",
    **about: str,
) -> None:
    """What is listed, in the format that was asked for. `about` becomes attributes of the XML root."""
    if args.format == "text":
        text()
        return
    data(rendered(args.format, records, fields, root, item, **about))


def data(parts: Iterable[str], stream: TextIO | None = None) -> None:
    """What programs read: as it is. People whose terminal it goes to get it without what that might obey."""
    stream = stream or sys.stdout
    stream.writelines(map(plain, parts) if stream.isatty() else parts)


def rendered(
    format: str,
    records: Iterable[Record],
    fields: Sequence[str],
    root: str = "memories",
    item: str = "memory",
    **about: str,
) -> Iterator[str]:
    """The records piece by piece, so that an export of any size needs no memory."""
    if format == "json":
        yield from _json(records)
    elif format == "jsonl":
        yield from (json_text(record, None) + "\n" for record in records)
    elif format == "csv":
        yield from _csv(records, fields)
    elif format == "md":
        yield from _markdown(records, fields)
    elif format == "xml":
        yield from _xml(records, fields, root, item, about)


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


def _markdown(records: Iterable[Record], fields: Sequence[str]) -> Iterator[str]:
    yield "| " + " | ".join(fields) + " |\n| " + " | ".join("---" for _ in fields) + " |\n"
    for record in records:
        yield (
            "| "
            + " | ".join(
                " ".join(cell(record.get(field)).split()).replace("|", "\\|") for field in fields
            )
            + " |\n"
        )


def _xml(
    records: Iterable[Record], fields: Sequence[str], root: str, item: str, about: Mapping[str, str]
) -> Iterator[str]:
    attributes = "".join(f' {name}="{_escaped(value)}"' for name, value in about.items())
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<{root}{attributes}>\n'
    for record in records:
        yield (
            f"  <{item}>\n"
            + "".join(
                f"    <{_tag(field)}>{_escaped(cell(record.get(field)))}</{_tag(field)}>\n"
                for field in fields
            )
            + f"  </{item}>\n"
        )
    yield f"</{root}>\n"


def _escaped(text: str) -> str:
    return re.sub(_NOT_XML, "", text).translate(_XML_ESCAPES)


def _tag(name: str) -> str:
    """`any@5` cannot name an element."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)


def cell(value: Any) -> str:
    """A value where only text fits."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) else json_text(value, None)
