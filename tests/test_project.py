"""Which project a directory belongs to: its id comes from our registry, never from the folder."""

import shutil
import subprocess
import sys
from collections import Counter

import pytest
from stores import pick
from trees import git

from bethink import Bethink, project, registry
from bethink.config import Config
from bethink.errors import InvalidInput


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A data directory of the test's own, and no `.bethink` above it."""
    monkeypatch.setenv("BETHINK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(project.Path, "home", lambda: tmp_path / "nobody")
    return tmp_path / "home"


def make_repository(root):
    (root / "src" / "deep").mkdir(parents=True)
    git(root, "init")
    git(root, "commit", "--allow-empty", "-m", "first")
    return root


@pytest.fixture
def repository(tmp_path):
    return make_repository(tmp_path / "shop")


@pytest.fixture
def open_memory(tmp_path):
    """Opens the memory of a folder, always in the same database."""

    def open_(folder):
        config = Config(embedding="none")
        return Bethink(tmp_path / "memory.db", directory=folder, config=config)

    return open_


@pytest.fixture
def tell(open_memory):
    """Stores a statement in the project of a folder. Returns the project's id."""

    def add(folder, text="We deploy from main"):
        with open_memory(folder) as memory:
            memory.add(text)
            return memory.project.identity

    return add


@pytest.fixture
def recall(open_memory):
    """Lists what the project of a folder knows."""

    def list_(folder):
        with open_memory(folder) as memory:
            return [one.content for one in memory.list()]

    return list_


def identity(folder):
    return project.find(folder).identity


# Which folders are one project


def test_a_repository_is_one_project_with_its_folders(repository, monkeypatch):
    found = project.find(repository)
    assert (found.root, found.worktree, found.name) == (repository, repository, "shop")
    assert found.local_database == repository / ".bethink" / "memory.db"
    assert project.find(repository / "src" / "deep") == found
    monkeypatch.chdir(repository / "src")
    assert project.find() == found


def test_a_submodule_is_a_project_by_itself(repository, tmp_path):
    library = make_repository(tmp_path / "lib")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", str(library), "lib")
    found = project.find(repository / "lib")
    assert (found.root, found.name) == (repository / "lib", "lib")
    assert found.common == repository / ".git" / "modules" / "lib"
    assert len({identity(repository / "lib"), identity(repository), identity(library)}) == 3


def test_worktrees_share_the_identity_of_their_root(repository, tmp_path):
    git(repository, "worktree", "add", str(tmp_path / "elsewhere"))
    linked, main = project.find(tmp_path / "elsewhere"), project.find(repository)
    assert pick(linked, "identity scope root name") == pick(main, "identity scope root name")
    assert linked.worktree == tmp_path / "elsewhere"


def test_worktrees_share_what_was_told_in_one_of_them(repository, tmp_path, tell, recall):
    git(repository, "worktree", "add", str(tmp_path / "elsewhere"))
    tell(tmp_path / "elsewhere")
    assert recall(repository) == recall(tmp_path / "elsewhere") == ["We deploy from main"]


def test_worktrees_of_a_bare_repository_are_one_project(repository, tmp_path, tell):
    git(tmp_path, "clone", "--bare", str(repository), "shop.git")
    for name in ("one", "two"):
        git(tmp_path / "shop.git", "worktree", "add", "-b", name, str(tmp_path / name))
    told = tell(tmp_path / "one")
    assert identity(tmp_path / "two") == identity(tmp_path / "shop.git") == told
    assert project.find(tmp_path / "one").root == tmp_path / "one"
    assert told != identity(repository)


def test_a_worktree_that_git_moved_stays_in_its_project(repository, tmp_path):
    git(repository, "worktree", "add", str(tmp_path / "before"))
    git(repository, "worktree", "move", str(tmp_path / "before"), str(tmp_path / "after"))
    assert identity(tmp_path / "after") == identity(repository)


def test_a_worktree_moved_by_hand_is_in_its_project_after_git_repaired_it(repository, tmp_path):
    git(repository, "worktree", "add", str(tmp_path / "before"))
    (tmp_path / "before").rename(tmp_path / "after")
    assert identity(tmp_path / "after") != identity(repository)
    git(tmp_path / "after", "worktree", "repair")
    assert identity(tmp_path / "after") == identity(repository)


def test_outside_git_the_nearest_marked_folder_counts(tmp_path):
    inner = tmp_path / "notes" / "2026"
    inner.mkdir(parents=True)
    assert project.find(inner).root == inner
    (tmp_path / "notes" / ".bethink").mkdir()
    assert project.find(inner).root == tmp_path / "notes"
    assert project.find(inner).scope == project.find(tmp_path / "notes").scope


def test_two_folders_outside_git_are_two_projects(tmp_path, tell):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    assert tell(tmp_path / "a") != tell(tmp_path / "b")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"nonsense", id="nonsense"),
        pytest.param(b"gitdir", id="cut off"),
        pytest.param(b"\xff\xfe\x00", id="binary"),
        pytest.param(b"gitdir: \x00\x00", id="no path"),
    ],
)
def test_a_git_file_that_says_nothing_makes_no_repository(tmp_path, text):
    (tmp_path / ".git").write_bytes(text)
    found = project.find(tmp_path)
    assert (found.root, found.common) == (tmp_path, None)


