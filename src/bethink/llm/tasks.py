"""Questions to a language model, and the checks on its answers.

A question is a `Task` with the recorded text in parts; the instructions are in `instructions.toml`. Of the checked answer only what
the text supports is kept: an idea must cite its turns and use their words. The rest is dropped, never stored.

Pure but for the function that asks: no provider, no clock, no randomness. Nothing here knows where the turns came from.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from bethink.language.words import STOP_WORDS
from bethink.llm.base import Part, Task
from bethink.model import ENTITY_TYPES, NOTHING, Entity, Values
from bethink.store.words import tokenize

Ask = Callable[[Task], Values]  # what asks a model
IDEA_KINDS = tuple("decision preference gotcha fact pattern problem solution question todo".split())
# About 4,000 tokens of text: small enough for local models, and a dozen such questions stay below the default ceiling.
PORTION_CHARACTERS = 12_000
IDEA_CHARACTERS = 400
DIGEST_CHARACTERS = 200  # of a line, which is asked for in 25 words
NAME_WORDS = 6
PASSAGE_CHARACTERS = 1200
POINTS = {"Decided": "decisions", "Concluded": "conclusions", "Open": "questions"}


class NumberedTurn(NamedTuple):
    """One turn of a conversation. Its number is what an idea cites."""

    number: int
    role: str
    text: str


Turns = Sequence[NumberedTurn]


class CitedIdea(NamedTuple):
    kind: str
    text: str
    firm: bool
    entities: tuple[Entity, ...]
    turns: tuple[int, ...]


class Ideas(NamedTuple):
    """The ideas found, and the digest of the conversation so far."""

    ideas: tuple[CitedIdea, ...]
    digest: Mapping[str, str]  # empty where the turns do not bear it out


def portions(
    turns: Turns, characters: int = PORTION_CHARACTERS
) -> Iterator[tuple[NumberedTurn, ...]]:
    """Group turns into portions for one question each. Longer turns are cut; the pieces keep the number."""
    group: list[NumberedTurn] = []
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


@cache
def _read_instructions() -> dict[str, str]:
    return tomllib.loads((Path(__file__).parent / "instructions.toml").read_text("utf-8"))


def _ask(ask: Ask, purpose: str, parts: Sequence[Part], form: Values, tokens: int) -> Values:
    return ask(Task(purpose, _read_instructions()[purpose], tuple(parts), form, tokens))


def find_ideas(ask: Ask, turns: Turns, before: Mapping[str, str] = NOTHING) -> Ideas:
    """Find the statements worth remembering in a portion of a conversation, and update its digest."""
    idea = {
        "kind": IDEA_KINDS,
        "text": "One statement that is understood without the conversation, in its words, in one or two sentences.",
        "firm": bool,
        "entities": [{"name": "As written in the turns.", "type": ENTITY_TYPES}],
        "turns": [int],
    }
    digest = {
        "asked": "What the person wanted, all of it, the most important first.",
        "done": "What came of it: results, commits, pull requests.",
        "left": "What remains open, unconfirmed or planned at the end, or 'nothing'.",
    }
    earlier = "\n".join(f"{name}: {line}" for name, line in before.items())
    parts = (*((("digest of what came before", earlier),) if earlier else ()), *_label_turns(turns))
    value = _ask(ask, "ideas", parts, {"ideas": [idea], "digest": digest}, 2000)
    return _read_ideas(value, turns, before)


def _read_ideas(value: Values, turns: Turns, before: Mapping[str, str]) -> Ideas:
    texts: dict[int, str] = {}
    for turn in turns:
        texts[turn.number] = f"{texts.get(turn.number, '')}\n{turn.text}"
    found: dict[str, CitedIdea] = {}
    for raw in value["ideas"]:
        content = " ".join(raw["text"].split())
        cited = tuple(dict.fromkeys(raw["turns"]))
        source = "\n".join(texts.get(number, "") for number in cited)
        known_turns = cited and all(number in texts for number in cited)
        is_borne_out = 0 < len(content) <= IDEA_CHARACTERS and is_grounded(content, source)
        if not known_turns or not is_borne_out or content.casefold() in found:
            continue
        names = {entity["name"].strip(): entity["type"] for entity in raw["entities"]}
        entities = tuple(
            Entity(name, kind) for name, kind in names.items() if mentions(name, source)
        )
        found[content.casefold()] = CitedIdea(raw["kind"], content, raw["firm"], entities, cited)
    digest = {name: " ".join(line.split()) for name, line in value["digest"].items()}
    known = "\n".join((*texts.values(), *before.values()))
    fits = all(
        line == "nothing" or (0 < len(line) <= DIGEST_CHARACTERS and is_grounded(line, known))
        for line in digest.values()
    )
    return Ideas(tuple(found.values()), digest if fits else {})


def confirm_topics(ask: Ask, boundaries: Sequence[tuple[int, str, str]]) -> dict[int, bool]:
    """Ask for each boundary, by number, if a new topic begins there. Unanswered ones are left out.

    A boundary has its number, the text before it and the text after it.
    """
    parts: list[Part] = []
    for number, before, after in boundaries:
        parts += [(f"place {number}, before", before), (f"place {number}, after", after)]
    form = {"places": [{"number": int, "new_topic": bool}]}
    value = _ask(ask, "topics", parts, form, 100 + 25 * len(boundaries))
    judged = {place["number"]: place["new_topic"] for place in value["places"]}
    return {number: judged[number] for number, *_ in boundaries if number in judged}


def name_topic(ask: Ask, turns: Turns) -> tuple[str, str]:
    """Return a name and a summary of the turns of one topic, without what the turns do not support.

    Long turns are shortened in the middle, so that all are considered.
    """
    form = {
        "name": f"A title of at most {NAME_WORDS} words.",
        "focus": "What it was about, in one or two sentences.",
        "decisions": ["One sentence on what was decided, in the words of the turns."],
        "conclusions": ["One sentence on what was found out, in the words of the turns."],
        "questions": ["One sentence on what is still open at the end, in the words of the turns."],
    }
    seen = _shorten_turns(turns)
    value = _ask(ask, "summaries", _label_turns(seen), form, 900)
    source = "\n".join(turn.text for turn in seen)

    def choose(points: Sequence[str]) -> str:
        lines = dict.fromkeys(" ".join(point.split()) for point in points)
        return "; ".join(line for line in lines if line and is_grounded(line, source))

    name = " ".join(value["name"].split()[:NAME_WORDS]).strip(" .,:;-–—\"'`*#")
    summary = [choose([value["focus"]])]
    for title, key in POINTS.items():
        points = choose(value[key])
        summary += [f"{title}: {points}"] if points else []
    return name if words(name) & words(source) else "", "\n".join(summary).strip()


def suppose_answer(ask: Ask, question: str) -> str:
    """A question → a passage that could answer it (HyDE). It is only searched with, never stored or shown."""
    value = _ask(ask, "hyde", (("question", question),), {"passage": "The note."}, 300)
    return " ".join(value["passage"].split())[:PASSAGE_CHARACTERS]


def _label_turns(turns: Turns) -> tuple[Part, ...]:
    return tuple((f"turn {turn.number}, {turn.role}", turn.text) for turn in turns)


def _shorten_turns(turns: Turns) -> list[NumberedTurn]:
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


# Whether one text says only what another says, by the words of both: the guard against what a model makes up. Words are compared as the
# index knows them, so a plural or an accent makes no difference. Names, numbers, paths and identifiers are facts and must all be there;
# of the other words most must. A text made of the right words in another order, or without its "not", still passes: words are all that
# is seen.

# Claims of SciFact, which people wrote freely after reading an abstract (2026-11): 0.6 lets 53 % of them pass and none of 300 that
# were set against another abstract; 0.5 lets 66 % and 0.7 % pass. Questions ask for the words of the text, so more of ours do.
SHARE = 0.6
# Words that any retelling adds.
FRAME = """
user person assistant team conversation project session agreed agree chose choose chosen choice decided decide decision
concluded conclude conclusion question asked ask wants want wanted prefer prefers preferred preference need needs needed require
required problem issue solution solved fixed fix todo plan planned use uses used using instead because due reason
still open now currently found noted states stated says said
"""
_TOKEN = re.compile(r"[A-Za-z0-9_./\\:-]+")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NAMED = re.compile(r"_|\d|[a-z][A-Z]|\w\w\.\w|\w\.\w\w")  # but not "e.g."
_LONGEST = 200_000  # characters; more than a question ever holds


def words(text: str) -> set[str]:
    """The words of a text that carry its meaning."""
    return set(tokenize(text[:_LONGEST])) - _lexemes(" ".join(STOP_WORDS))


def is_grounded(text: str, source: str) -> bool:
    """Return True if the source supports the text."""
    stated, known = words(text), words(source)
    telling = stated - _lexemes(FRAME)
    if not telling:
        return bool(stated & known)
    if len(telling & known) < SHARE * len(telling):
        return False
    return all(mentions(fact, source) for fact in _facts(text))


def mentions(name: str, source: str) -> bool:
    """Return True if a text contains a name as a whole, in any case."""
    name = name.strip().casefold()
    if not name:
        return False
    before, after = _find_class(name[0]), _find_class(name[-1])
    return bool(re.search(f"(?<!{before}){re.escape(name)}(?!{after})", source.casefold()))


def _find_class(character: str) -> str:
    """Return the class of a character by number or word: `30s` is 30 and a unit, `300` another number."""
    if character.isdigit():
        return r"\d"
    return "[a-z]" if character.isascii() and character.isalpha() else r"[^\s\S]"


def _facts(text: str) -> set[str]:
    """Numbers, and tokens that look like names: `retry_after`, `parseUrl`, `node.js`, `src/scan.py`."""
    found = set()
    for token in _TOKEN.findall(text[:_LONGEST]):
        token = token.strip("./\\:-")
        if token[:1].isdigit():
            found.update(_NUMBER.findall(token))
        elif _NAMED.search(token):
            found.add(token)
    return found


@cache
def _lexemes(text: str) -> frozenset[str]:
    return frozenset(tokenize(text))
