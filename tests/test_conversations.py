"""Transcripts become memory: evidence, topics, ideas and relations, through the command line and page by page."""

import json
import os
import re
from datetime import datetime, timedelta

import pytest
from transcripts import DAY, claude_line, transcript, written

from bethink.api import Bethink
from bethink.embed.hashing import HashingEmbedder
from bethink.errors import InvalidInput, Overtaken
from bethink.features import conversations, inbox
from bethink.hooks import state
from bethink.hooks.briefing import render_briefing
from bethink.hooks.state import Hook
from bethink.ingest.edit import find_traces
from bethink.ingest.reconcile import STATED_KINDS
from bethink.model import PERSONAL, TRUST

CHOICE = [
    ("user", "Which database should we use for the orders service?"),
    ("assistant", "I suggest MySQL for the orders service, because the team knows it well."),
    ("user", "Okay, we decided to use MySQL for the orders service."),
    ("assistant", "Good. I will set up the schema for orders."),
    ("user", "Who signs refunds above a hundred euros? We leave that open for now."),
    ("assistant", "Noted, who signs such refunds is still an open question."),
]
DOUBT = [
    ("user", "The nightly orders report is too slow: it takes forty minutes on MySQL."),
    (
        "assistant",
        "The root cause is that MySQL sorts the whole orders table on disk for every report.",
    ),
    ("user", "Maybe we should look at Postgres for the orders service."),
    ("assistant", "Postgres could use a partial index for the report, so it might be faster."),
]
CHANGE = [
    (
        "user",
        "We decided to switch from MySQL to Postgres for the orders service, because the nightly report was too slow.",
    ),
    (
        "assistant",
        "I migrated the orders service to Postgres. The nightly report now takes two minutes.",
    ),
]


def open_project(tmp_path, name="shop", database="memory.db"):
    (tmp_path / name).mkdir(exist_ok=True)
    embedder = HashingEmbedder()
    return Bethink(tmp_path / database, directory=tmp_path / name, embedder=embedder)


@pytest.fixture
def memory(tmp_path, monkeypatch):
    monkeypatch.setenv("BETHINK_HOME", str(tmp_path / "home"))
    with open_project(tmp_path) as memory:
        yield memory


def fill(memory, *files, host="claude"):
    return conversations.backfill(memory, [(host, file) for file in files])


def talk(tmp_path, *said, session="s1", project="shop", days=0, append=False):
    """The transcript of a session in a project of the test's."""
    began, file = DAY + timedelta(days=days), tmp_path / f"{session}.jsonl"
    return transcript(file, session, tmp_path / project, *said, began=began, append=append)


def kept(memory, kind=None):
    wanted = memory.filter(kinds=(kind,) if kind else ())
    return memory.list(limit=500, order="oldest", filter=wanted)


def texts(memory, kind=None):
    return [one.content for one in kept(memory, kind)]


def test_turns_are_stored_word_for_word(memory, tmp_path):
    file = talk(tmp_path, *CHOICE)
    done = fill(memory, file)
    assert (done.transcripts, done.turns, done.sessions) == (1, 6, ("s1",))
    turns = kept(memory, "context")
    assert [turn.content for turn in turns] == [text for _, text in CHOICE]
    assert [turn.lines for turn in turns] == [(line, line) for line in range(1, 7)]
    assert {turn.trust for turn in turns if turn.metadata["role"] == "assistant"} == {2}
    assert {(turn.path, turn.session) for turn in turns} == {(str(file.resolve()), "s1")}
    assert all(turn.span for turn in turns)
    assert memory.search("team knows MySQL well", mode="keyword").hits


def test_a_decision_cites_its_turn(memory, tmp_path):
    file = talk(tmp_path, *CHOICE)
    fill(memory, file)
    (decision, *_) = kept(memory, "decision")
    assert "MySQL" in decision.content and decision.session == "s1" and decision.span
    said = CHOICE[decision.lines[0] - 1][1]
    assert "MySQL" in said and "orders" in said
    around = conversations.surroundings(memory, decision.id, 1)
    assert decision.lines in [turn.lines for turn in around] and len(around) == 3


def test_reading_a_transcript_again_adds_nothing(memory, tmp_path):
    file = talk(tmp_path, *CHOICE)
    fill(memory, file)
    before = kept(memory)
    again = fill(memory, file)
    assert (again.transcripts, again.unchanged, again.turns, again.ideas) == (0, 1, 0, 0)
    assert kept(memory) == before


def test_a_fork_does_not_bring_back_what_was_purged(memory, tmp_path):
    file = talk(tmp_path, *CHOICE)
    fill(memory, file)
    before = kept(memory)
    memory.forget(*(one.id for one in before if "MySQL" in one.content), purge=True)
    fill(memory, file.rename(tmp_path / "fork.jsonl"))
    assert not [text for text in texts(memory) if "MySQL" in text]


def test_a_growing_transcript_gives_each_turn_once(memory, tmp_path):
    said = CHOICE + DOUBT + CHANGE
    pairs = [said[at : at + 2] for at in range(0, len(said), 2)]
    read = [fill(memory, talk(tmp_path, *pair, append=True)).turns for pair in pairs]
    assert read == [2] * len(pairs)
    assert texts(memory, "context") == [text for _, text in said]
    assert [turn.position for turn in kept(memory, "context")] == list(range(len(said)))
    spans = memory.store.spans("s1", memory.scopes)
    assert spans and all(span.name for span in spans) and spans[0].lines[0] == 1


def test_a_fork_adds_only_its_new_turns(memory, tmp_path):
    said = CHOICE + DOUBT + CHANGE
    file = talk(tmp_path, *said)
    assert fill(memory, file).turns == len(said)
    fork = tmp_path / "b.jsonl"
    fork.write_text(file.read_text())
    done = fill(memory, transcript(fork, "s1", tmp_path / "shop", *CHANGE, append=True))
    assert (done.turns, done.repeated) == (2, len(said))


def test_a_replaced_transcript_adds_only_new_turns(memory, tmp_path):
    said = CHOICE + DOUBT + CHANGE
    file = talk(tmp_path, *said)
    assert fill(memory, file).turns == len(said)
    file.write_text("\n".join(file.read_text().splitlines()[:2]) + "\n")
    assert fill(memory, file).turns == 0
    assert fill(memory, transcript(file, "s9", tmp_path / "shop", *CHANGE)).turns == 2


def test_a_forked_transcript_that_is_replaced_gives_each_turn_once(memory, tmp_path):
    said = CHOICE + DOUBT + CHANGE
    file = talk(tmp_path, *said)
    fill(memory, file)
    fork = tmp_path / "b.jsonl"
    fork.write_text(file.read_text())
    fill(memory, transcript(fork, "s1", tmp_path / "shop", *CHANGE, append=True))
    fill(memory, transcript(file, "s9", tmp_path / "shop", *CHANGE))
    assert len(kept(memory, "context")) == len(said) + 4


