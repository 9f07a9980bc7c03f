"""What a conversation is called and what it came to: titles, summaries of topics, and the digest of a session.

A title is the first request that says something, in the user's words without their politeness, cut where a clause ends or
else with "…". A summary lists what was asked for, done, decided, concluded and left open, within 600 characters; it is made to
be read, searched and embedded. A digest is three lines, at most 60 tokens in all: what was asked, what was done by the commits
by the last report or to which files, and what is said to remain.

Every word of them stands in a turn, in an idea or in what a tool did; the same turns always give the same. Only the beginning
of a turn and a bounded number of turns are read. This module knows no store and no model, and of grammar only a few English
phrases.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple

from bethink.hosts.base import Fact
from bethink.ingest.lexicon import (
    FILLER,
    compile_pattern,
    fold_case,
    is_file,
    is_identifier,
    is_path,
    phrases,
    plain_words,
    tells_of_work,
    word_set,
)
from bethink.ingest.sentences import (
    cut_text,
    find_pasted,
    measure_width,
    prose,
    statements,
)
from bethink.store.words import space_out
from bethink.types import NOTHING

Turns = Sequence[tuple[str, str]]

# What fits into a line of a list, and what a search result shows of a topic: set by hand.
NAME_WORDS, TITLE_WORDS = 10, 12
NAME_WIDTH = 72
CLAUSE = 12  # characters of a clause that can stand for the whole request

TURN_CHARACTERS = 2000
SENTENCES = 4  # of a turn that may be its request
REQUESTS = 3
IDEAS = 60  # the newest ones
ASKS = 600  # characters; who writes more tells something besides
ITEM = 200  # characters of one thing in a summary or a digest

# Characters that each line has for itself; what the others leave free it may use. With labels a summary has at most 600 characters, and a
# digest at most 60 tokens.
SUMMARY_SHARES = {"Focus": 160, "Done": 100, "Decisions": 130, "Conclusions": 90, "Open": 70}
NEWEST = ("Decisions", "Conclusions", "Open")  # lines that tell what came about last
DIGEST_SHARES = {"asked": 90, "done": 75, "left": 40}
COMMITTED = 125  # of commits that are told where there are several
COMMITS, CHECKS, EDITS, LATER = 4, 4, 4, 2  # that are remembered from page to page
RECAP = 1000  # characters; what a host writes at greater length is no recap
NOTHING_LEFT = "nothing"

DECIDED = ("decision", "preference", "architecture", "pattern")
CONCLUDED = ("conclusion", "solution", "discovery", "gotcha", "fact")

_POLITE = (
    r"(?:(?:(?:ok|okay|so|well|h+m+|ah+|oh+|alright|right|great|thanks?|thank you|nice|cool|perfect|good|now|next|then|and|but|also|first"
    r"|yes|yeah|yep|no|sure|sorry|please|hey|hi|hello|actually|by the way|btw|looks good"
    r"|(?:quick |one more |another |next |new )?(?:question|task|topic|thing))(?![\w'-])[\s,.!:;…–—-]{1,6})"
    r"|(?:(?:can|could|would|will) (?:you|we)(?: (?:please|maybe|also|just))?|i(?:'d| would) (?:like|love)(?: you)? to|i (?:want|need)(?: you)? to"
    r"|we (?:want|need|have) to|let'?s|help me(?: to)?|go ahead and)(?![\w'-])\s?)[ ,:;–—]{0,6}"
)
# What takes up a choice or an offer that stands elsewhere.
_CHOOSES = r"\W{0,4}(?:go ahead\b|#?\d{1,2}(?:\W{0,4}$| (?:but|seems?|is|and|please|then|first|sounds|looks|for)\b))"
# Where a request goes on to reasons, conditions and details that a title can do without.
_CLAUSE = r"[,;:–—?!](?=\s)|\s(?=\()|\s[-–—](?=\s)|\.(?=\s)|[，；。！？]|\s(?=(?:so that|because|since|which|while|but|and then|if (?:you|we|i|it)|as well as|in order to|so we)\s)"
# What a title that is cut cannot end with.
_DANGLING = (
    r"[,;:]?(?: (?:an?|the|of|to|in|on|at|for|with|and|or|but|as|by|from|into|that|this|is|are|not|no|we|i|you|it|its|my|our|your|via|per|about"
    r"|when)\b){1,6}$"
)
_OUTPUT = r"[❯$%>] |(?:error|warn(?:ing)?|info|debug|fatal|panic|usage)\b[:(]|[^\s=]+=\S+ [^\s=]+=|[^\n]*\s\\$"
# Words of a project's daily life that would fit any request.
_VAGUE = frozenset(
    """pr prs description super short stuff lets main latest change changes work working thing bit couple comment comments point points valid way
    correctly somehow exactly time going doing understand quick easy theres wonder related regarding state current project branch repo
    address applicable individual meaningful option dont didnt wont thats whats look looking like little get back seems great one tackle ship
    commit commits push pushed merge rebase todo todos todays session yes""".split()
)
# What asks for work, and does not only ask or answer something.
_WISHES = (
    r"\W{0,4}(?:(?:ok|okay|yes|yeah|great|thanks|now|and|also|then|so)\b\W{1,3}){0,3}(?:(?:can|could|would|will) you|let'?s|please|we (?:need|should)"
    r"|i(?:'d| would) (?:like|love)|i (?:want|need)|add|address|build|bump|change|check|clean|convert|create|delete|deploy|document|drop|extend"
    r"|extract|find|fix|handle|implement|improve|investigate|look|make|merge|migrate|move|open|optimi[sz]e|rebase|refactor|release|remove|rename|replace"
    r"|restore|review|rewrite|run|set|simplify|split|switch|test|try|turn|undo|update|upgrade|use|wire|write)\b"
)
_UNDER_WAY = r"^(?:goal|next)\b|\b(?:now|next|then) (?:i|let)\b|\bnow \w+ing\b|(?<!still )\bneed to \w+|^(?:i'm |i am )?\w{3,}ing\b|\blet me\b|\bi'll\b"
# What asks an agent to carry out a plan, which has a heading of its own.
_PLANNED = r"\s*implement the following plan:?\s*"
_CALLED = r"#{1,3} (?:plan: ?)?(.+)"
# What it says remains: behind a label, as an offer, or in a sentence of its own.
_NEXT = r"(?:^|[;,.] )(?:next(?: (?:actions?|steps?|up))?(?::|,| is| are)(?: to)?|(?:to-?do|remaining|(?:still )?open(?: points?| items?)?|(?:what(?:'s| is) )?left):) (.{4,})"
_OFFER = (
    r"(?:^|[.;,] )(?:do you want me to|would you like me to|want me to|shall i|should i) (.{4,})\?"
)
_REMAINS = (
    r"\b(?:not (?:done |quite )?yet|(?:still|yet) (?:(?:needs?|have|has) )?to|left to do|to be done|remains to|when (?:you(?:'re| are) )?ready|(?:awaiting|pending) (?:your|a|the)"
    r"|you(?:'ll| will)? need to|not (?:been )?(?:committed|pushed|merged|tested|implemented))\b"
)


# Titles


def name(turns: Turns, words: int = NAME_WORDS, commits: Sequence[str] = ()) -> str:
    """At most so many words that tell this topic from others; empty if nothing was said. The first request that says something; else
    what was committed first, what an answer is called, or how it begins."""
    bare = [text.strip("`~ \n") for _, text in turns[:1]]
    answered = (*commits[:1], *_headings(turns), *_answers(turns), *filter(None, bare))
    told = [*_requests(turns, 1), *answered]
    return _shorten(_bare(next(filter(is_telling, told), "") or next(iter(told), "")), words)


def session_title(turns: Turns, work: Sequence[Fact] = ()) -> str:
    """A title for a whole session."""
    return name(turns, TITLE_WORDS, [subject for what, subject in work if what == "commit"])


def is_telling(request: str) -> bool:
    """Whether a request says what it is about: a greeting, "ship it", "3 but on this branch" and "go ahead, …" do not."""
    bare = _bare(request)
    chooses = compile_pattern(_CHOOSES).match(fold_case(bare))
    return _names_something(bare) and not chooses and not says_nothing(bare)


def says_nothing(text: str) -> bool:
    """Whether a turn is a greeting, thanks, an offer of help, a bare yes or no or has no word at all: nobody looks for it."""
    idle = rf"\W*(?:(?:{'|'.join(phrases('idle'))})(?!\w)\W*){{0,6}}$"
    return len(text) < 80 and compile_pattern(idle).match(fold_case(text)) is not None


def only_asks(text: str) -> bool:
    """Whether a short turn holds questions and wishes and nothing else: it resembles what is asked for, and tells nothing of it."""
    told = prose(text) if len(text) <= ASKS else []
    wishes = compile_pattern(_WISHES)
    return bool(told) and all(
        one.rstrip(" *_\"')").endswith(("?", "？")) or wishes.match(fold_case(one)) for one in told
    )


def _requests(turns: Turns, most: int) -> list[str]:
    """What the user asked for: of each turn the first sentence that says something. If none does, the first sentence of all."""
    asked = [text for role, text in turns if role == "user"]
    telling = (next(filter(is_telling, _read_request(text)), "") for text in asked)
    first = islice(chain.from_iterable(map(_read_request, asked)), 1)
    return list(islice(filter(None, telling), most)) or list(first)


def _read_request(text: str) -> list[str]:
    """The first sentences of a turn in the user's own words; of a plan that an agent is told to carry out what that is called."""
    plan = compile_pattern(_PLANNED + _CALLED, re.IGNORECASE).match(text)
    if plan:
        return [plan[1].strip("# ")]
    text = text[: 2 * TURN_CHARACTERS]
    return _sentences("\n".join(text.split("\n")[: find_pasted(text)]))


