"""What a text says about itself: its kind, how firmly it was said, a summary, keywords and entities.

Rules and word lists only, so it works offline, gives the same answer every time and costs about a millisecond. A text
is judged by its beginning: what comes after the first 20,000 characters changes nothing. Few entities that are right
are worth more than many, so a doubtful name is left out.

This module knows no store, no model, no clock and no project. It does not know English grammar either: word order and
cue phrases stand in for it, other languages get a summary, keywords and identifiers, and the kind `general`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import islice
from string import ascii_letters

from bethink.ingest.lexicon import (
    FILLER,
    GREETING,
    compile_pattern,
    cue_scores,
    firmness,
    fold_case,
    is_file,
    is_identifier,
    is_path,
    known_words,
    plain_words,
    technologies,
    technology,
    word_set,
)
from bethink.ingest.sentences import split_sentences
from bethink.types import KIND_ALIASES, KINDS, Entity, Passage

# A found entity with its place, or a place that later finders shall not look at.
EntityPlace = tuple[int, int, Entity | None]

PREFIX = 20_000  # characters that are analysed; the rest of a text is kept without
CUE_PREFIX = (
    5_000  # what a memory is, it says early; a long document would collect cues of every kind
)
SUMMARY_WORDS = 20
KEYWORDS = 8
SUMMARY_CHARACTERS = 240
SUMMARY_IDEOGRAPHS = 40
ENTITY_LIMIT = 20
FIRMNESS = 0.8
CLEAR = 1.3  # weaker cues than this say nothing by themselves
HIDDEN = "\x00"
LONG_WORD = 80  # nobody looks for a longer one, and no cache has to keep it
IDEOGRAPH = r"[\u3040-\u30ff\u3400-\u9fff]"
LITTLE_IDEOGRAPHS = "的了是在和与或及而不我们你他她它这那就都也很把被将对为到从用有个要会能可以"
# A word or an identifier. What comes after the look-ahead is rare, and passed over quickly when it is not there.
TOKEN = r"[^\W\d]\w*(?:(?=[./:\\'’+#-])(?:(?:[./:\\-]|::|->)[^\W_]\w*|['’](?:t|s|ll|re|ve|d)\b)*(?:\+\+|#)?)?"
FENCE = r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)"
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
    kind, confidence = (
        (passage.kind, _confidence(passage.content, passage.kind))
        if passage.kind
        else classify(passage.content)
    )
    if kind in QUOTED:
        confidence = 1.0
    given = {entity.name.casefold() for entity in passage.entities}
    found = tuple(
        entity for entity in entities(passage.content) if entity.name.casefold() not in given
    )
    return passage._replace(
        kind=kind,
        summary=passage.summary or summarize(passage.content),
        confidence=confidence if passage.confidence is None else passage.confidence,
        importance=IMPORTANCE.get(kind, 5.0) if passage.importance is None else passage.importance,
        entities=passage.entities + found,
    )


@lru_cache(maxsize=8)  # the kind and the summary are about the same text
def _blocks(text: str) -> tuple[tuple[str, bool], ...]:
    """Paragraphs, list items and (True) headings without their markup; code, comments and front matter are left out."""
    if text.startswith("---\n") or "<!--" in text:
        text = compile_pattern(r"\A---\n.*?\n---(?:\n|\Z)|<!--.*?(?:-->|\Z)", re.DOTALL).sub(
            "", text
        )
    if "```" in text or "~~~" in text:
        text = compile_pattern(FENCE, re.MULTILINE | re.DOTALL).sub("\n", text)
    blocks: list[tuple[list[str], bool]] = [([], False)]
    marked = compile_pattern(r"\s*(?:[#|=*_+•-]|\d|$)")
    for line in text.splitlines():
        heading = item = rule = None
        if marked.match(line):
            heading = compile_pattern(r"\s{0,3}#{1,6}\s+(.*)$").match(line)
            item = compile_pattern(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(.*)$").match(
                line
            )
            rule = compile_pattern(r"[\s|=*_-]*$").match(line)
        if heading or item or rule or blocks[-1][1]:
            blocks.append(([], bool(heading)))
        if not rule:
            blocks[-1][0].append(
                _plain(
                    heading[1].rstrip("# \t")
                    if heading
                    else item[1]
                    if item
                    else line.lstrip("> \t")
                )
            )
    joined = [(" ".join(lines).strip(), heading) for lines, heading in blocks]
    return tuple((block, heading) for block, heading in joined if block)


def _plain(line: str) -> str:
    if "](" in line:
        line = compile_pattern(r"!\[[^\]\n]{0,200}\]\([^)\s]{0,400}\)").sub("", line)
        line = compile_pattern(r"\[([^\]\n]{0,200})\]\([^)\s]{0,400}\)").sub(r"\1", line)
    if "*" in line:
        line = compile_pattern(r"(\*{1,3})(?=\S)([^*\n]{1,200}?)(?<=\S)\1").sub(r"\2", line)
    return " ".join(line.split())


def summarize(text: str) -> str:
    """One line of at most 20 words: the text itself if it is short, else the most telling of its first sentences."""
    text = text[:PREFIX]
    blocks = _blocks(text)
    if not blocks:
        return _cut(_first_line_of_code(text))
    whole = " ".join(
        block + ":" if heading and block[-1].isalnum() else block for block, heading in blocks
    ).rstrip(":")
    if _fits(whole):
        return whole
    greeting = compile_pattern(GREETING)
    body = [block for block, heading in blocks if not heading] or [block for block, _ in blocks]
    sentences = (sentence for block in body[:8] for sentence in split_sentences(block[:4000]))
    told = (
        sentence
        for sentence in sentences
        if len(sentence.split(None, 6)) > 5 or not greeting.match(fold_case(sentence))
    )
    return _cut(_most_telling(list(islice(told, 6)) or [whole]))


def _first_line_of_code(text: str) -> str:
    lines = map(str.strip, text.splitlines())
    return next((line for line in lines if line and not line.startswith(("```", "~~~", "---"))), "")


def _most_telling(sentences: list[str]) -> str:
    """Of equal sentences the first wins; each later one has to be clearly more telling."""
    if len(sentences) == 1:
        return sentences[0]
    return max(
        enumerate(sentences), key=lambda numbered: _score_sentence(numbered[1]) - numbered[0]
    )[1]


def _score_sentence(sentence: str) -> float:
    tokens = [token.strip(".,;:!?()[]\"'`") for token in sentence.split(None, 60)[:60]]
    content = {token.lower() for token in tokens if len(token) > 2} - word_set("stop_words")
    names = sum(is_identifier(token) for token in content if not token.isalpha())
    length = 2 if len(tokens) < 4 else 1 if len(tokens) > 40 else 0
    idle = 3 if _is_filler(sentence) or sentence.startswith(("$ ", "❯", "> ")) else 0
    cue = max(cue_scores(sentence).values(), default=0.0)
    return 0.5 * min(len(content), 12) + 0.5 * min(names, 4) + 0.7 * cue - length - idle


def _ideographic(text: str) -> bool:
    """Whether words are not set apart by spaces: Chinese and Japanese are counted by the character."""
    sample = text[:400]
    return not sample.isascii() and 3 * len(compile_pattern(IDEOGRAPH).findall(sample)) > len(
        sample.replace(" ", "")
    )


def _fits(text: str) -> bool:
    return (
        len(text) <= (SUMMARY_IDEOGRAPHS if _ideographic(text) else SUMMARY_CHARACTERS)
        and len(text.split()) <= SUMMARY_WORDS
    )


def _cut(text: str) -> str:
    text = " ".join(text.split())
    if _fits(text):
        return text
    limit = (SUMMARY_IDEOGRAPHS if _ideographic(text) else SUMMARY_CHARACTERS) - 1
    short = " ".join(text.split()[:SUMMARY_WORDS])
    if len(short) > limit:
        short = short[: limit + 1].rsplit(" ", 1)[0][:limit]
    return short.rstrip(" ,;:.-–—(") + "…"


def keywords(text: str) -> tuple[str, ...]:
    """The most telling words and identifiers, heaviest first; of equal weight the earlier one first."""
    text = compile_pattern(r"https?://\S+|\[REDACTED[^\]\s]{0,40}\]").sub(" ", text[:PREFIX])
    weights: dict[str, float] = {}
    counts: dict[str, int] = {}
    shown: dict[str, str] = {}
    for token in compile_pattern(TOKEN).finditer(text):
        parts, whole = _token_words(token[0])
        for word, key in parts:
            known = shown.get(key)
            counts[key] = counts.get(key, 0) + 1
            # A word in small letters weighs the same wherever it stands.
            matters = whole and (word != word.lower() or (known is not None and known != word))
            initial = matters and _begins_sentence(text, token.start())
            weight = _weight(word, initial)
            weights[key] = max(weights.get(key, 0.0), weight)
            named = not initial or weight > 1.5
            if known is None or (named and known.islower()):
                shown[key] = word if named else word.lower()
    # A word said again counts, but ever less: otherwise one word of a long text would drown the rest.
    for key, count in counts.items():
        if count > 1:
            weights[key] *= 1 + math.log2(count) / 2
    heaviest = sorted(weights, key=weights.__getitem__, reverse=True)
    return tuple(shown[key] for key in heaviest[:KEYWORDS])


@lru_cache(maxsize=1 << 13)
def _token_words(token: str) -> tuple[tuple[tuple[str, str], ...], bool]:
    """The words of a token that count, each with its key, and whether the token is one word. Chinese and Japanese are cut at
    their little words, what is no path at its slashes."""
    parts, whole = [token.removesuffix("'s").removesuffix("’s")], True
    if not token.isascii() and compile_pattern(IDEOGRAPH).search(token):
        pieces = compile_pattern(r"[A-Za-z][\w.-]*|[\u30a0-\u30ff]{2,}|[\u3400-\u9fff]+").findall(
            token
        )
        cut = [part for piece in pieces for part in re.split(f"[{LITTLE_IDEOGRAPHS}]", piece)]
        parts, whole = [part for part in cut if 1 < len(part) < 9], False
    elif "/" in token and not is_path(token):
        parts, whole = token.split("/"), False
    return tuple((part, _key(part)) for part in parts if _weight(part, False)), whole


def _key(word: str) -> str:
    """A word and its plural are one."""
    key = word.lower()
    plural = len(key) > 4 and key.endswith("s") and not key.endswith(("ss", "us", "is"))
    return key[:-1] if plural and _weight(word, False) < 2 else key


@lru_cache(maxsize=1 << 13)
def _weight(word: str, initial: bool) -> float:
    """What a word counts. A capital counts less where it may come from beginning a sentence."""
    lowered = word.lower().replace("’", "'")
    if len(word) > LONG_WORD or lowered in word_set("stop_words") | word_set("literals"):
        return 0.0
    if is_identifier(word) or is_path(word):
        return 2.0
    if technology(word):
        return 1.8
    if len(word) < 3 and not (word.isupper() and len(word) == 2) and word.isascii():
        return 0.0
    if lowered in word_set("common"):
        return 0.5
    if not initial and word[0].isupper():
        return 1.5
    return 0.7 + min(len(word), 10) / 20


def entities(text: str) -> tuple[Entity, ...]:
    """Named things in order of appearance, at most 20, each once."""
    shown = text[:PREFIX].replace(HIDDEN, " ")
    found: list[tuple[int, Entity]] = []
    for finder in (_noise, _find_marked, _files, _mentions, _technologies, _symbols, _names):
        if places := list(finder(shown)):
            found += ((start, entity) for start, _, entity in places if entity)
            shown = _hide(shown, places)
    unique: dict[str, Entity] = {}
    for _, entity in sorted(found, key=lambda item: item[0]):
        known = unique.setdefault(entity.name.casefold(), entity)
        if (
            known.type == "concept" and entity.type != "concept"
        ):  # a later mention may tell that it is a person or a project
            unique[entity.name.casefold()] = known._replace(type=entity.type)
    return tuple(unique.values())[:ENTITY_LIMIT]


def _hide(text: str, places: list[EntityPlace]) -> str:
    pieces: list[str] = []
    at = 0
    for start, end, _ in sorted(places, key=lambda place: place[:2]):
        if start >= at:
            pieces += (text[at:start], HIDDEN * (end - start))
            at = end
    return "".join([*pieces, text[at:]])


def _noise(text: str) -> Iterator[EntityPlace]:
    """Code blocks, addresses and hashes hold hundreds of names that nobody would ask for."""
    if "```" in text or "~~~" in text:
        for match in compile_pattern(FENCE, re.MULTILINE | re.DOTALL).finditer(text):
            yield (*match.span(), None)
    address = r"\b[a-z][a-z0-9+.-]{1,20}://[^\s`]+|[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+|(?<=\])\([^)\s]{1,400}\)"
    for match in compile_pattern(rf"{address}|\[REDACTED[^\]\s]{{0,40}}\]").finditer(text):
        yield (*match.span(), None)


def _find_marked(text: str) -> Iterator[EntityPlace]:
    """What the writer set apart: `code` is a symbol, a file, a technology or a concept; "A Name" is a concept."""
    for match in compile_pattern(r"`([^`\n]{1,80})`").finditer(text):
        yield (*match.span(), _by_shape(match[1].strip(), in_code=True))
    for match in compile_pattern(r"[\"“](?<![\w\"].)([^\"“”\n]{2,60})[\"”](?!\w)").finditer(text):
        if entity := _by_shape(match[1].strip(" ,."), in_code=False):
            yield (*match.span(), entity)


@lru_cache(maxsize=1 << 10)
def _by_shape(text: str, *, in_code: bool) -> Entity | None:
    if name := technology(text) or (in_code and technologies().ordinary.get(text.capitalize())):
        return Entity(name, "technology")
    if is_path(text) or is_file(text):
        return Entity(text, "file")
    if symbol := _find_symbol(text, in_code):
        return Entity(symbol, "symbol")
    concept = compile_pattern(r"[A-Za-z][\w&+.-]*(?: [\w&+.-]+){0,3}(?<![.-])").fullmatch(text)
    return Entity(text, "concept") if concept and _is_set_apart(text, in_code) else None


def _find_symbol(text: str, in_code: bool) -> str:
    """The name of what a program defines, without the arguments of a call; empty if it is none."""
    bare = text.partition("(")[0] if text.endswith(")") else text
    called = bare != text and compile_pattern(r"[A-Za-z_][\w.:]*").fullmatch(bare)
    if called or is_identifier(bare):
        return bare
    word = compile_pattern(r"(?![0-9a-f]{6,40}\Z)[A-Za-z_]\w{3,}").fullmatch(text)
    return text if in_code and word and not _is_known(text) else ""


def _is_set_apart(text: str, in_code: bool) -> bool:
    """Whether it looks like a name rather than plain words: compound in code, capitals throughout in quotes."""
    words = text.split()
    if in_code:
        return "-" in text and len(words) == 1
    telling = any(word.lower() not in plain_words() for word in words)
    return telling and all(word[0].isupper() for word in words)


def _files(text: str) -> Iterator[EntityPlace]:
    path = r"(?<![\w\x00])(?:[~.]{0,2}/|[A-Za-z]:\\)?[\w@.+-]+(?:[/\\][\w@.+-]+)*/?(?![\w(\x00])"
    for match in compile_pattern(path).finditer(text):
        name = match[0].rstrip(".")
        if is_path(name) or is_file(name):
            yield match.start(), match.start() + len(name), Entity(name, "file")


def _mentions(text: str) -> Iterator[EntityPlace]:
    if "@" not in text:
        return
    for match in compile_pattern(r"(?<![\w.@/\x00])@([A-Za-z][\w-]{1,38})(?![\w(./-])").finditer(
        text
    ):
        person = match[1].lower() not in word_set("decorators")
        yield (*match.span(), Entity(match[1], "person") if person else None)
    for match in compile_pattern(r"(?<![\w.\x00])@[\w-]+[/.(][\w./-]*").finditer(text):
        yield (*match.span(), None)


def _technologies(text: str) -> Iterator[EntityPlace]:
    pattern = compile_pattern(
        r"[A-Za-z0-9.](?:(?<=\.)NET\b|(?<!\.)[\w+#]*(?:[./](?=[A-Za-z0-9])[\w+#]*)*)"
    )
    words = pattern.findall(text)
    tokens: list[re.Match[str]] = []
    free = 0
    for at in [at for at, word in enumerate(words) if word.lower() in technologies().openings]:
        counts = [
            count
            for count in (3, 2, 1)
            if " ".join(words[at : at + count]).lower() in technologies().spellings
        ]
        if at < free or not (counts or words[at] in technologies().ordinary):
            continue
        tokens = tokens or list(pattern.finditer(text))
        for count in counts:
            start, end = tokens[at].start(), tokens[min(at + count, len(tokens)) - 1].end()
            name = technology(compile_pattern(r"[ \t-]").sub(" ", text[start:end])) or technology(
                text[start:end]
            )
            if name and at + count <= len(tokens) and "\n" not in text[start:end]:
                yield start, end, Entity(name, "technology")
                free = at + count
                break
        else:
            if (name := technologies().ordinary.get(words[at])) and _is_meant(text, tokens[at]):
                yield (*tokens[at].span(), Entity(name, "technology"))


def _is_meant(text: str, token: re.Match[str]) -> bool:
    """Whether an ordinary word with a capital is the technology: not a sentence's first word, nor part of a longer name."""
    following = compile_pattern(r"[ \t]+([\w.']+)").match(text[token.end() : token.end() + 40])
    if following and following[1].rstrip(".").lower() in word_set("beside_technology"):
        return True
    before = compile_pattern(r"(?<![\w'’-])([\w'’-]+)[ \t]+$", 0).search(
        text[max(token.start() - 40, 0) : token.start()]
    )
    if any(
        word and word[1][0].isupper() and not (_is_known(word[1]) or technology(word[1]))
        for word in (before, following)
    ):
        return following is not None and following[1] in technologies().ordinary
    return not _begins_sentence(text, token.start()) and not _in_heading(text, token.start())


