"""A conversation → the few ideas in it worth keeping: decisions, preferences, gotchas, facts, problems, solutions, to-dos, questions.

`sentences` finds the statements. With a judge each one is read in its place: what was asked, what stands beside it, what the
other said to it (`read_ideas`). Without one, `intents` says what each is by its words alone, and the turns are read together
by rules (`ideas`): a proposal that the user takes up is a decision, an answer is tied to its question. Either way what repeats
is dropped, and an idea's text is always text of its turn: nothing is worded anew.

This module knows no store and no clock; the judge is given, or there is none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from bethink.ingest.extract import entities
from bethink.ingest.intents import FIRM, LABELS, Intent, judge, strength
from bethink.ingest.lexicon import FILLER, compile_pattern, cue_scores, fold_case, word_set
from bethink.ingest.pasted import find_pasted
from bethink.ingest.sentences import LONGEST, Statement, statements
from bethink.ingest.titles import tells_what_remains
from bethink.ingest.wording import contrasts, find_change
from bethink.judge import Judge, StatementReading, asks, describe_place
from bethink.types import Entity

# What an idea of each kind is worth to somebody who comes back in a month.
VALUE = {
    "decision": 1.0,
    "solution": 0.85,
    "problem": 0.8,
    "conclusion": 0.8,
    "todo": 0.8,
    "question": 0.65,
    "context": 0.55,
}
ASSISTANT = 0.8  # what an assistant says weighs less than what the user says,
AT_WORK = 0.6  # and less still in the middle of its work
PASTED = 0.6  # what a user pasted is nobody's word here: set by hand, as low as what weighs least
LABELLED = 0.8  # chance of a kind that a label or a heading says outright,
REPLIED = 0.6  # of an answer that only its place and its words show to be one,
LISTED = 0.6  # and of an item in a list below a heading, which may be anything
OVERRULES = 0.85  # chance from which a sentence is not what its heading says
CLEAR = 0.75  # chance from which a firm decision of the user is kept in any case
PER_TURN, TODOS = 3, 12  # ideas of one turn, such decisions aside; items of what is to do
REPLY = 400  # characters; who writes more does not just say yes or no
NEAR = 12  # turns within which a proposal is taken up and a problem solved
RELATED = 0.25  # share of words, and nearness, that tie an answer to its question
ANSWERS = ("conclusion", "solution", "decision", "context")
UNJUDGED = Intent("none", 0.0, ())
# Chances below which a sentence of an assistant is not kept: it talks more, and more smoothly, than the training sentences.
LEAST = {
    "decision": 0.8,
    "solution": 0.7,
    "problem": 0.7,
    "conclusion": 0.65,
    "todo": 0.65,
    "context": 0.75,
    "question": 0.6,
}

_YES = (
    r"(?:yes|yeah|yep|yup|ya|sure|agreed|approved?|lgtm|exactly|sounds (?:good|great|fine|right)|good idea|makes sense|works for me|please do"
    r"|go (?:ahead|for it|with)|do (?:it|that|this|so)\b|let'?s (?:do|go|try|use)\b|i (?:like|agree)|option|number|the (?:first|second|third|last)"
    r"|\d\W*$|[a-d]\W*$|y\W*$|👍|✅)(?!\w)"
)
# "ok" by itself agrees; "ok, now fix the header" goes on to something else.
_ACCEPTS = (
    rf"\W*(?:{_YES}|(?:ok|okay|k|great|perfect|good|fine|cool|right|correct)\b\W*(?:$|{_YES}))"
)
_BUT = r"\b(?:but|instead|rather|except)\b"
_REJECTS = (
    r"\W*(?:no|nope|nah|don'?t|do not|not|rather|instead|actually|hmm+,? (?:no|not)|i'?d rather|i would rather|i don'?t|stop|wait|never ?mind"
    r"|neither|none)\b"
)
_PROPOSES = (
    r"\bi(?:'d| would) (?:suggest|recommend|go|lean|prefer|propose|use|keep|do|say|make|put|store|drop)\b|\bi (?:recommend|suggest|propose)\b"
    r"|\bmy (?:recommendation|suggestion|preference|take|proposal)\b|^(?:recommended|recommendation|suggestion|proposal)\b|\bi think we should\b"
    r"|\bwe should (?:probably )?(?:use|go|keep|switch|move)\b|\bhow about\b|\b(?:best|cleanest|simplest|safest) (?:option|approach|way|choice)\b"
    r"|\boption \w+ (?:is|would)\b"
)
# "Want me to switch the keys to random ones?": what is offered is a choice, or work for later, not the next step of this one.
_OFFERS = (
    r"^(?:so |then |and )?(?:do you want me to|would you like me to|want me to|shall (?:i|we)|should (?:i|we)|how about (?:we|i)|what if we)\s+"
    r"(?:go ahead and |just |also )?((?:capture|record|note|log|document|migrate|switch|replace|use|move|convert|adopt|drop|keep|split|merge"
    r"|store|rewrite|change|make|deprecate|standardi[sz]e|go with|stick|turn|limit|cap|pin|encrypt|cache)\b.{8,300}?)\??$"
)
_LATER = r"\b(?:to-?do|follow-?up|ticket|backlog|issue)\b"
_BACKLOG = r"\b(?:pending|to-?dos?|backlog|outstanding|deferred|future|later|you(?:'ll| will)? (?:still )?(?:need|have) to)\b"
_NUMBERED = r"\b(?:option|number|no\.?|#|go with|do|take|use|choose|pick|the)?\s*\(?(\d|[a-d]|first|second|third)\)?\b"
_ORDINALS = {"first": "1", "second": "2", "third": "3"}
_OPTIONS = r"\b(?:options?|approach(?:es)?|ways|alternatives?|directions|choices|possibilities|variants?|scenarios?)\b"

# Questions that want no answer.
_RHETORICAL = (
    r"^(?:and |so |but |well,? )?(?:who (?:doesn't|does not|needs|cares|knew|wrote|named)|how hard can|what could (?:possibly )?go wrong"
    r"|why (?:do i|does (?:this|it)|am i) (?:always|even|ever)|isn't (?:it|life|that) (?:great|beautiful|funny|lovely|nice)|are you kidding"
    r"|can you believe|what was i thinking|what the (?:hell|heck)|seriously|is it (?:friday|weekend))\b"
)
# What an assistant is about to do, offers to do, imagines, or reports of its work: gone with the turn, or told better by
# the history of the code.
_DID = (
    r"(?:add|updat|remov|renam|chang|correct|replac|extract|mov|trimm?|reword|adjust|bump|wir|revert|creat|implement|refactor|simplif|document"
    r"|sort|link|cross-referenc|rewrit|renumber|switch|split|merg|delet|extend|convert|register|introduc|dropp?)(?:ed|ied|ten|d)\b"
)
_PASSING = (
    r"(?:^|[,;:—–] |\b(?:so|and|then|but|now|next) )i(?:'m| am)(?: now| also| just| still| going to)? (?!not\b|afraid|inclined)\w+ing\b"
    r"|\bi(?:'ll| will)\b|\blet me\b"
    r"|^(?:now |so |but |and )?i (?:also |still |just |now )?(?:need|should|have to|want to|can|could|went|had to|have)\b"
    r"|\bif you(?:'d|'re| want(?:ed)?| like| prefer| think| agree| need| wish)\b|\byou(?:'d| would) (?:need|have|give|want|get|lose)\b"
    r"|^if\b[^.]{3,200}\bwould\b|^you(?:'re| are) (?:absolutely )?right\b|\bbefore i (?:proceed|start|go)\b"
    r"|^(?:so |then |and )?(?:do you want|would you like|want me|want to|shall i|shall we|should i|ready to)\b"
    r"|\btests? (?:all )?(?:pass|passed|are green)\b|\b\d+ tests\b|\bcoverage\b.{0,30}\d ?%|\blint(?:er)? (?:is )?(?:clean|passes)\b"
    rf"|^[^.!?]{{2,80}} ?[—–:-] {_DID}|^{_DID}(?:: | (?:the|a|an|two|three|all|both|`))"
)
_WENT_OVER = (
    r"\b(?:we|i|team|they)(?:'ve| have)? (?:now |just |already |finally )?"
    r"(?:moved|switched|migrated|replaced|changed|converted|swapped|went)\b"
)
_VERB = (
    r"\b(?:is|are|was|were|be|been|has|have|had|do|does|did|can|could|will|would|should|must|may|might|cannot|\w+n't|'s|'re|needs?|uses?|runs?"
    r"|makes?|takes?|gets?|goes|keeps?|means?|shows?|works?|fails?|breaks?|returns?|holds?|lives?|comes?|gives?|falls?|stays?|becomes?|contains?"
    r"|requires?|expects?|allows?|lets?|reads?|writes?|sends?|stores?|calls?|matches|passes|drops?|loses?|leaks?|\w{3,}ed|went|took|made|got"
    r"|came|broke|found|kept|chose|built|wrote|\w+s (?:the|a|an|to|it|no|only|not|its))\b"
)

# How somebody wants others to work with them, in any project: they ask it of whoever works, about the work itself. Who says "we" speaks of
# a project.
_ASKED_OF_ANYBODY = (
    r"\b(?:always|never|don'?t|do not|avoid|prefer|from now on|before (?:you|making|doing|starting|each|every|any)|when(?:ever)? you"
    r"|every time|i (?:want|like|hate|expect|need) you|you (?:should|must|can) (?:always|never)|(?:answer|reply|talk|write|explain) in)\b"
)
_WAY_OF_WORKING = (
    r"\b(?:commits?|committing|branch(?:es)?|push(?:ing)?|rebas\w+|squash\w*|pull requests?|prs?|reviews?|linter|lint|formatter|tests? first|run the tests"
    r"|ask(?:ing)? (?:me|first|before)|explain\w*|explanations?|summar\w+|answers?|repl(?:y|ies)|comments?|docstrings?|emojis?|plan(?:s|ning)? (?:first|before)"
    r"|step by step|small steps|german|english|french|spanish|chinese|concise\w*|brief(?:ly)?|verbose|short)\b"
)
_OF_A_PROJECT = (
    r"\b(?:we|we'\w+|our|ours|us|here|(?:this|the|that) (?:repo|repository|project|app|codebase|service|module|package|team|api|server|client|customer|branch|pr|file"
    r"|test|function|page|ticket|issue|release)|today|now|this time)\b"
)


# How probably a statement must be worth keeping, by who says it: where half to two thirds of what is kept is what a careful
# reader would keep, on 22 labelled conversations that the judge never saw (bench/LOG.md, 2026-11-16).
KEPT = {"user": 0.14, "assistant": 0.14, "working": 0.18}
SPEAKERS = ("user", "assistant")
LASTING = ("decision", "preference", "gotcha", "fact", "problem", "solution", "pattern")
# A heading or a label in the user's own words is believed whatever the judge says.
ANNOUNCED = {"conclusion": "fact", "context": "fact"}
STILL_OPEN = 0.5  # chance from which a request that nobody took up is something to do
TENTATIVE = 0.5  # strength below which a user only thinks aloud
CUED = 3.0  # of the lexicon's cues: "watch out" is a gotcha, "always" and "I prefer" a preference
MOST_WORDS = 0.6  # share of the shorter text's words from which two texts may say the same
SHORT_REPLY = 30  # characters of a turn without a statement that is a reply: "yes, do that"
# Words of what stands around a statement that the judge sees, as in its training.
HEADED, ABOVE, BELOW, ASKED, REPLIED_WITH = 8, 20, 14, 20, 16


class Idea(NamedTuple):
    kind: str  # of LASTING, question or todo; without a judge one of intents.LABELS
    text: str  # words of its turn
    turn: int  # index of the turn that says it
    firm: bool
    confidence: float  # of the classification and of the speaker's certainty together
    entities: tuple[Entity, ...] = ()
    answers: int | None = None  # index of the idea that this answers or solves
    accepted: int | None = None  # index of the user's turn that took this proposal up
    line: int = 0  # of the turn, from 0, where it begins
    pasted: bool = False  # it stands in a part of the user's turn that somebody else wrote


def holds_anywhere(text: str) -> bool:
    """Whether a preference is about how its speaker wants others to work, and names nothing of one project."""
    folded = fold_case(text)
    asked = all(compile_pattern(one).search(folded) for one in (_ASKED_OF_ANYBODY, _WAY_OF_WORKING))
    return asked and not compile_pattern(_OF_A_PROJECT).search(folded) and not entities(text)


class PlacedStatement(NamedTuple):
    """A statement, where it stands, and what the judge is told about that place."""

    turn: int
    speaker: str  # user, assistant, or working: an assistant that goes on by itself
    statement: Statement
    context: str
    text: str  # with the sentence of its paragraph that goes on from it
    replied: bool  # the other said something of substance to it
    last: bool  # of a user, or nobody but the assistant has spoken since


def read_ideas(turns: Sequence[tuple[str, str]], judge: Judge, first: int = 0) -> list[Idea]:
    """The ideas of a conversation in order, each statement from the turn `first` on read in its place by the judge."""
    placed = [
        each
        for each in place_statements(turns, first)
        if each.speaker != "working" or not _is_momentary(each.statement)
    ]
    readings = judge.read([(each.context, each.statement.text) for each in placed])
    pasted = {at: find_pasted(text) for at, (role, text) in enumerate(turns) if role == "user"}
    found = []
    for each, reading in zip(placed, readings, strict=True):
        start = pasted.get(each.turn)
        foreign = start is not None and each.statement.line >= start
        kind, chance = _name_kind(each, reading)
        alone = kind == "preference" and holds_anywhere(each.statement.text)
        if kind in ("question", "todo") or alone:
            each = each._replace(text=each.statement.text)
        if kind != "none" and not foreign:
            found.append((chance, kind, each))
    return _keep_different(found)


def place_statements(turns: Sequence[tuple[str, str]], first: int = 0) -> Iterator[PlacedStatement]:
    """The statements from the turn `first` on that say something, each with the words around it."""
    said = [statements(text) if role in SPEAKERS else [] for role, text in turns]
    texts = [_put_together(own, text) for own, (_, text) in zip(said, turns, strict=True)]
    runs = _find_runs([role for role, _ in turns])
    telling = [sum(map(len, map(_list_telling, map(said.__getitem__, run)))) for run in runs]
    for number, run in enumerate(runs):
        role, is_last = turns[run[0]][0], number + 1 == len(runs)
        asked = _cut_asked(texts[runs[number - 1][-1]], role) if number else []
        reply = [] if is_last else texts[runs[number + 1][0]].split()[:REPLIED_WITH]
        replied = not is_last and telling[number + 1] > 1
        for turn in run:
            at_work = role == "assistant" and turn != run[-1]
            speaker = "working" if at_work else role
            for at, each in _list_telling(said[turn]) if turn >= first else ():
                place = _describe_place(speaker, said[turn], at, asked, reply)
                grown = _grow(said[turn], at)
                ends = role == "user" or is_last
                yield PlacedStatement(turn, speaker, each, place, grown, replied, ends)


def _cut_asked(text: str, role: str) -> list[str]:
    """What an assistant was asked begins with it; what a user answers ends with it."""
    words = text.split()
    return words[:ASKED] if role == "assistant" else words[-ASKED:]


def _put_together(said: Sequence[Statement], text: str) -> str:
    """The statements of a turn as one text; a short turn without one as it is."""
    return " ".join(each.text for each in said) or (text if len(text) < SHORT_REPLY else "")


def _list_telling(said: Sequence[Statement]) -> list[tuple[int, Statement]]:
    return [(at, each) for at, each in enumerate(said) if _says_something(each)]


def _find_runs(roles: Sequence[str]) -> list[list[int]]:
    """The turns of a conversation, those together that one speaker has without a word of another."""
    runs = groupby(range(len(roles)), key=roles.__getitem__)
    return [list(run) for _, run in runs]


def _describe_place(
    speaker: str, own: Sequence[Statement], at: int, asked: Sequence[str], reply: Sequence[str]
) -> str:
    heading = " ".join(own[at].heading.split()[:HEADED])
    above = " ".join(own[at - 1].text.split()[-ABOVE:]) if at else ""
    below = " ".join(own[at + 1].text.split()[:BELOW]) if own[at + 1 :] else ""
    return describe_place(speaker, heading, above, below, " ".join(asked), " ".join(reply))


def _grow(said: Sequence[Statement], at: int) -> str:
    """A statement with the next sentence of its paragraph, which often says why, if both are short."""
    text = said[at].text
    after = said[at + 1] if said[at + 1 :] else None
    if after is None or after.line != said[at].line or _is_passing(after) or asks(after.core):
        return text
    if text in after.text:
        return after.text
    return text if len(text) + len(after.core) >= LONGEST else f"{text} {after.core}"


def _name_kind(each: PlacedStatement, reading: StatementReading) -> tuple[str, float]:
    """What is kept of a statement and how surely, or "none"."""
    user, label = each.speaker == "user", each.statement.label
    waiting = _name_waiting(each, reading)
    if waiting is not None:
        return (waiting, LABELLED) if waiting != "none" else ("none", 0.0)
    if user and (label or _reports_change(each.statement.core)):
        return ANNOUNCED.get(label, label) if label else "decision", LABELLED
    chance = reading.worth * sum(reading.kinds[kind] for kind in LASTING)
    vague = asks(each.statement.text) or (user and strength(each.statement.core) < TENTATIVE)
    if chance < KEPT[each.speaker] or vague:
        return "none", 0.0
    cues = cue_scores(fold_case(each.statement.core)) if user else {}
    clear = {kind: cues[kind] for kind in LASTING if cues.get(kind, 0.0) >= CUED}
    kind = max(LASTING, key=lambda kind: (clear.get(kind, 0.0), reading.kinds[kind]))
    return kind, chance**0.5


def _name_waiting(each: PlacedStatement, reading: StatementReading) -> str | None:
    """The question or the to-do that a statement is, "none" where nothing waits any more; None for every other statement."""
    user = each.speaker == "user"
    if each.statement.label == "todo":
        return "todo" if each.last or _waits(each.statement) else "none"
    if each.last and not user and tells_what_remains(each.statement.core):
        return "todo"
    likeliest = max(reading.kinds, key=reading.kinds.__getitem__)
    if likeliest not in ("question", "todo"):
        return None
    stays = likeliest == "question" or reading.open >= STILL_OPEN
    return likeliest if user and stays and not each.replied else "none"


def _waits(statement: Statement) -> bool:
    """Whether an item stands in a list of what waits apart from this work; what is next in this work is soon done."""
    listed = statement.item and compile_pattern(_BACKLOG).search(fold_case(statement.heading))
    return bool(listed)


def _keep_different(found: Sequence[tuple[float, str, PlacedStatement]]) -> list[Idea]:
    """Of statements that say the same the surest, at most three of a turn and a list of what is to do, in order."""
    kept: list[tuple[float, str, PlacedStatement]] = []
    of_turn: Counter[tuple[int, bool]] = Counter()
    for chance, kind, each in sorted(found, key=lambda one: -one[0]):
        place = each.turn, kind == "todo"
        most = TODOS if kind == "todo" else PER_TURN
        if of_turn[place] < most and not any(_says(other, each) for *_, other in kept):
            kept.append((chance, kind, each))
            of_turn[place] += 1
    kept.sort(key=lambda one: (one[2].turn, one[2].statement.position))
    return [
        Idea(
            kind,
            each.text,
            each.turn,
            chance >= CLEAR or each.speaker == "user",
            round(chance, 2),
            entities(each.text),
            line=each.statement.line,
        )
        for chance, kind, each in kept
    ]


def _says(known: PlacedStatement, each: PlacedStatement) -> bool:
    """Whether what is kept already says it: few words of difference can be the whole difference."""
    if known.turn == each.turn and each.statement.core in known.text:
        return True
    shared, fewest, _ = _compare_words(each.text, known.text)
    return _is_most(shared, fewest) and not contrasts(each.text, known.text)


def _compare_words(one: str, other: str) -> tuple[int, int, int]:
    """How many words two texts share, how many the shorter has, and the longer."""
    mine, theirs = content_words(one), content_words(other)
    return len(mine & theirs), min(len(mine), len(theirs)), max(len(mine), len(theirs))


def _is_most(shared: int, of: int) -> bool:
    return shared > 0 and shared >= MOST_WORDS * of


class JudgedStatement(NamedTuple):
    """A statement and what became of it."""

    turn: int
    weight: float  # of who says it, and when
    statement: Statement
    kind: str
    chance: float
    strength: float
    chances: tuple[float, ...]  # of every label; none where it was not judged
    accepted: int | None = None
    pasted: bool = False

    @property
    def user(self) -> bool:
        return self.weight == 1.0

    @property
    def text(self) -> str:
        return self.statement.text

    @property
    def score(self) -> float:
        telling = min(len(content_words(self.text)), 6) / 6
        weight = self.weight if self.accepted is None else 1.0
        return (
            VALUE[self.kind]
            * self.chance
            * weight
            * (0.6 + 0.4 * self.strength)
            * (0.5 + 0.5 * telling)
        )

    @property
    def settled(self) -> bool:
        """A firm decision of the user, told clearly enough to be kept in any case."""
        decided = self.kind == "decision" and (self.user or self.accepted is not None)
        return decided and self.chance >= CLEAR and self.strength >= FIRM


def ideas(turns: Sequence[tuple[str, str]], *, most: float = 0.5) -> list[Idea]:
    """The ideas of a conversation in order. `turns` are (role, text); `most` is how many to keep per turn that says something.

    The clearly firm decisions of the user are kept, whatever `most` says.
    """
    said = [
        (turn, role, statement)
        for turn, (role, text) in enumerate(turns)
        for statement in _state(role, text)
    ]
    found = _settle_proposals(_find_replies(_judge_statements(said, turns), turns), turns)
    substantive = len({turn for turn, _, _ in said})
    return _link_answers(_choose(found, math.ceil(max(most, 0.0) * substantive)))


def _state(role: str, text: str) -> Iterator[Statement]:
    """The statements of a turn that say something, greetings and what an agent is about to do aside."""
    if role in SPEAKERS:
        yield from filter(_says_something, statements(text))


def _says_something(statement: Statement) -> bool:
    core = fold_case(statement.core)
    idle = compile_pattern(FILLER).match(core) and not statement.core.endswith("?")
    words = bool(statement.label) or (not idle and len(content_words(core, 2)) > 1)
    return statement.label != "none" and words


@lru_cache(maxsize=1 << 10)  # each is compared with many
def content_words(text: str, enough: int | None = None) -> frozenset[str]:
    """The words that carry a text, by their first six letters: enough to tell forms of one word."""
    found: set[str] = set()
    for match in compile_pattern(r"[^\W_]+").finditer(fold_case(text)):
        word = match[0]
        if word not in word_set("stop_words") and (len(word) > 1 or not word.isascii()):
            found.add(word[:6])
            if len(found) == enough:
                break
    return frozenset(found)


def is_said(idea: str, turn: str) -> bool:
    """Whether the user's own part of a turn, and not only what was pasted into it, holds most words of an idea."""
    start = find_pasted(turn)
    if start is None:
        return True
    own = content_words("\n".join(turn.split("\n")[:start]))
    words = content_words(idea)
    return 2 * len(words & own) > len(words)


