"""What a Batch changes and takes away in PostgreSQL. The counterpart of adding, which is in `writer.py`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from bethink.errors import InvalidInput, NotFound, Overtaken
from bethink.store import rows
from bethink.store.bundle import receipt_of, receipt_text, valid_before
from bethink.store.leaving import replaced_by
from bethink.store.pg import rows as own
from bethink.store.pg import spans
from bethink.store.pg.writer import Writer
from bethink.store.writer import (
    ONCE,
    ONCE_KEPT,
    cache_key,
    circle,
    content_hash,
    index_tags,
    refuse_purged,
    vector_text,
)
from bethink.types import Change, Entity, Receipt

EDITABLE = (*rows.PLAIN, *rows.TIMES, *rows.JSONS, "content", "content_hash")
NAMES = (
    "SELECT e.name, e.type FROM memory_entities me JOIN entities e ON e.tenant = me.tenant AND e.id = me.entity"
    ' WHERE me.tenant = %s AND me.memory = %s ORDER BY e.name COLLATE "C", e.type'
)
ROW = (
    "key, id, scope, owner, kind, content, summary, section, importance, confidence, usefulness, access_count, created_at, updated_at,"
    " last_accessed, valid_from, valid_to, expires_at, deleted_at, superseded_by, answered, trust, source, line_start, line_end, position,"
    " span, session, dedup, content_hash, tags, keywords, metadata"
)


def apply(writer: Writer) -> Receipt:
    """The whole batch; or, where a write under its key went in before, that one's receipt."""
    once = writer.batch.once
    if not once:
        return applied(writer)
    known = writer.one(
        "SELECT value FROM facts WHERE tenant = %s AND name = %s", (writer.tenant, ONCE + once)
    )
    if known:
        return receipt_of(known[0])
    receipt = applied(writer)
    writer.run(
        "INSERT INTO facts(tenant, name, value) VALUES (%s, %s, %s)",
        (writer.tenant, ONCE + once, receipt_text(receipt, writer.at or 0)),
    )
    if cache_key(once)[0] % 64 == 0:
        writer.run(
            "DELETE FROM facts WHERE tenant = %s AND ((name >= 'once:' AND name < 'once;') OR (name >= 'answer:' AND name < 'answer;'))"
            f" AND ({own.json_of('value')} ->> 'at')::bigint < %s",
            (writer.tenant, (writer.at or 0) - ONCE_KEPT),
        )
    return receipt


def applied(writer: Writer) -> Receipt:
    batch = writer.batch
    for scope, uri, position in batch.expect:
        writer.expect(scope, uri, position)
    for id, was in batch.unchanged:
        row = writer.one(
            "SELECT updated_at FROM memories WHERE tenant = %s AND id = %s", (writer.tenant, id)
        )
        if row is None or row[0] != rows.stamp(was):
            raise Overtaken(
                f"The memory {id} was changed by another process.",
                "Read it again, and change what it says now.",
            )
    for scope, old, new in batch.move:
        move(writer, writer.scope(scope), old, new)
    for scope, source in batch.sources:
        writer.source(writer.scope(scope), source.uri, source.type, source)
        writer.told("source", source.uri)
    retired = sum(retire(writer, scope, uri) for scope, uri in batch.retire) + sum(
        vanish(writer, scope, uri) for scope, uri in batch.vanish
    )
    for id, lines, position in batch.place:
        place(writer, id, lines, position)
    for session in batch.sessions:
        spans.put_session(writer, session)
    spans.put_spans(writer, batch.spans)
    outcomes = writer.add(batch.add)
    # What was not stored after all, being known or purged, neither replaces nor relates to anything.
    absent = {
        entry.memory.id
        for entry, outcome in zip(batch.add, outcomes, strict=True)
        if outcome.status != "added"
    }
    changes = [one for one in batch.change if one.fields.get("superseded_by") not in absent]
    for one in changes:
        change(writer, one)
    relate(writer, absent)
    if batch.access:
        writer.run(
            "UPDATE memories SET access_count = access_count + u.times, last_accessed = %s FROM (SELECT id, count(*) AS times"
            " FROM unnest(%s::text[]) AS a(id) GROUP BY id) u WHERE memories.tenant = %s AND memories.id = u.id",
            (writer.at, list(batch.access), writer.tenant),
        )
    revector(writer)
    spans.revector(writer)
    purged = sum(purge(writer, id) for id in batch.purge)
    with writer.connection.pipeline():
        cache(writer)
        writer.settle()
    return Receipt(outcomes=outcomes, changed=len(changes), retired=retired, purged=purged)


