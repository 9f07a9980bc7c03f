"""Stale citations: statements that name a file, a symbol or a command which no longer exists.

A name counts only where it is sure that something of this project was meant: a file below a folder that exists, a command of a task file
that exists, a symbol that an earlier version of the code had.
"""

import json
import posixpath
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bethink.ingest.rules import find_places
from bethink.model import STATEMENTS
from bethink.text import compile_late

if TYPE_CHECKING:
    from bethink.api import Bethink
    from bethink.model import Memory

_READ = 2000  # statements of a project that are looked at, the newest
_READ_OF_ONE = 2000  # characters of a statement that is about to be shown
_LARGEST = 400_000  # bytes of a source file
_MOST_READ = 40_000_000  # characters of source files that are looked at
_MOST_SYMBOLS = 12  # that the history is asked about
_CODE = compile_late(r"`([^`\n]{3,120})`")
# Names that hardly are words: `load_cart`, `CartStore`, `cart.load()`.
_SYMBOL = compile_late(
    r"(?:[\w$]{1,60}(?:\.|::))*([a-z][a-z0-9]*(?:_[a-z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]+)+|(?:[A-Z][a-z0-9]+){2,}|[a-z_]\w{2,60}(?=\(\)))(?:\(\))?"
)
_TASK = compile_late(
    r"(?:(?P<npm>npm run(?:-script)?|pnpm run|yarn run|bun run)|(?P<make>make)|(?P<just>just)) (?P<name>[A-Za-z][\w:.-]{1,60})$"
)
_PLAIN_TASK = compile_late(
    r"(?P<npm>\b(?:npm run|pnpm run|yarn run|bun run)) (?P<name>[A-Za-z][\w:-]{1,60}[\w])"
)
_CALL = compile_late(r"(?<![\w.$`])([a-z]\w{0,40}(?:[A-Z]|_)\w{1,40})\(\)")
_TARGET = compile_late(r"^([A-Za-z][\w.-]{0,60}(?: [A-Za-z][\w.-]{0,60})*)\s*:(?!=)", re.MULTILINE)
_RECIPE = compile_late(r"^@?([A-Za-z][\w-]{0,60})(?: [^:\n]{0,100})?:(?!=)", re.MULTILINE)
_TASK_FILES = {
    "npm": ("package.json",),
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "just": ("justfile", "Justfile", ".justfile"),
}
_SOURCES = tuple(
    ".py .pyi .js .jsx .mjs .cjs .ts .tsx .vue .svelte .go .rs .rb .java .kt .swift .c .h .cc .cpp .hpp .cs .php .ex .exs .lua .sh .sql .scala .zig".split()
)


class StaleCitation(NamedTuple):
    id: str
    name: str  # as the statement names it
    what: str = "file"  # file, symbol or command
    moved: str = ""  # the place of a file now


# Files


def find_missing(text: str, root: Path) -> list[str]:
    """List files and commands that a text names and that do not exist below the root.

    A bare file name may be anywhere, so it does not count.
    """
    places = find_places(text) if "/" in text else None
    named = [name.removeprefix("./") for name in places.files] if places else []
    files = [name for name in named if _is_inside(name) and not _exists(root, name)]
    return [*files, *find_missing_commands(text, root)]


def _exists(root: Path, name: str) -> bool:
    """Return True if a file exists, also one that a prompt mentions as `@docs/guide.md`."""
    return (root / name).exists() or (root / name.removeprefix("@")).exists()


def _is_inside(name: str) -> bool:
    return "/" in name and not name.startswith(("/", "~", "../"))


# Commands


def find_missing_commands(text: str, root: Path) -> list[str]:
    """List calls of tasks, such as `make check`, that the task files at the root do not have."""
    missing: list[str] = []
    calls = [match for code in _CODE.findall(text) if (match := _TASK.match(code.strip()))]
    calls += _PLAIN_TASK.finditer(_CODE.sub(" ", text))
    for match in calls:
        runner = next(name for name in _TASK_FILES if match.groupdict().get(name))
        known = list_tasks(root, runner)
        if known is not None and match["name"] not in known:
            missing.append(match[0].strip())
    return list(dict.fromkeys(missing))


def _makes_targets_elsewhere(line: str) -> bool:
    """Return True for a line of a Makefile that includes another file, or makes targets by a rule."""
    head, colon, rest = line.partition(":")
    if head.removeprefix("-").startswith("include"):
        return True
    by_rule = bool(colon) and not rest.startswith("=") and ("%" in head or "$" in head)
    return by_rule and "#" not in head and "\t" not in head


def list_tasks(root: Path, runner: str) -> set[str] | None:
    """Names of the tasks in a project's file; None if that cannot be said."""
    for name in _TASK_FILES[runner]:
        try:
            text = (root / name).read_text("utf-8", "replace")[:_LARGEST]
        except OSError:
            continue
        if runner == "npm":
            return _read_scripts(text)
        if runner == "just":
            plain = "import " not in text and "mod " not in text
            return (
                {*_RECIPE.findall(text), *re.findall(r"^alias (\S+)", text, re.M)}
                if plain
                else None
            )
        if any(map(_makes_targets_elsewhere, text.splitlines())):
            return None
        return {name for names in _TARGET.findall(text) for name in names.split()}
    return None


def _read_scripts(text: str) -> set[str] | None:
    try:
        about = json.loads(text)
    except (ValueError, RecursionError):
        return None
    scripts = about.get("scripts") if isinstance(about, dict) else None
    if not isinstance(scripts, dict) or about.get("workspaces"):
        return None
    return set(scripts)


