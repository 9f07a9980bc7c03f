"""The web page without a browser: who is let in by tickets, cookies and marks, how `bethink ui` starts it, and how it tells what changed."""

import json
import random
import re
import signal
import stat
import subprocess
import sys
import time
from datetime import UTC, datetime
from itertools import count
from types import SimpleNamespace
from urllib.parse import urlencode

import httpx2
import pytest
from http_server import body, problem, running, served
from stores import child_environment

from bethink import Bethink
from bethink.app import web
from bethink.app.http import security
from bethink.app.http.security import Tokens
from bethink.app.web import Sessions, load_key, note_visit
from bethink.app.web.pages import PAGES
from bethink.app.web.render import diff, format_line, format_text, headline, read_digest
from bethink.errors import ConfigError
from bethink.schema import argument_fields

__all__ = ["served"]
ID = "01a1dd89-0000-7000-8000-000000000001"
KEY = b"k" * 32
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def clock(monkeypatch):
    """A time that stands still until it is moved."""
    clock = SimpleNamespace(now=1_800_000_000.0)
    monkeypatch.setattr(time, "time", lambda: clock.now)
    return clock


@pytest.fixture(scope="module")
def sessions(served):
    return Sessions(load_key(served.file.parent))


@pytest.fixture(scope="module")
def signed_in(served, sessions):
    """A client with the cookie of a session, and the mark of its forms."""
    session = sessions.begin()
    cookie = f"{session.cookie_name}={session.cookie}"
    return served.client(None, session.room, Cookie=cookie), sessions.mark(session)


def address(path):
    return path.replace("{id}", ID).replace("{action}", "forget")


def test_a_ticket_is_used_once(clock):
    sessions = Sessions(KEY)
    ticket, late = sessions.new_ticket(), sessions.new_ticket()
    assert [bool(sessions.enter(ticket)) for _ in range(2)] == [True, False]
    clock.now += 5
    assert Sessions(KEY).enter(ticket) is None  # of before the start: a used one stays used
    clock.now += web.TICKET_SECONDS
    assert sessions.enter(late) is None


def test_each_token_opens_only_its_own_use():
    sessions, other = Sessions(KEY), Sessions(b"x" * 32)
    session = sessions.begin()

    def opened_by(text, known):
        reads = {"ticket": known.enter, "cookie": known.find}
        reads["mark"] = lambda mark: known.is_genuine(session, mark)
        return {name for name, read in reads.items() if read(text)}

    made = {"ticket": sessions.new_ticket(), "cookie": session.cookie}
    cases = {**made, "mark": sessions.mark(session)}
    assert [
        use
        for use, text in cases.items()
        if opened_by(text, sessions) != {use} or opened_by(text, other) != set()
    ] == []


def test_a_forged_cookie_is_refused():
    sessions, _other = Sessions(KEY), Sessions(b"x" * 32)
    session = sessions.begin()
    payload, at, signature = session.cookie.split(".")
    cases = [
        f"{payload}x.{at}.{signature}",
        f"{payload}.{at[:-1]}A.{signature}",
        f"{payload}.{at}.{signature[:-2]}AA",
        f"{payload}.{at}",
    ]
    assert [
        forged for forged in cases if forged != session.cookie and sessions.find(forged) is not None
    ] == []


def test_a_session_is_renewed_while_it_is_used(clock):
    sessions = Sessions(KEY)
    session = sessions.begin()
    clock.now += web.COOKIE_SECONDS - 10
    renewed = sessions.find(session.cookie)
    assert renewed.cookie != session.cookie and renewed.room == session.room
    clock.now += 20
    assert sessions.find(session.cookie) is None and sessions.find(renewed.cookie)


def test_a_mark_belongs_to_its_session(clock):
    sessions = Sessions(KEY)
    session = sessions.begin()
    clock.now += web.COOKIE_SECONDS - 10
    renewed = sessions.find(session.cookie)
    assert sessions.is_genuine(renewed, sessions.mark(renewed))
    assert not sessions.is_genuine(sessions.begin(), sessions.mark(renewed))


