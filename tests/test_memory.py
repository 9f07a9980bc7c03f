"""`Memory`, the one API behind every surface: telling, replacing, changing, forgetting, relating."""

import pytest
from memories import DAY, NOW, stored, texts
from stores import pick

from bethink.errors import InvalidInput, NotFound, Overtaken
from bethink.model import KINDS, RELATIONS, TRUST, Passage, Source
from bethink.text import hash_text

TIMES = {"NOW": NOW, "DAY": DAY}
JWT = "Authentication uses JWT tokens with a 24h expiry"


def test_an_added_note_is_found_again(memory):
    outcome = memory.add("We deploy from main, never from a branch")
    assert pick(outcome, "status duplicate_of similarity redactions") == ("added", None, None, 0)
    (hit,) = memory.search("how do we deploy?").hits
    assert hit.memory.id == outcome.id
    told = (memory.project.scope, "note:user", TRUST["user"], NOW, NOW)
    assert pick(hit.memory, "scope source trust created_at updated_at") == told


def test_the_same_text_added_twice_is_a_duplicate(memory):
    outcome = memory.add("We deploy from main, never from a branch")
    again = memory.add("  We deploy from main, never from a branch\n")
    same = (outcome.id, "duplicate", outcome.id, 1.0)
    assert pick(again, "id status duplicate_of similarity") == same


def test_missing_fields_are_derived_from_the_text(memory):
    text = "We decided to use PostgreSQL for src/billing/store.py because it is durable."
    told = memory.one(memory.add(f"{text} It was not easy.").id)
    assert pick(told, "kind importance") == ("decision", 7.0) and 0 < told.confidence <= 1
    assert told.summary.startswith("We decided to use PostgreSQL")
    assert {("PostgreSQL", "technology"), ("src/billing/store.py", "file")} <= set(told.entities)
    assert {"PostgreSQL", "src/billing/store.py"} <= set(told.keywords)


def test_given_fields_are_stored_as_given(memory):
    given = {"summary": "short", "importance": 0.0, "confidence": 0.25, "tags": ("a", "b")}
    given |= {"expires_at": NOW + DAY, "valid_from": NOW - DAY, "source": "session:1"}
    given |= {"metadata": {"by": "hand"}}
    entities = ("technology:Redis", "Maria")
    told = memory.one(memory.add("Plain words", kind="Gotchas", entities=entities, **given).id)
    assert {name: getattr(told, name) for name in given} == given and told.kind == "gotcha"
    assert set(told.entities) == {("Redis", "technology"), ("Maria", "concept")}


def test_a_memory_of_each_kind_can_be_added(memory):
    of_each = [memory.add(f"One of {kind}", kind=kind, dedup=False).id for kind in KINDS]
    assert [one.kind for one in memory.get(*of_each)] == list(KINDS)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("<private>all of it</private>", id="private-all-private"),
        pytest.param(
            " <private>a</private>\n<private>b</private> ", id="private-private-private-b-private"
        ),
        pytest.param("<private>never closed", id="private-never-closed"),
    ],
)
def test_a_wholly_private_text_is_refused(hashing, text):
    with pytest.raises(InvalidInput, match="Nothing is left to remember"):
        hashing.add(text)
    assert hashing.stats().memories == 0


