"""The pages, one function each. Every change can be undone from the page that follows.

A page is a function of a visit, which runs in a thread. It gets its data through `Visit.ask`, from an operation of the API: the same
checks, the same limits, the same objects as over REST. Presentation is in the templates.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from math import ceil, log1p
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import QueryParams
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from bethink.api import Bethink
from bethink.app.http import api
from bethink.app.http.projects import Projects
from bethink.app.http.security import Caller, Grant
from bethink.app.operation import Parameter, parse_text
from bethink.app.render import pick
from bethink.app.web import WebSession
from bethink.app.web.render import place, render_page, shorten_path, spell_unseen
from bethink.errors import InvalidInput, NotFound, Overtaken, UsageError
from bethink.features.browse import FACET_VALUES, MENTIONS, PERIODS, WEAK, WEEKS
from bethink.features.inbox import ACTS, PAIRS, QUEUES
from bethink.model import EVERYTHING, KINDS, NOTHING, FieldInfo, Json, Memory, Values
from bethink.recall.query import parse
from bethink.recall.shape import find_sought
from bethink.schema import argument_fields, json_fields

_ALL, _PERSONAL = "all", "personal"  # in the place of a project: more than one, and none
_WIDER = {_ALL: "all_projects", _PERSONAL: "personal"}  # and what operations call that


class Visit(NamedTuple):
    """One request of a signed-in user: a page, or a form."""

    caller: Caller
    projects: Projects
    session: WebSession
    mark: str  # what every form of this visitor carries
    address: str  # the path, without the room and without what was asked
    query: QueryParams
    path: Mapping[str, str] = NOTHING  # the parts of the address that the page names
    last_visit: datetime | None = None  # when this browser looked at the first page before
    form: Mapping[str, str] = NOTHING  # of a POST; a field that is repeated as a comma list

    @property
    def room(self) -> str:
        """Prefix of every address of this visitor."""
        return self.session.room

    def parameter(self, name: str) -> str:
        """A parameter of the address; nothing where it was not given."""
        return self.query.get(name, "").strip()

    def parameters(self, *names: str) -> Json:
        """Those of these parameters that were given."""
        return {name: value for name in names if (value := self.parameter(name))}

    @property
    def navigation(self) -> "dict[str, MenuItem]":
        """The menu, by path. Health is about the whole database."""
        sees_all = self.caller.projects is None and not self.caller.tenant
        return {path: item for path, item in NAVIGATION.items() if sees_all or path != "/health"}

    @property
    def where(self) -> Json:
        """The project that the visit is about, for addresses: nothing for the visitor's own."""
        return self.parameters("project", "container")

    @property
    def own(self) -> str:
        """The project that is meant where none is named: the server's, or the first that a member may see."""
        home = self.projects.home.scope
        granted = [grant.scope for grant in self.caller.projects or ()]
        return home if self.caller.sees(home) or not granted else granted[0]

    def ask(self, name: str, /, **arguments: object) -> Any:
        """Run an operation of the API in the project of this visit: `visit.ask("search", query="deploy")`.

        Texts are read as people type them: a list has commas between its parts.
        """
        endpoint = api.ENDPOINTS[name]
        takes = {name: parameter for parameter in endpoint.takes for name in parameter.names}
        values = self._place
        if (wider := _WIDER.get(self.where.get("project", ""))) and wider in takes:
            values[wider] = True
        values |= {name: _read_value(value, takes[name]) for name, value in arguments.items()}
        return api.perform(endpoint, self.caller, self.projects, values)

    @property
    def _place(self) -> Json:
        """The project and container of this visit, as operations take them."""
        place = self.where
        if place.get("project") in _WIDER:
            del place["project"]
        if self.own != self.projects.home.scope:
            place.setdefault("project", self.own)
        return place

    def find_newer(self, memories: Iterable[Values]) -> dict[str, list[Json]]:
        """Newer memories about the subject of each memory, as far as this user may see them."""
        place = self._place
        view = self.projects.view(self.caller, place.get("project"), place.get("container"))
        scopes = view.every_scope() if self.where.get("project") == _ALL else view.scopes
        marked = {
            one["id"]: one["newer"] for one in memories if one["newer"] and not one["superseded_by"]
        }
        found = load_newer(view, marked, scopes)
        return {id: [pick(one, "id scope summary") for one in newer] for id, newer in found.items()}

    def at(self, address: str, scope: str | None = None, /, **more: str | int | None) -> str:
        """An address of these pages, for the same project or that of a scope."""
        where = self.where if scope is None else place(scope)
        asked = urlencode({name: value for name, value in {**where, **more}.items() if value})
        return f"{self.room}{quote(address)}" + (f"?{asked}" if asked else "")

    def again(self, **more: str | int | None) -> str:
        """The address of this page with something else asked."""
        return self.at(self.address, **{**self.query, "part": None, **more})

    def show(self, template: str, status: int = 200, /, **values: object) -> Response:
        """The page that a template makes of values."""
        listed = self.projects.list_visible(self.caller)
        every = self.query.get("project") == _ALL
        hints = self._distinguish(listed)
        names = {
            one.scope: " ".join(filter(None, (one.name, hints.get(one.scope, ""))))
            for one in listed
            if every
        }
        frame = {
            "visit": self,
            "room": self.room,
            "projects": listed,
            "scope_names": names,
            "project_hints": hints,
            "changed": self._find_changed(),
        }
        return HTMLResponse(render_page(template, **frame, **values), status)

    def _distinguish(self, listed: Sequence[Grant]) -> dict[str, str]:
        """For projects with the same name: the folder of each, or the beginning of its id."""
        counts = Counter(one.name for one in listed)
        same = [one for one in listed if counts[one.name] > 1]
        folders = self.projects.list_folders(self.caller) if same else {}
        short = {one.scope: one.scope.partition(":")[2][:6] for one in same}
        return {
            one.scope: shorten_path(folders.get(one.scope, "")) or short[one.scope] for one in same
        }

    def _find_changed(self) -> Json | None:
        """The change that was just made from this page, if the memory is still there."""
        id, done = self.parameter("of"), self.parameter("done")
        if not id or not done or self.address not in NAVIGATION:
            return None
        with suppress(UsageError):
            memory = self.ask("get", id=id, count=False, **place(self.parameter("scope")))
            return {"memory": memory, "done": done, "effect": self.parameter("effect")[:40]}
        return None

    def go(self, address: str, /, **more: str | int | None) -> Response:
        """Redirect to another page after a change, so that a reload repeats nothing."""
        return RedirectResponse(self.at(address, **more), 303)

    def go_back(self, **more: str) -> Response | None:
        """Redirect to the page whose form was sent, if the form names one of this visitor's pages."""
        page, _, query = self.form.get("back", "").partition("?")
        if page not in {self.room + path for path in NAVIGATION}:
            return None
        return RedirectResponse(f"{page}?{urlencode([*parse_qsl(query), *more.items()])}", 303)


