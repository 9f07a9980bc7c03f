"""A vault: memories as a folder of notes that Obsidian opens, and back without loss, edits included."""

from __future__ import annotations

import json

import pytest
import yaml
from cli_runner import cli  # noqa: F401

ODD = "Line one\n\n---\nid: not-mine\n---\n- supersedes [[x]]\n%% bethink: the lines below are its links %%\n* &anchor *alias !tag\u2028end"


@pytest.fixture
def store_kind():
    return "sqlite"


def exported(cli):  # noqa: F811
    return {one["id"]: one for one in json.loads(cli.ok("export"))}


@pytest.fixture
def vault(cli, tmp_path):  # noqa: F811
    first = cli.add("We deploy from main", "--kind", "decision", "--metadata", "ticket=OPS-7")
    second = cli.add("We deploy after two reviews: always!", "--supersedes", first)
    third = cli.add(
        "Sessions are kept in Redis", "--tag", "cache", "--tag", "2026-01-01", "--entity", "technology:Redis",
        "--importance", "8",
    )  # fmt: skip
    cli.ok("link", third, "builds_on", second)
    cli.add(ODD, "--kind", "gotcha", "--tag", "*odd: [tag]")
    cli.ok("forget", cli.add("Nobody wants this"))
    (cli.project / "docs").mkdir()
    (cli.project / "docs" / "a.md").write_text("# Guide\n\nLint with ruff before each commit.\n")
    cli.ok("index", "docs")
    folder = tmp_path / "vault"
    assert "4 notes written" in cli("export", "--format", "vault", str(folder)).err
    return folder


def find_note(vault, text):
    return next(path for path in vault.rglob("*.md") if text in path.read_text("utf-8"))