@pytest.mark.parametrize(
    ("text", "fields", "message"),
    [
        pytest.param("", {}, "There is no text", id="empty"),
        pytest.param(" \n ", {}, "There is no text", id="blank"),
        pytest.param("x" * 200_001, {}, "200,001 characters long", id="x-200001"),
        pytest.param("x", {"kind": "opinion"}, "'opinion' is not a kind", id="x-kind"),
        pytest.param(
            "x", {"importance": 11}, "importance 11 is outside 0 to 10", id="x-importance-11"
        ),
        pytest.param("x", {"importance": -1}, "outside", id="x-importance-1"),
        pytest.param(
            "x", {"confidence": 1.5}, "confidence 1.5 is outside 0 to 1", id="x-confidence"
        ),
        pytest.param("x", {"importance": float("nan")}, "outside", id="x-importance-float"),
        pytest.param("x", {"expires_at": NOW}, "is in the past", id="x-expires_at-NOW-past"),
        pytest.param("x", {"expires_at": NOW - DAY}, "is in the past", id="x-expires_at-NOW-DAY"),
    ],
)
def test_a_text_that_cannot_be_stored_is_refused_with_a_hint(hashing, text, fields, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        hashing.add(text, **fields)
    assert caught.value.hint and hashing.stats().memories == 0


def test_an_explicit_replacement_ends_validity(memory, clock):
    old = memory.add("Sessions are kept in MySQL").id
    clock.move(days=10)
    new = memory.add("Sessions are kept in PostgreSQL", supersedes=[old[:-4]])
    assert new.status == "added" and new.supersedes == (old,)
    assert pick(memory.one(old), "superseded_by valid_to") == (new.id, clock.now)


def test_a_replaced_memory_leads_to_its_replacement(memory, clock):
    old = memory.add("Sessions are kept in MySQL").id
    clock.move(days=10)
    new = memory.add("Sessions are kept in PostgreSQL", supersedes=[old[:-4]])
    (hit,) = memory.search("MySQL sessions").hits
    assert hit.memory.id == new.id
    assert [(relation.type, other.id) for relation, other in hit.related] == [("supersedes", old)]


def test_a_replaced_memory_is_found_as_of_an_earlier_day(memory, clock):
    old = memory.add("Sessions are kept in MySQL").id
    clock.move(days=10)
    memory.add("Sessions are kept in PostgreSQL", supersedes=[old[:-4]])
    then = memory.search("sessions", filter=memory.filter(as_of=NOW + DAY))
    assert texts(then) == ["Sessions are kept in MySQL"]
    assert len(memory.search("sessions", filter=memory.filter(include_superseded=True)).hits) == 2


def test_a_replacement_may_become_valid_later(memory, clock):
    old = memory.add("Sessions are kept in MySQL").id
    clock.move(days=10)
    new = memory.add("Sessions are kept in PostgreSQL", supersedes=[old[:-4]])
    memory.add("Sessions are kept in Redis", supersedes=[new.id], valid_from=clock.now + DAY)
    assert memory.one(new.id).valid_to == clock.now + DAY


def test_search_follows_a_chain_of_replacements(memory, clock):
    ids = [memory.add("The port is 1000").id]
    for number in range(2, 6):
        clock.move(days=1)
        ids.append(memory.add(f"The port is {number}000", supersedes=ids[-1:]).id)
    hit = memory.search("port 1000").hits[0]
    assert hit.memory.id == ids[-1]
    assert [other.id for _, other in hit.related] == ids[-2::-1]


@pytest.mark.parametrize(
    ("old", "told", "kind"),
    [
        pytest.param("decision", None, "decision", id="decision-none"),
        pytest.param("gotcha", None, "gotcha", id="gotcha"),
        pytest.param("decision", "fact", "fact", id="decision-fact"),
        pytest.param("question", None, "fact", id="question"),
        pytest.param("document", None, "fact", id="document"),
    ],
)
def test_a_replacement_inherits_the_kind_decision(memory, old, told, kind):
    replaced = memory.add("Orders go through Kafka", kind=old).id
    new = memory.add("Orders are kept in PostgreSQL", kind=told, supersedes=[replaced]).id
    assert memory.one(new).kind == kind


@pytest.mark.parametrize(
    ("old", "told", "kind"),
    [
        pytest.param("decision", None, "decision", id="decision-none"),
        pytest.param("gotcha", None, "gotcha", id="gotcha"),
        pytest.param("decision", "fact", "fact", id="decision-fact"),
        pytest.param("question", None, "fact", id="question"),
        pytest.param("document", None, "fact", id="document"),
    ],
)
def test_a_linked_replacement_inherits_the_kind_decision(memory, old, told, kind):
    replaced = memory.add("Orders go through Kafka", kind=old).id
    new = memory.add("Orders are kept in PostgreSQL", kind=told, supersedes=[replaced]).id
    plain = memory.add("Chocolate cake for everybody").id
    memory.link(plain, new, "supersedes")
    assert memory.one(plain).kind == kind


def test_changing_a_text_derives_its_fields_again(hashing, clock):
    id = hashing.add("The cache is Redis", entities=("person:Maria",)).id
    clock.move(hours=1)
    changed = hashing.update(id[:-3], content="The queue is Kafka")
    assert (changed.content, changed.summary) == ("The queue is Kafka", "The queue is Kafka")
    assert {entity.name for entity in changed.entities} == {"Kafka", "Maria"}
    assert (changed.created_at, changed.updated_at) == (NOW, clock.now)


def test_a_changed_text_is_found_by_its_new_words(hashing):
    id = hashing.add("The cache is Redis", entities=("person:Maria",)).id
    hashing.add("Our queue of jobs is Kafka")
    hashing.update(id[:-3], content="The queue is Kafka")
    assert "The queue is Kafka" in texts(hashing.search("Kafka", mode="keyword"))
    assert texts(hashing.search("Redis", mode="keyword")) == []
    near = hashing.search("the queue is Kafka", mode="vector").hits
    assert [hit.why["cosine"] > 0.3 for hit in near] == [True, True]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param({}, "Nothing to change", id="nothing-change"),
        pytest.param({"scope": "x"}, "scope cannot be changed", id="scope"),
        pytest.param({"clear": ["content"]}, "content cannot be changed or emptied", id="clear"),
        pytest.param({"importance": 11}, "outside", id="importance"),
        pytest.param({"kind": "opinion"}, "not a kind", id="kind"),
        pytest.param({"content": " "}, "no text", id="content-blank"),
        pytest.param(
            {"content": "<private>x</private>"}, "Nothing is left", id="content-private-x-private"
        ),
    ],
)
def test_an_invalid_change_is_refused(hashing, fields, message):
    id = hashing.add("The cache is Redis", entities=("person:Maria",)).id
    id = hashing.add("The cache is Redis").id
    with pytest.raises(InvalidInput, match=message):
        hashing.update(id, **fields)
    assert [event.action for event in hashing.history(id)] == ["add"]


