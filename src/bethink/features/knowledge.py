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
    from bethink.ingest import markdown

    config = memory.config
    starts = folders(memory) if paths is None else paths
    found = _files(memory, starts, MARKDOWN)
    warnings: list[str] = []
    documents = markdown.documents(
        found, "headers", config.chunk_size, config.chunk_overlap, _noting(warnings)
    )
    within = _within(memory, starts)
    # What lies elsewhere was not looked at: it has vanished only where its file is gone, and only a whole run asks for that.
    looked = (lambda uri: within(uri) or not _exists(memory, uri)) if paths is None else within
    synced = _sync(memory, documents, INDEX, "markdown", progress, looked)
    return synced._replace(hints=(*synced.hints, *warnings))


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
    from bethink.ingest import markdown

    found = _files(memory, [path], MARKDOWN)
    warnings: list[str] = []
    documents = markdown.documents(found, "lines", IMPORT_TOKENS, IMPORT_OVERLAP, _noting(warnings))
    synced = _sync(memory, documents, f"import:{path.resolve().as_posix()}", "markdown", progress)
    return synced._replace(hints=(*synced.hints, *warnings))


def import_texts(
    memory: Bethink, texts: Mapping[str, str], *, progress: Progress | None = None
) -> Synced:
    """Takes in Markdown documents that are not files here, under the paths that they are given. A text under a known path replaces
    what was there; an empty one takes it away."""
    from hashlib import sha256

    from bethink.ingest import markdown
    from bethink.ingest.sync import Document

    config = memory.config
    warnings: list[str] = []
    manner = f"|given|{config.chunk_size}|{config.chunk_overlap}"

    def document(path: str, text: str) -> Document:
        passages = partial(
            markdown.taken_apart,
            text,
            path,
            "headers",
            config.chunk_size,
            config.chunk_overlap,
            _noting(warnings),
        )
        return Document(
            path, sha256(text.encode("utf-8", "replace")).hexdigest() + manner, passages
        )

    documents = [document(_given_path(path), text) for path, text in texts.items()]
    synced = memory.sync(
        documents,
        collection=GIVEN,
        type="markdown",
        looked=lambda _: False,
        alive=lambda _: True,
        progress=progress,
    )
    return synced._replace(hints=(*synced.hints, *warnings))


def _given_path(path: str) -> str:
    """A path as a document of this project may have: relative, without ways out, and none that a reader here uses."""
    parts = path.replace("\\", "/").split("/")
    clean = "/".join(part for part in parts if part not in ("", "."))
    taken = clean.strip() in ("", TOOL_FILES)
    if (
        taken
        or path.startswith("/")
        or ".." in parts
        or ":" in path
        or not path.isprintable()
        or len(path) > 500
    ):
        raise InvalidInput(
            f"'{path[:80]}' is no path for a document.",
            "Give a relative one such as docs/deploy.md.",
        )
    return clean


def _noting(warnings: list[str]) -> Callable[[str, str], None]:
    return lambda uri, sentence: warnings.append(f"{uri}: {sentence}")


def import_repo_map(memory: Bethink, file: Path, *, progress: Progress | None = None) -> Synced:
    """Takes in a repo map from a JSON file; it replaces all that this file brought before."""
    from bethink.ingest import code

    if not file.is_file():
        raise NotFound(
            f"There is no file {file}.", "`bethink map --json > repo-map.json` makes one."
        )
    document = code.read_map(_raw(file, code.LARGEST_MAP), file)
    return _sync(memory, [document], document.uri, "repomap", progress)


def _raw(file: Path, longest: int) -> bytes:
    """The file, or a little more than the longest that is read: the reader then says that it is too long."""
    try:
        with file.open("rb") as stream:
            return stream.read(longest + 1)
    except OSError as error:
        raise InvalidInput(
            f"{file} cannot be read: {error.strerror}.", "Check its permissions."
        ) from error


def map_code(memory: Bethink, *, progress: Progress | None = None) -> Synced:
    """Brings the map of the project's source code in step with memory."""
    from bethink.ingest import code

    _needs("tree_sitter", "The code map", "code")
    return _sync(memory, code.documents(_sources(memory)), CODE, "repomap", progress)


def repo_map(memory: Bethink) -> list[dict[str, Any]]:
    """The map of the project's source code in the form that `import_repo_map` reads. Stores nothing."""
    from bethink.ingest import code
    from bethink.ingest.sync import Skipped

    _needs("tree_sitter", "The code map", "code")
    return code.to_json(
        entry for entry in code.map_files(_sources(memory)) if not isinstance(entry, Skipped)
    )


def _sources(memory: Bethink) -> Iterable[Found | Skipped]:
    return _files(memory, [memory.project.worktree], None)  # scripts have no suffix


def analyze(memory: Bethink, *, progress: Progress | None = None) -> Synced:
    """Looks at the project's files and keeps what it finds: purpose, commands, routes, decisions, dependencies."""
    from bethink.ingest import analyze as analysis

    root = memory.project.worktree
    synced = _sync(
        memory,
        analysis.documents(root, _files(memory, [root], None)),
        ANALYSIS,
        "analysis",
        progress,
    )
    _relate_decisions(memory)
    return synced


def analyze_history(
    memory: Bethink,
    *,
    limit: int = 2000,
    since: str | None = None,
    progress: Progress | None = None,
) -> Synced:
    """Keeps the commits that explain why something is as it is."""
    from bethink.ingest import git

    known = [
        source.uri.removeprefix("git:") for source in memory.store.sources(memory.scope, HISTORY)
    ]
    documents = git.documents(memory.project.worktree, limit, since, known)
    synced = _sync(memory, documents, HISTORY, "git", progress, lambda _: False)
    _replace(memory, git.reverted_pairs(_everything(memory, HISTORY)))
    return synced


def _relate_decisions(memory: Bethink) -> None:
    """A decision record that says it was superseded hands over to the one that replaced it."""
    from bethink.ingest.analyze import decisions

    _replace(
        memory,
        decisions.superseded_pairs(
            list(memory.export(memory.filter(tags=("adr",), include_superseded=True)))
        ),
    )


def _everything(memory: Bethink, collection: str) -> list[Memory]:
    uris = tuple(source.uri for source in memory.store.sources(memory.scope, collection))
    return list(memory.export(memory.filter(sources=uris, include_superseded=True))) if uris else []


def _replace(memory: Bethink, found: Sequence[tuple[Memory, Memory]]) -> None:
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


def _files(
    memory: Bethink, starts: Sequence[Path], suffixes: tuple[str, ...] | None
) -> Iterator[Found | Skipped]:
    from bethink.ingest.files import walk

    for start in starts:
        yield from walk(start, memory.project.worktree, suffixes)


def _within(memory: Bethink, starts: Sequence[Path]) -> Callable[[str], bool]:
    """Whether a walk through these folders and files would come upon a source. It leaves out what is hidden below them."""
    from bethink.ingest.files import place

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
) -> Synced:
    from bethink.ingest.sync import storable

    return memory.sync(
        documents,
        collection=storable(collection),  # an import is named by its folder or file
        type=type,
        looked=looked,
        alive=lambda uri: _exists(memory, uri),
        progress=progress,
    )
