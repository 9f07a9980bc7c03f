"""Prompt recall: the memories that clearly fit a prompt, each shown once in a session.

Most prompts get nothing. The prompt is looked up as plain words, never as query syntax. If the models are on this machine, the judge reads
it beside the few statements that are nearest to it or share its words: "install lodash please" shares no word with "We use pnpm, never
npm". The judge was not trained for turns of conversations, documents and code, so these are matched by words alone, and so is everything
if a model is missing or late. `matching.py` has the features and the profile; the ranker is that of every search. Nothing is shown that the
session knows already: earlier recalls, its own words, and what its host adds to every context.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

from bethink.agents.speech import is_notice, remove_blocks
from bethink.errors import EmbeddingError
from bethink.hooks import state
from bethink.hooks.matching import (
    MANY_STATEMENTS,
    PROMPT,
    PromptWords,
    match_judge,
    match_words,
    read_prompt,
    score_match,
)
from bethink.hooks.rules import note_gone
from bethink.hooks.standing import is_done_once
from bethink.hooks.state import PERSON_SOURCES, Hook
from bethink.ingest.redact import PRIVATE, redact
from bethink.language.detect import is_english
from bethink.language.implied import find_implied_work
from bethink.language.requests import SMALL_EDIT
from bethink.model import (
    ASKED_IMPORTANCE,
    BUILTIN,
    STATEMENTS,
    TRUST,
    is_inferred,
    is_remote,
    is_untrusted_import,
)
from bethink.outgoing import Quote, fence_items, new_marker
from bethink.recall.query import parse
from bethink.recall.rank import Features, Ranked, rank
from bethink.recall.resume import asks_to_resume, resume
from bethink.recall.settled import LOOKED_AT, find_refused, find_settlements, is_choice
from bethink.recall.shape import Sought, choose_excerpt, citation, tokens
from bethink.recall.shortlist import (
    DISPUTING,
    dispute,
    is_unvouched,
    is_users_statement,
    outranks,
)
from bethink.store.words import as_words, query_words, tokenize

if TYPE_CHECKING:
    from concurrent.futures import Future

    from bethink.api import Bethink
    from bethink.judge import Judge
    from bethink.model import Hit, Memory, Relation

    Described = list[tuple[Memory, Features]]

LONGEST_LOOKED_AT = 20_000  # characters of a prompt, and of a memory; a bound on time
MOST_HITS = 24  # hits of the search that are matched; a bound on time: with 8 shown, 90 % at most are found (bench/LOG.md, 2026-11-15)
# By words: memories shown, and of them from one conversation or document. Single memories of a session beyond two are seldom the right one:
# with two, 82 % and 83 % are found; without the limit, 1 and 3 questions fewer (bench/LOG.md, 2026-11-15 and 2026-11-16).
MOST_SHOWN, MOST_OF_ONE = 5, 2
# Statements that the judge reads, by words and by nearness, and characters of each and of the prompt: about 15 ms of one core a pair. 8 or 20
# nearest are no better (bench/LOG.md, 2026-11-16).
READ_BY_WORDS, READ_NEAREST, READ_LENGTH = 4, 10, 280
JUDGE_SHARE = 0.7  # share of `hook_seconds` after which the judge is not waited for; by hand, the rest is for the answer
TOKENS_AROUND, LEAST_TOKENS = (
    4,
    12,
)  # around a text, and of the shortest text worth showing; by hand
MOST_RESUMED = 1  # digests, for a question about the last session
_COMMAND = re.compile(r"/[\w:.-]{1,80}(?:\s|$)")


class Context(NamedTuple):
    """Text that a hook adds to a session."""

    text: str = ""
    ids: tuple[str, ...] = ()  # of the memories in it
    digest: str = ""  # by which a briefing is known again


def recall_for_prompt(
    hook: Hook, memory: Bethink, meaning: bool = True, known: Sequence[str] = ()
) -> Context:
    """Return the context for a prompt, by words and, with `meaning`, by models. Records no delivery.

    Memories whose ids are in `known` are left out.
    """
    text = find_question(hook)
    budget, bar = memory.config.prompt_tokens, memory.config.prompt_bar
    if not text or not budget or bar >= 1:
        return Context()
    if asks_to_resume(text):
        return _resume(hook, memory, text, budget)
    chosen, sought = choose(hook, memory, text, meaning, bar, known)
    return render_memories(memory, [one.item for one in chosen], sought, budget)


def _resume(hook: Hook, memory: Bethink, text: str, budget: int) -> Context:
    """Answer "what is left?" or "where were we?" from the last digest, unless a briefing has shown it."""
    shown = state.read_deliveries(hook)
    if shown.briefing and not shown.emptied:
        return Context()
    query = parse(text, memory.clock())
    found = resume(text, query, memory.filter(), memory.store, hook.session)
    hits = [hit.memory for hit in found.hits[:MOST_RESUMED]] if found else []
    return render_memories(memory, hits, Sought(frozenset()), budget)._replace(ids=())


def find_question(hook: Hook) -> str:
    """Return what a person said openly in a prompt; '' if no person said anything."""
    text = hook.prompt[:LONGEST_LOOKED_AT].strip()
    if hook.source not in PERSON_SOURCES or _COMMAND.match(text):
        return ""
    if "<" in text:
        if is_notice(text):
            return ""
        text, _ = remove_blocks(text)
        if "private" in text.lower():
            text = redact(text).text.replace(PRIVATE, " ")
    return text if any(character.isalnum() for character in text) else ""


def choose(
    hook: Hook,
    memory: Bethink,
    text: str,
    meaning: bool,
    bar: float,
    known: Sequence[str] = (),
) -> tuple[list[Ranked[Memory]], Sought]:
    """Return the fitting memories, best first, if one is above the bar; and the words to mark in them."""
    plain = as_words(text)
    answer = memory.search(
        plain, mode="keyword", profile="relevance", limit=MOST_HITS, seed=0, threshold=0.0
    )
    words = query_words(answer.query)
    statistics = memory.store.statistics(words, memory.scopes)
    prompt = read_prompt(plain, answer.query.identifiers, words, statistics)
    shown, prompt_lexemes = state.read_deliveries(hook), frozenset(tokenize(plain))

    def is_news(one: Memory) -> bool:
        echo = _is_echo(one, prompt_lexemes, "question" in answer.query.kinds)
        if one.id in known or one.id in shown.ids or is_untrusted_import(one):
            return False
        pasted = one.kind == "context" or one.metadata.get("origin") == "pasted"
        if pasted and one.trust <= TRUST["pasted"]:
            return False  # pasted words, which nobody vouches for
        if one.kind == "failure" or is_done_once(one):
            return False  # for the moment at which it happens again, or for the one at which it was said
        if echo or is_in_every_context(one):
            return False
        return shown.emptied or not is_own(hook, one)

    refused = find_refused([hit.memory for hit in answer.hits], memory.store)
    hits = [hit for hit in answer.hits if hit.memory.id not in refused]
    by_words = [(hit.memory, _match_hit(prompt, hit)) for hit in hits if is_news(hit.memory)]
    by_words = _follow_topics(memory, prompt, hits, by_words, is_news)
    judge = _find_judge(memory) if meaning and is_english(text) else None
    judged: Described = []
    if judge:
        judged = _match_by_judge(memory, judge, spell_out(text), prompt.asks, by_words, is_news)
    described = judged or by_words
    settled = {one.id for one in drop_disputed(memory, [one for one, _ in described])}
    ranked = rank([one for one in described if one[0].id in settled], PROMPT)
    # By the judge two at most; the second only if half as much doubt is left as the bar allows.
    bars = (bar, (1 + bar) / 2) if judged else (bar,) * MOST_SHOWN
    chosen = pick(ranked, bars)
    if judge and judged:
        chosen = pick(rank(_replace_disputed(text, chosen, ranked, judge), PROMPT), bars)
    chosen, settled = _replace_settled(memory, _lead_by_newer(memory, chosen, is_news), is_news)
    # Beside the user's own statement no turn is shown, unless it sums up what was settled: what was said or pasted in passing may be the
    # opposite.
    stated = any(is_users_statement(one.item) for one in chosen)
    chosen = [
        one
        for one in chosen
        if not (stated and one.item.kind == "context" and one.item.id not in settled)
    ]
    return chosen, Sought(frozenset(prompt.telling))


def _follow_topics(
    memory: Bethink,
    prompt: PromptWords,
    hits: Sequence[Hit],
    described: Described,
    is_news: Callable[[Memory], bool],
) -> Described:
    """Put the settlements of the first hits in their place, matched by the words of both.

    The report of a problem has the words of its symptom; the rule that was settled has others.
    """
    found = find_settlements([hit.memory for hit in hits[:LOOKED_AT]], memory.store)
    by_id = {hit.memory.id: hit for hit in hits}
    replaced: set[str] = set()
    joined: Described = []
    for settled, from_ids in found:
        leads = [by_id[id] for id in from_ids if id in by_id]
        if settled.scope not in memory.scopes or not is_news(settled):
            continue
        texts = [settled.content, *(lead.memory.content[:LONGEST_LOOKED_AT] for lead in leads)]
        pairs = max((lead.why.get("pairs", 0.0) for lead in leads), default=0.0)
        joined.append((settled, match_words(prompt, set(tokenize("\n".join(texts))), pairs)))
        replaced |= {settled.id, *(one.memory.id for one in leads if not is_choice(one.memory))}
    return [*joined, *(one for one in described if one[0].id not in replaced)]


def _lead_by_newer(
    memory: Bethink, chosen: Sequence[Ranked[Memory]], is_news: Callable[[Memory], bool]
) -> list[Ranked[Memory]]:
    """Put the newest statement about the same thing before an older one; both are shown."""
    found: dict[str, Ranked[Memory]] = {}
    for one in chosen:
        visible = [each for each in memory.store.get(one.item.newer) if is_visible(memory, each)]
        for newer in sorted(visible, key=lambda each: each.created_at)[-1:]:
            if is_news(newer):
                found.setdefault(newer.id, one._replace(item=newer))
        found.setdefault(one.item.id, one)
    return [*found.values()]


def is_visible(memory: Bethink, one: Memory) -> bool:
    """Return True for a valid memory of the scopes that are read here."""
    return one.scope in memory.scopes and not (one.superseded_by or one.deleted_at)


def _replace_settled(
    memory: Bethink, chosen: Sequence[Ranked[Memory]], is_news: Callable[[Memory], bool]
) -> tuple[list[Ranked[Memory]], set[str]]:
    """Replace what leads to a settlement by the settlement. Return the ids of settlements, too."""
    found = find_settlements([one.item for one in chosen], memory.store)
    settled_by = {
        id: settled
        for settled, from_ids in found
        for id in from_ids
        if settled.scope in memory.scopes and is_news(settled)
    }
    replaced = [
        one._replace(item=settled_by[one.item.id])
        if one.item.id in settled_by and not is_choice(one.item)
        else one
        for one in chosen
    ]
    unique = {one.item.id: one for one in reversed(replaced)}
    return [*unique.values()][::-1], {settled.id for settled in settled_by.values()}


def pick(ranked: Sequence[Ranked[Memory]], bars: Sequence[float]) -> list[Ranked[Memory]]:
    """Take the first that are above their bars, and not too many of one origin."""
    seen = Counter[str]()
    chosen: list[Ranked[Memory]] = []
    for one in ranked:
        origin = one.item.session or one.item.source
        another = one.item.source_type == "note" or seen[origin] < MOST_OF_ONE
        if len(chosen) < len(bars) and one.key.score >= bars[len(chosen)] and another:
            seen[origin] += 1
            chosen.append(one)
    return chosen


def _replace_disputed(
    text: str, chosen: Sequence[Ranked[Memory]], ranked: Sequence[Ranked[Memory]], judge: Judge
) -> Described:
    """Replace a chosen document or pasted text by the user's statement that it contradicts."""
    own = [one for one in ranked if is_users_statement(one.item)][:DISPUTING]
    pairs = [(claim, other) for claim in chosen if is_unvouched(claim.item) for other in own]
    judged = dispute(text, [(claim.item, other.item) for claim, other in pairs], judge)
    disputed: set[str] = set()
    for claim, other in compress(pairs, judged):
        if claim.item.id not in disputed:
            disputed.add(claim.item.id)
            other.features["disputes"] = max(0.0, claim.key.score - other.key.score)
    return [one[1:] for one in ranked if one.item.id not in disputed]


