"""What a text says about itself: its kind, how firmly it was said, a summary, keywords and entities.

Rules and word lists only, so it works offline, gives the same answer every time and costs about a millisecond. A text
is judged by its beginning: what comes after the first 20,000 characters changes nothing. Few entities that are right
are worth more than many, so a doubtful name is left out.

This module knows no store, no model, no clock and no project. It does not know English grammar either: word order and
cue phrases stand in for it, other languages get a summary, keywords and identifiers, and the kind `general`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache, lru_cache

from bethink.ingest.sentences import cut_text, kind_of, prose, read_label
from bethink.language.kinds import cue_scores, firmness
from bethink.language.pattern import compile_pattern
from bethink.language.reports import ANNOUNCES_STEP
from bethink.language.vocabulary import (
    is_file,
    is_identifier,
    is_path,
    known_words,
    technologies,
    technology,
    weak_words,
    word_set,
)
from bethink.model import KINDS, Entity, Passage

PREFIX = 20_000  # characters that are analysed; the rest of a text is kept without
CUE_PREFIX = 5_000  # what a memory is, it says early; a long one would collect cues of every kind
# Of a summary. A character of a script without spaces is most of a word.
SUMMARY_WORDS, SUMMARY_CHARACTERS, WIDE = 20, 240, 6
SENTENCE = 20  # characters from which a sentence says more than "Hello!"
KEYWORDS = 8
LONG_WORD = 80  # nobody looks for a longer one
ENTITY_LIMIT = 20
FIRMNESS = 0.8
CLEAR = 1.3  # weaker cues than this say nothing by themselves
# What is kept as it stands is no less true for the doubts in it: a hedge in an abstract cost scifact 1.5 points of nDCG@10.
QUOTED = ("document", "code", "handoff")
IMPORTANCE = {"decision": 7.0, "gotcha": 7.0, "preference": 6.0, "context": 3.0}
HIDDEN = "\x00"
# A word or an identifier.
_TOKEN = r"[^\W\d]\w*(?:(?:[./:\\-]|::|->)[^\W_]\w*)*"
_ADDRESS = (
    r"\b[a-z][a-z0-9+.-]{1,20}://[^\s`]+|[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+|(?<=\])\([^)\s]{1,400}\)"
    r"|\[REDACTED[^\]\s]{0,40}\]"
)
# Code blocks, addresses and hashes hold hundreds of names that nobody would ask for.
_NOISE = rf"^[ \t]*(```|~~~)(?s:.*?)(?:^[ \t]*\1[^\n]*$|\Z)|{_ADDRESS}"
_FILE = r"(?<![\w\x00])(?:[~.]{0,2}/|[A-Za-z]:\\)?[\w@.+-]+(?:[/\\][\w@.+-]+)*/?(?![\w(\x00])"
_MENTION = r"(?<![\w.@/\x00])@([A-Za-z][\w-]{1,38})(?![\w(./-])"
_SYMBOL = r"(?<![\w.\x00@/-])([A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)*)(\(\))?(?![\w\x00])"
_WORD = r"[A-Za-z0-9.](?:(?<=\.)NET\b|(?<!\.)[\w+#]*(?:[./](?=[A-Za-z0-9])[\w+#]*)*)"
# Letters and a number that are no norm, encoding, type of number or error: ESP32.
_PART = (
    r"(?!(?:AES|BASE|CRC|CVE|ERR|FLOAT|INT|ISO|PEP|RFC|RSA|SHA|TS|UINT|UTF)\d)[A-Z]{2,}\d\d[A-Z\d]*"
)


def extract(passage: Passage) -> Passage:
    """The passage with what it left open filled in. What was given is kept as it is."""
    text, kind = passage.content, passage.kind
    kind, confidence = classify(text) if kind is None else (kind, _confidence(text, kind))
    given = {entity.name.casefold() for entity in passage.entities}
    named = tuple(entity for entity in entities(text) if entity.name.casefold() not in given)
    return passage._replace(
        kind=kind,
        summary=passage.summary or summarize(text),
        confidence=confidence if passage.confidence is None else passage.confidence,
        importance=IMPORTANCE.get(kind, 5.0) if passage.importance is None else passage.importance,
        entities=passage.entities + named,
    )


# Summary and keywords


def summarize(text: str) -> str:
    """One line of at most 20 words: the text itself if it is short, else the first of its sentences that says something."""
    text = text[:PREFIX]
    sentences, first = prose(text), _first_line(text)
    headed = text.lstrip()[:1] == "#" or first.endswith(":")
    lead = [first.rstrip(":") + ":"] if headed and sentences else []
    whole = " ".join([*lead, *sentences]) or first
    told = (one for one in sentences if len(one) > SENTENCE and not _is_filler(one))
    wide = 1 if compile_pattern("[가-힣]").search(whole) else WIDE  # Korean has spaces
    for one in (whole, next(told, whole)):
        short = cut_text(one, SUMMARY_CHARACTERS, SUMMARY_WORDS, wide)
        if short == one:
            break
    return short


def _first_line(text: str) -> str:
    """Of a text without a sentence: a heading, or code."""
    lines = (" ".join(line.split()).lstrip("#> ") for line in text.splitlines())
    return next((line for line in lines if not compile_pattern("```|~~~|[`~-]*$").match(line)), "")


def keywords(text: str) -> tuple[str, ...]:
    """The words that are said most, names of code and technologies counting more; of equal ones the earlier first."""
    counts: Counter[str] = Counter()
    shown: dict[str, str] = {}
    for token in compile_pattern(_TOKEN).findall(compile_pattern(_ADDRESS).sub(" ", text[:PREFIX])):
        if weight := _weigh(token):
            counts[token.lower()] += weight
            shown.setdefault(token.lower(), token)
    return tuple(shown[key] for key, _ in counts.most_common(KEYWORDS))


@lru_cache(maxsize=1 << 13)
def _weigh(word: str) -> int:
    if is_identifier(word) or is_path(word) or technology(word):
        return 3
    if not 2 < len(word) <= LONG_WORD or word.lower() in weak_words():
        return 0
    return 1 if word.lower() in word_set("capitalised") else 2


# Entities


def entities(text: str) -> tuple[Entity, ...]:
    """Named things in order of appearance, at most 20, each once. What was taken for one thing, later finders do not see."""
    shown = text[:PREFIX].replace(HIDDEN, " ")
    found: list[tuple[int, Entity]] = []
    for pattern, name in _finders():
        for match, entity in [(match, name(match)) for match in pattern.finditer(shown)]:
            start, end = match.span()
            if entity:
                found.append((start, entity))
            if entity or name in (_name_nothing, _name_marked, _name_person):
                shown = shown[:start] + HIDDEN * (end - start) + shown[end:]
    unique: dict[str, Entity] = {}
    for _, entity in sorted(found, key=lambda item: item[0]):
        unique.setdefault(entity.name.casefold(), entity)
    return tuple(unique.values())[:ENTITY_LIMIT]


@cache
def _finders() -> list[tuple[re.Pattern[str], Callable[[re.Match[str]], Entity | None]]]:
    """What may name a thing, and what says which thing it is; the surest first."""
    several = [name for name in technologies().names if compile_pattern("[ -]").search(name)]
    joined = ("[ \\t-]".join(map(re.escape, re.split("[ -]", name))) for name in several)
    longest_first = "|".join(sorted(joined, key=len, reverse=True))
    capital, small = "[A-ZÀ-ÖØ-Þ]", "[a-zß-öø-ÿ]"
    rest = rf"{small}+(?:[-'’]{capital}?{small}+)*"
    # The first letter comes first, before what must not precede it: that is many times faster.
    first = rf"{capital}(?<![\w\x00.@/-].)(?:(?<=[A-Z])['’]{capital})?{rest}"
    joint = "|".join(sorted(word_set("name_particles")))
    capitals = rf"{first}(?: (?:(?:{joint}) )?(?:[A-Z]['’])?{capital}{rest}){{0,5}}(?![\w\x00])"
    named = (
        (_NOISE, _name_nothing),
        (r"`([^`\n]{1,80})`", _name_marked),
        (_FILE, _name_file),
        (_MENTION, _name_person),
        (rf"\b(?i:{longest_first})(?!\w)|{_WORD}", _name_technology),
        (_SYMBOL, _name_symbol),
        (capitals, _name_thing),
    )
    return [(compile_pattern(pattern), name) for pattern, name in named]


def _name_nothing(match: re.Match[str]) -> None:
    """Code blocks, addresses and hashes hold hundreds of names that nobody would ask for."""


def _name_marked(match: re.Match[str]) -> Entity | None:
    """What the writer set apart as code: a symbol, a file, a technology or a concept."""
    text = match[1].strip()
    if name := technology(text) or technologies().ordinary.get(text.capitalize()):
        return Entity(name, "technology")
    if is_path(text) or is_file(text):
        return Entity(text, "file")
    bare = text.partition("(")[0] if text.endswith(")") else text
    called = bare != text and compile_pattern(r"[A-Za-z_][\w.:]*").fullmatch(bare)
    word = compile_pattern(r"(?![0-9a-f]{6,40}\Z)[A-Za-z_]\w{3,}").fullmatch(text)
    if called or is_identifier(bare) or (word and text.lower() not in known_words()):
        return Entity(bare, "symbol")
    compound = compile_pattern(r"[A-Za-z][\w&+.]*(?:-[\w&+.]+)+").fullmatch(text)
    return Entity(text, "concept") if compound else None


def _name_file(match: re.Match[str]) -> Entity | None:
    name = match[0].rstrip(".")
    return Entity(name, "file") if is_path(name) or is_file(name) else None


def _name_person(match: re.Match[str]) -> Entity | None:
    return None if match[1].lower() in word_set("decorators") else Entity(match[1], "person")


def _name_technology(match: re.Match[str]) -> Entity | None:
    """A name that is an ordinary word has to be meant: not as a sentence's first word, unless the next one says so. Letters and a number
    name a part."""
    text, name = match.string, technology(match[0].replace("-", " ")) or technology(match[0])
    if name is None and compile_pattern(_PART, 0).fullmatch(match[0]):
        name = match[0]
    if name is None and (name := technologies().ordinary.get(match[0])):
        after = compile_pattern(r"[ \t]+([\w.']+)").match(text[match.end() : match.end() + 40])
        beside = after is not None and after[1].rstrip(".").lower() in word_set("beside_technology")
        if not beside and _begins_sentence(text, match.start()):
            return None
    return Entity(name, "technology") if name else None


def _begins_sentence(text: str, at: int) -> bool:
    """Whether a capital there may come from beginning a sentence, an item or a heading."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    before = line[-12:].rstrip(" \t\"'“‘(*_[")
    marked = compile_pattern(r"(?:.*[.!?:;。！？]|\s*(?:[-+#>|•]+|\d+\)))?$", 0).match(before)
    return bool(marked) or line.lstrip()[:1] == "#"


