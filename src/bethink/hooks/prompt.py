"""What fits a prompt, if anything clearly does: memories above the bar, each told once in a session.

The prompt is looked up as plain words, never as query syntax. Where the models are on this machine, statements are weighed by meaning:
"install lodash please" shares no word with "We use pnpm, never npm". The judge reads the prompt beside the few statements that are
nearest to it or hold its words; how surely by words counts beside what it says. Turns of conversations, documents and code, for
which the judge was not trained, are weighed by words alone, and so is everything where a model is missing or late.
Nothing is told that the session knows already: what it was given, what it said itself, and what its host puts into every context.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bethink.agents.base import is_notice, remove_blocks
from bethink.errors import EmbeddingError
from bethink.hooks import state
from bethink.hooks.state import PEOPLE, Hook
from bethink.ingest.redact import PRIVATE, redact
from bethink.language.words import COMMON_WORDS, STOP_WORDS
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
from bethink.recall.shape import Sought, choose_excerpt, citation, tokens
from bethink.recall.shortlist import (
    DISPUTING,
    dispute,
    is_unvouched,
    is_users_statement,
    outranks,
)
from bethink.store.words import as_words, query_words, space_out, tokenize

if TYPE_CHECKING:
    from concurrent.futures import Future

    from bethink.api import Bethink
    from bethink.judge import Judge
    from bethink.model import Hit, Memory, Relation, Words
    from bethink.store.base import Statistics

    Weighed = list[tuple[Memory, float]]  # memories with how surely each fits

LONGEST = 20_000  # characters of a prompt, and of a memory, that are looked at
LOOKED, MOST = 24, 5  # hits that are weighed, and memories that are told at most
OF_ONE = 2  # of them from one conversation or document: what another one says is worth more
# By meaning. How many statements the judge reads, by words and by nearness, and how many characters of each and of the prompt:
# about 15 ms of one core a pair.
BY_WORDS, NEAREST, READ = 4, 10, 280
PATIENCE = 0.7  # share of `hook_seconds` after which the judge is not waited for
# What is taken from the judge's logit, and what is added where the prompt asks something and the words are surely those of an answer. Set
# on projects that no model had seen; how near a statement is adds nothing to that (bench/LOG.md, 2026-11-16 and 2026-11-17).
RESERVE, WORDED = 0.2, 2.5
TWO = 2  # memories told at most; the second only if half as much doubt is left as the bar allows
HEAD, LEAST = 4, 12  # tokens around a text, and of the shortest text worth telling
_COMMAND = re.compile(r"/[\w:.-]{1,80}(?:\s|$)")


class Context(NamedTuple):
    """What a session is told."""

    text: str = ""
    ids: tuple[str, ...] = ()  # of the memories in it
    digest: str = ""  # by which a briefing is known again


def recall_for_prompt(hook: Hook, memory: Bethink, meaning: bool = True) -> Context:
    """What to add to a prompt, by meaning too if the caller can wait for models. Does not note that it was given."""
    text = find_question(hook)
    budget, bar = memory.config.prompt_tokens, memory.config.prompt_bar
    if not text or not budget or bar >= 1:
        return Context()
    chosen, sought = choose(hook, memory, text, meaning, bar)
    return render_memories(memory, chosen, sought, budget)


def find_question(hook: Hook) -> str:
    """What a person said openly in a prompt; '' if no person said anything."""
    text = hook.prompt[:LONGEST].strip()
    if hook.source not in PEOPLE or _COMMAND.match(text):
        return ""
    if "<" in text:
        if is_notice(text):
            return ""
        text, _ = remove_blocks(text)
        if "private" in text.lower():
            text = redact(text).text.replace(PRIVATE, " ")
    return text if any(character.isalnum() for character in text) else ""


def choose(
    hook: Hook, memory: Bethink, text: str, meaning: bool, bar: float
) -> tuple[list[Memory], Sought]:
    """The memories that fit, best first; none unless one is above the bar. And the words by which they were found."""
    plain = as_words(text)
    answer = memory.search(
        plain, mode="keyword", profile="relevance", limit=LOOKED, seed=0, threshold=0.0
    )
    words = query_words(answer.query)
    statistics = memory.store.statistics(words, memory.scopes)
    prompt = read_prompt(plain, answer.query.identifiers, words, statistics)
    given, said = state.read_deliveries(hook), frozenset(tokenize(plain))

    def is_news(one: Memory) -> bool:
        echo = _is_echo(one, said, "question" in answer.query.kinds)
        known = one.id in given.ids or is_always_told(one) or echo or is_untrusted_import(one)
        if one.kind == "context" and one.trust <= TRUST["pasted"]:
            return False  # a turn with pasted words, which nobody vouches for
        if one.kind == "failure":
            return False  # for the moment at which it happens again
        return not known and (given.emptied or not is_own(hook, one))

    by_words = [(hit.memory, _weigh(prompt, hit)) for hit in answer.hits if is_news(hit.memory)]
    judge = _find_judge(memory) if meaning else None
    weighed = None
    if judge:
        full = spell_out(text)
        weighed = _weigh_by_meaning(memory, judge, full, prompt.asks, by_words, is_news)
    sure = by_words if weighed is None else weighed
    settled = {one.id for one in drop_disputed(memory, [one for one, _ in sure])}
    sure = [(one, value) for one, value in sure if one.id in settled]
    if judge and weighed is not None:
        chosen = _tell_users_word(text, _pick_best(sure, bar), sure, judge)
    else:
        chosen = _pick_by_words(sure, bar)
    # Beside the user's own statement no turn is told: what was said or pasted in passing may be the opposite.
    stated = any(map(is_users_statement, chosen))
    chosen = [one for one in chosen if not (stated and one.kind == "context")]
    return chosen, Sought(frozenset(prompt.telling))


def _tell_users_word(
    text: str, chosen: Sequence[Memory], sure: Weighed, judge: Judge
) -> list[Memory]:
    """What was chosen, with the user's statement in place of a document or a pasted text that it disputes."""
    best = [one for one, _ in sorted(sure, key=lambda pair: -pair[1]) if is_users_statement(one)]
    pairs = [(one, own) for one in chosen if is_unvouched(one) for own in best[:DISPUTING]]
    disputed = list(compress(pairs, dispute(text, pairs, judge)))
    instead = {claim.id: own for claim, own in reversed(disputed)}
    told = [instead.get(one.id, one) for one in chosen]
    return list({one.id: one for one in told}.values())


