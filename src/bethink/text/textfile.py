"""Text files that belong to people: read as they are, replaced whole or not at all, never through a link out of the project.

What is read can be written back byte for byte, whatever its line ends and its encoding. This module does not know what the
texts say.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from bethink.errors import BethinkError, InvalidInput

# Bytes: rules and ignore files are far smaller, and longer ones are something else.
LARGEST = 5_000_000


def inside(root: Path, path: Path) -> Path:
    """Where a path of the project really leads. A link of a cloned repository may not lead to files elsewhere."""
    real, top = resolve(root / path), root.resolve()
    if not real.is_relative_to(top):
        raise InvalidInput(
            f"{path} leads out of the project, to {real}.", f"Only files inside {top} are written."
        )
    return real


def resolve(path: Path) -> Path:
    """The file behind links. A circle of them, or a folder that may not be entered, is an error."""
    try:
        real = path.resolve()
        if real.is_symlink():  # which Python 3.13 returns for a circle
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    except (OSError, RuntimeError) as error:
        raise InvalidInput(
            f"{path} cannot be followed: {error}.", "Check the links and permissions on the way."
        ) from error
    return real


def read(path: Path) -> str | None:
    """The text of a file, or None if there is none. Bytes that are no UTF-8 come back as they were when it is written."""
    try:
        if not path.exists():
            return None
        if not path.is_file():
            raise InvalidInput(
                f"{path} is not a regular file.", "Move it away, or choose another file."
            )
        if path.stat().st_size > LARGEST:
            raise InvalidInput(
                f"{path} holds more than {LARGEST // 1_000_000} MB.", "Choose a smaller file."
            )
        raw = path.read_bytes()
    except OSError as error:
        raise BethinkError(
            f"{path} cannot be read: {error.strerror or error}.", "Check its permissions."
        ) from error
    if b"\x00" in raw:
        raise InvalidInput(
            f"{path} is no UTF-8 text: byte {raw.index(0)} is NUL.",
            "Convert it with `iconv -t UTF-8`.",
        )
    return raw.decode("utf-8", "surrogateescape")


def _partial(path: Path) -> Path:
    return path.with_name(f".{path.name[:80]}.{os.getpid()}.partial")


@contextmanager
def replace(
    path: Path, mode: int = 0o600, wanted: Callable[[], bool] = lambda: True
) -> Iterator[TextIO]:
    """A stream into a file that appears under its name when all is written, if it is wanted then. Raises OSError."""
    partial = _partial(path)
    partial.unlink(missing_ok=True)  # of a process that was killed and had our number
    try:
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(
            handle, "w", encoding="utf-8", errors="surrogateescape", newline=""
        ) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if wanted():
            partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write(path: Path, text: str, was: str | None, mode: int = 0o666) -> bool:
    """Replaces the file in one step, if it still holds what it was read as. Says whether it did. Permissions stay; `mode`,
    less the umask, is for a new file, and a new folder of a file for its owner alone is for them alone, too."""
    unchanged = False

    def is_unchanged() -> bool:
        nonlocal unchanged
        unchanged = read(path) == was
        return unchanged

    try:
        private = 0o700 if mode == 0o600 else 0o777
        path.parent.mkdir(mode=private, parents=True, exist_ok=True)
        with replace(path, mode, is_unchanged) as stream:
            if was is not None:
                _partial(path).chmod(stat.S_IMODE(path.stat().st_mode))
            stream.write(text)
    except OSError as error:
        raise BethinkError(
            f"{path} cannot be written: {error.strerror or error}.",
            "Check permissions and free space.",
        ) from error
    return unchanged


def remove(path: Path, folders: int = 0) -> None:
    """Removes a file, and of the folders above it up to so many that are empty then."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise BethinkError(
            f"{path} cannot be removed: {error.strerror or error}.", "Check permissions."
        ) from error
    with suppress(OSError):  # not empty
        for folder in list(path.parents)[:folders]:
            folder.rmdir()


def line_end(text: str) -> str:
    """The line end of a text, as its first line has it."""
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One process at a time works in this folder, which is made for its owner alone if there is none. Where the system has no
    such lock, `write` still notices a change."""
    try:
        import fcntl

        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield
        return
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def may_others(file: Path, mode: int) -> bool:
    """Return True if others than its owner may do with a file what `mode` says, or it is another user's altogether."""
    if os.name != "posix":
        return False
    about = file.stat()
    return bool(stat.S_IMODE(about.st_mode) & mode) or about.st_uid not in (0, os.getuid())
