"""Connecting agents: which files each of them reads, what belongs into these, and how it is put there and taken out again.

`agents.toml` says where an agent keeps what, and in which words it starts Bethink. Agents are often started
where PATH is not the shell's, so they get an absolute path. A link such as `~/.local/bin/bethink` is kept as it is: it survives an
upgrade, and what it points to may not.

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
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

from bethink import skills
from bethink.config import data_directory
from bethink.errors import BethinkError, InvalidInput
from bethink.hosts.base import HostFolder, load_agents
from bethink.hosts.edit import (
    HostEntry,
    parse,
    put_entries,
    take_entries,
)
from bethink.text import textfile

NAME = "bethink"
PARTS = ("mcp", "hooks", "skills")
# Where programs live that are gone after a while: those of `uvx` and `pipx run`.
PASSING = ("/uv/archive-v", "/uv/builds-v", "/uv/environments-v", "/pipx/.cache/")
# By which opencode's plugin starts Bethink, unless it is disarmed already.
PLUGIN_COMMAND = re.compile(r"^const COMMAND = (?!\[\]).*$", re.MULTILINE)


# What each agent needs


AGENTS = load_agents()


class InstallPlace(NamedTuple):
    """Whose agents are connected, and with what command."""

    home: Path
    environment: Mapping[str, str]
    words: tuple[str, ...] = ()  # that start Bethink
    warm: bool = False  # whether a prompt is answered by the MCP server instead of a new process
    allow_reads: bool = False  # whether the agent need not ask before tools that only read

    def find(self, folder: HostFolder) -> Path:
        return folder.find(self.environment, self.home)

    def hooks_file(self, host: str) -> Path:
        return self.find(AGENTS[host].folder) / AGENTS[host].hooks


class HostFile(NamedTuple):
    """One file that a host reads, and what belongs into it: entries, or the whole text. With neither, nothing of ours does."""

    path: Path
    part: str = ""  # what it is for; empty for several parts
    entries: tuple[HostEntry, ...] = ()
    text: str | None = None


def fill(template: Mapping[str, Any], words: Sequence[str], name: str = "") -> dict[str, Any]:
    """How an agent starts a command, in its own words."""
    values = {
        "$program": words[0],
        "$args": list(words[1:]),
        "$words": list(words),
        "$line": shlex.join(words),
        "$name": name,
    }
    return {key: values.get(str(value), value) for key, value in template.items()}


def make_hook(host: str, place: InstallPlace, event: str) -> dict[str, Any]:
    """An item of an agent's list for an event. With `warm`, Claude Code asks the MCP server that runs anyway, and never both: they run
    at the same time, so neither would know what the other gave."""
    about = AGENTS[host]
    template = about.warm if event == "prompt" and place.warm and about.warm else about.hook
    hook = fill(template, hook_words(host, place, event), f"bethink-{event}")
    hook |= about.last if event == "session-end" else {}
    return {"hooks": [hook]} if about.grouped else hook


def hook_words(host: str, place: InstallPlace, event: str) -> list[str]:
    return [*place.words, "hook", event, "--host", host]


def list_entries(host: str, place: InstallPlace) -> list[HostEntry]:
    """What belongs into an agent's files."""
    about = AGENTS[host]
    server = fill(about.server, [*place.words, "mcp"])
    entries = [HostEntry("member", tuple(about.server_path), server)]
    for name, event in about.events.items():
        entries.append(HostEntry("hook", ("hooks", name), make_hook(host, place, event)))
    rules = about.reads if place.allow_reads else ()
    return [*entries, *(HostEntry("item", ("permissions", "allow"), rule) for rule in rules)]


def list_files(host: str, place: InstallPlace, parts: Sequence[str] = PARTS) -> list[HostFile]:
    """The files of these parts, no two of them the same one."""
    about = AGENTS[host]
    above = place.find(about.server_folder or about.folder)
    there = [name for name in about.servers if os.path.lexists(above / name)]
    servers, hooks = above / (*there, about.servers[-1])[0], place.hooks_file(host)
    files: dict[Path, HostFile] = {}
    for entry in list_entries(host, place):
        part = "hooks" if entry.kind == "hook" else "mcp"
        path = servers if entry.kind == "member" else hooks
        if part in parts:
            known = files.get(path, HostFile(path, part))
            both = part if known.part == part else ""
            files[path] = HostFile(path, both, (*known.entries, entry))
    if not about.events and "hooks" in parts:
        files[hooks] = HostFile(hooks, "hooks", text=skills.opencode_plugin(place.words))
    for name, text in skills.render(host).items() if "skills" in parts else ():
        path = place.find(about.skills) / name
        files[path] = HostFile(path, "skills", text=text)
    return list(files.values())