def test_changing_some_fields_leaves_the_others(memory):
    id = memory.add("The cache is Redis", expires_at=NOW + DAY).id
    given = {"importance": 9, "tags": ("x",), "metadata": {"a": 1}, "answered": True}
    changed = memory.update(id, kind="note", entities=["technology:Redis"], **given)
    assert {name: getattr(changed, name) for name in given} == given
    unchanged = ("general", "The cache is Redis", NOW + DAY)
    assert pick(changed, "kind content expires_at") == unchanged


def test_optional_fields_can_be_cleared(memory):
    id = memory.add("The cache is Redis", expires_at=NOW + DAY).id
    given = {"importance": 9, "tags": ("x",), "metadata": {"a": 1}, "answered": True}
    memory.update(id, kind="note", entities=["technology:Redis"], **given)
    cleared = memory.update(id, clear=["expires_at", "answered"])
    assert pick(cleared, "expires_at answered") == (None, None)


def test_metadata_of_the_pipeline_survives_a_change(memory):
    noted = Passage("The queue is Kafka", metadata={"turn": "t1", "role": "assistant", "page": 3})
    [read] = memory.ingest([(Source("talk.jsonl", "transcript"), [noted])]).outcomes
    changed = memory.update(read.id, metadata={"page": 4, "role": "user", "a": 1})
    assert changed.metadata == {"turn": "t1", "role": "assistant", "page": 4, "a": 1}


def test_an_update_from_a_stale_copy_is_refused(memory, clock):
    id = memory.add("The cache is Redis").id
    was = memory.one(id)
    clock.move(seconds=1)
    changed = memory.update(id, was=was, importance=8)
    with pytest.raises(Overtaken, match="changed by another process"):
        memory.update(id, was=was, importance=2)
    assert memory.one(id) == changed


