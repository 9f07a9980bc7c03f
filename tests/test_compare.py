"""A new statement against known ones, through the API with chosen probabilities: what happens, what it says, and how it is undone."""

import time

import pytest
from memories import Verdict, texts

from bethink.config import Config
from bethink.errors import InvalidInput
from bethink.features import inbox, tending
from bethink.ingest.compare import MOST_KNOWN, MOST_PAIRS
from bethink.ingest.reconcile import CONTRADICTS, LONGEST_COMPARED, MARKS, ORDERS, RETIRES, SAME
from bethink.ingest.wording import are_distinct
from bethink.model import TRUST, Passage

OLD = "The CAN bus runs at 250 kbit/s on the gearbox harness."
NEW = "Since the rework the gearbox harness has its CAN bus at 500 kbit/s."
REWORDED = "The gearbox harness runs its CAN bus at 250 kbit/s."
QUESTION = "Which bit rate does the CAN bus of the gearbox harness run at?"


@pytest.fixture
def memory(open_memory, effects):
    return open_memory(judge=Verdict("unrelated"))


@pytest.fixture
def agent(open_memory, effects):
    return open_memory(judge=Verdict("unrelated"), trust=TRUST["agent"])


@pytest.fixture
def tell(memory, clock, effects):
    """Adds a known statement and a day later a new one with chosen effects. Gives the id of the first and the outcome of the second."""

    def tell(old=OLD, new=NEW, *, kind="fact", by=memory, automatic=None, **chances):
        effects.choose()
        known = memory.add(old, kind=kind).id
        clock.move(days=1)
        effects.choose(**chances)
        return known, by.add(new, automatic=automatic)

    return tell


def types_between(memory, id):
    return {one.type for one in memory.relations(id)}


# Retired


def test_what_surely_replaces_retires_the_old_one(memory, tell):
    old, outcome = tell(replaces=RETIRES)
    assert outcome.supersedes == (old,)
    assert memory.one(old).superseded_by == outcome.id


def test_a_retired_statement_is_not_found(memory, tell):
    tell(replaces=RETIRES)
    assert texts(memory.search(QUESTION)) == [NEW]


def test_a_retired_statement_is_found_as_of_its_time(memory, tell):
    old, _ = tell(replaces=RETIRES)
    then = memory.filter(as_of=memory.one(old).created_at)
    assert texts(memory.search(QUESTION, filter=then)) == [OLD]


def test_restoring_undoes_the_replacement(memory, tell):
    old, _ = tell(replaces=RETIRES)
    restored = memory.restore(old)
    assert (restored.superseded_by, restored.valid_to) == (None, None)
    assert set(texts(memory.search(QUESTION))) == {OLD, NEW}


@pytest.mark.parametrize(
    "queue",
    [
        pytest.param("contradictions", id="contradictions"),
        pytest.param("duplicates", id="duplicates"),
    ],
)
def test_what_was_restored_is_not_asked_about_again(memory, tell, queue):
    old, _ = tell(replaces=RETIRES)
    memory.restore(old)
    assert not inbox.list_queue(memory, queue).items


def test_statements_that_replace_each_other_in_turn_stay_a_chain(memory, clock, effects):
    effects.choose(replaces=1.0)
    for text in (OLD, NEW, OLD, NEW):
        clock.move(days=1)
        memory.add(text)
    assert texts(memory.list()) == [NEW]
    assert len(list(memory.export())) == 4


def test_statements_of_one_batch_replace_each_other(memory, effects):
    effects.choose(replaces=1.0)
    rates = [f"The gearbox harness has its CAN bus at {rate} kbit/s." for rate in (125, 250, 750)]
    memory.add_many([Passage(text) for text in rates])
    assert texts(memory.list()) == [rates[-1]]


def test_an_earlier_statement_that_is_told_later_is_retired_by_the_known_one(
    memory, clock, effects
):
    new = memory.add(NEW).id
    clock.move(days=-7)
    effects.choose(replaces=RETIRES)
    old = memory.add(OLD).id
    assert memory.one(old).superseded_by == new


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        pytest.param("CAN", False, id="a-single-word"),
        pytest.param("CAN bus " * (LONGEST_COMPARED // 4), False, id="a-long-text"),
        pytest.param(NEW, True, id="a-statement"),
    ],
)
def test_only_single_statements_are_compared(tell, effects, text, asked):
    _, outcome = tell(new=text, replaces=RETIRES)
    assert bool(outcome.supersedes) is asked
    assert bool(effects.asked) is asked


