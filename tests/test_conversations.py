"""Transcripts become memory: evidence, topics, ideas and relations, through the command line and page by page."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime, timedelta

import pytest
import test_embed
from case_tables import cases
from cli_runner import cli  # noqa: F401

from bethink.api import Bethink
from bethink.embed import HashingEmbedder
from bethink.errors import InvalidInput, Overtaken
from bethink.features import conversations, inbox
from bethink.hooks import state
from bethink.hooks.briefing import render_briefing
from bethink.hooks.state import Hook
from bethink.ingest.edit import find_traces
from bethink.types import PERSONAL

model_or_pull = test_embed.model_or_pull
DAY = datetime(2026, 3, 2, 9, tzinfo=UTC)


def transcript(path, session, project, *said, began=DAY, append=False):
    """A transcript of Claude Code: (role, text) pairs, a minute apart."""
    lines = path.read_text().splitlines() if append and path.exists() else []
    for role, text in said:
        number = len(lines)
        at = (began + timedelta(minutes=number)).isoformat().replace("+00:00", "Z")
        message = (
            {"role": role, "content": text}
            if role == "user"
            else {
                "role": role,
                "id": f"m{session}{number}",
                "content": [{"type": "text", "text": text}],
            }
        )
        row = {
            "type": role,
            "uuid": f"{session}-{number:04d}",
            "parentUuid": f"{session}-{number - 1:04d}" if number else None,
            "sessionId": session,
            "timestamp": at,
            "cwd": str(project),
            "gitBranch": "main",
            "version": "2.1.0",
            "isSidechain": False,
            "userType": "external",
            "message": message,
        }
        lines.append(json.dumps(row))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


CHOICE = cases("conversations-choice")
DOUBT = cases("conversations-doubt")
CHANGE = cases("conversations-change")


def open_project(tmp_path, name="shop", database="memory.db"):
    (tmp_path / name).mkdir(exist_ok=True)
    embedder = HashingEmbedder()
    return Bethink(tmp_path / database, directory=tmp_path / name, embedder=embedder)


@pytest.fixture
def memory(tmp_path, monkeypatch):
    monkeypatch.setenv("BETHINK_HOME", str(tmp_path / "home"))
    with open_project(tmp_path) as memory:
        yield memory


def fill(memory, *files, **options):
    return conversations.backfill(memory, [("claude", file) for file in files], **options)


def talk(tmp_path, *said, session="s1", project="shop", days=0, append=False):
    """The transcript of a session in a project of the test's."""
    began, file = DAY + timedelta(days=days), tmp_path / f"{session}.jsonl"
    return transcript(file, session, tmp_path / project, *said, began=began, append=append)


def kept(memory, kind=None):
    return memory.list(
        limit=500, order="oldest", filter=memory.filter(kinds=(kind,) if kind else ())
    )


def test_turns_are_kept_word_for_word_with_their_line_and_can_be_searched(memory, tmp_path):
    file = talk(tmp_path, *CHOICE)
    done = fill(memory, file)
    assert (done.transcripts, done.turns, done.sessions) == (1, 6, ("s1",))
    turns = kept(memory, "context")
    assert [turn.content for turn in turns] == [text for _, text in CHOICE]
    assert [turn.lines for turn in turns] == [(line, line) for line in range(1, 7)]
    assert {turn.trust for turn in turns if turn.metadata["role"] == "assistant"} == {2}
    assert all(
        turn.path == str(file.resolve()) and turn.session == "s1" and turn.span for turn in turns
    )
    assert memory.search("team knows MySQL well", mode="keyword").hits


def test_ideas_cite_the_line_they_were_said_at(memory, tmp_path):
    fill(memory, talk(tmp_path, *CHOICE))
    (decision, *_) = kept(memory, "decision")
    assert "MySQL" in decision.content and decision.session == "s1" and decision.span
    said = CHOICE[decision.lines[0] - 1][1]
    assert all(word in said for word in ("MySQL", "orders"))
    around = conversations.surroundings(memory, decision.id, 1)
    assert decision.lines in [turn.lines for turn in around] and len(around) == 3


def test_reading_twice_changes_nothing(memory, tmp_path):
    file = talk(tmp_path, *CHOICE)
    fill(memory, file)
    before = {one.id: one for one in kept(memory)}
    again = fill(memory, file)
    assert (again.transcripts, again.unchanged, again.turns, again.ideas) == (0, 1, 0, 0)
    assert {one.id: one for one in kept(memory)} == before


def test_a_growing_transcript_is_read_on_and_gives_what_it_gives_at_once(memory, tmp_path):
    said = CHOICE + DOUBT + CHANGE
    for at in range(0, len(said), 2):
        assert fill(memory, talk(tmp_path, *said[at : at + 2], append=True)).turns == 2
    stepwise = [turn.content for turn in kept(memory, "context")]
    assert stepwise == [text for _, text in said]
    assert [turn.position for turn in kept(memory, "context")] == list(range(len(said)))
    spans = memory.store.spans("s1", memory.scopes)
    assert spans and all(span.name for span in spans) and spans[0].lines[0] == 1