def _pick_by_words(sure: Weighed, bar: float) -> list[Memory]:
    """What is above the bar, and of one origin not too much."""
    seen = Counter[str]()
    chosen: list[Memory] = []
    for one, value in sure:
        origin = one.session or one.source
        another = one.source_type == "note" or seen[origin] < OF_ONE
        if value >= bar and another and len(chosen) < MOST:
            seen[origin] += 1
            chosen.append(one)
    return chosen


def _pick_best(sure: Weighed, bar: float) -> list[Memory]:
    """The best, if it is above the bar, and the second if that is clear, too."""
    best = sorted(sure, key=lambda pair: -pair[1])[:TWO]
    bars = (bar, (1 + bar) / 2)
    return [one for (one, value), least in zip(best, bars, strict=False) if value >= least]


def _weigh(prompt: PromptWords, hit: Hit) -> float:
    """By the words of a memory, and of those that it replaced or answers: what fits them fits it."""
    others = (one for relation, one in hit.related if relation.type in ("supersedes", "answers"))
    parts: list[str] = []
    for one in (hit.memory, *others):
        parts += [one.content[:LONGEST], one.section or "", *one.tags]
    return confidence(prompt, set(tokenize("\n".join(parts))), hit.why.get("pairs", 0.0))


def _find_judge(memory: Bethink) -> Judge | None:
    """Return the judge if it and the embedder run in this process: a hook sends no prompt anywhere."""
    judge = memory.judge
    if judge is None or is_remote(judge) or memory.local_embedder is None:
        return None
    return judge


