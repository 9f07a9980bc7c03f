"""Templates and filters. Text of memories is escaped piece by piece, so that it never becomes markup.

Invisible characters, and those that reverse the direction of text, are shown by their code. Times are shown as distances from now, with
the exact time as a tooltip. A difference between two texts is shown as pieces that were kept, removed or added. This module knows no
store and no request.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from bethink import __version__, agents
from bethink.app.render import RELATION_WORDS, brief, size, span
from bethink.model import KINDS, RELATIONS, Memory, Values
from bethink.recall.shape import Sought, choose_excerpt, citation, find_places

# Kinds that can be closed, and the state of one that is.
CLOSED = {"todo": "done", "question": "answered", "problem": "solved", "failure": "solved"}
_TEMPLATES = Path(__file__).parent / "templates"
_LINES, LINES_ROOM = 8, 400  # of code in a list, and the characters that choose them
# Characters that nobody sees or that turn the order of others. Joiners and variation selectors stay: Persian, Hindi and emoji
# are written with them. Tab and line feed stay.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)


def render_page(template: str, **values: object) -> bytes:
    """The page that a template makes of values."""
    return _environment().get_template(template).render(values).encode("utf-8", "replace")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    filters: tuple[Callable[..., Any], ...] = (
        *(
            show_unseen,
            highlight,
            cut_excerpt,
            format_text,
            format_line,
            format_code,
            headline,
            beneath,
            read_digest,
            cut_lines,
            cut_part,
            moment,
            cite,
        ),
        *(size, as_words, spell_unseen, diff, compare, place, name_relation, name_month, name_day),
    )
    environment.filters |= {one.__name__: one for one in filters}
    environment.filters["number"] = "{:,.0f}".format
    environment.globals |= {
        # What a page of nobody has not.
        "visit": None,
        "room": "",
        "projects": (),
        "scope_names": {},
        "project_hints": {},
        "changed": None,
        "newer": {},
        "closed": CLOSED,
        "version": __version__,
        "kinds": KINDS,
        "relations": RELATIONS,
        "hosts": agents.names(),
    }
    return environment


def show_unseen(text: object) -> Markup:
    """Escape a text, and make its invisible characters visible."""
    escaped = str(escape(str(text).replace("\r\n", "\n")))
    marked = '<span class="unseen">U+{:04X}</span>'
    return Markup(_UNSEEN.sub(lambda found: marked.format(ord(found[0])), escaped))


def highlight(text: str, sought: Sought | None) -> Markup:
    """Mark the search words in a text."""
    parts, at = [], 0
    for start, end in find_places(text, sought) if sought else ():
        parts += [
            show_unseen(text[at:start]),
            Markup("<mark>{}</mark>").format(show_unseen(text[start:end])),
        ]
        at = end
    return Markup("").join([*parts, show_unseen(text[at:])])


_SHORT = 320  # characters of a text that is its own headline


def headline(memory: Values) -> str:
    """A text for lists: all of a short statement, or the summary of a long one."""
    content, summary = str(memory["content"]).strip(), str(memory["summary"])
    if summary.startswith("```"):  # a turn that begins with a block of code
        lines = (line.strip() for line in content.split("\n"))
        return next(
            (line for line in lines if line.strip("`~") and not line.startswith("```")), summary
        )
    is_short = len(content) <= _SHORT and "\n" not in content and memory["kind"] != "code"
    cut_off = summary.endswith("…")
    starts = content.startswith(summary.rstrip("…. "))
    return content if is_short and (starts or cut_off) else summary.removesuffix(":")


_MARKS = re.compile(r"[\W_]+")


def beneath(memory: Values) -> str:
    """The text of a memory below its headline, without what the headline has already."""
    text, head = str(memory["content"]).strip(), headline(memory).strip().rstrip("…. ")
    if head and text.startswith(head):
        rest = text[len(head) :].lstrip(".: ")
        return rest if _MARKS.sub("", rest) else ""
    words, known = _MARKS.sub(" ", head).casefold().strip(), ""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        known = f"{known} {_MARKS.sub(' ', line).casefold().strip()}".strip()
        if not words.startswith(known):
            return "\n".join(lines[number:]).strip()
    return ""


def cut_excerpt(text: str, sought: Sought | None, room: int = 320) -> Markup:
    """The part of a text that fits the question best, as rendered Markdown."""
    start, end = choose_excerpt(text, sought, room)
    part = _drop_halves(text[start:end].strip())
    is_block = _ITEM.match(part) or _HEADING.match(part) or part.startswith(("```", "|", ">"))
    before, after = "… " if start and not is_block else "", " …" if end < len(text) else ""
    return format_text(f"{before}{part}{after}", sought)


def _drop_halves(part: str) -> str:
    """A part of a text without marks of bold whose other half was cut off."""
    lines = part.split("\n")
    if lines[0].count("**") % 2:
        lines[0] = lines[0].replace("**", "", 1)
    if lines[-1].count("**") % 2:
        before, _, after = lines[-1].rpartition("**")
        lines[-1] = before + after
    return "\n".join(lines)


_LONGEST_LINE = 2_000  # characters in which Markdown is looked for
_ITEM = re.compile(r"\s{0,12}(?:[-*+]|\d{1,3}[.)])\s+(?=\S)")
_BOX = re.compile(r"\[([ xX])\] ")
_HEADING = re.compile(r"#{1,6}\s+(?=\S)")
_RULE = re.compile(r"\s*(?:-{3,}|\*{3,}|_{3,})\s*")
_DIVIDER = re.compile(r"[\s|:-]+")
_CODE = re.compile(r"`(?P<code>[^`\n]+)`")
_INLINE = re.compile(
    r"`(?P<code>[^`\n]+)`|\*\*(?P<bold>[^*\s](?:[^*\n]*[^*\s])?)\*\*|(?<![\w*])\*(?P<em>[^*\s](?:[^*\n]*[^*\s])?)\*(?![\w*])"
    r"|~~(?P<gone>[^~\n]+)~~|!?\[(?P<name>[^\]\n]{1,300})\]\((?P<to>[^)\s]{1,500})\)"
)


def format_text(text: str, sought: Sought | None = None) -> Markup:
    """Render the Markdown of a text: paragraphs, headings, lists, quotes, tables, code.

    Everything else is escaped. Links keep their address as text: a page leads nowhere else.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    parts: list[Markup] = []
    at = 0
    while at < len(lines):
        end, part = _format_block(lines, at, sought)
        parts.append(part)
        at = end
    return Markup("").join(parts)


