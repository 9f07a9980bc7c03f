"""Transcripts become memory: evidence, topics, ideas and relations, through the command line and page by page."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
import test_embed
from cli_runner import cli  # noqa: F401

from recollect import conversations
from recollect.embed.hashing import HashingEmbedder
from recollect.errors import Overtaken
from recollect.memory import Memory

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
            else {"role": role, "id": f"m{session}{number}", "content": [{"type": "text", "text": text}]}
        )
        row = {
            "type": role, "uuid": f"{session}-{number:04d}", "parentUuid": f"{session}-{number - 1:04d}" if number else None, "sessionId": session,
            "timestamp": at, "cwd": str(project), "gitBranch": "main", "version": "2.1.0", "isSidechain": False, "userType": "external", "message": message,
        }  # fmt: skip
        lines.append(json.dumps(row))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


CHOICE = [
    ("user", "Which database should we use for the orders service?"),
    ("assistant", "I suggest MySQL for the orders service, because the team knows it well."),
    ("user", "Okay, we decided to use MySQL for the orders service."),
    ("assistant", "Good. I will set up the schema for orders."),
    ("user", "How do we back up the orders database? We do not know yet, leave it open."),
    ("assistant", "Noted, the backup of the orders database is still an open question."),
]
DOUBT = [
    ("user", "The nightly orders report is too slow: it takes forty minutes on MySQL."),
    ("assistant", "The root cause is that MySQL sorts the whole orders table on disk for every report."),
    ("user", "Maybe we should look at Postgres for the orders service."),
    ("assistant", "Postgres could use a partial index for the report, so it might be faster."),
]
CHANGE = [
    ("user", "We decided to switch from MySQL to Postgres for the orders service, because the nightly report was too slow."),
    ("assistant", "I migrated the orders service to Postgres. The nightly report now takes two minutes."),
]


@pytest.fixture
def memory(tmp_path, monkeypatch):
    monkeypatch.setenv("RECOLLECT_HOME", str(tmp_path / "home"))
    (tmp_path / "shop").mkdir()
    with Memory(tmp_path / "memory.db", directory=tmp_path / "shop", embedder=HashingEmbedder()) as memory:
        yield memory


def fill(memory, *files, **options):
    return conversations.backfill(memory, [("claude", file) for file in files], **options)


def kept(memory, kind=None):
    return memory.list(limit=500, order="oldest", filter=memory.filter(kinds=(kind,) if kind else ()))


def test_turns_are_kept_word_for_word_with_their_line_and_can_be_searched(memory, tmp_path):
    file = transcript(tmp_path / "a.jsonl", "s1", tmp_path / "shop", *CHOICE)
    done = fill(memory, file)
    assert (done.transcripts, done.turns, done.sessions) == (1, 6, ("s1",))
    turns = kept(memory, "context")
    assert [turn.content for turn in turns] == [text for _, text in CHOICE]
    assert [turn.lines for turn in turns] == [(line, line) for line in range(1, 7)]
    assert {turn.trust for turn in turns if turn.metadata["role"] == "assistant"} == {2}
    assert all(turn.path == str(file.resolve()) and turn.session == "s1" and turn.span for turn in turns)
    assert memory.search("team knows MySQL well", mode="keyword").hits


def test_ideas_cite_the_line_they_were_said_at(memory, tmp_path):
    fill(memory, transcript(tmp_path / "a.jsonl", "s1", tmp_path / "shop", *CHOICE))
    (decision, *_) = kept(memory, "decision")
    assert "MySQL" in decision.content and decision.session == "s1" and decision.span
    said = CHOICE[decision.lines[0] - 1][1]
    assert all(word in said for word in ("MySQL", "orders"))
    around = conversations.surroundings(memory, decision.id, 1)
    assert decision.lines in [turn.lines for turn in around] and len(around) == 3


def test_reading_twice_changes_nothing(memory, tmp_path):
    file = transcript(tmp_path / "a.jsonl", "s1", tmp_path / "shop", *CHOICE)
    fill(memory, file)
    before = {one.id: one for one in kept(memory)}
    again = fill(memory, file)
    assert (again.transcripts, again.unchanged, again.turns, again.ideas) == (0, 1, 0, 0)
    assert {one.id: one for one in kept(memory)} == before


def test_a_growing_transcript_is_read_on_and_gives_what_it_gives_at_once(memory, tmp_path):
    file = tmp_path / "a.jsonl"
    said = CHOICE + DOUBT + CHANGE
    for at in range(0, len(said), 2):
        transcript(file, "s1", tmp_path / "shop", *said[at : at + 2], append=True)
        assert fill(memory, file).turns == 2
    stepwise = [turn.content for turn in kept(memory, "context")]
    assert stepwise == [text for _, text in said]
    assert [turn.position for turn in kept(memory, "context")] == list(range(len(said)))
    spans = memory.store.spans("s1", memory.scopes)
    assert spans and all(span.name for span in spans) and spans[0].lines[0] == 1


def test_a_fork_adds_only_what_is_new(memory, tmp_path):
    first = transcript(tmp_path / "a.jsonl", "s1", tmp_path / "shop", *CHOICE)
    fork = tmp_path / "b.jsonl"
    fork.write_text(first.read_text())
    transcript(fork, "s1", tmp_path / "shop", *CHANGE, append=True)
    fill(memory, first)
    done = fill(memory, fork)
    assert (done.turns, done.repeated) == (2, len(CHOICE))
    assert len(kept(memory, "context")) == len(CHOICE) + 2


def test_a_truncated_or_replaced_file_is_read_anew_without_doubling(memory, tmp_path):
    file = transcript(tmp_path / "a.jsonl", "s1", tmp_path / "shop", *CHOICE)
    fill(memory, file)
    file.write_text("\n".join(file.read_text().splitlines()[:2]) + "\n")
    assert fill(memory, file).turns == 0
    transcript(file, "s9", tmp_path / "shop", *CHANGE)
    assert fill(memory, file).turns == 2
    assert len(kept(memory, "context")) == len(CHOICE) + 2


def test_a_conversation_goes_to_the_project_it_was_held_in(memory, tmp_path):
    (tmp_path / "bakery").mkdir()
    fill(memory, transcript(tmp_path / "b.jsonl", "s2", tmp_path / "bakery", *CHOICE))
    assert kept(memory) == []
    with Memory(tmp_path / "memory.db", directory=tmp_path / "bakery", embedder=HashingEmbedder()) as other:
        assert len(kept(other, "context")) == len(CHOICE)
        assert [session.id for session in conversations.sessions(other)] == ["s2"]


def test_a_project_that_is_gone_keeps_its_conversations_together(memory, tmp_path):
    gone = tmp_path / "removed" / "shop"
    assert (
        fill(memory, transcript(tmp_path / "g.jsonl", "s3", gone, *CHOICE), transcript(tmp_path / "h.jsonl", "s4", gone, *CHANGE)).turns
        == 8
    )
    assert len({scope for scope, count in memory.stats().by_scope.items() if count}) == 1


def test_secrets_and_private_parts_never_arrive(memory, tmp_path):
    key = "sk-ant-" + "a1B2" * 12
    said = [
        ("user", f"The key is {key} and <private>the vault code is 4711</private>, we decided to rotate it weekly."),
        ("assistant", "Rotating it weekly."),
    ]
    fill(memory, transcript(tmp_path / "a.jsonl", "s1", tmp_path / "shop", *said))
    everything = (
        json.dumps([str(one) for one in kept(memory)])
        + str(memory.store.spans("s1", memory.scopes))
        + str(memory.store.sessions(memory.scopes))
    )
    assert key not in everything and "4711" not in everything and "rotate it weekly" in everything


def test_what_was_purged_does_not_come_back_with_a_fork(memory, tmp_path):
    first = transcript(tmp_path / "a.jsonl", "s1", tmp_path / "shop", *CHOICE)
    fill(memory, first)
    memory.forget(*(one.id for one in kept(memory) if "MySQL" in one.content), purge=True)
    fork = tmp_path / "b.jsonl"
    fork.write_text(first.read_text())
    fill(memory, fork)
    assert not [one for one in kept(memory) if "MySQL" in one.content]


def test_who_is_overtaken_leaves_it_to_the_other(memory, tmp_path):
    file = transcript(tmp_path / "a.jsonl", "s1", tmp_path / "shop", *CHOICE)
    slow = conversations.read_on(memory, file)
    real, memory.store.write = memory.store.write, None
    with Memory(tmp_path / "memory.db", directory=tmp_path / "shop", embedder=HashingEmbedder()) as quick:

        def late(batch):
            memory.store.write = real
            fill(quick, file)
            return real(batch)

        memory.store.write = late
        with pytest.raises(Overtaken):
            list(slow)
    assert len(kept(memory, "context")) == len(CHOICE)


def test_a_file_that_cannot_be_read_does_not_stop_the_others(memory, tmp_path):
    good = transcript(tmp_path / "a.jsonl", "s1", tmp_path / "shop", *CHOICE)
    done = fill(memory, tmp_path / "missing.jsonl", tmp_path, good)
    assert done.turns == 6 and len(done.failed) == 2


def test_without_embedding_words_find_everything_and_reindex_embeds_later(memory, tmp_path):
    fill(memory, transcript(tmp_path / "a.jsonl", "s1", tmp_path / "shop", *CHOICE), embed=False)
    assert memory.stats().unembedded == memory.stats().memories > 6
    assert memory.search("backup of the orders database", mode="keyword").hits
    memory.reindex()
    assert memory.stats().unembedded == 0


def test_few_ideas_rather_than_many(memory, tmp_path):
    chatter = [
        ("user", "ok"),
        ("assistant", "Let me look at the file."),
        ("user", "thanks"),
        ("assistant", "You're welcome!"),
        ("user", "continue"),
        ("assistant", "I'll now run the tests."),
    ]
    done = fill(memory, transcript(tmp_path / "a.jsonl", "s1", tmp_path / "shop", *chatter))
    assert (done.turns, done.ideas) == (6, 0)


def test_a_story_of_three_sessions_answers_rightly(model_or_pull, tmp_path, monkeypatch):
    monkeypatch.setenv("RECOLLECT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RECOLLECT_OFFLINE", "1")
    monkeypatch.delenv("RECOLLECT_EMBEDDING", raising=False)
    monkeypatch.setenv("RECOLLECT_MODEL_DIR", str(tmp_path / "models"))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / test_embed.models.DEFAULT).symlink_to(model_or_pull)
    (tmp_path / "shop").mkdir()
    files = [
        transcript(tmp_path / f"{number}.jsonl", f"s{number}", tmp_path / "shop", *said, began=DAY + timedelta(days=40 * number))
        for number, said in enumerate((CHOICE, DOUBT, CHANGE))
    ]
    with Memory(tmp_path / "memory.db", directory=tmp_path / "shop", clock=lambda: DAY + timedelta(days=120)) as memory:
        fill(memory, *files)
        now = memory.search("what do we use for the orders service?").hits
        assert "Postgres" in now[0].memory.content and now[0].memory.session == "s2" and now[0].memory.lines
        assert not any("decided to use MySQL" in hit.memory.content and hit.memory.kind == "decision" for hit in now)
        why = memory.search("why did we change the database of the orders service?").hits
        assert "slow" in why[0].memory.content or "slow" in why[1].memory.content
        still = memory.search("what questions are still open?").hits
        assert [("back up" in hit.memory.content or "backup" in hit.memory.content) for hit in still][:1] == [True]
        assert all(hit.memory.kind == "question" and not hit.memory.answered for hit in still)
        then = memory.search("what did we use for the orders service in March 2026?").hits
        assert "MySQL" in then[0].memory.content
        chain = memory.search("which database for the orders service?", filter=memory.filter(kinds=("decision",))).hits[0]
        assert any(relation.type == "supersedes" and "MySQL" in other.content for relation, other in chain.related)


def test_the_commands_read_list_and_show_the_source(cli, tmp_path):  # noqa: F811
    file = transcript(tmp_path / "t" / "a.jsonl", "0a1b2c3d-0000", cli.project, *CHOICE)
    transcript(tmp_path / "t" / "b.jsonl", "ffff0000-0000", cli.project, *CHANGE, began=DAY + timedelta(days=3))
    done = cli.json("backfill", str(tmp_path / "t"))
    assert (done["transcripts"], done["turns"], done["sessions"], done["failed"]) == (2, 8, 2, [])
    assert "without anything new" in cli.ok("backfill", str(tmp_path / "t"))
    assert [session["id"] for session in cli.json("topics")] == ["ffff0000-0000", "0a1b2c3d-0000"]
    assert "lines 1-" in cli.ok("topics", "0a1b", "--tree")
    assert "There is no session" in cli.fails("topics", "zzz", code=1)
    (idea, *_) = [
        one for one in cli.json("list", "--all", "--include-superseded") if one["kind"] == "decision" and one["session"].startswith("0a1b")
    ]
    shown = cli.ok("get", idea["id"], "--source")
    assert "Around it:" in shown and str(file.resolve())[-12:] in shown
    assert len(cli.json("get", idea["id"], "--source")[0]["around"]) > 1
    assert "Topic:" in cli.ok("recall", "which database do we use for orders?")
    assert "--all" in cli.fails("backfill", code=2)
    assert "nothing at" in cli.fails("backfill", "/nowhere/at/all", code=1)


def test_one_file_with_conversations_about_several_projects_is_shared_out(memory, tmp_path):
    (tmp_path / "bakery").mkdir()
    file = transcript(tmp_path / "a.jsonl", "s1", tmp_path / "shop", *CHOICE)
    other = transcript(tmp_path / "b.jsonl", "s2", tmp_path / "bakery", *CHANGE)
    file.write_text(file.read_text() + other.read_text())
    assert fill(memory, file).turns == len(CHOICE) + len(CHANGE)
    assert {turn.session for turn in kept(memory, "context")} == {"s1"}
    with Memory(tmp_path / "memory.db", directory=tmp_path / "bakery", embedder=HashingEmbedder()) as bakery:
        assert {turn.session for turn in kept(bakery, "context")} == {"s2"}
    assert fill(memory, file).unchanged == 1
    file.write_text(
        file.read_text() + transcript(tmp_path / "c.jsonl", "s2", tmp_path / "bakery", *DOUBT).read_text().replace("s2-0", "s2-9")
    )
    assert fill(memory, file).turns == len(DOUBT)
    assert {turn.session for turn in kept(memory, "context")} == {"s1"}
