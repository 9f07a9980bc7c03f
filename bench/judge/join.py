"""Makes one model of two: a judge of twelve layers that reads conversations and passages after six of them, as a reader of six
layers does, while it goes on learning what applies to a prompt and how two statements relate.

    python bench/judge/join.py learn OUT.npz --start JUDGE.npz --judge JUDGE.npz --reader READER.npz --turned TURNED.npy --tokenizer … \\
        --prompts … --pool POOL.json --more MORE.jsonl … --chatter CHATTER.jsonl --talk TALK.jsonl --questions QUESTIONS.jsonl
    python bench/judge/join.py mix OUT.npz ONE.npz OTHER.npz …

What JUDGE says of how the pairs of POOL relate and what READER says of conversations and passages is kept; labels decide beside it. START
is JUDGE the first time, then what came out. Some minutes on a GPU. `mix` takes the mean of the weights of several.
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
from apply import AppliedLesson, read_projects
from heads import read_plain
from model import READ, READING, Judge, load, save
from train import Data, Deck, Pair, Read, Relate
from tune import read_asked, read_more, read_spoken

from bethink import config
from bethink.embed import open_embedder

POOL, TALK, ASKED, LABELLED, MORE, CHATTER, SPOKEN, PLAIN = 96, 64, 48, 24, 12, 32, 24, 18
KEPT = 50_000  # pairs of the pool


def read_judge(path: Path, device: str, layers: int | None = None) -> Judge:
    judge = Judge(layers) if layers else Judge(joined=True)
    judge.load_state_dict(load(path))
    return judge.to(device)


def say_early(judge: Judge, data: Data, pairs: list[Pair]) -> dict[str, torch.Tensor]:
    """What a joined judge tells after its first layers."""
    ids, sides, present = data.batch(pairs)
    seen = judge.sum_up(judge.read(ids, sides, present), present)
    return {name: judge.heads[name](seen).float() for name in READ}


class Reading:
    """Conversations and passages as the reader reads them."""

    def __init__(self, talk: list[Pair], asked: list[Pair], reader: Judge, data: Data) -> None:
        self.said = {
            name: train.ask(reader, data, talk)[name] for name in ("kind", "worth", "open")
        }
        self.fits = train.ask(reader, data, asked)["fits"][:, 0]

        def length(row: tuple[int, Pair]) -> int:
            return sum(len(data.tokens(text)) for text in row[1])

        self.talk = Deck(list(enumerate(talk)), TALK, length)
        self.asked = Deck(list(enumerate(asked)), ASKED, length)
        self.device = data.device

    def draw(self) -> list[Pair]:
        talk, asked = self.talk.draw(), self.asked.draw()
        at = [number for number, _ in talk]
        self.targets = {
            name: torch.tensor(said[at], device=self.device) for name, said in self.said.items()
        }
        self.targets["fits"] = torch.tensor(
            self.fits[[number for number, _ in asked]], device=self.device
        )
        return [pair for _, pair in (*talk, *asked)]

    def lose(self, said: dict[str, torch.Tensor]) -> torch.Tensor:
        number = len(self.targets["kind"])
        kinds = said["kind"][:number].log_softmax(-1)
        lost = F.kl_div(kinds, self.targets["kind"].softmax(-1), reduction="batchmean")
        for name in ("worth", "open"):
            lost = lost + 0.15 * F.mse_loss(said[name][:number], self.targets[name])
        return lost + 0.1 * F.mse_loss(said["fits"][number:, 0], self.targets["fits"])


def learn(args: argparse.Namespace) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    data = Data(args.tokenizer, device)
    judge = read_judge(args.start, device)
    before, reader = read_judge(args.judge, device), read_judge(args.reader, device, READING)
    projects = read_projects(args.prompts)
    embedder = open_embedder(config.load())
    for project in projects:
        project.embed(embedder)
    turned = torch.tensor(np.load(args.turned), dtype=torch.float32)
    applied = AppliedLesson([one for one in projects if not one.is_held], turned, device)
    pool = [tuple(pair) for pair in json.loads(args.pool.read_text("utf-8"))]
    pool = random.sample(pool, min(KEPT, len(pool)))
    opinion = train.softmax(train.ask(before, data, pool)["relation"])
    kept = Deck(
        list(zip(pool, opinion, strict=True)),
        POOL,
        lambda one: sum(len(data.tokens(text)) for text in one[0]),
    )
    pairs, _ = train.read_pairs([train.HERE / "pairs"], [])
    more, chatter = (read_more(paths)[0] for paths in (args.more, args.chatter))
    plain, _ = read_plain()
    relations = [
        (Relate(pairs, data, LABELLED), 0.3),
        (Relate(more, data, MORE, even=True), 0.15),
        (Relate(chatter, data, CHATTER, even=True), args.chatter_weight),
    ]
    talk = read_spoken(args.talk) + [(row["context"], row["text"]) for row in plain]
    reading = [
        (Reading(talk, read_asked([], args.questions), reader, data), 1.0),
        (Read(train.read_talk(args.talk), data, SPOKEN), 0.3),
        (Read(plain, data, PLAIN), 0.3),
    ]
    early = [one for name in READ for one in judge.heads[name].parameters()]
    known = {id(one) for one in early}
    rest = [one for one in judge.parameters() if id(one) not in known]
    optimiser = torch.optim.AdamW([{"params": rest}, {"params": early}], weight_decay=0.01)
    cast = torch.autocast(device, torch.bfloat16)
    judge.train()
    began = time.monotonic()
    while (through := (time.monotonic() - began) / args.seconds) < 1:
        pace = args.rate * min(1, through / 0.05) * (1 - (1 - args.end) * through)
        for group, times in zip(optimiser.param_groups, (1, 5), strict=True):
            group["lr"] = times * pace
        held = kept.draw()
        drawn = [applied.draw(), [pair for pair, _ in held], *(one.draw() for one, _ in relations)]
        said = train.judge_all(judge, data, [pair for part in drawn for pair in part], cast)
        sizes = [len(part) for part in drawn]
        relation, applies = (said[name].split(sizes) for name in ("relation", "applies"))
        was = torch.tensor(np.stack([one for _, one in held]), device=device)
        moved = F.kl_div(relation[1].log_softmax(-1), was, reduction="batchmean")
        lost = applied.lose(applies[0][:, 0]) + 3 * moved
        for (lesson, weight), part in zip(relations, relation[2:], strict=True):
            lost = lost + weight * lesson.lose({"relation": part})
        for lesson, weight in reading:
            with cast:
                found = say_early(judge, data, lesson.draw())
            lost = lost + args.reading * weight * lesson.lose(found)
        optimiser.zero_grad(set_to_none=True)
        lost.backward()
        torch.nn.utils.clip_grad_norm_(judge.parameters(), 1.0)
        optimiser.step()
    save(judge, args.out)


def mix(args: argparse.Namespace) -> None:
    states = [load(path) for path in args.weights]
    judge = Judge(joined=True)
    judge.load_state_dict(
        {name: sum(one[name] for one in states) / len(states) for name in states[0]}
    )
    save(judge, args.out)


def main() -> None:
    files = {"nargs": "+", "type": Path, "required": True}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    taught = commands.add_parser("learn")
    taught.add_argument("out", type=Path)
    for name in ("start", "judge", "reader", "turned", "tokenizer", "pool"):
        taught.add_argument(f"--{name}", type=Path, required=True)
    for name in ("prompts", "more", "chatter", "talk", "questions"):
        taught.add_argument(f"--{name}", **files)
    taught.add_argument("--chatter-weight", type=float, default=1.0)
    taught.add_argument("--reading", type=float, default=1.0, help="weight of what the reader says")
    taught.add_argument("--rate", type=float, default=1e-4)
    taught.add_argument("--end", type=float, default=0.0, help="share of the rate that is left")
    taught.add_argument("--seconds", type=float, default=490)
    taught.add_argument("--seed", type=int, default=0)
    taught.set_defaults(run=learn)
    mixed = commands.add_parser("mix")
    mixed.add_argument("out", type=Path)
    mixed.add_argument("weights", type=Path, nargs="+")
    mixed.set_defaults(run=mix)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