def rewrite(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def emptied(cli):  # noqa: F811
    for scope in ("this", "personal"):
        cli.ok("reset", "--scope", scope, "--yes")


def test_a_note_has_what_obsidian_shows(vault):
    note = find_note(vault, "\nSessions are kept")
    head, body = note.read_text("utf-8")[4:].split("\n---\n", 1)
    fields = yaml.safe_load(head)
    assert note.parent.name == fields["kind"] and fields["tags"] == ["cache", "2026-01-01"]
    assert fields["created_at"].year >= 2026 and fields["source"] == "note:user"
    assert body.startswith("Sessions are kept in Redis\n")
    other = find_note(vault, "\nWe deploy after two")
    assert f"- builds_on [[{other.stem}]]" in body and "- about [[Redis]]" in body
    index = (vault / "Bethink.md").read_text("utf-8")
    assert all(f"[[{path.stem}]]" in index for path in vault.glob("*/*.md"))
    assert not set("[]#^|:\\/") & set("".join(path.stem for path in vault.rglob("*.md")))


def test_it_comes_back_without_loss(cli, vault):  # noqa: F811
    before = exported(cli)
    assert cli.json("import", str(vault), "--trusted")["known"] == 4
    assert exported(cli) == before
    emptied(cli)
    assert cli.json("import", str(vault), "--trusted", "--dry-run")["added"] == 4
    done = cli.json("import", str(vault), "--trusted")
    assert (done["format"], done["added"], done["relations"]) == ("vault", 4, 2)
    after = exported(cli)
    assert len(after) == 4 and cli.json("import", str(vault), "--trusted")["added"] == 0
    for id, one in after.items():
        was = before[id]
        for name in one.keys() - {"history", "keywords", "last_accessed"}:
            assert one[name] == was[name], name
    assert cli("doctor", "--deep").code == 0
    assert cli.json("import", str(vault), "--undo")["removed"] == 4


def test_a_strangers_vault_is_believed_no_further_than_an_import(cli, vault):  # noqa: F811
    emptied(cli)
    cli.ok("import", str(vault))
    found = exported(cli).values()
    assert {one["trust"] for one in found} == {1} and {one["source"] for one in found} == {"import"}


def test_an_edited_note_is_a_new_version_of_ones_own_memory(cli, vault):  # noqa: F811
    note = find_note(vault, "\nSessions are kept")
    rewrite(note, "Sessions are kept in Redis\n", "Sessions are kept in Valkey\n")
    rewrite(note, '["cache", "2026-01-01"]', "\n  - cache\n  - valkey")  # as Obsidian writes it
    assert cli.json("import", str(vault), "--trusted", "--dry-run")["edited"] == 1
    done = cli.json("import", str(vault), "--trusted")
    assert (done["added"], done["edited"], done["known"]) == (0, 1, 3)
    (one,) = [one for one in exported(cli).values() if "Valkey" in one["content"]]
    assert (one["trust"], one["tags"]) == (3, ["cache", "valkey"])
    assert [event["action"] for event in one["history"]][-1] == "update"
    assert cli.json("search", "Valkey", "--mode", "vector")[0]["id"] == one["id"]
    assert cli.json("import", str(vault), "--trusted")["edited"] == 0
    said = cli.fails("export", "--format", "vault", str(vault), code=2)
    assert "1 of its notes were edited" in said and "--trusted" in said


@pytest.mark.parametrize("trusted", [True, False])
def test_any_other_edit_is_told_and_left(cli, vault, trusted):  # noqa: F811
    note = find_note(vault, "\nSessions are kept")
    rewrite(note, "Sessions are kept in Redis\n", "Sessions are kept in Valkey\n")
    (mine,) = [id for id, one in exported(cli).items() if "Redis" in one["content"]]
    if trusted:  # then it must have been changed here, too
        cli.ok("update", mine, "--content", "Sessions are kept in Redis 8")
    before = exported(cli)
    done = cli.json("import", str(vault), *(["--trusted"] if trusted else []))
    assert (done["added"], done["edited"], done["known"]) == (0, 0, 3)
    assert next(iter(done["left"])).startswith("edited, and not taken")
    assert exported(cli) == before


def test_what_somebody_writes_into_a_vault_is_taken_in_and_stays(cli, vault):  # noqa: F811
    mine = vault / "Ideas.md"
    mine.write_text("---\ntags: [idea]\n---\nOwls could watch the logs at night.\n")
    broken = vault / "Broken.md"
    broken.write_text("---\na: [\n---\nx\n")
    done = cli.json("import", str(vault), "--trusted")
    assert (done["added"], done["known"], done["left"]) == (1, 4, {"unreadable": 1})
    (one,) = [one for one in exported(cli).values() if "Owls" in one["content"]]
    assert (one["tags"], one["section"], one["trust"]) == (["idea"], "Ideas", 3)
    broken.unlink()
    assert cli("export", "--format", "vault", str(vault), "--kind", "decision").code == 0
    assert mine.exists() and len(list(vault.glob("*/*.md"))) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("kind: ", "kind: nonsense #"), "its kind is not in order"),
        (("created_at: ", "created_at: soon #"), "is none of an export"),
        (("scope: ", "scop: "), "it has no 'scope'"),
    ],
)
def test_a_note_that_was_broken_is_named_and_nothing_is_taken(cli, vault, change, said):  # noqa: F811
    emptied(cli)
    rewrite(find_note(vault, "\nSessions are kept"), *change)
    assert said in cli.fails("import", str(vault), "--trusted", code=2)
    assert exported(cli) == {}


def test_a_vault_is_written_nowhere_else(cli, vault, tmp_path):  # noqa: F811
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.md").write_text("mine")
    assert "no vault of Bethink" in cli.fails("export", "--format", "vault", str(other), code=2)
    assert "is no folder" in cli.fails(
        "export", "--format", "vault", str(other / "mine.md"), code=2
    )
    assert "goes with" in cli.fails("export", "--format", "vault", code=2)
    assert "goes with" in cli.fails("export", str(other), code=2)
    cli.ok(
        "export", "--format", "vault", str(vault), "--include-deleted", "--kind", "document,general"
    )
    assert find_note(vault, "Lint with ruff")
