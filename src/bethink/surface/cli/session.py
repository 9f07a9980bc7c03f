"""What every command body starts with: the memory that its arguments name, the text it is given, a yes or no from the user."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bethink import config
from bethink import project as projects
from bethink.errors import BethinkError, InvalidInput, NotFound, UsageError
from bethink.surface.cli import output
from bethink.surface.cli.output import Bar
from bethink.surface.layout import plain, size
from bethink.text.when import LOCAL
from bethink.types import TRUST

if TYPE_CHECKING:
    from argparse import Namespace

    from bethink.api import Bethink
    from bethink.config import Config
    from bethink.project import Project

LONGEST = 4 * 5_000_000  # bytes: no setting allows a longer memory
WAIT = "Fetching the embedding model; this happens once."


@contextmanager
def open_memory(args: Namespace, make: bool = False) -> Iterator[Bethink]:
    """The memory seen from the directory that the arguments name. Says what is odd about the settings. Only what takes something
    in may `make` a database that was named and is not there. What an agent tells by a command is the agent's word, as over MCP."""
    from datetime import datetime

    from bethink.api import Bethink

    if not make:
        check_database(args)
    told: list[bool] = []
    with Bar(args, "fetching the embedding model", size) as bar:

        def fetching(done: int, total: int | None) -> None:
            if not told and not bar.shown and not args.quiet:
                output.talk(WAIT)
            told.append(True)
            bar(done, total)

        everywhere = getattr(args, "all_projects", False)
        clock = lambda: datetime.now(LOCAL)  # noqa: E731 – times are shown in it too
        actor = "agent:shell" if args.for_agent else "user"
        with Bethink(
            args.database,
            directory=directory(args),
            container=args.container,
            everywhere=everywhere,
            actor=actor,
            trust=TRUST[actor.partition(":")[0]],
            clock=clock,
            on_pull=fetching,
        ) as memory:
            for warning in memory.config.warnings:
                output.warn(args, warning)
            yield memory


def check_database(args: Namespace) -> None:
    """A database that was named and is not there is a slip of the pen: an empty one in its place would answer "nothing"."""
    name = args.database or os.environ.get("BETHINK_DATABASE")
    if not name or "://" in name:
        return
    try:
        missing = not Path(name).expanduser().exists()
    except OSError:
        return  # opening it says why
    if missing:
        origin = "--database" if args.database else "$BETHINK_DATABASE"
        raise NotFound(
            f"There is no database at {name}.",
            f"Check {origin}; `bethink add` and `bethink init` make a new one.",
        )


def directory(args: Namespace) -> Path | None:
    if args.project is None:
        return None
    path = Path(args.project).expanduser()
    if not path.is_dir():
        raise NotFound(
            f"There is no directory {args.project}.", "Give an existing one to --project."
        )
    return path


def project(args: Namespace) -> Project:
    return projects.find(directory(args))


def settings(args: Namespace) -> Config:
    """The settings alone, for commands that need no database."""
    loaded = config.load(project(args).root, {"database": args.database})
    for warning in loaded.warnings:
        output.warn(args, warning)
    return loaded


def read_text(words: list[str] | None, file: str | None, example: str) -> str:
    """The text of an argument, of a file, or with `-` or nothing of stdin."""
    if words and file:
        raise UsageError("Give the text or --file, not both.", example)
    if file:
        return decode_text(_file_bytes(file), file)
    if words and words != ["-"]:
        return " ".join(words)
    if sys.stdin is None or (not words and sys.stdin.isatty()):
        raise UsageError("There is no text.", f"{example}, or pipe a text in.")
    return decode_text(sys.stdin.buffer.read(LONGEST + 1), "stdin")


def _file_bytes(file: str) -> bytes:
    path = Path(file).expanduser()
    try:
        with path.open("rb") as stream:
            return stream.read(LONGEST + 1)
    except FileNotFoundError:
        raise NotFound(f"There is no file {file}.", "Check the path.") from None
    except IsADirectoryError:
        raise InvalidInput(f"{file} is a directory.", "Give one file.") from None
    except OSError as error:
        raise BethinkError(
            f"The file {file} cannot be read: {error.strerror}.", "Check its permissions."
        ) from error


def decode_text(raw: bytes, name: str) -> str:
    """Bytes as text, or a sentence about why they are none."""
    if b"\x00" in raw:
        raise InvalidInput(
            f"{name} looks binary: byte {raw.index(0)} is NUL.",
            "Only UTF-8 text can be remembered; `iconv -t UTF-8` converts other encodings.",
        )
    if len(raw) > LONGEST:
        raise InvalidInput(
            f"{name} holds more than {size(LONGEST)}.",
            "Split it: a memory is a statement or a passage.",
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = error.start + (3 if raw.startswith(b"\xef\xbb\xbf") else 0)
        raise InvalidInput(
            f"{name} is not valid UTF-8: byte {at} (0x{raw[at]:02x}) cannot be read.",
            "Convert it with `iconv -t UTF-8`.",
        ) from None


def confirm(args: Namespace, question: str) -> None:
    """Goes on only after a yes: from --yes, or typed at a terminal."""
    if args.yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            f"{question} There is no terminal to ask on.", "Add --yes if that is what you want."
        )
    if not says_yes(f"{question} Go on?"):
        raise BethinkError("Nothing was changed.")


def says_yes(question: str) -> bool:
    """Whether somebody at the terminal says yes."""
    sys.stdout.flush()
    sys.stderr.write(f"{plain(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