def test_a_fork_adds_only_what_is_new(memory, tmp_path):
    first = talk(tmp_path, *CHOICE)
    fork = tmp_path / "b.jsonl"
    fork.write_text(first.read_text())
    transcript(fork, "s1", tmp_path / "shop", *CHANGE, append=True)
    fill(memory, first)
    done = fill(memory, fork)
    assert (done.turns, done.repeated) == (2, len(CHOICE))
    assert len(kept(memory, "context")) == len(CHOICE) + 2


def test_a_truncated_or_replaced_file_is_read_anew_without_doubling(memory, tmp_path):
    file = talk(tmp_path, *CHOICE)
    fill(memory, file)
    file.write_text("\n".join(file.read_text().splitlines()[:2]) + "\n")
    assert fill(memory, file).turns == 0
    transcript(file, "s9", tmp_path / "shop", *CHANGE)
    assert fill(memory, file).turns == 2
    assert len(kept(memory, "context")) == len(CHOICE) + 2


def test_a_conversation_goes_to_the_project_it_was_held_in(memory, tmp_path):
    fill(memory, talk(tmp_path, *CHOICE, session="s2", project="bakery"))
    assert kept(memory) == []
    with open_project(tmp_path, "bakery") as other:
        assert len(kept(other, "context")) == len(CHOICE)
        assert [session.id for session in conversations.sessions(other)] == ["s2"]


def test_a_project_that_is_gone_keeps_its_conversations_together(memory, tmp_path):
    first = talk(tmp_path, *CHOICE, session="s3", project="removed/shop")
    second = talk(tmp_path, *CHANGE, session="s4", project="removed/shop")
    assert fill(memory, first, second).turns == 8
    assert len({scope for scope, count in memory.stats().by_scope.items() if count}) == 1


def test_secrets_and_private_parts_never_arrive(memory, tmp_path):
    key = "sk-ant-" + "a1B2" * 12
    said = f"The key is {key} and <private>the vault code is 4711</private>, we decided to rotate it weekly."
    fill(memory, talk(tmp_path, ("user", said), ("assistant", "Rotating it weekly.")))
    store, scopes = memory.store, memory.scopes
    everything = str((kept(memory), store.spans("s1", scopes), store.sessions(scopes)))
    assert key not in everything and "4711" not in everything and "rotate it weekly" in everything


KEY = "\n".join(f"MIIEowIBAAKCAQEA{n:048}" for n in range(25))
KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}\n-----END RSA PRIVATE KEY-----"
LINES = "\n".join(f"log line {n}: something happened in the build step" for n in range(400))
DIARY = "\n".join(["<private>", *(f"diary entry {number}" for number in range(800)), "</private>"])


@pytest.mark.parametrize(
    "said", cases("conversations-what-is-private-in-a", globals()), ids=range(6)
)
def test_what_is_private_in_a_long_turn_is_taken_out_before_the_turn_is_shortened(
    memory, tmp_path, said
):
    fill(memory, talk(tmp_path, ("user", "we decided to keep the logs"), ("user", said)))
    texts = [one.content for one in kept(memory)]
    assert max(map(len, texts)) < 20_000
    assert not [text for text in texts if "diary" in text or "MIIE" in text]
    assert any("please fix the build" in text for text in texts)


def test_names_of_files_branches_and_tools_are_redacted_too(tmp_path, monkeypatch):
    monkeypatch.setenv("BETHINK_HOME", str(tmp_path / "home"))
    token, password = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8", "Sup3rS3cretPw"
    project = tmp_path / token
    project.mkdir()
    said = ("user", "please read the data"), ("assistant", "I have read it.")
    path = talk(tmp_path, *said, project=token)
    first, last = map(json.loads, path.read_text().splitlines())
    used = [
        {"type": "tool_use", "name": "Read", "input": {"file_path": file}}
        for file in (
            f"postgres://ada:{password}@db.local/main",
            f"/srv/{token}/x.txt",
            "/srv/shop/orders.py",
        )
    ]
    calls = last | {"uuid": "c1", "message": {"role": "assistant", "content": used}}
    rows = [
        first,
        calls,
        last,
        calls | {"uuid": "c2"},
    ]  # what comes last waits with the position for the next turn
    path.write_text("".join(json.dumps(row | {"gitBranch": f"fix/{token}"}) + "\n" for row in rows))
    with open_project(tmp_path, token) as memory:
        fill(memory, path)
        answer = kept(memory, "context")[-1]
        assert [entity.name for entity in answer.entities] == ["/srv/shop/orders.py"]
        assert (answer.metadata["branch"], answer.metadata["tools"]) == (
            "fix/[REDACTED:github-token]",
            ["Read"],
        )
        _, source = memory.store.find_source(str(path.resolve()))
        sessions = memory.store.sessions(memory.scopes)
        stored = str((kept(memory), dict(source.metadata), sessions))
        assert token not in stored and password not in stored
        assert "orders.py" in json.dumps(source.metadata["position"]["state"])


