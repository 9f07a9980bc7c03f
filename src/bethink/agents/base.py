"""The output of every transcript reader: turns, in pages, with the position from which to go on.

A page and its position are meant to be written in one transaction. A crash in between repeats the page, and because a turn's id is
the identity of the message, the same in forks, resumes and copies, nothing is counted twice. Ids of one reading are compared by the
reader; ids of earlier ones only the store knows.

Hosts wrap the words of people in reminders, command records, notices and recalled memories; `extract_speech` removes those. Text between
the marks of `text` is never returned, not even when its end is missing: a memory that is learned again from its own recall would confirm
itself. Blocks are searched up to their last end, so that the time is linear for any text. An opening tag without its end is talk about the
tag and stays. This module knows no agent's format, no project and no store.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple
from zlib import crc32

from bethink.language.words import STOP_WORDS
from bethink.model import NOTHING, Json, ToolEvent, Values
from bethink.text import TAG, blake2b, compile_late
from bethink.text.shell import shorten_command

# Why a line gives no turn: "no speech" for calls and results of tools, thinking and whatever else hosts write down; or what is worth
# counting by itself, such as a broken line, a prompt of the machine, what Bethink recalled, and what was said while memory was off.
Reason = str
NO_SPEECH: Reason = "no speech"
OFF: Reason = "memory off"
MACHINE: Reason = "machine-made prompt"
UNKNOWN: Reason = "not understood"  # before the kind of an entry that no reader knows
BROKEN: Reason = "broken line"
TOO_LONG: Reason = "too long"
# Reasons that a person should hear about: something may have been said there.
LOSSES = (UNKNOWN, BROKEN, TOO_LONG)

# Of a state: names of places, files and tools. The rest are ids, hashes and numbers.
NAMED = ("project", "cwd", "branch", "used", "calls", "runs", "events", "tasks", "changed_tasks")

# Where tools name the files they work on. A folder to search in is no file.
_PATHS = "file_path filePath notebook_path absolute_path target_file path filename".split()
_SEARCHES = ("grep", "glob", "ls", "list", "search", "find")
_EDITS = tuple("edit multiedit write notebookedit replace create str_replace apply_patch".split())
# What a shell command does that a colleague would tell: a commit with its subject, a pull request, a run of tests or checks.
_COMMIT = compile_late(r"\bgit\b[^\n]{0,80}?\bcommit\b([^\n]{0,300}(?:\n[^\n]{0,200})?)")
_PUSH = compile_late(r"\bgit\b[^\n;&|]{0,80}?\bpush\b(?! --dry-run)")
_SUBJECT = compile_late(
    r"<<-?[ ]?['\"]?\w{1,20}['\"]?[^\n]{0,20}\n([^\n]{1,200})|m[ =](?:\"([^\"$\n]{1,200})|'([^'\n]{1,200}))"
)
_COMMITTED = compile_late(r"^\[[^\]\n]{1,200} [0-9a-f]{7,40}\] ([^\n]{1,200})$", re.MULTILINE)
_TITLE = compile_late(r"(?:--title|-t)[ =](?:\"([^\"$\n]{1,200})|'([^'\n]{1,200}))")
_PULL = compile_late(
    r"https://[^\s/]{1,100}(?:/[^\s/]{1,100}){2,4}/(?:pull|merge_requests)/(\d{1,9})\b"
)
_TASK = r"[\w:.-]{0,40}(?:test|lint|check|e2e|build)(?![\w/\"'@])"
_CHECK = compile_late(
    r"(?<![^\s;&|(])(?:pytest|jest|vitest|tox|ruff|mypy|tsc|eslint|rspec|phpunit|golangci-lint|go (?:test|vet|build)|playwright test"
    rf"|(?:cargo|npm|pnpm|yarn|bun|mise|make|just|gradle|\./gradlew|mvn|dotnet|mix|swift)(?: [^\s;&|]{{1,60}}){{0,3}}? {_TASK})"
)
_FAILURES = compile_late(
    r"^(?:--- )?FAIL\b|\b[1-9]\d{0,6} (?:failed|failing|failures?|errors?)\b|\berror TS\d|^npm ERR!",
    re.MULTILINE,
)
# Lines by which a program says itself that its run as a whole failed.
_VERDICT = compile_late(
    r"^test result: FAILED|^error: (?:could not compile|test failed)|^error\[E\d{4}\]|^\S{1,200}: error TS\d{1,5}:|^Found [1-9]\d{0,4} errors? in \d"
    r"|^=+ .{0,100}\b[1-9]\d{0,5} failed\b.{0,100} =+$|^FAILED \S{1,200}::|^FAIL\t\S{1,200}|^--- FAIL: |^\s{0,4}Tests?:?\s{1,8}[1-9]\d{0,5} failed"
    r"|^\s{1,8}[1-9]\d{0,5} failing$|^npm (?:ERR!|error) (?!code)|^\s?ELIFECYCLE|^make(?:\[\d\])?: \*\*\* |^✖ [1-9]\d{0,5} problems? \([1-9]"
    r"|^error during build:|^error: externally-managed|^ERROR: (?:Could not|No matching|Package ')|^Traceback \(most recent call last\):\n(?:[ \t].{0,400}\n){1,200}\w[\w.]{0,80}(?:Error|Exception|Exit)\b|^BUILD FAILED|^FAILURE: Build failed|^\s{0,8}(?:Test Files|Test Suites:|Errors)\s{1,8}[1-9]\d{0,5} (?:failed|error)|^⎯{1,40} Unhandled |^Found [1-9]\d{0,4} errors?\.$|^[1-9]\d{0,4} issues:$"
    r"|^error: (?:failed to push|pathspec |cannot (?:pull|rebase)|gpg failed|Your local changes|unknown option|unexpected argument|unrecognized)|^ ! \[(?:remote )?rejected\]|^CONFLICT \("
    r"|^GraphQL: |^(?:pull request|issue) create failed|^psql: error: |^FATAL ERROR: |^[Ee]rror: Cannot find (?:module|package) |^\s{0,2}[1-9]\d{0,5} fail$|^(?:ERROR: )?Cannot connect to the Docker daemon|^Error response from daemon: "
    r"|^Error from server \(|^The connection to the server \S{1,80} was refused|^ ?ERR_PNPM_[A-Z_]{4,40}  |^Segmentation fault|^\S{0,60}:? ?(?:line \d{1,5}: )?\S{1,60}: command not found$|^sh: \d{1,4}: \S{1,60}: not found$|^fatal: ",
    re.MULTILINE,
)
_OUTPUT = 8_000  # characters of a tool's output that are looked at, at either end
# Characters of a command's output that an event keeps: where it failed, the beginning and the end; where it passed, the end.
_FAILED_OUTPUT, _PASSED_OUTPUT = 1_500, 300
_CHANGED = 120  # characters of a changed line
_ARGUMENT = 160  # characters of an argument of another tool
# Tools of agents whose failures help nobody: searches, questions, plans, other agents, the web.
_UNKEPT = compile_late(
    r"(?:glob|grep|search|find|ls|list|web|fetch|task|agent|todo|plan|ask|skill|kill|exit|enter|wait|bashoutput|taskoutput|update_plan"
    r"|view_image|schedule|notebookread|read_bash|write_bash|stop_bash|report_intent)",
    re.IGNORECASE,
)
# How hosts say that a call was not carried out, or that its outcome is not known: no failure of the command.
_NO_OUTCOME = compile_late(
    r"\s*(?:<tool_use_error>)?(?:Sibling tool call errored|Cancelled: parallel tool call|The user doesn't want to proceed"
    r"|\[Request interrupted|Request interrupted|Permission to use |This command requires approval|InputValidationError"
    r"|Hook PreToolUse|PreToolUse|The user forbade this call: |Command (?:was )?(?:running in|moved to) (?:the )?background|Command timed out|User rejected|Claude requested permissions)"
)
_KIND = compile_late(r"[A-Za-z][\w.-]{0,30}")  # of an entry, as it can be shown
_WORD = compile_late(r"[^\W_]{2,40}|\d")
_CONTROL = compile_late(r"[\x00-\x1f\x7f]")
_ESCAPE = compile_late(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")

FENCE_LINES = 40
FENCE_HEAD, FENCE_TAIL = 24, 12
TEXT_LENGTH = 20_000
TEXT_HEAD, TEXT_TAIL = 13_000, 6_500

# Tags whose whole block a host, and not a person, put into a message. Those of commands are a record of what was typed,
# which the reader of Claude Code takes apart before it comes here.
BLOCKS = (
    *(
        "system-reminder system_reminder system-notification task-notification teammate-message "
        "subagent_notification local-command-stdout local-command-stderr local-command-caveat "
        "command-name command-message command-args command-contents bash-input bash-stdout "
        "bash-stderr user-prompt-submit-hook session-start-hook ide_opened_file ide_selection "
        "ide_diagnostics new-diagnostics environment_context user_instructions collaboration_mode "
        "turn_aborted user_shell_command skills_instructions current_datetime session_context "
        "hook_context system_instruction system-instruction heartbeat agent-message "
        "recommended_plugins available_skills oai-mem-citation"
    ).split(),
    "permissions instructions",
)
# Beginnings of whole messages that no person typed, blocks and what follows them.
NOTICES = (
    "<task-notification",
    "<teammate-message",
    "<system-notification",
    "Caveat: The messages below were generated by the user while running local commands",
    "[Request interrupted by user",
    "# AGENTS.md instructions for ",
    "Base directory for this skill: ",
    "Another Claude session sent a message",
    "The user wants to clarify these questions.",
)
# How a host begins its summary of a conversation that it goes on with; where the file marks it as a summary, it is one.
CONTINUED = "This session is being continued from a previous conversation"
# Roles of the texts that a host, or the model on its behalf, wrote about the conversation: `summary` replaces the context at
# a compaction, `recap` reminds a person who was away.
SUMMARY, RECAP = "summary", "recap"
ABOUT = (SUMMARY, RECAP)
# What hosts put above a summary, and below it.
_ABOVE_SUMMARY = compile_late(
    rf"\s*(?:{CONTINUED}[^\n]{{0,300}}|Another language model started to solve this problem[^\n]{{0,600}}?:)\s*"
    r"(?:The (?:conversation|summary)[^\n]{0,200}:?\s*)?(?:Summary:\s*)?"
)
_BELOW_SUMMARY = (
    "\nIf you need specific details from before",
    "\nPlease continue the conversation from where",
    "\nContinue the conversation from where",
    "\nRecent messages are preserved verbatim",
)
FENCE = compile_late(r" {0,3}(`{3,}|~{3,})")
_MODE = compile_late(
    r"^[ \t]{0,8}(?:<!--[ \t]{0,8})?memory-mode:[ \t]{0,8}(on|off)[ \t]{0,8}(?:-->)?[ \t]{0,8}$",
    re.IGNORECASE | re.MULTILINE,
)

# What Bethink recalled. The mark in the opening tag is random, so that no memory can forge its own end; without that end all that follows
# goes.
_RECALLED = compile_late(
    rf"<{TAG}(?:(?P<mark>[^>]{{0,300}})>.*?(?:</{TAG}(?P=mark)>|\Z)|.*)", re.DOTALL
)
_PRIVATE = compile_late(r"(`?)<(/?)private[ \t]{0,8}>", re.IGNORECASE)


class Fact(NamedTuple):
    """One thing that a tool did."""

    what: str  # commit, push, pull request, merge, edit; of tests and checks: passed, failed
    name: str  # the subject of the commit, number and title of the pull request, the path, the command


class Task(NamedTuple):
    """An item of an agent's own task list, as one of its tools left it."""

    text: (
        str  # the same in every change of an item that has an id in the host; else of this wording
    )
    state: str  # open, doing, done, or dropped: removed, or no longer on the list