def test_a_key_is_a_private_file(tmp_path):
    folder = tmp_path / "home"
    key = load_key(folder)
    file = folder / "web.key"
    assert load_key(folder) == key and stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_key_that_cannot_be_trusted_is_refused(tmp_path):
    folder = tmp_path / "home"
    load_key(folder)
    file = folder / "web.key"
    wrong = [(text, 0o600, "holds no key") for text in ("", "short", "zz" * 32, "00" * 31)]
    for text, mode, said in (*wrong, ("00" * 32, 0o644, "Others can read")):
        file.write_text(text)
        file.chmod(mode)
        with pytest.raises(ConfigError, match=said):
            load_key(folder)


def test_a_visit_knows_when_the_last_one_ended():
    kept, last = note_visit("", 1000, True)
    assert (kept, last) == ("1000", None)
    kept, last = note_visit(kept, 1000 + web.VISIT_SECONDS / 2, True)  # the same visit
    assert last is None
    ended = int(1000 + web.VISIT_SECONDS / 2)
    kept, last = note_visit(kept, 90_000, True)
    assert last == ended
    assert note_visit(kept, 95_000, False) == (kept, ended)  # a script that looks for what is new
    assert note_visit(kept, 200_000, True)[1] == 90_000


@pytest.mark.parametrize(
    "spoiled",
    [
        pytest.param("x", id="x"),
        pytest.param("-", id="hyphen-minus"),
        pytest.param("9" * 60, id="9"),
        pytest.param("1-2-3-4", id="1-2-3-4"),
        pytest.param("\u0663", id="arabic"),
        pytest.param("-5", id="5"),
    ],
)
def test_a_spoiled_visit_begins_again(spoiled):
    assert note_visit(spoiled, 1000, True)[0].endswith("1000")


@pytest.mark.parametrize(("method", "path", "_unused"), PAGES)
def test_every_page_needs_a_session(served, method, path, _unused):
    # A token opens no page.
    assert [
        client
        for client in (served.client(None), served.owner)
        for answer in [client.request(method, address(path), headers=FORM)]
        if answer.status_code != 401
        or "bethink ui" not in answer.text
        or (not answer.headers["content-type"].startswith("text/html"))
    ] == []


def test_an_unknown_page_is_not_found(served, signed_in):
    client, _ = signed_in
    outside = served.client(None, Cookie=client.headers["cookie"])
    assert [
        lost
        for lost in (client.get("/nothing"), outside.get("/nothing/at/all"))
        if (lost.status_code, lost.headers["content-type"]) != (404, "text/html; charset=utf-8")
        or "No such address." not in lost.text
    ] == []


def test_a_session_opens_no_api(served, signed_in):
    client, _ = signed_in
    outside = served.client(None, Cookie=client.headers["cookie"])
    assert all(problem(outside.get(path), 401) for path in ("/api/v1/memories", "/mcp"))


def test_a_ticket_gives_a_cookie_for_its_room_only(served, sessions):
    ticket, client = sessions.new_ticket(), served.client(None)
    assert client.head(f"/enter?ticket={ticket}").status_code == 401  # a look does not use it up
    entered = client.get(f"/enter?ticket={ticket}")
    pair, *attributes = entered.headers["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=strict"} <= set(attributes) and "Domain" not in attributes
    # A browser does not tell ports apart, but it does paths, and this one nobody can guess.
    (room,) = [part.removeprefix("Path=") for part in attributes if part.startswith("Path=")]
    assert re.fullmatch(r"/~[\w-]{22}", room) and f"url={room}/" in entered.text
    assert [
        elsewhere
        for elsewhere in ("", "/~guess", sessions.begin().room)
        if served.client(None, elsewhere, Cookie=pair).get("/").status_code != 401
    ] == []
    theirs = f'bethink-8080=planted; json={{"a": "b, c"}}; =; ;;; x; {pair}'
    cases = [(pair, 200), (theirs, 200), (pair.partition("=")[0] + "=planted", 401)]
    assert [
        served.client(None, room, Cookie=cookies).get("/").status_code for cookies, _ in cases
    ] == [status for _, status in cases]
    assert client.get(f"/enter?ticket={ticket}").status_code == 401


