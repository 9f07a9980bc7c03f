"""Connecting agents: the files that each reads, our content for them, and how it is added and removed.

An agent's declaration names its files and how it starts Bethink. Agents are often started where PATH is not the shell's, so they get an
absolute path. A link such as `~/.local/bin/bethink` is kept as it is: it survives an upgrade, and its target may not.

`install.json` in the data directory records the content of every file before our first change (a backup) and digests of the content around
the last change. It is written before a file is changed and after one was restored, so nothing of ours is ever in a file that is not
recorded. If one file fails it stays as it was, and the others go on. `uninstall` restores the exact bytes if the file was not changed
since; otherwise it removes our entries and nothing else. Nothing is printed here.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import NamedTuple

from bethink import agents, plugins, skills, system
from bethink.agents.agent import TOOL_EVENTS, Agent, HookDialect, InstallFiles, find_folder
from bethink.agents.edit import HostEntry, parse, put_entries, take_entries
from bethink.app.mcp.tools import TOOLS
from bethink.config import data_directory
from bethink.errors import BethinkError, InvalidInput
from bethink.model import NOTHING, Json, Values
from bethink.text import textfile

PROGRAM = "bethink"
_PARTS = ("mcp", "hooks", "skills")
# Where programs live that are gone after a while: those of `uvx` and `pipx run`.
_PASSING = ("/uv/archive-v", "/uv/builds-v", "/uv/environments-v", "/pipx/.cache/")


# What each agent needs


class Connectable(NamedTuple):
    """An agent that can be connected."""

    agent: Agent
    hooks: HookDialect
    files: InstallFiles


def find_connectable(host: str) -> Connectable:
    """Return an agent with the files that connect it."""
    agent = agents.find(host)
    if agent.hooks is None or agent.install is None:
        raise InvalidInput(f"{agent.title} cannot be connected.", "bethink install --help")
    return Connectable(agent, agent.hooks, agent.install)


def list_connectable() -> dict[str, Agent]:
    """Return the agents that can be connected, by name, in the order of registration."""
    return {agent.name: agent for agent in plugins.AGENTS.all() if agent.install and agent.hooks}


class InstallPlace(NamedTuple):
    """The user's home and environment, and the command that agents start."""

    home: Path
    environment: Mapping[str, str]
    words: tuple[str, ...] = ()  # that start Bethink
    warm: bool = False  # whether a prompt is answered by the MCP server instead of a new process
    # Whether the agent may read memory and store notes without asking; None leaves its rules as they are.
    allow: bool | None = None
    tool_hooks: bool = True  # whether hooks run at tool calls

    def find(self, folder: str) -> Path:
        return find_folder(folder, self.environment, self.home)

    def hooks_file(self, host: str) -> Path:
        agent, _, files = find_connectable(host)
        return self.find(files.hooks_folder or agent.folder) / files.hooks


class HostFile(NamedTuple):
    """A file that a host reads, and our content: entries, or the whole text; with neither, none."""

    path: Path
    part: str = ""  # what it is for; empty for several parts
    entries: tuple[HostEntry, ...] = ()
    text: str | None = None


def fill(template: Values, words: Sequence[str], name: str = "") -> Json:
    """Return a template with the words of a command filled in."""
    values = {"$program": words[0], "$args": list(words[1:]), "$words": list(words)}
    values |= {"$line": system.quote(words), "$name": name}
    values |= {"$always": f"{system.quote(words)} || true"}
    values |= {"$powershell": system.quote_powershell(words)}
    values |= {"$powershell_always": f"{system.quote_powershell(words)}; exit 0"}
    return {key: values.get(str(value), value) for key, value in template.items()}


def make_hook(host: str, place: InstallPlace, event: str) -> Json:
    """Return an item of an agent's list for an event.

    With `warm`, Claude Code asks the running MCP server instead of a command. Never both: they run at the same time, so neither would know
    what the other recalled.
    """
    files = find_connectable(host).files
    template = files.warm if event == "prompt" and place.warm and files.warm else files.hook
    words = hook_words(host, place, event)
    hook = fill(template, words, f"bethink-{event}")
    hook |= files.last if event == "session-end" else {}
    hook |= fill(files.before, words) if event == "tool-before" else {}
    matcher = {"matcher": files.matchers[event]} if event in files.matchers else {}
    return {**matcher, "hooks": [hook]} if files.grouped else hook


def hook_words(host: str, place: InstallPlace, event: str) -> list[str]:
    return [*place.words, "hook", event, "--host", host]


