"""Where topics begin, through `segment`: stories whose boundaries are evident, what may never begin one, and pages of any size."""

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.embed.hashing import HashingEmbedder
from bethink.ingest.topics import OpenTopic, Topic, TopicTurn, resume_state, segment

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
PAYMENTS = [
    (
        "The payment worker drops messages when the broker restarts. Can you add a retry with backoff?",
        "The payment worker acknowledges a message before the charge is stored, so a broker restart loses it. I added a retry with backoff.",
    ),
    (
        "Should the retry also cover a declined card?",
        "No: a declined card is final. The retry of the payment worker covers only broker and network errors, not a declined charge.",
    ),
    (
        "how many retries before the message goes to the dead letter queue",
        "Five retries with backoff, then the payment worker moves the message to the dead letter queue of the broker.",
    ),
    (
        "and log each retry with the charge id",
        "Each retry now logs the charge id, the attempt and the backoff before the payment worker sleeps.",
    ),
]
THEME = [
    (
        "Next task: the documentation site needs a dark theme that follows the system setting.",
        "The documentation site now reads prefers-color-scheme and switches its stylesheet to a dark theme with its own palette.",
    ),
    (
        "the code blocks are unreadable in the dark theme",
        "The highlighting palette was made for a white background; code blocks of the dark theme use their own colours now.",
    ),
    (
        "also add a toggle to the header of the site",
        "A toggle in the header switches between light and dark theme and remembers the choice in local storage.",
    ),
]
IMPORT = [
    (
        "There is a bug report that importing a spreadsheet with umlauts fails, can you reproduce it?",
        "Reproduced: the importer decodes the spreadsheet as ASCII, so a cell with umlauts raises a UnicodeDecodeError in the parser.",
    ),
    (
        "what encoding do most of our customers' spreadsheets have?",
        "Of the stored spreadsheets most are UTF-8 with a byte order mark and some Windows-1252; the importer should detect both encodings.",
    ),
    (
        "yes, detect both, and put a failing cell into the error report",
        "The importer detects the encoding of a spreadsheet and lists every cell that the parser cannot decode in the error report.",
    ),
]
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


LONG_TOPIC_GETS_SUB = [
    (
        "the image of the payment worker with retry and backoff became too large, deploying it takes minutes",
        "The container image holds the whole compiler and its caches; a second stage of the build drops both for the worker, and the registry keeps older layers.",
    ),
    (
        "which base is the smallest one for that image",
        "A slim base without the compiler makes the container image small.",
    ),
    (
        "what of the health check in that image",
        "The health check of the container image asks the broker for its queue.",
    ),
]


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param("yes", id="yes"),
        pytest.param("ok", id="ok"),
        pytest.param("1", id="1"),
        pytest.param("b", id="b"),
        pytest.param("continue", id="continue"),
        pytest.param("do that", id="do-that"),
        pytest.param("commit and push", id="commit-push"),
        pytest.param("can you commit?", id="can-commit"),
        pytest.param("why?", id="why"),
        pytest.param("thanks!", id="thanks"),
        pytest.param("go ahead", id="go-ahead"),
        pytest.param("it still fails", id="still-fails"),
        pytest.param("ok, now continue", id="ok-now-continue"),
        pytest.param("run the tests again", id="run-tests-again"),
        pytest.param("looks good, merge it", id="looks-good-merge"),
        pytest.param("ja, weiter", id="ja-weiter"),
        pytest.param("oui, continue", id="oui-continue"),
        pytest.param("sí, sigue", id="si-sigue"),
        pytest.param("继续", id="cjk"),
        pytest.param("hm", id="hm"),
        pytest.param("...", id="full-stop"),
        pytest.param("👍", id="thumbs-up-sign"),
        pytest.param("", id="empty"),
    ],
)
def test_a_short_reply_begins_no_topic(reply):
    elsewhere = "Kubernetes ingress certificates are renewed by the operator every sixty days through an ACME challenge."
    turns = talk([*PAYMENTS, (reply, elsewhere)])
    assert begins(segment(turns)[0], depth=1) == [0]
    turns[-2] = turns[-2]._replace(at=START + timedelta(days=2))
    assert begins(segment(turns)[0]) == [0]