def titled(memory, tmp_path, host, name, *rows):
    """The titles of the sessions once a transcript was read, and what was kept of it."""
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows)
    )
    conversations.backfill(memory, [(host, path)])
    return [session.title for session in memory.store.sessions(memory.scopes)], str(kept(memory))


def claude(number, text, **more):
    at = (DAY + timedelta(minutes=number)).isoformat()
    return {
        "type": "user",
        "uuid": f"u{number}",
        "sessionId": "s1",
        "timestamp": at,
        "message": {"role": "user", "content": text},
    } | more


BUILD, LAWYER, AGAIN = (
    "let us look at the build",
    "memory-mode: off\nmy lawyer is Saul",
    "memory-mode: on\nnow the build again",
)
NAMED = {"type": "ai-title", "sessionId": "s1", "aiTitle": "Talk with lawyer Saul"}


def test_no_host_s_title_is_taken_of_a_session_that_was_off_in_part(memory, tmp_path):
    shop = str(tmp_path / "shop")
    in_lines = [
        claude(1, BUILD, cwd=shop),
        claude(2, LAWYER, cwd=shop),
        NAMED,
        claude(3, AGAIN, cwd=shop),
        NAMED,
    ]
    gemini = [{"sessionId": "g1", "projectHash": "x", "directories": [shop]}]
    gemini += [
        {"id": f"m{n}", "type": "user", "content": text}
        for n, text in enumerate((BUILD, LAWYER, AGAIN))
    ]
    copilot = [
        {"type": "session.start", "id": "0", "data": {"sessionId": "c1", "context": {"cwd": shop}}}
    ]
    copilot += [
        {"type": "user.message", "id": f"{n}", "data": {"content": text}}
        for n, text in enumerate((BUILD, LAWYER, AGAIN), 1)
    ]
    copilot += [
        {"type": "session.title_changed", "id": "9", "data": {"title": "Talk with lawyer Saul"}}
    ]
    for host, name, rows in (
        ("claude", "s1.jsonl", in_lines),
        ("copilot", "events.jsonl", copilot),
        ("gemini", "g1.jsonl", [*gemini, {"$set": {"summary": "Talk with lawyer Saul"}}]),
    ):
        titles, stored = titled(memory, tmp_path, host, name, *rows)
        assert "Saul" not in str(titles) + stored, host
        assert all(titles), host
    assert len(titles) == 3


def test_a_title_made_after_a_pause_is_not_taken_on_a_later_page(memory, tmp_path):
    shop = str(tmp_path / "shop")
    during = (DAY + timedelta(minutes=2)).timestamp()
    state.pauses_file().parent.mkdir(parents=True, exist_ok=True)
    state.pauses_file().write_text(
        json.dumps([state.Pause(state.EVERYWHERE, during - 30, during + 30)._asdict()])
    )
    rows = [claude(1, BUILD, cwd=shop), claude(2, "my lawyer is Saul", cwd=shop), NAMED]
    titles, stored = titled(memory, tmp_path, "claude", "s1.jsonl", *rows)
    assert "Saul" not in str(titles) + stored
    rows += [claude(3, "now the build again", cwd=shop), NAMED]
    assert titled(memory, tmp_path, "claude", "s1.jsonl", *rows)[0] == titles


def test_what_was_purged_does_not_come_back_with_a_fork(memory, tmp_path):
    first = talk(tmp_path, *CHOICE)
    fill(memory, first)
    memory.forget(*(one.id for one in kept(memory) if "MySQL" in one.content), purge=True)
    fork = tmp_path / "b.jsonl"
    fork.write_text(first.read_text())
    fill(memory, fork)
    assert not [one for one in kept(memory) if "MySQL" in one.content]


def test_who_is_overtaken_leaves_it_to_the_other(memory, tmp_path):
    file = talk(tmp_path, *CHOICE)
    slow = conversations.read_on(memory, file)
    real, memory.store.write = memory.store.write, None
    with open_project(tmp_path) as quick:

        def late(batch):
            memory.store.write = real
            fill(quick, file)
            return real(batch)

        memory.store.write = late
        with pytest.raises(Overtaken):
            list(slow)
    assert len(kept(memory, "context")) == len(CHOICE)


def test_a_file_that_cannot_be_read_does_not_stop_the_others(memory, tmp_path):
    good = talk(tmp_path, *CHOICE)
    done = fill(memory, tmp_path / "missing.jsonl", tmp_path, good)
    assert done.turns == 6 and len(done.failed) == 2


