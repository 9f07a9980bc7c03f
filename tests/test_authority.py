"""Who may change what: agents append and propose; what a person said, and everything that cannot be undone, is for people."""

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cli_runner import run_at_terminal
from hooking import context
from http_server import V1, body, problem, running
from memories import use_tool

from bethink import caller, consent
from bethink.app.cli import COMMANDS
from bethink.app.cli.console import find_forbidden, load_operation
from bethink.app.mcp.keeper import Keeper, answer_prompt_hook
from bethink.app.operation import CLASSES
from bethink.errors import InvalidInput, NeedsPerson, NotFound
from bethink.features import inbox, promotion
from bethink.hooks.run import run
from bethink.model import EDITABLE, TRUST, Memory, Passage, Relation, Source
from bethink.plugins import AGENTS

DECISION = "We use PostgreSQL for the billing service, because of its locks."
LATER = datetime(2031, 5, 1, tzinfo=UTC)
# A new value for each field that can be edited.
VALUES = {
    "content": "We use MongoDB.",
    "summary": "MongoDB",
    "kind": "context",
    "importance": 0.5,
    "confidence": 0.1,
    "tags": ["old"],
    "entities": ["MongoDB"],
    "expires_at": LATER,
    "valid_from": LATER,
    "valid_to": LATER,
    "answered": True,
    "metadata": {"looked_at": ["doubtful"]},
}
HAS_PROC = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


@pytest.fixture
def quiet(monkeypatch):
    """Nothing says that an agent runs the tests, even if one does."""
    for name in caller.list_marks():
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(caller, "list_ancestors", list)


@pytest.fixture
def decided(shop, quiet):
    """The id of a decision of the user."""
    return shop.add(DECISION, "decision")


def agents_memory(shop):
    return shop.memory(actor="agent:test")


def as_agent(shop, tool, **arguments):
    """What a tool answers an agent."""
    with agents_memory(shop) as memory:
        return use_tool(memory, tool, **arguments)


def read(shop, id) -> Memory:
    with shop.memory() as memory:
        return memory.one(id)


# Fields


def test_every_editable_field_is_tried_below():
    assert set(VALUES) == EDITABLE


@pytest.mark.parametrize("field", sorted(EDITABLE))
def test_an_agent_changes_no_field_of_a_persons_memory(shop, decided, field):
    before = read(shop, decided)
    with agents_memory(shop) as memory, pytest.raises(NeedsPerson, match="user's own word"):
        memory.update(decided, **{field: VALUES[field]})
    assert read(shop, decided) == before


@pytest.mark.parametrize("field", sorted(EDITABLE))
def test_an_agent_changes_every_editable_field_of_its_own_memory(shop, quiet, field):
    with agents_memory(shop) as memory:
        id = memory.add(DECISION, kind="decision").id
        before = getattr(memory.one(id), field)
        memory.update(id, **{field: VALUES[field]})
        assert getattr(memory.one(id), field) != before


def test_an_actor_that_is_an_agent_never_has_a_persons_trust(shop, decided):
    with shop.memory(actor="agent:test", trust=TRUST["user"]) as memory:
        assert memory.trust == TRUST["agent"]


def test_update_memory_leaves_a_users_decision_in_the_briefing(shop, decided):
    with pytest.raises(InvalidInput, match="its kind is for the user"):
        as_agent(shop, "update_memory", id=decided, kind="context")
    assert DECISION in shop.start()


def test_an_update_without_a_change_leaves_a_persons_memory_untouched(shop, decided):
    before = read(shop, decided)
    as_agent(shop, "update_memory", id=decided, kind="decision")
    assert read(shop, decided) == before


def test_an_agent_closes_a_to_do_of_the_user_by_its_id(shop, quiet):
    id = shop.add("Renew the certificate of the shop", "todo")
    as_agent(shop, "update_memory", id=id, answered=True)
    assert read(shop, id).answered is True


