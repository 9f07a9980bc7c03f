"""The PostgreSQL store, for teams and fleets: one tenant of a database, as seen by one person.

`base`, `rules` and `transfer` contain the code shared by all stores. Many stores share the
connections of a process. `personal` is a scope that only its owner sees; the whole tenant sees
every other scope. No statement here enforces that: row-level security decides which rows are
visible.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import psycopg

from bethink.errors import InvalidInput, OutcomeUnknown, StoreError
from bethink.model import PERSONAL, Batch, Filter, Json, Query, Ranking
from bethink.store import pgsearch as search
from bethink.store import rows
from bethink.store.base import Problem, Problems, Result, Scores, Store, now
from bethink.store.pgserver import Connection, Database, Who, prepare, translate_errors
from bethink.store.places import MEMORIES, OFTEN, Index, Texts, Window
from bethink.store.rows import Cosines, Keys, Reader, Row, Rows, Scopes, Where
from bethink.store.rules import Writer
from bethink.store.sqlite import SqliteStore, claim_backup
from bethink.store.transfer import PARTS, sign_actor
from bethink.store.words import POSTINGS, TOGETHER, hash_word, keep_topic_terms, query_words
from bethink.text import new_id

_LONGEST_NAME = 200
_SAMPLE = 200  # rows whose average size estimates that of a table
SIZED = "memories words vectors span_vectors history sources embedding_cache".split()

# Condition for a damaged vector `v` of a model `d`, with the lengths of `vectors.sound`.
UNSOUND = (
    "v.dimensions <> d.dimensions OR vector_dims(v.data) <> d.dimensions"
    " OR vector_norm(v.data) > 1.01 OR vector_norm(v.data) < 0.5 AND vector_norm(v.data) > 0"
)


@cache
def translate(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()


def adapt(values: Sequence[Any]) -> Rows:
    """Convert parameters for psycopg: a collection becomes an array."""
    return [
        list(one) if isinstance(one, Collection) and not isinstance(one, str | bytes) else one
        for one in values
    ]


@cache
def _insert(table: str, names: tuple[str, ...], key: str) -> bytes:
    """Statement that inserts many rows. COPY is faster, but ignores row-level security."""
    listed = ", ".join(names)
    again = " ON CONFLICT DO NOTHING" if table in OFTEN else ""
    again = rows.on_conflict(table, f"tenant, {key}", names) if key else again
    populated = f"json_populate_recordset(NULL::{table}, %s::json)"
    return f"INSERT INTO {table}({listed}) SELECT {listed} FROM {populated}{again}".encode()


def _as_json(value: object) -> Any:
    """Convert a value to the JSON form that its column type reads."""
    return f"\\x{value.hex()}" if isinstance(value, bytes) else value


class FloatVectors(Reader):
    """Vectors as 32-bit floats, with the scale that restores their encoded bytes."""

    stored, order = "v.scale, vector_send(v.data)", "v.part"

    def encode_stored(self, *stored: Any) -> bytes:
        import numpy as np

        from bethink.store.vectors import encode

        scale, data = stored
        return encode(np.frombuffer(data, ">f4", offset=4), scale)


class PostgresWriter(FloatVectors, Writer):
    """Write to PostgreSQL. Writers of one tenant run one after another, as in SQLite.

    Each starts by locking the tenant's row. So it can assign numbers itself, its reads stay valid
    until the end, and writers cannot deadlock. Tenants do not wait for each other.
    """

    def __init__(self, connection: Connection, who: Who, batch: Batch) -> None:
        # A client chooses its own actor name, so the person comes from `who`, never from that name.
        super().__init__(batch, sign_actor(batch.actor.partition(" for ")[0], who.person))
        self.connection, self.who = connection, who
        self.done: dict[str, Rows] = {}
        row = self.one("SELECT last, sealed FROM tenants FOR UPDATE")
        if row is None:
            raise tenant_gone()
        self.last, self.sealed = int(row[0]), int(row[1])
        self.last_stored = self.last

    def run(self, sql: str, *values: object) -> Rows:
        cursor = self.connection.execute(translate(sql), adapt(values))
        # Only a query waits for the server. Other statements are sent along with it, and their errors surface there.
        return cursor.fetchall() if sql.startswith(("SELECT", "WITH")) else []

    def put(self, table: str, new: Sequence[Row], key: str = "") -> None:
        if new:
            converted = [{name: _as_json(value) for name, value in row.items()} for row in new]
            self.connection.execute(
                _insert(table, tuple(new[0]), key), (json.dumps(converted, ensure_ascii=False),)
            )

    def number(self, table: str) -> int:
        self.last += 1
        return self.last

    def new_scope(self, key: str, name: str, path: str) -> int:
        if key == PERSONAL and not self.who.person:
            raise InvalidInput(
                "Personal memories need an owner, but this database was opened without a user.",
                "Set `user` to your name.",
            )
        id = -self.number("scopes") if key == PERSONAL else self.number("scopes")
        owner = self.who.person if key == PERSONAL else ""
        self.put("scopes", [{"id": id, "key": key, "owner": owner, "name": name, "path": path}])
        return id

    def shelf(self, scope: int) -> int:
        return min(scope, 0)

    def own_shelf(self) -> int:
        return self.scope(PERSONAL) if self.who.person else 0

    # Words

    def index_words(self, which: Index, texts: Sequence[Texts]) -> None:
        new = []
        for key, scope, columns in texts:
            lexed = search.write_tsvector(search.mark(self.who.tenant, scope), columns)
            new.append({"key": key, "scope": scope, "lexed": lexed})
        self.put(which.words, new)

    def drop_words(self, which: Index, keys: Keys) -> None:
        self.run(f"DELETE FROM {which.words} WHERE key = ANY(?)", keys)

    # Vectors

    def put_windows(self, which: Index, windows: Sequence[Window]) -> None:
        from bethink.store.vectors import decode, scale_of

        new, parts = [], Counter[tuple[int, int]]()
        for key, scope, model, data, text in windows:
            values = decode(data)
            row: dict[str, Any] = {
                which.owner: key,
                "model": model,
                "scope": scope,
                "part": parts[key, model],
            }
            if which is MEMORIES:
                row["text"] = text
            written = {"scale": scale_of(data), "data": search.vector_text(values)}
            new.append({**row, **written, "dimensions": len(values)})
            parts[key, model] += 1
        self.put(which.table, new)

    # Leaving

    def clear_derived(self) -> None:
        """Clear the rows that this person sees: those personal to others could not be rebuilt here."""
        for table in ("words", "span_words"):
            self.run(f"DELETE FROM {table}")
        self.run(f"DELETE FROM vectors v USING models d WHERE d.id = v.model AND ({UNSOUND})")
        self.run(search.SQL["sum_vectors"])

    def drop_history(self, keys: Keys | None) -> None:
        self.run("SELECT drop_history(?::bigint[])", keys)

    def expunge(self, hashes: Sequence[bytes]) -> None:
        self.run("SELECT expunge(?::bytea[])", hashes)

    # The end

    def audit(self, action: str, *what: object) -> None:
        if what:
            self.done.setdefault(action, []).extend(what)

    def seal(self, name: str) -> None:
        """Store the last number used, and one audit line under the name of this write."""
        if self.last != self.last_stored:
            self.run("UPDATE tenants SET last = ?", self.last)
        if self.done:
            line = "INSERT INTO audit(number, at, person, actor, mark, changes, hash) VALUES (0, now(), '', ?, ?, ?, '')"
            self.run(line, self.actor, name, json.dumps(self.done))


# Columns of the audit trail (time by the server's clock, person, agent, changed ids) and of a team's tokens. The server
# interprets tokens; here a token is a row of a tenant, looked up by hash.
AUDIT = "number at person actor changes".split()
TOKEN = "id name hash scope projects personal person created expires used revoked".split()


def tenant_gone() -> StoreError:
    return StoreError(
        "This tenant does not exist any more; nothing was changed.",
        "Ask who runs the database, or set another `tenant`.",
    )


class PostgresStore(FloatVectors, Store):
    """One tenant of a PostgreSQL database, as one person sees it."""

    columns = rows.COLUMNS.format("json_agg(json_build_array(e.name, e.type) ORDER BY e.id)::text")
    signature = "m.metadata::json ->> 'signature'"
    causes = (
        "jsonb_array_elements_text(CASE jsonb_typeof(m.metadata::jsonb -> 'causes')"
        " WHEN 'array' THEN m.metadata::jsonb -> 'causes' ELSE '[]' END) AS cause(value)"
    )
    checks = """
