"""Which project a directory belongs to, and so which scopes a command sees; and when memory is paused there.

A repository is one project: all its worktrees and sub-directories share its git common directory, which is read from git's own
files rather than by running git. The first write puts the project's id into a file in that directory (`pin`), so the
memories of a repository that is moved or renamed are still its own. A clone has no such file; a copy has one, but the original
has the same, so the copy counts as another project. Outside git a project is the nearest folder with `.bethink/`, else the
directory itself, and is known by its path. Only the id is stored with memories.

While memory is paused, in a project or everywhere, hooks neither tell nor note anything. A transcript goes on meanwhile, so every
pause is kept with its times, also after it ended: whoever reads a transcript, now or in a year, passes over what was said in
between. A file of pauses that cannot be understood counts as a pause, since somebody who wanted one wrote it.
"""

import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from bethink.config import data_directory
from bethink.errors import BethinkError, InvalidInput
from bethink.text import sha256

NOTE = "bethink-project"  # in the git common directory: the id, and where that directory lay when it was written
LONGEST = 100_000  # bytes that are read of a file: those of git that are asked for are far smaller
_ID = re.compile(r"[0-9a-f]{16}")
EVERYWHERE = "everywhere"  # the scope of a pause that holds in every project


class Project(NamedTuple):
    root: Path  # where `.bethink/` belongs: shared by all worktrees
    worktree: Path  # the checkout that the directory is in
    identity: str
    name: str
    common: Path | None = None  # the git common directory

    @property
    def scope(self) -> str:
        return f"project:{self.identity}"

    def container(self, name: str) -> str:
        return f"container:{self.identity}/{container_name(name)}"

    @property
    def local_database(self) -> Path:
        return self.root / ".bethink" / "memory.db"


def container_name(name: str) -> str:
    plain = re.sub(r"[\W_]+", "-", name.strip().lower()).strip("-")
    if not plain:
        raise InvalidInput(
            f"'{name}' cannot name a container.",
            "Use letters and digits, such as `--container react-router`.",
        )
    return plain


def find(directory: Path | None = None) -> Project:
    """The project that a directory, by default the current one, belongs to. Writes nothing."""
    try:
        start = (directory or Path.cwd()).resolve()
    except FileNotFoundError:
        start = Path("/")  # the current directory was removed under us
    for folder in (start, *start.parents):
        git = folder / ".git"
        common = _common_directory(git)
        if common == git and (git.is_symlink() or git.is_file()):
            return Project(folder, folder, _hash(git), folder.name)
        if common is not None:
            root = common.parent if common.name == ".git" else folder
            return Project(root, folder, _identity(common), root.name or "root", common)
    marked = (
        folder
        for folder in (start, *start.parents)
        if os.path.isdir(folder / ".bethink") and folder != Path.home()  # noqa: PTH112  (false, not an error, below an unreadable folder)
    )
    root = next(marked, start)
    return Project(root, root, _hash(root), root.name or "root")


def of_team(project: Project) -> Project:
    """The project as a team knows it: by its name, since everybody keeps it in another folder."""
    return project._replace(identity=team_identity(project.name), common=None)


def team_identity(name: str) -> str:
    return sha256(f"team:{name.strip().casefold()}".encode()).hexdigest()[:16]


def is_gone(path: Path) -> bool:
    """Whether nothing is there. What only cannot be looked at may be there."""
    try:
        path.stat()
    except (OSError, ValueError) as error:
        return isinstance(error, FileNotFoundError | NotADirectoryError)
    return False


# The id of a repository


@lru_cache(maxsize=64)  # every write asks for it
def pin(project: Project) -> None:
    """Notes a repository's id where all its worktrees find it. A repository that cannot be written is known by its path."""
    common = project.common
    if common is None or _read_note(common) == (project.identity, str(common)):
        return
    partial = common / f".{NOTE}.{os.getpid()}"
    with suppress(OSError):
        text = f"{project.identity}\n{common}\n"
        partial.write_bytes(text.encode("utf-8", "surrogateescape"))
        partial.replace(common / NOTE)


def earlier_identities(project: Project) -> tuple[str, ...]:
    """By what a repository without a note may have been known: by its folder, before it was put under git or by an older version."""
    if project.common is None or _noted_identity(project.common):
        return ()
    return _hash(project.root), _hash(project.common)


def _identity(common: Path) -> str:
    """The noted id. Until there is one, a hash of the path and of when git made the directory: who comes to the place of a
    repository that was moved away is another project."""
    if noted := _noted_identity(common):
        return noted
    made = 0
    with suppress(OSError):
        # git writes this file once, and whoever restores a backup keeps its time
        made = int((common / "description").stat().st_mtime)
    return _hash(common, f"\0{made}")


