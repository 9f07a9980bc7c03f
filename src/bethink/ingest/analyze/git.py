"""What a repository's history explains: one document per commit that gives a reason, takes something back or breaks something.

Git is run to list commits and, for the chosen ones, their files. The repository is treated as a stranger's: nothing in its
configuration may start a program, open a connection or wait for an answer, and no more is read than a bound allows. What
cannot be had is a `Skipped` with git's own reason. Which commits explain something is for `commits` to say.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import tempfile
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from bethink.ingest.analyze.commits import Explained, explained
from bethink.ingest.analyze.prose import clip
from bethink.ingest.analyze.tree import aside
from bethink.ingest.redact import redact
from bethink.ingest.sync import Document, Skipped
from bethink.types import Entity, Memory, Passage

MOST = 400  # commits of one history that become memories; the most telling ones
MOST_BYTES = 48_000_000
MOST_FILES = 6
SECONDS = 60.0
# What a hostile configuration could use: hooks, monitors, signature programs, external diffs, pagers.
SAFELY = (
    "--no-pager",
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    f"core.hooksPath={os.devnull}",
    "-c",
    "log.showSignature=false",
    "-c",
    "core.quotePath=false",
    "-c",
    "diff.external=",
    "-c",
    "log.follow=false",
    "-c",
    "core.commitGraph=false",
    "-c",
    "log.mailmap=false",
)
PLAINLY = (
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-show-signature",
    "--no-notes",
    "--encoding=UTF-8",
    "--no-mailmap",
)
KEPT = (
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_EXEC_PATH",
    "GIT_CEILING_DIRECTORIES",
)


class Commit(NamedTuple):
    id: str
    at: datetime | None
    author: str
    message: str


class Output(NamedTuple):
    data: bytes
    trouble: str | None = None  # a reason without a trailing period


def documents(
    root: Path, limit: int = 2000, since: str | None = None, known: Collection[str] = ()
) -> Iterator[Document | Skipped]:
    """The commits among the newest `limit` that explain something, oldest first, without those in `known` (full ids)."""
    mark = secrets.token_hex(
        12
    )  # no message can contain it, so no message can look like the next commit
    asked = [f"--max-count={max(limit, 0)}", *([f"--since={since}"] if since else [])]
    listed = _git(
        root,
        [
            "log",
            *PLAINLY,
            "--no-merges",
            *asked,
            f"--format={mark}%x00%H%x00%at%x00%an%x00%B%x00",
            "--",
        ],
    )
    if listed.trouble:
        yield Skipped("git:", listed.trouble)
    found = [
        (commit, told)
        for commit in _commits(listed.data, mark.encode())
        if (told := explained(commit.message, commit.author))
    ]
    # Ranked before the known ones are left out: otherwise each run would go one step further down.
    found.sort(key=lambda item: -item[1].score)
    chosen = [(commit, told) for commit, told in found[:MOST] if commit.id not in known]
    files = _files(root, [commit.id for commit, _ in chosen], mark)
    start = datetime.fromtimestamp(0, UTC)
    for commit, told in sorted(chosen, key=lambda item: item[0].at or start):
        passage = _passage(commit, told, files.get(commit.id, ()))
        yield Document(f"git:{commit.id}", commit.id, lambda passage=passage: (passage,))  # type: ignore[misc]


def reverted(memories: Iterable[Memory]) -> list[tuple[Memory, Memory]]:
    """Of stored commits, which one another takes back: pairs, the old one first."""
    by_id = {
        str(memory.metadata["commit"]): memory
        for memory in memories
        if memory.metadata.get("commit")
    }
    pairs = []
    for memory in by_id.values():
        wanted = memory.metadata.get("reverts")
        if isinstance(wanted, str) and len(wanted) >= 7:
            old = by_id.get(wanted) or next(
                (other for id, other in by_id.items() if id.startswith(wanted)), None
            )
            if old is not None and old is not memory:
                pairs.append((old, memory))
    return pairs


def _passage(commit: Commit, told: Explained, files: Sequence[str]) -> Passage:
    metadata = {
        "commit": commit.id,
        "author": commit.author,
        "reverts": told.reverts,
        "breaking": told.breaking or None,
    }
    return Passage(
        told.content,
        told.kind,
        summary=clip(told.subject, 120),
        importance=7.0
        if told.breaking
        else 6.5
        if told.kind == "gotcha" and told.score >= 1.5
        else 6.0
        if told.score >= 1
        else 5.0,
        confidence=0.9 if told.score >= 1 else 0.7,
        tags=(
            "analysis",
            "git",
            "breaking"
            if told.breaking
            else "revert"
            if told.reverts or told.content.startswith("Reverted:")
            else "commit",
        ),
        entities=tuple(Entity(file, "file") for file in files),
        section=f"{commit.id[:10]} {clip(told.subject, 120)}",
        created_at=commit.at,
        metadata={key: value for key, value in metadata.items() if value},
    )


def _commits(data: bytes, mark: bytes) -> Iterator[Commit]:
    for record in data.split(mark + b"\0")[1:]:
        fields = record.split(b"\0")
        if len(fields) >= 5 and re.fullmatch(rb"[0-9a-f]{40,64}", fields[0]):
            yield Commit(
                fields[0].decode(),
                _time(fields[1]),
                " ".join(_text(fields[2]).split())[:80],
                redact(_text(fields[3])).text,
            )


def _text(data: bytes) -> str:
    """Old commits are in whatever encoding their author had. Controls and escape sequences are for terminals."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("cp1252", "replace")
    text = re.sub(
        r"\x1b(?:\[[0-9;?]{0,20}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|.)", "", text
    )
    return re.sub(
        r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]",
        "",
        text.replace("\r\n", "\n").replace("\r", "\n"),
    )


