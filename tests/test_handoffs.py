"""Handoffs: one per branch, readable, in a chain, with the memories that were used."""

import json
from datetime import timedelta

import pytest
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("ref: refs/heads/main\n", "main", id="ref-refs/heads/main"),
        pytest.param(
            "ref: refs/heads/feature/cache-2\n",
            "feature/cache-2",
            id="ref-refs/heads/feature/cache-2",
        ),
        pytest.param("ref: refs/heads/ünï\n", "ünï", id="ref-refs/heads/uni"),
        pytest.param(
            "0123456789abcdef0123456789abcdef01234567\n",
            "0123456",
            id="0123456789abcdef0123456789abcdef01234567",
        ),
        pytest.param("0123456789abcdef" * 4, "0123456", id="0123456789abcdef"),
        pytest.param("ref: refs/heads/.invalid\n", "", id="ref-refs/heads-invalid"),
        pytest.param("", "", id="empty"),
        pytest.param("garbage", "", id="garbage"),
        pytest.param("\x00ÿ", "", id="y"),
    ],
)
def test_the_branch_is_read_from_head(tmp_path, text, expected):
    assert branch_of(text, tmp_path) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("just a sentence", Handoff("just a sentence"), id="just-sentence"),
        pytest.param(
            "# Handoff\nHere.\n## Next steps\n1. one\n2) two\n* [x] three\n",
            Handoff("Here.", next_steps=("one", "two", "three")),
            id="handoff-here-next-steps-1-one-2-two-x-three",
        ),
        pytest.param(
            "Here.\n### Blocked\nwaiting\nfor review\n\n## Notes\nmore",
            Handoff("Here.\nmore", in_progress_blocked=("waiting for review",)),
            id="here-blocked-waiting-review-notes-more",
        ),
        pytest.param(
            "## Completed\n- a\n  goes on\n- b",
            Handoff("", completed=("a goes on", "b")),
            id="completed-goes-b",
        ),
        pytest.param("", Handoff(""), id="empty"),
        pytest.param("#" * 5000, Handoff("#" * 5000), id="number-sign"),
    ],
)
def test_a_handoff_is_parsed_from_markdown(text, expected):
    assert handoffs.parse_handoff(text) == expected


def test_a_linked_worktree_has_its_own_branch(tmp_path):
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


def test_a_handoff_replaces_the_last_of_its_branch(memory):
    decision = memory.add("We use Redis for sessions", kind="decision").id
    first = save_handoff(memory, FULL).memory.id
    other = save_handoff(memory, FULL._replace(branch="dev")).memory.id
    second = save_handoff(memory, FULL._replace(summary="All is moved."))
    assert second.supersedes == (first,)
    assert memory.one(first).superseded_by == second.memory.id
    assert memory.one(decision).superseded_by is None, "'switched from Redis' decides nothing here"
    assert memory.one(other).superseded_by is None
    assert [event.action for event in memory.history(first)] == ["add", "supersede"]


def test_the_same_handoff_is_not_saved_twice(memory):
    used = memory.add("Redis holds sessions").id
    first = save_handoff(memory, FULL._replace(memory_ids=(used,)))
    again = save_handoff(memory, FULL._replace(memory_ids=(used,)))
    assert (again.new, again.memory.id) == (False, first.memory.id)
    assert memory.one(used).access_count == 2
    assert save_handoff(memory, FULL).new, "other memories make another handoff"


@pytest.mark.parametrize(
    ("handoff", "said"),
    [
        pytest.param(Handoff(""), "no summary", id="empty"),
        pytest.param(Handoff(" \n"), "no summary", id="blank"),
        pytest.param(Handoff("x" * 30001), "characters; 30,000", id="x-30001"),
        pytest.param(Handoff("x", next_steps=("y" * 1000,) * 51), "characters; 30,000", id="x-y"),
        pytest.param(Handoff("x", metadata={"a": "b" * 30000}), "characters; 30,000", id="x-a"),
        pytest.param(Handoff("<private>all of it</private>"), None, id="private-all-private"),
        pytest.param(Handoff("x", memory_ids=("01",) * 10000), "characters; 30,000", id="x-01"),
    ],
)
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


def test_metadata_of_a_handoff_come_back(memory):
    given = {"ticket": "SHOP-12", "risk": {"level": 3}}
    save_handoff(memory, FULL._replace(metadata=given))
    assert find_latest(memory).handoff.metadata == given
    assert not save_handoff(memory, FULL._replace(metadata=given)).new


def test_other_metadata_replace_a_handoff(memory):
    saved = save_handoff(memory, FULL._replace(metadata={"ticket": "SHOP-12"}))
    again = save_handoff(memory, FULL._replace(metadata={"ticket": "SHOP-13"}))
    assert again.supersedes == (saved.memory.id,)


