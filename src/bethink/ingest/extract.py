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
from collections.abc import Iterator
from functools import cache, lru_cache

from bethink.ingest.lexicon import (
    FILLER,
    compile_pattern,
    cue_scores,
    firmness,
    fold_case,
    is_file,
    is_identifier,
    is_path,
    known_words,
    technologies,
    technology,
    word_set,
)
from bethink.ingest.sentences import prose
from bethink.types import KIND_ALIASES, KINDS, Entity, Passage

# A found entity with its place, or a place that later finders shall not look at.
EntityPlace = tuple[int, int, Entity | None]

PREFIX = 20_000  # characters that are analysed; the rest of a text is kept without
CUE_PREFIX = (
    5_000  # what a memory is, it says early; a long document would collect cues of every kind
)
SUMMARY_WORDS = 20
SUMMARY_CHARACTERS = 240
SUMMARY_IDEOGRAPHS = 40
SENTENCE = 20  # characters from which a sentence says more than "Hello!"
KEYWORDS = 8
LONG_WORD = 80  # nobody looks for a longer one
ENTITY_LIMIT = 20
FIRMNESS = 0.8
CLEAR = 1.3  # weaker cues than this say nothing by themselves
HIDDEN = "\x00"
IDEOGRAPH = r"[\u3040-\u30ff\u3400-\u9fff]"
# A word or an identifier.
TOKEN = r"[^\W\d]\w*(?:(?:[./:\\-]|::|->)[^\W_]\w*)*"
FENCE = r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)"
ADDRESS = r"\b[a-z][a-z0-9+.-]{1,20}://[^\s`]+|[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+|(?<=\])\([^)\s]{1,400}\)|\[REDACTED[^\]\s]{0,40}\]"
# What is kept as it stands is no less true for the doubts in it: a hedge in an abstract cost scifact 1.5 points of nDCG@10.
QUOTED = ("document", "code", "handoff")
IMPORTANCE = {"decision": 7.0, "gotcha": 7.0, "preference": 6.0, "context": 3.0}
# What "Bug: …" and the like mean.
LABELS = {
    "bug": "problem",
    "fix": "solution",
    "rule": "pattern",
    "idea": "general",
    "warning": "gotcha",
}