def _format_block(lines: list[str], at: int, sought: Sought | None) -> tuple[int, Markup]:
    """Render the block that begins at a line. Returns the line after it."""
    line = lines[at]
    if line.lstrip().startswith("```"):
        end = next(
            (n for n in range(at + 1, len(lines)) if lines[n].lstrip().startswith("```")),
            len(lines),
        )
        code = highlight("\n".join(lines[at + 1 : end]), sought)
        return end + 1, Markup("<pre class=code>{}</pre>").format(code)
    if not line.strip():
        return at + 1, Markup("")
    if found := _HEADING.match(line):
        heading = format_line(line[found.end() :].rstrip("# "), sought)
        return at + 1, Markup('<p class="heading">{}</p>').format(heading)
    if _RULE.fullmatch(line):
        return at + 1, Markup("<hr>")
    for is_of, show in (
        (_is_row, _format_table),
        (_is_item, _format_list),
        (_is_quote, _format_quote),
    ):
        if is_of(line):
            end = _find_end(lines, at, _goes_on if is_of is _is_item else is_of)
            return end, show(lines[at:end], sought)
    end = _find_end(lines, at, _is_plain)
    paragraph = Markup("\n").join(format_line(one, sought) for one in lines[at:end])
    return end, Markup("<p>{}</p>").format(paragraph)


def _find_end(lines: list[str], at: int, is_of: Callable[[str], object]) -> int:
    """The line after a block, whose first line belongs to it."""
    return next((n for n in range(at + 1, len(lines)) if not is_of(lines[n])), len(lines))


def _is_row(line: str) -> bool:
    bare = line.strip()
    return len(bare) > 2 and bare.startswith("|") and bare.endswith("|")


def _is_item(line: str) -> bool:
    return _ITEM.match(line) is not None


def _goes_on(line: str) -> bool:
    """Return True for another item of a list, or for more of its last one."""
    return _is_item(line) or (line.startswith("  ") and bool(line.strip()))


def _is_quote(line: str) -> bool:
    return line.startswith(">")


def _is_plain(line: str) -> bool:
    special = (_HEADING.match, _is_item, _RULE.fullmatch, _is_row, _is_quote)
    code = line.lstrip().startswith("```")
    return bool(line.strip()) and not code and not any(is_of(line) for is_of in special)


