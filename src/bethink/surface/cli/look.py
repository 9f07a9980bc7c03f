"""`stats` and `export`: what there is, in numbers and in full."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from bethink.errors import BethinkError, StoreCorrupt, UsageError
from bethink.surface.cli import output
from bethink.surface.cli.filters import chosen, filter_options, scope_names
from bethink.surface.cli.parsing import FORMATS, Command
from bethink.surface.cli.session import opened

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from bethink.api import Bethink
    from bethink.types import Memory

PAGE = 200


def stats_options(parser: ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--all-projects", action="store_true", help="every project in the database (the default)"
    )
    where.add_argument(
        "--this-project", action="store_true", help="only this project and personal memories"
    )


def stats(args: Namespace) -> None:
    """Count what is stored: memories by kind and by project, vectors, entities, bytes.

    Examples:
      bethink stats
      bethink stats --this-project
      bethink stats --json
    """
    from bethink.features import language

    with opened(args) as memory:
        value = {**numbers(memory, args.this_project), "language_model": language.usage(memory)}
        output.show(args, value, lambda: output.out("\n".join(summary(memory, value))))


def numbers(memory: Bethink, this_project: bool) -> dict[str, Any]:
    overview = memory.stats(memory.scopes if this_project else None)
    value = {name: found for name, found in overview._asdict().items() if name != "extra"}
    every = overview.memories + overview.deleted
    names = scope_names(memory, overview)
    return {
        **value,
        "database": str(getattr(memory.store, "path", memory.config.database)),
        "bytes_per_memory": round(overview.database_bytes / every) if every else 0,
        "scope_names": {scope: names[scope] for scope in value["by_scope"] if names.get(scope)},
    }


def model_use(use: dict[str, Any]) -> list[str]:
    """What the language model cost, where one is set or was used."""
    if not use["model"] and not use["tokens"]:
        return []
    name = use["model"] or "no model is set now"
    lines = [
        "",
        f"Language model ({name}): {use['today']:,} of {use['ceiling']:,} tokens today, {use['tokens']:,} in {use['days']} days",
    ]
    lines += [
        f"  {purpose}: {output.many(count['calls'], 'call')}, {count['failed']:,} failed"
        for purpose, count in use["purposes"].items()
    ]
    return lines + [
        f"  {reason}: {output.many(number, 'time')}" for reason, number in use["failures"].items()
    ]


def summary(memory: Bethink, value: dict[str, Any]) -> list[str]:
    from bethink.surface.render import scope_labels

    lines = [
        f"{output.many(value['memories'], 'memory', 'memories')}"
        + (f", and {value['deleted']:,} forgotten" if value["deleted"] else "")
    ]
    told = scope_labels(value["by_scope"], value["scope_names"])
    scopes = {
        told[scope] + (" (here)" if scope == memory.scope else ""): count
        for scope, count in value["by_scope"].items()
    }
    for title, counts in (
        ("By kind", value["by_kind"]),
        ("By project", scopes),
        ("Vectors by model", value["vectors"]),
    ):
        if counts:
            lines += [
                "",
                f"{title}:",
                *output.columns(
                    [(f"  {output.plain(name)}", f"{count:,}") for name, count in counts.items()],
                    right=(1,),
                ),
            ]
    counts = {
        name: value[name]
        for name in (
            "unembedded",
            "entities",
            "relations",
            "sources",
            "sessions",
            "spans",
            "cached",
        )
    }
    labels = {"unembedded": "memories without a vector", "cached": "cached embeddings"}
    lines += [
        "",
        *output.columns(
            [(labels.get(name, name), f"{count:,}") for name, count in counts.items()], right=(1,)
        ),
    ]
    lines += model_use(value["language_model"])
    return [
        *lines,
        "",
        f"{value['database']}: {output.size(value['database_bytes'])}, {output.size(value['bytes_per_memory'])} per memory",
    ]


def export_options(parser: ArgumentParser) -> None:
    parser.add_argument("--jsonl", action="store_true", help="one JSON object per line")
    parser.add_argument(
        "--output",
        "-o",
        metavar="FILE",
        help="write to a file, readable by you alone; an old one is replaced when all is written",
    )
    filter_options(parser)


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
        wanted = chosen(args, memory, **({} if args.as_of else every))
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
            else (render.flatten_record(plain(one)) for one in memories)
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
    "stats": Command(stats, stats_options),
    "export": Command(export, export_options, FORMATS),
}
