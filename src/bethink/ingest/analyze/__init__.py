"""Analysis: facts from a project's files, as a few passages per file, each with its line numbers.

An analyzer is a function of a `Tree` that yields findings. It sees nothing else: no store, no clock, no network, and it starts no
process. Prose is read in `pages`, the HTTP interface in `routes`, the history in `ingest/git.py`. This module reads dependencies, commands
and structure: manifests, task runners, and signs in files and folders.

All of it is tables. `data/manifests.toml` says where in a manifest each fact is; `data/technologies.toml` which dependency means
which technology; `data/commands.toml` how task runners write their tasks, which words identify a task, and which program of a line of
CI means what; `data/structure.toml` which paths, or which words in them, mean what. This module reads these tables and knows no package
manager. Names of folders are conventions, not proof: confidence in a pattern stays between .6 and .8.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from posixpath import basename, dirname
from typing import Any, NamedTuple

from bethink.ingest.analyze import pages, routes
from bethink.ingest.analyze.tree import (
    Finding,
    Tree,
    as_table,
    flatten,
    join_words,
    make_finding,
    unique,
)
from bethink.ingest.files import Found
from bethink.ingest.symbols import TableRow, load_table, shorten
from bethink.ingest.sync import Document, Skipped
from bethink.model import Entity, Passage

_VERSION = 5  # raised when the same files would give other findings
# Bounds on the findings, set by hand.
MOST_MANIFESTS = 10
MOST_PER_PURPOSE = 5  # commands in one finding
_MOST_FILES = 30  # of one task runner that are read
MOST_PER_SIGN = 2
_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*+)(?:\[[^\]]*+\])?\s*+\(?([^@();]*+)")
_NEVER = "(?!)"


def documents(root: Path, found: Iterable[Found | Skipped]) -> Iterator[Document | Skipped]:
    """Yield one document per file with findings, then what could not be read.

    `found` are all files of the project, with their paths from `root` on.
    """
    tree = Tree(root, found)
    by_path: dict[str, dict[str, Passage]] = {}
    parses = find_spec("tree_sitter") is not None
    for analyze in (pages.analyze, describe_build, *((routes.analyze,) if parses else ())):
        for path, passage in analyze(tree):
            by_path.setdefault(path, {}).setdefault(passage.content, passage)
    for path in sorted(by_path):
        passages = sorted(by_path[path].values(), key=lambda passage: passage.lines or (0, 0))
        hash = sha256(repr((_VERSION, passages)).encode()).hexdigest()
        yield Document(f"analysis:{path}", hash, lambda passages=passages: passages)  # type: ignore[misc]
    for path, reason in sorted(tree.skipped.items()):
        if path not in by_path:
            yield Skipped(f"analysis:{path}", reason)
    if not parses:
        yield Skipped("analysis:", "routes need tree-sitter: pip install 'bethink[code]'")


def describe_build(tree: Tree) -> Iterator[Finding]:
    found = [
        (path, row)
        for row in load_table("manifests")["manifest"]
        for path, _ in tree.find(f"(?:.*/)?(?:{row['file']})")
    ]
    found.sort(key=lambda one: (one[0].count("/"), one[0]))
    findings = (_describe_manifest(tree, path, row) for path, row in found)
    yield from islice(filter(None, findings), MOST_MANIFESTS)
    yield from _describe_commands(tree)
    signs = load_table("structure")
    for row in signs["sign"]:
        yield from islice(_describe_signs(tree, signs["usual"] | row), MOST_PER_SIGN)


def _find_words(tree: Tree, path: str, row: TableRow) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield the matches of a row's `words` in a file with their lines, only inside its `block` if any."""
    text, words = tree.text(path), re.compile(row["words"])
    blocks = re.finditer(row["block"], text) if "block" in row else [re.match("(?s)(.*)", text)]
    for block in filter(None, blocks):
        for match in words.finditer(text, *block.span(1)):
            yield text.count("\n", 0, match.start(1)) + 1, match


# Manifests


