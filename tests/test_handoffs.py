"""Handoffs: one per branch, readable, in a chain, with the memories that were used."""

import json
from datetime import timedelta

import pytest
from case_tables import cases, each, rules
from trees import git

from bethink.errors import InvalidInput, NotFound
from bethink.features import handoffs
from bethink.features.handoffs import Handoff, LatestHandoff, find_branch, find_latest, save_handoff

FULL = Handoff(
    "The cache is moved, the tests are not.",
    completed=("reads go to Valkey",),
    in_progress_blocked=("writes wait for the migration",),
    key_decisions=("We switched from Redis to Valkey",),
    next_steps=("run the migration", "delete Redis"),
)


@pytest.fixture
def memory(open_memory, tmp_path):
    head(tmp_path / "project", "ref: refs/heads/main\n")
    return open_memory()


def head(folder, text):
    (folder / ".git").mkdir(exist_ok=True)
    (folder / ".git" / "HEAD").write_text(text)


def branch_of(text, folder):
    head(folder, text)
    return find_branch(folder)


READ = {
    "handoffs-the-branch-is-read-from": branch_of,
    "handoffs-markdown-is-understood": lambda text, _: handoffs.parse_handoff(text),
}


@rules(READ, globals())
def test_branches_and_markdown_are_understood(tmp_path, function, given, expected):
    assert function(*given, tmp_path) == expected


def test_a_linked_worktree_has_a_branch_of_its_own(tmp_path):
    (tmp_path / "shop").mkdir()
    git(tmp_path / "shop", "init", "-b", "main")
    git(tmp_path / "shop", "commit", "--allow-empty", "-m", "first")
    git(tmp_path / "shop", "worktree", "add", "-b", "other", str(tmp_path / "linked"))
    assert (find_branch(tmp_path / "shop"), find_branch(tmp_path / "linked")) == ("main", "other")
    git(tmp_path / "linked", "checkout", "--detach")
    assert len(find_branch(tmp_path / "linked")) == 7


def test_a_handoff_is_a_readable_memory_with_its_fields_beside_it(memory, monkeypatch):
    used = memory.add("Redis holds sessions", kind="fact").id
    batches, write = [], memory.store.write
    monkeypatch.setattr(memory.store, "write", lambda batch: batches.append(batch) or write(batch))
    saved = save_handoff(memory, FULL._replace(memory_ids=(used[:14],)))
    assert len(batches) == 1, "it goes in with its relations in one write"
    one = saved.memory
    assert (saved.new, one.kind, one.scope) == (True, "handoff", memory.scope)
    assert one.summary == FULL.summary
    assert one.content == (
        "# Handoff: project, branch main\n\nThe cache is moved, the tests are not.\n\n## Done\n\n- reads go to Valkey\n\n"
        "## In progress or blocked\n\n- writes wait for the migration\n\n## Decisions\n\n- We switched from Redis to Valkey\n\n"
        "## Next\n\n- run the migration\n- delete Redis"
    )
    kept = FULL._replace(project="project", branch="main", memory_ids=(used,))
    assert handoffs.read_handoff(one) == kept
    assert memory.one(used).access_count == 1
    (relation,) = memory.relations(one.id)
    assert (relation.source, relation.target, relation.type) == (one.id, used, "relates_to")


def test_a_handoff_replaces_the_last_of_its_branch_alone_and_the_same_again_is_no_new_one(memory):
    decision = memory.add("We use Redis for sessions", kind="decision").id
    first = save_handoff(memory, FULL).memory.id
    other = save_handoff(memory, FULL._replace(branch="dev")).memory.id
    second = save_handoff(memory, FULL._replace(summary="All is moved."))
    assert second.supersedes == (first,)
    assert memory.one(first).superseded_by == second.memory.id
    assert memory.one(decision).superseded_by is None, "'switched from Redis' decides nothing here"
    assert memory.one(other).superseded_by is None
    assert [event.action for event in memory.history(first)] == ["add", "supersede"]
    used = memory.add("Redis holds sessions").id
    first = save_handoff(memory, FULL._replace(memory_ids=(used,)))
    again = save_handoff(memory, FULL._replace(memory_ids=(used,)))
    assert (again.new, again.memory.id) == (False, first.memory.id)
    assert memory.one(used).access_count == 2
    assert save_handoff(memory, FULL).new, "other memories make another handoff"


@each("handoff,said", "handoffs-what-makes-no-handoff-is", globals())
def test_what_makes_no_handoff_is_refused_in_a_sentence(memory, handoff, said):
    if said is None:
        assert "all of it" not in save_handoff(memory, handoff).memory.content
        return
    with pytest.raises(InvalidInput, match=said):
        save_handoff(memory, handoff)
    assert find_latest(memory) is None


