"""The hook's side of the resident helper: hand an agent's message over and print the answer.

It imports next to nothing, so that a prompt which a helper answers costs little more than the start of Python. The request is the event, the
agent, the environment and the message, separated by NUL, behind a line with its length; the answer has such a line too, and
`REFUSED` in it means that the hook has to do the work itself.
"""

# ruff: noqa: PTH102, PTH116, PTH118
# `os.path` and `_socket`: `pathlib` and `socket` together take longer than all of this.
import os
import sys
import time
from _thread import start_new_thread
from contextlib import suppress

from bethink import __version__, folders, system
from bethink.hashes import sha256
from bethink.hooks import LONGEST_INPUT

IDLE_VARIABLE = "BETHINK_HELPER_IDLE"
SECONDS_VARIABLE = "BETHINK_HOOK_SECONDS"
OFF = "BETHINK_HOOKS"
HOOK_SECONDS = 5.0  # until the settings are read, which may say otherwise
# Part of a hook's seconds for the helper; the rest is for doing without it. By hand.
HELPER_SHARE = 0.6
LONGEST_PATH = 100  # bytes of a socket's path; the system allows 103 to 107
LONGEST_MESSAGE = 1_000_000  # bytes of a request or an answer
CONNECT_SECONDS = 0.5  # a helper that hangs must not hold the hook up; by hand
REFUSED = -1  # instead of the length of an answer
_LOOK = 0.05  # seconds between two looks at the clock
COUNTING = 0.3  # seconds that counting a failure may take
REST = 600.0  # seconds without another try after a helper could not be started in time
# Events that a helper answers, if one runs. Others only note something, or must not fail.
SERVED = ("session-start", "subagent-start", "prompt", "tool", "tool-failure")
MODEL = "model"  # the event of a command that borrows a model
MODEL_SECONDS = 3.0  # for its answer: a model that is opened for it takes a second
# Variables that the helper and its hooks share: another value means another helper.
_SHARED = ("HOME", "XDG_CONFIG_HOME")
_PHRASE = b"bethink"  # in a message that may grant an agent's request, which only the hook itself can check

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Sequence


class Limit:
    """Ends the process when its time is up, whatever it is doing: waiting for stdin, a lock or a disk."""

    def __init__(self, event: str, host: str) -> None:
        self.event, self.host = event, host
        self.started, self.seconds = time.monotonic(), HOOK_SECONDS
        with suppress(ValueError):
            wanted = float(os.environ.get(SECONDS_VARIABLE, HOOK_SECONDS))
            self.seconds = min(HOOK_SECONDS, max(0.0, wanted))
        start_new_thread(self.watch, ())

    @property
    def spent(self) -> float:
        """Seconds since the hook began."""
        return time.monotonic() - self.started

    def watch(self) -> None:
        while (left := self.seconds - self.spent) > 0:
            time.sleep(min(_LOOK, left))

        def give_up() -> None:
            time.sleep(COUNTING)
            os._exit(0)

        start_new_thread(give_up, ())  # counting may hang on the same disk
        from bethink.hooks import state

        with suppress(Exception):  # nobody is left to read of it
            late = f"It took longer than {self.seconds:g} seconds and was given up."
            state.note_failure(self.host, self.event, late)
        os._exit(0)


def hand_over(words: "Sequence[str]") -> "tuple[Limit, bytes] | None":
    """Let a running helper answer, and end the process. Return what is known so far if none can."""
    is_usual = len(words) == 3 and words[0] in SERVED and words[1] == "--host"
    if not is_usual or os.environ.get(OFF) == "off" or os.isatty(0):
        return None
    path = find_socket()
    connection = connect(path) if path and not rests(path) else None
    if connection is None:
        return None
    event, _, host = words
    limit = Limit(event, host)
    message = read_stdin()
    request = b"" if _PHRASE in message.lower() else pack(event, host, message)
    answer = exchange(connection, request, HELPER_SHARE * limit.seconds - limit.spent)
    if answer is None:
        return limit, message
    write_stdout(answer and answer + b"\n")
    os._exit(0)


