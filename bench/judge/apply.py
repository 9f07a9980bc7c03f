"""Teaches a trained judge which memory applies to a prompt, and turns the vectors of prompts to where such memories lie.

    python bench/judge/apply.py turn TURNED.npy --prompts prompts/*.jsonl …
    python bench/judge/apply.py teach WEIGHTS.npz OUT.npz --turned TURNED.npy --tokenizer FILE --prompts … --pool POOL.json --more MORE.jsonl …

`turn` learns one matrix from the embedding model's vectors of prompts and memories: minutes on a processor. `teach` takes as wrong
what the turned vectors find, and holds what the judge says of how two statements relate to what it was: by its own opinion of POOL
(a list of pairs), by the labels of `pairs/` and by those of MORE (every tenth is only measured). Projects whose names end in -8 are
held: the bars of the hook are set on them. Some minutes on a GPU.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
import train
from model import Judge, load, save
from train import Data, Deck, Pair, Relate

FOUND = 24  # memories that a turned prompt finds: the first that are wrong teach most
NEAREST, HARD, WRONG = (
    8,
    3,
    9,
)  # of them so many are near, so many of those are taken, and so many in all
PROMPTS, KEPT, LABELLED, MORE = 16, 96, 24, 28  # drawn in a step
RATE = 1e-4
SHARPNESS, STIFFNESS = 20.0, 1000.0  # of the choice among memories; against turning at all


class Project:
    """The memories of an imaginary project and what applies to its prompts."""

    def __init__(self, name: str, rows: list[dict]) -> None:
        self.name = name
        memories = [row for row in rows if row["type"] == "memory"]
        self.texts = [row["text"] for row in memories]
        self.prompts = [row for row in rows if row["type"] == "prompt"]
        places = {row["id"]: at for at, row in enumerate(memories)}
        self.right = [{places[id] for id in row["fits"] if id in places} for row in self.prompts]

    @property
    def is_held(self) -> bool:
        return self.name.endswith("-8")

    def embed(self, embedder) -> None:
        own = embedder.documents(self.texts)
        self.memory = torch.tensor(np.stack([vectors[0] for vectors in own]), dtype=torch.float32)
        asked = [embedder.query(row["text"]) for row in self.prompts]
        self.asked = torch.tensor(np.stack(asked), dtype=torch.float32)

    def find(self, turned: torch.Tensor) -> list[list[int]]:
        """The memories nearest to each prompt."""
        near = F.normalize(self.asked @ turned, dim=1) @ self.memory.T
        return near.topk(min(FOUND, len(self.texts)), dim=1).indices.tolist()


def read_projects(paths: list[Path]) -> list[Project]:
    rows: dict[str, list[dict]] = {}
    for path in paths:
        for row in train.read_rows(path):
            rows.setdefault(row.get("project", path.stem), []).append(row)
    return [Project(name, own) for name, own in rows.items()]


def fit_turn(projects: list[Project], rounds: int = 80) -> torch.Tensor:
    """The matrix that brings prompts near to what applies to them, and away from what does not."""
    size = projects[0].memory.shape[1]
    turned = torch.eye(size, requires_grad=True)
    optimiser = torch.optim.Adam([turned], lr=2e-3)
    for _ in range(rounds):
        lost, number = torch.zeros(()), 0
        for project in projects:
            near = SHARPNESS * F.normalize(project.asked @ turned, dim=1) @ project.memory.T
            chances = near.log_softmax(1)
            for at, right in enumerate(project.right):
                if right:
                    lost = lost - chances[at, sorted(right)].mean()
                    number += 1
        lost = lost / number + STIFFNESS * ((turned - torch.eye(size)) ** 2).mean()
        optimiser.zero_grad()
        lost.backward()
        optimiser.step()
    return turned.detach()


def list_asked(projects: list[Project], turned: torch.Tensor) -> list[tuple]:
    """Each prompt, what applies to it, and what the turned vectors find beside that, the nearest first."""
    asked = []
    for project in projects:
        texts = project.texts
        for row, right, found in zip(
            project.prompts, project.right, project.find(turned), strict=True
        ):
            wrong = [texts[at] for at in found if at not in right]
            asked.append((row["text"], [texts[at] for at in sorted(right)], wrong))
    return asked


class AppliedLesson:
    """Prompts, each with what applies and some of what the turned vectors find beside it."""

    def __init__(self, asked: list[tuple], device: str) -> None:
        self.asked, self.device = asked, device
        self.left: list = []

    def draw(self) -> list[Pair]:
        if len(self.left) < PROMPTS:
            self.left = random.sample(self.asked, len(self.asked))
        drawn, self.left = self.left[:PROMPTS], self.left[PROMPTS:]
        pairs: list[Pair] = []
        targets, self.groups = [], []
        for text, right, wrong in drawn:
            near, far = wrong[:NEAREST], wrong[NEAREST:]
            taken = random.sample(near, min(HARD, len(near)))
            taken += random.sample(far, min(WRONG - HARD, len(far)))
            start = len(pairs)
            pairs += [(text, one) for one in (*right[:2], *taken)]
            targets += [1.0] * len(right[:2]) + [0.0] * len(taken)
            if right:
                self.groups.append((start, len(pairs), len(right[:2])))
        self.targets = torch.tensor(targets, device=self.device)
        return pairs

    def lose(self, applies: torch.Tensor) -> torch.Tensor:
        """Each alone, and what applies among what does not."""
        lost = F.binary_cross_entropy_with_logits(applies, self.targets)
        for start, end, right in self.groups:
            chances = applies[start:end].log_softmax(0)[:right]
            lost = lost - 0.5 * chances.logsumexp(0) / len(self.groups)
        return lost


def teach(args: argparse.Namespace, projects: list[Project]) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    turned = torch.tensor(np.load(args.turned), dtype=torch.float32)
    data, weights = Data(args.tokenizer, device), load(args.weights)
    before, judge = Judge(), Judge()
    for one in (before, judge):
        one.load_state_dict(weights)
        one.to(device)
    pool = [tuple(pair) for pair in json.loads(args.pool.read_text(encoding="utf-8"))]
    data.read([text for pair in pool for text in pair])
    opinion = train.softmax(train.ask(before, data, pool)["relation"])
    kept = Deck(
        list(zip(pool, opinion, strict=True)),
        KEPT,
        lambda one: sum(len(data.tokens(text)) for text in one[0]),
    )
    learned = [one for one in projects if not one.is_held]
    applied = AppliedLesson(list_asked(learned, turned), device)
    paths = sorted((Path(__file__).parent / "pairs").glob("*.jsonl"))
    labelled = Relate([row for path in paths for row in train.read_rows(path)], data, LABELLED)
    rows = [row for path in args.more for row in train.read_rows(path)]
    more = Relate([row for at, row in enumerate(rows) if at % 10], data, MORE)
    more.weights = dict.fromkeys(more.weights, 1.0)
    optimiser = torch.optim.AdamW(judge.parameters(), lr=RATE, weight_decay=0.01)
    cast = torch.autocast(device, torch.bfloat16)
    judge.train()
    began = time.monotonic()
    while (through := (time.monotonic() - began) / args.seconds) < 1:
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1, through / 0.05) * (1 - through)
        held = kept.draw()
        lessons = [applied.draw(), [pair for pair, _ in held], labelled.draw(), more.draw()]
        said = train.judge_all(judge, data, [pair for pairs in lessons for pair in pairs], cast)
        parts = [part.split([len(pairs) for pairs in lessons]) for part in said.values()]
        own = [dict(zip(said, (part[at] for part in parts), strict=True)) for at in range(4)]
        was = torch.tensor(np.stack([opinion for _, opinion in held]), device=device)
        moved = F.kl_div(own[1]["relation"].log_softmax(-1), was, reduction="batchmean")
        lost = applied.lose(own[0]["applies"][:, 0]) + 3 * moved
        lost = lost + 0.3 * labelled.lose(own[2]) + more.lose(own[3])
        optimiser.zero_grad(set_to_none=True)
        lost.backward()
        torch.nn.utils.clip_grad_norm_(judge.parameters(), 1.0)
        optimiser.step()
    measured = rows[::10]
    said = train.ask(judge, data, [(row["old"], row["new"]) for row in measured])
    train.report("more, held", train.softmax(said["relation"]), measured)
    save(judge, args.out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("turn", "teach"))
    parser.add_argument("weights", type=Path, help="teach: the judge's; turn: the matrix to write")
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--prompts", type=Path, nargs="+", required=True)
    for name in ("turned", "tokenizer", "pool"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--more", type=Path, nargs="*", default=[])
    parser.add_argument("--seconds", type=float, default=270)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    from bethink import config
    from bethink.embed import open_embedder

    projects = read_projects(args.prompts)
    embedder = open_embedder(config.load())
    for project in projects:
        project.embed(embedder)
    if args.what == "turn":
        learned = [one for one in projects if not one.is_held]
        np.save(args.weights, fit_turn(learned).numpy().astype(np.float16))
    else:
        teach(args, projects)


if __name__ == "__main__":
    main()
