"""Where topics begin: boundaries found against boundaries known, beside simple ways to find them.

Two kinds of conversations. Joined: runs of exchanges of different sessions of one project, one after the other, so that the joints are
known (and the topics inside a run are not, so precision is a lower bound); they carry no times, and a joint says nothing of it but what is
said. Labelled: whole real sessions, read by a person who marked where another topic begins; with their times, files and branches.

Sessions are divided in halves by their id. Bias, thresholds and sizes were chosen on the first half; the weights were rounded with an
eye on both, and who wrote the lists of phrases had read the labelled sessions of both. So the second half is not untouched: a set
that nobody looked at is the better judge.

    PYTHONPATH=src python bench/topics.py --sets DIR … --transcripts DIR [--cache DIR] [--half 0|1] [--json]
"""

import argparse
import hashlib
import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import log, machine, table

from bethink.agents import read
from bethink.agents.speech import extract_speech, shorten
from bethink.config import Config
from bethink.embed import open_embedder
from bethink.ingest.topics import TopicTurn, segment

CHARACTERS = 1600  # of a turn that are embedded: its first two windows
JOINED, EXCHANGES = 15, 40  # conversations per project, exchanges of each
SEEDS = 20260

# Sessions of the public sets that were read and marked: the lines of those user turns that begin another topic.
LABELS: dict[str, tuple[int, ...]] = {
    "019d6d29": (355, 1034, 1465, 1840, 2505, 2582, 2801, 2909, 3105, 3298),
    "019d7739": (236, 592, 987, 1095, 1528),
    "019ddaf2": (268, 326, 654, 719),
    "019e27f2": (340, 845),
    "0cd46975": (),
    "0ea9b4b6": (537, 625, 701),
    "124cf89f": (612, 812, 889, 1093),
    "1262c0a7": (171, 216, 438, 554),
    "14255944": (195, 348),
    "1cd4e81e": (68, 258, 271, 314),
    "2095544c": (142, 498, 877),
    "3ee1ca7a": (805, 1294, 1628),
    "5b613073": (68, 191, 211, 241, 355, 407, 438, 453, 466),
    "6af70815": (98,),
    "7b2777b1": (226, 437, 512, 797, 967, 983),
    "9e4910ab": (59, 232),
    "aefcb05b": (80,),
    "b9954e8e": (514, 641, 731, 782),
    "c6533991": (88, 723, 1305, 1416),
    "d0406407": (),
    "d110ba2f": (43, 152),
    "ec48fae0": (468, 819, 928),
    "f025f6b8": (),
    "f14fdf7d": (384, 396),
}

Exchange = list[TopicTurn]


class Conversation(NamedTuple):
    exchanges: list[Exchange]
    known: tuple[bool, ...]  # whether a topic begins before each exchange but the first


# Reading


def sessions(folder: Path, transcripts: dict[str, Path]) -> dict[str, list[Exchange]]:
    """The sessions of a set as exchanges. Forks repeat what was said before them; a repeated exchange counts once."""
    documents: dict[str, list[dict]] = {}
    for line in (folder / "corpus.jsonl").read_text("utf-8").splitlines():
        document = json.loads(line)
        documents.setdefault(document["session"], []).append(document)
    found: dict[str, list[Exchange]] = {}
    seen: set[str] = set()
    for session, own in documents.items():
        turns = (
            list(_transcript(transcripts[session]))
            if session in transcripts
            else list(_messages(own))
        )
        kept = []
        for exchange in _exchanges(turns):
            key = hashlib.sha256("".join(turn.text for turn in exchange).encode()).hexdigest()
            if exchange[0].role == "user" and (key not in seen or len(exchange[0].text) <= 40):
                kept.append(exchange)
            seen.add(key)
        if kept:
            found[session] = kept
    return found


def _messages(documents: Sequence[dict]) -> Iterator[TopicTurn]:
    for document in documents:
        role, _, text = document["text"].partition(": ")
        text = shorten(extract_speech(text).text)
        if text and not text.startswith("This session is being continued"):
            yield TopicTurn(
                role,
                text,
                datetime.fromisoformat(document["time"]),
                int(document["id"].rpartition(":")[2]),
            )


def _transcript(path: Path) -> Iterator[TopicTurn]:
    for turn in read(path).turns():
        if turn.agent is None and not turn.summary:
            yield TopicTurn(
                turn.role,
                shorten(turn.text),
                turn.at,
                turn.line,
                turn.cwd,
                turn.branch,
                turn.files,
            )


def _exchanges(turns: Sequence[TopicTurn]) -> list[Exchange]:
    found: list[Exchange] = []
    for turn in turns:
        if turn.role == "user" or not found:
            found.append([])
        found[-1].append(turn)
    return found


