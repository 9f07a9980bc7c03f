"""install and uninstall: brings a host's files to what it needs, and back to what they were.

`install.json` in the data directory records for every file what it held before (a backup) and digests of what it held around the last
change. All changes are planned in memory; then the record is written, the files, and the record again, so that nothing is ever in a
file that it does not know. Whatever goes wrong with one file leaves it as it was, and the others go on. `uninstall` gives back the very
bytes where nobody changed the file since; otherwise it takes out our entries and nothing else. Nothing is printed here.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

from bethink.config import data_directory
from bethink.errors import BethinkError, InvalidInput
from bethink.hosts import AGENTS, agent
from bethink.hosts.edit import put_entries, take_entries
from bethink.hosts.place import (
    PARTS,
    VERSIONED,
    HostFile,
    InstallPlace,
    is_toml,
    read_settings,
    why_ignored,
)
from bethink.text import textfile

# By which opencode's plugin starts Bethink, unless it is disarmed already.
PLUGIN_COMMAND = re.compile(r"^const COMMAND = (?!\[\]).*$", re.MULTILINE)


class FileOutcome(NamedTuple):
    """What became of one file."""

    host: str
    part: str  # mcp, hooks, skills; empty for several at once
    path: Path
    status: str  # made, changed, unchanged, kept; restored, cleaned, removed; failed
    reasons: tuple[str, ...] = ()
    diff: str = ""
    backup: str = ""


def is_here(host: str, place: InstallPlace) -> bool:
    """Whether a host is on this machine: its folder, or its program."""
    about = agent(host).AGENT
    there = os.path.isdir(about.find_folder(place))  # noqa: PTH112  (false, not an error, below an unreadable folder)
    return there or shutil.which(about.program, path=place.environment.get("PATH")) is not None


def allows_reads(host: str, place: InstallPlace) -> bool:
    """Whether a host was told not to ask before a tool that only reads."""
    about = agent(host).AGENT
    rules = read_settings(about.find_folder(place) / about.hooks).get("permissions")
    allowed = rules.get("allow") if isinstance(rules, dict) else ()
    return bool(about.reads) and set(about.reads) <= {*map(str, allowed or ())}


# The record


class InstalledFile(NamedTuple):
    """One file, and what is known of it."""

    hosts: tuple[str, ...] = ()  # that need it
    part: str = ""
    whole: bool = False  # whether it is ours from end to end
    original: str | None = None  # name of the backup of what it held before; None: it was not there
    after: tuple[str, ...] = ()  # digests of what it held before and after the last change
    folders: tuple[str, ...] = ()  # that were made for it, outermost first

    def is_untouched(self, text: str | None) -> bool:
        """Whether nobody changed the file since. A writing that failed left it as it was before."""
        return text is not None and digest(text) in self.after


def record_file() -> Path:
    return data_directory() / "install.json"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def load_records() -> dict[str, InstalledFile]:
    """By path. A record that cannot be read is an error: without it, `uninstall` would have to guess."""
    text = textfile.read(record_file())
    try:
        found = json.loads(text) if text else {"files": {}}
        rows = found["files"]
        if found.get("version") == 2:
            rows = {path: _upgrade(row) for path, row in rows.items()}
        lists = ("hosts", "after", "folders")
        return {
            path: InstalledFile(**row | {name: tuple(row[name]) for name in lists})
            for path, row in rows.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BethinkError(
            f"The record of what was installed, {record_file()}, is damaged: {error}.",
            "Move it away; `bethink uninstall --force` then finds the entries by what they say.",
        ) from None


def _upgrade(row: dict[str, Any]) -> dict[str, Any]:
    """A row as 0.9 wrote it, which kept the place of every entry, as it is written now."""
    places = [place for entries in row["hosts"].values() for place in entries]
    return {
        "hosts": [*row["hosts"]],
        "whole": ["text", []] in places,
        "original": row["original"] if row["existed"] else None,
        "after": [row["after"], row["before"]],
        "folders": row["folders"],
    }


def _save_records(records: Mapping[str, InstalledFile]) -> None:
    if not records:
        textfile.remove(record_file())
        return
    files = {name: one._asdict() for name, one in records.items()}
    # ASCII, so that paths with bytes that are no UTF-8 can be kept.
    text = json.dumps({"version": 3, "files": files}, indent=1)
    textfile.write(record_file(), text, textfile.read(record_file()), 0o600)


def backup_folder() -> Path:
    return data_directory() / "backups" / "agents"


# Planning


class PlannedFile(NamedTuple):
    real: Path  # behind links, which stay
    was: str | None  # what it holds; None where it is not there
    text: str | None  # what it is to hold


class FilePlan(NamedTuple):
    """What is to become of one file."""

    status: str
    text: str | None
    record: InstalledFile | None  # what is known of it then
    reasons: tuple[str, ...] = ()


class Changes:
    """What is going to change: texts of files, and the record of what is ours in them. In memory until `carry_out`."""

    def __init__(self) -> None:
        self.known = load_records()
        self.records = dict(self.known)  # as they are to be
        self.files: dict[Path, PlannedFile] = {}
        self.backups: dict[str, str] = {}
        self.outcomes: list[FileOutcome] = []

    def plan(self, host: str, target: HostFile, place: InstallPlace, force: bool = False) -> None:
        """Plans one file for a host; whatever is wrong with it is its outcome."""
        path, backup, diff = target.path, "", ""
        record = self.records.get(str(path), InstalledFile())
        part = target.part or record.part
        try:
            file = self.files.get(path) or _read_file(path)
            if target.text is not None or record.whole:
                step = _plan_whole(host, target, record, file.text)
            else:
                step = self.plan_entries(host, target, record, file.text, place, force)
                touched = file.text is not None and not record.is_untouched(file.text)
                if touched and step.text != file.text:
                    backup = self.back_up(path, file.text or "")
            diff = difference(path, file.text, step.text)
            self.files[path] = file._replace(text=step.text)
        except BethinkError as error:
            step = FilePlan("failed", None, record if record.hosts else None, (_explain(error),))
        self.records.pop(str(path), None)
        if step.record:
            self.records[str(path)] = step.record
        outcome = FileOutcome(host, part, path, step.status, step.reasons, diff, backup)
        self.outcomes.append(outcome)

    def plan_entries(
        self,
        host: str,
        target: HostFile,
        record: InstalledFile,
        was: str | None,
        place: InstallPlace,
        force: bool,
    ) -> FilePlan:
        """A file in which others' entries stand, too. One that nobody touched is made anew from what it held before."""
        path, toml, wanted = target.path, is_toml(target.path), target.entries
        if was is None and not wanted:
            return FilePlan("unchanged", None, None, (f"{path} is no longer there.",))
        untouched, base, text = self.find_base(host, target, record, was, place)
        if not wanted:
            return _plan_return(was, base, untouched)
        start = target.start if text is None else text
        original = self.read_original(record) if record.hosts else None
        edited = put_entries(start, wanted, host, toml, force, original)
        why = why_ignored(target, edited.text, AGENTS[host])
        reasons = (*edited.kept, why) if why else edited.kept
        if edited.text == base:
            return FilePlan("kept" if edited.kept else "unchanged", was, None, reasons)
        backup = None if base is None else self.back_up(path, base)
        fresh = _make_record(record._replace(original=backup), host, target, was, edited.text)
        return FilePlan(_name_change(was, edited.text), edited.text, fresh, reasons)

    def find_base(
        self,
        host: str,
        target: HostFile,
        record: InstalledFile,
        was: str | None,
        place: InstallPlace,
    ) -> tuple[bool, str | None, str | None]:
        """Whether nobody touched a file since; what it holds without anything of ours, None if it need not be there; and what our
        entries are put into, which may hold some of them."""
        if not record.hosts or was is None:
            return False, was, was
        existed, before = record.original is not None, self.read_original(record)
        if record.is_untouched(was) and before is not None:
            given = before if existed else None
            return True, given, given
        toml, wanted = is_toml(target.path), {entry.place for entry in target.entries}
        every = agent(host).AGENT.list_entries(place._replace(allow_reads=True))
        leaving = [one for one in every if one.place not in wanted]
        base = take_entries(was, every, host, before or "", toml)
        text = take_entries(was, leaving, host, before or "", toml)
        return False, base if existed or not _is_blank(base) else None, text

    def read_original(self, record: InstalledFile) -> str | None:
        """What a file held before, '' where it was not there, None where that is not known any more."""
        if not record.original:
            return "" if record.original is None else None
        planned = self.backups.get(record.original)
        return textfile.read(backup_folder() / record.original) if planned is None else planned

    def back_up(self, path: Path, text: str) -> str:
        """Keeps what a file held, and returns the name of the backup."""
        name = f"{digest(str(path))[:8]}-{digest(text)[:16]}-{path.name.lstrip('.')[:80]}"
        self.backups[name] = text
        return name

    def carry_out(self) -> list[FileOutcome]:
        """Writes backups, the record, the files, and the record again. Returns what became of each file."""
        for name, text in self.backups.items():
            backup = backup_folder() / name
            textfile.write(backup, text, textfile.read(backup), 0o600)
        records = {**self.known, **self.records}
        _save_records(records)
        folders: set[str] = set()
        failed: dict[Path, str] = {}
        try:
            for path, file in self.files.items():
                try:
                    _write_file(file)
                    if str(path) in records and str(path) not in self.records:
                        folders.update(records.pop(str(path)).folders)
                except BethinkError as error:
                    failed[path] = _explain(error)
        finally:  # what is done is done, also if it is stopped here
            _save_records(records)
        for folder in sorted(folders, key=len, reverse=True):
            with suppress(OSError):  # somebody's file is in it
                Path(folder).rmdir()
        return [
            one._replace(status="failed", reasons=(failed[one.path],), diff="")
            if one.path in failed
            else one
            for one in self.outcomes
        ]


