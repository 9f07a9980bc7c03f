"""A conversation → the few ideas in it worth keeping.

Ideas are decisions, preferences, gotchas, facts, problems, solutions, to-dos and questions. `sentences` finds the statements; the judge
reads each one in its context: the question before it, the sentences beside it, the reply to it. Repetitions are dropped, and the text of
an idea is always text of its turn: nothing is reworded.

This module knows no store and no clock; the judge is an argument.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from types import MappingProxyType
from typing import NamedTuple

from bethink.config import Config
from bethink.ingest.extract import entities
from bethink.ingest.lasting import Form, weigh_lasting
from bethink.ingest.picks import (
    Reply,
    complete,
    find_option_lines,
    point_at,
    read_answers,
    write_reply,
)
from bethink.ingest.provenance import find_own, find_probable
from bethink.ingest.reports import names_remaining_work
from bethink.ingest.sentences import LONGEST_STATEMENT, Statement, statements
from bethink.ingest.titles import is_uninformative, only_asks
from bethink.ingest.wording import (
    contrasts,
    count_shared_words,
    count_telling_words,
    other_tickets,
)
from bethink.judge import Judge, StatementReading, asks, describe_place
from bethink.language.change import CHANGED_MIND
from bethink.language.hedging import is_tentative
from bethink.language.intents import (
    ACKNOWLEDGES,
    ASKS_AMOUNT,
    CONCLUDES,
    CONFIRMS_MENDED,
    LEAVES_OPEN,
    NAMES_FIX,
    NEEDS_DOING,
    REPORTS_FIX,
    STATES_PROBLEM,
)
from bethink.language.kinds import ADDRESSES_EVERYONE, OF_A_PROJECT, WAY_OF_WORKING, cue_scores
from bethink.language.lasting import CHOOSES, OPENS_RULE, RESTRICTS, STANDING
from bethink.language.pattern import compile_pattern, fold_case
from bethink.language.pointing import OPENS_POINTING_BACK, POINTS_BACK
from bethink.language.questions import ASKS_LEAVE
from bethink.language.reasons import find_marked_reason
from bethink.language.replies import ASKS_NEXT_STEP, IS_STEP
from bethink.language.reports import ANNOUNCES_STEP, OF_THE_MOMENT, REPORTS_OWN_WORK
from bethink.language.requests import PROPOSES, REQUEST_AS_QUESTION
from bethink.language.rules import asks_for_now
from bethink.language.vocabulary import weak_words
from bethink.language.waiting import ANOTHER_TIME, BACKLOG_HEADING, DEFERS, POSTPONES
from bethink.model import Entity
from bethink.store.words import space_out

# How probably a statement of an agent must be worth keeping. From .25 on, .02 more of what is kept is right, and .03 less of what a
# careful reader would keep is found, on 32 labelled conversations of 19 repositories (bench/LOG.md, 2026-11-19).
WORTH_KEEPING = 0.14
# How probably a user's statement must last: where six of ten that are kept are right, and eight of ten that last are kept, on 83 sessions
# of 26 repositories (bench/LOG.md, 2026-11-19).
USER_LASTS = 0.2
SPEAKERS = ("user", "assistant")
RANKS = {"user": 0, "assistant": 1, "working": 2}  # whose wording is kept first
LASTING_KINDS = ("decision", "preference", "gotcha", "fact", "problem", "solution", "pattern")
CHOICE_KINDS = ("decision", "preference")
MENDED_KINDS = ("problem", "solution")  # which a rule is not
PLAIN_CHANCE = 0.5  # least chance of a kind that the first words of a statement say; by hand
LABELLED_CHANCE = 0.8  # chance of a kind that a label or a heading says outright; by hand
FIRM_CHANCE = 0.75  # chance from which what an assistant says is firm; by hand
# Ideas of one turn, by who speaks; items of what is to do. By hand, and one of an agent that goes on by itself: of the second and third 6 of 26
# were worth keeping (bench/LOG.md, 2026-11-19).
IDEAS_PER_TURN = {"user": 8, "assistant": 3, "working": 1}
TODOS_PER_TURN = 12
PUT_OFF_TODO = 0.3  # chance of a to-do from which what a user puts off is one; set by hand
STILL_OPEN = 0.5  # chance from which a request that nobody took up is something to do; by hand
# Of the lexicon's cues: "watch out" is a gotcha, "always" and "I prefer" a preference. By hand.
PLAIN_CUE = 3.0
CUE_BEGINNING = 40  # characters of a sentence in which a cue says what all of it is; set by hand
# Share of the shorter text's words from which two texts may say the same. By hand.
SHARED_MOST = 0.6
REPEATS_SHARE = (
    0.8  # share of a statement's words that an earlier one holds, from which it repeats it; by hand
)
# Telling words of a task that is put off and points back, up to which it does not say what it is: "I'll do it next week". By hand.
FEW_OF_TASK = 4
# Words of the context of a statement that the judge sees, as in its training.
HEADING_WORDS, ABOVE_WORDS, BELOW_WORDS, ASKED_WORDS, REPLY_WORDS = 8, 20, 14, 20, 16

NEAR_FIX = 6  # turns after a problem in which a fix of something it names mends it; by hand

Known = Sequence[tuple[str, str, str]]  # kind, speaker and text of ideas
Asked = Mapping[int, tuple[str, ...]]  # turn → questions of the agent that it answers
NO_QUESTIONS: Asked = MappingProxyType({})


class Idea(NamedTuple):
    kind: str  # of LASTING, question or todo; or what a language model calls it
    text: str  # words of its turn
    turn: int  # index of the turn that says it
    firm: bool
    confidence: float
    entities: tuple[Entity, ...] = ()
    telling: int | None = (
        None  # number of the language model's answer; None where the judge read it
    )
    put_off: bool = False  # a to-do for another time: what is said next does not do it
    closed: bool = False  # a question answered, or a problem mended, right in what was said next
    completed: bool = False  # a reply with what it answers
    doubtful: bool = False  # most likely the user's word, but not evidently
    by_agent: bool = False  # an agent's, also where a turn of the user holds it


class PlacedStatement(NamedTuple):
    """A statement with its position, and its context as the judge reads it."""

    turn: int
    speaker: str  # user, assistant, or working: an assistant that goes on by itself
    statement: Statement
    context: str
    text: str  # with the sentence of its paragraph that goes on from it
    replied: bool  # the other said something of substance to it
    last: bool  # of a user, or nobody but the assistant has spoken since
    unheard: str = ""  # of a user's statement the context without the reply
    width: int = 0  # characters of its turn
    reply: str = ""  # beginning of the reply to it


def open_reader(config: Config, judge: Judge | None = None) -> Judge | None:
    """Open a judge that can read conversations: `judge` or a new one. None if it cannot be used."""
    if not config.judge:
        return None
    reader = judge or Judge(config.threads)
    try:
        reader.prepare()
    except Exception:  # noqa: BLE001 - onnxruntime's errors share no base class
        return None
    return reader


def read_ideas(
    turns: Sequence[tuple[str, str]],
    judge: Judge,
    first: int = 0,
    asked: Asked = NO_QUESTIONS,
    known: Known = (),
) -> list[Idea]:
    """Return the ideas of a conversation in order, from the turn `first` on.

    The judge reads each statement in its context. Of a user's turn only the user's own words are read; `asked` has the questions of the
    agent that a turn answers. `known` are the ideas of earlier turns, which are not kept again.
    """
    placed = list(place_statements(turns, first, asked))
    readings = judge.read([(each.context, each.statement.text) for each in placed])
    # A user's words last or not, however the agent replied.
    own = [each for each in placed if each.speaker == "user"]
    unheard = iter(judge.read([(each.unheard, each.statement.text) for each in own]))
    found: list[Found] = []
    following = [*placed[1:], None][: len(placed)]
    for each, after, reading in zip(placed, following, readings, strict=True):
        alone = next(unheard) if each.speaker == "user" else reading
        kind, chance = _name_kind(each, reading, alone)
        anywhere = kind == "preference" and holds_anywhere(each.statement.text)
        if kind in ("question", "todo") or anywhere or _begins_another(kind, each, after):
            each = each._replace(text=each.statement.text)
        if kind != "none" and not (found and _goes_on(found[-1], kind, each)):
            found.append((chance, kind, each))
    kept = _keep_different(found, known)
    mended = _find_mended(kept, turns)
    taken = _find_acknowledged(turns)
    return [
        Idea(
            kind,
            each.text,
            each.turn,
            chance >= FIRM_CHANCE or each.speaker == "user",
            round(chance, 2),
            entities(each.text),
            put_off=kind == "todo" and _is_put_off(each),
            completed=bool(each.statement.completed),
            doubtful=each.statement.doubtful,
            closed=_is_answered(each, each.turn in taken)
            if kind == "question"
            else (kind, each.turn) in mended,
        )
        for chance, kind, each in kept
        if not (kind == "solution" and each.speaker == "working")  # the answer says what came of it
    ]


def _is_answered(each: PlacedStatement, acknowledged: bool) -> bool:
    """Return True if a reply settles the question: about its subject, with its count, or acknowledged."""
    asked = each.statement.core
    counted = ASKS_AMOUNT.holds(asked) and any(map(str.isdigit, each.reply))
    named = acknowledged or counted or count_shared_words(asked, each.reply)
    settled = bool(each.reply) and not asks(each.reply) and not LEAVES_OPEN.holds(each.reply)
    return bool(named) and settled


def _find_acknowledged(turns: Sequence[tuple[str, str]]) -> set[int]:
    """Return the turns of the user after whose reply the user says thanks, or that it is understood."""
    users = [at for at, (role, _) in enumerate(turns) if role == "user"]
    return {at for at, after in pairwise(users) if ACKNOWLEDGES.holds(turns[after][1])}


def _find_mended(kept: Sequence[Found], turns: Sequence[tuple[str, str]]) -> set[tuple[str, int]]:
    """Return the problems that are mended: ("problem", turn).

    The user's next turn confirms it, or what is kept of a later turn says by what something in them was fixed.
    """
    users = [at for at, (role, _) in enumerate(turns) if role == "user"]
    following = dict(pairwise(users))
    fixes = [each for _, kind, each in kept if kind == "solution"]
    fixes = [each for each in fixes if REPORTS_FIX.holds(each.statement.core)]
    return {
        ("problem", each.turn)
        for _, kind, each in kept
        if kind == "problem"
        and (
            (each.turn in following and CONFIRMS_MENDED.holds(turns[following[each.turn]][1]))
            or any(
                each.turn < fix.turn <= each.turn + NEAR_FIX
                and count_shared_words(each.statement.text, fix.statement.text)
                for fix in fixes
            )
        )
    }


def _goes_on(known: Found, kind: str, each: PlacedStatement) -> bool:
    """Return True if a sentence only continues the one before, which is kept with it: "They agreed today"."""
    _, own, before = known
    included = before.turn == each.turn and before.text.endswith(each.statement.text)
    return included and kind == own and POINTS_BACK.holds(each.statement.core)


def _begins_another(kind: str, each: PlacedStatement, after: PlacedStatement | None) -> bool:
    """Return True if the sentence after a user's begins an idea of another kind: "Never log session ids"."""
    if after is None or after.turn != each.turn or after.speaker != "user":
        return False
    cued = _find_cued(after.statement.core[:CUE_BEGINNING])
    other = bool(cued) and max(cued, key=cued.__getitem__) != kind
    return other or puts_off(after.statement.text) or only_asks(after.statement.text)


