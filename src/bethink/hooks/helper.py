"""Resident helper: keeps the models open between hooks, so that prompts do not wait for them.

A hook that may need the models asks the helper over a Unix socket that only this user can open. If no helper runs, the hook starts one
and waits for it; if none can be used, the hook does the work itself. There is at most one helper for each installation, data folder and
set of `BETHINK_*` variables: it holds a lock for as long as it lives.

The helper ends by itself: after `IDLE` seconds without a request, after `MOST_REQUESTS`, and when its socket file is gone or belongs to
another helper. A helper that was killed leaves a socket file behind, which the next one replaces. Nothing needs to be configured; the
setting `hook_helper` turns it off.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bethink import system
from bethink.hooks import client, spool, state

if TYPE_CHECKING:
    import _socket
    import socket  # 1.5 ms, which a hook saves
    from collections.abc import Callable

    Answer = Callable[[str, str, bytes], str | None]

_IDLE = 900.0  # seconds without a request after which a helper ends
_LOOK = 10.0  # seconds between two looks at the clock and at the socket file
MOST_REQUESTS = 2_000  # after which a helper ends, so that memory cannot grow for ever
REQUEST_SECONDS = 2.0  # for a request to arrive, or an answer to be taken
STARTING = 0.02  # seconds between two tries to reach a helper that is starting


# The side of a hook that no helper answered yet: `client.py` has the rest


def ask(event: str, host: str, message: bytes, seconds: float) -> str | None:
    """Start a helper if none runs. Return its answer, or None if there is none within this time."""
    until = time.monotonic() + seconds
    path = client.find_socket()
    if not path or client.rests(path):
        return None
    with suppress(OSError, ValueError):
        connection = client.connect(path)
        if connection is None:
            start(Path(path))
            connection = _await(path, until)
        if connection is None:
            _note_failed_start(Path(path))
            return None
        request = client.pack(event, host, message)
        answer = client.exchange(connection, request, until - time.monotonic())
        return None if answer is None else answer.decode("utf-8", "replace")
    return None


def warm_up() -> None:
    """Start a helper if none runs, so that it is ready for the next prompt. Returns at once."""
    path = client.find_socket()
    with suppress(OSError):
        if path and not client.rests(path) and not _answers(path):
            start(Path(path))


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


def _answers(path: str) -> bool:
    connection = client.connect(path)
    if connection is None:
        return False
    connection.close()
    return True


def _await(path: str, until: float) -> _socket.socket | None:
    """Wait for a helper that is starting."""
    while time.monotonic() < until:
        connection = client.connect(path)
        if connection is not None:
            return connection
        time.sleep(STARTING)
    return None


def _note_failed_start(path: Path) -> None:
    with suppress(OSError):
        path.with_suffix(".late").touch(mode=0o600)


# The side of the helper


def serve(answer: Answer) -> None:
    """Answer requests, one at a time, until there were none for a while."""
    found = client.find_socket()
    if not found:
        return
    path = Path(found)
    # A request may come from a program that must not start others, such as a command in an agent's sandbox.
    spool.fix_environment()
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
                suppress(OSError, ValueError),  # a request of another form
            ):
                _answer_one(connection, answer, found)
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
        return float(os.environ.get(client.IDLE_VARIABLE, _IDLE))
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


def _answer_one(connection: socket.socket, answer: Answer, path: str) -> None:
    """Answer a request in the environment of the hook that sent it.

    Refuse one whose settings belong to another helper.
    """
    event, host, number, rest = (client.receive(connection) or b"").split(b"\0", 3)
    *own, message = rest.split(b"\0", int(number))
    _take_environment(dict(one.partition(b"=")[::2] for one in own))
    is_ours = client.find_socket() == path
    found = answer(event.decode(), host.decode(), message) if is_ours else None
    if found is None:
        connection.sendall(b"%d\n" % client.REFUSED)
    else:
        text = found.encode("utf-8", "replace")
        connection.sendall(b"%d\n" % len(text) + text)


def _take_environment(wanted: dict[bytes, bytes]) -> None:
    """Set the environment, without a moment in which a variable that stays is missing."""
    for name in set(os.environb) - set(wanted):
        del os.environb[name]
    os.environb.update(wanted)
