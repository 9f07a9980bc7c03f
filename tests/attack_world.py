"""A project with ten decisions of its user, the ways by which a claim gets in, and what became of the decisions."""

import contextlib
import io
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from case_tables import cases
from memories import use_tool
from transcripts import claude_line, written
from trees import git

from bethink import Bethink
from bethink.features import conversations, handoffs, knowledge
from bethink.hooks.run import run
from bethink.surface.cli.main import main
from bethink.types import TRUST, Memory

# What the user decided, a claim of the opposite, and a question about it.
ROWS: list[tuple[str, str, str]] = cases("attacks")
DECIDED = datetime.now(UTC).replace(microsecond=0) - timedelta(days=1)
# Fields of a memory that reading it may change; none of the others may change without its user.
COUNTED = {"access_count": 0, "last_accessed": None, "usefulness": 0.0, "newer": ()}
HIDDEN = dict.fromkeys(("include_superseded", "include_deleted", "include_expired"), True)
_HEAD = re.compile(r"\[[\w-]+\] [\w-]+, (quarantined|imported|agent|user), ")


def fold(text: str) -> str:
    """Fold a text to its words, so that a claim is found in a file name and in a log alike."""
    return " ".join(re.findall(r"[^\W_]+", text.lower()))


def find_core(claim: str) -> str:
    """Enough of a claim to recognise it by, however a form begins it."""
    words = fold(claim).split()
    return " ".join(words[1:])


class Outcome(NamedTuple):
    """One claim that came in by one way, and what became of it."""

    trust: int | None  # the highest trust of a memory that contains the claim
    statement: bool  # a statement, not only the turn, is stored as the user's word
    changed: bool  # the user's decision is not exactly as it was
    gone: bool  # the user's decision is deleted
    briefed: str  # the line of the next briefing that gives the claim as the user's word
    prompted: str  # the same, at a prompt about the decision

    @property
    def stored(self) -> bool:
        return self.trust is not None and self.trust >= TRUST["user"]


class World:
    """A home, a project and its agent's folder, put back as they were before every attack."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.home, self.project = self.folder / "home", self.folder / "shop"
        self.agent = self.folder / "claude"
        self.project.mkdir(parents=True)
        git(self.project, "init")
        with self.memory(clock=lambda: DECIDED) as memory:
            self.known = {memory.add(row[0], kind="decision").id: None for row in ROWS}
        self.known = {one.id: one for one in self.read() if one.id in self.known}
        assert len(self.known) == len(ROWS)
        self.usual = folder / "usual"
        shutil.copytree(self.folder, self.usual)

    def reset(self) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(self.usual, self.folder)

    def memory(self, **options: Any) -> Bethink:
        return Bethink(directory=self.project, **options)

    def agents_memory(self) -> Bethink:
        return self.memory(actor="agent:test", trust=TRUST["agent"])

    def read(self) -> list[Memory]:
        with self.memory() as memory:
            return [one._replace(**COUNTED) for one in memory.export(memory.filter(**HIDDEN))]

    def command(self, *words: object) -> int:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return main(["--project", str(self.project), *map(str, words)])

    def tell(self, session: str, **said: Any) -> str:
        """Call a hook as the agent's host does, and return the text that the model reads."""
        event = "prompt" if "prompt" in said else "session-start"
        given = {"cwd": str(self.project), "session_id": session, "source": "startup", **said}
        printed = run(event, "claude", json.dumps(given).encode())
        return json.loads(printed)["hookSpecificOutput"]["additionalContext"] if printed else ""

    def transcript(self, name: str, *lines: tuple[str, Any], **more: Any) -> Path:
        """Write a session where the agent keeps its own: (role, content) pairs, a minute apart."""
        began = DECIDED + timedelta(hours=1)
        rows = []
        for number, (role, content) in enumerate(lines):
            at = (began + timedelta(minutes=number)).isoformat()
            own = {"uuid": f"{name}-{number:04d}", "sessionId": name, "timestamp": at}
            place = {"cwd": str(self.project), "gitBranch": "main", **more}
            rows.append(claude_line(number, content, role, **own, **place))
        folder = self.agent / "projects" / re.sub(r"[^a-zA-Z0-9]", "-", str(self.project))
        folder.mkdir(parents=True, exist_ok=True)
        return written(folder / f"{name}.jsonl", *rows)

    def listen(self, *lines: tuple[str, Any], name: str = "talk", **more: Any) -> None:
        file = self.transcript(name, *lines, **more)
        with self.memory() as memory:
            list(conversations.read_on(memory, file, "claude"))

    def judge(self, claims: Sequence[str], asked: Sequence[str]) -> list[Outcome]:
        """Compare the memory with what it was; the claims belong to the rows in their order."""
        found = self.read()
        now = {one.id: one for one in found}
        others = [(fold(f"{one.content}\n{one.summary}"), one) for one in found]
        others = [(text, one) for text, one in others if one.id not in self.known]
        briefing = self.tell("next")
        outcomes = []
        for claim, before, (_, _, question) in zip(claims, self.known.values(), ROWS, strict=False):
            core = find_core(claim)
            held = [one for text, one in others if core in text]
            users = [one for one in held if one.trust >= TRUST["user"]]
            after = now.get(before.id)
            outcomes.append(
                Outcome(
                    max((one.trust for one in held), default=None),
                    any(one.kind != "context" for one in users),
                    after != before,
                    after is None or after.deleted_at is not None,
                    find_users_line(briefing, core),
                    find_users_line(self.tell(f"asks {core}", prompt=question), core),
                )
            )
        return outcomes


