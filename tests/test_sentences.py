"""From the text of one turn to statements that can be read on their own."""

from case_tables import cases, rules
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.ingest import sentences
from bethink.ingest.sentences import LONGEST, MOST, statements


def texts(turn):
    return [statement.text for statement in statements(turn)]


def labels(turn):
    return [(statement.label, statement.text) for statement in statements(turn)]


@rules(
    {
        "sentences-sentences-end-where-people": sentences.split_sentences,
        "sentences-a-heading-announces-a": sentences.kind_of,
        "sentences-a-label-speaks-for-its": lambda turn: labels(turn)[0][0],
        "sentences-a-pronoun-brings-its": texts,
        "sentences-labels": labels,
        "sentences-texts": texts,
        "sentences-what-only-goes-on-to": lambda turn: bool(statements(turn)),
    }
)
def test_a_turn_is_read_as_people_mean_it(function, given, expected):
    assert function(*given) == expected


NOISE = cases("sentences-noise", globals())


def test_what_is_no_prose_is_left_out():
    for noise in [noise for _, noise in NOISE]:
        said = "We keep SQLite for the cache."
        assert texts(f"{said}\n\n{noise}\n") == [said]


def test_the_core_is_what_says_something_new_and_a_long_statement_is_cut_at_a_word():
    new = "This means that every other worker waits."
    assert statements(f"The lock is held during the call. {new}")[-1].core == new
    (short,) = texts("word " * 60 + "end; " + "more " * 60)
    assert len(short) <= LONGEST and short.endswith("more…")
    assert len(texts("x" * 1000)[0]) <= LONGEST
    # Words that are not set apart are cut anywhere.
    (long,) = texts("Postgres " + "数据库存储数据" * 100)
    assert LONGEST - 20 < len(long) <= LONGEST
    assert len(statements("We keep this one.\n\n" * 2000)) == MOST


FRAGMENTS = st.sampled_from(cases("sentences-fragments"))


@settings(max_examples=150, deadline=None)
@given(st.lists(FRAGMENTS | st.text(max_size=8), max_size=25).map("".join))
def test_any_text_gives_statements_of_its_own_words(turn):
    found = statements(turn)
    for at, statement in enumerate(found):
        assert statement.position == at and 0 < len(statement.text) <= LONGEST
        assert 0 <= statement.line <= turn.count("\n")
        letters = iter(turn)  # each letter of the statement stands in the turn, in the same order
        assert all(letter in letters for letter in statement.text if letter.isalnum())
        assert statement.core in statement.text
    assert statements(turn) == found