def _begins_sentence(text: str, at: int) -> bool:
    before = text[max(at - 12, 0) : at].rstrip(" \t\"'“‘(*_[")
    if not before or before[-1] in ".!?:;\n>|•。！？":
        return True
    return before[-1] in "-+#)" and bool(
        compile_pattern(r"\s*(?:[-+#]+|\d+\))$", 0).match(before.rpartition("\n")[2])
    )


def _in_heading(text: str, at: int) -> bool:
    return "#" in text and text[text.rfind("\n", 0, at) + 1 : at].lstrip().startswith("#")


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
        if _in_heading(text, start):
            continue
        words = [piece.removesuffix("'s").removesuffix("’s") for piece in match[0].split()]
        initial = _begins_sentence(text, start)
        while words and (
            words[0].lower() in word_set("stop_words")
            or words[0].lower() in (word_set("common") if initial else _never_outermost())
        ):
            start += len(words[0]) + 1
            words.pop(0)
            initial = False
        while words and words[-1].lower() in _never_outermost():
            words.pop()
        if not words:
            continue
        following = compile_pattern(r"[ \t]+([a-z]+)").match(text[end : end + 24])
        before = text[max(start - 24, 0) : start].removesuffix("\n")
        bare = before.rstrip(" \t").removesuffix(",") if before[-1:] in (" ", "\t") else ""
        previous = bare[len(bare.rstrip(ascii_letters)) :].lower()
        if entity := _name(words, initial, previous, following[1] if following else ""):
            yield start, end, entity


