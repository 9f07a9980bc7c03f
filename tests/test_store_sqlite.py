"""What is true of SQLite alone: files and their permissions, pragmas, what purging leaves behind, old databases.

A database that is open in this process is never read with `open()`: that would drop SQLite's locks. `traces` asks grep.
"""

from __future__ import annotations

import os
import random
import re
import stat
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest
from case_tables import cases
from stores import (
    HERE,
    MODEL,
    NOW,
    content_hash,
    day,
    everything,
    files,
    make,
    pick,
    put,
    raw,
    seen,
    vector,
    vectors_of,
    write,
)

from bethink import Bethink
from bethink.errors import StoreCorrupt, StoreError, StoreTooNew
from bethink.recall.query import parse
from bethink.store import connection as connections
from bethink.store import sqlite
from bethink.store.sqlite import SqliteStore
from bethink.store.vectors import encode
from bethink.types import PERSONAL, Change, Entity, Passage, Source

SOURCE = Path(connections.__file__).parent.parent
FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def opened(path):
    store = SqliteStore(path, timeout=5)
    yield store
    store.close()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def traces(folder: Path, words: list[str | bytes]) -> list[str]:
    """Which of these stand in any file below a folder, in whatever case. Asked of another process."""
    found = []
    for word in words:
        pattern = "".join(
            f"\\x{byte:02x}" for byte in (word.encode() if isinstance(word, str) else word)
        )
        run = subprocess.run(
            ["grep", "-rlaPi" if isinstance(word, str) else "-rlaP", pattern, str(folder)],
            capture_output=True,
            text=True,
            env={**os.environ, "LC_ALL": "C"},
        )
        assert run.returncode in (0, 1), run.stderr
        found += [f"{word!r} in {Path(file).name}" for file in run.stdout.splitlines()]
    return found


@contextmanager
def umask(value: int):
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)


# Permissions


def test_files_and_folder_are_for_their_owner_alone(tmp_path):
    with umask(0o022):
        store = SqliteStore(tmp_path / "new" / "memory.db")
        put(store, make("a text"))
        assert {file.name: mode(file) for file in files(store.path)} == {
            "memory.db": 0o600,
            "memory.db-wal": 0o600,
            "memory.db-shm": 0o600,
        }
        assert mode(tmp_path / "new") == 0o700
        store.backup(str(tmp_path / "new" / "copy.db"))
        assert mode(tmp_path / "new" / "copy.db") == 0o600
        assert store.check() == []
        store.close()


def test_a_database_that_others_could_read_is_closed_to_them(path):
    SqliteStore(path).close()
    path.chmod(0o644)
    store = SqliteStore(path)
    assert mode(path) == 0o600
    path.chmod(0o640)
    assert [problem.part for problem in store.check()] == ["permissions"]
    store.close()


# Opening


def test_the_promises_of_a_connection(opened):
    pragma = opened.connection.pragma
    promised = {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "secure_delete": 1,
        "busy_timeout": 5000,
        "user_version": connections.SCHEMA,
        "application_id": connections.APPLICATION,
        "journal_size_limit": connections.WAL_LIMIT,
    }
    assert {name: pragma(name) for name in promised} == promised
    assert len(connections.migrations()) == connections.SCHEMA
    assert apsw.SQLITE_VERSION_NUMBER >= connections.OLDEST_SQLITE == 3_051_003


def test_an_old_sqlite_is_refused(path, monkeypatch):
    monkeypatch.setattr(apsw, "SQLITE_VERSION_NUMBER", 3_051_002)
    with pytest.raises(StoreError, match="can corrupt") as caught:
        SqliteStore(path)
    assert "apsw" in caught.value.hint
    assert not path.exists()


def test_opening_and_reading_writes_nothing(path):
    store = SqliteStore(path)
    put(store, make("an owl"), make("a heron"))
    store.close()
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    store = SqliteStore(path)
    store.list(seen())
    store.keyword(parse("owl", NOW), seen(), 10)
    store.nearest(vector("owl"), MODEL, seen(), 10)
    store.overview()
    store.close()
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert files(path) == [path]


def test_a_database_of_a_newer_version_is_left_alone(path):
    SqliteStore(path).close()
    raw(path, f"PRAGMA user_version = {connections.SCHEMA + 1}")
    before = path.read_bytes()
    with pytest.raises(StoreTooNew, match=f"schema {connections.SCHEMA + 1}") as caught:
        SqliteStore(path)
    assert "Upgrade" in caught.value.hint
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", cases("store-sqlite-a-file-that-is", globals()))
def test_a_file_that_is_no_database_is_left_alone(path, content):
    path.write_bytes(content)
    with pytest.raises(StoreCorrupt, match="is not a Bethink database") as caught:
        SqliteStore(path)
    assert caught.value.hint
    assert path.read_bytes() == content
    assert files(path) == [path]


