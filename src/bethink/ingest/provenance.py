"""Origin of the words in a user's turn: the user's own, or pasted, quoted or reported.

The rule is an allow-list. A turn, or a part of one, is the user's word only if it is evidently so:

- a short line of plain prose, typed alone;
- or lines in which the user speaks to the agent: of themselves ("I want"), to it ("you", "please"), or by instructions ("use", "never",
  "should"), and lists below such a line.

Everything else is pasted, and so is all that follows the first sign of another author: a line with the structure of a document, a chat, a
ticket, a mail, a log or code; a sentence that announces a text ("look at this:"); reported speech ("Eve thinks that"). A pasted text
can end in any words, so nothing behind it is believed. A statement in quotation marks, and one that is asked about ("Is that true?"),
is nobody's claim.

In doubt a text is pasted. It is kept with its turn all the same; it only does not count as the user's word. `find_probable` names the
sentences that most likely were typed all the same: they may become memories, but with the trust of pasted text.

`language/voices.toml` holds the words. This module knows no store, no judge and no other turns; its time is linear in the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from bethink.ingest.sentences import LIST_ITEM, find_noise, measure_width, plain, split_sentences
from bethink.language import voices
from bethink.language.layout import ANOTHER_AUTHOR
from bethink.language.pattern import compile_pattern, fold_case
from bethink.language.pointing import (
    POINTS_AT_ITSELF,
    POINTS_AT_PASTED,
    POINTS_AT_TEXT,
    POINTS_BELOW,
    SPEAKS_OF_ONESELF,
)
from bethink.language.questions import ASKS_WITHIN, DOUBTS, IS_SOMEBODY_RIGHT
from bethink.language.requests import PROPOSES

READ_OWN_CHARACTERS = (
    20_000  # characters of a turn that are read; what begins later is not the user's word
)
# A line that counts if it is alone: 7 of 10 statements of users in labelled real sessions are in such lines (bench/LOG.md, 2026-11-18).
SHORT_SENTENCES, SHORT_WIDTH = 3, 420
LONG_WIDTH, MOST_TYPED_LINES = 2_500, 30  # nobody types more to an agent at once
QUOTED_WORDS = 5  # of a quotation that can be a statement; a shorter one is a name; by hand
QUOTED_WIDE = 8  # the same in characters of a script without spaces; by hand
NAME_WORDS = 6  # of a file, a branch or a test whose name can be a statement; by hand
LABEL_WORDS = 4  # before a colon that makes a line a field: "Summary: …"; by hand
TEASER_WORDS = 3  # of a question that is about the statement behind it; by hand
CHECK_WORDS = 9  # of a question that only asks if something is true; by hand
# Characters of a line that an editor, and not a person, broke in mid-sentence. By hand.
WRAPPED = 55
INTRODUCTION_WORDS = 10  # of a sentence that does no more than announce a text; by hand
BEHIND_COLON = 3  # words behind a colon that can be a statement; by hand

_COMMAND = r"\s{0,8}/[\w:.-]{1,80}[ \t]{1,8}(?=\S)"  # a slash command in front of its arguments
_LABEL = r"\s*[*_]{0,2}(\w[^\s:]*(?: [^\s:]+){0,3}?)\s?[*_]{0,2}[:：][*_]{0,2}(?:\s|$|(?<=：))"
_SIGNED = r"[ \t.!?。][—–~-]{1,2} ?@?[A-Z][\w.-]{1,30}(?: [A-Z][\w.-]{1,30})?[ \t]{0,4}$"
# "Use X. (Eve in #billing)", "… ^ this is from the wiki"
_ATTRIBUTED = (
    r"[.!?。]\s{0,3}\([^()\n]{2,80}\)[ \t]{0,4}$|(?:^|\s)\^{1,3}(?:\s|$)|\b[A-Z]\w{1,20} here[.!,:]"
    r"|[.!?。]\s{0,3}(?:<-|←|/?cc\b|[#@]\w).{0,60}$"
)
_QUOTED = (
    r"\"([^\"\n]{1,600})\"|“([^“”\n]{1,600})”|„([^„“”\n]{1,600})[“”]|«([^«»\n]{1,600})»"
    r"|「([^「」\n]{1,600})」|『([^『』\n]{1,600})』|`([^`\n]{1,600})`"
    r"|(?<!\w)'((?:[^'\n]|(?<=\w)'(?=\w)){1,600})'(?!\w)|(?<!\w)‘((?:[^‘’\n]|(?<=\w)’(?=\w)){1,600})’(?!\w)"
)
# "we-moved-to-another-host.md", "test_we_moved_to_another_host": a name that reads as a sentence.
_NAMED = rf"(?<![\w-])(?:[^\W\d_][^\W_]*[_-]){{{NAME_WORDS - 1},}}[^\W\d_][^\W_]*"
_SENTENCE = r"\W{0,3}(?!I\b)(?:[A-Z][a-z']{0,20}\s+(?:\S{1,40}\s+)?[a-z]|[\u2e80-\U0003ffff])"  # how one begins


class OwnWords(NamedTuple):
    """The part of a turn that is the user's word."""

    text: str = ""  # its sentences, one a line, without markup
    lines: int = 0  # number of lines of the turn up to its own
    whole: bool = False  # nothing in the turn is by another author

    def hold(self, sentence: str) -> bool:
        """Return True if a sentence of the turn, as `sentences` gives it, is in this part."""
        known = _normalise(sentence.removesuffix("…"))
        return bool(known) and f" {known}" in f" {_normalise(self.text)}"


