"""One route of an HTTP interface, and how paths are put together."""

from __future__ import annotations

import re
from typing import NamedTuple

MOST_CALLS = 600  # of one file that are looked at; no file of routes that a person wrote has more
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")


class Route(NamedTuple):
    method: str  # "GET", "GET, POST", "ANY", or "" where the framework decides it elsewhere
    path: str
    handler: str
    file: str
    line: int
    framework: str


def join(*parts: str) -> str:
    """Prefixes and a path as one path: `/api/` and `users` are `/api/users`. A trailing slash of the last part stays."""
    path = "/".join(part.strip("/") for part in parts if part.strip("/"))
    slash = "/" if parts and len(parts[-1]) > 1 and parts[-1].endswith("/") and path else ""
    return re.sub(r"\s+", " ", f"/{path}{slash}")[:160]
