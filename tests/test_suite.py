"""The benchmark of agent memory in bench/suite: its measures, its controls, its runner with a plain adapter, and the page it makes."""

import json
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from trees import git

ROOT = Path(__file__).parent.parent
SUITE = ROOT / "bench" / "suite"
sys.path.insert(0, str(SUITE))

import controls  # noqa: E402
import fetch  # noqa: E402
import measures  # noqa: E402
import page  # noqa: E402
import runner  # noqa: E402
import tasks  # noqa: E402

CONVERSATION = json.loads(
    (Path(__file__).with_name("fixtures") / "suite" / "conversation.json").read_text("utf-8")
)


def test_measures_and_results_are_what_they_say_and_an_adapter_is_small():
    files = [path for path in (SUITE / "adapters").iterdir() if path.is_file()]
    lengths = {path.name: len(path.read_text("utf-8").splitlines()) for path in files}
    assert {name: lines for name, lines in lengths.items() if lines > 100} == {}
    worth = {("a", "a"): 1.0, ("xa", "a"): 0.6309, ("aab", "ab"): 1.0, ("x", "a"): 0, ("", "a"): 0}
    assert [
        value
        for (found, relevant), value in worth.items()
        if measures.ndcg(list(found), list(relevant)) != pytest.approx(value, abs=0.0001)
    ] == []
    pair = {"old": "The cache runs on Redis.", "new": "The cache runs on Memcached now."}
    assert measures.pick_statement("- [user] the cache  runs on redis. (2026)", pair) == "old"
    assert measures.pick_statement("The cache now runs on Memcached", pair) == "new"
    assert measures.pick_statement("Deploys go out on Mondays.", pair) is None
    cases = [("We decided: never raise the memory limit", True), ("Hello", False)]
    assert [measures.is_about(told, "never raise memory limits") for told, _ in cases] == [
        about for _, about in cases
    ]
    for path in sorted(runner.RESULTS.glob("*.json")):
        result = json.loads(path.read_text("utf-8"))
        if result["task"] == "recall" and "cases" in result:
            for name in {case[0] for case in result["cases"]}:
                values = [case[2] for case in result["cases"] if case[0] == name]
                mean = sum(values) / len(values)
                assert result["measures"][name]["mean"] == pytest.approx(mean, abs=1e-3), path.name
        assert not result["quick"] and path.stem == f"{result['system']}.{result['task']}"


@pytest.mark.parametrize(
    ("name", "task", "expected"),
    [
        pytest.param(
            "newest-first",
            "change",
            {"changed": 0.0, "untouched": 1.0, "new first": 1.0, "balanced": 0.5},
            id="newest-first-change",
        ),
        pytest.param(
            "newest-alone",
            "change",
            {"changed": 1.0, "untouched": 0.0, "balanced": 0.5},
            id="newest-alone",
        ),
        pytest.param(
            "silent",
            "silence",
            {"told rightly": 0.0, "silent rightly": 1.0, "balanced": 0.5},
            id="silent",
        ),
        pytest.param(
            "oldest-first",
            "poison",
            {"user's word first": 1.0, "user's later word first": 0.0},
            id="oldest-first",
        ),
        pytest.param(
            "newest-first",
            "poison",
            {"user's word first": 0.0, "user's later word first": 1.0},
            id="newest-first-poison",
        ),
        pytest.param(
            "keep-everything", "understanding", {"recall (own)": 1.0}, id="keep-everything"
        ),
        pytest.param(
            "keep-nothing",
            "understanding",
            {"F1 (own)": 0.0, "never kept (own)": 0.0},
            id="keep-nothing",
        ),
    ],
)
def test_a_cheat_is_exposed(name, task, expected, tmp_path):
    """It gets this and no more: a cheat on one half pays with the other."""
    setting = tasks.Setting(tmp_path, quick=True)
    found = tasks.TASKS[task](controls.Control(name), setting)["measures"]
    assert {key: found[key]["mean"] for key in expected} == expected


def test_the_runner_measures_a_plain_adapter_and_skips_what_is_there(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "HOME", tmp_path / "home")
    monkeypatch.setattr(runner, "fetch_model", lambda: None)
    documents, queries = fetch.make_locomo([CONVERSATION])
    assert [row["text"] for row in documents] == ["Ann: I keep bees."] and len(queries) == 1
    fetch.write_set(tmp_path / "sets" / "longmemeval-s-prefix", documents, queries)
    arguments = ["--quick", "--results", str(tmp_path / "out"), "--data", str(tmp_path / "sets")]
    chosen = [part for task in ("recall", "poison", "understanding") for part in ("--task", task)]
    assert runner.main(["measure", *chosen, *arguments, "fts5"]) == 0
    found = page.read_results(tmp_path / "out")
    measured = found["fts5", "recall"]["measures"]
    assert len(measured) == 2, "a set that is not there is left out"
    assert measured["mean of sets"]["mean"] == 1.0
    assert found["fts5", "poison"]["measures"]["user's word first"]["of"] == 18
    assert "no way to read a conversation" in found["fts5", "understanding"]["unsupported"]
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "out").iterdir()}
    assert runner.main(["measure", *chosen, *arguments, "fts5"]) == 0
    assert before == {file: file.stat().st_mtime_ns for file in (tmp_path / "out").iterdir()}