Page = Callable[[Visit], Response]
AnyPage = TypeVar("AnyPage", bound=Page)
ShownOn = Callable[[Visit, str, int], Response]  # a page with the reason why its form was refused


class PageRoute(NamedTuple):
    """A page or a form: its method and its path below the visitor's room."""

    method: str
    path: str
    run: Page


class MenuItem(NamedTuple):
    name: str
    key: str  # after g


PAGES: list[PageRoute] = []  # in the order in which addresses are matched
NAVIGATION: dict[str, MenuItem] = {}  # path → item, of the pages that the menu lists


def page(path: str, name: str = "", key: str = "") -> Callable[[AnyPage], AnyPage]:
    """Register a page. With a name it is listed in the menu, and opened by `g` and its key."""

    def register(run: AnyPage) -> AnyPage:
        PAGES.append(PageRoute("GET", path, run))
        if name:
            NAVIGATION[path] = MenuItem(name, key)
        return run

    return register


def form(path: str, shown_on: ShownOn) -> Callable[[Page], Page]:
    """Register the target of a form. If the form is refused, its page is shown again with the reason."""

    def register(run: Page) -> Page:
        PAGES.append(PageRoute("POST", path, partial(send_form, run, shown_on)))
        return run

    return register


def load_newer(
    memory: Bethink, marked: Mapping[str, Sequence[str]], scopes: Sequence[str]
) -> dict[str, list[Memory]]:
    """Newer memories named by each memory's mark, as far as they are in these scopes, newest first."""
    ids = sorted({id for newer in marked.values() for id in newer})
    found = {one.id: one for one in memory.store.get(ids) if one.scope in scopes} if ids else {}
    newest = partial(sorted, key=attrgetter("created_at"), reverse=True)
    return {id: newest(found[one] for one in newer if one in found) for id, newer in marked.items()}


def _read_value(value: object, parameter: Parameter) -> Any:
    if not isinstance(value, str):
        return value
    return _split(value) if parameter.many else parse_text(value, parameter)


def _split(text: str) -> list[str]:
    return [part for one in text.split(",") if (part := one.strip())]


def send_form(run: Page, shown_on: ShownOn, visit: Visit) -> Response:
    """Run a form. If it is refused, show its page again with the reason and with the input."""
    try:
        return run(visit)
    except Overtaken:
        return shown_on(visit, MEANWHILE, 409)
    except UsageError as error:
        return shown_on(visit, error.full_message, 422)


# Home: changes since the last visit, open items, and what agents were shown.

_FIRST = "7d"  # period shown on the first visit
_WIDER_PERIODS = ("30d", "365d", "3650d")  # if nothing is new
_LEVELS = 4  # of colour in the calendar
_SHOWN = 6  # memories that agents were shown


