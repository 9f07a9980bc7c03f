"""What fits a prompt, if anything clearly does: memories above the bar, each told once in a session. And what to beware of in a file
that a tool is about to edit, with the setting `tool_hooks`.

The prompt is looked up as plain words, never as query syntax, and by the store's full text alone unless somebody has a model at hand.
Nothing is told that the session knows already: what it was given, what it said itself, and what its host puts into every context.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from bethink.hooks import state
from bethink.hooks.event import PEOPLE, Hook
from bethink.hooks.evidence import Asked, asked, confidence
from bethink.hosts.base import is_notice, remove_blocks
from bethink.ingest.redact import PRIVATE, redact
from bethink.recall.shape import Sought, choose_excerpt, citation, tokens
from bethink.store.words import query_words, space_out, tokenize
from bethink.text.fence import Quote, fence_items, new_marker
from bethink.types import ASKED_IMPORTANCE, BUILTIN, TRUST

if TYPE_CHECKING:
    from bethink.api import Bethink
    from bethink.types import Hit, Memory

LONGEST = 20_000  # characters of a prompt, and of a memory, that are looked at
LOOKED, MOST = 24, 5  # hits that are weighed, and memories that are told at most
OF_ONE = 2  # of them from one conversation or document: what another one says is worth more
BESIDE = 0.24  # share of the bar that is enough beside a memory above it
HEAD, LEAST = 4, 12  # tokens around a text, and of the shortest text worth telling
WARNINGS = ("gotcha", "problem")
MOST_WARNINGS, LOOKED_WARNINGS = 3, 20
_SYNTAX = re.compile(r"[\"“”()*^{}\[\]|~]|(?<!\S)[-@]{1,4}(?=\w)")
_FIELD = re.compile(r"\b(content|summary|section|tags|kind|entity):", re.IGNORECASE)
_OPERATOR = re.compile(r"\b(?:AND|OR|NOT)\b")
_COMMAND = re.compile(r"/[\w:.-]{1,80}(?:\s|$)")


class Context(NamedTuple):
    """What a session is told."""

    text: str = ""
    ids: tuple[str, ...] = ()  # of the memories in it
    digest: str = ""  # by which a briefing is known again


def recall_for_prompt(hook: Hook, memory: Bethink, mode: str = "keyword") -> Context:
    """What to add to a prompt. Does not note that it was given."""
    text = find_question(hook)
    budget, bar = memory.config.prompt_tokens, memory.config.prompt_bar
    if not text or not budget or bar >= 1:
        return Context()
    chosen, sought = choose(hook, memory, text, mode, bar)
    return render_memories(memory, chosen, sought, budget)


def find_question(hook: Hook) -> str:
    """The words of a prompt that are looked up; '' if no person said any."""
    text = hook.prompt[:LONGEST].strip()
    if hook.source not in PEOPLE or _COMMAND.match(text):
        return ""
    if "<" in text:
        if is_notice(text):
            return ""
        text, _ = remove_blocks(text)
        if "private" in text.lower():
            text = redact(text).text.replace(PRIVATE, " ")
    text = _FIELD.sub(r"\1 ", _SYNTAX.sub(" ", text))
    text = _OPERATOR.sub(lambda found: found[0].lower(), text)
    # Where a script has no spaces a whole sentence would be looked for as it stands.
    return space_out(text) if any(character.isalnum() for character in text) else ""


def choose(
    hook: Hook, memory: Bethink, text: str, mode: str, bar: float
) -> tuple[list[Memory], Sought]:
    """The memories that fit, best first; none unless one is above the bar. And the words by which they were found."""
    answer = memory.search(
        text, mode=mode, profile="relevance", limit=LOOKED, seed=0, threshold=0.0
    )
    words = query_words(answer.query)
    statistics = memory.store.statistics(words, memory.scopes)
    prompt = asked(text, answer.query.identifiers, words, statistics)
    given, said = state.read_deliveries(hook), frozenset(tokenize(text))
    sure = [
        (hit.memory, _weigh(prompt, hit))
        for hit in answer.hits
        if hit.memory.id not in given.ids
        and not is_always_told(hit.memory)
        and not _is_echo(hit.memory, said, "question" in answer.query.kinds)
        and (given.emptied or not is_own(hook, hit.memory))
    ]
    settled = {one.id for one in memory.undisputed([one for one, _ in sure])}
    sure = [(one, value) for one, value in sure if one.id in settled]
    if max((value for _, value in sure), default=0.0) < bar:
        return [], Sought(frozenset())
    seen = Counter[str]()
    chosen: list[Memory] = []
    for one, value in sure:
        origin = one.session or one.source
        another = one.source_type == "note" or seen[origin] < OF_ONE
        if value >= bar * BESIDE and another and len(chosen) < MOST:
            seen[origin] += 1
            chosen.append(one)
    return chosen, Sought(frozenset(prompt.telling))


def _weigh(prompt: Asked, hit: Hit) -> float:
    """By the words of a memory, and of those that it replaced or answers: what fits them fits it."""
    others = (one for relation, one in hit.related if relation.type in ("supersedes", "answers"))
    parts = [
        part
        for one in (hit.memory, *others)
        for part in (one.content[:LONGEST], one.section or "", *one.tags)
    ]
    meaning = hit.why.get("meaning", 0.0) if "cosine" in hit.why else None
    return confidence(prompt, set(tokenize("\n".join(parts))), hit.why.get("pairs", 0.0), meaning)


def is_always_told(one: Memory) -> bool:
    """Whether hosts put it into every context by themselves: rules and their own memory."""
    return "promoted_at" in one.metadata or one.source.startswith(BUILTIN)


def _is_echo(one: Memory, said: frozenset[str], wanted: bool) -> bool:
    """Whether it tells nothing: somebody only asked something, unless questions are `wanted`, or said the same as now and no word
    more."""
    if one.kind == "question":
        return not wanted
    only_asks = bool(one.span) and one.importance <= ASKED_IMPORTANCE
    return one.kind == "context" and (only_asks or said.issuperset(tokenize(one.content[:LONGEST])))


def is_own(hook: Hook, one: Memory) -> bool:
    """Whether this session said it."""
    return bool(hook.session) and one.session == hook.session


# Files that a tool is about to edit, or has just read


def recall_for_files(hook: Hook, memory: Bethink) -> Context:
    """Known gotchas about the files of a tool call that this session was not told before."""
    given = state.read_deliveries(hook).ids
    chosen: dict[str, Memory] = {}
    for file in hook.files:
        name = PurePath(file.replace("\\", "/")).name
        options: dict[str, Any] = {"mode": "keyword", "seed": 0, "related": False}
        filter = memory.filter(kinds=WARNINGS)
        hits = (
            memory.search(f'"{name}"', filter=filter, limit=LOOKED_WARNINGS, **options).hits
            if name
            else ()
        )
        for one in (hit.memory for hit in hits):
            known = one.id in given or one.answered or is_always_told(one)
            if not known and one.trust >= TRUST["agent"] and _is_about(one, file, name):
                chosen[one.id] = one
    best = list(chosen.values())[:MOST_WARNINGS]
    return render_memories(memory, best, Sought(frozenset()), memory.config.prompt_tokens)


def _is_about(one: Memory, file: str, name: str) -> bool:
    """Whether a memory means this file: by its path where it names one, else by its name."""
    files = [entity.name for entity in one.entities if entity.type == "file"]
    paths = [path for path in files if "/" in path and PurePath(path).name == name]
    whole = "/" + file.replace("\\", "/").lstrip("/")
    if paths:
        return any(whole.endswith("/" + path.lstrip("./")) for path in paths)
    return name in one.content


# Rendering


def render_memories(
    memory: Bethink, chosen: Sequence[Memory], sought: Sought, budget: int
) -> Context:
    """Memories between the marks, in as many tokens as there may be: the first gets twice the room of the others."""
    short = memory.store.abbreviate([one.id for one in chosen])
    marker = new_marker()
    frame = tokens(fence_items([], marker))
    heads = [quote(one, short, "") for one in chosen]
    costs = [tokens(fence_items([head], marker)) - frame + HEAD for head in heads]
    left = budget - frame - 2
    while heads and sum(costs) + LEAST * (len(heads) + 1) > left:
        heads.pop(), costs.pop()
    left -= sum(costs)
    quotes = []
    for at, (one, head) in enumerate(zip(chosen, heads, strict=False)):
        share = left * 2 // (len(heads) + 1) if at == 0 else left // (len(heads) - at)
        text = cut_excerpt(one, sought, share)
        left -= tokens(text)
        quotes.append(head._replace(text=text))
    if not quotes:
        return Context()
    ids = tuple(one.id for one in chosen[: len(quotes)])
    return Context(fence_items(quotes, marker, budget * 4), ids)


def cut_excerpt(one: Memory, sought: Sought, room: int) -> str:
    """The part of a memory to show in a number of tokens, on one line."""
    text = " ".join(one.content[:LONGEST].split())
    size = room * 4
    while True:
        start, end = choose_excerpt(text, sought, size)
        part = f"{'… ' if start else ''}{text[start:end].strip()}{' …' if end < len(text) else ''}"
        if tokens(part) <= room or size < 8:
            return part
        size = size * 7 // 8


def quote(one: Memory, short: dict[str, str], text: str) -> Quote:
    origin = f"session {one.session[:8]}" if one.session else citation(one)
    return Quote(
        short.get(one.id, one.id),
        one.kind,
        one.trust,
        origin,
        one.created_at,
        text,
        "answered" if one.answered else "",
        brief=True,
    )