def holds_anywhere(text: str) -> bool:
    """Return True if a preference is about how others should work, and names nothing of one project."""
    asked = ADDRESSES_EVERYONE.holds(text) and WAY_OF_WORKING.holds(text)
    return asked and not OF_A_PROJECT.holds(text) and not entities(text)


# Statements in their place


def place_statements(
    turns: Sequence[tuple[str, str]],
    first: int = 0,
    asked: Asked = NO_QUESTIONS,
) -> Iterator[PlacedStatement]:
    """Yield the statements from the turn `first` on that say something, each with the words around it."""
    by_turn = [statements(text) if role in SPEAKERS else () for role, text in turns]
    texts = list(map(_put_together, by_turn))
    # The turns that one speaker has without a word of another.
    runs = [list(run) for _, run in groupby(range(len(turns)), key=lambda at: turns[at][0])]
    for before, run, after in zip([[], *runs], runs, [*runs[1:], []], strict=False):
        role = turns[run[0]][0]
        words_before = " ".join(texts[turn] for turn in before[-1:]).split()
        # The beginning of a user's turn is the question; the end of an agent's turn is what a user answers.
        words_before = (
            words_before[:ASKED_WORDS] if role == "assistant" else words_before[-ASKED_WORDS:]
        )
        reply = " ".join(texts[turn] for turn in after[:1]).split()[:REPLY_WORDS]
        answer = " ".join(texts[turn] for turn in after[:1])[:LONGEST_STATEMENT]
        replied = sum(_is_informative(one) for turn in after for one in by_turn[turn]) > 1
        last = role == "user" or not after
        for turn in filter(lambda turn: turn >= first, run):
            speaker = "working" if role == "assistant" and turn != run[-1] else role
            own: Sequence[Statement] = by_turn[turn]
            if role == "user":
                answered = turns[before[-1]][1] if before else ""
                own = _find_own_statements(turns[turn][1], asked.get(turn, ()), answered)
            # What is offered is no decision; what is picked is kept with the pick.
            offered = find_option_lines(turns[turn][1]) if speaker == "assistant" else ()
            for at in _list_telling(own, speaker):
                if own[at].line in offered:
                    continue
                place = _describe_place(speaker, own, at, words_before, reply)
                unheard = _describe_place(speaker, own, at, words_before, ())
                text, width = _grow(own, at), len(turns[turn][1])
                yield PlacedStatement(
                    turn, speaker, own[at], place, text, replied, last, unheard, width, answer
                )


