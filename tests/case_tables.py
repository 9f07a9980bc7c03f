"""Tables of cases that are kept as data: `cases/NAME.txt` holds one Python literal a line, or an expression of names that the test gives."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("cases")


def cases(name: str, names: dict[str, Any] | None = None) -> list[Any]:
    lines = (FOLDER / f"{name}.txt").read_text("utf-8").splitlines()
    if names is not None:
        return [eval(line, dict(names)) for line in lines]
    return [ast.literal_eval(line) for line in lines]
