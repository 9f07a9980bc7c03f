"""Registry of projects: ids by folder on this machine, in our own data directory.

No file inside a folder decides which project it is: anyone can put anything into an archive. Ids
are assigned here, and a project is recognised by its place: the folder, or its git directory if
that is elsewhere. Until the first write registers a project, its id is derived from its place and a
key that never leaves the data directory. So all processes agree on it without writing anything, and
nobody else can compute it.

A repository also gets a mark, a file with a random name in its git directory. The mark alone proves
nothing. It has to be known here, and its project has to be gone from the registered place: then the
repository was moved. While the original still exists, anything else with its mark is a copy. A
repository without the mark, at the place of one that has it, is another repository.

There is one small file per place, written atomically. A damaged one affects only that place, and
the database still knows its project (`project.recognise`).
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from bethink.config import data_directory
from bethink.text import sha256, textfile

MARKS_FOLDER = "bethink"  # folder of marks in a git directory; each installation has its own mark
MOST_MARKS = 32  # marks that are read: an archive may contain any number
_LARGEST = 100_000  # bytes read from a file
ID_LENGTH = 16
_HEX = frozenset("0123456789abcdef")


class Record(NamedTuple):
    """Project that is, or was, registered at a place."""

    id: str
    mark: str = ""  # "" if none could be written: then the place alone counts
    team: str = ""  # name in a team, if the user joined it
    moved: bool = False  # whether it was found at another place since


class Entry(NamedTuple):
    """Projects of one place, latest last. The place is not stored: a path may contain a secret."""

    records: tuple[Record, ...] = ()
    made: int = 0  # ids that were derived from this place and registered
    damage: str = ""  # digest of the file, if it is unreadable

    @property
    def is_empty(self) -> bool:
        """True if no project is known at this place."""
        return not self.records and not self.made


def folder() -> Path:
    return data_directory() / "projects"


# Looking up


def look_up(place: str, git: Path | None) -> Record | None:
    """Registered project at a place with the git directory `git`. Writes nothing."""
    entry = read(place)
    if git:
        for record in reversed(entry.records):
            if record.mark and _has_mark(git, record.mark) and _is_here(record, place, git):
                return record
    unmarked = [record for record in entry.records if not record.mark]
    if unmarked:
        return unmarked[-1]
    return next((record for record, _ in _find_moved(place, git)), None) if git else None


def _is_here(record: Record, place: str, git: Path) -> bool:
    """Return True if a project is here, or came back; False for a copy left behind."""
    if not record.moved:
        return True
    last, _ = _read_mark(git, record.mark)
    return last != place and not _may_be_at(last, record.mark)


def _find_moved(place: str, git: Path) -> Iterator[tuple[Record, str]]:
    """Yield projects with a mark in this git directory that are gone from their registered place.

    Each comes with that place.
    """
    for mark, earlier, _ in read_marks(git):
        for record in read(earlier).records if earlier != place else ():
            if record.mark == mark and not record.moved and not _may_be_at(earlier, mark):
                yield record, earlier


def derive_id(place: str) -> str:
    """Id of an unregistered project, the same for all processes of this user."""
    entry = read(place)
    salt = f"{entry.made}{entry.damage}\0{place}".encode("utf-8", "surrogateescape")
    return sha256(_load_key(str(folder())) + salt).hexdigest()[:ID_LENGTH]


def is_usable() -> bool:
    """Return True if derived ids are stable."""
    derive_id("")
    return (folder() / "key").is_file()


@lru_cache(maxsize=8)
def _load_key(where: str) -> bytes:
    """Load the key for derived ids, or create it. If it cannot be saved, it lasts for this process."""
    path = Path(where, "key")
    with suppress(OSError):
        if len(key := path.read_bytes()) >= 32:
            return key
    fresh = os.urandom(32)
    partial = path.with_name(f".key.{os.getpid()}-{os.urandom(4).hex()}")
    try:
        _make_folder()
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(fresh)
        if path.exists() and path.stat().st_size < 32:
            partial.replace(path)  # a damaged one
        else:
            path.hardlink_to(partial)  # fails if another process was first
    except OSError:
        pass
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    with suppress(OSError):
        if len(key := path.read_bytes()) >= 32:
            return key
    return fresh


# Registering


def register(place: str, git: Path | None, id: str, team: str = "") -> None:
    """Register a project at a place, instead of the current one. Raises OSError on failure."""
    _make_folder()
    with textfile.alone(folder()):
        entry, before = read(place), look_up(place, git)
        if before and before.id == id:
            known = before in entry.records and not before.moved
            if known and before.team == team and (before.mark or not git):
                return
            mark = before.mark
        else:
            mark = ""
        moved = [one for one in _find_moved(place, git) if one[0].id == id] if git else []
        # Write the mark first: an entry without its mark would disown the repository.
        if git:
            mark = _write_mark(git, mark or os.urandom(16).hex(), place, id)
        kept = [one for one in entry.records if one.mark and one != before and one.id != id]
        made = entry.made + (id == derive_id(place))
        write(place, Entry((*kept, Record(id, mark, team)), made))
        for record, earlier in moved:
            left = read(earlier)
            rows = (one._replace(moved=True) if one == record else one for one in left.records)
            write(earlier, left._replace(records=tuple(rows)))


def register_new(place: str, git: Path | None) -> str:
    """Register a project under a new, unused id, and return it."""
    id = os.urandom(ID_LENGTH // 2).hex()
    register(place, git, id)
    return id


# The files


def _make_folder() -> None:
    """Create the folder of the registry and missing parents, accessible only to their owner."""
    missing = [one for one in (folder(), *folder().parents) if not one.is_dir()]
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)


def file_of(place: str) -> Path:
    name = sha256(place.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return folder() / f"{name}.json"


def read(place: str) -> Entry:
    """Entry of a place; empty if it is missing or damaged."""
    try:
        data = _read_bytes(file_of(place))
    except OSError:
        return Entry()
    return _parse(data) or Entry(damage=sha256(data).hexdigest())


def write(place: str, entry: Entry) -> None:
    """Writes the entry of a place whole. A damaged one is kept beside it."""
    path = file_of(place)
    if read(place).damage:
        path.replace(path.with_suffix(".damaged"))
    records = [record._asdict() for record in entry.records]
    _make_folder()
    with textfile.replace(path) as stream:
        json.dump({"made": entry.made, "records": records}, stream)


def list_entries() -> list[Entry]:
    """All readable entries."""
    return [entry for _, entry in _scan() if entry]


def list_damaged() -> list[Path]:
    """The files of the registry that cannot be understood."""
    return [path for path, entry in _scan() if entry is None]


def _scan() -> Iterator[tuple[Path, Entry | None]]:
    for path in sorted(folder().glob("*.json")):
        try:
            entry = _parse(_read_bytes(path))
        except OSError:
            entry = None
        yield path, entry


def _parse(data: bytes) -> Entry | None:
    try:
        value = json.loads(data)
        records = tuple(_parse_record(one) for one in value["records"])
        return Entry(records, int(value["made"]))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _parse_record(value: Mapping[str, object]) -> Record:
    id, mark, team = (str(value.get(name, "")) for name in ("id", "mark", "team"))
    if len(id) != ID_LENGTH or not _HEX.issuperset(id + mark):
        raise ValueError(f"{id!r} is not an id")
    return Record(id, mark, team, bool(value.get("moved")))


def _read_bytes(path: Path) -> bytes:
    """The start of a regular file. A pipe or a device is not waited for."""
    if not path.is_file():
        raise FileNotFoundError(path)
    with path.open("rb") as stream:
        return stream.read(_LARGEST)


# Marks


def read_marks(git: Path) -> Iterator[tuple[str, str, str]]:
    """Marks in a git directory: name, place and id they were written for."""
    try:
        with os.scandir(git / MARKS_FOLDER) as found:
            names = [one.name for one in islice(found, MOST_MARKS)]
    except OSError:
        return
    for name in filter(_HEX.issuperset, names):
        with suppress(OSError):
            if _has_mark(git, name):
                yield name, *_read_mark(git, name)


def _read_mark(git: Path, mark: str) -> tuple[str, str]:
    """Place and id that a mark was written for."""
    text = _read_bytes(git / MARKS_FOLDER / mark).decode("utf-8", "surrogateescape")
    id, _, place = text.rstrip("\n").partition("\n")
    return place, id


def _write_mark(git: Path, mark: str, place: str, id: str) -> str:
    """Write a mark and return its name, or "" where it cannot be written."""
    path = git / MARKS_FOLDER / mark
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        if not path.parent.is_symlink():
            with textfile.replace(path) as stream:
                stream.write(f"{id}\n{place}\n")
    return mark if _has_mark(git, mark) else ""


def _has_mark(git: Path, mark: str) -> bool:
    """Return True if a git directory itself contains a mark; a link could lead elsewhere."""
    try:
        links = (git / MARKS_FOLDER).is_symlink() or (git / MARKS_FOLDER / mark).is_symlink()
        return not links and (git / MARKS_FOLDER / mark).is_file()
    except OSError:
        return False


def _may_be_at(place: str, mark: str) -> bool:
    """Return True if the repository with this mark is, or could be, at a place.

    A folder without access may contain it.
    """
    return not all(is_gone(Path(place, *git, MARKS_FOLDER, mark)) for git in ((".git",), ()))


def is_gone(path: Path) -> bool:
    """Return True if nothing exists at a path. An inaccessible path may exist."""
    try:
        path.stat()
    except (OSError, ValueError) as error:
        return isinstance(error, FileNotFoundError | NotADirectoryError)
    return False
