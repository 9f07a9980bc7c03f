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

from bethink import __version__, config, model, plugins
from bethink.agents.agent import Agent
from bethink.agents.install import list_connectable
from bethink.app.cli import COMMANDS
from bethink.app.cli.console import load_operation
from bethink.app.cli.main import main
from bethink.app.cli.parser import list_parameters, name_flags, name_negative
from bethink.embed import base
from bethink.embed.models import KNOWN, LocalModel
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


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_in_the_reference(command: str) -> None:
    assert f"\n## {command}\n" in read("docs/reference/cli.md")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_used_in_a_guide(command: str) -> None:
    assert re.search(rf"bethink {command}\b", "".join(path.read_text() for path in GUIDES))


VARIABLE = re.compile(r"\b(?:BETHINK|OPENAI|XDG)_[A-Z_]*[A-Z]\b")
NAMED_VARIABLES = {
    name for path in SOURCE.rglob("*.py") for name in VARIABLE.findall(path.read_text("utf-8"))
}
SETTING_VARIABLES = {f"BETHINK_{key.upper()}" for key in config.SETTINGS}


@pytest.mark.parametrize("name", sorted({*config.SETTINGS, *SETTING_VARIABLES, *NAMED_VARIABLES}))
def test_a_setting_is_in_the_reference(name: str) -> None:
    assert f"`{name}`" in read("docs/reference/settings.md")


@pytest.mark.parametrize(
    ("guide", "names"),
    [
        pytest.param("writing", model.KINDS, id="kinds"),
        pytest.param("writing", model.RELATIONS, id="relations"),
        pytest.param("writing", model.ENTITY_TYPES, id="types of entities"),
        pytest.param("searching", model.MODES, id="modes"),
        pytest.param("searching", tuple(rank.PROFILES), id="profiles"),
        pytest.param(
            "embeddings",
            ("http", "hashing", "none", "BETHINK_OFFLINE", "BETHINK_MODEL_DIR"),
            id="embeddings",
        ),
    ],
)
def test_a_guide_names_every_choice(guide: str, names: tuple[str, ...]) -> None:
    text = read(f"docs/guides/{guide}.md")
    assert [name for name in names if not re.search(rf"`{name}\b", text)] == []


# The default may be the current one, which has a mark.
@pytest.mark.parametrize("known", [*KNOWN.values()][1:], ids=lambda known: known.name)
def test_a_guide_lists_the_model(known: LocalModel) -> None:
    row = f"^{re.escape(known.name)} +{known.dimensions} +{known.window:,} +{known.licence}"
    assert re.search(row, read("docs/guides/embeddings.md"), re.MULTILINE)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_in_a_sentence_about_recall_is_that_of_the_code(number: str) -> None:
    assert number in read("docs/concepts/recall.md")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        pytest.param(features.IN_TIME, 1.25, id="a quarter more in time"),
        pytest.param(round(rank.find_relevance(0, rank.Profile()), 2), 0.15, id="least relevance"),
        pytest.param(round(rank.find_relevance(0.5, rank.Profile()), 2), 0.5, id="half relevance"),
        pytest.param(
            extract.KIND_IMPORTANCE,
            {"decision": 7, "gotcha": 7, "preference": 6, "context": 3},
            id="importance of kinds",
        ),
        pytest.param(base.WINDOW, 128, id="tokens of a window"),
    ],
)
def test_a_number_of_the_code_is_the_one_that_the_pages_have(
    value: object, written: object
) -> None:
    assert value == written


@pytest.mark.parametrize("agent", list_connectable().values(), ids=lambda agent: agent.name)
class TestAgent:
    def test_the_table_of_what_it_gets_names_it(self, agent: Agent) -> None:
        assert f"\n| {agent.title} | " in read("docs/guides/agents.md")

    def test_the_table_of_its_files_names_it(self, agent: Agent) -> None:
        assert f"\n| {agent.title}" in read("docs/guides/install.md")

    def test_its_option_is_in_the_guide(self, agent: Agent) -> None:
        assert f"`--{agent.name}`" in read("docs/guides/install.md")


@pytest.mark.parametrize("name", plugins.AGENTS.names())
def test_the_table_of_transcripts_names_the_agent(name: str) -> None:
    table = read("docs/guides/conversations.md").partition("| host | what is read |")[2]
    assert f"`{name}`" in table.partition("\n\n")[0]


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


