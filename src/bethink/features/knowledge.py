"""A project's own knowledge as memory: its documents, its code, what analysis finds, why its history went as it did, and what
agents remember by themselves (Claude Code's auto memory; AGENTS.md, CLAUDE.md and what they import).

Each function here walks the project, hands what a reader finds to `Bethink.sync` and returns what became of it. Nothing here
decides what a passage is: that is for the readers in `ingest/`. Files are only ever read.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

from bethink.api import Bethink
from bethink.config import Config
from bethink.errors import BethinkError, InvalidInput, NotFound
from bethink.features.promotion import BEGIN, END
from bethink.ingest import markdown
from bethink.ingest.files import Found, place, read_text, walk
from bethink.ingest.redact import redact_name
from bethink.ingest.sync import Document, Skipped, Synced
from bethink.text import textfile
from bethink.types import BUILTIN, Memory, Passage, path_of

MARKDOWN = (".md", ".markdown", ".mdx")
DOCUMENTS = (*MARKDOWN, ".rst", ".adoc", ".ipynb")
# Where projects keep documentation. It is read like the knowledge folders, unless the setting `knowledge` says what is.
DOCUMENTATION = ("docs", "doc", "documentation", "handbook", "wiki", "site", "notebooks")
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
    return [name for name in DOCUMENTATION if (root / name).resolve().is_relative_to(top)]


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


def check_watching() -> None:
    _needs("watchfiles", "Watching", "watch")


def _needs(library: str, what: str, extra: str) -> None:
    """Said once and before anything is read, and not of every file."""
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
    matters = lambda _, path: path.endswith((*DOCUMENTS, ".gitignore"))  # noqa: E731
    for _ in watch(*watched, watch_filter=matters, stop_event=stop, raise_interrupt=True):
        synced = index(memory, paths)
        if synced._replace(unchanged=0) != type(synced)():
            yield synced


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

    _needs("tree_sitter", "The code map", "code")
    found = list(_sources(memory))
    count = _count_of(code.count_sources(found), progress)
    return _sync(memory, code.documents(found), CODE, "repomap", count)


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


# What agents remember by themselves. A search finds it, with its file and line; it is never told unasked, because the agent's host has
# put it into the context already: every such memory has a source that begins with `types.BUILTIN`.

RULES, AUTO = "rules", "auto memory"  # what the mark of a memory says
VERSION = 1  # raised when the same file gives other passages
RULE_FILES = (
    "AGENTS.md",
    "CLAUDE.md",
    ".claude/CLAUDE.md",
    "CLAUDE.local.md",
    "GEMINI.md",
    ".github/copilot-instructions.md",
)
RULE_FOLDERS = (".claude/rules", ".cursor/rules")
RULE_SUFFIXES = (".md", ".markdown", ".mdc")
IMPORTED = (*RULE_SUFFIXES, ".mdx", ".txt")
LARGEST = 1_000_000  # bytes of one file
MOST_RULES = 100  # files of rules, with all that they import
LONGEST_SLUG = 200
KINDS = {"user": "preference", "feedback": "preference", "project": "fact", "reference": "document"}
_IMPORT = re.compile(r"(?:^|(?<=\s))@([\w~./\\-]{1,300})")
_CODE = re.compile(r"^[ \t]*(```|~~~)(?s:.)*?(?:^[ \t]*\1|\Z)|`[^`\n]{0,500}`", re.MULTILINE)
_OWN = re.compile(rf"^[ \t]*{BEGIN}[ \t\r]*$(?s:.)*?(?:^[ \t]*{END}[ \t\r]*$|\Z)", re.MULTILINE)


def sync_builtin(memory: Bethink) -> Synced:
    """Brings what the agents of this project remember by themselves in step with memory. Unchanged files cost next to nothing."""
    documents = (_read_builtin(found, mark, memory.config) for found, mark in find_builtin(memory))
    return _sync(memory, documents, "builtin", "markdown", None)


def find_builtin(memory: Bethink) -> Iterator[tuple[Found | Skipped, str]]:
    """Each file with its mark."""
    yield from ((found, RULES) for found in _find_rules(memory.project.worktree))
    yield from ((found, AUTO) for found in _find_auto_memory(memory.project.root))


def _find_rules(root: Path) -> Iterator[Found | Skipped]:
    """The files with rules for agents in a project, and what they import from inside it."""
    seen: set[Path] = set()
    waiting = [root / name for name in RULE_FILES]
    for folder in RULE_FOLDERS:
        path = _follow_inside(root, root / folder)
        found = walk(path, root, RULE_SUFFIXES) if path and path.is_dir() else ()
        waiting += [one.path for one in found if isinstance(one, Found)]
    while waiting and len(seen) < MOST_RULES:
        path = waiting.pop(0)
        real = _follow_inside(root, path)
        if real and real not in seen and real.is_file():
            seen.add(real)
            yield from walk(path, root)
            waiting += _find_imports(real)


def _follow_inside(root: Path, path: Path) -> Path | None:
    """Where a file of the project really is. One that a link leads to elsewhere is somebody's, not the project's."""
    try:
        return textfile.inside(root, path)
    except InvalidInput:
        return None


def _find_imports(path: Path) -> list[Path]:
    """The files that a file of rules brings in by `@path`, outside of code."""
    read = read_text(Found(path, path.name), LARGEST)
    if isinstance(read, Skipped):
        return []
    named = dict.fromkeys(name.rstrip(".") for name in _IMPORT.findall(_CODE.sub("", read[0])))
    return [path.parent / name for name in named if name.endswith(IMPORTED)]


def _find_auto_memory(root: Path) -> Iterator[Found | Skipped]:
    """The files of Claude Code's auto memory about a project; all its worktrees share them."""
    projects = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude") / "projects"
    name = claude_slug(root)
    if len(name) > LONGEST_SLUG:  # it is cut, and ends in a hash that not all versions make alike
        name = f"{name[:LONGEST_SLUG]}-*"
    for folder in sorted(projects.glob(f"{name}/memory")):
        if folder.is_dir():
            yield from walk(folder, root, RULE_SUFFIXES)