@page("/", "Home", "h")
def show_home(visit: Visit, wrong: str = "", status: int = 200) -> Response:
    last = visit.last_visit.isoformat() if visit.last_visit else _FIRST
    since, wider = visit.parameter("since") or last, ""
    found = visit.ask("recent", since=since)
    empty = not found["days"] and not visit.ask("list", limit=1)["total"]
    if not visit.parameter("since") and not empty:
        # After a first import everything is older than a week.
        periods = iter(_WIDER_PERIODS)
        while not found["newest"] and not found["sessions"] and (wider := next(periods, "")):
            found = visit.ask("recent", since=wider)
    return visit.show(
        "home.html",
        status,
        **found,
        wider=wider,
        empty=empty,
        waiting=_count_waiting(visit),
        calendar=_draw_calendar(found["days"], visit.projects.base.clock()),
        newer=visit.find_newer([*found["newest"], *found["open"]]),
        shown=_sum_up_shown(visit),
        open_total=_count_open(visit)[""],
        wrong=wrong,
    )


def _count_waiting(visit: Visit) -> dict[str, Json]:
    """Number of items in each queue of the inbox page."""
    found = visit.ask("inbox-counts")["queues"]
    return {name: size for name, size in found.items() if name in SHOWN_QUEUES}


def _sum_up_shown(visit: Visit) -> Json:
    """Memories that agents were shown: how many were used, and some of each sort."""
    found = visit.ask("shown")
    used = [one for one in found["items"] if one["memory"]["access_count"]]
    unused = [one for one in found["items"] if not one["memory"]["access_count"]]
    which = visit.parameter("shown")
    listed = {"used": used, "unused": unused}.get(which, found["items"])
    numbers = {"all": len(found["items"]), "used": len(used), "unused": len(unused)}
    items = listed if which else listed[:_SHOWN]
    return {"sessions": found["sessions"], "numbers": numbers, "items": items, "which": which}


@form("/undo", show_home)
def undo(visit: Visit) -> Response:
    """Undo the visitor's last change."""
    steps = visit.ask("undo")["items"]
    last = steps[-1] if steps else {"id": "", "scope": "", "effect": ""}
    if last["id"] and visit.form.get("back", "").startswith(f"{visit.room}/memory/{last['id']}"):
        return visit.go(f"/memory/{last['id']}", done="undone", effect=last["effect"])
    outcome = {"done": "undone", "of": last["id"], "scope": last["scope"], "effect": last["effect"]}
    return visit.go_back(**outcome) or visit.go("/", **outcome)


def _draw_calendar(days: Mapping[str, int], now: datetime) -> list[Json]:
    """A cell for each day. Days differ by orders of magnitude, so colour goes by the logarithm."""
    today, most = now.date(), log1p(max(days.values(), default=0)) or 1.0
    monday = today - timedelta(days=today.weekday(), weeks=WEEKS - 1)
    dates = [monday + timedelta(days=number) for number in range((today - monday).days + 1)]
    counts = {date.isoformat(): days.get(date.isoformat(), 0) for date in dates}
    return [
        {"level": ceil(log1p(count) / most * _LEVELS), "day": day, "memories": count}
        for day, count in counts.items()
    ]


# A new memory: a dialog on every page, and a separate page where no script runs.


@page("/add")
def show_form(visit: Visit, wrong: str = "", status: int = 200) -> Response:
    return visit.show("add.html", status, wrong=wrong)


@form("/add", show_form)
def add(visit: Visit) -> Response:
    note = {
        "content": _clean(visit.form.get("content", "")),
        "kind": visit.form.get("kind") or None,
        "tags": _split(visit.form.get("tags", "")),
    }
    answer = visit.ask("add", memories=[note], personal=bool(visit.form.get("personal")))
    outcome = answer["outcomes"][0]
    if outcome["status"] == "purged":
        raise InvalidInput("This text was purged earlier, so it is not stored again.")
    id, is_new = outcome.get("duplicate_of") or outcome["id"], outcome["status"] == "added"
    if here := visit.go_back(of=id, done="added" if is_new else "duplicate"):
        return here
    return visit.go(
        f"/memory/{id}",
        done=outcome["status"],
        redactions=outcome.get("redactions"),
        effects=",".join(f"{name}:{id}" for name, id in list_effects(outcome)),
    )


class Effect(NamedTuple):
    """The effect of a new note on another memory, or a suggestion."""

    text: str  # before the link to the other memory
    made: str = ""  # the relation that was added, which Undo removes
    offered: str = ""  # the relation that a button adds
    label: str = ""  # of the button


SHOWN_EFFECTS = {
    "replaces": Effect("This replaces", made="supersedes"),
    "closes": Effect("This closes", made="answers"),
    "newer": Effect("This is newer than", offered="supersedes", label="Replace it"),
    "may-replaces": Effect("This may replace", offered="supersedes", label="Replace it"),
    "may-answers": Effect("This may answer", offered="answers", label="Close it"),
    "may-completes": Effect("This may complete", offered="answers", label="Close it"),
    "may-same": Effect("This may say the same as", offered="supersedes", label="Replace it"),
    "similar": Effect("This is very similar to", offered="supersedes", label="Replace it"),
}
MOST_EFFECTS = 10  # that are shown after a note was added


