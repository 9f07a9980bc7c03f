"""Setting a project up in one step: folders and templates, settings, .gitignore, perhaps a database of its own; then what
the project knows about itself is taken in.

`plan` looks and says what would be done, `apply` does one step of it, `take` reads one part of the project into memory.
Each may be repeated: what is there is kept. Nothing is printed here, and what a passage is, is for the readers in `ingest/`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bethink import config as configuration
from bethink.api import Bethink
from bethink.config import SETTINGS, Config, mask_password
from bethink.errors import BethinkError, InvalidInput, NotFound, StoreError, UsageError
from bethink.features import knowledge
from bethink.features.knowledge import Progress
from bethink.ingest.files import Found
from bethink.project import Project, find
from bethink.store.sqlite import SqliteStore
from bethink.text import textfile

if TYPE_CHECKING:
    from bethink.ingest.sync import Synced

# The parts of a project that are taken in, in this order: the most telling first, should somebody stop it.
PARTS: dict[str, Callable[..., Synced]] = {
    "analyze": knowledge.analyze,
    "index": knowledge.index,
    "map": knowledge.map_code,
}

# What keeps a template from being taken for knowledge.
FRONT = "---\nindex: false  # a template: take this line out when you have filled it, then run `bethink index`\n---\n"
OVERVIEW = (
    FRONT
    + """# Knowledge of this project

Markdown files in this folder are remembered by Bethink and found by `bethink search`. After a change run
`bethink index`; files that did not change are skipped. Each section becomes a memory, so one section should say one thing.

| where | what belongs there |
| --- | --- |
| `gotchas.md` | what goes wrong, and how it is avoided |
| `architecture/` | how the system is built, and why |
| `components/` | what each part does and how it is used |
| `domain/` | the words and the rules of the business |
| `patterns/` | how things are done here |

A file may begin with settings of its own between two lines of `---`; all may be left out:

```yaml
---
title: How orders are paid
kind: domain          # without it the folder decides, as in the table
tags: [orders, money]
importance: 8         # 0 to 10
index: false          # keeps the file out, as this one
---
```

The same words may stand in a comment before the first header: `<!-- vector-index: false -->` keeps the file out,
`<!-- bethink: kind=gotcha, importance=8 -->` sets several.
"""
)
GOTCHAS = (
    FRONT
    + """# Gotchas

## A short name of the trap

What happens, why, and what to do instead.
"""
)
FOLDERS = {
    "architecture": "How the system is built: its parts, how they talk, what was decided and why. One file for each subject.",
    "components": "What each part does, where it is, how it is used and tested. One file for each part.",
    "domain": "The words and rules of the business, as the people who own them say it. One file for each subject.",
    "patterns": "How things are done here: errors, tests, names, database access. One file for each pattern, with an example.",
}
# Settings of a machine or a person are not a project's.
MACHINE = ("busy_timeout", "embedding", "llm", "model")
IGNORED = (".bethink/memory.db", ".bethink/memory.db-wal", ".bethink/memory.db-shm")
IGNORE = (
    "# Bethink: memories are private, .bethink/config.toml may be shared",
    "/.bethink/memory.db*",
)


class FileStep(NamedTuple):
    """One file that a project needs, and what is done about it."""

    path: Path
    action: str  # make, extend, keep, fail
    text: str = ""
    was: str | None = None  # what the file held when it was looked at
    reason: str = ""


class PartReport(NamedTuple):
    """What became of one part of the project."""

    part: str
    status: str  # done, skipped, failed, stopped
    synced: Synced | None = None
    reason: str = ""
    hint: str = ""


class Ready(NamedTuple):
    """What can be searched now."""

    memories: int
    hints: tuple[str, ...] = ()


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


# Files


def plan(project: Project, config: Config, *, local: bool = False) -> list[FileStep]:
    """What setting up would make, change and keep. Looks only."""
    templates = _templates(project, config)
    steps = [_plan_file(project.worktree, path, text) for path, text in templates.items()]
    settings = configuration.project_file(project.root)
    steps.append(_plan_file(project.root, settings, settings_template()))
    ignore = project.root / ".gitignore"
    if is_in_git(project) or local or ignore.exists():
        steps.append(_plan_file(project.root, ignore))
    return steps


def _plan_file(root: Path, path: Path, template: str | None = None) -> FileStep:
    """What is to be done about a file: one with a template is made if it is not there; .gitignore is extended if need be."""
    try:
        path = textfile.inside(root, path)
        was = textfile.read(path)
    except BethinkError as error:
        return FileStep(path, "fail", reason=error.message)
    if was is not None and (template is not None or ignores(was)):
        return FileStep(path, "keep", was=was)
    end = textfile.line_end(was or "")
    text = template or _end_line(was or "", end) + end.join(IGNORE) + end
    return FileStep(path, "make" if was is None else "extend", text, was)


def _templates(project: Project, config: Config) -> dict[Path, str]:
    """The files of the first knowledge folder. One that the settings name and that is there is the user's own affair."""
    name = next(iter(config.knowledge), "")
    folder = project.worktree / name
    if not name or Path(name).suffix or ("knowledge" in config.origins and folder.exists()):
        return {}
    files = {folder / "README.md": OVERVIEW, folder / "gotchas.md": GOTCHAS}
    return files | {
        folder / part / "README.md": f"{FRONT}# {part.title()}\n\n{about}\n"
        for part, about in FOLDERS.items()
    }