@pytest.mark.parametrize(
    "pragmas",
    [
        "",
        "PRAGMA user_version = 1",
        "PRAGMA user_version = 7",
        "PRAGMA application_id = 99",
        "PRAGMA application_id = 99; PRAGMA user_version = 1",
    ],
)
def test_the_database_of_another_program_is_left_alone(path, pragmas):
    raw(path, f"CREATE TABLE theirs(a); {pragmas}")
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt, match="another program"):
        SqliteStore(path)
    assert path.read_bytes() == before


def test_the_connection_of_a_thread_is_given_back_when_the_thread_ends(opened):
    put(opened, make("an owl"))
    descriptors = Path("/proc/self/fd") if Path("/proc/self/fd").exists() else Path("/dev/fd")
    before = len(list(descriptors.iterdir()))
    for _ in range(60):
        thread = threading.Thread(target=lambda: opened.count(seen()))
        thread.start()
        thread.join()
    assert len(list(descriptors.iterdir())) < before + 10


# What purging leaves behind

SECRET = {
    "content": "Xylorimba quokkaberry meets zwieback at Wolpertinger castle",
    "summary": "jackalope summary",
    "tags": ("vexillum",),
    "metadata": {"note": "yttriferous"},
    "entities": (Entity("Kumquatville", "person"),),
    "keywords": ("pfeffernuss",),
    "section": "Zugzwang heading",
}
EARLIER = "Before that it was the ocelotfish and the nudibranch"
WORDS = (
    "ylorimba uokkaberry wieback olpertinger ackalope exillum ttriferous umquatville "
    "feffernuss ugzwang celotfish udibranch"
).split()


def test_a_purged_memory_leaves_no_trace_in_any_file(path, opened, company=150):
    """Words are looked for without their first letter, which the full-text index may share with a neighbour."""
    rng = random.Random(1)
    others = [make(" ".join(f"w{rng.randrange(2000)}" for _ in range(40))) for _ in range(company)]
    secret = make(EARLIER, **{name: value for name, value in SECRET.items() if name != "content"})
    for start in range(0, company, 40):
        put(opened, *others[start : start + 40])
    hash = content_hash("cache key")[:32]
    put(opened, secret, *others[:0], cache={hash: vectors_of(secret)})
    edit = {"content": SECRET["content"], "content_hash": content_hash(SECRET["content"])}
    new = vector(SECRET["content"])
    write(
        opened, change=(Change(secret.id, "update", edit),), vectors={secret.id: [new]}, model=MODEL
    )
    write(
        opened,
        change=(Change(secret.id, "update", {"summary": "jackalope again"}),),
        access=(secret.id,),
    )
    for other in others[:5]:
        write(opened, change=(Change(other.id, "update", {"importance": 9.0}),))
    sought = [*WORDS, content_hash(SECRET["content"]), encode(new), secret.id]
    opened.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    assert len({trace.split(" in ")[0] for trace in traces(path.parent, sought)}) == len(sought), (
        "the search itself must work"
    )
    write(opened, purge=(secret.id,))
    assert traces(path.parent, sought) == []
    assert opened.check(deep=True) == []
    opened.close()
    assert traces(path.parent, sought) == []


def test_a_purge_that_another_reader_holds_up_says_so_and_the_text_goes_by_itself(
    path, opened, monkeypatch
):
    monkeypatch.setattr(sqlite, "PATIENCE", 0.1)
    secret = make(SECRET["content"])
    put(opened, secret, make("an owl"))
    reader = SqliteStore(path)
    reader.connection.execute("BEGIN")
    assert reader.count(seen()) == 2
    receipt = write(opened, purge=(secret.id,))
    assert (receipt.purged, len(receipt.hints)) == (1, 1)
    assert "still reading" in receipt.hints[0]
    assert traces(path.parent, WORDS[:2]) != [], "the reader was to keep it"
    reader.connection.execute("COMMIT")
    put(opened, make("a heron"))
    assert traces(path.parent, WORDS[:4]) == []
    assert raw(path, "SELECT 1 FROM meta WHERE key = 'scrub'") == []
    reader.close()


def steps(connection: apsw.Connection, action) -> int:
    """How many thousands of steps SQLite's machine takes for something: work, not time."""
    count = 0

    def tick() -> bool:
        nonlocal count
        count += 1
        return False

    connection.set_progress_handler(tick, 1000)
    try:
        action()
    finally:
        connection.set_progress_handler(None)
    return count


@pytest.fixture(scope="module")
def sizes(tmp_path_factory):
    """Two databases, one with eight times as many memories."""
    stores = []
    for number in (150, 1200):
        store = SqliteStore(tmp_path_factory.mktemp("size") / "memory.db")
        rng = random.Random(number)
        for at in range(0, number, 150):
            put(
                store,
                *(
                    make(
                        f"n{n} " + " ".join(f"w{rng.randrange(5000)}" for _ in range(60)),
                        entities=(Entity(f"Name{n}", "person"),),
                    )
                    for n in range(at, at + 150)
                ),
            )
        store.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        stores.append(store)
    yield stores
    for store in stores:
        store.close()


