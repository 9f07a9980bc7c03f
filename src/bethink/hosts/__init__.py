"""What differs per agent host: one module each, all giving the same turns. `base` says what a turn is and what all readers share.

claude  codex  copilot  gemini  opencode  cursor   transcripts as these hosts write them
plain                                              exported chats, in Markdown or JSON
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from bethink.errors import InvalidInput
from bethink.hosts import lines as bytewise
from bethink.hosts.base import START, Position, Transcript

# In the order in which they are asked whether a file is theirs.
HOSTS = ("claude", "codex", "copilot", "gemini", "opencode", "cursor", "plain")
PEEK = 64 << 10
TRIED = 40


def reader(host: str) -> Any:
    """The module of a host: NAME, read(path, position, bound), recognises(entry), locate(environment, home)."""
    if host not in HOSTS:
        raise InvalidInput(f"There is no agent host '{host}'.", f"One of: {', '.join(HOSTS)}.")
    return import_module(f"bethink.hosts.{host}")


def read(path: Path, position: Position = START, host: str | None = None) -> Transcript:
    """A transcript, ready to give its pages. Without a host, the file tells whose it is."""
    found = host or detect(path)
    if not found:
        raise InvalidInput(
            f"{path} is no transcript of a known host.",
            f"Say whose it is: --host {'|'.join(HOSTS)}; or take a document in by `bethink import`.",
        )
    transcript: Transcript = reader(found).read(path, position)
    return transcript


def detect(path: Path) -> str | None:
    """Whose transcript a file is, by what stands in its first lines."""
    stream = bytewise.opened(path)
    try:
        head = stream.read(PEEK)
    finally:
        stream.close()
    if head.startswith(reader("opencode").HEADER):
        return "opencode" if path.name.startswith("opencode") else None
    for entry in _entries(head):
        for host in HOSTS:
            if reader(host).recognises(entry):
                return host
    return "plain" if reader("plain").looks_like(path, head) else None


def _entries(head: bytes) -> Iterator[dict[str, Any]]:
    """The first objects of a file: the keys of its one value if that goes over many lines, otherwise its lines."""
    whole = head.lstrip(b"\xef\xbb\xbf \t\r\n").splitlines()[:TRIED]
    if whole and not bytewise.objects(whole[0])[1]:
        yield bytewise.outline(head)
    for line in whole:
        yield from (value for value in bytewise.objects(line)[0] if isinstance(value, dict))


def locate(host: str, environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    """A host's transcripts where it keeps them, newest first."""
    found: dict[Path, float] = {}
    for path in reader(host).locate(environment, home):
        try:
            found[path] = path.stat().st_mtime
        except OSError:
            continue
    yield from sorted(found, key=lambda path: (-found[path], path))
