"""A search in PostgreSQL: texts and questions in the words of its index, and the statements that words, vectors and topics are found by.

tsvector and tsquery are both made here, so that both databases know the same words. Every lexeme begins with its tenant and scope.
Columns are told apart by the weights A to D of positions. PostgreSQL keeps 16,383 positions of a text and 256 of a word: beyond these
words are still found, but not whether they stand side by side.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from hashlib import blake2b
from typing import Any

from bethink.store import words
from bethink.store.words import LONGEST_PHRASE, POSTINGS, TOGETHER, is_searchable, space_query
from bethink.types import Query, Term

LABELS = {"content": "A", "section": "C", "tags": "D"}
FARTHEST, OFTEN = 16_383, 255
LONGEST = 200  # bytes of a lexeme; longer ones end in a hash
LARGEST = 700_000  # bytes of a text's words; PostgreSQL takes one megabyte
GAP = 5  # positions between two columns, so that no phrase reaches over


def lex_memory(
    mark: str, content: str, summary: str, section: str, tags: str
) -> tuple[str, list[str]]:
    """A memory's words as the index takes them, and those that are counted."""
    texts = {"content": content, "section": section, "tags": tags, "summary": summary}
    found = {column: words.tokenize(text) if text else [] for column, text in texts.items()}
    columns = [(mark, LABELS[column], found[column]) for column in LABELS]
    columns.append((of_summary(mark), "B", found["summary"]))
    return lex_columns(columns), [*found["content"], *found["section"], *found["tags"]]


def mark(tenant: int, scope: int) -> str:
    """What every lexeme of a scope begins with."""
    return f"{tenant:x}.{scope:x}:"


def of_summary(mark: str) -> str:
    """A summary repeats the content, so its words are only found where they are asked for by name. A mark of their own, because
    looking for a position's label would have to read every tsvector that holds the word."""
    return mark.replace(":", "~")


def lex_topic(mark: str, name: str, summary: str) -> tuple[str, list[str]]:
    """The same of a topic, of whose words none are counted."""
    columns = [(mark, "A", words.tokenize(name)), (mark, "B", words.tokenize(summary))]
    return lex_columns(columns), []


def lex_columns(columns: Sequence[tuple[str, str, Sequence[str]]]) -> str:
    """A tsvector of columns, each with its mark and its label: each lexeme with its places."""
    places: dict[str, list[str]] = {}
    size, at = 0, 0
    for mark, label, tokens in columns:
        for word in tokens:
            at += 1
            name = bound_word(mark, word)
            held = places.get(name)
            if held is None:
                size += len(name) + 12
                if size > LARGEST:
                    break
                held = places.setdefault(name, [])
            if len(held) < OFTEN:
                size += 2
                held.append(f"{min(at, FARTHEST)}{label}")
        at += GAP
    return " ".join(
        f"{_quote(name)}:{','.join(dict.fromkeys(held))}" for name, held in places.items()
    )


def bound_word(mark: str, word: str) -> str:
    raw = word.encode("utf-8", "replace")
    if len(raw) > LONGEST:
        word = (
            raw[: LONGEST // 2].decode("utf-8", "ignore") + blake2b(raw, digest_size=12).hexdigest()
        )
    return mark + word


def _quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


# Questions

SIGNS = {"and": " & ", "or": " | ", "not": " & !"}


def write_tsquery(query: Query, marks: Sequence[str]) -> str:
    """The whole question as a tsquery over some scopes; empty when there is no word to look for."""
    parts = (words.write_question(query, partial(_write_term, mark), SIGNS) for mark in marks)
    return " | ".join(f"({part})" for part in parts if part)


def split_terms(query: Query, marks: Sequence[str]) -> dict[str, list[int]]:
    """Each searchable piece of a question over some scopes, with the hashes of its words."""
    found: dict[str, list[int]] = {}
    for one in query.terms:
        asked = write_tsquery(query._replace(expression=None, terms=(one,)), marks)
        if asked:
            found.setdefault(asked, [words.hash_word(word) for word in _tokenize_term(one)])
    return found


def _tokenize_term(term: Term) -> list[str]:
    return words.tokenize(space_query(term.text), prepared=True)


def _write_term(mark: str, term: Term) -> str:
    """One word, phrase or prefix."""
    if not is_searchable(term):
        return ""
    label = LABELS.get(term.column or "", "")
    if term.column == "summary":
        mark = of_summary(mark)
    prefix = term.prefix or (len(term.text) == 1 and words.is_unspaced(term.text))
    written = [_write_phrase(_tokenize_term(term), mark, label, prefix)]
    split = words.parts(term.text)
    if not term.prefix and len(split) > 1:
        apart = words.tokenize(" ".join(split), prepared=True)
        written.append(_write_phrase(apart, mark, label, False))
    return f"({' | '.join(filter(None, written))})" if any(written) else ""


def _write_phrase(tokens: Sequence[str], mark: str, label: str, prefix: bool) -> str:
    pieces = [f"{_quote(bound_word(mark, word))}:{label}" for word in tokens[:LONGEST_PHRASE]]
    if prefix and pieces:
        pieces[-1] += "*"
    return " <-> ".join(piece.removesuffix(":") for piece in pieces)


# The statements

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
# candidates are scored, so the weights are enough here. `store/words.py` does the same for SQLite in two steps.
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
# The last column tells that the index gave up before it had found as many rows as were asked for.
_OWN = "v.model = %(model)s AND v.scope = ANY(%(scopes)s)"
NEAREST = f"""
WITH size AS (SELECT coalesce(sum(vectors), 0) AS n FROM vector_totals WHERE model = %(model)s AND scope = ANY(%(scopes)s)),
  exact AS (SELECT v.memory AS key, -(v.data <#> %(vector)s::vector) AS cosine FROM memories m JOIN vectors v ON v.memory = m.key
            WHERE (SELECT n FROM size) <= %(exact)s AND {_OWN} AND {{filter}}),
  near AS MATERIALIZED (SELECT v.key, -(v.data <#> %(vector)s::vector) AS cosine FROM
             (SELECT v.memory AS key, v.data FROM vectors v JOIN memories m ON m.key = v.memory
              WHERE (SELECT n FROM size) > %(exact)s AND {_OWN} AND {{filter}} {{indexed}} LIMIT %(wide)s) v)
SELECT key, max(cosine) AS cosine, (SELECT n FROM size) > %(exact)s AND (SELECT count(*) FROM near) < %(wide)s
FROM (TABLE exact UNION ALL TABLE near) a GROUP BY key ORDER BY cosine DESC, key LIMIT %(limit)s
"""
# BM25 as FTS5 counts it: a name counts three times as much as a summary.
TOPICS = """
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
"""
INDEXED = (384, 768, 1024, 1536, 3072)  # sizes of vectors that the migration made an index for


def vector_text(vector: Any) -> str:
    """A vector as pgvector reads it, to the last bit of its 32-bit floats."""
    return json.dumps([float(value) for value in vector])
