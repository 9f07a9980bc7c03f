"""Which project a directory belongs to, and so which scopes a command sees.

The identity of a project is its git common directory, read from the files git keeps rather than by running git: every
worktree and sub-directory of a repository agrees on it. Outside git it is the nearest folder with `.bethink/`, else
the directory itself. Only a hash of the path is stored with memories.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from bethink.errors import InvalidInput


class Project(NamedTuple):
    root: Path  # where `.bethink/` belongs: shared by all worktrees
    worktree: Path  # the checkout that the directory is in
    identity: str
    name: str

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
    """The project that a directory, by default the current one, belongs to."""
    try:
        start = (directory or Path.cwd()).resolve()
    except FileNotFoundError:
        start = Path("/")  # the current directory was removed under us
    for folder in (start, *start.parents):
        common = _common(folder / ".git")
        if common is not None:
            return _project(common.parent if common.name == ".git" else folder, folder, common)
    for folder in (start, *start.parents):
        if os.path.isdir(folder / ".bethink") and folder != Path.home():  # noqa: PTH112  (false, not an error, below an unreadable folder)
            return _project(folder, folder, folder)
    return _project(start, start, start)


def marked(project: Project) -> bool:
    """Whether something says that this is a project, rather than the directory somebody happened to be in."""
    return not gone(project.worktree / ".git") or (
        project.root != Path.home() and not gone(project.root / ".bethink")
    )


def _project(root: Path, worktree: Path, identity: Path) -> Project:
    return Project(
        root,
        worktree,
        sha256(str(identity).encode("utf-8", "surrogateescape")).hexdigest()[:16],
        root.name or "root",
    )


def of_team(project: Project) -> Project:
    """The project as a team knows it: by its name, since everybody keeps it in another folder."""
    return project._replace(identity=team_identity(project.name))


def team_identity(name: str) -> str:
    return sha256(f"team:{name.strip().casefold()}".encode()).hexdigest()[:16]


def gone(path: Path) -> bool:
    """Whether nothing is there. What only cannot be looked at may be there."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


@lru_cache(maxsize=64)  # every write tells it
def origin(project: Project) -> str:
    """What tells a repository from others wherever it lies: hashes of its remote's address and of when it was made. Nothing outside git."""
    common = _common(project.worktree / ".git")
    if common is None:
        return ""
    marks: list[str] = []

    def mark(name: str, value: str) -> None:
        marks.append(f"{name}:{sha256(value.encode()).hexdigest()[:16]}")

    with suppress(OSError):
        if remote := _remote((common / "config").read_text("utf-8", "replace")):
            mark("remote", remote)
    with suppress(
        OSError
    ):  # git writes this file once, and whoever moves a repository keeps its time
        mark("made", str((common / "description").stat().st_mtime_ns))
    return " ".join(marks)


def _remote(settings: str) -> str:
    """The address of `origin`, else of the first remote, the same however it is reached: without protocol, user and ending."""
    found: dict[str, str] = {}
    section = ""
    for line in map(str.strip, settings.splitlines()):
        if line.startswith("["):
            section = line
        elif (named := re.fullmatch(r'\[remote "(.*)"\]', section)) and (
            url := re.match(r"url\s*=\s*(.+)", line)
        ):
            found.setdefault(named.group(1), url.group(1).strip().strip('"'))
    address = found.get("origin") or next(iter(found.values()), "")
    address = re.sub(r"^([a-z+]+://)?([^@/]*@)?", "", address)
    host, mark, path = re.sub(r"^([^/:]+):(\d+/)?", r"\1/", address).partition("/")
    return f"{host.lower()}{mark}{path}".rstrip("/").removesuffix(".git")


def _common(git: Path) -> Path | None:
    """The directory that all worktrees share. A linked worktree's `.git` is a file that points to its own folder inside it."""
    try:
        if not git.exists():
            return None
        if git.is_dir():
            return git.resolve() if (git / "HEAD").exists() else None
        text = git.read_text("utf-8", "surrogateescape")
        if not text.startswith("gitdir:"):
            return None
        own = (git.parent / text[len("gitdir:") :].strip()).resolve()
        pointer = own / "commondir"
        return (
            (own / pointer.read_text("utf-8", "surrogateescape").strip()).resolve()
            if pointer.exists()
            else own
        )
    except (OSError, ValueError):
        return None
