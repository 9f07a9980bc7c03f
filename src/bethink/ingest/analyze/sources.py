"""What the source files say: what each folder is for, what a package gives to others, and the warnings that programmers left.

Descriptions are the writers' own: the README of a folder, what a module says of itself, the first sentence about a symbol. Of the
public interface only entry points are read: `__init__.py`, `index.ts`, `lib.rs`, the root package of a Go module. What is exported
under conditions or by computation is not seen. Plans (TODO, FIXME) are left out, because they age without anybody noticing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from posixpath import basename, dirname, join, normpath
from typing import NamedTuple

from bethink.ingest.analyze.build import Manifest, read_manifests
from bethink.ingest.analyze.pages import page_of
from bethink.ingest.analyze.tree import (
    Finding,
    Tree,
    as_string,
    clip,
    count_words,
    first_sentence,
    join_words,
    load_table,
    make_finding,
    pick_important,
    strip_markup,
)
from bethink.ingest.symbols import SUFFIXES, FileOutline, find_matches, outline, parse_source
from bethink.types import Entity

# Bounds on how much is told, set by hand.
MOST_FOLDERS = 14
MOST_MODULES = 14  # of one folder
MOST_INTERFACES = 8
MOST_NAMES = 30  # of one interface
DESCRIBED = 12  # names that are told with their first sentence
MOST_REMARKS, MOST_REMARKS_PER_FILE = 8, 3
SHORTEST_REMARK = 8  # words
HEAD = 8_000  # characters in which a file says what it is for
SOURCES = (".py", ".go", ".rs", ".ts", ".tsx", ".js", ".mjs")
# One file speaks for its folder; in Go any, because the comment is about the whole package.
_HEADS = re.compile(r"(?:__init__\.py|mod\.rs|lib\.rs|main\.rs|doc\.go|index\.[jt]sx?|.*\.go)")
_IDLE = re.compile(r"(?i)auto-?generated|code generated|@generated|eslint|do not edit")


def analyze(tree: Tree) -> Iterator[Finding]:
    yield from _describe_folders(tree)
    yield from _describe_interfaces(tree)
    yield from _describe_remarks(tree)


def _language(file: str) -> str:
    return SUFFIXES[file[file.rindex(".") :]]


# What each folder is for


class Description(NamedTuple):
    path: str
    line: int
    text: str


def _describe_folders(tree: Tree) -> Iterator[Finding]:
    about = _find_folder_descriptions(tree)
    modules: dict[str, list[Description]] = {}
    for path in tree.find_suffixed(*SOURCES):
        own = None if path.startswith(".") else _read_own_words(tree, path)
        if own and _HEADS.fullmatch(basename(path)):
            about.setdefault(dirname(path), own._replace(text=first_sentence(own.text, 240)))
        elif own:
            modules.setdefault(dirname(path), []).append(own)
    made = [
        (-min(len(modules.get(folder, ())), 4), one)
        for folder in sorted({*about, *modules}, key=lambda folder: (folder.count("/"), folder))
        if (one := _describe_folder(folder, about.get(folder), modules.get(folder, [])))
    ]
    # Folders that explain more of themselves come first when there are too many.
    chosen = sorted(range(len(made)), key=lambda at: (made[at][0], at))[:MOST_FOLDERS]
    yield from (made[at][1] for at in sorted(chosen))


def _read_own_words(tree: Tree, path: str) -> Description | None:
    """What a file says about itself before any code. A licence is no description."""
    head = tree.text(path)[:HEAD]
    if not re.search(r"[#/\"']", head):
        return None
    doc = outline(head, _language(path)).doc.split("\n")[0]
    text = strip_markup(doc)
    if len(text) < 12 or _IDLE.search(text):
        return None
    lines = enumerate(head.split("\n"), 1)
    return Description(path, next((number for number, line in lines if doc[:20] in line), 1), text)


def _find_folder_descriptions(tree: Tree) -> dict[str, Description]:
    """Folders that a README of their own or the description in their manifest describes."""
    about: dict[str, Description] = {}
    elsewhere = re.compile(r"(?:docs?|documentation)(?:/|$)|\.|$")
    for path in tree.find_named("readme.md", "readme.rst"):
        folder = dirname(path)
        if folder.count("/") < 3 and not elsewhere.match(folder):
            texts = (
                Description(path, block.lines[0], clip(strip_markup(block.text), 300))
                for block in page_of(tree, path).blocks
                if block.kind == "paragraph"
            )
            if told := next((one for one in texts if count_words(one.text) >= 5), None):
                about.setdefault(folder, told)
    for manifest in read_manifests(tree):
        if dirname(manifest.path) and count_words(manifest.description) >= 3:
            told = Description(manifest.path, 0, clip(manifest.description, 300))
            about.setdefault(dirname(manifest.path), told)
    return about


def _describe_folder(
    folder: str, about: Description | None, modules: Sequence[Description]
) -> Finding | None:
    # What a manifest says is told with its dependencies.
    if not modules if about and not about.line else not about and len(modules) < 2:
        return None
    name = f"{folder}/" if folder else "The top folder"
    lead = f"{name} holds {len(modules)} modules that say what they do."
    if about:
        lead = f"{name} is described as: {about.text.rstrip('.')}."
    lines = [f"- {basename(one.path)}: {first_sentence(one.text, 120)}" for one in modules]
    if len(modules) > MOST_MODULES:
        lines[MOST_MODULES:] = [f"- and {len(modules) - MOST_MODULES} more"]
    cited = about or modules[0]
    return make_finding(
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


def _describe_interfaces(tree: Tree) -> Iterator[Finding]:
    made = 0
    for name, files in _find_entry_points(tree):
        found = [export for file in files for export in _find_exports(tree, file, 0)][:200]
        exports = list({export.name: export for export in reversed(found)}.values())[::-1]
        exports.sort(key=lambda export: files[0].endswith(".py") and not export.about)
        if not exports or made == MOST_INTERFACES:
            continue
        made += 1
        file = files[0]
        shown = [_cite(export, file, at < DESCRIBED) for at, export in enumerate(exports)]
        inside = [export.line for export in exports if export.file == file] or [1]
        yield make_finding(
            file,
            (min(inside), max(inside)),
            "component",
            "export",
            f"The public interface of {name} ({file}) is {join_words(shown, MOST_NAMES)}.",
            importance=6,
            section=f"{name} › public interface",
            entities=[Entity(export.name, "symbol") for export in exports[:10]],
        )


def _find_entry_points(tree: Tree) -> Iterator[tuple[str, list[str]]]:
    """The packages of the project by name, each with the files that tell what it exports."""
    for path in tree.find_named("__init__.py"):
        folder = dirname(path)
        if folder and f"{dirname(folder)}/__init__.py".lstrip("/") not in tree:
            yield basename(folder), [path]
    for manifest in read_manifests(tree):
        if files := _find_entry_files(tree, manifest):
            yield manifest.name or basename(dirname(manifest.path)) or "the package", files


def _find_entry_files(tree: Tree, manifest: Manifest) -> list[str]:
    folder = dirname(manifest.path)
    if basename(manifest.path) == "go.mod":
        own = [path for path in tree.find_suffixed(".go") if dirname(path) == folder]
        return [path for path in own if not re.search(r"(?m)^package main\b", tree.text(path))]
    guesses = ["src/lib.rs"] if manifest.language == "Rust" else []
    if basename(manifest.path) == "package.json":
        value = tree.table(manifest.path, "json")
        stated = [as_string(value.get(key)) for key in ("source", "types", "module", "main")]
        guesses = [*filter(None, stated), *load_table("analyze")["entry_points"]]
    paths = (normpath(join(folder, guess)) for guess in guesses)
    return [path for path in paths if path in tree.own and path.endswith(SOURCES)][:1]


def _cite(export: Export, file: str, described: bool) -> str:
    place = f"{export.file}:{export.line}" if export.file != file else ""
    about = [*filter(None, (export.kind, place, export.about if described else ""))]
    return f"{export.name} ({', '.join(about)})" if about else export.name


def _find_exports(tree: Tree, file: str, depth: int) -> list[Export]:
    """What a file gives to others: what it defines for them, lists, or hands on."""
    visible = re.compile(load_table("analyze")["visible"].get(_language(file), "(?!)"))
    names = [
        symbol.name
        for symbol in _outline(tree, file).symbols
        if not symbol.parent and visible.search(f"{symbol.signature}\n{symbol.name}")
    ]
    matches = _find_handed_on(tree, file)
    listed = [texts["name"] for texts in matches if texts["role"] == "listed"]
    if not listed:  # without a list a package gives what its entry point imports from itself
        listed = [
            texts["name"]
            for texts in matches
            if texts["role"] == "imported" and tree.find_module(file, texts["module"])
        ]
    found = [_follow(tree, file, name, 0) for name in (*names, *listed) if name != "default"]
    for texts in matches:
        target = tree.find_module(file, texts.get("module", ""))
        if texts["role"] == "everything" and target and depth < 2:
            found += _find_exports(tree, target, depth + 1)
    return [export for export in found if not export.name.startswith("_")]


def _follow(tree: Tree, file: str, name: str, depth: int) -> Export:
    """A name with where it is defined, through at most three re-exports."""
    for symbol in _outline(tree, file).symbols:
        if symbol.name == name and not symbol.parent:
            kind = load_table("analyze")["kinds"].get(symbol.kind, symbol.kind)
            return Export(name, kind, file, symbol.lines[0], first_sentence(symbol.doc, 120))
    for texts in _find_handed_on(tree, file) if depth < 3 else ():
        target = tree.find_module(file, texts.get("module", ""))
        if texts.get("name") == name and target:
            original = texts.get("original", name)
            return _follow(tree, target, original, depth + 1)._replace(name=name)
    return Export(name, "", file, 1)


def _outline(tree: Tree, file: str) -> FileOutline:
    return tree.parse(file, _OUTLINES[_language(file)]) or FileOutline([])


_OUTLINES = {
    language: (lambda text, language=language: outline(text, language))
    for language in ("python", "javascript", "typescript", "tsx", "rust", "go")
}


def _find_handed_on(tree: Tree, file: str) -> list[Mapping[str, str]]:
    """What the query of a file's language finds: the role of each match and the texts of its captures."""
    language = _language(file)
    query = load_table("analyze")["export_queries"].get(language)
    if not query:
        return []
    source, _ = parse_source(tree.text(file), language)
    return [
        {"role": settings["role"], **{name: source.text_of(node) for name, node in nodes.items()}}
        for settings, nodes, _ in find_matches(f"exports/{query}", source)
    ]


# Warnings beside the code


def _describe_remarks(tree: Tree) -> Iterator[Finding]:
    table = load_table("analyze")["remarks"]
    weights: Mapping[str, float] = table["weight"]
    opening = re.compile(table["opening"].replace("WORDS", "|".join(weights)))
    idle = re.compile(table["idle"])
    found: list[Finding] = []
    for path in tree.find_suffixed(*table["suffixes"]):
        text = tree.text(path)
        own: list[Finding] = []
        for match in opening.finditer(text) if any(word in text for word in weights) else ():
            lines = match["said"].removesuffix("*/").split("\n")
            said = " ".join(line.strip("#/*-;! \t") for line in lines)
            if count_words(said) >= SHORTEST_REMARK and not idle.search(said.lower()):
                line = text.count("\n", 0, match.start("word")) + 1
                one = make_finding(
                    path,
                    (line, line + len(lines) - 1),
                    "gotcha",
                    "caveat",
                    f"{match['word'].capitalize()} in {path}:{line}: {clip(said, 500)}",
                    importance=weights[match["word"]],
                    confidence=0.8,
                    section=f"{path} › comment",
                )
                own.append(one)
        found += own[:MOST_REMARKS_PER_FILE]
    yield from pick_important(found, MOST_REMARKS)
