"""Differences between operating systems: locks, detached programs, quoting and owners of files.

Other modules ask this one instead of naming a system. Every hook loads it, so it imports what it needs late. Windows was never
tried on a real machine; the tests drive its branches with what Windows has and Linux has not.
"""

# ruff: noqa: PTH118
from __future__ import annotations

import os
import sys
from contextlib import suppress

TYPE_CHECKING = (
    False  # not the one of `typing`, whose import alone is a third of a hook that a helper answers
)
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any  # for modules that exist on one system alone

WINDOWS = sys.platform == "win32"
# A child inherits a lock only where it is one of the open file, as with `flock`.
INHERITS_LOCKS = hasattr(os, "fork")
INHERITED = 3  # by definition the first free file descriptor, under which a detached program inherits its lock
NICE = 10  # added to the niceness of a background process; by hand
_BYTE = (
    1 << 30
)  # offset of the byte that is locked on Windows, where a locked byte cannot be read; a limit of our files
# Flags of a Windows process, by definition: no console, not in our group, below normal priority.
_DETACHED, _OWN_GROUP, _NO_WINDOW, _BELOW_NORMAL = 0x8, 0x200, 0x8000000, 0x4000


# Locks


def lock(descriptor: int, wait: bool = True) -> bool:
    """Lock an open file. Return False if another process holds it and `wait` is off.

    Raises OSError where there are no locks.
    """
    try:
        import fcntl
    except ImportError:
        import msvcrt

        return _lock_byte(msvcrt, descriptor, wait)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def _lock_byte(msvcrt: Any, descriptor: int, wait: bool) -> bool:
    """Lock one byte far behind the end of a file, as Windows does. Waiting ends after ten seconds."""
    os.lseek(descriptor, _BYTE, os.SEEK_SET)
    try:
        msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
    except OSError:
        return False
    return True


def open_lock(folder: str) -> int:
    """Open what is locked for a folder: the folder, or a file in it where folders cannot be opened."""
    if not WINDOWS:
        return os.open(folder, os.O_RDONLY)
    return os.open(os.path.join(folder, ".lock"), os.O_RDWR | os.O_CREAT, 0o600)


# Programs


def detach(words: Sequence[str], environment: Mapping[str, str], lock: int) -> None:
    """Start a detached program, which inherits the lock if this system allows it and no other file."""
    if not INHERITS_LOCKS:
        _start_detached(words, environment)
        return
    import warnings

    with warnings.catch_warnings():
        # About threads: the child does nothing but become another program.
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        _become(words, environment, lock)
    os.waitpid(child, 0)


def _become(words: Sequence[str], environment: Mapping[str, str], lock: int) -> None:
    """Become a detached grandchild in a new process session, out of reach of a kill of the process tree.

    It inherits the lock and no other file, or the host would wait for the end of its output.
    """
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        with suppress(OSError):  # the agent's next turn comes first
            os.setpriority(os.PRIO_PROCESS, 0, max(NICE, os.getpriority(os.PRIO_PROCESS, 0)))
        os.chdir("/")
        os.dup2(lock, INHERITED)  # an inheritable copy
        if lock == INHERITED:
            os.set_inheritable(INHERITED, True)
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(nothing, standard)
        os.closerange(INHERITED + 1, os.sysconf("SC_OPEN_MAX"))
        os.execve(words[0], list(words), dict(environment))
    finally:
        os._exit(127)


def _start_detached(words: Sequence[str], environment: Mapping[str, str]) -> None:
    """Start a detached program without forking."""
    import subprocess

    flags = _DETACHED | _OWN_GROUP | _NO_WINDOW | _BELOW_NORMAL
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(
        list(words),
        env=dict(environment),
        stdin=nothing,
        stdout=nothing,
        stderr=nothing,
        close_fds=True,
        start_new_session=True,
        creationflags=flags if WINDOWS else 0,
    )
    process.returncode = 0  # nobody waits for it


def end_after(seconds: int) -> None:
    """End this process after some time, whatever it is stuck in."""
    import signal

    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        return
    from threading import Timer

    timer = Timer(seconds, os._exit, (1,))
    timer.daemon = True
    timer.start()


def signal_group(process: int, force: bool) -> None:
    """Ask a process group to end, or end it by force. Raises OSError if there is none."""
    import signal

    if hasattr(os, "killpg"):
        os.killpg(process, signal.SIGKILL if force else signal.SIGTERM)
        return
    import subprocess

    words = ["taskkill", "/T", "/PID", str(process), *(["/F"] if force else [])]
    subprocess.run(words, capture_output=True, check=False, timeout=10)


# Command lines


def quote(words: Sequence[str], windows: bool = WINDOWS) -> str:
    """Return the words of a command as one line for the system's shell."""
    if not windows:
        import shlex

        return shlex.join(words)
    import subprocess

    return subprocess.list2cmdline(words)


def split(line: str, windows: bool = WINDOWS) -> list[str]:
    """Return the words of a command line that a person wrote, such as $EDITOR.

    On Windows a backslash belongs to a path, and a program with blanks in its path may be written without quotes.
    """
    import shlex
    from pathlib import Path

    if not windows:
        return shlex.split(line)
    if Path(line).is_file():
        return [line]
    return [word.strip('"') for word in shlex.split(line, posix=False)]


def quote_powershell(words: Sequence[str]) -> str:
    """Return the words of a command as one line for PowerShell."""
    safe = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/\\")
    quoted = (
        word if safe.issuperset(word) else f"'{word.replace(chr(39), 2 * chr(39))}'"
        for word in words
    )
    return " ".join(["&", *quoted])


def unify(path: str) -> str:
    """Return a path with slashes, to compare it with a pattern."""
    return path.replace("\\", "/")


def name_program(path: str) -> str:
    """Return the name of a program without its folder and the ending that Windows adds."""
    name = unify(path).rpartition("/")[2]
    return name[:-4] if name.lower().endswith(".exe") else name


# Owners


def find_user() -> int:
    """Return the user id of this process; 0 where the system has none."""
    return os.getuid() if hasattr(os, "getuid") else 0


def is_mine(owner: int) -> bool:
    """Return True for the user id of this process; always where files have no such owner."""
    return not hasattr(os, "getuid") or owner == os.getuid()
