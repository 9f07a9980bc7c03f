"""What `extract` reads out of a text. Wordings are varied on purpose: the cues should carry beyond the phrases they were written for."""

from case_tables import cases, rules
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.ingest.extract import classify, entities, extract, keywords, summarize
from bethink.model import ENTITY_TYPES, KINDS, Entity, Passage

CLASSIFIED = cases("extract-classified")


def test_the_wording_tells_the_kind_and_how_sure_it_is():
    for kind, text in CLASSIFIED:
        assert classify(text)[0] == kind
    for firm, hedged in cases("extract-hedges-lower-the-confidence"):
        assert classify(firm)[0] == classify(hedged)[0]
        assert 0.75 <= classify(firm)[1] <= 1
        assert classify(hedged)[1] < classify(firm)[1] - 0.1
    sure = "definitely confirmed, always, never, certainly: it is final and proven"
    unsure = "maybe perhaps possibly I guess it might be, not sure, no idea, probably I think"
    assert classify("It is verified: the disk is full.")[1] > classify("The disk is full.")[1]
    assert classify(sure)[1] <= 1 and classify(unsure)[1] >= 0.1
    text = "The retry_policy of the payment worker uses Redis. The payment worker retries three times, see worker/retry.py."
    found = keywords(text)
    assert {"retry_policy", "worker/retry.py", "Redis", "payment", "worker"} <= set(found)
    assert not {"the", "of"} & set(found) and len(found) <= 8
    assert keywords("") == keywords("the and of it") == ()


@rules(
    {
        "extract-entities": lambda text: [(one.name, one.type) for one in entities(text)],
        "extract-summaries": summarize,
    }
)
def test_entities_are_few_and_a_summary_is_the_most_telling_sentence(function, given, expected):
    assert function(*given) == expected


def test_extract_fills_in_what_is_open_keeps_what_was_given_and_cuts_what_is_long():
    words = [f"word{number}" for number in range(60)]
    assert summarize(" ".join(words)) == " ".join(words[:20]) + "…"
    unspaced = [
        ("数据库连接在高负载下会超时" * 9, 40),
        ("数据库很慢。" * 30, 45),
        ("a" * 100_000, 240),
    ]
    for text, most in unspaced:
        assert len(summarize(text)) <= most
    assert len(entities(" ".join(f"name_{number}" for number in range(50)))) == 20
    text = "We decided to store sessions in Redis."
    passage = extract(Passage(text))
    assert (passage.kind, passage.importance, passage.summary) == ("decision", 7.0, text)
    assert passage.confidence is not None and passage.confidence > 0.8
    assert passage.entities == (Entity("Redis", "technology"),)
    assert extract(passage) == passage
    named = (Entity("Shop", "project"), Entity("redis", "concept"))
    given = Passage(text, "context", "mine", None, 0.3, entities=named)
    assert extract(given) == given._replace(importance=3.0)
    assert extract(Passage("x", importance=0.0, confidence=0.0)).importance == 0.0
    weights = {"gotcha": 7, "preference": 6, "fact": 5, "general": 5, "context": 3}
    for kind, importance in weights.items():
        assert extract(Passage("something", kind=kind)).importance == importance


PIECES = [text for _, text in CLASSIFIED] + [text for text, _ in cases("extract-entities")]
PIECES += ["# ", "```", "`", '"', "\n", "@", "./", "…", "\x00", "<!--", "---\n"]


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=400) | st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_any_text_is_taken_and_gives_the_same_answer_again(text):
    passage = extract(Passage(text))
    assert passage.kind in KINDS and 0 <= passage.confidence <= 1
    assert len(passage.summary.split()) <= 20 and "\n" not in passage.summary
    assert len(passage.entities) <= 20
    assert all(entity.type in ENTITY_TYPES and entity.name.strip() for entity in passage.entities)
    assert len({entity.name.casefold() for entity in passage.entities}) == len(passage.entities)
    assert extract(Passage(text)) == passage
    assert keywords(text) == keywords(text) and len(keywords(text)) <= 8
