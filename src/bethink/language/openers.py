"""Words that open a sentence without adding meaning: assent, greetings, thanks, fillers, connectives.

`OPENERS` is the one list of them. Other modules put `LEAD` before a pattern that may follow such words: "ok, so let's …". The
parts of the list have names too, for patterns that follow only assent, or anything but a denial.
"""

from bethink.language.pattern import Pattern

YES = r"ok|okay|k|yes|yeah|yep|yup|sure|alright|right|agreed|exactly"
_NO = r"no|nope|nah"
PRAISE = r"great|nice|cool|perfect|good|looks good|sounds good|thanks?|thank you|done|sorry"
_GREETING = r"hey|hi|hello"
FILLERS = r"so|well|h{1,9}m{1,9}|ah{1,9}|oh{1,9}|wait|actually|please|by the way|btw"
CONNECTIVES = r"and|but|also|then|now|next|first|finally"
_FOREIGN = r"gut|danke|nun|jetzt|bitte|bon|alors|merci|bien|maintenant|bueno|vale|gracias|ahora"
OPENERS = rf"(?:{YES}|{_NO}|{PRAISE}|{_GREETING}|{FILLERS}|{CONNECTIVES}|{_FOREIGN})"

# Up to four openers with the signs between them, for a pattern that begins where a text does.
LEAD = rf"\W{{0,4}}(?:{OPENERS}(?![\w'-])[\s,.!:;…–—-]{{1,6}}){{0,4}}"

OPENING_WORDS = Pattern(
    "opening words",
    rf"(?:{OPENERS}\b[\s,.!:;…–—-]{{0,6}}){{0,4}}",
    start=True,
    flags=0,
    matches=("ok, great. Now the header", "hmm", ""),
)

# Politeness before a request, and the announcement of one.
_POLITE = (
    rf"(?:(?:{OPENERS}|(?:quick |one more |another |next |new )?(?:question|task|topic|thing))(?![\w'-])[\s,.!:;…–—-]{{1,6}}"
    r"|(?:(?:can|could|would|will) (?:you|we)(?: (?:please|maybe|also|just))?|i(?:'d| would) (?:like|love)(?: you)? to"
    r"|i (?:want|need)(?: you)? to|we (?:want|need|have) to|i mean(?:t)?|let'?s|help me(?: to)?|go ahead and)(?![\w'-])\s?)[ ,:;–—]{0,6}"
)
POLITENESS = Pattern(
    "politeness",
    rf"(?:{_POLITE}){{1,8}}(?=.)",
    start=True,
    matches=(
        "Hi, can you please add a test",
        "Quick question: why does it fail",
        "OK, great. Let's rename it",
        "I would like you to look at it",
    ),
    rejects=("okra is a vegetable", "Rename the parser", "no-op builds are slow"),
)
LOOSE_CONNECTIVE = Pattern(
    "joins a sentence to the one before it",
    rf"\A(?i:(?:(?:{YES})\b[,.!]? )?(?:(?:but|however|so|and|also|plus|then|besides)\b,? ){{1,2}}|the (?:answer|key|catch|problem|thing)(?: is)?: )(?=.)",
    start=True,
    fold=False,
    matches=("But the size is 0", "Yes, and also we need docs", "The answer: it strips types"),
    rejects=("Sorted by name", "Butter"),
)
