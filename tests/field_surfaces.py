"""Surfaces on which a new field of a memory must appear.

`test_fields.py` runs this file in a process of its own, with a copy of the package to which two fields and one migration per
database were added, and nothing else. Without them these tests cannot pass, so an ordinary run does not collect the file.
"""

import csv
import importlib.util
import json
import os
import re
from contextlib import closing
from pathlib import Path
from urllib.parse import urlencode

import apsw
import postgres
import pytest
from http_server import V1, body, problem, running
from mcp_client import talking
from releases import load_release

from bethink import Bethink
from bethink.app.web import Sessions, load_key
from bethink.errors import BethinkError, InvalidInput
from bethink.features.sync import Shared, StorePeer, Sync
from bethink.recall.shape import iso
from bethink.store.sqlite import SqliteStore

ROOT = Path(__file__).parent.parent
TEXT = "We deploy from main, never from a branch"
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
ENVIRONMENT = ("BETHINK_DATABASE", "BETHINK_TENANT", "BETHINK_USER")


@pytest.fixture
def stored(cli) -> str:
    """A memory with the new fields set."""
    with Bethink() as memory:
        return memory.add(TEXT, kind="decision", stars=7, approver="Ada").id


def read(id: str):
    with Bethink() as memory:
        return memory.one(id)


@pytest.fixture
def elsewhere(cli, monkeypatch, tmp_path):
    """A function that moves later commands to another, empty database."""

    def move() -> None:
        monkeypatch.setenv("BETHINK_DATABASE", str(tmp_path / "other.db"))

    return move


# Python


def test_python_add(stored):
    assert (read(stored).stars, read(stored).approver) == (7, "Ada")


def test_python_add_leaves_the_default(cli):
    with Bethink() as memory:
        assert memory.one(memory.add(TEXT).id).stars == 0


def test_python_update(stored):
    with Bethink() as memory:
        assert memory.update(stored, stars=3).stars == 3


def test_python_update_empties_an_optional_field(stored):
    with Bethink() as memory:
        assert memory.update(stored, clear=["approver"]).approver is None


def test_python_refuses_a_value_out_of_bounds(cli):
    with Bethink() as memory, pytest.raises(InvalidInput, match="stars 12 is outside 0 to 9"):
        memory.add(TEXT, stars=12)


def test_an_update_refuses_a_value_out_of_bounds(stored):
    with Bethink() as memory, pytest.raises(InvalidInput, match="stars 12 is outside 0 to 9"):
        memory.update(stored, stars=12)


def test_a_secret_in_a_new_text_is_redacted(cli):
    with Bethink() as memory:
        id = memory.add(TEXT, approver=f"Ada, {SECRET}").id
        assert SECRET not in memory.one(id).approver


def test_a_secret_in_a_changed_text_is_redacted(stored):
    with Bethink() as memory:
        assert SECRET not in memory.update(stored, approver=f"Ada, {SECRET}").approver


def test_an_agent_does_not_change_it_on_a_persons_memory(stored):
    with Bethink(actor="agent:claude") as memory, pytest.raises(BethinkError, match="own word"):
        memory.update(stored, stars=1)


# The command line


def test_cli_add(cli):
    assert read(cli.add(TEXT, "--stars", "7")).stars == 7


def test_cli_add_refuses_a_value_out_of_bounds(cli):
    assert "stars" in cli.fails("add", TEXT, "--stars", "12", code=2)


def test_cli_update(cli, stored):
    cli.ok("update", stored, "--stars", "3")
    assert read(stored).stars == 3


def test_cli_help(cli):
    assert "--stars" in cli.ok("add", "--help")


def test_cli_get_json(cli, stored):
    assert cli.json("get", stored)[0]["stars"] == 7


def test_cli_get_text(cli, stored):
    assert "stars: 7" in cli.ok("get", stored)


def test_cli_list_json(cli, stored):
    assert cli.json("list")[0]["stars"] == 7


def test_cli_search_json(cli, stored):
    assert cli.json("search", "deploy")[0]["stars"] == 7


def test_cli_bind_keeps_it(cli):
    with Bethink() as memory:
        id = memory.add(TEXT, stars=7, personal=True).id
    cli.ok("update", id, "--here")
    (bound,) = cli.json("list")
    assert (bound["stars"], bound["scope"][:8]) == (7, "project:")


# MCP


@pytest.fixture
def agent(cli):
    env = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    with talking("2026-07-28", cli.project, cli.home, env=env) as talk:
        yield talk


def test_mcp_store(agent):
    id = agent.store(TEXT, stars=7)
    with Bethink() as memory:
        assert memory.one(id).stars == 7


