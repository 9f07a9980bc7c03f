"""Read kind, certainty, summary, keywords and entities from the wording of a text.

Rules and word lists only, so it works offline, gives the same answer every time and costs about a millisecond. A text
is judged by its beginning: the text after the first 20,000 characters changes nothing. Few entities that are right
are worth more than many, so a doubtful name is left out.

This module knows no store, no model, no clock and no project. It does not know English grammar either: it relies on word order and
cue phrases. Other languages get a summary, keywords and identifiers; of kinds only those that cue phrases tell.
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
    BEFORE_A_THING,
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

ANALYSED_CHARACTERS = 20_000  # characters that are analysed; the rest of a text is kept without
CUE_CHARACTERS = (
    5_000  # what a memory is, it says early; a long one would collect cues of every kind
)
# Of a summary. A character of a script without spaces is most of a word. By hand.
SUMMARY_LINE_WORDS, SUMMARY_LINE_CHARACTERS, SUMMARY_WIDE = 20, 240, 6
TELLING_SENTENCE = 20  # characters from which a sentence says more than "Hello!"
MOST_KEYWORDS = 8
LONGEST_KEYWORD = 80  # nobody looks for a longer one
ENTITY_LIMIT = 20
USUAL_CONFIDENCE = 0.8  # by hand
CLEAR_CUE = 1.3  # weaker cues than this say nothing by themselves; by hand
# A hedge in a quoted text does not make it less certain: one in an abstract cost scifact 1.5 points of nDCG@10.
QUOTED_KINDS = ("document", "code", "handoff")
KIND_IMPORTANCE = {"decision": 7.0, "gotcha": 7.0, "preference": 6.0, "context": 3.0}  # by hand
HIDDEN_CHARACTER = "\x00"
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
    """Fill in what a passage leaves open: kind, summary, confidence, importance, entities."""
    text, kind = passage.content, passage.kind
    kind, confidence = classify(text) if kind is None else (kind, _confidence(text, kind))
    known = {entity.name.casefold() for entity in passage.entities}
    named = tuple(entity for entity in entities(text) if entity.name.casefold() not in known)
    return passage._replace(
        kind=kind,
        summary=passage.summary or summarize(text),
        confidence=confidence if passage.confidence is None else passage.confidence,
        importance=KIND_IMPORTANCE.get(kind, 5.0)
        if passage.importance is None
        else passage.importance,
        entities=passage.entities + named,
    )


# Summary and keywords


def summarize(text: str) -> str:
    """Return one line of at most 20 words: a short text itself, else its first telling sentence."""
    text = text[:ANALYSED_CHARACTERS]
    sentences, first = prose(text), _first_line(text)
    headed = text.lstrip()[:1] == "#" or first.endswith(":")
    lead = [first.rstrip(":") + ":"] if headed and sentences else []
    whole = " ".join([*lead, *sentences]) or first
    telling = (one for one in sentences if len(one) > TELLING_SENTENCE and not _is_filler(one))
    wide = 1 if compile_pattern("[가-힣]").search(whole) else SUMMARY_WIDE  # Korean has spaces
    for one in (whole, next(telling, whole)):
        short = cut_text(one, SUMMARY_LINE_CHARACTERS, SUMMARY_LINE_WORDS, wide)
        if short == one:
            break
    return short


def _first_line(text: str) -> str:
    """Return the first line of a text without sentences: a heading, or code."""
    lines = (" ".join(line.split()).lstrip("#> ") for line in text.splitlines())
    return next((line for line in lines if not compile_pattern("```|~~~|[`~-]*$").match(line)), "")


def keywords(text: str) -> tuple[str, ...]:
    """Return the most frequent words; names of code and technologies count more, earlier words win ties."""
    counts: Counter[str] = Counter()
    shown: dict[str, str] = {}
    for token in compile_pattern(_TOKEN).findall(
        compile_pattern(_ADDRESS).sub(" ", text[:ANALYSED_CHARACTERS])
    ):
        if weight := _weigh(token):
            counts[token.lower()] += weight
            shown.setdefault(token.lower(), token)
    return tuple(shown[key] for key, _ in counts.most_common(MOST_KEYWORDS))


@lru_cache(maxsize=1 << 13)
def _weigh(word: str) -> int:
    if is_identifier(word) or is_path(word) or technology(word):
        return 3
    if not 2 < len(word) <= LONGEST_KEYWORD or word.lower() in weak_words():
        return 0
    return 1 if word.lower() in word_set("capitalised") else 2


# Entities


def entities(text: str) -> tuple[Entity, ...]:
    """Return named things in order of appearance, at most 20, each once.

    Text that one finder took is hidden from later ones.
    """
    shown = text[:ANALYSED_CHARACTERS].replace(HIDDEN_CHARACTER, " ")
    found: list[tuple[int, Entity]] = []
    for pattern, name in _finders():
        for match, entity in [(match, name(match)) for match in pattern.finditer(shown)]:
            start, end = match.span()
            if entity:
                found.append((start, entity))
            if entity or name in (_name_nothing, _name_marked, _name_person):
                shown = shown[:start] + HIDDEN_CHARACTER * (end - start) + shown[end:]
    unique: dict[str, Entity] = {}
    for _, entity in sorted(found, key=lambda item: item[0]):
        unique.setdefault(entity.name.casefold(), entity)
    return tuple(unique.values())[:ENTITY_LIMIT]


@cache
def _finders() -> list[tuple[re.Pattern[str], Callable[[re.Match[str]], Entity | None]]]:
    """Return the patterns that may name a thing with the functions that decide, the surest first."""
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
    """Skip code blocks, addresses and hashes: they hold hundreds of names that nobody would ask for."""


def _name_marked(match: re.Match[str]) -> Entity | None:
    """Return the symbol, file, technology or concept that the writer set apart as code."""
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
    """Return a technology. An ordinary word counts inside a sentence, or if the next word confirms it.

    Letters and a number name a part: ESP32.
    """
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
    """Return True if a capital may come from beginning a sentence, an item or a heading."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    before = line[-12:].rstrip(" \t\"'“‘(*_[")
    marked = compile_pattern(r"(?:.*[.!?:;。！？]|\s*(?:[-+#>|•]+|\d+\)))?$", 0).match(before)
    return bool(marked) or line.lstrip()[:1] == "#"


