"""Question → `Query`: text to embed, words to look up, and the kinds, entities and times it means.

Any string is a valid question. Malformed syntax is searched as words, so nothing here raises, and two limits bound the
work however long the string is.

This module knows English stop words and cue phrases. It knows no full-text dialect: a `Term` is what the user meant; the store quotes it
and folds accents.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import reduce
from itertools import dropwhile, groupby, pairwise
from typing import Any, NamedTuple

from bethink.language.detect import is_english
from bethink.language.pattern import fold_case
from bethink.language.questions import (
    ABOUT_CODE,
    ABOUT_LATEST,
    ASKS_ALL_ABROAD,
    ASKS_MEMORY,
    ASKS_REPLY,
    ASKS_SET,
    DATING_EVENT,
    KIND_CUES,
    PAST_STATE,
    QUESTION_START,
)
from bethink.language.times import NUMERIC_DATE, find_period
from bethink.language.words import STOP_WORDS, WORD_LISTS
from bethink.model import KIND_ALIASES, KINDS, Expression, Filter, Query, Strings, Term
from bethink.store.words import find_leaves, space_out

SYNTAX_LIMIT = 2_000  # characters that are analysed; a longer question is pasted text, whose start says what it is about
TEXT_LIMIT = 8_000  # characters that are embedded
TERM_LIMIT = 64

OPERATORS = {"AND": "and", "OR": "or", "NOT": "not"}
# Side by side binds tightest, then NOT, AND and OR, as in SQLite's full-text language. By definition.
BINDING = {"close": 0, "or": 1, "and": 2, "not": 3}
SIDE_BY_SIDE = 4  # by definition

_LISTED = "decision conclusion question problem solution todo gotcha preference handoff fact pattern failure".split()
LIST_NOUNS = {f"{kind}s": kind for kind in _LISTED} | {
    "to-dos": "todo",
    "discoveries": "discovery",
    "choices": "decision",
}
ASKING_WORDS = WORD_LISTS["asking"] | LIST_NOUNS.keys()
# `\w` lacks the vowel signs that many scripts write inside a word, so these are added by range.
_WORD = r"\w\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u06d3\u06d5-\u06ed\u0900-\u0963\u0966-\u109f\u1780-\u17d3\u200c\u200d"
_UNPRINTABLE = "[\x00-\x08\x0e-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
_COLUMN = "(?:content|summary|section|tags)"
_SCAN = rf"""(?x)
    (?P<paren>[()])
  | (?P<field>(?i:\{{\s*{_COLUMN}(?:[\s,]+{_COLUMN})*\s*\}}\s*:\s*|(?:{_COLUMN}|kind|entity):(?![:/])))?
    (?:"(?P<phrase>[^"]*)"\*?|“(?P<curly>[^“”]*)”|(?P<chunk>[^\s"“”()]+(?:\(\)[^\s"“”()]*)*))
"""
# `%` is a placeholder for the characters of a word. A plain word may be a number, a date, U.S., I/O, C++ or C#.
_PIECE = r"[%.:/\\~@+#'’$-]+(?:\(\))?"
_PLAIN = (
    r"\d+(?:[.:]\d+)+|[A-Za-z](?:\.[A-Za-z])+(?![%])|\w{1,2}/\w{1,2}(?![%])|[A-Za-z](?:\+\+|#)"
    r"|[%]+(?:['’-][%]+)*"
)
# Text around a name: punctuation, the line in a file, a possessive s.
_AROUND = r"^(?:(?!--[A-Za-z])[^\w./~])+|(?<=\.\w)(\w*)(?::\d+)+\W*$|['’]s$|[^\w/)]+$"
_GENITIVE = r"['’]s$"
# "full-text" is found by either half, but the halves of "e-mail" mean nothing alone.
_JOINT = r" |(?<=[^\W\d_]{3})-(?=[^\W\d_]{3})"
_IDENTIFIER = r"""(?x)
    [a-z][a-z0-9]*[A-Z][A-Za-z0-9]+                            # camelCase
  | [A-Z][a-z0-9]+[A-Z][A-Za-z0-9]+ | [A-Z]{2,}[a-z]{2}\w*    # PascalCase, HTTPServer
  | _*[A-Za-z][A-Za-z0-9]*(?:_+[A-Za-z0-9]+)+_* | _[A-Za-z][A-Za-z0-9]+ | __[A-Za-z0-9]+__   # snake_case, CONSTANT_CASE
  | (?=\S*\d)[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)+            # gpt-4, CVE-2024-1234
  | (?=(?:\S*[.])?[A-Za-z_][\w-])\.?[\w-]+(?:\.[\w-]+)+ | \.[A-Za-z][\w-]+                   # dotted.path, main.py, .env
  | [A-Za-z_]\w*(?:::~?[A-Za-z_]\w*)+                          # std::vector
  | v\d+(?:\.\d+)*(?:[-+][A-Za-z0-9.]+)? | \d+(?:\.\d+){2,}(?:[-+]?[a-z][A-Za-z0-9.]*)?      # v1.2.3
  | [A-Z]{2,8}\d{2,}[A-Z]? | [A-Z]\d{3,}                       # E1234, TS2345
  | (?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64} | 0x[0-9A-Fa-f]+    # commit ids
  | (?=\S*[a-fA-F])[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4,12}){1,4}   # UUIDs
  | [\w.+-]+@[\w-]+(?:\.[\w-]+)+                               # mail addresses
  | [A-Za-z_][\w.:]*\(\) | [A-Za-z][A-Za-z+]*://\S+ | --[A-Za-z][\w-]+   # calls(), addresses, --flags
  | (?:[A-Za-z]:[\\/]|~?/|\.{1,2}/)(?=[^:]*\w)[^:]+             # /usr/bin, ./run.sh, but neither "and/or" nor "24/7"
  | (?=[\w.@-]*[A-Za-z])[\w.@-]+(?:(?:[\\/][\w.@-]+){2,}[\\/]?|[\\/])
  | [\w.@-]+[\\/][\w@-]+\.[A-Za-z][A-Za-z0-9]{0,7}              # src/main.py
"""


class Token(NamedTuple):
    """A piece of the question with its position. `stops` are looked up only if the question has no terms."""

    type: str  # operand, open, close, and, or, not
    start: int
    end: int
    surface: str  # its form in the embedded text
    terms: tuple[Term, ...] = ()
    stops: tuple[Term, ...] = ()
    identifiers: Strings = ()
    entity: str = ""
    kinds: Strings = ()
    literal: bool = False  # quoted, or syntax: its words are no cue for times and kinds


Tokens = list[Token]


def parse(raw: str, now: datetime) -> Query:
    """Analyse a question. Every string has an answer, and the same one for the same `now`."""
    whole = raw[:TEXT_LIMIT]
    if not whole.isprintable():
        whole = re.sub(_UNPRINTABLE, " ", whole)
    head = _cut_between_words(whole)
    tokens, terms, expression = _choose_terms(list(_scan(head)))
    kinds = _distinct(kind for token in tokens for kind in token.kinds)
    bare, terms = not terms, terms or [Term(kind) for kind in kinds]
    prose = _prose(head, tokens)
    cued_kinds, answered = _find_cues(prose)
    since, until, dated = find_period(prose, now)
    beside = prose if dated is None else prose[: dated[0]] + " " + prose[dated[1] :]
    return Query(
        raw=raw,
        text=_embedded_text(tokens, whole[len(head) :]) or " ".join(term.text for term in terms),
        terms=tuple(terms),
        expression=expression,
        kinds=kinds or cued_kinds,
        kinds_only=bool(kinds),
        kinds_meant=bare if kinds else bool(cued_kinds) and _only_asks(beside, ASKING_WORDS),
        entities=_distinct(token.entity for token in tokens if token.entity),
        since=since,
        until=until,
        answered=answered,
        identifiers=_distinct(name for token in tokens for name in token.identifiers)[:TERM_LIMIT],
        recap=dated is not None
        and "·" not in beside
        and _only_asks(beside, ASKING_WORDS | WORD_LISTS["doings"]),
        about_code=ABOUT_CODE.holds(prose),
        about_latest=ABOUT_LATEST.holds(prose) or not _asks(head),
        asks_set=ASKS_SET.holds(prose),
        asks_reply=ASKS_REPLY.holds(prose),
    )


def _asks(text: str) -> bool:
    """Return True for a question.

    A prompt, the subject of a commit or keywords are mostly about the work at hand.
    """
    text = text.strip()
    return text.endswith(("?", "？")) or ASKS_MEMORY.holds(text) or QUESTION_START.holds(text)


def _cut_between_words(whole: str) -> str:
    """Return the part to analyse, cut between words."""
    return whole if len(whole) <= SYNTAX_LIMIT else whole[:SYNTAX_LIMIT].rsplit(" ", 1)[0]


def _choose_terms(tokens: Tokens) -> tuple[Tokens, list[Term], Expression | None]:
    """Return the wanted tokens, their terms, and the expression that operators form.

    Stop words become terms if there are no others.
    """
    expression = _parse_expression(tokens)
    if expression is None:
        terms = [term for token in tokens for term in token.terms]
        terms = terms or [term for token in tokens for term in token.stops]
        return tokens, _unique(terms)[:TERM_LIMIT], None
    wanted, unwanted = find_leaves(expression)
    named = [
        token
        for token in tokens
        if token.type == "operand" and not (token.terms and set(token.terms) <= set(unwanted))
    ]
    return named, _unique(wanted)[:TERM_LIMIT], expression


# From characters to tokens


def _scan(head: str) -> Iterator[Token]:
    for match in re.finditer(_SCAN, head):
        text = match.group()
        if match["paren"]:
            yield Token("open" if text == "(" else "close", *match.span(), text)
        elif text in OPERATORS:
            yield Token(OPERATORS[text], *match.span(), text, stops=(Term(text),))
        else:
            yield _read_operand(match)


def _read_operand(match: re.Match[str]) -> Token:
    """The operand at a place: a phrase, a chunk between spaces, or either of them behind a field name."""
    fields, text = re.findall(r"\w+", (match["field"] or "").lower()), match["chunk"]
    quoted, prefix = text is None, None
    if quoted:
        text = " ".join((match["phrase"] or match["curly"] or "").split())
    if fields == ["kind"]:
        if kinds := _read_kinds(text):
            return Token("operand", *match.span(), "", kinds=kinds, literal=True)
        text, fields, quoted = match.group(), [], False  # none of the kinds: then it is no syntax
    elif not quoted and (prefix := re.fullmatch(r"(\w[\w./-]*\w)\*[,;.!?]*", text)):
        text = prefix[1]
    return _make_token(match.span(), text, fields, quoted, prefix is not None)


def _make_token(
    span: tuple[int, int], text: str, fields: Sequence[str], quoted: bool, prefix: bool
) -> Token:
    words = [text] if quoted or prefix else _split_words(text)
    words = [word for word in words if any(map(str.isalnum, word))]
    identifiers = tuple(filter(_is_identifier, words))
    plain = [] if quoted or prefix or fields else words
    stops = [word for word in plain if word.lower().replace("’", "'") in STOP_WORDS]
    columns: list[Any] = [field for field in fields if field != "entity"] or [None]
    terms, stopped = (
        tuple(
            Term(word, quoted, prefix, column) for word in dict.fromkeys(some) for column in columns
        )
        for some in ((word for word in words if word not in stops), stops)
    )
    return Token(
        "operand",
        *span,
        surface=text.lstrip("^"),
        terms=terms,
        stops=stopped,
        identifiers=identifiers,
        entity=text.strip(".,;:!?") if "entity" in fields else "",
        literal=bool(quoted or fields or identifiers),
    )


def _read_kinds(value: str) -> Strings:
    """The kinds in `kind:decisions,todo`, or nothing if one of them is none."""
    names = [name for name in re.split(r"[\s,;]+", value.lower().rstrip(".?!")) if name]
    kinds = [KIND_ALIASES.get(name, name) for name in names]
    kinds = [kind if kind in KINDS else kind.removesuffix("s") for kind in kinds]
    return tuple(kinds) if set(kinds) <= set(KINDS) else ()


def _split_words(chunk: str) -> list[str]:
    """Split a chunk between spaces into words, identifiers whole.

    Most chunks are one plain word, for which no pattern is compiled. A script without spaces is found by any two adjacent characters, as a
    clause of words is by any of them.
    """
    plain = chunk.rstrip("?!,;")
    if plain.isascii() and plain.isalpha() and (plain.islower() or plain.istitle()):
        return [plain]
    # The wide character sets take milliseconds to compile, so English does without.
    letters = r"\w" if chunk.isascii() else _WORD
    piece, word = (re.compile(pattern.replace("%", letters)) for pattern in (_PIECE, _PLAIN))
    words: list[str] = []
    for found in dict.fromkeys(piece.findall(space_out(chunk))):
        name = re.sub(_AROUND, r"\1", found)
        names = [name] if _is_identifier(name) else re.split(_JOINT, " ".join(word.findall(found)))
        words += [re.sub(_GENITIVE, "", one) for one in names]
    return words


def _is_identifier(word: str) -> bool:
    if (word.isalpha() and word.islower()) or re.fullmatch(NUMERIC_DATE, word):
        return False
    return re.fullmatch(_IDENTIFIER, word) is not None


# Operators


def _parse_expression(tokens: Tokens) -> Expression | None:
    """Return the expression that the tokens form, or None if it is malformed or has no operator."""
    rest = _drop_stops(tokens)[::-1]
    if sum(token.type == "open" for token in rest) > TERM_LIMIT:
        return None
    try:
        node = _take_expression(rest, 1)
    except IndexError:  # it ends too early, or an operator is where a word should be
        return None
    return node if not rest and sum(map(len, find_leaves(node))) <= TERM_LIMIT else None


def _take_expression(rest: Tokens, binding: int) -> Expression:
    """Take the next expression of operators that bind at least this tightly from the reversed tokens."""
    token = rest.pop()
    if token.type == "open":
        node = _take_expression(rest, 1)
        rest.pop()
    else:
        node = _make_operand(token)
    while rest and (binds := BINDING.get(rest[-1].type, SIDE_BY_SIDE)) >= binding:
        operator = rest.pop().type if binds < SIDE_BY_SIDE else "and"
        if operator == "and" and rest[-1].type == "not":  # AND NOT
            operator = rest.pop().type
        node = (operator, node, _take_expression(rest, max(binds, BINDING[operator]) + 1))
    return node


def _drop_stops(tokens: Tokens) -> Tokens:
    """Drop the stop words of an expression: `what AND is AND python` asks for python.

    Return no tokens if there is no operator, or if NOT belongs to a sentence: "does NOT support" excludes nothing.
    """
    denies = any(
        token.type == "not" and before.type == "operand" and before.stops
        for before, token in pairwise(tokens)
    )
    if denies or not any(token.surface in OPERATORS for token in tokens):
        return []
    return [token for token in tokens if token.type != "operand" or token.terms]


def _make_operand(token: Token) -> Expression:
    """Turn a token into a node: all of its words, each in any of its columns. An operator has none."""
    if token.type != "operand":
        raise IndexError
    words = groupby(token.terms, key=lambda term: term.text)
    return _chain("and", (_chain("or", columns) for _, columns in words))


def _chain(operator: str, nodes: Iterable[Expression]) -> Expression:
    return reduce(lambda left, right: (operator, left, right), nodes)


def _unique(terms: Iterable[Term]) -> list[Term]:
    """Return the terms in order, each once whatever its case."""
    first: dict[Term, Term] = {}
    for term in terms:
        first.setdefault(term._replace(text=term.text.casefold()), term)
    return list(first.values())


def _distinct(values: Iterable[str]) -> Strings:
    return tuple(term.text for term in _unique(map(Term, values)))


# Text to embed, and the kinds that the words ask for


def _embedded_text(tokens: Tokens, tail: str) -> str:
    """Return the text to embed: the question in its own words, without syntax."""
    parts, end = [], 0
    for token in tokens:
        parts += [" " if token.start > end or not token.surface else "", token.surface]
        end = token.end if token.surface else -1
    return " ".join("".join([*parts, tail]).split())


def _prose(head: str, tokens: Tokens) -> str:
    """Return the question with a dot for every character that is not running text."""
    prose = [" " if character.isspace() else "·" for character in head]
    for token in tokens:
        if not token.literal:
            prose[token.start : token.end] = head[token.start : token.end]
    return "".join(prose)


def _find_cues(prose: str) -> tuple[Strings, bool | None]:
    """Return the kinds that a question asks for outright, and False if it asks only for open ones."""
    text = " ".join(fold_case(prose).split())
    cues = [
        cue
        for cue in KIND_CUES
        if any(hint in text for hint in cue.hints) and cue.pattern.holds(text)
    ]
    asked = [kind for cue in cues for kind in cue.kinds]
    kinds = _distinct([*_find_list_kind(text.split()), *asked])
    return kinds, False if any(cue.open_only for cue in cues) else None


def _only_asks(text: str, asking: frozenset[str]) -> bool:
    """Return True if a question has no words but those that ask."""
    if not is_english(text) and ASKS_ALL_ABROAD.holds(text):
        return True
    words = re.findall(r"[^\W_]+(?:-[^\W_]+)*", re.sub(r"['’]\w+", "", text.lower()))
    return (STOP_WORDS | WORD_LISTS["list_leads"] | asking).issuperset(words)


def _find_list_kind(words: list[str]) -> list[str]:
    """Return the kind that a question begins with: "list all decisions", "gotchas about X"."""
    noun, after = [*dropwhile(WORD_LISTS["list_leads"].__contains__, words), "", ""][:2]
    name = noun.rstrip(".,:;?!")
    ends = noun != name or not after or after.rstrip(".,:;?!") in WORD_LISTS["list_followers"]
    return [LIST_NOUNS[name]] if ends and name in LIST_NOUNS else []


# Questions about a past state

_SIDES = (
    "before",
    "after",
    "since",
    "until",
    "prior to",
)  # one of them is in every text that `EVENT` matches
EVENT_FIT = 0.52  # how well a memory must fit the event to tell its time; by hand
INSTANT = timedelta(milliseconds=1)


def find_event(question: str) -> tuple[str, str] | None:
    """Return the event that a question about the work names instead of a date, with `until` or `since`.

    Only "did we …" counts. Events of a person's life are often mentioned long after they happened.
    """
    asked = question[:1000]
    if not any(side in asked.lower() for side in _SIDES):
        return None
    found = DATING_EVENT.find(asked)
    if found is None or not PAST_STATE.holds(asked):
        return None
    until = found["side"].lower() in ("before", "until", "prior to")
    return "until" if until else "since", asked[slice(*found.span("event"))].strip()


def resolve_as_of(query: Query, filter: Filter, question: str, now: datetime) -> Filter:
    """Return the filter for the state at the past time that a question asks about, if it does."""
    seen = filter.as_of is not None or filter.include_superseded
    if seen or not query.until or query.until >= now or not PAST_STATE.holds(question[:1000]):
        return filter
    return filter._replace(as_of=query.until - INSTANT)
