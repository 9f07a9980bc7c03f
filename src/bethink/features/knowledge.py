"""A project's own knowledge as memory, and setting a project up.

Knowledge comes from documents, code, analysis and history. The first functions walk the project,
pass the results of a reader to `Bethink.sync` and return what was stored. The readers in `ingest/`
decide what a passage is. For `init`, `make_files` creates missing files (`templates/`) and `take`
reads one part of the project. Each can be repeated: existing files are kept, and nothing else is
written.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from bethink import config as configuration
from bethink import ingest, plugins
from bethink.api import Bethink
from bethink.config import SETTINGS, Config, mask_password
from bethink.errors import BethinkError, InvalidInput, NotFound, StoreError, UsageError
from bethink.ingest import markdown
from bethink.ingest.files import Found, walk
from bethink.ingest.redact import redact_name
from bethink.ingest.sync import Document, Skipped, Synced
from bethink.model import Memory, path_of
from bethink.project import Project, find
from bethink.store.sqlite import SqliteStore
from bethink.text import textfile

MARKDOWN = (".md", ".markdown", ".mdx")
# Tokens of a passage of an imported document, and how many of them the next one repeats; the values of memo.
IMPORT_WINDOWS = ("lines", 400, 80)
_TEMPLATES = Path(__file__).with_name("templates")
# The collections: the code map, the knowledge folders, what analysis found, commits.
_CODE, _INDEX, ANALYSIS, GIT_HISTORY = "code", "index", "analysis", "git"
NO_PARSER = (
    "The code map needs tree-sitter, which is not installed.",
    "pip install 'bethink[code]'",
)

Progress = (
    Callable[[int, int], None] | None
)  # called with the number of sources done, and the total


# What is there


def find_folders(root: Path, config: Config) -> list[Path]:
    """Existing knowledge folders and files of a project: those of the setting, and its documentation."""
    names = (*config.knowledge, *find_documentation(root, config))
    return [path for name in names if (path := _inside(root, name)).exists()]


def find_documentation(root: Path, config: Config) -> list[str]:
    """README and documentation folders, which are read unless the setting `knowledge` is changed."""
    if "knowledge" in config.origins or config.knowledge != config._field_defaults["knowledge"]:
        return []
    top = root.resolve()
    there = [name for name in markdown.DOCUMENTATION if (root / name).exists()]
    return [name for name in there if (root / name).resolve().is_relative_to(top)]


def _inside(root: Path, name: str) -> Path:
    """Path of a configured folder, which must be inside the project.

    A project's settings come with a cloned repository, so they may not point elsewhere.
    """
    path = (root / Path(name).expanduser()).resolve()
    if not path.is_relative_to(root.resolve()):
        raise InvalidInput(
            f"The knowledge folder '{name}' lies outside the project.",
            "`bethink import --markdown` takes any path.",
        )
    return root / name


def _walk_project(memory: Bethink) -> Iterator[Found | Skipped]:
    return walk(memory.project.worktree, memory.project.worktree)


# Bringing it in step


def index(memory: Bethink, *, progress: Progress = None) -> Synced:
    """Synchronise memory with the knowledge folders and the documentation."""
    root, config = memory.project.worktree, memory.config
    documentation = find_documentation(root, config)
    readers = plugins.READERS.all()
    suffixes = (*MARKDOWN, *(suffix for reader in readers for suffix in reader.suffixes))
    found = [
        one
        for start in find_folders(root, config)
        for one in walk(start, root, suffixes)
        # `analyze` stores a decision record of the documentation as a whole.
        if markdown.find_kind(one.uri) != "decision"
        or one.uri.partition("/")[0] not in documentation
    ]
    cut = ("headers", config.chunk_size, config.chunk_overlap)
    return _sync_markdown(memory, found, _INDEX, cut, progress)


def import_markdown(memory: Bethink, path: Path, progress: Progress, dry_run: bool) -> Synced:
    """Import a Markdown file or a tree of them, in windows of lines. A repetition replaces what changed."""
    found = list(walk(path, memory.project.worktree, MARKDOWN))
    name = f"import:{path.resolve().as_posix()}"
    return _sync_markdown(memory, found, name, IMPORT_WINDOWS, progress, dry_run=dry_run)


def _sync_markdown(
    memory: Bethink,
    found: Sequence[Found | Skipped],
    collection: str,
    cut: tuple[str, int, int],
    progress: Progress,
    looked: Callable[[str], bool] = lambda uri: True,
    dry_run: bool = False,
) -> Synced:
    warnings: list[str] = []
    documents = markdown.documents(found, *cut, warnings)
    total = len(found)
    synced = _sync(memory, documents, collection, "markdown", total, progress, looked, dry_run)
    return synced._replace(hints=(*synced.hints, *warnings))


def remove_import(memory: Bethink, path: Path, dry_run: bool) -> Synced:
    """Retire an import of Markdown or a repo map, as if its files had vanished."""
    memory.require_person("Taking an import back")
    place = path.resolve().as_posix()
    for collection in (f"import:{place}", f"repo-map:{place}"):
        if memory.store.sources(memory.scope, redact_name(collection)):
            return _sync(memory, [], collection, "markdown", dry_run=dry_run)
    raise NotFound(
        f"Nothing was imported from {path}.", "Name the file or folder as it was imported."
    )


def import_repo_map(memory: Bethink, file: Path, progress: Progress, dry_run: bool) -> Synced:
    """Import a repo map from a JSON file, replacing an earlier import of that file."""
    try:
        with file.open("rb") as stream:  # a little more than is allowed: the reader then says so
            raw = stream.read(ingest.code.LARGEST_MAP + 1)
    except OSError as error:
        raise NotFound(
            f"{file} cannot be read: {error.strerror}.",
            "`bethink map --json > repo-map.json` makes one.",
        ) from error
    document = ingest.code.read_map(raw, file)
    return _sync(memory, [document], document.uri, "repomap", 1, progress, dry_run=dry_run)


def map_code(memory: Bethink, *, progress: Progress = None) -> Synced:
    """Synchronise memory with the map of the project's source code."""
    _check_parser()
    found = ingest.code.find_sources(_walk_project(memory))
    return _sync(memory, ingest.code.documents(found), _CODE, "repomap", len(found), progress)


