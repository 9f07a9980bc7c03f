"""Answer → the form its reader wants. Pure: values in, values out; the surfaces print them.

`to_json` writes every JSON answer, `plain` the stable object of a memory. `dual` is the index-and-details form: the sentences of each match
that the question is about, and a line for each of the others, within a token budget. `choose_excerpt` selects the part of a text to show,
`choose_sentences` several of its sentences, and `find_places` finds the words of the question in it: it uses the words of the index, so
what is marked is what was found.
"""

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import accumulate, islice
from typing import Any, NamedTuple

from bethink.language.words import STOP_WORDS
from bethink.model import (
    NOTED,
    NOTHING,
    TRUST,
    Answer,
    Hit,
    Json,
    Memory,
    Query,
    Relation,
    Session,
    Span,
    Strings,
)
from bethink.store.words import tokenize

_LONGEST = 50_000  # characters of a text that are looked at: marks further down help nobody
_MOST = 2_000  # marks in one text
_WORD = re.compile(r"[^\W_]{1,200}")
_BREAK = re.compile(r"[.!?]\s|\n")
TITLE = 80  # characters of a signature in a title
OVERHEAD = 12  # tokens of punctuation and labels around one item
SESSION_CHARACTERS = 8  # of the id of a session in a citation
# Characters of a text that an answer shows at first, and share of its budget for hits on a line. By hand.
OWN_ROOM, OTHER_ROOM, BEST_ROOM, BEST_HITS, LINES_SHARE = 420, 320, 480, 3, 0.05
_NAMES_OF_FILE = ("file", "path", "source", "transcript")  # in the metadata of an import
_FILE = re.compile(r"[\w./@+ -]{1,200}")
REPLY_ROOM = 1500  # of the best replies, where the question is about one
ELLIPSIS = " … "
WEIGHED_CHARACTERS = 2_000  # of each hit that are looked at to weigh words; a bound on time
_LIST_MARK = re.compile(
    r"\W*(?:\d{1,3}|\w)?\W*"
)  # a piece that is no sentence, such as the number of a list item
# Worth of a sentence beside a chosen one, behind it, behind a heading and before it, against that of one word of the question; of a word that is shown
# already; and of the first sentence. By hand.
ADJACENT_WORTH, UNDER_HEADING_WORTH, PRECEDING_WORTH, REPEATED_WORTH, OPENING_WORTH = (
    0.5,
    1.0,
    0.25,
    0.3,
    0.2,
)
_MOST_SENTENCES = 400  # of a text; a bound on time
_LEAST = 20  # tokens of a text that is worth showing
# Hints of an empty answer to a question for what is open: of nothing at all, and of one kind.
NOTHING_OPEN = "Nothing is open."
NONE_OPEN = {
    "question": "No question is open.",
    "todo": "No to-do is open.",
    "problem": "No problem is open.",
}
Place = tuple[int, int]  # start and end in a text


class Sought(NamedTuple):
    """Words that a question looks for, as the index knows them."""

    lexemes: frozenset[str]
    prefixes: Strings = ()
    worth: Mapping[str, float] = NOTHING  # how telling each is among the hits; 1 if it is not known


class Noted(NamedTuple):
    """The turn of a conversation in which an agent stored a note."""

    session: str
    turn: str  # identity of the message
    line: int


class Dual(NamedTuple):
    index: tuple[Json, ...]  # type: ignore[assignment]
    details: tuple[Json, ...]
    total_count: int
    has_more: bool
    tokens_used: int
    query: str
    hints: Strings = ()
    next: int | None = None  # the offset at which the next page begins


def tokens(text: str) -> int:
    """Estimate the tokens of a text: one per four Latin characters, one per one and a half of others."""
    wide = sum(character > "\u2e7f" for character in text) if not text.isascii() else 0
    return (len(text) - wide + 3) // 4 + (wide * 2 + 2) // 3


