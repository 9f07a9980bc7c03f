"""The compact copy of the vectors against exact NumPy on the same data."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from memories import Counting
from stores import EMBEDDER, HERE, MODEL, everything, purge, tell

from bethink import Bethink
from bethink.store import vectors as vectors_module
from bethink.store.sqlite import SqliteStore, codes_folder
from bethink.store.vectors import Partition, decode, encode


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def clustered(count: int, dimensions: int, seed: int, clusters: int = 200) -> np.ndarray:
    """Unit vectors as models make them: around topics, some nearer than others, and all leaning to one side."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((clusters, dimensions)) + rng.standard_normal(dimensions) * 0.8
    spread = rng.standard_normal((count, dimensions)) * rng.uniform(0.3, 1.2, (count, 1))
    return unit(centres[rng.integers(0, clusters, count)] + spread)


def ids(part: Partition, query: np.ndarray, limit: int, allowed=None) -> list[int]:
    among = None if allowed is None else np.asarray(allowed, np.int64)
    return part.search(query, limit, among)[0].tolist()


def recall(part: Partition, vectors, queries, allowed=None, there=None) -> float:
    """The share of the ten best among those that are allowed, or there, that are found. Nothing else is found."""
    choice = there if allowed is None else allowed
    kept = np.arange(1, len(vectors) + 1) if choice is None else choice
    found = 0
    for query in queries:
        best = kept[np.argsort(-(vectors[kept - 1] @ query))[:10]]
        given = set(ids(part, query, 10, allowed))
        assert given <= set(kept.tolist())
        found += len(given & set(best.tolist()))
    return found / (10 * len(queries))


@pytest.mark.parametrize("dimensions", [1, 7, 64, 100, 384, 1536])
def test_a_vector_survives_encoding_and_a_second_encoding_changes_nothing(dimensions):
    for vector in clustered(20, dimensions, seed=dimensions):
        data = encode(vector)
        assert len(data) == 4 + 2 * dimensions
        again = decode(data)
        assert again.dtype == np.float32
        np.testing.assert_allclose(again, vector, atol=np.abs(vector).max() / 250)
        assert encode(again) == data


def test_recall_at_10_000_by_384():
    count, rng = 10_000, np.random.default_rng(8)
    vectors = clustered(count, 384, seed=7, clusters=500)
    near = vectors[rng.integers(0, count, 40)]
    queries = unit(near + rng.standard_normal((40, 384)).astype(np.float32) * 0.02)
    rows = [(number, number, encode(vector)) for number, vector in enumerate(vectors, 1)]
    part, grown, every = Partition(384), Partition(384), np.arange(1, count + 1)
    part.add(rows)
    assert recall(part, vectors, queries) >= 0.98
    # A filter that leaves many, and one that leaves so few that they are compared directly.
    assert [
        size
        for size in (5000, 1500)
        if recall(part, vectors, queries[:15], np.sort(rng.choice(every, size, replace=False)))
        < 0.98
    ] == []
    # Grown in pieces, the way a database grows, it finds the same.
    for start, stop in ((0, 1), (1, 500), (500, 2500), (2500, 9000), (9000, 9001), (9001, count)):
        grown.add(rows[start:stop])
    assert len(grown.ids) == count
    assert recall(grown, vectors, queries[:20]) >= 0.98
    # And with a fifth of the vectors gone.
    gone = np.sort(rng.choice(every, 2_000, replace=False))
    part.remove(gone)
    assert recall(part, vectors, queries[:15], there=np.setdiff1d(every, gone)) >= 0.98


# The file of codes: a new process takes them from there, and nothing depends on it


COUNT = 120
TEXTS = [f"note {at} about {'abcdefghij'[at % 10] * 3} of {at}" for at in range(COUNT)]


@pytest.fixture
def filed(tmp_path, monkeypatch):
    """A database with a file of codes, and a way to open it as a new process would: (opened store, vectors it had to read)."""
    monkeypatch.setattr(vectors_module, "FILED", 50)
    monkeypatch.setattr(vectors_module, "COMPARED_DIRECTLY", 10)
    monkeypatch.setattr(vectors_module, "count_rescored", lambda count, limit: 20)
    path = tmp_path / "memory.db"
    opened = []

    def open_store():
        opened.append(SqliteStore(path, timeout=5))
        return opened[-1]

    tell(open_store(), *TEXTS)
    look(open_store())
    yield open_store
    for store in opened:
        store.close()


def look(store, text=TEXTS[7]):
    """The text that is found, and how many vectors were read for it."""
    found = store.nearest(EMBEDDER.query(text), MODEL, everything(), 1)
    (part,) = [part for index in store._indexes.values() for part in index._parts.values()]
    memories = store.load([key for key, _ in found])
    return [memory.content for memory in memories.values()], int(part.data.astype(bool).sum())


def file_of(store):
    (file,) = codes_folder(store.path).iterdir()
    return file