@lru_cache(maxsize=64)
def find_own(turn: str, asked: tuple[str, ...] = ()) -> OwnWords:
    """Return the user's own words in a turn that came from the user.

    `asked` are the questions of the agent that it answers; its text repeats each above its answer.
    """
    if any(f"{question}\n" in turn for question in asked):
        return _read_answers(turn, asked)
    if command := compile_pattern(_COMMAND).match(turn):
        # What follows the name of a command is read as if it began the turn: it may be pasted, too.
        own_words = find_own(turn[command.end() :])
        behind = own_words.text
        return own_words._replace(text=f"{command[0]}{behind}" if behind else "")
    lines, rest = _read_lines(turn)
    if rest == SIGNED_BY_ANOTHER:
        return OwnWords()
    alone = len(lines) == 1 and rest == NOTHING_ELSE
    own: list[str] = []
    led = False  # the user speaks in the line above the list
    width = 0
    whole = rest == NOTHING_ELSE
    for at, line in enumerate(lines):
        last = at == len(lines) - 1
        followed = rest != NOTHING_ELSE if last else not lines[at + 1].item
        read = _read_line(line, alone, followed)
        width += measure_width(line.text)
        if read.disowns:
            own.clear()
        small = width <= LONG_WIDTH and at < MOST_TYPED_LINES
        field = rest != NOTHING_ELSE and compile_pattern(_LABEL).match(line.text)
        typed = led or speaks(line.text) if line.item else _is_typed(line, read, alone)
        if not small or field or not typed:
            return OwnWords("\n".join(own), line.number)
        own += read.own
        if read.ends or (read.disowns and not last):
            return OwnWords("\n".join(own), line.number + 1)
        whole = whole and not read.foreign
        led = led if line.item else any(map(speaks, read.read))
    return OwnWords("\n".join(own), lines[-1].number + 1 if lines else 0, whole)


@lru_cache(maxsize=64)
def find_probable(turn: str) -> OwnWords:
    """Return the words of a turn that were most likely typed, although nothing proves it.

    They are prose of some length without the structure of a text by another author, quote nobody and report nobody's words. Below such a
    text, or a line that announces one, only sentences count in which the writer speaks of themselves; a turn that begins with one has none.
    """
    lines = turn[:READ_OWN_CHARACTERS].split("\n")
    own: list[str] = []
    behind = False  # a text by another author is above
    width = read = 0
    before = ""
    first = next((at for at, line in enumerate(lines) if line.strip()), 0)
    for at, (text, noise) in enumerate(zip(lines, find_noise(lines), strict=True)):
        broken, before = _is_wrapped(before, text), text
        if not text.strip():
            continue
        if noise or broken or _is_foreign(text):
            if at == first and (noise or ANOTHER_AUTHOR.holds(text[:400])):
                break  # all of it is by another author
            behind = True
            continue
        item = compile_pattern(LIST_ITEM).match(text)
        line = plain(item[2] if item else text)
        width += measure_width(line)
        read = at + 1
        if width > LONG_WIDTH:
            break
        sentences = split_sentences(line)
        if _names_another(line) or not (line[0].isalnum() or line[0] in "(@`\"'"):
            behind = True
            continue
        quoted = _find_quotations(line)
        for one in sentences:
            oneself = SPEAKS_OF_ONESELF.holds(one)
            foreign = (behind or _is_foreign_speech(one)) and not oneself
            if not foreign and not any(_overlap(each, one) for each in quoted):
                own.append(one)
        listed = next((below for below in lines[at + 1 :] if below.strip()), "")
        if not compile_pattern(LIST_ITEM).match(listed):
            behind = behind or _introduces_text(sentences[-1:])
    return OwnWords("\n".join(own), read)


