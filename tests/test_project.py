"""Which project a directory belongs to."""

import os
import subprocess

import pytest

from bethink import project
from bethink.errors import InvalidInput


@pytest.fixture(autouse=True)
def no_project_above(tmp_path, monkeypatch):
    monkeypatch.setattr(project.Path, "home", lambda: tmp_path / "nobody")


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
def repository(tmp_path):
    root = tmp_path / "shop"
    (root / "src" / "deep").mkdir(parents=True)
    git(root, "init")
    git(root, "commit", "--allow-empty", "-m", "first")
    return root


def test_a_repository_and_its_folders_are_one_project(repository, monkeypatch):
    found = project.find(repository)
    assert (found.root, found.worktree, found.name) == (repository, repository, "shop")
    assert project.find(repository / "src" / "deep") == found
    monkeypatch.chdir(repository / "src")
    assert project.find() == found
    assert found.local_database == repository / ".bethink" / "memory.db"


def test_worktrees_share_the_identity_and_the_root(repository, tmp_path):
    git(repository, "worktree", "add", str(tmp_path / "elsewhere"))
    linked, main = project.find(tmp_path / "elsewhere"), project.find(repository)
    assert (linked.identity, linked.scope, linked.root, linked.name) == (
        main.identity,
        main.scope,
        main.root,
        "shop",
    )
    assert linked.worktree == tmp_path / "elsewhere"


def test_a_worktree_of_a_bare_repository_is_its_own_root(repository, tmp_path):
    git(tmp_path, "clone", "--bare", str(repository), "shop.git")
    for name in ("one", "two"):
        git(tmp_path / "shop.git", "worktree", "add", "-b", name, str(tmp_path / name))
    one, two = project.find(tmp_path / "one"), project.find(tmp_path / "two")
    assert one.identity == two.identity != project.find(repository).identity
    assert one.root == tmp_path / "one"


def test_a_submodule_is_a_project_of_its_own(repository):
    inner, modules = repository / "vendor" / "lib", repository / ".git" / "modules" / "lib"
    inner.mkdir(parents=True)
    modules.mkdir(parents=True)
    (inner / ".git").write_text("gitdir: ../../.git/modules/lib\n")
    found = project.find(inner)
    assert (found.root, found.name) == (inner, "lib")
    assert found.identity != project.find(repository).identity


def test_a_symbolic_link_leads_to_the_same_project(repository, tmp_path):
    (tmp_path / "link").symlink_to(repository)
    assert project.find(tmp_path / "link" / "src") == project.find(repository)


def test_outside_git_the_nearest_marked_folder_counts_else_the_directory_itself(tmp_path):
    inner = tmp_path / "notes" / "2026"
    inner.mkdir(parents=True)
    assert project.find(inner).root == inner
    (tmp_path / "notes" / ".bethink").mkdir()
    assert project.find(inner).root == tmp_path / "notes"
    assert project.find(inner).scope == project.find(tmp_path / "notes").scope


def test_a_marked_home_does_not_swallow_everything_below_it(tmp_path, monkeypatch):
    monkeypatch.setattr(project.Path, "home", lambda: tmp_path)
    (tmp_path / ".bethink").mkdir()
    (tmp_path / "thing").mkdir()
    assert project.find(tmp_path / "thing").root == tmp_path / "thing"


@pytest.mark.parametrize(
    "text", [b"", b"nonsense", b"gitdir", b"\xff\xfe\x00", b"gitdir: \x00\x00"]
)
def test_a_broken_git_file_counts_as_none(tmp_path, text):
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / ".git").write_bytes(text)
    assert project.find(folder).root == folder
    assert project.find(folder).identity == project._project(folder, folder, folder).identity


def test_a_git_folder_without_a_head_is_none(repository):
    (repository / "src" / ".git").mkdir()
    assert project.find(repository / "src").root == repository


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_git_file_counts_as_none(tmp_path):
    (tmp_path / ".git").write_text("gitdir: elsewhere")
    (tmp_path / ".git").chmod(0)
    assert project.find(tmp_path).root == tmp_path


def test_a_git_file_that_cannot_be_followed_counts_as_none(tmp_path):
    (tmp_path / ".git").symlink_to(tmp_path / ".git")
    assert project.find(tmp_path).root == tmp_path


def test_a_directory_that_was_removed_under_us_is_no_traceback(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert project.find().name == "root"


def test_names_that_are_not_utf8_make_an_identity(tmp_path):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    assert len(project.find(folder).identity) == 16


def test_two_projects_never_share_an_identity(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    assert project.find(tmp_path / "a").scope != project.find(tmp_path / "b").scope


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ("react-router", "react-router"),
        (" React Router ", "react-router"),
        ("React__Router!", "react-router"),
        ("v2", "v2"),
        ("a/../b", "a-b"),
    ],
)
def test_a_container_has_a_plain_name(tmp_path, given, plain):
    assert project.container_name(given) == plain
    found = project.find(tmp_path)
    assert found.container(given) == f"container:{found.identity}/{plain}"


@pytest.mark.parametrize("given", ["", "  ", "---", "../.."])
def test_what_leaves_no_name_is_refused(given):
    with pytest.raises(InvalidInput, match="cannot name a container"):
        project.container_name(given)
