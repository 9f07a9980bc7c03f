"""A real server for tests: uvicorn in a thread on a free port, its own home and project, and tokens of every sort."""

from __future__ import annotations

import re
import socket
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx2
import jsonschema
import pytest
import uvicorn

from bethink import project as projects
from bethink.app.http import api as http_api
from bethink.app.http import app, security
from bethink.app.http.projects import Projects
from bethink.app.http.security import Grant
from bethink.app.results import describe_type

V1 = "/api/v1"
ENDPOINTS = tuple(http_api.ENDPOINTS.values())


class Running:
    """A server and clients for it."""

    def __init__(self, address: str, projects: Projects, file: Path, session: str) -> None:
        self.address, self.projects, self.file, self.session = address, projects, file, session
        self._clients: list[httpx2.Client] = []

    def client(self, token: str | None, room: str = "", **headers: str) -> httpx2.Client:
        """A client with a token, or with none; for pages in the room of a session."""
        sent = {**headers, **({"Authorization": f"Bearer {token}"} if token else {})}
        how = {"timeout": 30, "verify": False, "trust_env": False}
        made = httpx2.Client(base_url=self.address + room, headers=sent, **how)
        self._clients.append(made)
        return made

    @cached_property
    def owner(self) -> httpx2.Client:
        """Whoever started the server."""
        return self.client(self.session)

    def connect(self, source: str = "127.0.0.1") -> socket.socket:
        """A connection, for bytes that no well-behaved client would send."""
        port = int(self.address.rpartition(":")[2])
        return socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(source, 0))

    def token(self, name, scope="read", folders=None, personal=False, now=None, **more) -> str:
        found = map(projects.find, folders or ())
        granted = tuple(Grant(one.scope, str(one.root), one.name) for one in found)
        seen = None if folders is None else granted
        about = {"created": now or datetime.now(UTC), **more}
        wanted = security.Caller("", name, scope, seen, personal, **about)
        return security.Tokens(self.file).create(wanted)[0]

    def add(self, text: str, client: httpx2.Client | None = None, **more: Any) -> str:
        """The id of a new memory, told by the owner or by another client."""
        told = {"memories": [{"content": text}], **more}
        sent = (client or self.owner).post(f"{V1}/memories", json=told)
        return str(body(sent, 201)["outcomes"][0]["id"])

    def close(self) -> None:
        for client in self._clients:
            client.close()


@contextmanager
def running(home: Path, directory: Path, *, port=0, tls=()):
    """Serves a directory until the block ends, and sees that nothing is left running."""
    session = security.new_secret()
    file = home / "tokens.json"
    owned = Projects(directory)
    admission = security.make_admission("127.0.0.1", (), security.Tokens(file), session)
    bound = app.listen("127.0.0.1", port)
    started = threading.Event()
    server = uvicorn.Server(app.configure(app.build(owned, admission, started.set), bound, *tls))
    thread = threading.Thread(target=server.run, args=([bound],), daemon=True)
    address = f"http{'s' if tls else ''}://127.0.0.1:{bound.getsockname()[1]}"
    thread.start()
    assert started.wait(20)
    here = Running(address, owned, file, session)
    try:
        yield here
    finally:
        here.close()
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


def body(response: httpx2.Response, status: int = 200) -> Any:
    """The JSON of an answer that must have this status."""
    assert response.status_code == status, (response.status_code, response.text[:500])
    return response.json()


def problem(response: httpx2.Response, status: int) -> dict[str, Any]:
    """The problem of an answer that must fail so."""
    found = body(response, status)
    assert response.headers["content-type"] == "application/problem+json"
    assert found["status"] == status
    assert found["detail"].endswith((".", "!", "?")), found
    assert "Traceback" not in response.text
    return found


def conforms(endpoint: http_api.Endpoint, response: httpx2.Response) -> None:
    """Compare a response with the declared type of its operation's result."""
    if not http_api.returns_lines(endpoint):
        reference = describe_type(endpoint.http.returns)
        schema = {**reference, "components": http_api.describe()["components"]}
        wrong = jsonschema.Draft202012Validator(schema).iter_errors(response.json())
        assert [f"{error.json_path}: {error.message[:200]}" for error in wrong] == []


def find_endpoint(method: str, path: str) -> http_api.Endpoint:
    ours = [one for one in ENDPOINTS if one.method == method]
    return next(one for one in ours if re.fullmatch(one.path.replace("{id}", "[^/]+"), path))


class Api:
    """Calls operations in a container of its own and holds each answer against its description."""

    def __init__(self, served: Running, container: str) -> None:
        self.served, self.container, self.client = served, container, served.owner

    def send(self, address: str, headers: Any = None, **given: Any) -> httpx2.Response:
        """What is given goes into the body where the operation has one, else into the address."""
        method, path = address.split(" ", 1)
        endpoint = find_endpoint(method, path)
        sent: dict[str, Any] = {"params": {"container": self.container}, "json": given}
        if not endpoint.body:
            sent = {"params": sent["params"] | given}
        response = self.client.request(method, V1 + path, headers=headers, **sent)
        if response.status_code < 300:
            assert response.status_code == endpoint.status
            conforms(endpoint, response)
        return response

    def __call__(self, address: str, **given: Any) -> Any:
        response = self.send(address, **given)
        return body(response, response.status_code if response.status_code < 300 else 200)

    def fails(self, address: str, status: int, **given: Any) -> str:
        return str(problem(self.send(address, **given), status)["detail"])

    def add(self, *texts: str, **more: Any) -> list[str]:
        told = self("POST /memories", memories=[{"content": text} for text in texts], **more)
        return [outcome["id"] for outcome in told["outcomes"]]

    def list(self, **params: Any) -> Any:
        return self("GET /memories", **params)["items"]

    def page(self, address: str, **params: Any) -> list[dict[str, Any]]:
        """All pages of a list."""
        pages = [self(address, **params)]
        while offset := pages[-1]["next"]:
            pages.append(self(address, **{**params, "offset": offset}))
        return pages


@pytest.fixture
def api(served: Running, request: pytest.FixtureRequest) -> Api:
    return Api(served, re.sub(r"\W+", "-", request.node.name)[:60])


@contextmanager
def home_at(folder: Path):
    """A home of these tests' own, with the embedder that needs no model."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("BETHINK_DATABASE", "BETHINK_MODEL_DIR", "BETHINK_DEBUG"):
            patch.delenv(variable, raising=False)
        patch.setenv("BETHINK_HOME", str(home))
        patch.setenv("BETHINK_EMBEDDING", "hashing")
        patch.setenv("BETHINK_OFFLINE", "1")
        patch.setenv("HOME", str(folder))
        yield home


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory):
    """One server for the tests of a file. A test that must not meet what others stored names a container of its own."""
    folder = tmp_path_factory.mktemp("served")
    for name in ("shop", "other"):
        (folder / name).mkdir()
    with home_at(folder) as home, running(home, folder / "shop") as here:
        yield here
