"""Trains the judge: how a new statement relates to an old one, whether a memory applies to a prompt or answers a question,
and what a sentence of a conversation is.

How the weights that ship were made. BODY is the folder of the embedding model; TALK (labelled statements), MORE (labelled
pairs) and REAL (no labels) come from real conversations and are not ours to publish (`readings.py` makes a TALK of those who have
the conversations).

    python bench/judge/expand.py                                   # plain pairs out of subjects
    python bench/judge/collect.py ../shared/bench QUESTIONS        # questions and passages of the evaluation sets

    # Models with different seeds; a student of them, which then learns conversations and the pairs of MORE.
    python bench/judge/train.py --body BODY --out DIR --name T0 --seed 0 --prompts … --talk TALK --questions QUESTIONS --real REAL
    python bench/judge/train.py … --name S --teach DIR/T0-said.npz DIR/T1-said.npz DIR/T2-said.npz
    python bench/judge/heads.py DIR/S-weights.npz H.npz --body BODY --talk TALK
    python bench/judge/tune.py H.npz A.npz --tokenizer … --more MORE --share 0.35 --prompts … --questions … --talk TALK

    # Two language models, tuned on the same labels; students of them and of A.
    python bench/judge/distil.py pool POOL --body BODY --more MORE --real REAL
    python bench/judge/distil.py teach R0.npz --model SmolLM2-135M-Instruct.Q4_1.gguf --pool POOL --more MORE
    python bench/judge/distil.py teach R1.npz … --seed 1 --rate 8e-5
    python bench/judge/distil.py learn S12.npz --start A.npz --teach R0.npz R1.npz --pool POOL --more MORE \\
        --tokenizer … --prompts … --questions … --talk TALK
    python bench/judge/distil.py learn S6.npz … --layers 6 --steps 3400 --rate 1.5e-4

    # What applies to a prompt, and what chatter is; relations are held to what they were.
    python bench/judge/apply.py turn prompts.npy --prompts PROMPTS prompts/own.jsonl prompts/many.jsonl
    python bench/judge/apply.py teach S12.npz J.npz --turned prompts.npy --tokenizer … --prompts … --pool POOL --more MORE

    # The six layers learn conversations once more and keep half of what they said.
    python bench/judge/heads.py S6.npz S6-heads.npz --body BODY --talk TALK
    python bench/judge/distil.py blend S6.npz S6-heads.npz S6-blend.npz

    # One model of both: twice two seeds and their mean.
    python bench/judge/join.py learn A.npz --start J.npz --judge J.npz --reader S6-blend.npz --end 0.3 … (and B: --seed 1 --reading 2)
    python bench/judge/join.py mix AB.npz A.npz B.npz
    python bench/judge/join.py learn C.npz --start AB.npz --rate 7e-5 --seconds 420 --chatter-weight 1.2 … (and D: --reading 2)
    python bench/judge/join.py mix F.npz C.npz C.npz C.npz D.npz
    python bench/judge/export.py F.npz FOLDER --body BODY

    # What stands near in one memory mostly goes on to hold: all layers once more, two seeds and their mean. Its first six layers are the
    # reader that ships; `ship` then took both halves from the taught judge and turned the heads that read back by least squares (0.16).
    python bench/judge/neighbours.py collect WORK.json --prompts prompts/many.jsonl prompts/own.jsonl prompts/implied.jsonl PROMPTS --real REAL … --talk TALK --questions QUESTIONS
    python bench/judge/neighbours.py learn WORK.json A.npz --start FILES-OF-0.13 --whole --reading 2 --applies 3 --said SAID --steps 1450 --rate 2e-4 --seed 1 (and B: --seed 2)
    python bench/judge/neighbours.py ship FILES-OF-0.16 A.npz B.npz --start FILES-OF-0.13

    # A language model of 1.5 B parameters teaches relations and prompts (`teacher.py` says what was otherwise in the runs that ship):
    # two seeds and their mean, and what it all counts.
    python bench/judge/teacher.py collect WORK.json DATA.json --prompts prompts/many.jsonl prompts/own.jsonl prompts/implied.jsonl PROMPTS --dev PAIRS
    python bench/judge/teacher.py teach MODEL.gguf DATA.json SAID.npz --layers 24 --seconds 290 --questions QUESTIONS --body BODY --talk TALK
    python bench/judge/teacher.py learn DATA.json SAID.npz A.npz --start FILES-OF-0.16 --seconds 400 --seed 1 (and B: --seed 2)
    python bench/judge/neighbours.py ship src/bethink/judge/data A.npz B.npz --start FILES-OF-0.16
    python bench/judge/effects.py collect ROWS.json HISTORIES.jsonl; python bench/judge/effects.py fit ROWS.json --write

Each task is a `Lesson`: it draws some pairs for a step and says how wrong the answers are. Several models with different
seeds teach one student, which also reads unlabelled pairs (statements that stand near each other and belong to different
pairs), so that it learns what almost every neighbour in a real memory is: something else.

Needs torch, onnx and tokenizers, for `teacher.py` also accelerate, gguf and transformers (extra `bench`); nothing of it is needed
at run time. On a GPU a few minutes a command, on two cores some hours. Results are written as int8 weights (`.npz`), from which `export.py` makes the files that ship.
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import random
import re
import time
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from model import KINDS, LAYERS, RELATIONS, Judge, make_judge, read_body, save
from tokenizers import Tokenizer
from torch import nn

INDEX = {name: number for number, name in enumerate(RELATIONS)}
KIND = {name: number for number, name in enumerate(KINDS)}
SYMMETRIC = ("same", "contradicts", "unrelated")
STAYING = [INDEX[name] for name in ("refines", "unrelated", "contradicts", "same")]
TOKENS = 128  # of each text
NEAR = 24  # wrong passages and memories, the nearest ones, among which a lesson chooses
ASKING = "Represent this sentence for searching relevant passages: "
HERE = Path(__file__).parent

Pair = tuple[str, str]
Said = dict[str, torch.Tensor]  # what the judge says of a batch, by head


# The data


class Data:
    """All texts once, tokenised once."""

    def __init__(self, tokenizer: Path, device: str) -> None:
        self.tokenizer = Tokenizer.from_file(str(tokenizer))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.device = device
        self.known: dict[str, list[int]] = {}

    def read(self, texts: list[str]) -> None:
        new = sorted({text for text in texts if text not in self.known})
        for text, found in zip(
            new, self.tokenizer.encode_batch([text[:2000] for text in new]), strict=True
        ):
            self.known[text] = found.ids[1:-1][:TOKENS]

    def tokens(self, text: str) -> list[int]:
        if text not in self.known:
            self.known[text] = self.tokenizer.encode(text[:2000]).ids[1:-1][:TOKENS]
        return self.known[text]

    def batch(self, pairs: list[Pair]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        rows = []
        for one, other in pairs:
            first, second = [101, *self.tokens(one), 102], [*self.tokens(other), 102]
            rows.append((first + second, [0] * len(first) + [1] * len(second)))
        length = max(len(ids) for ids, _ in rows)
        ids, sides, present = (np.zeros((len(rows), length), np.int64) for _ in range(3))
        for at, (row, side) in enumerate(rows):
            ids[at, : len(row)], sides[at, : len(row)], present[at, : len(row)] = row, side, 1
        return tuple(torch.from_numpy(part).to(self.device) for part in (ids, sides, present))


def read_rows(path: Path, name: str = "") -> list[dict]:
    lines = path.read_text("utf-8").splitlines()
    return [{**json.loads(line), "file": name} for line in lines if line.strip()]


def read_pairs(paths: list[Path], dev: list[dict]) -> tuple[list[dict], list[dict]]:
    """Labelled pairs to learn, and those that are only measured. What is in `dev` is neither."""
    files = [
        file for one in paths for file in (sorted(one.glob("*.jsonl")) if one.is_dir() else [one])
    ]
    known = {(row["old"], row["new"]) for row in dev}
    rows = [row for file in files for row in read_rows(file, file.stem)]
    rows = [row for row in rows if (row["old"], row["new"]) not in known]
    held = [row for row in rows if row["file"] != "plain"][::10]  # every tenth is only measured
    out = set(map(id, held))
    easy = [row for row in rows if row["file"] == "plain" and row["relation"] == "unrelated"]
    out |= set(map(id, easy[::2]))  # most of what a memory holds, but little to learn from
    return [row for row in rows if id(row) not in out], held


def read_real(path: Path) -> list[list[str]]:
    """Real statements without labels, those of one conversation together."""
    grouped: dict[str, list[str]] = collections.defaultdict(list)
    for row in read_rows(path):
        grouped[row["group"]].append(row["text"])
    return [own for own in grouped.values() if len(own) > 3]


@torch.no_grad()
def embed(judge: Judge, data: Data, texts: list[str]) -> torch.Tensor:
    """What the untrained body, an embedding model, says of each text."""
    judge.eval()
    data.read(texts)
    found = []
    order = sorted(range(len(texts)), key=lambda at: len(data.tokens(texts[at])))
    for start in range(0, len(texts), 128):
        chosen = order[start : start + 128]
        rows = [[101, *data.tokens(texts[at])[:126], 102] for at in chosen]
        length = max(map(len, rows))
        ids, present = (np.zeros((len(rows), length), np.int64) for _ in range(2))
        for at, row in enumerate(rows):
            ids[at, : len(row)], present[at, : len(row)] = row, 1
        tensor = torch.from_numpy(ids).to(data.device)
        mask = (1 - torch.from_numpy(present).to(data.device).float())[:, None, None, :] * -1e4
        places = judge.places(torch.arange(length, device=data.device))
        states = judge.norm(judge.words(tensor) + places + judge.sides(tensor * 0))
        for layer in judge.layers:
            states = layer(states, mask)
        found.append(F.normalize(states[:, 0].float(), dim=-1))
    return torch.cat(found)[torch.tensor(order, device=data.device).argsort()]


def neighbour_pairs(
    vectors: torch.Tensor,
    texts: list[str],
    groups: list[int],
    most: int,
    nearest: int,
    apart: float,
) -> list[Pair]:
    """Pairs of texts of different groups that stand near each other, none nearer than `apart`."""
    group = torch.tensor(groups, device=vectors.device)
    found = []
    for start in range(0, len(texts), 1024):
        close = vectors[start : start + 1024] @ vectors.T
        close[group[start : start + 1024, None] == group[None, :]] = -1
        close[close > apart] = -1
        values, places = close.topk(nearest, 1)
        for row in range(close.shape[0]):
            for value, place in zip(values[row].tolist(), places[row].tolist(), strict=True):
                if value > 0:
                    found.append((texts[place], texts[start + row]))
    random.shuffle(found)
    return found[:most]


def far_pairs(rows: list[dict], most: int) -> list[dict]:
    """Statements of different projects that share words: side by side in a real memory, they are unrelated."""
    words = {
        text: set(re.findall(r"\w{4,}", text.lower()))
        for row in rows
        for text in (row["old"], row["new"])
    }
    texts = sorted(words)
    found = []
    for row in random.sample(rows, min(most, len(rows))):
        own = (row["old"], row["new"])
        others = [text for text in random.sample(texts, min(300, len(texts))) if text not in own]
        near = max(others, key=lambda text: len(words[text] & words[row["new"]]))
        found.append({"old": near, "new": row["new"], "relation": "unrelated"})
    return found


class Asked(dict):
    """A prompt or a question (`text`), what is `right` for it, and what is `wrong`, the nearest first."""


def read_prompts(path: Path) -> list[Asked]:
    memories: dict[str, dict[str, str]] = collections.defaultdict(dict)
    prompts = []
    for row in read_rows(path):
        if row["type"] == "memory":
            memories[row.get("project", "")][row["id"]] = row["text"]
        else:
            prompts.append(row)
    found = []
    for row in prompts:
        known = memories[row.get("project", "")]
        right = [known[id] for id in row["fits"] if id in known]
        wrong = [text for id, text in known.items() if id not in row["fits"]]
        found.append(Asked(text=row["text"], right=right, wrong=wrong))
    return found


def read_questions(path: Path) -> tuple[list[Asked], list[Asked]]:
    """Questions to learn, and those of the held scopes. A right passage is right alone; of the passages of a right session
    the nearest two are taken for right."""
    pools: dict[str, dict[str, str]] = collections.defaultdict(dict)
    asked = []
    for row in read_rows(path):
        if "question" in row:
            asked.append(row)
        else:
            pools[row["pool"]][row["id"]] = row["text"]
    learned, held = [], []
    for row in asked:
        pool = pools[row["pool"]]
        right = [pool[id] for id in row["right"] if id in pool]
        one = Asked(
            text=row["question"], right=right, pool=row["pool"], weak=row.get("weak", False)
        )
        if right:
            (held if row.get("held") else learned).append(one)
            one["held"] = bool(row.get("held"))
    for one in (*learned, *held):
        one["all"] = pools[one["pool"]]
    return learned, held


def find_wrong(asked: list[Asked], judge: Judge, data: Data) -> None:
    """The nearest wrong texts of each: what a search would offer."""
    texts = sorted({text for one in asked for text in known_texts(one)})
    place = {text: at for at, text in enumerate(texts)}
    vectors = embed(judge, data, texts)
    asking = embed(judge, data, [ASKING + one["text"] for one in asked])
    pools: dict[int, torch.Tensor] = {}
    for one, vector in zip(asked, asking, strict=True):
        key = id(one["all"]) if "all" in one else id(one)
        if key not in pools:
            pools[key] = torch.tensor(
                [place[text] for text in known_texts(one)], device=vectors.device
            )
        own = pools[key]
        order = own[(vectors[own] @ vector).topk(min(60, len(own))).indices].tolist()
        right = set(one["right"])
        one["found"] = [texts[at] for at in order][:40]
        one["wrong"] = [texts[at] for at in order if texts[at] not in right][:NEAR]
        if one.get("weak") and not one["held"]:
            near = sorted(one["right"], key=lambda text: -float(vectors[place[text]] @ vector))
            one["right"] = near[:2]


def known_texts(one: Asked) -> list[str]:
    return list(one["all"].values()) if "all" in one else [*one["right"], *one["wrong"]]


# The lessons


class Lesson(Protocol):
    def draw(self) -> list[Pair]:
        """Pairs for one step."""
        ...

    def lose(self, said: Said) -> torch.Tensor:
        """How wrong the judge is about the pairs that were drawn last."""
        ...


class Deck:
    """Rows in a random order that begins again at its end; rows of one step are of like length, because padding would be
    most of the work."""

    def __init__(self, rows: list, size: int, length) -> None:
        self.rows, self.size, self.length = rows, size, length
        self.steps: list[list] = []

    def draw(self) -> list:
        if not self.steps:
            order = random.sample(self.rows, len(self.rows))
            block = 20 * self.size
            for start in range(0, len(order), block):
                part = sorted(order[start : start + block], key=self.length)
                self.steps += [part[at : at + self.size] for at in range(0, len(part), self.size)]
            random.shuffle(self.steps)
        return self.steps.pop()


class Relate:
    """How a new statement relates to an old one; those without a direction are turned round half of the time.

    A rare relation weighs more, unless all weigh alike (`even`): most of what stands near is unrelated."""

    def __init__(self, rows: list[dict], data: Data, size: int, even: bool = False) -> None:
        count = collections.Counter(row["relation"] for row in rows)
        self.weights = {
            name: 1.0 if even else (len(rows) / len(RELATIONS) / max(count[name], 1)) ** 0.5
            for name in RELATIONS
        }
        self.device = data.device
        self.deck = Deck(
            rows, size, lambda row: len(data.tokens(row["old"])) + len(data.tokens(row["new"]))
        )

    def draw(self) -> list[Pair]:
        pairs, targets = [], []
        for row in self.deck.draw():
            old, new, name = row["old"], row["new"], row["relation"]
            if name in SYMMETRIC and random.random() < 0.5:
                old, new = new, old
            target = np.full(len(RELATIONS), 0.05 / len(RELATIONS), np.float32)
            target[INDEX[name]] += 0.95
            if "soft" in row:
                target = 0.5 * target + 0.5 * row["soft"]
            pairs.append((old, new))
            targets.append(target * np.float32(self.weights[name]))
        self.targets = torch.from_numpy(np.stack(targets)).to(self.device)
        return pairs

    def lose(self, said: Said) -> torch.Tensor:
        return -(self.targets * said["relation"].log_softmax(-1)).sum(-1).mean()


class Imitate:
    """Unlabelled pairs as the teachers judged them."""

    def __init__(self, pairs: list[Pair], soft: np.ndarray, data: Data, size: int) -> None:
        rows = list(zip(pairs, soft.astype(np.float32), strict=True))
        self.device = data.device
        self.deck = Deck(rows, size, lambda row: sum(len(data.tokens(text)) for text in row[0]))

    def draw(self) -> list[Pair]:
        drawn = self.deck.draw()
        self.targets = torch.from_numpy(np.stack([soft for _, soft in drawn])).to(self.device)
        return [pair for pair, _ in drawn]

    def lose(self, said: Said) -> torch.Tensor:
        return -(self.targets * said["relation"].log_softmax(-1)).sum(-1).mean()


class Spare:
    """Real neighbours: surely none replaces the other, and none is the same."""

    def __init__(self, pairs: list[Pair], data: Data, size: int) -> None:
        self.deck = Deck(pairs, size, lambda pair: sum(len(data.tokens(text)) for text in pair))

    def draw(self) -> list[Pair]:
        return self.deck.draw()

    def lose(self, said: Said) -> torch.Tensor:
        gone = said["relation"].softmax(-1)[:, [INDEX["replaces"], INDEX["same"]]].sum(-1)
        return -0.5 * torch.log1p(-gone.clamp(max=0.999)).mean()


class Apply:
    """Whether a memory applies to a prompt: what is right, and some of the nearest that are not."""

    def __init__(self, prompts: list[Asked], data: Data, size: int) -> None:
        self.device = data.device
        self.deck = Deck(prompts, size, lambda one: len(data.tokens(one["text"])))

    def draw(self) -> list[Pair]:
        pairs, targets = [], []
        for one in self.deck.draw():
            known = one.get("soft", {})
            wrong = random.sample(one["wrong"], min(4, len(one["wrong"])))
            for text in (*one["right"][:3], *wrong):
                hard = float(text in one["right"])
                pairs.append((one["text"], text))
                targets.append(0.5 * hard + 0.5 * known[text] if text in known else hard)
        self.targets = torch.tensor(targets, device=self.device)
        return pairs

    def lose(self, said: Said) -> torch.Tensor:
        return F.binary_cross_entropy_with_logits(said["applies"][:, 0], self.targets)


class Answer:
    """Which of eight passages answers a question: one that is right among seven that a search would offer."""

    CHOICES = 8

    def __init__(self, questions: list[Asked], data: Data, size: int) -> None:
        self.device = data.device
        enough = [one for one in questions if len(one["wrong"]) >= self.CHOICES - 1]
        self.deck = Deck(enough, size, lambda one: len(data.tokens(one["right"][0])))

    def draw(self) -> list[Pair]:
        pairs, self.targets = [], []
        for one in self.deck.draw():
            right = random.choice(one["right"])
            chosen = [right, *random.sample(one["wrong"], self.CHOICES - 1)]
            pairs += [(one["text"], text) for text in chosen]
            soft = one.get("soft")
            hard = [1.0] + [0.0] * (self.CHOICES - 1)
            if soft and all(text in soft for text in chosen):
                raised = np.exp(np.array([soft[text] for text in chosen]))
                hard = (0.5 * np.array(hard) + 0.5 * raised / raised.sum()).tolist()
            self.targets.append(hard)
        return pairs

    def lose(self, said: Said) -> torch.Tensor:
        chances = said["fits"][:, 0].view(-1, self.CHOICES).log_softmax(-1)
        targets = torch.tensor(self.targets, device=self.device)
        # The scale of an answer is learned, too: what is wrong is wrong alone, not only beside what is right.
        alone = F.binary_cross_entropy_with_logits(
            said["fits"][:, 0], (targets > 0.4).float().view(-1)
        )
        return -(targets * chances).sum(-1).mean() + 0.5 * alone


class Read:
    """What a statement of a conversation is in its place, whether it is worth keeping, and whether it stays open."""

    def __init__(self, rows: list[dict], data: Data, size: int) -> None:
        some = [row for row in rows if row["kind"] != "none" or row.get("word")]
        rest = [row for row in rows if row["kind"] == "none" and not row.get("word")]
        self.device = data.device

        def length(row: dict) -> int:
            return len(data.tokens(row["context"])) + len(data.tokens(row["text"]))

        # A third of what is learned was labelled by hand as something, or as a temptation.
        self.some, self.rest = Deck(some, size // 3, length), Deck(rest, size - size // 3, length)

    def draw(self) -> list[Pair]:
        drawn = [*self.some.draw(), *self.rest.draw()]
        kinds, worths, opens = [], [], []
        for row in drawn:
            kind = np.zeros(len(KINDS), np.float32)
            kind[KIND[row["kind"]]] = 1
            for name, share in row.get("kinds", {}).items():  # two people may see it differently
                kind[KIND[name]] = share
            worth = np.array(row["worths"], np.float32)
            still = {"open": 1.0, "closed": 0.0, "moot": 0.0}.get(row.get("state") or "", -1.0)
            if "soft" in row:
                soft = row["soft"]
                kind = 0.5 * kind + 0.5 * softmax(soft["kind"])
                worth = 0.5 * worth + 0.5 * sigmoid(soft["worth"])
                still = still if still < 0 else 0.5 * still + 0.5 * float(sigmoid(soft["open"])[0])
            kinds.append(0.97 * kind + 0.03 / len(KINDS))
            worths.append(worth)
            opens.append(still)
        self.kinds = torch.from_numpy(np.stack(kinds).astype(np.float32)).to(self.device)
        self.worths = torch.from_numpy(np.stack(worths).astype(np.float32)).to(self.device)
        self.opens = torch.tensor(opens, device=self.device, dtype=torch.float32)
        # A page may end behind any turn: what is said afterwards is not always known.
        return [(forget_reply(row["context"]), row["text"]) for row in drawn]

    def lose(self, said: Said) -> torch.Tensor:
        loss = -(self.kinds * said["kind"].log_softmax(-1)).sum(-1).mean()
        loss = loss + F.binary_cross_entropy_with_logits(said["worth"], self.worths)
        known = self.opens >= 0
        if known.any():
            loss = loss + F.binary_cross_entropy_with_logits(
                said["open"][known, 0], self.opens[known]
            )
        return loss


def forget_reply(context: str) -> str:
    return context.rpartition(" | ")[0] + " | " if random.random() < 0.15 else context


# Training


def train(
    judge: Judge,
    data: Data,
    lessons: dict[str, tuple[Lesson, float]],
    *,
    steps: int,
    seconds: float,
    rate: float,
    seed: int,
) -> None:
    """One cycle of learning rates, through so many steps or so much time, whatever ends first."""
    random.seed(seed)
    torch.manual_seed(seed)
    judge.to(data.device).train()
    heads = list(judge.heads.parameters())
    known = {id(one) for one in heads}
    body = [one for one in judge.parameters() if id(one) not in known]
    optimizer = torch.optim.AdamW(
        [{"params": body, "lr": rate}, {"params": heads, "lr": 10 * rate}],
        weight_decay=0.01,
        fused=data.device == "cuda",
    )
    cast = torch.autocast(data.device, dtype=torch.bfloat16, enabled=data.device == "cuda")
    lost: collections.Counter[str] = collections.Counter()
    started = time.time()
    for step in range(steps):
        through = max(step / steps, (time.time() - started) / seconds)
        if through >= 1:
            break
        pace = (
            through / 0.1
            if through < 0.1
            else 0.5 + 0.5 * math.cos(math.pi * (through - 0.1) / 0.9)
        )
        for group, own in zip(optimizer.param_groups, (rate, 10 * rate), strict=True):
            group["lr"] = own * max(pace, 1e-3)
        drawn = {name: lesson.draw() for name, (lesson, _) in lessons.items()}
        said = judge_all(judge, data, [pair for pairs in drawn.values() for pair in pairs], cast)
        total, end = torch.zeros((), device=data.device), 0
        for name, (lesson, weight) in lessons.items():
            start, end = end, end + len(drawn[name])
            loss = lesson.lose({head: part[start:end] for head, part in said.items()})
            total = total + weight * loss
            if not step % 50:
                lost[name] += loss.item()
        optimizer.zero_grad(set_to_none=True)
        total.backward()
        nn.utils.clip_grad_norm_(judge.parameters(), 1.0)
        optimizer.step()
        if step and not step % 500:
            seen = {name: round(value / 10, 3) for name, value in lost.items()}
            print(step, f"{time.time() - started:.0f} s", seen, flush=True)
            lost.clear()


def judge_all(judge: Judge, data: Data, pairs: list[Pair], cast: torch.autocast) -> Said:
    """What the judge says of the pairs of all lessons: in two batches, the short and the long, because padding costs time."""
    order = sorted(
        range(len(pairs)), key=lambda at: sum(len(data.tokens(text)) for text in pairs[at])
    )
    middle = len(order) * 2 // 3
    found = []
    for part in (order[:middle], order[middle:]):
        with cast:
            found.append(judge(*data.batch([pairs[at] for at in part])))
    back = torch.tensor(np.argsort(order), device=data.device)
    return {
        head: torch.cat([short.float(), long.float()])[back]
        for head, short, long in zip(judge.heads, *found, strict=True)
    }


@torch.no_grad()
def ask(judge: Judge, data: Data, pairs: list[Pair]) -> dict[str, np.ndarray]:
    """What the judge says of each pair, by head."""
    judge.eval()
    order = sorted(
        range(len(pairs)), key=lambda at: sum(len(data.tokens(text)) for text in pairs[at])
    )
    found: dict[str, list] = {name: [] for name in judge.heads}
    for start in range(0, len(order), 256):
        said = judge(*data.batch([pairs[at] for at in order[start : start + 256]]))
        for name, part in zip(judge.heads, said, strict=True):
            found[name].append(part.float().cpu().numpy())
    back = np.argsort(order)
    return {name: np.concatenate(parts)[back] for name, parts in found.items()}


def softmax(logits: np.ndarray) -> np.ndarray:
    raised = np.exp(logits - logits.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def sigmoid(logits: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-logits))


# Reports


def report(name: str, probabilities: np.ndarray, rows: list[dict]) -> dict:
    """How many are right, and at each bar how many replacements are found and how many of what must stay would be lost."""
    truth = np.array([INDEX[row["relation"]] for row in rows])
    said = probabilities.argmax(1)
    recall = {
        name: round(float((said[truth == number] == number).mean()), 2)
        for name, number in INDEX.items()
        if (truth == number).any()
    }
    stays = np.isin(truth, STAYING)
    bars = {}
    for bar in (0.5, 0.6, 0.7, 0.8, 0.9):
        sure = probabilities[:, 0] >= bar
        bars[bar] = (round(float(sure[truth == 0].mean()), 3), round(float(sure[stays].mean()), 3))
    loss = -np.log(np.maximum(probabilities[np.arange(len(truth)), truth], 1e-9)).mean()
    print(
        f"{name}: right {(said == truth).mean():.3f}, mean recall {np.mean(list(recall.values())):.3f},"
        f" loss {loss:.3f}, {recall}, replaces found/false {bars}",
        flush=True,
    )
    return {"right": float((said == truth).mean()), "bars": bars}


def report_prompts(name: str, judge: Judge, data: Data, prompts: list[Asked]) -> None:
    """Told rightly among the prompts that want a memory, silent rightly among the others, for several bars."""
    results = []
    for one in prompts:
        near = one["found"][:20]
        chances = sigmoid(ask(judge, data, [(one["text"], text) for text in near])["applies"][:, 0])
        best = sorted(zip(chances.tolist(), near, strict=True), reverse=True)[:2]
        results.append((best, set(one["right"])))
    for bar in (0.5, 0.6, 0.7, 0.8, 0.9, 0.95):
        told = [any(p >= bar and t in right for p, t in best) for best, right in results if right]
        silent = [not any(p >= bar for p, _ in best) for best, right in results if not right]
        noise = [sum(p >= bar and t not in right for p, t in best) for best, right in results]
        print(
            f"{name} prompts at {bar}: told {np.mean(told):.3f} silent {np.mean(silent):.3f}"
            f" noise {np.mean(noise):.2f}",
            flush=True,
        )


def report_questions(name: str, judge: Judge, data: Data, asked: list[Asked]) -> None:
    """nDCG@10 of the nearest forty, as they are and put in order by the judge, for each set."""
    sets: dict[str, list[Asked]] = collections.defaultdict(list)
    for one in asked:
        sets[one["pool"].partition("/")[0]].append(one)
    for of, ones in sorted(sets.items()):
        ones = ones[:150]
        gains: dict[str, list[float]] = collections.defaultdict(list)
        for one in ones:
            found = one["found"]
            fits = ask(judge, data, [(one["text"], text) for text in found])["fits"][:, 0]
            place = -np.arange(len(found)) / 8
            for share in (0.0, 0.3, 0.6, 1.0):
                mixed = share * standard(fits) + (1 - share) * standard(place)
                ranked = [found[at] for at in np.argsort(-mixed)[:10]]
                gains[str(share)].append(ndcg(ranked, set(one["right"])))
        print(
            f"{name} questions {of} ({len(ones)}): "
            + ", ".join(f"{share} {np.mean(values):.3f}" for share, values in gains.items()),
            flush=True,
        )


def standard(values: np.ndarray) -> np.ndarray:
    return (values - values.mean()) / max(float(values.std()), 1e-6)


def ndcg(ranked: list[str], right: set[str]) -> float:
    gain = sum(1 / np.log2(at + 2) for at, text in enumerate(ranked) if text in right)
    best = sum(1 / np.log2(at + 2) for at in range(min(10, len(right))))
    return gain / best


def report_talk(name: str, said: dict[str, np.ndarray], rows: list[dict]) -> None:
    """Of what is worth keeping, how much is found, and how much of what is kept is right, at several bars."""
    some, worth = sigmoid(said["worth"]).T
    kinds = softmax(said["kind"])
    golds = {(r["session"], r["gold"]) for r in rows if r["gold"] >= 0 and r["worth"] >= 2}
    keeps = 1 - kinds[:, KIND["none"]] - kinds[:, KIND["question"]] - kinds[:, KIND["todo"]]
    for form, scores in (("some", some), ("worth", worth), ("both", some * keeps)):
        line = []
        for size in (60, 100, 150, 200, 300):
            chosen = np.argsort(-scores)[:size]
            right = [rows[at]["gold"] >= 0 for at in chosen]
            hit = {(rows[at]["session"], rows[at]["gold"]) for at in chosen} & golds
            line.append(f"{size}: p {np.mean(right):.2f} r {len(hit) / len(golds):.2f}")
        print(f"{name} talk by {form}: {'; '.join(line)}", flush=True)
    opens = sigmoid(said["open"])[:, 0]
    for kind in ("question", "todo"):
        own = [at for at, row in enumerate(rows) if row["kind"] == kind]
        found = [at for at in range(len(rows)) if KINDS[kinds[at].argmax()] == kind]
        line = []
        for bar in (0.3, 0.5, 0.7, 0.8, 0.9):
            told = [at for at in found if opens[at] >= bar]
            good = [rows[at]["kind"] == kind and rows[at]["state"] == "open" for at in told]
            line.append(f"{bar}: {sum(good)}/{len(told)}")
        truly = sum(rows[at]["state"] == "open" for at in own)
        print(f"{name} {kind}: {len(own)} ({truly} open), found {len(found)}, {line}", flush=True)


# The whole


def read_talk(paths: list[Path]) -> list[dict]:
    rows = [row for path in paths for row in read_rows(path)]
    for row in rows:
        row.setdefault("worths", [float(row["worth"] >= 1), float(row["worth"] >= 2)])
        if row["kind"] in ("question", "todo"):
            row["worths"] = [0.0, 0.0]
    return rows


def add_soft(args, rows, mixed, prompts, questions, talk, data) -> np.ndarray | None:
    """What the teachers said of everything, beside the labels; and of the unlabelled pairs alone."""
    if not args.teach:
        return None
    said = [np.load(path) for path in args.teach]

    def mean(key: str, form=lambda logits: logits) -> np.ndarray:
        return np.mean([form(one[key].astype(np.float32)) for one in said if key in one.files], 0)

    for row, soft in zip(rows, mean("rows", softmax), strict=True):
        row["soft"] = soft.astype(np.float32)
    for key, asked in (("applies", prompts), ("fits", questions)):
        values = iter(mean(key).tolist())
        for one in asked:
            one["soft"] = {text: next(values) for text in offered(one)}
            if key == "applies":
                one["soft"] = {t: float(sigmoid(np.float64(v))) for t, v in one["soft"].items()}
    kind, worth, still = mean("kind"), mean("worth"), mean("open")
    for at, row in enumerate(talk):
        row["soft"] = {"kind": kind[at], "worth": worth[at], "open": still[at]}
    return mean("mixed", softmax)


def offered(one: Asked) -> list[str]:
    return list(dict.fromkeys([*one["right"], *one["wrong"]]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    path = {"type": Path}
    parser.add_argument("--body", required=True, help="folder: model.onnx, tokenizer.json", **path)
    parser.add_argument(
        "--pairs", nargs="*", default=[HERE / "pairs"], help="files, folders", **path
    )
    parser.add_argument("--dev", help="pairs that are only measured", **path)
    parser.add_argument("--prompts", nargs="*", default=[], **path)
    parser.add_argument("--prompts-dev", **path)
    parser.add_argument("--questions", help="made by collect.py", **path)
    parser.add_argument("--talk", nargs="*", default=[], help="labelled statements", **path)
    parser.add_argument("--talk-dev", **path)
    parser.add_argument("--real", help="{group, text}: real statements without labels", **path)
    parser.add_argument("--layers", type=int, default=LAYERS)
    parser.add_argument("--epochs", type=float, default=8, help="through the pairs")
    parser.add_argument("--seconds", type=float, default=1e9, help="at most, for the steps")
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", type=int, default=48, help="labelled pairs in a step")
    parser.add_argument("--far", type=int, default=3000, help="pairs of strangers: unrelated")
    parser.add_argument("--shares", default="", help="prompts:4,questions:4,talk:32 a step")
    parser.add_argument("--teach", nargs="*", default=[], help="what teachers said (.npz)", **path)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", required=True, **path)
    parser.add_argument("--name", default="judge")
    args = parser.parse_args()
    shares = {"prompts": 4, "questions": 3, "talk": 48}
    shares |= {k: int(v) for k, _, v in (x.partition(":") for x in args.shares.split(",") if x)}
    args.out.mkdir(parents=True, exist_ok=True)
    started = time.time()
    data = Data(args.body / "tokenizer.json", args.device)
    body = read_body(args.body / "model.onnx")
    start = make_judge(body, LAYERS).to(args.device).eval()
    dev = read_rows(args.dev) if args.dev else []
    rows, held = read_pairs(args.pairs, dev)
    random.seed(7)  # the same unlabelled pairs for teachers and students
    texts = [text for row in rows for text in (row["old"], row["new"])]
    groups = [number for number in range(len(rows)) for _ in range(2)]
    mixed = neighbour_pairs(embed(start, data, texts), texts, groups, 12000, 2, 0.97)
    strangers: list[Pair] = []
    if args.real:
        for own in read_real(args.real):
            vectors = embed(start, data, own)
            strangers += neighbour_pairs(vectors, own, list(range(len(own))), 1500, 1, 0.93)
        random.shuffle(strangers)
    prompts = [prompt for path in args.prompts for prompt in read_prompts(path)]
    prompts_dev = read_prompts(args.prompts_dev) if args.prompts_dev else []
    questions, asked = read_questions(args.questions) if args.questions else ([], [])
    for some in (prompts, prompts_dev, questions, asked):
        if some:
            find_wrong(some, start, data)
    talk = read_talk(args.talk)
    talk_dev = read_talk([args.talk_dev]) if args.talk_dev else []
    data.read([text for row in (*talk, *talk_dev) for text in (row["context"], row["text"])])
    soft = add_soft(args, rows, mixed, prompts, questions, talk, data)
    count = len(rows)
    lessons: dict[str, tuple[Lesson, float]] = {}
    if args.size:
        both = rows + far_pairs(rows, args.far)
        lessons["relate"] = (Relate(both, data, args.size), 1.0)
    if soft is not None and args.size:
        lessons["imitate"] = (Imitate(mixed, soft, data, args.size // 2), 1.0)
    if strangers and args.size:
        lessons["spare"] = (Spare(strangers, data, args.size // 3), 1.0)
    if prompts and shares["prompts"]:
        lessons["apply"] = (Apply(prompts, data, shares["prompts"]), 0.5)
    if questions and shares["questions"]:
        lessons["answer"] = (Answer(questions, data, shares["questions"]), 0.5)
    if talk and shares["talk"]:
        lessons["read"] = (Read(talk, data, shares["talk"]), 0.7)
    print(
        f"{args.name}: {count} pairs, {len(mixed)} mixed, {len(strangers)} real, {len(prompts)}"
        f" prompts, {len(questions)} questions, {len(talk)} statements, {time.time() - started:.0f} s",
        flush=True,
    )
    judge = make_judge(body, args.layers)
    steps = int(args.epochs * (count + args.far) / (args.size or 48))
    train(judge, data, lessons, steps=steps, seconds=args.seconds, rate=args.rate, seed=args.seed)
    print(f"{args.name}: trained {time.time() - started:.0f} s", flush=True)
    save(judge, args.out / f"{args.name}-weights.npz")
    for name, some in (("held", held), ("dev", dev)):
        if some and "relate" in lessons:
            pairs = [(row["old"], row["new"]) for row in some]
            report(f"{args.name} {name}", softmax(ask(judge, data, pairs)["relation"]), some)
    if "spare" in lessons:
        seen = softmax(ask(judge, data, strangers[:1500])["relation"])
        print(
            f"{args.name} real neighbours: replaces at .8 {(seen[:, 0] >= 0.8).mean():.4f},"
            f" same at .8 {(seen[:, 1] >= 0.8).mean():.4f}",
            flush=True,
        )
    if prompts_dev and "apply" in lessons:
        report_prompts(args.name, judge, data, prompts_dev)
    if asked and "answer" in lessons:
        report_questions(args.name, judge, data, asked)
    if talk_dev and "read" in lessons:
        said = ask(judge, data, [(row["context"], row["text"]) for row in talk_dev])
        report_talk(args.name, said, talk_dev)
    if not args.teach:
        told: dict[str, np.ndarray] = {}
        if "relate" in lessons:
            told["mixed"] = ask(judge, data, mixed)["relation"]
            told["rows"] = ask(judge, data, [(r["old"], r["new"]) for r in rows])["relation"]
        if "apply" in lessons:
            told["applies"] = say_of(judge, data, prompts, "applies")
        if "answer" in lessons:
            told["fits"] = say_of(judge, data, questions, "fits")
        if "read" in lessons:
            read = ask(judge, data, [(r["context"], r["text"]) for r in talk])
            told |= {name: read[name] for name in ("kind", "worth", "open")}
        np.savez(args.out / f"{args.name}-said.npz", **told)
    print(f"{args.name}: done {time.time() - started:.0f} s", flush=True)


def say_of(judge: Judge, data: Data, asked: list[Asked], head: str) -> np.ndarray:
    pairs = [(one["text"], text) for one in asked for text in offered(one)]
    return ask(judge, data, pairs)[head][:, 0] if pairs else np.zeros(0)


if __name__ == "__main__":
    main()