@pytest.mark.parametrize(
    "announced",
    [
        pytest.param(
            "Next task: the payment worker needs metrics.",
            id="next-task-payment-worker-needs-metrics",
        ),
        pytest.param(
            "ok, looks good. Different topic: how does the payment worker get its configuration?",
            id="ok-looks-good-different-topic-how",
        ),
        pytest.param(
            "Let's move on to the retry metrics of the payment worker",
            id="let-s-move-retry-metrics-payment-worker",
        ),
        pytest.param(
            "unrelated, but who reads the dead letter queue of the broker?",
            id="unrelated-but-who-reads-dead-letter",
        ),
        pytest.param(
            "By the way, the payment worker logs the charge twice",
            id="way-payment-worker-logs-charge-twice",
        ),
        pytest.param(
            "Themenwechsel: der payment worker braucht eine neue Konfiguration",
            id="themenwechsel-der-payment-worker-braucht",
        ),
        pytest.param(
            "Danke. Nächste Aufgabe: der payment worker soll Metriken senden",
            id="danke-nachste-aufgabe-der-payment-worker",
        ),
        pytest.param(
            "Passons à la configuration du payment worker", id="passons-la-configuration-du-payment"
        ),
        pytest.param(
            "Autre question : comment le payment worker est-il configuré ?",
            id="autre-question-comment-le-payment-worker",
        ),
        pytest.param(
            "Pasemos a la configuración del payment worker",
            id="pasemos-la-configuracion-del-payment",
        ),
        pytest.param(
            "Otra cosa: el payment worker necesita métricas",
            id="otra-cosa-el-payment-worker-necesita",
        ),
    ],
)
def test_an_announced_change_begins_a_topic(announced):
    answer = "The payment worker, its retry with backoff and the broker stay as they are; the charge is logged."
    assert begins(segment(talk([*PAYMENTS, (announced, answer)]))[0]) == [0, 8]


def test_a_long_topic_gets_sub_topics():
    asked = ("how long is the backoff", "The backoff of a retry doubles from one second on.")
    topics, state = segment(talk([*PAYMENTS, asked, *LONG_TOPIC_GETS_SUB]))
    tree = [(topic.first, topic.depth, topic.parent) for topic in topics]
    assert tree == [(0, 0, None), (10, 1, 0)]
    assert topics[1].last == topics[0].last == 15
    assert (state.topic, state.sub) == (8, 3)


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        pytest.param([], [], id="empty"),
        pytest.param([TopicTurn("user", "hello", None, 1)], [(0, 0)], id="topicturn-user"),
        pytest.param(
            [TopicTurn("assistant", "I looked at the logs.", None, 1)],
            [(0, 0)],
            id="topicturn-assistant-looked-logs",
        ),
        pytest.param(
            [TopicTurn("assistant", "one", None, 1), TopicTurn("assistant", "two", None, 2)],
            [(0, 1)],
            id="topicturn-assistant-one",
        ),
        pytest.param(
            [
                TopicTurn("system", "", None, 1),
                TopicTurn("user", "\x00\ud800", None, 2),
                TopicTurn("tool", "x" * 100000, None, 3),
            ],
            [(0, 2)],
            id="topicturn-system",
        ),
    ],
)
def test_very_few_turns_are_one_topic(turns, expected):
    asked = ("how long is the backoff", "The backoff of a retry doubles from one second on.")
    topics, state = segment(talk([*PAYMENTS, asked, *LONG_TOPIC_GETS_SUB]))
    topics, state = segment(turns)
    assert [(topic.first, topic.last) for topic in topics] == expected
    assert segment([], None, state) == ([], state)


