"""Requests to a team's server: bounded in time and size, with a token that is never shown, and errors that say what to do next."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlencode

from bethink import post
from bethink.errors import BethinkError, ConfigError
from bethink.post import Deadline, Key, PostError

VARIABLE = "BETHINK_TOKEN"
API = "/api/v1"
LARGEST = 256 << 20
LONGEST_TOKEN = 1000
PATIENCE = 20.0  # seconds for a call
LONG = 300.0  # seconds for what reads a whole project
AWAY = (
    "unreachable",
    "timeout",
    "broken",
    "busy",
    "garbage",
    "large",
)  # the server may well be there later
BROKEN = 500  # what the server answers where it is itself at fault; others of that kind say that something before it is away

HINTS = {
    "key": f"Put a token of that server into {VARIABLE}; `bethink token create` on the server makes one.",
    "redirect": "Give the address that it redirects to.",
    "missing": "Check the address; it is that of `bethink serve`, without a path.",
}


class Unreachable(BethinkError):
    """The server cannot be reached, or did not answer: whether it did what was asked is not known."""


class Failed(Unreachable):
    """The server is there, and broke over what it was asked."""


class Refused(BethinkError):
    """The server is there and says no."""


def token(file: str | None = None) -> Key | None:
    """The token for the server: of a file, or of the environment. It is in no setting, because settings are shown."""
    if file is None:
        try:
            return post.key((VARIABLE,))
        except ValueError as error:
            raise ConfigError(f"{error}.", "Copy the token once more.") from error
    path = Path(file).expanduser()
    try:
        with path.open("r", encoding="utf-8") as stream:
            text = stream.read(LONGEST_TOKEN + 1).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"The token file {file} cannot be read: {getattr(error, 'strerror', None) or 'it is no text'}.",
            "Check the path.",
        ) from error
    if (
        not text
        or len(text) > LONGEST_TOKEN
        or not text.isascii()
        or any(character.isspace() for character in text)
    ):
        raise ConfigError(
            f"The file {file} does not hold a token.",
            "One line that starts with rcl_ belongs into it.",
        )
    return Key(text, str(file))


class Client:
    """One server, as the holder of one token."""

    def __init__(self, url: str, secret: Key | None) -> None:
        try:
            self._address = post.address(url, API)
        except ValueError as error:
            raise ConfigError(
                f"The team's server cannot be asked: {error}.", "Give it as https://memory.example"
            ) from error
        host = self._address.hostname or ""
        if self._address.scheme == "http" and secret and not post.is_this_machine(host):
            raise ConfigError(
                f"Without TLS the token for {host} can be read on the way.",
                f"Give it as https://{host}",
            )
        self._secret = secret
        self.shown = f"{self._address.scheme}://{self._address.netloc}"

    def post(
        self,
        path: str,
        body: Any,
        *,
        key: str | None = None,
        seconds: float = PATIENCE,
        **query: str | None,
    ) -> Any:
        """The answer to a request. With a key the server does it once, however often it is sent."""
        parts = self._address
        given = urlencode({name: value for name, value in query.items() if value})
        where = SplitResult(parts.scheme, parts.netloc, parts.path + path, given, "")
        headers = {"Authorization": f"Bearer {self._secret.value}"} if self._secret else {}
        if key:
            headers["Idempotency-Key"] = key
        try:
            return post.send(where, body, headers, self._secret, Deadline(seconds), LARGEST)
        except PostError as error:
            hint = HINTS.get(error.kind)
            if error.status == BROKEN:
                raise Failed(error.message, "The server's log says why.") from error
            if error.kind in AWAY:
                raise Unreachable(
                    error.message, "Check the address and whether the server runs."
                ) from error
            raise Refused(error.message, hint) from error