def _judge_statements(
    said: Sequence[tuple[int, str, Statement]],
    turns: Sequence[tuple[str, str]],
) -> list[JudgedStatement]:
    """What each statement is; those that are nothing stay, because they may be proposals. What an assistant says of the moment is
    nothing whatever it sounds like, so it is not judged."""
    momentary = [role == "assistant" and _is_momentary(statement) for _, role, statement in said]
    pasted = {at: find_pasted(text) for at, (role, text) in enumerate(turns) if role == "user"}
    judgements = iter(
        judge(
            [
                statement.core
                for (_, _, statement), out in zip(said, momentary, strict=True)
                if not out
            ]
        )
    )
    found = []
    for (turn, role, statement), out in zip(said, momentary, strict=True):
        intent = UNJUDGED if out else next(judgements)
        kind, chance, chances = intent if out else _correct_intent(intent, role, statement)
        working = (
            role == "assistant" and turn + 1 < len(turns) and turns[turn + 1][0] == "assistant"
        )
        unsure = statement.label is None and chance < LEAST.get(kind, 0.0)
        if role == "assistant" and (unsure or (working and kind == "todo")):
            kind = "none"
        start = pasted.get(turn)
        foreign = start is not None and statement.line >= start
        weight = _weigh_speaker(role, working, foreign)
        firm = 0.0 if kind == "none" else strength(statement.core)
        found.append(
            JudgedStatement(turn, weight, statement, kind, chance, firm, chances, pasted=foreign)
        )
    return found