def repo_map(memory: Bethink) -> list[dict[str, Any]]:
    """Build the map of the project's source code for `import_repo_map`, without storing anything."""
    _check_parser()
    return ingest.code.to_json(ingest.code.map_files(_walk_project(memory)))


def _check_parser() -> None:
    """Raise one error before reading, instead of one for every file."""
    if find_spec("tree_sitter") is None:
        raise BethinkError(*NO_PARSER)


def analyze(memory: Bethink, *, progress: Progress = None) -> Synced:
    """Analyse the project's files and store purpose, commands, routes, decisions and dependencies.

    A superseded decision record points to its replacement.
    """
    documents = list(ingest.analyze.documents(memory.project.worktree, _walk_project(memory)))
    synced = _sync(memory, documents, ANALYSIS, "analysis", len(documents), progress)
    records = memory.export(memory.filter(tags=("adr",), include_superseded=True))
    _supersede(memory, ingest.analyze.pages.superseded_pairs(list(records)))
    return synced


def analyze_history(memory: Bethink, *, progress: Progress = None) -> Synced:
    """Store commits that explain a decision. A reverted commit points to its revert."""
    known = [source.uri for source in memory.store.sources(memory.scope, GIT_HISTORY)]
    hashes = [uri.removeprefix("git:") for uri in known]
    documents = list(ingest.git.documents(memory.project.worktree, hashes))
    total = len(documents)
    synced = _sync(memory, documents, GIT_HISTORY, "git", total, progress, looked=lambda _: False)
    if uris := (*known, *synced.added):
        commits = memory.export(memory.filter(sources=uris, include_superseded=True))
        _supersede(memory, ingest.git.reverted_pairs(list(commits)))
    return synced


