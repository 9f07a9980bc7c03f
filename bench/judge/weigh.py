"""Fits what the judge's word, nearness and shared words count together: `src/bethink/judge/data/weights.json`.

    python bench/judge/weigh.py collect ROWS.json      # asks the shipped judge about every pair that `add` would
    python bench/judge/weigh.py fit ROWS.json [--write]

A pair alone can rarely be told: of two notes about one component the judge calls many a replacement. Among all that a new note is compared with,
the one that is meant stands out. So for each relation that changes something one logistic regression weighs the judge's share, how near the two
stand, by how much they are nearer than the next, whether they share words, whether one was told right after the other, and how surely the note
changes another (`judge.list_evidence`); histories that the judge did not learn from (every fourth) teach it. `fit` prints, history by
history left out, how much is found at several degrees of being right.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from notes import HERE, read_groups, read_histories, split_histories

from bethink import config
from bethink.embed import open_embedder
from bethink.ingest.compare import leave_label_out
from bethink.ingest.lexicon import count_shared_words
from bethink.ingest.reconcile import LONGEST, OPEN
from bethink.judge import DATA, Judge, Judgement, Standing, find_rivals, list_evidence

WEIGHED = ("replaces", "same", "answers", "completes")
ALONE = 2.0  # what a pair in an empty memory counts beside one of a history: by hand
NEAREST, WAITING = 12, 4
STIFFNESS = 1.0  # of the weights, against following few examples too closely: by hand


def collect(args: argparse.Namespace) -> None:
    embedder, judge, found = open_embedder(config.load()), Judge(), []
    histories = split_histories(read_histories())[1]
    for name, notes in histories.items():
        texts = [read_as_told(one["kind"], one["text"]) for one in notes]
        vectors = np.stack([own[0] for own in embedder.documents([one["text"] for one in notes])])
        for at in range(1, len(notes)):
            labels = {effect["to"]: effect["relation"] for effect in notes[at]["effects"]}
            near = ((vectors[:at] @ vectors[at]) - embedder.unrelated) / (1 - embedder.unrelated)
            order = np.argsort(-near).tolist()
            waiting = [old for old in order if notes[old]["kind"] in OPEN]
            asked = list(dict.fromkeys([*order[:NEAREST], *waiting[:WAITING]]))
            pairs = [(texts[old], notes[at]["text"]) for old in asked]
            said = judge.relate(pairs)
            best = [*sorted((near[old] for old in asked), reverse=True), 0.0]
            for old, pair, one, rival in zip(
                asked, pairs, said, find_rivals(pairs, said), strict=True
            ):
                row = {
                    "history": name,
                    "said": one.probabilities,
                    "standing": [
                        float(near[old]),
                        float(near[old] - best[int(near[old] == best[0])]),
                        count_shared_words(*pair),
                        old == at - 1,
                    ],
                    "rival": rival,
                    "label": labels.get(notes[old]["id"], ""),
                }
                found.append(row)
    found += collect_alone(embedder, judge)
    args.rows.write_text(json.dumps(found), "utf-8")
    print(len(histories), "histories,", len(found), "pairs")


def read_as_told(kind: str, text: str) -> str:
    """An old note as the judge reads it."""
    return leave_label_out(SimpleNamespace(kind=kind, content=text))


def collect_alone(embedder, judge: Judge) -> list[dict]:
    """Labelled pairs that the judge did not learn from: two statements, one told after the other, in an empty memory."""
    labelled = read_held_pairs(HERE / "pairs") + read_groups()[1]
    rows = [row for row in labelled if max(map(len, (row["old"], row["new"]))) < LONGEST]
    todos = {row["old"] for row in rows if row["relation"] == "completes"}
    pairs = [
        (read_as_told("todo" if row["old"] in todos else "", row["old"]), row["new"])
        for row in rows
    ]
    old, new = (
        np.stack([own[0] for own in embedder.documents(list(texts))])
        for texts in zip(*pairs, strict=True)
    )
    near = ((old * new).sum(1) - embedder.unrelated) / (1 - embedder.unrelated)
    return [
        {
            "history": "",
            "said": said.probabilities,
            "standing": [float(nearness), float(nearness), count_shared_words(*pair), True],
            "rival": 0.0,
            "label": row["relation"],
        }
        for row, pair, nearness, said in zip(rows, pairs, near, judge.relate(pairs), strict=True)
    ]


def read_held_pairs(folder: Path) -> list[dict]:
    """Every tenth labelled pair, which is only measured."""
    lines = [
        line
        for path in sorted(folder.glob("*.jsonl"))
        if path.stem != "plain"
        for line in path.read_text("utf-8").splitlines()
    ]
    return [json.loads(line) for line in lines[::10]]


def describe(row: dict, name: str) -> list[float]:
    judgement = Judgement("", 0.0, row["said"])
    return list(list_evidence(name, judgement, Standing(*row["standing"]), row["rival"]))


def fit(seen: np.ndarray, right: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Logistic regression by Newton's method, each row with what it counts; the last column, where it begins, is free."""
    scale = np.append(seen[:, :-1].std(0) + 1e-9, 1.0)
    seen, weights = seen / scale, np.zeros(seen.shape[1])
    stiff = np.diag(np.append(np.full(seen.shape[1] - 1, STIFFNESS), 0.0))
    for _ in range(60):
        chance = 1 / (1 + np.exp(-np.clip(seen @ weights, -30, 30)))
        slope = seen.T @ (counts * (chance - right)) + stiff @ weights
        bend = (
            (seen * (counts * chance * (1 - chance))[:, None]).T @ seen
            + stiff
            + 1e-9 * np.eye(len(stiff))
        )
        weights = weights - np.linalg.solve(bend, slope)
    return weights / scale


