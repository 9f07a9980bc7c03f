"""The code map: what becomes of a source file, the repo map's JSON in both directions, and whether code is found by it."""

import json
import os
from itertools import pairwise
from pathlib import Path

import pytest
from case_tables import cases, each
from trees import FIXTURES, plant

from bethink.errors import InvalidInput
from bethink.ingest import code
from bethink.ingest.code import LARGE, MapEntry, documents, map_files, read_map, skeleton, to_json
from bethink.ingest.files import Found, walk
from bethink.ingest.symbols import Symbol
from bethink.ingest.sync import Document, Skipped
from bethink.model import Entity, Source

CODE = FIXTURES / "code"


@pytest.fixture
def project(tmp_path):
    """Writes files and maps them."""

    def mapped(files):
        plant(tmp_path, files)
        return {one.uri: one for one in documents(walk(tmp_path, tmp_path))}

    return mapped


@pytest.fixture
def told(project):
    """The passages of one file."""
    return lambda name, text: list(project({name: text})[f"code:{name}"].passages())


def shown(name: str) -> list:
    (document,) = documents([Found(CODE / name, name)])
    return list(document.passages())


def test_each_source_file_is_a_document_unless_nobody_wrote_it_by_hand(project, monkeypatch):
    others = {"README.md": "# Hello\n", "data.json": "{}", "LICENSE": "MIT", "blob": b"\0\1\2"}
    found = project(others | {"src/a.py": "def f(): pass\n", "b.ts": "export const X = 1;\n"})
    languages = {uri: one.metadata["language"] for uri, one in found.items()}
    assert languages == {"code:src/a.py": "python", "code:b.ts": "typescript"}
    monkeypatch.setattr(code, "outline", lambda *_: pytest.fail("parsed"))
    for content in cases("repomap-a-program-may-speak-of", {}):
        assert isinstance(project({"a.py": content})["code:a.py"], Document)


@each("name, content, reason", "repomap-what-nobody-wrote-by-hand", {})
def test_what_nobody_wrote_by_hand_is_skipped_with_a_reason(project, name, content, reason):
    assert project({name: content}) == {f"code:{name}": Skipped(f"code:{name}", reason)}


def test_a_file_has_a_passage_of_its_own_and_others_for_its_definitions():
    file, constants, retry = shown("retry.py")
    said = "Calls that may fail are tried again.\nNothing here knows about HTTP."
    assert file.content.startswith(f"retry.py [python] 74 lines\n{said}\n")
    assert "RetryPolicy.delay" in file.content
    assert (file.section, file.lines) == ("retry.py", (1, 74))
    assert constants.section == "Check, RetryPolicy, MAX_ATTEMPTS, _DELAYS"
    assert constants.content == (FIXTURES / "symbols" / "retry.py.passage").read_text("utf-8")
    assert retry.lines == (51, 74)
    summary = "function retry(…) and 2 more in retry.py: Runs `call` until it succeeds."
    assert retry.summary == summary
    names = ["retry", "fallback", "slow"]
    symbols = (Entity(name, "symbol") for name in names)
    assert retry.entities == (Entity("retry.py", "file"), *symbols)
    assert retry.metadata == {"path": "retry.py", "language": "python", "symbols": names}
    assert {passage.kind for passage in (file, constants, retry)} == {"code"}
    for path, test in cases("repomap-definitions-in-tests-are"):
        long = Symbol("check", "function", "def check()", (1, 90), "x" * 590)
        entry = MapEntry(path, "python", (long, long._replace(name="other")), 90)
        file, definition = code.passages(entry)[:2]
        assert file.embed and definition.embed is not test


@pytest.mark.parametrize(("name", "text", "contents"), cases("repomap-told"))
def test_a_small_file_is_one_passage_and_nothing_said_is_none(told, name, text, contents):
    assert [passage.content for passage in told(name, text)] == contents