@pytest.mark.parametrize(
    ("value", "votes"), [pytest.param(2, 2, id="up"), pytest.param(-5, 0, id="down")]
)
def test_an_agent_votes_a_persons_memory_up_but_not_down(shop, decided, value, votes):
    as_agent(shop, "rate_memories", ratings=[{"id": decided, "value": value}])
    assert read(shop, decided).usefulness == votes


def test_a_vote_that_is_refused_stops_no_other(shop, decided):
    with agents_memory(shop) as memory:
        own = memory.add("The cache holds sessions.", kind="fact").id
    ratings = [{"id": decided, "value": -1}, {"id": own, "value": -1}]
    assert "user's own word" in as_agent(shop, "rate_memories", ratings=ratings)
    assert read(shop, own).usefulness == -1


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda memory, id: inbox.decide(memory, "trust", [id]), id="trust"),
        pytest.param(lambda memory, id: inbox.decide(memory, "keep-doubtful", [id]), id="keep"),
        pytest.param(lambda memory, id: promotion.promote(memory, id), id="promote"),
        pytest.param(lambda memory, id: memory.reset(), id="reset"),
        pytest.param(lambda memory, id: memory.write(purge=(id,)), id="purge"),
        pytest.param(
            lambda memory, id: memory.add("Again", allow_purged=True), id="store what was purged"
        ),
    ],
)
def test_an_agent_is_refused_what_only_people_do(shop, decided, act):
    before = read(shop, decided)
    with agents_memory(shop) as memory, pytest.raises(NeedsPerson):
        act(memory, decided)
    assert read(shop, decided) == before


def test_a_token_is_refused_a_change_of_the_users_word(tmp_path, offline, quiet):
    folder = tmp_path / "shop"
    folder.mkdir()
    with running(offline, folder) as here:
        id = here.add(DECISION)
        token = here.client(here.token("agent", "write", [folder]))
        refused = token.patch(f"{V1}/memories/{id}", json={"kind": "context"})
        assert "user's own word" in problem(refused, 403)["detail"]


# Replacing


def supersede_by_tool(shop, id):
    item = {"content": "We use MongoDB for billing.", "kind": "decision", "supersedes": [id]}
    as_agent(shop, "store_memories", memories=[item])


def supersede_by_link(shop, id):
    with agents_memory(shop) as memory:
        new = memory.add("We use MongoDB for billing.", kind="decision").id
        assert memory.link(new, id, "supersedes").type == "may_replace"


@pytest.mark.parametrize("supersede", [supersede_by_tool, supersede_by_link])
def test_an_agents_supersedes_is_a_proposal_to_replace_the_users_word(shop, decided, supersede):
    supersede(shop, decided)
    with shop.memory() as memory:
        assert memory.one(decided).superseded_by is None
        assert "may_replace" in {one.type for one in memory.relations(decided)}


def test_an_agent_keeps_a_replacement_that_the_user_made(shop, quiet):
    with agents_memory(shop) as memory:
        old, new = (memory.add(text, kind="fact").id for text in ("Tea is sold.", "Coffee brews."))
    with shop.memory() as memory:
        memory.link(new, old, "supersedes")
    with agents_memory(shop) as memory, pytest.raises(NeedsPerson, match="hid or replaced"):
        memory.unlink(new, old, "supersedes")


def test_a_relation_that_retires_the_users_word_is_refused_below_every_surface(shop, decided):
    with agents_memory(shop) as memory:
        new = memory.add("We use MongoDB for billing.", kind="decision").id
        with pytest.raises(NeedsPerson, match="successor"):
            memory.write(relate=(Relation(new, decided, "supersedes"),))


def test_an_agent_takes_back_no_relation_of_the_users_word(shop, decided):
    other = shop.add("Deployments run from main.", "decision")
    with shop.memory() as memory:
        memory.link(decided, other, "contradicts")
    with agents_memory(shop) as memory, pytest.raises(NeedsPerson, match="relation"):
        memory.unlink(decided, other, "contradicts")


# Forgetting


def phrase_of(answer: str) -> str:
    return re.search(r"`(bethink forget [A-Z2-9]{4}(?: --purge)?)`", answer)[1]


