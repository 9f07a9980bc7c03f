"""`Memory`, the one API behind every surface: telling, replacing, changing, forgetting, relating."""

import memories
import pytest
from memories import DAY, NOW, stored, texts
from stores import pick

from bethink.errors import InvalidInput, NotFound, Overtaken
from bethink.store.places import cache_key
from bethink.types import RELATIONS, TRUST

clock, open_memory, memory, hashing = (
    memories.clock,
    memories.open_memory,
    memories.memory,
    memories.hashing,
)
JWT = "Authentication uses JWT tokens with a 24h expiry"


def test_what_is_told_is_found_again(memory):
    outcome = memory.add("We deploy from main, never from a branch")
    assert outcome.status == "added" and (
        outcome.duplicate_of,
        outcome.similarity,
        outcome.redactions,
    ) == (None, None, 0)
    (hit,) = memory.search("how do we deploy?").hits
    assert hit.memory.id == outcome.id
    assert pick(hit.memory, "scope source trust") == (
        memory.project.scope,
        "note:user",
        TRUST["user"],
    )
    assert hit.memory.created_at == hit.memory.updated_at == NOW


def test_what_is_not_given_is_worked_out(memory):
    id = memory.add(
        "We decided to use PostgreSQL for src/billing/store.py because it is durable. It was not easy."
    ).id
    told = memory.one(id)
    assert told.kind == "decision" and told.importance == 7.0 and 0 < told.confidence <= 1
    assert told.summary.startswith("We decided to use PostgreSQL")
    assert {("PostgreSQL", "technology"), ("src/billing/store.py", "file")} <= set(told.entities)
    assert {"PostgreSQL", "src/billing/store.py"} <= set(told.keywords)


def test_what_is_given_is_kept(memory):
    expires, valid = NOW + DAY, NOW - DAY
    id = memory.add(
        "Plain words",
        kind="Gotchas",
        summary="short",
        importance=0,
        confidence=0.25,
        tags=("a", "b"),
        entities=("technology:Redis", "Maria"),
        expires_at=expires,
        valid_from=valid,
        metadata={"by": "hand"},
        source="session:1",
    ).id
    told = memory.one(id)
    assert pick(told, "kind summary importance confidence tags") == (
        "gotcha",
        "short",
        0.0,
        0.25,
        ("a", "b"),
    )
    assert {(entity.name, entity.type) for entity in told.entities} == {
        ("Redis", "technology"),
        ("Maria", "concept"),
    }
    assert (told.expires_at, told.valid_from, dict(told.metadata), told.source) == (
        expires,
        valid,
        {"by": "hand"},
        "session:1",
    )


SECRET = "sk-ant-api03-" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cE1gH3kL5nP7rS9uV1xY3bC5eF7hJ9lN"


def test_private_parts_and_secrets_are_never_stored(memory, tmp_path):
    outcome = memory.add(
        f"The key is {SECRET} <private>hunter2 is the password</private> and the cache is Redis",
        summary=f"key {SECRET}",
        tags=(SECRET,),
        entities=(SECRET,),
        metadata={"token": SECRET, "deep": [f"<private>hunter2</private> {SECRET}"]},
        source=f"note:{SECRET}",
    )
    assert outcome.redactions >= 5
    told = memory.one(outcome.id)
    assert "the cache is Redis" in told.content
    memory.update(
        outcome.id, content=f"Now {SECRET} <private>hunter2</private> and Valkey", summary=SECRET
    )
    memory.close()
    assert SECRET.encode() not in stored(tmp_path) and b"hunter2" not in stored(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "<private>all of it</private>",
        " <private>a</private>\n<private>b</private> ",
        "<private>never closed",
    ],
)
def test_what_is_wholly_private_is_refused(memory, text):
    with pytest.raises(InvalidInput, match="Nothing is left to remember"):
        memory.add(text)
    assert memory.stats().memories == 0


