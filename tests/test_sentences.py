"""From the text of one turn to statements that can be read on their own."""

import pytest
from case_tables import cases
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.ingest.sentences import LONGEST, MOST, kind_of, split_sentences, statements


def texts(turn):
    return [statement.text for statement in statements(turn)]


def labels(turn):
    return [(statement.label, statement.text) for statement in statements(turn)]


@pytest.mark.parametrize(
    ("text", "sentences"),
    cases("sentences-sentences-end-where-people"),
)
def test_sentences_end_where_people_end_them(text, sentences):
    assert split_sentences(text) == sentences


NOISE = cases("sentences-noise", globals())


@pytest.mark.parametrize("noise", [noise for _, noise in NOISE], ids=[name for name, _ in NOISE])
def test_what_is_no_prose_is_left_out(noise):
    found = statements(f"We keep SQLite for the cache.\n\n{noise}\n")
    assert [statement.text for statement in found] == ["We keep SQLite for the cache."]


@pytest.mark.parametrize(
    ("heading", "kind"),
    cases("sentences-a-heading-announces-a"),
)
def test_a_heading_announces_a_kind(heading, kind):
    assert kind_of(heading) == kind


def test_items_below_a_heading_or_a_lead_in_are_of_its_kind():
    turn = """Done with the importer.

## Next steps
1. Add rate limiting to the API
   before the launch.
2. Rotate the signing keys

Decisions:
- keep SQLite for the cache
- drop the old queue

Everything else stays as it was before.

**Open questions**
* who owns the bucket
"""
    assert labels(turn) == cases("sentences-items-below-a-heading-or")


@pytest.mark.parametrize(
    ("turn", "label"),
    cases("sentences-a-label-speaks-for-its"),
)
def test_a_label_speaks_for_its_sentence(turn, label):
    assert labels(turn)[0][0] == label


def test_a_ticked_box_is_no_todo():
    assert labels("## Next steps\n- [x] write the changelog\n- [ ] rotate the keys\n") == [
        ("none", "write the changelog"),
        ("todo", "rotate the keys"),
    ]


def test_reports_of_files_and_tests_are_left_out():
    assert (
        texts(
            "**Files changed:**\n- the parser of the planner\n- the exporter\n\n## Verification\n- all suites were run twice\n"
        )
        == []
    )


@pytest.mark.parametrize(
    ("turn", "found"),
    cases("sentences-a-pronoun-brings-its"),
)
def test_a_pronoun_brings_its_sentence_or_is_dropped(turn, found):
    assert texts(turn) == found


def test_the_core_is_what_says_something_new():
    last = statements(
        "The lock is held during the call. This means that every other worker waits."
    )[-1]
    assert last.core == "This means that every other worker waits."
    assert (
        statements("We raised the pool to 20. That fixed it.")[-1].core
        == "We raised the pool to 20. That fixed it."
    )


def test_wrapped_lines_are_one_paragraph_and_chat_lines_are_several():
    wrapped = "The importer reads the whole file into memory before it looks at\nthe first row, and that is what makes the small machine\nfall over."
    assert texts(wrapped) == [" ".join(wrapped.split())]
    assert texts("fix the login\nthe header is broken on mobile") == [
        "fix the login",
        "the header is broken on mobile",
    ]


def test_markup_is_taken_off_and_code_keeps_its_ticks():
    turn = "✅ **We keep** *SQLite*, see [the docs](docs/x.md) and `a_b.c`: ![pic](x.png) __done__ with 2*3*4 and snake_case_name."
    assert texts(turn) == [
        "We keep SQLite, see the docs and `a_b.c`: done with 2*3*4 and snake_case_name."
    ]


def test_a_long_statement_is_cut_at_a_word():
    (short,) = texts("word " * 60 + "end; " + "more " * 60)
    assert len(short) <= LONGEST and short.endswith("more…")
    assert len(texts("x" * 1000)[0]) <= LONGEST
    # Words that are not set apart are cut anywhere, but for a letter from its marks.
    (long,) = texts("Postgres " + "数据库存储数据" * 100)
    assert LONGEST - 20 < len(long) <= LONGEST
    (marked,) = texts("que\u0301" * 200)
    assert marked.endswith("qu…")


def test_a_turn_has_a_limit():
    assert len(statements("We keep this one.\n\n" * 2000)) == MOST


FRAGMENTS = st.sampled_from(cases("sentences-fragments"))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(FRAGMENTS, st.text(max_size=8)), max_size=25).map("".join))
def test_any_text_gives_statements_of_its_own_words(turn):
    found = statements(turn)
    for at, statement in enumerate(found):
        assert statement.position == at
        assert statement.text
        assert len(statement.text) <= LONGEST
        assert 0 <= statement.line <= turn.count("\n")
        letters = iter(turn)  # each letter of the statement stands in the turn, in the same order
        assert all(letter in letters for letter in statement.text if letter.isalnum())
        assert statement.core in statement.text
    assert statements(turn) == found


@pytest.mark.parametrize(
    ("text", "kept"),
    cases("sentences-what-only-goes-on-to"),
)
def test_what_only_goes_on_to_the_next_thing_is_no_statement(text, kept):
    assert bool(statements(text)) == kept
