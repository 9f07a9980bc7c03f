"""One turn of a conversation → the statements in it that could be worth keeping.

Prose only: code, tables, quotations, diffs, logs, stack traces and file listings are left out. Headings, lead-ins and
labels ("Next steps", "Root cause: …", "- [ ] …") say outright what is below or after them. A statement can be read alone: one that begins
with "That" or "It" brings the sentence before.

This module knows Markdown and how agents and people write it. It does not know what a decision is, who speaks, or what
was said in other turns. Every pattern is bounded; the time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from bethink.language.layout import NO_PROSE
from bethink.language.pattern import compile_pattern, fold_case
from bethink.language.pointing import OPENS_POINTING_BACK
from bethink.language.topics import MOVES_ON
from bethink.language.vocabulary import phrases, word_set
from bethink.language.waiting import CHORES_HEADING
from bethink.store.words import is_unspaced

LONGEST_STATEMENT = 400  # characters of a statement
# What a character of a script without spaces counts for: it is most of a token. By hand.
WIDE_CHARACTER = 3
LONGEST_PROSE_LINE = 4_000  # nobody writes a longer one by hand
MOST_STATEMENTS = 500  # statements of one turn
READ_TURN_CHARACTERS = (
    100_000  # characters of a turn that are read; the rest is kept without being analysed
)

ANNOUNCED_KINDS = ("decision", "todo", "problem", "conclusion", "solution", "question", "context")

_FENCE = r"\s{0,12}(`{3,}|~{3,})([^`]*)$"
LIST_ITEM = r"\s*(?:[-*+•]|\(?\d{1,3}[.)])\s+(?:\[([ xX])\]\s+)?(\S.*)$"
_HEADING = r"\s{0,3}#{1,6}\s+(\S.*)$"
# A line, or the end of a paragraph, that says what comes next: "**Next steps:**", "Next steps:", "Here is what is left:".
_LEAD = r"\s*(?:(\*\*|__)([^*_\n]{2,80}?):?\1:?|([^\W\d_][^\n:：.?!。]{1,80})[:：])\s*$"
_LED = r"(?:^|[.!?] |[。！？])([^.!?。！？\n]{2,100})[:：]\s*$"
# "Root cause: …", "**Fix:** …", "Decision — …", "[decision] …"
_LABELLED = (
    r"\s*(?:(?:\*\*|__)([A-Za-z][^*_\n:]{1,40}?)(?::\s?(?:\*\*|__)|(?:\*\*|__)\s?(?::|[-–—]\s))"
    r"|([^\W\d_](?:[^\W\d_]|[' ;-]){1,30}?)(?:(?::|\s[–—])(?=\s)|：)|\[([A-Za-z-]{3,20})\](?=\s))\s*\S"
)
TRANSITION_WORDS = 14  # who says more in the same sentence may say something worth keeping; by hand
ROW_WORDS = 4  # of a cell that says something by itself; a shorter one is a name; by hand
_STOP = r"[.!?。！？](?:(?<=[.!?])[.!?]{0,10}[\"'”’)\]*_]{0,4}(?=\s)|(?<=[。！？])[。！？]{0,10})"
_CODE = r"`[^`\n]{1,200}`"


class Statement(NamedTuple):
    """One statement as it would be kept. `core` leaves out the sentence that a pronoun refers to."""

    text: str
    core: str
    line: int  # of its first line within the turn, from 0
    heading: str = ""
    # The kind that a heading, a label or a box says outright; "none" for a box that is ticked.
    label: str | None = None
    position: int = 0
    completed: str = ""  # a reply with what it answers; the rest says only what the user said
    doubtful: bool = False  # in a user's turn: most likely the user's word, but not evidently


class ProseBlock(NamedTuple):
    """Lines that belong together: a paragraph, or one item of a list."""

    line: int
    text: str
    heading: str
    label: str | None
    item: bool


@lru_cache(maxsize=8)  # one turn is read for several purposes
def statements(text: str) -> tuple[Statement, ...]:
    """Return the statements of a turn in order."""
    found: list[Statement] = []
    before = ""  # the last sentence of the paragraph above
    for block in _blocks(text):
        own = list(_state_block(block, "" if block.item else before))
        before = own[-1].core if own and not block.item else ""
        found += own
        if len(found) >= MOST_STATEMENTS:
            break
    return tuple(each._replace(position=at) for at, each in enumerate(found[:MOST_STATEMENTS]))


def prose(text: str, lists: bool = True) -> list[str]:
    """Return the sentences of a text without code, output, quotations and markup, or without `lists`."""
    blocks = (block for block in _blocks(text) if lists or not block.item)
    sentences = (one for block in blocks for one in split_sentences(plain(block.text)))
    return [one for one in sentences if any(map(str.isalnum, one))]


# Blocks


def find_noise(lines: list[str]) -> Iterator[bool]:
    """Yield for each line True if it is no prose."""
    fence = ""
    diff = False
    for before, line in pairwise(["", *lines]):
        mark = compile_pattern(_FENCE).match(line)
        goes_on = diff and line[:1] in ("+", "-", " ", "@") and bool(line.strip())
        diff = line.startswith(("diff --git ", "@@ -")) or goes_on
        yield (
            bool(fence or mark or diff)
            or len(line) > LONGEST_PROSE_LINE
            or NO_PROSE.holds(line)
            or _is_code(line, before)
        )
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = ""


def _is_code(line: str, before: str) -> bool:
    """Return True for pasted lines outside of fences: indented code, and lines that are mostly signs."""
    bare = line.strip()
    if line.startswith(("    ", "\t")) and (
        bare.endswith((";", "{", "}", ",", ")", ":")) or "=" in bare
    ):
        return not compile_pattern(LIST_ITEM).match(line) and not compile_pattern(LIST_ITEM).match(
            before
        )
    if "`" in bare or "](" in bare:
        bare = compile_pattern(rf"{_CODE}|\]\([^)\s]{{0,600}}\)").sub(" ", bare)
    signs = len(compile_pattern(r"[{}()\[\];=<>|\\&$#@^~]").findall(bare))
    if signs < 2:
        return False
    words = len(compile_pattern(r"(?<![^\W\d_])[^\W\d_]{2,}+(?=[\s,.?!:;]|$)").findall(bare))
    return (signs > 3 and signs > words) or bare.endswith((";", "{", "}"))


def _blocks(text: str) -> Iterator[ProseBlock]:
    """Yield paragraphs and items. A lead-in line speaks for its list, a heading for items alone."""
    lines = [*text[:READ_TURN_CHARACTERS].split("\n"), ""]
    # "**Shall I restart it?**" or "Now split the page:" at the end is not above anything.
    last = max((at for at, line in enumerate(lines) if line.strip()), default=0)
    last = last if lines[last].rstrip(" *_").endswith(("?", "？", ":", "：")) else -1
    above = Above()
    pending: list[tuple[int, str]] = []
    listed, box = False, None
    for at, (line, noise) in enumerate(zip(lines, find_noise(lines), strict=True)):
        out = noise or not line.strip()
        heading = None if out else compile_pattern(_HEADING).match(line)
        item = None if out else compile_pattern(LIST_ITEM).match(line)
        if pending and (out or heading or item):
            label = box or above.announce_kind(listed)
            text = " ".join(line for _, line in pending)
            yield ProseBlock(pending[0][0], text, above.heading, label, listed)
            above.pass_block(pending[-1][1], listed)
            pending, listed, box = [], False, None
        if out:
            yield from above.read_row(at, line)
        elif heading:
            above = Above(plain(heading[1].rstrip("# \t")))
        elif item:
            pending, listed = [(at, item[2])], True
            box = {" ": "todo", "x": "none"}.get((item[1] or "").lower())
        elif pending or at == last or not above.read_lead(line):
            pending.append((at, line))


class Above:
    """The heading and the lead-in line above a block."""

    def __init__(self, title: str = "") -> None:
        self.title, self.lead = title, ""
        self.listed = False  # items came after the lead-in
        self.ruled = False  # the names of a table's columns are above

    @property
    def heading(self) -> str:
        return self.lead or self.title

    def announce_kind(self, item: bool) -> str | None:
        return kind_of(self.heading) if self.lead or item else None

    def read_lead(self, line: str) -> bool:
        """Return True if a line announces the text below it. A line below a list ends the lead-in of the list."""
        led = compile_pattern(_LEAD).match(line)
        if led or (self.listed and not line.startswith((" ", "\t"))):
            self.lead, self.listed = plain(led[2] or led[3]) if led else "", False
        return led is not None

    def pass_block(self, last: str, item: bool) -> None:
        """Note that a block has ended, with this line."""
        if not item and (led := compile_pattern(_LED).search(last)):
            self.lead, self.listed = plain(led[1]), False
        self.listed = self.listed or item

    def read_row(self, at: int, line: str) -> Iterator[ProseBlock]:
        """Yield a row of a table as an item if the heading announces to-dos."""
        cells = [plain(cell) for cell in line.strip().strip("|").split("|")]
        if not line.strip().startswith("|") or len(cells) < 2:
            self.ruled = False
        elif compile_pattern(r"[\s|:-]+$").match(line):
            # The line below the names of the columns. A second table has another purpose.
            self.ruled = not self.listed
        elif self.ruled and kind_of(self.heading) == "todo":
            self.listed = True
            # Its longest cell says what it is about, with the others where that is only a name.
            cell_text = max(cells, key=len)
            if len(cell_text.split()) < ROW_WORDS:
                cell_text = ": ".join(cell for cell in cells if len(cell) >= ROW_WORDS)
            yield ProseBlock(at, cell_text, self.heading, "todo", True)


# Statements


def _state_block(block: ProseBlock, before: str) -> Iterator[Statement]:
    label = read_label(block.text)
    heading, kind = block.heading, block.label
    if kind != "none" and (announced := kind_of(label)):
        heading, kind = label, announced
    if fold_case(heading).strip(" :") in phrases("report_headings"):
        return
    for number, sentence in enumerate(split_sentences(plain(block.text))):
        if _states_nothing(sentence):
            continue
        pointing = OPENS_POINTING_BACK.holds(sentence)
        whole = f"{before} {sentence}" if pointing and before else sentence
        if len(whole) > LONGEST_STATEMENT:
            whole = sentence
        # A label or a heading speaks for the first sentence, and for all of an item.
        own = kind if number == 0 or block.item else None
        kept, core = (cut_text(one, LONGEST_STATEMENT, wide=1) for one in (whole, sentence))
        yield Statement(kept, core, block.line, heading, own)
        before = sentence


def read_label(text: str) -> str:
    """Return the word or two before a colon or in bold at the beginning of a block."""
    label = compile_pattern(_LABELLED).match(text)
    return plain(label[1] or label[2] or label[3]) if label else ""


def _states_nothing(sentence: str) -> bool:
    """Return True if a sentence only announces others ("let's move on to the header"), or has no word."""
    few = len(sentence.split(None, TRANSITION_WORDS)) <= TRANSITION_WORDS
    moves_on = few and MOVES_ON.holds(sentence)
    return sentence.endswith(":") or not any(map(str.isalnum, sentence)) or moves_on


@lru_cache(maxsize=256)
def kind_of(heading: str) -> str | None:
    """Return the kind that a heading or a label announces, such as "Next steps" or "Root cause"."""
    bare = compile_pattern(r"^[\W\d_]+|\W+$").sub("", fold_case(heading)[:80]).replace("-", " ")
    kinds = (kind for kind in ANNOUNCED_KINDS if bare in phrases(f"label_{kind}"))
    return next(kinds, "todo" if CHORES_HEADING.holds(bare) else None)


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences. A stop in code, in a number or behind an abbreviation ends none."""
    found: list[str] = []
    begin = 0
    for stop in compile_pattern(rf"{_CODE}|{_STOP}").finditer(text):
        if stop[0][0] != "`" and not (stop[0] == "." and _goes_on(text, begin, stop)):
            found.append(text[begin : stop.end()].strip())
            begin = stop.end()
    return [sentence for sentence in (*found, text[begin:].strip()) if sentence]