def test_mcp_update(agent):
    id = agent.store(TEXT, stars=7)
    agent.update_memory(id=id, stars=3)
    with Bethink() as memory:
        assert memory.one(id).stars == 3


def test_mcp_get(agent):
    assert "stars: 7" in agent.get_memories(ids=[agent.store(TEXT, stars=7)])


@pytest.fixture
def stored_fields(agent):
    """The fields that the tool for storing lists."""
    tools = {tool.name: tool.input_schema for tool in agent("list_tools").tools}
    return tools["store_memories"]["properties"]["memories"]["items"]["properties"]


def test_mcp_lists_a_field_that_asks_for_it(stored_fields):
    assert stored_fields["stars"]["type"] == "integer"


def test_mcp_lists_no_other_field(stored_fields):
    assert "approver" not in stored_fields


def test_mcp_takes_a_field_that_it_does_not_list(agent):
    id = agent.store(TEXT, approver="Ada")
    with Bethink() as memory:
        assert memory.one(id).approver == "Ada"


# HTTP


@pytest.fixture
def served(cli):
    with running(cli.home, cli.project) as here:
        yield here


def test_http_post(served):
    sent = {"memories": [{"content": TEXT, "stars": 7}]}
    id = body(served.owner.post(f"{V1}/memories", json=sent), 201)["outcomes"][0]["id"]
    assert read(id).stars == 7


def test_http_post_refuses_a_value_out_of_bounds(served):
    sent = {"memories": [{"content": TEXT, "stars": 12}]}
    found = problem(served.owner.post(f"{V1}/memories", json=sent), 422)
    assert "stars" in found["detail"]


def test_http_patch(served, stored):
    body(served.owner.patch(f"{V1}/memories/{stored}", json={"stars": 3}))
    assert read(stored).stars == 3


def test_http_get(served, stored):
    assert body(served.owner.get(f"{V1}/memories/{stored}"))["stars"] == 7


def test_http_openapi_result(served):
    described = body(served.owner.get(f"{V1}/openapi.json"))
    memory = described["components"]["schemas"]["Memory"]["properties"]
    assert memory["stars"]["type"] == "integer"


def test_http_openapi_requests(served):
    described = json.dumps(body(served.owner.get(f"{V1}/openapi.json"))["paths"])
    assert len(re.findall('"stars": {', described)) == 2  # POST and PATCH


# The web page


@pytest.fixture
def browser(served):
    sessions = Sessions(load_key(served.file.parent))
    session = sessions.begin()
    cookie = f"{session.cookie_name}={session.cookie}"
    return served.client(None, session.room, Cookie=cookie), sessions.mark(session)


def test_web_page(browser, stored):
    page = browser[0].get(f"/memory/{stored}").text
    assert re.search(r"<dt>Stars</dt>\s*<dd[^>]*>7", page)


def test_web_form(browser, stored):
    page = browser[0].get(f"/memory/{stored}").text
    field = re.search(r'<input[^>]*name="stars"[^>]*>', page)
    assert field and 'value="7"' in field[0]


def test_web_edit(browser, stored):
    client, mark = browser
    updated = iso(read(stored).updated_at)
    sent = urlencode({"mark": mark, "stars": "3", "updated_at": updated})
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    client.post(f"/memory/{stored}/edit", content=sent, headers=headers)
    assert read(stored).stars == 3


# Out and in


def test_export_and_import_json(cli, stored, elsewhere, tmp_path):
    file = tmp_path / "export.json"
    cli.ok("export", "--output", str(file))
    elsewhere()
    cli.ok("import", str(file), "--trusted")
    assert (read(stored).stars, read(stored).approver) == (7, "Ada")


def test_export_and_import_jsonl(cli, stored, elsewhere, tmp_path):
    file = tmp_path / "export.jsonl"
    cli.ok("export", "--jsonl", "--output", str(file))
    elsewhere()
    cli.ok("import", str(file))
    assert read(stored).stars == 7


def test_export_csv(cli, stored, tmp_path):
    file = tmp_path / "export.csv"
    cli.ok("export", "--format", "csv", "--output", str(file))
    (row,) = csv.DictReader(file.read_text("utf-8").splitlines())
    assert row["stars"] == "7"


def test_import_csv(cli, stored, elsewhere, tmp_path):
    file = tmp_path / "export.csv"
    cli.ok("export", "--format", "csv", "--output", str(file))
    elsewhere()
    cli.ok("import", str(file))
    assert [one["stars"] for one in cli.json("list")] == [7]


def test_export_and_import_vault(cli, stored, elsewhere, tmp_path):
    vault = tmp_path / "vault"
    cli.ok("export", "--format", "vault", str(vault))
    elsewhere()
    cli.ok("import", str(vault), "--trusted")
    assert (read(stored).stars, read(stored).approver) == (7, "Ada")


