"""Reports: what an answer says was done, and what it says remains."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from bethink.ingest.lines import drop_dangling, names_something
from bethink.ingest.sentences import prose, statements
from bethink.language.openers import LOOSE_CONNECTIVE
from bethink.language.pattern import compile_pattern
from bethink.language.pointing import OFFER_POINTS_BACK
from bethink.language.reports import (
    ANNOUNCES_LATER,
    ANNOUNCES_STEP,
    CAVEAT,
    HANDS_COMMANDS,
    LISTS_DECISIONS,
    LISTS_FINDINGS,
    LISTS_LEFT,
    LISTS_WISHES,
    REPORTS_WORK,
    SAYS_ALL_PASS,
    SAYS_NONE,
    SPEAKS_TO_USER,
    STATES_NOTHING,
    WORK_UNDER_WAY,
)
from bethink.language.waiting import (
    MAY_DO,
    NEXT_OR_OFFER,
    NEXT_OR_REMAINING,
    OFFERS_ANY_HELP,
    REMAINING,
)

END_CHARACTERS = 6_000  # end of a long answer that is read: set by hand
MOST_REPORTED = 2  # sentences of each sort that a report keeps
MOST_LEFT = 4
MOST_COMMANDS = 3
ABOUT_WORDS = 4  # words before an offer that say what it is about; by hand
# Sentences of the last answer, and the first sentences among which they are looked for. By hand, on the answers of 12 sessions: an answer
# begins with what it comes to.
MOST_OF_LAST, BEGINNING = 3, 8
# Items of a list in a compaction's summary, and words of one that states something. By hand, on the summaries of eight sessions.
MOST_LISTED, LEAST_STATED = 8, 4
STATED_BELOW = (
    (LISTS_DECISIONS, "decision"),
    (LISTS_WISHES, "preference"),
    (LISTS_FINDINGS, "fact"),
)
_HEADING = r"(?:#{1,4}[ ]+|<(?=\w+>$)|\d{1,2}\.[ ]+(?=[A-Z][^.!?\n]{1,60}:\s*$)|(?=\*\*[A-Z][^*\n]{1,60}\*\*:?\s*$))(?P<title>[^\n>]{1,80})"
_ITEM = r"(?P<indent>[ \t]{0,8})(?:[-*•]|\d{1,2}[.)])[ ]+(?:\[(?:[ ~/-]|(?P<done>[xX]))\][ ]+)?(?P<text>[^\n]{1,400})"
OUTCOME_BEGINS = 24  # characters of a sentence before it reports work; by hand


class Report(NamedTuple):
    """Sentences of an answer that tell what was done and what remains."""

    done: Sequence[str] = ()
    left: Sequence[str] = ()


class Summary(NamedTuple):
    """Facts of the summary that a host writes at a compaction."""

    left: Sequence[str] | None = None  # None if it does not say
    stated: Sequence[tuple[str, str]] = ()  # kind and text


def read_summary(text: str) -> Summary:
    """Read the lists of a compaction's summary: what is left, decisions, the user's wishes, findings."""
    left: list[str] | None = None
    stated: list[tuple[str, str]] = []
    for heading, items in _list_sections(text):
        listed = [one for one in items if not SAYS_NONE.holds(one)][:MOST_LISTED]
        if LISTS_LEFT.holds(heading) and items:
            left = [*(left or ()), *listed]
        kind = next((kind for pattern, kind in STATED_BELOW if pattern.holds(heading)), "")
        full = [one for one in listed if len(one.split()) >= LEAST_STATED]
        stated += [(kind, one) for one in full if kind]
    return Summary(left, stated)


def _list_sections(text: str) -> list[tuple[str, list[str]]]:
    """Return the sections of a text: each heading with the outermost items of the lists below it."""
    found: list[tuple[str, list[str]]] = []
    outer = 0  # indent of the list below the last heading
    for line in text.splitlines():
        if heading := compile_pattern(_HEADING).match(line):
            found.append((heading["title"].strip(" *:"), []))
        elif found and (item := compile_pattern(_ITEM).match(line)):
            indent, items = len(item["indent"]), found[-1][1]
            outer = indent if not items else outer
            if indent <= outer and not item["done"]:
                items.append(item["text"].replace("**", "").rstrip(":"))
    return found


def find_report(turns: Sequence[tuple[str, str]]) -> Report:
    """Return the newest report among the answers."""
    return next((one for one in map(read_report, _list_answers(turns)) if one.done), Report())


def _list_answers(turns: Sequence[tuple[str, str]]) -> list[str]:
    """Return the answers, newest first: the last turn before the user speaks again."""
    pairs = [*pairwise([*turns, ("user", "")])][::-1]
    return [text for (role, text), (next_role, _) in pairs if role != "user" == next_role]


_INSIGHT = "★ Insight ─"  # begins a box with an aside that explains


def _drop_asides(text: str) -> str:
    """Drop the boxes in which an agent explains something beside its work."""
    before, *boxes = text.split(_INSIGHT)
    kept = [before]
    for box in boxes:
        end = compile_pattern(r"\n`?─{8,200}`?").search(box)
        kept.append(box[end.end() :] if end else _INSIGHT + box)
    return "".join(kept)


def find_headlines(turns: Sequence[tuple[str, str]]) -> list[str]:
    """Return how the last answer begins, sentences that report work first."""
    for answer in map(_drop_asides, _list_answers(turns)[:1]):
        # A paragraph makes sense alone; an item of a list often needs its heading.
        sentences = [*prose(answer, lists=False)[:BEGINNING], *prose(answer)[:BEGINNING]]
        telling = [*filter(_is_headline, dict.fromkeys(sentences))]
        # What is said of the checks of a server is seen nowhere else.
        checked = [*filter(SAYS_ALL_PASS.holds, telling)][:1]
        telling.sort(key=lambda one: not reports_outcome(one))
        found = list(dict.fromkeys([*telling[:MOST_OF_LAST], *checked]))
        bare = (one.removeprefix("Done: ").removeprefix("Done — ") for one in found)
        return [LOOSE_CONNECTIVE.sub("", one) for one in bare]
    return []


def reports_outcome(sentence: str) -> bool:
    """Return True if a sentence begins by reporting work."""
    found = REPORTS_WORK.find(sentence)
    begins = found is not None and found.start() < OUTCOME_BEGINS
    return begins and not ANNOUNCES_LATER.holds(sentence)


def _is_headline(sentence: str) -> bool:
    """Return True for a statement that says something and announces nothing."""
    named = compile_pattern(r"#\d").search(sentence) or reports_outcome(sentence)
    leads_in = sentence.endswith(":") and not named
    passing = ANNOUNCES_STEP.holds(sentence) or SPEAKS_TO_USER.holds(sentence) or leads_in
    return is_statement(sentence) and not passing and not _find_remaining(sentence)


def read_report(text: str) -> Report:
    """Return the first sentences that report work, and the first that say what remains."""
    done: list[str] = []
    left: list[str] = []
    for before, sentence in pairwise(["", *prose(_take_end(text))]):
        remaining = _find_remaining(sentence)
        if remaining:
            # "Shall I push it?" says little without the sentence before.
            points_back = before and OFFER_POINTS_BACK.holds(remaining)
            if not (points_back and before in left):
                left.append(f"{remaining} ({before.rstrip('.')})" if points_back else remaining)
        elif _reports_work(sentence, first=not done):
            work = sentence.removeprefix("Done: ").removeprefix("Done — ")
            done.append(drop_dangling(work.rstrip(":")))
    listed = [one.core for one in statements(text) if one.label == "todo"]
    left = [*find_commands(text), *left]
    left = [LOOSE_CONNECTIVE.sub("", one) for one in listed or left or _find_offer(text)]
    return Report(done[:MOST_REPORTED], left[:MOST_LEFT])


def _find_offer(text: str) -> list[str]:
    """Return the last step that the end of an answer offers: "If you want, I can …"."""
    for sentence in reversed(prose(_take_end(text))[-MOST_LEFT:]):
        offer = MAY_DO.find(sentence)
        if offer:
            return [f"offered: {sentence[offer.start(1) : offer.end(1)]}"]
    return []


def find_commands(text: str) -> list[str]:
    """Return the commands that a report asks the user to run, from a block of code after such a line."""
    for lead, code in compile_pattern(
        r"([^\n]{3,200}[:：])[ \t]*\n{1,3}```\w*\n(.{3,400}?)\n```", re.DOTALL
    ).findall(_take_end(text)):
        if HANDS_COMMANDS.holds(lead):
            lines = [line.strip() for line in code.split("\n") if line.strip()]
            return [f"to run: {', '.join(lines[:MOST_COMMANDS])}"]
    return []


def _find_remaining(sentence: str) -> str:
    """Return what a sentence says is left: after "Next:" or "Shall I", or a clause that says so."""
    later = NEXT_OR_OFFER.find(sentence)
    if later:
        rest = sentence[later.start(later.lastindex or 0) :].rstrip("?")
        about = sentence[: later.start()].strip(" ,;—–-")
        idle = OFFERS_ANY_HELP.holds(rest)
        return "" if idle else f"{about}: {rest}" if len(about.split()) >= ABOUT_WORDS else rest
    if CAVEAT.holds(sentence):
        return sentence
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
