"""Helpers for tests that read the source tree: module names, imports between our own modules, import cycles."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "bethink"


def name_module(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def find_imports(tree: ast.AST, names: set[str]) -> set[str]:
    """Return our own modules that a tree imports, at any level."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bethink"):
            base = (node.module or "").removeprefix("bethink").removeprefix(".")
            inner = {f"{base}.{alias.name}".removeprefix(".") for alias in node.names} & names
            found |= inner or ({base} & names)
        elif isinstance(node, ast.Import):
            found |= {alias.name.removeprefix("bethink.") for alias in node.names} & names
    return found


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def count_cycles(graph: dict[str, set[str]]) -> int:
    """Count groups of modules that import one another."""
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
