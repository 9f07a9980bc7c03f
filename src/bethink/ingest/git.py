"""Explanations in a git history: one document per commit with a reason, a revert or a breaking change.

`documents` runs git to list commits and their files. The repository is not trusted: nothing in
its configuration may start a program, open a connection or wait for an answer, and no more is read than a bound allows. Failures
are a `Skipped` with git's own reason.

`explain` judges a message (its word lists are `data/commits.toml`). It first removes what nobody wrote for readers:
trailers, quoted logs and code, templates, the list of squashed subjects. Precision comes first: a history has thousands of
commits, and a memory that says "fix typo because of review" is worse than none. In languages other than English only reverts and
breaking changes count.
"""

import os
import re
import secrets
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

from bethink.ingest.analyze.tree import count_words, is_aside
from bethink.ingest.redact import redact
from bethink.ingest.symbols import load_table, shorten
from bethink.ingest.sync import Document, Skipped
from bethink.model import Entity, Memory, Passage
from bethink.text import clean

MOST_READ = 2000  # commits that are looked at, the newest
MOST_EXPLAINED = 400  # commits of one history that become memories; the most telling ones
MOST_BYTES = 48_000_000
MOST_FILES = 6
LATEST_TIME = 4_102_444_800  # seconds: what is dated after 2099 was dated by a broken clock
TIME_LIMIT = 60.0
_WORD_LIMIT = 3.0  # seconds to look for one word
_LONGEST = 1_200  # characters of what a commit tells
_READ = 20_000  # characters of a message that are looked at
# Chosen on the labelled messages in tests/fixtures/analyze/commits.txt, like the weights of the cues.
ENOUGH = 0.7  # of cues
MODEST = 1.1  # for a subject that promises something new
_ASKED = 0.6  # for a body with a cue below a subject that asks for a reason
SHORTEST_SUBJECT = 8  # words of a subject that explains itself

# Everything that a hostile configuration could use is switched off: hooks, monitors, signature programs, external diffs, pagers.
LOG = f"""
git --no-pager --no-optional-locks -c core.fsmonitor=false -c core.hooksPath={os.devnull} -c log.showSignature=false
-c core.quotePath=false -c diff.external= -c log.follow=false -c core.commitGraph=false -c log.mailmap=false
log --no-merges --no-renames --name-only -z
--no-ext-diff --no-textconv --no-color --no-show-signature --no-notes --encoding=UTF-8 --no-mailmap
""".split()
_KEPT = """
GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG_NOSYSTEM GIT_EXEC_PATH GIT_CEILING_DIRECTORIES
""".split()
_ENVIRONMENT = dict(
    variable.split("=")
    for variable in """
    GIT_OPTIONAL_LOCKS=0 GIT_TERMINAL_PROMPT=0 GIT_ALLOW_PROTOCOL=none GIT_NO_LAZY_FETCH=1 GIT_PAGER=cat GIT_ATTR_NOSYSTEM=1 LC_ALL=C LANGUAGE=C
    """.split()
)


class Commit(NamedTuple):
    id: str
    at: datetime
    author: str
    message: str
    files: tuple[str, ...]


class Explanation(NamedTuple):
    """An explaining commit: its kind, the text worth keeping, and how much it explains."""

    kind: str  # decision or gotcha
    content: str
    subject: str
    score: float
    reverts: str | None = None
    breaking: bool = False


# The history


def documents(root: Path, known: Collection[str] = ()) -> Iterator[Document | Skipped]:
    """Yield the newest commits that explain something, oldest first, without those in `known` (full ids)."""
    # No message can contain the mark, so no message can look like the next commit.
    mark = secrets.token_hex(12)
    form = f"--format={mark}%x00%H%x00%at%x00%an%x00%B%x00"
    listed, trouble = _run_git(root, [f"--max-count={MOST_READ}", form, "--"])
    if trouble:
        yield Skipped("git", trouble)
    found = [
        (commit, explanation)
        for commit in _read_commits(listed, mark.encode())
        if (explanation := explain(commit.message, commit.author))
    ]
    # Ranked before the known ones are left out: otherwise each run would go one step further down.
    found.sort(key=lambda item: -item[1].score)
    chosen = [
        (commit, explanation)
        for commit, explanation in found[:MOST_EXPLAINED]
        if commit.id not in known
    ]
    for commit, explanation in sorted(chosen, key=lambda item: item[0].at):
        passage = _make_passage(commit, explanation)
        yield Document(f"git:{commit.id}", commit.id, lambda passage=passage: (passage,))  # type: ignore[misc]


