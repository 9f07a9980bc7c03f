"""Templates → pages. Text of memories is escaped piece by piece, so that it can never become markup, and what would be unseen
in it, or would turn the text around it, is shown as what it is.

Knows no store and no request. Times are told as distances from now, with the exact time beside them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from bethink import __version__
from bethink.recall.excerpt import Sought, excerpt, places
from bethink.surface.web.visit import place

TEMPLATES = Path(__file__).parent / "templates"
LONGEST_ORIGIN = 60
NAVIGATION = (
    ("/", "Search"),
    ("/timeline", "Timeline"),
    ("/graph", "Graph"),
    ("/inbox", "Inbox"),
    ("/health", "Health"),
    ("/projects", "Projects"),
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


class Renderer:
    """Makes pages of templates; they are read once."""

    def __init__(self) -> None:
        self._environment = _environment()

    def __call__(self, template: str, values: Mapping[str, Any]) -> bytes:
        shared = {"now": datetime.now(UTC), "visit": None, "mark": ""}
        text = self._environment.get_template(template).render({**shared, **values})
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
        "seen": seen,
        "lit": lit,
        "excerpt": cut_out,
        "moment": moment,
        "address": address,
        "citation": citation,
        "origin": origin,
        "short": short,
        "number": number,
        "size": size,
        "worded": worded,
        "session_address": session_address,
        "spelled": spelled,
    }
    environment.globals |= {"navigation": NAVIGATION, "version": __version__}
    return environment


def seen(text: object) -> Markup:
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


def lit(text: str, sought: Sought | None) -> Markup:
    """A text with the words that were looked for marked."""
    parts, at = [], 0
    for start, end in places(text, sought) if sought else ():
        parts += [seen(text[at:start]), Markup("<mark>{}</mark>").format(seen(text[start:end]))]
        at = end
    return Markup("").join([*parts, seen(text[at:])])


def cut_out(text: str, sought: Sought | None, room: int = 320) -> Markup:
    """The part of a text that says most about what was looked for, marked."""
    start, end = excerpt(text, sought, room)
    before, after = "… " if start else "", " …" if end < len(text) else ""
    return Markup("{}{}{}").format(before, lit(text[start:end].strip(), sought), after)


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


def address(memory: Mapping[str, Any], **more: str) -> str:
    """Where a memory's page is. Anything with an id and a scope will do."""
    asked = urlencode({**place(str(memory.get("scope", ""))), **more})
    return f"/memory/{memory['id']}{'?' if asked else ''}{asked}"


def session_address(session: Mapping[str, Any], **more: str) -> str:
    """Where the page of a conversation is."""
    asked = urlencode({**place(str(session.get("scope", ""))), **more})
    return f"/session/{quote(str(session['id']), safe='')}{'?' if asked else ''}{asked}"


def spelled(text: str) -> str:
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
        return (
            f"{host} conversation, line {memory['lines'][0]}"
            if memory["lines"]
            else f"{host} conversation"
        )
    if memory["source"].startswith("note:"):
        return f"told by {memory['source'].removeprefix('note:').removeprefix('agent:')}"
    cited = citation(memory)
    return cited if len(cited) <= LONGEST_ORIGIN else f"…{cited[-LONGEST_ORIGIN:]}"


def short(id: str) -> str:
    return id[:13]


def number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def size(value: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return ""


def worded(names: Sequence[str] | str) -> str:
    """A name of ours as people write it: builds_on → builds on."""
    return names.replace("_", " ") if isinstance(names, str) else ", ".join(names)
