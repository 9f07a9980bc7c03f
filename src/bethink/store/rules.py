"""What may happen to a memory, once for every database: added, changed, moved, retired with its source, purged.

A `Writer` is one write on its way in, inside one open transaction that it neither opens nor commits. Each memory stands in
several places: its row, the word index, the word counts of its scope, its vectors, its entities and its history. They are
changed together, here and nowhere else. What a database does in its own words is at the end, as methods that say so.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b, sha256
from typing import Any, NamedTuple

from bethink.errors import InvalidInput, NotFound, Overtaken
from bethink.store import lexemes, rows
from bethink.store.bundle import receipt_of, receipt_text, valid_before
from bethink.store.reading import tombstone
from bethink.types import (
    Batch,
    Change,
    Entity,
    Entry,
    Memory,
    Outcome,
    Receipt,
    Relation,
    Session,
    Source,
    Span,
    path_of,
)

# Keys among the facts about the database (`meta`): receipts of writes that may come again, and answers kept for such requests.
ONCE, ONCE_END, ONCE_KEPT = "once:", "once;", 90 * 24 * 3600 * 1000  # milliseconds
ANSWERS, ANSWERS_END = "note:answer:", "note:answer;"
# Nothing names a source any more. Of a conversation it stays as long as the session does: it tells how far was read.
UNNAMED = (
    "NOT EXISTS (SELECT 1 FROM memories WHERE source = sources.id)"
    " AND NOT EXISTS (SELECT 1 FROM sessions WHERE source = sources.id)"
)
OFTEN = ("turns", "relations", "memory_entities", "tombstones", "embedding_cache")
INDEXED = ("content", "summary", "section", "tags")  # columns whose words are found
UNTOLD = ("updated_at", "row_hash", "dedup", "content_hash")  # columns that history leaves out


def cache_key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def content_hash(text: str) -> str:
    """Identity of a text: line endings and outer white space do not count."""
    return sha256(text.replace("\r\n", "\n").strip().encode("utf-8", "replace")).hexdigest()


def vector_text(section: str | None, content: str) -> str:
    """What is embedded for a memory: its heading helps a passage to be found by what it is about."""
    return f"{section}\n{content}" if section else content


def topic_text(name: str, summary: str) -> str:
    """What is embedded for a topic."""
    return f"{name}\n{summary}"


def index_tags(tags: Sequence[str], uri: str, type: str) -> str:
    """Tags are searchable words, and so is the path of a document or source file. A transcript's path says nothing."""
    return " ".join(
        (*tags, *((path_of(uri),) if type in ("markdown", "repomap", "analysis") else ()))
    )


class Texts(NamedTuple):
    """What of a memory is found by its words."""

    key: int
    scope: int
    content: str
    summary: str
    section: str | None
    tags: str


class Worded(NamedTuple):
    """The words of a memory: as scoring reads them, how many, and as the database's own index takes them."""

    lexemes: bytes
    length: int
    indexed: Any


class Vectors(NamedTuple):
    """Which vectors are meant: those of memories or those of topics."""

    table: str
    owner: str


MEMORIES, TOPICS = Vectors("vectors", "memory"), Vectors("span_vectors", "span")
Window = tuple[int, int, int, bytes]  # key of the memory or topic, scope, model, encoded vector


