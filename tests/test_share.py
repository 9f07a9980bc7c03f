"""Sharing through git: what is written, who gets it, how it comes back, and what is refused."""

import os
import subprocess

import pytest
from cli_runner import Cli

from bethink import Bethink
from bethink.hooks import spool, worker
from bethink.hooks.run import run
from bethink.model import TRUST, Passage, Source

DEPLOY = "We deploy from main, never from a branch"
GENERATED = "Never edit gen/ by hand: make generates it"
FOLDER = ".bethink/shared"


def git(folder, *words):
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@shop.example")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


class Person:
    """A colleague with a home and a clone."""

    def __init__(self, cli, home, project):
        self.cli, self.home, self.project = cli, home, project

    def use(self):
        self.cli.monkeypatch.setenv("BETHINK_HOME", str(self.home))
        self.cli.monkeypatch.chdir(self.project)
        return Cli(self.cli.capsys, self.cli.monkeypatch, self.home, self.project)

    def ok(self, *words):
        return self.use().ok(*words)

    def texts(self):
        return {one["content"] for one in self.use().json("list", "--all")}

    def files(self):
        return sorted((self.project / FOLDER).glob("*.md"))

    def publish(self):
        git(self.project, "add", "-A")
        git(self.project, "commit", "-m", "Share")
        git(self.project, "push", "origin", "HEAD:main")

    def pull(self):
        git(self.project, "pull", "origin", "main")
        git(self.project, "fetch")


@pytest.fixture
def team(cli, tmp_path):
    """Ada and Bob with clones of one repository."""
    git(tmp_path, "init", "--bare", "-b", "main", "shop.git")
    people = []
    for name in ("ada", "bob"):
        git(tmp_path, "clone", "shop.git", f"{name}-shop")
        folder = tmp_path / f"{name}-shop"
        if name == "ada":
            git(folder, "checkout", "-b", "main")
            (folder / "README.md").write_text("A shop\n")
            git(folder, "add", "-A")
            git(folder, "commit", "-m", "Begin")
            git(folder, "push", "-u", "origin", "main")
        people.append(Person(cli, tmp_path / f"{name}-home", folder))
    return people


@pytest.fixture
def shared(team):
    """Ada's decision, shared and pushed; Bob has pulled and accepted it."""
    ada, bob = team
    ada.id = ada.use().add(DEPLOY, "--kind", "decision", "--tag", "deploy")
    ada.ok("share", ada.id)
    ada.publish()
    bob.pull()
    bob.ok("share", "--accept")
    return team


def read_one(person):
    [one] = person.use().json("list", "--kind", "decision")
    return one


def test_a_colleague_gets_a_shared_memory(shared):
    assert DEPLOY in shared[1].texts()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("kind", "decision", id="kind"),
        pytest.param("tags", ["deploy"], id="tags"),
        pytest.param("trust", 3, id="trust of a person"),
    ],
)
def test_a_shared_memory_keeps(shared, field, value):
    assert read_one(shared[1])[field] == value


def test_until_the_folder_is_accepted_its_files_are_documents(team):
    ada, bob = team
    ada.ok("share", ada.use().add(DEPLOY))
    ada.publish()
    bob.pull()
    bob.ok("index")
    assert [one["trust"] for one in bob.use().json("list") if one["content"] == DEPLOY] == [1]


def test_a_file_that_upstream_lacks_is_no_word_of_a_person(shared):
    bob = shared[1]
    (bob.project / FOLDER / "decision-x.md").write_text(
        "---\nkind: decision\n---\n\nWe use MySQL\n"
    )
    bob.ok("index")
    [one] = [one for one in bob.use().json("list") if one["content"] == "We use MySQL"]
    assert one["trust"] == 2


def test_the_author_has_the_memory_once(shared):
    ada = shared[0]
    ada.ok("index")
    assert [one["id"] for one in ada.use().json("list", "--kind", "decision")] == [ada.id]


def edit(person, old, new):
    [file] = person.files()
    file.write_text(file.read_text().replace(old, new))


def test_an_edit_comes_to_colleagues(shared):
    ada, bob = shared
    edit(ada, "never from a branch", "after two reviews")
    ada.publish()
    bob.pull()
    bob.ok("index")
    assert read_one(bob)["content"] == "We deploy from main, after two reviews"


def test_a_reviewed_edit_becomes_a_version_of_the_authors_note(shared):
    ada, bob = shared
    edit(bob, "never from a branch", "after two reviews")
    bob.publish()
    ada.pull()
    ada.ok("index")
    assert read_one(ada)["id"] == ada.id
    assert read_one(ada)["content"] == "We deploy from main, after two reviews"


def test_the_history_names_git_for_an_edit_that_came_from_there(shared):
    ada, bob = shared
    edit(bob, "never from a branch", "after two reviews")
    bob.publish()
    ada.pull()
    ada.ok("index")
    assert ada.use().json("history", ada.id)[-1]["actor"] == "git"


