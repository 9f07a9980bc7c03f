"""Disks that are full, files that may not be written, locks that are held, and power that goes."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import apsw
import pytest
import store_worker
from powerloss import PowerLoss
from stores import MODEL, NOW, child_environment, content_hash, everything, make, put, vector
from test_concurrency import CONTEXT, Worker

from bethink.errors import StoreBusy, StoreError
from bethink.store.sqlite import SqliteStore
from bethink.types import Batch, Change, Entry

CRASHES = int(os.environ.get("BETHINK_TEST_CRASHES", "14"))
NOBODY = 65534


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "memory.db"


def child(code: str, *arguments: str) -> dict:
    """Runs a script in another process and returns the JSON it prints last."""
    environment = child_environment(
        BETHINK_EMBEDDING="hashing",
        BETHINK_OFFLINE="1",
        BETHINK_HOME=tempfile.gettempdir() + "/no-such-home",
    )
    run = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=90,
        env=environment,
        cwd="/",
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


# Full disks

FULL_DISK = """
import json, os, resource, signal, sys
from bethink import Bethink
from bethink.errors import StoreError

path = sys.argv[1]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
said, acknowledged, refused = [], [], 0
with Bethink(path, directory=os.path.dirname(path)) as memory:
    for n in range(5):
        acknowledged.append(memory.add(f"early memory number {n} about topic{n}").id)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    room = max(os.path.getsize(path), os.path.getsize(path + "-wal")) + 200_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    for n in range(200):
        try:
            acknowledged.append(memory.add(f"later memory {n} " + " ".join(f"w{n}x{i}" for i in range(300)), dedup=False).id)
        except StoreError as error:
            said.append([type(error).__name__, error.message, error.hint])
            refused += 1
            if refused == 3:
                break
    readable = len(memory.search("early memory about topic3").hits) > 0
    inside = {found.id for found in memory.export()}
    lost = [id for id in acknowledged if id not in inside]
    extra = len(inside) - len(acknowledged)
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    again = memory.add("there is room again").status
    problems = [problem.message for problem in memory.check(deep=True)]
told = {"said": said, "count": len(acknowledged), "readable": readable, "lost": lost, "extra": extra, "again": again, "problems": problems}
print(json.dumps(told))
"""


def test_a_full_disk_refuses_with_a_sentence_and_loses_nothing(path):
    told = child(FULL_DISK, str(path))
    assert len(told["said"]) == 3, "the disk never got full"
    for kind, message, hint in told["said"]:
        assert kind == "StoreError"
        assert message.endswith("nothing was changed.")
        assert hint
    assert told["count"] > 5
    assert told["readable"]
    assert (told["lost"], told["extra"], told["again"], told["problems"]) == ([], 0, "added", [])


# Files that may not be written

READ_ONLY = """
import json, os, sys, tempfile
from bethink import Bethink
from bethink.errors import BethinkError

path = sys.argv[1]
with tempfile.TemporaryDirectory() as folder, Bethink(folder + "/warm.db", directory=folder) as memory:
    memory.add("all modules are loaded before the rights are given up")
    memory.search("modules"); memory.list(); memory.check(True); memory.stats()
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
told = {}
def attempt(name, action):
    try:
        told[name] = ["ok", action()]
    except BethinkError as error:
        told[name] = [type(error).__name__, error.message, error.hint]
try:
    memory = Bethink(path, directory="/")
except BethinkError as error:
    told["open"] = [type(error).__name__, error.message, error.hint]
else:
    from bethink.types import Filter
    all = Filter(scopes=tuple(memory.store.scopes()))
    attempt("list", lambda: [found.content for found in memory.list(filter=all)])
    attempt("search", lambda: [hit.memory.content for hit in memory.search("owl", filter=all).hits])
    attempt("check", lambda: [problem.message for problem in memory.check(True)])
    attempt("add", lambda: memory.add("something new").status)
    memory.close()
