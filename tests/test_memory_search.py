"""`Bethink` searched: modes, profiles, scopes that never leak, models that fail or change, and what one database holds."""

import threading

import pytest
from memories import Failing, texts

from bethink.config import Config
from bethink.embed.hashing import HashingEmbedder
from bethink.errors import EmbeddingError, InvalidInput, NotFound
from bethink.model import PERSONAL, Filter, Passage
from bethink.recall.unrelated import FEW_SHOWN, NOTHING_FITS

OWLS = ["The barn owl hunts at night", "The snowy owl hunts by day", "The owl pellet holds bones"]


def told(memory, texts, kind=None):
    memory.add_many([Passage(text, kind) for text in texts], dedup=False)


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("", id="empty"),
        pytest.param(" \n", id="blank"),
    ],
)
def test_an_empty_question_is_refused(hashing, question):
    with pytest.raises(InvalidInput, match="The question is empty"):
        hashing.search(question)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("mode", "fuzzy", id="mode"),
        pytest.param("profile", "mood", id="profile"),
    ],
)
def test_an_unknown_option_is_refused(hashing, name, value):
    with pytest.raises(InvalidInput, match=f"'{value}' is not a {name}") as caught:
        hashing.search("x", **{name: value})
    assert caught.value.hint.startswith("One of ")


def test_a_long_question_finds_the_one_word_that_fits(memory):
    memory.add(OWLS[0])
    question = "could you perhaps tell me whether anybody ever wrote down when exactly that owl of ours goes out to eat"
    assert texts(memory.search(question)) == [OWLS[0]]


def test_a_threshold_cuts_off_lower_scores(memory):
    told(memory, OWLS)
    bar = memory.search("snowy owl by day").hits[1].score + 1e-9
    assert [
        threshold
        for threshold, number in ((bar, 1), (1, 0))
        if len(memory.search("snowy owl by day", threshold=threshold).hits) != number
    ] == []


@pytest.mark.parametrize(
    ("question", "found"),
    [
        pytest.param(
            "バックアップは何時？", "本番データベースは毎晩2時にバックアップされる", id="katakana"
        ),
        pytest.param("订单事件怎么传递", "支付服务使用 Kafka 传递订单事件", id="cjk"),
        pytest.param(
            "데이터베이스는 어디에 있나요", "운영 데이터베이스를 프랑크푸르트에 둔다", id="hangul"
        ),
        pytest.param("สำรองข้อมูลเมื่อไหร่", "ฐานข้อมูลสำรองข้อมูลทุกคืน", id="thai"),
    ],
)
def test_a_question_in_a_script_without_spaces_is_found_by_its_parts(hashing, question, found):
    spaceless = ["デプロイは金曜日に行う", "周五不发布", "금요일에는 배포하지 않는다", "ปิดวันศุกร์"]
    told(hashing, [found, *spaceless])
    assert texts(hashing.search(question, mode="keyword"))[0] == found
    assert texts(hashing.search(f'"{found[:6]}"', mode="keyword")) == [found]


def test_a_question_for_a_missing_kind_finds_other_memories(memory):
    told(memory, [f"Let me see what we decide about owl {n}" for n in range(5)], "context")
    assert len(memory.search("what did we decide?").hits) == 5


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("what did we decide?", id="what-did-decide"),
        pytest.param("list all decisions", id="list-all-decisions"),
    ],
)
def test_a_question_for_a_kind_alone_finds_only_that_kind(memory, question):
    told(memory, [f"Let me see what we decide about owl {n}" for n in range(5)], "context")
    decided = "The owls move to the north barn"
    memory.add(decided, kind="decision")
    assert texts(memory.search(question)) == [decided]


def test_a_question_with_a_topic_finds_other_kinds_too(memory):
    told(memory, [f"Let me see what we decide about owl {n}" for n in range(5)], "context")
    decided = "The owls move to the north barn"
    memory.add(decided, kind="decision")
    assert len(memory.search("what did we decide about owl 3?").hits) > 1


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("asdf qwer zxcv", id="asdf-qwer-zxcv"),
        pytest.param("capital of France", id="capital-france"),
    ],
)
def test_a_question_that_nothing_fits_gets_three_hits_with_a_hint(hashing, question):
    told(hashing, [*OWLS, *(f"The law of barn {number} is old" for number in range(9))])
    strange = hashing.search(question)
    assert (len(strange.hits), strange.total, strange.hints) == (3, 3, (FEW_SHOWN,)), question
    assert not hashing.search(question, mode="keyword").hits