def _weigh_speaker(role: str, working: bool, foreign: bool) -> float:
    if foreign:
        return PASTED
    return 1.0 if role == "user" else AT_WORK if working else ASSISTANT


def _correct_intent(intent: Intent, role: str, statement: Statement) -> Intent:
    """What a statement is after its label, a reported change and the form of a question had their say."""
    kind, chance, chances = intent
    label = statement.label
    if label and (kind in ("none", label) or chance < OVERRULES):
        own = chances[LABELS.index(label)]
        kind, chance = label, max(own, LISTED + 0.3 * own if statement.item else LABELLED)
    if kind == "none" and role == "user" and _reports_change(statement.core):
        kind, chance = "decision", max(chances[LABELS.index("decision")], LABELLED)
    if kind == "question" and compile_pattern(_RHETORICAL, 0).match(fold_case(statement.core)):
        kind = "none"
    return Intent(kind, chance, chances)


def _reports_change(text: str) -> bool:
    """Whether somebody says that they went from one thing to another: a decision, however plainly it is told."""
    return bool(
        compile_pattern(_WENT_OVER, 0).search(fold_case(text))
        and not text.rstrip().endswith("?")
        and find_change(text)
    )


def _is_momentary(statement: Statement) -> bool:
    """Whether a sentence of an assistant is nothing to keep: without a verb, or gone with the moment."""
    core = fold_case(statement.core)
    states = (
        statement.label is not None or not core.isascii() or compile_pattern(_VERB, 0).search(core)
    )
    return not states or _is_passing(statement)