def list_effects(outcome: Values) -> list[tuple[str, str]]:
    """Effects of a new note: a name in `EFFECTS` and the id of the other memory, each memory once."""
    found = [
        *(("replaces", id) for id in outcome.get("supersedes", ())),
        *(("closes", id) for id in outcome.get("settles", ())),
        *(("newer", id) for id in outcome.get("marks", ())),
        *((f"may-{one['relation']}", one["id"]) for one in outcome.get("proposals", ())),
        *(("similar", id) for id in [outcome.get("similar")] if id),
    ]
    first = {id: name for name, id in reversed(found)}
    return [(name, id) for name, id in found if first[id] == name]


def _read_effects(text: str) -> list[tuple[Effect, str]]:
    """Read the effects in an address or a form; unknown ones are left out."""
    parts = [effect.partition(":") for effect in _split(text)[:MOST_EFFECTS]]
    return [(SHOWN_EFFECTS[name], id) for name, _, id in parts if name in SHOWN_EFFECTS]


def _load_effects(visit: Visit) -> list[tuple[Effect, Json]]:
    """Effects named in the address of a memory's page, with the other memories that still exist."""
    found = []
    for effect, id in _read_effects(visit.parameter("effects")):
        with suppress(UsageError):
            found.append((effect, visit.ask("get", id=id, count=False)))
    return found


@page("/live")
def send_state(visit: Visit) -> Response:
    """Something that changes whenever a memory comes or goes, of what the visitor looks at alone."""
    found = visit.ask("list", limit=1)
    newest = found["items"][0]["id"] if found["items"] else ""
    return Response(f"{found['total']} {newest}", media_type="text/plain")


# Search: results while one types, facets with numbers, marked words, and why each was found. Without a question, what is newest.

HITS = 20  # on a page
_RANKED = 100  # hits of a question that are counted by facet; the most that the API gives
_PASSAGES = ("document", "code")  # kinds that come last
_TURNS = ("context",)  # and those that come after statements: what was said, word for word
_SECTIONS = {  # title → kinds
    "Notes and decisions": tuple(kind for kind in KINDS if kind not in _TURNS + _PASSAGES),
    "From conversations": _TURNS,
    "From files": _PASSAGES,
}
_FEW = {"From conversations": 5, "From files": 8}  # hits on the first page
_SURE = 3  # hits that are shown however weak they are
FILTERS = ("kind", "entity", "source", "host", "tag", "since", "until", "session")
FACETS = {  # parameter of the address → label
    "kind": "Kind",
    "since": "Time",
    "host": "Agent",
    "tag": "Tag",
    "entity": "About",
    "source": "File",
}


@page("/search", "Search", "s")
def show_search(visit: Visit) -> Response:
    question = visit.parameter("q")
    values: Json = {"question": question, "sought": None, "wrong": "", "weaker": 0, "facets": {}}
    values["narrowed"] = bool(visit.parameters("hidden", *FILTERS))
    try:
        values |= _search(visit, question)
        values["newer"] = visit.find_newer(values["items"])
        if question:
            values["sought"] = find_sought(parse(question, visit.projects.base.clock()))
    except UsageError as error:
        values["wrong"] = error.full_message
    part = visit.query.get("part") == "results"
    template = "results.html" if part else "search.html"
    return visit.show(template, 422 if values["wrong"] else 200, facet_labels=FACETS, **values)


def _search(visit: Visit, question: str) -> Json:
    """Search or list, with facets.

    For a question strong matches come first, with the number of weaker ones: statements, then turns, then passages of files.
    """
    wanted: Json = visit.parameters("offset", *FILTERS)
    wanted |= EVERYTHING if visit.query.get("hidden") else {}
    if not question:
        narrowed = {name: value for name, value in wanted.items() if name != "offset"}
        counts = visit.ask("facets", **narrowed)
        listed, left = _list_newest(visit, wanted)
        return {"hints": [], "facets": counts, "sections": [("", listed["items"], left)], **listed}
    found: Json = visit.ask("search", query=question, explain=True, **wanted, limit=_RANKED)
    facets = count_facets(found["items"], visit.projects.base.clock())
    strong = count_strong([hit["score"] for hit in found["items"]])
    weaker = found["total"] - strong
    if visit.parameters("rest", "offset"):
        strong, weaker = len(found["items"]), 0
    items = found["items"][:strong]
    return {**found, "weaker": weaker, "facets": facets, "items": items, **_divide(visit, items)}


class Left(NamedTuple):
    """Hits of a section that are not on the page, and the filter that shows them."""

    number: int
    title: str
    kinds: str


def _list_newest(visit: Visit, wanted: Json) -> tuple[Json, list[Left]]:
    """List the newest statements, and count the turns and passages that are left out if nothing is asked."""
    if not visit.parameters(*FILTERS):
        statements, *others = _SECTIONS.items()
        listed = visit.ask("list", **wanted, kind=",".join(statements[1]), limit=HITS)
        if listed["total"]:
            one = {**wanted, "offset": None, "limit": 1}
            counts = [
                Left(
                    visit.ask("list", **one, kind=",".join(kinds))["total"], title, ",".join(kinds)
                )
                for title, kinds in others
            ]
            return listed, [left for left in counts if left.number]
    return visit.ask("list", **wanted, limit=HITS), []