def list_entries(host: str, place: InstallPlace) -> list[HostEntry]:
    """Return the entries that belong in an agent's files."""
    _, hooks, files = find_connectable(host)
    server = fill(files.server, [*place.words, "mcp"])
    server |= {name: [*files.places] for name, value in files.server.items() if value == "$places"}
    entries = [HostEntry("server", tuple(files.server_path), server)]
    for name, event in hooks.events.items():
        if place.tool_hooks or event not in TOOL_EVENTS:
            hook = make_hook(host, place, event)
            entries.append(HostEntry("hook", (*files.hooks_path, name), hook))
    return [*entries, *(list_rules(host) if place.allow else ())]


def list_allowed() -> list[str]:
    """Return the names of the tools that may run without asking: those that read, and those that only add."""
    return [name for name, tool in TOOLS.items() if tool.is_harmless]


def list_rules(host: str) -> list[HostEntry]:
    """Return the entries that allow these tools in an agent's settings."""
    about = find_connectable(host).files.permission
    if about is None or about.text:
        return []
    path = tuple(about.path)
    rules = [*(about.rule.format(tool=name) for name in list_allowed()), *about.others]
    if about.value:
        return [HostEntry("rule", (*path, rule), about.value) for rule in rules]
    return [HostEntry("item", path, rule) for rule in rules]


def find_rules_file(host: str, place: InstallPlace) -> Path | None:
    """Return the file with an agent's permissions, None if it has none or has to make it first."""
    agent, _, files = find_connectable(host)
    if files.permission is None:
        return None
    if not files.permission.file:
        return find_server_file(host, place)
    path = place.find(agent.folder) / files.permission.file
    return path if os.path.lexists(path) or not files.permission.optional else None


def list_files(host: str, place: InstallPlace, parts: Sequence[str] = _PARTS) -> list[HostFile]:
    """The files of these parts, no two of them the same one."""
    about = find_connectable(host).files
    hooks, servers = place.hooks_file(host), find_server_file(host, place)
    rules = find_rules_file(host, place)
    paths = {"server": servers, "hook": hooks}
    files: dict[Path, HostFile] = {}
    for entry in list_entries(host, place):
        part = "hooks" if entry.kind == "hook" else "mcp"
        path = paths.get(entry.kind, rules)
        if part in parts and path:
            known = files.get(path, HostFile(path, part))
            both = part if known.part == part else ""
            files[path] = HostFile(path, both, (*known.entries, entry))
    if about.script and "hooks" in parts:
        files[hooks] = HostFile(
            hooks, "hooks", text=about.script.render(place.words, place.tool_hooks)
        )
    if rules and about.permission and about.permission.text and place.allow and "mcp" in parts:
        text = about.permission.text.format(tools=json.dumps(list_allowed()))
        files[rules] = HostFile(rules, "mcp", text=text)
    for name, text in skills.render(about.skill_fields).items() if "skills" in parts else ():
        path = place.find(about.skills) / name
        files[path] = HostFile(path, "skills", text=text)
    return list(files.values())


def find_server_file(host: str, place: InstallPlace) -> Path:
    """Return the file with an agent's MCP servers: the first that exists, else the last."""
    agent, _, about = find_connectable(host)
    above = place.find(about.server_folder or agent.folder)
    there = (name for name in about.servers if os.path.lexists(above / name))
    return above / next(there, about.servers[-1])


def is_here(host: str, place: InstallPlace) -> bool:
    """Return True if the agent's folder or program is on this machine."""
    agent = agents.find(host)
    there = os.path.isdir(place.find(agent.folder))  # noqa: PTH112  (false, not an error, below an unreadable folder)
    program = shutil.which(agent.program, path=place.environment.get("PATH"))
    return there or program is not None


def read_settings(path: Path) -> Json:
    """Return the settings in an agent's file; nothing if there are none or they cannot be parsed."""
    try:
        found = parse(textfile.read(path) or "", is_toml(path))
    except BethinkError:
        return {}
    return found if isinstance(found, dict) else {}


def find_permission(host: str) -> bool | None:
    """Return the recorded choice about using our tools without asking; None if there is none yet."""
    chosen = [one.allow for one in load_records().values() if host in one.hosts]
    return next((one for one in chosen if one is not None), None)


def has_tool_hooks(host: str, place: InstallPlace) -> bool:
    """Return False if hooks at tool calls were declined when the agent was connected."""
    record = load_records().get(str(place.hooks_file(host)))
    return record is None or record.tool_hooks


