"""The statements behind a search in PostgreSQL: words, vectors, topics. One round trip each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bethink.store import lexemes
from bethink.store.match import POSTINGS, TOGETHER
from bethink.store.pg import words
from bethink.types import Query

Run = Callable[..., list[Any]]

# Up to this many vectors a scope's are compared one by one, which is exact and takes about a microsecond each; above, the HNSW index of
# the partition is asked, with a recall@10 of .995 on real texts (bench/LOG.md, 2026-11-15).
EXACT = 8_000
EVERY = 1 << 62
FOUND, WEIGHED = (
    100_000,
    2_000,
)  # memories that an expression finds, and of these the newest that are weighed by BM25, at most

# Each word is looked up on its own, the rarest first, until about POSTINGS memories would be read; of the commoner ones only two
# together find a memory. How rare a word is comes from the counts of the searched scopes. Frequencies and lengths come in when the
# candidates are scored, so the weights are enough here. `store/match.py` does the same for SQLite in two steps.
BY_WORDS = f"""
WITH asked AS (SELECT n, query::tsquery AS query, hashes::bigint[] AS hashes FROM unnest(%(queries)s::text[], %(hashes)s::text[]) WITH ORDINALITY AS a(query, hashes, n)),
  df AS (SELECT hash, sum(memories) AS memories FROM lexeme_counts WHERE scope = ANY(%(scopes)s) AND hash = ANY(%(every)s) GROUP BY hash),
  size AS (SELECT coalesce(sum(memories), 0)::float8 AS memories FROM scopes WHERE id = ANY(%(scopes)s)),
  cost AS (SELECT n, query, (SELECT coalesce(min(coalesce(df.memories, 0)), 0) FROM unnest(hashes) h LEFT JOIN df ON df.hash = h)::float8 AS cost FROM asked),
  weighed AS MATERIALIZED (SELECT n, query, ln(1 + size.memories / (1 + cost)) AS weight, sum(cost) OVER (ORDER BY cost, n) <= {POSTINGS} AS rare,
                                  row_number() OVER (ORDER BY cost, n) AS rank FROM cost, size),
  rare AS MATERIALIZED (SELECT f.* FROM (SELECT array_agg(query) AS queries, array_agg(weight) AS weights FROM weighed WHERE rare HAVING count(*) > 0) r
                        CROSS JOIN LATERAL find(r.queries, r.weights, %(most)s) f),
  common AS (SELECT n, query, weight FROM weighed WHERE NOT rare ORDER BY rank LIMIT {TOGETHER}),
  pairs AS MATERIALIZED (SELECT f.* FROM (SELECT array_agg(a.query && b.query) AS queries, array_agg(a.weight + b.weight) AS weights
                                          FROM common a JOIN common b ON a.n < b.n WHERE (SELECT count(*) FROM rare) < %(limit)s HAVING count(*) > 0) p
                         CROSS JOIN LATERAL find(p.queries, p.weights, %(most)s) f),
  best AS MATERIALIZED (SELECT key, sum(weight) AS weight, max(total) AS total FROM (TABLE rare UNION ALL TABLE pairs) f GROUP BY key ORDER BY 2 DESC, 1 DESC LIMIT %(most)s)
SELECT b.key, b.weight, b.total FROM best b JOIN memories m ON m.key = b.key WHERE {{filter}} ORDER BY b.weight DESC, b.key DESC LIMIT %(limit)s
"""

# Everything that an expression finds and the filter shows, by BM25.
BY_EXPRESSION = f"""
WITH found AS MATERIALIZED (SELECT f.key FROM find(ARRAY[%(query)s::tsquery], ARRAY[1.0::float8], {FOUND}) f),
  seen AS MATERIALIZED (SELECT m.key, m.length FROM found f JOIN memories m ON m.key = f.key WHERE {{filter}} ORDER BY m.key DESC LIMIT {WEIGHED}),
  size AS (SELECT coalesce(sum(memories), 0)::float8 AS n, greatest(coalesce(sum(words) / nullif(sum(memories), 0), 1), 1)::float8 AS average
           FROM scopes WHERE id = ANY(%(scopes)s)),
  known AS (SELECT a.lexeme, coalesce((SELECT sum(c.memories) FROM lexeme_counts c WHERE c.scope = ANY(%(scopes)s) AND c.hash = a.hash), 0)::float8 AS df
            FROM unnest(%(lexemes)s::text[], %(hashes)s::bigint[]) AS a(lexeme, hash)),
  weight AS (SELECT lexeme, ln(1 + (size.n - least(df, size.n) + 0.5) / (df + 0.5)) AS idf FROM known, size),
  counted AS (SELECT w.key, s.length, u.lexeme, cardinality(u.positions) AS times
              FROM seen s JOIN words w ON w.key = s.key CROSS JOIN LATERAL unnest(w.lexed) u WHERE u.lexeme = ANY(%(lexemes)s))
