"""The costs that docs/concepts/speed.md states are what the code costs: as ratios to a fixed piece of work, in processor time."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "bench" / "cost.py"


@pytest.mark.usefixtures("with_model")
def test_the_table_of_costs_is_true():
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
