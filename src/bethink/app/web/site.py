"""The pages as one application beside the API: sign-in, routing and error pages.

`Gate` has already checked Host and Origin. Everything but static files needs a cookie, and every change needs the mark of its
session. Each session's pages are under a separate path, its room (`WebSession.room`). The owner comes with a ticket of `bethink ui`,
members of a team with their token; their permissions are looked up for every page, so revoking a token ends its sessions.
"""

import asyncio
import time
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from bethink.app.http.api import LARGEST_BODY
from bethink.app.http.projects import Projects
from bethink.app.http.security import (
    SESSION_CALLER,
    Admission,
    as_refusal,
    hash_token,
    read_refusals,
    refuse,
)
from bethink.app.web import COOKIE_SECONDS, Sessions, WebSession, load_key, note_visit
from bethink.app.web.pages import PAGES, Page, Visit
from bethink.app.web.render import render_page
from bethink.config import data_directory
from bethink.errors import StoreError

SEEN_SECONDS = 365 * 86400  # for which a browser keeps when it looked last
FORM = {"max_files": 0, "max_part_size": LARGEST_BODY}
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


class Site:
    """Everything that a browser is shown."""

    def __init__(self, projects: Projects, admission: Admission) -> None:
        self._projects, self._admission = projects, admission
        self._began, self._folder = time.time(), data_directory()
        self._files = StaticFiles(directory=Path(__file__).parent / "static")
        inside = [
            Route(path, partial(self._show_page, run), methods=[method])
            for method, path, run in PAGES
        ]
        leave = Route("/leave", self._leave, methods=["POST"])
        self._inside = Router([leave, *inside], redirect_slashes=False)

    def routes(self) -> list[BaseRoute]:
        """Static files, sign-in, and the rooms.

        A page outside a room asks to sign in; its script redirects a signed-in browser to its room.
        """
        return [
            Route("/static/{name}", self._send_file),
            Route("/enter", self._enter),
            Route("/signin", self._sign_in, methods=["POST"]),
            Mount("/~{room}", self._open_room),
            *(Route(path, _ask_to_sign_in, methods=[method]) for method, path, _ in PAGES),
        ]

    async def _send_file(self, request: Request) -> Response:
        file = await self._files.get_response(request.path_params["name"], request.scope)
        file.headers["Cache-Control"] = "no-cache"
        return file

    async def _open_room(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the pages of a room to the holder of its cookie."""
        request, room = Request(scope, receive), scope["path_params"]["room"]
        session = self._sessions.find(request.cookies.get(f"bethink-{room}", ""))
        if session is None or session.name != room:
            await _ask_to_sign_in(request)(scope, receive, send)
            return
        caller = SESSION_CALLER
        if session.token:
            caller = await asyncio.to_thread(self._admission.identify, session.token)
        mark, address = self._sessions.mark(session), scope["path"].removeprefix(session.room)
        visit = Visit(caller, self._projects, session, mark, address, request.query_params)
        scope.update({"bethink.caller": caller, "bethink.visit": visit})
        await self._inside(scope, receive, send)

    async def _show_page(self, run: Page, request: Request) -> Response:
        visit: Visit = request.scope["bethink.visit"]
        session = visit.session
        kept = request.cookies.get(f"{session.cookie_name}-seen", "")
        looks = request.headers.get("sec-fetch-dest", "document") == "document"
        seen, last = note_visit(kept, time.time(), looks)
        visit = visit._replace(
            path=request.path_params,
            last_visit=datetime.fromtimestamp(last, UTC) if last else None,
            form=await self._read_form(request) if request.method == "POST" else {},
        )
        response = await self._projects.run(run, visit)
        if looks:
            # and not a script, whose answer may arrive after the user signed out in another window
            _set_cookie(response, request, session, session.cookie, COOKIE_SECONDS)
        if visit.address == "/":
            _set_cookie(response, request, session, seen, SEEN_SECONDS, "-seen")
        return response

    async def _leave(self, request: Request) -> Response:
        await self._read_form(request)
        session = request.scope["bethink.visit"].session
        self._sessions.end(session)
        response = _ask_to_sign_in(request, left=True)
        _set_cookie(response, request, session, "", 0)
        return response

    # Who

    @cached_property
    def _sessions(self) -> Sessions:
        """Made with the first page: a server that shows none needs no key."""
        return Sessions(load_key(self._folder), began=self._began)

    async def _read_form(self, request: Request) -> dict[str, str]:
        """The fields of a form that is of this session; one that is repeated as a comma list."""
        form = await request.form(**FORM)
        fields = {name: ",".join(map(str, form.getlist(name))) for name in form}
        session = request.scope["bethink.visit"].session
        if not self._sessions.is_genuine(session, fields.get("mark", "")):
            raise refuse("foreign-form")
        return fields

    async def _enter(self, request: Request) -> Response:
        """Exchange a ticket for a cookie.

        The page then continues by script, which removes the ticket from the address and the history. A redirect would not do: a browser that
        came from a program or another site then withholds the cookie.
        """
        ticket = request.query_params.get("ticket", "") if request.method == "GET" else ""
        session = self._sessions.enter(ticket)
        if session is None:
            raise refuse("unknown-ticket")
        return _admit(request, session)

    async def _sign_in(self, request: Request) -> Response:
        """Exchange a member's token for a cookie, with the same permissions while the token is valid."""
        hash = hash_token(str((await request.form(**FORM)).get("token", "")).strip())
        await asyncio.to_thread(self._admission.identify, hash)
        return _admit(request, self._sessions.begin(token=hash))

    # What went wrong

    def show_trouble(self, request: Request, error: Exception) -> Response:
        """Show an error as a page, with the API's text; without a session, show the sign-in page."""
        refusal = as_refusal(error)
        visit: Visit | None = request.scope.get("bethink.visit")
        if visit is None:
            response = _ask_to_sign_in(request, refusal.status, refusal.message)
        else:
            # Only the owner sees details about the database.
            owned = isinstance(error, StoreError) and visit.caller.owner and refusal.status == 500
            values = {
                "title": read_refusals()["titles"][str(refusal.status)],
                "error": error if owned else refusal,
                "status": refusal.status,
                "is_form": request.method != "GET",
            }
            page = render_page("trouble.html", visit=visit, room=visit.room, **values)
            response = HTMLResponse(page, refusal.status)
        response.headers.update(refusal.headers)
        return response


def _ask_to_sign_in(
    request: Request, status: int = 401, message: str = "", left: bool = False
) -> Response:
    """Show the sign-in page, with the reason if signing in failed."""
    address = request.scope["path"] if request.method == "GET" else "/"
    page = render_page("signin.html", address=address, message=message, left=left)
    return HTMLResponse(page, status)


def _admit(request: Request, session: WebSession) -> Response:
    page = render_page("enter.html", room=session.room, address=f"{session.room}/")
    response = HTMLResponse(page)
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
    """Set a cookie of the session's room. With 0 seconds the browser deletes it."""
    response.set_cookie(
        session.cookie_name + name,
        value,
        seconds,
        path=session.room,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