def _time(data: bytes) -> datetime | None:
    try:
        at = datetime.fromtimestamp(int(data), UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return at if 1971 <= at.year <= 2100 else None  # older or later is a broken clock


def _files(root: Path, ids: Sequence[str], mark: str) -> Mapping[str, tuple[str, ...]]:
    """A few files of each commit, those that are no tests first. What git cannot say costs only the entities."""
    if not ids:
        return {}
    arguments = [
        "log",
        *PLAINLY,
        "--no-walk=unsorted",
        "--no-renames",
        "--name-only",
        "-z",
        f"--format={mark}%x00%H%x00",
        "--stdin",
    ]
    output = _git(root, arguments, given="\n".join(ids).encode())
    found: dict[str, tuple[str, ...]] = {}
    for record in output.data.split(mark.encode() + b"\0")[1:]:
        id, *names = record.split(b"\0", 400)
        files = [name.decode("utf-8", "backslashreplace").strip("\n") for name in names]
        files = [file for file in files if file and file.isprintable() and len(file) <= 200]
        found[id.decode("ascii", "replace")] = tuple(sorted(files, key=aside)[:MOST_FILES])
    return found


def _git(root: Path, arguments: Sequence[str], given: bytes = b"") -> Output:
    """What git prints, up to a bound in size and time, and why if it failed."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in KEPT
    }
    environment |= {
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_PAGER": "cat",
        "GIT_ATTR_NOSYSTEM": "1",
        "LC_ALL": "C",
        "LANGUAGE": "C",
    }
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as asked:
        asked.write(given)
        asked.seek(0)
        try:
            process = subprocess.Popen(
                ["git", *SAFELY, *arguments],
                cwd=root,
                env=environment,
                stdin=asked,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        except FileNotFoundError:
            return Output(b"", "git is not installed, or the folder is gone")
        except (OSError, ValueError) as error:
            return Output(
                b"", f"git cannot be started: {getattr(error, 'strerror', None) or error}"
            )
        expired = threading.Event()

        def give_up() -> None:
            expired.set()
            process.kill()

        timer = threading.Timer(SECONDS, give_up)
        timer.start()
        try:
            with process:
                data = process.stdout.read(MOST_BYTES + 1) if process.stdout else b""
                if len(data) > MOST_BYTES:
                    process.kill()
        finally:
            timer.cancel()
        if expired.is_set():
            return Output(
                data, f"git took longer than {SECONDS:g} seconds; what it said until then is used"
            )
        if len(data) > MOST_BYTES:
            return Output(
                data[:MOST_BYTES],
                f"the history is larger than {MOST_BYTES // 1_000_000} MB; the newest part is used",
            )
        if process.returncode:
            errors.seek(0)
            return Output(
                data, _reason(errors.read(4_000).decode("utf-8", "replace"), process.returncode)
            )
    return Output(data)


def _reason(told: str, code: int) -> str:
    if "not a git repository" in told:
        return "not a git repository"
    if (
        "does not have any commits" in told
        or "bad default revision" in told
        or "unknown revision or path" in told
    ):
        return "the repository has no commits yet"
    first = next(
        (line for line in told.split("\n") if line.startswith(("fatal:", "error:"))),
        told.split("\n")[0],
    )
    return (
        clip(
            re.sub(
                r"^(?:fatal|error):\s*", "git: ", "".join(filter(str.isprintable, first))
            ).rstrip("."),
            200,
        )
        or f"git failed with code {code}"
    )
