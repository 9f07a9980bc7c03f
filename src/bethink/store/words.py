"""Words: the lexemes of a text, the same for both databases, and a Query as FTS5 expression.

Words are lower-cased, stripped of accents and stemmed by FTS5's own tokenizer, so that the counts
here match what FTS5 finds. Two things FTS5 cannot do are prepared for it: identifiers such as
`parseHttpUrl` are also indexed under their parts, and scripts written without spaces are indexed by
pairs of characters. In an expression every word is quoted, so no input can be taken for syntax.
"""

from __future__ import annotations

import re
import sys
from array import array
from bisect import bisect, bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import accumulate, chain, combinations, islice, pairwise
from math import log
from typing import Any
from zlib import crc32

from bethink.language.words import STOP_WORDS
from bethink.model import Expression, Query, Term, Words

# Han, kana, Hangul, Thai, Lao, Myanmar, Khmer: no spaces between words, or (Hangul) particles glued to them.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_RUN = f"[{_UNSPACED}]+"
# Bounded and from the first letter of a word only: it would otherwise be tried from each of them.
_HUMPS = r"(?<![A-Za-z])(?:[A-Za-z][A-Za-z0-9]{0,60}[a-z0-9][A-Z][A-Za-z0-9]*|[A-Z]{2,60}[a-z][A-Za-z0-9]*)"
_HUMPED = "[a-z0-9][A-Z]|[A-Z]{2}[a-z]"  # in every word with humps; most texts have none
_SYNTAX = r"[\"“”()*^{}\[\]|~]|(?<!\S)[-@]{1,4}(?=\w)"
_FIELD = r"(?i)\b(content|summary|section|tags|kind|entity):"
_OPERATOR = r"\b(?:AND|OR|NOT)\b"
_PARTS = r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+"


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    """Compile a pattern on first use: a plain question in English needs none."""
    return re.compile(pattern)


def _pairs(match: re.Match[str]) -> str:
    run = match.group()
    pairs = (run[at : at + 2] for at in range(max(1, len(run) - 1)))
    return f" {' '.join(pairs)} "


def space_out(text: str) -> str:
    """Split runs of unspaced scripts into pairs of characters."""
    return text if text.isascii() else _compile(_RUN).sub(_pairs, text)


def as_words(text: str) -> str:
    """Remove query syntax from a text, and split unspaced scripts.

    Otherwise a whole sentence without spaces would be searched as one phrase.
    """
    text = _compile(_FIELD).sub(r"\1 ", _compile(_SYNTAX).sub(" ", text))
    return space_out(_compile(_OPERATOR).sub(lambda found: found[0].lower(), text))


def is_unspaced(text: str) -> bool:
    """Return True if a text is one run of a script without spaces."""
    return _compile(_RUN).fullmatch(text) is not None


def parts(identifier: str) -> list[str]:
    """Split an identifier: `parseHttpUrl` → parse, Http, Url; a word without humps has no parts."""
    if identifier.islower():
        return []
    return _compile(_PARTS).findall(identifier) if _compile(_HUMPS).fullmatch(identifier) else []


def prepare(text: str) -> str:
    """Prepare a text for FTS5."""
    text = text.replace("\x00", " ")
    if not text.isascii():
        # A search for one character looks for pairs that start with it; the last character of a run starts none.
        ends = dict.fromkeys(run[-1] for run in _compile(_RUN).findall(text) if len(run) > 1)
        text = space_out(text) + ("\n" + " ".join(ends) if ends else "")
    if _compile(_HUMPED).search(text) and (humps := _compile(_HUMPS).findall(text)):
        text += "\n" + " ".join(part for word in humps for part in _compile(_PARTS).findall(word))
    return text


@lru_cache(maxsize=1)
def _tokenizer() -> Any:
    import apsw

    connection = apsw.Connection(":memory:")
    return connection.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"]), connection


def tokenize(text: str, prepared: bool = False) -> list[str]:
    """Lexemes of a text in order, including repeats."""
    import apsw

    tokenizer, _ = _tokenizer()
    source = text if prepared else prepare(text)
    found: list[str] = tokenizer(
        source.encode("utf-8", "replace"),
        apsw.FTS5_TOKENIZE_DOCUMENT,
        None,
        include_offsets=False,
        include_colocated=False,
    )
    return found


@lru_cache(maxsize=1 << 15)
def hash_word(lexeme: str) -> int:
    return crc32(lexeme.encode())


@lru_cache(maxsize=1 << 15)
def _behind(lexeme: str) -> bytes:
    """Encode a lexeme as the second word of a pair."""
    return f" {lexeme}".encode()