def test_without_embedding_the_ideas_are_the_same_and_reindex_embeds_later(cli, tmp_path):  # noqa: F811
    file = transcript(tmp_path / "a.jsonl", "a1", cli.project, *CHOICE, *DOUBT)
    at_once, later = (("--database", str(tmp_path / name)) for name in ("once.db", "later.db"))
    cli.ok("backfill", file, *at_once)
    cli.ok("backfill", file, "--no-embed", *later)
    assert cli.json("search", "who signs refunds", "--mode", "keyword", *later)
    assert cli.json("reindex", *later)["embedded"] > len(CHOICE + DOUBT)
    found = [cli.json("list", "--all", *place) for place in (at_once, later)]
    ideas, same = ({(one["kind"], one["content"]) for one in every} for every in found)
    assert ideas == same and {"decision", "question"} <= {kind for kind, _ in ideas}


def test_where_no_reader_can_be_opened_turns_and_topics_are_kept(cli, tmp_path):  # noqa: F811
    cli.monkeypatch.setattr("bethink.judge.READER", "missing.onnx")
    done = cli.json("backfill", transcript(tmp_path / "a.jsonl", "a1", cli.project, *CHOICE))
    assert (done["turns"], done["ideas"]) == (len(CHOICE), 0) and done["topics"]
    assert "PROBLEM  reader: its model cannot be opened" in cli("doctor").out


@pytest.fixture
def with_model(model_or_pull, tmp_path, monkeypatch):
    """The packaged models are there, and a folder for the project."""
    monkeypatch.setenv("BETHINK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BETHINK_OFFLINE", "1")
    monkeypatch.delenv("BETHINK_EMBEDDING", raising=False)
    monkeypatch.setenv("BETHINK_MODEL_DIR", str(tmp_path / "models"))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / test_embed.models.DEFAULT).symlink_to(model_or_pull)
    (tmp_path / "shop").mkdir()


PENDING = """**Pending to-dos:**

| # | Title | Area |
|---|---|---|
| 1 | Move the invoice numbering into the database | api |
| 2 | Add a dark theme to the admin pages | ui |
"""


@pytest.mark.parametrize(
    ("report", "waiting"),
    [
        ("Done. I moved the invoice numbering into the database.", ["dark theme"]),
        ("Done. I removed the unused env vars.", ["invoice numbering", "dark theme"]),
    ],
)
def test_what_an_agent_reports_as_done_no_longer_waits(with_model, tmp_path, report, waiting):
    listed = [("user", "Which to-dos do we have?"), ("assistant", PENDING)]
    worked = [("user", "Please do the first one."), ("assistant", report)]
    with Bethink(tmp_path / "memory.db", directory=tmp_path / "shop") as memory:
        for number, said in enumerate((listed, worked)):
            fill(memory, talk(tmp_path, *said, session=f"s{number}", days=number))
        still = [one.content for one in kept(memory, "todo") if not one.answered]
    assert len(still) == len(waiting)
    assert all(part in content for part, content in zip(waiting, still, strict=True))


def test_a_story_of_three_sessions_answers_rightly(with_model, tmp_path):
    files = [
        talk(tmp_path, *said, session=f"s{number}", days=40 * number)
        for number, said in enumerate((CHOICE, DOUBT, CHANGE))
    ]
    place, later = {"directory": tmp_path / "shop"}, DAY + timedelta(days=120)
    with Bethink(tmp_path / "memory.db", **place, clock=lambda: later) as memory:
        fill(memory, *files)
        now = memory.search("what do we use for the orders service?").hits
        best = now[0].memory
        assert "Postgres" in best.content and best.session == "s2" and best.lines
        assert not any(
            "decided to use MySQL" in hit.memory.content and hit.memory.kind == "decision"
            for hit in now
        )
        why = memory.search("why did we change the database of the orders service?").hits
        assert "slow" in why[0].memory.content or "slow" in why[1].memory.content
        still = memory.search("what questions are still open?").hits
        assert ["refunds" in hit.memory.content for hit in still][:1] == [True]
        assert all(hit.memory.kind == "question" and not hit.memory.answered for hit in still)
        then = memory.search("what did we use for the orders service in March 2026?").hits
        assert "MySQL" in then[0].memory.content
        chain = memory.search(
            "which database for the orders service?", filter=memory.filter(kinds=("decision",))
        ).hits[0]
        assert any(
            relation.type == "supersedes" and "MySQL" in other.content
            for relation, other in chain.related
        )


def test_a_file_that_is_no_transcript_is_an_error_when_it_was_named(cli):  # noqa: F811
    (cli.project / "README.md").write_text("# Shop\n\nSells tea.\n")
    told = cli.fails("backfill", "README.md", code=2)
    assert told.count("README.md") == 1 and "--host claude|codex" in told