COMMAND_LINES = [
    pytest.param(line, id=f"{name_of(path)}: {line}")
    for path in PAGES
    if path.stem != "CHANGELOG"
    for text in [path.read_text("utf-8").replace("\\\n", " ")]
    for line in dict.fromkeys(
        (
            *re.findall(r"`(bethink [^`\n]+)`", text),
            *re.findall(r"^\s*(?:\$ )?(bethink .+)", "\n".join(FENCE.findall(text)), re.MULTILINE),
        )
    )
]


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_a_command_in_a_page_has_the_options_it_is_shown_with(line: str) -> None:
    command = line.split()[1]
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", re.split(r"\s[|#&]|[;>]", line)[0])
    words = re.findall(r"(?<=\s)--?[a-z][a-z-]*", bare)
    if command not in COMMANDS:
        assert re.match(r"COMMAND|help|-|\d", command)
        return
    parameters = list_parameters(load_operation(command))
    known = {flag for one in parameters for flag in (*name_flags(one), name_negative(one))}
    assert [word for word in words if word not in known] == []


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#{1,6} (.+)$", FENCE.sub("", path.read_text("utf-8")), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in plain}


LINKS = [
    pytest.param(path, target, id=f"{name_of(path)}: {target}")
    for path in PAGES
    for text in [re.sub(r"`[^`\n]*`", "", FENCE.sub("", path.read_text("utf-8")))]
    for target in dict.fromkeys(re.findall(r"\]\(([^)\s]+)\)", text))
    if not re.match(r"[a-z]+:", target)
]


@pytest.mark.parametrize(("path", "target"), LINKS)
def test_a_link_leads_somewhere(path: Path, target: str) -> None:
    file, _, anchor = target.partition("#")
    found = (path.parent / file).resolve() if file else path
    assert found.exists() and found.is_relative_to(ROOT.resolve())
    assert not anchor or anchor in anchors(found)


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


def test_the_contents_list_every_page() -> None:
    contents, docs = read("docs/README.md"), ROOT / "docs"
    pages = [path.relative_to(docs).as_posix() for path in docs.rglob("*.md")]
    assert [page for page in pages if f"]({page})" not in contents] == ["README.md"]


def test_targets_of_make_that_pages_name_exist() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", read("Makefile"), re.MULTILINE))
    shown = re.compile(r"(?:`|^\$ |^)make ([a-z][a-z-]*)\b", re.MULTILINE)
    named = {word for path in PAGES for word in shown.findall(path.read_text("utf-8"))}
    assert named - targets == set()


SEEDS = re.findall(r"^\| (\d{3}-.*)$", read("docs/seeds.md"), re.MULTILINE)


def test_every_seed_is_in_the_table() -> None:
    assert len(SEEDS) > 300


@pytest.mark.parametrize("row", SEEDS, ids=lambda row: row.split()[0])
def test_a_seed_names_tests_that_exist(row: str) -> None:
    tests = re.findall(r"`(tests/\w+\.py)::(test_\w+)`", row)
    assert tests
    assert [test for file, test in tests if f"def {test}(" not in read(file)] == []


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


def test_the_changelog_has_this_version() -> None:
    versions = re.findall(r"^## \[?(\d+\.\d+\.\d+)", read("CHANGELOG.md"), re.MULTILINE)
    assert __version__ in versions


@pytest.fixture
def server() -> dict:
    """The entry for the registry of MCP servers."""
    return json.loads(read("server.json"))


def test_the_registry_entry_has_this_version(server: dict) -> None:
    assert (server["version"], server["packages"][0]["version"]) == (__version__, __version__)


def test_the_readme_names_the_registry_entry(server: dict) -> None:
    assert f"mcp-name: {server['name']}" in read("README.md")


def test_the_bundle_has_this_version() -> None:
    assert json.loads(read("packaging/mcpb/manifest.json"))["version"] == __version__


@pytest.mark.parametrize(
    "line", [f'version = "{__version__}"', f"bethink[mcp]=={__version__}"], ids=["own", "needed"]
)
def test_the_bundle_installs_this_version(line: str) -> None:
    assert line in read("packaging/mcpb/pyproject.toml")


def test_the_projects_own_server_is_started_by_its_command() -> None:
    command = json.loads(read(".mcp.json"))["mcpServers"]["bethink"]
    assert command == {"command": "bethink", "args": ["mcp"]}


# The container: what a linter cannot know


@pytest.fixture
def recipe() -> str:
    return read("packaging/docker/Dockerfile")


@pytest.fixture
def services() -> dict:
    return yaml.safe_load(read("packaging/docker/compose.yaml"))["services"]


@pytest.mark.parametrize(
    "line",
    [
        "USER 10001\n",
        "HEALTHCHECK",
        "/readyz",
        'CMD ["serve", "--host", "0.0.0.0", "--insecure-bind"]',
    ],
)
def test_the_container_has_the_line(recipe: str, line: str) -> None:
    assert line in recipe.rpartition("FROM ")[2]


def test_everything_that_the_container_copies_exists(recipe: str) -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", recipe, re.MULTILINE)
    assert [name for names in copied for name in names.split() if not (ROOT / name).exists()] == []


def test_the_container_listens_on_this_machine_only(services: dict) -> None:
    assert services["bethink"]["ports"] == ["127.0.0.1:7377:7377"]


def test_the_container_serves_a_shared_database(services: dict) -> None:
    database = services["bethink"]["environment"]["BETHINK_DATABASE"]
    assert database.startswith("postgresql://server@")


def test_the_container_makes_its_tables_by_a_command(services: dict) -> None:
    assert services["tables"]["command"][0] in COMMANDS


def measure(files) -> float:
    sizes = [one.stat().st_size for one in files if one.suffix != ".pyc" and one.is_file()]
    return sum(sizes) / 1e6


def test_a_base_installation_stays_as_small_as_it_is() -> None:
    """Megabytes of everything that the package needs without extras. What few people need belongs into an extra."""
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
    assert total < 242, f"{total:.0f} MB: {sorted(seen)}"
