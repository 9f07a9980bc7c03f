"""From a reported symptom to the rule that settled it, in searches and at prompts."""

from datetime import timedelta

import pytest
from transcripts import DAY, transcript

from bethink.features import conversations

SYMPTOM = (
    "Invoices for Austrian customers show the wrong VAT rate since the rollout of the billing job"
)
PROPOSAL = "I would look the VAT rate up by the country of the billing address in every invoice."
REFUSAL = "No, the billing address is often a head office. It is the delivery address that counts."
SETTLED = "Settled: the VAT rate follows the delivery address, and digital goods follow the card's country."
AMENDED = "Amended rule, superseding the delivery address: the VAT rate of digital goods follows the card's country."
REPORT = "Austrian customers complain that invoices show the wrong VAT rate. Fix the billing job."
TALK = (("user", SYMPTOM), ("assistant", PROPOSAL), ("user", REFUSAL), ("assistant", SETTLED))


@pytest.fixture
def read(shop):
    def read_talk(name, *said, began=DAY):
        file = transcript(shop.project / f"{name}.jsonl", name, shop.project, *said, began=began)
        with shop.memory() as memory:
            conversations.backfill(memory, [("claude", file)], trusted=True)

    return read_talk


def search(shop, question, **options):
    with shop.memory() as memory:
        return [
            hit.memory.content for hit in memory.search(question, mode="keyword", **options).hits
        ]


def test_a_search_for_the_symptom_finds_the_rule_first(shop, read):
    read("one", *TALK)
    assert search(shop, REPORT)[0] == SETTLED


def test_a_refused_proposal_comes_behind_what_was_settled(shop, read):
    read("one", *TALK)
    found = search(shop, "VAT rate by the country of the billing address")
    assert found.index(SETTLED) < found.index(PROPOSAL)


def test_a_prompt_with_the_symptom_gets_the_rule(shop, read):
    read("one", *TALK)
    assert SETTLED in shop.ask(REPORT, session_id="next")


def test_a_prompt_never_gets_a_refused_proposal(shop, read):
    read("one", *TALK)
    assert PROPOSAL not in shop.ask(
        "VAT rate by the country of the billing address in every invoice?"
    )


def test_an_amendment_takes_the_place_of_what_it_amends(shop, read):
    read("one", *TALK)
    read(
        "two",
        ("user", "An amendment to the VAT rule: digital goods differ."),
        ("assistant", AMENDED),
        began=DAY + timedelta(days=30),
    )
    assert search(shop, REPORT)[0] == AMENDED


def test_a_settlement_outside_of_the_filter_does_not_join(shop, read):
    read("one", *TALK)
    with shop.memory() as memory:
        before = memory.filter(until=DAY + timedelta(minutes=2))
    assert search(shop, REPORT, filter=before)[0] == SYMPTOM


def test_an_answer_that_the_user_refused_settles_nothing(shop, read):
    said = (("user", SYMPTOM), ("assistant", SETTLED), ("user", "No, that is wrong."))
    read("one", *said)
    assert search(shop, REPORT)[0] == SYMPTOM


def test_an_announced_step_settles_nothing(shop, read):
    step = "Got it, I'll look at the VAT table of the billing job and at the rollout first."
    read("one", ("user", SYMPTOM), ("assistant", step), ("user", "Thanks, tell me the result."))
    assert search(shop, REPORT)[0] == SYMPTOM
