"""The second reading of the first hits, through the front door: what rises, what keeps its place, and when nobody is asked."""

from unittest.mock import Mock

import pytest
from memories import DAY, STRANGERS, texts

from bethink.app.mcp.tools import search_memories
from bethink.embed.hashing import HashingEmbedder
from bethink.judge import Judge
from bethink.model import TRUST, Passage, Source
from bethink.recall.shortlist import READ_HITS, is_question

QUESTION = "when does the barn owl hunt?"
RIGHT = "It sleeps all day and goes out after mice at dusk, said the keeper of the owl"
TOLD = ["The barn owl hunt is a song", "Does the barn owl hunt in winter", RIGHT]


class Reader(Judge):
    """Finds that what speaks of dusk answers, and remembers what it was asked."""

    def __init__(self):
        super().__init__(1)
        self.asked = []

    def prepare(self):
        pass

    def relate(self, pairs):
        return [STRANGERS] * len(pairs)

    def fit(self, pairs):
        self.asked += pairs
        return [30.0 if "dusk" in text else 0.0 for _, text in pairs]


READER = Reader()


@pytest.fixture
def judge():
    READER.asked.clear()
    return READER


@pytest.fixture
def memory(open_memory, judge):
    memory = open_memory(judge=judge, embedder=HashingEmbedder())
    memory.add_many([Passage(text, "fact") for text in TOLD], dedup=False)
    return memory


def test_what_answers_the_question_comes_first(memory):
    plain, again = memory.search(QUESTION), memory.search(QUESTION, rerank=True)
    assert texts(plain)[-1] == texts(again)[0] == RIGHT


def test_reading_again_keeps_the_scores_of_the_places(memory):
    plain, again = memory.search(QUESTION), memory.search(QUESTION, rerank=True)
    assert [hit.score for hit in again.hits] == [hit.score for hit in plain.hits]


def test_a_hit_that_was_read_again_says_how_well_it_fits_and_how_far_it_moved(memory):
    first = memory.search(QUESTION, rerank=True).hits[0]
    assert (first.why["fits"], first.why["moved"]) == (30.0, 2)


def test_a_hit_that_was_not_read_again_says_nothing_of_it(memory):
    assert "fits" not in memory.search(QUESTION).hits[0].why


def test_the_judge_is_asked_the_question(memory, judge):
    memory.search(QUESTION, rerank=True)
    assert {question for question, _ in judge.asked} == {QUESTION}


def test_pages_are_parts_of_one_order(memory):
    pages = [memory.search(QUESTION, rerank=True, limit=1, offset=at) for at in range(3)]
    assert [texts(page)[0] for page in pages] == texts(memory.search(QUESTION, rerank=True))


def test_reading_again_finds_the_same_above_a_threshold(memory):
    least = {"threshold": memory.search(QUESTION, rerank=True).hits[1].score}
    plain, again = memory.search(QUESTION, **least), memory.search(QUESTION, rerank=True, **least)
    assert sorted(texts(again)) == sorted(texts(plain))


NOBODY_ASKED = [
    (QUESTION, {"rerank": False}),
    (QUESTION, {"mode": "keyword"}),
    (QUESTION, {"profile": "continuity"}),
    ("barn owl hunt", {}),
    ("fix: the barn owl hunts at night", {}),
    ("do not hunt the owl", {}),
    ("barn AND owl", {}),
    (QUESTION + " " + "and so on " * 40 + "?", {}),
]

QUESTIONS = [
    ("How do we deploy?", True),
    ("where's the retry logic", True),
    ("and which one did we keep", True),
    ("the other one?", True),
    ("why not viper", True),
    ("deploy", False),
    ("deploy?", False),
    ("feat: whatever when it is", False),
    ("Is", False),
    ("don't cache tokens", False),
    ("Wie deployen wir den Server und warum?", False),
    ("was macht Redis hier?", False),
    ("was ist der Grund für den Cache?", False),
    ("was the cache chosen for speed?", True),
    ("部署在哪里？", False),
]


@pytest.mark.parametrize(
    ("question", "how"), [pytest.param(*row, id=f"{row[0][:40]} {row[1]}") for row in NOBODY_ASKED]
)
def test_the_judge_is_not_asked_without_need(memory, judge, question, how):
    memory.search(question, **{"rerank": True, **how})
    assert judge.asked == []


def test_the_kind_that_is_asked_for_stays_first(memory, judge):
    memory.add("We decided that the barn owl hunts on Tuesdays", kind="decision")
    first = memory.search("what did we decide about the barn owl hunt?", rerank=True).hits[0]
    assert first.memory.kind == "decision"


@pytest.mark.parametrize(("text", "asks"), QUESTIONS)
def test_a_question_is_told_from_other_text(text, asks):
    assert is_question(text) == asks


@pytest.mark.parametrize("kind", ["document", "code"])
def test_documents_or_code_keep_their_places(memory, judge, kind):
    passages = [Passage(f"{text}. The barn owl hunt: dusk", kind) for text in ("One", "Two")]
    memory.ingest([(Source("owls.md", "markdown"), passages)])
    plain = texts(memory.search(f"{QUESTION} in code"))
    places = {text: at for at, text in enumerate(plain) if text.endswith("dusk")}
    again = texts(memory.search(f"{QUESTION} in code", rerank=True))
    assert {text: again.index(text) for text in places} == places
    assert not any(text.endswith("dusk") for _, text in judge.asked)


UPLOADS = "are uploads scanned before they are stored?"
NO_LONGER = "We no longer use ClamAV, uploads are stored at once"