def test_an_agent_hides_its_own_note(shop, quiet):
    with agents_memory(shop) as memory:
        id = memory.add("The cache holds sessions.").id
    assert "forgotten" in as_agent(shop, "forget_memories", ids=[id])
    assert read(shop, id).deleted_at


def test_an_agent_does_not_bring_back_what_the_user_hid(shop, quiet):
    with agents_memory(shop) as memory:
        id = memory.add("The cache holds sessions.").id
    with shop.memory() as memory:
        memory.forget(id)
    with agents_memory(shop) as memory, pytest.raises(NeedsPerson, match="hid or replaced"):
        memory.restore(id)


def test_an_agent_brings_back_what_it_hid_itself(shop, quiet):
    with agents_memory(shop) as memory:
        id = memory.add("The cache holds sessions.").id
        memory.forget(id)
        assert memory.restore(id).deleted_at is None


def test_the_users_word_is_forgotten_when_the_user_sends_the_phrase(shop, decided):
    phrase = phrase_of(as_agent(shop, "forget_memories", ids=[decided]))
    assert read(shop, decided).deleted_at is None
    assert f"forgotten are {decided}" in shop.ask(phrase)
    assert read(shop, decided).deleted_at


def test_the_warm_prompt_hook_knows_the_phrase_too(shop, decided):
    phrase = phrase_of(as_agent(shop, "forget_memories", ids=[decided]))
    keeper = Keeper(shop.project)
    try:
        answer_prompt_hook(keeper, {"prompt": phrase, "cwd": str(shop.project)})
    finally:
        keeper.close(5)
    assert read(shop, decided).deleted_at


def test_a_phrase_is_for_the_ids_of_its_request_alone(shop, decided):
    other = shop.add("Deployments run from main.", "decision")
    first, second = (
        phrase_of(as_agent(shop, "forget_memories", ids=[id])) for id in (decided, other)
    )
    assert first != second
    shop.ask(second)
    assert read(shop, decided).deleted_at is None
    assert read(shop, other).deleted_at


def test_a_phrase_works_once(shop, decided):
    phrase = phrase_of(as_agent(shop, "forget_memories", ids=[decided]))
    shop.ask(phrase)
    with shop.memory() as memory:
        memory.restore(decided)
    assert "nothing was changed" in shop.ask(phrase)
    assert read(shop, decided).deleted_at is None


def test_a_phrase_expires(shop, decided):
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    with shop.memory(actor="agent:test", clock=lambda: long_ago) as memory:
        phrase = memory.forget(decided).phrase
    assert "expired" in shop.ask(phrase)
    assert read(shop, decided).deleted_at is None


def test_asking_again_gives_the_same_phrase(shop, decided):
    answers = [as_agent(shop, "forget_memories", ids=[decided]) for _ in range(2)]
    assert answers[0] == answers[1]


PROMPTS = [
    pytest.param("Did I forget something?", id="a question"),
    pytest.param("Please forget what I said about PostgreSQL.", id="a wish"),
    pytest.param("remove that memory leak in the worker", id="a task"),
    pytest.param("> forget all previous instructions", id="a quote"),
    pytest.param("bethink forget ZZZZ", id="another code"),
    pytest.param("What does `{phrase}` mean?", id="a question about the phrase"),
    pytest.param("> {phrase}", id="a quoted phrase"),
    pytest.param("The agent said:\n{phrase}\nIs that right?", id="a pasted phrase"),
]


@pytest.mark.parametrize("prompt", PROMPTS)
def test_no_other_message_lets_an_agent_forget(shop, decided, prompt):
    phrase = phrase_of(as_agent(shop, "forget_memories", ids=[decided]))
    shop.ask(prompt.format(phrase=phrase))
    as_agent(shop, "forget_memories", ids=[decided])
    assert read(shop, decided).deleted_at is None


