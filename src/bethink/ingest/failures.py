"""Failed commands and what fixed them, from the tool events of a session.

`read_runs` says which command of a shell line passed or failed, as far as its exit status is proof: behind a pipe it is none, and of
`build && run` the line as a whole failed. `sign_error` names an error so that it is recognised in another session, worktree or
machine. `follow_events` matches a failure with the change after which the same command passes. Everything here is pure; texts are
redacted by the caller before they are stored.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import partial
from typing import NamedTuple

from bethink.agents.work import shows_failure
from bethink.ingest.causes import CAUSE_KINDS, name_causes, name_text, name_tool_cause
from bethink.ingest.commands import (
    PROGRAMS,
    clean_command,
    drop_places,
    join_blanks,
    name_family,
    name_job,
    name_program,
    split_line,
    strip_command,
    unwrap_line,
    writes_file,
)
from bethink.ingest.tools import (
    EDIT_CONFLICT,
    NEAR,
    TOOL_CALL,
    TOOL_KINDS,
    describe_call,
    find_tool_fix,
    read_tool_error,
)
from bethink.model import COMMAND_LENGTH, Memory, ToolEvent
from bethink.text import blake2b, compile_late

_REMOTE = ("ssh", "scp", "rsync", "wsl")  # what fails there is another machine's
# … unless it was not reached.
_UNREACHED = compile_late(
    r"\(publickey|host key verification|could not resolve hostname|connect to host|connection (?:refused|timed out|closed by)",
    re.IGNORECASE,
)
# Questions whose exit status is an answer, not a failure.
_QUERIES = compile_late(
    r"(?:git (?:diff|grep|log|show|status|rev-parse|rev-list|merge-base|show-ref|ls-remote|ls-files|ls-tree|check-ignore|check-ref-format"
    r"|config|cat-file|symbolic-ref|describe|reflog|blame)|gh (?:pr checks|run watch|run view|search)|npm (?:outdated|audit|view|ls|list|why)"
    r"|pnpm (?:outdated|audit|why|ls|list)|pip3? show|(?:docker|kubectl) (?:inspect|ps|logs|get|describe)|systemctl (?:status|is-active|cat)"
    r"|brew list|node -e|node -p|python3? -c|ruby -e|php -r)\b"
)
# Errors of a question that was not answered at all.
_UNANSWERED = compile_late(
    r"^(?:fatal|error|psql: error|Error from server|Error response from daemon|An error occurred)\b|refused|command not found|permission denied|not accessible|in progress|HTTP 40[13]",
    re.IGNORECASE,
)
# Commands that change nothing, so that they fix nothing.
_LOOKS = compile_late(
    r"(?:ls|cat|bat|head|tail|less|more|grep|egrep|rg|ag|fd|find|tree|wc|file|stat|which|type|command -v|echo|printf|pwd|date|whoami|id|groups|env|printenv|sleep|true"
    r"|readlink|realpath|basename|dirname|uname|hostname|nproc|locale|xxd|hexdump|od|strings|nm|ldd|otool|md5sum|sha\d{1,3}sum|shasum|column|tac|nl|paste|comm|ss|netstat|dig|nslookup"
    r"|pgrep|free|ip|ifconfig|dpkg -[lLsS]|apt(?:-cache)? (?:list|show|search|policy)"
    r"|false|test|\[|diff|cmp|du|df|ps|lsof|jq|yq|awk|sort|uniq|cut|tr|sed(?! -i| --in-place)|curl|wget|ping|man|history|wait"
    r"|git (?:diff|grep|log|show|status|rev-parse|rev-list|merge-base|ls-remote|ls-files|ls-tree|check-ignore|branch(?: -[avlr]+| --\S+)*$|remote(?: -v| show| get-url|$)|stash list|tag(?: -l|$)"
    r"|config --get|cat-file|describe|reflog|blame|worktree list|fetch)"
    r"|gh (?:pr (?:view|list|diff|checks|status)|(?:issue|release|workflow|repo|project) (?:view|list)|(?:label|secret|variable) list|run (?:view|list)|api|auth status|search)"
    r"|(?:npm|pnpm|yarn) (?:ls|list|view|why|outdated|audit|whoami|root|prefix|config (?:get|list)|-v|--version)|(?:docker|kubectl) (?:ps|logs|inspect|images|info|get|describe|config)"
    r"|docker system (?:df|info)|docker (?:compose|network|volume|container|image) (?:ps|logs|config|ls|inspect)|helm (?:history|list|status|get)|terraform (?:show|output|state list)|aws (?:sts|s3 ls|\S+ (?:describe|list|get)-\S+)"
    r"|pip3? (?:list|show|freeze|check)|uv (?:pip (?:list|show|tree)|tree)|poetry (?:show|env info)|cargo (?:tree|metadata|search)|go (?:list|env|doc)|brew (?:list|info|search)|rustup show|nvm (?:ls|list|current)"
    r"|xcrun simctl list|adb devices|supabase status|systemctl status|redis-cli ping"
    r"|(?:npx |pnpm |yarn |uvx? (?:run )?)?\S+ (?:--version|-v|-V|--help|--list|--tasks|version|help))(?:\s|$)"
)
# Questions to a database or an interpreter, which fix nothing themselves.
_ASKS = compile_late(
    r"(?:\S*/)?(?:rails (?:runner|console)|rake -T|psql|mysql|sqlite3|redis-cli|mongosh?|node -[ep]|python3? -c|ruby -e|php -r|perl -e)\b(?!.{0,200}\b(?:create|alter|insert|update|delete|drop|grant|set|flush\w{0,5})\b)",
    re.IGNORECASE,
)
# Steps that only set the stage for the next one.
_STAGE = compile_late(
    r"(?:cd|pushd|popd|export|set|source|\.|echo|printf|sleep|true|mkdir|:|umask|ulimit|unset|alias|shopt|nvm use|fnm use)(?:\s|$)"
)
# Those among them that change the environment of what follows, and those that a fix may consist of.
_ENVIRONMENT = ("export ", "source ", ". ", "unset ", "set -a", "set +a", "nvm use", "fnm use")
_CHANGING_STAGE = (*_ENVIRONMENT, "cd ", "mkdir ")
_FILTERS = frozenset(
    "tail head cat tee sort wc sed less more column tac nl fold uniq cut tr".split()
)
_NOT_ENTERED = compile_late(
    r"\bcd(?::\d+)?: (?:can't cd to |no such file or directory: |not a directory: )?['\"]?([^'\":\n]{1,300})['\"]?(?::.{0,40}(?:no such file|not a directory)|$)",
    re.IGNORECASE | re.MULTILINE,
)
_ESCAPES = compile_late(r"\x1b\[[0-9;?]{0,20}[A-Za-z]|\[[0-9;]{1,8}m")
_EXIT_LINE = compile_late(r"(?:Error: )?Exit code:? \d+")
# Lines that say that something failed, but not why.
_NOISE = compile_late(
    r"(?:npm (?:ERR!|error) (?:code|errno|syscall|path|command|A complete log|Lifecycle|workspace|location|Exit status|signal|at |\s*$)"
    r"|\s*ELIFECYCLE|.*(?:command failed with exit code|exit status \d+$|exited with (?:code )?\d+|exited \(\d+\)|Command failed)"
    r"|make(?:\[\d+\])?: \*\*\* (?!No rule)|error Command failed|.{0,40}ERR_PNPM_RECURSIVE(?!.{0,80}not found)|✖ \d+ |.{0,20}\b\d+ (?:failed|failing|errors?)\b|undefined$|(?:FAIL|ok)\s+\S{1,200}\s+(?:\[|\(cached|[\d.]+s)|FAIL$|.{0,4}Build failed in|\s*at .{1,200}:\d+|\s*File \".{1,200}\", line \d+"
    r"|_{3,} .{1,200} _{3,}$|={3,} .{0,200} ={3,}$|\[.{1,40}\] ERROR task failed|error: could not compile .{0,80} due to|.*\bwarning\b|For more information"
    r"|.{0,40}(?:0 errors?\b|0 fail|no errors)|hint:|Error: Process completed|> |\$ |Waiting |.{0,60}Deprecation|.*DEPRECATED|.*DEPRECATION)",
    re.IGNORECASE,
)
# Lines of known tools that say which step failed, but not why: another line with an error says more.
_SUMMARY = compile_late(
    r"(?:error: )?(?:linking with|failed to run custom build command|could not compile|failed to compile|subprocess-exited-with-error|metadata-generation-failed)"
    r"|(?:\[ERROR\] )?Failed to execute goal|.{0,10}(?:COMPILATION ERROR|BUILD (?:FAILURE|FAILED))|FAILURE: Build failed|Execution failed for task|Could not determine the dependencies of"
    r"|A problem occurred|ERROR: (?:Failed building wheel|Could not build wheels)|ERROR: failed to (?:build|solve): process|.{0,80}is locked to version|(?:E\s+)?ImportError while importing test module"
    r"|(?:ERROR |_+ )(?:collecting )?\S{1,200}\.py\b[^:]{0,40}$|Interrupted: \d|.{0,4}Oops! Something went wrong|Failed to compile|Build failed because|Build error occurred"
    r"|Jest encountered an unexpected token|.{0,4}Test suite failed to run|.{0,20}Failed to launch the browser|.{0,4}Unhandled (?:Errors?|Rejections?)|An error occurred while installing"
    r"|.{0,10}(?:Gem::Ext::BuildError|extconf\.rb failed)|Your (?:lock file does not contain|requirements could not be resolved)|.{0,20}errors occurred!|ninja: build stopped|FAILED: \S{1,200}$"
    r"|FAIL\s+\S{1,200}$|× .{0,200} did not run successfully|╰─>|husky - |.{0,12}hook .{0,20}(?:failed|declined)|error: failed to push some refs|.{0,10}(?:Error )?code: [A-Z]?\d|Something went wrong|throw err|.{0,6}(?:Failed|Error)$"
    r"|(?:error|fatal):? \[?[\w-]{1,30}\]?$|(?:error: )?[\w ,()'-]{1,80}:$"
    r"|Prisma schema (?:loaded|validation)|(?:Error: )?Prisma schema validation|FATAL: command failed|.{0,40}returned a non-zero|Error: Command failed|.{0,60}(?:has been updated|no tests ran)",
    re.IGNORECASE,
)
_STRONG = compile_late(
    r"\.(?:go|rs|c|cc|cpp|h|java|kt|swift|zig):\d+:\d+: |(?:^|[\s:(\]])(?:fatal:|error:|error\[|error\s+TS\d|error \w+:|ERROR\b|FATAL\b|panic:|panicked at|npm (?:ERR!|error) |Traceback|(?:\w{1,60}[.\\]){0,12}\w{0,60}(?:Error|Exception)(?::| \[)"
    r"|AssertionError|FAIL\b|FAILED\b|✖|✗|✘|× |E\s{3,}\w)|command not found|: not found$|No such file or directory|Permission denied"
    r"|unknown (?:flag|option|command|shorthand|json field)|Unknown JSON field|(?:un)?recognized (?:argument|option)|is not recognized|address already in use|refused"
    r"|\[(?:remote )?rejected\]|^CONFLICT|did not match any|^Diff in |[Ww]ould reformat|Code style issues|No rule to make target|files were modified by this hook|is (?:not|already) |[Cc]annot |[Cc]an't |[Cc]ould not |[Cc]ouldn't |[Uu]nable to |not found\b|is required"
)
_GO_CAUSE = compile_late(r"\w{1,100}_test\.go:\d+: \S")
_WEAK = compile_late(
    r"\b(?:error|failed|failure|fails|invalid|missing|denied|unexpected|undefined|unknown|ignored|unsupported|expected|no such|must|not|never|please run|to get started)\b",
    re.IGNORECASE,
)
_PASSED = compile_late(
    r"\b[1-9]\d{0,6} (?:passed|passing)\b|\btest result: ok\b|^ok\s+\S+|\bAll checks passed|\bno issues found|\bSuccess: no issues"
    r"|\bBuild succeeded|\bBuilt target |\bBUILD SUCCESSFUL|\bbuilt in \d|\bCompiled successfully|\b0 errors\b|\bFinished `|\b0 failures\b",
    re.IGNORECASE | re.MULTILINE,
)
_SHOWS_FAILURE = compile_late(
    r"^(?:--- )?FAIL\b|\b[1-9]\d{0,6} (?:failed|failing|failures?|errors?)\b|\berror(?:\[\w+\]|:| TS\d)|^npm (?:ERR!|error)|\bFAILED\b|\bfatal:|panic",
    re.MULTILINE | re.IGNORECASE,
)

# Kinds of failures in the order in which they are tried.
KINDS: Mapping[str, re.Pattern[str]] = {
    name: compile_late(pattern, re.IGNORECASE)
    for name, pattern in {
        "port in use": r"EADDRINUSE|address already in use|port \S{1,12} is (?:already )?(?:in use|allocated)|port is already allocated",
        "service not running": r"ECONNREFUSED|connection refused|cannot connect to the docker daemon|could not connect to server|is the server running"
        r"|is the docker daemon running|failed to connect to|no such container|service .{0,40}is not running|can't reach database",
        "wrong flag": r"unknown (?:flag|option|argument|command|shorthand|subcommand|recipe|task|target|goal|json field)|unrecogni[sz]ed (?:arguments?|options?|subcommand)"
        r"|unexpected argument|(?:invalid|illegal|bad|no such|unsupported) (?:option|flag|argument\b)|flag provided but not defined|unknown script"
        r"|missing script|no rule to make target|found argument .{1,60} which wasn't expected|accepts \d+ arg|requires? at least \d+ arg"
        r"|(?:no|not contain|how to build|find) (?:such )?(?:task|recipe|target|goal)\b|(?:task|recipe|target|goal) (?:.{1,60} )?(?:not found|does not exist|could not be found|never defined|not defined)",
        "missing dependency": r"cannot find (?:module|package)|command .{1,40} not found|can't resolve|module ?not ?found|no module named|command not found|: not found$|not installed"
        r"|could(?: not|n't) resolve (?!to a |host)|cannot find package|could not find gem|bundler: .{0,60}not found|executable file not found|is not recognized as"
        r"|no required module provides|missing go\.sum entry|node_modules .{0,20}missing|unresolved import|can't find crate|couldn't exec process"
        r"|executable doesn't exist|not in your package\.json|could not find a version that satisfies|ERR_MODULE_NOT_FOUND|failed to resolve import",
        "version": r"requires? (?:go|node|python|rust|ruby|java|a different)\b|\bversion .{1,30} is required|unsupported engine|EBADENGINE|version mismatch|incompatible (?:version|with)"
        r"|exec format error|bad CPU type|requires .{1,30}>=|is not supported (?:by|with) |rust-version|requires rustc|not supported by the following package|invalid target release|class file version|lockfile .{0,40}(?:not up to date|out of date|outdated)|frozen.lockfile|needs to be updated but|ERESOLVE|override for .{1,60} conflicts|peer dep",
        "permission": r"permission denied|EACCES|EPERM|operation not permitted|access denied|not authorized|unauthorized|authentication failed"
        r"|HTTP 40[13]\b|403 forbidden|could not read Username|must be root|resource not accessible|publickey|gh auth login|GH_TOKEN",
        "environment variable": r"(?:environment )?variable .{0,60}(?:not set|required|missing|undefined|unset)|unbound variable|\b[A-Z][A-Z0-9]+_[A-Z0-9_]+\b.{0,30}"
        r"(?:is (?:not set|required|missing)|not set|must be set)|missing required environment|missing .{0,20}api key"
        r"|(?:defin|sett|export|set)(?:e|ing)? (?:the )?(?:environment variable )?(?-i:[A-Z][A-Z0-9]+_[A-Z0-9_]+)\b",
        "conflict": r"\[(?:remote )?rejected\]|non-fast-forward|^CONFLICT|merge conflict|not fully merged|would be overwritten|unrelated histories|divergent branches"
        r"|upstream branch|fetch first|protected branch|needs merge|unmerged|already exists|already checked out|used by worktree|nothing to commit|cannot rebase"
        r"|index\.lock|not possible to fast-forward|cannot lock ref|no commits between|refusing to merge|ignored by one of your",
        "type or lint rule": r"error TS\d|error\[E\d|\bTS\d{4}\b|is not assignable|mypy|eslint|\bclippy|\(?\bno-[a-z]+(?:-[a-z]+)+\b|\b(?:E|F|W|I|N|B|C|D|UP|SIM|RUF|PL[A-Z]?|ANN|ARG|S|T|TRY)\d{3,4}\b"
        r"|\blint|formatt?(?:ed|ing)|gofmt|prettier|would reformat|undefined: \w|declared and not used|imported and not used|undeclared name|cannot use .{1,80} as|cannot find name"
        r"|mismatched types|cannot convert|\.(?:go|rs|c|cc|cpp|h|java|kt|swift):\d+:\d+: |syntax ?error|unused (?:import|variable)|incompatible types|does not exist on type|parse error|expected `|unresolved reference|✖ \d+ problem",
        "wrong directory": r"\bcd(?::\d+)?: .{0,200}(?:no such file|not a directory)|not a git repository|could not find .{0,40}(?:package\.json|cargo\.toml|go\.mod|pyproject|makefile|gemfile)"
        r"|no package\.json|go\.mod file not found|ENOENT.{0,80}package\.json|no importer manifest|does not contain main module|directory prefix .{1,80} does not contain"
        r"|outside (?:the )?(?:repository|main module)|no such file or directory|cannot access|can't open file|no makefile found|no such directory|does not exist",
        "test expectation": r"assert|expected|--- FAIL|\b(?-i:FAIL(?:ED|URES?)?)\b|failing|\b\d+ failed|toEqual|toBe\b|snapshot|to equal|test.{0,20}failed|\bnot ok\b",
    }.items()
}
_TESTS = compile_late(
    r"\b(?:test|tests|spec|rspec|pytest|jest|vitest|playwright|cypress|tox|nox|e2e)\b"
)
_CHECKS = compile_late(
    r"\b(?:build|lint|check|tsc|mypy|pyright|ruff|eslint|vale|compile|vet|clippy|fmt)\b"
)
# Commands that name a tool without running it: `pnpm add vitest`.
_FETCHES = compile_late(r"^\S{1,20} (?:add|install|i|remove|uninstall|upgrade|update)\b")
CODE = ("type or lint rule", "test expectation")  # kinds that an edit of the code fixes
FLAKY = "flaky"
# Kinds that no other wording of the command fixes.
_NOT_BY_WORDING = (*CODE, "permission", "service not running", "port in use")
# Kinds that lie in what a command needs, not in the code that it works on.
_SURROUNDINGS = (
    "version",
    "missing dependency",
    "wrong directory",
    "environment variable",
    "wrong flag",
)
_WORKS = compile_late(r"lint|test|fmt|format|check|build|type")
# Options with which a check passes because it checks less.
_NARROWS = compile_late(
    r"(?:^| )(?:-[a-zA-Z]\b|--?(?:grep|filter|test|ignore|deselect|exclude|skip|only|last|lf|ff|bail|watch|related|changed|quiet|silent|version|help|list|dry|pass|no-|max-warn|exit|allow|shard))"
)
# Options that name tests, with their value.
_SELECTS = compile_late(
    r"(?<= )-{1,2}(?:run|k|m|t|g|grep|filter|test|only|testNamePattern)[= ](?:'[^']*'|\"[^\"]*\"|\S+)"
)
_RUNNERS = frozenset("npx pnpx bunx uvx pnpm npm yarn bun uv poetry pdm run exec dlx x".split())
# Commands that may fix a kind of failure; if one of them ran, it is the fix.
_REMEDIES = {
    "missing dependency": compile_late(
        r"\b(?:install|ci|add|sync|restore|bootstrap|setup|venv|get|tidy|update|upgrade|i|activate|link|use|corepack)\b"
    ),
    "version": compile_late(
        r"\b(?:install|update|upgrade|use|add|tidy|lock|sync|get|i|generate)\b"
    ),
    "permission": compile_late(
        r"\b(?:chmod|chown|sudo|login|auth|ssh-add|setup-git|token|set-url)\b"
    ),
    "service not running": compile_late(
        r"\b(?:start|up|run|serve|open|restart|launch|colima|systemctl|dev)\b"
    ),
    "port in use": compile_late(r"\b(?:kill|pkill|fuser|stop|down|rm)\b"),
    "environment variable": compile_late(r"\b(?:export|cp|source|direnv|dotenv|secret)\b|\w=\S"),
    "conflict": compile_late(
        r"\bgit (?:pull|fetch|rebase|merge|stash|reset|checkout|switch|add|rm|commit|push|branch|worktree|clean|restore)\b|\brm\b"
    ),
    "wrong directory": compile_late(r"\b(?:cd|mkdir|cp|mv|git|touch|init)\b"),
}
# A runner that lacks a target or a script, and words that name the same work there.
_NO_TARGET = compile_late(
    r"no rule to make target|missing script|unknown (?:script|command|task|target|recipe|goal)|no task|no such command|command .{1,60} not found"
    r"|(?:no|not contain|how to build|find) (?:such )?(?:task|recipe|target|goal)\b|(?:task|recipe|target|goal) (?:.{1,60} )?(?:not found|does not exist|could not be found|never defined|not defined)",
    re.IGNORECASE,
)
_SYNONYMS = tuple(
    frozenset(words.split())
    for words in (
        "test tests unit spec",
        "lint fmt format style fix prettier",
        "build compile bundle dist package",
        "dev start serve run watch",
        "type types typecheck tsc mypy typing",
        "migrate migration migrations upgrade",
    )
)
# What fixes a command whose program is not known: it gets ready what the error may be about.
_PREPARES = compile_late(
    r"\b(?:install|add|sync|restore|bootstrap|setup|init|update|upgrade|login|auth|start|up|restart|enable|create|build|generate|gen|migrate|kill|stop|chmod|chown|export|clean|reset|pull|mkdir|trust|allow|use|unlock|set)\b"
)
# Commands of git whose outcome depends on the paths that they name.
_BY_PATH = ("git add", "git rm", "git mv", "git commit", "git restore")
JOINT = " && "
# Commands that carry a change to where it is checked, and are not the change.
_CARRIES = compile_late(r"git (?:add|commit|push|stash)\b")
_SETTINGS = compile_late(
    r"\.(?:json|jsonc|toml|ya?ml|ini|cfg|conf|env|lock|properties|gradle|mod|xml)$|/\.[\w.-]+$|file$|\.(?:config|setup)\.[cm]?[jt]s$|(?:conftest|noxfile)\.py$"
)
_REMEMBERED = 12  # changes since a failure; a bound
_PENDING = 12  # failures of a session that wait for their fix; a bound
# Commands behind a failure among which another form of it counts as its correction. By hand.
_NEAR = 8
_SPELT = 0.7  # likeness of two spellings of one word; by hand
_FILES = 2  # edited files that can be named as the fix; by hand
_TEXT = 160  # characters of a command, an error or a changed line
_ERROR_LENGTH = 600  # characters of an error that its signature is made of


class Run(NamedTuple):
    """A command whose outcome is certain, or that may have changed something (`passed` None)."""

    command: str
    place: str  # the directory, '' where it is not known
    passed: bool | None


class Failure(NamedTuple):
    """A failed command, with what fixed it where that is known."""

    command: str
    place: str
    error: str
    signature: str
    kind: str
    line: int
    at: str
    times: int = 1
    fix: str = ""
    fixed_line: int = 0
    tried: Sequence[str] = ()  # commands after which the same error came again
    causes: Sequence[str] = ()  # names of the cause, as other commands meet it

    @property
    def text(self) -> str:
        """The failure and its fix as a statement."""
        statement = f"`{show_command(self.command)}` failed: {self.error.rstrip('.')}."
        return f"{statement} Fixed: {self.fix}." if self.fix else statement


class Pending(NamedTuple):
    """A failure that was not fixed yet, and what was changed since. JSON-able."""

    failure: Failure
    changes: list[list[str]]  # each an edit (file, change) or a command ("", command)
    cleared: list[list[str]] | None = (
        None  # the changes after which the command failed in another way
    )
    commands: int = 0  # that ran since
    interrupted: bool = False  # whether the user spoke since, who may have done anything


# Shell lines


def read_runs(event: ToolEvent) -> list[Run]:
    """The commands of a shell line with their outcomes, as far as its exit status proves them."""
    line = unwrap_line(event.command)
    steps = split_line(line) if len(line) < COMMAND_LENGTH else None
    if steps is None or not steps or event.failed is None:
        return [Run(clean_command(event.command), event.directory, None)]
    strict = any(re.match(r"set -\w*e", step[0]) for _, step in steps)
    piped = "pipefail" in event.command
    start = 0
    if not strict:  # the exit status is that of the last list of commands
        start = max(at for at, (joint, _) in enumerate(steps) if joint in ("", ";", "&"))
    tail = steps[start:]
    doubtful = any(joint == "||" for joint, _ in tail)
    place = event.directory
    runs: list[Run] = []
    for at, (_, members) in enumerate(steps):
        place = _enter(place, members[0])
        bare = strip_command(members[0])
        if _makes_file(members):
            runs.append(Run(" | ".join(map(join_blanks, members)), place, None))
            continue
        if not bare or (_STAGE.match(bare) and not bare.startswith(_CHANGING_STAGE)):
            continue
        shown = clean_command(members[0])
        if runs and all(one.startswith(_ENVIRONMENT) for one in (runs[-1].command, bare)):
            runs[-1] = Run(runs[-1].command + JOINT + shown, place, None)
            continue
        certain = at >= start and not doubtful
        if certain and len(members) > 1 and not piped:
            passes = _PASSED.search(event.output) and not _SHOWS_FAILURE.search(event.output)
            certain = bool(passes) and not event.failed
        runs.append(Run(shown, place, True if certain and not event.failed else None))
    if event.failed:
        return _find_failed(event, tail, doubtful, piped, runs)
    if hidden := _find_hidden(event, steps, runs):
        return hidden
    chain = [run for run in runs[-len(tail) :] if run.passed and not _STAGE.match(run.command)]
    if len(chain) > 1 and not strict:  # a line that failed as a whole may pass as a whole
        whole = Run(JOINT.join(run.command for run in chain), chain[0].place, True)
        return [whole, *runs]
    return runs


def _find_hidden(
    event: ToolEvent, steps: Sequence[tuple[str, list[str]]], runs: list[Run]
) -> list[Run]:
    """Return the runs of a line that passed although its one command failed.

    A filter, or an `echo` of the exit status, hides the failure.
    """
    counting = [members for _, members in steps if not _is_stage(members)]
    runs = list(runs)
    covered = any(joint == "||" for joint, _ in steps)
    while len(counting) > 1 and runs and _LOOKS.match(strip_command(counting[-1][0])):
        covered = True  # what it printed is shown afterwards: `npm test > log; tail log`
        counting.pop()
        runs.pop()
    if len(counting) != 1 or len(runs) != 1 + _count_moves(runs):
        return []
    members = counting[0]
    filters = [name_program(strip_command(one)) in _FILTERS | {"grep"} for one in members[1:]]
    code = _read_printed_status(event, steps, piped=len(members) > 1)
    covered = covered or bool(filters)
    failed = code != 0 if code is not None else covered and shows_failure(event.output)
    if not all(filters) or not (failed or code == 0):
        return []
    return [*runs[:-1], runs[-1]._replace(passed=not failed)]


def _is_stage(members: Sequence[str]) -> bool:
    bare = strip_command(members[0])
    return not bare or bool(_STAGE.match(bare) and not _makes_file(members))


def _makes_file(members: Sequence[str]) -> bool:
    """Return True for commands such as `echo x > file`, whose redirection changes something."""
    looks = _STAGE.match(members[0]) or _LOOKS.match(strip_command(members[0]))
    written = writes_file(members[-1]) or re.match(r"(?:sudo )?tee (?!/dev|/tmp)", members[-1])
    return bool(looks and written)


def _count_moves(runs: Sequence[Run]) -> int:
    return sum(run.command.startswith(_CHANGING_STAGE) for run in runs)


def _read_printed_status(
    event: ToolEvent, steps: Sequence[tuple[str, list[str]]], piped: bool
) -> int | None:
    """The exit status that a line prints itself: `npm test; echo "exit $?"`."""
    last = steps[-1][1][0]
    variable = "${PIPESTATUS[0]}" if piped else "$?"
    if not last.startswith("echo ") or variable not in last or len(steps) < 2:
        return None
    before, _, behind = last.removeprefix("echo ").strip().strip("\"'").partition(variable)
    pattern = rf"^{re.escape(before)}(\d{{1,3}}){re.escape(behind)}\s*$"
    found = re.findall(pattern, event.output, re.MULTILINE)
    return int(found[-1]) if found else None


def _find_failed(
    event: ToolEvent,
    tail: Sequence[tuple[str, list[str]]],
    doubtful: bool,
    piped: bool,
    runs: list[Run],
) -> list[Run]:
    """The runs of a line that failed: the step that must have, or the line from the first that may have."""
    may_fail: list[tuple[str, str]] = []
    place = event.directory
    for _, members in tail:
        place = _enter(place, members[0])
        last = strip_command(members[-1])
        filtered = len(members) > 1 and not piped
        if not last or _STAGE.match(last) or (filtered and name_program(last) in _FILTERS):
            continue
        may_fail.append(("" if filtered else clean_command(members[0]), place))
    if moved := _NOT_ENTERED.search(event.output):
        return _find_not_entered(event, tail, moved[1], runs)
    if doubtful or not may_fail or not all(command for command, _ in may_fail):
        return runs
    failed = Run(JOINT.join(command for command, _ in may_fail), may_fail[0][1], False)
    before = [run for run in runs if run.command not in dict(may_fail)]
    return [*before, failed]


def _find_not_entered(
    event: ToolEvent, tail: Sequence[tuple[str, list[str]]], folder: str, runs: list[Run]
) -> list[Run]:
    """The runs of a line that failed at its first step, a `cd` into a folder that is not there."""
    first, *rest = [clean_command(members[0]) for _, members in tail]
    if first.split()[:1] != ["cd"] or folder.startswith(("/", "~")) or "$" in first or not rest:
        return runs
    return [Run(JOINT.join([first, *rest]), event.directory, False)]


def _enter(place: str, step: str) -> str:
    """The directory behind a step."""
    found = re.match(r"(?:cd|pushd)\s+(['\"]?)([^'\"\s]{1,400})\1\s*$", step)
    if not found or found[2] == "-" or "$" in found[2]:
        return place
    return posixpath.normpath(posixpath.join(place, found[2]))


def is_relevant(command: str, kind: str, error: str) -> bool:
    """Return True if a failure of this command is worth keeping."""
    first = strip_command(command.split(JOINT)[0])
    if _QUERIES.match(first) and kind != "wrong flag" and not _UNANSWERED.search(error):
        return False
    programs = [name_program(step) for step in command.split(JOINT)]
    if programs[0] in _REMOTE:
        return bool(_UNREACHED.search(error))
    if programs[0] == "cd":
        return kind == "wrong directory"
    if any(program in PROGRAMS for program in programs):
        return True
    named = kind == "missing dependency" and programs[0] in error
    return named or not _LOOKS.match(first)


def is_central(command: str) -> bool:
    """Return True for a command of a known tool; a failure of others is kept only with a fix."""
    steps = command.split(JOINT)
    query = _QUERIES.match(strip_command(steps[0]))
    return not query and any(name_program(step) in PROGRAMS | {"cd"} for step in steps)


# Errors


def find_error(output: str) -> str:
    """The line of an output that says what went wrong, short; '' where none does."""
    return _shorten(_find_error_line(output))


def _find_error_line(output: str) -> str:
    # Gemini CLI puts a label before what was printed.
    lines = [
        _ESCAPES.sub("", line).strip().removeprefix("Output: ") for line in output.splitlines()
    ]
    lines = [line for line in lines if any(map(str.isalpha, line)) and not _EXIT_LINE.match(line)]
    telling = [line for line in lines if not _NOISE.match(line)]
    caused = next((at for at, line in enumerate(telling) if line == "Caused by:"), -1)
    causes = [at for at, line in enumerate(telling) if at > caused and not _SUMMARY.match(line)]
    summaries = sorted(set(range(len(telling))) - set(causes), key=lambda at: -len(telling[at]))
    for places, pattern in (
        (causes, _STRONG),
        (causes, _WEAK),
        (summaries, _STRONG),
        (summaries, _WEAK),
    ):
        for at in places:
            line = telling[at]
            if pattern.search(line) and not line.startswith("Traceback"):
                following = telling[at + 1] if at + 1 < len(telling) else ""
                if line.startswith("--- FAIL") and _GO_CAUSE.match(following):
                    return following
                words = len(re.findall(r"\w+", line))
                bare = words < 3 or (line.endswith(":") and words < 8)
                more = following if bare else ""
                return f"{line} {more}".strip()[:_ERROR_LENGTH]
    return telling[0][:_ERROR_LENGTH] if len(telling) == 1 else ""


_HEREDOC = compile_late(r'"\$\(cat <<\w{1,40}\s*\)"')


def show_command(command: str) -> str:
    """Write a command on one line: no heredoc text, quotes kept exactly, cut before another command."""
    first, *more = join_blanks(_HEREDOC.sub("…", command)).split("\n", 1)
    return _cut(f"{first.rstrip()} …" if more else first)


def _shorten(text: str) -> str:
    return _cut(" ".join(text.split()))


def _cut(line: str) -> str:
    return line if len(line) <= _TEXT else f"{line[: _TEXT - 1].rstrip()}…"


# Errors that mean one file: with another file it is another error.
_ABOUT_FILE = compile_late(
    r"no such file|permission denied$|cannot access|can't open file|does not exist|is a directory|not a directory|\bcd: |ENOENT",
    re.IGNORECASE,
)
_SHELL = compile_late(r"^(?:/\S{0,40}/)?(?:ba|z|da)?sh: (?:line \d+: |\d+: )?")
_FILE_NAME = compile_late(r"[\w.@+/-]{0,200}[/.][\w.@+/-]{1,200}|(?<=cd: )[\w.@+/-]{1,200}")

_NORMAL: Sequence[tuple[re.Pattern[str], str]] = [
    (compile_late(pattern, re.IGNORECASE), by)
    for pattern, by in (
        (r"\x1b\[[0-9;?]{0,20}[A-Za-z]", ""),
        (r"^(?:sh|dash): (?:\d+: )?([\w./@-]{1,60}): not found$", r"\1: command not found"),
        (r"^.{0,60}?:?\s?line \d+: ", ""),
        (r"^(?:/usr)?/bin/(?:ba|z|da)?sh: |^\(eval\):\d+: |^(?:ba|z)?sh: ", ""),
        (r"command not found: ([\w./@-]{1,60})", r"\1: command not found"),
        (r"^(?:npm )?(?:err!|error|fatal|\[error\]):? (?=\S{1,80} \S)", ""),
        (r"\bfailed to execute goal \S{1,200}(?: \S{1,80})? on project \S{1,100}:", "failed goal:"),
        (
            r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?",
            "<time>",
        ),
        (r"\b\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\b", "<time>"),
        (r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<id>"),
        (r"\b[a-z]{3,8}://[^\s'\"<>)]{1,400}", "<url>"),
        (r"^(diff in) \S.*", r"\1"),
        (r"\b0x[0-9a-f]{2,16}\b", "<address>"),
        (
            r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b|\blocalhost:\d{1,5}\b|(?<![\w])\[?::1?\]?:\d{1,5}\b",
            "<address>",
        ),
        (r"\bport \d{1,5}\b", "port #"),
        (
            r"(?<![\w@/\\])(?!@)(?:[a-z]:)?[\w.@+-]{0,80}(?:[/\\][\w.@+\[\]-]{1,120}){2,}[/\\]?(?:[:(]\d+(?:[:,]\d+)?\)?)?",
            "<path>",
        ),
        (
            r"(?<![\w@'\"])(?:~|\.{1,2})?[/\\][\w.@+-]{1,120}[/\\]?(?:[:(]\d+(?:[:,]\d+)?\)?)?",
            "<path>",
        ),
        (r"(?<![\w@'\"/])[\w.-]{1,80}/[\w.-]{1,80}\.\w{1,6}(?:[:(]\d+(?:[:,]\d+)?\)?)?", "<path>"),
        (
            r"\b[\w-]{1,80}\.(?:tsx?|jsx?|mjs|py|rs|go|rb|java|kt|swift|c|cc|cpp|h|php|ex|exs|vue|svelte)[:(]\d+(?:[:,]\d+)?\)?",
            "<path>",
        ),
        (r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b", "<hash>"),
        (
            r"\b\d{1,9}(?:[.,]\d{1,9})?\s?(?:ms|µs|ns|s|sec|secs|seconds|min|minutes|kb|mb|gb|kib|mib|bytes)\b",
            "<amount>",
        ),
        (r"(?<![A-Za-z\d])v?\d{1,9}(?:\.\d{1,9})*(?![\w])", "#"),
        (r"(?<=[\s:'\"@(])[\^~*<>=]{1,3}(?=[\s#'\")]|$)#?", "#"),
        (r"[`'\"“”‘’]", "'"),
        (r"\bpathspec '[^']{1,300}'", "pathspec <path>"),
        (r"\bunexpected argument '(?!-)[^']{1,300}'", "unexpected argument <value>"),
        (r"\b(branch|tag|worktree) '[^']{1,200}'", r"\1 <name>"),
        (r"\b(current branch) \S{1,200} (?=has |is )", r"\1 <name> "),
        (r" \(did you mean [^)]{1,200}\)", ""),
        (r"^[\w ]{1,40} failed: (?=graphql: )| \([a-z]{1,20}(?-i:[A-Z])\w{0,30}\)$", ""),
        (
            r"(?<![\w/])(?:feat|feature|fix|bugfix|hotfix|chore|docs|refactor|release|perf|claude|codex|copilot|dependabot|renovate)/[\w./-]{1,100}",
            "<name>",
        ),
        (r"\] +\S{1,200} -> \S{1,200}", "] <ref>"),
        (r"\s{1,20}", " "),
    )
]


def normalise_error(error: str) -> str:
    """An error without paths, positions, hashes, times, addresses, amounts and colours."""
    for pattern, by in _NORMAL:
        error = pattern.sub(by, error)
    return re.sub(r"^(?:<path>|[\s:#•*>|-])+", "", error).rstrip(" .:…").lower()


def sign_error(command: str, error: str) -> str:
    """Return the signature of an error. A vague one counts only for the same kind of command."""
    normal = normalise_error(error)
    if _ABOUT_FILE.search(error) and "pathspec" not in normal:
        plain = _SHELL.sub("", error)
        named = (posixpath.basename(name) for name in _FILE_NAME.findall(plain))
        normal = " ".join([normal, *sorted(set(named))]).lower()
    words = re.findall(r"[^\W\d_]{3,}", re.sub(r"<\w+>", "", normal))
    vague = len(words) < 3 or "pathspec" in normal  # which many commands say of many things
    basis = normal if not vague else f"{name_job(command)}\0{normal}"
    return blake2b(basis.encode("utf-8", "replace"), digest_size=8).hexdigest()


def name_kind(command: str, error: str) -> str:
    """The kind of a failure by the cause that it names, by its wording, or else by what its command does."""
    cause = next(iter(name_causes("", "", error, "")), "").partition(":")[0].partition(" ")[0]
    if cause in CAUSE_KINDS:
        return CAUSE_KINDS[cause]
    for kind, pattern in KINDS.items():
        if pattern.search(error):
            return kind
    if _FETCHES.search(command[:300]):
        return "other"
    if _TESTS.search(command[:300]) and not _CHECKS.search(name_program(command)):
        return "test expectation"
    return "type or lint rule" if _CHECKS.search(command[:300]) else "other"


def is_check(command: str) -> bool:
    """Return True for a command that tests, builds or lints."""
    return bool(_TESTS.search(command[:300]) or _CHECKS.search(command[:300]))


def read_failure(run: Run, event: ToolEvent) -> Failure | None:
    """The failure of a run, where its error can be named and it is worth keeping."""
    line = _find_error_line(event.output)
    kind = name_kind(run.command, line) if line else ""
    if not line or not is_relevant(run.command, kind, line):
        return None
    own = sign_error(run.command, line)
    job, normal = name_job(run.command), normalise_error(line)
    causes = (*name_causes(job, kind, line, normal), name_text(job, normal))
    return Failure(
        run.command, run.place, _shorten(line), own, kind, event.line, event.at, causes=causes
    )


# From a failure to its fix


def follow_events(
    events: Iterable[ToolEvent], waiting: Sequence[Pending] = ()
) -> tuple[list[Failure], list[Pending]]:
    """The failures that were fixed, and those that still wait, each with the changes since."""
    pending, fixed = list(waiting), []
    for event in events:
        if event.tool:
            ended, pending = _follow_tool(pending, event)
            fixed += ended
        if event.file or event.tool:
            if event.file and event.failed is not True:
                _note_change(pending, [event.file, event.change])
            pending = [
                one._replace(commands=one.commands + 1) if one.failure.kind in TOOL_KINDS else one
                for one in pending
            ]
            continue
        for run in read_runs(event):
            if run.passed is False:
                failure = read_failure(run, event)
                done = [_find_further(one, run, failure, event) for one in pending]
                fixed += [one for one in done if one]
                pending = [one for one, end in zip(pending, done, strict=True) if not end]
                pending = _take_failure(pending, failure)
            else:
                settles = bool(run.passed)
                done = [
                    _find_fix(one, run, event)
                    if settles or one.failure.command.startswith("cd ")
                    else None
                    for one in pending
                ]
                fixed += [one for one in done if one and one.fix]
                pending = [one for one, end in zip(pending, done, strict=True) if not end]
            looks = _LOOKS.match(strip_command(run.command)) and not _makes_file([run.command])
            whole = JOINT in run.command and not run.command.startswith(_ENVIRONMENT)
            if not looks and not whole and run.passed is not False:
                _note_change(pending, ["", run.command])
        pending = [one._replace(commands=one.commands + 1) for one in pending]
    return fixed, pending[-_PENDING:]


def follow_turns(
    turns: Iterable[tuple[str, Iterable[ToolEvent]]], waiting: Sequence[Pending] = ()
) -> tuple[list[Failure], list[Pending]]:
    """Follow the events of turns, each with the role of who speaks."""
    pending, fixed = list(waiting), list[Failure]()
    for role, events in turns:
        if role == "user":
            pending = [one._replace(interrupted=True) for one in pending]
        ended, pending = follow_events(events, pending)
        fixed += ended
    return fixed, pending


def _follow_tool(pending: list[Pending], event: ToolEvent) -> tuple[list[Failure], list[Pending]]:
    """The failures of tools that a call fixed, and those that still wait, its own included."""
    if event.failed:
        failure = read_tool_failure(event)
        return [], _take_failure(pending, failure)
    fixed: list[Failure] = []
    kept: list[Pending] = []
    for one in pending:
        failure, fix = one.failure, None
        if failure.kind in TOOL_KINDS and one.commands < NEAR:
            fix = find_tool_fix(failure.kind, failure.command, failure.error, event)
        if fix == "" and failure.kind == TOOL_CALL and [file for file, _ in one.changes] == [""]:
            fix = describe_fix(failure, one.changes)
        if fix is None:
            kept.append(one)
        elif fix and (failure.kind != EDIT_CONFLICT or failure.times > 1):
            fixed.append(failure._replace(fix=fix, fixed_line=event.line))
    return fixed, kept


def read_tool_failure(event: ToolEvent) -> Failure | None:
    """The failure of a tool that is no shell, where it is worth keeping."""
    found = read_tool_error(event, normalise_error)
    if found is None:
        return None
    kind, error, own = found
    call = describe_call(event)
    causes = name_tool_cause(event.tool, normalise_error(error)) if kind == TOOL_CALL else ()
    return Failure(
        call, event.directory, _shorten(error), own, kind, event.line, event.at, causes=causes
    )


def _note_change(pending: Sequence[Pending], change: list[str]) -> None:
    for one in pending:
        if change not in one.changes:
            one.changes.append(change)
            del one.changes[:-_REMEMBERED]


def _take_failure(pending: list[Pending], failure: Failure | None) -> list[Pending]:
    """Add a new failure to those that wait.

    If it is the same again, what was tried did not fix it; if it is another of the same command, the one before is over, or hidden.
    """
    if failure is None:
        return pending
    kept: list[Pending] = []
    for one in pending:
        same = _is_same(one.failure, failure.command, failure.place)
        if one.failure.signature == failure.signature:
            tried = [change for file, change in one.changes if not file]
            failure = failure._replace(
                times=one.failure.times + 1,
                line=one.failure.line,
                tried=[*one.failure.tried, *map(show_command, tried)][-_REMEMBERED:],
            )
        elif same:
            frozen = list(one.changes) if one.cleared is None else one.cleared
            kept.append(one._replace(cleared=frozen))
        else:
            kept.append(one)
    return [*kept, Pending(failure, [])]


def _is_same(failure: Failure, command: str, place: str) -> bool:
    return failure.command == command and (failure.place == place or not place)


def _find_fix(one: Pending, run: Run, event: ToolEvent) -> Failure | None:
    """Return the failure with the fix that a passing run shows, '' if it is over for an unknown reason."""
    failure = one.failure
    fix = None
    if failure.command.startswith("cd "):
        fix = _describe_place(failure, run) if one.commands < _NEAR else None
        return None if fix is None else failure._replace(fix=fix, fixed_line=event.line)
    if JOINT in run.command and JOINT not in failure.command:
        return None  # its steps are looked at one by one
    if event.escalated and _is_same(failure, run.command, run.place):
        return failure._replace(
            kind="permission",
            fix="ran it outside of the sandbox, with escalated permissions",
            fixed_line=event.line,
        )
    if _is_same(failure, run.command, run.place):
        changes = one.changes if one.cleared is None else one.cleared
        fix = describe_fix(failure, changes)
        if not changes and one.cleared is None:
            failed_as, failure = failure.kind, failure._replace(kind=FLAKY)
            # Others wait for a step that may have been taken elsewhere, such as a login.
            by_itself = failed_as in CODE and not one.interrupted
            fix = "passed when run again" if by_itself and one.commands <= _NEAR else ""
    elif one.commands < _NEAR and (
        _is_substitute(failure, run.command)
        or _is_other_environment(failure.command, run.command)
        or _is_namesake(failure, run.command)
        or _is_module_of(failure.command, run.command)
        or (not _is_of_kind(failure) and _is_reworded(failure.command, run.command))
    ):
        fix = _say_instead(failure, run)
    elif one.commands < _NEAR and _is_relocated(failure.command, run.command):
        fix = _describe_relocation(one, run)
    elif one.commands < _NEAR and (
        failure.kind not in _NOT_BY_WORDING
        or not _is_of_kind(failure)
        or _only_adds_options(failure, run.command)
    ):
        fix = _describe_correction(one, run)
    if fix is None and failure.kind != "wrong directory" and _is_same_job(failure, run.command):
        ran = _find_remedies(one)
        fix = f"ran `{show_command(ran[-1])}`" if ran else None
    if fix and fix.startswith("ran it in "):
        failure = failure._replace(kind="wrong directory")
    return None if fix is None else failure._replace(fix=fix, fixed_line=event.line)


def _is_substitute(failure: Failure, command: str) -> bool:
    """Return True if a command does the work of a missing program: `make lint-go` that of `golangci-lint`."""
    program = name_program(failure.command)
    missing = failure.kind == "missing dependency" and "command not found" in failure.error
    works = set(_WORKS.findall(program)) & set(_WORKS.findall(command))
    before, after = (
        {word for word in one.split()[1:] if not word.startswith("-")}
        for one in (strip_command(failure.command), strip_command(command))
    )
    same = bool(works) or bool(before and before == after)
    return missing and program in failure.error and same and program not in command.split()


def _is_same_job(failure: Failure, command: str) -> bool:
    """Return True if a command does the work of the failed one, on the same things where those matter."""
    if name_job(command) != name_job(failure.command):
        return False
    by_path = name_family(failure.command) in _BY_PATH
    if _is_known(failure.command) and not by_path:
        return True
    return _list_operands(failure.command) <= _list_operands(command)


def _list_operands(command: str) -> set[str]:
    return {word for word in strip_command(command).split() if not word.startswith("-")}


def _is_other_environment(old: str, new: str) -> bool:
    """Return True if a command is the same with a variable set in front of it."""
    return new != old and new.endswith(old) and strip_command(new) == strip_command(old)


def _is_namesake(failure: Failure, command: str) -> bool:
    """Return True if a command names a target or script that a runner has, in place of one that it lacks."""
    before, after = (strip_command(one).split() for one in (failure.command, command))
    if failure.kind != "wrong flag" or not _NO_TARGET.search(failure.error):
        return False
    if len(before) != len(after) or not before or before[0] != after[0]:
        return False
    other = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    if len(other) != 1 or other[0][0] not in failure.error:
        return False
    old, new = (set(re.findall(r"[a-z]{3,}", one.lower())) for one in other[0])
    alike = any(a.startswith(b) or b.startswith(a) for a in old for b in new)
    alike = alike or (before[0] == "make" and "check" in new and bool(old & {"test", "tests"}))
    return alike or any(old & group and new & group for group in _SYNONYMS)


def _say_instead(failure: Failure, run: Run) -> str:
    where = posixpath.basename(run.place) if run.place != failure.place else ""
    return f"ran `{show_command(run.command)}`{f' in {where}' if where else ''} instead"


def _is_of_kind(failure: Failure) -> bool:
    """Return True if the error itself, and not only the command, says of what kind a failure is."""
    return name_kind("", failure.error) == failure.kind


def _is_module_of(old: str, new: str) -> bool:
    """Return True if a command runs a script as a module: `python -m shop.cli` for `src/shop/cli.py`."""
    script, module = re.search(r"\s(\S+)\.py\b", old), re.search(r" -m ([\w.]+)", new)
    return bool(script and module and script[1].replace("/", ".").endswith(module[1]))


def adds_options(old: str, new: str) -> list[str]:
    """Return the options that a command adds to another, or none if it differs in anything else."""
    before, after = old.split(), new.split()
    added = [word for word in after if word not in before]
    options = [word for word in added if word.startswith("-")]
    values = [word for word in added if word not in options]
    kept = [word for word in after if word in before] == before
    plain = all(after[after.index(word) - 1] in options for word in values)
    return options if kept and plain else []


def _only_adds_options(failure: Failure, command: str) -> bool:
    """Return True if a command is the failed one with more options, which do not leave out what failed."""
    options = adds_options(failure.command, command)
    return bool(options) and not (failure.kind in CODE and _NARROWS.search(" ".join(options)))


def _is_relocated(old: str, new: str) -> bool:
    """Return True if a command is the same by another copy of its program: `.venv/bin/pip install x`."""
    before, after = (strip_command(one).split() for one in (old, new))
    names = [one[0].rpartition("/")[2] for one in (before, after) if one]
    return before != after and len(set(names)) == 1 and before[1:] == after[1:]


def _describe_relocation(one: Pending, run: Run) -> str | None:
    made = [command for file, command in one.changes if not file and command != run.command]
    if len(made) > 1 or any(file for file, _ in one.changes):
        return None
    first = f"ran `{show_command(made[0])}`, then " if made else "ran "
    return f"{first}`{show_command(run.command)}`" + ("" if made else " instead")


def _find_remedies(one: Pending) -> list[str]:
    """The commands since a failure that may fix its kind."""
    remedy = _REMEDIES.get(one.failure.kind)
    changes = one.changes if one.cleared is None else one.cleared
    return [
        command
        for file, command in changes
        if remedy and not file and remedy.search(command) and _may_fix(one.failure, command)
    ]


def _may_fix(failure: Failure, command: str) -> bool:
    """Return True if a command behind a failure may be named as its fix."""
    bare = strip_command(command)
    if name_program(bare) in _REMOTE or (_ASKS.match(bare) and "<" not in bare):
        return False
    if name_family(failure.command) in _BY_PATH and failure.kind == "conflict":
        named = " ".join([failure.error, *_list_operands(failure.command) - {"git"}])
        words = {posixpath.basename(one.strip("'\"")) for one in command.split()[1:]}
        return any(len(one) > 3 and one in named for one in words)
    if _is_known(failure.command) or _PREPARES.search(bare):
        return True
    remedy = _REMEDIES.get(failure.kind)
    words, known = (
        set(re.findall(r"[^\W_]{4,}", one)) for one in (bare, f"{failure.command} {failure.error}")
    )
    program = name_program(bare) == name_program(failure.command)
    return bool((remedy and remedy.search(bare)) or program or words & known)


def _is_known(command: str) -> bool:
    """Return True for a command of a program whose ways are known."""
    return any(name_program(step) in PROGRAMS for step in command.split(JOINT))


def _find_further(one: Pending, run: Run, new: Failure | None, event: ToolEvent) -> Failure | None:
    """Return the failure with its fix, if another form of the command got past its error.

    That form failed because of the code.
    """
    failure = one.failure
    if failure.kind not in _SURROUNDINGS or one.commands >= _NEAR or failure.command == run.command:
        return None
    stuck = new is not None and (new.kind in _SURROUNDINGS or new.signature == failure.signature)
    if stuck or not (
        _is_reworded(failure.command, run.command) or _is_substitute(failure, run.command)
    ):
        return None
    return failure._replace(fix=_say_instead(failure, run), fixed_line=event.line)


def _is_reworded(old: str, new: str) -> bool:
    """Return True if two commands start one program on the same things, by another runner or folder."""
    before, after = (_name_work(command) for command in (old, new))
    return len(before) > 1 and before[:1] == after[:1] and before[-1] == after[-1]


def _name_work(command: str) -> list[str]:
    """The program of a command behind its runners, and its arguments without options and folders."""
    words = drop_places(strip_command(command)).split()
    words = [word for word in words if not word.startswith("-")]
    while len(words) > 1 and words[0] in _RUNNERS:
        words = words[1:]
    return [posixpath.basename(word.rstrip("/")) for word in words]


def _describe_place(failure: Failure, run: Run) -> str | None:
    """Return the fix of a failed `cd`, by the next command: it was there already, or it ran elsewhere."""
    first, *rest = failure.command.split(JOINT)
    folder = first.removeprefix("cd ").strip("'\" ").rstrip("/")
    name = posixpath.basename(folder)
    if run.place == failure.place and failure.place.endswith(f"/{folder}"):
        return f"the shell was in {name} already: run it without `{first}`"
    moved = run.place != failure.place and name_family(run.command) == name_family(rest[0])
    return f"ran it in {posixpath.basename(run.place)}" if moved and run.place else None


def describe_fix(failure: Failure, changes: Sequence[Sequence[str]]) -> str:
    """Return the change that ended a failure in one line, '' if several changes may have."""
    edits: dict[str, str] = {}
    for file, change in changes:
        if file:
            edits[file] = max(
                edits.get(file, ""), change, key=partial(_count_shared, failure.error)
            )
    commands = [change for file, change in changes if not file]
    if not _CARRIES.match(strip_command(failure.command)) or failure.kind in (*CODE, "other"):
        made = [one for one in commands if not _CARRIES.match(strip_command(one))]
        commands = made or commands
    remedy = _REMEDIES.get(failure.kind)
    possible = [command for command in commands if _may_fix(failure, command)]
    remedies = [command for command in possible if remedy and remedy.search(command)]
    if remedies:
        return f"ran `{show_command(remedies[-1])}`"
    if failure.kind not in CODE and not (
        _TESTS.search(failure.command) or _CHECKS.search(failure.command)
    ):  # code does not fix refusals of git, gh or a service
        edits = {
            file: change
            for file, change in edits.items()
            if _SETTINGS.search(file) or posixpath.basename(file) in failure.error
        }
    named = {
        file: change for file, change in edits.items() if posixpath.basename(file) in failure.error
    }
    if len(edits) > _FILES:
        edits = named
    if 0 < len(edits) <= _FILES:
        return "edited " + " and ".join(_describe_edit(*one) for one in edits.items())
    others = [command for command in commands if not command.startswith("cd ")]
    certain = all(command in possible for command in others)
    if certain and 0 < len(others) <= _FILES and not any(file for file, _ in changes):
        return "ran " + " and ".join(f"`{show_command(command)}`" for command in others)
    return ""


def _count_shared(error: str, change: str) -> tuple[int, bool]:
    """Return how many words an edit shares with an error, and if it says anything."""
    words = set(re.findall(r"\w{3,}", error.lower()))
    return len(words.intersection(re.findall(r"\w{3,}", change.lower()))), bool(change)


def _describe_edit(file: str, change: str) -> str:
    name = "/".join(file.replace("\\", "/").split("/")[-2:])
    return f"{name} ({_shorten(change)})" if change else name


def _describe_correction(one: Pending, run: Run) -> str | None:
    """The fix where a command passes in another form right behind its failure."""
    failure = one.failure
    if failure.command == run.command:
        elsewhere = failure.kind == "wrong directory" or "pathspec" in failure.error
        if not elsewhere or run.place == failure.place:
            return None
        return f"ran it in {posixpath.basename(run.place.rstrip('/')) or run.place}"
    moves = (not file and change.startswith("cd ") for file, change in one.changes)
    if not all(moves) or not _is_variant(failure, run.command):
        return None
    if failure.kind in CODE and _selects_other(failure.command, run.command):
        return None
    if "\n" in run.command or len(run.command) > _TEXT:
        return None  # a separate script, which helps nobody else
    return _say_instead(failure, run)


def _selects_other(old: str, new: str) -> bool:
    """Return True if a check passes because it selects other tests than before."""
    before, after = (set(_SELECTS.findall(drop_places(one))) for one in (old, new))
    return old not in new and bool(after - before)


def _is_about_another(failure: Failure, command: str) -> bool:
    """Return True if a command passes because it does not name what the error names."""
    if _is_known(failure.command) and name_family(failure.command) not in _BY_PATH:
        return False
    if failure.kind == "wrong flag":
        return False
    before, after = _list_operands(failure.command), _list_operands(command)
    lost = {word for word in before - after if word in failure.error}
    new = after - before
    return any(
        not any(word in failure.error or _is_alike(old, word) for word in new)
        for old in lost
        if new
    )


def _is_alike(old: str, new: str) -> bool:
    """Return True if a word is another spelling of the same: a typing error, another folder or ending."""
    one, two = posixpath.basename(old), posixpath.basename(new)
    return one == two or SequenceMatcher(None, one, two).ratio() > _SPELT


def _wraps(failure: Failure, command: str) -> bool:
    """Return True if a command runs the last step of the failed one inside of another environment."""
    step = failure.command.split(JOINT)[-1]
    return " " in step and step in command and step != command


def _is_variant(failure: Failure, new: str) -> bool:
    """Return True if a command is another form of one that failed.

    It has other options, another program, or a step before it. It must be about the same things, except those that the error complains of.
    """
    old = failure.command
    steps = old.split(JOINT)
    looks = _LOOKS.match(strip_command(new)) and not _LOOKS.match(strip_command(old))
    if looks or set(new.split(JOINT)) <= set(steps) or _is_about_another(failure, new):
        return False
    before, after = ({word.strip("'\"") for word in one.split()} for one in (old, new))
    family = name_family(steps[-1])
    same = family == name_family(new.split(JOINT)[-1])
    plain = {word for word in before - {"&&", *family.split()} if not word.startswith("-")}
    targets = {
        word
        for word in plain
        if not any(part in failure.error for part in re.split(r"[,=]", word) if len(part) > 2)
    }
    shared = len(before & after) / max(1, len(before | after))
    arguments = old.split()[1:]
    moved = bool(arguments) and new.split()[-len(arguments) :] == arguments
    moved = moved or _wraps(failure, new)
    moved = moved or [*map(posixpath.basename, old.split())] == [
        *map(posixpath.basename, new.split())
    ]
    renamed = {one for one in targets - after if any(new.startswith(f"{one}-") for new in after)}
    kept = not targets or len(targets & after | renamed) > len(targets) / 2
    return moved or (kept and shared >= (0.4 if same else 0.6))


def read_fix(one: Memory) -> str:
    """Return the fix of a stored failure. A statement that a person has corrected counts."""
    fix = str(one.metadata.get("fix") or "")
    return fix if fix and fix in one.content else one.content.partition(" Fixed: ")[2].rstrip(".")


def describes_same(fix: str, other: str) -> bool:
    """Return True if two fixes are the same, apart from the files that a corrected command works on."""
    if fix.endswith(" instead") and other.endswith(" instead"):
        fix, other = (re.sub(r"\s[^\s`-][^\s`]*[/.][^\s`]*", "", one) for one in (fix, other))
    return fix == other


def edits_settings(fix: str) -> bool:
    """Return True if a fix is an edit of configuration alone, which other files are subject to as well."""
    files = re.findall(r"(?:^edited |\) and |(?<=\w) and )([^\s(]+)(?= \(| and |$)", fix)
    return bool(files) and all(_SETTINGS.search(file) for file in files)


def as_count(value: object, least: int = 0) -> int:
    """A count from metadata, which an import or an edit may have filled with anything."""
    return max(least, value) if isinstance(value, int) else least
