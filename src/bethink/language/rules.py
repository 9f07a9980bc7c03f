"""Binding statements: wordings that require or forbid something, and wordings that only report."""

from bethink.language.pattern import Pattern

BINDS = Pattern(
    "asks something of anybody who touches its subject",
    r"\b(?:never|always|don'?t|do not|must(?:n't)?|should(?:n't)?|avoid|only|instead of|rather than|no longer|not allowed|forbidden|required?"
    r"|requires|needs? to|make sure|remember to|be careful|beware|unless|whenever|before|after|generated|by hand|read-only|do not edit"
    r"|source of truth)\b",
    matches=("Never edit the lock file", "The schema is generated", "Run it only after the tests"),
    rejects=("The lock file is large",),
)
TELLS_WHAT_HAPPENED = Pattern(
    "tells what happened rather than what holds",
    r"\b(?:i|i'(?:ve|m|ll|d)|we'(?:ve|re|ll)|let me|let's|was|were|had|did|found|fixed|added|removed|renamed|changed|moved|deleted|replaced"
    r"|updated|created|dropped|now|earlier|my|this session|root cause|problem|bug|suggests?|seems?|looks like|probably|maybe|fixing|broke"
    r"|broken|pushed|landed|merged|what happened|currently|today)\b",
    matches=("I fixed the parser", "The root cause is a race", "It seems slow"),
    rejects=("Never edit the lock file",),
)


def binds(text: str) -> bool:
    """Return True if a statement asks something of anybody who touches its subject."""
    return BINDS.holds(text)


def reports(text: str) -> bool:
    """Return True if a statement tells what happened rather than what holds."""
    return TELLS_WHAT_HAPPENED.holds(text)
