"""Pointing back: words that need earlier context, and picks from a list ("the second one", "do B")."""

import re

from bethink.language.openers import LEAD, YES
from bethink.language.pattern import Pattern

_BACK_WORDS = r"this|that|these|those|it|them"

POINTS_BACK = Pattern(
    "points back",
    r"\b(?:it|that|this|them|they)\b",
    matches=("Marketing signed it off today",),
    rejects=("Items are sorted",),
)
OPENS_POINTING_BACK = Pattern(
    "begins by pointing back",
    r"(?:why|how so|how come|why not|since when)\W*$"
    rf"|{LEAD}(?:(?:hence|because of|after|with) ?,? )?"
    r"(?:that|this|it|these|those|they|which|both|neither|same|he|she|its|their|that's|it's|doing so)\b",
    start=True,
    matches=("That breaks the build", "So, it is fixed", "why?", "ok, because of that we wait"),
    rejects=("The cache is fixed", "Why Redis?"),
)
# An idea shown alone that refers to a person or a thing outside of its text.
NEEDS_CONTEXT = Pattern(
    "says little when shown alone",
    rf"{LEAD}(?:that|this|it|its|these|those|they|i|i'm|i'd|my|you|your|note that|he|she|both|neither|unless i)\b"
    r"|\W{0,4}(?:(?:confirmed|good|great|perfect|sorry|oops|what was wrong|found it|no,? i mean)\b\W"
    rf"|\d\W{{1,3}}(?:{YES}|no|definitely)\b)",
    start=True,
    matches=("Ok so that is done", "I prefer tabs", "Confirmed: works", "2: yes"),
    rejects=("Tabs are preferred", "Goods are shipped by DHL"),
)
POINTS_BACK_EARLY = Pattern(
    "points back within four words",
    rf"(?:\S{{1,20}} ){{1,3}}(?:{_BACK_WORDS})\b",
    start=True,
    matches=("Let's get this in early",),
    rejects=("Keep the index in memory for this",),
)
THAT_JOINS = Pattern(
    "a that which joins two clauses and points at nothing",
    r"\b(?:decid\w{0,4}|agree\w{0,2}|conclud\w{0,4}|found(?: out)?|know|knew|not(?:e|ed|ice|iced)|mean\w{0,3}|sa(?:y|id)|(?:make|made) sure|ensure\w{0,2}"
    r"|requir\w{0,4}|want\w{0,3}|settled|clear|remember|assum\w{0,4}|rule is) that\b",
    matches=(
        "We decided that carts expire",
        "make sure that tests run",
        "It is clear that it fails",
    ),
    rejects=("That is why it fails", "We get that in early"),
)
SPEAKS_FOR_ONESELF = Pattern(
    "a person states a rule or a wish of theirs",
    rf"{LEAD}(?:i(?:'d| would)? (?:always |never |really |only |don'?t |do not )?(?:want|prefer|like|need|hate|expect|use|care|rather)|i(?:'m| am) (?:not )?(?:using|on|working)|my|you (?:should|must|may|can(?:not|'t)?|need|have to|don'?t|never|always))\b",
    start=True,
    matches=("I prefer tabs", "You should never push to main", "ok, I want small commits"),
    rejects=("I fixed it", "You see it here", "This is mine"),
)
SPEAKS_OF_ONESELF = Pattern(
    "somebody speaks of themselves, or asks for something",
    r"\b(?:i|i'?m|i'?d|i'?ve|i'?ll|me|my|let'?s|please|pls|(?:can|could) you|we (?:also )?(?:want|need|should|can|can'?t|must|have to|don'?t want))\b"
    r"|(?:し|て|に)(?:て|てください|て下さい|てほしい|て欲しい|たい|ておいて)|ください|下さい|欲しい|请|我们?|帮我",
    matches=("I want a switch", "we need that on all pages", "please fix it", "タブで開いて欲しい"),
    rejects=("Use file names", "It failed", "Migration must be additive", "We moved to MySQL"),
)
# "Fix this", "rename it and push": the words before it say what is meant.
REQUEST_POINTS_BACK = Pattern(
    "a request that points back",
    rf"\b(?:{_BACK_WORDS})(?:(?: \w+){{0,2}}\W{{0,3}}$|[,;?!]| (?:via|in|on|to|for|with|and)\b)",
    matches=("fix this", "rename it and push", "do that one please"),
    rejects=("this parser drops comments silently",),
)
OFFER_POINTS_BACK = Pattern(
    "an offer that ends by pointing back",
    rf"(?:\b(?:{_BACK_WORDS})(?:(?: \w+){{0,2}}\W{{0,3}}$|[,;?!]| (?:via|in|on|to|for|with|and)\b))$",
    matches=("implement this", "push it now"),
    rejects=("implement this in the parser",),
)
# "Can you fix this?" alone on its line is about the text above or below it.
POINTS_AT_PASTED = Pattern(
    "points at a pasted text",
    r"(?:\W*(?:can|could|would|will|please|pls|so|and|how|what|why|who|do|does|should|you|i|we|me|help|to|about|with)\b\W*){0,6}"
    r"(?:\w+\W+){0,2}(?:this|that|these|those|above)\b"
    r"(?:\W+(?:please|for me|now|one|too|first|mean\w*|for us|happen\w*|up))?\W*$",
    start=True,
    matches=("Can you fix this?", "what does that mean", "look above"),
    rejects=("This project uses pnpm", "Fix the parser"),
)
_TEXT_NOUNS = (
    r"sentences?|texts?|paragraphs?|lines?|passages?|messages?|e?mails?|notes?|comments?|titles?"
    r"|statements?|claims?|quotes?|snippets?|posts?|documents?|pages?|tickets?|issues?|reports?"
)
POINTS_AT_TEXT = Pattern(
    "names a text that follows",
    rf"\b(?:this|these|that|the following)\s+(?:{_TEXT_NOUNS})\b",
    matches=("translate the following paragraph", "is this ticket valid"),
    rejects=("this branch", "a ticket"),
)
POINTS_BELOW = Pattern(
    "points at the lines below",
    r"\b(?:this|these)\b(?! (?:point|time|way|repo|repository|project|branch|pr|session|week|is|are|should|must|needs?)\b)",
    matches=("look at this", "these came in today"),
    rejects=("in this repo", "this is fine", "that one"),
)
POINTS_AT_ITSELF = Pattern(
    "asks about the statement beside it",
    r"\bthis\b(?=\W{0,3}(?:$|(?:is|are|still|true|correct|right|valid|mean|here)\b))",
    matches=("which part of this is wrong?", "what about this?"),
    rejects=("which part of this parser is wrong?",),
)