def reverted_pairs(memories: Iterable[Memory]) -> list[tuple[Memory, Memory]]:
    """Return pairs of stored commits of which the second takes the first back."""
    by_id = {str(one.metadata["commit"]): one for one in memories if one.metadata.get("commit")}
    return [
        (old, new)
        for new in by_id.values()
        for id, old in by_id.items()
        if "reverts" in new.metadata and id.startswith(new.metadata["reverts"]) and old is not new
    ]


def _make_passage(commit: Commit, explanation: Explanation) -> Passage:
    sure = explanation.score >= 1
    metadata = {
        "commit": commit.id,
        "author": commit.author,
        "reverts": explanation.reverts,
        "breaking": explanation.breaking or None,
    }
    return Passage(
        explanation.content,
        explanation.kind,
        summary=shorten(explanation.subject, 120),
        importance=7.0 if explanation.breaking else 6.0 if sure else 5.0,
        confidence=0.9 if sure else 0.7,
        tags=("analysis", "git"),
        entities=tuple(Entity(file, "file") for file in commit.files),
        section=f"{commit.id[:10]} {shorten(explanation.subject, 120)}",
        created_at=commit.at,
        metadata={key: value for key, value in metadata.items() if value},
    )


def _read_commits(data: bytes, mark: bytes) -> Iterator[Commit]:
    for record in data.split(mark + b"\0")[1:]:
        fields = [clean(field.decode("utf-8", "replace")) for field in record.split(b"\0", 400)]
        if len(fields) < 4:
            return  # git was stopped in the middle of it
        id, at, author, message = fields[:4]
        names = map(str.strip, fields[4:])
        files = [name for name in names if name.isprintable() and 0 < len(name) <= 200]
        files.sort(key=is_aside)  # those that are no tests first
        when = datetime.fromtimestamp(min(max(int(at), 0), LATEST_TIME), UTC)
        who = " ".join(author.split())[:80]
        yield Commit(id, when, who, redact(message).text, tuple(files[:MOST_FILES]))


def list_renames(root: Path) -> list[tuple[str, str]]:
    """The renames of files in a history, oldest first, as (old path, new path)."""
    plain = [word for word in LOG if word not in ("--no-renames", "--name-only")]
    wanted = [f"--max-count={MOST_READ}", "--format=", "-M", "--diff-filter=R", "--name-status"]
    data, _ = _run_git(root, [*wanted, "--"], plain)
    parts = data.decode("utf-8", "replace").replace("\n", "").split("\0")
    found = [
        (parts[at + 1], parts[at + 2])
        for at, part in enumerate(parts[:-2])
        if re.fullmatch(r"R\d{1,3}", part)
    ]
    return found[::-1]


def had_word(root: Path, word: str) -> bool:
    """Return True if a change of a history added or removed this word."""
    plain = [part for part in LOG if part not in ("--name-only", "-z")]
    data, _ = _run_git(
        root, ["--max-count=1", "--format=%H", f"-S{word}", "--"], plain, _WORD_LIMIT
    )
    return bool(data.strip())


def make_environment() -> dict[str, str]:
    """Return the environment of a git command that opens no connection and stays in its repository."""
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in _KEPT
    }
    return own | _ENVIRONMENT


def _run_git(
    root: Path, arguments: Sequence[str], log: Sequence[str] = (), limit: float | None = None
) -> tuple[bytes, str | None]:
    """Return what git prints of a history, up to a bound in size and time, and the reason if it failed.

    The reason has no trailing period.
    """
    with tempfile.TemporaryFile() as output:
        trouble = None
        try:
            done = subprocess.run(
                [*(log or LOG), *arguments],
                cwd=root,
                env=make_environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.PIPE,
                start_new_session=True,
                timeout=limit or TIME_LIMIT,
            )
            if done.returncode:
                message = clean(done.stderr.decode("utf-8", "replace")).partition("\n")[0]
                trouble = shorten(message.removeprefix("fatal: ").rstrip("."), 200)
        except subprocess.TimeoutExpired:
            trouble = (
                f"git took longer than {TIME_LIMIT:g} seconds; what it said until then is used"
            )
        except (OSError, ValueError):
            return b"", "git is not installed, or the folder is gone"
        output.seek(0)
        data = output.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        trouble = f"the history is larger than {MOST_BYTES:,} bytes; the newest part is used"
    return data[:MOST_BYTES], trouble


