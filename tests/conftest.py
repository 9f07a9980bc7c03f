"""What several test files share: a home of its own for every test that wants one, memories made by hand, and the store backends."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from recollect.embed.hashing import HashingEmbedder
from recollect.ids import new_id
from recollect.store.base import Store
from recollect.types import Batch, Entry, Filter, Memory, Receipt

NOW = datetime(2026, 3, 20, 12, 0, tzinfo=UTC)
HERE = "project:here"
EMBEDDER = HashingEmbedder(64)
MODEL = EMBEDDER.model


def day(number: int) -> datetime:
    """A morning of March 2026; NOW is the twentieth, at noon."""
    return datetime(2026, 3, 1, 9, 0, tzinfo=UTC) + timedelta(days=number - 1)


def content_hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def make(content: str, **fields: Any) -> Memory:
    """A memory with sensible values for whatever a test does not care about."""
    given = {"scope": HERE, "kind": "fact", "summary": content[:40], "created_at": day(1), **fields}
    given.setdefault("updated_at", given["created_at"])
    return Memory(id=given.pop("id", None) or new_id(), content=content, content_hash=content_hash(content), **given)


def vectors_of(memory: Memory) -> Any:
    return EMBEDDER.documents([memory.content])[0]


def vector(text: str) -> Any:
    return EMBEDDER.query(text)


def put(store: Store, *memories: Memory, embed: bool = True, unique: bool = True, **parts: Any) -> Receipt:
    """Writes memories as one batch, with vectors."""
    entries = tuple(Entry(memory, vectors_of(memory) if embed else (), unique) for memory in memories)
    return store.write(Batch(at=NOW, add=entries, model=MODEL if embed else None, **parts))


def everything(*scopes: str) -> Filter:
    """A filter that hides nothing in these scopes."""
    return Filter(
        scopes=scopes or (HERE,), now=NOW, include_deleted=True, include_expired=True, include_superseded=True, include_quarantined=True
    )


def seen(*scopes: str, **fields: Any) -> Filter:
    return Filter(scopes=scopes or (HERE,), now=NOW, **fields)


@dataclass
class Backend:
    """One kind of store on one database. `open` gives a new Store object on the same data, as another process would have."""

    name: str
    open_at: Callable[[str], Store]
    where: str
    opened: list[Store] = field(default_factory=list)

    def open(self, where: str | None = None) -> Store:
        store = self.open_at(where or self.where)
        self.opened.append(store)
        return store

    def close(self) -> None:
        for store in self.opened:
            store.close()


@contextlib.contextmanager
def sqlite_backend(folder: Path) -> Iterator[Backend]:
    from recollect.store.sqlite import SqliteStore

    backend = Backend("sqlite", lambda where: SqliteStore(Path(where), timeout=5), str(folder / "memory.db"))
    try:
        yield backend
    finally:
        backend.close()


BACKENDS = {"sqlite": sqlite_backend}  # a second backend is one more line here


@pytest.fixture(params=list(BACKENDS))
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    with BACKENDS[request.param](tmp_path) as backend:
        yield backend


@pytest.fixture
def store(backend: Backend) -> Store:
    return backend.open()


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a project of this test's own, with the embedder that needs no model. Returns the home."""
    for variable in ("RECOLLECT_DATABASE", "RECOLLECT_MODEL_DIR", "RECOLLECT_DEBUG"):
        monkeypatch.delenv(variable, raising=False)
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    monkeypatch.setenv("RECOLLECT_HOME", str(home))
    monkeypatch.setenv("RECOLLECT_EMBEDDING", "hashing")
    monkeypatch.setenv("RECOLLECT_OFFLINE", "1")
    monkeypatch.chdir(project)
    return home
