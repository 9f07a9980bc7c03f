"""`doctor`: looks at everything that Bethink stands on, one line each, and says how to mend what is not well."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bethink.errors import BethinkError, EmbeddingError
from bethink.surface.cli import output
from bethink.surface.cli.parsing import FORMATS, Command
from bethink.surface.cli.progress import Bar
from bethink.surface.cli.session import opened, project

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from bethink.api import Bethink
    from bethink.install.host import Place

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


def doctor_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--deep", action="store_true", help="read every page, every memory and the model's files"
    )
    parser.add_argument(
        "--fix",
        action="store_true",
        help="mend permissions, the index, missing vectors and agents' entries",
    )


def doctor(args: Namespace) -> int:
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
        mend(args)
        mend_agents(args)
    findings = [*examine(args), *agents(args)]

    def text() -> None:
        for finding in findings:
            mark = (
                output.style("ok     ", "green") if finding.ok else output.style("PROBLEM", "red")
            )
            output.out(f"{mark}  {finding.check}: {output.plain(finding.message)}")
            if finding.fix and not finding.ok:
                output.out(f"         mend: {output.plain(finding.fix)}")

    output.show_list(
        args,
        [finding._asdict() for finding in findings],
        Finding._fields,
        text,
        "findings",
        "finding",
    )
    problems = sum(not finding.ok for finding in findings)
    if problems:
        output.talk(f"{output.many(problems, 'problem')} found.")
    return 1 if problems else 0


def examine(args: Namespace) -> Iterator[Finding]:
    yield from versions()
    if not (yield from loaded(args)):
        return
    try:
        with opened(quietly(args)) as memory:
            path = path_of(memory)
            yield Finding("database", True, f"opens: {path or getattr(memory.store, 'path', '')}")
            yield from stored(memory, args.deep)
            if path is not None:
                yield from folder(path)
            yield from embedding(memory, args.deep)
            if path is not None:
                yield from space(path)
    except BethinkError as error:
        yield Finding("database", False, error.message, error.hint or "")


def agents(args: Namespace) -> Iterator[Finding]:
    """Every agent that is connected, from its files to what was captured."""
    from bethink import __version__
    from bethink.install import check, command

    try:
        found = check.connected(agent_places(args))
        if not found:
            yield Finding("agents", True, "none is connected; `bethink install` does it")
        for one in check.examine(found, command.running(), __version__):
            yield Finding(f"{one.host} {one.name}", one.ok, one.message, one.fix)
        for one in check.paused():
            yield Finding(one.name, one.ok, one.message, one.fix)
    except BethinkError as error:
        yield Finding("agents", False, error.message, error.hint or "")


def agent_places(args: Namespace) -> list[Place]:
    """Where agents are connected: for the user, and for the project that this is."""
    from bethink.install import command
    from bethink.surface.cli.install import user_place

    user = user_place()
    root = project(args).worktree
    return (
        [user, user._replace(root=root, words=command.portable())]
        if root != Path.home()
        else [user]
    )


def mend_agents(args: Namespace) -> None:
    from bethink import __version__
    from bethink.install import check, command

    try:
        for outcome in check.mend(
            check.connected(agent_places(args)), command.running(), __version__
        ):
            if outcome.status in ("made", "changed"):
                output.note(args, f"fixed: entries in {outcome.path}")
            elif outcome.status == "failed":
                output.talk(f"could not do it ({outcome.path}): {' '.join(outcome.reasons)}")
    except BethinkError as error:
        output.talk(f"could not mend: {error.message}")


def quietly(args: Namespace) -> Namespace:
    from argparse import Namespace

    return Namespace(**{**vars(args), "quiet": True})  # warnings about settings are findings here


def path_of(memory: Bethink) -> Path | None:
    """The file that memories are in; None where a server keeps them."""
    found = str(getattr(memory.store, "path", memory.config.database))
    return None if "://" in found else Path(found)


def versions() -> Iterator[Finding]:
    from importlib import metadata

    from bethink import __version__

    found = ".".join(map(str, sys.version_info[:3]))
    yield Finding(
        "python",
        sys.version_info >= (3, 11),
        f"Python {found}, Bethink {__version__}",
        "Use Python 3.11 or later.",
    )
    for package in PACKAGES:
        try:
            yield Finding(package, True, metadata.version(package))
        except metadata.PackageNotFoundError:
            yield Finding(package, False, "not installed", f"pip install {package}")
    try:
        import apsw

        from bethink.store.connection import OLDEST_SQLITE
    except ImportError as error:
        yield Finding("sqlite", False, f"cannot be loaded: {error}", "pip install -U apsw")
        return
    sound = apsw.SQLITE_VERSION_NUMBER >= OLDEST_SQLITE
    yield Finding(
        "sqlite",
        sound,
        f"SQLite {apsw.sqlite_lib_version()}" + ("" if sound else " can corrupt a shared database"),
        "pip install -U apsw",
    )


def loaded(args: Namespace) -> Generator[Finding, None, bool]:
    """Returns whether the settings can be used."""
    from bethink import config

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


def stored(memory: Bethink, deep: bool) -> Iterator[Finding]:
    problems = memory.check(deep)
    parts = SERVER_PARTS if path_of(memory) is None else PARTS
    for part, well in parts.items():
        bad = [problem for problem in problems if problem.part == part]
        for problem in bad:
            yield Finding(part, False, problem.message, MENDS.get(problem.repair, problem.repair))
        if not bad and (deep or part not in DEEP):
            yield Finding(part, True, well)
    for problem in problems:
        if problem.part not in parts:
            yield Finding(
                problem.part, False, problem.message, MENDS.get(problem.repair, problem.repair)
            )


def folder(database: Path) -> Iterator[Finding]:
    if os.name != "posix":
        return
    found = loose(database.parent)
    yield Finding(
        "folder", found is None, found or f"{database.parent} is yours", "bethink doctor --fix"
    )


def loose(path: Path) -> str | None:
    """What is wrong with a folder's permissions. Our own folders are for the owner alone; others must only not be open to changes."""
    mode = path.stat().st_mode
    if own(path):
        return (
            f"others can look into {path} (mode {stat.S_IMODE(mode):04o})" if mode & 0o077 else None
        )
    return (
        f"others can change {path} (mode {stat.S_IMODE(mode):04o})"
        if mode & 0o022 and not mode & stat.S_ISVTX
        else None
    )