@pytest.mark.parametrize(
    "given,plain",
    [
        pytest.param("react-router", "react-router", id="react-router-react-router"),
        pytest.param(" React Router ", "react-router", id="react-router-react-router-2"),
        pytest.param("React__Router!", "react-router", id="react-router-react-router-3"),
        pytest.param("v2", "v2", id="v2"),
        pytest.param("a/../b", "a-b", id="b"),
    ],
)
def test_containers_have_plain_names(tmp_path, given, plain):
    found = project.find(tmp_path)
    assert found.container(given) == f"container:{found.identity}/{plain}"


@pytest.mark.parametrize("given", ["", " ", "---", "../.."])
def test_a_container_needs_a_letter_or_digit_in_its_name(given):
    with pytest.raises(InvalidInput, match="cannot name a container"):
        project.container_name(given)


# Strangers


def test_a_git_file_may_not_bring_its_own_worktree_folder(repository, tmp_path, tell, recall):
    """An unpacked archive whose `.git` leads to a folder of its own, which names another repository as the common one."""
    tell(repository)
    (tmp_path / "unpacked" / "g").mkdir(parents=True)
    (tmp_path / "unpacked" / ".git").write_text("gitdir: g\n")
    (tmp_path / "unpacked" / "g" / "commondir").write_text("../../shop/.git\n")
    (tmp_path / "unpacked" / "g" / "gitdir").write_text("../.git\n")
    assert recall(tmp_path / "unpacked") == []
    assert tell(tmp_path / "unpacked") != identity(repository)


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(".git/worktrees/linked", id="another worktree"),
        pytest.param(".git", id="the main checkout"),
        pytest.param("lib/.git", id="a submodule's file"),
        pytest.param(".git/modules/lib", id="a submodule"),
    ],
)
def test_a_git_file_does_not_join_a_repository_that_does_not_name_it(
    repository, tmp_path, tell, recall, place
):
    git(repository, "worktree", "add", str(tmp_path / "linked"))
    library = make_repository(tmp_path / "library")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", str(library), "lib")
    for told in (repository, repository / "lib"):
        tell(told)
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    (hostile / ".git").write_text(f"gitdir: {repository / place}\n")
    assert recall(hostile) == []
    assert project.find(hostile).root == hostile


def test_a_link_to_another_repository_does_not_join_it(repository, tmp_path, tell, recall):
    tell(repository)
    (tmp_path / "hostile").mkdir()
    (tmp_path / "hostile" / ".git").symlink_to(repository / ".git")
    assert recall(tmp_path / "hostile") == []