def _supersede(memory: Bethink, found: Sequence[tuple[Memory, Memory]]) -> None:
    """Let the second memory of each pair supersede the first, unless it already does."""
    for old, new in found:
        if old.superseded_by != new.id:
            memory.link(new.id, old.id, "supersedes")


def _sync(
    memory: Bethink,
    documents: Iterable[Document | Skipped],
    collection: str,
    type: str,
    total: int = 0,
    progress: Progress = None,
    looked: Callable[[str], bool] = lambda uri: True,
    dry_run: bool = False,
) -> Synced:
    """Synchronise a collection. A reader may report a few more items than the total, such as broken links."""
    return memory.sync(
        documents,
        collection=redact_name(collection),  # an import is named by its folder or file
        type=type,
        alive=lambda uri: (memory.project.worktree / path_of(uri)).exists(),
        progress=progress and (lambda done: progress(min(done, total), total)),
        looked=looked,
        dry_run=dry_run,
    )


def claude_slug(root: Path) -> str:
    """Name of a directory in Claude Code's folder: non-alphanumerics become dashes, counted in UTF-16."""
    plain = unicodedata.normalize("NFC", str(root.resolve()))
    return re.sub(r"[^a-zA-Z0-9]", lambda found: "-" * (1 + (found[0] > "\uffff")), plain)


# Setting a project up

# The parts of a project in the order of reading: the most valuable first, in case the user stops it.
PARTS: dict[str, Callable[..., Synced]] = {"analyze": analyze, "index": index, "map": map_code}

# Settings of a machine or a person are not a project's.
MACHINE = ("busy_timeout", "embedding", "llm", "model")
IGNORE = (
    "# Bethink: memories are private, .bethink/config.toml may be shared",
    "/.bethink/memory.db*",
)


class FileStep(NamedTuple):
    """File that a project needs, and the action taken."""

    path: Path
    action: str  # made, extended, kept, failed
    reason: str = ""


class PartReport(NamedTuple):
    """Result for one part of the project."""

    part: str
    status: str  # done, skipped, failed, stopped
    synced: Synced | None = None
    reason: str = ""
    hint: str = ""


def project_at(directory: Path) -> Project:
    """Find the project to set up, or raise an error that explains why there is none."""
    try:
        next(directory.iterdir(), None)
    except OSError as error:
        raise NotFound(
            f"The directory {directory} cannot be read: {error.strerror or error}.",
            "Give the directory of a project.",
        ) from error
    project = find(directory)
    if project.root in (Path.home(), Path(project.root.anchor)) and not is_in_git(project):
        raise InvalidInput(
            f"{project.root} holds everything of yours; it is not a project.",
            "Give one: `bethink init ~/code/shop`.",
        )
    return project


def is_in_git(project: Project) -> bool:
    return (project.worktree / ".git").exists()


def make_files(project: Project, config: Config, local: bool) -> Iterator[FileStep]:
    """Create the files that a project needs, one by one, and report each."""
    name = next(iter(config.knowledge), "")
    folder = project.worktree / name
    # An existing knowledge folder named in the settings belongs to the user.
    own = "knowledge" in config.origins and folder.exists()
    if name and not Path(name).suffix and not own:
        for file in sorted(_TEMPLATES.rglob("*.md"), key=lambda file: (len(file.parts), file)):
            path = folder / file.relative_to(_TEMPLATES)
            yield _make_file(project.worktree, path, file.read_text("utf-8"))
    settings = configuration.project_file(project.root)
    yield _make_file(project.root, settings, settings_template())
    ignore = project.root / ".gitignore"
    if is_in_git(project) or local or ignore.exists():
        yield _make_file(project.root, ignore)


