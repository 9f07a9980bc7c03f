"""Files of agents as people have them, and a home to lay them in."""

import stat
from pathlib import Path

import pytest
from case_tables import cases

from bethink.agents import install

HOSTS = tuple(install.list_connectable())
PROGRAM = "/opt/my tools/bethink"

# Files as people have them, by what is special in them.
DOCUMENTS, TOMLS = dict(cases("agents-json")), dict(cases("agents-toml"))


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
