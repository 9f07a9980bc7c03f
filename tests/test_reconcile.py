"""What new memories mean for old ones: what repeats, what contrasts and what replaces."""

import pytest
from case_tables import cases
from stores import make

from bethink.ingest.extract import entities
from bethink.ingest.reconcile import SUBJECT, SUPERSEDED, Neighbour, reconcile, take_headline
from bethink.ingest.wording import contrasts, find_change, mentions, say_the_same

JWT = "Auth uses JWT tokens with 24h expiry"
MAGIC = "Users sign in with a magic link that is sent by email"
# A new text, an old one, and why the new one is worth keeping.
DIFFERENT = cases("reconcile-different")
ALIKE = cases("reconcile-alike", globals())


def told(text, **fields):
    return make(text, entities=entities(text), **fields)


@pytest.mark.parametrize(
    ("new", "old"),
    [(new, old) for new, old, why in DIFFERENT if why],
    ids=[why for *_, why in DIFFERENT if why],
)
def test_what_says_something_else_is_not_the_same(new, old):
    assert not say_the_same(new, old)
    assert reconcile(told(new), [Neighbour(told(old), 0.99)], threshold=0.9).duplicate is None


@pytest.mark.parametrize(("new", "old"), ALIKE)
def test_what_adds_nothing_is_the_same(new, old):
    assert say_the_same(new, old)
    neighbour = Neighbour(told(old), 0.95)
    assert reconcile(told(new), [neighbour], threshold=0.9).duplicate is neighbour


def test_less_than_is_known_already_adds_nothing():
    new, old, _ = next(case for case in DIFFERENT if case[2] is None)
    assert say_the_same(new, old)


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    cases("reconcile-contrast-is-a-word-exchanged"),
)
def test_contrast_is_a_word_exchanged_or_much_added(new, old, expected):
    assert contrasts(new, old) is expected


@pytest.mark.parametrize(
    ("text", "change"),
    cases("reconcile-a-stated-change-names-the", globals()),
)
def test_a_stated_change_names_the_old_and_the_new(text, change):
    assert find_change(text) == change


@pytest.mark.parametrize(
    ("text", "thing", "expected"),
    cases("reconcile-a-text-mentions-a-thing"),
)
def test_a_text_mentions_a_thing_when_all_its_words_stand_there(text, thing, expected):
    assert mentions(text, thing) is expected


@pytest.mark.parametrize(
    ("text", "headline"),
    cases("reconcile-a-long-text-states-what", globals()),
)
def test_a_long_text_states_what_its_first_sentence_states(text, headline):
    assert take_headline(text) == headline


OLD, OTHER, NEW = (
    told("We use MySQL for billing"),
    told("We use Redis for caching"),
    told("We use PostgreSQL for billing, not MySQL"),
)
SWITCH = told("We switched from MySQL to PostgreSQL for billing")


@pytest.mark.parametrize(
    ("known", "nearness", "replaced"),
    cases("reconcile-a-change-that-names-its", {"SUBJECT": SUBJECT, "SUPERSEDED": SUPERSEDED}),
)
def test_a_change_that_names_its_subject_replaces_what_is_farther_away(known, nearness, replaced):
    verdict = reconcile(
        told("We moved billing from PostgreSQL to CockroachDB"),
        [Neighbour(told(known), nearness)],
        threshold=0.9,
    )
    assert bool(verdict.supersedes) is replaced


@pytest.mark.parametrize(
    ("neighbours", "replaced"),
    [
        ([Neighbour(OLD, 0.8)], [OLD]),
        ([Neighbour(OLD, SUPERSEDED)], [OLD]),
        ([Neighbour(OLD, SUPERSEDED - 0.01)], []),
        ([Neighbour(OTHER, 0.9)], []),
        ([Neighbour(NEW, 0.9)], []),
        ([Neighbour(OLD._replace(superseded_by="x"), 0.9)], []),
        (
            [
                Neighbour(OLD, 0.9),
                Neighbour(OTHER, 0.8),
                Neighbour(told("MySQL runs on port 3306"), 0.6),
            ],
            "two",
        ),
        ([], []),
    ],
)
@pytest.mark.parametrize("dedup", [True, False])
def test_a_stated_change_replaces_near_memories_of_the_old_thing(neighbours, replaced, dedup):
    verdict = reconcile(SWITCH, neighbours, threshold=0.9 if dedup else None)
    assert verdict.duplicate is None
    expected = [neighbours[0].memory, neighbours[2].memory] if replaced == "two" else replaced
    assert verdict.supersedes == tuple(memory.id for memory in expected)


def test_a_change_that_was_told_before_is_a_duplicate():
    before = Neighbour(told(SWITCH.content + "."), 0.99)
    assert reconcile(SWITCH, [before], threshold=0.9).duplicate is before


@pytest.mark.parametrize(
    ("similarity", "dedup", "repeats"),
    [(0.95, True, True), (0.9, True, True), (0.89, True, False), (0.95, False, False)],
)
def test_only_near_texts_repeat_and_only_where_that_matters(similarity, dedup, repeats):
    verdict = reconcile(
        told(JWT), [Neighbour(told(JWT + "."), similarity)], threshold=0.9 if dedup else None
    )
    assert (verdict.duplicate is not None) is repeats
    assert verdict.supersedes == ()


def test_a_contrasting_neighbour_does_not_hide_a_real_duplicate_behind_it():
    contrast, real = (
        Neighbour(told("We deploy on Friday"), 0.98),
        Neighbour(told("we deploy on Monday"), 0.97),
    )
    assert reconcile(told("We deploy on Monday"), [contrast, real], threshold=0.9).duplicate is real
