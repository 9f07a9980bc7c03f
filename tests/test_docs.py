"""Docs that cannot rot: the reference is what the code generates, examples run, links lead somewhere.

How an example runs. A ```console block is left out if its first line says `console skip` or the comment `<!-- not run -->`
stands above it. Otherwise each `$ bethink` line of a file (also `$ printf … | bethink`, and `printf`, `mkdir` and `git init` beside one)
is run in order, in one throw-away home and project, and has to end with exit code 0. In docs/guides the text below a command
has to be what it prints, too; numbers with a point, ids, dates and paths are not compared, a line with only `…` stands for any
lines, and a command with nothing below is only run. An id that a page shows is replaced by the real one when a later command
of the page uses it.
"""

import importlib.util
import io
import json
import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from importlib.metadata import distribution
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
import yaml
from packaging.requirements import Requirement

from bethink import __version__, config, model
from bethink.app.cli import COMMANDS
from bethink.app.cli.console import load_operation
from bethink.app.cli.main import main
from bethink.app.cli.parser import list_parameters, name_flags, name_negative
from bethink.embed import base
from bethink.embed.models import KNOWN
from bethink.ingest import extract
from bethink.recall import candidates, features, query, rank, signals

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "bethink"
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
EXAMPLES = [path for path in (ROOT / "README.md", *GUIDES) if path.exists()]
PAGES = [
    path
    for path in sorted(ROOT.rglob("*.md"))
    if not re.search(r"(^|/)(\.|node_modules/)", str(path.relative_to(ROOT)))
]
# What pages call the throw-away folders.
HOME, SHOP = "/home/ada/.local/share/bethink", "/home/ada/shop"
RUNS = re.compile(r"\$ (?:(?:[A-Z_]+=\S+ )*bethink |(?:echo|printf) .*\| ?bethink )")
# What this process cannot do by itself.
SHELL = re.compile(r"[|<>;&]|\$\(|^(?:[A-Z_]+=|echo |printf |mkdir |git init)")
FENCE = re.compile(r"^```.*?^```[^\n]*$", re.MULTILINE | re.DOTALL)
ID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}[0-9a-f-]*")
FORBIDDEN = re.compile(r"/work/|/tmp/lab|/root/|\.\./shared(?!/bench\b)")
REGISTRIES = re.compile(r"pypi\.org|pythonhosted\.org|npmjs\.|crates\.io")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


class Example(NamedTuple):
    line: int
    command: str
    shown: list[str]


def blocks(text: str, language: str) -> list[tuple[int, list[str]]]:
    """The fenced blocks of a language that are to be run, with the number of their first line."""
    found = []
    for block in re.finditer(r"^```(\w+)(.*)\n((?:.*\n)*?)```$", text, re.MULTILINE):
        before = text[: block.start()]
        skipped = "skip" in block[2] or before.rstrip().endswith("<!-- not run -->")
        if block[1] == language and not skipped:
            found.append((before.count("\n") + 2, block[3].splitlines()))
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
    beside = re.compile("(?:printf|mkdir|git init) ")
    return [one for one in found if RUNS.match(f"$ {one.command}") or beside.match(one.command)]


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
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
            with redirect_stdout(shown), redirect_stderr(shown):
                code = main(shlex.split(command, comments=True)[1:])
        return code, shown.getvalue()

    def in_a_shell(self, command: str) -> tuple[int, str]:
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, "PYTHONPATH": str(SOURCE.parent)}
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True}
        streams["stderr"] = subprocess.STDOUT
        done = subprocess.run(["sh", "-c", command], env=env, **streams)
        return done.returncode, done.stdout