def purge_cost(store: SqliteStore) -> tuple[int, int]:
    """Steps that a purge of three memories takes, and bytes that it writes to the log."""
    log, largest = Path(f"{store.path}-wal"), [0]
    ids = tuple(memory.id for memory in store.list(seen(), limit=3))

    def committed(*_) -> int:
        largest.append(log.stat().st_size)
        return apsw.SQLITE_OK

    store.connection.set_wal_hook(committed)
    try:
        work = steps(store.connection, lambda: write(store, purge=ids))
    finally:
        store.connection.set_wal_hook(None)
    return work, max(largest)


def test_a_purge_costs_what_it_touches(sizes):
    (small, small_log), (large, large_log) = map(purge_cost, sizes)
    assert large < 2 * small + 5
    assert large_log < 3 * small_log


def test_secrets_and_private_parts_never_reach_a_file(offline, path):
    token, key, password = (
        "ghp_" + "a1B2c3D4" * 4 + "e5F6",
        "AKIA" + "QWERTYUIOP" + "ASDFGH",
        "hunter2horse",
    )
    with Bethink(path) as memory:
        memory.add(
            f"The deploy token is {token} and <private>the ocelotfish is ill</private> must stay",
            tags=["deploy"],
            metadata={"token": token},
        )
        id = memory.add(f"aws_access_key_id = {key}", summary=f"key {key}").id
        memory.update(
            id,
            content=f"Use postgres://admin:{password}@db.example.com/orders",
            summary=f"token {token}",
        )
        memory.ingest(
            [
                (
                    Source("docs/a.md", "markdown", "h"),
                    [Passage(f"password: {password}\n\ntoken {token}", section=f"Section {token}")],
                )
            ]
        )
        memory.search(f"what is {token}")
        memory.backup(path.parent / "copy.db")
        assert traces(path.parent, ["eploy"]) != []
        assert (
            traces(path.parent, [token, token[4:], key, password, "celotfish", content_hash(token)])
            == []
        )


# Old databases


def load(dump: Path, path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(dump.read_text("utf-8"))
    connection.pragma("journal_mode", "WAL")
    connection.close()


@pytest.mark.parametrize("dump", sorted(FIXTURES.glob("schema-*.sql")), ids=lambda dump: dump.stem)
def test_a_database_of_every_earlier_version_opens_and_is_whole(dump, path):
    load(dump, path)
    assert raw(path, "PRAGMA user_version") == [(int(dump.stem.partition("-")[2]),)]
    store = SqliteStore(path)
    assert store.connection.pragma("user_version") == connections.SCHEMA
    assert store.check(deep=True) == []
    filter = everything(HERE, PERSONAL)
    assert sorted(memory.content for memory in store.scan(filter)) == [
        "Deploys happen from main",
        "I prefer tabs to spaces",
        "We keep sessions in MySQL",
        "We keep sessions in Redis",
    ]
    old, new, page, mine = store.get(
        [f"01900000-0000-7000-8000-00000000000{n}" for n in (1, 2, 3, 4)]
    )
    assert pick(old, "superseded_by valid_to entities") == (
        new.id,
        day(2),
        (Entity("MySQL", "technology"),),
    )
    assert pick(page, "path lines section metadata") == (
        "docs/deploy.md",
        (3, 9),
        "Deploy",
        {"level": 2},
    )
    assert (mine.importance, mine.access_count, new.tags) == (8.0, 1, ("cache",))
    assert [event.action for event in store.history(mine.id)] == ["add", "update"]
    assert [relation.type for relation in store.relations([old.id])] == ["supersedes"]
    assert store.find_purged([content_hash("The wedding is in May")])
    assert set(store.read_cache([bytes(16)], MODEL)) == {bytes(16)}
    assert store.source(HERE, "docs/deploy.md") == Source(
        "docs/deploy.md", "markdown", "hash", 9, {}
    )
    for ranking in (
        store.keyword(parse("sessions redis", NOW), filter, 1),
        store.nearest(vector(new.content), MODEL, filter, 1),
    ):
        assert store.load([ranking.items[0][0]])[ranking.items[0][0]].id == new.id
    assert put(store, make("a new text")).added == 1
    assert store.check(deep=True) == []
    store.close()


def test_an_old_database_has_the_schema_of_a_new_one_once_opened(tmp_path):
    """When this fails, the schema changed: write a migration for it, or, before the first release, run tests/fixtures/dump.py."""

    def schema(path: Path) -> dict[str, str]:
        store = SqliteStore(path)
        found = {
            name: re.sub(r"\s*--[^\n]*|\s+", " ", sql).strip()
            for name, sql in store.connection.execute(
                "SELECT name, sql FROM sqlite_schema WHERE sql <> ''"
            )
        }
        store.close()
        return found

    expected = schema(tmp_path / "new.db")
    for dump in sorted(FIXTURES.glob("schema-*.sql")):
        load(dump, tmp_path / f"{dump.stem}.db")
        assert schema(tmp_path / f"{dump.stem}.db") == expected


# One library for one file


def test_no_module_imports_the_sqlite_of_the_standard_library():
    for path in SOURCE.rglob("*.py"):
        assert not re.search(r"(?:import|from) sqlite3", path.read_text("utf-8")), path
