"""Calls of tools and their outcome: commands, changed files, commits, pull requests and checks."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bethink.agents.base import (
    Fact,
    Fields,
    as_fields,
    as_name,
    clean,
    read_value,
)
from bethink.agents.speech import remove_recalled
from bethink.model import ToolEvent, Values
from bethink.text import compile_late
from bethink.text.shell import shorten_command

# Where tools name the files they work on. A folder to search in is no file.
_PATHS = "file_path filePath notebook_path absolute_path target_file path filename".split()
_SEARCHES = ("grep", "glob", "ls", "list", "search", "find")
_STORES = ("store_memories", "store-memories")  # the end of the name of our tool that stores notes
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
    r"^test result: FAILED|^error: (?:could not compile|test failed)|^error\[E\d{4}\]|^\S{1,200}:\d{1,6}:\d{1,4}: (?:fatal )?error: |^\S{1,200}: error TS\d{1,5}:|^Found [1-9]\d{0,4} errors? in \d"
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


def find_stored(tool: str, arguments: Fields) -> list[str]:
    """Return the statements that a call of `store_memories` stores, under any prefix."""
    if not tool.lower().endswith(_STORES):
        return []
    found = arguments.get("memories")
    listed = read_value(found) if isinstance(found, str) else found
    texts = [as_fields(one).text("content") for one in listed] if isinstance(listed, list) else []
    return [clean(text).strip() for text in texts if text.strip()]


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
    output = clean(remove_recalled(output)[0]).strip()
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
