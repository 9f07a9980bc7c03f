"""What a model is asked, and what its answers are worth: pairs of a question and a reader of its answer.

A question is a `Task` with the recorded text in parts. A reader takes the checked value and keeps only what the text bears
out: an idea must name the turns it comes from and be told in their words. The rest is dropped and counted, never stored.

Pure: no provider, no clock, no randomness. Nothing here knows where the turns came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bethink.llm.base import Task
from bethink.llm.grounds import grounded, kept, mentions, words
from bethink.llm.schema import choice, record, several, text, whole, yes_or_no
from bethink.types import ENTITY_TYPES, Entity

IDEA_KINDS = (
    "decision",
    "conclusion",
    "question",
    "problem",
    "solution",
    "todo",
    "context",
    "fact",
    "preference",
)
RELATIONS = ("contradicts", "supersedes", "same", "unrelated")
# About 4,000 tokens of text: small enough for local models, and a dozen such questions stay below the default ceiling.
PORTION_CHARACTERS = 12_000
IDEAS_PER_PORTION = 20
IDEA_CHARACTERS = 400
NAME_WORDS = 6
POINTS = 8
PASSAGE_CHARACTERS = 1200


class Turn(NamedTuple):
    """One turn of a conversation. Its number is what an idea cites."""

    number: int
    role: str
    text: str


class Idea(NamedTuple):
    kind: str
    text: str
    firm: bool
    entities: tuple[Entity, ...]
    turns: tuple[int, ...]


class Ideas(NamedTuple):
    """What was found, and how many were dropped for which reason."""

    ideas: tuple[Idea, ...]
    dropped: Mapping[str, int]


class Boundary(NamedTuple):
    """A place where the topic may change: what was said before it and after it."""

    number: int
    before: str
    after: str


class Topic(NamedTuple):
    """Name and summary of a span. A name that the turns do not bear out is empty, and so may every list be."""

    name: str
    focus: str
    decisions: tuple[str, ...]
    conclusions: tuple[str, ...]
    questions: tuple[str, ...]
    dropped: int

    @property
    def summary(self) -> str:
        lists = (
            ("Decided", self.decisions),
            ("Concluded", self.conclusions),
            ("Open", self.questions),
        )
        return "\n".join(
            [self.focus, *(f"{title}: {'; '.join(points)}" for title, points in lists if points)]
        ).strip()


class Verdict(NamedTuple):
    relation: str  # one of RELATIONS
    newer: str  # first, second or unknown
    why: str


def portions(
    turns: Sequence[Turn], characters: int = PORTION_CHARACTERS
) -> Iterator[tuple[Turn, ...]]:
    """Turns in groups that one question can hold. A longer turn is cut into pieces of the same number; nothing is left out."""
    group: list[Turn] = []
    size = 0
    for turn in turns:
        for start in range(0, max(1, len(turn.text)), characters):
            piece = turn._replace(text=turn.text[start : start + characters])
            if group and size + len(piece.text) > characters:
                yield tuple(group)
                group, size = [], 0
            group.append(piece)
            size += len(piece.text)
    if group:
        yield tuple(group)


def extract_ideas(turns: Sequence[Turn]) -> Task:
    """One portion of a conversation → the statements worth remembering."""
    idea = record(
        kind=choice(IDEA_KINDS),
        text=text(
            2000,
            "One statement that is understood without the conversation, in its words, in one or two sentences.",
        ),
        firm=yes_or_no("False if it was tentative, doubted or only proposed."),
        entities=several(
            record(name=text(200, "As written in the turns."), type=choice(ENTITY_TYPES)),
            10,
            "Things that the statement names.",
        ),
        turns=several(whole("Number of a turn."), 20, "The turns that say it."),
    )
    instruction = (
        "You read a part of a conversation between a person and a coding assistant, and note what will still matter in a later "
        "session: decisions and their reasons, conclusions, open questions, problems, solutions that worked, things to do, "
        "preferences of the person, facts and constraints of the project. "
        "Leave out greetings, progress reports, tool output, code, and what is obvious from the code. "
        "Use only what the turns say, and their own words, names and numbers. Keep every 'not'. "
        "Of a change, note what holds at the end. If nothing matters, answer with an empty list."
    )
    return Task(
        "ideas", instruction, _labelled(turns), record(ideas=several(idea, IDEAS_PER_PORTION)), 2000
    )


def read_ideas(value: Mapping[str, Any], turns: Sequence[Turn]) -> Ideas:
    said: dict[int, str] = {}
    for turn in turns:
        said[turn.number] = f"{said.get(turn.number, '')}\n{turn.text}"
    found: dict[str, Idea] = {}
    dropped: dict[str, int] = {}
    for raw in value["ideas"]:
        content = " ".join(raw["text"].split())
        cited = tuple(dict.fromkeys(raw["turns"]))
        source = "\n".join(said.get(number, "") for number in cited)
        trouble = _trouble(content, cited, said, source)
        if not trouble and content.casefold() in found:
            trouble = "said twice"
        if trouble:
            dropped[trouble] = dropped.get(trouble, 0) + 1
            continue
        names = {entity["name"].strip(): entity["type"] for entity in raw["entities"]}
        entities = tuple(
            Entity(name, kind) for name, kind in names.items() if mentions(name, source)
        )
        found[content.casefold()] = Idea(raw["kind"], content, raw["firm"], entities, cited)
    return Ideas(tuple(found.values()), dropped)


def _trouble(content: str, cited: tuple[int, ...], said: Mapping[int, str], source: str) -> str:
    """Why an idea is not believed, or nothing."""
    if not content:
        return "empty"
    if len(content) > IDEA_CHARACTERS:
        return "too long"
    if not cited or any(number not in said for number in cited):
        return "no such turn"
    return "" if grounded(content, source) else "not in its turns"


def confirm_topics(boundaries: Sequence[Boundary]) -> Task:
    """Places where the topic may change → whether it does."""
    instruction = (
        "A conversation was cut at places where its topic may change. For each place you see what was said just before and just "
        "after. Say whether a new topic begins there: another goal, component or problem. A follow-up, a detail, a fix "
        "or a test of the same thing is no new topic."
    )
    parts = []
    for boundary in boundaries:
        parts += [
            (f"place {boundary.number}, before", boundary.before),
            (f"place {boundary.number}, after", boundary.after),
        ]
    places = several(
        record(number=whole("Number of the place."), new_topic=yes_or_no("")),
        max(1, len(boundaries)),
    )
    return Task(
        "topics", instruction, tuple(parts), record(places=places), 100 + 25 * len(boundaries)
    )


def read_topics(value: Mapping[str, Any], boundaries: Sequence[Boundary]) -> dict[int, bool]:
    """Number → whether a topic begins there. Places that the answer leaves out, or judges both ways, are not in it."""
    asked = {boundary.number for boundary in boundaries}
    found: dict[int, set[bool]] = {}
    for place in value["places"]:
        if place["number"] in asked:
            found.setdefault(place["number"], set()).add(place["new_topic"])
    return {number: judged.pop() for number, judged in found.items() if len(judged) == 1}


def name_topic(turns: Sequence[Turn]) -> Task:
    """The turns of one topic → its name and summary. Long turns are shortened in the middle, so that all have a say."""
    point = text(600, "One sentence in the words of the turns.")
    form = record(
        name=text(200, f"A title of at most {NAME_WORDS} words."),
        focus=text(600, "What it was about, in one or two sentences."),
        decisions=several(point, POINTS, "What was decided."),
        conclusions=several(point, POINTS, "What was found out."),
        questions=several(point, POINTS, "What is still open at the end."),
    )
    instruction = (
        "You read one topic of a conversation between a person and a coding assistant. Name it and sum it up, for somebody who "
        "looks for it months later. Use only what the turns say, and their own words, names and numbers. Keep every 'not'. "
        "Lists may be empty."
    )
    return Task("summaries", instruction, _labelled(_shortened(turns)), form, 900)


def read_topic(value: Mapping[str, Any], turns: Sequence[Turn]) -> Topic:
    source = "\n".join(turn.text for turn in _shortened(turns))  # what the model saw
    points = {
        title: tuple(
            dict.fromkeys(line for point in value[title] if (line := " ".join(point.split())))
        )
        for title in ("decisions", "conclusions", "questions")
    }
    good = {
        title: tuple(point for point in told if grounded(point, source))
        for title, told in points.items()
    }
    focus = " ".join(value["focus"].split())
    focus = focus if grounded(focus, source) else ""
    name = _title(value["name"])
    dropped = sum(map(len, points.values())) - sum(map(len, good.values())) + (not focus)
    return Topic(
        name if words(name) & words(source) else "",
        focus,
        good["decisions"],
        good["conclusions"],
        good["questions"],
        dropped,
    )


def _title(name: str) -> str:
    """At most six words, without the punctuation and the small words that a cut leaves at the end."""
    chosen = name.split()[:NAME_WORDS]
    while len(name.split()) > NAME_WORDS and len(chosen) > 1 and not words(chosen[-1]):
        chosen.pop()
    return " ".join(chosen).strip(" .,:;-–—\"'`*#")


def hypothetical(question: str) -> Task:
    """A question → a passage that could answer it (HyDE). It is only searched with, never stored or shown."""
    instruction = (
        "Somebody searches the notes of past work on a software project with the question below. Write the note that would answer "
        "it, as if you had found it: two to four plain sentences in the words that such a note would use. Make up the details."
    )
    form = record(passage=text(4000, "The note."))
    return Task("hyde", instruction, (("question", question),), form, 300)


def read_hypothetical(value: Mapping[str, Any]) -> str:
    return " ".join(value["passage"].split())[:PASSAGE_CHARACTERS]


def contradiction(first: str, second: str, first_at: str = "", second_at: str = "") -> Task:
    """Two memories → how they stand to each other. The times are told to the model where they are known."""
    instruction = (
        "Two statements from the memory of a software project. Say how they stand to each other. "
        "contradicts: both cannot hold at the same time, and nothing says which does. "
        "supersedes: one replaces the other, because it is newer or says that something changed. "
        "same: they say the same. unrelated: both can hold. "
        "newer is the statement that holds now: first, second, or unknown."
    )
    parts = (
        (f"first statement{f', of {first_at}' if first_at else ''}", first),
        (f"second statement{f', of {second_at}' if second_at else ''}", second),
    )
    form = record(
        relation=choice(RELATIONS),
        newer=choice(("first", "second", "unknown")),
        why=text(600, "The reason, in one sentence."),
    )
    return Task("contradictions", instruction, parts, form, 200)


def read_contradiction(value: Mapping[str, Any]) -> Verdict:
    """What replaces something must be one of the two; a verdict that does not say which is a contradiction for people to settle."""
    relation, newer = value["relation"], value["newer"]
    if relation == "supersedes" and newer == "unknown":
        relation = "contradicts"
    return Verdict(relation, newer, " ".join(value["why"].split()))


def merge(first: str, second: str) -> Task:
    """Two memories that say much the same → one that says all of it."""
    instruction = (
        "Two statements from the memory of a software project say much the same. Write one statement that says everything that "
        "either says, once, in their own words. Keep every name, number, path, reason and 'not'. Add nothing. "
        "If they do not belong together, answer with an empty text."
    )
    form = record(text=text(8000, "The statement, or nothing."))
    return Task(
        "merge", instruction, (("first statement", first), ("second statement", second)), form, 1000
    )


def read_merge(value: Mapping[str, Any], first: str, second: str) -> str | None:
    """The merged text, or None if it adds something or loses a name, a number or much of either text."""
    merged = str(value["text"]).strip()
    if not merged or not grounded(merged, f"{first}\n{second}"):
        return None
    return merged if kept(first, merged) and kept(second, merged) else None


def _labelled(turns: Sequence[Turn]) -> tuple[tuple[str, str], ...]:
    return tuple((f"turn {turn.number}, {turn.role}", turn.text) for turn in turns)


def _shortened(turns: Sequence[Turn]) -> list[Turn]:
    """The turns within one portion. Those that are too long lose their middle."""
    if sum(len(turn.text) for turn in turns) <= PORTION_CHARACTERS:
        return list(turns)
    if len(turns) > 200:  # beginning and end of a very long topic say what it was about
        turns = [*turns[:100], *turns[-100:]]
    share = PORTION_CHARACTERS // len(turns)
    return [
        turn._replace(text=f"{turn.text[: share // 2]} […] {turn.text[-share // 2 :]}")
        if len(turn.text) > share
        else turn
        for turn in turns
    ]