def is_here(host: str, place: InstallPlace) -> bool:
    """Whether a host is on this machine: its folder, or its program."""
    there = os.path.isdir(place.find(AGENTS[host].folder))  # noqa: PTH112  (false, not an error, below an unreadable folder)
    program = shutil.which(AGENTS[host].program, path=place.environment.get("PATH"))
    return there or program is not None


def read_settings(path: Path) -> dict[str, Any]:
    """The settings in a file of a host; nothing where there are none, or none that can be understood."""
    try:
        found = parse(textfile.read(path) or "", is_toml(path))
    except BethinkError:
        return {}
    return found if isinstance(found, dict) else {}


def allows_reads(host: str, place: InstallPlace) -> bool:
    """Whether a host was told not to ask before a tool that only reads."""
    rules = read_settings(place.hooks_file(host)).get("permissions")
    allowed = rules.get("allow") if isinstance(rules, dict) else ()
    reads = AGENTS[host].reads
    return bool(reads) and {*reads} <= {*map(str, allowed or ())}


def find_plugin(host: str, place: InstallPlace) -> str:
    """The name of our plugin, where an agent's settings switch it on: it does what hooks, server and skills do."""
    about = AGENTS[host]
    settings = read_settings(place.find(about.folder) / about.plugins) if about.plugins else {}
    plugins = settings.get("enabledPlugins", settings.get("plugins"))  # the latter in TOML
    for name, on in plugins.items() if isinstance(plugins, dict) else ():
        if name.partition("@")[0] == NAME and (on.get("enabled") if isinstance(on, dict) else on):
            return str(name)
    return ""


def find_command() -> tuple[str, ...]:
    """The words that start this very program again: as it was called, from beside its Python, or from PATH."""
    called = sys.argv[0] if sys.argv else ""
    folders = [str(Path(sys.executable).parent), *os.get_exec_path()]
    found = [shutil.which(NAME, path=folder) for folder in folders]
    if Path(called).name == NAME:
        found.insert(0, shutil.which(called))
    for program in filter(None, found):
        if not is_passing(program):
            return (str(Path(program).absolute()),)
    # -P: a folder of that name in the project that a host works in is not its program.
    return (sys.executable, "-P", "-m", NAME)


def is_passing(program: str) -> bool:
    """Whether a program is in a place that is cleared now and then."""
    return any(part in program for part in PASSING)


def is_toml(path: Path) -> bool:
    return path.suffix == ".toml"


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
        rows = json.loads(text)["files"] if text else {}
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


class FileOutcome(NamedTuple):
    """What became of one file."""

    host: str
    part: str  # mcp, hooks, skills; empty for several at once
    path: Path
    status: str  # made, changed, unchanged, kept; restored, cleaned, removed; failed
    reasons: tuple[str, ...] = ()
    diff: str = ""
    backup: str = ""


class PlannedFile(NamedTuple):
    real: Path  # behind links, which stay
    was: str | None  # what it holds; None where it is not there
    text: str | None  # what it is to hold


