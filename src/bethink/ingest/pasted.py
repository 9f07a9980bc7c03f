"""Which part of what a user sends was written by somebody else: an issue, a page, a log, a mail, another person's words.

People announce what they paste ("look at this", "can you answer this?", "the README says:"), or it shows by its form: a
document with headings behind a sentence of their own, the headings of an issue, the head of a mail, lines of a chat.
From there on all of the turn counts as pasted, because a pasted text can end in any words.

This module sees one turn. It does not know what the text says or who wrote it; code, quotations and logs inside a text
are left out by `sentences` anyway.
"""

from __future__ import annotations

import re
from functools import cache

SHOWN = 20_000  # characters that are looked at: what begins later is not taken for an idea either

_TEXT = (
    r"(?:issues?|tickets?|bug reports?|errors?|logs?|output|e-?mails?|mails?|messages?|reports?|reviews?|comments?|articles?|pages?"
    r"|docs?|documentation|readme|threads?|posts?|transcripts?|discussions?|feedback|answers?|responses?|chats?|wiki|notes|text"
    r"|proposals?|rfcs?|descriptions?|question)"
)
_THIS = r"(?:this|these|the following|what follows|below)"
# What stands in the last sentence before something that is pasted.
_LEADS = (
    rf"\b(?:look(?:ing)? at|see|read|check(?: out)?|consider|review|summari[sz]e|translate|explain|answer|analy[sz]e|comment on|respond to"
    rf"|reply to|reading|think (?:of|about)|make of) (?:{_THIS}\b|(?:the|that|my|our|his|her|their) {_TEXT}\b)"
    rf"|\b(?:fix|solve|handle|triage|deal with) (?:the following|what follows|(?:this|the|that|their) {_TEXT}\b)"
    r"|\b(?:have|take) a look\b|\bwhat (?:does|do) (?:this|these|it|that) mean\b|\bcheck this out\b|\bany idea what\b"
    rf"|\b(?:here(?:'s| is| are)|this is|these are|i (?:got|found|received|saw)|we (?:got|received)|from) (?:the |an? |some |this |their |his |her )?"
    rf"(?:[\w-]+ ){{0,3}}{_TEXT}\b|\b(?:got|found|saw|received) (?:this|these)\b|\b(?:quote|forwarded|copied|pasted?|copy of)\b"
    r"|\b(?:schau|sieh|lies|beantworte|übersetze)\b.{0,30}\b(?:an|das|dies|dir)\b|\bhier (?:ist|sind) (?:das|die|der|ein)\b"
)
# The words of somebody else begin on this very line.
_SAYS = rf"\b(?:{_TEXT}|he|she|they|[A-Z]\w+) (?:says?|said|wrote|writes|reads?|states|replied|answered|reported)\s*:"
_HEADING = r" {0,3}#{1,6} +\S"
_FOREIGN = (
    r"(?: {0,3}#{1,6} +|\*\*)?(?:issue|pr|pull request|ticket|bug)\b(?: no\.?)? ?#?\d+"
    r"| {0,3}#{1,6} +(?:issue|bug|description|steps to reproduce|expected|actual|environment|reproduction|changelog|release notes"
    r"|installation|install|usage|getting started|license|table of contents|abstract|motivation|references|contributing)\b"
    r"|.{0,60}\b(?:opened|commented|reported|posted|asked|authored) (?:by|on|this|\d+ \w+ ago)\b"
    r"|(?:from|subject|sent|to|date|von|betreff|gesendet): \S.{0,200}$"
    r"|\[?\d{1,2}:\d\d(?::\d\d)?(?: ?[ap]m)?\]?[ ,-]{1,3}@?[\w.-]{2,30}:\s"
)


def find_pasted(text: str) -> int | None:
    """The line of a user's turn, from 0, from which on it was written by somebody else, or None."""
    own = False  # the user has said something of their own
    lead = False  # and announced what follows
    foreign = 0
    for at, line in enumerate(text[:SHOWN].split("\n")):
        if not line.strip():
            continue
        if lead or _compile(_SAYS).search(line[:400]):
            return at
        is_foreign = bool(_compile(_FOREIGN, re.IGNORECASE).match(line[:400]))
        heading = bool(_compile(_HEADING).match(line)) or line.strip() == "---"
        if heading and (own or is_foreign or foreign):
            return 0 if foreign and not own else at
        foreign += is_foreign
        if foreign > 1:
            return 0
        own = own or not (heading or is_foreign)
        last = _compile(r"[^.!?]*[.!?:]?\s*$").search(line[-300:])
        lead = bool(last and _compile(_LEADS, re.IGNORECASE).search(last[0]))
    return None


def is_mostly_pasted(text: str) -> bool:
    """Whether at least half of a turn was written by somebody else."""
    start = find_pasted(text)
    if start is None:
        return False
    return 2 * len("\n".join(text.split("\n")[:start])) <= len(text)


@cache
def _compile(source: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(source, flags)