def _format_table(lines: list[str], sought: Sought | None) -> Markup:
    """Render rows between bars. The first one is the head if a divider follows."""
    is_headed = len(lines) > 1 and _DIVIDER.fullmatch(lines[1]) is not None
    rows = []
    for number, line in enumerate(lines):
        if _DIVIDER.fullmatch(line):
            continue
        cell = Markup("<th scope=col>{}</th>" if is_headed and not number else "<td>{}</td>")
        cells = (format_line(one.strip(), sought) for one in line.strip()[1:-1].split("|"))
        rows.append(Markup("<tr>{}</tr>").format(Markup("").join(map(cell.format, cells))))
    return Markup("<div class=scroll tabindex=0><table>{}</table></div>").format(
        Markup("").join(rows)
    )


def _format_list(lines: list[str], sought: Sought | None) -> Markup:
    """Render the items of a list, however deep, each with its number if it has one."""
    joined: list[str] = []
    for line in lines:
        if _is_item(line) or not joined:
            joined.append(line)
        else:
            joined[-1] += f" {line.strip()}"
    items = []
    for line in joined:
        found = _ITEM.match(line)
        start = found.end() if found else 0
        rest, mark = line[start:], line[:start].strip()
        if box := _BOX.match(rest):
            rest, mark = rest[box.end() :], "☐" if box[1] == " " else "☑"
        mark = "•" if mark in ("-", "*", "+") else mark
        depth = min((len(line) - len(line.lstrip())) // 2, 3)
        shown = Markup('<li class="depth-{}"><span>{}</span> <span>{}</span></li>')
        items.append(shown.format(depth, mark, format_line(rest, sought)))
    return Markup('<ul class="points">{}</ul>').format(Markup("").join(items))


def _format_quote(lines: list[str], sought: Sought | None) -> Markup:
    quoted = (format_line(line.lstrip("> "), sought) for line in lines)
    return Markup("<blockquote>{}</blockquote>").format(Markup("\n").join(quoted))


def format_line(text: str, sought: Sought | None = None) -> Markup:
    """Render the Markdown inside a line: code, bold, emphasis, and the name and address of a link."""
    if text.endswith("…") and text.count("`") % 2:  # the other half was cut off
        text = "".join(text.rsplit("`", 1))
    return _format_pieces(text, sought, _INLINE)


def format_code(text: str) -> Markup:
    """Render only the code inside a line, for texts that are commands for the most part."""
    return _format_pieces(text, None, _CODE)


def _format_pieces(text: str, sought: Sought | None, pattern: re.Pattern[str]) -> Markup:
    if len(text) > _LONGEST_LINE:
        return highlight(text, sought)
    parts, at = [], 0
    for found in pattern.finditer(text):
        parts += [highlight(text[at : found.start()], sought), _format_piece(found, sought)]
        at = found.end()
    return Markup("").join([*parts, highlight(text[at:], sought)])


def _format_piece(found: re.Match[str], sought: Sought | None) -> Markup:
    if code := found["code"]:
        return Markup("<code>{}</code>").format(highlight(code, sought))
    if "name" in found.re.groupindex and (name := found["name"]):
        address = found["to"]
        if address == name or ("://" not in address and address.endswith(name.strip("`"))):
            return format_line(name, sought)  # which says where it leads
        address = show_unseen(address)
        shown = Markup('{} <span class="address">({})</span>')
        return shown.format(highlight(name, sought), address)
    tag, text = next(
        (tag, found[group])
        for tag, group in (("strong", "bold"), ("em", "em"), ("s", "gone"))
        if found[group]
    )
    # Code may be inside.
    return Markup(f"<{tag}>{{}}</{tag}>").format(format_line(text, sought))


_NAMED_LINE = re.compile(r"[A-Z]\w{2,14}: ")


def read_digest(text: str) -> dict[str, str] | None:
    """Parts of a summary whose lines are `Name: text`; None for any other text."""
    lines = text.strip().split("\n")
    if not all(_NAMED_LINE.match(line) for line in lines):
        return None
    return {name: rest for name, _, rest in (line.partition(": ") for line in lines)}


def cut_lines(text: str, sought: Sought | None) -> Markup:
    """The lines of code that fit the question best, with its words marked."""
    start = text.rfind("\n", 0, choose_excerpt(text, sought, LINES_ROOM)[0]) + 1
    lines = text[start:].splitlines()
    more = "\n…" if len(lines) > _LINES else ""
    return Markup("{}{}{}").format(
        "…\n" if start else "", highlight("\n".join(lines[:_LINES]), sought), more
    )


def cut_part(text: str, room: int, statement: str = "") -> Markup:
    """Render whole lines of a long text as Markdown: those around a statement in it, else the first."""
    at = max(0, text.find(statement.strip()[:80])) if statement else 0
    start = text.rfind("\n", 0, max(0, at - room // 3)) + 1
    end = text.find("\n", start + room)
    end = end if 0 < end < start + 2 * room else start + room
    part = text[start:end].strip("\n")
    return format_text(f"{'…' if start else ''}{part}{' …' if end < len(text) else ''}")


def moment(value: str | datetime | None) -> Markup:
    """A time for people: how long ago, and on demand exactly when."""
    if value is None:
        return Markup("never")
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:  # an agent's own words in a transcript
        return show_unseen(value)
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    exact = f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    seconds = (datetime.now(UTC) - at).total_seconds()
    distance = f"{span(seconds)} ago" if seconds > 0 else f"in {span(-seconds)}"
    if abs(seconds) < 60:
        distance = "now"
    elif abs(seconds) >= 365 * 86400:
        distance = exact[:10]
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        at.isoformat(), exact, distance
    )


def spell_unseen(text: str) -> str:
    """Spell out the invisible characters of a text, for places without markup."""
    return _UNSEEN.sub(lambda found: f"[U+{ord(found.group()):04X}]", text)


def place(scope: str) -> dict[str, str]:
    """Address parameters of a scope. Personal memories need none."""
    kind, _, rest = scope.partition(":")
    if kind == "container":
        project, _, name = rest.partition("/")
        return {"project": f"project:{project}", "container": name}
    return {"project": scope} if kind == "project" else {}


def shorten_path(path: str) -> str:
    """The last parts of a folder's path, with `~` for the home folder."""
    if not path:
        return ""
    with suppress(ValueError, RuntimeError):
        path = f"~/{Path(path).relative_to(Path.home()).as_posix()}"
    parts = path.split("/")
    return path if len(parts) <= 3 else f"…/{'/'.join(parts[-2:])}"


# Plainer than the names of the relations.
_RELATION_WORDS = {
    "supersedes": ("replaces", "replaced by"),
    "may_replace": ("may replace", "may be replaced by"),
}


def name_relation(type: str, direction: str) -> str:
    """Name a relation as one of its ends sees it: `replaces`, or `replaced by`."""
    forward, backward = _RELATION_WORDS.get(type) or RELATION_WORDS[type]
    return forward if direction == "out" else backward


def cite(memory: Values) -> str:
    """Source of a memory: `docs/auth.md:12-40`, or who added it."""
    # Only a memory from a transcript cites its turn.
    kind = "transcript" if memory["metadata"].get("turn") else "note"
    return citation(cast(Memory, SimpleNamespace(**{"source_type": kind, **memory})))


def name_month(month: str) -> str:
    """`2026-03` as people write it."""
    return f"{datetime.fromisoformat(f'{month}-01'):%B %Y}"


def name_day(day: str) -> str:
    """`2026-03-04` as people write it, with the day of the week."""
    at = datetime.fromisoformat(day)
    return f"{at:%A}, {at.day} {at:%B %Y}"


def as_words(value: object) -> str:
    """A value of a memory as people write it."""
    return f"{value:g}" if isinstance(value, float) else brief(value) or "nothing"


# What changed

MOST_PIECES = 2_000  # words of a text that are compared; more would take seconds
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")


def diff(before: str, after: str) -> list[tuple[str, str]]:
    """Pieces that were kept, removed or added: word by word, or line by line for long texts."""
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    if max(len(old), len(new)) > MOST_PIECES:
        old, new = before.splitlines(True), after.splitlines(True)
    pieces = []
    for change, start, stop, first, last in SequenceMatcher(None, old, new).get_opcodes():
        kept = change == "equal"
        pieces.append(("kept" if kept else "gone", "".join(old[start:stop])))
        pieces.append(("new", "" if kept else "".join(new[first:last])))
    return [piece for piece in pieces if piece[1]]


_ALIKE = 0.5  # of the longer text, from which on differences are marked; set by hand


def compare(one: Values, other: Values) -> tuple[list[tuple[bool, str]], list[tuple[bool, str]]]:
    """The pieces of two short texts, each with whether the other lacks it; none if they hardly agree."""
    texts = [str(memory["content"]).strip() for memory in (one, other)]
    if any(text != headline(memory) for text, memory in zip(texts, (one, other), strict=True)):
        return [], []
    pieces = diff(*texts)
    kept = sum(len(text) for change, text in pieces if change == "kept")
    if kept < _ALIKE * max(map(len, texts)):
        return [], []
    first, second = (
        [(change == side, text) for change, text in pieces if change in ("kept", side)]
        for side in ("gone", "new")
    )
    return first, second
