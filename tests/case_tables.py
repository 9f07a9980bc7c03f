"""Tables of cases that are kept as data: `cases/NAME.txt` holds one Python literal a line."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("cases")


def cases(name: str) -> list[Any]:
    lines = (FOLDER / f"{name}.txt").read_text("utf-8").splitlines()
    return [ast.literal_eval(line) for line in lines]