def _find_own_statements(text: str, asked: tuple[str, ...], before: str = "") -> list[Statement]:
    """Return the statements of a turn that are the user's own words.

    Answers and short replies are completed by what they answer; a pick or an assent is a decision.
    """
    answers = read_answers(text, asked)
    if answers:
        return [
            Statement(one.text, one.text, at, "", _label_answer(one), at, write_reply(one))
            for at, one in enumerate(answers)
        ]
    own = find_own(text, asked)
    reply = complete(own.text, before) if own.whole else None
    if reply:
        label = "decision" if reply.settles else None
        return [Statement(reply.text, reply.text, 0, "", label, 0, write_reply(reply))]
    typed = "\n".join(text.split("\n")[: own.lines])
    found = [each for each in statements(typed) if own.hold(each.text)]
    if asked:
        return found
    known, probable = {each.core for each in found}, find_probable(text)
    found += [
        each._replace(text=each.text if probable.hold(each.text) else each.core, doubtful=True)
        for each in statements(text)
        if each.core not in known and probable.hold(each.core)
    ]
    return _complete_short(sorted(found, key=lambda each: (each.line, each.position)), before)


def _label_answer(answer: Reply) -> str | None:
    """Return "decision", or None for an answer that only says which step comes next."""
    few = count_telling_words(answer.text) <= FEW_OF_TASK
    step = few and ASKS_NEXT_STEP.holds(answer.question)
    return None if step or IS_STEP.holds(answer.text) else "decision"