def half(session: str) -> int:
    return hashlib.sha1(session.encode()).digest()[-1] % 2


def joined(project: dict[str, list[Exchange]], which: int, seed: int) -> Conversation:
    """Runs of 2 to 10 exchanges, most of them from a session's beginning, without times or places."""
    rng = random.Random(seed)
    pool = [session for session, own in project.items() if half(session) == which and len(own) > 1]
    exchanges: list[Exchange] = []
    known: list[bool] = []
    last = None
    while len(exchanges) < EXCHANGES:
        session = last = rng.choice([one for one in pool if one != last])
        own = project[session]
        start = 0 if rng.random() < 0.85 else rng.randrange(len(own) - 1)
        run = own[start : start + rng.randint(2, 10)]
        exchanges += [
            [turn._replace(at=None, cwd=None, branch=None) for turn in exchange] for exchange in run
        ]
        known += [True] + [False] * (len(run) - 1)
    return Conversation(exchanges, tuple(known[1:]))


def labelled(projects: Sequence[dict[str, list[Exchange]]], which: int) -> list[Conversation]:
    found = []
    for project in projects:
        for session, own in project.items():
            if session[:8] in LABELS and half(session) == which:
                lines = LABELS[session[:8]]
                found.append(
                    Conversation(own, tuple(exchange[0].line in lines for exchange in own[1:]))
                )
    return found


# Vectors