def test_a_person_who_signed_out_stays_out(served):
    client, mark = sign_in(served, served.session)
    assert "set-cookie" in client.get("/search").headers  # each look holds the session on
    script = {"Sec-Fetch-Dest": "empty"}  # whose answer may come after the one that signs out
    assert "set-cookie" not in client.get("/live", headers=script).headers
    left = client.post("/leave", content=f"mark={mark}", headers=FORM)
    assert "Max-Age=0" in left.headers["set-cookie"]
    assert client.get("/").status_code == 401


def test_a_session_ends_with_its_token(served):
    token = served.token("leaves", "write", folders=[served.projects.home.root])
    client, _ = sign_in(served, token)
    assert client.get("/").status_code == 200
    Tokens(served.file).revoke("leaves", datetime.now(UTC))
    gone = client.get("/")
    assert gone.status_code == 401 and "revoked" in gone.text


def test_the_owner_sees_the_health_page(served):
    owner, _ = sign_in(served, served.session)
    assert owner.get("/health").status_code == 200


SHOWN = {path for way, path, _ in PAGES if way == "GET"}
CHANGING = sorted({path for way, path, _ in PAGES if way == "POST"})


@pytest.mark.parametrize(
    "forge",
    [
        pytest.param(lambda mark, sessions: "", id="none"),
        pytest.param(lambda mark, sessions: "x" * 64, id="made up"),
        pytest.param(lambda mark, sessions: sessions.mark(sessions.begin()), id="another session"),
        pytest.param(lambda mark, sessions: mark[:-1], id="cut short"),
    ],
)
@pytest.mark.parametrize("path", CHANGING)
def test_a_change_needs_the_mark_of_its_session(signed_in, sessions, path, forge):
    client, mark = signed_in
    form = f"mark={forge(mark, sessions)}&value=1"
    answer = client.post(address(path), content=form, headers=FORM)
    assert (answer.status_code, "nothing was changed" in answer.text) == (403, True)


@pytest.mark.parametrize("path", [path for path in CHANGING if path not in SHOWN])
def test_a_change_is_no_page(signed_in, path):
    client, mark = signed_in
    assert client.get(address(path) + f"?mark={mark}").status_code == 405


