"""Whether one text says only what another says, by the words of both. The guard against what a model makes up.

Words are compared as the index knows them, so a plural or an accent makes no difference. Names, numbers, paths and
identifiers are facts and must all be there; of the other words most must; and a sentence that is told again must not lose or
gain its "not" (in English). A text made of the right words in another order still passes: words are all that is seen.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice

from bethink.store.words import tokenize
from bethink.text.words import STOP_WORDS

# Claims of SciFact, which people wrote freely after reading an abstract (2026-11): 0.6 lets 53 % of them pass and none of 300 that
# were set against another abstract; 0.5 lets 66 % and 0.7 % pass. Questions ask for the words of the text, so more of ours do.
SHARE = 0.6
RETOLD = 0.8  # of a text's words in one sentence: then it is that sentence
KEPT = 0.75  # of either text in what two are merged to; stricter, because what is lost there is lost for good
# Words that a retelling brings along, whoever tells it.
FRAME = """
user person assistant team conversation project session agreed agree chose choose chosen choice decided decide decision
concluded conclude conclusion question asked ask wants want wanted prefer prefers preferred preference need needs needed require
required problem issue solution solved fixed fix todo plan planned use uses used using instead because due reason
still open now currently found noted states stated says said
"""
_TOKEN = re.compile(r"[A-Za-z0-9_./\\:-]+")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_HUMP = re.compile(r"[a-z][A-Z]")
_DOTTED = re.compile(r"\w\w\.\w|\w\.\w\w")  # not "e.g."
_NOT = re.compile(r"\b(?:not|never|neither|nor|cannot|without|no longer)\b|n['’]t\b", re.IGNORECASE)
_NO_DENIAL = re.compile(r"\b(?:do not|don['’]t|never) forget\b|\bnot only\b", re.IGNORECASE)
_SENTENCES = 2000
_LONGEST = 200_000  # characters; more than a question ever holds


def words(text: str) -> set[str]:
    """The words of a text that carry its meaning."""
    return set(tokenize(text[:_LONGEST])) - _lexemes(" ".join(STOP_WORDS))


def grounded(text: str, source: str) -> bool:
    """Whether the source bears the text out."""
    told, known = words(text), words(source)
    telling = told - _lexemes(FRAME)
    if not telling:
        return bool(told & known)
    if len(telling & known) < SHARE * len(telling) or not all(
        mentions(fact, source) for fact in _facts(text)
    ):
        return False
    return not _turned_round(text, telling, source)


def kept(text: str, merged: str) -> bool:
    """Whether nothing that matters of a text is missing in what was made of it."""
    telling = words(text) - _lexemes(FRAME)
    return len(telling & words(merged)) >= KEPT * len(telling) and all(
        mentions(fact, merged) for fact in _facts(text)
    )


def mentions(name: str, source: str) -> bool:
    """Whether a name stands in a text, as a whole and in any case."""
    name, folded = name.strip().casefold(), source.casefold()
    at = folded.find(name) if name else -1
    while at >= 0:
        end = at + len(name)
        if not _joined(folded[at - 1 : at] if at else "", name[0]) and not _joined(
            name[-1], folded[end : end + 1]
        ):
            return True
        at = folded.find(name, end)
    return False


def _turned_round(text: str, telling: set[str], source: str) -> bool:
    """Whether every sentence of the source that the text retells says "not" where the text does not, or the other way round.

    Questions are passed over: "Why don't we use it?" is often answered by using it.
    """
    sentences = islice(re.split(r"(?<=[.!?;])\s|\n", source[:_LONGEST]), _SENTENCES)
    retold = [
        said
        for said in sentences
        if not said.rstrip().endswith("?") and len(telling & words(said)) >= RETOLD * len(telling)
    ]
    return bool(retold) and all(_denies(said) != _denies(text) for said in retold)


def _denies(text: str) -> bool:
    return bool(_NOT.search(_NO_DENIAL.sub("", text)))


def _joined(left: str, right: str) -> bool:
    """Whether two characters belong to one number or one word. `30s` is 30 and a unit, `300` is another number."""
    return (left.isdigit() and right.isdigit()) or (
        left.isascii() and right.isascii() and left.isalpha() and right.isalpha()
    )


def _facts(text: str) -> set[str]:
    """Numbers, and tokens that only a name has: `retry_after`, `parseUrl`, `SX1262`, `node.js`, `src/store/scan.py`."""
    found = set()
    for token in _TOKEN.findall(text[:_LONGEST]):
        token = token.strip("./\\:-")
        if token[:1].isdigit():
            found.update(_NUMBER.findall(token))
        elif (
            "_" in token
            or any(letter.isdigit() for letter in token)
            or _HUMP.search(token)
            or _DOTTED.search(token)
        ):
            found.add(token)
    return found


@lru_cache(maxsize=4)
def _lexemes(text: str) -> frozenset[str]:
    return frozenset(tokenize(text))
