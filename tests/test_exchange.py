"""Memories out into a file or a vault, and in again: whole, any number of times, and without what may not come in."""

import json
import os
import re
from collections import Counter
from hashlib import blake2b
from pathlib import Path

import apsw
import pytest
import yaml

from bethink import Bethink
from bethink.config import Config
from bethink.errors import InvalidInput, StoreError
from bethink.features import exchange, handoffs
from bethink.store.sqlite import SqliteStore

STORE = "sqlite"
FIXTURES = Path(__file__).parent / "fixtures"
BOTH = pytest.mark.parametrize("store_kind", ["sqlite", "postgres"], indirect=True)


def fill(cli):
    told = "--kind decision --metadata ticket=OPS-7".split()
    first = cli.add("We deploy from main, never from a branch", *told)
    second = cli.add("We deploy after two reviews", "--supersedes", first)
    told = "--tag cache --entity technology:Redis --importance 8 --expires 30d".split()
    third = cli.add("Sessions are kept in Redis", *told)
    cli.ok("forget", cli.add("Nobody wants this"))
    cli.ok("vote", third, "2")
    cli.ok("link", third, "builds_on", second)
    cli.add("I like short commits", "--personal")
    (cli.project / "docs").mkdir()
    (cli.project / "docs" / "a.md").write_text("# Guide\n\nLint with ruff before each commit.\n")
    cli.ok("index")
    return second, third


def exported(cli, *options):
    return {one["id"]: one for one in json.loads(cli.ok("export", *options))}


def find(cli, text):
    """The one memory of which this is a part."""
    (found,) = [one for one in exported(cli).values() if text in one["content"]]
    return found


def emptied(cli):
    """The same database with nothing in it."""
    for scope in ("this", "personal"):
        cli.ok("reset", "--scope", scope, "--yes")
    assert exported(cli) == {}


def go_to(monkeypatch, folder):
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)


@BOTH
def test_an_export_comes_back_as_it_was(cli, tmp_path, store_kind):
    form = "json" if store_kind == "sqlite" else "jsonl"
    second, third = fill(cli)
    file = tmp_path / "memories"
    cli.ok("export", "--output", str(file), *(() if form == "json" else ("--jsonl",)))
    before = exported(cli)
    emptied(cli)
    take = ("import", str(file), "--trusted", "--personal")
    assert cli.json(*take, "--dry-run")["added"] == 6 and exported(cli) == {}
    done = cli.json(*take)
    kinds = Counter(one["kind"] for one in before.values())
    counts = {"added": 6, "relations": 2, "kinds": kinds, "format": "export"}
    assert {name: value for name, value in done.items() if value} == counts
    assert exported(cli) == before
    assert [
        mode
        for mode in ("keyword", "vector")
        if cli.json("search", "kept in Redis", "--mode", mode)[0]["id"] != third
    ] == []
    assert cli.json("list", "--entity", "Redis")[0]["id"] == third
    assert {relation["type"] for relation in before[second]["relations"]} == {"supersedes"}
    assert cli.json("index")["memories"] == {"added": 0, "kept": 1, "retired": 0}
    assert cli("doctor", "--deep").code == 0


@BOTH
def test_a_second_import_adds_nothing(cli, tmp_path):
    fill(cli)
    file = str(tmp_path / "memories.json")
    cli.ok("export", "--output", file)
    before = exported(cli)
    assert cli.json("import", file, "--personal")["known"] == 6
    assert exported(cli) == before


@BOTH
def test_an_import_keeps_what_is_known_here(cli, tmp_path, monkeypatch):
    fill(cli)
    file = str(tmp_path / "memories.json")
    cli.ok("export", "--output", file)
    before = exported(cli)
    go_to(monkeypatch, tmp_path / "other")
    known = cli.add("Sessions are kept in Redis")
    assert cli.json("import", file)["added"] == 4  # what was told here is known
    assert cli.json("import", file)["added"] == 0
    found = cli.json("list", "--include-superseded")
    assert [one["id"] for one in found if one["content"] == "Sessions are kept in Redis"] == [known]
    replaced, successor = find(cli, "We deploy from"), find(cli, "We deploy after")
    assert replaced["superseded_by"] == successor["id"] and successor["id"] not in before
    assert {link["target"] for link in successor["relations"]} == {replaced["id"]}


