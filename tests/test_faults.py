"""Processes and threads that share a database or are killed while they write, disks that are full, locks that are held, and power that goes.

The numbers are small by default. The promise is 8 processes for 30 seconds and 50 kills:

    BETHINK_TEST_PROCESSES=8 BETHINK_TEST_SECONDS=30 BETHINK_TEST_KILLS=50 pytest tests/test_faults.py
"""

import multiprocessing
import os
import random
import shutil
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import apsw
import pytest
import store_worker
from stores import MODEL, NOW, content_hash, everything, make, purge, put, tell, vector

from bethink.errors import StoreBusy, StoreError
from bethink.model import Batch, Change
from bethink.store.sqlite import SqliteStore

SECONDS = float(os.environ.get("BETHINK_TEST_SECONDS", "1.0"))
PROCESSES = int(os.environ.get("BETHINK_TEST_PROCESSES", "4"))
KILLS = int(os.environ.get("BETHINK_TEST_KILLS", "4"))
# Processes start from a clean one that has only imported what they need, not as copies of this one and its open files.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["store_worker"])


@pytest.fixture
def database(offline, tmp_path) -> str:
    return str(tmp_path / "memory.db")


class Worker:
    """A process and what it tells."""

    def __init__(self, action, database: str, *arguments) -> None:
        self.ear, mouth = CONTEXT.Pipe(duplex=False)
        given = (database, *arguments, mouth)
        self.process = CONTEXT.Process(target=action, args=given, daemon=True)
        self.process.start()
        mouth.close()

    def hear(self):
        assert self.ear.poll(60), "the process said nothing for a minute"
        return self.ear.recv()

    def rest(self) -> list:
        """All that it still tells, up to its end."""
        heard = []
        with suppress(EOFError):
            while self.ear.poll(SECONDS + 90):
                heard.append(self.ear.recv())
        self.process.join(30)
        assert self.process.exitcode is not None
        self.process.close()
        self.ear.close()
        return heard


def integrity(database: str, acknowledged: set[str]) -> None:
    """Nothing lost, and every part agrees with every other."""
    with store_worker.opened(database) as memory:
        stored = {found.id for found in memory.store.scan(everything(*memory.every_scope()))}
        assert not acknowledged - stored, "acknowledged memories are lost"
        rows, indexed, embedded, counted = memory.store.connection.execute(
            "SELECT (SELECT count(*) FROM memories), (SELECT count(*) FROM memories_fts_docsize),"
            " (SELECT count(DISTINCT memory) FROM vectors), (SELECT sum(memories) FROM scopes)"
        ).get
        assert rows == indexed == embedded == counted == len(stored)
        assert memory.check(deep=True) == []


@pytest.mark.timeout(120 + 3 * SECONDS)
def test_processes_that_create_a_database_at_once_and_use_it_lose_nothing(database):
    go = CONTEXT.Event()
    given = [(seed, SECONDS, go) for seed in range(PROCESSES)]
    workers = [Worker(store_worker.add_and_search, database, *each) for each in given]
    assert {worker.hear() for worker in workers} == {"ready"}
    go.set()
    heard = [worker.rest() for worker in workers]
    assert [message for messages in heard for message in messages if message[0] == "error"] == []
    assert all(messages[-1][0] == "done" for messages in heard)
    each = [{id for what, id in messages if what == "added"} for messages in heard]
    assert all(each), "every process got its turn"
    acknowledged = set().union(*each)
    assert len(acknowledged) == sum(map(len, each))
    integrity(database, acknowledged)
    assert Path(f"{database}-wal").exists() is False  # the last to close cleans up


