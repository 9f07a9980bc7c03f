"""The pages as one application beside the API: who is let in, which page it is, and what is shown when that fails.

`Gate` has checked Host and Origin before. Here a cookie is needed for everything but the files that a page is made of, and the
mark of its session for every change. Everybody's pages stand under a path of their own, their room (`WebSession.room`). The owner comes with a ticket of `bethink ui`, members of a team with their token; what a member may
see and do is looked up with every page, so that a token that is revoked ends its sessions.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Message, Receive, Scope, Send

from bethink.errors import BethinkError, NotFound, StoreBusy, StoreError, StoreUnavailable
from bethink.surface.http import operations
from bethink.surface.http.api import Tools, read_body, stream
from bethink.surface.http.security import (
    SESSION,
    TITLES,
    Admission,
    Caller,
    Refusal,
    WrongToken,
    as_refusal,
    hash_token,
)
from bethink.surface.web import pages
from bethink.surface.web.render import render_page
from bethink.surface.web.session import (
    COOKIE_SECONDS,
    Sessions,
    WebSession,
    load_key,
    note_visit,
)
from bethink.surface.web.visit import EVERY, PAGES, Go, PageAnswer, Sent, SitePage, Visit

__all__ = ["PAGES", "Site", "pages"]

FILES = Path(__file__).parent / "static"
STATIC, ENTER, LEAVE, SIGN_IN = "/static", "/enter", "/leave", "/signin"
SEEN_SECONDS = 365 * 86400  # for which a browser keeps when it looked last
MOST_FIELDS = 1000
LONGEST_COOKIES = 16_384  # characters, of all servers on this machine
AGAIN = "3"  # seconds after which a page that met a locked database tries again
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self';"
        " base-uri 'none'; frame-ancestors 'none'"
    ),
    # Nothing about a page goes to other sites. With `no-referrer` a browser would hide the origin of our own forms, too.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_ROOM = re.compile(r"/~[\w-]{1,64}(?=/)")

log = logging.getLogger("bethink")


class Site:
    """Everything that a browser is shown."""

    def __init__(self, tools: Tools, admission: Admission) -> None:
        self._tools, self._admission = tools, admission
        self._began = time.time()
        paths = list(dict.fromkeys(page.path for page in PAGES))
        routes = [
            Mount(STATIC, StaticFiles(directory=FILES)),
            Route(ENTER, self._enter, methods=["GET"]),
            Route(LEAVE, self._leave, methods=["POST"]),
            Route(SIGN_IN, self._sign_in, methods=["POST"]),
            *map(self._route, paths),
        ]
        self._app = Starlette(routes=routes, exception_handlers={HTTPException: self._answer_error})
        self._app.router.redirect_slashes = False
        own = (STATIC, ENTER, LEAVE, SIGN_IN, *paths)
        self._first_parts = frozenset(path.split("/")[1] for path in own)

    def owns(self, path: str) -> bool:
        """Whether an address is a page and not part of the API."""
        parts = path.split("/", 2)
        return len(parts) > 1 and (parts[1] in self._first_parts or bool(_ROOM.match(path)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        own = HEADERS | ({"Cache-Control": "no-cache"} if scope["path"].startswith(STATIC) else {})

        async def send_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(own)
            await send(message)

        if room := _ROOM.match(scope["path"]):
            scope["root_path"] = room.group()
        await self._app(scope, receive, send_headers)

    def _route(self, path: str) -> Route:
        by_method = {page.method: page for page in PAGES if page.path == path}

        async def endpoint(request: Request) -> Response:
            method = "GET" if request.method == "HEAD" else request.method
            return await self._answer(request, by_method[method])

        return Route(path, endpoint, methods=list(by_method))

    async def _answer(self, request: Request, page: SitePage) -> Response:
        session = self._session(request)
        if session is None:
            return self._ask_to_sign_in(request)
        try:
            caller = await self._caller(session)
        except BethinkError as error:  # a token that was revoked, or a database out of reach
            return self._ask_to_sign_in(request, error)
        request.scope["bethink.caller"] = caller
        kept = next(iter(_find_cookies(request, "-seen")), "")
        looks = request.headers.get("sec-fetch-dest", "document") == "document"
        seen, last = note_visit(kept, time.time(), looks)
        room = request.scope["root_path"]
        visit = Visit(
            caller,
            self._tools,
            room,
            self._sessions.mark(session),
            page.method,
            request.url.path.removeprefix(room),
            {name: str(value) for name, value in request.path_params.items()},
            request.query_params,
            datetime.fromtimestamp(last, UTC) if last else None,
        )

        def work() -> Response:
            try:
                return self._response(visit, page.run(visit))
            except BethinkError as error:
                return self._trouble(visit, error)

        try:
            if page.method == "POST":
                visit = visit._replace(form=await self._form(request, session))
            response = await self._tools.projects.run(work)
        except Exception as error:  # noqa: BLE001 - the boundary of the pages: whatever fails is told in a sentence
            response = self._trouble(visit, error)
        due = self._sessions.renew(session) if session.cookie in _find_cookies(request) else session
        if due is not None:
            self._set_cookie(response, request, due, due.cookie, COOKIE_SECONDS)
        if page.path == "/":
            self._set_cookie(response, request, session, seen, SEEN_SECONDS, "-seen")
        return response

    # Who

    @cached_property
    def _sessions(self) -> Sessions:
        """Made with the first page: a server that shows none needs no key. Where it cannot be kept, one that ends with the server."""
        try:
            key = load_key(self._admission.tokens.file.parent)
        except (BethinkError, OSError) as error:
            log.warning("Nobody can sign in to the web page: %s", error)
            key = secrets.token_bytes(32)
        return Sessions(key, began=self._began)

    def _session(self, request: Request) -> WebSession | None:
        """Whose visit it is: a cookie of ours, in its own room."""
        room = request.scope["root_path"]
        for cookie in _find_cookies(request):
            session = self._sessions.find(cookie)
            if session and session.room == room:
                return session
        return None

    async def _caller(self, session: WebSession) -> Caller:
        if not session.token:
            return SESSION
        return await asyncio.to_thread(self._admission.identify, session.token)

    def _set_cookie(
        self,
        response: Response,
        request: Request,
        session: WebSession,
        value: str,
        seconds: int,
        name: str = "",
    ) -> None:
        """With no seconds the browser drops it."""
        response.set_cookie(
            _cookie_name(request) + name,
            value,
            seconds,
            path=session.room,
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )

    async def _form(self, request: Request, session: WebSession) -> dict[str, str]:
        """The fields of a form that is of this session."""
        fields = await _read_fields(request)
        if not self._sessions.is_genuine(session, fields.pop("mark", "")):
            raise Refusal(
                403,
                "This form is not of this session, so nothing was changed.",
                "Go back, reload the page, and try again.",
            )
        return fields

    async def _enter(self, request: Request) -> Response:
        """Takes a ticket and gives a cookie for it. The page goes on by itself, which takes the ticket out of the address and the
        history; a redirect would not do, because a browser that came from a program or another site keeps the cookie back then."""
        ticket = request.query_params.get("ticket", "") if request.method == "GET" else ""
        session = self._sessions.enter(ticket)
        if session is None:
            wrong = WrongToken(401, "The ticket is not known.", "`bethink ui` makes a new one.")
            return self._ask_to_sign_in(request, wrong)
        return self._admit(request, session)

    async def _sign_in(self, request: Request) -> Response:
        """Takes the token of a member and gives a cookie for it, which opens what the token opens for as long as that holds."""
        try:
            hash = hash_token((await _read_fields(request)).get("token", "").strip())
            await asyncio.to_thread(self._admission.identify, hash)
        except BethinkError as error:
            return self._ask_to_sign_in(request, error)
        return self._admit(request, self._sessions.begin(token=hash))

    def _admit(self, request: Request, session: WebSession) -> Response:
        project = request.query_params.get("project", "")
        asked = f"?{urlencode({'project': project})}" if project else ""
        room = session.room
        response = _show("enter.html", {"room": room, "address": f"{room}/{asked}"})
        self._set_cookie(response, request, session, session.cookie, COOKIE_SECONDS)
        return response

    async def _leave(self, request: Request) -> Response:
        session = self._session(request)
        if session is None:
            return self._ask_to_sign_in(request)
        try:
            await self._form(request, session)
        except Refusal as error:
            return _show("trouble.html", _explain(error, False), error.status)
        response = self._ask_to_sign_in(request, left=True)
        self._set_cookie(response, request, session, "", 0)
        return response

    def _ask_to_sign_in(
        self, request: Request, error: BethinkError | None = None, left: bool = False
    ) -> Response:
        """How to get in, and what was wrong with the way that was tried. Whoever guesses is slowed down."""
        if isinstance(error, WrongToken):
            error = self._admission.guesses.refuse(request.scope["client"][0], error)
        values: dict[str, Any] = _explain(error, False) if error else {"status": 401, "message": ""}
        values |= {"address": request.url.path if request.method == "GET" else "/", "left": left}
        response = _show("signin.html", values, values["status"])
        if isinstance(error, Refusal) and error.status == 429:
            response.headers.update(error.headers)
        return response

    # What

    def _response(self, visit: Visit, answer: PageAnswer) -> Response:
        if isinstance(answer, Go):
            return RedirectResponse(answer.address, 303)
        if isinstance(answer, Sent):
            kept = f'attachment; filename="{answer.name}"'
            headers = {"Content-Disposition": kept} if answer.name else {}
            if isinstance(answer.content, bytes):
                return Response(answer.content, 200, headers, answer.media_type)
            lines = stream(answer.content, self._tools.projects.run)
            return StreamingResponse(lines, 200, headers, answer.media_type)
        listed = visit.ask(operations.list_projects)["items"]
        every = visit.query.get("project") == EVERY
        names = {one["scope"]: one["name"] for one in listed if every}
        values = {"projects": listed, "scope_names": names, **answer.values}
        return _show(answer.template, {**_frame(visit), **values}, answer.status)

    def _trouble(self, visit: Visit, error: Exception) -> Response:
        values = _explain(error, visit.caller.owner)
        if visit.method == "POST" and values["again"]:
            # A page that loads itself again would not send the form again.
            hint = "Nothing was changed. Go back and try again in a moment."
            values |= {"again": "", "hint": hint}
        response = _show("trouble.html", {**_frame(visit), **values}, values["status"])
        if values["status"] == 503:
            response.headers["Retry-After"] = AGAIN
        return response

    async def _answer_error(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        session = self._session(request)
        if session is None:
            return self._ask_to_sign_in(request)
        message = "This address is for forms."
        if error.status_code == 404:
            message = "There is no page at this address."
        values = {"title": "Not found", "message": message, "hint": "Begin with the search."}
        values |= {"room": session.room, "again": ""}
        return _show("trouble.html", values, error.status_code)


def _frame(visit: Visit) -> dict[str, Any]:
    return {"visit": visit, "room": visit.room, "mark": visit.mark}


def _show(template: str, values: dict[str, Any], status: int = 200) -> Response:
    return Response(render_page(template, values), status, media_type="text/html; charset=utf-8")


async def _read_fields(request: Request) -> dict[str, str]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refusal(415, "This is no form that is read here.", "Use the form on the page.")
    text = (await read_body(request.receive, request.headers)).decode("utf-8", "replace")
    fields: dict[str, str] = {}
    try:
        found = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        message = f"The form has more than {MOST_FIELDS} fields."
        raise Refusal(413, message, "Use the form on the page.") from None
    for name, value in found:
        fields[name] = f"{fields[name]},{value}" if name in fields else value
    return fields


def _cookie_name(request: Request) -> str:
    """The name says the port, so that two servers on one machine do not sign each other out."""
    return f"bethink-{request.url.port or 0}"


def _find_cookies(request: Request, name: str = "") -> list[str]:
    """Every cookie of our name: a server on another port may have planted one beside ours, and theirs may have any form."""
    wanted = _cookie_name(request) + name
    parts = (
        part.strip().partition("=")
        for header in request.headers.getlist("cookie")
        for part in header[:LONGEST_COOKIES].split(";")
    )
    return [value for known, _, value in parts if known == wanted]


def _explain(error: Exception, owner: bool) -> dict[str, Any]:
    """What a page says of an error: the API's words, and to the owner of the database what is wrong with it."""
    said = as_refusal(error)
    values = {
        "status": said.status,
        "title": TITLES[said.status],
        "message": said.message,
        "hint": said.hint or "",
        "again": "",
    }
    if isinstance(error, StoreBusy):
        values |= {
            "title": "The database is busy",
            "message": "Another process is writing to it, or brings it to a newer form after an upgrade.",
            "hint": "This page tries again by itself. If it lasts, `bethink doctor` says what holds it.",
            "again": AGAIN,
        }
    elif isinstance(error, StoreUnavailable):
        values |= {"title": "The database is out of reach", "again": AGAIN}
    elif isinstance(error, StoreError) and owner and said.status == 500:
        hint = error.hint or "bethink doctor"
        values |= {"title": "The database cannot be used", "message": error.message, "hint": hint}
    elif isinstance(error, NotFound):
        values["hint"] = "It may be of another project, or it was purged. Search for it."
    return values