def test_a_forgotten_memory_is_hidden(memory):
    id = memory.add(JWT).id
    assert memory.forget(id[:-2]).ids == (id,) == memory.forget(id).ids
    assert texts(memory.search("JWT")) == [] == memory.list()
    assert texts(memory.search("JWT", filter=memory.filter(include_deleted=True))) == [JWT]


def test_a_forgotten_memory_can_be_restored(memory):
    id = memory.add(JWT).id
    assert memory.forget(id[:-2]).ids == (id,) == memory.forget(id).ids
    assert memory.restore(id).deleted_at is None
    assert texts(memory.search("JWT")) == [JWT]
    with pytest.raises(InvalidInput, match="neither forgotten nor replaced"):
        memory.restore(id)


def test_restoring_a_version_brings_back_all_its_fields(memory):
    about = {"kind": "fact", "expires_at": NOW + DAY, "tags": ("a",), "entities": ("person:Maria",)}
    id = memory.add("The cache is Redis", **about).id
    first = memory.one(id)
    memory.update(id, content="The queue is Kafka", tags=["b"], metadata={"x": 1})
    memory.update(id, clear=["expires_at"], importance=9, kind="decision")
    memory.forget(id)
    back = memory.restore(id, version=1)
    fields = "content summary kind importance tags expires_at content_hash metadata deleted_at"
    assert pick(back, fields) == pick(first, fields)
    assert set(back.entities) == set(first.entities)
    assert texts(memory.search("Redis cache", mode="keyword")) == ["The cache is Redis"]
    assert memory.restore(id, version=len(memory.history(id))) == memory.one(id)


@pytest.mark.parametrize(
    "version",
    [
        pytest.param(0, id="0"),
        pytest.param(99, id="99"),
    ],
)
def test_an_unknown_version_is_refused(memory, version):
    about = {"kind": "fact", "expires_at": NOW + DAY, "tags": ("a",), "entities": ("person:Maria",)}
    id = memory.add("The cache is Redis", **about).id
    with pytest.raises(NotFound, match=f"no version {version}"):
        memory.restore(id, version)


def test_a_version_that_another_memory_repeats_is_not_restored(memory):
    id = memory.add(JWT).id
    memory.update(id, content="Tokens are opaque strings now")
    memory.forget(id)
    memory.add(JWT)
    before = memory.history(id)
    with pytest.raises(InvalidInput, match="already says exactly this"):
        memory.restore(id, version=1)
    assert memory.one(id).deleted_at is not None and memory.history(id) == before


def test_a_purged_memory_is_gone(memory, tmp_path):
    merger = "The merger with Zebracorp is on {}".format
    id = memory.add(merger("Tuesday")).id
    memory.update(id, content=merger("Wednesday"))
    memory.forget(id, purge=True)
    with pytest.raises(NotFound):
        memory.one(id)
    assert memory.stats().memories == 0 and b"zebracorp" not in stored(tmp_path).lower()


@pytest.mark.parametrize(
    "day",
    [
        pytest.param("Tuesday", id="tuesday"),
        pytest.param("Wednesday", id="wednesday"),
    ],
)
def test_a_purged_text_is_not_added_again(memory, day):
    merger = "The merger with Zebracorp is on {}".format
    id = memory.add(merger("Tuesday")).id
    memory.update(id, content=merger("Wednesday"))
    memory.forget(id, purge=True)
    assert memory.add(merger(day)).status == "purged"


def test_a_purged_text_can_be_added_on_request(memory):
    merger = "The merger with Zebracorp is on {}".format
    id = memory.add(merger("Tuesday")).id
    memory.update(id, content=merger("Wednesday"))
    memory.forget(id, purge=True)
    assert memory.add(merger("Tuesday"), allow_purged=True).status == "added"


def test_a_search_does_not_count_as_use(memory, clock):
    id = memory.add(JWT).id
    clock.move(days=3)

    def used():
        return pick(memory.one(id), "access_count last_accessed")

    for question in ("JWT", "authentication", "nothing of the kind"):
        memory.search(question)
    memory.get(id, count=False)
    assert used() == (0, NOW)