class FilePlan(NamedTuple):
    """What is to become of one file."""

    text: str | None
    record: InstalledFile | None = None  # what is known of it then
    reasons: tuple[str, ...] = ()
    kept: bool = False  # whether something was in the way

    def name_status(self, was: str | None, untouched: bool) -> str:
        if self.text == was:
            return "kept" if self.kept else "unchanged"
        if was is None or self.text is None:
            return "made" if was is None else "removed"
        return "changed" if self.record else "restored" if untouched else "cleaned"


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
        path, record = target.path, self.records.get(str(target.path))
        part = target.part or (record.part if record else "")
        try:
            file = self.files.get(path) or _read_file(path)
            untouched = record is not None and record.is_untouched(file.text)
            if target.text is not None or (record and record.whole):
                step, backup = _plan_whole(host, target, record, file), ""
            else:
                step = self.plan_entries(host, target, record, file, place, force)
                changed = step.text != file.text and not untouched
                backup = (self.back_up(path, file.text) if changed else "") or ""
            if step.text != file.text:
                _refuse_read_only(path, file.real)
            status = step.name_status(file.text, untouched)
            diff = render_difference(path, file.text, step.text)
            self.files[path] = file._replace(text=step.text)
            outcome = FileOutcome(host, part, path, status, step.reasons, diff, backup)
            record = step.record
        except BethinkError as error:
            outcome = FileOutcome(host, part, path, "failed", (_explain(error),))
        self.records.pop(str(path), None)
        if record:
            self.records[str(path)] = record
        self.outcomes.append(outcome)

    def plan_entries(
        self,
        host: str,
        target: HostFile,
        record: InstalledFile | None,
        file: PlannedFile,
        place: InstallPlace,
        force: bool,
    ) -> FilePlan:
        """A file in which others' entries stand, too. It is brought up to date where it stands; where nothing of ours is to stay and
        nobody touched it, it gets its old bytes back."""
        path, was = target.path, file.text
        record = None if was is None else record
        original = _read_original(record)
        touched = record is not None and (original is None or not record.is_untouched(was))
        base = _take_leaving(host, target, was, original, place) if record else was
        if not target.entries:
            return _give_back(record, None if touched else original, base)
        start = base or (AGENTS[host].start if target.part == "hooks" else "")
        edited = put_entries(start, target.entries, host, is_toml(path), force)
        reasons = (*edited.kept, *why_ignored(host, path, edited.text))
        if record is None and edited.text == was:
            return FilePlan(was, None, reasons, bool(edited.kept))
        known = record or InstalledFile(original=self.back_up(path, was))
        fresh = _make_record(known, host, target, file, edited.text)
        # Where somebody touched it, the backup is not what is to be given back.
        fresh = fresh._replace(after=() if touched else fresh.after)
        return FilePlan(edited.text, fresh, reasons, bool(edited.kept))

    def back_up(self, path: Path, text: str | None) -> str | None:
        """Keeps what a file held, and returns the name of the backup; None where there was no file."""
        if text is None:
            return None
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
        failed: dict[Path, dict[str, Any]] = {}
        try:
            for path, file in self.files.items():
                try:
                    _write_file(file)
                    if str(path) in records and str(path) not in self.records:
                        folders.update(records.pop(str(path)).folders)
                except BethinkError as error:
                    failed[path] = {"status": "failed", "reasons": (_explain(error),), "diff": ""}
        finally:  # what is done is done, also if it is stopped here
            _save_records(records)
        for folder in sorted(folders, key=len, reverse=True):
            with suppress(OSError):  # somebody's file is in it
                Path(folder).rmdir()
        return [one._replace(**failed.get(one.path, {})) for one in self.outcomes]


def _read_original(record: InstalledFile | None) -> str | None:
    """What a file held before, '' where it was not there, None where that is not known."""
    if record and record.original:
        return textfile.read(backup_folder() / record.original)
    return "" if record and record.original is None else None


def _take_leaving(
    host: str, target: HostFile, text: str | None, original: str | None, place: InstallPlace
) -> str:
    """The text without those of our entries that are not wanted any more."""
    wanted = {entry.place for entry in target.entries}
    every = list_entries(host, place._replace(allow_reads=True))
    leaving = [entry for entry in every if entry.place not in wanted]
    return take_entries(text or "", leaving, host, original or "", is_toml(target.path))


def _give_back(record: InstalledFile | None, original: str | None, rest: str | None) -> FilePlan:
    """A file in which nothing of ours stays: its old bytes where nobody touched it, or else the rest. One that was made for us goes, if
    nothing else is in it."""
    made = record is None or record.original is None
    text = rest if original is None else original
    return FilePlan(None if made and _is_blank(text or "") else text)