def _is_passing(statement: Statement) -> bool:
    """Whether a sentence of an assistant is about the moment only, asks, or is one of several options."""
    option = statement.item and compile_pattern(_OPTIONS, 0).search(fold_case(statement.heading))
    return bool(option or compile_pattern(_PASSING, 0).search(fold_case(statement.core)))


def _find_replies(
    found: Sequence[JudgedStatement], turns: Sequence[tuple[str, str]]
) -> list[JudgedStatement]:
    """With the replies to the user's questions: a sentence that takes the question's words up is the answer, if no clear idea is."""
    result = list(found)
    for asked in found:
        if asked.kind != "question" or not asked.user:
            continue
        replies = [
            at
            for at, each in enumerate(result)
            if _is_reply(each.turn, asked.turn, turns) and _likeness(each.text, asked.text) >= 0.5
        ]
        if not replies or any(result[at].kind in ANSWERS for at in replies):
            continue
        best = max(replies, key=lambda at: (_likeness(result[at].text, asked.text), -at))
        statement = result[best].statement
        if result[best].kind in ("none", "problem") and not _is_passing(statement):
            chances = dict(
                zip(
                    LABELS,
                    result[best].chances or judge([statement.core])[0].chances,
                    strict=True,
                )
            )
            kind = max(("conclusion", "context", "solution"), key=chances.__getitem__)
            result[best] = result[best]._replace(
                kind=kind, chance=max(REPLIED, chances[kind]), strength=strength(statement.core)
            )
    return result


