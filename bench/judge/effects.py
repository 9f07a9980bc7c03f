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
from bethink.ingest.effects import EFFECTS, Position, Side, collect_features, collect_words
from bethink.ingest.extract import extract
from bethink.ingest.reconcile import LONGEST_COMPARED
from bethink.judge import Judge
from bethink.model import Passage

WEIGHTS = Path(effects.__file__).with_name("data") / "effects.json"
CLASSES = {"adds": "keep"}
STIFFNESS = 0.1  # inverse strength of the L2 penalty; .03 and .3 give the same within a point
FOLDS = 5
PRIOR_ONLY = ("nearness_squared", "shared_near")  # features that only the prior uses
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
    originals = compare.collect_words, compare.weigh_effect, compare.choose_judged

    def record(old, new, position):
        words = originals[0](old, new, position)
        effect, _, number = current["effect"].partition(":")
        label = effect if number and int(number) == numbers.get(old.text) else "keep"
        pair = {"old": old.text, "new": new.text}
        rows.append({"history": name, "label": label, "words": words, **pair})
        return words

    def keep(features):
        """Note the features of the next pair that has none, and let the note change nothing."""
        next(row for row in rows if "features" not in row)["features"] = features
        return STRANGERS

    compare.collect_words, compare.weigh_effect = record, keep
    compare.choose_judged = lambda words: list(range(len(words)))
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
        compare.collect_words, compare.weigh_effect, compare.choose_judged = originals
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
    held = [row for row in held if max(len(row["old"]), len(row["new"])) <= LONGEST_COMPARED]
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
        words = collect_words(old, new, position)
        features = collect_features(words, judgement, 0.0)
        label = row["relation"] if row["relation"] in EFFECTS else "keep"
        pair = {"old": old.text, "new": new.text, "weight": ALONE}
        rows.append(
            {"history": row["old"], "label": label, "words": words, "features": features, **pair}
        )
    return rows


def make_side(passage: Passage, kind: str | None) -> Side:
    text = compare.TODO_LABEL.sub("", passage.content) if kind == "todo" else passage.content
    return Side(text, kind or "general", frozenset(one.name for one in passage.entities))


def fit(args: argparse.Namespace) -> None:
    rows = json.loads(args.rows.read_text("utf-8"))
    prior, chances = fit_prior(rows)
    report_prior(rows, chances)
    rows = keep_judged(rows, chances)
    names = [name for name in rows[0]["features"] if name not in PRIOR_ONLY]
    seen = np.array([[row["features"][name] for name in names] for row in rows])
    labels = np.array([CLASSES.get(row["label"], row["label"]) for row in rows])
    model, found = learn_held_out(rows, seen, labels, STIFFNESS)
    order = [list(model.classes_).index(name) for name in EFFECTS]
    alone = np.array([row.get("weight", 1.0) < 1.0 for row in rows])
    for title, chosen in (("histories", ~alone), ("pairs alone", alone)):
        if chosen.any():
            print("#", title)
            shares = found[chosen][:, order]
            report(labels[chosen], {name: shares[:, at] for at, name in enumerate(EFFECTS)})
    if args.write:
        stored = {"effects": write_weights(model, names, EFFECTS), "prior": prior}
        WEIGHTS.write_text(json.dumps(stored, indent=1) + "\n", "utf-8")
        print("written:", WEIGHTS)


def learn_held_out(rows: list[dict], seen, labels, stiffness: float):
    """Return a regression over all rows, and the chances of each row by one that did not see its history."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    weights = np.array([row.get("weight", 1.0) for row in rows])

    def learn(at):
        model = make_pipeline(StandardScaler(), LogisticRegression(C=stiffness, max_iter=3000))
        return model.fit(seen[at], labels[at], logisticregression__sample_weight=weights[at])

    chances = np.zeros((len(rows), len(set(labels))))
    groups = [row["history"] for row in rows]
    for learned, held in GroupKFold(FOLDS).split(seen, labels, groups):
        chances[held] = learn(learned).predict_proba(seen[held])
    return learn(np.arange(len(rows))), chances


def fit_prior(rows: list[dict]):
    """Fit the chance of any effect by words and nearness alone, which decides what the judge reads."""
    names = list(rows[0]["words"])
    seen = np.array([[row["words"][name] for name in names] for row in rows])
    wanted = np.array([has_effect(row) for row in rows])
    model, chances = learn_held_out(rows, seen, wanted, 0.3)
    return write_weights(model, names, ["any"]), chances[:, 1]


def has_effect(row: dict) -> bool:
    return CLASSES.get(row["label"], row["label"]) != "keep"


def keep_judged(rows: list[dict], chances) -> list[dict]:
    """Return the rows that the judge would read, with rivals among these alone."""
    notes = defaultdict(list)
    for at, row in enumerate(rows):
        notes[row["history"], row["new"]].append(at)
    kept = []
    for group in notes.values():
        ranked = sorted(group, key=lambda at: -chances[at])[: effects.MOST_JUDGED]
        read = [at for at in ranked if chances[at] >= effects.LEAST_CHANCE]
        shares = {at: find_share(rows[at]["features"]) for at in read}
        for at in read:
            rival = max((share for other, share in shares.items() if other != at), default=0.0)
            features = {**rows[at]["features"], "rival": effects.log_odds(rival)}
            kept.append({**rows[at], "features": features})
    return kept


def find_share(features: dict) -> float:
    """Return the largest share that the judge gives to a change."""
    changes = ("replaces", "same", "answers", "completes")
    return max(1 / (1 + np.exp(-features[f"judge_{name}"])) for name in changes)


def report_prior(rows: list[dict], chances) -> None:
    """Print how many effects the judge still reads, and how many pairs of a note."""
    notes = defaultdict(list)
    for at, row in enumerate(rows):
        if row.get("weight", 1.0) == 1.0:
            notes[row["history"], row["new"]].append(at)
    total = sum(has_effect(rows[at]) for group in notes.values() for at in group)
    for most in (2, 3, 4):
        for least in (0.0, 0.01, 0.02, 0.05):
            ranked = (sorted(group, key=lambda at: -chances[at])[:most] for group in notes.values())
            read = [at for group in ranked for at in group if chances[at] >= least]
            share, pairs = sum(has_effect(rows[at]) for at in read) / total, len(read) / len(notes)
            print(
                f"  judge at most {most} from {least}: {share:.4f} read, {pairs:.2f} pairs a note"
            )


def write_weights(model, names: list[str], outcomes) -> dict:
    scaler, regression = model
    classes = list(regression.classes_)
    rows = {name: classes.index(name) for name in outcomes} if len(classes) > 2 else {"any": 0}
    return {
        "features": names,
        "mean": [round(float(one), 5) for one in scaler.mean_],
        "scale": [round(float(one), 5) for one in scaler.scale_],
        "coefficients": {
            name: [round(float(one), 4) for one in regression.coef_[at]]
            for name, at in rows.items()
        },
        "intercepts": {
            name: round(float(regression.intercept_[at]), 4) for name, at in rows.items()
        },
    }


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


if __name__ == "__main__":
    main()