def _plan_whole(host: str, target: HostFile, record: InstalledFile, was: str | None) -> FilePlan:
    """A file that is ours from end to end."""
    path, wanted = target.path, target.text
    ours = was is None or record.is_untouched(was)
    if wanted is None:
        others = tuple(one for one in record.hosts if one != host)
        if others:
            still = f"{', '.join(others)} still needs {path}."
            return FilePlan("unchanged", was, record._replace(hosts=others), (still,))
        if ours:
            return FilePlan("unchanged" if was is None else "removed", None, None)
        # What the user made of it stays; a plugin that would go on calling Bethink is disarmed.
        rest, disarmed = PLUGIN_COMMAND.subn("const COMMAND = []", was or "")
        calls = ", and calls Bethink no more" if disarmed else ""
        kept = f"You changed {path}; it was kept{calls}."
        return FilePlan("cleaned" if disarmed else "kept", rest, None, (kept,))
    if not record.hosts and was is not None:
        kept = f"{path} is there already and is not ours; it was kept."
        return (
            FilePlan("unchanged", was, None)
            if was == wanted
            else FilePlan("kept", was, None, (kept,))
        )
    if not ours:
        kept = f"You changed {path}; it was kept. Remove it to get ours."
        return FilePlan("kept", was, record, (kept,))
    fresh = _make_record(record._replace(whole=True), host, target, was, wanted)
    return FilePlan(_name_change(was, wanted), wanted, fresh)


