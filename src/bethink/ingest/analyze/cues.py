"""What commit messages are judged by: phrases that give a reason away, words that only describe, texts that machines write.

Data only; `commits` says how it is used. English, and gathered from the labelled messages in tests/fixtures/analyze/commits.txt.
"""

from __future__ import annotations

import re


def _forms(verbs: str) -> str:
    """Each verb as one writes it about a change: add, adds, added, adding."""
    return "|".join(
        rf"{verb}[ds]?" if verb.endswith("e") else rf"{verb}(?:s|es|ed|ing)?"
        for verb in verbs.split()
    )


def _any(*words: str) -> str:
    return "|".join("|".join(line.split()) for line in words)


_TYPE = r"\w{2,20}(?:\([^)]{0,60}\))?"  # fix(parser)
_BECAUSE = r"because(?! of (?:review|lint|style|formatting|the linter))"
_MONTHS = _any(
    "January February March April May June July August September October November December"
)

# What gives a reason away, and how strongly. The first group says that a reason follows; the second is what reasons are made of:
# failures, limits, evidence, consequences. The weights were chosen on the labelled messages, the last twenty of which came after.
CUES: tuple[tuple[str, float], ...] = (
    (_BECAUSE, 1.0),
    (r"so that\b", 0.8),
    (r"instead of|rather than|in favou?r of", 0.5),
    (r"due to|owing to", 0.7),
    (r"turns out|turned out|it appears that|we (?:found|noticed|saw|learned)\b", 1.0),
    (
        r"(?:we|i|was|were|been|have) decided|decision|we (?:chose|opted|agreed|settled)|deliberately|on purpose|by design|intentionally",
        1.0,
    ),
    (r"work(?:ing|ed)?[- ]?arounds?\b", 0.9),
    (
        r"root cause|(?:was|is|were|been) caused by|the (?:cause|culprit|reason|problem|issue|bug) (?:was|is|being)\b|the reason",
        1.0,
    ),
    (r"to (?:avoid|prevent|make sure|ensure|guard against|keep [\w ]{1,40} from)", 0.6),
    (r"otherwise|or else|the other way round", 0.6),
    (
        r"which (?:meant|means|made|caused|led|broke|would|could|breaks|leads|results|fails|failed)|meant that",
        0.7,
    ),
    (r"(?:led|leads|leading) to|resulted in|as a result", 0.7),
    (r"trade-?offs?|downside|drawback|the alternative|alternatives?\b", 0.8),
    (r"therefore|hence|thus\b|that(?:'s| is) why|this is why|for this reason", 0.8),
    (r"since (?:the|we|it|this|that|there|they|a|an|some|most|many|every|all)\b", 0.5),
    (r"not worth|at the cost of|we (?:need|want|cannot|can't)\b", 0.5),
    #
    (
        r"(?:crash|fail|leak|stall|hang|hung|starv|kill|break|broke|los[te]\b|loses|corrupt|reject|refus|died|dies|expired)\w*",
        0.4,
    ),
    (
        r"miss(?:ed|es)\b|hid\b|twice|infinite|silently|at random|nobody|wrong\w*|stolen|lacks?\b|bugs?\b|incidents?|outage|downtime",
        0.4,
    ),
    (r"too (?:slow|many|much|large|big|expensive|risky|fragile)", 0.4),
    (
        r"end[- ]of[- ]life|EOL\b|unmaintained|maintenance mode|deprecated|removed? (?:a|the|an|its|in)\b|incompatible|not compatible",
        0.4,
    ),
    (r"would(?:n't| not)?\b|could(?:n't| not)?\b|makes? (?:us|it)\b|as long as", 0.35),
    (r"in (?:practice|production)|under load|race condition|deadlock|regression", 0.35),
    (
        r"\d[\d.,]*\s?(?:%|ms|s|seconds?|minutes?|hours?|kB|KB|MB|GB|million|thousand|x|times)(?!\w)",
        0.3,
    ),
    (r", so (?!far|they can)|, but |, and (?:then|our|the)\b|except that", 0.3),
    (
        r"cannot|can't|couldn't|never|no longer|any ?more|does(?:n't| not)|did(?:n't| not)|is(?:n't| not)|must(?: not)?\b",
        0.3,
    ),
    (r"already|still|even|only|anyway|at all", 0.2),
    (
        r"(?:once|twice|\w+ times) (?:a|per) (?:day|week|month|year)|every (?:day|night|week|\w+day|time)|each time|about once",
        0.35,
    ),
    (
        r"stuck|until|not yet|blocked on|off by|dead\b|off again|without telling|the same \w+ (?:again|twice)|half (?:a|an|of|the)",
        0.3,
    ),
    (r"from now|have to|has to|had to|needed (?:for|to|by)|in order to", 0.3),
    (
        r"previously|used to|until now|before this|unfortunately|however|although|even though|surprisingly|subtle",
        0.3,
    ),
    (
        r"customers?|users? (?:could|saw|were|lost|had|complain)|(?:last|this) (?:week|month|year|quarter)",
        0.35,
    ),
    (rf"(?:on|since) (?:20\d\d|\w+day|{_MONTHS})", 0.35),
)
# What makes a subject explain itself, without a body.
STRONG = rf"{_BECAUSE}|so that|turns out|due to|to avoid|to prevent|root cause|caused by|rather than|instead of|work(?:ed|ing|s)? ?around|otherwise"
# "Uploads blocked a worker" tells what happened. "Replaced X" has no subject and "is cached" is no past, so the word before a
# form in -ed must not be one of the first list, and the word after it has to be one of the second.
NO_SUBJECT = frozenset(
    "is are be been being was were a an the and or not to get gets by can newly as of in for with only also".split()
)
OBJECT = frozenset(
    "a an the each it its on at after when our us one another to in them about every all half".split()
)
PAST = frozenset("was were had went got took came kept left saw gave fell hit ran hung".split())
NO_PAST = frozenset(
    "need used based named called added fixed updated moved removed expected required related generated intended".split()
)
# A sentence that opens so describes what was done, and its "fails" and "30 seconds" are features.
_DONE = _forms(
    "add adapt allow change check clean click contain convert cover create describe enable extract fix implement improve include introduce"
    " log make move pass provide read refactor regenerate remove rename replace return reuse run set show split support switch test update"
    " upgrade use write work"
)
_OFFERED = (
    r"made|typing|usage|now|you can|they can|users (?:can|get|may)|clients may|without it|there (?:should|are|is)|all (?:tests|callers)"
    r"|functions that|no functional|no behaviou?r"
)
DESCRIBES = re.compile(
    rf"(?i)(?:this (?:commit|change|patch|pr) )?(?:also )?(?:{_DONE}|{_OFFERED})\b"
)
# Subjects that ask for a reason: a body beneath them almost always gives it.
_ASKING = _any(
    "pin limit increase decrease raise lower reduce keep stop don'?t never drop disable avoid prevent switch replace vendor(?:ed)? ignore skip",
    "downgrade require lock force always choose prefer undo serve reland re-?apply hard-?code allowlist bundle fork separate hold compile order",
    "validate",
)
ASKS = re.compile(
    rf"(?i)(?:{_TYPE}:\s*)?(?:{_ASKING}|do not|give up|go back|back to|turn off|remove the|run .{{3,40}} before"
    r"|move .{3,60} (?:to|from|into|out of)|(?:read|write|use|give|make|build|store|fetch) .{3,60} "
    r"(?:only|everywhere|first|own|itself|instead|before|through|immutable|twice|ourselves))\b|.{3,60}, not \w"
)
# What is new describes itself: its conditions and limits are features, not reasons.
FEATURE = re.compile(
    rf"(?i)(?:feat(?:\([^)]{{0,60}}\))?:|(?:{_TYPE}:\s*)?"
    r"(?:add|implement|show|support|create|introduce|make|allow|new|display|provide|extend)\b)"
)
TRIVIAL = re.compile(
    r"(?i)(?:docs?|style|test|tests|ci|chore|lint|format)(?:\([^)]{0,60}\))?:"
    r"|.{0,80}\b(?:typos?|whitespace|formatting|reformat|spelling|grammar|lint(?:er|ing)?|isort|black|prettier|copyright|pep ?8|flake8|eslint"
    r"|review (?:comments|feedback))\b"
)
SENTENCES = re.compile(r"(?<=[.!?:])\s+|\n\n+|\n(?=[-*+] )")

