"""The pages as one application beside the API: who is let in, which page it is, and what is shown when that fails.

`Gate` has checked Host and Origin before. Here a cookie is needed for everything but the files that a page is made of, and the
mark of its session for every change. Everybody's pages stand under a path of their own, their room (`WebSession.room`). The owner
comes with a ticket of `bethink ui`, members of a team with their token; what a member may see and do is looked up with every page,
so that a token that is revoked ends its sessions.
"""

from __future__ import annotations

import asyncio
import re
import time
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from bethink.errors import NotFound, StoreError
from bethink.surface.http.api import Tools, read_body
from bethink.surface.http.security import (
    SESSION,
    TITLES,
    Admission,
    Refusal,
    WrongToken,
    as_refusal,
    hash_token,
)
from bethink.surface.web import COOKIE_SECONDS, Sessions, WebSession, load_key, note_visit
from bethink.surface.web.pages import PAGES, SitePage, Visit
from bethink.surface.web.render import render_page

STATIC, ENTER, LEAVE, SIGN_IN = "/static/", "/enter", "/leave", "/signin"
FIRST_PARTS = {path.split("/")[1] for path in (STATIC, ENTER, SIGN_IN, *(p.path for p in PAGES))}
SEEN_SECONDS = 365 * 86400  # for which a browser keeps when it looked last
MOST_FIELDS = 1000
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
_ROOM = re.compile(r"/~([\w-]{1,64})(?=/)")


class Site:
    """Everything that a browser is shown."""

    def __init__(self, tools: Tools, admission: Admission) -> None:
        self._tools, self._admission = tools, admission
        self._began = time.time()
        self._files = StaticFiles(directory=Path(__file__).parent / "static")

    def owns(self, path: str) -> bool:
        """Whether an address is a page and not part of the API."""
        return path.partition("/")[2].partition("/")[0] in FIRST_PARTS or bool(_ROOM.match(path))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except Exception as error:  # noqa: BLE001 - the boundary of the pages: whatever fails is told in a sentence
            response = self._show_trouble(request, error)
        response.headers.update(HEADERS)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        path, method = request.scope["path"], request.method
        if path.startswith(STATIC):
            file = await self._files.get_response(path.removeprefix(STATIC), request.scope)
            file.headers["Cache-Control"] = "no-cache"
            return file
        if path == ENTER:
            return self._enter(request)
        if (method, path) == ("POST", SIGN_IN):
            return await self._sign_in(request)
        session = self._find_session(request)
        if session is None:
            return _ask_to_sign_in(request)
        caller = SESSION
        if session.token:
            caller = await asyncio.to_thread(self._admission.identify, session.token)
        mark, address = self._sessions.mark(session), path.removeprefix(session.room)
        method = "GET" if method == "HEAD" else method
        visit = Visit(
            caller, self._tools, session.room, mark, method, address, request.query_params
        )
        request.scope.update({"bethink.caller": caller, "bethink.visit": visit})
        if method == "POST":
            visit = visit._replace(form=await self._read_form(request, session))
        if (method, address) == ("POST", LEAVE):
            self._sessions.end(session)
            response = _ask_to_sign_in(request, left=True)
            _set_cookie(response, request, session, "", 0)
            return response
        page, parts = _find_page(method, address)
        request.scope["route"] = page
        kept = request.cookies.get(f"{session.cookie_name}-seen", "")
        looks = request.headers.get("sec-fetch-dest", "document") == "document"
        seen, last = note_visit(kept, time.time(), looks)
        before = datetime.fromtimestamp(last, UTC) if last else None
        visit = visit._replace(path=parts, last_visit=before)
        response = await self._tools.projects.run(page.run, visit)
        if (
            looks
        ):  # and not a script, whose answer may arrive after somebody signed out in another window
            _set_cookie(response, request, session, session.cookie, COOKIE_SECONDS)
        if page.path == "/":
            _set_cookie(response, request, session, seen, SEEN_SECONDS, "-seen")
        return response

    # Who

    @cached_property
    def _sessions(self) -> Sessions:
        """Made with the first page: a server that shows none needs no key."""
        return Sessions(load_key(self._admission.tokens.file.parent), began=self._began)

    def _find_session(self, request: Request) -> WebSession | None:
        """Whose visit it is: of whoever has the cookie of the room that is asked for."""
        room = _ROOM.match(request.scope["path"])
        cookie = request.cookies.get(f"bethink-{room[1]}", "") if room else ""
        session = self._sessions.find(cookie)
        return session if session and room and session.name == room[1] else None

    async def _read_form(self, request: Request, session: WebSession) -> dict[str, str]:
        """The fields of a form that is of this session."""
        fields = await _read_fields(request)
        if not self._sessions.is_genuine(session, fields.pop("mark", "")):
            raise Refusal(
                403,
                "This form is not of this session, so nothing was changed.",
                "Go back, reload the page, and try again.",
            )
        return fields

    def _enter(self, request: Request) -> Response:
        """Takes a ticket and gives a cookie for it. The page goes on by itself, which takes the ticket out of the address and the
        history; a redirect would not do, because a browser that came from a program or another site keeps the cookie back then."""
        ticket = request.query_params.get("ticket", "") if request.method == "GET" else ""
        session = self._sessions.enter(ticket)
        if session is None:
            raise WrongToken(401, "The ticket is not known.", "`bethink ui` makes a new one.")
        return _admit(request, session)

    async def _sign_in(self, request: Request) -> Response:
        """Takes the token of a member and gives a cookie for it, which opens what the token opens for as long as that holds."""
        hash = hash_token((await _read_fields(request)).get("token", "").strip())
        await asyncio.to_thread(self._admission.identify, hash)
        return _admit(request, self._sessions.begin(token=hash))

    # What went wrong

    def _show_trouble(self, request: Request, error: Exception) -> Response:
        """What a page says of an error: the API's words, and to the owner of the database what is wrong with it. Whoever is not
        signed in is asked to, and whoever guesses is slowed down."""
        if isinstance(error, HTTPException):  # of the files
            error = Refusal(error.status_code, "There is no file at this address.")
        if isinstance(error, WrongToken):
            error = self._admission.guesses.refuse(request.scope["client"][0], error)
        said = as_refusal(error)
        visit: Visit | None = request.scope.get("bethink.visit")
        if visit is None:
            response = _ask_to_sign_in(request, said.status, said.message)
        else:
            message, hint = said.message, said.hint
            if isinstance(error, StoreError) and visit.caller.owner and said.status == 500:
                message, hint = error.message, error.hint or "bethink doctor"
            elif isinstance(error, NotFound):
                hint = "It may be of another project, or it was purged. Search for it."
            values = {"title": TITLES[said.status], "message": message, "hint": hint}
            # A page that loads itself again would not send a form again.
            values["again"] = AGAIN if said.status == 503 and visit.method == "GET" else ""
            response = _show("trouble.html", said.status, visit=visit, **values)
        response.headers.update(said.headers)
        return response


