"""The declaration of an agent: its transcripts, its hooks, and the files that connect it to Bethink.

An agent is one file with a value `AGENT` and one line in `plugins.py` (or an entry point of another package). A hook
loads that file at every prompt, so it holds declarations and small functions; `read` imports the transcript reader when
it is called. CONTRIBUTING.md walks through an example.

Folders are relative to the user's home. `${CODEX_HOME:-.codex}` is the folder that this environment variable names,
or `.codex`.
"""

# No `from __future__ import annotations`: NamedTuple compiles each annotation that is a string, and every hook loads this.
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from bethink.model import NOTHING, Strings, Values

if TYPE_CHECKING:
    from bethink.agents.base import Fields, Position
    from bethink.agents.transcript import Transcript

    ReadTranscript = Callable[[Path, Position], Transcript]
    OwnsLine = Callable[[Fields], bool]
    OwnsFile = Callable[[Path, bytes], bool]
    Answer = Callable[[str, str], Values | str | None]
    HasFailed = Callable[[Values, str, str], bool | None]
    Deny = Callable[[str], Values]
    IsBorrowed = Callable[[Mapping[str, str]], bool]
    FindPrompt = Callable[[Values], str]
    FindCalls = Callable[[str, Values], Sequence["ToolCall"]]
    FindRunner = Callable[[Values], str]
    Render = Callable[[Sequence[str], bool], str]
    Disarm = Callable[[str], str]
else:
    ReadTranscript = OwnsLine = OwnsFile = Answer = HasFailed = IsBorrowed = Deny = Callable
    Render = Disarm = FindPrompt = FindRunner = FindCalls = Callable

# Our names for the events of agents.
EVENTS = tuple(
    "session-start subagent-start prompt tool-before tool tool-failure stop subagent-stop pre-compact post-compact session-end".split()
)
TOOL_EVENTS = ("tool-before", "tool", "tool-failure")  # those at a tool call, which can be declined
# The names that most agents use, and ours.
USUAL_EVENTS = MappingProxyType(
    {
        "SessionStart": "session-start",
        "UserPromptSubmit": "prompt",
        "Stop": "stop",
        "SubagentStop": "subagent-stop",
        "PreCompact": "pre-compact",
        "PostCompact": "post-compact",
        "SessionEnd": "session-end",
    }
)


class ToolCall(NamedTuple):
    """A call of a tool, with its outcome as far as the host says it."""

    tool: str
    command: str = ""  # of a shell
    file: str = ""  # that it reads or changes
    output: str = ""
    failed: bool | None = None
    changes: bool = False  # whether it changes the file
    id: str = ""
    arguments: str = ""  # of a tool that is no shell and failed, the short ones


class TranscriptFiles(NamedTuple):
    """Location of an agent's transcripts, and their reader."""

    read: ReadTranscript
    owns_line: OwnsLine = lambda entry: False  # recognise a JSON line; it must match no other agent
    owns_file: OwnsFile = lambda path, head: False  # the same by name and first bytes
    folder: str = ""  # if it is not the agent's own
    patterns: Strings = ()  # of paths below the folder
    project_patterns: Strings = ()  # of paths below a project's folder, where anybody may have put them
    ignored: Strings = ()  # names of files that match a pattern and are no transcripts
    variable: str = ""  # environment variable that names one more file
    timed: bool = True  # turns carry the time at which they were said


class HookDialect(NamedTuple):
    """Names that an agent uses for its events and their fields, and the form of its answers."""

    answer: Answer  # (our event, context) → the JSON object or text to print; None for nothing
    events: Mapping[str, str] = USUAL_EVENTS  # its name → ours; empty if a script calls the hooks
    deny: Deny | None = None  # (reason) → the JSON object that denies a call before it runs
    # Names of the input fields; the first one present counts. `thread.id` is the field `id` of the object `thread`.
    session: Strings = ("session_id",)
    transcript: Strings = ("transcript_path",)
    directory: Strings = ("cwd",)
    prompt: Strings = ("prompt",)
    source: Strings = ("source",)
    subagent: Strings = ("agent_type",)
    subagent_transcript: Strings = ("agent_transcript_path",)
    # (its message, the id of a call, the call's output) → whether it failed; None if that is not known
    has_failed: HasFailed = lambda fields, id, output: None
    names_transcript: bool = True  # the prompt event names the transcript
    project_variables: Strings = ()  # environment variables with the folder where the session began
    is_borrowed: IsBorrowed = lambda environment: False  # another agent runs its hooks
    # (its message) → the name of another agent that runs its hooks and has a dialect; '' for none
    find_runner: FindRunner = lambda fields: ""
    find_prompt: FindPrompt | None = None  # (its message) → the prompt, which the message lacks
    # (our event, its message) → its tool calls; by default those under the names that most agents use (`hooks/calls.py`)
    find_calls: FindCalls | None = None
    # Context lasts for one call of the model: each call gets the briefing and the recall anew.
    ephemeral: bool = False