def fit_all(args: argparse.Namespace) -> None:
    rows = json.loads(args.rows.read_text("utf-8"))
    written = {}
    for name in WEIGHED:
        seen = np.array([describe(row, name) for row in rows])
        right = np.array([row["label"] == name for row in rows]).astype(float)
        counts = np.array([1.0 if row["history"] else ALONE for row in rows])
        names = sorted({row["history"] for row in rows} - {""})
        fold = np.array([names.index(one["history"]) % 6 if one["history"] else -1 for one in rows])
        score = np.zeros(len(rows))
        for part in range(6):
            rest = fold != part
            score[~rest] = seen[~rest] @ fit(seen[rest], right[rest], counts[rest])
        alone = np.array([row["said"][name] for row in rows])
        told = fold >= 0
        for of, value in (("judge alone", alone), ("weighed", score)):
            order = np.argsort(-value[told])
            hits, number = np.cumsum(right[told][order]), np.arange(1, told.sum() + 1)
            found = {}
            for wanted in (0.95, 0.9, 0.8, 0.7):
                enough = np.flatnonzero(hits / number >= wanted)
                found[wanted] = round(float(hits[enough[-1]] / hits[-1]), 2) if len(enough) else 0
            print(f"{name} ({hits[-1]:.0f}) {of}: found at so much right {found}")
        whole = fit(seen, right, counts)
        for of, part, value in (("histories", told, score), ("alone", ~told, seen @ whole)):
            chance = 1 / (1 + np.exp(-value[part]))
            bars = {
                bar: (
                    int(((chance >= bar) * right[part]).sum()),
                    int(((chance >= bar) * (1 - right[part])).sum()),
                )
                for bar in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
            }
            print(
                f"    {of} ({right[part].sum():.0f} of {part.sum()}): right, wrong from a chance on {bars}"
            )
        written[name] = [round(one, 3) for one in whole.tolist()]
    if args.write:
        (DATA / "weights.json").write_text(json.dumps(written, indent=1) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("collect")
    one.add_argument("rows", type=Path)
    one.set_defaults(run=collect)
    one = commands.add_parser("fit")
    one.add_argument("rows", type=Path)
    one.add_argument("--write", action="store_true")
    one.set_defaults(run=fit_all)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