def _is_reply(turn: int, asked: int, turns: Sequence[tuple[str, str]]) -> bool:
    return asked < turn < asked + NEAR and all(
        role == "assistant" for role, _ in turns[asked + 1 : turn + 1]
    )


def _settle_proposals(
    found: Sequence[JudgedStatement], turns: Sequence[tuple[str, str]]
) -> list[JudgedStatement]:
    """Proposals that the next words of the user take up become decisions; those that they turn down go."""
    result = {(each.turn, each.statement.position): each for each in found}
    for turn, (role, text) in enumerate(turns):
        reply = fold_case(text[:REPLY]).strip()
        accepts, rejects = (
            compile_pattern(_ACCEPTS, 0).match(reply),
            compile_pattern(_REJECTS, 0).match(reply),
        )
        if role != "user" or len(text) > REPLY or not (accepts or rejects):
            continue
        before = [each for each in found if _just_before(each.turn, turn, turns)]
        if rejects:
            for each in filter(_is_proposal, before):
                result.pop((each.turn, each.statement.position), None)
        elif (
            not compile_pattern(_BUT, 0).search(reply)
            and not _restates(found, turn)
            and (taken := _find_accepted(before, reply))
        ):
            result[taken.turn, taken.statement.position] = taken._replace(accepted=turn)
    return [each for each in result.values() if each.kind != "none"]