def _describe_manifest(tree: Tree, path: str, row: TableRow) -> Finding | None:
    """Return the findings of a manifest."""
    text = tree.text(path)
    value = tree.table(path) if path.endswith((".toml", ".json")) else {}
    facts = {
        field: join_words(unique(_find_facts(value, text, row.get(field, ()))))
        for field in ("name", "description", "requires", "commands", "members")
    }
    runtime, development = (
        dict(_find_dependencies(value, row.get(field, ()))) for field in ("runtime", "development")
    )
    for match in re.finditer(row.get("dependency", _NEVER), text):
        groups = {"development": "", "version": "", **match.groupdict("")}
        (development if groups["development"] else runtime)[groups["name"]] = groups["version"]
    if not any((*facts.values(), runtime, development)):
        return None
    name = facts["name"] or basename(dirname(path))
    head = " ".join(filter(None, (row["language"], "project", name, f"({path})")))
    about = f": {facts['description'].rstrip('.')}" if facts["description"] else ""
    needed = [_show_dependency(one, version) for one, version in runtime.items()]
    extra = [_show_dependency(one) for one in development]
    facts |= {"needed": join_words(needed, 16), "extra": join_words(extra, 14)}
    sentences = load_table("manifests")["sentences"].items()
    details = (f" {lead} {facts[field]}." for field, lead in sentences if facts[field])
    first = next(iter({**runtime, **development}), facts["name"])
    line = re.search(rf"(?<![\w@/.-]){re.escape(first)}(?![\w/-])", text)
    labels = unique(map(_find_technology, runtime))[:8]
    return make_finding(
        path,
        text.count("\n", 0, line.start()) + 1 if line else 1,
        "fact",
        "dependency",
        f"{head}{about}.{''.join(details)}",
        importance=5.5 if "/" not in path else 4.5,
        confidence=1.0,
        section=f"{path} › dependencies",
        entities=[Entity(name, "project")] * bool(name)
        + [Entity(one, "technology") for one in labels],
    )


def _find_facts(value: object, text: str, places: Sequence[str]) -> Iterator[str]:
    """Yield the values at places: a path of keys, perhaps after a lead word, or a pattern after `re:`."""
    for place in places:
        if place.startswith("re:"):
            yield from (" ".join(match.groups()) for match in re.finditer(place[3:], text))
            continue
        lead, _, keys = place.rpartition(":")
        for star, found in _find_keys(value, keys):
            fact = star if keys.endswith("*") else flatten(found)
            yield f"{lead} {fact}".strip() if fact else ""


def _find_keys(value: object, path: str, star: str = "") -> Iterator[tuple[str, Any]]:
    """Return the values at a path of keys, with the key that a `*` stood for."""
    key, _, rest = path.partition("/")
    if not key:
        yield star, value
    elif key == "*":
        for name, inner in as_table(value).items():
            yield from _find_keys(inner, rest, name)
    elif key in as_table(value):
        yield from _find_keys(as_table(value)[key], rest, star)