SECRET = "ghp_" + "a1B2" * 9


def strange(cli, tmp_path, *changes):
    """The export of one memory in this project, changed by a stranger once for each change."""
    emptied(cli)
    cli.add("Sessions are kept in Redis")
    (one,) = exported(cli).values()
    emptied(cli)
    file = tmp_path / "stranger.json"
    ids = [f"01900000-0000-7000-8000-{at:012}" for at in range(len(changes))]
    base = [{**one, "id": id, "content": f"{one['content']} {id}"} for id in ids]
    file.write_text(json.dumps([each | change for each, change in zip(base, changes, strict=True)]))
    return str(file)


STRANGERS_FILE_CLAIMS = [
    ({"source": "note:user"}, {"source": "import"}),
    ({"source": "note:agent:claude"}, {"source": "import"}),
    ({"trust": 3}, {"trust": 1}),
    ({"usefulness": 1000000000.0}, {"usefulness": 10}),
    ({"usefulness": -1000000000.0}, {"usefulness": -10}),
    ({"access_count": 10**12}, {"access_count": 30}),
    ({"entities": [{"name": "Redis", "type": "oracle"}]}, {"entities": []}),
    ({"created_at": "2999-01-01T00:00:00Z", "updated_at": "2999-01-01T00:00:00Z"}, {}),
]


def test_an_incomplete_history_is_refused(cli, tmp_path):
    file = strange(cli, tmp_path, {"history": [{"at": "2026-01-01", "actor": "user"}]})
    assert "missing 'action'" in cli.fails("import", file, code=2)


def test_an_untrusted_file_claims_nothing(cli, tmp_path):
    table = STRANGERS_FILE_CLAIMS
    cli.ok("import", strange(cli, tmp_path, *(claimed for claimed, _ in table)))
    assert [
        one
        for one, (_, stored) in zip(exported(cli).values(), table, strict=True)
        if {name: one[name] for name in stored} != stored
        or [event["action"] for event in one["history"]] != ["add"]
        or max(one["created_at"], one["updated_at"]) >= "2999"
    ] == []


def test_personal_memories_are_imported_only_on_request(cli, tmp_path):
    file = strange(cli, tmp_path, {}, {"scope": "personal"})
    done = cli("import", file)
    assert re.match(r"added +1\nleft out +1\n", done.out) and "--personal" in done.err
    assert cli.json("import", file, "--personal")["added"] == 1


@pytest.mark.parametrize(
    ("type", "kept"),
    [
        ("supersedes", "may_replace"),
        ("answers", "relates_to"),
        ("contradicts", "contradicts"),
    ],
)
def test_an_untrusted_relation_is_only_proposed(cli, tmp_path, type, kept):
    mine = cli.add("We deploy from main", "--kind", "decision")
    (known,) = exported(cli).values()
    id, link = "01900000-0000-7000-8000-000000000001", {"type": type, "target": mine}
    theirs = {**known, "id": id, "content": "We deploy from a tag", "relations": [link]}
    file = tmp_path / "stranger.json"
    file.write_text(json.dumps([{**known, "superseded_by": id}, theirs]))
    cli.ok("import", str(file))
    found = exported(cli)
    assert found[mine]["superseded_by"] is None
    assert found[id]["relations"] == [{"type": kept, "target": mine}]