def _complete_short(own: Sequence[Statement], before: str) -> list[Statement]:
    """Add what a short rule or limit is about: the sentence before it, or the end of the agent's turn.

    "I'll do it next week" gets the sentence before it, too.
    """
    found = []
    for at, each in enumerate(own):
        above = own[at - 1] if at else None
        whole = each.text == each.core
        short = whole and len(content_words(each.core)) < 2
        limits = short and (RESTRICTS.holds(each.core) or STANDING.holds(each.core))
        waits = whole and puts_off(each.core) and POINTS_BACK.holds(each.core)
        if limits or (waits and len(content_words(each.core)) <= FEW_OF_TASK):
            if above and above.doubtful == each.doubtful and content_words(above.core):
                each = each._replace(text=f"{above.core} {each.core}")
            elif limits and not above and (reply := point_at(each.core, before)):
                each = each._replace(completed=write_reply(reply))
        found.append(each)
    return found


def _list_telling(own: Sequence[Statement], speaker: str) -> list[int]:
    """Return the positions of statements that say something, without passing ones of a working agent."""
    return [
        at
        for at, each in enumerate(own)
        if _is_informative(each, speaker) and not (speaker == "working" and _is_passing(each))
    ]


def _put_together(own: Sequence[Statement]) -> str:
    return " ".join(each.text for each in own)


