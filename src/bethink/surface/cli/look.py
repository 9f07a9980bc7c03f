"""`export`: what there is, in full."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from bethink.errors import BethinkError, StoreCorrupt, UsageError
from bethink.surface.cli import output
from bethink.surface.cli.find import FILTERS, chosen_filter
from bethink.surface.cli.parsing import FORMATS, Command, add_arguments
from bethink.surface.cli.session import opened

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from bethink.api import Bethink
    from bethink.types import Memory

PAGE = 200


def export_options(parser: ArgumentParser) -> None:
    parser.add_argument("--jsonl", action="store_true", help="one JSON object per line")
    parser.add_argument(
        "--output",
        "-o",
        metavar="FILE",
        help="write to a file, readable by you alone; an old one is replaced when all is written",
    )
    add_arguments(parser, FILTERS)


def export(args: Namespace) -> None:
    """Write memories out, the oldest first: everything of this project and personal ones, forgotten, expired and replaced
    ones included, unless the options choose. JSON unless --format says otherwise. Streams, so any number will do.

    Examples:
      bethink export --output memories.json
      bethink export --all-projects --jsonl | gzip > memories.jsonl.gz
      bethink export --kind decision --format md
    """
    if args.jsonl and args.explicit_format:
        raise UsageError("Give --format or --jsonl, not both.", "bethink export --jsonl")
    form = "jsonl" if args.jsonl else args.format if args.explicit_format else "json"
    every = dict.fromkeys(
        ("include_deleted", "include_expired", "include_superseded", "include_quarantined"), True
    )
    with opened(args) as memory:
        wanted = chosen_filter(args, memory, **({} if args.as_of else every))
        with destination(args.output) as stream:
            lost: list[str] = []
            found = pieces(form, memory, memory.export(wanted, lost))
            stream.writelines(found) if form == "text" else output.data(found, stream)
        if lost:
            raise StoreCorrupt(
                f"The database is damaged: {output.many(len(lost), 'memory', 'memories')} could not be read; all others were written.",
                "Run `bethink doctor --deep`, and restore a backup for what is missing.",
            )
        if args.output:
            output.note(
                args,
                f"{output.many(memory.store.count(wanted), 'memory', 'memories')} written to {args.output}",
            )


def pieces(form: str, memory: Bethink, memories: Iterator[Memory]) -> Iterator[str]:
    from bethink.features.exchange import export_records
    from bethink.recall.shape import plain
    from bethink.surface import render

    if form == "text":
        for number, one in enumerate(memories):
            yield "\n" * (2 if number else 0) + "\n".join(render.memory_lines(one, (), {})) + "\n"
    else:
        records = (
            export_records(memory, memories)
            if form in ("json", "jsonl")
            else (output.flatten_record(plain(one)) for one in memories)
        )
        yield from output.format_records(
            form, records, [field for field in render.FIELDS if field != "score"]
        )


@contextmanager
def destination(path: str | None) -> Iterator[TextIO]:
    """Where an export goes. A file appears under its name only when it is whole."""
    if path is None or path == "-":
        yield sys.stdout
        return
    target = Path(path).expanduser()
    if target.exists() and not target.is_file():
        direct = target  # a pipe or a device
    else:
        direct = target.with_name(f".{target.name}.partial")
    try:
        with os.fdopen(
            os.open(direct, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
            "w",
            encoding="utf-8",
            newline="",
        ) as stream:
            yield stream
        if direct != target:
            direct.replace(target)
    except OSError as error:
        raise BethinkError(
            f"{path} cannot be written: {error.strerror}.", "Check the folder and its free space."
        ) from error
    finally:
        if direct != target:
            direct.unlink(missing_ok=True)


COMMANDS = {
    "export": Command(export, export_options, FORMATS),
}