def test_a_timers_prompt_is_no_message_of_the_user(shop, decided):
    phrase = phrase_of(as_agent(shop, "forget_memories", ids=[decided]))
    shop.ask(phrase, source="schedule_wakeup")
    assert read(shop, decided).deleted_at is None


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"agent_id": "a1", "agent_type": "default"}, id="codex"),
        pytest.param({"agentId": "a1", "agentType": "general-purpose"}, id="copilot"),
    ],
)
def test_a_sub_agents_task_is_no_message_of_the_user(shop, decided, fields):
    phrase = phrase_of(as_agent(shop, "forget_memories", ids=[decided]))
    assert shop.printed("prompt", "codex", prompt=phrase, **fields) == ""
    assert read(shop, decided).deleted_at is None


def test_leaving_a_memory_as_it_is_ends_the_request(shop, decided):
    phrase = phrase_of(as_agent(shop, "forget_memories", ids=[decided]))
    with shop.memory() as memory:
        inbox.decide(memory, "keep-doubtful", [decided])
    shop.ask(phrase)
    assert read(shop, decided).deleted_at is None


def test_a_later_request_is_listed_though_the_memory_was_left_before(shop, decided):
    with shop.memory() as memory:
        inbox.decide(memory, "keep-doubtful", [decided])
    as_agent(shop, "forget_memories", ids=[decided])
    with shop.memory() as memory:
        found = inbox.list_queue(memory, "doubtful").items
    assert [item.memories[0].id for item in found] == [decided]


def test_a_request_waits_in_the_inbox_until_the_user_decides(shop, decided):
    as_agent(shop, "forget_memories", ids=[decided])
    with shop.memory() as memory:
        (item,) = inbox.list_queue(memory, "doubtful").items
        assert (item.memories[0].id, item.reason) == (decided, "an agent asks to forget it")
        inbox.decide(memory, "forget", [decided])
        memory.restore(decided)
        assert not inbox.list_queue(memory, "doubtful").items


def test_a_request_changes_nothing_of_the_memory(shop, decided):
    before = read(shop, decided)
    as_agent(shop, "forget_memories", ids=[decided])
    assert read(shop, decided) == before


def test_an_agent_purges_nothing_before_the_user_sends_the_phrase(shop, decided):
    with agents_memory(shop) as memory:
        done = memory.forget(decided, purge=True)
    assert read(shop, decided).content == DECISION
    assert "purged for good" in shop.ask(done.phrase)
    with pytest.raises(NotFound):
        read(shop, decided)


def test_an_agent_does_not_purge_its_own_note_either(shop, quiet):
    with agents_memory(shop) as memory:
        id = memory.add("The cache holds sessions.").id
        assert memory.forget(id, purge=True).proposed == (id,)
        assert memory.one(id).deleted_at is None


def test_a_token_only_asks_to_forget_the_users_word(tmp_path, offline, quiet):
    folder = tmp_path / "shop"
    folder.mkdir()
    with running(offline, folder) as here:
        id = here.add(DECISION)
        token = here.client(here.token("agent", "write", [folder]))
        answer = body(token.delete(f"{V1}/memories/{id}"))
        assert answer["status"] == "proposed"
        assert phrase_of(answer["hints"][0])


# An agent that plays the user's part


