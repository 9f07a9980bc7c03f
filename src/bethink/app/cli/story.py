"""`demo`: two agents with one memory, played through the real commands and hooks.

Nothing is faked but the agents: the transcript is written as Claude Code writes it, and every line of memory is the answer of the hook
that the agent would call.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from bethink.app.cli.console import Bar, Console, Result
from bethink.app.cli.shell import play
from bethink.app.operation import Arg, operation
from bethink.app.render import size, style, width
from bethink.config import data_directory
from bethink.embed import find_provider
from bethink.errors import BethinkError, EmbeddingError
from bethink.outgoing import NOTICE

Json = dict[str, Any]
LOCKFILE = 'ERR_PNPM_OUTDATED_LOCKFILE  Cannot install with "frozen-lockfile" because pnpm-lock.yaml is not up to date'
_WIDTH = 84  # characters of what is said, where the terminal has room for them
_SECONDS = 120  # that one command may take


class Message(NamedTuple):
    """One message of the scripted conversation."""

    who: str  # you or agent
    text: str


class Command(NamedTuple):
    """One command of the agent, with its output."""

    command: str
    output: str
    failed: bool = False


MONDAY = (
    Message("you", "Where should the invoice events go, NATS or Kafka?"),
    Message(
        "agent", "Both work. Kafka needs a cluster of its own, and NATS is enough for this load."
    ),
    Message(
        "you", "We use NATS for invoice events, because a Kafka cluster is too much work for us."
    ),
    Message("agent", "Good, the publisher goes to NATS. I run the tests first."),
    Command("pnpm test", LOCKFILE, failed=True),
    Command("pnpm install --no-frozen-lockfile", "Done in 4.1s"),
    Command("pnpm test", "Tests  214 passed (214)"),
    Message("agent", "All 214 tests pass, and invoices are published to NATS."),
    Message("you", "Never run migrations during the nightly export: it locks the tables."),
    Message("agent", "Noted: no migrations during the nightly export."),
)
# A briefing leaves out what was settled weeks ago; a prompt that asks for it gets it.
SEPTEMBER = (
    Message("you", "Who should issue invoice numbers, the shop or the ledger service?"),
    Message("agent", "The ledger service can guarantee that there are no gaps."),
    Message("you", "Invoice numbers come from the ledger service, because auditors allow no gaps."),
    Message("agent", "Understood, the ledger service issues them."),
)
EXAMPLE_NOTE = (
    "We moved invoice events from NATS to Kafka, because billing needs a replay of old events"
)
QUESTION = "where do invoice events go?"


@operation(
    "Browse",
    agents="read",
    examples=("bethink demo", "bethink demo --tour", "bethink demo --json"),
)
def demo(
    console: Console,
    tour: Annotated[bool, Arg("show the commands instead: add, search, explain …")] = False,
) -> Result:
    """Show the product on a temporary database.

    Plays a conversation with one agent and the next one with another: what is remembered, what the second agent is shown, and how a
    known failure is caught. Your own memories are not touched.
    """
    with tempfile.TemporaryDirectory(prefix="bethink-demo-") as folder:
        place = Path(folder).resolve()
        steps = (
            play(console, place) if tour else list(_play_story(console, _set_stage(console, place)))
        )
    end = "\nAll of this was on a temporary database, which is deleted. Next: bethink install"
    return Result(steps, [end])


def _set_stage(console: Console, folder: Path) -> "Stage":
    """Make the temporary home. It shares the embedding model, which is fetched first if need be."""
    config = console.load_settings()
    provider = find_provider(config.embedding)
    embedding = config.embedding
    if provider and provider.pull:
        try:
            with Bar(console, f"downloading {embedding}", count=size) as bar:
                provider.pull(config, bar)
        except EmbeddingError as error:
            console.warn(f"{error.message} The demo finds memories by their words only.")
            embedding = "none"
    models = os.environ.get("BETHINK_MODEL_DIR") or str(data_directory() / "models")
    return Stage(folder, {"BETHINK_EMBEDDING": embedding, "BETHINK_MODEL_DIR": models})


class Stage:
    """A separate home and project, in which the real commands run."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self.home, self.project = folder / "home", folder / "shop"
        (self.project / ".git").mkdir(parents=True)
        (self.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        self.home.mkdir()
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("BETHINK_", "XDG_", "CLAUDE", "CODEX"))
        }
        own = {"HOME": str(self.home), "USERPROFILE": str(self.home)}
        own |= {"BETHINK_HOME": str(self.home / "bethink"), "BETHINK_HOOK_HELPER": "false"}
        own["BETHINK_HOOK_SECONDS"] = "30"  # a demo may wait; an agent does not
        self.environment = {**kept, **own, **settings}

    def run(self, *words: str, message: Json | None = None) -> str:
        """Run a command as a process, and return what it prints."""
        done = subprocess.run(
            [sys.executable, "-m", "bethink", *words],
            input=json.dumps(message) if message is not None else "",
            capture_output=True,
            text=True,
            encoding="utf-8",
            env=self.environment,
            cwd=self.project,
            timeout=_SECONDS,
            check=False,
        )
        if done.returncode:
            raise BethinkError(
                f"`bethink {shlex.join(words)}` failed: {done.stderr.strip()}",
                "`bethink doctor` checks the installation.",
            )
        return done.stdout.replace(str(self.project.parent), "…").rstrip()

    def hook(self, event: str, host: str, **fields: object) -> str:
        """Call a hook as an agent does, and return the text that the model would read."""
        message = {"session_id": "wednesday", "cwd": str(self.project), **fields}
        printed = self.run("hook", event, "--host", host, message=message)
        answer = json.loads(printed) if printed else {}
        inner = answer.get("hookSpecificOutput", answer)
        return str(inner.get("additionalContext", ""))