@pytest.mark.parametrize(
    ("text", "fields", "message"),
    [
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
    ],
)
def test_what_cannot_be_kept_is_refused_in_a_sentence(memory, text, fields, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        memory.add(text, **fields)
    assert caught.value.hint
    assert memory.stats().memories == 0


def test_the_same_text_is_told_to_be_known(memory):
    first = memory.add(JWT)
    again = memory.add(f"  {JWT}\n")
    assert pick(again, "id status duplicate_of similarity") == (
        first.id,
        "duplicate",
        first.id,
        1.0,
    )
    assert memory.stats().memories == 1


def test_a_near_duplicate_is_told_and_what_it_repeats(hashing):
    first = hashing.add(JWT)
    again = hashing.add("authentication uses JWT tokens, with a 24h expiry.")
    assert (again.status, again.duplicate_of, again.id) == ("near_duplicate", first.id, first.id)
    assert 0.9 <= again.similarity <= 1
    assert hashing.stats().memories == 1


def test_without_dedup_both_are_kept(hashing):
    assert [hashing.add(text, dedup=False).status for text in (JWT, JWT + ".")] == [
        "added",
        "added",
    ]


def test_statements_that_contrast_are_kept(hashing):
    pairs = [
        ("Use tabs for the indentation of Go files", "Use spaces for the indentation of Go files"),
        ("The nightly deployment runs on Monday", "The nightly deployment runs on Friday"),
        ("The upload limit of the gateway is 10 MB", "The upload limit of the gateway is 20 MB"),
    ]
    assert {hashing.add(text).status for pair in pairs for text in pair} == {"added"}


def test_a_given_replacement_ends_validity_and_leads_to_its_successor(memory, clock):
    old = memory.add("Sessions are kept in MySQL").id
    clock.move(days=10)
    new = memory.add("Sessions are kept in PostgreSQL", supersedes=[old[:-4]])
    assert new.status == "added" and new.supersedes == (old,)
    was = memory.one(old)
    assert (was.superseded_by, was.valid_to) == (new.id, clock.now)
    (hit,) = memory.search("MySQL sessions").hits
    assert hit.memory.id == new.id
    assert [(relation.type, other.id) for relation, other in hit.related] == [("supersedes", old)]
    assert texts(memory.search("sessions", filter=memory.filter(as_of=NOW + DAY))) == [
        "Sessions are kept in MySQL"
    ]
    assert len(memory.search("sessions", filter=memory.filter(include_superseded=True)).hits) == 2


def test_a_chain_of_replacements_is_returned_whole(memory, clock):
    ids = [memory.add("The port is 1000").id]
    for number in range(2, 6):
        clock.move(days=1)
        ids.append(memory.add(f"The port is {number}000", supersedes=ids[-1:]).id)
    (hit,) = memory.search("port 1000").hits
    assert hit.memory.id == ids[-1]
    assert [other.id for _, other in hit.related] == ids[-2::-1]


def test_a_validity_that_starts_later_ends_the_old_one_then(memory, clock):
    old = memory.add("Prices are in dollars").id
    memory.add("Prices are in euros", supersedes=[old], valid_from=NOW + 5 * DAY)
    assert memory.one(old).valid_to == NOW + 5 * DAY


def test_a_new_text_brings_its_own_summary_keywords_and_entities(memory, clock):
    id = memory.add("The cache is Redis", entities=("person:Maria",)).id
    clock.move(hours=1)
    changed = memory.update(id[:-3], content="The queue is Kafka")
    assert (changed.content, changed.summary) == ("The queue is Kafka", "The queue is Kafka")
    assert {entity.name for entity in changed.entities} == {"Kafka", "Maria"}
    assert (changed.created_at, changed.updated_at) == (NOW, clock.now)
    assert (
        texts(memory.search("Kafka")) == ["The queue is Kafka"]
        and texts(memory.search("Redis", mode="keyword")) == []
    )


def test_a_changed_text_is_found_by_its_new_meaning(hashing):
    id = hashing.add("Owls sleep by day").id
    hashing.add("Invoices are numbered")
    hashing.update(id, content="Invoices are printed")
    assert (
        len(
            [
                hit
                for hit in hashing.search("invoices", mode="vector").hits
                if hit.why["cosine"] > 0.3
            ]
        )
        == 2
    )


def test_fields_change_alone_and_times_can_be_emptied(memory):
    id = memory.add("The cache is Redis", expires_at=NOW + DAY).id
    changed = memory.update(
        id,
        kind="note",
        importance=9,
        tags=["x"],
        metadata={"a": 1},
        answered=True,
        entities=["technology:Redis"],
    )
    assert (
        changed.kind,
        changed.importance,
        changed.tags,
        dict(changed.metadata),
        changed.answered,
    ) == ("general", 9, ("x",), {"a": 1}, True)
    assert changed.content == "The cache is Redis" and changed.expires_at == NOW + DAY
    cleared = memory.update(id, clear=["expires_at", "answered"])
    assert cleared.expires_at is None and cleared.answered is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "Nothing to change"),
        ({"scope": "x"}, "scope cannot be changed"),
        ({"clear": ["content"]}, "content cannot be emptied"),
        ({"importance": 11}, "outside"),
        ({"kind": "opinion"}, "not a kind"),
        ({"content": " "}, "no text"),
        ({"content": "<private>x</private>"}, "Nothing is left"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(memory, fields, message):
    id = memory.add("The cache is Redis").id
    with pytest.raises(InvalidInput, match=message):
        memory.update(id, **fields)
    assert [event.action for event in memory.history(id)] == ["add"]


def test_history_keeps_every_change_in_order(open_memory, clock):
    memory = open_memory(actor="maria")
    id = memory.add("The cache is Redis").id
    clock.move(hours=1)
    memory.update(id, content="The cache is Valkey")
    memory.vote(id)
    memory.forget(id)
    events = memory.history(id[:20])
    assert [event.action for event in events][:2] == ["add", "update"] and events[
        -1
    ].action == "forget"
    assert {event.actor for event in events} == {"maria"}
    assert events[1].at == clock.now and events[1].before["content"] == "The cache is Redis"


def test_an_earlier_version_that_is_refused_changes_nothing(memory):
    id = memory.add(JWT).id
    memory.update(id, content="Tokens are opaque strings now")
    memory.forget(id)
    memory.add(JWT)
    before = memory.history(id)
    with pytest.raises(InvalidInput, match="already says exactly this"):
        memory.restore(id, version=1)
    assert memory.one(id).deleted_at is not None
    assert memory.history(id) == before


def test_forgotten_is_hidden_and_comes_back(memory):
    id = memory.add(JWT).id
    assert memory.forget(id[:-2]).ids == (id,) == memory.forget(id).ids
    assert texts(memory.search("JWT")) == [] == memory.list()
    assert texts(memory.search("JWT", filter=memory.filter(include_deleted=True))) == [JWT]
    assert memory.restore(id).deleted_at is None
    assert texts(memory.search("JWT")) == [JWT]
    with pytest.raises(InvalidInput, match="neither forgotten nor replaced"):
        memory.restore(id)


def test_an_earlier_version_comes_back_with_all_it_had(memory):
    id = memory.add(
        "The cache is Redis",
        kind="fact",
        expires_at=NOW + DAY,
        tags=("a",),
        entities=("person:Maria",),
    ).id
    first = memory.one(id)
    memory.update(id, content="The queue is Kafka", tags=["b"], metadata={"x": 1})
    memory.update(id, clear=["expires_at"], importance=9, kind="decision")
    memory.forget(id)
    back = memory.restore(id, version=1)
    for field in (
        "content",
        "summary",
        "kind",
        "importance",
        "tags",
        "expires_at",
        "content_hash",
        "metadata",
        "deleted_at",
    ):
        assert getattr(back, field) == getattr(first, field), field
    assert set(back.entities) == set(first.entities)
    assert texts(memory.search("Redis cache", mode="keyword")) == ["The cache is Redis"]
    assert memory.restore(id, version=len(memory.history(id))) == memory.one(id)
    for version in (0, 99):
        with pytest.raises(NotFound, match=f"no version {version}"):
            memory.restore(id, version)


def test_a_purged_memory_is_gone_for_good(memory, tmp_path):
    id = memory.add("The merger with Zebracorp is on Tuesday").id
    memory.update(id, content="The merger with Zebracorp is on Wednesday")
    memory.forget(id, purge=True)
    with pytest.raises(NotFound):
        memory.one(id)
    for text in ("Tuesday", "Wednesday"):
        refused = memory.add(f"The merger with Zebracorp is on {text}")
        assert refused.status == "purged"
    assert memory.stats().memories == 0 and b"zebracorp" not in stored(tmp_path).lower()
    assert (
        memory.add("The merger with Zebracorp is on Tuesday", allow_purged=True).status == "added"
    )


def test_votes_and_looks_count_as_use_and_searches_do_not(memory, clock):
    id = memory.add(JWT).id
    clock.move(days=3)
    for question in ("JWT", "authentication", "nothing of the kind"):
        memory.search(question)
    assert (
        memory.one(id).access_count,
        memory.list()[0].access_count,
        memory.one(id).last_accessed,
    ) == (0, 0, NOW)
    memory.get(id, count=False)
    assert memory.one(id).access_count == 0
    memory.get(id[:-3])
    assert (memory.one(id).access_count, memory.one(id).last_accessed) == (1, clock.now)
    assert (memory.vote(id).usefulness, memory.vote(id, -3).usefulness) == (1, -2)
    assert memory.one(id).access_count == 3
    with pytest.raises(InvalidInput, match="vote 101 is outside"):
        memory.vote(id, 101)


@pytest.mark.parametrize("type", RELATIONS)
def test_memories_are_related_and_set_apart_again(memory, type):
    one, other = (
        memory.add("Because the lock is never freed").id,
        memory.add("Why does the worker hang?").id,
    )
    relation = memory.link(one[:-2], other, type)
    assert (relation.source, relation.target, relation.type) == (one, other, type)
    assert [(found.source, found.type) for found in memory.relations(other)] == [(one, type)]
    assert (memory.one(other).superseded_by == one) is (type == "supersedes")
    assert memory.one(other).answered is (type == "answers")
    hit = next(hit for hit in memory.search("lock freed").hits if hit.memory.id == one)
    assert [other.id for _, other in hit.related] == [other]
    memory.unlink(one, other, type)
    assert memory.relations(one) == []
    assert pick(memory.one(other), "superseded_by valid_to answered") == (None, None, False)
    with pytest.raises(NotFound, match=f"has no '{type}' relation"):
        memory.unlink(one, other, type)


def test_what_was_replaced_before_it_was_forgotten_is_so_when_it_comes_back(memory):
    old = memory.add("We deploy with script one").id
    new = memory.add("We deploy from release branches", supersedes=[old]).id
    before = memory.one(old)
    memory.forget(old)
    back = memory.restore(old)
    assert (back.deleted_at, back.superseded_by, back.valid_to) == (None, new, before.valid_to)
    assert [(relation.source, relation.type) for relation in memory.relations(old)] == [
        (new, "supersedes")
    ]
    assert memory.restore(old).superseded_by is None
    assert [one.type for one in memory.relations(old)] == ["relates_to"]


def test_taking_a_replacement_back_leaves_the_one_before_it(memory, clock):
    old, first, second = (
        memory.add(f"The cache is {name}").id for name in ("Redis", "Valkey", "Dragonfly")
    )
    for new in (first, second):
        clock.move(days=1)
        memory.link(new, old, "supersedes")
    memory.unlink(second, old, "supersedes")
    assert pick(memory.one(old), "superseded_by valid_to") == (first, memory.one(first).created_at)
    memory.link(second, old, "supersedes")
    memory.link(old, first, "supersedes")  # so that falling back on the first would make a circle
    memory.unlink(second, old, "supersedes")
    assert memory.one(old).superseded_by is None
    memory.link(second, old, "supersedes")
    assert memory.restore(old).superseded_by is None
    assert {one.type for one in memory.relations(old) if one.target == old} == {"relates_to"}


def test_a_question_is_open_again_only_when_its_last_answer_is_taken_back(memory):
    question = memory.add("Which port does staging use?", kind="question").id
    answers = [
        memory.add(text).id
        for text in ("Staging uses 8081", "The port of staging stands in Consul")
    ]
    for answer in answers:
        memory.link(answer, question, "answers")
    memory.unlink(answers[0], question, "answers")
    assert memory.one(question).answered is True
    memory.unlink(answers[1], question, "answers")
    assert memory.one(question).answered is False


def test_a_memory_is_changed_only_as_it_was_read(memory, clock):
    id = memory.add("The port is 8080").id
    was = memory.one(id)
    clock.move(seconds=1)
    now = memory.update(id, content="The port is 8081", was=was)
    with pytest.raises(Overtaken, match="changed by another process"):
        memory.update(id, content="The port is 9090", was=was)
    assert memory.one(id) == now


def test_relations_that_make_no_sense_are_refused(memory):
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


def test_what_has_expired_is_hidden_unless_asked_for(memory, clock):
    memory.add("The freeze ends soon", expires_at=NOW + DAY)
    assert len(memory.search("freeze").hits) == len(memory.list()) == 1
    clock.move(days=2)
    assert memory.search("freeze").hits == () and memory.list() == []
    wide = memory.filter(include_expired=True)
    assert len(memory.search("freeze", filter=wide).hits) == len(memory.list(filter=wide)) == 1


def test_filters_by_kind_tag_importance_and_time(memory, clock):
    memory.add("The first owl", kind="fact", tags=("bird",), importance=2)
    clock.move(days=5)
    memory.add("The second owl", kind="decision", importance=9, entities=("person:Maria",))
    for wanted, expected in [
        ({"kinds": ["decision"]}, ["The second owl"]),
        ({"tags": ("bird",)}, ["The first owl"]),
        ({"min_importance": 5}, ["The second owl"]),
        ({"since": NOW + DAY}, ["The second owl"]),
        ({"until": NOW + DAY}, ["The first owl"]),
        ({"entities": ("maria",)}, ["The second owl"]),
        ({"kinds": ["self"]}, []),
    ]:
        filter = memory.filter(**wanted)
        assert (
            texts(memory.search("owl", filter=filter))
            == texts(memory.list(filter=filter))
            == expected
        ), wanted
    with pytest.raises(InvalidInput, match="'opinion' is not a kind"):
        memory.filter(kinds=["opinion"])


def test_another_text_is_embedded_in_place_of_the_content(hashing):
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


def test_the_text_that_is_embedded_is_redacted_guarded_and_purged(hashing):
    token = "ghp_" + "a1B2" * 9
    id = hashing.add("CI pushes by itself", embedding_text=f"the token {token} of CI").id
    text = hashing.one(id).metadata["embedding_text"]
    assert token not in text
    hashing.trust = TRUST["agent"]
    for fields in ({"embedding_text": "x"}, {"metadata": {"embedding_text": "x"}}):
        with pytest.raises(InvalidInput, match="its embedding_text is for the user to change"):
            hashing.update(id, **fields)
    hashing.trust = TRUST["user"]
    model = hashing.embedder.model
    assert hashing.store.read_cache([cache_key(text)], model)
    hashing.update(id, content="CI pushes at night")
    hashing.forget(id, purge=True)
    assert not hashing.store.read_cache([cache_key(text)], model)