SELECT s.key, greatest(coalesce(sum(weight.idf * c.times * 2.2 / (c.times + 1.2 * (0.25 + 0.75 * c.length / size.average))), 0), 1e-6)::float8 AS score
FROM seen s CROSS JOIN size LEFT JOIN counted c ON c.key = s.key LEFT JOIN weight ON weight.lexeme = c.lexeme
GROUP BY s.key ORDER BY score DESC, s.key DESC LIMIT %(limit)s
"""

# Two ways to the nearest, of which one is taken by how many vectors the scopes hold. Scores are inner products of unit vectors in both.
# What is found is looked at by the filter afterwards; for a narrow filter, while it is being found.
_SIZE = "WITH size AS (SELECT coalesce(sum(vectors), 0) AS n FROM vector_totals WHERE model = %(model)s AND scope = ANY(%(scopes)s)),"
_OWN = "v.model = %(model)s AND v.scope = ANY(%(scopes)s)"
NEAREST = f"""
{_SIZE}
  exact AS (SELECT v.memory AS key, -(v.data <#> %(vector)s::vector) AS cosine FROM vectors v WHERE (SELECT n FROM size) <= %(exact)s AND {_OWN}),
  near AS MATERIALIZED (SELECT v.memory AS key, -(v.data <#> %(vector)s::vector) AS cosine FROM
             (SELECT memory, data FROM vectors v WHERE (SELECT n FROM size) > %(exact)s AND {_OWN} {{indexed}} LIMIT %(wide)s) v),
  best AS MATERIALIZED (SELECT key, max(cosine) AS cosine FROM (TABLE exact UNION ALL TABLE near) a GROUP BY key ORDER BY cosine DESC, key LIMIT %(most)s)
SELECT b.key, b.cosine, (SELECT count(*) FROM best), (SELECT n FROM size) > %(exact)s AND (SELECT count(*) FROM near) < %(wide)s
FROM best b JOIN memories m ON m.key = b.key WHERE {{filter}} ORDER BY b.cosine DESC, b.key LIMIT %(limit)s
"""
NARROW = f"""
{_SIZE}
  exact AS (SELECT v.memory AS key, -(v.data <#> %(vector)s::vector) AS cosine FROM memories m JOIN vectors v ON v.memory = m.key
            WHERE (SELECT n FROM size) <= %(exact)s AND {_OWN} AND {{filter}}),
  near AS (SELECT v.key, -(v.data <#> %(vector)s::vector) AS cosine FROM
             (SELECT v.memory AS key, v.data FROM vectors v JOIN memories m ON m.key = v.memory
              WHERE (SELECT n FROM size) > %(exact)s AND {_OWN} AND {{filter}} {{indexed}} LIMIT %(wide)s) v)
SELECT key, max(cosine) AS cosine FROM (TABLE exact UNION ALL TABLE near) a GROUP BY key ORDER BY cosine DESC, key LIMIT %(limit)s
"""
# BM25 as FTS5 counts it: a name counts three times as much as a summary.
TOPICS = """
WITH found AS MATERIALIZED (SELECT f.key, f.lexed FROM find_spans(%s::tsquery) f),
  size AS (SELECT greatest(count(*), 1)::float8 AS n, greatest(avg(length(w.lexed)), 1)::float8 AS average
           FROM spans p JOIN span_words w ON w.key = p.key WHERE p.scope = ANY(%s)),
  counted AS (SELECT f.key, length(f.lexed) AS size, u.lexeme,
                     (SELECT sum(CASE w WHEN 'A' THEN 3.0 ELSE 1.0 END) FROM unnest(u.weights) w)::float8 AS times
              FROM found f CROSS JOIN LATERAL unnest(f.lexed) u WHERE u.lexeme = ANY(%s)),
  known AS (SELECT lexeme, count(*)::float8 AS df FROM counted GROUP BY lexeme)
SELECT p.id, greatest(coalesce(sum(ln(1 + (size.n - least(known.df, size.n) + 0.5) / (known.df + 0.5)) * counted.times * 2.2
         / (counted.times + 1.2 * (0.25 + 0.75 * counted.size / size.average))), 0), 1e-6)::float8 AS score
FROM found f JOIN spans p ON p.key = f.key CROSS JOIN size
  LEFT JOIN counted ON counted.key = f.key LEFT JOIN known ON known.lexeme = counted.lexeme
WHERE p.scope = ANY(%s) GROUP BY p.id, p.key ORDER BY score DESC, p.key LIMIT %s
"""
INDEXED = (384, 768, 1024, 1536, 3072)  # sizes of vectors that the migration made an index for


def _named(sql: str, filter: str, values: Sequence[Any]) -> tuple[str, dict[str, Any]]:
    """Puts a filter, whose parameters are marked with `?`, into a statement with named ones."""
    parts = filter.split("?")
    named = "".join(f"{part}%(f{at})s" for at, part in enumerate(parts[:-1])) + parts[-1]
    return sql.replace("{filter}", named), {f"f{at}": value for at, value in enumerate(values)}


def keyword(
    run: Run,
    tenant: int,
    scopes: Sequence[int],
    query: Query,
    narrow: bool,
    filter: tuple[str, Sequence[Any]],
    limit: int,
) -> list[tuple[int, float]]:
    marks = [words.mark(tenant, scope) for scope in scopes]
    if not narrow and not query.strict and len(query.terms) > 1:
        asked = words.terms(query, marks)
        most = 2 * limit
        sql, values = _named(BY_WORDS, *filter)
        found = (
            run(
                sql,
                {
                    **values,
                    "queries": [one for one, _ in asked],
                    "hashes": [_array(hashes) for _, hashes in asked],
                    "every": [hash for _, hashes in asked for hash in hashes],
                    "scopes": list(scopes),
                    "most": most,
                    "limit": limit,
                },
            )
            if asked
            else []
        )
        # Where hidden memories crowd out the rest, the slow way looks behind them.
        if found and (len(found) * 2 >= min(limit, found[0][2]) or found[0][2] <= most):
            return [(key, weight) for key, weight, _ in found]
    expression = words.expression(query, marks)
    if expression is None:
        return []
    counted = words.leaves(query)
    sql, values = _named(BY_EXPRESSION, *filter)
    return run(
        sql,
        {
            **values,
            "query": expression,
            "scopes": list(scopes),
            "limit": limit,
            "lexemes": [words.bounded(mark, word) for mark in marks for word in counted],
            "hashes": [lexemes.hashed(word) for _ in marks for word in counted],
        },
    )


def _array(values: Sequence[int]) -> str:
    return "{" + ",".join(map(str, values)) + "}"


def nearest(
    run: Run,
    scopes: Sequence[int],
    model: int,
    vector: Any,
    narrow: bool,
    filter: tuple[str, Sequence[Any]],
    limit: int,
) -> list[tuple[int, float]]:
    dimensions = len(vector)
    indexed = dimensions in INDEXED
    order = (
        f"AND v.dimensions = {dimensions} ORDER BY v.data::halfvec({dimensions}) <=> %(vector)s::halfvec({dimensions})"
        if indexed
        else ""
    )
    open_sql, values = _named(NEAREST.replace("{indexed}", order), *filter)
    narrow_sql, _ = _named(NARROW.replace("{indexed}", order), *filter)
    given = {
        **values,
        "model": model,
        "scopes": list(scopes),
        "vector": vector_text(vector),
        "limit": limit,
        "most": 2 * limit,
        "wide": 3 * limit,
        "exact": EXACT if indexed else EVERY,
    }
    if not narrow:
        found = run(open_sql, given)
        # Where hidden memories take the places of visible ones, or the index gave up among rows of others, all of them are looked at.
        if not found or (len(found) * 2 >= min(limit, found[0][2]) and not found[0][3]):
            return [(key, cosine) for key, cosine, _, _ in found] or run(
                narrow_sql, given | {"exact": EVERY}
            )
        return run(narrow_sql, given | {"exact": EVERY})
    found = run(narrow_sql, given)
    return run(narrow_sql, given | {"exact": EVERY}) if indexed and len(found) < limit else found


def keyword_topics(
    run: Run, tenant: int, scopes: Sequence[int], query: Query, limit: int
) -> list[tuple[str, float]]:
    marks = [words.mark(tenant, scope) for scope in scopes]
    asked = words.topics(query, marks)
    if asked is None:
        return []
    counted = [words.bounded(mark, word) for mark in marks for word in words.leaves(query)]
    inside = list(scopes)
    return run(TOPICS, (asked, inside, counted, inside, limit))


def vector_text(vector: Any) -> str:
    """A vector as pgvector reads it, to the last bit of its 32-bit floats."""
    values = [float(value) for value in vector]
    return f"[{','.join(['%.9g'] * len(values)) % tuple(values)}]"
