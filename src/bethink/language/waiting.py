"""Work that waits: what remains, what is offered, and what is put off to another time."""

from bethink.language.pattern import Pattern

# The last group is what comes next.
_NEXT = (
    r"(?:^|[;,.] )(?:next(?: (?:actions?|steps?|up))?(?::|,| is| are)(?: to)?|(?:to-?do|remaining|(?:still )?open(?: points?| items?)?"
    r"|(?:what(?:'s| is) )?left):) (.{4,})"
)
_OFFER = (
    r"(?:^|[.;,] )(?:do you want me to|would you like me to|want me to|shall i|should i) (.{4,})\?"
)
_REMAINS = (
    r"\b(?:not (?:done |quite )?yet|(?:still|yet) (?:(?:needs?|have|has) )?to|left to do|to be done|remains to|when (?:you(?:'re| are) )?ready"
    r"|(?:awaiting|pending) (?:your|a|the)|you(?:'ll| will)? need to|not (?:been )?(?:committed|pushed|merged|tested|implemented))\b"
)
NEXT_OR_OFFER = Pattern(
    "names a next step, or offers one",
    rf"{_NEXT}|{_OFFER}",
    matches=("Next steps: write the docs", "Done. Shall I push it?", "Remaining: the tests"),
    rejects=("The next step failed", "Should I?"),
)
NEXT_OR_REMAINING = Pattern(
    "names a next step, or what remains",
    rf"{_NEXT}|{_REMAINS}",
    matches=("What's left: the docs", "The docs are still to be written", "It is not merged"),
    rejects=("Shall I push it?", "All is merged"),
)
REMAINING = Pattern(
    "says what remains",
    _REMAINS,
    matches=("You need to rotate the key", "awaiting your review", "not tested"),
    rejects=("Next: the docs", "All is tested"),
)

# A request for another time is not done with the answer; a reminder may be.
_ANOTHER_TIME = (
    r"(?:^|[,;] )later\b|\blater\W{0,3}$|\b(?:eventually(?! consistent)|some day|at some point|next (?:week|month|sprint|session)|tomorrow"
    r"|in a follow-?up|not now|remind (?:me|us) to|(?:on|to) (?:the|my|our) (?:to-?do list|backlog)(?! \w))\b"
)
ANOTHER_TIME = Pattern(
    "for another time",
    _ANOTHER_TIME,
    matches=("Let's do that later.", "put it on the backlog", "Tomorrow we fix the index"),
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
    r"|\byou(?:'ll| will)? (?:still )?(?:need|have) to (?:do|configure|set|create|add|run|make|enable)\b|\bmanual (?:steps|setup)\b",
    matches=(
        "Pending Todos for phase 12",
        "before the next deploy, you need to configure",
        "Manual steps",
    ),
    rejects=("Open questions", "Work"),
)
TODO_LABEL = Pattern(
    "the label of a to-do",
    r"(?i)\A\W{0,9}(?:to-?do|fixme|next|remaining)\b\W{0,3}(?=\w)",
    start=True,
    fold=False,
    matches=("TODO: rotate the key", "- [ ] Next: docs"),
    rejects=("Rotate the key", "nextcloud"),
)