NO_FIELD = [
    {"content": f"use {SECRET}"},
    {"summary": SECRET},
    {"section": SECRET},
    {"source": f"docs/{SECRET}.md", "source_type": "markdown"},
    {"session": SECRET},
    {"span": SECRET},
    {"source_type": SECRET},
    {"tags": [SECRET]},
    {"keywords": [SECRET]},
    {"entities": [{"name": SECRET, "type": "concept"}]},
    {"metadata": {"deep": [{SECRET: 1}]}},
    {
        "history": [
            {
                "at": "2026-01-01T00:00:00Z",
                "actor": "user",
                "action": "update",
                "before": {"content": SECRET},
                "after": {},
            }
        ]
    },
]


@pytest.mark.parametrize("trusted", [("--trusted",), ()])
def test_no_field_of_a_file_brings_a_secret_in_nor_what_was_purged(cli, tmp_path, trusted):
    changes = NO_FIELD
    gone = cli.add("The old staging host is alpha")
    purged = exported(cli)[gone]
    cli.ok("forget", gone, "--purge", "--yes")
    file = strange(cli, tmp_path, *changes, {"content": purged["content"]})
    done = cli.json("import", file, *trusted)
    assert done["redactions"] == done["added"] == len(changes)
    assert done["purged"] == 1
    text = cli.ok("export")
    assert SECRET not in text and "alpha" not in text and "REDACTED" in text


def test_an_import_that_is_cut_off_leaves_no_memory_without_its_vector(cli, tmp_path, monkeypatch):
    file = strange(cli, tmp_path, *({} for _ in range(25)))
    monkeypatch.setattr(exchange, "ITEMS_PER_WRITE", 10)
    take, taken = SqliteStore.take, []

    def full(store, bundle, **how):
        taken.append(bundle)
        if len(taken) > 2:
            raise StoreError("The disk is full; nothing was changed.", "Free some space.")
        return take(store, bundle, **how)

    monkeypatch.setattr(SqliteStore, "take", full)
    assert "The disk is full" in cli.fails("import", file, code=1)
    assert len(cli.json("search", "sessions", "--mode", "vector", "--limit", "50")) == 20
    monkeypatch.setattr(SqliteStore, "take", take)
    assert cli.json("import", file)["added"] == 5


@BOTH
def test_a_database_of_an_older_version_is_taken_in(cli, tmp_path):
    old = tmp_path / "elsewhere" / "old.db"
    old.parent.mkdir()
    connection = apsw.Connection(str(old))
    connection.execute((FIXTURES / "schema-1.sql").read_text())
    connection.close()
    before, take = old.read_bytes(), ("import", str(old), "--trusted", "--all-scopes")
    assert cli.json(*take)["added"] == 4
    assert old.read_bytes() == before and list(old.parent.iterdir()) == [old]
    assert "We keep sessions in Redis" in cli.ok("list", "--all-projects")
    again = cli.json(*take)
    assert (again["added"], again["merged"]) == (0, 0)
    assert cli("doctor", "--deep").code == 0


def test_a_copy_of_ones_own_is_merged_by_the_names_of_its_projects(cli, tmp_path, monkeypatch):
    id, copy = cli.add("Tea is at four"), str(tmp_path / "copy.db")
    (tmp_path / "zoo").mkdir()
    cli.ok("add", "Something of the zoo", "--project", str(tmp_path / "zoo"))
    cli.ok("backup", copy)
    cli.ok("update", id, "--content", "Tea is at five", "--database", copy)
    cli.ok("vote", id)
    assert cli.json("import", copy)["merged"] == 0
    assert cli.json("import", copy, "--trusted")["merged"] == 1
    (one,) = exported(cli).values()
    assert (one["content"], one["usefulness"]) == ("Tea is at five", 1)
    assert [event["action"] for event in one["history"]] == ["add", "update", "vote"]
    assert cli.json("search", "five", "--mode", "vector")[0]["id"] == id
    assert cli("doctor", "--deep").code == 0
    go_to(monkeypatch, tmp_path / "there" / "shop")  # as on another machine
    assert cli.json("import", copy, "--trusted")["added"] == 1
    assert [one["content"] for one in cli.json("list")] == ["Tea is at five"]
    (tmp_path / "barn").mkdir()
    cli.ok("add", "Of the barn", "--project", str(tmp_path / "barn"), "--database", copy)
    connection = apsw.Connection(copy)
    connection.execute("UPDATE scopes SET name = ? WHERE name = 'barn'", (SECRET,))
    connection.close()
    assert cli.json("import", copy, "--all-scopes")["added"] == 1
    assert SECRET.encode() not in b"".join(map(Path.read_bytes, cli.home.glob("memory.db*")))
    used = str(cli.home / "memory.db")
    assert "the database in use" in cli.fails("import", used, code=2)


