"""A project's own knowledge as memory: its documents, its code, what analysis finds, and why its history went as it did.

Each function here walks the project, hands what a reader finds to `Bethink.sync` and returns what became of it. Nothing here
decides what a passage is: that is for the readers in `ingest/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from bethink.api import Bethink
from bethink.errors import BethinkError, InvalidInput, NotFound
from bethink.features.memorytool import SOURCE as TOOL_FILES
from bethink.ingest import markdown
from bethink.ingest.files import place, walk
from bethink.ingest.sync import Document, Skipped, storable
from bethink.types import Batch, Change, Memory, Relation, path_of

if TYPE_CHECKING:
    from bethink.ingest.files import Found
    from bethink.ingest.sync import Document, Skipped, Synced

MARKDOWN = (".md", ".markdown", ".mdx")
# Tokens of a passage of an imported document, and how many of them the next one repeats; as memo, where this comes from, has it.
IMPORT_TOKENS, IMPORT_OVERLAP = 400, 80
CODE = "code"  # the collection of the code map
INDEX = "index"  # of the knowledge folders
GIVEN = "given"  # of documents that came as texts
ANALYSIS = "analysis"
HISTORY = "git"

Progress = Callable[[int, int], None]  # passages taken in, sources seen


def folders(memory: Bethink) -> list[Path]:
    """The knowledge folders and files of the project that exist, as the setting `knowledge` names them."""
    root = memory.project.worktree
    return [path for name in memory.config.knowledge if (path := _inside(root, name)).exists()]


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
    starts = folders(memory) if paths is None else paths
    found = _find_files(memory, starts, MARKDOWN)
    warnings: list[str] = []
    documents = markdown.documents(found, "headers", size, overlap, _collect(warnings))
    within = _within(memory, starts)
    # What lies elsewhere was not looked at: it has vanished only where its file is gone, and only a whole run asks for that.
    looked = (lambda uri: within(uri) or not _exists(memory, uri)) if paths is None else within
    return _sync(memory, documents, INDEX, "markdown", progress, looked, warnings)


def check_watching() -> None:
    _needs("watchfiles", "Watching", "watch")


def _needs(library: str, what: str, extra: str) -> None:
    """Said once and before anything is read, and not of every file."""
    from importlib.util import find_spec

    if find_spec(library) is None:
        raise BethinkError(
            f"{what} needs {library.replace('_', '-')}, which is not installed.",
            f"pip install 'bethink[{extra}]'",
        )


def follow(
    memory: Bethink, paths: Sequence[Path] | None = None, *, stop: Any = None
) -> Iterator[Synced]:
    """Indexes again whenever a watched file changes, and says what came of it, until interrupted or `stop` is set."""
    check_watching()
    from watchfiles import watch

    watched = [
        path if path.exists() else path.parent
        for path in (folders(memory) if paths is None else paths)
    ]
    matters = lambda _, path: path.endswith((*MARKDOWN, ".gitignore"))  # noqa: E731
    for _ in watch(*watched, watch_filter=matters, stop_event=stop, raise_interrupt=True):
        synced = index(memory, paths)
        if synced._replace(unchanged=0) != type(synced)():
            yield synced


def import_markdown(memory: Bethink, path: Path, *, progress: Progress | None = None) -> Synced:
    """Takes in one Markdown file or a tree of them, by windows of lines. Run again, it replaces what changed."""
    found = _find_files(memory, [path], MARKDOWN)
    warnings: list[str] = []
    documents = markdown.documents(
        found, "lines", IMPORT_TOKENS, IMPORT_OVERLAP, _collect(warnings)
    )
    collection = f"import:{path.resolve().as_posix()}"
    return _sync(memory, documents, collection, "markdown", progress, warnings=warnings)


def import_texts(
    memory: Bethink, texts: Mapping[str, str], *, progress: Progress | None = None
) -> Synced:
    """Takes in Markdown documents that are not files here, under the paths that they are given. A text under a known path replaces
    what was there; an empty one takes it away."""
    from hashlib import sha256

    size, overlap = memory.config.chunk_size, memory.config.chunk_overlap
    warnings: list[str] = []
    warn = _collect(warnings)
    documents = []
    for name, text in texts.items():
        path = _check_path(name)
        hash = sha256(text.encode("utf-8", "replace")).hexdigest()
        passages = partial(markdown.taken_apart, text, path, "headers", size, overlap, warn)
        documents.append(Document(path, f"{hash}|given|{size}|{overlap}", passages))
    synced = memory.sync(
        documents, collection=GIVEN, type="markdown", looked=lambda _: False, progress=progress
    )
    return synced._replace(hints=(*synced.hints, *warnings))


def _check_path(path: str) -> str:
    """A path as a document of this project may have: relative, without ways out, and none that a reader here uses."""
    parts = path.replace("\\", "/").split("/")
    clean = "/".join(part for part in parts if part not in ("", "."))
    is_free = clean.strip() not in ("", TOOL_FILES) and ".." not in parts and parts[0] != ""
    if not is_free or ":" in path or not path.isprintable() or len(path) > 500:
        raise InvalidInput(
            f"'{path[:80]}' is no path for a document.",
            "Give a relative one such as docs/deploy.md.",
        )
    return clean


def _collect(warnings: list[str]) -> Callable[[str, str], None]:
    return lambda uri, sentence: warnings.append(f"{uri}: {sentence}")


def import_repo_map(memory: Bethink, file: Path, *, progress: Progress | None = None) -> Synced:
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
    return _sync(memory, [document], document.uri, "repomap", progress)


def map_code(memory: Bethink, *, progress: Progress | None = None) -> Synced:
    """Brings the map of the project's source code in step with memory."""
    from bethink.ingest import code

    _needs("tree_sitter", "The code map", "code")
    return _sync(memory, code.documents(_sources(memory)), CODE, "repomap", progress)


