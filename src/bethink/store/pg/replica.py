"""Where reads go: to a replica, where one is named and has seen this process's last write; otherwise to the primary."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import psycopg

from bethink.errors import StoreError
from bethink.store.pg.connection import Database, Who

AWAY = 10.0  # seconds for which a replica that failed is not asked
PATIENCE = 2.0  # seconds that it has to answer when its connection breaks


class Reader:
    def __init__(self, primary: Database, url: str, timeout: float) -> None:
        self.primary = primary
        self.replica = Database(url, min(timeout, PATIENCE)) if url else None
        self._lock = threading.Lock()
        self._written: str | None = (
            None  # how far the primary's log was after the last write here; empty: not known
        )
        self._back = 0.0

    def read(self, who: Who, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        if self.replica is not None and self._current(self.replica):
            try:
                return self.replica.read(who, sql, values)
            except StoreError:
                self._back = (
                    time.monotonic() + AWAY
                )  # a replica may be away; the primary answers for it
        return self.primary.read(who, sql, values)

    def wrote(self) -> None:
        """After a commit: what this process reads from now on must include it. A primary that cannot say how far it is undoes no commit:
        then it is asked again before the replica is."""
        if self.replica is None:
            return
        with self._lock:
            self._written = ""
        with suppress(StoreError):
            self._ask()

    def _ask(self) -> None:
        found = self.primary.read(Who(None), "SELECT pg_current_wal_insert_lsn()::text")
        with self._lock:
            self._written = found[0][0]

    def _current(self, replica: Database) -> bool:
        if time.monotonic() < self._back:
            return False
        replica.path = self.primary.path
        if self._written == "":
            self._ask()
        written = self._written
        if written is None:
            return True
        try:
            with replica.connection() as connection:
                row = connection.execute(
                    "SELECT coalesce(pg_last_wal_replay_lsn(), pg_current_wal_insert_lsn()) >= %s::pg_lsn",
                    (written,),
                ).fetchone()
        except psycopg.Error:
            replica.drop()
            self._back = time.monotonic() + AWAY
            return False
        if not row or not row[0]:
            return False
        with self._lock:
            if self._written == written:
                self._written = None
        return True

    def close(self) -> None:
        if self.replica is not None:
            with suppress(psycopg.Error):
                self.replica.close()
