"""Whatever is sent, the server says what is wrong with it in a sentence, and lives on."""

from __future__ import annotations

import base64
import json
import random
import re
import threading
from urllib.parse import quote

import pytest
from case_tables import cases
from http_server import OPERATIONS, V1, body, conforms, problem, served
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from bethink.errors import OutcomeUnknown, StoreBusy, StoreCorrupt, StoreUnavailable
from bethink.surface.http import api
from bethink.surface.http.api import LARGEST_BODY

__all__ = ["served"]


@pytest.fixture
def client(served):
    yield served.owner
    assert body(served.owner.get(f"{V1}/projects"))["items"]  # it still serves


def raw(served, content: bytes, path="/memories", kind="application/json"):
    return served.owner.post(V1 + path, content=content, headers={"Content-Type": kind})


def test_a_wrong_body_is_named_and_stores_nothing(served, client):
    many = [{"content": f"Statement {number}"} for number in range(10_000)]
    before = body(client.get(f"{V1}/memories"))["total"]
    for content, status in cases("http-bodies", {}):
        assert problem(raw(served, content), status)["hint"], content[:60]
    found = problem(client.post(f"{V1}/memories", json={"memories": many}), 422)
    assert "1,000" in found["detail"]
    assert body(client.get(f"{V1}/memories"))["total"] == before


def begin(served, length: int, content: str = "", path: str = f"{V1}/memories") -> bytes:
    """What is answered to a request whose body is only announced, or only begun."""
    head = f"Authorization: Bearer {served.session}\r\nContent-Length: {length}\r\n\r\n"
    with served.connect() as link:
        link.sendall(f"POST {path} HTTP/1.1\r\n{HEAD}{head}{content}".encode())
        return link.recv(100)


HEAD = "Host: localhost\r\nContent-Type: application/json\r\n"


def test_a_body_over_the_limit_is_refused_before_it_is_read(served, client):
    problem(raw(served, b'{"memories": [{"content": "' + b"x" * LARGEST_BODY + b'"}]}'), 413)
    assert begin(served, 10**15).startswith(b"HTTP/1.1 413")
    json_type = {"Content-Type": "application/json"}
    long = client.post("/mcp", content=b"x" * (LARGEST_BODY + 1), headers=json_type)
    assert long.status_code == 413


def test_a_body_that_never_arrives_is_not_waited_for(served, client, monkeypatch):
    monkeypatch.setattr(api, "BODY_WITHIN", 0.2)
    for path in (f"{V1}/memories", "/mcp"):
        assert begin(served, 100, "{", path).startswith(b"HTTP/1.1 408"), path


def test_a_wrong_method_is_told_which_ones_there_are(client):
    response = client.put(f"{V1}/memories", json={})
    problem(response, 405)
    assert set(response.headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}
    problem(client.request("TRACE", f"{V1}/memories"), 405)
    problem(client.put("/mcp", json={}), 405)


def test_something_unforeseen_is_a_problem_without_details(served, client, monkeypatch, caplog):
    def broken(*_, **__):
        raise RuntimeError("the secret recipe at /home/ada")

    monkeypatch.setattr(type(served.projects.base), "list", broken)
    response = client.get(f"{V1}/memories")
    problem(response, 500)
    assert "recipe" not in response.text
    assert "recipe" in caplog.text
    monkeypatch.undo()