def _plan_return(was: str | None, text: str | None, untouched: bool) -> FilePlan:
    """A file in which nothing of ours stays."""
    back = "removed" if text is None else "restored" if untouched else "cleaned"
    return FilePlan("unchanged" if text == was else back, text, None)


def _make_record(
    record: InstalledFile, host: str, target: HostFile, was: str | None, text: str
) -> InstalledFile:
    hosts = tuple(dict.fromkeys((*record.hosts, host)))
    held = tuple(digest(one) for one in (was, text) if one is not None)
    missing = [str(one) for one in target.path.parents if not os.path.lexists(one)]
    folders = record.folders if was is not None else tuple(reversed(missing))
    return record._replace(hosts=hosts, part=target.part, after=held, folders=folders)


def _name_change(was: str | None, text: str) -> str:
    return "made" if was is None else "unchanged" if was == text else "changed"


def _read_file(path: Path) -> PlannedFile:
    """A file as it is. What is behind a link is written, and the link itself stays."""
    try:
        real = textfile.resolve(path)
        if real.is_file() and not real.stat().st_mode & 0o200:
            raise InvalidInput(
                f"{path} is read-only.",
                f"chmod u+w {path}, or let whatever made it add the entries.",
            )
    except (OSError, RuntimeError) as error:  # a circle of links, a folder that may not be entered
        raise BethinkError(
            f"{path} cannot be followed: {error}.", "Check the links and permissions on the way."
        ) from error
    text = textfile.read(real)
    return PlannedFile(real, text, text)