# Marked


def test_a_possible_replacement_marks_the_older_statement(memory, tell):
    old, outcome = tell(replaces=MARKS)
    assert (outcome.supersedes, outcome.marks, outcome.proposals) == ((), (old,), ())
    assert (memory.one(old).superseded_by, memory.one(old).newer) == (None, (outcome.id,))
    assert memory.one(outcome.id).newer == ()


def test_the_newer_of_two_comes_first(memory, tell):
    tell(replaces=MARKS)
    assert texts(memory.search("CAN bus at 250 kbit/s")) == [NEW, OLD]


def test_the_newer_of_two_that_may_have_to_do_with_each_other_comes_first(memory, tell):
    tell(changes=ORDERS)
    assert texts(memory.search("CAN bus at 250 kbit/s")) == [NEW, OLD]


def test_a_marked_statement_waits_in_no_queue(memory, tell, effects):
    tell(replaces=MARKS)
    assert not inbox.list_queue(memory, "contradictions").items


def test_forgetting_the_newer_one_clears_the_mark(memory, tell):
    old, outcome = tell(replaces=MARKS)
    memory.forget(outcome.id)
    assert memory.one(old).newer == ()


def test_restoring_the_newer_one_brings_the_mark_back(memory, tell):
    old, outcome = tell(replaces=MARKS)
    memory.forget(outcome.id)
    memory.restore(outcome.id)
    assert memory.one(old).newer == (outcome.id,)


def test_superseding_the_newer_one_clears_the_mark(memory, tell):
    old, outcome = tell(replaces=MARKS)
    other = memory.add("Nobody knows the rate of the bus", automatic="off").id
    memory.link(other, outcome.id, "supersedes")
    assert memory.one(old).newer == ()


def test_linking_supersedes_retires_a_marked_statement(memory, tell):
    old, outcome = tell(replaces=MARKS)
    memory.link(outcome.id, old, "supersedes")
    assert memory.one(old).superseded_by == outcome.id


def test_unlinking_may_replace_clears_the_mark(memory, tell):
    old, outcome = tell(replaces=MARKS)
    memory.unlink(outcome.id, old, "may_replace")
    assert memory.one(old).newer == ()


def test_the_mark_of_an_agent_is_not_shown(memory, agent, tell):
    """The less trusted statement is related, and what the user said keeps its place."""
    old, outcome = tell(by=agent, replaces=MARKS)
    assert outcome.marks == (old,)
    assert memory.one(old).newer == ()
    assert texts(memory.search("CAN bus of the gearbox harness"))[0] == OLD


# The same in other words


def test_the_same_in_other_words_is_one_memory(memory, tell):
    old, outcome = tell(new=REWORDED, same=SAME)
    assert (outcome.status, outcome.id, outcome.duplicate_of) == ("near_duplicate", old, old)
    assert texts(memory.list()) == [OLD]


def test_other_words_are_kept_as_a_version(memory, tell):
    old, _ = tell(new=REWORDED, same=SAME)
    kept = [event.after["content"] for event in memory.history(old) if event.action == "repeat"]
    assert kept == [REWORDED]


def test_a_version_in_other_words_can_be_brought_back(memory, tell):
    old, _ = tell(new=REWORDED, same=SAME)
    (number,) = [one.number for one in memory.history(old) if one.action == "repeat"]
    assert memory.restore(old, version=number).content == REWORDED


def test_the_same_other_words_are_kept_once(memory, tell):
    old, _ = tell(new=REWORDED, same=SAME)
    memory.add(REWORDED)
    assert [event.action for event in memory.history(old)].count("repeat") == 1


def test_words_that_are_not_surely_the_same_are_a_memory_of_their_own(memory, tell):
    tell(new=REWORDED, same=SAME - 0.05)
    assert len(memory.list()) == 2


def test_without_dedup_the_same_words_are_a_memory_of_their_own(memory, tell, effects):
    tell()
    effects.choose(same=1.0)
    assert memory.add(REWORDED, dedup=False).status == "added"