def test_every_symbol_is_in_a_passage_and_a_large_class_is_cut_between_methods(told):
    for name in sorted(path.name for path in CODE.iterdir()):
        (entry,) = map_files([Found(CODE / name, name)])
        found = shown(name)
        texts = "\n".join(passage.content for passage in found)
        for symbol in entry.symbols:
            first, last = symbol.lines
            assert symbol.name in texts
            assert any(one.lines[0] <= first and last <= one.lines[1] for one in found)
            if symbol.kind in ("function", "method", "class"):
                assert f"{first}: {symbol.signature}" in texts
        assert all(passage.content.startswith(name) for passage in found)
    method = '    def method_{0}(self):\n        """Does thing {0} with great care and many words."""\n\n'
    methods = "".join(map(method.format, range(60)))
    found = told("big.py", f'class Big(Base):\n    """The biggest."""\n\n{methods}')
    parts = [passage for passage in found if passage.section != "big.py"]
    assert len(parts) > 3
    assert all(len(passage.content) < LARGE + 300 for passage in parts)
    assert parts[0].section == "Big" and parts[1].section.startswith("Big.method_")
    assert parts[1].content.splitlines()[1] == "class Big(Base) …"
    named = [symbol for passage in parts for symbol in passage.metadata["symbols"]]
    assert named == ["Big", *(f"method_{number}" for number in range(60))]
    # The ranges follow each other, so that each line of the class belongs to one passage.
    assert all(one.lines[1] < other.lines[0] for one, other in pairwise(parts))
    body = "    # only once per day\n    if a:\n        raise ValueError('there is no such region here')\n\n"
    found = told("a.py", f"def f(a):\n{body}" + "def g():\n    pass\n" * 60)
    said = "only once per day there is no such region here"
    assert said in "\n".join(passage.content for passage in found)


def test_the_json_survives_a_round_trip_and_a_bad_map_is_refused_whole():
    made = map_files(walk(CODE, CODE))
    raw = json.dumps(to_json(made)).encode()
    back = read_map(raw, Path("map.json")).passages()
    expected = [(one.path, (1, one.lines)) for one in made]
    assert [(each.section, each.lines) for each in back] == expected
    first = json.loads(raw)[0]
    kinds = {"path": str, "language": str, "symbols": list, "content": str}
    assert {key: type(first[key]) for key in kinds} == kinds
    (entry,) = map_files([Found(CODE / "cache.go", "cache.go")])
    assert skeleton(entry).startswith(
        "Package cache keeps what was fetched for a while.\n"
        '13: var ErrMissing = errors.New("missing")\n'
        "    ErrMissing is returned for keys that are not there.\n"
        "18: MaxEntries = 1000\n"
    )
    assert "43:   func (c *Cache[K, V]) Get(key K) (value V, err error)" in skeleton(entry)
    (written,) = to_json([entry])
    names = "ErrMissing MaxEntries MinTTL Cache Store Fetch Key Loader Get size New"
    assert written["symbols"] == names.split()
    for raw, message in cases("repomap-a-bad-map-is-refused", {}):
        with pytest.raises(InvalidInput) as caught:
            read_map(raw, Path("m.json"))
        assert message in caught.value.message and caught.value.hint


def test_a_map_is_one_document_and_its_paths_are_data(tmp_path, monkeypatch):
    symbols = ["UserHandler", "list"]
    about = {"path": "handlers/users.go", "language": "go", "symbols": symbols}
    raw = json.dumps([about | {"content": "type UserHandler struct {}"}, {"path": "b.go"}]).encode()
    link, file = tmp_path / "link.json", plant(tmp_path, {"map.json": raw}) / "map.json"
    link.symlink_to(file)
    document = read_map(raw, link)
    assert document.uri == f"repo-map:{os.path.realpath(file)}"
    users, bare = document.passages()
    assert users.content == "handlers/users.go [go] UserHandler list\ntype UserHandler struct {}"
    assert (users.kind, users.section, users.lines) == ("code", "handlers/users.go", None)
    assert users.metadata == {**about, "import_type": "repo-map"}
    assert users.entities[0] == Entity("handlers/users.go", "file")
    assert bare.content == "b.go [unknown]"
    assert read_map(raw + b" ", link).hash != document.hash
    # Only the path is required, and the last of a path counts.
    nothing = {"path": "a", "language": None, "symbols": None, "content": "new", "lines": True}
    raw = b"\xef\xbb\xbf" + json.dumps([{"path": "a"}, nothing]).encode()
    (entry,) = read_map(raw, file).passages()
    assert (entry.content, entry.lines) == ("a [unknown]\nnew", None)
    paths = ["/etc/passwd", "../../secret", "nul\0l \ud800"]
    raw = json.dumps([{"path": path} for path in paths]).encode()
    monkeypatch.setattr(Path, "open", lambda *_: pytest.fail("opened"))
    found = [passage.section for passage in read_map(raw, tmp_path / "m.json").passages()]
    assert found == ["/etc/passwd", "../../secret", "null ?"]


def test_code_is_found_by_name_by_path_and_by_what_it_does(hashing):
    groups = [
        (Source(document.uri, "repomap", document.hash), document.passages())
        for document in documents(walk(CODE, CODE))
    ]
    hashing.ingest(groups)
    for question, name in cases("repomap-questions"):
        first = [hit.memory.metadata["path"] for hit in hashing.search(question).hits][:2]
        assert name in first, question
    found = hashing.search("RetryPolicy.delay").hits[0].memory
    assert found.lines[0] <= 41 <= found.lines[1]
