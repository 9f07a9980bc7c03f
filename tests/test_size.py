"""The house stays small: what is counted here may only fall. `python tests/test_size.py` prints the table of ARCHITECTURE.md.

A limit is lowered whenever the count has fallen; it is raised only with a reason in the commit.
"""

import ast
import io
import os
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "bethink"
LIMITS = {
    "tokens": 268_100,
    "lines": 37_846,
    "files": 123,
    "import cycles": 0,
    "function-level imports of our own": 34,
    "functions of complexity over 15": 0,
    "class names used twice": 0,
    "test lines": 24_216,
}
# Files in which a command runs; what runs only while a module is imported is left out.
RUNS = {"add": 25, "search": 22, "hook": 19, "backfill": 35}

UNCOUNTED = (tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER)
LAYOUT = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
BRANCHES = (ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler, ast.BoolOp)
BRANCHES += (ast.match_case, ast.comprehension)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def count_tokens(text: str) -> int:
    """Tokens of a module without comments, docstrings and blank lines."""
    count, fresh = 0, True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in LAYOUT:
            fresh = True
        elif token.type not in UNCOUNTED:
            count += not (token.type == tokenize.STRING and fresh)  # a docstring
            fresh = False
    return count


def name_module(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def find_imports(tree: ast.AST, names: set[str]) -> set[str]:
    """Our own modules that a tree imports, wherever the import stands."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bethink"):
            base = (node.module or "").removeprefix("bethink").removeprefix(".")
            inner = {f"{base}.{alias.name}".removeprefix(".") for alias in node.names} & names
            found |= inner or ({base} & names)
        elif isinstance(node, ast.Import):
            found |= {alias.name.removeprefix("bethink.") for alias in node.names} & names
    return found


def is_import(node: ast.AST) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def count_cycles(graph: dict[str, set[str]]) -> int:
    """Groups of modules that import one another."""
    reach = {name: set(targets) for name, targets in graph.items()}
    changed = True
    while changed:
        changed = False
        for targets in reach.values():
            more = set().union(*(reach[one] for one in targets)) - targets
            changed = changed or bool(more)
            targets |= more
    circular = [name for name, targets in reach.items() if name in targets]
    return len({frozenset(reach[name] & {*circular}) for name in circular})


def measure() -> dict[str, int]:
    found: Counter[str] = Counter()
    paths = sorted(SOURCE.rglob("*.py"))
    names = {name_module(path) for path in paths} - {""}
    graph: dict[str, set[str]] = {}
    classes: Counter[str] = Counter()
    for path in paths:
        text = path.read_text("utf-8")
        tree = ast.parse(text)
        found["tokens"] += count_tokens(text)
        found["lines"] += text.count("\n")
        found["files"] += 1
        for node in ast.walk(tree):
            if is_for_types(node):
                node.body = [ast.Pass()]
        graph[name_module(path)] = find_imports(tree, names) - {name_module(path)}
        nodes = list(ast.walk(tree))
        classes.update(node.name for node in nodes if isinstance(node, ast.ClassDef))
        for node in nodes:
            if isinstance(node, FUNCTIONS):
                inner = list(ast.walk(node))
                own = sum(bool(find_imports(one, names)) for one in inner if is_import(one))
                found["function-level imports of our own"] += own
                branches = sum(isinstance(one, BRANCHES) for one in inner)
                found["functions of complexity over 15"] += branches > 15
    found["class names used twice"] = sum(count > 1 for count in classes.values())
    found["import cycles"] = count_cycles(graph)
    tests = (ROOT / "tests").rglob("*.py")
    found["test lines"] = sum(path.read_text("utf-8").count("\n") for path in tests)
    return dict(found)


TRACED = """
import os, sys, threading
seen, importing = set(), threading.local()
def trace(frame, event, argument):
    code = frame.f_code
    if code.co_name == "<module>":
        step = {"call": 1, "return": -1}.get(event, 0)
        importing.depth = getattr(importing, "depth", 0) + step
    elif "bethink" + os.sep in code.co_filename and not getattr(importing, "depth", 0):
        seen.add(code.co_filename)
from bethink.surface.cli.main import main
os._exit = sys.exit  # by which a hook ends
threading.setprofile(trace)
sys.setprofile(trace)
try:
    main()
except SystemExit:
    pass
sys.setprofile(None)
print(len(seen), file=open(os.environ["COUNT"], "w"))
"""
TALK = "## User\n\nWe decided to use Redis for the cache.\n\n## Assistant\n\nDone.\n"


def count_files(folder: Path, *words: str, typed: str = "") -> int:
    """In how many files of ours one command runs."""
    counted = folder / "count"
    known = {"PATH": os.environ["PATH"], "HOME": str(folder), "COUNT": str(counted)}
    known |= {"BETHINK_EMBEDDING": "hashing", "BETHINK_OFFLINE": "1"}
    program = [sys.executable, "-c", TRACED, *words]
    how = {"text": True, "capture_output": True, "check": True, "timeout": 60}
    subprocess.run(program, cwd=folder, env=known, input=typed, **how)
    return int(counted.read_text())


def measure_runs(folder: Path) -> dict[str, int]:
    (folder / "talk.md").write_text(TALK)
    asked = '{"prompt": "which cache do we use?", "session_id": "s", "cwd": "."}'
    return {
        "add": count_files(folder, "add", "We use Redis for the cache"),
        "search": count_files(folder, "search", "which cache do we use?"),
        "hook": count_files(folder, "hook", "prompt", "--host", "claude", typed=asked),
        "backfill": count_files(folder, "backfill", "talk.md"),
    }


@pytest.fixture(scope="module")
def counted() -> dict[str, int]:
    return measure()


@pytest.mark.parametrize("name", LIMITS)
def test_what_is_counted_only_falls(name: str, counted: dict[str, int]) -> None:
    assert counted[name] <= LIMITS[name]


def test_a_command_runs_in_few_files(tmp_path: Path) -> None:
    runs = measure_runs(tmp_path)
    assert {name: count for name, count in runs.items() if count > RUNS[name]} == {}


def test_no_file_names_the_first_name() -> None:
    first = "reco" + "llect"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    names = [name for name in listed.stdout.decode().split("\0") if (ROOT / name).is_file()]
    texts = {name: name.lower().encode() + (ROOT / name).read_bytes().lower() for name in names}
    assert [name for name, text in texts.items() if first.encode() in text] == []


if __name__ == "__main__":
    import tempfile

    for name, value in measure().items():
        print(f"| {name} | {value:,} |")  # noqa: T201
    with tempfile.TemporaryDirectory() as where:
        for name, value in measure_runs(Path(where)).items():
            print(f"| files in which `{name}` runs | {value} |")  # noqa: T201
