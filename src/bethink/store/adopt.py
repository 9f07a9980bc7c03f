"""One scope goes over to another in SQLite, as when a project's folder was moved or renamed. Runs inside the caller's transaction.

Where the new scope does not exist yet, its row is simply called otherwise. Else everything is moved into it, and what both hold is
joined: a source is read once, a told text stands once. Rows of `scopes` are never removed, since other processes know scopes by number
and a number must not come to mean another project. The same processes learn of moved vectors as of any others: by new ids, and by the
log of removed ones.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from bethink.store import leaving, lexemes, rows, spans
from bethink.types import Change

if TYPE_CHECKING:
    from bethink.store.writer import Writer

ORIGIN = "note:origin:"  # before a scope, among the facts about the database: what tells its project from others wherever it lies
ADOPTED, ADOPTED_END = (
    "note:adopted:",
    "note:adopted;",
)  # before a folder that is gone: the scope that has its memories now


class Adopted(NamedTuple):
    memories: int = 0  # that went over
    joined: int = 0  # that the new scope held too


def note_origin(writer: Writer, key: str, origin: str) -> None:
    if origin and writer.run("SELECT value FROM meta WHERE key = ?", (ORIGIN + key,)).get != origin:
        writer.run("INSERT OR REPLACE INTO meta(key, value) VALUES (?, ?)", (ORIGIN + key, origin))


def adopt(writer: Writer, old: str, new: str) -> Adopted:
    row = writer.run("SELECT id, path FROM scopes WHERE key = ?", (old,)).get
    if row is None or old == new:
        return Adopted()
    id, path = row
    held = writer.run("SELECT count(*) FROM memories WHERE scope = ?", (id,)).get
    if writer.run("SELECT 1 FROM scopes WHERE key = ?", (new,)).get:
        done = _join(writer, old, id, writer.scope(new))
    else:
        writer.run("UPDATE scopes SET key = ? WHERE id = ?", (new, id))
        writer.scope(new)  # gives it the new name and path
        done = Adopted(held)
    _remember(writer, old, new, path)
    return done


def _remember(writer: Writer, old: str, new: str, path: str) -> None:
    """Transcripts know the scope of each of their conversations; and those of the old folder that were not read yet belong here too."""
    writer.run(
        "UPDATE sources SET metadata = replace(metadata, ?1, ?2) WHERE type = 'transcript' AND instr(metadata, ?1)",
        (f'"{old}"', f'"{new}"'),
    )
    writer.run(
        "UPDATE meta SET value = ? WHERE key >= ? AND key < ? AND value = ?",
        (new, ADOPTED, ADOPTED_END, old),
    )
    if path and old.startswith("project:"):
        writer.run("INSERT OR REPLACE INTO meta(key, value) VALUES (?, ?)", (ADOPTED + path, new))
    writer.run("DELETE FROM meta WHERE key = ?", (ORIGIN + old,))


def _join(writer: Writer, key: str, old: int, new: int) -> Adopted:
    joined = _sources(writer, key, old, new) + _told(writer, old, new)
    moved = _memories(writer, old, new)
    _topics(writer, old, new)
    for table, owner in (("vectors", "memory"), ("span_vectors", "span")):
        writer.run(
            f"INSERT INTO {table}(model, scope, {owner}, data) SELECT model, ?, {owner}, data FROM {table} WHERE scope = ? ORDER BY id",
            (new, old),
        )
        writer.run(f"DELETE FROM {table} WHERE scope = ?", (old,))
    writer.run(
        "INSERT OR IGNORE INTO turns(scope, identity) SELECT ?, identity FROM turns WHERE scope = ?",
        (new, old),
    )
    writer.run("DELETE FROM turns WHERE scope = ?", (old,))
    return Adopted(moved, joined)


def _sources(writer: Writer, key: str, old: int, new: int) -> int:
    """The sources of the old scope, those that both know made one."""
    both = writer.run(
        "SELECT a.uri, a.id, b.id, a.position > b.position, b.hash IS NOT NULL AND b.type <> 'transcript' FROM sources a"
        " JOIN sources b ON b.scope = ? AND b.uri = a.uri WHERE a.scope = ?",
        (new, old),
    )
    joined = 0
    for uri, theirs, ours, further, document in list(both):
        if document:
            joined += _passages(writer, theirs, ours)
            leaving.retire(
                writer, key, uri
            )  # what the new reading does not have any more, as by any later reading
        elif further:  # the transcript was read on under its old name
            writer.run(
                "UPDATE sources SET (hash, position, read_at, metadata) = (SELECT hash, position, read_at, metadata FROM sources WHERE id = ?)"
                " WHERE id = ?",
                (theirs, ours),
            )
        for table in ("memories", "sessions"):
            writer.run(f"UPDATE {table} SET source = ? WHERE source = ?", (ours, theirs))
        writer.run("DELETE FROM sources WHERE id = ?", (theirs,))
    writer.run("UPDATE sources SET scope = ? WHERE scope = ?", (new, old))
    return joined


def _passages(writer: Writer, theirs: int, ours: int) -> int:
    """What both read of a document, in the order of the new reading. A passage that was known under the old name keeps its id, its votes
    and its being forgotten."""
    read = f"SELECT m.key, m.id, m.content_hash, m.section, m.deleted_at FROM memories m WHERE m.source = ? AND NOT {rows.TOLD} ORDER BY m.position, m.key"
    fresh: defaultdict[tuple[Any, Any], list[tuple[int, str]]] = defaultdict(list)
    for key, id, hash, section, deleted in writer.run(read, (ours,)):
        if deleted is None:
            fresh[hash, section].append((key, id))
    joined = 0
    for key, id, hash, section, deleted in list(writer.run(read, (theirs,))):
        last = (
            writer.run(
                "SELECT action FROM history WHERE memory = ? ORDER BY number DESC LIMIT 1", (key,)
            ).get
            if deleted
            else ""
        )
        if last not in ("", "forget") or not fresh[hash, section]:
            continue
        twin, other = fresh[hash, section].pop(0)
        first, end, position = writer.run(
            "SELECT line_start, line_end, position FROM memories WHERE key = ?", (twin,)
        ).get
        writer.place(id, None if first is None else (first, end), position)
        writer.run("UPDATE memories SET source = ? WHERE key = ?", (ours, key))
        _bequeath(writer, other, id)
        writer.remove(twin)
        writer.run("DELETE FROM history WHERE memory = ?", (twin,))
        writer.run("DELETE FROM relations WHERE source = ?1 OR target = ?1", (other,))
        writer.run("UPDATE memories SET superseded_by = ? WHERE superseded_by = ?", (id, other))
        joined += 1
    return joined


def _told(writer: Writer, old: int, new: int) -> int:
    """A told text stands once. The one that was there first stays, since its id may stand in rules, unless it was replaced meanwhile."""
    twins = writer.run(
        f"SELECT a.id, b.id, a.{' AND a.'.join(f'{name} IS NULL' for name in ('superseded_by', 'valid_to', 'expires_at'))} FROM memories a"
        " JOIN memories b ON b.scope = ? AND b.dedup = a.dedup AND b.deleted_at IS NULL WHERE a.scope = ? AND a.dedup IS NOT NULL AND a.deleted_at IS NULL",
        (new, old),
    )
    number = 0
    for first, second, stands in list(twins):
        stays, goes = (first, second) if stands else (second, first)
        _bequeath(writer, goes, stays)
        behind = {} if writer.leads_to(stays, goes) else {"superseded_by": stays}
        writer.change(Change(goes, "merge", {**behind, "deleted_at": writer.batch.at}))
        number += 1
    return number


def _bequeath(writer: Writer, goes: str, stays: str) -> None:
    """What was thought of one memory, for the one that stands in its place."""
    writer.run(
        "UPDATE memories SET usefulness = memories.usefulness + g.usefulness, access_count = memories.access_count + g.access_count,"
        " last_accessed = nullif(max(coalesce(memories.last_accessed, 0), coalesce(g.last_accessed, 0)), 0)"
        " FROM (SELECT usefulness, access_count, last_accessed FROM memories WHERE id = ?) g WHERE memories.id = ?",
        (goes, stays),
    )
    for end, other in (("source", "target"), ("target", "source")):
        writer.run(
            f"INSERT OR IGNORE INTO relations({end}, {other}, type, created_at, actor)"
            f" SELECT ?1, {other}, type, created_at, actor FROM relations WHERE {end} = ?2 AND {other} <> ?1",
            (stays, goes),
        )


def _memories(writer: Writer, old: int, new: int) -> int:
    """The rows, and the words of each under the new scope."""
    from bethink.store.writer import Worded, index_tags

    columns = (
        f"m.key, m.content, m.summary, m.section, m.tags, m.length, m.lexemes, o.uri, {rows.TYPE}"
    )
    text = f"SELECT {columns} FROM memories m JOIN sources o ON o.id = m.source WHERE m.key = ?"
    keys = [
        row[0]
        for row in writer.run("SELECT key FROM memories WHERE scope = ? ORDER BY key", (old,))
    ]
    for key in keys:
        key, content, summary, section, tags, length, packed, uri, type = writer.run(
            text, (key,)
        ).get
        texts = (content, summary, section or "", index_tags(json.loads(tags), uri, type))
        writer.unindex(key)
        first, second, third, fourth = map(lexemes.prepare, texts)
        writer.index_words(key, new, Worded((first, second, third, fourth), packed, length))
    writer.run("UPDATE memories SET scope = ? WHERE scope = ?", (new, old))
    return len(keys)


def _topics(writer: Writer, old: int, new: int) -> None:
    writer.run("UPDATE sessions SET scope = ? WHERE scope = ?", (new, old))
    for key, name, summary in list(
        writer.run("SELECT key, name, summary FROM spans WHERE scope = ?", (old,))
    ):
        spans.reindex(writer, key, new, name, summary)
    writer.run("UPDATE spans SET scope = ? WHERE scope = ?", (new, old))