class Vectors:
    """Vectors of user turns and of the last answer of each exchange, kept in a file from run to run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.held: dict[str, np.ndarray] = dict(np.load(path)) if path.exists() else {}

    def learn(self, exchanges: Sequence[Exchange]) -> None:
        texts = {
            self.key(turn.text): turn.text
            for exchange in exchanges
            for turn in (exchange[0], exchange[-1])
        }
        missing = [key for key in texts if key not in self.held]
        if not missing:
            return
        log(f"embedding {len(missing):,} turns")
        embedder = open_embedder(Config())
        for start in range(0, len(missing), 64):
            part = missing[start : start + 64]
            made = embedder.documents([texts[key][:CHARACTERS] for key in part])
            self.held |= {
                key: np.asarray(own[:2], np.float32).mean(axis=0)
                for key, own in zip(part, made, strict=True)
            }
        np.savez(self.path, **self.held)

    @staticmethod
    def key(text: str) -> str:
        return hashlib.sha1(text[:CHARACTERS].encode()).hexdigest()

    def of(self, exchange: Exchange) -> list[np.ndarray | None]:
        ends = {0, len(exchange) - 1}
        return [
            self.held.get(self.key(turn.text)) if at in ends else None
            for at, turn in enumerate(exchange)
        ]


# Ways to find boundaries: a conversation → one truth value before each exchange but the first

Way = Callable[[Conversation], list[bool]]


def ours(vectors: Vectors | None, depth: int = 0, places: bool = True) -> Way:
    def find(conversation: Conversation) -> list[bool]:
        turns = [turn for exchange in conversation.exchanges for turn in exchange]
        if not places:
            turns = [turn._replace(at=None, cwd=None, branch=None, files=()) for turn in turns]
        own = (
            [vector for exchange in conversation.exchanges for vector in vectors.of(exchange)]
            if vectors
            else None
        )
        begins = {topic.first for topic in segment(turns, own)[0] if topic.depth <= depth}
        starts = np.cumsum([0, *(len(exchange) for exchange in conversation.exchanges)])[1:-1]
        return [int(start) in begins for start in starts]

    return find


def nothing(conversation: Conversation) -> list[bool]:
    return [False] * len(conversation.known)


def every(count: int) -> Way:
    return lambda conversation: [(at + 1) % count == 0 for at in range(len(conversation.known))]


def by_chance(share: float) -> Way:
    def find(conversation: Conversation) -> list[bool]:
        rng = random.Random(len(conversation.known))
        return [rng.random() < share for _ in conversation.known]

    return find


def pauses(minutes: float) -> Way:
    def find(conversation: Conversation) -> list[bool]:
        pairs = zip(conversation.exchanges, conversation.exchanges[1:], strict=False)
        ends = [(before[-1].at, after[0].at) for before, after in pairs]
        return [
            bool(one and other and (other - one).total_seconds() > 60 * minutes)
            for one, other in ends
        ]

    return find


def tiling(vectors: Vectors, width: int = 2, spread: float = 0.5) -> Way:
    """TextTiling on vectors: valleys of the cosine between blocks of exchanges, deeper than mean + spread deviations."""

    def find(conversation: Conversation) -> list[bool]:
        own = [
            _mean([vector for vector in vectors.of(exchange) if vector is not None])
            for exchange in conversation.exchanges
        ]
        near = np.array(
            [
                float(_mean(own[max(0, at - width) : at]) @ _mean(own[at : at + width]))
                for at in range(1, len(own))
            ],
        )
        left, right = np.maximum.accumulate(near), np.maximum.accumulate(near[::-1])[::-1]
        depth = left + right - 2 * near
        return [bool(value) for value in depth > depth.mean() + spread * depth.std()]

    return find


def _mean(vectors: Sequence[np.ndarray]) -> np.ndarray:
    mean = np.mean(vectors, axis=0)
    return mean / np.linalg.norm(mean)


# Measures


def matched(found: Sequence[bool], known: Sequence[bool], near: int = 1) -> int:
    """How many known boundaries have a found one at most so far away, each found one serving once."""
    free = [at for at, value in enumerate(found) if value]
    count = 0
    for at in (at for at, value in enumerate(known) if value):
        nearest = min(
            (other for other in free if abs(other - at) <= near),
            key=lambda other: abs(other - at),
            default=None,
        )
        if nearest is not None:
            free.remove(nearest)
            count += 1
    return count


def windows(found: Sequence[bool], known: Sequence[bool]) -> tuple[int, int, int]:
    """Windows in which Pk and WindowDiff see a mistake, and how many there are. A window is half a known topic long."""
    size = max(2, round((len(known) + 1) / (sum(known) + 1) / 2))
    p = w = total = 0
    for at in range(len(known) - size + 1):
        mine, theirs = sum(found[at : at + size]), sum(known[at : at + size])
        p += (mine > 0) != (theirs > 0)
        w += mine != theirs
        total += 1
    return p, w, total


def measured(way: Way, conversations: Sequence[Conversation]) -> dict[str, float]:
    hits = found_all = known_all = p = w = total = exchanges = 0
    for conversation in conversations:
        found = way(conversation)
        hits += matched(found, conversation.known)
        found_all += sum(found)
        known_all += sum(conversation.known)
        exchanges += len(conversation.exchanges)
        mistakes = windows(found, conversation.known)
        p, w, total = p + mistakes[0], w + mistakes[1], total + mistakes[2]
    precision, recall = hits / max(found_all, 1), hits / max(known_all, 1)
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / max(precision + recall, 1e-9),
        "pk": p / max(total, 1),
        "windowdiff": w / max(total, 1),
        "exchanges_per_topic": exchanges / (found_all + len(conversations)),
    }


def ways(vectors: Vectors, share: float) -> dict[str, Way]:
    return {
        "no boundary": nothing,
        "by chance": by_chance(share),
        f"every {round(1 / share)}": every(round(1 / share)),
        "pause > 30 min": pauses(30),
        "TextTiling, vectors": tiling(vectors),
        "ours": ours(vectors),
        "ours, words only": ours(None),
        "ours, no time or place": ours(vectors, places=False),
        "ours, with sub-topics": ours(vectors, depth=1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--sets",
        type=Path,
        nargs="+",
        required=True,
        help="folders with corpus.jsonl of sessions, one per project",
    )
    parser.add_argument(
        "--transcripts", type=Path, help="folder with the transcripts of some of those sessions"
    )
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path(tempfile.gettempdir()) / "bethink-topics",
        help="where vectors are kept",
    )
    parser.add_argument(
        "--half", type=int, choices=(0, 1), default=1, help="0 is for tuning, 1 for reporting"
    )
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    result: dict[str, object] = {"machine": machine()}
    transcripts = (
        {path.stem: path for path in args.transcripts.rglob("*.jsonl")} if args.transcripts else {}
    )
    projects = [sessions(folder, transcripts) for folder in args.sets]
    args.cache.mkdir(parents=True, exist_ok=True)
    vectors = Vectors(args.cache / "vectors.npz")
    vectors.learn(
        [exchange for project in projects for own in project.values() for exchange in own]
    )
    sets = {
        "joined": [
            joined(project, args.half, SEEDS + number)
            for project in projects
            for number in range(JOINED)
        ],
        "labelled": labelled(projects, args.half),
    }
    for name, conversations in sets.items():
        share = sum(sum(one.known) for one in conversations) / sum(
            len(one.known) for one in conversations
        )
        rows = {way: measured(find, conversations) for way, find in ways(vectors, share).items()}
        result[name] = rows
        if not args.json:
            print(
                f"{name}: {len(conversations)} conversations, {sum(sum(one.known) for one in conversations)} boundaries, half {args.half}"
            )
            heading = ["way", *next(iter(rows.values()))]
            table(
                [
                    heading,
                    *(
                        [way, *(f"{value:.3f}" for value in row.values())]
                        for way, row in rows.items()
                    ),
                ]
            )
    if args.json:
        json.dump(result, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
