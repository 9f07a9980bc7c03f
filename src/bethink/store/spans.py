"""Sessions and their topics in SQLite: rows ↔ values, and what a Batch changes of them. Runs inside the caller's transaction.

A topic stands in its row, in the full-text index and among the span vectors; the three are changed together, here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from bethink.store import lexemes, rows
from bethink.types import Session, Span

if TYPE_CHECKING:
    from bethink.store.writer import Writer

Run = Callable[..., list[Any]]

SESSION = "SELECT n.id, s.key, n.host, n.title, o.uri, n.started_at, n.ended_at, n.metadata FROM sessions n JOIN scopes s ON s.id = n.scope LEFT JOIN sources o ON o.id = n.source"
SPAN = "SELECT p.id, s.key, p.session, p.parent, p.name, p.summary, p.line_start, p.line_end, p.depth, p.created_at, p.metadata, p.key FROM spans p JOIN scopes s ON s.id = p.scope"


def session(row: Sequence[Any]) -> Session:
    id, scope, host, title, source, started, ended, metadata = row
    return Session(
        id,
        scope,
        host,
        title,
        source or "",
        rows.moment(started),
        rows.moment(ended),
        json.loads(metadata),
    )


def span(row: Sequence[Any]) -> Span:
    id, scope, session, parent, name, summary, first, last, depth, created, metadata = row[:11]
    lines = (first, first if last is None else last)
    return Span(
        id,
        scope,
        session,
        parent,
        name,
        summary,
        lines,
        depth,
        rows.instant(created),
        json.loads(metadata),
    )


def topic_text(name: str, summary: str) -> str:
    """What is embedded for a topic."""
    return f"{name}\n{summary}"


# Writing


def put_session(writer: Writer, value: Session) -> None:
    scope = writer.scope(value.scope)
    source = writer.source(scope, value.source, "transcript") if value.source else None
    writer.run(
        "INSERT INTO sessions(id, scope, host, title, source, started_at, ended_at, metadata) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT(id) DO UPDATE SET title = iif(excluded.title = '', title, excluded.title),"
        " metadata = iif(excluded.metadata = '{}', metadata, excluded.metadata),"
        " started_at = min(coalesce(started_at, excluded.started_at), coalesce(excluded.started_at, started_at)),"
        " ended_at = max(coalesce(ended_at, excluded.ended_at), coalesce(excluded.ended_at, ended_at))",
        (
            value.id,
            scope,
            value.host,
            value.title,
            source,
            rows.stamp(value.started_at),
            rows.stamp(value.ended_at),
            rows.stored("metadata", value.metadata),
        ),
    )


def put_span(writer: Writer, value: Span, vectors: Sequence[Any]) -> None:
    """A new topic, or a known one with what is true of it now."""
    scope = writer.scope(value.scope)
    key = writer.run("SELECT key FROM spans WHERE id = ?", (value.id,)).get
    values = (
        scope,
        value.session,
        value.parent,
        value.name,
        value.summary,
        value.lines[0],
        value.lines[1],
        value.depth,
        rows.stamp(value.created_at),
        rows.stored("metadata", value.metadata),
        value.id,
    )
    if key is None:
        writer.run(
            "INSERT INTO spans(scope, session, parent, name, summary, line_start, line_end, depth, created_at, metadata, id)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            values,
        )
        key = writer.connection.last_insert_rowid()
    else:
        _unindex(writer, key)
        writer.run("DELETE FROM span_vectors WHERE span = ?", (key,))
        writer.run(
            "UPDATE spans SET scope = ?, session = ?, parent = ?, name = ?, summary = ?, line_start = ?, line_end = ?, depth = ?,"
            " created_at = ?, metadata = ? WHERE id = ?",
            values,
        )
    _index(writer, key, scope, value.name, value.summary)
    _vectors(writer, key, scope, vectors)


def _index(writer: Writer, key: int, scope: int, name: str, summary: str) -> None:
    from bethink.store.writer import scope_token

    writer.run(
        "INSERT INTO spans_fts(rowid, name, summary, scope) VALUES (?, ?, ?, ?)",
        (key, lexemes.prepare(name), lexemes.prepare(summary), scope_token(scope)),
    )


def _unindex(writer: Writer, key: int) -> None:
    """Takes a topic's words out of the index, which has to be told what they were: call this before its row changes."""
    from bethink.store.writer import scope_token

    name, summary, scope = writer.run(
        "SELECT name, summary, scope FROM spans WHERE key = ?", (key,)
    ).get
    writer.run(
        "INSERT INTO spans_fts(spans_fts, rowid, name, summary, scope) VALUES ('delete', ?, ?, ?, ?)",
        (key, lexemes.prepare(name), lexemes.prepare(summary), scope_token(scope)),
    )


def reindex(writer: Writer, key: int, scope: int, name: str, summary: str) -> None:
    """The words of a topic that another scope is about to have."""
    _unindex(writer, key)
    _index(writer, key, scope, name, summary)


def _vectors(writer: Writer, key: int, scope: int, vectors: Sequence[Any]) -> None:
    if len(vectors) == 0 or writer.batch.model is None:
        return
    from bethink.store.scan import encode

    model = writer.model(writer.batch.model, len(vectors[0]))
    writer.many(
        "INSERT INTO span_vectors(model, scope, span, data) VALUES (?, ?, ?, ?)",
        ((model, scope, key, encode(vector)) for vector in vectors),
    )


