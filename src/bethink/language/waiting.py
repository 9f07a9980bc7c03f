"""Work that waits: what remains, what is offered, and what is put off to another time."""

from bethink.language.pattern import Pattern

# The last group is what comes next.
_NEXT = (
    r"(?:^|[;,.] )(?:next(?: (?:actions?|steps?|up))?(?::|,| is| are)(?: to)?|(?:to-?do|remaining|(?:still )?open(?: points?| items?)?"
    r"|(?:what(?:'s| is) )?left):) (.{4,})"
    r"|(?:^|[。；，] ?)(?:次のステップ|次の作業|残タスク|残り|下一步|接下来|待办|剩下的?)\s?[:：]\s?(.{4,})"
)
_OFFER = r"(?:^|[.;,—–-] )(?:do you want me to|would you like me to|want me to|shall i|should i) (.{4,})\?"
_REMAINS = (
    r"\b(?:not (?:done |quite )?yet|(?:still|yet) (?:(?:needs?|have|has) )?to|left to do|to be done|remains to|when (?:you(?:'re| are) )?ready"
    r"|(?:awaiting|pending) (?:your|a|the)|you(?:'ll| will)?(?: just| only| still| then)? need to|you(?:'ll| will| may| might) want to|(?:not|haven'?t|hasn'?t) (?:been )?(?:committed|pushed|merged|tested|implemented)"
    r"|still (?:open|unresolved|unverified|untested|unconfirmed|outstanding)|(?:is|are|remains?) (?:unresolved|unfixed|untested|unverified|unconfirmed|uncommitted|unpushed)"
    r"|ready (?:for you )?to (?:commit|merge|deploy|push|publish|release|review))\b|ください。?$"
)
NEXT_OR_OFFER = Pattern(
    "names a next step, or offers one",
    rf"{_NEXT}|{_OFFER}",
    matches=("Next steps: write the docs", "Done. Shall I push it?", "Remaining: the tests"),
    rejects=("The next step failed", "Should I?"),
)
ASKS_IN_GENERAL = Pattern(
    "asks for whatever the user thinks or wants",
    r"\b(?:anything|something|any) (?:else|other)\b|\banything (?:you|i)\b|\bwhat do you think\b|\b(?:makes? sense|(?:looks?|sounds?) (?:good|right|ok(?:ay)?))\W*$"
    r"|\bhow (?:can|may) i help\b|\bwhat(?:'s| is) next\b|\bwhat would you like\b",
    matches=("Is there anything else you'd like to automate?", "Does that make sense?"),
    rejects=("Should the index be sorted by name?",),
)
ASKS_TO_DECIDE = Pattern(
    "an agent asks the user to decide how it goes on",
    r"\W*(?:go|go ahead|proceed|continue|ready|confirm(?:ed)?|approved?|ok(?:ay)?(?: to \w+)?|agreed?|deal)\W*\?|\W*(?:which\b|do you (?:want|prefer)|would you (?:like|prefer)|(?:should|shall|may) (?:i|we)\b|want me to"
    r"|(?:any|what(?:'s| is) your) preference|how would you like|a or b\b)",
    start=True,
    matches=("Go?", "Which approach do you prefer?", "Want me to commit it?"),
    rejects=("Can you ask Eve whether it holds?", "Is it sorted?"),
)
MAY_DO = Pattern(
    "offers a further step at the end of a report",
    r"^\W{0,8}if (?:you(?:'d)? (?:want|like|prefer|wish)|helpful|useful)[^,]{0,20},? (?:next,? |then,? )?(?:i|we)(?: can|'ll| will| could)(?: (?:also|next|now|then)){0,3} (.{8,400}?)[.?!]?$",
    matches=("If you want, I can commit this README update to the same branch.",),
    rejects=("If you want it, run it",),
)
NEXT_OR_REMAINING = Pattern(
    "names a next step, or what remains",
    rf"{_NEXT}|{_REMAINS}",
    matches=("What's left: the docs", "The docs are still to be written", "It is not merged"),
    rejects=("Shall I push it?", "All is merged"),
)
OFFERS_ANY_HELP = Pattern(
    "offers help with whatever comes",
    r"(?:help|assist)\b.{0,30}\b(?:anything|something|any other)\b|(?:do|make|change|tweak|adjust|look at|check) (?:anything|something)\b",
    start=True,
    matches=("help with anything else", "change anything"),
    rejects=("help set up the index", "push it"),
)
REMAINING = Pattern(
    "says what remains",
    _REMAINS,
    matches=(
        "You need to rotate the key",
        "You just need to restart it",
        "You may want to restore that file",
        "awaiting your review",
        "not tested",
        "Two items of the audit are still open",
        "The branch is ready to push",
        "マージ後に確認してください。",
    ),
    rejects=("Next: the docs", "All is tested", "Open the file"),
)
DEFERS = Pattern(
    "an agent leaves something to later work",
    r"\b(?:as|in|for|needs?|deserves?|worth) (?:an? |its |their )?(?:own |separate |dedicated |later )?follow-?ups?\b(?! (?:commit|question|review|message))"
    r"|\bfollow-?ups? (?:(?:issue|pr|task|ticket)s? )?(?:\([^)]{1,200}\) )?(?:is|are|will be|to be)\b|\bis a follow-?up\b"
    r"|\b(?:done|left|handled|addressed|fixed|tackled) (?:separately|later|as (?:a|its own) separate)\b|\(future(?: work)?\)|\balready a `?to-?do\b"
    r"|\b(?:is|are) still (?:needed|to be done)\W?$",
    matches=(
        "The pull request flags the batching as a follow-up",
        "We'll write this in a follow-up",
        "The two follow-up issues (docs, prompts) will be opened later",
        "The port fix can be addressed separately",
        "These changes are still needed",
        "Zoom menu (future)",
    ),
    rejects=("Fixed in a follow-up commit", "It fails later", "I asked a follow-up question"),
)

