"""Fit and measure the weights of `ingest/effects.py`: what a new note does to a known one.

    python bench/judge/effects.py collect ROWS.json HISTORIES.jsonl [MORE.jsonl …] [--pairs]
    python bench/judge/effects.py fit ROWS.json [--write]      # needs scikit-learn

A history file has one note a line: {"history", "n", "text", "effect"}, where the effect is keep, adds:N, changes:N, replaces:N, same:N,
answers:N or completes:N. `collect` adds the notes one after the other to an empty memory, as a user would, and stores the features of every
pair that was compared; `--pairs` adds the labelled pairs of this folder that the judge did not learn from, as two notes in an empty memory,
each with less weight. `fit` reports precision and recall of each effect with every history weighed by a regression that did not see it;
`--write` then fits all of them and stores the weights in the package.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from notes import HERE, read_groups

from bethink import Bethink, config
from bethink.embed import open_embedder
from bethink.ingest import compare, effects
from bethink.ingest.effects import EFFECTS, Position, Side, collect_features
from bethink.ingest.extract import extract
from bethink.ingest.reconcile import LONGEST
from bethink.judge import Judge
from bethink.model import Passage

WEIGHTS = Path(effects.__file__).with_name("data") / "effects.json"
CLASSES = {"adds": "keep"}
STIFFNESS = 0.1  # inverse strength of the L2 penalty; .03 and .3 give the same within a point
FOLDS = 5
# Weight of a pair alone beside one of a history. Without them questions that are answered right away are missed (25 % found instead of 79 %);
# with the full weight marks among many notes lose 3 points of precision.
ALONE = 0.3
STRANGERS = {name: float(name == "keep") for name in EFFECTS}


def collect(args: argparse.Namespace) -> None:
    rows: list[dict] = []
    for file in args.files:
        histories = defaultdict(list)
        for line in file.read_text("utf-8").splitlines():
            if line.strip():
                note = json.loads(line)
                histories[note["history"]].append(note)
        for name, notes in histories.items():
            rows += collect_history(name, notes)
        print(file.name, len(histories), "histories")
    rows += collect_pairs() if args.pairs else []
    args.rows.write_text(json.dumps(rows), "utf-8")
    print(len(rows), "pairs", dict(Counter(row["label"] for row in rows)))


def collect_history(name: str, notes: list[dict]) -> list[dict]:
    """Return the features and labels of every pair that is compared while the notes are added."""
    rows: list[dict] = []
    numbers: dict[str, int] = {}
    current: dict = {}
    original = compare.collect_features

    def record(old, new, *rest):
        features = original(old, new, *rest)
        effect, _, number = current["effect"].partition(":")
        label = effect if number and int(number) == numbers.get(old.text) else "keep"
        pair = {"old": old.text, "new": new.text}
        rows.append({"history": name, "label": label, "features": features, **pair})
        return features

    compare.collect_features = record
    compare.weigh_effect = lambda features: STRANGERS
    try:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / ".git").mkdir()
            with Bethink(Path(folder) / "memory.db", directory=folder) as memory:
                for note in notes:
                    current = note
                    outcome = memory.add(note["text"])
                    stored = memory.one(outcome.id)
                    numbers[compare.leave_label_out(stored)] = note["n"]
    finally:
        compare.collect_features, compare.weigh_effect = original, effects.weigh_effect
    return rows


def collect_pairs() -> list[dict]:
    """Return the features of labelled pairs that the judge did not learn from, each as two notes in an empty memory."""
    lines = [
        line
        for path in sorted((HERE / "pairs").glob("*.jsonl"))
        if path.stem != "plain"
        for line in path.read_text("utf-8").splitlines()
    ]
    held = [json.loads(line) for line in lines[::10]] + read_groups()[1]
    held = [row for row in held if max(len(row["old"]), len(row["new"])) <= LONGEST]
    todos = {row["old"] for row in held if row["relation"] == "completes"}
    embedder = open_embedder(config.load())
    olds, news = (
        np.stack([own[0] for own in embedder.documents([row[name] for row in held])])
        for name in ("old", "new")
    )
    near = ((olds * news).sum(1) - embedder.unrelated) / (1 - embedder.unrelated)
    sides = []
    for row in held:
        old, new = (extract(Passage(row[name])) for name in ("old", "new"))
        wanted = row["old"] in todos and old.kind not in ("question", "problem")
        sides.append((make_side(old, "todo" if wanted else old.kind), make_side(new, new.kind)))
    judged = Judge().relate([(old.text, new.text) for old, new in sides])
    rows = []
    for row, (old, new), nearness, judgement in zip(held, sides, near, judged, strict=True):
        position = Position(float(nearness), float(nearness), True)
        features = collect_features(old, new, judgement, position, 0.0)
        label = row["relation"] if row["relation"] in EFFECTS else "keep"
        pair = {"old": old.text, "new": new.text, "weight": ALONE}
        rows.append({"history": row["old"], "label": label, "features": features, **pair})
    return rows


def make_side(passage: Passage, kind: str | None) -> Side:
    text = compare._TODO_LABEL.sub("", passage.content) if kind == "todo" else passage.content
    return Side(text, kind or "general", frozenset(one.name for one in passage.entities))


def fit(args: argparse.Namespace) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows = json.loads(args.rows.read_text("utf-8"))
    names = list(rows[0]["features"])
    seen = np.array([[row["features"][name] for name in names] for row in rows])
    labels = np.array([CLASSES.get(row["label"], row["label"]) for row in rows])

    weights = np.array([row.get("weight", 1.0) for row in rows])

    def learn(at):
        model = make_pipeline(StandardScaler(), LogisticRegression(C=STIFFNESS, max_iter=2000))
        return model.fit(seen[at], labels[at], logisticregression__sample_weight=weights[at])

    chances = np.zeros((len(rows), len(EFFECTS)))
    groups = [row["history"] for row in rows]
    for learned, held in GroupKFold(FOLDS).split(seen, labels, groups):
        model = learn(learned)
        order = [list(model.classes_).index(name) for name in EFFECTS]
        chances[held] = model.predict_proba(seen[held])[:, order]
    for title, chosen in (("histories", weights == 1.0), ("pairs alone", weights < 1.0)):
        if chosen.any():
            print("#", title)
            found = {name: chances[chosen, at] for at, name in enumerate(EFFECTS)}
            report(labels[chosen], found)
    if args.write:
        model = learn(np.arange(len(rows)))
        scaler, regression = model
        classes = list(regression.classes_)
        WEIGHTS.write_text(
            json.dumps(
                {
                    "features": names,
                    "mean": [round(float(one), 5) for one in scaler.mean_],
                    "scale": [round(float(one), 5) for one in scaler.scale_],
                    "coefficients": {
                        name: [
                            round(float(one), 4) for one in regression.coef_[classes.index(name)]
                        ]
                        for name in EFFECTS
                    },
                    "intercepts": {
                        name: round(float(regression.intercept_[classes.index(name)]), 4)
                        for name in EFFECTS
                    },
                },
                indent=1,
            )
            + "\n",
            "utf-8",
        )
        print("written:", WEIGHTS)


def report(labels, chances: dict) -> None:
    """Print right and wrong pairs of each effect at several thresholds."""
    changed = chances["replaces"] + chances["changes"]
    changes = (labels == "replaces") | (labels == "changes")
    for name, chance, right in (
        *((name, chances[name], labels == name) for name in EFFECTS[1:]),
        ("replaces or changes", changed, changes),
    ):
        print(f"{name} ({right.sum()})")
        for bar in (0.07, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95):
            flagged = chance >= bar
            found, wrong = (flagged & right).sum(), (flagged & ~right).sum()
            if found + wrong:
                precision, recall = found / (found + wrong), found / right.sum()
                line = (
                    f"right {found:4} wrong {wrong:4} precision {precision:.3f} recall {recall:.3f}"
                )
                print(f"  from {bar:.2f}: {line}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    steps = parser.add_subparsers(required=True)
    step = steps.add_parser("collect")
    step.add_argument("rows", type=Path)
    step.add_argument("files", type=Path, nargs="+")
    step.add_argument("--pairs", action="store_true", help="also the labelled pairs of this folder")
    step.set_defaults(run=collect)
    step = steps.add_parser("fit")
    step.add_argument("rows", type=Path)
    step.add_argument("--write", action="store_true")
    step.set_defaults(run=fit)
    args = parser.parse_args()
    args.run(args)


main()