FORM_ANOTHER_SITE = [
    ({"Origin": "https://elsewhere.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
    ({"Host": "elsewhere.example"}, 403),
    ({"Content-Type": "text/plain"}, 403),
    ({"Content-Type": "multipart/form-data; boundary=x"}, 400),
]


def test_a_form_of_another_site_changes_nothing(served, signed_in):
    client, mark = signed_in
    id = _one(served)
    assert [
        client.post(
            f"/memory/{id}/forget", content=f"mark={mark}", headers={**FORM, **headers}
        ).status_code
        for headers, _ in FORM_ANOTHER_SITE
    ] == [status for _, status in FORM_ANOTHER_SITE]
    assert body(served.owner.get(f"/api/v1/memories/{id}"))["deleted_at"] is None


def test_a_form_with_its_mark_makes_the_change(served, signed_in):
    client, mark = signed_in
    id, ours = _one(served), {**FORM, "Origin": served.address}
    answer = client.post(f"/memory/{id}/forget", content=f"mark={mark}", headers=ours)
    assert answer.status_code == 303
    assert answer.headers["location"] == f"{client.base_url.path}memory/{id}?done=forgotten"
    found = body(served.owner.get(f"/api/v1/memories/{id}/history"))["items"][-1]
    assert (found["action"], found["actor"]) == ("forget", "user")


_numbers = count()


def _one(served):
    """A memory of this test's own."""
    return served.add(f"Statement {next(_numbers)} of the web page's tests", dedup=False)


def test_every_page_has_a_strict_policy(served, signed_in):
    client, _ = signed_in
    cases = ["/", "/memory/none", "/static/site.css", "/enter", "/static/none"]
    assert [
        path
        for path in cases
        for headers in [client.get(path).headers]
        for policy in [headers["content-security-policy"]]
        if ("default-src 'none'" not in policy or "frame-ancestors 'none'" not in policy)
        or ("unsafe" in policy or headers["x-content-type-options"] != "nosniff")
        or headers["referrer-policy"] != "same-origin"
    ] == []
    assert client.get("/").headers["cache-control"] == "no-store"


def test_an_odd_address_gets_a_page(served, signed_in):
    client, _ = signed_in
    odd = [f"/memory/{one}" for one in ("none", "x" * 300, "%00", "..%2f..")]
    assert [
        path
        for path in (*odd, "/search?project=%00", "/search?address=1")
        for answer in [client.get(path)]
        if answer.status_code not in (200, 404, 405, 409, 422)
        or not answer.headers["content-type"].startswith("text/html")
        or "Traceback" in answer.text
    ] == []


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="bytes"),
        pytest.param(b"\xff\xfe", id="bytes-2"),
        pytest.param(b"mark", id="mark"),
        pytest.param(b"&" * 5000, id="ampersand"),
        pytest.param(b"a=1&" * 3000, id="1"),
        pytest.param(b"%" * 1000, id="percent-sign"),
    ],
)
def test_an_odd_form_is_refused(served, signed_in, content):
    client, _ = signed_in
    answer = client.post(f"/memory/{ID}/vote", content=content, headers=FORM)
    assert answer.status_code in (400, 403)


def sign_in(served, token):
    """A client that signed in with a token, and the mark of its forms."""
    answer = served.client(None).post("/signin", content=urlencode({"token": token}), headers=FORM)
    assert answer.status_code == 200, answer.text[:400]
    pair, *attributes = answer.headers["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=strict"} <= set(attributes) and token not in pair
    room = next(part for part in attributes if part.startswith("Path=/~")).removeprefix("Path=")
    client = served.client(None, room, Cookie=pair)
    return client, re.search(r'name="mark" value="([^"]+)"', client.get("/").text)[1]


def test_a_member_with_a_reading_token_changes_nothing(served, tmp_path):
    project = served.projects.home.root
    reader, mark = sign_in(served, served.token("ada", "read", folders=[project]))
    id = _one(served)
    page = reader.get("/")
    assert page.status_code == 200 and "Signed in as <bdi>ada</bdi>" in page.text
    assert "open-add" not in page.text and ">Health<" not in page.text
    assert reader.get(f"/memory/{id}").status_code == 200
    assert "Forget" not in reader.get(f"/memory/{id}").text
    assert reader.get("/health").status_code == 403
    refused = reader.post(f"/memory/{id}/forget", content=f"mark={mark}", headers=FORM)
    assert refused.status_code == 403 and "read-only" in refused.text


def test_a_member_with_a_writing_token_adds_memories(served, tmp_path):
    project = served.projects.home.root
    writer, mark = sign_in(served, served.token("bob", "write", folders=[project]))
    form = urlencode({"mark": mark, "content": "Members add memories, too", "tags": "team, web"})
    added = writer.post("/add", content=form, headers=FORM)
    assert added.status_code == 303
    id = re.search(r"memory/([\w-]+)", added.headers["location"])[1]
    made = body(served.owner.get(f"/api/v1/memories/{id}"))
    assert (made["content"], made["tags"]) == ("Members add memories, too", ["team", "web"])
    (first,) = body(served.owner.get(f"/api/v1/memories/{id}/history"))["items"]
    assert first["actor"] == "token:bob"


