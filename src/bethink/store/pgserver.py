"""PostgreSQL connections: a small pool, transactions for one tenant, retries, translated errors.

Tenant and person are set anew in every transaction and dropped at its end, so that connections can
be shared through PgBouncer's transaction pooling: no session state, no prepared statements. We have
our own pool because a pool that connects in the background cannot report why it failed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, LifoQueue
from typing import Any, LiteralString, NamedTuple, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL

from bethink.config import mask_password
from bethink.errors import StoreBusy, StoreError, StoreTooNew, translate_error, unstorable
from bethink.model import Json

Result = TypeVar("Result")
Connection = psycopg.Connection[Any]

_IDLE = psycopg.pq.TransactionStatus.IDLE  # a broken connection never has this status
SIZE = 8  # most connections of one process
# The iterative scan makes a filtered search of the vector index go on until enough is found.
SETUP = (
    "SELECT set_config('role', 'bethink_app', true), set_config('bethink.tenant', %s, true), set_config('bethink.person', %s, true),"
    " set_config('search_path', %s, true), set_config('lock_timeout', %s, true), set_config('hnsw.iterative_scan', 'relaxed_order', true),"
    " set_config('hnsw.ef_search', '400', true)"
)
# The server is going down, coming up or handing over; a deadlock or conflict that the next try does not meet.
_PASSING = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.ReadOnlySqlTransaction,
    errors.DeadlockDetected,
    errors.SerializationFailure,
    errors.IdleInTransactionSessionTimeout,
)
BROKEN = (psycopg.OperationalError, psycopg.InterfaceError, errors.ReadOnlySqlTransaction)
_PAUSE = 0.2  # seconds between tries
# A dead machine sends nothing: after about 25 seconds of silence a connection counts as lost. Options in the URL win.
LISTENING = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
# Broken connections are handled here and need no log message.
logging.getLogger("psycopg").addHandler(logging.NullHandler())


class Who(NamedTuple):
    """Tenant and person that a transaction acts for."""

    tenant: int = 0  # 0: no tenant; only the results of functions are visible
    person: str = ""


class Database:
    """One PostgreSQL database, shared by all tenants that a process serves."""

    def __init__(self, url: str, timeout: float) -> None:
        self.url, self.timeout = url, timeout
        self.shown = mask_password(url)
        self.path = "bethink, public"  # where names are looked up; the extension may live elsewhere
        # One slot per connection; None is a slot that is not open yet.
        self._idle: LifoQueue[Connection | None] = LifoQueue()
        for _ in range(SIZE):
            self._idle.put(None)
        self.closed = False

    def connect(self) -> Connection:
        options: dict[str, Any] = {
            **LISTENING,
            "connect_timeout": max(2, min(10, round(self.timeout))),
            "fallback_application_name": "bethink",
        }
        explicit = conninfo_to_dict(self.url)
        return psycopg.connect(
            self.url,
            autocommit=True,
            prepare_threshold=None,
            **{name: value for name, value in options.items() if name not in explicit},
        )

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Borrow a connection from the pool; broken ones are dropped instead of returned."""
        try:
            idle = self._idle.get(timeout=self.timeout)
        except Empty:
            raise StoreBusy(
                f"All {SIZE} connections to {self.shown} are in use.",
                "Try again, or raise `busy_timeout`.",
            ) from None
        connection = idle
        try:
            connection = idle or self.connect()
            yield connection
        finally:
            if connection and (self.closed or connection.info.transaction_status != _IDLE):
                with suppress(psycopg.Error):
                    connection.close()
                connection = None
            self._idle.put(connection)

    def drop(self) -> None:
        """Close idle connections: after a restart of the server they are useless."""
        idle = []
        with suppress(Empty):
            while True:
                idle.append(self._idle.get_nowait())
        for connection in idle:
            self._idle.put(None)
            if connection:
                with suppress(psycopg.Error):
                    connection.close()

    def close(self) -> None:
        self.closed = True
        self.drop()

    def _settings(self, who: Who) -> tuple[str, str, str, str]:
        patience = str(round(self.timeout * 1000))
        return str(who.tenant or ""), who.person, self.path, patience

    def read(self, who: Who, sql: str, values: Sequence[object] | Json = ()) -> list[Any]:
        """Return the rows of one statement, in one round trip: a pipeline is one transaction."""

        def once() -> list[Any]:
            with self.connection() as connection:
                with connection.pipeline():
                    connection.execute(SETUP, self._settings(who))
                    cursor = connection.execute(sql.encode(), values)
                return cursor.fetchall()

        with translate_errors(self.shown):
            return self.retry(once)

    @contextmanager
    def transaction(self, who: Who) -> Iterator[Connection]:
        """Open an atomic transaction. Errors of psycopg pass through; the caller translates them."""
        with self.connection() as connection:
            with connection.pipeline():
                connection.execute("BEGIN")
                connection.execute(SETUP, self._settings(who))
            try:
                yield connection
                _commit(connection)
            except BaseException:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
                raise

    def retry(self, action: Callable[[], Result]) -> Result:
        """Repeat an action after a lost connection or a conflict, until the timeout.

        The timeout starts with the first error, so an action that ran long before it failed, such
        as a commit that waited for a standby, is repeated at least once.
        """
        deadline = 0.0
        while True:
            try:
                return action()
            except BROKEN as error:
                late = deadline and time.monotonic() > deadline
                if late or self.closed or not is_passing(error):
                    raise
                self.drop()
                if deadline:
                    time.sleep(_PAUSE)
                deadline = deadline or time.monotonic() + self.timeout


