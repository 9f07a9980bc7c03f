"""`bench`: quality and speed on labelled sets, as a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bethink.errors import InvalidInput, NotFound
from bethink.surface.cli import output
from bethink.surface.cli.parsing import FORMATS, Command, pieces
from bethink.surface.cli.progress import Bar

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

MEASURES = ("hit@1", "any@5", "any@10", "recall@5", "recall@10", "all@5", "MRR", "nDCG@10")
FIELDS = (
    "set",
    "mode",
    *MEASURES,
    "p50_ms",
    "p95_ms",
    "documents_per_second",
    "documents",
    "queries",
)
HEADINGS = {"documents_per_second": "docs/s", "p50_ms": "p50 ms", "p95_ms": "p95 ms"}


def bench_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "directory",
        nargs="+",
        metavar="DIR",
        help="a set: a folder with corpus.jsonl and queries.jsonl",
    )
    parser.add_argument(
        "--mode",
        action="append",
        metavar="MODE",
        help="hybrid, vector, keyword; may be repeated or a comma list (default: all three)",
    )


def bench(args: Namespace) -> None:
    """Measure recall on labelled sets: load each through the ordinary write path into a throw-away database, ask its
    questions, and print the measures and times.

    Examples:
      bethink bench ../shared/bench/scifact
      bethink bench ../shared/bench/* --mode hybrid,vector,keyword
      bethink bench ../shared/bench/cosqa --json
    """
    from bethink.types import MODES

    modes = list(pieces(args.mode)) or list(MODES)
    for mode in modes:
        if mode not in MODES:
            raise InvalidInput(f"'{mode}' is not a mode.", "One of " + ", ".join(MODES) + ".")
    folders = [Path(name).expanduser() for name in args.directory]
    for folder in folders:
        if not folder.is_dir():
            raise NotFound(
                f"There is no directory {folder}.",
                "Give folders with corpus.jsonl and queries.jsonl.",
            )
    from bethink.bench import run

    with Bar(args, "bench") as bar:
        results = run(
            folders,
            modes,
            progress=lambda label, done, total: bar(done, total, label),
            database=Path(args.database) if args.database else None,
        )

    def text() -> None:
        table = [[HEADINGS.get(field, field) for field in FIELDS]]
        table += [
            [
                f"{row[field]:.3f}" if field in MEASURES else output.cell(row.get(field))
                for field in FIELDS
            ]
            for row in results
        ]
        output.out("\n".join(output.columns(table, right=range(2, len(FIELDS)))))

    output.show_list(args, results, FIELDS, text, "results", "result")


COMMANDS = {"bench": Command(bench, bench_options, FORMATS)}
