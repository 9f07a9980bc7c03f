"""Teaches a trained judge more pairs, with the judge itself as the teacher of all that it knows already.

    python bench/judge/tune.py WEIGHTS.npz OUT.npz --tokenizer FILE --more MORE.jsonl … --talk TALK.jsonl --questions QUESTIONS.jsonl

What it says of prompts, questions and conversations stays as it is (every head of every pair is held to what it was), so that
the bars that were set for it hold; what it says of how two statements relate follows the labels: those of `pairs/` and, drawn
more often, those of MORE (`old`, `new`, `relation`; every tenth is only measured). Minutes on a GPU, an hour on two cores.
"""

from __future__ import annotations

import argparse
import copy
import random
import time
from pathlib import Path

import torch
import torch.nn.functional as F
import train
from model import OUTPUTS, Judge, load, save
from train import Data, Deck, Pair, Relate


def differ(before: dict, now: dict, rows: slice) -> torch.Tensor:
    """How far the judge has moved from what it said."""
    lost = torch.zeros((), device=now["relation"].device)
    for head in OUTPUTS:
        was, is_now = before[head][rows], now[head][rows]
        if head in ("relation", "kind"):
            lost = lost + F.kl_div(is_now.log_softmax(-1), was.softmax(-1), reduction="batchmean")
        else:
            lost = lost + 0.1 * F.mse_loss(is_now, was)
    return lost


def read_known(args: argparse.Namespace) -> list[Pair]:
    """Pairs of prompts, questions and conversations."""
    pairs: list[Pair] = []
    asked = [one for path in args.prompts for one in train.read_prompts(path)]
    asked += [one for path in args.questions for one in train.read_questions(path)[0]]
    for one in asked:
        known = train.known_texts(one)
        texts = random.sample(known, min(6, len(known)))
        pairs += [(one["text"], text) for text in (*one["right"], *texts)]
    for path in args.talk:
        pairs += [(row["context"], row["text"]) for row in train.read_rows(path)]
    return pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    files = {"nargs": "*", "default": [], "type": Path}
    parser.add_argument("weights", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--more", **files)
    parser.add_argument("--dev", type=Path, help="pairs that are only measured")
    parser.add_argument("--prompts", **files)
    parser.add_argument("--questions", **files)
    parser.add_argument("--talk", **files)
    parser.add_argument("--steps", type=int, default=900)
    parser.add_argument("--rate", type=float, default=3e-5)
    parser.add_argument("--share", type=float, default=0.4, help="of MORE among labelled pairs")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    data = Data(args.tokenizer, args.device)
    judge = Judge()
    judge.load_state_dict(load(args.weights))
    judge.to(args.device)
    before = copy.deepcopy(judge).eval().requires_grad_(False)
    rows = [
        row
        for file in sorted((train.HERE / "pairs").glob("*.jsonl"))
        for row in train.read_rows(file)
    ]
    dev = train.read_rows(args.dev) if args.dev else []
    known = {(row["old"], row["new"]) for row in dev}
    rows = [row for row in rows if (row["old"], row["new"]) not in known]
    more = [row for path in args.more for row in train.read_rows(path)]
    held, more = more[::10], [row for at, row in enumerate(more) if at % 10]
    size = 64
    lessons = [
        Relate(rows, data, round(size * (1 - args.share))),
        Relate(more, data, round(size * args.share)),
    ]
    lessons[1].weights = dict.fromkeys(lessons[1].weights, 1.0)  # most of what is near is unrelated
    # Of these the judge is to say what it said before.
    keep = Deck(read_known(args), 48, lambda pair: sum(len(data.tokens(text)) for text in pair))
    cast = torch.autocast(args.device, torch.bfloat16, enabled=args.device == "cuda")

    def measure(name: str) -> None:
        for part, some in (("dev", dev), ("more, held", held)):
            if some:
                pairs = [(row["old"], row["new"]) for row in some]
                said = train.softmax(train.ask(judge, data, pairs)["relation"])
                train.report(f"{name} {part}", said, some)
        judge.train()

    measure("before")
    optimizer = torch.optim.AdamW(judge.parameters(), lr=args.rate, weight_decay=0.01)
    started = time.time()
    for step in range(args.steps):
        for group in optimizer.param_groups:
            group["lr"] = args.rate * min(1, (step + 1) / 50) * (1 - step / args.steps)
        drawn = [lesson.draw() for lesson in lessons]
        kept = keep.draw()
        pairs = [pair for part in drawn for pair in part] + kept
        with torch.no_grad():
            was = train.judge_all(before, data, pairs, cast)
        now = train.judge_all(judge, data, pairs, cast)
        lost, start = torch.zeros((), device=args.device), 0
        for lesson, part in zip(lessons, drawn, strict=True):
            own = {head: now[head][start : start + len(part)] for head in now}
            lost = lost + lesson.lose(own)
            start += len(part)
        moved = differ(was, now, slice(start, len(pairs)))
        optimizer.zero_grad()
        (lost + 3 * moved).backward()
        torch.nn.utils.clip_grad_norm_(judge.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 0:
            print(
                step,
                f"{time.time() - started:.0f} s",
                round(float(lost.detach()), 3),
                round(float(moved.detach()), 4),
                flush=True,
            )
    measure("after")
    save(judge, args.out)


if __name__ == "__main__":
    main()
