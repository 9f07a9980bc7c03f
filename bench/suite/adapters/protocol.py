"""What every adapter shares: a loop that reads a request a line from stdin and answers with a line on stdout.

A request is `{"verb": …, …}`, an answer `{"ok": …}`, `{"unsupported": why}` or `{"error": what}`. An adapter is a class with one method
per verb; all verbs but `reset`, `add` and `ask` have the plain defaults below, which an adapter replaces where its system has a way of its own.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

# Answers have stdout for themselves: whatever a library prints, from its import on, goes to stderr.
ANSWERS = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)
COMMON = frozenset(
    "the and for with are was were does did what which who when where why how our your have has had this that from into can not "
    "use used you they she his her its".split()
)
ANSWERED, FILLED = 60, "2026-09-01T09:00:00+00:00"
PROMPTED = 2  # hits at a prompt, for systems without a hook


class Unsupported(Exception):
    """The system cannot do this; the message gives the reason."""


class Adapter:
    package = ""  # whose version `stats` returns

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="memory-", dir=os.environ.get("SUITE_WORK")))
        self.round = 0  # counts resets: names of fresh collections are made of it

    def reset(self) -> None:
        """Forget everything, or open an empty place."""
        raise NotImplementedError

    def add(self, text: str, time: str, who: str, source: str, id: str = "") -> None:
        raise NotImplementedError

    def load(self, items: list[dict[str, Any]]) -> None:
        """Add many at once if the system can, else one after the other."""
        for item in items:
            self.add(**item)

    def ask(self, question: str, time: str, k: int) -> list[dict[str, Any]]:
        raise NotImplementedError

    def prompt(self, text: str) -> list[dict[str, Any]]:
        """Return what an agent is shown at a prompt. Most systems have only their search: then its first two hits."""
        return self.ask(text, "2026-09-03T09:00:00+00:00", PROMPTED)

    def read(self, turns: list[dict[str, str]], name: str, **rest: Any) -> None:
        """Read a conversation to be asked about; turn by turn, for systems that read no conversations."""
        self.load(
            [
                {
                    "id": f"{name}#{at}",
                    "text": turn["text"],
                    "time": turn["time"],
                    "who": "user" if turn["role"] == "user" else "agent",
                    "source": name,
                }
                for at, turn in enumerate(turns)
            ]
        )

    def answer(self, question: str, time: str, tokens: int) -> str:
        """Return what a search shows within a budget: whole texts, best first, the last one cut."""
        shown, left = [], 4 * tokens  # four letters a token
        for one in self.ask(question, time, ANSWERED):
            shown.append(one["text"][:left])
            left -= len(shown[-1]) + 1
            if left <= 0:
                break
        return "\n".join(shown)

    def learn(self, steps: list[dict[str, Any]], text: str, time: str) -> None:
        """Store a session with a failed command and what fixed it; as one text, where a system reads no tool calls."""
        self.load([{"id": time, "text": text, "time": time, "who": "agent", "source": "session"}])

    def fail(self, step: dict[str, Any], text: str) -> str:
        """Return what is shown after a failed command. Most systems have only their search: then its first hit."""
        found = self.ask(text, "2026-09-30T09:00:00+00:00", 1)
        return str(found[0]["text"]) if found else ""

    def fill(self, texts: list[str]) -> None:
        """Write many notes whose vectors are random, to measure what size costs."""
        os.environ["SUITE_RANDOM_VECTORS"] = "1"
        for at in range(0, len(texts), 1000):
            items = [
                {"id": f"f{at + n}", "text": text, "time": FILLED, "who": "user", "source": "note"}
                for n, text in enumerate(texts[at : at + 1000])
            ]
            self.load(items)
        del os.environ["SUITE_RANDOM_VECTORS"]

    def briefing(self) -> str:
        """Return what an agent is shown at the start of a session."""
        return ""

    def talk(self, turns: list[dict[str, str]], **rest: Any) -> list[dict[str, str]]:
        raise Unsupported("It does not read conversations.")

    def stats(self) -> dict[str, Any]:
        """Return the version, the folder of its files, and the command of its MCP server if it has one."""
        return {"version": importlib.metadata.version(self.package), "folder": str(self.folder)}


def describe_server(*command: str, **environment: str) -> dict[str, Any]:
    """Return how to start the MCP server of a system from anywhere."""
    program = shutil.which(command[0]) or command[0]
    return {"command": [program, *command[1:]], "env": environment}


def pick_words(question: str) -> list[str]:
    """Return the words that an agent would search for one by one, where a search needs every word of a query."""
    words = re.findall(r"\w{3,}", question)
    return list(dict.fromkeys(word for word in words if word.lower() not in COMMON))


def serve(adapter: Adapter) -> None:
    """Answer requests until stdin ends."""
    for line in sys.stdin:
        request = json.loads(line)
        verb = request.pop("verb")
        try:
            answer = {"ok": getattr(adapter, verb)(**request)}
        except Unsupported as error:
            answer = {"unsupported": str(error)}
        except Exception as error:  # noqa: BLE001 - the runner decides
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        ANSWERS.write(json.dumps(answer) + "\n")
        ANSWERS.flush()
