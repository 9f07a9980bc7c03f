"""The public interface of a package: what its entry point gives to others, with kinds, places and first sentences.

Entry points only: `__init__.py`, `index.ts`, `lib.rs`, the root package of a Go module. Python is read by its syntax tree,
the others by their declarations in the first column. What is exported under conditions or by computation is not seen.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bethink.ingest.analyze.ecosystems import manifests
from bethink.ingest.analyze.formats import read_json, read_python, string, table
from bethink.ingest.analyze.prose import listed, sentence
from bethink.ingest.analyze.source import without_comments
from bethink.ingest.analyze.tree import Finding, Tree, finding, folder_of, line_at
from bethink.types import Entity

MOST = 8
MOST_NAMES = 30
DESCRIBED = 12  # names that are told with their first sentence


class Export(NamedTuple):
    name: str
    kind: str  # class, function, type, constant, module, or "" where it is not known
    file: str
    line: int
    about: str = ""


def analyze(tree: Tree) -> Iterator[Finding]:
    made = 0
    for reader in (_python, _javascript, _rust, _go):
        for name, file, exports in reader(tree):
            if exports and made < MOST:
                made += 1
                yield _told(name, file, exports)


def _told(name: str, file: str, exports: Sequence[Export]) -> Finding:
    shown = [_shown(export, file, at < DESCRIBED) for at, export in enumerate(exports)]
    inside = [export.line for export in exports if export.file == file] or [1]
    return finding(
        file,
        (min(inside), max(inside)),
        "component",
        "export",
        f"The public interface of {name} ({file}) is {listed(shown, MOST_NAMES)}.",
        importance=6,
        section=f"{name} › public interface",
        entities=[Entity(export.name, "symbol") for export in exports[:10]],
    )


def _shown(export: Export, file: str, described: bool) -> str:
    place = f"{export.file}:{export.line}" if export.file != file else ""
    about = [export.kind, place, export.about if described else ""]
    return f"{export.name} ({', '.join(filter(None, about))})" if any(about) else export.name


def _python(tree: Tree) -> Iterator[tuple[str, str, list[Export]]]:
    for path in tree.named("__init__.py"):
        folder = folder_of(path)
        if not folder or f"{folder_of(folder)}/__init__.py".lstrip("/") in tree:
            continue  # a package inside a package
        module = tree.parse(path, read_python)
        if module is None:
            continue
        imported = _imported(module, folder, folder)
        names = _all(module) or [
            name
            for name, (source, _) in imported.items()
            if source.startswith(folder) and not name.startswith("_")
        ]
        names = [name for name in names if not name.startswith("__")]
        exports = [_resolved(tree, name, imported, path, module) for name in names[:200]]
        yield folder.rsplit("/", 1)[-1], path, sorted(exports, key=lambda export: not export.about)


def _imported(module: ast.Module, folder: str, top: str) -> dict[str, tuple[str, str]]:
    """Each imported name with the path, without a suffix, of the module it comes from, and its name there."""
    found: dict[str, tuple[str, str]] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom):
            parts = node.module.split(".") if node.module else []
            if node.level:
                base = folder.split("/")
                source = "/".join([*base[: max(len(base) - node.level + 1, 0)], *parts])
            elif parts and parts[0] == top.rsplit("/", 1)[-1]:
                source = "/".join([top, *parts[1:]])
            else:
                source = ""  # somebody else's
            found |= {alias.asname or alias.name: (source, alias.name) for alias in node.names}
    return found


def _all(module: ast.Module) -> list[str]:
    names: list[str] = []
    for node in module.body:
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AnnAssign | ast.AugAssign)
            else []
        )
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            value = getattr(node, "value", None)
            items = value.elts if isinstance(value, ast.List | ast.Tuple | ast.Set) else []
            names += [
                item.value
                for item in items
                if isinstance(item, ast.Constant) and isinstance(item.value, str)
            ]
    return list(dict.fromkeys(names))


def _resolved(
    tree: Tree, name: str, imported: dict[str, tuple[str, str]], path: str, module: ast.Module
) -> Export:
    """Follows a name to where it is defined, through at most three re-exports."""
    file, looked_up, tree_of = path, name, module
    for _ in range(3):
        definition = _definition(tree_of, looked_up)
        if definition:
            kind, line, about = definition
            return Export(name, kind, file, line, about)
        source, original = imported.get(looked_up, ("", ""))
        following = next(
            (
                candidate
                for candidate in (
                    f"{source}.py",
                    f"{source}/__init__.py",
                    f"{source}/{original}.py",
                )
                if source and candidate in tree
            ),
            None,
        )
        parsed = tree.parse(following, read_python) if following else None
        if following is None or parsed is None:
            break
        if following.endswith(f"{source}/{original}.py"):
            return Export(name, "module", following, 1)
        file, looked_up, tree_of = following, original, parsed
        imported = _imported(parsed, folder_of(file), folder_of(path))
    return Export(name, "", file, 1)


def _definition(module: ast.Module, name: str) -> tuple[str, int, str] | None:
    for node in module.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return "class", node.lineno, sentence(ast.get_docstring(node) or "", 120)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return "function", node.lineno, sentence(ast.get_docstring(node) or "", 120)
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AnnAssign)
            else []
        )
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return "constant" if name.isupper() else "", node.lineno, ""
    return None


_DECLARED = re.compile(
    r"^export\s++(?:declare\s++)?(default\s++)?(?:abstract\s++)?(?:async\s++)?"
    r"(function\*?|class|interface|type|enum|const|let|var|namespace)\s++([A-Za-z_$][\w$]{0,80})",
    re.MULTILINE,
)
_LISTED = re.compile(
    r"^export\s++(type\s++)?\{([^}]{0,4000})\}(?:\s*+from\s*+['\"]([^'\"\n]{1,200})['\"])?",
    re.MULTILINE,
)
_STARRED = re.compile(
    r"^export\s++\*(?:\s++as\s++([A-Za-z_$][\w$]{0,80}))?\s++from\s++['\"](\.[^'\"\n]{0,200})['\"]",
    re.MULTILINE,
)
_KINDS = {
    "interface": "type",
    "type": "type",
    "enum": "type",
    "const": "",
    "let": "",
    "var": "",
    "function*": "function",
    "namespace": "module",
}


def _javascript(tree: Tree) -> Iterator[tuple[str, str, list[Export]]]:
    for manifest in manifests(tree):
        if not manifest.path.endswith("package.json"):
            continue
        folder = folder_of(manifest.path)
        value = table(tree.parse(manifest.path, read_json))
        stated = [
            string(value.get(key))
            for key in ("source", "types", "module", "main")
            if string(value.get(key))
        ]
        guesses = [
            *stated,
            *(
                f"{place}index.{suffix}"
                for place in ("src/", "", "lib/", "src/lib/")
                for suffix in ("ts", "tsx", "mts", "js", "mjs")
            ),
        ]
        paths = (posixpath.normpath(posixpath.join(folder, guess)) for guess in guesses)
        entry = next((path for path in paths if path in tree and path in tree.own), None)
        if entry:
            yield manifest.name or folder or "the package", entry, _exported(tree, entry, 0)


def _exported(tree: Tree, file: str, depth: int) -> list[Export]:
    text = without_comments(tree.text(file), "javascript")
    found = [
        Export(
            match[3],
            _KINDS.get(match[2], match[2]),
            file,
            line_at(text, match.start()),
            _described(tree.text(file), match.start()),
        )
        for match in _DECLARED.finditer(text)
    ]
    for match in _LISTED.finditer(text):
        for entry in match[2].split(","):
            name = re.sub(r"^\s*+type\s++", "", entry).split(" as ")[-1].strip()
            kind = "type" if match[1] or re.match(r"\s*+type\s", entry) else ""
            if re.fullmatch(r"[A-Za-z_$][\w$]{0,80}", name) and name != "default":
                found.append(Export(name, kind, file, line_at(text, match.start())))
    for match in _STARRED.finditer(text):
        base = posixpath.normpath(
            posixpath.join(folder_of(file), re.sub(r"\.[cm]?[jt]sx?$", "", match[2]))
        )
        target = next(
            (
                path
                for path in (
                    f"{base}.ts",
                    f"{base}.tsx",
                    f"{base}.js",
                    f"{base}/index.ts",
                    f"{base}/index.js",
                )
                if path in tree
            ),
            None,
        )
        if match[1] or target is None or depth >= 2:
            found.append(Export(match[1] or match[2], "module", file, line_at(text, match.start())))
        else:
            found += _exported(tree, target, depth + 1)
    return list({export.name: export for export in found[:200]}.values())


def _described(text: str, offset: int) -> str:
    """The first sentence of the comment that ends right before a declaration."""
    head = text[max(0, offset - 1_500) : offset].rstrip()
    if not head.endswith("*/"):
        return ""
    comment = head[head.rfind("/**") :] if "/**" in head else ""
    told = " ".join(re.sub(r"^\s*+/?\*+/?", "", line).strip() for line in comment.split("\n"))
    return sentence(re.split(r"\s@\w", told.replace("*/", "").strip(), maxsplit=1)[0], 120)


def _rust(tree: Tree) -> Iterator[tuple[str, str, list[Export]]]:
    for manifest in manifests(tree):
        file = f"{folder_of(manifest.path)}/src/lib.rs".lstrip("/")
        if manifest.language != "Rust" or file not in tree:
            continue
        raw = tree.text(file)
        text = without_comments(raw, "rust")
        found = [
            Export(
                match[2],
                {
                    "fn": "function",
                    "mod": "module",
                    "struct": "type",
                    "enum": "type",
                    "macro_rules!": "macro",
                }.get(match[1], match[1]),
                file,
                line_at(text, match.start()),
            )
            for match in re.finditer(
                r"(?m)^pub\s++(?:async\s++|unsafe\s++|const\s++)?(fn|struct|enum|trait|type|mod|const|static)\s++(\w{1,80})",
                text,
            )
        ]
        for match in re.finditer(
            r"(?m)^pub\s++use\s++([\w:]{1,120}?)(?:::)?(\{[^}]{0,2000}\})?\s*+(?:as\s++(\w{1,80})\s*+)?;",
            text,
        ):
            names = (
                re.findall(r"\b[A-Za-z_]\w{0,80}(?=\s*+(?:,|\}))", match[2])
                if match[2]
                else [match[3] or match[1].rpartition("::")[2]]
            )
            found += (
                Export(name, "", file, line_at(text, match.start())) for name in names if name
            )
        yield manifest.name or "the crate", file, found


def _go(tree: Tree) -> Iterator[tuple[str, str, list[Export]]]:
    for manifest in manifests(tree):
        if not manifest.path.endswith("go.mod"):
            continue
        found: list[Export] = []
        folder = folder_of(manifest.path)
        for file in tree.suffixed(".go"):
            if folder_of(file) != folder or re.search(r"(?m)^package main\b", tree.text(file)):
                continue
            text = without_comments(tree.text(file), "go")
            found += (
                Export(
                    match[2],
                    {"func": "function", "type": "type"}[match[1]],
                    file,
                    line_at(text, match.start()),
                )
                for match in re.finditer(r"(?m)^(func|type)\s++([A-Z]\w{0,80})", text)
            )
        if found:
            yield manifest.name, found[0].file, found
