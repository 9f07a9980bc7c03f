"""Handoffs: what whoever works here next has to know. A handoff is a memory of kind `handoff`; the newest of a branch replaces the
one before it, which stays in the chain.

`project` is a label that agents give in their own words ("Shop App" in the folder shop-app): it names no place. A part of a large
repository that is to have handoffs of its own is a container. Nothing here knows who asks: the command line, an agent or a hook.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bethink import ingest
from bethink.api import Bethink
from bethink.errors import InvalidInput
from bethink.ingest.redact import redact
from bethink.model import NOTHING, TRUST, Memory, Passage, Source
from bethink.project import read_start
from bethink.text import one_line as clean_line
from bethink.text import replace_broken

LONGEST = 30_000  # characters of a whole handoff: who reads more does not begin to work
SUMMARY_WORDS = 20
IMPORTANCE = 6.0
STALE = 14  # days after which work has mostly moved on; set by hand
KEPT = 500  # live handoffs of a scope that are looked through: one per branch

# Field → its heading. The first words of a heading are enough when a handoff is read from Markdown.
LISTS = {
    "completed": "Done",
    "in_progress_blocked": "In progress or blocked",
    "key_decisions": "Decisions",
    "next_steps": "Next",
    "memory_ids": "Memories",
}
_BEGINNINGS = {
    "completed": ("done", "completed"),
    "in_progress_blocked": ("in progress", "in_progress", "blocked"),
    "key_decisions": ("decision", "key"),
    "next_steps": ("next",),
    "memory_ids": ("memor",),
}
_HEADING = re.compile(r"(?m)^[ \t]{0,8}#{1,6}[ \t]{1,8}(\S.{0,200})$\n?")
_BULLET = re.compile(r"(?m)^[ \t]{0,8}(?:[-*+]|\d{1,3}[.)])[ \t]{1,8}(?:\[[ xX]\][ \t]{1,8})?")
_SHA = re.compile(r"[0-9a-f]{40,64}")


class Handoff(NamedTuple):
    summary: str
    completed: tuple[str, ...] = ()
    in_progress_blocked: tuple[str, ...] = ()
    key_decisions: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    memory_ids: tuple[str, ...] = ()
    project: str = ""
    branch: str = ""
    metadata: Mapping[str, Any] = NOTHING


class SavedHandoff(NamedTuple):
    memory: Memory
    new: bool  # whether it differs from the one before
    supersedes: tuple[str, ...] = ()


class LatestHandoff(NamedTuple):
    memory: Memory
    handoff: Handoff
    asked: str  # the branch that was asked for; the handoff's own may be another
    days: int  # since it was left

    @property
    def exact(self) -> bool:
        return self.handoff.branch == self.asked

    @property
    def stale(self) -> bool:
        """Whether it is so old that it may no longer hold."""
        return self.days > STALE

    @property
    def age(self) -> str:
        """How old it is, from one day on, and that it may no longer hold."""
        stale = ", may be stale" if self.stale else ""
        return f"{self.days} day{'s' * (self.days > 1)} old{stale}" if self.days else ""

    @property
    def notes(self) -> list[str]:
        """What its reader should know: that it is of another branch, and that it is old."""
        wanted = f"branch {clean_line(self.asked)}" if self.asked else "a place outside git"
        other = f"There is none for {wanted}; this is the newest of another branch."
        return [other] * (not self.exact) + [f"It is {self.age}."] * bool(self.age)


def find_branch(worktree: Path) -> str:
    """The branch that is checked out, as git's own files say: its name, the short hash of a detached head, or nothing."""
    git = worktree / ".git"
    try:
        if git.is_file():
            git = worktree / read_start(git).removeprefix("gitdir:").strip()
        head = replace_broken(read_start(git / "HEAD"))
    except (OSError, ValueError):
        return ""
    if head.startswith("ref: refs/heads/"):
        # ".invalid" stands where another store of references is used.
        return head.removeprefix("ref: refs/heads/").removeprefix(".invalid")
    return head[:7] if _SHA.fullmatch(head) else ""