@pytest.fixture
def uploads(open_memory):
    """A project whose README says that uploads are scanned."""
    memory = open_memory(judge=Judge(1), embedder=HashingEmbedder())
    text = "# Uploads\n\nUploads are scanned by ClamAV before they are stored."
    page = (Source("README.md", "markdown"), [Passage(text, "document")])
    memory.ingest([page], trust=TRUST["import"])
    return memory


@pytest.mark.parametrize(
    ("said", "disputed"),
    [
        pytest.param(NO_LONGER, True, id="no_longer"),
        pytest.param(
            "ClamAV gets new signatures every night",
            False,
            id="clamav-gets-new-signatures-every-night",
        ),
    ],
)
@pytest.mark.parametrize(
    "how",
    [
        pytest.param({}, id="search"),
        pytest.param({"rerank": True}, id="rerank"),
    ],
)
def test_a_document_comes_behind_what_the_user_says_otherwise(uploads, said, disputed, how):
    uploads.add(said)
    found = uploads.search(UPLOADS, **how).hits
    assert [hit.memory.kind == "document" for hit in found[:2]] == [not disputed, disputed], how
    document = found[1 if disputed else 0]
    told = [relation.type for relation, _ in document.related]
    assert told == ["contradicts"] * disputed
    pages = [uploads.search(UPLOADS, limit=1, offset=at, **how).hits for at in (0, 1)]
    assert [page[0].memory.id for page in pages] == [hit.memory.id for hit in found], how


@pytest.mark.parametrize(
    ("settle", "told"),
    [
        pytest.param(lambda memory, own, _: memory.forget(own), [], id="memory-forget"),
        pytest.param(
            lambda memory, own, _: memory.update(own, expires_at=memory.clock() - DAY),
            [],
            id="memory-update",
        ),
        pytest.param(
            lambda memory, own, claim: memory.link(own, claim, "relates_to"),
            ["relates_to"],
            id="memory-link-own-claim",
        ),
        pytest.param(
            lambda memory, own, claim: memory.link(own, claim, "contradicts"),
            ["contradicts"],
            id="memory-link-own-claim-2",
        ),
        pytest.param(None, [], id="none"),
    ],
)
def test_only_what_holds_there_and_nobody_settled_disputes_a_document(uploads, settle, told):
    (document,) = uploads.list()
    uploads.container = None if settle else "elsewhere"
    own = uploads.add(NO_LONGER).id
    if settle:
        settle(uploads, own, document.id)
    every = {"include_deleted": True, "include_expired": True, "scopes": uploads.every_scope()}
    found = uploads.search(UPLOADS, filter=uploads.filter(**every)).hits
    assert {hit.memory.id for hit in found} == {own, document.id}
    assert (found[0].memory.id == own) == (told == ["contradicts"])
    (hit,) = (hit for hit in found if hit.memory.id == document.id)
    assert [relation.type for relation, _ in hit.related] == told


@pytest.mark.parametrize("how", [{}, {"rerank": True}], ids=["search", "rerank"])
@pytest.mark.parametrize(
    "error",
    [
        pytest.param(FileNotFoundError("judge.onnx"), id="judge-onnx"),
        pytest.param(RuntimeError("INVALID_PROTOBUF"), id="invalid-protobuf"),
    ],
)
def test_without_a_judge_that_can_be_asked_meaning_answers(uploads, monkeypatch, how, error):
    uploads.add(NO_LONGER)
    monkeypatch.setattr(uploads.judge, "_load", Mock(side_effect=error))
    answer = uploads.search(UPLOADS, **how)
    assert (answer.mode, len(answer.hits)) == ("hybrid", 2)
    assert f"The judge cannot be asked: {error}" in answer.hints[-1]


def test_only_the_first_few_are_read_and_of_each_the_part_that_fits(memory, judge):
    far = "word " * 300 + ". The barn owl goes hunting with the others. " + "word " * 300
    owls = [Passage(f"{number} {far}", "fact") for number in range(READ_HITS + 3)]
    memory.add_many(owls, dedup=False)
    memory.search(QUESTION, rerank=True)
    assert len(judge.asked) == READ_HITS
    assert all(len(text) <= 300 and "owl" in text for _, text in judge.asked)


COMMANDS = [
    ("search", False),
    ("search --no-rerank", False),
    ("search --rerank --explain", True),
    ("recall", True),
    ("recall --no-rerank", False),
    ("recall --mode keyword", False),
]


def test_an_agent_gets_the_second_reading(memory, judge):
    found = search_memories(memory, QUESTION).text
    assert judge.asked
    assert found.index("dusk") < found.index("song")


def test_a_second_reading_is_either_wanted_or_not(cli):
    assert "not allowed with" in cli.fails("search", "owl", "--rerank", "--no-rerank", code=2)


@pytest.mark.parametrize(("command", "asked"), COMMANDS)
def test_a_command_asks_for_the_second_reading(cli, judge, monkeypatch, command, asked):
    for text in TOLD:
        cli.add(text)
    monkeypatch.setattr("bethink.api.Bethink.judge", judge)
    shown = cli.ok(*command.split(), QUESTION)
    assert bool(judge.asked) == asked
    assert ("fits" in shown) == ("--explain" in command)


def test_the_judge_itself_tells_an_answer_from_what_resembles_the_question(open_memory):
    memory = open_memory(judge=Judge(1), embedder=HashingEmbedder())
    right = "Anna: We brought Rex home from the shelter last May, my first dog."
    told = ["Ben: A dog is so much work, when do you sleep?", right]
    memory.add_many([Passage(text, "context") for text in told], dedup=False)
    assert texts(memory.search("When did Anna get her dog?", rerank=True))[0] == right
