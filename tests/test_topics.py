"""Where topics begin, through `segment`: stories whose boundaries are evident, what may never begin one, and pages of any size."""

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
# Neither near to the payment worker nor far from it: here the other signals decide.
DOUBTFUL = (
    "the messages of the payment broker need a dashboard for the people on call",
    "A dashboard now shows the messages of the broker, the queue and their age to the people on call.",
)


def talk(exchanges, start=START, **place):
    """Turns of a conversation that goes on at an even pace."""
    said = []
    for number, exchange in enumerate(exchanges):
        for later, (role, text) in enumerate(zip(("user", "assistant"), exchange, strict=True)):
            at = start and start + timedelta(minutes=3 * number + later)
            said.append(TopicTurn(role, text, at, 10 * number + 1 + 4 * later, **place))
    return said


def vectors_of(turns):
    matrices = HashingEmbedder().documents([turn.text for turn in turns])
    return [matrix.mean(axis=0) for matrix in matrices]


def begins(topics, depth=0):
    return [topic.first for topic in topics if topic.depth <= depth and not topic.continues]


def as_kept(state):
    """A state as it comes back from the database."""
    return json.loads(json.dumps(state._asdict()))


def read_in_pages(turns, vectors, cuts):
    """The topics of a conversation that comes in pages, as they look when all pages are put together."""
    whole: list[Topic] = []
    latest: dict[int, int] = {}
    state = None
    for start, end in pairwise([0, *sorted(cuts), len(turns)]):
        of_page = None if vectors is None else vectors[start:end]
        topics, after = segment(turns[start:end], of_page, state)
        places = []
        for topic in topics:
            if topic.continues:
                place = latest[topic.depth]
                whole[place] = whole[place]._replace(last=topic.last + start)
            else:
                place = len(whole)
                parent = None if topic.parent is None else places[topic.parent]
                here = Topic(topic.first + start, topic.last + start, topic.depth, parent, False)
                whole.append(here)
            latest[topic.depth] = place
            places.append(place)
        state = resume_state(as_kept(after))
    return whole, state


@pytest.mark.parametrize("with_vectors", [False, True])
@pytest.mark.parametrize("start", [START, None])
def test_a_story_of_three_tasks_has_three_topics(with_vectors, start):
    turns = talk(STORY, start=start)
    topics, state = segment(turns, vectors_of(turns) if with_vectors else None)
    assert begins(topics) == BEGINS
    ends = [topic.last for topic in topics if topic.depth == 0]
    assert ends == [BEGINS[1] - 1, BEGINS[2] - 1, len(turns) - 1]
    assert (state.exchanges, state.topic) == (len(STORY), len(IMPORT))


def test_replies_begin_no_topic_announced_changes_do_and_long_topics_get_sub_topics():
    for reply in cases("topics-a-short-reply-never"):
        elsewhere = "Kubernetes ingress certificates are renewed by the operator every sixty days through an ACME challenge."
        turns = talk([*PAYMENTS, (reply, elsewhere)])
        assert begins(segment(turns)[0], depth=1) == [0]
        turns[-2] = turns[-2]._replace(at=START + timedelta(days=2))
        assert begins(segment(turns)[0]) == [0]
    for announced in cases("topics-an-announced-change-begins-a"):
        answer = "The payment worker, its retry with backoff and the broker stay as they are; the charge is logged."
        assert begins(segment(talk([*PAYMENTS, (announced, answer)]))[0]) == [0, 8]
    asked = ("how long is the backoff", "The backoff of a retry doubles from one second on.")
    topics, state = segment(talk([*PAYMENTS, asked, *cases("topics-a-long-topic-gets-sub")]))
    tree = [(topic.first, topic.depth, topic.parent) for topic in topics]
    assert tree == [(0, 0, None), (10, 1, 0)]
    assert topics[1].last == topics[0].last == 15
    assert (state.topic, state.sub) == (8, 3)
    for turns, expected in cases("topics-very-little-is-one-topic", globals()):
        topics, state = segment(turns)
        assert [(topic.first, topic.last) for topic in topics] == expected
        assert segment([], None, state) == ([], state)


