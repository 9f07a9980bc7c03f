"""The memories that calls work on: opened on first use, used in separate threads, closed at the end.

Opening the embedding model takes a moment, and fetching it the first time takes longer. Both happen in a thread beside the
calls; a call that has waited long enough works by words instead, and says so.
"""

import asyncio
import copy
import logging
import os
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future as Job
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from bethink import project as projects
from bethink.api import Bethink
from bethink.config import locate_database
from bethink.errors import EmbeddingError
from bethink.hooks import run, state
from bethink.model import TRUST, Values

MODEL_PATIENCE = 10.0  # seconds that a call waits for the embedding model
_HOST = "claude"  # whose prompt hook calls a tool

Result = TypeVar("Result")
log = logging.getLogger("bethink")


class Opened(NamedTuple):
    memory: Bethink
    ready: threading.Event  # set when its embedding model is open, or is known not to open


class Keeper:
    """Owns the memories of one server. `directory` is the project where a client names none."""

    threads = 4  # in which calls run
    hooked = False  # whether its client may call the prompt hook, which names a directory: only a host on this machine may

    def __init__(
        self,
        directory: Path | None = None,
        database: str | None = None,
        container: str | None = None,
    ) -> None:
        self.directory = directory
        self.database, self.container = database, container
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="bethink-call")
        self._running: set[Job[Any]] = set()
        self._lock = threading.Lock()
        # By the checkout that a directory is in: an agent goes about in its folders.
        self._opened: dict[Hashable, Opened] = {}
        # What each client stored in its session, by directory and actor.
        self._stored: dict[Hashable, set[str]] = {}
        self._warm: Job[Opened] | None = None

    async def run(self, function: Callable[..., Result], *arguments: object) -> Result:
        """Run a function in a thread. It continues if the client goes away."""
        return await asyncio.wrap_future(self.submit(function, *arguments))

    def submit(self, function: Callable[..., Result], *arguments: object) -> Job[Result]:
        job = self._pool.submit(function, *arguments)
        self._running.add(job)
        job.add_done_callback(self._running.discard)
        return job

    def memory(self, directory: Path | None, actor: str, meaning: bool = False) -> Bethink:
        """Return a directory's memory for an actor. With `meaning` it can embed, if the model is in time."""
        memory = self._lend(self._open(directory or self.directory), meaning)
        memory.actor, memory.trust = actor, TRUST["agent"]
        memory.stored_here = self._stored.setdefault((directory, actor), set())
        return memory

    def _lend(self, opened: Opened, meaning: bool) -> Bethink:
        """Copy a memory for one call, with the same store and model; without the model if it is late."""
        memory = copy.copy(opened.memory)
        if meaning and not opened.ready.wait(MODEL_PATIENCE):
            message = "the embedding model is still being fetched."
            hint = "wait a little; `bethink reindex` catches up."
            memory.rest_model(EmbeddingError(message, hint))
        return memory

    def has_model(self, directory: Path | None) -> bool:
        """Return True if the embedding model is open. If not, start to open it."""
        opened = self._open(directory or self.directory)
        return opened.ready.is_set() and opened.memory.embedder is not None

    def warm_up(self) -> None:
        """Open the memory and its model before the first call. Problems are reported by that call."""
        if self._warm is None:
            self._warm = self.submit(self._open, self.directory)

    def _open(self, directory: Path | None) -> Opened:
        return self._keep(
            projects.find(directory).worktree,
            lambda: Bethink(self.database, directory=directory, container=self.container),
        )

    def _keep(self, key: Hashable, make: Callable[[], Bethink]) -> Opened:
        """Return the memory that is open under a key, or open it.

        Its model is opened in a thread, and again when it is time to retry one that failed. A call waits only a while for it, and a prompt hook
        does not wait at all.
        """
        with self._lock:
            opened = self._opened.get(key)
            if opened and not (opened.ready.is_set() and opened.memory.is_model_due):
                return opened
            memory, ready = opened.memory if opened else make(), threading.Event()
            for warning in () if opened else memory.config.warnings:
                log.warning(warning)
            _ = memory.recent, memory.judge  # one cache of vectors and one judge for all copies
            self._opened[key] = Opened(memory, ready)
            threading.Thread(target=open_model, args=(memory, ready), daemon=True).start()
            return self._opened[key]

    def close(self, patience: float) -> bool:
        """Close the databases after the running calls. Return True if these ended in time."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        ended = not wait(list(self._running), timeout=patience).not_done
        if ended:
            for opened in self._opened.values():
                opened.memory.close()
        return ended


def open_model(memory: Bethink, ready: threading.Event) -> None:
    """Open the embedding model, and signal that it is open or has failed."""
    try:
        if memory.embedder is None and memory.hints:
            log.warning(memory.hints[0])
    except Exception:
        log.exception("The embedding model could not be opened.")
    finally:
        ready.set()


def answer_prompt_hook(keeper: Keeper, arguments: Values) -> str:
    """Run the prompt hook without a process: Claude Code can call it as a tool of a running server.

    Its settings then say `"type": "mcp_tool"`. The answer is what `bethink hook prompt` prints. The embedding model is used only if it runs in
    this process and is already open; the prompt is never sent anywhere. Like every hook it never fails: failures are counted.

    Arguments: prompt, session_id, transcript_path, cwd and, if the host has one, source.
    """
    nothing = "{}"  # for an empty text Claude Code tells the model that the hook completed
    if run.is_switched_off():
        return nothing
    # A host that has no value for a placeholder may leave it as it is.
    values = {name: one for name, one in arguments.items() if not str(one).startswith("${")}
    try:
        hook = state.from_fields("prompt", _HOST, values)
        found = projects.find(keeper.directory)
        if hook.directory and os.path.isdir(hook.directory):  # noqa: PTH112  (false, not an error, for what no file can be named)
            found = run.find_project(hook, str(found.worktree))
        memory = keeper.memory(found.worktree, f"hook:{hook.host}")
        if hook.source in state.PERSON_SOURCES and run.is_phrase(hook.prompt):
            return run.grant_request(hook, memory)
        if projects.is_paused(hook.directory or str(found.worktree), found.scope):
            return nothing
        if hook.source in state.PERSON_SOURCES:
            run.note_turn(hook, found, locate_database(memory.config, found))
        meaning = keeper.has_model(found.worktree)
        return run.answer(hook, memory, meaning=meaning) or nothing
    except Exception as error:  # noqa: BLE001 - the outermost boundary of a hook
        run.count_failure("prompt", _HOST, f"{type(error).__name__}: {error}")
        return nothing