def test_a_member_of_another_project_sees_only_that_project(served, tmp_path):
    secret = _one(served)
    folders = [tmp_path / name for name in ("theirs", "also-theirs")]
    for folder in folders:
        folder.mkdir()
        with Bethink(directory=folder) as memory:
            memory.add(f"This is of {folder.name}")
    client, _ = sign_in(served, served.token("eve", "read", folders=folders))
    assert "This is of theirs" in client.get("/search").text
    state = client.get("/live").text
    _one(served)
    assert client.get("/live").text == state  # what is told elsewhere is no news here
    with Bethink(directory=folders[0]) as memory:
        memory.add("There is something new")
    assert client.get("/live").text != state
    every = client.get("/search?project=all").text
    assert "This is of also-theirs" in every and "of the web page's tests" not in every
    home = served.projects.home.scope
    cases = [f"/memory/{secret}", f"/graph?focus={secret}", f"/?project={home}"]
    assert [path for path in cases if client.get(path).status_code != 404] == []


def test_wrong_tokens_are_slowed_down(tmp_path, offline, monkeypatch):
    offline.mkdir(exist_ok=True)
    monkeypatch.setattr(security, "WRONG_TOKENS", 1)
    with running(offline, tmp_path / "project") as server:
        client, foreign = server.client(None), {**FORM, "Origin": "https://elsewhere.example"}
        assert [
            status
            for status, headers in ((401, FORM), (429, FORM), (403, foreign))
            for answer in [client.post("/signin", content="token=rcl_guess", headers=headers)]
            if (answer.status_code != status or "set-cookie" in answer.headers)
            or "rcl_guess" in answer.text
        ] == []
        assert client.get("/signin").status_code == 405  # a token in an address is no way in
        sign_in(server, server.session)  # a right one passes: others may come from the same address


def test_the_ui_command_starts_a_server_that_ends_with_the_terminal(offline, tmp_path):
    with Bethink(directory=tmp_path) as memory:
        memory.add("We deploy from main")
    command = [sys.executable, "-m", "bethink", "ui", "--json", "--port", "0", "--no-open"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, env=child_environment(), **pipes) as process:
        url = json.loads(process.stdout.readline())["url"]
        with httpx2.Client(trust_env=False, timeout=30) as client:
            on = client.get(url).text.partition("url=")[2].partition('"')[0]
            assert "We deploy from main" in client.get(httpx2.URL(url).join(on)).text
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        said = process.stderr.read()
    assert f"web page of {tmp_path.name}" in said and "Traceback" not in said
    assert url.startswith("http://127.0.0.1:") and url.partition("ticket=")[2] not in said


def test_the_ui_command_refuses_a_key_that_others_can_read(cli):
    cli.home.mkdir()
    (cli.home / "web.key").write_text("00" * 32)
    (cli.home / "web.key").chmod(0o644)
    assert "web.key" in cli.fails("ui", "--port", "0", code=2)


def put_together(found):
    return ["".join(text for change, text in found if change != gone) for gone in ("new", "gone")]


@pytest.mark.parametrize(
    ("before", "after", "pieces"),
    [
        pytest.param("same", "same", [("kept", "same")], id="same"),
        pytest.param("", "", [], id="empty"),
        pytest.param("", "new", [("new", "new")], id="empty-new"),
        pytest.param("old", "", [("gone", "old")], id="old"),
        pytest.param(
            "keeps 30 minutes",
            "keeps 60 minutes",
            [("kept", "keeps "), ("gone", "30"), ("new", "60"), ("kept", " minutes")],
            id="keeps-30-minutes",
        ),
        pytest.param("a b", "b a", [("new", "b "), ("kept", "a"), ("gone", " b")], id="b"),
        pytest.param("x x x", "x x", [("kept", "x x"), ("gone", " x")], id="x-x-x"),
        pytest.param("one\ntwo\n", "one\n", [("kept", "one\n"), ("gone", "two\n")], id="one-two"),
        pytest.param("日本語", "日本人", [("gone", "日本語"), ("new", "日本人")], id="cjk"),
    ],
)
def test_small_changes_are_shown_word_by_word(before, after, pieces):
    assert diff(before, after) == pieces, before


