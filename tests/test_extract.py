"""What `extract` reads out of a text. Wordings are varied on purpose: the cues should carry beyond the phrases they were written for."""

from __future__ import annotations

import pytest
from case_tables import cases
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.ingest import lexicon
from bethink.ingest.extract import classify, entities, extract, keywords, summarize
from bethink.types import ENTITY_TYPES, KINDS, Entity, Passage

CLASSIFIED = cases("extract-classified")


@pytest.mark.parametrize(("kind", "text"), CLASSIFIED)
def test_the_wording_tells_the_kind(kind, text):
    assert classify(text)[0] == kind


def test_every_kind_that_has_cues_is_a_kind():
    assert set(lexicon.cues()) - set(lexicon.CERTAINTY) <= set(KINDS)


@pytest.mark.parametrize(("firm", "hedged"), cases("extract-hedges-lower-the-confidence"))
def test_hedges_lower_the_confidence(firm, hedged):
    assert classify(firm)[0] == classify(hedged)[0]
    assert 0.75 <= classify(firm)[1] <= 1
    assert classify(hedged)[1] < classify(firm)[1] - 0.1


def test_firm_words_raise_the_confidence_and_it_stays_in_bounds():
    assert classify("It is verified: the disk is full.")[1] > classify("The disk is full.")[1]
    assert (
        classify("definitely confirmed, always, never, certainly: it is final and proven")[1] <= 1
    )
    assert (
        classify("maybe perhaps possibly I guess it might be, not sure, no idea, probably I think")[
            1
        ]
        >= 0.1
    )


ENTITIES = cases("extract-entities")


@pytest.mark.parametrize(("text", "expected"), ENTITIES)
def test_entities_are_few_and_right(text, expected):
    assert [(entity.name, entity.type) for entity in entities(text)] == expected


def test_at_most_twenty_entities():
    assert len(entities(" ".join(f"name_{number}" for number in range(50)))) == 20


def test_the_lexicon_names_about_250_technologies_or_more_and_no_alias_is_capitalised():
    assert len(set(lexicon.technologies().names.values())) > 250
    aliases = [alias.partition(" = ")[0] for alias in lexicon.phrases("technologies_aliases")]
    assert aliases == [alias.lower() for alias in aliases]


SUMMARIES = cases("extract-summaries")


@pytest.mark.parametrize(("text", "summary"), SUMMARIES)
def test_a_summary_is_the_text_or_its_most_telling_sentence(text, summary):
    assert summarize(text) == summary


def test_a_long_sentence_is_cut_at_a_word():
    text = " ".join(f"word{number}" for number in range(60))
    assert summarize(text) == " ".join(f"word{number}" for number in range(20)) + "…"


@pytest.mark.parametrize(
    ("text", "most"),
    [("数据库连接在高负载下会超时" * 9, 40), ("数据库很慢。" * 30, 45), ("a" * 100_000, 240)],
)
def test_text_without_spaces_is_cut_by_the_character(text, most):
    assert len(summarize(text)) <= most


def test_keywords_are_the_telling_words():
    text = "The retry_policy of the payment worker uses Redis. The payment worker retries three times, see worker/retry.py."
    found = keywords(text)
    assert {"retry_policy", "worker/retry.py", "Redis", "payment", "worker"} <= set(found)
    assert not {"the", "of", "three"} & set(found) - {"three"}
    assert len(found) <= 8
    assert keywords("") == ()
    assert keywords("the and of it") == ()


def test_extract_fills_in_what_is_open():
    passage = extract(Passage("We decided to store sessions in Redis."))
    assert (passage.kind, passage.importance, passage.summary) == (
        "decision",
        7.0,
        "We decided to store sessions in Redis.",
    )
    assert passage.confidence is not None and passage.confidence > 0.8
    assert passage.entities == (Entity("Redis", "technology"),)
    assert extract(passage) == passage


def test_extract_keeps_what_was_given():
    given = Passage(
        "We decided to use Redis.",
        "context",
        "mine",
        None,
        0.3,
        entities=(Entity("Shop", "project"), Entity("redis", "concept")),
    )
    passage = extract(given)
    assert (passage.kind, passage.summary, passage.confidence, passage.importance) == (
        "context",
        "mine",
        0.3,
        3.0,
    )
    assert passage.entities == given.entities
    assert extract(Passage("x", importance=0.0, confidence=0.0)).importance == 0.0


@pytest.mark.parametrize(
    ("kind", "importance"),
    [("gotcha", 7), ("preference", 6), ("fact", 5), ("general", 5), ("context", 3)],
)
def test_importance_follows_the_kind(kind, importance):
    assert extract(Passage("something", kind=kind)).importance == importance


TEXTS = st.one_of(
    st.text(max_size=400),
    st.lists(
        st.sampled_from(
            [text for _, text in CLASSIFIED]
            + [text for text, _ in ENTITIES]
            + ["# ", "```", "`", '"', "\n", "@", "./", "…", "\x00", "<!--", "---\n"]
        ),
        max_size=12,
    ).map("".join),
)


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_any_text_is_taken_and_gives_the_same_answer_again(text):
    passage = extract(Passage(text))
    assert passage.kind in KINDS
    assert passage.confidence is not None and 0 <= passage.confidence <= 1
    assert (
        passage.summary is not None
        and len(passage.summary.split()) <= 20
        and "\n" not in passage.summary
    )
    assert len(passage.entities) <= 20
    assert all(entity.type in ENTITY_TYPES and entity.name.strip() for entity in passage.entities)
    assert len({entity.name.casefold() for entity in passage.entities}) == len(passage.entities)
    assert extract(Passage(text)) == passage
    assert keywords(text) == keywords(text)
    assert len(keywords(text)) <= 8
