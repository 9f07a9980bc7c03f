"""Teaches the judge what language models say of unlabelled pairs. `train.py` names the whole chain of commands.

    python bench/judge/distil.py pool POOL.jsonl --body MODEL_DIR --more MORE.jsonl --real REAL.jsonl
    python bench/judge/distil.py teach SAID.npz --model FILE.gguf --pool POOL.jsonl --more MORE.jsonl
    python bench/judge/distil.py learn OUT.npz --start WEIGHTS.npz --teach SAID.npz … --pool POOL.jsonl --more … --talk …
    python bench/judge/distil.py blend ONE.npz OTHER.npz OUT.npz

`pool` collects pairs of statements that stand near each other. `teach` tunes a language model on the labelled pairs and
writes what it says of the pool. `learn` makes a student of twelve layers or fewer that begins as the judge START: relations it
learns from the labels and from the mean of what the teachers and START say of the pool; all else it goes on saying as START
does. `blend` takes the heads of two judges of one body half and half.

`teach` and `learn` take six to eight minutes each on a GPU, on two cores days.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from pathlib import Path

import numpy as np
import torch
import train
from language import read_language
from model import LAYERS, Judge, count_layers, load, make_judge, read_body, save
from torch import nn
from train import HERE, Data, Imitate, Pair, Relate
from tune import deal, measure, read_asked, read_more, read_spoken, tune

# The pool: neighbours of each statement, neighbours among labelled pairs at most, labelled pairs turned round.
NEAREST, MOST, TURNED = 3, 60_000, 6_000


class Pairs:
    """What both teachers and students learn of relations, and what is only measured."""

    def __init__(self, args: argparse.Namespace) -> None:
        dev = train.read_rows(args.dev) if args.dev else []
        self.rows, held = train.read_pairs([HERE / "pairs"], dev)
        self.more, more_held = read_more(args.more)
        plain = train.read_rows(HERE / "plain-held.jsonl")
        self.measured = {"held": held, "dev": dev, "plain": plain, "more, held": more_held}

    def lessons(self, data: Data) -> list[Relate]:
        both = self.rows + train.far_pairs(self.rows, 3000)
        return [Relate(both, data, 48), Relate(self.more, data, 16, even=True)]


def collect_pool(args: argparse.Namespace) -> None:
    """Neighbours in each real conversation, neighbours among the texts of different labelled pairs, and these pairs themselves,
    some of them turned round."""
    pairs = Pairs(args)
    data = Data(args.body / "tokenizer.json", args.device)
    body = make_judge(read_body(args.body / "model.onnx"), LAYERS).to(args.device)

    def find_near(texts: list[str], groups: list[int], most: int) -> list[Pair]:
        vectors = train.embed(body, data, texts)
        return train.neighbour_pairs(vectors, texts, groups, most, NEAREST, 0.97)

    pool: list[Pair] = []
    for own in train.read_real(args.real):
        pool += find_near(own, list(range(len(own))), NEAREST * len(own))
    texts = [text for row in pairs.rows for text in (row["old"], row["new"])]
    pool += find_near(texts, [at // 2 for at in range(len(texts))], MOST)
    pool += [(row["old"], row["new"]) for row in (*pairs.rows, *pairs.more)]
    turned = random.sample(pairs.rows, min(TURNED, len(pairs.rows)))
    pool += [(row["new"], row["old"]) for row in turned]
    with args.out.open("w", encoding="utf-8") as file:
        for old, new in pool:
            print(json.dumps({"old": old, "new": new}, ensure_ascii=False), file=file)
    print(f"{len(pool)} pairs")


def read_pool(path: Path) -> list[Pair]:
    return [(row["old"], row["new"]) for row in train.read_rows(path)]


def tune_teacher(args: argparse.Namespace) -> None:
    """A language model learns the labelled pairs in one cycle of learning rates, and says what it thinks of the pool."""
    pairs = Pairs(args)
    language, data = read_language(args.model, args.device)
    cuda = args.device == "cuda"
    cast = torch.autocast(args.device, torch.bfloat16, enabled=cuda)
    lessons = pairs.lessons(data)
    heads = list(language.heads.parameters())
    body = [one for name, one in language.named_parameters() if not name.startswith("heads.")]
    rates = (args.rate, 1e-3)
    optimizer = torch.optim.AdamW(
        [{"params": body}, {"params": heads}], weight_decay=0.05, betas=(0.9, 0.98), fused=cuda
    )
    started = time.time()
    language.train()
    for step in range(args.steps):
        through = step / args.steps
        pace = min(through / 0.08, 0.5 + 0.5 * math.cos(math.pi * max(0, through - 0.08) / 0.92))
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * max(pace, 1e-3)
        drawn = [lesson.draw() for lesson in lessons]
        said = train.judge_all(language, data, [*drawn[0], *drawn[1]], cast)["relation"]
        parts = said.split([len(part) for part in drawn])
        lost = [
            lesson.lose({"relation": part}) for lesson, part in zip(lessons, parts, strict=True)
        ]
        optimizer.zero_grad()
        (lost[0] + 0.35 * lost[1]).backward()
        nn.utils.clip_grad_norm_(language.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 0:
            spent = f"{time.time() - started:.0f} s"
            print(step, spent, [round(one.item(), 3) for one in lost], flush=True)
    with cast:
        measure(args.out.stem, language, data, pairs.measured)
        said = train.ask(language, data, read_pool(args.pool))["relation"]
    np.savez_compressed(args.out, relation=said.astype(np.float16))


def teach_student(args: argparse.Namespace) -> None:
    """A judge of so many layers learns what START and the teachers say in the mean."""
    pairs = Pairs(args)
    data = Data(args.tokenizer, args.device)
    state = load(args.start)
    before = make_judge(state, LAYERS).to(args.device).eval().requires_grad_(False)
    judge = make_judge(state, args.layers).to(args.device)
    pool = read_pool(args.pool)
    data.read([text for pair in pool for text in pair])
    opinions = [train.ask(before, data, pool)["relation"]]
    opinions += [np.load(path)["relation"].astype(np.float32) for path in args.teach]
    soft = np.mean([train.softmax(one) for one in opinions], 0)
    # Shares and weights are those of the run whose weights ship (LOG, 2026-11-16).
    lessons = [*zip(pairs.lessons(data), (0.7, 0.35), strict=True)]
    lessons.append((Imitate(pool, soft, data, 96), 1.5))
    kept = [read_asked(args.prompts, args.questions), read_spoken(args.talk)]
    decks = [deal(some, data, 36) for some in kept]
    tune(judge, before, data, lessons, decks, steps=args.steps, rate=args.rate)
    save(judge, args.out)
    measure(args.out.stem, judge, data, pairs.measured)


def blend_heads(args: argparse.Namespace) -> None:
    """The first judge with the mean of both judges' heads."""
    one, other = load(args.one), load(args.other)
    mean = {name: (one[name] + other[name]) / 2 for name in one if name.startswith("heads.")}
    judge = Judge(count_layers(one))
    judge.load_state_dict(one | mean)
    save(judge, args.out)


