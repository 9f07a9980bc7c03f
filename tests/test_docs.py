"""Docs that cannot rot: the reference is what the code generates, examples run, links lead somewhere.

How an example runs. A ```console block is left out if its first line says `console skip` or the comment `<!-- not run -->`
stands above it. Otherwise each `$ bethink` line of a file (also `$ printf … | bethink`, and `printf` and `mkdir` beside one)
is run in order, in one throw-away home and project, and has to end with exit code 0. In docs/guides the text below a command
has to be what it prints, too; numbers with a point, ids, dates and paths are not compared, a line with only `…` stands for any
lines, and a command with nothing below is only run. An id that a page shows is replaced by the real one when a later command
of the page uses it.
"""

from __future__ import annotations

import importlib.util
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from importlib.metadata import distribution
from pathlib import Path
from typing import NamedTuple

import pytest
import test_embed
import yaml
from packaging.requirements import Requirement

from bethink import __version__, config, types
from bethink.embed import base
from bethink.embed.models import KNOWN
from bethink.ingest import extract
from bethink.recall import pipeline, query, score
from bethink.surface.cli import COMMANDS, console
from bethink.surface.cli.main import main

model_or_pull = test_embed.model_or_pull
ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "bethink"
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
EXAMPLES = [path for path in (ROOT / "README.md", *GUIDES) if path.exists()]
PAGES = sorted(
    path
    for path in ROOT.rglob("*.md")
    if not any(
        part.startswith(".") or part == "node_modules" for part in path.relative_to(ROOT).parts
    )
)
# What pages call the throw-away folders.
HOME, SHOP = "/home/ada/.local/share/bethink", "/home/ada/shop"
RUNS = re.compile(r"\$ (?:(?:[A-Z_]+=\S+ )*bethink |(?:echo|printf) .*\| ?bethink )")
# What this process cannot do by itself.
SHELL = re.compile(r"[|<>;&]|\$\(|^(?:[A-Z_]+=|echo |printf |mkdir )")
FENCE = re.compile(r"^```.*?^```[^\n]*$", re.MULTILINE | re.DOTALL)
ID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}[0-9a-f-]*")
FORBIDDEN = re.compile(r"/work/|/tmp/lab|/root/|\.\./shared(?!/bench\b)")
REGISTRIES = re.compile(r"pypi\.org|pythonhosted\.org|npmjs\.|crates\.io")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


class Example(NamedTuple):
    line: int
    command: str
    shown: list[str]


def blocks(text: str, language: str) -> list[tuple[int, list[str]]]:
    """The fenced blocks of a language that are to be run, with the number of their first line."""
    found, lines, at = [], text.splitlines(), 0
    while at < len(lines):
        opening = re.fullmatch(r"```(\w+)(.*)", lines[at])
        if not opening:
            at += 1
            continue
        end = next(place for place in range(at + 1, len(lines)) if lines[place] == "```")
        above = next((line for line in reversed(lines[:at]) if line.strip()), "")
        skipped = "skip" in opening[2] or above.strip() == "<!-- not run -->"
        if opening[1] == language and not skipped:
            found.append((at + 2, lines[at + 1 : end]))
        at = end + 1
    return found


def examples(text: str) -> list[Example]:
    found: list[Example] = []
    for first, lines in blocks(text, "console"):
        if not any(RUNS.match(line) for line in lines):
            continue
        goes_on = False
        for number, line in enumerate(lines, start=first):
            if goes_on:
                command = found[-1].command + line.strip().removesuffix("\\")
                found[-1] = found[-1]._replace(command=command)
            elif line.startswith("$ "):
                found.append(Example(number, line[2:].removesuffix("\\"), []))
            elif found:
                found[-1].shown.append(line)
            goes_on = line.endswith("\\") and (goes_on or line.startswith("$ "))
    return [
        example
        for example in found
        if RUNS.match(f"$ {example.command}") or re.match("(?:printf|mkdir) ", example.command)
    ]


