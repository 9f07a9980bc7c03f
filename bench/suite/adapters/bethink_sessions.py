"""What Bethink does with coding sessions: it reads transcripts, speaks at failing commands, and answers its agents' search tool."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parents[2]
sys.path[1:1] = [str(BENCH / "remedies"), str(BENCH)]

from bethink.app.mcp.tools import call, find_spread  # noqa: E402
from bethink.features import conversations  # noqa: E402
from bethink.hooks.briefing import render_briefing  # noqa: E402
from bethink.hooks.state import from_fields  # noqa: E402


class Sessions:
    """Sessions of coding agents in the project of an adapter."""

    _memory: Any = None
    _failing: Any = None
    _project: Path
    folder: Path

    def read(self, turns: list[dict[str, str]], name: str, **rest: Any) -> None:
        """Read a transcript in the format of Claude Code."""
        lines = []
        for at, turn in enumerate(turns):
            role, text = turn["role"], turn["text"]
            blocks = text if role == "user" else [{"type": "text", "text": text}]
            entry = {"type": role, "uuid": f"{name}-{at}", "sessionId": name}
            entry |= {"parentUuid": f"{name}-{at - 1}" if at else None}
            entry |= {"cwd": str(self._project), "timestamp": turn["time"]}
            message = {"role": role, "content": blocks}
            message |= {"id": f"m{at}", "model": "model"} if role != "user" else {}
            lines.append(json.dumps({**entry, "message": message}))
        file = self.folder / f"{name.replace('/', '-')}.jsonl"
        file.write_text("\n".join(lines) + "\n", "utf-8")
        moment = datetime.fromisoformat(turns[-1]["time"])
        self._memory.clock = lambda: moment
        conversations.backfill(self._memory, [("claude", file)], trusted=True)

    def search_sessions(self, question: str, k: int) -> list[Any]:
        """The first hits of the agents' search tool."""
        return [hit.memory for hit in find_spread(self._memory, question, k).hits[:k]]

    def list_shown(self, context: Any, describe: Any) -> list[dict[str, Any]]:
        """The memories that a hook shows, each with the line that an agent reads."""
        found = self._memory.store.get(list(context.ids))
        short = self._memory.store.abbreviate([one.id for one in found])
        lines = context.text.splitlines()
        shown = [next((row for row in lines if short[one.id] in row), "") for one in found]
        return [
            {**describe(one), "shown": line or context.text}
            for one, line in zip(found, shown, strict=True)
        ]

    def answer(self, question: str, time: str, tokens: int) -> str:
        moment = datetime.fromisoformat(time)
        self._memory.clock = lambda: moment
        asked = {"query": question, "max_tokens": tokens}
        return str(call(self._memory, "search_memories", asked).text)

    def learn(self, steps: list[dict[str, Any]], text: str, time: str) -> None:
        from case import Case
        from measure import Project

        if not self._failing:
            self._failing = Project(self._project / "work")
        self._failing.learn(Case("", tuple(make_step(step) for step in steps), ()))

    def fail(self, step: dict[str, Any], text: str) -> str:
        return str(self._failing.ask(make_step(step)))

    def fill(self, texts: list[str]) -> None:
        """Write many notes without the judge; the vectors of most are perturbed."""
        from common import fill_scope

        fill_scope(self._memory, len(texts))

    def briefing(self) -> str:
        hook = from_fields("session-start", "claude", {"cwd": str(self._project)})
        return str(render_briefing(hook, self._memory).text)


def make_step(step: dict[str, Any]) -> Any:
    from case import Step

    return Step(**{**step, "arguments": tuple(map(tuple, step["arguments"]))})
