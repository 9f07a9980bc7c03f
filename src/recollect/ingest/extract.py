"""What a text says about itself: its kind, how firmly it was said, a summary, keywords and entities.

Rules and word lists only, so it works offline, gives the same answer every time and costs a few milliseconds. A text
is judged by its beginning: what comes after the first 20,000 characters changes nothing. Few entities that are right
are worth more than many, so a doubtful name is left out.

This module knows no store, no model, no clock and no project. It does not know English grammar either: word order and
cue phrases stand in for it, other languages get a summary, keywords and identifiers, and the kind `general`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache

from recollect.ingest import lexicon
from recollect.types import KIND_ALIASES, KINDS, Entity, Passage

# A found entity with its place, or a place that later finders shall not look at.
Found = tuple[int, int, Entity | None]

PREFIX = 20_000
CUE_PREFIX = 5_000  # what a memory is, it says early; a long document would collect cues of every kind
SUMMARY_WORDS = 20
SUMMARY_CHARACTERS = 240
SUMMARY_IDEOGRAPHS = 40
ENTITY_LIMIT = 20
FIRMNESS = 0.8
CLEAR = 1.3  # weaker cues than this say nothing by themselves
HIDDEN = "\x00"
IDEOGRAPH = r"[\u3040-\u30ff\u3400-\u9fff]"
FENCE = r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)"
IMPORTANCE = {"decision": 7.0, "gotcha": 7.0, "preference": 6.0, "context": 3.0}


def extract(passage: Passage) -> Passage:
    """The passage with what it left open filled in. What was given is kept as it is."""
    kind, confidence = (passage.kind, _confidence(passage.content, passage.kind)) if passage.kind else classify(passage.content)
    given = {entity.name.casefold() for entity in passage.entities}
    found = tuple(entity for entity in entities(passage.content) if entity.name.casefold() not in given)
    return passage._replace(
        kind=kind,
        summary=passage.summary or summarize(passage.content),
        confidence=confidence if passage.confidence is None else passage.confidence,
        importance=IMPORTANCE.get(kind, 5.0) if passage.importance is None else passage.importance,
        entities=passage.entities + found,
    )


@cache
def _compiled(source: str, flags: int = re.MULTILINE) -> re.Pattern[str]:
    return re.compile(source, flags)


def _blocks(text: str) -> list[tuple[str, bool]]:
    """Paragraphs, list items and (True) headings without their markup; code, comments and front matter are left out."""
    text = _compiled(r"\A---\n.*?\n---(?:\n|\Z)|<!--.*?(?:-->|\Z)", re.DOTALL).sub("", text)
    blocks: list[tuple[list[str], bool]] = [([], False)]
    for line in _compiled(FENCE, re.MULTILINE | re.DOTALL).sub("\n", text).splitlines():
        heading = re.match(r"\s{0,3}#{1,6}\s+(.*?)\s*#*\s*$", line)
        item = re.match(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(.*)$", line)
        rule = re.match(r"[\s|=*_-]*$", line)
        if heading or item or rule or blocks[-1][1]:
            blocks.append(([], bool(heading)))
        if not rule:
            blocks[-1][0].append(_plain(heading[1] if heading else item[1] if item else line.lstrip("> \t")))
    joined = [(" ".join(lines).strip(), heading) for lines, heading in blocks]
    return [(block, heading) for block, heading in joined if block]


def _plain(line: str) -> str:
    line = _compiled(r"!\[[^\]\n]{0,200}\]\([^)\s]{0,400}\)").sub("", line)
    line = _compiled(r"\[([^\]\n]{0,200})\]\([^)\s]{0,400}\)").sub(r"\1", line)
    line = _compiled(r"(\*{1,3})(?=\S)([^*\n]{1,200}?)(?<=\S)\1").sub(r"\2", line)
    return " ".join(line.split())


def _sentences(text: str) -> Iterator[str]:
    begin = 0
    for stop in _compiled(r"[.!?]+[\"'”’)\]*_`]*(?=\s)|[。！？]+").finditer(text):
        following = text[stop.end() : stop.end() + 8].lstrip()[:1]
        last = text[begin : stop.start()].rsplit(None, 1)[-1:] or [""]
        if following.islower() or last[0].lstrip("([").lower() in lexicon.ABBREVIATIONS or (len(last[0]) == 1 and last[0].isupper()):
            continue
        if sentence := text[begin : stop.end()].strip():
            yield sentence
        begin = stop.end()
    if rest := text[begin:].strip():
        yield rest


def summarize(text: str, words: int = SUMMARY_WORDS) -> str:
    """One line of at most so many words: the text itself if it is short, else the most telling of its first sentences."""
    text = text[:PREFIX]
    blocks = _blocks(text)
    if not blocks:
        code = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith(("```", "~~~", "---"))]
        return _cut(code[0], words) if code else ""
    whole = " ".join(block + ":" if heading and block[-1].isalnum() else block for block, heading in blocks).rstrip(":")
    if _fits(whole, words):
        return whole
    greeting = _compiled(lexicon.GREETING)
    body = [block for block, heading in blocks if not heading] or [block for block, _ in blocks]
    sentences = [sentence for block in body[:8] for sentence in _sentences(block[:4000])]
    told = [sentence for sentence in sentences if len(sentence.split()) > 5 or not greeting.match(_folded(sentence))] or [whole]
    # Of equal sentences the first wins; each later one has to be clearly more telling.
    return _cut(max((_telling(sentence) - place, -place, sentence) for place, sentence in enumerate(told[:6]))[2], words)


def _telling(sentence: str) -> float:
    tokens = [token.strip(".,;:!?()[]\"'`") for token in sentence.split()[:60]]
    content = {token.lower() for token in tokens if len(token) > 2 and token.lower() not in lexicon.STOP_WORDS}
    score = 0.5 * min(len(content), 12) + 0.5 * min(sum(map(_is_identifier, content)), 4)
    score += 0.7 * max(_cue_scores(sentence).values(), default=0.0)
    if len(tokens) < 4:
        score -= 2
    if len(tokens) > 40:
        score -= 1
    return score - (3 if _is_filler(sentence) or sentence.startswith(("$ ", "❯", "> ")) else 0)


def _ideographic(text: str) -> bool:
    """Whether words are not set apart by spaces: Chinese and Japanese are counted by the character."""
    sample = text[:400]
    return 3 * len(_compiled(IDEOGRAPH).findall(sample)) > len(sample.replace(" ", ""))


def _fits(text: str, words: int) -> bool:
    return len(text.split()) <= words and len(text) <= (SUMMARY_IDEOGRAPHS if _ideographic(text) else SUMMARY_CHARACTERS)


def _cut(text: str, words: int) -> str:
    text = " ".join(text.split())
    if _fits(text, words):
        return text
    limit = (SUMMARY_IDEOGRAPHS if _ideographic(text) else SUMMARY_CHARACTERS) - 1
    short = " ".join(text.split()[: max(words, 1)])
    if len(short) > limit:
        short = short[: limit + 1].rsplit(" ", 1)[0][:limit]
    return short.rstrip(" ,;:.-–—(") + "…"


def keywords(text: str, limit: int = 8) -> tuple[str, ...]:
    """The most telling words and identifiers, heaviest first; of equal weight the earlier one first."""
    weights: dict[str, float] = {}
    counts: dict[str, int] = {}
    shown: dict[str, str] = {}
    for word, initial in _words(_compiled(r"https?://\S+|\[REDACTED[^\]\s]{0,40}\]").sub(" ", text[:PREFIX])):
        weight, key = _weight(word, initial), word.lower()
        if not weight:
            continue
        named = weight > 1.5 or not initial
        if len(key) > 4 and key.endswith("s") and not key.endswith(("ss", "us", "is")) and weight < 2:
            key = key[:-1]
        weights[key] = max(weights.get(key, 0), weight)
        counts[key] = counts.get(key, 0) + 1
        if key not in shown or (named and shown[key].islower()):
            shown[key] = word if named else word.lower()
    # A word said again counts, but ever less: otherwise one word of a long text would drown the rest.
    ranked = sorted(weights, key=lambda key: -weights[key] * (1 + math.log2(counts[key]) / 2))
    return tuple(shown[key] for key in ranked[: max(limit, 0)])


def _words(text: str) -> Iterator[tuple[str, bool]]:
    """Words and identifiers with whether they begin a sentence. Chinese and Japanese are cut at their little words."""
    for match in _compiled(r"[^\W\d]\w*(?:(?:[./:\\-]|::|->)[^\W_]\w*|['’](?:t|s|ll|re|ve|d)\b)*(?:\+\+|#)?").finditer(text):
        word = match[0]
        if _compiled(IDEOGRAPH).search(word):
            for piece in _compiled(r"[A-Za-z][\w.-]*|[\u30a0-\u30ff]{2,}|[\u3400-\u9fff]+").findall(word):
                yield from ((part, False) for part in re.split(f"[{lexicon.LITTLE_IDEOGRAPHS}]", piece) if 1 < len(part) < 9)
        elif "/" in word and not _is_path(word):
            yield from ((part, False) for part in word.split("/"))
        else:
            yield word.removesuffix("'s").removesuffix("’s"), _begins_sentence(text, match.start())


def _weight(word: str, initial: bool) -> float:
    lowered = word.lower().replace("’", "'")
    if lowered in lexicon.STOP_WORDS or lowered in lexicon.LITERALS or len(word) > 80:
        return 0.0
    if _is_identifier(word) or _is_path(word):
        return 2.0
    if _technology(word):
        return 1.8
    if len(word) < 3 and not (word.isupper() and len(word) == 2) and word.isascii():
        return 0.0
    if not initial and word[0].isupper() and lowered not in lexicon.COMMON:
        return 1.5
    if lowered in lexicon.COMMON:
        return 0.5
    return 0.7 + min(len(word), 10) / 20


def entities(text: str) -> tuple[Entity, ...]:
    """Named things in order of appearance, at most 20, each once."""
    shown = text[:PREFIX].replace(HIDDEN, " ")
    found: list[tuple[int, Entity]] = []
    finders: tuple[Callable[[str], Iterable[Found]], ...] = (_noise, _marked, _files, _mentions, _technologies, _symbols, _names)
    for finder in finders:
        places = list(finder(shown))
        found += ((start, entity) for start, _, entity in places if entity)
        shown = _hide(shown, places)
    unique: dict[str, Entity] = {}
    for _, entity in sorted(found, key=lambda item: item[0]):
        known = unique.setdefault(entity.name.casefold(), entity)
        if known.type == "concept":  # a later mention may tell that it is a person or a project
            unique[entity.name.casefold()] = known._replace(type=entity.type)
    return tuple(unique.values())[:ENTITY_LIMIT]


def _hide(text: str, places: list[Found]) -> str:
    pieces: list[str] = []
    at = 0
    for start, end, _ in sorted(places, key=lambda place: place[:2]):
        if start >= at:
            pieces += (text[at:start], HIDDEN * (end - start))
            at = end
    return "".join([*pieces, text[at:]])


def _noise(text: str) -> Iterator[Found]:
    """Code blocks, addresses and hashes hold hundreds of names that nobody would ask for."""
    for match in _compiled(FENCE, re.MULTILINE | re.DOTALL).finditer(text):
        yield (*match.span(), None)
    address = r"\b[a-z][a-z0-9+.-]{1,20}://[^\s`]+|[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+|(?<=\])\([^)\s]{1,400}\)"
    for match in _compiled(rf"{address}|\[REDACTED[^\]\s]{{0,40}}\]").finditer(text):
        yield (*match.span(), None)


def _marked(text: str) -> Iterator[Found]:
    """What the writer set apart: `code` is a symbol, a file, a technology or a concept; "A Name" is a concept."""
    for match in _compiled(r"`([^`\n]{1,80})`").finditer(text):
        yield (*match.span(), _by_shape(match[1].strip(), in_code=True))
    for match in _compiled(r"(?<![\w\"])[\"“]([^\"“”\n]{2,60})[\"”](?!\w)").finditer(text):
        if entity := _by_shape(match[1].strip(" ,."), in_code=False):
            yield (*match.span(), entity)


def _by_shape(text: str, *, in_code: bool) -> Entity | None:
    if name := _technology(text) or (in_code and _ordinary().get(text.capitalize())):
        return Entity(name, "technology")
    if _is_path(text) or _is_file(text):
        return Entity(text, "file")
    bare = re.sub(r"\(.*\)$", "", text)
    if _is_identifier(bare) or (bare != text and re.fullmatch(r"[A-Za-z_][\w.:]*", bare)):
        return Entity(bare, "symbol")
    if in_code and re.fullmatch(r"[A-Za-z_]\w{3,}", text) and not _is_known_word(text) and not re.fullmatch(r"[0-9a-f]{6,40}", text):
        return Entity(text, "symbol")
    words = text.split()
    named = re.fullmatch(r"[A-Za-z][\w&+.-]*(?: [\w&+.-]+){0,3}", text) and not text.endswith((".", "-"))
    if in_code:
        return Entity(text, "concept") if named and "-" in text and len(words) == 1 else None
    capitals = sum(word[0].isupper() for word in words)
    telling = capitals == len(words) and words and not all(word.lower() in lexicon.COMMON | lexicon.STOP_WORDS for word in words)
    return Entity(text, "concept") if named and telling else None


def _is_file(text: str) -> bool:
    if text.lower() in lexicon.FILE_NAMES and (text[0] == "." or text != text.lower() or "." in text):
        return True
    stem, dot, extension = text.rpartition(".")
    if not dot or not stem or extension.lower() not in lexicon.EXTENSIONS or not re.fullmatch(r"[\w@~.-]+", stem):
        return False
    return stem.lower() not in lexicon.OBJECTS and stem[-1] != "." and len(text) > 3 and not _technology(text) and not stem.isdigit()


def _is_path(text: str) -> bool:
    if not re.fullmatch(r"(?:~|\.{1,2}|[A-Za-z]:)?[\\/]?(?:[\w@.+-]+[\\/])*[\w@.+-]*", text) or not re.search(r"[\\/]", text):
        return False
    first, *rest = [part for part in re.split(r"[\\/]", text) if part] or [""]
    last = rest[-1] if rest else first
    if "." in last and last.rpartition(".")[2].lower() in lexicon.EXTENSIONS and last.rpartition(".")[0]:
        return True
    if first in (".", "..", "~") or re.match(r"[\\/]|[A-Za-z]:", text):
        return bool(rest) and any(map(str.isalpha, text))
    return first.lower() in lexicon.DIRECTORIES and (bool(rest) or text.endswith("/"))


def _files(text: str) -> Iterator[Found]:
    path = r"(?<![\w\x00])(?:[~.]{0,2}/|[A-Za-z]:\\)?[\w@.+-]+(?:[/\\][\w@.+-]+)*/?(?![\w(\x00])"
    for match in _compiled(path).finditer(text):
        name = match[0].rstrip(".")
        if _is_path(name) or _is_file(name):
            yield match.start(), match.start() + len(name), Entity(name, "file")


def _mentions(text: str) -> Iterator[Found]:
    for match in _compiled(r"(?<![\w.@/\x00])@([A-Za-z][\w-]{1,38})(?![\w(./-])").finditer(text):
        person = match[1].lower() not in lexicon.DECORATORS
        yield (*match.span(), Entity(match[1], "person") if person else None)
    for match in _compiled(r"(?<![\w.\x00])@[\w-]+[/.(][\w./-]*").finditer(text):
        yield (*match.span(), None)


@cache
def _technology_names() -> dict[str, str]:
    return {name.lower(): name for name in _listed(lexicon.NAMES)} | {name: name for name in _listed(lexicon.EXACT)} | lexicon.ALIASES


@cache
def _ordinary() -> dict[str, str]:
    return {name: lexicon.ALIASES.get(name.lower(), name) for name in _listed(lexicon.ORDINARY)}


def _listed(names: str) -> list[str]:
    return [" ".join(name.split()) for name in names.split(",")]


def _technology(text: str) -> str | None:
    """The technology of that name, unless the name is an ordinary word."""
    return _technology_names().get(text.lower()) or _technology_names().get(text)


def _technologies(text: str) -> Iterator[Found]:
    tokens = list(_compiled(r"\.NET\b|[A-Za-z0-9](?:[\w+#]|[./](?=[A-Za-z0-9]))*").finditer(text))
    at = 0
    while at < len(tokens):
        for count in (3, 2, 1):
            group = tokens[at : at + count]
            span = text[group[0].start() : group[-1].end()]
            name = _technology(_compiled(r"[ \t-]").sub(" ", span)) or _technology(span)
            if len(group) == count and name and "\n" not in span:
                yield group[0].start(), group[-1].end(), Entity(name, "technology")
                at += count
                break
        else:
            token = tokens[at]
            if (name := _ordinary().get(token[0])) and _is_meant(text, token):
                yield (*token.span(), Entity(name, "technology"))
            at += 1


def _is_meant(text: str, token: re.Match[str]) -> bool:
    """Whether an ordinary word with a capital is the technology: not a sentence's first word, nor part of a longer name."""
    following = re.match(r"[ \t]+([\w.']+)", text[token.end() : token.end() + 40])
    if following and following[1].rstrip(".").lower() in lexicon.BESIDE_TECHNOLOGY:
        return True
    before = re.search(r"([\w'’-]+)[ \t]+$", text[max(token.start() - 40, 0) : token.start()])
    if any(word and word[1][0].isupper() and not (_is_known_word(word[1]) or _technology(word[1])) for word in (before, following)):
        return following is not None and following[1] in _ordinary()
    return not _begins_sentence(text, token.start()) and not _in_heading(text, token.start())


