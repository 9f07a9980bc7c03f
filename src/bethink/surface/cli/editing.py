"""`edit` and `open`: a memory's text, or what it was taken from, in the user's editor."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bethink.errors import BethinkError, NotFound, UsageError
from bethink.surface.cli.console import Result, command, decode_text, has_terminal, talk
from bethink.surface.cli.remember import ID, describe_change
from bethink.surface.layout import one_line
from bethink.surface.layout import plain as printable
from bethink.surface.render import memory_label, short_id

if TYPE_CHECKING:
    from types import SimpleNamespace as Namespace

    from bethink.api import Bethink
    from bethink.types import Memory


@command("edit", ID, opens="read")
def edit(args: Namespace, memory: Bethink) -> Result:
    """Change the text of a memory in your editor: $VISUAL, or else $EDITOR. The old version stays in its history. Left as it
    is or emptied, nothing changes. A text that is not taken is kept in a file, which is named.

    Examples:
      bethink edit 01a1dd89
      EDITOR="code --wait" bethink edit 01a1dd89
      bethink history 01a1dd89
    """
    was = memory.one(args.id)
    short = memory.store.abbreviate([was.id])
    if args.for_agent:
        raise UsageError(
            "`edit` opens an editor, which an agent cannot use.",
            f"bethink update {short[was.id]} --content TEXT",
        )
    with keep_draft(f"{was.content}\n", f"{short[was.id]}.md") as draft:
        run_editor(draft, wait=True)
        text = decode_text(draft.read_bytes(), draft.name)
        if "\r" not in was.content:
            text = text.replace("\r\n", "\n")
        if text.strip() == was.content.strip():
            return Result(was, [f"unchanged {memory_label(was, short)}"])
        if not text.strip():
            raise BethinkError(
                "The text is empty, so nothing was changed.",
                f"`bethink forget {short[was.id]}` forgets it.",
            )
        changed = memory.update(was.id, was=was, content=text.rstrip())
    return describe_change(memory, "updated", changed)


@command(
    "open",
    ID,
    opens="read",
)
def open_source(args: Namespace, memory: Bethink) -> Result:
    """Open what a memory was taken from, at its line: a file or transcript in your editor ($VISUAL, or else $EDITOR), a page in
    your browser. Where there is no terminal, and with --json, its place is printed instead, as PATH:LINE.

    Examples:
      bethink open 01a1dd89
      EDITOR=code bethink open 01a1dd89
      bethink open 01a1dd89 --json | jq -r .path
    """
    one = memory.one(args.id)
    file, url = find_source(memory, one)
    line = one.lines[0] if file and one.lines else None
    place = url or (f"{file}:{line}" if line else str(file))
    value = {"id": one.id, "path": str(file) if file else None, "line": line, "url": url}
    seen = sys.stdout.isatty() and has_terminal()
    if not seen or args.for_agent or args.format != "text":
        return Result(value, [printable(place)])
    if url:
        from webbrowser import open as browse

        return Result(value, [f"opened {url}" if browse(url) else url])
    assert file is not None
    run_editor(file, line)
    return Result(value, [f"opened {printable(place)}"])


def find_source(memory: Bethink, one: Memory) -> tuple[Path | None, str | None]:
    """The file that a memory was taken from, or the address of the page."""
    source = one.path or one.source
    if source.startswith(("http://", "https://")):
        return None, source
    folders = (memory.project.worktree, memory.project.root, Path.cwd())
    for file in (folder / source for folder in folders):
        if file.is_file():
            return file, None
    short = short_id(memory, one.id)
    if source.startswith("git:"):
        raise NotFound(f"{short} was taken from a commit.", f"git show {source[4:]}")
    if one.path:
        raise NotFound(
            f"{source} is not there any more.",
            f"`bethink get {short} --source` shows what is kept.",
        )
    raise NotFound(
        f"{short} has no source to open: it was told ({one_line(source)}).",
        f"`bethink get {short}` shows it, `bethink edit {short}` changes it.",
    )


# Editors: how each is told the line of a file, by the name of its program, and which return at once unless told to wait.
AT_LINE = {
    "vi vim nvim gvim nano pico emacs emacsclient micro kak joe editor": ("+{line}", "{file}"),
    "code code-insiders codium cursor windsurf": ("-g", "{file}:{line}"),
    "subl zed hx helix": ("{file}:{line}",),
    "idea pycharm webstorm goland clion rubymine phpstorm rider": ("--line", "{line}", "{file}"),
}
RETURNS = "code code-insiders codium cursor windsurf subl zed idea pycharm webstorm goland".split()
EDITORS = ("editor", "nano", "vi", "notepad")  # looked for where the environment names none


def run_editor(file: Path, line: int | None = None, wait: bool = False) -> None:
    """Opens a file in the user's editor, at a line where the editor is known to take one."""
    words = find_editor()
    name = Path(words[0]).stem.lower()
    forms = [form for names, form in AT_LINE.items() if line and name in names.split()]
    where = [part.format(line=line, file=file) for part in (*forms, ("{file}",))[0]]
    waiting = ["--wait"] if wait and name in RETURNS and not {"--wait", "-w"} & {*words} else []
    try:
        code = subprocess.run([*words, *waiting, *where], check=False).returncode
    except OSError as error:
        raise NotFound(
            f"The editor {words[0]} cannot be started: {error.strerror}.",
            "Name yours: export EDITOR=nano",
        ) from None
    if code:
        raise BethinkError(f"The editor {words[0]} ended with {code}. Nothing was changed.")


def find_editor() -> list[str]:
    """The command of the user's editor: $VISUAL, $EDITOR, or at a terminal one that every system has."""
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        words = shlex.split(named, posix=os.name != "nt")
    except ValueError as error:
        raise UsageError(
            f"The editor '{named}' cannot be read: {error}.", "Mend $EDITOR."
        ) from None
    if not words and has_terminal():
        words = [name for name in EDITORS if shutil.which(name)][:1]
    if not words:
        raise NotFound("There is no editor.", "Name yours: export EDITOR=nano")
    return words


@contextmanager
def keep_draft(text: str, name: str) -> Iterator[Path]:
    """A file of that text for an editor, which only its owner can read. It goes when all went well; where that fails, a changed
    one stays, and the error says where."""
    folder = Path(tempfile.mkdtemp(prefix="bethink-edit-"))
    draft = folder / name
    raw = text.encode()
    try:
        draft.write_bytes(raw)
        yield draft
    except BaseException as error:
        if not draft.is_file() or draft.read_bytes().strip() in (b"", raw.strip()):
            shutil.rmtree(folder)
            raise
        kept = f"Your text is kept in {draft}."
        if not isinstance(error, BethinkError):
            talk(kept)
            raise
        error.hint = f"{kept} {error.hint or ''}".rstrip()
        raise
    shutil.rmtree(folder)