def _commit(connection: Connection) -> None:
    """Commit, and raise an error if the wait for the standby was cut short.

    PostgreSQL reports such a commit (after `pg_cancel_backend`) as done, with a warning. The retry
    waits for the standby again, or finds that the write is gone.
    """
    warnings: list[str] = []

    def note(notice: psycopg.errors.Diagnostic) -> None:
        if notice.source_function == "SyncRepWaitForLSN":
            warnings.append(notice.message_primary or "")

    connection.add_notice_handler(note)
    try:
        connection.execute("COMMIT")
    finally:
        connection.remove_notice_handler(note)
    if warnings:
        raise psycopg.OperationalError(f"The commit was not waited for: {warnings[0]}")


def is_passing(error: psycopg.Error) -> bool:
    """Return True if a retry may succeed: the connection broke, or the server says so."""
    return isinstance(error, _PASSING) or (error.sqlstate is None and not is_refused(error))


def is_refused(error: psycopg.Error) -> bool:
    """Return True if the server rejected the login: waiting will not help."""
    return any(words in str(error) for words in REFUSALS)


@contextmanager
def translate_errors(name: str) -> Iterator[None]:
    """Translate PostgreSQL errors into ours, without quoting row data from the server's message."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise unstorable(error) from error
    except psycopg.Error as error:
        reason = (str(error).strip() or "no reason given").splitlines()[0].rstrip(".")
        if isinstance(error, psycopg.OperationalError) and is_refused(error):
            raise StoreError(
                f"{name} cannot be opened: {reason.rpartition('FATAL: ')[2].strip()}.",
                "Correct the `database` setting; PGPASSWORD or ~/.pgpass may hold the password.",
            ) from error
        about = {"name": name, "reason": reason, "code": error.sqlstate or type(error).__name__}
        raise translate_error(_TRANSLATIONS, errors, error, **about) from error


# PostgreSQL errors, our error, its message and its hint. The first match counts.
_TRANSLATIONS = """
LockNotAvailable QueryCanceled | StoreBusy | Another process is writing to {name} and did not finish in time. | Try again, or raise `busy_timeout`.
TooManyConnections | StoreBusy | {name} has no connection left. | Raise max_connections, or put PgBouncer in front of it.
DiskFull | StoreError | The disk of {name} is full; nothing was changed. | Free some space and try again.
DataCorrupted IndexCorrupted | StoreCorrupt | {name} is damaged: {reason}. | Restore a backup of the server.
ReadOnlySqlTransaction | StoreReadOnly | {name} cannot be written: it is read-only. | Point `database` at the primary.
InsufficientPrivilege | StoreError | The role that {name} is opened with may not do that: {reason}. | Open the database once as its owner, who GRANTs bethink_app to the role; only a superuser may CREATE EXTENSION vector. See docs/guides/team.md.
ProgramLimitExceeded StringDataRightTruncation UntranslatableCharacter | InvalidInput | The text holds something that cannot be stored in PostgreSQL, such as a zero byte or a name that is too long. | Shorten or clean it.
UniqueViolation | StoreError | {name} already contains one of these; nothing was changed. | Try again; if the error persists, run `bethink doctor --deep`.
OperationalError InterfaceError | StoreUnavailable | The PostgreSQL server {name} cannot be reached, or takes no writes right now; what was not acknowledged was not changed. | Start the server, or check hosts and port in `database`.
Error | StoreError | {name} rejected the statement ({code}). | Run `bethink doctor --deep`.
"""
# When connecting fails, only the text of the error gives the reason.
REFUSALS = (
    "authentication failed",
    "no password supplied",
    "does not exist",
    "pg_hba.conf",
    "could not translate host",
)


# Opening for the first time in a process

OLDEST_SERVER, OLDEST_VECTOR = 160_000, (0, 8)
_MIGRATIONS = Path(__file__).parent / "migrations" / "postgres"
_LOCK = 0x5265636F6C  # "Recol": held until the end of the transaction that migrates


def prepare(database: Database) -> None:
    """Check versions and apply missing migrations, once per process.

    With several hosts, wait for a failover; a single server that is down is reported at once.
    """
    with translate_errors(database.shown):
        if "," in str(conninfo_to_dict(database.url).get("host")):
            database.retry(lambda: _check_and_migrate(database))
        else:
            _check_and_migrate(database)


def _check_and_migrate(database: Database) -> None:
    with database.connection() as connection:
        version = connection.info.server_version
        if version < OLDEST_SERVER:
            raise StoreError(
                f"{database.shown} is PostgreSQL {version // 10_000}; 16 or later is required.",
                "Upgrade the server.",
            )
        scripts = migrations()
        applied = _count_applied(connection)
        if applied > len(scripts):
            raise StoreTooNew(
                f"{database.shown} was written by a newer Bethink (schema {applied}; this one knows {len(scripts)}).",
                "Upgrade with `pip install -U bethink`.",
            )
        # Each script and its number share one transaction, so an interrupted migration leaves no trace.
        for number, script in enumerate(scripts[applied:], start=applied + 1):
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                if _count_applied(connection) >= number:
                    continue  # another process was first
                if number == 1:
                    _create_schema(connection, database.shown)
                where = _extension_schema(connection, database.shown)
                connection.execute(SQL("SET LOCAL search_path = pg_catalog, ") + SQL(where))
                connection.execute(script.encode())
                connection.execute("INSERT INTO bethink.migrations(number) VALUES (%s)", (number,))
        database.path = f"bethink, {_extension_schema(connection, database.shown)}"


def migrations() -> list[str]:
    return [path.read_text("utf-8") for path in sorted(_MIGRATIONS.glob("*.sql"))]


def _count_applied(connection: Connection) -> int:
    """Count the migrations applied to the database."""
    if _ask(connection, "SELECT to_regclass('bethink.migrations')") == (None,):
        return 0
    return int(_ask(connection, "SELECT coalesce(max(number), 0) FROM bethink.migrations")[0])


def _ask(connection: Connection, sql: LiteralString) -> Any:
    return connection.execute(sql).fetchone()


def _extension_schema(connection: Connection, name: str) -> str:
    """Schema that contains the types of pgvector."""
    row = _ask(
        connection,
        "SELECT quote_ident(n.nspname), e.extversion FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'",
    )
    if row is None:
        raise StoreError(
            f"{name} lacks the extension pgvector.",
            "Install pgvector 0.8 or later on the server, then: CREATE EXTENSION vector;",
        )
    if tuple(int(part) for part in row[1].split(".")[:2]) < OLDEST_VECTOR:
        raise StoreError(
            f"{name} has pgvector {row[1]}; 0.8 or later is required.",
            "As the owner: ALTER EXTENSION vector UPDATE;",
        )
    return str(row[0])


def _create_schema(connection: Connection, name: str) -> None:
    (encoding,) = _ask(connection, "SELECT current_setting('server_encoding')")
    if encoding != "UTF8":
        raise StoreError(
            f"{name} is encoded as {encoding}, not as UTF8.",
            "createdb --encoding=UTF8 --template=template0 NAME",
        )
    # If the server lacks pgvector, `_extension_schema` reports it.
    with suppress(errors.FeatureNotSupported, errors.UndefinedFile), connection.transaction():
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    connection.execute("CREATE SCHEMA bethink")
    connection.execute(
        "CREATE TABLE bethink.migrations (number integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp())"
    )