def _plan_whole(
    host: str, target: HostFile, record: InstalledFile | None, file: PlannedFile
) -> FilePlan:
    """A file that is ours from end to end, unless somebody else put it there or changed it."""
    path, was, wanted = target.path, file.text, target.text
    ours = was is None or (record is not None and record.is_untouched(was))
    others = tuple(one for one in record.hosts if one != host) if record else ()
    if wanted is None and record and others:
        still = f"{', '.join(others)} still needs {path}."
        return FilePlan(was, record._replace(hosts=others), (still,))
    if ours and wanted is not None:
        known = record or InstalledFile(whole=True)
        return FilePlan(wanted, _make_record(known, host, target, file, wanted))
    if ours or (was == wanted and not record):
        return FilePlan(wanted)
    kept = f"{path} is not as `install` wrote it; it was kept."
    if wanted is not None:
        return FilePlan(was, record, (f"{kept} Remove it to get ours.",), kept=True)
    # A plugin that would go on calling Bethink is disarmed.
    rest = PLUGIN_COMMAND.sub("const COMMAND = []", was or "")
    return FilePlan(rest, None, (kept,), kept=True)


def _make_record(
    record: InstalledFile, host: str, target: HostFile, file: PlannedFile, text: str
) -> InstalledFile:
    held = (file.was, file.text, text)
    missing = [str(one) for one in target.path.parents if not os.path.lexists(one)]
    return record._replace(
        hosts=tuple(dict.fromkeys((*record.hosts, host))),
        part=target.part,
        after=tuple(dict.fromkeys(digest(one) for one in held if one is not None)),
        folders=record.folders if file.text is not None else tuple(reversed(missing)),
    )


def _read_file(path: Path) -> PlannedFile:
    """A file as it is. What is behind a link is written, and the link itself stays."""
    try:
        real = textfile.resolve(path)
    except (OSError, RuntimeError) as error:  # a circle of links, a folder that may not be entered
        raise BethinkError(
            f"{path} cannot be followed: {error}.", "Check the links and permissions on the way."
        ) from error
    text = textfile.read(real)
    return PlannedFile(real, text, text)


def _refuse_read_only(path: Path, real: Path) -> None:
    if real.is_file() and not real.stat().st_mode & 0o200:
        raise InvalidInput(
            f"{path} is read-only.",
            f"chmod u+w {path}, or let whatever made it add the entries.",
        )


def _write_file(file: PlannedFile) -> None:
    """Replaces a file if it still holds what it was read as."""
    if file.text is None:
        textfile.remove(file.real)
    elif file.text != file.was and not textfile.write(file.real, file.text, file.was):
        wrong = f"{file.real} was changed by something else at the same moment."
        raise BethinkError(wrong, "Try again.")


def render_difference(path: Path, before: str | None, after: str | None) -> str:
    old, new = ((text or "").splitlines() for text in (before, after))
    was, now = (str(path) if text is not None else "/dev/null" for text in (before, after))
    return "\n".join(difflib.unified_diff(old, new, was, now, n=2, lineterm=""))


def why_ignored(host: str, path: Path, text: str) -> list[str]:
    """Why a host ignores the whole file although entries can be found in it; nothing if it does not."""
    try:
        if path.name in AGENTS[host].strict and text.strip():
            json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f" in line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        reads = f"it reads no comments and no trailing commas{where}"
        return [f"{AGENTS[host].title} ignores {path}: {reads}."]
    return []


def _explain(error: BethinkError) -> str:
    return f"{error.message} {error.hint}" if error.hint else error.message


def _is_blank(text: str) -> bool:
    """Whether a file says nothing: no text, or an object without comments and with no members but what it began with."""
    return "".join(text.split()) in ("", "{}", '{"version":1}')


# Doing it


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
            allowed = place._replace(allow_reads=place.allow_reads or allows_reads(host, place))
            wanted = list_files(host, allowed, parts)
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
            for target in list_files(host, place) if force else ():
                if target.entries and str(target.path) not in changes.known:
                    changes.records[str(target.path)] = InstalledFile((host,), original="")
                    changes.plan(host, HostFile(target.path, target.part), place)
        outcomes = changes.outcomes if dry else changes.carry_out()
    # Of a file that several hosts shared, what became of it in the end.
    last = {one.path: one for one in reversed(outcomes)}
    return [one for one in reversed(last.values()) if not force or one.status != "unchanged"]


def _list_recorded(records: Mapping[str, InstalledFile], host: str) -> list[HostFile]:
    return [HostFile(Path(path), one.part) for path, one in records.items() if host in one.hosts]