def _headings(turns: Turns) -> list[str]:
    """What the first answer that has one calls itself in its first line: a plan, a report."""
    pattern = compile_pattern(rf"\s*{_CALLED}", re.IGNORECASE)
    found = (pattern.match(text) for role, text in turns if role != "user")
    return [one[1].strip("# ") for one in found if one][:1]


def _answers(turns: Turns) -> list[str]:
    """The first sentences of the answers, those that only say what comes next aside."""
    told = chain.from_iterable(_sentences(text) for role, text in turns if role != "user")
    telling = (one for one in told if not compile_pattern(FILLER).match(fold_case(one)))
    return list(islice(telling, REQUESTS))


def _sentences(text: str) -> list[str]:
    """The first sentences of prose, without what a program wrote: that goes on up to an empty line."""
    blocks = text[:TURN_CHARACTERS].split("\n\n")
    output = compile_pattern(_OUTPUT)
    return prose("\n\n".join(one for one in blocks if not output.match(fold_case(one))))[:SENTENCES]


def _names_something(text: str) -> bool:
    """Whether a text has a name of a file or a symbol, a word of its own, or two that fit a few requests."""
    generic = set()
    for token in space_out(text).split():
        word = token.strip("\"'“”‘’([{<>}])*_`.,:;!?…")
        plain = fold_case(word)
        if is_path(word) or is_file(word) or is_identifier(word):
            return True
        vague = {plain, plain.removesuffix("s")} & _VAGUE or plain in plain_words()
        if not vague and len(word) > 1 + word.isascii() and any(map(str.isalpha, word)):
            generic.add(plain)
            if plain not in word_set("generic") or len(generic) > 1:
                return True
    return False


