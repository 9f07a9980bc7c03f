"""Recall of rules that an earlier conversation settled, at the bug report of a later session.

    python bench/sde.py FOLDER [--half read|unread] [--keep FOLDER] [--show]

FOLDER has `tasks.jsonl` (id, bug_report, conversations, policy) and `decoys.jsonl`. All conversations become transcripts of one project,
spread over four months, and are read by `backfill`. Each bug report is then a prompt and a search. Counted are the reports at which
the prompt hook, or one of the first three hits, has the deciding rule: texts of the right conversation that together hold `WHOLE` of the
words and half of the numbers of the policy. A rejected proposal is an answer of the agent to which the user's next words begin with a refusal.
Controls: BM25 over the turns, and the newest turns. The halves are the tasks in the order of their names; `read` are those that were looked at.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from common import log, table

from bethink.api import Bethink
from bethink.app.mcp.tools import find_spread
from bethink.config import Config
from bethink.features import conversations
from bethink.hooks import prompt, state
from bethink.language.words import STOP_WORDS
from bethink.recall.shape import tokens
from bethink.store.words import tokenize

WHOLE = 0.6  # share of a policy's words
NOW = datetime(2026, 9, 1, 9, tzinfo=UTC)
DAYS = 120
HITS = 3
REFUSES = re.compile(r"\W*(no\b|not\b|nope|never|don't|do not|wrong|absolutely not)", re.I)
NUMBERS = dict(
    zip("one two three four five six seven eight nine ten".split(), range(1, 11), strict=True)
)
NUMBERS |= {"twenty-four": 24, "sixty": 60, "thirty": 30, "twice": 2, "half": 0}


class Chat(NamedTuple):
    name: str
    turns: Sequence[dict[str, str]]
    at: datetime

    def is_refused(self, line: int) -> bool:
        """Return True for an answer of the agent that the user's next words refuse."""
        if not 0 < line < len(self.turns) or self.turns[line - 1]["role"] == "user":
            return False
        return bool(REFUSES.match(self.turns[line]["text"]))


class Text(NamedTuple):
    """A text that is shown, with the chat and the line it is from."""

    text: str
    chat: str
    line: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--half", choices=("read", "unread"))
    parser.add_argument("--keep", type=Path, help="folder of a database to make once and use again")
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args()
    tasks = read(args.folder / "tasks.jsonl")
    chats = make_chats(tasks, read(args.folder / "decoys.jsonl"))
    with tempfile.TemporaryDirectory(prefix="bethink-bench-") as temporary:
        folder = args.keep or Path(temporary)
        memory = load(folder, chats)
        middle = len(tasks) // 2
        halves = {"unread": tasks[:middle], "read": tasks[middle:]}
        rows = [("half", "way", "tasks", "whole", "part", "none", "refused", "old first", "tokens")]
        for half, own in halves.items():
            if args.half in (None, half):
                rows += measure(memory, half, own, chats, args.show)
        table(rows)
        memory.close()


def read(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]


def make_chats(tasks: Sequence[dict], decoys: Sequence[dict]) -> dict[str, Chat]:
    """Spread all conversations over `DAYS` days; the parts of a task keep their order."""
    parts = [
        (f"{one['id']}.{at}", talk) for one in tasks for at, talk in enumerate(one["conversations"])
    ]
    parts += [(f"decoy.{at}", one["conversation"]) for at, one in enumerate(decoys)]
    # A stride that has no divisor with the number of conversations mixes tasks and decoys without chance.
    order = {name: (at * 37) % len(parts) for at, (name, _) in enumerate(parts)}
    for one in tasks:
        own = [f"{one['id']}.{at}" for at in range(len(one["conversations"]))]
        order |= dict(zip(own, sorted(order[name] for name in own), strict=True))
    step = timedelta(days=DAYS) / len(parts)
    return {
        name: Chat(name, talk, NOW - timedelta(days=DAYS) + step * order[name])
        for name, talk in parts
    }


def load(folder: Path, chats: dict[str, Chat]) -> Bethink:
    project = folder / "project"
    (project / ".git").mkdir(parents=True, exist_ok=True)
    known = (folder / "memory.db").exists()
    memory = Bethink(folder / "memory.db", directory=project, config=Config(), clock=lambda: NOW)
    if not known:
        log(f"reading {len(chats)} conversations")
        files = [
            write(folder, project, chat) for chat in sorted(chats.values(), key=lambda one: one.at)
        ]
        done = conversations.backfill(memory, [("claude", file) for file in files], trusted=True)
        log(f"{done.turns} turns, {done.ideas} ideas")
    return memory


def write(folder: Path, project: Path, chat: Chat) -> Path:
    lines = []
    for at, turn in enumerate(chat.turns):
        role = turn["role"]
        content = turn["text"] if role == "user" else [{"type": "text", "text": turn["text"]}]
        entry = {
            "type": role,
            "uuid": f"{chat.name}-{at}",
            "parentUuid": f"{chat.name}-{at - 1}" if at else None,
            "sessionId": chat.name,
            "cwd": str(project),
            "timestamp": f"{chat.at + timedelta(minutes=at):%Y-%m-%dT%H:%M:%S.000Z}",
            "message": {
                "role": role,
                "content": content,
                **({"id": f"m{at}", "model": "model"} if role != "user" else {}),
            },
        }
        lines.append(json.dumps(entry))
    file = folder / f"{chat.name}.jsonl"
    file.write_text("\n".join(lines) + "\n", "utf-8")
    return file