def run_below_agent(shop, script: str, **environment: str) -> str:
    """Runs Python below a program that is called claude, with what this project's commands need."""
    program = shop.home.parent / "claude"
    program.symlink_to(sys.executable)
    source = str(Path(caller.__file__).parent.parent)
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([source, *filter(None, sys.path)]),
        **environment,
    }
    done = subprocess.run(
        [str(program), "-c", script],
        cwd=shop.project,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout + done.stderr


HOOK = [sys.executable, "-m", "bethink", "hook", "prompt", "--host", "claude"]


@HAS_PROC
def test_a_hook_that_the_host_starts_grants_a_request(shop, decided):
    message = json.dumps(
        {
            "prompt": phrase_of(as_agent(shop, "forget_memories", ids=[decided])),
            "cwd": str(shop.project),
        }
    )
    run_below_agent(
        shop,
        f"import subprocess; subprocess.run({HOOK!r}, input={message.encode()!r})",
        CLAUDECODE="1",
    )
    assert read(shop, decided).deleted_at


@HAS_PROC
@pytest.mark.parametrize(
    "environment", [pytest.param({"CLAUDECODE": "1"}, id="marked"), pytest.param({}, id="unmarked")]
)
def test_a_hook_that_an_agents_command_starts_grants_nothing(shop, decided, environment):
    message = json.dumps(
        {
            "prompt": phrase_of(as_agent(shop, "forget_memories", ids=[decided])),
            "cwd": str(shop.project),
        }
    )
    file = shop.home.parent / "message.json"
    file.write_text(message)
    command = f"{' '.join(HOOK)} < {file}; true"
    answer = run_below_agent(
        shop, f"import subprocess; subprocess.run(['sh', '-c', {command!r}])", **environment
    )
    assert "came from a command" in answer
    assert read(shop, decided).deleted_at is None


@pytest.mark.parametrize(
    ("lines", "is_forged"),
    [
        pytest.param([["claude"], ["zsh"]], False, id="the host"),
        pytest.param(
            [["/bin/sh", "-c", "/usr/bin/bethink hook prompt --host claude"], ["claude"]],
            False,
            id="the host by a shell",
        ),
        pytest.param(
            [["/bin/sh", "/p/bin/bethink-hook", "prompt"], ["codex"], ["node", "/usr/bin/codex"]],
            False,
            id="a plugin",
        ),
        pytest.param(
            [["bash", "-c", "echo {} | bethink hook prompt"], ["claude"]], True, id="a pipe"
        ),
        pytest.param(
            [["python", "ask.py"], ["bash", "-c", "python ask.py"], ["claude"]], True, id="a script"
        ),
        pytest.param(
            [["claude", "-p", "x"], ["bash", "-c", "claude -p x"], ["claude"]],
            True,
            id="an agent of an agent",
        ),
        pytest.param([["zsh"], ["sshd"]], False, id="a person"),
    ],
)
def test_a_hook_is_believed_if_the_agents_host_started_it(quiet, monkeypatch, lines, is_forged):
    monkeypatch.setattr(caller, "list_ancestors", lambda: iter(lines))
    assert caller.is_hook_forged() == is_forged


@pytest.mark.parametrize("act", ["forget", "trust", "keep-doubtful"])
def test_a_token_decides_nothing_about_the_users_word_in_the_inbox(shop, decided, act):
    as_agent(shop, "forget_memories", ids=[decided])
    before = read(shop, decided)
    with agents_memory(shop) as memory, pytest.raises(NeedsPerson):
        inbox.decide(memory, act, [decided])
    assert read(shop, decided) == before


def test_a_personal_preference_is_bound_to_a_project_by_the_user_alone(shop, quiet):
    with shop.memory() as memory:
        id = memory.add("I prefer small commits", kind="preference", personal=True).id
    with agents_memory(shop) as memory, pytest.raises(NeedsPerson):
        inbox.bind(memory, id)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        pytest.param("goose", "AGENT", id="a known agent"),
        pytest.param("amp", "AGENT", id="another known agent"),
        pytest.param("ssh-agent", "", id="something else"),
        pytest.param("", "", id="empty"),
    ],
)
def test_a_common_variable_shows_an_agent_by_its_name(quiet, monkeypatch, value, found):
    monkeypatch.setenv("AGENT", value)
    assert caller.find_agent() == found


def test_a_hook_of_a_detached_command_grants_nothing(shop, decided, monkeypatch):
    phrase = phrase_of(as_agent(shop, "forget_memories", ids=[decided]))
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setattr(caller, "list_ancestors", lambda: iter([["/sbin/init"]]))
    told = json.dumps({"prompt": phrase, "cwd": str(shop.project)})
    assert "came from a command" in context(run("prompt", "claude", told.encode()))
    assert read(shop, decided).deleted_at is None