def _bare(sentence: str) -> str:
    """A request without its greeting and politeness, and without the folders of long paths."""
    text = sentence.lstrip(" \"'“”‘’,:;!?¿¡–—*_")
    polite = compile_pattern(rf"(?:{_POLITE}){{0,8}}(?=.)").match(fold_case(text))
    rest = text[polite.end() :] if polite else text
    return _shorten_paths(compile_pattern(r"(?<!\w)`|`(?!\w)").sub("", rest))


def _shorten_paths(text: str) -> str:
    """A text with the last part alone of long paths, and the last three of addresses: `repository/pull/53`."""

    def shorten(path: re.Match[str]) -> str:
        parts = path[0].replace("\\", "/").rstrip("/").split("/")
        return "/".join(parts[-3:] if path[1] else parts[-1:])

    long = r"(?<![^\s`])(https?://)?[\w.@~:+-]*(?:[/\\][\w.@+-]+){3,}/?"
    return compile_pattern(long).sub(shorten, text)


def _shorten(text: str, words: int) -> str:
    """The whole text, or as much of it as ends with a clause, or so many words and "…"; with a capital, on one line."""
    text = " ".join(text.split()).strip(" \"'“”,:;!?–—*_").rstrip(".-(")

    def fits(part: str) -> bool:
        return len(part.split()) <= words and measure_width(part) <= NAME_WIDTH

    if not fits(text):
        ends = compile_pattern(_CLAUSE).finditer(text[: words * 40])
        clauses = [text[: end.start()] for end in ends if end.start() > CLAUSE]
        whole = [one for one in clauses if fits(one) and _names_something(one)]
        cut = cut_text(text, NAME_WIDTH - 1, words)
        short = compile_pattern(_DANGLING, re.IGNORECASE).sub("", cut.rstrip("…")) + "…"
        text = whole[-1].rstrip(" ,;:") if whole else short
    first = text.partition(" ")[0].rstrip(",:…").replace("'", "").replace("’", "")
    capital = text[:1].upper()
    plain = first.isalpha() and first.islower() and len(capital) == 1
    return capital + text[1:] if plain else text


