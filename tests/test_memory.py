"""`Memory`, the one API behind every surface: telling, replacing, changing, forgetting, relating."""

import pytest
from memories import DAY, NOW, stored, texts
from stores import pick

from bethink.errors import InvalidInput, NotFound, Overtaken
from bethink.model import KINDS, RELATIONS, TRUST, Passage, Source
from bethink.text import hash_text

TIMES = {"NOW": NOW, "DAY": DAY}
JWT = "Authentication uses JWT tokens with a 24h expiry"


def test_what_is_told_is_found_again_with_what_was_given_and_what_is_worked_out(memory):
    outcome = memory.add("We deploy from main, never from a branch")
    assert pick(outcome, "status duplicate_of similarity redactions") == ("added", None, None, 0)
    again = memory.add("  We deploy from main, never from a branch\n")
    same = (outcome.id, "duplicate", outcome.id, 1.0)
    assert pick(again, "id status duplicate_of similarity") == same
    (hit,) = memory.search("how do we deploy?").hits
    assert hit.memory.id == outcome.id
    told = (memory.project.scope, "note:user", TRUST["user"], NOW, NOW)
    assert pick(hit.memory, "scope source trust created_at updated_at") == told
    text = "We decided to use PostgreSQL for src/billing/store.py because it is durable."
    told = memory.one(memory.add(f"{text} It was not easy.").id)
    assert pick(told, "kind importance") == ("decision", 7.0) and 0 < told.confidence <= 1
    assert told.summary.startswith("We decided to use PostgreSQL")
    assert {("PostgreSQL", "technology"), ("src/billing/store.py", "file")} <= set(told.entities)
    assert {"PostgreSQL", "src/billing/store.py"} <= set(told.keywords)
    given = {"summary": "short", "importance": 0.0, "confidence": 0.25, "tags": ("a", "b")}
    given |= {"expires_at": NOW + DAY, "valid_from": NOW - DAY, "source": "session:1"}
    given |= {"metadata": {"by": "hand"}}
    entities = ("technology:Redis", "Maria")
    told = memory.one(memory.add("Plain words", kind="Gotchas", entities=entities, **given).id)
    assert {name: getattr(told, name) for name in given} == given and told.kind == "gotcha"
    assert set(told.entities) == {("Redis", "technology"), ("Maria", "concept")}
    of_each = [memory.add(f"One of {kind}", kind=kind, dedup=False).id for kind in KINDS]
    assert [one.kind for one in memory.get(*of_each)] == list(KINDS)


CANNOT_BE_KEPT = [
    ("", {}, "There is no text"),
    (" \n ", {}, "There is no text"),
    ("x" * 200_001, {}, "200,001 characters long"),
    ("x", {"kind": "opinion"}, "'opinion' is not a kind"),
    ("x", {"importance": 11}, "importance 11 is outside 0 to 10"),
    ("x", {"importance": -1}, "outside"),
    ("x", {"confidence": 1.5}, "confidence 1.5 is outside 0 to 1"),
    ("x", {"importance": float("nan")}, "outside"),
    ("x", {"expires_at": NOW}, "is in the past"),
    ("x", {"expires_at": NOW - DAY}, "is in the past"),
]


def test_what_is_wholly_private_or_cannot_be_kept_is_refused_in_a_sentence(hashing):
    private = ["<private>all of it</private>", " <private>a</private>\n<private>b</private> "]
    for text in [*private, "<private>never closed"]:
        with pytest.raises(InvalidInput, match="Nothing is left to remember"):
            hashing.add(text)
        assert hashing.stats().memories == 0
    for text, fields, message in CANNOT_BE_KEPT:
        with pytest.raises(InvalidInput, match=message) as caught:
            hashing.add(text, **fields)
        assert caught.value.hint and hashing.stats().memories == 0


def test_a_given_replacement_ends_validity_and_leads_on_through_the_chain(memory, clock):
    old = memory.add("Sessions are kept in MySQL").id
    clock.move(days=10)
    new = memory.add("Sessions are kept in PostgreSQL", supersedes=[old[:-4]])
    assert new.status == "added" and new.supersedes == (old,)
    assert pick(memory.one(old), "superseded_by valid_to") == (new.id, clock.now)
    (hit,) = memory.search("MySQL sessions").hits
    assert hit.memory.id == new.id
    assert [(relation.type, other.id) for relation, other in hit.related] == [("supersedes", old)]
    then = memory.search("sessions", filter=memory.filter(as_of=NOW + DAY))
    assert texts(then) == ["Sessions are kept in MySQL"]
    assert len(memory.search("sessions", filter=memory.filter(include_superseded=True)).hits) == 2
    memory.add("Sessions are kept in Redis", supersedes=[new.id], valid_from=clock.now + DAY)
    assert memory.one(new.id).valid_to == clock.now + DAY
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
def test_what_replaces_a_decision_is_one_unless_its_kind_was_told(memory, old, told, kind):
    replaced = memory.add("Orders go through Kafka", kind=old).id
    new = memory.add("Orders are kept in PostgreSQL", kind=told, supersedes=[replaced]).id
    assert memory.one(new).kind == kind
    plain = memory.add("Chocolate cake for everybody").id
    memory.link(plain, new, "supersedes")
    assert memory.one(plain).kind == kind


