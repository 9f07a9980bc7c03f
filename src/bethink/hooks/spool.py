"""The spool: a small file for each transcript that grew and waits for the worker of its database.

`note` is all that a hook has time for. `wake` starts a detached worker: it survives the agent, keeps none of its files open, and
there is one for each database at a time. The worker renames an entry that it is reading, so that a note made meanwhile is a separate
entry; one that a killed worker leaves behind is taken up by the next.

An entry survives a kill of the process, not a power cut: the transcript is the truth, and the next turn notes it again.
This module knows no store and reads no transcript.
"""

# ruff: noqa: PTH100, PTH111
# Paths are strings where a hook passes, whose whole time is counted in milliseconds.
# No `from __future__ import annotations`: NamedTuple compiles each annotation that is a string, and every hook loads this.
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bethink import agents, system
from bethink.config import Config, data_directory
from bethink.errors import BethinkError
from bethink.hooks import state
from bethink.hooks.state import Hook
from bethink.model import NOTHING
from bethink.project import SHARED_FOLDER, is_paused
from bethink.text import sha256

if TYPE_CHECKING:
    from bethink.project import Project

NEW, TAKEN = ".json", ".taken"
UNDER_WAY = ("prompt", "pre-compact", "post-compact")  # events after which a turn goes on
SHARED_EVENT = "shared"  # the event of a folder that colleagues share
DEFAULTS = Config()

# The variables that a worker keeps of a hook's environment, beside the keys of the configured models: where things are and
# which language to use; nothing of the session.
_KEPT = frozenset(
    "PATH HOME USER LOGNAME TEMP TMP TMPDIR LANG LANGUAGE TZ VIRTUAL_ENV "
    "USERPROFILE APPDATA LOCALAPPDATA SYSTEMROOT WINDIR COMSPEC PATHEXT "
    "HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY SSL_CERT_FILE SSL_CERT_DIR".split()
)
KEPT_PREFIXES = ("BETHINK_", "XDG_", "LC_", "PYTHON", "PG")


class SpoolEntry(NamedTuple):
    """A transcript that waits to be read."""

    host: str
    transcript: str
    session: str
    directory: str
    event: str
    noted_at: float  # seconds since the epoch
    database: str
    silent: bool = False  # of a host that tells no times: whether what is unread was said while memory was paused
    attempts: int = 0  # begun by a worker without getting any further
    places: Mapping[str, str] = (
        NOTHING  # the session's variables for where the agent keeps its files
    )


def folder() -> Path:
    return data_directory() / "spool"


# Noting


def note(hook: Hook, database: str, project: "Project | None" = None) -> None:
    """Note that a transcript of a project's session grew.

    While memory is paused, note only that the new part has to be skipped.
    """
    event, host, session = hook.event, hook.host, hook.session
    silent = is_paused(hook.directory, project.scope if project else None)
    agent = agents.find(host)
    untimed = not agent.transcripts.timed
    # A call that the host made for itself, such as a compaction: its transcript is never written.
    aside = event == "subagent-stop" and not hook.agent
    if aside or (silent and not untimed) or not (hook.transcript or session):
        return
    transcript = os.path.abspath(hook.transcript) if hook.transcript else ""
    about = f"{host}\0{transcript or session}"
    path = folder() / f"{key_of(database)}-{_hash(about)}{NEW}"
    if event == "prompt" and not untimed and path.exists():
        return  # it waits already
    if untimed:
        before = read(path), read(path.with_suffix(TAKEN))
        silent = silent or any(one.silent for one in before if one)
    directory = str(project.worktree) if project else hook.directory
    entry = SpoolEntry(
        host, transcript, session, directory, event, time.time(), full_name(database), silent
    )
    # The worker may have been started by a session with other values.
    places = {name: os.environ[name] for name in agent.variables if name in os.environ}
    write(path, entry._replace(places=places))


def note_shared(project: "Project", database: str) -> None:
    """Note that a project has files that colleagues shared, if there is a folder of them."""
    shared = project.worktree / SHARED_FOLDER
    if not shared.is_dir() or is_paused(str(project.worktree), project.scope):
        return
    path = folder() / f"{key_of(database)}-{_hash(str(shared))}{NEW}"
    where = str(project.worktree)
    write(
        path, SpoolEntry("", str(shared), "", where, SHARED_EVENT, time.time(), full_name(database))
    )


def write(path: Path, entry: SpoolEntry) -> None:
    state.write_json(path, {**entry._asdict(), "places": dict(entry.places)})


def full_name(database: str) -> str:
    """A database under the one name that all processes give it, wherever they were started."""
    is_url = "://" in database or not database
    return database if is_url else os.path.abspath(os.path.expanduser(database))


def key_of(database: str) -> str:
    """Key of a database, for its entries and its lock.

    The environment may name the tenant and user of a team's database. A worker inherits it, so that tenants never read each other's entries.
    """
    who = ("BETHINK_TENANT", "BETHINK_USER") if "://" in database else ()
    return _hash("\0".join((full_name(database), *(os.environ.get(name, "") for name in who))))[:12]


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


# Looking


