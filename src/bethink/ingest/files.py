"""Files of a folder that are read, and their text.

`walk` leaves out what git ignores, what other tools put there (`node_modules`, virtual environments, caches) and what is
hidden. An error of one file or folder is a `Skipped` with its reason; the rest goes on. The order is always the same: the
files of a folder by name, then its folders by name. Symbolic links are not followed: their targets inside the project are found
under their own names, and a link that leads elsewhere is reported.

This module knows nothing about the content of a file, except whether it is text.
"""

# ruff: noqa: PTH100, PTH110, PTH112, PTH116, PTH118, PTH123, PTH206
# Paths are strings here: a Path for each folder and name of a large tree costs more than listing it.
import os
import re
import stat
import warnings
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from bethink import project
from bethink.errors import NotFound
from bethink.ingest.sync import Skipped

# Folders that hold other people's work or what a tool made of ours. `build`, `target` and `out` are missing because they are
# also names of folders that people write in; where they are made by a tool, git ignores them or they carry a marker.
_FOREIGN = frozenset(
    """
    .git .hg .svn .jj .bzr .bethink node_modules bower_components jspm_packages vendor third_party Pods Carthage DerivedData
    .venv __pycache__ __pypackages__ site-packages .tox .nox .eggs .mypy_cache .pytest_cache .ruff_cache .hypothesis htmlcov
    dist .next .nuxt .svelte-kit .turbo .parcel-cache .yarn .pnpm-store .gradle .terraform .bundle .dart_tool .cache
    """.split()
)
FOREIGN_ENDINGS = (".dist-info", ".egg-info")
# Names that mark a folder as not ours: a virtual environment, a conda environment, a cache (Cargo's `target` too), or another
# repository: a separate project, or ours checked out once more.
_MARKERS = frozenset("pyvenv.cfg conda-meta CACHEDIR.TAG .git".split())
LONGEST_IGNORE = 512 * 1024
MOST_PATTERNS = 5000
MOST_WILDCARDS = 3  # in one name: each more multiplies the time that a hostile pattern can take
EVERY_FOLDER = "(?P<ps_d>/)"  # what pathspec makes of `*/`
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_HEAD = 1024  # bytes in which a NUL says that a file is no text


class Found(NamedTuple):
    """A file to read. `uri` is its POSIX path from the project's root, or from `/` if it is outside."""

    path: Path
    uri: str


class Rules(NamedTuple):
    """The lines of one .gitignore, last one first, each with True if it ignores.

    `prefix` is the number of characters of a path that lead to its folder.
    """

    prefix: int
    patterns: list[tuple[re.Pattern[str], bool]]


def walk(start: Path, base: Path, suffixes: tuple[str, ...] = ("",)) -> Iterator[Found | Skipped]:
    """Return the files below a folder with one of the suffixes, or a file itself, even if git ignores it."""
    root = os.path.realpath(base)
    try:
        real = os.path.realpath(start)
        path = real if _is_inside(real, root) else os.path.abspath(start)
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        raise NotFound(
            f"There is no file or folder '{start}' that can be read.",
            "Check the path; a relative one counts from the current folder.",
        ) from None
    if not stat.S_ISDIR(mode):
        return iter([Found(Path(path), _uri(path, root))])
    return _find_files(path, root, suffixes)


def read_text(found: Found, longest: int = 10_000_000) -> tuple[str, str] | Skipped:
    """Return the text of a file and the SHA-256 of its bytes, or why there is none."""
    try:
        data = _read_bytes(found.path, longest)
    except (OSError, ValueError) as error:
        return Skipped(found.uri, _reason(error))
    if (at := data.find(b"\0", 0, _HEAD)) >= 0:
        return Skipped(found.uri, f"binary file (NUL at byte {at:,})")
    return unify_line_ends(_decode(data)), sha256(data).hexdigest()


def _decode(data: bytes) -> str:
    """Read UTF-8, or Windows-1252 where no letter beyond ASCII is valid UTF-8."""
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    is_older = "\ufffd" in text and not any("\x7f" < letter != "\ufffd" for letter in text)
    return data.decode("cp1252", "replace") if is_older else text


def unify_line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _uri(path: str, root: str) -> str:
    if _is_inside(path, root):
        path = path[len(root) :].lstrip(os.sep) or "."
    return one_line(path.replace(os.sep, "/"))


def one_line(name: str) -> str:
    """Escape a name for storage and display: invalid UTF-8, line ends and terminal controls, as `\\x0a`."""
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _reason(error: OSError | ValueError) -> str:
    return f"cannot be read: {getattr(error, 'strerror', None) or error}"


