"""`serve`, `ui` and `token`: servers for programs and browsers, and their tokens."""

import os
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from bethink.app.cli.console import LOCAL, Console, Result, json_line
from bethink.app.http import security
from bethink.app.http.security import Caller, Grant, Tokens
from bethink.app.operation import Arg, operation
from bethink.app.render import pick
from bethink.config import data_directory
from bethink.errors import InvalidInput, NotFound, UsageError
from bethink.language.times import expiry
from bethink.model import Json, Strings
from bethink.post import is_address, is_this_machine
from bethink.store.transfer import team_scope

_HOST, PORT = "127.0.0.1", 7377
_EXAMPLE = "bethink token create --name laptop"
_FIELDS = "name id scope projects personal person state created expires"  # of a token

Announce = Callable[[str, str, str], None]  # address, name of the project, the owner's token
Port = Annotated[int | None, Arg("port", metavar="N", low=0, high=65535)]


class Listen(NamedTuple):
    """Address and options of a server."""

    host: str = _HOST
    port: int = PORT
    tls_cert: str | None = None
    tls_key: str | None = None
    allow_hosts: Strings = ()


@operation(
    "Serve",
    agents="person",
    examples=(
        "bethink serve",
        "bethink serve --port 0 --json",
        "bethink token create --name laptop && bethink serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem",
    ),
)
def serve(
    console: Console,
    host: Annotated[str, Arg("the address to listen on", metavar="ADDRESS")] = _HOST,
    port: Annotated[Port, Arg("port; 0 takes any free one")] = PORT,
    tls_cert: Annotated[str | None, Arg("certificate (PEM) for https", metavar="FILE")] = None,
    tls_key: Annotated[str | None, Arg("its private key (PEM)", metavar="FILE")] = None,
    allow_hosts: Annotated[
        Strings, Arg("another host name of the server", metavar="NAME", aliases=("allow_host",))
    ] = (),
    insecure_bind: Annotated[
        bool, Arg("listen on an address other than this machine's own without TLS")
    ] = False,
) -> None:
    """Serve the web page, MCP and a REST API over HTTP.

    Runs until stopped: the web page, MCP at /mcp, REST under /api/v1 with its description at /api/v1/docs, /healthz and /readyz. By
    default only for this machine, with a token for you that is made at start; `bethink token create` makes others. The project is
    --project, else that of the current directory. Logs go to stderr.
    """
    listen = Listen(host, PORT if port is None else port, tls_cert, tls_key, allow_hosts)
    check_exposure(console, listen, insecure_bind)

    def announce(address: str, name: str, session: str) -> None:
        announce_server(console, address, name, session)

    run_server(console, listen, announce, console.quiet)


def run_server(console: Console, listen: Listen, announce: Announce, quiet: bool) -> None:
    """Serve until stopped. Call `announce` once requests are accepted; if `quiet`, log only problems."""
    app, name = load_app(), console.find_project().name
    session = security.new_secret() if is_this_machine(listen.host.lower()) else ""
    app.prepare_log(quiet)
    projects = app.Projects(console.directory or Path.cwd(), console.database, console.container)
    ended = app.serve(
        projects,
        (listen.host, listen.port),
        lambda address: announce(address, name, session),
        session=session,
        tls=(listen.tls_cert, listen.tls_key),
        allow=list(listen.allow_hosts),
    )
    console.note("stopped")
    if not ended:
        app.leave()


def load_app() -> Any:
    """Load the server, which takes a second."""
    from bethink.app.http import app

    return app


def check_exposure(console: Console, listen: Listen, insecure: bool) -> None:
    """Refuse to listen for other machines without tokens and TLS, unless that is asked for."""
    host = listen.host
    if bool(listen.tls_cert) != bool(listen.tls_key):
        raise UsageError("--tls-cert and --tls-key belong together.", "Give both, or neither.")
    for file in filter(None, (listen.tls_cert, listen.tls_key)):
        if not Path(file).is_file():
            raise NotFound(
                f"There is no file {file}.", "Give a certificate and its key in PEM form."
            )
    if is_this_machine(host.lower()):
        return
    if not is_address(host):
        raise UsageError(
            f"'{host}' is not an address of this machine.",
            f"Give an address such as {_HOST} or 0.0.0.0; --allow-host takes names.",
        )
    if insecure:
        if not listen.tls_cert:
            console.warn(
                f"Without TLS anyone on the way can read what is sent to {host}, tokens too."
            )
        return
    with open_register(console) as known:
        active = [token for token in known.known() if token.state(datetime.now(UTC)) == "active"]
    if not active:
        raise UsageError(f"Other machines can reach {host}, and there is no token yet.", _EXAMPLE)
    if not listen.tls_cert:
        raise UsageError(
            f"Other machines can reach {host}, and without TLS tokens can be read on the way.",
            "Give --tls-cert and --tls-key; behind a proxy that does TLS, --insecure-bind.",
        )


def announce_server(console: Console, address: str, name: str, session: str) -> None:
    mcp_address = f"{address}/mcp"
    if console.format == "json":
        served = {"url": address, "project": name, "mcp": mcp_address}
        console.out(json_line(served, console.for_agent))
        sys.stdout.flush()
    places = f"MCP {mcp_address}, REST {address}/api/v1/docs"
    console.note(f"Bethink serves {name} at {address}  ({places})")
    if session and sys.stderr.isatty():  # on a screen, not in a log file
        console.note(f"Your token while it runs: {session}")
    console.note("Press Ctrl-C to stop.")


