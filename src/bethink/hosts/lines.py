"""Bytes of a growing file → its complete lines, in bounded memory, and whether a position still fits the file.

A line longer than the bound is never held: its bytes are passed over and it comes without data. The last line of a file may
still be in the writing; the reader decides whether it is whole, and only what was consumed moves the position.

A position fits when the first line and the last bytes before the offset are what they were, whatever became of device, inode
and times. Otherwise the file was cut, replaced or rewritten, and is read from its start.

Compressed transcripts (`.zst`) look the same from outside; their offsets count what was packed. This module knows no host's
lines. `read_objects` only says which JSON objects stand on one, also when a torn write left a half in front of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from bethink.errors import BethinkError, NotFound
from bethink.hosts.base import as_dict, digest

BLOCK = 1 << 20
BOUND = 16 << 20  # bytes of a line; the longest that a host was seen to write has 7 MB
PIECE = 1 << 16
FIRST, LAST = 4096, 1024
# Raw tabs and line breaks inside strings are read as they are.
_DECODER = json.JSONDecoder(strict=False)
# An object that begins where no value can stand: a whole line written right behind a torn one.
_BEHIND_TORN = re.compile(r"[^\s:,\[{\\](?=\{\")")
_KEY = re.compile(r"[\s,]*(\"[^\"\\]{0,100}\")\s*:\s*")
_ATTEMPTS = 16


class Line(NamedTuple):
    number: int
    end: int  # the offset behind it, line break included
    data: bytes | None  # without the line break; None when it is longer than the bound
    ended: bool = True  # whether its line break is there


class Stream:
    """Bytes of a file in order. `piece` looks elsewhere without moving; `move` goes forward and says whether there was so much."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self.file, self.path = file, path

    def read(self, size: int) -> bytes:
        try:
            return self.file.read(size)
        except OSError as error:
            raise _unreadable(self.path, error) from None

    def piece(self, start: int, size: int) -> bytes:
        here = self.file.tell()
        self.file.seek(start)
        found = self.read(size)
        self.file.seek(here)
        return found

    def move(self, offset: int) -> bool:
        reached = offset <= self.file.seek(0, 2)
        self.file.seek(offset)
        return reached


class Unpacked(Stream):
    """A compressed file as what is in it. What cannot be unpacked ends the stream. Cold files do not change, so `piece` knows
    only their beginning."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        super().__init__(file, path)
        try:
            import zstandard
        except ImportError:
            raise BethinkError(
                f"The transcript {path} is compressed, and the package zstandard is not installed.",
                "pip install 'bethink[zstd]'",
            ) from None
        self.failure = zstandard.ZstdError
        self.reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        self.first = self.waiting = self.unpack(FIRST)

    def unpack(self, size: int) -> bytes:
        try:
            # What was unpacked before damage in the same piece is lost with it, so pieces are small.
            return self.reader.read(min(size, PIECE))
        except self.failure:
            return b""

    def read(self, size: int) -> bytes:
        found, self.waiting = self.waiting[:size], self.waiting[size:]
        return found or self.unpack(size)

    def piece(self, start: int, size: int) -> bytes:
        return self.first[:size] if not start else b""

    def move(self, offset: int) -> bool:
        while offset > 0 and (block := self.read(min(offset, BLOCK))):
            offset -= len(block)
        return offset <= 0


@contextmanager
def open_stream(path: Path) -> Iterator[Stream]:
    try:
        file = path.open("rb", buffering=0)
    except FileNotFoundError:
        raise NotFound(f"There is no transcript {path}.", "bethink backfill PATH") from None
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    with file:
        yield Unpacked(file, path) if path.suffix == ".zst" else Stream(file, path)


def read_head(path: Path, size: int = FIRST) -> bytes:
    with open_stream(path) as stream:
        return stream.read(size)


def _unreadable(path: Path, error: Exception) -> BethinkError:
    return BethinkError(
        f"The transcript {path} cannot be read: {error}.",
        "Give another path, or the right to read this one.",
    )


def read_lines(
    stream: Stream, offset: int = 0, number: int = 0, bound: int = BOUND
) -> Iterator[Line]:
    """The lines from where the stream stands, which is at `offset`, behind line `number`."""
    pieces: list[bytes] = []
    size, at = 0, offset
    while block := stream.read(BLOCK):
        start = 0
        while (end := block.find(b"\n", start)) >= 0:
            number += 1
            size += end - start
            data = None if size > bound else b"".join([*pieces, block[start:end]])
            yield Line(number, at + end + 1, data)
            pieces, size, start = [], 0, end + 1
        size += len(block) - start
        pieces = [] if size > bound else [*pieces, block[start:]]
        at += len(block)
    if size:
        yield Line(number + 1, at, None if size > bound else b"".join(pieces), ended=False)


def identify(stream: Stream) -> str:
    return digest(stream.piece(0, FIRST).partition(b"\n")[0].rstrip(b"\r"))


def digest_tail(stream: Stream, offset: int) -> str:
    start = max(0, offset - LAST)
    return digest(stream.piece(start, offset - start))


def find_misfit(stream: Stream, offset: int, identity: str, tail: str) -> str:
    """Why reading cannot go on at an offset, or nothing; then the stream stands there."""
    if not stream.piece(0, 1):
        return "truncated"
    if identify(stream) != identity:
        return "replaced"
    if not stream.move(offset):
        return "truncated"
    return "" if digest_tail(stream, offset) == tail else "rewritten"


def read_objects(data: bytes) -> tuple[list[Any], bool]:
    """The JSON values of one line, and whether all of it could be read.

    Bytes that are no UTF-8 become U+FFFD, everything else stays. A crash can leave half a line with the next one behind it, and two
    writers can join theirs: what is whole is given. A value inside the torn half is not mistaken for a line of its own.
    """
    text = data.decode("utf-8", "replace").strip("\ufeff\0 \t\r")
    found: list[Any] = []
    at = attempts = 0
    while at < len(text):
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            attempts += 1
            behind = _BEHIND_TORN.search(text, at) if attempts <= _ATTEMPTS else None
            if not behind:
                return found, False
            at = behind.end()
            continue
        found.append(value)
        at = len(text) - len(text[end:].lstrip("\0 \t\r"))
    return found, not attempts


def read_object(data: Any) -> dict[str, Any]:
    """The JSON object at the beginning of some bytes or of a text, {} where there is none."""
    raw = data.encode("utf-8", "replace") if isinstance(data, str) else data
    found = read_objects(raw)[0] if isinstance(raw, bytes) else []
    return as_dict(found[0]) if found else {}


def read_outline(head: bytes) -> dict[str, Any]:
    """The top-level keys of a JSON object of which only the beginning is at hand; values that are not scalars become empty ones."""
    text = head.decode("utf-8", "ignore").lstrip("\ufeff\0 \t\r\n")
    found: dict[str, Any] = {}
    at = 1 if text.startswith("{") else len(text)
    try:
        while match := _KEY.match(text, at):
            key, _ = _DECODER.raw_decode(text, match.start(1))
            empty: Any = {"{": {}, "[": []}.get(text[match.end() : match.end() + 1])
            found[str(key)] = empty
            value, at = _DECODER.raw_decode(text, match.end())
            found[str(key)] = value if empty is None else empty
    except (ValueError, RecursionError):
        pass
    return found
