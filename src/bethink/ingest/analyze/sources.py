"""What the source files say: what each folder is for, and the warnings that programmers left.

Descriptions are the writers' own: the README of a folder, what a module says of itself. What a package gives to others, the code map
tells. Plans (TODO, FIXME) are left out, because they age without anybody noticing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from posixpath import basename, dirname
from typing import NamedTuple

from bethink.ingest.analyze.pages import read_page
from bethink.ingest.analyze.tree import (
    Finding,
    Tree,
    clip,
    count_words,
    first_sentence,
    load_table,
    make_finding,
    pick_important,
    strip_markup,
)
from bethink.ingest.symbols import SUFFIXES, outline
from bethink.types import Entity

# Bounds on how much is told, set by hand.
MOST_FOLDERS = 14
MOST_MODULES = 14  # of one folder
MOST_REMARKS, MOST_REMARKS_PER_FILE = 8, 3
SHORTEST_REMARK = 8  # words
HEAD = 8_000  # characters in which a file says what it is for
SOURCES = (".py", ".go", ".rs", ".ts", ".tsx", ".js", ".mjs")
# One file speaks for its folder; in Go any, because the comment is about the whole package.
_HEADS = re.compile(r"(?:__init__\.py|mod\.rs|lib\.rs|main\.rs|doc\.go|index\.[jt]sx?|.*\.go)")
_IDLE = re.compile(r"(?i)auto-?generated|code generated|@generated|eslint|do not edit")


def analyze(tree: Tree) -> Iterator[Finding]:
    yield from _describe_folders(tree)
    yield from _describe_remarks(tree)


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
    doc = outline(head, SUFFIXES[path[path.rindex(".") :]]).doc.split("\n")[0]
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