class Turn(NamedTuple):
    """One message of a person or an agent, or a summary that the host keeps of the conversation.

    A turn of the role `summary` is the text by which a compaction replaced the conversation so far, without the host's
    words around it; one of the role `recap` is a host's note to a person who was away. Both report what other turns
    say, so neither is speech.
    """

    id: str  # identity of the message
    session: str  # of a sub-agent: the session that it worked for
    role: str  # user, assistant, summary or recap
    text: str
    at: datetime | None  # aware, UTC
    line: int  # from 1; in a database or a single JSON value the number of the message
    cwd: str | None = None
    branch: str | None = None
    tools: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    agent: str | None = None  # which sub-agent, None for the conversation itself
    plan: bool = False  # the agent's own plan: shown for approval, or handed back to it as a prompt
    work: tuple[Fact, ...] = ()  # what tools did since the turn before
    recalled: tuple[str, ...] = ()  # lines that the agent got from Bethink before, by `hash_words`
    asked: tuple[
        str, ...
    ] = ()  # questions of the agent that it answers; the text has each above its answer
    events: tuple[ToolEvent, ...] = ()  # commands and edits since the turn before, in their order
    # Items of the agent's task list that were added or changed state since the turn before, each as it is now.
    tasks: tuple[Task, ...] = ()
    # Actions of the user since the turn before that are no words: "interrupted", "declined: Bash", "declined: plan", "approved: plan".
    marks: tuple[str, ...] = ()

    @property
    def summary(self) -> bool:
        """True if it is about the conversation: context, not new speech."""
        return self.role in ABOUT


