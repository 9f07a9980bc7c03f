"""What analysis says about projects: real trees in tmp_path, read by the same walk as in use. The history has a file of its own."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
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


def test_a_project_has_a_few_dozen_findings(shop):
    found, skipped = analysed(shop)
    assert skipped == {} and 20 <= sum(map(len, found.values())) <= 60
    assert "not-to-be-remembered" not in repr(found)  # values of environment variables


def is_well_formed(passage, path, lines):
    return (
        passage.kind in KINDS
        and passage.tags[0] == "analysis"
        and passage.section != ""
        and 1 <= passage.lines[0] <= passage.lines[1] <= lines
        and 0 < passage.confidence <= 1
        and 0 <= passage.importance <= 10
        and 20 <= len(passage.content) <= 2_000
        and path in [entity.name for entity in passage.entities]
    )


def test_findings_name_their_file_and_their_lines(shop):
    found, _ = analysed(shop)
    lengths = {path: (shop / path).read_text().count("\n") + 1 for path in found}
    assert [
        passage
        for path, passages in found.items()
        for passage in passages
        if not is_well_formed(passage, path, lengths[path])
    ] == []


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        pytest.param(
            "readme",
            "What this project is: Harbour. Harbour takes orders for ship supplies: chandlers offer goods per port, crews order them before they arrive.",
            id="readme",
        ),
        pytest.param("components", "| `backend/` | the API, in Python |", id="components"),
        pytest.param("caveat", "- The port search does not know Russian names.", id="caveat"),
        pytest.param(
            "architecture",
            "Why the outbox:\nAn order and its event are written in one transaction.",
            id="architecture",
        ),
        pytest.param(
            "command",
            "Tests run with `make test` (Makefile:10), `make test-backend` (cd backend && pytest -q, Makefile:12)",
            id="command-tests-run-make-test-makefile-10-make",
        ),
        pytest.param(
            "command",
            "`make lint` (ruff check backend, Makefile:18)",
            id="command-make-lint-ruff-check-backend-makefile-18",
        ),
        pytest.param(
            "command",
            "To set up for development: `make setup` (install everything, Makefile:3).",
            id="command-set-up-development-make-setup-install",
        ),
        pytest.param(
            "command",
            "`pnpm build` in web/ (tsc && vite build, web/package.json:8)",
            id="command-pnpm-build-web-tsc-vite-build",
        ),
        pytest.param(
            "ci",
            "CI is GitHub Actions: .github/workflows/ has the jobs test, lint and image.",
            id="ci",
        ),
        pytest.param(
            "dependency",
            "Python project harbour (backend/pyproject.toml): The API of Harbour. It needs Python >=3.11. Main dependencies: fastapi >=0.110,",
            id="dependency-python-project-harbour",
        ),
        pytest.param("dependency", "(PostgreSQL)", id="dependency-postgresql"),
        pytest.param(
            "services",
            "docker-compose.yml runs the services api: build: ./backend, worker: build: ./backend,",
            id="services",
        ),
        pytest.param(
            "container", 'FROM python:3.12-slim, EXPOSE 8000 and CMD ["uvicorn", ', id="container"
        ),
        pytest.param("api-route", "POST /orders (place_order, line 10)", id="api-route"),
        pytest.param(
            "pattern",
            "The database schema changes by migrations in backend/alembic/versions/ (2 so far, the newest is 0002_outbox.py).",
            id="pattern-database-schema-changes-migrations",
        ),
        pytest.param(
            "pattern",
            "Tests live in backend/tests/ (3 files, such as test_ports.py).",
            id="pattern-tests-live-backend/tests-3-files-such",
        ),
        pytest.param(
            "deploy", "Terraform in infra manages aws_s3_bucket and aws_db_instance.", id="deploy"
        ),
        pytest.param(
            "runtime", "Python is pinned to version 3.12 in .python-version.", id="runtime"
        ),
    ],
)
def test_a_project_has_the_expected_finding(shop, tag, expected):
    assert any(expected in content for content in contents(shop, tag)), contents(shop, tag)


def hashes(root: Path) -> dict[str, str]:
    found = documents(root, walk(root, root))
    return {one.uri: one.hash for one in found if isinstance(one, Document)}


MAKEFILE = {"Makefile": "test:\n\tpytest\n"}


def test_a_change_concerns_only_its_own_file(tmp_path):
    plant(tmp_path, SHOP)
    before = hashes(tmp_path)
    assert hashes(tmp_path) == before
    changed = SHOP["README.md"].replace("Russian", "Finnish")
    plant(tmp_path, {"README.md": changed, "web/notes.txt": "nothing of interest"})
    after = hashes(tmp_path)
    assert [uri for uri in after if after[uri] != before.get(uri)] == ["analysis:README.md"]


def test_a_link_out_of_the_project_is_not_followed(tmp_path):
    root = plant(tmp_path / "api", MAKEFILE | {".python-version": "3.12\n"})
    assert list(analysed(root)[0]) == [".python-version", "Makefile"]
    plant(tmp_path, {"secret.yml": "on: push\njobs: {leak: {steps: [{run: pytest}]}}\n"})
    plant(root, {".github/workflows/a.yml": ""})
    (root / ".github/workflows/ci.yml").symlink_to(tmp_path / "secret.yml")
    assert "leak" not in repr(analysed(root))


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({}, id="empty"),
        pytest.param({"a.txt": "hello"}, id="a.txt"),
        pytest.param({"README.md": ""}, id="readme.md-empty"),
        pytest.param({"README.md": "# Title\n"}, id="readme.md-title"),
        pytest.param({"package.json": "{}"}, id="package.json"),
        pytest.param({"src/a.py": ""}, id="src/a.py"),
        pytest.param(
            {
                "README.md": "# X\n\n```sh\n# Known issues\nWARNING: never run this twice in a row, please.\n```\n\n<!--\n## Known issues\nhidden words that are not for readers at all\n-->\n"
            },
            id="readme.md-X-sh-known-issues-warning-never-run-twice",
        ),
        pytest.param(
            {
                "tests/fixtures/package.json": '{"dependencies": {"express": "4"}}',
                "examples/app/pyproject.toml": '[project]\nname = "x"\ndependencies = ["flask"]\n',
                "src/api_pb2.py": '"""Generated protocol buffer code that nobody reads."""\n',
                "testdata/Makefile": "test:\n\tfalse\n",
            },
            id="tests/fixtures/package.json",
        ),
    ],
)
def test_a_project_without_content_has_no_findings(tmp_path, files):
    assert analysed(plant(tmp_path, files)) == ({}, {})


HUGE = [
    (
        "packages/p7/package.json",
        '{"name": "p7", "description": "The package for area number 7", "dependencies": {"d7": "1", "react": "18"}, "scripts": {"test": "jest", "build": "tsc"}}',
    ),
    (
        "packages/p7/src/index.ts",
        "/** Does the work of area 7 and nothing else. */\n\nexport function run7() {}\n",
    ),
    (
        "packages/p7/README.md",
        "# p7\n\nThis package does the work of area 7.\n\n## Known issues\n\n- It fails on every day that ends with y.\n",
    ),
    (
        "docs/page7.md",
        "# Page 7\n\n## Known issues\n\n- This does not work on the moon, as of today.\n\n> **Warning**: never touch this file on a Friday.\n",
    ),
    (
        "docs/adr/0007-x.md",
        "# 7. Use X7\n\n## Status\n\nAccepted\n\n## Decision\n\nWe use X7 from now on.\n",
    ),
    (
        "src/m7.py",
        '"""Handles the case 7 of the many there are."""\n\n# WARNING: this must not be called twice, or the world ends at once.\n',
    ),
]


def test_a_huge_project_stays_few(tmp_path):
    for number in map(str, range(120)):
        own = [(path.replace("7", number), text) for path, text in HUGE]
        plant(tmp_path, {path: text.replace("7", number) for path, text in own})
    found, _ = analysed(tmp_path)
    every = [passage for passages in found.values() for passage in passages]
    records = [passage for passage in every if passage.tags[1] == "adr"]
    assert len(records) == pages.MOST_RECORDS and len(every) - len(records) <= 90
    assert max(len(passage.content) for passage in every) <= 3_000


HEADING_SAYS = [
    ("Known issues", "gotcha"),
    ("Limitations", "gotcha"),
    ("⚠️ Gotchas", "gotcha"),
    ("Troubleshooting", "gotcha"),
    ("Rules that are easy to break", "gotcha"),
    ("Architecture", "architecture"),
    ("How it works", "architecture"),
    ("3. Design decisions", "architecture"),
    ("Data flow", "architecture"),
    ("Project structure", "component"),
    ("Packages", "component"),
    ("Glossary", "domain"),
    ("Key concepts", "domain"),
    ("Code style", "pattern"),
    ("Commit messages", "pattern"),
    ("Deployment", "pattern"),
    ("Installation", "pattern"),
    ("Configuration", "fact"),
]

OTHER_SECTIONS_PASSED = [
    "License",
    "Contributors",
    "Table of Contents",
    "Changelog",
    "Acknowledgements",
    "Sponsors",
    "Some other thing",
]


def read_section(folder, heading):
    section = f"## {heading}\n\nHere is a sentence with quite enough words to be worth keeping.\n"
    found, _ = analysed(plant(folder, {"README.md": f"# X\n\n{section}"}))
    return [one for one in found.get("README.md", ()) if one.tags[1] != "readme"]


@pytest.mark.parametrize(("heading", "kind"), HEADING_SAYS)
def test_a_heading_gives_its_section_a_kind(tmp_path, heading, kind):
    (found,) = read_section(tmp_path, heading)
    assert (found.kind, found.lines) == (kind, (3, 5))
    assert "worth keeping" in found.content


@pytest.mark.parametrize("heading", OTHER_SECTIONS_PASSED)
def test_a_section_under_another_heading_is_passed_over(tmp_path, heading):
    assert read_section(tmp_path, heading) == []


# Projects in a table: what is told of each


@pytest.mark.parametrize("project", load_projects("projects.txt"), ids=lambda one: one.name)
def test_a_feature_of_a_project_is_one_finding(tmp_path, project):
    every = told(plant(tmp_path, project.files), project.name)
    found = [one for one in every if all(line in one.content for line in project.expected)]
    assert len(found) == 1, every
    # What only a layout gives away is never certain.
    assert project.name != "pattern" or 0.6 <= found[0].confidence <= 0.8


@pytest.mark.parametrize(
    ("tag", "files", "expected"),
    [
        pytest.param("pattern", {"src/services/a.ts": ""}, [], id="pattern-src/services/a.ts"),
        pytest.param(
            "pattern",
            {"src/models/a.py": "", "src/views/b.py": ""},
            [],
            id="pattern-src/models/a.py",
        ),
        pytest.param(
            "pattern", {"requirements.txt": "celery\n"}, [], id="pattern-requirements.txt"
        ),
        pytest.param("pattern", {"tasks/a.py": ""}, [], id="pattern-tasks/a.py"),
        pytest.param(
            "pattern",
            {"package.json": '{"name": "x"}', "packages/a/package.json": '{"name": "a"}'},
            [],
            id="pattern-package.json",
        ),
        pytest.param("pattern", {"test_a.py": ""}, [], id="pattern-test_a.py"),
        pytest.param("pattern", {"template.yaml": "just: yaml\n"}, [], id="pattern-template.yaml"),
        pytest.param(
            "readme",
            {
                "README.rst": "Title\n=====\n\nWhat it is, in quite a few words.\n\nUse\n---\n\n.. warning::\n\n   Never run this twice in a row, please.\n\nMore.\n"
            },
            ["What this project is: Title. What it is, in quite a few words."],
            id="readme",
        ),
        pytest.param(
            "caveat",
            {
                "README.md": "---\nlimitations:\n---\n\nHere is a sentence with quite enough words to be worth keeping.\n"
            },
            [],
            id="caveat-readme.md-limitations-here-sentence-quite-enough-words",
        ),
        pytest.param(
            "caveat",
            {
                "README.md": "Title\n===\n\nlimitations:\n---\n\nHere is a sentence with quite enough words to be worth keeping.\n"
            },
            ["limitations:\nHere is a sentence with quite enough words to be worth keeping."],
            id="caveat-readme.md-title-limitations-here-sentence-quite-enough",
        ),
        pytest.param(
            "components",
            {
                "ARCHITECTURE.md": "# A\n\n## Map\n\n| where | what | must not |\n|---|---|---|\n| `store/` | keeps rows | know a model |\n| `embed/` | makes vectors | know a store |\n"
            },
            [
                "Map:\n| where | what | must not |\n|---|---|---|\n| `store/` | keeps rows | know a model |\n| `embed/` | makes vectors | know a store |"
            ],
            id="components",
        ),
        pytest.param(
            "container",
            {
                "Dockerfile": "# syntax=x\nARG V=1\nFROM --platform=$BUILDPLATFORM golang:1.22 AS build\nRUN go \\\n  build\nfrom scratch\nEXPOSE 80 443\nENTRYPOINT /app --port 80\n"
            },
            [
                "The container image of Dockerfile: FROM --platform=$BUILDPLATFORM golang:1.22 AS build, from scratch, EXPOSE 80 443 and ENTRYPOINT /app --port 80."
            ],
            id="container",
        ),
        pytest.param(
            "deploy",
            {
                "k8s/api.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: api}\nspec:\n  replicas: 3\n  template: {spec: {containers: [{image: 'shop/api:1'}]}}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: api}\n",
                "charts/shop/Chart.yaml": "name: shop\ndescription: The shop.\ndependencies:\n  - name: redis\n",
                "charts/shop/templates/x.yaml": "apiVersion: v1\nkind: {{ .Values.kind }}\n",
            },
            [
                "A Helm chart in charts/shop/ deploys shop.",
                "Kubernetes objects in k8s/: Deployment and Service.",
            ],
            id="deploy",
        ),
        pytest.param(
            "convention",
            {
                "docs/agents.md": "# X\n\n## Connecting\n\nOpen the page, choose an agent of yours and press the button to connect it.\n",
                "AGENTS.md": "# X\n\n## Connecting\n\nOpen the page, choose an agent of yours and press the button to connect it.\n",
            },
            [
                "Connecting:\nOpen the page, choose an agent of yours and press the button to connect it."
            ],
            id="convention",
        ),
        pytest.param(
            "ci",
            {
                ".gitlab-ci.yml": "stages: [test]\n.base: &base\n  script: [echo]\nunit:\n  <<: *base\n  script:\n    - pytest -q\n"
            },
            ["CI is GitLab CI: .gitlab-ci.yml has the jobs unit."],
            id="ci-gitlab-ci.yml",
        ),
        pytest.param(
            "ci",
            {
                "Jenkinsfile": "pipeline { stages { stage('Test') { steps { sh 'mvn -B test' } } } }\n"
            },
            ["CI is Jenkins: Jenkinsfile has the stages Test."],
            id="ci-jenkinsfile",
        ),
        pytest.param(
            "dependency",
            {"requirements.txt": "fastapi\nasyncpg\ncelery\n"},
            [
                "Python project (requirements.txt). Main dependencies: fastapi, asyncpg (PostgreSQL) and celery."
            ],
            id="dependency-requirements.txt-fastapi-asyncpg-celery",
        ),
        pytest.param(
            "dependency",
            {"go.mod": "module x\n\nrequire github.com/go-chi/chi/v5 v5.0.1\n"},
            ["Go project x (go.mod). Main dependencies: github.com/go-chi/chi/v5 v5.0.1."],
            id="dependency-go.mod",
        ),
        pytest.param(
            "dependency",
            {"Cargo.toml": '[dependencies]\ntokio-postgres = "0.7"\nclap = "4"\n'},
            [
                "Rust project (Cargo.toml). Main dependencies: tokio-postgres 0.7 (PostgreSQL) and clap 4."
            ],
            id="dependency-cargo.toml",
        ),
        pytest.param(
            "dependency",
            {"requirements.txt": "left-pad\nsix\n"},
            ["Python project (requirements.txt). Main dependencies: left-pad and six."],
            id="dependency-requirements.txt-left-pad-six",
        ),
    ],
)
def test_a_project_has_exactly_these_findings(tmp_path, tag, files, expected):
    plant(tmp_path, files)
    assert sorted(contents(tmp_path, tag)) == expected


FORMS = [
    "# 7. Use PostgreSQL for the ledger\n\nDate: 2024-03-02\n\n## Status\n\n{}\n\n## Context\n\nThe ledger needs serializable transactions.\n\n## Decision\n\nWe use PostgreSQL.\n\n## Consequences\n\nOne more server.\n",
    '# Use PostgreSQL for the ledger\n\n* Status: {}\n* Deciders: Ada, Bob\n* Date: 2024-03-02\n\n## Context and Problem Statement\n\nThe ledger needs serializable transactions.\n\n## Decision Outcome\n\nChosen option: "PostgreSQL", because it has them.\n\n### Positive Consequences\n\n* less code\n',
    '---\nstatus: "{}"\ndate: 2024-03-02\ndecision-makers: Ada\n---\n# Use PostgreSQL for the ledger\n\n## Context and Problem Statement\n\nThe ledger needs serializable transactions.\n\n## Decision Outcome\n\nChosen option: "PostgreSQL", because it has them.\n',
    "# ADR-007: Use PostgreSQL for the ledger\n\n**Status:** {}\n**Date:** 2024-03-02\n\n## Decision\n\nWe use PostgreSQL for all of the ledger.\n",
    "# ADR 7 - Use PostgreSQL for the ledger\n\n| Status | {} |\n|---|---|\n| Date | 2024-03-02 |\n\n## Decision\n\nWe use PostgreSQL for all of the ledger.\n",
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("status", "name", "weight"),
    [
        pytest.param("Accepted", "accepted", (8, 1.0), id="accepted"),
        pytest.param("proposed", "proposed", (6, 0.6), id="proposed"),
        pytest.param("Rejected", "rejected", (4, 0.9), id="rejected"),
        pytest.param("Deprecated", "deprecated", (4, 0.9), id="deprecated"),
        pytest.param("superseded by ADR-0012", "superseded", (4, 0.9), id="superseded-ADR-0012"),
    ],
)
def test_every_form_of_decision_record_is_read(tmp_path, form, status, name, weight):
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


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(
            "Superseded by [12. New](0012-new-way.md)",
            "Accepted",
            id="superseded-12-new-0012-new-way.md",
        ),
        pytest.param(
            "Accepted\n\nSuperceded by [12. New](0012-new-way.md)",
            "Accepted\n\nSupercedes [3. Old](0003-old-way.md)",
            id="accepted-superceded-12-new-0012-new",
        ),
        pytest.param("Superseded by ADR-0012", "Accepted", id="superseded-ADR-0012"),
        pytest.param("Superseded by ADR 12.", "Accepted", id="superseded-ADR-12"),
        pytest.param("Superseded by #12", "Accepted", id="superseded-12"),
        pytest.param("superseded by [[0012-new-way]]", "Accepted", id="superseded-0012-new-way"),
        pytest.param(
            "Superseded by:\n- [ADR-12](./0012-new-way.md)",
            "Accepted",
            id="superseded-ADR-12-0012-new-way.md",
        ),
        pytest.param("Replaced by 0012-new-way.md", "Accepted", id="replaced-0012-new-way.md"),
        pytest.param(
            "Accepted",
            "Accepted\n\nSupersedes [ADR-3](0003-old-way.md)",
            id="accepted-accepted-supersedes-ADR-3-0003-old",
        ),
        pytest.param(
            "Accepted", "Accepted, supersedes ADR 3", id="accepted-accepted-supersedes-ADR-3"
        ),
        pytest.param(
            "Accepted, amended by ADR 12, superseded by 12",
            "Accepted",
            id="accepted-amended-ADR-12-superseded-12",
        ),
    ],
)
def test_a_superseded_record_names_its_successor(tmp_path, old, new):
    known = {"adr": 3, "adr_key": OLD, "status": "superseded", "superseded_by": NEW}
    before, after, pairs = read_pair(tmp_path, old, new)
    assert before.metadata == known
    assert after.metadata == {"adr": 12, "adr_key": NEW, "status": "accepted"}
    assert "Superseded by ADR 12: New." in before.content and pairs == [("old", "new")]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("Accepted", "Proposed\n\nSupersedes ADR 3", id="proposed-supersedes-ADR-3"),
        pytest.param(
            "Accepted",
            "Rejected, would have superseded nothing",
            id="rejected-would-superseded-nothing",
        ),
        pytest.param(
            "Accepted",
            "Accepted\n\n## Context\n\nADR 3 was superseded by something else in another project.",
            id="accepted-context-ADR-3-superseded",
        ),
        pytest.param("Accepted", "Accepted\n\nAmends ADR 3", id="accepted-amends-ADR-3"),
        pytest.param("Accepted", "Accepted\n\nSupersedes ADR 99", id="accepted-supersedes-ADR-99"),
    ],
)
def test_a_record_that_replaces_nothing_stays_accepted(tmp_path, old, new):
    before, _, pairs = read_pair(tmp_path, old, new)
    assert (before.metadata["status"], pairs) == ("accepted", [])


def test_a_circle_of_records_replaces_nothing(tmp_path):
    assert read_pair(tmp_path / "pair", "Superseded by ADR 12", "Superseded by ADR 3")[2] == []


def test_a_successor_is_found_in_the_same_folder(tmp_path):
    texts = [(3, "X", "Superseded by ADR 4", "x"), (4, "Y", "Accepted", "y")]
    old, new = (RECORD.format(*text) for text in texts)
    plant(tmp_path, {"a/adr/0003-x.md": old, "a/adr/0004-y.md": new, "b/adr/0004-z.md": new})
    (told_of,) = analysed(tmp_path)[0]["a/adr/0003-x.md"]
    assert told_of.metadata["superseded_by"] == "a/adr/0004-y.md"


ODD_RECORDS = {
    "README.md": "# Decisions\n\nWe keep decisions here, all of them.\n",
    "template.md": FORMS[0].format("Proposed"),
    "0001-empty.md": "",
    "0002-binary.md": b"\x00\x01\x02" * 100,
    "notes.md": "# Notes\n\nNothing decided in here, only some notes.\n",
    "0003-only-title.md": "# 3. Only a title\n",
    "0004.md": "---\nstatus: [unclosed\n---\n# 4. Broken front matter\n\n## Decision\n\nWe do it anyway, all of us.\n",
    "0005-date.md": "# 5. Impossible date\n\nDate: 2024-13-45\n\n## Decision\n\nWe do it anyway, all of us.\n",
}


def test_odd_files_in_the_folder_of_records_are_passed_over(tmp_path):
    files = ODD_RECORDS
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
def test_each_framework_gives_its_routes(tmp_path, project):
    routes_of = find_routes(plant(tmp_path, project.files))
    assert {route.framework for route in routes_of} == {project.name}
    line = "{0} | {1.path} | {1.handler} | {1.file}:{1.line}".format
    shown = {line(one.method or "-", one) for one in routes_of}
    assert shown == set(project.expected)


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(
            {
                "client.py": 'import requests\nrequests.get("/users", params)\n\n@mock.patch("app.users")\ndef test(): ...\n'
            },
            id="client.py",
        ),
        pytest.param(
            {
                "cache.py": 'from flask import Flask\nvalue = cache.get("/key", default)\n\n@patch("shop.views.order")\ndef f(): ...\n'
            },
            id="cache.py",
        ),
        pytest.param(
            {
                "tests/test_app.py": 'from flask import Flask\napp = Flask("x")\n\n@app.route("/x")\ndef x(): ...\n'
            },
            id="tests/test_app.py",
        ),
        pytest.param(
            {"examples/app.js": "const app = express();\napp.get('/x', handler);\n"},
            id="examples/app.js",
        ),
        pytest.param(
            {"src/api.test.ts": "const app = express();\napp.get('/x', handler);\n"},
            id="src/api.test.ts",
        ),
        pytest.param(
            {
                "web/api.ts": "import axios from 'axios';\nexport const list = () => client.get('/users', { params });\n"
            },
            id="web/api.ts",
        ),
        pytest.param(
            {"comment.go": 'package a\n// import "net/http"\n/* mux.HandleFunc("/x", y) */\n'},
            id="comment.go",
        ),
        pytest.param(
            {"broken.py": 'from fastapi import APIRouter\nrouter = APIRouter(\n@router.get("/x"\n'},
            id="broken.py",
        ),
    ],
)
def test_what_only_looks_like_a_route_is_none(tmp_path, files):
    assert find_routes(plant(tmp_path, files)) == []


def test_routes_are_listed_in_one_sentence(tmp_path):
    plant(tmp_path, {"app.py": FLASK["app.py"]})
    (told_of,) = told(tmp_path, "api-route")
    assert told_of.content == (
        "The HTTP API in app.py (Flask) has GET / (home, line 7), GET, POST /login (login, line 10), "
        "GET /admin/users/<int:id> (user, line 13), GET /health (health_check, line 16) and mounts /orders (orders, line 18)."
    )
    assert (told_of.kind, told_of.lines) == ("architecture", (7, 18))


def test_routes_of_a_large_api_are_limited(tmp_path):
    handler = "\n@router.get('/thing{0}')\ndef thing{0}(): ...\n"
    head = "from fastapi import APIRouter\nrouter = APIRouter()\n"
    text = head + "".join(map(handler.format, range(40)))
    plant(tmp_path, {f"api/area{area}.py": text for area in range(20)})
    passages = told(tmp_path, "api-route")
    assert len(passages) == routes.MOST_ROUTES
    assert max(len(passage.content) for passage in passages) < 2_000


def test_a_circle_of_routers_ends(tmp_path):
    made = [f'{name} = APIRouter(prefix="/{name}")' for name in "ab"]
    lines = ["from fastapi import APIRouter", *made, "a.include_router(b)", "b.include_router(a)"]
    text = "\n".join([*lines, '@a.get("/x")', "def x(): ..."])
    circle = plant(tmp_path / "circle", {"a.py": text})
    assert len(find_routes(circle)) == 1


BAD = [
    ("pyproject.toml", "[project\nname = ", "cannot be parsed"),
    ("pyproject.toml", "x = " + "[" * 50000, "cannot be parsed"),
    ("pyproject.toml", "a" + ".a" * 50000 + " = 1", "more than 60 parts"),
    ("package.json", '{"name": ', "cannot be parsed"),
    ("package.json", "[" * 100000, "cannot be parsed"),
    ("package.json", '{"name": "' + "x" * 2000000 + '"}', "MB, larger than the limit of 1 MB"),
    ("package.json", '{"version": ' + "9" * 5000 + "}", "cannot be parsed"),
    ("README.md", b"\x00\x01\x02\x03" * 50, "binary file"),
]


@pytest.mark.parametrize(
    ("name", "content", "reason"), [pytest.param(*row, id=f"{row[0]}: {row[2]}") for row in BAD]
)
def test_an_unreadable_file_is_skipped_by_name(tmp_path, name, content, reason):
    found, skipped = analysed(plant(tmp_path, MAKEFILE | {name: content}))
    assert list(skipped) == [name] and reason in skipped[name]
    assert list(found) == ["Makefile"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("Makefile", ":\n\t:\n::\ntest::\n" + "\t" * 1000, id="makefile"),
        pytest.param(
            "README.md",
            "[" * 5_000 + "](" * 5_000 + "\n" + "<" * 5_000 + "\n" + "*" * 5_000,
            id="readme.md-left-square-bracket",
        ),
        pytest.param(
            "README.md",
            "\u2028# a\u2028\x0b\x0c# Known issues\r\r\n\x85" * 500,
            id="readme.md-known-issues",
        ),
        pytest.param(
            "docker-compose.yml",
            "services: &s\n  a: *s\n  b: {build: *s, ports: *s, depends_on: *s}\n",
            id="docker-compose.yml-services-s-s-b-build-s-ports-s-depends_on-s",
        ),
        pytest.param(
            "azure-pipelines.yml", "stages: &a [*a, *a, *a]\nsteps: *a\n", id="azure-pipelines.yml"
        ),
        pytest.param(
            "package.json",
            '{"name": 7, "scripts": [1], "dependencies": "x", "workspaces": {"packages": 3}, "bin": 5, "engines": []}',
            id="package.json-name-7-scripts-1-dependencies-x-workspaces",
        ),
        pytest.param(
            "package.json",
            '{"scripts": {"test": null, "build": {"a": 1}, "": "x"}, "dependencies": {"react": 18, "": "1"}}',
            id="package.json-scripts-test-null-build-1-x-dependencies",
        ),
        pytest.param(
            "pyproject.toml",
            'project = "x"\n[tool]\npoetry = 3\nhatch = {envs = {default = {scripts = 3}}}\n',
            id="pyproject.toml-project-x-tool-poetry-3-hatch-envs-default",
        ),
        pytest.param(
            "pyproject.toml",
            '[project]\nname = 3\ndependencies = "flask"\noptional-dependencies = [1]\nscripts = {a = 1}\n',
            id="pyproject.toml-project-name-3-dependencies-flask-optional",
        ),
        pytest.param(
            "Cargo.toml",
            'package = 3\nworkspace = {members = "x"}\ndependencies = [1]\n',
            id="cargo.toml",
        ),
        pytest.param(
            "docker-compose.yml", "services: [a, b]\n", id="docker-compose.yml-services-b"
        ),
        pytest.param(
            "docker-compose.yml",
            "services:\n  a:\n  b: x\n  1: {image: [x], ports: {a: 1}, depends_on: 3}\n",
            id="docker-compose.yml-services-b-x-1-image-x-ports-1-depends_on-3",
        ),
        pytest.param(
            ".github/workflows/ci.yml",
            "on: {push: x, schedule: 3}\njobs: {a: [], b: {steps: {x: y}}, c: {strategy: {matrix: [1]}, steps: [a, {run: [x]}]}}\n",
            id="github/workflows/ci.yml",
        ),
        pytest.param(
            "Taskfile.yml", "tasks: {test: [], build: {cmds: {a: b}}, lint: x}\n", id="taskfile.yml"
        ),
        pytest.param(
            "k8s/a.yaml",
            "apiVersion: v1\nkind: List\nmetadata: x\n---\n- apiVersion\n- kind:\n",
            id="k8s/a.yaml",
        ),
        pytest.param(
            "Chart.yaml", "name: x\ndescription: [a]\ndependencies: {a: 1}\n", id="chart.yaml"
        ),
        pytest.param("go.mod", "module\nrequire (\n", id="go.mod"),
        pytest.param("Gemfile", "gem\ngroup\nend\nend\n", id="gemfile"),
        pytest.param(
            "src/main/java/A.java",
            '@RestController @RequestMapping( @GetMapping( @PostMapping("/x" class',
            id="src/main/java/a.java",
        ),
        pytest.param("Dockerfile", "FROM\nFROM x AS\nCMD [\nEXPOSE\nRUN a \\\n", id="dockerfile"),
        pytest.param(
            "docs/adr/0001-\u202e.md",
            "# 1. \u202e\n\n## Status\n\nAccepted by \ud7ff\n",
            id="docs/adr/0001-md",
        ),
        pytest.param(
            "src/__init__.py",
            "__all__ = [x for x in y] + z\n__all__ += w\nfrom . import *\nfrom .... import a\n",
            id="src-init-py",
        ),
        pytest.param(
            "p/__init__.py", "from .p import a\nfrom . import a\n__all__ = ['a']\n", id="p-init-py"
        ),
        pytest.param(
            "package.json",
            '{"name": "x", "main": "index.js"}',
            id="package.json-name-x-main-index.js",
        ),
    ],
)
def test_a_hostile_file_does_no_harm(tmp_path, name, content):
    plant(tmp_path, {name: content, ".nvmrc": "20\n"})
    with processor_limit(5):
        found, _ = analysed(tmp_path)
    assert ".nvmrc" in found
    assert all(len(passage.content) < 4_000 for passages in found.values() for passage in passages)


PREFIXED = {
    "README.md": "",
    "docs/adr/0001-x.md": "",
    "Makefile": "",
    "requirements.txt": "",
    "go.mod": "",
    "build.gradle": "",
    "Gemfile": "",
    "mix.exs": "",
    "Jenkinsfile": "",
    "main.go": 'import "net/http"\nr.GET(\n',
    "src/x.js": "const app = express();\n@Controller app.get(\n",
    "src/A.java": "Controller Mapping\n",
    "src/lib.rs": "",
    "src/a.py": "from fastapi import APIRouter\nr.get(\n",
    "Cargo.toml": "",
    "package.json": "",
    "src/index.ts": "export ",
    "docker-compose.yml": "",
    "Taskfile.yml": "",
    ".gitlab-ci.yml": "",
    "azure-pipelines.yml": "",
}


@pytest.mark.parametrize(
    "piece",
    [
        pytest.param("[", id="left-square-bracket"),
        pytest.param("\n", id="blank"),
        pytest.param("# a\n", id="a"),
        pytest.param("<!--", id="less-than-sign"),
        pytest.param("/* ", id="solidus"),
        pytest.param("app.get('/x', ", id="app.get-x"),
        pytest.param('r.Route("/x", func(r chi.Router) {\n', id="r.route-x-func-r-chi.router"),
        pytest.param("[a](", id="a-2"),
        pytest.param("| a |\n", id="a-3"),
    ],
)
def test_no_text_takes_long(tmp_path, piece):
    long = (piece * (20_000 // len(piece))).encode()
    prefixed = PREFIXED
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
    assert [
        (head, unit, reason)
        for head, unit in [*(("", unit) for unit in KILLERS), *killers_for(compiled)]
        for reason in [
            grows_too_fast(lambda text: list(compiled.finditer(text)), long_text(head, unit))
        ]
        if reason
    ] == []
