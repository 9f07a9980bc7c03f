"""Floors of recall on a small set of our own, with the real model and the default settings.

The set, in tests/fixtures/quality, holds notes of three projects that do not exist and questions in the notes' words, in
other words and by identifier. A floor stands about three points below what was measured on 2026-11-15.
"""

from pathlib import Path

import pytest

from bethink import bench

SET = Path(__file__).parent / "fixtures" / "quality"
FLOORS = {
    "hybrid": {"hit@1": 0.84, "any@5": 0.95, "MRR": 0.89},
    "vector": {"hit@1": 0.86, "any@5": 0.95},
    "keyword": {"hit@1": 0.52, "any@5": 0.66},
}


@pytest.fixture(scope="module")
def measured(model_or_pull, tmp_path_factory):
    home = tmp_path_factory.mktemp("quality")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BETHINK_HOME", str(home))
        patch.setenv("BETHINK_OFFLINE", "1")
        patch.delenv("BETHINK_EMBEDDING", raising=False)
        patch.setenv("BETHINK_MODEL_DIR", str(model_or_pull.parent))
        return {row["mode"]: row for row in bench.run([SET], ["hybrid", "vector", "keyword"])}


@pytest.mark.parametrize("mode", FLOORS)
def test_recall_stays_above_its_floor(measured, mode):
    found = {measure: measured[mode][measure] for measure in FLOORS[mode]}
    assert all(found[measure] >= floor for measure, floor in FLOORS[mode].items()), found


def test_words_with_meaning_do_no_worse_than_either(measured):
    halves = (measured[mode]["MRR"] for mode in ("vector", "keyword"))
    assert measured["hybrid"]["MRR"] >= max(halves) - 0.02


def test_words_do_as_well_without_any_model(measured, offline, monkeypatch):
    monkeypatch.setenv("BETHINK_EMBEDDING", "none")
    (row,) = bench.run([SET], ["keyword"])
    known = {measure: measured["keyword"][measure] for measure in bench.MEASURES}
    assert {measure: row[measure] for measure in bench.MEASURES} == known