def test_import_refuses_a_value_out_of_bounds(cli, stored, elsewhere, tmp_path):
    file = tmp_path / "export.json"
    cli.ok("export", "--output", str(file))
    records = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps([{**records[0], "stars": 12}]))
    elsewhere()
    assert "stars" in cli.fails("import", str(file), code=2)


def test_import_refuses_a_history_out_of_bounds(cli, stored, elsewhere, tmp_path):
    file = tmp_path / "export.json"
    cli.ok("export", "--output", str(file))
    (record,) = json.loads(file.read_text("utf-8"))
    event = {**record["history"][0], "action": "update", "before": {"stars": 12}, "after": {}}
    file.write_text(json.dumps([{**record, "history": [event]}]))
    elsewhere()
    assert "history" in cli.fails("import", str(file), "--trusted", code=2)


def test_import_of_an_older_export_has_the_default(cli, stored, elsewhere, tmp_path):
    file = tmp_path / "export.json"
    cli.ok("export", "--output", str(file))
    (record,) = json.loads(file.read_text("utf-8"))
    del record["stars"], record["approver"]
    file.write_text(json.dumps([record]))
    elsewhere()
    cli.ok("import", str(file))
    assert (read(stored).stars, read(stored).approver) == (0, None)


def test_migrate(cli, stored, elsewhere, tmp_path):
    cli.ok("migrate", "--to", str(tmp_path / "other.db"))
    elsewhere()
    (moved,) = cli.json("list", "--all-projects")
    assert (moved["stars"], moved["approver"]) == (7, "Ada")


def sync_with(store: SqliteStore, shared: Shared) -> Shared:
    with Bethink() as memory:
        here = StorePeer(memory.writer, memory.scope, "user", memory.clock)
        there = StorePeer(store, "project:there", "user", memory.clock)
        return Sync(here, there, "shop").run(shared)[1]


def test_sync_brings_it_over(cli, stored, tmp_path):
    with closing(SqliteStore(tmp_path / "team.db")) as team:
        sync_with(team, Shared())
        assert team.get([stored])[0].stars == 7


def test_sync_brings_a_change_over(cli, stored, tmp_path):
    with closing(SqliteStore(tmp_path / "team.db")) as team:
        shared = sync_with(team, Shared())
        with Bethink() as memory:
            memory.update(stored, stars=3)
        sync_with(team, shared)
        assert team.get([stored])[0].stars == 3


# Versions and care


def test_history(cli, stored):
    cli.ok("update", stored, "--summary", "Deploys")
    with Bethink() as memory:
        memory.update(stored, stars=3)
    last = cli.json("history", stored)[-1]
    assert (last["before"]["stars"], last["after"]["stars"]) == (7, 3)


def test_restore(cli, stored):
    with Bethink() as memory:
        memory.update(stored, stars=3)
    cli.ok("restore", stored, "--to", "1")
    assert read(stored).stars == 7


def test_row_hash_covers_it(cli, stored, store_kind):
    change = "UPDATE {} SET stars = 8"
    if store_kind == "postgres":
        postgres.run(postgres.database_url(), change.format("bethink.memories"))
    else:
        with closing(apsw.Connection(str(cli.home / "memory.db"))) as connection:
            connection.execute(change.format("memories"))
    with Bethink() as memory:
        assert [problem.part for problem in memory.check(deep=True)] == ["memory"]


def test_doctor_finds_nothing_wrong(cli, stored):
    with Bethink() as memory:
        assert memory.check(deep=True) == []


@pytest.fixture
def released(cli, store_kind, monkeypatch, tmp_path):
    """A database of 0.18."""
    for name, value in load_release("0.18", store_kind, tmp_path, monkeypatch).items():
        monkeypatch.setenv(name, value)


def test_rows_of_an_older_release_are_intact(released):
    with Bethink() as memory:
        assert memory.check(deep=True) == []


def test_rows_of_an_older_release_have_the_default(released, cli):
    listed = cli.json("list", "--all-projects")
    assert {(one["stars"], one["approver"]) for one in listed} == {(0, None)}


def test_a_row_of_an_older_release_gets_a_value(released, cli):
    id = cli.json("list", "--all-projects")[0]["id"]
    with Bethink(everywhere=True) as memory:
        assert memory.update(id, stars=3).stars == 3


# The reference


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_reference_of_json(generate):
    assert generate.FIELDS["stars"] == "0 to 9: how good it is."


def test_reference_of_python(generate):
    assert "stars: int = 0  # 0 to 9: how good it is" in generate.python()