@pytest.mark.timeout(60 + 5 * KILLS)
def test_a_process_killed_while_writing_loses_nothing_it_acknowledged(database):
    rng = random.Random(11)
    acknowledged: set[str] = set()
    for kill in range(KILLS):
        worker = Worker(store_worker.add_until_killed, database, kill)
        assert worker.hear() == "ready"
        wanted = rng.randrange(0, 12)
        heard = [worker.hear() for _ in range(wanted)]
        worker.ear.poll(rng.uniform(0, 0.01))  # then somewhere inside the next write
        worker.process.kill()
        acknowledged |= {*heard, *worker.rest()}
    assert len(acknowledged) >= KILLS
    integrity(database, acknowledged)


def test_one_memory_used_by_eight_threads(database):
    start = threading.Barrier(8)
    with store_worker.opened(database) as memory, ThreadPoolExecutor(8) as pool:

        def work(seed: int) -> set[str]:
            rng = random.Random(seed)
            start.wait()
            made = [store_worker.use(memory, rng, f"thread{seed}", number) for number in range(12)]
            for id in made[5::6]:
                memory.forget(id, purge=True)
            return set(made) - set(made[5::6])

        acknowledged = set().union(*pool.map(work, range(8)))
    assert len(acknowledged) == 80
    integrity(database, acknowledged)


CRASHES = int(os.environ.get("BETHINK_TEST_CRASHES", "14"))
ROOT = os.geteuid() == 0


def test_a_full_disk_loses_nothing(tmp_path):
    told = Worker(store_worker.fill_the_disk, str(tmp_path / "memory.db")).hear()
    assert len(told["said"]) == 3, "the disk never got full"
    assert [
        kind
        for kind, message, hint in told["said"]
        if (kind != "StoreError" or not hint) or not message.endswith("nothing was changed.")
    ] == []
    assert told["found"], "what was there can be read"
    assert told["lost"] == told["extra"] == told["problems"] == []
    assert told["again"] == "added"


