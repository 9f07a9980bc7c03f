"""Statements about a file or a command: which ones a memory names, and which a tool call touches.

A rule is shown at the call that it is about, so both sides are reduced to the same keys: names of files, and programs with the word that
says what they do (`npm install`). The judge decides if the statement applies; nothing here does.
"""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple

from bethink.ingest.commands import PROGRAMS, name_family, name_program, split_line
from bethink.language.rules import binds

KINDS = ("decision", "preference", "gotcha", "pattern")
MOST = 6  # subjects of one statement: one that names more is an overview
_FILE = re.compile(
    r"(?<![\w/.@-])(?:[\w@.+-]{1,80}/){0,8}(?:[\w@+-][\w.@+-]{0,80}\.[A-Za-z][A-Za-z0-9]{0,7}|Makefile|Dockerfile|Justfile|Gemfile|Procfile|Rakefile)(?![\w/])"
)
# Words that only look like files: versions, hosts, abbreviations, names of products and members of objects.
_NO_FILE = re.compile(
    r"(?i)(?:e\.g|i\.e|etc|vs|node\.js|next\.js|vue\.js|express\.js|three\.js|d3\.js|chart\.js|asp\.net|.{0,60}\.(?:com|org|io|dev|net|ai|app))$"
)
_SUFFIXES = frozenset(
    "py pyi js jsx mjs cjs ts tsx vue svelte go rs rb java kt swift c h cc cpp hpp cs php ex exs erl lua sh bash zsh fish ps1 sql html css scss less "
    "json jsonc toml yaml yml ini cfg conf env lock md mdx rst txt xml gradle proto graphql tf hcl dockerfile nix mod sum csv ipynb".split()
)
# Names that occur in many folders: without a folder they say nothing.
_COMMON = frozenset(
    "readme.md index.ts index.tsx index.js index.html main.go main.rs main.py mod.rs lib.rs __init__.py types.ts utils.ts utils.py config.ts page.tsx "
    "layout.tsx route.ts test.ts setup.py conftest.py styles.css app.tsx app.ts".split()
)
# Programs that are also words: they count only where the text marks them as code.
_WORDS = frozenset(
    "go make task just next act node black fly nx mix py buf helm vale az hatch turbo swift dart gem pod rake rails bundle flutter brew nix mise"
    " poetry hk deno bun vite ruby php elixir buck hadolint serve build aws python apt docker podman git gh node jest".split()
)
# Verbs of package managers and version control, as plain text names them.
_VERBS = frozenset(
    "install add remove update upgrade run test build publish start ci push pull commit merge rebase reset checkout deploy apply sync lint format".split()
)
# Programs by which an agent without a tool for it reads or changes a file.
_READERS = frozenset("cat head tail sed less bat nl vi vim nano code".split())
_CODE = re.compile(r"`([^`\n]{2,200})`")
_PLAIN = re.compile(r"(?<![\w/.-])([a-z][a-z0-9-]{1,20})(?=(?: ([a-z][a-z0-9:-]{1,20}))?)")


class Subjects(NamedTuple):
    """The files and commands that a statement names, or that a call touches."""

    files: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


def find_subjects(text: str) -> Subjects:
    """Return the files and commands that a statement is about; none if it names many."""
    files = [name for name in dict.fromkeys(_FILE.findall(text)) if _is_file(name)]
    commands: list[str] = []
    if binds(text):
        for code in _CODE.findall(text):
            program = name_program(code)
            if program in PROGRAMS and not _FILE.fullmatch(code):
                commands.append(name_family(code))
        for program, verb in _PLAIN.findall(_CODE.sub(" ", text)):
            if program in PROGRAMS and program not in _WORDS:
                commands.append(f"{program} {verb}" if verb in _VERBS else program)
    found = Subjects(tuple(files), tuple(dict.fromkeys(commands)))
    return found if len(found.files) + len(found.commands) <= MOST else Subjects()


def list_quoted(text: str) -> tuple[list[str], list[str]]:
    """Return the commands and files that a statement names, for a person to choose from."""
    files = [name for name in dict.fromkeys(_FILE.findall(text)) if _is_file(name)]
    quoted = [code.strip() for code in _CODE.findall(text)]
    commands = [
        code for code in quoted if name_program(code) in PROGRAMS and not _FILE.fullmatch(code)
    ]
    plain = _PLAIN.findall(_CODE.sub(" ", text))
    for program, verb in plain:
        if program in PROGRAMS and program not in _WORDS:
            commands.append(f"{program} {verb}" if verb in _VERBS else program)
    return list(dict.fromkeys(commands)), files


def _is_file(name: str) -> bool:
    base = posixpath.basename(name)
    suffix = base.rpartition(".")[2].lower()
    known = suffix in _SUFFIXES or "." not in base
    return known and not _NO_FILE.match(base) and not (base.lower() in _COMMON and "/" not in name)


def find_touched(file: str, command: str) -> Subjects:
    """Return the file and the commands of a tool call."""
    families: list[str] = []
    files = [file.replace("\\", "/")] if file else []
    for _, members in split_line(command) or () if command else ():
        for member in members[:1]:
            family = name_family(member)
            if name_program(member) in PROGRAMS:
                families += [family, family.partition(" ")[0]]
            if name_program(member) in _READERS:
                files += [word for word in member.split()[1:] if _FILE.fullmatch(word)]
    return Subjects(tuple(files[:MOST]), tuple(dict.fromkeys(families)))


def make_keys(subjects: Subjects) -> list[str]:
    """Return the keys under which a statement about these is found."""
    files = [f"file {posixpath.basename(name).lower()}" for name in subjects.files]
    return [*files, *(f"command {name}" for name in subjects.commands)]


def is_about(named: Subjects, touched: Subjects) -> bool:
    """Return True if a statement names what a call touches: the file with its folders, or the command."""
    for name in named.files:
        ending = f"/{name.lower().removeprefix('./')}"
        if any(f"/{file.lower()}".endswith(ending) for file in touched.files):
            return True
    return bool(set(named.commands) & set(touched.commands))


def describe_calls(named: Subjects) -> list[tuple[str, str]]:
    """Return a call for each subject, with its key: the judge is asked if the statement applies to it."""
    pairs = [
        (key, f"Edit {name}") for key, name in zip(make_keys(named), named.files, strict=False)
    ]
    return [*pairs, *((f"command {name}", name) for name in named.commands)]