def main() -> None:
    files = {"nargs": "*", "default": [], "type": Path}
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("out", type=Path)
    shared.add_argument("--more", **files)
    shared.add_argument("--dev", type=Path, help="pairs that are only measured")
    shared.add_argument("--seed", type=int, default=0)
    shared.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)

    pool = commands.add_parser("pool", parents=[shared], description=collect_pool.__doc__)
    pool.add_argument("--body", type=Path, required=True, help="folder of the embedding model")
    pool.add_argument("--real", type=Path, required=True, help="{group, text} without labels")
    pool.set_defaults(run=collect_pool)

    teach = commands.add_parser("teach", parents=[shared], description=tune_teacher.__doc__)
    teach.add_argument("--model", type=Path, required=True, help="GGUF file")
    teach.add_argument("--pool", type=Path, required=True)
    teach.add_argument("--steps", type=int, default=530, help="1.4 times through the pairs")
    teach.add_argument("--rate", type=float, default=5e-5)
    teach.set_defaults(run=tune_teacher)

    learn = commands.add_parser("learn", parents=[shared], description=teach_student.__doc__)
    learn.add_argument("--start", type=Path, required=True, help="weights of a judge")
    learn.add_argument("--teach", nargs="+", type=Path, required=True, help="made by `teach`")
    learn.add_argument("--tokenizer", type=Path, required=True)
    learn.add_argument("--pool", type=Path, required=True)
    learn.add_argument("--layers", type=int, default=LAYERS)
    learn.add_argument("--steps", type=int, default=2400)
    learn.add_argument("--rate", type=float, default=5e-5)
    learn.add_argument("--prompts", **files)
    learn.add_argument("--questions", **files)
    learn.add_argument("--talk", **files)
    learn.set_defaults(run=teach_student)

    blend = commands.add_parser("blend", description=blend_heads.__doc__)
    for name in ("one", "other", "out"):
        blend.add_argument(name, type=Path)
    blend.set_defaults(run=blend_heads, seed=0)

    args = parser.parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    args.run(args)


if __name__ == "__main__":
    main()