def _just_before(turn: int, reply: int, turns: Sequence[tuple[str, str]]) -> bool:
    """Whether a turn of the assistant is among those that the user replies to."""
    return reply - NEAR < turn < reply and all(role != "user" for role, _ in turns[turn:reply])


def _is_proposal(found: JudgedStatement) -> bool:
    tentative = found.kind == "decision" and found.strength < FIRM
    return tentative or bool(
        compile_pattern(f"{_PROPOSES}|{_OFFERS}", 0).search(fold_case(found.statement.core))
    )


def _restates(found: Iterable[JudgedStatement], turn: int) -> bool:
    """Whether a reply says at length itself what was decided, so that the proposal adds nothing."""
    return any(
        each.turn == turn and each.kind == "decision" and len(content_words(each.text)) > 7
        for each in found
    )


def _find_accepted(before: Sequence[JudgedStatement], reply: str) -> JudgedStatement | None:
    """The proposal that a reply takes up: the one of that number, else the clearest."""
    number = compile_pattern(_NUMBERED, 0).search(reply[:60]) if len(reply.split()) < 12 else None
    if number:
        wanted = _ORDINALS.get(number[1], number[1])
        for each in reversed(before):
            named = compile_pattern(
                r"\W*(?:(?:option|approach|variant)\W*)?(\w)[.):]?(?!\w)", 0
            ).match(fold_case(each.statement.item or each.text[:12]))
            if named and named[1] == wanted and len(content_words(each.text)) > 1:
                return each._replace(kind="decision", chance=LABELLED, strength=1.0)
        if len(reply.split()) < 4:
            return None
    best: JudgedStatement | None = None
    for each in before:
        core = fold_case(each.statement.core)
        if offer := compile_pattern(_OFFERS, 0).search(core):
            own = each.statement.core[offer.start(1) : offer.end(1)].rstrip("? ")
            kind = "todo" if compile_pattern(_LATER, 0).search(core) else "decision"
            # What is offered last is what the yes is said to.
            best = each._replace(
                kind=kind, chance=1.0, statement=each.statement._replace(text=own, core=own)
            )
        elif (
            compile_pattern(_PROPOSES, 0).search(core)
            and not core.endswith("?")
            and (best is None or each.chance >= best.chance)
        ):
            best = each._replace(kind="decision")
    return (
        best._replace(chance=min(max(best.chance, LABELLED), 0.9), strength=1.0) if best else None
    )


