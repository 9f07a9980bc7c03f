"""A new statement against known ones, with a judge: what is done, what is only proposed, what is never done, and how it is undone."""

import time

import pytest
from case_tables import cases, each
from memories import texts

from bethink.errors import InvalidInput
from bethink.features import inbox, tending
from bethink.ingest.compare import KNOWN, MOST_PAIRS
from bethink.ingest.lexicon import tell_apart
from bethink.ingest.reconcile import LONGEST, SAME
from bethink.judge import KINDS, RELATED, Judgement, StatementReading
from bethink.types import TRUST, Passage

OLD = "The CAN bus runs at 250 kbit/s on the gearbox harness."
NEW = "Since the rework the gearbox harness has its CAN bus at 500 kbit/s."
PASSING = "The CAN bus tests of the gearbox harness are running again."
NAMES = {"NEW": NEW, "PASSING": PASSING, "LONGEST": LONGEST}
QUESTION = "Which bit rate does the CAN bus of the gearbox harness run at?"


class FakeJudge:
    """Says of every pair what it was told to say, and remembers what it was asked."""

    def __init__(self, relation="unrelated", probability=0.95):
        self.says, self.asked, self.wavers = (relation, probability), [], {}
        self.opens = False

    def relate(self, pairs, standings=()):
        self.asked += pairs
        self.standings = standings
        relation, probability = self.says
        shares = {**dict.fromkeys(RELATED, 0.0), relation: probability, **self.wavers}
        return [Judgement(relation, probability, shares) for _ in pairs]

    def read(self, pairs):
        kinds = {**dict.fromkeys(KINDS, 0.1), "problem": 0.9 if self.opens else 0.1}
        return [StatementReading(kinds, float("running" not in text), 0.0) for _, text in pairs]


@pytest.fixture
def judge():
    return FakeJudge()


@pytest.fixture
def memory(open_memory, judge):
    return open_memory(judge=judge)


@pytest.fixture
def tell(memory, clock, judge):
    """Gives the id of a known statement, and what became of a new one that stands so to it."""

    def tell(relation, probability=0.95, old=OLD, new=NEW, kind="fact"):
        judge.says = ("unrelated", 1.0)
        known = memory.add(old, kind=kind).id
        clock.move(days=1)
        judge.says = (relation, probability)
        return known, memory.add(new)

    return tell


@pytest.fixture
def agent(open_memory, judge):
    return open_memory(judge=judge, trust=TRUST["agent"])


def test_what_surely_replaces_does_so_at_once_and_one_command_undoes_it(memory, tell):
    old, outcome = tell("replaces")
    assert outcome.supersedes == (old,)
    assert texts(memory.search(QUESTION)) == [NEW]
    assert memory.restore(old).superseded_by is None and memory.one(old).valid_to is None
    assert set(texts(memory.search(QUESTION))) == {OLD, NEW}
    for queue in ("contradictions", "duplicates"):
        assert not inbox.list_queue(memory, queue).items


def test_what_may_replace_is_told_and_waits_in_the_inbox_and_the_newer_comes_first(memory, tell):
    old, outcome = tell("replaces", 0.4)
    assert outcome.supersedes == ()
    proposal = {"relation": "replaces", "id": old, "reason": "not sure", "probability": 0.4}
    assert [one._asdict() for one in outcome.proposals] == [proposal]
    hits = memory.search("CAN bus at 250 kbit/s").hits
    assert [hit.memory.content for hit in hits] == [NEW, OLD]
    assert [(one.type, other.id) for one, other in hits[0].related] == [("may_replace", old)]
    waiting = inbox.list_queue(memory, "contradictions").items[0].memories
    assert [one.id for one in waiting] == [outcome.id, old]
    as_of = memory.filter(as_of=memory.one(old).created_at)
    assert texts(memory.search(QUESTION, filter=as_of)) == [OLD]
    assert texts(memory.search('"250"', limit=1))[0] == NEW, "though only the older is found"


@each("relation,probability,wavers", "compare-where-the-judge-wavers-both")
def test_where_the_judge_wavers_both_stay(memory, tell, judge, relation, probability, wavers):
    judge.wavers = wavers
    old, outcome = tell(relation, probability)
    assert outcome.supersedes == () and memory.one(old).superseded_by is None
    assert texts(memory.search("CAN bus at 250 kbit/s"))[:2] == [NEW, OLD]


def test_what_was_told_earlier_is_replaced_or_answered_by_what_is_known(memory, clock, judge):
    new = memory.add(NEW).id
    clock.move(days=-7)
    judge.says = ("replaces", 0.95)
    old = memory.add(OLD)
    assert old.proposals == () and memory.one(old.id).superseded_by == new
    assert judge.asked == [(OLD, NEW)]
    judge.says = ("answers", 0.95)
    assert memory.one(memory.add(QUESTION, kind="question").id).answered
    assert texts(memory.search(QUESTION))[0] == NEW and not tending.find_contradictions(memory)