# Subjects that tools write, or that people write without saying anything.
MACHINE = re.compile(
    r"""(?xi)
    Merge\ (?:branch|branches|pull\ request|remote-tracking|tag|commit|changes|from|master|main|develop)\b | Merged\ in\b
    | (?:build|chore|fix|ci)\(deps(?:-dev)?\) | (?:chore|build)(?:\([^)]{0,40}\))?:\ (?:release|bump|update\ dep|version|deps)
    | Bump\ \S+(?:\ and\ \S+)?\ from\b | Bump\ the\ \S+\ group | Lock\ file\ maintenance | pre-commit\ autoupdate
    | Update\ (?:dependency|dependencies|module|lock\ ?file|changelog|translations|submodules?|copyright|authors|contributors|README|actions/)\b
    | (?:chore\ ?:?\ )?(?:Release|Releasing|Prepare\ (?:for\ )?release|Bump\ version|Version\ bump|Set\ version|Post-release
      |Back\ to\ dev(?:elopment)?)\b.{0,40}$
    | v?\d+\.\d+(?:\.\d+)?\S{0,20}(?:\ \(\#\d+\))?$ | \[(?:maven-release-plugin|Gradle\ Release|automated|bot|ci\ skip|pre-commit\.ci)\]
    | Auto(?:mated|matic|-generated)?\b.{0,40}(?:update|commit|sync|release|import|generated) | Imported?\ translations?
    | Translated\ using\ Weblate | Initial\ commit$ | Sync\ with\ upstream
    """
)
UNFINISHED = re.compile(
    r"(?i)(?:wip|fixup!|squash!|amend!|tmp|temp|checkpoint|save|saving|todo|test commit|asdf|\.+)(?:[\s:!\]]|$)|\[wip\]"
)
BOT = re.compile(
    r"(?i)\[bot\]|-bot$|^(?:dependabot|renovate|greenkeeper|snyk|pre-commit-ci|github-actions|semantic-release|weblate|pyup|imgbot|mergify"
    r"|release-please|allcontributors)\b"
)
# Bodies that a tool wrote about itself. That an assistant helped to write a commit is a trailer, not a reason to drop it.
GENERATED = re.compile(
    r"(?i)this (?:commit|pr|pull request) (?:was|is|has been) auto(?:matically|-)? ?(?:generated|created)|dependabot will|sourced from \["
)
# Lines at the end of a message that are for other tools: `Signed-off-by: …`, `Fixes #12`, an address alone.
_KEYS = _any(
    "signed-off-by co-authored-by co-developed-by reviewed-by acked-by tested-by reported-by suggested-by helped-by approved-by merged-by",
    "on-behalf-of cc change-id reviewed-on fixes closes close resolves refs? references link pr gh jira cherry-picked-from git-svn-id",
    "piperorigin-revid auto-submit commit-queue run-try-bot trybot-result bazel-id x-[\\w-]{1,40}",
)
TRAILER = re.compile(
    rf"(?i)(?:{_KEYS}|related(?: to)?|see(?: also)?|part of|pull[- ]request|differential revision|test plan|backport of)(?::|\s+#?\d|\s+\S{{1,20}}#\d|$)"
    r"|(?:bug|issue):?\s+(?:#?\d|https?:|[A-Z]{2,10}-\d)|(?:🤖\s*)?(?:auto-?)?generated (?:with|by) \S|\(cherry picked from|https?://\S+$|#\d+\.?$"
)
# Lines that were pasted rather than written: code, quotes, logs, traces, the questions of a template.
LOG = re.compile(
    r"""(?x)
    \s{4,}\S | \t | > | \$\ | \#\ ?(?:Please\ enter|Conflicts|On\ branch) | >>>\ | \+\+\+\ | ---\ [ab]/ | @@\ | diff\ --git
    | \[?\d{4}-\d\d-\d\d[T\ ]\d\d:\d\d | \[?\d\d:\d\d:\d\d
    | [\[<(]?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|FATAL|TRACE|CRITICAL|PANIC)\b[\]>)]?[\ :\]]
    | panic:[ ] | fatal:[ ] | error(?:\[\w+\])?:[ ] | warning:[ ] | Caused\ by:[ ] | [\w.]{1,80}(?:Error|Exception):[ ] | goroutine\ \d
    | E\ {2,}\S | FAILED\ \S | Traceback\ \( | File\ "[^"]{1,200}",\ line | at\ [\w$.<>]+\( | [-*+]\ \[[\ xX]\][ ]
    | \#{1,4}\ (?:Checklist|Type\ of\ change|How\ (?:has|was)\ this|Description|Motivation|Screenshots|Related|Summary\ of|Test\ plan|What|Why)\b
    """
)
