"""Statements about a file or a command: which ones a memory names, and which a tool call touches.

A rule is shown at the call that it is about, so both sides are reduced to the same keys: names of files, and programs with the word that
says what they do (`npm install`). The judge decides if the statement applies; nothing here does.
"""

import posixpath
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from bethink.ingest.commands import PROGRAMS, name_family, name_job, name_program, split_line
from bethink.language.rules import (
    BEFORE_A_TOOL,
    FORBIDDEN,
    IN_FOLDER,
    IS_FORBIDDEN,
    ON_BRANCH,
    ON_KIND_OF_FILE,
    ON_TYPE,
    RULED_ACTIONS,
    SOURCE_OF,
    directs,
)
from bethink.text import compile_late

_MOST = 6  # subjects of one statement: one that names more is an overview
_FILE = compile_late(
    r"(?<![\w/.@-])(?:[\w@.+-]{1,80}/){0,8}(?:[\w@+-][\w.@+-]{0,80}\.[A-Za-z][A-Za-z0-9]{0,7}|Makefile|Dockerfile|Justfile|Gemfile|Procfile|Rakefile|\.env(?:\.[a-z]{1,20})?)(?![\w/])"
)
# Words that only look like files: versions, hosts, abbreviations, names of products and members of objects.
_NO_FILE = compile_late(
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
_HARMLESS = frozenset(("--help", "-h", "--dry-run", "--version"))
_CHANGERS = frozenset("rm mv cp tee touch chmod add".split())
# Programs outside of `PROGRAMS` that a rule may forbid, where it says "use grep" or marks it as code.
_TOOLS = frozenset(
    "grep egrep rg sed awk curl wget rm cat find kill ssh scp chmod sudo perl jq cp mv telnet xargs".split()
)
_LOCKS = tuple(
    "package-lock.json pnpm-lock.yaml yarn.lock bun.lock Cargo.lock poetry.lock uv.lock go.sum Gemfile.lock composer.lock".split()
)
_LOCK_FILES = compile_late(r"\block ?-?files?\b", re.IGNORECASE)
_TYPES = {
    "yaml": ("*.yml", "*.yaml"),
    "markdown": ("*.md",),
    **{name: (f"*.{name}",) for name in "json toml xml csv sql html css".split()},
}
# Files of a kind: their folders, and what else they are called.
_KINDS_OF_FILES: Mapping[str, tuple[list[str], list[str]]] = {
    "test": (
        ["tests/", "test/", "spec/", "__tests__/"],
        [
            "test_*.py",
            "*_test.py",
            "*_test.go",
            "*.test.ts",
            "*.test.tsx",
            "*.test.js",
            "*.spec.ts",
        ],
    ),
    "migration": (["migrations/", "migrate/"], []),
    "snapshot": (["__snapshots__/", "snapshots/"], ["*.snap"]),
    "fixture": (["fixtures/"], []),
    "workflow": ([".github/workflows/"], []),
}
# Words of a test command that leave nothing out, and options that do.
_EVERYTHING = frozenset(("run", "test", "tests", "tests/", "./...", "."))
_SELECTS = compile_late(
    r"-[kmpt]$|--?(?:run|filter|grep|only|lf|ff|last|related|changed|package|shard|bin|lib)"
)
_BARE_FOLDER = compile_late(r"(?<![\w/.-])(?:node_modules|__[a-z]{3,20}__)(?![\w/.])")
_FOLDER = compile_late(r"(?<![\w/.:@*-])((?:[\w.@-]{1,60}/){1,8})(?![\w*.])")
_NAMED_FOLDER = compile_late(r"(?<![\w/.:@*-])((?:[\w-]{1,60}/){1,8}[\w-]{1,60})(?![\w/.*])")
_GLOB = compile_late(r"(?<![\w/])(?:[\w.-]{1,60}/){0,8}\*{1,2}(?:/\*)?\.[\w.]{1,40}(?<!\.)")
_OPTION = compile_late(r"(?<![\w-])--[a-z][a-z-]{2,30}(?![\w=])")
# Titles, messages and bodies in a command: what they speak of is not what the command works on.
_PROSE = compile_late(r"'[^'\s]{0,200}\s[^']{0,8000}'|\"[^\"\s]{0,200}\s[^\"]{0,8000}\"")
_CODE = compile_late(r"`([^`\n]{2,200})`")
_PLAIN = compile_late(r"(?<![\w/.-])([a-z][a-z0-9-]{1,20})(?=(?: ([a-z][a-z0-9:-]{1,20}))?)")


class Subjects(NamedTuple):
    """The files and commands that a statement names, or that a call touches."""

    files: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()  # families, `* verb` for any program, and long options
    folders: tuple[str, ...] = ()  # each ends with a slash
    globs: tuple[str, ...] = ()
    needs: tuple[tuple[str, ...], ...] = ()  # words or globs; a command has to hold one of each
    call: str = ""  # the work of the commands in words, where the statement names it so
    line: str = ""  # of a call
    whole: bool = False  # the commands must not name a part to work on

    @property
    def named(self) -> bool:
        return bool(self.files or self.commands or self.folders or self.globs)


def find_subjects(text: str) -> Subjects:
    """Return the files and commands that a statement is about; none if it names many."""
    places = find_places(text)
    if places is None:
        return Subjects()
    if not directs(text):
        return places
    rule = _find_commands(text, places.named)
    folders, globs = places.folders, places.globs
    if not (places.named or rule.commands) and (kind := ON_KIND_OF_FILE.find(text)):
        folders, globs = map(tuple, _KINDS_OF_FILES[kind[1].lower().removesuffix("s")])
    return rule._replace(files=places.files, folders=folders, globs=globs)


def find_places(text: str) -> Subjects | None:
    """Return the files and folders that a statement is about; None if it names many."""
    files = [name for name in dict.fromkeys(_FILE.findall(text)) if _is_file(name)]
    files = [name for name in files if len(files) < 2 or not _is_source(text, name)]
    files += _LOCKS if _LOCK_FILES.search(text) and not files else ()
    globs = [name for name in _GLOB.findall(text) if not _is_source(text, name)]
    folders = _find_folders(text)
    if len([name for name in files if name not in _LOCKS]) + len(folders) > _MOST:
        return None
    return Subjects(files=tuple(files), folders=tuple(folders), globs=tuple(globs))


def _is_source(text: str, name: str) -> bool:
    return SOURCE_OF.holds(text[: text.find(name)])


def _find_folders(text: str) -> list[str]:
    found = [name for name in _FOLDER.findall(text) if not _is_source(text, name)]
    found += [
        f"{match[1]}/"
        for match in _NAMED_FOLDER.finditer(text)
        if IN_FOLDER.holds(text[: match.start()])
    ]
    found += [f"{name}/" for name in _BARE_FOLDER.findall(text)]
    return list(
        dict.fromkeys(name.removeprefix("./") for name in found if name not in ("./", "../"))
    )


def _find_commands(text: str, has_place: bool) -> Subjects:
    """The commands that a statement is about, the words that they need, and the work in words.

    Commands that it forbids come first, then the work that it names, then any command.
    """
    commands: list[str] = []
    needs: list[tuple[str, ...]] = []
    call, whole = "", False
    spans = [match[1] for match in FORBIDDEN.finditer(text)]
    spans += [match[1] for match in IS_FORBIDDEN.finditer(text)]
    for span in spans:
        if not (has_place and _FOLDER.search(span)):
            found, options = _name_commands(span)
            commands += found
            needs += options
    if commands and (on := ON_TYPE.find(text)):
        needs.append(_TYPES[on[1]])
    for action in RULED_ACTIONS if not commands else ():
        if not action.pattern.holds(text) or (has_place and "before" not in text.lower()):
            continue
        commands += action.commands
        call, whole = call or action.call, action.whole
        needs += [action.needs] if action.needs else []
        branch = next((on for span in [*spans, text] if (on := ON_BRANCH.find(span))), None)
        forbids = any(ON_BRANCH.holds(span) for span in spans)
        if branch and forbids and not needs:
            needs.append((branch[1],))
        if action.needs or whole:
            break
    if not commands and not has_place:
        commands, needs = _name_commands(text)
    names = tuple(dict.fromkeys(commands))
    return Subjects(commands=names, needs=tuple(needs), call=call, whole=whole)


def _name_commands(text: str) -> tuple[list[str], list[tuple[str, ...]]]:
    """The commands of a part of a statement, and their options."""
    commands: list[str] = []
    needs: list[tuple[str, ...]] = []
    for code in _CODE.findall(text):
        program = name_program(code)
        if (program in PROGRAMS or program in _TOOLS) and not _FILE.fullmatch(code):
            commands.append(name_family(code) if program in PROGRAMS else program)
            options = [word for word in code.split()[1:] if word.startswith("-")]
            needs += [(option,) for option in options]
    plain = _CODE.sub(" ", text)
    for match in _PLAIN.finditer(plain):
        program, verb = match[1], match[2] or ""
        used = (
            BEFORE_A_TOOL.holds(plain[: match.start()] or " ") or not plain[: match.start()].strip()
        )
        if program in PROGRAMS and (program not in _WORDS or used):
            commands.append(f"{program} {verb}" if verb in _VERBS else program)
        elif program in _TOOLS and used:
            commands.append(program)
    if not commands:
        commands += _OPTION.findall(text)
    return commands, needs


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
        for member in members:
            family, program = name_family(member), name_program(member)
            words = member.split()
            if _HARMLESS.intersection(words):
                continue
            if program in PROGRAMS or program in _TOOLS:
                families += [family, family.partition(" ")[0], name_job(member)]
                families += [one.replace("pip3", "pip", 1) for one in families if "pip3" in one]
                verb = family.rpartition(" ")[2]
                families += [f"* {verb}"] if " " in family else []
                families += [word for word in words if _OPTION.fullmatch(word)]
            if program in _READERS or program in _CHANGERS or family == "git add":
                files += [word for word in words[1:] if _FILE.fullmatch(word) or "/" in word]
    return Subjects(tuple(files[:_MOST]), tuple(dict.fromkeys(families)), line=command)


def make_keys(subjects: Subjects) -> list[str]:
    """Return the keys under which a statement about these is found."""
    return [key for key, _ in describe_calls(subjects)]


def list_keys(touched: Subjects) -> list[str]:
    """Return the keys of all statements that may be about a call."""
    keys: list[str] = []
    for file in touched.files:
        *folders, base = file.lower().split("/")
        keys.append(f"file {base}")
        keys += [f"folder {name}" for name in folders if name]
        keys += [f"glob {base[at:]}" for at, char in enumerate(base) if char == "."]
    return list(dict.fromkeys([*keys, *(f"command {name}" for name in touched.commands)]))


def is_about(named: Subjects, touched: Subjects) -> bool:
    """Return True if a statement names what a call touches: the file with its folders, or the command."""
    for file in touched.files:
        place = f"/{file.lower()}"
        if any(place.endswith(f"/{name.lower().removeprefix('./')}") for name in named.files):
            return True
        if any(f"/{name.lower()}" in place for name in named.folders):
            return True
        if any(
            fnmatchcase(place, f"*/{name.lower().lstrip('*/')}")
            or fnmatchcase(place, f"*{name.lower().rpartition('/')[2].lstrip('*')}")
            for name in named.globs
        ):
            return True
    if not set(named.commands) & set(touched.commands):
        return False
    if named.whole and _names_part(named.commands, touched.line):
        return False
    words = [
        part.strip("'\"")
        for word in _PROSE.sub(" ", touched.line).split()
        for part in (word, word.partition("=")[2])
    ]
    return all(
        any(fnmatchcase(word, one) for word in words for one in need) for need in named.needs
    )


def _names_part(commands: tuple[str, ...], line: str) -> bool:
    """Return True if a line runs one of these commands on some files or tests only."""
    members = [one for _, members in split_line(line) or () for one in members]
    runs = [one for one in members if {name_family(one), name_job(one)} & set(commands)]
    return not any(_is_whole(one.split()[1:]) for one in runs)


def _is_whole(words: list[str]) -> bool:
    parts = [one for one in words if not one.startswith("-") and one not in _EVERYTHING]
    return not parts and not any(map(_SELECTS.match, words))


def describe_calls(named: Subjects) -> list[tuple[str, str]]:
    """Return a call for each subject, with its key: the judge is asked if the statement applies to it."""
    locks = named.files == _LOCKS
    pairs = [
        (
            f"file {posixpath.basename(name).lower()}",
            "Update the lock file by hand" if locks else f"Edit {name}",
        )
        for name in named.files
    ]
    pairs += [
        (f"folder {name.rstrip('/').rpartition('/')[2].lower()}", f"Edit {name}index")
        for name in named.folders
    ]
    pairs += [
        (f"glob {name.rpartition('*')[2].lower()}", f"Edit {name.replace('*', 'index')}")
        for name in named.globs
    ]
    needs = " ".join(one[0].replace("*", "data") for one in named.needs)
    for name in named.commands:
        pairs.append((f"command {name}", f"{named.call or name} {needs}".strip()))
    return pairs