@pytest.fixture
def shell(tmp_path_factory, monkeypatch):
    tmp_path = tmp_path_factory.mktemp("docs")  # a short path, which no line breaks at
    (tmp_path / "shop" / ".bethink").mkdir(parents=True)  # a project, as pages take for granted
    known = [name for name in os.environ if name.startswith(("BETHINK_", "XDG_", "OPENAI_"))]
    for variable in (*known, "NO_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    fixed = {"BETHINK_HOME": str(tmp_path / "home"), "BETHINK_EMBEDDING": "hashing"}
    for variable, value in {**fixed, "BETHINK_OFFLINE": "1", "COLUMNS": "100"}.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.chdir(tmp_path / "shop")
    return Shell(tmp_path)


# What differs from run to run and from model to model.
VARYING = {
    ID.pattern: "ID",
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::[\d.]+Z?)?)?": "DATE",
    r"\d+\.\d+ ?(?:kB|MB|GB)": "SIZE",
    r"-?\d+(?:\.\d+)+": "NUMBER",
    r"snowflake-arctic-embed-s@\w+(?:/w\d+)?|hashing-\d+": "MODEL",
    r"\bchat-[0-9a-f]{3,16}\b": "CHAT",
    r"/(?:tmp|home|private|var)[\w./-]*": "PATH",
    r"(project:|container:|chat-)[0-9a-f]{16}": r"\1HASH",
}


def comparable(lines: list[str]) -> list[str]:
    text = "\n".join(" ".join(line.split()) for line in lines)
    for pattern, word in VARYING.items():
        text = re.sub(pattern, word, text)
    # Where a line breaks before a path depends on how long the path is.
    text = re.sub(r"\n(?=PATH|project:HASH|\(score )", " ", text)
    return text.strip("\n").splitlines()


def prints(shown: list[str], printed: list[str]) -> bool:
    """Whether the lines of a page are the printed ones; `…` stands for any number of lines."""
    if not shown:
        return not printed
    if shown[0] == "…":
        return any(prints(shown[1:], printed[start:]) for start in range(len(printed) + 1))
    return bool(printed) and shown[0] == printed[0] and prints(shown[1:], printed[1:])


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", list(sys.path))
        spec.loader.exec_module(generate)
    return generate


GENERATED = load_generator().PAGES


@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_page_is_up_to_date(name: str) -> None:
    assert read(f"docs/{name}") == GENERATED[name](), "run `make docs`"


NUMBERS = [
    f"(k₁ = {signals.K1:g}, b = {signals.B:g})",
    f"k = {signals.RRF_K}",
    f"Up to {candidates.MOST_BY_WORDS} memories by words and {candidates.MOST_BY_MEANING} by meaning",
    f"less up to {rank.Profile().doubt:.0%}".replace("%", " %"),
    f"(1 − {rank.Profile().doubt:g} · (1 − confidence))",
    f"less than {features.FIT_SHARE:.1f} of the way".replace("0.", "."),
    f"its first {query.SYNTAX_LIMIT:,} characters are analysed and {query.TEXT_LIMIT:,} are embedded",
]


def test_commands_settings_choices_and_numbers_stand_in_the_pages_as_in_the_code() -> None:
    reference, guides = read("docs/reference/cli.md"), "".join(path.read_text() for path in GUIDES)
    assert [name for name in COMMANDS if f"\n## {name}\n" not in reference] == []
    assert [name for name in COMMANDS if not re.search(rf"bethink {name}\b", guides)] == []
    variable = re.compile(r"\b(?:BETHINK|OPENAI|XDG)_[A-Z_]*[A-Z]\b")
    named = {name for path in SOURCE.rglob("*.py") for name in variable.findall(path.read_text())}
    wanted = {*config.SETTINGS, *(f"BETHINK_{key.upper()}" for key in config.SETTINGS), *named}
    page = read("docs/reference/settings.md")
    assert sorted(name for name in wanted if f"`{name}`" not in page) == []
    for guide, names in (
        ("writing", (*model.KINDS, *model.RELATIONS, *model.ENTITY_TYPES)),
        ("searching", (*model.MODES, *rank.PROFILES)),
        ("embeddings", ("http", "hashing", "none", "BETHINK_OFFLINE", "BETHINK_MODEL_DIR")),
    ):
        text = read(f"docs/guides/{guide}.md")
        assert [name for name in names if not re.search(rf"`{name}\b", text)] == []
    assert [
        known
        for known in [*KNOWN.values()][1:]  # the default may be the current one
        if not re.search(
            f"^{re.escape(known.name)} +{known.dimensions} +{known.window:,} +{known.licence}",
            text,
            re.MULTILINE,
        )
    ] == []
    # The formula itself is generated; these numbers stand in sentences.
    text = read("docs/concepts/recall.md")
    numbers = NUMBERS
    assert [number for number in numbers if number not in text] == []
    # The same page: a quarter, and where relevance begins and has its middle.
    assert features.IN_TIME == 1.25
    curve = rank.Profile()
    relevance = [round(rank.find_relevance(evidence, curve), 2) for evidence in (0, 0.5)]
    assert relevance == [0.15, 0.5]
    # docs/guides/writing.md and docs/guides/embeddings.md.
    assert extract.KIND_IMPORTANCE == {"decision": 7, "gotcha": 7, "preference": 6, "context": 3}
    assert base.WINDOW == 128


