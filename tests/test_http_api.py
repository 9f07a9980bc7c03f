"""Every operation of the REST API: it does what it says, and answers in the form that the OpenAPI page promises. And whatever is sent,
the server says what is wrong with it in a sentence, and lives on."""

from __future__ import annotations

import base64
import json
import random
import re
import threading
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import jsonschema
import pytest
from http_server import ENDPOINTS, V1, api, body, conforms, problem, running, served
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from bethink import Bethink
from bethink.app.http import api as http_api
from bethink.app.http.api import LARGEST_BODY
from bethink.app.operation import OPERATIONS as SHARED
from bethink.errors import OutcomeUnknown, StoreBusy, StoreCorrupt, StoreUnavailable
from bethink.features import inbox, promotion
from bethink.model import RELATIONS, Batch, Session, Span

__all__ = ["api", "served"]


def test_a_search_has_pages_that_never_repeat_a_memory(api):
    texts = [f"Build number {n} uses a cache of its own, kind {n * 7}" for n in range(25)]
    api.add(*texts, dedup=False)
    pages = api.page("GET /search", query="cache build", limit=10, intent="explore")
    seen = [hit["id"] for page in pages for hit in page["items"]]
    assert len(seen) == len(set(seen)) == pages[0]["total"] == 25


def test_a_purge_that_is_only_proposed_leaves_the_rule(tmp_path, offline):
    shop = tmp_path / "shop"
    shop.mkdir()
    with Bethink(offline / "memory.db", directory=shop) as memory:
        id = memory.add("Never push on Fridays", kind="gotcha").id
        rule = shop / promotion.promote(memory, id, None).path
    with running(offline, shop) as here:
        agent = here.client(here.token("agent", "write", [shop]))
        purged = agent.delete(f"{V1}/memories/{id}", params={"purge": "true"})
        assert body(purged)["status"] == "proposed" and "Never push" in rule.read_text()
        assert body(here.owner.delete(f"{V1}/memories/{id}", params={"purge": "true"}))["hints"]
        assert not rule.exists()


def test_a_list_has_pages(api):
    ids = api.add(*(f"Line {number}: {number * 31}" for number in range(250)), dedup=False)
    first = api("GET /memories", limit=100)
    assert (first["total"], first["next"]) == (250, 100)
    pages = api.page("GET /memories", limit=100)
    assert [one["id"] for page in pages for one in page["items"]] == list(reversed(ids))


def test_an_export_streams_every_memory_as_a_line(api):
    ids = api.add(*(f"Line {number}: {number * 31}" for number in range(250)), dedup=False)
    api(f"DELETE /memories/{ids[0]}")
    response = api.send("GET /export")
    assert response.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line)["id"] for line in response.text.splitlines()] == ids
    assert len(api.send("GET /export", everything="false").text.splitlines()) == 249


def test_a_session_is_found_by_a_prefix_of_its_id(api, served):
    scope, now = served.projects.home.container(api.container), datetime.now(UTC)
    made = [Session(f"s0{n}", scope, "claude", f"Talk {n}", started_at=now) for n in range(3)]
    span = Span("t1", scope, "s01", None, "Moving the cache", "Redis goes", (1, 9), 0, now)
    batch = Batch(at=now, sessions=tuple(made), spans=((span, ()),))
    served.projects.base.store.write(batch)
    assert [one["name"] for one in api("GET /sessions/s01")["topics"]] == ["Moving the cache"]
    api.fails("GET /sessions/zz", 404)
    s0 = {"session": "s0"}
    asked = {"GET /sessions/s0": {}, "GET /memories": s0, "GET /search": {"query": "x", **s0}}
    assert [
        address
        for address, sent in asked.items()
        if "s00, s01, s02" not in str(problem(api.send(address, **sent), 409))
    ] == []
    assert api.list(session="s01") == []


def test_other_machines_of_a_team_exchange_whole_memories(api):
    api.add("Owls hunt at night")
    ((id, version, hash, *rest),) = api("POST /sync/outline")["lines"]
    assert rest == [True]
    bundle = api("POST /sync/records", ids=[id])["bundle"]
    assert api("POST /sync/take", bundle=bundle, expect={id: version}) == {"left": []}
    assert api("POST /sync/take", bundle=bundle, expect={id: None}) == {"left": [id]}
    assert api("POST /sync/purged", hashes=[hash]) == {"purged": []}
    assert api("POST /sync/remove", purge=[id]) == {"removed": 1}
    assert api("POST /sync/outline")["lines"] == []


