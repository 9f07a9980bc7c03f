"""How surely a memory fits a prompt by its words: a number of 0 to 1. Pure.

A search always finds something; a hook must know when that is nothing. What counts is how unlikely it is that a memory holds the prompt's
words by chance. A word that stands in one of a hundred memories is worth the logarithm of a hundred. Two things are known beyond the
counts of the scope, and matter most where it holds few memories: how often a word stands in texts about software at all, and which words
say nothing about a topic because any prompt may hold them. Those count little, and alone they count nothing. Words that no memory of the
scope knows speak against it: the prompt is about something else.

Measured by `bench/hooks.py --quality` on two sets of coding sessions, with questions from four other sets as unrelated prompts
(bench/LOG.md, 2026-11-15).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import NamedTuple

from bethink.store.base import Statistics
from bethink.store.words import space_out, tokenize
from bethink.text import STOP_WORDS
from bethink.types import Words

BACKGROUND = 1000  # memories' worth of belief in the usual frequency of words
USUAL, USUAL_COMMON = 0.003, 0.1  # that frequency, of a telling word and of a common one
MOST = 5.0  # what one word is worth at most: a single rare one, a typing mistake, is no evidence
MOST_COMMON = 4.6  # and all common words together: two of them
LEAST = 3.0  # what telling words must bring
ALONE = 3.0  # what a single telling word loses, unless it is all that was asked about: "restart the server"
PAIRS = 3.0  # what is added if all words stand side by side as in the prompt
COVERED = 4.0  # and if all telling words are there
ASKED = 4.5  # and then if the prompt asks something: "how do we deploy?" has one telling word
GENERAL = 3.0  # what is lost by a prompt that could be asked anywhere
FEW = 300  # memories at which words that none of them holds count half: a few hold few words
RARE = (
    4.0  # what a word of an identifier must be worth for it to tell something: `README.md` does not
)
NAMED = 6.0  # what holding an identifier of the prompt adds
WHOLE = 0.99
BAR, SLOPE = 11.0, 2.0  # the sum that makes a confidence of a half, and how fast it rises there

LONG = 2000  # characters of a prompt that surely says something

# What asks for an answer that memory may have, and not for work: "can you run the tests?" does not.
_ASKS = re.compile(
    r"\W{0,8}(?:(?:and|so|but|ok|okay|hey|hi|wait|hmm)\b\W{0,8})?"
    r"(?:how|what|why|where|when|which|who|whose|did|does|do we|is there|are we|should we|have we|remind me|recall|remember)\b",
    re.IGNORECASE,
)
# What could be asked anywhere: "how do I center a div?"
_GENERAL = re.compile(
    r"\W{0,8}(?:how (?:to|(?:do|can|could|would|should) (?:i|you|one))|what(?:['’]?s| is| are) (?:an?|the (?:best|difference))|explain)\b",
    re.IGNORECASE,
)


# Words that say nothing about a topic: any prompt in any project may hold them. English, for people who talk to an agent about code.
# Answers and greetings, what is asked to be done, what things are called in general and how they are. Not the names of technologies,
# nor what only some projects have: those tell prompts apart.
COMMON = """
yes yeah yep yup nope nah ok okay okey sure thanks thank thx pls hello hi hey howdy morning afternoon evening night tonight good great
nice cool perfect awesome excellent amazing fine right wrong correct sorry wait stop hmm well maybe perhaps never mind ahead continue
proceed resume still now first second third final next last former latter previous current anything everything something nothing anyone
everyone someone nobody else another whatever thing stuff way kind sort bit lot sound lgtm nevermind dear welcome bye ping yo exactly
absolutely definitely certainly probably actually really even quite rather pretty almost enough much many little least either neither
every none together apart instead otherwise anyway however though although unless whether back away around across along among against
without within toward soon later earlier early late often sometimes usually ever yet somewhere everywhere already always twice above
below down per via
write create make build add remove delete drop rename move change update modify edit set setup use run rerun execute start restart begin
open close show list print tell say speak talk explain describe summarize summarise find look search check recheck double verify confirm
review read see watch view try retry test fix debug solve help implement refactor clean cleanup improve optimize simplify rewrite rework
convert generate install uninstall configure commit push pull merge rebase revert undo redo bump ship finish complete end work go get
give take put keep need want like think know mean understand ask answer call turn bring come follow include handle support allow address
leave happen seem feel mention discuss draft translate recommend suggest compare fail break wonder love hate apply stage stash squash
amend checkout fetch clone tag format compile wrap skip ignore replace copy paste save load send receive return enter exit type choose
pick select prefer decide agree disagree guess suppose believe hope wish expect remember forget learn plan prepare organize arrange draw
stay stand carry hold catch throw cut win lose become appear touch join meet share count increase decrease reduce extend expand shorten
speed slow hurry repeat revise adjust tweak polish tidy note mark point matter belong consist contain cause lead result depend
code file folder directory function method class variable line error bug issue problem question example project repo repository branch
main master pr request diff version readme docs doc documentation comment message script command option flag step approach solution idea
todo task job part section place case time times moment minute hour day week weekend month year today tomorrow yesterday name title
number text word sentence paragraph letter page output input value data item log people person size side top bottom middle front left
piece pair group rest half reason purpose goal difference advice tip trick term dependency conflict lint linter warning verbose quiet
detail context state status info information
new old big small large smaller larger bigger tiny huge better best worse worst simple simpler short shorter long longer easy easier
hard harder difficult quick quicker fast faster slower different similar high higher highest low lower lowest full empty whole specific
general practice concise clear ready able possible impossible important interesting useful helpful free busy real true false certain
strange weird funny serious basic advanced common rare usual normal special extra less several one two three four five six seven eight
nine ten eleven twelve hundred thousand million zero single
md txt py js ts tsx jsx json yaml yml toml html css sh
"""


# What a prompt leaves unsaid: the work that it asks for, in the words in which rules speak of it. The judge reads texts; that lodash comes by a
# package manager, and that 22:00 and midnight are about time zones, it does not know. Only where the prompt asks for that work or
# reports that trouble, never for a mere mention: "center the login button" is no work on authentication (bench/LOG.md, 2026-11-16).
UNSAID = r"""
\b(?:npm|yarn|pnpm|bun) (?:i|install|add)\b => add a dependency with a package manager: npm, pnpm, yarn
\b(?:pip|uv|poetry) (?:install|add)\b => add a dependency with a package manager: pip, uv, poetry
\b(?:install|add|pull in|bring in|use|need)\b.{0,30}\b(?:packages?|librar(?:y|ies)|libs?|dependenc(?:y|ies))\b => add a dependency with a package manager: npm, pnpm, pip, uv
^\W*(?:please |can you |could you )?install (?:the )?[\w@/.-]+\W*(?:please)?\W*$ => add a dependency with a package manager: npm, pnpm, pip, uv
\b(?:which|what|any|some)(?:ever)? lib(?:rary)?\b => choose and add a dependency
\b(?:deploy|release|ship|roll ?out|hotfix|(?:go|goes|going|push|get|put)\b.{0,12}\blive)\b(?! (?:logs?|notes?|scripts?|page|job|docs|branch)\b) => deploy a release to production
^\W*(?:please |ok |now |then )*(?:git )?commit\b => git commit message
\b(?:rename|drop|add|remove|alter)\b.{0,30}\b(?:columns?|index on|foreign key)\b|\b(?:new|create)\b.{0,6}\btable\b|\bmakemigrations\b|\bmigrate\b => database schema change, migration
\b(?:log|print|dump)\b.{0,40}\b(?:request|body|payload|users?|customers?|e-?mails?|names?)\b => personal data in logs
\b(?:put|store|save|set|add|keep|where)\b.{0,30}\b(?:api[ _-]?keys?|secrets?|tokens?|passwords?)\b => secrets, credentials
\b(?:build|make|write|add|create|implement)\b.{0,25}\b(?:log[ -]?in|sign[ -]?in|sign[ -]?up|register|registration)\b(?! (?:button|icon|link|image)) => authentication, accounts, passwords
\bround(?:ing|ed|s)?\b(?! (?:corners?|button))|\b\d+[.,]\d\d (?:and|but|instead|says|vs|not|too)\b|\bprice\b.{0,12}[*+] => money amounts: integer cents or floats, rounding
\b(?:off by (?:one|an) hour|hours? (?:off|early|late|ahead|behind)|midnight|time ?zone|wrong day)\b => timestamps, time zone
\b(?-i:POST|PUT|PATCH) /\w|\b(?:add|new|create|write)\b.{0,15}\b(?:endpoint|route)\b => new API endpoint
\b(?:put|write|show|say|label|caption|button|headline)\b[^\n"]{0,25}["“]\w => text of the user interface, translations
\bstill (?:shows?|has|have|says?|see|the)\b|\bno effect\b|\b(?:doesn't|does not|don't) (?:show|appear|come) => stale cache, delay
\b(?:twice|two times|the same .{0,20} again)\b => executed twice, retries, idempotent
"""
BEGINNING, MOST_UNSAID = (
    500,
    2,
)  # characters of a prompt that say what is to be done, and what is spelt out of it


def spell_out(prompt: str) -> str:
    """A prompt after the work that it asks for without naming it."""
    rows = (row.split(" => ") for row in UNSAID.strip().splitlines())
    start = prompt[:BEGINNING]
    flags = re.IGNORECASE | re.MULTILINE
    unsaid = dict.fromkeys(work for shape, work in rows if re.search(shape, start, flags))
    return f"{'; '.join(list(unsaid)[:MOST_UNSAID])}: {prompt}" if unsaid else prompt


def is_telling(prompt: str) -> bool:
    """Whether a prompt may be about something: "yes, do it again" is not. PromptWords before anything is opened, so a guess on the safe side."""
    words = re.findall(r"[^\W_]{1,60}", prompt[:LONG].lower())
    return len(prompt) > LONG or not STOP_WORDS.union(COMMON.split()).issuperset(words)


class PromptWords(NamedTuple):
    """A prompt's words, each with what it is worth, in a scope."""

    telling: Mapping[str, float]
    common: Mapping[str, float]
    foreign: float  # worth of the telling words that no memory of the scope holds
    asks: bool
    general: bool = False  # could be asked anywhere
    identifiers: tuple[
        frozenset[str], ...
    ] = ()  # the lexemes of each that a memory must hold, those that tell something


