"""Names and summaries for topics and sessions, taken from what was said: every word of them stands in a turn or in an idea.

A name is the first request that says something, in the user's words without their politeness, cut where a clause ends or
else with "…"; where no request says what it is about, the topic's most telling terms stand behind it. A summary lists what
was asked for, decided, concluded and left open, within 600 characters; it is made to be read, searched and embedded.

Rules only: the same turns always get the same name. Only the beginning of a turn and a bounded number of turns are read. This
module knows no store and no model, and of grammar only a few English phrases.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from bethink.ingest.extract import classify, keywords, summarize
from bethink.ingest.lexicon import (
    compile_pattern,
    fold_case,
    is_file,
    is_identifier,
    is_path,
    plain_words,
    word_set,
)
from bethink.ingest.sentences import prose
from bethink.store.words import spaced

Turns = Sequence[tuple[str, str]]

# What fits into a line of a list, and what a search result shows of a topic: set by hand.
NAME_WORDS, TITLE_WORDS = 8, 10
NAME_CHARACTERS = 72
IDEOGRAPHS = 24  # of a name in a script without spaces
SUMMARY_CHARACTERS = 600
ITEM_CHARACTERS = 200
# Characters that a line of the summary may take while all lines are there; what one leaves free the next ones may use.
SHARES = {"Focus": 190, "Decisions": 170, "Conclusions": 140, "Open": 100}

TURN_CHARACTERS = 2000
TURNS = 60  # of a topic that are looked at: the first and the last ones
SENTENCES = 4  # of a turn that may be its request
REQUESTS = 3
IDEAS = 60  # the newest ones
# What a request has to say to be one, and to need no terms beside it: a word of its own; two, or the name of a file or symbol.
LEAST, ENOUGH = 1.0, 1.6

DECIDED = ("decision", "preference", "architecture", "pattern")
CONCLUDED = ("conclusion", "solution", "discovery", "gotcha", "fact")

_POLITE = (
    r"(?:(?:(?:ok|okay|so|well|h+m+|ah+|oh+|alright|right|great|thanks?|thank you|nice|cool|perfect|good|now|next|then|and|but|also|first"
    r"|yes|yeah|yep|no|sure|sorry|please|hey|hi|hello|actually|maybe|by the way|btw|looks good|back to|moving on(?: to)?"
    r"|(?:quick |one more |another |next |new )?(?:question|task|topic|thing))(?![\w'-])[\s,.!:;…–—-]{1,6})"
    r"|(?:(?:can|could|would|will) (?:you|we)(?: (?:please|maybe|also|just))?|i(?:'d| would) (?:like|love)(?: you)? to|i (?:want|need)(?: you)? to"
    r"|we (?:want|need|have|should) to|let'?s|help me(?: to)?|go ahead and|(?:take|have) a (?:quick |closer )?look(?: (?:at|into))?|look (?:at|into)"
    r"|is there an? (?:easy |good |simple )?way to|is it possible to|how (?:can|could|do|should) (?:i|we|you)|tell me(?: about)?)(?![\w'-])\s?)"
)
# Where a request goes on to reasons, conditions and details that a name can do without.
_CLAUSE = r"[,;:(–—?!](?=\s)|\.(?=\s)|[，；。！？]|\s(?=(?:so that|because|since|which|while|but|and then|if (?:you|we|i|it)|as well as|in order to)\s)"
_OUTPUT = r"[❯$%>] |(?:error|warn(?:ing)?|info|debug|fatal|panic|usage)\b[:(]|[^\s=]+=\S+ [^\s=]+=|[^\n]*\s\\$"
_LAST = "a an the of to in on at for with and or but as by from into that this is are not no we i you it its my our your via per about".split()
# Words of a project's daily life that would fit any topic.
_VAGUE = frozenset(
    """pr prs description super short stuff lets main latest change changes work working thing bit couple comment comments point points valid way
    correctly somehow exactly time going doing understand quick easy theres wonder related regarding state current project branch repo
    address applicable individual meaningful option dont didnt wont thats whats look looking like little get back""".split()
)


def name(turns: Turns, words: int = NAME_WORDS) -> str:
    """At most so many words that tell this topic from others; empty if nothing was said."""
    turns = _sample(turns)
    request = next(iter(_requests(turns, 1)), "") or _first_sentence(turns)
    title = _shorten(_bare(request), words)
    if _weight(title) < ENOUGH:
        known = fold_case(title)
        terms = [term for term in _terms(turns) if fold_case(term) not in known]
        room = min(words - len(title.split()), 3)
        title = ": ".join(filter(None, (title.rstrip("…?!"), ", ".join(terms[: max(room, 0)]))))
    return _fit(title or ", ".join(_terms(turns)[:4]))


def session_title(turns: Turns) -> str:
    """A name for a whole session: that of its first topic, a little longer."""
    return name(turns, TITLE_WORDS)


def summarise(turns: Turns, ideas: Iterable[tuple[str, str, bool]] = ()) -> str:
    """Lines "Focus: …", "Decisions: …; …", "Conclusions: …", "Open: …", each only where there is something.

    An idea is its kind, its text and whether it is still open.
    """
    turns, ideas = _sample(turns), list(ideas)[-IDEAS:]
    asked = _requests(turns, 2 * REQUESTS) or [_gist(text) for _, text in turns[:REQUESTS]]
    lists = {
        "Focus": _unlike(asked)[:REQUESTS],
        "Decisions": _unlike(text for kind, text, _ in ideas if kind in DECIDED),
        "Conclusions": _unlike(text for kind, text, _ in ideas if kind in CONCLUDED)
        or _unlike([_finding(turns)]),
        "Open": _unlike(text for _, text, is_open in ideas if is_open),
    }
    labels = [label for label, items in lists.items() if items]
    lines: list[str] = []
    room = SUMMARY_CHARACTERS
    for number, label in enumerate(labels, 1):
        later = sum(SHARES[other] for other in labels[number:])
        if line := _line(label, lists[label], room - later):
            lines.append(line)
            room -= len(line) + 1
    return "\n".join(lines)


def _sample(turns: Turns) -> Turns:
    return turns if len(turns) <= TURNS else [*turns[: TURNS // 2], *turns[-TURNS // 2 :]]


def _sentences(text: str) -> list[str]:
    """Prose without what a program wrote: that goes on up to an empty line."""
    blocks = text[:TURN_CHARACTERS].split("\n\n")
    return prose(
        "\n\n".join(one for one in blocks if not compile_pattern(_OUTPUT).match(fold_case(one)))
    )


def _requests(turns: Turns, most: int) -> list[str]:
    """What the user asked for: of each turn the first sentence that says something. If none does, the first sentence of all."""
    told: list[str] = []
    first = ""
    for role, text in turns:
        if role != "user" or len(told) == most:
            continue
        sentences = _sentences(text)[:SENTENCES]
        first = first or next(iter(sentences), "")
        told += [one for one in sentences if _weight(_bare(one)) >= LEAST][:1]
    return told or [first] * bool(first)


def _first_sentence(turns: Turns) -> str:
    return next((sentence for _, text in turns for sentence in _sentences(text)), "")


def _bare(sentence: str) -> str:
    """A request without its greeting and politeness, and without the folders of long paths."""
    text = sentence.lstrip(" \"'“”‘’,:;!?¿¡–—*_")
    for _ in range(8):
        found = compile_pattern(_POLITE).match(fold_case(text))
        if not found or found.end() >= len(text):
            break
        text = text[found.end() :].lstrip(" ,:;–—")
    text = compile_pattern(r"https?://[^\s?#]+\S*").sub(_short_address, text.replace("`", ""))
    paths = compile_pattern(r"(?<!\S)[\w.@~:+-]*(?:[/\\][\w.@+-]+){3,}")
    return paths.sub(lambda path: compile_pattern(r"[/\\]").split(path[0])[-1], text)


def _short_address(address: re.Match[str]) -> str:
    """`https://host/owner/repository/pull/53` → `repository/pull/53`."""
    path = re.split(r"[?#]", address[0], maxsplit=1)[0].rstrip(".,;:)>]/")
    return "/".join(path.split("/")[3:][-3:]) or path.split("/")[2]


def _shorten(text: str, words: int) -> str:
    """The whole text, or what stands before the end of a clause, or so many words and "…"."""
    pieces = text.split()
    if len(pieces) <= words:
        return text
    for end in compile_pattern(_CLAUSE).finditer(text):
        if 3 <= len(text[: end.start()].split()) <= words:
            return text[: end.start()]
    pieces = pieces[:words]
    while len(pieces) > 3 and fold_case(pieces[-1]).strip(",.;:") in _LAST:
        pieces.pop()
    return " ".join(pieces).rstrip(" .,:;!?-–—") + "…"


def _weight(text: str) -> float:
    """How much a text says about what it is about: ordinary words nothing, names of files and symbols most."""
    total = 0.0
    for token in dict.fromkeys(spaced(text).split()):
        word = token.lstrip("\"'“”‘’([{<*_`").rstrip("\"'“”‘’)]}>*_`.,:;!?…")
        plain = fold_case(word)
        if is_path(word) or is_file(word) or is_identifier(word):
            total += ENOUGH
        elif {plain, plain.removesuffix("s")} & _VAGUE or plain in plain_words():
            continue
        elif len(word) > (2 if word.isascii() else 1) and any(map(str.isalpha, word)):
            total += 0.6 if plain in word_set("generic") else 1.0
    return total


def _fit(title: str) -> str:
    """With a capital, and no longer than a line of a list."""
    title = " ".join(title.split()).rstrip(" \"'“”.,:;!?-–—*_(").lstrip(" \"'“”,:;!?–—*_")
    if not any(map(str.isspace, title)) and not title.isascii() and len(title) > IDEOGRAPHS:
        clause = compile_pattern(r"[，；。！？、]").search(title, 4, IDEOGRAPHS)
        title = title[: clause.start() if clause else IDEOGRAPHS]
    if len(title) > NAME_CHARACTERS:
        title = title[: NAME_CHARACTERS - 1].rsplit(" ", 1)[0].rstrip(" ,:;") + "…"
    first = title.partition(" ")[0].rstrip(",:…")
    plain = first.islower() and first.replace("'", "").replace("’", "").isalpha()
    return title[0].upper() + title[1:] if plain and len(title[0].upper()) == 1 else title


def _terms(turns: Turns) -> list[str]:
    """The most telling words of a topic, those of several turns first."""
    counts: Counter[str] = Counter()
    for _, text in turns:
        told = keywords(" ".join(_sentences(text)) or text[:TURN_CHARACTERS], 12)
        counts.update(word for word in told if fold_case(word) not in plain_words())
    return [word for word, _ in counts.most_common(8)]


# Lines of the summary


def _gist(text: str) -> str:
    return summarize("\n\n".join(_sentences(text)), 30)


def _finding(turns: Turns) -> str:
    """The last answer, if it says that something was found out or settled."""
    last = next((text for role, text in reversed(turns) if role != "user" and text.strip()), "")
    gist = _gist(last)
    return gist if gist and classify(gist)[0] in (*CONCLUDED, *DECIDED) else ""


def _unlike(texts: Iterable[str]) -> list[str]:
    """Texts on one line each, without those that another one says already."""
    kept: list[str] = []
    for text in texts:
        line = " ".join(text.split())
        if line and not any(fold_case(line) in fold_case(other) for other in kept):
            kept = [other for other in kept if fold_case(other) not in fold_case(line)] + [line]
    return kept


def _line(label: str, items: Sequence[str], room: int) -> str:
    """As many items as there is room for. The newest ones are chosen, but for the focus: that is what it began with."""
    room -= len(label) + 2
    chosen: list[str] = []
    for item in items if label == "Focus" else reversed(items):
        limit = min(ITEM_CHARACTERS, room) if not chosen else ITEM_CHARACTERS
        item = _cut(item, limit).rstrip(" .:;,")
        if not item or len(item) + 2 * bool(chosen) > room:
            break
        chosen.append(item)
        room -= len(item) + 2
    ordered = chosen if label == "Focus" else chosen[::-1]
    return f"{label}: {'; '.join(ordered)}" if ordered else ""


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    if limit <= 20:
        return ""
    return text[: limit - 1].rsplit(" ", 1)[0].rstrip(" ,;:.-–—(") + "…"
