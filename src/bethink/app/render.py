"""Values and memories as text: for people at a terminal, for models between marks, and as data.

The data formats are JSON, JSON lines, CSV, Markdown and XML. Choosing and ranking memories happens elsewhere.

An answer is built once, as items: a memory in full or on one line (`Quote`), or a heading. `quote_items` writes them for models: between
the marks of `outgoing`, each memory with its origin, within a token budget, and Bethink's own notes after the marks. `item_lines` writes
them for people, cut to their terminal. Text for people never contains stored control characters, so a memory can neither move the cursor
nor hide its words; a name with a line break takes one line.
"""

import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import accumulate
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from bethink.features.citations import note_gone
from bethink.model import (
    EVERYTHING,
    PERSONAL,
    Answer,
    FieldInfo,
    Forgotten,
    Hit,
    Json,
    Memory,
    Outcome,
    Relation,
    Session,
    Span,
    Values,
    fields_of,
)
from bethink.outgoing import Block, Quote, fence_items, join, new_marker, render_item
from bethink.outgoing import quote_lines as quote_text
from bethink.recall.shape import (
    NONE_OPEN,
    NOTHING_OPEN,
    OVERHEAD,
    Cost,
    Costs,
    Dual,
    Sought,
    by_topic,
    choose_excerpt,
    citation,
    cut,
    cut_to,
    digest_lines,
    dual,
    find_sought,
    tokens,
)
from bethink.store.words import tokenize

if TYPE_CHECKING:
    from bethink.api import Bethink
    from bethink.features.handoffs import LatestHandoff as Latest


# What a terminal might obey, the marks that reorder text, halves of characters. Tab and line feed stay.
_HOSTILE = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
_NOT_XML = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32"}

_UNITS = ((30 * 86400, "month"), (86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))

_SHOWN = 5  # of a list in a few words


# Text for people


def plain(text: str) -> str:
    """The text with a visible mark in place of everything that a terminal might obey."""
    if text.isprintable():
        return text
    return re.sub(_HOSTILE, "�", text.replace("\r\n", "\n"))


