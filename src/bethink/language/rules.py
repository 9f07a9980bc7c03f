"""Statements that bind: wordings by which a sentence says what is to be done or avoided, and those by which it only reports."""

from __future__ import annotations

import re

# "never", "must", "only after": the statement asks something of whoever touches its subject.
_BINDS = re.compile(
    r"(?i)\b(?:never|always|don['’]?t|do not|must(?:n['’]t)?|should(?:n['’]t)?|avoid|only|instead of|rather than|no longer|not allowed|forbidden|required?|requires|needs? to"
    r"|make sure|remember to|be careful|beware|unless|whenever|before|after|generated|by hand|read-only|do not edit|source of truth)\b"
)
# "I fixed", "the problem was": the statement tells what happened, which is over.
_REPORTS = re.compile(
    r"(?i)\b(?:I|I['’](?:ve|m|ll|d)|we['’](?:ve|re|ll)|let me|let['’]s|was|were|had|did|found|fixed|added|removed|renamed|changed|moved|deleted|replaced|updated|created|dropped|now|earlier|my|this session|root cause"
    r"|problem|bug|suggests?|seems?|looks like|probably|maybe|fixing|broke|broken|pushed|landed|merged|what happened|currently|today)\b"
)


def binds(text: str) -> bool:
    """Whether a statement asks something of whoever touches what it is about."""
    return bool(_BINDS.search(text))


def reports(text: str) -> bool:
    """Whether a statement tells what happened rather than what holds."""
    return bool(_REPORTS.search(text))
