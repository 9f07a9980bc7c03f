"""`bethink init`: one step, safe to repeat, nothing half-written, nothing of the user's touched."""

import json
import os
import re
import tomllib
from pathlib import Path

import pytest
from trees import git, plant

from bethink import config
from bethink import project as projects
from bethink.api import Bethink
from bethink.features import knowledge

FILES_ONLY = ("--skip-analyze", "--skip-index", "--skip-map")
KNOWLEDGE = ".claude/knowledge"
PARTS = ("analyze", "index", "map")
FOLDERS = ("architecture", "components", "domain", "patterns")


FILES = {
    "README.md": "# Shop\n\nA shop that sells tea by subscription.\n\n## Testing\n\nRun `make test`.\n",
    "Makefile": "test:\n\tpytest\n",
    "src/cart.py": '"""The cart."""\n\n\ndef total(items):\n    """Sums all prices."""\n    return sum(items)\n',
    ".claude/knowledge/domain/tea.md": "# Tea\n\n## Oolong\n\nOolong is sold in tins of 100 grams, never loose.\n",
}


@pytest.fixture
def repository(cli):
    """A small project in git: a README, code, a document of knowledge."""
    git(cli.project, "init")
    plant(cli.project, FILES)
    return cli


def tree(folder: Path) -> dict[Path, tuple[int, bytes]]:
    """Every file below a folder with its mode and what it holds; databases change when they are opened."""
    return {
        path: (path.stat().st_mode, b"" if path.is_dir() else path.read_bytes())
        for path in folder.rglob("*")
        if ".git" not in path.parts and "memory.db" not in path.name
    }


def statuses(report: dict) -> dict[str, str]:
    root = f"{report['project']['root']}/"
    files = {file["path"]: file["status"] for file in report["files"]}
    return {path.removeprefix(root): how for path, how in files.items() if path.startswith(root)}


def parts(report: dict) -> dict[str, str]:
    return {part["part"]: part["status"] for part in report["parts"]}


def test_init_makes_a_project_searchable(repository):
    report = repository.json("init")
    assert set(statuses(report).values()) == {"made"}
    assert parts(report) == dict.fromkeys(PARTS, "done")
    assert report["memories"] > 3
    assert report["stopped"] is report["local"] is False
    assert "100 grams" in repository.json("search", "how is oolong sold?")[0]["content"]
    found = repository.json("search", "total of the cart") + repository.json("search", "run tests")
    assert "src/cart.py" in [one["path"] for one in found]
    assert any("make test" in one["content"] for one in found)


def test_a_second_init_changes_nothing(repository):
    report = repository.json("init")
    before = tree(repository.project)
    second = repository.json("init")
    assert tree(repository.project) == before
    assert set(statuses(second).values()) == {"kept"}
    assert second["memories"] == report["memories"]
    assert [
        part
        for part in second["parts"]
        if not part["added"] == part["changed"] == part["vanished"] == []
        or part["memories"]["added"] != 0
    ] == []


def test_init_suggests_a_search_that_finds_something(repository):
    repository.json("init")
    told = repository.ok("init")
    assert re.search(r"\nindex +done: (\d+) sources, \1 unchanged\n", told)
    (search,) = [line for line in told.splitlines() if "bethink search " in line]
    assert repository.json("search", search.split('"')[1]), "the next step finds something"


@pytest.mark.parametrize("part", PARTS)
def test_each_part_of_init_can_be_skipped(repository, part):
    found = repository.json("search", "total of the cart") + repository.json("search", "run tests")
    found = parts(repository.json("init", f"--skip-{part}"))
    assert found == {**dict.fromkeys(PARTS, "done"), part: "skipped"}


def test_the_map_is_skipped_without_tree_sitter(repository, monkeypatch):
    monkeypatch.setattr(knowledge, "find_spec", lambda name: None)
    report = repository.json("init")
    assert parts(report)["map"] == "skipped"
    assert report["parts"][-1]["hint"] == "pip install 'bethink[code]'"
    assert "tree-sitter, which is not installed." in repository.ok("init")


