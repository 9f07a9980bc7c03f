"""`serve` and `token`: the HTTP server, and who may call it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bethink.errors import BethinkError, InvalidInput, NotFound, UsageError
from bethink.surface.cli import output
from bethink.surface.cli.parsing import FORMATS, Command, offset
from bethink.surface.cli.session import directory, project, settings

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from bethink.surface.http.tokens import Grant, Register, Token

HOST, PORT = "127.0.0.1", 7377
FIELDS = (
    "name",
    "id",
    "scope",
    "projects",
    "personal",
    "person",
    "state",
    "created",
    "expires",
    "used",
)


def serve_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--host",
        default=HOST,
        metavar="ADDRESS",
        help=f"the address to listen on (default: {HOST}, this machine only)",
    )
    parser.add_argument(
        "--port",
        type=offset,
        default=PORT,
        metavar="N",
        help=f"default: {PORT}; 0 takes any that is free",
    )
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate (PEM) for https")
    parser.add_argument("--tls-key", metavar="FILE", help="its private key (PEM)")
    parser.add_argument(
        "--allow-host",
        action="append",
        metavar="NAME",
        default=[],
        help="another name it is called by; may be repeated",
    )
    parser.add_argument(
        "--no-auth",
        action="store_true",
        help="no tokens: every program on this machine may read and write",
    )
    parser.add_argument(
        "--insecure-bind",
        action="store_true",
        help="another address than this machine's own without TLS",
    )


def serve(args: Namespace) -> None:
    """Serve memory over HTTP until stopped: the web page (`bethink ui` opens it), MCP at /mcp, REST under /api/v1 with a page
    that describes it at /api/v1/docs, /healthz, /readyz and /metrics. By default for this machine only, with a token made at start for you, and those of
    `bethink token create` for others. The project is --project, else the current directory. Logs go to stderr.

    Examples:
      bethink serve
      bethink serve --port 0 --json
      bethink token create --name laptop && bethink serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
    """
    needs_libraries()
    check(args)
    launch(args, tell, args.quiet)


def launch(args: Namespace, told: Callable[[Namespace, str, str, str], None], quiet: bool) -> None:
    """Serves until stopped. `told` is called once requests are taken, with the address, the project's name and the owner's token.
    A `quiet` server logs only trouble."""
    from bethink.surface.http import app, security, serving, tokens
    from bethink.surface.http.projects import Projects
    from bethink.surface.http.tokens import register_of

    local = security.is_loopback(args.host)
    session = tokens.new_secret() if local and not args.no_auth else ""
    serving.prepare_log(quiet)
    place = project(args)
    projects = Projects(directory(args) or Path.cwd(), args.database, args.container)
    known = register_of(
        projects.base.store
    )  # a database that cannot be opened is told here and not in the log
    door = security.door_of(args.host, args.allow_host, known, session, open=args.no_auth)
    bound = serving.Serving(args.host, args.port, args.tls_cert, args.tls_key, session)
    serving.run(
        app.build(projects, door), bound, lambda address: told(args, address, place.name, session)
    )
    output.note(args, "stopped")
    if not projects.ended:
        serving.leave()


def needs_libraries() -> None:
    try:
        import jinja2  # noqa: F401
        import mcp.server.streamable_http_manager  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        raise BethinkError(
            f"The server needs the library {missing}, which cannot be used.",
            "pip install 'bethink[server]'",
        ) from error


def check(args: Namespace) -> None:
    """Refuses to be reached from elsewhere without tokens and TLS, unless that is asked for by name."""
    from bethink.surface.http import security

    if bool(args.tls_cert) != bool(args.tls_key):
        raise UsageError("--tls-cert and --tls-key belong together.", "Give both, or neither.")
    for file in filter(None, (args.tls_cert, args.tls_key)):
        if not Path(file).is_file():
            raise NotFound(
                f"There is no file {file}.", "Give a certificate and its key in PEM form."
            )
    if not security.is_address(args.host) and args.host.lower() != "localhost":
        raise UsageError(
            f"'{args.host}' is not an address of this machine.",
            f"Give an address such as {HOST} or 0.0.0.0; --allow-host takes names.",
        )
    if args.port > 65535:
        raise UsageError(f"There is no port {args.port}.", "Ports go up to 65535.")
    if security.is_loopback(args.host):
        return
    if args.no_auth:
        raise UsageError(
            f"--no-auth would let everybody who reaches {args.host} read and write.",
            "Leave it out; `bethink token create` makes tokens.",
        )
    with register(args) as known:
        active = [token for token in known.known() if token.state(_now()) == "active"]
    if args.insecure_bind:
        output.warn(
            args,
            f"Without TLS everything sent to {args.host} can be read on the way, tokens too."
            if not args.tls_cert
            else "TLS is on.",
        )
        return
    if not active:
        raise UsageError(
            f"{args.host} can be reached from elsewhere, and there is no token yet.",
            "bethink token create --name laptop",
        )
    if not args.tls_cert:
        raise UsageError(
            f"{args.host} can be reached from elsewhere, and without TLS tokens can be read on the way.",
            "Give --tls-cert and --tls-key; behind a proxy that does TLS, --insecure-bind.",
        )


@contextmanager
def register(args: Namespace) -> Iterator[Register]:
    """Where the tokens are: in a team's database, or in a file of this machine."""
    from bethink.surface.http import tokens

    known = tokens.open_register(settings(args), project(args))
    try:
        yield known
    finally:
        known.close()


