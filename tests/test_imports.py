"""What other programs remember comes in by one command: recognised, named, limited, and taken back by another."""

import contextlib
import itertools
import json
import random
from pathlib import Path

import apsw
import pytest
from trees import plant

from bethink import Bethink
from bethink.config import Config
from bethink.features import exchange, readers
from bethink.features.knowledge import claude_slug

FIXTURES = Path(__file__).with_name("fixtures") / "imports"
STORE = "sqlite"  # these tests say themselves where another is meant
SECRET = "ghp_" + "a1B2" * 9
DATABASES = ("memo", "graph", "mcp", "service", "claude-mem")
MEMO_ROWS = [
    ("mem_1", "Auth uses JWT with 24h expiry", "memo_project_aa", None, None, 1769000000000),
    ("mem_2", "Deploy with make ship", "memo_container_react-router", None, None, 1769000001000),
    ("mem_3", "Loaders run first", "memo_project_aa", "docs/a.md", "doc_chunk", 1769000002000),
    ("mem_4", f"The key is {SECRET}", "memo_project_aa", None, None, 1769000003000),
    ("mem_5", "   ", "memo_project_aa", None, None, 1769000004000),
    ("mem_6", "x" * 300_000, "memo_project_aa", None, None, 1769000005000),
]
CODEX_GROUPS, BASIC_NOTE = (
    (FIXTURES / f"{name}.md").read_text("utf-8") for name in ("codex", "basic-memory")
)
FOLDERS_CASES = [
    (
        "basic-memory",
        "",
        {
            "decisions/Queue.md": BASIC_NOTE,
            "Redis.md": "---\ntitle: Redis\npermalink: redis\n---\n# Redis\n\n- [fact] Redis runs on port 6380\n",
            ".obsidian/app.md": "not a note",
        },
    ),
    (
        "private",
        "",
        {
            "a.md": "---\npermalink: a\n---\n<private>\n- [fact] The vault code is 1234\n</private>\n- [fact] Tea is at four\n",
            "b.md": "---\nindex: false\n---\n- [fact] Not for memory\n",
        },
    ),
    (
        "claude",
        ".claude",
        {
            "projects/{slug}/memory/MEMORY.md": "# Memory\n\n- [Prefers pnpm](prefers-pnpm.md) — package manager\n\n## Layout\n\nTwo packages share a lock file.\n",
            "projects/{slug}/memory/prefers-pnpm.md": "---\nname: prefers-pnpm\ndescription: pnpm, not npm\nmetadata:\n  type: feedback\nmodified: 2026-01-02T10:11:12Z\n---\nUse pnpm. See [[monorepo]].\n",
            "projects/{slug}/memory/monorepo.md": "---\nname: monorepo\ntype: project\n---\nThe frontend lives in web/.\n",
            "projects/-home-zoo/memory/a.md": "Owls hunt at night.\n",
        },
    ),
    (
        "codex",
        "memories",
        {
            "MEMORY.md": CODEX_GROUPS,
            "memory_summary.md": "## User Profile\n\nAda writes Python.\n",
            "raw_memories.md": "# Raw Memories\n\nlong\n",
            "rollout_summaries/a.md": "thread_id: a\n\nlong\n",
        },
    ),
]


FOLDERS = {name: given for name, *given in FOLDERS_CASES}


def make_database(file, script="", rows=(), wal=False, slug=""):
    """A database of another program: memo with these rows, unless a script says otherwise."""
    file.parent.mkdir(exist_ok=True)
    connection = apsw.Connection(str(file))
    if wal:
        connection.pragma("journal_mode", "wal")
    script = script or (FIXTURES / "memo.sql").read_text("utf-8")
    connection.execute(script.replace("{slug}", slug))
    columns = "id, content, vector, container_tag, tags, type, created_at, updated_at"
    insert = f"INSERT INTO memories ({columns}) VALUES (?1, ?2, x'00', ?3, ?4, ?5, ?6, ?6)"
    connection.executemany(insert, rows)
    connection.close()
    return file


def count_facts(number):
    return [(f"m{at}", f"Fact {at} " * 50, "memo_project_a", None, None, 1) for at in range(number)]