def check_examples(path: Path, shell: Shell, compare: bool) -> None:
    for example in examples(path.read_text("utf-8")):
        code, output = shell.run(example)
        where = f"{name_of(path)}:{example.line}: $ {example.command}"
        assert code == 0, f"{where}\nended with {code}:\n{output}"
        shown, printed = comparable(example.shown), comparable(output.splitlines())
        if shown and compare:
            told = "\n".join(["The page shows:", *shown, "It prints:", *printed])
            assert prints(shown, printed), f"{where}\n{told}"


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_examples_run(path: Path, shell: Shell) -> None:
    check_examples(path, shell, compare=path in GUIDES)


def test_the_readme_shows_what_the_default_model_gives(shell, model_or_pull, monkeypatch) -> None:
    monkeypatch.delenv("BETHINK_EMBEDDING")
    monkeypatch.setenv("BETHINK_MODEL_DIR", str(model_or_pull.parent))
    check_examples(ROOT / "README.md", shell, compare=True)


@pytest.mark.parametrize("path", [EXAMPLES[0], ROOT / "docs/guides/python.md"], ids=name_of)
def test_python_examples_run(path: Path, shell: Shell) -> None:
    names: dict[str, object] = {"__name__": "example"}
    for line, code in blocks(path.read_text("utf-8"), "python"):
        exec(compile("\n" * (line - 1) + "\n".join(code), name_of(path), "exec"), names)