def _match_hit(prompt: PromptWords, hit: Hit) -> Features:
    """Match a memory by its words, and by those of memories that it replaced or answers."""
    others = (one for relation, one in hit.related if relation.type in ("supersedes", "answers"))
    parts: list[str] = []
    for one in (hit.memory, *others):
        parts += [one.content[:LONGEST_LOOKED_AT], one.section or "", *one.tags]
    return match_words(prompt, set(tokenize("\n".join(parts))), hit.why.get("pairs", 0.0))


def _find_judge(memory: Bethink) -> Judge | None:
    """Return the judge if it and the embedder run in this process: a hook sends no prompt anywhere."""
    judge = memory.judge
    if judge is None or is_remote(judge) or memory.local_embedder is None:
        return None
    return judge


def _match_by_judge(
    memory: Bethink,
    judge: Judge,
    text: str,
    asks: bool,
    by_words: Described,
    is_news: Callable[[Memory], bool],
) -> Described:
    """Match statements by the judge, all else by words; nothing where no model could say anything in time."""
    readable = [pair for pair in by_words if _is_readable(pair[0])]
    worded = readable[:READ_BY_WORDS]
    first = [one for one, _ in worded]
    first = first or memory.list(filter=memory.filter(kinds=STATEMENTS), limit=1)
    readings, statements = _ask_judge(memory, judge, text, first, is_news) if first else ([], 0)
    if not readings:
        return []
    answers = {one.id: score_match(features) for one, features in worded} if asks else {}
    others = [pair for pair in by_words if not _is_readable(pair[0])]
    small = SMALL_EDIT.holds(text)
    read = [
        (one, match_judge(chance, answers.get(one.id, 0.0), small, statements))
        for one, chance in readings
    ]
    return [*others, *read]


