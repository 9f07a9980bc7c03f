"""Teaches the shipped judge that what stands near in one memory mostly goes on to hold.

    python bench/judge/neighbours.py collect WORK.json --prompts prompts/many.jsonl … [--real ../shared/bench/SET …]
    python bench/judge/neighbours.py learn WORK.json OUT.npz --dev PAIRS.jsonl [--steps 1200 --rate 1e-4]
    python bench/judge/neighbours.py ship src/bethink/judge/data/judge.onnx OUT.npz

All memories of an imaginary project hold at once, so of two that stand near each other neither replaces nor repeats the other, and
neither answers or completes it. `collect` finds such pairs with the embedding model (projects whose names end in -8 are only measured), reads
the pairs of labelled histories (`notes.py`), and takes pairs of real texts without labels.
`learn` starts from the weights that ship (`reader.onnx`, `judge.onnx`), leaves the first six layers as they are, and teaches the others:
labelled pairs as they are labelled, strangers as what must stay, prompts with what applies to them; of real texts the judge goes on to say
what it said.
`ship` writes them as the file that ships. Minutes on a GPU.

Labelled pairs are few, so a second lesson over the same ones is learned by heart: what ships was taught once from the weights of 0.13
(1,300 steps, two seeds, then 350 more with the groups of opposites; bench/LOG.md, 2026-11-17).
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
import train
from apply import AppliedLesson, list_asked, read_projects
from model import LAYERS, READING, RELATIONS, WIDTH, Judge, load, read_shipped, save
from notes import read_groups, read_histories, split_histories
from train import INDEX, SYMMETRIC, Data, Pair

SHIPPED = next(
    path for one in train.HERE.parents if (path := one / "src/bethink/judge/data").is_dir()
)
NEAREST = 12  # that `add` asks about
LONGEST = 320  # characters of one statement
CHANGING = [INDEX[name] for name in ("replaces", "same", "answers", "completes")]


# Collecting


def pair_neighbours(texts: list[str], embedder) -> list[Pair]:
    """Each text with the nearest of those before it."""
    vectors = np.stack([own[0] for own in embedder.documents(texts)])
    found = []
    for at in range(1, len(texts)):
        near = np.argsort(-(vectors[:at] @ vectors[at]))[:NEAREST]
        found += [(texts[old], texts[at]) for old in near]
    return found


def read_memories(paths: list[Path]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in paths:
        for row in train.read_rows(path):
            if row["type"] == "memory":
                found.setdefault(row.get("project", path.stem), []).append(row["text"])
    return found


def pair_histories(embedder) -> dict[str, list[dict]]:
    """Of each history the pairs that `add` would ask about, with their labels; what is not labelled stays."""
    found = {}
    for name, told in read_histories().items():
        texts = {row["id"]: row["text"] for row in told}
        labels = {
            (texts[effect["to"]], row["text"]): effect["relation"]
            for row in told
            for effect in row["effects"]
        }
        pairs = dict.fromkeys([*labels, *pair_neighbours(list(texts.values()), embedder)])
        found[name] = [
            {"old": old, "new": new, "relation": labels.get((old, new), "")} for old, new in pairs
        ]
    return found


def read_statements(folder: Path, most: int) -> list[list[str]]:
    """The first single statements of a set, by scope, that `add` would ask the judge about."""
    found: dict[str, list[str]] = {}
    for row in train.read_rows(folder / "corpus.jsonl")[:most]:
        text = row["text"].removeprefix("user: ").removeprefix("assistant: ").strip()
        if len(text) <= LONGEST and "\n" not in text:
            found.setdefault(row.get("scope", ""), []).append(text)
    return list(found.values())


def collect(args: argparse.Namespace) -> None:
    from bethink import config
    from bethink.embed import open_embedder

    random.seed(0)
    embedder = open_embedder(config.load())
    strangers: dict[str, list[Pair]] = {"learn": [], "held": []}
    for name, texts in read_memories(args.prompts).items():
        strangers["held" if name.endswith("-8") else "learn"] += pair_neighbours(texts, embedder)
    histories = pair_histories(embedder)
    real = [
        pair
        for folder in args.real
        for texts in read_statements(folder, args.most)
        for pair in pair_neighbours(texts, embedder)
    ]
    projects = read_projects(args.prompts)
    for project in projects:
        project.embed(embedder)
    turned = torch.tensor(np.load(SHIPPED / "prompts.npy"), dtype=torch.float32)
    work = {
        "strangers": strangers,
        "histories": histories,
        "real": random.sample(real, min(20_000, len(real))),
        "prompts": {
            part: list_asked([one for one in projects if one.is_held is held], turned)
            for part, held in (("learn", False), ("held", True))
        },
    }
    args.work.write_text(json.dumps(work, ensure_ascii=False), "utf-8")
    print({name: len(part) for name, part in strangers.items()}, len(histories), len(real))


# Learning


class Cards:
    """Pairs with what the first layers, which stay as they are, make of them; drawn in a random order that begins again at its end."""

    def __init__(self, judge: Judge, data: Data, pairs: list[Pair], targets: torch.Tensor) -> None:
        self.states, self.targets, self.order = read_early(judge, data, pairs), targets, []

    def draw(self, size: int) -> list[int]:
        while len(self.order) < size:
            self.order = random.sample(range(len(self.states)), len(self.states)) + self.order
        return [self.order.pop() for _ in range(size)]


@torch.no_grad()
def read_early(judge: Judge, data: Data, pairs: list[Pair]) -> list[torch.Tensor]:
    data.read([text for pair in pairs for text in pair])
    found: list[torch.Tensor] = [torch.empty(0)] * len(pairs)
    order = sorted(
        range(len(pairs)), key=lambda at: sum(len(data.tokens(one)) for one in pairs[at])
    )
    with torch.autocast(data.device, torch.bfloat16, enabled=data.device == "cuda"):
        for start in range(0, len(order), 512):
            part = order[start : start + 512]
            ids, sides, present = data.batch([pairs[at] for at in part])
            states = judge.read(ids, sides, present).bfloat16()
            for at, own, length in zip(part, states, present.sum(1).tolist(), strict=True):
                found[at] = own[:length].clone()
    return found


def say(judge: Judge, states: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    """What the judge says of pairs, from what the first layers made of them."""
    whole = torch.nn.utils.rnn.pad_sequence(states, batch_first=True)
    lengths = torch.tensor([len(own) for own in states], device=whole.device)
    present = (torch.arange(whole.shape[1], device=whole.device)[None] < lengths[:, None]).long()
    with torch.autocast(whole.device.type, torch.bfloat16, enabled=whole.is_cuda):
        seen = judge.sum_up(judge.go_on(whole.float(), present), present)
        return {name: judge.heads[name](seen).float() for name in ("relation", "applies")}


@torch.no_grad()
def say_all(judge: Judge, states: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    judge.eval()
    order = sorted(range(len(states)), key=lambda at: len(states[at]))
    parts = [
        say(judge, [states[at] for at in order[start : start + 512]])
        for start in range(0, len(order), 512)
    ]
    back = torch.tensor(np.argsort(order), device=states[0].device)
    return {
        name: torch.cat([part[name] for part in parts])[back] for name in ("relation", "applies")
    }


def aim(rows: list[dict]) -> torch.Tensor:
    """What the labels ask for; a rare relation weighs more."""
    count = collections.Counter(row["relation"] for row in rows)
    found = torch.full((len(rows), len(RELATIONS)), 0.05 / len(RELATIONS))
    for at, row in enumerate(rows):
        found[at, INDEX[row["relation"]]] += 0.95
        found[at] *= (len(rows) / len(RELATIONS) / count[row["relation"]]) ** 0.5
    return found


def turn_round(rows: list[dict]) -> list[dict]:
    """Labelled pairs, and those without a direction the other way round, too."""
    turned = [
        {**row, "old": row["new"], "new": row["old"]}
        for row in rows
        if row["relation"] in SYMMETRIC
    ]
    return rows + turned


def measure(name: str, judge: Judge, held: dict[str, tuple[list[dict], Cards]]) -> None:
    for part, (rows, cards) in held.items():
        said = say_all(judge, cards.states)["relation"].softmax(-1).cpu().numpy()
        if rows[0]["relation"]:
            train.report(f"{name} {part}", said, rows)
        else:
            best, text = said.argmax(1), []
            for bar in (0.55, 0.7, 0.85):
                of = {
                    RELATIONS[at]: int(((best == at) & (said[:, at] >= bar)).sum())
                    for at in CHANGING
                }
                text.append(f"{bar}: {of}")
            print(f"{name} {part} ({len(rows)} that stay):", "; ".join(text), flush=True)


def measure_prompts(name: str, judge: Judge, data: Data, asked: list[tuple]) -> None:
    """How often what applies is the best of what was found, and how often where nineteen of twenty prompts to which nothing applies get nothing."""
    judge.eval()
    pairs = [(text, one) for text, right, wrong in asked for one in right + wrong[:NEAREST]]
    said = iter(say_all(judge, read_early(judge, data, pairs))["applies"][:, 0].tolist())
    best, silent = [], []
    for _, right, wrong in asked:
        own = [next(said) for _ in right + wrong[:NEAREST]]
        if right:
            best.append((max(own), own.index(max(own)) < len(right)))
        else:
            silent.append(max(own))
    bar = float(np.quantile(silent, 0.95))
    first = np.mean([right for _, right in best])
    told = np.mean([right and value > bar for value, right in best])
    print(
        f"{name} prompts: right one first {first:.3f}, told at .95 silence {told:.3f}", flush=True
    )


def to_pairs(rows: list[dict]) -> list[Pair]:
    return [(row["old"], row["new"]) for row in rows]


def learn(args: argparse.Namespace) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    work = json.loads(args.work.read_text("utf-8"))
    data = Data(SHIPPED / "tokenizer.json", device)
    judge = Judge(joined=True)
    judge.load_state_dict(read_shipped(SHIPPED))
    judge.to(device).eval()
    dev = train.read_rows(args.dev) if args.dev else []
    labelled, held_labelled = train.read_pairs([train.HERE / "pairs"], dev)
    groups, held_groups = read_groups()
    known, held_known = (
        [row for rows in part.values() for row in rows]
        for part in split_histories(work["histories"])
    )
    strangers, held_strangers = (
        [{"old": old, "new": new, "relation": ""} for old, new in work["strangers"][part]]
        for part in ("learn", "held")
    )

    def deal(rows: list[dict]) -> Cards:
        named = bool(rows) and bool(rows[0]["relation"])
        return Cards(judge, data, to_pairs(rows), aim(rows).to(device) if named else torch.empty(0))

    def pick(rows: list[dict], named: bool) -> list[dict]:
        return [row for row in rows if bool(row["relation"]) == named]

    held = {
        name: (rows, deal(rows))
        for name, rows in {
            "dev": dev,
            "labelled": held_labelled,
            "groups": held_groups,
            "histories": pick(held_known, True),
            "histories, strangers": pick(held_known, False),
            "strangers": held_strangers,
        }.items()
        if rows
    }
    # What is learned: a deck, how many of it a step draws, and how much it counts.
    decks = {
        "labelled": (deal(turn_round(labelled)), 96, 1.0),
        "groups": (deal(turn_round(groups)), args.groups, 1.0),
        "histories": (deal(turn_round(pick(known, True))), args.histories, 1.0),
        "stay": (deal(pick(known, False)), 128, args.weight),
        "strangers": (deal(strangers), 64, args.weight),
    }
    asked = work["prompts"]["learn"]
    few = random.sample(asked, min(8000, len(asked)))
    kept = {
        "prompts": ([(text, random.choice(right + wrong[:8])) for text, right, wrong in few], 48),
        "real": ([tuple(pair) for pair in work["real"]], 64),
    }
    for name, (pairs, size) in kept.items():
        cards = Cards(judge, data, pairs, torch.empty(0))
        cards.said = say_all(judge, cards.states)["relation"].softmax(-1)
        decks[name] = (cards, size, 1.0)
    data.read(
        [text for one in asked + work["prompts"]["held"] for text in (one[0], *one[1], *one[2])]
    )
    applied = AppliedLesson(asked, device)
    if not args.quiet:
        measure("before", judge, held)
        measure_prompts("before", judge, data, work["prompts"]["held"])
    judge.requires_grad_(False)
    for part in judge.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = args.dropout
    for part in (*judge.layers[READING:], judge.heads["relation"], judge.heads["applies"]):
        part.requires_grad_(True)
    free = [one for one in judge.parameters() if one.requires_grad]
    optimiser = torch.optim.AdamW(free, lr=args.rate, weight_decay=0.01, fused=device == "cuda")
    began = time.monotonic()
    for step in range(args.steps):
        for group in optimiser.param_groups:
            group["lr"] = (
                args.rate * min(1, (step + 1) / (0.05 * args.steps)) * (1 - step / args.steps)
            )
        drawn = {name: cards.draw(size) for name, (cards, size, _) in decks.items()}
        states = [decks[name][0].states[at] for name, places in drawn.items() for at in places]
        prompted = read_early(judge.eval(), data, applied.draw())
        judge.train()
        now = say(judge, states + prompted)
        lost = args.applies * applied.lose(now["applies"][-len(prompted) :, 0])
        sizes = [len(places) for places in drawn.values()]
        parts = now["relation"][: len(states)].split(sizes)
        for relation, (name, (cards, _, weight)) in zip(parts, decks.items(), strict=True):
            at = torch.tensor(drawn[name], device=device)
            if name in ("labelled", "groups", "histories"):
                lost = lost - weight * (cards.targets[at] * relation.log_softmax(-1)).sum(-1).mean()
            elif name in ("stay", "strangers"):
                # Nearly all are about something else; what adds to another is labelled.
                lost = lost - weight * relation.log_softmax(-1)[:, INDEX["unrelated"]].mean()
            else:
                moved = F.kl_div(relation.log_softmax(-1), cards.said[at], reduction="batchmean")
                lost = lost + weight * moved
        optimiser.zero_grad(set_to_none=True)
        lost.backward()
        torch.nn.utils.clip_grad_norm_(free, 1.0)
        optimiser.step()
        if step % 500 == 0:
            print(step, f"{time.monotonic() - began:.0f} s", round(lost.item(), 3), flush=True)
    measure("after", judge, held)
    measure_prompts("after", judge, data, work["prompts"]["held"])
    save(
        judge,
        args.out,
        (
            *(f"layers.{number}." for number in range(READING, LAYERS)),
            "heads.relation",
            "heads.applies",
        ),
    )


def ship(args: argparse.Namespace) -> None:
    """Puts taught layers, the mean of several, where the shipped ones were, and writes them as int8."""
    from export import DEEP, Deeper, write_model

    judge = Judge(joined=True)
    taught = [load(path) for path in args.weights]
    mean = {name: sum(one[name] for one in taught) / len(taught) for name in taught[0]}
    judge.load_state_dict(read_shipped(SHIPPED) | mean)
    ids = torch.ones(2, 8, dtype=torch.long)
    given = {"states": torch.zeros(2, 8, WIDTH), "present": ids}
    write_model(Deeper(judge.eval()), given, DEEP, args.out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("collect")
    one.add_argument("work", type=Path)
    one.add_argument("--prompts", type=Path, nargs="+", required=True)
    one.add_argument("--real", type=Path, nargs="*", default=[])
    one.add_argument("--most", type=int, default=6000, help="texts of each set")
    one.set_defaults(run=collect)
    one = commands.add_parser("learn")
    one.add_argument("work", type=Path)
    one.add_argument("out", type=Path)
    one.add_argument("--dev", type=Path)
    one.add_argument("--steps", type=int, default=1500)
    one.add_argument("--rate", type=float, default=4e-5)
    one.add_argument("--weight", type=float, default=1.0, help="of strangers")
    one.add_argument("--histories", type=int, default=48, help="labelled pairs of them in a step")
    one.add_argument("--groups", type=int, default=96, help="pairs of groups in a step")
    one.add_argument("--applies", type=float, default=1.0, help="weight of the prompts")
    one.add_argument("--dropout", type=float, default=0.2)
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--quiet", action="store_true")
    one.set_defaults(run=learn)
    one = commands.add_parser("ship")
    one.add_argument("out", type=Path)
    one.add_argument("weights", type=Path, nargs="+")
    one.set_defaults(run=ship)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