def list_described():
    """Method, path and description of each operation."""
    for path, methods in http_api.describe()["paths"].items():
        for method, about in methods.items():
            yield f"{method.upper()} {path.removeprefix(V1)}", about


def test_every_operation_with_an_http_address_is_described_once():
    described = [address for address, _ in list_described()]
    declared = {one.http for one in SHARED.values()} - {""}
    assert declared <= set(described)
    assert sorted(described) == sorted(f"{one.method} {one.path}" for one in ENDPOINTS)


def test_operation_ids_are_unique():
    ids = [about["operationId"] for _, about in list_described()]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("about", [pytest.param(about, id=at) for at, about in list_described()])
def test_an_operation_has_a_summary_with_a_tag(about):
    assert about["summary"] and about["tags"][0]


def find_in(value, key):
    """The values of a key anywhere in the description."""
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if name == key:
            yield inner
        if isinstance(inner, dict | list):
            yield from find_in(inner, key)


def test_every_schema_of_the_description_is_valid():
    components = http_api.describe()["components"]["schemas"].values()
    for schema in (*components, *find_in(http_api.describe()["paths"], "schema")):
        jsonschema.Draft202012Validator.check_schema(schema)


def test_every_reference_of_the_description_leads_to_a_schema():
    known = {
        f"#/components/schemas/{name}" for name in http_api.describe()["components"]["schemas"]
    }
    assert set(find_in(http_api.describe(), "$ref")) == known


@pytest.mark.parametrize(
    ("address", "about"), [pytest.param(*one, id=one[0]) for one in list_described()]
)
def test_every_part_of_a_path_is_a_parameter(address, about):
    declared = {one["name"] for one in about["parameters"] if one["in"] == "path"}
    assert declared == set(re.findall(r"\{(\w+)\}", address)), address


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda one: f"{one.method} {one.path}")
def test_a_test_sends_each_operation(endpoint):
    here = Path(__file__).parent
    files = ("test_http_api.py", "test_browsing.py", "golden/requests.txt")
    text = "".join((here / name).read_text("utf-8") for name in files)
    pattern = re.sub(r"\{\w+\}", r"[^/\"\\s?]+", endpoint.path)
    assert re.search(rf'{endpoint.method} {pattern}["?\s]', text)


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        pytest.param("type", RELATIONS, id="relations"),
        pytest.param("queue", inbox.QUEUES, id="queues"),
        pytest.param("act", (*inbox.ACTS,), id="decisions"),
    ],
)
def test_choices_are_those_of_the_code_behind(name, choices):
    known = {one.name: one.arg.choices for endpoint in ENDPOINTS for one in endpoint.takes}
    assert known[name] == choices


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("kind", "kinds", id="kind"),
        pytest.param("tag", "tags", id="tag"),
        pytest.param("entity", "entities", id="entity"),
        pytest.param("source", "sources", id="source"),
        pytest.param("host", "hosts", id="host"),
        pytest.param("profile", "intent", id="profile"),
    ],
)
def test_older_argument_names_are_accepted(api, old, new):
    value = "relevance" if new == "intent" else "decision"
    answers = [api("GET /search", query="x", **{name: value}) for name in (old, new)]
    assert answers[0] == answers[1]


def test_the_page_needs_nothing_from_elsewhere(served):
    response = served.client(None).get(f"{V1}/docs")
    assert response.status_code == 200
    policy = response.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in policy
    files = re.findall(r"/static/[\w.]+", response.text)
    text = "".join(served.client(None).get(file).text for file in files) + response.text
    elsewhere = r"(?:src|href)=\"(?!openapi\.json|/static/)|https?://|@import|url\("
    assert len(files) == 2 and not re.search(elsewhere, text)
    assert served.client(None).get(f"{V1}/openapi.json").json()["openapi"] == "3.1.0"


@pytest.fixture
def client(served):
    yield served.owner
    assert body(served.owner.get(f"{V1}/projects"))["items"]  # it still serves


def raw(served, content: bytes, path="/memories", kind="application/json"):
    return served.owner.post(V1 + path, content=content, headers={"Content-Type": kind})