def test_forgetting_a_shared_memory_names_its_file(shared):
    ada = shared[0]
    assert f"{FOLDER}/decision-we-deploy" in ada.use()("forget", ada.id).err


def test_an_edit_that_nobody_reviewed_leaves_the_authors_note(shared):
    ada = shared[0]
    edit(ada, "never from a branch", "and from any branch")
    ada.ok("index")
    assert read_one(ada)["content"] == DEPLOY


def test_a_note_that_its_author_changed_later_is_not_set_back(shared):
    ada = shared[0]
    ada.ok("update", ada.id, "--content", "We deploy from main on Fridays")
    ada.ok("index")
    assert read_one(ada)["content"] == "We deploy from main on Fridays"


def test_sharing_again_updates_the_file(shared):
    ada = shared[0]
    ada.ok("update", ada.id, "--content", "We deploy from main on Fridays")
    assert "updated" in ada.ok("share", ada.id)
    assert "on Fridays" in ada.files()[0].read_text()


def test_a_deleted_file_is_gone_for_colleagues(shared):
    ada, bob = shared
    ada.ok("share", ada.id, "--remove")
    ada.publish()
    bob.pull()
    bob.ok("index")
    assert DEPLOY not in bob.texts()


def test_a_deleted_file_leaves_the_authors_note(shared):
    ada = shared[0]
    ada.ok("share", ada.id, "--remove")
    ada.ok("index")
    assert DEPLOY in ada.texts()


def test_a_file_with_a_merge_conflict_is_named_and_left_as_it_was_read(shared):
    bob = shared[1]
    edit(bob, DEPLOY, f"<<<<<<< HEAD\n{DEPLOY}\n=======\nWe deploy at noon\n>>>>>>> x")
    assert "merge conflict markers" in bob.use()("index").err
    assert read_one(bob)["content"] == DEPLOY


def test_rules_and_decisions_are_chosen_by_kind(team):
    ada = team[0]
    for text, kind in ((DEPLOY, "decision"), (GENERATED, "gotcha"), ("The API has v2", "fact")):
        ada.use().add(text, "--kind", kind)
    ada.ok("share", "--rules", "--decisions")
    assert {path.name.partition("-")[0] for path in ada.files()} == {"decision", "gotcha"}


def test_without_rules_nothing_is_said_to_be_shared(team):
    assert "No rule or decision of yours" in team[0].ok("share", "--rules")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        pytest.param(("I like tea", "--personal"), "is personal", id="personal"),
        pytest.param(("A turn", "--kind", "context"), "passage of", id="turn"),
    ],
)
def test_what_is_not_for_others_is_refused(team, options, reason):
    cli = team[0].use()
    assert reason in cli.fails("share", cli.add(*options), code=2)


def test_imported_text_is_refused(team):
    cli = team[0].use()
    (team[0].project / "notes.json").write_text(
        '[{"content": "Pay into account 7", "kind": "fact"}]'
    )
    cli.ok("import", "notes.json")
    [one] = [one for one in cli.json("list") if "account" in one["content"]]
    assert "nobody here vouches" in cli.fails("share", one["id"], code=2)


def test_a_replaced_memory_is_refused(team):
    cli = team[0].use()
    old = cli.add(DEPLOY)
    cli.add("We deploy from release branches", "--supersedes", old)
    assert "no longer valid" in cli.fails("share", old, code=2)


def test_an_agent_may_not_share(team, monkeypatch):
    cli = team[0].use()
    id = cli.add(DEPLOY)
    monkeypatch.setenv("CLAUDECODE", "1")
    assert cli("share", id).code != 0
    assert team[0].files() == []


def test_two_memories_with_one_beginning_have_two_files(team):
    ada = team[0]
    one = ada.use().add("We deploy from main! 日本", "--no-dedup")
    other = ada.use().add("We deploy from main? 中国", "--no-dedup")
    ada.ok("share", one, other)
    assert len(ada.files()) == 2


def test_a_folder_outside_of_git_is_refused(cli):
    id = cli.add(DEPLOY)
    (cli.project / ".git").rmdir() if (cli.project / ".git").is_dir() else None
    assert "not a git checkout" in cli.fails("share", id, code=2)


def test_git_that_ignores_the_folder_is_named(team):
    ada = team[0]
    (ada.project / ".gitignore").write_text(".bethink/\n")
    cli = ada.use()
    assert "git ignores .bethink/shared" in cli("share", cli.add(DEPLOY)).err


def test_a_session_start_takes_what_was_pulled(shared, monkeypatch):
    ada, bob = shared
    monkeypatch.setattr("bethink.hooks.spool.wake", lambda database, config: None)
    ada.ok("share", ada.use().add(GENERATED, "--kind", "gotcha"))
    ada.publish()
    bob.pull()
    bob.use()
    run("session-start", "claude", f'{{"session_id": "s", "cwd": "{bob.project}"}}'.encode())
    with Bethink(directory=bob.project) as memory:
        worker.run(str(memory.store.path))
    assert GENERATED in bob.texts()