Taken = Turn | Reason  # what a line gives: a turn, or why it gives none


class Position(NamedTuple):
    """Position up to which a transcript was read."""

    identity: str = ""
    offset: int = 0
    line: int = 0
    tail: str = ""
    state: Values = NOTHING  # small, JSON-able, and nothing that was said


class TranscriptPage(NamedTuple):
    """Some turns, and the position behind them. `skipped` and `lines` count this page only."""

    turns: tuple[Turn, ...]
    position: Position
    skipped: Mapping[str, int]
    lines: int


START = Position()


def clean(text: str) -> str:
    """Return the text as it can be stored: no NUL, no terminal colours, no half of a character."""
    plain = _ESCAPE.sub("", text) if "\x1b" in text else text
    plain = plain.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")
    return plain if plain.isascii() else plain.encode("utf-8", "replace").decode()


def digest(data: bytes) -> str:
    return blake2b(data, digest_size=8).hexdigest()


def make_id(*parts: object) -> str:
    """Return an identity for a message without one."""
    return digest("\0".join(map(str, parts)).encode("utf-8", "replace"))


def hash_words(text: str) -> frozenset[str]:
    """Hash the words of a text, except stop words, by six letters: enough to compare two texts."""
    words = (word for word in _WORD.findall(text.lower()) if word not in STOP_WORDS)
    return frozenset(f"{crc32(word[:6].encode('utf-8', 'replace')):x}" for word in words)


