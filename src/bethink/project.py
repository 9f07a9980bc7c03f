"""Find the project of a directory, which decides the scopes of a command; and pauses of memory.

A repository is one project: all its worktrees and sub-directories share its git common directory,
which is read from git's files without running git. Outside git a project is the nearest folder with
`.bethink/`, else the directory itself. The id comes from our registry, never from the folder:
`find` looks it up, the first write registers it (`pin`), and the database recognises a folder known
from an earlier version or a lost registry (`recognise`). In a team's database a project belongs to
the team only after the user joined it. Only the id is stored with memories.

While memory is paused, in a project or everywhere, hooks neither show nor record anything. A
transcript goes on meanwhile, so every pause is kept with its times, even after its end: a later
reading of the transcript skips those turns. An unreadable file of pauses counts as a pause, because
the user wanted one.
"""

import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from bethink import registry
from bethink.config import data_directory
from bethink.errors import BethinkError, InvalidInput
from bethink.model import Values
from bethink.text import sha256

OLD_NOTE = "bethink-project"  # file in a git directory: the id of a project until version 0.18
_LONGEST = 100_000  # bytes read from a file: the relevant files of git are far smaller
_ID = re.compile(r"[0-9a-f]{16}")
SHARED_FOLDER = ".bethink/shared"  # of a checkout, with what `bethink share` wrote
EVERYWHERE = "everywhere"  # scope of a pause in every project


class Project(NamedTuple):
    root: Path  # folder of `.bethink/`, shared by all worktrees
    worktree: Path  # checkout that contains the directory
    identity: str
    name: str
    common: Path | None = None  # the git common directory
    place: str = ""  # key in the registry; "" for a project without a folder here
    team: str = ""  # name in a team, once the user joined it
    confirmed: bool = False  # whether the id comes from the registry or the database

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
    """Return the project of a directory, by default the current one. Registers nothing."""
    located = locate(directory)
    record = registry.look_up(located.place, located.common)
    if record:
        return located._replace(identity=record.id, team=record.team, confirmed=True)
    return located._replace(identity=registry.derive_id(located.place))


def locate(directory: Path | None = None) -> Project:
    """Return the project of a directory without its id, without reading any file of ours."""
    try:
        start = (directory or Path.cwd()).resolve()
    except FileNotFoundError:
        start = Path("/")  # the current directory was removed
    folders = (start, *start.parents)
    for folder in folders:
        git = _read_git(folder / ".git")
        if git is None:
            continue
        if git.common is None:
            return _make(folder, folder, None)
        root = git.common.parent if git.common.name == ".git" else folder
        return _make(root, folder, git.common)
    for folder in folders:
        if is_git_directory(folder):
            return _make(folder, folder, folder)
        if os.path.isdir(folder / ".bethink") and folder != Path.home():  # noqa: PTH112  (false, not an error, below an unreadable folder)
            return _make(folder, folder, None)
    return _make(start, start, None)


def _make(root: Path, worktree: Path, common: Path | None) -> Project:
    place = root if common is None or common.name == ".git" else common
    return Project(root, worktree, "", root.name or "root", common, str(place))


def of_team(project: Project) -> Project:
    """Project with its id in a team's database, which depends on the joined name only.

    Each member has it in another folder. A project that was not joined stays separate: a folder may
    have any name.
    """
    return project._replace(identity=team_identity(project.team)) if project.team else project


def team_identity(name: str) -> str:
    return sha256(f"team:{name.strip().casefold()}".encode()).hexdigest()[:16]


# Registering


@lru_cache(maxsize=64)  # called by every write
def pin(project: Project) -> None:
    """Register a project on its first write. If that fails, its id is derived again the next time."""
    if project.confirmed and project.place:
        known = registry.look_up(project.place, project.common)
        # The user may have joined it to another project since this process found it.
        own = known or registry.Record(project.identity, team=project.team)
        with suppress(OSError):
            registry.register(project.place, project.common, own.id, own.team)


def recognise(
    project: Project,
    scopes: Iterable[tuple[str, str, str]],
    clean: Callable[[str], str],
    shared: bool = False,
) -> Project:
    """Return an unregistered project under the id by which a database knows it, and register that.

    `scopes` are the key, name and path of what the database holds, and `clean` makes a path as it would be written there. An id
    that the folder claims (the note of an earlier version, a hash of its path, a mark of ours) counts only if the database
    has that project in this very folder.
    """
    if project.confirmed:
        return project
    known = {
        key.removeprefix("project:"): path for key, _, path in scopes if key.startswith("project:")
    }
    claims = [one for one in earlier_identities(project) if one in known]
    here = str(project.root)
    claimed = [
        one for one in claims if known[one] == clean(here) or _is_checkout(known[one], project)
    ]
    if not claimed and _counts_by_path(project, shared):
        at_path = [one for one, path in known.items() if path == here]
        claimed = at_path if len(at_path) == 1 else []
    confirmed = project._replace(confirmed=True)
    if claimed:
        confirmed = confirmed._replace(identity=claimed[0])
        with suppress(OSError):
            registry.register(project.place, project.common, claimed[0])
    return confirmed


def recognise_team(
    project: Project, scopes: Iterable[tuple[str, str, str]], clean: Callable[[str], str]
) -> Project:
    """Return a project with its id in a team's database.

    A project that was used there by its name, before joining was required, stays joined.
    """
    if not project.team and not project.confirmed:
        known = {key: path for key, _, path in scopes}
        if known.get(f"project:{team_identity(project.name)}") == clean(str(project.root)):
            with suppress(OSError):
                return join(project, project.identity, project.name)
    return of_team(recognise(project, scopes, clean, shared=True))