# Messages


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile("|".join(load_table("commits")[name]))


@cache
def _load_cues() -> list[tuple[re.Pattern[str], float]]:
    """Return the phrases that give a reason away, with their weights."""
    cues = load_table("commits")["cue"]
    return [(re.compile(rf"(?i)\b(?:{'|'.join(cue['phrases'])})"), cue["weight"]) for cue in cues]


def explain(message: str, author: str = "") -> Explanation | None:
    """Return what a commit's message explains, or None for the many that explain nothing."""
    message = message[:_READ]
    subject, _, body = message.strip().partition("\n")
    subject = " ".join(subject.split())
    prose = _read_prose(body)
    by_program = _pattern("bot").search(author) or _pattern("generated").search(message)
    if not subject or by_program or _pattern("unfinished").match(subject):
        return None
    named, commit = _pattern("revert").match(subject), _pattern("reverted_id").search(message)
    if named or commit:
        what = next(filter(None, named.groups())) if named else subject
        return _explain_revert(subject, prose, what, commit[1].lower() if commit else None)
    breaking = any(map(_pattern("breaking").match, (subject, *prose.split("\n\n"))))
    if _pattern("machine").match(subject) and not (breaking and prose):
        return None
    score = _rate(subject, prose) + breaking
    modest = _pattern("feature").match(subject) and not breaking
    if score < (MODEST if modest else ENOUGH):
        return None
    kind = "gotcha" if _mends(subject, prose) and not breaking else "decision"
    content = shorten(f"{subject}.\n{prose}".rstrip(), _LONGEST)
    return Explanation(kind, content, subject, score, breaking=breaking)


def _rate(subject: str, prose: str) -> float:
    """Rate how much a message explains: its body, more if the subject asks for a reason; or its subject."""
    score = _score(prose)
    if score and (_pattern("asks").match(subject) or _mends(subject, "")):
        score += _ASKED
    long = count_words(subject) >= SHORTEST_SUBJECT
    return score + (1.0 if long and _pattern("strong").search(subject) else 0.0)


def _score(text: str) -> float:
    """Score the reasoning in a text."""
    return sum(weight for cue, weight in _load_cues() if cue.search(text))


def _read_prose(body: str) -> str:
    """Return the body as paragraphs that were written for readers."""
    body = re.sub(r"<!--(?:[^-]|-(?!->)){0,4000}+(?:-->)?", "", body)
    kept: list[str] = []
    fenced = False
    for line in body.split("\n"):
        bare = line.strip()
        if bare.startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and not _pattern("trailer").match(bare) and not _pattern("log").match(line):
            kept.append(bare)
    paragraphs = re.split(r"\n{2,}", "\n".join(kept).strip())
    return "\n\n".join(
        paragraph if re.match(r"[-*+] ", paragraph) else " ".join(paragraph.split("\n"))
        for paragraph in paragraphs
    )


def _explain_revert(subject: str, prose: str, what: str, commit: str | None) -> Explanation | None:
    """Explain a revert: something was tried and did not work; with its reason if it gives one."""
    what = re.sub(r"(?<!\s)\s*\(#\d+\)$", "", what)
    reason = _pattern("this_reverts").sub("", prose).strip()
    if count_words(reason) < 5:
        idle = any(_pattern(name).match(what) for name in ("machine", "unfinished"))
        if idle or count_words(what) < 3:
            return None
        reason = "The commit gives no reason."
    content = shorten(f"Reverted: {what.rstrip('.')}.\n{reason}", _LONGEST)
    return Explanation("gotcha", content, subject, _ASKED + _score(reason), commit)


def _mends(subject: str, prose: str) -> bool:
    """Return True if the commit fixes something: then it records a trap, not a choice."""
    return bool(_pattern("mending").match(subject) or _pattern("trap").search(prose))