def _weigh_by_meaning(
    memory: Bethink,
    judge: Judge,
    text: str,
    asks: bool,
    by_words: Weighed,
    is_news: Callable[[Memory], bool],
) -> Weighed | None:
    """Statements by what the judge says of them, all else by words; None where no model could say anything in time."""
    worded = [(one, value) for one, value in by_words if one.kind in STATEMENTS][:BY_WORDS]
    first = [one for one, _ in worded]
    first = first or memory.list(filter=memory.filter(kinds=STATEMENTS), limit=1)
    heard = _hear_judge(memory, judge, text, first, is_news) if first else []
    if not heard:
        return None
    answers = {one.id: value for one, value in worded if asks}
    weighed = [(one, value) for one, value in by_words if one.kind not in STATEMENTS]
    for one, chance in heard:
        weighed.append((one, _combine(chance, answers.get(one.id, 0.0))))
    return weighed


def _hear_judge(
    memory: Bethink,
    judge: Judge,
    text: str,
    first: Sequence[Memory],
    is_news: Callable[[Memory], bool],
) -> Weighed:
    """The first and the nearest statements that are news, each with the judge's chance; those that were read in time. The judge opens
    its model and reads the first while the other model finds the nearest."""
    until = time.monotonic() + PATIENCE * memory.config.hook_seconds
    from concurrent.futures import ThreadPoolExecutor, wait

    pool = ThreadPoolExecutor(memory.config.threads or os.cpu_count() or 1)

    def read(one: Memory) -> Future[list[float]]:
        return pool.submit(judge.apply, [(text[:READ], one.content[:READ])])

    known = {one.id: one for one in first}
    jobs = {one.id: read(one) for one in first}
    try:
        known |= {one.id: one for one in _find_near(memory, text) if is_news(one)}
        jobs |= {id: read(one) for id, one in known.items() if id not in jobs}
        done, _ = wait(jobs.values(), max(0.0, until - time.monotonic()))
    except EmbeddingError:
        return []
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    in_time = {id: job for id, job in jobs.items() if job in done and not job.exception()}
    heard = [(known[id], job.result()[0]) for id, job in in_time.items()]
    return [found for found in heard if is_news(found[0])]


def _find_near(memory: Bethink, text: str) -> list[Memory]:
    """The statements nearest to a prompt."""
    from bethink.judge import turn_prompt

    store, embedder = memory.store, memory.local_embedder
    if embedder is None:
        return []
    vector = turn_prompt(embedder.query(text), embedder.model)
    found = store.nearest(vector, embedder.model, memory.filter(kinds=STATEMENTS), NEAREST)
    return list(store.load(dict(found)).values())


def _combine(chance: float, worded: float) -> float:
    """How surely a statement fits: what the judge says, and how surely its words answer the prompt."""
    chance = min(max(chance, 1e-6), 1 - 1e-6)
    value = math.log(chance / (1 - chance)) - RESERVE + WORDED * worded
    return 1 / (1 + math.exp(-value))


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


# By words
#
# A search always finds something; a hook must know when that is nothing. What counts is how unlikely it is that a memory holds the prompt's
# words by chance. A word that stands in one of a hundred memories is worth the logarithm of a hundred. Two things are known beyond the
# counts of the scope, and matter most where it holds few memories: how often a word stands in texts about software at all, and which words
# say nothing about a topic because any prompt may hold them. Those count little, and alone they count nothing. Words that no memory of the
# scope knows speak against it: the prompt is about something else. Measured by `bench/prompts.py` on two sets of coding sessions,
# with questions from four other sets as unrelated prompts (bench/LOG.md, 2026-11-15).