def test_a_forged_id_of_version_0_18_does_not_join_a_project(repository, tmp_path, tell, recall):
    known = tell(repository)
    forged = make_repository(tmp_path / "unpacked")
    (forged / ".git" / project.OLD_NOTE).write_text(f"{known}\n{tmp_path / 'gone'}\n")
    assert recall(forged) == []


def test_marks_linked_from_another_repository_do_not_count(repository, tmp_path, tell, recall):
    tell(repository)
    forged = make_repository(tmp_path / "unpacked")
    repository.rename(tmp_path / "kiosk")
    (forged / ".git" / registry.MARKS_FOLDER).symlink_to(
        tmp_path / "kiosk" / ".git" / registry.MARKS_FOLDER
    )
    assert recall(forged) == []
    assert recall(tmp_path / "kiosk") == ["We deploy from main"]


def test_a_mark_that_nobody_registered_does_not_count(repository, tmp_path, tell, recall):
    known = tell(repository)
    forged = make_repository(tmp_path / "unpacked")
    shutil.rmtree(repository)
    (forged / ".git" / registry.MARKS_FOLDER).mkdir()
    (forged / ".git" / registry.MARKS_FOLDER / ("0" * 32)).write_text(f"{known}\n{repository}\n")
    assert recall(forged) == []


def test_an_id_cannot_be_computed_from_the_path(tmp_path, monkeypatch):
    (tmp_path / "notes").mkdir()
    here = identity(tmp_path / "notes")
    monkeypatch.setenv("BETHINK_HOME", str(tmp_path / "another home"))
    assert identity(tmp_path / "notes") != here


# Moves and copies


def test_looking_registers_nothing(repository, home, open_memory):
    with open_memory(repository) as memory:
        memory.search("anything", mode="keyword")
    assert registry.list_entries() == []
    assert not (repository / ".git" / registry.MARKS_FOLDER).exists()


def test_the_first_write_does_not_change_the_id(repository, tell):
    before = identity(repository)
    assert tell(repository) == before == identity(repository)


def test_a_moved_repository_keeps_its_memories(repository, tmp_path, tell, recall):
    tell(repository)
    repository.rename(tmp_path / "kiosk")
    assert recall(tmp_path / "kiosk" / "src") == ["We deploy from main"]
    tell(tmp_path / "kiosk", "We deploy on Mondays")
    (tmp_path / "kiosk").rename(tmp_path / "stand")
    assert len(recall(tmp_path / "stand")) == 2


def test_a_repository_that_came_back_keeps_its_memories(repository, tmp_path, tell, recall):
    tell(repository)
    repository.rename(tmp_path / "kiosk")
    tell(tmp_path / "kiosk", "We deploy on Mondays")
    (tmp_path / "kiosk").rename(repository)
    assert len(recall(repository)) == 2


def test_another_repository_in_the_place_of_a_moved_one_is_another_project(
    repository, tmp_path, tell, recall
):
    tell(repository)
    repository.rename(tmp_path / "kiosk")
    make_repository(tmp_path / "shop")
    assert recall(tmp_path / "shop") == []
    assert tell(tmp_path / "shop", "We deploy never") != identity(tmp_path / "kiosk")
    assert recall(tmp_path / "kiosk") == ["We deploy from main"]


def test_a_clone_is_another_project(repository, tmp_path, tell, recall):
    tell(repository)
    git(tmp_path, "clone", str(repository), "clone")
    assert recall(tmp_path / "clone") == []


def test_a_copy_is_another_project(repository, tmp_path, tell, recall):
    known = tell(repository)
    shutil.copytree(repository, tmp_path / "copy")
    assert recall(tmp_path / "copy") == []
    assert tell(tmp_path / "copy", "We deploy the copy") != known
    assert recall(repository) == ["We deploy from main"]
    assert recall(tmp_path / "copy") == ["We deploy the copy"]


