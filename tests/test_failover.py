"""A PostgreSQL server that goes away during a commit: whatever became of it, the write is there once. `bench/failover.py` shows the same
with a primary that is killed and a standby that takes over."""

import itertools
import re
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import postgres
import pytest
from psycopg.conninfo import conninfo_to_dict
from stores import HERE, MODEL, NOW, by_words, everything, make, put, seen, tell, vectors_of

from bethink.embed.hashing import HashingEmbedder
from bethink.errors import OutcomeUnknown, StoreUnavailable
from bethink.model import Batch, Change, Entry, Relation, Source
from bethink.store.postgres import PostgresStore

WAITING = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%tenants%FOR UPDATE%'"


class Proxy:
    """Stands between a store and the server and cuts a connection at its COMMIT, once for each of `faults`:

    never   the commit does not arrive
    answer  it arrives, and its answer is lost
    late    the client's connection is cut, and the commit arrives while the next try waits for it
    """

    def __init__(self) -> None:
        parts = conninfo_to_dict(postgres.database_url())
        self.target = str(parts["host"]), int(str(parts.get("port") or 5432))
        self.faults: list[str] = []
        self.meanwhile: list[Callable[[], object]] = []  # after a cut, before anybody knows of it
        self.port, self.listener = 0, None
        self.listen()

    @property
    def url(self) -> str:
        return between(f"127.0.0.1:{self.port}")

    def listen(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def refuse(self) -> None:
        """Nobody gets through any more until `listen`."""
        if self.listener is not None:
            close(self.listener)
        self.listener = None

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                both = listener.accept()[0], socket.create_connection(self.target)
                for one in both:
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._pass_on, args=both, daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                for one in select.select([client, server], [], [])[0]:
                    data = one.recv(1 << 16)
                    if one is client and b"COMMIT\0" in data and self.faults:
                        return self._cut(client, server, data, self.faults.pop(0))
                    (server if one is client else client).sendall(data)
                    if not data:
                        return close(client, server)
        return close(client, server)

    def _cut(self, client: socket.socket, server: socket.socket, data: bytes, fault: str) -> None:
        if fault == "late":
            close(client)
            wait_until(lambda: bool(postgres.run(postgres.database_url(), WAITING)))
        if fault != "never":
            server.sendall(data)
            assert b"COMMIT" in server.recv(1 << 16)
        close(server)
        while self.meanwhile:
            self.meanwhile.pop()()
        close(client)


def close(*sockets: socket.socket) -> None:
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def between(places: str) -> str:
    """The URL of the tests' database with other servers in it. (What is encrypted cannot be cut at its COMMIT.)"""
    return re.sub(r"@[^/]*/", f"@{places}/", postgres.database_url()) + "?sslmode=disable"


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    proxy = Proxy()
    yield proxy
    proxy.refuse()


@pytest.fixture
def store(proxy: Proxy) -> Iterator[PostgresStore]:
    store = PostgresStore(proxy.url, tenant=postgres.new_tenant(), timeout=20)
    yield store
    store.close()


def marks(store: PostgresStore, word: str) -> int:
    """How many lines of the audit trail speak of this."""
    query = "SELECT count(*) FROM audit WHERE strpos(changes, %s) > 0"
    with postgres.transaction(store) as connection:
        return connection.execute(query, (word,)).fetchone()[0]


@pytest.mark.parametrize("faults", [["never"], ["late"], ["answer", "answer"]])
def test_a_write_whose_connection_is_cut_at_its_commit_is_there_once(store, proxy, faults):
    (old,) = tell(store, "The old way")
    new = make("A new way to find herons", source="docs/birds.md", source_type="markdown")
    # Everything in it would show if it were done twice: a second row, a second vote, a position that was read on already.
    read = (HERE, Source("docs/birds.md", "markdown", "h", 7))
    parts = {"expect": ((HERE, "docs/birds.md", 0),), "sources": (read,), "model": MODEL}
    parts["change"] = (Change(old.id, "vote", {"vote": 1.0}),)
    parts["relate"] = (Relation(new.id, old.id, "builds_on"),)
    batch = Batch(at=NOW, add=(Entry(new, vectors_of(new), False),), **parts)
    proxy.faults = list(faults)
    receipt = store.write(batch)
    assert not proxy.faults
    assert (receipt.added, receipt.changed, receipt.outcomes[0].id) == (1, 1, new.id)
    assert {memory.id for memory in store.list(seen())} == {old.id, new.id}
    assert store.get([old.id])[0].usefulness == 1
    assert store.find_source("docs/birds.md")[1].position == 7
    assert [event.action for event in store.history(old.id)] == ["add", "vote"]
    assert by_words(store, "herons") == [new.id]
    assert marks(store, new.id) == 1
    assert store.check(deep=True) == []


@pytest.mark.parametrize(("fault", "second"), [("answer", "duplicate"), ("never", "added")])
def test_a_write_that_nobody_can_be_asked_about_is_said_to_be_unknown(proxy, fault, second):
    store = PostgresStore(proxy.url, tenant=postgres.new_tenant(), timeout=0.5)
    proxy.faults, proxy.meanwhile = [fault], [proxy.refuse]
    with pytest.raises(OutcomeUnknown, match="unknown whether the write was committed"):
        put(store, make("a heron"))
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        put(store, make("an owl"))  # this one certainly was not
    with pytest.raises(StoreUnavailable):
        store.list(seen())
    proxy.listen()
    assert put(store, make("a heron")).outcomes[0].status == second
    assert [memory.content for memory in store.list(seen())] == ["a heron"]
    store.close()


def test_one_of_several_servers_that_are_named_is_waited_for(proxy):
    proxy.refuse()
    both = f"127.0.0.1:{postgres.free_port()},127.0.0.1:{proxy.port}"
    url = f"{between(both)}&target_session_attrs=read-write"
    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(PostgresStore, url, tenant=postgres.new_tenant(), timeout=20)
        with pytest.raises(TimeoutError):
            opening.result(0.3)
        proxy.listen()
        store = opening.result(20)
    assert put(store, make("a heron")).added == 1
    assert store.path.count("127.0.0.1:") == 2
    store.close()


def test_a_commit_that_no_standby_has_is_not_acknowledged():
    """PostgreSQL says yes, with a warning, to a commit whose wait for the standby somebody cut short."""
    server = postgres.Server(synchronous_commit="on")
    waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    cancel = f"SELECT count(pg_cancel_backend(pid)) {waiting}"

    def wait_for_standby(name):
        change = f"ALTER SYSTEM SET synchronous_standby_names = '{name}'"
        postgres.run(server.url, change, "SELECT pg_reload_conf()")
        shown = "SHOW synchronous_standby_names"
        wait_until(lambda: postgres.run(server.url, shown) == [(name,)])

    try:
        store = PostgresStore(server.url, timeout=1)
        put(store, make("a heron"))
        wait_for_standby("another")
        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(put, store, make("an owl"))
            wait_until(lambda: postgres.run(server.url, cancel) == [(0,)] and writing.done())
            with pytest.raises(OutcomeUnknown):
                writing.result()
        wait_for_standby("")
        assert put(store, make("an owl")).outcomes[0].status == "duplicate"
        store.close()
    finally:
        server.stop()


def test_nothing_acknowledged_is_lost_when_the_server_is_killed():
    """Writers notice nothing but a pause. `bench/faults_pg.py` shows the same with processes, again and again."""
    server = postgres.Server(fsync="on", synchronous_commit="on", full_page_writes="on")
    wide = HashingEmbedder(384)  # of a size that has an index
    acknowledged, enough = [], threading.Event()

    def add(writer):
        store = PostgresStore(server.url, tenant="faults", user=f"writer-{writer}", timeout=60)
        for number in itertools.takewhile(lambda _: not enough.is_set(), itertools.count()):
            memory = make(f"Writer {writer} saw n{writer}x{number}x and owls")
            entry = Entry(memory, wide.documents([memory.content])[0], False)
            store.write(Batch(at=NOW, add=(entry,), model=wide.model))
            acknowledged.append(memory)
        store.close()

    def wait_for_more():
        before = len(acknowledged)
        wait_until(lambda: len(acknowledged) > before + 8)

    try:
        with ThreadPoolExecutor(2) as pool:
            writers = [pool.submit(add, writer) for writer in range(2)]
            try:
                wait_for_more()
                server.kill()
                server.start()
                wait_for_more()
            finally:
                enough.set()
            for writer in writers:
                writer.result()
        store = PostgresStore(server.url, tenant="faults")
        found = Counter(memory.content for memory in store.scan(everything()))
        assert found.keys() >= {memory.content for memory in acknowledged}
        assert set(found.values()) == {1}
        assert [
            memory
            for memory in acknowledged[::3]
            if store.keys([memory.id])[memory.id]
            not in [
                key
                for key, _ in store.nearest(wide.query(memory.content), wide.model, everything(), 3)
            ]
            or by_words(store, memory.content.split()[3]) != [memory.id]
        ] == []
        assert store.check(deep=True) == []
        store.close()
    finally:
        server.stop()
