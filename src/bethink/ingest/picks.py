"""Replies that say little alone ("B", "yes", "the second one"), completed from what they answer.

A completed reply begins with the user's words, or with the option that they pick, and quotes what was asked: "Option C: publish the
CLI as `kit` (asked: Where do we publish?)". What is quoted is text of the agent's last turn, as it is there. A reply that nothing
completes stays as it is.

This module knows no store, no judge and no other turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from bethink.ingest.sentences import (
    LONGEST_STATEMENT,
    cut_text,
    plain,
    prose,
)
from bethink.ingest.wording import count_shared_words, count_telling_words
from bethink.judge import asks
from bethink.language.pattern import compile_pattern
from bethink.language.pointing import POINTS_BACK
from bethink.language.replies import (
    ASKS_NEXT_STEP,
    ASSENTS,
    IS_STEP,
    NAMES_POSITION,
    OFFERS_CHOICE,
    PICKS_OPTION,
    RECOMMENDS,
)
from bethink.language.words import STOP_WORDS

END_CHARACTERS = 6_000  # end of an agent's turn in which its options and its question are
REPLY_WIDTH = 160  # characters of a reply that may say little alone
# Telling words of a reply that says little alone, names and words of a question that says what it is about, and last sentences of an agent's
# turn that a reply may be about. By hand; together they complete 46 of 63 such turns (bench/LOG.md, 2026-11-18).
LITTLE, TELLING_QUESTION, NEAR_SENTENCES = 3, 2, 6
QUOTE_WIDTH = 220  # characters of a quotation

_OPTION = (
    r"\s{0,6}(?:[-*|]\s{0,3})?(?:#{1,6} )?(?:\*\*)?(?i:option |approach |choice )?\(?(\d{1,2}|[A-Ha-h])\b(?:\*\*)?\s{0,3}"
    r"(?:\||[.):]|[—–-] )(?:\*\*)?\s{0,3}(\S.*)"
)

_NAME = r"\d+(?:\.\d+)+|[^\W_]{3,}"  # a version or a word


class Reply(NamedTuple):
    """A reply with the words that complete it."""

    text: str
    question: str = ""  # of the agent, that it answers
    settles: bool = True  # a pick, an assent or an answer; False where it only points at something


def read_answers(turn: str, asked: Sequence[str]) -> list[Reply]:
    """Return the answers to an agent's questions; the turn repeats each question above its answer."""
    starts = sorted((turn.find(f"{one}\n"), one) for one in asked if f"{one}\n" in turn)
    found = []
    for (start, question), (end, _) in pairwise([*starts, (len(turn), "")]):
        answer = " ".join(plain(turn[start + len(question) : end]).split())
        if answer and not asks(answer):
            found.append(Reply(answer, _find_question(question)))
    return found


def complete(reply: str, before: str) -> Reply | None:
    """Complete a reply that says little alone from the agent's turn before it; None if it needs nothing."""
    text = " ".join(plain(reply).split())
    if not text or len(text) > REPLY_WIDTH:
        return None
    end = before[-END_CHARACTERS:]
    picked = _find_pick(text, end)
    if picked:
        option = picked.partition(": ")[2]
        return Reply(picked, _find_question(_drop_options(end)), not IS_STEP.holds(option))
    assent = ASSENTS.find(text)
    if assent and not count_telling_words(text[assent.end() :]):
        offer = _find_offer(end)
        if offer:
            return Reply(text, offer, not ASKS_NEXT_STEP.holds(offer))
    named = _find_named(text, end)
    if named:
        return Reply(text, named)
    few = count_telling_words(text)
    if few < LITTLE and len(text.split()) <= 2 * LITTLE and (few < 2 or POINTS_BACK.holds(text)):
        return point_at(text, end)
    return None


def write_reply(reply: Reply) -> str:
    """Return a reply as one statement: "Split the CPUs too (asked: One crate per variant?)"."""
    if not reply.question:
        return cut_text(reply.text, LONGEST_STATEMENT, wide=1)
    quoted = cut_text(reply.question, QUOTE_WIDTH, wide=1)
    lead = "asked" if asks(reply.question) else "to"
    return f"{cut_text(reply.text, LONGEST_STATEMENT - QUOTE_WIDTH, wide=1)} ({lead}: {quoted})"


