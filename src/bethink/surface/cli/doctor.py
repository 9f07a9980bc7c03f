"""`doctor`: looks at everything that Bethink stands on, one line each, and says how to mend what is not well."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bethink import __version__, config
from bethink.embed import fingerprint, models
from bethink.embed.base import WINDOW
from bethink.errors import BethinkError, EmbeddingError
from bethink.hooks import state
from bethink.hosts import check
from bethink.hosts.place import InstallPlace, portable_command
from bethink.store.connection import OLDEST_SQLITE
from bethink.surface.cli import console
from bethink.surface.cli.console import Bar, Listing, Result, open_memory, project
from bethink.surface.cli.install import user_place
from bethink.surface.cli.parsing import command
from bethink.surface.layout import FORMATS, many, plain, size, style

if TYPE_CHECKING:
    from argparse import Namespace
    from contextlib import AbstractContextManager

    from bethink.api import Bethink

PACKAGES = ("apsw", "numpy", "onnxruntime", "tokenizers")
LEAST_FREE = 200_000_000  # bytes: room for the write-ahead log and for a backup of a small database
PARTS = {
    "database": "every page can be read",
    "memory": "every text is what was written",
    "full-text index": "agrees with the memories",
    "word counts": "agree with the memories",
    "vectors": "each belongs to a memory",
    "permissions": "only you can read the files",
}
SERVER_PARTS = {  # of a PostgreSQL database
    "memory": PARTS["memory"],
    "full-text index": PARTS["full-text index"],
    "word counts": PARTS["word counts"],
    "vectors": PARTS["vectors"],
    "tenants": "kept apart by the database",
    "audit trail": "unbroken",
    "clock": "agrees with the server's",
}
DEEP = ("memory", "audit trail")  # what only `--deep` looks at
MENDS = {
    "rebuild": "bethink doctor --fix",
    "permissions": "bethink doctor --fix",
    "reindex": "bethink doctor --fix",
    "restore": "Save what can be read with `bethink export -o FILE`, then put a backup in the database's place.",
}


class Finding(NamedTuple):
    check: str
    ok: bool
    message: str
    fix: str = ""


@command(
    "doctor",
    """
    --deep    read every page, every memory and the model's files
    --fix     mend permissions, the index, missing vectors and agents' entries
    """,
    formats=FORMATS,
)
def doctor(args: Namespace) -> Result:
    """Check versions, settings, database, indexes, permissions, embedding model and free space; and for every connected agent
    that its entries are there, its hooks run, the MCP server answers, and when something was captured last. Ends with 0 only
    when all is well; each problem says how to mend it.

    Examples:
      bethink doctor
      bethink doctor --deep
      bethink doctor --fix
      bethink doctor --json | jq '.[] | select(.ok | not)'
    """
    if args.fix:
        mend_memory(args)
        mend_agents(args)
    findings = [*examine_memory(args), *examine_agents(args)]
    problems = sum(not finding.ok for finding in findings)
    return Result(
        [finding._asdict() for finding in findings],
        lambda: render_findings(findings),
        listing=Listing(Finding._fields, "findings", "finding"),
        notes=[f"{many(problems, 'problem')} found."] if problems else [],
        code=1 if problems else 0,
    )


def render_findings(findings: Sequence[Finding]) -> Iterator[str]:
    for finding in findings:
        mark = style("ok     ", "green") if finding.ok else style("PROBLEM", "red")
        yield f"{mark}  {finding.check}: {plain(finding.message)}"
        if finding.fix and not finding.ok:
            yield f"         mend: {plain(finding.fix)}"


# Agents


def examine_agents(args: Namespace) -> Iterator[Finding]:
    """Every agent that is connected, from its files to what was captured."""

    try:
        found = list(check.find_connections(agent_places(args)))
        if not found:
            yield Finding("agents", True, "none is connected; `bethink install` does it")
        for one in (*check.examine(found), *check.check_pauses()):
            yield Finding(f"{one.host} {one.name}".strip(), *one[2:])
    except BethinkError as error:
        yield Finding("agents", False, error.message, error.hint or "")


def agent_places(args: Namespace) -> list[InstallPlace]:
    """Where agents are connected: for the user, and for the project that this is."""

    user, root = user_place(), project(args).worktree
    here = [] if root == Path.home() else [user._replace(root=root, words=portable_command())]
    return [user, *here]


def mend_agents(args: Namespace) -> None:

    try:
        for outcome in check.mend(list(check.find_connections(agent_places(args)))):
            if outcome.status in ("made", "changed"):
                console.note(args, f"fixed: entries in {outcome.path}")
            elif outcome.status == "failed":
                console.talk(f"could not do it ({outcome.path}): {' '.join(outcome.reasons)}")
    except BethinkError as error:
        console.talk(f"could not mend: {error.message}")


# Memory


def examine_memory(args: Namespace) -> Iterator[Finding]:
    yield from check_versions()
    if not (yield from check_settings(args)):
        return
    try:
        with open_quietly(args) as memory:
            path = path_of(memory)
            yield Finding("database", True, f"opens: {path or getattr(memory.store, 'path', '')}")
            yield from check_store(memory, args.deep)
            for folder in find_folders(path):
                loose = find_loose(folder)
                message = loose or f"{folder} is yours"
                name = "hooks folder" if folder == state.folder() else "folder"
                yield Finding(name, not loose, message, "bethink doctor --fix")
            yield from check_model(memory, args.deep)
            if path is not None:
                yield check_space(path)
    except BethinkError as error:
        yield Finding("database", False, error.message, error.hint or "")


def open_quietly(args: Namespace) -> AbstractContextManager[Bethink]:
    """The memory without warnings about settings, which are findings here."""
    from argparse import Namespace

    return open_memory(Namespace(**{**vars(args), "quiet": True}))


def path_of(memory: Bethink) -> Path | None:
    """The file that memories are in; None where a server keeps them."""
    found = str(getattr(memory.store, "path", memory.config.database))
    return None if "://" in found else Path(found)


def check_versions() -> Iterator[Finding]:
    from importlib import metadata

    found = ".".join(map(str, sys.version_info[:3]))
    said = f"Python {found}, Bethink {__version__}"
    yield Finding("python", sys.version_info >= (3, 11), said, "Use Python 3.11 or later.")
    for package in PACKAGES:
        try:
            yield Finding(package, True, metadata.version(package))
        except metadata.PackageNotFoundError:
            yield Finding(package, False, "not installed", f"pip install {package}")
    fix = "pip install -U apsw"
    try:
        import apsw

    except ImportError as error:
        yield Finding("sqlite", False, f"cannot be loaded: {error}", fix)
        return
    sound = apsw.SQLITE_VERSION_NUMBER >= OLDEST_SQLITE
    risk = "" if sound else " can corrupt a shared database"
    yield Finding("sqlite", sound, f"SQLite {apsw.sqlite_lib_version()}{risk}", fix)


def check_settings(args: Namespace) -> Generator[Finding, None, bool]:
    """Returns whether the settings can be used."""

    try:
        found = config.load(project(args).root, {"database": args.database})
    except BethinkError as error:
        yield Finding("settings", False, error.message, error.hint or "")
        return False
    for warning in found.warnings:
        yield Finding("settings", False, warning, "Mend or unset the variable.")
    if not found.warnings:
        yield Finding("settings", True, "can be read")
    return True


def check_store(memory: Bethink, deep: bool) -> Iterator[Finding]:
    problems = memory.check(deep)
    parts = SERVER_PARTS if path_of(memory) is None else PARTS
    broken = {problem.part for problem in problems}
    for part in dict.fromkeys((*parts, *broken)):
        for problem in problems:
            if problem.part == part:
                fix = MENDS.get(problem.repair, problem.repair)
                yield Finding(part, False, problem.message, fix)
        if part not in broken and (deep or part not in DEEP):
            yield Finding(part, True, parts[part])


def find_folders(database: Path | None) -> list[Path]:
    """The folders whose permissions matter: that of the database, and that of the hooks."""
    found = [*([database.parent] if database else []), state.folder()]
    return [path for path in found if os.name == "posix" and path.is_dir()]


def find_loose(path: Path) -> str | None:
    """What is wrong with a folder's permissions. Our own folders are for the owner alone; others must only not be open to changes."""
    mode = path.stat().st_mode
    shown = f"(mode {stat.S_IMODE(mode):04o})"
    if is_ours(path):
        return f"others can look into {path} {shown}" if mode & 0o077 else None
    open_to_all = mode & 0o022 and not mode & stat.S_ISVTX
    return f"others can change {path} {shown}" if open_to_all else None


