"""What a history explains: real repositories in tmp_path, and a labelled table of messages with a floor for precision."""

import os
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from trees import plant

from bethink.ingest import git
from bethink.ingest.git import explain
from bethink.ingest.sync import Document, Skipped
from bethink.model import Entity, Memory

START = datetime(2024, 3, 1, 12, tzinfo=UTC)

LABELLED = (Path(__file__).parent / "fixtures" / "analyze" / "commits.txt").read_text("utf-8")


def labelled() -> list[tuple[list[str], str]]:
    """Labels and message of each commit in the table."""
    pieces = [piece.partition("\n") for piece in LABELLED.split("\n%%%% ")[1:]]
    return [(labels.split(), message.rstrip("\n")) for labels, _, message in pieces]


KEEP = [message for labels, message in labelled() if labels[0] == "keep"]
DROP = [message for labels, message in labelled() if labels[0] == "drop"]
KINDS = [(labels[1], message) for labels, message in labelled() if len(labels) == 2]


def test_commits_that_explain_are_recognised():
    assert min(len(KEEP), len(DROP)) >= 90
    wrong = [message.split("\n")[0] for message in DROP if explain(message)]
    missed = [message.split("\n")[0] for message in KEEP if not explain(message)]
    right = len(KEEP) - len(missed)
    # Measured: precision 1.0 and recall .85, of which .5 on the last 20, which were written after the cues and give none.
    assert right / (right + len(wrong)) >= 0.97, f"kept without need: {wrong}"
    assert right / len(KEEP) >= 0.8, f"missed: {missed}"


@pytest.mark.parametrize(("kind", "message"), KINDS)
def test_a_commit_has_its_kind(kind, message):
    found = explain(message)
    assert found is not None and found.kind == kind


SOME_SUBJECTS_PROMISE_NOTHING = [
    "Merge branch 'main' into orders",
    "Merge pull request #7 from shop/orders",
    "Bump requests from 2.31.0 to 2.32.0",
    "chore(deps): update vite",
    "Release 2.0.0",
    "v1.4.2",
    "Update dependency vite to v5",
    "Update translations",
    "[pre-commit.ci] pre-commit autoupdate",
    "wip",
    "WIP: orders",
    "fixup! Store money as integers",
    "tmp",
    "squash! orders",
    "Initial commit",
    "Merge commit from fork",
    "Fix linter",
    "fix: address mypy errors (#12)",
]


CUE = [
    "Log it\n\n    2024-03-01 12:00:00 ERROR cannot connect because the host is down, which led to a crash",
    "Log it\n\n```\nrequest failed because the token expired, so that nothing was sent and users were lost\n```",
    "Log it\n\nERROR: could not connect because the host was down, due to a failed disk",
    "Log it\n\n> it crashed because of a race, and we decided to wait\n> turns out the disk was lost",
    'Log it\n\nTraceback (most recent call last):\n  File "a.py", line 3\nValueError: rejected because it was lost twice, so that it failed',
    "Log it\n\nCo-authored-by: Because It Was Broken <so-that@example.org>\nReviewed-by: Due To The Crash <a@example.org>",
    "Log it\n\n- [x] I tested this because it crashed, and it failed because the disk was lost",
    "Log it\n\n<!-- tell why this was needed, because reviewers were lost without it -->",
]


def test_a_cue_in_pasted_text_explains_nothing():
    assert [text for text in CUE if explain(text)] == []


def test_a_generated_subject_explains_nothing():
    strong = "\n\nWe decided this because the root cause was a race condition, which led to lost orders in production."
    subjects = SOME_SUBJECTS_PROMISE_NOTHING
    assert [text for text in subjects if explain(text + strong)] == []
    assert explain("Store orders in the queue first" + strong) is not None


@pytest.mark.parametrize(
    "author",
    [
        pytest.param("dependabot[bot]", id="dependabot-bot"),
        pytest.param("renovate", id="renovate"),
        pytest.param("github-actions[bot]", id="github-actions-bot"),
        pytest.param("shop-bot", id="shop-bot"),
    ],
)
def test_a_commit_of_a_bot_explains_nothing(author):
    assert explain(KEEP[0], author) is None