def list_waiting() -> list[SpoolEntry]:
    """Everything that waits for a worker, of all databases, the oldest first."""
    return sorted(filter(None, map(read, list_entries())), key=lambda entry: entry.noted_at)


def list_entries(database: str = "") -> list[Path]:
    """List the entries of one database, or of all, oldest first, including unfinished ones."""
    prefix = key_of(database) if database else ""
    found: list[tuple[float, str]] = []
    with suppress(OSError):  # there is no folder yet
        for one in os.scandir(folder()):
            with suppress(OSError):  # a worker has just done with it
                if one.name.startswith(prefix) and one.name.endswith((NEW, TAKEN)):
                    found.append((one.stat().st_mtime, one.path))
    return [Path(path) for _, path in sorted(found)]


def read(path: Path) -> SpoolEntry | None:
    """An entry, or None if it is broken or gone."""
    try:
        return SpoolEntry(**state.read_json(path))
    except TypeError:
        return None


# Taking away, for the worker


def take(path: Path) -> tuple[Path, SpoolEntry] | None:
    """Claim an entry and count the attempt, before anything can go wrong.

    Return None if it is gone, or is broken and was removed.
    """
    taken = path.with_suffix(TAKEN)
    left = read(taken)
    try:
        path.replace(taken)
    except OSError:
        return None
    entry = read(taken)
    if entry is None:
        state.note_failure("", "", f"The entry {taken.name} of the spool was damaged.")
        taken.unlink(missing_ok=True)
        return None
    entry = entry._replace(attempts=max(entry.attempts, left.attempts if left else 0) + 1)
    write(taken, entry)
    return taken, entry


# The lock


@contextmanager
def lock(database: str, inherited: int | None = None) -> Iterator[bool]:
    """Lock a database for its one worker; True if this process got the lock.

    The system releases the lock when the process ends, however it ends.
    """
    descriptor = acquire(lock_file(database)) if inherited is None else inherited
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def lock_file(database: str) -> Path:
    return folder() / f"{key_of(database)}.lock"


def acquire(file: Path) -> int | None:
    """Lock a file for this process. Return its descriptor, or None if another process holds it."""
    try:
        state.make_private(file.parent)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise BethinkError(
            f"{file.parent} cannot be written: {error.strerror or error}.", "Check its permissions."
        ) from error
    with suppress(OSError):  # a file system without locks: two workers only do the same work
        if not system.lock(descriptor, wait=False):
            os.close(descriptor)
            return None
    return descriptor


# Waking a worker


def wake(database: str, config: Config) -> None:
    """Start the worker of a database, unless there is nothing to do or one is running.

    A running worker looks once more after it released its lock, so nothing noted before this call is missed.
    """
    if not list_entries(database) or not sys.executable:
        return
    descriptor = acquire(lock_file(database))
    if descriptor is None:
        return
    # A URL may hold a password, and everybody can read a command line: the environment names the database.
    environment = worker_environment(config) | {"BETHINK_DATABASE": full_name(database)}
    try:
        # -P: whatever lies in the folder that a worker is started in is not its program.
        system.detach([sys.executable, "-P", "-m", "bethink.hooks.worker"], environment, descriptor)
    finally:
        os.close(descriptor)


_fixed: dict[str, str] = {}  # the environment for workers, if it is not that of this process


def fix_environment() -> None:
    """Give workers the present environment from now on, whatever this process takes over from hooks."""
    _fixed.update(os.environ)


def worker_environment(config: Config = DEFAULTS) -> dict[str, str]:
    """Return the environment of a worker, which finds this version of Bethink."""
    known = _fixed or os.environ
    wanted = _KEPT.union(list_key_variables(config))
    names = [one for one in known if one.upper() in wanted or one.startswith(KEPT_PREFIXES)]
    kept = {name: known[name] for name in names}
    here = Path(__file__).resolve().parents[2]
    paths = [os.path.abspath(part) for part in kept.get("PYTHONPATH", "").split(os.pathsep) if part]
    if here.name not in ("site-packages", "dist-packages"):
        paths = [str(here), *(path for path in paths if path != str(here))]
    if paths:
        kept["PYTHONPATH"] = os.pathsep.join(paths)
    return kept | {"BETHINK_HOOKS": "off"}


def list_key_variables(config: Config) -> list[str]:
    """Return the environment variables with the keys of the configured models."""
    found: list[str] = []
    if config.embedding != DEFAULTS.embedding:  # the default is a local model, without keys
        from bethink import embed

        provider = embed.find_provider(config.embedding)
        found += provider.variables if provider else ()
    if config.llm:
        from bethink import llm

        model = llm.find_provider(config.llm)
        found += model.variables if model else ()
    return found


# The last captures, for `doctor`


def note_capture(host: str) -> None:
    """Record that a transcript of a host was read now."""
    with suppress(BethinkError):  # only `doctor` misses it
        state.write_json(captures_file(), read_captures() | {host: time.time()})


def read_captures() -> dict[str, float]:
    """Time of the last capture of each host, in seconds since the epoch."""
    kept = state.read_json(captures_file())
    return kept if isinstance(kept, dict) else {}


def captures_file() -> Path:
    return state.folder() / "captures.json"
