"""Templates and filters. Text of memories is escaped piece by piece, so that it never becomes markup.

Invisible characters, and those that reverse the direction of text, are shown by their code. Times are shown as distances from now, with
the exact time as a tooltip. A difference between two texts is shown as pieces that were kept, removed or added. This module knows no
store and no request.
"""

import re
from collections.abc import Callable
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
CLOSED = {"todo": "done", "question": "answered", "problem": "solved"}
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
        *(show_unseen, highlight, cut_excerpt, format_text, cut_lines, moment, cite),
        *(size, as_words, spell_unseen, diff, place, name_relation),
    )
    environment.filters |= {one.__name__: one for one in filters}
    environment.filters["number"] = "{:,.0f}".format
    environment.globals |= {
        # What a page of nobody has not.
        "visit": None,
        "room": "",
        "projects": (),
        "scope_names": {},
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


def cut_excerpt(text: str, sought: Sought | None, room: int = 320) -> Markup:
    """The part of a text that says most about what was looked for, marked."""
    start, end = choose_excerpt(text, sought, room)
    before, after = "… " if start else "", " …" if end < len(text) else ""
    return Markup("{}{}{}").format(before, format_text(text[start:end].strip(), sought), after)


def format_text(text: str, sought: Sought | None = None) -> Markup:
    """Mark code in a text: fenced blocks, and words in paired backticks."""
    parts: list[Markup] = []
    for at, block in enumerate(text.split("```")):
        if at % 2:
            parts.append(Markup("<pre class=code>{}</pre>").format(highlight(block, sought)))
            continue
        pieces = block.split("`")
        if len(pieces) % 2 == 0:  # one has no other
            pieces = [block]
        for number, piece in enumerate(pieces):
            shown = highlight(piece, sought)
            parts.append(Markup("<code>{}</code>").format(shown) if number % 2 else shown)
    return Markup("").join(parts)


def cut_lines(text: str, sought: Sought | None) -> Markup:
    """The lines of code that say most about what was looked for, marked."""
    start = text.rfind("\n", 0, choose_excerpt(text, sought, LINES_ROOM)[0]) + 1
    lines = text[start:].splitlines()
    more = "\n…" if len(lines) > _LINES else ""
    return Markup("{}{}{}").format(
        "…\n" if start else "", highlight("\n".join(lines[:_LINES]), sought), more
    )


def moment(value: str | datetime | None) -> Markup:
    """A time for people: how long ago, and on demand exactly when."""
    if value is None:
        return Markup("never")
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
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


def name_relation(type: str, direction: str) -> str:
    """Name a relation as one of its ends sees it: `supersedes`, or `superseded by`."""
    forward, backward = RELATION_WORDS[type]
    return forward if direction == "out" else backward


def cite(memory: Values) -> str:
    """Source of a memory: `docs/auth.md:12-40`, or who added it."""
    return citation(cast(Memory, SimpleNamespace(**memory)))


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
