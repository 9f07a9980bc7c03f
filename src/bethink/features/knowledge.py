"""A project's own knowledge as memory: its documents, its code, what analysis finds, and why its history went as it did; and setting a
project up for it in one step.

The first functions walk the project, hand what a reader finds to `Bethink.sync` and return what became of it. Nothing here
decides what a passage is: that is for the readers in `ingest/`. For `init`, `make_files` makes what is missing (`templates/`) and `take`
reads one part of the project. Each may be repeated: what is there is kept, and nothing else is written.
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
# Tokens of a passage of an imported document, and how many of them the next one repeats; as memo, where this comes from, has it.
IMPORT_WINDOWS = ("lines", 400, 80)
TEMPLATES = Path(__file__).with_name("templates")
# The collections: the code map, the knowledge folders, what analysis found, commits.
CODE, INDEX, ANALYSIS, HISTORY = "code", "index", "analysis", "git"
NO_PARSER = (
    "The code map needs tree-sitter, which is not installed.",
    "pip install 'bethink[code]'",
)

Progress = Callable[[int, int], None] | None  # is told how many sources are done, of how many


# What is there


def find_folders(root: Path, config: Config) -> list[Path]:
    """The knowledge folders and files of a project that exist, as the setting `knowledge` names them, and its documentation."""
    names = (*config.knowledge, *find_documentation(root, config))
    return [path for name in names if (path := _inside(root, name)).exists()]


def find_documentation(root: Path, config: Config) -> list[str]:
    """The README and the folders of documentation that are there and read because nobody set what is knowledge."""
    if "knowledge" in config.origins or config.knowledge != config._field_defaults["knowledge"]:
        return []
    top = root.resolve()
    there = [name for name in markdown.DOCUMENTATION if (root / name).exists()]
    return [name for name in there if (root / name).resolve().is_relative_to(top)]


def _inside(root: Path, name: str) -> Path:
    """A folder that the settings name. A project's file comes with a cloned repository: it may not point out of the project."""
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
    """Brings the knowledge folders and the documentation in step with memory."""
    root, config = memory.project.worktree, memory.config
    documentation = find_documentation(root, config)
    readers = plugins.READERS.all()
    suffixes = (*MARKDOWN, *(suffix for reader in readers for suffix in reader.suffixes))
    found = [
        one
        for start in find_folders(root, config)
        for one in walk(start, root, suffixes)
        # A decision record of the documentation is told as a whole by `analyze`.
        if markdown.find_kind(one.uri) != "decision"
        or one.uri.partition("/")[0] not in documentation
    ]
    cut = ("headers", config.chunk_size, config.chunk_overlap)
    return _sync_markdown(memory, found, INDEX, cut, progress)


def import_markdown(memory: Bethink, path: Path, progress: Progress, dry_run: bool) -> Synced:
    """Takes in one Markdown file or a tree of them, by windows of lines. Run again, it replaces what changed."""
    found = list(walk(path, memory.project.worktree, MARKDOWN))
    name = f"import:{path.resolve().as_posix()}"
    return _sync_markdown(memory, found, name, IMPORT_WINDOWS, progress, dry_run=dry_run)


def _sync_markdown(
    memory: Bethink,
    found: Sequence[Found | Skipped],
    collection: str,
    cut: tuple[str, int, int],
    progress: Progress,
    **how: Any,
) -> Synced:
    warnings: list[str] = []
    documents = markdown.documents(found, *cut, warnings)
    synced = _sync(memory, documents, collection, "markdown", len(found), progress, **how)
    return synced._replace(hints=(*synced.hints, *warnings))


def remove_import(memory: Bethink, path: Path, dry_run: bool) -> Synced:
    """Retires what was taken in from a Markdown file, a folder of them or a repo map, as if its files had vanished."""
    memory.require_person("Taking an import back")
    place = path.resolve().as_posix()
    for collection in (f"import:{place}", f"repo-map:{place}"):
        if memory.store.sources(memory.scope, redact_name(collection)):
            return _sync(memory, [], collection, "markdown", dry_run=dry_run)
    raise NotFound(
        f"Nothing was imported from {path}.", "Name the file or folder as it was imported."
    )


def import_repo_map(memory: Bethink, file: Path, progress: Progress, dry_run: bool) -> Synced:
    """Takes in a repo map from a JSON file; it replaces all that this file brought before."""
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
    """Brings the map of the project's source code in step with memory."""
    _check_parser()
    found = ingest.code.find_sources(_walk_project(memory))
    return _sync(memory, ingest.code.documents(found), CODE, "repomap", len(found), progress)


def repo_map(memory: Bethink) -> list[dict[str, Any]]:
    """The map of the project's source code in the form that `import_repo_map` reads. Stores nothing."""
    _check_parser()
    return ingest.code.to_json(ingest.code.map_files(_walk_project(memory)))


def _check_parser() -> None:
    """Said once and before anything is read, and not of every file."""
    if find_spec("tree_sitter") is None:
        raise BethinkError(*NO_PARSER)


def analyze(memory: Bethink, *, progress: Progress = None) -> Synced:
    """Looks at the project's files and keeps what it finds: purpose, commands, routes, decisions, dependencies. A decision
    record that says it was superseded hands over to the one that replaced it."""
    documents = list(ingest.analyze.documents(memory.project.worktree, _walk_project(memory)))
    synced = _sync(memory, documents, ANALYSIS, "analysis", len(documents), progress)
    records = memory.export(memory.filter(tags=("adr",), include_superseded=True))
    _supersede(memory, ingest.analyze.pages.superseded_pairs(list(records)))
    return synced