def own(path: Path) -> bool:
    from bethink.config import data_directory

    return path.name == ".bethink" or path.resolve() == data_directory().resolve()


def embedding(memory: Bethink, deep: bool) -> Iterator[Finding]:
    from bethink.embed import fingerprint, models
    from bethink.embed.base import WINDOW

    name = memory.config.embedding.strip()
    if name in ("none", ""):
        yield Finding("model", True, "none is set; memories are found by words")
        return
    try:
        if name not in ("hashing", "http"):
            if not models.installed(name):
                raise models.missing(name)
            if deep:
                models.verify(name)
        model = fingerprint(memory.config, WINDOW)
    except EmbeddingError as error:
        yield Finding("model", False, error.message, error.hint or "bethink model pull")
        return
    yield Finding(
        "model",
        True,
        f"{model}" + (" with the right hashes" if deep and name not in ("hashing", "http") else ""),
    )
    missing = memory.store.count_unembedded(model) if model else 0
    others = [other for other in memory.store.models() if other != model]
    if missing:
        said = f"{output.many(missing, 'memory', 'memories')} without a vector of {model}" + (
            f"; there are vectors of {', '.join(others)}" if others else ""
        )
        yield Finding("vectors of the model", False, said, "bethink reindex")
    else:
        yield Finding("vectors of the model", True, "every memory has one")


def space(path: Path) -> Iterator[Finding]:
    import shutil

    free = shutil.disk_usage(path.parent).free
    needed = max(LEAST_FREE, path.stat().st_size if path.exists() else 0)
    yield Finding(
        "disk",
        free >= needed,
        f"{output.size(free)} free",
        f"Free some space: at least {output.size(needed)} are wanted.",
    )


def mend(args: Namespace) -> None:
    """Repairs what can be repaired without losing anything. What fails here shows up again in the findings."""
    try:
        with opened(quietly(args)) as memory:
            path = path_of(memory)
            if path and loose(path.parent) and own(path.parent):
                attempt(args, f"set {path.parent} to mode 0700", lambda: path.parent.chmod(0o700))
            problems = memory.check()
            for file in (Path(f"{path}{suffix}") for suffix in ("", "-wal", "-shm") if path):
                if file.exists() and file.stat().st_mode & 0o077:
                    attempt(args, f"set {file} to mode 0600", lambda file=file: file.chmod(0o600))  # type: ignore[misc]
            if any(problem.repair in ("rebuild", "reindex") for problem in problems):
                attempt(args, "made the full-text index anew", memory.store.rebuild)
            if memory.config.embedding.strip() not in ("none", ""):
                with Bar(args, "embedding") as bar:
                    attempt(
                        args, "embedded what had no vector", lambda: memory.reindex(progress=bar)
                    )
    except BethinkError as error:
        output.talk(f"could not mend: {error.message}")


def attempt(args: Namespace, what: str, action: Callable[[], object]) -> None:
    try:
        done = action()
    except (BethinkError, OSError) as error:
        output.talk(f"could not do it ({what}): {error}")
    else:
        if done != 0 and not args.quiet:
            output.talk(f"fixed: {what}")


COMMANDS = {"doctor": Command(doctor, doctor_options, FORMATS)}
