"""What the tests of transcript readers share: the fixtures, and turns in a form that fits a table."""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from bethink import agents
from bethink.agents.base import START, Position, TranscriptPage, Turn
from bethink.agents.transcript import Transcript

DAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
FIXTURES = Path(__file__).parent / "fixtures" / "transcripts"
CLAUDE = FIXTURES / "claude" / "-home-ada-shop"
CODEX = FIXTURES / "codex"
SESSION = CLAUDE / "5e551011-0000-4000-8000-000000000001.jsonl"
# Every reader, on the richest file it has.
LINE_FILES = {
    "claude": SESSION,
    "claude busy": CLAUDE / "b0500000-0000-4000-8000-000000000005.jsonl",
    "claude off": CLAUDE / "0ff00000-0000-4000-8000-000000000006.jsonl",
    "codex": next(CODEX.rglob("rollout-*-000000000001.jsonl")),
    "codex fork": next(CODEX.rglob("rollout-*-000000000003.jsonl")),
    "copilot": FIXTURES / "copilot/session-state/c0b11070-0000-4000-8000-000000000001/events.jsonl",
    "gemini": FIXTURES / "gemini/tmp/shop/chats/session-2026-05-04T12-00-9e000000.jsonl",
    "cursor": FIXTURES / "cursor/projects/home-ada-shop/agent-transcripts/cc01/cc01.jsonl",
    "plain": FIXTURES / "plain/chat.jsonl",
}


def who(turn: Turn) -> str:
    return turn.role + (f"@{turn.agent}" if turn.agent else "")


def table(path: Path) -> list[tuple[int, str, str]]:
    """The turns of a file as (line, who, text)."""
    return [(turn.line, who(turn), turn.text) for turn in agents.read(path).turns()]


def read(
    path: Path, position: Position = START, host: str | None = None
) -> tuple[list[Turn], Transcript]:
    """The turns of a file, and its reader with what it skipped in all pages."""
    transcript = agents.read(path, position, host)
    pages = list(transcript.pages())
    transcript.skipped = sum((Counter(page.skipped) for page in pages), transcript.skipped)
    transcript.lines = sum(page.lines for page in pages)
    return [turn for page in pages for turn in page.turns], transcript


def paged(transcript: Transcript, **limits: int) -> Iterator[TranscriptPage]:
    """The pages of a transcript, of another size than usual."""
    vars(transcript).update(limits)
    return transcript.pages()


def written(path: Path, *lines: Any, end: str = "\n") -> Path:
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("\n".join(texts) + end, encoding="utf-8")
    return path


def stored(position: Position) -> Position:
    """A position as it comes back from a database."""
    return Position(*json.loads(json.dumps([*position[:4], dict(position.state)])))


def claude_line(number: int, text: Any, role: str = "user", **more: Any) -> dict[str, Any]:
    place = {"sessionId": "s1", "cwd": "/home/ada/shop"}
    said = {"timestamp": f"2026-05-04T09:{number % 60:02}:00.000Z"}
    said |= {"message": {"role": role, "content": text}}
    return {"type": role, "uuid": f"u{number}", **place, **said, **more}


def transcript(path, session, project, *said, began=DAY, append=False):
    """A transcript of Claude Code: (role, text) pairs, a minute apart."""
    lines = path.read_text().splitlines() if append and path.exists() else []
    for number, (role, text) in enumerate(said, len(lines)):
        at = (began + timedelta(minutes=number)).isoformat()
        own = {"uuid": f"{session}-{number:04d}", "sessionId": session, "timestamp": at}
        place = {"cwd": str(project), "gitBranch": "main"}
        lines.append(claude_line(number, text, role, **own, **place))
    path.parent.mkdir(parents=True, exist_ok=True)
    return written(path, *lines)


NUMBER = count(1)


def claude_call(command, output="", failed=False, session="s1", day=1, cwd="/home/ada/shop"):
    """A command of Claude Code and its result, as two lines of its transcript."""
    number = next(NUMBER)
    at = f"2026-05-{day:02}T09:{number % 60:02}:00.000Z"
    place = {"sessionId": session, "cwd": cwd, "timestamp": at}
    call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": command}}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output}
    result |= {"is_error": True} if failed else {}
    for kind, block in (("assistant", call), ("user", result)):
        message = {"role": kind, "content": [block]}
        yield {"type": kind, "uuid": f"{kind}{number}", **place, "message": message}


def claude_says(text, role="assistant", session="s1", day=1, cwd="/home/ada/shop"):
    number = next(NUMBER)
    at = f"2026-05-{day:02}T09:{number % 60:02}:30.000Z"
    message = {"role": role, "content": text}
    return {
        **{"type": role, "uuid": f"say{number}", "sessionId": session, "cwd": cwd},
        **{"timestamp": at, "message": message},
    }