def find_plugin(host: str, place: InstallPlace) -> str:
    """Return the name of our plugin if the agent's settings enable it; it brings hooks, server and skills."""
    agent, _, files = find_connectable(host)
    settings = read_settings(place.find(agent.folder) / files.plugins) if files.plugins else {}
    plugins = settings.get("enabledPlugins", settings.get("plugins"))  # the latter in TOML
    for name, on in plugins.items() if isinstance(plugins, dict) else ():
        if name.partition("@")[0] == PROGRAM and (
            on.get("enabled") if isinstance(on, dict) else on
        ):
            return str(name)
    return ""


def find_command() -> tuple[str, ...]:
    """Return the words that start this program: as it was called, from beside its Python, or from PATH."""
    called = shutil.which(sys.argv[0]) if system.name_program(sys.argv[0]) == PROGRAM else None
    folders = [str(Path(sys.executable).parent), *os.get_exec_path()]
    for program in (called, *(shutil.which(PROGRAM, path=folder) for folder in folders)):
        if program and not is_passing(program):
            return (str(Path(program).absolute()),)
    # -P: a folder of that name in the project that a host works in is not its program.
    return (sys.executable, "-P", "-m", PROGRAM)


def is_passing(program: str) -> bool:
    """Return True for a program in a place that is cleared now and then."""
    return any(part in system.unify(program) for part in _PASSING)


def is_toml(path: Path) -> bool:
    return path.suffix == ".toml"


# The record


class InstalledFile(NamedTuple):
    """The record of one file."""

    hosts: Sequence[str] = ()  # that need it
    part: str = ""
    whole: bool = False  # whether it is ours from end to end
    original: str | None = None  # name of the backup of what it held before; None: it was not there
    after: Sequence[str] = ()  # digests of what it held before and after the last change
    folders: Sequence[str] = ()  # that were made for it, outermost first
    tool_hooks: bool = True  # False if hooks at tool calls were declined
    allow: bool | None = None  # whether our tools may run without asking; None: nobody chose

    def is_untouched(self, text: str | None) -> bool:
        """Return True if the file was not changed since. A failed write leaves it unchanged."""
        return text is not None and digest(text) in self.after

    def as_row(self) -> Json:
        """Return the fields to store; without default choices, so that older versions read it."""
        default = InstalledFile._field_defaults
        choices = ("tool_hooks", "allow")
        row = self._asdict().items()
        return {name: value for name, value in row if name not in choices or value != default[name]}