def _is_known_word(word: str) -> bool:
    lowered = word.lower()
    return lowered in lexicon.STOP_WORDS or lowered in lexicon.COMMON or lowered in lexicon.GENERIC or lowered in lexicon.LITERALS


def _begins_sentence(text: str, at: int) -> bool:
    before = text[max(at - 12, 0) : at].rstrip(" \t\"'“‘(*_[")
    return not before or before[-1] in ".!?:;\n>|•。！？" or bool(re.search(r"(?:^|\n)\s*(?:[-+#]+|\d+\))$", before))


def _in_heading(text: str, at: int) -> bool:
    return text[text.rfind("\n", 0, at) + 1 : at].lstrip().startswith("#")


def _is_identifier(text: str) -> bool:
    """Shapes that only code has: snake_case, camelCase, PascalCase of two humps, CONSTANT_CASE, dotted.names."""
    if not text.isascii() or len(text) < 4 or len(text) > 80 or text.lower() in lexicon.BRANDS or _technology(text):
        return False
    if re.fullmatch(r"[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+", text):
        parts = re.split(r"\.|::|->", text)
        prose = parts[-1].lower() in lexicon.STOP_WORDS | lexicon.COMMON and parts[-1][0].isupper()
        return all(len(part) > 1 for part in parts) and parts[-1].lower() not in lexicon.DOMAINS and not prose
    if re.fullmatch(r"_*[A-Za-z0-9]+(?:_+[A-Za-z0-9]+)+_*|__\w+__", text):
        return any(map(str.isalpha, text))
    if re.fullmatch(r"[a-z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+", text):
        return True
    return text != text.upper() and bool(re.fullmatch(r"(?:[A-Z]+[a-z0-9]+){2,}[A-Z]*|[A-Z]{2,}[a-z0-9]{3,}(?:[A-Z][a-z0-9]+)*", text))


