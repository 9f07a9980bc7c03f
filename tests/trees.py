"""Projects made of a table: path → text. What analysis says about them, as the tests want to see it."""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

from bethink.ingest.analyze import documents
from bethink.ingest.files import walk
from bethink.ingest.sync import Document, Skipped
from bethink.model import Passage

FIXTURES = Path(__file__).parent / "fixtures"


class Project(NamedTuple):
    """A project of a fixture file: what it is there for, its files, and what is expected of it."""

    name: str
    files: dict[str, str]
    expected: list[str]


def load_projects(name: str) -> list[Project]:
    """The projects of a text: each begins with `%%%% name`, each of its files with `=== path`, the last with `=== expected`."""
    found = []
    text = (FIXTURES / "analyze" / name).read_text("utf-8")
    for piece in re.split(r"(?m)^%%%% ", text)[1:]:
        head, _, rest = piece.partition("\n")
        parts = [part.partition("\n") for part in re.split(r"(?m)^=== ", rest)[1:]]
        files = {path: body for path, _, body in parts}
        expected = files.pop("expected", "").splitlines()
        found.append(Project(head, files, expected))
    return found


def load_rows(path: str, columns: int) -> list[list[str]]:
    """The lines of a table, cut at ` | `."""
    lines = (FIXTURES / path).read_text("utf-8").splitlines()
    return [line.split(" | ", columns - 1) for line in lines]


def plant(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Writes the files. A text loses its common indentation, so that tables can be read."""
    for path, content in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        data = dedent(content).lstrip("\n").encode() if isinstance(content, str) else content
        file.write_bytes(data)
    return root


def git(folder: Path, *words: str) -> str:
    """Runs git as somebody of the tests, whatever this machine's own settings are."""
    named = "-c user.name=Ada -c user.email=ada@example.org -c init.defaultBranch=main".split()
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    how = {"cwd": folder, "env": clean, "text": True, "stderr": subprocess.DEVNULL}
    return subprocess.check_output(["git", *named, *words], **how).strip()


def analysed(root: Path) -> tuple[dict[str, list[Passage]], dict[str, str]]:
    """Path → passages of what was found, and path → reason of what could not be read."""
    found: dict[str, list[Passage]] = {}
    skipped: dict[str, str] = {}
    for one in documents(root, walk(root, root)):
        assert one.uri.startswith("analysis:")
        path = one.uri.removeprefix("analysis:")
        if isinstance(one, Skipped):
            skipped[path] = one.reason
        else:
            assert isinstance(one, Document)
            assert path not in found, "one document per file"
            found[path] = list(one.passages())
    return found, skipped


def told(root: Path, tag: str) -> list[Passage]:
    found, _ = analysed(root)
    every = (passage for passages in found.values() for passage in passages)
    return [passage for passage in every if passage.tags[1] == tag]
