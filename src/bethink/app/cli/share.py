"""`share`: chosen memories as files in the repository, and what colleagues shared."""

from typing import Annotated

from bethink.api import Bethink
from bethink.app.cli.console import Console, Result
from bethink.app.cli.knowledge import report_shared
from bethink.app.operation import Arg, operation
from bethink.app.render import many, pick
from bethink.errors import UsageError
from bethink.features import share as sharing
from bethink.model import Strings
from bethink.project import SHARED_FOLDER


@operation(
    "Import and index",
    agents="person",
    harmless=("list",),
    opens="read",
    lists=("files", "file"),
    examples=(
        "bethink share 01a1dd89",
        "bethink share --rules --decisions",
        "bethink share --list",
        "bethink share 01a1dd89 --remove",
        "bethink share --accept",
    ),
)
def share(
    console: Console,
    memory: Bethink,
    ids: Annotated[
        Strings, Arg("ids or any unique beginnings of them", metavar="ID", positional=True)
    ] = (),
    rules: Annotated[bool, Arg("your standing rules: preferences, gotchas, patterns")] = False,
    decisions: Annotated[bool, Arg("your decisions of this project")] = False,
    remove: Annotated[bool, Arg("remove the files of these memories", one_of="what")] = False,
    accept: Annotated[
        bool, Arg("take what colleagues shared here as your team's word", one_of="what")
    ] = False,
    list: Annotated[bool, Arg("list what is shared in this repository", one_of="what")] = False,
) -> Result:
    """Share memories with colleagues through git.

    Writes each memory as a Markdown file to .bethink/shared, for you to review and commit. Colleagues get them by `git pull`, with the
    next `bethink index` or session, once they accepted the folder. Edits and deletions in git come back the same way. Personal memories,
    secrets and imported text are refused.
    """
    if list:
        return _show(console, memory, sharing.list_shared(memory))
    if accept:
        sharing.accept(memory)
        synced = sharing.read_shared(memory)
        report_shared(console, memory.project.worktree, synced)
        number = len(sharing.list_shared(memory))
        line = f"accepted {many(number, 'shared memory')} of this project"
        return Result({"accepted": number}, [line])
    if remove:
        if not ids:
            raise UsageError(
                "Name the memories whose files to remove.", "bethink share ID --remove"
            )
        return _show(console, memory, sharing.unshare(memory, ids))
    found, left_out = sharing.find_shareable(memory, rules, decisions)
    chosen = (*ids, *found)
    if not chosen and not (rules or decisions):
        raise UsageError(
            "Name what to share.",
            "bethink share ID, --rules or --decisions; `bethink list` shows ids.",
        )
    other = ""
    if left_out:
        other = (
            f"{many(left_out, 'statement')} from conversations may concern only their task, and were left out; share those worth it by"
            " id: `bethink list --kind decision,preference`."
        )
    if not chosen:
        hint = other or 'bethink add "We deploy from main" --kind decision'
        return Result([], ["No rule or decision of yours is known in this project."], hints=[hint])
    return _show(console, memory, sharing.share(memory, chosen), other)


def _show(
    console: Console, memory: Bethink, files: "list[sharing.SharedFile]", other: str = ""
) -> Result:
    changed = [one for one in files if one.status not in ("unchanged", "shared")]
    hint = ""
    if changed:
        hint = f"Review and commit them: git add {SHARED_FOLDER} && git commit"
    if changed and sharing.is_ignored(memory):
        console.warn(
            f"git ignores {SHARED_FOLDER}, so colleagues will not get it; change .gitignore."
        )
    lines = [f"{one.status:<10}{one.path}" for one in files] or ["Nothing is shared here."]
    return Result([pick(one, "id path status") for one in files], lines, hints=[hint, other])
