"""Reports: what an answer says was done, and what it says remains."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from bethink.ingest.lines import drop_dangling, names_something
from bethink.ingest.sentences import prose, statements
from bethink.language.pattern import compile_pattern
from bethink.language.pointing import OFFER_POINTS_BACK
from bethink.language.reports import REPORTS_WORK, STATES_NOTHING, WORK_UNDER_WAY
from bethink.language.waiting import NEXT_OR_OFFER, NEXT_OR_REMAINING, REMAINING

END_CHARACTERS = 6_000  # end of a long answer that is read: set by hand
MOST_REPORTED = 2  # sentences of each sort that a report keeps


class Report(NamedTuple):
    """Sentences of an answer that tell what was done and what remains."""

    done: Sequence[str] = ()
    left: Sequence[str] = ()


def find_report(turns: Sequence[tuple[str, str]]) -> Report:
    """Return the newest report among the answers. An answer is the last turn before the user speaks again."""
    pairs = [*pairwise([*turns, ("user", "")])][::-1]
    answers = (text for (role, text), (next_role, _) in pairs if role != "user" == next_role)
    return next((report for report in map(read_report, answers) if report.done), Report())


def read_report(text: str) -> Report:
    """Return the first sentences that report work, and the first that say what remains."""
    done: list[str] = []
    left: list[str] = []
    for before, sentence in pairwise(["", *prose(_take_end(text))]):
        remaining = _find_remaining(sentence)
        if remaining:
            # "Shall I push it?" says little without the sentence before.
            points_back = before and OFFER_POINTS_BACK.holds(remaining)
            left.append(f"{remaining} ({before.rstrip('.')})" if points_back else remaining)
        elif _reports_work(sentence, first=not done):
            work = sentence.removeprefix("Done: ").removeprefix("Done — ")
            done.append(drop_dangling(work.rstrip(":")))
    listed = [one.core for one in statements(text) if one.label == "todo"]
    return Report(done[:MOST_REPORTED], (listed or left)[:MOST_REPORTED])


def _find_remaining(sentence: str) -> str:
    """Return what a sentence says is left: after "Next:" or "Shall I", or a clause that says so."""
    later = NEXT_OR_OFFER.find(sentence)
    if later:
        return sentence[later.start(later.lastindex or 0) :].rstrip("?")
    clauses = compile_pattern(r"\s[–—-]\s|; ").split(sentence)
    return next((clause.rstrip("?") for clause in clauses if REMAINING.holds(clause)), "")


def _reports_work(sentence: str, first: bool) -> bool:
    """Return True for a statement of something done. Only the first of a report may announce a list."""
    announces_list = sentence.endswith(":")
    return REPORTS_WORK.holds(sentence) and is_statement(sentence) and (first or not announces_list)


def is_statement(sentence: str) -> bool:
    """Return True if a sentence says something by itself: no question, announcement, apology or label."""
    passing = WORK_UNDER_WAY.holds(sentence) or STATES_NOTHING.holds(sentence)
    telling = not passing or sentence.lower().startswith("done: ")
    long_enough = len(sentence.split()) > 2
    return telling and not sentence.endswith("?") and long_enough and names_something(sentence)


def names_remaining_work(sentence: str) -> bool:
    """Return True if a sentence of a report says what is still to be done, not just an offer."""
    return NEXT_OR_REMAINING.holds(sentence) and not WORK_UNDER_WAY.holds(sentence)


def _take_end(text: str) -> str:
    """Return the last lines of a long answer, whole ones."""
    end = text[-END_CHARACTERS:]
    return end if end == text else end.partition("\n")[2] or end