def _ask_judge(
    memory: Bethink,
    judge: Judge,
    text: str,
    first: Sequence[Memory],
    is_news: Callable[[Memory], bool],
) -> tuple[list[tuple[Memory, float]], int]:
    """Return the first and nearest new statements with the judge's opinion, and the number of all.

    A statement whose reading is not done in time is left out. The judge opens its model and reads the first while the other model finds
    the nearest. Statements are counted up to `MANY_STATEMENTS`.
    """
    until = time.monotonic() + JUDGE_SHARE * memory.config.hook_seconds
    from concurrent.futures import ThreadPoolExecutor, wait

    pool = ThreadPoolExecutor(memory.config.threads or os.cpu_count() or 1)

    def read(one: Memory) -> Future[list[float]]:
        return pool.submit(judge.apply, [(text[:READ_LENGTH], one.content[:READ_LENGTH])])

    known = {one.id: one for one in first}
    jobs = {one.id: read(one) for one in first}
    try:
        near, statements = _find_near(memory, text)
        known |= {one.id: one for one in near if is_news(one)}
        jobs |= {id: read(one) for id, one in known.items() if id not in jobs}
        done, _ = wait(jobs.values(), max(0.0, until - time.monotonic()))
    except EmbeddingError:
        return [], 0
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    in_time = {id: job for id, job in jobs.items() if job in done and not job.exception()}
    readings = [(known[id], job.result()[0]) for id, job in in_time.items()]
    return [reading for reading in readings if is_news(reading[0])], statements


