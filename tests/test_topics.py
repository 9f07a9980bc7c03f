"""Where topics begin, through `segment`: stories whose boundaries are evident, what may never begin one, and pages of any size."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest
from case_tables import cases
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.embed.hashing import HashingEmbedder
from bethink.ingest.topics import OpenTopic, Topic, TopicTurn, resume_state, segment

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)

PAYMENTS = cases("topics-payments")
THEME = cases("topics-theme")
IMPORT = cases("topics-import")
STORY = [*PAYMENTS, *THEME, *IMPORT]
BEGINS = [0, 2 * len(PAYMENTS), 2 * (len(PAYMENTS) + len(THEME))]


def talk(exchanges, minutes=3, start=START, **place):
    """Turns of a conversation that goes on at an even pace."""
    said = []
    for number, (asked, answered) in enumerate(exchanges):
        at = None if start is None else start + timedelta(minutes=minutes * number)
        said.append(TopicTurn("user", asked, at, 10 * number + 1, **place))
        said.append(
            TopicTurn(
                "assistant", answered, at and at + timedelta(minutes=1), 10 * number + 5, **place
            )
        )
    return said


def vectors_of(turns):
    return [
        matrix.mean(axis=0) for matrix in HashingEmbedder().documents([turn.text for turn in turns])
    ]


def begins(topics, depth=0):
    return [topic.first for topic in topics if topic.depth <= depth and not topic.continues]


def read_in_pages(turns, vectors, cuts):
    """The topics of a conversation that comes in pages, as they look when all pages are put together."""
    whole: list[Topic] = []
    latest: dict[int, int] = {}
    state = None
    edges = [0, *sorted(cuts), len(turns)]
    for start, end in pairwise(edges):
        topics, after = segment(
            turns[start:end], None if vectors is None else vectors[start:end], state
        )
        places = []
        for topic in topics:
            if topic.continues:
                place = latest[topic.depth]
                whole[place] = whole[place]._replace(last=topic.last + start)
            else:
                place = len(whole)
                parent = None if topic.parent is None else places[topic.parent]
                whole.append(
                    Topic(topic.first + start, topic.last + start, topic.depth, parent, False)
                )
            latest[topic.depth] = place
            places.append(place)
        state = resume_state(json.loads(json.dumps(after._asdict())))
    return whole, state


@pytest.mark.parametrize("with_vectors", [False, True])
@pytest.mark.parametrize("start", [START, None])
def test_a_story_of_three_tasks_has_three_topics(with_vectors, start):
    turns = talk(STORY, start=start)
    topics, state = segment(turns, vectors_of(turns) if with_vectors else None)
    assert begins(topics) == BEGINS
    assert [topic.last for topic in topics if topic.depth == 0] == [
        *(first - 1 for first in BEGINS[1:]),
        len(turns) - 1,
    ]
    assert (state.exchanges, state.topic) == (len(STORY), len(IMPORT))


@pytest.mark.parametrize(
    "reply",
    cases("topics-a-short-reply-never"),
)
def test_a_short_reply_never_begins_a_topic(reply):
    elsewhere = "Kubernetes ingress certificates are renewed by the operator every sixty days through an ACME challenge."
    turns = talk([*PAYMENTS, (reply, elsewhere)])
    assert begins(segment(turns)[0], depth=1) == [0]
    hours_later = turns[-2]._replace(at=START + timedelta(days=2))
    assert begins(segment([*turns[:-2], hours_later, turns[-1]])[0]) == [0]


@pytest.mark.parametrize(
    "announced",
    cases("topics-an-announced-change-begins-a"),
)
def test_an_announced_change_begins_a_topic_even_where_words_are_shared(announced):
    answer = "The payment worker, its retry with backoff and the broker stay as they are; the charge is logged."
    assert begins(segment(talk([*PAYMENTS, (announced, answer)]))[0]) == [0, 8]


# Neither near to the payment worker nor far from it: here the other signals decide.
DOUBTFUL = (
    "the messages of the shop broker need a dashboard for the people on call",
    "A dashboard now shows the messages of the broker, the queue and their age to the people on call.",
)


@pytest.mark.parametrize(
    ("pause", "topics"),
    [(timedelta(minutes=20), 1), (timedelta(hours=9), 2), (timedelta(days=3), 2)],
)
def test_hours_without_a_word_turn_the_scale(pause, topics):
    turns = talk([*PAYMENTS, DOUBTFUL])
    turns[-2:] = [turn._replace(at=turns[-3].at + pause) for turn in turns[-2:]]
    assert len(begins(segment(turns)[0])) == topics


@pytest.mark.parametrize(
    ("files", "branch", "topics"),
    cases("topics-other-folders-turn-the-scale"),
)
def test_other_folders_turn_the_scale_and_a_known_file_turns_it_back(files, branch, topics):
    turns = talk([*PAYMENTS, DOUBTFUL], branch="main", cwd="/shop")
    turns = [
        turn._replace(files=("src/worker.py",)) if turn.role == "assistant" else turn
        for turn in turns
    ]
    turns[-2:] = [turns[-2]._replace(branch=branch), turns[-1]._replace(files=files, branch=branch)]
    assert len(begins(segment(turns)[0])) == topics


def directions(spread, last):
    """A vector per turn of PAYMENTS and one more exchange: about one direction, so far from it as told, and then `last`."""
    rng = np.random.default_rng(3)
    same = [
        np.array([1, 0, *rng.normal(0, spread, 30)], np.float32) for _ in range(2 * len(PAYMENTS))
    ]
    return [*same, *[np.array([*last, *[0] * 30], np.float32)] * 2]


@pytest.mark.parametrize(
    ("spread", "last", "topics"),
    [(0.01, (0, 1), 2), (0.01, (1, 0), 1), (1.0, (0, 1), 1)],
    ids=["far from all", "near to them", "no farther than usual"],
)
def test_meaning_turns_the_scale_where_it_is_unusually_far(spread, last, topics):
    turns = talk([*PAYMENTS, DOUBTFUL])
    assert len(begins(segment(turns, directions(spread, last))[0])) == topics
    assert len(begins(read_in_pages(turns, directions(spread, last), [4, 8])[0])) == topics


def test_a_long_topic_gets_sub_topics_and_keeps_its_beginning_to_itself():
    image = cases("topics-a-long-topic-gets-sub")
    topics, state = segment(
        talk(
            [
                *PAYMENTS,
                ("how long is the backoff", "The backoff of a retry doubles from one second on."),
                *image,
            ]
        )
    )
    assert [(topic.first, topic.depth, topic.parent) for topic in topics] == [
        (0, 0, None),
        (10, 1, 0),
    ]
    assert topics[1].last == topics[0].last == 15
    assert (state.topic, state.sub) == (8, 3)


@pytest.mark.parametrize(
    ("turns", "expected"),
    cases("topics-very-little-is-one-topic", globals()),
)
def test_very_little_is_one_topic(turns, expected):
    topics, state = segment(turns)
    assert [(topic.first, topic.last) for topic in topics] == expected
    assert segment([], None, state) == ([], state)


def test_vectors_that_are_missing_empty_or_of_another_model_are_passed_over():
    turns = talk(STORY)
    few = [None, np.zeros(8, np.float32), None, None]
    odd, state = segment(turns, [few[at % 4] for at in range(len(turns))])
    assert begins(odd) == begins(segment(turns)[0])
    assert segment(talk(PAYMENTS), [np.ones(16, np.float32)] * 8, state)[0]


def test_what_another_version_kept_is_not_taken_up():
    _, state = segment(talk(STORY))
    kept = json.loads(json.dumps(state._asdict()))
    assert resume_state(kept) == OpenTopic(**kept)
    assert resume_state({**kept, "more": 1}) is None
    assert resume_state({}) is None
    assert resume_state(None) is None


def test_the_state_holds_no_word_that_was_said():
    turns = talk(STORY)
    for state in (
        segment(turns)[1],
        segment(
            [TopicTurn("assistant", "The zebra protocol is secret.", None, 99)],
            None,
            segment(turns)[1],
        )[1],
    ):
        kept = json.dumps(state._asdict())
        assert not [
            word
            for word in ("importer", "spreadsheet", "encoding", "zebra", "secret")
            if word in kept
        ]


LONG = talk([*STORY, *PAYMENTS[1:], *IMPORT, *THEME, *PAYMENTS, *THEME[1:], *IMPORT])
LONG_VECTORS = vectors_of(LONG)


@given(st.sets(st.integers(1, len(LONG) // 2 - 1)), st.booleans())
@settings(max_examples=40, deadline=None)
def test_pages_of_whole_exchanges_give_the_topics_of_the_whole(cuts, with_vectors):
    vectors = LONG_VECTORS if with_vectors else None
    whole, state = segment(LONG, vectors)
    paged, after = read_in_pages(LONG, vectors, [2 * cut for cut in cuts])
    assert paged == whole
    assert json.loads(json.dumps(after._asdict())) == json.loads(json.dumps(state._asdict()))


@given(st.sets(st.integers(1, len(LONG) - 1), max_size=12))
@settings(max_examples=60, deadline=None)
def test_a_page_that_cuts_an_exchange_in_two_changes_little(cuts):
    whole = set(begins(segment(LONG)[0], depth=1))
    paged = set(begins(read_in_pages(LONG, None, cuts)[0], depth=1))
    assert len(whole ^ paged) <= 2 * sum(cut % 2 for cut in cuts)


WORDS = "queue retry broker theme palette toggle import cell parser yes no next task: back to and why the it ? 支付 重试 über été\n".split(
    " "
)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["user", "assistant"]),
            st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join),
            st.none() | st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1)),
            st.sampled_from([(), ("a/b.py",), ("a/b.py", "c/d.py"), ("c\\d.py",)]),
        ),
        max_size=40,
    ),
    st.integers(0, 40),
)
@settings(max_examples=150, deadline=None)
def test_whatever_was_said_topics_cover_it_once_and_begin_at_user_turns(spoken, cut):
    turns = [
        TopicTurn(role, text, at, line, files=files)
        for line, (role, text, at, files) in enumerate(spoken)
    ]
    state = None
    for page in (turns[:cut], turns[cut:]):
        topics, after = segment(page, None, state)
        outer = [topic for topic in topics if topic.depth == 0]
        assert [at for topic in outer for at in range(topic.first, topic.last + 1)] == list(
            range(len(page))
        )
        for number, topic in enumerate(topics):
            assert topic.first <= topic.last
            assert (
                topic.continues
                or page[topic.first].role == "user"
                or (topic.first == 0 and (state is None or not state.exchanges))
            )
            assert not topic.continues or (topic.first == 0 and state is not None)
            if topic.depth:
                parent = topics[topic.parent]
                assert topic.parent < number and parent.depth == 0
                assert parent.first <= topic.first and topic.last <= parent.last
        state = resume_state(json.loads(json.dumps(after._asdict())))