# JSON of which nothing can be taken for granted


class Fields(Json):
    """A JSON object whose missing or wrongly typed members read as empty values."""

    def text(self, key: str) -> str:
        value = self.get(key)
        return value if isinstance(value, str) else ""

    def object(self, key: str) -> Fields:
        return as_fields(self.get(key))

    def array(self, key: str) -> list[Any]:
        value = self.get(key)
        return value if isinstance(value, list) else []

    def objects(self, key: str) -> list[Fields]:
        return list(map(as_fields, self.array(key)))

    def name(self, *keys: str, length: int = 200) -> str | None:
        """The name under the first key that has one."""
        return next((name for key in keys if (name := as_name(self.get(key), length))), None)

    def time(self, key: str = "timestamp") -> datetime | None:
        return as_time(self.get(key))


def as_fields(value: object) -> Fields:
    return Fields(value) if isinstance(value, dict) else Fields()


_DECODER = json.JSONDecoder(strict=False)


def read_value(data: object) -> Any:
    """Parse a JSON value; None if it is none.

    Invalid UTF-8 becomes U+FFFD; raw tabs and line breaks inside strings are accepted.
    """
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    if not isinstance(text, str):
        return None
    try:
        return _DECODER.decode(text.strip("\ufeff\0 \t\r\n"))
    except (ValueError, RecursionError):
        return None


def read_object(data: object) -> Fields | None:
    """Parse the JSON object of one line; None if it is none."""
    value = read_value(data)
    return Fields(value) if isinstance(value, dict) else None


def name_unknown(kind: object) -> Reason:
    """Return the reason for an entry of a kind that the reader does not know."""
    return f"{UNKNOWN}: {kind}" if isinstance(kind, str) and _KIND.fullmatch(kind) else UNKNOWN


def as_name(value: object, length: int = 200) -> str | None:
    """A short string that can be shown and stored (an id, a path, a branch), or nothing."""
    if not isinstance(value, str) or len(value) >= 2 * length:
        return None
    return _clean_name(value.strip(), length)