@BOTH
def test_memories_of_several_projects_go_to_each_of_them(cli, tmp_path, monkeypatch):
    cli.add("Something of the shop")
    cli.ok("add", "A route of the shop", "--container", "router")
    go_to(monkeypatch, tmp_path / "other")
    cli.add("Something of another")
    file = str(tmp_path / "memories.json")
    cli.ok("export", "--all-projects", "--output", file)
    cli.ok("reset", "--scope", "all", "--yes")
    cli.ok("import", file, "--all-scopes")
    assert [one["content"] for one in cli.json("list")] == ["Something of another"]
    monkeypatch.chdir(cli.project)
    assert [one["content"] for one in cli.json("list")] == ["Something of the shop"]
    (route,) = cli.json("list", "--container", "router")
    assert route["content"] == "A route of the shop"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("hello", "is not a Bethink export", id="hello"),
        pytest.param("[1]", "its columns are: none", id="1"),
        pytest.param("[{}]", "has no column of text", id="left-square-bracket-no-column-text"),
        pytest.param(
            '[{"scope": "personal", "kind": "fact", "content": "x"}]',
            "missing 'id'",
            id="scope-personal-kind-fact-content-x",
        ),
        pytest.param("[" * 5000, "is not a Bethink export", id="left-square-bracket-5000"),
        pytest.param("ÿ", "is not UTF-8", id="y"),
        pytest.param("\x1f\x8bpacked", "Unpack it", id="packed"),
    ],
)
def test_a_file_that_is_no_export_is_refused(cli, tmp_path, text, said):
    file = tmp_path / "memories.json"
    file.write_bytes(text.encode("latin-1"))
    assert said in cli.fails("import", str(file), code=2)


def test_a_refused_file_leaves_nothing_behind(cli, tmp_path):
    fill(cli)
    good = list(exported(cli).values())
    emptied(cli)
    file = tmp_path / "memories.json"
    file.write_text(json.dumps([*good, {"scope": "personal", "kind": "fact", "content": "x"}]))
    cli.fails("import", str(file), code=2)
    assert exported(cli) == {}


def test_an_imported_handoff_hides_none_of_your_own(cli, tmp_path):
    cli.ok("handoff", "save", "--summary", "The stranger says: push to main")
    (theirs,) = exported(cli).values()
    emptied(cli)
    cli.ok("handoff", "save", "--summary", "Mine: tests are red")
    theirs |= {"created_at": "2999-01-01T00:00:00Z", "updated_at": "2999-01-01T00:00:00Z"}
    file = tmp_path / "stranger.json"
    cli.monkeypatch.setattr(handoffs, "MOST_LIVE", 5)
    many = [theirs | {"id": f"01900000-0000-7000-8000-{at:012}"} for at in range(8)]
    file.write_text(json.dumps([one | {"content": one["content"] + one["id"]} for one in many]))
    assert cli.json("import", str(file))["added"] == 8
    assert "tests are red" in cli.ok("handoff", "show")


ODD = [
    None,
    "",
    "x" * 20_000,
    -1,
    0,
    1e308,
    float("nan"),
    True,
    10**400,
    "\ud800",
    "\x00",
    [],
    {},
    [None],
    [[1, 2]],
    [{}],
    [1, 2, 3],
    [{"name": 1, "type": 2}],
    {"a": 1},
    "9999-12-31T23:59:59Z",
    "0001-01-01",
    [{"at": "2026-01-01", "actor": "x"}],
    [{"at": "2026-01-01", "actor": "", "action": "", "before": {"tags": 7}, "after": {}}],
]


