"""Sessions and topics in PostgreSQL: rows ↔ values, and what a Batch changes of them. Runs inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from bethink.store import rows
from bethink.store.pg import words
from bethink.store.spans import closed, session, span, topic_text
from bethink.types import Session, Span

if TYPE_CHECKING:
    from bethink.store.pg.writer import Writer

Run = Callable[..., list[Any]]

SESSION = (
    "SELECT n.id, s.key, n.host, n.title, o.uri, n.started_at, n.ended_at, n.metadata FROM sessions n JOIN scopes s ON s.tenant = n.tenant AND s.id = n.scope"
    " LEFT JOIN sources o ON o.tenant = n.tenant AND o.id = n.source"
)
SPAN = (
    "SELECT p.id, s.key, p.session, p.parent, p.name, p.summary, p.line_start, p.line_end, p.depth, p.created_at, p.metadata, p.key"
    " FROM spans p JOIN scopes s ON s.tenant = p.tenant AND s.id = p.scope"
)
# BM25 as FTS5 counts it: a name counts three times as much as a summary.
FOUND = """
WITH found AS MATERIALIZED (SELECT f.key, f.lexed FROM find_spans(%s::tsquery) f),
  size AS (SELECT greatest(count(*), 1)::float8 AS n, greatest(avg(length(w.lexed)), 1)::float8 AS average
           FROM spans p JOIN span_words w ON w.tenant = p.tenant AND w.key = p.key WHERE p.tenant = %s AND p.scope = ANY(%s)),
  counted AS (SELECT f.key, length(f.lexed) AS size, u.lexeme,
                     (SELECT sum(CASE w WHEN 'A' THEN 3.0 ELSE 1.0 END) FROM unnest(u.weights) w)::float8 AS times
              FROM found f CROSS JOIN LATERAL unnest(f.lexed) u WHERE u.lexeme = ANY(%s)),
  known AS (SELECT lexeme, count(*)::float8 AS df FROM counted GROUP BY lexeme)
SELECT p.id, greatest(coalesce(sum(ln(1 + (size.n - least(known.df, size.n) + 0.5) / (known.df + 0.5)) * counted.times * 2.2
         / (counted.times + 1.2 * (0.25 + 0.75 * counted.size / size.average))), 0), 1e-6)::float8 AS score
FROM found f JOIN spans p ON p.tenant = %s AND p.key = f.key CROSS JOIN size
  LEFT JOIN counted ON counted.key = f.key LEFT JOIN known ON known.lexeme = counted.lexeme
