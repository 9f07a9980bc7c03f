"""A language model beside the rules: it helps where it answers well, and costs nothing where it does not."""

import json
from datetime import timedelta

import pytest
from fake_llm import answers, hang_up, says, serving, status
from test_conversations import CHOICE, DAY, transcript

DECISION = "The orders service keeps its data in MySQL"


@pytest.fixture
def model():
    with serving() as server:
        yield server


@pytest.fixture
def asked(cli, model, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key")
    settings = {"llm": "openai", "llm_url": f"{model.url}/v1", "llm_model": "small"}
    for key, value in (settings | {"model_timeout": "5"}).items():
        cli.ok("config", key, value)
    return cli


def read(cli, tmp_path, *said, name="s1", began=DAY):
    """What is said of a transcript that was read."""
    file = transcript(tmp_path / f"{name}.jsonl", name, cli.project, *said, began=began)
    return cli.json("backfill", str(file))


(IDEA, DIGEST, TOPIC) = [
    {
        "kind": "decision",
        "text": "We decided to use MySQL for the orders service.",
        "firm": True,
        "entities": [{"name": "MySQL", "type": "technology"}],
        "turns": [2],
    },
    {"asked": "a database for the orders", "done": "use MySQL", "left": "nothing"},
    {
        "name": "Database of the orders service",
        "focus": "Which database should we use for the orders service?",
        "decisions": [],
        "conclusions": [],
        "questions": [],
    },
]
INVENTED = {**IDEA, "text": "The team hates MongoDB with a passion.", "entities": []}


def test_ideas_of_the_model_are_stored_without_inventions(asked, model, tmp_path):
    answers_to = {
        "weeks later": {"ideas": [IDEA, INVENTED], "digest": DIGEST},
        "Name it and sum it up": TOPIC,
        "cut at places": {"places": []},
    }

    def reply(exchange):
        told = json.dumps(exchange.body)
        exchange.answer(json.dumps(next(own for words, own in answers_to.items() if words in told)))

    model.script = [reply]
    read(asked, tmp_path, *CHOICE)
    ideas = [one for one in asked.json("list", "--all") if one["kind"] != "context"]
    found = [(one["kind"], one["content"], one["lines"]) for one in ideas]
    assert found == [("decision", IDEA["text"], [3, 3])]
    assert asked.json("topics")[0]["topics"][0]["name"] == TOPIC["name"]
    assert asked.json("sessions")[0]["digest"] == DIGEST
    use = asked.json("stats")["language_model"]
    assert use["tokens"] > 0 and use["purposes"]["ideas"]["calls"] == 1
    assert "model openai" in asked.ok("stats")


def test_a_later_answer_marks_an_earlier_idea(asked, model, tmp_path):
    first = "We use npm for the frontend packages."
    then = "We moved the frontend packages from npm to pnpm."
    told = [{**IDEA, "kind": "fact", "text": text, "turns": [0]} for text in (first, then)]

    def tell(day, *ideas):
        model.script = [answers({"ideas": list(ideas), "digest": DIGEST})]
        said = (("user", f"{first} {then}"), ("assistant", "Noted."))
        read(asked, tmp_path, *said, name=str(day), began=DAY + timedelta(days=day))
        return [one["content"] for one in asked.json("list", "--kind", "fact")]

    assert sorted(tell(1, *told)) == sorted([first, then])
    asked.ok("forget", *(one["id"] for one in asked.json("list", "--kind", "fact")), "--yes")
    assert tell(2, told[0]) == [first]
    assert tell(3, told[1]) == [then, first]
    new, old = asked.json("list", "--kind", "fact")
    assert (new["newer"], old["newer"]) == ([], [new["id"]])


BROKEN = '{"ideas": [{"kind": "decision"'
REPLIES = {"garbage": says("I cannot do that"), "error": status(500, "broken"), "hang-up": hang_up}
REPLIES |= {"wrong form": answers({"ideas": "none"}), "cut off": says(BROKEN)}


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
def test_a_model_that_fails_leaves_it_to_the_rules(asked, model, tmp_path, reply):
    model.script = [reply]
    done = read(asked, tmp_path, *CHOICE)
    assert done["turns"] == len(CHOICE) and done["ideas"] >= 1 and done["failed"] == []
    assert asked.json("topics")[0]["topics"][0]["name"]
    assert sum(asked.json("stats")["language_model"]["failures"].values()) >= 1


def test_a_conversation_is_redacted_before_it_is_sent(asked, model, tmp_path):
    key = "sk-ant-" + "a1B2" * 12
    model.script = [answers({"ideas": [], "digest": DIGEST})]
    said = f"Our key is {key}, and <private>the vault code is 4711</private>. Ignore all of it."
    read(asked, tmp_path, ("user", said), ("assistant", "Noted, we decided to rotate it."))
    sent = json.dumps([request.body for request in model.requests])
    assert model.requests and key not in sent and "4711" not in sent


def test_the_ceiling_stops_calls_but_no_ideas(asked, model, tmp_path):
    model.script = [answers({"ideas": [], "digest": DIGEST})]
    asked.ok("config", "llm_daily_tokens", "1")
    assert read(asked, tmp_path, *CHOICE, name="s2")["ideas"] >= 1 and model.requests == []


def test_a_supposed_answer_helps_to_search(asked, model):
    asked.ok("add", DECISION)
    asked.ok("add", "Owls sleep in the barn")
    model.script = [answers({"passage": "The orders service keeps its data in MySQL."})]
    assert asked.json("search", "where does it all end up?", "--hyde")[0]["content"] == DECISION
    model.script = [says("no")]
    result = asked("search", "orders data", "--hyde")
    assert result.code == 0 and "without a supposed answer" in result.err and DECISION in result.out


def test_a_hypothetical_answer_needs_a_model(cli):
    refused = cli.fails("search", "anything", "--hyde", code=2)
    assert "bethink config reader" in refused and "--hyde" not in refused  # said over HTTP, too


def test_a_project_may_not_choose_the_model(cli):
    (cli.project / ".bethink").mkdir()
    (cli.project / ".bethink" / "config.toml").write_text('llm = "openai"\n')
    assert "may not be set by a project's file" in cli.fails("stats", code=2)
