"""`bethink init`: one step, safe to repeat, nothing half-written, nothing of the user's touched."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import tomllib
from hashlib import sha256
from pathlib import Path

import pytest

from bethink import config
from bethink import project as projects
from bethink.api import Bethink
from bethink.features import initialise

pytest_plugins = ["cli_runner"]

NOBODY = 65534
FILES_ONLY = ("--skip-analyze", "--skip-index", "--skip-map")
KNOWLEDGE = ".claude/knowledge"
TEMPLATES = [
    "README.md",
    "architecture/README.md",
    "components/README.md",
    "domain/README.md",
    "gotchas.md",
    "patterns/README.md",
]


def git(folder, *words):
    identity = (
        "-c",
        "user.name=Test",
        "-c",
        "user.email=test@example.org",
        "-c",
        "init.defaultBranch=main",
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    subprocess.run(
        ("git", *identity, *words), cwd=folder, check=True, capture_output=True, env=environment
    )


@pytest.fixture
def repository(cli):
    """A small project in git: a README, code, a document of knowledge."""
    git(cli.project, "init")
    (cli.project / "README.md").write_text(
        "# Shop\n\nA shop that sells tea by subscription.\n\n## Testing\n\nRun `make test`.\n"
    )
    (cli.project / "Makefile").write_text("test:\n\tpytest\n")
    (cli.project / "src").mkdir()
    (cli.project / "src/cart.py").write_text(
        '"""The cart."""\n\n\ndef total(items):\n    """Sums the prices of all items."""\n    return sum(items)\n'
    )
    folder = cli.project / KNOWLEDGE / "domain"
    folder.mkdir(parents=True)
    (folder / "tea.md").write_text(
        "# Tea\n\n## Oolong\n\nOolong is sold in tins of 100 grams, never loose.\n"
    )
    return cli


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder with its mode and its hash; databases change when they are opened."""
    return {
        str(
            path.relative_to(folder)
        ): f"{path.stat().st_mode:o} {'' if path.is_dir() else sha256(path.read_bytes()).hexdigest()}"
        for path in sorted(folder.rglob("*"))
        if ".git" not in path.parts and "memory.db" not in path.name
    }


def statuses(report: dict) -> dict[str, str]:
    root = Path(report["project"]["root"])
    return {
        str(Path(file["path"]).relative_to(root)): file["status"]
        for file in report["files"]
        if Path(file["path"]).is_relative_to(root)
    }


def parts(report: dict) -> dict[str, str]:
    return {part["part"]: part["status"] for part in report["parts"]}


# The whole of it


def test_one_step_makes_a_project_searchable(repository):
    report = repository.json("init")
    assert set(statuses(report).values()) == {"made"}
    assert parts(report) == {"analyze": "done", "index": "done", "map": "done"}
    assert report["memories"] > 3
    assert report["stopped"] is report["local"] is False
    assert "100 grams" in repository.json("search", "how is oolong sold?")[0]["content"]
    assert any(
        one["path"] == "src/cart.py" for one in repository.json("search", "total of the cart")
    )
    assert any(
        "make test" in one["content"] for one in repository.json("search", "how are tests run?")
    )


def test_the_report_is_for_people_and_names_the_next_step(repository):
    shown = repository("init")
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert lines[0].split() == ["project", "shop", str(repository.project)]
    assert any(line.startswith("made ") and line.endswith("README.md") for line in lines)
    assert any(line.startswith("ready ") and "can be searched" in line for line in lines)
    searches = [line.strip() for line in lines if line.strip().startswith("bethink search ")]
    assert len(searches) == 1
    question = searches[0].removeprefix('bethink search "').removesuffix('"')
    assert repository.json("search", question), question
    assert any(line.strip() == "bethink doctor" for line in lines)


def test_a_second_run_changes_no_file_and_reads_nothing_again(repository):
    first = repository.json("init")
    before = tree(repository.project)
    second = repository.json("init")
    assert tree(repository.project) == before
    assert set(statuses(second).values()) == {"kept"}
    assert second["memories"] == first["memories"]
    for part in second["parts"]:
        assert (part["added"], part["changed"], part["vanished"], part["memories"]["added"]) == (
            [],
            [],
            [],
            0,
        )
    assert "8 files as they are" in repository.ok("init")
    assert re.search(r"\nindex +(\d+) sources?: \1 unchanged\n", repository.ok("init"))


