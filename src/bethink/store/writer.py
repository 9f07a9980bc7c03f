"""Putting a Batch into SQLite. Everything here runs inside one open transaction; nothing here opens or commits one.

Each memory stands in several places: its row, the full-text index, the word counts of its scope, its vectors, its
entities and its history. They are changed together, here and nowhere else.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import blake2b, sha256
from itertools import chain
from typing import Any, NamedTuple

import apsw

from bethink.errors import InvalidInput, NotFound, Overtaken
from bethink.store import leaving, lexemes, rows, spans
from bethink.store.bundle import receipt_of, receipt_text, valid_before
from bethink.types import Batch, Change, Entity, Entry, Memory, Outcome, Receipt, path_of

FTS = "INSERT INTO memories_fts(rowid, content, summary, section, tags, scope) VALUES (?, ?, ?, ?, ?, ?)"
UNFTS = (
    "INSERT INTO memories_fts(memories_fts, rowid, content, summary, section, tags, scope)"
    " VALUES ('delete', ?, ?, ?, ?, ?, ?)"
)
ONCE, ONCE_KEPT = "once:", 90 * 24 * 3600 * 1000  # among the facts about the database; milliseconds
ANSWERS = (
    "note:answer:",
    "note:answer;",
)  # from where to where they stand there: answers kept for requests that may come again
REMOVALS_KEPT = 100_000  # a scanner further behind than this reads its vectors anew


def scope_token(scope: int) -> str:
    """The word under which the full-text index knows a scope. Digits at its end keep the stemmer away."""
    return f"zq{scope}"


def cache_key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def content_hash(text: str) -> str:
    """Identity of a text: line endings and outer white space do not count."""
    return sha256(text.replace("\r\n", "\n").strip().encode("utf-8", "replace")).hexdigest()


def vector_text(section: str | None, content: str) -> str:
    """What is embedded for a memory: its heading helps a passage to be found by what it is about."""
    return f"{section}\n{content}" if section else content


def index_tags(tags: Sequence[str], uri: str, type: str) -> str:
    """Tags are searchable words, and so is the path of a document or source file. A transcript's path says nothing."""
    return " ".join(
        (*tags, *((path_of(uri),) if type in ("markdown", "repomap", "analysis") else ()))
    )


def circle(old: str, new: str) -> InvalidInput:
    return InvalidInput(
        f"{old} already replaces {new}; replacing it back would make a circle.",
        f"bethink restore {new}",
    )


def refuse_purged(text: str, states: Iterable[Sequence[Mapping[str, Any]]]) -> None:
    """A purged text does not come back by an edit, unless the memory said it before: then it was let in."""
    if all(text != state.get("content") for both in states for state in both):
        raise InvalidInput(
            "This text was purged, so it is not taken in again.",
            "`bethink add --force` remembers it all the same.",
        )


@cache
def _insert(names: tuple[str, ...]) -> str:
    return f"INSERT INTO memories({', '.join(names)}) VALUES ({', '.join(':' + name for name in names)})"


class Worded(NamedTuple):
    """A memory's texts as the index takes them, and the words in them."""

    columns: tuple[str, str, str, str]  # content, summary, section, tags
    lexemes: bytes
    length: int

    @classmethod
    def of(cls, content: str, summary: str, section: str | None, tags: str) -> Worded:
        texts = [lexemes.prepare(content), lexemes.prepare(section or ""), lexemes.prepare(tags)]
        words = [word for text in texts if text for word in lexemes.tokenize(text, prepared=True)]
        return cls(
            (texts[0], lexemes.prepare(summary), texts[1], texts[2]),
            lexemes.pack(words),
            len(words),
        )


