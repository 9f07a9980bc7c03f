"""The turns of a conversation → its topics and their sub-topics.

A topic begins with something that the user said, so a conversation is read in exchanges: a turn of the user and the answers to
it. Before each exchange the evidence for a new topic is added up: how few words and how little meaning it shares with the
exchange before, measured by what is usual in this conversation; the time that passed; other files, branch or directory; and
the user's own words, which can announce a topic ("next task:", "back to …") or go on with one ("yes", "why?", "it still
fails"). Weaker evidence makes a sub-topic where the topic is long enough; what comes before a topic's first sub-topic belongs
to the topic itself.

A transcript is read in pages, and a boundary is decided once, when its exchange comes: nothing that was returned changes
later. (Waiting for the next exchange was measured and gained nothing on real conversations: bench/LOG.md.) So pages that end
where exchanges end give exactly the topics of the whole. Of an exchange that a page cuts in two, the first part decides; that
boundary may come out differently, and rarely a later one that hung in the balance.

This module knows no store, no model, no clock and no host, and not what a topic is about: `titles` finds names.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from bethink.ingest.lexicon import compile_pattern, fold_case
from bethink.store.words import space_out
from bethink.text import STOP_WORDS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

# Evidence for a boundary, in log-odds. Rounded from logistic regressions on either half of the sessions; bias, thresholds and
# sizes chosen on the first half (bench/topics.py, 2026-11-15).
BIAS = -1.2
WORDS, MEANING = -1.2, -0.4  # for each standard deviation of nearness to the exchange before
PAUSE, LONG_PAUSE = 0.6, 0.9  # the second comes on top of the first
SAME_FILES, OTHER_FOLDERS = -0.6, 0.7
MOVED = 0.5  # another branch or working directory
ANNOUNCED, OPENING, GOING_ON = 3.0, 1.2, -0.6
TOPIC, SUB_TOPIC = 0.0, -0.6

PAUSE_SECONDS, LONG_PAUSE_SECONDS = 30 * 60, 4 * 3600
LEAST = 2  # exchanges of a topic, unless the next one is announced
SUB_AFTER, SUB_LEAST = (
    4,
    3,
)  # exchanges of a topic before its first sub-topic, and of a sub-topic before the next

# How near neighbouring exchanges are by words (the root of their cosine), until a conversation has its own numbers.
USUAL = (20, 0.38, 0.14)  # weight, mean, deviation
LITTLE = 15  # words: what so few say about nearness counts half
FEW = 3  # exchanges before nearness by meaning can be judged: its scale is the model's
ASKED_CHARACTERS, ANSWERED_CHARACTERS = 2000, 1200  # of a turn that are read
BAG, COMMON = 120, 400  # words that are kept
FILES = 40


class TopicTurn(NamedTuple):
    """One turn."""

    role: str
    text: str
    at: datetime | None
    line: int
    cwd: str | None = None
    branch: str | None = None
    files: tuple[str, ...] = ()


class OpenTopic(NamedTuple):
    """Where a conversation stands at the end of a page, in numbers, strings, lists and dicts: it can be kept as JSON."""

    exchanges: int = 0  # of the conversation
    topic: int = 0  # exchanges of the open topic
    sub: int | None = None  # exchanges of the open sub-topic; None outside of one
    # Words of the last exchange, hashed: nothing that was said outlives its memory here.
    bag: Mapping[str, int] = {}
    common: Mapping[str, int] = {}  # in how many exchanges a word was, for those that come up most
    # Of neighbouring exchanges, by words and by meaning: count, mean, sum of squared distances from it.
    nearness: Sequence[float] = (0, 0.0, 0.0)
    likeness: Sequence[float] = (0, 0.0, 0.0)
    vector: str = ""  # of the last exchange
    at: float = 0.0  # the latest time so far, in seconds
    cwd: str | None = None
    branch: str | None = None
    files: Sequence[str] = ()  # of the open topic


def resume_state(kept: Any) -> OpenTopic | None:
    """What was kept as JSON; None if another version kept it. Then the next page begins a topic."""
    known = isinstance(kept, Mapping) and set(kept) == set(OpenTopic._fields)
    return OpenTopic(**kept) if known else None


class Topic(NamedTuple):
    first: int  # of the given turns; both inclusive
    last: int
    depth: int  # 0 topic, 1 sub-topic
    parent: int | None  # its topic's place in the returned list
    continues: bool  # goes on with the topic, or sub-topic, that was open before this page


def segment(
    turns: Sequence[TopicTurn],
    vectors: Sequence[Vector | None] | None = None,
    before: OpenTopic | None = None,
) -> tuple[list[Topic], OpenTopic]:
    """The topics of a page, each followed by its sub-topics, and what the next page has to be given.

    `vectors` holds one per turn, of any length; a turn without one is judged by its words alone.
    """
    state = before or OpenTopic()
    boundaries: list[tuple[int, int]] = []  # turn, depth
    starts = [at for at, turn in enumerate(turns) if turn.role == "user" or at == 0]
    for first, end in pairwise([*starts, len(turns)]):
        heard = _read_exchange(turns[first:end], vectors[first:end] if vectors is not None else ())
        if turns[first].role != "user" and state.exchanges:
            state = _extend_exchange(state, heard)
            continue
        evidence = _evidence(state, heard)
        depth = _depth(state, evidence)
        if depth is not None:
            boundaries.append((first, depth))
        state = _begin_exchange(state, heard, evidence, depth)
    return _tree(boundaries, len(turns), before), state


def _tree(
    boundaries: Sequence[tuple[int, int]], count: int, before: OpenTopic | None
) -> list[Topic]:
    """Topics from where they begin. The first of a page go on with what was open, unless a boundary stands right before them."""
    topics: list[Topic] = []
    if count and before is not None and before.exchanges:
        opening = boundaries[0][1] if boundaries and boundaries[0][0] == 0 else None
        if opening != 0:
            topics.append(Topic(0, count - 1, 0, None, True))
        if opening is None and before.sub is not None:
            topics.append(Topic(0, count - 1, 1, 0, True))
    latest = {topic.depth: at for at, topic in enumerate(topics)}
    for turn, depth in boundaries:
        for deeper in range(depth, 2):
            if (ended := latest.pop(deeper, None)) is not None:
                topics[ended] = topics[ended]._replace(last=turn - 1)
        latest[depth] = len(topics)
        topics.append(Topic(turn, count - 1, depth, latest[0] if depth else None, False))
    return topics


class Exchange(NamedTuple):
    """A whole exchange, or the part of one that a page brings."""

    turns: Sequence[TopicTurn]
    bag: Mapping[str, int]
    vector: Vector | None  # its question and its answers, each counting as much as the other
    files: tuple[str, ...]  # that its answers tell of
    # That its question comes with: those were used in the exchange before.
    earlier_files: tuple[str, ...]


def _read_exchange(turns: Sequence[TopicTurn], vectors: Sequence[Vector | None]) -> Exchange:
    bag: Counter[str] = Counter()
    for turn in turns:
        read = ASKED_CHARACTERS if turn.role == "user" else ANSWERED_CHARACTERS
        bag.update(words(turn.text[:read]))
    asking = int(turns[0].role == "user")
    files = dict.fromkeys(file for turn in turns[asking:] for file in turn.files)
    said = [_unit(_sum(part)) for part in (vectors[:asking], vectors[asking:])]
    earlier = turns[0].files if asking else ()
    return Exchange(turns, _heaviest(bag, BAG), _sum(said), tuple(files), earlier)


def words(text: str) -> list[str]:
    """The words that tell what a text is about, hashed. Scripts without spaces give pairs of characters."""
    found = compile_pattern(r"[^\W\d_]{2,40}").findall(space_out(text).lower())
    kept = (
        word[:-1] if len(word) > 4 and word[-1] == "s" and word[-2] != "s" else word
        for word in found
        if word not in STOP_WORDS and (len(word) > 2 or not word.isascii())
    )
    return [f"{crc32(word.encode('utf-8', 'replace')):x}" for word in kept]


def _heaviest(bag: Mapping[str, int], limit: int) -> dict[str, int]:
    """The words that came up most; of equal ones the later."""
    return dict(sorted(bag.items(), key=itemgetter(1))[-limit:] if len(bag) > limit else bag)


class Evidence(NamedTuple):
    score: float
    announced: bool = True  # the user said that something else comes now, or came back after hours
    barred: bool = False  # the user's words cannot begin a topic
    nearness: float | None = None
    likeness: float | None = None


def _evidence(state: OpenTopic, heard: Exchange) -> Evidence:
    if not state.exchanges:
        return Evidence(math.inf)
    turn = heard.turns[0]
    cue = _cue(turn.text)
    nearness = math.sqrt(_overlap(heard.bag, state.bag, state.common, state.exchanges + 1))
    likeness = _cosine(heard.vector, _decode_vector(state.vector))
    said = len(heard.bag) / (len(heard.bag) + LITTLE)
    score = BIAS + cue.weight + WORDS * said * _deviation(state.nearness, nearness, USUAL)
    if likeness is not None:
        score += MEANING * _deviation(state.likeness, likeness)
    pause = _pause(state, turn)
    score += pause + _places(state, heard)
    announced = cue.announced or pause >= LONG_PAUSE
    return Evidence(score, announced, cue.barred, nearness, likeness)


def _depth(state: OpenTopic, evidence: Evidence) -> int | None:
    """What begins with an exchange: a topic (0), a sub-topic (1) or nothing."""
    if evidence.barred:
        return None
    if evidence.score >= TOPIC and (evidence.announced or state.topic >= LEAST):
        return 0
    long_enough = state.topic >= SUB_AFTER if state.sub is None else state.sub >= SUB_LEAST
    return 1 if evidence.score >= SUB_TOPIC and long_enough else None


def _begin_exchange(
    state: OpenTopic, heard: Exchange, evidence: Evidence, depth: int | None
) -> OpenTopic:
    same = depth != 0
    state = state._replace(
        exchanges=state.exchanges + 1,
        topic=state.topic + 1 if same else 1,
        sub=1 if depth == 1 else state.sub + 1 if same and state.sub is not None else None,
        bag={},
        nearness=_learn(state.nearness, evidence.nearness),
        likeness=_learn(state.likeness, evidence.likeness),
        vector="",
        files=[*state.files, *heard.earlier_files] if same else (),
    )
    return _extend_exchange(state, heard)


def _extend_exchange(state: OpenTopic, heard: Exchange) -> OpenTopic:
    """The open exchange with another part of it."""
    bag, common = Counter(state.bag), Counter(state.common)
    common.update(word for word in heard.bag if word not in bag)
    bag.update(heard.bag)
    last = heard.turns[-1]
    return state._replace(
        bag=_heaviest(bag, BAG),
        common=_heaviest(common, COMMON),
        vector=_encode_vector(_sum((_decode_vector(state.vector), heard.vector))),
        at=max([state.at, *(_seconds(turn.at) for turn in heard.turns)]),
        cwd=last.cwd or state.cwd,
        branch=last.branch or state.branch,
        files=[*state.files, *heard.files][-FILES:],
    )


# Nearness


def _overlap(
    one: Mapping[str, int], other: Mapping[str, int], common: Mapping[str, int], exchanges: int
) -> float:
    """The cosine of two bags of words. What comes up in every exchange of the conversation weighs little."""
    of = max(exchanges, 8) / 2
    # `one` is not counted yet.
    seen = {word: common.get(word, 0) + (word in one) or 1 for word in (*one, *other)}
    weights = {word: math.log1p(of / count) ** 2 for word, count in seen.items()}
    shared = sum(
        math.sqrt(one[word] * other[word]) * weights[word] for word in one if word in other
    )
    sizes = [sum(count * weights[word] for word, count in bag.items()) for bag in (one, other)]
    return min(shared / math.sqrt(sizes[0] * sizes[1]), 1.0) if all(sizes) else 0.0


def _deviation(
    spread: Sequence[float], value: float, usual: tuple[int, float, float] | None = None
) -> float:
    """How far a value is from what was seen, in standard deviations; less sure while little was seen."""
    count, mean, squares = spread
    if usual is not None:
        weight, expected, deviation = usual
        middle = (count * mean + weight * expected) / (count + weight)
        squares += count * (mean - middle) ** 2 + weight * (deviation**2 + (expected - middle) ** 2)
        return (value - middle) / math.sqrt(squares / (count + weight) + 1e-9)
    if count < FEW:
        return 0.0
    far = (value - mean) / math.sqrt(squares / count + 1e-5)
    return max(min(far, 4.0), -4.0) * count / (count + FEW)


def _learn(spread: Sequence[float], value: float | None) -> Sequence[float]:
    if value is None:
        return spread
    count, mean, squares = spread
    distance = value - mean
    mean += distance / (count + 1)
    return (count + 1, mean, squares + distance * (value - mean))


def _sum(vectors: Iterable[Vector | None]) -> Vector | None:
    total: Vector | None = None
    for vector in vectors:
        if vector is not None and (total is None or total.shape == vector.shape):
            total = vector if total is None else total + vector
    return total


def _unit(vector: Vector | None) -> Vector | None:
    length = 0.0 if vector is None else float((vector * vector).sum()) ** 0.5
    return vector / length if vector is not None and 0 < length < math.inf else None


def _cosine(one: Vector | None, other: Vector | None) -> float | None:
    one, other = _unit(one), _unit(other)
    if one is None or other is None or one.shape != other.shape:
        return None
    return float((one * other).sum())


def _encode_vector(vector: Vector | None) -> str:
    """A vector as a string for the state, in 16 bits a dimension; always, so that it does not matter where a page ends."""
    from base64 import b64encode

    own = _unit(vector)
    return "" if own is None else b64encode(own.astype("<f2").tobytes()).decode()


def _decode_vector(text: str) -> Vector | None:
    if not text:
        return None
    from base64 import b64decode

    import numpy as np

    return np.frombuffer(b64decode(text), dtype="<f2").astype(np.float32)


# Time and place


def _seconds(at: datetime | None) -> float:
    if at is None:
        return 0.0
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _pause(state: OpenTopic, turn: TopicTurn) -> float:
    """Measured from the latest time so far, so that a clock that jumped back makes no pause when it comes forward again."""
    seconds = _seconds(turn.at) - state.at if turn.at and state.at else 0.0
    return PAUSE * (seconds > PAUSE_SECONDS) + LONG_PAUSE * (seconds > LONG_PAUSE_SECONDS)


def _places(state: OpenTopic, heard: Exchange) -> float:
    turn = heard.turns[0]
    places = ((turn.cwd, state.cwd), (turn.branch, state.branch))
    moved = MOVED * any(new and old and new != old for new, old in places)
    known, now = {*state.files, *heard.earlier_files}, set(heard.files)
    if not known or not now:
        return moved
    if known & now:
        return moved + SAME_FILES
    apart = {_folder(file) for file in known}.isdisjoint(_folder(file) for file in now)
    return moved + OTHER_FOLDERS * apart


def _folder(file: str) -> str:
    return file.replace("\\", "/").rpartition("/")[0]


# What the user says about it: in English, and the basics of German, French and Spanish.

_LEAD = (
    r"(?:(?:ok|okay|so|well|h+m+|ah+|oh+|alright|right|great|thanks|thank you|nice|cool|perfect|good|looks good|now|please|sorry"
    r"|hey|hi|hello|gut|danke|nun|jetzt|bitte|bon|alors|merci|bien|maintenant|bueno|vale|gracias|ahora)\b[\s,.!:;…–—-]{0,6}){0,4}"
)
_CLAUSE = (
    r"(?:\A|[.!?,;:\n–—]\s{0,4})(?:(?:and|then|so|ok|okay|now|but|let'?s|please|can we|could we|we can|we could|we should|i want to"
    r"|i'd like to|to|time) ){0,4}"
)
# At the beginning of a clause: something else comes now.
_ANNOUNCED = (
    r"(?:mov(?:e|ing) on\b|(?:chang|switch)(?:e|ing)? (?:of |the |to a |to another )?(?:topics?|subjects?|gears)\b"
    r"|(?:an? |the |on an? |my |quick |completely |totally |something ){0,3}(?:different|unrelated|another|separate|new|next)"
    r" (?:topic|subject|task|question|thing|issue|problem|feature|item|bug|ticket|story|note)\b(?! (?:is|was|that|with|in|about|for)\b)"
    r"|unrelated(?:ly)?\b[ ,:]|next up\b|something (?:else|completely different)\b|by the way\b|btw\b|change (?:in|of) plans?\b"
    r"|themenwechsel\b|übrigens\b|kommen wir zu[mr]?\b"
    r"|(?:die |das |der )?(?:nächste[rs]?|andere[rs]?|neue[rs]?) (?:thema|aufgabe|frage|punkt|sache)\b"
    r"|passons à\b|changeons de sujet\b|au fait\b|rien à voir\b"
    r"|(?:une? |la |le )?(?:autre|prochaine?|nouveau|nouvelle) (?:question|chose|sujet|tâche|point)\b"
    r"|pasemos a\b|camb(?:iemos|io) de tema\b|por cierto\b"
    r"|(?:una? |la |el )?(?:otr[ao]|siguiente|nuev[ao]) (?:cosa|pregunta|tarea|tema|asunto|punto)\b)"
)
# The same said less plainly: it may also be a step of what is going on.
_RETURNING = (
    r"(?:(?:(?:go|going|get|getting|come|coming|jump) )?back to\b|switch(?:ing)? (?:over )?to\b|what(?:'s| is) next\b|what else\b|one more\b"
    r"|next\b|now let'?s\b|zurück zu[mr]?\b|weiter mit\b|was kommt (?:jetzt|als nächstes)\b|als nächstes\b"
    r"|revenons (?:à|au)\b|retour (?:à|au)\b|ensuite\b|volvamos a\b|volviendo a\b|luego\b|a continuación\b)"
)
_OPENING = (
    r"(?:(?:can|could|would) you (?:please )?(?:look|take a look|review|check|help|investigate|explain|add|update|change|fix|open|create"
    r"|write|make|build)\b|i(?:'d| would) like\b|i (?:want|need) to\b|we (?:need|want|have|got)\b|implement the\b|there(?:'s| is|s)\b"
    r"|let'?s (?:work|start|look|tackle|begin|build|think)\b|kannst du\b|ich (?:möchte|will|brauche)\b|wir (?:müssen|brauchen)\b"
    r"|peux-tu\b|pouvez-vous\b|je (?:veux|voudrais)\b|il faut\b|puedes\b|quiero\b|necesito\b|hay que\b)"
)
_GOING_ON = (
    r"(?:yes|yeah|yep|yup|no|nope|sure|and|but|then|that|that's|it|it's|its|this|these|those|they|them|still|same|again|why|continue|resume"
    r"|retry|keep|go (?:on|ahead)|do (?:it|that|this|both|all|option|\d)|try|what about|how about|i mean|i meant|or|because|not|only|just"
    r"|also|does (?:it|that|this)|is (?:it|that|this)|would (?:it|that|this)|should (?:it|that|this|we)|let'?s (?:do|go|try|keep|use|call)"
    r"|which|option|ja|nein|doch|und|aber|das|es|auch|warum|weiter|mach|nochmal|immer noch|oder|oui|non|et|mais|ça|cela|c'est|aussi|encore"
    r"|toujours|pourquoi|ou|sí|si|y|pero|eso|esto|también|todavía|aún|sigue|continúa|por qué|o)\b(?!-)"
)
# Requests of nothing but these words belong to the work that they finish.
_CHORES = frozenset(
    """commit commits push pr description short super message messages merge amend ammend rebase squash run rerun test tests lint linting
    change changes branch staged retry state current give get lets up open create meaningful clean fix format do make write continue go ahead
    resume try good fine works worked""".split()
)


class TurnCue(NamedTuple):
    weight: float
    announced: bool
    barred: bool


def _cue(text: str) -> TurnCue:
    """What the beginning of a user's turn says about going on with the topic. A short answer never begins another one."""
    head = fold_case(text[:400]).strip()
    announced = bool(compile_pattern(_CLAUSE + _ANNOUNCED, 0).search(head[:160]))
    lead = compile_pattern(_LEAD, 0).match(head)
    rest = head[lead.end() :] if lead else head
    return_to = compile_pattern(_CLAUSE + _RETURNING, 0)
    returning = bool(return_to.match(head) or return_to.search(rest[:80]))
    told = compile_pattern(r"\w[\w'-]*").findall(space_out(rest))
    chore = len(text) < 160 and all(word in _CHORES or word in STOP_WORDS for word in told)
    barred = not announced and not returning and (len(told) <= 3 or chore)
    if announced:
        return TurnCue(ANNOUNCED, announced, barred)
    opening = OPENING * bool(returning or compile_pattern(_OPENING, 0).match(rest))
    going_on = GOING_ON * bool(compile_pattern(_GOING_ON, 0).match(rest))
    return TurnCue(opening + going_on, announced, barred)