def _choose(found: Sequence[JudgedStatement], limit: int) -> list[JudgedStatement]:
    """The most valuable within the limit, no two of which say the same."""
    kept: list[JudgedStatement] = []
    per_turn: dict[int, int] = {}
    for each in sorted(
        found, key=lambda each: (not each.settled, -each.score, each.turn, each.statement.position)
    ):
        if not each.settled and (len(kept) >= limit or per_turn.get(each.turn, 0) >= PER_TURN):
            continue
        if not any(_repeats(each, other) for other in kept):
            kept.append(each)
            per_turn[each.turn] = per_turn.get(each.turn, 0) + 1
    return sorted(kept, key=lambda each: (each.turn, each.statement.position))


def _repeats(one: JudgedStatement, other: JudgedStatement) -> bool:
    if one.turn == other.turn and (
        one.statement.core in other.text or other.statement.core in one.text
    ):
        return True
    shared, fewest, most = _compare_words(one.text, other.text)
    if _took_up(one, other) or _took_up(other, one):
        return 2 * shared >= fewest
    if not _is_most(shared, fewest):
        return False
    # An answer takes up the words of its question. And few words of difference can be the whole difference: one port, one "not".
    if "question" in (one.kind, other.kind) or {one.kind, other.kind} == {"problem", "solution"}:
        return shared >= 0.8 * most
    return shared >= 0.8 * fewest if one.kind != other.kind else not contrasts(one.text, other.text)