def record_file() -> Path:
    return data_directory() / "install.json"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def load_records() -> dict[str, InstalledFile]:
    """By path. A record that cannot be read is an error: without it, `uninstall` would have to guess."""
    text = textfile.read(record_file())
    try:
        rows = json.loads(text)["files"] if text else {}
        return {path: InstalledFile(**row) for path, row in rows.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BethinkError(
            f"The record of what was installed, {record_file()}, is damaged: {error}.",
            "Move it away; `bethink uninstall --force` then finds the entries by what they say.",
        ) from None


def backup_folder() -> Path:
    return data_directory() / "backups" / "agents"


def name_backup(path: Path, text: str) -> str:
    return f"{digest(str(path))[:8]}-{digest(text)[:16]}-{path.name.lstrip('.')[:80]}"


# One file


class FileOutcome(NamedTuple):
    """The outcome for one file."""

    host: str
    part: str  # mcp, hooks, skills; empty for several at once
    path: Path
    status: str  # made, changed, unchanged, kept; restored, cleaned, removed; failed
    reasons: tuple[str, ...] = ()
    diff: str = ""
    backup: str = ""


class FilePlan(NamedTuple):
    """The planned content of one file."""

    text: str | None  # what it is to hold; None: it goes
    record: InstalledFile | None = None  # what is known of it then
    reasons: tuple[str, ...] = ()
    kept: bool = False  # whether something was in the way

    def name_status(self, was: str | None, untouched: bool) -> str:
        if self.text == was:
            return "kept" if self.kept else "unchanged"
        if was is None or self.text is None:
            return "made" if was is None else "removed"
        return "changed" if self.record else "restored" if untouched else "cleaned"


class Installation:
    """The record and the files, changed one by one; in a dry run only as if."""

    def __init__(self, place: InstallPlace, force: bool, dry: bool) -> None:
        self.place, self.force, self.dry = place, force, dry
        self.records = load_records()
        self.texts: dict[Path, str | None] = {}  # what files would hold, in a dry run
        self.missing: set[Path] = set()  # folders that were not there when it began
        self.left: set[str] = set()  # folders that were made for files that are gone

    def settle(self, host: str, target: HostFile) -> FileOutcome:
        """Bring one file of a host up to date. Problems are part of its outcome."""
        path, record = target.path, self.records.get(str(target.path))
        part, backup = target.part or (record.part if record else ""), ""
        try:
            real = textfile.resolve(path)  # behind links, which stay
            was = self.texts[real] if real in self.texts else textfile.read(real)
            untouched = record is not None and record.is_untouched(was)
            whole = target.text is not None or (record is not None and record.whole)
            plan = (self.plan_whole if whole else self.plan_entries)(host, target, record, was)
            if plan.text != was:
                _refuse_read_only(path, real)
                backup = "" if whole or untouched or was is None else self.back_up(path, was)
            # Nothing is ever in a file that the record does not know.
            if plan.record:
                self.save(path, plan.record)
            self.write(real, was, plan.text)
            if record and not plan.record:
                self.left.update(record.folders)
                self.save(path, None)
        except BethinkError as error:
            return FileOutcome(host, part, path, "failed", (error.full_message,))
        status, diff = plan.name_status(was, untouched), render_difference(path, was, plan.text)
        return FileOutcome(host, part, path, status, plan.reasons, diff, backup)

    def plan_entries(
        self, host: str, target: HostFile, record: InstalledFile | None, was: str | None
    ) -> FilePlan:
        """Plan a file that also has foreign entries: update ours in place.

        If nothing of ours remains and the file was not changed since, restore its original bytes.
        """
        if record is None or was is None:
            base, original = was, None
            record = InstalledFile(original=None if was is None else name_backup(target.path, was))
        else:
            original = _read_original(record)
            base = self.take_leaving(host, target, was, original or "")
            original = original if record.is_untouched(was) else None
        if not target.entries:
            rest = base if original is None else original
            # One that was made for us goes, if nothing else is in it.
            return FilePlan(None if record.original is None and _is_blank(rest) else rest)
        start = base or (find_connectable(host).files.start if target.part == "hooks" else "")
        toml = is_toml(target.path)
        edited = put_entries(start, target.entries, host, toml, self.force)
        reasons = (*edited.kept, *why_ignored(host, target.path, edited.text))
        fresh = self.renew(record, host, target, was, edited.text)
        if record.hosts and original is None:
            fresh = fresh._replace(
                after=()
            )  # changed by others: the backup is not its former content
        ours = record.hosts or edited.text != was
        return FilePlan(edited.text, fresh if ours else None, reasons, bool(edited.kept))

    def take_leaving(self, host: str, target: HostFile, text: str, original: str) -> str:
        """The text without those of our entries that are not wanted any more."""
        wanted = {entry[:2] for entry in target.entries}  # what they are, and where
        settled = self.place.allow is not None
        every = list_entries(host, self.place._replace(allow=settled, tool_hooks=True))
        leaving = [entry for entry in every if entry[:2] not in wanted]
        return take_entries(text, leaving, host, original, is_toml(target.path))

    def plan_whole(
        self, host: str, target: HostFile, record: InstalledFile | None, was: str | None
    ) -> FilePlan:
        """Plan a file that is entirely ours, unless others created or changed it."""
        path, wanted = target.path, target.text
        ours = was is None or (record is not None and record.is_untouched(was))
        others = [one for one in record.hosts if one != host] if record else []
        if wanted is None and record and others:
            still = f"{', '.join(others)} still needs {path}."
            return FilePlan(was, record._replace(hosts=others), (still,))
        if ours and wanted is not None:
            known = record or InstalledFile(whole=True)
            return FilePlan(wanted, self.renew(known, host, target, was, wanted))
        if ours or (was == wanted and not record):
            return FilePlan(wanted)
        kept = f"{path} is not as `install` wrote it; it was kept."
        if wanted is not None:
            return FilePlan(was, record, (f"{kept} Remove it to get ours.",), kept=True)
        # A script that would go on calling Bethink is disarmed.
        script = find_connectable(host).files.script
        return FilePlan(script.disarm(was or "") if script else was, None, (kept,), True)

    def renew(
        self, record: InstalledFile, host: str, target: HostFile, was: str | None, text: str
    ) -> InstalledFile:
        """The record of a file that is about to hold a text."""
        self.missing |= {one for one in target.path.parents if not os.path.lexists(one)}
        missing = [str(one) for one in target.path.parents if one in self.missing]
        return record._replace(
            hosts=list(dict.fromkeys((*record.hosts, host))),
            part=target.part,
            after=[digest(one) for one in (was, text) if one is not None],
            folders=record.folders if was is not None else missing,
            tool_hooks=self.place.tool_hooks,
            allow=self.place.allow,
        )

    def back_up(self, path: Path, text: str) -> str:
        """Back up the content of a file, and return the name of the backup."""
        backup = backup_folder() / name_backup(path, text)
        if not self.dry:
            textfile.write(backup, text, textfile.read(backup), 0o600)
        return backup.name

    def save(self, path: Path, record: InstalledFile | None) -> None:
        self.records.pop(str(path), None)
        if record:
            self.records[str(path)] = record
        files = {name: one.as_row() for name, one in self.records.items()}
        # ASCII, so that paths with bytes that are no UTF-8 can be kept.
        text = json.dumps({"version": 3, "files": files}, indent=1)
        was = textfile.read(record_file())
        if not files and not self.dry:
            textfile.remove(record_file())
        elif text != was and not self.dry:
            textfile.write(record_file(), text, was, 0o600)

    def write(self, real: Path, was: str | None, text: str | None) -> None:
        """Replace a file if it did not change since it was read."""
        if self.dry:
            self.texts[real] = text
        elif text is None:
            textfile.remove(real)
        elif text != was and not textfile.write(real, text, was):
            wrong = f"{real} was changed by something else at the same moment."
            raise BethinkError(wrong, "Try again.")

    def list_recorded(self, host: str) -> list[HostFile]:
        known = self.records.items()
        return [HostFile(Path(path), one.part) for path, one in known if host in one.hosts]


def _read_original(record: InstalledFile) -> str | None:
    """Return the original text of a file, '' if there was none, None if unknown."""
    if record.original:
        return textfile.read(backup_folder() / record.original)
    return "" if record.original is None else None


def _refuse_read_only(path: Path, real: Path) -> None:
    if real.is_file() and not real.stat().st_mode & 0o200:
        hint = f"chmod u+w {path}, or let whatever made it add the entries."
        raise InvalidInput(f"{path} is read-only.", hint)


def render_difference(path: Path, before: str | None, after: str | None) -> str:
    old, new = ((text or "").splitlines() for text in (before, after))
    was, now = (str(path) if text is not None else "/dev/null" for text in (before, after))
    return "\n".join(difflib.unified_diff(old, new, was, now, n=2, lineterm=""))


def why_ignored(host: str, path: Path, text: str) -> list[str]:
    """Return the reasons why a host ignores the whole file, although it has our entries."""
    try:
        agent, _, files = find_connectable(host)
        if path.name in files.strict and text.strip():
            json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f" in line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        reads = f"it reads no comments and no trailing commas{where}"
        return [f"{agent.title} ignores {path}: {reads}."]
    return []


def _is_blank(text: str | None) -> bool:
    """Return True for a file without text, or with an object that only has its initial members."""
    return "".join((text or "").split()) in ("", "{}", '{"version":1}')


# All files of some hosts


def install(
    hosts: Iterable[str],
    place: InstallPlace,
    parts: Sequence[str] = _PARTS,
    force: bool = False,
    dry: bool = False,
    allowed: Mapping[str, bool] = NOTHING,
) -> list[FileOutcome]:
    """Connect hosts and return the outcome for each file. Entries of parts not listed are removed.

    `allowed` says which hosts may use our tools without asking; for the others the recorded choice holds.
    """
    outcomes = []
    with _working(place, force, dry) as work:
        for host in hosts:
            work.place = place._replace(allow=allowed.get(host, find_permission(host)))
            wanted = list_files(host, work.place, parts)
            paths = {target.path for target in wanted}
            leaving = [one for one in work.list_recorded(host) if one.path not in paths]
            outcomes += [work.settle(host, target) for target in (*leaving, *wanted)]
    return outcomes


def uninstall(
    hosts: Iterable[str], place: InstallPlace, force: bool = False, dry: bool = False
) -> list[FileOutcome]:
    """Restore the files of these hosts; with `force`, also remove entries without a record."""
    outcomes = []
    with _working(place._replace(allow=False), False, dry) as work:
        known = {*work.records}
        for host in hosts:
            targets = work.list_recorded(host)
            for one in list_files(host, place._replace(allow=True)) if force else ():
                if one.entries and str(one.path) not in known:
                    work.records[str(one.path)] = InstalledFile((host,), original="")
                    targets.append(HostFile(one.path, one.part))
            outcomes += [work.settle(host, target) for target in targets]
    # Of a file that several hosts shared, what became of it in the end.
    last = {one.path: one for one in reversed(outcomes)}
    return [one for one in reversed(last.values()) if not force or one.status != "unchanged"]


@contextmanager
def _working(place: InstallPlace, force: bool, dry: bool) -> Iterator[Installation]:
    """Run an installation under a lock."""
    with nullcontext() if dry else textfile.alone(data_directory()):
        work = Installation(place, force, dry)
        yield work
        for folder in sorted(work.left, key=len, reverse=True):
            with suppress(OSError):  # a foreign file is in it
                Path(folder).rmdir()
