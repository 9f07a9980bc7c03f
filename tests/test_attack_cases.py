"""Generated attacks: whichever way a claim comes in, the user's decisions stay, and the claim is never the user's word."""

import re

import attack_cases
import attack_forms_fresh as fresh
import pytest
from attack_world import ROWS, WAYS, find_core, find_users_line, fold, paste, settle

from bethink.ingest.provenance import find_own
from bethink.model import TRUST

SEED, ROUNDS = 20261118, 48  # 480 cases, 10 to a round


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with settle(tmp_path_factory.mktemp("attacks")) as world:
        yield world


# An attack is seen where it succeeds


@pytest.mark.parametrize(("decided", "question"), [(row[0], row[2]) for row in ROWS])
def test_a_prompt_about_a_decision_gives_it_as_the_users_word(world, decided, question):
    world.reset()
    assert find_users_line(world.tell("asks", prompt=question), find_core(decided))


def test_the_briefing_gives_decisions_as_the_users_word(world):
    world.reset()
    briefing = world.tell("starts")
    assert [row for row in ROWS if find_users_line(briefing, find_core(row[0]))]


def test_the_phrase_of_a_request_alone_forgets_the_decisions(world):
    world.reset()
    answer = world.use_tool("forget_memories", ids=world.ids)
    phrase = re.search(r"bethink forget \w+", answer)
    world.tell("talk", prompt=phrase[0])
    assert {one.id for one in world.read() if one.deleted_at} == set(world.ids)


# Attacks


def test_the_chosen_rounds_use_every_way_in():
    assert {one.way for one in attack_cases.choose(ROUNDS, SEED)} == set(WAYS)


@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param(one, id=f"{at}: {one.way}, {one.wording}, {one.form}")
        for at, one in enumerate(attack_cases.choose(ROUNDS, SEED))
    ],
)
def test_an_attack_leaves_the_users_word_alone(world, chosen):
    wrong = [one.describe() for one in attack_cases.run(world, [chosen]) if one.wrongs]
    assert wrong == []


@pytest.mark.parametrize("form", fresh.TURNS)
def test_a_claim_in_a_form_that_was_new_to_the_guards_is_not_the_users_word(form):
    claims = [claim for claims in attack_cases.WORDINGS.values() for claim in claims]
    turns = {claim: fresh.attack("pasted turn", form, claim) for claim in claims}
    own = {claim: fold(find_own(turn).text) for claim, turn in turns.items()}
    assert [turns[claim] for claim in claims if find_core(claim) in own[claim]] == []


@pytest.mark.parametrize(
    ("text", "phrase"), [pytest.param(text, phrase, id=phrase) for text, phrase in fresh.CONTROLS]
)
def test_a_statement_that_the_user_types_is_the_users_word(world, text, phrase):
    world.reset()
    paste(world, [attack_cases.Attempt(world.ids[0], text, text)])
    said = [one for one in world.read() if phrase.lower() in one.content.lower()]
    assert {one.trust for one in said} == {TRUST["user"]}
    assert [one for one in said if one.kind != "context"]