def test_a_new_process_takes_codes_from_the_file_and_knows_what_came_and_went_since(filed):
    store = filed()
    assert file_of(store).stat().st_mode & 0o777 == 0o600
    texts, read = look(store)
    assert texts == [TEXTS[7]] and read < COUNT
    assert [text for text in TEXTS[::9] if look(store, text)[0] != [text]] == []
    store = filed()
    tell(store, "an owl in a barn")
    gone = store.list(everything(), 200)[-1]
    which = "memory = (SELECT key FROM memories WHERE id = ?)"
    with store.connection:
        store.connection.execute(f"DELETE FROM vectors WHERE {which}", (gone.id,))
    fresh = filed()
    assert look(fresh, "an owl in a barn")[0] == ["an owl in a barn"]
    texts, read = look(fresh, gone.content)
    assert texts != [gone.content] and read < COUNT
    means = [one.cosines([], EMBEDDER.query("note"), MODEL, [HERE])[1] for one in (store, fresh)]
    assert means[0] == pytest.approx(means[1], abs=0.01)


def put_folder_in_place(file: Path):
    file.unlink()
    file.mkdir()


def diverge(file: Path):
    """The database is put back to an older state and then goes on another way, so that its numbers mean other vectors."""
    path = file.parent.with_suffix("")
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    codes = file.read_bytes()
    store = SqliteStore(path, timeout=5)
    tell(store, *TEXTS[:60], *(f"other {number}" for number in range(60)), TEXTS[7])
    store.close()
    file.write_bytes(codes)


def flip(at: int, data: bytes) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param(Path.unlink, id="path"),
        pytest.param(put_folder_in_place, id="put_folder_in_place"),
        pytest.param(diverge, id="diverge"),
        pytest.param(lambda file: file.write_bytes(b""), id="file-write_bytes-bytes"),
        pytest.param(
            lambda file: file.write_bytes(file.read_bytes()[:-9]), id="file-write_bytes-file"
        ),
        pytest.param(
            lambda file: file.write_bytes(flip(200, file.read_bytes())),
            id="file-write_bytes-flip-200",
        ),
        pytest.param(
            lambda file: file.write_bytes(b"x" * file.stat().st_size), id="file-write_bytes-x"
        ),
        pytest.param(
            lambda file: file.write_bytes(
                flip(file.read_bytes().index(b"PK\1\2") + 10, file.read_bytes())
            ),
            id="file-write_bytes-flip-file",
        ),
    ],
)
def test_a_file_that_is_lost_damaged_or_another_databases_changes_nothing(filed, harm):
    store = filed()
    store.close()
    harm(file_of(store))
    texts, read = look(filed())
    assert texts == [TEXTS[7]] and read >= COUNT


def test_a_file_from_before_the_log_of_removals_is_not_believed_and_a_purge_takes_it_away(filed):
    store = filed()
    with store.connection:
        for number in (1, 2, 3):
            store.connection.execute("DELETE FROM vectors WHERE id = ?", (number,))
        store.connection.execute("DELETE FROM vectors_removed WHERE number < 3")
    assert look(filed())[1] == COUNT - 3
    file = file_of(store)
    purge(store, store.list(everything(), 1)[0])
    assert not file.exists()
    assert look(filed())[1] == COUNT - 4 and file.exists()


# Questions that were asked before


def ask(path, *questions):
    """Which questions a new process embeds, and what the last one finds."""
    embedder = Counting()
    with Bethink(path, directory=path.parent, embedder=embedder) as memory:
        answers = [memory.search(question) for question in questions]
    return embedder.asked, [(hit.memory.content, hit.score) for hit in answers[-1].hits]


@pytest.fixture
def asked(tmp_path):
    """A database that was asked a question, and the files with the vectors of questions."""
    path = tmp_path / "memory.db"
    with Bethink(path, directory=tmp_path, embedder=Counting()) as memory:
        memory.add("owls sleep by day")
        memory.add("mice are awake at night")
    ask(path, "who sleeps by day?", "who is awake?")
    kept = list(codes_folder(path).iterdir())
    assert len(kept) == 2
    return path, kept


def test_a_question_is_embedded_once_for_all_processes(asked):
    path, _ = asked
    embedded, _ = ask(path, "who sleeps by day?", "who was there?", "who sleeps by day?")
    assert embedded == ["who was there?"]


def test_a_question_that_is_known_finds_the_same(asked, tmp_path):
    path, _ = asked
    _, same = ask(path, "who sleeps by day?")
    shutil.rmtree(codes_folder(path))
    _, found = ask(path, "who sleeps by day?")
    assert [content for content, _ in same] == [content for content, _ in found]


@pytest.mark.parametrize("at", [0, 1])
def test_the_file_of_questions_is_private(asked, at):
    _, kept = asked
    assert kept[at].stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("at", [0, 1])
def test_the_file_of_questions_has_no_text(asked, at):
    _, kept = asked
    assert b"sleeps" not in kept[at].read_bytes()


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: b"", id="empty"),
        pytest.param(lambda data: b"\0" * 50, id="zeros"),
        pytest.param(lambda data: data[:-3], id="cut short"),
        pytest.param(lambda data: b"x" * 5000, id="something else"),
    ],
)
def test_a_damaged_file_of_questions_is_made_anew(asked, damage):
    path, kept = asked
    whole = kept[0].read_bytes()
    kept[0].write_bytes(damage(whole))
    kept[1].write_bytes(damage(whole))
    again, _ = ask(path, "who is awake?")
    known, _ = ask(path, "who is awake?")
    assert (again, known) == (["who is awake?"], [])


def test_a_purge_removes_the_vectors_of_questions(asked, tmp_path):
    path, _ = asked
    with Bethink(path, directory=tmp_path, embedder=Counting()) as memory:
        memory.forget(memory.list()[0].id, purge=True)
    assert list(codes_folder(path).iterdir()) == []
