"""What the tests of the capture side share: a home, a project with a transcript that grows, and what became of it."""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from transcripts import transcript

from bethink.api import Bethink
from bethink.hooks import spool, worker
from bethink.hooks.state import Hook

SAID = [
    ("user", "Which queue should the mailer use?"),
    ("assistant", "I suggest RabbitMQ for the mailer, because it is running already."),
    ("user", "Okay, we decided to use RabbitMQ for the mailer."),
    ("assistant", "Good. I will set up the exchange for outgoing mail."),
]
MORE = [
    ("user", "The mailer loses messages when RabbitMQ restarts."),
    ("assistant", "The root cause is that the mailer's queue is not durable."),
]
TEXTS, MORE_TEXTS = ([text for _, text in said] for said in (SAID, MORE))


class Desk:
    """One home, one project, one database."""

    def __init__(self, folder: Path, home: Path, project: str = "project") -> None:
        self.folder, self.home = folder, home
        self.project = folder / project
        self.project.mkdir(exist_ok=True)
        self.database = str(home / "memory.db")

    def talk(
        self, name: str, *said: tuple[str, str], began: datetime | None = None, append: bool = False
    ) -> Path:
        """A transcript of Claude Code about the project, where that keeps it, from a minute ago unless told otherwise."""
        kept = Path(os.environ.get("CLAUDE_CONFIG_DIR", self.folder)) / "projects" / "-p"
        file, began = kept / f"{name}.jsonl", began or datetime.now(UTC)
        return transcript(file, name, self.project, *said, began=began, append=append)

    def hook(self, file: Path | str, event: str = "stop", **more: Any) -> Hook:
        place = {"transcript": str(file), "directory": str(self.project)}
        return Hook(event, "claude", session=Path(file).stem, **place, **more)

    def note(self, file: Path | str, event: str = "stop", **more: Any) -> None:
        spool.note(self.hook(file, event, **more), self.database)

    def work(self) -> int:
        return worker.run(self.database, seconds=60)

    def memory(self) -> Bethink:
        return Bethink(self.database, directory=self.project)

    def turns(self) -> list[str]:
        """What was said and kept, in order."""
        with self.memory() as memory:
            kept = memory.list(limit=1000, order="oldest", filter=memory.filter(kinds=("context",)))
            return [one.content for one in kept if "compaction" not in one.tags]


def eventually(condition: Callable[[], object], seconds: float = 30.0) -> bool:
    """Whether something comes true in time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


@pytest.fixture
def desk(offline: Path, tmp_path: Path) -> Desk:
    return Desk(tmp_path, offline)