def _find_near(memory: Bethink, text: str) -> tuple[list[Memory], int]:
    """Return the statements nearest to a prompt, and the number of statements."""
    from bethink.judge import turn_prompt

    store, embedder = memory.store, memory.local_embedder
    if embedder is None:
        return [], 0
    vector = turn_prompt(embedder.query(text), embedder.model)
    found = store.nearest(vector, embedder.model, memory.filter(kinds=STATEMENTS), MANY_STATEMENTS)
    nearest = store.load(dict(found[:READ_NEAREST])).values()
    return [one for one in nearest if is_english(one.content)], len(found)


def _is_readable(one: Memory) -> bool:
    """Return True for what the judge was trained for: statements, in English."""
    return one.kind in STATEMENTS and is_english(one.content)


def is_in_every_context(one: Memory) -> bool:
    """Return True for what hosts put into every context by themselves: rules and their own memory."""
    return "promoted_at" in one.metadata or one.source.startswith(BUILTIN)


def _is_echo(one: Memory, prompt: frozenset[str], wanted: bool) -> bool:
    """Return True for a question, unless `wanted`, and for a turn that only repeats the prompt."""
    if one.kind == "question":
        return not wanted
    only_asks = bool(one.span) and one.importance <= ASKED_IMPORTANCE
    repeats = prompt.issuperset(tokenize(one.content[:LONGEST_LOOKED_AT]))
    return one.kind == "context" and (only_asks or repeats)