def test_an_answer_that_is_not_sure_is_proposed_and_waits(memory, tell):
    question, other = "What happens at a power failure?", "Fixed by a tcxo voltage of 1.8."
    old, outcome = tell("answers", 0.25, question, other, "question")
    assert [one.id for one in outcome.proposals] == [old] and not memory.one(old).answered
    assert len(tending.find_contradictions(memory)) == 1
    memory.update(old, answered=True)
    assert not tending.find_contradictions(memory)


def test_the_same_in_other_words_is_one_memory_and_the_caller_is_told_which(memory, tell):
    old, outcome = tell("same", new="The gearbox harness runs its CAN bus at 250 kbit/s.")
    assert (outcome.status, outcome.duplicate_of) == ("near_duplicate", old)
    assert len(memory.list()) == 1
    words = cases("compare-other-words-for-the-same")
    assert [pair for pair in words if tell_apart(*pair)] == []


@pytest.mark.parametrize(("old", "new"), cases("compare-what-differs-in-a-number"))
def test_what_differs_in_a_number_a_name_or_a_denial_is_never_the_same(memory, tell, old, new):
    assert tell_apart(old, new)
    assert tell("same", 0.99, old, new)[1].status == "added"
    assert len(memory.list()) == 2


@each("old,new,replaced", "compare-a-thing-of-another-number")
def test_a_thing_of_another_number_is_at_most_proposed_as_a_replacement(tell, old, new, replaced):
    known, outcome = tell("replaces", old=old, new=new)
    assert outcome.supersedes == ((known,) if replaced else ())
    assert [one.id for one in outcome.proposals] == ([] if replaced else [known])


@pytest.mark.parametrize(("relation", "kind", "old", "new"), cases("compare-what-is-settled"))
def test_what_is_settled_is_closed_and_can_be_opened_again(memory, tell, relation, kind, old, new):
    known, outcome = tell(relation, old=old, new=new, kind=kind)
    assert outcome.settles == (known,) and memory.one(known).answered
    assert ("answers", outcome.id) in {(one.type, one.source) for one in memory.relations(known)}
    assert texts(memory.search(old))[:2] == [new, old]
    assert memory.restore(known).answered is False
    assert "answers" not in {one.type for one in memory.relations(known)}
    with pytest.raises(InvalidInput):
        memory.restore(known)


def test_what_answers_or_does_closes_what_is_open(memory, open_memory, tell, judge):
    planned, outcome = tell("completes", kind="decision")
    assert outcome.supersedes == (planned,), "it is no to-do"
    agent = open_memory(judge=judge, trust=TRUST["agent"])
    done = agent.add("The gearbox harness has its CAN bus at 500 kbit/s now.")
    assert not done.proposals, "who carries it out does not dispute it"
    assert not tell("answers", old="I like Go. And you?", new="Rust, by far.")[1].supersedes
    judge.wavers = {"answers": 0.3}
    todo = "Find out how long a SKU of the shop can be."
    old, _ = tell("completes", 0.6, todo, "A SKU can be 18 long.", "question")
    assert memory.one(old).answered


@each("relation,new,types,asked", "compare-what-still-holds", NAMES)
def test_what_still_holds_is_not_touched(memory, tell, judge, relation, new, types, asked):
    """Nor by what nobody would miss and by what is no one statement, whatever the judge says."""
    old, outcome = tell(relation, new=new)
    assert (outcome.status, outcome.supersedes, outcome.settles) == ("added", (), ())
    assert outcome.proposals == () and memory.one(old).superseded_by is None
    assert len(memory.list()) == 2 and bool(judge.asked) is asked
    assert [one.type for one in memory.relations(old)] == types


@pytest.mark.parametrize("relation", ["replaces", "contradicts"])
def test_trust_has_the_last_word(memory, agent, clock, judge, relation):
    old = memory.add(OLD).id
    clock.move(days=1)
    judge.says = (relation, 1.0)
    outcome = agent.add(NEW)
    proposed = [(one.relation, one.reason) for one in outcome.proposals]
    assert (outcome.supersedes, proposed) == ((), [("replaces", "less trusted")])
    assert {one.type for one in memory.relations(old)} == {"may_replace", "contradicts"}
    assert texts(memory.search(QUESTION))[0] == OLD


def test_the_users_own_words_stand_for_an_agents(memory, agent, clock, judge):
    old = agent.add(OLD).id
    judge.says = ("same", 1.0)
    clock.move(days=1)
    assert memory.add("CAN on the gearbox harness: 250 kbit/s.").supersedes == (old,)


def test_an_agent_that_is_sure_says_so_with_the_same_text(memory, agent, clock, judge):
    old = agent.add(OLD).id
    clock.move(days=1)
    judge.says = ("replaces", 0.4)
    new = agent.add(NEW).id
    outcome = agent.add(NEW, supersedes=[old])
    assert (outcome.status, outcome.duplicate_of, outcome.supersedes) == ("duplicate", new, (old,))
    assert memory.one(old).superseded_by == new