def _describe_place(
    speaker: str, own: Sequence[Statement], at: int, asked: Sequence[str], reply: Sequence[str]
) -> str:
    heading = " ".join(own[at].heading.split()[:HEADING_WORDS])
    above = " ".join(own[at - 1].text.split()[-ABOVE_WORDS:]) if at else ""
    below = " ".join(own[at + 1].text.split()[:BELOW_WORDS]) if own[at + 1 :] else ""
    return describe_place(speaker, heading, above, below, " ".join(asked), " ".join(reply))


def _grow(own: Sequence[Statement], at: int) -> str:
    """Add the next sentence of its paragraph to a short statement: it often gives the reason."""
    text = own[at].completed or own[at].text
    after = own[at + 1] if own[at + 1 :] else None
    if after is None or after.line != own[at].line or _is_passing(after) or asks(after.core):
        return text
    if after.doubtful != own[at].doubtful:
        return text
    return text if len(text) + len(after.core) >= LONGEST_STATEMENT else f"{text} {after.core}"


def _is_informative(statement: Statement, speaker: str = "") -> bool:
    """Return True if it has content and announces no step; a user's "let's start" is an order."""
    if statement.completed:
        return True
    idle = (
        speaker != "user"
        and ANNOUNCES_STEP.holds(statement.core)
        and not statement.core.endswith("?")
    )
    idle = idle or (speaker == "user" and is_uninformative(statement.core))
    return statement.label != "none" and not idle and len(content_words(statement.text)) > 1


def _is_passing(statement: Statement) -> bool:
    """Return True if a sentence of an agent is about the moment only, or asks."""
    return OF_THE_MOMENT.holds(statement.core)


# Kinds


def _name_kind(
    each: PlacedStatement, reading: StatementReading, unheard: StatementReading
) -> tuple[str, float]:
    """Return the kind of a statement and its probability, or "none".

    `unheard` is the reading of a user's statement without the reply to it.
    """
    user, statement = each.speaker == "user", each.statement
    if user and statement.label == "decision":
        return "decision", LABELLED_CHANCE
    rule = user and STANDING.holds(statement.text)
    waiting = None if rule else _name_waiting(each, reading)
    if waiting == "todo" and user and not _names_task(statement):
        # An order lasts or not, whether or not it is carried out at once.
        lasting = _name_users_kind(each, unheard)
        return lasting if lasting[1] else (waiting, LABELLED_CHANCE)
    if waiting in ("question", "todo"):
        return waiting, LABELLED_CHANCE
    if user:
        return _name_users_kind(each, unheard)
    chance = reading.worth * sum(reading.kinds[kind] for kind in LASTING_KINDS)
    intent = find_intent(statement.core)
    points = statement.text == statement.core and OPENS_POINTING_BACK.holds(statement.core)
    work = REPORTS_OWN_WORK.holds(statement.core) and not intent
    passing = points or work or asks(statement.text)
    kind = max(LASTING_KINDS, key=reading.kinds.__getitem__)
    worthy = intent or not (waiting or chance < WORTH_KEEPING)
    if passing or not worthy:
        return "none", 0.0
    if intent:
        return intent, max(chance**0.5, PLAIN_CHANCE)
    if kind == "decision" and not _settles(statement):
        return "none", 0.0
    return kind, chance**0.5


def _settles(statement: Statement) -> bool:
    """Return True if an agent's decision is called one, or says why or what over what."""
    called = statement.label == "decision" or "decision" in _find_cued(statement.core)
    return called or CHOOSES.holds(statement.text) or find_marked_reason(statement.text) is not None