CHANGE_MAKES_NO = [
    ({}, "Nothing to change"),
    ({"scope": "x"}, "scope cannot be changed"),
    ({"clear": ["content"]}, "content cannot be changed or emptied"),
    ({"importance": 11}, "outside"),
    ({"kind": "opinion"}, "not a kind"),
    ({"content": " "}, "no text"),
    ({"content": "<private>x</private>"}, "Nothing is left"),
]


def test_a_changed_text_is_found_anew_and_a_change_that_makes_no_sense_is_refused(hashing, clock):
    id = hashing.add("The cache is Redis", entities=("person:Maria",)).id
    hashing.add("Our queue of jobs is Kafka")
    clock.move(hours=1)
    changed = hashing.update(id[:-3], content="The queue is Kafka")
    assert (changed.content, changed.summary) == ("The queue is Kafka", "The queue is Kafka")
    assert {entity.name for entity in changed.entities} == {"Kafka", "Maria"}
    assert (changed.created_at, changed.updated_at) == (NOW, clock.now)
    assert "The queue is Kafka" in texts(hashing.search("Kafka", mode="keyword"))
    assert texts(hashing.search("Redis", mode="keyword")) == []
    near = hashing.search("the queue is Kafka", mode="vector").hits
    assert [hit.why["cosine"] > 0.3 for hit in near] == [True, True]
    for fields, message in CHANGE_MAKES_NO:
        id = hashing.add("The cache is Redis").id
        with pytest.raises(InvalidInput, match=message):
            hashing.update(id, **fields)
        assert [event.action for event in hashing.history(id)] == ["add"]


def test_fields_change_alone_and_only_as_they_were_read(memory, clock):
    id = memory.add("The cache is Redis", expires_at=NOW + DAY).id
    given = {"importance": 9, "tags": ("x",), "metadata": {"a": 1}, "answered": True}
    changed = memory.update(id, kind="note", entities=["technology:Redis"], **given)
    assert {name: getattr(changed, name) for name in given} == given
    unchanged = ("general", "The cache is Redis", NOW + DAY)
    assert pick(changed, "kind content expires_at") == unchanged
    cleared = memory.update(id, clear=["expires_at", "answered"])
    assert pick(cleared, "expires_at answered") == (None, None)
    noted = Passage("The queue is Kafka", metadata={"turn": "t1", "role": "assistant", "page": 3})
    [read] = memory.ingest([(Source("talk.jsonl", "transcript"), [noted])]).outcomes
    changed = memory.update(read.id, metadata={"page": 4, "role": "user", "a": 1})
    assert changed.metadata == {"turn": "t1", "role": "assistant", "page": 4, "a": 1}
    id = memory.add("The cache is Redis").id
    was = memory.one(id)
    clock.move(seconds=1)
    changed = memory.update(id, was=was, importance=8)
    with pytest.raises(Overtaken, match="changed by another process"):
        memory.update(id, was=was, importance=2)
    assert memory.one(id) == changed


def test_forgotten_is_hidden_and_an_earlier_version_comes_back_with_all_it_had(memory):
    id = memory.add(JWT).id
    assert memory.forget(id[:-2]).ids == (id,) == memory.forget(id).ids
    assert texts(memory.search("JWT")) == [] == memory.list()
    assert texts(memory.search("JWT", filter=memory.filter(include_deleted=True))) == [JWT]
    assert memory.restore(id).deleted_at is None
    assert texts(memory.search("JWT")) == [JWT]
    with pytest.raises(InvalidInput, match="neither forgotten nor replaced"):
        memory.restore(id)
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
    for version in (0, 99):
        with pytest.raises(NotFound, match=f"no version {version}"):
            memory.restore(id, version)
    id = memory.add(JWT).id
    memory.update(id, content="Tokens are opaque strings now")
    memory.forget(id)
    memory.add(JWT)
    before = memory.history(id)
    with pytest.raises(InvalidInput, match="already says exactly this"):
        memory.restore(id, version=1)
    assert memory.one(id).deleted_at is not None and memory.history(id) == before


def test_a_purged_memory_is_gone_for_good(memory, tmp_path):
    merger = "The merger with Zebracorp is on {}".format
    id = memory.add(merger("Tuesday")).id
    memory.update(id, content=merger("Wednesday"))
    memory.forget(id, purge=True)
    with pytest.raises(NotFound):
        memory.one(id)
    for day in ("Tuesday", "Wednesday"):
        assert memory.add(merger(day)).status == "purged"
    assert memory.stats().memories == 0 and b"zebracorp" not in stored(tmp_path).lower()
    assert memory.add(merger("Tuesday"), allow_purged=True).status == "added"