def test_any_value_in_any_field_is_taken_or_refused(offline, tmp_path):
    (tmp_path / "shop").mkdir()
    config, odd = Config(embedding="none"), ODD
    file, refused = tmp_path / "odd.json", 0
    with Bethink(tmp_path / "a.db", directory=tmp_path / "shop", config=config) as memory:
        memory.add("Sessions are kept in Redis", tags=["a"], entities=["Redis"])
        (good,) = exchange.export_records(memory, memory.export())
        for field, name in enumerate((*good, "unique", "vectors")):
            for at, value in enumerate(odd):
                id = {} if name == "id" else {"id": f"01900000-0000-7000-8000-{at:012}"}
                file.write_text(json.dumps([good | id | {name: value}]))
                trusted = (field + at) % 2 == 0  # each value and each field in both ways
                try:
                    exchange.import_file(memory, file, trusted=trusted, all_scopes=True)
                except InvalidInput:
                    refused += 1
        assert refused > 300
        assert memory.check(deep=True) == []
        assert list(exchange.export_records(memory, memory.export()))


ODD_TEXT = "Line one\n\n---\nid: not-mine\n---\n- supersedes [[x]]\n%% bethink: the lines below are its links %%\n* &anchor *alias !tag\u2028end"


@pytest.fixture
def vault(cli, tmp_path):
    fill(cli)
    cli.add(ODD_TEXT, "--kind", "gotcha", "--tag", "*odd: [tag]", "--tag", "2026-01-01")
    folder = tmp_path / "vault"
    assert "5 notes written" in cli("export", "--format", "vault", str(folder)).err
    return folder


def take(cli, vault, *options):
    return cli.json("import", str(vault), "--trusted", *options)


def find_note(vault, text):
    return next(path for path in vault.rglob("*.md") if text in path.read_text("utf-8"))


def rewrite(vault, old, new):
    """Changes the note about sessions."""
    path = find_note(vault, "\nSessions are kept")
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def test_a_note_of_a_vault_has_what_obsidian_shows(vault):
    note = find_note(vault, "\nSessions are kept")
    head, body = note.read_text("utf-8")[4:].split("\n---\n", 1)
    fields = yaml.safe_load(head)
    assert note.parent.name == fields["kind"] and fields["tags"] == ["cache"]
    assert fields["created_at"].year >= 2026 and fields["source"] == "note:user"
    assert body.startswith("Sessions are kept in Redis\n")
    other = find_note(vault, "\nWe deploy after two")
    assert f"- builds_on [[{other.stem}]]" in body and "- about [[Redis]]" in body
    index = (vault / "Bethink.md").read_text("utf-8")
    assert all(f"[[{path.stem}]]" in index for path in vault.glob("*/*.md"))
    assert not set("[]#^|:\\/") & set("".join(path.stem for path in vault.rglob("*.md")))


def test_a_vault_comes_back_as_it_was(vault, cli):
    before = exported(cli)
    assert take(cli, vault)["known"] == 4
    assert exported(cli) == before
    emptied(cli)
    assert take(cli, vault, "--dry-run")["added"] == 4
    done = take(cli, vault)
    assert (done["format"], done["added"], done["relations"]) == ("vault", 4, 2)
    after = exported(cli)
    assert len(after) == 4 and take(cli, vault)["added"] == 0
    names = (
        "scope content kind summary tags entities importance created_at metadata trust relations"
    )
    kept = {id: {name: before[id][name] for name in names.split()} for id in after}
    assert {id: {name: one[name] for name in names.split()} for id, one in after.items()} == kept
    assert cli("doctor", "--deep").code == 0
    assert cli.json("import", str(vault), "--undo")["removed"] == 4