def join(project: Project, identity: str, team: str = "") -> Project:
    """Register a folder as a known project, at the user's request. Raises OSError if that fails."""
    registry.register(project.place, project.common, identity, team)
    return of_team(project._replace(identity=identity, team=team, confirmed=True))


def find_joined(team: str) -> str:
    """Return the id of the project here that the user joined to a team's project, or ""."""
    wanted = team_identity(team)
    found = (record for entry in registry.list_entries() for record in reversed(entry.records))
    joined = (one.id for one in found if one.team and team_identity(one.team) == wanted)
    return next(joined, "")


def leave(project: Project) -> Project:
    """Register a folder as a new, separate project. Raises OSError if that fails."""
    fresh = registry.register_new(project.place, project.common)
    return project._replace(identity=fresh, team="", confirmed=True)


def _is_checkout(path: str, project: Project) -> bool:
    """Return True if a project's path in the database is another checkout of this repository."""
    return bool(path) and project.common is not None and locate(Path(path)).place == project.place


def _counts_by_path(project: Project, shared: bool) -> bool:
    """Return True if the path alone identifies the project.

    That holds outside git if its entry was lost, and if no registry can be kept. On another machine
    of the team the same path may be something else.
    """
    if not registry.is_usable():
        return True
    return not shared and project.common is None and registry.read(project.place).is_empty


def earlier_identities(project: Project) -> list[str]:
    """Ids that an unregistered folder claims. Anyone could have written or computed them."""
    found = [_hash(project.root)]
    if common := project.common:
        with suppress(OSError, ValueError):
            found.insert(0, read_start(common / OLD_NOTE).partition("\n")[0])
        with suppress(OSError):  # of a repository that could not be written to
            found.append(_hash(common, f"\0{int((common / 'description').stat().st_mtime)}"))
        found.append(_hash(common))
        found += [id for _, place, id in registry.read_marks(common) if place == project.place]
    else:
        found.append(_hash(project.root / ".git"))
    return list(filter(_ID.fullmatch, found))


def _hash(path: Path, more: str = "") -> str:
    """Id that earlier versions derived from a path."""
    return sha256(f"{path}{more}".encode("utf-8", "surrogateescape")).hexdigest()[:16]


# git's own files


class Repository(NamedTuple):
    """Target of a `.git` file or folder."""

    common: Path | None  # None: to a repository that does not name this checkout


def read_start(file: Path) -> str:
    """Read the start of a file; "" if it is missing or not a regular file."""
    if not file.is_file():
        return ""
    with file.open("rb") as stream:
        return stream.read(_LONGEST).decode("utf-8", "surrogateescape").strip()


def _read_git(git: Path) -> Repository | None:
    """Repository of a checkout, or None.

    A `.git` that is a file or a link leads to a repository elsewhere. Anyone can write one, so it
    counts only if that repository names this checkout too; otherwise the checkout is a separate
    project.
    """
    try:
        if not git.exists():
            return None
        if git.is_symlink():
            return Repository(None)
        if git.is_dir():
            return Repository(git.resolve()) if (git / "HEAD").exists() else None
        text = read_start(git)
        if not text.startswith("gitdir:"):
            return None
        own = (git.parent / text[len("gitdir:") :].strip()).resolve()
        if not own.exists():
            return None
        return Repository(_leads_back(own, git))
    except (OSError, ValueError):
        return None


def _leads_back(own: Path, git: Path) -> Path | None:
    """Common directory, if it names the checkout as a worktree or in a submodule's settings.

    `own` is git's folder of the checkout. For a worktree it has to be inside the common directory:
    anywhere else it could claim any repository.
    """
    if named := read_start(own / "commondir"):
        common = (own / named).resolve()
        back = (own / read_start(own / "gitdir")).resolve()
        listed = own.parent == common / "worktrees" and is_git_directory(common)
        return common if listed and back == git.resolve() else None
    settings = read_start(own / "config")
    worktree = re.search(r"^[ \t]*worktree[ \t]*=[ \t]*(\S.*)$", settings, re.MULTILINE)
    if worktree and (own / worktree[1].strip().strip('"')).resolve() == git.parent.resolve():
        return own
    return None


def is_git_directory(folder: Path) -> bool:
    """Return True if a folder is a git directory."""
    try:
        return (folder / "HEAD").is_file() and (folder / "objects").is_dir()
    except OSError:
        return False


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
    """All pauses, oldest first."""
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


def _read_pause(row: Values) -> Pause:
    until = None if row["until"] is None else float(row["until"])
    return Pause(str(row["scope"]), float(row["since"]), until, str(row.get("name", "")))


def is_paused(directory: str, scope: str | None = None) -> bool:
    """Return True if memory is paused now in a directory or in the session's project.

    Outside git these may differ.
    """
    try:
        return is_covered(read_pauses(), time.time(), scope, directory)
    except BethinkError:
        return True


def is_covered(
    pauses: Sequence[Pause], at: float, scope: str | None, directory: str | None
) -> bool:
    """Return True if memory was paused at a time, for a scope or for a directory."""
    scopes = {pause.scope for pause in pauses if pause.holds(at)}
    if not scopes or EVERYWHERE in scopes or scope in scopes:
        return bool(scopes)
    if directory is None:
        return False
    project = find(Path(directory) if directory else None)
    # An unregistered project may have been paused under the id of an earlier version.
    earlier = () if project.confirmed else earlier_identities(project)
    return any(f"project:{one}" in scopes for one in (project.identity, *earlier))


def has_pause_turned(since: float) -> bool:
    """Return True if memory was paused or resumed anywhere since a time."""
    now = time.time()
    return any(
        pause.since >= since or (pause.until is not None and since <= pause.until <= now)
        for pause in read_pauses()
    )
