"""One turn of a conversation → the statements in it that could be worth keeping.

Prose only: code, tables, quotations, diffs, logs, stack traces and file listings are left out. Headings, lead-ins and
labels ("Next steps", "Root cause: …", "- [ ] …") say outright what stands below or behind them. A statement can be read on its own: one that begins with "That" or "It" brings the sentence before.

This module knows Markdown and how agents and people write it. It does not know what a decision is, who speaks, or what
was said in other turns. Every pattern is bounded; the time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import NamedTuple

from bethink.ingest.lexicon import compile_pattern, fold_case, phrases, word_set

LONGEST = 400  # characters of a statement
WIDE = 3  # what a character of a script without spaces counts for: it is most of a token
LONGEST_LINE = 4_000  # nobody writes a longer one by hand
MOST = 500  # statements of one turn
READ = 100_000  # characters of a turn that are read; the rest is kept without being analysed
CONTENT_WORDS = 3  # fewer, behind a pronoun, say nothing without the sentence before

_ITEM = r"\s*(?:[-*+•]|\(?\d{1,3}[.)])\s+(?:\[([ xX])\]\s+)?(\S.*)$"
_HEADING = r"\s{0,3}#{1,6}\s+(\S.*)$"
# A line, or the end of a paragraph, that says what comes next: "**Next steps:**", "Next steps:", "Here is what is left:".
_LEAD = r"\s*(?:(\*\*|__)([^*_\n]{2,80}?):?\1:?|([A-Za-z][^\n:.?!]{1,80}):)\s*$"
_LED = r"(?:^|[.!?] )([^.!?\n]{2,100}):\s*$"
# "Root cause: …", "**Fix:** …", "Decision — …", "[decision] …"
_LABELLED = (
    r"\s*(?:(?:\*\*|__)([A-Za-z][^*_\n:]{1,40}?)(?::\s?(?:\*\*|__)|(?:\*\*|__)\s?(?::|[-–—]\s))"
    r"|([A-Za-z][A-Za-z' ;-]{1,30}?)(?::|\s[–—])(?=\s)|\[([A-Za-z-]{3,20})\](?=\s))\s*\S"
)
_NOISE = (
    r"\s*(?:"
    r"\|.*\||[|:+=_*-]{3,}\s*$|[│├└┌┐┘┤┬┴┼─═║╔╚╠⏺⎿]"  # tables, rules, boxes
    r"|\$ \S|❯|>>> |#!|%\s\w+ "  # a shell
    r"|diff --git |index [0-9a-f]{6,}|@@ |\+\+\+ |--- [ab]/|[+-](?=[^\s+-])(?!\d+(?:[.,]\d+)?\s?%).*[;{}()=<>]"  # a diff
    r"|[-dl][rwxsStT-]{9}[\s.+@]|total \d+$"  # a listing
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d{1,2}:\d\d:\d\d|\d{10,13}[.\s]"  # logs
    r"|\[?(?:INFO|DEBUG|WARN|WARNING|ERROR|TRACE|FATAL|CRITICAL)\]?[\s:|]|\[\w{0,20}[:./\d][\w:./-]{0,30}\] (?!\()|npm (?:ERR|WARN)|error\[E\d+\]|=+ "
    r"|at \S{1,300} ?\(.{0,300}\)\s*$|at \S{1,300}:\d+|File \".{1,300}\", line \d+|Traceback \(most recent|goroutine \d+|\.{3} \d+ more"
    r"|Caused by: |(?:--- )?(?:PASS|FAIL|ok|SKIP|RUN|===)[:\s]+\S*(?:/|\.|_|\()"  # traces and test runs
    r"|</?[A-Za-z][\w:.-]{0,60}(?:\s[^<>\n]{0,300})?>"  # markup
    r"|!?\[[^\]\n]{0,200}\]\([^)\s]{0,600}\)\s*$|https?://\S+\s*$|[\w./\\~@-]{1,300}(?:/|\.\w{1,8})(?::\d+)*\s*$"  # links and paths
    r"|\[Request interrupted|\[Image"
    r")"
)
_POINTING = (
    r"(?:why|how so|how come|why not|since when)\W*$"
    r"|(?:(?:so|and|but|then|also|yes|no|ok|okay|hence|because of|after|with) ?,? )?"
    r"(?:that|this|it|these|those|they|which|both|neither|same|he|she|its|their|that's|it's|doing so)\b"
)
# What only goes from one thing to the next, or tells what comes now: nothing to keep.
_TRANSITION = (
    r"(?:(?:ok|okay|so|now|great|good|alright|right|thanks?|perfect|cool|done)\b[\s,.!:;–—-]{1,3}){0,3}"
    r"(?:let'?s (?:move on|continue|proceed|get (?:started|going)|turn to|look at|see|check)|moving on|next up|on to the next|let me)\b"
)
TRANSITION_WORDS = 14  # who says more in the same sentence may say something worth keeping
# Headings of work that waits, whatever else they say: "Pending Todos for phase 12", "Before the next deploy, you need to configure".
_CHORES = (
    r"\b(?:pending|open|remaining|outstanding|deferred) (?:to ?dos?|tasks?|work|action items?)\b"
    r"|\byou(?:'ll| will)? (?:still )?(?:need|have) to (?:do|configure|set|create|add|run|make|enable)\b|\bmanual (?:steps|setup)\b"
)
ROW_WORDS = 4  # of a cell that says something by itself; a shorter one is a name
_STOP = r"[.!?。！？](?:(?<=[.!?])[.!?]{0,10}[\"'”’)\]*_]{0,4}(?=\s)|(?<=[。！？])[。！？]{0,10})"
_CODE = r"`[^`\n]{1,200}`"


class Statement(NamedTuple):
    """One statement as it would be kept. `core` is the part that says what it is: without the sentence that a pronoun needs."""

    text: str
    core: str
    line: int  # of its first line within the turn, from 0
    heading: str = ""
    label: str | None = (
        None  # the kind that a heading, a label or a box says outright; "none" for a box that is ticked
    )
    item: str = ""  # its number or bullet if it is an item of a list
    position: int = 0


class ProseBlock(NamedTuple):
    """Lines that belong together: a paragraph, or one item of a list."""

    line: int
    text: str
    heading: str
    label: str | None
    item: str


def statements(text: str) -> list[Statement]:
    """The statements of a turn in order."""
    lines = text[:READ].split("\n")
    found: list[Statement] = []
    before = ""  # the last sentence of the paragraph above
    for block in _blocks(lines, _find_noise(lines)):
        own = list(_state_block(block, "" if block.item else before))
        before = own[-1].core if own and not block.item else ""
        found += own
        if len(found) >= MOST:
            break
    return [each._replace(position=at) for at, each in enumerate(found[:MOST])]


def _find_noise(lines: list[str]) -> list[bool]:
    """Which lines are no prose."""
    found = []
    fence = ""
    diff = False
    for at, line in enumerate(lines):
        bare = line.strip()
        mark = (
            compile_pattern(r"\s{0,12}(`{3,}|~{3,})").match(line)
            if bare.startswith(("```", "~~~"))
            else None
        )
        if fence:
            found.append(True)
            if mark and mark[1].startswith(fence) and not bare.strip("`~"):
                fence = ""
            continue
        if mark and not (mark[1][0] == "`" and "`" in bare.lstrip("`")):
            fence = mark[1]
        diff = line.startswith(("diff --git ", "@@ -")) or (
            diff and line[:1] in ("+", "-", " ", "@") and bool(bare)
        )
        quoted = bare.startswith(">") and not bare.startswith(">=")
        out = bool(fence) or diff or quoted or len(line) > LONGEST_LINE
        found.append(
            bool(bare)
            and (
                out
                or bool(compile_pattern(_NOISE).match(line))
                or _is_code(line, lines[at - 1] if at else "")
            )
        )
    return found


def _is_code(line: str, before: str) -> bool:
    """Lines outside of fences that people paste: indented code, and what is mostly signs."""
    bare = line.strip()
    if line.startswith(("    ", "\t")) and (
        bare.endswith((";", "{", "}", ",", ")", ":")) or "=" in bare
    ):
        return not compile_pattern(_ITEM).match(line) and not compile_pattern(_ITEM).match(before)
    if "`" in bare or "](" in bare:
        bare = compile_pattern(rf"{_CODE}|\]\([^)\s]{{0,600}}\)").sub(" ", bare)
    signs = len(compile_pattern(r"[{}()\[\];=<>|\\&$#@^~]").findall(bare))
    if signs < 2:
        return False
    words = len(compile_pattern(r"(?<![^\W\d_])[^\W\d_]{2,}+(?=[\s,.?!:;]|$)").findall(bare))
    return (signs > 3 and signs > words) or bare.endswith((";", "{", "}"))


def _blocks(lines: list[str], noisy: list[bool]) -> Iterator[ProseBlock]:
    """Paragraphs and items, each with what stands above it."""
    reader = BlockReader()
    for at, (line, noise) in enumerate(zip(lines, noisy, strict=True)):
        if noise or not line.strip():
            yield from reader.end()
            yield from reader.read_row(at, line)
        else:
            yield from reader.read(at, line)
    yield from reader.end()


class BlockReader:
    """Gathers lines to blocks. Above a block stands a lead-in line as far as its list goes, else the heading."""

    def __init__(self) -> None:
        self.title = self.lead = ""
        self.first = False  # nothing has stood below the heading yet
        self.listed = False  # items have stood below the lead-in
        self.ruled = False  # the names of a table's columns are above
        self._begin()

    def _begin(self, held: Sequence[tuple[int, str]] = (), mark: str = "") -> None:
        self.held, self.mark = list(held), mark
        self.box: str | None = None

    def read(self, at: int, line: str) -> Iterator[ProseBlock]:
        """Takes a line of prose; gives the block that it ends."""
        if heading := compile_pattern(_HEADING).match(line):
            yield from self.end()
            self.title, self.first = _plain(heading[1].rstrip("# \t")), True
            self.lead, self.listed = "", False
        elif item := compile_pattern(_ITEM).match(line):
            yield from self.end()
            self._begin([(at, item[2])], line.split(None, 1)[0])
            self.box = {" ": "todo", "x": "none", "X": "none"}.get(item[1] or "")
        elif not self.held and (led := compile_pattern(_LEAD).match(line)):
            self.lead, self.listed = _plain(led[2] or led[3]), False
        else:
            if not self.held and self.listed and not line.startswith((" ", "\t")):
                self.lead, self.listed = "", False
            self.held.append((at, line))

    def read_row(self, at: int, line: str) -> Iterator[ProseBlock]:
        """Takes a line that is no prose: below "Pending to-dos:" a row of a table is an item, below anything else it is nothing."""
        cells = [_plain(cell) for cell in line.strip().strip("|").split("|")]
        if not line.strip().startswith("|") or len(cells) < 2:
            self.ruled = False
        elif compile_pattern(r"[\s|:-]+$").match(line):
            # The line below the names of the columns. A second table has another purpose.
            self.ruled = not self.listed
        elif self.ruled and kind_of(self.lead or self.title) == "todo":
            self.listed = True
            yield ProseBlock(at, _read_cells(cells), self.lead or self.title, "todo", "|")

    def end(self) -> Iterator[ProseBlock]:
        """Gives the block that has been gathered, if there is one."""
        if not self.held:
            return
        item = bool(self.mark)
        label = self.box or _announce_kind(self.lead, self.title, item, self.first)
        yield from _group_lines(self.held, self.mark, self.lead or self.title, label)
        if not item and (led := compile_pattern(_LED).search(self.held[-1][1])):
            self.lead, self.listed = _plain(led[1]), False
        self.listed, self.first = self.listed or item, False
        self._begin()


def _read_cells(cells: Sequence[str]) -> str:
    """What a row says: its longest cell, and what that belongs to where it is only a name."""
    longest = max(cells, key=len)
    if len(longest.split()) >= ROW_WORDS:
        return longest
    return ": ".join(cell for cell in cells if len(cell) >= ROW_WORDS)


def _announce_kind(lead: str, title: str, item: bool, first: bool) -> str | None:
    """The kind that is said above a block. A heading speaks for the items below it, and for the first paragraph."""
    return kind_of(lead) if lead else kind_of(title) if item or first else None


def _group_lines(
    lines: list[tuple[int, str]], mark: str, heading: str, label: str | None
) -> Iterator[ProseBlock]:
    """A paragraph whose lines were wrapped is one block, and so is an item; lines that people end themselves are one each."""
    widths = [len(line.rstrip()) for _, line in lines]
    wrapped = bool(mark) or (max(widths) >= 60 and min(widths[:-1], default=0) >= 0.6 * max(widths))
    for group in [lines] if wrapped else [[line] for line in lines]:
        yield ProseBlock(group[0][0], " ".join(line for _, line in group), heading, label, mark)


def _state_block(block: ProseBlock, before: str) -> Iterator[Statement]:
    label = _read_label(block.text)
    heading, kind = block.heading, block.label
    if kind != "none" and (announced := kind_of(label)):
        heading, kind = label, announced
    if fold_case(heading).strip(" :") in phrases("report_headings"):
        return
    for number, sentence in enumerate(split_sentences(_plain(block.text))):
        if _states_nothing(sentence):
            continue
        short = _is_short(sentence)
        pointing = compile_pattern(_POINTING).match(fold_case(sentence)) is not None
        whole = f"{before} {sentence}" if pointing and before else sentence
        if len(whole) > LONGEST:
            whole = sentence
        if pointing and short and whole == sentence:
            before = before or sentence
            continue
        # A label speaks for its own sentence, and so does a heading, but for all sentences of an item.
        own = kind if number == 0 or (block.item and not label) else None
        told = cut_statement(whole if short else sentence)
        yield Statement(cut_statement(whole), told, block.line, heading, own, block.item)
        before = sentence


def _read_label(text: str) -> str:
    """The word or two before a colon or in bold that a block begins with."""
    label = compile_pattern(_LABELLED).match(text)
    return _plain(label[1] or label[2] or label[3]) if label else ""


def _states_nothing(sentence: str) -> bool:
    """Whether a sentence only announces others, or has no word in it."""
    return sentence.endswith(":") or not any(map(str.isalnum, sentence)) or _is_transition(sentence)


def _is_transition(sentence: str) -> bool:
    """Whether a sentence only says what comes next: "let's move on to the header"."""
    few = len(sentence.split(None, TRANSITION_WORDS)) <= TRANSITION_WORDS
    return few and compile_pattern(_TRANSITION).match(fold_case(sentence)) is not None


def _is_short(sentence: str) -> bool:
    """Whether it has fewer words of its own than say something without the sentence before."""
    light = word_set("stop_words") | word_set("light_words")
    words = (
        word[0] for word in compile_pattern(rf"{_CODE}|\w[\w'’-]*").finditer(fold_case(sentence))
    )
    own = islice((word for word in words if word not in light), CONTENT_WORDS)
    return len(list(own)) < CONTENT_WORDS


@lru_cache(maxsize=256)
def kind_of(heading: str) -> str | None:
    """The kind that a heading announces, such as "Next steps" or "Root cause"."""
    bare = compile_pattern(r"\([^)]{0,60}\)").sub("", fold_case(heading)[:80])
    bare = compile_pattern(r"^[\W\d_]+|\W+$").sub("", bare).replace("-", " ")
    return _kinds().get(bare) or ("todo" if compile_pattern(_CHORES).search(bare) else None)


@cache
def _kinds() -> dict[str, str]:
    """What headings and labels announce."""
    kinds = ("decision", "todo", "problem", "conclusion", "solution", "question", "context")
    return {name: kind for kind in kinds for name in phrases(f"label_{kind}")}


def prose(text: str) -> list[str]:
    """The sentences of a text without code, output, quotations and markup."""
    lines = text[:READ].split("\n")
    blocks = _blocks(lines, _find_noise(lines))
    return [
        one
        for block in blocks
        for one in split_sentences(_plain(block.text))
        if any(map(str.isalnum, one))
    ]


def split_sentences(text: str) -> list[str]:
    """Sentences. A stop inside of code, behind an abbreviation or an initial, or in a number ends none."""
    found: list[str] = []
    begin = 0
    for stop in compile_pattern(rf"{_CODE}|{_STOP}").finditer(text):
        if stop[0][0] != "`" and (stop[0][0] != "." or _ends(text, begin, stop)):
            found.append(text[begin : stop.end()].strip())
            begin = stop.end()
    return [sentence for sentence in (*found, text[begin:].strip()) if sentence]


def _ends(text: str, begin: int, stop: re.Match[str]) -> bool:
    word = text[max(begin, stop.start() - 40) : stop.start()].rsplit(None, 1)[-1:] or [""]
    bare = word[0].lstrip("([\"'“*_").lower()
    if (
        bare in word_set("abbreviations")
        or (len(bare) == 1 and bare.isalpha())
        or (bare.isdigit() and stop.start() - begin <= len(bare))
    ):
        return False
    following = text[stop.end() : stop.end() + 8].lstrip()[:1]
    # People in a hurry begin sentences small, but only behind a word: "v2. of" goes on.
    return (
        not following.islower()
        or (len(bare) > 2 and bare.rpartition(".")[2].isalpha())
        or len(stop[0]) > 1
    )


def _plain(text: str) -> str:
    """Without markup that is not said: emphasis, links, pictures, ticks and numbers of points. Code keeps its back-ticks."""
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


def cut_statement(text: str) -> str:
    """At most 400 characters, ended at a clause if there is one in the second half."""
    if len(text) <= LONGEST:
        return text
    short = text[: LONGEST - 1]
    clause = max(short.rfind(mark) for mark in ("; ", " — ", " – ", ". "))
    end = clause if clause > LONGEST // 2 else max(short.rfind(" "), LONGEST // 2)
    return short[:end].rstrip(" ,;:.-–—(") + "…"


def measure_width(text: str, wide: int = WIDE) -> int:
    """How wide a text is, a character of a script without spaces counting for several others."""
    return len(text) + (wide - 1) * sum(character > "\u2e7f" for character in text)


def cut_text(text: str, width: int, words: int = 0, wide: int = WIDE) -> str:
    """A text that is as wide as that and has so many words, or as much of it, up to a word and with "…"."""
    short = " ".join(text.split()[:words]) if words else text
    if measure_width(short, wide) > width:
        # As if all of it were as wide as its average.
        short = short[: width * len(short) // measure_width(short, wide) - 1].rsplit(" ", 1)[0]
    return text if len(short) >= len(" ".join(text.split())) else short.rstrip(" ,;:.-–—(…") + "…"