def test_a_copy_of_a_repository_that_is_gone_is_the_repository(repository, tmp_path, tell, recall):
    tell(repository)
    shutil.copytree(repository, tmp_path / "restored")
    shutil.rmtree(repository)
    assert recall(tmp_path / "restored") == ["We deploy from main"]


def test_a_repository_that_cannot_be_looked_at_is_not_gone(tmp_path, tell, recall):
    original = make_repository(tmp_path / "disk" / "shop")
    tell(original)
    shutil.copytree(original, tmp_path / "copy")
    (tmp_path / "disk").rename(tmp_path / "unmounted")
    (tmp_path / "disk").symlink_to(tmp_path / "disk")  # a link to itself cannot be entered
    assert recall(tmp_path / "copy") == []


def test_a_repository_seen_at_another_path_in_a_container_is_the_same(
    repository, tmp_path, tell, recall
):
    """The data directory and the repository are mounted, the latter at another path, and back on the host all is as it was."""
    tell(repository)
    repository.rename(tmp_path / "workspace")
    tell(tmp_path / "workspace", "We deploy from a container")
    (tmp_path / "workspace").rename(repository)
    tell(repository, "We deploy from the host")
    repository.rename(tmp_path / "workspace")
    assert len(recall(tmp_path / "workspace")) == 3


def test_two_installations_may_use_one_repository(repository, tmp_path, monkeypatch):
    def register(home):
        monkeypatch.setenv("BETHINK_HOME", str(tmp_path / home))
        project.pin(project.find(repository)._replace(confirmed=True))
        return identity(repository)

    assert register("first") != register("second")
    assert [register("first"), register("second")] == [register("first"), register("second")]
    repository.rename(tmp_path / "kiosk")
    monkeypatch.setenv("BETHINK_HOME", str(tmp_path / "first"))
    assert project.find(tmp_path / "kiosk").confirmed


def test_a_folder_that_is_put_under_git_keeps_its_memories(tmp_path, tell, recall):
    folder = tmp_path / "new"
    folder.mkdir()
    tell(folder)
    git(folder, "init")
    assert recall(folder) == ["We deploy from main"]
    tell(folder, "We deploy with git")
    assert len(recall(folder.rename(tmp_path / "newer"))) == 2


def test_a_renamed_folder_outside_git_is_another_project(tmp_path, tell, recall):
    (tmp_path / "notes").mkdir()
    tell(tmp_path / "notes")
    assert recall((tmp_path / "notes").rename(tmp_path / "texts")) == []


# Projects of version 0.18


@pytest.fixture
def old_project(tmp_path, open_memory, monkeypatch):
    """Stores a statement under an id as version 0.18 assigned it, without a registry."""

    def make(folder, old_id):
        with monkeypatch.context() as patch:
            patch.setattr(project, "pin", lambda _: None)
            with open_memory(folder) as memory:
                memory.project = memory.project._replace(identity=old_id)
                memory.add("We deployed with 0.18")

    return make


def test_a_repository_of_version_0_18_keeps_its_memories(repository, old_project, tell, recall):
    note = repository / ".git" / project.OLD_NOTE
    note.write_text(f"{'ab' * 8}\n{repository / '.git'}\n")
    old_project(repository, "ab" * 8)
    assert recall(repository) == ["We deployed with 0.18"]
    assert tell(repository) == "ab" * 8 == identity(repository)


def test_a_repository_of_version_0_18_may_be_moved_afterwards(
    repository, old_project, tmp_path, recall
):
    note = repository / ".git" / project.OLD_NOTE
    note.write_text(f"{'ab' * 8}\n{repository / '.git'}\n")
    old_project(repository, "ab" * 8)
    recall(repository)
    assert recall(repository.rename(tmp_path / "kiosk")) == ["We deployed with 0.18"]


