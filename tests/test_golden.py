"""What every command prints, word for word, on one fixed database: a change of the inside that changes an answer shows here.

Each group of command lines in `golden/commands.txt` runs on a database of its own, made by the same commands every time, and is compared with
`golden/<group>.json`. The clock stands still within a command and moves a minute between two. What differs from run to run (ids,
paths, sizes, speeds, versions) has a name instead. `GOLDEN=write pytest tests/test_golden.py` writes the files anew.
"""

import datetime as calendar
import difflib
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from http_server import V1, conforms, find_endpoint, problem, running

STORE = "sqlite"
GOLDEN = Path(__file__).parent / "golden"
REAL = calendar.datetime
TABLE = (GOLDEN / "commands.txt").read_text("utf-8")
REQUESTS = (GOLDEN / "requests.txt").read_text("utf-8").splitlines()
# Files in the project and beside it, a conversation, commits.
SHOP = json.loads((GOLDEN / "shop.json").read_text("utf-8"))
SESSION = "5e551011-0000-4000-8000-000000000001"

COMMITTER = {"NAME": "Ada", "EMAIL": "ada@example.org", "DATE": "2026-02-10T12:00:00Z"}
# What is measured, by its key in JSON; and what differs in texts.
VARYING = "database_bytes bytes_per_memory bytes p50_ms p95_ms cpu_ms digest".split()
VARYING.append("documents_per_second")
VERSION = re.compile(r"\d+\.\d+\.\d[\w.]*")
PATTERNS = [
    (r"\b(Bethink|bethink) \d+\.\d+\.\d+\w*", r"\1 <version>"),
    (r"\bPython \d+\.\d+\.\d+\S*\b", "Python <version>"),
    (r"\b(apsw|numpy|onnxruntime|tokenizers|SQLite)(:?) \d[\d.]+", r"\1\2 <version>"),
    (r"\b[a-z]{3}_[\w-]{40,}", "<token>"),
    (r"(?<=[ (])'(\w+)'(?=[,)])", r"\1"),
    (r"(?<![\w.])0\.\d{3,}\b", lambda found: f"{float(found[0]):.3f}"),
    (r"\b\d[\d.,]* (bytes|kB|MB|GB)\b", "<size>"),
]


# Variables that a command would heed, but for those of the test itself.
OTHERS = "BETHINK|XDG|CLAUDE|CODEX|COPILOT|GIT|ANTHROPIC|OPENAI"
FOREIGN = re.compile(f"(?!BETHINK_(HOME|EMBEDDING|OFFLINE)$)({OTHERS})")


class Meta(type):
    def __instancecheck__(cls, value):
        return isinstance(value, REAL)


class Clock(REAL, metaclass=Meta):
    """The `datetime` of the package while a test runs."""

    at = 0.0

    @classmethod
    def now(cls, tz=None):
        return REAL.fromtimestamp(cls.at, tz)


def swap(old, new):
    for name, module in list(sys.modules.items()):
        ours = name.split(".")[0] in ("bethink", "datetime")
        if name != __name__ and (ours or old is Clock):
            for key in [key for key, value in vars(module).items() if value is old]:
                setattr(module, key, new)


