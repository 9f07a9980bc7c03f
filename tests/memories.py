"""What the tests of `Bethink` share: a clock that stands still, a model that fails, and memories on a database of the test's own."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bethink import Bethink
from bethink.app.mcp import tools
from bethink.config import Config
from bethink.embed.hashing import HashingEmbedder
from bethink.errors import EmbeddingError
from bethink.ingest.effects import EFFECTS
from bethink.judge import RELATED, STATEMENT_KINDS, Judgement, StatementReading

NOW = datetime(2026, 3, 20, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)


class Clock:
    """Stands still until a test moves it."""

    def __init__(self):
        self.now = NOW

    def __call__(self):
        return self.now

    def move(self, **span):
        self.now += timedelta(**span)


class Failing(HashingEmbedder):
    """A model whose endpoint is down, for texts, for questions or for both."""

    def __init__(self, *, documents=True, query=True):
        super().__init__()
        self.fails = {"documents": documents, "query": query}

    def documents(self, texts):
        if self.fails["documents"]:
            raise EmbeddingError("The endpoint is down.", "Start it.")
        return super().documents(texts)

    def query(self, text):
        if self.fails["query"]:
            raise EmbeddingError("The endpoint is down.", "Start it.")
        return super().query(text)


class Counting(HashingEmbedder):
    """Keeps the questions and counts the texts that it embeds. Like a model, it is not quick."""

    quick = False

    def __init__(self):
        super().__init__(64)
        self.model, self.asked, self.texts = "counting", [], 0

    def query(self, text):
        self.asked.append(text)
        return super().query(text)

    def documents(self, texts):
        self.texts += len(texts)
        return super().documents(texts)


STRANGERS = Judgement("unrelated", 1.0, dict.fromkeys(RELATED, 0.0) | {"unrelated": 1.0})


class Verdict:
    """A judge that says the same of every pair, and takes every statement for a decision worth keeping."""

    def __init__(self, relation, sure=0.9):
        self.relation, self.sure = relation, sure

    def relate(self, pairs):
        shares = dict.fromkeys(RELATED, 0.0) | {self.relation: self.sure}
        return [Judgement(self.relation, self.sure, shares)] * len(pairs)

    def read(self, pairs):
        kinds = dict.fromkeys(STATEMENT_KINDS, 0.0) | {"decision": 1.0}
        return [StatementReading(kinds, 1.0, 0.0)] * len(pairs)


class FakeEffects:
    """Stands for `weigh_neighbours`: every pair gets the chosen probabilities, and what was weighed is kept in `asked`."""

    def __init__(self):
        self.chosen, self.asked = {}, []

    def choose(self, **chosen):
        """Chooses the probability of each effect by its name; "keep" gets the rest."""
        self.chosen = chosen

    def __call__(self, judge, memory, near, last=None):
        rest = dict.fromkeys(EFFECTS, 0.0) | {"keep": 1 - sum(self.chosen.values())}
        for one in near:
            old, new = sorted((one.memory, memory), key=lambda each: each.created_at)
            self.asked.append((old.content, new.content))
        return {one.memory.id: rest | self.chosen for one in near}


@pytest.fixture
def effects(monkeypatch):
    """Chooses what the judge and its regression say of every pair."""
    fake = FakeEffects()
    monkeypatch.setattr("bethink.ingest.compare.weigh_neighbours", fake)
    monkeypatch.setattr("bethink.features.tending.weigh_neighbours", fake)
    return fake


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def open_memory(offline, tmp_path, clock):
    """Opens memories, by default on one database, and closes them all."""
    opened = []

    def open_(embedding="hashing", **options):
        usual = {"database": tmp_path / "memory.db", "config": Config(embedding=embedding)}
        opened.append(Bethink(**{**usual, "clock": clock, **options}))
        return opened[-1]

    yield open_
    for memory in opened:
        memory.close()


@pytest.fixture(params=["hashing", "none"])
def memory(open_memory, request):
    return open_memory(request.param)


@pytest.fixture
def hashing(open_memory):
    return open_memory("hashing")


def use_tool(memory, name, **given):
    """What an agent reads that calls a tool."""
    return tools.call(memory, name, tools.TOOLS[name].read_arguments(given)).text


def texts(answer_or_list):
    found = [hit.memory for hit in answer_or_list.hits] if hasattr(answer_or_list, "hits") else None
    return [memory.content for memory in (answer_or_list if found is None else found)]


def stored(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.glob("memory.db*"))


def read_summary(text: str, total: int) -> tuple[int, int, int]:
    """How many memories an answer says it shows in full, as an excerpt and as one line."""
    (line,) = re.findall(rf"(?m)^Shown: (.+), of {total} found\.", text)
    shown = {
        how: int(count)
        for count, how in re.findall(r"(\d+) (in full|as an excerpt|as one line)", line)
    }
    return tuple(shown.get(how, 0) for how in ("in full", "as an excerpt", "as one line"))