def _introduces_text(last: Sequence[str]) -> bool:
    """Return True if the last sentence of a line announces a text below it: "This was the error:"."""
    return any(one.rstrip().endswith((":", "：")) and _introduces(fold_case(one)) for one in last)


def _read_answers(turn: str, asked: tuple[str, ...]) -> OwnWords:
    """Return the answers to an agent's questions, with the questions: they say what "Both" means.

    Statements of the agent beside its question stay the agent's word.
    """
    starts = sorted((turn.find(f"{one}\n"), one) for one in asked if f"{one}\n" in turn)
    ends = [*(start for start, _ in starts[1:]), len(turn)]
    own: list[str] = []
    whole = True
    for (start, question), end in zip(starts, ends, strict=True):
        answer = find_own(turn[start + len(question) : end].strip())
        questions = [one for one in split_sentences(plain(question)) if one.endswith(("?", "？"))]
        own += [*questions, answer.text] if answer.text else []
        whole = whole and answer.whole
    return OwnWords("\n".join(own), turn.count("\n") + 1, whole)


def _normalise(text: str) -> str:
    return " ".join(compile_pattern(r"\w+").findall(text))


# Lines

NOTHING_ELSE, FOREIGN_REST, SIGNED_BY_ANOTHER = "nothing", "foreign", "signed"


class Line(NamedTuple):
    number: int  # in its turn, from 0
    text: str
    item: bool  # of a list


def _read_lines(turn: str) -> tuple[list[Line], str]:
    """Split the lines of a turn at the first one with a foreign structure."""
    lines = turn[:READ_OWN_CHARACTERS].split("\n")
    found: list[Line] = []
    before = ""
    for at, (text, noise) in enumerate(zip(lines, find_noise(lines), strict=True)):
        if not text.strip() or compile_pattern(r"\s*\[Image").match(text):
            before = text if not text.strip() else before
            continue
        if noise or _is_reaction(text) or _is_foreign(text) or _is_wrapped(before, text):
            opened = voices.OPENED_TICKET.holds(text)
            attributed = opened or text.strip() == "--" or _is_reaction(text)
            return found, SIGNED_BY_ANOTHER if attributed else FOREIGN_REST
        item = compile_pattern(LIST_ITEM).match(text)
        if not found and _is_salutation(text) and any(map(str.strip, lines[at + 1 :])):
            return found, FOREIGN_REST
        if found and _takes_leave(text, lines):
            return found, SIGNED_BY_ANOTHER
        if item and _is_foreign(item[2]):
            return found, FOREIGN_REST
        found.append(Line(at, item[2] if item else text.strip(), bool(item)))
        before = text
    return found, NOTHING_ELSE if len(turn) <= READ_OWN_CHARACTERS else FOREIGN_REST


def _is_foreign(line: str) -> bool:
    """Return True for a line with the structure of a document, a chat, a ticket, a mail, a log or code."""
    head = line[:400]
    if ANOTHER_AUTHOR.holds(head):
        return True
    if voices.STAMPED_LINE.holds(head) and not speaks(head):
        return True
    folded = fold_case(head)
    if voices.starts("greets", folded) or voices.GREETS_SOMEBODY.holds(folded):
        return True
    label = compile_pattern(_LABEL).match(head)
    return label is not None and not _is_own_label(label[1])


def _is_reaction(line: str) -> bool:
    """Return True for what a chat shows below a message: "👍 3"."""
    return any(one > "\U0001f000" for one in line) and not any(map(str.isalpha, line))


def _is_own_label(label: str) -> bool:
    """Return True for what people write before a colon themselves: "Note", "please do this"."""
    folded = fold_case(label)
    if folded.endswith("-by"):
        return False
    return _announces(folded) or speaks(label) or voices.starts("openers", folded)


def _is_wrapped(before: str, line: str) -> bool:
    """Return True if an editor or a terminal broke a sentence before this line."""
    bare = before.strip()
    if len(bare) < WRAPPED or bare.endswith(tuple(".!?:;)。！？：")):
        return False
    return line.lstrip()[:1].islower() and not compile_pattern(LIST_ITEM).match(line)


