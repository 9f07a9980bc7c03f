"""Settling: an answer that sums up what was agreed, that amends it, and words that refuse a proposal."""

from bethink.language.openers import FILLERS, PRAISE, YES
from bethink.language.pattern import Pattern

_SUM = (
    r"(?:re-?cap|settled|agreed|decided|to (?:summari[sz]e|sum up|recap)|in (?:summary|short)|summary"
    r"|(?:final|agreed|updated?|amended|revised|resulting|new) (?:[\w-]+ ){0,2}(?:polic(?:y|ies)|rules?|contract|spec|behaviou?r|design|plan|decision|order(?:ing)?|map(?:ping)?|semantics)"
    r")"
)
_RULE_IS = r"the (?:(?:final|new|resulting) )?(?:rule|policy|contract|decision) (?:(?:then|now|here) )?is\b"
_AMEND = r"(?:amend(?:ing|ed|s)?|supersed(?:es|ing|ed)|overrid(?:es|ing)|updat(?:ing|ed) the (?:rule|policy|decision|contract))"
SUMS_UP = Pattern(
    "sums up what was settled",
    rf"^\W{{0,4}}(?:(?:{YES}|{PRAISE}|{FILLERS}|then|understood|got it)\b[\s,.!:;—–-]{{1,4}}){{0,3}}(?:{_SUM}\b[^.!?\n]{{0,80}}?(?::|\s[—–-])|{_RULE_IS}|{_AMEND}\b)",
    matches=(
        "Recap of the accounting policy then: merge windows before summing",
        "Settled: bare numbers mean MiB",
        "Final policy: retry 5xx and 429",
        "Understood — amending the policy: 408 joins the set",
        "Amended rule, superseding the old one: disks are decimal",
        "To summarize: we deploy from main",
        "So the rule is that disks are decimal",
    ),
    rejects=(
        "I settled the dispute in the test",
        "The final test fails",
        "Let me sum up the files first",
        "Agreed, it is slow",
    ),
)
ACKNOWLEDGES_RULE = Pattern(
    "an answer that repeats what the user settled",
    r"^\W{0,4}(?:got it|understood|makes sense|clear|noted|ok(?:ay)?|perfect|agreed|will do)\b[\s,.!:;—–-]{1,4}(?!(?:you|we) (?:can|could|may|might|should|need)\b)(?=\S+(?: \S+){7})",
    matches=(
        "Got it - window_p95 sorts the window and removes the top 2 samples unconditionally",
        "Understood: the parser keeps comments and drops every blank line it finds",
    ),
    rejects=(
        "Got it.",
        "Okay, thanks",
        "The parser keeps comments and drops every blank line",
        "Makes sense. You can create a new changeset and run the release script again",
    ),
)
AMENDS = Pattern(
    "amends what was settled before",
    rf"\b{_AMEND}\b|\bamendment\b|\bgoing forward\b|\bno longer\b|\bas of (?:now|today)\b",
    matches=(
        "Amending the policy: 408 joins",
        "superseding the old 60-second cap",
        "Amendment after the audit",
    ),
    rejects=("Settled: bare numbers mean MiB",),
)
REFUSES = Pattern(
    "refuses what was proposed",
    rf"^\W{{0,4}}(?:(?:{FILLERS}|sorry|ok)[\s,.!:;—–-]{{1,4}})?(?:no\b(?! (?:worries|problem|doubt|need to worry))|nope\b|not (?!sure\b|yet\b|bad\b)|never[.!,]|absolutely not|wrong\b"
    r"|that(?:'s| is) (?:not|wrong)|it(?:'s| is) not\b|(?:please )?(?:don'?t|do not)\b|we tried|nein\b|non\b|いいえ|不[,，。是要]|不用)",
    start=True,
    matches=(
        "No, 30 seconds.",
        "No - binary across the board is as wrong",
        "It's not one bad edge",
        "Nope, never on Fridays",
        "That's not what I meant",
        "Don't do that",
    ),
    rejects=(
        "Not sure, what do you think",
        "No problem, go on",
        "Yes, do it",
        "Nothing else",
        "Now the tests",
    ),
)