def test_worktrees_of_a_bare_repository_of_version_0_18_keep_their_memories(
    repository, tmp_path, old_project, recall
):
    git(tmp_path, "clone", "--bare", str(repository), "shop.git")
    for name in ("one", "two"):
        git(tmp_path / "shop.git", "worktree", "add", "-b", name, str(tmp_path / name))
    (tmp_path / "shop.git" / project.OLD_NOTE).write_text(f"{'ab' * 8}\n{tmp_path}/shop.git\n")
    old_project(tmp_path / "one", "ab" * 8)
    assert recall(tmp_path / "two") == ["We deployed with 0.18"]


def test_a_folder_of_version_0_18_keeps_its_memories(tmp_path, old_project, tell, recall):
    (tmp_path / "notes").mkdir()
    old_id = project._hash(tmp_path / "notes")
    old_project(tmp_path / "notes", old_id)
    assert recall(tmp_path / "notes") == ["We deployed with 0.18"]
    assert tell(tmp_path / "notes") == old_id


def test_a_forged_note_does_not_take_over_a_project_of_version_0_18(
    repository, old_project, tmp_path, recall
):
    for folder in (repository, forged := make_repository(tmp_path / "unpacked")):
        (folder / ".git" / project.OLD_NOTE).write_text(f"{'ab' * 8}\n{tmp_path / 'gone'}\n")
    old_project(repository, "ab" * 8)
    assert recall(forged) == []
    assert recall(repository) == ["We deployed with 0.18"]


# Joining


def test_a_clone_continues_a_project_that_the_user_joins(cli, tmp_path):
    make_repository(tmp_path / "old")
    cli.ok("add", "We deploy from main", "--project", str(tmp_path / "old"))
    git(tmp_path, "clone", str(tmp_path / "old"), "clone")
    here = ("--project", str(tmp_path / "clone"))
    assert cli.json("list", *here) == []
    assert cli.json("join", "old", *here)["memories"] == 1
    assert [one["content"] for one in cli.json("list", *here)] == ["We deploy from main"]


def test_another_repository_continues_the_one_in_its_place_if_the_user_says_so(cli, tmp_path):
    make_repository(tmp_path / "old")
    here = ("--project", str(tmp_path / "old"))
    cli.ok("add", "We deploy from main", *here)
    shutil.rmtree(tmp_path / "old")
    make_repository(tmp_path / "old")
    assert cli.json("list", *here) == []
    cli.ok("join", *here)
    assert len(cli.json("list", *here)) == 1


def test_a_folder_leaves_its_project(cli):
    cli.add("We deploy from main")
    scope = cli.json("list")[0]["scope"]
    assert cli.json("join", "--leave")["left"] == {"scope": scope, "memories": 1}
    assert cli.json("list") == []
    cli.ok("join", scope)
    assert len(cli.json("list")) == 1


def test_a_process_that_runs_on_does_not_undo_a_join(open_memory, tmp_path, repository):
    with open_memory(repository) as memory:
        project.join(project.find(repository), "ab" * 8, "shop")
        memory.add("We deploy from main")
    found = project.find(repository)
    assert (found.identity, found.team) == ("ab" * 8, "shop")


def test_an_agent_may_not_say_which_project_a_folder_is(cli, tmp_path):
    make_repository(tmp_path / "old")
    cli.ok("add", "We deploy from main", "--project", str(tmp_path / "old"))
    assert "is for people" in cli.fails("join", "old", "--for-agent", code=2)


def test_only_a_project_that_is_known_can_be_joined(cli):
    assert "no other project 'old'" in cli.fails("join", "old", code=1)


def test_a_name_of_several_projects_is_not_guessed(cli, tmp_path):
    for parent in ("a", "b"):
        (tmp_path / parent / "old").mkdir(parents=True)
        cli.ok("add", "We deploy", "--project", str(tmp_path / parent / "old"))
    assert "Name one by its scope" in cli.fails("join", "old", code=1)