def test_a_conversation_goes_to_its_project_though_one_file_holds_several(
    memory, tmp_path, monkeypatch
):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    file = tmp_path / "claude" / "projects" / "-p" / "s1.jsonl"
    file.parent.mkdir(parents=True)
    talk(tmp_path, *CHOICE).rename(file)
    other = talk(tmp_path, *CHANGE, session="s2", project="bakery").read_text()
    file.write_text(file.read_text() + other)
    assert fill(memory, file).turns == len(CHOICE) + len(CHANGE)
    assert fill(memory, file).unchanged == 1
    more = talk(tmp_path, *DOUBT, session="s2", project="bakery").read_text()
    file.write_text(file.read_text() + more.replace("s2-0", "s2-9"))
    assert fill(memory, file).turns == len(DOUBT)
    assert {turn.session for turn in kept(memory, "context")} == {"s1"}
    with open_project(tmp_path, "bakery") as bakery:
        assert {turn.session for turn in kept(bakery, "context")} == {"s2"}
        assert [session.id for session in conversations.sessions(bakery)] == ["s2"]


def test_a_removed_project_keeps_its_conversations(memory, tmp_path):
    first = talk(tmp_path, *CHOICE, session="s3", project="removed/shop")
    second = talk(tmp_path, *CHANGE, session="s4", project="removed/shop")
    assert fill(memory, first, second).turns == 8
    assert len([count for count in memory.stats().by_scope.values() if count]) == 1


def test_a_bad_transcript_stops_no_other(memory, tmp_path):
    done = fill(memory, tmp_path / "missing.jsonl", tmp_path, talk(tmp_path, *CHOICE))
    assert done.turns == 6 and len(done.failed) == 2


KEY = "\n".join(f"MIIEowIBAAKCAQEA{n:048}" for n in range(25))
KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}\n-----END RSA PRIVATE KEY-----"
LINES = "\n".join(f"log line {n}: something happened in the build step" for n in range(400))
DIARY = "\n".join(["<private>", *(f"diary entry {number}" for number in range(800)), "</private>"])


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(f"{LINES}\n{DIARY}\nplease fix the build", id="LINES-DIARY-please-fix-build"),
        pytest.param(f"{DIARY}\n{LINES}\nplease fix the build", id="DIARY-LINES-please-fix-build"),
        pytest.param(
            f"look\n```\n{LINES[:1500]}\n{KEY}\n```\nplease fix the build",
            id="look-LINES-1500-KEY-please-fix-build",
        ),
        pytest.param(
            f"look\n```\n{LINES[:1500]}\n{DIARY}\n```\nplease fix the build",
            id="look-LINES-1500-DIARY-please-fix-build",
        ),
        pytest.param(
            f"<private>\n{LINES * 220}\ndiary entry 1\n</private>\nplease fix the build",
            id="private-LINES-220-diary-entry-1-private",
        ),
        pytest.param(
            f"please fix the build\n{LINES * 220}\n{DIARY}", id="please-fix-build-LINES-220-DIARY"
        ),
    ],
)
def test_what_is_private_is_taken_out_before_a_turn_is_shortened(memory, tmp_path, said):
    fill(memory, talk(tmp_path, ("user", "we decided to keep the logs"), ("user", said)))
    found = texts(memory)
    assert max(map(len, found)) < 20_000
    assert not [text for text in found if "diary" in text or "MIIE" in text]
    assert any("please fix the build" in text for text in found)


def test_secrets_in_a_transcript_are_never_stored(tmp_path, monkeypatch):
    monkeypatch.setenv("BETHINK_HOME", str(tmp_path / "home"))
    token, password = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8", "Sup3rS3cretPw"
    said = f"The key is sk-ant-{'a1B2' * 12} and <private>the vault code is 4711</private>, we decided to rotate it weekly."
    path = talk(tmp_path, ("user", said), ("assistant", "I have read it."), project=token)
    first, last = map(json.loads, path.read_text().splitlines())
    address = f"postgres://ada:{password}@db.local/main"
    files = (address, f"/srv/{token}/x.txt", "/srv/shop/orders.py")
    used = [{"type": "tool_use", "name": "Read", "input": {"file_path": file}} for file in files]
    calls = last | {"uuid": "c1", "message": {"role": "assistant", "content": used}}
    # What comes last waits with the position for the next turn.
    rows = [first | {"uuid": token}, calls, last, calls | {"uuid": "c2"}]
    written(path, *(row | {"gitBranch": f"fix/{token}"} for row in rows))
    with open_project(tmp_path, token) as memory:
        fill(memory, path)
        answer = kept(memory, "context")[-1]
        assert [entity.name for entity in answer.entities] == ["/srv/shop/orders.py"]
        about = {"branch": "fix/[REDACTED:github-token]", "tools": ["Read"]}
        assert {name: answer.metadata[name] for name in about} == about
        store, scopes = memory.store, memory.scopes
        _, source = store.find_source(str(path.resolve()))
        spans = store.spans("s1", scopes)
        held = str((kept(memory), dict(source.metadata), store.sessions(scopes), spans))
        assert not [secret for secret in (token, password, "a1B2a1B2", "4711") if secret in held]
        assert "rotate it weekly" in held
        assert "orders.py" in json.dumps(source.metadata["position"]["state"])


BUILD, AGAIN = "let us look at the build", "memory-mode: on\nnow the build again"
SAID = (BUILD, "memory-mode: off\nmy lawyer is Saul", AGAIN)
SAUL = "Talk with lawyer Saul"
NAMED = {"type": "ai-title", "sessionId": "s1", "aiTitle": SAUL}


def titles(memory):
    return [session.title for session in memory.store.sessions(memory.scopes)]


PARTLY_OFF = {
    "claude": lambda project: [
        claude_line(1, SAID[0], cwd=project),
        claude_line(2, SAID[1], cwd=project),
        NAMED,
        claude_line(3, SAID[2], cwd=project),
        NAMED,
    ],
    "copilot": lambda project: [
        {
            "type": "session.start",
            "id": "0",
            "data": {"sessionId": "c1", "context": {"cwd": project}},
        },
        {"type": "user.message", "id": "1", "data": {"content": SAID[0]}},
        {"type": "user.message", "id": "2", "data": {"content": SAID[1]}},
        {"type": "user.message", "id": "3", "data": {"content": SAID[2]}},
        {"type": "session.title_changed", "id": "9", "data": {"title": SAUL}},
    ],
    "gemini": lambda project: [
        {"sessionId": "g1", "projectHash": "x", "directories": [project]},
        {"id": "m0", "type": "user", "content": SAID[0]},
        {"id": "m1", "type": "user", "content": SAID[1]},
        {"id": "m2", "type": "user", "content": SAID[2]},
        {"$set": {"summary": SAUL}},
    ],
}


@pytest.mark.parametrize("host", list(PARTLY_OFF))
def test_no_host_s_title_is_taken_of_a_session_that_was_off_in_part(memory, tmp_path, host):
    rows = PARTLY_OFF[host](str(tmp_path / "shop"))
    fill(memory, written(tmp_path / "events.jsonl", *rows), host=host)
    assert "Saul" not in str((titles(memory), kept(memory)))
    assert len(titles(memory)) == 1 and all(titles(memory))