@pytest.mark.parametrize("_unused", range(100))
def test_a_diff_holds_both_texts(_unused):
    chance = random.Random(7)
    words = ["a", "b", " ", "\n", "é", "<b>", ".", "long" * 30]
    texts = ["".join(chance.choices(words, k=chance.randrange(60))) for _ in range(2)]
    assert put_together(diff(*texts)) == texts


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(("word " * 1000, "word " * 999 + "other"), id="word"),
        pytest.param(("a b " * 500, "b a " * 500), id="b"),
        pytest.param(("x " * 990 + "y", "y" + " x" * 990), id="x-990"),
        pytest.param(("line\n" * 100_000, "line\n" * 99_999 + "last\n"), id="line"),
        pytest.param(("x" * 1_000_000, "y" * 1_000_000), id="x-1000000"),
    ],
)
def test_no_diff_takes_long(texts):
    started = time.process_time()
    found = diff(*texts)
    assert time.process_time() - started < 2
    assert put_together(found)[1] == texts[1]


def test_the_form_of_a_memory_offers_every_field_that_the_model_shows_in_forms(served, signed_in):
    id = served.add("Ferries leave at nine")
    client, _ = signed_in
    page = client.get(f"/memory/{id}").text
    shown = {info.argument for info in argument_fields("update").values() if info.is_shown("form")}
    assert {name for name in shown if f'name="{name}"' not in page} == set()


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        pytest.param(
            "**bold** and `code`", "<p><strong>bold</strong> and <code>code</code></p>", id="inline"
        ),
        pytest.param("# Title", '<p class="heading">Title</p>', id="heading"),
        pytest.param("2 * 3 * 4", "<p>2 * 3 * 4</p>", id="stars"),
        pytest.param(
            "- one\n  more",
            '<ul class="points"><li class="depth-0"><span>•</span> <span>one more</span></li></ul>',
            id="list",
        ),
        pytest.param("> quoted", "<blockquote>quoted</blockquote>", id="quote"),
        pytest.param("```py\na < b\n```", "<pre class=code>a &lt; b</pre>", id="code"),
        pytest.param("**<b>**", "<p><strong>&lt;b&gt;</strong></p>", id="markup"),
        pytest.param(
            "[here](javascript:x)",
            '<p>here <span class="address">(javascript:x)</span></p>',
            id="link",
        ),
    ],
)
def test_markdown_becomes_safe_markup(text, markup):
    assert format_text(text) == markup


def test_a_table_becomes_rows_with_a_head():
    shown = format_text("| a | b |\n|---|---|\n| 1 | 2 |")
    assert "<tr><th scope=col>a</th><th scope=col>b</th></tr><tr><td>1</td><td>2</td></tr>" in shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("[https://a.example/1](https://a.example/1)", "https://a.example/1", id="url"),
        pytest.param("[src/a.py:3](/home/ada/shop/src/a.py:3)", "src/a.py:3", id="file"),
    ],
)
def test_an_address_that_its_name_says_is_not_repeated(text, shown):
    assert format_line(text) == shown


def test_a_link_with_another_name_keeps_its_address():
    assert "https://b.example" in format_line("[the issue](https://b.example)")


def test_a_half_mark_of_code_is_left_out_of_a_cut_text():
    assert format_line("It changes `npm view…") == "It changes npm view…"


@pytest.mark.parametrize(
    ("summary", "head"),
    [
        pytest.param("It normalizes npm 12's JSON, with…", "content", id="cut"),
        pytest.param("npm 12's JSON", "summary", id="whole"),
    ],
)
def test_a_short_statement_is_its_own_headline_if_its_summary_was_cut(summary, head):
    content = "Opened PR 10888. It normalizes npm 12's JSON, with tests for both forms."
    memory = {"content": content, "summary": summary, "kind": "fact"}
    assert headline(memory) == memory[head]


def test_a_summary_with_named_lines_is_read_in_parts():
    assert read_digest("Focus: npm 12\nDone: a; b") == {"Focus": "npm 12", "Done": "a; b"}


def test_any_other_summary_has_no_parts():
    assert read_digest("The cache is moved.\nDone: a") is None