class Writer:
    """One write on its way in, and what it changes in the statistics."""

    def __init__(self, batch: Batch, actor: str) -> None:
        self.batch, self.actor = batch, actor
        self.at = rows.stamp(batch.at) or 0
        self.counts: Counter[tuple[int, int]] = Counter()  # (scope, hash of a word) → memories
        self.scope_memories: Counter[int] = Counter()
        self.scope_words: Counter[int] = Counter()
        self.scope_ids: dict[str, int] = {}
        self.source_ids: dict[tuple[int, str], int] = {}
        self.model_ids: dict[str, tuple[int, int]] = {}
        self.refused: set[bytes] = set()  # cache keys of purged texts: their vectors are not kept

    def one(self, sql: str, values: Sequence[Any] = ()) -> Any:
        found = self.run(sql, values)
        return found[0] if found else None

    # The whole batch

    def apply(self) -> Receipt:
        """Puts the batch in; or, where a write under its key went in before, gives that one's receipt."""
        once = self.batch.once
        if not once:
            return self._apply()
        if known := self.one("SELECT value FROM meta WHERE key = ?", (ONCE + once,)):
            return receipt_of(known[0])
        receipt = self._apply()
        self.note_fact(ONCE + once, receipt_text(receipt, self.at))
        if cache_key(once)[0] % 64 == 0:
            self._drop_old_facts()
        return receipt

    def _drop_old_facts(self) -> None:
        for first, last in ((ONCE, ONCE_END), (ANSWERS, ANSWERS_END)):
            found = self.run(
                "SELECT key, value FROM meta WHERE key >= ? AND key < ?", (first, last)
            )
            old = [key for key, value in found if json.loads(value)["at"] < self.at - ONCE_KEPT]
            self.run("DELETE FROM meta WHERE key = ANY(?)", (old,))

    def _apply(self) -> Receipt:
        batch = self.batch
        for scope, uri, position in batch.expect:
            self._expect(scope, uri, position)
        for id, was in batch.unchanged:
            row = self.one("SELECT updated_at FROM memories WHERE id = ?", (id,))
            if row is None or row[0] != rows.stamp(was):
                raise Overtaken(
                    f"The memory {id} was changed by another process.",
                    "Read it again, and change what it says now.",
                )
        for scope, old, new in batch.move:
            self.move(self.scope(scope), old, new)
        for scope, source in batch.sources:
            self.read_source(self.scope(scope), source)
        retired = sum(self.retire(scope, uri) for scope, uri in batch.retire)
        retired += sum(self.vanish(scope, uri) for scope, uri in batch.vanish)
        for id, lines, position in batch.place:
            self.place(id, lines, position)
        for session in batch.sessions:
            self.put_session(session)
        self.put_spans(batch.spans)
        outcomes = self.add(batch.add)
        # What was not stored after all, being known or purged, neither replaces nor relates to anything.
        absent = {
            entry.memory.id
            for entry, outcome in zip(batch.add, outcomes, strict=True)
            if outcome.status != "added"
        }
        changes = [one for one in batch.change if one.fields.get("superseded_by") not in absent]
        for change in changes:
            self.change(change)
        self.relate([one for one in batch.relate if not absent & {one.source, one.target}])
        self.unrelate(batch.unrelate)
        for id, times in Counter(batch.access).items():
            self.run(
                "UPDATE memories SET access_count = access_count + ?, last_accessed = ? WHERE id = ?",
                (times, self.at, id),
            )
        self.revector()
        purged = sum(self.purge(id) for id in batch.purge)
        self.cache()
        self.settle()
        return Receipt(outcomes=outcomes, changed=len(changes), retired=retired, purged=purged)

    def _expect(self, scope: str, uri: str, position: int) -> None:
        row = self.one(
            "SELECT o.position FROM sources o JOIN scopes s ON s.id = o.scope WHERE s.key = ? AND o.uri = ?",
            (scope, uri),
        )
        found = row[0] if row else 0
        if found != position:
            raise Overtaken(
                f"{uri} was read on to {found} by another process.",
                "Nothing is lost; run it again.",
            )

    # What a memory belongs to

    def scope(self, key: str) -> int:
        if key not in self.scope_ids:
            name, path = (*self.batch.scopes.get(key, ()), "", "")[:2]
            known = self.one("SELECT id, name, path FROM scopes WHERE key = ?", (key,))
            if known is None:
                self.scope_ids[key] = self.new_scope(key, name, path)
            else:
                self.scope_ids[key] = known[0]
                if name not in ("", known[1]) or path not in ("", known[2]):
                    self.run(
                        "UPDATE scopes SET name = ?, path = ? WHERE id = ?",
                        (name or known[1], path or known[2], known[0]),
                    )
        return self.scope_ids[key]

    def source_id(self, scope: int, uri: str) -> int | None:
        row = self.one("SELECT id FROM sources WHERE scope = ? AND uri = ?", (scope, uri))
        return int(row[0]) if row else None

    def source(self, scope: int, uri: str, type: str) -> int:
        """The number of a source, which is made where there is none."""
        if (scope, uri) not in self.source_ids:
            self.source_ids[scope, uri] = self.source_id(scope, uri) or self._new_source(
                scope, Source(uri, type)
            )
        return self.source_ids[scope, uri]

    def sources(self, wanted: Iterable[tuple[int, str, str]]) -> None:
        """Makes the sources (scope, uri, type) of many memories known at once."""
        fresh = {
            (scope, uri): type for scope, uri, type in wanted if (scope, uri) not in self.source_ids
        }
        if len(fresh) < 2:
            return
        sql = "SELECT scope, uri, id FROM sources WHERE uri = ANY(?)"
        found = {(scope, uri): id for scope, uri, id in self.run(sql, ([uri for _, uri in fresh],))}
        self.source_ids.update({place: found[place] for place in fresh if place in found})

    def _new_source(self, scope: int, source: Source, at: int | None = None) -> int:
        id = self.number("sources")
        self.put(
            "sources",
            [
                {
                    "id": id,
                    "scope": scope,
                    "uri": source.uri,
                    "type": source.type,
                    "hash": source.hash,
                    "position": source.position,
                    "read_at": self.at if at is None else at,
                    "metadata": rows.stored("metadata", source.metadata),
                }
            ],
        )
        return id

    def read_source(self, scope: int, source: Source, at: int | None = None) -> None:
        """Notes how a source was read, by default just now."""
        id = self.source_id(scope, source.uri)
        if id is None:
            id = self._new_source(scope, source, at)
        else:
            self.run(
                "UPDATE sources SET type = ?, hash = ?, position = ?, read_at = ?, metadata = ? WHERE id = ?",
                (
                    source.type,
                    source.hash,
                    source.position,
                    self.at if at is None else at,
                    rows.stored("metadata", source.metadata),
                    id,
                ),
            )
        self.source_ids[scope, source.uri] = id
        self.audit("source", source.uri)

    def model(self, name: str, dimensions: int) -> int:
        if name not in self.model_ids:
            known = self.one("SELECT id, dimensions FROM models WHERE name = ?", (name,))
            if known is None:
                known = (self.number("models"), dimensions)
                self.put("models", [{"id": known[0], "name": name, "dimensions": dimensions}])
            elif known[1] != dimensions and not self.one(
                "SELECT 1 FROM vectors WHERE model = ? LIMIT 1", (known[0],)
            ):
                # A model that no memory has a vector of may come back under its name with another size.
                for table in ("span_vectors", "embedding_cache"):
                    self.run(f"DELETE FROM {table} WHERE model = ?", (known[0],))
                self.run("UPDATE models SET dimensions = ? WHERE id = ?", (dimensions, known[0]))
                known = (known[0], dimensions)
            self.model_ids[name] = known
        id, size = self.model_ids[name]
        if size != dimensions:
            raise InvalidInput(
                f"The model {name} makes vectors of {size} dimensions here, not of {dimensions}.",
                "`bethink reindex` after a change of model.",
            )
        return id

    # Adding

    def add(self, entries: Sequence[Entry]) -> tuple[Outcome, ...]:
        """Puts new memories in. What is known or was purged is left out and said so."""
        if not entries:
            return ()
        hashes = {entry.memory.content_hash for entry in entries}
        purged = set() if self.batch.allow_purged else self.tombstoned(hashes)
        places = [self.scope(entry.memory.scope) for entry in entries]
        heard = self._new_turns(entries, places, purged)
        known = self.living(
            {
                (scope, entry.memory.content_hash)
                for scope, entry in zip(places, entries, strict=True)
                if entry.unique
            }
        )
        outcomes: list[Outcome] = []
        chosen: list[tuple[int, int, Entry]] = []
        for scope, entry in zip(places, entries, strict=True):
            memory = entry.memory
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
            chosen.append((self.number("memories"), scope, entry))
            outcomes.append(Outcome(id=memory.id, status="added"))
        self.insert([(key, scope, entry.memory, entry.unique) for key, scope, entry in chosen])
        self.vectors(MEMORIES, [(key, scope, entry.vectors) for key, scope, entry in chosen])
        self.record([(key, scope, "add", None, None) for key, scope, _ in chosen])
        if chosen:
            self.audit("add", *(entry.memory.id for _, _, entry in chosen))
        return tuple(outcomes)

    def _new_turns(
        self, entries: Sequence[Entry], places: Sequence[int], purged: set[str]
    ) -> set[tuple[int, bytes]]:
        """The messages that were never taken in, now noted as taken in."""
        given = {
            (scope, entry.turn)
            for scope, entry in zip(places, entries, strict=True)
            if entry.turn is not None and entry.memory.content_hash not in purged
        }
        for scope in {scope for scope, _ in given}:
            said = [turn for place, turn in given if place == scope]
            sql = f"SELECT identity FROM turns WHERE scope = {scope} AND identity = ANY(?)"
            given -= {(scope, bytes(turn)) for (turn,) in self.run(sql, (said,))}
        self.put("turns", [{"scope": scope, "identity": turn} for scope, turn in sorted(given)])
        return given

    def living(self, wanted: set[tuple[int, str]]) -> dict[tuple[int, str], str]:
        """(scope, content hash) → id of the memory that says it already."""
        found: dict[tuple[int, str], str] = {}
        for scope in {scope for scope, _ in wanted}:
            sql = f"SELECT dedup, id FROM memories WHERE scope = {scope} AND dedup = ANY(?) AND deleted_at IS NULL"
            hashes = [hash for place, hash in wanted if place == scope]
            found |= {(scope, hash): id for hash, id in self.run(sql, (hashes,))}
        return found

    def insert(self, chosen: Sequence[tuple[int, int, Memory, bool]]) -> None:
        """The rows of memories (key, scope, memory, unique), with their words and names."""
        self.sources((scope, one.source, one.source_type) for _, scope, one, _ in chosen)
        given, words = [], []
        for key, scope, memory, unique in chosen:
            tags = index_tags(memory.tags, memory.source, memory.source_type)
            worded = self.worded(
                Texts(key, scope, memory.content, memory.summary, memory.section, tags)
            )
            source = self.source(scope, memory.source, memory.source_type)
            row = rows.values(memory, scope, source)
            given.append(
                {
                    "key": key,
                    **row,
                    "row_hash": rows.row_hash(row),
                    "dedup": memory.content_hash if unique else None,
                    "length": worded.length,
                    "lexemes": worded.lexemes,
                }
            )
            words.append((key, scope, worded))
        self.put("memories", given)
        self._count_in(words)
        self.entities([(key, scope, memory.entities) for key, scope, memory, _ in chosen])

    def _count_in(self, words: Sequence[tuple[int, int, Worded]]) -> None:
        self.index_words(words)
        for _, scope, worded in words:
            self._count(scope, worded.lexemes, worded.length, +1)

    def index(self, texts: Sequence[Texts]) -> None:
        """Makes the words of rows that are there already findable."""
        words = [(text.key, text.scope, self.worded(text)) for text in texts]
        for key, _, worded in words:
            self.run(
                "UPDATE memories SET length = ?, lexemes = ? WHERE key = ?",
                (worded.length, worded.lexemes, key),
            )
        self._count_in(words)

    def unindex(self, keys: Sequence[int]) -> None:
        """Takes memories out of the word index and out of the counts. Before their texts, tags or source change: an index may have
        to be told what their words were."""
        found = self.run(
            "SELECT scope, lexemes, length FROM memories WHERE key = ANY(?)", (list(keys),)
        )
        self.drop_words(keys)
        for scope, packed, length in found:
            self._count(scope, packed, length, -1)

    def _count(self, scope: int, packed: bytes, length: int, sign: int) -> None:
        for hash in lexemes.unpack(packed):
            self.counts[scope, hash] += sign
        self.scope_memories[scope] += sign
        self.scope_words[scope] += sign * length

    def entities(self, named: Sequence[tuple[int, int, Sequence[Entity]]]) -> None:
        """The names (key, scope, entities) of memories."""
        wanted: dict[tuple[int, str, str], str] = {}
        for _, scope, entities in named:
            for entity in entities:
                wanted.setdefault(
                    (self.shelf(scope), entity.name.casefold(), entity.type), entity.name
                )
        if not wanted:
            return
        known = self.known_entities(sorted({folded for _, folded, _ in wanted}))
        fresh = [(place, self.number("entities")) for place in wanted if place not in known]
        self.put(
            "entities",
            [
                {
                    "id": id,
                    "scope": place[0],
                    "name": wanted[place],
                    "folded": place[1],
                    "type": place[2],
                }
                for place, id in fresh
            ],
        )
        known.update(fresh)
        pairs = {
            (key, scope, known[self.shelf(scope), entity.name.casefold(), entity.type])
            for key, scope, entities in named
            for entity in entities
        }
        self.put(
            "memory_entities",
            [{"memory": key, "scope": scope, "entity": id} for key, scope, id in sorted(pairs)],
        )

    def vectors(self, which: Vectors, given: Sequence[tuple[int, int, Sequence[Any]]]) -> None:
        """(key, scope, vectors) of memories or topics, of the batch's model."""
        model = self.batch.model
        wanted = [(key, scope, vectors) for key, scope, vectors in given if len(vectors)]
        if model is None or not wanted:
            return
        from bethink.store.scan import encode

        windows = [
            (key, scope, self.model(model, len(vector)), encode(vector))
            for key, scope, vectors in wanted
            for vector in vectors
        ]
        self.put_vectors(which, windows)

    def revector(self) -> None:
        """New vectors of the batch's model in the place of the old, for what still says what they were made of."""
        batch = self.batch
        if batch.model is None:
            return
        for which, given, table, texts, text_of in (
            (MEMORIES, batch.vectors, "memories", "section, content", vector_text),
            (TOPICS, batch.span_vectors, "spans", "name, summary", topic_text),
        ):
            if not given:
                continue
            found = self.run(
                f"SELECT id, key, scope, {texts} FROM {table} WHERE id = ANY(?)", (list(given),)
            )
            same = [
                (key, scope, given[id])
                for id, key, scope, first, second in found
                if batch.made_of.get(id) in (None, text_of(first, second))
            ]
            row = self.one("SELECT id FROM models WHERE name = ?", (batch.model,))
            if row:
                self.drop_vectors(which, [key for key, _, _ in same], row[0])
            self.vectors(which, same)

    def record(
        self,
        events: Sequence[tuple[int, int, str, Mapping[str, Any] | None, Mapping[str, Any] | None]],
    ) -> None:
        """(memory, scope, action, before, after) into history."""
        self.put(
            "history",
            [
                {
                    "number": self.number("history"),
                    "memory": key,
                    "scope": scope,
                    "at": self.at,
                    "actor": self.actor,
                    "action": action,
                    "before": rows.json_text(before),
                    "after": rows.json_text(after),
                }
                for key, scope, action, before, after in events
            ],
        )

    def relate(self, relations: Sequence[Relation]) -> None:
        self.put_relations([(one, self.at, self.actor) for one in relations])
        if relations:
            self.audit("relate", *([one.source, one.type, one.target] for one in relations))

    def put_relations(self, given: Sequence[tuple[Relation, int, str]]) -> None:
        """(relation, when, by whom). One that is there already stays as it is."""
        ends = {end for one, _, _ in given for end in (one.source, one.target)}
        scopes: dict[str, int] = {}
        if ends:
            sql = "SELECT id, scope FROM memories WHERE id = ANY(?)"
            scopes = {id: self.shelf(scope) for id, scope in self.run(sql, (sorted(ends),))}
        self.put(
            "relations",
            [
                {
                    "scope": min(scopes.get(one.source, 0), scopes.get(one.target, 0)),
                    "source": one.source,
                    "target": one.target,
                    "type": one.type,
                    "created_at": at,
                    "actor": actor,
                }
                for one, at, actor in given
            ],
        )

    def unrelate(self, relations: Sequence[Relation]) -> None:
        for one in relations:
            self.run(
                "DELETE FROM relations WHERE source = ? AND target = ? AND type = ?",
                (one.source, one.target, one.type),
            )
        if relations:
            self.audit("unrelate", *([one.source, one.type, one.target] for one in relations))

    # Changing

    def stored_row(self, id: str) -> dict[str, Any] | None:
        row = self.one(f"SELECT {', '.join(rows.ROW)} FROM memories WHERE id = ?", (id,))
        return dict(zip(rows.ROW, row, strict=True)) if row else None

    def change(self, change: Change) -> None:
        old = self.stored_row(change.id)
        if old is None:
            if change.id in self.batch.keep:
                return  # a passage that was purged meanwhile
            raise NotFound(
                f"There is no memory {change.id}.", "`bethink list` shows what there is."
            )
        key, scope = old["key"], old["scope"]
        changed = self._changed(change, old)
        merged = {**old, **changed}
        self._refuse(change, merged, changed)
        changed["row_hash"] = rows.row_hash(merged)
        reindexed = any(name in changed for name in INDEXED)
        if reindexed:
            self.unindex([key])
        self.run(
            f"UPDATE memories SET {', '.join(f'{name} = ?' for name in changed)} WHERE key = ?",
            (*changed.values(), key),
        )
        if "content" in changed or "section" in changed:
            # The old vectors are of another text. New ones come with the batch where there is a model.
            self.drop_vectors(MEMORIES, [key])
        if reindexed:
            self.index(self.texts([key]))
        told = [name for name in changed if name not in UNTOLD]
        before, after = {name: old[name] for name in told}, {name: merged[name] for name in told}
        if "entities" in change.fields:
            was, now = self._rename(key, scope, change.fields["entities"])
            if was != now:
                before["entities"], after["entities"] = was, now
        self.record([(key, scope, change.action, before, after)])
        self.audit(change.action, change.id)

    def _changed(self, change: Change, old: Mapping[str, Any]) -> dict[str, Any]:
        """The columns that get another value."""
        new: dict[str, Any] = {}
        for field, value in change.fields.items():
            if field == "vote":
                new["usefulness"] = old["usefulness"] + value
            elif field in rows.EDITABLE:
                new[field] = rows.stored(field, value)
            elif field != "entities":
                raise ValueError(f"a change cannot set {field!r}")
        if old["dedup"] is not None and "content_hash" in new:
            new["dedup"] = new["content_hash"]
        if old["superseded_by"] and new.get("superseded_by", "") is None and "valid_to" not in new:
            new["valid_to"] = valid_before(self.states(old["key"]))
        changed = {name: value for name, value in new.items() if old[name] != value}
        if "updated_at" not in changed and change.action != "vote":
            changed["updated_at"] = self.at
        return changed

    def _refuse(self, change: Change, row: Mapping[str, Any], changed: Mapping[str, Any]) -> None:
        """What no change may bring about: a told text twice in its scope, a purged text, a circle of replacements."""
        if row["dedup"] is not None and row["deleted_at"] is None:
            twin = self.one(
                "SELECT id FROM memories WHERE scope = ? AND dedup = ? AND deleted_at IS NULL AND key <> ?",
                (row["scope"], row["dedup"], row["key"]),
            )
            if twin:
                raise InvalidInput(
                    f"The memory {twin[0]} already says exactly this.", f"bethink forget {twin[0]}"
                )
        if (
            "content_hash" in changed
            and not self.batch.allow_purged
            and self.tombstoned({row["content_hash"]})
            # What the memory said before was let in then.
            and all(
                row["content"] != state.get("content")
                for both in self.states(row["key"])
                for state in both
            )
        ):
            raise InvalidInput(
                "This text was purged, so it is not taken in again.",
                "`bethink add --force` remembers it all the same.",
            )
        by = changed.get("superseded_by")
        if by and self.leads_to(by, change.id):
            raise InvalidInput(
                f"{change.id} already replaces {by}; replacing it back would make a circle.",
                f"bethink restore {by}",
            )

    def _rename(
        self, key: int, scope: int, entities: Sequence[Entity]
    ) -> tuple[list[list[str]], list[list[str]]]:
        """Gives a memory other entities; returns the old and the new ones, for its history."""
        sql = "SELECT e.name, e.type FROM memory_entities me JOIN entities e ON e.id = me.entity WHERE me.memory = ?"
        before = sorted(list(row) for row in self.run(sql, (key,)))
        self.run("DELETE FROM memory_entities WHERE memory = ?", (key,))
        self.entities([(key, scope, entities)])
        return before, sorted(list(row) for row in self.run(sql, (key,)))

    def leads_to(self, id: str, old: str) -> bool:
        """Whether a memory is another one, or was replaced by it, if only in the end."""
        seen: set[str] = set()
        while id and id not in seen:
            if id == old:
                return True
            seen.add(id)
            row = self.one("SELECT superseded_by FROM memories WHERE id = ?", (id,))
            id = (row[0] if row else None) or ""
        return False

    def states(self, key: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """What was before and after each change of a memory, oldest first."""
        found = self.run(
            "SELECT before, after FROM history WHERE memory = ? ORDER BY number", (key,)
        )
        return [(json.loads(before or "{}"), json.loads(after or "{}")) for before, after in found]

    def texts(self, keys: Sequence[int]) -> list[Texts]:
        """What the word index holds of memories, from their rows as they are now."""
        found = self.run(
            f"SELECT m.key, m.scope, m.content, m.summary, m.section, m.tags, o.uri, {rows.TYPE}"
            " FROM memories m JOIN sources o ON o.id = m.source WHERE m.key = ANY(?)",
            (list(keys),),
        )
        return [
            Texts(key, scope, content, summary, section, index_tags(json.loads(tags), uri, type))
            for key, scope, content, summary, section, tags, uri, type in found
        ]

    def place(self, id: str, lines: tuple[int, int] | None, position: int) -> None:
        """Where a passage stands in its source is no part of its history."""
        row = self.stored_row(id)
        if row is None:
            return  # purged meanwhile
        first, last = lines or (None, None)
        hash = rows.row_hash(row | {"line_start": first, "line_end": last})
        self.run(
            "UPDATE memories SET line_start = ?, line_end = ?, position = ?, row_hash = ? WHERE id = ?",
            (first, last, position, hash, id),
        )

    def move(self, scope: int, old: str, new: str) -> None:
        """Gives a source another uri. Its path is a searchable word of its memories."""
        source, there = self.source_id(scope, old), self.source_id(scope, new)
        if source is None:
            return
        keys = [key for (key,) in self.run("SELECT key FROM memories WHERE source = ?", (source,))]
        self.unindex(keys)
        if there is None:
            self.run("UPDATE sources SET uri = ? WHERE id = ?", (new, source))
        else:
            self.run("UPDATE memories SET source = ? WHERE source = ?", (there, source))
            self.run("DELETE FROM sources WHERE id = ?", (source,))
        self.source_ids.clear()
        self.index(self.texts(keys))
        self.audit("move", [old, new])

    # Conversations

    def put_session(self, session: Session) -> None:
        """A new session, or a known one that went on."""
        scope = self.scope(session.scope)
        given = {
            "host": session.host,
            "title": session.title,
            "source": self.source(scope, session.source, "transcript") if session.source else None,
            "started_at": rows.stamp(session.started_at),
            "ended_at": rows.stamp(session.ended_at),
            "metadata": rows.stored("metadata", session.metadata),
        }
        known = self.one(
            "SELECT title, metadata, started_at, ended_at FROM sessions WHERE id = ?", (session.id,)
        )
        if known is None:
            self.put("sessions", [{"id": session.id, "scope": scope, **given}])
        else:
            title, metadata, started, ended = known
            times = (
                [at for at in (started, given["started_at"]) if at is not None],
                [at for at in (ended, given["ended_at"]) if at is not None],
            )
            self.run(
                "UPDATE sessions SET title = ?, metadata = ?, started_at = ?, ended_at = ? WHERE id = ?",
                (
                    given["title"] or title,
                    metadata if given["metadata"] == "{}" else given["metadata"],
                    min(times[0], default=None),
                    max(times[1], default=None),
                    session.id,
                ),
            )
        self.audit("session", session.id)

    def put_spans(self, spans: Sequence[tuple[Span, Sequence[Any]]]) -> None:
        """New topics, or known ones with what is true of them now."""
        if not spans:
            return
        latest = {span.id: (span, vectors) for span, vectors in spans}
        keys = self.put_span_rows([span for span, _ in latest.values()])
        self.drop_vectors(TOPICS, list(keys.values()))
        self.vectors(
            TOPICS,
            [(keys[id], self.scope(span.scope), vectors) for id, (span, vectors) in latest.items()],
        )

    def put_span_rows(self, spans: Sequence[Span]) -> dict[str, int]:
        """The rows of topics and their words. Gives their keys."""
        sql = "SELECT id, key FROM spans WHERE id = ANY(?)"
        known: dict[str, int] = dict(self.run(sql, ([span.id for span in spans],)))
        self.drop_topic_words(list(known.values()))
        fresh, keys = [], dict(known)
        for span in spans:
            row = {
                "scope": self.scope(span.scope),
                "session": span.session,
                "parent": span.parent,
                "name": span.name,
                "summary": span.summary,
                "line_start": span.lines[0],
                "line_end": span.lines[1],
                "depth": span.depth,
                "created_at": rows.stamp(span.created_at),
                "metadata": rows.stored("metadata", span.metadata),
            }
            if span.id in known:
                self.run(
                    f"UPDATE spans SET {', '.join(f'{name} = ?' for name in row)} WHERE id = ?",
                    (*row.values(), span.id),
                )
            else:
                keys[span.id] = self.number("spans")
                fresh.append({"key": keys[span.id], "id": span.id, **row})
        self.put("spans", fresh)
        self.index_topics(
            [(keys[one.id], self.scope(one.scope), one.name, one.summary) for one in spans]
        )
        self.audit("topic", *(span.id for span in spans))
        return keys

    def _blank(self, span: str | None, session: str | None, source: int) -> None:
        """After a purge: names and summaries of topics were made from what was said, so those around the purged memory go too, and so
        does what its transcript keeps of the last exchange to go on from."""
        while span:
            row = self.one(
                "SELECT key, scope, parent, name, summary FROM spans WHERE id = ?", (span,)
            )
            if row is None:
                break
            key, scope, span = row[:3]
            self.expunge([cache_key(topic_text(*row[3:]))])
            self.drop_topic_words([key])
            self.drop_vectors(TOPICS, [key])
            self.run(
                "UPDATE spans SET name = '', summary = '', metadata = '{}' WHERE key = ?", (key,)
            )
            self.index_topics([(key, scope, "", "")])
        if session:
            self.run("UPDATE sessions SET title = '', metadata = '{}' WHERE id = ?", (session,))
            same = "SELECT id, metadata FROM sources WHERE uri = (SELECT uri FROM sources WHERE id = ?)"
            for id, metadata in self.run(same, (source,)):
                kept = json.loads(metadata)
                (kept.get("sessions", {}).get(session) or {}).pop("open", None)
                self.run("UPDATE sources SET metadata = ? WHERE id = ?", (rows.json_text(kept), id))

    # Leaving

    def remove(self, keys: Sequence[int]) -> None:
        """Takes memories out of every place but the relations, without a trace in history."""
        if not keys:
            return
        keys = list(keys)
        self.unindex(keys)
        self.drop_vectors(MEMORIES, keys)
        self.run("DELETE FROM memory_entities WHERE memory = ANY(?)", (keys,))
        self.run("DELETE FROM memories WHERE key = ANY(?)", (keys,))
        self.drop_history(keys)

    def retire(self, scope: str, uri: str) -> int:
        """Takes a source's old passages out: those that somebody used, linked or edited are only hidden, the rest is removed. What was
        told under the same name is nobody's passage, and stays."""
        known = self.one("SELECT id FROM scopes WHERE key = ?", (scope,))
        source = self.source_id(known[0], uri) if known else None
        if source is None:
            return 0
        passages = self.run(
            "SELECT m.key, m.id, m.usefulness <> 0 OR m.access_count <> 0"
            " OR EXISTS (SELECT 1 FROM relations r WHERE r.source = m.id)"
            " OR EXISTS (SELECT 1 FROM relations r WHERE r.target = m.id)"
            f" OR EXISTS (SELECT 1 FROM history h WHERE h.memory = m.key AND h.action NOT IN {rows.READING})"
            f" FROM memories m WHERE m.source = ? AND m.deleted_at IS NULL AND NOT {rows.TOLD} ORDER BY m.key",
            (source,),
        )
        keep = set(self.batch.keep)
        old = [row for row in passages if row[1] not in keep]
        for _, id, used in old:
            if used:
                self.change(Change(id, "retire", {"deleted_at": self.batch.at}))
        plain = [(key, id) for key, id, used in old if not used]
        self.remove([key for key, _ in plain])
        if plain:
            self.audit("remove", *(id for _, id in plain))
        return len(old)

    def vanish(self, scope: str, uri: str) -> int:
        """A source that is no more. Its row stays only for memories that were used; without a hash it is read anew if it returns."""
        retired = self.retire(scope, uri)
        known = self.one(
            "SELECT o.id FROM sources o JOIN scopes s ON s.id = o.scope WHERE s.key = ? AND o.uri = ?",
            (scope, uri),
        )
        if known:
            sql = "UPDATE sources SET hash = NULL, position = 0, metadata = '{}' WHERE id = ?"
            self.run(sql, known)
            self._drop_source(known[0])
            self.audit("vanish", uri)
        return retired

    def _drop_source(self, id: int) -> None:
        self.run(f"DELETE FROM sources WHERE id = ? AND {UNNAMED}", (id,))
        self.source_ids.clear()

    def purge(self, id: str) -> int:
        """Removes every trace of a memory, and leaves a tombstone by which its text is refused when it comes again."""
        row = self.stored_row(id)
        if row is None:
            return 0
        key, scope = row["key"], row["scope"]
        self._blank(row["span"], row["session"], row["source"])
        texts, sections = {row["content"]}, {row["section"], None}
        for state in (state for both in self.states(key) for state in both):
            texts |= {state["content"]} if state.get("content") else set()
            sections |= {state["section"]} if "section" in state else set()
        self.expunge(
            [cache_key(vector_text(section, text)) for text in texts for section in sections]
        )
        named = [
            row[0]
            for row in self.run("SELECT entity FROM memory_entities WHERE memory = ?", (key,))
        ]
        self.remove([key])
        self._drop_source(row["source"])
        self.release([id])
        self.drop_entities(named)
        salt = self.salt()
        hashes = {content_hash(text) for text in texts} | {row["content_hash"]}
        self.put(
            "tombstones",
            [
                {"scope": self.shelf(scope), "hash": tombstone(hash, salt), "at": self.at}
                for hash in sorted(hashes)
            ],
        )
        self.record([(key, scope, "purge", None, None)])
        self.audit("purge", id)
        self.purged()
        return 1

    def drop_entities(self, named: Sequence[int] | None) -> None:
        """Takes those of these names out that no memory has any more; of all names, with None."""
        some = "1 = 1" if named is None else "id = ANY(?)"
        self.run(
            f"DELETE FROM entities WHERE {some}"
            " AND NOT EXISTS (SELECT 1 FROM memory_entities WHERE entity = entities.id)",
            () if named is None else (list(named),),
        )

    def release(self, gone: Sequence[str]) -> None:
        """Takes out the relations of memories that are gone for good. What they replaced goes back to what replaced it before, or is
        valid again as it was; what only they answered is open."""
        ids = list(gone)
        answered = (
            "SELECT DISTINCT target FROM relations WHERE type = 'answers' AND source = ANY(?)"
        )
        asked = [target for (target,) in self.run(answered, (ids,))]
        self.run("DELETE FROM relations WHERE source = ANY(?)", (ids,))
        self.run("DELETE FROM relations WHERE target = ANY(?)", (ids,))
        still = "SELECT 1 FROM relations r WHERE r.target = m.id AND r.type = 'answers'"
        unanswered = f"SELECT m.id FROM memories m WHERE m.id = ANY(?) AND m.answered = 1 AND NOT EXISTS ({still}) ORDER BY m.key"
        for (id,) in self.run(unanswered, (asked,)):
            self.change(Change(id, "reopen", {"answered": False}))
        replaced = "SELECT id FROM memories WHERE superseded_by = ANY(?) ORDER BY key"
        for (id,) in self.run(replaced, (ids,)):
            before = self.run(
                "SELECT r.source, coalesce(m.valid_from, m.created_at) FROM relations r JOIN memories m ON m.id = r.source"
                " WHERE r.target = ? AND r.type = 'supersedes' ORDER BY r.created_at DESC, m.key DESC",
                (id,),
            )
            by = next((row for row in before if not self.leads_to(row[0], id)), None)
            if by is None:
                self.change(Change(id, "restore", {"superseded_by": None}))
            else:
                fields = {"superseded_by": by[0], "valid_to": rows.moment(by[1])}
                self.change(Change(id, "supersede", fields))

    def reset(self, scopes: Sequence[int] | None) -> int:
        """Takes everything out, or everything of some scopes, beyond recovery."""
        inside = rows.within("scope", scopes)
        found = self.run(f"SELECT key, id FROM memories WHERE {inside}")
        self.remove([key for key, _ in found])
        self.release([id for _, id in found])
        topics = [key for (key,) in self.run(f"SELECT key FROM spans WHERE {inside}")]
        self.drop_topic_words(topics)
        self.drop_vectors(TOPICS, topics)
        for table in ("spans", "sessions", "turns", "sources"):
            self.run(f"DELETE FROM {table} WHERE {inside}")
        self.drop_entities(None)
        # The cache is keyed by text, not by scope, and kept answers quote any: after a reset they may hold what is gone.
        self.run("DELETE FROM embedding_cache")
        self.expunge([])
        if scopes is None:
            self.run("DELETE FROM tombstones")
            self.drop_history(None)
        self.settle()
        self.purged()
        if found:
            self.audit("reset", len(found))
        return len(found)

    # What is known already

    def salt(self) -> str:
        """The secret of this database's tombstones."""
        return str(self.one("SELECT value FROM meta WHERE key = 'salt'")[0])

    def tombstoned(self, hashes: Iterable[str]) -> set[str]:
        if not self.one("SELECT 1 FROM tombstones LIMIT 1"):
            return set()
        salt = self.salt()
        stones = {tombstone(hash, salt): hash for hash in hashes}
        found = self.run("SELECT hash FROM tombstones WHERE hash = ANY(?)", (list(stones),))
        return {stones[bytes(hash)] for (hash,) in found}

    def note_fact(self, key: str, value: str) -> None:
        self.run("DELETE FROM meta WHERE key = ?", (key,))
        self.put("meta", [{"scope": self.own_shelf(), "key": key, "value": value}])

    # Derived numbers

    def cache(self) -> None:
        model, given = self.batch.model, self.batch.cache
        if not given or model is None:
            return
        from bethink.store.scan import encode

        self.put(
            "embedding_cache",
            [
                {
                    "scope": self.own_shelf(),
                    "hash": bytes.fromhex(hash),
                    "model": self.model(model, len(vectors[0])),
                    "data": b"".join(encode(vector) for vector in vectors),
                }
                for hash, vectors in given.items()
                if bytes.fromhex(hash) not in self.refused
            ],
        )

    def settle(self) -> None:
        """Word counts. The last thing that a write does."""
        changes = sorted((*place, change) for place, change in self.counts.items() if change)
        self.add_counts(changes)
        for scope in {scope for scope, _, change in changes if change < 0}:
            fewer = [hash for place, hash, change in changes if place == scope and change < 0]
            self.run(
                f"DELETE FROM lexeme_counts WHERE scope = {scope} AND hash = ANY(?) AND memories <= 0",
                (fewer,),
            )
        for scope, change in self.scope_memories.items():
            if change or self.scope_words[scope]:
                self.run(
                    "UPDATE scopes SET memories = memories + ?, words = words + ? WHERE id = ?",
                    (change, self.scope_words[scope], scope),
                )
        self.counts.clear()
        self.scope_memories.clear()
        self.scope_words.clear()

    def rebuild(self) -> int:
        """Words and counts anew from the texts: they are derived and may always be thrown away. Whoever calls has emptied them."""
        self.run("DELETE FROM lexeme_counts")
        self.run("UPDATE scopes SET memories = 0, words = 0")
        done, last = 0, 0
        while page := self.run(
            "SELECT key FROM memories WHERE key > ? ORDER BY key LIMIT 500", (last,)
        ):
            keys = [key for (key,) in page]
            last, done = keys[-1], done + len(keys)
            self.index(self.texts(keys))
        self.index_topics(self.run("SELECT key, scope, name, summary FROM spans"))
        self.settle()
        return done

    # What each database does in its own words

    def run(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows of a statement; `?` and `= ANY(?)` as in `rows`."""
        raise NotImplementedError

    def put(self, table: str, given: Sequence[Mapping[str, Any]]) -> None:
        """Inserts rows. Into the tables of OFTEN a row may come again: what is there already stays as it is."""
        raise NotImplementedError

    def number(self, table: str) -> int:
        """The number of the next row of a table. None is given out twice, not even after a row is gone."""
        raise NotImplementedError

    def new_scope(self, key: str, name: str, path: str) -> int:
        raise NotImplementedError

    def shelf(self, scope: int) -> int:
        """The scope that what belongs to no scope by itself is kept under, where others must not see it; else 0."""
        return 0

    def own_shelf(self) -> int:
        """The same for what belongs to whoever writes."""
        return 0

    def known_entities(self, folded: Sequence[str]) -> dict[tuple[int, str, str], int]:
        """(shelf, folded name, type) → id of the entities of these names."""
        raise NotImplementedError

    def worded(self, texts: Texts) -> Worded:
        raise NotImplementedError

    def index_words(self, words: Sequence[tuple[int, int, Worded]]) -> None:
        """(key, scope, words) of memories into the word index."""
        raise NotImplementedError

    def drop_words(self, keys: Sequence[int]) -> None:
        raise NotImplementedError

    def index_topics(self, topics: Sequence[tuple[int, int, str, str]]) -> None:
        """(key, scope, name, summary) of topics into their word index."""
        raise NotImplementedError

    def drop_topic_words(self, keys: Sequence[int]) -> None:
        raise NotImplementedError

    def add_counts(self, changes: Sequence[tuple[int, int, int]]) -> None:
        """(scope, hash of a word, change) to the number of memories that hold it."""
        raise NotImplementedError

    def put_vectors(self, which: Vectors, windows: Sequence[Window]) -> None:
        raise NotImplementedError

    def drop_vectors(self, which: Vectors, keys: Sequence[int], model: int | None = None) -> None:
        raise NotImplementedError

    def drop_history(self, keys: Sequence[int] | None) -> None:
        """The history of these memories, or of all, that are no more."""
        raise NotImplementedError

    def expunge(self, hashes: Sequence[bytes]) -> None:
        """Takes out the vectors kept under these cache keys, and every answer kept for a request that may come again: any may quote
        what is gone."""
        raise NotImplementedError

    def purged(self) -> None:
        """Something was purged: whatever the database has to do so that no page of a file keeps it."""

    def audit(self, action: str, *what: Any) -> None:
        """A line for the audit trail, where the database keeps one."""
