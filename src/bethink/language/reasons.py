"""The reason that a statement gives, in any wording.

A reason is either marked by a connective ("because", "due to", "to avoid", "…, so we") or implied by the form of the statement ("pnpm it is,
npm was too slow"). Marked reasons can be looked for in any text. Implied ones are only looked for in the statement itself: in running
text most clauses behind a comma are no reason for the clause before them.

A causal connective is left out of what is returned ("because", "since", "due to"); a purpose or a consequence keeps its own ("to keep the
image small", "otherwise they fight over the port"), because it would read as a fact without it. Every pattern has its examples in
tests/reasons.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

_LONGEST = 2_000  # characters of a text that are looked at
_SHORTEST = 3  # characters of a reason
EXPLANATION_WORDS = 4  # of what follows a prohibition and a colon, to be its reason; set by hand

# A character of a sentence, or a stop inside of a name or a number.
_WITHIN = r"(?:[^.!?\n]|[.!?](?=\S))"
# The end of a clause: of its sentence or its parentheses.
_END = r"(?=[.!?…](?:\s|$)|\)|\s[—–]\s|\s--?\s|;\s|\n|$)"
_CLAUSE = rf"(?P<reason>(?:\([^()\n]*\)|.)+?){_END}"  # `send()` is one piece
# The end of a leading clause: at its comma, or without one where the subject of the main clause begins.
_LEADING = r"(?P<reason>[^,;:.\n]{3,160}(?=,\s)|[^,;:.\n]{3,160}?(?=\s(?:we|i|you|they|there|every|each|nobody)\s))"

_MONTHS = r"jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
# Words after a "since" that gives a time.
_TEMPORAL = (
    rf"(?:then|\d|v\d|version|last|early|late|mid|yesterday|today|this|that|day one|q[1-4]\b|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    rf"|(?:{_MONTHS})[a-z]*\b|spring|summer|autumn|winter|christmas|release|we (?:started|began|moved|launched)"
    r"|the (?:beginning|start|release|launch|upgrade|update|move|migration|switch|last|first|new)\b)"
)
# Words that make a clause finite.
_AUXILIARY = (
    r"(?:am|is|are|was|were|has|have|had|can|could|cannot|will|would|must|should|may|might|do|does|did|need|needs|want|wants"
    r"|\w+n['’]t)"
)
_PAST_FORMS = "ran|got|became|broke|lost|took|kept|went|came|fell|grew|gave|made|began|ate|blew"
_PAST = rf"(?:{_PAST_FORMS}|cost|left|hit|\w{{3,}}ed)"
_FINITE = (
    rf"\b(?:{_AUXILIARY}|{_PAST}"
    r"|\w{3,}s (?:to|the|an?|our|its|their|it|us|them|no|not|too|more|so|all|every|everything|only|without|\d))\b"
)
# Words that explain a choice: a complaint, an impossibility, a comparison of cost or effort.
_JUDGING = (
    r"\b(?:too \w+|cannot|can['’]t|could(?:n['’]t| not)|won['’]t|would(?:n['’]t| not)?|did(?:n['’]t| not)|must not|mustn['’]t"
    r"|(?:do|does)(?:n['’]t| not) (?:support|work|scale|handle|have|offer|allow|know|fit|like|want|run|understand|speak|cover)"
    r"|nobody (?:[\w ]{3,20} )?(?:can|could|knows?|knew|want(?:s|ed)|understands?|understood|reads?|uses?d?|likes?|enjoys?)|impossible|unable|slow(?:er|ly)?|faster"
    r"|cheaper|expensive|easier|harder|better|worse|simpler|safer|painful|out of memory|ran out|runs out|gave nothing"
    r"|fail(?:s|ed|ing)|crash(?:es|ed)|breaks|broke|lost|leak(?:s|ed)|costs? (?:too|us|more|less|an?|\d+|two|three|half|twice)|hangs|hung|times out|timed out|locked up|kept \w+ing"
    r"|hell|flaky|blurry|buggy|noisy|brittle|fragile|clumsy|confusing|useless|un(?:readable|usable|stable|reliable)|annoy\w*|enough|(?:want|need)s? to|(?:doubled|tripled|exploded|without (?:any|a|tuning|trouble)|already (?:know|have|use)s?))\b"
)
_OBJECT = r"(?:the |an? |our )?[\w-]+(?:[.!,]|$| (?:in|on|at|for|from|into)\b(?! (?:sync|line|check|shape|order)\b))"
# Verbs of a purpose. "To keep sessions in Redis" says what a thing does; "to keep them small" says what for.
_PURPOSE = (
    rf"(?:not |never )?(?:avoid|reduce|prevent|get rid|allow|simplify|stay|ensure|protect|lower|speed|improve|minimi[sz]e|maximi[sz]e"
    rf"|comply|satisfy|enforce|guarantee|preserve|ease|enable|free up|spare|shorten|(?:keep|make|stop|limit|let|help)(?! {_OBJECT})"
    r"|save (?:money|time|costs?|us|space|memory|bandwidth|work|\w+ (?:per|a|every|each)\b)|cut (?:costs?|down|the (?:cost|bill|time|load))"
    r"|be (?:able|safe|sure|consistent|compatible|compliant|on the safe side)|have (?:one|a single|fewer|less|more))"
)
# Words that take an infinitive for their object: "we decided to keep" gives no purpose.
_TAKES_INFINITIVE = (
    r"(?:want|wants|wanted|need|needs|needed|have|has|had|going|decided|agreed|try|tried|trying|plan|plans|planned|chose|opted|how|used"
    r"|able|unable|supposed|like|ought|forget|remember|refuses?d?|necessary|possible|easy|hard|important|time|way|ways|is|are|was|were|it)"
)
_QUALITY = (
    r"(?:consistency|performance|compliance|simplicity|safety|security|privacy|speed|clarity|readability|convenience|compatibility"
    r"|testability|reproducibility|stability|reliability|traceability|accessibility|flexibility|portability|isolation|durability"
    r"|efficiency|transparency|redundancy|resilience|historical reasons|reasons)"
)

_MISHAP = r"\b(?:leak|outage|incident|breach|crash|audit|attack|complaints?|accident|fire|data loss|downtime|post-?mortem)\b"

_MARKED = (
    # The reason we pay for Datadog is the trace search.
    rf"\bthe (?:main |only |real )?reasons?\b[^.!?\n:]{{0,100}}?\b(?:is|was|are|were)\b(?: that| because)?:?\s+{_CLAUSE}",
    # Because of the audit, access needs two approvals. Since nobody could operate Kafka, …
    rf"(?:^|(?<=[.!?]\s))(?:because(?: of)?|due to|owing to|thanks to|on account of|given(?: that)?|considering(?: that)?|seeing that|now that"
    rf"|in (?:view|light) of|since (?!{_TEMPORAL}))\s*{_LEADING}",
    # As the vendor ends support in June, we replace it.
    r"(?:^|(?<=[.!?]\s))as (?!an?\b|of\b|for\b|soon\b|long\b|far\b|usual\b|before\b|always\b|discussed\b|agreed\b|mentioned\b|per\b|well\b)"
    r"(?P<reason>[^,;:\n]{8,160}),\s",
    # With the larger instance we no longer need the replica.
    r"(?:^|(?<=[.!?]\s))with (?P<reason>[^,;:\n]{3,120}?),? we (?:no longer|can|don['’]t need|now)\b",
    # To make rollbacks safe, a release never drops a column.
    rf"(?:^|(?<=[.!?]\s))(?P<reason>(?:in order )?to {_PURPOSE}\b[^,;:\n]{{2,120}}?)(?=,\s|\s(?:we|i|our|every|each|all|nobody)\s)",
    # … because the ledger needs serializable transactions
    rf"(?:\b(?:because(?: of)?|due to|owing to|thanks to|on account of|on (?:the )?grounds (?:that|of)|given (?:that|how)|considering that|seeing that|now that"
    rf"|in (?:view|light) of)|,\s(?:given|considering))\s+{_CLAUSE}",
    # … since the docs team knows Go templates
    rf"\bsince\s+(?!{_TEMPORAL})(?P<reason>(?=[^.;\n]*?(?:{_FINITE}|\w{{3,}}s\b)).+?){_END}",
    # … as the bundle is a third of the size
    rf"(?<!such)(?<!same)(?<!just)(?<!well)(?<!soon)(?<!long)(?<!far)\s+as\s+(?P<reason>(?=\S+\s\S+\s\S)(?:[\w'’-]+\s+){{1,6}}?{_AUXILIARY}\b.*?){_END}",
    # …, as Excel in Germany expects them
    rf",\s+as\s+(?!usual|before|always|well|discussed|agreed|mentioned|described|of\b|an?\b|in\b|on\b)"
    rf"(?P<reason>(?:[\w'’-]+\s+){{1,5}}?\w{{3,}}s\s[\w'’-]+.*?){_END}",
    # MySQL locked up under load, that's why …; the reason comes first.
    rf"(?:^|(?<=[.!?]\s))(?P<reason>{_WITHIN}{{8,240}}?)(?:[,;.]|\s[—–-])\s*(?:and )?"
    r"(?:that(?:['’]s| is) why|this is why|which is why|hence|therefore|thus|consequently|as a result|for (?:that|this) reason"
    r"|so(?! that\b| far\b| as to\b| (?:\w+ ){1,2}(?:can|could|notice|know|see)\b))\s",
    # … so that plans look the same everywhere; … so we notice when it hangs
    rf"\b(?P<reason>(?:so that|so as to|in order (?:not )?to|in order that|lest)\s.+?){_END}",
    rf"(?<=\w)(?<!\bok)(?<!and) (?P<reason>so (?:we|you|they|it|everyone|everybody|somebody|someone|people|users?|nobody|the \w+)\s.+?){_END}",
    rf",\s(?P<reason>so (?:\w+ ){{1,2}}(?:can|could|notice|know|see)\b.+?){_END}",
    # … to keep them small
    rf"\b(?!{_TAKES_INFINITIVE}\s)[\w`\"'’)]+,?\s(?P<reason>to {_PURPOSE}\b.+?){_END}",
    # …, otherwise they fight over the port
    rf"\b(?P<reason>(?:otherwise|or else)\s.+?){_END}",
    rf",\s(?P<reason>or (?:the [\w-]+|it|we|they|you|our [\w-]+|everything) (?:\w+s|will|would|can|get|lose|have)\s.+?){_END}",
    # …, which lets us sort them as text; It lets support switch them without a deploy; That way the shop stays fast.
    rf"\b(?P<reason>which (?:would|lets?|means?|keeps?|makes?|saves?|avoids?|allows?|gives?|helps?|prevents?|reduces?|cuts?|spares?"
    rf"|is (?:cheaper|faster|easier|simpler|safer|enough))\b.+?){_END}",
    rf"(?:^|(?<=[.!?;,]\s))(?P<reason>(?:it|this|that) (?:lets|allows|gives|saves|keeps|makes|avoids|helps|prevents|reduces|cuts|spares)\s.+?){_END}",
    rf"(?:^|(?<=[.!?;,]\s))(?P<reason>(?:that|this) way,?\s.+?){_END}",
    # … for consistency; … for the sake of the shops; … for easier parsing
    rf"\b(?P<reason>for (?:the sake of .+?|(?:[\w-]+ ){{0,2}}{_QUALITY}|(?:easier|better|faster|cheaper|lower|simpler|safer|less|fewer) [\w-]+"
    rf"(?: [\w-]+)?)){_END}",
    # The team picked Linear over Jira for its keyboard shortcuts.
    rf"\b(?:chose|chosen|pick(?:ed)?|prefer(?:red)?|selected|went with|bought|took)\b[^.;\n]*?\s(?P<reason>for (?:its|their|the)\s.+?){_END}",
    # …, a requirement of the bank
    rf",\s(?P<reason>(?:an? )?(?:requirement|request|wish|demand|rule|condition|recommendation) (?:of|by|from)\s.+?){_END}",
    # …, for provenance
    r",\s(?P<reason>for (?!now\b|the moment\b|the time being\b|example\b|instance\b|once\b|ever\b|all\b|\d)(?:[\w'’-]+ ){0,3}[\w'’-]+)[.!]?$",
    # Following the certificate outage, …; … after the leak in March
    rf"(?:^|(?<=[.!?]\s))(?P<reason>(?:after|following) (?:the|an?|our|last|two|several)\b[^,;.\n]{{0,40}}?{_MISHAP}"
    rf"[^,;.\n]*?)(?=,|\s(?:we|i|every|each|all|our|the)\s)",
    rf"\b(?P<reason>(?:after|following) (?:the|an?|our|last|two|several)\b[^,;.\n]{{0,40}}?{_MISHAP}.*?){_END}",
)
_FOREIGN = (
    # German
    rf"\b(?:weil|denn|wegen|aufgrund|da ja)\s+{_CLAUSE}",
    rf",\s+da\s+(?=\S+\s\S+\s\S){_CLAUSE}",
    rf"\b(?P<reason>(?:damit|sonst|um [^.,;\n]{{2,80}} zu \w+).*?){_END}",
    # French
    rf"\b(?:parce qu(?:e\s|['’])|puisqu(?:e\s|['’])|à cause d(?:e\s|['’]|u\s|es\s)|grâce (?:à|au|aux)\s)\s*{_CLAUSE}",
    rf"\bcar\s+{_CLAUSE.replace('.+?', '(?:les?|la|il|elle|on|nous|ils|elles|ce|cela|tous?|personne|une?|notre|son|sa)[ ].+?')}",
    rf"\b(?P<reason>(?:afin (?:de|que|d['’])|pour (?:éviter|garder|réduire|que)|sinon)\b.+?){_END}",
    # Spanish
    rf"\b(?:porque|ya que|puesto que|debido a(?:l| que)?|gracias a(?:l)?)\s+{_CLAUSE}",
    rf"\b(?P<reason>(?:para (?:que|evitar|mantener|reducir)|de lo contrario)\b.+?){_END}",
)
# A second clause that may explain the first.
_SECOND_CLAUSE = (
    # No ORM: the queries became impossible to read. Behind a colon or a dash, or in parentheses.
    rf"^(?P<statement>{_WITHIN}{{4,200}}?)(?::\s|\s[—–]\s|\s--?\s|\s\()(?P<reason>(?:(?![()]){_WITHIN}){{8,240}})",
    # Uploads go straight to S3; the API pods ran out of memory.
    rf"^(?P<statement>{_WITHIN}{{4,200}}?);\s(?P<reason>{_WITHIN}{{8,240}})",
    # pnpm it is, npm was too slow on the monorepo.
    rf"^(?P<statement>{_WITHIN}{{3,200}}?),\s(?P<reason>(?!(?:and|or|but|not|no|which|who|where|when|if|with)\b){_WITHIN}{{8,200}})",
    # We signed with Adyen. Stripe doesn't support iDEAL refunds.
    rf"^(?P<statement>{_WITHIN}{{4,200}}?)[.!]\s+(?P<reason>{_WITHIN}{{8,240}})",
)
# Words that announce a list: two slots, these steps, the order.
_ANNOUNCES = (
    r"\b(?:\d+|two|three|four|five|six|seven|several|some|these|the following|as follows|namely|steps?|rules?|order|stages?|parts?|todo|to do"
    r"|clarified|question|answer|result)\W*(?:[\w-]+\W*){0,2}$"
)
_FORBIDS = r"^(?:no|never|do not|don['’]t|avoid|not) \w"
# A statement without a finite verb: No Kubernetes. Postgres it is. On-call is a week, not a day.
_VERBLESS = (
    r"^(?:no|not|never|always|only|use|using|keep|stay|switch|move|pick|chose|going|drop)\w*\b|\bit is\b"
    r"|\b(?:not|no|we|stays?|goes|go|runs?|keeps?|answers?|uses?)\b"
)
_LABEL = r"^\s*(?:[-*]\s+)?\W{0,2}(?:decision|decided|note|fact|gotcha|rule|convention|preference|conclusion|adr[ -]?\d*)\W{0,2}:\s*"


def find_reason(statement: str) -> str | None:
    """The reason that a statement gives, marked or implied; None if it gives none."""
    return find_marked_reason(statement) or find_implied_reason(statement)


def find_marked_reason(text: str) -> str | None:
    """The first reason that a connective marks in a text."""
    for part in _lines(text):
        for pattern in _compiled(_MARKED + _FOREIGN):
            if (found := pattern.search(part)) and (reason := _clean(found["reason"])):
                return reason
    return None


def find_implied_reason(statement: str) -> str | None:
    """The reason that a statement gives by its form alone: a second clause that judges something."""
    set_apart, *others = _compiled(_SECOND_CLAUSE)
    for line in _lines(statement):
        found = set_apart.search(line)
        if found and _is_explained(found["statement"], found["reason"]):
            return _clean(found["reason"])
        for pattern in others:
            found = pattern.search(line)
            if found and _is_finite(found["reason"]) and _judges(found["reason"]):
                return _clean(found["reason"])
    return None


def list_second_clauses(statement: str) -> list[str]:
    """List the clauses of a statement after its first one, for a reader that understands more than words."""
    found = (
        pattern.search(line) for line in _lines(statement) for pattern in _compiled(_SECOND_CLAUSE)
    )
    clauses = (_clean(match["reason"]) for match in found if match)
    return list(dict.fromkeys(filter(None, clauses)))


def _lines(text: str) -> Iterator[str]:
    """The lines of a text, without a label such as "Decision:"."""
    (label,) = _compiled((_LABEL,))
    for line in text[:_LONGEST].splitlines():
        yield label.sub("", line).strip()


@cache
def _compiled(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)


def _matches(pattern: str, text: str) -> bool:
    return _compiled((pattern,))[0].search(text) is not None


def _is_finite(clause: str) -> bool:
    return _matches(_FINITE, clause)


def _judges(clause: str) -> bool:
    return _matches(_JUDGING, clause)


def _is_explained(head: str, tail: str) -> bool:
    """Return True if a clause after a colon or a dash explains the one before it and is no mere list."""
    if _matches(_FORBIDS, head) and len(tail.split()) >= EXPLANATION_WORDS:
        return True
    states = _is_finite(head) or _matches(_VERBLESS, head)
    return states and _is_finite(tail) and not _matches(_ANNOUNCES, head)


def _clean(reason: str) -> str | None:
    reason = reason.strip(" ,;:—–-.()\t")
    return reason if len(reason) >= _SHORTEST else None