def read_prompt(
    text: str, identifiers: Sequence[str], words: Words, statistics: Statistics
) -> PromptWords:
    telling: dict[str, float] = {}
    common: dict[str, float] = {}
    foreign = 0.0
    for word, count in zip(words.lexemes, statistics.counts, strict=True):
        plain = len(word) == 1 or word in _common() or (word.isdigit() and len(word) < 3)
        usual = BACKGROUND * (USUAL_COMMON if plain else USUAL)
        worth = min(MOST, math.log((statistics.memories + BACKGROUND) / (count + usual)))
        (common if plain else telling)[word] = worth
        if not plain and not count:
            foreign += worth
    foreign *= statistics.memories / (statistics.memories + FEW)
    named = [frozenset(tokenize(space_out(name), prepared=True)) for name in identifiers]
    telling_names = tuple(
        name for name in named if any(telling.get(word, 0.0) >= RARE for word in name)
    )
    general = _GENERAL.match(text) is not None
    return PromptWords(
        telling,
        common,
        foreign,
        _ASKS.match(text) is not None and not general,
        general,
        telling_names,
    )


def confidence(prompt: PromptWords, held: AbstractSet[str], pairs: float) -> float:
    """How surely a memory that holds these lexemes fits; `pairs` is the share of the prompt's word pairs that it holds."""
    matched = [worth for word, worth in prompt.telling.items() if word in held]
    telling = sum(matched)
    if not prompt.telling or telling < LEAST:
        return 0.0
    covered = telling / sum(prompt.telling.values())
    value = telling + PAIRS * pairs + COVERED * covered - prompt.foreign
    value += min(MOST_COMMON, sum(worth for word, worth in prompt.common.items() if word in held))
    named = any(name <= held for name in prompt.identifiers)
    if named:
        value += NAMED
    if prompt.asks and covered > WHOLE:
        value += ASKED
    elif len(matched) < 2 and not named:
        value -= ALONE
    if prompt.general:
        value -= GENERAL
    return 1 / (1 + math.exp(max(-50.0, min(50.0, (BAR - value) / SLOPE))))


@lru_cache(maxsize=1)
def _common() -> frozenset[str]:
    return frozenset(tokenize(" ".join((COMMON, *STOP_WORDS))))