def test_a_chat_without_a_directory_belongs_to_this_project_by_its_name(cli, tmp_path):  # noqa: F811
    chat = tmp_path / "chat.jsonl"
    chat.write_text('{"role": "user", "content": "We decided to use PostgreSQL for the orders."}\n')
    cli.ok("backfill", chat)
    assert re.search(r"by scope +\d shop\n", cli.ok("stats"))
    assert list(cli.json("stats")["scope_names"].values()) == ["shop"]


def test_the_commands_read_list_and_show_the_source(cli, tmp_path):  # noqa: F811
    file = transcript(tmp_path / "t" / "a.jsonl", "0a1b2c3d-0000", cli.project, *CHOICE)
    later = DAY + timedelta(days=3)
    transcript(tmp_path / "t" / "b.jsonl", "ffff0000-0000", cli.project, *CHANGE, began=later)
    done = cli.json("backfill", str(tmp_path / "t"))
    assert (done["transcripts"], done["turns"], done["sessions"], done["failed"]) == (2, 8, 2, [])
    assert "unchanged    2" in cli.ok("backfill", str(tmp_path / "t"))
    assert [session["id"] for session in cli.json("topics")] == ["ffff0000-0000", "0a1b2c3d-0000"]
    assert "lines 1-" in cli.ok("topics", "0a1b", "--tree")
    assert "There is no session" in cli.fails("topics", "zzz", code=1)
    (idea, *_) = [
        one
        for one in cli.json("list", "--all", "--include-superseded")
        if one["kind"] == "decision" and one["session"].startswith("0a1b")
    ]
    shown = cli.ok("get", idea["id"], "--source")
    assert "\nAround " in shown and str(file.resolve())[-12:] in shown
    assert len(cli.json("get", idea["id"], "--source")[0]["around"]) > 1
    assert "Topic:" in cli.ok("recall", "which database do we use for orders?")
    assert "--all" in cli.fails("backfill", "--all", str(tmp_path), code=2)
    assert "nothing at" in cli.fails("backfill", "/nowhere/at/all", code=1)


