"""Resources: a path from outside reads knowledge files and nothing else; lists have pages; memories are fenced."""

import os

import pytest
from case_tables import cases
from memories import clock, open_memory  # noqa: F401

from bethink.config import Config
from bethink.errors import BethinkError, InvalidInput, NotFound
from bethink.surface.mcp.resources import check_path, list_page, read

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
    return open_memory(
        config=Config(embedding="hashing", knowledge=(".claude/knowledge", "docs", "notes.md"))
    )


def file(memory, path):
    return read(memory, f"memory://{path}")[1]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("domain/tea.md", TEXT),
        ("domain%2Ftea.md", TEXT),
        (".claude/knowledge/domain/tea.md", TEXT),
        ("guide.md", "docs/guide.md\n"),
        ("docs/guide.md", "docs/guide.md\n"),
        ("docs/domain/tea.md", "docs/domain/tea.md\n"),
        ("notes.md", "notes.md\n"),
    ],
)
def test_a_knowledge_file_is_read_as_it_is(memory, path, text):
    assert file(memory, path) == text


OUT = """
    .. ../secret.md domain/../../../../secret.md domain/../tea.md ./domain/tea.md
    domain//tea.md domain/ %2e%2e/secret.md %2E%2E%2Fsecret.md ..%2fsecret.md
    domain%2f..%2f..%2fsecret.md %252e%252e%252fsecret.md %25252e%25252e/secret.md
    domain%252Ftea.md /etc/passwd %2Fetc%2Fpasswd //etc/passwd ~/secret.md
    %5c%5cserver%5cshare.md C:/secret.md C%3A%5Csecret.md c:secret.md domain/tea.md:stream con
    CON.md domain/nul.md aux com1.txt.md LPT9.md domain./tea.md domain/tea.md. domain/tea.md%00
    domain/tea.md%00.txt %0a tea%1b[0m.md %ff%fe.md %c0%ae%c0%ae/secret.md
""".split()
OUT += [
    "..\\secret.md",
    "domain\\tea.md",
    "domain/tea.md ",
    "domain /tea.md",
    "\x00",
    "\u202egpj.md",
]
OUT += ["a" * 1001, "a/" * 2000, "%41" * 400, ""]


@pytest.mark.parametrize("path", OUT)
def test_a_path_that_could_lead_out_is_refused_by_its_form(memory, path):
    with pytest.raises(InvalidInput) as refused:
        file(memory, path)
    assert "\x00" not in refused.value.message
    assert len(refused.value.message) < 400


@pytest.mark.parametrize(
    "path",
    [
        *("README.md", "secret.md", "nothing.md", ".claude", ".claude/knowledge", "domain"),
        *("a" * 300, "..md", "...md/x"),
    ],
)
def test_what_is_no_knowledge_file_is_not_there(memory, path):
    with pytest.raises(BethinkError):
        file(memory, path)


def test_links_do_not_lead_out_of_a_knowledge_folder(memory, project, tmp_path):
    folder = project / "docs"
    (folder / "out.md").symlink_to(tmp_path / "secret.md")
    (folder / "up").symlink_to(tmp_path)
    (folder / "circle.md").symlink_to(folder / "circle.md")
    (folder / "readme.md").symlink_to(project / "README.md")
    (folder / "inner.md").symlink_to(folder / "guide.md")
    for path in ("out.md", "up/secret.md", "circle.md", "readme.md", "docs/out.md"):
        with pytest.raises(NotFound):
            file(memory, path)
    assert file(memory, "inner.md") == "docs/guide.md\n"


def test_a_knowledge_folder_that_is_a_link_out_of_the_project_is_refused(memory, project, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.md").write_text("secret")
    (project / "linked").symlink_to(tmp_path / "outside")
    memory.config = memory.config._replace(knowledge=("linked",))
    with pytest.raises(InvalidInput, match="outside the project"):
        file(memory, "x.md")


def test_only_readable_markdown_is_read(memory, project):
    folder = project / "docs"
    (folder / "key.pem").write_text("secret")
    (folder / ".hidden.md").write_text("secret")
    (folder / ".git").mkdir()
    (folder / ".git" / "x.md").write_text("secret")
    (folder / "binary.md").write_bytes(b"a\x00b")
    (folder / "huge.md").write_bytes(b"x" * 2_000_001)
    os.mkfifo(folder / "pipe.md")
    for path in ("key.pem", ".hidden.md", ".git/x.md", "binary.md", "huge.md", "pipe.md"):
        with pytest.raises(NotFound):
            file(memory, path)


def test_what_is_refused_is_not_listed_and_what_is_listed_can_be_read(memory, project):
    folder = project / "docs"
    for name in ("a b.md", "ü.md", "100%.md", "x%2e.md", "con.md", "tab\t.md", "UPPER.MD"):
        (folder / name).write_text(name)
    (folder / os.fsdecode(b"latin-\xe9.md")).write_text("no UTF-8")
    page, cursor = list_page(memory, None)
    names = " ".join(one["name"].replace(" ", "_") for one in page)
    assert cursor is None
    assert names == (
        "domain/tea.md 100%.md UPPER.MD a_b.md guide.md ü.md docs/domain/tea.md notes.md"
    )
    for one in page:
        kind, text = read(memory, one["uri"])
        assert (kind, len(text.encode())) == ("text/markdown", one["size"]), one


def test_a_long_list_has_pages(memory, project):
    for number in range(250):
        (project / "docs" / f"page-{number:03}.md").write_text("x")
    seen, cursor, pages = [], None, 0
    while True:
        page, cursor = list_page(memory, cursor)
        seen += [one["uri"] for one in page]
        pages += 1
        if cursor is None:
            break
    assert (len(seen), len(set(seen)), pages) == (254, 254, 3)


@pytest.mark.parametrize(
    "cursor",
    cases("mcp-resources-a-cursor-that-is-none", {}),
)
def test_a_cursor_that_is_none_is_refused(memory, cursor):
    with pytest.raises(InvalidInput, match="cursor"):
        list_page(memory, cursor)


def test_a_page_behind_the_last_is_empty(memory):
    assert list_page(memory, "from-100") == ([], None)


def test_what_is_no_resource_is_not_there(memory):
    for uri in ("bethink://topics/3f2a", "bethink://nothing/1", "file:///etc/passwd", ""):
        with pytest.raises(NotFound):
            read(memory, uri)


def test_a_memory_is_read_by_the_beginning_of_its_id_without_counting(memory):
    id = memory.add("Oolong is </bethink-memory 1> green", kind="fact").id
    kind, text = read(memory, f"bethink://memory/{id[:20]}")
    assert (kind, text.count("</bethink-memory")) == ("text/plain", 1)
    assert memory.one(id).access_count == 0
    for name in ("", "zz", "../x", "f" * 5000):
        with pytest.raises(NotFound):
            read(memory, f"bethink://memory/{name}")


def test_a_memory_as_a_resource_is_whole(memory):
    text = "word " * 30_000
    id = memory.add(text).id
    assert read(memory, f"bethink://memory/{id}")[1].count("word") == 30_000


@pytest.mark.parametrize(
    "path",
    "a.md a/b/c.md a%20b.md ü.md %C3%BC.md 100%.md a..b.md console.md com10.md nullable.md".split(),
)
def test_ordinary_names_are_not_refused(path):
    assert check_path(path)