def relate(writer: Writer, absent: set[str]) -> None:
    batch = writer.batch
    fresh = [
        relation
        for relation in batch.relate
        if relation.source not in absent and relation.target not in absent
    ]
    writer.put(
        "relations",
        [
            {
                "tenant": 0,
                "source": one.source,
                "target": one.target,
                "type": one.type,
                "created_at": writer.at,
                "actor": writer.actor,
            }
            for one in fresh
        ],
        "ON CONFLICT DO NOTHING",
    )
    for one in batch.unrelate:
        writer.run(
            "DELETE FROM relations WHERE tenant = %s AND source = %s AND target = %s AND type = %s",
            (writer.tenant, one.source, one.target, one.type),
        )
    for name, relations in (("relate", fresh), ("unrelate", batch.unrelate)):
        if relations:
            writer.told(name, *([one.source, one.type, one.target] for one in relations))


def revector(writer: Writer) -> None:
    """New vectors of the batch's model in the place of the old."""
    batch = writer.batch
    if not batch.vectors or batch.model is None:
        return
    found = writer.run(
        "SELECT id, key, scope, section, content FROM memories WHERE tenant = %s AND id = ANY(%s)",
        (writer.tenant, list(batch.vectors)),
    ).fetchall()
    texts = {
        id: vector_text(own.outward(section), own.outward(content) or "")
        for id, _, _, section, content in found
    }
    found = [
        row[:3] for row in found if texts[row[0]] == batch.made_of.get(row[0], texts[row[0]])
    ]  # the rest was changed meanwhile
    known = writer.one(
        "SELECT id FROM models WHERE tenant = %s AND name = %s", (writer.tenant, batch.model)
    )
    if known:
        writer.drop_vectors([key for _, key, _ in found], known[0])
    writer.vectors([(key, scope, batch.vectors[id]) for id, key, scope in found])


# Changing


def stored_row(writer: Writer, id: str) -> dict[str, Any] | None:
    cursor = writer.run(
        f"SELECT {ROW} FROM memories WHERE tenant = %s AND id = %s", (writer.tenant, id)
    )
    row = cursor.fetchone()
    if row is None:
        return None
    values = dict(zip((column.name for column in cursor.description or ()), row, strict=True))
    return values | {name: own.outward(values[name]) for name in own.TEXTS}


def change(writer: Writer, wanted: Change) -> None:
    old = stored_row(writer, wanted.id)
    if old is None:
        if wanted.id in writer.batch.keep:
            return  # a passage that was purged meanwhile
        raise NotFound(f"There is no memory {wanted.id}.", "`bethink list` shows what there is.")
    new: dict[str, Any] = {}
    named: tuple[list[list[str]], list[list[str]]] | None = None
    for field, value in wanted.fields.items():
        if field == "vote":
            new["usefulness"] = old["usefulness"] + value
        elif field == "entities":
            named = rename(writer, old["key"], value)
        elif field in EDITABLE:
            new[field] = rows.stored(field, value)
        else:
            raise ValueError(f"a change cannot set {field!r}")
    if old["dedup"] is not None and "content_hash" in new:
        new["dedup"] = own.dedup(new["content_hash"])
    if old["superseded_by"] and new.get("superseded_by", "") is None and "valid_to" not in new:
        new["valid_to"] = valid_before(states(writer, old["key"]))
    changed = {name: value for name, value in new.items() if old[name] != value}
    if "updated_at" not in changed and wanted.action != "vote":
        changed["updated_at"] = writer.at
    merged = {**old, **changed}
    refuse_twin(writer, merged)
    if (
        "content_hash" in changed
        and not writer.batch.allow_purged
        and writer.tombstoned({merged["content_hash"]})
    ):
        refuse_purged(merged["content"], states(writer, old["key"]))
    if changed.get("superseded_by") and leads_to(writer, merged["superseded_by"], wanted.id):
        raise circle(wanted.id, merged["superseded_by"])
    changed["row_hash"] = rows.row_hash(merged)
    reindexed = any(name in changed for name in ("content", "summary", "section", "tags"))
    if reindexed:
        writer.unindex([old["key"]])
    assignments = ", ".join(f"{name} = %s" for name in changed)
    kept = [own.inward(value) if name in own.TEXTS else value for name, value in changed.items()]
    writer.run(
        f"UPDATE memories SET {assignments} WHERE tenant = %s AND key = %s",
        (*kept, writer.tenant, old["key"]),
    )
    if "content" in changed or "section" in changed:
        # The old vectors are of another text. New ones come with the batch where there is a model.
        writer.drop_vectors([old["key"]])
    if reindexed:
        index(
            writer,
            [
                (
                    old["key"],
                    old["scope"],
                    merged["content"],
                    merged["summary"],
                    merged["section"],
                    merged["tags"],
                    *_source(writer, old["key"]),
                )
            ],
        )
    shown = [
        name for name in changed if name not in ("updated_at", "row_hash", "dedup", "content_hash")
    ]
    before, after = {name: old[name] for name in shown}, {name: merged[name] for name in shown}
    if named and named[0] != named[1]:
        before["entities"], after["entities"] = named
    writer.record([(old["key"], old["owner"], wanted.action, before, after)])
    writer.told(wanted.action, wanted.id)