def _name_symbol(match: re.Match[str]) -> Entity | None:
    return Entity(match[1], "symbol") if match[2] or is_identifier(match[1]) else None


def _name_thing(match: re.Match[str]) -> Entity | None:
    """What a run of capitalised words names, if a capital inside a sentence sets it apart: of several words a person, unless
    one of them or the word before says that it is a thing; what is in doubt is left out."""
    said = [piece.removesuffix("'s").removesuffix("’s") for piece in match[0].split()]
    words = _without_outermost(said)
    initial = words[:1] == said[:1] and _begins_sentence(match.string, match.start())
    calling = word_set("project_words")
    after = compile_pattern(r"[ \t]+([a-z]+)").match(match.string[match.end() : match.end() + 24])
    own = [word for word in words if word.lower() not in calling]
    called = after is not None and after[1] in calling and not initial
    if own and (len(own) < len(words) or called):
        return Entity(" ".join(own), "project")
    name, alone, thing = " ".join(words), len(words) == 1, any(map(_is_thing, words))
    doubtful = (initial or alone) if thing else (initial and alone)
    if doubtful or len(words) > 4 or len(name) < 3:
        return None
    before = match.string[max(match.start() - 5, 0) : match.start()]
    which = compile_pattern(r"\b(?:the|an?|our|my|this|that|in|at) $", re.IGNORECASE).search(before)
    return Entity(name, "concept" if thing or alone or which else "person")