def _name_users_kind(each: PlacedStatement, reading: StatementReading) -> tuple[str, float]:
    """Return the kind of what a user says, if it lasts, and the probability that it does."""
    statement = each.statement
    text = statement.text
    doubts = asks(text) and not (REQUEST_AS_QUESTION.holds(text) or PROPOSES.holds(text))
    step = statement.label is None and ASKS_NEXT_STEP.holds(statement.completed)
    passing = doubts or step or is_tentative(statement.core) or CHANGED_MIND.holds(statement.core)
    chance = 0.0 if passing else weigh_lasting(_make_form(each), reading, user=True)
    rule = OPENS_RULE.holds(text)
    intent = "" if passing or rule else find_intent(statement.core)
    if chance < USER_LASTS and not intent:
        return "none", 0.0
    if intent:
        return intent, max(chance, PLAIN_CHANCE)
    clear = _find_cued(statement.core)
    kinds = [kind for kind in LASTING_KINDS if not (rule and kind in MENDED_KINDS)]
    kind = max(kinds, key=lambda kind: (clear.get(kind, 0.0), reading.kinds[kind]))
    if kind in CHOICE_KINDS and _is_done_once(text):
        return "fact", chance
    own_way = kind == "decision" and holds_anywhere(text)
    return "preference" if own_way else kind, chance


def _is_done_once(text: str) -> bool:
    """Return True for a request that settles nothing for later: "yes, fix it", "can we improve …?"."""
    return asks_for_now(text) and not (STANDING.holds(text) or PROPOSES.holds(text))


def _make_form(each: PlacedStatement) -> Form:
    statement = each.statement
    return Form(
        statement.text,
        statement.position,
        each.width,
        statement.label,
        bool(statement.heading),
        each.speaker == "working",
        statement.doubtful,
    )


def find_intent(core: str) -> str:
    """Return the kind that a statement is by its plain wording: "The key insight is …", "Fixed by …"."""
    if REPORTS_FIX.holds(core) or (STATES_PROBLEM.holds(core) and NAMES_FIX.holds(core)):
        return "solution"
    if STATES_PROBLEM.holds(core):
        return "problem"
    return "conclusion" if CONCLUDES.holds(core) else ""


def _find_cued(core: str) -> dict[str, float]:
    """Return the kinds that the words of a statement speak for plainly, with their weights."""
    cues = cue_scores(core)
    return {kind: cues[kind] for kind in LASTING_KINDS if cues.get(kind, 0.0) >= PLAIN_CUE}


def _name_waiting(each: PlacedStatement, reading: StatementReading) -> str | None:
    """Return "question" or "todo" for an open statement, "none" if it is settled, None for all others."""
    statement, user = each.statement, each.speaker == "user"
    if statement.label == "todo":
        # The next steps of this work are soon done.
        return "todo" if each.last or _is_put_off(each) else "none"
    remains = names_remaining_work(statement.core) or NEEDS_DOING.holds(statement.core)
    reported = each.last and each.speaker == "assistant" and remains
    if reported or (not user and _defers(statement)):
        return "todo"
    if user and NEEDS_DOING.holds(statement.core) and not (each.replied or asks(statement.text)):
        return "todo"
    put_off = puts_off(statement.text)
    likeliest = _name_likeliest(statement, reading, put_off)
    if likeliest not in ("question", "todo"):
        return None
    stays = likeliest == "question" or put_off or reading.open >= STILL_OPEN
    later = ANOTHER_TIME.holds(statement.text)
    done = each.replied and (likeliest == "question" or not later or asks(statement.text))
    return likeliest if user and stays and not done else "none"


def _name_likeliest(statement: Statement, reading: StatementReading, put_off: bool) -> str:
    """Return the likeliest kind. A postponed statement is a to-do; asking leave or thinking aloud is none."""
    likeliest = max(reading.kinds, key=reading.kinds.__getitem__)
    if put_off and reading.kinds["todo"] >= PUT_OFF_TODO:
        return "todo"
    if likeliest != "todo" or is_tentative(statement.core):
        return "none" if likeliest == "todo" else likeliest
    asked = asks(statement.text) and ASKS_LEAVE.holds(statement.core)
    return "question" if asked else "todo"


def _names_task(statement: Statement) -> bool:
    """Return True if a user calls something work that waits: "TODO: …", "later", "we still need to …"."""
    called = statement.label == "todo" or puts_off(statement.text)
    return called or NEEDS_DOING.holds(statement.core)


def _is_put_off(each: PlacedStatement) -> bool:
    """Return True if a user puts a statement off, or it is in a list of work that waits."""
    if each.speaker == "user":
        return puts_off(each.statement.text)
    listed = each.statement.label == "todo" and BACKLOG_HEADING.holds(each.statement.heading)
    return listed or _defers(each.statement)