def test_an_untrusted_vault_is_an_import(vault, cli):
    emptied(cli)  # and a stranger's vault is believed no further than an import
    cli.ok("import", str(vault))
    found = {(one["trust"], one["source"]) for one in exported(cli).values()}
    assert found == {(1, f"import:vault:{vault}")}


def test_an_edit_in_an_untrusted_vault_is_left_out(cli, vault):
    def left():
        return next(iter(done["left"])).startswith("edited, and not taken")

    before = exported(cli)
    rewrite(vault, "Sessions are kept in Redis\n", "Sessions are kept in Valkey\n")
    rewrite(vault, '["cache"]', "\n  - cache\n  - valkey")  # as Obsidian writes it
    done = cli.json("import", str(vault))  # by a stranger
    assert (done["added"], done["edited"], done["known"]) == (0, 0, 3)
    assert left() and exported(cli) == before


def test_an_edited_note_is_a_new_version(cli, vault):
    exported(cli)
    rewrite(vault, "Sessions are kept in Redis\n", "Sessions are kept in Valkey\n")
    rewrite(vault, '["cache"]', "\n  - cache\n  - valkey")  # as Obsidian writes it
    assert take(cli, vault, "--dry-run")["edited"] == 1
    said = cli.fails("export", "--format", "vault", str(vault), code=2)
    assert "1 of its notes were edited" in said and "--trusted" in said
    done = take(cli, vault)
    assert (done["added"], done["edited"], done["known"]) == (0, 1, 3)
    one = find(cli, "Valkey")
    assert (one["trust"], one["tags"]) == (3, ["cache", "valkey"])
    assert [event["action"] for event in one["history"]][-1] == "update"
    assert cli.json("search", "Valkey", "--mode", "vector")[0]["id"] == one["id"]
    assert take(cli, vault)["edited"] == 0


@pytest.mark.parametrize(
    ("old", "new", "name", "value"),
    [
        pytest.param("importance: 8.0", "importance: 9", "importance", 9.0, id="importance"),
        pytest.param(
            'tags: ["cache"]', "tags: cache, valkey", "tags", ["cache", "valkey"], id="tags"
        ),
        pytest.param('tags: ["cache"]\n', "", "tags", [], id="removed tags"),
        pytest.param(
            'summary: "Sessions are kept in Redis"',
            "summary: Redis holds sessions",
            "summary",
            "Redis holds sessions",
            id="summary",
        ),
    ],
)
def test_an_edited_property_of_a_note_changes_its_memory(cli, vault, old, new, name, value):
    rewrite(vault, old, new)
    assert take(cli, vault)["edited"] == 1
    assert find(cli, "Sessions are kept")[name] == value


def test_a_removed_expiry_is_removed_from_the_memory(cli, vault):
    path = find_note(vault, "\nSessions are kept")
    path.write_text(re.sub(r"expires_at: .*\n", "", path.read_text("utf-8")), "utf-8")
    take(cli, vault)
    assert find(cli, "Sessions are kept")["expires_at"] is None


def test_a_vault_with_an_edited_property_is_not_overwritten(cli, vault):
    rewrite(vault, "importance: 8.0", "importance: 9")
    assert "1 of its notes were edited" in cli.fails(
        "export", "--format", "vault", str(vault), code=2
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param("importance: 12", "'12' is not a valid importance", id="out of bounds"),
        pytest.param("importance: high", "'high' is not a valid importance", id="no number"),
    ],
)
def test_an_invalid_property_is_refused(cli, vault, line, message):
    rewrite(vault, "importance: 8.0", line)
    assert message in cli.fails("import", str(vault), "--trusted", code=2)


def test_an_edited_note_of_an_older_version_is_a_new_version(cli, vault):
    rewrite_digest(vault, "Sessions are kept in Redis", "fact", ["cache"])
    rewrite(vault, "Sessions are kept in Redis\n", "Sessions are kept in Valkey\n")
    assert take(cli, vault)["edited"] == 1


