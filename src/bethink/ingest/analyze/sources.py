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
from bethink.ingest.analyze.pages import read_page
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
    folders = sorted({*about, *modules}, key=lambda folder: (folder.count("/"), folder))
    # Folders that explain more of themselves come first when there are too many.
    telling = sorted(folders, key=lambda folder: -min(len(modules.get(folder, ())), 4))
    found = [_describe_folder(one, about.get(one), modules.get(one, [])) for one in telling]
    yield from [one for one in found if one][:MOST_FOLDERS]


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
    """Folders that a README of their own describes."""
    about: dict[str, Description] = {}
    elsewhere = re.compile(r"(?:docs?|documentation)(?:/|$)|\.|$")
    for path in tree.find_named("readme.md", "readme.rst"):
        folder = dirname(path)
        if folder.count("/") < 3 and not elsewhere.match(folder):
            texts = (
                Description(path, block.lines[0], clip(strip_markup(block.text), 300))
                for block in read_page(tree, path).blocks
                if block.kind == "paragraph"
            )
            if told := next((one for one in texts if count_words(one.text) >= 5), None):
                about.setdefault(folder, told)
    return about


def _describe_folder(
    folder: str, about: Description | None, modules: Sequence[Description]
) -> Finding | None:
    if not about and len(modules) < 2:
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


def _describe_interfaces(tree: Tree) -> Iterator[Finding]:
    found = ((name, files, _find_exports(tree, files)) for name, files in _find_packages(tree))
    for name, files, exports in [one for one in found if one[2]][:MOST_INTERFACES]:
        yield make_finding(
            files[0],
            1,
            "component",
            "export",
            f"The public interface of {name} ({files[0]}) is {join_words(exports, MOST_NAMES)}.",
            importance=6,
            section=f"{name} › public interface",
            entities=[Entity(export.split()[0], "symbol") for export in exports[:10]],
        )


def _find_packages(tree: Tree) -> Iterator[tuple[str, list[str]]]:
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


def _find_exports(tree: Tree, files: Sequence[str]) -> list[str]:
    """What files give to others: what they define for them, with its kind and its first sentence, and what they list or hand on. Where
    that is defined, the code map tells."""
    kinds, found = load_table("analyze")["kinds"], dict[str, str]()
    for file in files:
        language = _language(file)
        visible = re.compile(load_table("analyze")["visible"].get(language, "(?!)"))
        defined = {one.name: one for one in _outline(tree, file).symbols if not one.parent}
        listed = [
            name
            for name, symbol in defined.items()
            if visible.search(f"{symbol.signature}\n{name}")
        ]
        for name in [*listed, *_find_handed_on(tree, file, language)]:
            symbol = defined.get(name)
            about = [kinds.get(symbol.kind, symbol.kind), symbol.doc] if symbol else []
            shown = ", ".join(first_sentence(one, 120) for one in about if one)
            if name != "default" and not name.startswith("_"):
                found.setdefault(name, f"{name} ({shown})" if shown else name)
    return list(found.values())


def _find_handed_on(tree: Tree, file: str, language: str) -> list[str]:
    """The names that a file lists or exports again; where it lists none, those that it imports from its own package."""
    query = load_table("analyze")["export_queries"].get(language)
    if not query:
        return []
    source, _ = parse_source(tree.text(file), language)
    names: dict[str, list[str]] = {"listed": [], "imported": [], "everything": []}
    for settings, nodes, _ in find_matches(f"exports/{query}", source):
        module = (
            tree.find_module(file, source.text_of(nodes["module"])) if "module" in nodes else ""
        )
        if settings["role"] == "everything" and module and module != file:
            outlined = _outline(tree, module).symbols
            exported = [one for one in outlined if one.signature.startswith("export ")]
            names["everything"] += [one.name for one in exported if not one.parent]
        elif settings["role"] == "listed" or (settings["role"] == "imported" and module):
            names[settings["role"]].append(source.text_of(nodes["name"]))
    return [*(names["listed"] or names["imported"]), *names["everything"]]


def _outline(tree: Tree, file: str) -> FileOutline:
    return outline(tree.text(file), _language(file))


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
