"""`model`: the local embedding models and their files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bethink.errors import InvalidInput, UsageError
from bethink.surface.cli import output
from bethink.surface.cli.parsing import FORMATS, Command
from bethink.surface.cli.progress import Bar
from bethink.surface.cli.session import settings

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

FIELDS = ("name", "installed", "current", "dimensions", "window", "licence", "path")


def model_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=("list", "pull", "verify"),
        default="list",
        help="default: list",
    )
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="a model; by default the one that is set"
    )


def model(args: Namespace) -> None:
    """List the embedding models known by name, fetch one (once, for all projects), or verify its files against their hashes.

    Examples:
      bethink model list
      bethink model pull
      bethink model pull all-MiniLM-L6-v2
      bethink model verify
    """
    if args.action == "list" and args.name:
        raise UsageError("`model list` takes no name.", "bethink model list")
    if args.action == "list":
        list_models(args)
    else:
        pull_or_verify(args, named(args))


def named(args: Namespace) -> str:
    name = args.name or settings(args).embedding
    if name.strip() in ("none", "hashing", "http", ""):
        raise InvalidInput(
            f"The embedding '{name}' has no model files.",
            f"Name a model: bethink model {args.action} snowflake-arctic-embed-s",
        )
    return str(name)


def list_models(args: Namespace) -> None:
    from bethink.embed.models import KNOWN, location

    current = settings(args).embedding.rpartition("/")[2].lower()
    rows: list[dict[str, Any]] = []
    for known in KNOWN.values():
        folder = location(known.name)
        rows.append(
            {
                "name": known.name,
                "installed": folder is not None,
                "current": known.name.lower() == current,
                "dimensions": known.dimensions,
                "window": known.window,
                "licence": known.licence,
                "path": str(folder) if folder else None,
            }
        )

    def text() -> None:
        table = [("", "model", "dimensions", "licence", "")]
        table += [
            (
                "*" if row["current"] else "",
                row["name"],
                str(row["dimensions"]),
                row["licence"],
                "installed" if row["installed"] else "",
            )
            for row in rows
        ]
        output.out("\n".join(output.columns(table, right=(2,))))

    output.show_list(args, rows, FIELDS, text, "models", "model")


def pull_or_verify(args: Namespace, name: str) -> None:
    from bethink.embed import models

    if args.action == "pull":
        with Bar(args, f"fetching {name}", output.size) as bar:
            folder = models.pull(name, bar)
    else:
        models.verify(name)
        folder = models.location(name) or models.model_directory(name)
    what = "installed" if args.action == "pull" else "sound"
    found = models.find(name).name
    output.show(
        args,
        {"name": found, "status": what, "path": str(folder)},
        lambda: output.out(f"{found} is {what}: {folder}"),
    )


COMMANDS = {"model": Command(model, model_options, FORMATS)}
