"""How this very program is started again: from a host's hook, or as its MCP server.

Hosts are often started where PATH is not the shell's, so an absolute path is given. A link such as `~/.local/bin/bethink` is
kept as it is: it survives an upgrade, and what it points to may not.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

NAME = "bethink"
# Where programs live that are gone after a while: those of `uvx` and `pipx run`.
PASSING = (
    "/uv/archive-v",
    "/uv/builds-v",
    "/uv/environments-v",
    "/.local/pipx/.cache/",
    "/pipx/.cache/",
)


def running() -> tuple[str, ...]:
    """The words that start this program."""
    for candidate in (_started(), str(Path(sys.executable).parent / _file())):
        if (
            candidate
            and os.access(candidate, os.X_OK)
            and Path(candidate).is_file()
            and not passing(candidate)
        ):
            return (candidate,)
    for folder in os.get_exec_path():
        if (found := shutil.which(NAME, path=folder)) and not passing(found):
            return (str(Path(found).absolute()),)
    return (
        sys.executable,
        "-P",
        "-m",
        NAME,
    )  # -P: a folder of that name in the project that a host works in is not its program


def portable() -> tuple[str, ...]:
    """The words that start it on the machine of everyone who has it: its bare name, where that leads here."""
    found = shutil.which(NAME)
    here = running()
    return (
        (NAME,)
        if found and len(here) == 1 and Path(found).resolve() == Path(here[0]).resolve()
        else here
    )


def passing(program: str) -> bool:
    """Whether a program is in a place that is cleared now and then."""
    place = program.replace("\\", "/")
    return any(part in place for part in PASSING)


def _file() -> str:
    return f"{NAME}.exe" if os.name == "nt" else NAME


def _started() -> str:
    """The program as it was called, if it was called by its name."""
    word = sys.argv[0] if sys.argv else ""
    if Path(word).name.removesuffix(".exe") != NAME:
        return ""
    found = word if os.sep in word else shutil.which(word)
    return str(Path(found).absolute()) if found else ""


def shell(words: tuple[str, ...]) -> str:
    """The words as one line for the shell that hosts use."""
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)