def ask_model(request: bytes) -> bytes | None:
    """Let a running helper's model answer. Return None if none runs."""
    path = find_socket()
    connection = connect(path) if path else None
    return exchange(connection, pack(MODEL, "", request), MODEL_SECONDS) if connection else None


def read_stdin() -> bytes:
    """Return the agent's message, as far as a hook reads it."""
    message = bytearray()
    with suppress(OSError):  # stdin is closed
        while len(message) <= LONGEST_INPUT and (part := os.read(0, 1 << 20)):
            message += part
    return bytes(message)


def write_stdout(text: bytes) -> None:
    with suppress(OSError):  # an agent that did not wait for it
        while text:
            text = text[os.write(1, text) :]


# The socket


def find_socket() -> str:
    """Return the path of this installation's socket, or "" where there are no Unix sockets."""
    if system.WINDOWS or not sys.executable:
        return ""
    own = {
        name: text
        for name, text in os.environ.items()
        if name.startswith("BETHINK_") or name in _SHARED
    }
    for name in (OFF, IDLE_VARIABLE):
        own.pop(name, None)
    usual = os.path.join(folders.find_data(), "hooks")
    parts = [__version__, __file__, sys.executable, usual, *sorted(own.items())]
    name = f"helper-{sha256(repr(parts).encode()).hexdigest()[:12]}.sock"
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    places = [usual, *([runtime] if runtime else []), f"/tmp/bethink-{system.find_user()}"]
    short = (one for one in places if len(os.fsencode(os.path.join(one, name))) <= LONGEST_PATH)
    folder = next(short, None)
    with suppress(OSError):
        if folder is not None and (folder == usual or is_private(folder)):
            return os.path.join(folder, name)
    return ""


def is_private(folder: str) -> bool:
    """Return True for a folder that only this user can enter; make it if it is missing."""
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    found = os.lstat(folder)
    is_folder = found.st_mode & 0o170000 == 0o040000
    return is_folder and system.is_mine(found.st_uid) and not found.st_mode & 0o077


def rests(path: str) -> bool:
    """Return True for a while after a helper could not be started in time."""
    try:
        return time.time() - os.stat(path.removesuffix(".sock") + ".late").st_mtime < REST
    except OSError:
        return False


def connect(path: str) -> "_socket.socket | None":
    try:
        import _socket

        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    except (ImportError, AttributeError, OSError):
        return None
    try:
        connection.settimeout(CONNECT_SECONDS)
        connection.connect(path)
        return connection
    except OSError:
        connection.close()
        return None


# Messages


def pack(event: str, host: str, message: bytes) -> bytes:
    """Return a request, or b"" for a message that is too long for the helper."""
    own = [name + b"=" + text for name, text in os.environb.items()]
    head = (event.encode("utf-8", "replace"), host.encode("utf-8", "replace"), b"%d" % len(own))
    packed = b"\0".join([*head, *own, message])
    return b"%d\n" % len(packed) + packed if len(packed) <= LONGEST_MESSAGE else b""


def exchange(connection: "_socket.socket", request: bytes, seconds: float) -> bytes | None:
    """Send a request and return the answer; None without one, or if the helper refuses or is late."""
    try:
        if not request:
            return None
        connection.settimeout(max(0.1, seconds))
        sent = memoryview(request)
        while sent:
            sent = sent[connection.send(sent) :]
        return receive(connection)
    except (OSError, ValueError):
        return None
    finally:
        connection.close()


def receive(connection: "_socket.socket") -> bytes | None:
    """Return a message behind its length, or None for REFUSED. Raises ValueError for anything else."""
    data = b""
    while b"\n" not in data:
        part = connection.recv(1 << 16)
        if not part or len(data) > LONGEST_PATH:
            raise ValueError("The message has no length.")
        data += part
    head, _, data = data.partition(b"\n")
    length = int(head)
    if length == REFUSED:
        return None
    if not 0 <= length <= LONGEST_MESSAGE:
        raise ValueError("The message is too long.")
    parts, left = [data], length - len(data)
    while left > 0:
        part = connection.recv(1 << 16)
        if not part:
            raise ValueError("The message ends early.")
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
