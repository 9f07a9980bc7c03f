"""Compare the wording of two statements: same, exchanged, denied, or changed into another.

Two statements can be near to an embedding model and still say different things: one number, one "not", one name or one "before" apart, or
the same words in another order. Those are not the same: losing a memory is worse than keeping two.

This module sees words, names and phrases. It does not know what a summary, an entity or a kind is.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import cache, lru_cache

from bethink.ingest.redact import remove_marks
from bethink.judge import asks
from bethink.language.change import NEGATIONS, find_change
from bethink.language.clauses import JOINS_CLAIMS, QUALIFIES, REASON_CLAUSE
from bethink.language.detect import is_english, list_small_words
from bethink.language.vocabulary import (
    LONGEST_IDENTIFIER,
    NUMBERED_THING,
    phrases,
    technologies,
    technology,
)
from bethink.language.words import STOP_WORDS
from bethink.store.words import is_unspaced, space_out

# A word or a number, without its spelling: "24h" is "24 h". Signs count where they tell something: C is not C++, < is not >.
_TOKEN = re.compile(r"(?:[^\W\d_]+(?:'[^\W\d_]+)?|(?<![\w-])-?\d+|\d+)[+#]*|[<>%$€£]|[!=]=")
_AUXILIARIES = frozenset("am is are be been being do does doing has have having will".split())
# Words that only hold a sentence together, without "was" and "had": the past is not the present.
_FILLING = _AUXILIARIES | frozenset(
    "a an the that which who and also just please really now currently our".split()
)
# Words that turn what was said before them into something else.
_TURNING = frozenset(
    "after although before but except however if instead nor once only or otherwise rather though unless until when whenever while without".split()
)
# Words that say when or where: two statements of which has them and the other has not are about different things.
_PLACED = frozenset("was were outside inside".split())
# Stop words that make a difference if one is exchanged for another.
_TELLING = frozenset(
    "after all any before both can could down few may might more most must off on only over same should since some under until up while".split()
)
_INFLECTION = re.compile(r"(?<=\w{3})(?:ies|ied|es|(?<!s)s|ed|ing|e|(?<![aeiou])y)$")
# Telling words of what may be the beginning of another text that says the same. By hand.
FEWEST_TELLING_WORDS = 3


def are_equivalent(one: str, other: str) -> bool:
    """Return True if the first of two near texts adds nothing to the second.

    The second has to begin with the words of the first, but for inflections, articles and punctuation, and must not turn them into something
    else. Both ask, or neither does. A redacted value may be anything, so it adds something; and a word or two ("Now lint:") begin many texts.
    """
    mine, theirs = _content_words(one), _content_words(other)
    return (
        len(mine) <= len(theirs)
        and (len(mine) == len(theirs) or _goes_on(mine, other))
        and remove_marks(one) == one
        and find_code_tokens(one) <= find_code_tokens(other)
        # In order: what calls is not what is called.
        and all(_stem(word) == _stem(its) for word, its in zip(mine, theirs, strict=False))
        and (_TURNING | NEGATIONS).isdisjoint(theirs[len(mine) :])
        and asks(one) == asks(other)
    )


def _goes_on(mine: Sequence[str], other: str) -> bool:
    """Return True if a longer text may say the same: an addition may be a denial ("nicht mehr")."""
    return len({*mine} - STOP_WORDS) >= FEWEST_TELLING_WORDS and is_english(other)


def _split_words(text: str) -> list[str]:
    """Return the words of a text in order, in small letters, with every "not" written out."""
    text = space_out(text.lower().replace("’", "'"))
    for short, long in (("cannot", "can not"), ("can't", "can not"), ("won't", "will not")):
        text = text.replace(short, long)
    return [token.partition("'")[0] for token in _TOKEN.findall(text.replace("n't", " not"))]


def _content_words(text: str) -> list[str]:
    """Return the words of a text in order, without those that only hold it together."""
    words = _split_words(text)
    # In front of all others an auxiliary asks, or insists; and behind a verb a tool can be called "just".
    kept = {0} if words and words[0] in _AUXILIARIES else set()
    kept |= {len(words) - 1} if words[-1:] == ["just"] else set()
    return [word for at, word in enumerate(words) if word not in _FILLING or at in kept]


def contrasts(new: str, old: str) -> bool:
    """Return True if each text has a word that the other lacks ("Monday" for "Friday"), or much was added.

    Embedding models see minimal pairs least, and a change of mind is one. Inflections of one word (cache, caching) do not count.
    """
    mine, theirs = ([_stem(word) for word in _content(text)] for text in (new, old))
    fresh = [word for word in mine if word not in theirs]
    return bool(fresh and {*theirs} - {*mine}) or len(fresh) * 3 > max(3, len(mine))


def _content(text: str) -> list[str]:
    return [
        word
        for word in re.findall(r"\w+", text.lower())
        if word not in STOP_WORDS or word in _TELLING
    ]


@lru_cache(4096)
def _stem(word: str) -> str:
    """Return a word without its inflection: "retries" and "retried" give "retry", "stopped" gives "stop".

    Two common names of one thing (configuration, config) give the same stem; "main" and "maintenance" do not.
    """
    bare = _strip(word)
    return _other_names().get(bare, bare)


def _strip(word: str) -> str:
    if not re.search(r"[aeiouy]", word):  # an abbreviation: "https" is no plural of "http"
        return word
    return re.sub(r"([b-df-hj-np-tv-z])\1$", r"\1", _INFLECTION.sub("", word))


@cache
def _other_names() -> dict[str, str]:
    pairs = (pair.split(" = ") for pair in phrases("other_names"))
    return {_strip(one): _strip(other) for one, other in pairs}


def differ_in_denial(one: str, other: str) -> bool:
    """Return True if one of two texts denies more than the other."""
    return _negations(one) != _negations(other)


def _negations(text: str) -> int:
    return sum(word in NEGATIONS for word in _split_words(text))


def mentions(text: str, thing: str) -> bool:
    """Return True if a text has all words of a thing."""
    words, wanted = set(_split_words(text)), _split_words(thing)[:4]
    return bool(wanted) and all(word in words or word.rstrip("s") in words for word in wanted)


def count_shared_words(one: str, other: str) -> int:
    """Count the telling words that two texts share."""
    return len(_telling_words(one) & _telling_words(other))


def count_telling_words(text: str) -> int:
    return len(_telling_words(text))


_ADDRESS = r"https?://\S+"  # its words name where something is, not what


def _telling_words(text: str) -> set[str]:
    text = re.sub(_ADDRESS, " ", remove_marks(text).lower())
    if text.isascii():
        found = re.findall(r"[^\W\d_]{3,}", text)
    else:
        # A pair of characters is a word where a script has no spaces; particles ("です", "我们") are few among them.
        runs = re.findall(r"[^\W\d_]+", space_out(text))
        found = [word for word in runs if len(word) > 2 or (len(word) == 2 and is_unspaced(word))]
    words = {word[:6] for word in found if word not in STOP_WORDS}
    small = () if is_english(text) else list_small_words()
    return words - _ANYTHING - {word[:6] for word in small}


# Words of every such statement, by their first six letters: they make no two of them alike.
_ANYTHING = {
    word[:6]
    for word in "use used using should need want decided decision going will can let make made still now issue problem fix fixed question".split()
}


# Differences between two statements that a judge takes for the same.
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_SIGNED_NUMBER = re.compile(r"(?:(?<!\S)-)?\d+(?:[.,:]\d+)*")
_NUMBER_WORDS = {
    word: str(value)
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()
    )
} | {"both": "2"}
# Parallel parts of a system: a statement about one says nothing about another in its line.
_COUNTERPARTS = [
    {word: name for name in line.split("|") for word in name.strip().split(",")}
    for line in """prod,production,live | staging,stage | dev,development | local,localhost | test,testing | qa
