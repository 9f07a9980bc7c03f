"""Names and summaries for topics and sessions, taken from what was said: every word of them stands in a turn or in an idea.

A name is the first request of a topic that says something, without its politeness and its ending, and with the topic's most
telling terms where the request alone would fit any topic ("can you take a look at this?"). A summary lists what was asked for,
decided, concluded and left open, within 600 characters; it is made to be read, searched and embedded.

Rules only: the same turns always get the same name. Only the beginning of a turn and a bounded number of turns are read. This
module knows no store and no model, and of grammar only the phrases listed here; in languages that it has no phrases for, a name
is the beginning of the first request.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice

from bethink.ingest import lexicon
from bethink.ingest.extract import classify, keywords, summarize
from bethink.ingest.lookup import compiled, folded, is_file, is_identifier, is_path
from bethink.store.lexemes import spaced

NAME_WORDS, TITLE_WORDS = 8, 10
NAME_CHARACTERS = 72
IDEOGRAPHS = 24  # of a name in a script without spaces
SUMMARY_CHARACTERS = 600
ITEM_CHARACTERS = 200
# Characters that a line of the summary may take while all lines are there; what one leaves free the next ones may use.
SHARES = {"Focus": 190, "Decisions": 170, "Conclusions": 140, "Open": 100}

TURN_CHARACTERS = 2000
TURNS = 60  # of a topic that are looked at: the first and the last ones
REQUESTS = 3
IDEAS = 60  # the newest ones

DECIDED = ("decision", "preference", "architecture", "pattern")
CONCLUDED = ("conclusion", "solution", "discovery", "gotcha", "fact")

_GREETING = (
    r"(?:(?:a |an |my |the |one |on (?:an?|another) ){0,3}(?:quick|next|more|different|new|another|unrelated|separate)"
    r" (?:topic|task|thing|up|question|note|item)|question|just for confirmation|moving on(?: to)?|by the way|btw|back to|looks good|thank you"
    r"|ok|okay|so|well|h+m+|ah+|oh+|alright|right|great|thanks?|nice|cool|perfect|good|now|next|then|and|or|but|also|first|yes|yeah|yep|no|sure|sorry"
    r"|please|hey|hi|hello|actually|maybe|gut|danke|nun|jetzt|bitte|und|ja|nein|hallo|bon|alors|merci|bien|maintenant|et|oui|non|bonjour"
    r"|bueno|vale|gracias|ahora|y|sí|hola|por favor|s'il (?:te|vous) plaît)(?![\w'-])[\s,.!:;…–—-]{0,6}"
)
_ASKING = (
    r"(?:(?:can|could|would|will) (?:you|we|i)(?: (?:please|maybe|also|just|now|then|quickly|perhaps)){0,3}"
    r"|i(?:'d| would) (?:like|love|prefer)(?: (?:you|us))?(?: to)?(?: also)?|i(?:'m| am)(?: (?:trying|going|about|looking) to)?"
    r"|i (?:had|have|got) (?:an? )?(?:quick )?question (?:about|on|regarding)|i (?:want|need|have|wanted|meant)(?: (?:you|us))?(?: to)?"
    r"|we (?:want|need|have|should|must|could|can)(?: to)?|you (?:should|can|could|need to)|let'?s(?: (?:now|also|just|then|first))?|let me"
    r"|help me(?: to)?|go ahead and|try to|make sure (?:that )?(?:to )?|figure out|(?:take|have) (?:a |another )?(?:quick |closer )?look(?: (?:at|into))?"
    r"|look (?:at|into)|(?:think|talk|chat)(?: a bit)? about|tell me(?: about)?|show me|give me|explain(?: to me)?|do you (?:know|think|remember|see)"
    r"|is there (?:an? |any )?(?:easy |good |simple |better )?(?:way|possibility|option|fix) (?:to|for)|is it possible to|there(?:'s| is|s| are| seem to be)"
    r"|how (?:can|could|do|should|would) (?:i|we|you)(?: (?:easily|best))?|how to|i (?:think|guess|wonder|believe|was wondering)(?: (?:that|if|whether))?"
    r"|if i understand (?:it |this |that )?(?:correctly|right)|(?:any idea|any reason) (?:why)?|what (?:do you think )?about|how about|as (?:a )?next(?: step)?"
    r"|kannst du|könntest du|könnten wir|können wir|ich (?:möchte|will|brauche|würde gerne)|wir (?:müssen|sollten|brauchen|wollen)|lass uns"
    r"|schau dir|wie (?:kann|können) (?:ich|wir|man)|peux-tu|pourrais-tu|pouvez-vous|pourriez-vous|je (?:veux|voudrais|souhaite)|il faut|nous devons"
    r"|on doit|aide-moi à|comment (?:puis-je|peut-on|faire pour)|puedes|podrías|podemos|quiero|quisiera|necesito|necesitamos|hay que|tenemos que"
    r"|ayúdame a|cómo (?:puedo|podemos))(?![\w'-])[\s,:]{0,4}"
)
_ARTICLE = r"(?:an?|the|some|any|this|that|these|those|ein|eine|einen|der|die|das|une?|le|la|les|una?|el|los|las)\s"
_CONDITION = r"(?:if|when|whenever|since|because|while|although|before|after|once|wenn|weil|falls|nachdem|si|quand|parce|cuando|porque|i|you|it|that|this)\b"
# Where a request goes on to reasons, conditions and details that a name can do without.
_ENDING = (
    r"\s?(?:[,;:(–—](?=\s)|\s-(?=\s)|\.(?=\s)|[?!](?=\s|$)|[，；。！？]|\s(?=(?:so that|because|since|which|while|where|but|and then|then|otherwise|based on"
    r"|i think|i wonder|(?:can|could) (?:you|we)|if (?:you|we|i|it)|as well as|in order to|please|instead of|weil|damit|sodass|aber|denn|parce que|pour que|afin|mais|porque"
    r"|para que|pero)\s))"
)
_ADDING = r"(?:add|adding|implement|create|build|write|introduce|set up)\s+(?:(?:an?|the|some|more|new|another|similar)\s+){0,3}"
_INTO = r"\s(?:to|into|in)\s(?=(?:the|our|this|that|all|each|every|an?)\s)"
_LOG = (
    r"\s*(?:[❯$%>#|]\s|\d{4}-\d\d-\d\d[T ]|\[[\w:./-]{2,40}\]|(?:error|warn|info|debug|fatal|panic|traceback|usage|at)\b[ :(]|[{}\[\]()<]"
    r"|\w+=\S+ \w+=|-{3}|={3}|[+-]{1,3}\w)"
)
_FLAG = r"(?:^|\s)--?[a-z][\w-]*|\s\\$|\$[A-Z_]{3}"
_DANGLING = frozenset(
    """a an the of to in on at for with and or but as by from into that this these those is are was were be do does did can could should would will
    it its my our your their some any more most than then so if when where which who what how why not no we i you they also just please via per about
    another using based must should because while until must without within between during against
    der die das den dem ein eine einen und oder zu mit für von im in auf le la les un une des de du et ou à au aux pour avec dans sur el los las una y o
    en con por para del al que""".split()
)
# Words of a project's daily life that would fit any topic.
_VAGUE = lexicon.PLAIN | frozenset(
    """pr prs description super short stuff lets main latest change changes work working thing bit couple comment comments point points valid way
    correctly somehow exactly time going doing understand quick easy theres wonder related regarding state current project branch repo
    address applicable individual meaningful option dont didnt wont thats whats look looking like little""".split()
)
ENOUGH = 1.6  # what a name has to say; a later request that says more is not preferred
CANDIDATES = 5, 4, 3  # requests, sentences of each and clauses of each that a name is chosen from


def name(turns: Sequence[tuple[str, str]], words: int = NAME_WORDS) -> str:
    """At most so many words that tell this topic from others; empty if nothing was said."""
    turns = tuple(_sample(turns))
    best, told = "", 0.0
    for clause, early in _clauses(turns):
        title = _titled(clause, words)
        if (value := min(_weight(title), ENOUGH) - early) > told or not best:
            best, told = title, value
    if _weight(best) < ENOUGH:
        known = set(_plain_words(best))
        more = [term for term in _terms(turns) if not known.issuperset(_plain_words(term))]
        room = min(words - len(best.split()), 3)
        best = ": ".join(filter(None, (best, ", ".join(more[: max(room, 0)]))))
    return _shown(best, words) or _shown(
        ", ".join(keywords("\n".join(text[:TURN_CHARACTERS] for _, text in turns[:3]), 4)), words
    )


def _plain_words(text: str) -> list[str]:
    return compiled(r"\w+").findall(folded(text))


def session_title(turns: Sequence[tuple[str, str]]) -> str:
    """A name for a whole session: that of its first topic, a little longer."""
    return name(turns, TITLE_WORDS)


def summarise(turns: Sequence[tuple[str, str]], ideas: Iterable[tuple[str, str, bool]] = ()) -> str:
    """Lines "Focus: …", "Decisions: …; …", "Conclusions: …", "Open: …", each only where there is something.

    An idea is its kind, its text and whether it is still open.
    """
    turns, ideas = _sample(turns), list(ideas)[-IDEAS:]
    lists = {
        "Focus": _unlike(
            _requests(turns, 2 * REQUESTS) or [_gist(text) for _, text in turns[:REQUESTS]]
        )[:REQUESTS],
        "Decisions": _unlike(
            text for kind, text, still_open in ideas if kind in DECIDED and not still_open
        ),
        "Conclusions": _unlike(
            text for kind, text, still_open in ideas if kind in CONCLUDED and not still_open
        ),
        "Open": _unlike(text for _, text, still_open in ideas if still_open),
    }
    if not lists["Conclusions"] and (found := _finding(turns)):
        lists["Conclusions"] = [found]
    labels = [label for label, items in lists.items() if items]
    lines: list[str] = []
    room = SUMMARY_CHARACTERS
    for number, label in enumerate(labels, 1):
        if line := _line(
            label, lists[label], room - sum(SHARES[later] for later in labels[number:])
        ):
            lines.append(line)
            room -= len(line) + 1
    return "\n".join(lines)


# Requests


def _sample(turns: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    return turns if len(turns) <= TURNS else [*turns[: TURNS // 2], *turns[-TURNS // 2 :]]


@lru_cache(maxsize=4)  # a session is often one topic, and both are named
def _clauses(turns: tuple[tuple[str, str], ...]) -> tuple[tuple[str, float], ...]:
    """What a name could be made of, each with what it costs to come late. What comes first is what the topic is about."""
    return tuple(_told(turns))


def _told(turns: Sequence[tuple[str, str]]) -> Iterator[tuple[str, float]]:
    requests, sentences, clauses = CANDIDATES
    by_user = [text for role, text in turns if role == "user"]
    asked = _openings(by_user, requests, sentences) or _openings(
        [text for _, text in turns], requests, sentences
    )
    for late, own in enumerate(asked):
        for second, sentence in enumerate(own):
            for third, clause in enumerate(islice(_parts(sentence), clauses)):
                unsure = 1.0 if compiled(_CONDITION).match(folded(_bare(clause))) else 0.0
                yield clause, 0.7 * late + 0.3 * second + 0.2 * third + unsure


def _openings(texts: Iterable[str], most: int, sentences: int) -> list[list[str]]:
    """The first sentences of the first texts that have any."""
    return list(
        islice(
            filter(
                None,
                (list(islice(_sentences(text[:TURN_CHARACTERS]), sentences)) for text in texts),
            ),
            most,
        )
    )


def _parts(sentence: str) -> Iterator[str]:
    """A sentence cut where reasons, conditions and details begin, but no part of fewer than three words."""
    start = 0
    text = _bare(sentence)
    for ending in compiled(_ENDING).finditer(folded(text)):
        if len(spaced(text[start : ending.start()]).split()) >= 3:
            yield text[start : ending.start()]
            start = ending.end()
    if text[start:].strip():
        yield text[start:]


def _requests(turns: Sequence[tuple[str, str]], most: int) -> list[str]:
    """What the user asked for: of each turn the first sentence that says something. If none does, the first sentence of all."""
    told: list[str] = []
    first = ""
    for sentences in (_sentences(text[:TURN_CHARACTERS]) for role, text in turns if role == "user"):
        for sentence in sentences:
            first = first or sentence
            if _weight(_bare(sentence)) >= ENOUGH:
                told.append(sentence)
                break
        if len(told) == most:
            break
    return told or [first] * bool(first)


def _sentences(text: str) -> Iterator[str]:
    """Prose only: no code, no output of programs, no markup."""
    fenced = output = False
    paragraph: list[str] = []
    for line in [*text.splitlines(), ""]:
        fence = line.lstrip().startswith(("```", "~~~"))
        if fence or not line.strip():
            yield from _split(" ".join(paragraph))
            paragraph = []
            fenced, output = fenced != fence, False
            continue
        # What a program wrote goes on up to an empty line.
        output = fenced or output or line.startswith(("\t", "    ")) or _is_output(line)
        item = compiled(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+").match(line)
        if output or item:
            yield from _split(" ".join(paragraph))
            paragraph = []
        if not output:
            paragraph.append(line[item.end() :] if item else line.lstrip("#> \t"))


def _is_output(line: str) -> bool:
    """Whether a line was written by a program, or for one."""
    line = line[:400]
    if compiled(_LOG).match(folded(line)) or compiled(r"[\ue000-\uf8ff│┃║╭╰├└─═█❯✔✓✗✘]").search(
        line
    ):
        return True
    signs = len(compiled(r"[\x00-\x1f!#$%&()*+0-9:;<=>@\[\\\]^_{|}~\x7f]").findall(line))
    if len(line) > 12 and 4 * signs > len(line):
        return True
    return (
        bool(compiled(_FLAG).search(line))
        and sum(word in lexicon.STOP_WORDS for word in folded(line).split()) < 3
    )


def _split(paragraph: str) -> Iterator[str]:
    if not paragraph:
        return
    text = compiled(r"`([^`\n]{1,60})`").sub(r"\1", paragraph)
    text = compiled(r"!?\[([^\]\n]{0,120})\]\([^)\s]{0,400}\)").sub(r"\1", text)
    text = compiled(r"\*{1,3}(?=\S)([^*\n]{1,200})(?<=\S)\*{1,3}").sub(r"\1", text)
    text = " ".join(compiled(r"https?://\S+").sub(_short_address, text).split())
    for sentence in compiled(r"(?<=[.?!])\s+(?=[^\Wa-z]|[a-z]+ )|(?<=[。！？])").split(text):
        if any(map(str.isalnum, sentence)):
            yield sentence.strip()


def _short_address(match: re.Match[str]) -> str:
    """`https://host/owner/repository/pull/53` → `repository/pull/53`, and of other addresses the last part."""
    address = compiled(r"[?#]").split(match[0].partition("://")[2], 1)[0].rstrip(".,;:)>]")
    host, *path = [part for part in address.split("/") if part] or [""]
    known = [
        at
        for at, part in enumerate(path)
        if part in ("pull", "issues", "commit", "tree", "blob", "merge_requests")
    ]
    return (
        "/".join(path[max(known[0] - 1, 0) : known[0] + 2]) if known else path[-1] if path else host
    )


def _bare(sentence: str) -> str:
    """A request without its greeting and politeness."""
    text = sentence.lstrip(" \"'“”‘’,:;!?¿¡–—*_")
    lead = compiled(f"(?:{_GREETING}|{_ASKING})")
    for _ in range(8):
        found = lead.match(folded(text))
        if not found or found.end() >= len(text):
            break
        text = text[found.end() :]
    return text.lstrip(" ,:;–—")


def _short_path(path: re.Match[str]) -> str:
    parts = compiled(r"[/\\]").split(path[0])
    return parts[-1] if len(parts) > 3 or path[0][0] in "/~" else path[0]


def _titled(clause: str, words: int) -> str:
    text = (
        compiled(r"(?<!\S)[\w.@~:+-]*(?:[/\\][\w.@+-]+){2,}")
        .sub(_short_path, _bare(clause))
        .rstrip(" .,:;!?-–—")
    )
    adding = compiled(_ADDING).match(folded(text))
    into = compiled(_INTO).search(folded(text), adding.end()) if adding else None
    if adding and into:
        text = f"{text[adding.end() : into.start()]} for {text[into.end() :]}"
    if article := compiled(_ARTICLE).match(folded(text)):
        text = text[article.end() :]
    pieces = text.split()
    if len(pieces) > words:
        pieces = pieces[:words]
        while len(pieces) > 3 and folded(pieces[-1]).strip(",.;:") in _DANGLING:
            pieces.pop()
    return " ".join(pieces)


def _weight(text: str) -> float:
    """How much a text says about what it is about: ordinary words nothing, names of files and symbols most."""
    total = 0.0
    for token in dict.fromkeys(spaced(text).split()):
        word = token.lstrip("\"'“”‘’([{<*_`").rstrip("\"'“”‘’)]}>*_`.,:;!?…")
        plain = folded(word)
        if is_path(word) or is_file(word) or is_identifier(word):
            total += 1.5
        elif word.isdigit():
            total += 0.4
        elif (
            not {plain, plain.removesuffix("s")} & _VAGUE
            and len(word) > (2 if word.isascii() else 1)
            and any(map(str.isalpha, word))
        ):
            total += 0.6 if plain in lexicon.GENERIC else 1.0
    return total


def _shown(title: str, words: int) -> str:
    """With a capital, and no longer than a line of a list."""
    title = " ".join(title.split()[:words]).rstrip(" \"'“”.,:;!?-–—*_(").lstrip(" \"'“”,:;!?–—*_")
    if not any(map(str.isspace, title)) and not title.isascii() and len(title) > IDEOGRAPHS:
        title = title[:IDEOGRAPHS]
    if len(title) > NAME_CHARACTERS:
        title = title[: NAME_CHARACTERS - 1].rsplit(" ", 1)[0].rstrip(" ,:;") + "…"
    first = title.partition(" ")[0].rstrip(",:…")
    return (
        title[:1].title() + title[1:]
        if len(title[:1].title()) == 1
        and first.islower()
        and first.replace("'", "").replace("’", "").isalpha()
        else title
    )


@lru_cache(maxsize=4)
def _terms(turns: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """The most telling words of a topic, those of several turns first."""
    counts: Counter[str] = Counter()
    for _, text in turns[:TURNS]:
        counts.update(
            word
            for word in keywords(" ".join(_sentences(text[:TURN_CHARACTERS])), 12)
            if folded(word) not in lexicon.PLAIN
        )
    return tuple(word for word, _ in counts.most_common(8))


# Lines of the summary


def _gist(text: str) -> str:
    return summarize("\n\n".join(_sentences(text[:TURN_CHARACTERS])), 30)


def _finding(turns: Sequence[tuple[str, str]]) -> str:
    """The last answer, if it says that something was found out or settled."""
    last = next((text for role, text in reversed(turns) if role != "user" and text.strip()), "")
    gist = _gist(last)
    return gist if gist and classify(gist)[0] in (*CONCLUDED, *DECIDED) else ""


def _unlike(texts: Iterable[str]) -> list[str]:
    """Texts on one line each, without those that another one says already."""
    kept: list[str] = []
    for text in texts:
        line = " ".join(text.split())
        if line and not any(folded(line) in folded(other) for other in kept):
            kept = [other for other in kept if folded(other) not in folded(line)] + [line]
    return kept


def _line(label: str, items: Sequence[str], room: int) -> str:
    """As many items as there is room for. The newest ones are chosen, but for the focus: that is what it began with."""
    room -= len(label) + 2
    chosen: list[str] = []
    for item in items if label == "Focus" else reversed(items):
        item = _cut(item, min(ITEM_CHARACTERS, room) if not chosen else ITEM_CHARACTERS).rstrip(
            " .:;,"
        )
        if not item or len(item) + 2 * bool(chosen) > room:
            break
        chosen.append(item)
        room -= len(item) + 2
    ordered = chosen if label == "Focus" else chosen[::-1]
    return f"{label}: {'; '.join(ordered)}" if ordered else ""


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return (
        text[: max(limit - 1, 0)].rsplit(" ", 1)[0].rstrip(" ,;:.-–—(") + "…" if limit > 20 else ""
    )