def _divide(visit: Visit, items: Sequence[Json]) -> Json:
    """Sections of hits: title, hits, and those left out."""
    found: dict[str, list[Json]] = {title: [] for title in _SECTIONS}
    for hit in items:
        found[_name_section(hit)].append(hit)
    found = {title: hits for title, hits in found.items() if hits}
    if len(found) < 2:
        return {"sections": [("", items, [])]}
    few = {} if visit.parameters("rest", "offset") else _FEW
    return {
        "sections": [
            (
                title,
                hits[:most],
                [Left(len(hits) - most, title, ",".join(_SECTIONS[title]))]
                if most < len(hits)
                else [],
            )
            for title, hits in found.items()
            for most in [few.get(title, len(hits))]
        ]
    }


def _name_section(hit: Values) -> str:
    """Title of the section of a hit.

    The summary of a session answers a question about it, as a note would.
    """
    if "in_time" in hit.get("why", ()):
        return next(iter(_SECTIONS))
    return next(title for title, kinds in _SECTIONS.items() if hit["kind"] in kinds)


def count_facets(items: Sequence[Json], now: datetime) -> Json:
    """Count hits by each facet."""
    ages = [(now - datetime.fromisoformat(hit["created_at"])).days for hit in items]

    def count(values: Iterable[object]) -> dict[str, int]:
        return dict(Counter(str(value) for value in values if value).most_common(FACET_VALUES))

    return {
        "kind": count(hit["kind"] for hit in items),
        "since": {name: sum(age < days for age in ages) for name, days in PERIODS.items()},
        "host": count(hit["metadata"].get("host") for hit in items),
        "tag": count(tag for hit in items for tag in hit["tags"]),
        "entity": count(entity["name"] for hit in items for entity in hit["entities"]),
        "source": count(hit["path"] for hit in items if not hit["session"]),
    }


def count_strong(scores: Sequence[float]) -> int:
    """Count the hits before the tail: up to the last whose score is a good part of the best."""
    least = max(scores, default=0.0) * WEAK
    last = max((at for at, score in enumerate(scores, 1) if score >= least), default=0)
    return max(last, min(_SURE, len(scores)))


# To-dos: the open items of all sessions, with a box that closes each.

LEDGER = ("todo", "question", "problem")
_TODOS = 100  # on a page
_AGES = {"Today": 1, "This week": 7, "This month": 30, "Older": 100_000}  # → days


@page("/todos", "To-dos", "t")
def show_todos(visit: Visit, wrong: str = "", status: int = 200) -> Response:
    kind, is_done = visit.parameter("kind"), visit.parameter("show") == "done"
    kinds = kind if kind in LEDGER else ",".join(LEDGER)
    order = "updated" if is_done else "created"
    wanted = {"kind": kinds, "answered": is_done, "order": order, "limit": _TODOS}
    found = visit.ask("list", **wanted, **visit.parameters("offset"))
    now = visit.projects.base.clock()
    groups = [
        (name, list(group)) for name, group in groupby(found["items"], partial(_name_age, now))
    ]
    return visit.show(
        "todos.html",
        status,
        **found,
        groups=[("", found["items"])] if is_done else groups,
        is_done=is_done,
        kind=kind if kind in LEDGER else "",
        numbers=_count_open(visit),
        newer=visit.find_newer(found["items"]),
        wrong=wrong,
    )


def _name_age(now: datetime, memory: Values) -> str:
    days = (now - datetime.fromisoformat(memory["created_at"])).days
    return next(name for name, most in _AGES.items() if days < most)


def _count_open(visit: Visit) -> dict[str, int]:
    """Number of open items of each kind, and under "" of all."""
    open = {"answered": False, "limit": 1}
    found = {kind: visit.ask("list", kind=kind, **open)["total"] for kind in LEDGER}
    return {"": sum(found.values()), **found}


# Sessions by day with their topics as bands; and one of them, turn by turn, with what was taken from it.


@page("/sessions", "Sessions", "c")
def show_sessions(visit: Visit) -> Response:
    return visit.show(
        "sessions.html", **visit.ask("timeline", **visit.parameters("host", "offset"))
    )


_TURNS_SHOWN, _TURNS_LOOKED = 50, 100  # turns on a page, and those that are looked through at once
_MOST_LOOKS = 30  # for one turn; a bound on time


@page("/session/{id}")
def show_session(visit: Visit) -> Response:
    """The turns of a conversation; with `turn`, the page that has it."""
    id, asked = visit.path["id"], visit.parameters("offset", "topic")
    if turn := visit.parameter("turn"):
        asked = {"offset": _find_page(visit, id, turn)}
    turns = visit.ask("turns", id=id, **asked, limit=_TURNS_SHOWN)
    return visit.show("session.html", session=visit.ask("topics", id=id), **turns)


