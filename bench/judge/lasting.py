"""Fit and measure the weights of `ingest/lasting.py`: which statements of a conversation last.

    python bench/judge/lasting.py ROWS.jsonl [--write] [--without REPOSITORY]

A line of the rows is one statement: {"repository", "speaker", "text", "position", "width", "label", "heading", "working", "doubtful", "keep", "weight",
"kinds", "worth", "open"}: its form (`Form`), the judge's reading of it without the reply, and whether a careful reader would keep it. The
figures are of regressions that did not see the repository they weigh. `--write` fits all rows and stores the weights in the package.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from bethink.ingest import lasting
from bethink.judge import StatementReading

STIFFNESS = {
    "user": 12.0,
    "assistant": 12.0,
}  # of the L2 penalty; 3 to 20 give the same within a point
ROUNDS = 25


def read_rows(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]


def collect(row: dict) -> dict[str, float]:
    form = lasting.Form(*(row[name] for name in lasting.Form._fields))
    reading = StatementReading(row["kinds"], row["worth"], row["open"])
    return lasting.collect_evidence(form, reading)


def regress(features, labels, weights, stiffness: float):
    """Return the coefficients of a logistic regression with an L2 penalty, the intercept last."""
    rows = np.c_[features, np.ones(len(features))]
    penalty = np.full(rows.shape[1], stiffness)
    penalty[-1] = 1e-4
    found = np.zeros(rows.shape[1])
    for _ in range(ROUNDS):
        chances = 1 / (1 + np.exp(-rows @ found))
        slope = rows.T @ (weights * (chances - labels)) + penalty * found
        bend = (rows * (weights * chances * (1 - chances))[:, None]).T @ rows + np.diag(penalty)
        found -= np.linalg.solve(bend, slope)
    return found


def fit(rows: list[dict], speaker: str) -> tuple[dict, np.ndarray, np.ndarray]:
    """Return the weights of all rows, and the labels with the scores of the repositories left out."""
    evidence = [collect(row) for row in rows]
    names = sorted(evidence[0])
    features = np.array([[one[name] for name in names] for one in evidence])
    mean, spread = features.mean(0), features.std(0)
    scale = np.where(spread > 0.001, spread, 1.0)
    features = (features - mean) / scale
    labels = np.array([float(row["keep"]) for row in rows])
    weights = np.array([row.get("weight", 1.0) for row in rows])
    places = np.array([row["repository"] for row in rows])
    scores = np.zeros(len(rows))
    for place in sorted(set(places)):
        rest = places != place
        found = regress(features[rest], labels[rest], weights[rest], STIFFNESS[speaker])
        scores[~rest] = np.c_[features[~rest], np.ones((~rest).sum())] @ found
    found = regress(features, labels, weights, STIFFNESS[speaker])
    stored = {
        "features": names,
        "mean": [round(float(one), 4) for one in mean],
        "scale": [round(float(one), 4) for one in scale],
        "coefficients": {"lasts": [round(float(one), 4) for one in found[:-1]]},
        "intercepts": {"lasts": round(float(found[-1]), 4)},
    }
    return stored, labels, 1 / (1 + np.exp(-scores))


def report(labels, chances) -> None:
    """Print the precision and recall of several bars; from 0 is the control that keeps everything."""
    for bar in (0.0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7):
        kept = chances >= bar
        right = labels[kept].sum()
        precision, recall = right / max(1, kept.sum()), right / labels.sum()
        print(
            f"  from {bar:.2f}: {kept.sum():5} kept, precision {precision:.3f} recall {recall:.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--without", default="", help="leave a repository out")
    parser.add_argument("--into", type=Path, default=lasting.LASTING_WEIGHTS)
    args = parser.parse_args()
    rows = [row for row in read_rows(args.rows) if row["repository"] != args.without]
    stored = {}
    for speaker in ("user", "assistant"):
        own = [row for row in rows if row["speaker"] == speaker]
        if own:
            stored[speaker], labels, chances = fit(own, speaker)
            print(speaker, len(own), "statements,", int(labels.sum()), "to keep")
            report(labels, chances)
    if args.write:
        known = json.loads(args.into.read_text("utf-8")) if args.into.exists() else {}
        args.into.write_text(json.dumps(known | stored, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
