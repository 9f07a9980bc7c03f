"""Questions as people and agents type them, and as nobody should. The clock stands at Sunday 15 November 2026, noon UTC."""

from datetime import UTC, datetime

import pytest
from case_tables import cases
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bethink.model import KINDS, Query, Term
from bethink.recall.query import SYNTAX_LIMIT, TERM_LIMIT, TEXT_LIMIT, parse

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


def test_words_phrases_and_well_formed_expressions_are_understood_and_all_else_is_words():
    for raw, words in cases("query-content-words"):
        query = ask(raw)
        assert (terms(raw), query.expression, query.text) == (words, None, " ".join(raw.split()))
    for raw, found, text in cases("query-syntax"):
        assert (terms(raw), ask(raw).text, ask(raw).expression) == (found, text, None)
    assert ask('"redis"').terms == (Term("redis", phrase=True),)
    many = [f"word{number}" for number in range(TERM_LIMIT + 1)]
    for raw, expression, found, text in cases("query-expressions"):
        query = ask(raw)
        assert (show(query.expression), terms(raw), query.text) == (expression, found, text)
    for raw, words in [*cases("query-no-expressions"), (" OR ".join(many), many[:TERM_LIMIT])]:
        assert (terms(raw), ask(raw).expression) == (words, None)


def test_identifiers_and_entities_are_found_in_what_surrounds_them():
    for name in cases("query-identifiers"):
        query = ask(f"why does {name}, fail")
        assert query.identifiers == (name,)
        assert query.terms == (Term(name), Term("fail"))
    for raw, identifiers in cases("query-identifiers-are-found-in"):
        assert ask(raw).identifiers == identifiers
    for raw, entities, text, words in cases("query-entities"):
        query = ask(raw)
        assert (query.entities, query.text, terms(raw)) == (entities, text, words)


OPEN = (
    "open questions|unanswered questions about auth|what’s still unresolved|what remains unanswered"
)


def test_a_clear_cue_names_the_kinds_and_open_questions_have_no_answer():
    for raw, kinds in cases("query-kind-cues"):
        query = ask(raw)
        assert query.kinds == kinds and set(kinds) <= set(KINDS)
        assert query.answered is None
    for raw in OPEN.split("|"):
        assert (ask(raw).kinds, ask(raw).answered) == (("question",), False)
    # A kind alone is still something to search for.
    query = ask("kind:decision")
    assert (query.kinds, query.text, query.expression) == (("decision",), "decision", None)
    assert query.terms == (Term("decision"),)


OPEN_ITEMS = ("todo", "question", "problem")


@pytest.mark.parametrize(
    ("raw", "kinds"),
    [
        pytest.param("open todos for the parser", ("todo",), id="to-dos about something"),
        pytest.param("open tasks?", ("todo",), id="tasks"),
        pytest.param("any open problems?", ("problem",), id="problems"),
        pytest.param("what is left to do", OPEN_ITEMS, id="left to do"),
        pytest.param("What's left?", OPEN_ITEMS, id="left"),
        pytest.param("is anything left to do?", OPEN_ITEMS, id="anything left"),
        pytest.param("what is still to do?", OPEN_ITEMS, id="still to do"),
        pytest.param("what is still open?", OPEN_ITEMS, id="still open"),
        pytest.param("what remains open?", OPEN_ITEMS, id="remains open"),
        pytest.param("list all open items", OPEN_ITEMS, id="open items"),
    ],
)
def test_a_question_for_what_is_open_means_items_that_nothing_closed(raw, kinds):
    assert (ask(raw).kinds, ask(raw).answered) == (kinds, False)


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param("what is left of the old API", id="left of something"),
        pytest.param("what is open source", id="open source"),
        pytest.param("is the port open", id="an open port"),
    ],
)
def test_a_question_with_the_word_left_or_open_may_be_about_anything(raw):
    assert ask(raw).answered is None


@pytest.mark.parametrize(("raw", "since", "until"), cases("query-times"))
def test_temporal_words_set_the_range_unless_they_are_quoted_or_excluded(raw, since, until):
    found = ask(raw).since, ask(raw).until
    assert [value and value.date().isoformat() for value in found] == [since, until]


def test_a_long_text_is_analysed_at_its_start_and_embedded_further_within_bounds():
    raw = "start " + "filler " * 2_000 + "end"
    query = ask(raw)
    assert query.raw == raw
    assert SYNTAX_LIMIT < len(query.text) <= TEXT_LIMIT
    assert terms(raw) == ["start", "filler"]
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