def test_templates_hold_no_memories(cli):
    assert cli.json("init")["memories"] == 0
    assert "0 memories can be searched" in cli.ok("init")


def test_a_filled_template_is_indexed(cli):
    assert cli.json("init")["memories"] == 0
    path = cli.project / KNOWLEDGE / "gotchas.md"
    lines = [line for line in path.read_text().splitlines() if not line.startswith("index: false")]
    path.write_text("\n".join(lines).replace("A short name of the trap", "Cron runs in UTC"))
    assert cli.json("init")["memories"] == 1
    assert "Cron runs in UTC" in cli.json("search", "cron")[0]["content"]


def test_init_keeps_existing_files(cli):
    assert cli.json("init")["memories"] == 0
    (cli.project / ".bethink/config.toml").write_text("limit = 3\n")
    before = tree(cli.project)
    assert set(statuses(cli.json("init", *FILES_ONLY, "--force")).values()) == {"kept"}
    assert tree(cli.project) == before, "what is there is kept"


IGNORE_FILE_EXTENDED = [
    (b"*.pyc\n", b"*.pyc\n#\n/.bethink/memory.db*\n"),
    (b"*.pyc", b"*.pyc\n#\n/.bethink/memory.db*\n"),
    (b"*.pyc\r\n", b"*.pyc\r\n#\r\n/.bethink/memory.db*\r\n"),
    (b"", b"#\n/.bethink/memory.db*\n"),
    (b"caf\xe9\n", b"caf\xe9\n#\n/.bethink/memory.db*\n"),
    (b"*.db\n", b"*.db\n#\n/.bethink/memory.db*\n"),
    (b".bethink/\n!.bethink/\n", b".bethink/\n!.bethink/\n#\n/.bethink/memory.db*\n"),
    (b".bethink/\n", b".bethink/\n#\n/.bethink/memory.db*\n"),
    (b"!\n/.bethink/memory.db*\n", None),
]


def test_init_creates_templates(cli):
    git(cli.project, "init")
    cli.ok("init", *FILES_ONLY)
    made = {path: path.read_text() for path in (cli.project / KNOWLEDGE).rglob("*.md")}
    names = ["README.md", "gotchas.md", *(f"{folder}/README.md" for folder in FOLDERS)]
    assert made.keys() == {cli.project / KNOWLEDGE / name for name in names}
    assert all(text.startswith("---\nindex: false  # a template") for text in made.values())


def test_init_ignores_the_database_in_git(cli):
    git(cli.project, "init")
    cli.ok("init", *FILES_ONLY)
    assert (cli.project / ".gitignore").read_text().splitlines()[-1] == "/.bethink/memory.db*"
    (cli.project / ".bethink/memory.db").touch()
    shown = git(cli.project, "status", "--porcelain", "-uall")
    assert "config.toml" in shown and "memory.db" not in shown


def test_the_template_of_the_settings_sets_nothing(cli):
    git(cli.project, "init")
    cli.ok("init", *FILES_ONLY)
    # The template of the settings holds what a project may set, and sets nothing.
    file = cli.project / ".bethink/config.toml"
    assert tomllib.loads(file.read_text()) == {}
    set_all = "\n".join(line[2:] for line in file.read_text().splitlines() if " = " in line)
    values = tomllib.loads(set_all)
    assert values["knowledge"] == [KNOWLEDGE] and not set(values) & set(config.PERSONAL_SETTINGS)
    file.write_text(set_all)
    usual = config.Config(embedding="hashing")._replace(origins={})
    assert config.load(cli.project)._replace(origins={}) == usual