def _play_story(console: Console, stage: Stage) -> Iterator[Json]:
    """Play the story, show each part as it comes, and yield its parts."""

    def print_line(text: str = "") -> None:
        if console.format == "text":
            console.out(text)

    # Text that goes to a file or another program is as wide as at a wide terminal.
    room = max(24, min(_WIDTH, width() - 14))

    def show(who: str, text: str) -> None:
        first, rest = f"  {who:<12}", " " * 14
        for line in text.split("\n"):
            for part in textwrap.wrap(line, room, break_long_words=False) or [""]:
                print_line(first + (style(part, "bold") if who == "memory" else part))
                first = rest

    print_line(style("\nMonday. You talk with Claude Code; nobody takes notes.", "bold"))
    print_line()
    for one in MONDAY:
        if isinstance(one, Message):
            show(one.who, one.text)
        elif isinstance(one, Command):
            show("", f"$ {one.command}\n{one.output}")
    stage.run("backfill", str(_write_transcript(stage, SEPTEMBER, "0e9", 60)), "--quiet")
    stage.run("backfill", str(_write_transcript(stage, MONDAY, "d310", 2)), "--quiet")
    kept = json.loads(
        stage.run("list", "--json", "--kind", "decision,preference,gotcha,todo,failure")
    )
    print_line()
    print_line("  When the session ends, Bethink has read it. It keeps:")
    print_line()
    for memory in kept:
        show(memory["kind"], memory["summary"])
    yield {"part": "record", "memories": [memory["content"] for memory in kept]}

    print_line(style("\nWednesday. A new session, in Codex.", "bold"))
    print_line()
    briefing = stage.hook("session-start", "codex", source="startup")
    show("memory", _own_words(briefing))
    yield {"part": "brief", "shown": briefing}
    prompt = "Give credit notes a number, like invoices."
    show("you", prompt)
    recalled = stage.hook("prompt", "codex", prompt=prompt)
    if recalled:
        show("memory", _own_words(recalled))
    yield {"part": "recall", "prompt": prompt, "shown": recalled}
    show("agent", "From the ledger service, as you settled it two months ago. I run the tests.")
    show("", f"$ pnpm test\n{LOCKFILE}")
    fix = stage.hook("tool", "codex", **_fail_in_codex(stage))
    show("memory", _own_words(fix))
    show("", "$ pnpm install --no-frozen-lockfile\n$ pnpm test\nTests  221 passed (221)")
    yield {"part": "failure", "shown": fix}

    print_line(style("\nFriday. You change your mind, and change it back.", "bold"))
    for words in (
        ("add", EXAMPLE_NOTE),
        ("search", QUESTION, "--limit", "2"),
        ("undo",),
        ("search", QUESTION, "--limit", "2"),
    ):
        output = stage.run(*words)
        command = f"bethink {shlex.join(words)}".replace("'", '"')
        print_line("\n" + style(f"$ {command}", "bold"))
        for line in output.split("\n"):
            print_line(line)
        yield {"part": words[0], "command": command, "output": output}


def _own_words(context: str) -> str:
    """Return the memories of a hook's answer, without the frame that marks them as data for the model."""
    lines = [line.strip() for line in context.replace(NOTICE, "").split("\n")]
    return "\n".join(line for line in lines if line and not line.startswith("<"))


def _write_transcript(
    stage: Stage, script: Sequence[Message | Command], name: str, days: int
) -> Path:
    """Write a conversation of some days ago where Claude Code keeps its transcripts."""
    folder = stage.home / ".claude" / "projects" / "shop"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"5e551011-0000-4000-8000-{name:0>12}.jsonl"
    at = datetime.now(UTC) - timedelta(days=days)
    lines: list[Json] = []

    def add(role: str, content: object, **more: object) -> None:
        number = len(lines) + 1
        lines.append(
            {
                "type": role,
                "uuid": f"{name}-{number}",
                "sessionId": path.stem,
                "cwd": str(stage.project),
                "gitBranch": "main",
                "timestamp": f"{at + timedelta(minutes=number):%Y-%m-%dT%H:%M:%S.000Z}",
                "message": {"role": role, "content": content},
                **more,
            }
        )

    for number, one in enumerate(script):
        if isinstance(one, Message):
            add({"you": "user", "agent": "assistant"}[one.who], one.text)
            continue
        assert isinstance(one, Command)
        call = {"type": "tool_use", "id": f"call-{number}", "name": "Bash"}
        add("assistant", [{**call, "input": {"command": one.command}}])
        text = f"Exit code 1\n{one.output}" if one.failed else one.output
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": text}
        add("user", [{**result, "is_error": one.failed}])
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def _fail_in_codex(stage: Stage) -> Mapping[str, object]:
    """Return the message of Codex after the same failure; the exit code is in its transcript."""
    path = stage.home / "rollout-demo.jsonl"
    item = {"type": "CommandExecution", "id": "call-1", "exit_code": 1}
    line = {"type": "event_msg", "payload": {"type": "item_completed", "item": item}}
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    return {
        "tool_name": "Bash",
        "tool_input": {"command": "pnpm test"},
        "tool_use_id": "call-1",
        "tool_response": LOCKFILE,
        "transcript_path": str(path),
    }
