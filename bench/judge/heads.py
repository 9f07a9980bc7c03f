"""Trains the heads that read conversations (kind, worth, open) once more, over a body that stays as it is.

    python bench/judge/heads.py WEIGHTS.npz OUT.npz --body MODEL_DIR --talk TALK.jsonl --talk-dev TALK-DEV.jsonl

Real conversations rarely hold the plainest statements ("We use Jest for unit tests."), and people do say them to their
memory. So plain sentences of our own (`talk/plain.tsv`, the subjects, `talk/sentences.tsv`) are learned
beside the real ones, each as a user's turn that gets a short reply. Minutes on two cores.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
import train
from expand import read_subjects
from model import KINDS, Judge, count_layers, load, save

REPLIES = ("Understood.", "Got it.", "Okay.", "Noted.", "", "Sure.", "Thanks, noted.", "Alright.")
NAMED = {"conclusion": "fact", "context": "fact"}
HEADS = ("kind", "worth", "open")


def place(text: str, kind: str, worth: float, state: str = "") -> dict:
    context = f"user. :  |  |  | {random.choice(REPLIES)}"
    return {
        "context": context,
        "text": text,
        "kind": kind,
        "worths": [worth, worth],
        "state": state,
    }


def read_plain() -> tuple[list[dict], list[dict]]:
    """Plain sentences to learn, and every fifth of them to measure."""
    open_kinds = {"question": "open", "todo": "open"}
    rows = []
    for line in (train.HERE / "talk" / "plain.tsv").read_text("utf-8").splitlines():
        kind, text = line.split("\t")
        worth = 0.0 if kind in ("none", "question", "todo") else 1.0
        rows.append(place(text, kind, worth, open_kinds.get(kind, "")))
    held, rows = rows[::5], [row for at, row in enumerate(rows) if at % 5]
    rows = rows * 4
    for line in (train.HERE / "talk" / "sentences.tsv").read_text("utf-8").splitlines():
        kind, text = line.split("\t")
        kind = NAMED.get(kind, kind)
        worth = 0.0 if kind in ("none", "question", "todo") else 1.0
        rows.append(place(text, kind, worth, open_kinds.get(kind, "")))
    for subject in read_subjects():
        if subject["s"][0].endswith("?"):
            continue
        rows.append(place(random.choice([*subject["s"], *subject["p"]]), "fact", 1.0))
        rows += [place(text, "decision", 1.0) for text in subject.get("r", ())[:1]]
        rows += [place(text, "fact", 1.0) for text in subject.get("f", ())[:1]]
        rows.append(place(subject["q"][0], "question", 0.0, "open"))
        rows.append(place(subject["d"][0], "todo", 0.0, "open"))
    return rows, held


@torch.no_grad()
def look(judge: Judge, data: train.Data, rows: list[dict]) -> torch.Tensor:
    """What the heads see of each row."""
    seen: list[torch.Tensor] = []
    hook = judge.heads["kind"].register_forward_hook(lambda _, given, __: seen.append(given[0]))
    judge.eval()
    pairs = [(row["context"], row["text"]) for row in rows]
    order = sorted(range(len(pairs)), key=lambda at: sum(len(data.tokens(t)) for t in pairs[at]))
    for start in range(0, len(order), 64):
        judge(*data.batch([pairs[at] for at in order[start : start + 64]]))
        if not start % 1024:
            print(start, len(order), flush=True)
    hook.remove()
    return torch.cat(seen)[torch.tensor(np.argsort(order))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("weights", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--body", type=Path, required=True)
    parser.add_argument("--talk", type=Path, required=True)
    parser.add_argument("--talk-dev", type=Path)
    parser.add_argument("--cache", type=Path, help="keeps what the heads see between runs")
    args = parser.parse_args()
    random.seed(3)
    torch.manual_seed(3)
    state = load(args.weights)
    judge = Judge(count_layers(state))
    judge.load_state_dict(state)
    data = train.Data(args.body / "tokenizer.json", "cpu")
    real = train.read_talk([args.talk])
    some = [row for row in real if row["kind"] != "none" or row.get("word")]
    rest = [row for row in real if row["kind"] == "none" and not row.get("word")]
    real = some + random.sample(rest, min(len(rest), 4000))
    plain, held = read_plain()
    dev = train.read_talk([args.talk_dev]) if args.talk_dev else []
    rows = real + plain
    if args.cache and args.cache.exists():
        seen = torch.load(args.cache)
    else:
        seen = look(judge, data, rows + held + dev)
        if args.cache:
            torch.save(seen, args.cache)
    kinds = torch.zeros(len(rows), len(KINDS))
    for at, row in enumerate(rows):
        shares = row.get("kinds") or {row["kind"]: 1.0}
        for name, share in shares.items():
            kinds[at, train.KIND[name]] = share
    worths = torch.tensor([row["worths"] for row in rows])
    states = {"open": 1.0, "closed": 0.0, "moot": 0.0}
    opens = torch.tensor([states.get(row.get("state") or "", -1.0) for row in rows])
    # What was left out of the real sentences counts for what it stands for.
    weight = torch.ones(len(rows))
    weight[len(some) : len(real)] = len(rest) / max(1, len(real) - len(some))
    weight[len(real) :] = 0.7
    first = {name: value.clone() for name, value in judge.heads.state_dict().items()}
    heads = [one for name in HEADS for one in judge.heads[name].parameters()]
    optimizer = torch.optim.Adam(heads, lr=3e-4)
    learned = seen[: len(rows)]
    for step in range(600):
        kind, worth, still = (judge.heads[name](learned) for name in HEADS)
        loss = -(kinds * kind.log_softmax(-1)).sum(-1) @ weight / weight.sum()
        each = F.binary_cross_entropy_with_logits(worth, worths, reduction="none").mean(-1)
        loss = loss + each @ weight / weight.sum()
        known = opens >= 0
        loss = loss + F.binary_cross_entropy_with_logits(still[known, 0], opens[known])
        away = sum(
            ((value - first[name]) ** 2).sum() for name, value in judge.heads.named_parameters()
        )
        optimizer.zero_grad()
        (loss + 1e-3 * away).backward()
        optimizer.step()
        if not step % 100:
            print(step, round(float(loss), 4), flush=True)
    save(judge, args.out)
    with torch.no_grad():
        beside = seen[len(rows) : len(rows) + len(held)]
        said = judge.heads["kind"](beside).softmax(-1)
        worth = judge.heads["worth"](beside).sigmoid()[:, 0]
        right = [
            KINDS[int(row.argmax())] == one["kind"] for row, one in zip(said, held, strict=True)
        ]
        print(f"plain, held: kind {np.mean(right):.3f} of {len(right)}")
        for row, one, value in zip(said, held, worth.tolist(), strict=True):
            print(one["kind"], KINDS[int(row.argmax())], round(value, 2), one["text"][:70])
    if dev:
        behind = seen[len(rows) + len(held) :]
        with torch.no_grad():
            train.report_talk(
                "heads", {one: judge.heads[one](behind).numpy() for one in HEADS}, dev
            )


if __name__ == "__main__":
    main()
