"""Digest of a session: what was asked, done and left, and which checks passed, within 260 tokens.

`follow` reads a page of turns and keeps what a digest needs in a `Course`, from which the next page continues. `compose_digest` writes the
lines: the requests that led to most work; the pull requests and commits, the last report, or else the files; and what remains:
open work, announcements, plans, and commits that nobody pushed or merged. Unknown lines stay empty: "nothing" is left only if the end of
the conversation says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from itertools import chain
from typing import Any, NamedTuple

from bethink.agents.base import Fact, Task
from bethink.ingest.lines import (
    choose,
    fit,
    join,
    list_distinct,
    names_something,
    shorten_paths,
)
from bethink.ingest.reports import (
    MOST_LISTED,
    find_headlines,
    is_statement,
    read_report,
    reports_outcome,
)
from bethink.ingest.sentences import measure_width, prose
from bethink.ingest.titles import (
    TURN_CHARACTERS,
    Turns,
    find_answers,
    find_headings,
    find_requests,
    first_sentences,
    is_informative,
    is_uninformative,
    read_request,
    strip_politeness,
)
from bethink.ingest.wording import count_telling_words
from bethink.language.intents import CLAIMS_PASSING
from bethink.language.pointing import REQUEST_POINTS_BACK
from bethink.language.reports import (
    ALL_DONE,
    ANNOUNCES_STEP,
    BOOKKEEPING_COMMIT,
    MERGED,
    OPENED_PR,
    PUSHED,
    SIDE_COMMIT,
    TO_PUSH,
    WORK_UNDER_WAY,
)
from bethink.language.requests import ASKS_FOR_WORK, HANDS_OVER
from bethink.language.settling import REFUSES
from bethink.language.waiting import ASKS_IN_GENERAL, ASKS_TO_DECIDE, NEXT_OR_OFFER
from bethink.model import NOTHING

Work = Sequence[Sequence[Fact]]  # what tools did before each turn, and behind the last one

# Widths of a digest and its lines, within 260 tokens with the checks; what was left may use what the line of what was done leaves free. Set by hand on the
# digests of 12 sessions of 12 repositories: with 60 tokens most were fragments.
DIGEST_WIDTH, DONE_WIDTH, ASKED_WIDTH = 900, 400, 340
LEFT_WIDTH, LEFT_MOST = 160, 260
CHECKS_WIDTH = 90  # of the checks that ran
DELIVERED_WIDTH = 150  # of commits and pull requests before a report
REQUEST_WIDTH = 110  # of each of several requests
MOST_NAMED = 5  # requests of a digest
LISTED_TASKS = 2  # items of the agent's task list beside the number of all others
BRIEF_CHARACTERS = 400  # of an answer that only says that work was delivered; by hand
RECAP_CHARACTERS = 1_000  # a longer text of an agent's host is no recap
# Facts that are kept from page to page: more than a digest can show.
MOST_COMMITS, MOST_PULLS, MOST_CHECKS, MOST_EDITS, MOST_ASKED = 6, 3, 4, 4, 12
REPEATED = 0.75  # share of a sentence's words from which another one says it already; by hand
SHORT_QUESTION = 5  # words of a question that says nothing alone; by hand
LEAST_REQUEST = 9  # width of a request beside others: "/commit", "approved", "なるほど"; by hand
LEAST_SHARE = 0.35  # of the heaviest request's weight, from which another is named; by hand
LEAST_CUT = 60  # width from which a cut request still says enough; by hand
BARE_REFUSAL = 3  # words of an answer that only refuses; by hand
OPEN_TASK = ("open", "doing")  # states of an item of an agent's task list that is not done
NOTHING_LEFT, NOT_PUSHED = "nothing", "not pushed"
# Words of commands by what they check.
CHECK_KINDS = {
    "lint": frozenset(
        "lint eslint ruff clippy fmt format prettier biome golangci flake vale".split()
    ),
    "types": frozenset("typecheck tsc mypy pyright types".split()),
    "test": frozenset(
        "test tests pytest jest vitest unittest spec rspec phpunit ctest mocha".split()
    ),
    "build": frozenset("build compile make vite webpack rollup".split()),
}
# Files that no commit of the project would hold: plans and notes of agents, and temporary ones.
PULL_REQUEST = re.compile(r"/pull/(\d+)|\b(?:PR|[Pp]ull request)\b[^.;\n]{0,40}?#(\d+)")
AROUND_MERGED = 40  # characters around "merged" that may say what was; by hand
BEGINS_NOW = re.compile(r"\W*(?:now|next)\b", re.IGNORECASE)
OUTSIDE = re.compile(r"/\.(?:claude|codex|cursor|gemini|pi)/|^/(?:tmp|var)/|/scratchpad/|/Temp/")
# Weight of a request: the most that tools did for it, and that it asks for work. Set by hand on 22 sessions.
WORK_WEIGHT, WISH_WEIGHT = {"edit": 1, "commit": 2, "pull request": 2}, 1
# Words from which a request says enough, width of an answer to an agent's question, and words of a turn that asks for something. By hand.
FULL_WORDS, ANSWER_WIDTH, LEAST_WORDS = 6, 120, 3
# What the words of a request add at most, words from which they add no more, what those add that commits and reports repeat, and what the first
# request adds. By hand, on the digests of 25 sessions of 20 repositories.
SUBSTANCE_WEIGHT, MOST_WORDS, REPEATED_WEIGHT, FIRST_WEIGHT = 2, 8, 2, 2


class Request(NamedTuple):
    """A request of a user. Stored as JSON: the order of the fields is fixed."""

    text: str
    wished: bool = False  # asks for work
    did: int = 0  # the most that tools did for it, of `WORK_WEIGHT`
    outcome: str = ""  # what the last answer to it reports

    @property
    def weight(self) -> float:
        return self.did + WISH_WEIGHT * self.wished


class Course(NamedTuple):
    """The state of a session so far. Stored as JSON: the names of the fields are fixed."""

    asked: Sequence[Request] = ()  # requests that say something
    commits: Sequence[str] = ()
    pulls: Sequence[str] = ()  # number and title of each pull request
    edits: Sequence[str] = ()  # names of files
    uncommitted: Sequence[str] = ()  # names of files edited since the last commit
    checks: Mapping[str, bool] = NOTHING  # command → passed the last time
    unchecked: bool = False  # edited since the last check
    report: Sequence[str] = ()
    left: Sequence[str] = ()
    recap: bool = False  # the report is the host's, and speaks for all of the session
    listed: Sequence[str] = ()  # open items of the agent's task list
    passed: bool = False  # the user spoke after the last change of the list
    unpushed: str = ""  # an answer that says so, or that nobody saw a push
    unmerged: bool = False  # the last pull request
    settled: bool = False  # the end gives reason to say that nothing is left


# Following a session


def follow(
    known: Mapping[str, Any],
    turns: Turns,
    work: Work = (),
    recap: str = "",
    plan: bool = False,
    left: Sequence[str] | None = None,
    tasks: Sequence[Sequence[Task]] = (),
) -> Course:
    """Return what is known after these turns. `known` is the course before them, as JSON kept it.

    `recap` is what the host itself wrote about the session behind the last turn. With `plan` the last turn is a plan that nobody has taken up.
    `left` is what the summary of a compaction behind the last turn lists as left. `tasks` are the changes of the agent's task list in each turn.
    """
    course = Course(**{name: known[name] for name in Course._fields if name in known})
    work = [*work, *([()] * (len(turns) + 1 - len(work)))]
    spoken = [*turns, ("host", recap)]
    course = _add_work(course, [*chain.from_iterable(work)])
    course = course._replace(asked=_add_requests(course.asked, spoken, work))
    course = _follow_branch(course, spoken, work)
    course = _follow_list(course, turns, tasks)
    if recap:
        report = read_report(recap)
        return course._replace(report=report.done, left=report.left, recap=True)
    turns = _drop_idle_end(turns)
    course = _follow_end(course, turns, plan) if turns else course
    return course if left is None else course._replace(left=left[:MOST_LISTED], settled=not left)


def _add_work(course: Course, facts: Sequence[Fact]) -> Course:
    """Add the commits, pull requests, edits and checks of a page, the newest of each."""
    commits = [name for what, name in facts if what == "commit"]
    pulls = list(course.pulls)
    for name in (name for what, name in facts if what == "pull request"):
        if not any(known.partition(":")[0] == name.partition(":")[0] for known in pulls):
            pulls.append(name)
    edits = [path.rpartition("/")[2] for what, path in facts if what == "edit"]
    checks, unchecked = dict(course.checks), course.unchecked
    for what, name in facts:
        if what in ("passed", "failed"):
            # Another run of the same kind says how it is now: `bun run test` fails where `bun run test:env` passes.
            same = [known for known in checks if name_check(known) == name_check(name)]
            checks = {known: passed for known, passed in checks.items() if known not in same}
            checks[name], unchecked = what == "passed", False
        elif what in ("edit", "commit"):
            # A change since then may have mended it: nobody knows.
            checks = {known: passed for known, passed in checks.items() if passed}
        unchecked = unchecked or what == "edit"
    return course._replace(
        commits=[*course.commits, *commits][-MOST_COMMITS:],
        pulls=pulls[-MOST_PULLS:],
        edits=list(dict.fromkeys([*course.edits, *edits]))[-MOST_EDITS:],
        checks=dict([*checks.items()][-MOST_CHECKS:]),
        unchecked=unchecked,
    )


def name_check(command: str) -> str:
    """Return the kind of check a command runs, or the command itself if that is unclear."""
    words = {word for word in re.split(r"[^a-z]+", command.lower()) if word}
    for kind, names in CHECK_KINDS.items():
        if words & names:
            return kind
    return command


def _add_requests(known: Sequence[Any], turns: Turns, work: Work) -> list[Request]:
    """Add the telling requests of a page, or else its first one, each with its work and outcome.

    The work of a request is what tools did before the next one. A request to commit, push or review adds to the one before it.
    """
    # A course that was kept before 0.18 has texts alone.
    found = [Request(one) if isinstance(one, str) else Request(*one) for one in known]
    before, at = "", len(found) - 1  # the request that is worked on
    for facts, (role, text) in zip(work, turns, strict=False):
        if found:
            did = max((WORK_WEIGHT.get(what, 0) for what, _ in facts), default=0)
            found[at] = found[at]._replace(did=max(found[at].did, did))
        if role == "assistant" and found:
            outcome = next(filter(reports_outcome, find_headlines([(role, text)])), "")
            found[at] = found[at]._replace(outcome=outcome or found[at].outcome)
        sentences = read_request(text) if role == "user" else []
        request = _choose_request(sentences)
        if request and not (found and _continues(request, before)):
            found = [one for one in found if is_informative(one.text)]
            found.append(request)
            at = len(found) - 1
        elif request and HANDS_OVER.holds(request.text):  # the work before a question
            wished = [at for at, one in enumerate(found) if one.wished or one.did]
            at = wished[-1] if wished else at
        elif not found:
            found = [Request(one) for one in sentences[:1]]
            at = len(found) - 1
        before = text
    while len(found) > MOST_ASKED:
        found.remove(min(found[1:-1], key=_weigh_request))
    return found


def _continues(request: Request, before: str) -> bool:
    """Return True if a request hands over the work before it, or only answers the agent's question."""
    asked = before.rstrip(" *_\n").endswith(("?", "？"))
    answers = asked and measure_width(request.text) <= ANSWER_WIDTH
    pick = request.text.isascii() and len(request.text.split()) < LEAST_WORDS
    plain = not request.wished and not request.text.startswith("/")
    return (plain and (answers or pick)) or HANDS_OVER.holds(request.text)


