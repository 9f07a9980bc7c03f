"""Templates → pages. Text of memories is escaped piece by piece, so that it can never become markup, and what would be unseen
in it, or would turn the text around it, is shown as what it is.

Knows no store and no request. Times are told as distances from now, with the exact time beside them. What changed between two
texts is shown as pieces that were kept, taken out or put in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from bethink import __version__
from bethink.hosts import HOSTS
from bethink.recall.shape import Sought, choose_excerpt, find_places
from bethink.surface.render import size
from bethink.surface.web.visit import EVERY, place
from bethink.types import KINDS

TEMPLATES = Path(__file__).parent / "templates"
LONGEST_ORIGIN = 60
LINES, LINES_ROOM = 8, 400  # of code in a list, and the characters that choose them
NAVIGATION = (
    ("/", "Home"),
    ("/search", "Search"),
    ("/timeline", "Timeline"),
    ("/graph", "Graph"),
    ("/inbox", "Inbox"),
    ("/health", "Health"),
)
# Characters that nobody sees or that turn the order of others. Joiners and variation selectors stay: Persian, Hindi and emoji
# are written with them. Tab and line feed stay.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
_STEPS = (
    (60, "second", 1),
    (3600, "minute", 60),
    (86400, "hour", 3600),
    (30 * 86400, "day", 86400),
    (365 * 86400, "month", 30 * 86400),
)


def render_page(template: str, values: Mapping[str, Any]) -> bytes:
    """The page that a template makes of values."""
    empty: dict[str, Any] = {
        "visit": None,
        "room": "",
        "mark": "",
        "projects": (),
        "scope_names": {},
    }
    shared = {"now": datetime.now(UTC), **empty}
    text = _environment().get_template(template).render({**shared, **values})
    return text.encode("utf-8", "replace")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {
        "seen": show_unseen,
        "lit": highlight,
        "excerpt": cut_excerpt,
        "formatted": format_text,
        "lines": cut_lines,
        "project_address": project_address,
        "moment": moment,
        "address": address,
        "citation": citation,
        "origin": origin,
        "short": short,
        "number": number,
        "size": size,
        "worded": as_words,
        "session_address": session_address,
        "spelled": spell_unseen,
    }
    environment.globals |= {
        "navigation": NAVIGATION,
        "version": __version__,
        "kinds": KINDS,
        "hosts": HOSTS,
    }
    return environment


def show_unseen(text: object) -> Markup:
    """A text as it is, with what is unseen in it made visible."""
    return Markup("").join(_visible(str(text)))


def _visible(text: str) -> list[Markup]:
    text = text.replace("\r\n", "\n")
    parts, at = [], 0
    for found in _UNSEEN.finditer(text):
        parts.append(escape(text[at : found.start()]))
        parts.append(Markup('<span class="unseen">U+{:04X}</span>').format(ord(found.group())))
        at = found.end()
    return [*parts, escape(text[at:])]


def highlight(text: str, sought: Sought | None) -> Markup:
    """A text with the words that were looked for marked."""
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
    """A text whose code is shown as code: fenced blocks, and what stands in backticks where these come in pairs."""
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
    more = "\n…" if len(lines) > LINES else ""
    return Markup("{}{}{}").format(
        "…\n" if start else "", highlight("\n".join(lines[:LINES]), sought), more
    )


def moment(value: str | datetime | None, now: datetime) -> Markup:
    """A time for people: how long ago, and on demand exactly when."""
    if value is None:
        return Markup("never")
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    exact = f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        at.isoformat(), exact, _distance((now - at).total_seconds(), at)
    )


def _distance(seconds: float, at: datetime) -> str:
    if abs(seconds) < 45:
        return "now"
    if abs(seconds) >= 365 * 86400:
        return f"{at:%Y-%m-%d}"
    unit, length = next((name, length) for bound, name, length in _STEPS if abs(seconds) < bound)
    count = max(1, round(abs(seconds) / length))
    told = f"{count} {unit}{'s' * (count != 1)}"
    return f"{told} ago" if seconds > 0 else f"in {told}"


@pass_context
def address(context: Context, memory: Mapping[str, Any], **more: str) -> str:
    """Where a memory's page is. Anything with an id and a scope will do."""
    return _address(f"{context['room']}/memory/{memory['id']}", memory, more)


