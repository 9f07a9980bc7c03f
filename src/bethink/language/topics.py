"""Moving from one topic to the next, in English, and the basics of German, French and Spanish."""

from bethink.language.openers import LEAD, OPENERS
from bethink.language.pattern import Pattern

# The beginning of a clause, with the words that may precede an announcement.
_CLAUSE = (
    rf"(?:\A|[.!?,;:\n–—]\s{{0,4}})(?:(?:{OPENERS}|let'?s|can we|could we|we can|we could|we should|i want to"
    r"|i'd like to|to|time) ){0,4}"
)
_NEW_TOPIC = (
    r"(?:mov(?:e|ing) on\b|(?:chang|switch)(?:e|ing)? (?:of |the |to a |to another )?(?:topics?|subjects?|gears)\b"
    r"|(?:an? |the |on an? |my |quick |completely |totally |something ){0,3}(?:different|unrelated|another|separate|new|next)"
    r" (?:topic|subject|task|question|thing|issue|problem|feature|item|bug|ticket|story|note)\b(?! (?:is|was|that|with|in|about|for)\b)"
    r"|unrelated(?:ly)?\b[ ,:]|next up\b|something (?:else|completely different)\b|by the way\b|btw\b|change (?:in|of) plans?\b"
    r"|themenwechsel\b|übrigens\b|kommen wir zu[mr]?\b"
    r"|(?:die |das |der )?(?:nächste[rs]?|andere[rs]?|neue[rs]?) (?:thema|aufgabe|frage|punkt|sache)\b"
    r"|passons à\b|changeons de sujet\b|au fait\b|rien à voir\b"
    r"|(?:une? |la |le )?(?:autre|prochaine?|nouveau|nouvelle) (?:question|chose|sujet|tâche|point)\b"
    r"|pasemos a\b|camb(?:iemos|io) de tema\b|por cierto\b"
    r"|(?:una? |la |el )?(?:otr[ao]|siguiente|nuev[ao]) (?:cosa|pregunta|tarea|tema|asunto|punto)\b)"
)
ANNOUNCES_TOPIC = Pattern(
    "announces another topic",
    _CLAUSE + _NEW_TOPIC,
    flags=0,
    matches=(
        "ok, next task: the header",
        "Done. Moving on to billing",
        "unrelated, but the CI is red",
        "Themenwechsel: die Tests",
        "autre question",
    ),
    rejects=("the next task is blocked", "move the button", "a new issue with the parser"),
)
# Less plain than an announcement: it may also be a step of what is going on.
_RETURNING = (
    r"(?:(?:(?:go|going|get|getting|come|coming|jump) )?back to\b|switch(?:ing)? (?:over )?to\b|what(?:'s| is) next\b|what else\b|one more\b"
    r"|next\b|now let'?s\b|zurück zu[mr]?\b|weiter mit\b|was kommt (?:jetzt|als nächstes)\b|als nächstes\b"
    r"|revenons (?:à|au)\b|retour (?:à|au)\b|ensuite\b|volvamos a\b|volviendo a\b|luego\b|a continuación\b)"
)
RETURNS_TO_TOPIC = Pattern(
    "goes on with another topic",
    _CLAUSE + _RETURNING,
    flags=0,
    matches=("back to the parser", "great, let's get back to billing", "what's next?"),
    rejects=("we pay back the loan", "the nextcloud server"),
)
OPENS_RETURNING = Pattern(
    "begins by going on with another topic",
    _CLAUSE + _RETURNING,
    start=True,
    flags=0,
    matches=("next, the header", "now back to billing"),
    rejects=("the header is next",),
)
MOVES_ON = Pattern(
    "only moves on",
    rf"{LEAD}(?:let'?s (?:move on|continue|proceed|get (?:started|going)|turn to|look at|see|check|(?:settle|decide|figure out|discuss|talk about) (?:where|what|how|which|whether|who|when))|moving on|next up|on to the next|let me)\b",
    start=True,
    matches=(
        "ok, let's move on to the header",
        "Great! Let me check",
        "Let's settle where it lives",
    ),
    rejects=("We move on Fridays", "let's use Redis"),
)
