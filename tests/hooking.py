"""What the tests of hooks share: a project with a home of its own, memories in it, and hosts that call."""

import json
from pathlib import Path
from typing import Any

import pytest

from bethink import Bethink
from bethink.hooks.run import run
from bethink.model import TRUST, Passage, Source


class Shop:
    """A project whose memory hooks read."""

    def __init__(self, folder: Path, home: Path, monkeypatch: Any) -> None:
        self.project, self.home = folder / "shop", home
        (self.project / ".git").mkdir(parents=True)
        self.branch("main")
        self.woken: list[str] = []
        # These tests are about what hooks do, not the worker.
        monkeypatch.setattr(
            "bethink.hooks.spool.wake", lambda database, config: self.woken.append(database)
        )

    def branch(self, name: str) -> None:
        (self.project / ".git" / "HEAD").write_text(f"ref: refs/heads/{name}\n")

    def memory(self, **options: Any) -> Bethink:
        return Bethink(directory=self.project, **options)

    def add(self, content: str, kind: str = "fact", **options: Any) -> str:
        trust = {"trust": options.pop("trust")} if "trust" in options else {}
        with self.memory(**trust) as memory:
            return memory.add(content, kind=kind, **options).id

    def printed(self, event: str, host: str = "claude", **said: Any) -> str:
        told = {"cwd": str(self.project), "session_id": "s1", **said}
        return run(event, host, json.dumps(told).encode())

    def start(self, **said: Any) -> str:
        """The briefing of a session, as its model reads it."""
        return context(self.printed("session-start", source=said.pop("source", "startup"), **said))

    def ask(self, prompt: str, **said: Any) -> str:
        """What a prompt gets, as the model reads it."""
        return context(self.printed("prompt", prompt=prompt, **said))

    def hear(self, content: str, source: str, kind: str, trust: str = "user", **more: Any) -> None:
        """Takes what a source says, a transcript or a page."""
        origin = Source(source, "transcript" if source.endswith(".jsonl") else "markdown")
        group = (origin, [Passage(content, kind=kind, **more)])
        with self.memory() as memory:
            memory.ingest([group], trust=TRUST[trust], replace_sources=False)

    def hear_turn(self, session: str, role: str, kind: str, text: str) -> None:
        """Take one turn of a session's transcript."""
        transcript = f"/talks/{session}-{text[:4]}.jsonl"
        self.hear(text, transcript, kind, metadata={"role": role}, session=session)


def context(printed: str) -> str:
    return json.loads(printed)["hookSpecificOutput"]["additionalContext"] if printed else ""


@pytest.fixture
def shop(tmp_path, offline, monkeypatch):
    return Shop(tmp_path, offline, monkeypatch)
