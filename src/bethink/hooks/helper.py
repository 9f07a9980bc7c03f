"""Resident helper: keeps the models open between hooks, so that prompts do not wait for them.

A hook that may need the models asks the helper over a Unix socket that only this user can open. If no helper runs, the hook starts one
and waits for it; if none can be used, the hook does the work itself. There is at most one helper for each installation, data folder and
set of `BETHINK_*` variables: it holds a lock for as long as it lives.

The helper ends by itself: after `IDLE` seconds without a request, after `MOST_REQUESTS`, and when its socket file is gone or belongs to
another helper. A helper that was killed leaves a socket file behind, which the next one replaces. Nothing needs to be configured; the
setting `hook_helper` turns it off.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bethink import __version__, system
from bethink.hooks import spool, state
from bethink.text import sha256

if TYPE_CHECKING:
    import socket  # 1.5 ms, which a hook without a helper saves
    from collections.abc import Callable

    from bethink.model import Json

_IDLE = 900.0  # seconds without a request after which a helper ends
IDLE_VARIABLE = "BETHINK_HELPER_IDLE"  # seconds instead of IDLE
_LOOK = 10.0  # seconds between two looks at the clock and at the socket file
MOST_REQUESTS = 2_000  # after which a helper ends, so that memory cannot grow for ever
LONGEST_REQUEST = 1_000_000  # bytes
REQUEST_SECONDS = 2.0  # for a request to arrive, or an answer to be taken
LONGEST_PATH = 100  # bytes of a socket's path; the system allows 103 to 107
STARTING = 0.02  # seconds between two tries to reach a helper that is starting
REST = 600.0  # seconds without another try after a helper could not be started in time


# The side of the hook


def ask(request: Json, seconds: float) -> str | None:
    """Return the helper's answer, or None if there is no helper that answers within this time."""
    until = time.monotonic() + seconds
    path = socket_path()
    if path is None or _rests(path):
        return None
    with suppress(OSError, ValueError):
        connection = _connect(path)
        if connection is None:
            start(path)
            connection = _await(path, until)
        if connection is None:
            _note_failed_start(path)
            return None
        with connection:
            connection.settimeout(max(0.1, until - time.monotonic()))
            connection.sendall(json.dumps(request).encode() + b"\n")
            answer = json.loads(_read_line(connection, LONGEST_REQUEST))["answer"]
            return answer if isinstance(answer, str) else None
    return None


def warm_up() -> None:
    """Start a helper if none runs, so that it is ready for the next prompt. Returns at once."""
    path = socket_path()
    with suppress(OSError):
        if path is not None and not _rests(path) and not _answers(path):
            start(path)


def start(path: Path) -> None:
    """Start the helper in a new process session, unless one is starting or running."""
    state.make_private(path.parent)
    lock = spool.acquire(path.with_suffix(".lock"))
    if lock is None:
        return
    try:
        words = [sys.executable, "-P", "-m", "bethink", "hook", "helper"]
        system.detach(words, os.environ | spool.worker_environment(), lock)
    finally:
        os.close(lock)


def socket_path() -> Path | None:
    """Return the path of this installation's socket, or None where there are no Unix sockets."""
    import socket

    if system.WINDOWS or not hasattr(socket, "AF_UNIX") or not sys.executable:
        return None
    own = {name: text for name, text in os.environ.items() if name.startswith("BETHINK_")}
    for name in ("BETHINK_HOOKS", IDLE_VARIABLE):
        own.pop(name, None)
    parts = [__version__, __file__, sys.executable, str(state.folder()), *sorted(own.items())]
    name = f"helper-{sha256(repr(parts).encode()).hexdigest()[:12]}.sock"
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folders = [
        state.folder(),
        *([Path(runtime)] if runtime else []),
        Path(f"/tmp/bethink-{system.find_user()}"),
    ]
    short = (one for one in folders if len(os.fsencode(one / name)) <= LONGEST_PATH)
    folder = next(short, None)
    if folder is None or (folder != state.folder() and not _is_private(folder)):
        return None
    return folder / name


def _is_private(folder: Path) -> bool:
    """Return True for a folder that only this user can enter; make it if it is missing."""
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        private = stat.S_ISDIR(found.st_mode) and system.is_mine(found.st_uid)
        return private and not found.st_mode & 0o077
    return False


def _connect(path: Path) -> socket.socket | None:
    import socket

    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(REQUEST_SECONDS)  # or a helper that hangs makes connecting hang
    try:
        connection.connect(str(path))
        return connection
    except OSError:
        connection.close()
        return None


def _answers(path: Path) -> bool:
    connection = _connect(path)
    if connection is None:
        return False
    connection.close()
    return True


def _await(path: Path, until: float) -> socket.socket | None:
    """Wait for a helper that is starting."""
    while time.monotonic() < until:
        connection = _connect(path)
        if connection is not None:
            return connection
        time.sleep(STARTING)
    return None


def _rests(path: Path) -> bool:
    """Return True for a while after a helper could not be started in time."""
    with suppress(OSError):
        return time.time() - path.with_suffix(".late").stat().st_mtime < REST
    return False


def _note_failed_start(path: Path) -> None:
    with suppress(OSError):
        path.with_suffix(".late").touch(mode=0o600)


def _read_line(connection: socket.socket, longest: int) -> bytes:
    data = bytearray()
    while not data.endswith(b"\n"):
        part = connection.recv(65_536)
        if not part or len(data) + len(part) > longest:
            raise ValueError("The message ends early, or is too long.")
        data += part
    return bytes(data)


# The side of the helper


def serve(answer: Callable[[Json], str]) -> None:
    """Answer requests, one at a time, until there were none for a while."""
    path = socket_path()
    if path is None:
        return
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        own = _bind(listener, path)
        last = time.monotonic()
        idle = _read_idle()
        for _ in range(MOST_REQUESTS):
            connection = _accept(listener, path, own, last + idle)
            if connection is None:
                break
            with (
                connection,
                suppress(OSError, ValueError, KeyError, TypeError),
            ):  # a request of another form
                _answer_one(connection, answer)
            last = time.monotonic()
    if _is_own(path, own):
        path.unlink(missing_ok=True)


def _bind(listener: socket.socket, path: Path) -> int:
    """Take the place of a helper that is gone. Return the inode of the socket file."""
    path.unlink(missing_ok=True)
    mask = os.umask(0o177)
    try:
        listener.bind(str(path))
    finally:
        os.umask(mask)
    listener.listen(16)
    path.with_suffix(".late").unlink(missing_ok=True)
    return path.stat().st_ino


def _read_idle() -> float:
    with suppress(ValueError):
        return float(os.environ.get(IDLE_VARIABLE, _IDLE))
    return _IDLE


def _accept(listener: socket.socket, path: Path, own: int, until: float) -> socket.socket | None:
    """Return the next connection, or None when the helper should end."""
    while (left := until - time.monotonic()) > 0 and _is_own(path, own):
        listener.settimeout(min(_LOOK, left))
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        connection.settimeout(REQUEST_SECONDS)
        return connection
    return None


def _is_own(path: Path, inode: int) -> bool:
    with suppress(OSError):
        return path.stat().st_ino == inode
    return False


def _answer_one(connection: socket.socket, answer: Callable[[Json], str]) -> None:
    request = json.loads(_read_line(connection, LONGEST_REQUEST))
    if isinstance(request, dict):
        connection.sendall(json.dumps({"answer": answer(request)}).encode() + b"\n")