@pytest.mark.parametrize(
    ("content", "status"),
    [
        pytest.param(b"", 422, id="bytes-422"),
        pytest.param(b"{", 400, id="left-curly-bracket"),
        pytest.param(b"\xff\xfe\x00", 400, id="bytes-400"),
        pytest.param(b'{"memories": "x"}', 422, id="memories-x"),
        pytest.param(b'{"memories": []}', 422, id="memories-422"),
        pytest.param(b'{"memories": [1]}', 422, id="memories-1"),
        pytest.param(b'{"memories": [{}]}', 422, id="memories-422-2"),
        pytest.param(b'{"memories": [{"content": "\\ud800"}]}', 400, id="memories-content-ud800"),
        pytest.param(
            b'{"memories": [{"content": "x", "supersedes": ["zz"]}]}',
            404,
            id="memories-content-x-supersedes-zz",
        ),
        pytest.param(
            b'{"memories": [{"content": "x"}], "personal": "yes"}',
            422,
            id="memories-content-x-personal-yes",
        ),
        pytest.param(
            b'{"memories": [{"content": "x"}], "else": 1}', 422, id="memories-content-x-else-1"
        ),
        pytest.param(b'{"memories": [{"content": %s}]}' % b"5", 422, id="memories-content-s-5"),
        pytest.param(
            b'{"memories": [{"content": %s}]}' % b"null", 422, id="memories-content-s-null"
        ),
        pytest.param(b'{"memories": [{"content": %s}]}' % b'" \\n "', 422, id="memories-content-s"),
        pytest.param(
            b'{"memories": [{"content": %s}]}' % b'"x", "kind": "nonsense"',
            422,
            id="memories-content-s-x-kind-nonsense",
        ),
        pytest.param(
            b'{"memories": [{"content": %s}]}' % b'"x", "importance": "9"',
            422,
            id="memories-content-s-x-importance-9",
        ),
        pytest.param(
            b'{"memories": [{"content": %s}]}' % b'"x", "importance": 11',
            422,
            id="memories-content-s-x-importance-11",
        ),
        pytest.param(
            b'{"memories": [{"content": %s}]}' % b'"x", "importance": NaN',
            422,
            id="memories-content-s-x-importance-nan",
        ),
        pytest.param(
            b'{"memories": [{"content": %s}]}' % b'"x", "importance": true',
            422,
            id="memories-content-s-x-importance-true",
        ),
        pytest.param(
            b'{"memories": [{"content": %s}]}' % b'"x", "metadata": {"a": Infinity}',
            422,
            id="memories-content-s-x-metadata-infinity",
        ),
        pytest.param(
            b'{"memories": [{"content": %s}]}' % b'"x", "metadata": {"a": 1e999}',
            422,
            id="memories-content-s-x-metadata-1e999",
        ),
        pytest.param(
            b'{"memories": [{"content": %s}]}' % b'"x", "metadata": []',
            422,
            id="memories-content-s-x-metadata",
        ),
        pytest.param(
            b'{"memories": [{"content": %s}]}' % b'"x", "tags": "a"',
            422,
            id="memories-content-s-x-tags",
        ),
        pytest.param(
            b'{"memories": [{"content": %s}]}' % b'"x", "expires": "yesterday"',
            422,
            id="memories-content-s-x-expires-yesterday",
        ),
        pytest.param(
            b'{"memories": [{"content": %s}]}' % b'"x", "expires": "soon"',
            422,
            id="memories-content-s-x-expires-soon",
        ),
        pytest.param(
            b'{"memories": [{"content": %s}]}' % b'"x", "unknown": 1',
            422,
            id="memories-content-s-x-unknown-1",
        ),
        pytest.param(b"[" * 100_000, 400, id="left-square-bracket"),
        pytest.param(
            b'{"memories": [{"content": "x", "metadata": %s}]}'
            % (b'{"a":' * 500 + b"1" + b"}" * 500),
            400,
            id="memories-content-x-metadata-s",
        ),
        pytest.param(b"null", 422, id="null"),
        pytest.param(b'"text"', 422, id="text"),
    ],
)
def test_a_wrong_body_is_refused_with_a_hint(served, content, status):
    assert problem(raw(served, content), status)["hint"], content[:60]


def test_a_refused_body_stores_nothing(client):
    many = [{"content": f"Statement {number}"} for number in range(10_000)]
    before = body(client.get(f"{V1}/memories"))["total"]
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