WHERE p.scope = ANY(%s) GROUP BY p.id, p.key ORDER BY score DESC, p.key LIMIT %s
"""


# Writing


def put_session(writer: Writer, value: Session) -> None:
    scope = writer.scope(value.scope)
    source = writer.source(scope, value.source, "transcript") if value.source else None
    writer.run(
        "INSERT INTO sessions(tenant, id, scope, host, title, source, started_at, ended_at, metadata) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)"
        " ON CONFLICT(tenant, id) DO UPDATE SET title = CASE excluded.title WHEN '' THEN sessions.title ELSE excluded.title END,"
        " metadata = CASE excluded.metadata WHEN '{}' THEN sessions.metadata ELSE excluded.metadata END,"
        " started_at = least(sessions.started_at, excluded.started_at), ended_at = greatest(sessions.ended_at, excluded.ended_at)",
        (
            writer.tenant,
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
    writer.told("session", value.id)


def put_spans(writer: Writer, spans: Sequence[tuple[Span, Sequence[Any]]]) -> None:
    """New topics, or known ones with what is true of them now."""
    if not spans:
        return
    keys = put_rows(writer, [value for value, _ in spans])
    writer.run(
        "DELETE FROM span_vectors WHERE tenant = %s AND span = ANY(%s)",
        (writer.tenant, list(keys.values())),
    )
    latest = {value.id: (value, vectors) for value, vectors in spans}
    writer.vectors(
        [(keys[id], writer.scope(value.scope), vectors) for id, (value, vectors) in latest.items()],
        "span_vectors",
        "span",
    )


def put_rows(writer: Writer, spans: Sequence[Span]) -> dict[str, int]:
    """The rows of topics and their words; gives their keys."""
    found = writer.run(
        "SELECT id, key FROM spans WHERE tenant = %s AND id = ANY(%s)",
        (writer.tenant, [value.id for value in spans]),
    )
    keys: dict[str, int] = dict(found.fetchall())
    for value in spans:
        keys.setdefault(value.id, writer.number())
    with writer.connection.pipeline():
        for value in spans:
            scope = (
                writer.scope_ids[value.scope]
                if value.scope in writer.scope_ids
                else writer.scope(value.scope)
            )
            writer.run(
                "INSERT INTO spans(tenant, key, id, scope, session, parent, name, summary, line_start, line_end, depth, created_at, metadata)"
                " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (tenant, id) DO UPDATE SET scope = excluded.scope,"
                " session = excluded.session, parent = excluded.parent, name = excluded.name, summary = excluded.summary, line_start = excluded.line_start,"
                " line_end = excluded.line_end, depth = excluded.depth, created_at = excluded.created_at, metadata = excluded.metadata",
                (
                    writer.tenant,
                    keys[value.id],
                    value.id,
                    scope,
                    value.session,
                    value.parent,
                    value.name,
                    value.summary,
                    *value.lines,
                    value.depth,
                    rows.stamp(value.created_at),
                    rows.stored("metadata", value.metadata),
                ),
            )
            index(writer, keys[value.id], scope, value.name, value.summary)
    writer.told("topic", *(value.id for value in spans))
    return keys


def index(writer: Writer, key: int, scope: int, name: str, summary: str) -> None:
    writer.run(
        "INSERT INTO span_words(tenant, key, lexed) VALUES (%s, %s, %s::tsvector) ON CONFLICT (tenant, key) DO UPDATE SET lexed = excluded.lexed",
        (writer.tenant, key, words.topic(words.mark(writer.tenant, scope), name, summary)),
    )


def revector(writer: Writer) -> None:
    """New vectors of the batch's model in the place of the old."""
    batch = writer.batch
    if not batch.span_vectors:
        return
    found = writer.run(
        "SELECT id, key, scope, name, summary FROM spans WHERE tenant = %s AND id = ANY(%s)",
        (writer.tenant, list(batch.span_vectors)),
    ).fetchall()
    texts = {row[0]: topic_text(*row[3:]) for row in found}
    found = [
        row[:3] for row in found if texts[row[0]] == batch.made_of.get(row[0], texts[row[0]])
    ]  # the rest was changed meanwhile
    writer.run(
        "DELETE FROM span_vectors WHERE tenant = %s AND span = ANY(%s) AND model = (SELECT id FROM models WHERE tenant = %s AND name = %s)",
        (writer.tenant, [key for _, key, _ in found], writer.tenant, batch.model),
    )
    writer.vectors(
        [(key, scope, batch.span_vectors[id]) for id, key, scope in found], "span_vectors", "span"
    )


def blank(writer: Writer, id: str | None, session: str | None, source: int) -> None:
    """After a purge: names and summaries of topics were made from what was said, so those around the purged memory go too, and so does
    what its transcript keeps of the last exchange to go on from."""
    while id:
        row = writer.one(
            "SELECT key, parent, name, summary FROM spans WHERE tenant = %s AND id = %s",
            (writer.tenant, id),
        )
        if row is None:
            break
        key, id = row[:2]
        writer.uncache({topic_text(*row[2:])}, set())
        writer.run(
            "UPDATE spans SET name = '', summary = '', metadata = '{}' WHERE tenant = %s AND key = %s",
            (writer.tenant, key),
        )
        writer.run(
            "UPDATE span_words SET lexed = '' WHERE tenant = %s AND key = %s", (writer.tenant, key)
        )
        writer.run("DELETE FROM span_vectors WHERE tenant = %s AND span = %s", (writer.tenant, key))
    if session:
        writer.run(
            "UPDATE sessions SET title = '', metadata = '{}' WHERE tenant = %s AND id = %s",
            (writer.tenant, session),
        )
        same = (
            "SELECT o.id, o.metadata FROM sources o JOIN sources s ON s.tenant = o.tenant AND md5(o.uri) = md5(s.uri)"
            " WHERE o.tenant = %s AND s.id = %s"
        )
        for known, metadata in writer.run(same, (writer.tenant, source)).fetchall():
            writer.run(
                "UPDATE sources SET metadata = %s WHERE tenant = %s AND id = %s",
                (closed(metadata, session), writer.tenant, known),
            )