class HookScript(NamedTuple):
    """A file that calls the hooks, for an agent without command hooks."""

    render: Render  # from the words that start Bethink, and whether it calls hooks at tool calls
    disarm: Disarm  # a script that the user changed, made to call nothing


class PermissionRules(NamedTuple):
    """Rules that let an agent use our tools without asking: list items, members, or a file."""

    rule: str = ""  # for one tool: {tool} is its name
    path: Strings = ()  # of the list, or of the object
    value: Values | str = ""  # of a member; empty if the rules are items of a list
    file: str = ""  # in the agent's folder; by default that of the MCP server
    others: Strings = ()  # rules for what are no tools of ours
    text: str = ""  # of a file that holds nothing else: {tools} is the list of names
    optional: bool = False  # only in a file that exists


class InstallFiles(NamedTuple):
    """The files that connect an agent.

    Templates may contain `$program` and `$args`, the words of the command; `$words`, all of them; `$line`, the same quoted for a shell;
    `$always`, a line that ends with 0 whatever happens; `$name`, a name for the hook; `$places`, the variables that a server needs.
    """

    servers: Strings  # files with MCP servers: the first that exists, else the last
    hooks: str  # the file with hooks, or the script
    server: Values = MappingProxyType({"command": "$program", "args": "$args"})
    server_path: Strings = ("mcpServers", "bethink")
    server_folder: str = ""  # if it is not the agent's own
    places: Strings = ()  # variables that a server gets only if its entry names them
    hooks_folder: str = ""  # the same
    hooks_path: Strings = ("hooks",)  # of the object with a list for each event
    hook: Values = NOTHING
    last: Values = NOTHING  # fields that differ at the end of a session
    before: Values = NOTHING  # fields that differ before a tool call; templates, too
    warm: Values = NOTHING  # the hook that asks the MCP server at a prompt
    matchers: Mapping[str, str] = NOTHING  # our event → the tools for which its hook runs
    grouped: bool = True  # hooks are in groups
    script: HookScript | None = None
    start: str = ""  # of a new file of hooks, without which it is not read
    strict: Strings = ()  # files in which comments and trailing commas make the agent ignore all
    skills: str = ".agents/skills"  # shared by several agents
    skill_fields: Strings = (
        "name",
        "description",
        "compatibility",
    )  # of the front matter; empty for all
    permission: PermissionRules | None = None  # None if it asks nobody, or keeps no such rules
    plugins: str = ""  # the file in which plugins are enabled
    note: str = ""  # shown after an installation


class Agent(NamedTuple):
    """An agent that Bethink knows."""

    name: str
    title: str
    transcripts: TranscriptFiles
    folder: str = ""
    program: str = ""
    hooks: HookDialect | None = None
    install: InstallFiles | None = None
    # How its commands are recognised: variables that it sets for the commands it runs, and its processes, each by
    # the name of its program (`claude`) or by a folder on the way to it (`claude/versions`).
    marks: Strings = ()
    processes: Strings = ()

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that say where the agent keeps its files."""
        folders = (split_folder(one)[0] for one in (self.folder, self.transcripts.folder))
        return tuple(filter(None, (*folders, self.transcripts.variable)))


def split_folder(name: str) -> tuple[str, str, str]:
    """Return the parts of `${VARIABLE:-default}/rest`; without a variable, the folder is the default."""
    if not name.startswith("${"):
        return "", name, ""
    variable, _, rest = name[2:].partition(":-")
    default, _, rest = rest.partition("}")
    return variable, default, rest


def find_folder(name: str, environment: Mapping[str, str], home: Path) -> Path:
    """Return a folder of an agent in the user's home, or where an environment variable says."""
    variable, default, rest = split_folder(name)
    return home / Path(f"{environment.get(variable) or default}{rest}").expanduser()


# Copilot Chat in VS Code

COPILOT_CHAT = "GitHub.copilot-chat"  # the folder of its transcripts


def find_vscode(fields: Values) -> str:
    """Return `vscode` if VS Code runs a hook of Claude Code or Copilot CLI: its transcript says so."""
    names = ("transcript_path", "transcriptPath")
    return "vscode" if any(COPILOT_CHAT in str(fields.get(name, "")) for name in names) else ""


# Forms of answers


def nest_context(event: str, context: str) -> Values:
    """Return an answer as Claude Code, Codex and Gemini CLI read it; `event` is their name of the event."""
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": context}}


def nest_denial(reason: str) -> Values:
    """Return a denial of a tool call as Claude Code and Codex read it."""
    decision = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}
