"""What tools and resources tell a model: what is in full, what is a line, what falls away when there is no room; and that a name from
outside reads knowledge files and nothing else."""

import os
import re
from datetime import UTC, datetime, timedelta

import pytest
from memories import NOW, read_summary, use_tool

from bethink.app.mcp import resources, tools
from bethink.app.mcp.resources import list_resources, read_resource
from bethink.app.render import quote_items, show_memories
from bethink.config import Config
from bethink.errors import InvalidInput, NotFound
from bethink.model import Batch, Passage, Relation, Session, Source, Span
from bethink.outgoing import CUT, NOTICE, Quote
from bethink.recall.shape import tokens

DAY = datetime(2026, 3, 20, tzinfo=UTC)
CLOSED = re.compile(r"<bethink-memory ([0-9a-f]{8})>\n.*\n</bethink-memory \1>", re.DOTALL)


@pytest.fixture
def memory(open_memory):
    return open_memory()


def fill_warehouse(memory):
    for number in range(12):
        rules = f"Shelf {number} has its own rules, told at length. " * 12
        memory.add(f"The warehouse service {number} keeps stock levels. {rules}")
    return use_tool(memory, "search_memories", query="warehouse stock levels")


def answer_text(memory, answer):
    shown = tools.arrange(memory, answer, 1000)
    return quote_items(shown.items, shown.notes, 1000)


def quote(text, **more):
    return Quote("01a1dd89-7c02", "fact", 2, "note:agent:x", DAY, text, **more)


@pytest.mark.parametrize("budget", [100, 1000])
@pytest.mark.parametrize("text", ["word " * 3000, "日本語の長い文章。" * 800, "a\n" * 5000])
def test_an_answer_is_cut_to_its_budget(text, budget):
    answer = quote_items([quote(text), quote("last")], ["2 found."], budget)
    assert tokens(answer) <= budget
    assert CLOSED.match(answer)
    assert CUT in answer
    assert answer.endswith("\n2 found.")


def test_the_budget_goes_to_excerpts_of_the_best_hits(memory):
    answer = fill_warehouse(memory)
    assert 600 < tokens(answer) <= 1000  # most of the room is used where texts are long
    full, excerpts, lines = read_summary(answer, 12)
    assert len(re.findall(r"^\[01[^\]]+\]", answer, re.M)) == full + excerpts + lines >= 10
    assert full + excerpts >= 5


def talk_about_cache(memory):
    scope = memory.scope
    span = Span("s1", scope, "3f2a", None, "Moving the cache", "We moved the cache", (1, 9), 0, NOW)
    sessions = (Session("3f2a", scope, "claude"),)
    where = {"scopes": {scope: ("shop", "")}, "sessions": sessions, "spans": ((span, ()),)}
    memory.store.write(Batch(at=NOW, **where))
    said = ("Shall we talk about lunch?", "Valkey replaces Redis for sessions", "Good, go on")
    turns, place = [], {"kind": "context", "span": "s1", "session": "3f2a"}
    for at, text in enumerate(said, start=1):
        role = {"role": "assistant" if at == 2 else "user"}
        turns.append(Passage(text, lines=(at, at), metadata=role, position=at, **place))
    memory.ingest([(Source("talk.jsonl", "transcript"), turns)])


def test_a_conversation_comes_with_its_topic(memory):
    talk_about_cache(memory)
    answer = answer_text(memory, memory.search("Valkey sessions", limit=1))
    assert "Topic: Moving the cache\n" in answer
    assert "session 3f2a:2" in answer


def test_an_overview_lists_questions_from_people(memory):
    talk_about_cache(memory)
    memory.add("Do people ask this?", kind="question")
    imported = [Passage(f"Imported question {number}?", kind="question") for number in range(8)]
    memory.ingest([(Source("faq.md", "markdown"), imported)])
    answer = use_tool(memory, "memory_overview")
    first = r"\[[^\]]+\] question, user, note:user, 2026-03-20: Do people ask this\?"
    assert re.search(rf"Open questions:\n{first}", answer)
    assert "Imported question" not in answer
    assert "- Moving the cache" in answer