def test_a_title_made_after_a_pause_is_not_taken_on_a_later_page(memory, tmp_path):
    place = {"cwd": str(tmp_path / "shop")}
    rows = [claude_line(1, BUILD, **place), claude_line(2, "my lawyer is Saul", **place), NAMED]
    during = datetime.fromisoformat(rows[1]["timestamp"]).timestamp()
    pause = state.Pause(state.EVERYWHERE, during - 30, during + 30)
    state.pauses_file().parent.mkdir(parents=True, exist_ok=True)
    state.pauses_file().write_text(json.dumps([pause._asdict()]))
    fill(memory, written(tmp_path / "s1.jsonl", *rows))
    before = titles(memory)
    assert "Saul" not in str((before, kept(memory)))
    rows += [claude_line(3, "now the build again", **place), NAMED]
    fill(memory, written(tmp_path / "s1.jsonl", *rows))
    assert titles(memory) == before


def test_who_is_overtaken_leaves_it_to_the_other(memory, tmp_path):
    file, write = talk(tmp_path, *CHOICE), memory.store.write
    with open_project(tmp_path) as quick:

        def write_late(batch):
            memory.store.write = write
            fill(quick, file)
            return write(batch)

        memory.store.write = write_late
        with pytest.raises(Overtaken):
            list(conversations.read_on(memory, file))
    assert len(kept(memory, "context")) == len(CHOICE)


def test_a_backfill_without_embedding_finds_the_same_ideas(cli, tmp_path):
    file = transcript(tmp_path / "a.jsonl", "a1", cli.project, *CHOICE, *DOUBT)
    at_once, later = (("--database", str(tmp_path / name)) for name in ("once.db", "later.db"))
    cli.ok("backfill", file, *at_once)
    cli.ok("backfill", file, "--no-embed", *later)
    assert cli.json("search", "who signs refunds", "--mode", "keyword", *later)
    assert cli.json("reindex", *later)["embedded"] > len(CHOICE + DOUBT)
    found = [cli.json("list", "--all", *place) for place in (at_once, later)]
    ideas, same = ({(one["kind"], one["content"]) for one in every} for every in found)
    assert ideas == same and {"decision", "question"} <= {kind for kind, _ in ideas}


def test_a_backfill_without_the_reader_keeps_the_turns(cli, tmp_path):
    cli.monkeypatch.setattr("bethink.judge.READER_FILE", "missing.onnx")
    done = cli.json("backfill", transcript(tmp_path / "a.jsonl", "a1", cli.project, *CHOICE))
    assert (done["turns"], done["ideas"]) == (len(CHOICE), 0) and done["topics"]
    assert "PROBLEM  reader: its model cannot be opened" in cli("doctor").out


PENDING = [
    (
        ("user", "Which to-dos do we have?"),
        (
            "assistant",
            "**Pending to-dos:**\n\n| # | Title | Area |\n|---|---|---|\n| 1 | Move the invoice numbering into the database | api |\n| 2 | Add a dark theme to the admin pages | ui |\n",
        ),
        ["invoice numbering", "dark theme"],
    ),
    (
        ("user", "Please do the first one."),
        ("assistant", "Done. I removed the unused env vars."),
        ["invoice numbering", "dark theme"],
    ),
    (
        ("user", "Please do the first one."),
        ("assistant", "Done. I moved the invoice numbering into the database."),
        ["dark theme"],
    ),
]


def test_a_todo_that_an_agent_reports_as_done_is_closed(with_model, tmp_path):
    open_todos = []
    with Bethink(tmp_path / "memory.db", directory=tmp_path) as memory:
        for number, (*said, _) in enumerate(PENDING):
            fill(memory, talk(tmp_path, *said, session=f"s{number}", project=".", days=number))
            open_todos.append([one.content for one in kept(memory, "todo") if not one.answered])
    numbering, theme = open_todos[0]
    assert "invoice numbering" in numbering and "dark theme" in theme
    assert open_todos[1:] == [[numbering, theme], [theme]]


def test_a_story_of_three_sessions_answers_rightly(with_model, tmp_path):
    for number, said in enumerate((CHOICE, DOUBT, CHANGE)):
        talk(tmp_path, *said, session=f"s{number}", project=".", days=40 * number)
    clock = lambda: DAY + timedelta(days=120)  # noqa: E731
    with Bethink(tmp_path / "memory.db", directory=tmp_path, clock=clock) as memory:
        fill(memory, *sorted(tmp_path.glob("s*.jsonl")))

        def ask(question, *kinds):
            return memory.search(question, filter=memory.filter(kinds=kinds)).hits

        now = [hit.memory for hit in ask("what do we use for the orders service?")]
        assert "Postgres" in now[0].content and now[0].session == "s2" and now[0].lines
        (before,) = (one for one in now if "decided to use MySQL" in one.content)
        assert before.newer == (now[0].id,) and before.superseded_by is None
        why = ask("why did we change the database of the orders service?")[:2]
        assert any("slow" in hit.memory.content for hit in why)
        still = [hit.memory for hit in ask("what questions are still open?")]
        assert "refunds" in still[0].content
        assert all(one.kind == "question" and not one.answered for one in still)
        then = ask("what did we use for the orders service in March 2026?")
        assert "MySQL" in then[0].memory.content
        chain = ask("which database for the orders service?", "decision")[0].related
        assert any(one.type == "may_replace" and "MySQL" in old.content for one, old in chain)


def test_each_project_has_its_own_session_of_a_chat(cli, tmp_path):
    def backfill(project, name, text, day):
        folder = tmp_path / project
        folder.mkdir(exist_ok=True)
        cli.monkeypatch.chdir(folder)
        file = folder / name
        file.write_text(f"## User\n{text}\n\n## Assistant\nNoted.\n")
        os.utime(file, ((DAY + timedelta(days=day)).timestamp(),) * 2)
        return cli.json("backfill", file)["turns"]

    def sessions():
        return [(one["title"], one["started_at"][:10]) for one in cli.json("sessions")]

    tea, bread, prices = "Tea is sold by weight.", "Bread is baked at four.", "Prices are in cents."
    assert backfill("shop", "1.md", tea, 0) == 1
    assert backfill("shop", "2.md", prices, 4) == 1
    assert backfill("bakery", "1.md", bread, 2) == 1
    assert sessions() == [("Bread is baked at four", "2026-03-04")]
    assert "Tea" not in cli.ok("hook", "session-start", stdin="{}")


