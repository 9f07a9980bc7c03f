"""Rows, indexes and pages of a SQLite database that are not what was written: found, named, and never a foreign error."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from case_tables import cases
from stores import (
    HERE,
    MODEL,
    NOW,
    everything,
    files,
    make,
    put,
    raw,
    seen,
    vector,
    vectors_of,
    write,
)

from bethink import Bethink
from bethink.errors import BethinkError, StoreCorrupt
from bethink.recall.query import parse
from bethink.store.sqlite import SqliteStore
from bethink.types import Change

pytest_plugins = ["cli_runner"]


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def opened(path):
    store = SqliteStore(path, timeout=5)
    yield store
    store.close()


@pytest.mark.parametrize(("column", "value"), cases("store-damage-a-row-that-changed"))
def test_a_row_that_changed_by_itself_is_named(path, opened, column, value):
    owl, heron = make("An owl at night"), make("A heron by day")
    put(opened, owl, heron)
    assert opened.check(deep=True) == []
    cast = "CAST(? AS TEXT)" if isinstance(value, bytes) else "?"
    raw(path, f"UPDATE memories SET {column} = {cast} WHERE id = ?", (value, owl.id))
    (problem,) = opened.check(deep=True)
    assert (problem.part, problem.repair) == ("memory", "restore")
    assert (
        owl.id in problem.message
        or (column == "id" and "0190" in problem.message)
        or (isinstance(value, bytes) and "number 1" in problem.message)
    )


@pytest.mark.parametrize(("sql", "part"), cases("store-damage-a-derived-part-that"))
def test_a_derived_part_that_disagrees_is_found_and_made_anew(path, opened, sql, part):
    owl, heron = make("An owl at night"), make("A heron by day")
    put(opened, owl, heron)
    words, question = parse("owl heron", NOW), vector("an owl at night")
    raw(path, sql)
    assert part in {problem.part for problem in opened.check(deep=True)}
    opened.nearest(question, MODEL, seen(), 10)
    assert opened.rebuild() == 2
    write(
        opened,
        vectors={memory.id: vectors_of(memory) for memory in opened.list_unembedded(MODEL, 10)},
        model=MODEL,
    )
    assert opened.check(deep=True) == []
    assert {
        memory.id
        for memory in opened.load(
            [key for key, _ in opened.keyword(words, seen(), 10).items]
        ).values()
    } == {owl.id, heron.id}
    assert len(SqliteStore(path).nearest(question, MODEL, seen(), 10).items) == 2


def test_a_damaged_index_never_blocks_the_texts(path, opened):
    put(opened, make("An owl at night"), make("A heron by day"))
    raw(path, "UPDATE memories SET lexemes = x'ffffffff00'; ")
    raw(path, "UPDATE vectors SET data = x'00'")
    raw(path, "UPDATE embedding_cache SET data = x'00'")
    query = parse("owl", NOW)
    words = opened.keyword(query, seen(), 10)
    assert len(words.items) == 1
    from bethink.store.words import query_words

    (found,) = opened.candidates(
        [key for key, _ in words.items], seen(), query_words(query), [key for key, _ in words.items]
    )
    assert found.frequencies == (0,)
    assert opened.nearest(vector("owl"), MODEL, seen(), 10).items == ()
    owl = opened.list(seen(kinds=("fact",)))[0]
    write(opened, change=(Change(owl.id, "update", {"summary": "still works"}),))
    opened.rebuild()
    assert opened.check(deep=True) == []


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> bytes:
    """A closed database of a hundred pages or so, none of them free."""
    path = tmp_path_factory.mktemp("sound") / "memory.db"
    rng = random.Random(3)
    store = SqliteStore(path)
    for _ in range(3):
        put(
            store,
            *(
                make(
                    " ".join(f"word{rng.randrange(400)}" for _ in range(40)),
                    tags=("a", "b"),
                    metadata={"n": 1},
                )
                for _ in range(30)
            ),
        )
    store.close()
    assert raw(path, "PRAGMA freelist_count") == [(0,)]
    return path.read_bytes()


def damaged(sound: bytes, how: str, page: int) -> bytes:
    rng = random.Random(page)
    at, content = page * 4096, bytearray(sound)
    if how == "zeroed":
        content[at : at + 4096] = bytes(4096)
    else:
        content[at : at + 4096] = rng.randbytes(4096)
    return bytes(content)


def attempts(memory: Bethink) -> list[tuple[str, object]]:
    """Everything a user might do with a damaged database."""
    all, store = everything(), memory.store
    return [
        ("list", lambda: memory.list(filter=all, limit=500)),
        ("export", lambda: list(memory.export(all))),
        ("stats", memory.stats),
        ("search", lambda: memory.search("word1 word7", filter=all)),
        ("words", lambda: memory.search("word1 word7", filter=seen(), mode="keyword")),
        ("expression", lambda: memory.search("word1 AND NOT word7", filter=all)),
        ("check", memory.check),
        ("add", lambda: memory.add("a text of its own")),
        ("history", lambda: [store.history(memory.id) for memory in store.list(all, 3)]),
        ("rebuild", store.rebuild),
        ("unembedded", lambda: store.list_unembedded("x", 50)),
        ("backup", lambda: memory.backup(Path(store.path).with_name("copy.db"))),
        ("reset", lambda: memory.reset([HERE])),
        ("close", memory.close),
    ]


@pytest.mark.parametrize("how", ["zeroed", "garbage"])
def test_a_corrupted_page_is_reported_and_never_a_foreign_error(offline, path, sound, how):
    pages = len(sound) // 4096
    unnoticed = []
    for page in random.Random(how).sample(range(1, pages), 14):
        for file in files(path):
            file.unlink()
        path.write_bytes(damaged(sound, how, page))
        try:
            memory = Bethink(path, directory=path.parent)
        except StoreCorrupt:
            continue
        problems = memory.check(deep=True)
        if not problems:
            unnoticed.append(page)
        assert all(problem.message and problem.repair for problem in problems)
        for name, action in attempts(memory):
            try:
                action()
            except BethinkError as error:
                assert str(error).endswith("."), (name, page, error)
        path.with_name("copy.db").unlink(missing_ok=True)
    assert unnoticed == []


def test_an_export_gives_what_can_be_read_of_a_damaged_database(cli, path, sound):
    """Whichever page is gone, the memories of all others are written, and the command says that some are missing."""
    pages = len(sound) // 4096
    whole = 0
    for page in random.Random(5).sample(range(1, pages), 8):
        for file in files(path):
            file.unlink()
        path.write_bytes(damaged(sound, "zeroed", page))
        path.chmod(0o600)
        lost: list[str] = []
        try:
            store = SqliteStore(path, timeout=5)
            found = list(store.scan(everything(), lost))
            store.close()
        except StoreCorrupt:
            continue  # the root of a table: nothing can be read from below it
        assert len(found) + len(lost) == 90
        if lost:
            whole += 1
            result = cli("export", "--database", path, "--all-projects", "--jsonl")
            assert result.code == 1
            assert len(result.out.splitlines()) == len(found)
            assert f"{len(lost)} memor" in result.err
    assert whole, "no page of texts was among those that were damaged"
