"""Shell lines as tools give them."""

from __future__ import annotations

import re

from bethink.types import COMMAND_LENGTH

_HEREDOC = re.compile(
    r"<<-?[ ]?(['\"]?)(\w{1,40})\1([^\n]{0,400})\n.*?\n[ \t]{0,40}\2(?=\n|\)|$)", re.DOTALL
)


def shorten_command(command: str) -> str:
    """A command without the bodies of its heredocs, cut at `COMMAND_LENGTH`."""
    return _HEREDOC.sub(r"<<\2\3", command[: 8 * COMMAND_LENGTH])[:COMMAND_LENGTH]
