"""`import`: memories, documents and code from elsewhere."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from bethink.errors import UsageError
from bethink.surface.cli import output
from bethink.surface.cli.knowledge import existing_path, sync_with_bar, synced_result
from bethink.surface.cli.parsing import Command
from bethink.surface.cli.progress import Bar
from bethink.surface.cli.session import opened

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

MARKDOWN = (".md", ".markdown", ".mdx")


def import_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="what `bethink export` wrote as JSON or JSON lines, also gzipped; or a SQLite database",
    )
    parser.add_argument(
        "--trusted",
        action="store_true",
        help="of FILE: believe each memory as far as it says, since the file is yours",
    )
    parser.add_argument("--personal", action="store_true", help="of FILE: what is personal too")
    parser.add_argument(
        "--all-scopes",
        action="store_true",
        help="of FILE: other projects and what is personal too, each under its own",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="of FILE: say what would be taken in, and change nothing",
    )
    parser.add_argument(
        "--markdown",
        metavar="PATH",
        help="a Markdown file, or a folder of them (.md .markdown .mdx)",
    )
    parser.add_argument("--repo-map", metavar="FILE", help="a repo map as JSON")


def import_(args: Namespace) -> None:
    """Take in an export, another database, Markdown files from anywhere, or a repo map. Of an export or a database the memories of
    this project are taken, or those of the only project in it. They keep their ids where those are free, what is known by id
    or text stays as it is, and what they say of it is only proposed. Of Markdown and a repo map it is a sync: files that
    changed replace their own memories, files that vanished retire theirs, and nothing else is touched. Imported text is
    trusted less than what you say, unless you say that the file is yours with --trusted.

    Examples:
      bethink import memories.json
      bethink import old-memory.db --trusted --all-scopes
      bethink import --markdown ~/notes/postmortems
      bethink import --markdown vendor/react-router/docs --container react-router
      bethink map --json > repo-map.json && bethink import --repo-map repo-map.json
    """
    from bethink.features import knowledge

    if sum(map(bool, (args.file, args.markdown, args.repo_map))) != 1:
        raise UsageError(
            "Give one of an export, --markdown and --repo-map.", "bethink import --markdown docs"
        )
    if args.file:
        import_export(args)
        return
    if args.trusted or args.dry_run or args.all_scopes or args.personal:
        raise UsageError(
            "--trusted, --dry-run, --personal and --all-scopes go with an export.",
            "bethink import memories.json --dry-run",
        )
    with opened(args, make=True) as memory:
        path = existing_path(args.markdown or args.repo_map)
        take = knowledge.import_markdown if args.markdown else knowledge.import_repo_map
        synced = sync_with_bar(args, "importing", partial(take, memory, path))
        output.present(args, synced_result(synced))


def import_export(args: Namespace) -> None:
    from bethink.features import exchange

    path = existing_path(args.file)
    if path.suffix.lower() in MARKDOWN or path.is_dir():
        raise UsageError(f"{args.file} is no export.", f"bethink import --markdown {args.file}")
    with opened(args, make=not args.dry_run) as memory, Bar(args, "importing") as bar:
        done = exchange.import_file(
            memory,
            path,
            trusted=args.trusted,
            all_scopes=args.all_scopes,
            personal=args.personal,
            dry_run=args.dry_run,
            progress=bar,
        )
        bar.close()
        for hint in memory.hints:
            output.hint(args, hint)

        def text() -> None:
            counts = (
                (done.known, "known already"),
                (done.merged, "merged"),
                (done.purged, "purged here before"),
                (done.redactions, "redacted"),
            )
            parts = [f"{number:,} {word}" for number, word in counts if number]
            parts += [output.many(done.relations, "relation")] if done.relations else []
            did = "would add" if args.dry_run else "added"
            output.out(
                ", ".join([f"{did} {output.many(done.added, 'memory', 'memories')}", *parts])
            )

        output.show(args, {**done._asdict(), "dry_run": args.dry_run}, text)
        if done.left_out:
            number = output.many(done.left_out, "memory", "memories")
            output.hint(
                args,
                f"{number} of other projects or personal left out; --all-scopes and --personal take them in.",
            )


COMMANDS = {"import": Command(import_, import_options)}
