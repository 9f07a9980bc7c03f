"""Who may call the server: tokens and what they are for, hosts and origins, and that two projects never see each other."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from contextlib import ExitStack
from datetime import UTC, datetime

import pytest
from http_server import ENDPOINTS, V1, body, home_at, problem, running, served

from bethink import Bethink
from bethink.app.http import app, security
from bethink.app.http.security import Caller, Grant
from bethink.errors import BethinkError
from bethink.model import TRUST

__all__ = ["served"]
ID = "01a1dd89-0000-7000-8000-000000000001"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
PUBLIC = ["/healthz", "/readyz", f"{V1}/openapi.json", f"{V1}/docs"]


@pytest.fixture(scope="module")
def shop(served):
    return served.projects.home.root


@pytest.fixture(scope="module")
def callers(served, shop):
    """Clients of every sort. What was ended was once a token for everything."""
    revoked = served.token("ended", "write", personal=True)
    security.Tokens(served.file).revoke("ended", datetime.now(UTC))
    first, second = (datetime(2020, 1, day, tzinfo=UTC) for day in (1, 2))
    expired = served.token("old", "write", personal=True, now=first, expires=second)
    return {
        "none": served.client(None),
        "read": served.client(served.token("reads", "read", [shop])),
        "write": served.client(served.token("writes", "write", [shop])),
        "everything": served.client(served.token("everything", "write", personal=True)),
        "elsewhere": served.client(served.token("elsewhere", "write", [shop.parent / "other"])),
        "revoked": served.client(revoked),
        "expired": served.client(expired),
        "unknown": served.client(security.new_secret()),
        "malformed": served.client("x y z"),
    }


OF_ALL = ("/condition", "/tokens")  # more than any one project


def sent(client, operation):
    path = V1 + operation.path.replace("{id}", ID)
    return client.request(operation.method, path, json={} if operation.body else None)


@pytest.mark.parametrize("who", ["none", "revoked", "expired", "unknown", "malformed"])
@pytest.mark.parametrize("operation", ENDPOINTS, ids=lambda one: f"{one.method} {one.path}")
def test_every_operation_needs_a_valid_token(callers, who, monkeypatch, operation):
    monkeypatch.setattr(security, "WRONG_TOKENS", 1000)
    response = sent(callers[who], operation)
    problem(response, 401)
    assert response.headers["www-authenticate"].startswith("Bearer ")


@pytest.mark.parametrize("who", ["none", "revoked", "expired", "unknown", "malformed"])
@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/mcp", id="mcp"),
        pytest.param("/", id="solidus"),
        pytest.param("/api/v1/nothing", id="api/v1/nothing"),
    ],
)
def test_every_page_needs_a_valid_token(callers, who, monkeypatch, path):
    monkeypatch.setattr(security, "WRONG_TOKENS", 1000)
    assert callers[who].get(path).status_code == 401


@pytest.mark.parametrize("who", ["none", "revoked", "expired", "unknown", "malformed"])
def test_mcp_needs_a_valid_token(callers, who, monkeypatch):
    monkeypatch.setattr(security, "WRONG_TOKENS", 1000)
    assert callers[who].post("/mcp", json=PING).status_code == 401


@pytest.mark.parametrize(
    "operation",
    [one for one in ENDPOINTS if one.path not in OF_ALL],
    ids=lambda one: f"{one.method} {one.path}",
)
def test_a_token_for_reading_does_not_write(callers, operation):
    assert (sent(callers["read"], operation).status_code == 403) == operation.writes
    assert sent(callers["write"], operation).status_code != 403


def test_public_pages_reveal_nothing_about_the_server(served):
    answers = {path: served.client(None).get(path) for path in PUBLIC}
    assert [
        response
        for response in answers.values()
        if response.status_code != 200 or re.search(r"memory\.db|/home/|/tmp/|rcl_", response.text)
    ] == []
    assert answers["/healthz"].json() == {"status": "ok"}
    assert answers["/readyz"].json() == {"status": "ready"}


def test_no_oauth_sign_in_is_offered(served):
    # Where MCP clients look for a sign-in after a 401: another one would send them round in circles.
    assert served.client(None).get("/.well-known/oauth-protected-resource").status_code == 404


def test_a_token_that_is_revoked_while_in_use_is_refused_from_the_next_request_on(served, shop):
    client = served.client(served.token("short-lived", "read", [shop]))
    assert client.get(f"{V1}/memories").status_code == 200
    security.Tokens(served.file).revoke("short-lived", datetime.now(UTC))
    assert "revoked" in problem(client.get(f"{V1}/memories"), 401)["detail"]
    assert client.post("/mcp", json=PING).status_code == 401


def test_an_unreadable_token_file_refuses_everyone(served, shop):
    client = served.client(served.token("later", "read", [shop]))
    before = served.file.read_text()
    try:
        served.file.write_text("{ half a file")
        assert str(served.file) not in str(problem(client.get(f"{V1}/memories"), 500))
        assert served.owner.get(f"{V1}/memories").status_code == 500
    finally:
        served.file.write_text(before)
    assert client.get(f"{V1}/memories").status_code == 200


@pytest.fixture(scope="module")
def two(served, shop, callers):
    """A memory of each project and one that is personal."""
    ids = {
        "shop": served.add("The shop sells zebra saddles"),
        "other": served.add("The other project breeds zebra foals", callers["elsewhere"]),
        "personal": served.add("I like zebra stripes", personal=True),
    }
    return ids, str(shop.parent / "other")


def found_ids(client, path="/search", **params):
    return {one["id"] for one in body(client.get(V1 + path, params=params))["items"]}


@pytest.mark.parametrize(
    ("who", "sees", "across"),
    [
        pytest.param("read", {"shop"}, {"shop"}, id="read"),
        pytest.param("write", {"shop"}, {"shop"}, id="write"),
        pytest.param("elsewhere", {"other"}, {"other"}, id="elsewhere"),
        pytest.param(
            "everything", {"shop", "personal"}, {"shop", "other", "personal"}, id="everything"
        ),
    ],
)
def test_each_token_sees_only_its_own_projects(callers, two, who, sees, across):
    ids, _ = two
    client, expected = callers[who], {ids[name] for name in sees}
    assert found_ids(client, query="zebra") == expected
    assert found_ids(client, "/memories") & set(ids.values()) == expected
    wide = found_ids(client, query="zebra", all_projects="true")
    assert wide == {ids[name] for name in across}
    exported = client.get(f"{V1}/export").text
    assert [
        name
        for name, id in ids.items()
        if (id in exported) != (name in sees)
        or client.get(f"{V1}/memories/{id}").status_code != (200 if name in sees else 404)
    ] == []


def test_a_token_lists_only_its_own_projects(callers):
    listed = body(callers["read"].get(f"{V1}/projects"))["items"]
    assert [one["name"] for one in listed] == ["shop"]  # numbers of other projects stay unknown


def test_another_project_looks_as_if_it_did_not_exist(callers, two, shop):
    _ids, other = two
    scope = body(callers["elsewhere"].get(f"{V1}/projects"))["items"][0]["scope"]
    said = set()
    absent = ("", "nothing", str(shop / ".." / "other"), "/", "~root", "project:0000000000000000")
    for name in (scope, "other", other, *absent, "\0", "x" * 900):
        found = problem(callers["read"].get(f"{V1}/memories", params={"project": name}), 404)
        shown = name[:200].replace("\0", "")
        said.add(found["detail"].replace(f"'{shown}'", "…"))
    assert len(said) == 1


def test_an_empty_project_name_is_not_found(callers):
    problem(callers["everything"].get(f"{V1}/memories", params={"project": ""}), 404)


def test_a_token_for_everything_names_other_projects(callers, two):
    ids, _other = two
    scope = body(callers["elsewhere"].get(f"{V1}/projects"))["items"][0]["scope"]
    assert [
        name
        for name in ("other", scope)
        if found_ids(callers["everything"], "/memories", project=name)
        != {ids["other"], ids["personal"]}
    ] == []


@pytest.fixture(scope="module")
def attics(tmp_path_factory):
    """A server with a memory in a container of each of two projects: clients by what their token is for, and the ids."""
    folder = tmp_path_factory.mktemp("attics")
    for name in ("shop", "other"):
        (folder / name).mkdir()
    with home_at(folder) as home, running(home, folder / "shop") as here:
        tokens = {
            "shop": here.token("shop", "write", [folder / "shop"]),
            "other": here.token("other", "write", [folder / "other"]),
            "every": here.token("every", "read"),
        }
        clients = {name: here.client(token) for name, token in tokens.items()}
        ids = {}
        for name in ("shop", "other"):
            told = {"memories": [{"content": f"Okapi hay of {name}"}], "container": "attic"}
            added = body(clients[name].post(f"{V1}/memories", json=told), 201)
            ids[name] = added["outcomes"][0]["id"]
        yield clients, ids


@pytest.mark.parametrize(
    ("who", "sees"),
    [
        pytest.param("shop", {"shop"}, id="a token of one project"),
        pytest.param("other", {"other"}, id="a token of another project"),
        pytest.param("every", {"shop", "other"}, id="a token of every project"),
    ],
)
def test_a_token_searches_only_containers_of_its_own_projects(attics, who, sees):
    clients, ids = attics
    found = found_ids(clients[who], query="okapi", all_projects="true")
    assert found == {ids[name] for name in sees}


@pytest.mark.parametrize("who", ["shop", "other"])
def test_a_token_lists_only_containers_of_its_own_projects(attics, who):
    clients, _ = attics
    listed = body(clients[who].get(f"{V1}/projects"))["items"]
    containers = [one["name"] for one in listed if one["scope"].startswith("container:")]
    assert containers == [f"{who}/attic"]


@pytest.mark.parametrize(
    ("scope", "seen"),
    [
        pytest.param("project:shop", True, id="its project"),
        pytest.param("container:shop/attic", True, id="a container of its project"),
        pytest.param("project:shop2", False, id="a project whose id begins alike"),
        pytest.param("container:shop2/attic", False, id="a container of one that begins alike"),
        pytest.param("container:other/attic", False, id="a container of another project"),
        pytest.param("container:other/shop/attic", False, id="a container that names its project"),
        pytest.param("container:attic", False, id="a container of no project"),
        pytest.param("project:", False, id="no project"),
        pytest.param("personal", False, id="what is personal"),
        pytest.param("team", True, id="what is the whole team's"),
    ],
)
def test_a_token_of_one_project_sees(scope, seen):
    caller = Caller("x", "x", "read", (Grant("project:shop", "", "shop"),), personal=False)
    assert caller.sees(scope) is seen


IDS_OTHER_PROJECTS = [
    ("PATCH", "/memories/{id}", {"content": "changed"}),
    ("DELETE", "/memories/{id}", None),
    ("POST", "/memories/{id}/votes", {"value": 5}),
    ("POST", "/memories/{id}/restore", {}),
    ("GET", "/memories/{id}/history", None),
    ("GET", "/memories/{id}/around", None),
    ("DELETE", "/memories/{id}?purge=true", None),
    ("POST", "/memories/{id}/relations", {"target": "{id}"}),
    ("POST", "/memories", {"memories": [{"content": "replaces", "supersedes": ["{id}"]}]}),
]


def test_neither_ids_nor_relations_lead_out_of_what_a_token_sees(callers, two):
    ids, _ = two
    for method, path, fields in IDS_OTHER_PROJECTS:
        for name in ("other", "personal"):
            given = json.loads(json.dumps(fields).replace("{id}", ids[name]))
            address = V1 + path.replace("{id}", ids[name])
            problem(callers["write"].request(method, address, json=given), 404)
    kept = found_ids(callers["everything"], query="zebra", all_projects="true")
    assert kept == set(ids.values())
    told = {"memories": [{"content": "mine"}], "personal": True}
    refused = callers["write"].post(f"{V1}/memories", json=told)
    assert "personal" in problem(refused, 403)["detail"]
    problem(callers["write"].get(f"{V1}/memories", params={"personal": "true"}), 403)
    ids, _ = two
    read, everything, path = callers["read"], callers["everything"], f"{V1}/memories/{ids['shop']}"
    assert everything.post(f"{path}/relations", json={"target": ids["personal"]}).is_success
    assert body(read.get(path))["related"] == []
    (hit,) = body(read.get(f"{V1}/search", params={"query": "zebra saddles"}))["items"]
    assert "related" not in hit
    assert len(body(everything.get(path))["related"]) == 1


WRITES = [
    pytest.param(lambda view, id: view.add("sneaked in"), id="add"),
    pytest.param(lambda view, id: view.update(id, content="changed"), id="update"),
    pytest.param(lambda view, id: view.forget(id), id="forget"),
    pytest.param(lambda view, id: view.forget(id, purge=True), id="purge"),
    pytest.param(lambda view, id: view.vote(id, 1), id="vote"),
    pytest.param(lambda view, id: view.reset(), id="reset"),
    pytest.param(lambda view, id: view.backup("/tmp/x.db"), id="backup"),
    pytest.param(lambda view, id: view.reindex(full=True), id="reindex"),
    pytest.param(lambda view, id: view.write(), id="an empty batch"),
]


@pytest.fixture
def view(served):
    """The memory as a token for reading sees it, with more trust than any token has."""
    view = served.projects.view(Caller("x", "x", "read", hash="x"))
    view.trust = TRUST["user"]
    return view


@pytest.mark.parametrize("write", WRITES)
def test_a_token_for_reading_refuses(view, two, write):
    with pytest.raises(BethinkError, match="read-only"):
        write(view, two[0]["shop"])


def test_a_token_for_reading_counts_a_use(view, two):
    before = view.one(two[0]["shop"]).access_count
    view.get(two[0]["shop"])
    assert view.one(two[0]["shop"]).access_count == before + 1


def asked(here, host: str, **headers: str) -> int:
    """The status of an answer under a name and with headers that no well-behaved client would send."""
    said = {"Host": host, "Connection": "close", "Authorization": f"Bearer {here.session}"}
    lines = [f"{name}: {value}" for name, value in {**said, **headers}.items()]
    with here.connect() as link:
        text = "\r\n".join([f"GET {V1}/memories HTTP/1.1", *lines, "", ""])
        link.sendall(text.encode("latin-1"))
        return int(link.recv(65536).split(b" ", 2)[1])


OURS = "localhost 127.0.0.1 [::1] LOCALHOST localhost:7377 127.0.0.1:1 [::1]:80".split()
FOREIGN = (
    "evil.example evil.example:7377 localhost.evil.example 127.0.0.1.evil.example evil@127.0.0.1"
    " 127.0.0.1@evil.example localhost:7377:1 localhost# localhost. 2130706433 0x7f.1 192.168.0.7"
    " [::ffff:1.2.3.4] [::1"
).split()


def test_our_own_host_names_are_admitted(served):
    assert {host for host in OURS if asked(served, host) != 200} == set()


def test_foreign_host_names_are_refused(served):
    foreign = [*FOREIGN, "local host", ""]
    assert {host for host in foreign if asked(served, host) not in (400, 403)} == set()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"Origin": "http://localhost:1234"}, 200, id="origin-http-localhost-1234-200"),
        pytest.param(
            {"Origin": "http://LOCALHOST:1234"}, 200, id="origin-http-localhost-1234-200-2"
        ),
        pytest.param({"Origin": "http://localhost:4321"}, 403, id="origin-http-localhost-4321"),
        pytest.param({"Origin": "http://localhost"}, 403, id="origin-http-localhost"),
        pytest.param({"Origin": "https://evil.example"}, 403, id="origin-https-evil.example"),
        pytest.param({"Origin": "null"}, 403, id="origin-null"),
        pytest.param({"Origin": "file://"}, 403, id="origin-file"),
        pytest.param(
            {"Origin": "http://localhost:1234.evil.example"},
            403,
            id="origin-http-localhost-1234.evil.example",
        ),
        pytest.param(
            {"Origin": "http://localhost:1234@evil.example"},
            403,
            id="origin-http-localhost-1234-evil.example",
        ),
        pytest.param({"Sec-Fetch-Site": "cross-site"}, 403, id="sec-fetch-site-cross-site"),
        pytest.param({"Sec-Fetch-Site": "same-site"}, 403, id="sec-fetch-site-same-site"),
        pytest.param({"Sec-Fetch-Site": "same-origin"}, 200, id="sec-fetch-site-same-origin"),
        pytest.param({"Sec-Fetch-Site": "none"}, 200, id="sec-fetch-site-none"),
    ],
)
def test_an_origin_is_admitted_only_from_here(served, headers, status):
    assert asked(served, "localhost:1234", **headers) == status, headers


def test_a_foreign_page_gets_no_cors_headers(served):
    foreign = served.client(None, Origin="https://evil.example")
    answers = [foreign.request(one, f"{V1}/memories") for one in ("GET", "OPTIONS", "POST")]
    first = {"Access-Control-Request-Method": "POST"}
    answers.append(served.owner.options(f"{V1}/memories", headers=first))
    assert [answer.status_code for answer in answers] == [403, 403, 403, 405]
    names = [name for answer in answers for name in answer.headers]
    assert not any(name.startswith("access-control-") for name in names)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/healthz", id="healthz"),
        pytest.param(f"{V1}/memories", id="V1-memories"),
        pytest.param(f"{V1}/docs", id="V1-docs"),
        pytest.param("/nothing", id="nothing"),
    ],
)
def test_every_answer_has_security_headers(served, path):
    headers = served.owner.get(path).headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "set-cookie" not in headers
    assert "server" not in headers


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("text/plain", id="text/plain"),
        pytest.param("application/x-www-form-urlencoded", id="application/x-www-form-urlencoded"),
        pytest.param("multipart/form-data", id="multipart/form-data"),
        pytest.param("", id="empty"),
        pytest.param("application/jsonp", id="application/jsonp"),
    ],
)
def test_a_form_is_refused(served, kind):
    content = b'{"memories": [{"content": "planted"}]}'
    headers = {"Content-Type": kind}
    problem(served.owner.post(f"{V1}/memories", content=content, headers=headers), 415)


def test_a_server_on_every_address_admits_only_literal_addresses(tmp_path):
    known = security.Tokens(tmp_path / "tokens.json")
    admission = security.make_admission("0.0.0.0", ["Memory.Example:443"], known)
    ours = ("192.168.0.7:7377", "[fe80::1]", "memory.example", "localhost:7377")
    assert all(map(admission.admits, ours))
    assert not any(map(admission.admits, ("evil.example", "192.168.0.7.evil.example", "1.2.3")))


def test_a_project_with_its_own_database_is_not_served_from_another(offline, tmp_path):
    secluded = tmp_path / "secluded"
    (secluded / ".bethink").mkdir(parents=True)
    offline.mkdir(exist_ok=True)
    (offline / "local-projects").write_text(f"{secluded}\n")
    with Bethink(secluded / ".bethink" / "memory.db", directory=secluded) as memory:
        memory.add("Kept apart from everything else")
    with running(offline, tmp_path / "project") as here:
        client = here.client(here.token("apart", "write", [secluded]))
        assert "separate database" in problem(client.get(f"{V1}/memories"), 422)["detail"]
        assert body(here.owner.get(f"{V1}/memories"))["items"] == []
        problem(here.owner.get(f"{V1}/memories", params={"project": str(secluded)}), 404)


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """A server that nobody else is connected to."""
    monkeypatch.setenv("BETHINK_HOME", str(tmp_path))
    monkeypatch.setenv("BETHINK_EMBEDDING", "hashing")
    with running(tmp_path, tmp_path) as here:
        yield here


HEAD = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"


def answer_on(connection):
    said = b""
    while not said.endswith(b"}") and (more := connection.recv(1000)):
        said += more
    return said


@pytest.mark.parametrize(("first", "said"), [(b"", b""), (b"", HEAD), (HEAD + b"\r\n", HEAD)])
def test_a_client_that_sends_no_request_is_disconnected(alone, monkeypatch, first, said):
    monkeypatch.setattr(app, "HEADERS_WITHIN", 0.2)
    with alone.connect() as slow:
        if first:
            slow.sendall(first)
            assert answer_on(slow).startswith(b"HTTP/1.1 200")
        slow.sendall(said)
        assert answer_on(slow) == b""


@pytest.fixture
def full(alone, monkeypatch):
    """A server that takes three clients, and three that say nothing."""
    monkeypatch.setattr(app, "CONNECTIONS", 3)
    with ExitStack() as stack:
        yield alone, [stack.enter_context(alone.connect()) for _ in range(3)]


def test_too_many_clients_get_retry_after(full):
    server, _ = full
    with server.connect() as late:
        answer = answer_on(late)
    assert answer.startswith(b"HTTP/1.1 503") and b"Retry-After: 1" in answer


@pytest.mark.parametrize("at", range(3))
def test_clients_within_the_limit_are_answered(full, at):
    _, idle = full
    idle[at].sendall(HEAD + b"\r\n")
    assert answer_on(idle[at]).startswith(b"HTTP/1.1 200")


ELSEWHERE = "127.0.0.2"  # another address of this machine


@pytest.fixture
def flooded(alone, monkeypatch):
    """A server that takes four clients, two of one address, and four connections of one address that say nothing."""
    monkeypatch.setattr(app, "CONNECTIONS", 4)
    monkeypatch.setattr(app, "PER_ADDRESS", 2)
    with ExitStack() as stack:
        idle = [stack.enter_context(alone.connect()) for _ in range(4)]
        yield alone, idle


@pytest.mark.parametrize("source", [ELSEWHERE, "127.0.0.1"], ids=["another", "the same"])
def test_half_open_connections_of_one_address_do_not_keep_out_a_client_of(flooded, source):
    here, _ = flooded
    with here.connect(source) as late:
        late.sendall(HEAD + b"\r\n")
        assert answer_on(late).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("at", [0, 1])
def test_an_address_over_its_limit_loses_its_oldest_connections(flooded, at):
    _, idle = flooded
    assert answer_on(idle[at]) == b""


@pytest.mark.parametrize("at", [2, 3])
def test_an_address_over_its_limit_keeps_its_newest_connections(flooded, at):
    _, idle = flooded
    idle[at].sendall(HEAD + b"\r\n")
    assert answer_on(idle[at]).startswith(b"HTTP/1.1 200")


def begin_request(here, link):
    """Sends a request but for its last byte, and waits until the server reads it."""
    text = json.dumps({"memories": [{"content": "Slowly said"}]}).encode()
    head = (
        f"POST {V1}/memories HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: 100-continue\r\n"
        f"Authorization: Bearer {here.session}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(text)}\r\n\r\n"
    )
    link.sendall(head.encode())
    assert link.recv(100).startswith(b"HTTP/1.1 100")
    link.sendall(text[:-1])
    return text[-1:]


def test_a_request_that_is_being_answered_is_not_hung_up_on(alone, monkeypatch):
    monkeypatch.setattr(app, "PER_ADDRESS", 2)
    with alone.connect() as busy, ExitStack() as stack:
        last = begin_request(alone, busy)
        for _ in range(3):
            stack.enter_context(alone.connect())
        busy.sendall(last)
        assert answer_on(busy).startswith(b"HTTP/1.1 201")


def test_an_address_that_is_answered_on_every_connection_gets_no_more(alone, monkeypatch):
    monkeypatch.setattr(app, "PER_ADDRESS", 1)
    with alone.connect() as busy:
        begin_request(alone, busy)
        with alone.connect() as late:
            assert answer_on(late) == b""


@pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl to make a certificate with")
def test_a_client_that_never_finishes_the_tls_handshake_counts(offline, tmp_path, monkeypatch):
    make = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 1 -subj /CN=localhost"
    subprocess.run(make.split(), cwd=tmp_path, capture_output=True, check=True)
    monkeypatch.setattr(app, "PER_ADDRESS", 2)
    tls = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    with running(offline, tmp_path / "project", tls=tls) as here, ExitStack() as stack:
        silent = [stack.enter_context(here.connect()) for _ in range(4)]
        assert [answer_on(one) for one in silent[:2]] == [b"", b""]


@pytest.mark.parametrize(
    ("host", "owner"),
    [
        pytest.param("192.0.2.7", "192.0.2.7", id="IPv4"),
        pytest.param("::ffff:192.0.2.7", "192.0.2.7", id="IPv4 in IPv6"),
        pytest.param("2001:db8:1:2:3::4", "2001:db8:1:2::/64", id="IPv6 by its network"),
        pytest.param("fe80::1%eth0", "fe80::/64", id="IPv6 of a link"),
    ],
)
def test_connections_are_counted_by(host, owner):
    assert app.find_owner(host) == owner


def test_wrong_tokens_are_slowed_down(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(security.time, "monotonic", lambda: now[0])
    guesses = security.GuessLimit()
    wrong = security.refuse("unknown-token")
    answers = [guesses.refuse("10.0.0.1", wrong).status for _ in range(security.WRONG_TOKENS + 1)]
    assert answers == [401] * security.WRONG_TOKENS + [429]
    assert guesses.refuse("10.0.0.2", wrong) is wrong
    now[0] = security.WRONG_WITHIN - 1
    slowed = guesses.refuse("10.0.0.1", wrong)
    assert slowed.status == 429 and slowed.headers["Retry-After"] == "2"
    now[0] += 1
    assert guesses.refuse("10.0.0.1", wrong) is wrong
    for number in range(2 * security.ADDRESSES):
        guesses.refuse(f"fd00::{number:x}", wrong)
    assert len(guesses._wrong) == security.ADDRESSES


def test_a_guess_too_many_is_answered_with_when_to_come_back(alone, monkeypatch):
    monkeypatch.setattr(security, "WRONG_TOKENS", 3)
    guesses = [alone.client(security.new_secret()).get(f"{V1}/memories") for _ in range(4)]
    assert [guess.status_code for guess in guesses] == [401, 401, 401, 429]
    assert 1 <= int(guesses[3].headers["retry-after"]) <= 60
    problem(guesses[3], 429)
    assert alone.client(None).get("/enter?ticket=guess").status_code == 429
    problem(alone.client(None).get(f"{V1}/memories"), 401)
    assert alone.owner.get(f"{V1}/memories").status_code == 200