def _is_salutation(line: str) -> bool:
    """Return True for the first line of a letter: few words and a comma."""
    return line.rstrip().endswith((",", "，")) and len(line.split()) <= LABEL_WORDS + 1


def _takes_leave(line: str, lines: list[str]) -> bool:
    """Return True for "Best," above a name, or with one behind it, at the end of a letter."""
    bare = fold_case(line).strip()
    if not voices.equals("leaves", bare.strip(" ,.!-–—")):
        return False
    following = [one for one in lines if one.strip()]
    return bare.endswith(",") or following[-1].strip() != line.strip()


def _is_typed(line: Line, read: ReadLine, alone: bool) -> bool:
    """Return True if a line is evidently the user's: short and alone, or the user speaks in it."""
    sentences = len(split_sentences(plain(line.text)))
    if alone and sentences <= SHORT_SENTENCES and measure_width(line.text) <= SHORT_WIDTH:
        return True
    spoken = [speaks(one) or asks(one) for one in read.read]
    if read.ends and not spoken[-1]:
        spoken.pop()
    return bool(spoken) and (spoken[0] or 2 * sum(spoken) >= len(spoken))


# Sentences


class ReadLine(NamedTuple):
    own: list[str]  # the sentences that may be the user's
    read: list[str]  # all sentences up to the last one that counts
    disowns: bool = False  # the text before it is not the user's word
    ends: bool = False  # nor is the text after it
    foreign: bool = False  # some of it is by another author


def _read_line(line: Line, alone: bool, followed: bool) -> ReadLine:
    """Return the user's sentences of a line, which may be `followed` by others that are no list."""
    text = plain(line.text)
    folded = fold_case(text)
    sentences = split_sentences(text)
    points = not alone and POINTS_AT_PASTED.holds(folded)
    if points or _names_another(text):
        return ReadLine([], sentences, disowns=True, ends=True)
    quoted = _find_quotations(text)
    own: list[str] = []
    foreign = False
    for at, sentence in enumerate(sentences):
        above = followed and at == len(sentences) - 1
        teaser = at == 0 and len(sentences) > 1 and _is_teaser(sentence)
        if teaser or _is_check(sentence):
            return ReadLine([], sentences[: at + 1], disowns=True, ends=True)
        if _is_foreign_speech(sentence) or _announces_text(sentence, above):
            return ReadLine(own, sentences[: at + 1], ends=True)
        if any(_overlap(one, sentence) for one in quoted):
            foreign = True
        elif not _claims_by_question(sentence):
            own.append(sentence)
    return ReadLine(own, sentences, foreign=foreign)


def _names_another(text: str) -> bool:
    """Return True for a line that is signed, or names its source or another person."""
    folded = fold_case(text)
    signed = compile_pattern(_SIGNED).search(text) or compile_pattern(_ATTRIBUTED).search(text)
    return bool(signed or voices.NAMES_SOURCE.holds(folded) or voices.ANOTHER_PERSON.holds(folded))


def _find_quotations(text: str) -> list[str]:
    """Return the quotations, names and examples that are long enough for a statement."""
    found = [one[0] for one in compile_pattern(_NAMED).finditer(text)]
    examples = (one[1] for one in voices.QUOTED_EXAMPLE.finditer(text))
    found += filter(_can_state, examples)
    for match in compile_pattern(_QUOTED).finditer(text):
        inside = next(filter(None, match.groups()), "")
        code = match[0][0] == "`" and len(_find_words(inside)) < len(inside.split())
        if _can_state(inside) and not code:
            found.append(inside)
    return found


def _can_state(text: str) -> bool:
    """Return True if a text is long enough for a statement."""
    wide = sum(character > "\u2e7f" for character in text)
    return len(_find_words(text)) >= QUOTED_WORDS or wide >= QUOTED_WIDE


def _find_words(text: str) -> list[str]:
    return compile_pattern(r"[^\W\d_]{2,}").findall(text)


def _overlap(quotation: str, sentence: str) -> bool:
    """Return True if a quotation is in a sentence, begins or ends in it, or contains all of it."""
    return quotation[:20] in sentence or quotation[-20:] in sentence or sentence in quotation


def _split_at_colon(sentence: str) -> tuple[str, str]:
    """Split a sentence at its first colon, or a dash before a capital, if the rest can be a statement."""
    colon = compile_pattern(
        r"[:：](?:\s|$|(?<=：))|——|\s[-–—]{1,2}\s(?=[A-Z][a-z]|I\b|[\u2e80-\U0003ffff])"
    ).search(sentence)
    if not colon:
        return sentence, ""
    behind = sentence[colon.end() :]
    long = len(behind.split()) >= BEHIND_COLON or measure_width(behind) >= 4 * QUOTED_WIDE
    return sentence[: colon.start()], behind if long else ""