@pytest.fixture
def stage(cli, monkeypatch, tmp_path):
    """A clock, an environment and a home of the test's own."""
    for name in list(os.environ):
        if FOREIGN.match(name):
            monkeypatch.delenv(name)
    (tmp_path / "bin").mkdir()
    # And no other program: which agents a machine has must not matter.
    (tmp_path / "bin/git").symlink_to(shutil.which("git"))
    write(tmp_path / "bin" / "bethink", "#!/bin/sh\n").chmod(0o755)
    # What agents are told to start.
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "bin" / "bethink")])
    # Token budgets count the letters of a home, so there are always as many.
    home = tmp_path / "x".ljust(140 - len(str(tmp_path)), "x") / "ada"
    fixed = {"HOME": home, "PATH": tmp_path / "bin", "TZ": "UTC"}
    for name, value in {**fixed, "LANG": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": 1}.items():
        monkeypatch.setenv(name, str(value))
    # Without COLUMNS, output that is captured is not wrapped: where a line breaks would depend on the length of paths in it.
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("bethink.app.render.width", lambda: 120)
    time.tzset()
    monkeypatch.setattr(time, "time", lambda: Clock.at)
    # Ids are made of this: each begins with eight digits of its own, as if they were a minute apart.
    ticks = itertools.count(65536, 65536)
    monkeypatch.setattr(time, "time_ns", lambda: (int(Clock.at * 1000) + next(ticks)) * 1_000_000)
    monkeypatch.setattr("bethink.text._last", 0)  # nor do they depend on what was made before
    Clock.at = REAL(2026, 3, 2, 9, tzinfo=calendar.UTC).timestamp()
    swap(REAL, Clock)
    try:
        yield Stage(cli, tmp_path, home)
    finally:
        swap(Clock, REAL)
        monkeypatch.undo()
        time.tzset()


class Stage:
    """Runs command lines as they stand in the table, and gives what differs from run to run a name."""

    def __init__(self, cli, root, home):
        self.cli, self.root, self.home = cli, root, home
        talk = home / f".claude/projects/-shop/{SESSION}.jsonl"
        self.words = {"root": str(root), "session": SESSION, "talk": str(talk)}
        self.words |= {"token": "ghp_" + "a1B2" * 9, "long": "x" * 300, "many": '"a",' * 200}
        self.names, self.scopes = {SESSION: "<session>"}, {}

    def build(self):
        for name in ("other", "moved"):
            (self.root / name).mkdir()
        for name, text in SHOP["files"].items():
            write(self.cli.project / name, text)
        who = {f"GIT_AUTHOR_{key}": value for key, value in COMMITTER.items()}
        who |= {f"GIT_COMMITTER_{key}": value for key, value in COMMITTER.items()}
        git = partial(subprocess.run, cwd=self.cli.project, env={**os.environ, **who}, check=True)
        git(["git", "init", "-q", "--initial-branch=main"])
        for at, message in enumerate(SHOP["commits"]):
            write(self.cli.project / "shop/app.py", SHOP["files"]["shop/app.py"] + "#" * at)
            git(["git", "add", "."])
            git(["git", "commit", "-q", "-m", message])
        turns = [{"role": role, "content": text} for role, text in SHOP["talk"]]
        lines = []
        for at, turn in enumerate(turns):
            about = {"uuid": f"u{at}", "sessionId": SESSION, "cwd": str(self.cli.project)}
            moment = f"2026-03-01T09:{at:02}:00.000Z"
            about |= {"timestamp": moment, "message": turn}
            lines.append({"type": turn["role"], **about})
        write(Path(self.words["talk"]), "".join(json.dumps(line) + "\n" for line in lines))
        for name, text in SHOP["outside"].items():
            write(self.root / name, text)
        write(self.root / "chat.jsonl", "".join(json.dumps(turn) + "\n" for turn in turns))
        for line in table("told"):
            name, command = line.split(None, 1)
            Clock.at += 86400 if command.startswith("+ ") else 0
            ran = self.run(command.removeprefix("+ "))
            assert ran.code == 0, (command, ran)
            if name != "-":
                self.words[name] = json.loads(ran.out)["id"]
                self.names[self.words[name]] = f"<{name}>"
        (self.root / "moved").rmdir()

    def run(self, line):
        Clock.at += 60
        line, _, stdin = line.partition(" < ")
        argv = [self.filled(word) for word in shlex.split(line)]
        plain = {"--format", "--jsonl", "--version", "--help", "help"} & set(argv)
        return self.cli(*argv, *([] if plain else ["--json"]), stdin=self.filled(stdin))

    def filled(self, text):
        def fill(found):
            return self.words[found[1]][: int(found[2] or 999)]

        return re.sub(r"\{(\w+)(?::(\d+))?\}", fill, text)

    def shown(self, line):
        """What a command line printed, in a form to compare: parsed if it is JSON, else line by line."""
        ran = self.run(line)
        try:
            out = self.fixed(json.loads(ran.out))
        except ValueError:
            out = self.text(ran.out).splitlines()
        return {"exit": ran.code, "out": out, "err": self.text(ran.err).splitlines()}

    def answer(self, here, line):
        """What a request was answered, and that it is what the API's description promises."""
        Clock.at += 60
        method, address, *given = self.filled(line).split(" ", 2)
        sent = {"json": json.loads(given[0])} if given else {}
        response = here.owner.request(method, V1 + address, **sent)
        if response.is_success:
            conforms(find_endpoint(method, address.partition("?")[0]), response)
        else:
            problem(response, response.status_code)
        lines = response.text.splitlines()
        return {"status": response.status_code, "body": self.fixed(list(map(json.loads, lines)))}

    def fixed(self, value, name=""):
        if name in VARYING:
            return f"<{name}>"
        if isinstance(value, dict):
            return {self.text(key): self.fixed(item, key) for key, item in value.items()}
        if isinstance(value, list):
            return [self.fixed(item, name) for item in value]
        if isinstance(value, str):
            lines = self.text(value).split("\n")
            if VERSION.fullmatch(value):
                return "<version>"
            # A long text is easier to compare line by line.
            return {"<text>": lines} if len(lines) > 2 else "\n".join(lines)
        # The last digits may differ with the machine.
        return round(value, 3) if isinstance(value, float) else value

    def text(self, text):
        text = re.sub(r"\b(project|container):([0-9a-f]{16})", self.scope, text)
        for pattern, name in PATTERNS:
            text = re.sub(pattern, name, text)
        for place, name in ((self.home, "home"), (self.root.resolve(), "tmp"), (self.root, "tmp")):
            text = text.replace(str(place), f"<{name}>")
        return re.sub(r"\b([0-9a-f]{8}(?:-[0-9a-f]{1,12})*)\b(  +)?", self.named, text)

    def scope(self, found):
        name = self.scopes.setdefault(found[2], f"<project-{len(self.scopes) + 1}>")
        return f"{found[1]}:{name}"

    def named(self, found):
        """The name of an id, whole or short. Columns are as wide as their ids, so what fills them up goes."""
        id = found[1]
        if len(id) < 36:
            states = ("expired", "deleted", "superseded", "quarantined")
            every = ["list", "--all", "--all-projects", *(f"--include-{one}" for one in states)]
            listed = json.loads(self.cli(*every, "--json").out or "[]")
            known = [*self.names, *(one["id"] for one in listed)]
            id = next((one for one in known if one.startswith(id)), "<hex>")
        name = id if id == "<hex>" else self.names.setdefault(id, f"<id-{len(self.names)}>")
        return name + ("  " if found[2] else "")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    os.utime(path, (1_772_000_000, 1_772_000_000))
    return path


def table(group):
    section = re.search(rf"^# {group}\n(.*?)(?=^# |\Z)", TABLE, re.MULTILINE | re.DOTALL)
    return [line for line in section[1].splitlines() if line]


def text_of(value):
    return json.dumps(value, indent=1, ensure_ascii=False).splitlines()


def compare(name, now):
    """Whether what was printed or answered, line by line, is what it was."""
    path = GOLDEN / f"{name}.json"
    if os.environ.get("GOLDEN") == "write":
        path.write_text("\n".join(text_of(now)) + "\n", "utf-8")
    then = json.loads(path.read_text("utf-8"))
    assert list(now) == list(then), "The table has other lines: GOLDEN=write writes the file anew."
    changed = []
    for line in now:
        old, new = text_of(then[line]), text_of(now[line])
        if old != new:
            difference = difflib.unified_diff(old, new, "golden", "now", lineterm="", n=2)
            changed.append("\n".join([f"$ bethink {line}", *difference]))
    if changed:
        again = "If this is meant: GOLDEN=write pytest tests/test_golden.py, and read the diff."
        pytest.fail("\n\n".join([*changed, again]), pytrace=False)


def run_each(lines, run):
    shown = {}
    for line in lines:
        shown[line + " (again)" if line in shown else line] = run(line)
    return shown


@pytest.mark.parametrize("group", re.findall(r"^# (\w+)$", TABLE, re.MULTILINE)[1:])
def test_every_command_says_what_it_said(stage, group):
    stage.build()
    compare(group, run_each(table(group), stage.shown))


def test_every_request_is_answered_as_it_was(stage):
    stage.build()
    with running(stage.cli.home, stage.cli.project) as here:
        compare("requests", run_each(REQUESTS, lambda line: stage.answer(here, line)))


def test_no_command_is_left_out(cli):
    commands = re.findall(r"^  (\w+)  +\w", cli.ok("help", "--all"), re.MULTILINE)
    assert len(commands) > 40
    run = set(re.findall(r"^(?:\S+ +(?:\+ )?)?(\w+)\b", TABLE, re.MULTILINE))
    run |= set(re.findall(r"^(\w+)", TABLE, re.MULTILINE))
    assert set(commands) - run == set()
