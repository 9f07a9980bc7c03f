"""What is true of SQLite alone: files and their permissions, pragmas, what purging leaves behind, old and damaged databases.

A database that is open in this process is never read with `open()`: that would drop SQLite's locks. `traces` asks grep.
"""

import os
import random
import re
import stat
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import apsw
import pytest
import stores
from stores import HERE, MODEL, NOW, content_hash, day, everything, make, raw, seen, tell, vector

from bethink import Bethink
from bethink.errors import BethinkError, StoreCorrupt, StoreError, StoreTooNew
from bethink.model import PERSONAL, Entity, Passage, Source
from bethink.recall.query import parse
from bethink.store import sqlite
from bethink.store.sqlite import SqliteStore
from bethink.store.vectors import encode
from bethink.store.words import query_words

DUMPS = sorted((Path(__file__).parent / "fixtures").glob("schema-*.sql"))


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
        letters = word.encode() if isinstance(word, str) else word
        pattern = "".join(f"\\x{byte:02x}" for byte in letters)
        how = "-rlaPi" if isinstance(word, str) else "-rlaP"
        plain = {**os.environ, "LC_ALL": "C"}
        run = subprocess.run(["grep", how, pattern, folder], capture_output=True, env=plain)
        assert run.returncode in (0, 1), run.stderr
        found += [f"{word!r} in {Path(file).name}" for file in run.stdout.decode().splitlines()]
    return found


def test_database_files_are_private(tmp_path):
    folder = tmp_path / "new"
    before = os.umask(0o022)
    try:
        store = SqliteStore(folder / "memory.db")
        stores.put(store, make("a text"))
        store.backup(str(folder / "copy.db"))
    finally:
        os.umask(before)
    expected = {"memory.db", "memory.db-wal", "memory.db-shm", "copy.db"}
    assert {file.name: mode(file) for file in folder.iterdir()} == dict.fromkeys(expected, 0o600)
    assert mode(folder) == 0o700
    assert store.check() == []
    store.close()
    (folder / "memory.db").chmod(0o644)
    store = SqliteStore(folder / "memory.db")  # which closes it to others again
    assert mode(folder / "memory.db") == 0o600
    (folder / "memory.db").chmod(0o640)
    assert [problem.part for problem in store.check()] == ["permissions"]
    store.close()


def test_reading_writes_nothing(path):
    store = SqliteStore(path)
    tell(store, "an owl", "a heron")
    store.close()
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    store = SqliteStore(path)
    store.list(seen())
    store.keyword(parse("owl", NOW), seen(), 10)
    store.nearest(vector("owl"), MODEL, seen(), 10)
    store.overview()
    store.close()
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert stores.files(path) == [path]


PROMISES = {
    "journal_mode": "wal",
    "synchronous": 2,
    "foreign_keys": 1,
    "secure_delete": 1,
    "busy_timeout": 5000,
    "user_version": sqlite.SCHEMA,
    "application_id": sqlite.APPLICATION,
    "journal_size_limit": sqlite.WAL_LIMIT,
}


def test_the_promises_of_a_connection_that_is_given_back_when_its_thread_ends(opened):
    promised = PROMISES
    assert {name: opened.connection.pragma(name) for name in promised} == promised
    assert apsw.SQLITE_VERSION_NUMBER >= sqlite.OLDEST_SQLITE == 3_051_003
    tell(opened, "an owl")
    descriptors = Path("/proc/self/fd") if Path("/proc/self/fd").exists() else Path("/dev/fd")
    before = len(list(descriptors.iterdir()))
    for _ in range(60):
        thread = threading.Thread(target=lambda: opened.count(seen()))
        thread.start()
        thread.join()
    assert len(list(descriptors.iterdir())) < before + 10


FILE = [
    b"hello",
    b"x" * 511,
    b"text " * 2000,
    bytes(100),
    bytes(8192),
    b"SQLite format 3\x00",
    b"SQLite format 3\x00" + b"x" * 9000,
]


