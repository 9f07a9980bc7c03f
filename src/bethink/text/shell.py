"""Shell lines as tools give them."""

from __future__ import annotations

import re

from bethink.model import COMMAND_LENGTH

_HEREDOC = re.compile(r"<<-?[ ]?(['\"]?)(\w{1,40})\1")


def shorten_command(command: str) -> str:
    """Return a command without the bodies of its heredocs, cut at `COMMAND_LENGTH`."""
    return drop_heredocs(command[: 8 * COMMAND_LENGTH])[:COMMAND_LENGTH]


def drop_heredocs(command: str) -> str:
    """Return a command with each heredoc as its opening alone. One that nothing closes stays as it is."""
    kept: list[str] = []
    lines = command.split("\n")
    at = 0
    while at < len(lines):
        line, at = lines[at], at + 1
        opening = _HEREDOC.search(line)
        end = _find_end(lines, at, opening[2]) if opening else None
        if opening and end is not None:
            line = f"{line[: opening.start()]}<<{opening[2]}{line[opening.end() :]}"
            line += lines[end].strip()[len(opening[2]) :]
            at = end + 1
        kept.append(line)
    return "\n".join(kept)


def _find_end(lines: list[str], start: int, mark: str) -> int | None:
    """Return the place of the line that closes a heredoc. A closing bracket may follow its mark."""
    closing = (mark, f"{mark})")
    return next((at for at in range(start, len(lines)) if lines[at].strip() in closing), None)