@lru_cache(maxsize=1 << 12)  # every line of a transcript names the same few again
def _clean_name(text: str, length: int) -> str | None:
    return clean(text) if text and len(text) <= length and not _CONTROL.search(text) else None


def as_time(value: object) -> datetime | None:
    """An ISO time, or seconds, milliseconds or microseconds since 1970, in UTC. None for anything else."""
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value)
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            while abs(value) > 1e11:
                value /= 1000
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def texts_of(content: object, types: tuple[str, ...] = ("text",)) -> list[str]:
    """The texts of a message: itself, or its blocks of those types, without what the model only thought."""
    if isinstance(content, str):
        return [content]
    found = []
    for block in content if isinstance(content, list) else ():
        fields = as_fields(block)
        spoken = fields.get("type", types[0]) in types and not fields.get("thought")
        found.append(block if isinstance(block, str) else fields.text("text") if spoken else "")
    return list(filter(None, found))


# Tools


def find_paths(tool: str, arguments: Fields) -> list[str]:
    keys = () if tool.lower().startswith(_SEARCHES) else _PATHS
    return [path for key in keys if (path := arguments.name(key, length=1000))]


def find_command(arguments: Fields) -> str:
    """The command line of a call of a shell, '' of any other."""
    key = "command" if arguments.get("command") else "cmd"
    return " ".join(map(str, arguments.array(key))) or arguments.text(key)


def is_our_tool(tool: str, arguments: Fields) -> bool:
    """Return True for a call of our MCP tools, under any prefix, or of our command in a shell."""
    words = find_command(arguments)[:200].split()[:4]
    programs = (word.strip("'\"").rpartition("/")[2] for word in words)
    return "bethink" in tool.lower() or "bethink" in programs


def expect_event(tool: str, arguments: Fields) -> ToolEvent | None:
    """Return the event of a tool call before its outcome is known; None for tools not worth keeping."""
    if command := find_command(arguments).strip():
        directory = arguments.name("workdir", "dir_path", length=1000) or ""
        escalated = (
            arguments.get("with_escalated_permissions") is True
            or arguments.get("sandbox_permissions") == "require_escalated"
        )
        return ToolEvent(
            command=clean(shorten_command(command)), directory=directory, escalated=escalated
        )
    if tool.lower().startswith(_EDITS) and (paths := find_paths(tool, arguments)):
        place = describe_arguments({"path": paths[0]})
        change = describe_change(arguments)
        return ToolEvent(file=paths[0], change=change, tool=tool, arguments=place, changes=True)
    if not is_kept(tool):
        return None
    return ToolEvent(tool=tool, arguments=clean(describe_arguments(arguments)))


def is_kept(tool: str) -> bool:
    """Return True if the failures of a tool may be worth keeping."""
    return not _UNKEPT.match(tool)


def describe_arguments(arguments: Values) -> str:
    """The short arguments of a call: `base=main; draft=true`."""
    plain = (
        (name, str(value).lower() if isinstance(value, bool) else str(value))
        for name, value in arguments.items()
        if isinstance(value, str | int | float)
    )
    kept = (f"{name}={' '.join(value.split())}" for name, value in plain if len(value) <= _ARGUMENT)
    return "; ".join(sorted(kept))


def describe_change(arguments: Fields) -> str:
    """The first line in which an edit differs, as "old → new"; '' for a file that is written whole."""
    edit = (arguments.objects("edits") or [arguments])[0]
    old = edit.text("old_string") or edit.text("oldString") or edit.text("old_str")
    new = edit.text("new_string") or edit.text("newString") or edit.text("new_str")
    before, after = old[:20_000].splitlines(), new[:20_000].splitlines()
    removed = next((line for line in before if line.strip() and line not in after), "")
    added = next((line for line in after if line.strip() and line not in before), "")
    lines = [clean(line).strip()[:_CHANGED] for line in (removed, added)]
    return " → ".join(lines) if any(lines) else ""


def finish_event(event: ToolEvent, output: str, failed: bool | None) -> ToolEvent:
    """An event with its outcome. A call that was refused, interrupted or sent to the background has none."""
    output = clean(_RECALLED.sub("", output) if f"<{TAG}" in output else output).strip()
    if _NO_OUTCOME.match(output) or output.startswith("Exit code 143"):
        failed = None
    if not event.command:
        return event._replace(failed=failed, output=output[:_PASSED_OUTPUT] if failed else "")
    if not failed and not shows_failure(output):
        return event._replace(failed=failed, output=output[-_PASSED_OUTPUT:])
    if len(output) > 2 * _FAILED_OUTPUT:
        output = f"{output[:_FAILED_OUTPUT]}\n…\n{output[-_FAILED_OUTPUT:]}"
    return event._replace(failed=failed, output=output)