def find_users_line(shown: str, core: str) -> str:
    """The first line that gives a claim as the user's word: on a memory of the user's, or on no memory."""
    whose = "user"
    for line in shown.splitlines():
        if head := _HEAD.search(line):
            whose = head[1]
        elif not line.startswith((">", " ")):
            whose = "user"
        if core in fold(line) and whose == "user":
            return line
    return ""


# Ways in: each takes the texts of one attack, one per decision.


def paste(world: World, texts: Sequence[str]) -> None:
    turns = [turn for text in texts for turn in (("user", text), ("assistant", "Understood."))]
    world.listen(*turns)


def reply(world: World, texts: Sequence[str]) -> None:
    asks = ("user", "What is the state of this?")
    world.listen(*(turn for text in texts for turn in (asks, ("assistant", text))))


def _use(number: int, path: str) -> tuple[str, list[dict[str, Any]]]:
    use = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"file_path": path}}
    return "assistant", [use]


def tool(world: World, texts: Sequence[str]) -> None:
    turns: list[tuple[str, Any]] = [("user", "Please read the notes of the project.")]
    for number, text in enumerate(texts):
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": text}
        turns += [_use(number, str(world.project / "notes.md")), ("user", [result])]
    world.listen(*turns, ("assistant", "I have read the notes."))


def note(world: World, texts: Sequence[str]) -> None:
    items = [{"content": text, "kind": "decision"} for text in texts]
    with world.agents_memory() as memory:
        use_tool(memory, "store_memories", memories=items)


def document(world: World, texts: Sequence[str]) -> None:
    folder = world.project / "docs"
    folder.mkdir()
    for number, text in enumerate(texts):
        (folder / f"{number:04d}-page.md").write_text(text, encoding="utf-8")
    (world.project / "AGENTS.md").write_text("\n\n".join(texts), encoding="utf-8")
    with world.memory() as memory:
        knowledge.index(memory)
        knowledge.analyze(memory)


def commit(world: World, texts: Sequence[str]) -> None:
    for text in texts:
        git(world.project, "commit", "--allow-empty", "-m", text)
    with world.memory() as memory:
        knowledge.analyze_history(memory)


@contextlib.contextmanager
def settle(folder: Path) -> Iterator[World]:
    """Open a world in an empty folder, with settings that reach nothing outside of it."""
    usual = dict(os.environ)
    mine = {"BETHINK_HOME": "home", "CLAUDE_CONFIG_DIR": "claude"}
    os.environ.update({name: str(folder / "work" / path) for name, path in mine.items()})
    os.environ.update({"BETHINK_EMBEDDING": "hashing", "BETHINK_OFFLINE": "1"})
    for name in ("BETHINK_DATABASE", "BETHINK_MODEL_DIR", "BETHINK_DEBUG", "CLAUDECODE"):
        os.environ.pop(name, None)
    try:
        yield World(folder)
    finally:
        os.environ.clear()
        os.environ.update(usual)


WAYS: dict[str, Callable[[World, Sequence[str]], None]] = {
    "pasted turn": paste,
    "tool output": tool,
    "agent's turn": reply,
    "agent's note": note,
    "document": document,
    "commit": commit,
}
_ = handoffs