def _find_page(visit: Visit, id: str, turn: str) -> int:
    """Offset of the page of a conversation that has a turn; 0 if none has."""
    start: int | None = 0
    for _ in range(_MOST_LOOKS):
        found = visit.ask("turns", id=id, offset=start, limit=_TURNS_LOOKED)
        at = next((at for at, one in enumerate(found["items"]) if one["id"] == turn), None)
        if start is not None and at is not None:
            return (start + at) // _TURNS_SHOWN * _TURNS_SHOWN
        if (start := found["next"]) is None:
            break
    return 0


# Failures: failed commands, why they failed, and what fixed them.

_FAILURES = 100  # on the page


@page("/failures", "Failures", "f")
def show_failures(visit: Visit) -> Response:
    unsolved = visit.parameter("show") == "unsolved"
    fixed = visit.parameter("show") == "fixed"
    found = visit.ask("failures", open=unsolved, limit=_FAILURES)
    full = len(found["items"]) == _FAILURES
    if fixed:
        found = {"items": [one for one in found["items"] if not one["open"]]}
    rules = visit.ask("enforced")["items"]
    return visit.show(
        "failures.html", **found, unsolved=unsolved, fixed=fixed, full=full, rules=rules
    )


# The inbox: items that need a decision, a key for each decision, and a way to undo it.

DECISIONS, _LINES = 10, 50  # pairs on a page, and single memories
SHOWN_QUEUES = tuple(name for name in QUEUES if name != "questions")  # these have a separate page


@page("/inbox", "Inbox", "i")
def show_inbox(visit: Visit, wrong: str = "", status: int = 200) -> Response:
    asked = visit.parameter("queue")
    waiting = _count_waiting(visit)
    first = next((name for name, size in waiting.items() if size["number"]), SHOWN_QUEUES[0])
    queue = asked if asked in SHOWN_QUEUES else first
    limit = DECISIONS if queue in PAIRS else _LINES
    found = visit.ask("inbox", queue=queue, limit=limit, **visit.parameters("start"))
    single = [] if queue in PAIRS else [item["memories"][0] for item in found["items"]]
    return visit.show(
        "inbox.html",
        status,
        **found,
        newer=visit.find_newer(single),
        waiting=waiting,
        acts=ACTS,
        wrong=wrong,
    )


@form("/inbox", show_inbox)
def decide(visit: Visit) -> Response:
    act = visit.form.get("act", "")
    done = visit.ask("decide", act=act, ids=visit.form.get("ids", ""))
    here = visit.parameters("queue", "start")
    return visit.go("/inbox", **here, done=act, undo=done["undo"], ids=",".join(done["ids"]))


# The timeline: how the statements about a subject changed.

TIMELINE_KINDS = (
    *("decision", "conclusion", "preference", "architecture", "pattern", "gotcha"),
    *("discovery", "solution", "fact"),
)
_EVENTS = 60  # statements on a page
_SUBJECTS = 14  # offered
_FILE_NAME = re.compile(r"[/\\]|\.[a-z]{1,5}$", re.I)


@page("/timeline", "Timeline", "l")
def show_timeline(visit: Visit) -> Response:
    question, thing = visit.parameter("q"), visit.parameter("entity")
    asked = visit.parameter("kind")
    wanted: Json = {"kind": asked if asked in TIMELINE_KINDS else ",".join(TIMELINE_KINDS)}
    everything = {**wanted, "include_superseded": True, "limit": _EVENTS}
    offset = visit.parameters("offset")
    values: Json = {"wrong": "", "next": None, "items": [], "total": 0}
    try:
        if question:
            found = visit.ask("search", query=question, **everything)
            hits = found["items"][: count_strong([hit["score"] for hit in found["items"]])]
            values |= {"items": hits, "total": len(hits)}
        else:
            values |= visit.ask("list", **everything, **visit.parameters("entity"), **offset)
    except UsageError as error:
        values["wrong"] = error.full_message
    # How a subject changed is read forwards, the news backwards.
    is_about = bool(question or thing)
    # Of two statements from the same moment the replaced one is the older.
    items = sorted(
        values["items"],
        key=lambda one: (one["created_at"], not one["superseded_by"]),
        reverse=not is_about,
    )
    months = [
        (name, list(group)) for name, group in groupby(items, lambda one: one["created_at"][:7])
    ]
    return visit.show(
        "timeline.html",
        422 if values["wrong"] else 200,
        **{**values, "items": items},
        months=months,
        by_id={one["id"]: one for one in items},
        replaced=_find_replaced(items),
        question=question,
        thing=thing,
        kinds_stated=TIMELINE_KINDS,
        subjects=_list_subjects(visit),
    )


def _list_subjects(visit: Visit) -> list[str]:
    """The things that most statements are about. Names of files are none: they change with every edit."""
    named = visit.ask("facets", kind=",".join(TIMELINE_KINDS))["entity"]
    return [name for name in named if not _FILE_NAME.search(name)][:_SUBJECTS]


def _find_replaced(items: Sequence[Json]) -> dict[str, list[Json]]:
    """Those of these statements that each of them replaced."""
    found: dict[str, list[Json]] = {}
    for one in items:
        if one["superseded_by"]:
            found.setdefault(one["superseded_by"], []).append(one)
    return found