def shows_failure(output: str) -> bool:
    """Return True if a test runner, a compiler or a package manager reports a failure."""
    return bool(_VERDICT.search(output[-_OUTPUT:]))


def expect_work(tool: str, arguments: Fields) -> list[Fact]:
    """Return the effects of a tool call if it succeeds. A run of tests is a "check" for now."""
    if tool.lower().startswith(_EDITS):
        return [Fact("edit", path) for path in find_paths(tool, arguments)]
    line = find_command(arguments)[:_OUTPUT]
    commit, check = _COMMIT.search(line), _CHECK.search(line)
    subject = _SUBJECT.search(commit[1]) if commit else None
    found = [Fact("commit", (subject[subject.lastindex or 1] if subject else ""))] if commit else []
    found += [Fact("push", "git push")] if _PUSH.search(line) else []
    if "pr create" in line or "mr create" in line:
        title = _TITLE.search(line)
        found.append(Fact("pull request", (title[title.lastindex or 1] if title else "")))
    found += [Fact("merge", "pr merge")] if "pr merge" in line or "mr merge" in line else []
    return found + ([Fact("check", check[0])] if check else [])


def confirm_work(expected: Iterable[Fact], output: str, failed: bool) -> list[Fact]:
    """Return the effects that the output confirms. A commit that git reports counts despite later errors."""
    if len(output) > 2 * _OUTPUT:
        output = f"{output[:_OUTPUT]}\n{output[-_OUTPUT:]}"
    found: list[Fact] = []
    for what, name in expected:
        names = [] if failed else [name]
        if what == "check":
            what, names = "failed" if failed or _FAILURES.search(output) else "passed", [name]
        elif what == "commit":
            names = _COMMITTED.findall(output) or names
        elif what == "pull request":
            names = [f"#{number}: {name}".rstrip(": ") for number in _PULL.findall(output)[-1:]]
        found += [Fact(what, one) for text in names if (one := as_name(text, 1000))]
    return found


# Task lists

# Tools that state the whole list, by the letters of their name; the rest state one item.
_LISTS = frozenset(
    "todowrite updateplan writetodos managetodolist updatetodo updatetodolist todolist".split()
)
_LIST_FIELDS = "todos plan todoList items tasks".split()
_ITEM_FIELDS = "content step subject title description text".split()
_STATES = {
    **dict.fromkeys("in_progress in-progress inprogress active started doing".split(), "doing"),
    **dict.fromkeys("completed complete done finished".split(), "done"),
    **dict.fromkeys("cancelled canceled deleted removed dropped skipped".split(), "dropped"),
}
_BOX = compile_late(r"^\s{0,8}[-*] \[([ xX~>/-])\] (.{1,600})$", re.MULTILINE)
_BOXES = {"x": "done", "X": "done", "~": "doing", ">": "doing", "/": "doing", "-": "doing"}
_TASK_LENGTH, _TASK_QUERY = 300, 20_000
_CREATED = compile_late(r"\s{0,8}Task #(\w{1,20}) created")
# The agent's own database, where a host has the list in a table.
_INSERT = compile_late(
    r"\bINSERT\s+(?:OR\s+\w+\s+)?INTO\s+todos\s*\(([^)]{1,300})\)\s*VALUES\s*", re.IGNORECASE
)
_UPDATE = compile_late(
    r"\bUPDATE\s+todos\s+SET\s+([^;]{0,600}?)\bWHERE\s+id\s*(?:=|IN)\s*([^;]{1,2000})",
    re.IGNORECASE,
)
_DELETE = compile_late(
    r"\bDELETE\s+FROM\s+todos\s+WHERE\s+id\s*(?:=|IN)\s*([^;]{1,2000})", re.IGNORECASE
)
_SQL_ROW = compile_late(r"\s*\(((?:[^()']|'[^']*'){1,4000})\)\s*(,?)")
_SQL_PIECE = compile_late(r"'[^']*'|,|[^',]{1,400}")
_SQL_STATUS = compile_late(r"\bstatus\s*=\s*'(\w{1,40})'", re.IGNORECASE)
_SQL_TEXT = compile_late(r"(?:'[^']*')+")


