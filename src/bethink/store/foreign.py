"""Read-only access to the databases of other programs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw
from apsw import Connection

from bethink.errors import InvalidInput
from bethink.model import Json
from bethink.store.sqlite import open_unchanged

_FOREIGN = Path(__file__).parent / "foreign"  # one query per supported program
_MOST_PAGES = 1 << 19  # of 4 kB: upper limit for the copy in memory. Set by hand.


def list_programs() -> list[str]:
    return [file.stem for file in sorted(_FOREIGN.glob("*.sql"))]


class ForeignDatabase:
    """Another program's database: its tables, and the rows that a query of ours finds in them.

    The query runs on a copy in memory. Views and virtual tables are not copied, because they would
    run foreign code. Blobs are not copied, because they never contain texts.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.columns: dict[str, list[str]] = {}
        with self._translate():
            self._connection = open_unchanged(path)
            self._connection.set_busy_timeout(5000)
            self._connection.pragma("trusted_schema", False)
            found = self._connection.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
                " AND sql NOT LIKE 'CREATE VIRTUAL%'"
            )
            for (name,) in list(found):
                about = self._connection.execute(f"PRAGMA table_info({_quote(name)})")
                self.columns[name] = [row[1] for row in about]

    def find_program(self) -> str | None:
        """Return the first program whose query runs on the tables of this database."""
        for program in list_programs():
            with suppress(apsw.SQLError):
                list(self._query(program, filled=False))
                return program
        return None

    def read_program(self, program: str) -> Iterator[Json]:
        with self._translate():
            yield from self._query(program, filled=True)

    def _query(self, program: str, filled: bool) -> Iterator[Json]:
        script = (_FOREIGN / f"{program}.sql").read_text("utf-8")
        with closing(Connection(":memory:")) as copy:
            copy.pragma("max_page_count", _MOST_PAGES)
            for table, names in self.columns.items():
                copy.execute(f"CREATE TABLE {_quote(table)} ({', '.join(map(_quote, names))})")
                if filled and table in script:
                    marks = ", ".join("?" * len(names))
                    insert = f"INSERT INTO {_quote(table)} VALUES ({marks})"
                    copy.executemany(insert, self._read_table(table))
            cursor = copy.execute(script)
            for row in cursor:
                found = (column[0] for column in cursor.get_description())
                yield dict(zip(found, row, strict=True))

    def _read_table(self, table: str) -> Iterator[list[Any]]:
        """Yield the rows of a table in order; bytes that are not valid text become U+FFFD."""
        wanted = (
            f"CASE typeof({one}) WHEN 'text' THEN CAST({one} AS BLOB) WHEN 'blob' THEN NULL ELSE {one} END"
            for one in map(_quote, self.columns[table])
        )
        encoding = self._connection.pragma("encoding")
        for row in self._connection.execute(f"SELECT {', '.join(wanted)} FROM {_quote(table)}"):
            yield [
                one.decode(encoding, "replace") if isinstance(one, bytes) else one for one in row
            ]

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _translate(self) -> Iterator[None]:
        try:
            yield
        except apsw.Error as error:
            raise InvalidInput(
                f"The database {self.path} cannot be read: {error}. Nothing was imported.",
                f"Repair a damaged database with `sqlite3 {self.path.name} .recover`; if it is busy, close the program that uses it.",
            ) from error


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