def _goes_on(text: str, begin: int, stop: re.Match[str]) -> bool:
    """Return True if a full stop ends no sentence: after an abbreviation, or a number and a small letter."""
    word = text[max(begin, stop.start() - 40) : stop.start()].rpartition(" ")[2]
    small = text[stop.end() : stop.end() + 8].lstrip()[:1].islower()
    shortened = word.lstrip("([\"'“*_").lower() in word_set("abbreviations")
    return shortened or (small and not word[-1:].isalpha())


def plain(text: str) -> str:
    """Drop markup: emphasis, links, pictures, ticks and numbers of points. Code keeps its back-ticks."""
    if "](" in text:
        text = compile_pattern(r"!\[[^\]\n]{0,200}\]\([^)\s]{0,600}\)").sub("", text)
        text = compile_pattern(r"\[([^\]\n]{0,200})\]\([^)\s]{0,600}\)").sub(r"\1", text)
    if "**" in text or "__" in text:
        text = compile_pattern(r"(\*\*\*|\*\*|__)(?=\S)([^*\n]{1,300}?)(?<=\S)\1").sub(r"\2", text)
    if "*" in text:
        text = compile_pattern(r"(?<![\w*])\*(?=\S)([^*\n]{1,200}?)(?<=\S)\*(?![\w*])").sub(
            r"\1", text
        )
    if number := compile_pattern(r"\s*\(?\d{1,2}[.)]\s+(?=\D)").match(text):
        text = text[number.end() :]
    return " ".join(text.split()).lstrip(" ✅✓✔❌✗⚠️🔴🟡🟢→➜●•")


def measure_width(text: str, wide: int = WIDE_CHARACTER) -> int:
    """Measure a text in characters; one of a script without spaces counts for several."""
    return len(text) + (wide - 1) * sum(character > "\u2e7f" for character in text)


def cut_text(text: str, width: int, words: int = 0, wide: int = WIDE_CHARACTER) -> str:
    """Cut a text to a width and a number of words, at a word and with "…"."""
    short = " ".join(text.split()[:words]) if words else text
    if measure_width(short, wide) > width:
        # As if all of it were as wide as its average.
        end = max(0, width * len(short) // measure_width(short, wide) - 1)
        short = short[:end]
        whole = short.rpartition(" ")[0]
        # In a script without spaces the last space may be far away.
        short = whole if whole and not (is_unspaced(short[-1]) and 2 * len(whole) < end) else short
    return text if len(short) >= len(" ".join(text.split())) else short.rstrip(" ,;:.-–—(…") + "…"