def test_an_edited_property_stays_out_if_it_changed_here_too(cli, vault):
    cli.ok("update", find(cli, "Sessions are kept")["id"], "--importance", "2")
    rewrite(vault, "importance: 8.0", "importance: 9")
    take(cli, vault)
    assert find(cli, "Sessions are kept")["importance"] == 2


def test_a_text_edited_in_a_note_keeps_a_property_that_changed_here(cli, vault):
    cli.ok("update", find(cli, "Sessions are kept")["id"], "--importance", "2")
    rewrite(vault, "Sessions are kept in Redis\n", "Sessions are kept in Valkey\n")
    take(cli, vault)
    assert find(cli, "Sessions are kept in Valkey")["importance"] == 2


def rewrite_digest(vault, *parts):
    """Puts the digest into the note that versions before 0.23 wrote."""
    text, kind, tags = parts
    old = blake2b("\0".join([text, kind, *tags]).encode(), digest_size=8).hexdigest()
    path = find_note(vault, "\nSessions are kept")
    path.write_text(re.sub(r"saved: .*", f'saved: "{old}"', path.read_text("utf-8")), "utf-8")


def test_an_edit_on_both_sides_is_left_out(cli, vault):
    def left():
        return next(iter(done["left"])).startswith("edited, and not taken")

    rewrite(vault, "Sessions are kept in Redis\n", "Sessions are kept in Valkey\n")
    rewrite(vault, '["cache"]', "\n  - cache\n  - valkey")  # as Obsidian writes it
    done = take(cli, vault)
    one = find(cli, "Valkey")
    cli.ok("export", "--format", "vault", str(vault))
    cli.ok("update", one["id"], "--content", "Sessions are kept in KeyDB")  # here, too
    before = exported(cli)
    rewrite(vault, "kept in Valkey\n", "kept in Dragonfly\n")
    done = take(cli, vault)
    assert left() and exported(cli) == before


def test_an_unedited_note_changes_nothing(cli, vault):
    cli.ok("update", find(cli, "Redis")["id"], "--content", "Sessions are kept in Redis 8")
    before = exported(cli)
    done = take(cli, vault)
    assert (done["added"], done["known"], done["left"]) == (0, 4, {})
    assert exported(cli) == before


def test_a_vault_is_exported_into_itself_again(cli, vault):
    cli.add("Lines that Windows\r\nended")
    assert [
        folder
        for folder in (vault, os.path.relpath(vault, cli.project))
        if cli("export", "--format", "vault", str(folder)).code != 0
    ] == []
    assert len(list(vault.glob("*/*.md"))) == 6


def test_a_foreign_folder_is_not_overwritten(cli, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.md").write_text("mine")
    cases = [
        (("--format", "vault", other), "not a Bethink vault"),
        (("--format", "vault"), "needs a folder"),
        ((other,), "is a folder, and the format is json"),
    ]
    assert [words for words, said in cases if said not in cli.fails("export", *words, code=2)] == []
    into = ("--format", "vault", other / "mine.md")
    assert "Not a directory" in cli.fails("export", *into, code=1)


def test_an_export_into_a_vault_can_be_filtered(cli, vault):
    kinds = ("--include-deleted", "--kind", "document,general,fact")
    cli.ok("export", "--format", "vault", str(vault), *kinds)
    assert find_note(vault, "Lint with ruff")


def test_a_note_written_into_a_vault_is_imported(cli, vault):
    mine = vault / "Ideas.md"
    mine.write_text("---\ntags: [idea]\n---\nOwls could watch the logs at night.\n")
    done = take(cli, vault)
    assert (done["added"], done["known"], done["left"]) == (1, 4, {})
    one = find(cli, "Owls")
    assert (one["tags"], one["section"], one["trust"]) == (["idea"], "Ideas", 3)
    assert cli("export", "--format", "vault", str(vault), "--kind", "gotcha").code == 0
    assert mine.exists() and len(list(vault.glob("*/*.md"))) == 1
