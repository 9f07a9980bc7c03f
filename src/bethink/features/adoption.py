"""The memories of a project whose folder was moved or renamed, brought to where the project is now.

A project is known by the path of its repository, or of its folder outside git: every path is another project. A folder that is moved,
renamed or put under git leaves its memories behind, under a path from which nobody asks any more. What is known of those is told here,
the likeliest first, and handed over in one transaction. A team's database knows projects by name and needs none of this.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bethink import project as projects
from bethink.api import Bethink
from bethink.errors import Ambiguous, InvalidInput, NotFound
from bethink.hooks.pause import inherit
from bethink.types import Batch, Filter

PAGE = 500
HERE, SAME, NAMED, GONE, USED = "here", "same repository", "same name", "gone", "in use"
LIKELY = (HERE, SAME, NAMED)  # in the order in which they are told


class Left(NamedTuple):
    """A project that is known by another path than this one."""

    name: str
    path: str
    scopes: tuple[str, ...]
    memories: int
    why: str  # one of the words above: what speaks for its being this one, or that its folder is gone or still in use

    @property
    def sentence(self) -> str:
        number, them = (
            ("1 memory", "it") if self.memories == 1 else (f"{self.memories:,} memories", "them")
        )
        where = "from before it was part of this project" if self.why == HERE else "gone"
        return f"{self.name} ({self.path}, {where}) has {number}: `bethink adopt {shlex.quote(self.path)}` brings {them} here."


class Adopted(NamedTuple):
    """What came over, or would."""

    left: Left
    joined: int = 0  # memories that both projects held


def left(memory: Bethink) -> list[Left]:
    """The projects whose folder is gone, or belongs to this project by now: the likeliest to be this one first."""
    known = [_counted(memory, one) for one in _known(memory) if one.why != USED]
    found = [one for one in known if one.memories]
    return sorted(
        found,
        key=lambda one: (
            LIKELY.index(one.why) if one.why in LIKELY else len(LIKELY),
            -one.memories,
            one.path,
        ),
    )


def hint(memory: Bethink, always: bool = False) -> str:
    """A sentence about the memories that this project seems to have left behind, where it holds none itself; `always` also where it
    does, for who looks after it. Reads little: it is asked whenever nothing was found."""
    if memory.shared:
        return ""
    held = any(memory.store.list(_everything(memory, scope), 1) for scope in _own(memory))
    wanted = LIKELY if not held else (HERE, SAME) if always else ()
    return next((one.sentence for one in left(memory) if one.why in wanted), "") if wanted else ""


def adopt(memory: Bethink, old: str, *, force: bool = False, dry_run: bool = False) -> Adopted:
    """Brings all that a project holds into this one, by its old path, or by its name if only one such is left: memories, conversations,
    topics, sources and containers, in one transaction. What both hold is joined. Refuses while the old folder is in use, but for `force`."""
    found = _chosen(memory, old)
    if found.why == USED and not force:
        raise InvalidInput(
            f"The folder {found.path} is still there, and its memories are seen from there.",
            f"`bethink adopt {shlex.quote(found.path)} --force` brings them here all the same.",
        )
    if dry_run:
        return Adopted(found)
    project = memory.project
    pairs = tuple((scope, _counterpart(project, scope)) for scope in found.scopes)
    names = {
        new: (_called(project, new), str(project.root), projects.origin(project))
        for _, new in pairs
    }
    inherit(found.scopes, project.scope, project.name)
    receipt = memory.store.write(
        Batch(at=memory.clock(), actor=memory.actor, scopes=names, adopt=pairs)
    )
    return Adopted(found, receipt.retired)


def _counterpart(project: projects.Project, scope: str) -> str:
    kind, _, rest = scope.partition(":")
    _, slash, name = rest.partition("/")
    return f"{kind}:{project.identity}{slash}{name}"


def _called(project: projects.Project, scope: str) -> str:
    _, slash, name = scope.partition("/")
    return f"{project.name}{slash}{name}"


def _chosen(memory: Bethink, old: str) -> Left:
    if memory.shared:
        raise InvalidInput(
            "A team's database knows a project by its folder's name, wherever the folder lies.",
            f"A folder called as before sees its memories; this one is called {memory.project.name}.",
        )
    known = list(_known(memory))
    try:
        path = str(Path(old).expanduser().resolve())
    except (OSError, RuntimeError, ValueError):
        path = old
    by_path = [one for one in known if one.path in (path, old)]
    if by_path:
        return _counted(memory, by_path[0])
    if path == str(memory.project.root):
        raise InvalidInput(
            f"{old} is this project.", "`bethink adopt` lists those whose folder is gone."
        )
    named = [one for one in left(memory) if one.name.casefold() == old.casefold()]
    if len(named) > 1:
        raise Ambiguous(
            f"Several projects called {old} are left.",
            "Give the path of one: " + ", ".join(one.path for one in named) + ".",
        )
    if not named:
        gone = [f"{one.name} ({one.path})" for one in left(memory)]
        raise NotFound(
            f"No project is known by {old}.",
            f"Those whose folder is gone: {', '.join(gone[:10])}."
            if gone
            else "`bethink stats` lists the projects that there are.",
        )
    return named[0]


def _known(memory: Bethink) -> Iterator[Left]:
    """Every project of the database but this one, not yet counted, by path: one folder may have been known in several ways."""
    if memory.shared:
        return
    own = memory.project
    places: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for scope, name, path in _places(memory):
        if (
            path
            and scope.startswith(("project:", "container:"))
            and _identity(scope) != own.identity
        ):
            places[path].append((scope, name))
    marks = set(projects.origin(own).split())
    for path, scopes in places.items():
        name = next(
            (name for scope, name in scopes if scope.startswith("project:") and name),
            Path(path).name,
        )
        found = Left(name, path, tuple(scope for scope, _ in scopes), 0, GONE)
        yield found._replace(why=_why(memory, found, marks))


def _why(memory: Bethink, found: Left, marks: set[str]) -> str:
    """What a project is to this one."""
    folder = Path(found.path)
    if not projects.gone(folder):
        there = projects.find(folder).identity
        if there == memory.project.identity:
            return HERE  # the folder was put under git, or is part of this project by now
        return USED
    known = {
        mark
        for scope in found.scopes
        for mark in (memory.store.noted(f"origin:{scope}") or "").split()
    }
    if known & marks:
        return SAME
    return NAMED if found.name.casefold() == memory.project.name.casefold() else GONE


def _places(memory: Bethink) -> Iterator[tuple[str, str, str]]:
    after = ""
    while True:
        bundle, after = memory.store.export("scopes", after, PAGE)
        if not bundle.scopes:
            return
        yield from bundle.scopes


def _own(memory: Bethink) -> list[str]:
    return [scope for scope, _, _ in _places(memory) if _identity(scope) == memory.project.identity]


def _identity(scope: str) -> str:
    return scope.partition(":")[2].partition("/")[0]


def _counted(memory: Bethink, found: Left) -> Left:
    return found._replace(
        memories=sum(memory.store.count(_everything(memory, scope)) for scope in found.scopes)
    )


def _everything(memory: Bethink, scope: str) -> Filter:
    """What was not forgotten."""
    return Filter(
        (scope,),
        now=memory.clock(),
        include_expired=True,
        include_superseded=True,
        include_quarantined=True,
    )
