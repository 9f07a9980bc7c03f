"""`edit` and `open`: a memory in the user's editor, and its source."""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

from bethink.api import Bethink
from bethink.app.cli.console import Console, Result, has_terminal
from bethink.app.cli.parser import decode_text
from bethink.app.cli.write import show_change
from bethink.app.operation import Arg, operation
from bethink.app.operations.requests import AllProjects, Id
from bethink.app.operations.write import Changed
from bethink.app.render import one_line, plain, short_id
from bethink.errors import BethinkError, NotFound, UsageError
from bethink.model import Memory

# Editors that take a line as `-g FILE:LINE`; all others take `+LINE FILE`.
TAKES_PLACE = ("code", "code-insiders", "codium", "cursor", "windsurf")


@operation(
    "Everyday",
    agents="append",
    opens="read",
    examples=(
        "bethink edit 01a1dd89",
        'bethink edit 01a1dd89 "We deploy from main only"',
        'EDITOR="code --wait" bethink edit 01a1dd89',
        "bethink history 01a1dd89",
    ),
)
def edit(
    console: Console,
    memory: Bethink,
    id: Id,
    content: Annotated[
        str | None,
        Arg("the new text; without it, your editor opens", metavar="TEXT", positional=True),
    ] = None,
    all_projects: AllProjects = False,
) -> Result:
    """Change the text of a memory, in your editor or as given.

    The editor is $VISUAL or $EDITOR. The old version stays in the history. An unchanged or empty text changes nothing. A text that
    is refused is kept in a file, which is named.
    """
    was = memory.one(id)
    if content is not None:
        changed = memory.update(was.id, was=was, content=content)
        return show_change(console, memory, Changed(changed, "updated"))
    if console.run_by:
        raise UsageError(
            "`edit` opens an editor, which an agent cannot use.",
            f"bethink edit {id} TEXT",
        )
    changed, draft = was, Path(tempfile.mkdtemp(prefix="bethink-edit-")) / "memory.md"
    unchanged = was.content.strip().encode()
    draft.write_bytes(unchanged + b"\n")
    try:
        run_editor(draft)
        text = decode_text(draft.read_bytes(), draft.name).replace("\r\n", "\n").rstrip()
        if text.strip() not in ("", was.content.strip()):
            changed = memory.update(was.id, was=was, content=text)
            unchanged = draft.read_bytes().strip()
    finally:
        if draft.exists() and draft.read_bytes().strip() not in (b"", unchanged):
            console.talk(f"Your text is kept in {draft}.")
        else:
            shutil.rmtree(draft.parent)  # leave no copy of a memory behind
    done = "unchanged" if changed is was else "updated"
    return show_change(console, memory, Changed(changed, done))


@operation(
    "Everyday",
    agents="read",
    opens="read",
    examples=(
        "bethink open 01a1dd89",
        "EDITOR=code bethink open 01a1dd89",
        "bethink open 01a1dd89 --json | jq -r .path",
    ),
)
def open_(console: Console, memory: Bethink, id: Id, all_projects: AllProjects = False) -> Result:
    """Open the source of a memory at its line.

    A file or transcript opens in your editor ($VISUAL or $EDITOR), a page in your browser. Without a terminal, and with --json, the
    place is printed as PATH:LINE.
    """
    one = memory.one(id)
    file, url = find_source(memory, one)
    line = one.lines[0] if file and one.lines else None
    place = url or (f"{file}:{line}" if line else str(file))
    value = {"id": one.id, "path": str(file) if file else None, "line": line, "url": url}
    seen = sys.stdout.isatty() and has_terminal()
    if seen and not console.for_agent and console.format == "text":
        if file:
            run_editor(file, line)
        else:
            from webbrowser import open as browse

            browse(url or "")
    return Result(value, [plain(place)])


def find_source(memory: Bethink, one: Memory) -> tuple[Path | None, str | None]:
    """The file that a memory came from, or the address of the page."""
    source = one.path or one.source
    if source.startswith(("http://", "https://")):
        return None, source
    for folder in (memory.project.worktree, memory.project.root, Path.cwd()):
        if (folder / source).is_file():
            return folder / source, None
    raise NotFound(
        f"There is no file to open: it comes from {one_line(source)}.",
        f"`bethink get {short_id(memory, one.id)} --source` shows the stored text.",
    )


def run_editor(file: Path, line: int | None = None) -> None:
    """Open a file in the user's editor, at a line, and wait until it is closed."""
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not named:
        raise NotFound("No editor is set.", "export EDITOR=nano")
    try:
        words = shlex.split(named)
        place = [f"+{line}", str(file)] if line else [str(file)]
        if line and Path(words[0]).stem in TAKES_PLACE:
            place = ["-g", f"{file}:{line}"]
        code = subprocess.run([*words, *place], check=False).returncode
    except (OSError, ValueError) as error:
        raise NotFound(
            f"The editor '{named}' cannot be started: {error}.", "export EDITOR=nano"
        ) from None
    if code:
        raise BethinkError(f"The editor '{named}' exited with {code}. Nothing was changed.")
