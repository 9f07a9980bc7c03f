"""Failed commands of a project, and what fixed them."""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple

from bethink.api import Bethink
from bethink.ingest.commands import name_job, name_program
from bethink.ingest.failures import CODE, FLAKY, Failure, as_count, find_files
from bethink.ingest.tools import EDIT_CONFLICT, TOOL_KINDS
from bethink.model import TRUST, Memory

# Least confidence of a fix that is shown: below, it failed as often as it helped. By hand.
_SURE = 0.5
# Errors that pass by themselves.
_PASSING = re.compile(
    r"timed? ?out|ETIMEDOUT|ECONNRESET|socket hang up|temporar|too many requests|rate limit|HTTP 5\d\d|\b50[234]\b|index\.lock|EBUSY|connection reset",
    re.IGNORECASE,
)
_LOOKED = 500  # newest failures that a list reads; a bound


class KnownFailure(NamedTuple):
    """A stored failure, as lists and hooks show it."""

    id: str
    command: str
    error: str
    cause: str  # the kind of failure: missing dependency, wrong flag …
    times: int
    last: str  # ISO time, '' where the agent recorded none
    fix: str  # '' while it is unsolved
    held: int  # how often this fix helped
    confidence: float
    session: str
    source: str
    lines: tuple[int, int] | None
    scope: str
    open: bool = False  # unsolved, and nobody closed it
    did_not_help: int = 0  # how often the same error came again after the fix


def list_failures(
    memory: Bethink,
    unsolved: bool = False,
    limit: int = 20,
    all_projects: bool = False,
) -> list[KnownFailure]:
    """Failures of this project, open ones first, then by time; with `unsolved` the open ones alone."""
    answered = False if unsolved else None
    scopes = memory.every_scope() if all_projects else memory.named_scopes
    wanted = memory.filter(kinds=("failure",), answered=answered, scopes=scopes)
    found = [as_failure(one) for one in memory.list(filter=wanted, limit=max(limit, _LOOKED))]
    return sorted(found, key=lambda one: (one.open, one.last), reverse=True)[:limit]


def find_fix(memory: Bethink, failure: Failure) -> KnownFailure | None:
    """Known failure with the same error and a fix that applies here, from this user's own sessions."""
    wanted = memory.filter(kinds=("failure",), answered=True, min_trust=TRUST["agent"])
    for one in memory.store.find_failures([failure.signature], wanted):
        known = as_failure(one)
        if known.fix and known.confidence >= _SURE and fits(known, failure):
            return known
    return None


def fits(known: KnownFailure, failure: Failure) -> bool:
    """Return True if a known fix may help with this failure; an edit of code hardly ever does."""
    if (folder := known.fix.removeprefix("ran it in ")) != known.fix:
        return posixpath.basename(failure.place.rstrip("/")) != folder
    if (folder := known.fix.removeprefix("the shell was in ")) != known.fix:
        return posixpath.basename(failure.place.rstrip("/")) == folder.partition(" ")[0]
    if known.cause in TOOL_KINDS:
        return known.cause != EDIT_CONFLICT or known.times > 1
    if known.cause == FLAKY:
        return bool(_PASSING.search(failure.error)) or known.held > 1
    if known.fix.endswith(" instead"):
        return _is_same_correction(known, failure)
    if known.cause in CODE and known.fix.startswith("edited "):
        files = find_files(known.error)
        return known.held > 1 or bool(files and files == find_files(failure.error))
    return True


def _is_same_correction(known: KnownFailure, failure: Failure) -> bool:
    """Return True if another wording of a command, which helped before, may help this command too.

    It must do the same work, lack what the fix put in, and have what the error complained of.
    """
    fix = known.fix.removeprefix("ran `").removesuffix("` instead")
    if fix.endswith(f" {known.command}"):  # a variable in front
        same = name_program(known.command) == name_program(failure.command)
    else:
        same = name_job(known.command) == name_job(failure.command)
    before, after, now = (set(one.split()) for one in (known.command, fix, failure.command))
    blamed = {word for word in before - after if _is_named(word, known.error)}
    added = after - before
    done = bool(added) and added <= now
    return same and not done and all(_is_named(word, failure.error) for word in blamed)


def _is_named(word: str, error: str) -> bool:
    return len(word) > 2 and bool(re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", error))


def as_failure(one: Memory) -> KnownFailure:
    metadata = one.metadata
    return KnownFailure(
        one.id,
        str(metadata.get("command") or one.summary),
        str(metadata.get("error") or ""),
        str(metadata.get("cause") or "other"),
        as_count(metadata.get("times"), 1),
        str(metadata.get("last") or one.created_at.isoformat()),
        str(metadata.get("fix") or ""),
        as_count(metadata.get("held")),
        one.confidence,
        one.session or "",
        one.source,
        one.lines,
        one.scope,
        not one.answered,
        as_count(metadata.get("did_not_help")),
    )