# The graph around a focus: drawn by a script, and listed for everybody else. `/graph/data` is what the script asks for.

SIZES = {40: 2, 80: 2, 200: 3, 500: 4}  # nodes at most → steps outwards
USUAL = 80


@page("/graph", "Graph", "g")
def show_graph(visit: Visit) -> Response:
    asked = _read_graph(visit)
    found = _drop_isolated(visit.ask("graph", **asked))
    nodes = _list_nodes(found)
    more = {"asked": asked, "sizes": SIZES, "subjects": _list_subjects(visit)}
    return visit.show("graph.html", **{**found, "nodes": nodes}, **more)


@page("/graph/data")
def send_graph(visit: Visit) -> Response:
    """The same as JSON; with `open` the surroundings of one node, as many as are asked for."""
    asked = _read_graph(visit)
    if opened := visit.query.get("open"):
        asked = {"focus": opened, "limit": visit.parameter("limit"), "depth": 1}
    found = _drop_isolated(visit.ask("graph", **asked))
    for node in found["nodes"]:
        node["label"] = spell_unseen(" ".join(re.sub(r"`|\*\*", "", node["label"]).split()))
    return Response(api.encode(found), media_type=api.JSON)


def _read_graph(visit: Visit) -> Json:
    """Focus and size of the graph."""
    size = next((size for size in SIZES if str(size) == visit.query.get("size")), USUAL)
    return {**visit.parameters("focus", "query"), "limit": size, "depth": SIZES[size]}


def _drop_isolated(found: Json) -> Json:
    """Leave out nodes that nothing is connected to, if any other is: they belong to no subject."""
    tied = {end for edge in found["edges"] for end in (edge["source"], edge["target"])}
    kept = [node for node in found["nodes"] if node["id"] in tied or node["id"] in found["focus"]]
    return {**found, "nodes": kept if tied else found["nodes"]}


def _list_nodes(found: Values) -> list[Json]:
    """Each node with what it is connected to; the focus, then those with most connections first."""
    nodes = {node["id"]: {**node, "ties": []} for node in found["nodes"]}
    for edge in found["edges"]:
        source, target, type = nodes[edge["source"]], nodes[edge["target"]], edge["type"]
        there, back = ("about", "in") if type == MENTIONS else (type, f"← {type}")
        source["ties"].append((there, target))
        target["ties"].append((back, source))
    focus = found["focus"]
    return sorted(nodes.values(), key=lambda node: (node["id"] not in focus, -len(node["ties"])))


# Health: what the agents brought in, what waits, size and growth, cost, speed, and what `bethink doctor` says.


@page("/health", "Health", "d")
def show_health(visit: Visit) -> Response:
    return visit.show("health.html", **visit.ask("condition"))


# Projects: what each scope and container holds, who else can see it, and a copy of it to take away.


@page("/projects")
def show_projects(visit: Visit) -> Response:
    listed = visit.ask("projects")["items"]
    readers = visit.ask("token")["items"] if visit.caller.owner else []
    return visit.show("projects.html", listed=listed, readers=readers)


@page("/projects/export")
def export(visit: Visit) -> Response:
    """Export a project as JSON lines, forgotten and replaced memories included."""
    lines = api.stream(visit.ask("export"), visit.projects.run)
    headers = {"Content-Disposition": 'attachment; filename="bethink.jsonl"'}
    return StreamingResponse(lines, 200, headers, api.JSON_LINES)


# One memory: its text, its origin with the context there, its history and its relations.

CONTEXT_TURNS = 2  # turns or passages before and after
FIRST_FIELDS = ("content", "summary")  # of the form, before the others
# Labels of the form and of the facts where they differ from the declared ones.
_LABELS = {"content": "Text", "entities": "About"}
PLACEHOLDERS = {
    "expires": "30d, 2030-03-01",
    "tags": "release, backend",
    "entities": "technology:Redis, person:Ada",
}
# Fields with a special form on the page.
PLACED = (
    "scope",
    "path",
    "section",
    "importance",
    "confidence",
    "usefulness",
    "valid_to",
    "expires_at",
    "tags",
    "entities",
)
# Metadata that readers of transcripts keep for themselves, or that the page shows elsewhere.
_BOOKKEEPING = ("turn", "role", "host", "firm", "places", "course")
MEANWHILE = (
    "This memory changed while you were editing it. The current text is above; yours is below."
)


@page("/memory/{id}")
def show_memory(visit: Visit, wrong: str = "", status: int = 200) -> Response:
    """The page; with what was typed into the form for changes, where that could not be followed."""
    id, typed = visit.path["id"], _read_changes(visit)
    memory = visit.ask("get", id=id, count=False)
    return visit.show(
        "memory.html",
        status,
        memory=memory,
        events=visit.ask("history", id=id)["items"],
        chain=visit.ask("versions", id=id)["items"],
        reason=visit.ask("reason", id=id),
        around=visit.ask("around", id=id, turns=CONTEXT_TURNS)["items"],
        newer=visit.find_newer([memory]),
        effects=_load_effects(visit),
        form=_fill_form(memory) | typed,
        form_fields=list_form_fields(),
        label_field=label_field,
        placeholders=PLACEHOLDERS,
        facts=list_facts(memory),
        editing=bool(typed),
        wrong=wrong,
    )