def test_what_is_no_database_of_ours_or_too_new_or_an_old_sqlite_is_refused(path, monkeypatch):
    def refused(error, said):
        before = path.read_bytes()
        with pytest.raises(error, match=said) as caught:
            SqliteStore(path)
        assert caught.value.hint
        assert path.read_bytes() == before
        assert stores.files(path) == [path]
        path.unlink()

    for content in FILE:
        path.write_bytes(content)
        refused(StoreCorrupt, "is not a Bethink database")
    user, application = "PRAGMA user_version = ", "PRAGMA application_id = 99"
    for pragmas in ("", f"{user}1", f"{user}7", application, f"{application}; {user}1"):
        raw(path, f"CREATE TABLE theirs(a); {pragmas}")
        refused(StoreCorrupt, "another program")
    SqliteStore(path).close()
    raw(path, f"PRAGMA user_version = {sqlite.SCHEMA + 1}")
    refused(StoreTooNew, f"schema {sqlite.SCHEMA + 1}")
    monkeypatch.setattr(apsw, "SQLITE_VERSION_NUMBER", 3_051_002)
    with pytest.raises(StoreError, match="can corrupt") as caught:
        SqliteStore(path)
    assert "apsw" in caught.value.hint
    assert not path.exists()


SECRET = "Xylorimba quokkaberry meets zwieback at Wolpertinger castle"
(FIELDS,) = [
    {
        "summary": "jackalope summary",
        "tags": ("vexillum",),
        "metadata": {"note": "yttriferous"},
        "entities": (Entity("Kumquatville", "person"),),
        "keywords": ("pfeffernuss",),
        "section": "Zugzwang heading",
    },
]
EARLIER = "Before that it was the ocelotfish and the nudibranch"
# Without their first letter, which the full-text index may share with a neighbour.
WORDS = (
    "ylorimba uokkaberry wieback olpertinger ackalope exillum ttriferous umquatville "
    "feffernuss ugzwang celotfish udibranch"
).split()


def test_a_purged_memory_leaves_no_trace_in_any_file(path, opened):
    rng = random.Random(1)
    texts = [" ".join(f"w{rng.randrange(2000)}" for _ in range(40)) for _ in range(150)]
    others = [other for at in range(0, 150, 40) for other in tell(opened, *texts[at : at + 40])]
    secret, new = make(EARLIER, **FIELDS), vector(SECRET)
    stores.put(opened, secret, cache={content_hash("cache key")[:32]: stores.vectors_of(secret)})
    stores.edit(opened, secret, SECRET)
    stores.write(opened, vectors={secret.id: [new]}, model=MODEL, access=(secret.id,))
    stores.change(opened, secret.id, summary="jackalope again")
    for other in others[:5]:
        stores.change(opened, other.id, importance=9.0)
    sought = [*WORDS, content_hash(SECRET), encode(new), secret.id]
    opened.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    found = {trace.split(" in ")[0] for trace in traces(path.parent, sought)}
    assert len(found) == len(sought), "the search itself must work"
    stores.purge(opened, secret)
    assert traces(path.parent, sought) == []
    assert opened.check(deep=True) == []
    opened.close()
    assert traces(path.parent, sought) == []


def test_a_purge_that_a_reader_delays_is_completed_later(path, opened, monkeypatch):
    monkeypatch.setattr(sqlite, "PURGE_PATIENCE", 0.1)
    secret, _ = tell(opened, SECRET, "an owl")
    reader = SqliteStore(path)
    reader.connection.execute("BEGIN")
    assert reader.count(seen()) == 2
    receipt = stores.purge(opened, secret)
    assert receipt.purged == 1
    (hint,) = receipt.hints
    assert "still reading" in hint
    assert traces(path.parent, WORDS[:2]) != [], "the reader was to keep it"
    reader.connection.execute("COMMIT")
    tell(opened, "a heron")
    assert traces(path.parent, WORDS[:4]) == []
    assert raw(path, "SELECT 1 FROM meta WHERE key = 'scrub'") == []
    reader.close()