def _now() -> Any:
    from datetime import UTC, datetime

    return datetime.now(UTC)


def tell(args: Namespace, address: str, name: str, session: str) -> None:
    if args.format == "json":
        output.out(
            output.json_text({"url": address, "project": name, "mcp": f"{address}/mcp"}, None)
        )
        sys.stdout.flush()
    output.note(
        args,
        f"Bethink serves {name} at {address}  (MCP {address}/mcp, REST {address}/api/v1/docs, web page: bethink ui)",
    )
    if args.no_auth:
        output.warn(
            args, "--no-auth: every program on this machine may read and write your memories."
        )
    elif session:
        from bethink.surface.http.serving import session_file

        file = session_file(int(address.rpartition(":")[2]))
        # A token belongs on the screen of whoever started this, not in a log file.
        shown = session if sys.stderr.isatty() else f"in {file}"
        output.note(args, f"Token for you while it runs: {shown}")
    output.note(args, "Ctrl-C ends it.")


def token_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=("create", "list", "revoke"),
        default="list",
        help="default: list",
    )
    parser.add_argument("token", nargs="?", metavar="TOKEN", help="of revoke: its name or id")
    making = parser.add_argument_group("create")
    making.add_argument("--name", metavar="NAME", help="what it is for: laptop, ci")
    making.add_argument(
        "--scope",
        choices=("read", "write"),
        default="read",
        metavar="SCOPE",
        help="read (the default) or write",
    )
    making.add_argument(
        "--also",
        action="append",
        metavar="DIR",
        default=[],
        help="for the project of this folder too; may be repeated",
    )
    making.add_argument(
        "--all-projects",
        action="store_true",
        help="for every project, not only the one of --project or this folder",
    )
    making.add_argument(
        "--team",
        action="append",
        metavar="PROJECT",
        default=[],
        help="for a project that a team shares, by its name there, instead",
    )
    making.add_argument(
        "--person",
        metavar="NAME",
        default="",
        help="whose it is, in a team's database: personal memories are theirs",
    )
    making.add_argument("--personal", action="store_true", help="for personal memories too")
    making.add_argument(
        "--expires", metavar="TIME", help="90d, or a date; otherwise it holds until it is revoked"
    )


def token(args: Namespace) -> None:
    """Make, list and revoke the tokens by which programs may call `bethink serve`. A token is for the project it is made in, for
    reading only and without personal memories, unless the options say more. It is shown once; only its hash is kept. A
    revoked token is refused from the next request on.

    Examples:
      bethink token create --name laptop
      bethink token create --name ci --scope write --expires 90d --also ../website
      bethink token create --name anna --person anna --scope write --team shop --personal
      bethink token revoke laptop
    """
    if args.action == "create":
        create_token(args)
    elif (
        args.name
        or args.also
        or args.all_projects
        or args.personal
        or args.expires
        or args.team
        or args.person
    ):
        raise UsageError(
            f"These options belong to `token create`, not to `token {args.action}`.",
            "bethink token create --name laptop",
        )
    elif args.action == "revoke":
        revoke_token(args)
    elif args.token:
        raise UsageError("`token list` takes no name.", "bethink token list")
    else:
        list_tokens(args)


