"""Search in PostgreSQL: texts as tsvector, questions as tsquery, and the search statements.

Both are built here, so that SQLite and PostgreSQL know the same words. Every lexeme starts with its
tenant and scope. The position weights A to D mark the columns. PostgreSQL keeps 16,383 positions
per text and 256 per word; words beyond that are found, but not as neighbours in a phrase.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path

from bethink.model import Query, Term
from bethink.store import words
from bethink.text import hash_text

_LABELS = {"content": "A", "section": "C", "tags": "D"}
FARTHEST, _OFTEN = 16_383, 255
_LONGEST = 200  # bytes of a lexeme; longer ones end in a hash
_LARGEST = 700_000  # bytes of a text's words; PostgreSQL takes one megabyte
COLUMN_GAP = 5  # positions between two columns, so that no phrase reaches over


def mark(tenant: int, scope: int) -> str:
    """Prefix of every lexeme of a scope."""
    return f"{tenant:x}.{scope:x}:"


def of_summary(mark: str) -> str:
    """Prefix for words of a summary, which are found only when asked for by column name.

    A summary repeats the content. A separate prefix avoids reading every tsvector that contains the
    word just to check the label of its position.
    """
    return mark.replace(":", "~")


def write_tsvector(mark: str, columns: Sequence[str]) -> str:
    """Build the tsvector of a memory or topic: each lexeme with its positions.

    A topic has at most two columns.
    """
    places: dict[str, list[str]] = {}
    size, at = 0, 0
    for label, text in zip("ABCD", columns, strict=False):
        own = of_summary(mark) if label == "B" and len(columns) > 2 else mark
        for word in words.tokenize(text, prepared=True):
            at += 1
            name = bound_word(own, word)
            positions = places.get(name)
            if positions is None:
                size += len(name) + 12
                if size > _LARGEST:
                    break
                positions = places.setdefault(name, [])
            if len(positions) < _OFTEN:
                size += 2
                positions.append(f"{min(at, FARTHEST)}{label}")
        at += COLUMN_GAP
    return " ".join(
        f"{_quote(name)}:{','.join(dict.fromkeys(positions))}" for name, positions in places.items()
    )


def bound_word(mark: str, word: str) -> str:
    raw = word.encode("utf-8", "replace")
    if len(raw) > _LONGEST:
        word = raw[: _LONGEST // 2].decode("utf-8", "ignore") + hash_text(word, 12).hex()
    return mark + word


def _quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


# Questions

_SIGNS = {"and": " & ", "or": " | ", "not": " & !"}


def write_tsquery(query: Query, marks: Sequence[str]) -> str:
    """The whole question as a tsquery over some scopes; empty when there is no word to look for."""
    parts = (words.write_question(query, partial(_write_term, mark), _SIGNS) for mark in marks)
    return " | ".join(f"({part})" for part in parts if part)


def split_terms(query: Query, marks: Sequence[str]) -> dict[str, list[int]]:
    """Each searchable piece of a question over some scopes, with the hashes of its words."""
    found: dict[str, list[int]] = {}
    for one in query.terms:
        asked = write_tsquery(query._replace(expression=None, terms=(one,)), marks)
        if asked:
            found.setdefault(asked, [words.hash_word(word) for word in words.tokenize_term(one)])
    return found


def _write_term(mark: str, term: Term) -> str:
    """One word, phrase or prefix."""
    phrases, begins = words.list_phrases(term)
    label = _LABELS.get(term.column or "", "")
    own = of_summary(mark) if term.column == "summary" else mark
    written = []
    for phrase in phrases:
        tokens = words.tokenize(phrase, prepared=True)
        pieces = [f"{_quote(bound_word(own, word))}:{label}" for word in tokens]
        if begins and pieces:
            pieces[-1] += "*"
        written.append(" <-> ".join(piece.removesuffix(":") for piece in pieces))
    return f"({' | '.join(filter(None, written))})" if any(written) else ""


# The statements of `pgsearch.sql` by their names.
_FILE = Path(__file__).with_name("pgsearch.sql").read_text("utf-8")
SQL = dict(part.split("\n", 1) for part in _FILE.split("\n-- name: ")[1:])
# Up to this many vectors a scope's are compared one by one, which is exact and takes about a microsecond each; above, the HNSW index of
# the partition is asked, with a recall@10 of .995 on real texts (bench/LOG.md, 2026-11-15).
SCANNED_WHOLE = 8_000
ALL_ROWS = 1 << 62
INDEXED = (384, 512, 768, 1024, 1536, 3072)  # sizes of vectors that a migration made an index for


def vector_text(vector: Collection[float]) -> str:
    """A vector as pgvector reads it, to the last bit of its 32-bit floats."""
    return json.dumps([float(value) for value in vector])
