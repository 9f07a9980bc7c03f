"""The memories that calls work on: opened when first needed, used in threads of their own, closed at the end.

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

PATIENCE = 10.0  # seconds that a call waits for the embedding model
HOST = "claude"  # whose prompt hook calls a tool

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
        self._warm: Job[Opened] | None = None

    async def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Runs a function in a thread. A client that goes away meanwhile does not stop it."""
        return await asyncio.wrap_future(self.submit(function, *arguments))

    def submit(self, function: Callable[..., Result], *arguments: Any) -> Job[Result]:
        job = self._pool.submit(function, *arguments)
        self._running.add(job)
        job.add_done_callback(self._running.discard)
        return job

    def memory(self, directory: Path | None, actor: str, meaning: bool = False) -> Bethink:
        """The memory of a directory on somebody's word. With `meaning` it can embed, if the model opens in time."""
        memory = self._lend(self._open(directory or self.directory), meaning)
        memory.actor, memory.trust = actor, TRUST["agent"]
        return memory

    def _lend(self, opened: Opened, meaning: bool) -> Bethink:
        """A memory for one call: with the same store and model, or without the model where it does not come in time."""
        memory = copy.copy(opened.memory)
        if meaning and not opened.ready.wait(PATIENCE):
            message = "the embedding model is still being fetched."
            hint = "wait a little; `bethink reindex` catches up."
            memory.rest_model(EmbeddingError(message, hint))
        return memory

    def has_model(self, directory: Path | None) -> bool:
        """Return True if the embedding model is open. If not, start to open it."""
        opened = self._open(directory or self.directory)
        return opened.ready.is_set() and opened.memory.embedder is not None

    def warm_up(self) -> None:
        """Opens the memory and its model before somebody asks. Only the first time; the call that meets trouble tells its client."""
        if self._warm is None:
            self._warm = self.submit(self._open, self.directory)

    def _open(self, directory: Path | None) -> Opened:
        return self._keep(
            projects.find(directory).worktree,
            lambda: Bethink(self.database, directory=directory, container=self.container),
        )

    def _keep(self, key: Hashable, make: Callable[[], Bethink]) -> Opened:
        """What is open under a key, made when it is first needed. A model is opened beside the calls, and so it is when it is time to
        try again one that failed: a call waits for that only for a while, and a prompt's hook not at all."""
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
        """Closes the databases after what still runs, if that ends in time. Returns whether it did."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        ended = not wait(list(self._running), timeout=patience).not_done
        if ended:
            for opened in self._opened.values():
                opened.memory.close()
        return ended


def open_model(memory: Bethink, ready: threading.Event) -> None:
    """Opens the embedding model, and says that it is there or will not come."""
    try:
        if memory.embedder is None and memory.hints:
            log.warning(memory.hints[0])
    except Exception:
        log.exception("The embedding model could not be opened.")
    finally:
        ready.set()


def answer_prompt_hook(keeper: Keeper, arguments: Values) -> str:
    """The prompt hook without a process: a host that can calls it as a tool of the server that runs anyway (`"type": "mcp_tool"` in
    Claude Code). It answers what `bethink hook prompt` prints, and uses the embedding model if that runs in this process and is open
    already; it never waits for it, and sends no prompt anywhere. Like every hook it never fails: what goes wrong is counted.

    Arguments: prompt, session_id, transcript_path, cwd and, if the host gives it, source."""
    nothing = "{}"  # for an empty text Claude Code tells the model that the hook completed
    if run.is_switched_off():
        return nothing
    # A host that has no value for a placeholder may leave it as it is.
    given = {name: one for name, one in arguments.items() if not str(one).startswith("${")}
    try:
        hook = state.from_fields("prompt", HOST, given)
        found = projects.find(keeper.directory)
        if hook.directory and os.path.isdir(hook.directory):  # noqa: PTH112  (false, not an error, for what no file can be named)
            found = run.find_project(hook, str(found.worktree))
        memory = keeper.memory(found.worktree, f"hook:{hook.host}")
        if hook.source in state.PEOPLE and run.is_phrase(hook.prompt):
            return run.grant_request(hook, memory)
        if projects.is_paused(hook.directory or str(found.worktree), found.scope):
            return nothing
        if hook.source in state.PEOPLE:
            run.note_turn(hook, found, locate_database(memory.config, found))
        meaning = keeper.has_model(found.worktree)
        return run.answer(hook, memory, meaning=meaning) or nothing
    except Exception as error:  # noqa: BLE001 - the outermost boundary of a hook
        run.count_failure("prompt", HOST, f"{type(error).__name__}: {error}")
        return nothing
