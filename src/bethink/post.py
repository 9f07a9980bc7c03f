"""One JSON request to an address that the user configured, and its answer: in bounded time, in bounded memory.

The time is that of the whole exchange: a server that sends a byte now and then does not hold anybody longer. Redirects
are not followed, because they would carry the key and the text to another host. What goes wrong becomes a `PostError`,
whose message is a sentence without the key. This module knows no setting and no model; callers add their hints by `kind`.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import SplitResult, urlsplit, urlunsplit

if TYPE_CHECKING:
    import urllib.error
    import urllib.request

T = TypeVar("T")

LARGEST_ANSWER = 2 << 20
LARGEST_COMPLAINT = 20_000
TRIES = 3


class PostError(Exception):
    """Why there is no answer.

    `kind` is one of: key, missing, busy, redirect, refused, unreachable, timeout, broken, large, garbage. `said` holds the
    server's own words, `wait` the seconds it asked for, `status` the code it answered with.
    """

    def __init__(
        self, kind: str, message: str, said: str = "", wait: float | None = None, status: int = 0
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.said = said
        self.wait = wait
        self.status = status


class Key(NamedTuple):
    """A secret and the environment variable it came from. Its text does not show it."""

    value: str
    variable: str

    def __repr__(self) -> str:
        return f"Key(… from {self.variable})"


class Deadline:
    """The moment at which an exchange is over, however many steps it takes."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._end = clock() + seconds

    def left(self) -> float:
        """The seconds that remain; a TimeoutError when there are none."""
        left = self._end - self._clock()
        if left <= 0:
            raise TimeoutError
        return left


def address(url: str, path: str) -> SplitResult:
    """The address with what it lacks of the path: `https://host`, `https://host/v1` and `https://host/v1/messages` are one.

    A ValueError says what is wrong, without any password.
    """
    try:
        parts = urlsplit(url.strip())
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise ValueError(
            f"{url!r} is no http or https address"
            if "@" not in url
            else "it is no http or https address"
        )
    if parts.username or parts.password:
        raise ValueError("it holds a user name or password")
    folder = parts.path.rstrip("/")
    beginnings = [path[:end] for end in range(len(path), 0, -1) if path[end : end + 1] in ("", "/")]
    there = next((beginning for beginning in beginnings if folder.endswith(beginning)), "")
    return SplitResult(
        parts.scheme, parts.netloc, folder + path.removeprefix(there), parts.query, ""
    )


def key(variables: Sequence[str]) -> Key | None:
    """The first key that is set. One that no header can carry is a ValueError, as errors of urllib would show it."""
    for variable in variables:
        if value := os.environ.get(variable, "").strip():
            if not re.fullmatch(r"[\x21-\x7e]+", value):
                raise ValueError(f"The key in {variable} has characters that a key cannot have")
            return Key(value, variable)
    return None