class TaskChange(NamedTuple):
    """An item as a tool call states it."""

    key: str  # by which later calls name it
    text: str  # '' if the call does not repeat it
    state: str  # '' if the call does not change it


def read_task_call(
    tool: str, arguments: Fields, call: str | None
) -> tuple[list[TaskChange], bool] | None:
    """Return the items that a task tool states, and True if they are the whole list; else None."""
    name = "".join(filter(str.isalpha, tool.lower()))
    if name == "taskcreate":
        return [TaskChange(call or "", _as_task(arguments), "open")], False
    if name == "taskupdate":
        state = as_state(arguments.text("status")) if arguments.text("status") else ""
        key = str(arguments.get("taskId") or arguments.get("id") or "")
        return [TaskChange(key, _as_task(arguments, ("subject",)), state)], False
    if name == "sql":
        return _read_queries(arguments.text("query")[:_TASK_QUERY]), False
    if name not in _LISTS:
        return None
    found: object = next((arguments[one] for one in _LIST_FIELDS if arguments.get(one)), [])
    if isinstance(found, str):
        boxes = _BOX.findall(found[:_TASK_QUERY])
        return [TaskChange(text, text, _BOXES.get(box, "open")) for box, text in boxes], True
    items = [as_fields(one) for one in found] if isinstance(found, list) else []
    changes = [
        TaskChange(str(one.get("id") or text), text, as_state(one.text("status")))
        for one in items
        if (text := _as_task(one)) or one.get("id")
    ]
    return changes, arguments.get("merge") is not True


def find_created(output: str) -> str:
    """The id that a host gave to a new item, '' if its answer has none."""
    found = _CREATED.match(output)
    return found[1] if found else ""


def as_state(status: str) -> str:
    return _STATES.get(status.lower(), "open")


def _as_task(item: Fields, keys: Iterable[str] = tuple(_ITEM_FIELDS)) -> str:
    text = next((text for key in keys if (text := item.text(key).strip())), "")
    return " ".join(clean(text).split())[:_TASK_LENGTH]


def _read_queries(query: str) -> list[TaskChange]:
    """Return the changes that SQL makes to the table `todos`."""
    found: list[tuple[int, TaskChange]] = []
    for insert in _INSERT.finditer(query):
        columns = [one.strip(' "`').lower() for one in insert[1].split(",")]
        row = _SQL_ROW.match(query, insert.end())
        while row:
            item = Fields(zip(columns, _split_row(row[1]), strict=False))
            text = _as_task(item, ("title", "description"))
            state = as_state(item.text("status"))
            found.append((insert.start(), TaskChange(item.text("id") or text, text, state)))
            row = _SQL_ROW.match(query, row.end()) if row[2] else None
    for update in _UPDATE.finditer(query):
        if status := _SQL_STATUS.search(update[1]):
            state, ids = as_state(status[1]), map(_unquote, _SQL_TEXT.findall(update[2]))
            found += [(update.start(), TaskChange(id, "", state)) for id in ids]
    for delete in _DELETE.finditer(query):
        ids = map(_unquote, _SQL_TEXT.findall(delete[1]))
        found += [(delete.start(), TaskChange(id, "", "dropped")) for id in ids]
    return [change for _, change in sorted(found, key=lambda one: one[0])]


def _split_row(row: str) -> list[str]:
    """Return the values between the commas of a row of SQL."""
    values = [""]
    for piece in _SQL_PIECE.findall(row):
        values = [*values, ""] if piece == "," else [*values[:-1], values[-1] + piece]
    return [_unquote(one) for one in values]


def _unquote(value: str) -> str:
    value = value.strip()
    return value[1:-1].replace("''", "'") if value.startswith("'") else value


# Speech in a message


class Speech(NamedTuple):
    """The words of a message, why there are none, and how many blocks in it were recalled by Bethink."""

    text: str
    reason: Reason
    recalled: int