def test_votes_and_looks_count_as_use_and_searches_do_not(memory, clock):
    id = memory.add(JWT).id
    clock.move(days=3)

    def used():
        return pick(memory.one(id), "access_count last_accessed")

    for question in ("JWT", "authentication", "nothing of the kind"):
        memory.search(question)
    memory.get(id, count=False)
    assert used() == (0, NOW)
    memory.get(id[:-3])
    assert used() == (1, clock.now)
    assert (memory.vote(id).usefulness, memory.vote(id, -3).usefulness) == (1, -2)
    assert used() == (3, clock.now)
    with pytest.raises(InvalidInput, match="vote 101 is outside"):
        memory.vote(id, 101)


@pytest.mark.parametrize("type", RELATIONS)
def test_memories_are_related_and_set_apart_again(memory, type):
    one = memory.add("Because the lock is never freed").id
    other = memory.add("Why does the worker hang?").id
    relation = memory.link(one[:-2], other, type)
    assert pick(relation, "source target type") == (one, other, type)
    assert [pick(found, "source type") for found in memory.relations(other)] == [(one, type)]
    assert (memory.one(other).superseded_by == one) is (type == "supersedes")
    assert memory.one(other).answered is (type == "answers")
    hit = next(hit for hit in memory.search("lock freed").hits if hit.memory.id == one)
    assert [other.id for _, other in hit.related] == [other]
    memory.unlink(one, other, type)
    assert memory.relations(one) == []
    assert pick(memory.one(other), "superseded_by valid_to answered") == (None, None, False)
    with pytest.raises(NotFound, match=f"has no '{type}' relation"):
        memory.unlink(one, other, type)


def test_what_was_replaced_or_answered_stays_so_until_its_last_relation_is_taken_back(memory):
    old = memory.add("We deploy with script one").id
    new = memory.add("We deploy from release branches", supersedes=[old]).id
    ended = memory.one(old).valid_to
    memory.forget(old)
    assert pick(memory.restore(old), "deleted_at superseded_by valid_to") == (None, new, ended)
    assert [pick(one, "source type") for one in memory.relations(old)] == [(new, "supersedes")]
    assert memory.restore(old).superseded_by is None
    assert [one.type for one in memory.relations(old)] == ["relates_to"]
    question = memory.add("Which port does staging use?", kind="question").id
    said = ("Staging uses 8081", "The port of staging stands in Consul")
    answers = [memory.add(text).id for text in said]
    for answer in answers:
        memory.link(answer, question, "answers")
    for answer, answered in zip(answers, (True, False), strict=True):
        memory.unlink(answer, question, "answers")
        assert memory.one(question).answered is answered
    a, b, c = (memory.add(text).id for text in ("one owl", "two mice", "three cats"))
    memory.link(b, a, "supersedes")
    memory.link(c, b, "supersedes")
    with pytest.raises(InvalidInput, match="would make a circle") as caught:
        memory.link(a, c, "supersedes")
    assert caught.value.hint == f"bethink restore {a}"
    with pytest.raises(InvalidInput, match="'likes' is not a relation"):
        memory.link(a, b, "likes")
    with pytest.raises(InvalidInput, match="related to itself"):
        memory.link(a, a)
    with pytest.raises(NotFound):
        memory.link(a, "ffffffff")


def test_another_text_is_embedded_in_place_of_the_content_redacted_guarded_and_purged(hashing):
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
    hashing.update(id, content="Tokens last an hour")
    assert hashing.one(id).metadata == {"ticket": 1} and cosine() < 0.9
    hashing.update(id, embedding_text=asked)
    assert cosine() > 0.99
    hashing.update(id, embedding_text="")
    assert cosine() < 0.9
    hashing.restore(id, version=1)
    assert hashing.one(id).content == "Tokens last fifteen minutes" and cosine() > 0.99
    token = "ghp_" + "a1B2" * 9
    id = hashing.add("CI pushes by itself", embedding_text=f"the token {token} of CI").id
    text = hashing.one(id).metadata["embedding_text"]
    assert token not in text
    hashing.trust = TRUST["agent"]
    for fields in ({"embedding_text": "x"}, {"metadata": {"embedding_text": "x"}}):
        with pytest.raises(InvalidInput, match="its metadata is for the user to change"):
            hashing.update(id, **fields)
    hashing.trust = TRUST["user"]
    model = hashing.embedder.model
    assert hashing.store.read_cache([hash_text(text)], model)
    hashing.update(id, content="CI pushes at night")
    hashing.forget(id, purge=True)
    assert not hashing.store.read_cache([hash_text(text)], model)
