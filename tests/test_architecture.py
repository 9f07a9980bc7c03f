"""The rules of ARCHITECTURE.md that a machine can hold."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "bethink"

# Who may import whom: a module sees only modules of a lower level, function-level imports included.
LEVELS = [
    ["errors", "types", "text", "skills", "surface"],
    ["config", "post", "project", "embed.base", "llm.base", "hosts.base", "hosts.edit"],
    ["store", "embed", "llm", "hosts", "judge"],
    ["ingest", "recall", "hooks.state"],
    ["api"],
    ["features.language"],
    ["features", "surface.arguments", "surface.operations", "surface.render"],
    ["bench", "features.browse", "surface.mcp", "surface.http", "surface.web", "hooks"],
    ["hosts.install"],
    ["surface.cli", "__main__"],
]


def module_name(path: Path) -> str:
    parts = list(path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(part for part in parts if part != "__init__")


def level(name: str) -> int:
    best = max(
        (len(entry), number)
        for number, group in enumerate(LEVELS)
        for entry in group
        if name == entry or name.startswith(entry + ".") or entry == name.split(".")[0]
    )
    return best[1]


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            if name.startswith("bethink."):
                target = name.removeprefix("bethink.")
                while target and not any(
                    (SOURCE / Path(*target.split("."))).with_suffix(suffix).exists()
                    for suffix in (".py", "")
                ):
                    target = target.rpartition(".")[0]
                if target:
                    found.add(target)
    return found


MODULES = sorted(path for path in SOURCE.rglob("*.py") if module_name(path))


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_imports_point_down(path: Path) -> None:
    name = module_name(path)
    upwards = {target for target in imports(path) if level(target) > level(name)}
    assert not upwards, f"{name} imports {sorted(upwards)}, which stand above it"


def test_every_level_names_modules_that_exist() -> None:
    named = {entry for group in LEVELS for entry in group}
    existing = {module_name(path) for path in MODULES}
    assert named - existing == set()


def test_only_the_store_knows_sql_and_the_driver() -> None:
    guilty = [
        module_name(path)
        for path in MODULES
        if "import apsw" in path.read_text("utf-8")
        and not module_name(path).startswith(
            ("store", "surface.cli.connect", "hosts.opencode")
        )  # the last reads a database of that host
    ]
    assert guilty == []


def test_only_the_store_knows_postgresql() -> None:
    guilty = [
        module_name(path)
        for path in MODULES
        if "import psycopg" in path.read_text("utf-8") or "from psycopg" in path.read_text("utf-8")
    ]
    assert [name for name in guilty if not name.startswith("store.p")] == []


def test_no_module_uses_the_standard_librarys_sqlite() -> None:
    assert [
        module_name(path) for path in MODULES if "import sqlite3" in path.read_text("utf-8")
    ] == []


def test_files_stay_small() -> None:
    long = {
        module_name(path): lines
        for path in MODULES
        if (lines := path.read_text("utf-8").count("\n")) > 800
    }
    assert long == {}, f"files over 800 lines: {long}"


@pytest.mark.parametrize(
    ("statement", "forbidden"),
    [
        ("import bethink", {"bethink.api", "apsw", "numpy", "dataclasses", "argparse"}),
        (
            "import bethink.api",
            {
                "numpy",
                "onnxruntime",
                "tokenizers",
                "mcp",
                "psycopg",
                "bethink.ingest.pipeline",
                "urllib.request",
                "dataclasses",
            },
        ),
        ("import bethink.recall.query", {"threading", "calendar", "bethink.store"}),
        ("import bethink.recall.pipeline", {"numpy", "onnxruntime", "concurrent.futures"}),
        ("import bethink.store.sqlite", {"numpy", "onnxruntime", "importlib.resources"}),
    ],
)
def test_heavy_things_arrive_late(statement: str, forbidden: set[str]) -> None:
    code = f"{statement}\nimport sys\nprint(*sorted(set(sys.modules) & {forbidden!r}))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert loaded == []


def test_what_architecture_names_is_there() -> None:
    """Each `file.py:function` of the section "Where is …?" exists."""
    text = (SOURCE.parent.parent / "ARCHITECTURE.md").read_text("utf-8")
    named = re.findall(r"`([\w/]+\.py):([\w.]+)`", text.partition("## Where is")[2])
    assert len(named) >= 10
    for file, name in named:
        found: ast.AST | None = ast.parse((SOURCE / file).read_text("utf-8"))
        for part in name.split("."):
            inside = found.body if isinstance(found, ast.Module | ast.ClassDef) else []
            found = next((one for one in inside if getattr(one, "name", "") == part), None)
        assert found is not None, f"{file} has no {name}"
