"""Cue phrases of what people and agents say, and which of them stand in a sentence.

There are some eighty phrases of two hundred alternatives. An alternative is tried only where one of the words stands that it
cannot match without; these were found out from the patterns themselves (`bench/triggers.py`) and are kept beside the weights.
The outcome is that of searching the sentence for each phrase.

This module sees one sentence in small letters. What the phrases speak for, the weights of `intents` say.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache, reduce
from operator import or_
from pathlib import Path

from bethink.ingest.lookup import branches, compiled

WEIGHTS = Path(__file__).with_name("data") / "ideas.npz"

_THEY = r"(?:we|i|they|you|team)"
_START = r"^(?:(?:ok(?:ay)?|yes|yeah|yep|no|nope|right|so|and|but|well|then|also|hm+|all right|alright|fine|agreed)[,.:;]? )*"
# Cue phrases of conversations, held against small letters. Each is one feature; what it speaks for, the training finds out.
PHRASES = (
    # fixed
    r"\bno longer\b|\bany ?more\b",
    (
        r"\b(?:is|are|was|were|it's|that's|got|gets) (?:now )?(?:gone|fixed|solved|resolved|closed|restored|back|corrected|prevented"
        r"|avoided|cured)\b"
    ),
    r"\b(?:went|go|goes) away\b|\bdisappear(?:s|ed)?\b|\b(?:got|gets?) rid of\b",
    r"\bwork(?:s|ed|ing)? (?:again|now|since|after|fine)\b|\bagain\W*$|\bbuilds now\b",
    r"^\w+ing\b.{3,90}\b(?:\w+ed|\w+s|made|brought|got|cut|did|put|led)\b",
    r"\b(?:which|that|this|and) (?:stop|prevent|avoid|close|remove|fixe|fixed|keep|make|restore|rule|replace|get|solve)[sd]?\b",
    r"\bso (?:that )?[^.]{1,70}\b(?:no longer|can't|cannot|can no|can now|never|stays?|pass(?:es)?|works?|again|there are no|nothing)\b",
    r"\bby \w+ing\b",
    r"\b(?:is|are|get|gets|be) now\b|\bnow (?:\w+s|\w+ed|is|are|in)\b|^now (?:the|each|every|all) ",
    r"^\W*(?:fixed|solved|resolved|fix|solution|work-?around|done)\b",
    r"\bdid the trick\b|\bthe trick\b|\bwork-?around\b|\b(?:work|get|got|worked) (?:around|past)\b|\b(?:solves?|does) it\b|\bhelps\b",
    r"\bi(?:'ve| have)? (?:fixed|solved|patched|replaced|changed|corrected|made|removed|gave|stopped|worked around)\b",
    r"\b(?:brought|went|dropped|down|shrank|cut|reduced)\b[^.]{0,50}\bfrom\b[^.]{1,30}\bto\b",
    r"\b(?:fix(?:ed|es)?|solv(?:ed|es)|cured|resolv(?:ed|es)) (?:it|this|the|that|by|with|in)\b",
    # broken
    r"\b(?:doesn't|don't|does not|do not|didn't|isn't|aren't|won't|can't|cannot|couldn't|never|nothing|nobody|none)\b",
    r"^(?:there is|there's|there are) (?:no|an?)\b",
    (
        r"\b(?:the|an?|another|second|main|real|bigger|one) (?:issue|problem|bug|trouble|concern|drawback|catch|downside"
        r"|regression)\b|^(?:bug|issue|problem)\b"
    ),
    r"\b(?:when|whenever|as soon as|every time|each time|if) ",
    (
        r", so (?:the|an?|every|users?|it|they|we|one|anyone|all|some|old|two|both)\b|, which (?:is why|breaks?|makes|means|defeats"
        r"|costs|leaks)\b"
    ),
    r"\bsince (?:the|monday|tuesday|yesterday|last|we|i|upgrad\w+|this|friday)\b|\bafter (?:the|upgrad\w+|updat\w+|\w+ing)\b",
    r"\b(?:way |much |far )?too \w+|\btwice\b|\bforever\b|\bat all\b|\bevery (?:single|second|few)\b",
    r"\bkeeps? (?:\w+ing|getting)\b|\bstill (?:\w+ing|broken|fails?|wrong)\b|\bstarts? to\b",
    (
        r"\bany(?:one|body|thing) (?:with|can|who|on)\b|\bnothing (?:stops|prevents|checks|validates)\b|\bno (?:check|validation"
        r"|limit|way|rollback|test)s?\b"
    ),
    r"\berror:|\bexception\b|\b(?:4|5)\d\ds?\b|\bstack trace\b|\btraceback\b",
    r"\b(?:but|although|while|whereas|even though|yet) ",
    r"\b(?:instead of|rather than)\b",
    # chosen
    rf"{_START}(?:let'?s|let us|lets)\b",
    rf"{_START}{_THEY}(?:'ll| will| shall| are going to|'re going to|'m going to| won't| will not)\b",
    (
        rf"{_START}(?:we|i)(?:'re|'m| are| am)? (?:use|using|keep|keeping|drop|dropping|take|taking|go|going|stay|staying|want|accept"
        r"|skip|support|limit|ship|bill|store|host|only|stick|sticking|switching|moving|migrating|replace|bump|cap|make)\b"
    ),
    rf"{_START}(?:i|we) (?:don't|do not) (?:want|need|support|use)\b",
    (
        r"\b(?:from now on|going forward|from here on|onwards|that's final|final|full stop|settled|decided|non-negotiable|period"
        r"|the rule|on purpose)\b"
    ),
    (
        rf"{_START}(?:no|never|always|only|don't|stop|keep|use|drop|go with|go for|stick|cut|replace|ditch|scrap|forget|stay|turn off"
        r"|merge|migrate)\b"
    ),
    (
        r"\bi(?:'d| would) (?:suggest|recommend|go|lean|keep|prefer|use|rather|propose|say)\b|\bmy (?:recommendation|suggestion"
        r"|preference)\b|\bi (?:recommend|suggest|propose)\b|^recommended\b|\bi think we should\b|\bwe should (?:use|go|just|keep)\b"
    ),
    r"\b(?:stays?|remains|kept)\b",
    (
        r"\bas (?:agreed|decided|discussed|you (?:asked|wanted|said))\b|\bper (?:your|the)\b|\bagreed\b|\bchosen\b|\bapproved\b"
        r"|\brejected\b|\bwe (?:chose|picked|opted|went|settled|agreed|ended up|rejected|said|voted)\b|\bi (?:chose|picked|went with"
        r"|settled|kept|switched)\b"
    ),
    r"\b(?:is|are) (?:out of scope|off the table|out|overkill|not happening|enough)\b|\bwon't do\b|\bforget about\b|\bno need\b",
    (
        r"\b(?:not|n't|nothing|no|haven't|never) (?:\w+ )?deci(?:de|ded|sion)\b|\bdecide (?:later|yourself)\b|\byou decide\b"
        r"|\byour (?:call|decision|choice)\b|\bup to you\b|\bundecided\b|\bmade up\b"
    ),
    # to be done
    (
        r"^\W*(?:\[ \]|todo|fixme|hack|to ?do|action item|follow[- ]?up|next steps?|outstanding|remaining|left to do|open tasks?"
        r"|still open|not done|deferred|postponed|later|next (?:up|sprint|week)|tomorrow|on my list|note to self|what remains"
        r"|must have)\b"
    ),
    (
        r"\b(?:we|i|someone|somebody|they|team|it|that|this|which|also|still|there) (?:still |also |really )?(?:needs?|have|has"
        r"|ought|gotta|must|should|owe)\b"
    ),
    (
        r"\b(?:has|have|needs?|ought|is|are|remains?) (?:still |yet )?to (?:be|run|go|happen|come)\b|\bneeds? (?:a|an|some|more"
        r"|better|proper|tests?|docs|monitoring|\w+ing)\b"
    ),
    r"\bbefore (?:the|we|this|go-live|launch|release|anyone|publishing|beta)\b|\bonce (?:the|we|all|this)\b|\bafter the\b|\bby the end\b",
    (
        r"\b(?:at some (?:point|stage)|some ?day|one day|eventually|later(?: on)?|next (?:week|sprint|month|release|milestone"
        r"|quarter|step)|in the next|for (?:v\d|the next)|soon|long term|some time|in v\d)\b"
    ),
    r"\bforget\b|\bremember to\b|\bremind\b|\bkeep in mind\b|\bnote (?:to|for)\b",
    (
        r"\b(?:is|are|still|currently|yet) (?:missing|pending|outstanding|to be|not (?:yet )?(?:done|implemented|tested|written))\b"
        r"|\bhaven't been\b|\bhave not\b|\byet to\b|\blacks?\b|\bnot (?:yet )?(?:implemented|done)\b"
    ),
    (
        r"\bwould be (?:good|nice|great|worth|wise|useful)\b|\bworth (?:an?|adding)\b|\bwant to\b|\bwould love\b|\bmay want\b"
        r"|\bmight want\b|\bideally\b"
    ),
    r"\b(?:backlog|roadmap|ticket|upstream|the (?:todo )?list|milestone|the board|an issue|an adr)\b",
    rf"{_START}(?:you|now|then) (?:need|have|should|must|do|forgot|can|will)\b",
    # asked
    r"\?\W*$",
    rf"{_START}(?:what|why|how|which|who|where|when|whose|whats|what's|where's|how's)\b",
    rf"{_START}(?:is|are|does|do|did|can|could|should|would|will|may|has|have|isn't|couldn't|wouldn't|was|were|am|might) (?!not forget)",
    (
        r"\b(?:unclear|not sure|no idea|(?:don't|doesn't) know|wonder(?:ing)?|unknown|tbd|open (?:question|point)|to decide"
        r"|asking myself|figure out|find out|could tell me|remaining question|(?:brings? up|raises?|begs?) the question)\b"
    ),
    r"\b(?:whether|if (?:the|we|it|there))\b",
    r"[,:;-] (?:what|why|how|which|who|where|is|are|does|do|can|should)\b.{3,}\?",
    rf"{_START}(?:can|could|would|will) you\b(?! (?:tell me|explain|say))",
    rf"{_START}(?:want|would you like|do you want|shall|should i|any preference|does (?:that|this)|ready|need)\b",
    (
        rf"{_START}can we do\b|\bdid (?:you|that|it)\b|\bare you\b|\bdo you (?:see|remember|mean|prefer)\b|\banything else\b"
        r"|\bwhat(?:'s| is)? (?:next|the status)\b"
    ),
    # told for the moment
    (
        rf"{_START}(?:now |next |first |then |also |finally )*(?:let me|i'll|i will|i'm (?:going|now|adding|on)|i am|i need|i should"
        r"|i can|i could|i want)\b"
    ),
    (
        rf"{_START}(?:i(?:'ve| have)? (?:also )?)?(?:added|updated|created|renamed|extracted|removed|moved|refactored|split"
        r"|implemented|wired|formatted|replaced|committed|pushed|tidied|sorted|addressed|applied|written|put|grouped|used|ran|left"
        r"|read)\b"
    ),
    (
        r"\btests? (?:pass|are green)\b|\ball (?:tests|green)\b|\b(?:suite|pipeline|ci|linter|lint|build) (?:is )?(?:green|clean"
        r"|passe[sd]|succeeded)\b|\bpull request\b|\bthe pr\b|\brebas\w+\b|\b\d+ (?:passed|tests pass|files changed)\b"
    ),
    r":\s*$",
    (
        rf"{_START}(?:please )?(?:fix|run|add|make|write|show|rename|move|put|change|set|open|check|read|look|create|update|delete"
        r"|remove|implement|explain|list|count|review|summari[sz]e|generate|format|install|bump|take|give|find|grep|convert|insert"
        r"|swap|align|turn|tell|start|try|undo|revert|go ahead|do|save|draw|pull|close|commit|search|translate|skip|leave|answer"
        r"|document|compare|suggest|have a look|see|carry|kill|mark|stop)\b"
    ),
    (
        r"\bif (?:we|i|you|the [\w ]{2,20}) (?:had|used|were|was|went)\b|\bwould(?:'ve| have) \b|^had (?:we|i)\b|\bcould also\b"
        r"|\bin theory\b|\bone could\b|\bimagine\b|\byou could\b"
    ),
    r"\boptions?\b|\bapproach(?:es)?\b|\balternatives?\b|\bways\b",
    (
        r"\bmy (?:edit|mistake|fault|script|mock|first|previous|test)\b|\bi (?:forgot|misread|edited|tried|considered|wanted)\b"
        r"|\boriginally\b|\bearlier i\b"
    ),
    (
        r"\b(?:the (?:test|word|label|heading|title|column|button|section|placeholder|log message|file|variable|function"
        r"|class)) (?:is (?:named|called)|reads|says|should|must|text|header|takes|has)\b"
    ),
    r"\blet me know\b|\bif you (?:want|like|need)\b|\bhappy to\b|\bfeel free\b|\bjust (?:say|tell)\b|\bi can (?:also|add)\b",
    # found out
    (
        rf"{_START}(?:hence|therefore|thus|in (?:short|summary|conclusion|other words|practice|the end)|overall|bottom line"
        r"|net effect|lessons?|take-?away|tl;?dr|verdict|results?|reason|root cause|findings?|conclusion|insight|upshot|moral"
        r"|short answer|all in all|put differently|interesting)\b"
    ),
    r"^(?:ok |right,? )?so \b",
    r"\b\w+er than\b|\b(?:more|less|fewer|better|worse) than\b|\bcompared\b|\btimes (?:faster|slower)\b|\bx (?:faster|slower)\b|\b\d+x\b",
    (
        r", not (?:the|our|from|by|an?|its|in|with|on)\b|\bnot (?:the|an?|because|from) [^.]{1,40}\bbut\b|\bhas nothing to do\b"
        r"|\bis innocent\b|\bafter all\b"
    ),
    (
        r"\b(?:caused|due|explained) (?:by|to)\b|\bbecause\b|\bcomes? (?:down )?(?:from|to)\b|\bcame from\b|\bthe (?:real |actual "
        r"|main )?(?:reason|cause|culprit)\b|\bwhich is why\b|\bthat is why\b"
    ),
    r"\d ?%|\bpercent\b|\b\d[\d.,]* ?(?:ms|s|points|kb|mb|gb|hours|minutes)\b",
    r"\b(?:means?|implies|shows?|confirms?|proves?|explains|suggests|indicates|points? (?:at|to))\b",
    (
        r"\bturn(?:s|ed) out\b|\bwe (?:now )?(?:know|see|can rule)\b|\blearn(?:ed|t)\b|\bfound (?:out|that)\b|\bmeasured\b"
        r"|\btested\b|\bestablished\b|\bgood to know\b|\bi (?:checked|measured|suspect)\b|\bmy guess\b"
    ),
    (
        r"\bworth it\b|\bnot worth\b|\bno (?:difference|benefit|real|measurable)\b|\bonly (?:with|for|when|if|above|appears"
        r"|happens)\b|\bin practice\b|\bat fault\b"
    ),
    # told about the world
    rf"{_START}(?:our|we have|we're|we are|there are|each|every|all|both|some|only|nobody|my)\b",
    (
        r"\b(?:is|are) (?:stored|kept|read|written|built|generated|served|deployed|called|named|limited|handled|based|partitioned"
        r"|signed|split|retried|identified|done|cut|cached)\b"
    ),
    (
        r"\b(?:uses?|runs? (?:on|at|in|as|a)|lives? in|consists? of|contains?|supports?|speaks?|sends?|holds?|listens|talks? to"
        r"|goes (?:through|via)|expires?|follows?|is (?:an?|the|in|under|written))\b"
    ),
    r"^(?:fyi|background|for context|context|note that|afaik|iirc|currently)\b|\bwe call\b|\bour (?:word|convention|domain)\b|\bmeans\b",
    r"\b(?:i'm|i am) (?:the|an?)\b|\bi (?:use|work)\b|\bis responsible\b|\bowns\b|\bwe're (?:on|in|a|bound|three)\b",
    (
        r"\b(?:\d+k?|two|three|four|five|six|half) (?:\w+ )?(?:users|customers|people|nodes|rows|tests|services|tenants|devices"
        r"|roles|stages|kinds|environments|processes|databases|printers|boards|stores)\b"
    ),
    (
        r"\bevery (?:\w+ )?(?:minute|second|hour|day|week|month|night|thursday|friday|\d+)|\b(?:at|until) \d|\bper (?:month|day|year"
        r"|device|seat|tenant|key)\b|\bnightly\b"
    ),
)


def held(said: str) -> list[float]:
    """Which of the cue phrases stand in a sentence. Of each only those alternatives are tried that a word of it can belong to."""
    possible = reduce(
        or_, map(_called, set(compiled(r"[a-z]+|\d").findall(said))), _triggers()[0][""]
    )
    found, finders = [0.0] * len(PHRASES), _finders()
    while possible:
        at = possible.bit_length() - 1
        phrase, finds = finders[at]
        if finds(said):
            found[phrase] = 1.0
        possible ^= 1 << at
    return found


def alternatives() -> list[tuple[int, str]]:
    """Every alternative of every phrase, with the number of the phrase."""
    return [(at, branch) for at, phrase in enumerate(PHRASES) for branch in branches(phrase)]


@cache
def _finders() -> tuple[tuple[int, Callable[[str], object]], ...]:
    """How each alternative is looked for. One that is bound to the beginning is not tried at every place."""
    return tuple(
        (at, (compiled(branch, 0).match if branch.startswith("^") else compiled(branch, 0).search))
        for at, branch in alternatives()
    )


@lru_cache(maxsize=1 << 13)
def _called(word: str) -> int:
    """The alternatives that cannot match without this word, or without some of its letters, one bit for each."""
    runs, longest = _triggers()
    if word.isdecimal():
        return runs.get("0", 0)
    found = runs.get("=" + word, 0)
    for start in range(len(word)):
        for end in range(start + 1, min(start + longest, len(word)) + 1):
            found |= runs.get(word[start:end], 0)
    return found


@cache
def _triggers() -> tuple[dict[str, int], int]:
    """Words (`=word`), runs of letters and digits (`0`) → the alternatives of which every match holds one of theirs; and the
    length of the longest. Those that need none stand under the empty run. Made with the weights (`bench/triggers.py`)."""
    import numpy as np

    with np.load(WEIGHTS, allow_pickle=False) as stored:
        lines = stored["triggers"].tobytes().decode("utf-8").split("\n")
    runs: dict[str, int] = {"": 0}
    for at, line in enumerate(lines):
        for run in line.split() or [""]:
            runs[run] = runs.get(run, 0) | 1 << at
    return runs, max(map(len, runs))
