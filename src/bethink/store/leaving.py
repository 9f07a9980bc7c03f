"""How memories leave SQLite: retired with their source, or purged, with what must change in those that stay.

Like the rest of a batch this runs inside the writer's open transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bethink.store import rows, spans
from bethink.types import Change

if TYPE_CHECKING:
    from bethink.store.writer import Writer

# Nothing names a source any more. Of a conversation it stays as long as the session does: it tells how far was read.
UNNAMED = "NOT EXISTS (SELECT 1 FROM memories WHERE source = sources.id) AND NOT EXISTS (SELECT 1 FROM sessions WHERE source = sources.id)"

# Among the facts about the database: pages of the file or of its log may still hold what was purged.
SCRUB = "scrub"


def retire(writer: Writer, scope: str, uri: str) -> int:
    """Takes a source's old passages out: those that somebody used, linked or edited are only hidden, the rest is removed. What was
    told under the same name is nobody's passage, and stays."""
    source = writer.run(
        "SELECT id FROM sources WHERE scope = (SELECT id FROM scopes WHERE key = ?) AND uri = ?",
        (scope, uri),
    ).get
    if source is None:
        return 0
    keep = set(writer.batch.keep)
    passages = (
        "SELECT m.key, m.id, m.usefulness <> 0 OR m.access_count <> 0"
        " OR EXISTS (SELECT 1 FROM relations WHERE source = m.id) OR EXISTS (SELECT 1 FROM relations WHERE target = m.id)"
        f" OR EXISTS (SELECT 1 FROM history WHERE memory = m.key AND action NOT IN {rows.READING})"
        f" FROM memories m WHERE m.source = ? AND m.deleted_at IS NULL AND NOT {rows.TOLD}"
    )
    old = [row for row in writer.run(passages, (source,)) if row[1] not in keep]
    for key, id, used in old:
        if used:
            writer.change(Change(id, "retire", {"deleted_at": writer.batch.at}))
        else:
            writer.remove(key)
            writer.run("DELETE FROM history WHERE memory = ?", (key,))
    return len(old)


def vanish(writer: Writer, scope: str, uri: str) -> int:
    """A source that is no more. Its row stays only for memories that were used; without a hash it is read anew if it returns."""
    retired = retire(writer, scope, uri)
    where = "scope = (SELECT id FROM scopes WHERE key = ?) AND uri = ?"
    writer.run(
        f"UPDATE sources SET hash = NULL, position = 0, metadata = '{{}}' WHERE {where}",
        (scope, uri),
    )
    writer.run(f"DELETE FROM sources WHERE {where} AND {UNNAMED}", (scope, uri))
    return retired


def purge(writer: Writer, id: str) -> int:
    row = writer.run(
        "SELECT key, content, section, source, span, session FROM memories WHERE id = ?", (id,)
    ).get
    if row is None:
        return 0
    key, content, section, source, span, session = row
    spans.blank(writer, span, session, source)
    texts, sections = {content}, {section}
    for state in (state for both in writer.states(key) for state in both):
        texts |= {state["content"]} if state.get("content") else set()
        sections |= {state["section"]} if "section" in state else set()
    writer.uncache(texts, sections)
    named = [
        row[0] for row in writer.run("SELECT entity FROM memory_entities WHERE memory = ?", (key,))
    ]
    writer.remove(key)
    writer.run(f"DELETE FROM sources WHERE id = ? AND {UNNAMED}", (source,))
    writer.run("DELETE FROM history WHERE memory = ?", (key,))
    release(writer, [id])
    writer.many(
        "DELETE FROM entities WHERE id = ? AND NOT EXISTS (SELECT 1 FROM memory_entities WHERE entity = entities.id)",
        ((entity,) for entity in named),
    )
    writer.entity_ids.clear()
    writer.bury(texts)
    writer.drop_answers()
    writer.record(key, "purge", None, None)
    writer.run("INSERT OR IGNORE INTO meta(key, value) VALUES (?, '')", (SCRUB,))
    return 1


def release(writer: Writer, gone: Sequence[str]) -> None:
    """Takes out the relations of memories that are gone for good. What they replaced goes back to what replaced it before, or is valid
    again as it was; what only they answered is open."""
    ids = rows.listed(gone)
    answered = (
        f"SELECT DISTINCT target FROM relations WHERE type = 'answers' AND source IN {rows.LISTED}"
    )
    asked = [target for (target,) in writer.run(answered, (ids,))]
    writer.run(
        f"DELETE FROM relations WHERE source IN {rows.LISTED} OR target IN {rows.LISTED}",
        (ids, ids),
    )
    still = "SELECT 1 FROM relations WHERE target = m.id AND type = 'answers'"
    unanswered = f"SELECT m.id FROM memories m WHERE m.id IN {rows.LISTED} AND m.answered = 1 AND NOT EXISTS ({still}) ORDER BY m.key"
    for (id,) in list(writer.run(unanswered, (rows.listed(asked),))):
        writer.change(Change(id, "reopen", {"answered": False}))
    for (id,) in list(
        writer.run(
            f"SELECT id FROM memories WHERE superseded_by IN {rows.LISTED} ORDER BY key", (ids,)
        )
    ):
        before = writer.run(
            "SELECT r.source, coalesce(m.valid_from, m.created_at) FROM relations r JOIN memories m ON m.id = r.source"
            " WHERE r.target = ? AND r.type = 'supersedes' ORDER BY r.created_at DESC, m.key DESC",
            (id,),
        )
        by, at = next(
            (row for row in list(before) if not writer.leads_to(row[0], id)), (None, None)
        )
        writer.change(replaced_by(id, by, at))


def replaced_by(id: str, by: str | None, at: int | None) -> Change:
    """Puts a memory behind another one, from when that is valid, or behind none."""
    if by is None:
        return Change(id, "restore", {"superseded_by": None})
    return Change(id, "supersede", {"superseded_by": by, "valid_to": rows.moment(at)})