def one_line(text: str, width: int = 0) -> str:
    """The text on one line, cut at a word to `width` characters."""
    line = plain(" ".join(text.split()))
    if width and len(line) > width:
        cut = line[: width - 1]
        return (cut[: cut.rfind(" ")] if " " in cut[width // 2 :] else cut).rstrip(" ,.;:") + "…"
    return line


def width() -> int:
    """Columns of the terminal, or a default. `shutil`'s takes longer to import than a search to run."""
    try:
        found = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
    except (OSError, ValueError):
        found = 0
    return min(max(found or 100, 40), 120)


def indent(text: str, margin: str) -> list[str]:
    """The lines of a text, each behind a margin."""
    return [f"{margin}{line}".rstrip() for line in plain(text).split("\n")]


def fold(line: str) -> str:
    """Wrap a line for a terminal, indented to its last column that begins in the first half.

    Columns are two blanks apart. A word is never broken, so that a path can be copied. Output for another program is not wrapped.
    """
    room, bare = width(), unstyle(line)
    if len(bare) <= room or not (os.environ.get("COLUMNS") or sys.stdout.isatty()):
        return line
    from textwrap import fill

    begins = [found.end() for found in re.finditer(r"^ +|  +", bare[: room // 2])]
    margin = " " * (begins[-1] if begins else 0)
    return fill(
        line, room, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False
    )


def style(text: str, name: str) -> str:
    """Return text in a style. NO_COLOR turns it off; FORCE_COLOR turns it on without a terminal, as in CI."""
    forced = os.environ.get("FORCE_COLOR")
    seen = forced or (os.environ.get("TERM") != "dumb" and sys.stdout.isatty())
    if not seen or os.environ.get("NO_COLOR") or forced == "0":
        return text
    return f"\x1b[{_STYLES[name]}m{text}\x1b[0m"


def unstyle(text: str) -> str:
    """The text without our own styles, for a stream that shows what it does not know as marks."""
    return re.sub(r"\x1b\[\d+m", "", text)


def date_and_time(moment: datetime | None) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M") if moment else ""


def date(moment: datetime | None) -> str:
    return date_and_time(moment)[:10]


def size(count: float) -> str:
    """A number of bytes."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"


def many(count: int, noun: str) -> str:
    """A number with its noun: `1 memory`, `2,000 memories`, `3 matches`."""
    if count != 1:
        noun = re.sub("(ch)$", r"\1e", re.sub("(?<=[^aeiou])y$", "ie", noun)) + "s"
    return f"{count:,} {noun}"


def span(seconds: float) -> str:
    """A length of time in its largest unit: `3 days`."""
    length, unit = next((one for one in _UNITS if seconds >= one[0]), _UNITS[-1])
    return many(round(seconds / length), unit)


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def describe_value(value: Any) -> list[str]:
    """Describe a JSON value: one line per non-empty field of a record, a table for a list of records."""
    if not isinstance(value, Mapping):
        names = list(value[0]) if value else []
        return columns([names, *([brief(one[name]) for name in names] for one in value)])
    rows = [(name.replace("_", " "), brief(found)) for name, found in value.items()]
    return columns([row for row in rows if row[1]])


def brief(value: object) -> str:
    """A JSON value in a few words; an empty text for an empty value."""
    if isinstance(value, Mapping):
        parts = ((name, brief(one), isinstance(one, int)) for name, one in value.items())
        return ", ".join(
            f"{text} {name}" if counted else f"{name} {text}"
            for name, text, counted in parts
            if text
        )
    if isinstance(value, list | tuple):
        more = f" and {len(value) - _SHOWN:,} more" if value[_SHOWN:] else ""
        return ", ".join(map(brief, value[:_SHOWN])) + more
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if value else ""
    if isinstance(value, datetime):
        return date_and_time(value)
    return one_line(cell(value)) if value else ""


# Data


def json_text(value: object, indent: int | None = 2) -> str:
    import json

    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    return json.dumps(
        value, ensure_ascii=not encoding.startswith("utf"), indent=indent, default=str
    )


def pick(value: object, names: str) -> Json:
    """Some fields of a value."""
    return {name: getattr(value, name) for name in names.split()}


def format_records(
    form: str,
    records: Iterable[Values],
    fields: Sequence[str],
    root: str = "memories",
    item: str = "memory",
    **about: str,
) -> Iterator[str]:
    """Format records piece by piece, so that a large export needs no memory. `about`: XML attributes."""
    rows = ([_field(record, field) for field in fields] for record in records)
    if form == "json":
        lead = "[\n"
        for record in records:
            yield lead + "  " + json_text(record).replace("\n", "\n  ")
            lead = ",\n"
        yield "[]\n" if lead == "[\n" else "\n]\n"
    elif form == "jsonl":
        yield from (json_text(record, None) + "\n" for record in records)
    elif form == "csv":
        import csv

        # RFC 4180: CRLF, quotes doubled, line breaks kept inside quotes. The writer returns each line instead of writing it.
        write = csv.writer(SimpleNamespace(write=str)).writerow
        yield write(fields)
        yield from map(write, rows)
    elif form == "md":
        yield "| " + " | ".join(fields) + " |\n| " + " | ".join("---" for _ in fields) + " |\n"
        for row in rows:
            cells = (" ".join(text.split()).replace("|", "\\|") for text in row)
            yield "| " + " | ".join(cells) + " |\n"
    else:
        attributes = "".join(f' {name}="{_escape(value)}"' for name, value in about.items())
        yield f'<?xml version="1.0" encoding="UTF-8"?>\n<{root}{attributes}>\n'
        for row in rows:
            yield f"  <{item}>\n{''.join(map(_element, fields, row))}  </{item}>\n"
        yield f"</{root}>\n"


def _element(field: str, text: str) -> str:
    tag = re.sub(r"[^A-Za-z0-9_.-]", "_", field)  # `any@5` cannot name an element
    return f"    <{tag}>{_escape(text)}</{tag}>\n"


def _escape(text: str) -> str:
    from xml.sax.saxutils import escape

    return escape(re.sub(_NOT_XML, "", text), {'"': "&quot;", "'": "&apos;", "\r": "&#13;"})


def _field(record: Values, name: str) -> str:
    """A field of a record where only text fits: of lines from where to where."""
    value = record.get(name)
    return f"{value[0]}-{value[1]}" if name == "lines" and value else cell(value)


def cell(value: object) -> str:
    """A value where only text fits."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) else json_text(value, None)


# Memories

_LEAST = 24  # columns that are too few for a statement
_LONGEST_LINE = 200  # characters of a statement in a list; two lines of most terminals
EXCERPT = 280  # characters of a memory in a list of hits; set by hand: three lines of a terminal


# A relation as its source sees it, and as its target does.
RELATION_WORDS = {
    "supersedes": ("supersedes", "superseded by"),
    "builds_on": ("builds on", "basis of"),
    "contradicts": ("contradicts", "contradicted by"),
    "answers": ("answers", "answered by"),
    "relates_to": ("relates to", "relates to"),
    "may_replace": ("newer than", "newer"),
}
# What a new memory may mean for a known one, and what to do if it does: for a person, and for an agent, which has no `link` but
# may store the same text again and say so.
PROPOSALS = {
    "replaces": (
        "replace",
        "bethink link {new} supersedes {old}",
        "if so, store the same content with supersedes [{old}]",
    ),
    "answers": (
        "answer",
        "bethink link {new} answers {old}",
        "if so, update_memory [{old}] with answered true",
    ),
    "completes": (
        "complete",
        "bethink link {new} answers {old}",
        "if so, update_memory [{old}] with answered true",
    ),
    "same": (
        "be the same as",
        "bethink forget {new}",
        "if so, forget_memories [{new}]",
    ),
}
WAITS = "it stays until the user confirms: bethink link {new} supersedes {old}"

# Tokens.
ROOM = 50  # left for memories, however long the notes behind them are
_BRIEF = 40  # a memory without a summary
DONE = 20  # work done
METADATA = 200
_RELATED, RELATED_WORDS = 3, 18  # relations that a hit shows, and words of each
# Best hits of which a topic needs two for a heading, unless there are few; those that show all their relations; and what others show.
HEADED_HITS, CONNECTED_HITS = 20, 5
CHANGING_RELATIONS = ("supersedes", "contradicts", "may_replace", "answers")
WHOLE_TEXTS = "get_memories gives whole texts."
_SHORTEST = 200  # characters: no answer is cut below the marks and a word or two

Names = Mapping[str, str]  # full id → short id; where every project is shown, scope → its name
Items = list[Quote | str]
Related = Sequence[tuple[Relation, Memory]]


class Arranged(NamedTuple):
    """An answer in the index-and-details form: some memories in full, by topic, the others on one line."""

    answer: Answer
    both: Dual
    topics: list[tuple[Span | None, list[Hit]]]
    rest: list[Hit]
    items: Items
    notes: list[str]


class ShownMemories(NamedTuple):
    """Memories to show, notes about them, the offset of the next page and the texts as JSON."""

    items: Items
    notes: list[str]
    following: int | None = None
    details: Sequence[Json] = ()


class Form(NamedTuple):
    """Form of an answer: lines for people, `quoted` between marks for models, or values for programs."""

    quoted: bool = False
    values: bool = False
    more: str = ""  # how to get whole texts

    def measure(self, item: Quote | str) -> int:
        """Tokens of an item with the line break behind it."""
        shown = render_item(item) if self.quoted else "\n".join([*item_lines([item]), ""])
        return tokens(shown + "\n")

    def measure_text(self, text: str) -> int:
        """Tokens of a text in full."""
        return tokens(quote_text(text) if self.quoted else "\n".join(indent(text, "  ")))


def arrange_answer(
    memory: "Bethink", answer: Answer, budget: int, form: Form, offset: int = 0
) -> Arranged:
    """Choose what of an answer is shown within a token budget, everything counted that its form shows."""
    names = _name_hits(memory, answer.hits)
    spans = _find_spans(memory, answer.hits)
    shared = Counter(hit.memory.span for hit in answer.hits[:HEADED_HITS])
    alone = 1 if len(answer.hits) <= CONNECTED_HITS else 2
    headings = {
        id: _head_topic(span)
        for id, span in spans.items()
        if span.name and shared[id] >= alone and not answer.query.asks_set
    }
    wholes = [_quote_whole(hit, names, place) for place, hit in enumerate(answer.hits)]
    notes: list[str] = []
    if form.quoted:
        hints = note_lines(split_hints(answer)[1])
        notes, budget = _reserve(hints, _longest_summary(answer, form, offset), budget)
    costs = [
        Cost(
            form.measure(_index_line(hit, names)),
            form.measure(whole._replace(text="")),
            hit.memory.span or "",
        )
        for hit, whole in zip(answer.hits, wholes, strict=True)
    ]
    topics = {
        id: tokens(f"{spans[id].name} {spans[id].summary}") + OVERHEAD
        if form.values
        else sum(map(form.measure, lines))
        for id, lines in headings.items()
    }
    sought = find_sought(answer.query)
    both = dual(answer, budget, Costs(costs, topics, form.measure_text), offset, sought)
    texts = {shaped["id"]: shaped["content"] for shaped in both.details}
    listed = answer.hits[: len(both.index)]
    groups = by_topic([hit for hit in listed if hit.memory.id in texts], spans)
    rest = [hit for hit in listed if hit.memory.id not in texts]
    quoted = {hit.memory.id: whole for hit, whole in zip(listed, wholes, strict=False)}
    items: Items = []
    if answer.query.asks_set and len(texts) > 1:  # a list, whose order is that of time
        in_order = sorted((hit for _, hits in groups for hit in hits), key=_made_at)
        groups = [(None, in_order)]
        items.append(_head_set(in_order))
    for span, members in groups:
        items += headings.get(span.id, []) if span else []
        items += [quoted[hit.memory.id]._replace(text=texts[hit.memory.id]) for hit in members]
    summaries = {line["id"]: line["summary"] for line in both.index}
    lines = [_index_line(hit, names, summaries[hit.memory.id]) for hit in rest]
    if lines:
        items += [_head_rest(len(lines), bool(texts)), *lines]
    cut_short = sum("truncated" in shaped for shaped in both.details)
    shown = _describe_shown(answer, len(texts), len(lines), form.more, offset, cut_short)
    return Arranged(answer, both, groups, rest, items, [shown, *notes])


def _index_line(hit: Hit, names: Names, summary: str = "") -> Quote:
    """A hit in the index of an answer, where every match has exactly one line."""
    return quote_line(hit.memory, names, summary)._replace(cut=True)


def _reserve(notes: list[str], summary: str, budget: int) -> tuple[list[str], int]:
    """Return the notes and the budget left after marks and notes. Notes are cut if too little is left."""
    marks = tokens(fence_items([], new_marker()) + "\n\n")
    left = budget - marks - tokens(summary + "\n")
    for at, note in enumerate(notes):
        if left - tokens(note + "\n") < ROOM:
            notes = [*notes[:at], *([cut(note, left - ROOM)] if left - ROOM > ROOM else [])]
            break
        left -= tokens(note + "\n")
    return notes, max(0, left)


def _find_spans(memory: "Bethink", hits: Sequence[Hit]) -> dict[str, Span]:
    """The topics that hits come from."""
    spoken = [hit.memory for hit in hits if hit.memory.span]
    if not spoken:
        return {}
    ids, scopes = {str(one.span) for one in spoken}, tuple({one.scope for one in spoken})
    return memory.store.spans_by_id(ids, scopes)


def _head_topic(span: Span) -> list[str]:
    """The heading of a topic, and what was done in it."""
    done = [line for line in span.summary.splitlines() if line.startswith("Done: ")]
    return [f"Topic: {span.name}", *(cut_to(line, DONE) for line in done)]


def _made_at(hit: Hit) -> datetime:
    return hit.memory.created_at


def _head_set(hits: Sequence[Hit]) -> str:
    """The heading of an answer to a question for all of something."""
    places = {hit.memory.session or hit.memory.id for hit in hits}
    return f"Oldest first ({len(hits)} from {many(len(places), 'place')}):"


def _head_rest(number: int, behind: bool) -> str:
    return f"Also ({number}):" if behind else f"Matches ({number}):"


def _longest_summary(answer: Answer, form: Form, offset: int) -> str:
    """The longest that may be said of the numbers of an answer, with the heading of its index."""
    number = len(answer.hits)
    after = f"{_head_rest(number, False)}\n"
    return after + _describe_shown(
        answer._replace(total=10**9), number, number, form.more, offset, number
    )


def _describe_shown(
    answer: Answer, texts: int, lines: int, more: str, offset: int, excerpts: int
) -> str:
    """Summarize how many matches are shown, and where the next page begins."""
    if not answer.hits:
        known = answer.total or split_hints(answer)[0]
        other = "" if known else " Try other words, another mode, or no filters."
        return describe_none(answer) + other
    parts = f" {excerpts} as an excerpt," if excerpts else ""
    summary = f"{texts - excerpts} in full,{parts} {lines} as a line, {answer.total:,} found."
    if (lines or excerpts) and more:
        summary += f" {more}"
    return _describe_next(summary, offset + texts + lines, answer.total)


def _describe_next(summary: str, after: int, total: int) -> str:
    return f"{summary} The next begin at offset {after}." if after < total else summary


# Names


def short_ids(memory: "Bethink", found: Iterable[Memory], related: Iterable[str] = ()) -> Names:
    """Shortest unique ids of memories, their successors and related memories, and remarks on them.

    If memories of every project are shown, names of the projects too.
    """
    found = list(found)
    ids = [id for one in found for id in (one.id, one.superseded_by, *one.newer) if id]
    names = {**memory.store.abbreviate([*ids, *related]), **note_gone(memory, found)}
    return {**names, **label_scopes(memory)} if memory.everywhere else names


def short_id(memory: "Bethink", id: str) -> str:
    """Return the shortest unique form of an id."""
    return memory.store.abbreviate([id])[id]


def label_scopes(memory: "Bethink") -> dict[str, str]:
    """Names of the scopes. Projects with the same name are distinguished by a part of their scope."""
    names = {memory.scope: memory.project.name, **memory.store.scopes()}
    called = {scope: names.get(scope) or scope for scope in memory.every_scope()}
    number = Counter(called.values())
    return {
        scope: f"{name} [{scope.partition(':')[2][:6]}]" if number[name] > 1 else name
        for scope, name in called.items()
    }


def related_memories(memory: "Bethink", found: Sequence[Memory]) -> dict[str, Related]:
    """Relations of each memory, as far as the reader may see them."""
    from bethink.recall.expand import expand  # not for commands that ask nothing

    wanted = memory.filter(scopes=memory.named_scopes, **EVERYTHING)
    hits = [Hit(one, 1.0) for one in found]
    return {hit.memory.id: hit.related for hit in expand(hits, memory.store, wanted)}


def label_memory(memory: "Bethink", one: Memory) -> str:
    """Label of a changed memory: `01a1dd89 decision  We use Postgres`."""
    return f"{short_id(memory, one.id)} {one.kind}  {one_line(one.summary or one.content, 80)}"


def describe_outcomes(
    memory: "Bethink", outcomes: Sequence[Outcome], quoted: bool = False
) -> tuple[list[str], Items]:
    """Describe the outcome of statements, their effect on known memories, and the next step.

    People see a few words of a known memory; models get it `quoted`.
    """
    ids = [id for one in outcomes for id in (one.id, *_touched(one))]
    found = {one.id: one for one in memory.store.get(ids)}
    names = short_ids(memory, found.values())
    lines: list[str] = []
    for number, one in enumerate(outcomes, start=1):
        head, *rest = _outcome_lines(one, found, names, quoted)
        lines += [f"{number}. {head}" if quoted else head, *(f"  {line}" for line in rest)]
    touched = dict.fromkeys(id for one in outcomes for id in _touched(one)) if quoted else ()
    return lines, [quote_line(found[id], names) for id in touched]


def plain_outcome(outcome: Outcome) -> Json:
    """Outcome of a statement as JSON values, without those that do not apply."""
    values = outcome._asdict() | {"proposals": [one._asdict() for one in outcome.proposals]}
    return {name: value for name, value in values.items() if value or name == "id"}


def _outcome_lines(
    outcome: Outcome, found: Mapping[str, Memory], names: Names, quoted: bool
) -> list[str]:
    def name_memory(id: str, beside: str = "", gap: str = ": ") -> str:
        if quoted:
            return f"[{names[id]}]{beside}"
        return f"{names[id]}{beside}{gap}{one_line(found[id].summary or found[id].content, 80)}"

    id = outcome.id
    if outcome.status == "purged":
        return ["not stored: this text was purged by a person"]
    lines = [f"already stored as {name_memory(id)}"]
    if outcome.status == "near_duplicate":
        lines = [f"same as {name_memory(id)}", "these words are kept as a version of it"]
    if outcome.status == "reworded":
        lines = [f"same as {name_memory(id)}, which has these words now"]
    if outcome.status == "added":
        lines = [f"added {name_memory(id, f' {found[id].kind}', '  ')}"]
    lines += [f"replaces {name_memory(old)}" for old in outcome.supersedes]
    lines += [f"closes {name_memory(old)}" for old in outcome.settles]
    lines += [f"newer than {name_memory(old)}" for old in outcome.marks]
    if outcome.marks:
        step = PROPOSALS["replaces"][1 + quoted].format(new=names[id], old=names[outcome.marks[0]])
        lines.append(f"both stay valid; to retire the older one: {step.removeprefix('if so, ')}")
    if outcome.marks and not quoted:
        pair = f"{names[id]} may_replace {names[outcome.marks[0]]}"
        lines.append(f"if they are about different things: bethink link {pair} --remove")
    undone = [*outcome.supersedes, *outcome.settles]
    if undone and not quoted:
        lines.append(f"undo: bethink restore {names[undone[0]]}")
    if outcome.similar and outcome.similar not in _affected(outcome):
        lines.append(f"very similar to {name_memory(outcome.similar)}")
    for known in outcome.proposals:
        word, *steps = PROPOSALS[known.relation]
        step = WAITS if quoted and known.reason == "less trusted" else steps[quoted]
        step = step.format(new=names[id], old=names[known.id])
        lines.append(f"may {word} {name_memory(known.id)} ({known.reason}; {step})")
    return lines


def _touched(outcome: Outcome) -> list[str]:
    """The known memories that an outcome names."""
    similar = [outcome.similar] if outcome.similar else []
    return list(dict.fromkeys((*_affected(outcome), *similar)))


def _affected(outcome: Outcome) -> list[str]:
    proposed = [one.id for one in outcome.proposals]
    return [*outcome.supersedes, *outcome.settles, *outcome.marks, *proposed]


def describe_request(done: Forgotten) -> list[str]:
    """Explain how the user confirms an agent's request to forget or purge; nothing if there is none."""
    if not done.phrase:
        return []
    from bethink.consent import MINUTES

    ways = (
        f"Only the user can confirm this: by sending `{done.phrase}` and nothing else as a message within {MINUTES} minutes, by running"
        " that in their own terminal, or in the inbox of the web page (`bethink ui`). Tell the user which memories it is about."
    )
    return [ways]


def note_lines(hints: Sequence[str]) -> list[str]:
    return [f"Note: {hint}" for hint in hints]


def talk_lines(
    session: Session, spans: Sequence[Span] | None, project: str = "", full: bool = False
) -> list[str]:
    """Describe a conversation by its topics, in `full` with sub-topics and summaries, or by its digest."""
    title = one_line(session.title or "untitled", 70)
    head = f"{date_and_time(session.started_at)}  {session.host}  {title}"
    lines = [style(head, "bold"), f"  {session.id}{project}"]
    if spans is None:
        return [*lines, *(f"  {line}" for line in digest_lines(session))]
    for span in spans:
        if full or not span.depth:
            margin, place = "  " * (span.depth + 1), "(lines {}-{})".format(*span.lines)
            lines.append(f"{margin}- {one_line(span.name or 'unnamed', 80)}  {place}")
            lines += indent(span.summary, margin + "    ") if full and span.summary else []
    return lines


# Items, and their two forms


def quote_memory(
    memory: Memory,
    names: Names,
    text: str | None = None,
    *,
    brief: bool = False,
    beside: tuple[str, ...] = (),
) -> Quote:
    """A memory as an item, with what keeps it from being believed, if anything does."""
    closed = {"todo": "done", "problem": "solved"}.get(memory.kind, "answered")
    state = closed if memory.answered else names.get(f"gone {memory.id}", "")
    if memory.newer:
        state = f"newer: {', '.join(names.get(id, id) for id in memory.newer)}"
    if memory.superseded_by:
        state = f"replaced by {names.get(memory.superseded_by, memory.superseded_by)}"
    if memory.deleted_at:
        state = "forgotten"
    project = f"in {names[memory.scope]}" if memory.scope in names else ""
    return Quote(
        names.get(memory.id, memory.id),
        memory.kind,
        memory.trust,
        citation(memory),
        memory.created_at,
        memory.content if text is None else text,
        ", ".join(filter(None, [state, project])),
        brief,
        beside,
    )


def quote_line(memory: Memory, names: Names, summary: str = "") -> Quote:
    """A memory on one line, by another summary than its own if one is given."""
    text = summary or memory.summary or cut_to(memory.content, _BRIEF)
    return quote_memory(memory, names, text, brief=True)


def quote_lines(memory: "Bethink", found: Sequence[Memory]) -> Items:
    """Memories on a line each."""
    names = short_ids(memory, found)
    return [quote_line(one, names) for one in found]


def quote_digests(memory: "Bethink", found: Sequence[Memory]) -> Items:
    """Digests of sessions: a line each for what was asked, done and left."""
    names = short_ids(memory, found)
    return [
        quote_memory(one, names, re.sub(r"\. (?=[A-Z]\w+: )", "\n", one.content)) for one in found
    ]


def quote_around(text: str, statement: str) -> str:
    """The part of a turn around a statement from it, on one line."""
    whole = " ".join(text.split())
    start, end = choose_excerpt(whole, Sought(frozenset(tokenize(statement)), ()), 2 * EXCERPT)
    return "… " * (start > 0) + whole[start:end] + " …" * (end < len(whole))


def item_lines(items: Sequence[Quote | str]) -> list[str]:
    """Lines for people: `01a1dd89  2026-11-15  decision  We use Postgres`, or a head and the text below.

    A statement that is too long for the line of its memory is on the next one, unless the item is to be `cut`.
    """
    room = max((len(item.id) for item in items if isinstance(item, Quote)), default=0)
    lines: list[str] = []
    for item in items:
        if isinstance(item, str):
            lines.append(style(one_line(item), "bold"))
            continue
        place = f"{item.id:<{room}}  {date(item.date)}  "
        head = style(f"{place}{item.kind:<12}  ", "dim")
        note = f" ({one_line(item.note)})" if item.note else ""
        if item.brief:
            left = max(_LEAST, width() - len(unstyle(head)) - len(note))
            text = one_line(item.text, left)
            if text == one_line(item.text) or item.cut:
                lines.append(head + text + note)
            else:
                head = style(f"{place}{item.kind}", "dim")
                lines += [head + note, f"  {one_line(item.text, _LONGEST_LINE)}"]
        else:
            beside = (f"  {one_line(line)}" for line in item.beside)
            lines += [head + one_line(item.origin) + note, *indent(item.text, "  "), *beside, ""]
    return lines if lines[-1:] != [""] else lines[:-1]


def quote_items(
    items: Iterable[Quote | str], notes: Sequence[str] = (), budget: int | None = None
) -> Block:
    """Return the items between marks, and behind them the notes. Over budget the items lose their end."""
    items, marker = list(items), new_marker()
    if not items:
        return join(notes)
    whole = fence_items(items, marker)
    text, longest = join([whole, *notes]), len(whole)
    while budget is not None and tokens(text) > budget and longest > _SHORTEST:
        longest = longest * 9 // 10
        text = join([fence_items(items, marker, longest), *notes])
    return text


# What is shown


def show_hits(memory: "Bethink", answer: Answer, explain: bool) -> Items:
    """Show a ranked list: each hit with an excerpt, its changes and, with `explain`, its score.

    A recap of a period is a list of dates instead.
    """
    from bethink.recall.features import explain_lines  # not for commands that ask nothing

    names, sought = _name_hits(memory, answer.hits), find_sought(answer.query)
    items: Items = []
    for hit in answer.hits:
        one = quote_line(hit.memory, names)
        if not answer.query.recap:
            whole = " ".join(hit.memory.content.split())
            start, end = choose_excerpt(whole, sought, EXCERPT)
            text = "… " * (start > 0) + whole[start:end] + "…" * (end < len(whole))
            if hit.memory.kind == "code" and not text.startswith(hit.memory.summary):
                text = f"{hit.memory.summary}\n{text}"
            note = ", ".join(filter(None, [f"score {hit.score:.2f}", one.note]))
            reasons = explain_lines(hit, answer.weights, memory.signals) if explain else ()
            related = [pair for pair in hit.related if pair[0].type != "relates_to"]
            beside = (*_quote_relations(hit.memory, related, names), *reasons)
            one = one._replace(text=text, note=note, beside=beside, brief=False)
        items.append(one)
    return items


def _name_hits(memory: "Bethink", hits: Sequence[Hit]) -> Names:
    related = [other.id for hit in hits for _, other in hit.related]
    return short_ids(memory, [hit.memory for hit in hits], related)


def _quote_whole(hit: Hit, names: Names, place: int) -> Quote:
    """A hit in full, with what its author added and what it is connected to.

    Beyond the best hits, only relations that change it are shown.
    """
    added = _quote_metadata(hit.memory)
    facts = [f"metadata: {added}"] if added else []
    related = hit.related
    if place >= CONNECTED_HITS:
        related = tuple(pair for pair in related if pair[0].type in CHANGING_RELATIONS)
    beside = (*facts, *_quote_relations(hit.memory, related, names))
    return quote_memory(hit.memory, names, beside=beside)


def describe_none(answer: Answer) -> str:
    """Explain why a page of an answer is empty."""
    return split_hints(answer)[0] or describe_empty(answer.total)


def split_hints(answer: Answer) -> tuple[str, list[str]]:
    """The hint that says that nothing is open, if there is one, and the others."""
    whole = [hint for hint in answer.hints if hint in (NOTHING_OPEN, *NONE_OPEN.values())]
    return "".join(whole), [hint for hint in answer.hints if hint not in whole]


def describe_empty(total: int) -> str:
    """Explain why a page is empty: nothing matches, or it begins after the last of `total`."""
    return f"The offset is beyond the last of {total:,}." if total else "No memories match."


def show_list(
    memory: "Bethink", found: Sequence[Memory], total: int, budget: int, offset: int
) -> ShownMemories:
    """Memories on a line each, as many as fit."""
    if not found:
        return ShownMemories([], [describe_empty(total)])
    form = Form(quoted=True)
    most = (
        f"{len(found)} of {10**9:,}. {WHOLE_TEXTS} The next begin at offset {offset + len(found)}."
    )
    left = _reserve([], most, budget)[1]
    items = quote_lines(memory, found)
    costs = accumulate(map(form.measure, items))
    items = items[: max(1, sum(used <= left for used in costs))]
    after = offset + len(items)
    summary = _describe_next(f"{len(items)} of {total:,}. {WHOLE_TEXTS}", after, total)
    return ShownMemories(items, [summary], after if after < total else None)


def show_memories(
    memory: "Bethink", found: Sequence[Memory], budget: int, quoted: bool = True
) -> Items:
    """Show memories in full with their relations, each within its share of the budget.

    One whose share is too small is shown on a line; if there is no room at all, the last are left out.
    """
    related = related_memories(memory, found)
    names = short_ids(memory, found, {other.id for pairs in related.values() for _, other in pairs})
    form, items = Form(quoted), Items()
    left = _reserve([], "", budget)[1] if quoted else budget
    for number, one in enumerate(found):
        connected = _quote_relations(one, related[one.id], names, most=20)
        beside = tuple(filter(None, [_quote_facts(one), *connected]))
        whole = quote_memory(one, names, "", beside=beside)
        frame = form.measure(whole)
        room = left // (len(found) - number) - frame
        text, line = one.content, quote_line(one, names)
        if form.measure_text(text) > room:
            note = f"\n[{len(text):,} characters in all; ask for it alone or with more max_tokens]"
            text = cut_to(text, max(0, room - tokens(note)), form.measure_text) + note
        if form.measure_text(text) > room:
            whole, frame, text = line, form.measure(line), ""
            if frame > left:
                break
        left -= form.measure_text(text) + frame if text else frame
        items.append(whole._replace(text=text) if text else whole)
    return items


def show_handoff(memory: "Bethink", found: "Latest") -> Items:
    """The last handoff with the memories that it names."""
    named = [
        one
        for one in memory.store.get(found.handoff.memory_ids)
        if one.scope in memory.scopes and not one.deleted_at
    ]
    names = short_ids(memory, [found.memory, *named])
    facts = _quote_object(found.handoff.metadata)
    whole = quote_memory(found.memory, names, beside=(f"metadata: {facts}",) if facts else ())
    return [whole, *(quote_line(one, names) for one in named)]


def _quote_facts(one: Memory) -> str:
    """Fields that differ from their default, each under its label."""
    infos = [info for info in fields_of(Memory).values() if info.is_shown("text")]
    facts = {info.label: _quote_fact(one, info) for info in infos}
    return "; ".join(f"{label}: {text}" for label, text in facts.items() if text)


def _quote_fact(one: Memory, info: FieldInfo) -> str:
    value: Any = getattr(one, info.name)
    if value == info.default:
        return ""
    match info.name:
        case "scope":
            return PERSONAL if value == PERSONAL else ""
        case "confidence":
            return f"{value:.0%}"
        case "usefulness":
            return f"{value:+g}"
        case "metadata":
            return _quote_metadata(one)
    match info.shape:
        case "number" | "whole":
            return f"{value:g}"
        case "time":
            return f"{value:%Y-%m-%d}"
        case "switch":
            return "yes" if value else "no"
        case "texts":
            return ", ".join(value)
        case "entities":
            return ", ".join(entity.name for entity in value)
        case "object":
            return _quote_object(value)
    return str(value)


def _quote_metadata(one: Memory) -> str:
    """Metadata added by the author. A handoff's repeats its text; a passage's is bookkeeping."""
    is_note = one.kind != "handoff" and one.source_type == "note"
    return _quote_object(one.metadata) if is_note else ""


def _quote_object(values: Values) -> str:
    return cut_to(json_text(dict(values), None), METADATA) if values else ""


def _quote_relations(
    one: Memory, related: Related, names: Names, most: int = _RELATED
) -> list[str]:
    lines, done = [], {relation[:2] for relation, _ in related if relation.type == "supersedes"}
    for relation, other in related[:most]:
        if relation.type == "may_replace" and relation[:2] in done:
            continue  # it was proposed, and has been done since
        forward, backward = RELATION_WORDS[relation.type]
        word = "which superseded"  # further back in a chain
        if one.id in (relation.source, relation.target):
            word = forward if relation.source == one.id else backward
        summary = " ".join((other.summary or other.content[:400]).split()[:RELATED_WORDS])
        head = f"{word} [{names.get(other.id, other.id)}]"
        lines.append(f"{head} {other.created_at:%Y-%m-%d}: {summary}")
    return lines