def purge_cost(path: Path, company: int) -> tuple[int, int]:
    """Thousands of steps of SQLite's machine that a purge of three memories takes beside so many others, and bytes in the log."""
    store, rng = SqliteStore(path), random.Random(company)
    texts = [" ".join(f"w{rng.randrange(5000)}" for _ in range(60)) for _ in range(company)]
    for at in range(0, company, 100):
        tell(store, *texts[at : at + 100], entities=(Entity(f"Name{at}", "person"),))
    connection, log, largest, steps = store.connection, Path(f"{path}-wal"), [0], []
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    connection.set_wal_hook(lambda *_: largest.append(log.stat().st_size) or apsw.SQLITE_OK)
    connection.set_progress_handler(lambda: bool(steps.append(1)), 1000)
    stores.purge(store, *store.list(seen(), limit=3))
    connection.set_progress_handler(None)
    store.close()
    return len(steps), max(largest)


def test_a_purge_costs_what_it_touches(tmp_path):
    small, small_log = purge_cost(tmp_path / "small.db", 100)
    large, large_log = purge_cost(tmp_path / "large.db", 800)
    assert large < 2 * small + 5
    assert large_log < 3 * small_log


def test_secrets_never_reach_a_file(offline, path):
    token, key = "ghp_" + "a1B2c3D4" * 4 + "e5F6", "AKIA" + "QWERTYUIOP" + "ASDFGH"
    password, private = "hunter2horse", "<private>the ocelotfish is ill</private>"
    passage = Passage(f"password: {password}\n\ntoken {token}", section=f"Section {token}")
    with Bethink(path) as memory:
        told = f"The deploy token is {token} and {private} must stay"
        deep = {"token": token, "deep": [f"{private} {token}"]}
        fields = {"summary": f"key {token}", "tags": (token, "deploy"), "source": f"note:{token}"}
        outcome = memory.add(told, entities=(token,), metadata=deep, **fields)
        assert outcome.redactions >= 5 and "must stay" in memory.one(outcome.id).content
        id = memory.add(f"aws_access_key_id = {key}", summary=f"key {key}").id
        url = f"Use postgres://admin:{password}@db.example.com/orders"
        memory.update(id, content=url, summary=f"token {token}")
        memory.ingest([(Source("docs/a.md", "markdown", "h"), [passage])])
        memory.search(f"what is {token}")
        memory.backup(path.parent / "copy.db")
        assert traces(path.parent, ["eploy"]) != []
        secrets = [token, token[4:], key, password, "celotfish", content_hash(token)]
        assert traces(path.parent, secrets) == []