@cache
def _never_outermost() -> frozenset[str]:
    """What no name begins or ends with, whatever its capital. "Order" may: the Order Service."""
    verbs = word_set("common") - word_set("generic")
    return verbs | word_set("stop_words") | word_set("name_particles")


def _is_known(word: str) -> bool:
    return word.lower() in known_words()


def _name(words: list[str], initial: bool, before: str, following: str) -> Entity | None:
    if project := _name_project(words, initial, following):
        return Entity(project, "project")
    name = " ".join(words)
    plain = words[0] not in technologies().ordinary and not any(map(_has_other_sense, words))
    abstract = any(word.endswith(tuple(word_set("abstract_endings"))) for word in words)
    if len(words) == 1:
        return _name_one(name, initial or abstract, before, following) if plain else None
    if len(words) > 4 or (initial and not plain):
        return None
    capitals = sum(word[0].isupper() for word in words)
    person = plain and not abstract and before not in word_set("before_things") and capitals <= 3
    return Entity(name, "person" if person else "concept")


def _name_one(name: str, doubtful: bool, before: str, following: str) -> Entity | None:
    """What one word with a capital names: a person by what people do, else a concept unless that is in doubt."""
    if len(name) < 3:
        return None
    if following in word_set("human_verbs") or before in word_set("before_people"):
        return Entity(name, "person")
    return None if doubtful else Entity(name, "concept")