def _choose_request(sentences: Sequence[str]) -> Request | None:
    """Return the sentence that asks for work without pointing back, or else one that says something.

    Among equals, the one with more words counts: "I have two tasks. We want to open the search to …".
    """
    telling = [*filter(is_informative, sentences)]
    wished = [*filter(ASKS_FOR_WORK.holds, telling)]
    clear = [one for one in wished if not REQUEST_POINTS_BACK.holds(one)]
    if not telling:
        return None
    chosen = max(
        clear or wished or telling, key=lambda one: min(count_telling_words(one), FULL_WORDS)
    )
    return Request(chosen, bool(wished))


def _follow_branch(course: Course, turns: Turns, work: Work) -> Course:
    """Note which work was pushed and merged, by what tools did and by what was said."""
    unpushed, unmerged, uncommitted = course.unpushed, course.unmerged, course.uncommitted
    pulls = course.pulls
    for at, ((role, text), facts) in enumerate(zip(turns, work, strict=False), 1):
        did, end = {what for what, _ in facts}, text[-TURN_CHARACTERS:]
        uncommitted = _add_uncommitted(uncommitted, facts)
        if "commit" in did:
            unpushed = unpushed or NOT_PUSHED
        if did & {"push", "pull request"} or PUSHED.holds(end) or OPENED_PR.holds(end):
            unpushed = ""
        if role == "assistant" and OPENED_PR.holds(end) and (named := PULL_REQUEST.search(end)):
            number = f"#{named[1] or named[2]}"
            if not any(pull.startswith(number) for pull in pulls):
                pulls, unmerged = [*pulls, number][-MOST_PULLS:], True
        if role == "assistant" and (PUSHED.holds(end) or MERGED.holds(end)):
            uncommitted = ()
        merged = "merge" in did or _says_merged(end, pulls)
        unmerged = (unmerged or "pull request" in did) and not merged
        if role == "assistant" and turns[at][0] != "assistant":
            unpushed = next(filter(TO_PUSH.holds, read_report(text).left), unpushed)
    return course._replace(
        unpushed=unpushed, unmerged=unmerged, uncommitted=uncommitted, pulls=pulls
    )


