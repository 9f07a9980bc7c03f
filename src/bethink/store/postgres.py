"""The PostgreSQL store: reads here, writes in `pg/writer.py` and `pg/changing.py`, care in `pg/health.py`. For teams and fleets.

One store acts for one person of one tenant; many of them share the connections of a process. What is `personal` is a scope of
that person alone; every other scope is seen by the whole tenant. Reads may go to a replica, but never behind the last write of
this process.
"""

from __future__ import annotations

import builtins
import json
import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg

from bethink.errors import StoreError
from bethink.store import lexemes, rows
from bethink.store import prefix as prefixes
from bethink.store.base import Overview, Problem, Statistics
from bethink.store.pg import audit, changing, health, search, spans, words
from bethink.store.pg import rows as own
from bethink.store.pg.connection import Database, Who, translated, unknown
from bethink.store.pg.replica import Reader
from bethink.store.pg.schema import prepare
from bethink.store.pg.transfer import Transfers
from bethink.store.pg.writer import Writer, gone
from bethink.text.ids import new_id
from bethink.types import (
    Batch,
    Candidate,
    Event,
    Filter,
    Held,
    Memory,
    Query,
    Ranking,
    Receipt,
    Relation,
    Session,
    Source,
    Span,
    Words,
    turn_of,
)

Result = TypeVar("Result")

LONGEST_NAME = 200
UNEMBEDDED = (
    f"m.tenant = %s AND coalesce({own.json_of('m.metadata')} ->> 'vector_index', '') NOT IN ('false', '0') AND NOT EXISTS (SELECT 1 FROM vectors v"
    " JOIN models d ON d.tenant = v.tenant AND d.id = v.model WHERE v.tenant = m.tenant AND v.memory = m.key AND d.name = %s)"
)
SOURCE = "SELECT o.uri, o.type, o.hash, o.position, o.metadata FROM sources o JOIN scopes s ON s.tenant = o.tenant AND s.id = o.scope"


