"""The day's ceiling: what several processes spend together, through crashes, torn lines and midnight."""

import json
import stat
import sys
from datetime import date, timedelta
from subprocess import PIPE, Popen

import pytest
from fake_llm import count

from bethink.llm import Budget
from bethink.llm.base import ModelError, Usage

DAY = date(2026, 11, 15)


@pytest.fixture
def budget(tmp_path):
    return Budget(tmp_path / "llm-usage", 1000, lambda: DAY)


def file_of(budget, day=DAY):
    return budget._directory / f"{day.isoformat()}.jsonl"


def test_a_hold_counts_until_it_is_noted(budget):
    hold = budget.allow("ideas", 400)
    assert budget.spent() == 400 and budget.report()["unfinished"] == 1
    budget.note(hold, Usage(100, 20))
    budget.note(budget.allow("hyde", 300), Usage(50), "timeout")
    budget.skip("ideas", "empty")
    report = budget.report()
    assert budget.spent() == report["today"] == report["tokens"] == 170
    assert (report["ceiling"], report["unfinished"]) == (1000, 0)
    assert report["purposes"] == {"hyde": count(1, 1, 50, 0), "ideas": count(1, 0, 100, 20)}
    assert report["failures"] == {"timeout": 1, "empty": 1}


def test_a_call_that_ends_after_midnight_counts_on_the_day_it_began(tmp_path):
    days = [DAY]
    budget = Budget(tmp_path, 1000, lambda: days[-1])
    hold = budget.allow("ideas", 500)
    days.append(DAY + timedelta(days=1))
    budget.note(hold, Usage(100))
    assert budget.spent(DAY) == 100 and budget.spent() == 0
    assert budget.report()["tokens"] == 100


def test_torn_lines_count_nothing_and_break_nothing(budget):
    budget.note(budget.allow("ideas", 10), Usage(10))
    with file_of(budget).open("ab") as file:
        file.write(b'\xff\xfe\x00\n{"purpose":"ideas","in')
    hold = budget.allow("ideas", 40)
    assert budget.spent() == 50
    budget.note(hold, Usage(20))
    assert budget.spent() == 30 and budget.report()["purposes"]["ideas"]["calls"] == 2


def test_only_the_user_can_read_the_counts_and_no_text_is_in_them(budget):
    budget.allow("ideas", 10)
    assert stat.S_IMODE(file_of(budget).stat().st_mode) == 0o600
    assert stat.S_IMODE(budget._directory.stat().st_mode) == 0o700
    assert set(json.loads(file_of(budget).read_text())) == {"purpose", "calls", "open", "in"}


def test_what_cannot_be_counted_is_not_sent(tmp_path):
    (tmp_path / "llm-usage").write_text("a file where the folder should be")
    with pytest.raises(ModelError, match="cannot be") as caught:
        Budget(tmp_path / "llm-usage", 1000).allow("ideas", 10)
    assert caught.value.reason == "budget"


def test_an_answer_is_not_lost_because_its_cost_cannot_be_noted(budget):
    hold = budget.allow("ideas", 400)
    path = file_of(budget)
    path.rename(path.with_suffix(".gone"))
    path.mkdir()
    budget.note(hold, Usage(1))
    path.rmdir()
    path.with_suffix(".gone").rename(path)
    assert budget.spent() == 400


WORKER = """
import contextlib, datetime, pathlib, sys
from bethink.llm import Budget
from bethink.llm.base import ModelError, Usage
budget = Budget(pathlib.Path(sys.argv[1]), 900, lambda: datetime.date(2026, 11, 15))
sys.stdin.readline()
made = 0
for number in range(60):
    with contextlib.suppress(ModelError):
        hold = budget.allow(sys.argv[2], 10)
        made += 1
        budget.note(hold, Usage(7, 3), "" if number % 2 else "timeout")
print(made)
"""


def test_processes_that_count_at_once_lose_nothing_and_stay_below_the_ceiling(tmp_path):
    purposes = [f"worker {at}" for at in range(3)]
    command, pipes = [sys.executable, "-c", WORKER, tmp_path], {"stdin": PIPE, "stdout": PIPE}
    workers = [Popen([*command, purpose], **pipes) for purpose in purposes]
    for worker in workers:
        worker.stdin.write(b"go\n")
        worker.stdin.flush()
    made = [int(worker.communicate()[0]) for worker in workers]
    report = Budget(tmp_path, 900, lambda: DAY).report()
    counted = [report["purposes"].get(one, {"calls": 0})["calls"] for one in purposes]
    assert counted == made and sum(made) == 90
    assert report["tokens"] == report["today"] == 900 and report["unfinished"] == 0
    assert report["failures"]["ceiling"] == 180 - 90