def _follow_list(course: Course, turns: Turns, tasks: Sequence[Sequence[Task]]) -> Course:
    """Note the open items of the agent's task list, and if the user has moved on since its last change."""
    listed, passed = list(course.listed), course.passed
    for (role, _), changes in zip(turns, tasks, strict=False):
        passed = not changes and (passed or role == "user")
        for task in changes:
            if task.state not in OPEN_TASK:
                listed = [one for one in listed if one != task.text]
            elif task.text not in listed:
                listed.append(task.text)
    return course._replace(listed=listed, passed=passed)


def _add_uncommitted(known: Sequence[str], facts: Sequence[Fact]) -> Sequence[str]:
    """Return the names of the files that were edited after the last commit."""
    found = list(known)
    for what, name in facts:
        if what == "commit":
            found = []
        elif what == "edit" and not OUTSIDE.search(name):
            found.append(name.rpartition("/")[2])
    return list(dict.fromkeys(found))


def _says_merged(text: str, pulls: Sequence[str]) -> bool:
    """Return True if a text reports a merge, and not that of another pull request than the last."""
    found = MERGED.find(text)
    if not found:
        return False
    around = text[max(0, found.start() - AROUND_MERGED) : found.end() + AROUND_MERGED]
    numbers = re.findall(r"#(\d+)", around)
    last = re.match(r"#(\d+)", pulls[-1]) if pulls else None
    return not (last and numbers and last[1] not in numbers)