def test_without_a_path_the_newest_conversation_of_this_project_is_read(cli, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setattr("pathlib.Path.home", lambda: tmp_path / "nobody")
    assert "no conversation of shop" in cli.fails("backfill", code=1)
    kept_by_claude = tmp_path / "claude" / "projects" / "x"
    for age, (name, project, said) in enumerate(
        [
            ("other", tmp_path / "tea", CHANGE),
            ("new", cli.project, DOUBT),
            ("old", cli.project, CHOICE),
        ]
    ):
        file = transcript(kept_by_claude / f"{name}.jsonl", name, project, *said)
        os.utime(file, (10_000 - age, 10_000 - age))
    told = cli("backfill")
    assert told.code == 0 and "new.jsonl" in told.err and "backfill --all" in told.err
    assert [one["id"] for one in cli.json("sessions")] == ["new"]
    again = cli.json("backfill", "--host", "claude")
    assert (again["file"], again["unchanged"]) == (str(kept_by_claude / "new.jsonl"), 1)
    assert "reading" not in cli("backfill", "--quiet").err
    assert "no conversation" in cli.fails("backfill", "--host", "codex", code=1)


def test_topics_and_sessions_of_every_project_are_listed_with_their_project(cli, tmp_path):  # noqa: F811
    tea = tmp_path / "tea"
    tea.mkdir()
    cli.ok("backfill", transcript(tmp_path / "a.jsonl", "a1", cli.project, *CHOICE))
    later = DAY + timedelta(days=1)
    cli.ok("backfill", transcript(tmp_path / "b.jsonl", "b1", tea, *CHANGE, began=later))
    assert [one["id"] for one in cli.json("topics")] == ["a1"]
    every = cli.json("topics", "--all-projects")
    assert [one["id"] for one in every] == ["b1", "a1"] and all(one["topics"] for one in every)
    assert len({one["scope"] for one in every}) == 2
    for command in ("topics", "sessions"):
        told = cli.ok(command, "--all-projects")
        assert "b1  [tea]" in told and "a1  [shop]" in told
        assert "[shop]" not in cli.ok(command)
        assert "There is no session" in cli.fails(command, "b1", code=1)
        assert "b1  [tea]" in cli.ok(command, "b1", "--all-projects")


def test_a_conversation_is_named_by_the_beginning_of_its_id(cli, tmp_path):  # noqa: F811
    for id, said in (("3f2a", CHANGE), ("3f2a91c0", CHOICE), ("3f99", DOUBT)):
        cli.ok("backfill", transcript(tmp_path / f"{id}.jsonl", id, cli.project, *said))
    for command in ("search orders", "recall orders", "list", "export", "topics", "sessions"):
        words = command.split()
        by = [] if words[0] in ("topics", "sessions") else ["--session"]
        told = cli.fails(*words, *by, "3f", code=1)
        assert "3f2a, 3f2a91c0, 3f99" in told, told
        assert "no session whose id starts with 'zz'" in cli.fails(*words, *by, "zz", code=1)
    assert {one["session"] for one in cli.json("list", "--session", "3f9")} == {"3f99"}
    assert {one["session"] for one in cli.json("search", "orders", "--session", "3f2a9")} == {
        "3f2a91c0"
    }
    # An id that begins another one is still itself.
    assert {one["session"] for one in cli.json("list", "--session", "3f2a")} == {"3f2a"}
    assert cli.json("sessions", "3f2a")[0]["title"] != cli.json("sessions", "3f2a9")[0]["title"]


def test_what_was_said_about_a_thing_is_found_by_its_name(cli, tmp_path):  # noqa: F811
    said = (
        ("user", "The ESP32 loses its LoRa link when the relay switches, any idea?"),
        ("assistant", "Check the TCXO setting first; SQLite is not involved here."),
    )
    cli.ok("backfill", transcript(tmp_path / "a.jsonl", "a1", cli.project, *said))
    turns = cli.json("list", "--entity", "esp32", "--kind", "context")
    assert [one["content"] for one in turns] == [said[0][1]]
    for words in (("search", "link", "--entity", "ESP32"), ("recall", "what about entity:esp32")):
        assert said[0][1] in cli.ok(*words)
    named = {one["name"] for one in cli.json("list", "--entity", "SQLite")[0]["entities"]}
    assert "SQLite" in named
    assert cli.json("list", "--entity", "Redis") == []


IDLE = "hi|Ok.|Hello!|thanks|thank you so much|Great, thanks!|yes, do it|sounds good|good morning|👍|...|proceed|hmm|ja, danke|Merci !|好的|nvm"


def test_greetings_thanks_and_a_bare_yes_are_no_memories(cli, tmp_path):  # noqa: F811
    said = [(role, text) for text in IDLE.split("|") for role in ("user", "assistant")]
    kept_too = [("user", "no, use Redis"), ("user", "2"), ("assistant", "Done: 14 tests pass.")]
    file = transcript(tmp_path / "a.jsonl", "a1", cli.project, *said, *kept_too)
    done = cli.json("backfill", str(file))
    turns = cli.json("list", "--all", "--kind", "context")
    assert {one["content"] for one in turns} == {text for _, text in kept_too}
    assert done["turns"] == len(kept_too)
    for text in ("hi", "Ok.", "thanks"):
        assert cli.json("search", text, "--mode", "keyword") == []


def test_a_purge_goes_to_the_turn_as_well_or_says_that_the_turn_remains(cli, tmp_path):  # noqa: F811
    whole = "We decided to use MySQL for the orders service"
    more = "We decided to pay the invoices on Mondays. Let me look at the tests now."
    said = ("user", whole), ("user", more)
    cli.ok("backfill", transcript(tmp_path / "a.jsonl", "0a1b2c3d-0000", cli.project, *said))
    said = {(one["kind"], one["content"]): one["id"] for one in cli.json("list", "--all")}
    twins = [said["decision", whole], said["context", whole]]
    purged = cli("forget", twins[0], "--purge", "--yes", "--json")
    assert json.loads(purged.out) == [{"id": id, "status": "purged"} for id in twins]
    assert purged.err == ""
    assert "MySQL" not in cli.ok("list", "--all", "--include-deleted")
    turn, idea = said["context", more], said["decision", more.partition(" Let me")[0]]
    told = cli("forget", idea, "--purge", "--yes").err
    assert "The turn it was taken from still says it: `bethink forget" in told
    assert told.split("forget ")[1].split(" ")[0] in turn


def test_the_purge_of_a_turn_names_what_was_taken_from_it(memory, tmp_path):
    said = "We decided to pay the invoices on Mondays. Let me look at the tests now."
    fill(memory, talk(tmp_path, ("user", said), ("user", "Which port does the shop use?")))
    (idea,) = kept(memory, "decision")
    (turn,) = [one for one in kept(memory, "context") if one.content == said]
    told = memory.one(memory.add("Tea is served at five").id)
    found = {one.id: memory.find_traces([one]) for one in (idea, turn, told)}
    assert {id: [one.id for one in each.rest] for id, each in found.items()} == {
        idea.id: [turn.id],
        turn.id: [idea.id],
        told.id: [],
    }
    assert [each.same for each in found.values()] == [(), (), ()]
    assert memory.find_traces([turn, idea]).rest == ()


def test_what_a_user_pasted_is_no_idea(memory, tmp_path):
    said = "We decided to keep PostgreSQL for all orders. Look at this:\n\nWe decided to move every invoice to MySQL."
    fill(memory, talk(tmp_path, ("user", said), ("assistant", "I see.")))
    (decision,) = kept(memory, "decision")
    assert kept(memory, "context")[0].content == said
    assert "PostgreSQL" in decision.content and "MySQL" not in decision.content


def test_one_file_with_conversations_about_several_projects_is_shared_out(memory, tmp_path):
    file = talk(tmp_path, *CHOICE)
    other = talk(tmp_path, *CHANGE, session="s2", project="bakery")
    file.write_text(file.read_text() + other.read_text())
    assert fill(memory, file).turns == len(CHOICE) + len(CHANGE)
    assert {turn.session for turn in kept(memory, "context")} == {"s1"}
    with open_project(tmp_path, "bakery") as bakery:
        assert {turn.session for turn in kept(bakery, "context")} == {"s2"}
    assert fill(memory, file).unchanged == 1
    file.write_text(
        file.read_text()
        + talk(tmp_path, *DOUBT, session="s2", project="bakery").read_text().replace("s2-0", "s2-9")
    )
    assert fill(memory, file).turns == len(DOUBT)
    assert {turn.session for turn in kept(memory, "context")} == {"s1"}


def test_a_change_that_is_said_replaces_what_was_said_before(memory, tmp_path):
    """The example of the README, told in two conversations."""
    said = (
        "We use PostgreSQL for billing, because the ledger needs serializable transactions.",
        "We moved billing from PostgreSQL to CockroachDB.",
    )
    for number, text in enumerate(said):
        turns = [("user", text), ("assistant", "Understood.")]
        fill(memory, talk(tmp_path, *turns, session=f"s{number}", days=number))
    (now,) = memory.list(filter=memory.filter(kinds=("decision",)))
    assert now.content == said[1]


# What a session was asked, did and left

WORKED = cases("conversations-worked")
DIGEST = {
    "asked": "cache the carts in Redis, they are slow",
    "done": "Cache the carts in Redis",
    "left": "push the branch",
}


def worked(path, project, *more):
    rows = [
        claude(at, "", cwd=str(project), type=role, message={"role": role, "content": said})
        for at, (role, said) in enumerate((*WORKED, *more), 1)
    ]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


def test_a_session_has_a_digest_that_grows_with_it(memory, tmp_path):
    file, shop = tmp_path / "s1.jsonl", tmp_path / "shop"
    fill(memory, worked(file, shop))
    [session] = conversations.sessions(memory)
    assert session.digest == DIGEST and session.title == "Cache the carts in Redis, they are slow"
    later = (("user", "yes"), ("assistant", "I pushed the branch to the shop's server."))
    fill(memory, worked(file, shop, *later))
    [session] = conversations.sessions(memory)
    assert session.digest == DIGEST | {"left": "nothing"}
    with open_project(tmp_path, database="whole.db") as whole:
        fill(whole, file)
        assert conversations.sessions(whole)[0].digest == session.digest


def test_a_search_finds_the_topic_by_what_was_committed_in_it(memory, tmp_path):
    fill(memory, worked(tmp_path / "s1.jsonl", tmp_path / "shop"))
    [topic] = conversations.topics(memory, conversations.sessions(memory)[0])
    assert "Done: Cache the carts in Redis" in topic.summary.splitlines()


def test_a_digest_goes_with_what_is_purged_and_holds_no_secret(memory, tmp_path):
    secret = "Use AKIAIOSFODNN7EXAMPLE and ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    commit = [
        {"type": "tool_use", "id": "c2", "name": "Bash", "input": {"command": "git commit -qm 'x'"}}
    ]
    result = [{"type": "tool_result", "tool_use_id": "c2", "content": f"[main 1a2b3c4] {secret}"}]
    more = (("assistant", commit), ("user", result), ("assistant", "I changed it."))
    fill(memory, worked(tmp_path / "s1.jsonl", tmp_path / "shop", *more))
    [session] = conversations.sessions(memory)
    assert (
        "ghp_" not in json.dumps(dict(session.metadata))
        and session.digest["done"] == DIGEST["done"]
    )
    turn = next(one for one in kept(memory, "context") if "Redis" in one.content)
    memory.forget(turn.id, purge=True)
    assert conversations.sessions(memory)[0].digest is None