BACKGROUND = 1000  # memories' worth of belief in the usual frequency of words
USUAL, USUAL_COMMON = 0.003, 0.1  # that frequency, of a telling word and of a common one
MOST_WORTH = 5.0  # of one word: a single rare one, a typing mistake, is no evidence
MOST_COMMON = 4.6  # and all common words together: two of them
ALONE = 3.0  # what a single telling word loses, unless it is all that was asked about: "restart the server"
PAIRS = 3.0  # what is added if all words stand side by side as in the prompt
COVERED = 4.0  # and if all telling words are there
ASKED = 4.5  # and then if the prompt asks something: "how do we deploy?" has one telling word
GENERAL = 3.0  # what is lost by a prompt that could be asked anywhere
FEW = 300  # memories at which words that none of them holds count half: a few hold few words
RARE = 4.0  # what a word of an identifier must be worth: `README.md` tells nothing
NAMED = 6.0  # what holding an identifier of the prompt adds
WHOLE = 0.99
BAR, SLOPE = 11.0, 2.0  # the sum that makes a confidence of a half, and how fast it rises there

# What asks for an answer that memory may have, and not for work: "can you run the tests?" does not.
_ASKS = re.compile(
    r"\W{0,8}(?:(?:and|so|but|ok|okay|hey|hi|wait|hmm)\b\W{0,8})?"
    r"(?:how|what|why|where|when|which|who|whose|did|does|do we|is there|are we|should we|have we|remind me|recall|remember)\b",
    re.IGNORECASE,
)
# What could be asked anywhere: "how do I center a div?"
_GENERAL = re.compile(
    r"\W{0,8}(?:how (?:to|(?:do|can|could|would|should) (?:i|you|one))|what(?:['’]?s| is| are) (?:an?|the (?:best|difference))|explain)\b",
    re.IGNORECASE,
)


# What a prompt leaves unsaid: the work that it asks for, in the words in which rules speak of it. The judge reads texts; that lodash comes by a
# package manager, and that 22:00 and midnight are about time zones, it does not know. Only where the prompt asks for that work or
# reports that trouble, never for a mere mention: "center the login button" is no work on authentication (bench/LOG.md, 2026-11-16).
UNSAID = Path(__file__).with_name("unsaid.txt")  # shape => work
BEGINNING, MOST_UNSAID = 500, 2  # characters of a prompt that say what is to be done; works told


def spell_out(prompt: str) -> str:
    """A prompt after the work that it asks for without naming it."""
    rows = (row.split(" => ") for row in UNSAID.read_text("utf-8").splitlines())
    start = prompt[:BEGINNING]
    flags = re.IGNORECASE | re.MULTILINE
    unsaid = dict.fromkeys(work for shape, work in rows if re.search(shape, start, flags))
    return f"{'; '.join(list(unsaid)[:MOST_UNSAID])}: {prompt}" if unsaid else prompt


class PromptWords(NamedTuple):
    """A prompt's words, each with what it is worth, in a scope."""

    telling: Mapping[str, float]
    common: Mapping[str, float]
    foreign: float  # worth of the telling words that no memory of the scope holds
    asks: bool
    general: bool = False  # could be asked anywhere
    identifiers: tuple[frozenset[str], ...] = ()  # that tell something, by their lexemes


def read_prompt(
    text: str, identifiers: Sequence[str], words: Words, statistics: Statistics
) -> PromptWords:
    telling, common, foreign = dict[str, float](), dict[str, float](), 0.0
    for word, count in zip(words.lexemes, statistics.counts, strict=True):
        plain = len(word) == 1 or word in common_lexemes() or (word.isdigit() and len(word) < 3)
        usual = BACKGROUND * (USUAL_COMMON if plain else USUAL)
        worth = min(MOST_WORTH, math.log((statistics.memories + BACKGROUND) / (count + usual)))
        (common if plain else telling)[word] = worth
        if not plain and not count:
            foreign += worth
    foreign *= statistics.memories / (statistics.memories + FEW)
    named = [frozenset(tokenize(space_out(name), prepared=True)) for name in identifiers]
    rare = {word for word, worth in telling.items() if worth >= RARE}
    names = tuple(name for name in named if name & rare)
    general = _GENERAL.match(text) is not None
    asks = _ASKS.match(text) is not None and not general
    return PromptWords(telling, common, foreign, asks, general, names)


