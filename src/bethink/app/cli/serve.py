"""`mcp`, `serve`, `ui` and `token`: the surfaces that other programs and browsers talk to, and who may."""

import os
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace as Namespace
from typing import Any

from bethink.app.cli import console
from bethink.app.cli.console import LOCAL, Result, directory, known_project, project, settings
from bethink.app.http import security
from bethink.app.http.security import Caller, Grant, Tokens
from bethink.app.mcp import Wire, serve_stdio
from bethink.app.render import pick
from bethink.config import data_directory
from bethink.errors import InvalidInput, NotFound, UsageError
from bethink.language.times import expiry
from bethink.model import Json
from bethink.post import is_address, is_this_machine
from bethink.store.transfer import team_scope

HOST, PORT = "127.0.0.1", 7377
EXAMPLE = "bethink token create --name laptop"
FIELDS = "name id scope projects personal person state created expires"  # of a token

Announce = Callable[[Namespace, str, str, str], None]


def mcp(args: Namespace) -> None:
    place = directory(args)

    def serve_rest(wire: Wire) -> None:
        load_server().serve(wire, place, args.database, args.container)

    if find_spec("mcp") is None:
        raise ImportError(name="mcp")
    if sys.stdin is not None and sys.stdin.isatty():
        waiting = "Waiting for an MCP client on stdin; agents start this command themselves."
        console.note(args, f"{waiting} Ctrl-C ends it.")
    serve_stdio(load_server, serve_rest)


def load_server() -> Any:
    from bethink.app.mcp import server

    return server


def serve(args: Namespace) -> None:
    check_exposure(args)
    run_server(args, announce_server, args.quiet)


def run_server(args: Namespace, announce: Announce, quiet: bool) -> None:
    """Serves until stopped. `announce` is called once requests are taken, with the address, the project's name and the owner's
    token. A `quiet` server logs only trouble."""
    app, name = load_app(), project(args).name
    session = security.new_secret() if is_this_machine(args.host.lower()) else ""
    app.prepare_log(quiet)
    projects = app.Projects(directory(args) or Path.cwd(), args.database, args.container)
    ended = app.serve(
        projects,
        (args.host, args.port),
        lambda address: announce(args, address, name, session),
        session=session,
        tls=(args.tls_cert, args.tls_key),
        allow=args.allow_host,
    )
    console.note(args, "stopped")
    if not ended:
        app.leave()


def load_app() -> Any:
    """The server, which takes a second to load."""
    from bethink.app.http import app

    return app


def check_exposure(args: Namespace) -> None:
    """Refuses to be reached from elsewhere without tokens and TLS, unless that is asked for by name."""
    host = args.host
    if bool(args.tls_cert) != bool(args.tls_key):
        raise UsageError("--tls-cert and --tls-key belong together.", "Give both, or neither.")
    for file in filter(None, (args.tls_cert, args.tls_key)):
        if not Path(file).is_file():
            raise NotFound(
                f"There is no file {file}.", "Give a certificate and its key in PEM form."
            )
    if is_this_machine(host.lower()):
        return
    if not is_address(host):
        raise UsageError(
            f"'{host}' is not an address of this machine.",
            f"Give an address such as {HOST} or 0.0.0.0; --allow-host takes names.",
        )
    if args.insecure_bind:
        if not args.tls_cert:
            read = f"Without TLS everything sent to {host} can be read on the way, tokens too."
            console.warn(args, read)
        return
    with open_register(args) as known:
        active = [token for token in known.known() if token.state(datetime.now(UTC)) == "active"]
    if not active:
        raise UsageError(
            f"{host} can be reached from elsewhere, and there is no token yet.", EXAMPLE
        )
    if not args.tls_cert:
        raise UsageError(
            f"{host} can be reached from elsewhere, and without TLS tokens can be read on the way.",
            "Give --tls-cert and --tls-key; behind a proxy that does TLS, --insecure-bind.",
        )


def announce_server(args: Namespace, address: str, name: str, session: str) -> None:
    mcp_address = f"{address}/mcp"
    if args.format == "json":
        served = {"url": address, "project": name, "mcp": mcp_address}
        console.out(args, console.json_line(served, args.for_agent))
        sys.stdout.flush()
    places = f"MCP {mcp_address}, REST {address}/api/v1/docs"
    console.note(args, f"Bethink serves {name} at {address}  ({places})")
    if session and sys.stderr.isatty():  # on the screen of whoever started this, not in a log file
        console.note(args, f"Token for you while it runs: {session}")
    console.note(args, "Ctrl-C ends it.")


# The web page


def ui(args: Namespace) -> None:
    port = load_app().free_port(HOST, PORT) if args.port is None else args.port
    load_app().site.load_key(data_directory())  # one that cannot be used is told before all else
    vars(args).update(host=HOST, port=port, tls_cert=None, tls_key=None, allow_host=[])
    run_server(args, announce_page, quiet=True)


def announce_page(args: Namespace, url: str, name: str, session: str) -> None:
    """Prints an address that signs a browser in, and opens it if that does not take over the terminal."""
    site = load_app().site
    ticket = site.Sessions(site.load_key(data_directory())).new_ticket()
    address = f"{url}/enter?ticket={ticket}"
    console.out(
        args,
        console.json_line({"url": address}, args.for_agent) if args.format == "json" else address,
    )
    sys.stdout.flush()
    windows = sys.platform in ("darwin", "win32")
    if not args.no_open and (
        windows or any(os.environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"))
    ):
        from threading import Thread
        from webbrowser import open as browse

        Thread(target=browse, args=(address,), daemon=True).start()
    console.note(args, f"This is the web page of {name}. Ctrl-C ends it.")


# Tokens


def token(args: Namespace) -> Result:
    if args.action == "create":
        return create_token(args)
    with open_register(args) as known:
        if args.action == "list":
            found = known.known()
            none = "" if found else f"There are no tokens. {EXAMPLE}"
            return Result(list(map(token_record, found)), hints=[none])
        if not args.token:
            raise UsageError("Which token is not said.", "bethink token revoke NAME")
        return Result(token_record(known.revoke(args.token, datetime.now(UTC))))


def open_register(args: Namespace) -> closing[Tokens]:
    """Where the tokens for the database of the settings are: in it, if people share it, else in a file of this machine."""
    from bethink.api import open_store  # this file is loaded before an MCP server greets its client

    config = settings(args)
    return closing(
        security.register_of(open_store(config, project(args)) if config.shared else None)
    )


def create_token(args: Namespace) -> Result:
    if args.container:
        raise InvalidInput("A token is for whole projects.", "Leave --container out.")
    own = known_project(args)
    granted = [Grant(team_scope(name), "", name.strip()) for name in args.team]
    granted = granted or [Grant(own.scope, str(own.root), own.name)]
    now = datetime.now(LOCAL)
    wanted = Caller(
        "",
        args.name or "",
        args.scope,
        None if args.all_projects else tuple(granted),
        args.personal,
        created=now.astimezone(UTC),
        expires=expiry(args.expires, now) if args.expires else None,
        person=args.person or "",
    )
    with open_register(args) as known:
        secret, made = known.create(wanted)
    record = {**token_record(made), "token": secret}
    return Result(record, [secret], ["It is shown this once."])


def token_record(token: Caller) -> Json:
    granted = token.projects and [
        {"scope": one.scope, "name": one.name, "path": one.root} for one in token.projects
    ]
    changed = {
        "projects": granted,
        "state": token.state(datetime.now(UTC)),
        "person": token.person or None,
    }
    return pick(token, FIELDS) | changed
