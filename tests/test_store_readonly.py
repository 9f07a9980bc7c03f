"""Read-only access to a store: only what is listed as a read is there."""

import inspect

import pytest
from stores import HERE, make, put, seen

from bethink.store.base import Store
from bethink.store.postgres import PostgresStore
from bethink.store.readonly import ReadStore
from bethink.store.sqlite import SqliteStore

STORE = "sqlite"
# Methods of a store that are no reads of memories. A new method of a store belongs here or in `ReadStore`.
CHANGES = {"write", "take", "rebuild", "drop_vectors", "reset", "backup", "close"}
RAW_SQL = {"run", "column", "connection", "find_living", "find_turns", "encode_stored"}
OF_THE_DATABASE = {"act_as", "audit", "add_token", "find_token", "list_tokens", "revoke_token"}
KEPT_BACK = CHANGES | RAW_SQL | OF_THE_DATABASE


@pytest.fixture
def store(tmp_path):
    store = SqliteStore(tmp_path / "memory.db")
    yield store
    store.close()


def public_methods(kind: type) -> set[str]:
    found = inspect.getmembers(kind, lambda one: callable(one) or isinstance(one, property))
    return {name for name, _ in found if not name.startswith("_")}


@pytest.mark.parametrize("kind", [Store, SqliteStore, PostgresStore])
def test_every_public_method_of_a_store_is_a_listed_read_or_kept_back(store, kind):
    reads = set(vars(ReadStore(store)))
    assert public_methods(kind) - reads - KEPT_BACK == set()


def test_a_read_store_has_no_method_beyond_its_list(store):
    attributes = {name for name in dir(ReadStore(store)) if not name.startswith("_")}
    assert attributes & KEPT_BACK == set()


@pytest.mark.parametrize("name", sorted(KEPT_BACK))
def test_a_read_store_does_not_have(store, name):
    with pytest.raises(AttributeError):
        getattr(ReadStore(store), name)


def test_a_read_store_reads_what_the_store_holds(store):
    memory = make("an owl")
    put(store, memory)
    assert [one.content for one in ReadStore(store).list(seen(HERE))] == ["an owl"]
