"""Where results go: stdout is data; stderr is talk. The data formats give stored text back as it is, but for a terminal."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TextIO

from bethink.errors import BethinkError
from bethink.surface.layout import flatten_record, format_records, json_text, plain
from bethink.text.fence import clean, fence_text
from bethink.types import NOTHING

if TYPE_CHECKING:
    from argparse import Namespace

EVERY = 0.1  # seconds between two drawings of a bar
CELLS = 24  # of a bar
# What agents set for the commands that they run: Claude Code, Codex, Gemini CLI, opencode, Cursor, Copilot CLI, any other.
AGENTS = (
    "CLAUDECODE",
    "CODEX_THREAD_ID",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_CI",
    "GEMINI_CLI",
    "OPENCODE",
    "CURSOR_AGENT",
    "COPILOT_CLI",
    "AI_AGENT",
)


def prepare() -> None:
    """No character may break a command, whatever the terminal can show."""
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")


def is_read_by_agent() -> bool:
    """Whether an agent runs this command and reads what it prints. People who use a terminal inside an agent see a terminal."""
    return not sys.stdout.isatty() and any(os.environ.get(name) for name in AGENTS)


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


# Results


class Listing(NamedTuple):
    """What a list of records is called, and which of their fields CSV, Markdown and XML give."""

    fields: Sequence[str]
    root: str = "memories"
    item: str = "memory"
    about: Mapping[str, str] = NOTHING  # attributes of the XML root


class Result(NamedTuple):
    """What a command gives back. It is printed in the format that was asked for, and what `bethink` says about it comes after."""

    value: Any = None  # for JSON; of a listing, its records
    lines: Iterable[str] | Callable[[], Iterable[str]] = ()  # for people
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()
    hints: Sequence[str] = ()
    listing: Listing | None = None
    quoted: str = ""  # for agents, with marks and origins
    stored: bool = False  # whether the lines are stored text, which agents get between marks
    code: int = 0


def finish(args: Namespace, result: Result | int | None) -> int:
    """Prints what a command gave back, if it did not print by itself. Returns the exit code."""
    return present(args, result) if isinstance(result, Result) else result or 0


def present(args: Namespace, result: Result) -> int:
    """Prints a result. Returns the exit code."""
    if args.format == "text":
        if args.for_agent:
            _present_to_agent(result)
        else:
            for line in _lines(result):
                out(line)
    elif result.listing:
        records = (
            (flatten_record(one) for one in result.value) if args.format != "json" else result.value
        )
        fields, root, item, about = result.listing
        data(format_records(args.format, records, fields, root, item, **about))
    else:
        data([json_text(result.value) + "\n"])
    for text in result.notes:
        note(args, text)
    for text in result.warnings:
        warn(args, text)
    for text in result.hints:
        hint(args, text)
    return result.code


def _lines(result: Result) -> Iterable[str]:
    return result.lines() if callable(result.lines) else result.lines


def _present_to_agent(result: Result) -> None:
    if result.quoted:
        out(result.quoted)
        return
    text = "\n".join(_lines(result))
    if text:
        out(fence_text(text) if result.stored else clean(text))


def data(parts: Iterable[str], stream: TextIO | None = None) -> None:
    """What programs read: as it is. People whose terminal it goes to get it without what that might obey."""
    stream = stream or sys.stdout
    stream.writelines(map(plain, parts) if stream.isatty() else parts)


# How far a long command is


class Bar:
    """Draws to stderr, only on a terminal and not with --quiet; the line is gone when it is closed."""

    def __init__(
        self,
        args: Namespace,
        label: str,
        unit: Callable[[float], str] = lambda count: f"{count:,.0f}",
    ) -> None:
        self.shown = not args.quiet and sys.stderr.isatty()
        self.label = label
        self.unit = unit
        self._drawn = 0.0
        self._dirty = False

    def __call__(self, done: int, total: int | None = None, label: str | None = None) -> None:
        if not self.shown or (time.monotonic() - self._drawn < EVERY and done != total):
            return
        self._drawn = time.monotonic()
        self._dirty = True
        sys.stderr.write("\r\x1b[K" + self.line(done, total, label))
        sys.stderr.flush()

    def line(self, done: int, total: int | None, label: str | None = None) -> str:
        if not total:
            return f"{label or self.label} {self.unit(done)}"
        full = min(CELLS, CELLS * done // total)
        return f"{label or self.label} [{'#' * full}{'.' * (CELLS - full)}] {self.unit(done)} of {self.unit(total)}"

    def close(self) -> None:
        if self._dirty:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._dirty = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