def test_dedup_can_be_switched_off_in_the_settings(open_memory, effects, clock):
    memory = open_memory(
        config=Config(embedding="hashing", dedup=False), judge=Verdict("unrelated")
    )
    memory.add(OLD)
    effects.choose(same=1.0)
    assert memory.add(REWORDED).status == "added"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(
            "CI takes about 12 minutes on main.",
            "a main build needs roughly twelve minutes",
            id="number-in-words",
        ),
        pytest.param(
            "The CDN caches images for 7 days.",
            "Images are cached on the CDN for a week.",
            id="other-unit",
        ),
        pytest.param(
            "Only checkout may write to orders.",
            "Nobody but checkout writes to orders.",
            id="only",
        ),
        pytest.param(
            "Primary keys are UUIDv7.", "We use version-7 UUIDs as primary keys.", id="name"
        ),
    ],
)
def test_other_words_are_not_told_apart(one, other):
    assert not are_distinct(one, other)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("The cache lives for 7 days.", "The cache lives for 8 days.", id="number"),
        pytest.param(
            "The cache lives for seven days.", "The cache is kept nine days.", id="number-word"
        ),
        pytest.param("Staging has debug logging.", "Debug logging is on in production.", id="part"),
        pytest.param("Releases are done by Anna.", "The release manager is Tobias.", id="person"),
        pytest.param(
            "Retries are enabled for uploads.", "Retries are not enabled for uploads.", id="denial"
        ),
        pytest.param(
            "Logs go to app_log/main.txt now.", "Logs go to app_log/other.txt now.", id="path"
        ),
        pytest.param(
            "Run `make all` before a push.", "Before a push `make -k all` is run.", id="option"
        ),
    ],
)
def test_what_differs_in_a_detail_is_kept_whatever_the_judge_says(memory, tell, old, new):
    assert tell(old, new, same=0.99)[1].status == "added"
    assert len(memory.list()) == 2


# Closed


SETTLED = [
    pytest.param(
        "question",
        "How long can a SKU be?",
        "A SKU can be 18 characters long.",
        {"answers": 0.9},
        id="answered",
    ),
    pytest.param(
        "problem",
        "The mailer loses messages.",
        "A durable queue mends the mailer.",
        {"completes": 0.9},
        id="solved",
    ),
    pytest.param(
        "todo",
        "Rotate the deploy key of the shop.",
        "The deploy key was rotated.",
        {"completes": 0.9},
        id="done",
    ),
]


@pytest.mark.parametrize(("kind", "old", "new", "chances"), SETTLED)
def test_what_names_an_open_item_closes_it(memory, tell, kind, old, new, chances):
    known, outcome = tell(old, new, kind=kind, **chances)
    assert outcome.settles == (known,)
    assert memory.one(known).answered
    assert ("answers", outcome.id) in {(one.type, one.source) for one in memory.relations(known)}


@pytest.mark.parametrize(("kind", "old", "new", "chances"), SETTLED)
def test_what_closed_an_item_comes_before_it(memory, tell, kind, old, new, chances):
    tell(old, new, kind=kind, **chances)
    assert texts(memory.search(old))[:2] == [new, old]


@pytest.mark.parametrize(("kind", "old", "new", "chances"), SETTLED)
def test_what_was_closed_can_be_opened_again(memory, tell, kind, old, new, chances):
    known, _ = tell(old, new, kind=kind, **chances)
    assert memory.restore(known).answered is False
    assert "answers" not in types_between(memory, known)
    with pytest.raises(InvalidInput):
        memory.restore(known)


def test_an_agent_that_reports_work_closes_the_users_to_do(memory, agent, tell):
    old, outcome = tell(
        "Rotate the deploy key of the shop.",
        "The deploy key was rotated.",
        kind="todo",
        by=agent,
        completes=0.9,
    )
    assert outcome.settles == (old,)


def test_a_report_that_does_not_name_a_to_do_leaves_it_open(memory, tell):
    old, outcome = tell(
        "Need to implement a retry limit",
        "Fixed by adding a consumer that acknowledges late",
        kind="todo",
        completes=0.99,
    )
    assert outcome.settles == ()
    assert not memory.one(old).answered


# Trust


def test_an_agents_sure_replacement_of_the_users_statement_is_a_proposal(memory, agent, tell):
    old, outcome = tell(by=agent, replaces=1.0)
    assert outcome.supersedes == ()
    assert [(one.relation, one.reason) for one in outcome.proposals] == [
        ("replaces", "less trusted")
    ]
    assert types_between(memory, old) == {"may_replace", "contradicts"}