def test_doctor_names_a_damaged_entry(cli):
    cli.add("We deploy from main")
    (registry.folder() / f"{'0' * 32}.json").write_text("nonsense")
    found = cli("doctor").out
    assert "PROBLEM  registry" in found and "0" * 32 in found


# The registry


def test_a_lost_registry_is_made_anew_from_the_database(repository, home, tmp_path, tell, recall):
    (tmp_path / "notes").mkdir()
    known = tell(repository), tell(tmp_path / "notes", "We take notes")
    shutil.rmtree(home / "projects")
    registry._load_key.cache_clear()
    assert recall(repository) == ["We deploy from main"]
    assert recall(tmp_path / "notes") == ["We take notes"]
    assert (identity(repository), identity(tmp_path / "notes")) == known


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b'{"made": 1, "rec', id="cut off"),
        pytest.param(b"[]", id="another value"),
        pytest.param(b'{"made": 1, "records": [{"id": "../.."}]}', id="no id"),
        pytest.param(b'{"made": 1, "records": ["text"]}', id="no record"),
        pytest.param(b"[" * 200_000, id="deep"),
    ],
)
def test_a_damaged_entry_is_made_anew_from_the_database(repository, damage, tell, recall):
    known = tell(repository)
    registry.file_of(str(repository)).write_bytes(damage)
    assert registry.list_damaged() == [registry.file_of(str(repository))]
    assert recall(repository) == ["We deploy from main"]
    assert identity(repository) == known
    assert registry.list_damaged() == []


def test_a_damaged_entry_concerns_its_own_project_alone(repository, tmp_path, tell):
    other = make_repository(tmp_path / "other")
    known = tell(other)
    tell(repository)
    registry.file_of(str(repository)).write_bytes(b"nonsense")
    assert identity(other) == known


def test_a_registry_that_cannot_be_written_costs_no_memories(repository, home, tell, recall):
    home.mkdir()
    (home / "projects").touch()  # where a folder is needed
    tell(repository)
    registry._load_key.cache_clear()  # as in another process
    assert recall(repository) == ["We deploy from main"]


def test_a_repository_that_cannot_be_written_is_known_by_its_place(repository, tell, recall):
    (repository / ".git" / registry.MARKS_FOLDER).touch()  # where a folder is needed
    tell(repository)
    assert recall(repository) == ["We deploy from main"]


def test_an_interrupted_registration_is_done_again(repository, tell, recall, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(registry, "write", stop)
        tell(repository)
    known = tell(repository)
    assert identity(repository) == known
    assert recall(repository) == ["We deploy from main"]


FIRST = """
import sys
from pathlib import Path
from bethink import project
found = project.find(Path(sys.argv[1]))
project.pin(found._replace(confirmed=True))
print(found.identity, project.find(Path(sys.argv[1])).identity)
"""


def test_processes_that_find_a_project_at_the_same_time_agree(repository):
    words = [sys.executable, "-c", FIRST, str(repository)]
    running = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    found = {id for one in running for id in one.communicate(timeout=60)[0].split()}
    assert found == {identity(repository)}
    (entry,) = registry.list_entries()
    assert len(entry.records) == 1


def test_a_lookup_reads_the_same_few_files_however_many_projects_there_are(
    repository, tmp_path, tell
):
    def count_opened():
        opened = Counter()
        active = [True]

        def watch(event, arguments):
            if active[0] and event in ("open", "os.scandir", "os.listdir"):
                opened[event] += 1

        sys.addaudithook(watch)
        project.find(repository)
        active[0] = False
        return opened.total()

    tell(repository)
    before = count_opened()
    for number in range(50):
        (tmp_path / f"folder {number}").mkdir()
        registry.register(str(tmp_path / f"folder {number}"), None, f"{number:016x}")
    assert count_opened() == before <= 3
