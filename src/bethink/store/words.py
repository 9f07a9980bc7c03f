"""Words: text → the lexemes it is indexed under, the same for every database, and a Query as an FTS5 expression.

Words are lower-cased, stripped of accents and stemmed by FTS5's own tokenizer, so that what is counted here is exactly what FTS5
finds. Two things FTS5 cannot do are prepared for it: identifiers such as `parseHttpUrl` are also indexed under their parts, and scripts
written without spaces are indexed by pairs of characters. In an expression every word is quoted, so no input can be taken for syntax.
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
from bethink.model import Query, Term, Words

# Han, kana, Hangul, Thai, Lao, Myanmar, Khmer: no spaces between words, or (Hangul) particles glued to them.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_RUN = f"[{_UNSPACED}]+"
# Bounded and from the first letter of a word only: it would otherwise be tried from each of them.
_HUMPS = r"(?<![A-Za-z])(?:[A-Za-z][A-Za-z0-9]{0,60}[a-z0-9][A-Z][A-Za-z0-9]*|[A-Z]{2,60}[a-z][A-Za-z0-9]*)"
_HUMPED = "[a-z0-9][A-Z]|[A-Z]{2}[a-z]"  # in every word with humps; most texts hold none
_SYNTAX = r"[\"“”()*^{}\[\]|~]|(?<!\S)[-@]{1,4}(?=\w)"
_FIELD = r"(?i)\b(content|summary|section|tags|kind|entity):"
_OPERATOR = r"\b(?:AND|OR|NOT)\b"
_PARTS = r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+"


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    """When it is first needed: a plain question in English needs none of them."""
    return re.compile(pattern)


def _pairs(match: re.Match[str]) -> str:
    run = match.group()
    pairs = (run[at : at + 2] for at in range(max(1, len(run) - 1)))
    return f" {' '.join(pairs)} "


def space_out(text: str) -> str:
    """A text whose unspaced runs are written as pairs of characters."""
    return text if text.isascii() else _compile(_RUN).sub(_pairs, text)


def as_words(text: str) -> str:
    """A text without what would be query syntax. Where a script has no spaces a whole sentence would be looked for as it stands."""
    text = _compile(_FIELD).sub(r"\1 ", _compile(_SYNTAX).sub(" ", text))
    return space_out(_compile(_OPERATOR).sub(lambda found: found[0].lower(), text))


def is_unspaced(text: str) -> bool:
    """Whether a text is one run of a script without spaces."""
    return _compile(_RUN).fullmatch(text) is not None


def parts(identifier: str) -> list[str]:
    """`parseHttpUrl` → parse, Http, Url; a word without humps has no parts."""
    if identifier.islower():
        return []
    return _compile(_PARTS).findall(identifier) if _compile(_HUMPS).fullmatch(identifier) else []


def prepare(text: str) -> str:
    """The form of a text that is handed to FTS5."""
    text = text.replace("\x00", " ")
    if not text.isascii():
        # A search for one character looks for pairs that begin with it; the last character of a run begins none.
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
    """Every lexeme of a text, in order, repeats included."""
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
    """A word as it stands behind another one."""
    return f" {lexeme}".encode()


@lru_cache(maxsize=1)
def _list_stops() -> frozenset[str]:
    return frozenset(tokenize(" ".join(STOP_WORDS), prepared=True))


def pair_hash(pair: tuple[str, str]) -> int:
    """The hash of both words with a blank between, going on from that of the first."""
    return crc32(_behind(pair[1]), hash_word(pair[0]))


def pack(lexemes: Sequence[str]) -> bytes:
    """A text's words: how many are distinct, their sorted hashes, a count byte each, then the sorted hashes of its pairs."""
    bag = Counter(map(hash_word, lexemes))
    order = sorted(bag)
    stops = _list_stops()
    told = [lexeme for lexeme in lexemes if lexeme not in stops]
    # As `pair_hash`, without a call for each.
    pairs = sorted(set(map(crc32, map(_behind, told[1:]), map(hash_word, told))))
    counts = bytes(min(bag[key], 255) for key in order)
    return array("I", [len(order), *order, *pairs]).tobytes() + counts


