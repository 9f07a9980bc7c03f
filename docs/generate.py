"""Writes docs/reference from the code itself, so that it cannot fall behind: help, settings, schema, JSON, Python and errors;
and three parts of pages that are otherwise written by hand: the formula of relevance, the table of intents and that of the commands
for agents.

    python docs/generate.py           write the pages
    python docs/generate.py --check   write nothing; exit 1 if a page is out of date

The pages are the same on every supported Python, on every machine and at every time of day: ids, times, sizes and speeds in the examples are replaced by fixed ones.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT / "src"))

from bethink import __version__, errors, model  # noqa: E402
from bethink import api as memories  # noqa: E402
from bethink.app import cli as commands  # noqa: E402
from bethink.app.cli.main import main as run_command  # noqa: E402
from bethink.app.cli.parser import render_help  # noqa: E402
from bethink.app.http.api import BASE, ENDPOINTS, Endpoint, returns_lines  # noqa: E402
from bethink.app.mcp.tools import PROMPTS, TOOLS  # noqa: E402
from bethink.app.operation import OPERATIONS, Operation, Parameter, describe_type  # noqa: E402
from bethink.config import PERSONAL_SETTINGS, SETTINGS, Config  # noqa: E402
from bethink.recall import features, rank, signals  # noqa: E402
from bethink.recall.rank import PROFILES  # noqa: E402
from bethink.schema import json_fields  # noqa: E402
from bethink.store import base  # noqa: E402
from bethink.store.sqlite import MIGRATIONS  # noqa: E402

MADE = "<!-- Written by docs/generate.py; change the code or that file, then run `make docs`. -->"
WIDTH = 100


class Outdated(Exception):
    """Something in the code has no words here yet."""


def page(title: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", MADE, *(part.strip("\n") for part in parts)]) + "\n"


def fenced(text: str, language: str = "text") -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def describe_all(
    words: Mapping[str, str], names: Sequence[str], what: str
) -> list[tuple[str, str]]:
    """Each name with its sentence. A new name without one, or a sentence without its name, stops the generator."""
    missing, gone = sorted(set(names) - set(words)), sorted(set(words) - set(names))
    if missing or gone:
        raise Outdated(
            f"docs/generate.py: {what}: no sentence for {missing}, and nothing called {gone} any more."
        )
    return [(name, words[name]) for name in names]


# The command line


EXIT_CODES = {
    "0": "done",
    "1": "could not be done, or `doctor` found a problem",
    "2": "wrong usage: an unknown option, a bad value, a bad settings file",
    "130": "stopped by Ctrl-C",
}


# Modules of operations, in the order of `bethink --help`; commands of a group stand together.
MODULES = (
    *("operations.write", "cli.write", "operations.find", "cli.edit", "cli.handoff"),
    *("cli.knowledge", "cli.transfer", "cli.rules", "operations.overview", "cli.tend"),
    *(
        "cli.share",
        "cli.shell",
        "cli.story",
        "cli.agents",
        "cli.serve",
        "cli.settings",
        "cli.connect",
    ),
)
GROUPS = ("Everyday", "Import and index", "Browse", "Serve", "Agents", "Maintenance")


def list_commands() -> list[Operation]:
    """The commands of every module, by group."""
    for module in MODULES:
        importlib.import_module(f"bethink.app.{module}")
    folders = [ROOT / "src/bethink/app" / name for name in ("cli", "operations")]
    declared = {
        f"{file.parent.name}.{file.stem}"
        for folder in folders
        for file in folder.glob("*.py")
        if "\n@operation(" in file.read_text("utf-8")
    }
    if declared != set(MODULES):
        raise Outdated(f"docs/generate.py: MODULES differs: {declared ^ set(MODULES)}.")
    found = [
        one
        for module in MODULES
        for one in OPERATIONS.values()
        if one.cli and one.function.__module__ == f"bethink.app.{module}"
    ]
    return sorted(found, key=lambda one: GROUPS.index(one.group))


def index_commands() -> dict[str, tuple[str, str, str]]:
    """Group, module and help of each command."""
    return {
        one.name: (one.group, one.function.__module__.removeprefix("bethink.app."), one.help)
        for one in list_commands()
    }


def index() -> str:
    """The module that names every command, so that `--help` loads no operation."""
    lines = [
        '"""Commands by name: group, module and help. Written by docs/generate.py; run `make docs`."""',
        "",
        "COMMANDS = {",
    ]
    for name, parts in index_commands().items():
        lines.append(f"    {json.dumps(name)}: (")
        lines += [f"        {json.dumps(part)}," for part in parts]
        lines.append("    ),")
    return "\n".join([*lines, "}", ""])


def cli() -> str:
    parts = [
        "`bethink` prints data on stdout; hints, warnings, errors and progress go to stderr. Options and words mix freely, and the"
        " options of every command may stand before the command. `bethink help COMMAND` is the same as `bethink COMMAND --help`.",
        table(("exit code", "meaning"), list(EXIT_CODES.items())),
        "Ids are shown shortened and accepted as any unique beginning. A time is a span (`90min`, `12h`, `30d`, `2w`, `6mo`, `1y`), a"
        " date, a date and time in ISO form (in your time zone if it names none), `now`, `today`, `yesterday`, `tomorrow`, a weekday (`last monday`), a month (`2026-03`), or the beginning of `last week`, `next month`, `this year`.",
        fenced(commands.render_overview(index_commands())),
    ]
    for operation in list_commands():
        with mock.patch.dict(os.environ, COLUMNS=str(WIDTH)):
            help = render_help(operation)
        ways = [f"over HTTP `{operation.http}`"] * bool(operation.http)
        ways += [f"for agents `{operation.tool}`"] * bool(operation.tool)
        also = f" Also {' and '.join(ways)}." if ways else ""
        parts += [f"## {operation.name}", f"{operation.help}.{also}", fenced(help)]
    return page("Command line", *parts)


# HTTP and MCP


def http() -> str:
    parts = [
        f"All addresses are below `{BASE}`. A request needs `Authorization: Bearer TOKEN`; `bethink token create` makes one. Every operation also"
        f" takes `project` and `container` in its address. `{BASE}/openapi.json` describes responses in full, `{BASE}/docs` shows that as a page, and"
        " errors are `application/problem+json` with `title`, `status`, `detail` and `hint`. Older names of arguments stay accepted.",
    ]
    for endpoint in ENDPOINTS.values():
        operation = endpoint.http.operation
        result = (
            "one memory per line" if returns_lines(endpoint) else endpoint.http.returns.__name__
        )
        parts += [f"## {endpoint.method} {endpoint.path}", operation.description]
        if endpoint.parameters:
            rows = [
                (*_argument(one)[:1], _place(endpoint, one), *_argument(one)[1:])
                for one in endpoint.parameters
            ]
            parts.append(table(("argument", "in", "accepts", "meaning"), rows))
        parts.append(f"Returns `{result}` with status {endpoint.status}.")
    return page("HTTP API", *parts)


def _place(endpoint: Endpoint, parameter: Parameter) -> str:
    if endpoint.in_path(parameter):
        return "path"
    return "body" if parameter in endpoint.body else "query"


def _argument(parameter: Parameter, tool: bool = False) -> tuple[str, str, str]:
    arg = parameter.arg
    required = (
        " (required)" if parameter.required else " (not listed)" if tool and arg.unlisted else ""
    )
    accepts = ", ".join(f"`{one}`" for one in arg.choices) or describe_type(parameter)
    return f"`{parameter.name}`{required}", accepts, arg.help


def mcp() -> str:
    parts = [
        "Agents call these tools of `bethink mcp`, or of a server at `/mcp`. Arguments marked *not listed* are accepted, but left out of the"
        " schema that every session pays for.",
        "## Tools",
    ]
    for tool in TOOLS.values():
        parts += [f"### {tool.name}", tool.description]
        rows: list[tuple[str, ...]] = []
        for one in tool.parameters:
            rows.append(_argument(one, tool=True))
            rows += [
                (f"`{one.name}[].{inner[0].lstrip('`')}", *inner[1:])
                for inner in (_argument(member, tool=True) for member in one.members)
            ]
        if rows:
            parts.append(table(("argument", "accepts", "meaning"), rows))
    parts.append("## Prompts")
    for prompt in PROMPTS.values():
        parts += [f"### {prompt.name}", prompt.description + "."]
        parts.append(
            table(("argument", "accepts", "meaning"), list(map(_argument, prompt.parameters)))
        )
    return page("MCP tools", *parts)


# Settings

VARIABLES = {
    "BETHINK_HOME": "Folder of the database, the models and the settings file, in place of the XDG folders.",
    "XDG_DATA_HOME": "The database and the models are in its `bethink` folder. Default `~/.local/share`.",
    "XDG_CONFIG_HOME": "The settings file is in its `bethink` folder. Default `~/.config`.",
    "BETHINK_OFFLINE": "If set, no model is ever fetched. What is installed works.",
    "BETHINK_MODEL_DIR": "A folder of ready models, looked into before the data folder and never written.",
    "OPENAI_API_KEY": 'The key for `embedding = "http"`. Sent to `embedding_url` and nowhere else.',
    "OPENAI_TOKEN_MEMORY_EMBEDDINGS": "The same, looked at when the first is not set.",
    "BETHINK_TOKEN": "The token for a team's server, for `sync`.",
    "BETHINK_DEBUG": "If set, an error shows where it came from.",
    "BETHINK_LOG": "Level of the MCP server's log on stderr: debug, info, warning or error.",
    "BETHINK_HOOKS": "Set to `off`, hooks do nothing. The language model's own command is started so, that nothing of Bethink runs inside it.",
    "BETHINK_HELPER_IDLE": "Seconds without a prompt after which the background helper of hooks ends. Default 900.",
    "XDG_RUNTIME_DIR": "The helper puts its socket there if the path of the data folder is too long for one.",
    "NO_COLOR": "If set, no colour on a terminal. `TERM=dumb` does the same.",
    "FORCE_COLOR": "If set, colour also where no terminal is seen, as in the log of a CI; `0` means none. `NO_COLOR` wins.",
    "VISUAL": "The editor of `edit` and `open`.",
    "EDITOR": "The same, looked at when the first is not set.",
    "COLUMNS": "Width of the text output, from 40 to 120.",
}


def settings() -> str:
    rows = [
        (
            f"`{key}`",
            _shown(Config._field_defaults[key]),
            f"`BETHINK_{key.upper()}`",
            _accepted(key),
            setting.help,
        )
        for key, setting in SETTINGS.items()
    ]
    return page(
        "Settings",
        "Later layers win: the defaults below, your file, the project's file, the environment, the command line. `bethink config` shows"
        " every value and the layer it came from.",
        table(
            ("layer", "where"),
            [
                (
                    "your file",
                    "`config.toml` in `$BETHINK_HOME`, else in `$XDG_CONFIG_HOME/bethink`, else in `~/.config/bethink`",
                ),
                (
                    "the project's file",
                    "`.bethink/config.toml` in the project's root, shared by all its worktrees",
                ),
                (
                    "the environment",
                    "`BETHINK_` and the key in capitals, such as `BETHINK_LIMIT=5`",
                ),
                (
                    "the command line",
                    "`--database`, `--mode`, `--profile`, `--limit`, `--threshold`, `--max-tokens`",
                ),
            ],
        ),
        "Both files are TOML with the keys at the top level. An unknown key or a bad value in a file is an error that names the file"
        " and the key. A bad value in the environment is a warning, and is ignored. `bethink config KEY VALUE` changes your file,"
        " with `--project-file` the project's; other lines and comments stay.",
        fenced(
            "bethink config                            # all settings\nbethink config limit 5                    # change yours\n"
            "bethink config limit 5 --project-file     # change the project's",
            "sh",
        ),
        table(("key", "default", "environment", "accepts", "what it is for"), rows),
        "## What a project's file may not set",
        f"{', '.join(f'`{key}`' for key in PERSONAL_SETTINGS[:-1])} and `{PERSONAL_SETTINGS[-1]}`. A project's file comes with a cloned repository, and these"
        " say where memories, questions and API keys go, what is paid for, and how long an agent waits. A project's file that holds one of them is refused.",
        "## Other environment variables",
        table(
            ("variable", "what it does"), [(f"`{name}`", text) for name, text in VARIABLES.items()]
        ),
    )


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return "`[" + ", ".join(json.dumps(part) for part in value) + "]`"
    return f"`{value}`" if value != "" else "empty"


def _accepted(key: str) -> str:
    setting, kind = SETTINGS[key], type(Config._field_defaults[key])
    if setting.choices:
        return ", ".join(f"`{choice}`" for choice in setting.choices)
    if setting.low is not None and setting.high is not None:
        return f"{'whole number' if kind is int else 'number'} from {setting.low:,.10g} to {setting.high:,.10g}"
    return {bool: "`true`, `false`", tuple: "list of strings", str: "text"}[kind]


# The database

TABLES = {
    "meta": "Facts about the database itself: the secret that salts tombstones.",
    "scopes": "Who sees a memory: `personal`, a project or a container, with its name for people and the totals that word weights need.",
    "sources": "Where memories came from: a person, a file, a transcript; a later reading of the same uri replaces the earlier one.",
    "sessions": "One conversation with an agent. Empty in this version.",
    "spans": "A topic inside a session, as a tree with line ranges. Empty in this version.",
    "spans_fts": "Derived: the full-text index of spans.",
    "memories": "The memories: text, kind, times, validity, use, source, and the hash that guards the row.",
    "memories_fts": "Derived: the full-text index of memories, which holds no copy of the text.",
    "lexeme_counts": "Derived: how many memories of a scope hold a word, by hash; the weight of a word is decided inside a scope.",
    "entities": "Named things that memories are about, once per name and type.",
    "memory_entities": "Which memory is about which entity.",
    "relations": "Edges between two memories: supersedes, builds_on, contradicts, answers, relates_to.",
    "models": "The embedding models that vectors are of, by name and revision.",
    "vectors": "Derived: one row per window of a memory's text, a scale and a signed 16-bit number per dimension.",
    "vectors_removed": "Derived: a log of deleted vectors, from which other processes learn what to drop.",
    "turns": "Hashes of messages that were taken in once: forks repeat them, and what was purged must not come back with one.",
    "span_vectors": "One row per topic and model: the vector of its name and summary.",
    "span_vectors_removed": "A log of removed span vectors, as `vectors_removed`.",
    "embedding_cache": "Derived: vectors by text hash and model, so that a text is embedded once.",
    "history": "Every change of a memory: when, by whom, what it was before and after.",
    "tombstones": "Salted hashes of purged texts, so that they are not taken in again.",
}


def schema() -> str:
    scripts = {path.name: path.read_text("utf-8") for path in sorted(MIGRATIONS.glob("*.sql"))}
    names = re.findall(r"CREATE (?:VIRTUAL )?TABLE (\w+)", "\n".join(scripts.values()))
    return page(
        "Database schema",
        "One SQLite file. Migrations are numbered and never changed once released; the missing ones are applied when a database is opened,"
        " each in a transaction of its own. `PRAGMA user_version` is the number of the newest one applied. What is marked derived can be"
        " made anew from the texts by `bethink reindex --full`. Reading the file with another SQLite tool is safe while no Bethink"
        " process uses it; writing to it is not supported.",
        table(
            ("table", "what it holds"),
            [(f"`{name}`", text) for name, text in describe_all(TABLES, names, "tables")],
        ),
        *(f"## {name}\n\n{fenced(text, 'sql')}" for name, text in scripts.items()),
    )


# Tables of PostgreSQL that SQLite has not, or that hold something else there.
SERVER_TABLES = {
    "tenants": "Who shares the database: name, the newest number given out, and the last seal of the audit trail.",
    "logins": "Roles that log in and may act for one person of one tenant only.",
    "words": "Derived: the words of memories as tsvector with a GIN index; each lexeme begins with its tenant and scope.",
    "span_words": "Derived: the same for topics.",
    "vectors": "Derived: one row per window of a memory's text, 32-bit floats and their scale, with HNSW indexes over half-precision numbers.",
    "span_vectors": "One row per topic, model and window: the vector of its name and summary.",
    "vector_totals": "Derived: how many vectors a scope has and their sum, from which a question's mean cosine is read.",
    "audit": "Who changed what, one row per write: only ever added to, numbered, timed and sealed by the database.",
    "tokens": "The tokens of a team's people, by their hash: tenant, person, projects, until when.",
    "scopes": "As in SQLite; what is personal is one scope for each person, its owner.",
    "migrations": "Which of the scripts below were applied, and when.",
}


def server_schema() -> str:
    folder = MIGRATIONS.parent / "postgres"
    scripts = {path.name: path.read_text("utf-8") for path in sorted(folder.glob("*.sql"))}
    names = ["migrations", *re.findall(r"CREATE TABLE bethink\.(\w+)", "\n".join(scripts.values()))]
    known = {name: text for name, text in TABLES.items() if name in names} | SERVER_TABLES
    return page(
        "PostgreSQL schema",
        "The schema `bethink` of a PostgreSQL database with pgvector, for teams. Every key leads with the tenant; row-level security is"
        " forced on every table and shows nobody a row but those of the tenant that the transaction acts for. The large tables are"
        " partitioned by a hash of the tenant. Missing migrations are applied by the first owner who opens the database, each in a"
        " transaction of its own.",
        table(
            ("table", "what it holds"),
            [
                (f"`{name}`", text)
                for name, text in describe_all(known, names, "tables of PostgreSQL")
            ],
        ),
        *(f"## {name}\n\n{fenced(text, 'sql')}" for name, text in scripts.items()),
    )


# JSON

FIELDS = {
    "score": "Only in `search` and `recall`: 0 to 1, comparable inside one answer.",
    **{name: f"{info.field.help}." for name, info in json_fields().items()},
    "related": 'Only for hits with relations: `{"type", "direction", "id", "summary"}`; `out` points away from this memory.',
    "why": "Only with `search --explain`: what each signal said.",
}
ID = "01a1ddc0-0000-7000-8000-{:012d}"
MOMENT = "2026-11-15T09:30:00.000Z"
FIXED = {
    "database_bytes": 196608,
    "bytes_per_memory": 39322,
    "bytes": 196608,
    "p50_ms": 1.5,
    "p95_ms": 2.1,
    "cpu_ms": 1.9,
    "documents_per_second": 420.0,
}
VERSIONS = {
    "python": f"Python 3.13.0, Bethink {__version__}",
    "apsw": "3.51.3.0",
    "numpy": "2.3.4",
    "onnxruntime": "1.23.2",
    "sqlite": "SQLite 3.51.3",
    "disk": "83.5 GB free",
}
NEAR = "I prefer small pull requests with one commit in each of them"
SECRET = "The staging login is <private>ops / hunter2</private>"
NOTES: tuple[tuple[str, ...], ...] = (
    (
        "add",
        "The orders service keeps its data in MySQL",
        "--kind",
        "architecture",
        "--importance",
        "7",
        "--tag",
        "orders",
    ),
    (
        "add",
        "The orders service moved from MySQL to PostgreSQL",
        "--kind",
        "decision",
        "--metadata",
        "ticket=OPS-7",
    ),
    (
        "add",
        "I prefer small pull requests with one commit each",
        "--personal",
        "--expires",
        "2099-01-01",
    ),
)


class Stage:
    """A throw-away home and project in which real commands run, and what they print with ids and times made constant."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ids: dict[str, str] = {}
        self.began = datetime.now(UTC)
        (folder / "shop").mkdir()

    def run(self, *words: str, code: int = 0) -> Any:
        out, talk = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(talk):
            ended = run_command([*words, "--json", "--project", str(self.folder / "shop")])
        if ended != code:
            raise Outdated(
                f"`bethink {' '.join(words)}` ended with {ended}, not {code}: {talk.getvalue()}"
            )
        return json.loads(out.getvalue())

    def fixed(self, value: Any, name: str = "") -> Any:
        """The value with everything that differs from run to run replaced."""
        if isinstance(value, dict):
            if value.get("check") in VERSIONS:
                value = {**value, "message": VERSIONS[value["check"]]}
            return {
                self._text(key): self.fixed(item, key if name != "why" else "score")
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self.fixed(item, name) for item in value]
        if isinstance(value, str):
            return self._text(value)
        if name in FIXED:
            return FIXED[name]
        # Two digits: the last ones may differ with the machine's arithmetic.
        return (
            round(value, 2)
            if isinstance(value, float) and name in ("score", "similarity", "why")
            else value
        )

    def _text(self, text: str) -> str:
        text = re.sub(
            r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
            lambda found: self.ids.setdefault(found[0], ID.format(len(self.ids) + 1)),
            text,
        )
        text = re.sub(r"\b(project|container):[0-9a-f]{16}", r"\1:4b4ac4e6534e3d15", text)
        text = re.sub(
            r"\d{4}-\d\d-\d\dT[\d:.]+Z",
            lambda found: MOMENT if self._recent(found[0]) else found[0],
            text,
        )
        return text.replace(str(self.folder / "home"), "/home/ada/.local/share/bethink").replace(
            str(self.folder), "/home/ada"
        )

    def _recent(self, text: str) -> bool:
        return abs(datetime.fromisoformat(text) - self.began) < timedelta(days=1)


