"""The turns of a conversation → its topics and their sub-topics.

A topic begins with something that the user said, so a conversation is read in exchanges: a turn of the user and the answers to
it. Before each exchange the evidence for a new topic is added up: how few words and how little meaning it shares with the
exchange before, measured by what is usual in this conversation; the time that passed; other files, branch or directory; and
the user's own words, which can announce a topic ("next task:", "back to …"). Weaker evidence makes a sub-topic where the topic
is long enough; what comes before a topic's first sub-topic belongs to the topic itself.

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
from datetime import datetime
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from bethink.language.openers import OPENING_WORDS
from bethink.language.pattern import compile_pattern, fold_case
from bethink.language.requests import NEW_WORK
from bethink.language.topics import ANNOUNCES_TOPIC, OPENS_RETURNING, RETURNS_TO_TOPIC
from bethink.language.words import STOP_WORDS
from bethink.store.words import space_out

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

# Evidence for a boundary, in log-odds. Rounded from logistic regressions on either half of the sessions; bias, thresholds and
# sizes chosen on the first half (bench/topics.py, 2026-11-15).
BOUNDARY_BIAS = -1.2
WORDS_WEIGHT, MEANING_WEIGHT = (
    -1.2,
    -0.4,
)  # for each standard deviation of nearness to the exchange before
PAUSE_WEIGHT, LONG_PAUSE_WEIGHT = 0.6, 0.9  # the second comes on top of the first
OTHER_FOLDERS_WEIGHT = 0.7
MOVED_WEIGHT = 0.5  # another branch or working directory
ANNOUNCED_WEIGHT, OPENING_WEIGHT = 3.0, 1.2
TOPIC_BAR, SUB_TOPIC_BAR = 0.0, -0.6

PAUSE_SECONDS, LONG_PAUSE_SECONDS = 30 * 60, 4 * 3600
LEAST_EXCHANGES = 2  # exchanges of a topic, unless the next one is announced; by hand
# Exchanges of a topic before its first sub-topic, and of a sub-topic before the next. By hand.
SUB_AFTER, SUB_LEAST = 4, 3

# How near neighbouring exchanges are by words (the root of their cosine), as if so many had been seen before: count, mean, sum of squared
# distances from it. Of meaning nobody knows it before, because its scale is the model's. By hand.
USUAL_OVERLAP, UNKNOWN_LIKENESS = (20, 0.38, 0.392), (0, 0.0, 0.0)
# Exchanges before what is usual can be judged, and before that is sure. By hand.
FEW_EXCHANGES, MANY_EXCHANGES = 3, 6
ASKED_CHARACTERS, ANSWERED_CHARACTERS = 2000, 1200  # of a turn that are read
BAG_WORDS, COMMON_WORDS_KEPT = 120, 400  # words that are kept; a bound
FILES_KEPT = 40  # a bound
TELLING_WORDS = 2  # of a short turn after a pause that may begin a topic; by hand
# Different words of two exchanges from which few shared ones tell two topics apart (bench/LOG.md, 2026-11-18).
ENOUGH_WORDS = 14


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
    """The state of a conversation at the end of a page. It can be stored as JSON."""

    exchanges: int = 0  # of the conversation
    topic: int = 0  # exchanges of the open topic
    sub: int | None = None  # exchanges of the open sub-topic; None outside of one
    # Words of the last exchange, hashed: no text outlives its memory here.
    bag: Mapping[str, int] = {}
    common: Mapping[str, int] = {}  # in how many exchanges a word was, for those that come up most
    # Nearness of neighbouring exchanges, by words and by meaning.
    by_words: Sequence[float] = USUAL_OVERLAP
    by_meaning: Sequence[float] = UNKNOWN_LIKENESS
    direction: Sequence[float] = ()  # the vector of the last exchange
    at: float = 0.0  # the latest time so far, in seconds
    cwd: str | None = None
    branch: str | None = None
    files: Sequence[str] = ()  # of the open topic


def resume_state(kept: object) -> OpenTopic | None:
    """Return the state that was stored as JSON; None if another version stored it: then a topic begins."""
    if not isinstance(kept, Mapping) or set(kept) != set(OpenTopic._fields):
        return None
    return OpenTopic(**kept)


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
    """Return the topics of a page, each followed by its sub-topics, and the state for the next page.

    `vectors` holds one per turn; a turn without one is judged by its words alone.
    """
    state = before or OpenTopic()
    boundaries: list[tuple[int, int]] = []  # turn, depth
    starts = [at for at, turn in enumerate(turns) if turn.role == "user" or at == 0]
    for first, end in pairwise([*starts, len(turns)]):
        exchange = _read_exchange(turns[first:end], (vectors or [None] * end)[first:end])
        if turns[first].role == "user" or not state.exchanges:
            depth, state = _begin_exchange(state, exchange)
            boundaries += [(first, depth)] if depth is not None else []
        state = _extend_exchange(state, exchange)
    # The first turns of a page continue the open topic, unless a boundary is right before them.
    opening = boundaries[0][1] if boundaries and boundaries[0][0] == 0 else 2
    open_depths = 1 + (before.sub is not None) if turns and before and before.exchanges else 0
    begun = [(0, depth, True) for depth in range(min(opening, open_depths))]
    begun += [(turn, depth, False) for turn, depth in boundaries]
    return arrange(begun, len(turns)), state


def arrange(starts: Sequence[tuple[int, int, bool]], count: int) -> list[Topic]:
    """Build topics from where they begin: turn, depth, and True if it goes on from the page before."""
    topics = []
    outer = None
    for at, (first, depth, continues) in enumerate(starts):
        end = next((turn for turn, other, _ in starts[at + 1 :] if other <= depth), count)
        outer = outer if depth else at
        topics.append(Topic(first, end - 1, depth, outer if depth else None, continues))
    return topics


class Exchange(NamedTuple):
    """A whole exchange, or the part of one that a page brings."""

    turns: Sequence[TopicTurn]
    bag: Mapping[str, int]
    vector: Vector | None  # its question and its answers, each counting as much as the other
    files: tuple[str, ...]  # that its answers tell of


def _read_exchange(turns: Sequence[TopicTurn], vectors: Sequence[Vector | None]) -> Exchange:
    asking = int(turns[0].role == "user")
    read = [turn.text[:ANSWERED_CHARACTERS] for turn in turns[asking:]]
    read += [turn.text[:ASKED_CHARACTERS] for turn in turns[:asking]]
    files = dict.fromkeys(file for turn in turns[asking:] for file in turn.files)
    return Exchange(
        turns,
        _heaviest(Counter(word for text in read for word in words(text)), BAG_WORDS),
        _blend([*vectors[:asking], _blend(vectors[asking:])]),
        tuple(files),
    )


def words(text: str) -> list[str]:
    """Return the words that tell a topic, hashed. Scripts without spaces give pairs of characters."""
    found = compile_pattern(r"[^\W\d_]{2,40}").findall(space_out(text).lower())
    kept = (
        word[:-1] if len(word) > 4 and word[-1] == "s" and word[-2] != "s" else word
        for word in found
        if word not in STOP_WORDS and (len(word) > 2 or not word.isascii())
    )
    return [f"{crc32(word.encode('utf-8', 'replace')):x}" for word in kept]


def _heaviest(bag: Mapping[str, int], limit: int) -> dict[str, int]:
    """Return the most frequent words; of equal ones the later."""
    return dict(sorted(bag.items(), key=itemgetter(1))[-limit:])


def _blend(vectors: Iterable[Vector | None]) -> Vector | None:
    """Return the mean direction of vectors; None where there is none."""
    import numpy as np

    found = [vector / (np.linalg.norm(vector) or 1.0) for vector in vectors if vector is not None]
    return np.mean(found, axis=0) if found else None


# Evidence


def _begin_exchange(state: OpenTopic, exchange: Exchange) -> tuple[int | None, OpenTopic]:
    """Return the depth that an exchange begins (0 topic, 1 sub-topic, None), and the state before it."""
    overlap = math.sqrt(_overlap(exchange.bag, state.bag, state.common, state.exchanges + 1))
    likeness = _likeness(state, exchange.vector)
    depth = _choose_depth(state, exchange, overlap, likeness) if state.exchanges else 0
    same = depth != 0
    going_on = state.sub + 1 if same and state.sub is not None else None
    first = not state.exchanges
    return depth, state._replace(
        exchanges=state.exchanges + 1,
        topic=state.topic + 1 if same else 1,
        sub=1 if depth == 1 else going_on,
        bag={},
        by_words=_learn(state.by_words, None if first else overlap),
        by_meaning=_learn(state.by_meaning, likeness),
        direction=(),
        files=state.files if same else (),
    )


def _choose_depth(
    state: OpenTopic, exchange: Exchange, overlap: float, likeness: float | None
) -> int | None:
    """Weigh the evidence. An announcement or hours of silence begin a topic even after a short one."""
    turn = exchange.turns[0]
    cue, announced, barred = _read_cue(turn.text)
    # Measured from the latest time so far, so that a clock that jumped back makes no pause when it comes forward again.
    seconds = turn.at.timestamp() - state.at if turn.at and state.at else 0.0
    score = BOUNDARY_BIAS + cue + _weigh_places(state, exchange)
    words = len(exchange.bag) + len(state.bag)
    score += WORDS_WEIGHT * _deviation(state.by_words, overlap) * min(1.0, words / ENOUGH_WORDS)
    score += MEANING_WEIGHT * _deviation(state.by_meaning, likeness)
    score += PAUSE_WEIGHT * (seconds > PAUSE_SECONDS) + LONG_PAUSE_WEIGHT * (
        seconds > LONG_PAUSE_SECONDS
    )
    # After a pause even a few words may begin something else.
    if barred and (seconds <= PAUSE_SECONDS or _names_little(turn.text)):
        return None
    at_once = announced or seconds > LONG_PAUSE_SECONDS
    # In a talk of a few words each, a new subject without a pause is a part of the topic.
    plain = words >= ENOUGH_WORDS or announced or seconds > PAUSE_SECONDS
    if score >= TOPIC_BAR and plain and (at_once or state.topic >= LEAST_EXCHANGES):
        return 0
    long_enough = state.topic >= SUB_AFTER if state.sub is None else state.sub >= SUB_LEAST
    return 1 if score >= SUB_TOPIC_BAR and long_enough else None


def _extend_exchange(state: OpenTopic, part: Exchange) -> OpenTopic:
    """Add another part to the open exchange."""
    bag, common = Counter(state.bag), Counter(state.common)
    common.update(word for word in part.bag if word not in bag)
    bag.update(part.bag)
    last, vector = part.turns[-1], part.vector
    if vector is not None and len(vector) == len(state.direction):
        vector = _blend([vector, vector * 0 + state.direction])
    # Rounded always, so that it does not matter where a page ends.
    direction = state.direction if vector is None else vector.round(4).tolist()
    return state._replace(
        bag=_heaviest(bag, BAG_WORDS),
        common=_heaviest(common, COMMON_WORDS_KEPT),
        direction=direction,
        at=max([state.at, *(turn.at.timestamp() for turn in part.turns if turn.at)]),
        cwd=last.cwd or state.cwd,
        branch=last.branch or state.branch,
        files=[*state.files, *part.files][-FILES_KEPT:],
    )


def _overlap(
    one: Mapping[str, int], other: Mapping[str, int], common: Mapping[str, int], exchanges: int
) -> float:
    """Return the cosine of two bags of words. Words of every exchange weigh little."""
    of = max(exchanges, 8) / 2
    # `one` is not counted yet.
    seen = {word: common.get(word, 0) + (word in one) or 1 for word in (*one, *other)}
    weights = {word: math.log1p(of / count) ** 2 for word, count in seen.items()}
    shared = sum(
        math.sqrt(one[word] * other[word]) * weights[word] for word in one if word in other
    )
    sizes = [sum(count * weights[word] for word, count in bag.items()) for bag in (one, other)]
    return min(shared / math.sqrt(sizes[0] * sizes[1]), 1.0) if all(sizes) else 0.0


def _likeness(state: OpenTopic, vector: Vector | None) -> float | None:
    """Return the cosine with the exchange before; None without two vectors of one model."""
    if vector is None or len(vector) != len(state.direction):
        return None
    lengths = (vector @ vector) * sum(value * value for value in state.direction)
    return float(vector @ state.direction / math.sqrt(lengths or 1.0))


def _deviation(seen: Sequence[float], value: float | None) -> float:
    """Return the distance from the usual value in standard deviations; smaller while little was seen."""
    count, mean, squares = seen
    if value is None or count < FEW_EXCHANGES:
        return 0.0
    far = (value - mean) / math.sqrt(squares / count + 1e-5)
    return max(min(far, 4.0), -4.0) * min(1.0, count / MANY_EXCHANGES)


def _learn(seen: Sequence[float], value: float | None) -> Sequence[float]:
    if value is None:
        return seen
    count, mean, squares = seen
    distance = value - mean
    mean += distance / (count + 1)
    return (count + 1, mean, squares + distance * (value - mean))


def _weigh_places(state: OpenTopic, exchange: Exchange) -> float:
    turn = exchange.turns[0]
    places = ((turn.cwd, state.cwd), (turn.branch, state.branch))
    moved = any(new and old and new != old for new, old in places)
    before, now = (
        {file.replace("\\", "/").rpartition("/")[0] for file in files}
        for files in (state.files, exchange.files)
    )
    apart = before and now and before.isdisjoint(now)
    return MOVED_WEIGHT * moved + OTHER_FOLDERS_WEIGHT * bool(apart)


# Requests of nothing but these words belong to the work that they finish.
_CHORES = frozenset(
    """commit commits push pr description short super message messages merge amend ammend rebase squash run rerun test tests lint linting
    change changes branch staged retry state current give get lets up open create meaningful clean fix format do make write continue go ahead
    resume try good fine works worked still fails fail failed failing same again""".split()
)


def _names_little(text: str) -> bool:
    """Return True for a turn that names no new subject, even after a pause: "ok, push it", "still fails"."""
    spoken = compile_pattern(r"[^\W\d_]{4,}").findall(fold_case(text[:400]))
    telling = {word for word in spoken if word not in _CHORES and word not in STOP_WORDS}
    return len(telling) < TELLING_WORDS


def _read_cue(text: str) -> tuple[float, bool, bool]:
    """Return the evidence in a user's first words, if they announce a topic, and if they cannot begin one.

    A short answer never begins a topic.
    """
    head = fold_case(text[:400]).strip()
    if ANNOUNCES_TOPIC.holds(head[:160]):
        return ANNOUNCED_WEIGHT, True, False
    lead = OPENING_WORDS.find(head)
    rest = head[lead.end() :] if lead else head
    returning = OPENS_RETURNING.holds(head) or RETURNS_TO_TOPIC.holds(rest[:80])
    spoken = compile_pattern(r"\w[\w'-]*").findall(space_out(rest))
    chore = len(text) < 160 and all(word in _CHORES or word in STOP_WORDS for word in spoken)
    opening = returning or NEW_WORK.holds(rest)
    return OPENING_WEIGHT * opening, False, not returning and (len(spoken) <= 3 or chore)