def unpack(blob: bytes | None) -> memoryview:
    """The sorted word hashes of a packed text."""
    blob = blob or b""
    # A damaged one says anything.
    size = min(int.from_bytes(blob[:4], sys.byteorder), max(0, len(blob) - 4) // 5)
    return memoryview(blob)[4 : 4 + size * 4].cast("I")


def count_occurrences(
    blob: bytes | None, words: Sequence[int], pairs: Sequence[int]
) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """How often each hashed word, and whether each hashed pair, stands in a packed text."""
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

COLUMNS = ("content", "summary", "section", "tags")
FTS_COLUMNS = "{content section tags}"
# Column weights of FTS5's bm25 in table order: content, summary, section, tags, scope. The order found here only decides
# which memories become candidates; their score is worked out again with the word weights of their own scope.
# The summary repeats the content, so it counts only where it is asked for by name.
RANK = "bm25(1.0, 0.01, 1.0, 1.0, 0.0)"

# A word that stands in very many memories says little and costs much. Words are taken from the rarest up until this many
# postings would be read; of the commoner ones only two together find a memory. Those left out still count when candidates
# are scored. (bench/LOG.md, 2026-11-15)
POSTINGS = 4_000
TOGETHER = 3  # how many of the commoner words are tried two by two
# Words of a phrase that are looked for: what agrees in so many agrees in the rest. Each word of a phrase reads the places of that
# word, so `a'a'a'…` of 2,000 characters read one long text a thousand times.
LONGEST_PHRASE = 50


def scope_token(scope: int) -> str:
    """The word under which the full-text index knows a scope. Digits at its end keep the stemmer away."""
    return f"zq{scope}"


# How a database writes "and", "or" and "not" between two pieces.
Signs = Mapping[str, str]
SIGNS = {"and": " AND ", "or": " OR ", "not": " NOT "}


def write_question(query: Query, write_term: Callable[[Term], str], signs: Signs) -> str:
    """A question as a database's expression: as its operators say, or any of its terms. Nothing where there is no word to look for."""
    if query.expression is not None:
        return _write_node(query.expression, write_term, signs)
    return signs["or"].join(dict.fromkeys(filter(None, map(write_term, query.terms))))


def _write_node(node: Any, write_term: Callable[[Term], str], signs: Signs) -> str:
    if isinstance(node, Term):
        return write_term(node)
    operator, left, right = node
    one, other = (_write_node(side, write_term, signs) for side in (left, right))
    if not one or not other:
        return one if operator == "not" or not other else other
    return f"({one}{signs[operator]}{other})"


def keep_topic_terms(query: Query) -> Query:
    """The words of a question, any of them, as topics know them: a topic has a name and a summary and no other columns."""
    known = [one for one in query.terms if one.column in (None, "content", "summary")]
    terms = tuple(one._replace(column=None) for one in known)
    return query._replace(expression=None, terms=terms)


def expression(query: Query, scopes: Collection[int]) -> str:
    """The whole query as one expression, empty when there is no word to look for."""
    words = write_question(query, _write_column_term, SIGNS)
    return words and restrict(words, scopes)


def span_expression(query: Query, scopes: Collection[int]) -> str:
    words = write_question(keep_topic_terms(query), _write_term, SIGNS)
    return words and restrict(f"{{name summary}} : ({words})", scopes)


def restrict(words: str, scopes: Collection[int]) -> str:
    """An expression that looks only into some scopes; into all when none is named."""
    within = " OR ".join(f'"{scope_token(scope)}"' for scope in scopes)
    return f"({words}) AND scope : ({within})" if scopes else words


def alternatives(
    query: Query, count: Callable[[Iterable[str]], Mapping[str, int]], memories: int
) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
    """What finds a memory, each with its weight: the rarer words, and pairs of the commoner ones."""
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
    """The words whose frequency decides the score: each once, in the order asked, and the pairs that stand side by side."""
    positive = query.terms if query.expression is None else find_leaves(query.expression)[0]
    told = [
        word
        for term in positive
        if not term.prefix and term.column in (None, "content", "section", "tags")
        for word in tokenize_term(term)
    ]
    return Words(
        tuple(dict.fromkeys(told)),
        tuple(dict.fromkeys(pair for pair in pairwise(told) if pair[0] != pair[1])),
    )


def find_leaves(node: Any) -> tuple[list[Term], list[Term]]:
    """The terms of an expression that are looked for, and those that are excluded."""
    if isinstance(node, Term):
        return [node], []
    operator, left, right = node
    wanted, unwanted = find_leaves(left)
    more, less = find_leaves(right)
    if operator == "not":
        return wanted, unwanted + more + less
    return wanted + more, unwanted + less


def _space_term(term: Term) -> str:
    """A word of a question in the form the index has, but whole: `parseUrl` asks for parseurl, not for parse and url apart."""
    return space_out(term.text.replace("\x00", " ").encode("utf-8", "replace").decode("utf-8"))


def tokenize_term(term: Term) -> list[str]:
    return tokenize(_space_term(term), prepared=True)


def is_searchable(term: Term) -> bool:
    return any(character.isalnum() for character in term.text)


def _quote(text: str) -> str:
    return '"' + text.replace('"', " ") + '"'


def _shorten_phrase(text: str) -> str:
    """A phrase without the words beyond the last one that is looked for."""
    if len(text) < 2 * LONGEST_PHRASE:
        return text
    beyond = next(islice(_compile(r"[^\W_]+").finditer(text), LONGEST_PHRASE, None), None)
    return text[: beyond.start()] if beyond else text


def list_phrases(term: Term) -> tuple[list[str], bool]:
    """The phrases by any of which a term is found, and whether it is only the beginning of one."""
    if not is_searchable(term):
        return [], False
    # A single Han character stands in the index at the start of pairs.
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
    column = term.column if term.column in COLUMNS else FTS_COLUMNS
    words = _write_term(term)
    return f"{column} : ({words})" if words else ""