print(json.dumps(told))
"""


@pytest.fixture
def public():
    """A folder that another user can reach: pytest's own are for the owner alone."""
    folder = Path(tempfile.mkdtemp(prefix="bethink-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("leftovers", "folder_mode"), [(False, 0o755), (True, 0o777)], ids=["closed", "in use"]
)
def test_a_database_that_may_not_be_written_is_never_changed_and_never_a_traceback(
    public, folder_mode, leftovers
):
    path = public / "memory.db"
    store = SqliteStore(path)
    put(store, make("an owl"))
    if not leftovers:
        store.close()
    mode = 0o444 if os.geteuid() == 0 else 0o400
    for file in public.iterdir():
        file.chmod(mode)
    public.chmod(folder_mode if os.geteuid() == 0 else folder_mode & 0o500)
    told = child(READ_ONLY, str(path), str(NOBODY))
    public.chmod(0o755)
    for file in public.iterdir():
        file.chmod(0o600)
    assert leftovers or "open" not in told, "what was closed can be searched wherever it lies"
    if "open" in told:
        kind, message, hint = told["open"]
        assert kind == "StoreError"
        assert message.endswith(".")
        assert hint
    else:
        kind, message, hint = told["add"]
        assert kind == "StoreError"
        assert "read-only" in message
        assert hint
        for name in ("list", "search"):
            assert told[name] == ["ok", ["an owl"]]
        assert told["check"][0] in ("ok", "StoreError")
    store.close()
    store = SqliteStore(path)
    assert [memory.content for memory in store.list(everything())] == ["an owl"]
    assert put(store, make("a heron")).added == 1
    store.close()


# Locks


def test_a_lock_held_for_too_long_is_busy_and_not_broken(offline, path):
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


# Power


class Life:
    """What is written before the power goes, and what must be there afterwards: all that was acknowledged, and of the write that
    was under way either everything or nothing."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, str] = {}
        self.under_way: dict[str, str] = {}

    def write(self, store: SqliteStore, batch: Batch, after: dict[str, str]) -> None:
        self.under_way = after
        store.write(batch)
        self.acknowledged = after

    def run(self, store: SqliteStore) -> None:
        memories = [
            make(f"memory {n} about owl{n} and heron{n}", tags=(f"tag{n}",)) for n in range(5)
        ]
        for memory in memories:
            entry = Entry(memory, [vector(memory.content)])
            cache = {content_hash(memory.content)[:32]: [vector(memory.content)]}
            self.write(
                store,
                Batch(at=NOW, add=(entry,), model=MODEL, cache=cache),
                {**self.acknowledged, memory.id: memory.content},
            )
        new = "an edited text about a crow"
        edit = Change(memories[1].id, "update", {"content": new, "content_hash": content_hash(new)})
        self.write(
            store,
            Batch(at=NOW, change=(edit,), vectors={memories[1].id: [vector(new)]}, model=MODEL),
            {**self.acknowledged, memories[1].id: new},
        )
        gone = memories[2].id
        self.write(
            store,
            Batch(at=NOW, purge=(gone,)),
            {id: text for id, text in self.acknowledged.items() if id != gone},
        )
        last = make("the last memory")
        self.write(
            store,
            Batch(at=NOW, add=(Entry(last, [vector(last.content)]),), model=MODEL),
            {**self.acknowledged, last.id: last.content},
        )


def lives_and_dies(folder: Path, lost_at: int | None) -> tuple[Life, PowerLoss]:
    """Runs a life until the power goes. Returns it and the disk."""
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
    assert problems == []
    assert works == 1
    return state


def crash(tmp_path: Path, lost_at: int) -> tuple[Life, dict[str, str]]:
    before, after = tmp_path / f"before-{lost_at}", tmp_path / f"after-{lost_at}"
    before.mkdir()
    after.mkdir(mode=0o700)
    life, disk = lives_and_dies(before, lost_at)
    disk.survive(after, random.Random(lost_at))
    state = found_after(after)
    shutil.rmtree(before)
    shutil.rmtree(after)
    return life, state


def moments(tmp_path: Path, count: int, seed: int) -> list[int]:
    """Numbers of operations at which the power may go, spread over a whole life."""
    whole = tmp_path / "whole"
    whole.mkdir()
    life, disk = lives_and_dies(whole, None)
    assert found_after(whole) == life.acknowledged
    return sorted(random.Random(seed).sample(range(1, disk.operations + 1), count))


@pytest.mark.timeout(60 + 2 * CRASHES)
def test_power_loss_at_any_moment_loses_nothing_that_was_acknowledged(tmp_path):
    for lost_at in moments(tmp_path, CRASHES, seed=21):
        life, state = crash(tmp_path, lost_at)
        assert state in (life.acknowledged, life.under_way), (
            f"the power went at operation {lost_at}"
        )