def test_a_session_is_dated_by_its_file(cli, tmp_path):
    def backfill(project, name, text, day):
        folder = tmp_path / project
        folder.mkdir(exist_ok=True)
        cli.monkeypatch.chdir(folder)
        file = folder / name
        file.write_text(f"## User\n{text}\n\n## Assistant\nNoted.\n")
        os.utime(file, ((DAY + timedelta(days=day)).timestamp(),) * 2)
        return cli.json("backfill", file)["turns"]

    def sessions():
        return [(one["title"], one["started_at"][:10]) for one in cli.json("sessions")]

    tea, bread, prices = "Tea is sold by weight.", "Bread is baked at four.", "Prices are in cents."
    assert backfill("shop", "1.md", tea, 0) == 1
    assert backfill("shop", "2.md", prices, 4) == 1
    assert backfill("bakery", "1.md", bread, 2) == 1
    more = f"{tea}\n\n## User\nNever send tea by sea."
    assert backfill("shop", "1.md", more, 6) == 1
    tea = ("Tea is sold by weight", "2026-03-02")
    assert sessions() == [("Prices are in cents", "2026-03-06"), tea]
    told = cli.ok("hook", "session-start", stdin="{}")
    assert "Prices are in cents" in told and "Bread" not in told


def test_a_turn_without_reply_is_read_once(cli, tmp_path):
    chat, said = tmp_path / "chat.md", "## User\nWe decided to use Redis for sessions.\n"
    chat.write_text(said)
    assert cli.json("backfill", chat, "--host", "plain")["ideas"] == 1
    chat.write_text(f"{said}\n## Assistant\nRedis it is.\n")
    assert cli.json("backfill", chat, "--host", "plain")["ideas"] == 0
    (decided,) = cli.json("list", "--kind", "decision")
    assert decided["content"] == "We decided to use Redis for sessions."


def test_a_file_that_is_no_transcript_is_refused(cli):
    (cli.project / "README.md").write_text("# Shop\n\nSells tea.\n")
    told = cli.fails("backfill", "README.md", code=2)
    assert told.count("README.md") == 1 and "--host claude|codex" in told


def test_stats_name_the_scopes_of_conversations(cli, tmp_path):
    said = {"role": "user", "content": "We decided to use PostgreSQL for the orders."}
    cli.ok("backfill", written(tmp_path / "chat.jsonl", said))
    assert re.search(r"by scope +\d shop\n", cli.ok("stats"))
    assert list(cli.json("stats")["scope_names"].values()) == ["shop"]


ESP32 = "The ESP32 loses its LoRa link when the relay switches, any idea?"
TCXO = ("assistant", "Check the TCXO setting first; SQLite is not involved here.")


def test_backfill_reads_a_folder_of_transcripts(cli, tmp_path):
    talks = {"3f2a": CHANGE, "3f2a91c0": CHOICE, "3f99": (("user", ESP32), TCXO)}
    for day, (id, said) in enumerate(talks.items()):
        began, file = DAY + timedelta(days=day), tmp_path / "t" / f"{id}.jsonl"
        transcript(file, id, cli.project, *said, began=began)
    done = cli.json("backfill", str(tmp_path / "t"))
    assert (done["transcripts"], done["turns"], done["sessions"], done["failed"]) == (3, 10, 3, [])
    assert [session["id"] for session in cli.json("topics")] == ["3f99", "3f2a91c0", "3f2a"]
    assert "lines 1-" in cli.ok("topics", "3f2a9", "--tree")


def test_get_shows_the_turns_around_an_idea(cli, tmp_path):
    talks = {"3f2a": CHANGE, "3f2a91c0": CHOICE, "3f99": (("user", ESP32), TCXO)}
    for day, (id, said) in enumerate(talks.items()):
        began, file = DAY + timedelta(days=day), tmp_path / "t" / f"{id}.jsonl"
        transcript(file, id, cli.project, *said, began=began)
    cli.json("backfill", str(tmp_path / "t"))
    listed = ("list", "--all", "--include-superseded", "--kind", "decision", "--session", "3f2a9")
    id = cli.json(*listed)[0]["id"]
    shown = cli.ok("get", id, "--source")
    assert "\nAround " in shown and "session 3f2a91c0:" in shown
    assert len(cli.json("get", id, "--source")[0]["around"]) > 1
    assert "Topic:" in cli.ok("recall", "which database do we use for orders?")


def test_a_wrong_backfill_is_refused(cli, tmp_path):
    assert "--all" in cli.fails("backfill", "--all", str(tmp_path), code=2)
    assert "nothing at" in cli.fails("backfill", "/nowhere/at/all", code=1)


def test_an_ambiguous_session_prefix_is_refused(cli, tmp_path):
    talks = {"3f2a": CHANGE, "3f2a91c0": CHOICE, "3f99": (("user", ESP32), TCXO)}
    for day, (id, said) in enumerate(talks.items()):
        began, file = DAY + timedelta(days=day), tmp_path / "t" / f"{id}.jsonl"
        transcript(file, id, cli.project, *said, began=began)
    cli.json("backfill", str(tmp_path / "t"))
    # A conversation is named by the beginning of its id, and one that begins another is still itself.
    commands = "search orders --session|recall orders --session|list --session|export --session"
    assert [
        command
        for command in f"{commands}|topics|sessions".split("|")
        for words in [command.split()]
        if "3f2a, 3f2a91c0, 3f99" not in cli.fails(*words, "3f", code=1)
        or "no session whose id starts with 'zz'" not in cli.fails(*words, "zz", code=1)
    ] == []


def test_a_session_is_named_by_a_prefix_of_its_id(cli, tmp_path):
    talks = {"3f2a": CHANGE, "3f2a91c0": CHOICE, "3f99": (("user", ESP32), TCXO)}
    for day, (id, said) in enumerate(talks.items()):
        began, file = DAY + timedelta(days=day), tmp_path / "t" / f"{id}.jsonl"
        transcript(file, id, cli.project, *said, began=began)
    cli.json("backfill", str(tmp_path / "t"))
    listed = ("list", "--all", "--include-superseded", "--kind", "decision", "--session", "3f2a9")
    id = cli.json(*listed)[0]["id"]
    cases = [
        (["list"], "3f9", "3f99"),
        (["search", "orders"], "3f2a9", "3f2a91c0"),
        (["list"], "3f2a", "3f2a"),
    ]
    assert [
        words
        for words, given, id in cases
        if {one["session"] for one in cli.json(*words, "--session", given)} != {id}
    ] == []
    assert cli.json("sessions", "3f2a")[0]["title"] != cli.json("sessions", "3f2a9")[0]["title"]


def test_turns_are_found_by_the_entities_they_mention(cli, tmp_path):
    talks = {"3f2a": CHANGE, "3f2a91c0": CHOICE, "3f99": (("user", ESP32), TCXO)}
    for day, (id, said) in enumerate(talks.items()):
        began, file = DAY + timedelta(days=day), tmp_path / "t" / f"{id}.jsonl"
        transcript(file, id, cli.project, *said, began=began)
    cli.json("backfill", str(tmp_path / "t"))
    # What was said about a thing is found by its name.
    turns = cli.json("list", "--entity", "esp32", "--kind", "context")
    assert [one["content"] for one in turns] == [ESP32]
    cases = [("search", "link", "--entity", "ESP32"), ("recall", "what about entity:esp32")]
    assert [words for words in cases if ESP32 not in cli.ok(*words)] == []
    assert "SQLite" in str(cli.json("list", "--entity", "SQLite")[0]["entities"])
    assert cli.json("list", "--entity", "Redis") == []


