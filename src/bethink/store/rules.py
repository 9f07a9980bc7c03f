"""Rules for adding, changing, moving, retiring and purging memories, for both databases.

A `Writer` is one write in progress, inside a transaction that the caller opens and commits. It
enforces the rules: a note occurs once in its scope, a purged text does not come back, replacements
form no cycle. `places` knows the tables that a memory is stored in.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import product

from bethink.errors import InvalidInput, NotFound, Overtaken
from bethink.model import NOTHING, Change, Entity, Entry, Event, Json, Outcome, Receipt, Session
from bethink.store import rows
from bethink.store.places import (
    ANSWER_NOTES,
    ANSWER_NOTES_END,
    MEMORIES,
    TOPICS,
    Places,
    content_hash,
    embedded_text,
    topic_text,
    vector_text,
)
from bethink.store.rows import Ids, Keys, Record, Row, Rows, tombstone, within
from bethink.text import hash_text

# Keys among the facts about the database (`meta`): receipts of writes that may come again.
ONCE, ONCE_END, ONCE_KEPT = "once:", "once;", 90 * 24 * 3600 * 1000  # milliseconds
# Deletes a source without memories. That of a conversation stays as long as the session, because it records how far it was read.
DROP_UNNAMED = (
    "DELETE FROM sources WHERE id = ? AND NOT EXISTS (SELECT 1 FROM memories WHERE source = sources.id)"
    " AND NOT EXISTS (SELECT 1 FROM sessions WHERE source = sources.id)"
)
# Another valid replacement of a memory, and its start.
SUCCESSOR = (
    "SELECT m.id, coalesce(m.valid_from, m.created_at) FROM relations r JOIN memories m ON m.id = r.source"
    " WHERE r.target = ? AND r.type = 'supersedes' AND m.superseded_by IS NULL"
    " ORDER BY r.created_at DESC, m.key DESC LIMIT 1"
)
# Finds a row if a memory is another one, or was replaced by it directly or through others.
CHAIN = (
    "WITH RECURSIVE chain(id) AS (SELECT id FROM memories WHERE id = ? UNION SELECT m.superseded_by FROM memories m"
    " JOIN chain c ON c.id = m.id) SELECT 1 FROM chain WHERE id = ?"
)
_INDEXED = {"content", "summary", "section", "tags"}  # columns with searchable words
UNRECORDED = ("updated_at", "row_hash", "dedup", "content_hash")  # columns that history leaves out


class Writer(Places):
    """Write in progress: a batch, and the rules for applying it."""

    # The whole batch

    def apply(self) -> Receipt:
        """Apply the batch, or return the receipt of an earlier write with the same key."""
        once = self.batch.once
        if not once:
            return self._apply()
        if known := self.one("SELECT value FROM meta WHERE key = ?", ONCE + once):
            from bethink.store.transfer import from_json  # which a search has no use for

            receipt: Receipt = from_json(Receipt, json.loads(known[0])["receipt"])
            return receipt
        receipt = self._apply()
        self.note_fact(ONCE + once, json.dumps({"at": self.at, "receipt": receipt}))
        # Delete old receipts now and then.
        ends = (
            ((ONCE, ONCE_END), (ANSWER_NOTES, ANSWER_NOTES_END))
            if hash_text(once)[0] % 64 == 0
            else ()
        )
        for between in ends:
            found = self.run("SELECT key, value FROM meta WHERE key >= ? AND key < ?", *between)
            old = [key for key, value in found if json.loads(value)["at"] < self.at - ONCE_KEPT]
            self.run("DELETE FROM meta WHERE key = ANY(?)", old)
        return receipt

    def _apply(self) -> Receipt:
        batch = self.batch
        self._check_expected()
        for scope, old, new in batch.move:
            self.move(scope, old, new)
        for scope, source in batch.sources:
            self.put_source(self.scope(scope), source, self.at)
            self.audit("source", source.uri)
        retired = sum(self.retire(scope, uri) for scope, uri in batch.retire)
        retired += sum(self.vanish(scope, uri) for scope, uri in batch.vanish)
        for id, lines, position in batch.place:
            self.place(id, lines, position)
        for session in batch.sessions:
            self.put_session(session)
        self.put_spans([(span, self.encode(vectors)) for span, vectors in batch.spans])
        outcomes = self.add(batch.add)
        changed = self._change_and_relate(outcomes)
        use = "UPDATE memories SET access_count = access_count + ?, last_accessed = ? WHERE id = ?"
        for id, times in Counter(batch.access).items():
            self.run(use, times, self.at, id)
        self.revector()
        purged = sum(self.purge(id) for id in batch.purge)
        self.cache()
        self.settle()
        return Receipt(outcomes=outcomes, changed=changed, retired=retired, purged=purged)

    def _check_expected(self) -> None:
        """Refuse the batch if a source was read on, or a memory changed, since it was prepared."""
        for scope, uri, position in self.batch.expect:
            found = self.find_source(scope, uri, "position") or 0
            if found != position:
                raise Overtaken(
                    f"{uri} was read up to {found} by another process.",
                    "Nothing is lost; run it again.",
                )
        for id, was in self.batch.unchanged:
            row = self.one("SELECT updated_at FROM memories WHERE id = ?", id)
            if row is None or row[0] != rows.stamp(was):
                raise Overtaken(
                    f"The memory {id} was changed by another process.",
                    "Read it again, then repeat the change.",
                )

    def _change_and_relate(self, outcomes: Sequence[Outcome]) -> int:
        """Apply the changes and relations of the batch. Returns the number of changes.

        A memory that was not stored, because it is known or purged, replaces nothing and relates to
        nothing.
        """
        batch = self.batch
        absent = {entry.memory.id for entry in batch.add} - {one.id for one in outcomes}
        changes = [one for one in batch.change if one.fields.get("superseded_by") not in absent]
        ended = "DELETE FROM relations WHERE source = ? AND target = ? AND type = ?"
        for one in batch.unrelate:
            self.run(ended, *one[:3])
        for change in changes:
            self.change(change)
        made = [one for one in batch.relate if not absent & {one.source, one.target}]
        self.put_relations([(one, self.at, self.actor) for one in made])
        for action, relations in (("unrelate", batch.unrelate), ("relate", made)):
            self.audit(action, *([one.source, one.type, one.target] for one in relations))
        return len(changes)

    # Adding

    def add(self, entries: Sequence[Entry]) -> tuple[Outcome, ...]:
        """Add new memories. Known and purged ones are skipped and reported."""
        if not entries:
            return ()
        hashes = {entry.memory.content_hash for entry in entries}
        purged = self.find_refused(hashes)
        scopes = [self.scope(entry.memory.scope) for entry in entries]
        known = self.find_turns({*scopes}, {entry.turn for entry in entries if entry.turn})
        living = self.find_living({*scopes}, hashes)
        event = Event(self.batch.at, self.actor, "add", {}, {})
        outcomes, chosen, turns = [], [], []
        for scope, entry in zip(scopes, entries, strict=True):
            memory, place, turn = entry.memory, (scope, entry.memory.content_hash), entry.turn
            outcome = Outcome(memory.id, "added")
            if memory.content_hash in purged:
                self.refused.add(hash_text(embedded_text(memory)))
                outcome = Outcome("", "purged")
            elif turn and (scope, turn) in known:
                outcome = Outcome("", "known")
            elif entry.unique and (twin := living.get(place)):
                outcome = Outcome(twin, "duplicate", duplicate_of=twin, similarity=1.0)
            else:
                # Later entries of the batch must see this one.
                if entry.unique and memory.deleted_at is None:
                    living[place] = memory.id
                record = Record(memory, entry.unique, (event,), self.encode(entry.vectors))
                chosen.append((self.number("memories"), scope, record))
            if turn and outcome.status != "purged" and (scope, turn) not in known:
                known.add((scope, turn))
                turns.append({"scope": scope, "identity": turn})
            outcomes.append(outcome)
        self.put("turns", turns)
        self.put_records(chosen)
        self.audit("add", *(record.memory.id for _, _, record in chosen))
        return tuple(outcomes)

    def revector(self) -> None:
        """Replace vectors of the batch's model, where the text they were made of is unchanged."""
        batch = self.batch
        if batch.model is None:
            return
        for which, vectors, table, texts, text_of in (
            (MEMORIES, batch.vectors, "memories", "section, content, metadata", vector_text),
            (TOPICS, batch.span_vectors, "spans", "name, summary", topic_text),
        ):
            if not vectors:
                continue
            found = self.run(
                f"SELECT id, key, scope, {texts} FROM {table} WHERE id = ANY(?)", vectors
            )
            same = [
                (key, scope, self.encode(vectors[id]), text_of(*parts))
                for id, key, scope, *parts in found
                if batch.made_of.get(id) in (None, text_of(*parts))
            ]
            for model in self.column("SELECT id FROM models WHERE name = ?", batch.model):
                self.drop_vectors(which, [key for key, *_ in same], model)
            self.put_vectors(which, same)

    def record(self, action: str, row: Row, before: Row = NOTHING, after: Row = NOTHING) -> None:
        """Append an event to the history of the memory with this row."""
        event = Event(self.batch.at, self.actor, action, before, after)
        self.put_events([(row["key"], row["scope"], event)])

    # Changing

    def stored_row(self, id: str) -> Json | None:
        row = self.one(f"SELECT {', '.join(rows.ROW)} FROM memories WHERE id = ?", id)
        return dict(zip(rows.ROW, row, strict=True)) if row else None

    def change(self, change: Change) -> None:
        old = self.stored_row(change.id)
        if old is None:
            if change.id in self.batch.keep:
                return  # a passage that was purged meanwhile
            raise NotFound(
                f"There is no memory {change.id}.", "`bethink list` shows what there is."
            )
        if change.action == "repeat":
            self._keep_wording(old, change.fields["content"])
            return
        key, scope = old["key"], old["scope"]
        changed = self._find_changed_columns(change, old)
        merged = {**old, **changed}
        self._refuse(change, merged, changed)
        changed["row_hash"] = rows.row_hash(merged)
        reindexed = changed.keys() & _INDEXED
        if reindexed:
            self.unindex(MEMORIES, [key])
        self.update("memories", changed, "key", key)
        if "content" in changed or "section" in changed:
            # The old vectors belong to another text. New ones come with the batch if there is a model.
            self.drop_vectors(MEMORIES, [key])
        if reindexed:
            self.index(MEMORIES, [key])
        recorded = [name for name in changed if name not in UNRECORDED]
        before, after = (
            {name: old[name] for name in recorded},
            {name: merged[name] for name in recorded},
        )
        if "entities" in change.fields:
            was, now = self._rename(key, scope, change.fields["entities"])
            if was != now:
                before["entities"], after["entities"] = was, now
        self.record(change.action, old, before, after)
        self.audit(change.action, change.id)

    def _keep_wording(self, row: Row, text: str) -> None:
        """Record another wording of the same statement in its history; the memory stays as it is."""
        known = self.run("SELECT after FROM history WHERE memory = ?", row["key"])
        if text in (json.loads(after or "{}").get("content") for (after,) in known):
            return
        own, other = {"content": row["content"]}, {"content": text}
        self.record("repeat", row, own, other)
        self.record("keep", row, other, own)
        self.audit("repeat", row["id"])

    def _find_changed_columns(self, change: Change, old: Row) -> Json:
        """Columns that get a new value."""
        new: Json = {}
        for field, value in change.fields.items():
            if field == "vote":
                new["usefulness"] = old["usefulness"] + value
            elif field in rows.SETTABLE:
                new[field] = rows.to_column(value)
            elif field != "entities":
                raise ValueError(f"a change cannot set {field!r}")
        if old["dedup"] is not None and "content_hash" in new:
            new["dedup"] = new["content_hash"]
        if old["superseded_by"] and new.get("superseded_by", "") is None and "valid_to" not in new:
            new["superseded_by"], new["valid_to"] = self.one(SUCCESSOR, old["id"]) or (None, None)
        changed = {name: value for name, value in new.items() if old[name] != value}
        if "updated_at" not in changed and change.action != "vote":
            changed["updated_at"] = self.at
        return changed

    def _refuse(self, change: Change, row: Row, changed: Row) -> None:
        """Refuse a change that duplicates a note, restores a purged text or closes a cycle of replacements."""
        if row["dedup"] is not None and row["deleted_at"] is None:
            twins = self.find_living([row["scope"]], [row["dedup"]])
            for twin in {*twins.values()} - {change.id}:
                raise InvalidInput(
                    f"The memory {twin} already says exactly this.", f"bethink forget {twin}"
                )
        if "content_hash" in changed and self.find_refused({row["content_hash"]}):
            raise InvalidInput(
                "This text was purged, so it cannot be added again.",
                "`bethink add --force` adds it anyway.",
            )
        by = changed.get("superseded_by")
        if by and self.one(CHAIN, by, change.id):
            raise InvalidInput(
                f"{change.id} already replaces {by}; replacing it back would form a cycle.",
                f"bethink restore {by}",
            )

    def _rename(self, key: int, scope: int, entities: Sequence[Entity]) -> tuple[Rows, Rows]:
        """Replace the entities of a memory; returns the old and the new ones, for its history."""
        sql = "SELECT e.name, e.type FROM memory_entities me JOIN entities e ON e.id = me.entity WHERE me.memory = ?"
        before = sorted(list(row) for row in self.run(sql, key))
        self.run("DELETE FROM memory_entities WHERE memory = ?", key)
        self.entities([(key, scope, entities)])
        return before, sorted(list(row) for row in self.run(sql, key))

    def place(self, id: str, lines: tuple[int, int] | None, position: int) -> None:
        """Set the position of a passage in its source, which is not part of its history."""
        row = self.stored_row(id)
        if row is None:
            return  # purged meanwhile
        first, last = lines or (None, None)
        new = {"line_start": first, "line_end": last, "position": position}
        self.update("memories", new | {"row_hash": rows.row_hash(row | new)}, "key", row["key"])

    def move(self, scope: str, old: str, new: str) -> None:
        """Change the URI of a source. Its path is a searchable word of its memories."""
        source, there = self.find_source(scope, old), self.find_source(scope, new)
        if source is None:
            return
        keys = self.column("SELECT key FROM memories WHERE source = ?", source)
        self.unindex(MEMORIES, keys)
        if there is None:
            self.run("UPDATE sources SET uri = ? WHERE id = ?", new, source)
        else:
            self.run("UPDATE memories SET source = ? WHERE source = ?", there, source)
            self.run("DELETE FROM sources WHERE id = ?", source)
        self.index(MEMORIES, keys)
        self.audit("move", [old, new])

    # Conversations

    def put_session(self, session: Session) -> None:
        """Store a new session, or update a known one. A session of another project is left alone."""
        found = self.one(f"{rows.SESSION} WHERE n.id = ?", session.id)
        known: Session = rows.read(Session, found) if found else session
        if known.scope != session.scope:
            return
        starts = filter(None, (known.started_at, session.started_at))
        ends = filter(None, (known.ended_at, session.ended_at))
        whole = known._replace(
            title=session.title or known.title,
            metadata=session.metadata or known.metadata,
            started_at=min(starts, default=None),
            ended_at=max(ends, default=None),
        )
        scope = self.scope(whole.scope)
        source = self.source(scope, whole.source, "transcript") if whole.source else None
        self.put("sessions", [rows.to_row(whole, scope=scope, source=source)], key="id")
        self.audit("session", session.id)

    def _blank(self, span: str | None, session: str | None, source: int) -> None:
        """Blank the names and summaries of topics around a purged memory.

        They were made from its text. The transcript's state of the last exchange goes as well.
        """
        around = self.run(
            "WITH RECURSIVE around(id) AS (SELECT id FROM spans WHERE id = ? UNION SELECT p.parent FROM spans p JOIN around a ON a.id = p.id)"
            " SELECT p.key, p.name, p.summary FROM spans p JOIN around a ON a.id = p.id",
            span,
        )
        keys = [row[0] for row in around]
        self.expunge([hash_text(topic_text(*row[1:])) for row in around])
        self.unindex(TOPICS, keys)
        self.drop_vectors(TOPICS, keys)
        sql = "UPDATE spans SET name = '', summary = '', metadata = '{}' WHERE key = ANY(?)"
        self.run(sql, keys)
        self.index(TOPICS, keys)
        if session:
            self.run("UPDATE sessions SET title = '', metadata = '{}' WHERE id = ?", session)
            same = "SELECT id, metadata FROM sources WHERE uri = (SELECT uri FROM sources WHERE id = ?)"
            for id, metadata in self.run(same, source):
                kept = json.loads(metadata)
                state = kept.get("sessions", {}).get(session) or {}
                for name in ("open", "waiting"):
                    state.pop(name, None)
                self.update("sources", {"metadata": rows.to_column(kept)}, "id", id)

    # Leaving

    def retire(self, scope: str, uri: str) -> int:
        """Remove the old passages of a source; hide those that were used, linked or edited.

        Notes that name the same source stay.
        """
        passages = self.run(
            "SELECT m.key, m.id, m.usefulness <> 0 OR m.access_count <> 0"
            " OR EXISTS (SELECT 1 FROM relations r WHERE r.source = m.id)"
            " OR EXISTS (SELECT 1 FROM relations r WHERE r.target = m.id)"
            f" OR EXISTS (SELECT 1 FROM history h WHERE h.memory = m.key AND h.action NOT IN {rows.READING})"
            f" FROM memories m WHERE m.source = ? AND m.deleted_at IS NULL AND NOT {rows.IS_NOTE} ORDER BY m.key",
            self.find_source(scope, uri),
        )
        keep = set(self.batch.keep)
        old = [row for row in passages if row[1] not in keep]
        for _, id, used in old:
            if used:
                self.change(Change(id, "retire", {"deleted_at": self.batch.at}))
        plain = [(key, id) for key, id, used in old if not used]
        self.cache_removed([key for key, _ in plain])
        self.remove([key for key, _ in plain])
        self.audit("remove", *(id for _, id in plain))
        return len(old)

    def vanish(self, scope: str, uri: str) -> int:
        """Retire a source that no longer exists.

        Its row stays only for used memories. Without a hash it is read again if it returns.
        """
        retired, source = self.retire(scope, uri), self.find_source(scope, uri)
        if source is not None:
            unread = {"hash": None, "position": 0, "metadata": "{}"}
            self.update("sources", unread, "id", source)
            self.run(DROP_UNNAMED, source)
            self.audit("vanish", uri)
        return retired

    def purge(self, id: str) -> int:
        """Remove every trace of a memory, and leave a tombstone that keeps its text from coming back."""
        row = self.stored_row(id)
        if row is None:
            return 0
        key, scope = row["key"], row["scope"]
        self._blank(row["span"], row["session"], row["source"])
        history = self.run("SELECT before, after FROM history WHERE memory = ?", key)
        states = [row, *(json.loads(state) for both in history for state in both if state)]
        texts = {state["content"] for state in states if state.get("content")}
        sections = {None, *(state.get("section") for state in states)}
        metadata = {"{}", *(state["metadata"] for state in states if state.get("metadata"))}
        embedded = {vector_text(*parts) for parts in product(sections, texts, metadata)}
        self.expunge([hash_text(text) for text in embedded])
        named = self.column("SELECT entity FROM memory_entities WHERE memory = ?", key)
        earlier = {name.casefold() for state in states for name, _ in state.get("entities", ())}
        named += self.column("SELECT id FROM entities WHERE folded = ANY(?)", earlier)
        self.remove([key])
        self.run(DROP_UNNAMED, row["source"])
        self.release([id])
        self.drop_entities(named)
        salt = self.salt()
        hashes = {content_hash(text) for text in texts} | {row["content_hash"]}
        stones = [
            {"scope": self.shelf(scope), "hash": tombstone(hash, salt), "at": self.at}
            for hash in hashes
        ]
        self.put("tombstones", stones)
        self.record("purge", row)
        self.audit("purge", id)
        self.note_purge()
        return 1

    def drop_entities(self, named: Keys) -> None:
        """Delete those of these entities that no memory has any more."""
        unnamed = "NOT EXISTS (SELECT 1 FROM memory_entities WHERE entity = entities.id)"
        self.run(f"DELETE FROM entities WHERE id = ANY(?) AND {unnamed}", named)

    def release(self, gone: Ids) -> None:
        """Delete the relations of memories that are gone for good.

        What they replaced falls back to another replacement or becomes valid again. Questions that
        only they answered are open again.
        """
        asked = self.column(
            "SELECT DISTINCT target FROM relations WHERE type = 'answers' AND source = ANY(?)", gone
        )
        for end in ("source", "target"):
            self.run(f"DELETE FROM relations WHERE {end} = ANY(?)", gone)
        still = "SELECT 1 FROM relations r WHERE r.target = m.id AND r.type = 'answers'"
        unanswered = f"SELECT m.id FROM memories m WHERE m.id = ANY(?) AND m.answered = 1 AND NOT EXISTS ({still}) ORDER BY m.key"
        for id in self.column(unanswered, asked):
            self.change(Change(id, "reopen", {"answered": False}))
        replaced = "SELECT id FROM memories WHERE superseded_by = ANY(?) ORDER BY key DESC"
        for id in self.column(replaced, gone):  # the newest first, so that it may be a successor
            self.change(Change(id, "restore", {"superseded_by": None}))

    def reset(self, scopes: Keys | None) -> int:
        """Delete everything, or everything in some scopes, beyond recovery."""
        inside = within("scope", scopes)
        found = self.run(f"SELECT key, id FROM memories WHERE {inside}")
        self.remove([key for key, _ in found])
        self.release([id for _, id in found])
        topics = self.column(f"SELECT key FROM spans WHERE {inside}")
        self.unindex(TOPICS, topics)
        self.drop_vectors(TOPICS, topics)
        for table in ("spans", "sessions", "turns", "sources"):
            self.run(f"DELETE FROM {table} WHERE {inside}")
        self.drop_entities(self.column("SELECT id FROM entities"))
        # The cache is keyed by text, not by scope, and cached answers quote any memory: both may contain deleted text.
        self.run("DELETE FROM embedding_cache")
        self.expunge([])
        if scopes is None:
            self.run("DELETE FROM tombstones")
            self.drop_history(None)
        self.settle()
        self.note_purge()
        if found:
            self.audit("reset", len(found))
        return len(found)