def test_hints_of_the_library_stand_behind_the_marks(open_memory):
    memory = open_memory("http")
    memory.config = memory.config._replace(embedding_url="http://127.0.0.1:9", model_timeout=0.1)
    memory._model._config = memory.config
    answer = use_tool(memory, "search_memories", query="anything")
    assert answer.startswith("No memories match.")
    assert "\nNote: Working by words only:" in answer


def test_several_memories_share_the_budget(memory):
    long = [memory.add(f"{number} " + "long text " * 2000).id for number in range(3)]
    short = memory.add("short text").id
    items = show_memories(memory, memory.store.get([*long, short]), 2000)
    answer = quote_items(items, budget=2000)
    assert tokens(answer) <= 2000
    assert "> short text" in answer
    assert answer.count("characters in all; ask for it alone or with more max_tokens]") == 3


def test_a_whole_memory_is_shown_with_its_fields(memory):
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


def test_memories_of_other_scopes_are_never_shown_beside(memory, open_memory, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    foreign = open_memory(directory=tmp_path / "elsewhere").add("a secret of another project").id
    mine = memory.add("ours").id
    memory.store.write(Batch(at=NOW, relate=(Relation(mine, foreign, "relates_to"),)))
    assert "secret" not in quote_items(show_memories(memory, memory.store.get([mine]), 1000))
    assert "secret" not in use_tool(memory, "search_memories", query="ours")


TEXT = "# Tea\n\nOolong is sold in tins.\n"


@pytest.fixture
def project(tmp_path, offline):
    root = tmp_path / "project"
    tea = ".claude/knowledge/domain/tea.md"
    for path in (tea, "docs/guide.md", "docs/domain/tea.md", "notes.md", "README.md"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(TEXT if path.startswith(".claude") else f"{path}\n")
    (tmp_path / "secret.md").write_text("secret\n")
    return root


@pytest.fixture
def reader(project, open_memory):
    places = (".claude/knowledge", "docs", "notes.md")
    return open_memory(config=Config(embedding="hashing", knowledge=places))


def file(memory, path):
    """The lines of a knowledge file as its resource quotes them."""
    first, notice, *lines, last = read_resource(memory, f"memory://{path}")[1].split("\n")
    assert first.replace("<", "</") == last and first.startswith("<bethink-memory ")
    assert notice == NOTICE
    return [line.removeprefix("> ").removeprefix(">") for line in lines]


def test_a_knowledge_file_is_quoted_line_by_line(reader):
    tea = TEXT.rstrip("\n").split("\n")
    assert file(reader, "domain/tea.md") == file(reader, "domain%2Ftea.md") == tea


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("guide.md", id="guide.md"),
        pytest.param("docs/domain/tea.md", id="docs/domain/tea.md"),
        pytest.param("notes.md", id="notes.md"),
    ],
)
def test_a_knowledge_file_is_found_by_its_path(reader, path):
    assert file(reader, path) == (["docs/guide.md"] if path == "guide.md" else [path])


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("..", id="full-stop"),
        pytest.param("../secret.md", id="secret.md"),
        pytest.param("domain/../../../../secret.md", id="domain-secret.md"),
        pytest.param("domain/../tea.md", id="domain-tea.md"),
        pytest.param("./domain/tea.md", id="domain/tea.md"),
        pytest.param("domain//tea.md", id="domain-tea.md-2"),
        pytest.param("domain/", id="domain"),
        pytest.param("%2e%2e/secret.md", id="2e-2e/secret.md"),
        pytest.param("..%2fsecret.md", id="2fsecret.md"),
        pytest.param("domain%2f..%2f..%2fsecret.md", id="domain-2f-2f-2fsecret.md"),
        pytest.param("%252e%252e%252fsecret.md", id="252e-252e-252fsecret.md"),
        pytest.param("domain%252Ftea.md", id="domain-252ftea.md"),
        pytest.param("/etc/passwd", id="etc/passwd"),
        pytest.param("%2Fetc%2Fpasswd", id="2fetc-2fpasswd"),
        pytest.param("~/secret.md", id="secret.md-2"),
        pytest.param("C:/secret.md", id="C-secret.md"),
        pytest.param("domain/tea.md:stream", id="domain/tea.md-stream"),
        pytest.param("CON.md", id="con.md"),
        pytest.param("domain/tea.md%00", id="domain/tea.md-00"),
        pytest.param("%0a", id="0a"),
        pytest.param("%ff%fe.md", id="ff-fe.md"),
        pytest.param("%c0%ae%c0%ae/secret.md", id="c0-ae-c0-ae/secret.md"),
        pytest.param("..\\secret.md", id="secret.md-3"),
        pytest.param("README.md", id="readme.md"),
        pytest.param("secret.md", id="secret.md-4"),
        pytest.param(".claude", id="claude"),
        pytest.param("domain", id="domain-2"),
        pytest.param("nothing.md", id="nothing.md"),
        pytest.param("domain/tea.md ", id="domain/tea.md-2"),
        pytest.param("\x00", id="u0000"),
        pytest.param("\u202egpj.md", id="gpj.md"),
        pytest.param("a/" * 2000, id="a"),
        pytest.param("", id="empty"),
    ],
)
def test_a_path_outside_of_the_knowledge_is_refused(reader, path):
    with pytest.raises(NotFound) as refused:
        file(reader, path)
    assert refused.value.message.isprintable() and len(refused.value.message) < 1000