def test_a_plan_is_the_agents_word_though_the_user_hands_it_over(memory, tmp_path):
    plan = "Implement the following plan:\n\n# Cache the carts\n\nWe decided to use Redis for the carts."
    file = tmp_path / "s1.jsonl"
    file.write_text(json.dumps(claude(1, plan, cwd=str(tmp_path / "shop"))) + "\n")
    fill(memory, file)
    found = [one for one in kept(memory) if "Redis" in one.content]
    assert found and {one.trust for one in found} == {2}
    assert conversations.sessions(memory)[0].title == "Cache the carts"


def test_the_command_shows_what_sessions_asked_did_and_left(cli, tmp_path):  # noqa: F811
    assert "No conversations" in cli("sessions").err
    worked(tmp_path / "s1.jsonl", cli.project)
    cli("backfill", str(tmp_path / "s1.jsonl"))
    told = cli("sessions").out
    assert [line.strip() for line in told.splitlines()[2:]] == [
        f"{name.capitalize()}: {text}" for name, text in DIGEST.items()
    ]
    assert json.loads(cli("sessions", "s1", "--json").out)[0]["digest"] == DIGEST


# Echo

DECIDED = "We decided to keep the orders in PostgreSQL, because the team knows it."
QUESTION = "Where do we keep the orders?"