@pass_context
def project_address(context: Context, project: Mapping[str, Any]) -> str:
    """The page that is shown, of another project; from a page of one memory or conversation the first page."""
    visit, scope = context["visit"], str(project["scope"])
    page = visit.address if visit.address in dict(NAVIGATION) else "/"
    asked = {"project": scope} if scope == EVERY else {} if scope == visit.own else place(scope)
    return f"{visit.room}{page}?{urlencode(asked)}" if asked else f"{visit.room}{page}"


@pass_context
def session_address(context: Context, session: Mapping[str, Any], **more: str) -> str:
    """Where the page of a conversation is."""
    id = quote(str(session["id"]), safe="")
    return _address(f"{context['room']}/session/{id}", session, more)


def _address(path: str, of: Mapping[str, Any], more: Mapping[str, str]) -> str:
    asked = urlencode({**place(str(of.get("scope", ""))), **more})
    return f"{path}?{asked}" if asked else path


def spell_unseen(text: str) -> str:
    """A text for places that hold no markup, with what is unseen in it written out."""
    return _UNSEEN.sub(lambda found: f"[U+{ord(found.group()):04X}]", text)


def citation(memory: Mapping[str, Any]) -> str:
    """Where a memory came from, exactly: `docs/auth.md:12-40`, or who told it."""
    origin = str(memory["path"] or memory["source"])
    if lines := memory["lines"]:
        return f"{origin}:{lines[0]}" if lines[0] == lines[1] else f"{origin}:{lines[0]}-{lines[1]}"
    return origin


def origin(memory: Mapping[str, Any]) -> str:
    """The same in few words."""
    host = memory["metadata"].get("host")
    if memory["session"] and host:
        line = f", line {memory['lines'][0]}" if memory["lines"] else ""
        return f"{host} conversation{line}"
    if memory["source"].startswith("note:"):
        return f"told by {memory['source'].removeprefix('note:').removeprefix('agent:')}"
    cited = citation(memory)
    return cited if len(cited) <= LONGEST_ORIGIN else f"…{cited[-LONGEST_ORIGIN:]}"


def short(id: str) -> str:
    return id[:13]


def number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def as_words(names: Sequence[str] | str) -> str:
    """A name of ours as people write it: builds_on → builds on."""
    return names.replace("_", " ") if isinstance(names, str) else ", ".join(names)


# What changed

MOST_PIECES = 2_000  # of a text that are compared with each other; more would take seconds
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")


class Piece(NamedTuple):
    change: str  # kept, gone or new
    text: str


def diff(before: str, after: str) -> list[Piece]:
    """Word by word where that is affordable, else line by line, else the one text and then the other."""
    for cut in (_WORDS.findall, lambda text: text.splitlines(keepends=True)):
        old, new = cut(before[: MOST_PIECES * 50]), cut(after[: MOST_PIECES * 50])
        if (
            len(old) <= MOST_PIECES
            and len(new) <= MOST_PIECES
            and len(before) + len(after) < MOST_PIECES * 100
        ):
            return _compare(old, new)
    return [Piece("gone", before), Piece("new", after)]


def _compare(old: list[str], new: list[str]) -> list[Piece]:
    """What both begin and end with is set aside first: what is left is mostly short, and words that stand everywhere in it would
    otherwise be compared with each other, all with all."""
    begins = _common(old, new)
    ends = _common(old[begins:][::-1], new[begins:][::-1])
    before, after = old[begins : len(old) - ends], new[begins : len(new) - ends]
    pieces = [Piece("kept", "".join(old[:begins]))]
    for change, start, end, begin, stop in SequenceMatcher(None, before, after).get_opcodes():
        if change == "equal":
            pieces.append(Piece("kept", "".join(before[start:end])))
        else:
            pieces += [
                Piece("gone", "".join(before[start:end])),
                Piece("new", "".join(after[begin:stop])),
            ]
    pieces.append(Piece("kept", "".join(old[len(old) - ends :])))
    return [piece for piece in pieces if piece.text]


def _common(one: list[str], other: list[str]) -> int:
    """How many pieces two lists begin with together."""
    return next(
        (at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right),
        min(len(one), len(other)),
    )