def test_a_commit_of_a_person_may_explain():
    assert explain(KEEP[0], "Ada") is not None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("\n\n\n", id="blank"),
        pytest.param("\x00", id="u0000"),
        pytest.param("because", id="because"),
        pytest.param("a" * 100000, id="a"),
        pytest.param("because " * 50000, id="because-50000"),
        pytest.param("x\n\n" + "<!--" * 20000, id="x-less-than-sign"),
        pytest.param("x\n\n" + "* a\n\n" * 20000, id="x-a"),
    ],
)
def test_any_message_is_read(text):
    explain(text)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param(
            "Store money as integers\n\nFloats lost a cent because 0.1 has no exact form, so that totals were wrong.\n\n    2024-01-01 ERROR total differs\n\nFixes #12\nSigned-off-by: A <a@example.org>\nCo-authored-by: B <b@example.org>\nChange-Id: I77",
            {
                "content": "Store money as integers.\nFloats lost a cent because 0.1 has no exact form, so that totals were wrong.",
                "breaking": False,
            },
            id="store-money-integers-floats-lost-cent",
        ),
        pytest.param(
            "Sort ids\n\nIds generated by the client collide because two tabs share a clock, so that rows were lost.",
            {"subject": "Sort ids"},
            id="sort-ids-ids-generated-client-collide",
        ),
        pytest.param(
            'Revert "Enable HTTP/2 for the gateway" (#77)\n\nThis reverts commit 4f1c2a9.\n\nIt broke the event feed in production.',
            {
                "content": "Reverted: Enable HTTP/2 for the gateway.\nIt broke the event feed in production.",
                "reverts": "4f1c2a9",
            },
            id="revert-enable-http/2-gateway-77-reverts",
        ),
        pytest.param(
            "feat!: drop Python 3.8\n\nBREAKING CHANGE: the minimum is 3.9 now,\nsee the guide.\n\nSigned-off-by: A <a@b.c>",
            {
                "breaking": True,
                "content": "feat!: drop Python 3.8.\nBREAKING CHANGE: the minimum is 3.9 now, see the guide.",
            },
            id="feat-drop-python-3.8-breaking-change",
        ),
    ],
)
def test_an_explanation_has_its_fields(message, expected):
    found = explain(message)
    assert found is not None and {name: getattr(found, name) for name in expected} == expected


IDENTITY = {"AUTHOR_NAME": "Ada", "AUTHOR_EMAIL": "ada@example.org"}
IDENTITY |= {"COMMITTER_NAME": "Ada", "COMMITTER_EMAIL": "ada@example.org"}
IDENTITY |= {"CONFIG_GLOBAL": os.devnull, "CONFIG_NOSYSTEM": "1"}