def load(dump: Path, path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(dump.read_text("utf-8"))
    connection.pragma("journal_mode", "WAL")
    connection.close()


@pytest.mark.parametrize("dump", DUMPS, ids=lambda dump: dump.stem)
def test_a_database_of_an_earlier_version_is_migrated(dump, path):
    load(dump, path)
    assert raw(path, "PRAGMA user_version") == [(int(dump.stem.partition("-")[2]),)]
    store = SqliteStore(path)
    assert store.connection.pragma("user_version") == sqlite.SCHEMA
    assert store.check(deep=True) == []
    filter = everything(HERE, PERSONAL)
    found = [f"01900000-0000-7000-8000-00000000000{n}" for n in (1, 2, 3, 4)]
    old, new, page, mine = store.get(found)
    texts = "in MySQL|in Redis|from main|to spaces".split("|")
    assert [
        memory
        for memory, text in zip((old, new, page, mine), texts, strict=True)
        if not memory.content.endswith(text)
    ] == []
    assert stores.ids(store.scan(filter)) == set(found)
    assert (old.superseded_by, old.valid_to) == (new.id, day(2))
    assert old.entities == (Entity("MySQL", "technology"),)
    assert stores.pick(page, "path lines section") == ("docs/deploy.md", (3, 9), "Deploy")
    assert (page.metadata, new.tags) == ({"level": 2}, ("cache",))
    assert (mine.importance, mine.access_count) == (8.0, 1)
    assert [event.action for event in store.history(mine.id)] == ["add", "update"]
    assert [relation.type for relation in store.relations([old.id])] == ["supersedes"]
    assert store.find_purged([content_hash("The wedding is in May")])
    assert store.read_cache([bytes(16)], MODEL) == {}  # the cache begins anew
    read = Source("docs/deploy.md", "markdown", "hash", 9, {})
    assert store.find_source("docs/deploy.md") == (HERE, read)
    assert stores.by_words(store, "sessions redis", filter)[0] == new.id
    ((key, _),) = store.nearest(vector(new.content), MODEL, filter, 1)
    assert store.load([key])[key].id == new.id
    assert stores.put(store, make("a new text")).added == 1
    assert store.check(deep=True) == []
    store.close()


@pytest.mark.parametrize("dump", DUMPS, ids=lambda dump: dump.stem)
def test_a_migrated_schema_equals_a_new_one(dump, path, tmp_path):
    def schema(path: Path) -> dict[str, str]:
        SqliteStore(path).close()
        rows = raw(path, "SELECT name, sql FROM sqlite_schema WHERE sql <> ''")
        return {name: re.sub(r"\s*--[^\n]*|\s+", " ", sql).strip() for name, sql in rows}

    load(dump, tmp_path / "old.db")
    assert schema(tmp_path / "old.db") == schema(tmp_path / "new.db")


# Rows, indexes and pages that are not what was written: found, named, and never a foreign error


@pytest.fixture
def birds(opened):
    return tell(opened, "An owl at night", "A heron by day")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        pytest.param("content", "An owl at nighT", id="content-owl-night"),
        pytest.param("summary", "other", id="summary"),
        pytest.param("kind", "decision", id="kind"),
        pytest.param("importance", 9.0, id="importance"),
        pytest.param("confidence", 0.1, id="confidence"),
        pytest.param("created_at", 1, id="created_at"),
        pytest.param("expires_at", 5, id="expires_at"),
        pytest.param("valid_from", 5, id="valid_from"),
        pytest.param("valid_to", 5, id="valid_to"),
        pytest.param("tags", '["x"]', id="tags"),
        pytest.param("metadata", '{"x": 1}', id="metadata"),
        pytest.param("section", "x", id="section"),
        pytest.param("line_start", 3, id="line_start"),
        pytest.param("content", b"\xff\xfe", id="content-bytes"),
        pytest.param("id", "0190", id="id"),
    ],
)
def test_a_row_that_changed_by_itself_is_named(path, opened, birds, column, value):
    assert opened.check(deep=True) == []
    cast = "CAST(? AS TEXT)" if isinstance(value, bytes) else "?"
    raw(path, f"UPDATE memories SET {column} = {cast} WHERE id = ?", (value, birds[0].id))
    (problem,) = opened.check(deep=True)
    assert (problem.part, problem.repair) == ("memory", "restore")
    name = "0190" if column == "id" else "number 1" if isinstance(value, bytes) else birds[0].id
    assert name in problem.message


