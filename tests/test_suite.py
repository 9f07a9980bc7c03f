"""The benchmark of agent memory in bench/suite: its measures, its controls, its runner with a plain adapter, and the page it makes."""

import json
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from trees import git

ROOT = Path(__file__).parent.parent
SUITE = ROOT / "bench" / "suite"
sys.path.insert(0, str(SUITE))

import coding  # noqa: E402
import controls  # noqa: E402
import fetch  # noqa: E402
import keeping  # noqa: E402
import measures  # noqa: E402
import page  # noqa: E402
import registry  # noqa: E402
import runner  # noqa: E402
import shown  # noqa: E402
import tasks  # noqa: E402

CONVERSATION = json.loads(
    (Path(__file__).with_name("fixtures") / "suite" / "conversation.json").read_text("utf-8")
)


def test_an_adapter_is_small():
    files = (SUITE / "adapters").glob("use_*")
    lengths = {path.name: len(path.read_text("utf-8").splitlines()) for path in files}
    assert {name: lines for name, lines in lengths.items() if lines > 120} == {}


@pytest.mark.parametrize(
    ("found", "relevant", "value"),
    [
        pytest.param("a", "a", 1.0, id="first"),
        pytest.param("xa", "a", 0.6309, id="second"),
        pytest.param("aab", "ab", 1.0, id="repeated"),
        pytest.param("x", "a", 0, id="missed"),
        pytest.param("", "a", 0, id="nothing"),
    ],
)
def test_ndcg_counts_each_name_once(found, relevant, value):
    assert measures.ndcg(list(found), list(relevant)) == pytest.approx(value, abs=1e-4)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        pytest.param("- [user] the cache  runs on redis. (2026)", "old", id="inside"),
        pytest.param("The cache now runs on Memcached", "new", id="other-order"),
        pytest.param("Deploys go out on Mondays.", None, id="neither"),
    ],
)
def test_a_statement_is_recognised_by_its_words(text, name):
    pair = {"old": "The cache runs on Redis.", "new": "The cache runs on Memcached now."}
    assert measures.pick_statement(text, pair) == name


def test_a_part_of_a_measure_counts_the_same_however_large_it_is():
    value = measures.summarise_parts([[1.0], [0.0] * 9])
    assert (value["mean"], value["of"]) == (0.5, 10)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("We never raise the memory limit", True, id="said"),
        pytest.param("Hello", False, id="other"),
    ],
)
def test_a_memory_is_about_a_statement(text, shown):
    assert measures.is_about(text, "never raise memory limits") == shown


@pytest.mark.parametrize(
    ("answer", "is_there"),
    [
        pytest.param("[user] I keep bees on the roof, since 2021", True, id="whole"),
        pytest.param("I keep cats on the roof", False, id="few-runs"),
    ],
)
def test_evidence_is_shown_if_most_of_its_runs_are(answer, is_there):
    assert shown.is_shown("I keep bees on the roof since", answer) == is_there


RULE = {"id": "api-budget", "policy": "exactly 7 attempts, never more"}


@pytest.mark.parametrize(
    ("hit", "right"),
    [
        pytest.param(
            {"id": "api-budget.0#3", "text": "Use exactly seven attempts"}, True, id="right"
        ),
        pytest.param({"id": "other.0#3", "text": "Use exactly 7 attempts"}, False, id="other-talk"),
        pytest.param({"id": "", "text": "Use exactly 7 attempts"}, True, id="without-a-name"),
        pytest.param(
            {"id": "api-budget.0#1", "text": "Use exactly 5 attempts"}, False, id="number"
        ),
    ],
)
def test_a_rule_is_shown_by_its_words_and_numbers(hit, right):
    assert coding.holds_rule(RULE, [hit]) == right


def test_each_request_of_the_next_day_needs_a_statement_of_its_project_or_nothing():
    missing = [
        request["text"]
        for project in tasks.read_lines(SUITE / "data" / "next-day.jsonl")
        for request in project["requests"]
        if request["must"] and not coding.holds(request["must"], project["talk"])
    ]
    assert missing == []


RESULTS = sorted(runner.RESULTS.glob("*.json"))


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in RESULTS])
def test_a_published_result_is_of_a_known_system_and_no_quick_sample(path):
    result = json.loads(path.read_text("utf-8"))
    assert path.stem == f"{result['system']}.{result['task']}"
    assert result["task"] in runner.find_tasks(result["system"])
    assert not result["quick"]