def test_all_projects_lists_the_conversations_of_each(cli, tmp_path):
    talks = {"3f2a": CHANGE, "3f2a91c0": CHOICE, "3f99": (("user", ESP32), TCXO)}
    for day, (id, said) in enumerate(talks.items()):
        began, file = DAY + timedelta(days=day), tmp_path / "t" / f"{id}.jsonl"
        transcript(file, id, cli.project, *said, began=began)
    cli.json("backfill", str(tmp_path / "t"))
    # Those of every project are listed with their project.
    (tmp_path / "tea").mkdir()
    other, later = tmp_path / "b.jsonl", DAY + timedelta(days=9)
    transcript(other, "b1", tmp_path / "tea", *CHANGE, began=later)
    cli.ok("backfill", other, "--trusted")
    assert "b1" not in [one["id"] for one in cli.json("topics")]
    every = cli.json("topics", "--all-projects")
    assert every[0]["id"] == "b1" and all(one["topics"] for one in every)
    assert len({one["scope"] for one in every}) == 2
    assert [
        command
        for command in ("topics", "sessions")
        for told in [cli.ok(command, "--all-projects")]
        if ("b1  [tea]" not in told or "3f99  [shop]" not in told)
        or "[shop]" in cli.ok(command)
        or "There is no session" not in cli.fails(command, "b1", code=1)
        or ("b1  [tea]" not in cli.ok(command, "b1", "--all-projects"))
    ] == []