def _name_symbol(match: re.Match[str]) -> Entity | None:
    return Entity(match[1], "symbol") if match[2] or is_identifier(match[1]) else None


def _name_thing(match: re.Match[str]) -> Entity | None:
    """Return the project, concept or person that a run of capitalised words names; None in doubt.

    Several words name a person, unless one of them or the word before shows that it is a thing.
    """
    pieces = [piece.removesuffix("'s").removesuffix("’s") for piece in match[0].split()]
    words = _without_outermost(pieces)
    initial = words[:1] == pieces[:1] and _begins_sentence(match.string, match.start())
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
    is_thing = thing or alone or BEFORE_A_THING.holds(before)
    return Entity(name, "concept" if is_thing else "person")


def _without_outermost(words: list[str]) -> list[str]:
    inner = [at for at, word in enumerate(words) if word.lower() not in _never_outermost()]
    return words[inner[0] : inner[-1] + 1] if inner else []


@cache
def _never_outermost() -> frozenset[str]:
    """Return words that no name begins or ends with. "Order" may begin one: the Order Service."""
    verbs = word_set("capitalised") - word_set("generic")
    return verbs | weak_words() | word_set("name_particles")


def _is_thing(word: str) -> bool:
    """Return True if a capitalised word is an ordinary one, a technology, or a notion by its ending."""
    known = word.lower() in known_words() or technology(word) or word in technologies().ordinary
    return bool(known) or word.endswith(tuple(word_set("abstract_endings")))


# Kind


def classify(text: str) -> tuple[str, float]:
    """Return the kind that the wording speaks for, and the memory's confidence: how firmly it was put."""
    sentences, scores = _read_cues(text)
    kind = max(scores, key=lambda name: scores[name], default="general")
    if scores.get(kind, 0) < CLEAR_CUE or (kind == "fact" and len(sentences.split()) < 3):
        kind = "general"
    return kind, _confidence(sentences, kind)


def score_kinds(text: str) -> dict[str, float]:
    """Return how much the wording speaks for each kind that it speaks for."""
    return _read_cues(text)[1]


def _read_cues(text: str) -> tuple[str, dict[str, float]]:
    """Return the sentences that say something, and the weight of cues, label and questions for each kind."""
    text = text[:CUE_CHARACTERS].strip()
    sentences = prose(text)
    kept = [sentence for sentence in sentences if not _is_filler(sentence)]
    prose_text = "\n".join(kept) or text
    if sentences and not kept:
        return prose_text, {"context": CLEAR_CUE}
    scores = cue_scores(prose_text if len(kept) < len(sentences) else text)
    rest = compile_pattern(r"(?m)^[ \t]*(?:#{1,6}\s|>).*$").sub("", text).strip()
    if not kept and scores.get("problem", 0) < 3 and rest and _first_line(text) != text:
        return prose_text, {"code": CLEAR_CUE}
    if label := find_label(text):
        scores[label] = scores.get(label, 0) + 6
    if asked := sum(one.rstrip("\"')*_` ").endswith(("?", "？")) for one in kept):
        # A question that ends a long report is an offer rather than what the report is about.
        scores["question"] = scores.get("question", 0) + (4 if 2 * asked >= len(kept) else 1.5)
    return prose_text, scores


def _is_filler(sentence: str) -> bool:
    return ANNOUNCES_STEP.holds(sentence)


def find_label(text: str) -> str | None:
    """Return the kind that "Decision: …" or "[gotcha] …" names outright."""
    label = read_label(text)
    return label.lower() if label.lower() in KINDS else kind_of(label)


def _confidence(text: str, kind: str) -> float:
    if kind in QUOTED_KINDS:
        return 1.0
    value = firmness(text[:1000], USUAL_CONFIDENCE - (0.1 if kind == "question" else 0.0))
    return round(min(max(value, 0.2), 0.95), 2)
