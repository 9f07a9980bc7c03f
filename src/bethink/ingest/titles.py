"""Titles of topics and sessions, and summaries of topics.

A title is the first request that says something, in the user's words without their politeness, cut where a clause ends or else with
"…". If no request says anything, `TITLE_RULES` lists the alternatives, in order. A summary lists what was asked for, done, decided,
concluded and left open, within 600 characters; it is made to be read, searched and embedded. `digest` sums up whole sessions.

Every word is a word of a turn, an idea or a commit; the same turns always give the same title. Only the beginning of a turn and a bounded
number of turns are read. This module knows no store and no model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from bethink.agents.base import Fact
from bethink.ingest.lines import fit, list_distinct, names_something, share_out, shorten_paths
from bethink.ingest.provenance import find_own
from bethink.ingest.reports import find_report
from bethink.ingest.sentences import prose
from bethink.judge import asks
from bethink.language.hedging import is_tentative
from bethink.language.openers import POLITENESS
from bethink.language.pattern import compile_pattern, fold_case
from bethink.language.pointing import EXPLAINED_PICK, PICK, TAKES_OFFER_UP
from bethink.language.questions import AGENT_ASKS_CHOICE
from bethink.language.reports import ANNOUNCES_STEP
from bethink.language.requests import ASKS_FOR_WORK, HANDED_PLAN
from bethink.language.topics import ANNOUNCES_TOPIC
from bethink.language.vocabulary import phrases

Turns = Sequence[tuple[str, str]]  # role and text of each

# Width of a line of a list, and of a topic in a search result: set by hand.
TOPIC_WORDS, SESSION_WORDS = 10, 12
TITLE_WIDTH = 72

TURN_CHARACTERS = 2_000  # beginning of a turn that is read: set by hand
READ_SENTENCES = 4  # sentences of a turn that may be its request; by hand
REQUESTS_NAMED = 3  # requests that a summary names; by hand
SUMMARY_IDEAS = 60  # newest ideas that a summary is made of; by hand
SHORT_TURN = 600  # characters; a longer turn tells something besides its request
IDLE_TURN = 80  # characters of the longest turn that may say nothing
NEAR_TURNS = 4  # turns before a pick that may hold its list; by hand

# Characters of each line of a summary; a line may use what others leave free. With labels 600 in all.
SUMMARY_SHARES = {"Focus": 160, "Done": 100, "Decisions": 130, "Conclusions": 90, "Open": 70}
NEWEST_FIRST = ("Decisions", "Conclusions", "Open")  # lines that keep the newest items
DECISION_KINDS = ("decision", "preference", "architecture", "pattern")
CONCLUSION_KINDS = ("conclusion", "solution", "discovery", "gotcha", "fact")

# Formats, not language: the output of programs, headings, and rows, points and headings of a list with a number or a letter.
_OUTPUT = r"[❯$%>] |\[[\w:./-]{2,40}\] |(?:error|warn(?:ing)?|info|debug|fatal|panic|usage)\b[:(]|[^\s=]+=\S+ [^\s=]+=|[^\n]*\s\\$"
_HEADING = r"#{1,3} (?:plan: ?)?(.+)"
_LISTED = (
    r"\s{0,6}(?:[-*|] ?)?(?:\[.\] )?(?:#{1,6} )?(?:\*\*)?(?i:option |approach )?\(?(\d{1,2}|[A-H])\b(?:\*\*)?\s{0,3}(?:\||[.):]|[—–-] )"
    r"(?:\*\*)?\s{0,3}(?:\[.\] )?(\S.*)"
)


# Titles


class Talk(NamedTuple):
    """A conversation, or a part of one, that needs a title."""

    turns: Turns
    commits: Sequence[str] = ()  # subjects, in order

    @property
    def asked(self) -> list[str]:
        """The texts of the user's turns."""
        return [text for role, text in self.turns if role == "user"]

    @property
    def answered(self) -> list[str]:
        """The texts of all other turns."""
        return [text for role, text in self.turns if role != "user"]


def title_by_request(talk: Talk) -> Iterable[str]:
    """Take the first request that says something: "ok, can you rename the parser?" → "rename the parser?"."""
    return find_requests(talk.turns, 1)


def title_by_pasted_heading(talk: Talk) -> Iterable[str]:
    """Take the heading of a text that the user pasted: "# Cache the search index"."""
    pattern = compile_pattern(rf"^{_HEADING}")
    headings = (one for text in talk.asked for one in pattern.findall(text[: 2 * TURN_CHARACTERS]))
    return islice((one for one in headings if len(one.split()) > 2), 1)