BARE_FOLLOW_UP = Pattern(
    "says when, and not what",
    r"\W*(?:in|as|for) (?:a |an |its own |another )?(?:separate |later )?(?:follow-?up|pr|pull request|session|step|issue)\b[^.]{0,24}\W*$",
    start=True,
    matches=("In a follow-up PR, not #1067.",),
    rejects=("In a follow-up, migrate the remaining builtins to argv",),
)

# A request for another time is not done with the answer; a reminder may be.
_ANOTHER_TIME = (
    r"(?:^|[,;] )later\b|\blater\W{0,3}$|\b(?:eventually(?! consistent)|some day|at some point|next (?:week|month|sprint|session)|tomorrow"
    r"|in a follow-?up|not now|remind (?:me|us) to|(?:on|to) (?:the|my|our) (?:to-?do list|backlog)(?! \w)"
    r"|(?:at )?a later (?:time|point|date|stage)|down the (?:road|line)|circle back"
    r"|(?:add|create|open|file|make|write)(?: up)? (?:a|an|another) (?:new )?(?:task|to-?do|ticket|issue|card|reminder) (?:to|for|about|that))\b"
    r"|^\W{0,4}(?:after|once|when) (?!you\b)(?:\w{1,30} ){1,5}(?:completes|completed|is (?:done|merged|finished|complete)|finishes|finished|lands)\b"
)
ANOTHER_TIME = Pattern(
    "for another time",
    _ANOTHER_TIME,
    matches=(
        "Let's do that later.",
        "put it on the backlog",
        "Tomorrow we fix the index",
        "add a task to print the path",
        "Once the build is done, disable the archive",
    ),
    rejects=("It is eventually consistent", "a later version fails"),
)
POSTPONES = Pattern(
    "put off, or not to be forgotten",
    rf"{_ANOTHER_TIME}|\b(?:later|next time|remember to|don'?t forget)\b",
    matches=("don't forget the docs", "we do it at a later point", "remember to push"),
    rejects=("Do it now",),
)
BACKLOG_HEADING = Pattern(
    "the heading of a list that waits",
    r"\b(?:pending|to-?dos?|backlog|outstanding|deferred|future|later|you(?:'ll| will)? (?:still )?(?:need|have) to)\b",
    matches=("Future work", "You'll still need to"),
    rejects=("Changes",),
)
CHORES_HEADING = Pattern(
    "the heading of work that waits",
    r"\b(?:pending|open|remaining|outstanding|deferred) (?:to ?dos?|tasks?|work|action items?)\b"
    r"|\byou(?:'ll| will)? (?:still )?(?:need|have) to (?:do|configure|set|create|add|run|make|enable)\b|\bmanual (?:steps|setup)\b"
    r"|^(?:next up|next steps?|remaining (?:steps|items|issues|work)|what(?:'s| is) left|still (?:open|to do)|follow-? ?ups?)\b|\b(?:for|until) later$"
    r"|\byou(?:'ll| will)? (?:still |then |now )?(?:need|have) to$|(?:你|您)(?:还|接下来)?需要(?:做)?$|次のステップ|(?:残りの|今後の|後の)(?:作業|タスク|手順|対応)|接下来|下一步",
    matches=(
        "Pending Todos for phase 12",
        "Next up after the login",
        "Stashed for later",
        "Then you need to",
        "然后你需要",
        "before the next deploy, you need to configure",
        "Manual steps",
    ),
    rejects=("Open questions", "Work", "Later versions", "What to change next"),
)
TODO_LABEL = Pattern(
    "the label of a to-do",
    r"(?i)\A\W{0,9}(?:to-?do|fixme|next|remaining)\b\W{0,3}(?=\w)",
    start=True,
    fold=False,
    matches=("TODO: rotate the key", "- [ ] Next: docs"),
    rejects=("Rotate the key", "nextcloud"),
)
