"""install and uninstall: brings a host's files to what it needs, one file at a time, and back to what they were.

`install.json` in the data directory records for every file what it held before (a backup), what it held right after, and which
entries are ours. The record is written before the files, so that nothing is ever in a file that it does not know. Whatever goes
wrong with one file leaves it as it was, and the others go on. `uninstall` gives back the very bytes where nobody changed the file
since; otherwise it takes out our entries and nothing else. Nothing is printed here.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from bethink.config import data_directory
from bethink.errors import BethinkError, InvalidInput
from bethink.hosts import AGENTS, agent
from bethink.hosts.edit import Key, put_entries, take_entries
from bethink.hosts.place import PARTS, VERSIONED, HostFile, InstallPlace, part_of, why_ignored
from bethink.text import textfile

WHOLE: Key = ("text", ())  # stands for a file that is ours from end to end
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


# The record


class InstalledFile(NamedTuple):
    """One file, and what of it is ours."""

    hosts: Mapping[str, tuple[Key, ...]]  # whose entries are in it
    existed: bool = False  # whether the file was there before
    folders: tuple[str, ...] = ()  # that were made for it, outermost first
    original: str = ""  # name of the backup of what it held before
    after: str = ""  # digest of what it held right after
    before: str = ""  # digest of what a file that is ours as a whole held: it still does if the writing failed

    def is_ours(self, text: str) -> bool:
        """Whether a file that is ours as a whole is as we left it."""
        return digest(text) in (self.after, self.before)


def record_file() -> Path:
    return data_directory() / "install.json"


def digest(text: str | None) -> str:
    return hashlib.sha256((text or "").encode("utf-8", "surrogateescape")).hexdigest()


def load_records() -> dict[str, InstalledFile]:
    """By path. A record that cannot be read is an error: without it, `uninstall` would have to guess."""
    text = textfile.read(record_file())
    try:
        files = json.loads(text)["files"] if text else {}
        return {name: _read_record(fields) for name, fields in files.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BethinkError(
            f"The record of what was installed, {record_file()}, is damaged: {error}.",
            "Move it away; `bethink uninstall --force` then finds the entries by what they say.",
        ) from None


def _read_record(fields: dict[str, Any]) -> InstalledFile:
    hosts = {
        host: tuple((kind, tuple(path)) for kind, path in keys)
        for host, keys in fields["hosts"].items()
    }
    fields.pop("root", None)  # of a time when the files of projects were written too
    return InstalledFile(**fields | {"hosts": hosts, "folders": tuple(fields["folders"])})


def _save_records(records: Mapping[str, InstalledFile]) -> None:
    if not records:
        textfile.remove(record_file())
        return
    files = {name: one._asdict() for name, one in records.items()}
    # ASCII, so that paths with bytes that are no UTF-8 can be kept.
    text = json.dumps({"version": 2, "files": files}, indent=1)
    textfile.write(record_file(), text, textfile.read(record_file()), 0o600)


def backup_folder() -> Path:
    return data_directory() / "backups" / "agents"


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BethinkError(
            f"{folder} cannot be made: {error.strerror or error}.",
            "Set BETHINK_HOME to a folder of yours.",
        ) from error


class Files:
    """The files of hosts, and the record of what is ours in them. With `dry` everything happens in memory only."""

    def __init__(self, dry: bool = False) -> None:
        self.dry = dry
        self.held: dict[Path, str | None] = {}  # what a dry run would have written
        self.stack = ExitStack()

    def __enter__(self) -> Self:
        if not self.dry:
            _make_folder(data_directory())
            self.stack.enter_context(textfile.alone(data_directory()))
        self.records = load_records()
        self.saved = dict(self.records)
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def read(self, path: Path) -> str | None:
        return self.held[path] if path in self.held else textfile.read(path)

    def write(self, path: Path, text: str | None, was: str | None) -> None:
        """Replaces a file if it still holds what it was read as; without a text removes it."""
        if self.dry:
            self.held[path] = text
        elif text is None:
            textfile.remove(path)
        elif not textfile.write(path, text, was):
            raise BethinkError(
                f"{path} was changed by something else at the same moment.", "Try again."
            )

    def note(self, path: Path, record: InstalledFile | None) -> None:
        """Changes the record, which `save` then writes: one write for many files."""
        if record is None or not record.hosts:
            self.records.pop(str(path), None)
        else:
            self.records[str(path)] = record

    def save(self) -> None:
        if not self.dry and self.records != self.saved:
            _save_records(self.records)
            self.saved = dict(self.records)

    def back_up(self, path: Path, text: str | None) -> str:
        """Keeps what a file held, for its owner alone, and returns the name of the backup."""
        if self.dry or text is None:
            return ""
        name = f"{digest(str(path))[:8]}-{digest(text)[:16]}-{path.name.lstrip('.')[:80]}"
        backup = backup_folder() / name
        if (there := textfile.read(backup)) != text:
            _make_folder(backup_folder())
            textfile.write(backup, text, there, 0o600)
        return name

    def original(self, record: InstalledFile | None) -> str | None:
        """What a file held before, '' if there was none, None where that is not known any more."""
        if record is None or not record.existed:
            return ""
        return textfile.read(backup_folder() / record.original) if record.original else None


# Changing files


def install(
    files: Files,
    hosts: Iterable[str],
    place: InstallPlace,
    parts: Sequence[str] = PARTS,
    force: bool = False,
) -> Iterator[FileOutcome]:
    """Connects hosts: each file that changes, and each that need not. What is there of other parts is taken out."""
    for host in hosts:
        allowed = place._replace(allow_reads=place.allow_reads or allows_reads(files, host))
        wanted = agent(host).AGENT.list_files(allowed, parts)
        paths = {str(target.path) for target in wanted}
        known = [name for name, one in files.records.items() if host in one.hosts]
        leaving = [HostFile(Path(name)) for name in known if name not in paths]
        changes = [FileChange(files, host, one, force) for one in (*leaving, *wanted)]
        yield from _carry_out(files, changes)


def allows_reads(files: Files, host: str) -> bool:
    """Whether a host was told not to ask before a tool that only reads."""
    known = (one.hosts.get(host, ()) for one in files.records.values())
    return any(kind == "item" for keys in known for kind, _ in keys)


def uninstall(files: Files, hosts: Sequence[str]) -> Iterator[FileOutcome]:
    """Gives the files of these hosts back."""
    for at, host in enumerate(hosts):
        ours = {name: one for name, one in files.records.items() if host in one.hosts}
        later = set(hosts[at + 1 :])
        changes = [FileChange(files, host, HostFile(Path(name))) for name in ours]
        for outcome in _carry_out(files, changes):
            if not later & ours[str(outcome.path)].hosts.keys():  # or its turn is yet to come
                yield outcome


def _carry_out(files: Files, changes: Sequence[FileChange]) -> Iterator[FileOutcome]:
    """Writes the record, then the files, then the record: a kill in between leaves nothing that the record does not know."""
    for change in changes:
        change.plan()
        files.note(change.path, change.meanwhile)
    files.save()
    folders: set[str] = set()
    try:
        for change in changes:
            known = files.records.get(str(change.path))
            try:
                if change.text != change.was:
                    files.write(change.file, change.text, change.was)
                if change.outcome.status != "failed":
                    files.note(change.path, change.record)
                if known and str(change.path) not in files.records:
                    folders.update(known.folders)
                yield change.outcome
            except BethinkError as error:
                reasons = (_explain(error),)
                yield change.outcome._replace(status="failed", reasons=reasons, diff="")
    finally:  # what is done is done, also if it is stopped here
        files.save()
    for folder in sorted(() if files.dry else folders, key=len, reverse=True):
        with suppress(OSError):  # somebody's file is in it
            Path(folder).rmdir()


class FileChange:
    """One file on its way from what it holds to what it should hold for a host. `plan` decides and writes nothing but backups."""

    outcome: FileOutcome
    text: str | None  # to be written; None removes the file
    record: InstalledFile | None  # what the record says then
    meanwhile: InstalledFile  # and until then

    def __init__(
        self,
        files: Files,
        host: str,
        target: HostFile,
        force: bool = False,
        known: InstalledFile | None = None,
    ) -> None:
        self.files, self.host, self.target, self.force = files, host, target, force
        self.path = self.file = target.path  # the latter behind links
        self.was: str | None = None
        self.known = known or files.records.get(str(target.path)) or InstalledFile({})
        self.mine = self.known.hosts.get(host, ())
        self.others = {one: keys for one, keys in self.known.hosts.items() if one != host}

    def plan(self) -> FileOutcome:
        try:
            self.file = follow(self.path)
            self.was = self.files.read(self.file)
            if self.target.text is not None:
                return self.plan_whole(self.target.text)
            if WHOLE in self.mine:
                return self.plan_removal()
            if self.was is None and not self.target.entries:
                return self.end("unchanged", None, None, f"{self.path} is no longer there.")
            return self.plan_entries()
        except BethinkError as error:
            return self.end("failed", self.was, self.known, _explain(error))

    def end(
        self,
        status: str,
        text: str | None,
        record: InstalledFile | None,
        *reasons: str,
        backup: str = "",
    ) -> FileOutcome:
        """Settles what becomes of the file: its text, and what the record says from then on. Until then it knows both what was ours
        and what will be."""
        wanted = [entry.key for entry in self.target.entries] or self.mine or [WHOLE]
        parts = parts_of(self.path, wanted)
        part = parts[0] if len(parts) == 1 else ""
        diff = difference(self.path, self.was, text)
        later = record or self.known
        keys = tuple(dict.fromkeys((*self.mine, *later.hosts.get(self.host, ()))))
        self.meanwhile = later._replace(hosts={**later.hosts, self.host: keys}) if keys else later
        self.text, self.record = text, record
        self.outcome = FileOutcome(self.host, part, self.path, status, reasons, diff, backup)
        return self.outcome

    def plan_whole(self, text: str) -> FileOutcome:
        was, known = self.was, self.known
        if was is not None and not known.hosts:
            if was == text:
                return self.end("unchanged", was, None)
            kept = f"{self.path} is there already and is not ours; it was kept."
            return self.end("kept", was, None, kept)
        if was is not None and not known.is_ours(was):
            kept = f"You changed {self.path}; it was kept. Remove it to get ours."
            return self.end("kept", was, known, kept)
        record = known._replace(
            hosts={**self.others, self.host: (WHOLE,)},
            folders=_missing_folders(self.file) if was is None else known.folders,
            after=digest(text),
            before="" if was is None else digest(was),
        )
        status = "made" if was is None else "unchanged" if was == text else "changed"
        return self.end(status, text, record)

    def plan_removal(self) -> FileOutcome:
        if self.others:
            still = f"{', '.join(self.others)} still needs {self.path}."
            return self.end("unchanged", self.was, self.known._replace(hosts=self.others), still)
        if self.was is None or self.known.is_ours(self.was):
            return self.end("removed" if self.was else "unchanged", None, None)
        # What the user made of it stays; a plugin that would go on calling Bethink is disarmed.
        rest, changed = PLUGIN_COMMAND.subn("const COMMAND = []", self.was)
        kept = f"You changed {self.path}; it was kept" + (
            ", and calls Bethink no more." if changed else "."
        )
        return self.end("cleaned" if rest != self.was else "kept", rest, None, kept)

    def plan_entries(self) -> FileOutcome:
        was, wanted, original = self.was, self.target.entries, self.files.original(self.known)
        shared = {key for keys in self.others.values() for key in keys if key[0] != "hook"}
        needed = shared | {entry.key for entry in wanted}
        going = [key for key in self.mine if key not in needed]
        text = self.target.start if was is None else was
        text = take_entries(text, going, self.host, original)
        edited = put_entries(text, wanted, self.host, self.mine, self.force)
        if self.known.hosts and not edited.keys and not self.others:
            return self.plan_return(edited.text, original)
        why = why_ignored(self.target, edited.text, AGENTS[self.host])
        reasons = (*edited.kept, why) if why else edited.kept
        if not edited.keys or (edited.text == was and set(edited.keys) == set(self.mine)):
            return self.end("kept" if edited.kept else "unchanged", was, self.known, *reasons)
        backup = self.files.back_up(self.path, was)
        hosts = {**self.others, self.host: edited.keys}
        record = self.find_origin(original, backup)
        record = record._replace(hosts=hosts, after=digest(edited.text))
        status = "made" if was is None else "unchanged" if edited.text == was else "changed"
        return self.end(status, edited.text, record, *reasons, backup=backup)

    def find_origin(self, original: str | None, backup: str) -> InstalledFile:
        """The record with what the file is to become again when nothing of ours is in it."""
        was, known = self.was, self.known
        if was is None:
            folders = _missing_folders(self.file)
            return known._replace(existed=False, folders=folders, original="")
        if not known.hosts:
            return known._replace(existed=True, original=backup)
        if known.after == digest(was):
            return known
        for host, keys in known.hosts.items():  # somebody edited it: what is theirs counts
            was = take_entries(was, keys, host, original)
        if not known.existed and _is_blank(was):
            return known
        return known._replace(existed=True, original=self.files.back_up(self.path, was))

    def plan_return(self, rest: str, original: str | None) -> FileOutcome:
        """Nothing of ours stays in the file: it becomes what it was, or is left without our entries."""
        untouched = self.known.after == digest(self.was)
        if not self.known.existed and (untouched or _is_blank(rest)):
            return self.end("removed", None, None)
        if untouched and original is not None:
            return self.end("restored", original, None)
        backup = self.files.back_up(self.path, self.was)
        status = "unchanged" if rest == self.was else "cleaned"
        return self.end(status, rest, None, backup=backup)


def follow(path: Path) -> Path:
    """The file behind a link, which is what is written: the link itself stays."""
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
    return real


def difference(path: Path, before: str | None, after: str | None) -> str:
    old, new = ((text or "").splitlines(keepends=True) for text in (before, after))
    was, now = (str(path) if text is not None else "/dev/null" for text in (before, after))
    lines = difflib.unified_diff(old, new, was, now, n=2)
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def parts_of(path: Path, keys: Iterable[Key]) -> list[str]:
    """What the entries in a file are for."""
    return list(dict.fromkeys(part_of(path, kind) for kind, _ in keys))


def _explain(error: BethinkError) -> str:
    return f"{error.message} {error.hint}" if error.hint else error.message


def _is_blank(text: str) -> bool:
    """Whether a file says nothing: no text, or an object without comments and with no members but what it began with."""
    return "".join(text.replace("\ufeff", "").split()) in ("", "{}", "".join(VERSIONED.split()))


def _missing_folders(file: Path) -> tuple[str, ...]:
    """The folders that have to be made for a file, outermost first."""
    missing = [str(one) for one in file.parents if not os.path.lexists(one)]
    return tuple(reversed(missing))


# Entries that the record does not know


def remove_strays(files: Files, hosts: Iterable[str], place: InstallPlace) -> Iterator[FileOutcome]:
    """Takes out entries of Bethink that `install` did not make, or that a lost record knew."""
    for host in hosts:
        for target in agent(host).AGENT.list_files(place, ("mcp", "hooks")):
            if target.entries and str(target.path) not in files.records:
                keys = tuple(entry.key for entry in target.entries)
                known = InstalledFile({host: keys}, existed=True)
                change = FileChange(files, host, HostFile(target.path), known=known)
                if change.plan().status == "cleaned":
                    yield from _carry_out(files, [change])
