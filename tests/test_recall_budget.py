"""Token budgets: everything that an answer shows is counted, and every match is in full, on a line, or on the next page."""

import json
import re
from datetime import timedelta

import pytest
from memories import NOW, read_summary, use_tool
from stores import make, put, write

from bethink.app.mcp import tools
from bethink.app.render import Form, arrange_answer, item_lines
from bethink.embed.hashing import HashingEmbedder
from bethink.model import RELATIONS, Relation, Session, Source, Span
from bethink.outgoing import CUT
from bethink.recall.shape import dual, tokens

BUDGETS = [100, 150, 300, 700, 1000, 2000, 5000]
QUESTION = "where does the otter of the pond sleep?"
NOTES = 26


@pytest.fixture
def memory(open_memory):
    """Notes and turns of conversations about one thing, with topics, digests, metadata and relations of every type."""
    memory = open_memory()
    scope = memory.scope
    spans = tuple(
        (
            Span(
                f"topic-{at}",
                scope,
                "3f2a",
                None,
                f"Moving the otters of pond {at} to their winter quarters",
                "Focus: where otters sleep\n" + f"Done: dug hole {at}, moved the straw; " * 6,
                (1, 9),
                0,
                NOW,
            ),
            (),
        )
        for at in range(4)
    )
    write(
        memory.store,
        scopes={scope: ("shop", "")},
        sessions=(Session("3f2a", scope, "claude"),),
        spans=spans,
        sources=((scope, Source("talk.jsonl", "transcript")),),
    )
    told = []
    for at in range(NOTES):
        spoken = at % 2
        text = f"Otter {at:02} of the pond sleeps in hole {at:02}. " + "It snores. " * (at % 7 * 9)
        place = {"source": "talk.jsonl", "source_type": "transcript", "lines": (at, at)}
        place |= {"span": f"topic-{at % 4}", "session": "3f2a", "kind": "decision"}
        added = {"metadata": {"seen": "by Ada at the north bank " * 3, "ticket": f"OPS-{at}"}}
        created = {"created_at": NOW + timedelta(minutes=at), "position": at, "scope": scope}
        summary = f"Otter {at:02} sleeps in hole {at:02}"
        told.append(make(text, summary=summary, **created, **(place if spoken else added)))
    relations = [
        Relation(told[at].id, told[at - 1 - at % 3].id, RELATIONS[at % len(RELATIONS)])
        for at in range(3, NOTES)
    ]
    put(memory.store, *told, embed=False, unique=False, relate=tuple(relations))
    memory.reindex()
    return memory


def read_pages(memory, ask):
    """The numbers of the otters that each page shows as memories of their own."""
    seen, offset = [], 0
    while offset is not None:
        page, offset = ask(offset)
        assert page, "a page shows something"
        seen += page
    return sorted(map(int, seen))


def call(memory, **given):
    return tools.call(
        memory, "search_memories", tools.TOOLS["search_memories"].read_arguments(given)
    )


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_pages_of_the_tool_show_every_match_once(memory, budget):
    def ask(offset):
        reply = call(memory, query=QUESTION, offset=offset, max_tokens=budget)
        heads = re.findall(r"(?m)^\[01.*\](?:.*: Otter (\d\d)|.*\n> Otter (\d\d))", reply.text)
        return [one or other for one, other in heads], reply.numbers.get("next_offset")

    assert read_pages(memory, ask) == list(range(NOTES))


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("offset", [0, 5, 20])
def test_no_answer_of_the_tool_is_cut_or_over_its_budget(memory, budget, offset):
    reply = call(memory, query=QUESTION, offset=offset, max_tokens=budget)
    assert tokens(reply.text) <= budget
    assert CUT not in reply.text


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_numbers_below_an_answer_are_those_of_what_is_shown(memory, budget):
    text = call(memory, query=QUESTION, max_tokens=budget).text
    shown = len(re.findall(r"(?m)^> Otter", text))
    lines = len(re.findall(r"(?m)^\[01.*: Otter", text))
    full, excerpts, as_lines = read_summary(text, 26)
    assert (full + excerpts, as_lines) == (shown, lines)
    assert (f"The next page begins at offset {shown + lines}." in text) == (shown + lines < NOTES)


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_list_of_the_tool_shows_every_memory_once(memory, budget):
    def ask(offset):
        reply = call(memory, offset=offset, max_tokens=budget)
        assert tokens(reply.text) <= budget
        return re.findall(r"(?m)^\[01.*: Otter (\d\d)", reply.text), reply.numbers.get(
            "next_offset"
        )

    assert read_pages(memory, ask) == list(range(NOTES))


