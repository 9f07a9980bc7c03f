"""The packaged judge: what it says of plain pairs, and that nothing it is given makes it fail."""

import json
from pathlib import Path

import numpy as np
import pytest
from case_tables import cases, each

from bethink import config
from bethink.embed import open_embedder
from bethink.judge import RELATED, Judge, Judgement, Standing, turn_prompt, weigh

HELD = Path(__file__).parent.parent / "bench/judge/prompts/held.jsonl"

PAIRS = cases("judge-pairs")


@pytest.fixture(scope="module")
def judge() -> Judge:
    return Judge(threads=2)


def test_plain_pairs_are_told_apart_each_by_itself_and_where_the_settings_say_so(judge):
    found = judge.relate([(old, new) for old, new, _ in PAIRS])
    wrong = [
        (old, new, one.relation, round(one.probability, 2))
        for (old, new, relation), one in zip(PAIRS, found, strict=True)
        if one.relation != relation
    ]
    assert len(wrong) <= 1, wrong
    pairs = [(old, new) for old, new, _ in PAIRS]
    assert judge.relate(pairs) == [judge.relate([pair])[0] for pair in pairs]
    assert judge.relate([]) == []
    assert config.Config().compares
    for settings in ({"judge": False}, {"embedding": "none"}, {"embedding": "hashing"}):
        assert not config.Config(**settings).compares


@pytest.mark.parametrize("pair", cases("judge-any", {}), ids=range(5))
def test_any_two_texts_get_a_judgement(judge, pair):
    (found,) = judge.relate([pair])
    assert found.relation in RELATED
    assert sum(found.probabilities.values()) == pytest.approx(1)
    assert found.probability == max(found.probabilities.values())


def test_both_ways_count_and_a_text_that_surely_changes_one_changes_others_less(judge):
    old = "Sample accounts never expire in the sandbox."
    new = "Sandbox sample accounts have a limited life of one month."
    assert judge._relate([(old, new)])[0].relation == "same"  # by itself
    assert judge.relate([(old, new)])[0].relation == "replaces"
    new = "Uploads go to the south bucket now."
    olds = ("Uploads are stored in the archive bucket.", "Uploads go to the north bucket.")
    pairs, standings = [(old, new) for old in olds], [Standing(0.5, 0.1, 2)] * 2
    (by_itself,) = judge.relate(pairs[:1], standings[:1])
    among, _ = judge.relate(pairs, standings)
    assert among.probabilities["replaces"] < by_itself.probabilities["replaces"]


SHARES = {**dict.fromkeys(RELATED, 0.05), "replaces": 0.5, "answers": 0.2}
WAVERING = Judgement("replaces", 0.5, SHARES)


@each("relation,likelier,less_likely", "judge-weighed", {"Standing": Standing})
def test_a_judgement_is_weighed_among_all_others(relation, likelier, less_likely):
    more, less = (weigh(WAVERING, one) for one in (likelier, less_likely))
    assert more.probabilities[relation] > 1.2 * less.probabilities[relation]
    for one in (more, less):
        assert sum(one.probabilities.values()) == pytest.approx(1)
        assert one.probability == max(one.probabilities.values())


def test_of_many_notes_about_one_thing_the_one_that_is_meant_is_replaced(cli, with_model):
    told = """
    Password reset links are valid for 24 hours
    E-mail confirmation links are valid for 48 hours
    Session cookies are valid for 30 days
    Refresh tokens live 30 days, access tokens 15 minutes
    """
    ids = [cli.json("add", line.strip())["id"] for line in told.strip().splitlines()]
    assert len(cli.json("list")) == len(ids)
    new = cli.json("add", "Password reset links are valid for one hour since the audit")
    assert new["supersedes"] == ids[:1] and len(cli.json("list")) == len(ids)


def test_what_is_told_later_holds_and_can_be_taken_back(cli, with_model):
    """Through the front door with both real models: replaced, told, found first, and undone."""
    old = cli.json("add", "CAN bus runs at 250 kbit/s")["id"]
    told = cli.ok("add", "The CAN bus runs at 500 kbit/s")
    assert f"replaces {old[:8]}" in told
    hits = cli.json("search", "how fast is the CAN bus?")
    assert hits[0]["content"] == "The CAN bus runs at 500 kbit/s"
    assert len(cli.json("list")) == 1
    cli.ok("restore", old)
    assert len(cli.json("list")) == 2
    cli.ok("add", "TODO: rotate the signing key")
    assert "settles" in cli.ok("add", "The signing key has been rotated")
    assert "rotate the signing key (done)" in cli.ok("list")


def test_a_turned_prompt_finds_more_of_what_applies_to_it(model_or_pull):
    """Of a project on which the matrix was not made."""
    rows = [json.loads(line) for line in HELD.read_text(encoding="utf-8").splitlines()]
    memories = [row for row in rows if row["type"] == "memory"]
    asked = [row for row in rows if row["type"] == "prompt" and row["fits"]]
    embedder = open_embedder(config.load())
    known = np.stack([own[0] for own in embedder.documents([row["text"] for row in memories])])
    ids = [row["id"] for row in memories]

    def count_found(turn):
        found = 0
        for row in asked:
            near = np.argsort(-known @ turn(embedder.query(row["text"])))[:5]
            found += any(ids[at] in row["fits"] for at in near)
        return found

    plain = count_found(lambda vector: turn_prompt(vector, "another model"))
    turned = count_found(lambda vector: turn_prompt(vector, embedder.model))
    assert turned >= plain + 3 and turned >= 0.9 * len(asked)
