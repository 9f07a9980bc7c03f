"""Agent hosts: one module each reads its transcripts; `install` has what it takes to connect them.

claude  codex  copilot  gemini  opencode  cursor   readers of agents' transcripts
plain                                              chats of no host, in Markdown or JSON lines
base  transcript                                   what readers share
install  edit                                      connecting agents: their files, and the text in them
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from bethink.errors import InvalidInput
from bethink.hosts.base import START, Position, text_of
from bethink.hosts.transcript import DATABASE, read_head, read_object
from bethink.text import suggest_one_of
from bethink.types import NOTHING

if TYPE_CHECKING:
    from bethink.hosts.transcript import Transcript

HOSTS = ("claude", "codex", "copilot", "gemini", "opencode", "cursor", "plain")
# What most hosts call their events, and what ours are called.
USUAL_EVENTS = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "prompt",
    "Stop": "stop",
    "SubagentStop": "subagent-stop",
    "PreCompact": "pre-compact",
    "PostCompact": "post-compact",
    "SessionEnd": "session-end",
}
PEEK = 64 << 10  # bytes of a file that are looked at to tell whose it is
TRIED = 40  # lines of it
BLANK = b"\xef\xbb\xbf \t\r\n"


class HostFolder(NamedTuple):
    """A folder of a host: in the user's home, or where a variable of the environment says."""

    default: str
    variable: str = ""
    inside: str = ""

    def find(self, environment: Mapping[str, str], home: Path) -> Path:
        moved = environment.get(self.variable)
        return (Path(moved).expanduser() if moved else home / self.default) / self.inside


class Agent(NamedTuple):
    """What is known of an agent, as `agents.toml` says it. Files are below its folder."""

    title: str
    program: str
    folder: HostFolder
    transcripts: Sequence[str]  # patterns
    servers: Sequence[str]  # files of MCP servers: the first that is there, else the last
    hooks: str  # the file of hooks, or of a plugin that calls us
    hook: Mapping[str, Any] = NOTHING  # how it calls us at an event
    last: Mapping[str, Any] = NOTHING  # what differs at the end of a session
    warm: Mapping[str, Any] = NOTHING  # how it asks the MCP server at a prompt
    grouped: bool = True  # whether a hook stands in a group of hooks
    events: Mapping[str, str] = USUAL_EVENTS  # its name of each event → ours; none with a plugin
    server: Mapping[str, Any] = MappingProxyType({"command": "$program", "args": "$args"})
    server_path: Sequence[str] = ("mcpServers", "bethink")
    server_folder: HostFolder | None = None  # where it is another one
    transcript_folder: HostFolder | None = None  # where it is another one
    skills: HostFolder = HostFolder(".agents/skills")  # where several agents look for them
    start: str = ""  # of a new file of hooks, without which it reads none
    strict: Sequence[str] = ()  # files in which it reads no comments and no trailing commas
    reads: Sequence[str] = ()  # rules by which it does not ask before what only reads
    plugins: str = ""  # the file in which plugins are switched on
    note: str = ""  # what the user should know after an installation


@cache
def load_agents() -> dict[str, Agent]:
    """By the name of the host."""
    import tomllib  # a hook, which passes here, has no time to load it

    rows = tomllib.loads((Path(__file__).parent / "agents.toml").read_text("utf-8"))
    for row in rows.values():
        folders = {key for key in row if key.endswith("folder")} | {"skills"} & row.keys()
        row.update({key: HostFolder(*row[key]) for key in folders})
    return {host: Agent(**row) for host, row in rows.items()}


def read(path: Path, position: Position = START, host: str | None = None) -> Transcript:
    """A transcript, ready to give its pages. Without a host, the file tells whose it is."""
    name = host or detect(path)
    if not name:
        raise InvalidInput(
            f"{path} is no transcript of a known host.",
            f"Say whose it is: --host {'|'.join(HOSTS)}; or take a document in by `bethink import`.",
        )
    transcript: Transcript = load_reader(name).read(path, position)
    return transcript


def load_reader(host: str) -> Any:
    """The module that reads the transcripts of a host."""
    if host not in HOSTS:
        raise InvalidInput(f"There is no agent host '{host}'.", suggest_one_of(host, HOSTS))
    return import_module(f"bethink.hosts.{host}")


def detect(path: Path) -> str | None:
    """Whose transcript a file is, by what stands in its first lines."""
    head, plain = read_head(path, PEEK), load_reader("plain")
    if head.startswith(DATABASE):
        return "opencode" if path.name.startswith("opencode") else None
    lines = head.lstrip(BLANK).splitlines()[:TRIED]
    for entry in filter(None, map(read_object, lines)):
        if host := recognise(entry) or ("plain" if plain.is_message(entry) else ""):
            return host
    return "plain" if plain.is_likely(path, head) else None


def recognise(entry: Mapping[str, Any]) -> str:
    """Whose line an object is, '' for nobody's: each agent's first lines have keys that no other's have."""
    type, keys = text_of(entry, "type"), entry.keys()
    by_gemini = type in ("user", "gemini") and "content" in keys and "id" in keys
    if by_gemini or {"sessionId", "projectHash"} <= keys or {"$set", "$rewindTo"} & keys:
        return "gemini"
    if isinstance(entry.get("payload"), dict) or {"instructions", "timestamp"} <= keys:
        return "codex"
    if "." in type and isinstance(entry.get("data"), dict):
        return "copilot"
    if type and {"uuid", "parentUuid", "leafUuid", "sessionId", "snapshot"} & keys:
        return "claude"
    speaks = entry.get("role") in ("user", "assistant") and not type
    return "cursor" if speaks and isinstance(entry.get("message"), dict) else ""


def locate(host: str, environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    """A host's transcripts where it keeps them, newest first."""
    load_reader(host)  # refuses a host that is not known
    about = load_agents().get(host)
    if about is None:
        return
    folder = (about.transcript_folder or about.folder).find(environment, home)
    paths = {path for pattern in about.transcripts for path in folder.glob(pattern)}
    if host == "opencode" and (named := environment.get("OPENCODE_DB")):
        paths.add(folder / named)
    found: dict[Path, float] = {}
    for path in paths:
        with suppress(OSError):  # a journal of Claude Code is about the work of its sub-agents
            if path.name != "journal.jsonl":
                found[path] = path.stat().st_mtime
    yield from sorted(found, key=lambda path: (-found[path], path))