COUNTED = [path for path in RESULTS if '"cases"' in path.read_text("utf-8")]


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in COUNTED])
def test_each_published_number_is_counted_from_its_cases(path):
    result = json.loads(path.read_text("utf-8"))
    counted = registry.COUNTERS[result["task"]](result["cases"], result["seed"])
    expected = {name: pytest.approx(value, abs=2e-4) for name, value in counted.items()}
    assert result["measures"] == expected


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in RESULTS])
def test_a_published_result_without_cases_is_a_cost_or_gives_a_reason(path):
    result = json.loads(path.read_text("utf-8"))
    assert "cases" in result or result["task"] in runner.COSTS or result["unsupported"]


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
            "oldest-first",
            "attacks",
            {"held": 1.0, "user's change first": 0.0, "balanced": 0.5},
            id="oldest-first-attacks",
        ),
        pytest.param(
            "newest-first",
            "attacks",
            {"held": 0.0, "user's change first": 1.0, "balanced": 0.5},
            id="newest-first-attacks",
        ),
        pytest.param(
            "silent",
            "next-day",
            {"at the prompt": 0.0, "silent rightly": 1.0, "balanced": 0.5},
            id="silent-next-day",
        ),
        pytest.param(
            "instructions",
            "next-day",
            {"at the prompt": 0.0, "in three hits": 0.0},
            id="instructions-alone",
        ),
        pytest.param(
            "silent",
            "failures",
            {"fix shown": 0.0, "silent rightly": 1.0, "balanced": 0.5},
            id="silent-failures",
        ),
        pytest.param("grep", "failures", {"silent rightly": 0.0}, id="grep-is-never-silent"),
        pytest.param("newest-alone", "histories", {"stored once": 1.0}, id="newest-alone-loses"),
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
    """A cheat on one half of a measure pays with the other half."""
    setting = tasks.Setting(tmp_path, quick=True)
    found = registry.TASKS[task](controls.Control(name), setting)["measures"]
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
    assert "does not read conversations" in found["fts5", "understanding"]["unsupported"]
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "out").iterdir()}
    assert runner.main(["measure", *chosen, *arguments, "fts5"]) == 0
    assert before == {file: file.stat().st_mtime_ns for file in (tmp_path / "out").iterdir()}


def test_what_cannot_be_set_up_is_named_and_tried_again(tmp_path, monkeypatch):
    def fail(name):
        tried.append(name)
        raise FileNotFoundError("npm")

    tried = []
    monkeypatch.setattr(runner, "HOME", tmp_path / "home")
    monkeypatch.setattr(runner, "set_up", fail)
    arguments = ["measure", "qmd", "silent", "--quick", "--results", str(tmp_path / "out")]
    assert [runner.main(arguments), len(tried), runner.main(arguments), len(tried)] == [1, 1, 1, 2]
    found = page.read_results(tmp_path / "out")
    reasons = {found["qmd", task]["unsupported"] for task in page.SECTIONS}
    assert reasons == {"Its packages could not be installed here."}
    assert found["silent", "silence"]["measures"]


def test_a_failure_leaves_the_result_that_is_there(tmp_path, monkeypatch):
    def fail(name):
        raise FileNotFoundError("npm")

    monkeypatch.setattr(runner, "HOME", tmp_path / "home")
    monkeypatch.setattr(runner, "set_up", fail)
    write_result(tmp_path, "qmd", "change", balanced=0.5)
    assert runner.main(["measure", "qmd", "--task", "change", "--results", str(tmp_path)]) == 1
    found = page.read_results(tmp_path)
    assert found["qmd", "change"]["measures"]["balanced"]["mean"] == 0.5


def test_an_interrupted_run_records_no_failure(tmp_path, monkeypatch, capsys):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "HOME", tmp_path / "home")
    monkeypatch.setattr(runner, "STOPPED", threading.Event())
    monkeypatch.setattr(runner, "measure", interrupt)
    arguments = ["measure", "silent", "grep", "--results", str(tmp_path / "out")]
    assert runner.main(arguments) == 130
    assert not (tmp_path / "out").exists()
    assert "Stopped. The same command continues" in capsys.readouterr().err