@pytest.fixture
def public():
    """A folder that another user can reach: pytest's own are for the owner alone."""
    folder = Path(tempfile.mkdtemp(prefix="bethink-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize(("leftovers", "folder_mode"), [(False, 0o755), (True, 0o777)])
def test_a_database_that_may_not_be_written_is_never_changed(public, folder_mode, leftovers):
    path = public / "memory.db"
    store = SqliteStore(path)
    tell(store, "an owl")
    if not leftovers:
        store.close()
    for file in public.iterdir():
        file.chmod(0o444 if ROOT else 0o400)
    public.chmod(folder_mode if ROOT else folder_mode & 0o500)
    told = Worker(store_worker.use_as_nobody, str(path)).hear()
    public.chmod(0o755)
    for file in public.iterdir():
        file.chmod(0o600)
    assert leftovers or "open" not in told, "what was closed can be searched wherever it lies"
    kind, message, hint = told["open" if "open" in told else "add"]
    assert message.endswith(".") and hint
    if "open" not in told:
        assert kind == "StoreReadOnly" and "read-only" in message
        assert told["list"] == told["search"] == ["ok", ["an owl"]]
        assert told["check"][0] in ("ok", "StoreError")
    store.close()
    store = SqliteStore(path)
    assert [memory.content for memory in store.list(everything())] == ["an owl"]
    assert put(store, make("a heron")).added == 1
    store.close()


@pytest.fixture
def unclosed(public, tmp_path):
    """Copies a database as a killed process leaves it, all of it still in the log, to a folder in which nothing can be written."""

    def copy(*suffixes: str) -> Path:
        store = SqliteStore(tmp_path / "memory.db")
        tell(store, "an owl")
        for suffix in ("", *suffixes):
            shutil.copyfile(tmp_path / f"memory.db{suffix}", public / f"memory.db{suffix}")
            (public / f"memory.db{suffix}").chmod(0o444 if ROOT else 0o400)
        store.close()
        public.chmod(0o555 if ROOT else 0o500)
        return public / "memory.db"

    yield copy
    public.chmod(0o755)


@pytest.mark.parametrize(
    "suffixes",
    [
        pytest.param(("-wal", "-shm"), id="with the index of its log"),
        pytest.param(("-wal",), id="without the index of its log"),
    ],
)
def test_an_unclosed_database_in_a_folder_that_cannot_be_written_is_searched(unclosed, suffixes):
    path = unclosed(*suffixes)
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    told = Worker(store_worker.use_as_nobody, str(path)).hear()
    assert told["list"] == told["search"] == ["ok", ["an owl"]]
    assert told["add"][0] == "StoreReadOnly"
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


def test_a_lock_held_for_too_long_is_reported_as_busy(offline, tmp_path):
    path = tmp_path / "memory.db"
    SqliteStore(path).close()
    go = CONTEXT.Event()
    holder = Worker(store_worker.hold_the_lock, str(path), go)
    assert holder.hear() == "held"
    store = SqliteStore(path, timeout=0.3)
    started = time.monotonic()
    with pytest.raises(StoreBusy, match="did not finish in time") as caught:
        put(store, make("an owl"))
    assert time.monotonic() - started > 0.25
    assert "busy_timeout" in caught.value.hint
    assert store.count(everything()) == 0  # readers are not kept out
    go.set()
    assert holder.rest() == ["released"]
    assert put(store, make("an owl")).added == 1
    assert store.check(deep=True) == []
    store.close()


SECTOR = 512


class PowerLoss(apsw.VFS):
    """A disk that loses power: the default VFS while it is registered.

    Every write goes to the real file and is also noted as not yet safe; a sync makes what was noted safe. When the power goes,
    at the operation whose number was given, every call fails from then on. `survive` then writes what such a disk might hold:
    all that was synced, and of the rest any choice of sectors, in any order, torn anywhere between them.
    """

    def __init__(self, lost_at: int | None = None) -> None:
        self.lost_at, self.operations, self.dark = lost_at, 0, False
        self.safe: dict[str, bytearray] = {}
        self.unsafe: dict[str, list] = {}  # (offset, data), or (size, None) for a truncation
        super().__init__("powerloss", "unix", makedefault=True)

    def xOpen(self, name, flags):
        return DyingFile(self, name, flags)

    def xDelete(self, name, syncdir):
        self.step()
        self.safe.pop(name, None)
        self.unsafe.pop(name, None)
        super().xDelete(name, syncdir)

    def step(self) -> None:
        """Counts an operation that changes the disk. From the fatal one on nothing happens any more."""
        if self.dark:
            raise apsw.IOError("the power is off")
        self.operations += 1
        self.dark = self.operations == self.lost_at

    def survive(self, folder: Path, rng: random.Random) -> None:
        """Puts what the disk may hold after the loss into a folder."""
        taste = rng.choice((0.0, 0.5, 0.9, 1.0))  # nothing unsynced, some, most, all
        for name, content in self.safe.items():
            for offset, data in self.unsafe[name]:
                pieces = [None] if data is None else range(0, len(data), SECTOR)
                for at in pieces:
                    if rng.random() < taste:
                        change(content, offset + (at or 0), data and data[at : at + SECTOR])
            target = folder / Path(name).name
            target.write_bytes(content)
            target.chmod(0o600)


def change(content: bytearray, offset: int, data: bytes | None) -> None:
    """Writes into what a disk holds, or cuts it off."""
    if data is None:
        del content[offset:]
    else:
        content.extend(bytes(max(0, offset - len(content))))
        content[offset : offset + len(data)] = data


class DyingFile(apsw.VFSFile):
    def __init__(self, vfs: PowerLoss, name, flags) -> None:
        self.vfs = vfs
        self.name = name.filename() if isinstance(name, apsw.URIFilename) else name
        super().__init__("unix", name, flags)
        if self.name and self.name not in vfs.safe:
            path = Path(self.name)
            vfs.safe[self.name] = bytearray(path.read_bytes() if path.exists() else b"")
            vfs.unsafe[self.name] = []

    def note(self, offset, data):
        if self.name:
            self.vfs.step()  # the fatal write may still be there in part
            self.vfs.unsafe[self.name].append((offset, data))

    def xWrite(self, data, offset):
        self.note(offset, bytes(data))
        super().xWrite(data, offset)

    def xTruncate(self, size):
        self.note(size, None)
        super().xTruncate(size)

    def xSync(self, flags):
        """Makes safe what was noted. The real file need not be: only `survive` decides what is left of it."""
        if self.name:
            self.vfs.step()
            if self.vfs.dark:
                raise apsw.IOError("the power went during a sync")  # and nothing became safe by it
            for offset, data in self.vfs.unsafe[self.name]:
                change(self.vfs.safe[self.name], offset, data)
            self.vfs.unsafe[self.name].clear()


class Life:
    """What is written before the power goes, and what must be there afterwards: all that was acknowledged, and of the write that
    was under way either everything or nothing."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, str] = {}
        self.under_way: dict[str, str] = {}

    def run(self, store: SqliteStore) -> None:
        memories = [make(f"memory {n} about owl{n}", tags=(f"tag{n}",)) for n in range(5)]
        edited, purged, last = memories[1], memories[2], make("the last memory")
        new = "an edited text about a crow"
        text = {"content": new, "content_hash": content_hash(new)}
        changes = (Change(edited.id, "update", text),)
        edit = Batch(NOW, change=changes, model=MODEL, vectors={edited.id: [vector(new)]})
        for memory in memories:
            cache = {content_hash(memory.content)[:32]: [vector(memory.content)]}
            changed = {memory.id: memory.content}
            self.write(lambda m=memory, c=cache: put(store, m, cache=c), changed)
        self.write(lambda: store.write(edit), {edited.id: new})
        self.write(lambda: purge(store, purged), {purged.id: None})
        self.write(lambda: put(store, last), {last.id: last.content})

    def write(self, action, changed: dict) -> None:
        after = {**self.acknowledged, **changed}
        self.under_way = {id: text for id, text in after.items() if text is not None}
        action()
        self.acknowledged = self.under_way


def lives_and_dies(folder: Path, lost_at: int | None) -> tuple[Life, PowerLoss]:
    """Runs a life until the power goes. Returns it and the disk."""
    folder.mkdir()
    life, disk = Life(), PowerLoss(lost_at)
    try:
        store = SqliteStore(folder / "memory.db", timeout=1)
        store.connection.pragma("wal_autocheckpoint", 12)  # so that some fall into checkpoints
        try:
            life.run(store)
        finally:
            with suppress(apsw.IOError):  # those of a disk in Python are told on closing
                store.close()
    except StoreError as error:
        assert lost_at is not None, error
    finally:
        disk.unregister()
    return life, disk


def found_after(folder: Path) -> dict[str, str]:
    """What a later start finds, having checked that all of it is sound."""
    store = SqliteStore(folder / "memory.db", timeout=1)
    problems = store.check(deep=True)
    state = {memory.id: memory.content for memory in store.scan(everything())}
    works = put(store, make("life goes on")).added
    store.close()
    assert (problems, works) == ([], 1)
    return state


@pytest.mark.timeout(60 + 2 * CRASHES)
def test_power_loss_at_any_moment_loses_nothing_that_was_acknowledged(tmp_path):
    life, disk = lives_and_dies(tmp_path / "whole", None)
    assert found_after(tmp_path / "whole") == life.acknowledged
    for lost_at in sorted(random.Random(21).sample(range(1, disk.operations + 1), CRASHES)):
        life, disk = lives_and_dies(tmp_path / f"before-{lost_at}", lost_at)
        after = tmp_path / f"after-{lost_at}"
        after.mkdir(mode=0o700)
        disk.survive(after, random.Random(lost_at))
        told = f"the power went at operation {lost_at}"
        assert found_after(after) in (life.acknowledged, life.under_way), told