def title_by_pasted_text(talk: Talk) -> Iterable[str]:
    """Take a sentence of the first turn, even if it is not the user's own."""
    return (one for text in talk.asked[:1] for one in first_sentences(text[: 2 * TURN_CHARACTERS]))


def title_by_commit(talk: Talk) -> Iterable[str]:
    """Take the subject of the first commit."""
    return talk.commits[:1]


def title_by_answer_heading(talk: Talk) -> Iterable[str]:
    """Take the heading of the first answer with one: "# Plan: Cache the index" → "Cache the index"."""
    return find_headings(talk.turns)


def title_by_answer(talk: Talk) -> Iterable[str]:
    """Take a sentence of an answer that does not only say what comes next."""
    return find_answers(talk.turns)


def title_by_first_turn(talk: Talk) -> Iterable[str]:
    """Take the first turn as it is: code, a log, a single word."""
    return filter(None, [text.strip("`~ \n") for _, text in talk.turns[:1]])


# The first title of these that says something is taken, else the first of all.
TITLE_RULES: tuple[Callable[[Talk], Iterable[str]], ...] = (
    title_by_request,
    title_by_pasted_heading,
    title_by_pasted_text,
    title_by_commit,
    title_by_answer_heading,
    title_by_answer,
    title_by_first_turn,
)


def make_title(turns: Turns, words: int = TOPIC_WORDS, commits: Sequence[str] = ()) -> str:
    """Return a title of at most so many words; empty where nothing was said."""
    talk = Talk(turns, commits)
    found = [title for rule in TITLE_RULES for title in rule(talk)]
    title = next(filter(is_informative, found), "") or next(iter(found), "")
    return _finish_title(strip_politeness(title), words)


def make_session_title(turns: Turns, work: Iterable[Fact] = ()) -> str:
    """Return a title for a whole session."""
    commits = [subject for what, subject in work if what == "commit"]
    return make_title(turns, SESSION_WORDS, commits)


def _finish_title(text: str, words: int) -> str:
    """Cut a title to its width on one line and capitalise it: "rename the parser?" → "Rename the parser"."""
    text = " ".join(text.split()).strip(" \"'“”,:;!?–—*_").rstrip(".-(")
    text = fit(text, TITLE_WIDTH, words)
    first = text.partition(" ")[0].rstrip(",:…").replace("'", "").replace("’", "")
    capital = text[:1].upper()
    is_word = first.isalpha() and first.islower() and len(capital) == 1
    return capital + text[1:] if is_word else text


# Requests


def is_informative(request: str) -> bool:
    """Return False for a request that names nothing: a greeting, "ship it", "go ahead, …"."""
    bare = strip_politeness(request)
    return names_something(bare) and not TAKES_OFFER_UP.holds(bare) and not is_uninformative(bare)


def is_uninformative(text: str) -> bool:
    """Return True for a greeting, thanks, an offer of help, a bare yes or no, or a turn without a word."""
    idle = rf"\W*(?:(?:{'|'.join(phrases('idle'))})(?!\w)\W*){{0,6}}$"
    return len(text) < IDLE_TURN and compile_pattern(idle).match(fold_case(text)) is not None


def only_asks(text: str) -> bool:
    """Return True for a short turn of nothing but questions, requests and thoughts.

    It resembles what is asked for, and says nothing about it.
    """
    sentences = prose(text) if len(text) <= SHORT_TURN else []
    return bool(sentences) and all(
        asks(one.rstrip(" *_\"')")) or ASKS_FOR_WORK.holds(one) or is_tentative(one)
        for one in sentences
    )


def strip_politeness(request: str) -> str:
    """Drop greetings, politeness and long paths: "Hi, could you fix src/a/b/c.py?" → "fix c.py?"."""
    text = request.lstrip(" \"'“”‘’,:;!?¿¡–—*_")
    polite = POLITENESS.find(text)
    rest = text[polite.end() :] if polite else text
    lead = compile_pattern(r"[^:.;?!]{2,40}:\s+(?=\S+ \S)").match(rest)
    if lead and ANNOUNCES_TOPIC.holds(lead[0]):
        rest = rest[lead.end() :]  # "now to something else: …"
    picked = EXPLAINED_PICK.find(rest)
    if picked:
        addition = picked[2] or ""
        rest = picked[1] + (addition if names_something(addition) else "")
    return shorten_paths(compile_pattern(r"(?<!\w)`|`(?!\w)").sub("", rest))


def find_requests(turns: Turns, most: int) -> list[str]:
    """Return the user's requests: the first telling sentence of each turn, or else the first of all."""
    asked = [read_request(text) for role, text in turns if role == "user"]
    telling = (next(filter(is_informative, sentences), "") for sentences in asked)
    first = islice(chain.from_iterable(asked), 1)
    return list(islice(filter(None, telling), most)) or list(first)


