"""The web page. It only presents; all data and changes go through operations of the API.

`site` signs people in and finds the page, `pages` has a function for each, `render` turns text into safe markup; there is a template per
page.

This module has the sessions: the ticket that `bethink ui` hands over, the cookie that it becomes, and the mark that every form carries. All
three are signed with one key, in a file beside the database that only its owner can read. So nothing is stored for a browser, and a page
stays signed in when the server restarts. A ticket works once and for a short while; a cookie is out of reach of scripts and of other
sites; a mark belongs to one session. Nothing here knows HTTP.
"""

import secrets
import time
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from itsdangerous import BadData, URLSafeTimedSerializer

from bethink.errors import ConfigError
from bethink.text import textfile

_FILE = "web.key"
KEY_BYTES = 32
TICKET_SECONDS = 120
COOKIE_SECONDS = 7 * 86400  # after the last page that was looked at
VISIT_SECONDS = 1800  # without a look, after which the next one is another visit; set by hand
_LONGEST = 500  # characters of anything that is offered


class WebSession(NamedTuple):
    """A signed-in browser. `name` stays when the cookie is renewed."""

    cookie: str
    name: str
    token: str  # the hash of the token used to sign in; empty for the owner, who came with a ticket

    @property
    def room(self) -> str:
        """Prefix of the paths of this session's pages.

        A browser sends a cookie to every port of a host, so a server on another port could see it and use it here, or plant another
        cookie. A cookie with a path is sent only for that path, and this path cannot be guessed. So a cookie opens nothing outside
        its room.
        """
        return f"/~{self.name}"

    @property
    def cookie_name(self) -> str:
        """Name of the cookie. It cannot be guessed, so no other server can replace the cookie."""
        return f"bethink-{self.name}"


class Sessions:
    """Signed tickets, cookies and marks, all with one key. Remembers used tickets and ended sessions."""

    def __init__(self, key: bytes, began: float | None = None) -> None:
        self._key = key
        self._began = time.time() if began is None else began  # when the server started
        self._used: set[str] = set()
        self._left: set[str] = set()

    def _signer(self, use: str) -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(self._key, salt=use, signer_kwargs={"digest_method": sha256})

    def new_ticket(self) -> str:
        return str(self._signer("ticket").dumps(secrets.token_urlsafe(16)))

    def enter(self, ticket: str) -> WebSession | None:
        """Begin a session with a ticket. Return None if it was used or made before the server started."""
        found = self._read("ticket", ticket, TICKET_SECONDS)
        if found is None or found[1] < int(self._began) or ticket in self._used:
            return None
        self._used.add(ticket)
        return self.begin()

    def begin(self, name: str = "", token: str = "") -> WebSession:
        name = name or secrets.token_urlsafe(16)
        cookie = str(self._signer("cookie").dumps([name, token]))
        return WebSession(cookie, name, token)

    def find(self, cookie: str) -> WebSession | None:
        """Return the session of a valid cookie, with a renewed cookie."""
        found = self._read("cookie", cookie, COOKIE_SECONDS)
        return self.begin(*found[0]) if found and found[0][0] not in self._left else None

    def end(self, session: WebSession) -> None:
        """End a session: refuse all its cookies, copies included, until the server ends."""
        self._left.add(session.name)

    def mark(self, session: WebSession) -> str:
        """Return the mark that every form carries, so that no other site can forge one."""
        return str(self._signer("mark").dumps(session.name))

    def is_genuine(self, session: WebSession, mark: str) -> bool:
        found = self._read("mark", mark, COOKIE_SECONDS)
        return found is not None and found[0] == session.name

    def _read(self, use: str, offered: str, seconds: int) -> tuple[Any, float] | None:
        """Return the signed value and its time, or None if the signature is wrong or too old."""
        sent = offered[:_LONGEST].encode("utf-8", "replace")
        try:
            value, at = self._signer(use).loads(sent, max_age=seconds, return_timestamp=True)
        except BadData:
            return None
        return value, at.timestamp()


def note_visit(kept: str, now: float, looks: bool) -> tuple[str, float | None]:
    """Return the updated record of visits and the time of the previous visit. Scripts do not count."""
    times = [int(part) for part in kept[:40].split("-") if part.isdecimal() and int(part) <= now]
    if looks or not times:
        same = times and now - times[-1] < VISIT_SECONDS
        times = [*(times[:-1] if same else times), int(now)]
    times = times[-2:]
    return "-".join(map(str, times)), times[0] if len(times) > 1 else None


def load_key(folder: Path) -> bytes:
    """The key of this folder, made when it is first needed."""
    file = folder / _FILE
    if textfile.read(file) is None:  # read again: another process may be quicker
        textfile.write(file, secrets.token_hex(KEY_BYTES) + "\n", None, mode=0o600)
    anew = f"Remove it; a new one is made: rm {file}"
    if textfile.may_others(file, 0o077):
        raise ConfigError(f"Others can read or write {file}, so nothing is signed with it.", anew)
    try:
        key = bytes.fromhex((textfile.read(file) or "").strip())
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise ConfigError(f"{file} holds no key.", anew)
    return key