# Hours without a word, files and a branch: (hours, files, branch, topics).
def test_hours_folders_and_meaning_turn_the_scale_and_a_known_file_turns_it_back():
    for hours, files, branch, topics in cases("topics-other-signals-turn-the-scale"):
        turns = talk([*PAYMENTS, DOUBTFUL], branch="main", cwd="/shop")
        if files is not None:
            turns[1::2] = [turn._replace(files=("src/worker.py",)) for turn in turns[1::2]]
        at = turns[-3].at + timedelta(hours=hours)
        turns[-2] = turns[-2]._replace(branch=branch, at=at)
        turns[-1] = turns[-1]._replace(files=files or (), branch=branch, at=at)
        assert len(begins(segment(turns)[0])) == topics
    for spread, last, topics in [(0.01, (0, 1), 2), (0.01, (1, 0), 1), (1.0, (0, 1), 1)]:
        turns = talk([*PAYMENTS, DOUBTFUL])
        rng = np.random.default_rng(3)
        about = [[1, 0, *rng.normal(0, spread, 30)] for _ in turns[:-2]]
        vectors = list(np.array([*about, *[[*last, *[0] * 30]] * 2], np.float32))
        assert len(begins(segment(turns, vectors)[0])) == topics
        assert len(begins(read_in_pages(turns, vectors, [4, 8])[0])) == topics


def test_odd_vectors_and_states_are_passed_over_and_a_state_holds_no_word_that_was_said():
    turns = talk(STORY)
    few = [None, np.zeros(8, np.float32), None, None]
    odd, state = segment(turns, [few[at % 4] for at in range(len(turns))])
    assert begins(odd) == begins(segment(turns)[0])
    assert segment(talk(PAYMENTS), [np.ones(16, np.float32)] * 8, state)[0]
    _, state = segment(talk(STORY))
    secret = [TopicTurn("assistant", "The zebra protocol is secret.", None, 99)]
    for one in (state, segment(secret, None, state)[1]):
        kept = json.dumps(one._asdict())
        said = ("importer", "spreadsheet", "encoding", "zebra", "secret")
        assert not [word for word in said if word in kept]
    kept = as_kept(state)
    assert resume_state(kept) == OpenTopic(**kept)
    for other in ({**kept, "more": 1}, {}, None):
        assert resume_state(other) is None


LONG = talk([*STORY, *PAYMENTS[1:], *IMPORT, *THEME, *PAYMENTS, *THEME[1:], *IMPORT])
LONG_VECTORS = vectors_of(LONG)


@given(st.sets(st.integers(1, len(LONG) // 2 - 1)), st.booleans())
@settings(max_examples=30, deadline=None)
def test_pages_of_whole_exchanges_give_the_topics_of_the_whole(cuts, with_vectors):
    vectors = LONG_VECTORS if with_vectors else None
    whole, state = segment(LONG, vectors)
    paged, after = read_in_pages(LONG, vectors, [2 * cut for cut in cuts])
    assert paged == whole and as_kept(after) == as_kept(state)


WORDS = "queue retry broker theme palette toggle import cell parser yes no next task: back to and why the it ? 支付 重试 über été\n"
TURN = st.builds(
    TopicTurn,
    st.sampled_from(["user", "assistant"]),
    st.lists(st.sampled_from(WORDS.split(" ")), max_size=14).map(" ".join),
    st.none() | st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1)),
    st.just(1),
    files=st.sampled_from([(), ("a/b.py",), ("a/b.py", "c/d.py"), ("c\\d.py",)]),
)


@given(st.lists(TURN, max_size=40), st.integers(0, 40))
@settings(max_examples=100, deadline=None)
def test_whatever_was_said_topics_cover_it_once_and_begin_at_user_turns(turns, cut):
    state = None
    for page in (turns[:cut], turns[cut:]):
        topics, after = segment(page, None, state)
        outer = [topic for topic in topics if topic.depth == 0]
        covered = [at for topic in outer for at in range(topic.first, topic.last + 1)]
        assert covered == list(range(len(page)))
        for number, topic in enumerate(topics):
            opens = topic.first == 0 and (state is None or not state.exchanges)
            assert topic.first <= topic.last
            assert topic.continues or page[topic.first].role == "user" or opens
            assert not topic.continues or (topic.first == 0 and state is not None)
            if topic.depth:
                parent = topics[topic.parent]
                assert topic.parent < number and parent.depth == 0
                assert parent.first <= topic.first and topic.last <= parent.last
        state = resume_state(as_kept(after))
