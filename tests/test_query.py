"""Questions as people and agents type them, and as nobody should. The clock stands at Sunday 15 November 2026, noon UTC."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from case_tables import cases
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bethink.recall.query import SYNTAX_LIMIT, TERM_LIMIT, TEXT_LIMIT, parse
from bethink.types import KINDS, Query, Term

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def ask(raw: str) -> Query:
    return parse(raw, NOW)


def show(node):
    """A term or expression in short: `content:auth*`, `"a phrase"`, `(and a (not b c))`."""
    if node is None:
        return None
    if not isinstance(node, Term):
        return f"({node[0]} {show(node[1])} {show(node[2])})"
    text = f'"{node.text}"' if node.phrase else node.text + "*" * node.prefix
    return f"{node.column}:{text}" if node.column else text


def terms(raw: str) -> list[str]:
    return [str(show(term)) for term in ask(raw).terms]


@pytest.mark.parametrize(("raw", "words"), cases("query-content-words"))
def test_content_words_are_looked_up_once_each(raw, words):
    query = ask(raw)
    assert terms(raw) == words
    assert query.expression is None
    assert query.text == " ".join(raw.split())


@pytest.mark.parametrize(("raw", "found", "text"), cases("query-syntax"))
def test_phrases_prefixes_and_columns_are_terms_and_their_syntax_is_not_embedded(raw, found, text):
    assert (terms(raw), ask(raw).text, ask(raw).expression) == (found, text, None)


def test_a_quoted_phrase_is_a_phrase_even_of_one_word():
    assert ask('"redis"').terms == (Term("redis", phrase=True),)


@pytest.mark.parametrize(("raw", "expression", "found", "text"), cases("query-expressions"))
def test_a_well_formed_expression_is_understood(raw, expression, found, text):
    query = ask(raw)
    assert (show(query.expression), terms(raw), query.text) == (expression, found, text)


@pytest.mark.parametrize(("raw", "words"), cases("query-no-expressions"))
def test_what_is_not_well_formed_is_searched_as_words(raw, words):
    assert terms(raw) == words
    assert ask(raw).expression is None


def test_excluded_words_are_dropped_rather_than_wanted_when_only_a_kind_stands_beside_them():
    query = ask("kind:decision -draft")
    assert (query.kinds, query.text, query.expression) == (("decision",), "decision", None)


def test_an_expression_of_too_many_terms_is_searched_as_words():
    query = ask(" OR ".join(f"word{number}" for number in range(TERM_LIMIT + 1)))
    assert query.expression is None
    assert len(query.terms) == TERM_LIMIT


@pytest.mark.parametrize("name", cases("query-identifiers"))
def test_an_identifier_is_one_term_and_is_listed(name):
    query = ask(f"why does {name}, fail")
    assert query.identifiers == (name,)
    assert query.terms == (Term(name), Term("fail"))


@pytest.mark.parametrize(("raw", "identifiers"), cases("query-identifiers-are-found-in"))
def test_identifiers_are_found_in_what_surrounds_them(raw, identifiers):
    assert ask(raw).identifiers == identifiers


@pytest.mark.parametrize("raw", cases("query-ordinary-words-are-no"))
def test_ordinary_words_are_no_identifiers(raw):
    assert ask(raw).identifiers == ()


@pytest.mark.parametrize(("raw", "entities", "text", "words"), cases("query-entities"))
def test_entities_are_those_that_were_named_as_such(raw, entities, text, words):
    query = ask(raw)
    assert (query.entities, query.text, terms(raw)) == (entities, text, words)


@pytest.mark.parametrize(("raw", "kinds"), cases("query-kind-cues"))
def test_a_clear_cue_names_the_kinds(raw, kinds):
    query = ask(raw)
    assert query.kinds == kinds and set(kinds) <= set(KINDS)
    assert query.answered is None


OPEN = "open questions|unanswered questions about auth|what is still open?|what’s still unresolved|what remains unanswered"


@pytest.mark.parametrize("raw", OPEN.split("|"))
def test_open_questions_are_questions_without_an_answer(raw):
    assert (ask(raw).kinds, ask(raw).answered) == (("question",), False)


@pytest.mark.parametrize("raw", cases("query-words-that-only-resemble"))
def test_words_that_only_resemble_a_cue_name_no_kind(raw):
    assert (ask(raw).kinds, ask(raw).answered) == ((), None)


def test_a_kind_alone_is_still_something_to_search_for():
    query = ask("kind:decision")
    assert (query.kinds, query.text) == (("decision",), "decision")
    assert query.terms == (Term("decision"),)


@pytest.mark.parametrize(
    ("raw", "since", "until"),
    [
        ("what did we decide last week", "2026-11-02", "2026-11-09"),
        ("decisions since March", "2026-03-01", None),
        ("notes on 2024-05-01", "2024-05-01", "2024-05-02"),
        ("When did Caroline go to the support group?", None, None),
        ("it may fail", None, None),
        ('find "last week" in the logs', None, None),
        ("content:yesterday", None, None),
        ("cache -yesterday", None, None),
        ("cache NOT yesterday", None, None),
        ("read src/last/2024-05-01.log", None, None),
    ],
)
def test_temporal_words_set_the_range_unless_they_are_quoted_or_excluded(raw, since, until):
    found = ask(raw).since, ask(raw).until
    assert [value and value.date().isoformat() for value in found] == [since, until]


def test_a_long_text_is_analysed_at_its_start_and_embedded_further():
    raw = "start " + "filler " * 2_000 + "end"
    query = ask(raw)
    assert query.raw == raw
    assert SYNTAX_LIMIT < len(query.text) <= TEXT_LIMIT
    assert terms(raw) == ["start", "filler"]


def test_the_limit_cuts_no_word_in_two():
    query = ask("x" * (SYNTAX_LIMIT - 5) + " longer-word")
    assert query.terms == (Term("x" * (SYNTAX_LIMIT - 5)),)
    assert query.text.endswith(" longer-word")


@pytest.mark.parametrize("unit", ["a ", '"', "kind:", "last week ", "文"])
def test_what_is_embedded_of_a_megabyte_is_bounded(unit):
    assert len(ask(unit * (1_000_000 // len(unit))).text) <= TEXT_LIMIT


SYNTAX_PIECES = st.sampled_from(
    [
        *'AND OR NOT ( ) " “ - * : ^ @ NEAR( a the foo foo* -foo --x src/a.py'.split(),
        *"content: {summary}: kind: entity: 文字 \x00 \ud800 🔥 \n".split(" "),
        *("last week", "since March", "in 2024", "open questions"),
    ]
)
QUESTIONS = (
    st.text(max_size=300)
    | st.lists(SYNTAX_PIECES | st.text(max_size=4), max_size=30).map(" ".join)
    | st.lists(SYNTAX_PIECES, max_size=30).map("".join)
)


@settings(max_examples=300, deadline=None)
@example("(" * 1_999 + "a")
@example("a OR " * 400 + "a")
@example("-a" * 1_000)
@given(QUESTIONS)
def test_every_string_is_a_question(raw):
    query = ask(raw)
    assert query == ask(raw)
    assert query.raw == raw
    folded = {term._replace(text=term.text.casefold()) for term in query.terms}
    assert len(folded) == len(query.terms) <= TERM_LIMIT
    columns = (None, "content", "summary", "section", "tags")
    assert all(term.text and term.column in columns for term in query.terms)
    assert set(query.kinds) <= set(KINDS)
    assert not (query.since and query.until) or query.since < query.until
    # What is stored and sent to a model must be encodable.
    texts = [query.text, *(term.text for term in query.terms), *query.entities]
    for text in (*texts, *query.identifiers):
        assert "\x00" not in text.encode().decode()
    assert (show(query.expression) is None) == (query.expression is None)