def test_a_template_is_knowledge_once_it_is_filled(cli):
    assert cli.json("init")["memories"] == 0
    assert "nothing to search yet" in cli.ok("init")
    path = cli.project / KNOWLEDGE / "gotchas.md"
    lines = [line for line in path.read_text().splitlines() if not line.startswith("index: false")]
    path.write_text("\n".join(lines).replace("A short name of the trap", "Cron runs in UTC"))
    assert cli.json("init")["memories"] == 1
    assert "Cron runs in UTC" in cli.json("search", "cron")[0]["content"]


@pytest.mark.parametrize("part", ["analyze", "index", "map"])
def test_each_part_can_be_skipped(repository, part):
    found = parts(repository.json("init", f"--skip-{part}"))
    assert found == {**dict.fromkeys(("analyze", "index", "map"), "done"), part: "skipped"}


def test_a_missing_extra_is_told_and_fails_nothing(repository, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    report = repository.json("init")
    assert parts(report)["map"] == "skipped"
    assert report["parts"][-1]["hint"] == "pip install 'bethink[code]'"
    assert "tree-sitter is not installed (pip install 'bethink[code]')" in repository.ok("init")


def test_skipped_files_are_named_up_to_five(repository):
    folder = repository.project / KNOWLEDGE
    for number in range(7):
        (folder / f"bad{number}.md").write_bytes(b"# Bad\n\x00\x01\x02")
    shown = repository("init", "--skip-map", "--skip-analyze")
    assert shown.code == 0
    assert shown.err.count("skipped .claude/knowledge/bad") == 5
    assert "and 2 more; --json lists all" in shown.err
    (index,) = [part for part in repository.json("init")["parts"] if part["part"] == "index"]
    assert len(index["skipped"]) == 7


# What is made


def test_folders_templates_settings_and_ignore_file_are_made(cli):
    git(cli.project, "init")
    cli.ok("init", *FILES_ONLY)
    assert (
        sorted(
            str(path.relative_to(cli.project / KNOWLEDGE))
            for path in (cli.project / KNOWLEDGE).rglob("*.md")
        )
        == TEMPLATES
    )
    for path in (cli.project / KNOWLEDGE).rglob("*.md"):
        assert path.read_text().startswith(initialise.FRONT)
    assert (cli.project / ".gitignore").read_text().splitlines()[-1] == "/.bethink/memory.db*"
    (cli.project / ".bethink/memory.db").touch()
    shown = subprocess.run(
        ["git", "status", "--porcelain", "-uall"],
        cwd=cli.project,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "config.toml" in shown
    assert "memory.db" not in shown


def test_the_settings_template_holds_what_a_project_may_set_and_sets_nothing(cli):
    cli.ok("init", *FILES_ONLY)
    text = (cli.project / ".bethink/config.toml").read_text()
    assert tomllib.loads(text) == {}
    values = tomllib.loads("\n".join(line[2:] for line in text.splitlines() if " = " in line))
    assert values["knowledge"] == [KNOWLEDGE]
    assert not set(values) & set(config.PERSONAL)
    (cli.project / ".bethink/config.toml").write_text(
        "\n".join(line[2:] for line in text.splitlines() if " = " in line)
    )
    assert config.load(cli.project)._replace(origins={}) == config.Config(
        embedding="hashing"
    )._replace(origins={})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"*.pyc\n", b"*.pyc\n#\n/.bethink/memory.db*\n"),
        (b"*.pyc", b"*.pyc\n#\n/.bethink/memory.db*\n"),
        (b"*.pyc\r\n", b"*.pyc\r\n#\r\n/.bethink/memory.db*\r\n"),
        (b"*.pyc\r\nx", b"*.pyc\r\nx\r\n#\r\n/.bethink/memory.db*\r\n"),
        (b"", b"#\n/.bethink/memory.db*\n"),
        (b"caf\xe9\n", b"caf\xe9\n#\n/.bethink/memory.db*\n"),
        (b"*.db\n", b"*.db\n#\n/.bethink/memory.db*\n"),  # does not cover the files beside it
        (b".bethink/\n!.bethink/\n", b".bethink/\n!.bethink/\n#\n/.bethink/memory.db*\n"),
        (b".bethink/\n", None),
        (b".bethink\n", None),
        (b"/.bethink/*\n", None),
        (b"**/memory.db*\n", None),
        (b"!\n/.bethink/memory.db*\n", None),
    ],
)
def test_the_ignore_file_is_extended_once_and_only_if_needed(cli, before, after):
    git(cli.project, "init")
    path = cli.project / ".gitignore"
    path.write_bytes(before)
    for _ in range(2):
        cli.ok("init", *FILES_ONLY)
        held = path.read_bytes().replace(initialise.IGNORE[0].encode(), b"#")
        assert held == (before if after is None else after)


