"""Teaches the shipped judge that what stands near in one memory mostly goes on to hold.

    python bench/judge/neighbours.py collect WORK.json --prompts prompts/many.jsonl … [--real ../shared/bench/SET … --talk TALK.jsonl --questions QUESTIONS.jsonl]
    python bench/judge/neighbours.py learn WORK.json OUT.npz --whole --dev PAIRS.jsonl [--said SAID.jsonl --steps 1300 --rate 2e-4]
    python bench/judge/neighbours.py ship src/bethink/judge/data OUT.npz …

All memories of an imaginary project hold at once, so of two that stand near each other neither replaces nor repeats the other, and
neither answers or completes it. `collect` finds such pairs with the embedding model (projects whose names end in -8 are only measured), reads
the pairs of labelled histories (`notes.py`), and takes pairs of real texts without labels.
`learn` starts from the weights that ship (or those in `--start`) and teaches them: labelled pairs as they are labelled, strangers as what must stay, prompts with what
applies to them; of real texts the judge goes on to say what it said. With `--whole` all twelve layers learn, and what the first six say of conversations and
passages (TALK, QUESTIONS) is held to what it was; without, the first six stay as they are. SAID are labelled pairs of real talk (`old`, `new`, `relation`, `held`).
`ship` writes the mean of several as the files that ship. Minutes on a GPU.

Labelled pairs are few, so a second lesson over the same ones is learned by heart: the weights of 0.16 were taught once from those of 0.13 (bench/LOG.md, 2026-11-17).
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
from model import READ, READING, RELATIONS, Judge, load, read_shipped, save
from notes import read_groups, read_histories, read_opposites, split_histories
from train import INDEX, SYMMETRIC, Data, Pair
from tune import read_asked, read_spoken

SHIPPED = next(
    path for one in train.HERE.parents if (path := one / "src/bethink/judge/data").is_dir()
)
NEAREST = 12  # that `add` asks about
LONGEST = 320  # characters of one statement
READ_EACH = {"talk": 64, "asked": 48}  # of what is read, in a step
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
        "read": {
            "talk": read_spoken(args.talk),
            "asked": read_asked([], args.questions),
        },
        "prompts": {
            part: list_asked([one for one in projects if one.is_held is held], turned)
            for part, held in (("learn", False), ("held", True))
        },
    }
    args.work.write_text(json.dumps(work, ensure_ascii=False), "utf-8")
    print({name: len(part) for name, part in strangers.items()}, len(histories), len(real))


# Learning


Rows = dict[
    str, list[dict]
]  # pairs with their relation, or "" where they stay, by where they are from


def read_known(work: dict, dev: list[dict]) -> tuple[Rows, Rows]:
    """Pairs to learn, and those that are only measured, `dev` among them."""
    labelled, held_labelled = train.read_pairs([train.HERE / "pairs"], dev)
    groups, held_groups = read_groups()
    notes, held_notes = (
        [row for rows in part.values() for row in rows]
        for part in split_histories(work["histories"])
    )
    strangers, held_strangers = (
        [{"old": old, "new": new, "relation": ""} for old, new in work["strangers"][part]]
        for part in ("learn", "held")
    )

    def pick(rows: list[dict], named: bool) -> list[dict]:
        return [row for row in rows if bool(row["relation"]) == named]

    known = {
        "labelled": labelled,
        "groups": groups,
        "histories": pick(notes, True),
        "stay": pick(notes, False),
        "strangers": strangers,
    }
    held = {
        "dev": dev,
        "labelled": held_labelled,
        "groups": held_groups,
        "opposites": read_opposites(),
        "histories": pick(held_notes, True),
        "histories, strangers": pick(held_notes, False),
        "strangers": held_strangers,
    }
    return known, {name: rows for name, rows in held.items() if rows}


class Cards:
    """Pairs, drawn in a random order that begins again at its end."""

    def __init__(self, pairs: list[Pair], targets: torch.Tensor) -> None:
        self.pairs, self.targets, self.order = pairs, targets, []

    def draw(self, size: int) -> list[int]:
        while len(self.order) < size:
            self.order = random.sample(range(len(self.pairs)), len(self.pairs)) + self.order
        return [self.order.pop() for _ in range(size)]


def say(judge: Judge, data: Data, pairs: list[Pair], size: int = 256) -> dict[str, torch.Tensor]:
    """What the judge says of pairs, by head; those of like length together, because padding costs time."""
    order = sorted(
        range(len(pairs)), key=lambda at: sum(len(data.tokens(text)) for text in pairs[at])
    )
    parts = []
    for start in range(0, len(order), size):
        with torch.autocast(data.device, torch.bfloat16, enabled=data.device == "cuda"):
            parts.append(judge(*data.batch([pairs[at] for at in order[start : start + size]])))
    back = torch.tensor(np.argsort(order), device=data.device)
    return {
        name: torch.cat([part.float() for part in own])[back]
        for name, own in zip(judge.heads, zip(*parts, strict=True), strict=True)
    }


@torch.no_grad()
def say_all(judge: Judge, data: Data, pairs: list[Pair]) -> dict[str, torch.Tensor]:
    judge.eval()
    data.read([text for pair in pairs for text in pair])
    return say(judge, data, pairs, 512)


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


def measure(name: str, judge: Judge, data: Data, held: dict[str, list[dict]]) -> None:
    for part, rows in held.items():
        said = say_all(judge, data, to_pairs(rows))["relation"].softmax(-1).cpu().numpy()
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
    pairs = [(text, one) for text, right, wrong in asked for one in right + wrong[:NEAREST]]
    said = iter(say_all(judge, data, pairs)["applies"][:, 0].tolist())
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


class Reading:
    """What the judge said of conversations and passages before it began to learn, and goes on to say."""

    def __init__(self, judge: Judge, data: Data, read: dict[str, list[Pair]]) -> None:
        self.held = {name: [tuple(pair) for pair in pairs[::20]] for name, pairs in read.items()}
        self.cards, self.said = {}, {}
        for name, pairs in read.items():
            pairs = [tuple(pair) for at, pair in enumerate(pairs) if at % 20]
            self.cards[name] = Cards(pairs, torch.empty(0))
            self.said[name] = say_all(judge, data, pairs)
        self.before = {name: say_all(judge, data, pairs) for name, pairs in self.held.items()}

    def draw(self) -> list[Pair]:
        self.drawn = {name: self.cards[name].draw(size) for name, size in READ_EACH.items()}
        return [self.cards[name].pairs[at] for name, places in self.drawn.items() for at in places]

    def lose(self, now: dict[str, torch.Tensor]) -> torch.Tensor:
        """How far the answers to what was drawn, which come last, have moved."""
        sizes = [len(places) for places in self.drawn.values()]
        lost = torch.zeros((), device=now["kind"].device)
        for name, start, size in zip(self.drawn, (-sum(sizes), -sizes[1]), sizes, strict=True):
            own = {head: said[start : (start + size) or None] for head, said in now.items()}
            was = {head: said[self.drawn[name]] for head, said in self.said[name].items()}
            lost = lost + differ(name, was, own)
        return lost

    def measure(self, judge: Judge, data: Data) -> str:
        now = {name: say_all(judge, data, pairs) for name, pairs in self.held.items()}
        talk, was = now["talk"], self.before["talk"]
        same = (talk["kind"].argmax(-1) == was["kind"].argmax(-1)).float().mean().item()
        worth = (talk["worth"].sigmoid() - was["worth"].sigmoid()).abs().mean().item()
        fits = (now["asked"]["fits"] - self.before["asked"]["fits"]).abs().mean().item()
        spread = self.before["asked"]["fits"].std().item()
        return (
            f"kinds the same {same:.3f}, worth moved {worth:.4f}, fits {fits:.3f} of {spread:.2f}"
        )


def differ(name: str, was: dict[str, torch.Tensor], now: dict[str, torch.Tensor]) -> torch.Tensor:
    if name == "asked":
        return 0.1 * F.mse_loss(now["fits"], was["fits"])
    kinds = F.kl_div(now["kind"].log_softmax(-1), was["kind"].softmax(-1), reduction="batchmean")
    return kinds + 0.15 * sum(F.mse_loss(now[head], was[head]) for head in ("worth", "open"))


def learn(args: argparse.Namespace) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    work = json.loads(args.work.read_text("utf-8"))
    data = Data(SHIPPED / "tokenizer.json", device)
    judge = Judge(joined=True)
    judge.load_state_dict(read_shipped(args.start))
    judge.to(device).eval()
    dev = train.read_rows(args.dev) if args.dev else []
    known, held = read_known(work, dev)
    said, held_said = (
        [row for path in args.said for row in train.read_rows(path) if row["held"] is held]
        for held in (False, True)
    )

    def deal(rows: list[dict]) -> Cards:
        named = bool(rows) and bool(rows[0]["relation"])
        return Cards(to_pairs(rows), aim(rows).to(device) if named else torch.empty(0))

    if held_said:
        held["said"] = held_said
    # What is learned: a deck, how many of it a step draws, and how much it counts.
    decks = {
        "labelled": (deal(turn_round(known["labelled"])), 96, 1.0),
        "groups": (deal(turn_round(known["groups"])), args.groups, 1.0),
        "histories": (deal(turn_round(known["histories"])), args.histories, 1.0),
        "stay": (deal(known["stay"]), 128, args.weight),
        "strangers": (deal(known["strangers"]), 64, args.weight),
    }
    if said:
        decks["said"] = (deal(said), 48, 1.0)
    asked = work["prompts"]["learn"]
    few = random.sample(asked, min(8000, len(asked)))
    kept = {
        "prompts": ([(text, random.choice(right + wrong[:8])) for text, right, wrong in few], 48),
        "real": ([tuple(pair) for pair in work["real"]], 64),
    }
    for name, (pairs, size) in kept.items():
        cards = Cards(pairs, torch.empty(0))
        cards.said = say_all(judge, data, pairs)["relation"].softmax(-1)
        decks[name] = (cards, size, 1.0)
    applied = AppliedLesson(asked, device)
    reading = Reading(judge, data, work["read"]) if args.whole else None
    if not args.quiet:
        measure("before", judge, data, held)
        measure_prompts("before", judge, data, work["prompts"]["held"])
    judge.requires_grad_(False)
    for part in judge.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = args.dropout
    # The first six layers, which read conversations, learn only beside what holds them to what they said.
    taught = judge.layers if reading else judge.layers[READING:]
    for part in (*taught, judge.heads["relation"], judge.heads["applies"]):
        part.requires_grad_(True)
    if reading:
        for name in READ:
            judge.heads[name].requires_grad_(True)
    free = [one for one in judge.parameters() if one.requires_grad]
    optimiser = torch.optim.AdamW(free, lr=args.rate, weight_decay=0.01, fused=device == "cuda")
    began = time.monotonic()
    for step in range(args.steps):
        for group in optimiser.param_groups:
            group["lr"] = (
                args.rate * min(1, (step + 1) / (0.05 * args.steps)) * (1 - step / args.steps)
            )
        drawn = {name: cards.draw(size) for name, (cards, size, _) in decks.items()}
        pairs = [decks[name][0].pairs[at] for name, places in drawn.items() for at in places]
        prompted, read = applied.draw(), reading.draw() if reading else []
        judge.train()
        now = say(judge, data, [*pairs, *prompted, *read])
        lost = args.applies * applied.lose(
            now["applies"][len(pairs) : len(pairs) + len(prompted), 0]
        )
        if reading:
            lost = lost + args.reading * reading.lose(now)
        sizes = [len(places) for places in drawn.values()]
        parts = now["relation"][: len(pairs)].split(sizes)
        for relation, (name, (cards, _, weight)) in zip(parts, decks.items(), strict=True):
            at = torch.tensor(drawn[name], device=device)
            if len(cards.targets):
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
        if step % 250 == 0:
            print(step, f"{time.monotonic() - began:.0f} s", round(lost.item(), 3), flush=True)
    measure("after", judge, data, held)
    measure_prompts("after", judge, data, work["prompts"]["held"])
    if reading:
        print(reading.measure(judge, data), flush=True)
    save(judge, args.out, ("layers.", "heads."))


def ship(args: argparse.Namespace) -> None:
    """Writes taught weights, the mean of several, as the judge that ships; what reads conversations and passages stays that of `--start`."""
    from export import export

    start = read_shipped(args.start)
    taught = [load(path) for path in args.weights]
    mean = {name: sum(one[name] for one in taught) / len(taught) for name in taught[0]}
    reader, judge = Judge(joined=True), Judge(joined=True)
    reader.load_state_dict(start)
    judge.load_state_dict(start | mean)
    export(judge, args.out, reader)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("collect")
    one.add_argument("work", type=Path)
    one.add_argument("--prompts", type=Path, nargs="+", required=True)
    one.add_argument("--real", type=Path, nargs="*", default=[])
    one.add_argument("--most", type=int, default=6000, help="texts of each set")
    one.add_argument("--talk", type=Path, nargs="*", default=[])
    one.add_argument("--questions", type=Path, nargs="*", default=[])
    one.set_defaults(run=collect)
    one = commands.add_parser("learn")
    one.add_argument("work", type=Path)
    one.add_argument("out", type=Path)
    one.add_argument("--dev", type=Path)
    one.add_argument("--start", type=Path, default=SHIPPED, help="folder of the two files")
    one.add_argument("--whole", action="store_true", help="all layers learn")
    one.add_argument("--said", type=Path, nargs="*", default=[], help="labelled pairs of real talk")
    one.add_argument("--reading", type=float, default=1.0, help="weight of what is read")
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
    one.add_argument("--start", type=Path, default=SHIPPED, help="folder of the two files")
    one.add_argument("weights", type=Path, nargs="+")
    one.set_defaults(run=ship)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