def create_token(args: Namespace) -> None:
    from bethink.text.when import LOCAL, expiry

    if args.token:
        raise UsageError(
            f"A token's name is given with --name, not as '{args.token}'.",
            f"bethink token create --name {args.token}",
        )
    if not args.name:
        raise UsageError(
            "A token needs a name, so that it can be told from others.",
            "bethink token create --name laptop",
        )
    if args.all_projects and (args.also or args.team):
        raise UsageError(
            "--all-projects takes in what --also and --team name.", "Give one of them."
        )
    now = _now()
    with register(args) as known:
        secret, made = known.create(
            args.name,
            args.scope,
            None if args.all_projects else grants(args),
            personal=args.personal,
            now=now,
            expires=expiry(args.expires, now.astimezone(LOCAL)) if args.expires else None,
            person=args.person,
        )

    def text() -> None:
        output.out(secret)
        output.note(args, f"{said(made)}. It is shown this once.")

    output.show(args, {**shown(made, now), "token": secret}, text)


def grants(args: Namespace) -> list[Grant]:
    """The projects that a token is made for: the one it is made in, and those that are named."""
    from bethink import project as projects
    from bethink.features.sync import team_scope
    from bethink.surface.http.tokens import Grant

    shared = [Grant(team_scope(name), "", name.strip()) for name in args.team]
    found = [] if shared else [project(args)]
    for name in args.also:
        path = Path(name).expanduser()
        if not path.is_dir():
            raise NotFound(f"There is no directory {name}.", "Give an existing one to --also.")
        found.append(projects.find(path))
    if args.container:
        raise InvalidInput("A token is for whole projects.", "Leave --container out.")
    if settings(args).shared:
        found = [projects.of_team(one) for one in found]
    return list(
        dict.fromkeys((*shared, *(Grant(one.scope, str(one.root), one.name) for one in found)))
    )


def said(token: Token) -> str:
    projects = (
        "every project"
        if token.projects is None
        else ", ".join(grant.name for grant in token.projects)
    )
    may = "read and write" if token.scope == "write" else "read"
    until = f", until {output.date(token.expires)}" if token.expires else ""
    return f"{token.name} may {may} {projects}{' and personal memories' if token.personal else ''}{until}"


def shown(token: Token, now: Any) -> dict[str, Any]:
    from bethink.recall.shape import iso

    projects = (
        None
        if token.projects is None
        else [{"scope": one.scope, "name": one.name, "path": one.root} for one in token.projects]
    )
    return {
        "name": token.name,
        "id": token.id,
        "scope": token.scope,
        "projects": projects,
        "personal": token.personal,
        "person": token.person or None,
        "state": token.state(now),
        "created": iso(token.created),
        "expires": iso(token.expires),
        "used": token.used or None,
    }


def list_tokens(args: Namespace) -> None:
    now = _now()
    with register(args) as known:
        found = known.known()

    def text() -> None:
        table = [("name", "id", "state", "used", "may")]
        table += [
            (one.name, one.id, one.state(now), one.used or "never", said(one).partition(" may ")[2])
            for one in found
        ]
        if found:
            output.out("\n".join(output.columns(table)))

    output.show_list(args, [shown(one, now) for one in found], FIELDS, text, "tokens", "token")
    if not found:
        output.note(args, "There are no tokens.")
        output.hint(args, "bethink token create --name laptop")


def revoke_token(args: Namespace) -> None:
    if not args.token:
        raise UsageError("Which token is not said.", "bethink token revoke NAME")
    now = _now()
    with register(args) as known:
        ended = known.revoke(args.token, now)
    output.show(args, shown(ended, now), lambda: output.out(f"revoked {ended.name} ({ended.id})"))


COMMANDS = {"serve": Command(serve, serve_options), "token": Command(token, token_options, FORMATS)}
