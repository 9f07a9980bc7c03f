"""What the parts of a project are for: its packages and folders, in the words of their own docstrings and READMEs.

One finding per folder, listing its modules with the first sentence each says about itself. A folder that says nothing
about itself is left out: that `utils/` holds utilities is no news.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bethink.ingest.analyze.ecosystems import manifests
from bethink.ingest.analyze.markdown import paragraphs, sections
from bethink.ingest.analyze.prose import clip, sentence, words
from bethink.ingest.analyze.source import opening_comment
from bethink.ingest.analyze.tree import Finding, Tree, finding, folder_of
from bethink.types import Entity

MOST = 14
MOST_MODULES = 14
SOURCES = (".py", ".go", ".rs", ".ts", ".tsx", ".js", ".mjs")
_HEADS = re.compile(r"(?:^|/)(?:__init__\.py|mod\.rs|lib\.rs|main\.rs|doc\.go|index\.[jt]sx?)$")


def analyze(tree: Tree) -> Iterator[Finding]:
    told: list[tuple[int, Finding]] = []
    about = _described(tree)
    modules: dict[str, list[tuple[str, str, int]]] = {}
    for path in tree.suffixed(*SOURCES):
        found = opening_comment(tree.text(path), path[path.rfind(".") :])
        if found and not path.startswith("."):
            # In Go the comment is about the whole package, so one file speaks for its folder.
            if path.endswith(".go") or _HEADS.search(path):
                about.setdefault(folder_of(path), (path, found[1], sentence(found[0], 240)))
            else:
                modules.setdefault(folder_of(path), []).append(
                    (path, sentence(found[0], 120), found[1])
                )
    for folder in sorted({*about, *modules}, key=lambda folder: (folder.count("/"), folder)):
        made = _told(folder, about.get(folder), modules.get(folder, []))
        if made:
            told.append((len(modules.get(folder, [])), made))
    # Folders that explain more of themselves come first when there are too many.
    chosen = sorted(range(len(told)), key=lambda at: (-min(told[at][0], 4), at))[:MOST]
    yield from (told[at][1] for at in sorted(chosen))


def _described(tree: Tree) -> dict[str, tuple[str, int, str]]:
    """Folders that are described by a README of their own or by the description in their manifest."""
    about: dict[str, tuple[str, int, str]] = {}
    for path in tree.named("readme.md", "readme.rst"):
        folder = folder_of(path)
        if (
            folder
            and folder.count("/") < 3
            and not re.match(r"(?:docs?|documentation)(?:/|$)|\.", folder)
        ):
            for section in sections(tree.text(path), path.endswith(".rst"))[:3]:
                first = next(
                    (
                        (text, line)
                        for text, line, _ in paragraphs(section.own, section.line + 1)
                        if words(text) >= 5
                    ),
                    None,
                )
                if first:
                    about.setdefault(folder, (path, first[1], clip(first[0], 300)))
                    break
    for manifest in manifests(tree):
        if folder_of(manifest.path) and words(manifest.description) >= 3:
            about.setdefault(
                folder_of(manifest.path), (manifest.path, 1, clip(manifest.description, 300))
            )
    return about


def _told(
    folder: str, about: tuple[str, int, str] | None, modules: list[tuple[str, str, int]]
) -> Finding | None:
    if not about and len(modules) < 2:
        return None
    if (
        about
        and not modules
        and about[0].endswith((".toml", ".json", ".xml", ".yaml", ".cfg", ".exs", ".mod"))
    ):
        return None  # the description of a manifest, which is told with its dependencies
    path, line = (about[0], about[1]) if about else (modules[0][0], modules[0][2])
    name = f"{folder}/" if folder else "The top folder"
    lead = (
        f"{name} is described as: {about[2].rstrip('.')}."
        if about
        else f"{name} holds {len(modules)} modules that say what they do."
    )
    listed = "\n".join(
        f"- {module.rsplit('/', 1)[-1]}: {told}" for module, told, _ in modules[:MOST_MODULES]
    )
    more = f"\n- and {len(modules) - MOST_MODULES} more" if len(modules) > MOST_MODULES else ""
    return finding(
        path,
        line,
        "component",
        "component",
        f"{lead}\n{listed}{more}" if modules else lead,
        importance=5.5 if folder.count("/") < 3 else 5,
        section=f"Components › {folder or 'top'}",
        entities=[Entity(module, "file") for module, _, _ in modules[:6]],
    )