def _without_outermost(words: list[str]) -> list[str]:
    inner = [at for at, word in enumerate(words) if word.lower() not in _never_outermost()]
    return words[inner[0] : inner[-1] + 1] if inner else []


@cache
def _never_outermost() -> frozenset[str]:
    """What no name begins or ends with, whatever its capital. "Order" may: the Order Service."""
    verbs = word_set("capitalised") - word_set("generic")
    return verbs | weak_words() | word_set("name_particles")


def _is_thing(word: str) -> bool:
    """Whether a capitalised word is an ordinary one, a technology or a notion by its ending."""
    known = word.lower() in known_words() or technology(word) or word in technologies().ordinary
    return bool(known) or word.endswith(tuple(word_set("abstract_endings")))


# Kind


def classify(text: str) -> tuple[str, float]:
    """The kind that the wording speaks for, and how firmly it was said. The confidence is the memory's, not the rule's."""
    said, scores = _read_cues(text)
    kind = max(scores, key=lambda name: scores[name], default="general")
    if scores.get(kind, 0) < CLEAR or (kind == "fact" and len(said.split()) < 3):
        kind = "general"
    return kind, _confidence(said, kind)


def score_kinds(text: str) -> dict[str, float]:
    """How much the wording speaks for each kind; nothing for a kind that it does not speak for."""
    return _read_cues(text)[1]