def _has_other_sense(word: str) -> bool:
    return _is_known(word) or technology(word) is not None


def _name_project(words: list[str], initial: bool, following: str) -> str:
    """The name of a project that is called one by a word in it or behind it: the Apollo project."""
    calling = word_set("project_words")
    rest = [word for word in words if word.lower() not in calling]
    called = following in calling and not initial
    return " ".join(rest) if called or len(rest) < len(words) else ""


def classify(text: str) -> tuple[str, float]:
    """The kind that the wording speaks for, and how firmly it was said. The confidence is the memory's, not the rule's."""
    text = text[:CUE_PREFIX].strip()
    if not any(map(str.isalnum, text)):
        return "general", 0.5
    sentences = [sentence for block, _ in _blocks(text) for sentence in split_sentences(block)]
    if not sentences and cue_scores(text).get("problem", 0) < 3:
        return "code", FIRMNESS
    kept = [sentence for sentence in sentences if not _is_filler(sentence)]
    if sentences and not kept:
        return "context", _confidence(text, "context")
    prose = "\n".join(kept)
    scores = _score_kinds(text, prose if len(kept) < len(sentences) else text, kept)
    kind = max(scores, key=lambda name: scores[name], default="general")
    if scores.get(kind, 0) < CLEAR or (kind == "fact" and len(prose.split()) < 3):
        kind = "general"
    return kind, _confidence(prose, kind)


def _score_kinds(text: str, prose: str, sentences: list[str]) -> dict[str, float]:
    """How much cue phrases, a label and question marks speak for each kind."""
    scores = dict(cue_scores(prose))
    if label := _label(text):
        scores[label] = scores.get(label, 0) + 6
    asked = sum(sentence.rstrip("\"')*_` ").endswith(("?", "？")) for sentence in sentences)
    if asked:
        # A question that ends a long report is an offer rather than what the report is about.
        scores["question"] = scores.get("question", 0) + (4 if 2 * asked >= len(sentences) else 1.5)
    return scores


@lru_cache(maxsize=256)
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