# The web page


@operation(
    "Browse",
    agents="person",
    examples=(
        "bethink ui",
        "bethink ui --no-open --port 8080",
        "bethink ui --project ~/code/shop",
    ),
)
def ui(
    console: Console,
    no_open: Annotated[bool, Arg("only print the address")] = False,
    port: Annotated[Port, Arg(f"port; default: {PORT}, or any free one")] = None,
) -> None:
    """Open the web page: search, browse, decide.

    Serves search as you type, memories with their sources and history, timeline, graph, inbox and health until Ctrl-C. The address
    signs one browser in, once, within two minutes.
    """
    app = load_app()
    chosen = app.free_port(_HOST, PORT) if port is None else port
    app.site.load_key(data_directory())  # a key that cannot be used is reported first

    def announce(url: str, name: str, session: str) -> None:
        announce_page(console, url, name, no_open)

    run_server(console, Listen(port=chosen), announce, quiet=True)


def announce_page(console: Console, url: str, name: str, no_open: bool) -> None:
    """Print an address that signs a browser in, and open it unless that would take over the terminal."""
    site = load_app().site
    ticket = site.Sessions(site.load_key(data_directory())).new_ticket()
    address = f"{url}/enter?ticket={ticket}"
    as_json = json_line({"url": address}, console.for_agent)
    console.out(as_json if console.format == "json" else address)
    sys.stdout.flush()
    windows = sys.platform in ("darwin", "win32")
    if not no_open and (
        windows or any(os.environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"))
    ):
        from threading import Thread
        from webbrowser import open as browse

        Thread(target=browse, args=(address,), daemon=True).start()
    console.note(f"The web page of {name}. Press Ctrl-C to stop.")


# Tokens


@operation(
    "Serve",
    agents="person",
    lists=("tokens", "token", *_FIELDS.split()),
    examples=(
        "bethink token create --name laptop",
        "bethink token create --name ci --scope write --expires 90d",
        "bethink token create --name anna --person anna --scope write --team shop --personal",
        "bethink token revoke laptop",
    ),
)
def token(
    console: Console,
    action: Annotated[str, Arg(choices=("create", "list", "revoke"), positional=True)] = "list",
    token: Annotated[str | None, Arg("with revoke: a token's name or id", positional=True)] = None,
    name: Annotated[str | None, Arg("what it is for: laptop, ci", action="create")] = None,
    scope: Annotated[
        str, Arg("read or write", choices=("read", "write"), action="create")
    ] = "read",
    all_projects: Annotated[
        bool,
        Arg("for every project, not only that of --project or this folder", action="create"),
    ] = False,
    teams: Annotated[
        Strings,
        Arg(
            "instead for a project that a team shares, by its name there",
            metavar="PROJECT",
            aliases=("team",),
            action="create",
        ),
    ] = (),
    person: Annotated[
        str | None,
        Arg(
            "its owner in a team's database, whose personal memories it reads",
            metavar="NAME",
            action="create",
        ),
    ] = None,
    personal: Annotated[bool, Arg("also for personal memories", action="create")] = False,
    expires: Annotated[
        str | None, Arg("90d, or a date; default: never", metavar="TIME", action="create")
    ] = None,
) -> Result:
    """Create, list and revoke tokens for the server.

    A token is for the project it is made in, for reading only and without personal memories, unless options say more. It is shown
    once; only its hash is stored. A revoked token is refused from the next request on.
    """
    if action == "create":
        own = console.find_known_project()
        granted = [Grant(team_scope(one), "", one.strip()) for one in teams]
        granted = granted or [Grant(own.scope, str(own.root), own.name)]
        now = datetime.now(LOCAL)
        wanted = Caller(
            "",
            name or "",
            scope,
            None if all_projects else tuple(granted),
            personal,
            created=now.astimezone(UTC),
            expires=expiry(expires, now) if expires else None,
            person=person or "",
        )
        return create_token(console, wanted)
    with open_register(console) as known:
        if action == "list":
            found = known.known()
            none = "" if found else f"There are no tokens. {_EXAMPLE}"
            return Result(list(map(token_record, found)), hints=[none])
        if not token:
            raise UsageError("Missing token.", "bethink token revoke NAME")
        return Result(token_record(known.revoke(token, datetime.now(UTC))))


def open_register(console: Console) -> closing[Tokens]:
    """Open the register of tokens: in the database if people share it, else in a file of this machine."""
    from bethink.api import open_store  # this file is loaded before an MCP server greets its client

    config = console.load_settings()
    store = open_store(config, console.find_project()) if config.shared else None
    return closing(security.register_of(store))


def create_token(console: Console, wanted: Caller) -> Result:
    if console.container:
        raise InvalidInput("A token is for whole projects.", "Leave --container out.")
    with open_register(console) as known:
        secret, made = known.create(wanted)
    record = {**token_record(made), "token": secret}
    return Result(record, [secret], ["It is shown only once."])


def token_record(token: Caller) -> Json:
    granted = token.projects and [
        {"scope": one.scope, "name": one.name, "path": one.root} for one in token.projects
    ]
    changed = {
        "projects": granted,
        "state": token.state(datetime.now(UTC)),
        "person": token.person or None,
    }
    return pick(token, _FIELDS) | changed