@pytest.mark.parametrize(("before", "after"), IGNORE_FILE_EXTENDED)
def test_the_ignore_file_is_extended_once(cli, before, after):
    def extend():
        cli.ok("init", *FILES_ONLY)
        return path.read_bytes().replace(knowledge.IGNORE[0].encode(), b"#")

    git(cli.project, "init")
    path = cli.project / ".gitignore"
    path.write_bytes(before)
    assert [extend(), extend()] == [before if after is None else after] * 2


def test_an_existing_knowledge_folder_is_left_alone(cli):
    (cli.project / "docs").mkdir()
    cli.ok("config", "knowledge", "docs")
    cli.ok("init", *FILES_ONLY)
    assert list((cli.project / "docs").iterdir()) == []


def test_a_missing_knowledge_folder_is_created(cli):
    (cli.project / "docs").mkdir()
    cli.ok("config", "knowledge", "notes/team,docs")
    cli.ok("init", *FILES_ONLY)
    assert (cli.project / "notes/team/gotchas.md").exists()
    assert not (cli.project / ".claude").exists()


def test_init_works_without_git(cli):
    cli.ok("init", *FILES_ONLY)
    assert not (cli.project / ".gitignore").exists()
    (cli.project / "a/b").mkdir(parents=True)
    assert projects.find(cli.project / "a/b").root == cli.project


def test_a_local_database_is_ignored_in_git(cli):
    cli.ok("init", *FILES_ONLY, "--local")
    assert "/.bethink/memory.db*" in (cli.project / ".gitignore").read_text()


DOCUMENTATION_FOUND = [
    ("third of the month", "Billing", "docs/billing.md:1-3"),
    ("counted autumn", "Stock > Count > Shelves", "docs/stock.rst:2-11"),
    ("ninety questions", "Interface > Limits", "docs/api.adoc:1-5"),
    ("rounded upwards", "sums", "wiki/sums.ipynb"),
    ("sells tea", "Shop > Testing", "README.md:1-7"),
]

DOCUMENTATION = {
    "docs/billing.md": "# Billing\n\nInvoices are sent on the third of the month.\n",
    "docs/stock.rst": "=====\nStock\n=====\n\nCount\n=====\n\nShelves\n~~~~~~~\n\nThey are counted in autumn.\n",
    "docs/api.adoc": "= Interface\n\n== Limits\n\nCallers wait after ninety questions.\n",
    "wiki/sums.ipynb": '{"cells": [{"cell_type": "markdown", "source": ["Sums are rounded ", "upwards."]}]}',
    "README.md": "# Shop\n\nIt sells tea.\n\n## Testing\n\nRun `make test` first, before every commit of any part.\n",
}


def test_documentation_is_indexed(cli):
    plant(cli.project, DOCUMENTATION)
    told = cli("init", "--skip-map")
    assert "README.md, docs, wiki are read as knowledge too." in told.err and "6 empty" in told.out
    assert [
        words
        for words, section, place in DOCUMENTATION_FOUND
        for found in [cli.json("search", words, "--mode", "keyword")[0]]
        if (
            found["section"],
            f"{found['source']}:{'-'.join(map(str, found['lines'] or ()))}".rstrip(":"),
        )
        != (section, place)
    ] == []
    # Index and analysis both read it; a search tells it once.
    assert len(cli.json("search", "every commit", "--mode", "keyword")) == 1


def test_documentation_is_not_listed_without_indexing(cli):
    plant(cli.project, DOCUMENTATION)
    cli("init", "--skip-map")
    assert "docs" not in cli("init", "--skip-map", "--skip-index").err


def test_the_setting_limits_what_is_knowledge(cli):
    plant(cli.project, DOCUMENTATION)
    cli("init", "--skip-map")
    cli.ok("config", "knowledge", ".claude/knowledge", "--project-file")
    assert "docs" not in cli("init", "--skip-map").err
    assert not cli.json("search", "third of the month", "--mode", "keyword")


REFUSED = [
    ("nowhere", 1, "nowhere cannot be read: No such file"),
    ("file.txt", 1, "file.txt cannot be read: Not a directory"),
    ("/", 2, "it is not a project"),
    (".", 2, "it is not a project"),
]