def test_without_git_there_is_no_ignore_file_and_the_folder_marks_the_project(cli):
    shown = cli("init", *FILES_ONLY)
    assert "is not in git" in shown.err
    assert not (cli.project / ".gitignore").exists()
    deep = cli.project / "a/b"
    deep.mkdir(parents=True)
    assert projects.find(deep).root == cli.project
    cli.ok("init", *FILES_ONLY, "--local")
    assert "/.bethink/memory.db*" in (cli.project / ".gitignore").read_text()


def test_a_knowledge_folder_of_the_users_own_is_left_to_them_and_made_where_it_is_missing(cli):
    (cli.project / "docs").mkdir()
    cli.ok("config", "knowledge", "docs")
    cli.ok("init", *FILES_ONLY)
    assert list((cli.project / "docs").iterdir()) == []
    cli.ok("config", "knowledge", "notes/team,docs")
    cli.ok("init", *FILES_ONLY)
    assert (cli.project / "notes/team/gotchas.md").exists()
    assert not (cli.project / ".claude").exists()


def test_files_that_are_there_are_kept(cli):
    cli.ok("init", *FILES_ONLY)
    (cli.project / KNOWLEDGE / "gotchas.md").write_text("# Gotchas\n\n## Cron runs in UTC\n")
    (cli.project / ".bethink/config.toml").write_text("limit = 3\n")
    before = tree(cli.project)
    assert set(statuses(cli.json("init", *FILES_ONLY, "--force")).values()) == {"kept"}
    assert tree(cli.project) == before


# Where


def test_a_path_may_be_given(cli, monkeypatch):
    other = cli.project.parent / "other"
    other.mkdir()
    report = cli.json("init", other, *FILES_ONLY)
    assert report["project"]["root"] == str(other)
    assert (other / KNOWLEDGE).is_dir()
    assert list(cli.project.iterdir()) == []
    assert cli.json("init", "--project", other, *FILES_ONLY)["project"]["root"] == str(other)


def test_documentation_is_listed_and_read_unless_the_setting_names_what_is_knowledge(cli):
    notebook = {"cells": [{"cell_type": "markdown", "source": ["Sums are rounded ", "upwards."]}]}
    for name, text in {
        "docs/billing.md": "# Billing\n\nInvoices are sent on the third of the month.\n",
        "docs/stock.rst": "=====\nStock\n=====\n\nCount\n~~~~~\n\nShelves are counted in autumn.\n",
        "docs/api.adoc": "= Interface\n\n== Limits\n\nCallers wait after ninety questions.\n",
        "wiki/sums.ipynb": json.dumps(notebook),
    }.items():
        (cli.project / name).parent.mkdir(exist_ok=True)
        (cli.project / name).write_text(text)
    (cli.project / "site").mkdir()
    told = cli("init", "--skip-map").err
    assert "docs (3 documents), wiki (1 document)" in told and "site" not in told
    for words, section, place in [
        ("third of the month", "Billing", "docs/billing.md:1-3"),
        ("shelves autumn", "Stock > Count", "docs/stock.rst:2-8"),
        ("ninety questions", "Interface > Limits", "docs/api.adoc:1-5"),
        ("rounded upwards", "sums", "wiki/sums.ipynb"),
    ]:
        found = cli.json("search", words, "--mode", "keyword")[0]
        lines = "-".join(map(str, found["lines"] or ()))
        assert (found["section"], f"{found['source']}:{lines}".rstrip(":")) == (section, place)
    assert "docs" not in cli("init", "--skip-map", "--skip-index").err
    cli.ok("config", "knowledge", ".claude/knowledge", "--project-file")
    assert "docs (" not in cli("init", "--skip-map").err
    assert cli.json("search", "third of the month", "--mode", "keyword")