# Lines that share a width


def _join(items: Iterable[str]) -> str:
    return "; ".join(" ".join(item.split()).rstrip(" .:;,") for item in items)


def _choose(items: Sequence[str], width: int, newest: bool = False) -> str:
    """As many whole items as fit, the first ones or the newest, in their order; of the first of them as much as fits."""
    order = -1 if newest else 1
    chosen: list[str] = []
    for item in items[::order]:
        item = _join([cut_text(item, min(ITEM, width))])
        if item and measure_width(_join((*chosen, item))) <= width:
            chosen.append(item)
    return _join(chosen[::order])


def _share_out(wanted: Mapping[str, Sequence[str]], shares: Mapping[str, int]) -> dict[str, str]:
    """A line for each label: within its share, and what the others leave free."""
    widths = {label: min(shares[label], measure_width(_join(wanted[label]))) for label in wanted}
    free = sum(shares.values()) - sum(widths.values())
    lines = {}
    for label, items in wanted.items():
        lines[label] = _choose(items, widths[label] + free, label in NEWEST)
        free += widths[label] - measure_width(lines[label])
    return lines


def _unlike(texts: Iterable[str]) -> list[str]:
    """Texts on one line each, every one once."""
    return list(dict.fromkeys(" ".join(text.split()) for text in texts if text.strip()))


# Summaries of topics


def summarise(
    turns: Turns, ideas: Iterable[tuple[str, str, bool]] = (), done: Sequence[str] = ()
) -> str:
    """Lines "Focus: …", "Done: …; …", "Decisions: …", "Conclusions: …", "Open: …", each only where there is something.

    An idea is its kind, its text and whether it is still open; `done` are the subjects of commits.
    """
    ideas = list(ideas)[-IDEAS:]
    wanted = {
        "Focus": (_requests(turns, REQUESTS) or _answers(turns)),
        "Done": done or find_report(turns).done[:1],
        "Decisions": [text for kind, text, _ in ideas if kind in DECIDED],
        "Conclusions": [text for kind, text, _ in ideas if kind in CONCLUDED],
        "Open": [text for _, text, is_open in ideas if is_open],
    }
    lines = _share_out({label: _unlike(items) for label, items in wanted.items()}, SUMMARY_SHARES)
    return "\n".join(f"{label}: {line}" for label, line in lines.items() if line)


# The digest of a session


class Report(NamedTuple):
    """What an answer says was done, and what remains."""

    done: Sequence[str] = ()
    left: Sequence[str] = ()


class Course(NamedTuple):
    """What is known of a session so far: enough to tell its digest, and to go on from at the next page."""

    asked: Sequence[str] = ()  # the first request that says something, and the last ones after it
    commits: Sequence[str] = ()
    pull: str = ""  # the number of the last pull request
    edits: Sequence[str] = ()  # names of files
    checks: Mapping[str, bool] = NOTHING  # command → whether it passed the last time
    report: Sequence[str] = ()
    left: Sequence[str] = ()
    recap: bool = False  # whether the report is of the host, which speaks for all of the session


def find_report(turns: Turns) -> Report:
    """The report of the last answer that is one, an answer being what comes last before the user speaks again."""
    pairs = [*pairwise([*turns, ("user", "")])][::-1]
    answers = (text for (role, text), (after, _) in pairs if role != "user" and after == "user")
    return next((one for one in map(read_report, answers) if one.done), Report())


def read_report(text: str) -> Report:
    """The first sentences that tell of something done, and those that tell what remains."""
    done, left = list[str](), list[str]()
    for sentence in prose(text[-3 * TURN_CHARACTERS :]):
        plain = fold_case(sentence)
        later = compile_pattern(rf"{_NEXT}|{_OFFER}").search(plain)
        if later or compile_pattern(_REMAINS).search(plain):
            start = later.start(later.lastindex or 0) if later else 0
            left.append(sentence[start:].rstrip("?"))
        elif tells_of_work(plain) and _is_statement(sentence):
            done.append(sentence.removeprefix("Done: ").removeprefix("Done — "))
    listed = [one.core for one in statements(text) if one.label == "todo"]
    return Report(done[:2], (listed or left)[:2])


def tells_what_remains(sentence: str) -> bool:
    """Whether a sentence of a report says what is still to be done; what it only offers to do may never be wanted."""
    plain = fold_case(sentence)
    remains = compile_pattern(rf"{_NEXT}|{_REMAINS}").search(plain)
    return bool(remains) and not compile_pattern(_UNDER_WAY).search(plain)