def test_reading_counts_as_use(memory, clock):
    id = memory.add(JWT).id
    clock.move(days=3)

    def used():
        return pick(memory.one(id), "access_count last_accessed")

    memory.get(id[:-3])
    assert used() == (1, clock.now)


def test_a_vote_counts_as_use(memory, clock):
    id = memory.add(JWT).id
    clock.move(days=3)

    def used():
        return pick(memory.one(id), "access_count last_accessed")

    assert (memory.vote(id).usefulness, memory.vote(id, -3).usefulness) == (1, -2)
    assert used() == (2, clock.now)


def test_a_vote_out_of_range_is_refused(memory):
    id = memory.add(JWT).id
    with pytest.raises(InvalidInput, match="vote 101 is outside"):
        memory.vote(id, 101)


@pytest.mark.parametrize("type", RELATIONS)
def test_a_link_relates_two_memories(memory, type):
    one = memory.add("Because the lock is never freed").id
    other = memory.add("Why does the worker hang?").id
    relation = memory.link(one[:-2], other, type)
    assert pick(relation, "source target type") == (one, other, type)
    assert [pick(found, "source type") for found in memory.relations(other)] == [(one, type)]
    assert (memory.one(other).superseded_by == one) is (type == "supersedes")
    assert memory.one(other).answered is (type == "answers")
    hit = next(hit for hit in memory.search("lock freed").hits if hit.memory.id == one)
    assert [other.id for _, other in hit.related] == [other]


@pytest.mark.parametrize("type", RELATIONS)
def test_an_unlinked_relation_is_gone(memory, type):
    one = memory.add("Because the lock is never freed").id
    other = memory.add("Why does the worker hang?").id
    memory.link(one[:-2], other, type)
    memory.unlink(one, other, type)
    assert memory.relations(one) == []
    assert pick(memory.one(other), "superseded_by valid_to answered") == (None, None, False)
    with pytest.raises(NotFound, match=f"has no '{type}' relation"):
        memory.unlink(one, other, type)


def test_a_restored_memory_stays_replaced(memory):
    old = memory.add("We deploy with script one").id
    new = memory.add("We deploy from release branches", supersedes=[old]).id
    ended = memory.one(old).valid_to
    memory.forget(old)
    assert pick(memory.restore(old), "deleted_at superseded_by valid_to") == (None, new, ended)
    assert [pick(one, "source type") for one in memory.relations(old)] == [(new, "supersedes")]


def test_restoring_a_replaced_memory_again_ends_the_replacement(memory):
    old = memory.add("We deploy with script one").id
    new = memory.add("We deploy from release branches", supersedes=[old]).id
    ended = memory.one(old).valid_to
    memory.forget(old)
    assert pick(memory.restore(old), "deleted_at superseded_by valid_to") == (None, new, ended)
    assert memory.restore(old).superseded_by is None
    assert [one.type for one in memory.relations(old)] == ["relates_to"]


def test_a_question_stays_answered_until_its_last_answer_is_unlinked(memory):
    question = memory.add("Which port does staging use?", kind="question").id
    said = ("Staging uses 8081", "The port of staging stands in Consul")
    first, last = (memory.add(text).id for text in said)
    memory.link(first, question, "answers")
    memory.link(last, question, "answers")
    memory.unlink(first, question, "answers")
    assert memory.one(question).answered is True
    memory.unlink(last, question, "answers")
    assert memory.one(question).answered is False


def test_a_circle_of_replacements_is_refused(memory):
    a, b, c = (memory.add(text).id for text in ("one owl", "two mice", "three cats"))
    memory.link(b, a, "supersedes")
    memory.link(c, b, "supersedes")
    with pytest.raises(InvalidInput, match="would form a cycle") as caught:
        memory.link(a, c, "supersedes")
    assert caught.value.hint == f"bethink restore {a}"


def test_an_unknown_relation_is_refused(memory):
    a, b, _c = (memory.add(text).id for text in ("one owl", "two mice", "three cats"))
    with pytest.raises(InvalidInput, match="'likes' is not a relation"):
        memory.link(a, b, "likes")