def _drop_idle_end(turns: Turns) -> Turns:
    """Drop an "ok" or "thanks" at the end: it leaves open what was open before it."""
    while turns and turns[-1][0] == "user" and is_uninformative(turns[-1][1]):
        turns = turns[:-1]
    return turns


def _follow_end(course: Course, turns: Turns, plan: bool) -> Course:
    """Note the report, what is left, and if the last answer says that all is done."""
    role, text = turns[-1]
    left = _find_left(turns, plan)
    report: Sequence[str] = [
        one for one in find_headlines(turns[:-1] if plan else turns) if one not in left
    ]
    if not left or not text.rstrip().endswith(
        (":", "：")
    ):  # an answer that broke off reports nothing
        report = report or course.report or [*filter(is_statement, find_answers(turns[-1:]))][:1]
    # A long report may say at any place what is left.
    delivered = len(text) <= BRIEF_CHARACTERS and (PUSHED.holds(text) or MERGED.holds(text))
    ended = ALL_DONE.holds(text) or delivered
    return course._replace(
        report=report,
        left=left,
        recap=False,
        settled=role != "user" and ended and "?" not in "".join(prose(text)[-1:]),
    )


def _drop_repeated(sentences: Sequence[str]) -> list[str]:
    """Leave out what an earlier one says already with nearly the same words."""
    kept: list[tuple[str, set[str]]] = []
    for one in list_distinct(sentences):
        words = _find_words(one)
        if not any(len(words & known) >= REPEATED * len(words) for _, known in kept if words):
            kept.append((one, words))
    return [one for one, _ in kept]


def _find_words(text: str) -> set[str]:
    return set(re.findall(r"\w{3,}", text.lower()))