@lru_cache(maxsize=1)
def _list_stops() -> frozenset[str]:
    return frozenset(tokenize(" ".join(STOP_WORDS), prepared=True))


def pair_hash(pair: tuple[str, str]) -> int:
    """Hash of both words with a space between, continued from that of the first."""
    return crc32(_behind(pair[1]), hash_word(pair[0]))


def pack(lexemes: Sequence[str]) -> bytes:
    """Pack the words of a text: number of distinct words, sorted hashes, counts, hashes of pairs.

    The hashes of words and of pairs are sorted; each count takes one byte.
    """
    bag = Counter(map(hash_word, lexemes))
    order = sorted(bag)
    stops = _list_stops()
    content_words = [lexeme for lexeme in lexemes if lexeme not in stops]
    # As `pair_hash`, without a call for each.
    pairs = sorted(set(map(crc32, map(_behind, content_words[1:]), map(hash_word, content_words))))
    counts = bytes(min(bag[key], 255) for key in order)
    return array("I", [len(order), *order, *pairs]).tobytes() + counts


def unpack(blob: bytes | None) -> memoryview:
    """Sorted word hashes of a packed text."""
    blob = blob or b""
    # The size in a damaged one may be anything.
    size = min(int.from_bytes(blob[:4], sys.byteorder), max(0, len(blob) - 4) // 5)
    return memoryview(blob)[4 : 4 + size * 4].cast("I")


def count_occurrences(
    blob: bytes | None, words: Sequence[int], pairs: Sequence[int]
) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """Count each hashed word in a packed text, and check it for each hashed pair."""
    size = int.from_bytes(blob[:4], sys.byteorder) if blob else 0
    counts = len(blob or b"") - size
    if not blob or counts < 4 + 4 * size or counts % 4:  # none, or damaged
        return (0,) * len(words), (False,) * len(pairs)
    keys = memoryview(blob)[4:counts].cast("I")
    last = len(keys)
    found = []
    for key in words:
        at = bisect_left(keys, key, 0, size)
        found.append(blob[counts + at] if at < size and keys[at] == key else 0)
    beside = []
    for key in pairs:
        at = bisect_left(keys, key, size, last)
        beside.append(at < last and keys[at] == key)
    return tuple(found), tuple(beside)


# A question as an FTS5 MATCH expression

_COLUMNS = ("content", "summary", "section", "tags")
FTS_COLUMNS = "{content section tags}"
# Column weights of FTS5's bm25 in table order: content, summary, section, tags, scope. This ranking only selects
# the candidates; their score is computed again with the word weights of their scope.
# The summary repeats the content, so it counts only when it is asked for by name.
RANK = "bm25(1.0, 0.01, 1.0, 1.0, 0.0)"

# A very common word says little and costs much. Words are used from the rarest up until this many postings would be
# read; commoner ones find a memory only in pairs. Words left out still count when candidates are scored.
# (bench/LOG.md, 2026-11-15)
POSTINGS = 4_000
TOGETHER = 3  # number of common words that are combined into pairs
# Words of a phrase that are searched: a text that matches so many matches the rest. Each word of a phrase reads all positions
# of that word, so `a'a'a'…` of 2,000 characters would read one long text a thousand times.
_LONGEST_PHRASE = 50


def scope_token(scope: int) -> str:
    """Word for a scope in the full-text index; digits at its end keep the stemmer away."""
    return f"zq{scope}"


# A database's operators for "and", "or" and "not".
Signs = Mapping[str, str]
_SIGNS = {"and": " AND ", "or": " OR ", "not": " NOT "}


def write_question(query: Query, write_term: Callable[[Term], str], signs: Signs) -> str:
    """Write a question as a database expression: with its operators, or any of its terms.

    Empty if there is no word to search for.
    """
    if query.expression is not None:
        return _write_node(query.expression, write_term, signs)
    return signs["or"].join(dict.fromkeys(filter(None, map(write_term, query.terms))))


def _write_node(node: Expression, write_term: Callable[[Term], str], signs: Signs) -> str:
    if isinstance(node, Term):
        return write_term(node)
    operator, left, right = node
    one, other = (_write_node(side, write_term, signs) for side in (left, right))
    if not one or not other:
        return one if operator == "not" or not other else other
    return f"({one}{signs[operator]}{other})"


def keep_topic_terms(query: Query) -> Query:
    """Reduce a question to any of its words that topics can match.

    A topic has a name and a summary and no other columns.
    """
    known = [one for one in query.terms if one.column in (None, "content", "summary")]
    terms = tuple(one._replace(column=None) for one in known)
    return query._replace(expression=None, terms=terms)


def expression(query: Query, scopes: Collection[int]) -> str:
    """Write the whole query as one expression; empty if there is no word to search for."""
    words = write_question(query, _write_column_term, _SIGNS)
    return words and restrict(words, scopes)


def span_expression(query: Query, scopes: Collection[int]) -> str:
    words = write_question(keep_topic_terms(query), _write_term, _SIGNS)
    return words and restrict(f"{{name summary}} : ({words})", scopes)


def restrict(words: str, scopes: Collection[int]) -> str:
    """Restrict an expression to some scopes; none means all."""
    within = " OR ".join(f'"{scope_token(scope)}"' for scope in scopes)
    return f"({words}) AND scope : ({within})" if scopes else words


def alternatives(
    query: Query, count: Callable[[Iterable[str]], Mapping[str, int]], memories: int
) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
    """Weighted expressions that find a memory: the rarer words, and pairs of the commoner ones."""
    words = {
        _write_column_term(term): tokenize_term(term) for term in query.terms if is_searchable(term)
    }
    frequency = count(chain.from_iterable(words.values()))
    cost = {
        asked: min((frequency[word] for word in group), default=0) for asked, group in words.items()
    }
    cheapest = sorted(words, key=cost.__getitem__)
    weighed = [(asked, log(1 + memories / (1 + cost[asked]))) for asked in cheapest]
    rarer = bisect(list(accumulate(cost[asked] for asked in cheapest)), POSTINGS)
    pairs = [
        (f"({one} AND {other})", a + b)
        for (one, a), (other, b) in combinations(weighed[rarer : rarer + TOGETHER], 2)
    ]
    return weighed[:rarer], pairs


def query_words(query: Query) -> Words:
    """Words that decide the score, each once in the order asked, and pairs of adjacent words."""
    positive = query.terms if query.expression is None else find_leaves(query.expression)[0]
    scored = [
        word
        for term in positive
        if not term.prefix and term.column in (None, "content", "section", "tags")
        for word in tokenize_term(term)
    ]
    return Words(
        tuple(dict.fromkeys(scored)),
        tuple(dict.fromkeys(pair for pair in pairwise(scored) if pair[0] != pair[1])),
    )


def find_leaves(node: Expression) -> tuple[list[Term], list[Term]]:
    """Collect the terms of an expression that are wanted, and those that are excluded."""
    if isinstance(node, Term):
        return [node], []
    operator, left, right = node
    wanted, unwanted = find_leaves(left)
    more, less = find_leaves(right)
    if operator == "not":
        return wanted, unwanted + more + less
    return wanted + more, unwanted + less


def _space_term(term: Term) -> str:
    """Prepare a word of a question, unsplit: `parseUrl` means parseurl, not parse and url."""
    return space_out(term.text.replace("\x00", " ").encode("utf-8", "replace").decode("utf-8"))


def tokenize_term(term: Term) -> list[str]:
    return tokenize(_space_term(term), prepared=True)


def is_searchable(term: Term) -> bool:
    return any(character.isalnum() for character in term.text)


def _quote(text: str) -> str:
    return '"' + text.replace('"', " ") + '"'


def _shorten_phrase(text: str) -> str:
    """Cut a phrase after LONGEST_PHRASE words."""
    if len(text) < 2 * _LONGEST_PHRASE:
        return text
    beyond = next(islice(_compile(r"[^\W_]+").finditer(text), _LONGEST_PHRASE, None), None)
    return text[: beyond.start()] if beyond else text


def list_phrases(term: Term) -> tuple[list[str], bool]:
    """Phrases that match a term, and whether the term is only a prefix."""
    if not is_searchable(term):
        return [], False
    # The index contains a single Han character only as the start of pairs.
    begins = term.prefix or (len(term.text) == 1 and is_unspaced(term.text))
    split = [] if begins else parts(term.text)
    apart = [" ".join(split)] if len(split) > 1 else []
    return [_shorten_phrase(_space_term(term).strip()), *apart], begins


def _write_term(term: Term) -> str:
    phrases, begins = list_phrases(term)
    written = " OR ".join(map(_quote, phrases))
    if begins:
        return f"{written} *"
    return f"({written})" if len(phrases) > 1 else written


def _write_column_term(term: Term) -> str:
    column = term.column if term.column in _COLUMNS else FTS_COLUMNS
    words = _write_term(term)
    return f"{column} : ({words})" if words else ""