def claude_slug(root: Path) -> str:
    """The name under which Claude Code keeps a directory: everything but letters and digits is a dash, counted as UTF-16 does."""
    plain = unicodedata.normalize("NFC", str(root.resolve()))
    return re.sub(r"[^a-zA-Z0-9]", lambda found: "-" * (1 + (found[0] > "\uffff")), plain)


def _read_builtin(found: Found | Skipped, mark: str, config: Config) -> Document | Skipped:
    read = found if isinstance(found, Skipped) else read_text(found, LARGEST)
    uri = BUILTIN + found.uri
    if isinstance(read, Skipped):
        return read._replace(uri=uri)
    text, hash = read
    size, overlap = config.chunk_size, config.chunk_overlap
    passages = partial(_cut_builtin, text, found.uri, mark, size, overlap)
    return Document(uri, f"{hash}:b{VERSION}:{size}:{overlap}", passages, {"builtin": mark})


def _cut_builtin(text: str, uri: str, mark: str, size: int, overlap: int) -> list[Passage]:
    kind = None
    if mark == AUTO:
        fields = markdown.parse(text).frontmatter
        inner = fields.get("metadata")
        kind = KINDS.get(str((inner if isinstance(inner, dict) else fields).get("type")))
    # Rules that `bethink promote` put there are blank lines: they are not learned from their own copies, and every other line is
    # where it was.
    text = _OWN.sub(lambda found: "\n" * found[0].count("\n"), text)
    return [
        passage._replace(
            kind=kind if kind and passage.kind == "document" else passage.kind,
            metadata={**passage.metadata, "builtin": mark},
        )
        for passage in markdown.read_passages(text, uri, "headers", size, overlap, None)
    ]