def _symbols(text: str) -> Iterator[Found]:
    for match in _compiled(r"(?<![\w.\x00@/-])([A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)*)(\(\))?(?![\w\x00])").finditer(text):
        if match[2] or _is_identifier(match[1]):
            yield (*match.span(), Entity(match[1], "symbol"))


def _names(text: str) -> Iterator[Found]:
    """Runs of capitalised words. Only people and things that a capital inside a sentence sets apart."""
    word = r"(?:[A-Z]['’])?[A-ZÀ-ÖØ-Þ][a-zß-öø-ÿ]+(?:[-'’][A-ZÀ-ÖØ-Þ]?[a-zß-öø-ÿ]+)*"
    joint = "(?:" + "|".join(sorted(lexicon.NAME_PARTICLES)) + ")"
    pattern = rf"(?<![\w\x00.@/-]){word}(?: (?:{joint} )?{word}){{0,5}}(?![\w\x00])"
    for match in _compiled(pattern, 0).finditer(text):
        if _in_heading(text, match.start()):
            continue
        words = [piece.removesuffix("'s").removesuffix("’s") for piece in match[0].split()]
        initial = _begins_sentence(text, match.start())
        start = match.start()
        while words and (
            words[0].lower() in lexicon.STOP_WORDS or words[0].lower() in (lexicon.COMMON if initial else lexicon.NEVER_OUTERMOST)
        ):
            start += len(words[0]) + 1
            words.pop(0)
            initial = False
        while words and words[-1].lower() in lexicon.NEVER_OUTERMOST:
            words.pop()
        following = re.match(r"[ \t]+([a-z]+)", text[match.end() : match.end() + 24])
        before = re.search(r"([A-Za-z]+),?[ \t]+$", text[max(start - 24, 0) : start])
        if words and (entity := _name(words, initial, before[1].lower() if before else "", following[1] if following else "")):
            yield start, match.end(), entity