def test_no_log_line_holds_a_question_a_text_or_a_token(served, client, caplog):
    caplog.set_level("INFO", "bethink")
    client.get(f"{V1}/search", params={"query": "giraffe"})
    client.post(f"{V1}/memories", json={"memories": [{"content": "An okapi is no giraffe"}]})
    client.get(f"{V1}/memories/giraffe")
    params = {"name": "giraffe\n evil", "arguments": {"query": "okapi"}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    client.post("/mcp", json=call, headers={"Accept": "application/json, text/event-stream"})
    for _ in range(100):  # a line is written when its answer is on the way already
        lines = [record.getMessage() for record in list(caplog.records) if record.name == "bethink"]
        if any(" /mcp " in line for line in lines):
            break
        client.get("/healthz")
    routes = [line.split()[1] for line in lines]
    assert {"/api/v1/search", "/api/v1/memories", "/api/v1/memories/{id}", "/mcp"} <= set(routes)
    told = "".join(lines)
    assert [word for word in ("giraffe", "okapi", served.session, "\n") if word in told] == []


def test_a_name_that_holds_a_secret_is_refused_and_kept_nowhere(served):
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    told = {"memories": [{"content": "Told under a name that is a secret"}]}
    for where in ({"container": secret}, {"project": f"team:{secret}"}):
        found = problem(served.owner.post(f"{V1}/memories", params=where, json=told), 422)
        assert secret not in str(found)
    kept = [file.read_bytes() for file in served.file.parent.rglob("*") if file.is_file()]
    assert not any(secret.lower().encode() in text.lower() for text in kept)


@pytest.mark.parametrize(
    "text",
    [
        "aa" + "A" * 40 + "_",
        base64.b64encode(random.Random(1).randbytes(45_000)).decode(),
        "function a(b){return b?a(b-1)+b:0};" * 2000,
        "/".join(["a-b_c.d"] * 5000),
    ],
    ids=["humps", "base64", "minified", "path"],
)
def test_no_text_keeps_the_server_from_answering(served, text):
    told = {"memories": [{"content": f"note {text} end"}]}
    answered = threading.Event()

    def post():
        body(served.owner.post(f"{V1}/memories", json=told), 201)
        answered.set()

    sender = threading.Thread(target=post)
    sender.start()
    anybody = served.client(None)
    while sender.is_alive():
        assert anybody.get("/healthz", timeout=20).status_code == 200
    sender.join()
    assert answered.is_set()


@pytest.mark.parametrize("kind", [StoreBusy, StoreUnavailable, OutcomeUnknown, StoreCorrupt])
def test_a_database_that_is_away_is_told_with_when_to_come_back(served, monkeypatch, kind):
    def away(*_, **__):
        raise kind("The server of postgresql://db.example cannot be reached.")

    status, later = (500, None) if kind is StoreCorrupt else (503, "1")
    monkeypatch.setattr(type(served.projects.base.store), "list", away)
    answer = served.owner.get(f"{V1}/memories")
    assert answer.headers.get("retry-after") == later
    assert "db.example" not in str(problem(answer, status))


# Requests made up at random from the description of the API

letters = some.text(some.characters(exclude_categories=("Cs",)), max_size=30)
LIKELY = (
    "|0|1|-1|true|null|7d|2026-03-01|created|decision|hybrid|explore|01a1|person:Ada|a AND b|e30"
)
plausible = some.sampled_from(LIKELY.split("|"))
scalars = some.none() | some.booleans() | some.integers() | some.floats() | letters | plausible
values = some.recursive(
    scalars,
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(letters, inner, max_size=4),
    max_leaves=8,
)


def requests(operation):
    """Parameters and a body in which fields that exist hold anything, and now and then one that does not exist."""
    names = some.sampled_from([*(one.name for one in operation.query), "unknown"])
    query = some.dictionaries(names, letters | plausible, max_size=4)
    sent = some.none()
    if operation.body:
        fields = dict.fromkeys((one.name for one in operation.body), values)
        if "memories" in fields:
            names = "kind tags metadata expires importance supersedes entities".split()
            statement = {**dict.fromkeys(names, values), "content": letters}
            objects = some.fixed_dictionaries({}, optional=statement)
            fields["memories"] = some.lists(objects, max_size=3)
        sent = some.fixed_dictionaries({}, optional=fields) | values
    return some.tuples(query, sent, letters | plausible)


@pytest.mark.parametrize(
    "operation", OPERATIONS, ids=lambda operation: f"{operation.method} {operation.path}"
)
def test_no_request_is_a_server_error(served, operation):
    @settings(max_examples=12, database=None, suppress_health_check=list(HealthCheck))
    @given(requests(operation))
    def tried(request):
        query, given, name = request
        path = re.sub(r"\{\w+\}", quote(name or "x", safe=""), operation.path)
        query = {"container": "fuzz", **query}
        # NaN and Infinity included
        content = json.dumps(given).encode() if operation.body else None
        headers = {} if content is None else {"Content-Type": "application/json"}
        sent = {"params": query, "content": content, "headers": headers}
        response = served.owner.request(operation.method, V1 + path, **sent)
        assert response.status_code < 500, (response.status_code, response.text)
        if response.status_code >= 400:
            assert response.json()["detail"]
        elif operation.gives:
            conforms(operation, response)

    tried()
