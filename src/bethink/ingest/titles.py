"""What a conversation is called and what it came to: titles, summaries of topics, and the digest of a session.

A title is the first request that says something, in the user's words without their politeness, cut where a clause ends or
else with "…". A summary lists what was asked for, done, decided, concluded and left open, within 600 characters; it is made to
be read, searched and embedded. A digest is three lines, at most 60 tokens in all: the requests that led to most work; the commits, the
report or the files; what is said to remain, what was announced or planned, and what nobody pushed or merged. What is not known is
left empty: that nothing is left is said only where the end of the conversation gives reason.

Every word of them stands in a turn, in an idea or in what a tool did; the same turns always give the same. Only the beginning
of a turn and a bounded number of turns are read. This module knows no store and no model, and of grammar only a few English
phrases.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple

from bethink.agents.base import Fact
from bethink.ingest.provenance import find_own
from bethink.ingest.sentences import (
    cut_text,
    measure_width,
    prose,
    statements,
)
from bethink.ingest.wording import FILLER, is_tentative, tells_of_work
from bethink.language.pattern import compile_pattern, fold_case
from bethink.language.vocabulary import (
    is_file,
    is_identifier,
    is_path,
    phrases,
    plain_words,
    word_set,
)
from bethink.model import NOTHING
from bethink.store.words import space_out

Turns = Sequence[tuple[str, str]]

# What fits into a line of a list, and what a search result shows of a topic: set by hand.
NAME_WORDS, TITLE_WORDS = 10, 12
NAME_WIDTH = 72
CLAUSE = 12  # characters of a clause that can stand for the whole request

TURN_CHARACTERS = 2000
NEAR = 4  # turns before a choice that may hold the list
SENTENCES = 4  # of a turn that may be its request
REQUESTS = 3
IDEAS = 60  # the newest ones
ASKS = 600  # characters; who writes more tells something besides
ITEM = 200  # characters of one thing in a summary or a digest

# Characters that each line has for itself; what the others leave free it may use. With labels a summary has at most 600 characters, and a
# digest at most 60 tokens.
SUMMARY_SHARES = {"Focus": 160, "Done": 100, "Decisions": 130, "Conclusions": 90, "Open": 70}
NEWEST = ("Decisions", "Conclusions", "Open")  # lines that tell what came about last
# By hand, on the digests of 22 sessions; what is left may take the room of what was done.
DIGEST_WIDTH, LEFT_WIDTH, LEFT_MOST, DONE_WIDTH, ASKED_WIDTH = 214, 72, 96, 90, 110
SEVERAL = 58  # of each of several requests
COMMITS, PULLS, CHECKS, EDITS, ASKED = 6, 3, 4, 4, 8  # that are remembered from page to page
RECAP = 1000  # characters; what a host writes at greater length is no recap
NOTHING_LEFT, NO_PUSH = "nothing", "not pushed"
# What tools did for a request, and that it asks for work: which requests are told. By hand.
DID, WISHED = {"edit": 1, "commit": 2, "pull request": 2}, 1.5

DECIDED = ("decision", "preference", "architecture", "pattern")
CONCLUDED = ("conclusion", "solution", "discovery", "gotcha", "fact")

_POLITE = (
    r"(?:(?:(?:ok|okay|so|well|h+m+|ah+|oh+|alright|right|great|thanks?|thank you|nice|cool|perfect|good|now|next|then|and|but|also|first"
    r"|yes|yeah|yep|no|sure|sorry|please|hey|hi|hello|actually|by the way|btw|looks good"
    r"|(?:quick |one more |another |next |new )?(?:question|task|topic|thing))(?![\w'-])[\s,.!:;…–—-]{1,6})"
    r"|(?:(?:can|could|would|will) (?:you|we)(?: (?:please|maybe|also|just))?|i(?:'d| would) (?:like|love)(?: you)? to|i (?:want|need)(?: you)? to"
    r"|we (?:want|need|have) to|i mean(?:t)?|let'?s|help me(?: to)?|go ahead and)(?![\w'-])\s?)[ ,:;–—]{0,6}"
)
# What takes up a choice or an offer that stands elsewhere.
_CHOOSES = r"\W{0,4}(?:for both\b|go ahead\b|#?\d{1,2}(?:\W{0,4}$| (?:but|seems?|is|and|please|then|first|sounds|looks|for)\b))"
# Where a request goes on to reasons, conditions and details that a title can do without.
_CLAUSE = r"[,;:–—?!](?=\s)|\s(?=\()|\s[-–—](?=\s)|\.(?=\s)|[，；。！？]|\s(?=(?:so that|because|since|which|while|but|and then|if (?:you|we|i|it)|as well as|in order to|so we)\s)"
# What a title that is cut cannot end with.
_DANGLING = (
    r"[,;:]?(?: (?:an?|the|of|to|in|on|at|for|with|and|or|but|as|by|from|into|that|this|is|are|not|no|we|i|you|it|its|my|our|your|via|per|about"
    r"|when)\b){1,6}$"
)
_OUTPUT = r"[❯$%>] |\[[\w:./-]{2,40}\] |(?:error|warn(?:ing)?|info|debug|fatal|panic|usage)\b[:(]|[^\s=]+=\S+ [^\s=]+=|[^\n]*\s\\$"
# Words of a project's daily life that would fit any request.
_VAGUE = frozenset(
    """pr prs description super short stuff lets main latest change changes work working thing bit couple comment comments point points valid way
    correctly somehow exactly time going doing understand quick easy theres wonder related regarding state current project branch repo
    address applicable individual meaningful option dont didnt wont thats whats look looking like little get back seems great one tackle ship
    commit commits committing retry push pushed merge rebase todo todos todays session yes exit""".split()
)
# What picks from a list, and what a list has to be picked from: rows, points and headings with a number or a letter.
_PICKS = (
    r"(?:^\W{0,4}(?:(?i:ok|okay|yes|yeah|so|let'?s)\b\W{1,3}){0,3}|[.!?;,] |\b(?i:do|with|take|pick|choose|prefer|use|handle|tackle|fix|option|number|to-?do"
    r"|item|approach|is) )(?:(?i:option|number|to-?do|item) )?(#?(?:\d{1,2}|[A-H]))(?=[\s.,!?;)]{0,4}$"
    r"|[.,!?;]? (?i:but|seems?|is|and|please|then|first|sounds|looks|for|should|instead|quickly|now|on|in|with|can|it)\b)"
)
_LISTED = r"\s{0,6}(?:[-*|] ?)?(?:\[.\] )?(?:#{1,6} )?(?:\*\*)?(?i:option |approach )?\(?(\d{1,2}|[A-H])\b(?:\*\*)?\s{0,3}(?:\||[.):]|[—–-] )(?:\*\*)?\s{0,3}(?:\[.\] )?(\S.*)"
_PICKED = r"#?\w{1,2} \((.{4,})\)(?: (?:seems|sounds|looks|is)\b.{0,80}|(.{0,80}))$"
# The question of an agent, behind which its host writes what the user chose.
_CHOICE = r"(?i)^[^\n]{0,400}\b(?:would you (?:like|prefer)|do you (?:want|prefer))\b.{0,100}\?\n"
# What asks for work, and does not only ask or answer something.
_WISHES = (
    r"\W{0,4}(?:(?:ok|okay|yes|yeah|great|thanks|now|and|also|then|so)\b\W{1,3}){0,3}(?:(?:can|could|would|will) (?:you|we)|let'?s|please|we (?:need|should)"
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
# What says little without the sentence or the request before it.
_POINTS = r"\b(?:this|that|these|those|it|them)(?:(?: \w+){0,2}\W{0,3}$|[,;?!]| (?:via|in|on|to|for|with|and)\b)"
_TO_PUSH = r"\b(?:needs?|ready to|not)\b[^.]{0,30}\b(?:force-)?push|\bpush\b[^.]{0,60}\bready\b|\bunpushed\b|\bahead of\b"
_PUSHED = r"(?<!not )(?<!n't )(?<!be )\bpushed\b"
_OPENED = r"\bpr (?:#\d+ )?(?:is |was )?(?:opened|created)\b|\bopened (?:the|a) pr\b"
_MERGED = r"(?<!not )(?<!n't )(?<!be )(?<![\w-])merged\b|\bback to (?:main|master)\b"
_ALL_DONE = r"\bnothing (?:else|more|further|is left|left|to (?:do|commit))\b|\ball (?:done|set)\b|\btree (?:is )?clean\b|\bclean to merge\b"
# Subjects of commits beside the work, and of those that only keep books of it.
_BESIDE = (
    r"(?:docs|chore|style|test|ci|build)\b[^:]{0,40}:|.{0,60}\b(?:lint|typos?|coderabbit|copilot)\b"
)
_BOOKS = r"(?:docs|chore)\b.{0,60}\b(?:to-?dos?|state\.md|roadmap|last activity|progress)\b|wip\b|merge (?:branch|pull)\b"


# Titles


def name(turns: Turns, words: int = NAME_WORDS, commits: Sequence[str] = ()) -> str:
    """At most so many words that tell this topic from others; empty if nothing was said. The first request that says something; else
    what was committed first, what an answer is called, or how it begins."""
    bare = [text.strip("`~ \n") for _, text in turns[:1]]
    answered = (*commits[:1], *_headings(turns), *_answers(turns), *filter(None, bare))
    told = [*_requests(turns, 1), *_read_pasted(turns), *answered]
    return _shorten(_bare(next(filter(is_telling, told), "") or next(iter(told), "")), words)


def session_title(turns: Turns, work: Iterable[Fact] = ()) -> str:
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


def name_picks(role: str, text: str, before: Turns) -> str:
    """What is said; by a user with the words of what it picks from a list in one of the last answers: "5 (Fix the rename) first"."""

    def add_words(pick: re.Match[str]) -> str:
        lists = (_list_items(said) for role, said in reversed(before[-NEAR:]) if role != "user")
        item = next(filter(None, (items.get(pick[1].lstrip("#")) for items in lists)), "")
        return f"{pick[0]} ({item})" if item else pick[0]

    picks = role == "user" and len(text) <= ASKS
    return compile_pattern(_PICKS).sub(add_words, text) if picks else text


def _list_items(text: str) -> dict[str, str]:
    """What stands in a list behind each number or letter, the last list counting, or in which box; of a row its first cell that says
    something."""
    lines = text[-3 * TURN_CHARACTERS :].split("\n")
    listed = [found.groups() for line in lines if (found := compile_pattern(_LISTED).match(line))]
    boxes = [line.partition("] ")[2] for line in lines if line.lstrip().startswith("- [ ] ")]
    items = {}
    for name, item in listed or ((str(at), box) for at, box in enumerate(boxes, 1)):
        words = prose(item.partition(" |")[0].replace("**", ""))
        items[name] = _fit(_bare(words[0]), NAME_WIDTH).strip('"“”.…:') if words else ""
    return items if len(items) > 1 else {}


def only_asks(text: str) -> bool:
    """Whether a short turn holds questions, wishes and thoughts and nothing else: it resembles what is asked for, and tells nothing of
    it."""
    told = prose(text) if len(text) <= ASKS else []
    wishes = compile_pattern(_WISHES)
    return bool(told) and all(
        one.rstrip(" *_\"')").endswith(("?", "？"))
        or wishes.match(fold_case(one))
        or is_tentative(one)
        for one in told
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
    # The question of an agent is not what the user says.
    text = compile_pattern(_CHOICE).sub("", text[: 2 * TURN_CHARACTERS], 1)
    return _sentences(find_own(text).text.replace("\n", "\n\n"))


def _read_pasted(turns: Turns) -> list[str]:
    """What a text is called that a user pasted, or how the turn begins: no request, but it tells what a conversation is about."""
    asked = [text[: 2 * TURN_CHARACTERS] for role, text in turns if role == "user"]
    headings = [one for text in asked for one in compile_pattern(rf"^{_CALLED}").findall(text)]
    return [one for one in headings if len(one.split()) > 2][:1] + [
        one for text in asked[:1] for one in _sentences(text)
    ]


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
    picked = compile_pattern(_PICKED).match(rest)
    if picked:
        more = picked[2] or ""
        rest = picked[1] + more * _names_something(more)
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

    text = _fit(text, NAME_WIDTH, words)
    first = text.partition(" ")[0].rstrip(",:…").replace("'", "").replace("’", "")
    capital = text[:1].upper()
    plain = first.isalpha() and first.islower() and len(capital) == 1
    return capital + text[1:] if plain else text


def _fit(text: str, width: int, words: int = ITEM) -> str:
    """The whole text; or the longest beginning of it that ends with a clause, says something and fits; or as many words, and "…"."""

    def fits(part: str) -> bool:
        return len(part.split()) <= words and measure_width(part) <= width

    if fits(text):
        return text
    ends = compile_pattern(_CLAUSE).finditer(text[: 2 * ITEM])
    parts = [part for end in ends if fits(part := text[: end.start()])]
    clauses = [
        part.rstrip(" ,;:")
        for part in parts
        if measure_width(part) > max(CLAUSE, width // 4)
        and part.count("(") == part.count(")")
        and text[len(part)] != ":"
        and _names_something(part)
    ]
    short = cut_text(text, width - 1, words).rstrip("…")
    short = compile_pattern(_DANGLING, re.IGNORECASE).sub("", short) + "…"
    return [short, *clauses][-1]


# Lines that share a width


def _join(items: Iterable[str]) -> str:
    return "; ".join(" ".join(item.split()).rstrip(" .:;,") for item in items)


def _choose(items: Sequence[str], width: int, newest: bool = False) -> str:
    """As many items as fit, the first ones or the newest, in their order; of the first of them as much as fits, of others a clause."""
    order = -1 if newest else 1
    chosen: list[str] = []
    for item in items[::order]:
        item, room = _join([item]), width - measure_width(_join((*chosen, "")))
        told = _fit(item, min(ITEM, room)) if room > CLAUSE else ""
        clause = not newest and not told.endswith("…")
        if told and (told == item or not chosen or clause):
            chosen.append(told)
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


class Request(NamedTuple):
    """What a user asked."""

    text: str
    wished: bool = False  # for work
    did: int = 0  # the most that tools did for it, of DID

    @property
    def weight(self) -> float:
        return self.did + WISHED * self.wished


class Course(NamedTuple):
    """What is known of a session so far: enough to tell its digest, and to go on from at the next page."""

    asked: Sequence[Request] = ()  # that say something
    commits: Sequence[str] = ()
    pulls: Sequence[str] = ()  # number and title of each pull request
    edits: Sequence[str] = ()  # names of files
    checks: Mapping[str, bool] = NOTHING  # command → whether it passed the last time
    report: Sequence[str] = ()
    left: Sequence[str] = ()
    recap: bool = False  # whether the report is of the host, which speaks for all of the session
    unpushed: str = ""  # what says so: an answer, or that nobody saw a push
    unmerged: bool = False  # the last pull request
    settled: bool = False  # the end gives reason to say that nothing is left


def find_report(turns: Turns) -> Report:
    """The report of the last answer that is one, an answer being what comes last before the user speaks again."""
    pairs = [*pairwise([*turns, ("user", "")])][::-1]
    answers = (text for (role, text), (after, _) in pairs if role != "user" and after == "user")
    return next((one for one in map(read_report, answers) if one.done), Report())


def read_report(text: str) -> Report:
    """The first sentences that tell of something done, and those that tell what remains."""
    done, left, remains = list[str](), list[str](), compile_pattern(_REMAINS)
    for before, sentence in pairwise(["", *prose(_take_end(text))]):
        plain = fold_case(sentence)
        later = compile_pattern(rf"{_NEXT}|{_OFFER}").search(plain)
        clauses = compile_pattern(r"\s[–—-]\s|; ").split(sentence)
        remaining = [one for one in clauses if remains.search(fold_case(one))][:1]
        if later or remaining:
            rest = sentence[later.start(later.lastindex or 0) :] if later else remaining[0]
            rest = rest.rstrip("?")
            points = before and compile_pattern(rf"(?:{_POINTS})$").search(rest)
            left.append(f"{rest} ({before.rstrip('.')})" if points else rest)
        elif tells_of_work(plain) and _is_statement(sentence) and not (done and plain[-1] == ":"):
            told = sentence.removeprefix("Done: ").removeprefix("Done — ")
            done.append(compile_pattern(_DANGLING, re.IGNORECASE).sub("", told.rstrip(":")))
    listed = [one.core for one in statements(text) if one.label == "todo"]
    return Report(done[:2], (listed or left)[:2])


def _take_end(text: str) -> str:
    """The last lines of a long answer, whole ones."""
    end = text[-3 * TURN_CHARACTERS :]
    return end if end == text else end.partition("\n")[2] or end


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
    work: Sequence[Sequence[Fact]] = (),
    recap: str = "",
    plan: bool = False,
) -> Course:
    """What is known after these turns; `known` is the course before them, as JSON kept it, and `work` what tools did before each turn
    and behind the last one.

    `recap` is what the host itself wrote about the session behind the last turn; with `plan` the last turn is a plan that
    nobody has taken up yet.
    """
    work = [*work, *([()] * (len(turns) + 1 - len(work)))]
    said = [*turns, ("host", recap)]
    course = Course(**{name: known[name] for name in Course._fields if name in known})
    # What was kept before 0.18 are texts alone.
    before = [Request(one) if isinstance(one, str) else Request(*one) for one in course.asked]
    facts = [*chain.from_iterable(work)]
    outcomes = {name: what == "passed" for what, name in facts if what in ("passed", "failed")}
    commits = [name for what, name in facts if what == "commit"]
    pulls = [name for what, name in facts if what == "pull request"]
    edits = [path.rpartition("/")[2] for what, path in facts if what == "edit"]
    course = course._replace(
        asked=_find_asked(before, said, work),
        commits=[*course.commits, *commits][-COMMITS:],
        pulls=[*course.pulls, *pulls][-PULLS:],
        edits=list(dict.fromkeys([*course.edits, *edits]))[-EDITS:],
        checks=dict([*{**course.checks, **outcomes}.items()][-CHECKS:]),
    )
    course = _follow_branch(course, said, work)
    if recap:
        report = read_report(recap)
        return course._replace(report=report.done, left=report.left, recap=True)
    while turns and turns[-1][0] == "user" and says_nothing(turns[-1][1]):
        turns = turns[:-1]  # an "ok" leaves what was left before it
    if not turns:
        return course
    answers = [*filter(_is_statement, _answers(turns[-1:]))][:1]
    told = [] if plan else find_report(turns).done or course.report or answers
    ended = compile_pattern(f"{_ALL_DONE}|{_PUSHED}|{_MERGED}").search(fold_case(turns[-1][1]))
    settled, left = turns[-1][0] != "user" and bool(ended), _find_left(turns, plan)
    return course._replace(report=told, left=left, recap=False, settled=settled)


def _follow_branch(course: Course, turns: Turns, work: Sequence[Sequence[Fact]]) -> Course:
    """What of the work was pushed and merged, by what tools did and by what was said."""
    unpushed, unmerged = course.unpushed, course.unmerged
    for at, ((role, text), facts) in enumerate(zip(turns, work, strict=False), 1):
        did, plain = {what for what, _ in facts}, fold_case(text[-TURN_CHARACTERS:])
        if "commit" in did:
            unpushed = unpushed or NO_PUSH
        if did & {"push", "pull request"} or compile_pattern(rf"{_PUSHED}|{_OPENED}").search(plain):
            unpushed = ""
        merged = "merge" in did or compile_pattern(_MERGED).search(plain)
        unmerged = (unmerged or "pull request" in did) and not merged
        if role == "assistant" and turns[at][0] != "assistant":
            to_push = compile_pattern(_TO_PUSH)
            said = (one for one in read_report(text).left if to_push.search(fold_case(one)))
            unpushed = next(said, unpushed)
    return course._replace(unpushed=unpushed, unmerged=unmerged)


def _find_asked(
    before: Sequence[Request], turns: Turns, work: Sequence[Sequence[Fact]]
) -> list[Request]:
    """The requests that say something, or else the first; with what was done before the next."""
    found = list(before)
    for facts, (role, text) in zip(work, turns, strict=False):
        if found:
            did = max((DID.get(what, 0) for what, _ in facts), default=0)
            found[-1] = found[-1]._replace(did=max(found[-1].did, did))
        told = _read_request(text) if role == "user" else []
        telling = [*filter(is_telling, told)]
        wished = [one for one in telling if compile_pattern(_WISHES).match(fold_case(one))]
        if telling:
            points = compile_pattern(_POINTS)
            clear = [one for one in wished if not points.search(fold_case(one))]
            found = [one for one in found if is_telling(one.text)]
            found.append(Request((clear or telling)[0], bool(wished)))
        elif not found:
            found = [Request(one) for one in told[:1]]
    return [*found[:1], *found[1:][-ASKED:]]


def _find_left(turns: Turns, plan: bool) -> Sequence[str]:
    """What remains behind the last turn: what nobody answered, what was planned, what the report says, or what was under way."""
    role, text = turns[-1]
    if role == "user":
        asked = _requests(turns[-1:], 1)
        # A word alone answers what the agent asked: what the user asked for before remains.
        answers = all(one.isascii() and " " not in one for one in asked)
        return (_requests(turns[:-1], len(turns))[-1:] if answers else []) or asked
    if plan:
        return [f"planned: {one}" for one in _headings(turns[-1:])]
    last = read_report(text)
    pattern = compile_pattern(_UNDER_WAY)
    under_way = [one for one in _sentences(text) if pattern.search(fold_case(one))]
    if last.left or last.done or not under_way:
        return last.left
    announced = [f"announced: {_bare(one)}" for one in under_way if _names_something(one)][:1]
    return announced or _requests(turns, len(turns))[-1:]


def compose_digest(course: Course, waiting: Sequence[str] = ()) -> dict[str, str]:
    """What a session was asked, did and left, within 60 tokens; of what is not known nothing. `waiting` are the to-dos of it that nobody
    did."""
    done = min(DONE_WIDTH, measure_width(_tell_done(course, DIGEST_WIDTH)))
    left = _choose(_list_left(course, waiting), min(LEFT_MOST, LEFT_WIDTH + DONE_WIDTH - done))
    room = min(ASKED_WIDTH, DIGEST_WIDTH - done - measure_width(left))
    asked = _choose(_choose_asked(course.asked, room), room)
    room = DIGEST_WIDTH - measure_width(asked) - measure_width(left)
    return {"asked": asked, "done": _tell_done(course, room), "left": left}


def _list_left(course: Course, waiting: Sequence[str]) -> list[str]:
    """What was said to remain and what waits, a check that fails, work that was not pushed or merged; nothing where the end says so."""
    failing = [f"{check} fails" for check, passed in course.checks.items() if not passed]
    left = [*(course.left or failing[-1:]), *waiting]
    if course.unpushed and not any("push" in one for one in left):
        left.append(course.unpushed)
    if course.unmerged:
        left += [f"PR {one.partition(':')[0]} open" for one in course.pulls[-1:]]
    return _unlike(map(_shorten_paths, left)) or [NOTHING_LEFT] * course.settled


def _choose_asked(asked: Sequence[Request], width: int) -> list[str]:
    """The two or three requests that led to most work, of equal ones the first and the newest, in their order. The first is told where
    another one points to something, or where nothing was done."""
    by_weight = sorted(range(len(asked)), key=lambda at: (-asked[at].weight, at > 0, -at))
    ranked = [at for at in by_weight if asked[at].weight or at == 0]
    best = [asked[at] for at in ranked[:2]]
    points = any(compile_pattern(_POINTS).search(fold_case(one.text)) for one in best)
    if points or not any(one.did for one in best):
        ranked.sort(key=bool)
    for most in (REQUESTS, 2):
        whole = _unlike(_bare(asked[at].text) for at in sorted(ranked[:most]))
        short = [_fit(text, SEVERAL) for text in whole]
        if len(whole) < 2 or measure_width(_join(whole)) <= width:
            return whole
        if measure_width(_join(short)) <= width and "…" not in "".join(short):
            return short
    return whole


def _tell_done(course: Course, width: int) -> str:
    """The recap of the host; else the newest pull requests and commits, those beside the work if there is room; else what the report
    says, commits that keep books, or which files were edited."""
    books, beside = compile_pattern(_BOOKS), compile_pattern(_BESIDE)
    commits = [one for one in course.commits if not books.match(fold_case(one))]
    commits.sort(key=lambda one: not beside.match(fold_case(one)))
    pulls = list(course.pulls)
    if len(commits) == len(pulls) == 1 and ":" not in pulls[0]:
        pulls = [f"{pulls[0]}: {commits[0]}"]
    commits = [one for one in commits if not any(one in pull for pull in pulls)]
    commits += [f"PR {one}" for one in pulls]
    by_commits = not course.recap and bool(commits or not course.report)
    told = [*course.report, *commits[::-1]]
    told = (commits or list(course.commits)) if by_commits else told
    told = told or [f"edited {', '.join(course.edits)}"] * bool(course.edits)
    return _choose(_unlike(map(_shorten_paths, told)), width, newest=by_commits)