class Writer:
    """One batch on its way in. Holds the open transaction's connection and what the batch changes in the statistics."""

    def __init__(self, connection: apsw.Connection, batch: Batch) -> None:
        self.connection = connection
        self.run = connection.execute
        self.many = connection.executemany
        self.batch = batch
        self.at = rows.stamp(batch.at)
        self.counted: defaultdict[tuple[int, int], list[memoryview]] = defaultdict(
            list
        )  # scope and sign → words of each memory
        self.scope_memories: Counter[int] = Counter()
        self.scope_words: Counter[int] = Counter()
        self.scope_ids: dict[str, int] = {}
        self.entity_ids: dict[tuple[str, str], int] = {}
        self.source_ids: dict[tuple[int, str], int] = {}
        self.model_ids: dict[str, int] = {}
        self.refused: set[bytes] = (
            set()
        )  # keys of texts that were purged: their vectors are not kept either

    def apply(self) -> Receipt:
        if self.batch.once and (
            done := self.run("SELECT value FROM meta WHERE key = ?", (ONCE + self.batch.once,)).get
        ):
            return receipt_of(done)
        receipt = self.applied()
        if self.batch.once:
            self.keep(receipt)
        return receipt

    def applied(self) -> Receipt:
        batch = self.batch
        for scope, uri, position in batch.expect:
            self.expect(scope, uri, position)
        for id, was in batch.unchanged:
            if self.run("SELECT updated_at FROM memories WHERE id = ?", (id,)).get != rows.stamp(
                was
            ):
                raise Overtaken(
                    f"The memory {id} was changed by another process.",
                    "Read it again, and change what it says now.",
                )
        for scope, old, new in batch.move:
            self.move(self.scope(scope), old, new)
        for scope, source in batch.sources:
            self.source(self.scope(scope), source.uri, source.type, source)
        retired = sum(leaving.retire(self, scope, uri) for scope, uri in batch.retire)
        retired += sum(leaving.vanish(self, scope, uri) for scope, uri in batch.vanish)
        for id, lines, position in batch.place:
            self.place(id, lines, position)
        for session in batch.sessions:
            spans.put_session(self, session)
        for span, vectors in batch.spans:
            spans.put_span(self, span, vectors)
        outcomes = tuple(self.add(entry) for entry in batch.add)
        # What was not stored after all, being known or purged, neither replaces nor relates to anything.
        absent = {
            entry.memory.id
            for entry, outcome in zip(batch.add, outcomes, strict=True)
            if outcome.status != "added"
        }
        changes = [
            change for change in batch.change if change.fields.get("superseded_by") not in absent
        ]
        for change in changes:
            self.change(change)
        for relation in batch.relate:
            if relation.source in absent or relation.target in absent:
                continue
            self.run(
                "INSERT OR IGNORE INTO relations(source, target, type, created_at, actor) VALUES (?, ?, ?, ?, ?)",
                (relation.source, relation.target, relation.type, self.at, batch.actor),
            )
        for relation in batch.unrelate:
            self.run(
                "DELETE FROM relations WHERE source = ? AND target = ? AND type = ?",
                (relation.source, relation.target, relation.type),
            )
        self.many(
            "UPDATE memories SET access_count = access_count + 1, last_accessed = ? WHERE id = ?",
            ((self.at, id) for id in batch.access),
        )
        for id, vectors in batch.vectors.items():
            self.revector(id, vectors)
        for id, vectors in batch.span_vectors.items():
            spans.revector(self, id, vectors)
        purged = sum(leaving.purge(self, id) for id in batch.purge)
        self.cache()
        self.settle()
        return Receipt(outcomes=outcomes, changed=len(changes), retired=retired, purged=purged)

    def keep(self, receipt: Receipt) -> None:
        """Notes what became of a write that may come again, and now and then drops notes that are too old for that."""
        self.run(
            "INSERT INTO meta(key, value) VALUES (?, ?)",
            (ONCE + self.batch.once, receipt_text(receipt, self.at or 0)),
        )
        if cache_key(self.batch.once)[0] % 64 == 0:
            for first, last in ((ONCE, "once;"), ANSWERS):
                self.run(
                    "DELETE FROM meta WHERE key >= ? AND key < ? AND json_extract(value, '$.at') < ?",
                    (first, last, (self.at or 0) - ONCE_KEPT),
                )

    # What a memory belongs to

    def expect(self, scope: str, uri: str, position: int) -> None:
        where = "scope = (SELECT id FROM scopes WHERE key = ?) AND uri = ?"
        found = self.run(f"SELECT position FROM sources WHERE {where}", (scope, uri)).get or 0
        if found != position:
            raise Overtaken(
                f"{uri} was read on to {found} by another process.",
                "Nothing is lost; run it again.",
            )

    def scope(self, key: str) -> int:
        if key not in self.scope_ids:
            name, path = self.batch.scopes.get(key, ("", ""))
            known = self.run("SELECT id, name, path FROM scopes WHERE key = ?", (key,)).get
            if known and name in ("", known[1]) and path in ("", known[2]):
                self.scope_ids[key] = known[0]
                return self.scope_ids[key]
            self.run(
                "INSERT INTO scopes(key, name, path) VALUES (?, ?, ?) ON CONFLICT(key) DO UPDATE SET"
                " name = iif(excluded.name = '', name, excluded.name), path = iif(excluded.path = '', path, excluded.path)"
                " WHERE (excluded.name <> '' AND excluded.name <> name) OR (excluded.path <> '' AND excluded.path <> path)",
                (key, name, path),
            )
            self.scope_ids[key] = self.run("SELECT id FROM scopes WHERE key = ?", (key,)).get
        return self.scope_ids[key]

    def source(self, scope: int, uri: str, type: str, source: Any = None) -> int:
        if source is not None:
            self.run(
                "INSERT INTO sources(scope, uri, type, hash, position, read_at, metadata) VALUES (?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT(scope, uri) DO UPDATE SET type = excluded.type, hash = excluded.hash, position = excluded.position,"
                " read_at = excluded.read_at, metadata = excluded.metadata",
                (
                    scope,
                    uri,
                    type,
                    source.hash,
                    source.position,
                    self.at,
                    rows.stored("metadata", source.metadata),
                ),
            )
        if (scope, uri) not in self.source_ids:
            known = self.run("SELECT id FROM sources WHERE scope = ? AND uri = ?", (scope, uri)).get
            if known is None:
                self.run(
                    "INSERT INTO sources(scope, uri, type, read_at) VALUES (?, ?, ?, ?)",
                    (scope, uri, type, self.at),
                )
                known = self.connection.last_insert_rowid()
            self.source_ids[scope, uri] = known
        return self.source_ids[scope, uri]

    def model(self, name: str, dimensions: int) -> int:
        if name not in self.model_ids:
            known = self.run("SELECT id FROM models WHERE name = ?", (name,)).get
            if known is None:
                self.run("INSERT INTO models(name, dimensions) VALUES (?, ?)", (name, dimensions))
                known = self.connection.last_insert_rowid()
            self.model_ids[name] = known
        return self.model_ids[name]

    # Adding

    def add(self, entry: Entry) -> Outcome:
        memory = entry.memory
        scope = self.scope(memory.scope)
        if not self.batch.allow_purged and self.tombstoned(memory.content_hash):
            self.refused.add(cache_key(vector_text(memory.section, memory.content)))
            return Outcome(id="", status="purged")
        if entry.turn is not None:
            self.run(
                "INSERT OR IGNORE INTO turns(scope, identity) VALUES (?, ?)", (scope, entry.turn)
            )
            if not self.connection.changes():
                return Outcome(id="", status="known")
        dedup = memory.content_hash if entry.unique else None
        if dedup:
            known = self.run(
                "SELECT id FROM memories WHERE scope = ? AND dedup = ? AND deleted_at IS NULL",
                (scope, dedup),
            ).get
            if known:
                return Outcome(id=known, status="duplicate", duplicate_of=known, similarity=1.0)
        source = self.source(scope, memory.source, memory.source_type)
        worded = Worded.of(
            memory.content,
            memory.summary,
            memory.section,
            index_tags(memory.tags, memory.source, memory.source_type),
        )
        key = self.insert(memory, scope, source, dedup, worded)
        self.index_words(key, scope, worded)
        self.entities(key, memory.entities)
        self.vectors(key, scope, entry.vectors)
        self.record(key, "add", None, None)
        return Outcome(id=memory.id, status="added")

    def insert(
        self, memory: Memory, scope: int, source: int, dedup: str | None, worded: Worded
    ) -> int:
        values = rows.values(memory, scope, source) | {
            "dedup": dedup,
            "length": worded.length,
            "lexemes": worded.lexemes,
        }
        values["row_hash"] = rows.row_hash(values)
        self.run(_insert(tuple(values)), values)
        return self.connection.last_insert_rowid()

    def index(
        self, key: int, scope: int, content: str, summary: str, section: str | None, tags: str
    ) -> None:
        """Makes the words of a row that is there already findable."""
        worded = Worded.of(content, summary, section, tags)
        self.run(
            "UPDATE memories SET length = ?, lexemes = ? WHERE key = ?",
            (worded.length, worded.lexemes, key),
        )
        self.index_words(key, scope, worded)

    def index_words(self, key: int, scope: int, worded: Worded) -> None:
        self.run(FTS, (key, *worded.columns, scope_token(scope)))
        self.count(scope, worded.lexemes, worded.length, +1)

    def unindex(self, key: int) -> None:
        """Takes a memory's words out of the index, which has to be told what they were: call this before its texts, tags or
        source change."""
        scope, length, packed, content, summary, section, tags, uri, type = self.run(
            "SELECT m.scope, m.length, m.lexemes, m.content, m.summary, m.section, m.tags, o.uri,"
            f" {rows.TYPE} FROM memories m JOIN sources o ON o.id = m.source WHERE m.key = ?",
            (key,),
        ).get
        texts = (content, summary, section or "", index_tags(json.loads(tags), uri, type))
        self.run(UNFTS, (key, *map(lexemes.prepare, texts), scope_token(scope)))
        self.count(scope, packed, length, -1)

    def count(self, scope: int, blob: bytes, length: int, sign: int) -> None:
        self.counted[scope, sign].append(lexemes.unpack(blob))
        self.scope_memories[scope] += sign
        self.scope_words[scope] += sign * length

    def entities(self, key: int, entities: Sequence[Entity]) -> None:
        if entities:
            ids = {self.entity(entity) for entity in entities}
            self.many(
                "INSERT OR IGNORE INTO memory_entities(memory, entity) VALUES (?, ?)",
                ((key, id) for id in sorted(ids)),
            )

    def entity(self, entity: Entity) -> int:
        known = (entity.name.casefold(), entity.type)
        if known not in self.entity_ids:
            self.run(
                "INSERT OR IGNORE INTO entities(name, folded, type) VALUES (?, ?, ?)",
                (entity.name, *known),
            )
            self.entity_ids[known] = self.run(
                "SELECT id FROM entities WHERE folded = ? AND type = ?", known
            ).get
        return self.entity_ids[known]

    def vectors(self, key: int, scope: int, vectors: Sequence[Any]) -> None:
        if len(vectors) == 0 or self.batch.model is None:
            return
        from bethink.store.scan import encode

        model = self.model(self.batch.model, len(vectors[0]))
        self.many(
            "INSERT INTO vectors(model, scope, memory, data) VALUES (?, ?, ?, ?)",
            ((model, scope, key, encode(vector)) for vector in vectors),
        )

    def revector(self, id: str, vectors: Sequence[Any]) -> None:
        row = self.run("SELECT key, scope, section, content FROM memories WHERE id = ?", (id,)).get
        if row is None or self.batch.model is None:
            return  # purged meanwhile
        if vector_text(*row[2:]) != self.batch.made_of.get(id, vector_text(*row[2:])):
            return  # changed meanwhile
        self.run(
            "DELETE FROM vectors WHERE memory = ? AND model = (SELECT id FROM models WHERE name = ?)",
            (row[0], self.batch.model),
        )
        self.vectors(row[0], row[1], vectors)

    # Changing

    def change(self, change: Change) -> None:
        row = self.run("SELECT * FROM memories WHERE id = ?", (change.id,))
        names = (
            [column[0] for column in row.get_description()]
            if (first := next(iter(row), None))
            else []
        )
        if first is None:
            if change.id in self.batch.keep:
                return  # a passage that was purged meanwhile
            raise NotFound(
                f"There is no memory {change.id}.", "`bethink list` shows what there is."
            )
        old = dict(zip(names, first, strict=True))
        new: dict[str, Any] = {}
        named: tuple[list[list[str]], list[list[str]]] | None = None
        for field, value in change.fields.items():
            if field == "vote":
                new["usefulness"] = old["usefulness"] + value
            elif field == "entities":
                named = self.rename(old["key"], value)
            elif (
                field in rows.PLAIN
                or field in rows.TIMES
                or field in rows.JSONS
                or field in ("content", "content_hash")
            ):
                new[field] = rows.stored(field, value)
            else:
                raise ValueError(f"a change cannot set {field!r}")
        if old["dedup"] is not None and "content_hash" in new:
            new["dedup"] = new["content_hash"]
        if old["superseded_by"] and new.get("superseded_by", "") is None and "valid_to" not in new:
            new["valid_to"] = valid_before(self.states(old["key"]))
        changed = {name: value for name, value in new.items() if old[name] != value}
        if "updated_at" not in changed and change.action != "vote":
            changed["updated_at"] = self.at
        merged = {**old, **changed}
        self.refuse_twin(merged)
        if (
            "content_hash" in changed
            and not self.batch.allow_purged
            and self.tombstoned(merged["content_hash"])
        ):
            refuse_purged(merged["content"], self.states(old["key"]))
        if changed.get("superseded_by") and self.leads_to(merged["superseded_by"], change.id):
            raise circle(change.id, merged["superseded_by"])
        changed["row_hash"] = rows.row_hash(merged)
        reindexed = any(name in changed for name in ("content", "summary", "section", "tags"))
        if reindexed:
            self.unindex(old["key"])
        assignments = ", ".join(f"{name} = :{name}" for name in changed)
        self.run(
            f"UPDATE memories SET {assignments} WHERE key = :key", {**changed, "key": old["key"]}
        )
        if "content" in changed or "section" in changed:
            # The old vectors are of another text. New ones come with the batch where there is a model.
            self.run("DELETE FROM vectors WHERE memory = ?", (old["key"],))
        if reindexed:
            self.index(
                old["key"],
                old["scope"],
                merged["content"],
                merged["summary"],
                merged["section"],
                self.changed_tags(old["key"], merged["tags"]),
            )
        shown = [
            name
            for name in changed
            if name not in ("updated_at", "row_hash", "dedup", "content_hash")
        ]
        before, after = {name: old[name] for name in shown}, {name: merged[name] for name in shown}
        if named and named[0] != named[1]:
            before["entities"], after["entities"] = named
        self.record(old["key"], change.action, before, after)

    def rename(
        self, key: int, entities: Sequence[Entity]
    ) -> tuple[list[list[str]], list[list[str]]]:
        """Gives a memory other entities; returns the old and the new ones, for its history."""
        sql = "SELECT e.name, e.type FROM memory_entities me JOIN entities e ON e.id = me.entity WHERE me.memory = ? ORDER BY 1, 2"
        before = [list(row) for row in self.run(sql, (key,))]
        self.run("DELETE FROM memory_entities WHERE memory = ?", (key,))
        self.entities(key, entities)
        return before, [list(row) for row in self.run(sql, (key,))]

    def refuse_twin(self, row: dict[str, Any]) -> None:
        """A told text stands once per scope, also after an edit or when it comes back."""
        if row["dedup"] is None or row["deleted_at"] is not None:
            return
        twin = self.run(
            "SELECT id FROM memories WHERE scope = ? AND dedup = ? AND deleted_at IS NULL AND key <> ?",
            (row["scope"], row["dedup"], row["key"]),
        ).get
        if twin:
            raise InvalidInput(
                f"The memory {twin} already says exactly this.", f"bethink forget {twin}"
            )

    def leads_to(self, id: str, old: str) -> bool:
        """Whether a memory is another one, or was replaced by it, if only in the end."""
        chain = "SELECT m.superseded_by FROM memories m JOIN chain ON m.id = chain.id WHERE m.superseded_by IS NOT NULL"
        return bool(
            self.run(
                f"WITH chain(id) AS (VALUES (?) UNION {chain}) SELECT 1 FROM chain WHERE id = ?",
                (id, old),
            ).get
        )

    def states(self, key: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """What was before and after each change of a memory, oldest first."""
        found = self.run(
            "SELECT before, after FROM history WHERE memory = ? ORDER BY number", (key,)
        )
        return [(json.loads(before or "{}"), json.loads(after or "{}")) for before, after in found]

    def changed_tags(self, key: int, tags: str) -> str:
        uri, type = self.run(
            f"SELECT o.uri, {rows.TYPE} FROM memories m JOIN sources o ON o.id = m.source WHERE m.key = ?",
            (key,),
        ).get
        return index_tags(json.loads(tags), uri, type)

    def record(
        self, key: int, action: str, before: dict[str, Any] | None, after: dict[str, Any] | None
    ) -> None:
        self.run(
            "INSERT INTO history(memory, at, actor, action, before, after) VALUES (?, ?, ?, ?, ?, ?)",
            (
                key,
                self.at,
                self.batch.actor,
                action,
                *(
                    None if value is None else json.dumps(value, ensure_ascii=False)
                    for value in (before, after)
                ),
            ),
        )

    # Moving and leaving; what leaves with its source, or for good, is in `leaving.py`

    def move(self, scope: int, old: str, new: str) -> None:
        """Gives a source another uri. Its path is a searchable word of its memories."""
        from_ = self.run("SELECT id FROM sources WHERE scope = ? AND uri = ?", (scope, old)).get
        if from_ is None:
            return
        there = self.run("SELECT id FROM sources WHERE scope = ? AND uri = ?", (scope, new)).get
        moved = list(
            self.run(
                "SELECT key, content, summary, section, tags FROM memories WHERE source = ?",
                (from_,),
            )
        )
        for key, *_ in moved:
            self.unindex(key)
        if there is None:
            self.run("UPDATE sources SET uri = ? WHERE id = ?", (new, from_))
        else:
            self.run("UPDATE memories SET source = ? WHERE source = ?", (there, from_))
            self.run("DELETE FROM sources WHERE id = ?", (from_,))
        for key, content, summary, section, tags in moved:
            self.index(key, scope, content, summary, section, self.changed_tags(key, tags))

    def place(self, id: str, lines: tuple[int, int] | None, position: int) -> None:
        """Where a passage stands in its source is no part of its history."""
        row = self.run("SELECT * FROM memories WHERE id = ?", (id,))
        if (found := next(iter(row), None)) is None:
            return  # purged meanwhile
        names = [column[0] for column in row.get_description()]
        first, last = lines or (None, None)
        values = dict(zip(names, found, strict=True)) | {"line_start": first, "line_end": last}
        self.run(
            "UPDATE memories SET line_start = ?, line_end = ?, position = ?, row_hash = ? WHERE id = ?",
            (first, last, position, rows.row_hash(values), id),
        )

    def remove(self, key: int) -> None:
        self.unindex(key)
        self.run("DELETE FROM vectors WHERE memory = ?", (key,))
        self.run("DELETE FROM memory_entities WHERE memory = ?", (key,))
        self.run("DELETE FROM memories WHERE key = ?", (key,))

    def bury(self, texts: Iterable[str]) -> None:
        """Leaves a tombstone of each text, by which it is refused when it comes again."""
        stones = ((self.tombstone(content_hash(text)), self.at) for text in texts)
        self.many("INSERT OR REPLACE INTO tombstones(hash, at) VALUES (?, ?)", stones)

    def drop_answers(self) -> None:
        """Takes out the answers that are kept for requests that may come again: any of them may quote what is gone."""
        self.run("DELETE FROM meta WHERE key >= ? AND key < ?", ANSWERS)

    def tombstone(self, content_hash: str) -> bytes:
        # Salted by the database's own secret: a bare hash of a short text could be guessed.
        salt = bytes.fromhex(self.run("SELECT value FROM meta WHERE key = 'salt'").get)
        return blake2b(content_hash.encode(), key=salt, digest_size=16).digest()

    def tombstoned(self, content_hash: str) -> bool:
        if not self.run("SELECT 1 FROM tombstones LIMIT 1").get:
            return False
        return bool(
            self.run("SELECT 1 FROM tombstones WHERE hash = ?", (self.tombstone(content_hash),)).get
        )

    # Derived numbers

    def cache(self) -> None:
        if not self.batch.cache or self.batch.model is None:
            return
        from bethink.store.scan import encode

        def packed() -> Iterable[tuple[bytes, int, bytes]]:
            for hash, vectors in self.batch.cache.items():
                if bytes.fromhex(hash) in self.refused:
                    continue
                model = self.model(self.batch.model or "", len(vectors[0]))
                yield bytes.fromhex(hash), model, b"".join(encode(vector) for vector in vectors)

        self.many(
            "INSERT OR IGNORE INTO embedding_cache(hash, model, data) VALUES (?, ?, ?)", packed()
        )

    def uncache(self, texts: set[str], sections: set[str | None]) -> None:
        """Takes out the vectors that are kept for texts, under each heading that they may have been embedded with."""
        keys = {
            cache_key(vector_text(section, text)) for text in texts for section in (*sections, None)
        }
        self.many("DELETE FROM embedding_cache WHERE hash = ?", ((key,) for key in keys))

    def settle(self) -> None:
        changes: list[tuple[int, int, int]] = []
        for scope in {scope for scope, _ in self.counted}:
            words = Counter(chain.from_iterable(self.counted[scope, +1]))
            words.subtract(chain.from_iterable(self.counted[scope, -1]))
            changes += [(scope, hash, change) for hash, change in words.items() if change]
        self.many(
            "INSERT INTO lexeme_counts(scope, hash, memories) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET memories = memories + excluded.memories",
            sorted(changes),
        )
        self.many(
            "UPDATE scopes SET memories = memories + ?, words = words + ? WHERE id = ?",
            [
                (change, self.scope_words[scope], scope)
                for scope, change in self.scope_memories.items()
                if change or self.scope_words[scope]
            ],
        )
        batch = self.batch
        self.many(
            "DELETE FROM lexeme_counts WHERE scope = ? AND hash = ? AND memories <= 0",
            [(scope, hash) for scope, hash, change in changes if change < 0],
        )
        removing = (
            batch.retire,
            batch.vanish,
            batch.purge,
            batch.change,
            batch.vectors,
            batch.spans,
            batch.span_vectors,
        )
        if not any(removing):
            return  # no vector was removed
        for log in ("vectors_removed", "span_vectors_removed"):
            oldest, newest = self.run(
                f"SELECT (SELECT min(number) FROM {log}), (SELECT max(number) FROM {log})"
            ).get
            if oldest and newest - oldest > REMOVALS_KEPT * 1.1:
                self.run(f"DELETE FROM {log} WHERE number <= ?", (newest - REMOVALS_KEPT,))