def test_in_a_sub_directory_the_whole_project_is_set_up(cli, monkeypatch):
    git(cli.project, "init")
    deep = cli.project / "a/b"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert f"{deep} is a part of it; the whole project is set up" in cli.ok("init", *FILES_ONLY)
    assert (cli.project / KNOWLEDGE).is_dir()
    assert list(deep.iterdir()) == []


def test_in_a_worktree_settings_go_to_the_root_and_knowledge_to_the_worktree(
    cli, tmp_path, monkeypatch
):
    git(cli.project, "init")
    git(cli.project, "commit", "--allow-empty", "-m", "first")
    git(cli.project, "worktree", "add", str(tmp_path / "branch"))
    monkeypatch.chdir(tmp_path / "branch")
    assert "knowledge and code are those of the worktree" in cli.ok("init", *FILES_ONLY)
    assert (tmp_path / "branch" / KNOWLEDGE / "gotchas.md").exists()
    assert not (tmp_path / "branch/.bethink").exists()
    assert (cli.project / ".bethink/config.toml").exists()
    assert (cli.project / ".gitignore").exists()


@pytest.mark.parametrize(
    ("path", "code", "said"),
    [
        ("nowhere", 1, "There is no directory nowhere"),
        ("file.txt", 2, "is a file, not a directory"),
        ("/", 2, "it is not a project"),
        (".", 2, "it is not a project"),  # the home directory
    ],
)
def test_paths_that_are_no_project_are_refused(cli, monkeypatch, path, code, said):
    monkeypatch.setattr(projects.Path, "home", lambda: cli.project)
    (cli.project / "file.txt").write_text("x")
    before = tree(cli.project)
    assert said in cli.fails("init", path, code=code)
    assert tree(cli.project) == before


def test_two_directories_are_wrong_usage(cli):
    assert "not both" in cli.fails("init", ".", "--project", ".", code=2)


# What is in the way


def test_a_file_where_a_folder_should_be_is_told_and_the_rest_goes_on(cli):
    git(cli.project, "init")
    (cli.project / ".claude").write_text("I am a file\n")
    (cli.project / ".gitignore").mkdir()
    report = json.loads(cli("--json", "init", *FILES_ONLY).out)
    found = statuses(report)
    assert found[".gitignore"] == found[f"{KNOWLEDGE}/gotchas.md"] == "failed"
    assert found[".bethink/config.toml"] == "made"
    assert "is a directory, not a file" in next(
        file["reason"] for file in report["files"] if file["path"].endswith(".gitignore")
    )
    assert (cli.project / ".claude").read_text() == "I am a file\n"
    assert cli("init", *FILES_ONLY).code == 1


def test_a_settings_folder_that_is_a_file_is_told(cli):
    (cli.project / ".bethink").write_text("I am a file\n")
    shown = cli("init", *FILES_ONLY)
    assert shown.code == 1
    assert "config.toml cannot be" in shown.out
    assert (cli.project / KNOWLEDGE / "gotchas.md").exists()
    assert "is a file, not a directory" in cli.fails("init", *FILES_ONLY, "--local", code=2)
    assert not (cli.home / "local-projects").exists()


def test_a_link_out_of_the_project_is_not_followed(cli, tmp_path):
    git(cli.project, "init")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "ignore").write_text("theirs\n")
    (cli.project / ".claude").symlink_to(outside)
    (cli.project / ".gitignore").symlink_to(outside / "ignore")
    (cli.project / ".bethink").symlink_to(outside)
    before = tree(outside)
    assert "leads out of the project" in cli("init", *FILES_ONLY).out
    assert "leads out of the project" in cli.fails("init", *FILES_ONLY, "--local", code=2)
    assert tree(outside) == before


def test_settings_that_cannot_be_read_stop_it_before_anything_is_made(cli):
    (cli.project / ".bethink").mkdir()
    (cli.project / ".bethink/config.toml").write_text("limit = ")
    before = tree(cli.project)
    assert "cannot be read" in cli.fails("init", code=2)
    assert tree(cli.project) == before