frontend,ui | backend
client | server
android | ios,iphone | web,browser
windows | linux | mac,macos
chrome | firefox | safari | edge
upload,uploads | download,downloads
import,imports | export,exports
reader,readers | writer,writers""".splitlines()
]
_NAMED = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-ZÄÖÜ][\w-]*|(?<!\w)\w+[_/][\w./-]+")
_ALIKE = 0.65  # share of words in order from which what differs is more telling than what is shared; by hand


def are_distinct(one: str, other: str) -> bool:
    """Return True if two statements cannot mean the same: a number, a name or a part is exchanged.

    In two statements that share most of their words in the same order, an exchanged word decides, or an "only", or a "not". The judge
    reads statements with another order of words well ("Only the data team may run backfills", "Backfills can be run by the data team
    only").
    """
    tokens, other_tokens = (re.findall(r"\w+", text.lower()) for text in (one, other))
    words, others = _content(one), _content(other)
    if _exchange_things(one, other) or _exchange_words(tokens, other_tokens, words == others):
        return True
    within = set(words) <= set(others) or set(others) <= set(words)
    if within and differ_in_denial(one, other):  # "on Mondays", "on Mondays, never on Fridays"
        return True
    kept = SequenceMatcher(None, words, others, autojunk=False).get_matching_blocks()
    if sum(block.size for block in kept) < _ALIKE * max(1, len(words), len(others)):
        return False
    denied = contrasts(one, other) or contrasts(other, one) or differ_in_denial(one, other)
    return denied or not (_TURNING | _PLACED).isdisjoint(set(tokens) ^ set(other_tokens))


def _exchange_things(one: str, other: str) -> bool:
    """Return True if each text has a number or a name that the other lacks, or the parts differ."""
    mine, theirs = _numbers(one), _numbers(other)
    named = _leaves_name_out(one, other) and _leaves_name_out(other, one)
    return named or bool(mine - theirs and theirs - mine) or other_part(one, other)


def _exchange_words(tokens: Sequence[str], other_tokens: Sequence[str], alike: bool) -> bool:
    """Return True for the same words in other places ("A calls B", "B calls A"), or for all words but one.

    Texts that are `alike` in their telling words ("may", "can") do not count.
    """
    if sorted(tokens) == sorted(other_tokens):
        return tokens != other_tokens
    differing = sum(map(operator.ne, tokens, other_tokens))
    return len(tokens) == len(other_tokens) and differing == 1 and not alike


def _leaves_name_out(one: str, other: str) -> bool:
    """Return True if one text has a name that the other lacks: a path as a whole, a word by its beginning."""
    lowered = other.lower()
    return any(
        (name if "/" in name or "_" in name else name[:4]).lower() not in lowered
        for name in _NAMED.findall(one)
    )


def _numbers(text: str) -> set[str]:
    words = (_NUMBER_WORDS.get(word) for word in re.findall(r"[a-z]+", text.lower()))
    return {*_NUMBER.findall(text), *filter(None, words)}


_UNITS = {
    word: value
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen"
        " nineteen".split()
    )
} | {
    word: 10 * value
    for value, word in enumerate(
        "twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2
    )
}
_MULTIPLES = {"hundred": 100, "thousand": 1000, "million": 1_000_000}  # by definition


def find_quantities(text: str) -> set[str]:
    """Return the numbers of a text in digits: "twenty thousand" gives "20000".

    A single "one" is hardly ever a number, and the digits of a name ("S3") are none.
    """
    alone = re.sub(r"(?<=[^\W\d_])\d+", "", text)
    signed = _SIGNED_NUMBER.findall(alone)
    found = {re.sub(r"(?<=\d)[,'](?=\d{3})", "", number) for number in signed}
    value, counting = 0, False
    for word in [*re.findall(r"[a-z]+", text.lower()), ""]:
        if word in _UNITS:
            value, counting = value + _UNITS[word], True
        elif word in _MULTIPLES and counting:
            value *= _MULTIPLES[word]
        elif counting:
            found |= {str(value)} if value != 1 else set()
            value, counting = 0, False
    return found


_SIGNS = frozenset("/\\_=<>|&$#@+*~^%{}[]`:")
# Signs of the sentence around a token. A point in front of it belongs to it: "./build" is not "/build".
_OPENING, _CLOSING = "(\"'“”‘’`", ".,;:!?)\"'“”‘’`"


def find_code_tokens(text: str) -> set[str]:
    """Return tokens in which every sign and capital counts: paths, options, versions, identifiers."""
    words = text.replace("**", "").split()
    tokens = (word.lstrip(_OPENING).rstrip(_CLOSING) or word for word in words)
    return {token for token in tokens if _is_code_token(token)}


_AMOUNT = re.compile(
    r"\d+(?:[.,]\d+)*(?:[A-Za-zµ]{1,3}|%)"
)  # "24h", "10MB": also written with a space


def _is_code_token(token: str) -> bool:
    if _AMOUNT.fullmatch(token):
        return False
    inner = token[1:]
    return (
        not _SIGNS.isdisjoint(token)
        or (token.startswith("-") and len(token) > 1)
        or "." in inner
        or (any(map(str.isdigit, token)) and any(map(str.isalpha, token)))
        or (any(map(str.isupper, inner)) and any(map(str.islower, token)))
    )


# Words that turn a statement into another when one is exchanged for another of its line: limits, exceptions, order, times, units.
_EXCHANGES = [
    {form: name.split()[0] for name in line.split("|") for form in name.split()}
    for line in """least minimum min | most maximum max | more above over exceeding | less below under fewer
only solely just alone | except besides excluding apart | any anybody anyone whatever
first before beforehand prior | after afterwards later then
enabled | disabled off
morning | evening | night nightly midnight | noon
ascending | descending
inbound incoming | outbound outgoing
second seconds sec secs | minute minutes mins | hour hours hourly | day days daily | week weeks weekly | month months monthly | year years yearly
eager eagerly | lazy lazily
monday mondays | tuesday tuesdays | wednesday wednesdays | thursday thursdays | friday fridays | saturday saturdays | sunday sundays
weekday weekdays | weekend weekends""".splitlines()
]


def _exchange_decisive_words(one: str, other: str) -> bool:
    texts = [set(re.findall(r"[a-z]+", text.lower())) for text in (one, other)]
    for line in _EXCHANGES:
        here, there = ({line[word] for word in words & line.keys()} for words in texts)
        if here and there and here != there:
            return True
    return False


def _exchange_places(one: str, other: str) -> bool:
    """Return True if two names in both texts come in another order: sender and receiver, from and to."""
    names = [re.findall(r"\b[A-Z][\w.-]*\b", text) for text in (one, other)]
    shared = set(names[0][1:] + names[0][:1]) & set(names[1])
    first, second = ([name for name in found if name in shared] for found in names)
    return len(shared) > 1 and first != second


def adds_nothing(new: str, old: str) -> bool:
    """Return True if a rewording has no detail that the old text lacks, and exchanges nothing.

    Details are numbers, units, limits, directions, code, names, reasons, exceptions and conditions.
    """
    return (
        find_quantities(new) <= find_quantities(old)
        and find_code_tokens(new) <= find_code_tokens(old)
        and not are_distinct(new, old)
        and not _exchange_decisive_words(new, old)
        and not _exchange_places(new, old)
        and (not QUALIFIES.holds(new) or QUALIFIES.holds(old))
    )


def is_correction(new: str, old: str) -> bool:
    """Return True if two texts differ only in signs, capitals or single letters, not in numbers."""
    mine, theirs = (re.sub(r"[\W_]+", "", text).lower() for text in (new, old))
    if (
        new == old
        or _NUMBER.findall(new) != _NUMBER.findall(old)
        or len(mine) > 4 * LONGEST_IDENTIFIER
    ):
        return False
    matcher = SequenceMatcher(None, mine, theirs, autojunk=False)
    # The first two are never below the third, and much faster.
    ratios = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)
    return all(ratio() >= 0.95 for ratio in ratios)


def makes_one_claim(text: str) -> bool:
    """Return True if a text certainly makes a single claim, its reason aside.

    Of 322 replaced statements 81 % do, of 242 that changed in part 3 %.
    """
    claim = REASON_CLAUSE.sub("", text).strip().rstrip(" ,;.!。")
    return not JOINS_CLAIMS.holds(claim)


def count_separators(text: str) -> int:
    """Count signs and words that join clauses: the more, the more claims a text may make."""
    return text.count(",") + text.count(";") + text.count(" and ")


# Verbs that only link a thing with its value, and words for any thing, by their first six letters as in `_telling_words`.
_LINKING = {
    word[:6]
    for word in "run runs running live lives host hosted deploy deployed store stored stores write written go goes work works based kept keep"
    " keeps handle handled handles manage managed build built sits uses via data everything project service system team".split()
}


def states_change_of(new: str, old: str) -> bool:
    """Return True if the new text states a change from something in the old text, and both share more."""
    change = find_change(new)
    if change is None or not mentions(old, change[0]):
        return False
    before, after = change
    beside = (_telling_words(old) & _telling_words(new)) - _telling_words(before)
    return bool(beside) and not (after and mentions(old, after))


def ends_old_value(new: str, old: str) -> bool:
    """Return True if the new text states a change of the old value, and names all else in the old text.

    The reason of the old text does not count. "We moved billing from MySQL to Postgres" ends "We use MySQL for billing", and leaves
    "Reports read MySQL at night" alone.
    """
    change = find_change(new)
    if change is None or not mentions(old, change[0]):
        return False
    before, after = change
    if after and mentions(old, after):
        return False
    rest = _telling_words(REASON_CLAUSE.sub("", old)) - _telling_words(before) - _LINKING
    return bool(rest or _telling_words(before)) and rest <= _telling_words(new)


def other_number(one: str, other: str) -> bool:
    """Return True if two statements are about the same thing with different numbers: "Tenant 12 …".

    They have to go on differently: "Tenant 12 pays 40", "Tenant 15 pays 60". None of 1,688 written replacements does so; the number of a
    technology may be a version.
    """
    first, second = map(NUMBERED_THING.find, (one, other))
    return (
        first is not None
        and second is not None
        and first[1].lower() == second[1].lower()
        and first[2] != second[2]
        and first[3] != second[3]
        and not any(technology(one) or one in technologies().ordinary for one in first[1].split())
    )


_NO_TICKET = "(?:AES|ES|GPT|ISO|MD|RFC|RSA|SHA|UTF|X)-"


def find_tickets(text: str) -> set[str]:
    """Return the numbers of tickets in a text: "H-01", "#73". Numbers of pull requests do not count."""
    own = re.sub(r"(?i)\b(?:pr|mr|pull request|merge request) #\d+|\(#\d+\)$", " ", text.strip())
    return set(re.findall(rf"\b(?!{_NO_TICKET})[A-Z]{{1,9}}-\d{{1,6}}\b|(?<!\w)#\d{{1,6}}\b", own))


def other_tickets(one: str, other: str) -> bool:
    """Return True if both texts name tickets, and none of them the same."""
    wanted, found = find_tickets(one), find_tickets(other)
    return bool(wanted and found) and wanted.isdisjoint(found)


def other_part(one: str, other: str) -> bool:
    """Return True if two statements are about different parts of a system, such as frontend and backend."""
    texts = [set(re.findall(r"[a-z]+", text.lower())) for text in (one, other)]
    for parts in _COUNTERPARTS:
        here, there = ({parts[word] for word in words & parts.keys()} for words in texts)
        if here and there and here.isdisjoint(there):
            return True
    return False
