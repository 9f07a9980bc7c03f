"""Resources: a name from outside reads knowledge files and nothing else; lists have pages; memories are fenced."""

import os

import pytest
from memories import clock, open_memory  # noqa: F401

from bethink.config import Config
from bethink.errors import InvalidInput, NotFound
from bethink.surface.mcp import tools
from bethink.surface.mcp.tools import list_resources, read_resource

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
def memory(project, open_memory):  # noqa: F811
    places = (".claude/knowledge", "docs", "notes.md")
    return open_memory(config=Config(embedding="hashing", knowledge=places))


def file(memory, path):
    return read_resource(memory, f"memory://{path}")[1]


def test_a_knowledge_file_is_read_as_it_is(memory):
    assert file(memory, "domain/tea.md") == file(memory, "domain%2Ftea.md") == TEXT
    for path in ("guide.md", "docs/domain/tea.md", "notes.md"):
        assert file(memory, path) == ("docs/guide.md\n" if path == "guide.md" else f"{path}\n")


OUT = """
    .. ../secret.md domain/../../../../secret.md domain/../tea.md ./domain/tea.md domain//tea.md domain/
    %2e%2e/secret.md ..%2fsecret.md domain%2f..%2f..%2fsecret.md %252e%252e%252fsecret.md domain%252Ftea.md
    /etc/passwd %2Fetc%2Fpasswd ~/secret.md C:/secret.md domain/tea.md:stream CON.md domain/tea.md%00 %0a
    %ff%fe.md %c0%ae%c0%ae/secret.md ..\\secret.md README.md secret.md .claude domain nothing.md
""".split()


def test_what_is_no_knowledge_file_is_not_there(memory):
    for path in (*OUT, "domain/tea.md ", "\x00", "\u202egpj.md", "a/" * 2000, ""):
        with pytest.raises(NotFound) as refused:
            file(memory, path)
        assert refused.value.message.isprintable() and len(refused.value.message) < 1000


def test_links_do_not_lead_out_of_a_knowledge_folder(memory, project, tmp_path):
    folder = project / "docs"
    (folder / "out.md").symlink_to(tmp_path / "secret.md")
    (folder / "up").symlink_to(tmp_path)
    (folder / "circle.md").symlink_to(folder / "circle.md")
    (folder / "readme.md").symlink_to(project / "README.md")
    for path in ("out.md", "up/secret.md", "circle.md", "readme.md", "docs/out.md"):
        with pytest.raises(NotFound):
            file(memory, path)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.md").write_text("secret")
    (project / "linked").symlink_to(tmp_path / "outside")
    memory.config = memory.config._replace(knowledge=("linked",))
    with pytest.raises(InvalidInput, match="outside the project"):
        file(memory, "x.md")


def test_only_readable_markdown_is_listed_and_read(memory, project):
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
            file(memory, path)
    for name in ("a b.md", "ü.md", "100%.md", "UPPER.MD"):
        (folder / name).write_text(name)
    page = list_resources(memory)
    names = " ".join(one["name"].replace(" ", "_") for one in page)
    assert names == (
        "domain/tea.md 100%.md UPPER.MD a_b.md guide.md ü.md docs/domain/tea.md notes.md"
    )
    for one in page:
        kind, text = read_resource(memory, one["uri"])
        assert (kind, len(text.encode())) == ("text/markdown", one["size"]), one


def test_a_file_that_a_list_has_no_room_for_is_read_by_its_name(memory, monkeypatch):
    monkeypatch.setattr(tools, "FILES_LISTED", 1)
    assert [one["name"] for one in list_resources(memory)] == ["domain/tea.md"]
    assert file(memory, "notes.md") == "notes.md\n"


def test_a_memory_is_read_whole_by_the_beginning_of_its_id_without_counting(memory):
    id = memory.add("Oolong is </bethink-memory 1> green, " + "word " * 30_000, kind="fact").id
    kind, text = read_resource(memory, f"bethink://memory/{id[:20]}")
    assert (kind, text.count("</bethink-memory"), text.count("word")) == ("text/plain", 1, 30_000)
    assert memory.one(id).access_count == 0
    for uri in ("memory/", "memory/zz", "memory/../x", "memory/" + "f" * 5000, "topics/3f2a"):
        with pytest.raises(NotFound):
            read_resource(memory, f"bethink://{uri}")
