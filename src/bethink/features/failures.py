"""Failed commands of a project, and what fixed them."""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple

from bethink.api import Bethink
from bethink.ingest.causes import BY_NAME, list_differences
from bethink.ingest.commands import name_job, name_program, strip_command
from bethink.ingest.failures import (
    CODE,
    FLAKY,
    Failure,
    adds_options,
    as_count,
    edits_settings,
    name_kind,
    normalise_error,
    read_fix,
)
from bethink.ingest.tools import EDIT_CONFLICT, TOOL_KINDS
from bethink.model import TRUST, Memory

# Least confidence of a fix that is shown: below, it failed as often as it helped. By hand.
_SURE = 0.5
_FLAKY = 2  # unchanged passes that show a failure to be flaky; once tells nothing
# Marks by which an edit lets a rule pass, as it may elsewhere.
_ALLOWS = re.compile(
    r"#!?\[allow\(|noqa|nolint|eslint-disable|biome-ignore|type: ignore|ts-expect-error|pylint: disable|rubocop:disable|@SuppressWarnings|NOSONAR"
)
# Mistakes in a file itself, of which its edit says nothing about other files.
_SYNTAX = re.compile(
    r"syntax ?error(?!: cannot use)|unexpected (?:token|end|character)|parse error|not valid json",
    re.IGNORECASE,
)
# Codes of rules that a linter's configuration settles; compilers have none.
_RULE = re.compile(
    r"\b(?!TS|E\d{4}\])[A-Z]{1,4}\d{3,4}\b|\[[a-z]+(?:-[a-z]+)+\]|\s@?[\w/]{0,40}[a-z]+(?:-[a-z]+)+$"
)
# Fixes that install all that a project declares, whichever part was missing.
_INSTALLS_ALL = re.compile(
    r"ran `(?:[\w./=-]{1,60} ){0,4}(?:install|ci|sync|restore|update|tidy|bootstrap|deps|deps\.get|setup)"
    r"(?: (?:-\S{1,40}|\S{0,60}requirements\S{0,60}|\.\S{0,40}))*`"
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
    causes: tuple[str, ...] = ()  # names of the cause, as other commands meet it


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
    if not failure.causes:
        return None
    found = map(as_failure, memory.store.find_failures_by_cause(failure.causes, wanted))
    order = {cause: at for at, cause in enumerate(failure.causes)}
    for known in sorted(
        found, key=lambda one: min(order.get(cause, len(order)) for cause in one.causes)
    ):
        if known.fix and known.confidence >= _SURE and fits_cause(known, failure):
            return known
    return None


def fits_cause(known: KnownFailure, failure: Failure) -> bool:
    """Return True if a fix of the same cause, worded differently or for another name, may help here."""
    if known.cause == FLAKY or known.fix.startswith(("ran it in ", "the shell was in ")):
        return False
    shared = set(known.causes) & set(failure.causes)
    if known.cause in TOOL_KINDS:
        return known.fix.startswith("ran ")
    if any(not one.startswith("like:") for one in shared):
        edited = known.fix.startswith("edited ") and not edits_settings(known.fix)
        return not edited and fits(known, failure)
    # The wording is the same for another name: the fix must not depend on the name.
    correction = _read_correction(known.fix)
    kept = set(known.command.split()) if correction else set()
    fix = " ".join(word for word in (correction or known.fix).split() if word not in kept).lower()
    if any(name in fix for name in list_differences(known.error, failure.error)):
        return False
    if failure.kind in BY_NAME or known.cause in BY_NAME:
        return bool(_INSTALLS_ALL.fullmatch(known.fix)) and fits(known, failure)
    if known.fix.startswith("edited "):
        return edits_settings(known.fix) and bool(_RULE.search(known.error))
    if name_kind("", failure.error) in CODE:
        return False
    return fits(known, failure)


def fits(known: KnownFailure, failure: Failure) -> bool:
    """Return True if a known fix may help with this failure; an edit of code hardly ever does."""
    if _is_other_address(known, failure):
        return False
    if (folder := known.fix.removeprefix("ran it in ")) != known.fix:
        return posixpath.basename(failure.place.rstrip("/")) != folder
    if (folder := known.fix.removeprefix("the shell was in ")) != known.fix:
        return posixpath.basename(failure.place.rstrip("/")) == folder.partition(" ")[0]
    if known.cause in TOOL_KINDS:
        return known.cause != EDIT_CONFLICT or known.times > 1
    if known.cause == FLAKY:
        return known.held >= _FLAKY
    if known.fix.endswith(" instead"):
        return _is_same_correction(known, failure)
    if known.cause in CODE and known.fix.startswith("edited "):
        settled = edits_settings(known.fix) and not _SYNTAX.search(known.error)
        general = settled or bool(_ALLOWS.search(known.fix))
        return known.held > 1 or general
    return True


def _is_other_address(known: KnownFailure, failure: Failure) -> bool:
    """Return True if nothing but a port tells two errors apart, and the ports differ."""
    ours, theirs = (
        {one for one in causes if re.match(r"(?:port|service):", one)}
        for causes in (known.causes, failure.causes)
    )
    words = re.findall(r"[^\W\d_]{3,}", re.sub(r"<\w+>", "", normalise_error(failure.error)))
    job = name_job(known.command) == name_job(failure.command)
    return bool(ours and theirs) and not ours & theirs and not job and len(words) < 4


def _is_same_correction(known: KnownFailure, failure: Failure) -> bool:
    """Return True if another wording of a command, which helped before, may help this command too.

    It must do the same work, lack what the fix put in, and have what the error complained of.
    """
    fix = _read_correction(known.fix)
    program = name_program(known.command) == name_program(failure.command)
    swaps = fix.endswith(f" {known.command}") or _swaps_program(known.command, fix)
    same = name_job(known.command) == name_job(failure.command) or _lacks_same(known, failure)
    # What a variable does to the same error does not depend on the command.
    same = _sets_variables(known.command, fix) or (program if swaps else same) or same
    before, after, now = (set(one.split()) for one in (known.command, fix, failure.command))
    blamed = {word for word in before - after if _is_named(word, known.error)}
    added = after - before
    # Another value of an argument, or one more option, helps whatever the program does.
    replaced = before - after
    same = same or (program and bool(replaced and replaced <= now))
    same = same or (program and bool(adds_options(known.command, fix)))
    done = bool(added) and added <= now
    return same and not done and all(_is_named(word, failure.error) for word in blamed)


def _read_correction(fix: str) -> str:
    """Return the command of "ran `…` instead", '' of another fix."""
    found = re.fullmatch(r"ran `(.+)`(?: in \S+)? instead", fix)
    return found[1] if found else ""


def _sets_variables(command: str, fix: str) -> bool:
    return fix.endswith(f" {command}") and all(
        "=" in one for one in fix.removesuffix(command).split()
    )


def _swaps_program(command: str, fix: str) -> bool:
    """Return True if a fix starts another program on the same arguments: `npx tsx x.ts` for `node x.ts`."""
    program, *things = strip_command(command).split()
    other = strip_command(fix).split()
    return bool(things) and other[0] != program and other[-len(things) :] == things


def _lacks_same(known: KnownFailure, failure: Failure) -> bool:
    """Return True if both commands start a program that is not there: `timeout 60 npm test`."""
    names = {one.removeprefix("command:") for one in failure.causes if one.startswith("command:")}
    started = (set(one.split()) for one in (known.command, failure.command))
    return bool(names.intersection(*started))


def _is_named(word: str, error: str) -> bool:
    return len(word) > 2 and bool(re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", error))


def as_failure(one: Memory) -> KnownFailure:
    """Return a stored failure as lists and hooks show it."""
    metadata = one.metadata
    causes = metadata.get("causes")
    return KnownFailure(
        one.id,
        str(metadata.get("command") or one.summary),
        str(metadata.get("error") or ""),
        str(metadata.get("cause") or "other"),
        as_count(metadata.get("times"), 1),
        str(metadata.get("last") or one.created_at.isoformat()),
        read_fix(one),
        as_count(metadata.get("held")),
        one.confidence,
        one.session or "",
        one.source,
        one.lines,
        one.scope,
        not one.answered,
        as_count(metadata.get("did_not_help")),
        tuple(map(str, causes)) if isinstance(causes, list) else (),
    )