def _read_cues(text: str) -> tuple[str, dict[str, float]]:
    """The sentences that say something, and how much cue phrases, a label and question marks speak for each kind."""
    text = text[:CUE_PREFIX].strip()
    sentences = prose(text)
    kept = [sentence for sentence in sentences if not _is_filler(sentence)]
    said = "\n".join(kept) or text
    if sentences and not kept:
        return said, {"context": CLEAR}
    scores = cue_scores(said if len(kept) < len(sentences) else text)
    rest = compile_pattern(r"(?m)^[ \t]*(?:#{1,6}\s|>).*$").sub("", text).strip()
    if not kept and scores.get("problem", 0) < 3 and rest and _first_line(text) != text:
        return said, {"code": CLEAR}
    if label := find_label(text):
        scores[label] = scores.get(label, 0) + 6
    if asked := sum(one.rstrip("\"')*_` ").endswith(("?", "？")) for one in kept):
        # A question that ends a long report is an offer rather than what the report is about.
        scores["question"] = scores.get("question", 0) + (4 if 2 * asked >= len(kept) else 1.5)
    return said, scores


def _is_filler(sentence: str) -> bool:
    return ANNOUNCES_STEP.holds(sentence)


def find_label(text: str) -> str | None:
    """The kind that "Decision: …" or "[gotcha] …" says outright."""
    label = read_label(text)
    return label.lower() if label.lower() in KINDS else kind_of(label)


def _confidence(text: str, kind: str) -> float:
    if kind in QUOTED:
        return 1.0
    value = firmness(text[:1000], FIRMNESS - (0.1 if kind == "question" else 0.0))
    return round(min(max(value, 0.2), 0.95), 2)