def revector(writer: Writer, id: str, vectors: Sequence[Any]) -> None:
    """New vectors of the batch's model in the place of the old."""
    row = writer.run("SELECT key, scope, name, summary FROM spans WHERE id = ?", (id,)).get
    if row is None or topic_text(*row[2:]) != writer.batch.made_of.get(id, topic_text(*row[2:])):
        return  # gone, or about something else by now
    writer.run(
        "DELETE FROM span_vectors WHERE span = ? AND model = (SELECT id FROM models WHERE name = ?)",
        (row[0], writer.batch.model),
    )
    _vectors(writer, row[0], row[1], vectors)


def blank(writer: Writer, id: str | None, session: str | None, source: int) -> None:
    """After a purge: names and summaries of topics were made from what was said, so those around the purged memory go too, and so does
    what its transcript keeps of the last exchange to go on from."""
    while id:
        row = writer.run(
            "SELECT key, scope, parent, name, summary FROM spans WHERE id = ?", (id,)
        ).get
        if row is None:
            break
        key, scope, id = row[:3]
        writer.uncache({topic_text(*row[3:])}, set())
        _unindex(writer, key)
        writer.run("DELETE FROM span_vectors WHERE span = ?", (key,))
        writer.run(
            "UPDATE spans SET name = '', summary = '', metadata = '{}' WHERE key = ?", (key,)
        )
        _index(writer, key, scope, "", "")
    if session:
        writer.run("UPDATE sessions SET title = '', metadata = '{}' WHERE id = ?", (session,))
        same = "SELECT id, metadata FROM sources WHERE uri = (SELECT uri FROM sources WHERE id = ?)"
        for row, metadata in list(writer.run(same, (source,))):
            writer.run(
                "UPDATE sources SET metadata = ? WHERE id = ?", (closed(metadata, session), row)
            )


def closed(metadata: str, session: str) -> str:
    """What is kept with a transcript, without the open topic of a session: vectors and words of its last exchange."""
    kept = json.loads(metadata)
    (kept.get("sessions", {}).get(session) or {}).pop("open", None)
    return json.dumps(kept, ensure_ascii=False)


def remove(writer: Writer, inside: str) -> None:
    """All sessions and topics of some scopes."""
    run = writer.run
    for (key,) in list(run(f"SELECT key FROM spans WHERE {inside}")):
        _unindex(writer, key)
    run(f"DELETE FROM span_vectors WHERE {inside}")
    for table in ("spans", "sessions", "turns"):
        run(f"DELETE FROM {table} WHERE {inside}")


def rebuild(writer: Writer) -> None:
    """The full-text index of topics anew from their rows."""
    writer.run("INSERT INTO spans_fts(spans_fts) VALUES ('delete-all')")
    for key, scope, name, summary in list(
        writer.run("SELECT key, scope, name, summary FROM spans")
    ):
        _index(writer, key, scope, name, summary)


# Reading


def sessions(
    run: Run, scopes: Sequence[int], limit: int, offset: int, prefix: str | None
) -> list[Session]:
    marks = ",".join("?" * len(scopes))
    named, values = (
        ("", ())
        if prefix is None
        else (" AND n.id >= ? AND n.id < ?", (prefix, prefix + "\U0010ffff"))
    )
    found = run(
        f"{SESSION} WHERE n.scope IN ({marks}){named} ORDER BY n.started_at DESC, n.id LIMIT ? OFFSET ?",
        (*scopes, *values, limit, offset),
    )
    return [session(row) for row in found]


def of_session(run: Run, id: str, scopes: Sequence[int]) -> list[Span]:
    marks = ",".join("?" * len(scopes))
    return [
        span(row)
        for row in run(
            f"{SPAN} WHERE p.session = ? AND p.scope IN ({marks}) ORDER BY p.line_start, p.depth, p.key",
            (id, *scopes),
        )
    ]


def by_id(run: Run, ids: Sequence[str], scopes: Sequence[int]) -> dict[str, Span]:
    marks = ",".join("?" * len(scopes))
    found = run(
        f"{SPAN} WHERE p.id IN (SELECT value FROM json_each(?)) AND p.scope IN ({marks})",
        (json.dumps(list(ids)), *scopes),
    )
    return {row[0]: span(row) for row in found}


def unembedded(run: Run, model: str, limit: int) -> list[Span]:
    missing = "NOT EXISTS (SELECT 1 FROM span_vectors v JOIN models d ON d.id = v.model WHERE v.span = p.key AND d.name = ?)"
    found = run(
        f"{SPAN} WHERE (p.name <> '' OR p.summary <> '') AND {missing} ORDER BY p.key LIMIT ?",
        (model, limit),
    )
    return [span(row) for row in found]


def keyword(
    run: Run, expression: str | None, scopes: Sequence[int], limit: int
) -> list[tuple[str, float]]:
    if expression is None or not scopes:
        return []
    return run(
        "SELECT p.id, -f.rank FROM spans_fts f CROSS JOIN spans p ON p.key = f.rowid"
        " WHERE f.spans_fts MATCH ? AND f.rank MATCH 'bm25(3.0, 1.0, 0.0)' ORDER BY f.rank LIMIT ?",
        (expression, limit),
    )