def test_a_body_over_the_limit_is_not_read(served, client):
    problem(raw(served, b'{"memories": [{"content": "' + b"x" * LARGEST_BODY + b'"}]}'), 413)
    assert begin(served, 10**15).startswith(b"HTTP/1.1 413")
    json_type = {"Content-Type": "application/json"}
    long = client.post("/mcp", content=b"x" * (LARGEST_BODY + 1), headers=json_type)
    assert long.status_code == 413


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(f"{V1}/memories", id="V1-memories"),
        pytest.param("/mcp", id="mcp"),
    ],
)
def test_a_body_that_never_comes_is_not_waited_for(served, monkeypatch, path):
    monkeypatch.setattr(http_api, "BODY_WITHIN", 0.2)
    assert begin(served, 100, "{", path).startswith(b"HTTP/1.1 408"), path


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


def test_a_name_that_holds_a_secret_is_refused(served):
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    told = {"memories": [{"content": "Told under a name that is a secret"}]}
    assert [
        where
        for where in ({"container": secret}, {"project": f"team:{secret}"})
        if secret in str(problem(served.owner.post(f"{V1}/memories", params=where, json=told), 422))
    ] == []
    kept = [file.read_bytes() for file in served.file.parent.rglob("*") if file.is_file()]
    assert not any(secret.lower().encode() in text.lower() for text in kept)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("aa" + "A" * 40 + "_", id="aa"),
        pytest.param(base64.b64encode(random.Random(1).randbytes(45_000)).decode(), id="base64"),
        pytest.param(
            "function a(b){return b?a(b-1)+b:0};" * 2000, id="function-b-return-b-b-1-b-0"
        ),
        pytest.param("/".join(["a-b_c.d"] * 5000), id="solidus"),
    ],
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
def test_an_unreachable_database_is_answered_with_retry_after(served, monkeypatch, kind):
    def away(*_, **__):
        raise kind("The server of postgresql://db.example cannot be reached.")

    status, later = (500, None) if kind is StoreCorrupt else (503, "1")
    monkeypatch.setattr(type(served.projects.base.store), "list", away)
    answer = served.owner.get(f"{V1}/memories")
    assert answer.headers.get("retry-after") == later
    assert "db.example" not in str(problem(answer, status))


# Requests made up at random from the description of the API

letters = some.text(some.characters(exclude_categories=("Cs",)), max_size=30)
LIKELY = "|0|1|-1|true|null|7d|2026-03-01|created|decision|hybrid|explore|01a1|person:Ada|e30"
plausible = some.sampled_from([*LIKELY.split("|"), "a AND b"])
scalars = some.none() | some.booleans() | some.integers() | some.floats() | letters | plausible
values = some.recursive(
    scalars,
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(letters, inner, max_size=4),
    max_leaves=8,
)


def requests(endpoint):
    """Parameters and a body in which fields that exist hold anything, and now and then one that does not exist."""
    names = some.sampled_from([*(one.name for one in endpoint.takes), "unknown"])
    query = some.dictionaries(names, letters | plausible, max_size=4)
    sent = some.none()
    if endpoint.body:
        fields = dict.fromkeys((one.name for one in endpoint.body), values)
        if "memories" in fields:
            names = "kind tags metadata expires importance supersedes entities".split()
            statement = {**dict.fromkeys(names, values), "content": letters}
            objects = some.fixed_dictionaries({}, optional=statement)
            fields["memories"] = some.lists(objects, max_size=3)
        sent = some.fixed_dictionaries({}, optional=fields) | values
    return some.tuples(query, sent, letters | plausible)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda one: f"{one.method} {one.path}")
def test_no_request_is_a_server_error(served, endpoint):
    @settings(max_examples=12, database=None, suppress_health_check=list(HealthCheck))
    @given(requests(endpoint))
    def tried(request):
        query, given, name = request
        path = re.sub(r"\{\w+\}", quote(name or "x", safe=""), endpoint.path)
        query = {"container": "fuzz", **query}
        # NaN and Infinity included
        content = json.dumps(given).encode() if endpoint.body else None
        headers = {} if content is None else {"Content-Type": "application/json"}
        sent = {"params": query, "content": content, "headers": headers}
        response = served.owner.request(endpoint.method, V1 + path, **sent)
        assert response.status_code < 500, (response.status_code, response.text)
        if response.status_code >= 400:
            assert response.json()["detail"]
        else:
            conforms(endpoint, response)

    tried()