def is_this_machine(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def persist(
    attempt: Callable[[], T],
    deadline: Deadline,
    sleep: Callable[[float], None] = time.sleep,
    again: Sequence[str] = ("busy",),
) -> T:
    """Tries again while the server says that it is busy, as long as its wish for a pause fits into the time."""
    for number in range(TRIES):
        try:
            return attempt()
        except PostError as error:
            wait = 2.0**number if error.wait is None else error.wait
            if error.kind not in again or number == TRIES - 1 or wait >= _left(deadline):
                raise
        sleep(wait)
    raise AssertionError("the last try either returns or raises")


def send(
    where: SplitResult,
    body: Any,
    headers: Mapping[str, str],
    secret: Key | None,
    deadline: Deadline,
    largest: int = LARGEST_ANSWER,
) -> Any:
    """The JSON value that the server answers with."""
    import http.client
    import urllib.error
    import urllib.request

    shown = urlunsplit((where.scheme, where.netloc, where.path, "", ""))
    sent = {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "User-Agent": "bethink",
        **headers,
    }
    request = urllib.request.Request(
        urlunsplit(where), json.dumps(body).encode(), sent, method="POST"
    )
    try:
        with _opener(where.hostname or "", deadline).open(
            request, timeout=deadline.left()
        ) as response:
            answer = response.read(largest + 1)
            if (
                len(answer) <= largest and response.length
            ):  # a bounded read says nothing of an early end
                raise ConnectionError
    except urllib.error.HTTPError as error:
        with error:
            raise _refusal(error, shown, secret) from None
    except urllib.error.URLError as error:
        raise _unreachable(
            error.reason if isinstance(error.reason, OSError) else error, shown, deadline
        ) from None
    except (OSError, http.client.HTTPException) as error:
        raise _unreachable(error, shown, deadline) from None
    if len(answer) > largest:
        raise PostError(
            "large", f"The endpoint {shown} answered with more than {largest >> 20} MB."
        )
    try:
        return json.loads(answer)
    except (ValueError, RecursionError):
        raise PostError(
            "garbage", f"The endpoint {shown} answered with something that is not JSON."
        ) from None


def _left(deadline: Deadline) -> float:
    try:
        return deadline.left()
    except TimeoutError:
        return 0.0


def _opener(host: str, deadline: Deadline) -> urllib.request.OpenerDirector:
    """An opener that stays at its address and reads no longer than the deadline. Classes live here, as urllib comes late."""
    import http.client
    import io
    import urllib.request

    class Timed(io.RawIOBase):
        """The bytes of a socket. urllib's own timeout starts anew with every byte that arrives."""

        def __init__(self, sock: Any, raw: Any) -> None:
            self._sock, self._raw = sock, raw

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int | None:
            self._sock.settimeout(deadline.left())
            count: int | None = self._raw.readinto(buffer)
            return count

        def close(self) -> None:
            self._raw.close()
            super().close()

    class Response(http.client.HTTPResponse):
        def __init__(self, sock: Any, *args: Any, **options: Any) -> None:
            super().__init__(sock, *args, **options)
            self.fp = io.BufferedReader(Timed(sock, self.fp.detach()))

    class Plain(http.client.HTTPConnection):
        response_class = Response

    class Secure(http.client.HTTPSConnection):
        response_class = Response

    class Http(urllib.request.HTTPHandler):
        def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Plain, request)

    class Https(urllib.request.HTTPSHandler):
        def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Secure, request)

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: Any) -> None:
            return None

    # A proxy cannot reach this machine's own servers.
    proxies = [urllib.request.ProxyHandler({})] if is_this_machine(host) else []
    return urllib.request.build_opener(Stay, Http, Https, *proxies)


def _refusal(error: urllib.error.HTTPError, shown: str, secret: Key | None) -> PostError:
    code, said = error.code, _said(error, secret)
    detail = f": {said}" if said else ""
    if code in (401, 403):
        message = f"The endpoint {shown} " + (
            f"refused the key ({code})." if secret else "asks for a key, and none is set."
        )
        return PostError("key", message, said)
    if code == 404:
        return PostError(
            "missing", f"The endpoint {shown} was not found, or has no such model{detail}.", said
        )
    if code in (408, 409, 425, 429) or code >= 500:
        wait = retry_after(error.headers.get("Retry-After"))
        return PostError(
            "busy", f"The endpoint {shown} is busy or failed ({code}){detail}.", said, wait, code
        )
    if 300 <= code < 400:
        return PostError(
            "redirect", f"The endpoint {shown} redirects elsewhere, which is not followed.", said
        )
    return PostError(
        "refused", f"The endpoint {shown} refused the request ({code}){detail}.", said, status=code
    )


def _said(error: urllib.error.HTTPError, secret: Key | None) -> str:
    """What the server says of its refusal, in one line. Some servers quote the key."""
    import http.client

    try:
        text = error.read(LARGEST_COMPLAINT).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        return ""
    try:
        value = json.loads(text)
        value = value.get("error", value.get("message", value.get("detail", "")))
        text = str(value.get("message", value) if isinstance(value, dict) else value)
    except (ValueError, AttributeError, RecursionError):
        pass
    if secret:
        text = text.replace(secret.value, "…")
    return " ".join(text.split())[:300].rstrip(".")


def _unreachable(error: BaseException, shown: str, deadline: Deadline) -> PostError:
    import http.client
    import socket

    if isinstance(error, TimeoutError):
        return PostError(
            "timeout", f"The endpoint {shown} did not answer within {deadline.seconds:g} seconds."
        )
    if isinstance(error, ConnectionRefusedError):
        return PostError("unreachable", f"Nothing answers at {shown}.")
    if isinstance(error, socket.gaierror):
        return PostError("unreachable", f"The host of {shown} cannot be found.")
    if isinstance(error, ConnectionError | http.client.HTTPException):
        return PostError("broken", f"The endpoint {shown} broke off the connection.")
    return PostError("unreachable", f"The endpoint {shown} cannot be reached: {error}.")


def retry_after(header: str | None) -> float | None:
    """Seconds from either form of the header: a number or a date."""
    if not header:
        return None
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", header.strip()):
        return float(header)
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