def is_own(hook: Hook, one: Memory) -> bool:
    """Return True for what this session said itself."""
    return bool(hook.session) and one.session == hook.session


# Characters of a prompt that say what is to be done, and works named. Visible prompts +.07, held ones +.08 (bench/LOG.md, 2026-11-16).
MOST_BEGINNING, MOST_IMPLIED = 500, 2


def spell_out(prompt: str) -> str:
    """Put the work that a prompt asks for without naming it before the prompt."""
    implied = find_implied_work(prompt[:MOST_BEGINNING])
    return f"{'; '.join(implied[:MOST_IMPLIED])}: {prompt}" if implied else prompt


# Rendering


def render_memories(
    memory: Bethink, chosen: Sequence[Memory], sought: Sought, budget: int
) -> Context:
    """Quote memories between marks within a token budget; each gets its share of what is left."""
    short = {**memory.store.abbreviate([one.id for one in chosen]), **note_gone(memory, chosen)}
    marker = new_marker()
    frame = tokens(fence_items([], marker))
    left, quotes = budget - frame - 2, list[Quote]()
    for at, one in enumerate(chosen):
        head = quote(one, short, "")
        left -= tokens(fence_items([head], marker)) - frame + TOKENS_AROUND
        if left < LEAST_TOKENS:
            break
        text = cut_excerpt(one, sought, max(LEAST_TOKENS, left // (len(chosen) - at)))
        left -= tokens(text)
        quotes.append(head._replace(text=text))
    if not quotes:
        return Context()
    ids = tuple(one.id for one in chosen[: len(quotes)])
    return Context(fence_items(quotes, marker, budget * 4), ids)


def cut_excerpt(one: Memory, sought: Sought, room: int) -> str:
    """Return the part of a memory to show in a number of tokens, on one line."""
    text = " ".join(one.content[:LONGEST_LOOKED_AT].split())
    size = room * 4
    while True:
        start, end = choose_excerpt(text, sought, size)
        part = f"{'… ' if start else ''}{text[start:end].strip()}{' …' if end < len(text) else ''}"
        if tokens(part) <= room or size < 8:
            return part
        size = size * 7 // 8


def quote(one: Memory, short: dict[str, str], text: str) -> Quote:
    """Quote a text of a memory with its id, kind, trust and origin."""
    origin = f"session {one.session[:8]}" if one.session else citation(one)
    about = short.get(one.id, one.id), one.kind, one.trust, origin, one.created_at
    newer = f"newer: {', '.join(short.get(id, id) for id in one.newer)}" if one.newer else ""
    note = newer or short.get(f"gone {one.id}", "")
    return Quote(*about, text, "answered" if one.answered else note, brief=True)


def find_disputes(memory: Bethink, memories: Sequence[Memory]) -> list[tuple[Memory, Memory]]:
    """Return the pairs (proposed, known) where the first was proposed in place of the second.

    The second is trusted more, and both are still valid. A statement that was only marked as newer disputes nothing.
    """
    related = memory.store.relations([one.id for one in memories])
    opposed = {(one.source, one.target) for one in related if one.type == "contradicts"}
    return [
        pair for pair in _find_outranked(memory, related) if (pair[0].id, pair[1].id) in opposed
    ]


def _find_outranked(memory: Bethink, related: Sequence[Relation]) -> list[tuple[Memory, Memory]]:
    """Return the valid pairs of `may_replace` relations of which the second is trusted more or newer."""
    pairs = [(one.source, one.target) for one in related if one.type == "may_replace"]
    live = {
        one.id: one
        for one in memory.store.get(sorted({end for pair in pairs for end in pair}))
        if one.deleted_at is None and one.superseded_by is None and one.scope in memory.scopes
    }
    both = [(live[new], live[old]) for new, old in pairs if new in live and old in live]
    return [pair for pair in both if outranks(*reversed(pair))]


def drop_disputed(memory: Bethink, memories: Sequence[Memory]) -> list[Memory]:
    """Leave out statements that may replace something trusted more, and outdated inferred ones.

    Searches still find them.
    """
    related = memory.store.relations([one.id for one in memories])
    doubted = {
        new.id
        for new, old in _find_outranked(memory, related)
        if is_inferred(new) or new.trust < old.trust
    }
    doubted |= {one.id for one in memories if one.newer and is_inferred(one)}
    return [one for one in memories if one.id not in doubted]