def _took_up(decided: JudgedStatement, proposed: JudgedStatement) -> bool:
    """Whether a decision of the user comes right after a proposal: what they have in common was said twice."""
    return (
        decided.settled
        and decided.user
        and not proposed.user
        and 0 < decided.turn - proposed.turn <= 2
        and _is_proposal(proposed)
    )


def _link_answers(chosen: Sequence[JudgedStatement]) -> list[Idea]:
    result = []
    settled: set[int] = set()
    for at, each in enumerate(chosen):
        answers = _find_question(chosen, at, settled)
        if answers is not None:
            settled.add(answers)
        confidence = round(each.chance * (0.5 + 0.5 * each.strength), 2)
        named, firm = entities(each.text), each.strength >= FIRM
        result.append(
            Idea(
                each.kind,
                each.text,
                each.turn,
                firm,
                confidence,
                named,
                answers,
                each.accepted,
                each.statement.line,
                each.pasted,
            )
        )
    return result


def _find_question(chosen: Sequence[JudgedStatement], at: int, settled: set[int]) -> int | None:
    """The open question or problem before an idea that it most likely settles."""
    each = chosen[at]
    best, most = None, RELATED
    for number in range(at - 1, -1, -1):
        asked = chosen[number]
        apart = each.turn - asked.turn
        if apart > NEAR or number in settled:
            continue
        if asked.kind == "problem" and each.kind == "solution":
            near = 0.15 if apart <= 4 else 0.0
        elif asked.kind == "question" and each.kind in ANSWERS and asked.user != each.user:
            near = 0.2 if apart <= 2 else 0.0
        else:
            continue
        alike = _likeness(each.text, asked.text) + near
        if alike > most:
            best, most = number, alike
    return best


def _likeness(one: str, other: str) -> float:
    shared, fewest, _ = _compare_words(one, other)
    return shared / max(1, fewest)
