"""Controls that understand nothing. They run inside the runner and show what a lazy way of meeting a measure gets."""

from __future__ import annotations

import random
import re
from collections import Counter
from typing import Any

from measures import DEPTH, content_words
from tasks import Unsupported

# control → the tasks that it is there for
CONTROLS = {
    "newest-first": (
        "change",
        "recall",
        "silence",
        "poison",
        "attacks",
        "histories",
        "failures",
        "decisions",
        "next-day",
        "investigations",
        "answers",
        "languages",
    ),
    "oldest-first": ("poison", "attacks"),
    "newest-alone": ("change", "histories"),
    "random": ("recall", "silence", "languages"),
    "silent": ("silence", "failures", "decisions", "next-day", "investigations"),
    "grep": ("failures", "decisions", "next-day", "investigations", "answers", "histories"),
    "instructions": ("next-day", "investigations"),
    "keep-everything": ("understanding",),
    "keep-whole": ("understanding",),
    "keep-nothing": ("understanding",),
    "random-as-many": ("understanding",),
}
# one sentence for each, for the page
EXPLAINED = {
    "newest-first": "Returns the newest memories, whatever the question is.",
    "oldest-first": "Returns the oldest memories, whatever the question is.",
    "newest-alone": "Treats each statement as a replacement of all earlier ones.",
    "random": "Returns memories in random order.",
    "silent": "Has no memory and never shows anything.",
    "grep": "Returns the texts that share the rarest word with the question, as `grep` over transcripts does for a careful agent.",
    "instructions": "Shows the project's CLAUDE.md, which was written before the recorded day, and nothing else.",
    "keep-everything": "Keeps every sentence of a conversation.",
    "keep-whole": "Keeps each conversation as one text.",
    "keep-nothing": "Keeps nothing of a conversation.",
    "random-as-many": "Keeps as many random sentences as the labels hold memories.",
}


def find_rarest(question: str, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the items that hold the rarest word of a question, then those with the next rarest."""
    words = content_words(question)
    held = [(item, content_words(item["text"]) & words) for item in items]
    count = Counter(word for _, own in held for word in own)
    found = [(min(count[word] for word in own), item) for item, own in held if own]
    return [item for _, item in sorted(found, key=lambda pair: pair[0])]


class Control:
    def __init__(self, name: str, seed: int = 1) -> None:
        self.name, self._dice = name, random.Random(seed)
        self._items: list[dict[str, Any]] = []
        self._instructions = ""

    def call(self, verb: str, **arguments: Any) -> Any:
        return getattr(self, f"do_{verb}")(**arguments)

    def do_reset(self) -> None:
        self._items, self._instructions = [], ""

    def do_add(self, **item: Any) -> None:
        self._items.append(item)

    def do_load(self, items: list[dict[str, Any]]) -> None:
        self._items += items

    def do_read(self, turns: list[dict[str, Any]], name: str, instructions: str = "") -> None:
        self._instructions = instructions
        self._items += [{**turn, "id": f"{name}#{at}"} for at, turn in enumerate(turns)]

    def do_learn(self, text: str, time: str, **rest: Any) -> None:
        self._items.append({"text": text, "time": time})

    def do_fail(self, text: str, **rest: Any) -> str:
        return "\n".join(one["text"] for one in self.do_prompt(text)[:1])

    def do_answer(self, question: str, time: str, tokens: int) -> str:
        texts = [one["text"] for one in self.do_ask(question, time, 10 * DEPTH)]
        return "\n".join(texts)[: 4 * tokens]

    def do_ask(self, question: str, time: str, k: int) -> list[dict[str, Any]]:
        if self.name == "silent":
            return []
        if self.name == "instructions":
            return [{"text": self._instructions, "id": ""}]
        ordered = sorted(self._items, key=lambda item: str(item["time"]), reverse=True)
        if self.name == "oldest-first":
            ordered.reverse()
        elif self.name == "newest-alone":
            ordered = ordered[:1]
        elif self.name == "random":
            self._dice.shuffle(ordered)
        elif self.name == "grep":
            ordered = find_rarest(question, ordered)
        return [{"text": item["text"], "id": item.get("id", "")} for item in ordered[:k]]

    def do_prompt(self, text: str) -> list[dict[str, Any]]:
        return self.do_ask(text, "", 2)

    def do_talk(self, turns: list[dict[str, str]], worth: int, **rest: Any) -> list[dict[str, str]]:
        """Keep sentences; `worth` is how many memories the labels hold, and only a control looks at it."""
        sentences = [
            part.strip()
            for turn in turns
            for part in re.split(r"(?<=[.!?])\s+|\n+", turn["text"])
            if len(part.split()) > 2
        ]
        if self.name == "keep-nothing":
            sentences = []
        elif self.name == "keep-whole":
            sentences = ["\n".join(turn["text"] for turn in turns)]
        elif self.name == "random-as-many":
            sentences = self._dice.sample(sentences, min(worth, len(sentences)))
        elif self.name != "keep-everything":
            raise Unsupported("It is no control for conversations.")
        return [{"text": sentence} for sentence in sentences]