def _source(writer: Writer, key: int) -> tuple[str, str]:
    uri, type = writer.one(
        f"SELECT o.uri, {rows.TYPE} FROM memories m JOIN sources o ON o.tenant = m.tenant AND o.id = m.source WHERE m.tenant = %s AND m.key = %s",
        (writer.tenant, key),
    )
    return uri, type


def index(
    writer: Writer, texts: Iterable[tuple[int, int, str, str, str | None, str, str, str]]
) -> None:
    """Makes the words of rows that are there already findable: (key, scope, content, summary, section, tags, uri, type)."""
    found = [
        (
            key,
            writer.worded(
                scope, content, summary, section, index_tags(json.loads(tags), uri, type)
            ),
        )
        for key, scope, content, summary, section, tags, uri, type in texts
    ]
    writer.put("words", [{"tenant": 0, "key": key, "lexed": worded.lexed} for key, worded in found])
    writer.run(
        "UPDATE memories m SET length = u.length, lexemes = u.lexemes FROM unnest(%s::bigint[], %s::int[], %s::bytea[]) AS u(key, length, lexemes)"
        " WHERE m.tenant = %s AND m.key = u.key",
        (
            [key for key, _ in found],
            [worded.length for _, worded in found],
            [worded.lexemes for _, worded in found],
            writer.tenant,
        ),
    )


def rename(
    writer: Writer, key: int, entities: Sequence[Entity]
) -> tuple[list[list[str]], list[list[str]]]:
    """Gives a memory other entities; returns the old and the new ones, for its history."""
    before = [list(row) for row in writer.run(NAMES, (writer.tenant, key))]
    writer.run(
        "DELETE FROM memory_entities WHERE tenant = %s AND memory = %s", (writer.tenant, key)
    )
    writer.entities([(key, entities)])
    return before, [list(row) for row in writer.run(NAMES, (writer.tenant, key))]


def refuse_twin(writer: Writer, row: dict[str, Any]) -> None:
    """A told text stands once per scope, also after an edit or when it comes back."""
    if row["dedup"] is None or row["deleted_at"] is not None:
        return
    twin = writer.one(
        "SELECT id FROM memories WHERE tenant = %s AND scope = %s AND dedup = %s AND deleted_at IS NULL AND key <> %s",
        (writer.tenant, row["scope"], row["dedup"], row["key"]),
    )
    if twin:
        raise InvalidInput(
            f"The memory {twin[0]} already says exactly this.", f"bethink forget {twin[0]}"
        )


def leads_to(writer: Writer, id: str, old: str) -> bool:
    """Whether a memory is another one, or was replaced by it, if only in the end."""
    chain = "SELECT m.superseded_by FROM memories m JOIN chain c ON m.id = c.id WHERE m.tenant = %s AND m.superseded_by IS NOT NULL"
    sql = f'WITH RECURSIVE chain(id) AS (SELECT %s::text COLLATE "C" UNION {chain}) SELECT 1 FROM chain WHERE id = %s'
    return bool(writer.one(sql, (id, writer.tenant, old)))