def _find_left(turns: Turns, plan: bool) -> Sequence[str]:
    """Return what remains after the last turn: an open request, a plan, reported or announced work."""
    role, text = turns[-1]
    if role == "user":
        return _find_unanswered(turns)
    if plan:
        return [f"planned: {heading}" for heading in find_headings(turns[-1:])]
    report = read_report(text)
    sentences = prose(text)
    question = _find_question(sentences)
    if question and not report.left:
        return [f"to decide: {question}"]
    broke_off = text.rstrip().endswith((":", "："))
    ends = [one for one in sentences[-1:] if broke_off or ANNOUNCES_STEP.holds(one)]
    if ends and not report.left:
        return [f"announced: {strip_politeness(ends[0])}"]
    under_way = [*filter(WORK_UNDER_WAY.holds, first_sentences(text))]
    if report.left or report.done or not under_way:
        return report.left
    steps = [one for one in under_way if BEGINS_NOW.match(one) or ANNOUNCES_STEP.holds(one)]
    steps = [*filter(names_something, steps)]
    announced = [f"announced: {strip_politeness(one)}" for one in steps]
    asked = [_choose_request(read_request(text)) for role, text in turns if role == "user"]
    return (
        announced[:1] or [f"under way: {strip_politeness(one.text)}" for one in asked if one][-1:]
    )


def _find_question(sentences: Sequence[str]) -> str:
    """Return the question that an answer ends with, with the sentence before if it is short: "Go?"."""
    question = sentences[-1] if sentences else ""
    short = len(question.split()) <= SHORT_QUESTION
    whole = " ".join(sentences[-2:]) if short else question
    idle = NEXT_OR_OFFER.holds(question) or ASKS_IN_GENERAL.holds(question)
    telling = names_something(whole) and not idle
    return whole if ASKS_TO_DECIDE.holds(question) and telling else ""


def _find_unanswered(turns: Turns) -> Sequence[str]:
    """Return the request of the last turn, or the one before it if a single word only answers the agent."""
    last = turns[-1][1]
    if REFUSES.holds(last) and len(last.split()) <= BARE_REFUSAL:
        return []  # "no thanks" leaves nothing to do
    asked = find_requests(turns[-1:], 1)
    is_answer = all(one.isascii() and " " not in one for one in asked)
    before = find_requests(turns[:-1], len(turns))[-1:] if is_answer else []
    return before or asked


# Writing the digest


def compose_digest(course: Course, waiting: Sequence[str] = ()) -> dict[str, str]:
    """Return the lines "asked", "done", "left" and "checks", within 260 tokens. `waiting` are open to-dos."""
    done = min(DONE_WIDTH, measure_width(_describe_done(course, DIGEST_WIDTH)))
    left = choose(_list_left(course, waiting), min(LEFT_MOST, LEFT_WIDTH + DONE_WIDTH - done))
    room = min(ASKED_WIDTH, DIGEST_WIDTH - done - measure_width(left))
    asked = choose(_choose_asked(course, room), room)
    room = DIGEST_WIDTH - measure_width(asked) - measure_width(left)
    lines = {"asked": asked, "done": _describe_done(course, room), "left": left}
    checks = describe_checks(course)
    return {**lines, "checks": checks} if checks else lines


def _choose_asked(course: Course, width: int) -> list[str]:
    """Return the main requests in order: those that led to most, say most, and are spoken of again."""
    asked = [one._replace(text=strip_politeness(one.text)) for one in course.asked]
    long = [one for one in asked if measure_width(one.text) >= LEAST_REQUEST]
    asked = [one for one in long if not HANDS_OVER.holds(one.text)] or long or asked
    reported = _find_words(" ".join((*course.commits, *course.pulls, *course.report)))
    worth = [_weigh_request(one, reported) for one in asked]
    least = LEAST_SHARE * max(worth, default=0)
    worth[:1] = [FIRST_WEIGHT + one for one in worth[:1]]
    chosen: dict[int, str] = {}
    for at in sorted(range(len(asked)), key=lambda at: (-worth[at], -at))[:MOST_NAMED]:
        if worth[at] < least:
            break
        room = width - measure_width(join([*chosen.values(), ""]))
        text = asked[at].text
        text = fit(text, min(REQUEST_WIDTH, room)) if chosen else fit(text, width)
        known = _drop_repeated([*chosen.values(), text])
        cut = text.endswith("…") and measure_width(text) < LEAST_CUT
        if room > LEAST_REQUEST and len(known) > len(chosen) and not (chosen and cut):
            chosen[at] = text
    return [chosen[at] for at in sorted(chosen)]