def _find_page(method: str, address: str) -> tuple[SitePage, dict[str, str]]:
    """The page at an address, and the parts of the address that it names."""
    found = [(page, parts) for page in PAGES if (parts := page.match(address)) is not None]
    for page, parts in found:
        if page.method == method:
            return page, parts
    if found:
        raise Refusal(405, "This address is for forms.", "Begin with the search.")
    raise Refusal(404, "There is no page at this address.", "Begin with the search.")


def _show(template: str, status: int, **values: Any) -> Response:
    return Response(render_page(template, values), status, media_type="text/html; charset=utf-8")


def _ask_to_sign_in(
    request: Request, status: int = 401, message: str = "", left: bool = False
) -> Response:
    """How to get in, and what was wrong with the way that was tried."""
    address = request.scope["path"] if request.method == "GET" else "/"
    return _show("signin.html", status, address=address, message=message, left=left)


def _admit(request: Request, session: WebSession) -> Response:
    response = _show("enter.html", 200, room=session.room, address=f"{session.room}/")
    _set_cookie(response, request, session, session.cookie, COOKIE_SECONDS)
    return response


def _set_cookie(
    response: Response,
    request: Request,
    session: WebSession,
    value: str,
    seconds: int,
    name: str = "",
) -> None:
    """With no seconds the browser drops it."""
    response.set_cookie(
        session.cookie_name + name,
        value,
        seconds,
        path=session.room,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )


async def _read_fields(request: Request) -> dict[str, str]:
    """The fields of a form; one that is repeated as a comma list."""
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