@pytest.mark.parametrize("budget", [40, 100, 300, 1000, 4000])
def test_the_pages_of_recall_show_every_match_once(memory, budget):
    form = Form(values=True)

    def ask(offset):
        answer = memory.search(QUESTION, limit=20, offset=offset)
        both = arrange_answer(memory, answer, budget, form, offset).both
        assert both.tokens_used <= budget
        assert {detail["id"] for detail in both.details} <= {line["id"] for line in both.index}
        return [line["summary"][6:8] for line in both.index], both.next

    assert read_pages(memory, ask) == list(range(NOTES))


@pytest.mark.parametrize("budget", [100, 300, 1000])
@pytest.mark.parametrize("quoted", [True, False])
def test_what_is_counted_is_what_is_shown(memory, budget, quoted):
    arranged = arrange_answer(memory, memory.search(QUESTION, limit=20), budget, Form(quoted))
    assert tokens("\n".join(item_lines(arranged.items))) <= budget


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(r"Topic: Moving", id="topic-moving"),
        pytest.param(r"Done: dug hole", id="done-dug-hole"),
        pytest.param(r"  metadata: ", id="metadata"),
        pytest.param(r"  (builds on|basis of) ", id="builds-basis"),
    ],
)
def test_a_recall_shows_topic_digest_metadata_or_relation(memory, line):
    text = call(memory, query=QUESTION, max_tokens=3000).text
    assert re.search(rf"(?m)^{line}", text), line


@pytest.mark.parametrize("budget", [100, 200, 400])
def test_hints_count_in_the_budget(memory, open_memory, budget):
    other = open_memory(embedder=HashingEmbedder(128))
    reply = call(other, query=QUESTION, max_tokens=budget)
    assert tokens(reply.text) <= budget and CUT not in reply.text
    assert "\n> Otter" in reply.text or ": Otter" in reply.text


def test_relations_count_in_the_form_for_python(memory):
    answer = memory.search(QUESTION, limit=20)
    bare = answer._replace(hits=tuple(hit._replace(related=()) for hit in answer.hits))
    assert len(dual(answer, 1000).details) < len(dual(bare, 1000).details)


@pytest.mark.parametrize("command", ["recall", "search --dual"])
def test_the_pages_of_a_command_show_every_match_once(cli, command):
    for at in range(12):
        cli.add(f"Otter {at:02} of the pond sleeps in hole {at:02}", "--no-dedup")
    seen, offset = [], 0
    while offset is not None:
        asked = (*command.split(), QUESTION, "--max-tokens", "150", "--offset", str(offset))
        found = json.loads(cli.ok("--json", *asked))
        seen += [line["summary"][6:8] for line in found["index"]]
        assert found["has_more"] == (found["next"] is not None)
        offset = found["next"]
    assert sorted(map(int, seen)) == list(range(12))


def test_documents_that_are_crowded_out_of_a_page_come_on_a_later_one(memory):
    passages = [f"Pond manual, part {at}: the otter sleeps here" for at in range(12)]
    page = {"source": "manual.md", "source_type": "markdown", "kind": "document", "trust": 1}
    read = [make(text, scope=memory.scope, **page, position=at) for at, text in enumerate(passages)]
    sources = ((memory.scope, Source("manual.md", "markdown")),)
    put(memory.store, *read, embed=False, sources=sources)

    def ask(offset):
        reply = call(memory, query="pond otter", offset=offset, max_tokens=4000, mode="keyword")
        return re.findall(r"(?m)^> Pond manual, part (\d+)", reply.text) or [
            "-1"
        ], reply.numbers.get("next_offset")

    assert [at for at in read_pages(memory, ask) if at >= 0] == list(range(12))


@pytest.mark.parametrize("budget", [100, 200, 500, 2000])
def test_memories_by_id_stay_within_the_budget(memory, budget):
    ids = [one.id for one in memory.list(limit=20)]
    text = use_tool(memory, "get_memories", ids=ids, max_tokens=budget)
    shown = len(re.findall(r"(?m)^\[01", text))
    assert tokens(text) <= budget and CUT not in text
    assert (f"{shown} of 20 shown" in text) == (shown < 20)