@contextmanager
def stage() -> Iterator[Stage]:
    keep = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("BETHINK_", "XDG_"))
    }
    with tempfile.TemporaryDirectory(prefix="bethink-docs-") as folder:
        own = {
            "BETHINK_HOME": str(Path(folder) / "home"),
            "BETHINK_EMBEDDING": "hashing",
            "BETHINK_OFFLINE": "1",
        }
        with mock.patch.dict(os.environ, {**keep, **own}, clear=True):
            yield Stage(Path(folder).resolve())


def shown(value: Any) -> str:
    return fenced(json.dumps(value, indent=2, ensure_ascii=False), "json")


def json_objects() -> str:
    with stage() as here:
        return page("JSON", *_json_parts(here))


def _json_parts(here: Stage) -> Iterator[str]:
    yield (
        "Every command takes `--json`. These objects are stable: keys are not renamed or taken away within a major version, new ones may"
        " come. What could not be done prints nothing on stdout, and says [why as JSON](errors.md#as-json) on stderr. The examples are real output"
        ' with ids, times, sizes and speeds made constant. They were made with `embedding = "hashing"`, so a real model\'s scores differ.'
    )
    yield from _written(here)
    yield from _found(here)
    yield from _looked_at(here)
    yield from _others(here)


def _written(here: Stage) -> Iterator[str]:
    added, changed, *_ = [here.run(*words) for words in NOTES]
    yield "## add"
    yield (
        "`status` is `added`, `duplicate` (the same text), `near_duplicate`, or `reworded` (an idea of a conversation has these words now). For all but the first, `id` and `duplicate_of` name the memory"
        " that is known already, and nothing was stored. `similarity` is the cosine, 1 for the same text. `supersedes` lists the memories"
        " that this one replaced. `redactions` counts private and secret parts that were taken out. Keys without a value are left out."
    )
    for value in (
        added,
        changed,
        here.run("add", NOTES[0][1]),
        here.run("add", NEAR, "--personal"),
        here.run("add", SECRET),
    ):
        yield shown(here.fixed(value))


