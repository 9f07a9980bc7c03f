"""Change and denial: what was replaced by what, that something holds no longer, and words that deny."""

import re

from bethink.language.pattern import Pattern

LONGEST_THING = 60  # characters of the old or the new thing of a change

# A part of a clause, in which "3.8" and "next.js" keep their dots. Bounded, because a text may hold a hundred thousand words
# such as "from".
_THING = rf"(?:[^,.;]|\.(?=\w)){{1,{LONGEST_THING + 1}}}"
_NAME = r"[\w.+#-]{1,40}"

# Each has two groups, `old` and `new`.
STATED_CHANGES = (
    Pattern(
        "moved from old to new",
        r"\b(?:switch(?:ed|ing)?|mov(?:ed|ing|e)|migrat(?:ed|ing|e)|chang(?:ed|ing|e)|convert(?:ed|ing)?|went)\s(?:\w+\s){0,4}?"
        rf"from\s(?P<old>{_THING}?)\s(?:over\s)?to\s(?P<new>{_THING})",
        fold=False,
        flags=re.IGNORECASE,
        matches=("We moved billing from MySQL to Postgres", "Switching from npm over to pnpm"),
        rejects=("We moved to Postgres", "from Monday to Friday"),
    ),
    Pattern(
        "replaced old with new",
        rf"\b(?:replac(?:ed|ing|e)|swap(?:ped|ping)?)\s(?P<old>{_THING}?)\s(?:with|by|for)\s(?P<new>{_THING})",
        fold=False,
        flags=re.IGNORECASE,
        matches=("Replaced moment with dayjs", "We swap Redis for Valkey"),
        rejects=("The replacement works with Redis",),
    ),
    Pattern(
        "new instead of old",
        rf"\b(?P<new>{_NAME}(?:\s{_NAME})?)\s(?:instead of|rather than|in place of)\s(?P<old>{_THING})",
        fold=False,
        flags=re.IGNORECASE,
        matches=("pnpm instead of npm", "Use Ruff rather than flake8"),
        rejects=("Use Ruff instead",),
    ),
    Pattern(
        "no longer old, but new",
        rf"\bno longer (?:use|using|need|run|on|support)\s(?P<old>{_THING}?)(?:,|;|\.(?!\w)|\bbut\b|\band\b)(?P<new>(?:{_THING}|,)*)",
        fold=False,
        flags=re.IGNORECASE,
        matches=("We no longer use Jenkins, but GitHub Actions",),
        rejects=("It no longer fails",),
    ),
    Pattern(
        "old is gone",
        rf"[,;.]\s(?:and\s)?(?:(?:the|our|old)\s){{0,2}}(?P<old>{_NAME})(?:\s\w{{1,20}})?\s(?:is|are|was|were)\s"
        r"(?P<new>)(?:gone|history|(?:switched|turned|powered) off|shut down|retired|decommissioned)\b",
        fold=False,
        flags=re.IGNORECASE,
        matches=("Grafana does it, the old Kibana is gone", "Use S3; Minio was shut down"),
        rejects=("Kibana is slow",),
    ),
)
SPEAKS_OF_CHANGE = Pattern(
    "speaks of a change",
    r"\b(?:no longer|instead|not .{0,20}any ?more|moved|switched|replaced|dropped|from now on|now|since|back to|became|changed|anymore"
    r"|as of|these days|gone|retired|used to)\b",
    matches=("We no longer deploy on Fridays", "It became optional", "not used any more"),
    rejects=("Deploys run on Fridays", "We know the port"),
)
# An agent that repeats a memory with one of these words does more than echo it.
TURNS_ROUND = Pattern(
    "turns what was said around",
    r"\b(?:not|no longer|never|instead|anymore|n't|switch\w*|mov\w+|chang\w+|replac\w+|wrong|outdated)\b",
    matches=("That is outdated", "We switched to pnpm", "never on Fridays"),
    rejects=("We use pnpm here",),
)
CHANGED_MIND = Pattern(
    "says that another decision follows",
    r"\b(?:changed (?:my|our) minds?|on second thoughts?|scratch that)\W{0,3}$",
    matches=("I changed my mind.", "hm, on second thought …"),
    rejects=("Nobody changed my mind about Redis",),
)

NEGATIONS = frozenset(
    "not no never none without nor neither disable disabled stop stopped avoid forbid forbidden".split()
)


def find_change(text: str) -> tuple[str, str] | None:
    """Return the old and the new thing of a stated change, or None."""
    line = " ".join(text.split())
    for pattern in STATED_CHANGES:
        found = pattern.find(line)
        if found and 0 < len(old := found["old"].strip()) <= LONGEST_THING:
            return old, found["new"].strip()[:LONGEST_THING]
    return None