def is_ours(path: Path) -> bool:

    ours = (config.data_directory(), state.folder())
    return path.name == ".bethink" or path.resolve() in [one.resolve() for one in ours]


def check_model(memory: Bethink, deep: bool) -> Iterator[Finding]:

    name = memory.config.embedding.strip()
    if name in ("none", ""):
        yield Finding("model", True, "none is set; memories are found by words")
        return
    has_files = name not in ("hashing", "http")
    try:
        if has_files and not models.installed(name):
            raise models.missing(name)
        if has_files and deep:
            models.verify(name)
        model = fingerprint(memory.config, WINDOW)
    except EmbeddingError as error:
        yield Finding("model", False, error.message, error.hint or "bethink model pull")
        return
    hashes = " with the right hashes" if has_files and deep else ""
    yield Finding("model", True, f"{model}{hashes}")
    missing = memory.store.count_unembedded(model) if model else 0
    others = [other for other in memory.store.models() if other != model]
    said = "every memory has one"
    if missing:
        said = f"{many(missing, 'memory', 'memories')} without a vector of {model}"
        said += f"; there are vectors of {', '.join(others)}" if others else ""
    yield Finding("vectors of the model", not missing, said, "bethink reindex" if missing else "")


def check_space(path: Path) -> Finding:
    free = shutil.disk_usage(path.parent).free
    needed = max(LEAST_FREE, path.stat().st_size if path.exists() else 0)
    fix = f"Free some space: at least {size(needed)} are wanted."
    return Finding("disk", free >= needed, f"{size(free)} free", fix)