def _noted_identity(common: Path) -> str | None:
    identity, place = _read_note(common)
    if identity and place != str(common) and _read_note(Path(place))[0] == identity:
        return None  # a copy: the original is still where it was
    return identity


def _read_note(common: Path) -> tuple[str | None, str]:
    try:
        identity, _, place = read_start(common / NOTE).partition("\n")
    except (OSError, ValueError):
        return None, ""
    return (identity, place) if _ID.fullmatch(identity) else (None, "")


def _hash(path: Path, more: str = "") -> str:
    return sha256(f"{path}{more}".encode("utf-8", "surrogateescape")).hexdigest()[:16]


# git's own files


def read_start(file: Path) -> str:
    """The text of a file; nothing of what is missing, or is a pipe that nobody writes to."""
    if not file.is_file():
        return ""
    with file.open("rb") as stream:
        return stream.read(LONGEST).decode("utf-8", "surrogateescape").strip()


def _common_directory(git: Path) -> Path | None:
    """The directory that all worktrees of a repository share; None where there is no repository.

    A `.git` that is a file or a link leads to a repository elsewhere. Anybody can write one, so it counts only if that repository
    names this checkout too; otherwise `.git` itself is returned, and the checkout is a project of its own, known by its path."""
    try:
        if not git.exists():
            return None
        if git.is_symlink():
            return git
        if git.is_dir():
            return git.resolve() if (git / "HEAD").exists() else None
        text = read_start(git)
        if not text.startswith("gitdir:"):
            return None
        own = (git.parent / text[len("gitdir:") :].strip()).resolve()
        if not own.exists():
            return None
        return _leads_back(own, git) or git
    except (OSError, ValueError):
        return None


def _leads_back(own: Path, git: Path) -> Path | None:
    """The common directory, if git's own folder of a checkout points back: that of a worktree by `gitdir`, of a submodule by its settings."""
    if common := read_start(own / "commondir"):
        back = own / read_start(own / "gitdir")
        return (own / common).resolve() if back.resolve() == git.resolve() else None
    settings = read_start(own / "config")
    worktree = re.search(r"^[ \t]*worktree[ \t]*=[ \t]*(\S.*)$", settings, re.MULTILINE)
    if worktree and (own / worktree[1].strip().strip('"')).resolve() == git.parent.resolve():
        return own
    return None


# When memory is paused there


class Pause(NamedTuple):
    scope: str  # of a project, or EVERYWHERE
    since: float  # seconds since the epoch
    until: float | None = None  # None: until it is resumed
    name: str = ""  # of the project, for people to read

    def holds(self, at: float) -> bool:
        return self.since <= at and (self.until is None or at < self.until)


def pauses_file() -> Path:
    return data_directory() / "pauses.json"


def read_pauses() -> list[Pause]:
    """Every pause, the oldest first."""
    try:
        import json  # most commands read no pause

        rows = json.loads(pauses_file().read_bytes())
        return sorted(map(_read_pause, rows), key=lambda pause: pause.since)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise BethinkError(
            f"The pauses in {pauses_file()} cannot be read ({error}), so memory counts as paused.",
            "Mend the file, or remove it to forget them.",
        ) from None


def _read_pause(row: Any) -> Pause:
    until = None if row["until"] is None else float(row["until"])
    return Pause(str(row["scope"]), float(row["since"]), until, str(row.get("name", "")))


def is_paused(directory: str, scope: str | None = None) -> bool:
    """Whether memory is paused now where a session works, or in the project that it belongs to, which outside git may be another."""
    try:
        return is_covered(read_pauses(), time.time(), scope, directory)
    except BethinkError:
        return True


def is_covered(
    pauses: Sequence[Pause], at: float, scope: str | None, directory: str | None
) -> bool:
    """Whether something was paused at a time, by the scope it belongs to or by the directory it was said in."""
    scopes = {pause.scope for pause in pauses if pause.holds(at)}
    if not scopes or EVERYWHERE in scopes or scope in scopes:
        return bool(scopes)
    return directory is not None and find(Path(directory) if directory else None).scope in scopes


def has_pause_turned(since: float) -> bool:
    """Whether memory was paused or resumed anywhere since then."""
    now = time.time()
    return any(
        pause.since >= since or (pause.until is not None and since <= pause.until <= now)
        for pause in read_pauses()
    )