# Remarks


def note_gone(memory: "Bethink", found: "Iterable[Memory]") -> dict[str, str]:
    """Remarks for statements of this project that name a file or a command which is gone, by `gone ID`.

    Cheap enough for every answer: it looks at the named files and at no others.
    """
    root, notes = memory.project.worktree, dict[str, str]()
    for one in found if memory.reads_files else ():
        if one.kind not in STATEMENTS or one.scope != memory.project.scope:
            continue
        names = find_missing(one.content[:_READ_OF_ONE], root)
        name = next((n for n in names if " " in n or (root / n.split("/")[0]).is_dir()), "")
        if name:
            notes[f"gone {one.id}"] = f"{name} no longer exists"
    return notes


# Symbols


def find_symbols(text: str) -> list[str]:
    """Names of functions and classes that a text marks as code."""
    found = [match[1] for code in _CODE.findall(text) if (match := _SYMBOL.fullmatch(code.strip()))]
    found += _CALL.findall(_CODE.sub(" ", text))
    return list(dict.fromkeys(found))


def find_gone_symbols(memory: "Bethink", statements: "Iterable[Memory]") -> dict[str, list[str]]:
    """Id of a statement → symbols that it names, that the code had once and has no more."""
    from bethink.ingest.git import had_word

    root = memory.project.worktree
    named = {one.id: names for one in statements if (names := find_symbols(one.content))}
    wanted = {name for names in named.values() for name in names}
    if not wanted or not memory.reads_files:
        return {}
    absent = sorted(_find_absent(root, wanted))[:_MOST_SYMBOLS]
    gone = {name for name in absent if had_word(root, name)}
    found = {id: [name for name in names if name in gone] for id, names in named.items()}
    return {id: names for id, names in found.items() if names}


def _find_absent(root: Path, names: set[str]) -> set[str]:
    """Names that occur in no source file; none if the project is too large to say."""
    from bethink.ingest.files import Found, read_text, walk
    from bethink.ingest.sync import Skipped

    left, room = set(names), _MOST_READ
    for file in walk(root, root, _SOURCES):
        if not left:
            break
        read = read_text(file, _LARGEST) if isinstance(file, Found) else None
        if read is None or isinstance(read, Skipped):
            continue
        text = read[0]
        room -= len(text)
        if room < 0:
            return set()
        left -= {name for name in left if re.search(rf"\b{re.escape(name)}\b", text)}
    return left


# All of a project


def find_stale(memory: "Bethink") -> list[StaleCitation]:
    """List statements of this project that cite a file, a command or a symbol that is gone.

    For a file, its top folder has to exist: it shows that a file of this project was meant.
    """
    root = memory.project.worktree
    wanted = memory.filter(kinds=STATEMENTS, scopes=memory.named_scopes)
    statements = memory.list(filter=wanted, limit=_READ)
    files: list[tuple[str, str]] = []
    found: list[StaleCitation] = []
    for one in statements:
        for name in find_missing(one.content, root):
            if " " in name:
                found.append(StaleCitation(one.id, name, "command"))
            elif (root / name.split("/")[0]).is_dir():
                files.append((one.id, name))
    moved = find_moved(root, {name for _, name in files}) if files else {}
    found = [StaleCitation(id, name, "file", moved.get(name, "")) for id, name in files] + found
    symbols = find_gone_symbols(memory, statements)
    return found + [
        StaleCitation(id, name, "symbol") for id, names in symbols.items() for name in names
    ]


def find_moved(root: Path, names: set[str]) -> dict[str, str]:
    """Places of missing files now: by the renames in git, or else by the only file of that name."""
    from bethink.ingest.files import Found, walk
    from bethink.ingest.git import list_renames

    renames = list_renames(root)
    places: dict[str, list[str]] = {}
    for file in walk(root, root):
        if isinstance(file, Found):
            places.setdefault(posixpath.basename(file.uri), []).append(file.uri)
    moved: dict[str, str] = {}
    for name in names:
        place = _follow(name, renames)
        same = places.get(posixpath.basename(name), [])
        if place and (root / place).exists():
            moved[name] = place
        elif len(same) == 1:
            moved[name] = same[0]
    return moved


def _follow(name: str, renames: Sequence[tuple[str, str]]) -> str:
    """The last name of a file, by its renames, oldest first; '' if it was not renamed."""
    place = name
    for old, new in renames:
        place = new if place == old else place
    return place if place != name else ""


def find_renamed(memory: "Bethink") -> "list[tuple[Memory, str]]":
    """Statements that cite a file which git has renamed, each with its text for the place now."""
    from bethink.ingest.git import list_renames

    stale = [one for one in find_stale(memory) if one.what == "file" and one.moved]
    renames = {old for old, _ in list_renames(memory.project.worktree)} if stale else set()
    texts: dict[str, str] = {}
    known = {one.id: one for one in memory.store.get(sorted({one.id for one in stale}))}
    for one in stale:
        if one.name in renames:
            text = texts.get(one.id, known[one.id].content)
            pattern = rf"(?<![\w/.-]){re.escape(one.name)}(?![\w/-])"
            texts[one.id] = re.sub(pattern, lambda _, one=one: one.moved, text)  # type: ignore[misc]
    return [(known[id], text) for id, text in texts.items() if text != known[id].content]