def place(tmp_path, name, project=Path()):
    """What a program left on this machine."""
    slug = claude_slug(project)
    if name in DATABASES:
        script = (FIXTURES / f"{name}.sql").read_text("utf-8")
        rows = MEMO_ROWS if name == "memo" else ()
        return make_database(tmp_path / "there" / f"{name}.db", script, rows, slug=slug)
    folder, files = FOLDERS[name]
    texts = {path.replace("{slug}", slug): text for path, text in files.items()}
    texts = {path: text.replace("{cli.project}", str(project)) for path, text in texts.items()}
    return plant(tmp_path / "there" / folder, texts)


def exported(cli, *options):
    return {one["content"]: one for one in json.loads(cli.ok("export", *options))}


def show(cli):
    """What was stored, with links and names that a table can hold."""
    found = exported(cli, "--all-projects")
    texts = {one["id"]: text for text, one in found.items()}
    for one in found.values():
        one["relations"] = {(link["type"], texts[link["target"]]) for link in one["relations"]}
        one["entities"] = {f"{entity['type']}:{entity['name']}" for entity in one["entities"]}
        one["created_at"] = one["created_at"][:10]
        one["superseded_by"] = texts.get(one["superseded_by"])
        one["container"] = one["scope"].partition("/")[2]
    return found


def fits(found, expected) -> bool:
    """Whether a value is the expected one, or holds all of it."""
    if isinstance(expected, set):
        return expected <= found
    return expected.items() <= found.items() if isinstance(expected, dict) else found == expected


@pytest.mark.parametrize(
    ("name", "first", "stored", "options", "second"),
    [
        pytest.param(
            "memo",
            {"format": "memo", "added": 4, "redactions": 1, "left": {"empty": 1, "too long": 1}},
            {
                "Auth uses JWT with 24h expiry": {"trust": 1, "created_at": "2026-01-21"},
                "Loaders run first": {"section": "docs/a.md", "kind": "document"},
                "Deploy with make ship": {"container": "react-router"},
            },
            [],
            {"known": 4, "left": {"empty": 1, "too long": 1}},
            id="memo",
        ),
        pytest.param(
            "graph",
            {"format": "Memory Graph", "added": 8, "left_out": 1},
            {
                "The radio hops between three channels": {
                    "superseded_by": "The radio stays on one channel"
                },
                "The antenna stands in the barn": {
                    "superseded_by": "The antenna stands on the roof"
                },
                "How far does the radio reach?": {
                    "kind": "question",
                    "answered": True,
                    "section": "LoRa",
                    "entities": {"technology:ESP32"},
                },
                "LoRa reaches two kilometres": {
                    "relations": {("answers", "How far does the radio reach?")},
                    "confidence": 0.9,
                    "metadata": {"line": 7},
                },
                "The radio reaches two kilometres": {"kind": "conclusion"},
            },
            ["--all-scopes"],
            {"added": 1, "known": 8},
            id="graph",
        ),
        pytest.param(
            "mcp",
            {"format": "Memory MCP", "added": 2, "left": {"deleted there": 1}},
            {
                "I like dark mode": {
                    "kind": "preference",
                    "importance": 8.0,
                    "summary": "Likes dark mode",
                    "access_count": 4,
                },
                "The API is written with FastAPI": {"entities": {"concept:FastAPI"}},
            },
            [],
            {"known": 2},
            id="mcp",
        ),
        pytest.param(
            "service",
            {"format": "mcp-memory-service", "added": 2, "relations": 1},
            {
                "We keep sessions in Redis": {
                    "kind": "decision",
                    "tags": ["cache", "redis"],
                    "metadata": {"ticket": "OPS-7"},
                },
                "Redis needs AOF": {
                    "tags": ["cache", "observation"],
                    "relations": {("relates_to", "We keep sessions in Redis")},
                },
            },
            [],
            {"known": 2},
            id="service",
        ),
        pytest.param(
            "claude-mem",
            {"format": "claude-mem", "added": 2, "left_out": 2, "left": {"raw": 1}},
            {
                "Rounding mended\nThe ledger added floats.\n- Prices are cents\n- No floats": {
                    "kind": "solution",
                    "tags": ["money"],
                    "entities": {"file:src/ledger.py"},
                },
                "Learned: Floats add up wrongly": {},
            },
            ["--all-scopes"],
            {"added": 2},
            id="claude-mem",
        ),
        pytest.param(
            "basic-memory",
            {"format": "basic-memory", "added": 4},
            {
                "We keep jobs for a week #jobs #retention (after the outage)": {
                    "kind": "decision",
                    "tags": ["infra", "jobs", "retention"],
                    "created_at": "2026-01-05",
                    "section": "Queue",
                },
                "Streams are not trimmed by themselves": {"kind": "gotcha"},
                "Jobs go through": {"relations": {("builds_on", "Redis runs on port 6380")}},
            },
            [],
            {"known": 4},
            id="basic-memory",
        ),
        pytest.param(
            "private",
            {"format": "basic-memory", "added": 1, "left": {"empty": 1, "kept out": 1}},
            {"Tea is at four": {}},
            [],
            {"known": 1},
            id="private",
        ),
        pytest.param(
            "claude",
            {"format": "Claude Code", "added": 3, "left_out": 1},
            {
                "Use pnpm": {
                    "kind": "preference",
                    "section": "prefers-pnpm",
                    "created_at": "2026-01-02",
                },
                "lock file": {},
            },
            [],
            {"known": 3},
            id="claude",
        ),
        pytest.param(
            "codex",
            {"format": "Codex", "left": {"raw": 2}},
            {"make release": {}, "reports short": {"kind": "preference"}},
            ["--personal"],
            {"added": 1},
            id="codex",
        ),
    ],
)
def test_the_memories_of_another_program_are_imported(
    cli, tmp_path, name, first, stored, options, second
):
    there = place(tmp_path, name, cli.project)
    done = cli.json("import", str(there))
    assert {key: done[key] for key in first} == first
    found = show(cli)
    assert {one["trust"] for one in found.values()} == {1}
    assert all(one["source"].startswith(f"import:{done['format']}:") for one in found.values())
    assert [
        (text, field)
        for text, fields in stored.items()
        for one in [next(one for content, one in found.items() if text in content)]
        for field, expected in fields.items()
        if not fits(one[field], expected)
    ] == []
    cases = [SECRET, "1234", "Not for memory", "Owls", "Ada", "prefers-pnpm.md"]
    assert [kept_out for kept_out in cases if kept_out in "\n".join(found)] == []
    again = cli.json("import", str(there), *options)
    assert {key: again[key] for key in second} == second
    assert SECRET.encode() not in b"".join(map(Path.read_bytes, cli.home.glob("memory.db*")))
    undone = cli.json("import", str(there), "--undo")
    assert undone["removed"] == done["added"] + again["added"]
    assert exported(cli, "--all-projects") == {}


