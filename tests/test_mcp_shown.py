"""Memories as a model reads them: what is in full, what is a line, and what falls away when there is no room."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from memories import NOW, clock, open_memory, use_tool  # noqa: F401

from bethink.recall.shape import tokens
from bethink.surface.mcp import tools
from bethink.surface.render import quote_items, show_memories
from bethink.text import CUT, Quote
from bethink.types import Batch, Passage, Relation, Session, Source, Span

DAY = datetime(2026, 3, 20, tzinfo=UTC)
CLOSED = re.compile(r"<bethink-memory ([0-9a-f]{8})>\n.*\n</bethink-memory \1>", re.DOTALL)


@pytest.fixture
def memory(open_memory):  # noqa: F811
    return open_memory()


def fill_warehouse(memory):
    for number in range(12):
        rules = f"Shelf {number} has its own rules, told at length. " * 12
        memory.add(f"The warehouse service {number} keeps stock levels. {rules}")
    return answer_text(memory, memory.search("warehouse stock levels", limit=10))


def answer_text(memory, answer):
    shown = tools.arrange(memory, answer, 1000)
    return quote_items(shown.items, shown.notes, 1000)


def quote(text, **more):
    return Quote("01a1dd89-7c02", "fact", 2, "note:agent:x", DAY, text, **more)


@pytest.mark.parametrize("budget", [100, 1000])
@pytest.mark.parametrize("text", ["word " * 3000, "日本語の長い文章。" * 800, "a\n" * 5000])
def test_no_answer_is_longer_than_its_budget_and_each_is_closed(text, budget):
    answer = quote_items([quote(text), quote("last")], ["2 found."], budget)
    assert tokens(answer) <= budget
    assert CLOSED.match(answer)
    assert CUT in answer
    assert answer.endswith("\n2 found.")


def test_the_best_are_in_full_and_the_others_a_line_each(memory):
    answer = fill_warehouse(memory)
    assert 600 < tokens(answer) <= 1000  # most of the room is used where texts are long
    heads = re.findall(r"^\[01[^\]]+\].*$", answer, re.MULTILINE)
    full = len([head for head in heads if not re.search(r"2026-03-20: ", head)])
    assert len(heads) == 10 and 1 <= full < 10
    totals = f"{full} in full, {10 - full} as a line, 12 found. get_memories gives whole texts."
    assert totals in answer
    assert re.search(rf"^Also \({10 - full}\):$", answer, re.MULTILINE)


def test_a_conversation_comes_with_its_topic(memory):
    scope = memory.scope
    span = Span("s1", scope, "3f2a", None, "Moving the cache", "We moved the cache", (1, 9), 0, NOW)
    sessions = (Session("3f2a", scope, "claude"),)
    where = {"scopes": {scope: ("shop", "")}, "sessions": sessions, "spans": ((span, ()),)}
    memory.store.write(Batch(at=NOW, **where))
    said = ("Shall we talk about lunch?", "Valkey replaces Redis for sessions", "Good, go on")
    turns = [
        Passage(
            text,
            kind="context",
            span="s1",
            session="3f2a",
            lines=(at, at),
            metadata={"role": "assistant" if at == 2 else "user"},
            position=at,
        )
        for at, text in enumerate(said, start=1)
    ]
    memory.ingest([(Source("talk.jsonl", "transcript"), turns)])
    answer = answer_text(memory, memory.search("Valkey sessions", limit=1))
    assert "Topic: Moving the cache\n" in answer
    assert "talk.jsonl:2" in answer


def test_hints_of_the_library_stand_behind_the_marks(open_memory):  # noqa: F811
    memory = open_memory("http")
    memory.config = memory.config._replace(embedding_url="http://127.0.0.1:9", model_timeout=0.1)
    memory._model._config = memory.config
    answer = use_tool(memory, "search_memories", query="anything")
    assert answer.startswith("No memories match.")
    assert "\nNote: Working by words only:" in answer


def test_several_memories_share_the_room_and_say_when_they_are_cut(memory):
    long = [memory.add(f"{number} " + "long text " * 2000).id for number in range(3)]
    short = memory.add("short text").id
    items = show_memories(memory, memory.store.get([*long, short]), 2000)
    answer = quote_items(items, budget=2000)
    assert tokens(answer) <= 2000
    assert "> short text" in answer
    assert answer.count("characters in all; ask for it alone or with more max_tokens]") == 3


def test_a_whole_memory_tells_what_is_known_about_it(memory):
    old = memory.add("Staging runs on Heroku", kind="fact").id
    about = {"kind": "decision", "importance": 9, "confidence": 0.5, "tags": ["infra"]}
    about |= {"entities": ["technology:Fly"], "expires_at": NOW + timedelta(days=10)}
    new = memory.add("Staging runs on Fly", **about, supersedes=[old]).id
    memory.vote(new, 2)
    shown = [show_memories(memory, memory.store.get([id]), 1000) for id in (new, old)]
    text, beside = map(quote_items, shown)
    facts = "importance: 9; confidence: 50%; votes: +2; expires: 2026-03-30; tags: infra"
    assert f"{facts}; entities: Fly" in text
    assert re.search(r"  supersedes \[01[^\]]+\] 2026-03-20: Staging runs on Heroku", text)
    assert re.search(r"\(replaced by 01[0-9a-f-]+\)", beside)


def test_memories_of_other_scopes_are_never_shown_beside(memory, open_memory, tmp_path):  # noqa: F811
    (tmp_path / "elsewhere").mkdir()
    foreign = open_memory(directory=tmp_path / "elsewhere").add("a secret of another project").id
    mine = memory.add("ours").id
    memory.store.write(Batch(at=NOW, relate=(Relation(mine, foreign, "relates_to"),)))
    assert "secret" not in quote_items(show_memories(memory, memory.store.get([mine]), 1000))
    assert "secret" not in use_tool(memory, "search_memories", query="ours")


def test_open_questions_of_people_come_before_those_of_imported_texts(memory):
    memory.add("Do people ask this?", kind="question")
    imported = [Passage(f"Imported question {number}?", kind="question") for number in range(8)]
    memory.ingest([(Source("faq.md", "markdown"), imported)])
    answer = use_tool(memory, "memory_overview")
    first = r"\[[^\]]+\] question, user, note:user, 2026-03-20: Do people ask this\?"
    assert re.search(rf"Open questions \(9\):\n{first}", answer)
    assert answer.count("Imported question") == tools.LISTED - 1