def save_handoff(memory: Bethink, handoff: Handoff) -> SavedHandoff:
    """Stores a handoff in place of the last one of its branch. Counts a use of the memories it names."""
    if not handoff.summary.strip():
        raise InvalidInput(
            "The handoff has no summary.", "Say in a sentence or two where things stand."
        )
    project = redact(clean_line(handoff.project) or memory.project.name).text
    branch = clean_line(handoff.branch) or find_branch(memory.project.worktree)
    branch = redact(branch).text
    handoff = handoff._replace(project=project, branch=branch)
    if (size := len(json.dumps(handoff, default=str, ensure_ascii=False))) > LONGEST:
        raise InvalidInput(
            f"The handoff has {size:,} characters; {LONGEST:,} are the most.",
            "Keep what matters next.",
        )
    ids = tuple(dict.fromkeys(map(memory.resolve, handoff.memory_ids)))
    handoff = handoff._replace(memory_ids=ids)
    before = [found for found in _list_live(memory) if read_handoff(found).branch == branch]
    passage = Passage(
        render_handoff(handoff),
        kind="handoff",
        summary=" ".join(handoff.summary.split()[:SUMMARY_WORDS]),
        importance=IMPORTANCE,
        metadata={
            name: list(value) if isinstance(value, tuple) else value
            for name, value in handoff._asdict().items()
            if name != "metadata" or value
        },
        supersedes=tuple(found.id for found in before),
        relates_to=handoff.memory_ids,
    )
    cleaned = ingest.pipeline.clean_passage(passage, memory.config.max_characters)[0]
    if len(before) == 1 and (before[0].content, dict(before[0].metadata)) == (
        cleaned.content,
        cleaned.metadata,
    ):
        memory.touch(handoff.memory_ids)
        return SavedHandoff(before[0], new=False)
    # As a source and not as a note: a handoff is never a duplicate, and "switched from A to B" in it replaces no memory of A.
    groups = [(Source(f"note:{memory.actor}", "note"), [passage])]
    outcome = memory.ingest(groups, trust=memory.trust, replace_sources=False).outcomes[0]
    if outcome.status != "added":
        raise InvalidInput(
            "This very handoff was purged, so it is not taken in again.", "Say it in other words."
        )
    return SavedHandoff(memory.one(outcome.id), new=True, supersedes=passage.supersedes)


def find_latest(memory: Bethink, branch: str | None = None) -> LatestHandoff | None:
    """The newest handoff of this branch, or of any branch where it has none. What the user and their agents wrote comes before
    what was imported, however new and whichever branch that says it is for."""
    known = [(found, read_handoff(found)) for found in _list_live(memory)]
    asked = branch or find_branch(memory.project.worktree)
    here = [(found, handoff) for found, handoff in known if handoff.branch == asked]
    for found, handoff in here or known:
        age = memory.clock() - found.created_at
        return LatestHandoff(found, handoff, asked, max(0, age.days))
    return None


def read_handoff(memory: Memory) -> Handoff:
    """The handoff that a memory holds."""
    return handoff_from_fields({"summary": memory.summary, **memory.metadata})


def render_handoff(handoff: Handoff) -> str:
    """A handoff as Markdown, the text of its memory."""
    branch = f", branch {handoff.branch}" if handoff.branch else ""
    parts = [f"# Handoff: {handoff.project}{branch}", handoff.summary.strip()]
    for name, heading in LISTS.items():
        if name != "memory_ids" and (items := getattr(handoff, name)):
            lines = (f"- {' '.join(item.split())}" for item in items)
            parts.append("\n".join([f"## {heading}", "", *lines]))
    return "\n\n".join(parts)


def parse_handoff(text: str) -> Handoff:
    """A handoff as people and agents write it: Markdown with a heading for each list."""
    prose, *rest = _HEADING.split("\n".join(text.splitlines()))
    lists: dict[str, Any] = {}
    for heading, body in zip(rest[::2], rest[1::2], strict=True):
        plain = heading.lower()
        fitting = (name for name, words in _BEGINNINGS.items() if plain.startswith(words))
        field = next(fitting, None)
        if field:
            # A line without a bullet goes on with the item before it, or is one.
            items = (" ".join(part.split()) for part in _BULLET.split(body))
            lists[field] = (*lists.get(field, ()), *filter(None, items))
        else:
            prose += body
    return Handoff(prose.strip(), **lists)


def handoff_from_fields(value: Mapping[str, Any]) -> Handoff:
    """A handoff from loose values: an import may have brought anything."""
    fields: dict[str, Any] = {
        name: str(value.get(name) or "") for name in ("summary", "project", "branch")
    }
    fields |= {
        name: tuple(map(str, found))
        for name in LISTS
        if isinstance(found := value.get(name), list | tuple)
    }
    if isinstance(metadata := value.get("metadata"), Mapping):
        fields["metadata"] = metadata
    return Handoff(**fields)


def _list_live(memory: Bethink) -> list[Memory]:
    """The handoffs that hold, newest first. Where there are any of the user and their agents, imported ones do not count."""
    wanted = memory.filter(kinds=("handoff",), scopes=(memory.scope,))
    own = memory.list(filter=wanted._replace(min_trust=TRUST["agent"]), limit=KEPT)
    return own or memory.list(filter=wanted, limit=KEPT)