def _found(here: Stage) -> Iterator[str]:
    answer = here.fixed(
        here.run("search", "where did the orders service move?", "--limit", "1", "--explain")
    )
    yield "## search"
    yield "An array, best first. Each element is a memory with its `score`."
    yield shown(answer)
    yield "The fields of a memory, the same in every command that shows one:"
    yield table(
        ("field", "what it holds"),
        [
            (f"`{name}`", text)
            for name, text in describe_all(FIELDS, list(answer[0]), "fields of a memory")
        ],
    )
    yield "What `why` may hold. A signal that had nothing to say is left out."
    yield table(
        ("signal", "what it is"),
        [(f"`{name}`", text) for name, text in features.list_features(()).items()],
    )
    yield "`search --dual --json` prints the object of `recall`."
    yield "## list"
    yield "An array of memories, the newest first unless `--order` says otherwise. `get` and `export` print the same; `export` adds `source_type`, `position` and `relations`, which `import` reads."
    yield shown(here.fixed(here.run("list", "--personal")))
    yield "## recall"
    yield (
        "An index of the matches, and the best of them in full, within the token budget; an index line counts only where the text is not there."
        " `total_count` counts every match, `has_more` says whether some are on the next page, which begins at the offset `next`, `tokens_used` is an estimate of all texts, relations and topics. A text that did not fit is cut and marked"
        ' `"truncated": true`. `hints` says, for example, that only words were searched. `topics` groups the details by the topic of the conversation they come from.'
    )
    value = here.fixed(
        here.run("recall", "which database does the orders service use?", "--max-tokens", "120")
    )
    for detail in value["details"]:
        for name in set(detail) - {
            "id",
            "score",
            "kind",
            "content",
            "summary",
            "source",
            "created_at",
            "related",
        }:
            del detail[name]
    yield shown(value)
    yield "The objects in `details` have every field of a memory; most are left out here."