def test_a_memory_with_all_words_of_the_question_gets_no_hint(hashing):
    told(hashing, [*OWLS, *(f"The law of barn {number} is old" for number in range(9))])
    hashing.add(" ".join(["Of all our", *(f"tool{number}" for number in range(3000)), "a harpoon"]))
    assert hashing.search("harpoon").hints == (), "one holds all that is asked"


def test_a_keyword_search_that_hardly_fits_is_cut_to_three_hits(hashing):
    told(hashing, [*OWLS, *(f"The law of barn {number} is old" for number in range(9))])
    few, by_words = "purple elephant submarine chandelier tax law", {"mode": "keyword"}
    strange = hashing.search(few, **by_words)
    assert (len(strange.hits), strange.total, strange.hints) == (3, 3, (FEW_SHOWN,))
    assert not hashing.search(few, **by_words, offset=3).hits


def test_a_search_with_explicit_limits_is_not_cut(hashing):
    told(hashing, [*OWLS, *(f"The law of barn {number} is old" for number in range(9))])
    few, by_words = "purple elephant submarine chandelier tax law", {"mode": "keyword"}
    # Who says what fits, or narrows the search, gets it all.
    narrow = hashing.filter(kinds=("general", "fact", "domain"))
    cases = [{"threshold": 0.0}, {"filter": narrow}, {"profile": "explore"}]
    assert [
        more
        for more in cases
        for every in [hashing.search(few, **by_words, **more)]
        if len(every.hits) <= 3 or every.hints[:1] != (NOTHING_FITS,)
    ] == []


def test_a_search_by_meaning_is_not_cut(hashing):
    told(hashing, [*OWLS, *(f"The law of barn {number} is old" for number in range(9))])
    assert len(hashing.search("asdf qwer zxcv", mode="vector").hits) > 3


def test_a_question_that_fits_gets_no_hint(hashing):
    told(hashing, [*OWLS, *(f"The law of barn {number} is old" for number in range(9))])
    assert not hashing.search("when does the barn owl hunt").hints


@pytest.mark.parametrize("fusion", ["adaptive", "rrf"])
def test_what_is_only_near_in_meaning_must_pass_the_gate(open_memory, fusion):
    memory = open_memory(config=Config(min_similarity=0.9, fusion=fusion))
    told(memory, OWLS)
    assert texts(memory.search("pellet of a hawk")) == [OWLS[2]]
    assert memory.search("a hawk flies").hits == ()


def order(memory, question, **how):
    return [hit.memory.id for hit in memory.search(question, **how).hits]


@pytest.mark.parametrize("seed", range(10))
def test_the_continuity_profile_prefers_recent_memories(hashing, clock, seed):
    old = hashing.add("project status update", dedup=False).id
    clock.move(hours=100)
    new = hashing.add("project status update.", dedup=False).id
    assert order(hashing, "project status", profile="continuity", seed=seed) == [new, old]


def test_a_profile_decides_between_votes_or_relevance(hashing):
    exact = hashing.add("TypeScript compiler options").id
    voted = hashing.add("TypeScript build tools").id
    hashing.vote(voted, 10)

    def find_first(profile):
        found = [order(hashing, "TypeScript compiler", profile=profile, seed=n) for n in range(10)]
        return {ids[0] for ids in found}

    assert (find_first("frequent"), find_first("fact_check")) == ({voted}, {exact})


def test_exploring_changes_the_order_with_the_seed(hashing):
    told(hashing, [f"memory item {number} about testing" for number in range(5)])
    orders = [order(hashing, "testing", profile="explore", seed=seed) for seed in range(20)]
    assert {len(found) for found in orders} == {5} and len(set(map(tuple, orders))) > 1
    assert order(hashing, "testing", profile="explore", seed=3) == orders[3]


def test_a_seed_changes_nothing_without_exploring(hashing):
    told(hashing, [f"memory item {number} about testing" for number in range(5)])
    scores = [[hit.score for hit in hashing.search("testing", seed=n).hits] for n in (1, 2)]
    assert scores[0] == scores[1]


def test_a_question_is_embedded_while_its_words_are_looked_up(open_memory, monkeypatch):
    memory = open_memory()
    memory.add(OWLS[1])
    both = threading.Barrier(2, timeout=60)  # passed only where one is under way when the other is

    def meet(owner, name):
        method = getattr(owner, name)

        def call(*args, **options):
            both.wait()
            return method(*args, **options)

        monkeypatch.setattr(owner, name, call)

    meet(memory.embedder, "query")
    meet(memory.store, "keyword")
    assert texts(memory.search("what do snowy owls do by day?")) == [OWLS[1]]