def iso(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def citation(memory: Memory) -> str:
    """Origin of a memory, for people: `docs/auth.md:12-40`, `session 68029492:52`, or its author."""
    place = memory.path or memory.source
    if memory.lines and memory.source.startswith(
        "import:"
    ):  # of the file that the other program read
        named = str(next(filter(None, map(memory.metadata.get, _NAMES_OF_FILE)), ""))
        place = named if _FILE.fullmatch(named) else place
    lines = memory.lines
    if memory.session and memory.source_type == "transcript":
        place = f"session {memory.session[:SESSION_CHARACTERS]}"
    elif memory.source_type == "note" and (noted := find_noted(memory)):
        place, lines = f"session {noted.session[:SESSION_CHARACTERS]}", (noted.line, noted.line)
    if lines:
        first, last = lines
        return f"{place}:{first}" if first == last else f"{place}:{first}-{last}"
    return place


def find_noted(memory: Memory) -> Noted | None:
    """Return where an agent stored a note, if its conversation was read since."""
    session, turn, line = map(memory.metadata.get, NOTED)
    if isinstance(session, str) and isinstance(turn, str) and isinstance(line, int):
        return Noted(session, turn, line)
    return None


def digest_lines(session: Session, done: Sequence[str] = ()) -> list[str]:
    """Lines of a session's digest: asked, done, left. Empty ones and to-dos that are done are omitted."""
    digest = dict(session.digest or {})
    left = digest.get("left", "").split("; ")
    over = [one for one in left if any(one.rstrip(".…") in todo for todo in done)]
    digest["left"] = "; ".join(one for one in left if one not in over)
    return [f"{name.capitalize()}: {text}" for name, text in digest.items() if text]


def plain(memory: Memory) -> Json:
    """Return a memory as the documented JSON object."""
    from bethink.schema import json_fields  # not needed by a list for people

    return {name: to_json(getattr(memory, name)) for name in json_fields()}


def to_json(value: object) -> Any:
    """Convert a value to JSON: memories in their one form, named tuples as objects, moments as UTC text."""
    if isinstance(value, Memory):
        return plain(value)
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return to_json(value._asdict())
    if isinstance(value, Mapping):
        return {str(name): to_json(one) for name, one in value.items()}
    return [to_json(one) for one in value] if isinstance(value, list | tuple) else value


def plain_hit(hit: Hit, explain: bool = False) -> Json:
    memory = plain(hit.memory)
    shaped: Json = {"id": memory.pop("id"), "score": round(hit.score, 4), **memory}
    if hit.related:
        shaped["related"] = plain_relations(hit.memory.id, hit.related)
    if explain:
        shaped["why"] = dict(hit.why)
    return shaped


def plain_relations(id: str, related: Sequence[tuple[Relation, Memory]]) -> list[Json]:
    """List the relations of a memory from its own point of view."""
    return [
        {
            "type": relation.type,
            "direction": "out" if relation.source == id else "in",
            "id": other.id,
            "summary": other.summary,
        }
        for relation, other in related
    ]


class Cost(NamedTuple):
    """Tokens that one hit takes in the form its reader gets."""

    line: int  # on one line
    frame: int  # in full, all but its text: origin, metadata, relations
    topic: str = ""  # the topic under whose heading it is shown in full


class Costs(NamedTuple):
    """Tokens of everything that an answer shows."""

    hits: Sequence[Cost]
    topics: Mapping[str, int] = NOTHING  # heading of each topic
    measure: Callable[[str], int] = tokens  # tokens of a text in full


def plain_costs(hits: Sequence[Hit]) -> Costs:
    """Costs of hits as `plain_hit` tells them, by their texts."""
    return Costs([_plain_cost(hit) for hit in hits])


def _plain_cost(hit: Hit) -> Cost:
    related = sum(tokens(other.summary) + OVERHEAD for _, other in hit.related)
    frame = tokens(citation(hit.memory)) + OVERHEAD + related
    return Cost(tokens(hit.memory.summary) + OVERHEAD, frame)


def dual(
    answer: Answer,
    max_tokens: int,
    costs: Costs | None = None,
    offset: int = 0,
    sought: Sought | None = None,
) -> Dual:
    """Show excerpts of the best hits and a line for each of the others, within a token budget.

    Texts come first, each as the sentences that the question is about, and leave a share of the budget to lines. What is left
    lengthens the excerpts, the best first. A line costs nothing if its text is shown. The index holds the first hits without a gap;
    the rest begins the next page. `offset` is the position of the first hit.
    """
    hits = answer.hits
    costs = costs or plain_costs(hits)
    sought = weigh_sought(sought or find_sought(answer.query), hits)
    summaries = [hit.memory.summary for hit in hits]
    lines = [cost.line for cost in costs.hits]
    if hits and lines[0] > max_tokens:
        summaries[0] = cut(summaries[0], max_tokens - lines[0] + tokens(summaries[0]))
        lines[0] += tokens(summaries[0]) - tokens(hits[0].memory.summary)
    kept = int(LINES_SHARE * max_tokens)
    kept = sum(lines[: _count_fitting(lines, kept)])
    used = listed = 0
    texts: dict[int, str] = {}
    headed: set[str] = set()
    for at, (hit, cost) in enumerate(zip(hits, costs.hits, strict=True)):
        frame = cost.frame + (0 if cost.topic in headed else costs.topics.get(cost.topic, 0))
        room = max_tokens - used - frame - (kept if texts else 0)
        text = show_evidence(hit.memory, sought, find_room(hit.memory, at, answer.query))
        if costs.measure(text) > room and not texts and room >= _LEAST:
            text = cut_to(text, room, costs.measure)
        if costs.measure(text) <= room:
            texts[at] = text
            headed.add(cost.topic)
            used += frame + costs.measure(text)
        elif used + lines[at] <= max_tokens:
            used += lines[at]
        else:
            break
        listed += 1
    for at, text in texts.items():
        left = max_tokens - used + costs.measure(text)
        texts[at] = _lengthen(hits[at].memory, text, sought, left, costs.measure)
        used += costs.measure(texts[at]) - costs.measure(text)
    details = [
        plain_hit(hits[at])
        | ({} if text == hits[at].memory.content else {"content": text, "truncated": True})
        for at, text in texts.items()
    ]
    index = tuple(
        {"id": one.id, "summary": summary, "kind": one.kind, "score": round(score, 3)}
        for (one, score, *_), summary in zip(hits[:listed], summaries, strict=False)
    )
    after = offset + len(index)
    left = bool(index) and answer.total > after
    query, hints = answer.query.raw, answer.hints
    following = after if left else None
    return Dual(index, tuple(details), answer.total, left, used, query, hints, following)


def find_room(memory: Memory, place: int, query: Query) -> int:
    """Return the characters of a hit to show at first: more of the user's words and of the best."""
    room = OWN_ROOM if memory.trust >= TRUST["user"] else OTHER_ROOM
    if place >= BEST_HITS:
        return room
    is_reply = query.asks_reply and memory.kind == "context" and memory.trust < TRUST["user"]
    return REPLY_ROOM if is_reply else max(room, BEST_ROOM)


def weigh_sought(wanted: Sought, hits: Sequence[Hit]) -> Sought:
    """Weigh the words of a question by how few of the hits hold them."""
    counts = Counter(
        word
        for hit in hits
        for word in _find_words(hit.memory.content[:WEIGHED_CHARACTERS], wanted)
    )
    return wanted._replace(
        worth={word: math.log(1 + len(hits) / count) for word, count in counts.items()}
    )


def show_evidence(memory: Memory, sought: Sought, room: int) -> str:
    """Return the sentences of a memory that a question is about, gaps marked; all if it is short."""
    text = memory.content
    places = choose_sentences(text, sought, room)
    shown = ELLIPSIS.join(text[start:end].strip() for start, end in places)
    if not places or places == [(0, len(text))]:
        return text
    before = "" if places[0][0] == 0 else ELLIPSIS.lstrip()
    return before + shown + ("" if places[-1][1] == len(text) else ELLIPSIS.rstrip())


def _lengthen(
    memory: Memory, text: str, sought: Sought, left: int, measure: Callable[[str], int]
) -> str:
    """Return the longest excerpt of a memory that takes up to so many tokens."""
    if text == memory.content or left - measure(text) < _LEAST:
        return text
    if measure(memory.content) <= left:
        return memory.content
    room = left * 4
    while room > len(text):
        longer = show_evidence(memory, sought, room)
        if measure(longer) <= left:
            return longer if len(longer) > len(text) else text
        room = room * 9 // 10
    return text


def _count_fitting(costs: Sequence[int], room: int) -> int:
    """Count how many of the first items fit into the room together."""
    return bisect_right(list(accumulate(costs)), room)


def by_topic(hits: Sequence[Hit], spans: Mapping[str, Span]) -> list[tuple[Span | None, list[Hit]]]:
    """Group hits by topic of a conversation, in the order of their best hit; others form their own group."""
    groups: dict[str, tuple[Span | None, list[Hit]]] = {}
    for hit in hits:
        span = spans.get(hit.memory.span or "")
        groups.setdefault(span.id if span else hit.memory.id, (span, []))[1].append(hit)
    return list(groups.values())


def cut(text: str, room: int) -> str:
    """Return the start of a text that fits into a number of tokens, cut at a word."""
    part = text[: room * 4]
    while part and tokens(part) > room - 1:
        part = part[: len(part) * 9 // 10]
    return (part.rsplit(None, 1)[0] if " " in part.strip() else part) + " …"


def cut_to(text: str, room: int, measure: Callable[[str], int] = tokens) -> str:
    """Return the text, or as much of its start as fits into a number of tokens by some measure."""
    if measure(text) <= room:
        return text
    left = room
    while measure(part := cut(text, left)) > room and left > 1:
        left = left * 9 // 10
    return part


# Words of a question in a text


def find_sought(query: Query) -> Sought:
    """Return the words of a question that are worth marking."""
    terms = query.terms
    words = [word for term in terms for word in _WORD.findall(term.text) if not term.prefix]
    telling = [word for word in words if word.casefold() not in STOP_WORDS] or words
    prefixes = tuple(term.text.casefold() for term in terms if term.prefix and term.text)
    return Sought(frozenset(lexeme for word in telling for lexeme in _lexemes(word)), prefixes)


def find_places(text: str, wanted: Sought) -> list[Place]:
    """Return start and end of every word that was looked for, in order."""

    def is_sought(word: str) -> bool:
        known = not wanted.lexemes.isdisjoint(_lexemes(word))
        return known or word.casefold().startswith(wanted.prefixes)

    words = _WORD.finditer(text[:_LONGEST])
    return list(islice((word.span() for word in words if is_sought(word.group())), _MOST))


def choose_excerpt(text: str, wanted: Sought | None, room: int) -> Place:
    """Return start and end of the part with most different words of the question.

    It begins with a sentence if one is near.
    """
    if len(text) <= room:
        return 0, len(text)
    marks = find_places(text, wanted) if wanted else []
    start = _find_densest(text, marks, room * 3 // 4)
    if start < room // 2:
        start = 0
    else:
        breaks = [match.end() for match in _BREAK.finditer(text, max(0, start - room // 4), start)]
        gap = text.rfind(" ", max(0, start - 20), start)
        start = breaks[-1] if breaks else gap + 1 if gap >= 0 else start
    end = min(len(text), start + room)
    gap = text.rfind(" ", end - 30, end) if end < len(text) else -1
    return start, gap if gap > start else end


def choose_sentences(text: str, wanted: Sought, room: int) -> list[Place]:
    """Return the places of the sentences with most words of the question, adjacent ones joined."""
    if len(text) <= room:
        return [(0, len(text))]
    breaks = [match.end() for match in islice(_BREAK.finditer(text[:_LONGEST]), _MOST_SENTENCES)]
    sentences: list[Place] = []
    start = 0
    for end in (*breaks, len(text)):
        if not _LIST_MARK.fullmatch(text, start, end):
            sentences.append((start, end))
            start = end
    words = [_find_words(text[start:end], wanted) for start, end in sentences]
    headings = {at for at, (start, end) in enumerate(sentences) if _leads(text[start:end])}
    chosen: set[int] = set()
    shown: set[str] = set()
    left = room

    def find_worth(at: int) -> float:
        own = sum(
            wanted.worth.get(word, 1.0) * (REPEATED_WORTH if word in shown else 1.0)
            for word in words[at]
        )
        after = UNDER_HEADING_WORTH if at - 1 in headings else ADJACENT_WORTH
        near = after * (at - 1 in chosen) + PRECEDING_WORTH * (at + 1 in chosen)
        return own + near + OPENING_WORTH * (at == 0)

    while left > 0 and len(chosen) < len(sentences):
        waiting = [at for at in range(len(sentences)) if at not in chosen]
        fitting = [at for at in waiting if sentences[at][1] - sentences[at][0] <= left]
        best = max(waiting if not chosen else fitting, key=find_worth, default=None)
        if best is None or (chosen and not find_worth(best)):
            break
        if best not in fitting:  # the first one, and too long
            start, end = sentences[best]
            first, last = choose_excerpt(text[start:end], wanted, room)
            return [(start + first, start + last)]
        chosen.add(best)
        shown |= words[best]
        left -= sentences[best][1] - sentences[best][0] + len(ELLIPSIS) * (best - 1 not in chosen)
    places: list[Place] = []
    for at in sorted(chosen):
        start, end = sentences[at]
        if places and places[-1][1] == start:
            start = places.pop()[0]
        places.append((start, end))
    return places


def _leads(sentence: str) -> bool:
    """Return True for what a list follows."""
    return sentence.rstrip().rstrip("*_").endswith(":")


def _find_words(text: str, wanted: Sought) -> set[str]:
    """Return the words of a question that a text holds, as the index knows them."""
    found: set[str] = set()
    for word in _WORD.findall(text):
        found |= wanted.lexemes & _lexemes(word)
        found.update(prefix for prefix in wanted.prefixes if word.casefold().startswith(prefix))
    return found


def choose_sentence(text: str, question: str, other: str) -> str:
    """Return the sentence or line that shares most words with a question, then with another text.

    Markdown marks are removed. A heading is chosen only if the text has nothing else.
    """
    wanted = [set(tokenize(one)) - STOP_WORDS for one in (question, other)]
    lines = [line.strip() for line in _BREAK.split(text[:_LONGEST])]
    lines = [line for line in lines if line and not line.startswith("#")] or lines

    def share(line: str) -> list[int]:
        words = set(tokenize(line))
        return [len(words & one) for one in wanted]

    return max(lines, key=share).strip("#>*- \t")


def _find_densest(text: str, marks: list[Place], room: int) -> int:
    def count_words(at: int) -> int:
        last = marks[at][0] + room
        near = [place for place in marks[at : at + 40] if place[1] <= last]
        return len({text[start:end].casefold() for start, end in near})

    return marks[max(range(len(marks)), key=count_words)][0] if marks else 0


@lru_cache(maxsize=20_000)
def _lexemes(word: str) -> frozenset[str]:
    return frozenset(tokenize(word))


def title_code(memory: Memory, sought: Sought) -> Memory:
    """Title a passage of code by the symbol that matched, instead of the first one in its file."""
    symbols = memory.metadata.get("symbols") if memory.kind == "code" else None
    if not symbols or not memory.path:
        return memory
    shared = {name: len(sought.lexemes & _lexemes(name)) for name in symbols}
    best = max(symbols, key=lambda name: (shared[name], -len(name)))
    if not shared[best] or best in memory.summary.replace(memory.path, ""):
        return memory
    line = re.search(rf"(?m)^[ \t]{{0,40}}(\d+): (.*\b{re.escape(best)}\b.*)$", memory.content)
    signature, place = (line[2].strip(), f":{line[1]}") if line else (best, "")
    return memory._replace(summary=f"{signature[:TITLE]} in {memory.path}{place}")