def repo_map(memory: Bethink) -> list[dict[str, Any]]:
    """The map of the project's source code in the form that `import_repo_map` reads. Stores nothing."""
    from bethink.ingest import code

    _needs("tree_sitter", "The code map", "code")
    return code.to_json(
        entry for entry in code.map_files(_sources(memory)) if not isinstance(entry, Skipped)
    )


def _sources(memory: Bethink) -> Iterator[Found | Skipped]:
    return _find_files(memory, [memory.project.worktree], None)  # scripts have no suffix


def analyze(memory: Bethink, *, progress: Progress | None = None) -> Synced:
    """Looks at the project's files and keeps what it finds: purpose, commands, routes, decisions, dependencies. A decision
    record that says it was superseded hands over to the one that replaced it."""
    from bethink.ingest import analyze as analysis
    from bethink.ingest.analyze import decisions

    documents = analysis.documents(memory.project.worktree, _sources(memory))
    synced = _sync(memory, documents, ANALYSIS, "analysis", progress)
    records = memory.export(memory.filter(tags=("adr",), include_superseded=True))
    _supersede(memory, decisions.superseded_pairs(list(records)))
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
    documents = git.documents(memory.project.worktree, limit, since, hashes)
    synced = _sync(memory, documents, HISTORY, "git", progress, lambda _: False)
    if uris := (*known, *synced.added):
        commits = memory.export(memory.filter(sources=uris, include_superseded=True))
        _supersede(memory, git.reverted_pairs(list(commits)))
    return synced


def _supersede(memory: Bethink, found: Sequence[tuple[Memory, Memory]]) -> None:
    """Lets the second of each pair supersede the first, where it does not yet."""
    pairs = [(old, new) for old, new in found if old.superseded_by != new.id]
    if pairs:
        changes = tuple(
            Change(old.id, "supersede", {"superseded_by": new.id, "valid_to": new.created_at})
            for old, new in pairs
        )
        relations = tuple(Relation(new.id, old.id, "supersedes") for old, new in pairs)
        memory.store.write(
            Batch(at=memory.clock(), actor=memory.actor, change=changes, relate=relations)
        )


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
    progress: Progress | None,
    looked: Callable[[str], bool] = lambda _: True,
    warnings: Sequence[str] = (),
) -> Synced:
    """Brings a collection in step. `warnings` are what the reader says of its documents meanwhile."""
    synced = memory.sync(
        documents,
        collection=storable(collection),  # an import is named by its folder or file
        type=type,
        looked=looked,
        alive=lambda uri: _exists(memory, uri),
        progress=progress,
    )
    return synced._replace(hints=(*synced.hints, *warnings))
