"""What other programs remember comes in by one command: recognised, named, limited, and taken back by another."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from pathlib import Path

import apsw
import pytest
from case_tables import FOLDER, cases
from trees import plant

from bethink import Bethink
from bethink.config import Config
from bethink.features import exchange, readers
from bethink.features.knowledge import claude_slug

pytest_plugins = ["cli_runner"]

SECRET = "ghp_" + "a1B2" * 9
MEMO, GRAPH, MCP, SERVICE, CLAUDE_MEM = (
    (FOLDER / f"imports-{name}.sql").read_text("utf-8")
    for name in ("memo", "graph", "mcp", "service", "claude-mem")
)
MEMO_ROWS = [
    ("mem_1", "Auth uses JWT with 24h expiry", "memo_project_aa", None, None, 1769000000000),
    ("mem_2", "Deploy with make ship", "memo_container_react-router", None, None, 1769000001000),
    ("mem_3", "Loaders run first", "memo_project_aa", "docs/a.md", "doc_chunk", 1769000002000),
    ("mem_4", f"The key is {SECRET}", "memo_project_aa", None, None, 1769000003000),
    ("mem_5", "   ", "memo_project_aa", None, None, 1769000004000),
    ("mem_6", "x" * 300_000, "memo_project_aa", None, None, 1769000005000),
]


@pytest.fixture
def store_kind():
    return "sqlite"


def make_database(file, script, rows=(), wal=False):
    connection = apsw.Connection(str(file))
    if wal:
        connection.pragma("journal_mode", "wal")
    connection.execute(script)
    connection.executemany(
        "INSERT INTO memories (id, content, vector, container_tag, tags, type, created_at, updated_at)"
        " VALUES (?1, ?2, x'00', ?3, ?4, ?5, ?6, ?6)",
        rows,
    )
    connection.close()
    return file


def exported(cli, *options):
    return {one["content"]: one for one in json.loads(cli.ok("export", *options))}


def make_memory_graph(cli, tmp_path):
    slug = claude_slug(cli.project)
    rows = [
        (1, "How far does the radio reach?", "question", 1, f"/h/.claude/projects/{slug}/a.jsonl"),
        (2, "LoRa reaches two kilometres", "solution", None, f"/h/.claude/projects/{slug}/a.jsonl"),
        (3, "Of another project", "decision", None, "/h/.claude/projects/-home-zoo/b.jsonl"),
    ]
    file = make_database(tmp_path / "memory.db", GRAPH)
    connection = apsw.Connection(str(file))
    connection.executemany(
        "INSERT INTO ideas VALUES (?1, CASE ?1 WHEN 3 THEN NULL ELSE 1 END, ?2, ?3, 0.9, ?4, ?5, 7, '2026-01-02 10:00:00')",
        rows,
    )
    connection.close()
    return file


def test_memo_comes_with_its_containers_and_says_what_it_left(cli, tmp_path):
    file = make_database(tmp_path / "memo.db", MEMO, MEMO_ROWS)
    done = cli.json("import", str(file))
    assert (done["format"], done["added"], done["redactions"]) == ("memo", 4, 1)
    assert done["left"] == {"empty": 1, "too long": 1}
    assert done["kinds"]["document"] == 1
    found = exported(cli, "--all-projects")
    assert SECRET not in json.dumps(found)
    one = found["Auth uses JWT with 24h expiry"]
    assert (one["trust"], one["created_at"][:10]) == (1, "2026-01-21")
    assert one["source"] == f"import:memo:{file}"
    assert found["Loaders run first"]["section"] == "docs/a.md"
    assert found["Deploy with make ship"]["scope"].endswith("/react-router")
    (contained,) = cli.json("list", "--container", "react-router")
    assert contained["content"] == "Deploy with make ship"
    again = cli.json("import", str(file))
    assert (again["known"], again["left"]) == (4, {"empty": 1, "too long": 1})


def test_memory_graph_comes_with_topics_entities_relations_of_this_project(cli, tmp_path):
    done = cli.json("import", str(make_memory_graph(cli, tmp_path)))
    assert (done["format"], done["added"], done["left_out"]) == ("Memory Graph", 3, 1)
    found = exported(cli)
    question, answer = found["How far does the radio reach?"], found["LoRa reaches two kilometres"]
    about = [question[name] for name in ("kind", "answered", "section")]
    assert about == ["question", True, "LoRa"]
    assert {"name": "ESP32", "type": "technology"} in question["entities"]
    assert answer["relations"] == [{"type": "answers", "target": question["id"]}]
    assert answer["confidence"] == 0.9 and answer["metadata"]["line"] == 7
    assert found["The radio reaches two kilometres"]["kind"] == "conclusion"
    done = cli.json("import", str(tmp_path / "memory.db"), "--all-scopes")
    assert (done["added"], done["known"]) == (1, 3)


def test_memory_mcp_comes_with_types_importance_and_entities(cli, tmp_path):
    done = cli.json("import", str(make_database(tmp_path / "memory.db", MCP)))
    assert (done["format"], done["added"]) == ("Memory MCP", 2)
    assert done["left"] == {"deleted there": 1}
    found = exported(cli)
    one = found["I like dark mode"]
    about = [one[name] for name in ("kind", "importance", "summary", "access_count")]
    assert about == ["preference", 8.0, "Likes dark mode", 4]
    entities = found["The API is written with FastAPI"]["entities"]
    assert "FastAPI" in [entity["name"] for entity in entities]


def test_mcp_memory_service_comes_with_tags_metadata_and_graph(cli, tmp_path):
    done = cli.json("import", str(make_database(tmp_path / "sqlite_vec.db", SERVICE)))
    assert (done["format"], done["added"], done["relations"]) == ("mcp-memory-service", 2, 1)
    found = exported(cli)
    one, other = found["We keep sessions in Redis"], found["Redis needs AOF"]
    assert (one["kind"], one["tags"]) == ("decision", ["cache", "redis"])
    assert one["metadata"]["ticket"] == "OPS-7"
    assert other["tags"] == ["cache", "observation"]  # a kind that is none here
    assert other["relations"] == [{"type": "builds_on", "target": one["id"]}]


def test_claude_mem_comes_by_project_and_leaves_raw_prompts(cli, tmp_path):
    file = make_database(tmp_path / "claude-mem.db", CLAUDE_MEM)
    done = cli.json("import", str(file))
    assert (done["format"], done["added"], done["left_out"]) == ("claude-mem", 2, 2)
    assert done["left"] == {"raw": 1}
    found = exported(cli)
    text = "Rounding mended\nThe ledger added floats.\n- Prices are cents\n- No floats"
    one = found[text]
    assert (one["kind"], one["tags"]) == ("solution", ["money"])
    assert {"name": "src/ledger.py", "type": "file"} in one["entities"]
    assert any("Learned: Floats add up wrongly" in text for text in found)
    assert cli.json("import", str(file), "--personal")["added"] == 1
    assert exported(cli)["Always answer in English"]["scope"] == "personal"


@pytest.mark.parametrize("wal", [False, True])
def test_a_foreign_database_stays_as_it_is_byte_for_byte(cli, tmp_path, wal):
    folder = tmp_path / "there"
    folder.mkdir()
    file = make_database(folder / "memo.db", MEMO, MEMO_ROWS[:2], wal=wal)
    before, names = file.read_bytes(), sorted(folder.iterdir())
    assert cli.json("import", str(file), "--dry-run")["added"] == 2
    assert exported(cli) == {}
    assert cli.json("import", str(file))["added"] == 2
    assert (file.read_bytes(), sorted(folder.iterdir())) == (before, names)


def damage(file: Path) -> None:
    raw = bytearray(file.read_bytes())
    raw[4096:] = os.urandom(len(raw) - 4096)
    file.write_bytes(raw)


def test_what_cannot_be_read_is_refused_and_nothing_is_half_done(cli, tmp_path):
    rows = [(f"m{at}", f"Fact {at} " * 50, "memo_project_a", None, None, 1) for at in range(200)]
    file = make_database(tmp_path / "memo.db", MEMO, rows)
    damage(file)
    said = cli.fails("import", str(file), code=2)
    assert "cannot be read" in said and ".recover" in said
    other = make_database(tmp_path / "other.db", "CREATE TABLE recipes (id, cake)")
    said = cli.fails("import", str(other), code=2)
    assert "its tables are: recipes" in said and "claude-mem" in said
    short = tmp_path / "short.db"
    short.write_bytes(file.read_bytes()[:100])
    assert "cannot be read" in cli.fails("import", str(short), code=2)
    assert exported(cli) == {}


def test_what_is_no_text_in_a_foreign_database_is_marked_and_the_rest_comes_in(cli, tmp_path):
    file = make_database(tmp_path / "memo.db", MEMO, MEMO_ROWS[:2])
    connection = apsw.Connection(str(file))
    connection.execute("UPDATE memories SET content = CAST(x'4361660ae9' AS TEXT) WHERE rowid = 1")
    connection.close()
    assert cli.json("import", str(file))["added"] == 2
    assert "\ufffd" in " ".join(exported(cli, "--all-projects"))


@pytest.mark.parametrize("name", ["MEMO", "GRAPH", "MCP", "SERVICE", "CLAUDE_MEM"])
def test_whatever_stands_in_a_column_is_taken_in_order_or_left(tmp_path, name):
    rows = MEMO_ROWS[:1] if name == "MEMO" else ()
    file = make_database(tmp_path / "a.db", globals()[name], rows)
    connection = apsw.Connection(str(file))
    if name == "GRAPH":
        connection.execute(
            "INSERT INTO ideas VALUES (1, 1, 'A', 'todo', 1, 0, 'f', 1, NULL), (2, 1, 'B', 'todo', 1, 0, 'f', 1, NULL)"
        )
    query = (
        "SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE TABLE%' AND name NOT LIKE '%fts%'"
    )
    tables = [table for (table,) in connection.execute(query)]
    (tmp_path / "shop").mkdir()
    config = Config(embedding="none")
    with Bethink(tmp_path / "ours.db", directory=tmp_path / "shop", config=config) as memory:
        for table in tables:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            for column, odd in zip(columns, itertools.cycle((None, "[1, {", -1e300)), strict=False):
                with contextlib.suppress(apsw.Error):
                    connection.execute(f"UPDATE {table} SET {column} = ?", (odd,))
                exchange.import_file(memory, file, all_scopes=True)
        assert memory.check(deep=True) == []
    connection.close()


def test_a_file_that_is_too_large_is_refused_before_it_is_read(cli, tmp_path, monkeypatch):
    file = tmp_path / "huge.jsonl"
    with file.open("wb") as stream:
        stream.truncate(2 << 30)
    monkeypatch.setattr(exchange, "LARGEST", 1 << 20)
    assert "more than 1 MB" in cli.fails("import", str(file), code=2)
    monkeypatch.setattr(readers, "MOST_ROWS", 3)
    rows = [(f"m{at}", f"Fact {at}", "memo_project_a", None, None, 1) for at in range(4)]
    many = make_database(tmp_path / "memo.db", MEMO, rows)
    assert "more than 3 memories" in cli.fails("import", str(many), code=2)
    assert exported(cli) == {}


# JSON, JSON lines, CSV

MEM0 = json.loads((FOLDER / "imports-mem0.json").read_text("utf-8"))


@pytest.mark.parametrize(("name", "text", "options"), cases("imports-rows-with-a-text", globals()))
def test_rows_with_a_text_come_from_json_and_csv(cli, tmp_path, name, text, options):
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    done = cli.json("import", str(file), *options)
    assert done["added"] == 1 and done["format"] == ("JSON" if "json" in name else "CSV")
    assert done["left"] == ({"unreadable": 1} if "broken" in text else {})
    (one,) = exported(cli).values()
    assert (one["content"], one["tags"], one["trust"]) == ("Prefers pnpm to npm", ["tools"], 1)
    if "2026-02-03" in text:
        assert one["created_at"].startswith("2026-02-03")
    again = cli.json("import", str(file), *options)
    assert (again["added"], again["known"]) == (0, 1)


@pytest.mark.parametrize(("name", "raw", "said"), cases("imports-what-has-no-text", globals()))
def test_what_has_no_text_is_refused_with_what_it_has(cli, tmp_path, name, raw, said):
    file = tmp_path / name
    file.write_bytes(raw)
    options = ["--text-column", "remark"] if "remark" in said else []
    assert said in cli.fails("import", str(file), *options, code=2)
    assert exported(cli) == {}


# Taking it back


def test_an_import_is_taken_back_by_one_command_but_for_what_was_changed(cli, tmp_path):
    mine = cli.add("Owls hunt at night")
    file = tmp_path / "notes.jsonl"
    texts = ["Owls hunt at night", "We deploy from main", "Tea is at four", "Amounts are cents"]
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    result = cli("import", str(file))
    assert f"Undo with `bethink import {file} --undo`" in result.err
    cli.ok("update", exported(cli)["Tea is at four"]["id"], "--content", "Tea is at five")
    assert cli.json("import", str(file), "--undo", "--dry-run")["removed"] == 2
    assert len(exported(cli)) == 4
    assert cli.json("import", str(file), "--undo")["kept"] == 1
    assert set(exported(cli)) == {"Owls hunt at night", "Tea is at five"}
    assert exported(cli)["Owls hunt at night"]["id"] == mine
    assert "Nothing was imported" in cli.fails("import", str(file), "--undo", code=1)
    assert cli.json("import", str(file))["added"] == 2  # as if it had never come
    assert cli("doctor", "--deep").code == 0


def test_plain_markdown_is_synced_tried_and_taken_back(cli, tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("# Guide\n\nLint with ruff before each commit.\n")
    assert len(cli.json("import", str(notes), "--dry-run")["added"]) == 1
    assert exported(cli) == {}
    assert cli.json("import", str(notes))["memories"]["added"] == 1
    assert "go with an export" in cli.fails("import", str(notes), "--trusted", code=2)
    assert cli.json("import", str(notes), "--undo")["memories"]["retired"] == 1
    assert cli.json("list") == []
    assert cli.json("import", str(notes))["memories"]["added"] == 1


# Folders


BASIC = {
    "decisions/Queue.md": (FOLDER / "imports-basic-memory.md").read_text("utf-8"),
    "Redis.md": "---\ntitle: Redis\npermalink: redis\n---\n\n- [fact] Redis runs on port 6380\n",
    ".obsidian/app.md": "not a note",
}


def test_basic_memory_comes_with_observations_tags_and_relations(cli, tmp_path):
    folder = plant(tmp_path / "basic", BASIC)
    done = cli.json("import", str(folder))
    assert (done["format"], done["added"]) == ("basic-memory", 4)
    found = exported(cli)
    prose = next(one for text, one in found.items() if "Jobs go through" in text)
    decision = found["We keep jobs for a week #jobs #retention (after the outage)"]
    assert (decision["kind"], decision["tags"]) == ("decision", ["infra", "jobs", "retention"])
    assert decision["created_at"].startswith("2026-01-05") and decision["section"] == "Queue"
    assert found["Streams are not trimmed by themselves"]["kind"] == "gotcha"
    redis = found["Redis runs on port 6380"]["id"]
    assert {"type": "builds_on", "target": redis} in prose["relations"]
    assert cli.json("import", str(folder))["added"] == 0
    assert cli.json("import", str(folder), "--undo")["removed"] == 4


def test_what_a_folder_keeps_private_or_out_stays_there(cli, tmp_path):
    private = "---\npermalink: a\n---\n<private>\n- [fact] The vault code is 1234\n</private>\n- [fact] Tea is at four\n"
    files = {"a.md": private, "b.md": "---\nindex: false\n---\n- [fact] Not for memory\n"}
    done = cli.json("import", str(plant(tmp_path / "basic", files)))
    assert (done["added"], done["left"]) == (1, {"empty": 1, "kept out": 1})
    assert list(exported(cli)) == ["Tea is at four"]


CLAUDE = {
    "MEMORY.md": "# Memory\n\n- [Prefers pnpm](prefers-pnpm.md) — package manager\n\n## Layout\n\nTwo packages share a lock file.\n",
    "prefers-pnpm.md": "---\nname: prefers-pnpm\ndescription: pnpm, not npm\nmetadata:\n  type: feedback\nmodified: 2026-01-02T10:11:12Z\n---\nUse pnpm. See [[monorepo]].\n",
    "monorepo.md": "---\nname: monorepo\ntype: project\n---\nThe frontend lives in web/.\n",
}


def test_what_claude_code_remembers_comes_in(cli, tmp_path):
    projects = tmp_path / "home" / ".claude" / "projects"
    own = plant(projects / claude_slug(cli.project) / "memory", CLAUDE)
    plant(projects / "-home-zoo" / "memory", {"a.md": "Owls hunt at night.\n"})
    done = cli.json("import", str(projects.parent))
    assert (done["format"], done["added"], done["left_out"]) == ("Claude Code", 3, 1)
    found = exported(cli)
    one = next(one for text, one in found.items() if "Use pnpm" in text)
    assert (one["kind"], one["section"]) == ("preference", "prefers-pnpm")
    assert one["created_at"].startswith("2026-01-02")
    other = next(one for text, one in found.items() if "frontend lives" in text)
    assert one["relations"] == [{"type": "relates_to", "target": other["id"]}]
    assert not any("prefers-pnpm.md" in text for text in found)
    assert cli.json("import", str(own))["known"] == 3
    rules = cli.project / "CLAUDE.md"
    rules.write_text("# Rules\n\n## Commits\n\nNever commit to main.\n\n## Tests\n\nUse pytest.\n")
    assert cli.json("import", str(rules))["added"] == 2


def test_what_codex_remembers_comes_in_by_folder(cli, tmp_path):
    groups = (FOLDER / "imports-codex.md").read_text("utf-8")
    groups = groups.replace("{cli.project}", str(cli.project))
    files = {
        "MEMORY.md": groups,
        "memory_summary.md": "## User Profile\n\nAda writes Python.\n",
        "raw_memories.md": "# Raw Memories\n\nlong\n",
        "rollout_summaries/a.md": "thread_id: a\n\nlong\n",
    }
    done = cli.json("import", str(plant(tmp_path / "codex" / "memories", files)))
    assert (done["format"], done["left"]) == ("Codex", {"raw": 2})
    texts = "\n".join(exported(cli))
    assert "make release" in texts and "Owls" not in texts and "Ada" not in texts
    kinds = {one["kind"] for text, one in exported(cli).items() if "reports short" in text}
    assert kinds == {"preference"}
    assert cli.json("import", str(tmp_path / "codex" / "memories"), "--personal")["added"] == 1


# LanceDB


def test_lancedb_says_how_to_install_what_it_needs(cli, tmp_path, monkeypatch):
    (tmp_path / "vectors" / "memories.lance").mkdir(parents=True)
    monkeypatch.setattr(readers, "find_spec", lambda name: None)
    said = cli.fails("import", str(tmp_path / "vectors"), code=1)
    assert "needs lancedb" in said and "pip install 'bethink[lancedb]'" in said


def make_lance(folder, rows):
    lancedb = pytest.importorskip("lancedb")
    lancedb.connect(str(folder)).create_table("memories", rows)
    return folder


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_tables_of_claude_memory_come_in(cli, tmp_path):
    row = {**json.loads((FOLDER / "imports-lance-000.json").read_text()), "vector": [0.1] * 384}
    first = row | {"id": "init", "content": "", "contentHash": ""}
    make_lance(tmp_path / "memory" / "vectors", [first, row])
    done = cli.json("import", str(tmp_path / "memory"))
    assert (done["format"], done["added"], done["left"]) == ("LanceDB", 1, {"empty": 1})
    (one,) = exported(cli).values()
    assert (one["kind"], one["tags"], one["section"]) == ("gotcha", ["lancedb", "sql"], "LanceDB")
    assert one["access_count"] == 3 and one["updated_at"].startswith("2026-01-06")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_tables_of_the_hybrid_memory_come_in(cli, tmp_path):
    row = {**json.loads((FOLDER / "imports-lance-002.json").read_text()), "vector": [0.1] * 384}
    rows = [
        row,
        row | {"id": "b", "content": "Deleted", "superseded_by": "DELETED"},
        row | {"id": "c", "content": "TypeScript 4 options", "superseded_by": "a1"},
    ]
    done = cli.json("import", str(make_lance(tmp_path / "db", rows) / "memories.lance"))
    assert (done["added"], done["left"]) == (2, {"deleted there": 1})
    found = exported(cli)
    one, old = found["TypeScript compiler options"], found["TypeScript 4 options"]
    assert (one["usefulness"], one["access_count"], one["metadata"]["area"]) == (5.0, 10, "build")
    assert old["superseded_by"] == one["id"]
    damaged = next((tmp_path / "db" / "memories.lance" / "data").iterdir())
    damaged.write_bytes(b"nothing")
    assert "cannot be read" in cli.fails("import", str(tmp_path / "db"), code=2)


def test_the_settings_of_claude_memory_are_taken_over_once(cli, monkeypatch):
    file = cli.project / ".claude" / "memory.config.json"
    file.parent.mkdir()
    told = {"minScore": -2, "chunkSize": 1500, "defaultSearchMode": "vector"}
    file.write_text(json.dumps({**told, "ftsDbName": "x.sqlite"}))
    monkeypatch.setenv("CLAUDE_MEMORY_SEARCH_MODE", "keyword")
    monkeypatch.setenv("CLAUDE_MEMORY_CHUNK_OVERLAP", "many")
    wanted = {"chunk_size": 1500, "mode": "keyword"}
    assert cli.json("import", str(file), "--dry-run")["settings"] == wanted
    assert cli.json("config", "mode")["value"] == "hybrid"
    done = cli.json("import", str(file))
    assert done["settings"] == wanted
    assert done["left"] == {
        "minScore": "expected a number from -1 to 1",
        "CLAUDE_MEMORY_CHUNK_OVERLAP": "expected a number",
        "ftsDbName": "has no counterpart",
    }
    assert cli.json("config", "mode")["value"] == "keyword"
    monkeypatch.setenv("CLAUDE_MEMORY_SEARCH_MODE", "vector")
    again = cli("import", str(file))
    assert "mode is set here already" in again.out
    file.write_text("[1]")
    assert "no settings" in cli.fails("import", str(file), code=2)