def analyze_history(memory: Bethink, *, progress: Progress = None) -> Synced:
    """Keeps the commits that explain why something is as it is. A commit that was reverted hands over to the one that did so."""
    known = [source.uri for source in memory.store.sources(memory.scope, HISTORY)]
    hashes = [uri.removeprefix("git:") for uri in known]
    documents = list(ingest.git.documents(memory.project.worktree, hashes))
    total = len(documents)
    synced = _sync(memory, documents, HISTORY, "git", total, progress, looked=lambda _: False)
    if uris := (*known, *synced.added):
        commits = memory.export(memory.filter(sources=uris, include_superseded=True))
        _supersede(memory, ingest.git.reverted_pairs(list(commits)))
    return synced


def _supersede(memory: Bethink, found: Sequence[tuple[Memory, Memory]]) -> None:
    """Lets the second of each pair supersede the first, where it does not yet."""
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
    **how: Any,
) -> Synced:
    """Brings a collection in step. A reader may tell of a few more than the total, such as links that lead nowhere."""
    return memory.sync(
        documents,
        collection=redact_name(collection),  # an import is named by its folder or file
        type=type,
        alive=lambda uri: (memory.project.worktree / path_of(uri)).exists(),
        progress=progress and (lambda done: progress(min(done, total), total)),
        **how,
    )


def claude_slug(root: Path) -> str:
    """The name under which Claude Code keeps a directory: everything but letters and digits is a dash, counted as UTF-16 does."""
    plain = unicodedata.normalize("NFC", str(root.resolve()))
    return re.sub(r"[^a-zA-Z0-9]", lambda found: "-" * (1 + (found[0] > "\uffff")), plain)


# Setting a project up

# The parts of a project that are taken in, in this order: the most telling first, should somebody stop it.
PARTS: dict[str, Callable[..., Synced]] = {"analyze": analyze, "index": index, "map": map_code}

# Settings of a machine or a person are not a project's.
MACHINE = ("busy_timeout", "embedding", "llm", "model")
IGNORE = (
    "# Bethink: memories are private, .bethink/config.toml may be shared",
    "/.bethink/memory.db*",
)


class FileStep(NamedTuple):
    """One file that a project needs, and what was done about it."""

    path: Path
    action: str  # made, extended, kept, failed
    reason: str = ""


class PartReport(NamedTuple):
    """What became of one part of the project."""

    part: str
    status: str  # done, skipped, failed, stopped
    synced: Synced | None = None
    reason: str = ""
    hint: str = ""


def project_at(directory: Path) -> Project:
    """The project to set up, or why there is none."""
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
    """Makes the files that a project needs, one by one, and says what was done about each."""
    name = next(iter(config.knowledge), "")
    folder = project.worktree / name
    # A knowledge folder that the settings name and that is there is the user's own affair.
    own = "knowledge" in config.origins and folder.exists()
    if name and not Path(name).suffix and not own:
        for file in sorted(TEMPLATES.rglob("*.md"), key=lambda file: (len(file.parts), file)):
            path = folder / file.relative_to(TEMPLATES)
            yield _make_file(project.worktree, path, file.read_text("utf-8"))
    settings = configuration.project_file(project.root)
    yield _make_file(project.root, settings, settings_template())
    ignore = project.root / ".gitignore"
    if is_in_git(project) or local or ignore.exists():
        yield _make_file(project.root, ignore)


def _make_file(root: Path, path: Path, template: str | None = None) -> FileStep:
    """Makes a file from its template if it is not there; .gitignore, which has none, is extended if need be. One that fails is as it was."""
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
    """A settings file in which everything is commented out, with what each setting is for and its default."""
    lines = [
        "# Settings of this project, for everyone who works on it. Yours are in your own file, which `bethink config` names."
    ]
    for key, setting in SETTINGS.items():
        if key not in configuration.PERSONAL and not key.startswith(MACHINE):
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
    """Refuses, before anything is made, what `--local` cannot mean."""
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
            f"{project.local_database} is already here, and it was not you who made it: its memories would be somebody else's words.",
            "Look into it with `bethink list --database .bethink/memory.db`; --force makes it yours, removing it starts anew.",
        )


def make_local(project: Project, config: Config) -> list[FileStep]:
    """Gives the project a database of its own and notes that it is the user's. A new one is noted first: without the note
    it would look like one that came with the repository. One that is here must first prove to be a database."""
    path = project.local_database
    folder = _make_private(path.parent)
    with suppress(PermissionError):  # somebody else's folder; the database itself is still private
        folder.chmod(0o700)
    existed = path.exists()
    if existed:
        SqliteStore(path, config.busy_timeout).close()
    note = _trust(project.root)
    if not existed:
        SqliteStore(path, config.busy_timeout).close()
    return [note, FileStep(path, "kept" if existed else "made")]


def _trust(root: Path) -> FileStep:
    """Notes that the database in a project is the user's own."""
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
    """Whether a database lies in the project that the user never made theirs."""
    return project.local_database.exists() and not configuration.trusts(project.root)


def take(memory: Bethink, part: str, progress: Progress = None) -> PartReport:
    """Brings one part of the project in step with memory. A part that cannot be read is told and the others go on; trouble
    with the database ends it all."""
    try:
        return PartReport(part, "done", PARTS[part](memory, progress=progress))
    except StoreError:
        raise
    except BethinkError as error:
        status = "skipped" if error.message in NO_PARSER else "failed"
        return PartReport(part, status, None, error.message, error.hint or "")
