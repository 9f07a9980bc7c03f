"""Files of agents as people have them, and a home to lay them in."""

import stat
from pathlib import Path

import pytest

from bethink.agents import install

HOSTS = tuple(install.list_connectable())
PROGRAM = "/opt/my tools/bethink"

# Files as people have them, by what is special in them.
DOCUMENTS, TOMLS = (
    {
        "empty": "",
        "one line end": "\n",
        "an empty object": "{}",
        "an empty object with a line end": "{}\n",
        "an empty object over two lines": "{\n}\n",
        "an empty object with a blank": "{ }",
        "one line": '{"model":"opus","permissions":{"allow":["Bash(ls:*)"]}}',
        "one line with blanks": '{"model": "opus", "env": {"A": "1"}}\n',
        "two blanks": '{\n  "model": "opus",\n  "env": {\n    "A": "1"\n  }\n}\n',
        "tabs, no line end at the end": '{\n\t"model": "opus",\n\t"list": [\n\t\t1,\n\t\t2.50\n\t]\n}',
        "CRLF": '{\r\n    "model": "opus",\r\n    "env": {}\r\n}\r\n',
        "unicode": '{\n  "name": "Größe 🧠 “quoted”",\n  "escaped": "\\u00fc\\ud83e\\udde0"\n}\n',
        "comments": '// settings of mine\n{\n  // the model\n  "model": "opus", // for now\n  /* a block\n   * of words */\n  "env": { "A": "1" } // the last one\n  // "disabled": true\n}\n// the end\n',
        "trailing commas": '{\n  "model": "opus",\n  "env": {\n    "A": "1",\n  },\n}\n',
        "a trailing comma on one line": '{"model": "opus", "list": [1, 2,],}',
        "an object with only a comment": "{\n  // nothing yet\n}\n",
        "a comment that looks like text": '{\n  "url": "http://x/*y*/", "b": "//c" // "d": {\n}\n',
        "other tools' hooks": '{\n  "hooks": {\n    "Stop": [\n      {\n        "hooks": [\n          { "type": "command", "command": "say done" }\n        ]\n      }\n    ],\n    "stop": [{ "command": "./audit.sh" }],\n    "PreToolUse": []\n  },\n  "mcpServers": {\n    "other": { "command": "npx", "args": ["-y", "other"] }\n  },\n  "mcp": {}\n}\n',
        "everything empty": '{"hooks":{},"mcpServers":{},"mcp":{}}',
        "everything empty, spread out": '{\n    "hooks": {},\n    "mcpServers": {\n    },\n    "mcp": { }\n}\n',
        "lists that are empty": '{"version": 1, "hooks": {"Stop": [], "stop": [], "SessionStart": [ ], "sessionStart": []}}\n',
        "a nested group on one line": '{\n  "hooks": { "Stop": [ { "matcher": "", "hooks": [ { "type": "command", "command": "x" } ] } ] }\n}\n',
        "the name of a host's own": '{"mcpServers": {"bethink-old": {"command": "x"}}, "hooks": {"description": []}}',
        "doubled keys": '{"a": 1, "a": 2, "env": {"x": 1e400, "y": 12345678901234567890123}}',
        "blank lines": '{\n\n  "a": 1,\n\n\n  "b": 2\n\n}\n\n\n',
        "the end behind the last value": '{\n  "a": 1,\n  "b": {\n    "c": 2 } }\n',
    },
    {
        "empty": "",
        "no line end": 'model = "gpt"',
        "a table": '# mine\nmodel = "gpt" # for now\n\n[mcp_servers.other]\ncommand = "npx"\nargs = [\n  "-y", # yes\n  "other",\n]\n',
        "CRLF": 'model = "gpt"\r\n\r\n[projects."/home/ü"]\r\ntrust_level = "trusted"\r\n',
        "text that looks like a table": 'note = \'\'\'\n[mcp_servers.bethink]\ncommand = "no"\n\'\'\'\nmore = """\n[x]\\""""\n',
        "servers by dots": '[mcp_servers]\nother.command = "x"\nother.args = []\n',
        "an array of tables": '[[profiles]]\nname = "a"\n[[profiles]]\nname = "b"',
        "blank lines at the end": "a = 1\n\n\n",
        "a header with blanks": '[ mcp_servers . "other" ] # theirs\ncommand = "x"\n',
        "only a comment": "# nothing",
        "tabs and dates": "\ta = 1979-05-27T07:32:00Z\n\t[b]\n\tc = { d = [1, 2], e = '}' }\n",
    },
)


@pytest.fixture
def home(cli, monkeypatch, tmp_path):
    """A home with blanks and umlauts in its name, in which no agent's program is found."""
    folder = tmp_path / "Jürgen's home 🏠"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    elsewhere = "CLAUDE_CONFIG_DIR CODEX_HOME COPILOT_HOME GEMINI_CLI_HOME".split()
    for variable in (*elsewhere, "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "no programs"))
    monkeypatch.setattr(install, "find_command", lambda: (PROGRAM,))
    return folder


def tree(folder: Path) -> dict[str, tuple[int, bytes | str]]:
    """Every file with its mode and bytes, every folder, every link."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for path in sorted(folder.rglob("*")):
        mode = stat.S_IMODE(path.lstat().st_mode)
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = (0, str(path.readlink()))
        else:
            found[name] = (mode, path.read_bytes() if path.is_file() else "folder")
    return found


def laid(folder: Path, name: str, text: str, mode: int = 0o644) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    path.chmod(mode)
    return path


def statuses(outcome: dict) -> dict[str, str]:
    """What an installation did to each file."""
    return {one["path"]: one["status"] for one in outcome["files"]}