def _looked_at(here: Stage) -> Iterator[str]:
    yield "## stats"
    yield (
        "`memories` and `deleted` count what is and what is not visible; `by_scope` names scopes as memories do, and `scope_names` says"
        " what people call them. `vectors` counts by model, `unembedded` counts memories without any vector, `cached` the embedding cache."
    )
    yield shown(here.fixed(here.run("stats")))
    yield "## doctor"
    yield 'An array of findings, some of them shown here. The exit code is 1 if any has `"ok": false`; its `fix` says how to mend it.'
    with mock.patch.dict(os.environ, {"BETHINK_EMBEDDING": "none"}):
        here.run("add", "Written while no model was set")
    findings = here.fixed(here.run("doctor", code=1))
    yield shown(
        [
            finding
            for finding in findings
            if finding["check"] in ("python", "full-text index", "model", "vectors of the model")
        ]
    )
    yield "## bench"
    yield "An array with one object per set and mode. The page on [evaluation sets](bench.md) says what the measures are."
    yield shown(
        here.fixed(here.run("bench", str(_evaluation_set(here.folder)), "--mode", "hybrid"))
    )


def _evaluation_set(folder: Path) -> Path:
    made = folder / "tiny"
    made.mkdir()
    texts = (
        "Users sign in with a magic link",
        "Orders live in PostgreSQL",
        "Deploys start from main",
    )
    questions = (("how do users sign in?", "d0"), ("where do orders live?", "d1"))
    (made / "meta.json").write_text(json.dumps({"name": "tiny"}), "utf-8")
    (made / "corpus.jsonl").write_text(
        "".join(json.dumps({"id": f"d{at}", "text": text}) + "\n" for at, text in enumerate(texts)),
        "utf-8",
    )
    rows = (
        {"id": f"q{at}", "query": query, "relevant": [wanted]}
        for at, (query, wanted) in enumerate(questions)
    )
    (made / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return made


def _others(here: Stage) -> Iterator[str]:
    """The smaller answers, in an order in which each works."""
    first, second = (
        one["id"]
        for one in here.run(
            "list", "--include-superseded", "--order", "oldest", "--kind", "architecture,decision"
        )
    )
    runs: tuple[tuple[str, tuple[str, ...]], ...] = (
        ("link", ("link", second, "builds_on", first)),
        ("history", ("history", first)),
        ("forget", ("forget", second)),
        ("config", ("config", "limit")),
        ("config KEY VALUE", ("config", "limit", "5")),
        ("model list", ("model", "list")),
        ("reindex", ("reindex",)),
        ("backup", ("backup", str(here.folder / "copy.db"))),
        ("sync", ("sync", "--with", str(here.folder / "team.db"), "--as", "shop")),
        ("reset", ("reset", "--scope", "personal", "--yes")),
    )
    yield "## The other commands"
    yield (
        "`update`, `restore` and `vote` print the changed memory. `config` without a key prints an array of them. `completion` prints"
        ' `{"shell", "script"}`, and `demo` an array of `{"command", "output", "exit"}`. `import` of an export prints `{"added", "known", "merged", "believed", "edited", "purged", "left_out", "redactions", "relations", "format", "kinds", "left", "dry_run"}`, with --undo `{"removed", "kept", "forgotten", "doubted", "dry_run"}`.'
    )
    for name, words in runs:
        value = here.run(*words)
        yield f"`{name}`" + (", cut after the first" if name == "model list" else "")
        yield shown(here.fixed(value[:1] if name == "model list" else value))


# Python

UNTOLD = {
    "scope": "The scope that `add` writes to: the project's, or the container's.",
    "every_scope": "All scopes of the database, for a filter over every project.",
    "close": "Closes the database. `with` does it for you.",
    "unlink": "Takes a relation away, and what it had brought about: a superseded memory is valid again, an answered question open.",
    "one": "The one memory of an id or unique prefix. Does not count as a use.",
    "list": "Memories without a question, by `created`, `oldest`, `importance`, `used`, `useful` or `updated`.",
    "history": "Every change of a memory, the oldest first.",
    "relations": "The relations that a memory is an end of.",
    "stats": "Counts of what is stored, in every scope or in some.",
    "export": "Every memory that passes the filter, the oldest first, one at a time. Without a filter forgotten ones are included.",
    "check": "What is wrong with the database, if anything is. `deep` reads every page and every memory.",
    "backup": "Copies the whole database into a new file while others go on using it. Returns its bytes.",
    "reset": "Forgets everything in these scopes, or in all, beyond recovery. Returns how many memories that were.",
}
SHAPES: tuple[type, ...] = (
    model.Outcome,
    model.Receipt,
    model.Answer,
    model.Hit,
    model.Memory,
    model.Entity,
    model.Relation,
    model.Event,
    model.Filter,
    model.Passage,
    model.Source,
    base.Overview,
    base.Problem,
)
MEANT = {
    "Answer": "What a search returns.",
    "Hit": "One found memory.",
    "Memory": "A stored memory. `path` is the file it came from, if it came from one.",
    "Entity": "A named thing: " + ", ".join(model.ENTITY_TYPES) + ".",
    "Relation": "An edge between two memories: " + ", ".join(model.RELATIONS) + ".",
    "Receipt": "What a write did. `added` counts the outcomes that are new.",
    "Overview": "What `stats` returns.",
}


def python() -> str:
    members = [
        (name, value) for name, value in vars(memories.Bethink).items() if not name.startswith("_")
    ]
    parts = [
        "`from bethink import Bethink`. Every surface calls this one class; the [guide](../guides/python.md) shows it at work. What cannot"
        " be done raises an error of the [tree](errors.md). Methods are synchronous, and an object may be used from several threads.",
        "## Memory",
        inspect.cleandoc(memories.Bethink.__doc__ or "").split(">>>")[0].strip(),
        fenced(_signature("Memory", memories.Bethink.__init__), "python"),
    ]
    for name, value in members:
        function: Any = (
            value.fget
            if isinstance(value, property)
            else value.func
            if isinstance(value, cached_property)
            else value
        )
        said = _sentences(name, function)
        parts += [f"### {name}", said]
        parts.append(
            fenced(
                f"{name}: {_plain(function.__annotations__['return'])}"
                if isinstance(value, property | cached_property)
                else _signature(name, function),
                "python",
            )
        )
    parts.append("## Values")
    parts.append(
        "Immutable named tuples of `bethink.model`, `Overview` and `Problem` of `bethink.store.base`. Times are aware datetimes in UTC."
    )
    for shape in SHAPES:
        parts += [f"### {shape.__name__}", _meaning(shape), fenced(_fields(shape), "python")]
    return page("Python", *parts)


def _sentences(name: str, function: Callable[..., Any]) -> str:
    said = inspect.getdoc(function) or UNTOLD.get(name)
    if not said:
        raise Outdated(f"docs/generate.py: Bethink.{name} has no docstring.")
    return " ".join(said.split())


def _meaning(shape: type) -> str:
    own = shape.__doc__ or ""
    return MEANT.get(shape.__name__) or (
        "" if own.startswith(f"{shape.__name__}(") else " ".join(own.split())
    )


def _signature(name: str, function: Callable[..., Any]) -> str:
    """One line if it fits, else a parameter per line. Annotations are source text, so they read the same everywhere."""
    found = inspect.signature(function)
    written = []
    keyword_only = False
    for parameter in [one for one in found.parameters.values() if one.name != "self"]:
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            if not any(one.kind is one.VAR_POSITIONAL for one in found.parameters.values()):
                written.append("*")
        stars = (
            "*"
            if parameter.kind is parameter.VAR_POSITIONAL
            else "**"
            if parameter.kind is parameter.VAR_KEYWORD
            else ""
        )
        default = (
            "" if parameter.default is parameter.empty else f" = {_literal(parameter.default)}"
        )
        written.append(f"{stars}{parameter.name}: {_plain(parameter.annotation)}{default}")
    result = (
        ""
        if found.return_annotation in ("None", found.empty)
        else f" -> {_plain(found.return_annotation)}"
    )
    line = f"{name}({', '.join(written)}){result}"
    return (
        line
        if len(line) <= WIDTH
        else f"{name}(\n" + "".join(f"    {one},\n" for one in written) + f"){result}"
    )


def _fields(shape: Any) -> str:
    lines = []
    for name in shape._fields:
        default = shape._field_defaults.get(name, inspect.Parameter.empty)
        declared = shape.__annotations__[name]
        about = [f"# {field.help}" for field in getattr(declared, "__metadata__", ())]
        line = f"{name}: {_plain(declared.__origin__ if about else declared)}" + (
            "" if default is inspect.Parameter.empty else f" = {_literal(default)}"
        )
        whole = "  ".join([line, *about])
        lines += [whole] if len(whole) <= 100 else [*about, line]  # as `ruff format` leaves it
    return "\n".join(lines)


def _literal(value: Any) -> str:
    """A default as the source has it. `ruff format` looks at Python in pages too, and wants double quotes."""
    if value is model.NOTHING:
        return "{}"
    return "…" if callable(value) else json.dumps(value) if isinstance(value, str) else repr(value)


def _plain(annotation: Any) -> str:
    """An annotation as it is written in the source."""
    if isinstance(annotation, type) and not hasattr(annotation, "__args__"):
        return annotation.__name__
    text = str(getattr(annotation, "__forward_arg__", annotation))
    return re.sub(r"\b(?:builtins|types|typing|datetime|collections\.abc|bethink\.\w+)\.", "", text)


# Errors


def error_page() -> str:
    said = dict(re.findall(r"^[ │├└─]*(\w+) {2,}([^;\n]+)", errors.__doc__ or "", re.MULTILINE))
    lines = list(_tree(errors.BethinkError, "", ""))
    room = max(len(line) for line, _ in lines) + 2
    text = "\n".join(
        f"{line:<{room}}{kind.exit_code}  {said[kind.__name__]}" for line, kind in lines
    )
    return page(
        "Errors",
        "Everything that can go wrong is one of these, from the command line and from Python alike. `message` is a full sentence with the"
        " value in it; `hint` names the next thing to type, or is None. The number is the exit code of the command line.",
        fenced(text),
        "`except BethinkError` catches them all. They are in `bethink.errors`. On the command line an error is two lines on stderr,"
        " without a traceback unless `BETHINK_DEBUG` is set:",
        fenced(_example()),
        "## As JSON",
        "With `--json` an error is one line of JSON instead, the last on stderr; stdout stays empty, and the exit code is the same. `type` is"
        " a name of the tree above, or that of an error of Python; `hint` may be null.",
        fenced(_example("--json")),
        table(("exit code", "meaning"), list(EXIT_CODES.items())),
    )


def _tree(
    kind: type[errors.BethinkError], lead: str, below: str
) -> Iterator[tuple[str, type[errors.BethinkError]]]:
    yield lead + kind.__name__, kind
    children = [child for child in kind.__subclasses__() if child.__module__ == errors.__name__]
    for child in children:
        last = child is children[-1]
        yield from _tree(
            child, below + ("└── " if last else "├── "), below + ("    " if last else "│   ")
        )


def _example(*options: str) -> str:
    talk = io.StringIO()
    with stage() as here, redirect_stderr(talk):
        run_command(
            [
                "add",
                "We deploy on Fridays",
                "--importance",
                "11",
                "--project",
                str(here.folder),
                *options,
            ]
        )
    typed = " ".join(["--importance 11", *options])
    return f'$ bethink add "We deploy on Fridays" {typed}\n{talk.getvalue()}'


# Parts of pages

INTENTS = {
    "relevance": "finding; the default",
    "continuity": "continuing earlier work",
    "fact_check": "statements that were confirmed",
    "frequent": "what is used and voted for",
    "associative": "ideas around a topic",
    "explore": "something unexpected",
    "balanced": "relevance tempered by importance",
}


def intents() -> str:
    rows = []
    for name, purpose in describe_all(INTENTS, list(PROFILES), "intents"):
        chosen = PROFILES[name]
        weights = (f"{value:g}" if value else "" for value in chosen[:5])
        rows.append(
            (f"`{name}`", *weights, f"{chosen.jitter * 100:g} %" if chosen.jitter else "", purpose)
        )
    return table(("intent", *next(iter(PROFILES.values()))._fields[:5], "chance", "for"), rows)


def formula() -> str:
    curve = rank.Profile()
    weights = ((one.name, one.weight) for one in signals.SIGNALS)
    terms = " + ".join(name if weight == 1 else f"{weight:g} · {name}" for name, weight in weights)
    best, background = "b1", f"b{signals.BACKGROUND_RANK}"
    return fenced(
        f"""
x          = {terms}
relevance  = 1 / (1 + e^(−{curve.steepness:g} · (x − {curve.middle:g})))

meaning    = {signals.STRETCH:g} · (cosine − m) / (1 − m)
m          = (mean cosine of the scope · n + the model's usual mean · {signals.PRIOR_MEMORIES}) / (n + {signals.PRIOR_MEMORIES})

words      = max(0, bm25 − {signals.BACKGROUND_SHARE:g} · {background}) / {best} · (1 − w + w · coverage)
w          = {signals.COVERAGE_LONG:g} where the average memory has {signals.LONG_MEMORY:g} words or more, {signals.COVERAGE_SHORT:g} where it has {signals.SHORT_MEMORY:g} or fewer
{best}, {background}    = the best bm25 among the candidates, and the one at place {signals.BACKGROUND_RANK}
coverage   = share of the question's word weight that the memory holds

pairs      = share of the question's neighbouring words that are adjacent in the memory, by weight
topic      = {signals.TOPIC_WEIGHT:g} · how well the topic of its conversation fits
neighbours = {signals.NEIGHBOUR_WEIGHT:g} · (the best neighbour's x − the median x); two places away counts half
recent     = {signals.RECENT_WEEKS:g} · e^(−age / {signals.FADE_WEEKS / 86400:g} days) + {signals.RECENT_HOURS:g} · e^(−age / {signals.FADE_HOURS / 3600:g} hours)
""".strip()
    )


def permissions() -> str:
    """The table of the commands that an agent may run."""
    by_right: dict[str, list[str]] = {"read": [], "append": [], "person": []}
    more: dict[str, list[str]] = {"read": [], "person": []}
    for name in commands.COMMANDS:
        operation = OPERATIONS[name]
        by_right[operation.agents].append(f"`{name}`")
        options = {option: option.replace("_", "-") for option in operation.person_with}
        positional = {one.name for one in operation.parameters("cli") if one.arg.positional}
        more["person"] += [
            f"`{name} {option.upper()}`" if option in positional else f"`{name} --{written}`"
            for option, written in options.items()
        ]
        more["read"] += [f"`{name} --{one.replace('_', '-')}`" for one in operation.harmless]
    rows = [
        ("yes", [*by_right["read"], *more["read"]]),
        ("yes, as the agent's word", by_right["append"]),
        ("refused", [*by_right["person"], *more["person"]]),
    ]
    lines = [f"| {' '.join(names)} | {right} |" for right, names in rows]
    return "\n".join(["| commands | for agents |", "| --- | --- |", *lines])


def within(page: str, part: str, text: str) -> str:
    """A page with the text between `<!-- part: … -->` and `<!-- end -->` made anew."""
    old = (DOCS / page).read_text("utf-8")
    found = re.search(rf"<!-- {part}: [^\n]*-->\n(.*?)<!-- end -->", old, re.DOTALL)
    if not found:
        raise Outdated(f"docs/{page} has no place for the {part}.")
    return f"{old[: found.start(1)]}\n{text}\n\n{old[found.end(1) :]}"


PAGES: dict[str, Callable[[], str]] = {
    "../src/bethink/app/cli/index.py": index,
    "reference/cli.md": cli,
    "reference/http.md": http,
    "reference/mcp.md": mcp,
    "reference/settings.md": settings,
    "reference/schema.md": schema,
    "reference/schema-postgresql.md": server_schema,
    "reference/json.md": json_objects,
    "reference/python.md": python,
    "reference/errors.md": error_page,
    "concepts/recall.md": lambda: within("concepts/recall.md", "formula", formula()),
    "guides/agents.md": lambda: within("guides/agents.md", "commands", permissions()),
    "guides/searching.md": lambda: within("guides/searching.md", "intents", intents()),
}


def outdated() -> list[str]:
    """The pages that no longer say what the code does."""
    return [
        name
        for name, make in PAGES.items()
        if not (DOCS / name).is_file() or (DOCS / name).read_text("utf-8") != make()
    ]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Write what docs/ says about the code from the code."
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if a page is out of date"
    )
    args = parser.parse_args(argv)
    try:
        old = outdated()
        if args.check:
            sys.stderr.writelines(f"docs/{name} is out of date; run `make docs`.\n" for name in old)
            return 1 if old else 0
        for name in old:
            (DOCS / name).write_text(PAGES[name](), "utf-8")
            sys.stdout.write(f"wrote docs/{name}\n")
    except Outdated as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