def test_the_memory_folder_of_claude_code_is_imported(cli, tmp_path):
    there = place(tmp_path, "claude", cli.project)
    own = there / "projects" / claude_slug(cli.project) / "memory"
    assert [cli.json("import", str(place))["known"] for place in (there, own)] == [0, 3]


def test_a_file_of_rules_is_imported(cli):
    rules = cli.project / "CLAUDE.md"
    rules.write_text("# Rules\n\n## Commits\n\nNever commit to main.\n\n## Tests\n\nUse pytest.\n")
    assert cli.json("import", str(rules))["added"] == 2


@pytest.mark.parametrize("wal", [False, True])
def test_a_foreign_database_stays_as_it_is_byte_for_byte(cli, tmp_path, wal):
    file = make_database(tmp_path / "there" / "memo.db", rows=MEMO_ROWS[:2], wal=wal)
    before, names = file.read_bytes(), sorted(file.parent.iterdir())
    assert cli.json("import", str(file), "--dry-run")["added"] == 2
    assert exported(cli) == {}
    assert cli.json("import", str(file))["added"] == 2
    assert (file.read_bytes(), sorted(file.parent.iterdir())) == (before, names)


def test_an_unreadable_database_is_refused(cli, tmp_path, monkeypatch):
    def refused(file, *said):
        told = cli.fails("import", str(file), code=2)
        assert all(part in told for part in said), told
        assert exported(cli) == {}

    file = make_database(tmp_path / "memo.db", rows=count_facts(40))
    raw = file.read_bytes()
    file.write_bytes(raw[:4096] + random.Random(1).randbytes(len(raw) - 4096))
    refused(file, "cannot be read", ".recover")
    file.write_bytes(raw[:100])
    refused(file, "cannot be read")
    other = tmp_path / "other.db"
    connection = apsw.Connection(str(other))
    connection.execute("CREATE TABLE recipes (id, cake)")
    connection.close()
    refused(other, "its tables are: recipes", "claude-mem")
    huge = tmp_path / "huge.jsonl"
    with huge.open("wb") as stream:
        stream.truncate(2 << 30)
    monkeypatch.setattr(exchange, "LARGEST_FILE", 1 << 20)
    refused(huge, "the limit of 1 MB")
    monkeypatch.setattr(readers, "MOST_ROWS", 3)
    refused(make_database(tmp_path / "many.db", rows=count_facts(4)), "more than 3 memories")