def _weigh_request(request: Request, reported: Set[str] = frozenset()) -> float:
    """Weigh a request by its work, its words, and those of them that commits and the report repeat."""
    words = _find_words(request.text)
    substance = min(count_telling_words(request.text), MOST_WORDS) / MOST_WORDS
    repeated = len(words & reported) / (len(words) or 1)
    back = bool(REQUEST_POINTS_BACK.holds(request.text))
    return request.weight + SUBSTANCE_WEIGHT * substance + REPEATED_WEIGHT * repeated - back


def _list_left(course: Course, waiting: Sequence[str]) -> list[str]:
    """List open work, a failing check, and work not pushed or merged; "nothing" if the end says so."""
    failing = [f"{check} fails" for check, passed in course.checks.items() if not passed]
    listed = [] if course.passed else list(course.listed)
    more = [f"{len(listed) - LISTED_TASKS} more on the task list"] if listed[LISTED_TASKS:] else []
    left = [*(course.left or failing[-1:]), *listed[:LISTED_TASKS], *more, *waiting]
    if course.unpushed and not any("push" in one for one in left):
        left.append(course.unpushed)
    if course.uncommitted:
        left.append(_describe_uncommitted(course))
    if course.unmerged:
        left += [f"PR {pull.partition(':')[0]} open" for pull in course.pulls[-1:]]
    return list_distinct(map(shorten_paths, left)) or [NOTHING_LEFT] * course.settled


def _describe_uncommitted(course: Course) -> str:
    names, more = course.uncommitted[-MOST_EDITS:], len(course.uncommitted) - MOST_EDITS
    return f"no commit seen of {', '.join(names)}" + (f" and {more} more" if more > 0 else "")


def describe_checks(course: Course) -> str:
    """Return "go test, go build passed; eslint failed", with a note if files were edited after that."""
    known = {check: passed for check, passed in course.checks.items() if name_check(check) != check}
    parts = []
    for word, wanted in (("passed", True), ("failed", False)):
        names = ", ".join(check for check, passed in known.items() if passed == wanted)
        parts += [f"{fit(names, CHECKS_WIDTH)} {word}"] if names else []
    later = ", before the last edits" if parts and course.unchecked else ""
    return "; ".join(parts) + later


def _describe_done(course: Course, width: int) -> str:
    """Return the newest deliveries, the last report and the main outcomes, or else commits or files."""
    delivered = list_distinct(map(shorten_paths, _list_deliveries(course)))
    by_weight = sorted(enumerate(course.asked), key=lambda one: (one[1].weight, one[0]))
    outcomes = [one.outcome for _, one in by_weight[::-1]]
    reported = course.report if any(map(reports_outcome, course.report)) else course.report[:1]
    report = _drop_repeated([*delivered, *map(shorten_paths, (*reported, *outcomes))])
    fails = not all(course.checks.values())
    # Where a check failed last, the claim that all pass is wrong.
    report = [
        one for one in report if one not in delivered and not (fails and CLAIMS_PASSING.holds(one))
    ]
    if course.recap:  # it speaks for the whole session
        return choose([*report, *delivered[::-1]], width)
    if not (delivered or report):
        edits = [f"edited {', '.join(course.edits)}"] if course.edits else []
        return choose(course.commits, width, newest=True) or choose(edits, width)
    share = min(DELIVERED_WIDTH, width) if report else width
    line = choose(delivered, share, newest=True)
    room = width - measure_width(join([line, ""]))
    return join(filter(None, [line, choose(report, room) if room > 0 else ""]))


def _list_deliveries(course: Course) -> list[str]:
    """Return commits and then pull requests, the most important last.

    A single commit gives its subject to a single pull request.
    """
    commits = [one for one in course.commits if not BOOKKEEPING_COMMIT.holds(one)]
    commits.sort(key=lambda one: not SIDE_COMMIT.holds(one))
    pulls = list(course.pulls)
    if len(commits) == len(pulls) == 1 and ":" not in pulls[0]:
        pulls = [f"{pulls[0]}: {commits[0]}"]
    commits = [one for one in commits if not any(one in pull for pull in pulls)]
    return commits + [f"PR {pull}" for pull in pulls]
