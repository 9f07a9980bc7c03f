"""What the source files say: what each folder is for, what a package gives to others, and the warnings that programmers left.

Descriptions are the writers' own: the README of a folder, what a module says of itself, the first sentence about a symbol. Of the
public interface only entry points are read: `__init__.py`, `index.ts`, `lib.rs`, the root package of a Go module. What is exported
under conditions or by computation is not seen. Plans (TODO, FIXME) are left out, because they age without anybody noticing.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from bethink.ingest.analyze.manifests import manifests
from bethink.ingest.analyze.pages import page_of
from bethink.ingest.analyze.tree import (
    Finding,
    Tree,
    clip,
    finding,
    folder_of,
    listed,
    load_table,
    most_important,
    name_of,
    plain,
    read_json,
    sentence,
    string,
    table,
    words,
)
from bethink.ingest.languages import SUFFIXES
from bethink.ingest.symbols import Outline, find_matches, outline, parse_source, read_file_doc
from bethink.types import Entity

MOST_FOLDERS = 14  # that are described; set by hand, as all of these
MOST_MODULES = 14  # of one folder
MOST_INTERFACES = 8
MOST_NAMES = 30  # of one interface
DESCRIBED = 12  # names that are told with their first sentence
MOST_REMARKS, MOST_REMARKS_PER_FILE = 8, 3
SHORTEST_REMARK = 8  # words
HEAD = 8_000  # characters in which a file says what it is for
SOURCES = (".py", ".go", ".rs", ".ts", ".tsx", ".js", ".mjs")


def analyze(tree: Tree) -> Iterator[Finding]:
    yield from _folders(tree)
    yield from _interfaces(tree)
    yield from _remarks(tree)


# What each folder is for


class Description(NamedTuple):
    path: str
    line: int
    text: str


def _folders(tree: Tree) -> Iterator[Finding]:
    heads = re.compile(r"(?:__init__\.py|mod\.rs|lib\.rs|main\.rs|doc\.go|index\.[jt]sx?|.*\.go)")
    about = _described_folders(tree)
    modules: dict[str, list[Description]] = {}
    for path in tree.suffixed(*SOURCES):
        found = _own_words(tree.text(path)[:HEAD], SUFFIXES[path[path.rindex(".") :]])
        if not found or path.startswith("."):
            continue
        text, line = found
        # One file speaks for its folder; in Go any, because the comment is about the whole package.
        if heads.fullmatch(name_of(path)):
            about.setdefault(folder_of(path), Description(path, line, sentence(text, 240)))
        else:
            told = Description(path, line, sentence(text, 120))
            modules.setdefault(folder_of(path), []).append(told)
    made = [
        (len(modules.get(folder, [])), one)
        for folder in sorted({*about, *modules}, key=lambda folder: (folder.count("/"), folder))
        if (one := _describe_folder(folder, about.get(folder), modules.get(folder, [])))
    ]
    # Folders that explain more of themselves come first when there are too many.
    chosen = sorted(range(len(made)), key=lambda at: (-min(made[at][0], 4), at))[:MOST_FOLDERS]
    yield from (made[at][1] for at in sorted(chosen))


def _own_words(head: str, language: str) -> tuple[str, int] | None:
    """What a file says about itself before any code, and the line. A licence is no description."""
    if not re.search(r"[#/\"']", head):
        return None
    doc, line = read_file_doc(head, language)
    text = plain(" ".join(doc.split("\n")[0].split())) if doc else ""
    idle = re.search(r"(?i)auto-?generated|code generated|@generated|eslint|do not edit", text)
    return (text, line) if len(text) >= 12 and not idle else None


def _described_folders(tree: Tree) -> dict[str, Description]:
    """Folders that a README of their own or the description in their manifest describes."""
    about: dict[str, Description] = {}
    elsewhere = re.compile(r"(?:docs?|documentation)(?:/|$)|\.")
    for path in tree.named("readme.md", "readme.rst"):
        folder = folder_of(path)
        if not folder or folder.count("/") > 2 or elsewhere.match(folder):
            continue
        for block in page_of(tree, path).blocks:
            text = plain(" ".join(block.text.split()))
            if block.kind == "paragraph" and words(text) >= 5:
                about.setdefault(folder, Description(path, block.lines[0], clip(text, 300)))
                break
    for manifest in manifests(tree):
        if folder_of(manifest.path) and words(manifest.description) >= 3:
            told = Description(manifest.path, 1, clip(manifest.description, 300))
            about.setdefault(folder_of(manifest.path), told)
    return about


def _describe_folder(
    folder: str, about: Description | None, modules: Sequence[Description]
) -> Finding | None:
    if about is None and len(modules) < 2:
        return None
    by_manifest = about and about.path.endswith((".toml", ".json", ".xml", ".yaml", ".cfg", ".exs"))
    if by_manifest and not modules:
        return None  # it is told with its dependencies
    name = f"{folder}/" if folder else "The top folder"
    lead = (
        f"{name} is described as: {about.text.rstrip('.')}."
        if about
        else f"{name} holds {len(modules)} modules that say what they do."
    )
    lines = [f"- {name_of(one.path)}: {one.text}" for one in modules[:MOST_MODULES]]
    if len(modules) > MOST_MODULES:
        lines.append(f"- and {len(modules) - MOST_MODULES} more")
    cited = about or modules[0]
    return finding(
        cited.path,
        cited.line,
        "component",
        "component",
        "\n".join((lead, *lines)),
        importance=5.5 if folder.count("/") < 3 else 5,
        section=f"Components › {folder or 'top'}",
        entities=[Entity(one.path, "file") for one in modules[:6]],
    )


# What a package gives to others


class Export(NamedTuple):
    name: str
    kind: str  # class, function, type, constant, module, or "" where it is not known
    file: str
    line: int
    about: str = ""


def _interfaces(tree: Tree) -> Iterator[Finding]:
    made = 0
    for reader in (_python_exports, _script_exports, _rust_exports, _go_exports):
        for name, file, exports in reader(tree):
            if not exports or made >= MOST_INTERFACES:
                continue
            made += 1
            shown = [_show(export, file, at < DESCRIBED) for at, export in enumerate(exports)]
            inside = [export.line for export in exports if export.file == file] or [1]
            yield finding(
                file,
                (min(inside), max(inside)),
                "component",
                "export",
                f"The public interface of {name} ({file}) is {listed(shown, MOST_NAMES)}.",
                importance=6,
                section=f"{name} › public interface",
                entities=[Entity(export.name, "symbol") for export in exports[:10]],
            )


def _show(export: Export, file: str, described: bool) -> str:
    place = f"{export.file}:{export.line}" if export.file != file else ""
    about = [export.kind, place, export.about if described else ""]
    return f"{export.name} ({', '.join(filter(None, about))})" if any(about) else export.name


def _outline(tree: Tree, file: str) -> Outline:
    language = SUFFIXES[file[file.rindex(".") :]]
    found = tree.parse(file, _OUTLINES[language])
    return found or Outline([])


_OUTLINES = {
    language: (lambda text, language=language: outline(text, language))
    for language in ("python", "javascript", "typescript", "tsx", "rust", "go")
}


def _defined(tree: Tree, file: str, name: str) -> Export | None:
    """The symbol of that name at the top of a file."""
    for symbol in _outline(tree, file).symbols:
        if symbol.name == name and not symbol.parent:
            kinds = load_table("analyze")["kinds"]
            kind = kinds.get(symbol.kind, symbol.kind)
            return Export(name, kind, file, symbol.lines[0], sentence(symbol.doc, 120))
    return None


def _matches(tree: Tree, file: str, query: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """What a query finds in a file: the role of each match, and the texts of its captures."""
    language = SUFFIXES[file[file.rindex(".") :]]
    source, root = parse_source(tree.text(file), language)
    for settings, captures in find_matches(f"exports/{query}", language, root):
        texts = {name: source.text_of(node) for name, node in captures.items()}
        if all(texts[name] == value for name, value in settings.items() if name in texts):
            yield settings["role"], texts


Package = tuple[str, str, list[Export]]  # its name, the file that tells, what it exports


def _python_exports(tree: Tree) -> Iterator[Package]:
    for path in tree.named("__init__.py"):
        folder = folder_of(path)
        if not folder or f"{folder_of(folder)}/__init__.py".lstrip("/") in tree:
            continue  # a package inside a package
        names, imported = _python_names(tree, path, folder)
        own = names or [name for name, (source, _) in imported.items() if source and name[0] != "_"]
        found = [
            _python_definition(tree, name, path, folder)
            for name in dict.fromkeys(own[:200])
            if not name.startswith("__")
        ]
        yield name_of(folder), path, sorted(found, key=lambda export: not export.about)


def _python_names(tree: Tree, file: str, top: str) -> tuple[list[str], dict[str, tuple[str, str]]]:
    """The names in `__all__`, and each imported name with the path, without a suffix, of its module and its name there."""
    names: list[str] = []
    imported: dict[str, tuple[str, str]] = {}
    for role, texts in _matches(tree, file, "python"):
        if role == "listed":
            names.append(texts["name"])
            continue
        module = texts["module"]
        dots = len(module) - len(module.lstrip("."))
        parts = [part for part in module.split(".") if part]
        base = folder_of(file).split("/")
        source = ""  # somebody else's
        if dots:
            source = "/".join([*base[: max(len(base) - dots + 1, 0)], *parts])
        elif parts and parts[0] == name_of(top):
            source = "/".join([top, *parts[1:]])
        imported[texts["name"]] = (source, texts.get("original", texts["name"]))
    return names, imported


def _python_definition(tree: Tree, name: str, file: str, top: str) -> Export:
    """Follows a name to where it is defined, through at most three re-exports."""
    place, wanted = file, name
    for _ in range(3):
        if found := _defined(tree, place, wanted):
            return found._replace(name=name)
        source, original = _python_names(tree, place, top)[1].get(wanted, ("", ""))
        candidates = (f"{source}.py", f"{source}/__init__.py", f"{source}/{original}.py")
        following = next((path for path in candidates if source and path in tree), None)
        if following is None:
            break
        if following == candidates[2]:
            return Export(name, "module", following, 1)
        place, wanted = following, original
    return Export(name, "", place, 1)


def _script_exports(tree: Tree) -> Iterator[Package]:
    for manifest in manifests(tree):
        if name_of(manifest.path) != "package.json":
            continue
        folder, value = folder_of(manifest.path), table(tree.parse(manifest.path, read_json))
        stated = [string(value.get(key)) for key in ("source", "types", "module", "main")]
        guesses = [*filter(None, stated), *load_table("analyze")["entry_points"]]
        paths = (posixpath.normpath(posixpath.join(folder, guess)) for guess in guesses)
        known = (path for path in paths if path in tree.own and path.endswith(SOURCES))
        if entry := next(known, None):
            yield manifest.name or folder or "the package", entry, _script_names(tree, entry, 0)


def _script_names(tree: Tree, file: str, depth: int) -> list[Export]:
    found = [
        export
        for symbol in _outline(tree, file).symbols
        if not symbol.parent and re.search(r"(?:^|\s)export\s", symbol.signature)
        if (export := _defined(tree, file, symbol.name))
    ]
    for role, texts in _matches(tree, file, "javascript"):
        module = texts.get("module", "").strip("'\"")
        target = _script_file(tree, file, module)
        if role == "everything":
            if target and depth < 2:
                found += _script_names(tree, target, depth + 1)
            elif module:
                found.append(Export(module, "module", file, 1))
        elif texts["name"] != "default":
            name, original = texts["name"], texts.get("original", texts["name"])
            defined = _defined(tree, target, original) if target else None
            found.append(defined._replace(name=name) if defined else Export(name, "", file, 1))
    return list({export.name: export for export in reversed(found[:200])}.values())[::-1]


def _script_file(tree: Tree, file: str, module: str) -> str | None:
    if not module.startswith("."):
        return None
    base = posixpath.normpath(
        posixpath.join(folder_of(file), re.sub(r"\.[cm]?[jt]sx?$", "", module))
    )
    candidates = (base + ending for ending in (".ts", ".tsx", ".js", "/index.ts", "/index.js"))
    return next((path for path in candidates if path in tree), None)


def _rust_exports(tree: Tree) -> Iterator[Package]:
    for manifest in manifests(tree):
        file = f"{folder_of(manifest.path)}/src/lib.rs".lstrip("/")
        if manifest.language != "Rust" or file not in tree:
            continue
        found = [
            export
            for symbol in _outline(tree, file).symbols
            if not symbol.parent and re.search(r"(?:^|\s)pub\s", symbol.signature)
            if (export := _defined(tree, file, symbol.name))
        ]
        found += [Export(texts["name"], "", file, 1) for _, texts in _matches(tree, file, "rust")]
        yield manifest.name or "the crate", file, found


def _go_exports(tree: Tree) -> Iterator[Package]:
    for manifest in manifests(tree):
        folder = folder_of(manifest.path)
        if name_of(manifest.path) != "go.mod":
            continue
        files = [file for file in tree.suffixed(".go") if folder_of(file) == folder]
        found = [
            export
            for file in files
            if not re.search(r"(?m)^package main\b", tree.text(file))
            for symbol in _outline(tree, file).symbols
            if not symbol.parent and symbol.name[:1].isupper()
            if (export := _defined(tree, file, symbol.name))
        ]
        if found:
            yield manifest.name, found[0].file, found


# Warnings beside the code


def _remarks(tree: Tree) -> Iterator[Finding]:
    weights: Mapping[str, float] = load_table("analyze")["remarks"]["weight"]
    found: list[Finding] = []
    for path in tree.suffixed(*load_table("analyze")["remarks"]["suffixes"]):
        text = tree.text(path)
        if any(word in text for word in weights):
            found += list(_remarks_of(path, text.split("\n"), weights))[:MOST_REMARKS_PER_FILE]
    yield from most_important(found, MOST_REMARKS)


def _remarks_of(path: str, lines: Sequence[str], weights: Mapping[str, float]) -> Iterator[Finding]:
    opening = re.compile(
        r"[ \t]{0,80}(?P<sign>#|//+!?|--|;+|/\*+|\*)[ \t]{0,8}[^\w\s]{0,4}[ \t]?"
        rf"(?P<word>{'|'.join(weights)})\b(?:\([^)\n]{{0,60}}\))?[ \t]{{0,4}}[:!.,—–-]{{1,3}}[ \t]+(?P<told>\S.*)"
    )
    idle = re.compile(load_table("analyze")["remarks"]["idle"])
    for number, line in enumerate(lines, 1):
        match = opening.match(line) if len(line) < 400 else None
        if not match:
            continue
        told = [match["told"]]
        sign = "*" if match["sign"].startswith("/*") else match["sign"]
        for following in lines[number : number + 8]:
            rest = following.strip()[len(sign) :].strip("*/ \t")
            goes_on = following.strip().startswith(sign) and not following.strip().startswith("*/")
            if not goes_on or not rest or opening.match(following):
                break
            told.append(rest)
        text = " ".join(told).removesuffix("*/").strip()
        if words(text) >= SHORTEST_REMARK and not idle.search(text.lower()):
            yield finding(
                path,
                (number, number + len(told) - 1),
                "gotcha",
                "caveat",
                f"{match['word'].capitalize()} in {path}:{number}: {clip(text, 500)}",
                importance=weights[match["word"]],
                confidence=0.8,
                section=f"{path} › comment",
            )