@pytest.mark.parametrize(
    ("name", "lacking"),
    [
        pytest.param("service", ["memory_graph"], id="service"),
        pytest.param("claude-mem", ["directives"], id="claude-mem"),
    ],
)
def test_a_database_of_an_older_version_is_imported(cli, tmp_path, name, lacking):
    file = place(tmp_path, name, cli.project)
    with contextlib.closing(apsw.Connection(str(file))) as connection:
        for table in lacking:
            connection.execute(f"DROP TABLE {table}")
    assert cli.json("import", str(file), "--dry-run")["added"] == 2


def test_an_endless_view_is_refused(cli, tmp_path):
    file = place(tmp_path, "mcp")
    with contextlib.closing(apsw.Connection(str(file))) as connection:
        endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT x AS memory_id, x AS entity FROM n"
        connection.execute(f"DROP TABLE entities; CREATE VIEW entities AS {endless}")
    assert "not known here" in cli.fails("import", str(file), code=2)


def test_broken_characters_are_marked(cli, tmp_path):
    file = make_database(tmp_path / "memo.db", rows=MEMO_ROWS[:2])
    connection = apsw.Connection(str(file))
    connection.execute("UPDATE memories SET content = CAST(x'4361660ae9' AS TEXT) WHERE rowid = 1")
    connection.close()
    assert cli.json("import", str(file))["added"] == 2
    assert "\ufffd" in " ".join(exported(cli, "--all-projects"))


@pytest.mark.parametrize("name", DATABASES)
def test_any_value_in_any_column_is_taken_or_left_out(offline, tmp_path, name):
    file = place(tmp_path, name)
    connection, config = apsw.Connection(str(file)), Config(embedding="none")
    query = "SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE TABLE%'"
    tables = [table for (table,) in connection.execute(query) if "fts" not in table]
    (tmp_path / "shop").mkdir()
    with Bethink(tmp_path / "ours.db", directory=tmp_path / "shop", config=config) as memory:
        for table in tables:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            for column, odd in zip(columns, itertools.cycle((None, "[1, {", -1e300)), strict=False):
                with contextlib.suppress(apsw.Error):
                    connection.execute(f"UPDATE {table} SET {column} = ?", (odd,))
                exchange.import_file(memory, file, all_scopes=True)
        assert memory.check(deep=True) == []
    connection.close()


MEM0 = json.loads((FIXTURES / "mem0.json").read_text("utf-8"))


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        pytest.param(
            "a.json",
            json.dumps([{"text": "Prefers pnpm to npm", "tags": "tools"}]),
            [],
            id="a.json-json-dumps-text",
        ),
        pytest.param("a.json", json.dumps(MEM0, indent=1), [], id="a.json-json-dumps-MEM0"),
        pytest.param(
            "a.json",
            json.dumps({"Content": "Prefers pnpm to npm", "labels": ["tools"]}),
            [],
            id="a.json-json-dumps-content",
        ),
        pytest.param(
            "a.jsonl",
            '{"note": "Prefers pnpm to npm", "more": "one\u2028line", "tags": ["tools"]}\n{"note": " "}\n',
            [],
            id="a.jsonl",
        ),
        pytest.param(
            "a.csv",
            "date,body,tags\n2026-02-03,Prefers pnpm to npm,tools\n",
            [],
            id="a.csv-date-body-tags-2026-02-03-prefers-pnpm-npm",
        ),
        pytest.param(
            "a.csv",
            "\ufeffdate;body;tags\n2026-02-03;Prefers pnpm to npm;tools\n",
            [],
            id="a.csv-date-body-tags-2026-02-03-prefers-pnpm-npm-2",
        ),
        pytest.param(
            "a.tsv",
            "remark\ttags\nPrefers pnpm to npm\ttools\n",
            ["--text-column", "remark"],
            id="a.tsv",
        ),
        pytest.param(
            "a.json",
            '[{"a": "x", "b": "Prefers pnpm to npm", "tags": ["tools"]}]',
            ["--text-column", "b"],
            id="a.json-x-b-prefers-pnpm-npm-tags-tools",
        ),
    ],
)
def test_rows_with_a_text_are_imported(cli, tmp_path, name, text, options):
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    done = cli.json("import", str(file), *options)
    assert done["added"] == 1 and done["format"] == ("JSON" if "json" in name else "CSV")
    assert done["left"] == ({"empty": 1} if "\u2028" in text else {})
    (one,) = exported(cli).values()
    assert (one["content"], one["tags"], one["trust"]) == ("Prefers pnpm to npm", ["tools"], 1)
    if "2026-02-03" in text:
        assert one["created_at"].startswith("2026-02-03")
    again = cli.json("import", str(file), *options)
    assert (again["added"], again["known"]) == (0, 1)