class Repository:
    def __init__(self, root: Path) -> None:
        self.root, self.count = root, 0
        root.mkdir(parents=True)
        self.run("init", "--quiet", "--initial-branch=main")

    def run(self, *arguments: str, given: bytes | None = None) -> str:
        at = (START + timedelta(days=self.count)).isoformat()
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        own = IDENTITY | {"AUTHOR_DATE": at, "COMMITTER_DATE": at}
        command = ["git", "-C", str(self.root), *arguments]
        clean |= {f"GIT_{name}": value for name, value in own.items()}
        done = subprocess.run(command, env=clean, input=given, capture_output=True, check=True)
        return done.stdout.decode("utf-8", "replace").strip()

    def commit(self, text: str | bytes, *files: str) -> str:
        self.count += 1
        plant(self.root, dict.fromkeys(files or (f"file{self.count}.txt",), f"{self.count}\n"))
        self.run("add", "--all")
        given = text.encode() if isinstance(text, str) else text
        self.run("commit", "--quiet", "--cleanup=verbatim", "--file=-", given=given)
        return self.run("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path / "shop")


def found(root: Path, known: Sequence[str] = ()) -> tuple[list[Document], list[str]]:
    """The commits that are told, and why others are not."""
    both = list(git.documents(root, known))
    skipped = [one.reason for one in both if isinstance(one, Skipped) and one.uri == "git"]
    return [one for one in both if isinstance(one, Document)], skipped


def ids(root: Path, known: Sequence[str] = ()) -> list[str]:
    return [document.hash for document in found(root, known)[0]]


REASON = "Store money as integers\n\nFloats lost a cent in every thousandth invoice because 0.1 has no exact binary form."


def test_a_commit_becomes_a_memory_that_cites_it(repository):
    repository.commit("Add the shop")
    id = repository.commit(REASON, "src/money.py", "tests/test_money.py", "docs/ü.md")
    (document,), skipped = found(repository.root)
    assert (document.uri, document.hash, skipped) == (f"git:{id}", id, [])
    (passage,) = document.passages()
    assert passage.kind == "decision"
    assert passage.content.startswith("Store money as integers.\nFloats lost")
    assert passage.section == f"{id[:10]} Store money as integers"
    assert passage.created_at == START + timedelta(days=2)
    assert passage.metadata == {"commit": id, "author": "Ada"}
    names = ["docs/ü.md", "src/money.py", "tests/test_money.py"]
    assert list(passage.entities) == [Entity(name, "file") for name in names]
    assert "example.org" not in repr(passage)


def test_a_revert_leads_to_what_it_takes_back(repository):
    first = repository.commit(REASON)
    repository.run("revert", "--no-edit", first)
    documents, _ = found(repository.root)
    assert documents[0].uri == f"git:{first}"
    revert = documents[1].passages()[0]
    assert (revert.kind, revert.metadata["reverts"]) == ("gotcha", first)
    about = [document.passages()[0].metadata for document in documents]
    common = ("project:x", "decision", "text", "text", START, START)
    memories = [Memory(str(at), *common, metadata=one) for at, one in enumerate(about)]
    assert [(old.id, new.id) for old, new in git.reverted_pairs(memories)] == [("0", "1")]
    assert git.reverted_pairs(memories[1:]) == []


def test_reading_a_history_is_bounded(repository, tmp_path, monkeypatch):
    pinned = "Pin numpy below 2 because the wheels of our extension were built for it"
    repository.commit(pinned)
    best = repository.commit(f"{REASON} We decided this deliberately, due to the outage.")
    newest = repository.commit(pinned.replace("numpy", "pandas"))
    with monkeypatch.context() as patch:
        patch.setattr(git, "MOST_READ", 1)
        assert ids(repository.root) == [newest]
    with monkeypatch.context() as patch:
        patch.setattr(git, "MOST_EXPLAINED", 1)
        assert ids(repository.root) == [best]
        assert ids(repository.root, known=[best]) == [], "known ones do not let others in"
    with monkeypatch.context() as patch:
        patch.setattr(git, "MOST_BYTES", 350)
        documents, skipped = found(repository.root)
        assert 1 <= len(documents) < 3 and "larger than" in skipped[0]
    slow = plant(tmp_path / "bin", {"git": "#!/bin/sh\nexec sleep 30\n"})
    (slow / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(git, "TIME_LIMIT", 0.2)
    assert "longer than 0.2 seconds" in found(repository.root)[1][0]


def test_odd_commits_do_no_harm(repository):
    who = b"Ada <ada@example.org> 1709290000 +0000"
    text = "Rundungsfehler in der Währung behoben\n\nBroken because 0.1 has no exact binary form: see Müller, so that totals differ.\n"
    empty = repository.run("mktree", given=b"")
    lines = [b"tree " + empty.encode(), b"author " + who, b"committer " + who, b""]
    raw = b"\n".join([*lines, text.encode("latin-1")])
    id = repository.run("hash-object", "-t", "commit", "-w", "--stdin", given=raw)
    repository.run("update-ref", "HEAD", id)
    why = b"The terminal beeped because the bell was kept, which led to complaints."
    forged = "0" * 40  # A message cannot pretend to be another commit.
    lie = "We decided to use this because it is forged, so that it is kept."
    repository.commit(f"Forge\n\nx\x1e\n{forged}\n1700000000\nMallory\n{lie}")
    repository.commit(b"Show \x1b[31mred\x1b[0m text\x07\n\n" + why + b"\r\nMore \x9b here.\x02")
    documents, skipped = found(repository.root)
    texts = [document.passages()[0].content for document in documents]
    assert skipped == [] and "W\ufffdhrung" in texts[0]
    assert texts[-1].startswith("Show red text.\n")
    assert forged not in [document.hash for document in documents]
    assert not any(ord(one) < 32 and one != "\n" for text in texts for one in text)


def test_where_there_is_no_history_there_is_a_reason(tmp_path, repository, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    (tmp_path / "plain").mkdir()
    reasons = {tmp_path / "plain": "not a git", repository.root: "does not have any commits yet"}
    assert [
        root
        for root, why in reasons.items()
        if found(root)[0] != [] or why not in found(root)[1][0]
    ] == []
    missing = ([], ["git is not installed, or the folder is gone"])
    assert found(tmp_path / "missing") == missing
    monkeypatch.setenv("PATH", str(tmp_path))
    assert found(repository.root) == missing


def test_a_surrounding_git_command_leads_nowhere_else(repository, tmp_path, monkeypatch):
    other = Repository(tmp_path / "other")
    other.commit(REASON.replace("money", "secrets"))
    id = repository.commit(REASON)
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
    assert ids(repository.root) == [id]


def test_nothing_in_the_repository_is_executed(repository, tmp_path):
    touched = tmp_path / "touched"
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {touched}\ncat\n")
    script.chmod(0o755)
    repository.commit(REASON, "a.txt")
    (repository.root / ".gitattributes").write_text("* diff=evil filter=evil\n")
    repository.commit(REASON.replace("money", "weights"), "a.txt")
    programs = "core.pager core.fsmonitor core.sshCommand diff.external diff.evil.command diff.evil.textconv"
    programs += " filter.evil.smudge filter.evil.clean gpg.program core.editor"
    given = dict.fromkeys([*programs.split(), "core.alternateRefsCommand"], script)
    given["core.hooksPath"] = tmp_path
    given |= dict.fromkeys(("log.showSignature", "pager.log", "log.showRoot"), "true")
    for name, value in given.items():
        repository.run("config", name, str(value))
    assert len(ids(repository.root)) == 2
    assert not touched.exists()