def confidence(prompt: PromptWords, held: AbstractSet[str], pairs: float) -> float:
    """How surely a memory that holds these lexemes fits; `pairs` is the share of the prompt's word pairs that it holds."""
    matched = [worth for word, worth in prompt.telling.items() if word in held]
    telling = sum(matched)
    if not matched:
        return 0.0
    covered = telling / sum(prompt.telling.values())
    value = telling + PAIRS * pairs + COVERED * covered - prompt.foreign
    value += min(MOST_COMMON, sum(worth for word, worth in prompt.common.items() if word in held))
    named = any(name <= held for name in prompt.identifiers)
    if named:
        value += NAMED
    if prompt.asks and covered > WHOLE:
        value += ASKED
    elif len(matched) < 2 and not named:
        value -= ALONE
    if prompt.general:
        value -= GENERAL
    return 1 / (1 + math.exp(max(-50.0, min(50.0, (BAR - value) / SLOPE))))


@cache
def common_lexemes() -> frozenset[str]:
    return frozenset(tokenize(" ".join((*COMMON_WORDS, *STOP_WORDS))))


# Rendering


def render_memories(
    memory: Bethink, chosen: Sequence[Memory], sought: Sought, budget: int
) -> Context:
    """Memories between the marks, in as many tokens as there may be: each gets its share of what is left."""
    short = memory.store.abbreviate([one.id for one in chosen])
    marker = new_marker()
    frame = tokens(fence_items([], marker))
    left, quotes = budget - frame - 2, list[Quote]()
    for at, one in enumerate(chosen):
        head = quote(one, short, "")
        left -= tokens(fence_items([head], marker)) - frame + HEAD
        if left < LEAST:
            break
        text = cut_excerpt(one, sought, max(LEAST, left // (len(chosen) - at)))
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
    about = short.get(one.id, one.id), one.kind, one.trust, origin, one.created_at
    note = f"newer: {', '.join(short.get(id, id) for id in one.newer)}" if one.newer else ""
    return Quote(*about, text, "answered" if one.answered else note, brief=True)


def find_disputes(memory: Bethink, memories: Sequence[Memory]) -> list[tuple[Memory, Memory]]:
    """Return the pairs (proposed, known) around these memories in which the first was proposed in place of the second, which is trusted
    more, as far as both still hold. A statement that was only marked as newer disputes nothing."""
    related = memory.store.relations([one.id for one in memories])
    opposed = {(one.source, one.target) for one in related if one.type == "contradicts"}
    return [
        pair for pair in _find_outranked(memory, related) if (pair[0].id, pair[1].id) in opposed
    ]


def _find_outranked(memory: Bethink, related: Sequence[Relation]) -> list[tuple[Memory, Memory]]:
    """Return the pairs of `may_replace` relations of which the second is trusted more or newer, as far as both still hold."""
    pairs = [(one.source, one.target) for one in related if one.type == "may_replace"]
    live = {
        one.id: one
        for one in memory.store.get(sorted({end for pair in pairs for end in pair}))
        if one.deleted_at is None and one.superseded_by is None and one.scope in memory.scopes
    }
    both = [(live[new], live[old]) for new, old in pairs if new in live and old in live]
    return [pair for pair in both if outranks(*reversed(pair))]


def drop_disputed(memory: Bethink, memories: Sequence[Memory]) -> list[Memory]:
    """Leave out statements that may replace something that is trusted more, and, of what was read out of a transcript, statements that a
    newer one speaks against. Searches still find them."""
    related = memory.store.relations([one.id for one in memories])
    doubted = {
        new.id
        for new, old in _find_outranked(memory, related)
        if is_inferred(new) or new.trust < old.trust
    }
    doubted |= {one.id for one in memories if one.newer and is_inferred(one)}
    return [one for one in memories if one.id not in doubted]
