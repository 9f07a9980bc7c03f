"""The rules of ARCHITECTURE.md that a machine can hold."""

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from source_tree import ROOT, SOURCE, count_cycles, find_imports, is_for_types, name_module

# Who may import whom: a module sees only modules of a lower level, function-level imports included.
LEVELS = """
    errors hashes model schema system text skills app language plugins folders
    config enforced post registry project embed.base llm.base agents.base agents.edit
    store embed llm agents caller judge
    ingest recall consent outgoing
    api
    features.language
    features app.operations app.records app.render app.results
    bench features.browse app.mcp app.http app.web hooks
    agents.install
    app.cli __main__
""".strip()
RANKS = {name: rank for rank, line in enumerate(LEVELS.splitlines()) for name in line.split()}


def level(name: str) -> int:
    """The level of the longest entry that names a module, or else a part of its package."""
    first = name.split(".")[0]
    named = [one for one in RANKS if f"{name}.".startswith(f"{one}.") or one == first]
    return RANKS[max(named, key=len)]


MODULES = sorted(path for path in SOURCE.rglob("*.py") if name_module(path))


@pytest.mark.parametrize("path", MODULES)
def test_imports_point_down(path):
    known = set(map(name_module, MODULES))
    name, tree = name_module(path), ast.parse(path.read_text("utf-8"))
    if name == "plugins":  # which names the types of what others register
        tree.body = [node for node in tree.body if not is_for_types(node)]
    found = find_imports(tree, known)
    upwards = {target for target in found if level(target) > level(name)}
    assert not upwards, f"{name} imports {sorted(upwards)}, which stand above it"


def test_modules_do_not_import_in_circles() -> None:
    known = set(map(name_module, MODULES))
    graph: dict[str, set[str]] = {}
    for path in MODULES:
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if is_for_types(node):
                node.body = [ast.Pass()]
        graph[name_module(path)] = find_imports(tree, known) - {name_module(path)}
    assert count_cycles(graph) == 0


@pytest.mark.parametrize(
    ("driver", "allowed"),
    [
        # agents.database reads the databases of other programs.
        pytest.param("import apsw", ("store", "app.cli.connect", "agents.database"), id="apsw"),
        pytest.param(r"(import|from) psycopg", ("store.p",), id="psycopg"),
        pytest.param("import sqlite3", (), id="sqlite3"),
    ],
)
def test_only_the_store_imports_a_database_driver(driver: str, allowed: tuple[str, ...]) -> None:
    guilty = [path for path in MODULES if re.search(driver, path.read_text("utf-8"))]
    assert [name for name in map(name_module, guilty) if not name.startswith(allowed)] == []


def test_memories_are_changed_through_the_writer_alone() -> None:
    """`memory.store` may be a `ReadStore`, which has none of these."""
    change = r"\bmemory\.store\.(write|take|rebuild|drop_vectors|reset|backup|close|run)\b"
    guilty = [path for path in MODULES if re.search(change, path.read_text("utf-8"))]
    assert [*map(name_module, guilty)] == []


def test_the_levels_are_those_of_the_architecture_page() -> None:
    assert f"```\n{LEVELS.replace('    ', '')}\n```" in (ROOT / "ARCHITECTURE.md").read_text(
        "utf-8"
    )


ONE_OF_MANY = tuple(
    "agents language app.cli app.operations llm embed ingest.analyze".split()
)  # a row each
MAPPED = [name for name in map(name_module, MODULES) if not name.startswith(ONE_OF_MANY)]


@pytest.mark.parametrize(
    "module", [name for name in MAPPED if name not in ("__main__", "recall", "store", "ingest")]
)
def test_the_map_of_the_architecture_page_names_the_module(module: str) -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    rows = page.partition("## Map")[2].partition("\n## ")[0]
    assert re.search(rf"[`/]{module.rpartition('.')[2]}(?:\.py|/)?`", rows)


def test_every_level_names_modules_that_exist() -> None:
    assert set(RANKS) - set(map(name_module, MODULES)) == set()


def test_no_tracked_file_uses_the_first_product_name() -> None:
    first = "reco" + "llect"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    names = [name for name in listed.stdout.decode().split("\0") if (ROOT / name).is_file()]
    texts = {name: name.lower().encode() + (ROOT / name).read_bytes().lower() for name in names}
    assert [name for name, text in texts.items() if first.encode() in text] == []


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        pytest.param("bethink", "bethink.api apsw numpy dataclasses argparse", id="bethink"),
        pytest.param(
            "bethink.api",
            "numpy onnxruntime tokenizers mcp psycopg bethink.ingest.pipeline urllib.request dataclasses",
            id="bethink.api",
        ),
        pytest.param(
            "bethink.recall.query",
            "threading calendar bethink.store.base",
            id="bethink.recall.query",
        ),
        pytest.param(
            "bethink.recall.pipeline",
            "numpy onnxruntime concurrent.futures",
            id="bethink.recall.pipeline",
        ),
        pytest.param(
            "bethink.store.sqlite",
            "numpy onnxruntime importlib.resources",
            id="bethink.store.sqlite",
        ),
    ],
)
def test_heavy_things_arrive_late(module: str, heavy: str) -> None:
    code = f"import {module}, sys\nprint(*sorted(set(sys.modules) & {set(heavy.split())!r}))"
    program = [sys.executable, "-c", code]
    loaded = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    assert loaded.split() == []


WHERE_IS = (ROOT / "ARCHITECTURE.md").read_text("utf-8").partition("## Where is")[2]


@pytest.mark.parametrize(
    ("file", "name"), re.findall(r"`([\w/]+\.py):([\w.]+)`", WHERE_IS), ids=str
)
def test_what_architecture_names_is_there(file: str, name: str) -> None:
    """Each `file.py:function` of the section "Where is …?" exists."""
    found: ast.AST | None = ast.parse((SOURCE / file).read_text("utf-8"))
    for part in name.split("."):
        inside = found.body if isinstance(found, ast.Module | ast.ClassDef) else []
        found = next((one for one in inside if getattr(one, "name", "") == part), None)
    assert found is not None


def is_call_by_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


# growth.py reads the patterns of our own source, some of which are expressions.
TESTS = sorted({*(ROOT / "tests").rglob("*.py")} - {ROOT / "tests" / "growth.py"})


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.relative_to(ROOT).as_posix()) for path in TESTS]
)
def test_tests_do_not_evaluate_text(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    called = {node.func.id for node in ast.walk(tree) if is_call_by_name(node)}
    assert "eval" not in called


def test_tables_of_cases_are_python() -> None:
    assert not (ROOT / "tests" / "cases").exists()


# Guards that `make mutants` breaks


def load_mutants() -> list[tuple[str, ...]]:
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "bench" / "mutants.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.MUTANTS)


MUTANTS = [pytest.param(one, id=one[0]) for one in load_mutants()]


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_guard_that_a_mutant_breaks_is_there(mutant) -> None:
    assert mutant.old in (SOURCE / mutant.file).read_text("utf-8")


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_tests_that_should_kill_a_mutant_exist(mutant) -> None:
    named = [name.partition("::") for name in mutant.tests.split()]
    tests = {name: (ROOT / "tests" / name).read_text("utf-8") for name, _, _ in named}
    gone = [
        test
        for name, _, test in named
        if test and f"def {test.partition('[')[0]}(" not in tests[name]
    ]
    assert gone == []