PLACES = ("here", "other", "container")


@pytest.fixture
def places(open_memory, tmp_path):
    """A project, another one and a container, each with a memory."""
    (tmp_path / "other").mkdir()
    memories = (
        open_memory(),
        open_memory(directory=tmp_path / "other"),
        open_memory(container="React Router"),
    )
    return dict(zip(PLACES, memories, strict=True))


@pytest.fixture
def owls(places):
    """The id of the memory of each place, and of a personal one."""
    ids = {name: memory.add(f"The owl of {name}").id for name, memory in places.items()}
    return ids | {"personal": places["here"].add("The owl that is mine", personal=True).id}


@pytest.mark.parametrize("mode", ["hybrid", "vector", "keyword"])
@pytest.mark.parametrize("place", PLACES)
def test_a_search_finds_nothing_of_other_places(places, owls, place, mode):
    assert set(order(places[place], "owl", mode=mode)) == {owls[place], owls["personal"]}


@pytest.mark.parametrize("way", ["list", "export"])
@pytest.mark.parametrize("place", PLACES)
def test_a_list_has_nothing_of_other_places(places, owls, place, way):
    found = getattr(places[place], way)()
    assert {one.id for one in found} == {owls[place], owls["personal"]}


@pytest.mark.parametrize("place", PLACES)
def test_an_id_of_the_place_is_known(places, owls, place):
    expected = {owls[place], owls["personal"]}
    assert {places[place].resolve(id) for id in expected} == expected


@pytest.mark.parametrize(
    ("place", "hidden"),
    [(place, hidden) for place in PLACES for hidden in PLACES if place != hidden],
)
def test_a_memory_of_another_place_is_out_of_reach(places, owls, place, hidden):
    check_unreachable(places[place], owls[hidden], owls[place])


@pytest.mark.usefixtures("owls")
def test_every_scope_is_known_everywhere(places):
    scopes = {*(memory.scope for memory in places.values()), PERSONAL}
    assert set(places["here"].every_scope()) == scopes


@pytest.mark.usefixtures("owls")
def test_a_search_in_every_scope_finds_all(places):
    here = places["here"]
    assert len(here.search("owl", filter=here.filter(scopes=here.every_scope())).hits) == 4


@pytest.mark.usefixtures("owls")
def test_a_search_in_no_scope_finds_nothing(places):
    assert places["here"].search("owl", filter=Filter(scopes=())).hits == ()


def check_unreachable(memory, id, inside):
    names = "resolve one get history relations forget vote restore".split()
    for refused in (
        *(lambda name=name: getattr(memory, name)(id) for name in names),
        lambda: memory.update(id, importance=1),
        lambda: memory.link(inside, id),
        lambda: memory.link(id, inside),
        lambda: memory.add("The owl that replaces it", supersedes=[id]),
        lambda: memory.forget(id, purge=True),
    ):
        with pytest.raises(NotFound):
            refused()


def test_what_a_hit_is_related_to_never_leaves_the_scopes(open_memory):
    here, container = open_memory(), open_memory(container="lib")
    mine = here.add("My own owl", personal=True).id
    container.link(container.add("The owl of the library").id, mine)
    (hit,) = here.search("own owl").hits
    assert hit.related == ()


def test_a_search_without_a_model_uses_words(open_memory):
    memory = open_memory("none")
    memory.add(OWLS[0])
    answer = memory.search("barn owl")
    assert (texts(answer), answer.mode, answer.hints) == ([OWLS[0]], "keyword", ())
    for needs_one in (lambda: memory.search("barn owl", mode="vector"), memory.reindex):
        with pytest.raises(EmbeddingError, match="No embedding model is set"):
            needs_one()


@pytest.fixture
def without_model(open_memory, tmp_path):
    memory = open_memory("snowflake-arctic-embed-s", database=tmp_path / "missing.db")
    memory.add_many([Passage(OWLS[0])])
    return memory


def test_a_missing_model_falls_back_to_words(without_model):
    memory = without_model
    receipt = memory.add_many([Passage(OWLS[1])])
    assert receipt.added == 1 and receipt.hints == memory.hints
    answer = memory.search("barn owl")
    assert texts(answer)[0] == OWLS[0] and answer.hints == memory.hints
    assert memory.search("barn owl", mode="keyword").hints == ()