class PostgresStore(Transfers):
    """One tenant of a PostgreSQL database, as one person sees it."""

    def __init__(
        self,
        url: str,
        *,
        tenant: str = "default",
        user: str = "",
        read_url: str = "",
        timeout: float = 30.0,
        shared: PostgresStore | None = None,
    ) -> None:
        _check_name("tenant", tenant, required=True)
        _check_name("user", user)
        self._shared = shared is not None
        if shared is None:
            self.database = Database(url, timeout)
            try:
                prepare(self.database)
            except BaseException:
                self.database.close()
                raise
            self.reader = Reader(self.database, read_url, timeout)
        else:
            self.database, self.reader = shared.database, shared.reader
        self.name, self.person, self.timeout = tenant, user, timeout
        self.path = self.database.shown  # what people are told where memories are
        self._scope_ids: dict[str, int] = {}
        self._models: dict[str, int] = {}
        self.who = Who(self._enter(), user)

    def acting(self, tenant: str, user: str) -> PostgresStore:
        """The same database for another tenant or person, on the same connections."""
        return PostgresStore("", tenant=tenant, user=user, timeout=self.timeout, shared=self)

    def _enter(self) -> int:
        found = self.database.read(
            Who(None), "SELECT enter(%s, %s)", (self.name, secrets.token_hex(16))
        )[0][0]
        if found is None:
            raise StoreError(
                f"The tenant '{self.name}' was deleted.",
                "Ask who runs the database, or set another `tenant`.",
            )
        return int(found)

    def close(self) -> None:
        if not self._shared:
            self.reader.close()
            self.database.close()

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[Any]]:
        """A transaction that acts for this tenant and person, for what stands beside memories."""
        with translated(self.path), self.database.transaction(self.who) as connection:
            yield connection

    @contextmanager
    def outside(self) -> Iterator[psycopg.Connection[Any]]:
        """A transaction of no tenant: it sees what functions give out and nothing else."""
        with translated(self.path), self.database.transaction(Who(None)) as connection:
            yield connection

    def _run(self, sql: str, values: Any = ()) -> list[Any]:
        found = self.reader.read(self.who, sql, values)
        if not found and not self.database.read(
            self.who, "SELECT 1 FROM tenants WHERE id = %s", (self.tenant,)
        ):
            raise gone()
        return found

    @property
    def tenant(self) -> int:
        return self.who.tenant or 0

    def _scopes(self, keys: Sequence[str]) -> list[int]:
        """The numbers of these scopes. A scope never changes its number, so they are asked for once."""
        unknown = [key for key in dict.fromkeys(keys) if key not in self._scope_ids]
        if unknown:
            self._scope_ids.update(
                self._run(
                    "SELECT key, id FROM scopes WHERE tenant = %s AND key = ANY(%s)",
                    (self.tenant, unknown),
                )
            )
        return [self._scope_ids[key] for key in dict.fromkeys(keys) if key in self._scope_ids]

    def _where(self, filter: Filter) -> tuple[str, list[Any]]:
        return own.where(filter, self.tenant, self._scopes(filter.scopes))

    def _memories(self, condition: str, values: Sequence[Any]) -> list[Memory]:
        return [
            rows.memory(own.readable(row))
            for row in self._run(f"SELECT {own.COLUMNS} FROM {own.JOINS} WHERE {condition}", values)
        ]

    # Writing

    def write(self, batch: Batch) -> Receipt:
        return self._written(batch, changing.apply)

    def _written(self, batch: Batch, action: Callable[[Writer], Result]) -> Result:
        """One transaction. A connection lost on the way leaves it open whether the write went in: the next try asks for its name first."""
        name = new_id()
        sent: list[
            tuple[Result, int]
        ] = []  # what a try gave whose answer is out, and where it found the audit trail

        def once() -> Result:
            with self.database.transaction(self.who) as connection:
                writer = Writer(connection, self.who, batch)
                if sent and writer.landed(name, sent[0][1]):
                    return sent[0][0]
                sent.clear()
                result = action(writer)
                writer.seal(name)
                sent.append((result, writer.sealed))
            return result

        with translated(self.path):
            try:
                result = self.database.retried(once)
            except (psycopg.OperationalError, psycopg.InterfaceError, StoreError) as error:
                if sent:
                    raise unknown(self.path) from error
                raise
        self.reader.wrote()
        return result

    # One memory at a time

    def resolve(self, prefix: str, scopes: Sequence[str] | None = None) -> str:
        text = prefixes.spelled(prefix)
        inside = None if scopes is None else self._scopes(scopes)
        found = self._run(
            "SELECT id FROM memories WHERE tenant = %s AND id >= %s AND id < %s AND (%s::bigint[] IS NULL OR scope = ANY(%s::bigint[]))"
            f" ORDER BY id LIMIT {prefixes.MOST}",
            (self.tenant, text, text + "g", inside, inside),
        )
        return prefixes.only(prefix, [row[0] for row in found], self.abbreviate)

    def get(self, ids: Sequence[str]) -> list[Memory]:
        if not ids:
            return []
        found = {
            memory.id: memory
            for memory in self._memories(
                "m.tenant = %s AND m.id = ANY(%s)", (self.tenant, list(ids))
            )
        }
        return [found[id] for id in ids if id in found]

    def history(self, id: str) -> list[Event]:
        found = self._run(
            "SELECT h.at, h.actor, h.action, h.before, h.after, h.number FROM memories m JOIN history h ON h.tenant = m.tenant AND h.memory = m.key"
            " WHERE m.tenant = %s AND m.id = %s ORDER BY h.number",
            (self.tenant, id),
        )
        return [
            Event(
                rows.moment(at),  # type: ignore[arg-type]
                actor,
                action,
                json.loads(before) if before else {},
                json.loads(after) if after else {},
                number,
            )
            for at, actor, action, before, after, number in found
        ]

    def relations(self, ids: Sequence[str]) -> list[Relation]:
        if not ids:
            return []
        found = self._run(
            "SELECT source, target, type, created_at FROM relations WHERE tenant = %s AND source = ANY(%s)"
            " UNION SELECT source, target, type, created_at FROM relations WHERE tenant = %s AND target = ANY(%s) ORDER BY 4, 1, 2",
            (self.tenant, list(ids), self.tenant, list(ids)),
        )
        return [
            Relation(source, target, type, rows.moment(at)) for source, target, type, at in found
        ]

    def abbreviate(self, ids: Sequence[str]) -> dict[str, str]:
        found = (
            self._run(
                "SELECT u.id, (SELECT max(id) FROM memories m WHERE m.tenant = %s AND m.id < u.id), (SELECT min(id) FROM memories m WHERE m.tenant = %s AND m.id > u.id)"
                " FROM unnest(%s::text[]) AS u(id)",
                (self.tenant, self.tenant, list(ids)),
            )
            if ids
            else []
        )
        near = {id: others for id, *others in found}
        return {id: prefixes.shortened(id, near.get(id, ())) for id in ids}

    # Many memories

    def list(
        self, filter: Filter, limit: int = 50, offset: int = 0, order: str = "created"
    ) -> builtins.list[Memory]:
        orders = {
            "created": "m.created_at DESC, m.key DESC",
            "oldest": "m.created_at, m.key",
            "importance": "m.importance DESC, m.key DESC",
            "used": "m.access_count DESC, m.key DESC",
            "useful": "m.usefulness DESC, m.key DESC",
            "updated": "m.updated_at DESC, m.key DESC",
            "position": "m.position, m.key",
        }
        sql, values = self._where(filter)
        return self._memories(
            f"{sql} ORDER BY {orders[order]} LIMIT %s OFFSET %s", (*values, limit, offset)
        )

    def count(self, filter: Filter) -> int:
        sql, values = self._where(filter)
        return int(self._run(f"SELECT count(*) FROM memories m WHERE {sql}", values)[0][0])

    def scan(self, filter: Filter, lost: builtins.list[str] | None = None) -> Iterator[Memory]:
        sql, values = self._where(filter)
        last = 0
        while page := self._run(
            f"SELECT {own.COLUMNS} FROM {own.JOINS} WHERE {sql} AND m.key > %s ORDER BY m.key LIMIT 500",
            (*values, last),
        ):
            last = page[-1][0]
            yield from (rows.memory(own.readable(row)) for row in page)

    def duplicates(self, hashes: Sequence[str], scope: str) -> dict[str, str]:
        if not hashes:
            return {}
        return dict(
            self._run(
                "SELECT content_hash, id FROM memories WHERE tenant = %s AND scope = ANY(%s) AND deleted_at IS NULL AND dedup = ANY(%s)",
                (self.tenant, self._scopes([scope]), [own.dedup(hash) for hash in hashes]),
            )
        )

    def tombstoned(self, hashes: Sequence[str]) -> set[str]:
        return health.tombstoned(self._run, self.tenant, hashes)

    def source(self, scope: str, uri: str) -> Source | None:
        found = self._run(
            f"{SOURCE} WHERE o.tenant = %s AND s.key = %s AND md5(o.uri) = md5(%s) AND o.uri = %s",
            (self.tenant, scope, uri, uri),
        )
        return _source(found[0]) if found else None

    def find_source(self, uri: str) -> tuple[str, Source] | None:
        found = self._run(
            f"{SOURCE.replace('SELECT ', 'SELECT s.key, ')} WHERE o.tenant = %s AND md5(o.uri) = md5(%s) AND o.uri = %s ORDER BY o.position DESC, o.id LIMIT 1",
            (self.tenant, uri, uri),
        )
        return (found[0][0], _source(found[0][1:])) if found else None

    def sources(self, scope: str, collection: str | None = None) -> builtins.list[Source]:
        found = self._run(
            f"{SOURCE} WHERE o.tenant = %s AND s.key = %s AND (%s::text IS NULL OR {own.json_of('o.metadata')} ->> 'collection' = %s) ORDER BY o.id",
            (self.tenant, scope, collection, collection),
        )
        return [_source(row) for row in found]

    def held(self, scope: str, uri: str) -> builtins.list[Held]:
        found = self._run(
            f"SELECT {own.COLUMNS}, (SELECT action FROM history h WHERE h.tenant = m.tenant AND h.memory = m.key ORDER BY number DESC LIMIT 1)"
            f" FROM {own.JOINS} WHERE m.tenant = %s AND s.key = %s AND md5(o.uri) = md5(%s) AND o.uri = %s"
            f" AND NOT {rows.TOLD} ORDER BY m.position, m.key",
            (self.tenant, scope, uri, uri),
        )
        return [Held(rows.memory(own.readable(row[:-1])), row[-1] or "") for row in found]

    def around(self, id: str, before: int, after: int) -> builtins.list[Memory]:
        found = self._run(
            f"SELECT m.source, m.position, {rows.TYPE} FROM memories m JOIN sources o ON o.tenant = m.tenant AND o.id = m.source"
            " WHERE m.tenant = %s AND m.id = %s",
            (self.tenant, id),
        )
        if not found or found[0][2] == "note":  # what was told has no place: thousands may share it
            return [one for one in self.get([id]) if one.deleted_at is None]
        source, position, _ = found[0]
        place = turn_of(position)
        return self._memories(
            "m.tenant = %s AND m.source = %s AND m.position BETWEEN %s AND %s AND m.deleted_at IS NULL"
            f" AND NOT {rows.TOLD} ORDER BY m.position, m.key LIMIT 200",
            (self.tenant, source, place - before, place + after),
        )

    # Conversations

    def sessions(
        self, scopes: Sequence[str], limit: int = 50, offset: int = 0, prefix: str | None = None
    ) -> builtins.list[Session]:
        return spans.sessions(self._run, self.tenant, self._scopes(scopes), limit, offset, prefix)

    def spans(self, session: str, scopes: Sequence[str]) -> builtins.list[Span]:
        return spans.of_session(self._run, self.tenant, session, self._scopes(scopes))

    def spans_by_id(self, ids: Sequence[str], scopes: Sequence[str]) -> dict[str, Span]:
        return spans.by_id(self._run, self.tenant, ids, self._scopes(scopes)) if ids else {}

    def known_turns(self, scope: str, identities: Sequence[bytes]) -> set[bytes]:
        found = self._run(
            "SELECT identity FROM turns WHERE tenant = %s AND scope = ANY(%s) AND identity = ANY(%s)",
            (self.tenant, self._scopes([scope]), list(identities)),
        )
        return {bytes(row[0]) for row in found}

    def keyword_spans(
        self, query: Query, scopes: Sequence[str], limit: int
    ) -> builtins.list[tuple[str, float]]:
        marks = [words.mark(self.tenant, scope) for scope in self._scopes(scopes)]
        counted = [words.bounded(mark, word) for mark in marks for word in words.leaves(query)]
        return spans.keyword(
            self._run, self.tenant, words.topics(query, marks), counted, self._scopes(scopes), limit
        )

    def in_spans(self, ids: Sequence[str], filter: Filter, limit: int) -> builtins.list[int]:
        sql, values = self._where(filter)
        found = self._run(
            f"SELECT m.key FROM memories m WHERE {sql} AND m.span = ANY(%s) AND m.kind <> 'context' ORDER BY m.importance DESC, m.key LIMIT %s",
            (*values, list(ids), limit),
        )
        return [row[0] for row in found]

    def nearest_spans(
        self, vector: Any, model: str, scopes: Sequence[str], limit: int
    ) -> builtins.list[tuple[str, float]]:
        known = self._model(model)
        if known is None:
            return []
        return self._run(
            "SELECT p.id, max(-(v.data <#> %s::vector)) AS cosine FROM span_vectors v JOIN spans p ON p.tenant = v.tenant AND p.key = v.span"
            " WHERE v.tenant = %s AND v.model = %s AND v.scope = ANY(%s) GROUP BY p.id, p.key ORDER BY cosine DESC, p.key LIMIT %s",
            (own.vector_text(vector), self.tenant, known, self._scopes(scopes), limit),
        )

    # The signals of a search

    def keyword(self, query: Query, filter: Filter, limit: int) -> Ranking:
        scopes = self._scopes(filter.scopes)
        where = own.where(filter, self.tenant, scopes)
        found = (
            search.keyword(self._run, self.tenant, scopes, query, filter.narrow, where, limit)
            if scopes
            else []
        )
        return Ranking("keyword", tuple(found))

    def nearest(
        self, vector: Any, model: str, filter: Filter, limit: int, least: float | None = None
    ) -> Ranking:
        known, scopes = self._model(model), self._scopes(filter.scopes)
        if known is None or not scopes:
            return Ranking("vector", ())
        where = own.where(filter, self.tenant, scopes)
        found = search.nearest(
            self._run, self.tenant, scopes, known, vector, filter.narrow, where, limit
        )
        return Ranking("vector", tuple(row for row in found if least is None or row[1] >= least))

    def ready(self, model: str, scopes: Sequence[str]) -> None:
        """Nothing is held here that could be behind."""

    def _model(self, name: str) -> int | None:
        """A model never changes its number, so it is asked for once."""
        if name not in self._models:
            found = self._run(
                "SELECT id FROM models WHERE tenant = %s AND name = %s", (self.tenant, name)
            )
            if not found:
                return None
            self._models[name] = found[0][0]
        return self._models[name]

    def by_entity(self, names: Sequence[str], filter: Filter, limit: int) -> Ranking:
        sql, values = self._where(filter)
        found = (
            self._run(
                "SELECT m.key, count(*)::float8 AS n FROM entities e JOIN memory_entities me ON me.tenant = e.tenant AND me.entity = e.id"
                " JOIN memories m ON m.tenant = me.tenant AND m.key = me.memory"
                f" WHERE e.tenant = %s AND md5(e.folded) = ANY(SELECT md5(n) FROM unnest(%s::text[]) n) AND {sql} GROUP BY m.key, m.created_at"
                " ORDER BY n DESC, m.created_at DESC LIMIT %s",
                (self.tenant, [name.casefold() for name in names], *values, limit),
            )
            if names
            else []
        )
        return Ranking("entity", tuple(found))

    def statistics(self, words: Words, scopes: Sequence[str]) -> Statistics:
        hashes = [lexemes.hashed(word) for word in words.lexemes]
        inside = self._scopes(scopes)
        found = self._run(
            "SELECT NULL::bigint, coalesce(sum(memories), 0)::bigint, coalesce(sum(words), 0)::bigint FROM scopes WHERE tenant = %s AND id = ANY(%s)"
            " UNION ALL SELECT hash, sum(memories)::bigint, 0 FROM lexeme_counts WHERE tenant = %s AND scope = ANY(%s) AND hash = ANY(%s) GROUP BY hash",
            (self.tenant, inside, self.tenant, inside, hashes),
        )
        counts = {hash: count for hash, count, _ in found}
        memories, length = next((count, length) for hash, count, length in found if hash is None)
        return Statistics(
            memories,
            length / memories if memories else 0.0,
            tuple(counts.get(hash, 0) for hash in hashes),
        )

    def candidates(
        self, keys: Sequence[int], filter: Filter, words: Words, worded: Collection[int]
    ) -> builtins.list[Candidate]:
        if not keys:
            return []
        sql, values = self._where(filter)
        found = self._run(
            "SELECT m.key, m.kind, m.importance, m.confidence, m.usefulness, m.access_count, m.created_at / 1000.0::float8,"
            " coalesce(m.last_accessed, m.created_at) / 1000.0::float8, m.trust, m.source, m.position, m.superseded_by, m.span, m.length,"
            f" CASE WHEN m.key = ANY(%s) THEN m.lexemes END FROM memories m WHERE m.key = ANY(%s) AND {sql}",
            (list(worded), list(keys), *values),
        )
        place = {key: at for at, key in enumerate(keys)}
        single = [lexemes.hashed(word) for word in words.lexemes]
        double = [lexemes.pair_hash(pair) for pair in words.pairs]
        return [
            Candidate._make((*row[:14], *lexemes.occurrences(row[14], single, double)))
            for row in sorted(found, key=lambda row: place[row[0]])
        ]

    def cosines(
        self, keys: Sequence[int], vector: Any, model: str, scopes: Sequence[str]
    ) -> tuple[dict[int, float], float]:
        known, inside = self._model(model), self._scopes(scopes)
        if known is None or not inside:
            return {}, 0.0
        text = own.vector_text(vector)
        found = self._run(
            "SELECT NULL::bigint, sum(-(total <#> %s::vector)) / nullif(sum(vectors), 0) FROM vector_totals WHERE tenant = %s AND model = %s AND scope = ANY(%s)"
            " UNION ALL SELECT memory, max(-(data <#> %s::vector)) FROM vectors WHERE tenant = %s AND memory = ANY(%s) AND model = %s AND scope = ANY(%s) GROUP BY memory",
            (text, self.tenant, known, inside, text, self.tenant, list(keys), known, inside),
        )
        mean = next((value for key, value in found if key is None), None)
        return {key: cosine for key, cosine in found if key is not None}, float(mean or 0.0)

    def answers(self, keys: Sequence[int]) -> builtins.list[tuple[int, str]]:
        return self._run(
            "SELECT m.key, r.source FROM memories m JOIN relations r ON r.tenant = m.tenant AND r.target = m.id AND r.type = 'answers'"
            " WHERE m.tenant = %s AND m.key = ANY(%s) ORDER BY m.key, r.source",
            (self.tenant, list(keys)),
        )

    def keys(self, ids: Sequence[str]) -> dict[str, int]:
        return (
            dict(
                self._run(
                    "SELECT id, key FROM memories WHERE tenant = %s AND id = ANY(%s)",
                    (self.tenant, list(ids)),
                )
            )
            if ids
            else {}
        )

    def load(self, keys: Sequence[int]) -> dict[int, Memory]:
        if not keys:
            return {}
        found = self._run(
            f"SELECT {own.COLUMNS} FROM {own.JOINS} WHERE m.tenant = %s AND m.key = ANY(%s)",
            (self.tenant, list(keys)),
        )
        return {row[0]: rows.memory(own.readable(row)) for row in found}

    # Vectors

    def models(self) -> builtins.list[str]:
        found = self._run(
            "SELECT d.name FROM models d WHERE d.tenant = %s"
            f" AND EXISTS (SELECT 1 FROM vector_totals t WHERE t.{health.SEEN} AND t.model = d.id) ORDER BY d.id",
            (self.tenant, self.tenant, self.tenant),
        )
        return [row[0] for row in found]

    def cached(self, hashes: Sequence[bytes], model: str) -> dict[bytes, Any]:
        from bethink.store.scan import decode, encoded_size

        found = (
            self._run(
                "SELECT c.hash, c.data, d.dimensions FROM embedding_cache c JOIN models d ON d.tenant = c.tenant AND d.id = c.model"
                " WHERE c.tenant = %s AND d.name = %s AND c.hash = ANY(%s)",
                (self.tenant, model, list(hashes)),
            )
            if hashes
            else []
        )
        return {
            bytes(hash): [
                decode(data[at : at + encoded_size(size)])
                for at in range(0, len(data), encoded_size(size))
            ]
            for hash, data, size in found
            if len(data) % encoded_size(size) == 0
        }

    def unembedded(self, model: str, limit: int) -> builtins.list[Memory]:
        return self._memories(f"{UNEMBEDDED} ORDER BY m.key LIMIT %s", (self.tenant, model, limit))

    def count_unembedded(self, model: str) -> int:
        return int(
            self._run(f"SELECT count(*) FROM memories m WHERE {UNEMBEDDED}", (self.tenant, model))[
                0
            ][0]
        )

    def unembedded_spans(self, model: str, limit: int) -> builtins.list[Span]:
        return spans.unembedded(self._run, self.tenant, model, limit)

    # Care

    def scopes(self) -> builtins.list[str]:
        return [
            row[0]
            for row in self._run(
                "SELECT key FROM scopes WHERE tenant = %s ORDER BY key", (self.tenant,)
            )
        ]

    def overview(self, scopes: Sequence[str] | None = None) -> Overview:
        return health.overview(
            self._run, self.tenant, None if scopes is None else self._scopes(scopes)
        )

    def check(self, deep: bool = False) -> builtins.list[Problem]:
        return health.check(self._run, self.tenant, deep)

    def audit(self, limit: int) -> builtins.list[audit.Line]:
        """The newest lines of the audit trail, newest first."""
        return audit.lines(self._run, self.tenant, limit)

    def check_audit(self) -> builtins.list[Problem]:
        """Goes along the whole audit trail."""
        return audit.check(self._run, self.tenant)

    def rebuild(self) -> int:
        return self._written(health.NOW(), health.rebuild)

    def drop_vectors(self, model: str | None = None) -> int:
        return self._written(health.NOW(), lambda writer: health.drop_vectors(writer, model))

    def backup(self, path: str) -> int:
        return health.backup(self, path)

    def reset(self, scopes: Sequence[str] | None = None) -> int:
        inside = None if scopes is None else self._scopes(scopes)
        return self._written(health.NOW(), lambda writer: health.reset(writer, inside))


def _check_name(what: str, name: str, required: bool = False) -> None:
    if (required and not name.strip()) or len(name) > LONGEST_NAME or not name.isprintable():
        raise StoreError(f"{name[:40]!r} cannot name a {what}.", f"Set `{what}` to a short word.")


def _source(row: Sequence[Any]) -> Source:
    uri, type, hash, position, metadata = row
    return Source(uri, type, hash, position, json.loads(metadata))