full-text index | rebuild | {} memories, but {} are indexed. | SELECT a.n, b.n FROM (SELECT count(*) AS n FROM memories) a, (SELECT count(*) AS n FROM words) b WHERE a.n <> b.n
full-text index | rebuild | {} spans, but {} are indexed. | SELECT a.n, b.n FROM (SELECT count(*) AS n FROM spans) a, (SELECT count(*) AS n FROM span_words) b WHERE a.n <> b.n
vectors | rebuild | {} vectors, but {} are counted. | SELECT a.n, b.n FROM (SELECT count(*) AS n FROM vectors) a, (SELECT coalesce(sum(vectors), 0) AS n FROM vector_totals) b WHERE a.n <> b.n
"""
    # The tenant's row counts the lines of the audit trail, so that deleted lines are noticed.
    deep_checks = f"""
audit trail |  | {{}} of {{}} lines are gone. | SELECT sealed - count(number), sealed FROM tenants LEFT JOIN audit ON number <= sealed GROUP BY sealed HAVING count(number) < sealed
vectors | reindex | {{}} vectors are damaged. | SELECT count(*) FROM vectors v JOIN models d ON d.id = v.model WHERE {UNSOUND} HAVING count(*) > 0
"""

    def __init__(
        self,
        url: str,
        *,
        tenant: str = "default",
        user: str = "",
        timeout: float = 30.0,
        shared: PostgresStore | None = None,
    ) -> None:
        super().__init__()
        _check_name("tenant", tenant, required=True)
        _check_name("user", user)
        self._shared = shared is not None
        self.database: Database = shared.database if shared else Database(url, timeout)
        self.name, self.person, self.timeout = tenant, user, timeout
        self.path = self.database.shown  # location of the database, as shown to users
        self._open = threading.local()  # the current write of this thread
        try:
            if shared is None:
                prepare(self.database)
            self.who = self._enter()
        except BaseException:
            self.close()
            raise

    def act_as(self, tenant: str, user: str) -> PostgresStore:
        """Return the same database for another tenant or person, on the same connections."""
        return PostgresStore("", tenant=tenant, user=user, timeout=self.timeout, shared=self)

    def _enter(self) -> Who:
        found = self.database.read(Who(), "SELECT enter(%s)", (self.name,))[0][0]
        if found is None:
            raise StoreError(
                f"The tenant '{self.name}' was deleted, or is not open to this role.",
                "Ask who runs the database, or set another `tenant`.",
            )
        who = Who(found, self.person)
        if not self.database.read(who, "SELECT allowed()")[0][0]:
            raise StoreError(
                f"The role that opens {self.path} is bound to one person, and that is not '{self.person}'.",
                "Set `user` to the name that the role is bound to.",
            )
        return who

    def close(self) -> None:
        if not self._shared:
            self.database.close()

    def run(self, sql: str, *values: object) -> Rows:
        writer: PostgresWriter | None = getattr(self._open, "writer", None)
        if writer is not None:
            return writer.run(sql, *values)
        return self._ask(sql.replace("?", "%s"), adapt(values))

    def _ask(self, sql: str, values: Sequence[object] | Json) -> Rows:
        found = self.database.read(self.who, sql, values)
        if not found and not self.database.read(self.who, "SELECT 1 FROM tenants"):
            raise tenant_gone()
        return found

    def _last_key(self) -> int:
        return int(self.column("SELECT coalesce(max(key), 0) FROM memories")[0])

    # Writing

    def _write_in(self, batch: Batch, action: Callable[[Writer], Result]) -> Result:
        """Run a write in one transaction, and retry it if the connection is lost.

        A lost connection leaves open whether the write was committed, so a retry looks for its name
        first.
        """
        name = new_id()
        sent: list[
            tuple[Result, int]
        ] = []  # result of an attempt, and the length of the audit trail before it

        def once() -> Result:
            with self.database.transaction(self.who) as connection, connection.pipeline():
                writer = PostgresWriter(connection, self.who, batch)
                # An earlier attempt locks the tenant, so this one waits until it is finished. Its commit waits for a
                # standby, so a write that is visible here is on the standby as well.
                landed = "SELECT 1 FROM audit WHERE number > ? AND mark = ?"
                if sent and writer.one(landed, sent[0][1], name):
                    return sent[0][0]
                sent.clear()
                self._open.writer = writer
                try:
                    result = action(writer)
                finally:
                    self._open.writer = None
                writer.seal(name)
                sent.append((result, writer.sealed))
            return result

        with translate_errors(self.path):
            try:
                return self.database.retry(once)
            except (psycopg.OperationalError, psycopg.InterfaceError, StoreError) as error:
                if sent:
                    raise OutcomeUnknown(
                        f"{self.path} disconnected during a write, and it is unknown whether the write was committed.",
                        "Check once the server is back; adding the same text again does not store it twice.",
                    ) from error
                raise

    # The signals of a search

    def _search(
        self, name: str, where: Where = ("", []), indexed: str = "", **values: object
    ) -> Rows:
        """Run a statement of `pgsearch.sql`; the `?` parameters of the filter get names like all others."""
        first, *rest = where[0].split("?")
        filter = first + "".join(f"%(f{at})s{part}" for at, part in enumerate(rest))
        named = {f"f{at}": value for at, value in enumerate(where[1])}
        sql = search.SQL[name].replace("{filter}", filter).replace("{indexed}", indexed)
        return self._ask(sql, {**named, **values})

    def _marks(self, scopes: Keys) -> list[str]:
        return [search.mark(self.who.tenant, scope) for scope in scopes]

    def _question(self, query: Query, scopes: Keys) -> Json:
        """Parameters of a statement for a question: a tsquery, and the words that count for the score."""
        marks, counted = self._marks(scopes), query_words(query).lexemes
        return {
            "scopes": list(scopes),
            "query": search.write_tsquery(query, marks),
            "lexemes": [search.bound_word(mark, word) for mark in marks for word in counted],
            "hashes": [hash_word(word) for _ in marks for word in counted],
        }

    def _find_by_expression(self, query: Query, scopes: Keys, where: Where, limit: int) -> Rows:
        asked = self._question(query, scopes)
        return self._search("by_expression", where, **asked, limit=limit) if asked["query"] else []

    def _find_by_words(self, query: Query, scopes: Keys, where: Where, limit: int) -> Rows:
        pieces = search.split_terms(query, self._marks(scopes))
        asked: Json = {
            "scopes": list(scopes),
            "queries": list(pieces),
            "hashes": ["{" + ",".join(map(str, hashes)) + "}" for hashes in pieces.values()],
            "every": [hash for hashes in pieces.values() for hash in hashes],
        }
        asked |= {"limit": limit, "most": 2 * limit, "postings": POSTINGS, "together": TOGETHER}
        found = self._search("by_words", where, **asked)
        if found and (len(found) * 2 >= min(limit, found[0][2]) or found[0][2] <= 2 * limit):
            return [(key, weight) for key, weight, _ in found]
        return []

    def keyword_spans(self, query: Query, scopes: Scopes, limit: int) -> Scores:
        asked = self._question(keep_topic_terms(query), self._scopes(scopes))
        return self._search("topics", **asked, limit=limit) if asked["query"] else []

    def _near(self, vector: Collection[float], model: str, scopes: Scopes) -> Json:
        """Parameters of a statement for a vector."""
        text = search.vector_text(vector)
        return {"vector": text, "model": self._model_id(model), "scopes": self._scopes(scopes)}

    def nearest(self, vector: Collection[float], model: str, filter: Filter, limit: int) -> Ranking:
        asked, size = self._near(vector, model, filter.scopes), len(vector)
        where, indexed, ways = self._where(filter), "", [search.ALL_ROWS]
        if size in search.INDEXED:
            order = f"v.data::halfvec({size}) <=> %(vector)s::halfvec({size})"
            indexed, ways = (
                f"AND v.dimensions = {size} ORDER BY {order}",
                [search.SCANNED_WHOLE, *ways],
            )
        for exact in ways:
            asked |= {"limit": limit, "wide": 3 * limit, "exact": exact}
            found = self._search("nearest", where, indexed, **asked)
            if found and not found[0][2]:
                break
        return tuple((key, cosine) for key, cosine, _ in found)

    def nearest_spans(
        self, vector: Collection[float], model: str, scopes: Scopes, limit: int
    ) -> Scores:
        return self._search("nearest_topics", **self._near(vector, model, scopes), limit=limit)

    def cosines(self, keys: Keys, vector: Collection[float], model: str, scopes: Scopes) -> Cosines:
        asked = self._near(vector, model, scopes)
        found = dict(self._search("cosines", **asked, keys=list(keys)))
        return found, float(found.pop(None, None) or 0.0)

    # Care

    def _size(self) -> int:
        """Estimate the bytes of this tenant's rows, without indexes.

        The size of the whole database would reveal something about other tenants.
        """
        parts = " + ".join(
            f"(SELECT count(*) FROM {table}) * coalesce((SELECT avg(pg_column_size(t.*))"
            f" FROM (SELECT * FROM {table} LIMIT {_SAMPLE}) t), 0)"
            for table in SIZED
        )
        return int(self.column(f"SELECT {parts}")[0])

    def _check_database(self, deep: bool) -> Problems:
        """Check the isolation between tenants."""
        return [Problem("tenants", message) for (message,) in self._search("walls")]

    # Beside memories

    def audit(self, limit: int) -> list[Row]:
        """Newest lines of the audit trail, newest first."""
        sql = f"SELECT {', '.join(AUDIT)} FROM audit ORDER BY number DESC LIMIT ?"
        found = [dict(zip(AUDIT, row, strict=True)) for row in self.run(sql, limit)]
        return [{**line, "changes": json.loads(line["changes"])} for line in found]

    def find_token(self, hash: str) -> Row | None:
        """Token with this hash, from any tenant, with the tenant's name."""
        found = self.database.read(Who(), "SELECT * FROM token(%s)", (hash,))
        return dict(zip(("tenant", *TOKEN), found[0], strict=True)) if found else None

    def list_tokens(self) -> list[Row]:
        """Tokens of this tenant that this role may see, oldest first."""
        found = self.run(f"SELECT {', '.join(TOKEN)} FROM tokens ORDER BY created, id")
        return [{"tenant": self.name, **dict(zip(TOKEN, row, strict=True))} for row in found]

    def add_token(self, row: Row) -> None:
        """Store a token. The database refuses one for another person unless an administrator adds it."""
        name, person = row["name"], row.get("person", "")

        def add(writer: Writer) -> None:
            if person != self.person and not writer.one("SELECT administers()")[0]:
                raise InvalidInput(
                    f"Only an administrator creates tokens for others; this role is bound to '{self.person}'.",
                    f"bethink token create --name {name} --person {self.person}",
                )
            # A token of that name may belong to another person and be invisible here, so the index decides.
            values = [row.get(column, "") for column in TOKEN]
            added = writer.one(
                f"WITH added AS (INSERT INTO tokens({', '.join(TOKEN)}) VALUES ({rows.marks(values)})"
                " ON CONFLICT DO NOTHING RETURNING id) SELECT id FROM added",
                *values,
            )
            if added is None:
                raise InvalidInput(
                    f"There is a token named '{name}' already.",
                    f"Name it otherwise, or `bethink token revoke {name}`.",
                )

        self._write_in(now(), add)

    def revoke_token(self, id: str, at: int) -> None:
        sql = "UPDATE tokens SET revoked = ? WHERE id = ? AND revoked IS NULL"
        self._write_in(now(), lambda writer: writer.run(sql, at, id))

    def backup(self, path: str) -> int:
        """Write everything this person sees of the tenant to one SQLite database."""
        with claim_backup(Path(path)) as partial, closing(SqliteStore(partial)) as copy:
            for part in PARTS:
                for bundle in self.export(part):
                    copy.take(bundle, allow_purged=True)
        return Path(path).stat().st_size


def _check_name(what: str, name: str, required: bool = False) -> None:
    if (required and not name.strip()) or len(name) > _LONGEST_NAME or not name.isprintable():
        raise StoreError(f"{name[:40]!r} cannot name a {what}.", f"Set `{what}` to a short word.")