@pytest.mark.parametrize(
    ("name", "raw", "said"),
    [
        pytest.param(
            "a.csv", "text\nGrüße\n".encode("latin-1"), "is not UTF-8: byte 7", id="a.csv-text-grue"
        ),
        pytest.param(
            "a.csv", b"one,two\n1,2\n", "its columns are: one, two", id="a.csv-one-two-1-2"
        ),
        pytest.param(
            "a.json",
            b'[{"one": 1, "two": 2}]',
            "its columns are: one, two",
            id="a.json-one-1-two-2",
        ),
        pytest.param(
            "a.json", b'[{"text": "x"}', "is not a Bethink export", id="a.json-text-x-no-JSON"
        ),
        pytest.param("a.json", b'{"a": [1], "b": [2]}', "has no column of text", id="a.json-1-b-2"),
        pytest.param(
            "a.json",
            b'[{"path": "a.py", "symbols": ["f"], "content": ""}]',
            "a repo map",
            id="a.json-path-a.py-symbols-f-content",
        ),
        pytest.param(
            "a.json",
            b'[{"text": "x"}]',
            "has no column 'remark';",
            id="a.json-text-x-no-column-remark",
        ),
    ],
)
def test_rows_without_a_text_are_refused(cli, tmp_path, name, raw, said):
    file = tmp_path / name
    file.write_bytes(raw)
    options = ["--text-column", "remark"] if "remark" in said else []
    assert said in cli.fails("import", str(file), *options, code=2)


@pytest.mark.parametrize(
    "text", [pytest.param("[]", id="no-rows"), pytest.param(" \n", id="blank")]
)
def test_an_empty_file_imports_nothing(cli, tmp_path, text):
    file = tmp_path / "a.json"
    file.write_text(text)
    assert "Nothing to remember was found here." in cli("import", str(file)).err
    assert exported(cli) == {}


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


def test_a_folder_of_notes_is_synced(cli, tmp_path):
    notes = str(plant(tmp_path, {"notes/a.md": "# Guide\n\nLint before each commit.\n"}) / "notes")
    assert len(cli.json("import", notes, "--dry-run")["added"]) == 1
    assert exported(cli) == {}
    assert cli.json("import", notes)["memories"]["added"] == 1
    assert "go with an export" in cli.fails("import", notes, "--trusted", code=2)
    assert cli.json("import", notes, "--undo")["memories"]["retired"] == 1
    assert cli.json("list") == []
    assert cli.json("import", notes)["memories"]["added"] == 1


def test_lancedb_needs_its_extra(cli, tmp_path, monkeypatch):
    (tmp_path / "vectors" / "memories.lance").mkdir(parents=True)
    monkeypatch.setattr(readers, "find_spec", lambda name: None)
    said = cli.fails("import", str(tmp_path / "vectors"), code=1)
    assert "needs lancedb" in said and "pip install 'bethink[lancedb]'" in said