def test_init_takes_a_path(cli, tmp_path):
    other = plant(tmp_path / "other", {"a.txt": ""})
    assert [
        words
        for words in ([other], ["--project", other])
        if cli.json("init", *words, *FILES_ONLY)["project"]["root"] != str(other)
    ] == []
    assert (other / KNOWLEDGE).is_dir() and list(cli.project.iterdir()) == []
    assert "not allowed with" in cli.fails("init", ".", "--project", ".", code=2)


def test_init_refuses_a_folder_that_is_no_project(cli, monkeypatch, tmp_path):
    home = tmp_path / "ada"
    plant(home, {"file.txt": "x"})
    monkeypatch.setattr(projects.Path, "home", lambda: home)
    assert [
        path
        for path, code, said in REFUSED
        if said not in cli.fails("init", home / path, code=code)
    ] == []
    assert not (home / ".claude").exists()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("two\nlines", id="two-lines"),
        pytest.param(os.fsdecode(b"caf\xe9"), id="caf"),
    ],
)
def test_init_refuses_a_name_that_cannot_be_listed(cli, monkeypatch, tmp_path, name):
    home = tmp_path / "ada"
    plant(home, {"file.txt": "x"})
    monkeypatch.setattr(projects.Path, "home", lambda: home)
    (home / name).mkdir()
    said = cli.fails("init", "--local", "--project", home / name, code=2)
    assert "cannot be kept in a list of projects" in said and not list((home / name).iterdir())


def test_init_in_a_worktree_writes_settings_to_the_root(cli, monkeypatch, tmp_path):
    branch = tmp_path / "branch"
    git(cli.project, "init")
    git(cli.project, "commit", "--allow-empty", "-m", "first")
    git(cli.project, "worktree", "add", str(branch))
    monkeypatch.chdir(branch)
    cli.ok("init", *FILES_ONLY)
    assert (branch / KNOWLEDGE / "gotchas.md").exists() and not (branch / ".bethink").exists()
    assert (cli.project / ".bethink/config.toml").exists()
    assert (cli.project / ".gitignore").exists()


def test_a_file_in_the_way_fails_alone(cli):
    git(cli.project, "init")
    (cli.project / ".claude").write_text("I am a file\n")
    (cli.project / ".gitignore").mkdir()
    shown = cli("--json", "init", *FILES_ONLY)
    report = json.loads(shown.out)
    found = statuses(report)
    assert found[".gitignore"] == found[f"{KNOWLEDGE}/gotchas.md"] == "failed"
    assert found[".bethink/config.toml"] == "made"
    assert any("is not a regular file" in file.get("reason", "") for file in report["files"])
    assert (cli.project / ".claude").read_text() == "I am a file\n"
    assert shown.code == 1


def test_a_link_out_of_the_project_is_not_followed(cli, tmp_path):
    git(cli.project, "init")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "ignore").write_text("theirs\n")
    for name, place in ((".claude", "."), (".gitignore", "ignore"), (".bethink", ".")):
        (cli.project / name).symlink_to(outside / place)
    before = tree(outside)
    assert "leads out of the project" in cli("init", *FILES_ONLY).out
    assert "leads out of the project" in cli.fails("init", *FILES_ONLY, "--local", code=2)
    assert tree(outside) == before


def test_local_creates_a_database_for_the_project(cli):
    cli.add("Told before")
    database, noted = cli.project / ".bethink/memory.db", cli.home / "local-projects"
    cli.ok("init", "--local", *FILES_ONLY)
    assert database.stat().st_mode & 0o777 == noted.stat().st_mode & 0o777 == 0o600
    assert cli.json("list") == []
    id = cli.add("Told after")
    with Bethink(database, directory=cli.project) as memory:
        assert [one.id for one in memory.list()] == [id]
    problems = [line for line in cli("doctor").out.splitlines() if line[:7] == "PROBLEM"]
    assert "permissions" not in " ".join(problems)