@pytest.mark.parametrize(
    "needs_one",
    [
        pytest.param(lambda memory: memory.search("barn owl", mode="vector"), id="vector search"),
        pytest.param(lambda memory: memory.reindex(), id="reindex"),
    ],
)
def test_what_needs_the_missing_model_is_refused(without_model, needs_one):
    with pytest.raises(EmbeddingError, match="is not installed") as refused:
        needs_one(without_model)
    why = f"{refused.value.message} {refused.value.hint}"
    assert refused.value.hint and without_model.hints == (f"Working by words only: {why}",)


def test_a_model_that_fails_while_writing_leaves_memories_unembedded(open_memory, tmp_path):
    # One that fails while writing.
    memory = open_memory(embedder=Failing(), database=tmp_path / "writing.db")
    receipt = memory.add_many([Passage(OWLS[0]), Passage(OWLS[1])])
    assert receipt.added == 2
    assert receipt.hints == ("Working by words only: The endpoint is down. Start it.",)
    assert memory.stats().unembedded == 2 and memory.stats().vectors == {}


def test_a_text_can_be_changed_while_the_model_fails(open_memory, tmp_path):
    # One that fails while writing.
    memory = open_memory(embedder=Failing(), database=tmp_path / "writing.db")
    memory.add_many([Passage(OWLS[0]), Passage(OWLS[1])])
    later = open_memory(embedder=Failing(), database=memory.store.path)
    changed = later.update(later.list()[0].id, content="The eagle owl sings")
    assert changed.content == "The eagle owl sings"


def test_reindexing_embeds_what_a_failing_model_left_out(open_memory, tmp_path):
    # One that fails while writing.
    memory = open_memory(embedder=Failing(), database=tmp_path / "writing.db")
    memory.add_many([Passage(OWLS[0]), Passage(OWLS[1])])
    with pytest.raises(EmbeddingError, match="endpoint is down"):
        open_memory(embedder=Failing(), database=memory.store.path).reindex()
    assert open_memory(database=memory.store.path).reindex() == 2 and memory.stats().unembedded == 0


def test_a_model_that_fails_at_a_question_falls_back_to_words(open_memory, tmp_path):
    # One that fails at a question.
    memory = open_memory(embedder=Failing(documents=False), database=tmp_path / "asking.db")
    memory.add(OWLS[0])
    answer = memory.search("barn owl")
    assert (texts(answer), answer.mode) == ([OWLS[0]], "keyword")
    assert answer.hints == ("Working by words only: The endpoint is down. Start it.",)
    with pytest.raises(EmbeddingError, match="endpoint is down"):
        memory.search("barn owl", mode="vector")


def vectors(memory):
    return {model: count for model, count in memory.stats().vectors.items() if count}


def test_a_changed_model_gives_a_hint(open_memory):
    told(open_memory(embedder=HashingEmbedder(64)), OWLS)
    after = open_memory(embedder=HashingEmbedder(128))
    answer = after.search("snowy owl")
    assert texts(answer)[0] == OWLS[1]
    assert "hashing-64, not hashing-128" in answer.hints[0] and "bethink reindex" in answer.hints[0]
    assert after.search("snowy owl", mode="vector").hits == ()


def test_reindexing_embeds_with_the_new_model(open_memory):
    told(open_memory(embedder=HashingEmbedder(64)), OWLS)
    after = open_memory(embedder=HashingEmbedder(128))
    steps = []
    assert after.reindex(progress=lambda *at: steps.append(at)) == 3
    assert steps == [(3, 3)] and after.reindex() == 0
    answer = after.search("snowy owl", mode="vector")
    assert texts(answer)[0] == OWLS[1] and answer.hints == ()
    assert vectors(after) == {"hashing-128": 3}


def test_reindexing_continues_after_a_stop(open_memory, tmp_path):
    owls = [f"owl number {number}" for number in range(150)]
    told(open_memory(embedder=HashingEmbedder(64), database=tmp_path / "many.db"), owls)
    after = open_memory(embedder=HashingEmbedder(128), database=tmp_path / "many.db")

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        after.reindex(progress=stop)
    assert vectors(after) == {"hashing-64": 150, "hashing-128": 64}
    assert after.reindex() == 86
    assert vectors(after) == {"hashing-128": 150}
    assert after.reindex(full=True) == 150 and after.check(deep=True) == []
