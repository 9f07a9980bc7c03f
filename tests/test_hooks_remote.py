"""A hook sends no prompt anywhere: it asks only models that declare that they run in this process."""

import pytest
from hooking import shop

from bethink.config import Config
from bethink.embed import LazyModel
from bethink.embed.hashing import HashingEmbedder
from bethink.embed.http import HttpEmbedder
from bethink.embed.local import LocalEmbedder
from bethink.hooks import run, state
from bethink.judge import Judge
from bethink.llm.anthropic import AnthropicModel
from bethink.llm.claude import ClaudeCli
from bethink.llm.openai import OpenAiModel
from bethink.model import is_remote

__all__ = ["shop"]
STORE = "sqlite"
DECISION = "The Valkey cluster gets a third replica before the sale"
PROMPT = "how many replicas does the Valkey cluster get before the sale?"


class Undeclared:
    """An embedder of somebody's own that does not say whether it is remote."""

    model, baseline, unrelated = "toy", 0.0, 0.0

    def __init__(self):
        self.asked, self._inner = [], HashingEmbedder()

    def documents(self, texts):
        return self._inner.documents(texts)

    def query(self, text):
        self.asked.append(text)
        return self._inner.query(text)


class Remote(Undeclared):
    remote = True


class InProcess(Undeclared):
    remote = False


class UndeclaredJudge:
    """A judge for which everything applies."""

    def __init__(self):
        self.asked = []

    def apply(self, pairs):
        self.asked += pairs
        return [0.999] * len(pairs)

    def relate(self, pairs, standings=()):
        return Judge(1).relate(pairs, standings)


class JudgeInProcess(UndeclaredJudge):
    remote = False


@pytest.fixture
def ask(shop, monkeypatch):
    """Tells what a host is given at a prompt, with models of the test's own under the name of the usual one."""
    shop.add(DECISION, "decision")
    monkeypatch.setenv("BETHINK_EMBEDDING", "snowflake-arctic-embed-s")
    fields = {"prompt": PROMPT, "session_id": "s1", "cwd": str(shop.project)}

    def ask(embedder, judge) -> str:
        with shop.memory(embedder=embedder, judge=judge) as memory:
            return run.answer(state.from_fields("prompt", "claude", fields), memory)

    return ask


@pytest.mark.parametrize("kind", [Undeclared, Remote])
def test_a_hook_does_not_call_an_embedder_unless_it_runs_in_this_process(ask, kind):
    embedder = kind()
    ask(embedder, JudgeInProcess())
    assert embedder.asked == []


def test_a_hook_calls_an_embedder_that_runs_in_this_process(ask):
    embedder = InProcess()
    ask(embedder, JudgeInProcess())
    assert embedder.asked == [PROMPT]


def test_a_hook_does_not_call_a_judge_that_does_not_say_where_it_runs(ask):
    judge = UndeclaredJudge()
    ask(InProcess(), judge)
    assert judge.asked == []


def test_a_hook_still_finds_by_words_where_the_embedder_is_remote(ask):
    assert DECISION in ask(Remote(), JudgeInProcess())


@pytest.mark.parametrize(
    ("kind", "remote"),
    [
        pytest.param(HashingEmbedder, False, id="hashing"),
        pytest.param(LocalEmbedder, False, id="a model of this process"),
        pytest.param(HttpEmbedder, True, id="an endpoint"),
        pytest.param(Judge, False, id="the judge"),
        pytest.param(Undeclared, True, id="one that does not say"),
        pytest.param(AnthropicModel, True, id="llm anthropic"),
        pytest.param(OpenAiModel, True, id="llm openai"),
        pytest.param(ClaudeCli, True, id="llm claude"),
    ],
)
def test_each_model_says_whether_it_is_remote(kind, remote):
    assert is_remote(kind) is remote


def test_an_endpoint_on_this_machine_is_remote_since_it_may_forward():
    assert is_remote(HttpEmbedder("http://127.0.0.1:11434/v1", "any"))


def test_no_model_is_fetched_to_look_for_a_local_one(offline, monkeypatch):
    monkeypatch.setattr("bethink.embed.models.location", lambda name: None)
    monkeypatch.setattr("bethink.embed.models.pull", lambda *given: pytest.fail("fetched"))
    assert LazyModel(Config(embedding="snowflake-arctic-embed-s"), None).local is None


def test_doctor_says_that_a_model_is_remote(cli, monkeypatch):
    monkeypatch.setenv("BETHINK_EMBEDDING", "http")
    monkeypatch.setenv("BETHINK_EMBEDDING_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("BETHINK_EMBEDDING_MODEL", "any")
    cli.add("We deploy from main")
    assert "any@127.0.0.1:9 (remote:" in cli("doctor").out