def read_request(text: str) -> list[str]:
    """Return the first sentences of a turn in the user's own words, or the heading of a handed plan."""
    plan = HANDED_PLAN.find(text)
    if plan:
        return [text[plan.start(1) : plan.end(1)].strip("# ")]
    text = text[: 2 * TURN_CHARACTERS]
    question = AGENT_ASKS_CHOICE.find(text)
    if question:  # the user's answer is below the agent's question
        text = text[: question.start()] + text[question.end() :]
    return first_sentences(find_own(text).text.replace("\n", "\n\n"))


def find_headings(turns: Turns) -> list[str]:
    """Return the heading of the first answer that begins with one: of a plan, of a report."""
    pattern = compile_pattern(rf"\s*{_HEADING}", re.IGNORECASE)
    found = (pattern.match(text) for role, text in turns if role != "user")
    return [one[1].strip("# ") for one in found if one][:1]


def find_answers(turns: Turns) -> list[str]:
    """Return the first sentences of the answers, without those that only say what comes next."""
    sentences = chain.from_iterable(first_sentences(text) for role, text in turns if role != "user")
    telling = (one for one in sentences if not ANNOUNCES_STEP.holds(one))
    return list(islice(telling, REQUESTS_NAMED))


def first_sentences(text: str) -> list[str]:
    """Return the first sentences of prose, without blocks that a program wrote."""
    blocks = text[:TURN_CHARACTERS].split("\n\n")
    output = compile_pattern(_OUTPUT)
    written = [block for block in blocks if not output.match(fold_case(block))]
    return prose("\n\n".join(written))[:READ_SENTENCES]


# Picks from a list


def name_picks(role: str, text: str, before: Turns) -> str:
    """Add the words of a user's pick from a recent list: "5 first" → "5 (Fix the rename) first"."""

    def add_words(pick: re.Match[str]) -> str:
        answers = (text for role, text in reversed(before[-NEAR_TURNS:]) if role != "user")
        items = (_list_items(answer).get(pick[1].lstrip("#")) for answer in answers)
        item = next(filter(None, items), "")
        return f"{pick[0]} ({item})" if item else pick[0]

    if role != "user" or len(text) > SHORT_TURN:
        return text
    return PICK.sub(add_words, text)


def _list_items(answer: str) -> dict[str, str]:
    """Return the items of the last list by number or letter; of a row, its first cell."""
    lines = answer[-3 * TURN_CHARACTERS :].split("\n")
    items = {number: _shorten_item(item) for number, item in _read_items(lines)}
    return items if len(items) > 1 else {}


def _read_items(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each item of a list with its number or letter; boxes are counted where nothing is numbered."""
    pattern = compile_pattern(_LISTED)
    listed = [found for line in lines if (found := pattern.match(line))]
    if listed:
        yield from ((found[1], found[2]) for found in listed)
    else:
        boxes = [line.partition("] ")[2] for line in lines if line.lstrip().startswith("- [ ] ")]
        yield from ((str(number), box) for number, box in enumerate(boxes, 1))


def _shorten_item(item: str) -> str:
    sentences = prose(item.partition(" |")[0].replace("**", ""))
    if not sentences:
        return ""
    return fit(strip_politeness(sentences[0]), TITLE_WIDTH).strip('"“”.…:')


# Summaries of topics


class Outcome(NamedTuple):
    """An idea as a summary needs it."""

    kind: str
    text: str
    open: bool  # still to be answered, done or solved


def summarise(
    turns: Turns, ideas: Iterable[tuple[str, str, bool]] = (), commits: Sequence[str] = ()
) -> str:
    """Return lines "Focus: …", "Done: …", "Decisions: …", "Conclusions: …", "Open: …", without empty ones."""
    newest = [Outcome(*idea) for idea in ideas][-SUMMARY_IDEAS:]
    wanted = {
        "Focus": find_requests(turns, REQUESTS_NAMED) or find_answers(turns),
        "Done": commits or find_report(turns).done[:1],
        "Decisions": [idea.text for idea in newest if idea.kind in DECISION_KINDS],
        "Conclusions": [idea.text for idea in newest if idea.kind in CONCLUSION_KINDS],
        "Open": [idea.text for idea in newest if idea.open],
    }
    distinct = {label: list_distinct(items) for label, items in wanted.items()}
    lines = share_out(distinct, SUMMARY_SHARES, NEWEST_FIRST)
    return "\n".join(f"{label}: {line}" for label, line in lines.items() if line)
