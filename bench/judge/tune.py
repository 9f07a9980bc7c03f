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
from train import Data, Deck, Lesson, Pair, Relate, Said


def differ(before: Said, now: Said) -> torch.Tensor:
    """How far the judge has moved from what it said."""
    lost = torch.zeros((), device=now["relation"].device)
    for head in OUTPUTS:
        was, is_now = before[head], now[head]
        if head in ("relation", "kind"):
            lost = lost + F.kl_div(is_now.log_softmax(-1), was.softmax(-1), reduction="batchmean")
        else:
            lost = lost + 0.1 * F.mse_loss(is_now, was)
    return lost


def read_asked(prompts: list[Path], questions: list[Path]) -> list[Pair]:
    """Pairs of prompts and questions with texts that are right or were offered."""
    pairs: list[Pair] = []
    asked = [one for path in prompts for one in train.read_prompts(path)]
    asked += [one for path in questions for one in train.read_questions(path)[0]]
    for one in asked:
        known = train.known_texts(one)
        texts = random.sample(known, min(6, len(known)))
        pairs += [(one["text"], text) for text in (*one["right"], *texts)]
    return pairs


def read_spoken(talk: list[Path]) -> list[Pair]:
    """Pairs of a statement of a conversation and its place."""
    return [(row["context"], row["text"]) for path in talk for row in train.read_rows(path)]


def read_more(paths: list[Path]) -> tuple[list[dict], list[dict]]:
    """Pairs to learn, and every tenth, which is only measured."""
    more = [row for path in paths for row in train.read_rows(path)]
    return [row for at, row in enumerate(more) if at % 10], more[::10]


def deal(pairs: list[Pair], data: Data, size: int) -> Deck:
    return Deck(pairs, size, lambda pair: sum(len(data.tokens(text)) for text in pair))


def measure(name: str, judge: Judge, data: Data, sets: dict[str, list[dict]]) -> None:
    for part, rows in sets.items():
        if rows:
            pairs = [(row["old"], row["new"]) for row in rows]
            said = train.softmax(train.ask(judge, data, pairs)["relation"])
            train.report(f"{name} {part}", said, rows)


def tune(
    judge: Judge,
    before: Judge,
    data: Data,
    lessons: list[tuple[Lesson, float]],
    kept: list[Deck],
    *,
    steps: int,
    rate: float,
) -> None:
    """The lessons, each with its weight, while the judge goes on saying of what is kept what `before` says."""
    cuda = data.device == "cuda"
    cast = torch.autocast(data.device, torch.bfloat16, enabled=cuda)
    optimizer = torch.optim.AdamW(judge.parameters(), lr=rate, weight_decay=0.01, fused=cuda)
    started = time.time()
    judge.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1, (step + 1) / (0.05 * steps)) * (1 - step / steps)
        drawn = [lesson.draw() for lesson, _ in lessons]
        same = [pair for deck in kept for pair in deck.draw()]
        with torch.no_grad():
            was = train.judge_all(before, data, same, cast)
        now = train.judge_all(judge, data, [pair for part in (*drawn, same) for pair in part], cast)
        lost, end = torch.zeros((), device=data.device), 0
        for (lesson, weight), part in zip(lessons, drawn, strict=True):
            start, end = end, end + len(part)
            lost = lost + weight * lesson.lose({head: now[head][start:end] for head in now})
        moved = differ(was, {head: now[head][end:] for head in now})
        optimizer.zero_grad()
        (lost + 3 * moved).backward()
        torch.nn.utils.clip_grad_norm_(judge.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 0:
            spent = f"{time.time() - started:.0f} s"
            print(step, spent, round(lost.item(), 3), round(moved.item(), 4), flush=True)


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
    seen = {(row["old"], row["new"]) for row in dev}
    rows = [row for row in rows if (row["old"], row["new"]) not in seen]
    more, held = read_more(args.more)
    size = 64
    lessons = [
        (Relate(rows, data, round(size * (1 - args.share))), 1.0),
        (Relate(more, data, round(size * args.share), even=True), 1.0),
    ]
    known = read_asked(args.prompts, args.questions) + read_spoken(args.talk)
    sets = {"dev": dev, "more, held": held}
    measure("before", judge, data, sets)
    kept = [deal(known, data, 48)]
    tune(judge, before, data, lessons, kept, steps=args.steps, rate=args.rate)
    measure("after", judge, data, sets)
    save(judge, args.out)


if __name__ == "__main__":
    main()