def test_a_decision_that_agents_repeat_is_found_before_what_they_said(memory, tmp_path):
    fill(memory, talk(tmp_path, ("user", DECIDED), session="s0"))
    told = "As decided, the orders are kept in PostgreSQL; I read the orders there."
    for number in range(1, 7):
        asked, report = ("user", QUESTION), ("user", f"write order report {number}")
        said = asked, ("assistant", told), report
        fill(memory, talk(tmp_path, *said, session=f"s{number}", days=number))
    hits = [hit.memory for hit in memory.search(QUESTION, limit=8).hits]
    assert hits[0].kind == "decision" and hits[0].content == DECIDED
    turns = [one.content for one in hits if one.kind == "context"]
    assert len(turns) == len(set(turns))


@pytest.mark.parametrize(
    ("said", "learned"),
    [
        ("We decided that orders are kept in PostgreSQL.", False),
        ("We decided to keep the orders in MySQL instead of PostgreSQL.", True),
        ("We decided to drop the archive of old orders because nobody reads it.", True),
    ],
)
def test_what_memory_told_an_agent_is_not_learned_from_it_again(memory, tmp_path, said, learned):
    told = f"<bethink-memory 1a2b>\nQuoted.\n[01] decision, user, session s0, 2026-03-01: {DECIDED}\n</bethink-memory 1a2b>"
    rows = [
        claude(1, "what about the orders?", cwd=str(tmp_path / "shop")),
        {
            "type": "attachment",
            "uuid": "a1",
            "sessionId": "s1",
            "attachment": {"type": "hook_additional_context", "content": [told]},
        },
        claude(
            2,
            "",
            type="assistant",
            message={"role": "assistant", "content": said},
            cwd=str(tmp_path / "shop"),
        ),
    ]
    titled(memory, tmp_path, "claude", "s1.jsonl", *rows)
    assert [one.content for one in kept(memory, "decision")] == [said] * learned
    assert said in [one.content for one in kept(memory, "context")]


def test_how_a_person_wants_to_work_follows_them_and_can_be_bound_to_a_project(memory, tmp_path):
    said = "Always run the linter before you commit. We use Jest for unit tests."
    fill(memory, talk(tmp_path, ("user", said), ("assistant", "Understood.")))
    way = "Always run the linter before you commit."
    (own,) = memory.list(filter=memory.filter(scopes=(PERSONAL,)))
    assert (own.content, own.kind, own.metadata["said_in"]) == (way, "preference", memory.scope)
    assert own.lines and own.session == "s1"  # where it was said
    with open_project(tmp_path, "other") as other:
        assert way in render_briefing(Hook("session-start", "claude"), other).text
        assert "Jest" not in render_briefing(Hook("session-start", "claude"), other).text
        (item,) = inbox.list_queue(other, "preferences").items
        assert str(own.source) in item.reason
        done = inbox.decide(other, "bind", [own.id])
        assert way not in [one.content for one in memory.list()]
        assert way in [one.content for one in other.list()]
        inbox.decide(other, done.undo, done.ids)
        assert [one.scope for one in other.list()] == [PERSONAL]
        inbox.decide(other, "keep-preferences", [own.id])
        assert not inbox.list_queue(other, "preferences").items
        with pytest.raises(InvalidInput, match="belongs to a project"):
            inbox.bind(other, other.add("Deploys are on Tuesdays.").id)
        # What replaced it meanwhile is not what binding made of it, and stays.
        newer = other.add("Never commit at all.", personal=True, supersedes=[own.id])
        inbox.unbind(other, own.id)
        assert other.one(own.id).superseded_by == newer.id
        other.unlink(newer.id, own.id, "supersedes")
    # Who does not see what is personal, or the project, purges nothing there, whatever metadata says.
    (turn,) = [one for one in kept(memory, "context") if way in one.content]
    forged = turn._replace(scope="project:other", metadata={"said_in": memory.scope})
    assert find_traces(memory.store, [turn], [memory.scope]).rest == tuple(kept(memory, "fact"))
    seen = find_traces(memory.store, [turn], [memory.scope, PERSONAL]).rest
    assert own.id in [one.id for one in seen]
    assert find_traces(memory.store, [forged], [memory.scope, "project:other"]) == ((), ())
    # What purges the words purges them where they were said, too.
    memory.forget(own.id, purge=True)
    assert not any(way == one.content for one in memory.list(limit=50))
