"""Every table that stores part of a memory, for both databases.

These are its row, the word index, the word counts of its scope, its vectors, entities, history and
relations. A memory is added to all of them or removed from all of them, here and nowhere else.

`Places` is one write in progress, inside a transaction that the caller opens and commits. `rules`
decides what a write may do. The methods at the end differ between databases; `sqlite` and
`postgres` implement them.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from bethink.errors import InvalidInput
from bethink.model import (
    FILES,
    NOTHING,
    Batch,
    Entity,
    Event,
    Memory,
    Passage,
    Relation,
    Source,
    Span,
    path_of,
)
from bethink.store import rows
from bethink.store.rows import Keys, Reader, Record, Row, Stored, to_row, within
from bethink.store.words import pack, prepare, tokenize, unpack
from bethink.text import hash_text, sha256

# Keys in `meta`: answers for requests that come again.
ANSWER_NOTES, ANSWER_NOTES_END = "note:answer:", "note:answer;"
EMBEDDING_TEXT = (
    "embedding_text"  # key in a memory's metadata: text to embed instead of its content
)
OFTEN = frozenset("turns relations memory_entities tombstones embedding_cache".split())


def content_hash(text: str) -> str:
    """Identity of a text: line endings and outer white space do not count."""
    return sha256(text.replace("\r\n", "\n").strip().encode("utf-8", "replace")).hexdigest()


def turn_identity(host: str, id: str) -> bytes:
    """Identity of a message, the same in every transcript that repeats it."""
    return hash_text(f"{host}\0{id}")


def vector_text(section: str | None, content: str, metadata: str | Row) -> str:
    """Text to embed for a memory: its `embedding_text`, or its content below its heading.

    The heading helps to find a passage by its topic. `metadata` may be the stored JSON.
    """
    if isinstance(metadata, str):
        metadata = json.loads(metadata) if EMBEDDING_TEXT in metadata else NOTHING
    own = metadata.get(EMBEDDING_TEXT)
    if isinstance(own, str) and own.strip():
        return own
    return f"{section}\n{content}" if section else content


def embedded_text(one: Memory | Passage) -> str:
    return vector_text(one.section, one.content, one.metadata)


def topic_text(name: str, summary: str) -> str:
    """Text to embed for a topic."""
    return f"{name}\n{summary}"


def index_tags(tags: Sequence[str], uri: str, type: str) -> str:
    """Searchable words of a memory's tags, plus the path of a document or source file.

    The path of a transcript carries no information.
    """
    return " ".join([*tags, path_of(uri)] if type in FILES else tags)


class Texts(NamedTuple):
    """Indexed columns of a memory (content, summary, section, tags) or a topic (name, summary).

    They are prepared by `words.prepare`.
    """

    key: int
    scope: int
    columns: tuple[str, ...]

    def count_words(self) -> dict[str, Any]:
        """Word columns for the row of a memory. The summary is skipped: it repeats the content."""
        counted = (*self.columns[:1], *self.columns[2:])
        words = [word for text in counted for word in tokenize(text, prepared=True)]
        return {"length": len(words), "lexemes": pack(words)}


class Index(NamedTuple):
    """Tables of the vectors and words of memories, or of topics."""

    table: str  # table of vectors
    owner: str  # column with the key of the memory or topic
    words: str


MEMORIES = Index("vectors", "memory", "words")
TOPICS = Index("span_vectors", "span", "span_words")
# Key of the memory or topic, scope, model, encoded vector, and in the first of a text its hash
Window = tuple[int, int, int, bytes, bytes | None]
Owned = tuple[
    int, int, Stored, str
]  # key of the memory or topic, scope, vectors, the text they are made of


class Places(Reader):
    """Write in progress, with its changes to the statistics."""

    entity_scope = "scope"  # column with the scope of an entity

    def __init__(self, batch: Batch, actor: str) -> None:
        self.batch, self.actor = batch, actor
        self.at = rows.stamp(batch.at)
        self.counts: Counter[tuple[int, int]] = Counter()  # (scope, hash of a word) → memories
        self.scope_ids: dict[str, int] = {}
        self.source_ids: dict[tuple[int, str], int] = {}
        self.model_ids: dict[str, tuple[int, int]] = {}
        self.refused: set[bytes] = set()  # cache keys of purged texts: their vectors are not kept
        self.owned: set[bytes] = (
            set()
        )  # cache keys of texts whose vectors a memory or topic has now

    def one(self, sql: str, *values: object) -> Any:
        found = self.run(sql, *values)
        return found[0] if found else None

    def update(self, table: str, values: Row, key: str, id: object) -> None:
        """Set columns of one row."""
        names = ", ".join(f"{name} = ?" for name in values)
        self.run(f"UPDATE {table} SET {names} WHERE {key} = ?", *values.values(), id)

    # What a memory belongs to

    def scope(self, key: str) -> int:
        if key not in self.scope_ids:
            name, path = self.batch.scopes.get(key, ("", ""))
            known = self.one("SELECT id, name, path FROM scopes WHERE key = ?", key)
            id, *called = known or (self.new_scope(key, name, path), name, path)
            new = [name or called[0], path or called[1]]
            if new != called:
                self.run("UPDATE scopes SET name = ?, path = ? WHERE id = ?", *new, id)
            self.scope_ids[key] = id
        return self.scope_ids[key]

    def find_source(self, scope: str, uri: str, what: str = "id") -> int | None:
        """Return a column of a source: its number, or how far it was read."""
        sql = f"SELECT o.{what} FROM sources o JOIN scopes s ON s.id = o.scope WHERE s.key = ? AND o.uri = ?"
        return next(iter(self.column(sql, scope, uri)), None)

    def source(self, scope: int, uri: str, type: str) -> int:
        """Return the number of a source, which is created if necessary."""
        if (scope, uri) not in self.source_ids:
            known = self.column("SELECT id FROM sources WHERE scope = ? AND uri = ?", scope, uri)
            fresh = known or [self.put_source(scope, Source(uri, type), self.at)]
            self.source_ids[scope, uri] = fresh[0]
        return self.source_ids[scope, uri]

    def put_source(self, scope: int, source: Source, at: int) -> int:
        """Store how a source was read. Returns the number that it gets if it is new."""
        id = self.number("sources")
        row = to_row(source, id=id, scope=scope, read_at=at)
        self.put("sources", [row], key="scope, uri")
        return id

    def model(self, name: str, dimensions: int) -> int:
        if name not in self.model_ids:
            known = self.one("SELECT id, dimensions FROM models WHERE name = ?", name)
            if known is None:
                known = (self.number("models"), dimensions)
                self.put("models", [{"id": known[0], "name": name, "dimensions": dimensions}])
            elif known[1] != dimensions and not self.one(
                "SELECT 1 FROM vectors WHERE model = ? LIMIT 1", known[0]
            ):
                # A model without vectors of memories may come back with another size under the same name.
                for table in ("span_vectors", "embedding_cache"):
                    self.run(f"DELETE FROM {table} WHERE model = ?", known[0])
                self.run("UPDATE models SET dimensions = ? WHERE id = ?", dimensions, known[0])
                known = (known[0], dimensions)
            self.model_ids[name] = known
        id, size = self.model_ids[name]
        if size != dimensions:
            raise InvalidInput(
                f"The model {name} makes vectors of {size} dimensions here, not of {dimensions}.",
                "`bethink reindex` after a change of model.",
            )
        return id

    # The rows of memories, with their words and names

    def put_records(self, records: Sequence[tuple[int, int, Record]]) -> None:
        """Insert new memories (key, scope, record) with their words, entities, vectors and history."""
        new, texts = [], []
        for key, scope, (memory, unique, _, _) in records:
            tags = index_tags(memory.tags, memory.source, memory.source_type)
            columns = (memory.content, memory.summary, memory.section or "", tags)
            text = Texts(key, scope, tuple(map(prepare, columns)))
            source = self.source(scope, memory.source, memory.source_type)
            own = {"key": key, "scope": scope, "source": source}
            dedup = memory.content_hash if unique else None
            row = to_row(memory, dedup=dedup, **own, **text.count_words())
            new.append(row | {"row_hash": rows.row_hash(row)})
            texts.append(text)
            self._count(scope, row["lexemes"], +1)
        self.put("memories", new)
        self.index_words(MEMORIES, texts)
        self.entities([(key, scope, one.memory.entities) for key, scope, one in records])
        self.put_vectors(
            MEMORIES,
            [(key, scope, one.vectors, embedded_text(one.memory)) for key, scope, one in records],
        )
        self.put_events(
            [(key, scope, event) for key, scope, one in records for event in one.events]
        )

    def index(self, which: Index, keys: Keys) -> None:
        """Index the words of existing memories or topics."""
        texts = self.texts(which, keys)
        self.index_words(which, texts)
        for text in texts if which is MEMORIES else ():
            counted = text.count_words()
            self.update("memories", counted, "key", text.key)
            self._count(text.scope, counted["lexemes"], +1)

    def unindex(self, which: Index, keys: Keys) -> None:
        """Remove memories or topics from the word index, and memories from the word counts.

        Call this before their texts, tags or source change: an index may need the old words.
        """
        self.drop_words(which, keys)
        if which is MEMORIES:
            sql = "SELECT scope, lexemes FROM memories WHERE key = ANY(?)"
            for scope, packed in self.run(sql, keys):
                self._count(scope, packed, -1)

    def _count(self, scope: int, packed: bytes, sign: int) -> None:
        for hash in unpack(packed):
            self.counts[scope, hash] += sign

    def entities(self, named: Sequence[tuple[int, int, Sequence[Entity]]]) -> None:
        """Store the entities of memories: (key, scope, entities)."""
        wanted = [
            (key, scope, entity, (self.shelf(scope), entity.name.casefold(), entity.type))
            for key, scope, entities in named
            for entity in entities
        ]
        if not wanted:
            return
        sql = f"SELECT {self.entity_scope}, folded, type, id FROM entities WHERE folded = ANY(?)"
        found = self.run(sql, {folded for *_, (_, folded, _) in wanted})
        known = {tuple(place): id for *place, id in found}
        fresh = []
        for _, _, entity, place in wanted:
            if place not in known:
                known[place] = self.number("entities")
                fresh.append(to_row(entity, id=known[place], scope=place[0], folded=place[1]))
        self.put("entities", fresh)
        links = [
            {"memory": key, "scope": scope, "entity": known[place]}
            for key, scope, _, place in wanted
        ]
        self.put("memory_entities", links)

    def encode(self, vectors: Sequence[Any]) -> Stored:
        """Encode vectors of the batch's model for storage."""
        model = self.batch.model
        if model is None or not len(vectors):
            return ()
        from bethink.store.vectors import encode

        return tuple((model, len(vector), encode(vector)) for vector in vectors)

    def put_vectors(self, which: Index, owned: Sequence[Owned]) -> None:
        """Store the vectors of memories or topics, by the text they are made of."""
        windows: list[Window] = []
        for key, scope, stored, text in owned:
            hash = hash_text(text) if stored else b""
            self.owned.add(hash)
            models = set[str]()
            for model, dimensions, data in stored:
                if len(data) != 4 + 2 * dimensions:
                    raise InvalidInput(
                        f"A vector of {model} has {len(data)} bytes, not those of {dimensions} dimensions.",
                        "Nothing was stored.",
                    )
                first = None if model in models else hash
                models.add(model)
                windows.append((key, scope, self.model(model, dimensions), data, first))
        if windows:
            self.put_windows(which, windows)

    def drop_vectors(self, which: Index, keys: Keys, model: int | None = None) -> None:
        """Delete the vectors of memories or topics: all, or those of one model."""
        some = "" if model is None else f" AND model = {model}"
        self.run(f"DELETE FROM {which.table} WHERE {which.owner} = ANY(?){some}", keys)

    def put_events(self, events: Sequence[tuple[int, int, Event]]) -> None:
        """Append events to the history: (memory, scope, event)."""
        history = [
            to_row(event, number=self.number("history"), memory=key, scope=scope)
            | {name: None for name in ("before", "after") if not getattr(event, name)}
            for key, scope, event in events
        ]
        self.put("history", history)

    def put_relations(self, relations: Sequence[tuple[Relation, int, str]]) -> None:
        """Store relations: (relation, time, actor). Existing ones stay as they are."""
        if not relations:
            return
        ends = {end for one, _, _ in relations for end in one[:2]}
        found = self.run("SELECT id, scope FROM memories WHERE id = ANY(?)", ends)
        shelves = {id: self.shelf(scope) for id, scope in found}
        made = []
        for one, at, actor in relations:
            scope = min(shelves.get(end, 0) for end in one[:2])
            made.append(to_row(one, scope=scope, created_at=at, actor=actor))
        self.put("relations", made)

    def texts(self, which: Index, keys: Keys) -> list[Texts]:
        """Read the indexed columns of memories or topics from their current rows."""
        if which is TOPICS:
            found = self.run("SELECT key, scope, name, summary FROM spans WHERE key = ANY(?)", keys)
        else:
            found = [
                (*columns, section or "", index_tags(json.loads(tags), uri, type))
                for *columns, section, tags, uri, type in self.run(
                    f"SELECT m.key, m.scope, m.content, m.summary, m.section, m.tags, o.uri, {rows.SOURCE_TYPE}"
                    " FROM memories m JOIN sources o ON o.id = m.source WHERE m.key = ANY(?)",
                    keys,
                )
            ]
        return [Texts(key, scope, tuple(map(prepare, columns))) for key, scope, *columns in found]

    def put_spans(self, spans: Sequence[tuple[Span, Stored]]) -> None:
        """Insert topics, or update known ones."""
        latest = {span.id: (span, self.scope(span.scope), vectors) for span, vectors in spans}
        if not latest:
            return
        known = dict(self.run("SELECT id, key FROM spans WHERE id = ANY(?)", latest))
        self.unindex(TOPICS, known.values())
        self.drop_vectors(TOPICS, known.values())
        keys = {id: known.get(id) or self.number("spans") for id in latest}
        updated = [
            to_row(span, key=keys[span.id], scope=scope) for span, scope, _ in latest.values()
        ]
        self.put("spans", updated, key="id")
        self.index(TOPICS, keys.values())
        fresh = [
            (keys[id], scope, vectors, topic_text(span.name, span.summary))
            for id, (span, scope, vectors) in latest.items()
        ]
        self.put_vectors(TOPICS, fresh)
        self.audit("topic", *latest)

    def remove(self, keys: Keys) -> None:
        """Delete memories from every table except the relations, without a trace in history."""
        if not keys:
            return
        self.unindex(MEMORIES, keys)
        self.drop_vectors(MEMORIES, keys)
        self.run("DELETE FROM memory_entities WHERE memory = ANY(?)", keys)
        self.run("DELETE FROM memories WHERE key = ANY(?)", keys)
        self.drop_history(keys)

    # What is known already

    def salt(self) -> str:
        """Secret of this database's tombstones, created on first use."""
        known = self.column("SELECT value FROM meta WHERE key = 'salt'")
        if not known:
            known = [os.urandom(16).hex()]
            self.put("meta", [{"scope": 0, "key": "salt", "value": known[0]}])
        return str(known[0])

    def find_refused(self, hashes: Iterable[str]) -> set[str]:
        """Return those of these content hashes whose text was purged and may not come back."""
        return set() if self.batch.allow_purged else self.find_purged(hashes)

    def note_fact(self, key: str, value: str) -> None:
        self.run("DELETE FROM meta WHERE key = ?", key)
        self.put("meta", [{"scope": self.own_shelf(), "key": key, "value": value}])

    # Derived numbers

    def cache(self) -> None:
        """Cache the vectors that were made for this batch and that nothing in it has taken."""
        new = []
        kept_out = self.refused | self.owned
        for hash, vectors in self.batch.cache.items():
            key, stored = bytes.fromhex(hash), self.encode(vectors)
            if stored and key not in kept_out:
                data = b"".join(data for _, _, data in stored)
                row = {"hash": key, "model": self.model(*stored[0][:2]), "data": data}
                new.append({"scope": self.own_shelf(), **row})
        self.put("embedding_cache", new)

    def cache_removed(self, keys: Keys) -> None:
        """Cache the vectors of passages that leave with their file, which may come back: a branch, a move."""
        text = "(SELECT o.text FROM vectors o WHERE o.memory = v.memory AND o.model = v.model AND o.text IS NOT NULL)"
        sql = f"SELECT {text}, v.model, {self.stored} FROM vectors v WHERE v.memory = ANY(?) ORDER BY v.memory, v.model, {self.order}"
        found: dict[tuple[int, bytes], bytes] = {}
        for hash, model, *stored in self.run(sql, keys):
            if hash is not None:
                place = (model, bytes(hash))
                found[place] = found.get(place, b"") + self.encode_stored(*stored)
        self.put(
            "embedding_cache",
            [
                {"scope": self.own_shelf(), "hash": hash, "model": model, "data": data}
                for (model, hash), data in found.items()
            ],
        )

    def settle(self) -> None:
        """Write the changed word counts; the last step of a write."""
        changes = sorted((place, change) for place, change in self.counts.items() if change)
        counted = [
            {"scope": scope, "hash": hash, "memories": change} for (scope, hash), change in changes
        ]
        self.put("lexeme_counts", counted, key="scope, hash")
        fewer = [place for place, change in changes if change < 0]
        scopes = within("scope", {scope for scope, _ in fewer})
        self.run(
            f"DELETE FROM lexeme_counts WHERE {scopes} AND hash = ANY(?) AND memories <= 0",
            [hash for _, hash in fewer],
        )
        self.counts.clear()

    def rebuild(self) -> int:
        """Rebuild words and counts from the texts: derived data can always be thrown away."""
        self.clear_derived()
        self.run("DELETE FROM vectors WHERE memory NOT IN (SELECT key FROM memories)")
        self.run("DELETE FROM lexeme_counts")
        done, last = 0, 0
        page = "SELECT key FROM memories WHERE key > ? ORDER BY key LIMIT 500"
        while keys := self.column(page, last):
            last, done = keys[-1], done + len(keys)
            self.index(MEMORIES, keys)
        self.index(TOPICS, self.column("SELECT key FROM spans"))
        self.run(
            "UPDATE scopes SET memories = (SELECT count(*) FROM memories WHERE scope = scopes.id),"
            " words = (SELECT coalesce(sum(length), 0) FROM memories WHERE scope = scopes.id)"
        )
        self.settle()
        return done

    # Methods that differ between databases. Those with a body here are for SQLite; PostgreSQL overrides them.

    def put(self, table: str, new: Sequence[Row], key: str = "") -> None:
        """Insert rows.

        In the tables of OFTEN an existing row stays as it is. With the columns of a `key`, a row
        with the same key is updated, as described in `rows.on_conflict`.
        """
        raise NotImplementedError

    def number(self, table: str) -> int:
        """Return the number of the next row of a table. Numbers are never reused."""
        raise NotImplementedError

    def new_scope(self, key: str, name: str, path: str) -> int:
        id = self.number("scopes")
        self.put("scopes", [{"id": id, "key": key, "name": name, "path": path}])
        return id

    def shelf(self, scope: int) -> int:
        """Scope to store entities and relations of a memory under if others must not see them, else 0."""
        return 0

    def own_shelf(self) -> int:
        """Scope to store data of the writing person under, else 0."""
        return 0

    def index_words(self, which: Index, texts: Sequence[Texts]) -> None:
        raise NotImplementedError

    def drop_words(self, which: Index, keys: Keys) -> None:
        raise NotImplementedError

    def put_windows(self, which: Index, windows: Sequence[Window]) -> None:
        names = (which.owner, "scope", "model", "data", "text")
        some = names if which is MEMORIES else names[:-1]
        self.put(which.table, [dict(zip(some, window, strict=False)) for window in windows])

    def clear_derived(self) -> None:
        """Empty the word indexes, and delete vectors that are damaged."""
        raise NotImplementedError

    def drop_history(self, keys: Keys | None) -> None:
        """Delete the history of these memories, or of all memories that no longer exist."""
        if keys is None:
            self.run("DELETE FROM history WHERE memory NOT IN (SELECT key FROM memories)")
        else:
            self.run("DELETE FROM history WHERE memory = ANY(?)", keys)

    def expunge(self, hashes: Sequence[bytes]) -> None:
        """Delete the cached vectors under these keys, and every cached answer.

        Any answer may quote the deleted text.
        """
        self.run("DELETE FROM embedding_cache WHERE hash = ANY(?)", hashes)
        self.run("DELETE FROM meta WHERE key >= ? AND key < ?", ANSWER_NOTES, ANSWER_NOTES_END)

    def note_purge(self) -> None:
        """Note that something was purged, so that no page of the file keeps it."""

    def audit(self, action: str, *what: object) -> None:
        """Append a line to the audit trail, if the database keeps one."""