def list_form_fields() -> list[FieldInfo]:
    """Fields of a memory that the form for changes offers, as `model.Memory` declares them."""
    shown = [info for info in argument_fields("update").values() if info.is_shown("form")]
    return sorted(shown, key=lambda info: info.name not in FIRST_FIELDS)


def list_facts(memory: Values) -> list[tuple[str, Any]]:
    """Label and value of the declared fields that have no special place on the page."""
    own = {name: value for name, value in memory["metadata"].items() if name not in _BOOKKEEPING}
    values = {**memory, "metadata": own}
    return [
        (label_field(info), values[name])
        for name, info in json_fields().items()
        if info.is_shown("text") and name not in PLACED and values[name] not in (None, "", [], {})
    ]


def label_field(info: FieldInfo) -> str:
    return _LABELS.get(info.name, info.label.capitalize())


def _read_changes(visit: Visit) -> dict[str, str]:
    names = (info.argument for info in list_form_fields())
    return {name: _clean(visit.form[name]) for name in names if name in visit.form}


def _fill_form(memory: Values) -> dict[str, str]:
    """The values of the form for changes, as people write them."""
    return {info.argument: _write_value(memory[info.name], info) for info in list_form_fields()}


def _write_value(value: object, info: FieldInfo) -> str:
    if value is None:
        return ""
    if isinstance(value, int | float) and info.shape in ("number", "whole"):
        return f"{value:g}"
    if info.shape == "time":
        return str(value)[:10]
    if isinstance(value, list) and info.shape == "texts":
        return ", ".join(value)
    if isinstance(value, list) and info.shape == "entities":
        return ", ".join(f"{one['type']}:{one['name']}" for one in value)
    return str(value).lower() if info.shape == "switch" else str(value)


@form("/memory/{id}/edit", show_memory)
def edit(visit: Visit) -> Response:
    """Save the changed fields, unless the memory was changed meanwhile."""
    id = visit.path["id"]
    known = _fill_form(visit.ask("get", id=id, count=False))
    typed = _read_changes(visit).items()
    changed: Json = {name: value for name, value in typed if value != _clean(known[name])}
    if changed:
        clearable = {info.argument for info in list_form_fields() if info.clearable}
        changed |= {
            name: None for name, value in changed.items() if name in clearable and not value
        }
        visit.ask("update", id=id, updated_at=visit.form.get("updated_at"), **changed)
    return visit.go(f"/memory/{id}", done="saved" if changed else "")


@form("/memory/{id}/undo-add", show_memory)
def undo_add(visit: Visit) -> Response:
    """Forget a new note, and restore what it replaced or closed."""
    id = visit.path["id"]
    scope = visit.ask("get", id=id, count=False)["scope"]
    for effect, other in _read_effects(visit.form.get("effects", "")):
        if effect.made:
            visit.ask("unlink", id=id, target=other, type=effect.made)
    answer = visit.ask("forget", id=id)
    here = visit.go_back(done=answer["status"], of=id, scope=scope)
    return here or visit.go(f"/memory/{id}", done=answer["status"])


def _clean(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


class Action(NamedTuple):
    """Something else that a form does with a memory."""

    operation: str  # of the API
    takes: tuple[str, ...] = ()  # fields of the form
    values: Values = NOTHING  # and values that are always the same


PAGE_ACTIONS = {
    "forget": Action("forget"),
    "restore": Action("restore", ("version",)),
    "vote": Action("vote", ("value",)),
    "link": Action("link", ("target", "type")),
    "unlink": Action("unlink", ("target", "type")),
    "close": Action("update", values={"answered": True}),
    "trust": Action("decide", values={"act": "trust"}),
    "distrust": Action("decide", values={"act": "undo-trust"}),
    "reopen": Action("update", values={"answered": False}),
}


@form("/memory/{id}/{action}", show_memory)
def change(visit: Visit) -> Response:
    """Run an action on a memory. `of` names the source of a relation if it is another memory."""
    id, name = visit.path["id"], visit.path["action"]
    if name not in PAGE_ACTIONS:
        raise NotFound(f"Unknown action: {name[:40]}")
    action = PAGE_ACTIONS[name]
    values = ((field, _clean(visit.form.get(field, ""))) for field in action.takes)
    fields = {field: value for field, value in values if value}
    source = visit.form.get("of", id)
    target = {"ids": source} if action.operation == "decide" else {"id": source}
    answer = visit.ask(action.operation, **target, **fields, **action.values)
    done = "saved" if "version" in fields else answer.get("status", name)
    here = visit.go(f"/memory/{id}", done=done, of=source if source != id else "", **fields)
    return visit.go_back(done=done, of=id, scope=answer.get("scope", "")) or here