def test_the_newest_of_this_branch_comes_first(memory, clock, tmp_path):
    with pytest.raises(NotFound, match="0123"):
        save_handoff(memory, FULL._replace(memory_ids=("0123",)))
    assert find_latest(memory) is None
    assert find_latest(memory) is None
    for branch, summary in (("main", "one"), ("dev", "two"), ("main", "three")):
        clock.move(minutes=1)
        save_handoff(memory, Handoff(summary, branch=branch))
    found = find_latest(memory)
    assert (found.handoff.summary, found.exact, found.asked) == ("three", True, "main")
    assert find_latest(memory, branch="dev").handoff.summary == "two"
    other = find_latest(memory, branch="gone")
    assert (other.handoff.summary, other.exact) == ("three", False)
    head(tmp_path / "project", "ref: refs/heads/dev\n")
    assert find_latest(memory).handoff.summary == "two"
    later = memory.clock() + timedelta(days=3)
    memory.clock = lambda: later
    assert find_latest(memory).days == 3


def test_metadata_comes_back_secrets_stay_out_and_a_foreign_name_is_a_label(memory):
    given = {"ticket": "SHOP-12", "risk": {"level": 3}}
    saved = save_handoff(memory, FULL._replace(metadata=given))
    assert find_latest(memory).handoff.metadata == given
    assert not save_handoff(memory, FULL._replace(metadata=given)).new
    token = "ghp_" + "a1B2" * 9
    again = save_handoff(memory, FULL._replace(metadata={"token": token}))
    assert again.supersedes == (saved.memory.id,)
    assert token not in json.dumps(find_latest(memory).handoff.metadata)
    token = "ghp_" + "a1B2" * 9
    said = {"summary": f"Use {token} to deploy", "next_steps": (f"revoke {token}",)}
    saved = save_handoff(memory, FULL._replace(**said, branch=f"x/{token}"))
    one = saved.memory
    assert token not in json.dumps(dict(one.metadata)) + one.content + one.summary
    again = save_handoff(memory, FULL._replace(branch=f"x/{token}"))
    assert again.supersedes == (saved.memory.id,)
    first = save_handoff(memory, Handoff("in other words", project="Shop App")).memory
    assert first.content.startswith("# Handoff: Shop App, branch main")
    labelled = Handoff("in other words", project="Shop App", branch="main")
    assert find_latest(memory).handoff == labelled
    second = save_handoff(memory, Handoff("of the same"))
    assert second.supersedes == (first.id,)
    assert find_latest(memory).handoff.project == "project"


def test_the_command_saves_shows_and_reads_stdin_and_files_and_wrong_use_is_a_sentence(cli):
    for argv, stdin, code in cases("handoffs-wrong-use-is-a-sentence"):
        cli.fails(*argv, code=code, stdin=stdin)
    head(cli.project, "ref: refs/heads/main\n")
    assert "There is no handoff for shop" in cli.fails("handoff", code=1)
    used = cli.add("Redis holds sessions")
    words = "--done a --done b --blocked c --decision d --next e --metadata ticket=SHOP-12".split()
    cli.ok("handoff", "save", "--summary", "Half done", "--memory", used, *words)
    shown = cli.ok("handoff")
    assert "Redis holds sessions" in shown and 'metadata: {"ticket": "SHOP-12"}' in shown
    value = cli.json("handoff", "show", "--branch", "dev")
    assert value["metadata"] == {"ticket": "SHOP-12"}
    assert (value["exact"], value["completed"], value["memory_ids"]) == (False, ["a", "b"], [used])
    assert cli.json("get", used)[0]["access_count"] == 2  # with this look
    assert cli.json("handoff", "save", stdin="Half done.\n## Next\n- go on\n")["status"] == "saved"
    assert cli.json("handoff")["next_steps"] == ["go on"]
    (cli.project / "note.md").write_text("From a file.\n## Done\n- all\n")
    for status in ("saved", "unchanged"):
        saved = cli.json("handoff", "save", "--file", "note.md", "--next", "rest")
        assert saved["status"] == status
    assert cli.json("handoff")["next_steps"] == ["rest"]


@each("days,age,stale", "handoffs-a-handoff-grows-old-visibly")
def test_a_handoff_grows_old_visibly(cli, monkeypatch, days, age, stale):
    cli.ok("handoff", "save", "--summary", "The cache is moved")
    monkeypatch.setattr(LatestHandoff, "days", property(lambda self: days))
    assert (f"It is {age}." in cli("handoff").err) == bool(age)
    record = cli.json("handoff")
    assert (record["age_days"], record["stale"]) == (days, stale)
    said = json.dumps({"cwd": str(cli.project), "source": "startup"})
    told = cli.ok("hook", "session-start", "--host", "claude", stdin=said)
    assert (f"Last handoff, {age}:" if age else "Last handoff:") in told