def test_the_users_statement_comes_before_an_agents_proposal(memory, agent, tell):
    tell(by=agent, replaces=1.0)
    assert texts(memory.search(QUESTION))[0] == OLD


def test_a_proposal_waits_in_the_inbox(memory, agent, tell):
    old, outcome = tell(by=agent, replaces=1.0)
    (item,) = inbox.list_queue(memory, "contradictions").items
    assert {one.id for one in item.memories} == {old, outcome.id}


def test_the_users_rewording_of_an_agents_note_is_a_memory_of_its_own(
    memory, agent, clock, effects
):
    old = agent.add(OLD).id
    clock.move(days=1)
    effects.choose(same=1.0)
    outcome = memory.add(REWORDED)
    assert outcome.status == "added"
    assert (memory.one(old).trust, memory.one(outcome.id).trust) == (TRUST["agent"], TRUST["user"])


def test_the_user_who_repeats_an_agents_words_raises_their_trust(memory, agent):
    old = agent.add(OLD).id
    outcome = memory.add(OLD)
    assert (outcome.status, outcome.id) == ("duplicate", old)
    assert memory.one(old).trust == TRUST["user"]


def test_an_agent_that_is_sure_says_so_with_the_same_text(memory, agent, clock, effects):
    old = agent.add(OLD).id
    clock.move(days=1)
    effects.choose(replaces=MARKS)
    new = agent.add(NEW).id
    outcome = agent.add(NEW, supersedes=[old])
    assert (outcome.status, outcome.duplicate_of, outcome.supersedes) == ("duplicate", new, (old,))
    assert memory.one(old).superseded_by == new


@pytest.mark.parametrize("trust", ["pasted", "import"])
def test_pasted_or_imported_text_changes_nothing(memory, open_memory, tell, trust):
    stranger = open_memory(judge=Verdict("unrelated"), trust=TRUST[trust])
    old, outcome = tell(by=stranger, replaces=1.0)
    assert (outcome.supersedes, outcome.marks, outcome.proposals) == ((), (), ())
    assert memory.relations(old) == []


# How much may happen by itself


def test_a_marked_statement_stays(memory, tell):
    old, outcome = tell(automatic="mark", replaces=1.0)
    assert (outcome.supersedes, outcome.marks) == ((), (old,))
    assert memory.one(old).superseded_by is None


def test_with_mark_nothing_is_merged(memory, tell):
    _, outcome = tell(new=REWORDED, automatic="mark", same=1.0)
    assert outcome.status == "added"


def test_with_mark_the_same_text_is_still_stored_once(memory, tell):
    old, outcome = tell(new=OLD, automatic="mark")
    assert (outcome.status, outcome.id) == ("duplicate", old)


def test_with_mark_nothing_is_closed(memory, tell):
    kind, old, new, chances = SETTLED[2].values
    known, outcome = tell(old, new, kind=kind, automatic="mark", **chances)
    assert outcome.settles == ()
    assert not memory.one(known).answered


def test_with_off_nothing_is_compared(memory, tell, effects):
    old, outcome = tell(automatic="off", replaces=1.0)
    assert (outcome.status, outcome.supersedes, outcome.marks) == ("added", (), ())
    assert memory.relations(old) == []
    assert effects.asked == []


@pytest.mark.parametrize("automatic", ["mark", "off"])
def test_an_explicit_replacement_counts_at_every_level(memory, automatic):
    old = memory.add(OLD).id
    outcome = memory.add(NEW, supersedes=[old], automatic=automatic)
    assert outcome.supersedes == (old,)


def test_the_setting_automatic_counts_where_a_call_says_nothing(open_memory, clock, effects):
    memory = open_memory(
        config=Config(embedding="hashing", automatic="mark"), judge=Verdict("unrelated")
    )
    old = memory.add(OLD).id
    clock.move(days=1)
    effects.choose(replaces=1.0)
    assert memory.add(NEW).marks == (old,)


def test_an_unknown_level_is_refused(memory):
    with pytest.raises(InvalidInput, match="automatic"):
        memory.add(OLD, automatic="sometimes")


# Bounded work


