-- The statements that words, vectors and topics are found by in PostgreSQL, each under its name. `{filter}` is what a search may see,
-- `{indexed}` how the vector index of one size is asked.

-- name: by_words
-- Each word is looked up on its own, the rarest first, until about `postings` memories would be read; of the commoner ones only two
-- together find a memory. How rare a word is comes from the counts of the searched scopes. Frequencies and lengths come in when the
-- candidates are scored, so the weights are enough here. `words.alternatives` does the same for SQLite in two steps.
WITH asked AS (SELECT n, query::tsquery AS query, hashes::bigint[] AS hashes
               FROM unnest(%(queries)s::text[], %(hashes)s::text[]) WITH ORDINALITY AS a(query, hashes, n)),
  df AS (SELECT hash, sum(memories) AS memories FROM lexeme_counts WHERE scope = ANY(%(scopes)s) AND hash = ANY(%(every)s) GROUP BY hash),
  size AS (SELECT coalesce(sum(memories), 0)::float8 AS memories FROM scopes WHERE id = ANY(%(scopes)s)),
  cost AS (SELECT n, query, (SELECT coalesce(min(coalesce(df.memories, 0)), 0) FROM unnest(hashes) h LEFT JOIN df ON df.hash = h)::float8 AS cost FROM asked),
  weighed AS MATERIALIZED (SELECT n, query, ln(1 + size.memories / (1 + cost)) AS weight, sum(cost) OVER (ORDER BY cost, n) <= %(postings)s AS rare,
                                  row_number() OVER (ORDER BY cost, n) AS rank FROM cost, size),
  rare AS MATERIALIZED (SELECT f.* FROM (SELECT array_agg(query) AS queries, array_agg(weight) AS weights FROM weighed WHERE rare HAVING count(*) > 0) r
                        CROSS JOIN LATERAL find(r.queries, r.weights, %(most)s) f),
  common AS (SELECT n, query, weight FROM weighed WHERE NOT rare ORDER BY rank LIMIT %(together)s),
  pairs AS MATERIALIZED (SELECT f.* FROM (SELECT array_agg(a.query && b.query) AS queries, array_agg(a.weight + b.weight) AS weights
                                          FROM common a JOIN common b ON a.n < b.n WHERE (SELECT count(*) FROM rare) < %(limit)s HAVING count(*) > 0) p
                         CROSS JOIN LATERAL find(p.queries, p.weights, %(most)s) f),
  best AS MATERIALIZED (SELECT key, sum(weight) AS weight, max(total) AS total FROM (TABLE rare UNION ALL TABLE pairs) f GROUP BY key ORDER BY 2 DESC, 1 DESC LIMIT %(most)s)
SELECT b.key, b.weight, b.total FROM best b JOIN memories m ON m.key = b.key WHERE {filter} ORDER BY b.weight DESC, b.key DESC LIMIT %(limit)s

-- name: by_expression
-- What an expression finds (of 100,000 at most) and the filter shows; the newest 2,000 of it are weighed by BM25.
WITH found AS MATERIALIZED (SELECT f.key FROM find(ARRAY[%(query)s::tsquery], ARRAY[1.0::float8], 100000) f),
  seen AS MATERIALIZED (SELECT m.key, m.length FROM found f JOIN memories m ON m.key = f.key WHERE {filter} ORDER BY m.key DESC LIMIT 2000),
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