def test_a_hundred_near_identical_statements_cost_bounded_work_and_none_is_lost(memory, judge):
    told = [Passage(f"Rack {at} of the lab is cooled by fan number {at}.") for at in range(100)]
    memory.add_many(told)
    assert len(memory.list(limit=200)) == 100
    assert len(judge.asked) <= MOST_PAIRS
    before = len(judge.asked)
    memory.add("Rack 200 of the lab is cooled by fan number 200.")
    assert len(judge.asked) - before <= KNOWN


def test_those_that_replace_each_other_in_turn_or_in_one_batch_stay_a_chain(memory, clock, judge):
    judge.says = ("replaces", 1.0)
    for text in (OLD, NEW, OLD, NEW):
        clock.move(days=1)
        assert memory.add(text).status == "added"
    assert texts(memory.list()) == [NEW]
    rates = [f"The gearbox harness has its CAN bus at {rate} kbit/s." for rate in (125, 250, 750)]
    memory.add_many([Passage(text) for text in rates])
    assert texts(memory.list()) == [rates[-1]]
    assert len(list(memory.export())) == 7


@pytest.fixture
def stored(memory, clock, judge):
    """Puts down two statements that nobody compared when they came."""

    def store(old=OLD, new=NEW, kind="fact"):
        judge.says = ("unrelated", 1.0)
        ids = []
        for text, of in ((old, kind), (new, "fact")):
            ids.append(memory.add(text, kind=of, dedup=False).id)
            clock.move(days=1)
        return ids

    return store


def planned(memory):
    return [step.action for step in tending.plan_consolidation(memory)]


@each("relation,kind,action", "compare-consolidation-does-what-the-judge")
def test_consolidation_does_what_is_sure(memory, stored, judge, relation, kind, action):
    old, new = stored(kind=kind)
    judge.says = (relation, 0.9)
    (step,) = [step for step in tending.plan_consolidation(memory) if step.action == action]
    assert step.memories[0].id == new
    assert tending.apply_steps(memory, [step]) == 1
    known = memory.one(old)
    assert (known.superseded_by == new) is (action == "replace")
    assert bool(known.answered) is (action == "answer")


def test_the_same_in_other_words_is_merged_and_what_differs_is_not(memory, stored, judge):
    stored(new="The gearbox harness runs its CAN bus at 250 kbit/s.")
    for probability, steps in ((0.9, ["merge"]), (SAME - 0.05, [])):
        judge.says = ("same", probability)
        assert planned(memory) == steps


def test_what_seems_to_disagree_by_its_words_alone_is_left_out(memory, stored, judge):
    stored("Uploads go to the north bucket.", "Uploads go to the south bucket.")
    for relation, found in (("unrelated", 0), ("contradicts", 1)):
        judge.says = (relation, 0.9)
        assert len(tending.find_contradictions(memory)) == found


def test_consolidation_lets_no_agent_replace_the_user(memory, agent, clock, judge):
    memory.add(OLD)
    clock.move(days=1)
    agent.add(NEW)
    judge.says = ("replaces", 1.0)
    assert set(planned(memory)) == {"contradict"}


@pytest.mark.parametrize(("typed", "replaced"), [("y\n", True), ("\n", False)])
def test_on_a_terminal_the_teller_decides_at_once(cli, monkeypatch, judge, typed, replaced):
    monkeypatch.setattr("bethink.api.Bethink.judge", judge)
    old = cli.add(OLD)
    judge.says = ("replaces", 0.4)
    told = cli.ok("add", NEW, stdin=typed, terminal=True)
    assert ("replaces" in told, "may replace" in told) == (replaced, not replaced)
    assert bool(cli.json("get", old)[0]["superseded_by"]) is replaced


@pytest.mark.parametrize("waits", [True, False])
def test_a_step_that_nobody_would_miss_is_done_only_where_it_waits(memory, tell, judge, waits):
    judge.opens = waits
    known, _ = tell("completes", old=PASSING)
    assert bool(memory.one(known).superseded_by) is waits


@pytest.mark.parametrize(("new", "proposed"), [(PASSING, []), (NEW, ["replaces"])])
def test_what_nobody_would_miss_is_not_even_proposed(tell, judge, new, proposed):
    judge.wavers = {"replaces": 0.4}
    _, outcome = tell("unrelated", 0.5, new=new)
    assert [one.relation for one in outcome.proposals] == proposed


@each("new,done", "compare-a-plan-that-is-dropped")
def test_a_plan_that_is_dropped_is_done_with_but_not_by_a_mere_thought(memory, tell, new, done):
    plan, _ = tell("replaces", old="Plan: move the wiki to Notion.", new=new, kind="todo")
    assert bool(memory.one(plan).answered) is done


def test_a_to_do_is_read_without_its_label_also_when_memory_is_tended(memory, stored, judge):
    stored(old="TODO: rotate the signing key", new="The signing key was rotated.", kind="todo")
    tending.plan_consolidation(memory)
    assert set(judge.asked) == {("rotate the signing key", "The signing key was rotated.")}


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