def remove(writer: Writer, scopes: Sequence[int]) -> None:
    """All sessions and topics of some scopes."""
    inside = (writer.tenant, list(scopes))
    writer.run(
        "DELETE FROM span_words WHERE tenant = %s AND key IN (SELECT key FROM spans WHERE tenant = %s AND scope = ANY(%s))",
        (writer.tenant, *inside),
    )
    for table in ("span_vectors", "spans", "sessions", "turns"):
        writer.run(f"DELETE FROM {table} WHERE tenant = %s AND scope = ANY(%s)", inside)


def rebuild(writer: Writer) -> None:
    """The words of topics anew from their rows."""
    writer.run("DELETE FROM span_words WHERE tenant = %s", (writer.tenant,))
    found = writer.run(
        "SELECT key, scope, name, summary FROM spans WHERE tenant = %s", (writer.tenant,)
    ).fetchall()
    for key, scope, name, summary in found:
        index(writer, key, scope, name, summary)


# Reading


def sessions(
    run: Run, tenant: int, scopes: Sequence[int], limit: int, offset: int, prefix: str | None
) -> list[Session]:
    named, values = ("", ()) if prefix is None else (" AND starts_with(n.id, %s)", (prefix,))
    found = run(
        f"{SESSION} WHERE n.tenant = %s AND n.scope = ANY(%s){named} ORDER BY n.started_at DESC NULLS LAST, n.id LIMIT %s OFFSET %s",
        (tenant, list(scopes), *values, limit, offset),
    )
    return [session(row) for row in found]


def of_session(run: Run, tenant: int, id: str, scopes: Sequence[int]) -> list[Span]:
    sql = f"{SPAN} WHERE p.tenant = %s AND p.session = %s AND p.scope = ANY(%s) ORDER BY p.line_start, p.depth, p.key"
    return [span(row) for row in run(sql, (tenant, id, list(scopes)))]


def by_id(run: Run, tenant: int, ids: Sequence[str], scopes: Sequence[int]) -> dict[str, Span]:
    found = run(
        f"{SPAN} WHERE p.tenant = %s AND p.id = ANY(%s) AND p.scope = ANY(%s)",
        (tenant, list(ids), list(scopes)),
    )
    return {row[0]: span(row) for row in found}


def unembedded(run: Run, tenant: int, model: str, limit: int) -> list[Span]:
    missing = (
        "NOT EXISTS (SELECT 1 FROM span_vectors v JOIN models d ON d.tenant = v.tenant AND d.id = v.model"
        " WHERE v.tenant = p.tenant AND v.span = p.key AND d.name = %s)"
    )
    sql = f"{SPAN} WHERE p.tenant = %s AND (p.name <> '' OR p.summary <> '') AND {missing} ORDER BY p.key LIMIT %s"
    return [span(row) for row in run(sql, (tenant, model, limit))]


def keyword(
    run: Run,
    tenant: int,
    query: str | None,
    lexemes: Sequence[str],
    scopes: Sequence[int],
    limit: int,
) -> list[tuple[str, float]]:
    if query is None or not scopes:
        return []
    return run(FOUND, (query, tenant, list(scopes), list(lexemes), tenant, list(scopes), limit))
