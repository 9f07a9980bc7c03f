"""One JSON request to a configured address, and its answer, in bounded time and memory.

The time limit covers the whole exchange, so a server that sends a byte now and then cannot stall
it. Redirects are not followed, because they would carry the key and the text to another host.
Failures become a `PostError`, whose message never contains the key. An `Endpoint` is the address
and key of a model, and adds hints to errors.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from time import sleep
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit, urlunsplit

_LARGEST_ANSWER = 2 << 20
LARGEST_COMPLAINT = 20_000
TRIES = 3  # attempts if a model is busy
_LONGEST_WAIT = 30.0  # seconds that a busy model may ask for
_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "User-Agent": "bethink",
}


class PostError(Exception):
    """Reason for a missing answer, of kind key, missing, busy, refused, unreachable or garbage."""

    def __init__(self, kind: str, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.kind, self.message = kind, message
        self.wait = wait  # seconds that the server asked for


class Key(NamedTuple):
    """Secret and the environment variable it came from. Its text form does not reveal it."""

    value: str
    variable: str

    def __repr__(self) -> str:
        return f"Key(… from {self.variable})"


# Hints by kind of error; {} is the prefix of the settings' names.
_HINTS = {
    "missing": "Check the settings `{}_model` and `{}_url`; with Ollama, run `ollama pull` for the model.",
    "busy": "Try again later.",
    "refused": "Check the settings that begin with `{}`.",
    "unreachable": "Is the server running? `{}_url` holds its address, `model_timeout` how long it may take.",
    "garbage": "Is a model of this sort at that address? The setting `{}_url` holds it.",
}

# The same for an endpoint whose address and model are not in our settings, such as a plugin's.
_HINTS_WITHOUT_SETTINGS = {
    "missing": "Check the name of the model and the address.",
    "busy": "Try again later.",
    "refused": "Check the settings of the plugin.",
    "unreachable": "Is the server running? The setting `model_timeout` limits how long it may take.",
    "garbage": "Is a model of this sort at that address?",
}


# Messages by kind of error. A server's message about a key may contain part of it.
_REFUSED = {
    "key": "refused the key ({status})",
    "missing": "was not found, or has not what is asked for{said}",
    "busy": "is busy or failed ({status}){said}",
    "refused": "refused the request ({status}){said}",
}
KEYLESS = "asks for a key, and none is set"
REDIRECTED = "redirects elsewhere, which is not followed"


class Endpoint:
    """Model behind an address, from the settings that start with `setting`, and its API key.

    Without a `setting`, as for a plugin's own address, hints name no settings of ours.
    `owner` is the host that requires a key; `fail` builds the error from a message, a hint and a
    kind.
    """

    def __init__(
        self,
        setting: str,
        url: str,
        path: str,
        variables: Sequence[str],
        owner: str,
        timeout: float,
        fail: Callable[[str, str, str], Exception],
    ) -> None:
        self._setting, self._variables, self._fail = setting, " or ".join(variables), fail
        self._timeout = timeout
        try:
            self.where, self.key = address(url, path), key(variables)
        except ValueError as error:
            raise fail(
                f"{f'The setting `{setting}_url`' if setting else 'The address'} or its key cannot be used: {error}.",
                f"Use one such as https://host/v1; a key goes into {self._variables}.",
                "missing",
            ) from None
        self.owned = self.where.hostname == owner
        self.shown = _show(self.where)

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key.value}"} if self.key else {}

    def ask(self, body: object, headers: Mapping[str, str], largest: int = _LARGEST_ANSWER) -> Any:
        """The answer. Tries again where the server is busy and asks for a pause that is not long."""
        named = f"Check the environment variable {self.key.variable}." if self.key else ""
        hints = {"key": named or f"Set {self._variables}."} | (
            _HINTS if self._setting else _HINTS_WITHOUT_SETTINGS
        )
        for left in reversed(range(TRIES)):
            try:
                if self.owned and self.key is None:
                    raise PostError(
                        "key", f"The endpoint {self.shown} needs a key, and none is set."
                    )
                return send(self.where, body, headers, self.key, self._timeout, largest)
            except PostError as error:
                if error.kind != "busy" or not left or not 0 < error.wait <= _LONGEST_WAIT:
                    hint = hints[error.kind].replace("{}", self._setting)
                    raise self._fail(error.message, hint, error.kind) from None
                sleep(error.wait)
        raise AssertionError("the last attempt raises or returns")


def address(url: str, path: str) -> SplitResult:
    """The address with the path, which it may hold already.

    A ValueError names the problem, without any password.
    """
    try:
        parts = urlsplit(url.strip())
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good:
        shown = "it" if "@" in url else repr(url)
        raise ValueError(f"{shown} is no http or https address")
    if parts.username or parts.password:
        raise ValueError("it holds a user name or password")
    whole = parts.path.rstrip("/").removesuffix(path) + path
    return SplitResult(parts.scheme, parts.netloc, whole, parts.query, "")


def key(variables: Sequence[str]) -> Key | None:
    """Return the first key that is set; raise ValueError if no header can carry it.

    The library's own error would show the key.
    """
    for variable in variables:
        if value := os.environ.get(variable, "").strip():
            if not re.fullmatch(r"[\x21-\x7e]+", value):
                raise ValueError(f"The key in {variable} has characters that a key cannot have")
            return Key(value, variable)
    return None


def is_address(host: str) -> bool:
    """Return True if a host is a literal address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_this_machine(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    return is_address(host) and ipaddress.ip_address(host).is_loopback


def _show(where: SplitResult) -> str:
    return urlunsplit((where.scheme, where.netloc, where.path, "", ""))


def send(
    where: SplitResult,
    body: object,
    headers: Mapping[str, str],
    secret: Key | None,
    seconds: float,
    largest: int = _LARGEST_ANSWER,
) -> Any:
    """The JSON value that the server answers with."""
    try:
        import httpx2  # late: a keyword search and a local model need no HTTP
    except ImportError:
        raise PostError(
            "refused",
            "The package httpx2 is needed for this and not installed: pip install 'bethink[http]'.",
        ) from None
    shown, until = _show(where), time.monotonic() + seconds
    # A proxy cannot reach this machine's own servers.
    by_proxy = not is_this_machine(where.hostname or "")
    content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
    answer = bytearray()
    try:
        with (
            httpx2.Client(trust_env=by_proxy, timeout=seconds) as client,
            client.stream(
                "POST", urlunsplit(where), content=content, headers={**_HEADERS, **headers}
            ) as response,
        ):
            for chunk in response.iter_raw():
                answer += chunk
                if time.monotonic() > until:  # httpx's own starts anew with every byte
                    raise TimeoutError
                if len(answer) > largest:
                    break
    except (TimeoutError, httpx2.TimeoutException):
        raise PostError(
            "unreachable", f"The endpoint {shown} did not answer within {seconds:g} seconds."
        ) from None
    except (httpx2.HTTPError, OSError) as error:
        raise PostError(
            "unreachable",
            f"The endpoint {shown} cannot be reached: {error or type(error).__name__}.",
        ) from None
    if response.status_code >= 300:
        wait = response.headers.get("Retry-After", "")
        seconds = float(wait) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", wait) else 0.0  # no date
        status = response.status_code
        kind = name_refusal(status)
        what = _REFUSED[kind] if secret or kind != "key" else KEYLESS
        what = what if status >= 400 else REDIRECTED
        message = what.format(status=status, said=_read_complaint(bytes(answer), secret))
        raise PostError(kind, f"The endpoint {shown} {message}.", seconds)
    try:
        if len(answer) > largest:
            raise ValueError(f"it has more than {largest >> 20} MB")
        return json.loads(answer)
    except (ValueError, RecursionError) as error:
        raise PostError(
            "garbage", f"The answer of the endpoint {shown} cannot be read: {error}."
        ) from None


def name_refusal(status: int) -> str:
    """Kind of PostError for a status."""
    if status in (401, 403):
        return "key"
    if status == 404:
        return "missing"
    return "busy" if status in (408, 409, 425, 429) or status >= 500 else "refused"


def _read_complaint(answer: bytes, secret: Key | None) -> str:
    """Reason for a refusal from the server's answer, after a colon, without the key."""
    text = answer[:LARGEST_COMPLAINT].decode("utf-8", "replace")
    try:
        value = json.loads(text)["error"]
        text = str(value.get("message", value) if isinstance(value, dict) else value)
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    if secret:
        text = text.replace(secret.value, "…")
    reason = shorten(text)
    return f": {reason}" if reason else ""


def shorten(text: str) -> str:
    """Start of a program's message, on one line."""
    return " ".join(text.split())[:300].rstrip(".")
