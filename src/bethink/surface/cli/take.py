"""`index`, `import`, `map` and `analyze`: what a project already knows about itself becomes memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bethink.errors import NotFound, UsageError
from bethink.surface.cli import output
from bethink.surface.cli.parsing import Command, count
from bethink.surface.cli.progress import Bar
from bethink.surface.cli.session import opened

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from bethink.api import Bethink
    from bethink.ingest.sync import Synced

MARKDOWN = (".md", ".markdown", ".mdx")
SHOWN = 5  # files named one by one before "and more"


def index_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "path",
        nargs="*",
        metavar="PATH",
        help="these only; the setting `knowledge` names the usual ones",
    )
    parser.add_argument(
        "--watch", action="store_true", help="go on, and follow every change until stopped"
    )


def index(args: Namespace) -> None:
    """Bring the Markdown files of the knowledge folders in step with memory: new ones are read, unchanged ones skipped,
    changed ones replace their own memories, moved ones keep them, vanished ones retire them. The setting `knowledge` names
    the folders (.claude/knowledge by default). Files that git ignores are left out. What agents load by themselves (AGENTS.md,
    CLAUDE.md, Claude auto memory) is read too, unless `builtin_memory` is off: searches find it, hooks do not repeat it.

    Examples:
      bethink index
      bethink config knowledge .claude/knowledge,docs && bethink index
      bethink index docs/guides
      bethink index --watch
    """
    from bethink.features import builtin, knowledge

    if args.watch:
        knowledge.check_watching()
    with opened(args, make=True) as memory:
        paths = [existing(path) for path in args.path] or None
        if paths is None and not knowledge.folders(memory) and not builtin.present(memory):
            raise NotFound(
                f"None of the knowledge folders of {memory.project.name} exists: {', '.join(memory.config.knowledge)}.",
                "`bethink init` makes one; `bethink config knowledge docs` names another.",
            )
        synced = _taken(args, "indexing", lambda bar: knowledge.index(memory, paths, progress=bar))
        show(args, synced if paths else synced.plus(builtin.sync(memory)))
        if args.watch:
            watch(args, memory, paths)


def watch(args: Namespace, memory: Bethink, paths: list[Path] | None) -> None:
    import signal
    import threading

    from bethink.features import knowledge

    # An interrupt that came while the watcher starts could be lost; a flag is seen whenever it is looked at.
    stop = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: stop.set())
    try:
        output.talk("watching; Ctrl-C ends it")
        for synced in knowledge.follow(memory, paths, stop=stop):
            show(args, synced)
    finally:
        signal.signal(signal.SIGINT, before)
    output.talk("stopped watching; what is indexed stays")


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
        path = existing(args.markdown or args.repo_map)
        take = knowledge.import_markdown if args.markdown else knowledge.import_repo_map
        show(args, _taken(args, "importing", lambda bar: take(memory, path, progress=bar)))


def import_export(args: Namespace) -> None:
    from bethink.features import exchange

    path = existing(args.file)
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


def map_options(parser: ArgumentParser) -> None:
    pass


def map_(args: Namespace) -> None:
    """Map the project's source code: files, symbols, signatures and what their comments say, each with its lines, so that a
    search for a name, a path or "where is the retry logic" finds the place. Only changed files are read again. With --json
    the map is printed for `bethink import --repo-map` and other tools, and nothing is stored.

    Examples:
      bethink map
      bethink map --json > repo-map.json
      bethink map && bethink search "where are retries handled?"
    """
    from bethink.features import knowledge

    with opened(args, make=True) as memory:
        if args.format == "json":
            output.data([output.json_text(knowledge.repo_map(memory)) + "\n"])
        else:
            show(
                args, _taken(args, "mapping", lambda bar: knowledge.map_code(memory, progress=bar))
            )


def analyze_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--git", action="store_true", help="look at the commits instead of the files"
    )
    parser.add_argument(
        "--commits",
        type=count,
        default=2000,
        metavar="N",
        help="with --git: how many commits to look at (2000)",
    )
    parser.add_argument("--since", metavar="DATE", help="with --git: only commits after that date")


def analyze(args: Namespace) -> None:
    """Look at the project and remember what helps to work on it: its purpose, how it is built and tested, its parts, HTTP
    routes, dependencies and decision records. With --git the commits that explain a decision, a revert or a pitfall. Each
    finding cites its line or commit; run again, it replaces what changed.

    Examples:
      bethink analyze
      bethink analyze --git
      bethink analyze --git --since 2025-01-01
      bethink analyze && bethink list --tag command
    """
    from bethink.features import knowledge

    if args.since and not args.git:
        raise UsageError("--since goes with --git.", "bethink analyze --git --since 2025-01-01")
    with opened(args, make=True) as memory:
        if args.git:
            show(
                args,
                _taken(
                    args,
                    "reading commits",
                    lambda bar: knowledge.analyze_history(
                        memory, limit=args.commits, since=args.since, progress=bar
                    ),
                ),
            )
        else:
            show(
                args, _taken(args, "analyzing", lambda bar: knowledge.analyze(memory, progress=bar))
            )


def existing(path: str) -> Path:
    found = Path(path).expanduser()
    if not found.exists():
        raise NotFound(f"There is nothing at {path}.", "Check the path.")
    return found


def _taken(args: Namespace, label: str, take: Any) -> Synced:
    with Bar(args, label, lambda passages: f"{passages:,.0f} passages") as bar:
        synced: Synced = take(lambda done, sources: bar(done))
        return synced


def show(args: Namespace, synced: Synced) -> None:
    for hint in synced.hints:
        output.warn(args, hint)
    output.show(args, shown(synced), lambda: written(synced))


def shown(synced: Synced) -> dict[str, Any]:
    from bethink.types import path_of

    return {
        "sources": synced.sources,
        "added": [path_of(uri) for uri in synced.added],
        "changed": [path_of(uri) for uri in synced.changed],
        "moved": [{"from": path_of(old), "to": path_of(new)} for old, new in synced.moved],
        "vanished": [path_of(uri) for uri in synced.vanished],
        "unchanged": synced.unchanged,
        "skipped": [
            {"source": path_of(skipped.uri), "reason": skipped.reason} for skipped in synced.skipped
        ],
        "memories": {
            "added": synced.memories_added,
            "kept": synced.memories_kept,
            "retired": synced.memories_retired,
        },
    }


def written(synced: Synced) -> None:
    parts = [
        f"{number:,} {word}"
        for number, word in (
            (len(synced.added), "new"),
            (len(synced.changed), "changed"),
            (len(synced.moved), "moved"),
            (len(synced.vanished), "vanished"),
            (synced.unchanged, "unchanged"),
            (len(synced.skipped), "skipped"),
        )
        if number
    ]
    output.out(
        f"{output.many(synced.sources, 'source', 'sources')}{': ' + ', '.join(parts) if parts else ''}"
    )
    changes = [
        f"{number:,} {word}"
        for number, word in (
            (synced.memories_added, "added"),
            (synced.memories_kept, "kept"),
            (synced.memories_retired, "retired"),
        )
        if number
    ]
    if changes:
        output.out(f"memories: {', '.join(changes)}")
    for skipped in synced.skipped[:SHOWN]:
        output.talk(
            f"skipped {output.one_line(skipped.uri, 100)}: {output.one_line(skipped.reason, 200)}"
        )
    if len(synced.skipped) > SHOWN:
        output.talk(f"and {len(synced.skipped) - SHOWN:,} more; --json lists all")


COMMANDS = {
    "index": Command(index, index_options),
    "import": Command(import_, import_options),
    "map": Command(map_, map_options),
    "analyze": Command(analyze, analyze_options),
}
