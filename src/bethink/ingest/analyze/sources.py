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
from bethink.ingest.symbols import (
    SUFFIXES,
    Outline,
    find_matches,
    outline,
    parse_source,
    read_file_doc,
)
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
    for name, files in _entry_points(tree):
        exports = [export for file in files for export in _exported(tree, file, 0)]
        exports = list({export.name: export for export in reversed(exports[:200])}.values())[::-1]
        exports.sort(key=lambda export: files[0].endswith(".py") and not export.about)
        if not exports or made == MOST_INTERFACES:
            continue
        made += 1
        file = files[0]
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


def _entry_points(tree: Tree) -> Iterator[tuple[str, list[str]]]:
    """The packages of the project by name, each with the files that tell what it exports."""
    for path in tree.named("__init__.py"):
        folder = folder_of(path)
        if folder and f"{folder_of(folder)}/__init__.py".lstrip("/") not in tree:
            yield name_of(folder), [path]
    for manifest in manifests(tree):
        folder, files = folder_of(manifest.path), []
        if name_of(manifest.path) == "package.json":
            value = table(tree.parse(manifest.path, read_json))
            stated = [string(value.get(key)) for key in ("source", "types", "module", "main")]
            guesses = [*filter(None, stated), *load_table("analyze")["entry_points"]]
            paths = (posixpath.normpath(posixpath.join(folder, guess)) for guess in guesses)
            files = [path for path in paths if path in tree.own and path.endswith(SOURCES)][:1]
        elif manifest.language == "Rust":
            files = [path for path in (f"{folder}/src/lib.rs".lstrip("/"),) if path in tree]
        elif name_of(manifest.path) == "go.mod":
            own = [path for path in tree.suffixed(".go") if folder_of(path) == folder]
            files = [path for path in own if not re.search(r"(?m)^package main\b", tree.text(path))]
        if files:
            yield manifest.name or name_of(folder) or "the package", files


def _show(export: Export, file: str, described: bool) -> str:
    place = f"{export.file}:{export.line}" if export.file != file else ""
    about = [export.kind, place, export.about if described else ""]
    return f"{export.name} ({', '.join(filter(None, about))})" if any(about) else export.name


def _language(file: str) -> str:
    return SUFFIXES[file[file.rindex(".") :]]


def _exported(tree: Tree, file: str, depth: int) -> list[Export]:
    """What a file gives to others: what it defines for them, lists, or hands on."""
    visible = re.compile(load_table("analyze")["visible"].get(_language(file), "(?!)"))
    names = [
        symbol.name
        for symbol in _outline(tree, file).symbols
        if not symbol.parent and visible.search(f"{symbol.signature}\n{symbol.name}")
    ]
    matches = list(_matches(tree, file))
    listed_names = [texts["name"] for role, texts in matches if role == "listed"]
    found = [_follow(tree, file, name, 0) for name in (*names, *listed_names)]
    for role, texts in matches:
        target = _module_file(tree, file, texts.get("module", ""))
        if role == "everything" and target and depth < 2:
            found += _exported(tree, target, depth + 1)
        elif role == "imported" and target and not listed_names and texts["name"][0] != "_":
            found.append(_follow(tree, file, texts["name"], 0))
    return [export for export in found if export.name != "default" and export.name[:2] != "__"]


def _follow(tree: Tree, file: str, name: str, depth: int) -> Export:
    """A name with where it is defined, through at most three re-exports."""
    for symbol in _outline(tree, file).symbols:
        if symbol.name == name and not symbol.parent:
            kind = load_table("analyze")["kinds"].get(symbol.kind, symbol.kind)
            return Export(name, kind, file, symbol.lines[0], sentence(symbol.doc, 120))
    for _, texts in _matches(tree, file) if depth < 3 else ():
        target = _module_file(tree, file, texts.get("module", ""))
        if texts.get("name") == name and target:
            original = texts.get("original", name)
            return _follow(tree, target, original, depth + 1)._replace(name=name)
    return Export(name, "", file, 1)


def _outline(tree: Tree, file: str) -> Outline:
    return tree.parse(file, _OUTLINES[_language(file)]) or Outline([])


_OUTLINES = {
    language: (lambda text, language=language: outline(text, language))
    for language in ("python", "javascript", "typescript", "tsx", "rust", "go")
}


def _matches(tree: Tree, file: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """What the query of a file's language finds: the role of each match, and the texts of its captures."""
    language = _language(file)
    query = load_table("analyze")["export_queries"].get(language)
    if not query:
        return
    source, _ = parse_source(tree.text(file), language)
    for _, settings, captures in find_matches(f"exports/{query}", source):
        texts = {name: source.text_of(node) for name, node in captures.items()}
        if all(texts[name] == value for name, value in settings.items() if name in texts):
            yield settings["role"], texts


def _module_file(tree: Tree, file: str, module: str) -> str | None:
    """The file of a module that belongs to the same package: `./errors`, `.a`, `shop.orders`."""
    module = re.sub(r"\.[cm]?[jt]sx?$", "", module.strip("'\""))
    python = file.endswith(".py")
    inside = python and f"/{module.split('.')[0]}/" in f"/{file}"
    if not module.startswith(".") and not inside:
        return None
    tail = (module.replace(".", "/") if python else module).strip("./")
    endings = (
        (".py", "/__init__.py") if python else (".ts", ".tsx", ".js", "/index.ts", "/index.js")
    )
    top = file.split("/")[0]
    fitting = [
        path
        for path in tree.paths
        if path.startswith(top) and f"/{path}".endswith(tuple(f"/{tail}{end}" for end in endings))
    ]
    return min(fitting, key=len, default=None)


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
