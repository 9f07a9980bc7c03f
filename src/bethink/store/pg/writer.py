"""Putting a Batch into PostgreSQL. Everything here runs inside one open transaction that holds the tenant; nothing here opens or commits one.

Writers of one tenant come one after the other, as in SQLite: the first thing each does is to lock the tenant's row. So numbers
can be given out here, what was read stays true to the end, and no two writers wait for each other in a circle. Tenants do not
wait for one another.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import psycopg

from bethink.errors import InvalidInput, Overtaken, StoreError
from bethink.store import lexemes, rows
from bethink.store.pg import rows as own
from bethink.store.pg.connection import Who
from bethink.store.pg.words import Worded, mark
from bethink.store.writer import cache_key, index_tags, vector_text
from bethink.types import PERSONAL, Batch, Entity, Entry, Memory, Outcome

TYPES = {
    "memories": {
        "tenant": "int",
        "key": "bigint",
        "scope": "bigint",
        "source": "bigint",
        "created_at": "bigint",
        "updated_at": "bigint",
        "last_accessed": "bigint",
        "valid_from": "bigint",
        "valid_to": "bigint",
        "expires_at": "bigint",
        "deleted_at": "bigint",
        "importance": "float8",
        "confidence": "float8",
        "usefulness": "float8",
        "access_count": "bigint",
        "position": "bigint",
        "line_start": "bigint",
        "line_end": "bigint",
        "trust": "int",
        "answered": "int",
        "id": "text",
        "owner": "text",
        "kind": "text",
        "superseded_by": "text",
        "span": "text",
        "session": "text",
        "dedup": "bytea",
        "content_hash": "text",
        "row_hash": "bytea",
        "length": "int",
        "lexemes": "bytea",
        "section": "text",
        "summary": "text",
        "tags": "text",
        "keywords": "text",
        "metadata": "text",
        "content": "text",
    },
    "sources": {
        "tenant": "int",
        "id": "bigint",
        "scope": "bigint",
        "uri": "text",
        "type": "text",
        "hash": "text",
        "position": "bigint",
        "read_at": "bigint",
        "metadata": "text",
    },
    "words": {"tenant": "int", "key": "bigint", "lexed": "text"},
    "vectors": {
        "tenant": "int",
        "memory": "bigint",
        "model": "bigint",
        "scope": "bigint",
        "part": "int",
        "dimensions": "int",
        "scale": "float4",
        "data": "text",
    },
    "span_vectors": {
        "tenant": "int",
        "span": "bigint",
        "model": "bigint",
        "scope": "bigint",
        "part": "int",
        "dimensions": "int",
        "scale": "float4",
        "data": "text",
    },
    "history": {
        "tenant": "int",
        "number": "bigint",
        "memory": "bigint",
        "owner": "text",
        "at": "bigint",
        "actor": "text",
        "action": "text",
        "before": "text",
        "after": "text",
    },
    "entities": {"tenant": "int", "id": "bigint", "name": "text", "folded": "text", "type": "text"},
    "memory_entities": {"tenant": "int", "memory": "bigint", "entity": "bigint"},
    "relations": {
        "tenant": "int",
        "source": "text",
        "target": "text",
        "type": "text",
        "created_at": "bigint",
        "actor": "text",
    },
    "turns": {"tenant": "int", "scope": "bigint", "identity": "bytea"},
    "tombstones": {"tenant": "int", "hash": "bytea", "at": "bigint"},
    "embedding_cache": {"tenant": "int", "hash": "bytea", "model": "bigint", "data": "bytea"},
    "lexeme_counts": {"tenant": "int", "scope": "bigint", "hash": "bigint", "memories": "bigint"},
}
CASTS = {"lexed": "tsvector", "data": "vector"}


def actor_of(actor: str, person: str) -> str:
    """Who did it, as history keeps it: a person, or an agent on behalf of one."""
    return actor if not person else person if actor == "user" else f"{actor} for {person}"


class Writer:
    """One write on its way in: the open transaction's connection, and what it changes in the statistics."""

    def __init__(self, connection: psycopg.Connection[Any], who: Who, batch: Batch) -> None:
        self.connection, self.who, self.batch = connection, who, batch
        self.tenant = who.tenant or 0
        self.at = rows.stamp(batch.at)
        self.actor = actor_of(batch.actor, who.person)
        self.counts: Counter[tuple[int, int]] = Counter()
        self.scope_memories: Counter[int] = Counter()
        self.scope_words: Counter[int] = Counter()
        self.scope_ids: dict[str, int] = {}
        self.source_ids: dict[tuple[int, str], int] = {}
        self.model_ids: dict[str, tuple[int, int]] = {}
        self.totals: dict[tuple[int, int], tuple[int, Any]] = {}
        self.did: dict[str, list[Any]] = {}
        self.refused: set[bytes] = (
            set()
        )  # keys of texts that were purged: their vectors are not kept either
        self.last, self.salt, self.sealed = self._hold()
        self.given = self.last

    def _hold(self) -> tuple[int, bytes, int]:
        row = self.one(
            "SELECT last, salt, sealed FROM tenants WHERE id = %s AND deleted_at IS NULL FOR UPDATE",
            (self.tenant,),
        )
        if row is None:
            raise gone()
        return int(row[0]), bytes.fromhex(row[1]), int(row[2])

    def number(self) -> int:
        """The next number that this tenant gives out."""
        self.last += 1
        return self.last

    # How statements are run

    def run(self, sql: str, values: Sequence[Any] = ()) -> psycopg.Cursor[Any]:
        return self.connection.execute(sql.encode(), values)

    def one(self, sql: str, values: Sequence[Any] = ()) -> Any:
        return self.run(sql, values).fetchone()

    def put(
        self, table: str, given: Sequence[Mapping[str, Any]], conflict: str = ""
    ) -> psycopg.Cursor[Any] | None:
        """Inserts rows in one statement. (COPY would be faster, but knows no row-level security.)"""
        if not given:
            return None
        names = list(given[0])
        types = TYPES[table]
        columns = [
            [self.tenant if name == "tenant" else row[name] for row in given] for name in names
        ]
        shown = ", ".join(
            f"u.{name}::{CASTS[name]}" if types[name] == "text" and name in CASTS else f"u.{name}"
            for name in names
        )
        marks = ", ".join(f"%s::{types[name]}[]" for name in names)
        listed = ", ".join(names)
        return self.run(
            f"INSERT INTO {table}({listed}) SELECT {shown} FROM unnest({marks}) AS u({listed}) {conflict}",
            columns,
        )

    def told(self, action: str, *what: Any) -> None:
        """Notes for the audit trail what this write does."""
        self.did.setdefault(action, []).extend(what)

    # What a memory belongs to

    def expect(self, scope: str, uri: str, position: int) -> None:
        row = self.one(
            "SELECT o.position FROM sources o JOIN scopes s ON s.tenant = o.tenant AND s.id = o.scope"
            " WHERE o.tenant = %s AND s.key = %s AND md5(o.uri) = md5(%s) AND o.uri = %s",
            (self.tenant, scope, uri, uri),
        )
        if (row[0] if row else 0) != position:
            raise Overtaken(
                f"{uri} was read on to {row[0] if row else 0} by another process.",
                "Nothing is lost; run it again.",
            )

    def owner(self, scope: str) -> str:
        return self.who.person if scope == PERSONAL else ""

    def scope(self, key: str) -> int:
        if key not in self.scope_ids:
            name, path = self.batch.scopes.get(key, ("", ""))
            known = self.one(
                "SELECT id, name, path FROM scopes WHERE tenant = %s AND key = %s",
                (self.tenant, key),
            )
            if known is None:
                id = self.number()
                self.run(
                    "INSERT INTO scopes(tenant, id, key, owner, name, path) VALUES (%s, %s, %s, %s, %s, %s)",
                    (self.tenant, id, key, self.owner(key), name, path),
                )
            else:
                id = known[0]
                if name not in ("", known[1]) or path not in ("", known[2]):
                    self.run(
                        "UPDATE scopes SET name = %s, path = %s WHERE tenant = %s AND id = %s",
                        (name or known[1], path or known[2], self.tenant, id),
                    )
            self.scope_ids[key] = id
        return self.scope_ids[key]

    def known_scope(self, key: str) -> int | None:
        row = self.one("SELECT id FROM scopes WHERE tenant = %s AND key = %s", (self.tenant, key))
        return int(row[0]) if row else None

    def source(self, scope: int, uri: str, type: str, source: Any = None) -> int:
        if source is None and (scope, uri) in self.source_ids:
            return self.source_ids[scope, uri]
        known = self.one(
            "SELECT id FROM sources WHERE tenant = %s AND scope = %s AND md5(uri) = md5(%s)",
            (self.tenant, scope, uri),
        )
        id = known[0] if known else self.number()
        if known is None:
            values = (
                (source.hash, source.position, rows.stored("metadata", source.metadata))
                if source
                else (None, 0, "{}")
            )
            self.run(
                "INSERT INTO sources(tenant, id, scope, uri, type, read_at, hash, position, metadata) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
                (self.tenant, id, scope, uri, type, self.at, *values),
            )
        elif source is not None:
            self.run(
                "UPDATE sources SET type = %s, hash = %s, position = %s, read_at = %s, metadata = %s WHERE tenant = %s AND id = %s",
                (
                    type,
                    source.hash,
                    source.position,
                    self.at,
                    rows.stored("metadata", source.metadata),
                    self.tenant,
                    id,
                ),
            )
        self.source_ids[scope, uri] = id
        return int(id)

    def sources(self, wanted: Iterable[tuple[int, str, str]]) -> None:
        """Makes the sources (scope, uri, type) of many memories known at once."""
        fresh = {
            (scope, uri): type for scope, uri, type in wanted if (scope, uri) not in self.source_ids
        }
        if len(fresh) < 2:
            return
        found = self.run(
            "SELECT u.scope, u.uri, o.id FROM unnest(%s::bigint[], %s::text[]) AS u(scope, uri)"
            " JOIN sources o ON o.tenant = %s AND o.scope = u.scope AND md5(o.uri) = md5(u.uri)",
            ([scope for scope, _ in fresh], [uri for _, uri in fresh], self.tenant),
        )
        self.source_ids.update({(scope, uri): id for scope, uri, id in found})
        missing = [
            (place, type, self.number())
            for place, type in fresh.items()
            if place not in self.source_ids
        ]
        self.put(
            "sources",
            [
                {
                    "tenant": 0,
                    "id": id,
                    "scope": scope,
                    "uri": uri,
                    "type": type,
                    "read_at": self.at,
                }
                for (scope, uri), type, id in missing
            ],
        )
        self.source_ids.update({place: id for place, _, id in missing})

    def model(self, name: str, dimensions: int) -> int:
        if name not in self.model_ids:
            known = self.one(
                "SELECT id, dimensions FROM models WHERE tenant = %s AND name = %s",
                (self.tenant, name),
            )
            if known is None:
                known = (self.number(), dimensions)
                self.run(
                    "INSERT INTO models(tenant, id, name, dimensions) VALUES (%s, %s, %s, %s)",
                    (self.tenant, known[0], name, dimensions),
                )
            elif known[1] != dimensions:
                known = self.resized(known[0], known[1], dimensions)
            self.model_ids[name] = known
        id, size = self.model_ids[name]
        if size != dimensions:
            raise InvalidInput(
                f"The model {name} makes vectors of {size} dimensions here, not of {dimensions}.",
                "`bethink reindex` after a change of model.",
            )
        return id

    def resized(self, model: int, size: int, dimensions: int) -> tuple[int, int]:
        """A model that no memory has a vector of may come back under its name with another size."""
        if self.one(
            "SELECT 1 FROM vector_totals WHERE tenant = %s AND model = %s LIMIT 1",
            (self.tenant, model),
        ):
            return model, size
        for table in ("span_vectors", "embedding_cache"):
            self.run(f"DELETE FROM {table} WHERE tenant = %s AND model = %s", (self.tenant, model))
        self.run(
            "UPDATE models SET dimensions = %s WHERE tenant = %s AND id = %s",
            (dimensions, self.tenant, model),
        )
        return model, dimensions

    # Adding

    def add(self, entries: Sequence[Entry]) -> tuple[Outcome, ...]:
        """Puts new memories in, all in a few statements. What is known or was purged is left out and said so."""
        if not entries:
            return ()
        purged = (
            set()
            if self.batch.allow_purged
            else self.tombstoned({entry.memory.content_hash for entry in entries})
        )
        scopes = {
            key: self.scope(key) for key in dict.fromkeys(entry.memory.scope for entry in entries)
        }
        heard = self.new_turns(entries, scopes, purged)
        known = self.living(
            {
                (scopes[entry.memory.scope], entry.memory.content_hash)
                for entry in entries
                if entry.unique
            }
        )
        outcomes: list[Outcome] = []
        chosen: list[tuple[int, Entry]] = []
        for entry in entries:
            memory, scope = entry.memory, scopes[entry.memory.scope]
            if memory.content_hash in purged:
                self.refused.add(cache_key(vector_text(memory.section, memory.content)))
                outcomes.append(Outcome(id="", status="purged"))
                continue
            if entry.turn is not None and (scope, entry.turn) not in heard:
                outcomes.append(Outcome(id="", status="known"))
                continue
            heard.discard((scope, entry.turn or b""))
            twin = known.get((scope, memory.content_hash)) if entry.unique else None
            if twin:
                outcomes.append(
                    Outcome(id=twin, status="duplicate", duplicate_of=twin, similarity=1.0)
                )
                continue
            if entry.unique and memory.deleted_at is None:
                known[scope, memory.content_hash] = memory.id
            chosen.append((self.number(), entry))
            outcomes.append(Outcome(id=memory.id, status="added"))
        self.place_all(chosen, scopes)
        self.told("add", *(entry.memory.id for _, entry in chosen))
        return tuple(outcomes)

    def place_all(self, chosen: Sequence[tuple[int, Entry]], scopes: Mapping[str, int]) -> None:
        """New memories with their numbers, into every place where they stand."""
        memories, words = [], []
        self.sources(
            (scopes[one.memory.scope], one.memory.source, one.memory.source_type)
            for _, one in chosen
        )
        for key, entry in chosen:
            memory, scope = entry.memory, scopes[entry.memory.scope]
            source = self.source(scope, memory.source, memory.source_type)
            tags = index_tags(memory.tags, memory.source, memory.source_type)
            worded = self.worded(scope, memory.content, memory.summary, memory.section, tags)
            memories.append(self.row(memory, key, scope, source, entry.unique, worded))
            words.append({"tenant": 0, "key": key, "lexed": worded.lexed})
        with self.connection.pipeline():  # what needs no answer waits for none
            self.put("memories", memories)
            self.put("words", words)
            self.entities([(key, entry.memory.entities) for key, entry in chosen])
            self.vectors(
                [(key, scopes[entry.memory.scope], entry.vectors) for key, entry in chosen]
            )
            self.record(
                [(key, self.owner(entry.memory.scope), "add", None, None) for key, entry in chosen]
            )

    def row(
        self, memory: Memory, key: int, scope: int, source: int, unique: bool, worded: Worded
    ) -> dict[str, Any]:
        values = rows.values(memory, scope, source)
        values |= {
            "row_hash": rows.row_hash(values),
            "dedup": own.dedup(memory.content_hash) if unique else None,
        }
        values |= {name: own.inward(values[name]) for name in own.TEXTS}
        return {
            "tenant": 0,
            "key": key,
            "owner": self.owner(memory.scope),
            "length": worded.length,
            "lexemes": worded.lexemes,
            **values,
        }

    def worded(
        self, scope: int, content: str, summary: str, section: str | None, tags: str
    ) -> Worded:
        """The words of a memory, counted into its scope."""
        worded = Worded.of(mark(self.tenant, scope), content, summary, section, tags)
        self.count(scope, worded.lexemes, worded.length, +1)
        return worded

    def unindex(self, keys: Sequence[int]) -> None:
        """Takes memories out of the word index and out of the counts."""
        found = self.run(
            "DELETE FROM words w USING memories m WHERE w.tenant = %s AND w.key = ANY(%s) AND m.tenant = w.tenant AND m.key = w.key"
            " RETURNING m.scope, m.lexemes, m.length",
            (self.tenant, list(keys)),
        ).fetchall()
        for scope, blob, length in found:
            self.count(scope, blob, length, -1)

    def count(self, scope: int, blob: bytes, length: int, sign: int) -> None:
        for hash in lexemes.unpack(blob):
            self.counts[scope, hash] += sign
        self.scope_memories[scope] += sign
        self.scope_words[scope] += sign * length

    def entities(self, named: Sequence[tuple[int, Sequence[Entity]]]) -> None:
        wanted = {
            (entity.name.casefold(), entity.type): entity.name
            for _, entities in reversed(named)
            for entity in reversed(entities)
        }
        if not wanted:
            return
        folded, types = [name for name, _ in wanted], [type for _, type in wanted]
        find = (
            "SELECT e.folded, e.type, e.id FROM unnest(%s::text[], %s::text[]) AS u(folded, type)"
            " JOIN entities e ON e.tenant = %s AND md5(e.folded) = md5(u.folded) AND e.type = u.type"
        )
        known = {
            (name, type): id for name, type, id in self.run(find, (folded, types, self.tenant))
        }
        fresh = [(pair, self.number()) for pair in wanted if pair not in known]
        self.put(
            "entities",
            [
                {"tenant": 0, "id": id, "name": wanted[pair], "folded": pair[0], "type": pair[1]}
                for pair, id in fresh
            ],
        )
        known.update(fresh)
        pairs = {
            (key, known[entity.name.casefold(), entity.type])
            for key, entities in named
            for entity in entities
        }
        self.put(
            "memory_entities",
            [{"tenant": 0, "memory": key, "entity": id} for key, id in sorted(pairs)],
            "ON CONFLICT DO NOTHING",
        )

    def vectors(
        self,
        given: Sequence[tuple[int, int, Sequence[Any]]],
        table: str = "vectors",
        owner: str = "memory",
    ) -> None:
        """(key, scope, vectors) of memories or topics, of the batch's model."""
        if self.batch.model is None:
            return
        from bethink.store.scan import encode

        stored = []
        for key, scope, vectors in given:
            for part, vector in enumerate(vectors):
                model = self.model(self.batch.model, len(vectors[0]))
                stored.append((key, scope, model, part, encode(vector)))
        self.put_vectors(stored, table, owner)

    def put_vectors(
        self,
        stored: Iterable[tuple[int, int, int, int, bytes]],
        table: str = "vectors",
        owner: str = "memory",
    ) -> None:
        """(key, scope, model, part, bytes as SQLite keeps them)."""
        import numpy as np

        from bethink.store.scan import decode

        given = []
        for key, scope, model, part, data in stored:
            values = decode(data)
            size = dict(self.model_ids.values()).get(model, len(values))
            if len(values) != size:
                raise InvalidInput(
                    f"A vector of {len(values)} dimensions came for a model of {size}.",
                    "Nothing was stored.",
                )
            if not np.isfinite(values).all():
                raise InvalidInput(
                    "A vector holds something that is no number.",
                    "Check the embedding model; nothing was stored.",
                )
            given.append(
                {
                    "tenant": 0,
                    owner: key,
                    "model": model,
                    "scope": scope,
                    "part": part,
                    "dimensions": len(values),
                    "scale": float(np.frombuffer(data, np.float32, 1)[0]),
                    "data": own.vector_text(values),
                }
            )
            if table == "vectors":
                self.total(model, scope, values, +1)
        self.put(table, given)

    def total(self, model: int, scope: int, values: Any, sign: int) -> None:
        import numpy as np

        count, total = self.totals.get((model, scope), (0, 0.0))
        self.totals[model, scope] = count + sign, total + sign * np.asarray(values, np.float64)

    def drop_vectors(self, keys: Sequence[int], model: int | None = None) -> None:
        import numpy as np

        found = self.run(
            "DELETE FROM vectors WHERE tenant = %s AND memory = ANY(%s) AND (%s::bigint IS NULL OR model = %s::bigint) RETURNING model, scope, vector_send(data)",
            (self.tenant, list(keys), model, model),
        ).fetchall()
        for number, scope, data in found:
            self.total(number, scope, np.frombuffer(data, ">f4", offset=4), -1)

    def record(
        self, events: Sequence[tuple[int, str, str, dict[str, Any] | None, dict[str, Any] | None]]
    ) -> None:
        """(memory, owner, action, before, after) into history."""
        self.put(
            "history",
            [
                {
                    "tenant": 0,
                    "number": self.number(),
                    "memory": key,
                    "owner": owner,
                    "at": self.at,
                    "actor": self.actor,
                    "action": action,
                    "before": None if before is None else json.dumps(before, ensure_ascii=False),
                    "after": None if after is None else json.dumps(after, ensure_ascii=False),
                }
                for key, owner, action, before, after in events
            ],
        )

    # What is known already

    def new_turns(
        self, entries: Sequence[Entry], scopes: Mapping[str, int], purged: set[str]
    ) -> set[tuple[int, bytes]]:
        """The messages that were never taken in, now noted as taken in."""
        given = {
            (scopes[entry.memory.scope], entry.turn)
            for entry in entries
            if entry.turn is not None and entry.memory.content_hash not in purged
        }
        if not given:
            return set()
        cursor = self.put(
            "turns",
            [{"tenant": 0, "scope": scope, "identity": turn} for scope, turn in given],
            "ON CONFLICT DO NOTHING RETURNING scope, identity",
        )
        return {(scope, bytes(turn)) for scope, turn in cursor.fetchall()} if cursor else set()

    def living(self, wanted: set[tuple[int, str]]) -> dict[tuple[int, str], str]:
        """(scope, content hash) → id of the memory that says it already."""
        if not wanted:
            return {}
        found = self.run(
            "SELECT m.scope, m.content_hash, m.id FROM unnest(%s::bigint[], %s::bytea[]) AS u(scope, dedup) JOIN memories m"
            " ON m.tenant = %s AND m.scope = u.scope AND m.dedup = u.dedup AND m.deleted_at IS NULL",
            ([scope for scope, _ in wanted], [own.dedup(hash) for _, hash in wanted], self.tenant),
        )
        return {(scope, hash): id for scope, hash, id in found}

    def tombstone(self, content_hash: str) -> bytes:
        # Salted by the tenant's own secret: a bare hash of a short text could be guessed.
        return blake2b(content_hash.encode(), key=self.salt, digest_size=16).digest()

    def tombstoned(self, hashes: set[str]) -> set[str]:
        marks = {self.tombstone(hash): hash for hash in hashes}
        found = self.run(
            "SELECT hash FROM tombstones WHERE tenant = %s AND hash = ANY(%s)",
            (self.tenant, list(marks)),
        )
        return {marks[bytes(row[0])] for row in found}

    # Derived numbers

    def uncache(self, texts: set[str], sections: set[str | None]) -> None:
        """Takes out the vectors that are kept for texts, under each heading that they may have been embedded with."""
        keys = {
            cache_key(vector_text(section, text)) for text in texts for section in (*sections, None)
        }
        self.run(
            "DELETE FROM embedding_cache WHERE tenant = %s AND hash = ANY(%s)",
            (self.tenant, list(keys)),
        )

    def settle(self) -> None:
        """Word counts, sums of vectors and the numbers given out. The last thing before the audit trail."""
        changes = sorted(
            (scope, hash, change) for (scope, hash), change in self.counts.items() if change
        )
        with self.connection.pipeline():
            self.put(
                "lexeme_counts",
                [
                    {"tenant": 0, "scope": scope, "hash": hash, "memories": change}
                    for scope, hash, change in changes
                ],
                "ON CONFLICT (tenant, scope, hash) DO UPDATE SET memories = lexeme_counts.memories + excluded.memories",
            )
            for scope in self.scope_memories:
                self.run(
                    "UPDATE scopes SET memories = memories + %s, words = words + %s WHERE tenant = %s AND id = %s",
                    (self.scope_memories[scope], self.scope_words[scope], self.tenant, scope),
                )
            for (model, scope), (count, total) in self.totals.items():
                self.run(
                    "INSERT INTO vector_totals(tenant, model, scope, vectors, total) VALUES (%s, %s, %s, %s, %s::vector)"
                    " ON CONFLICT (tenant, model, scope) DO UPDATE SET vectors = vector_totals.vectors + excluded.vectors,"
                    " total = vector_totals.total + excluded.total",
                    (self.tenant, model, scope, count, own.vector_text(total)),
                )
            if any(change < 0 for _, _, change in changes):
                self.run(
                    "DELETE FROM lexeme_counts WHERE tenant = %s AND memories <= 0 AND scope = ANY(%s)",
                    (self.tenant, list({one[0] for one in changes})),
                )
            if any(count < 0 for count, _ in self.totals.values()):
                self.run(
                    "DELETE FROM vector_totals WHERE tenant = %s AND vectors <= 0", (self.tenant,)
                )
            if self.last != self.given:
                self.run("UPDATE tenants SET last = %s WHERE id = %s", (self.last, self.tenant))

    def seal(self, name: str) -> None:
        """One line in the audit trail, under the name of this write."""
        if self.did:
            self.run(
                "INSERT INTO audit(tenant, number, at, person, actor, mark, changes, hash) VALUES (%s, 0, now(), '', %s, %s, %s, '')",
                (self.tenant, self.actor, name, json.dumps(self.did, ensure_ascii=True)),
            )

    def landed(self, name: str, after: int) -> bool:
        """Whether a write of this name went in, which found the audit trail at this number. (The try itself holds the tenant, so one that
        is still on its way in is waited for; and its commit waits for a standby, so what is seen here is there as well.)"""
        return bool(
            self.one(
                "SELECT 1 FROM audit WHERE tenant = %s AND number > %s AND mark = %s",
                (self.tenant, after, name),
            )
        )


def gone() -> StoreError:
    return StoreError(
        "This tenant does not exist any more; nothing was changed.",
        "Ask who runs the database, or set another `tenant`.",
    )