def test_a_system_without_packages_needs_no_model(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(runner, "HOME", tmp_path)
    monkeypatch.setattr(runner, "fetch_model", lambda: asked.append("model"))
    assert (runner.prepare("fts5"), asked) == ("", [])


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


def test_a_source_that_is_out_of_reach_does_not_stop_the_others(tmp_path, monkeypatch, capsys):
    def fail(*arguments):
        raise OSError("no network")

    made = {"near": lambda: fetch.make_locomo([CONVERSATION]), "far": fail}
    monkeypatch.setattr(fetch, "MAKERS", made)
    monkeypatch.setattr(fetch, "fetch_decisions", fail)
    assert fetch.fetch_sets(tmp_path) == 2
    assert (tmp_path / "near" / "corpus.jsonl").is_file()
    assert "far could not be made: no network. Its tasks go on" in capsys.readouterr().err


def test_decisions_are_fetched_from_the_tasks_that_have_a_conversation(tmp_path):
    (source := tmp_path / "source").mkdir()
    git(source, "init", "-b", "main")
    for name, talk in (("a", [{"role": "user", "text": "Keep 7."}]), ("b", None)):
        (folder := source / name / "tasks" / "main").mkdir(parents=True)
        task = {"codebase": name, "bug_report": "It fails.", "policy": "7", "conversations": talk}
        (folder / "task.json").write_text(json.dumps(task))
    git(source, "add", "-A")
    git(source, "commit", "-m", "tasks")
    fetch.fetch_decisions(tmp_path / "sde", str(source))
    rows = tasks.read_lines(tmp_path / "sde" / "tasks.jsonl")
    assert [(row["id"], len(row["conversations"])) for row in rows] == [("a", 1)]


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


def test_a_replaced_note_must_not_come_before_its_successor():
    notes = [
        {"id": "1", "text": "The cache runs on Redis.", "effects": []},
        {"id": "2", "text": "Deploys go out on Mondays.", "effects": []},
        {"id": "3", "text": "The cache runs on Valkey.", "effects": [("replaces", "1")]},
    ]
    newest = keeping.judge_history(controls.Control("newest-first"), notes)
    oldest = keeping.judge_history(controls.Control("oldest-first"), notes)
    kept = [("kept", 1), ("not hidden", 1)] * 2
    assert newest == [*kept, ("current", 1)]
    assert oldest == [*kept, ("current", 0)]


def test_a_note_that_is_marked_is_not_hidden():
    class Doubting(controls.Control):
        """Marks every note as replaced."""

        def do_ask(self, question, time, k):
            return [{**one, "replaced": True} for one in super().do_ask(question, time, k)]

    notes = [{"id": "1", "text": "The cache runs on Redis.", "effects": []}]
    found = keeping.judge_history(Doubting("newest-first"), notes)
    assert found == [("kept", 0), ("not hidden", 1)]


def write_result(folder, system, task, **means):
    """Write a result of these means."""
    found = {
        name: {"mean": mean, "low": mean, "high": mean, "of": 4} for name, mean in means.items()
    }
    result = {"system": system, "task": task, "version": "1", "date": "2026-11-01", "machine": "m"}
    runner.write_result(folder / f"{system}.{task}.json", {**result, "measures": found})


def test_the_page_lists_who_is_ahead_and_the_next_step(tmp_path):
    write_result(tmp_path, "bethink", "recall", **{"mean of sets": 0.5})
    write_result(tmp_path, "fts5", "recall", **{"mean of sets": 0.75})
    write_result(tmp_path, "random", "recall", **{"mean of sets": 0.9})
    results = page.read_results(tmp_path)
    ahead, worst = list(page.list_ahead(results)), list(page.list_worst(results))
    assert ahead == ["- Recall a month later, mean: plain FTS5 .75; Bethink .50."]
    assert len(worst) == 1 and "Next: " in worst[0]


def test_the_page_names_a_next_step_once(tmp_path):
    for system, value in (("bethink", 0.5), ("fts5", 0.75)):
        both = {"mean of sets": value, "locomo-turns": value}
        write_result(tmp_path, system, "recall", **both)
    assert len(list(page.list_worst(page.read_results(tmp_path)))) == 1


def test_another_set_up_of_bethink_is_not_ahead_of_it(tmp_path):
    write_result(tmp_path, "bethink", "languages", mean=0.2)
    write_result(tmp_path, "bethink-languages", "languages", mean=0.8)
    assert list(page.list_ahead(page.read_results(tmp_path))) == []


def test_the_page_marks_the_best_and_the_sample_of_a_slow_system(tmp_path):
    write_result(tmp_path, "bethink", "cost", **{"write ms": 60.0})
    write_result(tmp_path, "mem0", "cost", **{"write ms": 8.0})
    results = page.read_results(tmp_path)
    results["bethink", "cost"]["part"] = 4
    table = page.render_table(
        results, ["bethink", "mem0"], page.SECTIONS["cost"].columns[:1], False
    )
    assert "| Bethink | 60.0 [1 in 4] |" in table
    assert "| mem0 | **8.0** |" in table


def test_a_system_that_is_measured_alone_is_not_the_best(tmp_path):
    write_result(tmp_path, "bethink", "cost", **{"year MB": 400.0})
    column = next(one for one in page.SECTIONS["cost"].columns if one.measure == "year MB")
    table = page.render_table(page.read_results(tmp_path), ["bethink"], [column], False)
    assert "| Bethink | 400 |" in table


def test_a_system_that_stores_nothing_is_not_the_smallest(tmp_path):
    for system, size in (("bethink", 6000.0), ("mem0", 5000.0), ("langgraph", 0.0)):
        write_result(tmp_path, system, "cost", **{"disk bytes a memory": size})
    column = next(one for one in page.SECTIONS["cost"].columns if "disk" in one.measure)
    results = page.read_results(tmp_path)
    assert page.find_best(results, ["bethink", "mem0", "langgraph"], column) == "5,000"


def test_a_task_on_which_bethink_is_alone_has_no_section(tmp_path):
    write_result(tmp_path, "bethink", "scale", **{"search ms, 10k": 11.0})
    write_result(tmp_path, "bethink", "recall", **{"mean of sets": 0.7})
    write_result(tmp_path, "fts5", "recall", **{"mean of sets": 0.6})
    assert page.list_compared(page.read_results(tmp_path)) == ["recall"]


def test_grep_is_the_control_that_counts_as_ahead(tmp_path):
    for system, value in (("bethink", 0.5), ("grep", 0.6), ("newest-first", 0.9)):
        write_result(tmp_path, system, "next-day", balanced=value)
    ahead = list(page.list_ahead(page.read_results(tmp_path)))
    assert ahead == ["- The next day, balanced: *grep* .60; Bethink .50."]


def test_what_was_not_measured_is_listed_by_reason():
    lines = list(page.list_missing({}))
    at = lines.index(f"- {page.PEERS['claude-mem']['other-tasks']}")
    assert lines[at + 1].startswith("  - claude-mem (notes): next-day")
    assert sum("deja-vu" in line for line in lines) == 1


@pytest.mark.parametrize("task", [pytest.param(task, id=task) for task in page.SECTIONS])
def test_a_section_names_a_next_step_for_each_of_its_measures(task):
    columns = [column for column in page.SECTIONS[task].columns if column.ranked]
    assert [
        column.title
        for column in columns
        if not (page.NEXT.get((task, column.measure)) or page.NEXT.get((task, "")))
    ] == []


def test_each_control_is_explained():
    assert controls.EXPLAINED.keys() == controls.CONTROLS.keys()


def test_the_readme_shows_at_most_six_systems():
    table = page.render_readme(page.read_results(runner.RESULTS))
    assert 1 <= len(table.splitlines()) - 2 <= 6


def test_the_page_is_rendered_from_the_results():
    rendered = page.render_page(page.read_results(runner.RESULTS))
    assert page.PAGE.read_text("utf-8") == rendered, "run `bench/suite/run page`"


def test_the_readme_holds_the_table_of_the_results():
    text = page.README.read_text("utf-8")
    table = text.partition(page.BEGIN)[2].partition(page.END)[0]
    assert table == page.render_readme(page.read_results(runner.RESULTS))


def test_the_pictures_are_drawn_from_the_results():
    results = page.read_results(runner.RESULTS)
    drawn = {task: page.draw_bars(results, task) for task in page.list_compared(results)}
    stored = {task: (page.PICTURES / f"benchmark-{task}.svg").read_text("utf-8") for task in drawn}
    assert stored == drawn