def _write_file(file: PlannedFile) -> None:
    """Replaces a file if it still holds what it was read as."""
    if file.text is None:
        textfile.remove(file.real)
    elif file.text != file.was and not textfile.write(file.real, file.text, file.was):
        wrong = f"{file.real} was changed by something else at the same moment."
        raise BethinkError(wrong, "Try again.")


def difference(path: Path, before: str | None, after: str | None) -> str:
    old, new = ((text or "").splitlines(keepends=True) for text in (before, after))
    was, now = (str(path) if text is not None else "/dev/null" for text in (before, after))
    lines = difflib.unified_diff(old, new, was, now, n=2)
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _explain(error: BethinkError) -> str:
    return f"{error.message} {error.hint}" if error.hint else error.message


def _is_blank(text: str) -> bool:
    """Whether a file says nothing: no text, or an object without comments and with no members but what it began with."""
    return "".join(text.replace("\ufeff", "").split()) in ("", "{}", "".join(VERSIONED.split()))


# Connecting


def install(
    hosts: Iterable[str],
    place: InstallPlace,
    parts: Sequence[str] = PARTS,
    force: bool = False,
    dry: bool = False,
) -> list[FileOutcome]:
    """Connects hosts: each file that changes, and each that need not. What is there of other parts is taken out."""
    with nullcontext() if dry else textfile.alone(data_directory()):
        changes = Changes()
        for host in hosts:
            about = agent(host).AGENT
            allowed = place._replace(allow_reads=place.allow_reads or allows_reads(host, place))
            wanted = about.list_files(allowed, parts)
            paths = {target.path for target in wanted}
            leaving = [one for one in _list_recorded(changes.known, host) if one.path not in paths]
            for target in (*leaving, *wanted):
                changes.plan(host, target, allowed, force)
        return changes.outcomes if dry else changes.carry_out()


def uninstall(
    hosts: Iterable[str], place: InstallPlace, force: bool = False, dry: bool = False
) -> list[FileOutcome]:
    """Gives the files of these hosts back; with `force` also takes out entries that no record knows."""
    with nullcontext() if dry else textfile.alone(data_directory()):
        changes = Changes()
        for host in hosts:
            for target in _list_recorded(changes.known, host):
                changes.plan(host, target, place)
            for target in agent(host).AGENT.list_files(place) if force else ():
                if target.entries and str(target.path) not in changes.known:
                    changes.records[str(target.path)] = InstalledFile((host,), original="")
                    changes.plan(host, HostFile(target.path, part=target.part), place)
        outcomes = changes.outcomes if dry else changes.carry_out()
    # Of a file that several hosts shared, what became of it in the end.
    last = {one.path: one for one in reversed(outcomes)}
    return [one for one in reversed(last.values()) if not force or one.status != "unchanged"]


def _list_recorded(records: Mapping[str, InstalledFile], host: str) -> list[HostFile]:
    return [
        HostFile(Path(path), part=one.part) for path, one in records.items() if host in one.hosts
    ]