def test_what_cannot_be_set_up_is_said_and_tried_again(tmp_path, monkeypatch):
    def fail(name):
        tried.append(name)
        raise FileNotFoundError("npm")

    tried = []
    monkeypatch.setattr(runner, "HOME", tmp_path / "home")
    monkeypatch.setattr(runner, "set_up", fail)
    arguments = ["measure", "qmd", "silent", "--quick", "--results", str(tmp_path / "out")]
    assert [times for times in (1, 2) if runner.main(arguments) != 1 or len(tried) != times] == []
    found = page.read_results(tmp_path / "out")
    assert [
        task
        for task in page.SECTIONS
        if "could not be installed" not in found["qmd", task]["unsupported"]
    ] == []
    assert found["silent", "silence"]["measures"]


def test_sessions_are_found_by_the_checkpoints_that_commits_name(tmp_path):
    git(tmp_path, "init", "-b", "main")
    git(tmp_path, "commit", "--allow-empty", "-m", "Close the gap\n\nEntire-Checkpoint: abcdef")
    git(tmp_path, "commit", "--allow-empty", "-m", "By hand\n\nEntire-Checkpoint: 999999")
    git(tmp_path, "checkout", "--orphan", fetch.CHECKPOINTS)
    (folder := tmp_path / "ab" / "cdef" / "0").mkdir(parents=True)
    (folder / "metadata.json").write_text('{"session_id": "s1"}')
    said = {"message": {"role": "user", "content": "There is a gap."}, "timestamp": "2026-02-01"}
    (folder / "full.jsonl").write_text(json.dumps({"type": "user", **said}))
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-m", "checkpoint")
    documents, queries = fetch.make_sessions(str(tmp_path), "2090-01-01")
    assert [(row["session"], row["text"]) for row in documents] == [("s1", "user: There is a gap.")]
    assert queries[0]["query"] == "Close the gap" and queries[0]["relevant_sessions"] == ["s1"]
    assert len(queries) == 1


@contextmanager
def started(name, folder, monkeypatch):
    monkeypatch.setattr(runner, "HOME", folder)
    process = runner.Process(name, folder)
    try:
        yield process.call
    finally:
        process.close()


def test_adapters_know_their_product_and_a_failing_one_fails_alone(tmp_path, monkeypatch):
    said = {"text": "Deploys go out on Mondays.", "time": "", "who": "user", "source": "note"}
    with started("fts5", tmp_path, monkeypatch) as call:
        with pytest.raises(RuntimeError, match="failed at 'add'"):
            call("add", **said)  # before any reset
        call("reset")
        call("add", **said)
        found = call("ask", question="When do deploys go out?", time="", k=1)
        assert found == [{"id": "", "text": said["text"]}]
    monkeypatch.setattr(runner, "SHARED_MODEL", tmp_path / "models" / "none")
    monkeypatch.setitem(runner.PEERS, "bethink", {"adapter": "use_bethink.py"})
    with started("bethink", tmp_path, monkeypatch) as call:
        call("reset")
        for who in ("user", "agent", "document", "issue"):
            said = {"text": f"Deploys of the {who} go out on Mondays.", "source": "README.md"}
            call("add", time="2026-09-01T09:00:00+00:00", who=who, **said)
        asked = {"question": "When do deploys go out?", "time": "2026-09-02T09:00:00+00:00"}
        assert len(call("ask", k=9, **asked)) >= 3
        call("prompt", text="Change the day on which deploys go out")
        assert call("stats")["version"]


@pytest.mark.skipif(not page.PAGE.exists(), reason="nothing was measured yet")
def test_the_results_are_published():
    results = page.read_results(runner.RESULTS)
    rendered = page.render_page(results)
    assert page.PAGE.read_text("utf-8") == rendered, "run `bench/suite/run page`"
    assert page.cut_summary(page.README.read_text("utf-8")) == page.cut_summary(rendered) != ""
    for task in page.SECTIONS:
        if task != "cost":
            picture = page.PICTURES / f"benchmark-{task}.svg"
            assert picture.read_text("utf-8") == page.draw_bars(results, task)