def _find_files(top: str, root: str, suffixes: tuple[str, ...]) -> Iterator[Found | Skipped]:
    """Walk through a folder and those below it, each with the rules of its parents, deepest first."""
    waiting = [(top, _read_rules_above(top, root))]
    while waiting:
        folder, rules = waiting.pop()
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            yield Skipped(_uri(folder, root), f"folder {_reason(error)}")
            continue
        names = {entry.name for entry in entries}
        if folder != top and not _MARKERS.isdisjoint(names):
            continue
        if ".gitignore" in names:
            rules = (_read_rules(Path(folder, ".gitignore"), folder), *rules)
        below = []
        for entry in entries:
            is_link = entry.is_symlink()
            is_folder = os.path.isdir(entry.path) if is_link else entry.is_dir()
            wanted = _is_wanted(entry.name, is_folder, suffixes)
            if not wanted or _is_ignored(entry.path, rules, is_folder):
                continue
            if is_link:
                real = os.path.realpath(entry.path)
                if not os.path.exists(real) or not (
                    _is_inside(real, root) or _is_inside(real, top)
                ):
                    reason = "symbolic link out of the project or to nothing, which is not followed"
                    yield Skipped(_uri(entry.path, root), reason)
            elif is_folder:
                below.append((entry.path, rules))
            else:
                yield Found(Path(entry.path), _uri(entry.path, root))
        waiting.extend(reversed(below))


def _is_wanted(name: str, is_folder: bool, suffixes: tuple[str, ...]) -> bool:
    if name.startswith("."):
        return False
    if is_folder:
        return name not in _FOREIGN and not name.endswith(FOREIGN_ENDINGS)
    return name.lower().endswith(suffixes)


def _read_rules_above(path: str, root: str) -> tuple[Rules, ...]:
    """Return the rules of the folders above a start. Rules that ignore the start itself are dropped."""
    if not _is_inside(path, root):
        return ()
    excluded = project.locate(Path(root)).root / ".git" / "info" / "exclude"
    rules: tuple[Rules, ...] = (_read_rules(excluded, root),)
    above = root
    for name in os.path.relpath(path, root).split(os.sep) if path != root else ():
        rules = (_read_rules(Path(above, ".gitignore"), above), *rules)
        above = os.path.join(above, name)
        if _is_ignored(above, rules, True):
            rules = ()
    return rules


def _read_rules(file: Path, folder: str) -> Rules:
    """Return the rules in a file, without lines that git would not understand or that cost too much."""
    from pathspec.patterns.gitignore.base import GitIgnorePatternError
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    try:
        text = _read_bytes(file, LONGEST_IGNORE).decode("utf-8", "surrogateescape")
    except (OSError, ValueError):
        text = ""
    patterns: list[tuple[re.Pattern[str], bool]] = []
    with warnings.catch_warnings():
        # About brackets in brackets: the author of the file wrote them.
        warnings.simplefilter("ignore", FutureWarning)
        for line in text.removeprefix("\ufeff").split("\n")[:MOST_PATTERNS]:
            wild = max(len(re.findall(r"\*+", part)) for part in line.split("/"))
            if max(wild, line.count("**")) > MOST_WILDCARDS:
                continue
            # pathspec takes `folder/**/` for the folder itself, and not for those below it.
            line = re.sub(r"/\*\*/$", "/*/", line.removesuffix("\r"))
            with suppress(GitIgnorePatternError, re.error):
                regex, ignores = GitIgnoreSpecPattern.pattern_to_regex(line)
                if regex is not None and ignores is not None:
                    patterns.append((re.compile(regex, re.DOTALL), ignores))
    return Rules(len(folder) + 1, patterns[::-1])


def _is_ignored(path: str, rules: tuple[Rules, ...], is_folder: bool) -> bool:
    """Return True if git would ignore a path whose parent it does not.

    The last line that matches it decides, in the deepest file that has one.
    """
    for prefix, patterns in rules:
        relative = path[prefix:].replace(os.sep, "/") + "/" * is_folder
        for regex, ignores in patterns:
            if (match := regex.search(relative)) and _is_about(match, is_folder):
                return ignores
    return False


def _is_about(match: re.Match[str], is_folder: bool) -> bool:
    """Return True if a match is about the path itself.

    pathspec also matches paths below: a group marks the slash after a match, and `folder/**` ends with one. Paths below an ignored
    folder are never looked up, and below others such a match does not count.
    """
    if match.re.pattern == EVERY_FOLDER:
        return is_folder
    if match.lastgroup:
        return is_folder and match.end() == len(match.string)
    return not is_folder or match.end() < len(match.string)


def _read_bytes(path: Path, longest: int) -> bytes:
    """Return the bytes of a regular file. Never waits: a pipe is opened without a writer, and left."""
    _check_readable(os.stat(path), longest)
    # Checked again on what was opened, because it may have been exchanged in between.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as file:
        _check_readable(os.fstat(file.fileno()), longest)
        return file.read(longest)


def _check_readable(status: os.stat_result, longest: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError("not a regular file")
    if status.st_size > longest:
        size = f"{status.st_size / 1e6:.1f} MB"
        raise OSError(f"{size}, larger than the limit of {longest / 1e6:g} MB")