@pytest.mark.parametrize(
    ("sql", "part"),
    [
        pytest.param(
            "DELETE FROM memories_fts_docsize WHERE id = 1",
            "full-text index",
            id="delete-memories_fts_docsize-WHERE-id-1",
        ),
        pytest.param(
            "INSERT INTO memories_fts(rowid, content, scope) VALUES (99, 'ghost', 'zq1')",
            "full-text index",
            id="insert-INTO-memories_fts-rowid-content-scope",
        ),
        pytest.param(
            "DELETE FROM memories_fts_data WHERE id > 10",
            "full-text index",
            id="delete-memories_fts_data-WHERE-id-10",
        ),
        pytest.param(
            "UPDATE scopes SET memories = memories + 1",
            "word counts",
            id="update-scopes-SET-memories-memories-1",
        ),
        pytest.param(
            "INSERT INTO vectors(model, scope, memory, data) VALUES (1, 1, 99, zeroblob(68))",
            "vectors",
            id="insert-INTO-vectors-model-scope-memory-data",
        ),
        pytest.param(
            "UPDATE vectors SET data = zeroblob(7) WHERE memory = 1",
            "vectors",
            id="update-vectors-SET-data-zeroblob-7-WHERE",
        ),
        pytest.param(
            "UPDATE vectors SET data = zeroblob(length(data)) WHERE memory = 1",
            "vectors",
            id="update-vectors-SET-data-zeroblob-length-data",
        ),
        pytest.param(
            "UPDATE vectors SET data = CAST(substr(data, 1, 4) || zeroblob(length(data) - 4) AS BLOB) WHERE memory = 1",
            "vectors",
            id="update-vectors-SET-data-CAST-substr-data-1-4",
        ),
        pytest.param(
            "UPDATE vectors SET data = CAST(x'0000803f' || substr(data, 5) AS BLOB) WHERE memory = 1",
            "vectors",
            id="update-vectors-SET-data-CAST-x-0000803f",
        ),
        pytest.param(
            "UPDATE vectors SET data = CAST(substr(data, 1, 20) || x'ff7f0080' || substr(data, 25) AS BLOB) WHERE memory = 1",
            "vectors",
            id="update-vectors-SET-data-CAST-substr-data-1",
        ),
    ],
)
def test_a_damaged_index_is_found_then_rebuilt(path, opened, birds, sql, part):
    raw(path, sql)
    assert part in {problem.part for problem in opened.check(deep=True)}
    opened.nearest(vector("an owl at night"), MODEL, seen(), 10)
    assert opened.rebuild() == 2
    made = {memory.id: stores.vectors_of(memory) for memory in opened.list_unembedded(MODEL, 10)}
    stores.write(opened, vectors=made, model=MODEL)
    assert opened.check(deep=True) == []
    assert set(stores.by_words(opened, "owl heron")) == stores.ids(birds)
    assert len(SqliteStore(path).nearest(vector("owl"), MODEL, seen(), 10)) == 2


def test_the_log_shrinks_after_a_long_reader_ends(path, monkeypatch):
    monkeypatch.setattr(sqlite, "WAL_LIMIT", 100_000)
    with closing(SqliteStore(path)) as store, closing(SqliteStore(path)) as reader:
        log = Path(f"{path}-wal")
        store.connection.wal_autocheckpoint(10)
        tell(store, "before the reader")
        reader.connection.execute("BEGIN")
        reader.run("SELECT count(*) FROM memories")
        tell(store, *(f"note {number} about owls " * 40 for number in range(300)))
        grown = log.stat().st_size
        reader.connection.execute("COMMIT")
        tell(store, "one")
        tell(store, "two")
        assert grown > 500_000
        assert log.stat().st_size <= 200_000


def test_vectors_of_a_text_are_found_by_an_index(opened):
    asked = []
    opened.run = lambda sql, *values: asked.append((sql, values)) or []
    opened._model_ids[MODEL] = 1
    opened.read_cache([bytes(16)], MODEL)
    sql, values = asked[-1]
    plan = opened.connection.execute(
        f"EXPLAIN QUERY PLAN {sqlite.translate(sql)}", sqlite.bindings(values)
    )
    assert "SEARCH o USING INDEX vectors_text (text=? AND model=?)" in [row[3] for row in plan]


def test_a_damaged_index_never_blocks_the_texts(path, opened, birds):
    raw(path, "UPDATE memories SET lexemes = x'ffffffff00'; ")
    raw(path, "UPDATE vectors SET data = x'00'")
    raw(path, "UPDATE embedding_cache SET data = x'00'")
    query = parse("owl", NOW)
    keys = [key for key, _ in opened.keyword(query, seen(), 10)]
    (found,) = opened.candidates(keys, seen(), query_words(query), keys)
    assert found.frequencies == (0,)
    assert opened.nearest(vector("owl"), MODEL, seen(), 10) == ()
    stores.change(opened, opened.list(seen(kinds=("fact",)))[0].id, summary="still works")
    opened.rebuild()
    assert opened.check(deep=True) == []


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> bytes:
    """A closed database of a hundred pages or so, none of them free."""
    path, rng = tmp_path_factory.mktemp("sound") / "memory.db", random.Random(3)
    store = SqliteStore(path)
    for _ in range(3):
        texts = [" ".join(f"word{rng.randrange(400)}" for _ in range(40)) for _ in range(30)]
        tell(store, *texts, tags=("a", "b"), metadata={"n": 1})
    store.close()
    assert raw(path, "PRAGMA freelist_count") == [(0,)]
    return path.read_bytes()