def _find_dependencies(value: object, places: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield name and constraint of each dependency, in lists of requirements or as keys with versions."""
    for place in places:
        for key, listed in _find_keys(value, place):
            if isinstance(listed, list):
                requirements = (_REQUIREMENT.match(one) for one in listed if isinstance(one, str))
                yield from ((match[1], match[2].strip()) for match in requirements if match)
            elif key:
                version = flatten(as_table(listed).get("version"))
                yield key, version or (listed if isinstance(listed, str) else "")


@cache
def _load_technologies() -> Mapping[str, str]:
    """Map each known dependency to the name of its technology."""
    entries = " ".join(load_table("technologies").values()).split()
    pairs = (entry.partition("=") for entry in entries)
    return {name.lower(): label.replace("_", " ") for name, _, label in pairs}


def _find_technology(dependency: str) -> str:
    """Return the technology of a dependency. Go modules carry their major version in the path."""
    return _load_technologies().get(re.sub(r"/v\d+$", "", dependency.lower()), "")


def _show_dependency(name: str, version: str = "") -> str:
    """`asyncpg 0.29 (PostgreSQL)`"""
    technology = _find_technology(name)
    known = f" ({technology})" if technology.lower() not in name.lower() else ""
    return shorten(f"{name} {version}".strip(), 80) + known


# Commands


class KnownCommand(NamedTuple):
    """A task of a task runner, or a line of CI."""

    purpose: str | None
    call: str
    path: str
    line: int
    about: str = ""  # the command behind it, or its description


def _describe_commands(tree: Tree) -> Iterator[Finding]:
    """Yield one finding per purpose, from task runners first and from CI where it adds to them."""
    known = [*_find_tasks(tree), *_find_ci_steps(tree)]
    for purpose, row in load_table("commands")["purpose"].items():
        found: dict[tuple[str, str], KnownCommand] = {}
        for one in known:
            if one.purpose == purpose:
                found.setdefault((one.call, dirname(one.path)), one)
        if found:
            shown = list(found.values())[:MOST_PER_PURPOSE]
            yield make_finding(
                shown[0].path,
                shown[0].line,
                "pattern",
                "command",
                f"{row['lead']} {join_words([_cite(one) for one in shown])}.",
                importance=row["importance"],
                section=f"Commands › {purpose}",
            )


def _cite(one: KnownCommand) -> str:
    folder = dirname(one.path)
    place = f" in {folder}/" if folder and folder[0] != "." else ""
    about = f"{shorten(one.about, 70)}, " if one.about else ""
    call = shorten(" ".join(one.call.split()), 90).replace("`", "'")
    return f"`{call}`{place} ({about}{one.path}:{one.line})"


def _find_tasks(tree: Tree) -> Iterator[KnownCommand]:
    table = load_table("commands")
    for row in table["runner"]:
        for path, _ in islice(tree.find(row["file"]), _MOST_FILES):
            # The lock file beside a package.json or at the top shows how its scripts are called.
            folders = (f"{dirname(path)}/".lstrip("/"), "")
            calls = (
                call
                for folder in folders
                for lock, call in table["locks"].items()
                if folder + lock in tree
            )
            manager = next(calls, "npm run")
            for line, match in _find_words(tree, path, row):
                words = set(re.split(r"[-_:./ ]+", match[1].lower()))
                fitting = (name for name, known in table["by_name"] if words & {*known.split()})
                call = row["call"].format(name=match[1], manager=manager)
                about = next(filter(None, match.groups()[1:]), "")
                yield KnownCommand(next(fitting, None), call, path, line, about)


def _find_ci_steps(tree: Tree) -> Iterator[KnownCommand]:
    """Yield the lines of CI that call a program with a known purpose."""
    table = load_table("commands")
    programs = {
        purpose: re.compile(rf"(?:{'|'.join(row['programs'])})(?=\s|$)")
        for purpose, row in table["purpose"].items()
        if "programs" in row
    }
    prefix = re.compile(rf"(?:{'|'.join(table['prefixes'])})*+")
    for row in table["ci"]:
        for path, _ in tree.find(row["file"]):
            for line, step in _find_words(tree, path, row):
                command = " ".join(step[1].replace("\\\n", " ").split()).strip("\"'")[:300]
                called = prefix.sub("", command, count=1)
                fitting = (name for name, words in programs.items() if words.match(called))
                yield KnownCommand(next(fitting, None), command, path, line)


# Signs


def _describe_signs(tree: Tree, row: TableRow) -> Iterator[Finding]:
    """Yield the findings of a row of the table: one for each place that shows enough of it."""
    places: dict[str, list[tuple[str, int, str]]] = {}  # place → path, line and what is shown there
    for path, match in tree.find(row["paths"], row["own"]):
        named = match.groupdict("")
        found = places.setdefault(named.get("place", ""), [])
        if "words" in row:
            words = _find_words(tree, path, row)
            found += [(path, line, " ".join(one[1].split())) for line, one in words]
        else:
            found.append((path, 1, named.get("shown", "")))
    for place, found in places.items():
        files, texts = {path for path, _, _ in found}, unique(text for _, _, text in found)
        if not files or len(texts or files) < row["least"]:
            continue
        path, line, _ = found[0]
        content = row["content"].format(
            path=path,
            line=line,
            place=place or "the top folder",
            count=len(files),
            shown=join_words(texts, 14),
            newest=basename(max(files)),
        )
        tag = row["tag"]
        yield make_finding(
            path,
            line,
            row["kind"],
            tag,
            content,
            importance=row["importance"],
            confidence=row["confidence"],
            section="Structure" if tag == "pattern" else tag,
            entities=[Entity(row["technology"], "technology")] if "technology" in row else (),
        )