def test_a_database_that_cannot_be_opened_stops_it_before_anything_is_made(cli):
    cli.home.mkdir()
    (cli.home / "memory.db").write_bytes(
        b"not a database, but long enough to be taken for one" * 100
    )
    assert "not a Bethink database" in cli.fails("init", code=1)
    assert list(cli.project.iterdir()) == []


@pytest.fixture
def unprivileged(cli, monkeypatch):
    """A folder that another user can reach, and that user: root may do everything."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        home, project = Path(folder, "home"), Path(folder, "shop")
        for path in (home, project):
            path.mkdir()
        Path(folder).chmod(0o755)
        monkeypatch.setenv("BETHINK_HOME", str(home))
        root = os.geteuid() == 0
        if root:
            # The sources may lie where only root reads: what is needed of them is in memory, and the database is there, by then.
            monkeypatch.chdir(home)
            cli("init", *FILES_ONLY)
            for path in (home, *home.rglob("*")):
                os.chown(path, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        monkeypatch.chdir(project)
        try:
            yield project
        finally:
            if root:
                os.seteuid(0)
            project.chmod(0o755)
            monkeypatch.chdir("/")


def as_owner(path: Path, mode: int) -> None:
    user = os.geteuid()
    if user == NOBODY:
        os.seteuid(0)
    path.chmod(mode)
    os.seteuid(user)


def test_a_project_that_cannot_be_written_is_told_and_left_as_it_was(cli, unprivileged):
    as_owner(unprivileged, 0o555)
    shown = cli("init", *FILES_ONLY)
    assert shown.code == 1
    assert "cannot be written: Permission denied" in shown.out
    assert "Traceback" not in shown.err
    assert list(unprivileged.iterdir()) == []
    assert "Permission denied" in cli.fails("init", "--local", *FILES_ONLY, code=1)


def test_a_directory_that_cannot_be_read_is_refused(cli, unprivileged):
    as_owner(unprivileged, 0o700 if os.geteuid() == NOBODY else 0o000)
    assert "cannot be read: Permission denied" in cli.fails("init", unprivileged, code=1)


# A database of its own


def test_local_gives_the_project_a_database_of_its_own(repository):
    repository.add("Told before")
    assert "stay in your own database" not in repository("init", *FILES_ONLY).err
    shown = repository("init", "--local", *FILES_ONLY)
    assert "1 memory of this project stay in your own database" in shown.err
    assert "stay in your own database" not in repository("init", "--local", *FILES_ONLY).err
    database = repository.project / ".bethink/memory.db"
    assert database.stat().st_mode & 0o777 == 0o600
    assert (repository.home / "local-projects").read_text() == f"{repository.project}\n"
    assert (repository.home / "local-projects").stat().st_mode & 0o777 == 0o600
    assert repository.json("list") == []
    id = repository.add("Told after")
    with Bethink(database, directory=repository.project) as memory:
        assert [one.id for one in memory.list()] == [id]
    assert "permissions" not in " ".join(
        line for line in repository("doctor").out.splitlines() if line.startswith("PROBLEM")
    )


def test_local_stays_local_and_is_noted_once(cli):
    cli.ok("init", "--local", *FILES_ONLY)
    before = tree(cli.home)
    assert cli.json("init", *FILES_ONLY)["local"] is True
    assert cli.json("init", "--local", *FILES_ONLY)["local"] is True
    assert tree(cli.home) == before


def test_the_list_of_projects_keeps_its_other_lines(cli):
    cli.home.mkdir()
    (cli.home / "local-projects").write_text("/somewhere/else")
    cli.ok("init", "--local", *FILES_ONLY)
    assert (cli.home / "local-projects").read_text() == f"/somewhere/else\n{cli.project}\n"


@pytest.fixture
def foreign(cli):
    """A project that came with a database."""
    with Bethink(cli.project / ".bethink/memory.db", directory=cli.project) as memory:
        memory.add("Somebody else's words")
    return cli


def test_a_database_that_came_with_the_project_is_not_trusted_by_init(foreign):
    shown = foreign("init", *FILES_ONLY)
    assert shown.code == 0
    assert "is not used: it may have come with the project" in shown.err
    assert foreign.json("list") == []


def test_a_database_that_came_with_the_project_is_taken_over_only_by_force(foreign):
    before = tree(foreign.project)
    assert "somebody else's words" in foreign.fails("init", "--local", code=2)
    assert tree(foreign.project) == before
    assert not (foreign.home / "local-projects").exists()
    assert foreign.json("init", "--local", "--force", *FILES_ONLY)["local"] is True
    assert [one["content"] for one in foreign.json("list")] == ["Somebody else's words"]


def test_a_file_that_is_no_database_is_not_trusted_even_by_force(cli):
    (cli.project / ".bethink").mkdir()
    (cli.project / ".bethink/memory.db").write_bytes(
        b"not a database, but long enough to be taken for one" * 100
    )
    assert "not a Bethink database" in cli.fails("init", "--local", "--force", code=1)
    assert not (cli.home / "local-projects").exists()


def test_local_is_refused_where_another_database_is_set(cli, monkeypatch, tmp_path):
    assert "would win" in cli.fails("init", "--local", "--database", tmp_path / "x.db", code=2)
    monkeypatch.setenv("BETHINK_DATABASE", str(tmp_path / "x.db"))
    assert "$BETHINK_DATABASE" in cli.fails("init", "--local", code=2)
    assert list(cli.project.iterdir()) == []


@pytest.mark.parametrize("name", ["two\nlines", os.fsdecode(b"caf\xe9")])
def test_a_path_that_no_list_can_hold_is_refused(cli, name, tmp_path):
    folder = tmp_path / name
    folder.mkdir()
    assert "cannot be kept in a list of projects" in cli.fails(
        "init", "--local", "--project", folder, code=2
    )
    assert list(folder.iterdir()) == []


# Stopped


@pytest.mark.parametrize("part", ["analyze", "index", "map"])
def test_ctrl_c_leaves_a_usable_state_and_the_next_run_goes_on(repository, monkeypatch, part):
    real = initialise.PARTS[part]

    def stop(done, sources):
        if done == sources:  # the first group is written
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setitem(initialise.PARTS, part, lambda memory, progress: real(memory, progress=stop))
        shown = repository("--json", "init")
    assert shown.code == 130
    assert shown.err.endswith("stopped; `bethink init` goes on from here\n")
    report = json.loads(shown.out)
    assert report["stopped"] is True
    assert report["parts"][-1]["part"] == part
    assert report["parts"][-1]["status"] == "stopped"
    assert repository.json("search", "tea shop cart") != []  # what was read before the stop is kept
    again = repository.json("init")
    assert set(parts(again).values()) == {"done"}
    assert "100 grams" in repository.json("search", "how is oolong sold?")[0]["content"]


def test_ctrl_c_while_files_are_made_is_told_and_the_next_run_goes_on(cli, monkeypatch):
    real, made = initialise.apply, []

    def stopped(step):
        if made:
            raise KeyboardInterrupt
        made.append(real(step))
        return made[0]

    with monkeypatch.context() as patch:
        patch.setattr(initialise, "apply", stopped)
        shown = cli("init", *FILES_ONLY)
    assert shown.code == 130
    assert made[0].path.exists()
    assert cli.json("init", *FILES_ONLY)["stopped"] is False
    assert (cli.project / ".bethink/config.toml").exists()


def test_a_part_that_fails_is_told_and_the_others_go_on(repository, monkeypatch):
    (repository.project / ".bethink").mkdir()
    (repository.project / ".bethink/config.toml").write_text('knowledge = ["../elsewhere"]\n')
    shown = repository("--json", "init")
    report = json.loads(shown.out)
    assert shown.code == 1
    assert parts(report) == {"analyze": "done", "index": "failed", "map": "done"}
    assert "outside the project" in report["parts"][1]["reason"]


def test_questions_made_of_findings_hold_nothing_that_a_shell_obeys():
    words = initialise._pick_words(
        'Run `rm -rf /`; $(reboot) "now" && call it_a\\day! src/cart.py --force'
    )
    assert " ".join(words) == "reboot now call it_a day src/cart.py"
    cited = initialise._pick_words("Tests run with `pytest` (pyproject.toml:62).")
    assert " ".join(cited) == "Tests run with pytest"