@pytest.mark.parametrize("path", [one for one in PAGES if one.stem != "CHANGELOG"], ids=name_of)
def test_commands_in_pages_have_the_options_they_are_shown_with(path: Path) -> None:
    text = path.read_text("utf-8").replace("\\\n", " ")
    fenced = "\n".join(FENCE.findall(text))
    shown = re.findall(r"^\s*(?:\$ )?(bethink .+)", fenced, re.MULTILINE)
    for line in (*re.findall(r"`(bethink [^`\n]+)`", text), *shown):
        command = line.split()[1]
        if command not in COMMANDS:
            assert re.match(r"COMMAND|help|-|\d", command), f"{name_of(path)}: {line}"
            continue
        parameters = list_parameters(load_operation(command))
        known = {flag for one in parameters for flag in (*name_flags(one), name_negative(one))}
        bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", re.split(r"\s[|#&]|[;>]", line)[0])
        words = re.findall(r"(?<=\s)--?[a-z][a-z-]*", bare)
        assert not [word for word in words if word not in known], f"{name_of(path)}: {line}"


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#{1,6} (.+)$", FENCE.sub("", path.read_text("utf-8")), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", path.read_text("utf-8")))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        found = (path.parent / file).resolve() if file else path
        there = found.exists() and found.is_relative_to(ROOT.resolve())
        assert there and (not anchor or anchor in anchors(found)), f"{name_of(path)}: {target}"


def name_commands(path: Path) -> list[tuple[str, str]]:
    """Links to whole pages whose text is a command's name, with their target."""
    text = FENCE.sub("", path.read_text("utf-8"))
    links = re.findall(r"\[`?(?:bethink )?([a-z]+)`?\]\(([^)\s#]+\.md)(?:#[^)]*)?\)", text)
    return [(word, target) for word, target in links if word in COMMANDS]


@pytest.mark.parametrize(
    ("path", "word", "target"),
    [(path, *link) for path in PAGES for link in name_commands(path)],
    ids=lambda one: name_of(one) if isinstance(one, Path) else one,
)
def test_a_link_named_after_a_command_leads_to_a_page_about_it(path, word, target) -> None:
    assert re.search(rf"bethink {word}\b", (path.parent / target).read_text("utf-8"))


def test_pages_are_listed_and_the_targets_and_tests_that_they_name_exist() -> None:
    contents, docs = read("docs/README.md"), ROOT / "docs"
    pages = [path.relative_to(docs).as_posix() for path in docs.rglob("*.md")]
    assert [page for page in pages if f"]({page})" not in contents] == ["README.md"]
    targets = set(re.findall(r"^([a-z][a-z-]*):", read("Makefile"), re.MULTILINE))
    shown = re.compile(r"(?:`|^\$ |^)make ([a-z][a-z-]*)\b", re.MULTILINE)
    named = {word for path in PAGES for word in shown.findall(path.read_text("utf-8"))}
    assert named - targets == set()
    rows = re.findall(r"^\| \d{3}-.*$", read("docs/seeds.md"), re.MULTILINE)
    named = [re.findall(r"`(tests/\w+\.py)::(test_\w+)`", row) for row in rows]
    assert len(rows) > 300 and all(named)
    tests = {(file, test) for held in named for file, test in held}
    assert {(file, test) for file, test in tests if f"def {test}(" not in read(file)} == set()


def test_nothing_outside_the_repository_is_named() -> None:
    """Evaluation sets may lie beside the repository, and pages about benchmarks say so."""
    folders = [ROOT / name for name in ("src", "docs", "bench", "tests", ".ci")]
    every = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    files = {path for path in every if path.suffix in (".py", ".md", ".sql", "")}
    found = []
    for path in {*files, *PAGES, ROOT / "Makefile", ROOT / "pyproject.toml"} - {Path(__file__)}:
        words = FORBIDDEN.findall(text := path.read_text("utf-8"))
        words += REGISTRIES.findall(text) if "tests" not in path.parts else []
        found += [f"{name_of(path)}: {word}" for word in words]
    assert sorted(found) == []


def test_the_changelog_registries_and_the_container_are_of_this_version() -> None:
    versions = re.findall(r"^## \[?(\d+\.\d+\.\d+)", read("CHANGELOG.md"), re.MULTILINE)
    assert __version__ in versions
    server, bundle = map(json.loads, map(read, ("server.json", "packaging/mcpb/manifest.json")))
    assert server["version"] == server["packages"][0]["version"] == bundle["version"] == __version__
    needs = read("packaging/mcpb/pyproject.toml")
    assert f'version = "{__version__}"' in needs and f"bethink[mcp]=={__version__}" in needs
    assert f"mcp-name: {server['name']}" in read("README.md")
    command = json.loads(read(".mcp.json"))["mcpServers"]["bethink"]
    assert command == {"command": "bethink", "args": ["mcp"]}
    # What a linter cannot know: the commands exist, and the server refuses an open address without a token.
    recipe = read("packaging/docker/Dockerfile")
    final = recipe.rpartition("FROM ")[2]
    assert re.search(r"^USER 10001$", final, re.MULTILINE) and "HEALTHCHECK" in final
    assert "/readyz" in final and 'CMD ["serve", "--host", "0.0.0.0", "--insecure-bind"]' in final
    services = yaml.safe_load(read("packaging/docker/compose.yaml"))["services"]
    assert services["bethink"]["ports"] == ["127.0.0.1:7377:7377"]
    assert services["bethink"]["environment"]["BETHINK_DATABASE"].startswith("postgresql://server@")
    assert services["tables"]["command"][0] in COMMANDS
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", recipe, re.MULTILINE)
    assert all((ROOT / name).exists() for names in copied for name in names.split())


def measure(files) -> float:
    sizes = [one.stat().st_size for one in files if one.suffix != ".pyc" and one.is_file()]
    return sum(sizes) / 1e6


def test_a_base_installation_stays_as_small_as_it_is() -> None:
    """Megabytes of everything that the package needs without extras. What is not needed by all belongs into an extra."""
    left, seen, total = ["bethink"], set(), measure(SOURCE.rglob("*"))
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        found = distribution(name)
        needed = [Requirement(wanted) for wanted in found.requires or ()]
        without = {"extra": ""}
        left += [one.name for one in needed if not one.marker or one.marker.evaluate(without)]
        if name != "bethink":
            total += measure(Path(str(found.locate_file(file))) for file in found.files or ())
    assert not seen & {"mcp", "starlette", "uvicorn", "tree-sitter", "psycopg", "sympy", "torch"}
    assert total < 210, f"{total:.0f} MB: {sorted(seen)}"
