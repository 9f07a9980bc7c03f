"""Wordings of what holds from now on, and of what is only reported or tried."""

from bethink.language.pattern import Pattern

RESTRICTS = Pattern(
    "limits, forbids or takes something away",
    r"\b(?:don'?t|do not|no longer|without|not|no|avoid|stop|remove|drop|only|just)\b",
    matches=("Just a smoke test", "no anys", "Ship it without the docs"),
    rejects=("Add the docs", "note the time"),
)
REPORTS_TROUBLE = Pattern(
    "reports trouble, or what was seen or tried",
    r"\b(?:still|doesn'?t work|not working|failed|failing|errors?|broken|see|saw|tried|got|happens?|happening|issues?|wrong)\b",
    matches=("It still fails", "I tried it and got an error"),
    rejects=("The button is blue",),
)
STATES_BEING = Pattern(
    "says how something is or will be",
    r"\b(?:is|are|be|will|was|were|has|have)\b",
    matches=("The port is 80", "It will be blue"),
    rejects=("Add a button",),
)
STANDING = Pattern(
    "holds every time, not only now",
    r"\b(?:always|never|from now on|going forward|in (?:the )?future|as a rule|standing (?:item|order|rule)|whenever|(?:every|each|any) time|next time (?:you|we)"
    r"|(?:at|on|in|for|before|after|with) (?:the \w+ of )?(?:every|each)|keep in mind|(?:code|new) standard)\b",
    matches=(
        "Never open PRs against release",
        "At the start of every new session, ask",
        "Next time you push, wait",
    ),
    rejects=("Next time the tests run", "Open a PR"),
)
