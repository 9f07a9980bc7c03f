"""Runs what a host would run, the very command in its file, and says what came of it: a hook, the MCP server, the version.

Whatever is started here is ended here, with everything it started that is still its own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

MOST = 1 << 20  # bytes of an answer that are looked at


class Ran(NamedTuple):
    code: int | None  # None: it could not be started, or did not end in time
    out: bytes
    seconds: float
    trouble: str = ""  # why there is no code, or what it said last on stderr


def run(
    command: str | Sequence[str], given: bytes, seconds: float, environment: Mapping[str, str]
) -> Ran:
    """A command with that on its stdin: a line goes through the shell, as hosts do it; words do not."""
    begun = time.monotonic()
    try:
        process = subprocess.Popen(
            command if isinstance(command, str) else list(command),
            shell=isinstance(command, str),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            start_new_session=os.name == "posix",
        )
    except (OSError, ValueError) as error:
        return Ran(
            None, b"", 0.0, f"it cannot be started: {getattr(error, 'strerror', None) or error}"
        )
    try:
        out, err = process.communicate(given, timeout=seconds)
    except subprocess.TimeoutExpired:
        _end(process)
        return Ran(
            None, b"", time.monotonic() - begun, f"it did not end within {seconds:g} seconds"
        )
    said = err.decode("utf-8", "replace").strip().splitlines()
    return Ran(
        process.returncode, out[:MOST], time.monotonic() - begun, said[-1][:300] if said else ""
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    with suppress(subprocess.TimeoutExpired, OSError, ValueError):
        process.communicate(timeout=5)


def tools(
    command: Sequence[str], seconds: float, environment: Mapping[str, str], call: str = ""
) -> tuple[list[str], float] | str:
    """The tools of an MCP server and how long it took to hear of them, or why there are none. `call` is a tool that has to answer."""
    begun = time.monotonic()
    try:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            start_new_session=os.name == "posix",
        )
    except (OSError, ValueError) as error:
        return f"it cannot be started: {getattr(error, 'strerror', None) or error}"
    watch = threading.Timer(seconds, _kill, [process])
    watch.start()
    try:
        _send(
            process,
            1,
            "initialize",
            protocolVersion="2025-06-18",
            capabilities={},
            clientInfo={"name": "bethink-doctor", "version": "1"},
        )
        first = _answer(process, 1)
        if first is not None:
            _send(process, None, "notifications/initialized")
            _send(process, 2, "tools/list")
        answer = _answer(process, 2) if first is not None else None
        refused = False
        if call and answer is not None:
            _send(process, 3, "tools/call", name=call, arguments={"prompt": "hello"})
            refused = dict(_answer(process, 3) or {"isError": True}).get("isError") is True
    except (OSError, ValueError):
        answer, refused = None, False
    finally:
        late = not watch.is_alive()
        watch.cancel()
        said = _last_words(process)
    if answer is None:
        return (
            f"it did not answer within {seconds:g} seconds"
            if late
            else said or "it ended without an answer"
        )
    if refused:
        return f"its tool {call} does not answer"
    names = [str(tool.get("name")) for tool in answer.get("tools", []) if isinstance(tool, dict)]
    return names, time.monotonic() - begun


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _send(process: subprocess.Popen[bytes], number: int | None, method: str, **params: Any) -> None:
    message = (
        {"jsonrpc": "2.0", "method": method}
        | ({"id": number} if number is not None else {})
        | ({"params": params} if params else {})
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()


def _answer(process: subprocess.Popen[bytes], number: int) -> dict[str, Any] | None:
    """The result of a request; what the server says otherwise is passed over."""
    assert process.stdout is not None
    while line := process.stdout.readline(MOST):
        try:
            message = json.loads(line)
        except ValueError:
            return None  # something on stdout that is no protocol
        if isinstance(message, dict) and message.get("id") == number:
            result = message.get("result")
            return result if isinstance(result, dict) else None
    return None


def _last_words(process: subprocess.Popen[bytes]) -> str:
    """Ends a server's input, waits for it, and gives the last line of its stderr."""
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
        process.stdin = None  # or `communicate` would close it again
    try:
        _, err = process.communicate(timeout=5)
    except (subprocess.TimeoutExpired, ValueError):
        _end(process)
        return ""
    said = err.decode("utf-8", "replace").strip().splitlines()
    return said[-1][:300] if said else ""