def make_lance(folder, name, *changes):
    """A table whose rows are that of the file, each with changes."""
    lancedb = pytest.importorskip("lancedb")
    row = {**json.loads((FIXTURES / f"lance-{name}.json").read_text()), "vector": [0.1] * 384}
    lancedb.connect(str(folder)).create_table("memories", [row | change for change in changes])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_lancedb_of_claude_memory_is_imported(cli, tmp_path):
    first = {"id": "init", "content": "", "contentHash": ""}
    make_lance(tmp_path / "memory" / "vectors", "000", first, {})
    done = cli.json("import", str(tmp_path / "memory"))
    assert (done["format"], done["added"], done["left"]) == ("LanceDB", 1, {"empty": 1})
    (one,) = exported(cli).values()
    assert (one["kind"], one["tags"], one["section"]) == ("gotcha", ["lancedb", "sql"], "LanceDB")
    assert one["access_count"] == 3 and one["updated_at"].startswith("2026-01-06")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_lancedb_of_the_hybrid_memory_is_imported(cli, tmp_path):
    deleted = {"id": "b", "content": "Deleted", "superseded_by": "DELETED"}
    replaced = {"id": "c", "content": "TypeScript 4 options", "superseded_by": "a1"}
    make_lance(tmp_path / "db", "002", deleted, replaced, {})
    table = tmp_path / "db" / "memories.lance"
    done = cli.json("import", str(table))
    assert (done["added"], done["left"]) == (2, {"deleted there": 1})
    found = exported(cli)
    one, old = found["TypeScript compiler options"], found["TypeScript 4 options"]
    assert (one["usefulness"], one["access_count"], one["metadata"]["area"]) == (5.0, 10, "build")
    assert old["superseded_by"] == one["id"]
    next((table / "data").iterdir()).write_bytes(b"nothing")
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
    assert "chunk_size = 1500, mode = keyword" in cli.ok("import", str(file), "--dry-run")
    assert cli.json("config", "mode")["value"] == "hybrid"
    done = cli.json("import", str(file))
    assert done["settings"] == wanted
    assert done["left"] == {
        "minScore": "expected a number from -1 to 1",
        "CLAUDE_MEMORY_CHUNK_OVERLAP": "expected a whole number",
        "ftsDbName": "has no counterpart",
    }
    assert cli.json("config", "mode")["value"] == "keyword"
    monkeypatch.setenv("CLAUDE_MEMORY_SEARCH_MODE", "vector")
    assert "mode is already set here" in cli.ok("import", str(file))
    file.write_text("[1]")
    assert "no settings" in cli.fails("import", str(file), code=2)


def import_memo(cli, tmp_path, metadata, source="docs/auth.md"):
    """One passage that memo read from a file."""
    file = make_database(
        tmp_path / ".memo" / "memo.db",
        rows=[("mem_1", "Loaders run first", "memo_project_a", source, "doc_chunk", 1769000000000)],
    )
    connection = apsw.Connection(str(file))
    connection.execute("UPDATE memories SET metadata = ?", (json.dumps(metadata),))
    connection.close()
    cli.ok("import", str(file))
    return exported(cli)["Loaders run first"]


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"startLine": 3, "endLine": 9}, id="two-numbers"),
        pytest.param({"line_start": 3, "line_end": 9}, id="underscores"),
        pytest.param({"lines": [3, 9]}, id="a-list"),
        pytest.param({"lineRange": "3-9"}, id="a-range"),
        pytest.param({"lines": {"start": 3, "end": 9}}, id="an-object"),
    ],
)
def test_a_passage_of_memo_keeps_its_lines(cli, tmp_path, metadata):
    assert import_memo(cli, tmp_path, metadata)["lines"] == [3, 9]


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"startLine": "three"}, id="a-word"),
        pytest.param({"lines": [9, 3]}, id="backwards"),
        pytest.param({"lines": [None, {}]}, id="no-numbers"),
    ],
)
def test_lines_that_are_none_are_left_out(cli, tmp_path, metadata):
    assert import_memo(cli, tmp_path, metadata)["lines"] is None


def test_a_passage_of_memo_keeps_its_file(cli, tmp_path):
    one = import_memo(cli, tmp_path, {})
    assert one["metadata"]["file"] == "docs/auth.md"
    assert {"name": "docs/auth.md", "type": "file"} in one["entities"]


def test_a_passage_of_memo_is_cited_by_file_and_lines(cli, tmp_path):
    import_memo(cli, tmp_path, {"lines": [3, 9]})
    assert "docs/auth.md:3-9" in cli.ok("search", "loaders")


