"""What new memories mean for old ones: what repeats, what contrasts and what replaces."""

from case_tables import cases, rules
from stores import make

from bethink.ingest.extract import entities
from bethink.ingest.lexicon import contrasts, find_change, mentions, say_the_same
from bethink.ingest.reconcile import SUBJECT, SUPERSEDED, Neighbour, reconcile, take_headline
from bethink.judge import RELATED, Judgement

JWT = "Auth uses JWT tokens with 24h expiry"
MAGIC = "Users sign in with a magic link that is sent by email"
# A new text, an old one, and why the new one is worth keeping.
DIFFERENT = cases("reconcile-different")


def told(text, **fields):
    return make(text, entities=entities(text), **fields)


@rules(
    {
        "reconcile-contrast-is-a-word-exchanged": contrasts,
        "reconcile-a-stated-change-names-the": find_change,
        "reconcile-a-text-mentions-a-thing": mentions,
        "reconcile-a-long-text-states-what": take_headline,
    },
    {},
)
def test_the_wording_of_statements_tells_how_they_stand_to_each_other(function, given, expected):
    assert function(*given) == expected


def test_what_says_something_else_is_kept_and_what_adds_nothing_is_the_same():
    for new, old, why in DIFFERENT:
        assert say_the_same(new, old) is (why is None)
        verdict = reconcile(told(new), [Neighbour(told(old), 0.99)], threshold=0.9)
        assert (verdict.duplicate is None) is bool(why)
    for new, old in cases("reconcile-alike", globals()):
        assert say_the_same(new, old)
        neighbour = Neighbour(told(old), 0.95)
        assert reconcile(told(new), [neighbour], threshold=0.9).duplicate is neighbour
    # Only near texts repeat, and only where that matters.
    for similarity, threshold, repeats in cases("reconcile-only-near-texts-repeat"):
        known = Neighbour(told(JWT + "."), similarity)
        verdict = reconcile(told(JWT), [known], threshold=threshold)
        assert (verdict.duplicate is not None) is repeats and verdict.supersedes == ()


OLD, OTHER, PORT = map(
    told, ("We use MySQL for billing", "We use Redis for caching", "MySQL runs on port 3306")
)
NEW = told("We use PostgreSQL for billing, not MySQL")
SWITCH = told("We switched from MySQL to PostgreSQL for billing")


NAMES = {"OLD": OLD, "OTHER": OTHER, "PORT": PORT, "NEW": NEW, "SUPERSEDED": SUPERSEDED}


def test_a_stated_change_replaces_what_is_near_or_names_its_subject():
    names = {"SUBJECT": SUBJECT, "SUPERSEDED": SUPERSEDED}
    for known, nearness, replaced in cases("reconcile-a-change-that-names-its", names):
        moved = told("We moved billing from PostgreSQL to CockroachDB")
        verdict = reconcile(moved, [Neighbour(told(known), nearness)], threshold=0.9)
        assert bool(verdict.supersedes) is replaced
    for neighbours, replaced in cases("reconcile-near", NAMES):
        near = [Neighbour(*one) for one in neighbours]
        for threshold in (0.9, None):
            verdict = reconcile(SWITCH, near, threshold=threshold)
            assert verdict.duplicate is None
            assert verdict.supersedes == tuple(memory.id for memory in replaced)
    # A contrast hides no duplicate behind it, and a change told before is one.
    contrast = Neighbour(told("We deploy on Friday"), 0.98)
    real = Neighbour(told("we deploy on Monday"), 0.97)
    assert reconcile(told("We deploy on Monday"), [contrast, real], threshold=0.9).duplicate is real
    before = Neighbour(told(SWITCH.content + "."), 0.99)
    assert reconcile(SWITCH, [before], threshold=0.9).duplicate is before


def test_what_a_conversation_made_of_a_trap_does_not_end_what_it_found_out_about_it():
    trap = "The default GITHUB_TOKEN starts no other workflow on the pull request it makes."
    mended = "Release Please uses a token of ours now."
    shares = {**dict.fromkeys(RELATED, 0.0), "replaces": 0.9, "unrelated": 0.1}
    for kind, session, replaced in cases("reconcile-mended"):
        old = told(trap, kind="gotcha", session="s1")
        new, judged = told(mended, kind=kind, session=session), Judgement("replaces", 0.9, shares)
        known = [Neighbour(old, 0.6)]
        verdict = reconcile(new, known, threshold=0.9, judged={old.id: judged})
        assert (verdict.supersedes == (old.id,)) is replaced
        assert bool(verdict.proposals) is not replaced