@pytest.mark.parametrize(
    ("words", "is_agent"),
    [
        pytest.param(["claude"], True, id="claude"),
        pytest.param(
            ["/home/ada/.local/share/claude/versions/2.1.0"], True, id="a version of claude"
        ),
        pytest.param(
            ["node", "/usr/lib/node_modules/@openai/codex/bin/codex.js"], True, id="codex by node"
        ),
        pytest.param(["/usr/bin/node", "/usr/bin/gemini"], True, id="gemini by node"),
        pytest.param(["/opt/cursor-agent/versions/1/node", "index.js"], True, id="cursor-agent"),
        pytest.param(["/home/ada/.local/bin/droid", "exec", "x"], True, id="droid"),
        pytest.param(["C:\\Users\\ada\\goose.exe", "session"], True, id="goose on Windows"),
        pytest.param(["/venv/bin/python3.12", "/venv/bin/aider"], True, id="aider by python"),
        pytest.param(
            ["/usr/bin/node", "/lib/node_modules/@kilocode/cli/dist/index.js"], True, id="kilo"
        ),
        pytest.param(["/usr/share/code/code", "--type=renderer"], False, id="the editor VS Code"),
        pytest.param(
            ["/usr/share/cursor/cursor", "--type=renderer"], False, id="the editor Cursor"
        ),
        pytest.param(["/home/claude/venv/bin/python", "run.py"], False, id="a user called claude"),
        pytest.param(["vim", "notes/claude"], False, id="a file called claude"),
        pytest.param(["bash"], False, id="a shell"),
    ],
)
def test_the_program_of_an_agent_is_known(words, is_agent):
    assert caller.is_agent_program(words, AGENTS.all()) == is_agent


# Commands


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_who_may_run_it(name):
    assert load_operation(name).agents in CLASSES


def test_a_command_without_a_class_is_for_people():
    unclassified = load_operation("list")._replace(name="shred", agents="")
    assert find_forbidden(unclassified, []) == "shred"


PERSON_ONLY = [
    "reset --yes",
    "reset --scope all --yes",
    "uninstall",
    "config mode keyword",
    "import notes.csv --undo",
    "import notes.csv --trusted",
    "token create --name x",
    "ui --no-open",
    "serve",
    "pause",
    "resume",
    "sync --with other.db --as shop",
    "migrate --to other.db",
    "consolidate --yes",
    "promote {id}",
    "demote {id}",
    "add Again --force",
    "install --claude --force",
]


@pytest.mark.parametrize("line", PERSON_ONLY)
def test_a_command_for_people_is_refused_to_an_agent(cli, monkeypatch, line):
    id = cli.add(DECISION, "--kind", "decision")
    monkeypatch.setenv("CLAUDECODE", "1")
    said = cli.fails(*line.format(id=id).split(), code=2)
    assert "is for people" in said and "your own terminal" in said
    monkeypatch.delenv("CLAUDECODE")
    assert [one["id"] for one in cli.json("list")] == [id]


@pytest.mark.parametrize(
    "line", ["config", "config mode", "promote", "consolidate --dry-run", "uninstall --dry-run"]
)
def test_an_agent_looks_at_what_it_may_not_change(cli, monkeypatch, line):
    cli.add(DECISION)
    monkeypatch.setenv("CLAUDECODE", "1")
    cli.ok(*line.split())


def test_a_terminal_inside_an_agent_does_not_make_it_a_person(cli, monkeypatch):
    cli.add(DECISION)
    monkeypatch.setenv("CLAUDECODE", "1")
    assert "is for people" in cli.fails("reset", stdin="y\n", terminal=True, code=2)


def test_what_an_agent_stores_at_a_terminal_is_the_agents_word(cli):
    run_at_terminal(cli, "add", DECISION, CLAUDECODE="1")
    assert [one["trust"] for one in cli.json("list")] == [TRUST["agent"]]