def _is_check(sentence: str) -> bool:
    """Return True for a question about the truth of a statement: "Is that true?", "we use X, right?"."""
    folded = fold_case(sentence)
    question = sentence.rstrip().endswith(("?", "？"))
    if question and DOUBTS.holds(folded):
        return True
    if not (voices.contains("checks", folded) or IS_SOMEBODY_RIGHT.holds(folded)):
        return False
    short = len(folded.split()) <= CHECK_WORDS
    return short or question or voices.starts("checks", folded)


def _is_teaser(sentence: str) -> bool:
    """Return True for a question about the statement after it: "True? …", "Which part is wrong? …"."""
    words = len(sentence.split())
    points = POINTS_AT_ITSELF.holds(sentence) and words <= CHECK_WORDS
    few = words <= TEASER_WORDS and not asks(sentence)
    return sentence.rstrip().endswith(("?", "？")) and bool(few or points)


def _is_foreign_speech(sentence: str) -> bool:
    """Return True if a sentence reports or passes on the words of another author."""
    folded = fold_case(sentence)
    if voices.contains("passes_on", folded) or voices.starts("supposes", folded):
        return True
    if voices.FROM_A_TEXT.holds(folded):
        return True
    content = voices.REPORTED_CONTENT.find(folded)
    before = folded[: content.start()] if content else ""
    if before and not speaks(before) and not voices.OWN_CONTENT.holds(before):
        return True
    anew = voices.BEGINS_ANEW.find(sentence)
    if anew and voices.compile_voice("openers").sub(
        "", fold_case(sentence[: anew.start() + 1])
    ).strip(" ,.!"):
        return True
    return voices.contains("hearsay", folded) and voices.contains(
        "hearsay", voices.compile_voice("not_hearsay").sub(" ", folded)
    )


def _announces_text(sentence: str, above: bool) -> bool:
    """Return True if text by another author follows: after a colon, or below a line `above` others."""
    words = fold_case(sentence)
    short = len(sentence.split()) <= INTRODUCTION_WORDS
    if above and (sentence.rstrip().endswith((":", "：")) or (short and _introduces(words))):
        return True
    before, behind = _split_at_colon(sentence)
    lead = fold_case(before)
    if not behind or _announces(lead):
        return False
    foreign = voices.contains("introduces", lead) or POINTS_AT_TEXT.holds(lead)
    # A whole sentence behind a colon is a text by another author.
    whole = compile_pattern(_SENTENCE).match(behind)
    return bool(foreign or whole) or not _is_own_label(before)


def _announces(lead: str) -> bool:
    """Return True for the user's own words before a colon: "note", "oh, one more thing"."""
    phrase = list(voices.compile_voice("announces").finditer(lead))[-1:]
    ends = [one for one in phrase if not lead[one.end() :].strip(" *_")]
    return any(" " in one[0] or not lead[: one.start()].strip(" *_") for one in ends)


def _introduces(words: str) -> bool:
    """Return True if a short line points at the lines below it."""
    return voices.contains("introduces", words) or POINTS_BELOW.holds(words)


def _claims_by_question(sentence: str) -> bool:
    """Return True for a statement with a question mark: "We use X now?"."""
    asked = sentence.rstrip().endswith(("?", "？"))
    return asked and not asks(sentence) and not PROPOSES.holds(fold_case(sentence))


def asks(sentence: str) -> bool:
    """Return True for a question that claims nothing."""
    text = sentence.rstrip()
    if not text.endswith(("?", "？")):
        return False
    folded = fold_case(text).lstrip(" ¿\"'")
    opener = voices.compile_voice("openers").match(folded)
    rest = folded[opener.end() :].lstrip(" ,.!-") if opener else folded
    inner = ASKS_WITHIN.holds(folded)
    return (
        inner
        or voices.starts("asks", folded)
        or voices.starts("asks", rest)
        or text[-2:-1] > "\u2e7f"
    )


def speaks(text: str) -> bool:
    """Return True if a text speaks to the agent: of its writer, to its reader, or of what is to be done.

    A text that begins as an answer or an instruction does, too.
    """
    folded = fold_case(text).strip(" *_\"'(")
    begins = voices.starts("openers", folded) or voices.starts("verbs", folded)
    return begins or voices.contains("speaks", folded)