def extract_speech(text: str) -> Speech:
    text = clean(text)
    recalled = wrapped = 0
    if "<" in text:
        text, recalled = _RECALLED.subn("", text)
        if not is_notice(text):
            text, wrapped = remove_blocks(text)
    text = text.strip()
    notice = is_notice(text)
    by_host = MACHINE if wrapped or notice else NO_SPEECH
    reason = "injected by Bethink" if recalled else by_host
    return Speech("" if notice else text, reason, recalled)


def extract_summary(text: str) -> str:
    """Return a host's summary without its words above and below, and without what the model only thought."""
    text = remove_blocks(text, ("analysis",))[0]
    text = find_block(text, "summary") or text
    above = _ABOVE_SUMMARY.match(text)
    text = text[above.end() :] if above else text
    for below in _BELOW_SUMMARY:
        text = text.partition(below)[0]
    return text.strip()


def is_notice(text: str) -> bool:
    return text.lstrip().startswith(NOTICES)


def find_memory_mode(text: str) -> tuple[str | None, str]:
    """Return the last `memory-mode: off` or `on` on a line by itself, and the text without these lines."""
    found = _MODE.findall(text) if "memory-mode" in text.lower() else []
    return (found[-1].lower(), _MODE.sub("", text).strip()) if found else (None, text)


def split_private(text: str, opened: bool) -> tuple[str, bool]:
    """Return the part of a turn not hidden by an earlier `<private>`, and True if one is open after it.

    A tag in backticks is talk about the tag. Blocks that are complete in this turn stay: the caller that stores the turn redacts them.
    """
    tags = [tag for tag in _PRIVATE.finditer(text) if tag[1] != "`"] if "<" in text else []
    if opened:
        closing = next((tag for tag in tags if tag[2]), None)
        if closing is None:
            return "", True
        tags = tags[tags.index(closing) + 1 :]
        text = text[closing.end() :].strip()
    return text, bool(tags) and not tags[-1][2]


def find_block(text: str, tag: str) -> str | None:
    """Return the content of the first `<tag>` in a text."""
    start = text.find(f"<{tag}>")
    end = text.find(f"</{tag}>", start + 1) if start >= 0 else -1
    return text[start + len(tag) + 2 : end].strip() if end >= 0 else None


def remove_blocks(text: str, tags: tuple[str, ...] = BLOCKS) -> tuple[str, int]:
    """The text without the blocks of these tags, and how many there were."""
    removed = 0
    for tag in tags:
        inside, closing, behind = text.rpartition(f"</{tag}>")
        if closing:  # so that every opening is followed by an end, and the time is linear
            block = rf"<{tag}(?=[>\s]).*?{closing}"
            kept, count = re.subn(block, "", inside + closing, flags=re.DOTALL)
            text, removed = kept + behind, removed + count
    return text, removed


def shorten(text: str) -> str:
    """The text with the middle of long fenced blocks, then of itself, left out."""
    if "```" in text or "~~~" in text:
        text = _shorten_fences(text)
    if len(text) <= TEXT_LENGTH:
        return text
    head, tail = text[:TEXT_HEAD], text[-TEXT_TAIL:]
    # Cut at a line, where there is one within reach.
    head = head[:cut] if (cut := head.rfind("\n")) > TEXT_HEAD // 2 else head
    tail = tail[cut + 1 :] if -1 < (cut := tail.find("\n")) < TEXT_TAIL // 2 else tail
    return f"{head.rstrip()}\n[… {len(text) - len(head) - len(tail):,} characters left out]\n{tail.lstrip()}"


def _shorten_fences(text: str) -> str:
    kept: list[str] = []
    block: list[str] = []  # the lines inside a fence
    mark = ""  # of the fence that is open
    for line in text.split("\n"):
        fence = FENCE.match(line)
        found = fence[1] if fence else ""
        if mark and not (found.startswith(mark) and not line.strip().strip(mark[0])):
            block.append(line)
        else:
            kept += [*_shorten_lines(block), line]
            block, mark = [], "" if mark else found
    return "\n".join(kept + _shorten_lines(block))


def _shorten_lines(lines: list[str]) -> list[str]:
    if len(lines) <= FENCE_LINES:
        return lines
    left_out = f"[… {len(lines) - FENCE_HEAD - FENCE_TAIL:,} lines left out]"
    return [*lines[:FENCE_HEAD], left_out, *lines[-FENCE_TAIL:]]