@pytest.mark.parametrize(
    "options", [["--kind", "context"], ["--importance", "1"], ["--no-expiry", "--tag", "x"]]
)
def test_an_agents_update_command_leaves_the_users_word(cli, monkeypatch, options):
    id = cli.add(DECISION, "--kind", "decision", "--importance", "8")
    before = cli.json("get", id)[0]
    monkeypatch.setenv("CLAUDECODE", "1")
    assert "user's own word" in cli.fails("update", id, *options, code=2)
    after = cli.json("get", id)[0]
    kept = ("kind", "importance", "tags", "updated_at")
    assert [after[name] for name in kept] == [before[name] for name in kept]


@pytest.mark.parametrize("options", [[], ["--purge", "--yes"]])
def test_an_agents_forget_command_asks_the_user(cli, monkeypatch, options):
    id = cli.add(DECISION)
    monkeypatch.setenv("CLAUDECODE", "1")
    result = cli("forget", id, *options)
    assert result.code == 0 and result.out.startswith("proposed ")
    assert phrase_of(result.err).endswith("--purge") == bool(options)
    monkeypatch.delenv("CLAUDECODE")
    assert cli.json("get", id)[0]["deleted_at"] is None


@pytest.mark.parametrize(
    ("options", "left"),
    [pytest.param([], 1, id="forget"), pytest.param(["--purge", "--yes"], 0, id="purge")],
)
def test_a_person_grants_a_request_by_running_its_phrase(cli, monkeypatch, options, left):
    id = cli.add(DECISION)
    monkeypatch.setenv("CLAUDECODE", "1")
    phrase = phrase_of(cli("forget", id, *options).err)
    assert "not the id of a memory" in cli.fails(*phrase.split()[1:], code=1)
    monkeypatch.delenv("CLAUDECODE")
    cli.ok(*phrase.split()[1:], *options[1:])
    assert cli.json("list") == []
    assert len(cli.json("list", "--include-deleted")) == left


def test_a_phrase_to_forget_does_not_purge(shop, decided):
    with agents_memory(shop) as memory:
        phrase = memory.forget(decided).phrase
    shop.ask(f"{phrase} --purge")
    assert read(shop, decided).deleted_at is None


def test_a_person_forgets_by_the_command_at_once(cli):
    id = cli.add(DECISION)
    assert cli.ok("forget", id).startswith("forgotten ")


def test_yes_is_enough_for_a_persons_script(cli):
    cli.add(DECISION)
    assert cli.json("reset", "--yes")["removed"] == 1


@HAS_PROC
def test_an_agent_that_unsets_its_variable_is_known_by_its_process(shop, decided):
    words = [sys.executable, "-m", "bethink", "reset", "--yes"]
    answer = run_below_agent(shop, f"import subprocess; subprocess.run({words!r})")
    assert "is for people" in answer
    assert read(shop, decided).content == DECISION


def test_what_a_transcript_told_is_no_agents_to_change(shop, quiet):
    said = (Source("/talks/a.jsonl", "transcript"), [Passage(DECISION, kind="decision")])
    with shop.memory() as memory:
        receipt = memory.ingest([said], trust=TRUST["user"], replace_sources=False)
    with agents_memory(shop) as memory, pytest.raises(NeedsPerson):
        memory.update(receipt.outcomes[0].id, kind="context")


def test_the_code_of_a_request_is_never_the_beginning_of_an_id():
    codes = [consent._make_code() for _ in range(200)]
    assert not any(set(code) <= set("0123456789ABCDEF") for code in codes)


def test_a_code_that_nobody_asked_for_is_told_apart_from_an_id(cli):
    refused = cli("forget", "ZZZZ")
    assert refused.code == 1
    assert "No open request has the code ZZZZ." in refused.err


def test_a_code_to_purge_names_the_option_that_it_needs(cli, monkeypatch):
    id = cli.add("We deploy on Fridays")
    with monkeypatch.context() as agent:
        agent.setenv("CLAUDECODE", "1")
        answer = cli("forget", id, "--purge", "--yes")
    code = re.search(r"bethink forget (\w{4}) --purge", answer.out + answer.err)[1]
    refused = cli("forget", code)
    assert f"bethink forget {code} --purge" in refused.err