@pytest.mark.parametrize(
    ("hours", "files", "branch", "topics"),
    [
        pytest.param(0.33, None, "main", 1, id="0.33"),
        pytest.param(9, None, "main", 2, id="9"),
        pytest.param(72, None, "main", 2, id="72"),
        pytest.param(0, ("web/board/index.ts",), "main", 2, id="0-web/board/index.ts-main"),
        pytest.param(0, ("web\\board\\index.ts",), "main", 2, id="0-web-board-index.ts"),
        pytest.param(0, ("src/queue.py",), "main", 1, id="0-src/queue.py"),
        pytest.param(
            0,
            ("web/board/index.ts", "src/worker.py"),
            "main",
            1,
            id="0-web/board/index.ts-src/worker.py",
        ),
        pytest.param(0, (), "main", 1, id="0-main"),
        pytest.param(0, ("web/board/index.ts",), None, 2, id="0-web/board/index.ts-none"),
    ],
)
def test_hours_files_or_branches_decide_a_doubtful_change(hours, files, branch, topics):
    turns = talk([*PAYMENTS, DOUBTFUL], branch="main", cwd="/shop")
    if files is not None:
        turns[1::2] = [turn._replace(files=("src/worker.py",)) for turn in turns[1::2]]
    at = turns[-3].at + timedelta(hours=hours)
    turns[-2] = turns[-2]._replace(branch=branch, at=at)
    turns[-1] = turns[-1]._replace(files=files or (), branch=branch, at=at)
    assert len(begins(segment(turns)[0])) == topics


@pytest.mark.parametrize(
    ("spread", "last", "topics"),
    [
        pytest.param(0.01, (0, 1), 2, id="0.01-2"),
        pytest.param(0.01, (1, 0), 1, id="0.01"),
        pytest.param(1.0, (0, 1), 1, id="1.0"),
    ],
)
def test_meaning_decides_a_doubtful_change(spread, last, topics):
    turns = talk([*PAYMENTS, DOUBTFUL])
    rng = np.random.default_rng(3)
    about = [[1, 0, *rng.normal(0, spread, 30)] for _ in turns[:-2]]
    vectors = list(np.array([*about, *[[*last, *[0] * 30]] * 2], np.float32))
    assert len(begins(segment(turns, vectors)[0])) == topics
    assert len(begins(read_in_pages(turns, vectors, [4, 8])[0])) == topics


def test_missing_vectors_are_ignored():
    turns = talk(STORY)
    few = [None, np.zeros(8, np.float32), None, None]
    odd, state = segment(turns, [few[at % 4] for at in range(len(turns))])
    assert begins(odd) == begins(segment(turns)[0])
    assert segment(talk(PAYMENTS), [np.ones(16, np.float32)] * 8, state)[0]


def test_a_state_holds_no_words():
    _, state = segment(talk(STORY))
    secret = [TopicTurn("assistant", "The zebra protocol is secret.", None, 99)]
    kept = json.dumps([one._asdict() for one in (state, segment(secret, None, state)[1])])
    said = ("importer", "spreadsheet", "encoding", "zebra", "secret")
    assert [word for word in said if word in kept] == []


def test_a_state_can_be_resumed():
    _, state = segment(talk(STORY))
    kept = as_kept(state)
    assert resume_state(kept) == OpenTopic(**kept)


def test_an_odd_state_is_ignored():
    _, state = segment(talk(STORY))
    kept = as_kept(state)
    assert [
        other for other in ({**kept, "more": 1}, {}, None) if resume_state(other) is not None
    ] == []


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
def test_topics_cover_every_turn_once(turns, cut):
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


TERSE = [
    ("checkout is slow", "The checkout query scans all carts."),
    ("add an index", "Index on carts.user_id added."),
    ("faster?", "Checkout takes 80 ms now."),
    ("ship it", "Checkout index deployed."),
]
BLURRY = [
    ("the logo is blurry on phones", "The logo is a 1x PNG."),
    ("use svg", "Logo is an SVG now."),
    ("dark mode too?", "The SVG logo follows the colour scheme."),
]


def test_a_pause_begins_a_topic_in_talk_of_few_words():
    later = [
        turn._replace(at=turn.at + timedelta(minutes=60)) for turn in talk([*TERSE, *BLURRY])[8:]
    ]
    assert begins(segment([*talk(TERSE), *later])[0]) == [0, 8]


def test_another_subject_without_a_pause_is_a_part_of_the_topic_in_talk_of_few_words():
    assert begins(segment(talk([*TERSE, *BLURRY]))[0]) == [0]
