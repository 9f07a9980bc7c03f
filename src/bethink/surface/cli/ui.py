"""`ui`: opens the web page. Finds the server that runs for this project or starts one, and hands the browser over to it."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from bethink.surface.cli import output
from bethink.surface.cli.parsing import Command, offset
from bethink.surface.cli.server import HOST, PORT, check, launch, needs_libraries
from bethink.surface.cli.session import project

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

PATIENCE = 3.0  # seconds for a server that runs to answer
LARGEST = 1_000_000  # bytes of an answer about projects


class Found(NamedTuple):
    """A server of ours that runs and knows this project."""

    url: str
    project: str  # as it has to be named there; nothing for the server's own


def ui_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--no-open",
        action="store_true",
        help="only print the address, for a browser that you open yourself",
    )
    parser.add_argument(
        "--port",
        type=offset,
        metavar="N",
        help=f"for a server that has to be started; default: {PORT}, or any free one",
    )


def ui(args: Namespace) -> None:
    """Open the web page: search as you type, memories with their sources and history, timeline, graph, inbox, health. Uses the
    server that runs already, or starts one and serves until Ctrl-C. The address signs one browser in, once, within two minutes.

    Examples:
      bethink ui
      bethink ui --no-open --port 8080
      bethink ui --project ~/code/shop
    """
    needs_libraries()
    ticket()  # a key that cannot be used is told before anything is started
    found = (
        None
        if args.database or args.container or args.port is not None
        else running(project(args).scope)
    )
    if found:
        show(args, found.url, found.project)
        return
    vars(args).update(
        host=HOST, tls_cert=None, tls_key=None, allow_host=[], no_auth=False, insecure_bind=False
    )
    args.port = free_port() if args.port is None else args.port
    check(args)
    launch(args, started, quiet=True)


def started(args: Namespace, address: str, name: str, session: str) -> None:
    show(args, address, "")
    output.note(args, f"This is the web page of {name}. Ctrl-C ends it.")


def ticket() -> str:
    from bethink.config import data_directory
    from bethink.surface.web.session import Sessions, load_key

    return Sessions(load_key(data_directory())).new_ticket()


def show(args: Namespace, url: str, project: str) -> None:
    """Prints an address that signs a browser in, and opens it."""
    asked = {"ticket": ticket(), **({"project": project} if project else {})}
    address = f"{url}/enter?{urlencode(asked)}"
    if args.format == "json":
        output.out(output.json_text({"url": address}, None))
    else:
        output.out(address)
    sys.stdout.flush()
    if not args.no_open and opens():
        from threading import Thread
        from webbrowser import open as browse

        Thread(target=browse, args=(address,), daemon=True).start()


def opens() -> bool:
    """Whether there is a browser to open that does not take over the terminal."""
    if os.environ.get("BROWSER") or sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def running(scope: str) -> Found | None:
    """A server that other commands of this user have noted, if it answers and knows the project."""
    from bethink.surface.http.serving import session_file, still_runs

    for note in sorted(session_file(0).parent.glob("*.json")):
        try:
            if not still_runs(note):
                continue
            known = json.loads(note.read_text("utf-8"))
            url, token = str(known["url"]), str(known["token"])
        except (OSError, ValueError, KeyError, TypeError):
            continue  # ended meanwhile
        for one in projects_at(url, token):
            if one.get("scope") == scope:
                return Found(url, "" if one.get("default") else scope)
    return None


def projects_at(url: str, token: str) -> list[dict[str, Any]]:
    """The projects that a server knows; none where nobody answers."""
    from http.client import HTTPConnection, HTTPException, HTTPSConnection
    from urllib.parse import urlsplit

    place = urlsplit(url)
    connect = HTTPSConnection if place.scheme == "https" else HTTPConnection
    try:
        connection = connect(place.hostname or "", place.port, timeout=PATIENCE)
        connection.request("GET", "/api/v1/projects", headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        found = json.loads(answer.read(LARGEST)) if answer.status == 200 else {}
        connection.close()
    except (OSError, HTTPException, ValueError):
        return []
    items = found.get("items", []) if isinstance(found, dict) else []
    return [one for one in items if isinstance(one, dict)]


def free_port() -> int:
    """The usual port, or any if another program has it."""
    from bethink.errors import BethinkError
    from bethink.surface.http.serving import listen

    try:
        listen(HOST, PORT).close()
    except BethinkError:
        return 0
    return PORT


COMMANDS = {"ui": Command(ui, ui_options)}