def damage(sound: bytes, how: str, page: int, path: Path) -> None:
    """Puts the database there with one page that is not what was written."""
    for file in stores.files(path):
        file.unlink()
    at, content = page * 4096, bytearray(sound)
    damage = bytes(4096) if how == "zeroed" else random.Random(page).randbytes(4096)
    content[at : at + 4096] = damage
    path.write_bytes(content)
    path.chmod(0o600)


# Everything a user might do with a damaged database.
ATTEMPTS = [
    ("list", lambda memory: memory.list(filter=everything(), limit=500)),
    ("export", lambda memory: list(memory.export(everything()))),
    ("stats", lambda memory: memory.stats()),
    ("search", lambda memory: memory.search("word1 word7", filter=everything())),
    ("words", lambda memory: memory.search("word1 word7", filter=seen(), mode="keyword")),
    ("expression", lambda memory: memory.search("word1 AND NOT word7", filter=everything())),
    ("check", lambda memory: memory.check()),
    ("add", lambda memory: memory.add("a text of its own")),
    (
        "history",
        lambda memory: [memory.store.history(one.id) for one in memory.store.list(everything(), 3)],
    ),
    ("rebuild", lambda memory: memory.store.rebuild()),
    ("unembedded", lambda memory: memory.store.list_unembedded("x", 50)),
    ("backup", lambda memory: memory.backup(Path(memory.store.path).with_name("copy.db"))),
    ("reset", lambda memory: memory.reset([HERE])),
    ("close", lambda memory: memory.close()),
]


@pytest.mark.parametrize("how", ["zeroed", "garbage"])
def test_a_corrupted_page_is_reported(offline, path, sound, how):
    for page in random.Random(how).sample(range(1, len(sound) // 4096), 10):
        damage(sound, how, page, path)
        try:
            memory = Bethink(path, directory=path.parent)
        except StoreCorrupt:
            continue
        problems = memory.check(deep=True)
        assert problems, f"page {page} went unnoticed"
        assert all(problem.message and problem.repair for problem in problems)
        for name, action in ATTEMPTS:
            try:
                action(memory)
            except BethinkError as error:
                assert str(error).endswith("."), (name, page, error)
        path.with_name("copy.db").unlink(missing_ok=True)


def test_an_export_contains_what_can_be_read_of_a_damaged_database(cli, path, sound):
    """Whichever page is gone, the memories of all others are written, and the command says that some are missing."""
    partly = 0
    for page in random.Random(5).sample(range(1, len(sound) // 4096), 8):
        damage(sound, "zeroed", page, path)
        lost: list[str] = []
        try:
            store = SqliteStore(path, timeout=5)
            found = list(store.scan(everything(), lost))
            store.close()
        except StoreCorrupt:
            continue  # the root of a table: nothing can be read from below it
        assert len(found) + len(lost) == 90
        if lost:
            partly += 1
            result = cli("export", "--database", path, "--all-projects", "--jsonl")
            assert result.code == 1
            assert len(result.out.splitlines()) == len(found)
            assert f"{len(lost)} memor" in result.err
    assert partly, "no page of texts was among those that were damaged"


def test_a_damaged_index_loses_no_memory(path, sound):
    path.write_bytes(sound)
    ((root,),) = raw(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'memories_recent'")
    damage(sound, "garbage", root - 1, path)
    lost: list[str] = []
    store = SqliteStore(path, timeout=5)
    assert len(list(store.scan(everything(HERE), lost))) == 90 and not lost
    store.close()