def test_a_memory_is_not_related_to_itself(memory):
    a, _b, _c = (memory.add(text).id for text in ("one owl", "two mice", "three cats"))
    with pytest.raises(InvalidInput, match="related to itself"):
        memory.link(a, a)


def test_a_link_to_a_missing_memory_is_refused(memory):
    a, _b, _c = (memory.add(text).id for text in ("one owl", "two mice", "three cats"))
    with pytest.raises(NotFound):
        memory.link(a, "ffffffff")


def test_an_embedding_text_is_embedded_in_place_of_the_content(hashing):
    asked = "how long does somebody stay signed in"
    id = hashing.add("Tokens last fifteen minutes", embedding_text=asked).id
    assert hashing.add("Refresh tokens last a month", embedding_text=asked).status == "added"

    def cosine():
        found = hashing.search(asked, mode="vector").hits
        return next(hit.why["cosine"] for hit in found if hit.memory.id == id)

    assert cosine() > 0.99
    hashing.reindex(full=True)
    hashing.update(id, metadata={"ticket": 1})
    assert hashing.one(id).metadata == {"ticket": 1, "embedding_text": asked} and cosine() > 0.99


def test_changing_the_content_drops_the_embedding_text(hashing):
    asked = "how long does somebody stay signed in"
    id = hashing.add("Tokens last fifteen minutes", embedding_text=asked).id
    assert hashing.add("Refresh tokens last a month", embedding_text=asked).status == "added"

    def cosine():
        found = hashing.search(asked, mode="vector").hits
        return next(hit.why["cosine"] for hit in found if hit.memory.id == id)

    hashing.update(id, metadata={"ticket": 1})
    assert hashing.one(id).metadata == {"ticket": 1, "embedding_text": asked} and cosine() > 0.99
    hashing.update(id, content="Tokens last an hour")
    assert hashing.one(id).metadata == {"ticket": 1} and cosine() < 0.9


def test_an_embedding_text_is_restored_with_its_version(hashing):
    asked = "how long does somebody stay signed in"
    id = hashing.add("Tokens last fifteen minutes", embedding_text=asked).id
    assert hashing.add("Refresh tokens last a month", embedding_text=asked).status == "added"

    def cosine():
        found = hashing.search(asked, mode="vector").hits
        return next(hit.why["cosine"] for hit in found if hit.memory.id == id)

    hashing.update(id, content="Tokens last an hour")
    hashing.update(id, embedding_text=asked)
    assert cosine() > 0.99
    hashing.update(id, embedding_text="")
    assert cosine() < 0.9
    hashing.restore(id, version=1)
    assert hashing.one(id).content == "Tokens last fifteen minutes" and cosine() > 0.99


def test_an_embedding_text_is_redacted(hashing):
    token = "ghp_" + "a1B2" * 9
    id = hashing.add("CI pushes by itself", embedding_text=f"the token {token} of CI").id
    text = hashing.one(id).metadata["embedding_text"]
    assert token not in text


def test_an_agent_may_not_change_an_embedding_text(hashing):
    token = "ghp_" + "a1B2" * 9
    id = hashing.add("CI pushes by itself", embedding_text=f"the token {token} of CI").id
    hashing.trust = TRUST["agent"]
    for fields in ({"embedding_text": "x"}, {"metadata": {"embedding_text": "x"}}):
        with pytest.raises(InvalidInput, match="its metadata is for the user to change"):
            hashing.update(id, **fields)


def test_a_purged_embedding_text_leaves_the_cache(hashing):
    token = "ghp_" + "a1B2" * 9
    id = hashing.add("CI pushes by itself", embedding_text=f"the token {token} of CI").id
    text = hashing.one(id).metadata["embedding_text"]
    hashing.trust = TRUST["user"]
    model = hashing.embedder.model
    assert hashing.store.read_cache([hash_text(text)], model)
    hashing.update(id, content="CI pushes at night")
    hashing.forget(id, purge=True)
    assert not hashing.store.read_cache([hash_text(text)], model)