-- name: nearest
-- Two ways to the nearest, of which one is taken by how many vectors the scopes hold. Scores are inner products of unit vectors in both.
-- The last column tells that the index gave up before it had found as many rows as were asked for.
WITH size AS (SELECT coalesce(sum(vectors), 0) AS n FROM vector_totals WHERE model = %(model)s AND scope = ANY(%(scopes)s)),
  exact AS (SELECT v.memory AS key, -(v.data <#> %(vector)s::vector) AS cosine FROM memories m JOIN vectors v ON v.memory = m.key
            WHERE (SELECT n FROM size) <= %(exact)s AND v.model = %(model)s AND v.scope = ANY(%(scopes)s) AND {filter}),
  near AS MATERIALIZED (SELECT v.key, -(v.data <#> %(vector)s::vector) AS cosine FROM
             (SELECT v.memory AS key, v.data FROM vectors v JOIN memories m ON m.key = v.memory
              WHERE (SELECT n FROM size) > %(exact)s AND v.model = %(model)s AND v.scope = ANY(%(scopes)s) AND {filter} {indexed} LIMIT %(wide)s) v)
SELECT key, max(cosine) AS cosine, (SELECT n FROM size) > %(exact)s AND (SELECT count(*) FROM near) < %(wide)s
FROM (TABLE exact UNION ALL TABLE near) a GROUP BY key ORDER BY cosine DESC, key LIMIT %(limit)s

-- name: topics
-- BM25 as FTS5 counts it: a name counts three times as much as a summary.
WITH found AS MATERIALIZED (SELECT f.key, f.lexed FROM find_spans(%(query)s::tsquery) f),
  size AS (SELECT greatest(count(*), 1)::float8 AS n, greatest(avg(length(w.lexed)), 1)::float8 AS average
           FROM spans p JOIN span_words w ON w.key = p.key WHERE p.scope = ANY(%(scopes)s)),
  counted AS (SELECT f.key, length(f.lexed) AS size, u.lexeme,
                     (SELECT sum(CASE w WHEN 'A' THEN 3.0 ELSE 1.0 END) FROM unnest(u.weights) w)::float8 AS times
              FROM found f CROSS JOIN LATERAL unnest(f.lexed) u WHERE u.lexeme = ANY(%(lexemes)s)),
  known AS (SELECT lexeme, count(*)::float8 AS df FROM counted GROUP BY lexeme)
SELECT p.id, greatest(coalesce(sum(ln(1 + (size.n - least(known.df, size.n) + 0.5) / (known.df + 0.5)) * counted.times * 2.2
         / (counted.times + 1.2 * (0.25 + 0.75 * counted.size / size.average))), 0), 1e-6)::float8 AS score
FROM found f JOIN spans p ON p.key = f.key CROSS JOIN size
  LEFT JOIN counted ON counted.key = f.key LEFT JOIN known ON known.lexeme = counted.lexeme
WHERE p.scope = ANY(%(scopes)s) GROUP BY p.id, p.key ORDER BY score DESC, p.key LIMIT %(limit)s

-- name: nearest_topics
SELECT p.id, max(-(v.data <#> %(vector)s::vector)) AS cosine FROM span_vectors v JOIN spans p ON p.key = v.span
WHERE v.model = %(model)s AND v.scope = ANY(%(scopes)s) GROUP BY p.id, p.key ORDER BY cosine DESC, p.key LIMIT %(limit)s

-- name: cosines
-- The mean over all vectors of the scopes, under no key, and the best cosine of each memory that is asked about.
SELECT NULL::bigint, sum(-(total <#> %(vector)s::vector)) / nullif(sum(vectors), 0) FROM vector_totals
WHERE model = %(model)s AND scope = ANY(%(scopes)s) UNION ALL
SELECT memory, max(-(data <#> %(vector)s::vector)) FROM vectors
WHERE memory = ANY(%(keys)s) AND model = %(model)s AND scope = ANY(%(scopes)s) GROUP BY memory

-- name: sum_vectors
-- Sums of vectors anew. One that is right but for its last digits stays as it is.
WITH fresh AS (SELECT model, scope, count(*) AS vectors, sum(data) AS total FROM vectors GROUP BY model, scope),
  gone AS (DELETE FROM vector_totals t WHERE NOT EXISTS (SELECT 1 FROM fresh f WHERE f.model = t.model AND f.scope = t.scope)),
  kept AS (INSERT INTO vector_totals(model, scope, vectors, total) SELECT model, scope, vectors, total FROM fresh
           ON CONFLICT (tenant, model, scope) DO UPDATE SET vectors = excluded.vectors, total = excluded.total
           WHERE vector_totals.vectors <> excluded.vectors OR vector_totals.total <-> excluded.total > 0.001)
SELECT 1

-- name: walls
-- What keeps tenants apart must stand: row-level security on every table, and a role that cannot pass it.
SELECT 'Row-level security is off on the table ' || relname || '.' FROM pg_class WHERE relnamespace = 'bethink'::regnamespace
  AND relkind = 'r' AND relname <> 'migrations' AND NOT (relrowsecurity AND relforcerowsecurity)
UNION ALL SELECT 'The role that reads and writes may pass row-level security.' FROM pg_roles
WHERE rolname = current_user AND (rolsuper OR rolbypassrls)
UNION ALL SELECT 'The role that reads and writes may make temporary objects; as the owner: REVOKE TEMPORARY ON DATABASE … FROM PUBLIC.'
WHERE has_database_privilege(current_user, current_database(), 'TEMPORARY') ORDER BY 1