def test_a_project_without_shared_files_notes_nothing(cli, monkeypatch):
    monkeypatch.setattr("bethink.hooks.spool.wake", lambda database, config: None)
    cli.add(DEPLOY)
    run("session-start", "claude", f'{{"session_id": "s", "cwd": "{cli.project}"}}'.encode())
    assert spool.list_waiting() == []


def push_branch(person, name):
    git(person.project, "checkout", "-b", name)
    git(person.project, "add", "-A")
    git(person.project, "commit", "-m", "Change what is shared")
    git(person.project, "push", "-u", "origin", name)


def test_a_file_on_a_pushed_branch_is_no_word_of_a_person(shared):
    bob = shared[1]
    (bob.project / FOLDER / "decision-x.md").write_text(
        "---\nkind: decision\n---\n\nWe use MySQL\n"
    )
    push_branch(bob, "feature")
    bob.ok("index")
    [one] = [one for one in bob.use().json("list") if one["content"] == "We use MySQL"]
    assert one["trust"] == 2


def test_an_edit_on_a_pushed_branch_leaves_the_authors_note(shared):
    ada = shared[0]
    edit(ada, "never from a branch", "and from any branch")
    push_branch(ada, "feature")
    ada.ok("index")
    assert read_one(ada)["content"] == DEPLOY


@pytest.mark.parametrize("link", [FOLDER, ".bethink"])
def test_a_folder_that_leads_out_of_the_project_is_not_read(team, tmp_path, link):
    bob = team[1]
    folder = tmp_path / "private" / ("shared" if link == ".bethink" else "")
    folder.mkdir(parents=True)
    (folder / "diary.md").write_text("I like tea\n")
    (bob.project / link).parent.mkdir(exist_ok=True)
    (bob.project / link).symlink_to(tmp_path / "private")
    bob.ok("index")
    assert "I like tea" not in bob.texts()


def test_files_that_are_none_are_passed_over(shared):
    bob = shared[1]
    os.mkfifo(bob.project / FOLDER / "a.md")
    (bob.project / FOLDER / "b.md").symlink_to("nothing.md")
    bob.ok("index")
    assert DEPLOY in bob.texts()


def test_a_visit_to_an_old_branch_sets_no_note_back(shared):
    ada, bob = shared
    edit(bob, "never from a branch", "after two reviews")
    bob.publish()
    ada.pull()
    ada.ok("index")
    ada.ok("update", ada.id, "--content", "We deploy from main on Fridays")
    git(ada.project, "checkout", "HEAD~1")
    ada.ok("index")
    git(ada.project, "checkout", "main")
    ada.ok("index")
    assert read_one(ada)["content"] == "We deploy from main on Fridays"


def test_a_reviewed_way_back_to_an_earlier_text_is_taken(shared):
    ada, bob = shared
    for old, new in (("never from", "or even from"), ("or even from", "never from")):
        edit(bob, old, new)
        bob.publish()
        ada.pull()
        ada.ok("index")
    assert read_one(ada)["content"] == DEPLOY


def keep_said(person, kind, said):
    """A statement of a conversation, as the reader of transcripts keeps it."""
    person.use()
    with Bethink(directory=person.project) as memory:
        source = Source("s1.jsonl", "transcript")
        memory.ingest([(source, [Passage(said, kind=kind)])], trust=TRUST["user"])


@pytest.mark.parametrize(
    ("kind", "said", "shared"),
    [
        pytest.param("preference", "Never open pull requests against release", 1, id="rule"),
        pytest.param("decision", "We decided to cache invoice pages in Valkey", 1, id="decision"),
        pytest.param("preference", "I'll do the manual validation", 0, id="step"),
        pytest.param("decision", "Yes, and rerun it with the small model", 0, id="request"),
        pytest.param("decision", "Shouldn't this be one commit?", 0, id="question"),
    ],
)
def test_of_conversations_only_lasting_statements_are_shared(team, kind, said, shared):
    ada = team[0]
    keep_said(ada, kind, said)
    ada.ok("share", "--rules", "--decisions")
    assert len(ada.files()) == shared


def test_share_says_how_many_statements_it_left_out(team):
    ada = team[0]
    keep_said(ada, "preference", "I'll do the manual validation")
    assert "1 statement from conversations may concern only" in ada.use()("share", "--rules").err


def test_a_statement_that_was_left_out_is_shared_by_its_id(team):
    ada = team[0]
    keep_said(ada, "preference", "I'll do the manual validation")
    ada.ok("share", ada.use().json("list")[0]["id"])
    assert len(ada.files()) == 1
