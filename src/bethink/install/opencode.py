"""opencode: the MCP server in its configuration, which may have comments; a plugin file in place of hooks; skills."""

from __future__ import annotations

import os
from pathlib import Path

from bethink.install.entries import Entry
from bethink.install.host import SERVER, Place, Target, skills

NAME = "opencode"
PROGRAM = "opencode"
NAMES = ("opencode.jsonc", "opencode.json")
SCHEMA = "https://opencode.ai/config.json"
MILLISECONDS = 20_000  # in which the server has to list its tools


def folder(place: Place) -> Path:
    if place.root is not None:
        return place.root / ".opencode"
    base = place.environment.get("XDG_CONFIG_HOME")
    return (Path(base) if base else place.home / ".config") / "opencode"


def targets(place: Place) -> list[Target]:
    from bethink.skills import opencode_plugin

    where = place.root if place.root is not None else folder(place)
    there = [where / name for name in NAMES if os.path.lexists(where / name)]
    path = there[0] if there else where / NAMES[-1]
    value = {
        "type": "local",
        "command": [*place.words, "mcp"],
        "enabled": True,
        "timeout": MILLISECONDS,
    }
    frame = () if there else (Entry("frame", ("$schema",), SCHEMA),)
    return [
        Target("mcp", path, (*frame, Entry("member", ("mcp", SERVER), value))),
        Target(
            "hooks", folder(place) / "plugins" / "bethink.js", text=opencode_plugin(place.words)
        ),
        *skills("opencode", place.folder(".agents") / "skills"),
    ]


def notes(place: Place) -> list[str]:
    return ["opencode reads its configuration and plugins when it starts."]