def mend_memory(args: Namespace) -> None:
    """Repairs what can be repaired without losing anything. What fails here shows up again in the findings."""
    try:
        with open_quietly(args) as memory:
            path = path_of(memory)
            problems = memory.check()
            for folder in find_folders(path):
                if find_loose(folder) and is_ours(folder):
                    attempt(args, f"set {folder} to mode 0700", partial(folder.chmod, 0o700))
            for file in (Path(f"{path}{suffix}") for suffix in ("", "-wal", "-shm") if path):
                if file.exists() and file.stat().st_mode & 0o077:
                    attempt(args, f"set {file} to mode 0600", partial(file.chmod, 0o600))
            if any(problem.repair in ("rebuild", "reindex") for problem in problems):
                attempt(args, "made the full-text index anew", memory.store.rebuild)
            if memory.config.embedding.strip() not in ("none", ""):
                with Bar(args, "embedding") as bar:
                    embed = partial(memory.reindex, progress=bar)
                    attempt(args, "embedded what had no vector", embed)
    except BethinkError as error:
        console.talk(f"could not mend: {error.message}")


def attempt(args: Namespace, what: str, action: Callable[[], object]) -> None:
    try:
        done = action()
    except (BethinkError, OSError) as error:
        console.talk(f"could not do it ({what}): {error}")
    else:
        if done != 0:
            console.note(args, f"fixed: {what}")