def extract(passage: Passage) -> Passage:
    """The passage with what it left open filled in. What was given is kept as it is."""
    text, kind, confidence = passage.content, passage.kind, passage.confidence
    if kind is None:
        kind, found = classify(text)
    else:
        found = 1.0 if kind in QUOTED else _confidence(text, kind)
    given = {entity.name.casefold() for entity in passage.entities}
    named = tuple(entity for entity in entities(text) if entity.name.casefold() not in given)
    return passage._replace(
        kind=kind,
        summary=passage.summary or summarize(text),
        confidence=(1.0 if kind in QUOTED else found) if confidence is None else confidence,
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
    if _fits(whole):
        return whole
    told = (one for one in sentences if len(one) > SENTENCE and not _is_filler(one))
    short = next(told, whole)
    if _fits(short):
        return short
    limit = (SUMMARY_IDEOGRAPHS if _is_ideographic(short) else SUMMARY_CHARACTERS) - 1
    words = " ".join(short.split()[:SUMMARY_WORDS])
    if len(words) > limit:
        words = words[: limit + 1].rsplit(" ", 1)[0][:limit]
    return words.rstrip(" ,;:.-–—(") + "…"


def _first_line(text: str) -> str:
    """Of a text without a sentence: a heading, or code."""
    lines = (" ".join(line.split()).lstrip("#> ") for line in text.splitlines())
    return next(
        (line for line in lines if line.strip("`~-") and line[:3] not in ("```", "~~~")), ""
    )


def _is_ideographic(text: str) -> bool:
    """Whether words are not set apart by spaces: Chinese and Japanese are counted by the character."""
    sample = text[:400]
    found = () if sample.isascii() else compile_pattern(IDEOGRAPH).findall(sample)
    return 3 * len(found) > len(sample.replace(" ", ""))


def _fits(text: str) -> bool:
    longest = SUMMARY_IDEOGRAPHS if _is_ideographic(text) else SUMMARY_CHARACTERS
    return len(text) <= longest and len(text.split()) <= SUMMARY_WORDS


def keywords(text: str) -> tuple[str, ...]:
    """The words that are said most, names of code and technologies counting more; of equal ones the earlier first."""
    counts: Counter[str] = Counter()
    shown: dict[str, str] = {}
    for token in compile_pattern(TOKEN).findall(compile_pattern(ADDRESS).sub(" ", text[:PREFIX])):
        weight = _weigh(token)
        if weight:
            counts[token.lower()] += weight
            shown.setdefault(token.lower(), token)
    return tuple(shown[key] for key, _ in counts.most_common(KEYWORDS))


@lru_cache(maxsize=1 << 13)
def _weigh(word: str) -> int:
    if is_identifier(word) or is_path(word) or technology(word):
        return 3
    if not 2 < len(word) <= LONG_WORD or word.lower() in word_set("stop_words"):
        return 0
    return 1 if word.lower() in word_set("common") else 2


# Entities


def entities(text: str) -> tuple[Entity, ...]:
    """Named things in order of appearance, at most 20, each once."""
    shown = text[:PREFIX].replace(HIDDEN, " ")
    found: list[tuple[int, Entity]] = []
    for finder in (_noise, _marked, _files, _mentions, _technologies, _symbols, _names):
        for start, end, entity in list(finder(shown)):
            if HIDDEN not in shown[start:end]:
                shown = shown[:start] + HIDDEN * (end - start) + shown[end:]
            if entity:
                found.append((start, entity))
    unique: dict[str, Entity] = {}
    for _, entity in sorted(found, key=lambda item: item[0]):
        known = unique.setdefault(entity.name.casefold(), entity)
        if known.type == "concept":  # a later mention may tell that it is a person or a project
            unique[entity.name.casefold()] = known._replace(type=entity.type)
    return tuple(unique.values())[:ENTITY_LIMIT]


def _noise(text: str) -> Iterator[EntityPlace]:
    """Code blocks, addresses and hashes hold hundreds of names that nobody would ask for."""
    for pattern, flags in ((FENCE, re.MULTILINE | re.DOTALL), (ADDRESS, re.MULTILINE)):
        for match in compile_pattern(pattern, flags).finditer(text):
            yield (*match.span(), None)


def _marked(text: str) -> Iterator[EntityPlace]:
    """What the writer set apart as code: a symbol, a file, a technology or a concept."""
    for match in compile_pattern(r"`([^`\n]{1,80})`").finditer(text):
        yield (*match.span(), _by_shape(match[1].strip()))


@lru_cache(maxsize=1 << 10)
def _by_shape(text: str) -> Entity | None:
    if name := technology(text) or technologies().ordinary.get(text.capitalize()):
        return Entity(name, "technology")
    if is_path(text) or is_file(text):
        return Entity(text, "file")
    bare = text.partition("(")[0] if text.endswith(")") else text
    called = bare != text and compile_pattern(r"[A-Za-z_][\w.:]*").fullmatch(bare)
    word = compile_pattern(r"(?![0-9a-f]{6,40}\Z)[A-Za-z_]\w{3,}").fullmatch(text)
    if called or is_identifier(bare) or (word and not _is_known(text)):
        return Entity(bare, "symbol")
    compound = compile_pattern(r"[A-Za-z][\w&+.]*(?:-[\w&+.]+)+").fullmatch(text)
    return Entity(text, "concept") if compound else None


def _files(text: str) -> Iterator[EntityPlace]:
    path = r"(?<![\w\x00])(?:[~.]{0,2}/|[A-Za-z]:\\)?[\w@.+-]+(?:[/\\][\w@.+-]+)*/?(?![\w(\x00])"
    for match in compile_pattern(path).finditer(text):
        name = match[0].rstrip(".")
        if is_path(name) or is_file(name):
            yield match.start(), match.start() + len(name), Entity(name, "file")


def _mentions(text: str) -> Iterator[EntityPlace]:
    mention = r"(?<![\w.@/\x00])@([A-Za-z][\w-]{1,38})(?![\w(./-])"
    for match in compile_pattern(mention).finditer(text):
        person = match[1].lower() not in word_set("decorators")
        yield (*match.span(), Entity(match[1], "person") if person else None)


def _technologies(text: str) -> Iterator[EntityPlace]:
    """Technologies by the longest of their names, of at most three words. A name that is an ordinary word has to be meant."""
    token = r"[A-Za-z0-9.](?:(?<=\.)NET\b|(?<!\.)[\w+#]*(?:[./](?=[A-Za-z0-9])[\w+#]*)*)"
    tokens = list(compile_pattern(token).finditer(text))
    openings, free = technologies().openings, 0
    for at, first in enumerate(tokens):
        if at < free or first[0].lower() not in openings:
            continue
        for last in reversed(tokens[at : at + 3]):
            piece = text[first.start() : last.end()]
            name = technology(compile_pattern(r"[ \t-]").sub(" ", piece)) or technology(piece)
            if name and "\n" not in piece:
                yield first.start(), last.end(), Entity(name, "technology")
                free = tokens.index(last, at) + 1
                break
        else:
            name = technologies().ordinary.get(first[0])
            if name and _is_meant(text, first):
                yield (*first.span(), Entity(name, "technology"))


def _is_meant(text: str, token: re.Match[str]) -> bool:
    """Whether an ordinary word with a capital is the technology: not a sentence's first word, unless the next one says so."""
    following = compile_pattern(r"[ \t]+([\w.']+)").match(text[token.end() : token.end() + 40])
    word = following[1].rstrip(".").lower() if following else ""
    return word in word_set("beside_technology") or not _begins_sentence(text, token.start())


def _begins_sentence(text: str, at: int) -> bool:
    """Whether a capital there may come from beginning a sentence, an item or a heading."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    before = line[-12:].rstrip(" \t\"'“‘(*_[")
    marked = compile_pattern(r"\s*(?:[-+#>|•]+|\d+\))$", 0).match(before)
    return not before or before[-1] in ".!?:;。！？" or bool(marked) or line.lstrip()[:1] == "#"


def _symbols(text: str) -> Iterator[EntityPlace]:
    symbol = r"(?<![\w.\x00@/-])([A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)*)(\(\))?(?![\w\x00])"
    for match in compile_pattern(symbol).finditer(text):
        if match[2] or is_identifier(match[1]):
            yield (*match.span(), Entity(match[1], "symbol"))


@cache
def _name_pattern() -> re.Pattern[str]:
    """Runs of capitalised words. The first letter comes first, before what must not precede it: that is many times faster."""
    capital, small = "[A-ZÀ-ÖØ-Þ]", "[a-zß-öø-ÿ]"
    rest = rf"{small}+(?:[-'’]{capital}?{small}+)*"
    first = rf"{capital}(?<![\w\x00.@/-].)(?:(?<=[A-Z])['’]{capital})?{rest}"
    joint = "(?:" + "|".join(sorted(word_set("name_particles"))) + ")"
    return re.compile(rf"{first}(?: (?:{joint} )?(?:[A-Z]['’])?{capital}{rest}){{0,5}}(?![\w\x00])")


def _names(text: str) -> Iterator[EntityPlace]:
    """People and things: only those that a capital inside a sentence sets apart."""
    for match in _name_pattern().finditer(text):
        start, end = match.span()
        words = [piece.removesuffix("'s").removesuffix("’s") for piece in match[0].split()]
        initial = _begins_sentence(text, start)
        while words and words[0].lower() in _never_outermost():
            start += len(words.pop(0)) + 1
            initial = False
        while words and words[-1].lower() in _never_outermost():
            words.pop()
        before = compile_pattern(r"([A-Za-z]{1,9}),?[ \t]$", 0).search(
            text[max(start - 24, 0) : start]
        )
        following = compile_pattern(r"[ \t]+([a-z]+)").match(text[end : end + 24])
        beside = [found[1].lower() if found else "" for found in (before, following)]
        if words and (entity := _name(words, initial, *beside)):
            yield start, end, entity


@cache
def _never_outermost() -> frozenset[str]:
    """What no name begins or ends with, whatever its capital. "Order" may: the Order Service."""
    verbs = word_set("common") - word_set("generic")
    return verbs | word_set("stop_words") | word_set("name_particles")


def _is_known(word: str) -> bool:
    return word.lower() in known_words()


def _is_thing(word: str) -> bool:
    """Whether a capitalised word is an ordinary one, a technology or a notion by its ending."""
    if _is_known(word) or technology(word) or word in technologies().ordinary:
        return True
    return word.endswith(tuple(word_set("abstract_endings")))


def _name_project(words: list[str], initial: bool, following: str) -> str:
    """What is called a project by a word in it or behind it."""
    calling = word_set("project_words")
    rest = [word for word in words if word.lower() not in calling]
    called = len(rest) < len(words) or (following in calling and not initial)
    return " ".join(rest) if called else ""


def _name(words: list[str], initial: bool, before: str, following: str) -> Entity | None:
    """What a run of capitalised words names. One word is a person by what people do, several are one unless something says that
    they are a thing; what begins a sentence is left out where that is in doubt."""
    if project := _name_project(words, initial, following):
        return Entity(project, "project")
    name, thing = " ".join(words), any(map(_is_thing, words))
    human = following in word_set("human_verbs") or before in word_set("before_people")
    alone, doubtful = len(words) == 1, initial and not human
    if len(words) > 4 or len(name) < 3 or (thing and (initial or alone)) or (alone and doubtful):
        return None
    person = human or not (alone or before in word_set("before_things"))
    return Entity(name, "concept" if thing or not person else "person")


# Kind


def classify(text: str) -> tuple[str, float]:
    """The kind that the wording speaks for, and how firmly it was said. The confidence is the memory's, not the rule's."""
    text = text[:CUE_PREFIX].strip()
    if not any(map(str.isalnum, text)):
        return "general", 0.5
    sentences = prose(text)
    if not sentences and cue_scores(text).get("problem", 0) < 3 and _first_line(text) != text:
        return "code", FIRMNESS
    kept = [sentence for sentence in sentences if not _is_filler(sentence)]
    if sentences and not kept:
        return "context", _confidence(text, "context")
    said = "\n".join(kept) or text
    scores = _score_kinds(text, said if len(kept) < len(sentences) else text, kept)
    kind = max(scores, key=lambda name: scores[name], default="general")
    if scores.get(kind, 0) < CLEAR or (kind == "fact" and len(said.split()) < 3):
        kind = "general"
    return kind, _confidence(said, kind)


def _score_kinds(text: str, said: str, sentences: list[str]) -> dict[str, float]:
    """How much cue phrases, a label and question marks speak for each kind."""
    scores = dict(cue_scores(said))
    if label := _label(text):
        scores[label] = scores.get(label, 0) + 6
    asked = sum(sentence.rstrip("\"')*_` ").endswith(("?", "？")) for sentence in sentences)
    if asked:
        # A question that ends a long report is an offer rather than what the report is about.
        scores["question"] = scores.get("question", 0) + (4 if 2 * asked >= len(sentences) else 1.5)
    return scores


def _is_filler(sentence: str) -> bool:
    return bool(compile_pattern(FILLER).match(fold_case(sentence)))


def _label(text: str) -> str | None:
    """What "Decision: …" or "[gotcha] …" says outright."""
    match = compile_pattern(r"\W{0,4}([A-Za-z]{3,12})\b\W{0,3}?(?::|\]| [-–—] )").match(text)
    word = match[1].lower() if match else ""
    word = LABELS.get(word, word)
    return word if word in KINDS else KIND_ALIASES.get(word) if word != "note" else None


def _confidence(text: str, kind: str) -> float:
    value = firmness(text[:1000], FIRMNESS - (0.1 if kind == "question" else 0.0))
    return round(min(max(value, 0.2), 0.95), 2)
