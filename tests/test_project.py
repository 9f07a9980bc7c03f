"""Which project a directory belongs to."""

import os
import shutil

import pytest
from case_tables import cases
from stores import pick
from trees import git

from bethink import Bethink, project
from bethink.config import Config
from bethink.errors import InvalidInput


@pytest.fixture(autouse=True)
def no_project_above(tmp_path, monkeypatch):
    monkeypatch.setattr(project.Path, "home", lambda: tmp_path / "nobody")


@pytest.fixture
def repository(tmp_path):
    root = tmp_path / "shop"
    (root / "src" / "deep").mkdir(parents=True)
    git(root, "init")
    git(root, "commit", "--allow-empty", "-m", "first")
    return root


def test_a_repository_is_one_project_and_a_submodule_its_own(repository, monkeypatch):
    found = project.find(repository)
    assert (found.root, found.worktree, found.name) == (repository, repository, "shop")
    assert project.find(repository / "src" / "deep") == found
    monkeypatch.chdir(repository / "src")
    assert project.find() == found
    assert found.local_database == repository / ".bethink" / "memory.db"
    inner, modules = repository / "vendor" / "lib", repository / ".git" / "modules" / "lib"
    inner.mkdir(parents=True)
    modules.mkdir(parents=True)
    (inner / ".git").write_text("gitdir: ../../.git/modules/lib\n")
    (modules / "config").write_text("[core]\n\tbare = false\n\tworktree = ../../../vendor/lib\n")
    found = project.find(inner)
    assert (found.root, found.name, found.common) == (inner, "lib", modules)
    assert found.identity != project.find(repository).identity


def test_worktrees_share_the_identity_and_the_root(repository, tmp_path):
    git(repository, "worktree", "add", str(tmp_path / "elsewhere"))
    linked, main = project.find(tmp_path / "elsewhere"), project.find(repository)
    shared = "identity scope root name"
    assert pick(linked, shared) == pick(main, shared)
    assert linked.worktree == tmp_path / "elsewhere"
    git(tmp_path, "clone", "--bare", str(repository), "shop.git")
    for name in ("one", "two"):
        git(tmp_path / "shop.git", "worktree", "add", "-b", name, str(tmp_path / name))
    one, two = project.find(tmp_path / "one"), project.find(tmp_path / "two")
    assert one.identity == two.identity != main.identity
    assert one.root == tmp_path / "one"


def test_a_git_file_that_points_into_another_repository_does_not_join_it(repository, tmp_path):
    git(repository, "worktree", "add", str(tmp_path / "linked"))
    for place in (".git/worktrees/linked", ".git", None):
        hostile = tmp_path / f"hostile {place}".replace("/", "-")
        hostile.mkdir()
        if place is None:
            (hostile / ".git").symlink_to(repository / ".git")
        else:
            (hostile / ".git").write_text(f"gitdir: {repository / place}\n")
        found = project.find(hostile)
        assert (found.root, found.name) == (hostile, hostile.name)
        assert found.identity != project.find(repository).identity
        project.pin(found)
        assert not (repository / ".git" / project.NOTE).exists()


def test_a_clone_and_a_copy_are_projects_of_their_own(repository, tmp_path):
    original = project.find(repository)
    project.pin(original)
    git(tmp_path, "clone", str(repository), "clone")
    shutil.copytree(repository, tmp_path / "copy")
    others = [project.find(tmp_path / name) for name in ("clone", "copy")]
    for other in others:
        project.pin(other)
    found = [project.find(tmp_path / name).identity for name in ("shop", "clone", "copy")]
    assert found == [original.identity, *(other.identity for other in others)]
    assert len(set(found)) == 3


def test_the_first_write_pins_a_repository_that_may_be_moved(repository, tmp_path):
    before = project.find(repository)
    assert not (repository / ".git" / project.NOTE).exists()
    config = Config(embedding="none")
    with Bethink(tmp_path / "memory.db", directory=repository, config=config) as memory:
        memory.search("anything", mode="keyword")
        assert not (repository / ".git" / project.NOTE).exists()
        memory.add("We deploy from main")
    assert (repository / ".git" / project.NOTE).read_text().startswith(before.identity)
    assert project.find(repository) == before
    before = project.find(repository)
    project.pin(before)
    repository.rename(tmp_path / "kiosk")
    moved = project.find(tmp_path / "kiosk" / "src")
    assert (moved.identity, moved.name) == (before.identity, "kiosk")
    project.pin(moved)
    (tmp_path / "shop").mkdir()
    git(tmp_path / "shop", "init")
    os.utime(tmp_path / "shop" / ".git" / "description", (1, 1))
    assert project.find(tmp_path / "shop").identity != before.identity
    assert project.find(tmp_path / "kiosk").identity == before.identity


def test_a_folder_that_is_put_under_git_keeps_its_memories(tmp_path):
    def finds(folder) -> bool:
        config = Config(embedding="none")
        with Bethink(tmp_path / "memory.db", directory=folder, config=config) as memory:
            found = bool(memory.search("deploy", mode="keyword").hits)
            memory.add("We deploy from main")
            return found

    folder = tmp_path / "new"
    folder.mkdir()
    assert not finds(folder)
    git(folder, "init")
    assert finds(folder) and finds(folder)
    assert finds(folder.rename(tmp_path / "newer"))


def test_outside_git_the_nearest_marked_folder_counts_and_containers_have_plain_names(tmp_path):
    inner = tmp_path / "notes" / "2026"
    inner.mkdir(parents=True)
    assert project.find(inner).root == inner
    (tmp_path / "notes" / ".bethink").mkdir()
    assert project.find(inner).root == tmp_path / "notes"
    assert project.find(inner).scope == project.find(tmp_path / "notes").scope
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    assert project.find(tmp_path / "a").scope != project.find(tmp_path / "b").scope
    for text in (b"", b"nonsense", b"gitdir", b"\xff\xfe\x00", b"gitdir: \x00\x00"):
        (tmp_path / ".git").write_bytes(text)
        found = project.find(tmp_path)
        assert (found.root, found.common) == (tmp_path, None)
    found = project.find(tmp_path)
    for given, plain in cases("project-containers"):
        assert project.container_name(given) == plain
        assert found.container(given) == f"container:{found.identity}/{plain}"
    for given in ["", " ", "---", "../.."]:
        with pytest.raises(InvalidInput, match="cannot name a container"):
            project.container_name(given)