def settings_template() -> str:
    """A settings file in which everything is commented out, with what each setting is for and its default."""
    lines = [
        "# Settings of this project, for everyone who works on it. Yours are in your own file: `bethink config --path`."
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


def ignores(text: str) -> bool:
    """Whether a .gitignore keeps the project's own database out, by whatever pattern."""
    from pathspec import GitIgnoreSpec

    try:
        spec = GitIgnoreSpec.from_lines(text.splitlines())
    except ValueError:  # a pattern that is none
        return IGNORE[-1] in text.splitlines()
    return all(spec.match_file(name) for name in IGNORED)


def apply(step: FileStep) -> FileStep:
    """Does one step. What goes wrong becomes a step that failed, with the reason; the file is then as it was."""
    if step.action not in ("make", "extend"):
        return step
    try:
        if textfile.write(step.path, step.text, step.was):
            return step
        reason = "something else changed it at the same moment"
    except BethinkError as error:
        reason = error.message
    return step._replace(action="fail", reason=reason)


# A database of its own


def check_local(project: Project, config: Config, *, force: bool = False) -> None:
    """Refuses, before anything is made, what `--local` cannot mean."""
    root = str(project.root)
    if config.database:
        raise UsageError(
            f"The database {mask_password(config.database)} is set ({config.origins.get('database', 'command line')}) and would win over the project's own.",
            "Take that setting away: `bethink config --unset database`.",
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
    if not real.parent.is_dir() and real.parent.exists():
        raise InvalidInput(f"{real.parent} is a file, not a directory.", "Move it away.")


def make_local(project: Project, config: Config) -> list[FileStep]:
    """Gives the project a database of its own and notes that it is the user's. A new one is noted first: without the note
    it would look like one that came with the repository. One that is here must first prove to be a database."""
    path = project.local_database
    folder = _make_private(path.parent, "Check permissions.")
    with suppress(PermissionError):  # somebody else's folder; the database itself is still private
        folder.chmod(0o700)
    existed = path.exists()
    if existed:
        SqliteStore(path, config.busy_timeout).close()
    note = _trust(project.root)
    if not existed:
        SqliteStore(path, config.busy_timeout).close()
    return [note, FileStep(path, "keep" if existed else "make")]


def _trust(root: Path) -> FileStep:
    """Notes that the database in a project is the user's own."""
    path = configuration.data_directory() / "local-projects"
    with textfile.alone(_make_private(path.parent, "Set BETHINK_HOME to a folder of yours.")):
        while True:
            was = textfile.read(path)
            if configuration.trusts(root):
                return FileStep(path, "keep", was=was)
            text = f"{_end_line(was or '')}{root}\n"
            if textfile.write(path, text, was, 0o600):
                return FileStep(path, "extend" if was else "make", text, was)


def _make_private(folder: Path, hint: str) -> Path:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder} cannot be made: {error.strerror or error}.", hint) from error
    return folder


def has_foreign_database(project: Project) -> bool:
    """Whether a database lies in the project that the user never made theirs."""
    return project.local_database.exists() and not configuration.trusts(project.root)


# Taking in


def take(memory: Bethink, part: str, progress: Progress | None = None) -> PartReport:
    """Brings one part of the project in step with memory. A part that cannot be read is told and the others go on; trouble
    with the database ends it all."""
    from importlib.util import find_spec

    if part == "map" and find_spec("tree_sitter") is None:
        reason, hint = "tree-sitter is not installed", "pip install 'bethink[code]'"
        return PartReport(part, "skipped", reason=reason, hint=hint)
    try:
        return PartReport(part, "done", PARTS[part](memory, progress=progress))
    except StoreError:
        raise
    except BethinkError as error:
        return PartReport(part, "failed", reason=error.message, hint=error.hint or "")


def count_documents(project: Project, config: Config) -> dict[str, int]:
    """The folders that are read as knowledge, and how many documents each holds."""
    root = project.worktree
    try:
        folders = knowledge.find_folders(root, config)
    except InvalidInput:  # reading them will say why
        return {}
    counts = {
        folder.relative_to(root).as_posix(): sum(
            isinstance(found, Found) for found in knowledge.find_documents(root, config, [folder])
        )
        for folder in folders
    }
    return {name: number for name, number in counts.items() if number}


def examine(memory: Bethink) -> Ready:
    """Counts what a search can find here."""
    here = memory.filter(scopes=(memory.scope,))
    return Ready(memory.store.count(here), memory.hints)