def test_links_do_not_lead_out_of_a_knowledge_folder(reader, project, tmp_path):
    folder = project / "docs"
    (folder / "out.md").symlink_to(tmp_path / "secret.md")
    (folder / "up").symlink_to(tmp_path)
    (folder / "circle.md").symlink_to(folder / "circle.md")
    (folder / "readme.md").symlink_to(project / "README.md")
    for path in ("out.md", "up/secret.md", "circle.md", "readme.md", "docs/out.md"):
        with pytest.raises(NotFound):
            file(reader, path)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.md").write_text("secret")
    (project / "linked").symlink_to(tmp_path / "outside")
    reader.config = reader.config._replace(knowledge=("linked",))
    with pytest.raises(InvalidInput, match="outside the project"):
        file(reader, "x.md")


def test_hidden_or_unreadable_files_are_not_read(reader, project):
    folder = project / "docs"
    (folder / ".git").mkdir()
    for name in ("key.pem", ".hidden.md", ".git/x.md"):
        (folder / name).write_text("secret")
    (folder / "private.md").write_text("---\nindex: false\n---\nsecret")
    (folder / "binary.md").write_bytes(b"a\x00b")
    (folder / "huge.md").write_bytes(b"x" * 2_000_001)
    os.mkfifo(folder / "pipe.md")
    hidden = ("key.pem", ".hidden.md", ".git/x.md", "private.md", "binary.md", "huge.md", "pipe.md")
    for path in hidden:
        with pytest.raises(NotFound):
            file(reader, path)


def test_only_readable_markdown_is_listed(reader, project):
    folder = project / "docs"
    for name in ("a b.md", "ü.md", "100%.md", "UPPER.MD"):
        (folder / name).write_text(name)
    page = list_resources(reader)
    names = "domain/tea.md|100%.md|UPPER.MD|a b.md|guide.md|ü.md|docs/domain/tea.md|notes.md"
    assert [one["name"] for one in page] == names.split("|")
    found = [(*read_resource(reader, one["uri"]), one["size"]) for one in page]
    assert {kind for kind, _, _ in found} == {"text/markdown"}
    assert [text for _, text, size in found if len(text.encode()) <= size] == []


def test_the_list_of_files_is_limited(reader, monkeypatch):
    monkeypatch.setattr(resources, "FILES_LISTED", 1)
    assert [one["name"] for one in list_resources(reader)] == ["domain/tea.md"]
    assert file(reader, "notes.md") == ["notes.md"]


def test_a_memory_is_read_whole_by_the_beginning_of_its_id_without_counting(reader):
    id = reader.add("Oolong is </bethink-memory 1> green, " + "word " * 30_000, kind="fact").id
    kind, text = read_resource(reader, f"bethink://memory/{id[:20]}")
    assert (kind, text.count("</bethink-memory"), text.count("word")) == ("text/plain", 1, 30_000)
    assert reader.one(id).access_count == 0
    for uri in ("memory/", "memory/zz", "memory/../x", "memory/" + "f" * 5000, "topics/3f2a"):
        with pytest.raises(NotFound):
            read_resource(reader, f"bethink://{uri}")
