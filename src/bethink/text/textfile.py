"""Text files of users: read byte for byte, replaced atomically, never outside the project.

Text that was read can be written back byte for byte, whatever its line ends and its encoding. This module does not interpret
the texts.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from bethink import system
from bethink.errors import BethinkError, InvalidInput

# Bytes: rules and ignore files are far smaller, and longer ones are something else.
_LARGEST = 5_000_000


def inside(root: Path, path: Path) -> Path:
    """Resolve a path of the project. Refuse a link that leads out of it, as a cloned repository may hold."""
    real, top = resolve(root / path), root.resolve()
    if not real.is_relative_to(top):
        raise InvalidInput(
            f"{path} leads out of the project, to {real}.", f"Only files inside {top} are written."
        )
    return real


def resolve(path: Path) -> Path:
    """Resolve links. A circle of them, or a folder that may not be entered, is an error."""
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
    """Return the text of a file, or None if there is none. Bytes that are not UTF-8 survive a round trip."""
    try:
        if not path.exists():
            return None
        if not path.is_file():
            raise InvalidInput(
                f"{path} is not a regular file.", "Move it away, or choose another file."
            )
        if path.stat().st_size > _LARGEST:
            raise InvalidInput(
                f"{path} holds more than {_LARGEST // 1_000_000} MB.", "Choose a smaller file."
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
    """Open a stream to a file that replaces `path` once all is written, if `wanted`. Raises OSError."""
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
    """Replace a file atomically and return True, unless its content differs from `was`.

    Permissions stay. A new file gets `mode` less the umask; a new folder of a file for its owner alone is private, too.
    """
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
    """Remove a file, and up to `folders` of the folders above it if they are empty."""
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
    """Return the line end of the first line of a text."""
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes, and create it for its owner alone if it is missing.

    Where the system has no such lock, `write` still notices a change.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = system.open_lock(str(folder))
    except OSError:
        yield
        return
    try:
        with suppress(OSError):  # a file system without locks
            system.lock(handle)
        yield
    finally:
        os.close(handle)


def may_others(file: Path, mode: int) -> bool:
    """Return True if other users have a permission in `mode` on a file, or another user owns it."""
    if system.WINDOWS:
        return False
    about = file.stat()
    return bool(stat.S_IMODE(about.st_mode) & mode) or not (
        about.st_uid == 0 or system.is_mine(about.st_uid)
    )