class Shell:
    """Runs the commands of one page, most of them in this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ids: dict[str, str] = {}  # as the page shows them → as they are
        launcher = folder / "bin" / "bethink"
        launcher.parent.mkdir()
        launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bethink "$@"\n')
        launcher.chmod(0o755)

    def run(self, example: Example) -> tuple[int, str]:
        command = ID.sub(lambda found: self.ids.get(found[0], found[0]), example.command)
        bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", command)
        code, output = (self.in_a_shell if SHELL.search(bare) else self.here)(command)
        for name, place in (("home", HOME), ("shop", SHOP)):
            output = output.replace(str(self.folder / name), place)
        real = list(dict.fromkeys(ID.findall(output)))
        told = list(dict.fromkeys(ID.findall("\n".join(example.shown))))
        if len(real) >= len(told):
            self.ids = dict(zip(told, real, strict=False)) | self.ids
        return code, output

    def here(self, command: str) -> tuple[int, str]:
        shown = io.StringIO()
        keyboard, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(b""))
        try:
            with redirect_stdout(shown), redirect_stderr(shown):
                code = main(shlex.split(command, comments=True)[1:])
        finally:
            sys.stdin = keyboard
        return code, shown.getvalue()

    def in_a_shell(self, command: str) -> tuple[int, str]:
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PATH": path, "PYTHONPATH": str(SOURCE.parent)},
            stdin=subprocess.DEVNULL,
        )
        return done.returncode, done.stdout


@pytest.fixture
def shell(tmp_path, monkeypatch):
    (tmp_path / "shop" / ".bethink").mkdir(parents=True)  # a project, as pages take for granted
    known = [name for name in os.environ if name.startswith(("BETHINK_", "XDG_", "OPENAI_"))]
    for variable in (*known, "NO_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("BETHINK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BETHINK_EMBEDDING", "hashing")
    monkeypatch.setenv("BETHINK_OFFLINE", "1")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path / "shop")
    return Shell(tmp_path)


def comparable(lines: list[str]) -> list[str]:
    """Lines without what differs from run to run and from model to model."""
    text = "\n".join(" ".join(line.split()) for line in lines)
    for pattern, word in (
        (ID, "ID"),
        (r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::[\d.]+Z?)?)?", "DATE"),
        (r"\d+\.\d+ ?(?:kB|MB|GB)", "SIZE"),
        (r"-?\d+(?:\.\d+)+", "NUMBER"),
        (r"snowflake-arctic-embed-s@\w+(?:/w\d+)?|hashing-\d+", "MODEL"),
        (r"/(?:tmp|home|private|var)[\w./-]*", "PATH"),
        (r"project:[0-9a-f]{16}", "project:HASH"),
        (r"container:[0-9a-f]{16}", "container:HASH"),
    ):
        text = re.sub(pattern, word, text)
    return text.strip("\n").splitlines()


def prints(shown: list[str], printed: list[str]) -> bool:
    """Whether the lines of a page are the printed ones; `…` stands for any number of lines."""
    if not shown:
        return not printed
    if shown[0] == "…":
        return any(prints(shown[1:], printed[start:]) for start in range(len(printed) + 1))
    return bool(printed) and shown[0] == printed[0] and prints(shown[1:], printed[1:])


# The reference


def test_the_generated_reference_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec and spec.loader
    generate = importlib.util.module_from_spec(spec)
    path = list(sys.path)
    try:
        spec.loader.exec_module(generate)
        assert generate.outdated() == [], "run `make docs`"
    finally:
        sys.path[:] = path


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_the_reference_and_in_a_guide(command: str) -> None:
    assert f"\n## {command}\n" in (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8")
    assert any(re.search(rf"bethink {command}\b", path.read_text("utf-8")) for path in GUIDES), (
        f"no guide mentions `bethink {command}`"
    )


def test_every_setting_and_every_variable_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text("utf-8")
    read = {
        name
        for path in SOURCE.rglob("*.py")
        for name in re.findall(r"\b(?:BETHINK|OPENAI|XDG)_[A-Z_]*[A-Z]\b", path.read_text("utf-8"))
    }
    wanted = {*config.SETTINGS, *(f"BETHINK_{key.upper()}" for key in config.SETTINGS), *read}
    assert sorted(name for name in wanted if f"`{name}`" not in page) == []


@pytest.mark.parametrize(
    ("guide", "names"),
    [
        ("writing.md", (*types.KINDS, *types.RELATIONS, *types.ENTITY_TYPES)),
        ("searching.md", (*types.MODES, *score.PROFILES)),
        ("embeddings.md", ("http", "hashing", "none", "BETHINK_OFFLINE", "BETHINK_MODEL_DIR")),
    ],
)
def test_guides_name_every_choice(guide: str, names: tuple[str, ...]) -> None:
    text = (ROOT / "docs" / "guides" / guide).read_text("utf-8")
    assert [name for name in names if not re.search(rf"`{name}\b", text)] == []


def test_every_local_model_is_listed() -> None:
    text = (ROOT / "docs" / "guides" / "embeddings.md").read_text("utf-8")
    for model in KNOWN.values():
        row = rf"^[* ]  {re.escape(model.name)} +{model.dimensions}  {model.licence}"
        assert re.search(row, text, re.MULTILINE), model.name


def test_pages_written_by_hand_have_the_numbers_of_the_code() -> None:
    """The formula itself is generated; these numbers stand in sentences."""
    text = (ROOT / "docs" / "concepts" / "recall.md").read_text("utf-8")
    numbers = (
        f"(k₁ = {score.K1:g}, b = {score.B:g})",
        f"k = {score.RRF_K}",
        f"Up to {pipeline.BY_WORDS} memories by words and {pipeline.BY_MEANING} by meaning",
        f"less up to {score.DOUBT:.0%}".replace("%", " %"),
        f"(1 − {score.DOUBT:g} · (1 − confidence))",
        f"less than {score.FIT:.1f} of the way".replace("0.", "."),
        f"its first {query.SYNTAX_LIMIT:,} characters are analysed and {query.TEXT_LIMIT:,} are embedded",
    )
    assert [number for number in numbers if number not in text] == []
    assert pipeline.IN_TIME == 1.25, "docs/concepts/recall.md says: a quarter"
    assert (round(score.squash(0), 2), score.squash(0.5)) == (0.15, 0.5), (
        "docs/concepts/recall.md says so"
    )
    assert extract.IMPORTANCE == {"decision": 7, "gotcha": 7, "preference": 6, "context": 3}, (
        "docs/guides/writing.md says so"
    )
    assert base.WINDOW == 128, "docs/guides/embeddings.md says so"


def test_the_changelog_speaks_of_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert __version__ in re.findall(r"^## \[?(\d+\.\d+\.\d+)", text, re.MULTILINE)


# Examples


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_examples_run(path: Path, shell: Shell) -> None:
    for example in examples(path.read_text("utf-8")):
        code, output = shell.run(example)
        where = f"{name_of(path)}:{example.line}: $ {example.command}"
        assert code == 0, f"{where}\nended with {code}:\n{output}"
        shown, printed = comparable(example.shown), comparable(output.splitlines())
        if shown and path in GUIDES:
            told = "\n".join(["The page shows:", *shown, "It prints:", *printed])
            assert prints(shown, printed), f"{where}\n{told}"


def test_the_readme_shows_what_the_default_model_gives(
    shell: Shell, model_or_pull: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BETHINK_EMBEDDING")
    monkeypatch.setenv("BETHINK_MODEL_DIR", str(model_or_pull.parent))
    for example in examples((ROOT / "README.md").read_text("utf-8")):
        code, output = shell.run(example)
        shown, printed = comparable(example.shown), comparable(output.splitlines())
        assert code == 0 and (not shown or prints(shown, printed)), f"$ {example.command}\n{output}"


@pytest.mark.parametrize(
    "path", [path for path in EXAMPLES if path.name in ("README.md", "python.md")], ids=name_of
)
def test_python_examples_run(path: Path, shell: Shell) -> None:
    names: dict[str, object] = {"__name__": "example"}
    for line, code in blocks(path.read_text("utf-8"), "python"):
        exec(compile("\n" * (line - 1) + "\n".join(code), name_of(path), "exec"), names)


@pytest.mark.parametrize(
    "path", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=name_of
)
def test_commands_in_pages_have_the_options_they_are_shown_with(path: Path) -> None:
    text = path.read_text("utf-8").replace("\\\n", " ")
    for line in [
        *re.findall(r"`(bethink [^`\n]+)`", text),
        *re.findall(r"^\s*(?:\$ )?(bethink .+)", "\n".join(FENCE.findall(text)), re.MULTILINE),
    ]:
        command = line.split()[1]
        if command not in COMMANDS:
            assert re.match(r"COMMAND|help|-|\d", command), f"{name_of(path)}: {line}"
            continue
        known = {flag for one in console.load(command).arguments for flag in one.names}
        bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", re.split(r"\s[|#&]|[;>]", line)[0])
        words = re.findall(r"(?<=\s)--?[a-z][a-z-]*", bare)
        assert not [word for word in words if word not in known], f"{name_of(path)}: {line}"


# Links and paths


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#{1,6} (.+)$", FENCE.sub("", path.read_text("utf-8")), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", path.read_text("utf-8")))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        found = (path.parent / file).resolve() if file else path
        assert found.exists(), f"{name_of(path)} links to {target}"
        assert found.is_relative_to(ROOT.resolve()), f"{name_of(path)} links to {target}"
        assert not anchor or anchor in anchors(found), f"{name_of(path)} links to {target}"


def test_every_page_is_in_the_table_of_contents() -> None:
    contents = (ROOT / "docs" / "README.md").read_text("utf-8")
    pages = [
        path.relative_to(ROOT / "docs").as_posix()
        for path in (ROOT / "docs").rglob("*.md")
        if path.name != "README.md"
    ]
    assert sorted(page for page in pages if f"]({page})" not in contents) == []


def test_each_requirement_of_the_designs_is_held_by_a_test_that_exists() -> None:
    text = (ROOT / "docs" / "seeds.md").read_text("utf-8")
    rows = re.findall(r"^\| \d{3}-.*$", text, re.MULTILINE)
    named = [re.findall(r"`(tests/\w+\.py)::(test_\w+)`", row) for row in rows]
    assert len(rows) > 300 and all(named)
    missing = {
        f"{file}::{test}"
        for held in named
        for file, test in held
        if f"def {test}(" not in (ROOT / file).read_text("utf-8")
    }
    assert not missing


def test_make_targets_in_pages_exist() -> None:
    made = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", made, re.MULTILINE))
    shown = re.compile(r"(?:`|^\$ |^)make ([a-z][a-z-]*)\b", re.MULTILINE)
    named = {word for path in PAGES for word in shown.findall(path.read_text("utf-8"))}
    assert named - targets == set()


def test_nothing_outside_the_repository_is_named() -> None:
    """Evaluation sets may lie beside the repository, and pages about benchmarks say so."""
    folders = [ROOT / name for name in ("src", "docs", "bench", "tests", ".ci")]
    files = [
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.suffix in (".py", ".md", ".sql", "") and path.is_file()
    ]
    found = []
    for path in {*files, *PAGES, ROOT / "Makefile", ROOT / "pyproject.toml"} - {Path(__file__)}:
        text = path.read_text("utf-8")
        found += [f"{name_of(path)}: {word}" for word in FORBIDDEN.findall(text)]
        if "tests" not in path.parts:
            found += [f"{name_of(path)}: {word}" for word in REGISTRIES.findall(text)]
    assert sorted(found) == []


def test_what_registries_are_told_is_of_this_version() -> None:
    from bethink import __version__

    server, bundle = (
        json.loads((ROOT / name).read_text())
        for name in ("server.json", "packaging/mcpb/manifest.json")
    )
    assert server["version"] == server["packages"][0]["version"] == bundle["version"] == __version__
    needs = (ROOT / "packaging/mcpb/pyproject.toml").read_text()
    assert f'version = "{__version__}"' in needs and f"bethink[mcp]=={__version__}" in needs
    assert f"mcp-name: {server['name']}" in (ROOT / "README.md").read_text()
    assert json.loads((ROOT / ".mcp.json").read_text())["mcpServers"]["bethink"] == {
        "command": "bethink",
        "args": ["mcp"],
    }


def test_the_container_runs_without_rights_and_tells_its_health() -> None:
    """What a linter cannot know: the commands exist, and the server refuses an open address without a token."""
    folder = ROOT / "packaging" / "docker"
    recipe = (folder / "Dockerfile").read_text("utf-8")
    final = recipe.rpartition("FROM ")[2]
    assert re.search(r"^USER 10001$", final, re.MULTILINE) and "HEALTHCHECK" in final
    assert "/readyz" in final and 'CMD ["serve", "--host", "0.0.0.0", "--insecure-bind"]' in final
    services = yaml.safe_load((folder / "compose.yaml").read_text("utf-8"))["services"]
    assert services["bethink"]["ports"] == ["127.0.0.1:7377:7377"]
    assert services["bethink"]["environment"]["BETHINK_DATABASE"].startswith("postgresql://server@")
    assert services["tables"]["command"][0] in COMMANDS
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", recipe, re.MULTILINE)
    assert all((ROOT / name).exists() for names in copied for name in names.split())


def measure(files: Iterable[Path]) -> int:
    return sum(one.stat().st_size for one in files if one.suffix != ".pyc" and one.is_file())


def test_a_base_installation_stays_as_small_as_it_is() -> None:
    """Megabytes of everything that the package needs without extras. What is not needed by all belongs into an extra."""
    left, seen, total = ["bethink"], set(), 0
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        found = distribution(name)
        for wanted in found.requires or ():
            needed = Requirement(wanted)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                left.append(needed.name)
        if name != "bethink":
            files = (Path(str(found.locate_file(file))) for file in found.files or ())
            total += measure(files)
    total += measure(SOURCE.rglob("*"))
    assert not seen & {"mcp", "starlette", "uvicorn", "tree-sitter", "psycopg", "sympy", "torch"}
    assert total / 1e6 < 210, f"{total / 1e6:.0f} MB: {sorted(seen)}"
