"""A project's own knowledge as memory: its documents, its code, what analysis finds, and why its history went as it did.

Each function here walks the project, hands what a reader finds to `Bethink.sync` and returns what became of it. Nothing here
decides what a passage is: that is for the readers in `ingest/`. Files are only ever read.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

from bethink.api import Bethink
from bethink.config import Config
from bethink.errors import BethinkError, InvalidInput, NotFound
from bethink.ingest import markdown
from bethink.ingest.files import Found, place, walk
from bethink.ingest.redact import redact_name
from bethink.ingest.sync import Document, Skipped, Synced
from bethink.types import Memory, path_of

MARKDOWN = (".md", ".markdown", ".mdx")
DOCUMENTS = (*MARKDOWN, ".rst", ".adoc", ".ipynb")
# Tokens of a passage of an imported document, and how many of them the next one repeats; as memo, where this comes from, has it.
IMPORT_TOKENS, IMPORT_OVERLAP = 400, 80
CODE = "code"  # the collection of the code map
INDEX = "index"  # of the knowledge folders
ANALYSIS = "analysis"
HISTORY = "git"

Progress = Callable[[float, int], None]  # sources done, of how many


def folders(memory: Bethink) -> list[Path]:
    return find_folders(memory.project.worktree, memory.config)


def find_folders(root: Path, config: Config) -> list[Path]:
    """The knowledge folders and files of a project that exist, as the setting `knowledge` names them, and its documentation."""
    names = (*config.knowledge, *find_documentation(root, config))
    return [path for name in names if (path := _inside(root, name)).exists()]


def find_documentation(root: Path, config: Config) -> list[str]:
    """The folders of documentation that are read because nobody set what is knowledge."""
    if "knowledge" in config.origins or config.knowledge != config._field_defaults["knowledge"]:
        return []
    top = root.resolve()
    return [name for name in markdown.DOCUMENTATION if (root / name).resolve().is_relative_to(top)]


def find_documents(root: Path, config: Config, starts: Sequence[Path]) -> Iterator[Found | Skipped]:
    """The documents in some folders."""
    for start in starts:
        for found in walk(start, root, DOCUMENTS):
            if not is_record(root, config, found.uri):
                yield found


def is_record(root: Path, config: Config, uri: str) -> bool:
    """Whether a document is a decision record of the documentation, which `analyze` tells as a whole."""
    return markdown.find_kind(uri) == "decision" and uri.startswith(
        tuple(f"{name}/" for name in find_documentation(root, config))
    )


def _inside(root: Path, name: str) -> Path:
    """A folder that the settings name. A project's file comes with a cloned repository: it may not point out of the project."""
    path = (root / Path(name).expanduser()).resolve()
    if not path.is_relative_to(root.resolve()):
        raise InvalidInput(
            f"The knowledge folder '{name}' lies outside the project.",
            "`bethink import --markdown` takes any path.",
        )
    return root / name


def index(
    memory: Bethink, paths: Sequence[Path] | None = None, *, progress: Progress | None = None
) -> Synced:
    """Brings the knowledge folders, or the given ones beside them, in step with memory."""
    size, overlap = memory.config.chunk_size, memory.config.chunk_overlap
    root, config = memory.project.worktree, memory.config
    starts = find_folders(root, config) if paths is None else paths
    found = list(
        find_documents(root, config, starts)
        if paths is None
        else _find_files(memory, starts, DOCUMENTS)
    )
    warnings: list[str] = []
    documents = markdown.documents(found, "headers", size, overlap, _collect(warnings))
    within = _within(memory, starts)
    # What lies elsewhere was not looked at: it has vanished only where its file is gone, and only a whole run asks for that.
    whole = lambda uri: (  # noqa: E731
        (within(uri) and not is_record(root, config, uri)) or not _exists(memory, uri)
    )
    looked = whole if paths is None else within
    count = _count_of(len(found), progress)
    return _sync(memory, documents, INDEX, "markdown", count, looked, warnings)


def _count_of(total: int, progress: Progress | None) -> Callable[[float], None] | None:
    """What tells how many sources are done of so many. A reader may find one or two more, such as scripts without a suffix."""
    return (lambda done: progress(min(done, total), total)) if progress else None


def _check_parser() -> None:
    """Said once and before anything is read, and not of every file."""
    if find_spec("tree_sitter") is None:
        raise BethinkError(
            "The code map needs tree-sitter, which is not installed.", "pip install 'bethink[code]'"
        )


def import_markdown(
    memory: Bethink, path: Path, *, progress: Progress | None = None, dry_run: bool = False
) -> Synced:
    """Takes in one Markdown file or a tree of them, by windows of lines. Run again, it replaces what changed."""
    found = list(_find_files(memory, [path], MARKDOWN))
    warnings: list[str] = []
    documents = markdown.documents(
        found, "lines", IMPORT_TOKENS, IMPORT_OVERLAP, _collect(warnings)
    )
    collection = f"import:{path.resolve().as_posix()}"
    count = _count_of(len(found), progress)
    return _sync(
        memory, documents, collection, "markdown", count, warnings=warnings, dry_run=dry_run
    )


def remove_import(memory: Bethink, path: Path, *, dry_run: bool = False) -> Synced:
    """Retires what was taken in from a Markdown file, a folder of them or a repo map, as if its files had vanished."""
    place = path.resolve().as_posix()
    for collection in (f"import:{place}", f"repo-map:{place}"):
        if memory.store.sources(memory.scope, redact_name(collection)):
            return _sync(memory, [], collection, "markdown", None, dry_run=dry_run)
    raise NotFound(
        f"Nothing was imported from {path}.", "Name the file or folder as it was imported."
    )


