"""Controls that understand nothing: what a cheat would get. They run inside the runner and read no word but to return it.

`newest first` and `oldest first` go by the clock. `newest alone` says that each statement replaced the one before it. `random` shuffles.
`silent` never says anything. `keep everything` (sentence by sentence), `keep whole` (the conversation as one text),
`keep nothing` and `random as many` are for conversations.
"""

from __future__ import annotations

import random
import re
from typing import Any

from tasks import Unsupported

# control → the tasks that it is there for
CONTROLS = {
    "newest-first": ("change", "recall", "silence", "poison"),
    "oldest-first": ("poison",),
    "newest-alone": ("change",),
    "random": ("recall", "silence"),
    "silent": ("silence",),
    "keep-everything": ("understanding",),
    "keep-whole": ("understanding",),
    "keep-nothing": ("understanding",),
    "random-as-many": ("understanding",),
}


class Control:
    def __init__(self, name: str, seed: int = 1) -> None:
        self.name, self._dice = name, random.Random(seed)
        self._items: list[dict[str, Any]] = []

    def call(self, verb: str, **arguments: Any) -> Any:
        return getattr(self, f"do_{verb}")(**arguments)

    def do_reset(self) -> None:
        self._items = []

    def do_add(self, **item: Any) -> None:
        self._items.append(item)

    def do_load(self, items: list[dict[str, Any]]) -> None:
        self._items += items

    def do_ask(self, question: str, time: str, k: int) -> list[dict[str, Any]]:
        ordered = sorted(self._items, key=lambda item: str(item["time"]), reverse=True)
        if self.name == "oldest-first":
            ordered.reverse()
        elif self.name == "newest-alone":
            ordered = ordered[:1]
        elif self.name == "random":
            self._dice.shuffle(ordered)
        return [{"text": item["text"], "id": item.get("id", "")} for item in ordered[:k]]

    def do_prompt(self, text: str) -> list[dict[str, Any]]:
        return [] if self.name == "silent" else self.do_ask(text, "", 2)

    def do_talk(self, turns: list[dict[str, str]], worth: int, **rest: Any) -> list[dict[str, str]]:
        """`worth` is how many memories the labels hold: only a control looks at it."""
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