def test_a_hundred_near_identical_statements_are_all_kept_at_a_bounded_cost(memory, effects):
    told = [Passage(f"Rack {at} of the lab is cooled by fan number {at}.") for at in range(100)]
    memory.add_many(told)
    assert len(memory.list(limit=200)) == 100
    assert len(effects.asked) <= MOST_PAIRS


def test_a_single_statement_is_compared_with_a_bounded_number(memory, effects):
    memory.add_many([Passage(f"Rack {at} of the lab is cooled by fan {at}.") for at in range(50)])
    before = len(effects.asked)
    memory.add("Rack 200 of the lab is cooled by fan number 200.")
    assert len(effects.asked) - before <= MOST_KNOWN


def test_a_batch_costs_what_it_holds(open_memory, tmp_path):
    def cost(number):
        told = [f"Service {at} listens on port {at} of rack {3 * at}." for at in range(number)]
        memory = open_memory(database=tmp_path / f"{number}.db")
        began = time.process_time()
        memory.add_many([Passage(text, "fact") for text in told])
        return time.process_time() - began

    cost(10)
    # Four times as many; each against each would cost sixteen times as much.
    assert cost(1600) < 9 * cost(400)


# Tending, with the same probabilities


@pytest.fixture
def stored(memory, clock, effects):
    """Adds two statements that nobody compares when they come."""

    def store(old=OLD, new=NEW, kind="fact"):
        ids = []
        for text, of in ((old, kind), (new, "fact")):
            ids.append(memory.add(text, kind=of, automatic="off").id)
            clock.move(days=1)
        return ids

    return store


def planned(memory):
    return [step.action for step in tending.plan_consolidation(memory)]


@pytest.mark.parametrize(
    ("kind", "chances", "action"),
    [
        pytest.param("fact", {"replaces": RETIRES}, "replace", id="replaces"),
        pytest.param("question", {"answers": 0.9}, "answer", id="answers"),
        pytest.param("todo", {"completes": 0.9}, "answer", id="completes"),
    ],
)
def test_consolidation_does_what_is_sure(memory, stored, effects, kind, chances, action):
    old, new = stored(kind=kind)
    effects.choose(**chances)
    (step,) = [step for step in tending.plan_consolidation(memory) if step.action == action]
    assert step.memories[0].id == new
    assert tending.apply_steps(memory, [step]) == 1
    known = memory.one(old)
    assert (known.superseded_by == new) is (action == "replace")
    assert bool(known.answered) is (action == "answer")


@pytest.mark.parametrize(
    ("chance", "steps"),
    [pytest.param(SAME, ["merge"], id="sure"), pytest.param(SAME - 0.05, [], id="not-sure")],
)
def test_consolidation_merges_what_is_surely_the_same(memory, stored, effects, chance, steps):
    stored(new=REWORDED)
    effects.choose(same=chance)
    assert planned(memory) == steps


@pytest.mark.parametrize(
    ("chance", "found"),
    [pytest.param(CONTRADICTS, 1, id="sure"), pytest.param(CONTRADICTS - 0.05, 0, id="not-sure")],
)
def test_a_contradiction_is_listed_only_where_the_judge_is_sure(
    memory, stored, effects, chance, found
):
    stored("Uploads go to the north bucket.", "Uploads go to the south bucket.")
    effects.choose(changes=chance)
    assert len(tending.find_contradictions(memory)) == found


def test_what_a_person_says_of_two_statements_is_not_asked_again(memory, stored, effects):
    old, new = stored()
    memory.link(new, old, "relates_to")
    effects.choose(changes=1.0)
    assert tending.find_contradictions(memory) == []


def test_consolidation_lets_no_agent_replace_the_user(memory, agent, clock, effects):
    memory.add(OLD)
    clock.move(days=1)
    agent.add(NEW, automatic="off")
    effects.choose(replaces=1.0)
    assert set(planned(memory)) == {"contradict"}


def test_a_to_do_is_read_without_its_label(monkeypatch, open_memory, clock):
    judge = Verdict("unrelated")
    asked = []
    relate = judge.relate
    monkeypatch.setattr(judge, "relate", lambda pairs: asked.extend(pairs) or relate(pairs))
    memory = open_memory(judge=judge)
    memory.add("TODO: rotate the signing key", kind="todo")
    clock.move(days=1)
    memory.add("The signing key was rotated.")
    assert asked == [("rotate the signing key", "The signing key was rotated.")]
