"""Facts about the work of a session: changed files, and the last outcome of each check."""

from test_failures import edited, ran

from bethink.ingest.outcomes import find_outcomes


def test_the_last_outcome_of_a_check_counts():
    found = find_outcomes([ran("npm test", True, "1 failed"), ran("npm test")])
    assert [(one.command, one.passed) for one in found.checks] == [("npm test", True)]


def test_a_check_that_failed_last_is_failing():
    found = find_outcomes([ran("npm test"), ran("npm test", True, "1 failed")])
    assert [one.command for one in found.failing] == ["npm test"]


def test_a_check_whose_outcome_is_hidden_does_not_count():
    assert find_outcomes([ran("npm test | tail -3")]).checks == ()


def test_a_command_that_is_no_check_does_not_count():
    assert find_outcomes([ran("git push")]).checks == ()


def test_files_are_listed_once_in_order_of_their_last_change():
    events = [edited("a.ts"), edited("b.ts"), edited("a.ts")]
    assert find_outcomes(events).files == ("b.ts", "a.ts")


def test_a_file_whose_edit_failed_is_not_listed():
    assert find_outcomes([edited("a.ts")._replace(failed=True)]).files == ()


def test_a_check_says_how_many_files_changed_after_it():
    (check,) = find_outcomes([ran("npm test"), edited("a.ts")]).checks
    assert check.files_since == 1


def test_checks_in_two_folders_are_two():
    found = find_outcomes([ran("npm test", directory="/p/a"), ran("npm test", directory="/p/b")])
    assert len(found.checks) == 2