def _name(words: list[str], initial: bool, before: str, following: str) -> Entity | None:
    rest = [word for word in words if word.lower() not in lexicon.PROJECT_WORDS]
    if rest and len(rest) < len(words):
        return Entity(" ".join(rest), "project")
    if following in lexicon.PROJECT_WORDS and not initial:
        return Entity(" ".join(words), "project")
    name = " ".join(words)
    plain = words[0] not in _ordinary() and not any(_is_known_word(word) or _technology(word) for word in words)
    abstract = any(re.search(r"(?:ing|tion|ment|ness|ity|ance|ence|able|ous|ive|ology|ism)$", word) for word in words)
    if 2 <= len(words) <= 4:
        people = plain and not abstract and before not in lexicon.BEFORE_THINGS and sum(word[0].isupper() for word in words) <= 3
        return Entity(name, "person" if people else "concept") if not initial or plain else None
    if len(words) != 1 or not plain or len(name) < 3:
        return None
    if following in lexicon.HUMAN_VERBS or before in lexicon.BEFORE_PEOPLE:
        return Entity(name, "person")
    return None if initial or abstract else Entity(name, "concept")


def classify(text: str) -> tuple[str, float]:
    """The kind that the wording speaks for, and how firmly it was said. The confidence is the memory's, not the rule's."""
    text = text[:CUE_PREFIX].strip()
    if not any(map(str.isalnum, text)):
        return "general", 0.5
    sentences = [sentence for block, _ in _blocks(text) for sentence in _sentences(block)]
    if not sentences and _cue_scores(text).get("problem", 0) < 3:
        return "code", FIRMNESS
    kept = [sentence for sentence in sentences if not _is_filler(sentence)]
    if sentences and not kept:
        return "context", _confidence(text, "context")
    prose = "\n".join(kept)
    scores = _cue_scores(text if len(kept) == len(sentences) else prose)
    if label := _label(text):
        scores[label] = scores.get(label, 0) + 6
    asked = sum(sentence.rstrip("\"')*_` ").endswith(("?", "？")) for sentence in kept)
    if asked:
        # A question that ends a long report is an offer rather than what the report is about.
        scores["question"] = scores.get("question", 0) + (4 if 2 * asked >= len(kept) else 1.5)
    kind = max(scores, key=lambda name: scores[name], default="general")
    if scores.get(kind, 0) < CLEAR or (kind == "fact" and len(prose.split()) < 3):
        kind = "general"
    return kind, _confidence(prose, kind)


