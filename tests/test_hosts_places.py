"""Whose transcript a file is, what was said in it, and where hosts keep theirs."""

import json
import os
import shutil

import pytest
from case_tables import each
from transcripts import FIXTURES, LINE_FILES, table

from bethink import hosts
from bethink.errors import InvalidInput, NotFound

FILES = sorted(path for path in FIXTURES.rglob("*.json*") if ".meta." not in path.name)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_transcript_is_what_people_and_agents_said_once(path, tmp_path):
    """`turns.txt` names each file, then its turns: the line, who spoke, the words."""
    words = [(line, who, json.dumps(text, ensure_ascii=False)) for line, who, text in table(path)]
    turns = "".join(f"  {line} {who} {text}\n" for line, who, text in words)
    expected = f"\n{path.relative_to(FIXTURES)}\n{turns}"
    said = "\n" + (FIXTURES / "turns.txt").read_text("utf-8")
    assert expected in said
    assert not said.partition(expected)[2].startswith(" ")
    other = shutil.copy(path, tmp_path / "download.jsonl")  # the name does not matter
    assert hosts.detect(path) == hosts.read(other).host == path.relative_to(FIXTURES).parts[0]


@each("host,variable,folder,fixtures", "hosts-places")
def test_transcripts_are_found_where_they_are(tmp_path, host, variable, folder, fixtures):
    home, expected = tmp_path / "home", FIXTURES / fixtures
    shutil.copytree(expected, home / folder)
    wanted = {path.name for path in expected.rglob("*.json*") if ".meta." not in path.name}
    found = list(hosts.locate(host, {}, home))
    assert {path.name for path in found} == wanted
    assert len(found) == len(wanted)
    if variable:
        moved = home if host == "gemini" else home / folder.partition("/")[0]
        assert list(hosts.locate(host, {variable: str(moved)}, tmp_path / "elsewhere")) == found
    assert list(hosts.locate(host, {}, tmp_path / "elsewhere")) == []


def test_the_newest_comes_first_and_what_is_not_there_is_said_in_a_sentence(tmp_path):
    folder = tmp_path / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    for name, age in (("old", 100), ("new", 300), ("middle", 200)):
        (folder / f"{name}.jsonl").touch()
        os.utime(folder / f"{name}.jsonl", (age, age))
    (folder / "journal.jsonl").touch()
    assert [path.stem for path in hosts.locate("claude", {}, tmp_path)] == ["new", "middle", "old"]
    folder = tmp_path / ".local" / "share" / "opencode"
    folder.mkdir(parents=True)
    for name in ("opencode.db", "opencode-beta.db", "mine.db", "opencode.db-wal"):
        (folder / name).touch()
    for environment, more in (({}, []), ({"OPENCODE_DB": "mine.db"}, ["mine.db"])):
        found = hosts.locate("opencode", environment, tmp_path)
        assert sorted(path.name for path in found) == [*more, "opencode-beta.db", "opencode.db"]
    with pytest.raises(NotFound, match="There is no transcript"):
        hosts.read(tmp_path / "gone.jsonl")
    with pytest.raises(InvalidInput, match="no agent host 'emacs'"):
        hosts.read(LINE_FILES["claude"], host="emacs")
    (tmp_path / "x.bin").write_bytes(b"\0\1\2")
    with pytest.raises(InvalidInput, match="no transcript of a known host"):
        hosts.read(tmp_path / "x.bin")
