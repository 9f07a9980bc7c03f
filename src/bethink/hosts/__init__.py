"""Agent hosts: one module each says how its transcripts read and what it needs to be connected.

claude  codex  copilot  gemini  opencode  cursor   agents: `Reader`s of their transcripts, and `targets` that `install` writes
plain                                              chats of no host, in Markdown or JSON lines
base  transcript                                   what readers share
place  edit  install  check                        connecting agents, and proving that they are connected
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bethink.errors import InvalidInput
from bethink.hosts.base import START, Position, text_of
from bethink.hosts.transcript import DATABASE, read_head, read_object
from bethink.text import suggest_one_of

if TYPE_CHECKING:
    from bethink.hosts.transcript import Transcript

HOSTS = ("claude", "codex", "copilot", "gemini", "opencode", "cursor", "plain")
# Those that can be connected, and what people call them.
AGENTS = {
    "claude": "Claude Code",
    "codex": "Codex",
    "opencode": "opencode",
    "copilot": "Copilot CLI",
    "gemini": "Gemini CLI",
    "cursor": "Cursor",
}
PEEK = 64 << 10  # bytes of a file that are looked at to tell whose it is
TRIED = 40  # lines of it
BLANK = b"\xef\xbb\xbf \t\r\n"


def agent(host: str) -> Any:
    """The module of a host: `read(path, position, bound)`; of an agent also TRANSCRIPTS, the folder and the patterns of its
    transcripts in it, and AGENT, what it takes to connect it."""
    if host not in HOSTS:
        raise InvalidInput(f"There is no agent host '{host}'.", suggest_one_of(host, HOSTS))
    return import_module(f"bethink.hosts.{host}")


def read(path: Path, position: Position = START, host: str | None = None) -> Transcript:
    """A transcript, ready to give its pages. Without a host, the file tells whose it is."""
    name = host or detect(path)
    if not name:
        raise InvalidInput(
            f"{path} is no transcript of a known host.",
            f"Say whose it is: --host {'|'.join(HOSTS)}; or take a document in by `bethink import`.",
        )
    transcript: Transcript = agent(name).read(path, position)
    return transcript


def detect(path: Path) -> str | None:
    """Whose transcript a file is, by what stands in its first lines."""
    head = read_head(path, PEEK)
    if head.startswith(DATABASE):
        return "opencode" if path.name.startswith("opencode") else None
    plain, lines = agent("plain"), head.lstrip(BLANK).splitlines()
    for entry in filter(None, map(read_object, lines[:TRIED])):
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
    folder, *patterns = agent(host).TRANSCRIPTS
    base = folder.find(environment, home)
    paths = {path for pattern in patterns for path in base.glob(pattern)}
    if host == "opencode" and (named := environment.get("OPENCODE_DB")):
        paths.add(base / named)
    found: dict[Path, float] = {}
    for path in paths:
        with suppress(OSError):  # a journal of Claude Code is about the work of its sub-agents
            if path.name != "journal.jsonl":
                found[path] = path.stat().st_mtime
    yield from sorted(found, key=lambda path: (-found[path], path))
