"""The prompt hook as a tool of the running MCP server: the same answers as the command, known to hosts and not to models."""

import asyncio
import json
from pathlib import Path

import pytest

pytest.importorskip("mcp")

from mcp.shared.exceptions import MCPError
from mcp_client import ERAS, talking, text_of
from mcp_types import CallToolRequestParams

from bethink.api import Bethink
from bethink.app.mcp import HOOK
from bethink.app.mcp.keeper import Keeper, answer_prompt_hook
from bethink.app.mcp.server import Handlers
from bethink.app.mcp.tools import TOOLS
from bethink.embed.http import HttpEmbedder
from bethink.hooks import spool, state
from bethink.project import find

DECISION = "The Valkey cluster gets a third replica"


@pytest.fixture
def project(offline: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    with Bethink(directory=folder) as memory:
        memory.add(DECISION, kind="decision")
    return folder


@pytest.fixture
def open_keeper():
    opened = []

    def open_(folder):
        opened.append(Keeper(folder))
        return opened[-1]

    yield open_
    assert all(keeper.close(10) for keeper in opened)


@pytest.fixture
def keeper(project, open_keeper):
    return open_keeper(project)


def asked(keeper, text="Valkey cluster replica", session="s1", **more):
    return answer_prompt_hook(keeper, {"prompt": text, "session_id": session, **more})


def test_a_host_can_call_the_hook_though_no_model_sees_it(project, offline):
    told = {"session_id": "s1", "cwd": str(project), "source": "${source}"}
    prompt = "does the Valkey cluster get a replica?"

    with talking(ERAS[1], project, offline) as talk:

        def call(**arguments):
            result = talk("call_tool", HOOK, told | arguments)
            assert not result.is_error
            return text_of(result)

        assert HOOK not in TOOLS and HOOK not in [tool.name for tool in talk("list_tools").tools]
        context = json.loads(call(prompt=prompt))["hookSpecificOutput"]["additionalContext"]
        assert DECISION in context
        # Once is enough. An empty object, because Claude Code tells the model of a hook that answers with an empty text.
        assert call(prompt=prompt) == call(prompt="hello there", session_id="s2") == "{}"


def test_the_hook_tool_is_not_offered_to_other_machines(keeper):
    params = CallToolRequestParams(name=HOOK, arguments={"prompt": "Valkey", "cwd": "/"})
    with pytest.raises(MCPError, match="There is no tool"):
        asyncio.run(Handlers(keeper, False).call_tool(None, params))  # type: ignore[arg-type]


def test_the_hook_tool_answers_for_the_directory_of_the_session(keeper, project, tmp_path):
    other = tmp_path / "elsewhere"
    other.mkdir()
    with Bethink(directory=other) as memory:
        memory.add("The Kafka broker keeps a week of events", kind="fact")
    assert "Kafka" in asked(keeper, "how long does the Kafka broker keep events?", cwd=str(other))
    assert asked(keeper, cwd=str(other)) == "{}"
    assert DECISION in asked(keeper, cwd=str(project / "gone"))


def test_the_same_switches_hold(keeper, project, monkeypatch):
    monkeypatch.setenv("BETHINK_HOOKS", "off")
    assert asked(keeper) == "{}"
    monkeypatch.delenv("BETHINK_HOOKS")
    state.pause_memory(state.EVERYWHERE)
    assert asked(keeper) == "{}"
    state.resume_memory(state.EVERYWHERE)
    assert asked(keeper, source="schedule_wakeup") == "{}"
    assert DECISION in asked(keeper)


def test_a_turn_that_begins_is_noted_in_case_that_its_agent_is_killed(keeper, project, offline):
    place = {"transcript_path": "/talks/a.jsonl", "cwd": str(project)}
    asked(keeper, source="schedule_wakeup", **place)
    asked(keeper, transcript_path="${transcript_path}")
    assert spool.list_waiting() == []
    asked(keeper, **place)
    (entry,) = spool.list_waiting()
    assert (entry.transcript, entry.event) == ("/talks/a.jsonl", "prompt")
    assert (entry.directory, entry.database) == (str(project), str(offline / "memory.db"))


def test_outside_git_a_folder_is_paused_with_the_servers_project(offline, tmp_path, open_keeper):
    deep = tmp_path / "notes" / "deep"
    deep.mkdir(parents=True)
    with Bethink(directory=deep.parent) as memory:
        memory.add(DECISION, kind="decision")
    keeper = open_keeper(deep.parent)
    assert DECISION in asked(keeper, cwd=str(deep))
    state.pause_memory(find(deep.parent).scope)
    assert asked(keeper, session="s2", cwd=str(deep)) == "{}"


def test_a_prompt_is_never_sent_to_an_endpoint(project, open_keeper, monkeypatch):
    sent: list[str] = []
    monkeypatch.setattr(HttpEmbedder, "_query", lambda self, text: sent.append(text))
    monkeypatch.setenv("BETHINK_EMBEDDING", "http")
    monkeypatch.setenv("BETHINK_EMBEDDING_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("BETHINK_EMBEDDING_MODEL", "any")
    monkeypatch.delenv("BETHINK_OFFLINE")
    keeper = open_keeper(project)
    assert keeper._open(project).ready.wait(10) and keeper.has_model(None)
    assert DECISION in asked(keeper)
    assert sent == []


def test_wrong_arguments_get_an_empty_answer(keeper):
    wrong = [{}, {"prompt": 7}, {"prompt": "x" * 300_000, "cwd": "\0"}, {"what": "?"}]
    assert [
        arguments
        for arguments in (*wrong, {"prompt": "Valkey", "cwd": ["/"], "host": {}})
        if answer_prompt_hook(keeper, arguments) != "{}"
    ] == []
    assert state.read_failures() == []


def test_a_broken_database_gets_an_empty_answer(keeper, project):
    keeper.directory = None
    keeper.database = str(project)  # a directory is no database
    assert asked(keeper) == "{}"
    (failure,) = state.read_failures()
    assert (failure.host, failure.event) == ("claude", "prompt") and "directory" in failure.message
