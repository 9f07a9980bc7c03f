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
    assert (terms(raw), query.expression, query.text) == (words, None, " ".join(raw.split()))


@pytest.mark.parametrize(("raw", "found", "text"), cases("query-syntax"))
def test_phrases_prefixes_and_columns_are_terms_and_their_syntax_is_not_embedded(raw, found, text):
    assert (terms(raw), ask(raw).text, ask(raw).expression) == (found, text, None)


def test_a_quoted_phrase_is_a_phrase_even_of_one_word():
    assert ask('"redis"').terms == (Term("redis", phrase=True),)


@pytest.mark.parametrize(("raw", "expression", "found", "text"), cases("query-expressions"))
def test_a_well_formed_expression_is_understood(raw, expression, found, text):
    query = ask(raw)
    assert (show(query.expression), terms(raw), query.text) == (expression, found, text)


MANY = [f"word{number}" for number in range(TERM_LIMIT + 1)]


@pytest.mark.parametrize(
    ("raw", "words"), [*cases("query-no-expressions"), (" OR ".join(MANY), MANY[:TERM_LIMIT])]
)
def test_what_is_not_well_formed_is_searched_as_words(raw, words):
    assert (terms(raw), ask(raw).expression) == (words, None)


@pytest.mark.parametrize("name", cases("query-identifiers"))
def test_an_identifier_is_one_term_and_is_listed(name):
    query = ask(f"why does {name}, fail")
    assert query.identifiers == (name,)
    assert query.terms == (Term(name), Term("fail"))


@pytest.mark.parametrize(("raw", "identifiers"), cases("query-identifiers-are-found-in"))
def test_identifiers_are_found_in_what_surrounds_them(raw, identifiers):
    assert ask(raw).identifiers == identifiers


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


def test_a_kind_alone_is_still_something_to_search_for():
    query = ask("kind:decision")
    assert (query.kinds, query.text, query.expression) == (("decision",), "decision", None)
    assert query.terms == (Term("decision"),)


@pytest.mark.parametrize(("raw", "since", "until"), cases("query-times"))
def test_temporal_words_set_the_range_unless_they_are_quoted_or_excluded(raw, since, until):
    found = ask(raw).since, ask(raw).until
    assert [value and value.date().isoformat() for value in found] == [since, until]


def test_a_long_text_is_analysed_at_its_start_and_embedded_further():
    raw = "start " + "filler " * 2_000 + "end"
    query = ask(raw)
    assert query.raw == raw
    assert SYNTAX_LIMIT < len(query.text) <= TEXT_LIMIT
    assert terms(raw) == ["start", "filler"]


def test_the_limit_cuts_no_word_in_two_and_what_is_embedded_of_a_megabyte_is_bounded():
    query = ask("x" * (SYNTAX_LIMIT - 5) + " longer-word")
    assert query.terms == (Term("x" * (SYNTAX_LIMIT - 5)),)
    assert query.text.endswith(" longer-word")
    for unit in ("a ", '"', "kind:", "last week ", "文"):
        assert len(ask(unit * (1_000_000 // len(unit))).text) <= TEXT_LIMIT


SYNTAX_PIECES = st.sampled_from(
    [
        *'AND OR NOT ( ) " “ - * : ^ @ NEAR( a the foo foo* -foo src/a.py'.split(),
        *"content: {summary}: kind: entity: 文字 \x00 \ud800 🔥 \n".split(" "),
        *("last week", "since March", "in 2024", "open questions"),
    ]
)
QUESTIONS = (
    st.text(max_size=300)
    | st.lists(SYNTAX_PIECES | st.text(max_size=4), max_size=30).map(" ".join)
    | st.lists(SYNTAX_PIECES, max_size=30).map("".join)
)


@settings(max_examples=120, deadline=None)
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
