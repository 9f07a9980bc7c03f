"""Fixtures that several test files share: a home of its own for every test that wants one, and the store backends."""

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Self

import pytest
from hypothesis import settings

from bethink import judge, registry
from bethink.config import data_directory
from bethink.embed import base, models
from bethink.embed import local as local_models
from bethink.embed.local import LocalEmbedder
from bethink.errors import EmbeddingError
from bethink.store.base import Store

# Where the fixtures are that several files use.
pytest_plugins = ["cli_runner", "capturing", "hooking", "agent_files", "memories"]

# Much of a test's time is waiting for a disk: where this machine has room for files in its memory, they go there.
MEMORY = Path("/dev/shm")
if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 << 30:
    tempfile.tempdir = os.environ.get("TMPDIR", str(MEMORY))

# Tests start many processes: each would compile the package anew where Python may not keep what it compiled.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Variables that lead out of a home.
ELSEWHERE = (
    "CLAUDE_CONFIG_DIR CODEX_HOME COPILOT_HOME GEMINI_CLI_HOME"
    " XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_RUNTIME_DIR XDG_STATE_HOME"
)

settings.register_profile("fixed", derandomize=True, deadline=None)  # the same cases in every run
settings.load_profile("fixed")


def pytest_configure(config: pytest.Config) -> None:
    """Give every test a home that is not that of the person who runs it; fetched models stay in the real one."""
    os.environ.setdefault("BETHINK_TEST_CACHE", str(data_directory()))
    home = tempfile.mkdtemp(prefix="bethink-home-")
    config.add_cleanup(lambda: shutil.rmtree(home, ignore_errors=True))
    os.environ["HOME"] = home
    for variable in (*ELSEWHERE.split(), "COLUMNS", "LINES"):  # xdist gives its workers a width
        os.environ.pop(variable, None)


def pytest_sessionfinish() -> None:
    """Stop the database server of this process, if a test started one."""
    if postgres := sys.modules.get("postgres"):
        postgres.AT_END.close()


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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for store in self.opened:
            store.close()


def open_sqlite(where: str) -> Store:
    from bethink.store.sqlite import SqliteStore

    return SqliteStore(Path(where), timeout=5)


def postgres_backend(folder: Path) -> Backend:
    """A tenant of its own in the database that all tests share. A backup is a SQLite file, wherever it came from."""
    import postgres

    def open_at(where: str) -> Store:
        return open_sqlite(where) if "/" in where else postgres.shared().act_as(where, "user")

    return Backend("postgres", open_at, postgres.new_tenant())


BACKENDS = {
    "sqlite": lambda folder: Backend("sqlite", open_sqlite, str(folder / "memory.db")),
    "postgres": postgres_backend,
}


@pytest.fixture(params=list(BACKENDS))
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    with BACKENDS[request.param](tmp_path) as backend:
        yield backend


@pytest.fixture
def store(backend: Backend) -> Iterator[Store]:
    """Whatever a test did with it, a store is well in the end."""
    store = backend.open()
    yield store
    assert store.check(deep=True) == []


@pytest.fixture(scope="module", params=list(BACKENDS))
def lasting(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], Store]]:
    """Makes stores that last for a whole test file, for the tests that only read."""
    make = BACKENDS[request.param]
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(make(tmp_path_factory.mktemp("lasting"))).open()


@pytest.fixture(scope="session", autouse=True)
def no_registry_of_the_users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keeps the registry of whoever runs the tests out of those that need no home."""
    usual, instead = registry.folder, tmp_path_factory.mktemp("registry")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            registry, "folder", lambda: usual() if os.environ.get("BETHINK_HOME") else instead
        )
        yield


@pytest.fixture(scope="session", autouse=True)
def models_open_once() -> Iterator[None]:
    """Opens a model once per process of tests: commands that run in it would each read it again, and keep its memory."""

    @cache
    def open_once(model: Path, written: int) -> object:
        return base.open_session(model, data_directory())

    with pytest.MonkeyPatch.context() as patch:
        for module in (judge, local_models):
            patch.setattr(
                module, "open_session", lambda model, _: open_once(model, model.stat().st_mtime_ns)
            )
        yield


class NoSessions(dict[Path, object]):
    """Open sessions of a process that has none, however many it opened."""

    def setdefault(self, key: Path, default: object = None) -> object:
        return default


@pytest.fixture
def models_open_anew(models_open_once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_sessions", NoSessions())
    for module in (judge, local_models):
        monkeypatch.setattr(module, "open_session", base.open_session)


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a project of this test's own, with the embedder that needs no model. Returns the home."""
    for variable in ("BETHINK_DATABASE", "BETHINK_MODEL_DIR", "BETHINK_DEBUG"):
        monkeypatch.delenv(variable, raising=False)
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("BETHINK_HOME", str(home))
    monkeypatch.setenv("BETHINK_EMBEDDING", "hashing")
    monkeypatch.setenv("BETHINK_OFFLINE", "1")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.chdir(project)
    return home


@pytest.fixture
def store_kind(request: pytest.FixtureRequest) -> str:
    """Where the commands of a test keep memories. A test that says itself which databases are meant names them as its parameters, a file
    by a constant STORE."""
    stated = getattr(request, "param", None) or getattr(request.module, "STORE", None)
    return stated or os.environ.get("BETHINK_TEST_STORE", "sqlite")


@pytest.fixture(scope="session")
def model_or_pull():
    """The folder of the default model: a ready one, else fetched once into a cache that later runs find."""
    if ready := os.environ.get("BETHINK_TEST_MODEL"):
        return Path(ready)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BETHINK_HOME", os.environ["BETHINK_TEST_CACHE"])
        try:
            return models.pull(models.DEFAULT)
        except EmbeddingError as error:
            message = f"The tests need the embedding model. {error.message}"
            pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)


@pytest.fixture
def with_model(model_or_pull, tmp_path, monkeypatch):
    """A home in which the packaged model is found, and the usual settings."""
    monkeypatch.setenv("BETHINK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BETHINK_OFFLINE", "1")
    monkeypatch.delenv("BETHINK_EMBEDDING", raising=False)
    monkeypatch.setenv("BETHINK_MODEL_DIR", str(model_or_pull.parent))


@pytest.fixture(scope="session")
def local(model_or_pull):
    return LocalEmbedder(models.KNOWN[models.DEFAULT], model_or_pull, 2)
