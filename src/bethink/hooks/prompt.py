"""What fits a prompt, if anything clearly does: memories above the bar, each told once in a session.

The prompt is looked up as plain words, never as query syntax, and by the store's full text alone unless somebody has a model at hand.
Nothing is told that the session knows already: what it was given, what it said itself, and what its host puts into every context.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from bethink.hooks import given
from bethink.hooks.event import Hook
from bethink.hooks.evidence import Asked, asked, confidence
from bethink.recall.excerpt import Sought, excerpt
from bethink.recall.shape import citation, tokens
from bethink.store.lexemes import spaced, tokenize
from bethink.store.match import query_words
from bethink.text.fence import Quote, fenced, new_marker
from bethink.types import ASKED_IMPORTANCE, BUILTIN

if TYPE_CHECKING:
    from bethink.api import Bethink
    from bethink.types import Hit, Memory

PEOPLE = ("", "user", "sdk")  # who may stand behind a prompt; the others are timers and notices
LONGEST = 20_000  # characters of a prompt that are looked at
LOOKED, MOST = 24, 5  # hits that are weighed, and memories that are told at most
OF_ONE = 2  # of them from one conversation or document: what another one says is worth more
BESIDE = 0.24  # share of the bar that is enough beside a memory above it
TEXT = 20_000  # characters of a memory in which words are looked for
HEAD, LEAST = 4, 12  # tokens around a text, and of the shortest text worth telling
_SYNTAX = re.compile(r"[\"“”()*^{}\[\]|~]|(?<!\S)[-@]{1,4}(?=\w)")
_FIELD = re.compile(r"\b(content|summary|section|tags|kind|entity):", re.IGNORECASE)
_OPERATOR = re.compile(r"\b(?:AND|OR|NOT)\b")
_COMMAND = re.compile(r"/[\w:.-]{1,80}(?:\s|$)")


class Told(NamedTuple):
    text: str = ""
    ids: tuple[str, ...] = ()  # of the memories in it
    digest: str = ""  # by which a briefing is known again


def told(hook: Hook, memory: Bethink, mode: str = "keyword") -> Told:
    """What to add to a prompt, and the ids of the memories in it. Does not note that they were given."""
    text = question(hook)
    budget, bar = memory.config.prompt_tokens, memory.config.prompt_bar
    if not text or not budget or bar >= 1:
        return Told()
    chosen, sought = fitting(hook, memory, text, mode, bar)
    return written(memory, chosen, sought, budget) if chosen else Told()


def question(hook: Hook) -> str:
    """The words of a prompt that are looked up; '' if no person said any."""
    text = hook.prompt[:LONGEST].strip()
    if hook.source not in PEOPLE or _COMMAND.match(text):
        return ""
    if "<" in text:
        from bethink.hosts.speech import notice, without_blocks

        if notice(text):
            return ""
        text, _ = without_blocks(text)
        if "private" in text.lower():
            from bethink.ingest.redact import PRIVATE, redact

            text = redact(text).text.replace(PRIVATE, " ")
    text = _OPERATOR.sub(lambda found: found[0].lower(), _FIELD.sub(r"\1 ", _SYNTAX.sub(" ", text)))
    # Where a script has no spaces a whole sentence would be looked for as it stands.
    return spaced(text) if any(character.isalnum() for character in text) else ""


def fitting(
    hook: Hook, memory: Bethink, text: str, mode: str, bar: float
) -> tuple[list[Memory], Sought]:
    """The memories that fit, best first; none unless one is above the bar. And the words by which they were found."""
    answer = memory.search(
        text, mode=mode, profile="relevance", limit=LOOKED, seed=0, threshold=0.0
    )
    words = query_words(answer.query)
    prompt = asked(
        text, answer.query.identifiers, words, memory.store.statistics(words, memory.scopes)
    )
    before = given.read(hook)
    hidden = set(before.ids)
    sure = [(hit.memory, _sure(prompt, hit)) for hit in answer.hits if hit.memory.id not in hidden]
    sure = [
        (one, value)
        for one, value in sure
        if not always_told(one) and not _only_asks(one) and (before.emptied or not own(hook, one))
    ]
    said = frozenset(tokenize(text))
    sure = [(one, value) for one, value in sure if not _echoes(one, said)]
    settled = {one.id for one in memory.undisputed([one for one, _ in sure])}
    sure = [(one, value) for one, value in sure if one.id in settled]
    if max((value for _, value in sure), default=0.0) < bar:
        return [], Sought(frozenset())
    seen = Counter[str]()
    chosen: list[Memory] = []
    for one, value in sure:
        origin = one.session or one.source
        alike = one.source_type == "note" or seen[origin] < OF_ONE
        if value >= bar * BESIDE and alike and len(chosen) < MOST:
            seen[origin] += 1
            chosen.append(one)
    return chosen, Sought(frozenset(prompt.telling))


def _sure(prompt: Asked, hit: Hit) -> float:
    """By the words of a memory, and of those that it replaced or answers: what fits them fits it."""
    texts = [
        hit.memory,
        *(other for relation, other in hit.related if relation.type in ("supersedes", "answers")),
    ]
    held = {
        word
        for one in texts
        for word in tokenize(f"{one.content[:TEXT]}\n{one.section or ''}\n{' '.join(one.tags)}")
    }
    meaning = hit.why.get("meaning", 0.0) if "cosine" in hit.why else None
    return confidence(prompt, held, hit.why.get("pairs", 0.0), meaning)


def always_told(one: Memory) -> bool:
    """Whether hosts put it into every context by themselves: rules and their own memory."""
    return "promoted_at" in one.metadata or one.source.startswith(BUILTIN)


def _only_asks(one: Memory) -> bool:
    """Whether it is a turn in which somebody only asked something: it fits a question best and tells nothing."""
    return one.kind == "context" and bool(one.span) and one.importance <= ASKED_IMPORTANCE


def _echoes(one: Memory, said: frozenset[str]) -> bool:
    """Whether it is a turn of another session in which the same was said as now, and no word more."""
    return one.kind == "context" and said.issuperset(tokenize(one.content[:TEXT]))


def own(hook: Hook, one: Memory) -> bool:
    """Whether this session said it."""
    return bool(hook.session) and one.session == hook.session


def written(memory: Bethink, chosen: Sequence[Memory], sought: Sought, budget: int) -> Told:
    """Memories between the marks, in as many tokens as there may be: the first gets twice the room of the others."""
    short = memory.store.abbreviate([one.id for one in chosen])
    marker = new_marker()
    room = budget - tokens(fenced([], marker)) - 2
    heads = [quoted(one, short, "") for one in chosen]
    costs = [tokens(fenced([head], marker)) - tokens(fenced([], marker)) + HEAD for head in heads]
    while heads and sum(costs) + LEAST * (len(heads) + 1) > room:
        heads.pop(), costs.pop()
    quotes, left = [], room - sum(costs)
    for at, one in enumerate(chosen[: len(heads)]):
        share = left * (2 if at == 0 else 1) // (len(heads) - at + (1 if at == 0 else 0))
        text = excerpted(one, sought, share)
        left -= tokens(text)
        quotes.append(heads[at]._replace(text=text))
    return (
        Told(fenced(quotes, marker, budget * 4), tuple(one.id for one in chosen[: len(quotes)]))
        if quotes
        else Told()
    )


def excerpted(one: Memory, sought: Sought, room: int) -> str:
    """The part of a memory to show in a number of tokens, on one line."""
    text = " ".join(one.content[:TEXT].split())
    size = room * 4
    while True:
        start, end = excerpt(text, sought, size)
        part = f"{'… ' if start else ''}{text[start:end].strip()}{' …' if end < len(text) else ''}"
        if tokens(part) <= room or size < 8:
            return part
        size = size * 7 // 8


def quoted(one: Memory, short: dict[str, str], text: str) -> Quote:
    origin = f"session {one.session[:8]}" if one.session else citation(one)
    note = "answered" if one.answered else ""
    return Quote(
        short.get(one.id, one.id),
        one.kind,
        one.trust,
        origin,
        one.created_at,
        text,
        note,
        brief=True,
    )