def _make_file(root: Path, path: Path, template: str | None = None) -> FileStep:
    """Create a file from its template if it is missing, or extend .gitignore, which has no template.

    A file is left as it was if that fails.
    """
    try:
        path = textfile.inside(root, path)
        was = textfile.read(path)
        if was is not None and (template is not None or IGNORE[-1] in was.splitlines()):
            return FileStep(path, "kept")
        end = textfile.line_end(was or "")
        text = template or _end_line(was or "", end) + end.join(IGNORE) + end
        if textfile.write(path, text, was):
            return FileStep(path, "made" if was is None else "extended")
        reason = "something else changed it at the same moment"
    except BethinkError as error:
        reason = error.message
    return FileStep(path, "failed", reason)


def settings_template() -> str:
    """Settings file with every setting commented out, its description and its default."""
    lines = [
        "# Settings of this project, for everyone who works on it. Yours are in your own file, which `bethink config` names."
    ]
    for key, setting in SETTINGS.items():
        if key not in configuration.PERSONAL_SETTINGS and not key.startswith(MACHINE):
            choices = f" One of {', '.join(setting.choices)}." if setting.choices else ""
            lines += [
                "",
                f"# {setting.help}{choices}",
                f"# {key} = {json.dumps(Config._field_defaults[key])}",
            ]
    return "\n".join(lines) + "\n"


def _end_line(text: str, end: str = "\n") -> str:
    return text if not text or text.endswith("\n") else text + end


def check_local(project: Project, config: Config, force: bool) -> None:
    """Refuse an impossible `--local` before anything is created."""
    root = str(project.root)
    if config.database:
        raise UsageError(
            f"The database {mask_password(config.database)} is set ({config.origins.get('database', 'command line')}) and would win over the project's own.",
            "Take that setting away where it is set.",
        )
    if root.encode("utf-8", "ignore").decode().splitlines() != [root]:
        raise InvalidInput(
            f"The path {root!r} cannot be kept in a list of projects.", "Rename the folder."
        )
    real = textfile.inside(project.root, project.local_database)
    if real.exists() and not configuration.trusts(project.root) and not force:
        raise UsageError(
            f"{project.local_database} already exists and may have come with the project: its memories would count as yours.",
            "Look into it with `bethink list --database .bethink/memory.db`; --force makes it yours, removing it starts anew.",
        )


def make_local(project: Project, config: Config) -> list[FileStep]:
    """Create a database in the project, and record that it belongs to the user.

    A new one is recorded first: otherwise it would look like one that came with the repository. An
    existing file must first prove to be a database.
    """
    path = project.local_database
    folder = _make_private(path.parent)
    with suppress(PermissionError):  # another user's folder; the database itself is still private
        folder.chmod(0o700)
    existed = path.exists()
    if existed:
        SqliteStore(path, config.busy_timeout).close()
    note = _trust(project.root)
    if not existed:
        SqliteStore(path, config.busy_timeout).close()
    return [note, FileStep(path, "kept" if existed else "made")]


def _trust(root: Path) -> FileStep:
    """Record that the database in a project belongs to the user."""
    path = configuration.data_directory() / "local-projects"
    with textfile.alone(_make_private(path.parent)):
        while not configuration.trusts(root):
            was = textfile.read(path)
            if textfile.write(path, f"{_end_line(was or '')}{root}\n", was, 0o600):
                return FileStep(path, "extended" if was else "made")
    return FileStep(path, "kept")


def _make_private(folder: Path) -> Path:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be made: {error.strerror or error}.",
            "Check permissions, or set BETHINK_HOME to a folder of yours.",
        ) from error
    return folder


def has_foreign_database(project: Project) -> bool:
    """Return True if the project contains a database that the user never accepted."""
    return project.local_database.exists() and not configuration.trusts(project.root)


def take(memory: Bethink, part: str, progress: Progress = None) -> PartReport:
    """Synchronise one part of the project with memory.

    An unreadable part is reported and the others continue; a database error stops everything.
    """
    try:
        return PartReport(part, "done", PARTS[part](memory, progress=progress))
    except StoreError:
        raise
    except BethinkError as error:
        status = "skipped" if error.message in NO_PARSER else "failed"
        return PartReport(part, status, None, error.message, error.hint or "")