def _defers(statement: Statement) -> bool:
    """Return True if an agent leaves something to later work and says what."""
    return DEFERS.holds(statement.core) and not OPENS_POINTING_BACK.holds(statement.core)


def puts_off(text: str) -> bool:
    """Return True if a text says outright that something is for another time."""
    return POSTPONES.holds(text) or names_remaining_work(text)


# Repetitions

Found = tuple[float, str, PlacedStatement]  # chance, kind, statement


def _keep_different(found: Sequence[Found], known: Known) -> list[Found]:
    """Keep the surest of statements that say the same, in order, at most three of a turn and its to-dos.

    What a user says comes before an agent that repeats it, and an agent's answer before its remarks on the way. `known` are ideas of earlier
    pages.
    """
    kept: list[Found] = []
    of_turn: Counter[tuple[int, bool]] = Counter()
    for chance, kind, each in sorted(found, key=lambda one: (RANKS[one[2].speaker], -one[0])):
        place = each.turn, kind == "todo"
        most = TODOS_PER_TURN if kind == "todo" else IDEAS_PER_TURN[each.speaker]
        known_at = next((at for at, one in enumerate(kept) if _holds(each, one[2])), None)
        if known_at is not None and kept[known_at][1] in (kind, "question", "todo"):
            each = each._replace(text=each.statement.text)  # two statements
        elif known_at is not None:
            # The sentence before a statement of another kind says what it is about.
            surest, own, other = kept[known_at]
            text = f"{each.statement.text} {other.text}"
            text = text if len(text) <= LONGEST_STATEMENT else each.text
            own = kind if own in MENDED_KINDS and OPENS_RULE.holds(text) else own
            kept[known_at] = surest, own, other._replace(text=text)
            continue
        repeated = any(_covers(one, each) for *_, one in kept) or _is_known(kind, each, known)
        if of_turn[place] < most and not repeated:
            kept.append((chance, kind, each))
            of_turn[place] += 1
    return sorted(kept, key=lambda one: (one[2].turn, one[2].statement.position))


def _holds(each: PlacedStatement, known: PlacedStatement) -> bool:
    """Return True if a statement goes on with a sentence that is kept as another idea."""
    grown = each.text != each.statement.text
    return grown and known.turn == each.turn and known.statement.core in each.text


def _is_known(kind: str, each: PlacedStatement, known: Known) -> bool:
    """Return True if an idea of an earlier page, of the same kind and by the same speaker, says it all."""
    role = "user" if each.speaker == "user" else "assistant"
    words = content_words(each.text)
    return any(
        len(words & content_words(text)) >= REPEATS_SHARE * len(words)
        and not (contrasts(each.text, text) or other_tickets(each.text, text))
        for own, by, text in known
        if own == kind and by in (role, "user")
    )


def _covers(known: PlacedStatement, each: PlacedStatement) -> bool:
    """Return True if a kept statement already says this one. A few words can be the whole difference."""
    if known.turn == each.turn and each.statement.core in known.text:
        return True
    mine, theirs = content_words(each.text), content_words(known.text)
    shared = len(mine & theirs)
    most = shared and shared >= SHARED_MOST * min(len(mine), len(theirs))
    apart = contrasts(each.text, known.text) or other_tickets(each.text, known.text)
    return bool(most) and not apart


@lru_cache(maxsize=1 << 10)  # each is compared with many
def content_words(text: str) -> frozenset[str]:
    """Return the words that carry a text by their first six letters, which forms of one word share.

    Of a script without spaces they are pairs of characters.
    """
    found = compile_pattern(r"[^\W_]+").findall(space_out(fold_case(text)))
    plain = weak_words()
    return frozenset(
        word[:6] for word in found if word not in plain and (len(word) > 1 or not word.isascii())
    )


def is_users_own(idea: str, turn: str, asked: tuple[str, ...] = ()) -> bool:
    """Return True if the user's own part of a turn holds most words of an idea."""
    own = find_own(turn, asked)
    if own.whole:
        return True
    words = content_words(idea)
    return 2 * len(words & content_words(own.text)) > len(words)