def measure(
    memory: Bethink, half: str, tasks: Sequence[dict], chats: dict[str, Chat], show: bool
) -> list[tuple]:
    turns = [
        Text(turn["text"], chat.name, at)
        for chat in chats.values()
        for at, turn in enumerate(chat.turns, 1)
    ]
    rank = bm25([one.text for one in turns])
    newest = sorted(turns, key=lambda one: (chats[one.chat].at, one.line))[-HITS:]
    counts: dict[str, Counter] = {}
    for task in tasks:
        report = task["bug_report"]
        ways = {
            "prompt": show_at_prompt(memory, report),
            "search": search(memory, report),
            "BM25": [turns[at] for at in rank(report)[:HITS]],
            "newest": newest,
        }
        verdicts = {}
        for way, texts in ways.items():
            found = judge(task, texts, chats)
            counts.setdefault(way, Counter()).update(found)
            verdicts[way] = next(name for name in ("whole", "part", "none") if found[name])
        own = verdicts["prompt"] == "whole" or verdicts["search"] == "whole"
        counts.setdefault("prompt or search", Counter())["whole" if own else "none"] += 1
        if show:
            print(f"\n== {task['id']}  {verdicts}\n   policy: {task['policy']}")
            for way in ("prompt", "search"):
                for one in ways[way]:
                    refused = " REFUSED" if chats[one.chat].is_refused(one.line) else ""
                    print(
                        f"   {way}: {one.chat}:{one.line}{refused} {' '.join(one.text.split())[:300]}"
                    )
    return [
        (
            half,
            way,
            len(tasks),
            *(found[name] for name in ("whole", "part", "none", "refused", "old first")),
            found["tokens"] / len(tasks),
        )
        for way, found in counts.items()
    ]


def judge(task: dict, texts: Sequence[Text], chats: dict[str, Chat]) -> Counter:
    # Two tasks may report the same bug: then either conversation has the rule, except for one that was amended.
    own = task["id"].removesuffix("-amended")
    right = [one for one in texts if one.chat.rpartition(".")[0].removesuffix("-amended") == own]
    stale = f"{own}-amended.0"
    words, said = telling(task["policy"]), telling("\n".join(one.text for one in right))
    numbers = {one for one in words if one.isdigit()}
    share = len(words & said) / len(words)
    whole = (
        share >= WHOLE
        and len(numbers & said) >= len(numbers) / 2
        and any(one.chat != stale for one in right)
    )
    verdict = "whole" if whole else "part" if right else "none"
    order = [one.chat != stale for one in right]
    found = Counter({verdict: 1, "tokens": sum(tokens(one.text) for one in texts)})
    found["refused"] = any(chats[one.chat].is_refused(one.line) for one in texts)
    found["old first"] = bool(order) and True in order and not order[0]
    return found


def telling(text: str) -> set[str]:
    """The words of a text that carry its meaning; numbers as digits, apart from their units."""
    plain = re.sub(r"[a-z-]+", lambda found: str(NUMBERS.get(found[0], found[0])), text.lower())
    plain = re.sub(r"(\d)([a-z])", r"\1 \2", plain)
    return set(tokenize(plain)) - set(tokenize(" ".join(STOP_WORDS)))


def show_at_prompt(memory: Bethink, report: str) -> list[Text]:
    hook = state.Hook("prompt", "claude", prompt=report, session="next")
    context = prompt.recall_for_prompt(hook, memory)
    body = context.text
    found = []
    for one in memory.store.get(list(context.ids)):
        short = memory.store.abbreviate([one.id])[one.id]
        line = next((line for line in body.splitlines() if short in line), "")
        found.append(Text(line or body, str(one.session), one.lines[0] if one.lines else 0))
    return found


def search(memory: Bethink, report: str) -> list[Text]:
    answer = find_spread(memory, report, HITS)
    return [
        Text(
            hit.memory.content,
            str(hit.memory.session),
            hit.memory.lines[0] if hit.memory.lines else 0,
        )
        for hit in answer.hits[:HITS]
    ]


def bm25(texts: Sequence[str]):
    documents = [Counter(tokenize(text)) for text in texts]
    count = Counter(word for one in documents for word in one)
    average = sum(sum(one.values()) for one in documents) / len(documents)

    def rank(question: str) -> list[int]:
        words = set(tokenize(question))

        def score(document: Counter) -> float:
            total, size = 0.0, sum(document.values())
            for word in words & document.keys():
                rarity = math.log(1 + (len(documents) - count[word] + 0.5) / (count[word] + 0.5))
                total += (
                    rarity
                    * document[word]
                    * 2.2
                    / (document[word] + 1.2 * (0.25 + 0.75 * size / average))
                )
            return total

        return sorted(range(len(documents)), key=lambda at: -score(documents[at]))

    return rank


main()
