"""What analysis says about projects: real trees in tmp_path, read by the same walk as in use. The history has a file of its own."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from case_tables import cases
from growth import KILLERS, grows_too_fast, killers_for, long_text, processor_limit
from trees import analysed, load_projects, plant, told

from bethink.ingest.analyze import documents, pages, routes
from bethink.ingest.analyze.tree import Tree
from bethink.ingest.files import walk
from bethink.ingest.symbols import load_table
from bethink.ingest.sync import Document
from bethink.model import KINDS, Memory

SHOP = load_projects("shop.txt")[0].files


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Path:
    return plant(tmp_path_factory.mktemp("harbour"), SHOP)


def contents(root: Path, tag: str) -> list[str]:
    return [passage.content for passage in told(root, tag)]


def test_a_project_is_told_in_a_few_dozen_sentences_with_kind_tags_and_lines(shop):
    found, skipped = analysed(shop)
    assert skipped == {} and 20 <= sum(map(len, found.values())) <= 60
    assert "not-to-be-remembered" not in repr(found)  # values of environment variables
    for path, passages in found.items():
        length = (shop / path).read_text().count("\n") + 1
        for passage in passages:
            assert passage.kind in KINDS and passage.tags[0] == "analysis" and passage.section
            assert 1 <= passage.lines[0] <= passage.lines[1] <= length, (path, passage)
            assert 0 < passage.confidence <= 1 and 0 <= passage.importance <= 10
            assert 20 <= len(passage.content) <= 2_000
            assert any(entity.name == path for entity in passage.entities)
    for tag, expected in cases("analyze-the-project-is-told"):
        assert any(expected in content for content in contents(shop, tag)), contents(shop, tag)


def hashes(root: Path) -> dict[str, str]:
    found = documents(root, walk(root, root))
    return {one.uri: one.hash for one in found if isinstance(one, Document)}


MAKEFILE = {"Makefile": "test:\n\tpytest\n"}


def test_a_change_concerns_its_own_file_and_hidden_files_lead_not_out_of_the_project(tmp_path):
    plant(tmp_path, SHOP)
    before = hashes(tmp_path)
    assert hashes(tmp_path) == before
    changed = SHOP["README.md"].replace("Russian", "Finnish")
    plant(tmp_path, {"README.md": changed, "web/notes.txt": "nothing of interest"})
    after = hashes(tmp_path)
    assert [uri for uri in after if after[uri] != before.get(uri)] == ["analysis:README.md"]
    root = plant(tmp_path / "api", MAKEFILE | {".python-version": "3.12\n"})
    assert list(analysed(root)[0]) == [".python-version", "Makefile"]
    plant(tmp_path, {"secret.yml": "on: push\njobs: {leak: {steps: [{run: pytest}]}}\n"})
    plant(root, {".github/workflows/a.yml": ""})
    (root / ".github/workflows/ci.yml").symlink_to(tmp_path / "secret.yml")
    assert "leak" not in repr(analysed(root))


@pytest.mark.parametrize("files", cases("analyze-where-there-is-nothing"))
def test_where_there_is_nothing_to_say_nothing_is_said(tmp_path, files):
    assert analysed(plant(tmp_path, files)) == ({}, {})


def test_a_huge_project_stays_few(tmp_path):
    for number in map(str, range(120)):
        own = [(path.replace("7", number), text) for path, text in cases("analyze-huge")]
        plant(tmp_path, {path: text.replace("7", number) for path, text in own})
    found, _ = analysed(tmp_path)
    every = [passage for passages in found.values() for passage in passages]
    records = [passage for passage in every if passage.tags[1] == "adr"]
    assert len(records) == pages.MOST_RECORDS and len(every) - len(records) <= 90
    assert max(len(passage.content) for passage in every) <= 3_000


def test_a_heading_says_what_its_section_is_and_other_sections_are_passed_over(tmp_path):
    section = "## {}\n\nHere is a sentence with quite enough words to be worth keeping.\n"
    passed = [(heading, None) for heading in cases("analyze-other-sections-are-passed")]
    for heading, kind in cases("analyze-a-heading-says-what") + passed:
        found, _ = analysed(plant(tmp_path, {"README.md": f"# X\n\n{section.format(heading)}"}))
        told_of = [one for one in found.get("README.md", ()) if one.tags[1] != "readme"]
        shown = [(one.kind, one.lines, "worth keeping" in one.content) for one in told_of]
        assert shown == ([(kind, (3, 5), True)] if kind else []), heading


# Projects in a table: what is told of each


@pytest.mark.parametrize("project", load_projects("projects.txt"), ids=lambda one: one.name)
def test_what_a_project_shows_is_told_in_one_finding(tmp_path, project):
    every = told(plant(tmp_path, project.files), project.name)
    found = [one for one in every if all(line in one.content for line in project.expected)]
    assert len(found) == 1, every
    # What only a layout gives away is never certain.
    assert project.name != "pattern" or 0.6 <= found[0].confidence <= 0.8


@pytest.mark.parametrize(("tag", "files", "expected"), cases("analyze-told-exactly"))
def test_a_project_is_told_in_these_sentences_and_no_others(tmp_path, tag, files, expected):
    plant(tmp_path, files)
    assert sorted(contents(tmp_path, tag)) == expected


FORMS = cases("analyze-records")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_record_is_read_with_its_status(tmp_path, form):
    for status, name, weight in cases("analyze-every-form-of-record-1"):
        plant(tmp_path, {"docs/adr/0007-use-postgresql.md": form.format(status)})
        (passage,) = told(tmp_path, "adr")
        head, _, body = passage.content.partition("\n")
        assert head.startswith(f"ADR 7 ({name}, 2024-03-02): Use PostgreSQL for the ledger.")
        assert "PostgreSQL" in body and passage.kind == "decision"
        assert (passage.importance, passage.confidence) == weight
        assert passage.created_at == datetime(2024, 3, 2, tzinfo=UTC)
        assert (passage.metadata["adr"], passage.metadata["status"]) == (7, name)
        assert ("does not hold" in passage.content) == (name in ("rejected", "deprecated"))


OLD, NEW = "docs/adr/0003-old-way.md", "docs/adr/0012-new-way.md"
RECORD = "# {}. {}\n\n## Status\n\n{}\n\n## Decision\n\nWe do it the {} way from now on.\n"


def read_pair(root: Path, old: str, new: str):
    """What is told of two records with these statuses, and which replaces which."""
    files = {OLD: RECORD.format(3, "Old", old, "old"), NEW: RECORD.format(12, "New", new, "new")}
    found, _ = analysed(plant(root, files))
    at = datetime(2024, 1, 1, tzinfo=UTC)
    (before,), (after,) = found[OLD], found[NEW]
    usual = Memory("old", "project:x", "decision", "", "", at, at, metadata=before.metadata)
    pairs = pages.superseded_pairs([usual, usual._replace(id="new", metadata=after.metadata)])
    return before, after, [(one.id, other.id) for one, other in pairs]


def test_a_superseded_record_hands_over_to_its_successor_in_the_same_folder(tmp_path):
    known = {"adr": 3, "adr_key": OLD, "status": "superseded", "superseded_by": NEW}
    for old, new in cases("analyze-a-superseded-record-hands"):
        before, after, pairs = read_pair(tmp_path, old, new)
        assert before.metadata == known
        assert after.metadata == {"adr": 12, "adr_key": NEW, "status": "accepted"}
        assert "Superseded by ADR 12: New." in before.content and pairs == [("old", "new")]
    for old, new in cases("analyze-what-does-not-replace"):
        before, _, pairs = read_pair(tmp_path, old, new)
        assert (before.metadata["status"], pairs) == ("accepted", [])
    assert read_pair(tmp_path / "pair", "Superseded by ADR 12", "Superseded by ADR 3")[2] == []
    texts = [(3, "X", "Superseded by ADR 4", "x"), (4, "Y", "Accepted", "y")]
    old, new = (RECORD.format(*text) for text in texts)
    plant(tmp_path, {"a/adr/0003-x.md": old, "a/adr/0004-y.md": new, "b/adr/0004-z.md": new})
    (told_of,) = analysed(tmp_path)[0]["a/adr/0003-x.md"]
    assert told_of.metadata["superseded_by"] == "a/adr/0004-y.md"


def test_odd_files_in_the_folder_of_records_are_passed_over(tmp_path):
    files = dict(cases("analyze-odd-records", {"FORMS": FORMS}))
    plant(tmp_path, {f"docs/adr/{name}": text for name, text in files.items()})
    found, skipped = analysed(tmp_path)
    assert list(found) == ["docs/adr/0004.md", "docs/adr/0005-date.md"]
    assert skipped == {"docs/adr/0002-binary.md": "binary file (NUL at byte 0)"}
    assert found["docs/adr/0005-date.md"][0].created_at is None


# Routes: of small projects as people write them, and what looks like a route and is none

FRAMEWORKS = {project.name: project for project in load_projects("routes.txt")}
FLASK = FRAMEWORKS["Flask"].files


def find_routes(root: Path) -> list[routes.Route]:
    return routes.find_routes(Tree(root, walk(root, root)))


@pytest.mark.parametrize("project", FRAMEWORKS.values(), ids=FRAMEWORKS)
def test_each_framework_gives_its_routes_with_method_path_handler_and_line(tmp_path, project):
    routes_of = find_routes(plant(tmp_path, project.files))
    assert {route.framework for route in routes_of} == {project.name}
    line = "{0} | {1.path} | {1.handler} | {1.file}:{1.line}".format
    shown = {line(one.method or "-", one) for one in routes_of}
    assert shown == set(project.expected)


@pytest.mark.parametrize("files", cases("analyze-routes-what-only-looks-like"))
def test_what_only_looks_like_a_route_is_none(tmp_path, files):
    assert find_routes(plant(tmp_path, files)) == []


def test_routes_are_told_in_one_sentence_stay_few_and_end_where_routers_stand_in_a_circle(tmp_path):
    plant(tmp_path, {"app.py": FLASK["app.py"]})
    (told_of,) = told(tmp_path, "api-route")
    assert told_of.content == (
        "The HTTP API in app.py (Flask) has GET / (home, line 7), GET, POST /login (login, line 10), "
        "GET /admin/users/<int:id> (user, line 13), GET /health (health_check, line 16) and mounts /orders (orders, line 18)."
    )
    assert (told_of.kind, told_of.lines) == ("architecture", (7, 18))
    handler = "\n@router.get('/thing{0}')\ndef thing{0}(): ...\n"
    head = "from fastapi import APIRouter\nrouter = APIRouter()\n"
    text = head + "".join(map(handler.format, range(40)))
    plant(tmp_path, {f"api/area{area}.py": text for area in range(20)})
    passages = told(tmp_path, "api-route")
    assert len(passages) == routes.MOST
    assert max(len(passage.content) for passage in passages) < 2_000
    made = [f'{name} = APIRouter(prefix="/{name}")' for name in "ab"]
    lines = ["from fastapi import APIRouter", *made, "a.include_router(b)", "b.include_router(a)"]
    text = "\n".join([*lines, '@a.get("/x")', "def x(): ..."])
    circle = plant(tmp_path / "circle", {"a.py": text})
    assert len(find_routes(circle)) == 1


def test_a_file_that_cannot_be_read_is_named_and_the_rest_goes_on(tmp_path):
    for at, (name, content, reason) in enumerate(cases("analyze-bad", {})):
        found, skipped = analysed(plant(tmp_path / str(at), MAKEFILE | {name: content}))
        assert list(skipped) == [name] and reason in skipped[name]
        assert list(found) == ["Makefile"]


@pytest.mark.parametrize(("name", "content"), cases("analyze-odd", {}))
def test_odd_and_hostile_files_do_no_harm(tmp_path, name, content):
    plant(tmp_path, {name: content, ".nvmrc": "20\n"})
    with processor_limit(5):
        found, _ = analysed(tmp_path)
    assert ".nvmrc" in found
    assert all(len(passage.content) < 4_000 for passages in found.values() for passage in passages)


@pytest.mark.parametrize("piece", cases("analyze-repeated"), ids=repr)
def test_no_text_takes_long(tmp_path, piece):
    long = (piece * (20_000 // len(piece))).encode()
    prefixed = dict(cases("analyze-prefixed"))
    plant(tmp_path, {name: prefix.encode() + long for name, prefix in prefixed.items()})
    with processor_limit(30):  # some .1 s; a pattern that is quadratic takes minutes
        analysed(tmp_path)


def table_patterns() -> list[str]:
    """The patterns of the tables that are tried on whole texts."""
    manifests, interfaces = load_table("manifests")["manifest"], load_table("routes")
    commands, signs = load_table("commands"), load_table("structure")["sign"]
    rows = [*manifests, *commands["runner"], *commands["ci"], *signs]
    rows += [*interfaces["language"].values(), *interfaces["by_place"]]
    wanted = ("dependency", "words", "block", "hint", "exports")
    facts = [place for row in manifests for places in row.values() for place in places]
    found = [row[key] for row in rows for key in wanted if key in row]
    return list(dict.fromkeys([*found, *(one[3:] for one in facts if one.startswith("re:"))]))


@pytest.mark.parametrize("pattern", table_patterns())
def test_a_pattern_of_the_tables_is_linear(pattern):
    compiled = re.compile(pattern)
    for head, unit in [*(("", unit) for unit in KILLERS), *killers_for(compiled)]:
        reason = grows_too_fast(lambda text: list(compiled.finditer(text)), long_text(head, unit))
        assert not reason, f"{pattern!r} on {head!r} + {unit!r} * n: {reason}"