def _folded(text: str) -> str:
    return text.lower().replace("’", "'")


def _is_filler(sentence: str) -> bool:
    return bool(_compiled(lexicon.FILLER).match(_folded(sentence)))


def _label(text: str) -> str | None:
    """What "Decision: …" or "[gotcha] …" says outright."""
    match = re.match(r"\W{0,4}([A-Za-z]{3,12})\b\W{0,3}?(?::|\]| [-–—] )", text)
    word = match[1].lower() if match else ""
    word = {"bug": "problem", "fix": "solution", "rule": "pattern", "idea": "general", "warning": "gotcha"}.get(word, word)
    return word if word in KINDS else KIND_ALIASES.get(word) if word != "note" else None


def _cue_scores(text: str) -> dict[str, float]:
    """For each kind its strongest cue, and a little for every further one. A cue late in the text counts half."""
    text = _folded(text)
    scores: dict[str, float] = {}
    for kind, cues in lexicon.CUES.items():
        found: list[float] = []
        for weight, pattern in cues:
            if match := _compiled(pattern).search(text):
                found.append(weight if match.start() < 300 else weight / 2)
        if found:
            scores[kind] = max(found) + 0.15 * min(sum(found) - max(found), 4)
    return scores


def _confidence(text: str, kind: str) -> float:
    text = _folded(text[:1000])
    value = FIRMNESS - (0.1 if kind == "question" else 0.0)
    for cost, pattern in lexicon.HEDGES:
        value -= cost * min(len(_compiled(pattern).findall(text)), 2)
    value += 0.05 * min(len(_compiled(lexicon.FIRM).findall(text)), 3)
    return round(min(max(value, 0.2), 0.95), 2)