def test_a_local_project_stays_local(cli):
    plant(cli.home, {"local-projects": "/somewhere/else"})
    assert [
        options
        for options in (["--local"], [], ["--local"])
        if cli.json("init", *options, *FILES_ONLY)["local"] is not True
    ] == []
    assert (cli.home / "local-projects").read_text() == f"/somewhere/else\n{cli.project}\n"


def test_local_is_refused_beside_another_database(cli, monkeypatch, tmp_path):
    assert "would win" in cli.fails("init", "--local", "--database", tmp_path / "x.db", code=2)
    with monkeypatch.context() as patch:
        patch.setenv("BETHINK_DATABASE", str(tmp_path / "x.db"))
        assert "$BETHINK_DATABASE" in cli.fails("init", "--local", code=2)
    assert list(cli.project.iterdir()) == []


def test_local_refuses_a_file_that_is_no_database(cli):
    plant(cli.project, {".bethink/memory.db": b"not a database, but long enough for one" * 100})
    assert "not a Bethink database" in cli.fails("init", "--local", "--force", code=1)
    assert not (cli.home / "local-projects").exists()


def test_a_database_that_came_with_the_project_is_not_used(cli):
    with Bethink(cli.project / ".bethink/memory.db", directory=cli.project) as memory:
        memory.add("Somebody else's words")
    shown = cli("init", *FILES_ONLY)
    assert shown.code == 0 and "is not used: it may have come with the project" in shown.err
    assert cli.json("list") == []


def test_local_refuses_a_database_that_came_with_the_project(cli):
    with Bethink(cli.project / ".bethink/memory.db", directory=cli.project) as memory:
        memory.add("Somebody else's words")
    before = tree(cli.project)
    assert "may have come with the project" in cli.fails("init", "--local", code=2)
    assert tree(cli.project) == before
    assert not (cli.home / "local-projects").exists()


def test_local_takes_over_a_database_by_force(cli):
    with Bethink(cli.project / ".bethink/memory.db", directory=cli.project) as memory:
        memory.add("Somebody else's words")
    assert cli.json("init", "--local", "--force", *FILES_ONLY)["local"] is True
    assert [one["content"] for one in cli.json("list")] == ["Somebody else's words"]


def test_ctrl_c_names_what_an_index_kept(repository, monkeypatch):
    real = knowledge.index

    def stop(memory, *places, progress, **how):
        def count(*done):
            progress(*done)
            raise KeyboardInterrupt

        return real(memory, *places, progress=count, **how)

    monkeypatch.setattr(knowledge, "index", stop)
    shown = repository("index")
    assert shown.code == 130
    assert "files done and kept; run the command again to continue\nstopped" in shown.err


def test_ctrl_c_leaves_a_usable_state(repository, monkeypatch):
    real = knowledge.PARTS["index"]

    def stop(done, sources):
        if done == sources:  # the first group is written
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setitem(
            knowledge.PARTS, "index", lambda memory, progress: real(memory, progress=stop)
        )
        shown = repository("--json", "init")
    assert shown.code == 130
    assert shown.err.endswith("stopped; `bethink init` continues from here\n")
    report = json.loads(shown.out)
    assert report["stopped"] is True
    assert list(parts(report).items())[-1] == ("index", "stopped")
    assert repository.json("search", "tea shop cart") != []  # what was read before the stop is kept
    assert set(parts(repository.json("init")).values()) == {"done"}
    assert "100 grams" in repository.json("search", "how is oolong sold?")[0]["content"]


def test_a_failing_part_stops_no_other(repository):
    plant(repository.project, {".bethink/config.toml": 'knowledge = ["../elsewhere"]\n'})
    shown = repository("--json", "init")
    report = json.loads(shown.out)
    assert shown.code == 1
    assert parts(report) == {"analyze": "done", "index": "failed", "map": "done"}
    assert "outside the project" in report["parts"][1]["reason"]