# Picks from a list

TAKES_OFFER_UP = Pattern(
    "takes up a choice or an offer",
    r"\W{0,4}(?:for both\b|go ahead\b|#?\d{1,2}(?:\W{0,4}$| (?:but|seems?|is|and|please|then|first|sounds|looks|for)\b))",
    start=True,
    matches=("3 but on this branch", "go ahead, …", "#2"),
    rejects=("3 tests fail", "going ahead of time"),
)
# The first group is the number or the letter.
PICK = Pattern(
    "a pick from a list",
    rf"(?:^(?i:{LEAD})(?i:let'?s\W{{1,3}})?|[.!?;,] |\b(?i:do|with|take|pick|choose|prefer|use|handle|tackle|fix|option|number|to-?do"
    r"|item|approach|is) )(?:(?i:option|number|to-?do|item) )?(#?(?:\d{1,2}|[A-H]))(?=[\s.,!?;)]{0,4}$"
    r"|[.,!?;]? (?i:but|seems?|is|and|please|then|first|sounds|looks|for|should|instead|quickly|now|on|in|with|can|it)\b)",
    fold=False,
    matches=("Do B", "ok, 2 please", "let's take option 3", "5"),
    rejects=("Use Bash", "do 12 tests", "A test fails"),
)
# "5 (Fix the rename) seems best": the words of the pick, and what the user adds.
EXPLAINED_PICK = Pattern(
    "a pick with its words",
    r"#?\w{1,2} \((.{4,})\)(?: (?:seems|sounds|looks|is)\b.{0,80}|(.{0,80}))$",
    start=True,
    fold=False,
    flags=re.MULTILINE,
    matches=("5 (Fix the rename) seems best", "B (Use Postgres) but later"),
    rejects=("Fix the rename (soon)",),
)
