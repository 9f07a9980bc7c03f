"""A Query as an FTS5 MATCH expression. Every word is quoted, so no input can be taken for syntax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from math import log
from typing import Any

from bethink.store import lexemes
from bethink.types import Query, Term, Words

COLUMNS = "{content section tags}"
# Column weights of FTS5's bm25 in table order: content, summary, section, tags, scope. The order found here only decides
# which memories become candidates; their score is worked out again with the word weights of their own scope.
# The summary repeats the content, so it counts only where it is asked for by name.
RANK = "bm25(1.0, 0.01, 1.0, 1.0, 0.0)"

# A word that stands in very many memories says little and costs much. Words are taken from the rarest up until this many
# postings would be read; of the commoner ones only two together find a memory. Those left out still count when candidates
# are scored. (bench/LOG.md, 2026-11-15)
POSTINGS = 4_000
TOGETHER = 3  # how many of the commoner words are tried two by two


def scope_token(scope: int) -> str:
    """The word under which the full-text index knows a scope. Digits at its end keep the stemmer away."""
    return f"zq{scope}"


def expression(query: Query, scopes: Sequence[int]) -> str | None:
    """The whole query as one expression, or None when there is no word to look for. Without scopes it looks everywhere."""
    if query.expression is not None:
        words = _boolean(query.expression)
    else:
        words = " OR ".join(dict.fromkeys(_asked(query)))
    return inside(words, scopes) if words else None


def span_expression(query: Query, scopes: Sequence[int]) -> str | None:
    """The words of a question, any of them, as topics know them: a topic has a name and a summary and no other columns."""
    words = [
        _term(term)
        for term in query.terms
        if _searchable(term) and term.column in (None, "content", "summary")
    ]
    return (
        inside(f"{{name summary}} : ({' OR '.join(dict.fromkeys(words))})", scopes)
        if words and scopes
        else None
    )


def inside(words: str, scopes: Sequence[int]) -> str:
    """An expression that looks only into some scopes; into all when none is named."""
    within = " OR ".join(f'"{scope_token(scope)}"' for scope in scopes)
    return f"({words}) AND scope : ({within})" if scopes else words


def alternatives(
    query: Query, counts: Callable[[Sequence[str]], list[int]], memories: int
) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
    """What finds a memory, each with its weight: the rarer words, and pairs of the commoner ones."""
    words = {
        _column(term, _term(term)): lexemes.tokenize(_spaced(term.text), prepared=True)
        for term in query.terms
        if _searchable(term)
    }
    unique = list(dict.fromkeys(word for group in words.values() for word in group))
    frequency = dict(zip(unique, counts(unique), strict=True))
    cost = {
        asked: min((frequency[word] for word in group), default=0) for asked, group in words.items()
    }
    rare: list[tuple[str, float]] = []
    common: list[tuple[str, float]] = []
    spent = 0
    for asked in sorted(words, key=lambda asked: cost[asked]):
        spent += cost[asked]
        (rare if spent <= POSTINGS else common).append(
            (asked, log(1 + memories / (1 + cost[asked])))
        )
    pairs = [
        (f"({one} AND {other})", a + b)
        for (one, a), (other, b) in combinations(common[:TOGETHER], 2)
    ]
    return rare, pairs


def _asked(query: Query) -> list[str]:
    return [_column(term, _term(term)) for term in query.terms if _searchable(term)]


def query_words(query: Query) -> Words:
    """The words whose frequency decides the score: each once, in the order asked, and the pairs that stand side by side."""
    positive = query.terms if query.expression is None else tuple(_leaves(query.expression))
    told = [
        word
        for term in positive
        if not term.prefix and term.column in (None, "content", "section", "tags")
        for word in lexemes.tokenize(_spaced(term.text), prepared=True)
    ]
    return Words(
        tuple(dict.fromkeys(told)),
        tuple(dict.fromkeys(pair for pair in pairwise(told) if pair[0] != pair[1])),
    )


def _leaves(node: Any) -> list[Term]:
    if isinstance(node, Term):
        return [node]
    operator, left, right = node
    return _leaves(left) + ([] if operator == "not" else _leaves(right))


def _spaced(text: str) -> str:
    """A query's word in the form the index has, but whole: `parseUrl` asks for parseurl, not for parse and url apart."""
    return lexemes.spaced(text.replace("\x00", " ").encode("utf-8", "replace").decode("utf-8"))


def _searchable(term: Term) -> bool:
    return any(character.isalnum() for character in term.text)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', " ") + '"'


def _term(term: Term) -> str:
    spaced = _spaced(term.text).strip()
    if term.prefix or (len(term.text) == 1 and lexemes.unspaced(term.text)):
        # A single Han character stands in the index at the start of pairs.
        return f"{_quoted(spaced)} *"
    if (split := lexemes.parts(term.text)) and len(split) > 1:
        return f"({_quoted(spaced)} OR {_quoted(' '.join(split))})"
    return _quoted(spaced)


def _column(term: Term, words: str) -> str:
    column = term.column if term.column in ("content", "summary", "section", "tags") else COLUMNS
    return f"{column} : {words}" if words.startswith("(") else f"{column} : ({words})"


def _boolean(node: Any) -> str:
    if isinstance(node, Term):
        return _column(node, _term(node)) if _searchable(node) else ""
    operator, left, right = node
    one, other = _boolean(left), _boolean(right)
    if not one or not other:
        return one if operator == "not" or not other else other
    return f"({one} {operator.upper()} {other})"
