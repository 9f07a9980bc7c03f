"""Texts and questions in the words of PostgreSQL's index: tsvector and tsquery, both made here, so that both stores know the same words.

Every lexeme begins with its tenant and scope. Columns are told apart by the weights A to D of positions. PostgreSQL keeps
16,383 positions of a text and 256 of a word: beyond these words are still found, but not whether they stand side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

from bethink.store import lexemes
from bethink.store.match import _searchable, _spaced
from bethink.types import Query, Term

LABELS = {"content": "A", "section": "C", "tags": "D"}
FARTHEST, OFTEN = 16_383, 255
LONGEST = 200  # bytes of a lexeme; longer ones end in a hash
LARGEST = 700_000  # bytes of a text's words; PostgreSQL takes one megabyte
SAID = 200  # words of a phrase that are looked for; what agrees in so many agrees in the rest
GAP = 5  # positions between two columns, so that no phrase reaches over


def lexed_memory(
    mark: str, content: str, summary: str, section: str | None, tags: str
) -> tuple[str, list[str]]:
    """A memory's words as the index takes them, and those that are counted."""
    texts = {"content": content, "section": section or "", "tags": tags, "summary": summary}
    words = {column: lexemes.tokenize(text) if text else [] for column, text in texts.items()}
    columns = [(mark, LABELS[column], words[column]) for column in LABELS]
    columns.append((of_summary(mark), "B", words["summary"]))
    return lexed(columns), [*words["content"], *words["section"], *words["tags"]]


def mark(tenant: int, scope: int) -> str:
    """What every lexeme of a scope begins with."""
    return f"{tenant:x}.{scope:x}:"


def of_summary(mark: str) -> str:
    """A summary repeats the content, so its words are only found where they are asked for by name. A mark of their own, because
    looking for a position's label would have to read every tsvector that holds the word."""
    return mark.replace(":", "~")


def topic(mark: str, name: str, summary: str) -> str:
    return lexed([(mark, "A", lexemes.tokenize(name)), (mark, "B", lexemes.tokenize(summary))])


def lexed(columns: Sequence[tuple[str, str, Sequence[str]]]) -> str:
    """A tsvector of columns, each with its mark and its label: each lexeme with its places."""
    places: dict[str, list[str]] = {}
    size, at = 0, 0
    for mark, label, words in columns:
        for word in words:
            at += 1
            name = bounded(mark, word)
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
        f"{_quoted(name)}:{','.join(dict.fromkeys(held))}" for name, held in places.items()
    )


def bounded(mark: str, word: str) -> str:
    raw = word.encode("utf-8", "replace")
    if len(raw) > LONGEST:
        word = (
            raw[: LONGEST // 2].decode("utf-8", "ignore") + blake2b(raw, digest_size=12).hexdigest()
        )
    return mark + word


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


# Questions


def expression(query: Query, marks: Sequence[str]) -> str | None:
    """The whole question as a tsquery over some scopes, or None when there is no word to look for."""

    def within(mark: str) -> str:
        if query.expression is not None:
            return _boolean(query.expression, mark)
        return " | ".join(dict.fromkeys(filter(None, (term(one, mark) for one in query.terms))))

    return _joined([within(mark) for mark in marks])


def topics(query: Query, marks: Sequence[str]) -> str | None:
    """The words of a question, any of them, as topics know them."""
    asked = [
        one._replace(column=None)
        for one in query.terms
        if one.column in (None, "content", "summary")
    ]
    return _joined(
        [
            " | ".join(dict.fromkeys(filter(None, (term(one, mark) for one in asked))))
            for mark in marks
        ]
    )


def terms(query: Query, marks: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Each searchable piece of a question over some scopes, with the hashes of its words."""
    found: dict[str, list[int]] = {}
    for one in query.terms:
        asked = _joined([term(one, mark) for mark in marks])
        if asked:
            found.setdefault(asked, [lexemes.hashed(word) for word in _tokens(one)])
    return list(found.items())


def leaves(query: Query) -> list[str]:
    """The words of a question that count for its score."""
    from bethink.store.match import query_words

    return list(query_words(query).lexemes)


def _joined(parts: Sequence[str]) -> str | None:
    return " | ".join(f"({part})" for part in parts if part) or None


def _tokens(one: Term) -> list[str]:
    return lexemes.tokenize(_spaced(one.text), prepared=True)


def term(one: Term, mark: str) -> str:
    """One word, phrase or prefix."""
    if not _searchable(one):
        return ""
    mark, labels = (
        (of_summary(mark), "")
        if one.column == "summary"
        else (mark, LABELS.get(one.column or "", ""))
    )
    whole = _phrase(
        _tokens(one),
        mark,
        labels,
        one.prefix or (len(one.text) == 1 and lexemes.unspaced(one.text)),
    )
    split = lexemes.parts(one.text)
    if not one.prefix and len(split) > 1:
        apart = _phrase(lexemes.tokenize(" ".join(split), prepared=True), mark, labels, False)
        return f"({whole} | {apart})" if whole and apart else whole or apart
    return whole


def _phrase(words: Sequence[str], mark: str, labels: str, prefix: bool) -> str:
    words = words[:SAID]
    signs = [
        ("*" if prefix and at == len(words) else "") + labels for at in range(1, len(words) + 1)
    ]
    pieces = [
        _quoted(bounded(mark, word)) + (f":{sign}" if sign else "")
        for word, sign in zip(words, signs, strict=True)
    ]
    return f"({' <-> '.join(pieces)})" if len(pieces) > 1 else "".join(pieces)


def _boolean(node: Any, mark: str) -> str:
    if isinstance(node, Term):
        return term(node, mark)
    operator, left, right = node
    one, other = _boolean(left, mark), _boolean(right, mark)
    if not one or not other:
        return one if operator == "not" or not other else other
    sign: Callable[[str, str], str] = {
        "and": "({} & {})".format,
        "or": "({} | {})".format,
        "not": "({} & !{})".format,
    }[operator]
    return sign(one, other)