def test_secrets_of_a_handoff_are_redacted(memory):
    token = "ghp_" + "a1B2" * 9
    again = save_handoff(memory, FULL._replace(metadata={"token": token}))
    assert token not in json.dumps(find_latest(memory).handoff.metadata)
    token = "ghp_" + "a1B2" * 9
    said = {"summary": f"Use {token} to deploy", "next_steps": (f"revoke {token}",)}
    saved = save_handoff(memory, FULL._replace(**said, branch=f"x/{token}"))
    one = saved.memory
    assert token not in json.dumps(dict(one.metadata)) + one.content + one.summary
    again = save_handoff(memory, FULL._replace(branch=f"x/{token}"))
    assert again.supersedes == (saved.memory.id,)


def test_a_foreign_project_name_is_a_label(memory):
    first = save_handoff(memory, Handoff("in other words", project="Shop App")).memory
    assert first.content.startswith("# Handoff: Shop App, branch main")
    labelled = Handoff("in other words", project="Shop App", branch="main")
    assert find_latest(memory).handoff == labelled
    second = save_handoff(memory, Handoff("of the same"))
    assert second.supersedes == (first.id,)
    assert find_latest(memory).handoff.project == "project"


@pytest.mark.parametrize(
    ("argv", "stdin", "code"),
    [
        pytest.param(["handoff", "save"], b"", 2, id="save-bytes-2"),
        pytest.param(["handoff", "save"], b"\x00\x01", 2, id="save-u0000"),
        pytest.param(["handoff", "save"], b"\xff\xfe", 2, id="save-bytes-2-2"),
        pytest.param(
            ["handoff", "save", "--summary", "x", "--memory", "0123"], b"", 1, id="save-summary"
        ),
        pytest.param(["handoff", "show", "--summary", "x"], b"", 2, id="show"),
        pytest.param(["handoff", "load"], b"", 2, id="load"),
        pytest.param(["handoff", "save", "--file", "missing.md"], b"", 1, id="save-file"),
    ],
)
def test_a_wrong_handoff_command_is_refused(cli, argv, stdin, code):
    cli.fails(*argv, code=code, stdin=stdin)


def test_a_missing_handoff_is_reported(cli):
    head(cli.project, "ref: refs/heads/main\n")
    assert "There is no handoff for shop" in cli.fails("handoff", code=1)


def test_a_saved_handoff_is_shown(cli):
    head(cli.project, "ref: refs/heads/main\n")
    used = cli.add("Redis holds sessions")
    words = "--done a --done b --blocked c --decision d --next e --metadata ticket=SHOP-12".split()
    cli.ok("handoff", "save", "--summary", "Half done", "--memory", used, *words)
    shown = cli.ok("handoff")
    assert "Redis holds sessions" in shown and 'metadata: {"ticket": "SHOP-12"}' in shown
    value = cli.json("handoff", "show", "--branch", "dev")
    assert value["metadata"] == {"ticket": "SHOP-12"}
    assert (value["exact"], value["completed"], value["memory_ids"]) == (False, ["a", "b"], [used])
    assert cli.json("get", used)[0]["access_count"] == 2  # with this look


def test_a_handoff_is_read_from_stdin(cli):
    head(cli.project, "ref: refs/heads/main\n")
    assert cli.json("handoff", "save", stdin="Half done.\n## Next\n- go on\n")["status"] == "saved"
    assert cli.json("handoff")["next_steps"] == ["go on"]


def test_a_handoff_is_read_from_a_file(cli):
    head(cli.project, "ref: refs/heads/main\n")
    (cli.project / "note.md").write_text("From a file.\n## Done\n- all\n")
    assert [
        status
        for status in ("saved", "unchanged")
        if cli.json("handoff", "save", "--file", "note.md", "--next", "rest")["status"] != status
    ] == []
    assert cli.json("handoff")["next_steps"] == ["rest"]


@pytest.mark.parametrize(
    ("days", "age", "stale"),
    [
        pytest.param(0, "", False, id="0"),
        pytest.param(1, "1 day old", False, id="1"),
        pytest.param(14, "14 days old", False, id="14"),
        pytest.param(40, "40 days old, may be stale", True, id="40"),
    ],
)
def test_a_handoff_grows_old_visibly(cli, monkeypatch, days, age, stale):
    cli.ok("handoff", "save", "--summary", "The cache is moved")
    monkeypatch.setattr(LatestHandoff, "days", property(lambda self: days))
    assert (f"It is {age}." in cli("handoff").err) == bool(age)
    record = cli.json("handoff")
    assert (record["age_days"], record["stale"]) == (days, stale)
    said = json.dumps({"cwd": str(cli.project), "source": "startup"})
    told = cli.ok("hook", "session-start", "--host", "claude", stdin=said)
    assert (f"Last handoff, {age}:" if age else "Last handoff:") in told
