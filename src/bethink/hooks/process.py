"""`bethink hook` as hosts start it: a process of its own that reads the host's message from stdin, prints what the host's model is to
know or nothing, and ends with 0, in time, whatever happens.

Hosts wait for it at every prompt, so the command line comes here before it imports anything else.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from _thread import allocate_lock, start_new_thread
from collections.abc import Sequence
from contextlib import suppress

from bethink.hooks.event import AUTO, LONGEST_INPUT

SECONDS = 5.0  # until the settings are read, which may say otherwise
LOOK = 0.05  # seconds between two looks at the clock
COUNTING = 0.3  # seconds that counting a failure may take
WORK = "work"


class Limit:
    """Ends the process when its time is up, whatever it is doing: waiting for stdin, a lock or a disk."""

    def __init__(self, event: str, host: str) -> None:
        self.event, self.host = event, host
        self.begun, self.seconds = time.monotonic(), SECONDS
        with suppress(ValueError):
            self.seconds = min(
                SECONDS, max(0.0, float(os.environ.get("BETHINK_HOOK_SECONDS", SECONDS)))
            )

    def watch(self) -> None:
        while (left := self.begun + self.seconds - time.monotonic()) > 0:
            time.sleep(min(LOOK, left))
        counted = allocate_lock()
        counted.acquire()

        def count() -> None:
            from bethink.hooks.run import count

            count(
                self.event,
                self.host,
                f"It took longer than {self.seconds:g} seconds and was given up.",
            )
            counted.release()

        start_new_thread(count, ())
        counted.acquire(timeout=COUNTING)
        os._exit(0)

    def set(self, seconds: float) -> None:
        self.seconds = seconds


def alone(words: Sequence[str]) -> None:
    """The hook as a process of its own. Never returns, except for what is no hook: help, and the worker."""
    if (
        not words
        or words[0].startswith("-")
        or words[0] == WORK
        or "--help" in words
        or "-h" in words
    ):
        return
    gc.disable()  # nothing lives long enough to be worth collecting, and looking for it takes a tenth of the time
    event, host = words[0], option(words, "--host")
    limit = Limit(event, host)
    start_new_thread(limit.watch, ())
    try:
        from bethink.hooks.run import run

        if database := option(words, "--database", ""):
            os.environ["BETHINK_DATABASE"] = database
        answer = run(event, host, given(), limit.set)
        printed = f"{answer}\n".encode("utf-8", "replace") if answer else b""
        while printed:
            printed = printed[os.write(1, printed) :]
    except BaseException as error:  # noqa: BLE001 - nothing may reach the host but an answer
        if not isinstance(error, OSError):  # that is a host which did not wait for it
            from bethink.hooks.run import count

            count(event, host, f"{type(error).__name__}: {error}")
    # Without the interpreter's own end, which takes longer than a hook that says nothing, and would flush into a closed pipe.
    os._exit(0)


def option(words: Sequence[str], name: str, missing: str = AUTO) -> str:
    for at, word in enumerate(words):
        if word == name and at + 1 < len(words):
            return words[at + 1]
        if word.startswith(f"{name}="):
            return word[len(name) + 1 :]
    return missing


def given() -> bytes:
    """What the host says; nothing if a person typed the command."""
    try:
        if sys.stdin is None or sys.stdin.isatty():
            return b""
        return sys.stdin.buffer.read(LONGEST_INPUT + 1)
    except (OSError, ValueError):
        return b""