def _is_statement(sentence: str) -> bool:
    """Whether a sentence of an answer tells something by itself: no question, no announcement, no apology, no label with a value."""
    plain = fold_case(sentence)
    out = compile_pattern(rf"{_UNDER_WAY}|^noted\b|^\w{{2,16}}: |\bsorry\W*$").search(plain)
    telling = not out or plain.startswith("done: ")
    return telling and plain[-1:] != "?" and len(plain.split()) > 2 and _names_something(sentence)


def follow(
    known: Mapping[str, Any],
    turns: Turns,
    work: Sequence[Fact] = (),
    recap: str = "",
    plan: bool = False,
) -> Course:
    """What is known after these turns and what tools did meanwhile; `known` is the course before them, as JSON kept it.

    `recap` is what the host itself wrote about the session behind the last turn; with `plan` the last turn is a plan that
    nobody has taken up yet.
    """
    course = Course(**{name: known[name] for name in Course._fields if name in known})
    outcomes = {name: what == "passed" for what, name in work if what in ("passed", "failed")}
    commits = [name for what, name in work if what == "commit"]
    pulls = [name for what, name in work if what == "pull request"]
    edits = [path.rpartition("/")[2] for what, path in work if what == "edit"]
    course = course._replace(
        asked=_find_asked(course.asked, turns),
        commits=[*course.commits, *commits][-COMMITS:],
        pull=[course.pull, *pulls][-1],
        edits=list(dict.fromkeys([*course.edits, *edits]))[-EDITS:],
        checks=dict([*{**course.checks, **outcomes}.items()][-CHECKS:]),
    )
    if recap:
        report = read_report(recap)
        return course._replace(report=report.done, left=report.left, recap=True)
    while turns and turns[-1][0] == "user" and says_nothing(turns[-1][1]):
        turns = turns[:-1]  # an "ok" leaves what was left before it
    if not turns:
        return course
    told = find_report(turns).done or course.report
    answers = [*filter(_is_statement, _answers(turns[-1:]))][:1]
    return course._replace(report=told or answers, left=_find_left(turns, plan), recap=False)


def _find_asked(before: Sequence[str], turns: Turns) -> list[str]:
    """The first request that says something, and the last ones that ask for something to be done."""
    told = _requests(turns, len(turns))
    if not any(map(is_telling, before)):
        before, told = told[:1] or list(before), told[1:]
    wishes = compile_pattern(_WISHES)
    later = [one for one in told if is_telling(one) and wishes.match(fold_case(one))]
    return [*before[:1], *[*before[1:], *later][-LATER:]]


def _find_left(turns: Turns, plan: bool) -> Sequence[str]:
    """What remains behind the last turn: what nobody answered, what was planned, what the report says, or what was under way."""
    role, text = turns[-1]
    if role == "user":
        asked = _requests(turns[-1:], 1)
        # A word alone answers what the agent asked: what the user asked for before remains.
        answers = all(one.isascii() and " " not in one for one in asked)
        return (_requests(turns[:-1], len(turns))[-1:] if answers else []) or asked
    if plan:
        return _headings(turns[-1:])
    last = read_report(text)
    pattern = compile_pattern(_UNDER_WAY)
    under_way = [one for one in _sentences(text) if pattern.search(fold_case(one))]
    if last.left or last.done or not under_way:
        return last.left
    return [*filter(_names_something, under_way)][:1] or _requests(turns, len(turns))[-1:]


def compose_digest(course: Course, waiting: Sequence[str] = ()) -> dict[str, str]:
    """What a session was asked, did and left, within 60 tokens. `waiting` are the to-dos of it that nobody did."""
    failing = [f"{check} fails" for check, passed in course.checks.items() if not passed]
    wanted = {
        "asked": _unlike(map(_bare, course.asked)),
        "done": list(map(_shorten_paths, _tell_done(course))),
        "left": _unlike(map(_shorten_paths, (*(course.left or failing[-1:]), *waiting)))
        or [NOTHING_LEFT],
    }
    return _share_out(wanted, DIGEST_SHARES)


def _tell_done(course: Course) -> list[str]:
    """The recap of the host; else the newest commits, as many as fit; else what the report says, or which files were edited."""
    commits = "" if course.recap else _choose(course.commits, COMMITTED, newest=True)
    edited = [f"edited {', '.join(course.edits)}"] if course.edits else []
    told = [commits] if commits else list(course.report) or edited
    if course.pull and not any(course.pull in one for one in told):
        told = [f"PR {course.pull}: {_join(told[:1])}".rstrip(": "), *told[1:]]
    return told