def _collect(warnings: list[str]) -> Callable[[str, str], None]:
    return lambda uri, sentence: warnings.append(f"{uri}: {sentence}")


def import_repo_map(
    memory: Bethink, file: Path, *, progress: Progress | None = None, dry_run: bool = False
) -> Synced:
    """Takes in a repo map from a JSON file; it replaces all that this file brought before."""
    from bethink.ingest import code

    try:
        with file.open("rb") as stream:  # a little more than is allowed: the reader then says so
            raw = stream.read(code.LARGEST_MAP + 1)
    except OSError as error:
        raise NotFound(
            f"{file} cannot be read: {error.strerror}.",
            "`bethink map --json > repo-map.json` makes one.",
        ) from error
    document = code.read_map(raw, file)
    count = _count_of(1, progress)
    return _sync(memory, [document], document.uri, "repomap", count, dry_run=dry_run)


def map_code(memory: Bethink, *, progress: Progress | None = None) -> Synced:
    """Brings the map of the project's source code in step with memory."""
    from bethink.ingest import code

    _check_parser()
    found = list(_sources(memory))
    count = _count_of(code.count_sources(found), progress)
    return _sync(memory, code.documents(found), CODE, "repomap", count)


def repo_map(memory: Bethink) -> list[dict[str, Any]]:
    """The map of the project's source code in the form that `import_repo_map` reads. Stores nothing."""
    from bethink.ingest import code

    _check_parser()
    return code.to_json(
        entry for entry in code.map_files(_sources(memory)) if not isinstance(entry, Skipped)
    )


def _sources(memory: Bethink) -> Iterator[Found | Skipped]:
    return _find_files(memory, [memory.project.worktree], None)  # scripts have no suffix


def analyze(memory: Bethink, *, progress: Progress | None = None) -> Synced:
    """Looks at the project's files and keeps what it finds: purpose, commands, routes, decisions, dependencies. A decision
    record that says it was superseded hands over to the one that replaced it."""
    from bethink.ingest import analyze as analysis
    from bethink.ingest.analyze import pages

    documents = list(analysis.documents(memory.project.worktree, _sources(memory)))
    count = _count_of(len(documents), progress)
    synced = _sync(memory, documents, ANALYSIS, "analysis", count)
    records = memory.export(memory.filter(tags=("adr",), include_superseded=True))
    _supersede(memory, pages.superseded_pairs(list(records)))
    return synced


def analyze_history(
    memory: Bethink,
    *,
    limit: int = 2000,
    since: str | None = None,
    progress: Progress | None = None,
) -> Synced:
    """Keeps the commits that explain why something is as it is. A commit that was reverted hands over to the one that did so."""
    from bethink.ingest import git

    known = [source.uri for source in memory.store.sources(memory.scope, HISTORY)]
    hashes = [uri.removeprefix("git:") for uri in known]
    documents = list(git.documents(memory.project.worktree, limit, since, hashes))
    count = _count_of(len(documents), progress)
    synced = _sync(memory, documents, HISTORY, "git", count, lambda _: False)
    if uris := (*known, *synced.added):
        commits = memory.export(memory.filter(sources=uris, include_superseded=True))
        _supersede(memory, git.reverted_pairs(list(commits)))
    return synced


def _supersede(memory: Bethink, found: Sequence[tuple[Memory, Memory]]) -> None:
    """Lets the second of each pair supersede the first, where it does not yet."""
    for old, new in found:
        if old.superseded_by != new.id:
            memory.link(new.id, old.id, "supersedes")


def _find_files(
    memory: Bethink, starts: Sequence[Path], suffixes: tuple[str, ...] | None
) -> Iterator[Found | Skipped]:
    for start in starts:
        yield from walk(start, memory.project.worktree, suffixes)


def _within(memory: Bethink, starts: Sequence[Path]) -> Callable[[str], bool]:
    """Whether a walk through these folders and files would come upon a source. It leaves out what is hidden below them."""
    places = [PurePosixPath(place(start, memory.project.worktree)) for start in starts]

    def within(uri: str) -> bool:
        below = [
            path.relative_to(at) for at in places if (path := PurePosixPath(uri)).is_relative_to(at)
        ]
        return any(not any(part.startswith(".") for part in path.parts) for path in below)

    return within


def _exists(memory: Bethink, uri: str) -> bool:
    return (memory.project.worktree / path_of(uri)).exists()


def _sync(
    memory: Bethink,
    documents: Iterable[Document | Skipped],
    collection: str,
    type: str,
    progress: Callable[[float], None] | None,
    looked: Callable[[str], bool] = lambda _: True,
    warnings: Sequence[str] = (),
    dry_run: bool = False,
) -> Synced:
    """Brings a collection in step. `warnings` are what the reader says of its documents meanwhile."""
    synced = memory.sync(
        documents,
        collection=redact_name(collection),  # an import is named by its folder or file
        type=type,
        looked=looked,
        alive=lambda uri: _exists(memory, uri),
        progress=progress,
        dry_run=dry_run,
    )
    return synced._replace(hints=(*synced.hints, *warnings))


def claude_slug(root: Path) -> str:
    """The name under which Claude Code keeps a directory: everything but letters and digits is a dash, counted as UTF-16 does."""
    plain = unicodedata.normalize("NFC", str(root.resolve()))
    return re.sub(r"[^a-zA-Z0-9]", lambda found: "-" * (1 + (found[0] > "\uffff")), plain)
