"""Bethink: a database and a project per round, default settings, the task's clock. Notes are added as `bethink add` adds them; a document
lies in the project and is indexed; an issue is pasted into a conversation, which is read. At a prompt its hook speaks."""

from __future__ import annotations

import json
import os
import re
from datetime import datetime
from pathlib import Path
from typing import Any

os.environ["BETHINK_HOOK_SECONDS"] = "30"  # the load of the machine must not decide what is shown
os.environ["BETHINK_MODEL_DIR"] = str(Path(os.environ["SUITE_MODEL"]).parent)
from bethink_sessions import Sessions
from protocol import Adapter, describe_server, serve

from bethink import Bethink, __version__
from bethink.features import conversations, knowledge
from bethink.hooks.prompt import recall_for_prompt
from bethink.hooks.state import from_fields
from bethink.model import STATEMENTS, TRUST, Passage, Source

OPEN = ("question", "todo")


class Adapted(Sessions, Adapter):
    _memory: Bethink | None = None
    _has_sessions = False

    def reset(self) -> None:
        self.round += 1
        self._project = self.folder / f"project-{self.round}"
        make_repository(self._project)
        database: Any = self.folder / f"{self.round}.db"
        self._opened = {"directory": self._project, "database": database}
        if old := self._memory:
            self._opened |= {"embedder": old.embedder, "judge": old.judge}
            old.close()
        self._memory, self._has_sessions = Bethink(**self._opened), False

    def add(self, text: str, time: str, who: str, source: str, id: str = "") -> None:
        self._set_clock(time)
        if who == "user":
            self._memory.add(text)
        elif who == "agent":
            with Bethink(**self._opened, actor="agent:suite", trust=TRUST["agent"]) as memory:
                memory.clock = self._memory.clock
                memory.add(text)
        elif who == "document":
            (self._project / source).write_text(f"# About\n\n{text}\n")
            knowledge.index(self._memory)
        else:
            issue = f"Can you answer this?\n\n# {source}\n\n## Description\n\n- {text}"
            self.talk([{"role": "user", "text": issue, "time": time}])

    def load(self, items: list[dict[str, Any]]) -> None:
        sources: dict[str, list[Passage]] = {}
        for item in items:
            turns = sources.setdefault(item["source"], [])
            turn = Passage(item["text"].strip() or "(empty)", "context", position=len(turns))
            time, name = datetime.fromisoformat(item["time"]), {"name": item["id"]}
            turns.append(turn._replace(created_at=time, metadata=name))
        for name, turns in sources.items():
            self._memory.ingest([(Source(name, "transcript"), turns)], replace_sources=False)

    def ask(self, question: str, time: str, k: int) -> list[dict[str, Any]]:
        self._set_clock(time)
        if self._has_sessions:
            return [describe(one) for one in self.search_sessions(question, k)]
        return [describe(hit.memory) for hit in self._memory.search(question, limit=k).hits]

    def read(self, turns: list[dict[str, str]], name: str, **rest: Any) -> None:
        self._has_sessions = True
        super().read(turns, name, **rest)

    def prompt(self, text: str) -> list[dict[str, Any]]:
        hook = from_fields("prompt", "claude", {"cwd": str(self._project), "prompt": text})
        return self.list_shown(recall_for_prompt(hook, self._memory), describe)

    def talk(self, turns: list[dict[str, str]], **rest: Any) -> list[dict[str, Any]]:
        lines = [{**turn, "content": turn["text"], "timestamp": turn["time"]} for turn in turns]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        if file := rest.get("file"):  # as if it had been held in this project
            cwd = f'"cwd":{json.dumps(str(self._project))}'
            text = re.sub(r'"cwd"\s*:\s*"[^"]*"', lambda _: cwd, Path(file).read_text("utf-8"))
        (copy := self.folder / f"talk-{self.round}.jsonl").write_text(text)
        self._set_clock(turns[-1]["time"].replace("Z", "+00:00"))
        conversations.backfill(self._memory, [(rest.get("host") or "plain", copy)])
        kept = map(describe, self._memory.export(self._memory.filter(kinds=STATEMENTS)))
        return [one for one in kept if not one["replaced"]]

    def _set_clock(self, time: str) -> None:
        moment = datetime.fromisoformat(time)
        self._memory.clock = lambda: moment

    def stats(self) -> dict[str, Any]:
        server = describe_server("bethink", "mcp")
        return {"version": __version__, "folder": str(self.folder), "mcp": server}


def make_repository(folder: Path) -> None:
    """Make an empty repository, so that a folder around it is never taken for the project."""
    for name in ("objects", "refs/heads"):
        (folder / ".git" / name).mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")


def describe(one: Any) -> dict[str, Any]:
    over = one.superseded_by or one.valid_to or (one.kind in (*OPEN, "problem") and one.answered)
    said = {"text": one.content, "kind": one.kind if one.kind in OPEN else "memory"}
    name = one.metadata.get("name") or (f"{one.session}#" if one.session else "")
    return {**said, "id": name, "replaced": bool(over or one.newer)}


serve(Adapted())