def test_without_a_path_the_newest_conversation_of_this_project_is_read(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setattr("pathlib.Path.home", lambda: tmp_path / "nobody")
    assert "no conversation of shop" in cli.fails("backfill", code=1)
    folder, shop = tmp_path / "claude/projects/x", cli.project
    held = {"other": (tmp_path / "tea", CHANGE), "new": (shop, DOUBT), "old": (shop, CHOICE)}
    for age, (name, (project, said)) in enumerate(held.items()):
        file = transcript(folder / f"{name}.jsonl", name, project, *said)
        os.utime(file, (10_000 - age, 10_000 - age))
    told = cli("backfill")
    assert told.code == 0 and "new.jsonl" in told.err and "backfill --all" in told.err
    assert [one["id"] for one in cli.json("sessions")] == ["new"]
    again = cli.json("backfill", "--host", "claude")
    assert (again["file"], again["unchanged"]) == (str(folder / "new.jsonl"), 1)
    assert "reading" not in cli("backfill", "--quiet").err
    assert "no conversation" in cli.fails("backfill", "--host", "codex", code=1)


PAID = "We decided to pay the invoices on Mondays."
MORE = f"{PAID} Let me look at the tests now."


def test_a_purge_goes_to_the_turn_as_well_or_says_that_the_turn_remains(cli, tmp_path):
    whole = "We decided to use MySQL for the orders service"
    said = ("user", whole), ("user", MORE)
    cli.ok("backfill", transcript(tmp_path / "a.jsonl", "0a1b2c3d-0000", cli.project, *said))
    ids = {(one["kind"], one["content"]): one["id"] for one in cli.json("list", "--all")}
    twins = [ids["decision", whole], ids["context", whole]]
    purged = cli("forget", twins[0], "--purge", "--yes", "--json")
    assert json.loads(purged.out) == [{"id": id, "status": "purged"} for id in twins]
    assert purged.err == "" and "MySQL" not in cli.ok("list", "--all", "--include-deleted")
    told = cli("forget", ids["decision", PAID], "--purge", "--yes").err
    assert "The turn it came from still says it: `bethink forget" in told
    assert told.split("forget ")[1].split(" ")[0] in ids["context", MORE]


def test_a_purge_finds_the_traces_of_a_turn(memory, tmp_path):
    fill(memory, talk(tmp_path, ("user", MORE), ("user", "Which port does the shop use?")))
    (idea,), (turn, _) = kept(memory, "decision"), kept(memory, "context")
    tea = memory.one(memory.add("Tea is served at five").id)
    assert [
        one
        for one, rest in ((idea, [turn]), (turn, [idea]), (tea, []))
        for found in [memory.find_traces([one])]
        if (found.same, [other.id for other in found.rest]) != ((), [one.id for one in rest])
    ] == []
    assert memory.find_traces([turn, idea]).rest == ()


@pytest.mark.parametrize(
    ("sessions", "kind", "expected"),
    [
        pytest.param(
            [
                [
                    ("user", "hi"),
                    ("assistant", "hi"),
                    ("user", "Ok."),
                    ("assistant", "Ok."),
                    ("user", "Hello!"),
                    ("assistant", "Hello!"),
                    ("user", "thanks"),
                    ("assistant", "thanks"),
                    ("user", "thank you so much"),
                    ("assistant", "thank you so much"),
                    ("user", "Great, thanks!"),
                    ("assistant", "Great, thanks!"),
                    ("user", "yes, do it"),
                    ("assistant", "yes, do it"),
                    ("user", "sounds good"),
                    ("assistant", "sounds good"),
                    ("user", "good morning"),
                    ("assistant", "good morning"),
                    ("user", "👍"),
                    ("assistant", "👍"),
                    ("user", "..."),
                    ("assistant", "..."),
                    ("user", "proceed"),
                    ("assistant", "proceed"),
                    ("user", "hmm"),
                    ("assistant", "hmm"),
                    ("user", "ja, danke"),
                    ("assistant", "ja, danke"),
                    ("user", "Merci !"),
                    ("assistant", "Merci !"),
                    ("user", "好的"),
                    ("assistant", "好的"),
                    ("user", "nvm"),
                    ("assistant", "nvm"),
                    ("user", "no, use Redis"),
                    ("user", "2"),
                    ("assistant", "Done: 14 tests pass."),
                ]
            ],
            "context",
            ["no, use Redis", "2", "Done: 14 tests pass."],
            id="hi",
        ),
        pytest.param(
            [
                [
                    (
                        "user",
                        "We use PostgreSQL for billing, because the ledger needs serializable transactions.",
                    ),
                    ("assistant", "Understood."),
                ],
                [
                    ("user", "We moved billing from PostgreSQL to CockroachDB."),
                    ("assistant", "Understood."),
                ],
            ],
            "decision",
            [
                "We use PostgreSQL for billing, because the ledger needs serializable transactions.",
                "We moved billing from PostgreSQL to CockroachDB.",
            ],
            id="use-postgresql-billing-because-ledger-needs",
        ),
        pytest.param(
            [
                [
                    (
                        "user",
                        "We decided to keep PostgreSQL for all orders. Look at this:\n\nWe decided to move every invoice to MySQL.",
                    ),
                    ("assistant", "I see."),
                ]
            ],
            "decision",
            ["We decided to keep PostgreSQL for all orders."],
            id="decided-keep-postgresql-all-orders-look",
        ),
    ],
)
def test_only_lasting_statements_of_a_conversation_are_kept(
    memory, tmp_path, sessions, kind, expected
):
    for number, said in enumerate(sessions):
        fill(memory, talk(tmp_path, *said, session=f"s{number}", days=number))
    assert texts(memory, kind) == expected


PLANNED = ("user", "We decided to use PostgreSQL for the orders.")
CHANGED = ("user", "We decided to use MySQL for the orders.")
REPORTED = (
    "assistant",
    "The orders table cannot be in PostgreSQL: its driver drops the time zone of each row, so the orders are in MySQL now.",
)
FOUND = (
    "assistant",
    "The orders table is in PostgreSQL now, because the MySQL driver drops the time zone of each row.",
)
LISTED = (
    "assistant",
    "- The orders fail because PostgreSQL closes idle connections after 60 s.\n- The carts fail because Redis evicts keys at 1 GB.",
)


@pytest.fixture
def hear(memory, tmp_path, effects):
    """Reads sessions, each a day later, of which every statement has chosen effects on those before. Gives the two that are kept."""

    def hear(*sessions, **chances):
        effects.choose(**chances)
        for number, said in enumerate(sessions):
            fill(memory, talk(tmp_path, *said, session=f"s{number}", days=number))
        stated = [one for kind in STATED_KINDS for one in kept(memory, kind)]
        old, new = sorted(stated, key=lambda one: one.created_at)
        return old, new

    return hear


@pytest.mark.parametrize(
    "sessions",
    [
        pytest.param([[PLANNED], [CHANGED]], id="the-user-of-the-user"),
        pytest.param([[FOUND], [REPORTED]], id="the-agent-of-the-agent"),
    ],
)
def test_a_later_conversation_marks_an_earlier_statement(hear, sessions):
    old, new = hear(*sessions, replaces=0.95)
    assert (old.superseded_by, old.newer) == (None, (new.id,))


def test_what_an_agent_reports_in_a_conversation_does_not_mark_the_users_decision(hear):
    old, _ = hear([PLANNED], [REPORTED], replaces=0.95)
    assert (old.superseded_by, old.newer) == (None, ())


@pytest.mark.parametrize(
    "sessions",
    [
        pytest.param([[PLANNED], [CHANGED]], id="the-user"),
        pytest.param([[PLANNED], [REPORTED]], id="an-agent"),
        pytest.param([[PLANNED, REPORTED]], id="in-one-conversation"),
    ],
)
def test_a_conversation_disputes_nothing_in_the_briefing(memory, hear, sessions):
    hear(*sessions, replaces=0.95)
    assert "disputed by" not in render_briefing(Hook("session-start", "claude"), memory).text


def test_the_briefing_leaves_out_what_a_later_conversation_changed(memory, hear):
    hear([PLANNED], [CHANGED], replaces=0.95)
    briefing = render_briefing(Hook("session-start", "claude"), memory).text
    assert CHANGED[1].rstrip(".") in briefing
    assert PLANNED[1] not in briefing


def test_the_briefing_leaves_out_what_an_agent_reports_against_the_users_decision(memory, hear):
    hear([PLANNED], [REPORTED], replaces=0.95)
    briefing = render_briefing(Hook("session-start", "claude"), memory).text
    _, _, learned = briefing.partition("Decided and learned:")
    assert PLANNED[1] in learned
    assert "drops the time zone" not in learned


def test_items_of_one_list_are_not_compared(memory, hear):
    old, _ = hear([("user", "Why do orders fail?"), LISTED], replaces=0.95)
    assert memory.relations(old.id) == []


def test_a_plan_is_the_agents_word_though_the_user_hands_it_over(memory, tmp_path):
    plan = "Implement the following plan:\n\n# Cache the carts\n\nWe decided to use Redis for the carts."
    fill(memory, talk(tmp_path, ("user", plan)))
    found = [one for one in kept(memory) if "Redis" in one.content]
    assert found and {one.trust for one in found} == {2}
    assert conversations.sessions(memory)[0].title == "Cache the carts"


WORKED = [
    ("user", "please cache the carts in Redis, they are slow"),
    (
        "assistant",
        [{"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "git commit -m x"}}],
    ),
    (
        "user",
        [
            {
                "type": "tool_result",
                "tool_use_id": "c1",
                "content": "[main 1a2b3c4] Cache the carts in Redis",
            }
        ],
    ),
    ("assistant", "Committed. Want me to push the branch?"),
]
DIGEST = {
    "asked": "cache the carts in Redis, they are slow",
    "done": "Cache the carts in Redis",
    "left": "push the branch",
}


def test_a_session_has_a_digest(memory, tmp_path):
    fill(memory, talk(tmp_path, *WORKED))
    [session] = conversations.sessions(memory)
    assert session.digest == DIGEST and session.title == "Cache the carts in Redis, they are slow"
    [topic] = conversations.topics(memory, session)
    assert "Done: Cache the carts in Redis" in topic.summary.splitlines()


def test_a_digest_grows_with_its_session(memory, tmp_path):
    fill(memory, talk(tmp_path, *WORKED))
    later = (("user", "yes"), ("assistant", "I pushed the branch to the shop's server."))
    file = talk(tmp_path, *later, append=True)
    fill(memory, file)
    [session] = conversations.sessions(memory)
    done = f"{DIGEST['done']}; I pushed the branch to the shop's server"
    assert session.digest == DIGEST | {"done": done, "left": "nothing"}
    with open_project(tmp_path, database="whole.db") as whole:
        fill(whole, file)
        assert conversations.sessions(whole)[0].digest == session.digest


def test_an_item_that_a_user_picks_is_named_in_full(memory, tmp_path):
    options = "Two ways:\n\n- **A**: round prices in the formatter\n- **B**: round prices in the database\n"
    fill(memory, talk(tmp_path, ("user", "what can we do?"), ("assistant", options)))
    chosen = ("user", "B sounds good"), ("assistant", "I will do that.")
    decided = (
        ("user", "We decided to go with A for the invoices, because they are old."),
        ("assistant", "Ok."),
    )
    file = talk(tmp_path, *chosen, *decided, append=True)
    fill(memory, file)
    assert "round prices in the database" in conversations.sessions(memory)[0].digest["asked"]
    with open_project(tmp_path, database="whole.db") as whole:
        fill(whole, file)
        assert conversations.sessions(whole)[0].title == "Round prices in the database"
    assert any("A (round prices in the formatter) for" in one.content for one in kept(memory))
    turns = [one.content for one in kept(memory, "context")]
    assert chosen[0][1] in turns and decided[0][1] in turns  # evidence is kept word for word


def test_a_greeting_is_no_session(memory, tmp_path):
    said = [("user", "hello there"), ("assistant", "Hello!")]
    fill(memory, talk(tmp_path, *said))
    assert conversations.sessions(memory) == []


def test_postponed_work_is_left_until_it_is_done(memory, tmp_path):
    said, left = [("user", "hello there"), ("assistant", "Hello!")], []
    for asked, answer in (
        ("Remind me to rename the orders table.", "Noted."),
        ("Now fix the footer.", "I fixed the footer."),
        ("Do it now.", "I renamed the orders table."),
    ):
        said += [("user", asked), ("assistant", answer)]
        fill(memory, talk(tmp_path, *said))
        left.append(conversations.sessions(memory)[0].digest["left"])
    assert ["rename the orders table" in one for one in left] == [True, True, False]
    assert left[2] == ""
    (todo,) = kept(memory, "todo")
    assert todo.answered


def test_a_todo_is_done_by_the_commit_that_names_its_tickets_or_says_it_again(memory, tmp_path):
    rows = ("first round (H-01, H-06)", "second round (H-08, M-07)")
    listed = ["Add auto-update to the desktop app via the Tauri updater plugin"]
    listed = [f"Security review, {row}" for row in rows] + listed
    told = [
        ("user", "What is to do?"),
        ("assistant", "\n- [ ] ".join(["## Pending to-dos\n", *listed])),
    ]
    for subject in (
        "fix(api): address 2 security review findings (H-01, H-06)",
        "feat(desktop): auto-update via the Tauri updater plugin",
    ):
        call = {"type": "tool_use", "id": subject, "name": "Bash"}
        call["input"] = {"command": f"git commit -qm '{subject}'"}
        done = f"[main 1a2b3c4] {subject}"
        result = {"type": "tool_result", "tool_use_id": subject, "content": done}
        told += [("user", "Go on."), ("assistant", [call]), ("user", [result])]
    fill(memory, talk(tmp_path, *told, ("assistant", "Committed.")))
    assert [bool(one.answered) for one in kept(memory, "todo")] == [True, False, True]
    assert not any(one.answered for one in kept(memory, "question")), "no item of a list answers it"


def test_a_digest_holds_no_secret(memory, tmp_path):
    secret = "Use AKIAIOSFODNN7EXAMPLE and ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    call = {"type": "tool_use", "id": "c2", "name": "Bash"}
    call["input"] = {"command": "git commit -qm x"}
    result = {"type": "tool_result", "tool_use_id": "c2", "content": f"[main 1a2b3c4] {secret}"}
    more = ("assistant", [call]), ("user", [result]), ("assistant", "I changed it.")
    fill(memory, talk(tmp_path, *WORKED, *more))
    [session] = conversations.sessions(memory)
    assert "ghp_" not in json.dumps(dict(session.metadata))
    assert session.digest["done"] == DIGEST["done"]


def test_a_purged_turn_takes_the_digest_along(memory, tmp_path):
    secret = "Use AKIAIOSFODNN7EXAMPLE and ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    call = {"type": "tool_use", "id": "c2", "name": "Bash"}
    call["input"] = {"command": "git commit -qm x"}
    result = {"type": "tool_result", "tool_use_id": "c2", "content": f"[main 1a2b3c4] {secret}"}
    more = ("assistant", [call]), ("user", [result]), ("assistant", "I changed it.")
    fill(memory, talk(tmp_path, *WORKED, *more))
    turn = next(one for one in kept(memory, "context") if "Redis" in one.content)
    memory.forget(turn.id, purge=True)
    assert conversations.sessions(memory)[0].digest is None


DECIDED = "We decided to keep the orders in PostgreSQL, because the team knows it."
QUESTION = "Where do we keep the orders?"


def test_a_decision_comes_before_turns_that_repeat_it(memory, tmp_path):
    fill(memory, talk(tmp_path, ("user", DECIDED), session="s0"))
    told = "As decided, the orders are kept in PostgreSQL; I read the orders there."
    for number in range(1, 7):
        report = ("user", f"write order report {number}")
        said = ("user", QUESTION), ("assistant", told), report
        fill(memory, talk(tmp_path, *said, session=f"s{number}", days=number))
    hits = [hit.memory for hit in memory.search(QUESTION, limit=8).hits]
    assert (hits[0].kind, hits[0].content) == ("decision", DECIDED)
    turns = [one.content for one in hits if one.kind == "context"]
    assert len(turns) == len(set(turns))


@pytest.mark.parametrize(
    ("said", "learned"),
    [
        pytest.param(
            "We decided that orders are kept in PostgreSQL.",
            False,
            id="decided-orders-kept-postgresql",
        ),
        pytest.param(
            "We decided to keep the orders in MySQL instead of PostgreSQL.",
            True,
            id="decided-keep-orders-mysql-instead-postgresql",
        ),
        pytest.param(
            "We decided to drop the archive of old orders because nobody reads it.",
            True,
            id="decided-drop-archive-old-orders-because",
        ),
    ],
)
def test_recalled_text_is_not_learned_again(memory, tmp_path, said, learned):
    told = f"<bethink-memory 1a2b>\nQuoted.\n[01] decision, user, session s0, 2026-03-01: {DECIDED}\n</bethink-memory 1a2b>"
    given = {"type": "hook_additional_context", "content": [told]}
    hook = {"type": "attachment", "uuid": "a1", "sessionId": "s1", "attachment": given}
    place = {"cwd": str(tmp_path / "shop")}
    asked = claude_line(1, "what about the orders?", **place)
    rows = [asked, hook, claude_line(2, said, "assistant", **place)]
    fill(memory, written(tmp_path / "s1.jsonl", *rows))
    assert texts(memory, "decision") == [said] * learned
    assert said in texts(memory, "context")


def test_a_working_preference_is_personal(memory, tmp_path):
    said = "Always run the linter before you commit. We use Jest for unit tests."
    fill(memory, talk(tmp_path, ("user", said), ("assistant", "Understood.")))
    way = "Always run the linter before you commit."
    (own,) = memory.list(filter=memory.filter(scopes=(PERSONAL,)))
    assert (own.content, own.kind, own.metadata["said_in"]) == (way, "preference", memory.scope)
    assert own.lines and own.session == "s1"  # where it was said


def test_a_personal_preference_can_be_bound_to_a_project(memory, tmp_path):
    said = "Always run the linter before you commit. We use Jest for unit tests."
    fill(memory, talk(tmp_path, ("user", said), ("assistant", "Understood.")))
    way = "Always run the linter before you commit."
    (own,) = memory.list(filter=memory.filter(scopes=(PERSONAL,)))
    with open_project(tmp_path, "other") as other:
        assert way in render_briefing(Hook("session-start", "claude"), other).text
        assert "Jest" not in render_briefing(Hook("session-start", "claude"), other).text
        (item,) = inbox.list_queue(other, "preferences").items
        assert own.session and f"session {own.session[:8]}" in item.reason
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


def test_traces_are_found_only_in_visible_scopes(memory, tmp_path):
    said = "Always run the linter before you commit. We use Jest for unit tests."
    fill(memory, talk(tmp_path, ("user", said), ("assistant", "Understood.")))
    way = "Always run the linter before you commit."
    (own,) = memory.list(filter=memory.filter(scopes=(PERSONAL,)))
    # Who does not see what is personal, or the project, purges nothing there, whatever metadata says.
    (turn,) = [one for one in kept(memory, "context") if way in one.content]
    forged = turn._replace(scope="project:other", metadata={"said_in": memory.scope})
    assert find_traces(memory.store, [turn], [memory.scope]).rest == tuple(kept(memory, "fact"))
    seen = find_traces(memory.store, [turn], [memory.scope, PERSONAL]).rest
    assert own.id in [one.id for one in seen]
    assert find_traces(memory.store, [forged], [memory.scope, "project:other"]) == ((), ())


def test_purging_a_preference_purges_its_words(memory, tmp_path):
    said = "Always run the linter before you commit. We use Jest for unit tests."
    fill(memory, talk(tmp_path, ("user", said), ("assistant", "Understood.")))
    way = "Always run the linter before you commit."
    (own,) = memory.list(filter=memory.filter(scopes=(PERSONAL,)))
    # What purges the words purges them where they were said, too.
    memory.forget(own.id, purge=True)
    assert not any(way == one.content for one in memory.list(limit=50))


# Files that may be a stranger's


@pytest.fixture
def bakery(memory, tmp_path):
    """A second project in the same database."""
    with open_project(tmp_path, "bakery") as other:
        other.add("We bake at night")
        yield other


def test_a_transcript_that_names_another_project_does_not_reach_it(memory, bakery, tmp_path):
    fill(memory, talk(tmp_path, *CHANGE, project="bakery"))
    assert texts(bakery) == ["We bake at night"]
    assert len(kept(memory, "context")) == len(CHANGE)


def test_a_transcript_that_names_another_project_is_nobodys_word(memory, bakery, tmp_path):
    done = fill(memory, talk(tmp_path, *CHOICE, *CHANGE, project="bakery"))
    assert done.ideas and done.imported == 1
    assert {one.trust for one in kept(memory)} == {TRUST["import"]}


def test_a_strangers_preference_does_not_become_personal(memory, bakery, tmp_path):
    said = ("user", "I always want short answers, please never use emojis in any project.")
    fill(memory, talk(tmp_path, said, project="bakery"))
    assert memory.list(filter=memory.filter(scopes=(PERSONAL,))) == []


def test_a_strangers_session_does_not_change_one_of_the_same_id(memory, bakery, tmp_path):
    fill(memory, talk(tmp_path, *CHOICE))
    (before,) = conversations.sessions(memory)
    forged = tmp_path / "download.jsonl"
    said = transcript(forged, "s1", tmp_path / "bakery", *CHANGE).read_text()
    forged.write_text(said.replace("s1-0", "s1-9"))  # other messages
    fill(memory, forged)
    assert before in conversations.sessions(memory)
    assert len(conversations.sessions(memory)) == 2


def test_a_strangers_copy_does_not_keep_the_users_own_words_out(memory, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    own = tmp_path / "claude" / "projects" / "-p" / "s1.jsonl"
    transcript(own, "s1", tmp_path / "shop", *CHOICE)
    copy = tmp_path / "download.jsonl"
    copy.write_text(own.read_text().replace(str(tmp_path / "shop"), str(tmp_path / "bakery")))
    assert fill(memory, copy).imported == 1
    assert fill(memory, own).turns == len(CHOICE)
    assert TRUST["user"] in {one.trust for one in kept(memory, "context")}


def test_a_strangers_copy_does_not_bring_back_what_was_purged(memory, bakery, tmp_path):
    file = talk(tmp_path, *CHOICE)
    fill(memory, file)
    memory.forget(*(one.id for one in kept(memory) if "MySQL" in one.content), purge=True)
    copy = tmp_path / "download.jsonl"
    copy.write_text(file.read_text().replace(str(tmp_path / "shop"), str(tmp_path / "bakery")))
    assert fill(memory, copy).imported == 1
    assert not [text for text in texts(memory) if "MySQL" in text]


def test_the_user_may_vouch_for_a_transcript(cli, tmp_path):
    (tmp_path / "tea").mkdir()
    file = transcript(tmp_path / "a.jsonl", "a1", tmp_path / "tea", *CHOICE)
    assert cli.json("backfill", file)["imported"] == 1
    assert cli.json("backfill", file, "--trusted")["imported"] == 0
    told = cli.json("list", "--kind", "context", "--project", str(tmp_path / "tea"))
    assert {one["trust"] for one in told} == {TRUST["user"], TRUST["agent"]}


def test_an_agent_cannot_vouch_for_a_transcript(cli, tmp_path):
    file = transcript(tmp_path / "a.jsonl", "a1", cli.project, *CHOICE)
    assert "is for people" in cli.fails("--for-agent", "backfill", file, "--trusted", code=2)


def test_a_transcript_that_an_agent_names_is_nobodys_word(cli, tmp_path):
    file = transcript(tmp_path / "a.jsonl", "a1", cli.project, *CHOICE)
    assert cli.json("--for-agent", "backfill", file)["imported"] == 1
    assert {one["trust"] for one in cli.json("list", "--all")} == {TRUST["import"]}


PENDING_CASES = [
    (
        ("user", "Which to-dos do we have?"),
        (
            "assistant",
            "**Pending to-dos:**\n\n| # | Title | Area |\n|---|---|---|\n| 1 | Move the invoice numbering into the database | api |\n| 2 | Add a dark theme to the admin pages | ui |\n",
        ),
        ["invoice numbering", "dark theme"],
    ),
    (
        ("user", "Please do the first one."),
        ("assistant", "Done. I removed the unused env vars."),
        ["invoice numbering", "dark theme"],
    ),
    (
        ("user", "Please do the first one."),
        ("assistant", "Done. I moved the invoice numbering into the database."),
        ["dark theme"],
    ),
]


@pytest.mark.parametrize("automatic", ["mark", "off"])
def test_reports_close_no_to_do_where_the_setting_forbids_it(with_model, tmp_path, automatic):
    with Bethink(tmp_path / "memory.db", directory=tmp_path) as memory:
        memory.config = memory.config._replace(automatic=automatic)
        for number, (*said, _) in enumerate(PENDING_CASES):
            fill(memory, talk(tmp_path, *said, session=f"s{number}", project=".", days=number))
        assert [one.content for one in kept(memory, "todo") if one.answered] == []


@pytest.mark.parametrize(
    ("output", "believed"),
    [
        pytest.param("3 failed, 38 passed in 2.1s", False, id="failed"),
        pytest.param("41 passed in 2.1s", True, id="passed"),
    ],
)
def test_a_check_counts_more_than_what_an_agent_claims(memory, tmp_path, output, believed):
    claim = "Decision: we keep the parser, because all 41 tests pass with it on Python 3.13."
    call = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "pytest -q"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": output}
    file = tmp_path / "s1.jsonl"
    talk(tmp_path, ("user", "Which parser do we keep for the importer?"))
    talk(tmp_path, ("assistant", [call]), ("user", [result]), append=True)
    talk(tmp_path, ("assistant", claim), append=True)
    fill(memory, file)
    ideas = [one.content for one in kept(memory) if one.kind != "context"]
    assert (claim in ideas) is believed