# Options


def _find_pick(text: str, before: str) -> str:
    """Return the option that a reply picks, with what the reply adds: "Option B: one tab, without X"."""
    options = dict(_list_options(before))
    if len(options) < 2:
        return ""
    found = PICKS_OPTION.find(text)
    name = found["name"].lstrip("#").upper() if found else ""
    if not found and (named := NAMES_POSITION.find(text)):
        found, name = named, _name_position(named[0], list(options))
    if not found or name not in options:
        return ""
    rest = text[found.end() :].strip(" ,.;:!–—-")
    added = f", {rest}" if count_telling_words(rest) else ""
    return f"Option {name}: {options[name]}{added}"


def _list_options(text: str) -> Iterator[tuple[str, str]]:
    """Yield the options of the last list of an agent's turn, by number or letter."""
    pattern = compile_pattern(_OPTION)
    for line in text.split("\n"):
        found = pattern.match(line)
        if found:
            words = found[2].partition(" |")[0].replace("**", "")
            option = prose(words) or [plain(words)]
            yield found[1].upper(), cut_text(option[0].strip(' "“”'), QUOTE_WIDTH, wide=1)


def find_option_lines(text: str) -> frozenset[int]:
    """Return the lines of a turn, from 0, that offer options among which its end asks to choose."""
    end = text[-END_CHARACTERS:]
    if not OFFERS_CHOICE.holds(" ".join(one for one in _last_sentences(end) if asks(one))):
        return frozenset()
    pattern, lines = compile_pattern(_OPTION), text.split("\n")
    return frozenset(at for at, line in enumerate(lines) if pattern.match(line))


def _drop_options(text: str) -> str:
    lines = text.split("\n")
    return "\n".join("" if compile_pattern(_OPTION).match(line) else line for line in lines)


def _name_position(words: str, names: Sequence[str]) -> str:
    ordinals = ("first", "second", "third", "fourth", "last")
    at = next((number for number, word in enumerate(ordinals) if word in words), 0)
    return names[-1] if at == len(ordinals) - 1 else names[at] if at < len(names) else ""


# Questions and offers


def _find_question(text: str) -> str:
    """Return the last question of a text, with the sentence before it if it says little alone."""
    sentences = _last_sentences(text)
    at = next((at for at in reversed(range(len(sentences))) if asks(sentences[at])), None)
    return "" if at is None else _with_subject(sentences, at)


def _find_offer(text: str) -> str:
    """Return what an agent asked or recommended last."""
    sentences = _last_sentences(text)
    offers = (
        at
        for at in reversed(range(len(sentences)))
        if asks(sentences[at]) or RECOMMENDS.holds(sentences[at])
    )
    at = next(offers, None)
    return "" if at is None else _with_subject(sentences, at)


def _find_named(text: str, before: str) -> str:
    """Return the agent's last question if a short reply names something in it: "do 0.54.0"."""
    question = _find_question(before) if len(text.split()) <= LITTLE else ""
    names = compile_pattern(_NAME)
    named = {one for one in names.findall(text.lower()) if not ASKS_NEXT_STEP.holds(one)}
    shared = named & set(names.findall(question.lower()))
    return question if shared - STOP_WORDS else ""


def _with_subject(sentences: Sequence[str], at: int) -> str:
    """Add the sentence before one that says little alone: "Nothing else moves. Does this match?"."""
    names = set(compile_pattern(_NAME).findall(sentences[at].lower())) - STOP_WORDS
    little = len(names) < TELLING_QUESTION
    points = little or POINTS_BACK.holds(sentences[at])
    return f"{sentences[at - 1]} {sentences[at]}" if at and points else sentences[at]


def point_at(text: str, before: str) -> Reply | None:
    """Return a reply with the sentence that shares most words with it, or the last."""
    sentences = _last_sentences(before)
    if not sentences:
        return None
    shared = [count_shared_words(text, one) for one in sentences]
    best = max(range(len(sentences)), key=lambda at: (shared[at], at))
    if count_telling_words(sentences[best]) < LITTLE:
        return None  # "Quality gates." completes nothing
    return Reply(text, sentences[best], settles=False)


def _last_sentences(text: str) -> list[str]:
    return prose(text)[-NEAR_SENTENCES:]