def states(writer: Writer, key: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """What was before and after each change of a memory, oldest first."""
    found = writer.run(
        "SELECT before, after FROM history WHERE tenant = %s AND memory = %s ORDER BY number",
        (writer.tenant, key),
    )
    return [(json.loads(before or "{}"), json.loads(after or "{}")) for before, after in found]


def place(writer: Writer, id: str, lines: tuple[int, int] | None, position: int) -> None:
    """Where a passage stands in its source is no part of its history."""
    row = stored_row(writer, id)
    if row is None:
        return  # purged meanwhile
    first, last = lines or (None, None)
    writer.run(
        "UPDATE memories SET line_start = %s, line_end = %s, position = %s, row_hash = %s WHERE tenant = %s AND id = %s",
        (
            first,
            last,
            position,
            rows.row_hash(row | {"line_start": first, "line_end": last}),
            writer.tenant,
            id,
        ),
    )


# Leaving


def source_id(writer: Writer, scope: str | int, uri: str) -> int | None:
    number = writer.known_scope(scope) if isinstance(scope, str) else scope
    row = writer.one(
        "SELECT id FROM sources WHERE tenant = %s AND scope = %s AND md5(uri) = md5(%s) AND uri = %s",
        (writer.tenant, number, uri, uri),
    )
    return int(row[0]) if row else None


def retire(writer: Writer, scope: str, uri: str) -> int:
    """Takes a source's old passages out: those that somebody used, linked or edited are only hidden, the rest is removed. What was
    told under the same name is nobody's passage, and stays."""
    source = source_id(writer, scope, uri)
    if source is None:
        return 0
    old = writer.run(
        "SELECT m.key, m.id, m.usefulness <> 0 OR m.access_count <> 0"
        " OR EXISTS (SELECT 1 FROM relations r WHERE r.tenant = m.tenant AND r.source = m.id)"
        " OR EXISTS (SELECT 1 FROM relations r WHERE r.tenant = m.tenant AND r.target = m.id)"
        f" OR EXISTS (SELECT 1 FROM history h WHERE h.tenant = m.tenant AND h.memory = m.key AND h.action NOT IN {rows.READING})"
        f" FROM memories m WHERE m.tenant = %s AND m.source = %s AND m.deleted_at IS NULL AND NOT m.id = ANY(%s) AND NOT {rows.TOLD} ORDER BY m.key",
        (writer.tenant, source, list(writer.batch.keep)),
    ).fetchall()
    for _, id, used in old:
        if used:
            change(writer, Change(id, "retire", {"deleted_at": writer.batch.at}))
    plain = [(key, id) for key, id, used in old if not used]
    remove(writer, [key for key, _ in plain])
    if plain:
        writer.run(
            "DELETE FROM history WHERE tenant = %s AND memory = ANY(%s)",
            (writer.tenant, [key for key, _ in plain]),
        )
        writer.told("remove", *(id for _, id in plain))
    return len(old)


def vanish(writer: Writer, scope: str, uri: str) -> int:
    """A source that is no more. Its row stays only for memories that were used; without a hash it is read anew if it returns."""
    retired = retire(writer, scope, uri)
    source = source_id(writer, scope, uri)
    if source is not None:
        writer.run(
            "UPDATE sources SET hash = NULL, position = 0, metadata = '{}' WHERE tenant = %s AND id = %s",
            (writer.tenant, source),
        )
        drop_source(writer, source)
        writer.told("vanish", uri)
    return retired


def drop_source(writer: Writer, source: int) -> None:
    """Takes a source out that nothing names any more. Of a conversation it stays as long as the session does: it tells how far was read."""
    named = (
        f"NOT EXISTS (SELECT 1 FROM {table} m WHERE m.tenant = o.tenant AND m.source = o.id)"
        for table in ("memories", "sessions")
    )
    writer.run(
        f"DELETE FROM sources o WHERE o.tenant = %s AND o.id = %s AND {' AND '.join(named)}",
        (writer.tenant, source),
    )
    writer.source_ids.clear()


def move(writer: Writer, scope: int, old: str, new: str) -> None:
    """Gives a source another uri. Its path is a searchable word of its memories."""
    source, there = source_id(writer, scope, old), source_id(writer, scope, new)
    if source is None:
        return
    if there is None:
        writer.run(
            "UPDATE sources SET uri = %s WHERE tenant = %s AND id = %s",
            (new, writer.tenant, source),
        )
    else:
        writer.run(
            "UPDATE memories SET source = %s WHERE tenant = %s AND source = %s",
            (there, writer.tenant, source),
        )
        writer.run("DELETE FROM sources WHERE tenant = %s AND id = %s", (writer.tenant, source))
    writer.source_ids.clear()
    moved = writer.run(
        f"SELECT m.key, m.content, m.summary, m.section, m.tags, o.uri, {rows.TYPE} FROM memories m JOIN sources o ON o.tenant = m.tenant AND o.id = m.source"
        " WHERE m.tenant = %s AND m.source = %s",
        (writer.tenant, there or source),
    ).fetchall()
    writer.unindex([row[0] for row in moved])
    index(
        writer,
        (
            (
                key,
                scope,
                own.outward(content) or "",
                own.outward(summary) or "",
                own.outward(section),
                tags,
                uri,
                type,
            )
            for key, content, summary, section, tags, uri, type in moved
        ),
    )
    writer.told("move", [old, new])


def remove(writer: Writer, keys: Sequence[int]) -> None:
    if not keys:
        return
    writer.unindex(keys)
    writer.drop_vectors(keys)
    for table, column in (("memory_entities", "memory"), ("memories", "key")):
        writer.run(
            f"DELETE FROM {table} WHERE tenant = %s AND {column} = ANY(%s)",
            (writer.tenant, list(keys)),
        )


def purge(writer: Writer, id: str) -> int:
    row = stored_row(writer, id)
    if row is None:
        return 0
    key = row["key"]
    spans.blank(writer, row["span"], row["session"], row["source"])
    texts, sections = {row["content"]}, {row["section"]}
    for state in (state for both in states(writer, key) for state in both):
        texts |= {state["content"]} if state.get("content") else set()
        sections |= {state["section"]} if "section" in state else set()
    writer.uncache(texts, sections)
    remove(writer, [key])
    drop_source(writer, row["source"])
    writer.run("DELETE FROM history WHERE tenant = %s AND memory = %s", (writer.tenant, key))
    release(writer, [id])
    drop_entities(writer)
    hashes = {writer.tombstone(content_hash(text)) for text in texts} | {
        writer.tombstone(row["content_hash"])
    }
    writer.put(
        "tombstones",
        [{"tenant": 0, "hash": hash, "at": writer.at} for hash in sorted(hashes)],
        "ON CONFLICT DO NOTHING",
    )
    drop_answers(writer)
    writer.record([(key, row["owner"], "purge", None, None)])
    writer.told("purge", id)
    return 1


def release(writer: Writer, gone: Sequence[str]) -> None:
    """Takes out the relations of memories that are gone for good. What they replaced goes back to what replaced it before, or is valid
    again as it was; what only they answered is open."""
    tenant, ids = writer.tenant, list(gone)
    answered = "SELECT DISTINCT target FROM relations WHERE tenant = %s AND type = 'answers' AND source = ANY(%s)"
    asked = [target for (target,) in writer.run(answered, (tenant, ids)).fetchall()]
    writer.run(
        "DELETE FROM relations WHERE tenant = %s AND (source = ANY(%s) OR target = ANY(%s))",
        (tenant, ids, ids),
    )
    still = "SELECT 1 FROM relations r WHERE r.tenant = m.tenant AND r.target = m.id AND r.type = 'answers'"
    unanswered = f"m.tenant = %s AND m.id = ANY(%s) AND m.answered = 1 AND NOT EXISTS ({still})"
    for (id,) in writer.run(
        f"SELECT m.id FROM memories m WHERE {unanswered} ORDER BY m.key", (tenant, asked)
    ).fetchall():
        change(writer, Change(id, "reopen", {"answered": False}))
    replaced = "SELECT id FROM memories WHERE tenant = %s AND superseded_by = ANY(%s) ORDER BY key"
    for (id,) in writer.run(replaced, (tenant, ids)).fetchall():
        before = writer.run(
            "SELECT r.source, coalesce(m.valid_from, m.created_at) FROM relations r JOIN memories m ON m.tenant = r.tenant AND m.id = r.source"
            " WHERE r.tenant = %s AND r.target = %s AND r.type = 'supersedes' ORDER BY r.created_at DESC, m.key DESC",
            (tenant, id),
        )
        by, at = next(
            (row for row in before.fetchall() if not leads_to(writer, row[0], id)), (None, None)
        )
        change(writer, replaced_by(id, by, at))


def drop_answers(writer: Writer) -> None:
    """Takes out the answers that are kept for requests that may come again: any of them may quote what is gone."""
    writer.run(
        "DELETE FROM facts WHERE tenant = %s AND name >= 'answer:' AND name < 'answer;'",
        (writer.tenant,),
    )


def drop_entities(writer: Writer) -> None:
    """Takes names out that no memory has any more."""
    writer.run(
        "DELETE FROM entities e WHERE e.tenant = %s AND NOT EXISTS (SELECT 1 FROM memory_entities me WHERE me.tenant = e.tenant AND me.entity = e.id)",
        (writer.tenant,),
    )


def cache(writer: Writer) -> None:
    batch = writer.batch
    if not batch.cache or batch.model is None:
        return
    from bethink.store.scan import encode

    given = [
        {
            "tenant": 0,
            "hash": bytes.fromhex(hash),
            "model": writer.model(batch.model, len(vectors[0])),
            "data": b"".join(encode(vector) for vector in vectors),
        }
        for hash, vectors in batch.cache.items()
        if bytes.fromhex(hash) not in writer.refused
    ]
    writer.put("embedding_cache", given, "ON CONFLICT DO NOTHING")