def test_an_entry_of_a_repo_map_keeps_the_path_without_the_prefix(cli, tmp_path):
    one = import_memo(cli, tmp_path, {}, "repo-map:src/auth.py")
    assert one["metadata"]["file"] == "src/auth.py"


def test_an_idea_of_memory_graph_keeps_its_session_and_topic(cli, tmp_path):
    cli.ok("import", str(place(tmp_path, "graph", cli.project)))
    one = exported(cli)["LoRa reaches two kilometres"]
    assert one["metadata"]["session"] == "control"
    assert one["metadata"]["topic"] == "LoRa"


def test_a_topic_below_another_is_named_with_it(cli, tmp_path):
    file = place(tmp_path, "graph", cli.project)
    connection = apsw.Connection(str(file))
    connection.execute("UPDATE ideas SET span_id = 2 WHERE id = 2")
    columns = "id, session, parent_id, name, start_line, depth"
    connection.execute(f"INSERT INTO spans ({columns}) VALUES (2, 'control', 1, 'Range', 3, 1)")
    connection.close()
    cli.ok("import", str(file))
    one = exported(cli)["LoRa reaches two kilometres"]
    assert (one["metadata"]["topic"], one["section"]) == ("LoRa > Range", "Range")


def test_a_topic_of_memory_graph_keeps_its_lines(cli, tmp_path):
    cli.ok("import", str(place(tmp_path, "graph", cli.project)))
    assert exported(cli)["The radio reaches two kilometres"]["lines"] == [1, 9]


def test_a_memory_of_memory_mcp_keeps_its_last_use(cli, tmp_path):
    cli.ok("import", str(place(tmp_path, "mcp")))
    assert exported(cli)["I like dark mode"]["last_accessed"].startswith("2026-01-21")


HANDOFF = (
    "Sync moved to queues.\n\n## Completed\n\n- The queue\n\n## Next steps\n\n- Retry failed jobs\n"
)


def import_handoff(cli, tmp_path):
    """A handoff as the hybrid memory writes it into a file of its rows."""
    row = {"id": "h", "content": HANDOFF, "metadata": {"type": "handoff", "branch": "main"}}
    file = tmp_path / "rows.json"
    file.write_text(json.dumps([row]))
    cli.ok("import", str(file))


def test_a_handoff_of_another_program_is_a_handoff(cli, tmp_path):
    import_handoff(cli, tmp_path)
    assert exported(cli)[HANDOFF.strip()]["kind"] == "handoff"


def test_an_imported_handoff_is_shown_with_its_lists(cli, tmp_path):
    import_handoff(cli, tmp_path)
    found = cli.json("handoff")
    assert found["next_steps"] == ["Retry failed jobs"]


def test_a_row_of_claude_memory_keeps_its_file_and_promotion(cli, tmp_path):
    row = {"content": "Quote columns", "filePath": "docs/sql.md", "promoted": True}
    file = tmp_path / "rows.json"
    file.write_text(json.dumps([row | {"promotedAt": "2026-01-05T09:00:00Z"}]))
    cli.ok("import", str(file))
    kept = {"file": "docs/sql.md", "promoted_at": "2026-01-05T09:00:00Z"}
    assert exported(cli)["Quote columns"]["metadata"] == kept


@pytest.fixture
def memo_settings(tmp_path):
    file = tmp_path / "memo" / "config.jsonc"
    file.parent.mkdir()
    file.write_text(
        '{\n  // few\n  "maxMemories": 7, /* as\n  usual */ "deduplicationEnabled": false,\n'
        '  "similarityThreshold": 0.7, "storagePath": "http://x",\n}\n'
    )
    return str(file)


def test_the_settings_of_memo_become_those_of_the_user(cli, memo_settings):
    assert cli.json("import", memo_settings)["settings"] == {"limit": 7, "dedup": False}
    assert cli.json("config", "limit") | {"value": 7} == cli.json("config", "limit")


def test_a_similarity_of_memos_model_is_left(cli, memo_settings):
    left = cli.json("import", memo_settings)["left"]
    assert left == {
        "similarityThreshold": "is a similarity of memo's model",
        "storagePath": "has no counterpart",
    }
